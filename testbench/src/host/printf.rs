//! Formats text as `printf` of C does: flags, width, precision, and every conversion but `%n`.

/// An argument: its bits, and the string at that address, if there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// The bits. A 32-bit argument is zero-extended.
    pub bits: u64,
    /// The string at address `bits`.
    pub text: Option<Vec<u8>>,
}

/// A conversion specification: flags, width, precision and length.
#[derive(Clone, Copy, Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Number of `l` modifiers (`z`, `j`, `t` count as one each) minus the number of `h`.
    length: i32,
}

/// Formats the arguments. A missing argument is zero.
///
/// ```
/// use warpwave::host::printf::{Value, formatted};
/// let number = |bits| Value { bits, text: None };
/// let values = [number(-7i32 as u32 as u64), number(2.5f64.to_bits()), number(255)];
/// assert_eq!(formatted(b"[%5d] %.3e %#x%%", &values), "[   -7] 2.500e+00 0xff%");
/// ```
pub fn formatted(format: &[u8], values: &[Value]) -> String {
    let mut out = Vec::new();
    let mut values = values.iter();
    let mut rest = format;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'%' {
            // The specification ends with its conversion letter. An incomplete one prints nothing.
            rest = one(rest, &mut values, &mut out);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Formats one conversion. `format` begins after its `%`. Returns the rest of the format.
fn one<'f>(format: &'f [u8], values: &mut std::slice::Iter<'_, Value>, out: &mut Vec<u8>) -> &'f [u8] {
    let mut conversion = Conversion::default();
    let mut in_precision = false;
    for (at, &byte) in format.iter().enumerate() {
        match byte {
            b'-' => conversion.left = true,
            b'+' => conversion.plus = true,
            b' ' => conversion.space = true,
            b'#' => conversion.alternate = true,
            // A 0 after another digit belongs to the width.
            b'0' if !in_precision && conversion.width == 0 => conversion.zeros = true,
            b'.' => {
                in_precision = true;
                conversion.precision = Some(0);
            }
            b'0'..=b'9' if in_precision => {
                let digits = conversion.precision.unwrap_or(0);
                // The bound keeps a format from allocating all host memory. It applies to widths too.
                conversion.precision = Some((10 * digits + usize::from(byte - b'0')).min(9999));
            }
            b'0'..=b'9' => conversion.width = (10 * conversion.width + usize::from(byte - b'0')).min(9999),
            b'*' => conversion.take_number(in_precision, values.next()),
            b'l' | b'z' | b'j' | b't' => conversion.length += 1,
            b'h' => conversion.length -= 1,
            // `long double` is `double` on a GPU.
            b'L' => {}
            b'%' => {
                out.push(b'%');
                return &format[at + 1..];
            }
            kind => {
                let none = Value { bits: 0, text: None };
                out.extend(conversion.text(kind, values.next().unwrap_or(&none)));
                return &format[at + 1..];
            }
        }
    }
    &[]
}

impl Conversion {
    /// Takes the width or the precision from an argument, for `*`.
    fn take_number(&mut self, in_precision: bool, value: Option<&Value>) {
        let number = value.map_or(0, |value| value.bits as u32 as i32);
        let size = (number.unsigned_abs() as usize).min(9999);
        if in_precision {
            // C: a negative precision counts as none, and a negative width means the flag `-`.
            self.precision = (number >= 0).then_some(size);
        } else {
            self.left |= number < 0;
            self.width = size;
        }
    }

    fn text(self, kind: u8, value: &Value) -> Vec<u8> {
        match kind {
            b'd' | b'i' => {
                let number = self.signed(value.bits);
                let sign = if number < 0 { "-" } else { self.positive_sign() };
                self.integer(sign, number.unsigned_abs().to_string())
            }
            b'u' => self.integer("", self.unsigned(value.bits).to_string()),
            b'o' => self.octal(self.unsigned(value.bits)),
            b'x' => self.hexadecimal(self.unsigned(value.bits)),
            b'X' => self.hexadecimal(self.unsigned(value.bits)).to_ascii_uppercase(),
            // CUDA leaves the form to the host's C library. glibc: `(nil)`, or `%#lx`.
            b'p' if value.bits == 0 => self.padded("", b"(nil)", false),
            b'p' => {
                let alternate = Conversion {
                    alternate: true,
                    ..self
                };
                alternate.hexadecimal(value.bits)
            }
            b'c' => self.padded("", &[value.bits as u8], false),
            b's' => {
                let text = value.text.as_deref().unwrap_or(b"(null)");
                let end = self.precision.map_or(text.len(), |most| most.min(text.len()));
                self.padded("", &text[..end], false)
            }
            _ => self.float(kind, f64::from_bits(value.bits)),
        }
    }

    /// Formats `%x`. The alternate form (`#`) has a prefix, which 0 lacks.
    fn hexadecimal(self, number: u64) -> Vec<u8> {
        let prefix = if self.alternate && number != 0 { "0x" } else { "" };
        self.integer(prefix, format!("{number:x}"))
    }

    /// Formats `%o`. The alternate form (`#`) begins with a 0: C raises the precision for it if necessary.
    fn octal(mut self, number: u64) -> Vec<u8> {
        let digits = format!("{number:o}");
        let zeros = self.precision.unwrap_or(1).saturating_sub(digits.len());
        if !self.alternate || zeros > 0 {
            return self.integer("", digits);
        }
        if number == 0 {
            self.precision = self.precision.map(|_| 1);
            return self.integer("", digits);
        }
        self.integer("", format!("0{digits}"))
    }

    fn positive_sign(self) -> &'static str {
        match (self.plus, self.space) {
            (true, _) => "+",
            (_, true) => " ",
            _ => "",
        }
    }

    fn signed(self, bits: u64) -> i64 {
        match self.length {
            1.. => bits as i64,
            0 => (bits as i32).into(),
            -1 => (bits as i16).into(),
            _ => (bits as i8).into(),
        }
    }

    fn unsigned(self, bits: u64) -> u64 {
        match self.length {
            1.. => bits,
            0 => (bits as u32).into(),
            -1 => (bits as u16).into(),
            _ => (bits as u8).into(),
        }
    }

    fn integer(self, sign: &str, digits: String) -> Vec<u8> {
        let least = self.precision.unwrap_or(1);
        let digits = if self.precision == Some(0) && digits == "0" {
            String::new()
        } else {
            digits
        };
        let digits = format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
        // C: with a precision, the flag `0` has no effect on integers.
        self.padded(sign, digits.as_bytes(), self.precision.is_none())
    }

    fn float(self, kind: u8, value: f64) -> Vec<u8> {
        let sign = if value.is_sign_negative() && !value.is_nan() {
            "-"
        } else {
            self.positive_sign()
        };
        let magnitude = value.abs();
        let precision = self.precision.unwrap_or(6);
        let (prefix, text) = match kind.to_ascii_lowercase() {
            _ if value.is_nan() => ("", "nan".to_owned()),
            _ if value.is_infinite() => ("", "inf".to_owned()),
            b'f' => ("", self.pointed(format!("{magnitude:.precision$}"))),
            b'e' => ("", self.pointed(with_exponent(magnitude, precision))),
            b'g' => ("", self.pointed(self.shorter(magnitude, precision.max(1)))),
            // The flag `0` pads between the prefix and the digits.
            b'a' => ("0x", self.pointed(hexadecimal_float(magnitude, self.precision))),
            _ => ("", String::new()),
        };
        // `inf` and `nan` take blanks, even with the flag `0`.
        let padded = self.padded(&format!("{sign}{prefix}"), text.as_bytes(), value.is_finite());
        match kind.is_ascii_uppercase() {
            true => padded.to_ascii_uppercase(),
            false => padded,
        }
    }

    /// Adds the decimal point that the alternate form (`#`) has even without digits after it.
    fn pointed(self, text: String) -> String {
        if !self.alternate || text.contains('.') {
            return text;
        }
        let at = text.find(['e', 'p']).unwrap_or(text.len());
        format!("{}.{}", &text[..at], &text[at..])
    }

    /// Formats `%g`: with an exponent if it is below -4 or at least `precision`, and without trailing zeros.
    fn shorter(self, magnitude: f64, precision: usize) -> String {
        // The exponent after rounding decides, as C requires: 999999.5 prints as 1e+06.
        let scientific = with_exponent(magnitude, precision - 1);
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let trimmed = |digits: &str| match digits.contains('.') && !self.alternate {
            true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => digits.to_owned(),
        };
        if exponent < -4 || exponent >= precision as i32 {
            let sign = if exponent < 0 { '-' } else { '+' };
            return format!("{}e{sign}{:02}", trimmed(digits), exponent.abs());
        }
        let places = (precision as i32 - 1 - exponent) as usize;
        trimmed(&format!("{magnitude:.places$}"))
    }

    /// Pads to the width: with blanks on either side, or with zeros after the sign.
    fn padded(self, sign: &str, text: &[u8], zeros: bool) -> Vec<u8> {
        let missing = self.width.saturating_sub(sign.len() + text.len());
        let (before, between, behind) = match (self.left, self.zeros && zeros) {
            (true, _) => (0, 0, missing),
            (_, true) => (0, missing, 0),
            _ => (missing, 0, 0),
        };
        let mut out = vec![b' '; before];
        out.extend(sign.bytes());
        out.extend(std::iter::repeat_n(b'0', between));
        out.extend(text);
        out.extend(std::iter::repeat_n(b' ', behind));
        out
    }
}

/// Formats as `1.5e+02`, with at least two digits of exponent.
fn with_exponent(magnitude: f64, precision: usize) -> String {
    let text = format!("{magnitude:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Hexadecimal digits of the fraction of a double.
const FRACTION_DIGITS: usize = 13;

/// Formats as `1.8p+1` (`%a` without its prefix). Without a precision, all digits but zeros at the end.
fn hexadecimal_float(magnitude: f64, precision: Option<usize>) -> String {
    let bits = magnitude.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (first, exponent) = match (exponent, fraction) {
        (0, 0) => (0u64, 0),
        // Subnormal numbers have no leading 1.
        (0, _) => (0, -1022),
        _ => (1, exponent - 1023),
    };
    let significand = first << 52 | fraction;
    let digits = precision.unwrap_or(FRACTION_DIGITS).min(FRACTION_DIGITS);
    let dropped = 4 * (FRACTION_DIGITS - digits) as u32;
    // To the nearest, ties to even. A carry may make the first digit 2, as in glibc.
    let half = (1u64 << dropped) >> 1;
    let odd = significand >> dropped & 1;
    let rounded = (significand + half - u64::from(half > 0 && odd == 0)) >> dropped;
    let (first, rest) = (rounded >> (4 * digits), rounded & ((1 << (4 * digits)) - 1));
    let digits = match precision {
        None => format!("{rest:013x}").trim_end_matches('0').to_owned(),
        Some(0) => String::new(),
        // Digits beyond those of a double are zeros.
        Some(precision) => format!("{rest:0digits$x}{}", "0".repeat(precision - digits)),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("{first}{point}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bits: u64) -> Value {
        Value { bits, text: None }
    }

    fn float(value: f64) -> Value {
        number(value.to_bits())
    }

    /// The expected text is the output of glibc's `printf`.
    #[test]
    fn conversions_are_those_of_c() {
        let word = |value: i32| number(value as u32 as u64);
        let cases: [(&str, &[Value], &str); 27] = [
            ("%d %i", &[word(-1), word(i32::MIN)], "-1 -2147483648"),
            (
                "%u %x %X %o",
                &[word(-1), word(255), word(255), word(8)],
                "4294967295 ff FF 10",
            ),
            (
                "%lld %llu",
                &[number(u64::MAX), number(u64::MAX)],
                "-1 18446744073709551615",
            ),
            ("%hhd %hu", &[word(200), word(-1)], "-56 65535"),
            (
                "[%5d|%-5d|%05d|%+d|% d]",
                &[word(42), word(42), word(42), word(42), word(42)],
                "[   42|42   |00042|+42| 42]",
            ),
            ("%.3d %.0d|%5.3d", &[word(7), word(0), word(-7)], "007 | -007"),
            (
                "%*d|%-*d|%.*f",
                &[word(4), word(7), word(4), word(7), word(1), float(2.25)],
                "   7|7   |2.2",
            ),
            ("%#x %#o", &[word(31), word(8)], "0x1f 010"),
            (
                "%#x|%#X|%#o|%#.0o|%#.0x|%#5x",
                &[(); 6].map(|()| word(0)),
                "0|0|0|0||    0",
            ),
            (
                "%#05x|%#X|%#.3o|%#.2o|%#o",
                &[word(255), word(255), word(8), word(8), word(8)],
                "0x0ff|0XFF|010|010|010",
            ),
            ("%c%c", &[word(72), word(105)], "Hi"),
            (
                "%f %.2f %F",
                &[float(0.1), float(2.675), float(f64::INFINITY)],
                "0.100000 2.67 INF",
            ),
            (
                "%08.3f|%-8.1f|%+.1f",
                &[float(-1.23456), float(2.0), float(0.05)],
                "-001.235|2.0     |+0.1",
            ),
            (
                "%e %.0e %E",
                &[float(12345.678), float(5e-324), float(0.0)],
                "1.234568e+04 5e-324 0.000000E+00",
            ),
            (
                "%g %g %g %g",
                &[float(100000.0), float(1e6), float(0.0001), float(0.00001)],
                "100000 1e+06 0.0001 1e-05",
            ),
            (
                "%g %.3g %#g %G",
                &[float(0.5), float(1234.5), float(1.0), float(1e-10)],
                "0.5 1.23e+03 1.00000 1E-10",
            ),
            ("%a %a", &[float(3.0), float(0.0)], "0x1.8p+1 0x0p+0"),
            (
                "%.3a %.0a %.0a %.1a %.15a %.2a",
                &[
                    float(3.0),
                    float(1.5),
                    float(2.5),
                    float(1.99),
                    float(0.1),
                    float(5e-324),
                ],
                "0x1.800p+1 0x2p+0 0x1p+1 0x2.0p+0 0x1.999999999999a00p-4 0x0.00p-1022",
            ),
            (
                "%.1a %.1a %.1a %.0a %.2a",
                &[
                    float(1.03125),
                    float(1.09375),
                    float(1.15625),
                    float(15.96875),
                    float(0.0),
                ],
                "0x1.0p+0 0x1.2p+0 0x1.2p+0 0x2p+3 0x0.00p+0",
            ),
            (
                "%010a|%12a|%A|%#.0a|%#a|%#.0f|%#.0e",
                &[
                    float(1.0),
                    float(-1.0),
                    float(255.5),
                    float(1.0),
                    float(1.0),
                    float(1.0),
                    float(1.0),
                ],
                "0x00001p+0|     -0x1p+0|0X1.FFP+7|0x1.p+0|0x1.p+0|1.|1.e+00",
            ),
            (
                "%p|%8p|%-8p|%018p",
                &[number(0), number(0), number(0), number(0x7f00)],
                "(nil)|   (nil)|(nil)   |0x0000000000007f00",
            ),
            ("%#g %#.0g", &[float(1.0), float(1.0)], "1.00000 1."),
            ("%f %5.1f", &[float(f64::NAN), float(-f64::INFINITY)], "nan  -inf"),
            ("100%% %p", &[number(0x7f00)], "100% 0x7f00"),
            ("%s|", &[number(0)], "(null)|"),
            ("%d", &[], "0"),
            ("broken %", &[], "broken "),
        ];
        for (format, values, text) in cases {
            assert_eq!(formatted(format.as_bytes(), values), text, "{format}");
        }
        let text = Value {
            bits: 1,
            text: Some(b"warp".to_vec()),
        };
        let texts = [text.clone(), text.clone(), text];
        assert_eq!(formatted(b"%s|%6s|%-6.2s|", &texts), "warp|  warp|wa    |");
    }
}
