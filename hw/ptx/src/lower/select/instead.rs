//! Remedies for instructions that the machine does not run.

use crate::diag::Diagnostic;

/// Remedy for a format of 4 or 6 bits. Another format has other values, so it is no replacement.
const NARROW: &str = "convert with integer instructions: the machine has no formats of 4 or 6 bits";

/// Opcodes and modifiers, each with what to write in its place.
const INSTEAD: &[(&str, &str)] = &[
    (
        "multimem",
        "use `ld`, `st` and `red`: a launch has the memory of one GPU",
    ),
    ("tcgen05", "use `mma.sync`, or `wgmma` in a text for `sm_90a`"),
    ("sured", "reduce with `red` in a buffer of global memory"),
    ("clusterlaunchcontrol", "launch one block for each piece of work"),
    ("istypep", "leave it out: the declaration of a reference tells its type"),
    (".tile::gather4", "copy each row with a `.tile` of one row"),
    (".tile::scatter4", "copy each row with a `.tile` of one row"),
    (".e2m1x2", NARROW),
    (".e2m3x2", NARROW),
    (".e3m2x2", NARROW),
    (".bulk", "store each word with a `st` of its own"),
];

/// Adds the remedy for an opcode or a modifier, if there is one.
pub(super) fn advise(finding: Diagnostic, word: &str) -> Diagnostic {
    match INSTEAD.iter().find(|(other, _)| *other == word) {
        Some((_, help)) => finding.help(*help),
        None => finding,
    }
}
