//! Qualifiers that are common to several instructions. Any other qualifier is reported.

/// Qualifiers of memory instructions: handled elsewhere, or without effect on the result.
pub(super) const MEMORY_QUALIFIERS: &[&str] = &[
    ".global",
    ".shared",
    ".shared::cta",
    ".shared::cluster",
    ".local",
    ".const",
    ".param",
    ".param::entry",
    ".param::func",
    ".v2",
    ".v4",
    ".ca",
    ".cg",
    ".cs",
    ".lu",
    ".cv",
    ".wb",
    ".wt",
    ".nc",
    ".volatile",
    ".relaxed",
    ".acquire",
    ".release",
    ".acq_rel",
    ".weak",
    ".cta",
    ".cluster",
    ".gpu",
    ".sys",
    ".add",
    ".min",
    ".max",
    ".inc",
    ".dec",
    ".and",
    ".or",
    ".xor",
    ".exch",
    ".cas",
    ".noftz",
    ".async",
    ".L1::evict_last",
    ".L1::evict_first",
    ".L1::evict_normal",
    ".L1::evict_unchanged",
    ".L1::no_allocate",
    ".L2::64B",
    ".L2::128B",
    ".L2::256B",
    ".L2::evict_last",
    ".L2::evict_first",
    ".L2::evict_normal",
    ".L2::cache_hint",
    ".mmio",
];

/// Qualifiers of hint instructions.
pub(super) const HINT_QUALIFIERS: &[&str] = &[
    ".global",
    ".L2",
    ".L2::evict_last",
    ".L2::evict_normal",
    ".L2::evict_first",
    ".L2::evict_unchanged",
    ".fractional",
    ".range",
    ".cvt",
];

/// Qualifiers of comparisons.
pub(super) const COMPARISON_QUALIFIERS: &[&str] = &[
    ".eq", ".ne", ".lt", ".lo", ".le", ".ls", ".gt", ".hi", ".ge", ".hs", ".equ", ".neu", ".ltu", ".leu", ".gtu",
    ".geu", ".num", ".nan", ".and", ".or", ".xor", ".ftz",
];

/// Qualifiers of no-op instructions: dependent grids, register counts, debuggers and profilers.
pub(super) const LAUNCH_QUALIFIERS: &[&str] = &[
    ".launch_dependents",
    ".wait",
    ".inc",
    ".dec",
    ".sync",
    ".aligned",
    ".mask",
];
