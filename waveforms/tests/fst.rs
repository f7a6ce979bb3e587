//! An FST and a VCD of the same run have the same contents. The independent reader `wellen` reads both.
#![cfg(feature = "fst")]

use std::collections::BTreeMap;
use std::io::Cursor;

use warpwave_waveforms::fst::FstSink;
use warpwave_waveforms::signal::{Kind, Signal};
use warpwave_waveforms::sink::Sink;
use warpwave_waveforms::vcd::{TimeAxis, writer::VcdWriter};
use wellen::simple;

const STATES: [&str; 3] = ["idle", "busy_now", "done"];

fn signals() -> Vec<Signal> {
    let mut pc = Signal::new("gpu.sm[0].pc", Kind::Vector(32));
    pc.alias_scope = Some(["gpu".into(), "bus".into()].into());
    vec![
        Signal::new("gpu.sm[0].valid", Kind::Bit),
        pc,
        Signal::new("gpu.sm[0].warp[0].state", Kind::State(&STATES)),
        Signal::new("gpu.sm[0].warp[1].state", Kind::State(&STATES)),
        Signal::new("gpu.sm[1].row", Kind::Stored(5)),
        Signal::new("gpu.sm[1].wide", Kind::Vector(64)),
        Signal::new("gpu.sm[1].ipc", Kind::Real),
    ]
}

/// Writes 400 cycles in which every signal takes every kind of value. Every fifth cycle has no change.
fn write(sink: &mut dyn Sink) {
    let n = signals().len() as u64;
    let value = |cycle: u64, signal: u64| -> Option<u64> {
        let bits = (cycle * 7 + signal).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match signal {
            _ if signal != 6 && bits >> 60 == 3 => None,
            0 => Some(bits >> 63),
            1 => Some(bits >> 32),
            2 | 3 => Some((bits >> 32) % 3),
            4 => Some(bits >> 59),
            5 => Some(bits),
            _ => Some(((bits >> 50) as f64 / 8.0).to_bits()),
        }
    };
    let mut now: Vec<_> = (0..n).map(|signal| value(3, signal)).collect();
    sink.begin(3, &now).unwrap();
    for cycle in (4..400).filter(|cycle| cycle % 5 != 0) {
        for signal in 0..n {
            let new = value(cycle / (signal + 1), signal);
            if std::mem::replace(&mut now[signal as usize], new) != new {
                sink.change(cycle, signal as u32, new).unwrap();
            }
        }
    }
    sink.finish(450).unwrap();
}

fn vcd(axis: TimeAxis) -> Vec<u8> {
    let mut file = Vec::new();
    write(&mut VcdWriter::new(&mut file, &[], axis, &signals()).unwrap());
    file
}

fn fst(axis: TimeAxis) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let mut sink = FstSink::new(&mut file, axis, &signals()).unwrap();
    write(&mut sink);
    let bytes = sink.bytes();
    drop(sink);
    assert_eq!(bytes, file.get_ref().len() as u64);
    file.into_inner()
}

/// The changes of each signal, by path: time and value as text.
type Waves = BTreeMap<String, Vec<(u64, String)>>;

fn read(file: Vec<u8>) -> (Waves, simple::Waveform) {
    let mut waveform = simple::read_from_reader(Cursor::new(file)).unwrap();
    let names = |waveform: &simple::Waveform| -> Vec<_> {
        let hierarchy = waveform.hierarchy();
        let vars = hierarchy.all_vars().map(|var| &hierarchy[var]);
        vars.map(|var| (var.full_name(hierarchy), var.signal_ref())).collect()
    };
    let (mut waves, times) = (Waves::new(), waveform.time_table().to_vec());
    for (name, signal) in names(&waveform) {
        waveform.load_signals(&[signal]);
        let changes = waveform.get_signal(signal).unwrap().iter_changes();
        let mut wave: Vec<(u64, String)> = changes
            .map(|(at, value)| (times[at as usize], value.to_string()))
            .collect();
        wave.dedup_by(|next, last| next.1 == last.1);
        waves.insert(name, wave);
    }
    (waves, waveform)
}

#[test]
fn fst_and_vcd_have_the_same_changes_of_all_signals() {
    for axis in [TimeAxis::Cycles, TimeAxis::Real { khz: 1_755_000 }] {
        let ((text, _), (binary, _)) = (read(vcd(axis)), read(fst(axis)));
        // The signals, one alias, the clock and its count.
        assert_eq!(text.len(), signals().len() + 3);
        assert_eq!(text.keys().collect::<Vec<_>>(), binary.keys().collect::<Vec<_>>());
        for (name, wave) in &text {
            assert!(wave.len() > 40, "{name} changes {} times", wave.len());
            assert_eq!(wave, &binary[name], "{name}");
        }
    }
}

#[test]
fn both_formats_have_the_unit_of_time_of_their_axis() {
    // 10 units of 100 ps are a cycle, and real times are in ps.
    for (axis, exponent) in [(TimeAxis::Cycles, -10), (TimeAxis::Real { khz: 1_755_000 }, -12)] {
        for file in [vcd(axis), fst(axis)] {
            let (_, waveform) = read(file);
            let unit = waveform.hierarchy().timescale().unwrap();
            let digits = i8::try_from(unit.factor.ilog10()).unwrap();
            assert_eq!(unit.factor, 10_u32.pow(unit.factor.ilog10()));
            assert_eq!(unit.unit.to_exponent().map(|unit| unit + digits), Some(exponent));
        }
    }
}

#[test]
fn states_have_no_table_in_the_file() {
    let (waves, waveform) = read(fst(TimeAxis::Cycles));
    let hierarchy = waveform.hierarchy();
    assert!(
        hierarchy
            .all_vars()
            .all(|var| hierarchy[var].enum_type(hierarchy).is_none())
    );
    assert!(waves["gpu.sm[0].warp[1].state"].iter().any(|(_, value)| value == "10"));
}

#[test]
fn file_ends_with_the_last_cycle_and_repeats_exactly() {
    let (_, waveform) = read(fst(TimeAxis::Cycles));
    assert_eq!(waveform.time_table().last(), Some(&4500));
    assert!(fst(TimeAxis::Cycles) == fst(TimeAxis::Cycles));
}

/// Writes the same changes as a VCD and as an FST. Returns what the reader finds in the FST, which must be what it finds in the VCD.
fn same_in_both(signals: &[Signal], write: &dyn Fn(&mut dyn Sink)) -> Waves {
    let (mut text, mut binary) = (Vec::new(), Cursor::new(Vec::new()));
    write(&mut VcdWriter::new(&mut text, &[], TimeAxis::Cycles, signals).unwrap());
    write(&mut FstSink::new(&mut binary, TimeAxis::Cycles, signals).unwrap());
    let ((text, _), (binary, _)) = (read(text), read(binary.into_inner()));
    assert_eq!(text.keys().collect::<Vec<_>>(), binary.keys().collect::<Vec<_>>());
    for (name, wave) in text {
        assert!(wave == binary[&name], "{name} differs");
    }
    binary
}

/// Numbers without a pattern.
fn mix(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[test]
fn values_of_every_width_are_kept() {
    let kind = |width| match width {
        1 => Kind::Bit,
        width if width % 2 == 0 => Kind::Vector(width),
        width => Kind::Stored(width),
    };
    let signals: Vec<Signal> = (1..=64).map(|n| Signal::new(&format!("gpu.w{n}"), kind(n))).collect();
    let waves = same_in_both(&signals, &|sink| {
        sink.begin(0, &[Some(1); 64]).unwrap();
        for (at, pattern) in (1..).zip([Some(u64::MAX), None, Some(0), Some(0x8421_0842_1084_2108 | 1)]) {
            for signal in 0..64 {
                sink.change(at, signal, pattern.map(|bits| bits >> (63 - signal)))
                    .unwrap();
            }
        }
        sink.finish(10).unwrap();
    });
    let values: Vec<&str> = waves["gpu.w3"].iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["001", "111", "xxx", "000", "100"]);
    let values: Vec<&str> = waves["gpu.w2"].iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["01", "11", "zz", "00", "10"]);
}

/// Cycles that fill several blocks: each has three changes of the clock and its count, and a block has 250,000 changes.
const LONG: u64 = 200_000;

/// A signal that changes in each cycle, one that changes once, and one that never does.
fn long_signals() -> Vec<Signal> {
    let signals = [
        ("busy", Kind::Vector(9)),
        ("once", Kind::Bit),
        ("never", Kind::Vector(5)),
    ];
    signals
        .map(|(name, kind)| Signal::new(&format!("gpu.{name}"), kind))
        .to_vec()
}

/// Writes [`LONG`] cycles, but not their end.
fn write_long(sink: &mut dyn Sink) {
    sink.begin(0, &[Some(0), None, Some(21)]).unwrap();
    for at in 1..LONG {
        sink.change(at, 0, Some(at % 509)).unwrap();
        if at == 150_000 {
            sink.change(at, 1, Some(1)).unwrap();
        }
    }
}

#[test]
fn chain_that_is_longer_than_a_block_goes_on_in_the_next_one() {
    let waves = same_in_both(&long_signals(), &|sink| {
        write_long(sink);
        sink.finish(LONG).unwrap();
    });
    assert_eq!(waves["gpu.busy"].len() as u64, LONG);
    assert_eq!(waves["gpu.once"], [(0, "z".into()), (1_500_000, "1".into())]);
    assert_eq!(waves["gpu.never"], [(0, "10101".into())]);
}

#[test]
fn file_of_a_run_that_breaks_off_has_all_blocks_but_the_last_one() {
    let mut file = Cursor::new(Vec::new());
    write_long(&mut FstSink::new(&mut file, TimeAxis::Cycles, &long_signals()).unwrap());
    let (waves, waveform) = read(file.into_inner());
    // 800,000 changes are three full blocks of 250,000.
    let cycles = waves["gpu.busy"].len() as u64;
    assert!((187_000..188_000).contains(&cycles), "{cycles} cycles");
    assert_eq!(waveform.time_table().last(), Some(&((cycles - 1) * 10)));
    for (n, (time, value)) in waves["gpu.busy"].iter().enumerate() {
        assert_eq!((*time, value), (n as u64 * 10, &format!("{:09b}", n % 509)));
    }
}

#[test]
fn times_beyond_32_bits_are_kept() {
    let start = 1 << 40;
    let waves = same_in_both(&[Signal::new("gpu.n", Kind::Vector(64))], &|sink| {
        sink.begin(start, &[Some(3)]).unwrap();
        sink.change(start + 7, 0, Some(u64::MAX)).unwrap();
        sink.finish(start + 9).unwrap();
    });
    let ends = |n: u32, digits: &str| (u64::from(n) * 10 + 10 * start, format!("{digits:0>64}"));
    assert_eq!(waves["gpu.n"], [ends(0, "11"), ends(7, &"1".repeat(64))]);
}

#[test]
fn few_changes_of_many_signals_are_found() {
    let signals: Vec<Signal> = (0..3000)
        .map(|n| Signal::new(&format!("gpu.sm[{}].s{n}", n / 100), Kind::Vector(1 + n % 40)))
        .collect();
    same_in_both(&signals, &|sink| {
        let values: Vec<_> = (0..3000).map(|n| Some(mix(n) >> (63 - n % 40))).collect();
        sink.begin(5, &values).unwrap();
        for (at, signal) in [(6, 0), (6, 2999), (7, 1234), (700, 1234), (9000, 2998)] {
            sink.change(at, signal, None).unwrap();
        }
        sink.finish(9001).unwrap();
    });
}

#[test]
fn signals_with_the_same_changes_share_their_chain() {
    let size = |n_signals: u32| {
        let mut file = Cursor::new(Vec::new());
        let signals: Vec<Signal> = (0..n_signals)
            .map(|n| Signal::new(&format!("gpu.s{n}"), Kind::Vector(32)))
            .collect();
        let mut sink = FstSink::new(&mut file, TimeAxis::Cycles, &signals).unwrap();
        sink.begin(0, &vec![Some(0); signals.len()]).unwrap();
        for at in 1..1000 {
            for signal in 0..n_signals {
                sink.change(at, signal, Some(mix(at) >> 32)).unwrap();
            }
        }
        sink.finish(1000).unwrap();
        file.into_inner().len()
    };
    // A chain of 999 random words has 4 kB. Without sharing, 49 more signals are 196 kB.
    assert!(size(50) < size(1) + 10_000, "{} and {} bytes", size(1), size(50));
}

#[test]
fn finished_file_takes_no_more_changes() {
    let mut sink = FstSink::new(Cursor::new(Vec::new()), TimeAxis::Cycles, &signals()).unwrap();
    write(&mut sink);
    assert!(sink.change(500, 0, None).is_err());
    assert!(sink.finish(501).is_err());
}
