//! The targets: one module each, with its input and its oracle.

pub mod cluster_barrier;

pub mod constant_cache;

pub mod control_flow;

pub mod crossbar;

pub mod cta_manager;

pub mod dispatch;

pub mod fst;

pub mod gigathread;

pub mod hbm;

pub mod ideal_memory;

pub mod l1;

pub mod l2_slice;

pub mod l2_twins;

pub mod link_clock;

pub mod lsu;

pub mod mbarriers;

pub mod npy;

pub mod pipes;

pub mod scheduler;

pub mod shared_memory;

pub mod textures;

pub mod tma;

pub mod toml_text;

pub mod vcd;

use std::fmt::Debug;

use arbitrary::{Arbitrary, Unstructured};
use warpwave::oracle;

use crate::{features, waves};

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name, also of its file in `fuzz_targets/` and of its folders.
    pub name: &'static str,
    /// The property that it checks.
    pub claim: &'static str,
    /// Folders of inputs that it only reads, from the root of the repository.
    pub also_reads: &'static [&'static str],
    /// Sources under test: files and folders, from the root of the repository.
    pub sources: &'static [&'static str],
    /// Decodes an input and checks it. Panics at a violation.
    pub run: fn(&[u8]),
    /// Decodes an input and formats it.
    pub show: fn(&[u8]) -> String,
}

/// A target with input type `$input` and oracle `$check`.
macro_rules! target {
    ($name:literal, $input:ty, $check:path, $claim:literal, $sources:expr) => {
        target!($name, $input, $check, $claim, $sources, &[])
    };
    ($name:literal, $input:ty, $check:path, $claim:literal, $sources:expr, $also_reads:expr) => {
        Target {
            name: $name,
            claim: $claim,
            also_reads: $also_reads,
            sources: $sources,
            run: |bytes| features::note_reached(oracle::replay(bytes, $check)),
            show: |bytes| show::<$input>(bytes),
        }
    };
}

/// All targets, by name.
pub const ALL: &[Target] = &[
    target!(
        "cluster_barrier",
        cluster_barrier::Input,
        cluster_barrier::check,
        "a cluster opens after its last arrival, once, for every CTA that has not ended",
        &["components/src/front/cluster_barrier.rs"]
    ),
    target!(
        "constant_cache",
        constant_cache::Input,
        constant_cache::check,
        "each request gets one fill, in the order and not before the cycle of a list of lines",
        &[
            "components/src/sm/constant.rs",
            "components/src/sm/constant",
            "components/src/cache/constant_lines.rs"
        ]
    ),
    target!(
        "control_flow",
        control_flow::Input,
        control_flow::check,
        "each thread executes what it executes alone; lanes leave a region together",
        &["hw/isa/src/flow.rs", "hw/isa/src/flow"]
    ),
    target!(
        "crossbar",
        crossbar::Input,
        crossbar::check,
        "every packet arrives once, in order, at its output; ports keep their rate; no input starves",
        &["components/src/xbar"]
    ),
    target!(
        "cta_manager",
        cta_manager::Input,
        cta_manager::check,
        "warps start once; a barrier opens after its last arrival; a CTA ends after its last warp",
        &[
            "components/src/sm/cta.rs",
            "components/src/sm/cta",
            "components/src/sm/barrier.rs"
        ]
    ),
    target!(
        "dispatch",
        dispatch::Input,
        dispatch::check,
        "a pipe gets the operands of a register file without time; each instruction is released once",
        &[
            "components/src/sm/subcore/dispatch.rs",
            "components/src/sm/subcore/dispatch",
            "components/src/sm/subcore/collector.rs",
            "components/src/sm/subcore/regfile.rs"
        ]
    ),
    target!(
        "fst",
        waves::Dump,
        fst::check,
        "a reader finds the changes that were written",
        &["waveforms/src/fst.rs", "waveforms/src/fst"]
    ),
    target!(
        "gigathread",
        gigathread::Input,
        gigathread::check,
        "every CTA is sent once to an SM with room; a grid ends once, after its last CTA",
        &["components/src/front/gigathread.rs", "components/src/front/gigathread"]
    ),
    target!(
        "hbm",
        hbm::Input,
        hbm::check,
        "bytes are those of a memory without time; no DRAM timing is violated",
        &["components/src/hbm"]
    ),
    target!(
        "ideal_memory",
        ideal_memory::Input,
        ideal_memory::check,
        "one response each, in order and not before the latency; bytes are those of a memory without time",
        &["components/src/sm/ideal_memory.rs"]
    ),
    target!(
        "l1",
        l1::Input,
        l1::check,
        "one response each; a load sees every earlier store of its SM, and nothing else",
        &["components/src/sm/l1.rs", "components/src/sm/l1"]
    ),
    target!(
        "l2_slice",
        l2_slice::Input,
        l2_slice::check,
        "requests for a sector take effect in order; a write-back leaves the newest bytes in memory",
        &["components/src/l2"]
    ),
    target!(
        "l2_twins",
        l2_twins::Input,
        l2_twins::check,
        "a byte is one register to the SMs of both partitions; a write-back leaves the newest bytes in memory",
        &["components/src/l2"]
    ),
    target!(
        "link_clock",
        link_clock::Input,
        link_clock::check,
        "messages are visible in the cycles of a model of queues, for any tiles, quantum and order of ticks",
        &[
            "hw/src/link.rs",
            "hw/src/link",
            "hw/src/clock.rs",
            "hw/src/clock",
            "hw/src/tile.rs",
            "hw/src/tile"
        ]
    ),
    target!(
        "lsu",
        lsu::Input,
        lsu::check,
        "accesses of a warp take effect in program order; one return, one credit, one acknowledgement",
        &["components/src/sm/lsu.rs", "components/src/sm/lsu"]
    ),
    target!(
        "mbarriers",
        mbarriers::Input,
        mbarriers::check,
        "a phase ends after its last arrival and byte; a test is true after the end of its phase",
        &["components/src/sm/shared/mbarrier.rs", "hw/isa/src/exec/mbarrier.rs"]
    ),
    target!(
        "memory_traffic",
        oracle::MemoryTraffic,
        oracle::memory_traffic,
        "the whole memory system returns the bytes of a memory without time",
        &[
            "components/src/sm/l1.rs",
            "components/src/sm/l1",
            "components/src/xbar",
            "components/src/l2",
            "components/src/hbm",
            "components/src/storage.rs"
        ]
    ),
    target!(
        "npy",
        npy::Input,
        npy::check,
        "any bytes are read or refused; what is written reads back",
        &["testbench/src/scenario/npy.rs"]
    ),
    target!(
        "pipes",
        pipes::Input,
        pipes::check,
        "results are those of the definitions, in order, in the cycle of their latency",
        &["components/src/sm/pipe.rs", "components/src/sm/pipe"]
    ),
    target!(
        "ptx_lowering",
        oracle::PtxLowering,
        oracle::ptx_lowering,
        "a program leaves the same memory with any passes as with the naive lowering",
        &["hw/ptx/src/lower.rs", "hw/ptx/src/lower"]
    ),
    target!(
        "ptx_text",
        oracle::PtxText<'_>,
        oracle::ptx_text,
        "any text compiles or is refused with findings in the text",
        &["hw/ptx/src"],
        &["hw/ptx/tests/ok", "hw/ptx/tests/err", "testbench/corpus/ptx"]
    ),
    target!(
        "random_programs",
        oracle::RandomProgram,
        oracle::random_programs,
        "a random program leaves the same memory on machine and reference",
        &["components/src", "hw/isa/src"]
    ),
    target!(
        "scheduler",
        scheduler::Input,
        scheduler::check,
        "a warp issues in program order, never before its registers, predicates and fences allow",
        &[
            "components/src/sm/subcore/scheduler.rs",
            "components/src/sm/subcore/scheduler",
            "components/src/sm/subcore/policy",
            "components/src/sm/subcore/scoreboard.rs",
            "components/src/sm/subcore/ibuffer.rs",
            "components/src/sm/subcore/warp.rs"
        ]
    ),
    target!(
        "shared_memory",
        shared_memory::Input,
        shared_memory::check,
        "accesses take effect in order, lane by lane; each returns once, to its sub-core",
        &["components/src/sm/shared.rs", "components/src/sm/shared"]
    ),
    target!(
        "textures",
        textures::Input,
        textures::check,
        "texels are those of a plain sampler; surface accesses of a warp take effect in order",
        &["components/src/sm/lsu/texture.rs", "hw/isa/src/exec/texture.rs"]
    ),
    target!(
        "tma",
        tma::Input,
        tma::check,
        "bytes of copies and tiles are in memory before a barrier is told or a copy ends",
        &["components/src/sm/tma.rs", "components/src/sm/tma"]
    ),
    target!(
        "toml_text",
        toml_text::Input,
        toml_text::check,
        "any text loads or is refused with an error; what loads agrees with itself",
        &[
            "testbench/src/scenario",
            "components/src/preset.rs",
            "components/src/preset",
            "components/src/config"
        ]
    ),
    target!(
        "vcd",
        waves::Dump,
        vcd::check,
        "a reader finds the changes that were written",
        &["waveforms/src/vcd.rs", "waveforms/src/vcd"]
    ),
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}

/// Decodes an input as libFuzzer does, and formats it.
fn show<'a, T: Arbitrary<'a> + Debug>(bytes: &'a [u8]) -> String {
    match T::arbitrary_take_rest(Unstructured::new(bytes)) {
        Ok(input) => format!("{input:#?}"),
        Err(error) => error.to_string(),
    }
}
