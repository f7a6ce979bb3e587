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
    /// LSU to L1 only: drop every line, as at the start of a grid, and hold so many bytes from now on: what the grid's carve-out
    /// for shared memory leaves. Takes effect in order; comes back as an answer.
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
#[derive(Clone, Debug)]
pub struct Packet {
    /// What is wanted.
    pub kind: PacketKind,
    /// Device address of the line, a multiple of [`LINE`].
    pub line: u64,
    /// Sectors concerned, bit i for bytes 32*i on.
    pub sectors: u8,
    /// Bytes that a store writes, bit i for byte i.
    pub byte_mask: u128,
    /// Data of a store; data of a load's answer.
    pub bytes: [u8; LINE],
    /// Lanes of an atomic; boxed once, kept with the packet.
    pub atomic: Option<Box<AtomicLanes>>,
    /// How caches treat it.
    pub cache: CacheOp,
    /// The SM that waits for the answer.
    pub sm: u16,
    /// The L2 slice that is home to the line; filled in by whoever sends it to the crossbar.
    pub slice: u16,
    /// Who inside the sender waits: the sender's own business.
    pub tag: u32,
    /// Whether the sectors were found in the L1 (an answer to the LSU), for counting.
    pub l1_hit: bool,
    /// Whether the sectors were found in the L2.
    pub l2_hit: bool,
    /// When it passed each stage.
    pub stamps: Stamps,
}

impl Packet {
    /// A packet that wants nothing yet, for a pool.
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
            stamps: Stamps::NONE,
        }
    }

    /// Number of sectors concerned.
    pub fn n_sectors(&self) -> u32 {
        u32::from(self.sectors).count_ones()
    }
}

/// Bits of the sectors in a mask of bytes of a line.
#[inline]
pub fn byte_mask(sectors: u8) -> u128 {
    (0..SECTORS)
        .filter(|n| sectors >> n & 1 == 1)
        .fold(0, |mask, n| mask | 0xffff_ffff << (SECTOR * n))
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
    for sector in each_sector(sectors) {
        let bytes = sector * SECTOR..(sector + 1) * SECTOR;
        to[bytes.clone()].copy_from_slice(&from[bytes]);
    }
}

/// Copies the bytes whose bit is set in `mask`.
#[inline]
pub fn copy_bytes(from: &[u8; LINE], to: &mut [u8; LINE], mask: u128) {
    for sector in 0..SECTORS {
        let first = sector * SECTOR;
        match (mask >> first) as u32 {
            0 => {}
            u32::MAX => to[first..first + SECTOR].copy_from_slice(&from[first..first + SECTOR]),
            mut some => {
                while some != 0 {
                    let byte = first + some.trailing_zeros() as usize;
                    to[byte] = from[byte];
                    some &= some - 1;
                }
            }
        }
    }
}
