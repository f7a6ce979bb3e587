//! The pending request table: warp accesses with packets in flight.
//!
//! The tag of a packet holds the entry of its access, and the number of the packet in its group.

use warpwave_hw::grow::push;
use warpwave_hw::invariant::Invariants;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};

use crate::proto::launch::{Origin, Route};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::data::PacketContents;

/// The tag of packet `n` of the access in an entry.
#[inline]
pub fn tag(entry: u32, n: usize) -> u32 {
    // A group has at most one packet per lane.
    entry * WARP_SIZE as u32 + n as u32
}

/// The entry and the packet number of a tag.
#[inline]
pub fn entry_and_packet(tag: u32) -> (u32, usize) {
    (tag / WARP_SIZE as u32, tag as usize % WARP_SIZE)
}

/// An access in flight. A response reads its first host cache line. For a load it also reads the instruction.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Pending {
    /// The instruction. A posted one leaves when its last packet is sent.
    pub warp_inst: Option<Box<WarpInst>>,
    /// Cycle of issue.
    pub issued: Cycle,
    /// Program counter of the instruction.
    pub pc: u32,
    /// Packets without a response, plus 1 while packets are being built.
    pub outstanding: u32,
    /// Epoch of the access: later fences wait for it.
    pub epoch: u32,
    /// Data in the packets.
    pub contents: PacketContents,
    /// Sub-core of the warp.
    pub subcore: u8,
    /// Slot in the sub-core.
    pub warp: u8,
    /// True for a store, a reduction or a prefetch. The scheduler gets a `StoreDone` after its last response.
    pub is_posted: bool,
    /// True if every lane accesses device memory.
    pub is_device: bool,
    /// The lanes of each packet.
    pub packet_lanes: [LaneMask; WARP_SIZE],
}

impl Pending {
    /// An access whose packets are being built.
    pub fn new(warp_inst: Box<WarpInst>, contents: PacketContents, epoch: u32) -> Self {
        Pending {
            issued: warp_inst.issued,
            pc: warp_inst.pc,
            // Counts the building, so an early response does not complete the access.
            outstanding: 1,
            epoch,
            contents,
            subcore: warp_inst.subcore,
            warp: warp_inst.warp,
            is_posted: warp_inst.info.is_posted,
            is_device: warp_inst.info.route == Route::Device,
            packet_lanes: [LaneMask::NONE; WARP_SIZE],
            warp_inst: Some(warp_inst),
        }
    }

    /// Counts one response, or the end of the building. Returns true if this was the last.
    #[inline]
    pub fn complete_one(&mut self) -> bool {
        self.outstanding -= 1;
        self.outstanding == 0
    }
}

/// The instruction of an access to other SMs, for its trap.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteAccess {
    /// The instruction.
    pub origin: Origin,
    /// Bytes of a lane.
    pub bytes: u32,
}

/// The pending request table. It allocates host memory only for entries that have been used.
#[derive(Debug)]
pub struct PendingTable {
    /// Number of entries.
    most: usize,
    entries: Vec<Pending>,
    /// The access to other SMs of each entry. Undefined for other accesses.
    remote: Vec<RemoteAccess>,
    free: Vec<u32>,
}

impl PendingTable {
    /// An empty table with `most` entries.
    pub fn new(most: u32) -> Self {
        PendingTable {
            most: most as usize,
            entries: Vec::new(),
            remote: vec![RemoteAccess::default(); most as usize],
            free: Vec::new(),
        }
    }

    /// Checks the counts: an entry is free, or waits for a response or for its packets to be built.
    pub fn invariants(&self, check: &mut Invariants) {
        let waiting = self.entries.iter().filter(|pending| pending.outstanding > 0);
        check.at_most("accesses", self.n_used() as u64, self.most as u64);
        check.equal("accesses that wait", waiting.count() as u64, self.n_used() as u64);
    }

    /// True if an entry is free.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.n_used() < self.most
    }

    /// Entries in use.
    #[inline]
    pub fn n_used(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Adds an access. Returns its entry.
    ///
    /// # Panics
    /// If the table is full: check [`PendingTable::has_room`] first.
    pub fn add(&mut self, pending: Pending) -> u32 {
        assert!(self.has_room(), "the pending request table is full");
        // The entry used last is most likely in the host cache.
        match self.free.pop() {
            Some(entry) => {
                self.entries[entry as usize] = pending;
                entry
            }
            None => {
                push(&mut self.entries, pending);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// The access in an entry.
    #[inline]
    pub fn get(&mut self, entry: u32) -> &mut Pending {
        let pending = &mut self.entries[entry as usize];
        assert!(pending.outstanding > 0, "a response belongs to a pending access");
        pending
    }

    /// Stores the instruction of an entry whose access goes to other SMs. A posted access ends after its instruction has left.
    pub fn note_remote(&mut self, entry: u32) {
        let warp_inst = self.entries[entry as usize].warp_inst.as_ref();
        let warp_inst = warp_inst.expect("an instruction stays until its packets are sent");
        self.remote[entry as usize] = RemoteAccess {
            origin: warp_inst.origin(),
            bytes: warp_inst.inst().mods.access.total(),
        };
    }

    /// The instruction of an entry, after [`PendingTable::note_remote`].
    pub fn remote(&self, entry: u32) -> RemoteAccess {
        self.remote[entry as usize]
    }

    /// Frees the entry of a complete access. Returns the access: it is valid until the next `add`.
    #[inline]
    pub fn remove(&mut self, entry: u32) -> &mut Pending {
        // The contents stay until the entry is used for another access: the caller reads them.
        push(&mut self.free, entry);
        &mut self.entries[entry as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ports::grid;

    fn access(pc: u32) -> Pending {
        let mut warp_inst = Box::new(WarpInst::blank(0, grid("LD.B32 R0, [R2]", 1)));
        warp_inst.pc = pc;
        Pending::new(warp_inst, PacketContents::Prefetch, 0)
    }

    /// Completes an access. Returns its program counter.
    fn remove(table: &mut PendingTable, entry: u32) -> u32 {
        assert!(table.get(entry).complete_one());
        table.remove(entry).pc
    }

    #[test]
    fn free_entries_are_reused_before_new_ones() {
        let mut table = PendingTable::new(3);
        assert_eq!([1, 2].map(|pc| table.add(access(pc))), [0, 1]);
        assert_eq!((remove(&mut table, 0), table.n_used()), (1, 1));
        assert_eq!([3, 4].map(|pc| table.add(access(pc))), [0, 2]);
        assert_eq!([0, 1, 2].map(|entry| table.get(entry).pc), [3, 2, 4]);
        assert!(!table.has_room());
        assert_eq!([2, 0, 1].map(|entry| remove(&mut table, entry)), [4, 3, 2]);
        assert_eq!((table.n_used(), table.has_room()), (0, true));
    }

    #[test]
    fn access_is_complete_after_the_building_and_every_response() {
        let mut access = access(0);
        access.outstanding += 2;
        assert_eq!([(); 3].map(|()| access.complete_one()), [false, false, true]);
    }

    #[test]
    fn entry_that_waits_for_nothing_breaks_an_invariant() {
        let mut table = PendingTable::new(3);
        table.add(access(1));
        let broken = |table: &PendingTable| Invariants::broken(|check| table.invariants(check));
        assert!(broken(&table).is_empty());
        table.entries[0].outstanding = 0;
        assert_eq!(broken(&table), ["accesses that wait: 0, not 1"]);
    }

    #[test]
    fn tag_holds_entry_and_packet() {
        assert_eq!(entry_and_packet(tag(70, 31)), (70, 31));
    }

    #[test]
    #[should_panic(expected = "the pending request table is full")]
    fn full_table_refuses_an_access() {
        let mut table = PendingTable::new(1);
        (0..2).for_each(|pc| _ = table.add(access(pc)));
    }
}
