//! A scenario: a program, its buffers, its launches, what must come out. See [`format`] for the text.
//!
//! A [`Draft`] is a text that was read: it knows its GPU, its files and the size of its data. A [`Scenario`] is complete: every file
//! beside it is read, every element made, every name resolved. What only the program can tell (entries, parameters, module
//! variables) is checked when it is placed in a device ([`crate::host`]).

pub mod dtype;

mod format;

mod files;

mod draft;

mod resolve;

pub mod npy;

mod data;

pub mod builtin;

mod image;

mod error;

use std::path::Path;

pub use data::Layout;
pub use draft::Draft;
pub use error::{Fault, ScenarioError, nearest};

use dtype::Dtype;
use warpwave_isa::exec::texture::Texture;

/// A scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: that of the built-in scenario, or the file's without folder and ending.
    pub name: String,
    /// What it is.
    pub title: Option<String>,
    /// The sentence that it proves.
    pub claim: Option<String>,
    /// Path of the PTX file, as the scenario names it.
    pub ptx_path: String,
    /// PTX text.
    pub ptx: String,
    /// Preset that it asks for: a name or a path.
    pub gpu: Option<String>,
    /// Device buffers, by name.
    pub buffers: Vec<Buffer>,
    /// Module variables that the scenario names, by symbol.
    pub globals: Vec<Buffer>,
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// What must hold of the metrics.
    pub asserts: Vec<Assert>,
}

/// A buffer in device memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Element type and shape.
    pub layout: Layout,
    /// Its bytes before the first launch. Empty for a module variable that keeps the bytes of its program.
    pub init: Vec<u8>,
    /// What it must hold after the last one.
    pub expect: Option<Expect>,
}

/// What a buffer must hold: elements *w* such that |found - w| <= atol + rtol |w|.
#[derive(Clone, PartialEq, Debug)]
pub struct Expect {
    /// The elements.
    pub bytes: Vec<u8>,
    /// Relative tolerance; with both at 0 the bits must agree (any NaN agrees with any other).
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
}

/// A launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// Kernel; none where the module's only entry is meant.
    pub entry: Option<String>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Shared memory beside the declared, in bytes.
    pub dynamic_shared_bytes: u32,
    /// CTAs of a cluster in x, y, z, where the launch says it.
    pub cluster: Option<[u32; 3]>,
    /// Arguments in order.
    pub args: Vec<Arg>,
}

/// An argument of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// The address of a buffer, by its index in [`Scenario::buffers`].
    Buffer(usize),
    /// A scalar's bytes.
    Scalar(Dtype, Vec<u8>),
    /// A structure, byte by byte.
    Bytes(Vec<u8>),
    /// A structure with natural alignment.
    Struct(Vec<Arg>),
    /// The handle of a texture or surface.
    Image(Image),
    /// A tensor map, for bulk copies of tiles of a buffer.
    TensorMap(Tiles),
}

/// An image in a buffer.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    /// The buffer, by its index in [`Scenario::buffers`].
    pub buffer: usize,
    /// All but its address.
    pub texture: Texture,
}

/// A buffer as tiles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiles {
    /// Index in [`Scenario::buffers`].
    pub buffer: usize,
    /// Elements of the tensor in each dimension, the contiguous one last as in the buffer's shape.
    pub shape: Vec<u32>,
    /// Elements of a tile, likewise.
    pub tile: Vec<u32>,
    /// Bits of swizzling in shared memory: 0 none, 1 over 32 bytes, 2 over 64, 3 over 128.
    pub swizzle: u8,
    /// Bytes of an element.
    pub element: u8,
}

/// What must hold of a metric.
#[derive(Clone, PartialEq, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assert {
    /// Name in the report.
    pub metric: String,
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
    /// The value itself.
    pub equal: Option<f64>,
    /// Index of the launch; none for all together.
    pub launch: Option<usize>,
}

impl Scenario {
    /// Loads a scenario: a file where there is one of this path, else a built-in one of this name.
    ///
    /// # Errors
    /// If there is neither, or if it cannot be used.
    pub fn find(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        Draft::find(name_or_path)?.build(None)
    }

    /// Loads the scenarios of a name: one file or built-in scenario as [`Scenario::find`] does, else the built-in scenarios of a folder.
    ///
    /// ```
    /// use warpwave::scenario::Scenario;
    /// let n = |name| Scenario::find_all(name).unwrap().len();
    /// assert_eq!((n("saxpy"), n("transpose_naive"), n("transpose")), (1, 1, 3));
    /// ```
    ///
    /// # Errors
    /// If there is none, or if one cannot be used.
    pub fn find_all(name_or_path: &str) -> Result<Vec<Scenario>, ScenarioError> {
        let drafts = Draft::find_all(name_or_path)?;
        drafts.into_iter().map(|draft| draft.build(None)).collect()
    }

    /// Loads a scenario file.
    ///
    /// # Errors
    /// If it cannot be read or used.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        Draft::load(path)?.build(None)
    }
}

#[cfg(test)]
mod tests;
