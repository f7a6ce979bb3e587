//! Bulk copies of the reference: performed at once, then counted by their mbarrier.

use warpwave_components::proto::launch::{Grid, Trap, TrapKind};
use warpwave_isa::exec::bulk::{MAP_BYTES, Piece, TensorMap, split_run, swizzled};
use warpwave_isa::exec::mbarrier;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::space::{PARAM_WINDOW, Space};

use super::access::Lsu;

impl Lsu<'_, '_> {
    pub(super) fn bulk_copy(&mut self, lanes: LaneMask) -> Result<(), Box<Trap>> {
        lanes.iter().try_for_each(|lane| self.bulk_copy_of(lane))
    }

    fn bulk_copy_of(&mut self, lane: usize) -> Result<(), Box<Trap>> {
        let to_global = self.inst.mods.high;
        let shared = self.word(0, 0, lane);
        let global = u64::from(self.word(1, 1, lane)) << 32 | u64::from(self.word(1, 0, lane));
        let count = usize::from(self.inst.mods.count);
        let mut pieces = Vec::new();
        let (bytes, swizzle) = if count == 0 {
            let bytes = self.word(2, 0, lane);
            for (space, address) in [(Space::Shared, u64::from(shared)), (Space::Global, global)] {
                self.check_alignment(lane, space, address, 16)?;
                self.inside(lane, space, address, bytes as usize)?;
            }
            split_run(Some(global), shared, bytes, &mut |piece| pieces.push(piece));
            (bytes, 0)
        } else {
            let Some(map) = map(self.cta.grid, global) else {
                return Err(self.trap(lane, TrapKind::OutOfBounds, Space::Const, global, MAP_BYTES));
            };
            self.check_alignment(lane, Space::Shared, shared.into(), 16)?;
            self.inside(lane, Space::Shared, shared.into(), map.tile_bytes() as usize)?;
            let at = std::array::from_fn(|n| if n < count { self.word(2, n, lane) as i32 } else { 0 });
            map.pieces(at, shared, &mut |piece| pieces.push(piece));
            (map.tile_bytes(), map.swizzle)
        };
        for piece in pieces {
            self.move_piece(lane, piece, swizzle, to_global)?;
        }
        if to_global {
            return Ok(());
        }
        let at = u64::from(self.word(3, 0, lane));
        let state = self.inside(lane, Space::Shared, at, 8)?;
        let before = u64::from_le_bytes(state.try_into().expect("eight bytes"));
        // The upper half of an mbarrier is its transaction count.
        let after = mbarrier::arrive(before, u64::from(bytes.wrapping_neg()) << 32, false);
        state.copy_from_slice(&after.to_le_bytes());
        Ok(())
    }

    fn move_piece(&mut self, lane: usize, piece: Piece, swizzle: u8, to_global: bool) -> Result<(), Box<Trap>> {
        for n in 0..piece.bytes {
            let here = u64::from(swizzled(piece.shared + n, swizzle));
            let there = piece.global.map(|at| at + u64::from(n));
            if to_global {
                let byte = self.inside(lane, Space::Shared, here, 1)?[0];
                if let Some(there) = there {
                    self.inside(lane, Space::Global, there, 1)?[0] = byte;
                }
            } else {
                let byte = match there {
                    Some(there) => self.inside(lane, Space::Global, there, 1)?[0],
                    None => 0,
                };
                self.inside(lane, Space::Shared, here, 1)?[0] = byte;
                if let Some(detector) = &mut self.cta.detector {
                    detector.mark_written(here as u32);
                }
            }
        }
        Ok(())
    }
}

/// The tensor map at an address, if it is a kernel's parameter.
fn map(grid: &Grid, address: u64) -> Option<TensorMap> {
    let first = u16::try_from(address.checked_sub(PARAM_WINDOW)? / 4).ok()?;
    let word = |n: usize| grid.constant(0, first.wrapping_add(n as u16 / 4)).to_le_bytes()[n % 4];
    TensorMap::from_bytes(&std::array::from_fn(word))
}
