//! State of a function while its code is being selected.

use super::Home;
use super::recursion::Recursion;
use crate::ast::Type;
use crate::check::{Body, SymbolId};
use crate::lower::code::{BlockId, Code};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

/// A function whose code is being selected: the kernel, or one that it calls.
pub(super) struct Frame<'t, 'a> {
    pub body: &'t Body<'t, 'a>,
    pub homes: Vec<Home>,
    /// Words and flags that belong to its PTX registers; all others are temporary.
    pub words: Range<u32>,
    pub flags: Range<u32>,
    /// Number of its first label among all; the one behind its last is its end.
    pub labels: usize,
    /// The line that all of it stands for, where it is a routine of the library.
    pub line: Option<u32>,
    /// The current step.
    pub step: usize,
    /// How it is called from inside, where it may be.
    pub recursion: Option<Recursion>,
    /// `.param` variables that the function stores in part. Computed on first use.
    pub stored_in_part: OnceCell<HashSet<SymbolId>>,
}

impl<'t, 'a> Frame<'t, 'a> {
    pub fn of(body: &'t Body<'t, 'a>, code: &mut Code, places: &mut Vec<Option<BlockId>>) -> Self {
        let labels = places.len();
        places.resize(labels + body.n_labels as usize + 1, None);
        let (first_word, first_flag) = (code.groups.len() as u32, code.n_flags);
        let home = |ty: &Type| match ty.bits() {
            1 => Home::Flag(code.flag()),
            bits => Home::Words(code.group(bits.div_ceil(32) as u8)),
        };
        let homes = body.registers.iter().map(home).collect();
        Frame {
            body,
            homes,
            words: first_word..code.groups.len() as u32,
            flags: first_flag..code.n_flags,
            labels,
            line: None,
            step: 0,
            recursion: None,
            stored_in_part: OnceCell::new(),
        }
    }

    pub fn end(&self) -> usize {
        self.labels + self.body.n_labels as usize
    }
}
