//! The table of the machine's links, and the functions that make a link from a row.
//!
//! A row gives message type, path, latency, depth, sender and receiver. The path starts at the link's owner, named above each part of the
//! table. Latency (cycles) and depth (messages) are numbers, or functions of the configuration.
//! The depth of a hardware queue is a preset key. Other depths are assumed: large enough for full rate while credits return.

use std::marker::PhantomData;
use std::sync::Arc;

use warpwave_hw::component::Component;
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{HORIZON, TileBuilder, TileSlot};

use crate::config::GpuConfig;
use crate::proto::bulk::BulkInst;
use crate::proto::cluster::{ClusterArrive, ClusterOpen, ClusterPlaced, CtaResidence};
use crate::proto::constant::ConstantLine;
use crate::proto::issue::{Issue, Release};
use crate::proto::launch::{CtaLaunch, Grid, GridEvent, SmEvent, Trap};
use crate::proto::mem::{Packet, SliceCommand};
use crate::proto::warp::{LsuAck, Resolved, WarpCommand, WarpEvent, WarpInfo, WarpInst};

/// A block with links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    Host,
    GigaThread,
    Cta,
    Lsu,
    BeforeL1,
    L1,
    Shared,
    Tma,
    Constant,
    Scheduler,
    Dispatch,
    MathPipe,
    BranchUnit,
    ClusterRequest,
    ClusterResponse,
    ClusterBarrier,
    XbarRequest,
    XbarResponse,
    Slice,
    /// The slice of the other partition with copies of this slice's lines.
    TwinSlice,
    Channel,
}

/// A row of the table of links.
pub(super) struct Link<T> {
    path: &'static str,
    latency: fn(&GpuConfig) -> u32,
    depth: fn(&GpuConfig) -> u32,
    from: Block,
    to: Block,
    message: PhantomData<fn(T)>,
}

macro_rules! links {
    ($($name:ident: $message:ty = $path:literal, $latency:tt, $depth:tt, $from:ident -> $to:ident;)+) => {
        $(pub(super) const $name: Link<$message> = Link {
            path: $path,
            latency: links!(@ $latency),
            depth: links!(@ $depth),
            from: Block::$from,
            to: Block::$to,
            message: PhantomData,
        };)+
    };
    (@ $number:literal) => { |_| $number };
    (@ $function:ident) => { $function };
}

// Owner: the machine.
links! {
    // link             message           path                   latency       depth          from -> to
    GRID:               Arc<Grid>       = "gigathread.grid",     1,            2,             Host -> GigaThread;
    GRID_EVENT:         GridEvent       = "gigathread.event",    1,            4,             GigaThread -> Host;
}

// Owner: an SM. Links to the rest of the chip.
links! {
    CTA_LAUNCH:         CtaLaunch       = "cta.launch",          launch_link,  launch_queue,  GigaThread -> Cta;
    CTA_EVENT:          SmEvent         = "cta.event",           launch_link,  8,             Cta -> GigaThread;
    XBAR_REQUEST:       Box<Packet>     = "xbar.request",        sm_link,      sm_depth,      L1 -> XbarRequest;
    XBAR_RESPONSE:      Box<Packet>     = "l1.return",           sm_link,      sm_depth,      XbarResponse -> L1;
    CLUSTER_REQUEST:    Box<Packet>     = "cluster.request",     cluster_link, cluster_depth, Lsu -> ClusterRequest;
    SHARED_LINE:        Box<Packet>     = "shared.line",         cluster_link, cluster_depth, ClusterRequest -> Shared;
    CLUSTER_RESPONSE:   Box<Packet>     = "cluster.response",    cluster_link, cluster_depth, Shared -> ClusterResponse;
    LSU_LINE:           Box<Packet>     = "lsu.line",            cluster_link, cluster_depth, ClusterResponse -> Lsu;
    BULK_REQUEST:       Box<Packet>     = "cluster.bulk",        cluster_link, cluster_depth, Tma -> ClusterRequest;
    BULK_RESPONSE:      Box<Packet>     = "tma.remote",          cluster_link, cluster_depth, ClusterResponse -> Tma;
    CLUSTER_ARRIVE:     ClusterArrive   = "cluster.arrive",      cluster_link, cluster_depth, Cta -> ClusterBarrier;
    CLUSTER_OPEN:       ClusterOpen     = "cluster.open",        cluster_link, cluster_depth, ClusterBarrier -> Cta;
}

// Owner: an SM. Links between its blocks.
links! {
    SHARED:             Box<WarpInst>   = "shared",              1,            2,             Lsu -> Shared;
    L1_REQUEST:         Box<Packet>     = "l1.request",          1,            lookup_depth,  Lsu -> L1;
    L1_RESPONSE:        Box<Packet>     = "lsu.response",        1,            result_depth,  L1 -> Lsu;
    BEFORE_L1_REQUEST:  Box<Packet>     = "before_l1.request",   1,            lookup_depth,  Lsu -> BeforeL1;
    BEFORE_L1_RESPONSE: Box<Packet>     = "before_l1.response",  1,            result_depth,  BeforeL1 -> Lsu;
    TRAP:               Box<Trap>       = "cta.trap",            1,            4,             Lsu -> Cta;
    SHARED_TRAP:        Box<Trap>       = "cta.shared_trap",     1,            4,             Shared -> Cta;
    PLACED:             ClusterPlaced   = "lsu.placed",          1,            2,             Cta -> Lsu;
    RESIDENCE:          CtaResidence    = "shared.residence",    1,            2,             Cta -> Shared;
    CONSTANT:           ConstantLine    = "constant.load",       1,            load_lines,    Lsu -> Constant;
    CONSTANT_FILL:      ConstantLine    = "lsu.constant",        1,            load_lines,    Constant -> Lsu;
    TMA_TRAP:           Box<Trap>       = "cta.bulk_trap",       1,            4,             Tma -> Cta;
    TMA:                BulkInst        = "tma",                 1,            2,             Lsu -> Tma;
    TMA_L1_REQUEST:     Box<Packet>     = "l1.bulk",             1,            2,             Tma -> L1;
    TMA_L1_RESPONSE:    Box<Packet>     = "tma.response",        1,            2,             L1 -> Tma;
    TMA_LINE:           Box<Packet>     = "shared.bulk",         1,            2,             Tma -> Shared;
    TMA_LINE_RESPONSE:  Box<Packet>     = "tma.line",            1,            2,             Shared -> Tma;
}

// Owner: a sub-core.
links! {
    COMMAND:            WarpCommand     = "command",             1,            4,             Cta -> Scheduler;
    WARP_INFO:          WarpInfo        = "start",               1,            4,             Cta -> Dispatch;
    EVENT:              WarpEvent       = "event",               1,            4,             Scheduler -> Cta;
    ISSUE:              Issue           = "issue",               1,            issue_depth,   Scheduler -> Dispatch;
    RELEASE:            Release         = "release",             1,            8,             Dispatch -> Scheduler;
    RESOLVED:           Resolved        = "resolved",            1,            24,            BranchUnit -> Scheduler;
    ACK:                LsuAck          = "ack",                 1,            32,            Lsu -> Scheduler;
    IMMEDIATE:          ConstantLine    = "constant",            1,            32,            Scheduler -> Constant;
    IMMEDIATE_FILL:     ConstantLine    = "constant_fill",       1,            32,            Constant -> Scheduler;
    BRANCH:             Box<WarpInst>   = "branch.in",           1,            4,             Dispatch -> BranchUnit;
    BRANCH_SPENT:       Box<WarpInst>   = "branch.spent",        1,            4,             BranchUnit -> Dispatch;
    MEMORY:             Box<WarpInst>   = "memory",              1,            memory_queue,  Dispatch -> Lsu;
    MEMORY_DONE:        Box<WarpInst>   = "memory_done",         1,            24,            Lsu -> Dispatch;
    SHARED_DONE:        Box<WarpInst>   = "shared_done",         1,            24,            Shared -> Dispatch;
    BULK_DONE:          Box<WarpInst>   = "bulk_done",           1,            4,             Tma -> Dispatch;
    PRODUCTS:           Box<WarpInst>   = "products",            1,            4,             MathPipe -> Shared;
}

// Owner: a math pipe. The builder sets the depth of PIPE_DONE.
links! {
    PIPE:               Box<WarpInst>   = "in",                  1,            4,             Dispatch -> MathPipe;
    PIPE_DONE:          Box<WarpInst>   = "out",                 1,            4,             MathPipe -> Dispatch;
}

// Owner: an L2 slice. FETCH and FILL exist once for each channel of its group. The last two exist with `l2.far_lines` `copied`.
links! {
    SLICE_REQUEST:      Box<Packet>     = "request",             slice_link,   slice_queue,   XbarRequest -> Slice;
    SLICE_RESPONSE:     Box<Packet>     = "response",            slice_link,   slice_depth,   Slice -> XbarResponse;
    SLICE_COMMAND:      SliceCommand    = "command",             1,            2,             Host -> Slice;
    FETCH:              Box<Packet>     = "fetch",               1,            fetch_depth,   Slice -> Channel;
    FILL:               Box<Packet>     = "fill",                1,            2,             Channel -> Slice;
    TWIN_REQUEST:       Box<Packet>     = "twin_request",        twin_link,    twin_depth,    Slice -> TwinSlice;
    TWIN_RESPONSE:      Box<Packet>     = "twin_response",       twin_link,    twin_depth,    Slice -> TwinSlice;
}

/// Longest latency of a link between tiles, in cycles. GigaThread, slice and shared memory delay messages by the rest.
const LONGEST_LINK: u32 = (HORIZON / 2) as u32;

/// Cycles of a remote load outside the cluster network: those of an L1 hit, less its two links.
pub(super) const OUTSIDE_CLUSTER: u32 = crate::config::OUTSIDE_L1 - 2;

fn launch_link(config: &GpuConfig) -> u32 {
    config.gigathread.link_latency.min(LONGEST_LINK)
}

fn launch_queue(config: &GpuConfig) -> u32 {
    config.gigathread.launch_queue
}

/// The collector holds one of `sm.collector_entries`, the link the others.
fn issue_depth(config: &GpuConfig) -> u32 {
    config.sm.collector_entries - 1
}

fn fetch_depth(config: &GpuConfig) -> u32 {
    config.l2.memory_queue
}

/// The packets of two cycles of the L1's tag banks.
fn lookup_depth(config: &GpuConfig) -> u32 {
    2 * config.sm.l1.tag_banks
}

/// The responses to the lookups of four cycles.
fn result_depth(config: &GpuConfig) -> u32 {
    4 * config.sm.l1.tag_banks
}

/// The lines of all constant loads that wait.
fn load_lines(config: &GpuConfig) -> u32 {
    32 * config.sm.constant.indexed_loads
}

fn memory_queue(config: &GpuConfig) -> u32 {
    config.sm.lsu.queue_depth + 2
}

/// Latency of each of the four links of a cluster network, in cycles.
pub(super) fn cluster_link(config: &GpuConfig) -> u32 {
    // 1: the least time in the remote shared memory.
    let links = config.cluster.load_latency.saturating_sub(OUTSIDE_CLUSTER + 1);
    // The links of a distant SM are longer by half of its distance.
    let most = config.cluster.sm_distances.iter().copied().max().unwrap_or(0);
    (links / 4).clamp(1, LONGEST_LINK - most.div_ceil(2))
}

fn cluster_depth(config: &GpuConfig) -> u32 {
    port_depth(cluster_link(config), config.xbar.queue_depth)
}

/// Latency of the link between SM and crossbar, in core cycles: half of `xbar.latency`.
pub(super) fn sm_link(config: &GpuConfig) -> u32 {
    (xbar_latency(config) / 2).min(LONGEST_LINK)
}

fn sm_depth(config: &GpuConfig) -> u32 {
    port_depth(sm_link(config), config.xbar.queue_depth)
}

/// Latency of the link between crossbar and slice, in core cycles: the other half of `xbar.latency`.
pub(super) fn slice_link(config: &GpuConfig) -> u32 {
    (xbar_latency(config) - sm_link(config)).min(LONGEST_LINK)
}

fn slice_queue(config: &GpuConfig) -> u32 {
    port_depth(slice_link(config), config.l2.queue_depth)
}

fn slice_depth(config: &GpuConfig) -> u32 {
    port_depth(slice_link(config), config.xbar.queue_depth)
}

/// Latency of each link between a slice and its twin, in core cycles: about a quarter of `l2.far_latency`. The slices' pipes delay
/// packets by the rest.
pub(super) fn twin_link(config: &GpuConfig) -> u32 {
    (config.l2.far_latency / 4).clamp(1, LONGEST_LINK)
}

fn twin_depth(config: &GpuConfig) -> u32 {
    port_depth(twin_link(config), config.l2.queue_depth)
}

/// Depth of a link between tiles: the receiver's queue, and the messages sent during one round trip of a credit.
fn port_depth(latency: u32, queue: u32) -> u32 {
    2 * latency + queue
}

/// `xbar.latency` in core cycles, at least 2: one for each link.
fn xbar_latency(config: &GpuConfig) -> u32 {
    let cycles = u64::from(config.xbar.latency) * u64::from(config.clocks.core_khz);
    (cycles.div_ceil(config.clocks.l2_khz.into()) as u32).max(2)
}

impl<T> Link<T> {
    /// Copy of the link with another sender.
    pub(super) fn from(self, from: Block) -> Self {
        Link { from, ..self }
    }

    /// Copy of the link with another receiver.
    pub(super) fn to(self, to: Block) -> Self {
        Link { to, ..self }
    }
}

/// The blocks of one owner, each with its slot in a tile.
pub(super) struct Blocks<'a> {
    pub config: &'a GpuConfig,
    /// Path of the owner.
    pub path: Path,
    slots: Vec<(Block, TileSlot)>,
}

impl<'a> Blocks<'a> {
    /// An owner without blocks.
    pub(super) fn new(config: &'a GpuConfig, path: Path) -> Self {
        Blocks {
            config,
            path,
            slots: Vec::new(),
        }
    }

    /// Reserves the next slots of a tile for these blocks.
    pub(super) fn reserve(&mut self, tile: &mut TileBuilder, blocks: &[Block]) {
        self.slots.extend(blocks.iter().map(|&block| (block, tile.slot())));
    }

    /// Names the slot of a block of `other` as this owner's `block`.
    pub(super) fn borrow(&mut self, block: Block, other: &Blocks<'_>, of_other: Block) {
        let found = other.slots.iter().find(|(of, _)| *of == of_other);
        let (_, slot) = found.unwrap_or_else(|| panic!("{}: {of_other:?} has no slot", other.path));
        self.slots.push((block, slot.clone()));
    }

    /// Adds the host, which is outside all tiles.
    pub(super) fn add_host(&mut self) {
        self.slots.push((Block::Host, TileSlot::outside()));
    }

    /// Puts a component into the slot of its block.
    pub(super) fn fill(&self, tile: &mut TileBuilder, block: Block, component: impl Component + 'static) {
        self.fill_boxed(tile, block, Box::new(component));
    }

    /// Puts a boxed component into the slot of its block.
    pub(super) fn fill_boxed(&self, tile: &mut TileBuilder, block: Block, component: Box<dyn Component>) {
        let found = self.slots.iter().find(|(of, _)| *of == block);
        let (_, slot) = found.unwrap_or_else(|| panic!("{}: {block:?} has no slot", self.path));
        tile.fill_boxed(slot, component);
    }

    /// True if the owner has the block.
    pub(super) fn has(&self, block: Block) -> bool {
        self.slots.iter().any(|(of, _)| *of == block)
    }

    /// Makes a link between two blocks of this owner.
    pub(super) fn join<T: Send>(&self, row: &Link<T>) -> (OutPort<T>, InPort<T>) {
        self.join_among(&[self], row)
    }

    /// Makes a link between a block of this owner and a block of `other`.
    pub(super) fn join_to<T: Send>(&self, other: &Blocks<'_>, row: &Link<T>) -> (OutPort<T>, InPort<T>) {
        self.join_among(&[self, other], row)
    }

    /// Makes a link between blocks of any owners in `among`. Its path is below this owner.
    pub(super) fn join_among<T: Send>(&self, among: &[&Blocks<'_>], row: &Link<T>) -> (OutPort<T>, InPort<T>) {
        self.connect(among, row, self.path.child(row.path), (row.depth)(self.config))
    }

    /// Makes link `n` of several links with the same row. Otherwise as [`Blocks::join_to`].
    pub(super) fn join_nth<T: Send>(&self, other: &Blocks<'_>, row: &Link<T>, n: usize) -> (OutPort<T>, InPort<T>) {
        self.connect(&[self, other], row, self.path.at(row.path, n), (row.depth)(self.config))
    }

    /// Makes a link with another depth than the row's. Otherwise as [`Blocks::join_to`].
    pub(super) fn join_deep<T: Send>(&self, other: &Blocks<'_>, row: &Link<T>, depth: u32) -> (OutPort<T>, InPort<T>) {
        self.connect(&[self, other], row, self.path.child(row.path), depth)
    }

    /// Makes a link that is `extra` cycles longer than its row says. Otherwise as [`Blocks::join_to`].
    pub(super) fn join_far<T: Send>(&self, other: &Blocks<'_>, row: &Link<T>, extra: u32) -> (OutPort<T>, InPort<T>) {
        // The messages sent during the longer round trip of a credit.
        let depth = (row.depth)(self.config) + 2 * extra;
        self.connect_far(&[self, other], row, self.path.child(row.path), depth, extra)
    }

    fn connect<T: Send>(
        &self,
        among: &[&Blocks<'_>],
        row: &Link<T>,
        path: Path,
        depth: u32,
    ) -> (OutPort<T>, InPort<T>) {
        self.connect_far(among, row, path, depth, 0)
    }

    fn connect_far<T: Send>(
        &self,
        among: &[&Blocks<'_>],
        row: &Link<T>,
        path: Path,
        depth: u32,
        extra: u32,
    ) -> (OutPort<T>, InPort<T>) {
        // A panic here is a mistake in the table: a row names a block that no owner has.
        let slot = |block| {
            let mut slots = among.iter().flat_map(|blocks| &blocks.slots);
            let found = slots.find(|(of, _)| *of == block);
            &found.unwrap_or_else(|| panic!("{path}: {block:?} has no slot")).1
        };
        let (from, to) = (slot(row.from), slot(row.to));
        let latency = (row.latency)(self.config) + extra;
        link(&LinkConfig { path, latency, depth }, from, to)
    }
}
