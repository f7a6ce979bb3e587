//! The warps that could go but for their pipes, by the pipe that each wants.
//!
//! Kept up to date one warp at a time, so that a cycle asks only the pipes that somebody wants.
//!
//! Invariant: each warp of the set wants one pipe, and `pipes` names just those that are wanted.

use warpwave_isa::opcode::Pipe;

use super::PIPES;

/// Warp slots of a scheduler at most.
const SLOTS: usize = 32;

/// Warps without a wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    /// The warps, bit i for slot i.
    pub(super) warps: u32,
    /// Of those that want the LSU, the ones for local and global memory.
    pub(super) global: u32,
    /// Pipes that are wanted, bit i for pipe i.
    pub(super) pipes: u32,
    wanted: [u32; PIPES],
    n_wanted: [u8; PIPES],
    pipe_of: [u8; SLOTS],
}

impl Ready {
    /// The warps that want a pipe.
    #[inline]
    pub(super) fn wanting(&self, pipe: usize) -> u32 {
        self.wanted[pipe % PIPES]
    }

    /// Their number.
    #[inline]
    pub(super) fn count(&self, pipe: usize) -> u32 {
        u32::from(self.n_wanted[pipe % PIPES])
    }

    /// A warp could go, if `pipe` takes it.
    #[inline]
    pub(super) fn insert(&mut self, slot: usize, pipe: Pipe, is_local_or_global: bool) {
        let bit = 1 << slot;
        if self.wanted[pipe as usize] & bit == 0 {
            self.remove(slot);
            self.pipe_of[slot] = pipe as u8;
            self.warps |= bit;
            self.pipes |= 1 << pipe as u32;
            self.wanted[pipe as usize] |= bit;
            self.n_wanted[pipe as usize] += 1;
        }
        self.global = self.global & !(1 << slot) | u32::from(is_local_or_global) << slot;
    }

    /// A warp waits for something, or has gone.
    #[inline]
    pub(super) fn remove(&mut self, slot: usize) {
        let bit = 1 << slot;
        if self.warps & bit == 0 {
            return;
        }
        self.warps &= !bit;
        let pipe = self.pipe_of[slot] as usize % PIPES;
        let wanted = &mut self.wanted[pipe];
        *wanted &= !bit;
        self.n_wanted[pipe] -= 1;
        self.pipes &= !(u32::from(*wanted == 0) << pipe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_is_wanted_until_the_last_of_its_warps_has_gone_or_wants_another() {
        let mut ready = Ready::default();
        ready.insert(3, Pipe::Lsu, true);
        ready.insert(5, Pipe::Lsu, false);
        assert_eq!((ready.warps, ready.pipes), (0b101000, 1 << Pipe::Lsu as u32));
        assert_eq!(ready.global & ready.wanting(Pipe::Lsu as usize), 0b1000);
        ready.insert(3, Pipe::Int, false);
        assert_eq!((ready.wanting(Pipe::Lsu as usize), ready.global), (0b100000, 0));
        assert_eq!(
            [Pipe::Lsu, Pipe::Int, Pipe::Fma].map(|pipe| ready.count(pipe as usize)),
            [1, 1, 0]
        );
        ready.remove(5);
        ready.remove(5);
        assert_eq!((ready.warps, ready.pipes), (0b1000, 1 << Pipe::Int as u32));
    }
}
