//! Lanes that part at branches and meet again: where each group of a warp's lanes stands.
//!
//! A warp runs one group of lanes at a time. A branch on which its lanes disagree splits the group; the part that does not
//! branch goes on first, the other is kept. BSSY notes the lanes that will meet at a join, BSYNC holds a group there until the
//! others have come, left (BREAK) or ended (EXIT). When a group is held, the group kept last goes on.
//! This is the convergence of Volta and later (reference rules §5), so it takes no stack discipline from the program.
//!
//! Invariants: groups are disjoint; kept, held and running lanes together are the live lanes.

use crate::lane::{LaneMask, WARP_SIZE};
use crate::reg::Conv;

/// Lanes that wait at the same place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Held {
    /// Lanes that have arrived.
    arrived: LaneMask,
    /// Where they go on.
    pc: u32,
}

/// The control state of one warp.
///
/// ```
/// use warpwave_isa::flow::Flow;
/// use warpwave_isa::lane::LaneMask;
/// use warpwave_isa::reg::Conv;
/// let mut flow = Flow::new(0, LaneMask::first(4));
/// flow.bssy(Conv(0)); // 0: BSSY
/// flow.branch(LaneMask::first(1), 5); // 1: lane 0 goes to 5
/// assert_eq!((flow.pc(), flow.active().count()), (2, 3));
/// flow.branch(LaneMask::NONE, 0); // 2: falls through
/// flow.bsync(Conv(0)); // 3: waits, so lane 0 goes on
/// assert_eq!((flow.pc(), flow.active().count()), (5, 1));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    pc: u32,
    active: LaneMask,
    live: LaneMask,
    kept: [(u32, LaneMask); WARP_SIZE],
    n_kept: usize,
    members: [LaneMask; Conv::COUNT],
    held: [Held; Conv::COUNT],
    warpsync: Held,
    barrier: Held,
}

impl Flow {
    /// All of `lanes` at `pc`.
    pub fn new(pc: u32, lanes: LaneMask) -> Self {
        Flow {
            pc,
            active: lanes,
            live: lanes,
            kept: [(0, LaneMask::NONE); WARP_SIZE],
            n_kept: 0,
            members: [LaneMask::NONE; Conv::COUNT],
            held: [Held::default(); Conv::COUNT],
            warpsync: Held::default(),
            barrier: Held::default(),
        }
    }

    /// Where the running group stands.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// The running lanes; none when every live lane is held at a block barrier, or when the warp has ended.
    pub fn active(&self) -> LaneMask {
        self.active
    }

    /// Lanes that have not ended.
    pub fn live(&self) -> LaneMask {
        self.live
    }

    /// Whether every lane has ended.
    pub fn is_done(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether the running lanes are all the live ones.
    pub fn is_converged(&self) -> bool {
        self.active == self.live
    }

    /// Goes on to the next instruction.
    pub fn step(&mut self) {
        self.pc += 1;
    }

    /// The lanes of `taken` go to `target`, the others to the next instruction.
    pub fn branch(&mut self, taken: LaneMask, target: u32) {
        let taken = taken & self.active;
        let rest = self.active & !taken;
        self.pc += 1;
        if rest.is_empty() {
            self.pc = target;
        } else if !taken.is_empty() {
            self.keep(target, taken);
            self.active = rest;
        }
    }

    /// Each running lane goes to its own target (BRX).
    pub fn branch_indirect(&mut self, taken: LaneMask, targets: &[u32; WARP_SIZE]) {
        let mut rest = taken & self.active;
        let stay = self.active & !rest;
        if !stay.is_empty() {
            self.keep(self.pc + 1, stay);
        }
        while let Some(lane) = rest.lowest() {
            let target = targets[lane];
            let same = LaneMask(rest.iter().filter(|&l| targets[l] == target).fold(0, |m, l| m | 1 << l));
            self.keep(target, same);
            rest &= !same;
        }
        self.resume_kept();
    }

    /// Notes the running lanes as those that meet at `conv`.
    pub fn bssy(&mut self, conv: Conv) {
        self.members[conv.0 as usize] = self.active;
        self.pc += 1;
    }

    /// Holds the running lanes until all members of `conv` have come or gone.
    pub fn bsync(&mut self, conv: Conv) {
        let n = conv.0 as usize;
        self.held[n] = Held {
            arrived: self.held[n].arrived | self.active,
            pc: self.pc + 1,
        };
        self.active = LaneMask::NONE;
        self.settle();
    }

    /// The lanes of `leaving` no longer meet at `conv`.
    pub fn break_from(&mut self, conv: Conv, leaving: LaneMask) {
        self.members[conv.0 as usize] &= !(leaving & self.active);
        self.pc += 1;
    }

    /// Holds the running lanes until the live lanes of `mask` are here.
    pub fn warpsync(&mut self, mask: LaneMask) {
        let arrived = self.warpsync.arrived | self.active;
        self.warpsync = Held {
            arrived,
            pc: self.pc + 1,
        };
        self.active = LaneMask::NONE;
        if (mask & self.live & !arrived).is_empty() {
            self.active = arrived;
            self.pc = self.warpsync.pc;
            self.warpsync = Held::default();
        } else {
            self.settle();
        }
    }

    /// Holds the running lanes at a block barrier; true when every live lane is there, so that the warp has arrived.
    pub fn arrive(&mut self) -> bool {
        self.barrier = Held {
            arrived: self.barrier.arrived | self.active,
            pc: self.pc + 1,
        };
        self.active = LaneMask::NONE;
        if self.barrier.arrived == self.live {
            return true;
        }
        self.settle();
        false
    }

    /// Whether every live lane waits at the block barrier.
    pub fn is_at_barrier(&self) -> bool {
        !self.live.is_empty() && self.barrier.arrived == self.live
    }

    /// The block barrier opens: all lanes held there go on together.
    pub fn release(&mut self) {
        self.active = self.barrier.arrived;
        self.pc = self.barrier.pc;
        self.barrier = Held::default();
    }

    /// The lanes of `ending` are done; the others of the group go on.
    /// True when the lanes left all wait at the block barrier, which then counts as the warp's arrival.
    pub fn exit(&mut self, ending: LaneMask) -> bool {
        let ending = ending & self.active;
        self.live &= !ending;
        self.active &= !ending;
        self.pc += 1;
        if self.active.is_empty() {
            self.settle();
        }
        self.is_at_barrier()
    }

    fn keep(&mut self, pc: u32, lanes: LaneMask) {
        self.kept[self.n_kept] = (pc, lanes);
        self.n_kept += 1;
    }

    fn resume_kept(&mut self) {
        self.n_kept -= 1;
        (self.pc, self.active) = self.kept[self.n_kept];
    }

    /// With no group running: opens the joins that are complete, else resumes the group kept last.
    fn settle(&mut self) {
        for n in 0..Conv::COUNT {
            let Held { arrived, pc } = self.held[n];
            if !arrived.is_empty() && (self.members[n] & self.live & !arrived).is_empty() {
                self.active = arrived;
                self.pc = pc;
                self.held[n] = Held::default();
                return;
            }
        }
        if self.n_kept > 0 {
            self.resume_kept();
        }
    }
}
