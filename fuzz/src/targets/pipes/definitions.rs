//! Definitions of some instructions, written for the target alone. They share no code with the machine.

use warpwave_isa::exec::Operands;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};

/// The instructions. Each line but the last has a definition in [`define`]. The pipe forwards the last one.
pub const PROGRAM: &str = "MOV R0, R1
    SEL R0, R1, R2, P0
    IADD3 R0, P0, R1, R2, R3, PT
    LOP3.0x96 R0, R1, R2, R3
    IMNMX.S32 R0, R1, R2, P0
    ISETP.LT.AND.S32 P0, P1, R1, R2, P2, PT
    IMAD R0, R1, R2, R3
    IMAD.WIDE.S32 R0, R2, R3, R4
    FADD R0, R1, R2
    FMUL R0, R1, R2
    FFMA R0, R1, R2, R3
    HADD2.F16X2 R0, R1, R2
    DADD R0, R2, R4
    DFMA R0, R2, R4, R6
    POPC R0, R1
    BREV R0, R1
    I2F.F32.S32 R0, R1
    F2I.S32.F32.RZ R0, R1
    VOTE.ANY R0, P0, P1
    MATCH.ANY R0, PT, R1
    REDUX.ADD R0, R1
    VIADDMNMX.S32 R0, R1, R2, R3, P0
    VIMNMX3 R0, R1, R2, R3, P0
    MMA.16832S8 R0, R4, R8, R12
    HGMMA.16816F16.HI.N2 R0, R8, R10, R0, PT";

/// The matrix product. All lanes take part in it.
pub const MMA: u32 = 23;
/// The warp-group product. The tensor pipe forwards it to shared memory.
pub const HGMMA: u32 = 24;

/// Results of a warp: words and predicates, as many as the instruction has.
#[derive(Clone, Default, Debug)]
pub struct Defined {
    pub words: Vec<[u32; WARP_SIZE]>,
    pub preds: Vec<u32>,
}

impl Defined {
    fn word(word: impl Fn(usize) -> u32) -> Self {
        Defined {
            words: vec![std::array::from_fn(word)],
            preds: Vec::new(),
        }
    }

    fn wide(word: impl Fn(usize) -> u64) -> Self {
        let words = [0, 32].map(|shift| std::array::from_fn(|lane| (word(lane) >> shift) as u32));
        Defined {
            words: words.into(),
            preds: Vec::new(),
        }
    }

    fn with_pred(mut self, pred: u32) -> Self {
        self.preds.push(pred);
        self
    }
}

/// The results of the instruction at `pc`.
pub fn define(pc: u32, lanes: LaneMask, operands: &Operands) -> Defined {
    let word = |n: usize, lane: usize| operands.words[n].0[lane];
    let wide = |n: usize, lane: usize| u64::from(word(n + 1, lane)) << 32 | u64::from(word(n, lane));
    let single = |n, lane| f32::from_bits(word(n, lane));
    let double = |n, lane| f64::from_bits(wide(n, lane));
    let holds = |n: usize, lane: usize| operands.preds[n].contains(lane);
    let sum = |lane| u64::from(word(0, lane)) + u64::from(word(1, lane)) + u64::from(word(2, lane));
    let product = |lane| i64::from(word(0, lane) as i32) * i64::from(word(1, lane) as i32);
    let less = |lane| (word(0, lane) as i32) < word(1, lane) as i32;
    // A true predicate selects the minimum, a false one the maximum.
    let least = |lane| match holds(0, lane) == less(lane) {
        true => word(0, lane),
        false => word(1, lane),
    };
    let equal = |lane: usize| lanes.filter(|other| word(0, other) == word(0, lane)).0;
    let any = lanes.filter(|lane| holds(0, lane)).0;
    match pc {
        0 => Defined::word(|lane| word(0, lane)),
        1 => Defined::word(|lane| if holds(0, lane) { word(0, lane) } else { word(1, lane) }),
        2 => Defined::word(|lane| sum(lane) as u32).with_pred(mask(|lane| sum(lane) > u32::MAX.into())),
        3 => Defined::word(|lane| word(0, lane) ^ word(1, lane) ^ word(2, lane)),
        4 => Defined::word(least),
        5 => Defined::default()
            .with_pred(mask(|lane| less(lane) && holds(0, lane)))
            .with_pred(mask(|lane| !less(lane) && holds(0, lane))),
        6 => Defined::word(|lane| word(0, lane).wrapping_mul(word(1, lane)).wrapping_add(word(2, lane))),
        7 => Defined::wide(|lane| (product(lane) as u64).wrapping_add(wide(2, lane))),
        8 => Defined::word(|lane| bits(single(0, lane) + single(1, lane))),
        9 => Defined::word(|lane| bits(single(0, lane) * single(1, lane))),
        10 => Defined::word(|lane| bits(single(0, lane).mul_add(single(1, lane), single(2, lane)))),
        11 => Defined::word(|lane| add_halves(word(0, lane), word(1, lane))),
        12 => Defined::wide(|lane| bits64(double(0, lane) + double(2, lane))),
        13 => Defined::wide(|lane| bits64(double(0, lane).mul_add(double(2, lane), double(4, lane)))),
        14 => Defined::word(|lane| (0..32).map(|n| word(0, lane) >> n & 1).sum()),
        15 => Defined::word(|lane| (0..32).map(|n| (word(0, lane) >> n & 1) << (31 - n)).sum()),
        // An f64 holds every i32, so the conversion rounds once.
        16 => Defined::word(|lane| (f64::from(word(0, lane) as i32) as f32).to_bits()),
        17 => Defined::word(|lane| truncated(single(0, lane))),
        18 => Defined::word(|_| any).with_pred(mask(|_| any != 0)),
        19 => Defined::word(equal).with_pred(u32::MAX),
        20 => Defined::word(|_| lanes.iter().fold(0, |sum, lane| sum.wrapping_add(word(0, lane)))),
        21 => Defined::word(|lane| {
            let sum = word(0, lane).wrapping_add(word(1, lane)) as i32;
            let other = word(2, lane) as i32;
            (if holds(0, lane) { sum.min(other) } else { sum.max(other) }) as u32
        }),
        22 => Defined::word(|lane| {
            let all = [0, 1, 2].map(|n| word(n, lane));
            let extreme = if holds(0, lane) {
                all.iter().min()
            } else {
                all.iter().max()
            };
            *extreme.expect("three words")
        }),
        _ => Defined {
            words: matrix_product(operands).into(),
            preds: Vec::new(),
        },
    }
}

fn mask(holds: impl Fn(usize) -> bool) -> u32 {
    LaneMask::ALL.filter(holds).0
}

/// The bits of an f32. The GPU has one NaN.
fn bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

fn bits64(value: f64) -> u64 {
    if value.is_nan() {
        0xfff8_0000_0000_0000
    } else {
        value.to_bits()
    }
}

/// Rounds toward zero, and clamps to the range of an i32. NaN gives 0.
fn truncated(value: f32) -> u32 {
    if value.is_nan() {
        return 0;
    }
    let limits = (f64::from(i32::MIN), f64::from(i32::MAX));
    (f64::from(value).trunc().clamp(limits.0, limits.1) as i64) as u32
}

/// The sums of the low and of the high halves. An f64 holds a sum of two halves exactly.
fn add_halves(a: u32, b: u32) -> u32 {
    let half = |word: u32| half_value(word & 0xffff);
    half_bits(half(a) + half(b)) | half_bits(half(a >> 16) + half(b >> 16)) << 16
}

fn half_value(bits: u32) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        31 if fraction != 0.0 => f64::NAN,
        31 => f64::INFINITY,
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent as i32 - 25),
    };
    if bits >> 15 & 1 == 1 { -magnitude } else { magnitude }
}

/// Rounds to the nearest half, ties to even.
fn half_bits(value: f64) -> u32 {
    if value.is_nan() {
        return 0x7fff;
    }
    let sign = u32::from(value.is_sign_negative()) << 15;
    let magnitude = value.abs();
    // The step between halves is a power of two: 2^-24 for denormals, else 2^-10 of the exponent's power.
    let exponent = (-14..=15).rev().find(|&n| magnitude >= 2f64.powi(n)).unwrap_or(-14);
    let steps = (magnitude / 2f64.powi(exponent - 10)).round_ties_even();
    if magnitude.is_infinite() || steps >= 2048.0 && exponent == 15 {
        return sign | 0x7c00;
    }
    // A normal half has 1024 to 2047 steps. 2048 steps carry into the exponent, as they must.
    sign | ((exponent + 14) as u32 * 1024 + steps as u32)
}

/// D = A * B + C of 16 rows, 8 columns and a depth of 32. The fragments are those of the PTX ISA for `mma.m16n8k32` with `.s8`.
fn matrix_product(operands: &Operands) -> [[u32; WARP_SIZE]; 4] {
    let byte =
        |register: usize, lane: usize, n: usize| i32::from((operands.words[register].0[lane] >> (8 * n)) as u8 as i8);
    let a = |row: usize, k: usize| byte(row / 8 + k / 16 * 2, row % 8 * 4 + k % 16 / 4, k % 4);
    let b = |k: usize, column: usize| byte(4 + k / 16, column * 4 + k % 16 / 4, k % 4);
    [0, 1, 2, 3].map(|n| {
        std::array::from_fn(|lane| {
            let (row, column) = (lane / 4 + n / 2 * 8, lane % 4 * 2 + n % 2);
            let c = operands.words[6 + n].0[lane];
            (0..32).fold(c, |sum, k| sum.wrapping_add((a(row, k) * b(k, column)) as u32))
        })
    })
}
