//! Reads a VCD with `wellen`, for the tests of this package and of `waveforms`.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{HashMap, HashSet};
use std::io::Cursor;

use wellen::{SignalValueRef, simple};

/// The contents of a dump.
#[derive(Debug)]
pub struct Dump {
    /// The comments of the header.
    pub comments: Vec<String>,
    /// All signals, in the order of declaration, each under its first path.
    pub signals: Vec<Declared>,
    /// The aliases: path, and index of the signal.
    pub aliases: Vec<(String, usize)>,
    /// The time of the initial values.
    pub start: u64,
    /// The last time.
    pub end: u64,
}

/// A signal with all its values.
#[derive(PartialEq, Eq, Debug)]
pub struct Declared {
    /// The dotted path.
    pub path: String,
    /// The width in bits.
    pub width: u32,
    /// The changes: time and value. A real number is the bits of an `f64`. `None` is `x` or `z`.
    pub changes: Vec<(u64, Option<u64>)>,
}

impl Dump {
    /// Reads a dump.
    ///
    /// # Panics
    /// If the dump breaks a rule of [`check_rules`].
    pub fn read(text: &str) -> Dump {
        assert_eq!(check_rules(text), Ok(()));
        let header = text.lines().take_while(|line| *line != "$enddefinitions $end");
        let comment = |line: &str| Some(line.strip_prefix("$comment ")?.strip_suffix(" $end")?.to_owned());
        let comments = header.filter_map(comment).collect();
        let mut file = simple::read_from_reader(Cursor::new(text.to_owned())).expect("a dump");
        let hierarchy = file.hierarchy();
        let var = |var: wellen::VarRef| {
            let var = &hierarchy[var];
            let width = var.length(hierarchy).unwrap_or(u64::BITS);
            (var.full_name(hierarchy), var.signal_ref(), width)
        };
        let vars: Vec<_> = hierarchy.all_vars().map(var).collect();
        file.load_signals(&vars.iter().map(|var| var.1).collect::<Vec<_>>());
        let times = file.time_table();
        let (mut signals, mut aliases, mut indices) = (Vec::new(), Vec::new(), HashMap::new());
        for (path, id, width) in vars {
            if let Some(&index) = indices.get(&id) {
                aliases.push((path, index));
                continue;
            }
            let changes = file.get_signal(id).expect("loaded").iter_changes();
            let changes = changes.map(|(at, value)| (times[at as usize], number(value))).collect();
            indices.insert(id, signals.len());
            signals.push(Declared { path, width, changes });
        }
        let (start, end) = (times[0], times[times.len() - 1]);
        Dump {
            comments,
            signals,
            aliases,
            start,
            end,
        }
    }

    /// Converts times to cycles, and removes the clock and the count of its cycles.
    pub fn by_cycle(mut self) -> Dump {
        let count = &self.signals[1];
        assert!(self.signals[0].path.ends_with(".clock") && count.path.ends_with(".cycle"));
        let counted = count.changes.iter().map(|&(at, count)| (at, count.expect("a number")));
        let cycles: HashMap<u64, u64> = counted.collect();
        let last = count.changes.last().map_or(0, |last| cycles[&last.0]);
        let start = cycles[&self.start];
        self.end = if self.end == self.start { start } else { last + 1 };
        self.start = start;
        self.signals.drain(..2);
        self.aliases.iter_mut().for_each(|(_, index)| *index -= 2);
        for signal in &mut self.signals {
            for (at, _) in &mut signal.changes {
                let cycle = cycles.get(at);
                *at = *cycle.unwrap_or_else(|| panic!("{} changes at {at}, off the clock", signal.path));
            }
        }
        self
    }

    /// The signal with this path or alias.
    pub fn signal(&self, path: &str) -> Option<&Declared> {
        let alias = || self.aliases.iter().find(|(alias, _)| alias == path);
        let first = self.signals.iter().find(|signal| signal.path == path);
        first.or_else(|| alias().map(|(_, index)| &self.signals[*index]))
    }
}

impl Declared {
    /// The value at a time. `None` before the initial value.
    pub fn at(&self, time: u64) -> Option<u64> {
        let after = self.changes.partition_point(|&(at, _)| at <= time);
        after.checked_sub(1).and_then(|last| self.changes[last].1)
    }
}

fn number(value: SignalValueRef<'_>) -> Option<u64> {
    match value {
        SignalValueRef::Real(value) => Some(value.to_bits()),
        value => u64::from_str_radix(&value.to_bit_string().expect("bits"), 2).ok(),
    }
}

/// Checks rules of [`warpwave_waveforms::vcd`] that readers do not check.
pub fn check_rules(text: &str) -> Result<(), String> {
    let body = text.lines().skip_while(|line| *line != "$enddefinitions $end").skip(1);
    let (mut now, mut changed) = (None, HashSet::new());
    let mut values: HashMap<&str, &str> = HashMap::new();
    for line in body.filter(|line| !line.starts_with('$')) {
        if let Some(time) = line.strip_prefix('#') {
            let time: u64 = time.parse().map_err(|_| format!("`{line}` is not a time"))?;
            if now.is_some_and(|now| time <= now) {
                return Err(format!("time {time} after {now:?}"));
            }
            if now.is_some() && changed.is_empty() {
                return Err(format!("no change before time {time}"));
            }
            (now, changed) = (Some(time), HashSet::new());
            continue;
        }
        let (value, code) = match line.split_once(' ') {
            Some((vector, code)) => (vector, code),
            None => line.split_at(1),
        };
        let digits = value.strip_prefix('b').unwrap_or(value);
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(format!("`{line}` has leading zeros"));
        }
        if !changed.insert(code) || values.insert(code, value) == Some(value) {
            return Err(format!("`{line}` is a second change or none, at {now:?}"));
        }
    }
    if text.ends_with('\n') {
        Ok(())
    } else {
        Err("the last line is cut off".into())
    }
}
