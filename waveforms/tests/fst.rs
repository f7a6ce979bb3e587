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
    pc.alias_scope = Some(vec!["gpu".into(), "bus".into()]);
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
