//! Memory instructions of the reference. Lanes access memory one at a time, in lane order.

use std::cell::RefCell;
use std::collections::BTreeSet;

use warpwave_components::proto::launch::{Grid, Trap, TrapKind};
use warpwave_isa::exec::access::{addresses, copy_destinations, load_words, store_bytes};
use warpwave_isa::exec::atomic::{AtomicUnit, atomic};
use warpwave_isa::exec::gmma;
use warpwave_isa::exec::mbarrier;
use warpwave_isa::exec::{Operands, Results};
use warpwave_isa::inst::{AtomOp, Inst};
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Decoded;
use warpwave_isa::space::{
    Access, LOCAL_WINDOW, SHARED_WINDOW, SHARED_WINDOWS_BYTES, Space, WINDOW_BYTES, split_window,
};

use super::cta::Cta;
use super::memory::Memory;
use super::race_detector::global::GlobalAccess;
use super::race_detector::{Group, Kind, LaneAccess, Strength};
use super::step;

/// True if the opcode accesses memory or constants.
pub(super) fn is_access(op: Opcode) -> bool {
    use Opcode::{
        Atom, Cctl, CctlIvall, FenceView, Hgmma, HgmmaSp, Ld, Ldc, Ldgdepbar, Ldgsts, Ldsm, Membar, Red, St, Suld,
        Sust, Syncs, Tex, Ublkcp, Ublkred,
    };
    matches!(
        op,
        Ld | St
            | Atom
            | Red
            | Cctl
            | CctlIvall
            | FenceView
            | Membar
            | Ldc
            | Ldsm
            | Ldgsts
            | Ldgdepbar
            | Syncs
            | Hgmma
            | HgmmaSp
            | Tex
            | Suld
            | Sust
            | Ublkcp
            | Ublkred
    )
}

/// The execution of one memory instruction.
pub(super) struct Lsu<'a, 'g> {
    pub cta: &'a mut Cta<'g>,
    pub warp: usize,
    pub memory: &'a mut Memory,
    pub inst: &'a Inst,
    pub decoded: &'a Decoded,
    pub operands: &'a Operands,
}

impl Lsu<'_, '_> {
    /// Executes the instruction in `lanes`.
    pub fn run(mut self, lanes: LaneMask, results: &mut Results) -> Result<(), Box<Trap>> {
        let at = addresses(self.inst, self.decoded, self.operands);
        match self.inst.op {
            Opcode::Ldgdepbar => {
                if let Some(detector) = &mut self.cta.detector {
                    detector.close(Group::Copies, self.warp, lanes);
                }
                Ok(())
            }
            // The reference has no caches, and each access is performed at once. So fences and cache controls change no memory.
            Opcode::Cctl => Ok(()),
            Opcode::CctlIvall | Opcode::Membar | Opcode::FenceView => {
                self.fence(lanes);
                Ok(())
            }
            Opcode::Ublkcp | Opcode::Ublkred => self.bulk_copy(lanes),
            Opcode::Hgmma | Opcode::HgmmaSp => {
                self.multiply(results);
                Ok(())
            }
            Opcode::Tex | Opcode::Suld | Opcode::Sust => lanes.iter().try_for_each(|lane| self.image(lane, results)),
            Opcode::Ldsm => self.load_matrices(lanes, &at, results),
            Opcode::Ldgsts => self.copy(lanes, &at),
            _ => lanes.iter().try_for_each(|lane| self.one(lane, at[lane], results)),
        }
    }

    /// Executes a load, store or atomic in one lane.
    fn one(&mut self, lane: usize, address: u64, results: &mut Results) -> Result<(), Box<Trap>> {
        let access = self.inst.mods.access;
        let n = access.total() as usize;
        if matches!(self.inst.op, Opcode::Ld | Opcode::St) {
            self.check_alignment(lane, self.inst.mods.space, address, self.inst.mods.alignment() as usize)?;
        }
        match self.inst.op {
            Opcode::Ldc => self.load_constant(lane, address, results)?,
            Opcode::Ld => {
                let words = load_words(access, self.bytes(lane, self.inst.mods.space, address, n)?);
                self.show_to_detector(lane, self.inst.mods.space, address, n, None);
                set_words(results, lane, access, words);
            }
            Opcode::St => {
                let bytes = store_bytes(access, self.words(1, lane, access));
                // Before the write: the detector compares with the old bytes.
                self.show_to_detector(lane, self.inst.mods.space, address, n, Some(&bytes[..n]));
                self.bytes(lane, self.inst.mods.space, address, n)?
                    .copy_from_slice(&bytes[..n]);
            }
            // SYNCS tests an mbarrier: has the phase with this parity ended?
            Opcode::Syncs => {
                self.show_to_detector(lane, Space::Shared, address, n, None);
                let state = self.bytes(lane, Space::Shared, address, n)?;
                let state = u64::from_le_bytes((&*state).try_into().expect("a test reads eight bytes"));
                if mbarrier::is_over(state, self.word(1, 0, lane)) {
                    results.preds[0].0 |= 1 << lane;
                    if let Some(detector) = &mut self.cta.global {
                        detector.pass_mbarrier(self.warp, lane, address as u32);
                    }
                    if let Some(detector) = &mut self.cta.detector {
                        detector.pass_mbarrier(self.warp, lane, address as u32);
                    }
                }
            }
            _ => self.atomic(lane, address, results)?,
        }
        Ok(())
    }

    /// Executes ATOM or RED in one lane.
    fn atomic(&mut self, lane: usize, address: u64, results: &mut Results) -> Result<(), Box<Trap>> {
        let (access, mods) = (self.inst.mods.access, self.inst.mods);
        // The words beyond the access are zero.
        let value = |words: [u32; 4]| (0..4).fold(0, |value, n| value | u128::from(words[n]) << (32 * n));
        let b = value(self.words(1, lane, access));
        let (operand, compare) = match mods.atom {
            // CAS has the value to compare first, then the new one.
            AtomOp::Cas => (value(self.words(2, lane, access)), b),
            _ => (b, 0),
        };
        self.show_to_detector(lane, mods.space, address, access.total() as usize, None);
        let place = self.bytes(lane, mods.space, address, access.total() as usize)?;
        let n = place.len();
        let mut old = [0; 16];
        old[..n].copy_from_slice(place);
        let unit = match resolve(mods.space, address).0 {
            Space::Shared | Space::Cluster => AtomicUnit::Shared,
            _ => AtomicUnit::L2,
        };
        let state = u128::from_le_bytes(old);
        if let Some(fault) = mbarrier::fault(mods.atom, state as u64, operand as u64) {
            let (space, at) = resolve(mods.space, address);
            let (rank, offset) = split_window(at);
            // The own block's shared memory has two addresses, and the trap names the short one.
            let is_own = space == Space::Shared || rank.is_none_or(|rank| rank as usize == self.cta.rank);
            let space = if is_own { Space::Shared } else { Space::Cluster };
            return Err(self.trap(lane, TrapKind::Mbarrier(fault), space, offset, n));
        }
        let new = atomic(unit, mods.atom, mods.ty, state, operand, compare);
        place.copy_from_slice(&new.to_le_bytes()[..n]);
        set_words(results, lane, access, load_words(access, &old[..n]));
        Ok(())
    }

    /// Executes LDC in one lane.
    fn load_constant(&mut self, lane: usize, address: u64, results: &mut Results) -> Result<(), Box<Trap>> {
        let (access, bank) = (self.inst.mods.access, self.inst.mods.bank);
        let n = access.total();
        if let Some(kind) = self.cta.grid.constant_fault(bank, address, n) {
            return Err(Box::new(Trap {
                space: Grid::bank_name(bank),
                ..*self.trap(lane, kind, Space::Const, address, n as usize)
            }));
        }
        let byte = |at: u64| {
            let word = u16::try_from(at / 4).map_or(0, |word| self.cta.grid.constant(bank, word));
            word.to_le_bytes()[(at % 4) as usize]
        };
        let mut bytes = [0; 16];
        for (at, to) in (address..).zip(&mut bytes[..n as usize]) {
            *to = byte(at);
        }
        set_words(results, lane, access, load_words(access, &bytes[..n as usize]));
        Ok(())
    }

    /// Executes a warp-group product. Operands outside the CTA's shared memory read as zero.
    fn multiply(&mut self, results: &mut Results) {
        let own = &self.cta.shared[self.cta.rank];
        let checked = self.cta.detector.is_some();
        // Each word once: a lane reads elements that other lanes read too.
        let words = RefCell::new(BTreeSet::new());
        let read = |at: usize| match own.get(at..at + 2) {
            Some(bytes) => {
                if checked {
                    words.borrow_mut().insert(at as u32 / 4);
                }
                u16::from_le_bytes([bytes[0], bytes[1]])
            }
            None => 0,
        };
        gmma::multiply(self.inst, self.decoded, self.operands, self.warp as u32, read, results);
        for word in words.into_inner() {
            self.show_to_shared((0, self.cta.rank), 4 * word, 4, None);
        }
    }

    /// Passes a fence to the race detectors.
    fn fence(&mut self, lanes: LaneMask) {
        if let Some(detector) = &mut self.cta.global
            && self.inst.op != Opcode::FenceView
        {
            detector.fence(self.warp, lanes, self.inst);
        }
        if let Some(detector) = &mut self.cta.detector {
            detector.fence(self.warp, lanes, self.inst);
        }
    }

    /// LDSM: row r of matrix m is at the address of lane 8 m + r. Lane l gets row l / 4, columns 2 (l mod 4) and 2 (l mod 4) + 1.
    /// With `.trans` the elements come from the transposed matrix (PTX ISA, `ldmatrix`).
    fn load_matrices(
        &mut self,
        lanes: LaneMask,
        at: &[u64; WARP_SIZE],
        results: &mut Results,
    ) -> Result<(), Box<Trap>> {
        for matrix in 0..self.inst.mods.count as usize {
            let mut elements = [[[0u8; 2]; 8]; 8];
            for (row, elements) in elements.iter_mut().enumerate() {
                // The lane of a row gives only its address, so it may be inactive.
                let lane = 8 * matrix + row;
                self.show_to_detector(lane, Space::Shared, at[lane], 16, None);
                let bytes = self.bytes(lane, Space::Shared, at[lane], 16)?;
                for (element, bytes) in elements.iter_mut().zip(bytes.chunks_exact(2)) {
                    element.copy_from_slice(bytes);
                }
            }
            for lane in lanes.iter() {
                let (row, column) = (lane / 4, 2 * (lane % 4));
                let [low, high] = if self.inst.mods.trans {
                    [elements[column][row], elements[column + 1][row]]
                } else {
                    [elements[row][column], elements[row][column + 1]]
                };
                results.words[matrix].0[lane] = u32::from_le_bytes([low[0], low[1], high[0], high[1]]);
            }
        }
        Ok(())
    }

    /// LDGSTS: copies the number of bytes in operand C, and fills the rest with zeros.
    fn copy(&mut self, lanes: LaneMask, from: &[u64; WARP_SIZE]) -> Result<(), Box<Trap>> {
        let to = copy_destinations(self.operands);
        let n = self.inst.mods.access.total() as usize;
        for lane in lanes.iter() {
            let size = (self.word(2, 0, lane) as usize).min(n);
            let mut bytes = [0; 16];
            // The source must be aligned to the full size, even if fewer bytes are copied.
            self.check_alignment(lane, Space::Global, from[lane], n)?;
            // A size of 0 reads nothing, so its address may be invalid.
            if size > 0 {
                bytes[..size].copy_from_slice(self.inside(lane, Space::Global, from[lane], size)?);
                self.show_to_global(lane, (Kind::Read, Strength::Weak), from[lane], size, None);
            }
            self.show_to_detector(lane, Space::Shared, to[lane], n, Some(&bytes[..n]));
            self.bytes(lane, Space::Shared, to[lane], n)?
                .copy_from_slice(&bytes[..n]);
        }
        Ok(())
    }

    /// Passes an access of a copy or an image to the race detector of global memory, before it changes memory.
    pub(super) fn show_to_global(
        &mut self,
        lane: usize,
        (kind, strength): (Kind, Strength),
        address: u64,
        n: usize,
        new: Option<&[u8]>,
    ) {
        let pc = self.cta.warps[self.warp].flow.pc();
        if let Some(detector) = &mut self.cta.global
            && let Some(old) = self.memory.get(address, n)
        {
            detector.check(&GlobalAccess {
                warp: self.warp,
                lane,
                pc,
                kind,
                strength,
                address,
                old,
                new,
            });
        }
    }

    /// Passes an asynchronous access to the race detector of shared memory, before it changes memory. `lane` issues it, and the memory is
    /// that of the CTA with the rank.
    pub(super) fn show_to_shared(&mut self, (lane, rank): (usize, usize), at: u32, n: usize, new: Option<&[u8]>) {
        let pc = self.cta.warps[self.warp].flow.pc();
        if let Some(detector) = &mut self.cta.detector
            && let Some(old) = self.cta.shared[rank].get(at as usize..at as usize + n)
        {
            detector.on_access(&LaneAccess {
                warp: self.warp,
                lane,
                pc,
                inst: self.inst,
                rank: Some(rank),
                address: at.into(),
                old,
                new,
            });
        }
    }

    /// Passes an access to the race detectors, before it changes memory. An access that traps is not passed.
    fn show_to_detector(&mut self, lane: usize, space: Space, address: u64, n: usize, new: Option<&[u8]>) {
        if self.cta.detector.is_none() && self.cta.global.is_none() {
            return;
        }
        let (space, at) = resolve(space, address);
        if space == Space::Local {
            return;
        }
        let mut old = [0; 16];
        match self.reach(lane, space, at, n) {
            Some(bytes) => old[..n].copy_from_slice(bytes),
            None => return,
        }
        let (rank, address) = match space {
            Space::Shared => (Some(self.cta.rank), at),
            Space::Cluster => {
                let (rank, offset) = split_window(at);
                (Some(rank.map_or(self.cta.rank, |rank| rank as usize)), offset)
            }
            _ => (None, at),
        };
        let lane_access = LaneAccess {
            warp: self.warp,
            lane,
            pc: self.cta.warps[self.warp].flow.pc(),
            inst: self.inst,
            rank,
            address,
            old: &old[..n],
            new,
        };
        if let Some(detector) = &mut self.cta.detector {
            detector.on_access(&lane_access);
        }
        if let Some(detector) = &mut self.cta.global {
            match rank {
                Some(rank) => detector.on_shared(&lane_access, rank),
                None => detector.on_access(&lane_access),
            }
        }
    }

    /// The bytes that a lane accesses. An access out of bounds or without alignment is a trap.
    fn bytes(&mut self, lane: usize, space: Space, address: u64, n: usize) -> Result<&mut [u8], Box<Trap>> {
        self.check_alignment(lane, space, address, n)?;
        self.inside(lane, space, address, n)
    }

    /// Traps unless the address is a multiple of `n`.
    pub(super) fn check_alignment(&self, lane: usize, space: Space, address: u64, n: usize) -> Result<(), Box<Trap>> {
        if address.is_multiple_of(n as u64) {
            return Ok(());
        }
        Err(self.trap(lane, TrapKind::Misaligned, resolve(space, address).0, address, n))
    }

    /// The bytes that a lane accesses, of any alignment. An access out of bounds is a trap.
    pub(super) fn inside(&mut self, lane: usize, space: Space, address: u64, n: usize) -> Result<&mut [u8], Box<Trap>> {
        let (space, at) = resolve(space, address);
        if self.reach(lane, space, at, n).is_none() {
            return Err(self.trap(lane, TrapKind::OutOfBounds, space, address, n));
        }
        // Looked up twice: the borrow checker does not accept one borrow for both branches.
        Ok(self.reach(lane, space, at, n).expect("just found"))
    }

    /// The bytes at an address of a resolved space. `None` if they are out of bounds.
    fn reach(&mut self, lane: usize, space: Space, at: u64, n: usize) -> Option<&mut [u8]> {
        match space {
            Space::Shared => {
                let at = usize::try_from(at).ok()?;
                let own = self.cta.rank;
                self.cta.shared[own].get_mut(at..at.checked_add(n)?)
            }
            Space::Cluster => {
                let (rank, at) = split_window(at);
                let rank = rank.map_or(self.cta.rank, |rank| rank as usize);
                let at = at as usize;
                self.cta.shared.get_mut(rank)?.get_mut(at..at + n)
            }
            Space::Local => self.cta.warps[self.warp].local_mut(lane, at, n),
            _ => self.memory.get_mut(at, n),
        }
    }

    /// A trap of the instruction in one lane, with address, size and space.
    pub(super) fn trap(&self, lane: usize, kind: TrapKind, space: Space, address: u64, n: usize) -> Box<Trap> {
        Box::new(Trap {
            address: Some(address),
            bytes: n as u32,
            space: match space {
                Space::Shared => "shared",
                Space::Cluster => "shared::cluster",
                Space::Local => "local",
                _ => "global",
            },
            ..*step::trap(self.cta, self.warp, self.inst, LaneMask::lane(lane), kind)
        })
    }

    /// Word `n` of the operand in slot `slot`.
    pub(super) fn word(&self, slot: usize, n: usize, lane: usize) -> u32 {
        self.operands.words[self.decoded.first_word[slot] as usize + n].0[lane]
    }

    /// The words of `access` of the operand in slot `slot`. The rest is zero.
    pub(super) fn words(&self, slot: usize, lane: usize, access: Access) -> [u32; 4] {
        let mut words = [0; 4];
        for (n, word) in words[..access.words() as usize].iter_mut().enumerate() {
            *word = self.word(slot, n, lane);
        }
        words
    }
}

/// Resolves a generic address to its space and the address in that space.
fn resolve(space: Space, address: u64) -> (Space, u64) {
    let inside = |window: u64| (window..window + WINDOW_BYTES).contains(&address);
    let shared = address.wrapping_sub(SHARED_WINDOW);
    match space {
        Space::Generic if inside(SHARED_WINDOW) => (Space::Shared, address - SHARED_WINDOW),
        Space::Generic if shared < SHARED_WINDOWS_BYTES => (Space::Cluster, shared),
        Space::Generic if inside(LOCAL_WINDOW) => (Space::Local, address - LOCAL_WINDOW),
        Space::Generic => (Space::Global, address),
        space => (space, address),
    }
}

/// Sets the result words of a lane: as many as `access` has.
pub(super) fn set_words(results: &mut Results, lane: usize, access: Access, words: [u32; 4]) {
    for (to, word) in results.words[..access.words() as usize].iter_mut().zip(words) {
        to.0[lane] = word;
    }
}
