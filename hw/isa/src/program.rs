//! Programs: decoded instructions of a kernel, and the requirements of its launch.
//!
//! A [`Program`] is immutable. [`Decoded`] is computed once per instruction, so the machine derives nothing per cycle.

use crate::exec;
use crate::flow::Reconvergence;
use crate::inst::{Inst, Source};
use crate::opcode::{Opcode, Pipe};
use crate::reg::{Guard, Pred, Reg, RegSet, Special};
use crate::source::{SourceLine, SourceMap};
use crate::space::Space;
use std::sync::Arc;

/// Maximum 32-bit source words of one instruction (MMA.SP has 4 + 4 + 4 + 1).
pub const MAX_SOURCE_WORDS: usize = 13;
/// Maximum 32-bit result words of one instruction.
pub const MAX_RESULT_WORDS: usize = 4;

/// Origin of one source word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordSource {
    /// Zero.
    Zero,
    /// A register.
    Reg(Reg),
    /// An immediate.
    Imm(u32),
    /// A word of a constant bank.
    Const {
        /// Bank number.
        bank: u8,
        /// Word index.
        word: u16,
    },
    /// A special register.
    Special(Special),
}

/// An instruction decoded for the front of an SM: source words, register sets and predicate masks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decoded {
    /// Source words in operand order: the words of A, then of B, and so on. The first `source_words` are valid.
    pub sources: [WordSource; MAX_SOURCE_WORDS],
    /// Number of source words.
    pub source_words: u8,
    /// Index of the first word of each operand A, B, C, D.
    pub first_word: [u8; 4],
    /// Number of result words.
    pub result_words: u8,
    /// Registers read.
    pub uses: RegSet,
    /// Registers written.
    pub defs: RegSet,
    /// Registers read or written.
    pub touches: RegSet,
    /// Predicates read, the guard included: bit i for Pi.
    pub pred_uses: u8,
    /// Predicate of the guard, bit i for Pi. 0 without a guard.
    pub pred_guard: u8,
    /// Predicates written, bit i for Pi.
    pub pred_defs: u8,
    /// Predicates read or written, bit i for Pi.
    pub pred_touches: u8,
    /// True if the instruction has a guard or reads any predicate source, the constant one included.
    /// An addition without carry-in reads none.
    pub reads_preds: bool,
    /// Pipe that executes the instruction.
    pub pipe: Pipe,
    /// True if the arithmetic takes the sources as gathered, without negation, inversion, absolute value or flush.
    pub unmodified: bool,
}

impl Decoded {
    /// Decodes one instruction.
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
            pred_guard: 0,
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
            // The low word first. RZ is zero in every word, and holds no register.
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
        // Without PT: a constant causes no hazard.
        const VALUES: u8 = (1 << Pred::COUNT) - 1;
        let bit = |pred: Pred| (1u8 << pred.0) & VALUES;
        let info = inst.op.info();
        self.pred_guard = bit(inst.guard.pred);
        self.pred_uses = self.pred_guard;
        for guard in &inst.psrc[..info.psrc as usize] {
            self.pred_uses |= bit(guard.pred);
        }
        for pred in &inst.pdst[..info.pdst as usize] {
            self.pred_defs |= bit(*pred);
        }
        match inst.op {
            Opcode::P2r => self.pred_uses |= VALUES,
            // Predicates outside of its mask keep their value, so R2P reads them all.
            Opcode::R2p => {
                self.pred_uses |= VALUES;
                self.pred_defs |= VALUES;
            }
            _ => {}
        }
        self.reads_preds |= self.pred_uses != 0;
    }
}

/// True for an addition without carry-in, the common case. Its predicate source has no effect.
fn ignores_carry(inst: &Inst) -> bool {
    matches!(inst.op, Opcode::Iadd3 | Opcode::Lea) && !inst.mods.extended
}

/// A parameter of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name in the PTX text.
    pub name: String,
    /// First byte, relative to the start of the parameters.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// True if the text declares a float. It then takes no integer.
    pub is_float: bool,
}

/// A variable of a program, so that messages can name the variable at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Name in the PTX text.
    pub name: String,
    /// Shared, local, or constant (the bank of variables).
    pub space: Space,
    /// First byte, relative to the start of the space.
    pub offset: u32,
    /// Size in bytes, or 0 for dynamic shared memory, which the launch sizes.
    pub bytes: u32,
}

/// Requirement of a kernel on the cluster size of its launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClusterRequirement {
    /// None: the launch may set a cluster size.
    #[default]
    Any,
    /// The launch must set a cluster size (`.explicitcluster`).
    Explicit,
    /// The cluster must have this size in CTAs (`.reqnctapercluster`).
    Exact([u32; 3]),
}

/// An assertion of the source, or a check that the compiler added, found by the line of its trap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assertion {
    /// Line of the trap in the PTX text.
    pub line: u32,
    /// The expression, or empty if the text does not contain it. The names below are empty likewise.
    pub message: String,
    /// Remedy, for a check that the compiler added. Its message says what is wrong.
    pub remedy: Option<&'static str>,
    /// Source file.
    pub file: String,
    /// Source line, or 0 if the text does not contain it.
    pub source_line: u32,
    /// Function.
    pub function: String,
}

/// Requirements of a program on its launch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// General registers per thread.
    pub registers: u32,
    /// Statically declared shared memory, in bytes.
    pub shared_bytes: u32,
    /// Local memory per thread, in bytes.
    pub local_bytes: u32,
    /// The part of it that is the stack of recursive functions and of `alloca`, in bytes.
    pub stack_bytes: u32,
    /// Names of the functions that can call themselves, sorted.
    pub recursive: Vec<String>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Variables of the program in shared and local memory, unsorted.
    pub variables: Vec<Variable>,
    /// Variables of the module in shared, local and constant memory. All programs of the module share them.
    pub module_variables: Arc<[Variable]>,
    /// Exact block size (`.reqntid`).
    pub required_block: Option<[u32; 3]>,
    /// Largest block size (`.maxntid`).
    pub max_block: Option<[u32; 3]>,
    /// Requirement on the cluster size.
    pub cluster: ClusterRequirement,
}

impl Requirements {
    /// Returns the variable that contains an address, and the offset of the address in it.
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
        // Dynamic shared memory has no size, so it holds every address behind its start. A later variable is nearer.
        let variable = self
            .all_variables()
            .filter(holds)
            .max_by_key(|variable| variable.offset)?;
        Some((variable, address - variable.offset))
    }

    /// Iterates over the variables of the module, then of the program.
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
    reconvergence: Reconvergence,
}

impl Program {
    /// Builds a program from finished code.
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
            reconvergence: Reconvergence::default(),
        }
    }

    /// Returns the program with these assertions.
    #[must_use]
    pub fn with_assertions(mut self, assertions: Vec<Assertion>) -> Self {
        self.assertions = assertions;
        self
    }

    /// Returns the program for a GPU with this progress of diverged lanes.
    #[must_use]
    pub fn with_reconvergence(mut self, reconvergence: Reconvergence) -> Self {
        self.reconvergence = reconvergence;
        self
    }

    /// Returns the progress of diverged lanes for which the program is compiled.
    #[inline]
    pub fn reconvergence(&self) -> Reconvergence {
        self.reconvergence
    }

    /// Returns the program with this source map.
    #[must_use]
    pub fn with_sources(mut self, sources: Arc<SourceMap>) -> Self {
        self.sources = sources;
        self
    }

    /// Returns the program with its first instruction at `base_index`, so that instruction indices are unique over all programs.
    #[must_use]
    pub fn with_base_index(mut self, base_index: u32) -> Self {
        self.base_index = base_index;
        self
    }

    /// Returns the index of its first instruction among the instructions of all programs.
    #[inline]
    pub fn base_index(&self) -> u32 {
        self.base_index
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the instructions, indexed by program counter.
    pub fn code(&self) -> &[Inst] {
        &self.code
    }

    /// True if the instruction at `pc` branches to itself: a lane that takes the branch never ends, as nothing changes its guard.
    pub fn branches_to_itself(&self, pc: u32) -> bool {
        let inst = &self.code[pc as usize];
        inst.op == Opcode::Bra && inst.guard != Guard::NEVER && inst.target == pc
    }

    /// Returns the decoded instructions, indexed by program counter.
    pub fn decoded(&self) -> &[Decoded] {
        &self.decoded
    }

    /// True if the program waits at a cluster barrier, also if the cluster is one CTA.
    pub fn has_cluster_barrier(&self) -> bool {
        self.code.iter().any(|inst| inst.op == Opcode::ClusterArrive)
    }

    /// True if the program uses cluster barriers, bulk copies or warp-group products, which came with clusters.
    pub fn needs_clusters(&self) -> bool {
        let is_one = |op| {
            matches!(
                op,
                Opcode::ClusterArrive | Opcode::Ublkcp | Opcode::Ublkred | Opcode::Hgmma | Opcode::HgmmaSp
            )
        };
        self.code.iter().any(|inst| is_one(inst.op))
    }

    /// Returns the launch requirements.
    pub fn requirements(&self) -> &Requirements {
        &self.requirements
    }

    /// Returns the assertion that fails at the trap with this program counter.
    pub fn assertion(&self, pc: u32) -> Option<&Assertion> {
        let inst = self.code.get(pc as usize).filter(|inst| inst.op == Opcode::Trap)?;
        self.assertions.iter().find(|assertion| assertion.line == inst.line)
    }

    /// Returns the source map of the PTX text ([`Inst::line`]).
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Returns the source position of the instruction with this program counter.
    pub fn source(&self, pc: u32) -> Option<SourceLine<'_>> {
        let inst = self.code.get(pc as usize)?;
        self.sources.at(inst.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_read_predicates_only_for_a_carry_or_a_guard() {
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
