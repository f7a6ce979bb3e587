//! Placement of clusters: chooses the GPC of a cluster, and the SM and CTA slot of each CTA.
//!
//! The dispatch order chooses the GPC, and then the SM of each CTA in turn. Breadth first, a cluster spreads over as many SMs as
//! possible. GigaThread also chooses the slots.
//!
//! Invariants: a slot is in use from the placement of its CTA until the SM reports the CTA's end. A cluster is placed whole or not at all.

use std::ops::Range;

use super::order::Candidate;
use crate::config::CtaOrder;
use crate::proto::cluster::{ClusterPlacement, CtaPlacement, MAX_CTA_SLOTS, MAX_START};

/// The SMs of the chip. A port's place in [`Ports`](super::Ports) is the number of its SM.
#[derive(Clone, Debug)]
pub struct Sms {
    /// SMs of each GPC.
    pub gpcs: Vec<Range<usize>>,
    /// All SMs in the order of `%smid`.
    pub by_smid: Vec<usize>,
}

/// A placed cluster with CTAs still to send.
#[derive(Clone, Debug)]
struct PendingCluster {
    placement: ClusterPlacement,
    /// SM of each CTA on the chip, by rank.
    sms: Vec<usize>,
    /// Rank of the next CTA to send.
    rank: usize,
}

/// The GPCs of the chip, with the slots that clusters occupy.
#[derive(Clone, Debug)]
pub struct Gpcs {
    /// SMs of each GPC.
    sms: Vec<Range<usize>>,
    order: CtaOrder,
    /// Slots in use on each SM, bit i for slot i.
    used_slots: Vec<u64>,
    /// Start number of the last CTA placed in each slot of each SM.
    starts: Vec<[u32; MAX_CTA_SLOTS]>,
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
            used_slots: vec![0; n],
            starts: vec![[0; MAX_CTA_SLOTS]; n],
            pending: None,
            full: false,
        }
    }

    /// Frees the slot of a CTA that has ended.
    pub fn free_slot(&mut self, sm: usize, slot: u8) {
        self.used_slots[sm] &= !(1 << slot);
        // The next tick searches again.
        self.full = false;
    }

    /// The SM of the next CTA to send. Without a pending cluster, `may_begin` allows to place a new cluster of `size` CTAs, with at most
    /// `per_sm` CTAs on an SM.
    pub fn next_sm(&mut self, size: u32, per_sm: u32, may_begin: bool) -> Option<usize> {
        if self.pending.is_none() && may_begin && !self.full {
            // A failed search is repeated only after a slot was freed: nothing else can make room.
            self.pending = self.place(size, per_sm);
            self.full = self.pending.is_none();
        }
        let pending = self.pending.as_ref()?;
        Some(pending.sms[pending.rank])
    }

    /// Advances the pending cluster. Returns the rank of the CTA to send, and the placement of all CTAs.
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
    pub fn may_have_slot(&self) -> bool {
        self.pending.is_some() || !self.full
    }

    /// Reserves a slot for each CTA of a cluster.
    fn place(&mut self, size: u32, per_sm: u32) -> Option<PendingCluster> {
        let free_slots = |used: &[u64], sm: usize| per_sm.saturating_sub(used[sm].count_ones());
        let room = |gpc: &Range<usize>| gpc.clone().map(|sm| free_slots(&self.used_slots, sm)).sum::<u32>();
        let gpcs = self.sms.iter().enumerate().map(|(index, gpc)| Candidate {
            index,
            free_slots: room(gpc),
        });
        // A slot per CTA is enough: CTAs of one cluster may share an SM.
        let gpc = self.order.choose(gpcs.filter(|gpc| gpc.free_slots >= size), |_| true)?;
        let gpc = self.sms[gpc].clone();
        let mut placement = Vec::new();
        let mut sms = Vec::new();
        for _ in 0..size {
            let candidates = gpc.clone().map(|index| Candidate {
                index,
                free_slots: free_slots(&self.used_slots, index),
            });
            // Never `None`: the GPC has at least `size` free slots, and each turn takes one.
            let sm = self.order.choose(candidates, |_| true)?;
            // Not left to the SM: a CTA must know the placement of its whole cluster before it starts.
            // The lowest free slot. It is below `per_sm`, since fewer than `per_sm` slots are in use.
            let slot = self.used_slots[sm].trailing_ones();
            self.used_slots[sm] |= 1 << slot;
            let start = &mut self.starts[sm][slot as usize];
            // 0 is no start number.
            *start = *start % MAX_START + 1;
            placement.push(CtaPlacement {
                sm: (sm - gpc.start) as u16,
                slot: slot as u8,
                start: *start,
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

    /// Places and sends a whole cluster. Returns its SMs and slots, by rank.
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
    fn cluster_spreads_over_the_gpc_with_the_most_free_slots() {
        let mut gpcs = gpcs(vec![0..2, 2..6]);
        assert_eq!(send_cluster(&mut gpcs, 2, 2), Some(vec![(2, 0), (3, 0)]));
        assert_eq!(
            send_cluster(&mut gpcs, 4, 2),
            Some(vec![(4, 0), (5, 0), (2, 1), (3, 1)])
        );
        assert_eq!(send_cluster(&mut gpcs, 3, 2), Some(vec![(0, 0), (1, 0), (0, 1)]));
    }

    #[test]
    fn cluster_waits_until_one_gpc_has_room_for_all_its_ctas() {
        let mut gpcs = gpcs(vec![0..2, 2..4]);
        assert!(send_cluster(&mut gpcs, 2, 1).is_some() && send_cluster(&mut gpcs, 2, 1).is_some());
        assert_eq!(send_cluster(&mut gpcs, 2, 1), None);
        gpcs.free_slot(1, 0);
        gpcs.free_slot(2, 0);
        assert_eq!(
            send_cluster(&mut gpcs, 2, 1),
            None,
            "one free SM in each GPC is not two in one"
        );
        gpcs.free_slot(3, 0);
        assert_eq!(send_cluster(&mut gpcs, 2, 1), Some(vec![(2, 0), (3, 0)]));
    }

    #[test]
    fn ctas_of_a_slot_are_numbered_from_1() {
        let mut gpcs = gpcs(std::iter::once(0..2).collect());
        let mut starts = || {
            let all = (0..2).filter_map(|_| {
                gpcs.next_sm(2, 2, true)?;
                let (rank, placement) = gpcs.send_next()?;
                Some(placement[rank as usize])
            });
            let all: Vec<_> = all.collect();
            all.iter().for_each(|cta| gpcs.free_slot(cta.sm.into(), 0));
            gpcs.starts[0][0] = gpcs.starts[0][0].max(MAX_START - 2);
            all.iter().map(|cta| (cta.sm, cta.slot, cta.start)).collect::<Vec<_>>()
        };
        assert_eq!(starts(), [(0, 0, 1), (1, 0, 1)]);
        // On SM 0 the number after the highest one is 1.
        assert_eq!(starts(), [(0, 0, MAX_START - 1), (1, 0, 2)]);
        assert_eq!(starts(), [(0, 0, MAX_START), (1, 0, 3)]);
        assert_eq!(starts(), [(0, 0, 1), (1, 0, 4)]);
    }

    #[test]
    fn cluster_larger_than_every_gpc_never_fits() {
        let mut gpcs = gpcs(vec![0..2, 2..4]);
        assert_eq!(send_cluster(&mut gpcs, 3, 1), None);
        assert!(!gpcs.may_have_slot());
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
