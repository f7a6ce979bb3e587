//! Generates the elements of a buffer: constant, counted, random, listed, or read from a file.
//!
//! Random elements are the same on every host. Element *i* of seed *s* is output *i* of SplitMix64 (Steele, Lea and Flood,
//! 2014) started at *s*. Its upper 53 bits over 2^53 are *u* in [0, 1). The element is low + u (high - low) in f64, rounded
//! to the buffer's type, downwards for integers. Normal element *i* needs outputs 2 *i* and 2 *i* + 1. An integer type
//! rounds it to the nearest number.

use std::ops::Range;

use super::dtype::{Dtype, Number};
use super::error::Fault;
use super::files::Files;
use super::format::SourceTable;
use super::npy;
use super::quantity::Constants;

/// Maximum number of bytes of one buffer.
const MAX_BYTES: u64 = 64 << 30;

/// Maximum number of sizes of a shape, as in numpy before version 2.
const MAX_SIZES: usize = 32;

/// Element type and shape of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Element type.
    pub dtype: Dtype,
    /// Sizes, the contiguous dimension last.
    pub shape: Vec<u64>,
}

impl Layout {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.elements() * self.dtype.bytes() as u64
    }
}

/// Bytes of a buffer of this type and shape. A fault above [`MAX_BYTES`] or [`MAX_SIZES`].
pub(super) fn checked_bytes(dtype: Dtype, shape: &[u64]) -> Result<u64, Fault> {
    if shape.len() > MAX_SIZES {
        return Err(Fault::TooManySizes {
            found: shape.len(),
            limit: MAX_SIZES,
        });
    }
    let bytes = shape
        .iter()
        .try_fold(dtype.bytes() as u64, |bytes, &n| bytes.checked_mul(n));
    match bytes {
        Some(bytes @ 1..=MAX_BYTES) if !shape.is_empty() => Ok(bytes),
        _ => Err(Fault::BadShape { shape: shape.to_vec() }),
    }
}

/// Generates elements of a buffer, from index `first` on. A list and a file have no other elements than these.
pub(super) fn bytes(
    source: &SourceTable,
    layout: &Layout,
    first: u64,
    files: &Files,
    constants: &Constants,
) -> Result<Vec<u8>, Fault> {
    let dtype = layout.dtype;
    match source {
        SourceTable::Npy(path) => npy::read(path, files.open(path)?, dtype, &layout.shape),
        SourceTable::Fill(number) => fill(layout, constants.number(number)?),
        SourceTable::Iota(iota) => {
            let (start, step) = (constants.number(&iota.start)?, constants.number(&iota.step)?);
            collect(layout, first, |i| iota_element(start, step, i))
        }
        SourceTable::Uniform(uniform) => {
            let seed = constants.size(&uniform.seed, 0, u64::MAX)?;
            random(
                layout,
                first,
                seed,
                [constants.number(&uniform.low)?, constants.number(&uniform.high)?],
            )
        }
        SourceTable::Normal(normal) => {
            let seed = constants.size(&normal.seed, 0, u64::MAX)?;
            let [mean, deviation] = [constants.number(&normal.mean)?, constants.number(&normal.deviation)?];
            if !mean.value().is_finite() || !(0.0..f64::INFINITY).contains(&deviation.value()) {
                return Err(Fault::NotNormal { mean, deviation });
            }
            let (mean, deviation) = (mean.value(), deviation.value());
            let element = |i| mean + deviation * normal_element(seed, i);
            match dtype.is_float() {
                true => Ok(collect_floats(layout, first, element)),
                false => collect(layout, first, |i| Ok(Number::Int(libm::rint(element(i)) as i128))),
            }
        }
        SourceTable::Values(values) if values.len() as u64 != layout.elements() => Err(Fault::WrongCount {
            found: values.len(),
            want: layout.elements(),
        }),
        SourceTable::Values(values) => {
            let mut bytes = Vec::with_capacity(layout.bytes() as usize);
            for value in values {
                append(dtype, &mut bytes, constants.number(value)?)?;
            }
            Ok(bytes)
        }
    }
}

/// Random elements from a lower bound up to an upper one.
fn random(layout: &Layout, first: u64, seed: u64, bounds: [Number; 2]) -> Result<Vec<u8>, Fault> {
    // Converted once: the bounds may be wide integers, and there may be millions of elements.
    let [low, high] = bounds.map(Number::value);
    // Negated, so that NaN is refused too.
    if !(high - low > 0.0 && (high - low).is_finite()) {
        let [low, high] = bounds;
        return Err(Fault::EmptyRange { low, high });
    }
    let element = |i| uniform_element(seed, low..high, i);
    if !layout.dtype.is_float() {
        return collect(layout, first, |i| Ok(Number::Int(element(i).floor() as i128)));
    }
    // If both bounds fit the type, so does every number between them.
    for bound in bounds {
        append(layout.dtype, &mut Vec::new(), bound)?;
    }
    Ok(collect_floats(layout, first, element))
}

/// Tests that the host can allocate `bytes`. A failed allocation later would abort the process.
pub(super) fn check_room(bytes: u64) -> Result<(), Fault> {
    let asked = usize::try_from(bytes).ok();
    // The test allocation is dropped at once.
    let has_room = asked.is_some_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
    if has_room {
        Ok(())
    } else {
        Err(Fault::HostMemory { bytes })
    }
}

fn fill(layout: &Layout, number: Number) -> Result<Vec<u8>, Fault> {
    let mut one = Vec::new();
    append(layout.dtype, &mut one, number)?;
    Ok(one.repeat(layout.elements() as usize))
}

fn collect(layout: &Layout, first: u64, element: impl Fn(u64) -> Result<Number, Fault>) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::with_capacity(layout.bytes() as usize);
    for i in first..first + layout.elements() {
        append(layout.dtype, &mut bytes, element(i)?)?;
    }
    Ok(bytes)
}

/// Collects float elements. No float is out of range.
fn collect_floats(layout: &Layout, first: u64, element: impl Fn(u64) -> f64) -> Vec<u8> {
    let elements = (first..first + layout.elements()).map(element);
    match layout.dtype {
        // A fast path for the most frequent type, which may have millions of elements.
        Dtype::F32 => {
            let words: Vec<_> = elements.map(|value| (value as f32).to_le_bytes()).collect();
            words.into_flattened()
        }
        dtype => {
            let mut bytes = Vec::with_capacity(layout.bytes() as usize);
            elements.for_each(|value| dtype.append_float(&mut bytes, value));
            bytes
        }
    }
}

/// The bytes of integers of this type.
pub(super) fn integers(dtype: Dtype, numbers: &[u64]) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::with_capacity(numbers.len() * dtype.bytes());
    for &number in numbers {
        append(dtype, &mut bytes, Number::Int(number.into()))?;
    }
    Ok(bytes)
}

/// Appends a number. A fault if the type cannot represent it.
pub(super) fn append(dtype: Dtype, to: &mut Vec<u8>, number: Number) -> Result<(), Fault> {
    if dtype.append(to, number) {
        Ok(())
    } else {
        Err(Fault::OutOfRange { number, dtype })
    }
}

fn iota_element(start: Number, step: Number, i: u64) -> Result<Number, Fault> {
    match (start, step) {
        (Number::Int(start), Number::Int(step)) => {
            let steps = step.checked_mul(i128::from(i));
            let sum = steps.and_then(|steps| start.checked_add(steps));
            sum.map(Number::Int).ok_or(Fault::BeyondIntegers { index: i })
        }
        (start, step) => Ok(Number::Float(start.value() + step.value() * i as f64)),
    }
}

fn uniform_element(seed: u64, bounds: Range<f64>, i: u64) -> f64 {
    // An f64 has a significand of 53 bits.
    let u = (split_mix(seed, i) >> 11) as f64 / (1u64 << 53) as f64;
    bounds.start + u * (bounds.end - bounds.start)
}

/// A number of the standard normal distribution: the method of Box and Muller, from two uniform numbers.
fn normal_element(seed: u64, i: u64) -> f64 {
    let uniform = |n: u64| uniform_element(seed, 0.0..1.0, n);
    let (first, second) = (uniform(2 * i), uniform(2 * i + 1));
    // The logarithm needs a number above 0.
    libm::sqrt(-2.0 * libm::log(1.0 - first)) * libm::cos(std::f64::consts::TAU * second)
}

/// Output `i` of SplitMix64 started at `seed`.
pub(super) fn split_mix(seed: u64, i: u64) -> u64 {
    // The increment is 2^64 over the golden ratio. The generator can jump to any output, since its state only counts.
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::format::{Iota, Normal, Uniform};
    use crate::scenario::quantity::Quantity;

    fn number(value: i64) -> Quantity {
        value.into()
    }

    fn made(source: SourceTable, dtype: Dtype, shape: &[u64]) -> Result<Vec<u8>, Fault> {
        let layout = Layout {
            dtype,
            shape: shape.to_vec(),
        };
        bytes(&source, &layout, 0, &Files::Disk(".".into()), &Constants::default())
    }

    #[test]
    fn split_mix_of_seed_1234567_gives_the_published_outputs() {
        // The test vector of the reference implementation.
        let outputs = [0, 1, 2, 3, 4].map(|i| split_mix(1234567, i));
        assert_eq!(
            outputs,
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423,
                4593380528125082431,
                16408922859458223821
            ]
        );
    }

    #[test]
    fn uniform_floats_are_the_published_outputs_rounded_to_their_type() {
        let source = || {
            SourceTable::Uniform(Uniform {
                low: number(0),
                high: number(1),
                seed: number(1234567),
            })
        };
        let outputs = [6457827717110365317u64, 3203168211198807973].map(|z| (z >> 11) as f64 / 2f64.powi(53));
        let singles = outputs.map(|u| (u as f32).to_le_bytes()).concat();
        assert_eq!(made(source(), Dtype::F32, &[2]), Ok(singles));
        assert_eq!(
            made(source(), Dtype::F64, &[2]),
            Ok(outputs.map(f64::to_le_bytes).concat())
        );
    }

    #[test]
    fn integers_are_counted_and_overflow_is_found() {
        let iota = |start, step| {
            SourceTable::Iota(Iota {
                start: number(start),
                step: number(step),
            })
        };
        assert_eq!(made(iota(5, -2), Dtype::I8, &[2, 2]), Ok(vec![5, 3, 1, 0xff]));
        assert_eq!(
            made(iota(254, 1), Dtype::U8, &[3]),
            Err(Fault::OutOfRange {
                number: Number::Int(256),
                dtype: Dtype::U8
            })
        );
    }

    #[test]
    fn count_beyond_128_bits_is_refused_for_every_type() {
        let iota = SourceTable::Iota(Iota {
            start: number(0),
            step: Quantity::parse("2 ** 126").unwrap(),
        });
        for dtype in [Dtype::F32, Dtype::F64, Dtype::Bf16] {
            // 0, 2^126, and 2^127, which is one more than the greatest integer.
            assert_eq!(made(iota.clone(), dtype, &[3]), Err(Fault::BeyondIntegers { index: 2 }));
        }
        let two = [0.0, 2f64.powi(126)].map(f64::to_le_bytes).concat();
        assert_eq!(made(iota, Dtype::F64, &[2]), Ok(two));
    }

    #[test]
    fn normal_numbers_without_a_finite_mean_and_deviation_are_refused() {
        for (mean, deviation) in [
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
            (0.0, f64::NAN),
            (0.0, f64::NEG_INFINITY),
            (0.0, -2.0),
        ] {
            for dtype in [Dtype::I32, Dtype::U8, Dtype::F32] {
                let normal = SourceTable::Normal(Normal {
                    mean: Quantity::Number(Number::Float(mean)),
                    deviation: Quantity::Number(Number::Float(deviation)),
                    seed: number(1),
                });
                let found = made(normal, dtype, &[4]);
                assert!(matches!(found, Err(Fault::NotNormal { .. })), "{found:?}");
            }
        }
    }

    #[test]
    fn uniform_integers_stay_below_high_and_reach_both_ends() {
        let dice = SourceTable::Uniform(Uniform {
            low: number(1),
            high: number(7),
            seed: number(7),
        });
        let mut seen = made(dice, Dtype::U8, &[1000]).unwrap();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn normal_numbers_have_the_mean_and_the_deviation_that_are_asked_for() {
        let normal = |dtype, n| {
            let source = SourceTable::Normal(Normal {
                mean: number(3),
                deviation: number(2),
                seed: number(1234567),
            });
            made(source, dtype, &[n]).unwrap()
        };
        // From the first two published outputs, by the formula of Box and Muller.
        let [first, second] = [6457827717110365317u64, 3203168211198807973].map(|z| (z >> 11) as f64 / 2f64.powi(53));
        let want = 3.0 + 2.0 * (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos();
        let found = f64::from_le_bytes(normal(Dtype::F64, 1).try_into().unwrap());
        assert!((found - want).abs() < 1e-12, "{found} {want}");

        let n = 100_000;
        let singles = normal(Dtype::F32, n);
        let values = || {
            singles
                .as_chunks()
                .0
                .iter()
                .map(|&bytes| f64::from(f32::from_le_bytes(bytes)))
        };
        let mean = values().sum::<f64>() / n as f64;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / n as f64;
        let inside = values().filter(|value| (value - 3.0).abs() < 2.0).count() as f64 / n as f64;
        // Six standard errors: 2 / sqrt(n), and 4 sqrt(2 / n). The share within one deviation is 68.27 %.
        assert!((mean - 3.0).abs() < 0.038, "{mean}");
        assert!((variance - 4.0).abs() < 0.108, "{variance}");
        assert!((inside - 0.6827).abs() < 0.009, "{inside}");
        let bytes = normal(Dtype::I8, 1000);
        assert!(bytes.iter().all(|&byte| (byte as i8 - 3).abs() < 13));
    }

    #[test]
    fn list_of_another_length_is_refused() {
        let values = SourceTable::Values(vec![number(1), number(2)]);
        assert_eq!(made(values.clone(), Dtype::U16, &[2]), Ok(vec![1, 0, 2, 0]));
        assert_eq!(
            made(values, Dtype::U16, &[3]),
            Err(Fault::WrongCount { found: 2, want: 3 })
        );
    }
}
