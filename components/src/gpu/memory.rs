//! Builds and wires the memory side: the two crossbar networks, the L2 slices and the HBM channels.
//!
//! ```text
//!   SM tiles            crossbar tiles       memory tiles, several groups each
//!   l1 ---- request ----> [request ] --------> slice 0 --+-- channel 0
//!   l1 <--- response ---- [response] <-------- slice 1 --+-- channel 1
//! ```
//!
//! Slices and channels form gcd(slices, channels) groups ([`AddressMap`]). In a group every slice reaches every channel.
//!
//! The latencies of a configuration are totals, in core cycles on an idle machine. Each is the sum of its stages:
//!
//! | Total | Stages |
//! |---|---|
//! | `l2.hit_latency` | outside the L1, 1 to leave the L1, path to the slice, slice, path back, 1 through the L1 |
//! | `hbm.access_latency` | `l2.hit_latency`, 1 to leave the slice, 2 links, path, 1 command cycle, tRCD, CL, burst, `hbm.latency_extra` |
//!
//! A path is two links. The slice's pipe adds the cycles beyond the longest links, and those of a far partition.

use std::sync::Arc;

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Tile, TileBuilder};
use warpwave_hw::time::Domain;

use super::wiring::{
    Block, Blocks, FETCH, FILL, SLICE_COMMAND, SLICE_REQUEST, SLICE_RESPONSE, XBAR_REQUEST, XBAR_RESPONSE, slice_link,
    sm_link,
};
use crate::cache::replacement::NewReplacement;
use crate::config::{AROUND_CHANNEL, GpuConfig, Hbm, OUTSIDE_L1};
use crate::hbm::channel::{self, Channel};
use crate::l2::atomic::AtomicPace;
use crate::l2::slice::{self, Slice};
use crate::proto::header::Direction;
use crate::proto::mem::{Packet, SliceCommand};
use crate::proto::noc::AddressMap;
use crate::storage::Storage;
use crate::xbar::crossbar::{self, Crossbar};

/// Cycles of an L2 hit in the L1: one to leave it, one from the fill to the response.
const IN_L1: u32 = 2;

/// Maximum number of components of a memory tile, unless one group has more. Small tiles balance better over host threads.
const TILE_COMPONENTS: u32 = 16;

/// The memory side under construction, while SMs are connected to it.
pub(super) struct MemorySide<'a> {
    /// The two networks, and the host.
    blocks: Blocks<'a>,
    map: Arc<AddressMap>,
    /// Replacement policy of each slice.
    pub replacement: NewReplacement,
    request: TileBuilder,
    response: TileBuilder,
    from_sms: Vec<InPort<Box<Packet>>>,
    to_sms: Vec<OutPort<Box<Packet>>>,
}

impl<'a> MemorySide<'a> {
    /// A memory side without SMs.
    pub(super) fn new(config: &'a GpuConfig, root: &Path, map: &Arc<AddressMap>) -> Self {
        // A tile each: only the networks are busy in the interconnect's windows, so two host threads can run one each.
        let (mut request, mut response) = (TileBuilder::new(), TileBuilder::new());
        let mut blocks = Blocks::new(config, root.clone());
        blocks.reserve(&mut request, &[Block::XbarRequest]);
        blocks.reserve(&mut response, &[Block::XbarResponse]);
        blocks.add_host();
        MemorySide {
            blocks,
            map: map.clone(),
            replacement: config.l2.replacement.new_replacement(),
            request,
            response,
            from_sms: Vec::new(),
            to_sms: Vec::new(),
        }
    }

    /// Connects the next SM, in SM order. Returns the ports of its L1.
    pub(super) fn connect(&mut self, sm: &Blocks<'_>) -> (OutPort<Box<Packet>>, InPort<Box<Packet>>) {
        let (to_xbar, requests) = sm.join_to(&self.blocks, &XBAR_REQUEST);
        let (responses, from_xbar) = sm.join_to(&self.blocks, &XBAR_RESPONSE);
        self.from_sms.push(requests);
        self.to_sms.push(responses);
        (to_xbar, from_xbar)
    }

    /// Builds all tiles. Returns them, and the host's links to the slices.
    pub(super) fn build(mut self, storage: &Arc<Storage>) -> (Vec<Tile>, Vec<OutPort<SliceCommand>>) {
        let group_components = self.map.slices_per_group() + self.map.channels_per_group();
        let groups_per_tile = (TILE_COMPONENTS / group_components).max(1);
        let groups: Vec<u32> = (0..self.map.groups()).collect();
        let mut tiles = Vec::new();
        let mut slices = Slices::default();
        for groups in groups.chunks(groups_per_tile as usize) {
            let mut tile = TileBuilder::new();
            for &group in groups {
                self.build_group(&mut tile, group, storage, &mut slices);
            }
            tiles.push(tile.build());
        }
        let GpuConfig { xbar, .. } = self.blocks.config;
        let network = |direction, bytes_per_cycle| crossbar::Config {
            direction,
            bytes_per_cycle,
            clock: l2_clock(self.blocks.config),
            window: xbar.input_window as usize,
        };
        let path = self.blocks.path.child("xbar");
        let config = network(Direction::Request, xbar.request_bytes_per_cycle);
        let requests = Crossbar::new(path.child("request"), config, self.from_sms, slices.to_slices);
        self.blocks.fill(&mut self.request, Block::XbarRequest, requests);
        let config = network(Direction::Response, xbar.response_bytes_per_cycle);
        let responses = Crossbar::new(path.child("response"), config, slices.from_slices, self.to_sms);
        self.blocks.fill(&mut self.response, Block::XbarResponse, responses);
        tiles.splice(0..0, [self.request.build(), self.response.build()]);
        (tiles, slices.commands)
    }

    /// Adds the slices and channels of a group to a tile.
    fn build_group(&self, tile: &mut TileBuilder, group: u32, storage: &Arc<Storage>, slices: &mut Slices) {
        let Blocks { config, path: root, .. } = &self.blocks;
        let (n_slices, n_channels) = (self.map.slices_per_group(), self.map.channels_per_group());
        let blocks = |name, number, block, tile: &mut TileBuilder| {
            let mut blocks = Blocks::new(config, root.at(name, number as usize));
            blocks.reserve(tile, &[block]);
            blocks
        };
        let channels = group * n_channels..(group + 1) * n_channels;
        // Slots before links: a link needs the slots of both its ends.
        let channels: Vec<_> = channels.map(|n| blocks("channel", n, Block::Channel, tile)).collect();
        let mut of_channel: Vec<Vec<channel::SlicePorts>> = (0..n_channels).map(|_| Vec::new()).collect();
        for number in group * n_slices..(group + 1) * n_slices {
            let slice = blocks("l2_slice", number, Block::Slice, tile);
            let mut memory = Vec::with_capacity(channels.len());
            for (n, channel) in channels.iter().enumerate() {
                let (to_channel, from_slice) = slice.join_nth(channel, &FETCH, n);
                let (to_slice, from_channel) = slice.join_nth(channel, &FILL, n);
                memory.push(slice::ChannelPorts {
                    requests: to_channel,
                    responses: from_channel,
                });
                of_channel[n].push(channel::SlicePorts {
                    requests: from_slice,
                    responses: to_slice,
                });
            }
            let ports = self.slice_ports(&slice, memory, slices);
            let component = Slice::new(slice.path.clone(), self.slice_config(number), ports);
            slice.fill(tile, Block::Slice, component);
        }
        for (channel, ports) in channels.iter().zip(of_channel) {
            let of_channel = channel_config(config, &self.map);
            let component = Channel::new(channel.path.clone(), of_channel, ports, storage.clone());
            channel.fill(tile, Block::Channel, component);
        }
    }

    fn slice_ports(&self, slice: &Blocks<'_>, memory: Vec<slice::ChannelPorts>, slices: &mut Slices) -> slice::Ports {
        let (to_slice, requests) = slice.join_to(&self.blocks, &SLICE_REQUEST);
        let (responses, from_slice) = slice.join_to(&self.blocks, &SLICE_RESPONSE);
        let (command, commands) = slice.join_to(&self.blocks, &SLICE_COMMAND);
        slices.to_slices.push(to_slice);
        slices.from_slices.push(from_slice);
        slices.commands.push(command);
        slice::Ports {
            requests,
            responses,
            commands,
            memory,
        }
    }

    fn slice_config(&self, number: u32) -> slice::Config {
        let config = self.blocks.config;
        let l2 = &config.l2;
        let n_sms = config.n_sms();
        let side = number * l2.partitions / l2.slices;
        let outside = OUTSIDE_L1 + IN_L1 + 2 * (sm_link(config) + slice_link(config));
        let khz = config.clocks.l2_khz;
        slice::Config {
            bytes: l2.size / l2.slices,
            associativity: l2.associativity,
            replacement: self.replacement.clone(),
            latency: domain_cycles(l2.hit_latency.saturating_sub(outside), khz, config).max(1),
            l2_data_latency: core_cycles(l2.slice_latency, khz, config),
            far_latency: domain_cycles(l2.far_latency, khz, config),
            // SMs are split over the partitions in order, as slices are.
            near_sms: (side * n_sms / l2.partitions) as u16..((side + 1) * n_sms / l2.partitions) as u16,
            mshr_sectors: l2.mshr_entries,
            mshr_targets: l2.mshr_targets,
            memory_depth: l2.memory_queue,
            bytes_per_cycle: l2.bytes_per_cycle,
            atomic: AtomicPace {
                // In hundredths of a cycle, like the others.
                swap: 100 * l2.atomic_interval,
                other: l2.atomic_centicycles,
                float_add: l2.float_add_centicycles,
            },
            clock: l2_clock(config),
            map: self.map.clone(),
        }
    }
}

/// The crossbar's and the host's ends of the links to the slices, in slice order.
#[derive(Default)]
struct Slices {
    to_slices: Vec<OutPort<Box<Packet>>>,
    from_slices: Vec<InPort<Box<Packet>>>,
    commands: Vec<OutPort<SliceCommand>>,
}

fn channel_config(gpu: &GpuConfig, map: &Arc<AddressMap>) -> channel::Config {
    let outside_banks = outside_banks(gpu);
    let response_latency = gpu.hbm.latency_extra.min(outside_banks);
    channel::Config {
        hbm: gpu.hbm,
        enqueue_latency: outside_banks - response_latency,
        response_latency,
        clock: memory_clock(gpu),
        map: map.clone(),
    }
}

/// Command cycles of an access outside the banks: `hbm.access_latency` less the other stages of an idle miss.
fn outside_banks(gpu: &GpuConfig) -> u32 {
    let Hbm { timing, .. } = gpu.hbm;
    let burst = gpu.hbm.burst_bytes.div_ceil(gpu.hbm.bus_bytes_per_command_cycle);
    let below_l2 = gpu
        .hbm
        .access_latency
        .saturating_sub(gpu.l2.hit_latency + AROUND_CHANNEL);
    // An idle access to a closed bank: the command, the activate, the read, its data.
    let of_banks = 1 + timing.t_rcd + timing.cl + burst;
    domain_cycles(below_l2, gpu.clocks.memory_khz, gpu).saturating_sub(of_banks)
}

fn l2_clock(gpu: &GpuConfig) -> Domain {
    Domain::new(u64::from(gpu.clocks.l2_khz), u64::from(gpu.clocks.core_khz))
}

fn memory_clock(gpu: &GpuConfig) -> Domain {
    Domain::new(u64::from(gpu.clocks.memory_khz), u64::from(gpu.clocks.core_khz))
}

/// Converts core cycles to whole cycles of a domain, rounded down.
fn domain_cycles(cycles: u32, khz: u32, gpu: &GpuConfig) -> u32 {
    // Rounded down, so that the sum of the stages is not above the preset's total.
    (u64::from(cycles) * u64::from(khz) / u64::from(gpu.clocks.core_khz)) as u32
}

/// Converts cycles of a domain to whole core cycles, rounded down.
fn core_cycles(cycles: u32, khz: u32, gpu: &GpuConfig) -> u32 {
    (u64::from(cycles) * u64::from(gpu.clocks.core_khz) / u64::from(khz)) as u32
}
