//! Bulk copies of the reference: each moves its bytes at once, then its mbarrier counts them.

use std::ops::Range;

use warpwave_components::proto::bulk::{CONST_BANK, constant_map};
use warpwave_components::proto::launch::{Trap, TrapKind};
use warpwave_isa::exec::atomic::{AtomicUnit, atomic};
use warpwave_isa::exec::bulk::{Extent, MAP_ALIGNMENT, MAP_BYTES, Piece, TensorMap, split_run, swizzled};
use warpwave_isa::exec::mbarrier;
use warpwave_isa::inst::{AtomOp, Ty};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{PARAM_WINDOW, Space, WINDOW_BYTES, split_window};

use super::access::Lsu;
use super::race_detector::{Kind, Strength};

/// The copy of one lane: its pieces, and their total size.
struct LaneCopy {
    lane: usize,
    /// Runs of bytes that are contiguous in global memory.
    pieces: Vec<Piece>,
    /// Total bytes.
    bytes: u32,
    /// The tensor map, if the copy is of a tile.
    map: Option<TensorMap>,
}

impl LaneCopy {
    /// The address in shared memory of byte `n` of a piece.
    fn shared(&self, piece: Piece, n: u32) -> u32 {
        swizzled(piece.shared + n, self.map.map_or(0, |map| map.swizzle))
    }
}

/// Splits a piece at the words of shared memory. A swizzle keeps the bytes of a word together.
fn words(piece: Piece) -> impl Iterator<Item = Range<u32>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let n = next..(next + 4 - (piece.shared + next) % 4).min(piece.bytes);
        next = n.end;
        (!n.is_empty()).then_some(n)
    })
}

/// The address of a byte in the shared memory of the CTA with this rank.
fn in_cluster(rank: u32, at: u32) -> u64 {
    u64::from(rank + 1) * WINDOW_BYTES + u64::from(at)
}

impl Lsu<'_, '_> {
    /// Executes UBLKCP or UBLKRED, lane by lane.
    pub(super) fn bulk_copy(&mut self, lanes: LaneMask) -> Result<(), Box<Trap>> {
        lanes.iter().try_for_each(|lane| self.bulk_copy_of(lane))
    }

    /// Executes the copy of one lane: checks it, moves the bytes, counts them at the mbarrier of each destination.
    fn bulk_copy_of(&mut self, lane: usize) -> Result<(), Box<Trap>> {
        let extent = Extent::of(&self.inst.mods);
        let (rank, shared) = split_window(self.word(0, 0, lane).into());
        let shared = shared as u32;
        let own = self.cta.rank as u32;
        let mask = extent.mask(|n| self.word(2, n, lane));
        // A multicast writes to the CTAs of its mask, another copy to the CTA of its address.
        let ranks: Vec<u32> = match mask {
            Some(mask) => (0..u16::BITS).filter(|rank| mask >> rank & 1 == 1).collect(),
            None => vec![rank.unwrap_or(own)],
        };
        // A copy to global memory reads only the shared memory of its own CTA.
        let is_remote_source = self.inst.mods.high && ranks[..] != [own];
        let is_foreign = |rank: &u32| *rank as usize >= self.cta.shared.len();
        if ranks.is_empty() || ranks.iter().any(is_foreign) || is_remote_source {
            return Err(self.trap(lane, TrapKind::OutOfBounds, Space::Cluster, shared.into(), 0));
        }
        // PTX ISA: a tile in shared memory is aligned to 128 bytes.
        let alignment = if extent.coordinates == 0 { 16 } else { 128 };
        self.check_alignment(lane, Space::Shared, shared.into(), alignment)?;
        let copy = match extent.coordinates {
            0 => self.plain_copy(lane, shared)?,
            _ => self.tile_copy(lane, extent, shared)?,
        };
        self.inside(lane, Space::Cluster, in_cluster(ranks[0], shared), copy.bytes as usize)?;
        if self.inst.mods.high {
            return self.write_global(&copy, ranks[0]);
        }
        for rank in ranks {
            self.write_shared(&copy, rank)?;
            let (_, at) = split_window(self.word(3, 0, lane).into());
            let state = self.inside(lane, Space::Cluster, in_cluster(rank, at as u32), 8)?;
            let before = u64::from_le_bytes((&*state).try_into().expect("eight bytes"));
            // The upper half of an mbarrier is its transaction count.
            let operand = u64::from(copy.bytes.wrapping_neg()) << 32;
            if let Some(fault) = mbarrier::fault(AtomOp::Arrive, before, operand) {
                return Err(self.trap(lane, TrapKind::Mbarrier(fault), Space::Cluster, at, 8));
            }
            let after = mbarrier::arrive(before, operand, false);
            state.copy_from_slice(&after.to_le_bytes());
            if let Some(detector) = &mut self.cta.detector {
                detector.complete_copy(self.warp, rank as usize, at as u32);
            }
            if let Some(detector) = &mut self.cta.global {
                detector.arrive_at_mbarrier(self.warp, rank as usize, at as u32);
            }
        }
        Ok(())
    }

    /// A copy without a map: contiguous bytes.
    fn plain_copy(&mut self, lane: usize, shared: u32) -> Result<LaneCopy, Box<Trap>> {
        let (global, bytes) = (self.wide(1, lane), self.word(2, 0, lane));
        if !bytes.is_multiple_of(16) {
            return Err(self.trap(lane, TrapKind::BulkSize, Space::Global, global, bytes as usize));
        }
        self.check_alignment(lane, Space::Global, global, 16)?;
        self.inside(lane, Space::Global, global, bytes as usize)?;
        let mut pieces = Vec::new();
        split_run(Some(global), shared, bytes, &mut |piece| pieces.push(piece));
        Ok(LaneCopy {
            lane,
            pieces,
            bytes,
            map: None,
        })
    }

    /// A copy of a tile of a tensor.
    fn tile_copy(&mut self, lane: usize, extent: Extent, shared: u32) -> Result<LaneCopy, Box<Trap>> {
        let map = self.tensor_map(lane)?;
        let at = extent.coordinates(|n| self.word(2, n, lane));
        let offsets = extent.offsets(|n| self.word(2, n, lane));
        // Checked before the pieces are listed: a map that the kernel wrote may describe billions of bytes.
        let rank = self.cta.rank as u32;
        self.inside(
            lane,
            Space::Cluster,
            in_cluster(rank, shared),
            map.tile_bytes() as usize,
        )?;
        let mut pieces = Vec::new();
        map.pieces(at, offsets, shared, &mut |piece| pieces.push(piece));
        Ok(LaneCopy {
            lane,
            pieces,
            bytes: map.tile_bytes(),
            map: Some(map),
        })
    }

    /// The tensor map of a lane: in parameters, constants or global memory.
    fn tensor_map(&mut self, lane: usize) -> Result<TensorMap, Box<Trap>> {
        let address = self.wide(1, lane);
        let map = match address.checked_sub(PARAM_WINDOW).filter(|at| *at < 2 * WINDOW_BYTES) {
            Some(at) if at < WINDOW_BYTES => constant_map(self.cta.grid, 0, at),
            Some(at) => constant_map(self.cta.grid, CONST_BANK, at - WINDOW_BYTES),
            None => {
                self.inside(lane, Space::Global, address, MAP_BYTES)?;
                self.check_alignment(lane, Space::Global, address, MAP_ALIGNMENT as usize)?;
                let bytes = self.inside(lane, Space::Global, address, MAP_BYTES)?;
                TensorMap::from_bytes((&*bytes).try_into().expect("the bytes of a map"))
            }
        };
        let mods = self.inst.mods;
        let fits = |map: &TensorMap| {
            let reduces = self.inst.op == Opcode::Ublkred;
            map.rank == mods.count
                && (mods.high || mods.trans == map.im2col.is_some())
                && (!reduces || map.element.reduction(mods.atom).is_some())
        };
        let map = map.filter(fits);
        map.ok_or_else(|| self.trap(lane, TrapKind::OutOfBounds, Space::Const, address, MAP_BYTES))
    }

    /// Writes a copy to the shared memory of a CTA.
    fn write_shared(&mut self, copy: &LaneCopy, rank: u32) -> Result<(), Box<Trap>> {
        let lane = copy.lane;
        for &piece in &copy.pieces {
            if let Some(from) = piece.global {
                let bytes = piece.bytes as usize;
                self.show_to_global(lane, (Kind::Read, Strength::Weak), from, bytes, None);
            }
            for n in words(piece) {
                let mut bytes = [0; 4];
                for (m, byte) in (n.start..).zip(&mut bytes[..n.len()]) {
                    *byte = match piece.global {
                        Some(at) => self.inside(lane, Space::Global, at + u64::from(m), 1)?[0],
                        None => copy.map.map_or(0, |map| map.fill_byte(piece.shared + m)),
                    };
                }
                let (at, bytes) = (copy.shared(piece, n.start), &bytes[..n.len()]);
                self.show_to_shared((lane, rank as usize), at, bytes.len(), Some(bytes));
                self.inside(lane, Space::Cluster, in_cluster(rank, at), bytes.len())?
                    .copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Writes a copy to global memory, or reduces it there. Bytes outside a tensor are not written.
    fn write_global(&mut self, copy: &LaneCopy, rank: u32) -> Result<(), Box<Trap>> {
        let lane = copy.lane;
        let op = self.inst.mods.atom;
        let map = copy.map.filter(|_| self.inst.op == Opcode::Ublkred);
        let reduction = map.and_then(|map| map.element.reduction(op));
        let size = reduction.map_or(1, Ty::bytes);
        for &piece in &copy.pieces {
            let Some(global) = piece.global else { continue };
            for n in words(piece) {
                let at = copy.shared(piece, n.start);
                self.show_to_shared((lane, rank as usize), at, n.len(), None);
            }
            // A plain copy moves byte by byte, a reduction element by element.
            for n in (0..piece.bytes).step_by(size.into()) {
                let from = in_cluster(rank, copy.shared(piece, n));
                let mut bytes = [0; 16];
                let n_bytes = usize::from(size);
                bytes[..n_bytes].copy_from_slice(self.inside(lane, Space::Cluster, from, n_bytes)?);
                let to = global + u64::from(n);
                let (access, new) = match reduction {
                    Some(_) => ((Kind::Atomic, Strength::Gpu), None),
                    None => ((Kind::Write, Strength::Weak), Some(&bytes[..n_bytes])),
                };
                self.show_to_global(lane, access, to, n_bytes, new);
                let to = self.inside(lane, Space::Global, to, n_bytes)?;
                if let Some(ty) = reduction {
                    let mut old = [0; 16];
                    old[..n_bytes].copy_from_slice(to);
                    let new = atomic(
                        AtomicUnit::L2,
                        op,
                        ty,
                        u128::from_le_bytes(old),
                        u128::from_le_bytes(bytes),
                        0,
                    );
                    bytes = new.to_le_bytes();
                }
                to.copy_from_slice(&bytes[..n_bytes]);
            }
        }
        Ok(())
    }

    /// The first two words of an operand, as one number.
    fn wide(&self, slot: usize, lane: usize) -> u64 {
        u64::from(self.word(slot, 1, lane)) << 32 | u64::from(self.word(slot, 0, lane))
    }
}
