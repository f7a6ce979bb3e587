//! The warps that could go but for their pipes, by what each wants.
//!
//! Kept up to date one warp at a time, so that a cycle asks only the pipes that somebody wants. The LSU's queue counts as two
//! pipes, one for local and global memory and one for the rest, since waiting for either has a name of its own.
//!
//! Invariant: each warp of the set wants one pipe, and `pipes` names just those that are wanted.

use warpwave_isa::opcode::Pipe;

use crate::config::N_PIPES;
use crate::sm::subcore::stall::State;

/// Warp slots of a scheduler at most.
const SLOTS: usize = 32;

/// The place of the LSU among the pipes, and of its queue for accesses of local and global memory.
pub(super) const LSU: usize = Pipe::Lsu as usize;
pub(super) const LSU_GLOBAL: usize = N_PIPES;

/// Places for pipes: those of an instruction, that of the LSU twice, and more that make an index a mask.
pub(super) const PLACES: usize = 16;

/// What a warp is charged with that waits for a pipe.
pub(super) const THROTTLES: [State; PLACES] = {
    let mut throttles = [State::MathPipeThrottle; PLACES];
    throttles[LSU] = State::MioThrottle;
    throttles[LSU_GLOBAL] = State::LgThrottle;
    throttles
};

/// Warps without a wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    /// The warps, bit i for slot i.
    pub(super) warps: u32,
    /// Pipes that are wanted, bit i for pipe i.
    pub(super) pipes: u16,
    wanted: [u32; PLACES],
    n_wanted: [u8; PLACES],
    pipe_of: [u8; SLOTS],
}

impl Ready {
    /// The warps that want a pipe.
    #[inline]
    pub(super) fn wanting(&self, pipe: usize) -> u32 {
        self.wanted[pipe % PLACES]
    }

    /// Their number.
    #[inline]
    pub(super) fn count(&self, pipe: usize) -> u32 {
        u32::from(self.n_wanted[pipe % PLACES])
    }

    /// A warp could go, if `pipe` takes it.
    #[inline]
    pub(super) fn insert(&mut self, slot: usize, pipe: usize) {
        let (bit, pipe) = (1 << slot, pipe % PLACES);
        if self.wanted[pipe] & bit != 0 {
            return;
        }
        self.remove(slot);
        self.pipe_of[slot] = pipe as u8;
        self.warps |= bit;
        self.pipes |= 1 << pipe;
        self.wanted[pipe] |= bit;
        self.n_wanted[pipe] += 1;
    }

    /// A warp waits for something, or has gone.
    #[inline]
    pub(super) fn remove(&mut self, slot: usize) {
        let bit = 1 << slot;
        if self.warps & bit == 0 {
            return;
        }
        self.warps &= !bit;
        let pipe = self.pipe_of[slot] as usize % PLACES;
        let wanted = &mut self.wanted[pipe];
        *wanted &= !bit;
        self.n_wanted[pipe] -= 1;
        self.pipes &= !(u16::from(*wanted == 0) << pipe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_is_wanted_until_the_last_of_its_warps_has_gone_or_wants_another() {
        const INT: usize = Pipe::Int as usize;
        let mut ready = Ready::default();
        ready.insert(3, LSU);
        ready.insert(5, LSU);
        assert_eq!((ready.warps, ready.pipes), (0b101000, 1 << LSU));
        assert_eq!((ready.wanting(LSU), ready.count(LSU)), (0b101000, 2));
        ready.insert(3, INT);
        assert_eq!((ready.wanting(LSU), ready.wanting(INT)), (0b100000, 0b1000));
        assert_eq!([LSU, INT, LSU_GLOBAL].map(|pipe| ready.count(pipe)), [1, 1, 0]);
        ready.remove(5);
        ready.remove(5);
        assert_eq!((ready.warps, ready.pipes), (0b1000, 1 << INT));
    }

    #[test]
    fn waiting_for_the_queue_is_named_after_what_is_wanted_of_it() {
        assert_eq!(THROTTLES[LSU], State::MioThrottle);
        assert_eq!(THROTTLES[LSU_GLOBAL], State::LgThrottle);
        assert_eq!(THROTTLES[Pipe::Fp32 as usize], State::MathPipeThrottle);
    }
}
