//! Names of architectural state: registers, predicates, convergence barriers, special registers.

use std::fmt;

/// A 32-bit general register of a lane. A wider value takes an aligned group of 2 or 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reg(pub u8);

impl Reg {
    /// Reads zero. Writes to it are dropped.
    pub const ZERO: Reg = Reg(255);
    /// Number of general registers that hold a value: R0 to R254.
    pub const COUNT: usize = 255;

    /// Returns the register `n` further, as in a pair or quad. The zero register stays the zero register.
    pub const fn offset(self, n: u8) -> Reg {
        // A group of RZ reads zero in every word.
        if self.0 == 255 { self } else { Reg(self.0 + n) }
    }

    /// True for the zero register.
    pub const fn is_zero(self) -> bool {
        self.0 == 255
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            f.write_str("RZ")
        } else {
            write!(f, "R{}", self.0)
        }
    }
}

/// A set of general registers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RegSet(pub [u64; 4]);

impl RegSet {
    /// Adds `words` registers from `first` on. The zero register is never a member.
    pub fn insert(&mut self, first: Reg, words: u8) {
        if first.is_zero() {
            return;
        }
        for n in first.0..first.0 + words {
            self.0[n as usize / 64] |= 1 << (n % 64);
        }
    }

    /// Removes `words` registers from `first` on.
    pub fn remove(&mut self, first: Reg, words: u8) {
        if first.is_zero() {
            return;
        }
        for n in first.0..first.0 + words {
            self.0[n as usize / 64] &= !(1 << (n % 64));
        }
    }

    /// Returns the registers that are in either set.
    #[inline]
    pub fn union(&self, other: &RegSet) -> RegSet {
        RegSet(std::array::from_fn(|n| self.0[n] | other.0[n]))
    }

    /// Returns the registers of this set that are missing in the other.
    #[inline]
    pub fn without(&self, other: &RegSet) -> RegSet {
        RegSet(std::array::from_fn(|n| self.0[n] & !other.0[n]))
    }

    /// True if the two sets share a register.
    #[inline]
    pub fn intersects(&self, other: &RegSet) -> bool {
        (self.0[0] & other.0[0]) | (self.0[1] & other.0[1]) | (self.0[2] & other.0[2]) | (self.0[3] & other.0[3]) != 0
    }

    /// The numbers of the registers in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0;
        (0..256).filter(move |n| words[n / 64] >> (n % 64) & 1 == 1)
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
}

/// A predicate register: one bit per lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pred(pub u8);

impl Pred {
    /// Always true. Writes to it are dropped.
    pub const TRUE: Pred = Pred(7);
    /// Number of predicates that hold a value.
    pub const COUNT: usize = 7;

    /// True for the predicate that is always true.
    pub const fn is_true(self) -> bool {
        self.0 == 7
    }
}

impl fmt::Display for Pred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_true() {
            f.write_str("PT")
        } else {
            write!(f, "P{}", self.0)
        }
    }
}

/// A predicate, perhaps negated: as a guard, a carry or a selector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    /// The predicate read.
    pub pred: Pred,
    /// True if the predicate is inverted after reading.
    pub negated: bool,
}

impl Guard {
    /// Holds in every lane.
    pub const ALWAYS: Guard = Guard {
        pred: Pred::TRUE,
        negated: false,
    };
    /// Holds in no lane.
    pub const NEVER: Guard = Guard {
        pred: Pred::TRUE,
        negated: true,
    };

    /// Holds where the predicate is true.
    pub const fn when(pred: Pred) -> Self {
        Guard { pred, negated: false }
    }

    /// Holds where the predicate is false.
    pub const fn unless(pred: Pred) -> Self {
        Guard { pred, negated: true }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.negated { "!" } else { "" }, self.pred)
    }
}

/// A convergence barrier: the lanes that reconverge at one join.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConvBarrier(pub u8);

impl ConvBarrier {
    /// Convergence barriers of a warp (Volta and later, jia18).
    pub const COUNT: usize = 16;
}

impl fmt::Display for ConvBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "B{}", self.0)
    }
}

/// A special register: position of the thread, clock, and other machine state that a lane can read.
///
/// Block and grid sizes are words of constant bank 0 instead (see [`crate::space::bank0`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "each is the PTX special register of the same name")]
pub enum Special {
    TidX,
    TidY,
    TidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    GridId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    ClockLo,
    ClockHi,
    GlobaltimerLo,
    GlobaltimerHi,
    ClusterCtarank,
    ClusterNctarank,
    ClusteridX,
    ClusteridY,
    ClusteridZ,
    NclusteridX,
    NclusteridY,
    NclusteridZ,
    ClusterCtaidX,
    ClusterCtaidY,
    ClusterCtaidZ,
    ClusterNctaidX,
    ClusterNctaidY,
    ClusterNctaidZ,
    DynamicSharedSize,
    TotalSharedSize,
    /// Number of threads in which the predicate held at the block's last BAR.RED.
    BarrierCount,
}
