//! Between a scheduler and its dispatch unit: an instruction is chosen, its results are stored.
//!
//! Both messages are a word that is never 0, so that in a link one lies in a word of its place, and is put there by one store.

use std::fmt;
use std::num::NonZeroU64;

use warpwave_isa::lane::LaneMask;

/// Most instructions of a program: what a message has bits for.
pub const MAX_INSTRUCTIONS: usize = 1 << (WARP - PC);

/// Groups of asynchronous copies that a message tells apart.
pub const GROUPS: u8 = 1 << (63 - GROUP);

/// The lowest bit of each field; the lanes begin at bit 0.
const PC: u32 = 32;
const WARP: u32 = 55;
const GROUP: u32 = 60;
/// Set in every word.
const SET: NonZeroU64 = NonZeroU64::new(1 << 63).expect("a bit is set");

/// A scheduler to its dispatch unit: this warp's instruction is chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Issue(NonZeroU64);

impl Issue {
    /// The instruction `pc`, below [`MAX_INSTRUCTIONS`], of the warp in one of 32 slots; `active` lanes run, the guard not yet applied;
    /// `group` is that of an asynchronous copy, below [`GROUPS`].
    #[inline]
    pub fn new(warp: u8, pc: u32, active: LaneMask, group: u8) -> Self {
        debug_assert!(warp < 32 && (pc as usize) < MAX_INSTRUCTIONS && group < GROUPS);
        let named = u64::from(pc) << PC | u64::from(warp) << WARP | u64::from(group) << GROUP;
        Issue(SET | named | u64::from(active.0))
    }

    /// Slot in the sub-core.
    #[inline]
    pub fn warp(self) -> u8 {
        (self.0.get() >> WARP) as u8 % 32
    }

    /// The instruction.
    #[inline]
    pub fn pc(self) -> u32 {
        (self.0.get() >> PC) as u32 % MAX_INSTRUCTIONS as u32
    }

    /// Running lanes, the guard not yet applied.
    #[inline]
    pub fn active(self) -> LaneMask {
        LaneMask(self.0.get() as u32)
    }

    /// Of an asynchronous copy, its group.
    #[inline]
    pub fn group(self) -> u8 {
        (self.0.get() >> GROUP) as u8 % GROUPS
    }
}

impl fmt::Debug for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issue")
            .field("warp", &self.warp())
            .field("pc", &self.pc())
            .field("active", &self.active())
            .field("group", &self.group())
            .finish()
    }
}

/// A dispatch unit to its scheduler: the results of an instruction are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release(Issue);

impl Release {
    /// Of what was issued as [`Issue::new`] says.
    #[inline]
    pub fn new(warp: u8, pc: u32, group: u8) -> Self {
        Release(Issue::new(warp, pc, LaneMask::NONE, group))
    }

    /// Slot in the sub-core.
    #[inline]
    pub fn warp(self) -> u8 {
        self.0.warp()
    }

    /// The instruction.
    #[inline]
    pub fn pc(self) -> u32 {
        self.0.pc()
    }

    /// Of an asynchronous copy, its group.
    #[inline]
    pub fn group(self) -> u8 {
        self.0.group()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::warp::LsuAck;

    #[test]
    fn each_field_comes_out_as_it_went_in_beside_any_others() {
        for (warp, pc, lanes, group) in [(0, 0, 0, 0), (31, (1 << 23) - 1, u32::MAX, 7), (5, 1 << 22, 1 << 31, 4)] {
            let issue = Issue::new(warp, pc, LaneMask(lanes), group);
            assert_eq!(
                (issue.warp(), issue.pc(), issue.active().0, issue.group()),
                (warp, pc, lanes, group)
            );
            let release = Release::new(warp, pc, group);
            assert_eq!((release.warp(), release.pc(), release.group()), (warp, pc, group));
        }
    }

    #[test]
    fn messages_of_most_instructions_fill_just_a_word_of_their_place() {
        let layout = |size: usize, align: usize| (size, align) == (8, 8);
        assert!(layout(size_of::<Option<Issue>>(), align_of::<Option<Issue>>()));
        assert!(layout(size_of::<Option<Release>>(), align_of::<Option<Release>>()));
        assert!(layout(size_of::<Option<LsuAck>>(), align_of::<Option<LsuAck>>()));
    }
}
