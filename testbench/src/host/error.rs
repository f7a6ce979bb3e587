//! Errors of launches, buffers and module variables that do not match the program or exceed the GPU.

use thiserror::Error;
use warpwave_components::occupancy::{Limiter, OccupancyError};
use warpwave_ptx::Diagnostic;

use crate::scenario::dtype::Dtype;

/// The reason for refusing a launch, a buffer or a module variable.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum HostError {
    /// No kernel has this name.
    #[error("the program has no kernel `{entry}`; it has {}", list(.entries))]
    UnknownEntry {
        /// The name.
        entry: String,
        /// All kernels of the program.
        entries: Vec<String>,
    },
    /// The launch names no kernel, and the program does not have exactly one.
    #[error("the launch names no kernel; the program has {}; add `entry = \"...\"` to the launch", list(.entries))]
    WhichEntry {
        /// All kernels of the program.
        entries: Vec<String>,
    },
    /// The kernel uses instructions that the model does not support.
    #[error("kernel `{entry}` cannot run: {} of its statements are not supported; `warpwave check` lists them", .findings.len())]
    Unsupported {
        /// The kernel.
        entry: String,
        /// Each of these instructions, with its position in the PTX text.
        findings: Vec<Diagnostic>,
    },
    /// The numbers of arguments and of parameters differ.
    #[error("kernel `{entry}` takes {} arguments, not {found}: {}", .params.len(), list(.params))]
    ArgumentCount {
        /// The kernel.
        entry: String,
        /// Arguments given.
        found: usize,
        /// Names of its parameters.
        params: Vec<String>,
    },
    /// The sizes of an argument and of its parameter differ.
    #[error(
        "argument {index} of kernel `{entry}` is {found}, but its parameter `{param}` takes {want} bytes; \
         give a value of that size"
    )]
    ArgumentSize {
        /// The kernel.
        entry: String,
        /// Index of the argument.
        index: usize,
        /// The parameter.
        param: String,
        /// The argument given, in words.
        found: String,
        /// Bytes of the parameter.
        want: u32,
    },
    /// A float parameter is given an integer, whose bits would be taken as a float.
    #[error(
        "argument {index} of kernel `{entry}` is a scalar {found}, but its parameter `{param}` is a float; \
         give a float, such as {{ f{bits} = 2.0 }}"
    )]
    ArgumentType {
        /// The kernel.
        entry: String,
        /// Index of the argument.
        index: usize,
        /// The parameter.
        param: String,
        /// Type of the argument given.
        found: Dtype,
        /// Bits of the parameter.
        bits: u32,
    },
    /// No variable of the module has this name.
    #[error("the program has no module variable `{name}` in .global or .const; it has {}", list(.known))]
    UnknownGlobal {
        /// The name.
        name: String,
        /// All variables of the program.
        known: Vec<String>,
    },
    /// No texture, surface or sampler reference of the module has this name.
    #[error("the program has no reference `{name}` (.texref, .surfref or .samplerref); it has {}", list(.known))]
    UnknownReference {
        /// The name.
        name: String,
        /// All references of the program.
        known: Vec<String>,
    },
    /// A kernel uses a reference without an image.
    #[error(
        "`{entry}` uses the reference `{name}`, which has no image: bind one with [references.{name}] and buffer = \"...\""
    )]
    UnboundReference {
        /// The kernel.
        entry: String,
        /// The reference.
        name: String,
    },
    /// An address names neither a buffer nor a variable.
    #[error(
        "neither a buffer nor a .global or .const variable of the program is named `{name}`{}",
        .nearest.as_ref().map_or(String::new(), |name| format!("; did you mean `{name}`?"))
    )]
    UnknownAddress {
        /// The name.
        name: String,
        /// The most similar buffer or variable.
        nearest: Option<String>,
    },
    /// An address lies behind its variable.
    #[error(
        "an address is {offset} bytes from the start of module variable `{name}`, which has {bytes}; give a smaller offset"
    )]
    OffsetOutside {
        /// The variable.
        name: String,
        /// The offset in bytes.
        offset: u64,
        /// Bytes of the variable.
        bytes: u64,
    },
    /// Scenario and program give different sizes of a variable.
    #[error("module variable `{name}` has {want} bytes, but the scenario gives {found}; change dtype or shape")]
    GlobalSize {
        /// The variable.
        name: String,
        /// Bytes in the scenario.
        found: u64,
        /// Bytes in the module.
        want: u64,
    },
    /// The scenario has an `expect` for a constant variable.
    #[error("module variable `{name}` is constant, so it cannot change; remove `expect`")]
    ConstantExpected {
        /// The variable.
        name: String,
    },
    /// Device memory is full.
    #[error(
        "device memory is full: `{name}` needs {need} bytes, the device has {limit} in all; \
         take a smaller shape or another --gpu"
    )]
    OutOfMemory {
        /// The buffer or variable that does not fit.
        name: String,
        /// Its bytes.
        need: u64,
        /// Bytes of device memory.
        limit: u64,
    },
    /// The kernel was compiled for another block size.
    #[error(
        "kernel `{entry}` is compiled for blocks of {} {want:?} threads, not {found:?}; change `block`",
        if *.exact { "exactly" } else { "at most" }
    )]
    BlockSize {
        /// The kernel.
        entry: String,
        /// Threads in x, y, z in the launch.
        found: [u32; 3],
        /// Threads in x, y, z that the kernel is compiled for.
        want: [u32; 3],
        /// True if the block must have exactly `want` threads. False if `want` is the maximum.
        exact: bool,
    },
    /// A size of the grid or of a block is above its limit.
    #[error("{what}; reduce the grid or the block")]
    TooMany {
        /// The size in words, with its limit.
        what: String,
    },
    /// The clusters of the launch are refused.
    #[error("kernel `{entry}` cannot be launched: {fault}")]
    Cluster {
        /// The kernel.
        entry: String,
        /// The reason.
        fault: ClusterFault,
    },
    /// The GPU is older than cooperative launches.
    #[error(
        "kernel `{entry}` cannot be launched: a cooperative launch needs compute capability 6.0, and {gpu} has {}.{}; \
         take another --gpu, or remove `cooperative`",
        .capability.0, .capability.1
    )]
    NotCooperative {
        /// The kernel.
        entry: String,
        /// The GPU.
        gpu: String,
        /// Its compute capability, major and minor.
        capability: (u32, u32),
    },
    /// The GPU does not hold all CTAs of a cooperative grid at once.
    #[error("kernel `{entry}` cannot be launched: {fault}")]
    NotResident {
        /// The kernel.
        entry: String,
        /// The limit, with its reason.
        fault: ResidencyFault,
    },
    /// One CTA does not fit on an SM.
    #[error("kernel `{entry}` cannot be launched on {gpu}: {reason}")]
    DoesNotFit {
        /// The kernel.
        entry: String,
        /// The GPU.
        gpu: String,
        /// The resource, with the need and the limit.
        reason: OccupancyError,
    },
}

/// The reason for refusing the clusters of a launch.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ClusterFault {
    /// The GPU has no clusters.
    #[error("{gpu} has no clusters, bulk copies or warp-group products; take another --gpu, such as h100-sxm5")]
    None {
        /// The GPU.
        gpu: String,
    },
    /// A cluster has more CTAs than the limit.
    #[error("a cluster has {need} blocks, the limit is {limit}; change `cluster`")]
    TooLarge {
        /// CTAs of a cluster.
        need: u32,
        /// CTAs of the largest cluster.
        limit: u32,
    },
    /// The kernel was compiled for clusters of another size.
    #[error("it is compiled for clusters of exactly {want:?} blocks, not {found:?}; change `cluster`")]
    NotAsCompiled {
        /// CTAs in x, y, z in the launch.
        found: [u32; 3],
        /// CTAs in x, y, z that the kernel is compiled for.
        want: [u32; 3],
    },
    /// The launch gives no cluster size, but the kernel requires one (`.explicitcluster`).
    #[error("it runs in clusters; add their size as `cluster` to the launch")]
    Missing,
    /// The grid does not divide into clusters.
    #[error("a grid of {grid:?} blocks does not divide into clusters of {cluster:?}; change `grid`")]
    Uneven {
        /// CTAs of the grid in x, y, z.
        grid: [u32; 3],
        /// CTAs of a cluster in x, y, z.
        cluster: [u32; 3],
    },
    /// No GPC has room for all CTAs of a cluster at once.
    #[error(
        "a cluster of {need} blocks does not fit: with {per_sm} on an SM the largest GPC holds {limit} at once; \
         take a smaller cluster, or blocks that need less"
    )]
    NoRoom {
        /// CTAs of a cluster.
        need: u32,
        /// CTAs that the largest GPC holds.
        limit: u32,
        /// CTAs that fit on one SM.
        per_sm: u32,
    },
}

/// The reason for refusing a cooperative launch: some of its CTAs would wait for others that never start.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "a cooperative grid of {need} blocks does not fit: {gpu} holds {limit}{} at once, {per_sm} on an SM (limited by {limiter}); \
     reduce `grid`, or what a block needs",
    in_clusters(*.cluster)
)]
pub struct ResidencyFault {
    /// The GPU.
    pub gpu: String,
    /// CTAs of the grid.
    pub need: u64,
    /// CTAs that the GPU holds at once.
    pub limit: u64,
    /// CTAs that fit on one SM.
    pub per_sm: u32,
    /// The resource of an SM that runs out first.
    pub limiter: Limiter,
    /// CTAs of a cluster, which lie in one GPC.
    pub cluster: u64,
}

fn in_clusters(size: u64) -> String {
    match size {
        1 => String::new(),
        _ => format!(" in clusters of {size}"),
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
