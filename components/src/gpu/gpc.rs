//! Builds and wires the tile of a GPC: the network between the shared memories of its SMs, and the cluster barrier.
//!
//! ```text
//!   SM tiles                tile of the GPC            SM tiles
//!   lsu, tma -- request ---> [request ] -------------> shared
//!   lsu, tma <-- response -- [response] <------------- shared
//!   cta <----- open, arrive -> [barrier]
//! ```
//!
//! A remote load crosses four links within `cluster.load_latency`, two of each SM. The latency of a link between tiles is bounded; the
//! remote shared memory adds the rest. The two links of an SM are longer by its `cluster.sm_distances`, together.

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Tile, TileBuilder};
use warpwave_hw::time::Domain;

use super::wiring::{
    BULK_REQUEST, BULK_RESPONSE, Block, Blocks, CLUSTER_ARRIVE, CLUSTER_OPEN, CLUSTER_REQUEST, CLUSTER_RESPONSE,
    LSU_LINE, OUTSIDE_CLUSTER, PLACED, RESIDENCE, SHARED_LINE, TMA_TRAP, cluster_link,
};
use crate::config::GpuConfig;
use crate::front::cluster_barrier::{self, ClusterBarrier};
use crate::proto::cluster::{ClusterArrive, ClusterOpen, CtaResidence};
use crate::proto::header::Direction;
use crate::proto::launch::Trap;
use crate::proto::mem::Packet;
use crate::sm::{cta, lsu, shared, tma};
use crate::xbar::crossbar::{Config, Crossbar};

/// Cycles of a cluster barrier outside its links: 1 from issue to the CTA manager, 1 from there to the scheduler.
const BARRIER_OUTSIDE: u32 = 2;

/// Cycles in the remote shared memory: `cluster.load_latency` less the links and the stages of the requesting SM.
fn line_latency(config: &GpuConfig) -> u32 {
    let outside = OUTSIDE_CLUSTER + 4 * cluster_link(config);
    config.cluster.load_latency.saturating_sub(outside).max(1)
}

/// An SM's ends of the links of its GPC.
pub(super) struct SmCluster {
    request: OutPort<Box<Packet>>,
    response: InPort<Box<Packet>>,
    lines: shared::LinePorts,
    bulk_request: OutPort<Box<Packet>>,
    bulk_response: InPort<Box<Packet>>,
    arrive: OutPort<ClusterArrive>,
    open: InPort<ClusterOpen>,
}

/// The ends of an SM, by block.
pub(super) struct SplitCluster {
    pub cta: cta::ClusterPorts,
    /// Traps of the engine, to the CTA manager.
    pub engine_trap: InPort<Box<Trap>>,
    pub lsu: lsu::ClusterPorts,
    pub engine: tma::RemotePorts,
    pub lines: shared::LinePorts,
    /// Starts and ends of CTAs, to shared memory.
    pub residence: InPort<CtaResidence>,
}

impl SmCluster {
    /// Splits the ends by block.
    pub(super) fn split(self, sm: &Blocks<'_>) -> SplitCluster {
        let (placed, placed_from_cta) = sm.join(&PLACED);
        let (residence, residence_from_cta) = sm.join(&RESIDENCE);
        let (trap, engine_trap) = sm.join(&TMA_TRAP);
        let cta = cta::ClusterPorts {
            placed,
            residence,
            arrive: self.arrive,
            open: self.open,
        };
        let lsu = lsu::ClusterPorts {
            placed: placed_from_cta,
            request: self.request,
            response: self.response,
        };
        let engine = tma::RemotePorts {
            request: self.bulk_request,
            response: self.bulk_response,
            trap,
        };
        SplitCluster {
            cta,
            engine_trap,
            lsu,
            engine,
            lines: self.lines,
            residence: residence_from_cta,
        }
    }
}

/// The tile of a GPC under construction, while SMs are connected to it.
pub(super) struct Gpc<'a> {
    blocks: Blocks<'a>,
    tile: TileBuilder,
    requests: Vec<InPort<Box<Packet>>>,
    to_shared: Vec<OutPort<Box<Packet>>>,
    responses: Vec<InPort<Box<Packet>>>,
    to_lsu: Vec<OutPort<Box<Packet>>>,
    bulk_requests: Vec<InPort<Box<Packet>>>,
    to_engine: Vec<OutPort<Box<Packet>>>,
    barrier: cluster_barrier::Ports,
}

impl<'a> Gpc<'a> {
    /// A GPC without SMs.
    pub(super) fn new(config: &'a GpuConfig, path: Path) -> Self {
        let mut tile = TileBuilder::new();
        let mut blocks = Blocks::new(config, path.child("cluster"));
        blocks.reserve(
            &mut tile,
            &[Block::ClusterRequest, Block::ClusterResponse, Block::ClusterBarrier],
        );
        Gpc {
            blocks,
            tile,
            requests: Vec::new(),
            to_shared: Vec::new(),
            responses: Vec::new(),
            to_lsu: Vec::new(),
            bulk_requests: Vec::new(),
            to_engine: Vec::new(),
            barrier: cluster_barrier::Ports {
                arrive: Vec::new(),
                open: Vec::new(),
            },
        }
    }

    /// Connects the next SM of the GPC. Returns the SM's ends.
    pub(super) fn connect(&mut self, sm: &Blocks<'_>) -> SmCluster {
        let distances = &self.blocks.config.cluster.sm_distances;
        let distance = distances
            .get(self.requests.len())
            .or(distances.last())
            .copied()
            .unwrap_or(0);
        // On the way out, and on the way back.
        let (out, back) = (distance.div_ceil(2), distance / 2);
        let (request, requests) = sm.join_far(&self.blocks, &CLUSTER_REQUEST, out);
        let (to_shared, input) = sm.join_far(&self.blocks, &SHARED_LINE, out);
        let (output, responses) = sm.join_far(&self.blocks, &CLUSTER_RESPONSE, back);
        let (to_lsu, response) = sm.join_far(&self.blocks, &LSU_LINE, back);
        let (bulk_request, bulk_requests) = sm.join_far(&self.blocks, &BULK_REQUEST, out);
        let (to_engine, bulk_response) = sm.join_far(&self.blocks, &BULK_RESPONSE, back);
        let (arrive, arrivals) = sm.join_to(&self.blocks, &CLUSTER_ARRIVE);
        let (opens, open) = sm.join_to(&self.blocks, &CLUSTER_OPEN);
        self.requests.push(requests);
        self.to_shared.push(to_shared);
        self.responses.push(responses);
        self.to_lsu.push(to_lsu);
        self.bulk_requests.push(bulk_requests);
        self.to_engine.push(to_engine);
        self.barrier.arrive.push(arrivals);
        self.barrier.open.push(opens);
        SmCluster {
            request,
            response,
            lines: shared::LinePorts {
                input,
                output,
                latency: line_latency(self.blocks.config),
            },
            bulk_request,
            bulk_response,
            arrive,
            open,
        }
    }

    /// Builds the tile.
    pub(super) fn build(self) -> Tile {
        let Gpc { blocks, mut tile, .. } = self;
        let Blocks { config, path, .. } = &blocks;
        let network = |direction| Config {
            direction,
            bytes_per_cycle: config.cluster.bytes_per_cycle,
            // The network runs at the core clock, unlike the crossbar to the L2.
            clock: Domain::new(1, 1),
            window: 1,
        };
        let requests = network(Direction::Request);
        // First the LSU of each SM, then the engine of each: a packet's `sm` is the number of its input.
        let inputs = self.requests.into_iter().chain(self.bulk_requests).collect();
        let requests = Crossbar::new(path.child("request"), requests, inputs, self.to_shared);
        blocks.fill(&mut tile, Block::ClusterRequest, requests);
        let responses = network(Direction::Response);
        // The engines' outputs follow those of the LSUs.
        let outputs = self.to_lsu.into_iter().chain(self.to_engine).collect();
        let responses = Crossbar::new(path.child("response"), responses, self.responses, outputs);
        blocks.fill(&mut tile, Block::ClusterResponse, responses);
        // One link to the barrier unit and one back. The unit waits for the rest.
        let outside = BARRIER_OUTSIDE + 2 * cluster_link(config);
        let delay = config.cluster.barrier_latency.saturating_sub(outside);
        let barrier = ClusterBarrier::new(path.child("barrier"), delay.into(), self.barrier);
        blocks.fill(&mut tile, Block::ClusterBarrier, barrier);
        tile.build()
    }
}
