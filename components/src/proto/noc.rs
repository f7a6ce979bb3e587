//! The address map: maps lines to L2 slices, and the lines of a slice to memory channels.
//!
//! ```text
//!   line -> (slice, number in the slice) -> (channel of the slice's group, number in the channel)
//! ```
//!
//! A granule is `l2.interleave_bytes` of consecutive addresses. All its lines are in one slice, chosen by `l2.mapping`.
//!
//! Slices and channels form equal groups. Their number is the greatest common divisor of both counts. A slice uses only the channels of its
//! group. Each step is an [`Interleave`]: one to one, and even over each aligned run or block of granules, or of lines
//! for channels.

mod hash;
mod interleave;
mod modulo;
mod scatter;

pub use hash::Hash;
pub use interleave::Interleave;
pub use modulo::Modulo;
pub use scatter::Scatter;

use super::mem::{Crossing, LINE};
use crate::config::{FarLines, GpuConfig, Mapping};

/// The slice of a line, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// The slice.
    pub slice: u16,
    /// Number of the line among the lines of the slice.
    pub local: u64,
}

/// The channel of a line, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelLine {
    /// The channel, counted within the group of the slice.
    pub channel: u16,
    /// Number of the line among the lines of the channel.
    pub local: u64,
}

/// The interleave of each step of an [`AddressMap`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mappings {
    /// Lines to slices, and the lines of a slice to its sets: `l2.mapping`.
    pub l2: Mapping,
    /// Lines of a group to channels, and the lines of a channel to banks: `hbm.mapping`.
    pub hbm: Mapping,
}

/// The map of lines to slices and channels.
#[derive(Clone, Debug)]
pub struct AddressMap {
    slices: Interleave,
    channels: Interleave,
    mappings: Mappings,
    /// Lines of a granule, as a power of two.
    granule_bits: u32,
    groups: u32,
    slices_per_group: u32,
    /// Slices of a partition, if slices keep copies of lines of the other one.
    slices_per_partition: Option<u16>,
}

impl AddressMap {
    /// A hashed map over `slices` slices and `channels` channels, at least 1 of each.
    pub fn new(slices: u32, channels: u32) -> Self {
        let mappings = Mappings {
            l2: Mapping::Hash,
            hbm: Mapping::Hash,
        };
        AddressMap::with_mappings(slices, channels, mappings)
    }

    /// The map of a configuration.
    pub fn of(config: &GpuConfig) -> Self {
        let mappings = Mappings {
            l2: config.l2.mapping,
            hbm: config.hbm.mapping,
        };
        let map = AddressMap::with_mappings(config.l2.slices, config.hbm.channels, mappings)
            .with_granule(config.l2.interleave_bytes);
        match config.l2.far_lines {
            FarLines::AtHome => map,
            FarLines::Copied => map.with_copies(),
        }
    }

    /// The map with granules of `bytes`: a power of two, at least a line.
    pub fn with_granule(self, bytes: u32) -> Self {
        let granule_bits = (bytes / LINE as u32).ilog2();
        AddressMap { granule_bits, ..self }
    }

    /// The map with two partitions, each with half of the slices. A slice has copies of the lines of its twin in the other partition.
    pub fn with_copies(self) -> Self {
        let slices_per_partition = Some((self.slices.places() / 2) as u16);
        AddressMap {
            slices_per_partition,
            ..self
        }
    }

    /// The slice of the other partition with copies of the lines of `slice`, if slices keep copies.
    pub fn twin(&self, slice: u16) -> Option<u16> {
        let half = self.slices_per_partition?;
        Some(if slice < half { slice + half } else { slice - half })
    }

    /// The slice to which an SM of `partition` sends a request for a line, and the role of the request.
    #[inline]
    pub fn route(&self, line: u64, partition: u32) -> (u16, Crossing) {
        let home = self.home(line).slice;
        match self.slices_per_partition {
            Some(half) if u32::from(home / half) != partition => match home < half {
                true => (home + half, Crossing::Far),
                false => (home - half, Crossing::Far),
            },
            _ => (home, Crossing::Near),
        }
    }

    /// A map with these interleaves over `slices` slices and `channels` channels.
    pub fn with_mappings(slices: u32, channels: u32, mappings: Mappings) -> Self {
        let groups = common_divisor(slices, channels);
        AddressMap {
            slices: Interleave::new(mappings.l2, slices),
            channels: Interleave::new(mappings.hbm, channels / groups),
            mappings,
            granule_bits: 0,
            groups,
            slices_per_group: slices / groups,
            slices_per_partition: None,
        }
    }

    /// The interleave of each step.
    pub fn mappings(&self) -> Mappings {
        self.mappings
    }

    /// The interleave of the lines of a slice over `n` sets. It maps [`Home::local`].
    pub fn sets(&self, n: u32) -> Interleave {
        // A slice spreads its lines over the sets evenly in any case.
        let mapping = match self.mappings.l2 {
            Mapping::Scatter => Mapping::Hash,
            mapping => mapping,
        };
        Interleave::new(mapping, n)
    }

    /// Number of groups.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Slices per group. Group g has the slices from g times this on.
    pub fn slices_per_group(&self) -> u32 {
        self.slices_per_group
    }

    /// Channels per group. Group g has the channels from g times this on.
    pub fn channels_per_group(&self) -> u32 {
        self.channels.places()
    }

    /// The slice of a line.
    #[inline]
    pub fn home(&self, line: u64) -> Home {
        let number = line / LINE as u64;
        let (slice, granule) = self.slices.map(number >> self.granule_bits);
        Home {
            slice: slice as u16,
            local: self.in_slice(granule, number),
        }
    }

    /// The number of a line in its slice, without the slice ([`AddressMap::home`]).
    #[inline]
    pub fn local(&self, line: u64) -> u64 {
        let number = line / LINE as u64;
        // A run has one granule for each slice, so its number is the granule's number in the slice.
        self.in_slice(self.slices.run(number >> self.granule_bits), number)
    }

    /// The number of a line in its slice, from the number of its granule there.
    #[inline]
    fn in_slice(&self, granule: u64, number: u64) -> u64 {
        granule << self.granule_bits | number & ((1 << self.granule_bits) - 1)
    }

    /// The channel of a line.
    #[inline]
    pub fn channel(&self, line: u64) -> ChannelLine {
        let home = self.home(line);
        // The slices of a group take turns, so the lines of the group are numbered without gaps.
        let in_group = u64::from(u32::from(home.slice) % self.slices_per_group);
        let (channel, local) = self
            .channels
            .map(home.local * u64::from(self.slices_per_group) + in_group);
        ChannelLine {
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

    #[test]
    fn no_two_lines_share_a_slice_or_channel_and_number() {
        let counts = [(2, 2), (80, 40), (12, 6), (4, 8), (6, 4), (80, 80)];
        let kinds = Mapping::ALL
            .into_iter()
            .flat_map(|l2| Mapping::ALL.map(|hbm| Mappings { l2, hbm }));
        let maps = kinds.flat_map(|kind| counts.map(|counts| (counts, kind)));
        for (((slices, channels), mappings), granule) in maps.flat_map(|map| [128, 512].map(|bytes| (map, bytes))) {
            let map = AddressMap::with_mappings(slices, channels, mappings).with_granule(granule);
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
                    "{slices}, {channels}, {mappings:?}, {granule} bytes"
                );
            }
        }
    }

    #[test]
    fn lines_of_a_granule_are_in_one_slice() {
        let modulo = Mappings {
            l2: Mapping::Modulo,
            hbm: Mapping::Modulo,
        };
        let map = AddressMap::with_mappings(3, 3, modulo).with_granule(512);
        // Granules of four lines go to slices 0, 1, 2, 0, ... Each slice numbers its lines without gaps.
        let homes = [0, 3, 4, 11, 12, 13].map(|n| map.home(n * LINE as u64));
        let homes = homes.map(|home| (home.slice, home.local));
        assert_eq!(homes, [(0, 0), (0, 3), (1, 0), (2, 3), (0, 4), (0, 5)]);
    }

    #[test]
    fn far_line_goes_to_the_twin_of_its_home() {
        let plain = AddressMap::new(6, 3);
        let map = plain.clone().with_copies();
        let twins: Vec<_> = (0..6).map(|slice| map.twin(slice)).collect();
        assert_eq!(twins, [3, 4, 5, 0, 1, 2].map(Some));
        assert_eq!(plain.twin(0), None);
        for line in (0..1000).map(|n| n * LINE as u64) {
            let home = plain.home(line).slice;
            assert_eq!(plain.route(line, 1), (home, Crossing::Near), "no copies");
            let (near, far) = (u32::from(home) / 3, 1 - u32::from(home) / 3);
            assert_eq!(map.route(line, near), (home, Crossing::Near));
            assert_eq!(map.route(line, far), ((home + 3) % 6, Crossing::Far));
        }
    }

    #[test]
    fn modulo_takes_slices_and_channels_in_turn() {
        let modulo = Mappings {
            l2: Mapping::Modulo,
            hbm: Mapping::Modulo,
        };
        let map = AddressMap::with_mappings(2, 4, modulo);
        // Two groups of one slice and two channels: each slice's lines alternate between its channels.
        let places = (0..6).map(|n| {
            let line = n * LINE as u64;
            (map.home(line).slice, map.channel(line).channel)
        });
        assert_eq!(
            places.collect::<Vec<_>>(),
            [(0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0)]
        );
    }
}
