//! The instruction set: instructions, registers, programs, and the values that instructions compute. No timing.
//!
//! A compiler writes a [`program::Program`], and the machine runs it. The instruction table in [`opcode`] is the root: operand
//! widths, pipes, text and execution follow from its lines. The table does not depend on PTX, so machine code can become a second
//! front end. [`opcode`] also says how to add an instruction.
//!
//! Modules in reading order:
//!
//! | module | holds |
//! |---|---|
//! | [`opcode`] | the instruction table, and the checklist for a new instruction |
//! | [`inst`] | one instruction: opcode, guard, operands, modifiers |
//! | [`shape`] | shapes and types of matrix products |
//! | [`reg`] | names of registers, predicates, convergence barriers, special registers |
//! | [`space`] | state spaces, access sizes, address windows |
//! | [`lane`] | masks of lanes, and one 32-bit word per lane |
//! | [`barrier`] | numbers and thread counts of block barriers |
//! | [`source`] | the source line of each line of PTX text |
//! | [`program`] | a kernel: decoded code and launch requirements |
//! | [`text`] | assembly text of instructions, written and read |
//! | [`control`] | control words: the waits that a compiler writes into machine code |
//! | [`flow`] | divergence and reconvergence of a warp's lanes |
//! | [`exec`] | results of instructions: bits in, bits out |
//!
//! ```
//! use warpwave_isa::exec::{Operands, Results, execute};
//! use warpwave_isa::inst::Inst;
//! use warpwave_isa::lane::{LaneMask, Lanes};
//! use warpwave_isa::program::Decoded;
//!
//! let inst: Inst = "IMAD R0, R1, R2, R3".parse().unwrap();
//! let mut operands = Operands::default();
//! for (word, value) in operands.words.iter_mut().zip([6, 7, 100]) {
//!     *word = Lanes::splat(value);
//! }
//! let mut results = Results::default();
//! execute(&inst, &Decoded::of(&inst), LaneMask::ALL, &operands, &mut results);
//! assert_eq!(results.words[0].0[31], 6 * 7 + 100);
//! ```

pub mod opcode;

pub mod inst;

pub mod shape;

pub mod reg;

pub mod space;

pub mod lane;

pub mod barrier;

pub mod source;

pub mod program;

pub mod text;

pub mod control;

pub mod flow;

pub mod exec;
