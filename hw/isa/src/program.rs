//! Code as the machine gets it: instructions with what the front of an SM needs to know of each, and what a launch must provide.
//!
//! A [`Program`] never changes once built. [`Decoded`] is worked out once per instruction, so that nothing is derived in a cycle.

use crate::exec;
use crate::inst::{Inst, Source};
use crate::opcode::{Opcode, Pipe};
use crate::reg::{Guard, Pred, Reg, RegSet, Special};
use crate::source::{SourceLine, SourceMap};
use crate::space::Space;
use std::sync::Arc;

/// Most 32-bit source words of one instruction (a tensor product: 4 + 2 + 4).
pub const MAX_SOURCE_WORDS: usize = 10;
/// Most 32-bit result words of one instruction.
pub const MAX_RESULT_WORDS: usize = 4;

/// Where one word of a source comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordSource {
    /// Zero.
    Zero,
    /// This register.
    Reg(Reg),
    /// These bits.
    Imm(u32),
    /// This word of a constant bank.
    Const {
        /// Bank number.
        bank: u8,
        /// Word index.
        word: u16,
    },
    /// A special register.
    Special(Special),
}

/// What the front of an SM needs to know of an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decoded {
    /// Source words in operand order: A's words, then B's, and so on; `words` of them count.
    pub sources: [WordSource; MAX_SOURCE_WORDS],
    /// Source words in use.
    pub source_words: u8,
    /// Index of the first word of each operand A, B, C, D.
    pub first_word: [u8; 4],
    /// Result words.
    pub result_words: u8,
    /// Registers read.
    pub uses: RegSet,
    /// Registers written.
    pub defs: RegSet,
    /// Registers read or written.
    pub touches: RegSet,
    /// Predicates read, the guard's included, bit i for Pi.
    pub pred_uses: u8,
    /// Predicates written.
    pub pred_defs: u8,
    /// Predicates read or written.
    pub pred_touches: u8,
    /// Whether it looks at any predicate, the constant one included, or has a guard. Additions that take no carry look at none.
    pub reads_preds: bool,
    /// Pipe.
    pub pipe: Pipe,
    /// Whether the sources go into the arithmetic as gathered: none is negated, inverted, made absolute or flushed.
    pub unmodified: bool,
}

impl Decoded {
    /// Works out the facts of one instruction.
    pub fn of(inst: &Inst) -> Self {
        let info = inst.op.info();
        let mut decoded = Decoded {
            sources: [WordSource::Zero; MAX_SOURCE_WORDS],
            source_words: 0,
            first_word: [0; 4],
            result_words: info.dst.of(&inst.mods),
            uses: RegSet::default(),
            defs: RegSet::default(),
            touches: RegSet::default(),
            pred_uses: 0,
            pred_defs: 0,
            pred_touches: 0,
            reads_preds: info.psrc > 0 && !ignores_carry(inst) || inst.guard != Guard::ALWAYS,
            pipe: info.pipe,
            unmodified: exec::is_unmodified(inst),
        };
        for (slot, width) in info.src.iter().enumerate() {
            decoded.add_source(slot, inst.src[slot].source, width.of(&inst.mods));
        }
        decoded.defs.insert(inst.dst, decoded.result_words);
        decoded.add_predicates(inst);
        decoded.touches = decoded.uses.union(&decoded.defs);
        decoded.pred_touches = decoded.pred_uses | decoded.pred_defs;
        decoded
    }

    fn add_source(&mut self, slot: usize, source: Source, words: u8) {
        self.first_word[slot] = self.source_words;
        for n in 0..words {
            self.sources[self.source_words as usize] = match source {
                Source::Reg(reg) if reg.is_zero() => WordSource::Zero,
                Source::Reg(reg) => WordSource::Reg(reg.offset(n)),
                Source::Imm(bits) => WordSource::Imm((bits >> (32 * n as u32)) as u32),
                Source::Const { bank, offset } => WordSource::Const {
                    bank,
                    word: offset / 4 + n as u16,
                },
                Source::Special(special) => WordSource::Special(special),
            };
            self.source_words += 1;
        }
        if let Source::Reg(reg) = source {
            self.uses.insert(reg, words);
        }
    }

    fn add_predicates(&mut self, inst: &Inst) {
        const VALUES: u8 = (1 << Pred::COUNT) - 1;
        let bit = |pred: Pred| (1u8 << pred.0) & VALUES;
        let info = inst.op.info();
        self.pred_uses = bit(inst.guard.pred);
        for guard in &inst.psrc[..info.psrc as usize] {
            self.pred_uses |= bit(guard.pred);
        }
        for pred in &inst.pdst[..info.pdst as usize] {
            self.pred_defs |= bit(*pred);
        }
        match inst.op {
            Opcode::P2r => self.pred_uses |= VALUES,
            Opcode::R2p => {
                self.pred_uses |= VALUES;
                self.pred_defs |= VALUES;
            }
            _ => {}
        }
        self.reads_preds |= self.pred_uses != 0;
    }
}

/// Whether its predicate source is a carry that it does not take, as most additions do not.
fn ignores_carry(inst: &Inst) -> bool {
    matches!(inst.op, Opcode::Iadd3 | Opcode::Lea) && !inst.mods.extended
}

/// A parameter of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name in the source.
    pub name: String,
    /// First byte, counted from the start of the parameters.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A variable of the program's own, by which a person knows a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Name in the source.
    pub name: String,
    /// Shared, local, or constant (the bank of variables).
    pub space: Space,
    /// First byte, counted from the start of the space.
    pub offset: u32,
    /// Size in bytes; 0 for what the launch makes as large as it likes (dynamic shared memory).
    pub bytes: u32,
}

/// What a kernel says of the clusters that it is launched in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClusterRequirement {
    /// Nothing: the launch may ask for clusters or not.
    #[default]
    Any,
    /// The launch must say how many CTAs make a cluster (`.explicitcluster`).
    Explicit,
    /// This many CTAs make a cluster (`.reqnctapercluster`).
    Exact([u32; 3]),
}

/// What an assertion says that does not hold, known by the line of its trap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assertion {
    /// Line of the program's text.
    pub line: u32,
    /// The expression; empty where the text does not tell, as the names below.
    pub message: String,
    /// The source file.
    pub file: String,
    /// The line there; 0 where the text does not tell.
    pub source_line: u32,
    /// The function.
    pub function: String,
}

/// What a launch of a program needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// General registers per thread.
    pub registers: u32,
    /// Statically declared shared memory, in bytes.
    pub shared_bytes: u32,
    /// Local memory per thread, in bytes.
    pub local_bytes: u32,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The program's own variables in shared and local memory, in no order.
    pub variables: Vec<Variable>,
    /// Those of its module, which all programs of the module share: in shared and local memory and in the constant bank.
    pub module_variables: Arc<[Variable]>,
    /// Exact block size that the kernel asks for (`.reqntid`), if any.
    pub required_block: Option<[u32; 3]>,
    /// Largest block that the kernel allows (`.maxntid`), if any.
    pub max_block: Option<[u32; 3]>,
    /// What the kernel says of clusters.
    pub cluster: ClusterRequirement,
}

impl Requirements {
    /// The variable that holds a byte of a space, and how far from its start.
    ///
    /// ```
    /// use warpwave_isa::program::{Requirements, Variable};
    /// use warpwave_isa::space::Space;
    /// let tile = Variable { name: "tile".to_owned(), space: Space::Shared, offset: 16, bytes: 64 };
    /// let requirements = Requirements { variables: vec![tile], ..Requirements::default() };
    /// let (variable, at) = requirements.variable_at(Space::Shared, 20).unwrap();
    /// assert_eq!((variable.name.as_str(), at), ("tile", 4));
    /// assert_eq!(requirements.variable_at(Space::Shared, 80), None);
    /// ```
    pub fn variable_at(&self, space: Space, address: u32) -> Option<(&Variable, u32)> {
        let holds = |variable: &&Variable| {
            let at = address.checked_sub(variable.offset);
            variable.space == space && at.is_some_and(|at| at < variable.bytes || variable.bytes == 0)
        };
        let variable = self
            .all_variables()
            .filter(holds)
            .max_by_key(|variable| variable.offset)?;
        Some((variable, address - variable.offset))
    }

    /// The variables of the module, then those of the program.
    pub fn all_variables(&self) -> impl Iterator<Item = &Variable> {
        self.module_variables.iter().chain(&self.variables)
    }
}

/// One kernel, ready to run.
///
/// ```
/// use warpwave_isa::inst::Inst;
/// use warpwave_isa::opcode::Opcode;
/// use warpwave_isa::program::{Requirements, Program};
/// let program = Program::new("nothing", vec![Inst::new(Opcode::Exit)], Requirements::default());
/// assert_eq!(program.code().len(), 1);
/// assert!(program.decoded()[0].uses.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    name: String,
    code: Vec<Inst>,
    decoded: Vec<Decoded>,
    requirements: Requirements,
    sources: Arc<SourceMap>,
    base_index: u32,
    assertions: Vec<Assertion>,
}

impl Program {
    /// Takes finished code.
    pub fn new(name: &str, code: Vec<Inst>, requirements: Requirements) -> Self {
        let decoded = code.iter().map(Decoded::of).collect();
        Program {
            name: name.to_owned(),
            code,
            decoded,
            requirements,
            sources: Arc::default(),
            base_index: 0,
            assertions: Vec::new(),
        }
    }

    /// The same program, with what its assertions say.
    #[must_use]
    pub fn with_assertions(mut self, assertions: Vec<Assertion>) -> Self {
        self.assertions = assertions;
        self
    }

    /// The same program, with where the lines of its text come from.
    #[must_use]
    pub fn with_sources(mut self, sources: Arc<SourceMap>) -> Self {
        self.sources = sources;
        self
    }

    /// The same program, as one of several: its first instruction has this number among those of all.
    #[must_use]
    pub fn with_base_index(mut self, base_index: u32) -> Self {
        self.base_index = base_index;
        self
    }

    /// The number of its first instruction among those of all programs that may run.
    #[inline]
    pub fn base_index(&self) -> u32 {
        self.base_index
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The instructions; an index into them is a program counter.
    pub fn code(&self) -> &[Inst] {
        &self.code
    }

    /// The facts of each instruction, by program counter.
    pub fn decoded(&self) -> &[Decoded] {
        &self.decoded
    }

    /// Whether it meets the other CTAs of its cluster at a barrier, if only its own.
    pub fn has_cluster_barrier(&self) -> bool {
        self.code.iter().any(|inst| inst.op == Opcode::ClusterArrive)
    }

    /// Whether it uses what came with clusters: their barrier, bulk copies, products of warp groups.
    pub fn needs_clusters(&self) -> bool {
        let is_one = |op| matches!(op, Opcode::ClusterArrive | Opcode::Ublkcp | Opcode::Hgmma);
        self.code.iter().any(|inst| is_one(inst.op))
    }

    /// What a launch must provide.
    pub fn requirements(&self) -> &Requirements {
        &self.requirements
    }

    /// What the assertion says that an instruction is the end of, by program counter.
    pub fn assertion(&self, pc: u32) -> Option<&Assertion> {
        let inst = self.code.get(pc as usize).filter(|inst| inst.op == Opcode::Trap)?;
        self.assertions.iter().find(|assertion| assertion.line == inst.line)
    }

    /// Where the lines of the text ([`Inst::line`]) come from.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The source of an instruction, by program counter; none where the text does not say.
    pub fn source(&self, pc: u32) -> Option<SourceLine<'_>> {
        let inst = self.code.get(pc as usize)?;
        self.sources.at(inst.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_look_at_predicates_only_for_a_carry_or_a_guard() {
        for op in [Opcode::Iadd3, Opcode::Lea] {
            let plain = Inst::new(op);
            let (mut extended, mut guarded) = (plain, plain);
            extended.mods.extended = true;
            guarded.guard = Guard::unless(Pred(2));
            let looks = [plain, extended, guarded].map(|inst| Decoded::of(&inst).reads_preds);
            assert_eq!(looks, [false, true, true], "{op:?}");
        }
    }
}
