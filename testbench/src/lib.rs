//! A GPU simulated cycle by cycle: a library that runs kernels, and a testbench that runs scenarios.
//!
//! ```
//! use warpwave::gpu::Gpu;
//!
//! let ptx = include_str!("../examples/saxpy.ptx");
//! let mut gpu = Gpu::preset("h100-sxm5")?;
//! let module = gpu.load(ptx)?;
//! let (x, y) = (gpu.buffer(&[1.0f32, 2.0, 3.0])?, gpu.buffer(&[10.0f32, 20.0, 30.0])?);
//! let report = gpu.launch(&module, "saxpy", (1, 32), &[&3u32, &2.0f32, &x, &y])?;
//! assert_eq!(gpu.read(&y), [12.0, 24.0, 36.0]);
//!
//! // One warp, three lanes in use: two loads and a store of one sector each.
//! assert_eq!(report.metric("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"), Some(2.0));
//! println!("{} cycles", report.cycles());
//! # Ok::<(), warpwave::gpu::GpuError>(())
//! ```
//!
//! [`gpu`] also accepts custom policies and components, and delivers events to closures. `examples/` shows each.
//!
//! Reading order of the testbench: [`scenario`] (the input), [`host`] (the driver's part), [`reference`](mod@reference) (a model
//! without time), [`lockstep`] (compares machine and reference), [`mod@bench`] (runs a scenario), [`report`] (metrics and
//! files).

pub use warpwave_components as components;
pub use warpwave_hw as hw;

pub mod fault;

pub mod gpu;

pub mod scenario;

pub mod reference;

pub mod host;

pub mod lockstep;

pub mod watch;

pub mod hang;

pub mod report;

pub mod log;

pub mod bench;

pub mod verdict;

pub mod suite;

pub mod lesson;

pub mod plan;

pub mod validate;

pub mod sweep;

pub mod compare;

pub mod regression;

pub mod oracle;
