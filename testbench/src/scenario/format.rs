//! The TOML text of a scenario, key by key. This module only parses: `resolve` checks names, and `draft` checks sizes.
//!
//! ```toml
//! title = "y = a x + y"              # optional
//! claim = "…"                        # optional: one sentence that the scenario proves
//! ptx = "saxpy.ptx"                  # relative to this file
//! gpu = "h100-sxm5"                  # optional: a preset's name or file; --gpu wins. Or a table:
//!                                    # { name = "h100-sxm5", set = { "sm.scheduler" = "lrr" } }
//! max_registers = 64                 # optional: cap on the registers of a thread; --maxrregcount wins
//! max_cycles = 1e6                   # optional: limit of all launches together; --max-cycles wins
//! text = """…"""                     # optional: what to see in this scenario
//! look = ["warpwave run saxpy --vcd saxpy.vcd"]          # optional: commands that show more of it
//!
//! [constants]                        # optional: names for expressions. Wherever this text has a number of the machine's or of
//! n = 1024                           # the data's size, an argument or an element, it may have an expression: "ceil(n / 256)".
//!
//! [buffers.x]                        # device buffers by name; [globals.NAME] sets a module variable.
//!                                    # A name must be a plain file name. All data must fit the GPU's memory.
//! dtype = "f32"                      # i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64
//! shape = [1024]
//! init = { npy = "x.npy" }           # or "zeros", { fill = 1.0 }, { iota = { start = 0, step = 1 } },
//!                                    # { uniform = { low = 0.0, high = 1.0, seed = 7 } }, { values = [1, 2] },
//!                                    # { normal = { mean = 0, deviation = 1, seed = 7 } }, { permutation = { seed = 7 } },
//!                                    # { ring = { step = 1, seed = 7, addresses = false } }, { csr = "a.offsets" },
//!                                    # { address = "x", offset = "4 * i" }, { addresses = ["x", { address = "y", offset = 4 }] },
//!                                    # or an expression for element i: "2 * i".
//!                                    # Default: zeros for a buffer, the program's bytes for a module variable.
//! expect = { npy = "y.npy", rtol = 1e-5, atol = 1e-6 }   # or fill, iota, uniform, permutation, values; exact without rtol
//! and atol.
//!                                    # An expression may name all buffers: "2 * x + y", or { expr = "2 * x + y", rtol = 1e-5 }.
//!                                    # Both are finite and at least 0; rtol is below 1. Tolerances that accept
//!                                    # every number of the dtype are refused. An npy file must have exactly
//!                                    # the bytes of its shape.
//!
//! # More keys of expect: after = 0 (compare after that launch), range = [0, 64] (from, up to), nan = true (a NaN agrees with all).
//! # expect = "reference" takes the elements of the reference model. A list gives several expectations.
//!
//! # A buffer of structures has `fields` instead of dtype, init and expect:
//! # fields = [{ name = "next", dtype = "u64", init = { ring = { addresses = true } } }, { name = "v", dtype = "f32", count = 3 }]
//!
//! [matrices.a]                       # optional: a sparse matrix for { csr = "a.offsets" } and { csr = "a.columns" }
//! rows = 1000
//! columns = 1000
//! nonzeros = 8000
//! lengths = "even"                   # optional: of rows; or "random"
//! seed = 0                           # optional
//!
//! [[launch]]                         # one or more, in order
//! name = "tiled"                     # optional: for assertions
//! entry = "saxpy"                    # optional if the module has one entry
//! grid = [4, 1, 1]                   # blocks: one to three sizes, or one integer
//! block = 256                        # threads, in the same form
//! dynamic_shared_bytes = 0           # optional
//! cluster = [2, 1, 1]                # optional: blocks of a cluster
//! cooperative = true                 # optional: for barriers of the whole grid; all blocks must be resident together
//! args = ["x", "y", { f32 = 2.0 }, { u32 = 1024 }]       # a buffer's name passes its address
//! repeat = 3                         # optional: launches it three times
//! warm = true                        # optional: only the last repetition counts in totals
//! before = [{ fill = { buffer = "x", value = 0 } }]      # optional: host steps before each repetition; also
//!                                    # { copy = { from = "x", to = "y" } }, { swap = ["x", "y"] }, { reset = "x" }
//! prints = "done\n"                  # optional: the `printf` output of each repetition; or { contains = "one" }, { lines = 4 }
//! # Other arguments:
//! #   { address = "x", offset = 64 }             an address in a buffer or module variable
//! #   { bytes = "00ff" }                         a structure as hexadecimal bytes
//! #   { struct = ["x", { u64 = 500 }] }          a structure as fields with natural alignment
//! #   { tensor_map = { buffer = "x", tile = [32, 32], swizzle = 128 } }
//! #                                              for bulk copies; swizzle is 32, 64 or 128 bytes, or left out for none
//! #                                              also: steps = [1, 2], fill = "nan",
//! #                                              im2col = { lower = [-1, -1], upper = [-1, -1] } with tile = [pixels, channels]
//! #   { texture = { buffer = "x" } }             the handle of a texture; { surface = { buffer = "x" } } for suld and sust
//! # [references.NAME] binds an image to a `.texref`, `.surfref` or `.samplerref` of the module, with the same keys. A sampler takes
//! # only address, filter and normalized from its image.
//! # A texture or surface is a buffer of i8, u8, i16, u16, i32, u32, f16 or f32. Its shape is [width], [height, width] or
//! # [height, width, channels], with 1, 2 or 4 channels. Optional keys, with their defaults:
//! #   address = "clamp"       for coordinates outside the image; or "wrap", "mirror", "border"
//! #   filter = "point"        or "linear"
//! #   normalized = false      true: coordinates from 0 to 1
//! #   read = "element"        or "normalized": unsigned integers become 0 to 1, signed integers -1 to 1
//! #   layers = 1              number of 3D slices or array layers. The height of the shape is that of all layers together.
//!
//! [[assert]]
//! metric = "smsp__inst_executed.sum"
//! max = 1000                         # at least one of min, max, equal, each from 0 to 2^64
//! points = true                      # optional: each point of a sweep must hold it too
//! launch = 0                         # optional: index or name of one launch; without it, all launches together
//!
//! [[assert]]
//! that = "cycles[tiled] <= 0.7 * cycles[naive]"          # <, <=, >, >=, == or != between two expressions
//! within = "5 %"                     # optional, with ==: a share of the right side, or a distance
//!
//! [runs.other]                       # optional: another run, as in "cycles < cycles(other)"
//! scenario = "saxpy"                 # optional: without it, this scenario
//! gpu = "v100-sxm2"                  # optional: without it, the GPU of this run
//! set = { "sm.scheduler" = "gto" }   # optional
//! constants = { n = 512 }            # optional
//!
//! [expect_failure]                   # optional: the run must fail so
//! exit = 2
//! message = "shared memory"          # optional: a part of the error text
//!
//! [sweep]                            # optional: for `warpwave sweep`
//! over = ["block=32..1024*2"]        # axes; metrics and [[sweep.assert]] may follow: see `crate::sweep`
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::dtype::{Dtype, Number};
use super::expr::Node;
use super::quantity::Quantity;

mod arg;

mod assert;

mod elements;

mod machine;

pub(super) use arg::{Arg, Corners, Image, ImageAddress, ImageFilter, ImageOrder, ImageRead, TensorMap, TileFill};
pub(super) use assert::{Assert, ExpectFailure, OtherRun, Within};
pub(super) use elements::{Address, ElementSource, Expect, Expects, Matrix, Ring, RowLengths, SourceTable, Text};
#[cfg(test)]
pub(super) use elements::{Iota, Normal, Uniform};
pub(super) use machine::{Machine, Setting};

/// The parsed text of a scenario.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub title: Option<String>,
    pub claim: Option<String>,
    pub text: Option<String>,
    #[serde(default)]
    pub look: Vec<String>,
    pub ptx: Ptx,
    #[serde(default)]
    pub gpu: Machine,
    pub max_registers: Option<Quantity>,
    pub max_cycles: Option<Quantity>,
    #[serde(default)]
    pub constants: BTreeMap<String, Quantity>,
    #[serde(default)]
    pub matrices: BTreeMap<String, Matrix>,
    #[serde(default)]
    pub buffers: BTreeMap<String, Buffer>,
    #[serde(default)]
    pub globals: BTreeMap<String, Buffer>,
    #[serde(default)]
    pub references: BTreeMap<String, Image>,
    #[serde(default)]
    pub launch: Vec<Launch>,
    #[serde(default)]
    pub runs: BTreeMap<String, OtherRun>,
    #[serde(default)]
    pub assert: Vec<Assert>,
    pub expect_failure: Option<ExpectFailure>,
    pub sweep: Option<crate::sweep::Spec>,
}

impl ScenarioFile {
    /// Paths of the PTX files and of all npy and CSV files, as written in the text.
    pub fn paths(&self) -> Vec<&str> {
        let buffers = self.buffers.values().chain(self.globals.values());
        let arrays = buffers.flat_map(|buffer| {
            let fields = buffer.fields.iter().flatten();
            let fields = fields.map(|field| (&field.init, &field.expect));
            [(&buffer.init, &buffer.expect)].into_iter().chain(fields)
        });
        let arrays = arrays.flat_map(|(init, expect)| {
            let init = init.as_ref().and_then(ElementSource::path);
            let expects = expect.0.iter();
            let expects = expects.filter_map(|expect| expect.source.as_ref()?.path());
            init.into_iter().chain(expects)
        });
        let arrays = arrays.map(String::as_str);
        let tables = self.assert.iter().flat_map(Assert::tables);
        self.ptx
            .paths()
            .iter()
            .map(String::as_str)
            .chain(arrays)
            .chain(tables)
            .collect()
    }
}

/// The PTX file, or the files that are linked.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the path of a PTX file, or a list of paths")]
pub(super) enum Ptx {
    One(String),
    Several(Vec<String>),
}

impl Ptx {
    /// The paths, in order.
    pub fn paths(&self) -> &[String] {
        match self {
            Ptx::One(path) => std::slice::from_ref(path),
            Ptx::Several(paths) => paths,
        }
    }
}

/// A table `[buffers.NAME]` or `[globals.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Buffer {
    pub dtype: Option<Dtype>,
    pub shape: Vec<Quantity>,
    pub init: Option<ElementSource>,
    #[serde(default)]
    pub expect: Expects,
    /// The fields of a buffer of structures. It has no `dtype`, `init` or `expect`.
    pub fields: Option<Vec<Field>>,
}

/// A field of a buffer of structures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    pub name: String,
    pub dtype: Dtype,
    /// Elements of the field in one structure.
    #[serde(default = "one")]
    pub count: Quantity,
    pub init: Option<ElementSource>,
    #[serde(default)]
    pub expect: Expects,
}

/// A table `[[launch]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    pub name: Option<String>,
    pub entry: Option<String>,
    pub grid: Dim3,
    pub block: Dim3,
    #[serde(default = "zero")]
    pub dynamic_shared_bytes: Quantity,
    pub cluster: Option<Dim3>,
    #[serde(default)]
    pub cooperative: bool,
    #[serde(default)]
    pub args: Vec<Arg>,
    #[serde(default = "one")]
    pub repeat: Quantity,
    #[serde(default)]
    pub warm: bool,
    #[serde(default)]
    pub before: Vec<Step>,
    pub prints: Option<Prints>,
}

/// Keys of the sizes that every launch has. A setting of a sweep and a constant may have these names too.
pub(crate) const SIZES: [&str; 4] = ["grid", "block", "cluster", "dynamic_shared_bytes"];

impl Launch {
    /// The text of a size, one of [`SIZES`]. Empty without one.
    pub fn sizes(&self, key: &str) -> Vec<&Quantity> {
        match key {
            "grid" => self.grid.0.iter().collect(),
            "block" => self.block.0.iter().collect(),
            "cluster" => self.cluster.iter().flat_map(|cluster| &cluster.0).collect(),
            "dynamic_shared_bytes" => vec![&self.dynamic_shared_bytes],
            _ => Vec::new(),
        }
    }
}

/// The expected `printf` output of a launch. The text gives the whole output, or a table.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "a text, { contains = \"a text\" } or { lines = 4 }")]
pub(super) enum Prints {
    Whole(String),
    Part { contains: String },
    Lines { lines: Quantity },
}

/// An action of the host before a launch.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Step {
    Copy { from: String, to: String },
    Fill { buffer: String, value: Quantity },
    Reset(String),
    Swap([String; 2]),
}

/// A launch, by the index of its table, or by its name or kernel.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged, expecting = "an index counted from 0, or the name of a launch or kernel")]
pub enum LaunchName {
    /// The index of a `[[launch]]` table, from 0.
    Index(usize),
    /// The name of a launch, or else its kernel.
    Name(String),
}

impl LaunchName {
    /// The launch that an index of an expression names.
    pub fn of(index: &Node) -> Option<Self> {
        match index {
            Node::Number(Number::Int(index)) => usize::try_from(*index).ok().map(LaunchName::Index),
            // Quotes allow a name that is not a word, such as "two tiles".
            Node::Name(name) | Node::Text(name) => Some(LaunchName::Name(name.clone())),
            _ => None,
        }
    }
}

impl fmt::Display for LaunchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchName::Index(index) => index.fmt(f),
            LaunchName::Name(name) => name.fmt(f),
        }
    }
}

fn zero() -> Quantity {
    0i64.into()
}

fn one() -> Quantity {
    1i64.into()
}

/// Sizes in x, y, z. The text gives one to three.
#[derive(Clone)]
pub(super) struct Dim3(pub [Quantity; 3]);

impl<'de> Deserialize<'de> for Dim3 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Dim3Visitor)
    }
}

struct Dim3Visitor;

impl<'de> Visitor<'de> for Dim3Visitor {
    type Value = Dim3;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one size or a list of one to three, each from 1 to 4294967295 or an expression")
    }

    // The TOML reader passes an integer as i64 if it fits.
    fn visit_i64<E: Error>(self, size: i64) -> Result<Dim3, E> {
        // A literal size is checked here, where the error has its line. An expression is checked when it is evaluated.
        let x = u32::try_from(size).ok().filter(|&x| x > 0);
        let x = x.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(size), &self))?;
        Ok(Dim3([i64::from(x).into(), one(), one()]))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Dim3, E> {
        let size = Quantity::parse(text).map_err(E::custom)?;
        Ok(Dim3([size, one(), one()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Dim3, A::Error> {
        let mut sizes = [one(), one(), one()];
        let mut n = 0;
        while let Some(size) = list.next_element()? {
            let place = sizes.get_mut(n).ok_or_else(|| A::Error::invalid_length(n + 1, &self))?;
            *place = size;
            n += 1;
        }
        if n == 0 {
            return Err(A::Error::invalid_length(0, &self));
        }
        Ok(Dim3(sizes))
    }
}
