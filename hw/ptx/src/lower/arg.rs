//! Operands of operations before register allocation.

use warpwave_isa::inst::Source;
use warpwave_isa::reg::Special;

/// A virtual 32-bit register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct VReg(pub u32);

impl VReg {
    pub fn offset(self, n: u8) -> VReg {
        VReg(self.0 + u32::from(n))
    }
}

/// A virtual predicate register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct VPred(pub u32);

/// Source of an operand's bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Bits {
    Zero,
    VReg(VReg),
    Imm(u64),
    Const { bank: u8, offset: u16 },
    Special(Special),
}

/// A source operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Arg {
    pub bits: Bits,
    pub neg: bool,
    pub abs: bool,
    pub not: bool,
}

impl Arg {
    pub const ZERO: Arg = Arg::of(Bits::Zero);

    pub const fn of(bits: Bits) -> Arg {
        Arg {
            bits,
            neg: false,
            abs: false,
            not: false,
        }
    }

    pub const fn vreg(vreg: VReg) -> Arg {
        Arg::of(Bits::VReg(vreg))
    }

    pub const fn imm(bits: u64) -> Arg {
        // Zero is RZ. Passes compare with `Arg::ZERO`, so zero has this one form.
        if bits == 0 { Arg::ZERO } else { Arg::of(Bits::Imm(bits)) }
    }

    pub fn negated(mut self) -> Arg {
        self.neg = !self.neg;
        self
    }

    pub fn inverted(mut self) -> Arg {
        self.not = !self.not;
        self
    }

    /// True if no modifier changes the bits.
    pub fn is_plain(self) -> bool {
        !(self.neg || self.abs || self.not)
    }

    pub fn as_vreg(self) -> Option<VReg> {
        match self.bits {
            Bits::VReg(vreg) => Some(vreg),
            _ => None,
        }
    }

    /// Returns the value if it is a known constant without modifiers.
    pub fn known(self) -> Option<u64> {
        match self.bits {
            Bits::Zero if self.is_plain() => Some(0),
            // A modifier means different bits for integers and floats, so it is not folded here.
            Bits::Imm(value) if self.is_plain() => Some(value),
            _ => None,
        }
    }

    /// Returns one 32-bit word of a wider operand.
    pub fn part(self, n: u8) -> Arg {
        let bits = match self.bits {
            Bits::VReg(vreg) => Bits::VReg(vreg.offset(n)),
            // By way of `imm`, because one word of a literal may be zero.
            Bits::Imm(value) => return Arg::imm((value >> (32 * u32::from(n))) & 0xffff_ffff).like(self),
            Bits::Const { bank, offset } => Bits::Const {
                bank,
                offset: offset + 4 * u16::from(n),
            },
            // Every word of zero is zero. A special register has one word.
            other => other,
        };
        Arg { bits, ..self }
    }

    fn like(self, modifiers: Arg) -> Arg {
        Arg {
            bits: self.bits,
            ..modifiers
        }
    }
}

/// A guard or predicate operand: always, or a predicate, optionally negated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct VGuard {
    pub pred: Option<VPred>,
    pub negated: bool,
}

impl VGuard {
    pub const ALWAYS: VGuard = VGuard {
        pred: None,
        negated: false,
    };
    pub const NEVER: VGuard = VGuard {
        pred: None,
        negated: true,
    };

    pub fn pred(pred: VPred) -> VGuard {
        VGuard {
            pred: Some(pred),
            negated: false,
        }
    }

    pub fn negated(mut self) -> VGuard {
        self.negated = !self.negated;
        self
    }
}

/// Returns the machine source for bits outside registers; `None` for a virtual register.
pub(crate) fn source(bits: Bits) -> Option<Source> {
    match bits {
        Bits::Zero => Some(Source::Reg(warpwave_isa::reg::Reg::ZERO)),
        Bits::VReg(_) => None,
        Bits::Imm(value) => Some(Source::Imm(value)),
        Bits::Const { bank, offset } => Some(Source::Const { bank, offset }),
        Bits::Special(special) => Some(Source::Special(special)),
    }
}
