//! A group of slices and the channels that serve them: what a tile of the memory side is made of.
//!
//! ```text
//!   crossbar <--> slice 0 --+-- channel 0
//!   crossbar <--> slice 1 --+-- channel 1
//!    ...                    |    ...
//! ```
//!
//! Slices and channels form gcd(slices, channels) groups ([`AddressMap`]); within a group every slice reaches every channel
//! through a link of one cycle.
//!
//! An idle miss spends, between the lookup in the slice and the arrival of its data there: 1 slice cycle to leave, 1 core cycle
//! of link, the channel's cycles (see [`crate::hbm::channel`]), 1 core cycle of link; each domain's next edge is waited for.

use std::sync::Arc;

use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Slot, TileBuilder};
use warpwave_hw::time::Domain;

use super::slice::{self, Slice};
use crate::config::GpuConfig;
use crate::hbm::channel::{self, Channel};
use crate::proto::mem::{Packet, SliceCommand};
use crate::proto::noc::AddressMap;
use crate::storage::Storage;

/// Messages that a link between slice and channel holds.
const LINK_DEPTH: u32 = 2;

/// One slice's place in the tile and its links to the rest of the machine.
pub struct SliceSeat {
    /// Its slot; the links were made for it.
    pub slot: Slot,
    /// From the request crossbar.
    pub requests: InPort<Box<Packet>>,
    /// To the response crossbar.
    pub answers: OutPort<Box<Packet>>,
    /// From the host.
    pub commands: InPort<SliceCommand>,
}

/// Builds group `group`: its slices into their seats, in the order of their numbers, and its channels beside them. Slices are
/// named `path.l2_slice[n]`, channels `path.channel[n]`, with their numbers on the chip.
///
/// # Panics
/// If there is not a seat for each slice of the group.
pub fn build(
    tile: &mut TileBuilder,
    path: &Path,
    gpu: &GpuConfig,
    map: &Arc<AddressMap>,
    storage: &Arc<Storage>,
    group: u32,
    seats: Vec<SliceSeat>,
) {
    let (n_slices, n_channels) = (map.slices_per_group() as usize, map.channels_per_group() as usize);
    assert_eq!(seats.len(), n_slices, "{path}: a seat for each slice of the group");
    let channel_slots: Vec<Slot> = (0..n_channels).map(|_| tile.slot()).collect();
    let mut of_channel: Vec<Vec<channel::SlicePorts>> = (0..n_channels).map(|_| Vec::new()).collect();
    for (n, seat) in seats.into_iter().enumerate() {
        let path = path.at("l2_slice", group as usize * n_slices + n);
        let mut memory = Vec::with_capacity(n_channels);
        for (channel, slot) in channel_slots.iter().enumerate() {
            let down = join(&path.at("to_channel", channel), &seat.slot, slot);
            let up = join(&path.at("from_channel", channel), slot, &seat.slot);
            memory.push((down.0, up.1));
            of_channel[channel].push((down.1, up.0));
        }
        let ports = slice::Ports {
            requests: seat.requests,
            answers: seat.answers,
            commands: seat.commands,
            memory,
        };
        tile.fill(&seat.slot, Slice::new(path, slice_config(gpu, map), ports));
    }
    for (n, (slot, ports)) in channel_slots.iter().zip(of_channel).enumerate() {
        let path = path.at("channel", group as usize * n_channels + n);
        tile.fill(
            slot,
            Channel::new(path, channel_config(gpu, map), ports, storage.clone()),
        );
    }
}

/// The L2 clock against the core clock.
pub fn l2_clock(gpu: &GpuConfig) -> Domain {
    Domain::new(u64::from(gpu.clocks.l2_khz), u64::from(gpu.clocks.core_khz))
}

/// The memory command clock against the core clock.
pub fn memory_clock(gpu: &GpuConfig) -> Domain {
    Domain::new(u64::from(gpu.clocks.memory_khz), u64::from(gpu.clocks.core_khz))
}

fn join(path: &Path, from: &Slot, to: &Slot) -> (OutPort<Box<Packet>>, InPort<Box<Packet>>) {
    let config = LinkConfig {
        path: path.clone(),
        latency: 1,
        depth: LINK_DEPTH,
    };
    link(&config, from, to)
}

fn slice_config(gpu: &GpuConfig, map: &Arc<AddressMap>) -> slice::Config {
    let l2 = &gpu.l2;
    slice::Config {
        bytes: l2.size / l2.slices,
        associativity: l2.associativity,
        latency: l2.slice_latency,
        mshr_entries: l2.mshr_entries,
        waiting: l2.mshr_entries,
        bytes_per_cycle: l2.bytes_per_cycle,
        atomic_interval: l2.atomic_interval,
        clock: l2_clock(gpu),
        map: map.clone(),
    }
}

fn channel_config(gpu: &GpuConfig, map: &Arc<AddressMap>) -> channel::Config {
    let hbm = &gpu.hbm;
    channel::Config {
        banks: hbm.banks,
        bank_groups: hbm.bank_groups,
        row_bytes: hbm.row_bytes,
        queue_depth: hbm.queue_depth.min(channel::MAX_DEPTH),
        burst_bytes: hbm.burst_bytes,
        bus_bytes_per_command_cycle: hbm.bus_bytes_per_command_cycle,
        latency_extra: hbm.latency_extra,
        timing: hbm.timing,
        clock: memory_clock(gpu),
        map: map.clone(),
    }
}
