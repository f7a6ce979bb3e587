//! Both slices as one component, and the links between them.

use warpwave_components::l2::slice::Slice;
use warpwave_components::proto::mem::Packet;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::harness::Sink;

/// Both slices as one component.
pub(super) struct Pair {
    pub path: Path,
    pub slices: [Slice; 2],
}

impl warpwave_hw::warm::Warm for Pair {}

impl Component for Pair {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let [first, second] = self.slices.each_mut().map(|slice| slice.tick(now));
        // The texts of all invariants take longer than a tick.
        if now.0.is_multiple_of(64) {
            for slice in &self.slices {
                let broken = Invariants::broken(|check| slice.invariants(check));
                assert!(broken.is_empty(), "cycle {now}: {broken:?}");
            }
        }
        first.or(second)
    }

    fn reset(&mut self) {
        self.slices.iter_mut().for_each(Slice::reset);
    }

    fn is_quiescent(&self) -> bool {
        self.slices.iter().all(Slice::is_quiescent)
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn stats(&self, report: &mut dyn Report) {
        self.slices.iter().for_each(|slice| slice.stats(report));
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        self.slices.iter().for_each(|slice| slice.waits(say));
    }
}

/// A link between the slices: it takes at a random pace, and keeps at most one packet.
pub(super) struct Relay {
    pub from: Sink<Box<Packet>>,
    pub held: Option<Box<Packet>>,
    pub to: OutPort<Box<Packet>>,
}

impl Relay {
    pub fn tick(&mut self, now: Cycle) {
        if self.held.is_none() {
            self.held = self.from.take(now);
        }
        if self.to.has_room(now)
            && let Some(packet) = self.held.take()
        {
            self.to.send(now, packet);
        }
    }

    pub fn is_busy(&self, now: Cycle) -> bool {
        self.held.is_some() || self.from.is_ready(now)
    }
}
