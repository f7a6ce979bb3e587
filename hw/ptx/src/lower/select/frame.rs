//! Frames: the state of a function during selection.

use super::VLoc;
use super::carry::needs_carry_flag;
use super::recursion::Recursion;
use crate::ast::Type;
use crate::check::{Body, SymbolId};
use crate::lower::code::{BlockId, Code, VPred};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

/// A function during selection: the kernel or an inlined function.
pub(super) struct Frame<'t, 'a> {
    pub body: &'t Body<'t, 'a>,
    /// Location of each PTX register.
    pub locations: Vec<VLoc>,
    /// Registers and predicates of its PTX registers. All others are temporary.
    pub vregs: Range<u32>,
    pub preds: Range<u32>,
    /// Number of its first label. The number after its last label is its end.
    pub labels: usize,
    /// Line of the PTX text for the whole function, if it is a library routine.
    pub line: Option<u32>,
    /// Index in the body's code of the step being selected.
    pub step: usize,
    /// Recursion state, if the function can call itself.
    pub recursion: Option<Recursion>,
    /// Carry flag, if a carry is read where its last writer is not known.
    pub carry_flag: Option<VPred>,
    /// `.param` variables that the function stores in part. Computed on first use.
    pub stored_in_part: OnceCell<HashSet<SymbolId>>,
}

impl<'t, 'a> Frame<'t, 'a> {
    /// Creates the frame of a function, with new registers, predicates and label numbers.
    pub fn of(body: &'t Body<'t, 'a>, code: &mut Code, label_blocks: &mut Vec<Option<BlockId>>) -> Self {
        let labels = label_blocks.len();
        label_blocks.resize(labels + body.n_labels as usize + 1, None);
        let (first_vreg, first_pred) = (code.groups.len() as u32, code.n_preds);
        let location = |ty: &Type| match ty.bits() {
            1 => VLoc::VPred(code.new_pred()),
            bits => VLoc::VReg(code.new_group(bits.div_ceil(32) as u8)),
        };
        let locations = body.registers.iter().map(location).collect();
        let carry_flag = needs_carry_flag(body).then(|| code.new_pred());
        Frame {
            body,
            locations,
            vregs: first_vreg..code.groups.len() as u32,
            preds: first_pred..code.n_preds,
            labels,
            line: None,
            step: 0,
            recursion: None,
            carry_flag,
            stored_in_part: OnceCell::new(),
        }
    }

    pub fn end(&self) -> usize {
        self.labels + self.body.n_labels as usize
    }
}
