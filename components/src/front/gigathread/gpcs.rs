//! Placement of clusters: the SMs of each GPC, and the CTA slots that clusters occupy.
//!
//! The dispatch order chooses the GPC of a cluster, and there the SM of each CTA in turn. Breadth first, a cluster spreads over as many
//! SMs as possible. GigaThread chooses the slots, not the SM: every CTA of a cluster must know the placement of the others before it
//! starts.
//!
//! Invariants: a slot given to a CTA is used until its SM reports the CTA's end; a cluster is placed whole or not at all.

use std::ops::Range;

use super::order::Place;
use crate::config::CtaOrder;
use crate::proto::cluster::{ClusterPlacement, CtaPlacement};

/// A placed cluster with CTAs still to send.
#[derive(Clone, Debug)]
struct PendingCluster {
    placement: ClusterPlacement,
    /// Number of each CTA's SM on the chip, by rank.
    sms: Vec<usize>,
    /// The next CTA to send.
    rank: usize,
}

/// The GPCs of the chip.
#[derive(Clone, Debug)]
pub struct Gpcs {
    /// SMs of each GPC.
    sms: Vec<Range<usize>>,
    order: CtaOrder,
    /// Slots in use by CTAs of clusters, for each SM; bit i for slot i.
    taken: Vec<u64>,
    pending: Option<PendingCluster>,
    /// True if no GPC had room for a cluster, and no CTA has ended since.
    full: bool,
}

impl Gpcs {
    /// GPCs of these SMs. SMs are numbered through the chip.
    pub fn new(sms: Vec<Range<usize>>, order: CtaOrder) -> Self {
        let n = sms.iter().map(|gpc| gpc.end).max().unwrap_or(0);
        Gpcs {
            sms,
            order,
            taken: vec![0; n],
            pending: None,
            full: false,
        }
    }

    /// Frees the slot of a CTA that has ended.
    pub fn left(&mut self, sm: usize, slot: u8) {
        self.taken[sm] &= !(1 << slot);
        self.full = false;
    }

    /// The SM of the next CTA to send. Without a pending cluster, `may_begin` allows to place a new one of `size` CTAs. A GPC must have
    /// room for it, with at most `per_sm` CTAs on an SM.
    pub fn next_sm(&mut self, size: u32, per_sm: u32, may_begin: bool) -> Option<usize> {
        if self.pending.is_none() && may_begin && !self.full {
            self.pending = self.place(size, per_sm);
            self.full = self.pending.is_none();
        }
        let pending = self.pending.as_ref()?;
        Some(pending.sms[pending.rank])
    }

    /// Sends the next CTA of the pending cluster: returns its rank and the placement of all.
    pub fn send_next(&mut self) -> Option<(u32, ClusterPlacement)> {
        let pending = self.pending.as_mut()?;
        let (rank, placement) = (pending.rank, pending.placement.clone());
        pending.rank += 1;
        if pending.rank == placement.len() {
            self.pending = None;
        }
        Some((rank as u32, placement))
    }

    /// True if a slot may be free for the next CTA.
    pub fn may_send(&self) -> bool {
        self.pending.is_some() || !self.full
    }

    /// Reserves a slot for each CTA of a cluster.
    fn place(&mut self, size: u32, per_sm: u32) -> Option<PendingCluster> {
        let free_on = |taken: &[u64], sm: usize| per_sm.saturating_sub(taken[sm].count_ones());
        let room = |gpc: &Range<usize>| gpc.clone().map(|sm| free_on(&self.taken, sm)).sum::<u32>();
        let gpcs = self.sms.iter().enumerate().map(|(number, gpc)| Place {
            number,
            free: room(gpc),
        });
        let gpc = self.order.choose(gpcs.filter(|gpc| gpc.free >= size), |_| true)?;
        let gpc = self.sms[gpc].clone();
        let mut placement = Vec::new();
        let mut sms = Vec::new();
        for _ in 0..size {
            let places = gpc.clone().map(|number| Place {
                number,
                free: free_on(&self.taken, number),
            });
            let sm = self.order.choose(places, |_| true)?;
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

    fn gpcs(sms: Vec<Range<usize>>) -> Gpcs {
        Gpcs::new(sms, CtaOrder::BreadthFirst)
    }

    /// Places and sends a whole cluster: its SMs and slots, by rank.
    fn send_cluster(gpcs: &mut Gpcs, size: u32, per_sm: u32) -> Option<Vec<(usize, u8)>> {
        let mut all = Vec::new();
        for _ in 0..size {
            let sm = gpcs.next_sm(size, per_sm, true)?;
            let (rank, placement) = gpcs.send_next()?;
            all.push((sm, placement[rank as usize].slot));
        }
        Some(all)
    }

    #[test]
    fn clusters_spread_over_one_gpc_and_then_take_the_emptier_one() {
        let mut gpcs = gpcs(vec![0..2, 2..6]);
        assert_eq!(send_cluster(&mut gpcs, 2, 2), Some(vec![(2, 0), (3, 0)]));
        assert_eq!(
            send_cluster(&mut gpcs, 4, 2),
            Some(vec![(4, 0), (5, 0), (2, 1), (3, 1)])
        );
        assert_eq!(send_cluster(&mut gpcs, 3, 2), Some(vec![(0, 0), (1, 0), (0, 1)]));
    }

    #[test]
    fn no_gpc_has_room_for_all_until_one_leaves() {
        let mut gpcs = gpcs(vec![0..2, 2..4]);
        assert!(send_cluster(&mut gpcs, 2, 1).is_some() && send_cluster(&mut gpcs, 2, 1).is_some());
        assert_eq!(send_cluster(&mut gpcs, 2, 1), None);
        gpcs.left(1, 0);
        gpcs.left(2, 0);
        assert_eq!(
            send_cluster(&mut gpcs, 2, 1),
            None,
            "one free SM in each GPC is not two in one"
        );
        gpcs.left(3, 0);
        assert_eq!(send_cluster(&mut gpcs, 2, 1), Some(vec![(2, 0), (3, 0)]));
    }

    #[test]
    fn cluster_larger_than_every_gpc_never_fits() {
        let mut gpcs = gpcs(vec![0..2, 2..4]);
        assert_eq!(send_cluster(&mut gpcs, 3, 1), None);
        assert!(!gpcs.may_send());
    }

    #[test]
    fn depth_first_clusters_fill_the_first_gpc_and_its_first_sm() {
        let mut gpcs = Gpcs::new(vec![0..2, 2..6], CtaOrder::DepthFirst);
        assert_eq!(send_cluster(&mut gpcs, 3, 2), Some(vec![(0, 0), (0, 1), (1, 0)]));
        assert_eq!(
            send_cluster(&mut gpcs, 2, 2),
            Some(vec![(2, 0), (2, 1)]),
            "one slot of the first GPC is too few"
        );
    }
}
