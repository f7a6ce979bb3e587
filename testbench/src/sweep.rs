//! Sweeps: one scenario at every combination of values of its launch sizes, arguments, GPU and preset keys.
//!
//! ```text
//! scenario + axes ── points ──> Job, Key ── one process a point ──> Store ──> Table: text, CSV, plot, page, curve assertions
//! ```
//!
//! A [`Job`] describes one point, and its [`Key`] is the hash of everything that decides the result. A [`Store`] keeps one record a key, so
//! an interrupted sweep goes on, and no point is computed twice.

mod axis;

mod spec;

mod setting;

mod job;

mod store;

mod table;

mod curve;

mod plot;

mod page;

mod script;

pub use axis::{Axis, AxisError, Point, points};
pub use curve::{Curve, CurveAssert, Shape};
pub(crate) use job::numbers;
pub use job::{Job, JobError, Key, Keys, Prepared, absolute, split_constants};
pub use page::page;
pub use plot::{PlotOptions, plot};
pub use script::{Call, Engine, Limits, script};
pub use setting::{SettingError, apply};
pub use spec::{PlotSpec, Spec};
pub use store::{Outcome, Record, Store};
pub use table::{Row, Status, Table, shown};
