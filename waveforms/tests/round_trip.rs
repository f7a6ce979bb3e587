//! Two independent readers, the crates `vcd` and `wellen`, read back what the writer wrote.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warpwave_waveforms::signal::{Kind, Signal};
use warpwave_waveforms::sink::Sink;
use warpwave_waveforms::vcd::{TimeAxis, writer::VcdWriter};

#[path = "../../testbench/tests/dump/mod.rs"]
mod dump;

use dump::{Dump, check_rules};

/// The changes of each signal, by path: time and value.
type Waves = BTreeMap<String, Vec<(u64, Option<u64>)>>;

/// A random run. The first step has the initial values. A step has the cycles since the last one and all values.
#[derive(Debug, Clone)]
struct Run {
    signals: Vec<Signal>,
    start: u64,
    steps: Vec<(u64, Vec<Option<u64>>)>,
    axis: TimeAxis,
}

fn runs() -> impl Strategy<Value = Run> {
    let number = || prop_oneof![1 => 2u32..64, 1 => Just(64u32)];
    let kind = prop_oneof![
        6 => Just(Kind::Bit),
        2 => number().prop_map(Kind::Vector),
        1 => number().prop_map(Kind::Stored),
        1 => Just(Kind::Real),
    ];
    let axis = prop_oneof![
        Just(TimeAxis::Cycles),
        (1000u64..3_000_000).prop_map(|khz| TimeAxis::Real { khz })
    ];
    (
        prop::collection::vec((0usize..4, 0usize..3, kind, any::<bool>()), 1..200),
        1usize..20,
        0u64..1 << 30,
        axis,
    )
        .prop_flat_map(|(shapes, n_steps, start, axis)| {
            let n = shapes.len();
            let value = prop_oneof![2 => any::<u64>().prop_map(Some), 3 => (0u64..4).prop_map(Some), 1 => Just(None)];
            let step = (1u64..100, prop::collection::vec(value, n));
            prop::collection::vec(step, n_steps).prop_map(move |steps| Run {
                signals: shapes.iter().enumerate().map(|(n, shape)| signal(n, *shape)).collect(),
                start,
                steps,
                axis,
            })
        })
}

fn signal(n: usize, (sm, warp, kind, is_alias): (usize, usize, Kind, bool)) -> Signal {
    let mut signal = Signal::new(&format!("gpu.sm[{sm}].warp[{warp}].signal_{n}"), kind);
    signal.alias_scope = is_alias.then(|| ["gpu".into(), format!("sm[{sm}]"), "bus".into()].into());
    signal
}

/// Fits a value to a signal. Real numbers are eighths and never missing.
fn fit(signal: &Signal, value: Option<u64>) -> Option<u64> {
    match signal.kind {
        Kind::Real => Some(((value.unwrap_or(0) & 0xffff) as f64 / 8.0).to_bits()),
        kind => value.map(|value| value & (u64::MAX >> (64 - kind.width()))),
    }
}

/// Writes the changes of a run. Returns the dump and the expected changes of each signal.
fn write(run: &Run) -> (String, Waves) {
    let mut file = Vec::new();
    let mut writer = VcdWriter::new(&mut file, &["a run".into()], run.axis, &run.signals).expect("memory");
    let mut now = run.start;
    let first = run.signals.iter().zip(&run.steps[0].1);
    let mut values: Vec<Option<u64>> = first.map(|(signal, value)| fit(signal, *value)).collect();
    let mut waves: Vec<Vec<(u64, Option<u64>)>> =
        values.iter().map(|value| vec![(run.axis.rise(now), *value)]).collect();
    writer.begin(now, &values).expect("memory");
    for (cycles, step) in &run.steps[1..] {
        now += cycles;
        for (n, value) in step.iter().enumerate() {
            let value = fit(&run.signals[n], *value);
            if values[n] != value {
                values[n] = value;
                waves[n].push((run.axis.rise(now), value));
                writer.change(now, n as u32, value).expect("memory");
            }
        }
    }
    writer.finish(now + 1).expect("memory");
    let mut all: Waves = clock(run.axis, run.start, now);
    for (signal, wave) in run.signals.iter().zip(waves) {
        let alias = signal
            .alias_scope
            .as_ref()
            .map(|scope| format!("{}.{}", scope.join("."), signal.name));
        all.extend(alias.map(|alias| (alias, wave.clone())));
        all.insert(signal.path(), wave);
    }
    (String::from_utf8(file).expect("text"), all)
}

/// The clock and the count of its cycles.
fn clock(axis: TimeAxis, start: u64, last: u64) -> Waves {
    let edges = (start..=last).flat_map(|cycle| [(axis.rise(cycle), Some(1)), (axis.fall(cycle), Some(0))]);
    let cycles = (start..=last).map(|cycle| (axis.rise(cycle), Some(cycle)));
    [
        ("gpu.clock".into(), edges.collect()),
        ("gpu.cycle".into(), cycles.collect()),
    ]
    .into()
}

fn read_vcd(text: &str) -> Waves {
    let mut parser = vcd::Parser::new(text.as_bytes());
    let header = parser.parse_header().expect("a header");
    let mut by_code: BTreeMap<vcd::IdCode, Vec<String>> = BTreeMap::new();
    collect_vars(&header.items, "", &mut by_code);
    let mut waves = Waves::new();
    let mut now = 0;
    for command in parser {
        let (code, value) = match command.expect("a command") {
            vcd::Command::Timestamp(at) => {
                now = at;
                continue;
            }
            vcd::Command::ChangeScalar(code, value) => (code, number(&value.to_string())),
            vcd::Command::ChangeVector(code, value) => (code, number(&value.to_string())),
            vcd::Command::ChangeReal(code, value) => (code, Some(value.to_bits())),
            _ => continue,
        };
        for path in &by_code[&code] {
            waves.entry(path.clone()).or_default().push((now, value));
        }
    }
    waves
}

fn collect_vars(items: &[vcd::ScopeItem], above: &str, by_code: &mut BTreeMap<vcd::IdCode, Vec<String>>) {
    for item in items {
        match item {
            vcd::ScopeItem::Var(var) => {
                by_code
                    .entry(var.code)
                    .or_default()
                    .push(format!("{above}{}", var.reference));
            }
            vcd::ScopeItem::Scope(scope) => {
                collect_vars(&scope.items, &format!("{above}{}.", scope.identifier), by_code);
            }
            _ => {}
        }
    }
}

fn read_wellen(text: &str) -> Waves {
    let dump = Dump::read(text);
    let wave = |index: usize| dump.signals[index].changes.clone();
    let aliases = dump.aliases.iter().map(|(path, index)| (path.clone(), wave(*index)));
    let first = (0..dump.signals.len()).map(|n| (dump.signals[n].path.clone(), wave(n)));
    first.chain(aliases).collect()
}

#[test]
fn malformed_dumps_break_a_rule() {
    let good = "$enddefinitions $end\n#5\n$dumpvars\n0!\nb101 \"\n$end\n#7\n1!\n#9\n";
    assert_eq!(check_rules(good), Ok(()));
    for (from, to) in [
        ("#9", "#7"),
        ("#9", "#9\n#10"),
        ("#9", "#x"),
        ("b101", "b0101"),
        ("1!\n", "0!\n"),
        ("1!\n", "1!\n0!\n"),
        ("#9\n", "#9"),
    ] {
        assert!(check_rules(&good.replacen(from, to, 1)).is_err(), "{from:?} as {to:?}");
    }
}

fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 2).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn two_readers_read_back_every_dump(run in runs()) {
        let (text, waves) = write(&run);

        prop_assert_eq!(&read_vcd(&text), &waves);
        prop_assert_eq!(&read_wellen(&text), &waves);
    }
}
