//! Messages between a scheduler and its dispatch unit: the issue of an instruction, and its release when it is complete.
//!
//! Each is one word, so a link copies 8 bytes per message.

use std::fmt;
use std::num::NonZeroU64;

use warpwave_isa::lane::LaneMask;

use crate::proto::warp::MAX_SLOTS;

/// Maximum number of instructions of a program: the program counter has 21 bits in a message.
pub const MAX_INSTRUCTIONS: usize = 1 << (GENERATION - PC);

/// Groups of asynchronous operations per warp: 3 bits in a message.
pub const GROUPS: u8 = 1 << (63 - GROUP);

/// Lowest bit of each field. From the top: bit 63 is set, then group, warp, generation, program counter, and the lanes from bit 0 on.
const PC: u32 = 32;
const GENERATION: u32 = 53;
const WARP: u32 = 54;
const GROUP: u32 = 60;
/// The bit that is set in every word. It makes the word nonzero, so an `Option` needs no more bytes.
const SET: NonZeroU64 = NonZeroU64::new(1 << 63).expect("a bit is set");

/// Issue of an instruction. From a scheduler to its dispatch unit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Issue(NonZeroU64);

impl Issue {
    /// Issue of the instruction at `pc` of the warp in slot `warp`, below [`MAX_SLOTS`]. The guard is not applied to `active`. `group` is the group
    /// of an asynchronous operation. `pc` is below [`MAX_INSTRUCTIONS`], `group` below [`GROUPS`].
    #[inline]
    pub fn new(warp: u8, pc: u32, active: LaneMask, group: u8) -> Self {
        debug_assert!(usize::from(warp) < MAX_SLOTS && (pc as usize) < MAX_INSTRUCTIONS && group < GROUPS);
        let fields = u64::from(pc) << PC | u64::from(warp) << WARP | u64::from(group) << GROUP;
        Issue(SET | fields | u64::from(active.0))
    }

    /// The same issue, by a warp of this generation of its slot ([`WarpStart`](crate::proto::warp::WarpStart)).
    #[inline]
    pub fn with_generation(self, generation: bool) -> Self {
        Issue(self.0 | u64::from(generation) << GENERATION)
    }

    /// Generation of the slot, modulo 2.
    #[inline]
    pub fn generation(self) -> bool {
        self.0.get() >> GENERATION & 1 == 1
    }

    /// Slot in the sub-core.
    #[inline]
    pub fn warp(self) -> u8 {
        // The remainder drops the fields above.
        (self.0.get() >> WARP) as u8 % MAX_SLOTS as u8
    }

    /// The instruction.
    #[inline]
    pub fn pc(self) -> u32 {
        (self.0.get() >> PC) as u32 % MAX_INSTRUCTIONS as u32
    }

    /// Active lanes. The guard is not applied yet.
    #[inline]
    pub fn active(self) -> LaneMask {
        LaneMask(self.0.get() as u32)
    }

    /// Group of an asynchronous operation.
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

/// Release of an instruction: it is complete, and its results are written. From a dispatch unit to its scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release(Issue);

impl Release {
    /// Release of the instruction that was issued with these values ([`Issue::new`]).
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

    /// Group of an asynchronous operation.
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
    fn fields_do_not_overlap() {
        for (warp, pc, lanes, group) in [(0, 0, 0, 0), (63, (1 << 21) - 1, u32::MAX, 7), (5, 1 << 20, 1 << 31, 4)] {
            let issue = Issue::new(warp, pc, LaneMask(lanes), group);
            assert!(!issue.generation() && issue.with_generation(true).generation());
            let issue = issue.with_generation(lanes % 2 == 1);
            assert_eq!(
                (issue.warp(), issue.pc(), issue.active().0, issue.group()),
                (warp, pc, lanes, group)
            );
            let release = Release::new(warp, pc, group);
            assert_eq!((release.warp(), release.pc(), release.group()), (warp, pc, group));
        }
    }

    #[test]
    fn optional_messages_are_one_word() {
        let layout = |size: usize, align: usize| (size, align) == (8, 8);
        assert!(layout(size_of::<Option<Issue>>(), align_of::<Option<Issue>>()));
        assert!(layout(size_of::<Option<Release>>(), align_of::<Option<Release>>()));
        assert!(layout(size_of::<Option<LsuAck>>(), align_of::<Option<LsuAck>>()));
    }
}
