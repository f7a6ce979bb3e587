//! What is written is what three readers read: our own strict one, and two that know nothing of us.

use std::collections::BTreeMap;
use std::io::Cursor;

use proptest::prelude::*;
use warpwave_waveforms::signal::Signal;
use warpwave_waveforms::vcd::{reader::Dump, writer::Writer};

/// For each path, from which cycle on which value.
type Waves = BTreeMap<String, Vec<(u64, Option<u64>)>>;

/// Signals, first values, and for some cycles new values of some signals.
#[derive(Debug, Clone)]
struct Run {
    signals: Vec<Signal>,
    start: u64,
    steps: Vec<(u64, Vec<Option<u64>>)>,
}

fn runs() -> impl Strategy<Value = Run> {
    let width = prop_oneof![3 => Just(1u32), 1 => 2u32..64, 1 => Just(64u32)];
    (
        prop::collection::vec((0usize..4, 0usize..3, width), 1..200),
        1usize..20,
        0u64..1 << 40,
    )
        .prop_flat_map(|(shapes, n_steps, start)| {
            let n = shapes.len();
            let value = prop_oneof![2 => any::<u64>().prop_map(Some), 3 => (0u64..4).prop_map(Some), 1 => Just(None)];
            let step = (1u64..1000, prop::collection::vec(value, n));
            prop::collection::vec(step, n_steps).prop_map(move |steps| Run {
                signals: shapes.iter().enumerate().map(|(n, shape)| signal(n, *shape)).collect(),
                start,
                steps,
            })
        })
}

fn signal(n: usize, (sm, warp, width): (usize, usize, u32)) -> Signal {
    Signal {
        scope: vec!["gpu".into(), format!("sm[{sm}]"), format!("warp[{warp}]")],
        name: format!("signal_{n}"),
        width,
        states: None,
    }
}

/// Writes the run as a recorder would, changes only, and says what it was.
fn write(run: &Run) -> (String, Waves) {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &["a run".into()], &run.signals).expect("memory");
    let fits = |n: usize, value: &Option<u64>| value.map(|value| value & (u64::MAX >> (64 - run.signals[n].width)));
    let mut now = run.start;
    let mut values: Vec<Option<u64>> = run.steps[0].1.iter().enumerate().map(|(n, v)| fits(n, v)).collect();
    let mut waves: Vec<Vec<(u64, Option<u64>)>> = values.iter().map(|value| vec![(now, *value)]).collect();
    writer.dump(now, &values).expect("memory");
    for (cycles, step) in &run.steps[1..] {
        now += cycles;
        for (n, value) in step.iter().enumerate() {
            let value = fits(n, value);
            if values[n] != value {
                values[n] = value;
                waves[n].push((now, value));
                writer.change(now, n as u32, value).expect("memory");
            }
        }
    }
    writer.finish(now + 1).expect("memory");
    let waves = run.signals.iter().map(Signal::path).zip(waves).collect();
    (String::from_utf8(file).expect("text"), waves)
}

fn read_own(text: &str) -> Waves {
    let dump = Dump::read(text).expect("what we write keeps to our own dialect");
    dump.signals
        .into_iter()
        .map(|signal| (signal.path, signal.changes))
        .collect()
}

fn read_vcd(text: &str) -> Waves {
    let mut parser = vcd::Parser::new(text.as_bytes());
    let header = parser.parse_header().expect("a header");
    let mut by_code = BTreeMap::new();
    collect_vars(&header.items, "", &mut by_code);
    let mut waves: Waves = by_code.values().map(|path| (path.clone(), Vec::new())).collect();
    let mut now = 0;
    for command in parser {
        let (code, digits) = match command.expect("a command") {
            vcd::Command::Timestamp(at) => {
                now = at;
                continue;
            }
            vcd::Command::ChangeScalar(code, value) => (code, value.to_string()),
            vcd::Command::ChangeVector(code, value) => (code, value.to_string()),
            _ => continue,
        };
        let wave = waves.get_mut(&by_code[&code]).expect("declared");
        wave.push((now, number(&digits)));
    }
    waves
}

fn collect_vars(items: &[vcd::ScopeItem], above: &str, by_code: &mut BTreeMap<vcd::IdCode, String>) {
    for item in items {
        match item {
            vcd::ScopeItem::Var(var) => {
                by_code.insert(var.code, format!("{above}{}", var.reference));
            }
            vcd::ScopeItem::Scope(scope) => {
                collect_vars(&scope.items, &format!("{above}{}.", scope.identifier), by_code);
            }
            _ => {}
        }
    }
}

fn read_wellen(text: &str) -> Waves {
    let mut waveform = wellen::simple::read_from_reader(Cursor::new(text.to_owned())).expect("a waveform");
    let vars: Vec<_> = waveform.hierarchy().all_vars().collect();
    let mut waves = Waves::new();
    for var in vars {
        let var = &waveform.hierarchy()[var];
        let (path, id) = (var.full_name(waveform.hierarchy()), var.signal_ref());
        waveform.load_signals(&[id]);
        let signal = waveform.get_signal(id).expect("loaded");
        let wave = signal.iter_changes().map(|(at, value)| {
            let digits = value.to_bit_string().expect("bits");
            (waveform.time_table()[at as usize], number(&digits))
        });
        waves.insert(path, wave.collect());
    }
    waves
}

fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 2).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn three_readers_read_what_was_written(run in runs()) {
        let (text, waves) = write(&run);
        prop_assert_eq!(&read_own(&text), &waves);
        prop_assert_eq!(&read_vcd(&text), &waves);
        prop_assert_eq!(&read_wellen(&text), &waves);
    }
}
