//! Target: the VCD writer, read back by the reader of the crate `vcd`.
//!
//! Oracle: every signal has the changes that were written, in the same cycles, under its name and under its alias. Times never go back.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use vcd::{Command, IdCode, Parser, ScopeItem};
use warpwave_waveforms::signal::{Kind, Signal};
use warpwave_waveforms::sink::Sink;
use warpwave_waveforms::vcd::TimeAxis;
use warpwave_waveforms::vcd::writer::VcdWriter;

use crate::draw::{one_of, up_to, within};
use crate::features;

/// Signals and their changes.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    #[arbitrary(with = one_of(&[0, 1, 1 << 20, 1 << 40]))]
    start: u64,
    #[arbitrary(with = axis)]
    axis: TimeAxis,
    #[arbitrary(with = up_to(40))]
    signals: Vec<SignalSpec>,
    #[arbitrary(with = up_to(40))]
    changes: Vec<ChangeSpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct SignalSpec {
    #[arbitrary(with = one_of(&[Kind::Bit, Kind::Vector(2), Kind::Vector(64), Kind::Stored(33), Kind::Code, Kind::Real, Kind::State(&["a", "b", "c"])]))]
    kind: Kind,
    #[arbitrary(with = within(0..=2))]
    scope: u8,
    has_alias: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct ChangeSpec {
    /// Cycles after the last change.
    #[arbitrary(with = one_of(&[0, 1, 2, 9]))]
    cycles: u64,
    signal: u8,
    #[arbitrary(with = one_of(&[Some(0), Some(1), None, Some(u64::MAX), Some(0x8000_0001)]))]
    value: Option<u64>,
}

fn axis(bytes: &mut Unstructured<'_>) -> Result<TimeAxis> {
    Ok(match bytes.arbitrary()? {
        false => TimeAxis::Cycles,
        true => TimeAxis::Real {
            khz: bytes.int_in_range(1..=3_000_000)?,
        },
    })
}

/// The changes of each signal, by path: time and value.
type Waves = BTreeMap<String, Vec<(u64, Option<u64>)>>;

impl SignalSpec {
    fn signal(self, n: usize) -> Signal {
        let mut signal = Signal::new(&format!("gpu.sm[{}].signal_{n}", self.scope), self.kind);
        signal.alias_scope = self.has_alias.then(|| vec!["gpu".into(), "bus".into()]);
        signal
    }
}

/// The value as a signal can have it. A real number is never missing.
fn fit(kind: Kind, value: Option<u64>) -> Option<u64> {
    match kind {
        Kind::Real => Some(((value.unwrap_or(0) & 0xffff) as f64 / 8.0).to_bits()),
        kind => value.map(|value| value & (u64::MAX >> (64 - kind.width()))),
    }
}

/// Writes the changes. Returns the dump, and what a reader must find.
fn write(input: &Input, signals: &[Signal]) -> (Vec<u8>, Waves) {
    let mut file = Vec::new();
    let mut writer = VcdWriter::new(&mut file, &["a $run".into()], input.axis, signals).expect("memory has room");
    let mut values: Vec<Option<u64>> = signals.iter().map(|signal| fit(signal.kind, None)).collect();
    let mut now = input.start;
    let mut waves: Vec<_> = values
        .iter()
        .map(|value| vec![(input.axis.rise(now), *value)])
        .collect();
    writer.begin(now, &values).expect("memory has room");
    let mut next = 0;
    for change in &input.changes {
        now += change.cycles;
        // Within a cycle, signals come in rising order.
        next = if change.cycles > 0 || now == input.start {
            0
        } else {
            next
        };
        let n = usize::from(change.signal);
        let Some(signal) = signals.get(n).filter(|_| n >= next && now > input.start) else {
            continue;
        };
        let value = fit(signal.kind, change.value);
        if values[n] != value {
            values[n] = value;
            waves[n].push((input.axis.rise(now), value));
            writer.change(now, n as u32, value).expect("memory has room");
        }
        next = n + 1;
    }
    writer.finish(now + 1).expect("memory has room");
    let mut all = Waves::new();
    for (signal, wave) in signals.iter().zip(waves) {
        features::note((
            format!("{:?}", signal.kind),
            signal.alias_scope.is_some(),
            wave.len().checked_ilog2(),
        ));
        let alias = signal
            .alias_scope
            .as_ref()
            .map(|scope| format!("{}.{}", scope.join("."), signal.name));
        all.extend(alias.map(|alias| (alias, wave.clone())));
        all.insert(signal.path(), wave);
    }
    (file, all)
}

/// Reads the changes of all signals but the clock.
fn read(file: &[u8]) -> Waves {
    let mut parser = Parser::new(file);
    let header = parser.parse_header().expect("the writer writes a header");
    let mut names = BTreeMap::new();
    collect(&header.items, "", &mut names);
    let (mut waves, mut now) = (Waves::new(), 0);
    for command in parser {
        let (code, value) = match command.expect("the writer writes commands") {
            Command::Timestamp(at) => {
                assert!(at >= now, "the time goes back from {now} to {at}");
                now = at;
                continue;
            }
            Command::ChangeScalar(code, value) => (code, number(&value.to_string())),
            Command::ChangeVector(code, value) => (code, number(&value.to_string())),
            Command::ChangeReal(code, value) => (code, Some(value.to_bits())),
            _ => continue,
        };
        for path in &names[&code] {
            waves.entry(path.clone()).or_default().push((now, value));
        }
    }
    waves.remove("gpu.clock");
    waves.remove("gpu.cycle");
    waves
}

fn collect(items: &[ScopeItem], above: &str, names: &mut BTreeMap<IdCode, Vec<String>>) {
    for item in items {
        match item {
            ScopeItem::Var(var) => names
                .entry(var.code)
                .or_default()
                .push(format!("{above}{}", var.reference)),
            ScopeItem::Scope(scope) => collect(&scope.items, &format!("{above}{}.", scope.identifier), names),
            _ => {}
        }
    }
}

/// A number in binary digits. `None` for one with missing digits.
fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 2).ok()
}

/// Writes and reads the dump.
///
/// # Panics
/// If the reader refuses the dump, or finds other changes.
pub fn check(input: Input) {
    let signals = input.signals.iter().enumerate();
    let mut signals: Vec<Signal> = signals.map(|(n, spec)| spec.signal(n)).collect();
    // The first scope holds the clock, so there is at least one signal.
    signals.push(Signal::new("gpu.last", Kind::Bit));
    let (file, expected) = write(&input, &signals);
    assert_eq!(read(&file), expected, "changes by signal");
}
