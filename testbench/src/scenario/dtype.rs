//! Element types of buffers and arguments, and the conversion of numbers from and to bytes.

use std::fmt;

use half::{bf16, f16};
use warpwave_isa::exec::bulk::Element;

/// An element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each is the type of that name")]
pub enum Dtype {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

/// A number in a scenario.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// An integer.
    Int(i128),
    /// Any other number.
    Float(f64),
}

impl Dtype {
    /// The type of a tensor's elements, for tensor maps.
    pub fn element(self) -> Element {
        match self {
            // Tensor maps have no signed types of 8 or 16 bits. A copy moves bits, so the sign does not matter.
            Dtype::I8 | Dtype::U8 => Element::U8,
            Dtype::I16 | Dtype::U16 => Element::U16,
            Dtype::I32 => Element::S32,
            Dtype::U32 => Element::U32,
            Dtype::I64 => Element::S64,
            Dtype::U64 => Element::U64,
            Dtype::F16 => Element::F16,
            Dtype::Bf16 => Element::Bf16,
            Dtype::F32 => Element::F32,
            Dtype::F64 => Element::F64,
        }
    }

    /// Every type.
    pub const ALL: [Dtype; 12] = [
        Dtype::I8,
        Dtype::U8,
        Dtype::I16,
        Dtype::U16,
        Dtype::I32,
        Dtype::U32,
        Dtype::I64,
        Dtype::U64,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
    ];

    /// The type of this name.
    pub fn of_name(name: &str) -> Option<Dtype> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            Dtype::I8 | Dtype::U8 => 1,
            Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::I32 | Dtype::U32 | Dtype::F32 => 4,
            Dtype::I64 | Dtype::U64 | Dtype::F64 => 8,
        }
    }

    /// The name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::I8 => "i8",
            Dtype::U8 => "u8",
            Dtype::I16 => "i16",
            Dtype::U16 => "u16",
            Dtype::I32 => "i32",
            Dtype::U32 => "u32",
            Dtype::I64 => "i64",
            Dtype::U64 => "u64",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
        }
    }

    /// True for a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64)
    }

    /// The minimum and the maximum of an integer type.
    fn range(self) -> (i128, i128) {
        let bits = 8 * self.bytes() as u32;
        match self {
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        }
    }

    /// The minimum and the maximum finite number.
    pub(super) fn bounds(self) -> (f64, f64) {
        let greatest = match self {
            Dtype::F16 => f16::MAX.to_f64(),
            Dtype::Bf16 => bf16::MAX.to_f64(),
            Dtype::F32 => f64::from(f32::MAX),
            Dtype::F64 => f64::MAX,
            _ => {
                let (least, greatest) = self.range();
                return (least as f64, greatest as f64);
            }
        };
        (-greatest, greatest)
    }

    /// Appends one element. Returns false if the type cannot represent the number, or would round a finite one to infinity.
    ///
    /// ```
    /// use warpwave::scenario::dtype::{Dtype, Number};
    /// let mut bytes = Vec::new();
    /// assert!(Dtype::U16.append(&mut bytes, Number::Int(258)));
    /// assert!(!Dtype::U16.append(&mut bytes, Number::Int(-1)));
    /// assert_eq!(bytes, [2, 1]);
    /// ```
    #[must_use]
    pub fn append(self, to: &mut Vec<u8>, number: Number) -> bool {
        if self.is_float() {
            let at = to.len();
            self.append_float(to, number.value());
            // Read back: infinity is in order only if the text says so.
            let fits = self.read(&to[at..]).value().is_finite() || !number.value().is_finite();
            if !fits {
                to.truncate(at);
            }
            return fits;
        }
        let (Number::Int(value), (least, greatest)) = (number, self.range()) else {
            return false;
        };
        let fits = (least..=greatest).contains(&value);
        if fits {
            // In two's complement, the low bytes of an i128 are the narrow integer.
            to.extend_from_slice(&value.to_le_bytes()[..self.bytes()]);
        }
        fits
    }

    /// Appends a float, rounded to this floating-point type.
    pub(super) fn append_float(self, to: &mut Vec<u8>, value: f64) {
        match self {
            Dtype::F16 => to.extend(f16::from_f64(value).to_le_bytes()),
            Dtype::Bf16 => to.extend(bf16::from_f64(value).to_le_bytes()),
            Dtype::F32 => to.extend((value as f32).to_le_bytes()),
            _ => to.extend(value.to_le_bytes()),
        }
    }

    /// Reads one element from the start of `bytes`.
    pub fn read(self, bytes: &[u8]) -> Number {
        let mut word = [0; 8];
        word[..self.bytes()].copy_from_slice(&bytes[..self.bytes()]);
        // The casts below keep the low bits, and sign-extend a signed type.
        let bits = u64::from_le_bytes(word);
        match self {
            Dtype::F16 => Number::Float(f16::from_bits(bits as u16).to_f64()),
            Dtype::Bf16 => Number::Float(bf16::from_bits(bits as u16).to_f64()),
            Dtype::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
            Dtype::F64 => Number::Float(f64::from_bits(bits)),
            Dtype::I8 => Number::Int(i128::from(bits as i8)),
            Dtype::I16 => Number::Int(i128::from(bits as i16)),
            Dtype::I32 => Number::Int(i128::from(bits as i32)),
            Dtype::I64 => Number::Int(i128::from(bits as i64)),
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => Number::Int(i128::from(bits)),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Number {
    /// The number as a float, rounded if necessary.
    pub fn value(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(value) => write!(f, "{value}"),
            // The shortest text that reads back as the same number, always with a point or an exponent.
            Number::Float(value) => write!(f, "{value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(dtype: Dtype, number: Number) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(dtype.append(&mut bytes, number), "{dtype} holds {number}");
        bytes
    }

    #[test]
    fn minimum_and_maximum_of_each_type_are_kept_and_the_next_integers_refused() {
        let types = [
            (Dtype::I8, -128, 127),
            (Dtype::U8, 0, 255),
            (Dtype::I16, -32768, 32767),
            (Dtype::U16, 0, 65535),
            (Dtype::I32, -2147483648, 2147483647),
            (Dtype::U32, 0, 4294967295),
            (Dtype::I64, -9223372036854775808, 9223372036854775807),
            (Dtype::U64, 0, 18446744073709551615),
        ];
        for (dtype, least, greatest) in types {
            for value in [least, greatest] {
                assert_eq!(dtype.read(&encoded(dtype, Number::Int(value))), Number::Int(value));
            }
            for value in [least - 1, greatest + 1] {
                assert!(
                    !dtype.append(&mut Vec::new(), Number::Int(value)),
                    "{dtype} holds {value}"
                );
            }
            assert!(!dtype.append(&mut Vec::new(), Number::Float(1.0)));
        }
    }

    #[test]
    fn one_as_each_float_type_has_the_bits_of_ieee_754() {
        assert_eq!(encoded(Dtype::F16, Number::Int(1)), 0x3c00u16.to_le_bytes());
        assert_eq!(encoded(Dtype::Bf16, Number::Int(1)), 0x3f80u16.to_le_bytes());
        assert_eq!(encoded(Dtype::F32, Number::Float(1.0)), 0x3f80_0000u32.to_le_bytes());
        assert_eq!(
            encoded(Dtype::F64, Number::Float(1.0)),
            0x3ff0_0000_0000_0000u64.to_le_bytes()
        );
    }
}
