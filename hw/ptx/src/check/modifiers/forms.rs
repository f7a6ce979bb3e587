//! Forms: the sets of modifiers, and the modifiers that each instruction takes.

use crate::ast::{Instruction, Type};

/// A set of modifiers. An instruction has at most one modifier of each set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Space,
    Order,
    Scope,
    Cache,
    L1Priority,
    L2Priority,
    Prefetch,
    Vector,
    Operation,
    Proxy,
    Restriction,
    /// Modifiers outside the sets.
    Other,
}

impl Kind {
    /// Returns the set of a modifier; `None` for an unknown modifier.
    pub fn of(word: &str) -> Option<Kind> {
        Some(match word {
            ".global" | ".shared" | ".shared::cta" | ".shared::cluster" | ".local" | ".const" | ".param"
            | ".param::entry" | ".param::func" => Kind::Space,
            ".weak" | ".volatile" | ".relaxed" | ".acquire" | ".release" | ".acq_rel" | ".sc" => Kind::Order,
            ".cta" | ".cluster" | ".gpu" | ".gl" | ".sys" => Kind::Scope,
            ".ca" | ".cg" | ".cs" | ".lu" | ".cv" | ".wb" | ".wt" => Kind::Cache,
            ".L1::evict_normal"
            | ".L1::evict_unchanged"
            | ".L1::evict_first"
            | ".L1::evict_last"
            | ".L1::no_allocate" => Kind::L1Priority,
            ".L2::evict_normal" | ".L2::evict_first" | ".L2::evict_last" => Kind::L2Priority,
            ".L2::64B" | ".L2::128B" | ".L2::256B" => Kind::Prefetch,
            ".v2" | ".v4" | ".v8" => Kind::Vector,
            ".add" | ".min" | ".max" | ".inc" | ".dec" | ".and" | ".or" | ".xor" | ".exch" | ".cas" => Kind::Operation,
            ".alias" | ".async" | ".async::generic" | ".tensormap::generic" => Kind::Proxy,
            ".sync_restrict::shared::cta" | ".sync_restrict::shared::cluster" => Kind::Restriction,
            ".nc" | ".mmio" | ".noftz" | ".L2::cache_hint" | ".proxy" | ".mbarrier_init" => Kind::Other,
            _ => return None,
        })
    }

    pub fn plural(self) -> &'static str {
        match self {
            Kind::Space => "state spaces",
            Kind::Order => "memory orders",
            Kind::Scope => "scopes",
            Kind::Cache => "cache operators",
            Kind::L1Priority => "L1 eviction priorities",
            Kind::L2Priority => "L2 eviction priorities",
            Kind::Prefetch => "prefetch sizes",
            Kind::Vector => "vector widths",
            Kind::Operation => "operations",
            Kind::Proxy => "proxy kinds",
            Kind::Restriction => "restrictions",
            Kind::Other => "modifiers",
        }
    }
}

/// A form of an instruction: its full name and its modifiers, without types.
pub(super) struct Form {
    pub name: &'static str,
    words: &'static str,
}

impl Form {
    /// Returns the form of an instruction; `None` if its modifiers are not checked here.
    pub fn of(instruction: &Instruction<'_>) -> Option<&'static Form> {
        let has = |word: &str| instruction.qualifiers.iter().any(|name| name.text == word);
        Some(match instruction.opcode.text {
            "ld" => &LD,
            "ldu" => &LDU,
            "st" if !has(".async") => &ST,
            "atom" => &ATOM,
            "red" if !has(".async") => &RED,
            "fence" if has(".proxy") => &FENCE_PROXY,
            "fence" if has(".mbarrier_init") => &FENCE_MBARRIER_INIT,
            "fence" => &FENCE,
            "membar" if has(".proxy") => &MEMBAR_PROXY,
            "membar" => &MEMBAR,
            _ => return None,
        })
    }

    pub fn takes(&self, word: &str) -> bool {
        self.words.split(' ').any(|other| other == word)
    }

    /// Returns the modifiers of one set that the form takes.
    pub fn words(&self, kind: Kind) -> Vec<&'static str> {
        let words = self.words.split(' ');
        words.filter(|word| Kind::of(word) == Some(kind)).collect()
    }
}

const LD: Form = Form {
    name: "ld",
    words: ".weak .volatile .relaxed .acquire .mmio .cta .cluster .gpu .sys .global .shared .shared::cta .shared::cluster .local .const \
            .param .param::entry .param::func .ca .cg .cs .lu .cv .nc .L1::evict_normal .L1::evict_unchanged .L1::evict_first \
            .L1::evict_last .L1::no_allocate .L2::evict_normal .L2::evict_first .L2::evict_last .L2::cache_hint .L2::64B .L2::128B \
            .L2::256B .v2 .v4 .v8",
};

const LDU: Form = Form {
    name: "ldu",
    words: ".global .v2 .v4",
};

const ST: Form = Form {
    name: "st",
    words: ".weak .volatile .relaxed .release .mmio .cta .cluster .gpu .sys .global .shared .shared::cta .shared::cluster .local .param \
            .param::func .wb .cg .cs .wt .L1::evict_normal .L1::evict_unchanged .L1::evict_first .L1::evict_last .L1::no_allocate \
            .L2::evict_normal .L2::evict_first .L2::evict_last .L2::cache_hint .v2 .v4 .v8",
};

const ATOM: Form = Form {
    name: "atom",
    words: ".relaxed .acquire .release .acq_rel .cta .cluster .gpu .sys .global .shared .shared::cta .shared::cluster .add .min .max .inc \
            .dec .and .or .xor .exch .cas .noftz .L2::cache_hint .v2 .v4 .v8",
};

const RED: Form = Form {
    name: "red",
    words: ".relaxed .release .cta .cluster .gpu .sys .global .shared .shared::cta .shared::cluster .add .min .max .inc .dec .and .or .xor \
            .noftz .L2::cache_hint .v2 .v4 .v8",
};

const FENCE: Form = Form {
    name: "fence",
    words: ".sc .acq_rel .acquire .release .cta .cluster .gpu .sys .sync_restrict::shared::cta .sync_restrict::shared::cluster",
};

const FENCE_MBARRIER_INIT: Form = Form {
    name: "fence.mbarrier_init",
    words: ".mbarrier_init .release .cluster",
};

const FENCE_PROXY: Form = Form {
    name: "fence.proxy",
    words: ".proxy .alias .async .async::generic .tensormap::generic .global .shared::cta .shared::cluster .acquire .release .acq_rel \
            .cta .cluster .gpu .sys .sync_restrict::shared::cta .sync_restrict::shared::cluster",
};

const MEMBAR: Form = Form {
    name: "membar",
    words: ".cta .gl .sys",
};

const MEMBAR_PROXY: Form = Form {
    name: "membar.proxy",
    words: ".proxy .alias .async .global .shared::cta .shared::cluster",
};

/// Types of an atomic operation, without half types.
pub(super) fn types_of(operation: &str) -> &'static [Type] {
    match operation {
        ".add" => &[Type::U32, Type::S32, Type::U64, Type::F32, Type::F64],
        ".min" | ".max" => &[Type::U32, Type::S32, Type::U64, Type::S64],
        ".inc" | ".dec" => &[Type::U32],
        ".exch" => &[Type::B32, Type::B64, Type::B128],
        ".cas" => &[Type::B16, Type::B32, Type::B64, Type::B128],
        _ => &[Type::B32, Type::B64],
    }
}
