//! What software and machine agree on: instructions, registers, programs and their meaning. There is no time in here.
//!
//! Read in this order:
//!
//! - the instruction: [`opcode`] (THE table), [`inst`], [`shape`] (of matrix products), [`reg`], [`space`], [`lane`], [`barrier`];
//! - the program: [`source`] (its place in the source text), [`program`], [`control`] (waits that a compiler writes), [`text`] (assembly text);
//! - its meaning: [`flow`] (lanes that split and meet), [`exec`] (bits in, bits out).
//!
//! The table does not assume PTX: its rows are the operations that compilers select from, so machine code can become a second
//! front end.

pub mod opcode;

pub mod inst;

pub mod shape;

pub mod reg;

pub mod space;

pub mod lane;

pub mod barrier;

pub mod source;

pub mod program;

pub mod flow;

pub mod exec;

pub mod text;

pub mod control;
