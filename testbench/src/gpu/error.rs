//! Errors of the library interface.

use thiserror::Error;
use warpwave_components::config::ConfigFault;
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset::PresetError;
use warpwave_hw::error::lines;
use warpwave_ptx::Diagnostic;
use warpwave_ptx::diag::render_all;

use crate::host::HostError;

/// The error of a failed call of [`Gpu`](super::Gpu). The GPU stays usable.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum GpuError {
    /// The preset cannot be loaded.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// No machine can be built from the configuration.
    #[error("no machine can be built from this configuration:{}", lines(.0))]
    Config(Vec<ConfigFault>),
    /// The text is not valid PTX, or its target is newer than the GPU.
    #[error("{}", render_all(.findings, "the PTX text", .text))]
    Ptx {
        /// Every finding, with its position.
        findings: Vec<Diagnostic>,
        /// The text.
        text: String,
    },
    /// Kernel, arguments, shape or buffers do not match, or device memory is full.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A size of the launch is 0.
    #[error("a launch of {grid:?} blocks of {block:?} threads is empty; make every size at least 1")]
    EmptyLaunch {
        /// CTAs in x, y, z.
        grid: [u32; 3],
        /// Threads of a CTA in x, y, z.
        block: [u32; 3],
    },
    /// Slice and buffer have different lengths.
    #[error("the slice has {found} elements, but the buffer has {want}; pass a slice of that length")]
    Length {
        /// Elements of the slice.
        found: usize,
        /// Elements of the buffer.
        want: usize,
    },
    /// The launch stopped early: trap, deadlock or cycle limit.
    #[error(transparent)]
    Launch(LaunchError),
}
