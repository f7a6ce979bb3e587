//! Why a scenario does not fit its program or the machine.

use std::fmt;

use warpwave_components::occupancy::OccupancyError;
use warpwave_ptx::Diagnostic;

/// A launch or a buffer that cannot be.
#[derive(Clone, PartialEq, Debug)]
pub enum HostError {
    /// No kernel has this name.
    UnknownEntry {
        /// The name.
        entry: String,
        /// The kernels that there are.
        entries: Vec<String>,
    },
    /// The launch names no kernel, and the module has not exactly one.
    WhichEntry {
        /// The kernels that there are.
        entries: Vec<String>,
    },
    /// The kernel uses instructions that this machine does not run.
    Unsupported {
        /// The kernel.
        entry: String,
        /// Each of them, with its place in the PTX text.
        findings: Vec<Diagnostic>,
    },
    /// Another number of arguments than the kernel has parameters.
    ArgumentCount {
        /// The kernel.
        entry: String,
        /// Arguments given.
        found: usize,
        /// Names of its parameters.
        params: Vec<String>,
    },
    /// An argument of another size than its parameter.
    ArgumentSize {
        /// The kernel.
        entry: String,
        /// Index of the argument.
        index: usize,
        /// The parameter.
        param: String,
        /// What is given, in words.
        found: String,
        /// Bytes of the parameter.
        want: u32,
    },
    /// No variable of the module has this name.
    UnknownGlobal {
        /// The name.
        name: String,
        /// The variables that there are.
        known: Vec<String>,
    },
    /// A variable of another size.
    GlobalSize {
        /// The variable.
        name: String,
        /// Bytes that the scenario gives.
        found: u64,
        /// Bytes that the module declares.
        want: u64,
    },
    /// A constant variable that is expected to change.
    ConstantExpected {
        /// The variable.
        name: String,
    },
    /// Device memory is full.
    OutOfMemory {
        /// The buffer or variable that found no room.
        name: String,
        /// Its bytes.
        need: u64,
        /// Bytes of device memory.
        limit: u64,
    },
    /// The kernel demands another block size.
    BlockSize {
        /// The kernel.
        entry: String,
        /// Threads in x, y, z as launched.
        found: [u32; 3],
        /// What the kernel demands.
        want: [u32; 3],
        /// Whether it demands exactly this, rather than at most so many threads.
        exact: bool,
    },
    /// More threads in one direction, or CTAs in the grid, than can be counted.
    TooMany {
        /// What there is too much of, with need and limit.
        what: String,
    },
    /// Clusters that cannot be.
    Cluster {
        /// The kernel.
        entry: String,
        /// Why not.
        fault: ClusterFault,
    },
    /// Not even one CTA fits on an SM.
    DoesNotFit {
        /// The kernel.
        entry: String,
        /// The part.
        gpu: String,
        /// Which limit, with need and limit.
        reason: OccupancyError,
    },
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::UnknownEntry { entry, entries } => {
                write!(f, "the program has no kernel `{entry}`; it has {}", list(entries))
            }
            HostError::WhichEntry { entries } => write!(
                f,
                "the program has not one kernel but {}; add `entry = \"...\"` to the launch",
                list(entries)
            ),
            HostError::Unsupported { entry, findings } => write!(
                f,
                "kernel `{entry}` cannot run: {} of its statements are not supported; `warpwave check` lists them",
                findings.len()
            ),
            HostError::ArgumentCount { entry, found, params } => write!(
                f,
                "kernel `{entry}` takes {} arguments, not {found}: {}",
                params.len(),
                list(params)
            ),
            HostError::ArgumentSize {
                entry,
                index,
                param,
                found,
                want,
            } => write!(
                f,
                "argument {index} of kernel `{entry}` is {found}, but its parameter `{param}` takes {want} bytes; \
                 give a value of that size"
            ),
            HostError::UnknownGlobal { name, known } => write!(
                f,
                "the program has no module variable `{name}` in .global or .const; it has {}",
                list(known)
            ),
            HostError::GlobalSize { name, found, want } => write!(
                f,
                "module variable `{name}` has {want} bytes, but the scenario gives {found}; change dtype or shape"
            ),
            HostError::ConstantExpected { name } => write!(
                f,
                "module variable `{name}` is constant, so nothing can be expected of it; remove `expect`"
            ),
            HostError::OutOfMemory { name, need, limit } => write!(
                f,
                "device memory is full: `{name}` needs {need} bytes, the device has {limit} in all; \
                 take a smaller shape or another --gpu"
            ),
            HostError::BlockSize {
                entry,
                found,
                want,
                exact,
            } => write!(
                f,
                "kernel `{entry}` wants {} {want:?}, not {found:?} (it was compiled for that); change `block`",
                if *exact {
                    "blocks of exactly"
                } else {
                    "blocks of at most"
                }
            ),
            HostError::TooMany { what } => write!(f, "{what}; launch less"),
            HostError::Cluster { entry, fault } => write!(f, "kernel `{entry}` cannot be launched: {fault}"),
            HostError::DoesNotFit { entry, gpu, reason } => {
                write!(f, "kernel `{entry}` cannot be launched on {gpu}: {reason}")
            }
        }
    }
}

impl std::error::Error for HostError {}

/// Why a launch's clusters cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClusterFault {
    /// The part has no clusters, nor what came with them.
    None {
        /// The part.
        gpu: String,
    },
    /// More CTAs than a cluster may have.
    TooLarge {
        /// CTAs asked for.
        need: u32,
        /// CTAs of the largest cluster.
        limit: u32,
    },
    /// The kernel was compiled for clusters of another size.
    NotAsCompiled {
        /// CTAs in x, y, z as launched.
        found: [u32; 3],
        /// What the kernel demands.
        want: [u32; 3],
    },
    /// The kernel demands that the launch says a size (`.explicitcluster`).
    NotSaid,
    /// The grid is no whole number of clusters.
    Uneven {
        /// CTAs of the grid in x, y, z.
        grid: [u32; 3],
        /// CTAs of a cluster in x, y, z.
        cluster: [u32; 3],
    },
    /// No GPC has room for all CTAs of a cluster at once.
    NoRoom {
        /// CTAs of a cluster.
        need: u32,
        /// CTAs that the largest GPC holds.
        limit: u32,
        /// CTAs that fit on one SM.
        per_sm: u32,
    },
}

impl fmt::Display for ClusterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { gpu } => write!(
                f,
                "{gpu} has no clusters, bulk copies and products of warp groups; take another --gpu, such as h100-sxm5"
            ),
            Self::TooLarge { need, limit } => {
                write!(
                    f,
                    "a cluster of {need} blocks is asked for, the limit is {limit}; change `cluster`"
                )
            }
            Self::NotAsCompiled { found, want } => write!(
                f,
                "it wants clusters of exactly {want:?} blocks, not {found:?} (it was compiled for that); change `cluster`"
            ),
            Self::NotSaid => write!(f, "it runs in clusters; add their size as `cluster` to the launch"),
            Self::Uneven { grid, cluster } => write!(
                f,
                "a grid of {grid:?} blocks is no whole number of clusters of {cluster:?}; change `grid`"
            ),
            Self::NoRoom { need, limit, per_sm } => write!(
                f,
                "a cluster of {need} blocks cannot be placed: with {per_sm} on an SM the largest GPC holds {limit} at once; \
                 take a smaller cluster, or blocks that need less"
            ),
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
