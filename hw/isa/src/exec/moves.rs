//! Moves and selection.

use super::map::{lanes_where, map2, map2_where, map3};
use super::{ExecInput, Results};
use crate::inst::Source;
use crate::reg::Pred;

pub(super) fn sel(input: &ExecInput, results: &mut Results) {
    map2_where(
        &mut results.words[0],
        input.operands.preds[0],
        input.a(),
        input.b(),
        |holds, a, b| {
            if holds { a } else { b }
        },
    );
}

/// Modes are numbered in the order of PTX: generic, f4e, b4e, rc8, ecl, ecr, rc16.
pub(super) fn prmt(input: &ExecInput, results: &mut Results) {
    let mode = input.inst.mods.lut;
    if let (0, Source::Imm(selector)) = (mode, input.inst.src[2].source) {
        // The selector is equal in every lane, so this is a vector loop.
        map2(&mut results.words[0], input.a(), input.b(), |a, b| {
            permute(u64::from(b) << 32 | u64::from(a), selector as u32)
        });
        return;
    }
    map3(
        &mut results.words[0],
        input.a(),
        input.b(),
        input.c(),
        |a, b, selector| {
            let selector = if mode == 0 {
                selector
            } else {
                // The special modes read two bits of the selector (PTX prmt).
                mode_selector(mode, selector & 3)
            };
            permute(u64::from(b) << 32 | u64::from(a), selector)
        },
    );
}

/// Returns the selector that equals a special mode. Byte 0 is the lowest digit.
fn mode_selector(mode: u8, position: u32) -> u32 {
    let digits = |digit: &dyn Fn(u32) -> u32| (0..4).fold(0, |all, n| all | digit(n) << (4 * n));
    match mode {
        1 => digits(&|n| position + n),
        2 => digits(&|n| (position + 8 - n) % 8),
        3 => digits(&|_| position),
        4 => digits(&|n| n.max(position)),
        5 => digits(&|n| n.min(position)),
        _ => digits(&|n| 2 * (position & 1) + n % 2),
    }
}

fn permute(bytes: u64, selector: u32) -> u32 {
    (0..4).fold(0, |all, n| {
        let digit = selector >> (4 * n) & 0xf;
        let byte = (bytes >> (8 * (digit & 7))) as u8;
        // Bit 3 of a digit replicates the byte's sign.
        let byte = if digit & 8 != 0 {
            ((byte as i8) >> 7) as u8
        } else {
            byte
        };
        all | u32::from(byte) << (8 * n)
    })
}

pub(super) fn p2r(input: &ExecInput, results: &mut Results) {
    let file = &input.operands.file;
    for (lane, word) in results.words[0].0.iter_mut().enumerate() {
        *word = (0..Pred::COUNT).fold(0, |all, n| all | (file[n].0 >> lane & 1) << n);
    }
}

pub(super) fn r2p(input: &ExecInput, results: &mut Results) {
    let (values, mask) = (&input.a().0, &input.b().0);
    for n in 0..Pred::COUNT {
        let set = lanes_where(|lane| values[lane] & mask[lane] & (1 << n) != 0);
        // A predicate outside of the mask keeps its value.
        let kept = lanes_where(|lane| mask[lane] & (1 << n) == 0);
        results.preds[n] = set | (kept & input.operands.file[n]);
    }
}
