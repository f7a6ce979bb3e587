//! Sweeps: one scenario at every combination of values of its launch sizes, arguments, GPU and preset keys.
//!
//! ```text
//! scenario + axes ── points ──> Job, Key ── one process a point ──> Store ──> Table: text, CSV, plot, page, curve assertions
//! ```
//!
//! A [`Job`] describes one point, and its [`Key`] is the hash of everything that decides the result. A [`Store`] keeps one
//! record per key.
//! So an interrupted sweep continues, and no point is computed twice.
//!
//! | Module | Part of a sweep |
//! |---|---|
//! | `axis` | an axis, and the points of all axes |
//! | `spec` | the table `[sweep]` of a scenario file |
//! | `setting` | applies a value of a point to the launch sizes or arguments of the scenario |
//! | `job` | one point with all its inputs, and its key; [`split_constants`] separates constants of the scenario from settings |
//! | `store` | the records on disk, and the lock of each point |
//! | `table` | the results as text and CSV; [`shown`] writes a point as text |
//! | `parquet` | the results as a Parquet file (feature `parquet`) |
//! | `curve` | one metric along one axis, and assertions over it |
//! | `plot`, `label`, `page` | the curves as SVG; the words of its axes; the sweep as an HTML page |
//! | `script` | job scripts for an [`Engine`] that runs points on many machines |

mod axis;

mod spec;

mod setting;

mod job;

mod store;

mod table;

#[cfg(feature = "parquet")]
mod parquet;

mod curve;

mod label;

mod plot;

mod page;

mod script;

pub use axis::{Axis, AxisError, Point, points};
pub use curve::{Curve, CurveAssert, Shape};
pub(crate) use job::numbers;
pub use job::{Job, JobError, Key, Keys, Prepared, absolute, absolute_gpu, split_constants};
pub use label::launch_names;
pub use page::page;
pub use plot::{PlotOptions, plot};
pub use script::{Call, Engine, Limits, options, script};
pub use setting::{SettingError, apply, check_effects};
pub use spec::{DrawnLaunches, PlotSpec, Spec};
pub use store::{Outcome, Reached, Record, Store};
pub use table::{Row, Status, Table, shown};
