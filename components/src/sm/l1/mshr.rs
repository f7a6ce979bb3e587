//! Misses under way: one entry per request sent to the L2, found by line through short chains.
//!
//! A sector under way is *fresh* until the SM writes to it (a store or an atomic passes the L1): from then on its bytes are
//! older than a load that comes later may see. Such a sector still answers those that waited already, but it is neither merged
//! with nor installed.
//!
//! Invariant: no sector of a line is fresh in two entries.

use crate::proto::mem::{SECTORS, each_sector};
use crate::waiting::{SectorQueue, Waiting};

const NONE: u32 = u32::MAX;

/// Chains to a word of bits.
const WORD: usize = u64::BITS as usize;

/// A request under way, in one line of the host's cache.
#[repr(align(64))]
struct Entry {
    line: u32,
    sectors: u8,
    fresh: u8,
    waiters: [u32; SECTORS],
    queues: [SectorQueue; SECTORS],
    /// Next entry of the chain, or of the free ones.
    next: u32,
}

/// All misses of one L1 that are under way.
pub(super) struct Mshr {
    entries: Vec<Entry>,
    chains: Vec<u32>,
    /// The chains that have entries, 64 to a word: mostly the line of a store is in none, and that is known by far less memory.
    busy: Vec<u64>,
    free: u32,
    /// Sectors under way.
    in_flight: u32,
    merges: u32,
}

impl Mshr {
    /// At most `sectors` sectors under way, and `merges` packets waiting for each.
    pub(super) fn new(sectors: u32, merges: u32) -> Self {
        let entry = |n| Entry {
            line: 0,
            sectors: 0,
            fresh: 0,
            waiters: [0; SECTORS],
            queues: [SectorQueue::EMPTY; SECTORS],
            next: if n + 1 == sectors { NONE } else { n + 1 },
        };
        let chains = (2 * sectors as usize).next_power_of_two();
        Mshr {
            entries: (0..sectors).map(entry).collect(),
            chains: vec![NONE; chains],
            busy: vec![0; chains.div_ceil(WORD)],
            free: 0,
            in_flight: 0,
            merges,
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.entries.len() as u32, self.merges);
    }

    /// Sectors under way.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether so many sectors more may be under way.
    pub(super) fn has_room(&self, sectors: u32) -> bool {
        self.in_flight as usize + sectors as usize <= self.entries.len()
    }

    /// Those of `wanted` that are under way and fresh, or nothing if as many packets as may wait for one of them already.
    pub(super) fn mergeable(&self, line: u32, wanted: u8) -> Option<u8> {
        let mut found = 0;
        for n in self.chain(line) {
            let entry = &self.entries[n];
            let here = entry.fresh & wanted;
            if each_sector(here).any(|sector| entry.waiters[sector] >= self.merges) {
                return None;
            }
            found |= here;
        }
        Some(found)
    }

    /// Lets a slot wait for fresh sectors.
    pub(super) fn merge(&mut self, line: u32, sectors: u8, slot: u32, waiting: &mut Waiting) {
        let mut at = self.first_of(line);
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            if entry.line == line {
                entry.wait(entry.fresh & sectors, slot, waiting);
            }
            at = entry.next;
        }
    }

    /// A new request, and the slot that waits for it; gives the entry's number. There must be room.
    pub(super) fn open(&mut self, line: u32, sectors: u8, slot: u32, waiting: &mut Waiting) -> u32 {
        let n = self.free;
        let chain = self.chain_of(line);
        let entry = &mut self.entries[n as usize];
        self.free = std::mem::replace(&mut entry.next, self.chains[chain]);
        self.chains[chain] = n;
        self.busy[chain / WORD] |= 1 << (chain % WORD);
        entry.line = line;
        entry.sectors = sectors;
        entry.fresh = sectors;
        entry.waiters = [0; SECTORS];
        entry.wait(sectors, slot, waiting);
        self.in_flight += sectors.count_ones();
        n
    }

    /// The line's sectors are written by this SM: what is under way is old.
    #[inline]
    pub(super) fn spoil(&mut self, line: u32, sectors: u8) {
        let mut at = self.first_of(line);
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            if entry.line == line {
                entry.fresh &= !sectors;
            }
            at = entry.next;
        }
    }

    /// Everything under way is old.
    pub(super) fn spoil_all(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.fresh = 0);
    }

    /// Sectors of a request that may be installed.
    pub(super) fn fresh(&self, n: u32) -> u8 {
        self.entries[n as usize].fresh
    }

    /// The next slot that waits for a sector of a request.
    #[inline]
    pub(super) fn next_waiter(&mut self, n: u32, sector: usize, waiting: &mut Waiting) -> Option<u32> {
        waiting.pop(&mut self.entries[n as usize].queues[sector], sector)
    }

    /// The request is answered.
    pub(super) fn close(&mut self, n: u32) {
        let chain = self.chain_of(self.entries[n as usize].line);
        let after = self.entries[n as usize].next;
        if self.chains[chain] == n {
            self.chains[chain] = after;
            self.busy[chain / WORD] &= !(u64::from(after == NONE) << (chain % WORD));
        } else {
            let mut at = self.chains[chain];
            while self.entries[at as usize].next != n {
                at = self.entries[at as usize].next;
            }
            self.entries[at as usize].next = after;
        }
        let entry = &mut self.entries[n as usize];
        self.in_flight -= entry.sectors.count_ones();
        entry.fresh = 0;
        entry.next = self.free;
        self.free = n;
    }

    /// Entries of a line.
    fn chain(&self, line: u32) -> impl Iterator<Item = usize> {
        let mut at = self.first_of(line);
        std::iter::from_fn(move || {
            while at != NONE {
                let n = at as usize;
                at = self.entries[n].next;
                if self.entries[n].line == line {
                    return Some(n);
                }
            }
            None
        })
    }

    /// The first entry that a line may have.
    #[inline]
    fn first_of(&self, line: u32) -> u32 {
        let chain = self.chain_of(line);
        match self.busy[chain / WORD] >> (chain % WORD) & 1 {
            0 => NONE,
            _ => self.chains[chain],
        }
    }

    #[inline]
    fn chain_of(&self, line: u32) -> usize {
        (line ^ line >> 10) as usize & (self.chains.len() - 1)
    }
}

impl Entry {
    fn wait(&mut self, sectors: u8, slot: u32, waiting: &mut Waiting) {
        for sector in each_sector(sectors) {
            self.waiters[sector] += 1;
            waiting.push(&mut self.queues[sector], slot, sector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::mem::Packet;

    fn wait(waiting: &mut Waiting, sectors: u8) -> u32 {
        waiting.add(Box::new(Packet::blank()), sectors)
    }

    #[test]
    fn sector_under_way_second_load_merges_until_the_limit() {
        let (mut mshr, mut waiting) = (Mshr::new(8, 2), Waiting::new(8));
        let slot = wait(&mut waiting, 0b0011);
        mshr.open(7, 0b0011, slot, &mut waiting);
        assert_eq!(mshr.mergeable(7, 0b0110), Some(0b0010));
        let slot = wait(&mut waiting, 0b0010);
        mshr.merge(7, 0b0010, slot, &mut waiting);
        assert_eq!(mshr.mergeable(7, 0b0010), None, "two wait already");
        assert_eq!(mshr.mergeable(7, 0b0001), Some(0b0001));
    }

    #[test]
    fn sector_written_while_under_way_no_merge_and_no_install() {
        let (mut mshr, mut waiting) = (Mshr::new(8, 2), Waiting::new(8));
        let slot = wait(&mut waiting, 0b0011);
        let n = mshr.open(7, 0b0011, slot, &mut waiting);
        mshr.spoil(7, 0b0001);
        assert_eq!(mshr.mergeable(7, 0b0011), Some(0b0010));
        assert_eq!(mshr.fresh(n), 0b0010);
        assert_eq!(
            mshr.next_waiter(n, 0, &mut waiting),
            Some(slot),
            "who waited before still gets it"
        );
    }

    #[test]
    fn lines_of_one_chain_closed_in_any_order_the_others_stay() {
        let (mut mshr, mut waiting) = (Mshr::new(4, 1), Waiting::new(4));
        let lines = [1, 9, 17, 25]; // 8 chains: all of chain 1
        let numbers = lines.map(|line| {
            let slot = wait(&mut waiting, 1);
            mshr.open(line, 1, slot, &mut waiting)
        });
        assert!(!mshr.has_room(1));
        let mut open = [true; 4];
        for n in [1, 3, 0, 2] {
            mshr.close(numbers[n]);
            open[n] = false;
            // Who is under way has as many waiters as may be; who is not has nothing to merge with.
            let found = lines.map(|line| mshr.mergeable(line, 1));
            assert_eq!(found, open.map(|open| if open { None } else { Some(0) }));
        }
        assert_eq!(mshr.in_flight(), 0);
        assert!(mshr.has_room(4));
    }
}
