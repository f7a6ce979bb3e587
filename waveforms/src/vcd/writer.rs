//! Writes a value change dump.
//!
//! Signals are named by their place in the list given at the start. Text is gathered and goes out a mebibyte at a time.

use std::io::{self, Write};

use crate::signal::{Scope, Signal};

/// Text gathered before it is written.
const BLOCK: usize = 1 << 20;

/// The eight digits of every byte.
static DIGITS: [[u8; 8]; 256] = digits();

/// Writes the header at once, then values as they come.
pub struct Writer<W: Write> {
    out: W,
    text: Vec<u8>,
    codes: Vec<Code>,
    at: Option<u64>,
    written: u64,
}

/// A signal's identifier with the line's end, ready to copy.
#[derive(Clone, Copy)]
struct Code {
    text: [u8; 6],
    len: u8,
    is_bit: bool,
}

impl<W: Write> Writer<W> {
    /// Writes the header: `about`, a comment each; the states' names; scopes and signals.
    pub fn new(out: W, about: &[String], signals: &[Signal]) -> io::Result<Self> {
        let codes: Vec<Code> = signals.iter().enumerate().map(|(n, s)| code(n, s.width)).collect();
        let mut writer = Writer {
            out,
            text: Vec::with_capacity(BLOCK + BLOCK / 4),
            codes,
            at: None,
            written: 0,
        };
        writer.line(&format!("$version warpwave {} $end", env!("CARGO_PKG_VERSION")))?;
        for line in about {
            writer.line(&format!("$comment {} $end", line.replace('$', "")))?;
        }
        for line in state_names(signals) {
            writer.line(&format!("$comment {line} $end"))?;
        }
        writer.line("$timescale 1 ns $end")?;
        writer.scopes(&Scope::tree(signals), signals)?;
        writer.line("$enddefinitions $end")?;
        Ok(writer)
    }

    fn scopes(&mut self, scope: &Scope, signals: &[Signal]) -> io::Result<()> {
        for &n in &scope.signals {
            let Signal { name, width, .. } = &signals[n];
            let code = self.codes[n];
            let code = str::from_utf8(&code.text[..code.len as usize - 1]).expect("codes are printable");
            let range = if *width == 1 {
                String::new()
            } else {
                format!(" [{}:0]", width - 1)
            };
            let line = format!("$var wire {width} {code} {name}{range} $end");
            self.line(&line)?;
        }
        for inner in &scope.scopes {
            self.line(&format!("$scope module {} $end", inner.name))?;
            self.scopes(inner, signals)?;
            self.line("$upscope $end")?;
        }
        Ok(())
    }

    /// The first values, of all signals. They hold from cycle `at` on.
    ///
    /// # Panics
    /// If it is not one value for each signal.
    pub fn dump(&mut self, at: u64, values: &[Option<u64>]) -> io::Result<()> {
        assert_eq!(values.len(), self.codes.len(), "a dump gives every signal its value");
        self.stamp(at);
        self.line("$dumpvars")?;
        for (signal, value) in values.iter().enumerate() {
            self.change(at, signal as u32, *value)?;
        }
        self.line("$end")
    }

    /// Signal number `signal` has this value from cycle `at` on; `None` is unknown.
    ///
    /// # Panics
    /// If `at` lies before the last change.
    #[inline]
    pub fn change(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()> {
        if self.at != Some(at) {
            self.stamp(at);
        }
        let code = self.codes[signal as usize];
        match value {
            Some(value) if code.is_bit => self.text.push(b'0' + (value & 1) as u8),
            None if code.is_bit => self.text.push(b'x'),
            Some(value) => self.number(value),
            None => self.text.extend_from_slice(b"bx "),
        }
        let end = self.text.len() + usize::from(code.len);
        self.text.extend_from_slice(&code.text);
        self.text.truncate(end);
        if self.text.len() < BLOCK { Ok(()) } else { self.spill() }
    }

    /// `b101 `: the digits from the highest one on, eight at a time.
    #[inline]
    fn number(&mut self, value: u64) {
        let digits = (64 - (value | 1).leading_zeros()) as usize;
        let aligned = (value << (64 - digits)).to_be_bytes();
        self.text.push(b'b');
        let end = self.text.len() + digits;
        for byte in &aligned[..digits.div_ceil(8)] {
            self.text.extend_from_slice(&DIGITS[usize::from(*byte)]);
        }
        self.text.truncate(end);
        self.text.push(b' ');
    }

    /// A new time: `#123`.
    fn stamp(&mut self, at: u64) {
        if let Some(last) = self.at {
            assert!(last < at, "cycle {at}: a value change after cycle {last}");
        }
        self.at = Some(at);
        let (mut digits, mut place, mut rest) = ([b'0'; 20], 20, at);
        while rest > 0 || place == 20 {
            place -= 1;
            digits[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.text.push(b'#');
        self.text.extend_from_slice(&digits[place..]);
        self.text.push(b'\n');
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.text.extend_from_slice(line.as_bytes());
        self.text.push(b'\n');
        if self.text.len() < BLOCK { Ok(()) } else { self.spill() }
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let result = self.out.write_all(&text);
        self.written += text.len() as u64;
        self.text = text;
        self.text.clear();
        result
    }

    /// The last cycle given so far.
    pub fn at(&self) -> Option<u64> {
        self.at
    }

    /// Bytes written or gathered so far.
    pub fn len(&self) -> u64 {
        self.written + self.text.len() as u64
    }

    /// Whether nothing was written: never, since there is a header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stamps the end, so that the last values are visible, and writes everything out.
    pub fn finish(&mut self, at: u64) -> io::Result<()> {
        if self.at.is_none_or(|last| last < at) {
            self.stamp(at);
        }
        self.flush()
    }

    /// Writes out what is gathered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.spill()?;
        self.out.flush()
    }
}

/// Printable characters, the lowest place first: 94 codes of one character, then of two.
fn code(n: usize, width: u32) -> Code {
    let (mut text, mut len, mut rest) = ([0; 6], 0, n);
    loop {
        text[len] = b'!' + (rest % 94) as u8;
        len += 1;
        if rest < 94 {
            break;
        }
        rest = rest / 94 - 1;
    }
    text[len] = b'\n';
    Code {
        text,
        len: len as u8 + 1,
        is_bit: width == 1,
    }
}

/// `states of NAME: 0 idle, 1 busy`, once for each pair of name and states.
fn state_names(signals: &[Signal]) -> Vec<String> {
    let mut seen: Vec<(&str, &[&str])> = Vec::new();
    for signal in signals {
        if let Some(states) = signal.states
            && !seen.contains(&(&signal.name, states))
        {
            seen.push((&signal.name, states));
        }
    }
    let line = |(name, states): &(&str, &[&str])| {
        let states: Vec<_> = states
            .iter()
            .enumerate()
            .map(|(n, state)| format!("{n} {state}"))
            .collect();
        format!("states of {name}: {}", states.join(", "))
    };
    seen.iter().map(line).collect()
}

const fn digits() -> [[u8; 8]; 256] {
    let mut table = [[b'0'; 8]; 256];
    let mut n = 0;
    while n < 256 * 8 {
        table[n / 8][n % 8] += ((n / 8) >> (7 - n % 8) & 1) as u8;
        n += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(name: &str, width: u32) -> Signal {
        Signal {
            scope: vec!["top".into(), "sm[0]".into()],
            name: name.into(),
            width,
            states: None,
        }
    }

    fn written(signals: &[Signal], write: impl FnOnce(&mut Writer<&mut Vec<u8>>) -> io::Result<()>) -> String {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &["about $this".into()], signals).expect("memory");
        write(&mut writer).expect("memory");
        String::from_utf8(file).expect("text")
    }

    #[test]
    fn whole_file_reads_as_the_format_says() {
        let mut state = signal("state", 2);
        state.states = Some(&["idle", "busy", "done"]);
        let text = written(&[signal("valid", 1), signal("pc", 32), state], |writer| {
            writer.dump(0, &[Some(0), None, Some(1)])?;
            writer.change(3, 0, Some(1))?;
            writer.change(3, 1, Some(0))?;
            writer.change(20, 1, Some(0x105))?;
            writer.change(21, 0, None)?;
            writer.finish(25)
        });
        let expected = "\
$version warpwave 0.1.0 $end
$comment about this $end
$comment states of state: 0 idle, 1 busy, 2 done $end
$timescale 1 ns $end
$scope module top $end
$scope module sm[0] $end
$var wire 1 ! valid $end
$var wire 32 \" pc [31:0] $end
$var wire 2 # state [1:0] $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
$dumpvars
0!
bx \"
b1 #
$end
#3
1!
b0 \"
#20
b100000101 \"
#21
x!
#25
";
        assert_eq!(text, expected);
    }

    #[test]
    fn every_width_of_number_is_written_as_the_standard_library_does() {
        for shift in 0..64 {
            for value in [1 << shift, u64::MAX >> shift, 0x9e37_79b9_7f4a_7c15 >> shift] {
                let text = written(&[signal("n", 64)], |writer| {
                    writer.change(0, 0, Some(value))?;
                    writer.flush()
                });
                assert!(text.ends_with(&format!("#0\nb{value:b} !\n")), "{text}");
            }
        }
    }

    #[test]
    fn codes_are_printable_distinct_and_short_first() {
        let codes: Vec<_> = (0..94 + 94 * 94 + 500)
            .map(|n| {
                let code = code(n, 1);
                code.text[..code.len as usize - 1].to_vec()
            })
            .collect();
        let distinct: std::collections::HashSet<_> = codes.iter().collect();
        assert_eq!(distinct.len(), codes.len());
        assert!(codes.iter().flatten().all(|c| (b'!'..=b'~').contains(c)));
        assert!(codes.is_sorted_by_key(|code| code.len()));
        assert_eq!((codes[93].len(), codes[94].len(), codes[94 + 94 * 94].len()), (1, 2, 3));
    }

    #[test]
    #[should_panic(expected = "cycle 4: a value change after cycle 5")]
    fn time_going_back_panics() {
        written(&[signal("n", 1)], |writer| {
            writer.change(5, 0, None)?;
            writer.change(4, 0, None)
        });
    }
}
