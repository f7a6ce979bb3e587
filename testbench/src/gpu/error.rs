//! What can go wrong between a preset and a report.

use std::fmt;

use warpwave_components::config::ConfigFault;
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset::PresetError;
use warpwave_ptx::Diagnostic;
use warpwave_ptx::diag::render_all;

use crate::host::HostError;

/// Why a call of [`Gpu`](super::Gpu) failed. The GPU can be used further.
#[derive(Clone, PartialEq, Debug)]
pub enum GpuError {
    /// The preset cannot be loaded.
    Preset(PresetError),
    /// No machine can be built from the configuration.
    Config(Vec<ConfigFault>),
    /// The text is not PTX, or its target is newer than the GPU.
    Ptx {
        /// Every finding with its place.
        findings: Vec<Diagnostic>,
        /// The text.
        text: String,
    },
    /// Kernel, arguments, shape or buffers do not fit.
    Host(HostError),
    /// A size of the launch is 0.
    EmptyLaunch {
        /// CTAs in x, y, z.
        grid: [u32; 3],
        /// Threads of a CTA in x, y, z.
        block: [u32; 3],
    },
    /// The slice has not as many elements as the buffer.
    Length {
        /// Elements of the slice.
        found: usize,
        /// Elements of the buffer.
        want: usize,
    },
    /// The launch did not come to its end: trap, deadlock or cycle limit.
    Launch(LaunchError),
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuError::Preset(error) => error.fmt(f),
            GpuError::Config(faults) => {
                write!(f, "no machine can be built from this configuration:")?;
                faults.iter().try_for_each(|fault| write!(f, "\n- {fault}"))
            }
            GpuError::Ptx { findings, text } => f.write_str(&render_all(findings, "the PTX text", text)),
            GpuError::Host(error) => error.fmt(f),
            GpuError::EmptyLaunch { grid, block } => write!(
                f,
                "a launch of {grid:?} blocks of {block:?} threads is empty; make every size at least 1"
            ),
            GpuError::Length { found, want } => write!(
                f,
                "{found} elements are given for a buffer of {want}; give as many as it has"
            ),
            GpuError::Launch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GpuError {}

impl From<PresetError> for GpuError {
    fn from(error: PresetError) -> Self {
        GpuError::Preset(error)
    }
}

impl From<HostError> for GpuError {
    fn from(error: HostError) -> Self {
        GpuError::Host(error)
    }
}
