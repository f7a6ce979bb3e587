//! Reads a value change dump, strictly: for tests. Whatever the dialect ([`crate::vcd`]) does not promise is an error with its line.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// A dump, whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dump {
    /// The comments of the header.
    pub comments: Vec<String>,
    /// The timescale's number and unit.
    pub timescale: String,
    /// All signals, in the order of declaration.
    pub signals: Vec<Declared>,
    /// Second paths of signals, each with the signal's place.
    pub aliases: Vec<(String, usize)>,
    /// The time of the first values.
    pub start: u64,
    /// The last time.
    pub end: u64,
}

/// A signal and everything that it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Dotted path.
    pub path: String,
    /// Bits.
    pub width: u32,
    /// Whether it is a real number, whose values are the bits of an `f64`.
    pub is_real: bool,
    /// From which time on it had which value, the first value first; `None` is none: never written, or not driven.
    pub changes: Vec<(u64, Option<u64>)>,
}

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Line, from 1.
    pub line: usize,
    /// The finding.
    pub what: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ReadError {}

impl Dump {
    /// Reads the text of a dump.
    pub fn read(text: &str) -> Result<Dump, ReadError> {
        let mut reader = Reader::default();
        for (n, line) in text.split_inclusive('\n').enumerate() {
            let whole = line.strip_suffix('\n').ok_or_else(|| "the file is cut off".into());
            whole
                .and_then(|line| reader.line(line))
                .map_err(|what| ReadError { line: n + 1, what })?;
        }
        let line = text.lines().count();
        reader.finish().map_err(|what| ReadError { line, what })
    }

    /// The same with cycles for times, and without the clock and the count of its cycles.
    ///
    /// # Errors
    /// If the dump has no clock, or a signal changes while the clock does not rise.
    pub fn by_cycle(mut self) -> Result<Dump, String> {
        let place = |name: &str| {
            let found = self
                .signals
                .iter()
                .position(|s| s.path.matches('.').count() == 1 && s.path.ends_with(name));
            found.ok_or(format!("no signal {name}"))
        };
        let (clock, cycle) = (place(".clock")?, place(".cycle")?);
        assert_eq!((clock, cycle), (0, 1), "the clock and its cycles come first");
        let counts: HashMap<u64, u64> = (self.signals[cycle].changes.iter())
            .filter_map(|&(at, count)| Some((at, count?)))
            .collect();
        let end = self.signals[cycle]
            .changes
            .last()
            .and_then(|last| last.1)
            .map_or(0, |last| last + 1);
        (self.start, self.end) = (
            counts[&self.start],
            if self.end == self.start {
                counts[&self.start]
            } else {
                end
            },
        );
        self.signals.drain(..2);
        self.aliases.iter_mut().for_each(|(_, place)| *place -= 2);
        for signal in &mut self.signals {
            for (at, _) in &mut signal.changes {
                *at = *counts
                    .get(at)
                    .ok_or(format!("{} changes at {at}, off the clock", signal.path))?;
            }
        }
        Ok(self)
    }

    /// The signal of this path, the first or an alias.
    pub fn signal(&self, path: &str) -> Option<&Declared> {
        let alias = || self.aliases.iter().find(|(alias, _)| alias == path);
        let first = self.signals.iter().find(|signal| signal.path == path);
        first.or_else(|| alias().map(|(_, place)| &self.signals[*place]))
    }
}

impl Declared {
    /// Its value at a time; none before the first.
    pub fn at(&self, time: u64) -> Option<u64> {
        let after = self.changes.partition_point(|&(at, _)| at <= time);
        after.checked_sub(1).and_then(|last| self.changes[last].1)
    }
}

/// Where in the file the reader is.
#[derive(Default, PartialEq, Eq, Debug, Clone, Copy)]
enum Place {
    #[default]
    Header,
    BeforeDump,
    Dump,
    Changes,
}

#[derive(Default)]
struct Reader {
    place: Place,
    comments: Vec<String>,
    timescale: Option<String>,
    scope: Vec<String>,
    scopes: HashSet<String>,
    signals: Vec<Declared>,
    aliases: Vec<(String, usize)>,
    paths: HashSet<String>,
    codes: HashMap<String, usize>,
    now: Option<u64>,
    start: u64,
    changed_now: usize,
}

type Finding = Result<(), String>;

impl Reader {
    fn line(&mut self, line: &str) -> Finding {
        match (self.place, line) {
            (Place::Header, line) => self.header(line),
            (Place::BeforeDump, "$dumpvars") if self.now.is_some() => {
                self.place = Place::Dump;
                Ok(())
            }
            (Place::BeforeDump, line) if line.starts_with('#') && self.now.is_none() => self.time(line),
            (Place::BeforeDump, _) => Err("a time and $dumpvars must follow the header".into()),
            (Place::Dump, "$end") => self.dumped(),
            (Place::Dump, line) if line.starts_with('#') => Err("$dumpvars is not closed".into()),
            (Place::Changes, line) if line.starts_with('#') => self.time(line),
            (Place::Dump | Place::Changes, line) => self.change(line),
        }
    }

    fn header(&mut self, line: &str) -> Finding {
        let words: Vec<&str> = line.split(' ').collect();
        let [keyword, inner @ .., "$end"] = &words[..] else {
            return Err(format!("a header line ends in $end, unlike `{line}`"));
        };
        match (*keyword, inner) {
            ("$version", [_, ..]) => {}
            ("$comment", text) => self.comments.push(text.join(" ")),
            (
                "$timescale",
                [
                    number @ ("1" | "10" | "100"),
                    unit @ ("s" | "ms" | "us" | "ns" | "ps" | "fs"),
                ],
            ) => {
                self.timescale = Some(format!("{number} {unit}"));
            }
            ("$scope", ["module", name]) => self.enter(name)?,
            ("$upscope", []) => {
                self.scope.pop().ok_or("a scope is left that was not entered")?;
            }
            ("$var", ["real", "64", code, name]) => self.declare_real(code, name)?,
            ("$var", ["wire", width, code, name]) => self.declare(width, code, name, None)?,
            ("$var", ["wire", width, code, name, range]) => self.declare(width, code, name, Some(range))?,
            ("$enddefinitions", []) => self.defined()?,
            _ => return Err(format!("not a header line: `{line}`")),
        }
        Ok(())
    }

    fn enter(&mut self, name: &str) -> Finding {
        self.scope.push(name.into());
        let path = self.scope.join(".");
        if self.scopes.insert(path.clone()) {
            Ok(())
        } else {
            Err(format!("scope {path} is opened twice"))
        }
    }

    fn declare(&mut self, width: &str, code: &str, name: &str, range: Option<&str>) -> Finding {
        let path = format!("{}.{name}", self.scope.join("."));
        let bits = width.parse().ok().filter(|bits| (1..=64).contains(bits));
        let bits: u32 = bits.ok_or(format!("{path}: width {width}"))?;
        let expected = (bits > 1).then(|| format!("[{}:0]", bits - 1));
        if range != expected.as_deref() {
            return Err(format!("{path}: range {range:?} of {bits} bits"));
        }
        self.add(path, code, bits, false)
    }

    fn declare_real(&mut self, code: &str, name: &str) -> Finding {
        let path = format!("{}.{name}", self.scope.join("."));
        self.add(path, code, 64, true)
    }

    /// A signal, or a second path of one that is like it.
    fn add(&mut self, path: String, code: &str, width: u32, is_real: bool) -> Finding {
        if !self.paths.insert(path.clone()) {
            return Err(format!("{path} is declared twice"));
        }
        if let Some(&place) = self.codes.get(code) {
            let other = &self.signals[place];
            if (other.width, other.is_real) != (width, is_real) || name(&other.path) != name(&path) {
                return Err(format!("{path}: code `{code}` is taken"));
            }
            self.aliases.push((path, place));
            return Ok(());
        }
        self.codes.insert(code.into(), self.signals.len());
        self.signals.push(Declared {
            path,
            width,
            is_real,
            changes: Vec::new(),
        });
        Ok(())
    }

    fn defined(&mut self) -> Finding {
        if let Some(open) = self.scope.last() {
            return Err(format!("scope {open} is not closed"));
        }
        if self.timescale.is_none() || self.signals.is_empty() {
            return Err("a header needs a timescale and at least one signal".into());
        }
        self.place = Place::BeforeDump;
        Ok(())
    }

    fn time(&mut self, line: &str) -> Finding {
        let digits = &line[1..];
        let at = digits.parse::<u64>().ok().filter(|at| at.to_string() == digits);
        let at = at.ok_or(format!("`{line}` is not a time"))?;
        match self.now {
            None => self.start = at,
            Some(now) if at <= now => return Err(format!("time {at} after {now}")),
            Some(_) if self.place == Place::Changes && self.changed_now == 0 => {
                return Err("a time without a change".into());
            }
            Some(_) => {}
        }
        (self.now, self.changed_now) = (Some(at), 0);
        Ok(())
    }

    fn dumped(&mut self) -> Finding {
        match self.signals.iter().find(|signal| signal.changes.is_empty()) {
            Some(signal) => Err(format!("{}: no first value", signal.path)),
            None => {
                self.place = Place::Changes;
                Ok(())
            }
        }
    }

    fn change(&mut self, line: &str) -> Finding {
        let (form, digits, code) = match line.split_at_checked(1).ok_or("an empty line")? {
            (form @ ("b" | "r"), rest) => {
                let (digits, code) = rest.split_once(' ').ok_or(format!("no space in `{line}`"))?;
                (form, digits, code)
            }
            (digit, code) => ("", digit, code),
        };
        let place = *self.codes.get(code).ok_or(format!("unknown code `{code}`"))?;
        let signal = &mut self.signals[place];
        let value = match form {
            "r" => real(digits),
            _ => value(digits, signal.width),
        };
        let value = value.map_err(|what| format!("{}: {what}", signal.path))?;
        let expected = match (signal.is_real, signal.width) {
            (true, _) => "r",
            (false, 1) => "",
            (false, _) => "b",
        };
        if form != expected {
            return Err(format!("{}: `{line}` for {} bits", signal.path, signal.width));
        }
        let now = self.now.expect("a change comes after a time");
        match signal.changes.last() {
            Some(&(at, _)) if at == now => return Err(format!("{}: changes twice at {now}", signal.path)),
            Some(&(_, last)) if last == value => return Err(format!("{}: a change without a change", signal.path)),
            _ => signal.changes.push((now, value)),
        }
        self.changed_now += 1;
        Ok(())
    }

    fn finish(self) -> Result<Dump, String> {
        match (self.place, self.timescale, self.now) {
            (Place::Changes, Some(timescale), Some(end)) => Ok(Dump {
                comments: self.comments,
                timescale,
                signals: self.signals,
                aliases: self.aliases,
                start: self.start,
                end,
            }),
            _ => Err("the file ends before its first values are complete".into()),
        }
    }
}

/// The last name of a path.
fn name(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}

/// A real number, written as shortly as it can be.
fn real(digits: &str) -> Result<Option<u64>, String> {
    let value: Option<f64> = digits.parse().ok();
    let value = value.filter(|value| value.to_string() == digits);
    value
        .map(|value| Some(value.to_bits()))
        .ok_or(format!("`{digits}` is no real number"))
}

/// `x` or `z`, or binary digits that start with a one unless they are the number zero.
fn value(digits: &str, width: u32) -> Result<Option<u64>, String> {
    if digits == "x" || digits == "z" {
        return Ok(None);
    }
    let value = u64::from_str_radix(digits, 2).map_err(|_| format!("`{digits}` is no binary number of 64 bits"))?;
    if format!("{value:b}") != digits {
        return Err(format!("`{digits}` has leading zeros or a sign"));
    }
    if width < 64 && value >> width != 0 {
        return Err(format!("`{digits}` has more than {width} bits"));
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
$version warpwave 0.1.0 $end
$comment one two $end
$timescale 1 ns $end
$scope module top $end
$var wire 1 ! valid $end
$scope module sm[0] $end
$var wire 8 \" pc [7:0] $end
$upscope $end
$upscope $end
$enddefinitions $end
#5
$dumpvars
0!
bx \"
$end
#7
1!
b101 \"
#9
";

    #[test]
    fn good_file_is_read_whole() {
        let dump = Dump::read(GOOD).expect("a good file");
        assert_eq!(
            (dump.start, dump.end, &dump.comments[0][..], &dump.timescale[..]),
            (5, 9, "one two", "1 ns")
        );
        let pc = dump.signal("top.sm[0].pc").expect("declared");
        assert_eq!(pc.changes, [(5, None), (7, Some(5))]);
        assert_eq!(
            [4, 5, 6, 7, 100].map(|cycle| pc.at(cycle)),
            [None, None, None, Some(5), Some(5)]
        );
    }

    /// What other readers let pass or die of, one change to the good file each, and what we say.
    #[test]
    fn every_odd_file_is_refused_with_its_line() {
        let odd = [
            ("1!\n", "1?\n", "line 17: unknown code `?`"),
            (
                "b101 ",
                "b101010101 ",
                "line 18: top.sm[0].pc: `101010101` has more than 8 bits",
            ),
            (
                "b101 ",
                "b12 ",
                "line 18: top.sm[0].pc: `12` is no binary number of 64 bits",
            ),
            (
                "b101 ",
                "b0101 ",
                "line 18: top.sm[0].pc: `0101` has leading zeros or a sign",
            ),
            ("b101 \"", "b101\"", "line 18: no space in `b101\"`"),
            ("#9", "#7", "line 19: time 7 after 7"),
            ("#9", "#3", "line 19: time 3 after 7"),
            ("#9", "#08", "line 19: `#08` is not a time"),
            ("#9\n", "#9\n#10\n", "line 20: a time without a change"),
            ("wire 8 \"", "wire 8 !", "line 7: top.sm[0].pc: code `!` is taken"),
            (
                "$upscope $end\n$upscope $end\n",
                "$upscope $end\n",
                "line 9: scope top is not closed",
            ),
            (
                "$enddef",
                "$upscope $end\n$enddef",
                "line 10: a scope is left that was not entered",
            ),
            (
                "pc [",
                "p c [",
                "line 7: not a header line: `$var wire 8 \" p c [7:0] $end`",
            ),
            (
                "[7:0]",
                "[8:0]",
                "line 7: top.sm[0].pc: range Some(\"[8:0]\") of 8 bits",
            ),
            (
                "$enddefinitions $end\n",
                "",
                "line 10: a header line ends in $end, unlike `#5`",
            ),
            ("bx \"\n", "", "line 14: top.sm[0].pc: no first value"),
            ("\n$end\n", "\n", "line 15: $dumpvars is not closed"),
            ("1!\n", "b1 !\n", "line 17: top.valid: `b1 !` for 1 bits"),
            ("b101 \"", "1\"", "line 18: top.sm[0].pc: `1\"` for 8 bits"),
            ("1!\n", "0!\n", "line 17: top.valid: a change without a change"),
            ("1!\n", "1!\n0!\n", "line 18: top.valid: changes twice at 7"),
            ("1 ns", "3 ns", "line 3: not a header line: `$timescale 3 ns $end`"),
            (
                "$timescale 1 ns $end\n",
                "",
                "line 9: a header needs a timescale and at least one signal",
            ),
            (
                "$dumpvars",
                "1!",
                "line 12: a time and $dumpvars must follow the header",
            ),
            (
                "module sm[0]",
                "module x y",
                "line 6: not a header line: `$scope module x y $end`",
            ),
        ];
        for (from, to, expected) in odd {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from:?} is not in the file");
            let error = Dump::read(&text).expect_err(expected);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn file_cut_anywhere_in_a_line_or_before_its_first_values_is_refused() {
        let complete = GOOD.find("#7").expect("there");
        for end in 0..GOOD.len() {
            let whole_line = GOOD[..end].ends_with('\n');
            assert_eq!(
                Dump::read(&GOOD[..end]).is_ok(),
                whole_line && end >= complete,
                "cut at {end}"
            );
        }
    }
}
