//! The cluster barrier of a GPC: releases the CTAs of a cluster when all have arrived.
//!
//! ```text
//!   cta manager of each SM --ClusterArrive--> [cluster barrier]
//!                          <--ClusterOpen---
//! ```
//!
//! A CTA arrives when each of its warps has arrived or ended. An ended CTA counts as arrived in every later round. `delay` cycles after
//! the last CTA's arrival, the unit sends [`ClusterOpen`] to each CTA that has not ended.
//!
//! | Stage of `tick` | Cycles |
//! |---|---|
//! | take: record the arrivals, schedule the messages of complete clusters | 0 |
//! | send: the messages that are due, in order | `delay` after the last arrival |
//!
//! Invariant: an entry exists from a cluster's first arrival to the end of its last CTA.

use tracing::debug;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::space::MAX_CLUSTER;

use crate::front::delay_queue::DelayQueue;
use crate::proto::cluster::{ClusterArrive, ClusterOpen};

/// The links of the unit, by SM of its GPC.
pub struct Ports {
    /// From each CTA manager.
    pub arrive: Vec<InPort<ClusterArrive>>,
    /// To each CTA manager.
    pub open: Vec<OutPort<ClusterOpen>>,
}

warpwave_hw::show_ports!(Ports: arrive, open);

/// A cluster with a CTA that has arrived and a CTA that has not ended.
#[derive(Clone, Debug)]
struct Entry {
    cluster: u64,
    size: u8,
    /// CTAs that have arrived since the barrier last opened, and ended CTAs; bit i for rank i.
    arrived: u32,
    /// CTAs that have ended, bit i for rank i.
    ended: u32,
    /// SM of each CTA, within the GPC.
    sms: [u16; MAX_CLUSTER as usize],
}

impl Entry {
    /// Mask of all ranks.
    fn all(&self) -> u32 {
        (1 << self.size) - 1
    }
}

impl State {
    fn new(delay: u64) -> Self {
        State {
            entries: Vec::new(),
            opening: DelayQueue::new(delay),
            opened: 0,
        }
    }

    /// Index of a cluster's entry. Adds an entry at the cluster's first arrival.
    fn entry(&mut self, message: ClusterArrive) -> usize {
        let found = self.entries.iter().position(|entry| entry.cluster == message.cluster);
        found.unwrap_or_else(|| {
            self.entries.push(Entry {
                cluster: message.cluster,
                size: message.size,
                arrived: 0,
                ended: 0,
                sms: [0; MAX_CLUSTER as usize],
            });
            self.entries.len() - 1
        })
    }
}

/// The barrier unit of a GPC.
pub struct ClusterBarrier {
    path: Path,
    ports: Ports,
    /// Cycles from the last arrival to the release messages.
    delay: u64,
    state: State,
}

/// State that `reset` clears.
struct State {
    entries: Vec<Entry>,
    /// Release messages not sent yet, each with its SM within the GPC.
    opening: DelayQueue<ClusterOpen>,
    /// Barriers opened so far.
    opened: u64,
}

impl ClusterBarrier {
    /// A unit without clusters.
    pub fn new(path: Path, delay: u64, ports: Ports) -> Self {
        ClusterBarrier {
            path,
            ports,
            delay,
            state: State::new(delay),
        }
    }

    fn take(&mut self, sm: usize, message: ClusterArrive, now: Cycle) {
        let ClusterArrive { cluster, rank, .. } = message;
        let at = self.state.entry(message);
        let state = &mut self.state;
        let entry = &mut state.entries[at];
        // The message names no SM: its port does. The release goes back the same way.
        entry.sms[rank as usize] = sm as u16;
        // One bit per rank: a CTA that arrives and then ends in the same round counts once.
        entry.arrived |= 1 << rank;
        entry.ended |= u32::from(message.ended) << rank;
        let all = entry.all();
        // The last CTA has ended: the cluster needs no further barrier.
        if entry.ended == all {
            state.entries.swap_remove(at);
        } else if entry.arrived == all {
            // The next round starts with the ended CTAs arrived.
            entry.arrived = entry.ended;
            debug!(cycle = now.0, path = %self.path, "barrier of cluster {cluster} is complete");
            state.opened += 1;
            for rank in (0..entry.size).filter(|rank| entry.ended >> rank & 1 == 0) {
                let open = ClusterOpen { cluster, rank };
                let sm = entry.sms[rank as usize] as usize;
                state.opening.push(now, sm, open);
            }
        }
    }
}

warpwave_hw::warm!(ClusterBarrier);

impl Component for ClusterBarrier {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // Arrivals first: with a delay of 0, a release leaves in the cycle of the last arrival.
        for sm in 0..self.ports.arrive.len() {
            while let Some(message) = self.ports.arrive[sm].recv(now) {
                self.take(sm, message, now);
            }
        }
        self.state.opening.send_due(now, &mut self.ports.open);
        let next = self.state.opening.next_due();
        // A message that is due now waits for room in its link: try in the next cycle.
        next.map_or(Activity::Idle, |due| Activity::Until(due.max(now + 1)))
    }

    fn reset(&mut self) {
        self.state = State::new(self.delay);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        self.state.entries.is_empty() && self.state.opening.next_due().is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("clusters", 24, Some(self.state.entries.len() as u64));
        probe.vector("opening", 24, Some(self.state.opening.len() as u64));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// Ended CTAs have arrived. A complete barrier is open.
    fn invariants(&self, check: &mut Invariants) {
        for entry in &self.state.entries {
            let (cluster, all) = (entry.cluster, u64::from(entry.all()));
            let (arrived, ended) = (u64::from(entry.arrived), u64::from(entry.ended));
            check.within(format_args!("arrived CTAs of cluster {cluster}"), arrived, all);
            check.within(format_args!("ended CTAs of cluster {cluster}"), ended, arrived);
            check.equal(
                format_args!("complete barriers of cluster {cluster}"),
                (arrived == all).into(),
                0,
            );
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("cluster_barriers", self.state.opened);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        for entry in self.state.entries.iter().filter(|entry| entry.arrived != entry.ended) {
            say(format!(
                "{}: cluster of block {}: {} of {} blocks have arrived",
                self.path,
                entry.cluster,
                entry.arrived.count_ones(),
                entry.size
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ports::times;
    use warpwave_hw::rig::{Rig, check};

    const LINK: u32 = 3;
    const OPEN: [&str; 2] = ["open0", "open1"];

    fn arrive(rank: u8, ended: bool) -> ClusterArrive {
        arrive_of(4, rank, ended)
    }

    fn arrive_of(cluster: u64, rank: u8, ended: bool) -> ClusterArrive {
        ClusterArrive {
            cluster,
            rank,
            size: 2,
            ended,
        }
    }

    /// A unit with two SMs. SM n sends `arrivals[n]`: cycle and message.
    fn unit(rig: &mut Rig, arrivals: [&[(u64, ClusterArrive)]; 2]) -> ClusterBarrier {
        let ports = Ports {
            arrive: arrivals.map(|sent| rig.input("arrive", LINK, 4, sent.to_vec())).into(),
            open: OPEN.map(|name| rig.output(name, LINK, 4, |_| true)).into(),
        };
        ClusterBarrier::new(Path::root("barrier"), 10, ports)
    }

    #[test]
    fn last_arrival_releases_both_after_the_delay_and_an_ended_cta_counts_as_arrived() {
        let build = |rig: &mut Rig| {
            unit(
                rig,
                [
                    &[(0, arrive(0, false)), (60, arrive(0, false)), (100, arrive(0, true))],
                    &[(20, arrive(1, false)), (50, arrive(1, true))],
                ],
            )
        };
        let events = check(build, 200).unwrap();
        // Round 1: the last arrival is sent in cycle 20 and received in 23. The release is sent in 33 and received in 36.
        // Round 2: CTA 1 has ended, so the arrival of CTA 0 in cycle 60 is the last.
        assert_eq!(times(&events, "open0"), [36, 76]);
        assert_eq!(times(&events, "open1"), [36]);
    }

    #[test]
    fn end_without_an_arrival_breaks_an_invariant() {
        let build = |rig: &mut Rig| {
            let mut unit = unit(rig, [&[(0, arrive(0, false))], &[]]);
            let entry = unit.state.entry(arrive_of(9, 0, false));
            unit.state.entries[entry].ended = 0b10;
            unit
        };
        let found = check(build, 20).unwrap_err();
        let says = "after cycle 0 an invariant is broken: ended CTAs of cluster 9: 0x2, all within 0x0";
        assert_eq!(found, says);
    }

    #[test]
    fn three_hundred_clusters_wait_at_once() {
        let of_all = |rank, ended, from: u64| (0..300).map(move |n| (from + n, arrive_of(n, rank, ended)));
        let arrivals = [0, 1].map(|rank: u8| {
            let arrives = of_all(rank, false, u64::from(rank) * 400);
            arrives.chain(of_all(rank, true, 1000)).collect::<Vec<_>>()
        });
        let events = check(|rig: &mut Rig| unit(rig, [&arrivals[0], &arrivals[1]]), 1400).unwrap();
        assert_eq!(times(&events, "open1").len(), 300);
    }
}
