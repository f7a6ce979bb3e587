//! Writes a value change dump.
//!
//! It is written by hand for speed. The writer of the `vcd` crate takes one enum per bit of a vector; here a value is one word.
//!
//! A signal is named by its index in the list given at the start. Text is buffered and written in blocks of about 1 MiB. A block
//! ends with a whole line, so a file can be read if the run breaks off.

use std::io::{self, Write};

use super::TimeAxis;
use crate::signal::{Kind, Scope, Signal};
use crate::sink::Sink;

/// Size of a block of text, in bytes.
const BLOCK: usize = 1 << 20;

// Indices into the list of identifier codes.
const CLOCK: usize = 0;
const CYCLE: usize = 1;
const FIRST_SIGNAL: usize = 2;

/// The eight binary digits of every byte.
static DIGITS: [[u8; 8]; 256] = digits();

/// A VCD file or stream. The header is written when it is created.
pub struct VcdWriter<W: Write> {
    out: W,
    text: Vec<u8>,
    codes: Vec<IdCode>,
    axis: TimeAxis,
    /// The cycle of the last change.
    at: Option<u64>,
    /// Bytes written to `out`.
    written: u64,
}

/// The identifier code of a signal with the line end, ready to copy.
#[derive(Clone, Copy)]
struct IdCode {
    text: [u8; 6],
    len: u8,
    form: ValueForm,
    /// The digit of a missing value.
    undefined: u8,
}

/// The syntax of a value change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    Bit,
    Vector,
    Real,
}

impl<W: Write> VcdWriter<W> {
    /// Writes the header: `comments`, the names of states, the scopes and the signals. The clock is in the first scope.
    ///
    /// # Errors
    /// If `out` cannot be written, as in all other calls.
    pub fn new(out: W, comments: &[String], axis: TimeAxis, signals: &[Signal]) -> io::Result<Self> {
        let mut writer = VcdWriter {
            out,
            // Room for the line that crosses the size of a block.
            text: Vec::with_capacity(BLOCK + BLOCK / 4),
            codes: id_codes(signals),
            axis,
            at: None,
            written: 0,
        };
        writer.line(&format!("$version warpwave {} $end", env!("CARGO_PKG_VERSION")))?;
        writer.line(&format!("$comment {} $end", axis.description()))?;
        // A `$` could end the comment early.
        for line in comments {
            writer.line(&format!("$comment {} $end", line.replace('$', "")))?;
        }
        for line in state_names(signals) {
            writer.line(&format!("$comment {line} $end"))?;
        }
        writer.line(&format!("$timescale {} $end", axis.timescale()))?;
        for (n, scope) in Scope::tree(signals).scopes.iter().enumerate() {
            writer.scope(scope, signals, n == 0)?;
        }
        writer.line("$enddefinitions $end")?;
        Ok(writer)
    }

    fn scope(&mut self, scope: &Scope, signals: &[Signal], has_clock: bool) -> io::Result<()> {
        self.line(&format!("$scope module {} $end", scope.name))?;
        if has_clock {
            self.line("$var wire 1 ! clock $end")?;
            self.line("$var wire 48 \" cycle [47:0] $end")?;
        }
        for &n in &scope.signals {
            let Signal { name, kind, .. } = &signals[n];
            let code = self.codes[FIRST_SIGNAL + n];
            let code = str::from_utf8(&code.text[..code.len as usize - 1]).expect("codes are printable");
            let line = match (*kind, kind.width()) {
                (Kind::Real, _) => format!("$var real 64 {code} {name} $end"),
                (_, 1) => format!("$var wire 1 {code} {name} $end"),
                (_, width) => format!("$var wire {width} {code} {name} [{}:0] $end", width - 1),
            };
            self.line(&line)?;
        }
        for inner in &scope.scopes {
            self.scope(inner, signals, false)?;
        }
        self.line("$upscope $end")
    }

    /// Writes a change of a signal.
    ///
    /// # Panics
    /// If `at` is before the last change.
    #[inline]
    fn put(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()> {
        if self.at != Some(at) {
            self.advance(at)?;
        }
        self.value(FIRST_SIGNAL + signal as usize, value);
        if self.text.len() < BLOCK {
            Ok(())
        } else {
            self.write_block()
        }
    }

    #[inline]
    fn value(&mut self, index: usize, value: Option<u64>) {
        let code = self.codes[index];
        match (value, code.form) {
            (Some(value), ValueForm::Vector) => self.number(value),
            (Some(value), ValueForm::Bit) => self.text.push(b'0' + (value & 1) as u8),
            (Some(value), ValueForm::Real) => self.real(f64::from_bits(value)),
            // The syntax of a real has no digit for a missing value.
            (None, ValueForm::Real) => self.real(0.0),
            (None, ValueForm::Bit) => self.text.push(code.undefined),
            (None, ValueForm::Vector) => self.text.extend_from_slice(&[b'b', code.undefined, b' ']),
        }
        // A copy of fixed size is faster than one of `len` bytes.
        let end = self.text.len() + usize::from(code.len);
        self.text.extend_from_slice(&code.text);
        self.text.truncate(end);
    }

    #[cold]
    fn real(&mut self, value: f64) {
        self.text.extend_from_slice(format!("r{value} ").as_bytes());
    }

    /// Writes `b101 `: the binary digits without leading zeros, eight at a time.
    #[inline]
    fn number(&mut self, value: u64) {
        let digits = (64 - (value | 1).leading_zeros()) as usize;
        // The highest digit moves to the top, so that each byte gives its eight digits.
        let aligned = (value << (64 - digits)).to_be_bytes();
        self.text.push(b'b');
        let end = self.text.len() + digits;
        for byte in &aligned[..digits.div_ceil(8)] {
            self.text.extend_from_slice(&DIGITS[usize::from(*byte)]);
        }
        self.text.truncate(end);
        self.text.push(b' ');
    }

    /// Writes the clock edges up to the rising edge of cycle `at`.
    fn advance(&mut self, at: u64) -> io::Result<()> {
        if let Some(last) = self.at {
            assert!(last < at, "cycle {at}: a value change after cycle {last}");
            // A viewer needs every edge of the clock, also in cycles without a change.
            for cycle in last..at - 1 {
                self.fall(cycle);
                self.rise(cycle + 1);
                if self.text.len() >= BLOCK {
                    self.write_block()?;
                }
            }
            self.fall(at - 1);
        }
        self.rise(at);
        self.at = Some(at);
        Ok(())
    }

    fn rise(&mut self, cycle: u64) {
        self.time(self.axis.rise(cycle));
        self.value(CLOCK, Some(1));
        self.value(CYCLE, Some(cycle));
    }

    fn fall(&mut self, cycle: u64) {
        self.time(self.axis.fall(cycle));
        self.value(CLOCK, Some(0));
    }

    /// Writes a time, such as `#123`.
    fn time(&mut self, at: u64) {
        let (mut digits, mut first, mut rest) = ([b'0'; 20], 20, at);
        while rest > 0 || first == 20 {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.text.push(b'#');
        self.text.extend_from_slice(&digits[first..]);
        self.text.push(b'\n');
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.text.extend_from_slice(line.as_bytes());
        self.text.push(b'\n');
        if self.text.len() < BLOCK {
            Ok(())
        } else {
            self.write_block()
        }
    }

    #[cold]
    fn write_block(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let result = self.out.write_all(&text);
        self.written += text.len() as u64;
        self.text = text;
        self.text.clear();
        result
    }

    /// Writes the buffered text to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_block()?;
        self.out.flush()
    }
}

impl<W: Write + Send> Sink for VcdWriter<W> {
    /// # Panics
    /// If `values` does not have one value for each signal.
    fn begin(&mut self, at: u64, values: &[Option<u64>]) -> io::Result<()> {
        assert_eq!(
            values.len() + FIRST_SIGNAL,
            self.codes.len(),
            "a dump begins with a value of every signal"
        );
        self.at = Some(at);
        self.time(self.axis.rise(at));
        self.line("$dumpvars")?;
        self.value(CLOCK, Some(1));
        self.value(CYCLE, Some(at));
        for (signal, value) in values.iter().enumerate() {
            self.put(at, signal as u32, *value)?;
        }
        self.line("$end")
    }

    #[inline]
    fn change(&mut self, at: u64, signal: u32, value: Option<u64>) -> io::Result<()> {
        self.put(at, signal, value)
    }

    fn finish(&mut self, at: u64) -> io::Result<()> {
        // Viewers draw up to the last time. So the dump ends with a time after the last values.
        if let Some(last) = self.at
            && last < at
        {
            if last < at - 1 {
                self.advance(at - 1)?;
            }
            self.fall(at - 1);
            self.time(self.axis.rise(at));
            self.at = Some(at);
        }
        self.flush()
    }

    fn bytes(&self) -> u64 {
        self.written + self.text.len() as u64
    }

    /// Adds the text of cycles without a change: each has two times, two edges of the clock and a count of cycles.
    fn bytes_at(&self, at: u64) -> u64 {
        let digits = |n: u64| u64::from(n.checked_ilog10().unwrap_or(0)) + 1;
        let cycle_bits = u64::from(64 - (at | 1).leading_zeros());
        // Two lines `#TIME`, two of the clock (`1!`), and one of the count (`bDIGITS "`).
        let per_cycle = 2 * (digits(self.axis.rise(at)) + 2) + 2 * 3 + cycle_bits + 4;
        let cycles = self.at.map_or(0, |last| at.saturating_sub(last));
        self.bytes() + cycles * per_cycle
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        self.line(&format!("$comment {} $end", text.replace('$', "")))
    }
}

/// The codes of the clock, the count of cycles and all signals. Signals of instruction issue change most and get the shortest codes.
fn id_codes(signals: &[Signal]) -> Vec<IdCode> {
    let mut rank: Vec<usize> = (0..signals.len()).collect();
    // Stable, so the other signals keep their order.
    rank.sort_by_key(|&n| !signals[n].name.starts_with("issue"));
    let mut codes = vec![id_code(CLOCK, Kind::Bit); FIRST_SIGNAL + signals.len()];
    codes[CYCLE] = id_code(CYCLE, Kind::Vector(48));
    for (rank, n) in rank.into_iter().enumerate() {
        codes[FIRST_SIGNAL + n] = id_code(FIRST_SIGNAL + rank, signals[n].kind);
    }
    codes
}

/// Code number `n`: printable characters, the lowest digit first. There are 94 codes of one character, then codes of two.
fn id_code(n: usize, kind: Kind) -> IdCode {
    let (mut text, mut len, mut rest) = ([0; 6], 0, n);
    loop {
        text[len] = b'!' + (rest % 94) as u8;
        len += 1;
        if rest < 94 {
            break;
        }
        // Each length has codes of its own: 94 of one character, then 94 * 94 of two.
        rest = rest / 94 - 1;
    }
    text[len] = b'\n';
    IdCode {
        text,
        len: len as u8 + 1,
        form: match (kind, kind.width()) {
            (Kind::Real, _) => ValueForm::Real,
            (_, 1) => ValueForm::Bit,
            _ => ValueForm::Vector,
        },
        undefined: kind.undefined_digit(),
    }
}

/// Comments such as `states of NAME: 0 idle, 1 busy`, one for each pair of name and states.
fn state_names(signals: &[Signal]) -> Vec<String> {
    let mut seen: Vec<(&str, &[&str])> = Vec::new();
    for signal in signals {
        if let Some(states) = signal.kind.states()
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

/// The table [`DIGITS`].
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

    fn signal(name: &str, kind: Kind) -> Signal {
        Signal::new(&format!("top.sm[0].{name}"), kind)
    }

    fn written(
        axis: TimeAxis,
        signals: &[Signal],
        write: impl FnOnce(&mut VcdWriter<&mut Vec<u8>>) -> io::Result<()>,
    ) -> String {
        let mut file = Vec::new();
        let mut writer = VcdWriter::new(&mut file, &["about $this".into()], axis, signals).expect("memory");
        write(&mut writer).expect("memory");
        String::from_utf8(file).expect("text")
    }

    #[test]
    fn whole_file_follows_the_format() {
        let mut pc = signal("pc", Kind::Vector(32));
        pc.alias_scope = Some(["top".into(), "bus".into()].into());
        let state = Kind::State(&["idle", "busy", "done"]);
        let signals = [
            signal("valid", Kind::Bit),
            pc,
            signal("state", state),
            signal("row", Kind::Stored(4)),
            signal("ipc", Kind::Real),
            signal("issued", Kind::Bit),
        ];
        let text = written(TimeAxis::Cycles, &signals, |writer| {
            let half = 0.5f64.to_bits();
            writer.begin(2, &[Some(0), None, Some(1), None, Some(half), None])?;
            writer.change(4, 0, Some(1))?;
            writer.change(4, 1, Some(0x105))?;
            writer.change(5, 0, None)?;
            writer.change(5, 4, Some(0))?;
            writer.finish(7)
        });
        let expected = "\
$version warpwave 0.1.0 $end
$comment 10 time units are one cycle of the core clock: the ruler in ns shows cycles $end
$comment about this $end
$comment states of state: 0 idle, 1 busy, 2 done $end
$timescale 100 ps $end
$scope module top $end
$var wire 1 ! clock $end
$var wire 48 \" cycle [47:0] $end
$scope module sm[0] $end
$var wire 1 $ valid $end
$var wire 32 % pc [31:0] $end
$var wire 2 & state [1:0] $end
$var wire 4 ' row [3:0] $end
$var real 64 ( ipc $end
$var wire 1 # issued $end
$upscope $end
$scope module bus $end
$var wire 32 % pc [31:0] $end
$upscope $end
$upscope $end
$enddefinitions $end
#20
$dumpvars
1!
b10 \"
0$
bz %
b1 &
bx '
r0.5 (
z#
$end
#25
0!
#30
1!
b11 \"
#35
0!
#40
1!
b100 \"
1$
b100000101 %
#45
0!
#50
1!
b101 \"
z$
r0 (
#55
0!
#60
1!
b110 \"
#65
0!
#70
";
        assert_eq!(text, expected);
    }

    #[test]
    fn real_times_are_rounded_down_and_do_not_drift() {
        let axis = TimeAxis::Real { khz: 1_500_000 };
        assert_eq!(
            [0, 1, 2, 3, 3_000_000].map(|cycle| axis.rise(cycle)),
            [0, 666, 1333, 2000, 2_000_000_000]
        );
        assert_eq!([0, 1, 2].map(|cycle| axis.fall(cycle)), [333, 1000, 1666]);
    }

    #[test]
    fn numbers_of_every_width_match_the_standard_library() {
        for shift in 0..64 {
            for value in [1 << shift, u64::MAX >> shift, 0x9e37_79b9_7f4a_7c15 >> shift] {
                let text = written(TimeAxis::Cycles, &[signal("n", Kind::Vector(64))], |writer| {
                    writer.change(0, 0, Some(value))?;
                    writer.flush()
                });
                assert!(text.ends_with(&format!("\nb{value:b} #\n")), "{text}");
            }
        }
    }

    #[test]
    fn codes_are_printable_distinct_and_short_ones_come_first() {
        let codes: Vec<_> = (0..94 + 94 * 94 + 500)
            .map(|n| {
                let code = id_code(n, Kind::Bit);
                code.text[..code.len as usize - 1].to_vec()
            })
            .collect();
        let distinct: std::collections::HashSet<_> = codes.iter().collect();
        assert_eq!(distinct.len(), codes.len());
        assert!(codes.iter().flatten().all(|c| (b'!'..=b'~').contains(c)));
        assert!(codes.is_sorted_by_key(|code| code.len()));
        // 94 codes of one character, then 94 * 94 of two.
        let first_and_last = [93, 94, 94 + 94 * 94 - 1, 94 + 94 * 94].map(|n| codes[n].len());
        assert_eq!(first_and_last, [1, 2, 2, 3]);
    }

    #[test]
    #[should_panic(expected = "cycle 4: a value change after cycle 5")]
    fn change_before_the_last_one_panics() {
        written(TimeAxis::Cycles, &[signal("n", Kind::Bit)], |writer| {
            writer.change(5, 0, None)?;
            writer.change(4, 0, None)
        });
    }
}
