//! A scenario: a program, its buffers, its launches, and the expected results. [`format`] describes its TOML text.
//!
//! A [`Draft`] is a parsed text, with its GPU, its files and the size of its data. A [`Scenario`] is complete: all files are
//! read, all elements are generated, and all names are resolved. [`crate::host`] checks what depends on the program:
//! entries, parameters and module variables.

pub mod dtype;

mod similar;

pub mod expr;

mod quantity;

mod format;

mod files;

mod draft;

mod resolve;

pub mod npy;

mod data;

mod elements;

mod patterns;

mod structures;

mod pointers;

mod launches;

mod modules;

mod checks;

mod asserts;

pub mod builtin;

mod image;

mod error;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub use data::Layout;
pub use draft::{Draft, Words};
pub use error::{Fault, ScenarioError};
pub use format::LaunchName;
pub(crate) use format::SIZES;
pub use image::{Image, Tiles};
pub use modules::Modules;
pub(crate) use quantity::whole;
pub use similar::nearest;

use dtype::{Dtype, Number};
use expr::{Binary, Node};
use warpwave_ptx::{Diagnostic, Module, Options, PassSet};

/// A scenario, ready to run.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// The name: the stem of its file.
    pub name: String,
    /// The title.
    pub title: Option<String>,
    /// The claim: one sentence that its expectations and assertions prove.
    pub claim: Option<String>,
    /// Path of the PTX file, as the scenario names it. Several paths have commas between them.
    pub ptx_path: String,
    /// PTX text, linked if the scenario names several files.
    pub ptx: String,
    /// The texts that [`Scenario::ptx`] was linked from. `None` for one file.
    pub modules: Option<Arc<Modules>>,
    /// Most registers of a thread. `None` leaves them to the compiler.
    pub max_registers: Option<u8>,
    /// Passes of the compiler left out.
    pub skipped_passes: PassSet,
    /// The GPU: the name or the path of a preset.
    pub gpu: Option<String>,
    /// Preset keys that the scenario changes, with their values.
    pub set: Vec<(String, String)>,
    /// Limit of core cycles, summed over all launches.
    pub max_cycles: Option<u64>,
    /// The named constants.
    pub constants: BTreeMap<String, Number>,
    /// Device buffers, by name.
    pub buffers: Vec<Buffer>,
    /// Module variables that the scenario names, by symbol.
    pub globals: Vec<Buffer>,
    /// Images of the texture, surface and sampler references of the module, by symbol.
    pub references: BTreeMap<String, Image>,
    /// Elements of buffers and module variables that are addresses.
    pub pointers: Vec<Pointers>,
    /// The launches, in order.
    pub launches: Vec<Launch>,
    /// Expectations that [`Buffer::expect`] cannot hold.
    pub checks: Vec<Check>,
    /// Bounds of metrics.
    pub asserts: Vec<Assert>,
    /// Comparisons of expressions over metrics.
    pub comparisons: Vec<Comparison>,
    /// Other runs that comparisons name.
    pub runs: BTreeMap<String, OtherRun>,
    /// Texts of the CSV files that comparisons read, by path.
    pub tables: BTreeMap<String, String>,
    /// The failure that the run must end with.
    pub expect_failure: Option<ExpectFailure>,
}

/// A buffer in device memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The name.
    pub name: String,
    /// Element type and shape.
    pub layout: Layout,
    /// The bytes before the first launch. Empty for a module variable that keeps the bytes of its program.
    pub init: Vec<u8>,
    /// The expected elements after the last launch.
    pub expect: Option<Expect>,
}

/// Expected elements *w* of a buffer. An element passes if |found - w| <= atol + rtol |w|.
#[derive(Clone, PartialEq, Debug)]
pub struct Expect {
    /// The elements.
    pub bytes: Vec<u8>,
    /// Relative tolerance. With both tolerances at 0 the bits must be equal. Any NaN equals any other.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
}

/// An expectation for a part of a buffer, after any launch, or of the reference model's elements.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The buffer or module variable.
    pub data: CheckedData,
    /// The field of a buffer of structures. `None` compares the elements of the buffer.
    pub field: Option<StructField>,
    /// The elements that are compared.
    pub view: View,
    /// Index of the launch after which they are compared. `None` is the last one.
    pub after: Option<usize>,
    /// The expected elements. `None` takes the elements of the reference model.
    pub want: Option<Vec<u8>>,
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// True if a NaN agrees with every number.
    pub nan: bool,
}

/// The data of a [`Check`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckedData {
    /// Index in [`Scenario::buffers`].
    Buffer(usize),
    /// Index in [`Scenario::globals`].
    Global(usize),
}

/// Elements that are device addresses in one target. Their initial bytes are offsets from its start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointers {
    /// The buffer or module variable that has these elements.
    pub data: CheckedData,
    /// The offsets of the elements in it, in bytes.
    pub at: Vec<u64>,
    /// The buffer or module variable that they point to.
    pub to: Target,
}

/// What an address points to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Index in [`Scenario::buffers`].
    Buffer(usize),
    /// A module variable, by its symbol. The scenario need not declare it.
    Variable(String),
}

/// A field of a buffer of structures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructField {
    /// Names of the buffer and of the field, with a dot between them.
    pub name: String,
    /// Element type.
    pub dtype: Dtype,
    /// Offset in a structure, in bytes.
    pub offset: u64,
    /// Bytes of a structure.
    pub stride: u64,
    /// Elements of the field in one structure.
    pub count: u64,
}

/// A range of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    /// The first element.
    pub first: u64,
    /// Number of elements.
    pub n: u64,
}

/// An action of the host before a launch. Buffers are given by their index in [`Scenario::buffers`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Copies one buffer to another of the same size.
    Copy {
        /// The source.
        from: usize,
        /// The destination.
        to: usize,
    },
    /// Writes the same element to the whole buffer.
    Fill {
        /// The buffer.
        buffer: usize,
        /// Bytes of the element.
        element: Vec<u8>,
    },
    /// Restores the initial elements.
    Reset(usize),
    /// Exchanges the contents of two buffers of the same size.
    Swap(usize, usize),
}

/// A launch.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Launch {
    /// The name for assertions.
    pub name: Option<String>,
    /// Index of the `[[launch]]` table. Its repetitions share it.
    pub table: usize,
    /// True if the launch does not count in totals.
    pub is_warm_up: bool,
    /// Steps of the host before the launch.
    pub before: Vec<Step>,
    /// The kernel. `None` selects the module's only entry.
    pub entry: Option<String>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub dynamic_shared_bytes: u32,
    /// CTAs of a cluster in x, y, z. `None` leaves it to the kernel.
    pub cluster: Option<[u32; 3]>,
    /// True for a cooperative launch: all CTAs are resident together, and can pass barriers of the whole grid.
    pub is_cooperative: bool,
    /// Arguments in order.
    pub args: Vec<Arg>,
    /// The expected `printf` output.
    pub prints: Option<Prints>,
}

/// The expected `printf` output of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Prints {
    /// The whole output. The end of its last line may be left out.
    Whole(String),
    /// A part of the output.
    Part(String),
    /// The number of lines.
    Lines(u64),
}

impl Prints {
    /// How `printed` differs, in words. `None` if it is as expected.
    ///
    /// ```
    /// use warpwave::scenario::Prints;
    /// let whole = Prints::Whole("a\nb\n".to_owned());
    /// assert_eq!(whole.difference("a\nb"), None);
    /// assert_eq!(whole.difference("a\nc\n").unwrap(), "line 2 is `c`, not `b`");
    /// assert_eq!(whole.difference("a\n").unwrap(), "line 2 is missing; it should be `b`");
    /// assert_eq!(whole.difference("a\nb\nc\n").unwrap(), "line 3 is `c`, but only 2 are expected");
    /// assert_eq!(Prints::Lines(2).difference("a\n").unwrap(), "it has 1 lines, not 2");
    /// ```
    pub fn difference(&self, printed: &str) -> Option<String> {
        let text = match self {
            Prints::Part(part) => return (!printed.contains(part)).then(|| format!("it lacks `{part}`")),
            Prints::Lines(want) => {
                let found = printed.lines().count() as u64;
                return (found != *want).then(|| format!("it has {found} lines, not {want}"));
            }
            Prints::Whole(text) => text,
        };
        // `lines` drops a newline at the end, so neither side needs one.
        let (mut found, mut want) = (printed.lines(), text.lines());
        for line in 1.. {
            match (found.next(), want.next()) {
                (None, None) => break,
                (Some(found), Some(want)) if found == want => {}
                (Some(found), Some(want)) => return Some(format!("line {line} is `{found}`, not `{want}`")),
                (None, Some(want)) => return Some(format!("line {line} is missing; it should be `{want}`")),
                (Some(found), None) => {
                    let n = line - 1;
                    return Some(format!("line {line} is `{found}`, but only {n} are expected"));
                }
            }
        }
        None
    }
}

/// An argument of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// The address of a buffer, by its index in [`Scenario::buffers`].
    Buffer(usize),
    /// An address in a buffer or module variable: the target, and the offset in bytes.
    Address(Target, u64),
    /// The bytes of a scalar.
    Scalar(Dtype, Vec<u8>),
    /// A structure, given as bytes.
    Bytes(Vec<u8>),
    /// A structure, given as fields with natural alignment.
    Struct(Vec<Arg>),
    /// The handle of a texture or surface.
    Image(Image),
    /// A tensor map, for bulk copies of tiles of a buffer.
    TensorMap(Tiles),
}

impl Arg {
    /// True if the argument holds the address of a target that `is_wanted` names.
    pub(crate) fn has_address_of(&self, is_wanted: &dyn Fn(&Target) -> bool) -> bool {
        match self {
            Arg::Address(to, _) => is_wanted(to),
            Arg::Struct(fields) => fields.iter().any(|field| field.has_address_of(is_wanted)),
            _ => false,
        }
    }

    /// Alignment in a C structure, in bytes.
    pub(crate) fn alignment(&self) -> usize {
        match self {
            // Addresses and handles have 64 bits.
            Arg::Buffer(_) | Arg::Address(..) | Arg::Image(_) => 8,
            Arg::Scalar(dtype, _) => dtype.bytes(),
            // Raw bytes say nothing of their fields.
            Arg::Bytes(_) => 1,
            Arg::Struct(fields) => fields.iter().map(Arg::alignment).max().unwrap_or(1),
            // `CUtensorMap` is declared with `alignas(64)`.
            Arg::TensorMap(_) => 64,
        }
    }
}

/// An assertion on a metric: its bounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Assert {
    /// Name of the metric.
    pub metric: String,
    /// Lower bound, inclusive.
    pub min: Option<f64>,
    /// Upper bound, inclusive.
    pub max: Option<f64>,
    /// The exact value.
    pub equal: Option<f64>,
    /// Index of the launch. `None` for all launches together.
    pub launch: Option<usize>,
    /// True if each point of a sweep must hold it too.
    pub points: bool,
}

/// A comparison of two expressions over metrics.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The text.
    pub text: String,
    /// The left expression.
    pub left: Node,
    /// The comparing operator.
    pub operator: Binary,
    /// The right expression.
    pub right: Node,
    /// The tolerance of an equation.
    pub tolerance: Tolerance,
    /// True if each point of a sweep must hold it too.
    pub points: bool,
}

/// The greatest difference of two sides that are equal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// A part of the right side.
    Part(f64),
    /// An absolute distance.
    Distance(f64),
}

/// Another run that a comparison names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OtherRun {
    /// Name or path of its scenario.
    pub scenario: String,
    /// Name or path of its GPU. `None` takes the GPU of the run that is compared with it.
    pub gpu: Option<String>,
    /// Preset keys that it changes, with their values.
    pub set: Vec<(String, String)>,
    /// Constants that it changes, with their values.
    pub constants: Vec<(String, String)>,
}

/// The failure that a run must end with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectFailure {
    /// The exit code.
    pub exit: u8,
    /// A part of the error text.
    pub message: String,
}

impl Scenario {
    /// The number of expectations of buffers, module variables and `printf` outputs.
    pub fn expectations(&self) -> usize {
        let prints = self.launches.iter().filter(|launch| launch.prints.is_some()).count();
        let data = self.buffers.iter().chain(&self.globals);
        data.filter(|buffer| buffer.expect.is_some()).count() + self.checks.len() + prints
    }

    /// The buffer or module variable of a check.
    pub fn checked(&self, data: CheckedData) -> &Buffer {
        match data {
            CheckedData::Buffer(index) => &self.buffers[index],
            CheckedData::Global(index) => &self.globals[index],
        }
    }

    /// Loads a scenario: the file of this path if it exists, or else the built-in scenario of this name.
    ///
    /// # Errors
    /// If there is neither, or if the scenario has a fault.
    pub fn find(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        Draft::find(name_or_path)?.build(None)
    }

    /// Loads the scenario that [`Scenario::find`] finds, or else all built-in scenarios of the folder of this name.
    ///
    /// ```
    /// use warpwave::scenario::Scenario;
    /// let n = |name| Scenario::find_all(name).unwrap().len();
    /// assert_eq!((n("saxpy"), n("transpose_naive"), n("gelu")), (1, 1, 2));
    /// ```
    ///
    /// # Errors
    /// If there is none, or if one has a fault.
    pub fn find_all(name_or_path: &str) -> Result<Vec<Scenario>, ScenarioError> {
        let drafts = Draft::find_all(name_or_path)?;
        drafts.into_iter().map(|draft| draft.build(None)).collect()
    }

    /// Loads a scenario file.
    ///
    /// # Errors
    /// If the file cannot be read, or the scenario has a fault.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        Draft::load(path)?.build(None)
    }

    /// Loads the program with the options of a GPU. Compiles the kernels that are launched.
    ///
    /// # Errors
    /// Every malformed part of the text.
    pub(crate) fn module(&self, of_gpu: Options) -> Result<Arc<Module>, Vec<Diagnostic>> {
        let options = Options {
            max_registers: self.max_registers,
            skipped_passes: self.skipped_passes,
            ..of_gpu
        };
        // Other kernels of the file are not compiled: they may need what the model does not support.
        warpwave_ptx::load_with(&self.ptx, options, |kernel| self.launches_kernel(kernel))
    }

    /// True if a launch names this kernel, or none: then the program has only one.
    fn launches_kernel(&self, kernel: &str) -> bool {
        let names = |launch: &Launch| launch.entry.as_ref().is_none_or(|entry| entry == kernel);
        self.launches.iter().any(names)
    }
}

#[cfg(test)]
mod tests;
