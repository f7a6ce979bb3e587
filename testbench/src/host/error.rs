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
    /// Clusters of more than one CTA.
    Cluster,
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
            HostError::Cluster => write!(f, "clusters of more than one block are not supported; remove `cluster`"),
            HostError::DoesNotFit { entry, gpu, reason } => {
                write!(f, "kernel `{entry}` cannot be launched on {gpu}: {reason}")
            }
        }
    }
}

impl std::error::Error for HostError {}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
