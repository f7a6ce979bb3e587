//! Where a line lives: the map that both ends of the crossbar, and the memory behind it, agree on.
//!
//! ```text
//!   line -> (slice, place in the slice) -> (channel of the slice's group, place in the channel)
//! ```
//!
//! Slices and channels form as many equal groups as both counts allow; a slice uses the channels of its own group alone.
//! Each step is an [`Interleave`]: one to one, and even over every run of consecutive lines.

mod hash;
mod interleave;
mod modulo;

pub use hash::Hash;
pub use interleave::Interleave;
pub use modulo::Modulo;

use super::mem::LINE;
use crate::config::{GpuConfig, Mapping};

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

/// Which interleave each step of an [`AddressMap`] takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mappings {
    /// Lines to slices, and the lines of a slice to its sets: `l2.mapping`.
    pub l2: Mapping,
    /// Lines of a group to channels, and the lines of a channel to banks: `hbm.mapping`.
    pub hbm: Mapping,
}

/// Lines to slices to channels.
#[derive(Clone, Debug)]
pub struct AddressMap {
    slices: Interleave,
    channels: Interleave,
    mappings: Mappings,
    groups: u32,
    slices_per_group: u32,
}

impl AddressMap {
    /// Hashed over `slices` slices and `channels` channels, at least 1 of each.
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
        AddressMap::with_mappings(config.l2.slices, config.hbm.channels, mappings)
    }

    /// As [`AddressMap::new`], with the interleave of each step.
    pub fn with_mappings(slices: u32, channels: u32, mappings: Mappings) -> Self {
        let groups = common_divisor(slices, channels);
        AddressMap {
            slices: Interleave::new(mappings.l2, slices),
            channels: Interleave::new(mappings.hbm, channels / groups),
            mappings,
            groups,
            slices_per_group: slices / groups,
        }
    }

    /// The interleave of each step.
    pub fn mappings(&self) -> Mappings {
        self.mappings
    }

    /// The lines of a slice over `n` sets. A line's number in the slice is [`Home::local`].
    pub fn sets(&self, n: u32) -> Interleave {
        Interleave::new(self.mappings.l2, n)
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
        let (slice, local) = self.slices.map(line / LINE as u64);
        Home {
            slice: slice as u16,
            local,
        }
    }

    /// A line's number among the lines of its slice ([`AddressMap::home`]), without its slice.
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
            .map(home.local * u64::from(self.slices_per_group) + in_group);
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

    #[test]
    fn no_two_lines_share_a_place() {
        let counts = [(2, 2), (80, 40), (12, 6), (4, 8), (6, 4), (80, 80)];
        let kinds = Mapping::ALL
            .into_iter()
            .flat_map(|l2| Mapping::ALL.map(|hbm| Mappings { l2, hbm }));
        for ((slices, channels), mappings) in kinds.flat_map(|kind| counts.map(|counts| (counts, kind))) {
            let map = AddressMap::with_mappings(slices, channels, mappings);
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
                    "{slices}, {channels}, {mappings:?}"
                );
            }
        }
    }

    #[test]
    fn modulo_lines_take_slices_and_then_channels_in_turn() {
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
