//! A CTA manager's part in clusters: tells the LSU where their CTAs sit, and keeps each CTA's part in its cluster's barrier.

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;

use super::{CtaManager, Resident};
use crate::proto::cluster::{ClusterArrive, ClusterOpen, ClusterPlaced, ClusterPlacement};
use crate::proto::launch::{CtaLaunch, Grid};
use crate::proto::warp::WarpCommand;

/// The links of a CTA manager that clusters alone need.
pub struct ClusterPorts {
    /// To the LSU.
    pub placed: OutPort<ClusterPlaced>,
    /// To the barrier unit of the GPC.
    pub arrive: OutPort<ClusterArrive>,
    /// From it.
    pub open: InPort<ClusterOpen>,
}

warpwave_hw::show_ports!(ClusterPorts: placed, arrive, open);

/// A CTA's part in its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    /// The linear index of the cluster's first CTA.
    cluster: u64,
    rank: u8,
    size: u8,
    /// Warps that have arrived since the barrier opened last or have ended, and those that have ended.
    arrived: u64,
    ended: u64,
    /// Whether the barrier unit knows that all have arrived.
    announced: bool,
}

impl Member {
    pub(super) fn of(grid: &Grid, index: u64, size: usize) -> Self {
        let rank = grid.cluster_rank(index);
        let [x, y, z] = grid.cta_position(index);
        let [cx, cy, cz] = grid.cluster;
        let first = [x - x % cx, y - y % cy, z - z % cz].map(u64::from);
        Member {
            cluster: first[0] + u64::from(grid.grid[0]) * (first[1] + u64::from(grid.grid[1]) * first[2]),
            rank: rank as u8,
            size: size as u8,
            arrived: 0,
            ended: 0,
            announced: false,
        }
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

/// Messages for and from the cluster that wait for their turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    placed: Vec<ClusterPlaced>,
    arrivals: Vec<ClusterArrive>,
    opened: Vec<ClusterOpen>,
}

impl Clusters {
    /// A CTA was admitted to a slot.
    pub(super) fn placed(&mut self, slot: usize, placement: Option<ClusterPlacement>) {
        self.placed.extend(placement.map(|placement| ClusterPlaced {
            slot: slot as u8,
            placement,
        }));
    }

    /// Every live lane of a warp has arrived.
    pub(super) fn arrive(&mut self, resident: &mut Resident, warp: u8) {
        let all = u64::MAX >> (64 - resident.grid.warps());
        let Some(member) = &mut resident.member else {
            return;
        };
        member.arrived |= 1 << warp;
        if member.arrived == all && !member.announced && resident.live > 0 {
            member.announced = true;
            self.arrivals.push(member.arrival(false));
        }
    }

    /// A warp has ended, and counts as arrived from now on; so does the CTA when it was the last.
    pub(super) fn ended(&mut self, resident: &mut Resident, warp: u8) {
        let Some(member) = &mut resident.member else {
            return;
        };
        member.ended |= 1 << warp;
        if resident.live == 0 && resident.started == resident.grid.warps() {
            self.arrivals.push(member.arrival(true));
        } else {
            self.arrive(resident, warp);
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.placed.is_empty() || !self.arrivals.is_empty() || !self.opened.is_empty()
    }
}

impl CtaManager {
    /// The slot of a CTA that comes, the first free one if it is in no cluster, and its part in its cluster.
    pub(super) fn slot_of(&self, launch: &CtaLaunch, now: Cycle) -> (usize, Option<Member>) {
        let Some(placement) = &launch.placement else {
            let free = self.residents.iter().position(Option::is_none);
            return (free.expect("a CTA comes when a slot is free"), None);
        };
        let member = Member::of(&launch.grid, launch.index, placement.len());
        let slot = placement[member.rank()].slot as usize;
        assert!(
            self.residents[slot].is_none(),
            "{} {now}: slot {slot} is given to a second block",
            self.path
        );
        (slot, Some(member))
    }

    /// Takes and sends what concerns clusters.
    pub(super) fn run_clusters(&mut self, now: Cycle) {
        let Some(ports) = &mut self.ports.cluster else { return };
        while let Some(open) = ports.open.recv(now) {
            self.clusters.opened.push(open);
        }
        while !self.clusters.placed.is_empty() && ports.placed.has_room(now) {
            ports.placed.send(now, self.clusters.placed.remove(0));
        }
        while !self.clusters.arrivals.is_empty() && ports.arrive.has_room(now) {
            ports.arrive.send(now, self.clusters.arrivals.remove(0));
        }
        if !self.clusters.opened.is_empty() && self.ports.command.iter().all(|port| port.has_room(now)) {
            let open = self.clusters.opened.remove(0);
            self.open_cluster(open, now);
        }
    }

    /// Lets the warps of a CTA go on: those that have not ended.
    fn open_cluster(&mut self, open: ClusterOpen, now: Cycle) {
        let is_meant = |member: &Member| member.cluster == open.cluster && member.rank == open.rank;
        let found = self
            .residents
            .iter_mut()
            .flatten()
            .find(|r| r.member.as_ref().is_some_and(is_meant));
        // A CTA that ended while the message was under way has nobody left to wait.
        let Some(resident) = found else { return };
        let Some(member) = &mut resident.member else { return };
        member.arrived = member.ended;
        member.announced = false;
        let mut warps = [0u32; 8];
        for warp in (0..resident.grid.warps() as usize).filter(|warp| member.ended >> warp & 1 == 0) {
            let (subcore, slot) = resident.places[warp];
            warps[subcore as usize] |= 1 << slot;
        }
        for (port, &warps) in self.ports.command.iter_mut().zip(&warps) {
            if warps != 0 {
                port.send(now, WarpCommand::OpenCluster(warps));
            }
        }
    }

    pub(super) fn clear_clusters(&mut self) {
        self.clusters = Clusters::default();
        if let Some(ports) = &mut self.ports.cluster {
            ports.open.clear();
        }
    }
}
