//! Builds and wires the memory side: the two crossbar networks, the L2 slices and the HBM channels.
//!
//! ```text
//!   SM tiles            crossbar tiles       memory tiles, several groups each
//!   l1 ---- request ----> [request ] --------> slice 0 --+-- channel 0
//!   l1 <--- response ---- [response] <-------- slice 1 --+-- channel 1
//! ```
//!
//! With `l2.far_lines` `copied` each slice has links to its twin in the other partition, in the same tile.
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
//! `l2.far_latency` adds to both. With copies it is the way from the near slice to its twin and back.
//!
//! A path is two links. The slice's pipe adds the cycles beyond the longest links, and those of a far partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Tile, TileBuilder};
use warpwave_hw::time::Domain;

use super::wiring::{
    Block, Blocks, FETCH, FILL, SLICE_COMMAND, SLICE_REQUEST, SLICE_RESPONSE, TWIN_REQUEST, TWIN_RESPONSE,
    XBAR_REQUEST, XBAR_RESPONSE, slice_link, sm_link, twin_link,
};
use crate::cache::replacement::NewReplacement;
use crate::config::{AROUND_CHANNEL, GpuConfig, Hbm, OUTSIDE_L1};
use crate::hbm::channel::{self, Channel};
use crate::l2::atomic::AtomicPace;
use crate::l2::slice::twin::{TwinLatency, TwinPorts};
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
        let mut tiles = Vec::new();
        let mut slices = Slices::default();
        for groups in self.groups_of_tiles() {
            let mut tile = TileBuilder::new();
            self.build_groups(&mut tile, &groups, storage, &mut slices);
            tiles.push(tile.build());
        }
        slices.0.sort_by_key(|slice| slice.number);
        let mut commands = Vec::new();
        let (mut to_slices, mut from_slices) = (Vec::new(), Vec::new());
        for slice in slices.0 {
            to_slices.push(slice.to_slice);
            from_slices.push(slice.from_slice);
            commands.push(slice.commands);
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
        let requests = Crossbar::new(path.child("request"), config, self.from_sms, to_slices);
        self.blocks.fill(&mut self.request, Block::XbarRequest, requests);
        let config = network(Direction::Response, xbar.response_bytes_per_cycle);
        let responses = Crossbar::new(path.child("response"), config, from_slices, self.to_sms);
        self.blocks.fill(&mut self.response, Block::XbarResponse, responses);
        tiles.splice(0..0, [self.request.build(), self.response.build()]);
        (tiles, commands)
    }

    /// The groups of each memory tile. A slice and its twin are in one tile.
    fn groups_of_tiles(&self) -> Vec<Vec<u32>> {
        let n = self.map.groups();
        let has_twins = self.map.twin(0).is_some();
        if has_twins && !n.is_multiple_of(2) {
            // The partitions divide a group, so twins connect all groups.
            return vec![(0..n).collect()];
        }
        // A unit is a group, or two groups of twins.
        let units: Vec<Vec<u32>> = match has_twins {
            true => (0..n / 2).map(|group| vec![group, group + n / 2]).collect(),
            false => (0..n).map(|group| vec![group]).collect(),
        };
        let group_components = self.map.slices_per_group() + self.map.channels_per_group();
        let unit_components = group_components * units[0].len() as u32;
        let units_per_tile = (TILE_COMPONENTS / unit_components).max(1);
        units
            .chunks(units_per_tile as usize)
            .map(|units| units.concat())
            .collect()
    }

    /// Adds the slices and channels of groups to a tile.
    fn build_groups(&self, tile: &mut TileBuilder, groups: &[u32], storage: &Arc<Storage>, slices: &mut Slices) {
        let Blocks { config, path: root, .. } = &self.blocks;
        let (n_slices, n_channels) = (self.map.slices_per_group(), self.map.channels_per_group());
        let blocks = |name, number, block, tile: &mut TileBuilder| {
            let mut blocks = Blocks::new(config, root.at(name, number as usize));
            blocks.reserve(tile, &[block]);
            (number, blocks)
        };
        // Slots before links: a link needs the slots of both its ends.
        let reserve = |&group: &u32| {
            let channels = group * n_channels..(group + 1) * n_channels;
            let channels: Vec<_> = channels.map(|n| blocks("channel", n, Block::Channel, tile)).collect();
            let slices = group * n_slices..(group + 1) * n_slices;
            let slices: Vec<_> = slices.map(|n| blocks("l2_slice", n, Block::Slice, tile)).collect();
            (channels, slices)
        };
        let mut groups: Vec<_> = groups.iter().map(reserve).collect();
        let mut twins = self.connect_twins(groups.iter_mut().flat_map(|(_, slices)| slices).collect());
        for (channels, of_group) in &groups {
            let mut of_channel: Vec<Vec<channel::SlicePorts>> = (0..n_channels).map(|_| Vec::new()).collect();
            for (number, slice) in of_group {
                let mut memory = Vec::with_capacity(channels.len());
                for (n, (_, channel)) in channels.iter().enumerate() {
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
                let ports = self.slice_ports((*number, slice), memory, twins.remove(number), slices);
                let component = Slice::new(slice.path.clone(), self.slice_config(*number), ports);
                slice.fill(tile, Block::Slice, component);
            }
            for ((number, channel), ports) in channels.iter().zip(of_channel) {
                let of_channel = channel_config(config, *number, &self.map);
                let component = Channel::new(channel.path.clone(), of_channel, ports, storage.clone());
                channel.fill(tile, Block::Channel, component);
            }
        }
    }

    /// Makes the links between the slices of a tile and their twins. Returns the ports of each slice.
    fn connect_twins(&self, mut slices: Vec<&mut (u32, Blocks<'_>)>) -> BTreeMap<u32, TwinPorts> {
        let numbers: Vec<u32> = slices.iter().map(|(number, _)| *number).collect();
        let twin_of = |number: u32| {
            let twin = u32::from(self.map.twin(number as u16)?);
            Some(
                numbers
                    .iter()
                    .position(|&of| of == twin)
                    .expect("twins are in one tile"),
            )
        };
        // Senders and receivers, by slice.
        let (mut senders, mut receivers) = (BTreeMap::new(), BTreeMap::new());
        for (n, &number) in numbers.iter().enumerate() {
            let Some(twin) = twin_of(number) else { continue };
            let [slice, other] = slices.get_disjoint_mut([n, twin]).expect("a twin is another slice");
            slice.1.borrow(Block::TwinSlice, &other.1, Block::Slice);
            let (to_requests, requests) = slice.1.join(&TWIN_REQUEST);
            let (to_responses, responses) = slice.1.join(&TWIN_RESPONSE);
            senders.insert(number, (to_requests, to_responses));
            receivers.insert(numbers[twin], (requests, responses));
        }
        let both = senders.into_iter().zip(receivers);
        let ports = both.map(|((number, (to_requests, to_responses)), (_, (requests, responses)))| {
            let ports = TwinPorts {
                to_requests,
                requests,
                to_responses,
                responses,
            };
            (number, ports)
        });
        ports.collect()
    }

    fn slice_ports(
        &self,
        (number, slice): (u32, &Blocks<'_>),
        memory: Vec<slice::ChannelPorts>,
        twin: Option<TwinPorts>,
        slices: &mut Slices,
    ) -> slice::Ports {
        let (to_slice, requests) = slice.join_to(&self.blocks, &SLICE_REQUEST);
        let (responses, from_slice) = slice.join_to(&self.blocks, &SLICE_RESPONSE);
        let (command, commands) = slice.join_to(&self.blocks, &SLICE_COMMAND);
        slices.0.push(SliceEnds {
            number,
            to_slice,
            from_slice,
            commands: command,
        });
        slice::Ports {
            requests,
            responses,
            commands,
            memory,
            twin,
        }
    }

    fn slice_config(&self, number: u32) -> slice::Config {
        let config = self.blocks.config;
        let l2 = &config.l2;
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
            near_sms: config.sms_of_partition(side),
            mshr_sectors: l2.mshr_entries,
            mshr_targets: l2.mshr_targets,
            memory_depth: l2.memory_queue,
            bytes_per_cycle: l2.bytes_per_cycle,
            atomic: AtomicPace {
                round: l2.atomic_centicycles,
                float_add: l2.float_add_centicycles,
            },
            clock: l2_clock(config),
            twin: self.map.twin(number as u16).map(|_| twin_latency(config)),
            map: self.map.clone(),
        }
    }
}

/// What `l2.far_latency` leaves beyond the two links of a crossing, about half of it each way.
fn twin_latency(config: &GpuConfig) -> TwinLatency {
    let beyond_links = config.l2.far_latency - 2 * twin_link(config);
    let cycles = domain_cycles(beyond_links, config.clocks.l2_khz, config).max(2);
    TwinLatency {
        request: cycles / 2,
        response: cycles - cycles / 2,
    }
}

/// The crossbar's and the host's ends of the links to a slice.
struct SliceEnds {
    number: u32,
    to_slice: OutPort<Box<Packet>>,
    from_slice: InPort<Box<Packet>>,
    commands: OutPort<SliceCommand>,
}

/// The ends of all slices, in the order of the tiles.
#[derive(Default)]
struct Slices(Vec<SliceEnds>);

fn channel_config(gpu: &GpuConfig, number: u32, map: &Arc<AddressMap>) -> channel::Config {
    let outside_banks = outside_banks(gpu);
    let response_latency = gpu.hbm.latency_extra.min(outside_banks);
    channel::Config {
        hbm: gpu.hbm,
        number,
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
