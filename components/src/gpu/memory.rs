//! Wires the memory side: each crossbar network in a tile of its own, and slices with their channels in others. Networks are the only
//! busy tiles of their turn ([`warpwave_hw::clock`]), so that two threads run one each.
//!
//! ```text
//!   SM tiles            crossbar tiles       memory tiles, several groups each
//!   l1 ---- request ----> [request ] --------> slice 0 --+-- channel 0
//!   l1 <--- answer ------ [response] <-------- slice 1 --+-- channel 1
//! ```
//!
//! Slices and channels form gcd(slices, channels) groups ([`AddressMap`]); within a group every slice reaches every channel.
//!
//! The totals of a configuration are kept by giving every stage its share, in core cycles on an idle machine:
//!
//! | Total | Stages |
//! |---|---|
//! | `l2.hit_latency` | outside the L1, 1 to leave it, way there, slice, way back, 1 through it |
//! | `hbm.access_latency` | the same, and 1 to leave the slice, 2 links, 1 command cycle, tRCD, CL, burst, interface |
//!
//! A way is two links; what is longer than they can carry, or due to a far partition, lies in the slice's pipe.

use std::sync::Arc;

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Slot, Tile, TileBuilder};
use warpwave_hw::time::Domain;

use crate::config::{GpuConfig, Hbm, OUTSIDE_L1};
use crate::gpu::sm::join;
use crate::hbm::channel::{self, Channel};
use crate::l2::slice::{self, Slice};
use crate::proto::header::Direction;
use crate::proto::mem::{Packet, SliceCommand};
use crate::proto::noc::AddressMap;
use crate::storage::Storage;
use crate::xbar::crossbar::{self, Crossbar};

/// Longest link between tiles, in cycles.
pub(super) const LONGEST_LINK: u32 = 32;

/// Cycles of an L2 hit in the L1: one to leave it, one from the fill to the answer.
const IN_L1: u32 = 2;

/// Core cycles of an idle miss between slice and channel: one to leave the slice, and a link each way.
const AROUND_CHANNEL: u32 = 3;

/// Fetches and write-backs that a slice may have at memory: enough to fill its share of a channel's queue.
const MEMORY_DEPTH: u32 = 32;

/// Messages that a link from channel to slice holds.
const FILL_DEPTH: u32 = 2;

/// Components of a memory tile, as long as a group fits: small tiles share out better among threads.
const TILE_COMPONENTS: u32 = 16;

/// The memory side while SMs are joined to it.
pub(super) struct MemorySide<'a> {
    config: &'a GpuConfig,
    map: Arc<AddressMap>,
    way: Way,
    request: (TileBuilder, Slot),
    response: (TileBuilder, Slot),
    from_sms: Vec<InPort<Box<Packet>>>,
    to_sms: Vec<OutPort<Box<Packet>>>,
}

/// Shares of a way between SM and slice, core cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    /// Link between SM and crossbar.
    sm_link: u32,
    /// Link between crossbar and slice.
    slice_link: u32,
}

impl Way {
    fn new(config: &GpuConfig) -> Self {
        let cycles = core_cycles(config.xbar.latency, config.clocks.l2_khz, config).max(2);
        let sm_link = (cycles / 2).min(LONGEST_LINK);
        let slice_link = (cycles - sm_link).min(LONGEST_LINK);
        Way { sm_link, slice_link }
    }

    fn cycles(self) -> u32 {
        self.sm_link + self.slice_link
    }
}

impl<'a> MemorySide<'a> {
    /// No SM joined yet.
    pub(super) fn new(config: &'a GpuConfig, map: &Arc<AddressMap>) -> Self {
        let network = || {
            let mut tile = TileBuilder::new();
            let slot = tile.slot();
            (tile, slot)
        };
        MemorySide {
            config,
            map: map.clone(),
            way: Way::new(config),
            request: network(),
            response: network(),
            from_sms: Vec::new(),
            to_sms: Vec::new(),
        }
    }

    /// Joins the next SM, in the order of their numbers: gives the ports of its L1.
    pub(super) fn connect(&mut self, sm: &Path, l1: &Slot) -> (OutPort<Box<Packet>>, InPort<Box<Packet>>) {
        let latency = self.way.sm_link;
        let depth = self.depth(latency);
        let (below, requests) = join(sm.child("xbar.request"), latency, depth, l1, &self.request.1);
        let (answers, returns) = join(sm.child("l1.return"), latency, depth, &self.response.1, l1);
        self.from_sms.push(requests);
        self.to_sms.push(answers);
        (below, returns)
    }

    /// All tiles of the memory side, and the host's links to the slices.
    pub(super) fn build(self, root: &Path, storage: &Arc<Storage>) -> (Vec<Tile>, Vec<OutPort<SliceCommand>>) {
        let map = self.map.clone();
        let of_group = map.slices_per_group() + map.channels_per_group();
        let groups_per_tile = (TILE_COMPONENTS / of_group).max(1);
        let groups: Vec<u32> = (0..map.groups()).collect();
        let mut tiles = Vec::new();
        let mut slices = Slices::default();
        for groups in groups.chunks(groups_per_tile as usize) {
            let mut tile = TileBuilder::new();
            for &group in groups {
                self.fill_group(&mut tile, root, group, storage, &mut slices);
            }
            tiles.push(tile.build());
        }
        let clock = l2_clock(self.config);
        let network = |direction, bytes_per_cycle| crossbar::Config {
            direction,
            bytes_per_cycle,
            clock,
        };
        let xbar = self.config.xbar;
        let request = network(Direction::Request, xbar.request_bytes_per_cycle);
        let response = network(Direction::Response, xbar.response_bytes_per_cycle);
        let path = root.child("xbar");
        let request = Crossbar::new(path.child("request"), request, self.from_sms, slices.to_slices);
        let response = Crossbar::new(path.child("response"), response, slices.from_slices, self.to_sms);
        let build = |(mut tile, slot): (TileBuilder, Slot), network| {
            tile.fill(&slot, network);
            tile.build()
        };
        tiles.splice(0..0, [build(self.request, request), build(self.response, response)]);
        (tiles, slices.commands)
    }

    /// Puts the slices and channels of a group into a tile.
    fn fill_group(&self, tile: &mut TileBuilder, root: &Path, group: u32, storage: &Arc<Storage>, slices: &mut Slices) {
        let (n_slices, n_channels) = (self.map.slices_per_group(), self.map.channels_per_group());
        let channel_slots: Vec<Slot> = (0..n_channels).map(|_| tile.slot()).collect();
        let mut of_channel: Vec<Vec<channel::SlicePorts>> = (0..n_channels).map(|_| Vec::new()).collect();
        for number in group * n_slices..(group + 1) * n_slices {
            let path = root.at("l2_slice", number as usize);
            let slot = tile.slot();
            let mut memory = Vec::with_capacity(channel_slots.len());
            for (n, channel) in channel_slots.iter().enumerate() {
                let (fetch, fetches) = join(path.at("fetch", n), 1, MEMORY_DEPTH, &slot, channel);
                let (fill, fills) = join(path.at("fill", n), 1, FILL_DEPTH, channel, &slot);
                memory.push((fetch, fills));
                of_channel[n].push((fetches, fill));
            }
            let ports = self.slice_ports(&path, &slot, memory, slices);
            tile.fill(&slot, Slice::new(path, self.slice_config(number), ports));
        }
        for (n, (slot, ports)) in channel_slots.iter().zip(of_channel).enumerate() {
            let path = root.at("channel", group as usize * n_channels as usize + n);
            let config = channel_config(self.config, &self.map);
            tile.fill(slot, Channel::new(path, config, ports, storage.clone()));
        }
    }

    fn slice_ports(
        &self,
        path: &Path,
        slot: &Slot,
        memory: Vec<slice::ChannelPorts>,
        slices: &mut Slices,
    ) -> slice::Ports {
        let latency = self.way.slice_link;
        let depth = 2 * latency + self.config.l2.queue_depth;
        let (to_slice, requests) = join(path.child("request"), latency, depth, &self.request.1, slot);
        let (answers, from_slice) = join(
            path.child("answer"),
            latency,
            self.depth(latency),
            slot,
            &self.response.1,
        );
        let (command, commands) = join(path.child("command"), 1, 2, &Slot::outside(), slot);
        slices.to_slices.push(to_slice);
        slices.from_slices.push(from_slice);
        slices.commands.push(command);
        slice::Ports {
            requests,
            answers,
            commands,
            memory,
        }
    }

    /// Messages of a link between tiles: as many wait as a port may hold, while credits for the others are on their way.
    fn depth(&self, latency: u32) -> u32 {
        2 * latency + self.config.xbar.queue_depth
    }

    fn slice_config(&self, number: u32) -> slice::Config {
        let l2 = &self.config.l2;
        let n_sms = self.config.n_sms();
        let side = number * l2.partitions / l2.slices;
        let outside = OUTSIDE_L1 + IN_L1 + 2 * self.way.cycles();
        let khz = self.config.clocks.l2_khz;
        slice::Config {
            bytes: l2.size / l2.slices,
            associativity: l2.associativity,
            latency: domain_cycles(l2.hit_latency.saturating_sub(outside), khz, self.config).max(1),
            far_latency: domain_cycles(l2.far_latency, khz, self.config),
            near_sms: (side * n_sms / l2.partitions) as u16..((side + 1) * n_sms / l2.partitions) as u16,
            mshr_entries: l2.mshr_entries,
            waiting: l2.mshr_entries,
            memory_depth: MEMORY_DEPTH,
            bytes_per_cycle: l2.bytes_per_cycle,
            atomic_interval: l2.atomic_interval,
            clock: l2_clock(self.config),
            map: self.map.clone(),
        }
    }
}

/// The crossbar's and the host's ends of the links to the slices, in the order of their numbers.
#[derive(Default)]
struct Slices {
    to_slices: Vec<OutPort<Box<Packet>>>,
    from_slices: Vec<InPort<Box<Packet>>>,
    commands: Vec<OutPort<SliceCommand>>,
}

fn channel_config(gpu: &GpuConfig, map: &Arc<AddressMap>) -> channel::Config {
    let hbm = &gpu.hbm;
    channel::Config {
        banks: hbm.banks,
        bank_groups: hbm.bank_groups,
        row_bytes: hbm.row_bytes,
        queue_depth: hbm.queue_depth,
        burst_bytes: hbm.burst_bytes,
        bus_bytes_per_command_cycle: hbm.bus_bytes_per_command_cycle,
        latency_extra: interface_cycles(gpu),
        timing: hbm.timing,
        clock: memory_clock(gpu),
        map: map.clone(),
    }
}

/// Command cycles in controller and interface: what the stages of a miss leave of `hbm.access_latency`.
fn interface_cycles(gpu: &GpuConfig) -> u32 {
    let Hbm { timing, .. } = gpu.hbm;
    let burst = gpu.hbm.burst_bytes.div_ceil(gpu.hbm.bus_bytes_per_command_cycle);
    let below_l2 = gpu
        .hbm
        .access_latency
        .saturating_sub(gpu.l2.hit_latency + AROUND_CHANNEL);
    let of_banks = 1 + timing.t_rcd + timing.cl + burst;
    domain_cycles(below_l2, gpu.clocks.memory_khz, gpu).saturating_sub(of_banks)
}

fn l2_clock(gpu: &GpuConfig) -> Domain {
    Domain::new(u64::from(gpu.clocks.l2_khz), u64::from(gpu.clocks.core_khz))
}

fn memory_clock(gpu: &GpuConfig) -> Domain {
    Domain::new(u64::from(gpu.clocks.memory_khz), u64::from(gpu.clocks.core_khz))
}

/// Cycles of a domain in core cycles, rounded up.
fn core_cycles(cycles: u32, khz: u32, gpu: &GpuConfig) -> u32 {
    (u64::from(cycles) * u64::from(gpu.clocks.core_khz)).div_ceil(u64::from(khz)) as u32
}

/// Core cycles in whole cycles of a domain.
fn domain_cycles(cycles: u32, khz: u32, gpu: &GpuConfig) -> u32 {
    (u64::from(cycles) * u64::from(khz) / u64::from(gpu.clocks.core_khz)) as u32
}
