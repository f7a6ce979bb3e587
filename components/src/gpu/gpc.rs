//! Wires what the SMs of a GPC have among themselves: the network to each other's shared memory, and the barrier of clusters.
//!
//! ```text
//!   SM tiles                tile of the GPC            SM tiles
//!   lsu ------ request ----> [request ] -------------> shared
//!   lsu <----- answer ------ [response] <------------- shared
//!   cta <----- open, arrive -> [barrier]
//! ```
//!
//! The total `cluster.load_latency` is kept by four links of equal length, as long as a link between tiles may be; what is left
//! passes in the shared memory that is read.

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Slot, Tile, TileBuilder};
use warpwave_hw::time::Domain;

use crate::config::{GpuConfig, OUTSIDE_L1};
use crate::front::cluster_barrier::{self, ClusterBarrier};
use crate::gpu::memory::LONGEST_LINK;
use crate::gpu::sm::{SmSlots, join};
use crate::proto::cluster::{ClusterArrive, ClusterOpen};
use crate::proto::header::Direction;
use crate::proto::mem::Packet;
use crate::sm::cta;
use crate::sm::lsu::{shared, unit};
use crate::xbar::crossbar::{Config, Crossbar};

/// Cycles of a remote load outside the links of the network: as an L1 hit's, but for the two links of the L1.
const OUTSIDE: u32 = OUTSIDE_L1 - 2;

/// Cycles of a barrier outside its links: from issue to the CTA manager, and from there to the scheduler.
const BARRIER_OUTSIDE: u32 = 2;

/// Cycles of one of the network's four links.
fn way(config: &GpuConfig) -> u32 {
    ((config.cluster.load_latency.saturating_sub(OUTSIDE + 1)) / 4).clamp(1, LONGEST_LINK)
}

/// Cycles in the shared memory that is read.
fn line_latency(config: &GpuConfig) -> u32 {
    config
        .cluster
        .load_latency
        .saturating_sub(OUTSIDE + 4 * way(config))
        .max(1)
}

/// An SM's ends of the links of its GPC.
pub(super) struct SmCluster {
    request: OutPort<Box<Packet>>,
    answer: InPort<Box<Packet>>,
    lines: shared::LinePorts,
    arrive: OutPort<ClusterArrive>,
    open: InPort<ClusterOpen>,
}

impl SmCluster {
    /// The ends, to those who hold them.
    pub(super) fn split(
        self,
        sm: &Path,
        cta: &Slot,
        lsu: &Slot,
    ) -> (cta::ClusterPorts, unit::ClusterPorts, shared::LinePorts) {
        let (seated, from_cta) = join(sm.child("lsu.seated"), 1, 2, cta, lsu);
        let of_cta = cta::ClusterPorts {
            seated,
            arrive: self.arrive,
            open: self.open,
        };
        let of_lsu = unit::ClusterPorts {
            seated: from_cta,
            request: self.request,
            answer: self.answer,
        };
        (of_cta, of_lsu, self.lines)
    }
}

/// The tile of a GPC while SMs are joined to it.
pub(super) struct Gpc<'a> {
    config: &'a GpuConfig,
    path: Path,
    tile: TileBuilder,
    request: Slot,
    response: Slot,
    barrier: Slot,
    requests: Vec<InPort<Box<Packet>>>,
    to_shared: Vec<OutPort<Box<Packet>>>,
    responses: Vec<InPort<Box<Packet>>>,
    to_lsu: Vec<OutPort<Box<Packet>>>,
    barrier_ports: cluster_barrier::Ports,
}

impl<'a> Gpc<'a> {
    /// No SM joined yet.
    pub(super) fn new(config: &'a GpuConfig, path: Path) -> Self {
        let mut tile = TileBuilder::new();
        let (request, response, barrier) = (tile.slot(), tile.slot(), tile.slot());
        Gpc {
            config,
            path,
            tile,
            request,
            response,
            barrier,
            requests: Vec::new(),
            to_shared: Vec::new(),
            responses: Vec::new(),
            to_lsu: Vec::new(),
            barrier_ports: cluster_barrier::Ports {
                arrive: Vec::new(),
                open: Vec::new(),
            },
        }
    }

    /// Joins the next SM of the GPC.
    pub(super) fn connect(&mut self, sm: &Path, slots: &SmSlots) -> SmCluster {
        let way = way(self.config);
        // As many wait as a port may hold, while credits for the others are on their way.
        let depth = 2 * way + self.config.xbar.queue_depth;
        let (request, requests) = join(sm.child("cluster.request"), way, depth, &slots.lsu, &self.request);
        let (to_shared, input) = join(sm.child("shared.line"), way, depth, &self.request, &slots.shared);
        let (output, responses) = join(sm.child("cluster.response"), way, depth, &slots.shared, &self.response);
        let (to_lsu, answer) = join(sm.child("lsu.line"), way, depth, &self.response, &slots.lsu);
        let (arrive, arrivals) = join(sm.child("cluster.arrive"), way, depth, &slots.cta, &self.barrier);
        let (opens, open) = join(sm.child("cluster.open"), way, depth, &self.barrier, &slots.cta);
        self.requests.push(requests);
        self.to_shared.push(to_shared);
        self.responses.push(responses);
        self.to_lsu.push(to_lsu);
        self.barrier_ports.arrive.push(arrivals);
        self.barrier_ports.open.push(opens);
        SmCluster {
            request,
            answer,
            lines: shared::LinePorts {
                input,
                output,
                latency: line_latency(self.config),
            },
            arrive,
            open,
        }
    }

    /// The tile.
    pub(super) fn build(mut self) -> Tile {
        let path = self.path.child("cluster");
        let network = |direction| Config {
            direction,
            bytes_per_cycle: self.config.cluster.bytes_per_cycle,
            clock: Domain::new(1, 1),
        };
        let request = network(Direction::Request);
        let response = network(Direction::Response);
        self.tile.fill(
            &self.request,
            Crossbar::new(path.child("request"), request, self.requests, self.to_shared),
        );
        self.tile.fill(
            &self.response,
            Crossbar::new(path.child("response"), response, self.responses, self.to_lsu),
        );
        let outside = BARRIER_OUTSIDE + 2 * way(self.config);
        let delay = self.config.cluster.barrier_latency.saturating_sub(outside);
        self.tile.fill(
            &self.barrier,
            ClusterBarrier::new(path.child("barrier"), delay.into(), self.barrier_ports),
        );
        self.tile.build()
    }
}
