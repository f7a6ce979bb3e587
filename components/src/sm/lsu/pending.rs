//! The pending request table: warp accesses whose packets are on their way through the L1.
//!
//! Each entry keeps the parts of its access in place. The tag of a packet names entry and part.

use warpwave_hw::time::Cycle;
use warpwave_isa::lane::WARP_SIZE;

use super::coalescer::Parts;
use super::halves::Halves;
use crate::proto::warp::WarpInst;
use warpwave_hw::grow::push;

/// The tag of the packet for part `part` of the access in entry `entry`.
#[inline]
pub fn tag(entry: u32, part: u32) -> u32 {
    entry * WARP_SIZE as u32 + part
}

/// Entry and part that a tag names.
#[inline]
pub fn entry_and_part(tag: u32) -> (u32, usize) {
    (tag / WARP_SIZE as u32, tag as usize % WARP_SIZE)
}

/// One access under way: all that its answers need but the instruction itself, in one line of the host's cache.
#[derive(Debug)]
#[repr(align(64))]
pub struct Pending {
    /// The instruction, for what is answered with data; a store has none, its warp went on.
    pub warp_inst: Option<Box<WarpInst>>,
    /// What its halves want, if that is known.
    pub halves: Option<Halves>,
    /// When the instruction was issued.
    pub issued: Cycle,
    /// The instruction.
    pub pc: u32,
    /// Packets not yet answered, and one more while packets are still being made; none in a free entry.
    pub left: u32,
    /// Its epoch: the fences taken after it wait for it (`unit::fence`).
    pub epoch: u32,
    /// Sub-core of the warp.
    pub subcore: u8,
    /// Slot in it.
    pub warp: u8,
    /// Whether it is a store, a reduction or a prefetch, of whose end the scheduler is told.
    pub posted: bool,
    /// Whether it goes to device memory, and nowhere else.
    pub is_device: bool,
}

const _: () = assert!(size_of::<Pending>() == 64);

impl Pending {
    /// A free entry.
    const FREE: Pending = Pending {
        warp_inst: None,
        halves: None,
        issued: Cycle::ZERO,
        pc: 0,
        left: 0,
        epoch: 0,
        subcore: 0,
        warp: 0,
        posted: false,
        is_device: false,
    };

    /// One packet is answered, or all packets are made; whether nothing is left to wait for.
    #[inline]
    pub fn answered(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Lets the instruction go, if it is still here.
    pub fn finish(&mut self) -> Option<Finished> {
        self.warp_inst.take().map(|warp_inst| Finished {
            warp_inst,
            subcore: self.subcore,
            is_device: self.is_device,
        })
    }
}

/// An instruction that has all it asked for, or whose packets carry all it had.
#[derive(Debug)]
pub struct Finished {
    /// The instruction.
    pub warp_inst: Box<WarpInst>,
    /// Its sub-core.
    pub subcore: u8,
    /// Whether it concerns device memory alone.
    pub is_device: bool,
}

/// A table with at most so many entries, which take memory when they are first used.
#[derive(Debug)]
pub struct PendingTable {
    most: usize,
    entries: Vec<Pending>,
    parts: Vec<Parts>,
    /// The entries in use, 64 to a word. The lowest free one is taken first, so those that were used lie at the begin.
    used: Box<[u64]>,
    n_used: usize,
}

/// Entries to a word of `used`.
const WORD: usize = u64::BITS as usize;

impl PendingTable {
    /// An empty table.
    pub fn new(entries: u32) -> Self {
        PendingTable {
            most: entries as usize,
            entries: Vec::new(),
            parts: Vec::new(),
            used: vec![0; (entries as usize).div_ceil(WORD)].into(),
            n_used: 0,
        }
    }

    /// Whether an entry is free.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.n_used < self.most
    }

    /// Entries in use.
    pub fn n_used(&self) -> usize {
        self.n_used
    }

    /// The lowest entry that is not in use; one beyond the table if all are.
    #[inline]
    fn lowest_free(&self) -> usize {
        let word = self.used.iter().position(|&word| word != u64::MAX);
        word.map_or(self.most, |n| n * WORD + self.used[n].trailing_ones() as usize)
    }

    /// Adds an access without parts; gives the number of its entry.
    ///
    /// # Panics
    /// If the table is full: ask [`PendingTable::has_room`] first.
    pub fn add(&mut self, pending: Pending) -> u32 {
        let entry = self.lowest_free();
        assert!(entry < self.most, "a free entry was asked for");
        self.used[entry / WORD] |= 1 << (entry % WORD);
        self.n_used += 1;
        if entry == self.entries.len() {
            self.add_first_used(pending);
        } else {
            self.entries[entry] = pending;
            self.parts[entry].clear();
        }
        entry as u32
    }

    /// One entry more has been used.
    #[cold]
    fn add_first_used(&mut self, pending: Pending) {
        push(&mut self.entries, pending);
        push(&mut self.parts, Parts::NONE);
    }

    /// An access and its parts.
    #[inline]
    pub fn get(&mut self, entry: u32) -> (&mut Pending, &mut Parts) {
        let pending = &mut self.entries[entry as usize];
        assert!(pending.left > 0, "an answer belongs to a pending access");
        (pending, &mut self.parts[entry as usize])
    }

    /// Takes an access out whose last packet was answered.
    pub fn take(&mut self, entry: u32) -> Pending {
        self.used[entry as usize / WORD] &= !(1 << (entry as usize % WORD));
        self.n_used -= 1;
        std::mem::replace(&mut self.entries[entry as usize], Pending::FREE)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = PendingTable::new(self.most as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(pc: u32) -> Pending {
        Pending {
            pc,
            left: 1,
            ..Pending::FREE
        }
    }

    #[test]
    fn lowest_free_entry_is_taken_first_up_to_the_most_there_may_be() {
        let mut table = PendingTable::new(2);
        assert_eq!((table.add(access(1)), table.add(access(2))), (0, 1));
        assert!(!table.has_room());
        assert_eq!(table.take(0).pc, 1);
        assert_eq!((table.has_room(), table.n_used()), (true, 1));
        assert_eq!(table.add(access(3)), 0);
        assert_eq!((table.get(0).0.pc, table.get(1).0.pc), (3, 2));
        assert_eq!((table.take(1).pc, table.take(0).pc), (2, 3));
        assert_eq!((table.add(access(5)), table.add(access(6)), table.n_used()), (0, 1, 2));
        table.clear();
        assert_eq!((table.n_used(), table.add(access(4))), (0, 0));
    }

    #[test]
    fn table_of_more_than_a_word_of_entries_takes_all_and_gives_each_back() {
        let mut table = PendingTable::new(70);
        assert!((0..70).all(|pc| table.add(access(pc)) == pc));
        assert!(!table.has_room());
        assert_eq!([65, 3].map(|entry| table.take(entry).pc), [65, 3]);
        assert_eq!([100, 101].map(|pc| table.add(access(pc))), [3, 65]);
        assert_eq!((table.has_room(), table.get(65).0.pc), (false, 101));
    }

    #[test]
    #[should_panic(expected = "a free entry was asked for")]
    fn access_more_than_there_may_be_is_refused() {
        let mut table = PendingTable::new(1);
        (0..2).for_each(|pc| _ = table.add(access(pc)));
    }
}
