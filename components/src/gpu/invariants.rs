//! A run that checks invariants: those of every component, and an audit of every link.

use std::collections::HashMap;

use warpwave_hw::clock::Pause;
use warpwave_hw::component::assert_invariants_of;
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::audit::LinkAudit;
use warpwave_hw::link::wires::{LinkEnd, LinkEventLog, LinkObserver, Show};
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;

use super::Gpu;

/// Gives each link an audit, shared by its ends.
#[derive(Default)]
struct Auditor {
    /// In the order in which the links are found.
    audits: Vec<LinkAudit>,
    by_path: HashMap<Path, usize>,
}

impl LinkObserver for Auditor {
    fn end(&mut self, _end: &LinkEnd<'_>) -> Option<(LinkEventLog, u32)> {
        None
    }

    fn audit(&mut self, end: &LinkEnd<'_>) -> Option<LinkAudit> {
        let n = *self.by_path.entry(end.link.path.clone()).or_insert_with(|| {
            self.audits.push(LinkAudit::new(end.link));
            self.audits.len() - 1
        });
        self.audits[n].add_end(end.credit_latency);
        Some(self.audits[n].clone())
    }
}

impl Gpu {
    /// Checks the invariants of every component, and the messages of every link, after each window of the launches and at their ends. A
    /// broken one panics with path, cycle and values.
    ///
    /// # Panics
    /// After the first launch: the accounts of components and links begin with an empty machine.
    pub fn check_invariants(&mut self) {
        assert_eq!(self.launches, 0, "invariants are checked from the first launch on");
        let mut auditor = Auditor::default();
        let tiles = self.clock.tiles_mut().iter_mut();
        for component in tiles.flat_map(|tile| tile.components_mut()) {
            component.arm_invariants();
            component.ports(&mut auditor);
        }
        // The host's ends of its links.
        self.grids.show(&mut auditor);
        self.events.show(&mut auditor);
        self.slices.show(&mut auditor);
        let mut audits = auditor.audits;
        audits.retain(LinkAudit::is_complete);
        self.audits = Some(audits);
    }

    /// Checks the invariants between two runs of the clock, for a caller that runs it without a launch. Without
    /// [`Gpu::check_invariants`] it checks nothing.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn assert_invariants(&self) {
        let Some(audits) = &self.audits else { return };
        let now = self.clock.now();
        self.components()
            .for_each(|component| assert_invariants_of(component, now));
        assert_links(now, audits);
    }

    /// As [`Gpu::assert_invariants`], in a machine at rest: no link has a message.
    pub(super) fn assert_invariants_at_rest(&self) {
        self.assert_invariants();
        for audit in self.audits.iter().flatten() {
            Invariants::assert_unbroken(self.clock.now(), || audit.path(), |check| audit.at_rest(check));
        }
    }
}

/// Panics if an invariant is broken between two windows.
pub(super) fn assert_invariants(pause: &Pause<'_>, audits: &[LinkAudit]) {
    let now = pause.now();
    pause.each_component(&mut |component| assert_invariants_of(component, now));
    assert_links(now, audits);
}

fn assert_links(now: Cycle, audits: &[LinkAudit]) {
    for audit in audits {
        Invariants::assert_unbroken(now, || audit.path(), |check| audit.invariants(check));
    }
}
