//! Where a line lives: the map that both ends of the crossbar, and the memory behind it, agree on.
//!
//! ```text
//!   line -> (slice, place in the slice) -> (channel of the slice's group, place in the channel)
//! ```
//!
//! Slices and channels form as many equal groups as both counts allow; a slice uses the channels of its own group alone.
//! Each step is a [`Spread`]: one to one, even over every run of consecutive lines, and nearly even over strided ones.
//! The vendor's hashes are not published; the polynomial one is that of Rau, "Pseudo-randomly interleaved memory" (ISCA 1991).

use std::sync::OnceLock;

use super::mem::LINE;

/// Irreducible polynomials over GF(2) of degree 0 to 12, with their leading term.
const POLYNOMIALS: [u32; 13] = [
    0x1, 0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x89, 0x11d, 0x211, 0x409, 0x805, 0x1053,
];

/// Deals numbers out to `n` places, any n: every aligned run of n numbers covers each place once.
///
/// With n = 2^a * m, the low a bits of a number are added (in GF(2)) to the remainder of its upper bits modulo an irreducible
/// polynomial, so that strides of a power of two stay even; the upper bits modulo m are rotated by a hash of the run's number.
///
/// ```
/// use warpwave_components::proto::noc::Spread;
/// let spread = Spread::new(80);
/// let mut seen = [0; 80];
/// (8000..8080).for_each(|x| seen[spread.deal(x).0 as usize] += 1);
/// assert_eq!(seen, [1; 80]);
/// ```
#[derive(Clone, Debug)]
pub struct Spread {
    bits: u32,
    odd: u64,
    fold: &'static Fold,
}

/// For each of five bytes of the upper bits, what it adds to the low ones.
type Fold = [[u16; 256]; 5];

/// The table for each degree, one for all who deal: it is made when first asked for, and shared it stays in the host's caches.
fn fold(bits: u32) -> &'static Fold {
    static FOLDS: [OnceLock<Box<Fold>>; POLYNOMIALS.len()] = [const { OnceLock::new() }; POLYNOMIALS.len()];
    FOLDS[bits as usize].get_or_init(|| {
        let mut fold = Box::new([[0; 256]; 5]);
        for (position, table) in fold.iter_mut().enumerate() {
            for (byte, entry) in table.iter_mut().enumerate() {
                *entry = remainder((byte as u64) << (8 * position), bits);
            }
        }
        fold
    })
}

impl Spread {
    /// Over `n` places, at least 1.
    pub fn new(n: u32) -> Self {
        let bits = n.trailing_zeros().min(POLYNOMIALS.len() as u32 - 1);
        Spread {
            bits,
            odd: u64::from(n >> bits),
            fold: fold(bits),
        }
    }

    /// Places dealt to.
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
    pub fn deal(&self, x: u64) -> (u32, u64) {
        if self.bits == 0 && self.odd == 1 {
            return (0, x);
        }
        let high = x >> self.bits;
        let low = (x - (high << self.bits)) as u32 ^ self.folded(high);
        if self.odd == 1 {
            return (low, high);
        }
        let (run, part) = (high / self.odd, high % self.odd);
        let turn = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (low | (((part + turn) % self.odd) as u32) << self.bits, run)
    }

    #[inline]
    fn folded(&self, high: u64) -> u32 {
        let byte = |n: usize| self.fold[n][(high >> (8 * n) & 0xff) as usize];
        u32::from(byte(0) ^ byte(1) ^ byte(2) ^ byte(3) ^ byte(4))
    }
}

/// high * x^bits modulo the polynomial of degree `bits`.
fn remainder(high: u64, bits: u32) -> u16 {
    let polynomial = u64::from(POLYNOMIALS[bits as usize]);
    let mut rest = high << bits;
    while rest >> bits != 0 {
        rest ^= polynomial << (63 - rest.leading_zeros() - bits);
    }
    rest as u16
}

/// A line's place among the slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// Its slice.
    pub slice: u16,
    /// Its number among the lines of the slice.
    pub local: u64,
}

/// A line's place among the channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelPlace {
    /// Which channel of the slice's group.
    pub channel: u16,
    /// Its number among the lines of the channel.
    pub local: u64,
}

/// Lines to slices to channels.
#[derive(Clone, Debug)]
pub struct AddressMap {
    slices: Spread,
    channels: Spread,
    groups: u32,
    slices_per_group: u32,
}

impl AddressMap {
    /// Over so many slices and channels, at least 1 of each.
    pub fn new(slices: u32, channels: u32) -> Self {
        let groups = common_divisor(slices, channels);
        AddressMap {
            slices: Spread::new(slices),
            channels: Spread::new(channels / groups),
            groups,
            slices_per_group: slices / groups,
        }
    }

    /// Groups of slices with their channels.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Slices of a group; group g has the slices from g times this on.
    pub fn slices_per_group(&self) -> u32 {
        self.slices_per_group
    }

    /// Channels of a group; group g has the channels from g times this on.
    pub fn channels_per_group(&self) -> u32 {
        self.channels.places()
    }

    /// The slice of a line.
    #[inline]
    pub fn home(&self, line: u64) -> Home {
        let (slice, local) = self.slices.deal(line / LINE as u64);
        Home {
            slice: slice as u16,
            local,
        }
    }

    /// A line's number among the lines of its slice ([`AddressMap::home`]), for who knows the slice.
    #[inline]
    pub fn local(&self, line: u64) -> u64 {
        self.slices.run(line / LINE as u64)
    }

    /// The channel of a line.
    #[inline]
    pub fn channel(&self, line: u64) -> ChannelPlace {
        let home = self.home(line);
        let in_group = u64::from(u32::from(home.slice) % self.slices_per_group);
        let (channel, local) = self
            .channels
            .deal(home.local * u64::from(self.slices_per_group) + in_group);
        ChannelPlace {
            channel: channel as u16,
            local,
        }
    }
}

const fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const COUNTS: [u32; 14] = [1, 2, 3, 5, 6, 12, 20, 24, 32, 40, 48, 64, 80, 96];

    #[test]
    fn consecutive_numbers_cover_every_place_equally() {
        for n in COUNTS {
            let spread = Spread::new(n);
            let mut seen = vec![0; n as usize];
            (0..u64::from(n) * 1000).for_each(|x| seen[spread.deal(x).0 as usize] += 1);
            assert!(seen.iter().all(|&times| times == 1000), "{n} places: {seen:?}");
        }
    }

    #[test]
    fn strided_numbers_leave_no_place_with_twice_its_share() {
        for n in COUNTS {
            let spread = Spread::new(n);
            for stride in (0..14).map(|k| 1u64 << k).chain([3, 5, 10, 80, 96, 1000, 5120]) {
                let mut seen = vec![0u32; n as usize];
                let samples = u64::from(n) * 400;
                (0..samples).for_each(|i| seen[spread.deal(2_097_152 + i * stride).0 as usize] += 1);
                let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
                assert!(
                    *most < 800 && *least > 100,
                    "{n} places, stride {stride}: {least} to {most} of 400"
                );
            }
        }
    }

    #[test]
    fn no_two_lines_share_a_place() {
        for (slices, channels) in [(2, 2), (80, 40), (12, 6), (4, 8), (6, 4), (80, 80)] {
            let map = AddressMap::new(slices, channels);
            let mut homes = HashSet::new();
            let mut places = HashSet::new();
            for line in (0..20_000).map(|n| n * LINE as u64) {
                let (home, place) = (map.home(line), map.channel(line));
                assert_eq!(map.local(line), home.local);
                assert!(u32::from(home.slice) < slices && u32::from(place.channel) < map.channels_per_group());
                assert!(homes.insert((home.slice, home.local)));
                let group = u32::from(home.slice) / map.slices_per_group();
                assert!(
                    places.insert((group, place.channel, place.local)),
                    "{slices}, {channels}"
                );
            }
        }
    }
}
