//! Cluster support of the CTA manager: sends the placement of a cluster to the LSU, and counts each CTA's arrivals at the cluster barrier.

use tracing::debug;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;

use super::{Cta, CtaManager};
use crate::proto::cluster::{ClusterArrive, ClusterOpen, ClusterPlaced, ClusterPlacement, CtaPlacement, CtaResidence};
use crate::proto::launch::{CtaLaunch, Grid};
use crate::proto::warp::WarpCommand;

/// The links of a CTA manager for clusters.
pub struct ClusterPorts {
    /// Placement of each cluster, to the LSU.
    pub placed: OutPort<ClusterPlaced>,
    /// Starts and ends of CTAs, to shared memory.
    pub residence: OutPort<CtaResidence>,
    /// Arrivals of CTAs, to the GPC's cluster barrier.
    pub arrive: OutPort<ClusterArrive>,
    /// Releases, from the cluster barrier.
    pub open: InPort<ClusterOpen>,
}

warpwave_hw::show_ports!(ClusterPorts: placed, residence, arrive, open);

/// A CTA as a member of its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// Linear index of the cluster's first CTA, which identifies the cluster.
    cluster: u64,
    rank: u8,
    size: u8,
    /// Start number of the CTA in its slot.
    start: u32,
    /// Warps that have arrived since the barrier last opened, and ended warps; bit i for warp i of the CTA.
    arrived: u64,
    /// Warps that have ended, bit i for warp i.
    ended: u64,
    /// True if the CTA's arrival has been sent to the cluster barrier in this round.
    announced: bool,
}

impl Member {
    pub(super) fn of(grid: &Grid, index: u64, placement: &[CtaPlacement]) -> Self {
        let rank = grid.cluster_rank(index);
        let [x, y, z] = grid.cta_position(index);
        let [cx, cy, cz] = grid.cluster;
        // A cluster is a box of the grid: its first CTA has the lowest position in each dimension.
        let first = [x - x % cx, y - y % cy, z - z % cz].map(u64::from);
        Member {
            cluster: first[0] + u64::from(grid.grid[0]) * (first[1] + u64::from(grid.grid[1]) * first[2]),
            rank: rank as u8,
            size: placement.len() as u8,
            start: placement[rank as usize].start,
            arrived: 0,
            ended: 0,
            announced: false,
        }
    }

    /// Cluster, identified by the linear index of its first CTA.
    pub(crate) fn cluster(&self) -> u64 {
        self.cluster
    }

    /// Warps that have not arrived at the cluster barrier in this round, of the first `warps` ones.
    pub(crate) fn missing(&self, warps: u32) -> u64 {
        u64::MAX >> (64 - warps) & !self.arrived
    }

    pub(super) fn rank(&self) -> usize {
        self.rank as usize
    }

    fn arrival(&self, ended: bool) -> ClusterArrive {
        ClusterArrive {
            cluster: self.cluster,
            rank: self.rank,
            size: self.size,
            ended,
        }
    }
}

/// Cluster messages that wait for room in a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    /// To the LSU.
    placed: Vec<ClusterPlaced>,
    /// To shared memory.
    residences: Vec<CtaResidence>,
    /// To the cluster barrier.
    arrivals: Vec<ClusterArrive>,
    /// From the cluster barrier, for the schedulers.
    opened: Vec<ClusterOpen>,
}

impl Clusters {
    /// Queues the placement of an admitted CTA's cluster for the LSU.
    pub(super) fn placed(&mut self, slot: usize, placement: Option<ClusterPlacement>) {
        self.placed.extend(placement.map(|placement| ClusterPlaced {
            slot: slot as u8,
            placement,
        }));
    }

    /// Queues the start or the end of a CTA in a slot of `slot_bytes` bytes, for shared memory.
    pub(super) fn changed(&mut self, slot: usize, member: Option<Member>, slot_bytes: u32, is_resident: bool) {
        self.residences.extend(member.map(|member| CtaResidence {
            slot: slot as u8,
            start: member.start,
            slot_bytes,
            is_resident,
        }));
    }

    /// Records the arrival of a warp. The last warp's arrival is the CTA's.
    pub(super) fn arrive(&mut self, resident: &mut Cta, warp: u8) {
        let all = u64::MAX >> (64 - resident.grid.warps());
        let Some(member) = &mut resident.member else {
            return;
        };
        member.arrived |= 1 << warp;
        // Without live warps the CTA sends its end instead, which also counts as its arrival.
        if member.arrived == all && !member.announced && resident.live > 0 {
            member.announced = true;
            self.arrivals.push(member.arrival(false));
        }
    }

    /// Records the end of a warp, which counts as arrived from now on. The last warp's end is the CTA's.
    pub(super) fn ended(&mut self, resident: &mut Cta, warp: u8) {
        let Some(member) = &mut resident.member else {
            return;
        };
        member.ended |= 1 << warp;
        // The end of the CTA counts as its arrival in every later round.
        if resident.live == 0 && resident.started == resident.grid.warps() {
            self.arrivals.push(member.arrival(true));
        } else {
            self.arrive(resident, warp);
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.placed.is_empty() || !self.residences.is_empty() || !self.arrivals.is_empty() || !self.opened.is_empty()
    }
}

impl CtaManager {
    /// The slot of a new CTA, and its membership in a cluster.
    pub(super) fn slot_of(&self, launch: &CtaLaunch, now: Cycle) -> (usize, Option<Member>) {
        let Some(placement) = &launch.placement else {
            let free = self.state.ctas.iter().position(Option::is_none);
            return (free.expect("a CTA comes when a slot is free"), None);
        };
        let member = Member::of(&launch.grid, launch.index, placement);
        // GigaThread has chosen the slot: the other CTAs of the cluster have its address.
        let slot = placement[member.rank()].slot as usize;
        assert!(
            self.state.ctas[slot].is_none(),
            "{} {now}: slot {slot} is assigned to a second CTA",
            self.path
        );
        (slot, Some(member))
    }

    /// Moves cluster messages. Releases at most one cluster barrier per cycle.
    pub(super) fn run_clusters(&mut self, now: Cycle) {
        let (Some(ports), clusters) = (&mut self.ports.cluster, &mut self.state.clusters) else {
            return;
        };
        while let Some(open) = ports.open.recv(now) {
            clusters.opened.push(open);
        }
        while !clusters.placed.is_empty() && ports.placed.has_room(now) {
            ports.placed.send(now, clusters.placed.remove(0));
        }
        while !clusters.residences.is_empty() && ports.residence.has_room(now) {
            ports.residence.send(now, clusters.residences.remove(0));
        }
        while !clusters.arrivals.is_empty() && ports.arrive.has_room(now) {
            ports.arrive.send(now, clusters.arrivals.remove(0));
        }
        // Room in every link, also in unused ones: all warps of the CTA are released together.
        if !clusters.opened.is_empty() && self.ports.command.iter().all(|port| port.has_room(now)) {
            let open = clusters.opened.remove(0);
            self.open_cluster(open, now);
        }
    }

    /// Releases the warps of a CTA that have not ended from the cluster barrier.
    fn open_cluster(&mut self, open: ClusterOpen, now: Cycle) {
        let is_named = |member: Member| member.cluster == open.cluster && member.rank == open.rank;
        let mut ctas = self.state.ctas.iter_mut().flatten();
        let found = ctas.find(|cta| cta.member.is_some_and(is_named));
        // The CTA may have ended while the message was in flight.
        let Some(resident) = found else { return };
        let Some(member) = &mut resident.member else { return };
        // The next round begins. Ended warps have arrived in it already.
        member.arrived = member.ended;
        member.announced = false;
        debug!(cycle = now.0, path = %self.path, "cluster barrier of cta {} is released", resident.index);
        let live = u64::MAX >> (64 - resident.grid.warps()) & !member.ended;
        for (port, warps) in self.ports.command.iter_mut().zip(resident.slots_of(live)) {
            if warps != 0 {
                port.send(now, WarpCommand::OpenCluster(warps));
            }
        }
    }
}
