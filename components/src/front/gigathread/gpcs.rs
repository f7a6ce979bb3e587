//! Where clusters go: a unit of GigaThread that knows which SMs make a GPC, and which CTA slots clusters have taken.
//!
//! A cluster goes to the GPC with the most free slots, among equals the first; there each CTA in turn to the SM with the most
//! free slots, so that a cluster spreads over as many SMs as it can. Slots are chosen here and not by the SM, because every CTA
//! of a cluster must know where the others are before it begins.
//!
//! Invariants: a slot given to a CTA is free until the SM says that the CTA has ended; a cluster is placed whole or not at all.

use std::ops::Range;

use crate::proto::cluster::{ClusterPlacement, CtaPlacement};

/// A cluster whose CTAs are being handed out.
#[derive(Clone, Debug)]
struct PendingCluster {
    placement: ClusterPlacement,
    /// Number of each CTA's SM on the chip, by rank.
    sms: Vec<usize>,
    /// The next CTA to go out.
    rank: usize,
}

/// The GPCs of the chip.
#[derive(Clone, Debug)]
pub struct Gpcs {
    sms: Vec<Range<usize>>,
    /// Slots that CTAs of clusters have, by SM, bit i for slot i.
    taken: Vec<u32>,
    pending: Option<PendingCluster>,
    /// Whether no GPC had room, and nobody has left since.
    full: bool,
}

impl Gpcs {
    /// GPCs of these SMs, whose numbers run through the chip.
    pub fn new(sms: Vec<Range<usize>>) -> Self {
        let n = sms.iter().map(|gpc| gpc.end).max().unwrap_or(0);
        Gpcs {
            sms,
            taken: vec![0; n],
            pending: None,
            full: false,
        }
    }

    /// Everybody has gone.
    pub fn clear(&mut self) {
        self.taken.fill(0);
        self.pending = None;
        self.full = false;
    }

    /// A CTA has left its slot.
    pub fn left(&mut self, sm: usize, slot: u8) {
        self.taken[sm] &= !(1 << slot);
        self.full = false;
    }

    /// The SM of the next CTA to go out, of the cluster being handed out or of a new one of `size` CTAs, if one is to be begun and
    /// a GPC has room for it with at most `per_sm` CTAs on an SM.
    pub fn seat(&mut self, size: u32, per_sm: u32, may_begin: bool) -> Option<usize> {
        if self.pending.is_none() && may_begin && !self.full {
            self.pending = self.place(size, per_sm);
            self.full = self.pending.is_none();
        }
        let pending = self.pending.as_ref()?;
        Some(pending.sms[pending.rank])
    }

    /// The next CTA of the cluster being handed out goes: its rank, and where all of them are.
    pub fn hand_out(&mut self) -> Option<(u32, ClusterPlacement)> {
        let pending = self.pending.as_mut()?;
        let (rank, placement) = (pending.rank, pending.placement.clone());
        pending.rank += 1;
        if pending.rank == placement.len() {
            self.pending = None;
        }
        Some((rank as u32, placement))
    }

    /// Whether a CTA can go out as far as slots are concerned.
    pub fn may_hand_out(&self) -> bool {
        self.pending.is_some() || !self.full
    }

    fn place(&mut self, size: u32, per_sm: u32) -> Option<PendingCluster> {
        let held = |sm: usize| self.taken[sm].count_ones();
        let room = |gpc: &Range<usize>| gpc.clone().map(|sm| per_sm.saturating_sub(held(sm))).sum::<u32>();
        let fitting = self.sms.iter().filter(|gpc| room(gpc) >= size);
        // Of several with the same room the first.
        let gpc = fitting.rev().max_by_key(|gpc| room(gpc))?.clone();
        let mut placement = Vec::new();
        let mut sms = Vec::new();
        for _ in 0..size {
            let sm = gpc.clone().min_by_key(|&sm| self.taken[sm].count_ones())?;
            let slot = self.taken[sm].trailing_ones();
            self.taken[sm] |= 1 << slot;
            placement.push(CtaPlacement {
                sm: (sm - gpc.start) as u16,
                slot: slot as u8,
            });
            sms.push(sm);
        }
        Some(PendingCluster {
            placement: placement.into(),
            sms,
            rank: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands a whole cluster out: its SMs and slots, by rank.
    fn seat(gpcs: &mut Gpcs, size: u32, per_sm: u32) -> Option<Vec<(usize, u8)>> {
        let mut all = Vec::new();
        for _ in 0..size {
            let sm = gpcs.seat(size, per_sm, true)?;
            let (rank, placement) = gpcs.hand_out()?;
            all.push((sm, placement[rank as usize].slot));
        }
        Some(all)
    }

    #[test]
    fn clusters_spread_over_one_gpc_and_then_take_the_emptier_one() {
        let mut gpcs = Gpcs::new(vec![0..2, 2..6]);
        assert_eq!(seat(&mut gpcs, 2, 2), Some(vec![(2, 0), (3, 0)]));
        assert_eq!(seat(&mut gpcs, 4, 2), Some(vec![(4, 0), (5, 0), (2, 1), (3, 1)]));
        assert_eq!(seat(&mut gpcs, 3, 2), Some(vec![(0, 0), (1, 0), (0, 1)]));
    }

    #[test]
    fn no_gpc_has_room_for_all_until_one_leaves() {
        let mut gpcs = Gpcs::new(vec![0..2, 2..4]);
        assert!(seat(&mut gpcs, 2, 1).is_some() && seat(&mut gpcs, 2, 1).is_some());
        assert_eq!(seat(&mut gpcs, 2, 1), None);
        gpcs.left(1, 0);
        gpcs.left(2, 0);
        assert_eq!(seat(&mut gpcs, 2, 1), None, "one free SM in each GPC is not two in one");
        gpcs.left(3, 0);
        assert_eq!(seat(&mut gpcs, 2, 1), Some(vec![(2, 0), (3, 0)]));
    }

    #[test]
    fn cluster_larger_than_every_gpc_never_fits() {
        let mut gpcs = Gpcs::new(vec![0..2, 2..4]);
        assert_eq!(seat(&mut gpcs, 3, 1), None);
        assert!(!gpcs.may_hand_out());
    }
}
