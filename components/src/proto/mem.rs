//! Memory packets: the part of a warp request on one 128-byte line, and its response.
//!
//! A warp access of up to 4 bytes a lane is one request, a wider one several. There is one packet per request and line. Its box travels
//! LSU -> L1 -> crossbar -> L2 slice and back, so nothing is allocated on the way. For fills and write-backs between L2 and HBM
//! the same type is used.

use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::atomic::{AtomicUnit, atomic};
use warpwave_isa::inst::{AtomOp, CacheOp, Ty};

use crate::proto::cluster::RemoteByte;
use crate::proto::trap::Origin;

/// Bytes of a line.
pub const LINE: usize = 128;
/// Bytes of a sector.
pub const SECTOR: usize = 32;
/// Sectors of a line.
pub const SECTORS: usize = LINE / SECTOR;

/// Tag bit of packets of the bulk copy engine. Packets of the LSU do not set it.
pub const BULK_TAG: u32 = 1 << 30;

/// Tag bit of packets of an own component between LSU and L1. Packets of the LSU do not set it.
pub const OWN_TAG: u32 = 1 << 29;

/// Kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// Reads the bytes of the sectors.
    Load,
    /// Writes the masked bytes. The L2 acknowledges it once it has them.
    Store,
    /// Reads, modifies and writes at the L2, per lane. The response has the old values.
    Atomic,
    /// An atomic without old values in the response.
    Reduction,
    /// Invalidates every line of the L1, in order with other requests. The LSU sends it at the start of a grid and for an acquire. The
    /// response is the packet itself.
    Invalidate {
        /// Capacity of the L1 from now on, in bytes: the rest of the carve-out for shared memory.
        bytes: u32,
    },
}

/// Role of a packet between the two partitions of an L2 that keeps copies of far lines (`l2.far_lines`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// A packet that never crosses: the home slice of its line is in the partition of its SM, or no slice keeps copies.
    Near,
    /// A request of an SM for a line whose home slice is in the other partition. In the response to a load: its data have crossed.
    Far,
    /// A load that the near slice sends to the home slice, for a copy. The response is the fill.
    Fetch,
    /// A request of the home slice to the near slice: drop the copy.
    Recall,
    /// The answer to a recall: the near slice has no copy.
    Recalled,
}

/// What a packet is for, where its kind does not tell. For statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A load of a warp from global memory, or the fill for one.
    GlobalLoad,
    /// An access of a texture or surface, or the fill for one.
    Texture,
    /// A write of a dirty line that the host has written back after a launch.
    Flush,
    /// Any other.
    Other,
}

/// Command of the host to an L2 slice, between launches. It keeps device memory and L2 consistent, outside simulated time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceCommand {
    /// Writes every dirty sector back to memory, and keeps it as clean.
    WriteBack,
    /// Invalidates every clean line, since the host has written to memory.
    Invalidate,
}

/// Stages of a packet, in order. The stamp of a stage is the cycle in which the packet entered it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Stage {
    /// Issue of the warp instruction.
    Issue,
    /// The LSU builds the packet.
    Lsu,
    /// L1 tag lookup.
    L1,
    /// Sent to the crossbar.
    Request,
    /// L2 slice tag lookup.
    L2,
    /// Accepted by a memory channel.
    Hbm,
    /// `l2.slice_latency` after the hit or the last fill in the slice: the response is on its way back.
    L2Data,
    /// The response arrives at the L1.
    Response,
    /// The response arrives at the LSU.
    Return,
}

/// Number of stages.
pub const STAGES: usize = Stage::Return as usize + 1;

/// The cycle in which a packet entered each stage, or [`Cycle::NEVER`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamps(pub [Cycle; STAGES]);

impl Stamps {
    /// No stage entered.
    pub const NONE: Stamps = Stamps([Cycle::NEVER; STAGES]);

    /// Stores the cycle in which the packet enters a stage.
    #[inline]
    pub fn note(&mut self, stage: Stage, now: Cycle) {
        self.0[stage as usize] = now;
    }

    /// The cycle in which the packet entered a stage, if it did.
    pub fn at(&self, stage: Stage) -> Option<Cycle> {
        let at = self.0[stage as usize];
        (at != Cycle::NEVER).then_some(at)
    }
}

/// A lane of an atomic packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtomicLane {
    /// The lane.
    pub lane: u8,
    /// Byte offset in the line.
    pub offset: u8,
    /// The operand. In the response: the old value.
    pub value: u128,
    /// Compare value of a CAS.
    pub compare: u128,
}

/// The lanes of an atomic packet, applied in lane order.
#[derive(Clone, Debug)]
pub struct AtomicLanes {
    /// Operation.
    pub op: AtomOp,
    /// Type of the word.
    pub ty: Ty,
    /// The instruction of an arrival at an mbarrier, for its trap. Undefined for other operations.
    pub origin: Origin,
    /// Lanes in use.
    pub n: usize,
    /// The lanes, lowest first.
    pub lanes: [AtomicLane; 32],
}

impl Default for AtomicLanes {
    fn default() -> Self {
        AtomicLanes {
            op: AtomOp::Add,
            ty: Ty::U32,
            origin: Origin::default(),
            n: 0,
            lanes: [AtomicLane::default(); 32],
        }
    }
}

impl AtomicLanes {
    /// For each sector, the number of lanes on the word that most lanes access.
    pub fn rounds(&self) -> [u32; SECTORS] {
        rounds(self.lanes[..self.n].iter().map(|lane| lane.offset))
    }

    /// Bytes of the line that the lanes of a completed atomic have written.
    fn written(&self) -> u128 {
        let word = (1u128 << self.ty.bytes()) - 1;
        let lanes = self.lanes[..self.n].iter();
        // The response holds the old value in place of the operand.
        let wrote = lanes.filter(|lane| self.op != AtomOp::Cas || lane.value == lane.compare);
        wrote.fold(0, |mask, lane| mask | word << lane.offset)
    }
}

/// For each sector of a line, the number of lanes on the word that most lanes access. Takes the byte offset of each lane's word.
pub fn rounds(offsets: impl Iterator<Item = u8>) -> [u32; SECTORS] {
    // The smallest word of an atomic has 2 bytes. A wider one is counted by its first 2: all lanes have words of one size.
    let mut counts = [0u32; LINE / 2];
    let mut most = [0; SECTORS];
    for offset in offsets {
        let (count, most) = (
            &mut counts[usize::from(offset / 2)],
            &mut most[usize::from(offset) / SECTOR],
        );
        *count += 1;
        *most = (*most).max(*count);
    }
    most
}

/// Applies an atomic to the bytes of one word. Returns the old value.
pub fn apply_atomic(unit: AtomicUnit, word: &mut [u8], op: AtomOp, ty: Ty, (operand, compare): (u128, u128)) -> u128 {
    let mut old = [0; 16];
    old[..word.len()].copy_from_slice(word);
    let old = u128::from_le_bytes(old);
    let new = atomic(unit, op, ty, old, operand, compare);
    word.copy_from_slice(&new.to_le_bytes()[..word.len()]);
    old
}

/// A memory request for one line, and its response.
///
/// The layout is in whole host cache lines: one that every stage reads, one of stamps, two of data.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// Bytes that a store writes, bit i for byte i.
    pub byte_mask: u128,
    /// Device address of the line, a multiple of [`LINE`].
    pub line: u64,
    /// Lanes of an atomic. Allocated by the first one, and kept with the packet.
    pub atomic: Option<Box<AtomicLanes>>,
    /// Kind of the request.
    pub kind: PacketKind,
    /// Tag of the sender: it finds its entry by it. No other block reads it.
    pub tag: u32,
    /// The SM of the sender.
    pub sm: u16,
    /// Home slice of the line. The sender to the crossbar sets it.
    pub slice: u16,
    /// Sectors of the packet, bit i for bytes 32*i to 32*i + 31.
    pub sectors: u8,
    /// Words that the lanes take from the response of a load. The data path of the L1 carries them.
    pub words: u8,
    /// Cache operator of the instruction.
    pub cache: CacheOp,
    /// In a response to the LSU: true if the L1 had all sectors. For statistics.
    pub l1_hit: bool,
    /// In a response of the L2: true if the L2 had all sectors.
    pub l2_hit: bool,
    /// What the packet is for. For statistics.
    pub purpose: Purpose,
    /// Role between the two partitions of the L2. The sender to the crossbar sets it.
    pub crossing: Crossing,
    /// True if the packet stores its stamps. It does so for subscribers and histograms.
    pub is_timed: bool,
    /// Stamps of a timed packet. Undefined in others.
    pub stamps: Stamps,
    /// Data of a store, or of the response to a load.
    pub bytes: [u8; LINE],
}

impl Packet {
    /// A timed load without sectors, for a pool. Its response takes a whole cycle of the data path.
    pub fn blank() -> Self {
        Packet {
            kind: PacketKind::Load,
            line: 0,
            sectors: 0,
            byte_mask: 0,
            bytes: [0; LINE],
            atomic: None,
            words: (LINE / 4) as u8,
            cache: CacheOp::All,
            sm: 0,
            slice: 0,
            tag: 0,
            l1_hit: false,
            l2_hit: false,
            purpose: Purpose::Other,
            crossing: Crossing::Near,
            is_timed: true,
            stamps: Stamps::NONE,
        }
    }

    /// Prepares the stamps of a new packet. Clears them if it is timed.
    #[inline]
    pub fn start_stamps(&mut self, is_timed: bool) {
        self.is_timed = is_timed;
        if is_timed {
            self.stamps = Stamps::NONE;
        }
    }

    /// Stores the cycle in which the packet enters a stage, if it is timed.
    #[inline]
    pub fn note(&mut self, stage: Stage, now: Cycle) {
        if self.is_timed {
            self.stamps.note(stage, now);
        }
    }

    /// Offset in the line of an address whose sector the packet carries.
    #[inline]
    pub fn offset_of(&self, address: u64) -> Option<usize> {
        // An address below the line wraps to a large offset.
        let offset = address.wrapping_sub(self.line) as usize;
        (offset < LINE && self.sectors >> (offset / SECTOR) & 1 == 1).then_some(offset)
    }

    /// Number of the line: its address divided by the size of a line.
    #[inline]
    pub fn line_number(&self) -> u32 {
        // The check of a configuration bounds device memory, so 32 bits hold the number.
        (self.line / LINE as u64) as u32
    }

    /// Copies the stamps of `stages` from the fill that served a packet, if the fill was there no earlier than the packet at `since`.
    pub fn inherit_stamps(&mut self, fill: &Packet, since: Stage, stages: &[Stage]) {
        if !self.is_timed || !fill.is_timed {
            return;
        }
        // A packet that merged with a miss came after the first stages of the fill.
        let earliest = self.stamps.0[since as usize];
        for &stage in stages {
            if let Some(at) = fill.stamps.at(stage).filter(|&at| at >= earliest) {
                self.note(stage, at);
            }
        }
    }

    /// Turns a request for shared memory into the response of a CTA that has ended. No access has been performed.
    #[inline]
    pub fn refuse(&mut self) {
        self.sectors = 0;
    }

    /// True for the response of a CTA that has ended.
    #[inline]
    pub fn is_refused(&self) -> bool {
        // Every request for shared memory has a sector.
        self.sectors == 0
    }

    /// Number of sectors of the request.
    #[inline]
    pub fn n_sectors(&self) -> u32 {
        n_sectors(self.sectors)
    }

    /// Bytes that a completed request has written, bit i for byte i. A failed compare-and-swap writes none.
    pub fn written(&self) -> u128 {
        match (self.kind, &self.atomic) {
            (PacketKind::Store, _) => self.byte_mask,
            (PacketKind::Atomic | PacketKind::Reduction, Some(atomics)) => atomics.written(),
            _ => 0,
        }
    }

    /// Number of sectors that the request changes. 0 for a load.
    #[inline]
    pub fn n_changed(&self) -> u32 {
        match self.kind {
            PacketKind::Store | PacketKind::Atomic | PacketKind::Reduction => self.n_sectors(),
            PacketKind::Load | PacketKind::Invalidate { .. } => 0,
        }
    }
}

/// An address for waveforms, in 48 bits. For the shared memory of another SM it is the SM in bits 32 to 47, and the byte.
#[inline]
pub fn shown(address: u64) -> u64 {
    match RemoteByte::of(address) {
        Some(remote) => u64::from(remote.sm) << 32 | u64::from(remote.byte),
        None => address & (u64::MAX >> 16),
    }
}

/// Number of sectors in a mask.
#[inline]
pub fn n_sectors(sectors: u8) -> u32 {
    // Four bits per mask. Faster than a population count on hosts without that instruction.
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    (COUNTS >> (4 * (sectors & ALL_SECTORS))) as u32 & 0xf
}

/// All sectors of a line.
pub const ALL_SECTORS: u8 = (1 << SECTORS) - 1;

/// Splits a byte mask of a line into one byte mask per sector.
#[inline]
pub fn sector_masks(mask: u128) -> [u32; SECTORS] {
    std::array::from_fn(|sector| (mask >> (SECTOR * sector)) as u32)
}

/// The byte mask of the sectors in `sectors`.
#[inline]
pub fn byte_mask(sectors: u8) -> u128 {
    const MASKS: [u128; 1 << SECTORS] = masks();
    MASKS[usize::from(sectors & ALL_SECTORS)]
}

/// The byte mask for each sector mask.
const fn masks() -> [u128; 1 << SECTORS] {
    let mut masks = [0; 1 << SECTORS];
    let mut n = 0;
    while n < masks.len() * SECTORS {
        let (sectors, sector) = (n / SECTORS, n % SECTORS);
        if sectors >> sector & 1 == 1 {
            masks[sectors] |= 0xffff_ffff << (SECTOR * sector);
        }
        n += 1;
    }
    masks
}

/// Indices of the sectors in `sectors`, lowest first.
#[inline]
pub fn each_sector(sectors: u8) -> impl Iterator<Item = usize> {
    ones(sectors & ALL_SECTORS)
}

/// Copies the bytes of `sectors`.
#[inline]
pub fn copy_sectors(from: &[u8; LINE], to: &mut [u8; LINE], sectors: u8) {
    if sectors & ALL_SECTORS == ALL_SECTORS {
        // A fill of a whole line is one copy for the host.
        *to = *from;
        return;
    }
    let (from, to) = (from.as_chunks::<SECTOR>().0, to.as_chunks_mut::<SECTOR>().0);
    for sector in each_sector(sectors) {
        to[sector] = from[sector];
    }
}

/// Copies the bytes whose bit is set in `mask`.
#[inline]
pub fn copy_bytes(from: &[u8; LINE], to: &mut [u8; LINE], mask: u128) {
    if mask == u128::MAX {
        *to = *from;
        return;
    }
    // By sector: most stores fill whole sectors or leave them alone.
    let (from, to) = (from.as_chunks::<SECTOR>().0, to.as_chunks_mut::<SECTOR>().0);
    for sector in 0..SECTORS {
        match (mask >> (SECTOR * sector)) as u32 {
            0 => {}
            u32::MAX => to[sector] = from[sector],
            some => copy_sector_bytes(&from[sector], &mut to[sector], some),
        }
    }
}

/// Copies the bytes of a sector whose bit is set in `mask`.
#[inline]
fn copy_sector_bytes(from: &[u8; SECTOR], to: &mut [u8; SECTOR], mut mask: u32) {
    // Lanes mostly write whole words of 4 bytes.
    let (from, to) = (from.as_chunks::<4>().0, to.as_chunks_mut::<4>().0);
    while mask != 0 {
        let word = mask.trailing_zeros() as usize / 4;
        let bytes = mask >> (4 * word) & 0xf;
        mask &= !(0xf << (4 * word));
        if bytes == 0xf {
            to[word] = from[word];
        } else {
            (0..4)
                .filter(|n| bytes >> n & 1 == 1)
                .for_each(|n| to[word][n] = from[word][n]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_request_tells_which_bytes_it_wrote() {
        let mut packet = Packet::blank();
        assert_eq!(packet.written(), 0);
        (packet.kind, packet.byte_mask) = (PacketKind::Store, 0xff0);
        assert_eq!(packet.written(), 0xff0);
        let mut atomics = AtomicLanes {
            op: AtomOp::Cas,
            n: 2,
            ..AtomicLanes::default()
        };
        // The first lane found the value 5 that it compares with, the second one did not.
        for (lane, (offset, value)) in [(4, 5), (64, 6)].into_iter().enumerate() {
            (atomics.lanes[lane].offset, atomics.lanes[lane].value) = (offset, value);
            atomics.lanes[lane].compare = 5;
        }
        (packet.kind, packet.atomic) = (PacketKind::Atomic, Some(Box::new(atomics)));
        assert_eq!(packet.written(), 0xf0);
    }

    #[test]
    fn packet_fills_four_host_cache_lines() {
        assert_eq!((size_of::<Packet>(), std::mem::offset_of!(Packet, bytes)), (256, 128));
    }

    #[test]
    fn copy_with_a_byte_mask_copies_exactly_its_bytes() {
        let from: [u8; LINE] = std::array::from_fn(|n| n as u8 + 1);
        let mut random = 1u128;
        for n in 0..1000u32 {
            random = random
                .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
                .wrapping_add(1);
            // In turn: random bytes, whole sectors, whole words.
            let mask = match n % 3 {
                0 => random ^ random >> 64,
                1 => byte_mask((random >> 100) as u8),
                _ => random & byte_mask((random >> 100) as u8) | 0xf << (4 * (random >> 70 & 31)),
            };
            let mut to = [0; LINE];
            copy_bytes(&from, &mut to, mask);
            for (at, byte) in to.into_iter().enumerate() {
                let expected = if mask >> at & 1 == 1 { from[at] } else { 0 };
                assert_eq!(byte, expected, "byte {at} of {mask:#x}");
            }
        }
    }

    #[test]
    fn copy_with_a_sector_mask_copies_exactly_its_sectors() {
        let from = [7; LINE];
        for sectors in 0..=ALL_SECTORS {
            let mut to = [0; LINE];
            copy_sectors(&from, &mut to, sectors);
            assert_eq!(n_sectors(sectors), sectors.count_ones());
            for (at, byte) in to.into_iter().enumerate() {
                let concerned = sectors >> (at / SECTOR) & 1 == 1;
                assert_eq!((byte == 7, byte_mask(sectors) >> at & 1 == 1), (concerned, concerned));
            }
        }
    }
}
