//! The polynomial hash: distributes numbers of any stride nearly evenly over n places. Preset word `hash`.
//!
//! With n = 2^a * m and odd m, a number has three digits: the low a bits, the part (modulo m), and the run.
//!
//! | Digit of the place | Computed as |
//! |---|---|
//! | low a bits | the low a bits, XORed with the upper bits modulo an irreducible polynomial of degree a over GF(2) |
//! | part, modulo m | the part, rotated by a hash of the run |
//!
//! So strides of a power of two are even too. The vendor's hashes are not published. Source of the polynomial hash: Rau,
//! "Pseudo-randomly interleaved memory" (ISCA 1991).

use std::sync::OnceLock;

/// Irreducible polynomials over GF(2) of degree 0 to 12, with their leading term.
const POLYNOMIALS: [u32; 13] = [
    0x1, 0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x89, 0x11d, 0x211, 0x409, 0x805, 0x1053,
];

/// The hash over `n` places.
#[derive(Clone, Debug)]
pub struct Hash {
    /// a: the power of two in n.
    bits: u32,
    /// m: the odd factor of n.
    odd: u64,
    remainders: &'static Remainders,
}

/// The remainder of each value of each of the five bytes of the upper bits.
type Remainders = [[u16; 256]; 5];

/// The table of a degree. All hashes share it, so it stays in the host cache.
fn remainders(bits: u32) -> &'static Remainders {
    static TABLES: [OnceLock<Box<Remainders>>; POLYNOMIALS.len()] = [const { OnceLock::new() }; POLYNOMIALS.len()];
    TABLES[bits as usize].get_or_init(|| {
        // Five bytes hold every line number.
        let mut remainders = Box::new([[0; 256]; 5]);
        for (position, table) in remainders.iter_mut().enumerate() {
            for (byte, entry) in table.iter_mut().enumerate() {
                *entry = remainder((byte as u64) << (8 * position), bits);
            }
        }
        remainders
    })
}

impl Hash {
    /// A hash over `n` places, at least 1.
    pub fn new(n: u32) -> Self {
        // Beyond 2^12 the rest of the power of two stays in `odd`.
        let bits = n.trailing_zeros().min(POLYNOMIALS.len() as u32 - 1);
        Hash {
            bits,
            odd: u64::from(n >> bits),
            remainders: remainders(bits),
        }
    }

    /// Number of places.
    pub fn places(&self) -> u32 {
        (self.odd as u32) << self.bits
    }

    /// The number of the run of `x`: x / n.
    #[inline]
    pub fn run(&self, x: u64) -> u64 {
        let high = x >> self.bits;
        if self.odd == 1 { high } else { high / self.odd }
    }

    /// The place of `x`, and the number of its run.
    #[inline]
    pub fn map(&self, x: u64) -> (u32, u64) {
        if self.bits == 0 && self.odd == 1 {
            return (0, x);
        }
        let high = x >> self.bits;
        let low = (x - (high << self.bits)) as u32 ^ self.remainder(high);
        if self.odd == 1 {
            return (low, high);
        }
        let (run, part) = (high / self.odd, high % self.odd);
        // Fibonacci hashing: the upper bits of the product depend on all bits of the run.
        let rotation = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (low | (((part + rotation) % self.odd) as u32) << self.bits, run)
    }

    /// The remainder of the upper bits.
    #[inline]
    fn remainder(&self, high: u64) -> u32 {
        // Linear, so the remainder is the XOR of those of the bytes.
        let byte = |n: usize| self.remainders[n][(high >> (8 * n) & 0xff) as usize];
        u32::from(byte(0) ^ byte(1) ^ byte(2) ^ byte(3) ^ byte(4))
    }
}

/// `high` times x^`bits`, modulo the polynomial of degree `bits`.
fn remainder(high: u64, bits: u32) -> u16 {
    let polynomial = u64::from(POLYNOMIALS[bits as usize]);
    let mut rest = high << bits;
    while rest >> bits != 0 {
        rest ^= polynomial << (63 - rest.leading_zeros() - bits);
    }
    rest as u16
}
