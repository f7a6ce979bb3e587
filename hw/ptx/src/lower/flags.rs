//! Predicate allocation: virtual predicates to P0..P6.
//!
//! If more than seven are live at a time, the longest-lived ones are kept in general registers. A SEL saves such a
//! predicate, and an ISETP restores it before each use.

use super::code::{Arg, Code, Flag, Op, What, When, Word};
use super::graph::Graph;
use super::live::{self, Spans};
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Pred;

/// Returns the physical predicate of each virtual predicate. May add operations to the code.
pub(super) fn run(code: &mut Code) -> Vec<Pred> {
    loop {
        let spans = live::spans::<live::Flags>(code, &Graph::of(code));
        match colour(&spans) {
            Ok(preds) => return preds,
            Err(crowd) => {
                let longest = crowd.into_iter().max_by_key(|&flag| length(&spans[flag]));
                let Some(flag) = longest else { return Vec::new() };
                keep_in_word(code, Flag(flag as u32));
            }
        }
    }
}

fn length(spans: &Spans) -> u32 {
    spans.iter().map(|(start, end)| end - start).sum()
}

/// Assigns by first fit in order of start. On failure, returns the predicates live together with the one that did not fit.
fn colour(spans: &[Spans]) -> Result<Vec<Pred>, Vec<usize>> {
    let mut order: Vec<usize> = (0..spans.len()).filter(|&flag| !spans[flag].is_empty()).collect();
    order.sort_by_key(|&flag| spans[flag][0]);
    let mut taken: [Spans; Pred::COUNT] = Default::default();
    let mut preds = vec![Pred::TRUE; spans.len()];
    for &flag in &order {
        let free = taken.iter().position(|taken| !live::overlap(taken, &spans[flag]));
        let Some(place) = free else {
            let meets = |&&other: &&usize| live::overlap(&spans[other], &spans[flag]);
            return Err(order.iter().filter(meets).copied().collect());
        };
        live::merge(&mut taken[place], &spans[flag]);
        preds[flag] = Pred(place as u8);
    }
    Ok(preds)
}

/// Rewrites every definition and use of a predicate to go through a general register.
fn keep_in_word(code: &mut Code, flag: Flag) {
    let word = code.group(1);
    for block in 0..code.blocks.len() {
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut out = Vec::with_capacity(ops.len() + 2);
        for mut op in ops {
            let reads = op.flag_uses().any(|used| used == flag);
            let writes = op.flag_defs().any(|written| written == flag);
            if !reads && !writes {
                out.push(op);
                continue;
            }
            let short = code.flag();
            if reads || op.guard != When::ALWAYS {
                out.push(fetch(word, short, op.line));
            }
            rename(&mut op, flag, short);
            let ends = op.is(Opcode::Bra) || op.is(Opcode::Exit);
            let line = op.line;
            out.push(op);
            if writes && !ends {
                out.push(put(word, short, line));
            }
        }
        code.blocks[block].ops = out;
    }
}

fn fetch(word: Word, flag: Flag, line: u32) -> Op {
    let mut op = Op::row(Opcode::Isetp)
        .src(&[Arg::word(word), Arg::ZERO])
        .flags(flag)
        .mods(|mods| mods.cmp = Cmp::Ne);
    op.line = line;
    op
}

fn put(word: Word, flag: Flag, line: u32) -> Op {
    let mut op = Op::row(Opcode::Sel)
        .dst(word)
        .src(&[Arg::ZERO, Arg::imm(1)])
        .psrc(When::flag(flag).negated());
    op.line = line;
    op
}

fn rename(op: &mut Op, from: Flag, to: Flag) {
    let renamed = |flag: Option<Flag>| if flag == Some(from) { Some(to) } else { flag };
    op.guard.flag = renamed(op.guard.flag);
    for when in &mut op.psrc {
        when.flag = renamed(when.flag);
    }
    for flag in &mut op.pdst {
        *flag = renamed(*flag);
    }
    debug_assert!(matches!(op.what, What::Row(_)));
}
