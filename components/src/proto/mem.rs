//! Memory traffic: one packet for what one warp instruction wants of one 128-byte line.
//!
//! A packet travels LSU -> L1 -> crossbar -> L2 slice and back with the same box, so nothing is allocated on the way; between
//! L2 and HBM the same type carries fills and write-backs. Its stamps say when it passed each stage.

use warpwave_hw::time::Cycle;
use warpwave_isa::inst::{AtomOp, CacheOp, Ty};

/// Bytes of a line.
pub const LINE: usize = 128;
/// Bytes of a sector.
pub const SECTOR: usize = 32;
/// Sectors of a line.
pub const SECTORS: usize = LINE / SECTOR;

/// Set in the tags of packets of the bulk copy engine, by which its L1 tells them from the LSU's.
pub const BULK_TAG: u32 = 1 << 30;

/// Tag of packets that a component between LSU and L1 sends of its own: no packet of the LSU has it.
pub const OWN_TAG: u32 = 1 << 29;

/// What a packet wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// The sectors' bytes.
    Load,
    /// The masked bytes written. Answered when the L2 has them.
    Store,
    /// Read, modify, write at the L2, per lane; answered with the old values.
    Atomic,
    /// As an atomic, answered without values.
    Reduction,
    /// LSU to L1 only, at the start of a grid and for an acquire: drops every line. From now on the L1 holds `bytes` bytes, which the
    /// grid's carve-out for shared memory leaves. Takes effect in order; comes back as an answer.
    Invalidate {
        /// Bytes of lines.
        bytes: u32,
    },
}

/// The host to an L2 slice, between launches. Not timed traffic: it keeps device memory as the host sees it true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceCommand {
    /// Write every dirty sector back to memory and keep it as clean.
    WriteBack,
    /// Forget every (clean) line: the host has written to memory.
    Invalidate,
}

/// Stages that a packet passes, in order. A stage's stamp is the cycle in which the packet entered it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Stage {
    /// The warp instruction was issued.
    Issue,
    /// The LSU has made the packet.
    Lsu,
    /// L1 tag lookup.
    L1,
    /// Left for the crossbar.
    Request,
    /// L2 slice tag lookup.
    L2,
    /// Accepted by a memory channel.
    Hbm,
    /// Its data were back in the L2, or found there.
    L2Data,
    /// Back at the L1.
    Response,
    /// Back at the LSU.
    Return,
}

/// Number of stages.
pub const STAGES: usize = Stage::Return as usize + 1;

/// When a packet entered each stage; [`Cycle::NEVER`] where it did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamps(pub [Cycle; STAGES]);

impl Stamps {
    /// Nothing passed yet.
    pub const NONE: Stamps = Stamps([Cycle::NEVER; STAGES]);

    /// Notes the cycle in which a stage was entered.
    #[inline]
    pub fn note(&mut self, stage: Stage, now: Cycle) {
        self.0[stage as usize] = now;
    }

    /// The cycle in which a stage was entered, if it was.
    pub fn at(&self, stage: Stage) -> Option<Cycle> {
        let at = self.0[stage as usize];
        (at != Cycle::NEVER).then_some(at)
    }
}

/// One lane's part of an atomic packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtomicLane {
    /// The lane.
    pub lane: u8,
    /// Byte offset in the line.
    pub offset: u8,
    /// The operand; in the answer, the old value.
    pub value: u64,
    /// What CAS compares with.
    pub compare: u64,
}

/// The lanes of an atomic packet, applied in lane order.
#[derive(Clone, Debug)]
pub struct AtomicLanes {
    /// Operation.
    pub op: AtomOp,
    /// Type of the word.
    pub ty: Ty,
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
            n: 0,
            lanes: [AtomicLane::default(); 32],
        }
    }
}

/// What one warp instruction wants of one line, and the answer to it.
///
/// Laid out in whole lines of the host's cache: one that every stage reads, one of stamps, two of bytes that few touch.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// Bytes that a store writes, bit i for byte i.
    pub byte_mask: u128,
    /// Device address of the line, a multiple of [`LINE`].
    pub line: u64,
    /// Lanes of an atomic; boxed once, kept with the packet.
    pub atomic: Option<Box<AtomicLanes>>,
    /// What is wanted.
    pub kind: PacketKind,
    /// Who inside the sender waits: the sender's own business.
    pub tag: u32,
    /// The SM that waits for the answer.
    pub sm: u16,
    /// The L2 slice that is home to the line; filled in by whoever sends it to the crossbar.
    pub slice: u16,
    /// Sectors concerned, bit i for bytes 32*i on.
    pub sectors: u8,
    /// How caches treat it.
    pub cache: CacheOp,
    /// Whether the sectors were found in the L1 (an answer to the LSU), for counting.
    pub l1_hit: bool,
    /// Whether the sectors were found in the L2.
    pub l2_hit: bool,
    /// Whether it notes when it passes each stage: where somebody listens.
    pub is_timed: bool,
    /// When it passed each stage, if it is timed; else anything.
    pub stamps: Stamps,
    /// Data of a store; data of a load's answer.
    pub bytes: [u8; LINE],
}

impl Packet {
    /// A packet that wants nothing yet, for a pool; it is timed.
    pub fn blank() -> Self {
        Packet {
            kind: PacketKind::Load,
            line: 0,
            sectors: 0,
            byte_mask: 0,
            bytes: [0; LINE],
            atomic: None,
            cache: CacheOp::All,
            sm: 0,
            slice: 0,
            tag: 0,
            l1_hit: false,
            l2_hit: false,
            is_timed: true,
            stamps: Stamps::NONE,
        }
    }

    /// Passes no stage yet; from now on it is timed or is not.
    #[inline]
    pub fn set_out(&mut self, is_timed: bool) {
        self.is_timed = is_timed;
        if is_timed {
            self.stamps = Stamps::NONE;
        }
    }

    /// Notes the cycle in which it enters a stage, if it is timed.
    #[inline]
    pub fn note(&mut self, stage: Stage, now: Cycle) {
        if self.is_timed {
            self.stamps.note(stage, now);
        }
    }

    /// Number of sectors concerned.
    #[inline]
    pub fn n_sectors(&self) -> u32 {
        n_sectors(self.sectors)
    }

    /// Number of sectors that it changes.
    #[inline]
    pub fn n_changed(&self) -> u32 {
        match self.kind {
            PacketKind::Store | PacketKind::Atomic | PacketKind::Reduction => self.n_sectors(),
            PacketKind::Load | PacketKind::Invalidate { .. } => 0,
        }
    }
}

/// An address as waveforms show it, in 48 bits: of another SM's shared memory the SM and the byte, without the mark.
#[inline]
pub fn shown(address: u64) -> u64 {
    address & (u64::MAX >> 16)
}

/// Sectors in a mask of a line's: four bits of a table each, which is quicker than to count.
#[inline]
pub fn n_sectors(sectors: u8) -> u32 {
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    (COUNTS >> (4 * (sectors & ALL_SECTORS))) as u32 & 0xf
}

/// All sectors of a line.
pub const ALL_SECTORS: u8 = (1 << SECTORS) - 1;

/// A mask of bytes of a line, cut into those of its sectors.
#[inline]
pub fn sector_masks(mask: u128) -> [u32; SECTORS] {
    std::array::from_fn(|sector| (mask >> (SECTOR * sector)) as u32)
}

/// Bits of the sectors in a mask of bytes of a line.
#[inline]
pub fn byte_mask(sectors: u8) -> u128 {
    const MASKS: [u128; 1 << SECTORS] = masks();
    MASKS[usize::from(sectors & ALL_SECTORS)]
}

/// The mask of bytes for each mask of sectors.
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

/// The sectors whose bits are set in `sectors`, lowest first.
#[inline]
pub fn each_sector(mut sectors: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let sector = sectors.trailing_zeros() as usize;
        sectors &= sectors.wrapping_sub(1);
        (sector < SECTORS).then_some(sector)
    })
}

/// Copies the bytes of `sectors`.
#[inline]
pub fn copy_sectors(from: &[u8; LINE], to: &mut [u8; LINE], sectors: u8) {
    if sectors & ALL_SECTORS == ALL_SECTORS {
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
    let (from, to) = (from.as_chunks::<SECTOR>().0, to.as_chunks_mut::<SECTOR>().0);
    for sector in 0..SECTORS {
        match (mask >> (SECTOR * sector)) as u32 {
            0 => {}
            u32::MAX => to[sector] = from[sector],
            some => copy_some(&from[sector], &mut to[sector], some),
        }
    }
}

/// Copies the bytes of a sector whose bit is set in `mask`, words of 4 at once where all of one are wanted, as lanes write them.
#[inline]
pub fn copy_some(from: &[u8; SECTOR], to: &mut [u8; SECTOR], mut mask: u32) {
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
    fn packet_takes_four_lines_of_the_hosts_cache() {
        assert_eq!((size_of::<Packet>(), std::mem::offset_of!(Packet, bytes)), (256, 128));
    }

    #[test]
    fn any_mask_exactly_its_bytes_are_copied() {
        let from: [u8; LINE] = std::array::from_fn(|n| n as u8 + 1);
        let mut random = 1u128;
        for n in 0..1000u32 {
            random = random
                .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
                .wrapping_add(1);
            // Whole sectors and whole words among the others.
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
    fn any_sectors_their_bytes_are_in_the_mask_and_copied() {
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
