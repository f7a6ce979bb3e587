//! Exact floating-point arithmetic in integers, for every format and rounding mode. Slow, and used where the host has no
//! instruction: directed rounding, and conversions between widths that must round once.
//!
//! A finite value is `mantissa * 2^exponent`. Operations keep at least 60 bits more than the widest format has, with the lowest bit
//! set when anything was lost beneath it, so that the one rounding in [`Format::pack`] sees what an endless mantissa would show it.

use crate::inst::{Round, Ty};

/// A binary interchange format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Format {
    /// Bits of the significand, the hidden one included.
    precision: u32,
    /// Bits of the exponent.
    exponent_bits: u32,
    /// What an operation without a number as result gives.
    nan: u64,
}

pub(super) const F16: Format = Format {
    precision: 11,
    exponent_bits: 5,
    nan: 0x7fff,
};
pub(super) const BF16: Format = Format {
    precision: 8,
    exponent_bits: 8,
    nan: 0x7fff,
};
pub(super) const F32: Format = Format {
    precision: 24,
    exponent_bits: 8,
    nan: 0x7fff_ffff,
};
pub(super) const F64: Format = Format {
    precision: 53,
    exponent_bits: 11,
    nan: 0xfff8_0000_0000_0000,
};
/// No infinity: the largest exponent belongs to numbers, all ones are the NaN.
pub(super) const E4M3: Format = Format {
    precision: 4,
    exponent_bits: 4,
    nan: 0x7f,
};
pub(super) const E5M2: Format = Format {
    precision: 3,
    exponent_bits: 5,
    nan: 0x7f,
};

/// A finite number. A mantissa of zero is a zero of that sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Finite {
    pub(super) negative: bool,
    pub(super) mantissa: u128,
    pub(super) exponent: i32,
}

/// A value of any format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Nan,
    Infinite { negative: bool },
    Finite(Finite),
}

impl Value {
    pub(super) fn is_negative(self) -> bool {
        match self {
            Value::Nan => false,
            Value::Infinite { negative } | Value::Finite(Finite { negative, .. }) => negative,
        }
    }

    /// A signed integer.
    pub(super) fn integer(value: i128) -> Value {
        Value::Finite(Finite {
            negative: value < 0,
            mantissa: value.unsigned_abs(),
            exponent: 0,
        })
    }
}

impl Format {
    /// The format of a type; of its halves, where it is packed.
    pub(super) fn of(ty: Ty) -> Format {
        match ty {
            Ty::F16 | Ty::F16x2 => F16,
            Ty::Bf16 | Ty::Bf16x2 => BF16,
            Ty::F64 => F64,
            _ => F32,
        }
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << (self.precision - 1)
    }

    const fn sign(self, negative: bool) -> u64 {
        (negative as u64) << (self.precision - 1 + self.exponent_bits)
    }

    pub(super) fn unpack(self, bits: u64) -> Value {
        let negative = bits & self.sign(true) != 0;
        let magnitude = bits & (self.sign(true) - 1);
        if magnitude > self.infinity() {
            return Value::Nan;
        }
        if magnitude == self.infinity() {
            return Value::Infinite { negative };
        }
        Value::Finite(self.unpack_finite(negative, magnitude))
    }

    /// A number whose bits beside the sign are `magnitude`, whatever the format says of the largest exponent.
    pub(super) fn unpack_finite(self, negative: bool, magnitude: u64) -> Finite {
        let hidden = 1u64 << (self.precision - 1);
        let (biased, fraction) = ((magnitude >> (self.precision - 1)) as i32, magnitude & (hidden - 1));
        let mantissa = if biased == 0 { fraction } else { fraction | hidden };
        Finite {
            negative,
            mantissa: u128::from(mantissa),
            exponent: biased.max(1) - self.bias() - (self.precision as i32 - 1),
        }
    }

    /// Rounds once and encodes.
    pub(super) fn pack(self, value: Value, round: Round) -> u64 {
        match value {
            Value::Nan => self.nan,
            Value::Infinite { negative } => self.sign(negative) | self.infinity(),
            Value::Finite(finite) => self.sign(finite.negative) | self.pack_magnitude(finite, round),
        }
    }

    /// Rounds once to nearest and encodes; what is larger than the bits `greatest` becomes that.
    pub(super) fn pack_saturated(self, value: Value, greatest: u64) -> u64 {
        let sign = self.sign(value.is_negative());
        match value {
            Value::Nan => self.nan,
            Value::Infinite { .. } => sign | greatest,
            Value::Finite(finite) => sign | self.magnitude(finite, Round::Nearest).min(greatest),
        }
    }

    fn pack_magnitude(self, value: Finite, round: Round) -> u64 {
        let magnitude = self.magnitude(value, round);
        if magnitude < self.infinity() {
            magnitude
        } else {
            self.overflow(value.negative, round)
        }
    }

    /// The bits beside the sign, as if the exponent had no end.
    fn magnitude(self, value: Finite, round: Round) -> u64 {
        let Finite {
            negative,
            mantissa,
            exponent,
        } = value;
        if mantissa == 0 {
            return 0;
        }
        let top = exponent + mantissa.ilog2() as i32;
        let scale = top.max(1 - self.bias());
        let last = scale - (self.precision as i32 - 1);
        let kept = round_to(mantissa, last - exponent, negative, round) as u64;
        let hidden = 1u64 << (self.precision - 1);
        if kept < hidden {
            return kept;
        }
        // A mantissa that was rounded up to the next power of two carries into the exponent by itself.
        let biased = (scale + self.bias()) as u64;
        (biased << (self.precision - 1)) + (kept - hidden)
    }

    fn overflow(self, negative: bool, round: Round) -> u64 {
        let outward = match round {
            Round::Nearest => true,
            Round::Zero => false,
            Round::Down => negative,
            Round::Up => !negative,
        };
        self.infinity() - u64::from(!outward)
    }
}

/// `mantissa * 2^-shift` as an integer.
pub(super) fn round_to(mantissa: u128, shift: i32, negative: bool, round: Round) -> u128 {
    if shift <= 0 {
        return mantissa << -shift;
    }
    let (kept, rest, half) = match shift {
        1..=127 => (mantissa >> shift, mantissa & ((1 << shift) - 1), 1u128 << (shift - 1)),
        128 => (0, mantissa, 1 << 127),
        _ => (0, u128::from(mantissa != 0), u128::MAX),
    };
    let up = match round {
        Round::Nearest => rest > half || (rest == half && kept & 1 == 1),
        Round::Zero => false,
        Round::Down => negative && rest != 0,
        Round::Up => !negative && rest != 0,
    };
    kept + u128::from(up)
}

/// Moves the top bit of a mantissa that is not zero to bit `top`.
fn normalise(value: Finite, top: u32) -> Finite {
    let shift = top as i32 - value.mantissa.ilog2() as i32;
    Finite {
        mantissa: value.mantissa << shift,
        exponent: value.exponent - shift,
        ..value
    }
}

/// Shifts right; what is lost leaves its mark in the lowest bit.
fn shift_right_sticky(mantissa: u128, shift: u32) -> u128 {
    if shift > 127 {
        return u128::from(mantissa != 0);
    }
    mantissa >> shift | u128::from(mantissa & ((1 << shift) - 1) != 0)
}

pub(super) fn add(a: Value, b: Value, round: Round) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite { negative: x }, Value::Infinite { negative: y }) if x != y => Value::Nan,
        (Value::Infinite { .. }, _) => a,
        (_, Value::Infinite { .. }) => b,
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(add_finite(a, b, round)),
    }
}

fn add_finite(a: Finite, b: Finite, round: Round) -> Finite {
    if a.mantissa == 0 && b.mantissa == 0 {
        let negative = if a.negative == b.negative {
            a.negative
        } else {
            round == Round::Down
        };
        return Finite { negative, ..a };
    }
    if a.mantissa == 0 || b.mantissa == 0 {
        return if a.mantissa == 0 { b } else { a };
    }
    let (a, b) = (normalise(a, 125), normalise(b, 125));
    let (big, small) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let aligned = shift_right_sticky(small.mantissa, (big.exponent - small.exponent) as u32);
    if big.negative == small.negative {
        return Finite {
            mantissa: big.mantissa + aligned,
            ..big
        };
    }
    let (mantissa, negative) = match big.mantissa.cmp(&aligned) {
        std::cmp::Ordering::Equal => (0, round == Round::Down),
        std::cmp::Ordering::Greater => (big.mantissa - aligned, big.negative),
        std::cmp::Ordering::Less => (aligned - big.mantissa, small.negative),
    };
    Finite {
        mantissa,
        negative,
        exponent: big.exponent,
    }
}

/// The product, exact.
pub(super) fn multiply(a: Value, b: Value) -> Value {
    let negative = a.is_negative() != b.is_negative();
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite { .. }, Value::Finite(other)) | (Value::Finite(other), Value::Infinite { .. })
            if other.mantissa == 0 =>
        {
            Value::Nan
        }
        (Value::Infinite { .. }, _) | (_, Value::Infinite { .. }) => Value::Infinite { negative },
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(Finite {
            negative,
            mantissa: a.mantissa * b.mantissa,
            exponent: a.exponent + b.exponent,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let mixed = (*state ^ *state >> 33).wrapping_mul(0xff51afd7ed558ccd);
        mixed ^ mixed >> 33
    }

    fn same(got: u64, expected: f64) {
        let expected = if expected.is_nan() { F64.nan } else { expected.to_bits() };
        assert_eq!(
            got,
            expected,
            "got {:e}, expected {:e}",
            f64::from_bits(got),
            f64::from_bits(expected)
        );
    }

    #[test]
    fn random_doubles_rounded_to_nearest_agree_with_the_host() {
        let mut state = 1;
        for n in 0..300_000 {
            let [x, y, z] = [(); 3].map(|_| random(&mut state));
            // Half of the cases have exponents close together, where cancellation happens.
            let near = |bits: u64| {
                if n % 2 == 0 {
                    bits
                } else {
                    bits & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000
                }
            };
            let [x, y, z] = [x, y, z].map(near);
            let [a, b, c] = [x, y, z].map(|bits| F64.unpack(bits));
            let [fa, fb, fc] = [x, y, z].map(f64::from_bits);
            let pack = |value| F64.pack(value, Round::Nearest);
            same(pack(add(a, b, Round::Nearest)), fa + fb);
            same(pack(multiply(a, b)), fa * fb);
            same(pack(add(multiply(a, b), c, Round::Nearest)), fa.mul_add(fb, fc));
        }
    }

    #[test]
    fn more_than_half_a_unit_each_rounding_brackets_it() {
        let between = Value::integer((1 << 25) + 3);
        let bits = |round| F32.pack(between, round);
        assert_eq!(bits(Round::Zero), 0x4c00_0000);
        assert_eq!(bits(Round::Down), 0x4c00_0000);
        assert_eq!(bits(Round::Up), 0x4c00_0001);
        assert_eq!(bits(Round::Nearest), 0x4c00_0001);
    }

    #[test]
    fn cancelled_sum_sign_follows_the_rounding() {
        let (one, minus) = (Value::integer(1), Value::integer(-1));
        assert_eq!(F32.pack(add(one, minus, Round::Nearest), Round::Nearest), 0);
        assert_eq!(F32.pack(add(one, minus, Round::Down), Round::Down), 0x8000_0000);
    }

    #[test]
    fn half_too_large_directed_rounding_stays_finite() {
        let big = Value::integer(65520);
        assert_eq!(F16.pack(big, Round::Nearest), 0x7c00);
        assert_eq!(F16.pack(big, Round::Zero), 0x7bff);
        assert_eq!(F16.pack(Value::integer(-65536), Round::Up), 0xfbff);
    }
}
