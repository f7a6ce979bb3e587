//! Signals and their changes, for the targets of waveform files.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use warpwave_waveforms::signal::{Kind, Signal};
use warpwave_waveforms::sink::Sink;
use warpwave_waveforms::vcd::TimeAxis;

use crate::draw::{one_of, up_to, within};
use crate::features;

/// Signals and their changes.
#[derive(Arbitrary, Clone, Debug)]
pub struct Dump {
    #[arbitrary(with = one_of(&[0, 1, 1 << 20, 1 << 40]))]
    start: u64,
    /// The time axis of the file.
    #[arbitrary(with = axis)]
    pub axis: TimeAxis,
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
pub type Waves = BTreeMap<String, Vec<(u64, Option<u64>)>>;

impl SignalSpec {
    fn signal(self, n: usize) -> Signal {
        let mut signal = Signal::new(&format!("gpu.sm[{}].signal_{n}", self.scope), self.kind);
        signal.alias_scope = self.has_alias.then(|| ["gpu".into(), "bus".into()].into());
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

/// A number in binary digits. `None` for one with missing digits.
pub fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 2).ok()
}

impl Dump {
    /// The signals, at least one: the first scope holds the clock.
    pub fn signals(&self) -> Vec<Signal> {
        let signals = self.signals.iter().enumerate();
        let mut signals: Vec<Signal> = signals.map(|(n, spec)| spec.signal(n)).collect();
        // At least one: the writer puts the clock into the scope of the first signal.
        signals.push(Signal::new("gpu.last", Kind::Bit));
        signals
    }

    /// Writes the changes to a file of these signals. Returns what a reader must find.
    ///
    /// # Panics
    /// If the file refuses a change.
    pub fn write(&self, signals: &[Signal], file: &mut dyn Sink) -> Waves {
        let mut now = self.start;
        let mut values: Vec<Option<u64>> = signals.iter().map(|signal| fit(signal.kind, None)).collect();
        let mut waves: Vec<_> = values.iter().map(|value| vec![(self.axis.rise(now), *value)]).collect();
        file.begin(now, &values).expect("memory has room");
        let mut next = 0;
        for change in &self.changes {
            now += change.cycles;
            // Within a cycle, signals come in rising order.
            next = if change.cycles > 0 || now == self.start {
                0
            } else {
                next
            };
            let n = usize::from(change.signal);
            let Some(signal) = signals.get(n).filter(|_| n >= next && now > self.start) else {
                continue;
            };
            let value = fit(signal.kind, change.value);
            // A value that stays the same is no change.
            if values[n] != value {
                values[n] = value;
                waves[n].push((self.axis.rise(now), value));
                file.change(now, n as u32, value).expect("memory has room");
            }
            next = n + 1;
        }
        // The end lies after the last change, or the change would not be seen.
        file.finish(now + 1).expect("memory has room");
        by_path(signals, waves)
    }
}

/// The changes of each signal under its path, and under the path of its alias.
fn by_path(signals: &[Signal], waves: Vec<Vec<(u64, Option<u64>)>>) -> Waves {
    let mut all = Waves::new();
    for (signal, wave) in signals.iter().zip(waves) {
        let has_alias = signal.alias_scope.is_some();
        features::note((format!("{:?}", signal.kind), has_alias, wave.len().checked_ilog2()));
        let alias = signal.alias_scope.as_ref();
        let alias = alias.map(|alias| format!("{}.{}", alias.join("."), signal.name));
        all.extend(alias.map(|alias| (alias, wave.clone())));
        all.insert(signal.path(), wave);
    }
    all
}
