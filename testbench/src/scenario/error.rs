//! Errors of scenarios. A text names the file, the key, the fault and the remedy.

use thiserror::Error;
use warpwave_components::preset::PresetError;

use super::draft::MAX_NAME;
use super::dtype::{Dtype, Number};
use super::expr::ExprError;
use super::similar::hint;

/// The reason for refusing a scenario.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{file}: {}{fault}", place(.key))]
pub struct ScenarioError {
    /// The scenario's file, or the name given.
    pub file: String,
    /// Dotted key, such as `buffers.x.init`. Empty for the whole file.
    pub key: String,
    /// The fault.
    pub fault: Box<Fault>,
}

impl ScenarioError {
    pub(super) fn new(file: &str, key: &str, fault: Fault) -> Self {
        ScenarioError {
            file: file.to_owned(),
            key: key.to_owned(),
            fault: Box::new(fault),
        }
    }
}

/// The fault.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Fault {
    /// The name is neither a built-in scenario nor a file.
    #[error("neither a file nor a built-in scenario{}; `warpwave list` shows those built in", hint(.nearest))]
    NoScenario {
        /// The most similar built-in name.
        nearest: Option<String>,
    },
    /// The GPU of the scenario, or a change of it, has a fault.
    #[error("{0}")]
    Gpu(PresetError),
    /// A file cannot be read.
    #[error("cannot read {path}: {reason}; paths are relative to the scenario file")]
    Unreadable {
        /// The file.
        path: String,
        /// Reason given by the system.
        reason: String,
    },
    /// The scenario file itself cannot be read.
    #[error("cannot read it: {reason}")]
    NoFile {
        /// Reason given by the system.
        reason: String,
    },
    /// The text is not valid TOML, or not a scenario.
    #[error("{}{}", .message.trim_end(), hint(.nearest))]
    Syntax {
        /// The parser's message, with the source line.
        message: String,
        /// The most similar word that is allowed.
        nearest: Option<String>,
    },
    /// A file is not an npy array.
    #[error("{path} is not an npy array: {reason}; write it with numpy.save")]
    NotNpy {
        /// The file.
        path: String,
        /// The reader's message.
        reason: String,
    },
    /// The types of an npy array and of its buffer differ.
    #[error("{path} holds {found}, but the buffer's dtype is {want}; convert one of the two")]
    WrongDtype {
        /// The file.
        path: String,
        /// The array's type, in npy's notation.
        found: String,
        /// The buffer's type.
        want: Dtype,
    },
    /// The shapes of an npy array and of its buffer differ.
    #[error("{path} has shape {found:?}, but the buffer's is {want:?}; change one of the two")]
    WrongShape {
        /// The file.
        path: String,
        /// The array's shape.
        found: Vec<u64>,
        /// The buffer's shape.
        want: Vec<u64>,
    },
    /// An npy array is stored in column-major order.
    #[error("{path} is stored in column-major order; save it through numpy.ascontiguousarray")]
    ColumnMajor {
        /// The file.
        path: String,
    },
    /// The lengths of a list of values and of its buffer differ.
    #[error("{found} values for a buffer of {want} elements; give one per element")]
    WrongCount {
        /// Values in the list.
        found: usize,
        /// Elements of the buffer.
        want: u64,
    },
    /// A type cannot hold a number.
    #[error("{dtype} cannot hold {number}; change the number or the dtype")]
    OutOfRange {
        /// The number.
        number: Number,
        /// The type.
        dtype: Dtype,
    },
    /// `init` or `expect` does not name exactly one source.
    #[error("give exactly one of npy, fill, iota, uniform, permutation, values, expr; rtol and atol may be added")]
    NotOneSource,
    /// A tolerance is negative, infinite or not a number.
    #[error("a tolerance is a finite number of at least 0, not {value:?}")]
    BadTolerance {
        /// Its value.
        value: f64,
    },
    /// A relative tolerance of 1 or more: zeros would agree with every number.
    #[error("with an rtol of 1 or more, zeros agree with every number; give an rtol below 1, not {value:?}")]
    BadRelative {
        /// Its value.
        value: f64,
    },
    /// Tolerances that accept every number of the type.
    #[error(
        "every {}{dtype} agrees within an atol of {atol:?} and an rtol of {rtol:?}; give smaller ones",
        if .dtype.is_float() { "finite " } else { "" }
    )]
    CannotFail {
        /// The type.
        dtype: Dtype,
        /// Relative tolerance.
        rtol: f64,
        /// Absolute tolerance.
        atol: f64,
    },
    /// A bound of an assertion is beyond every metric.
    #[error("a bound is a number from 0 to 2^64, the range of a counter, not {value:?}")]
    BadBound {
        /// Its value.
        value: f64,
    },
    /// The name of a buffer or variable is not a plain file name.
    #[error(
        "the name {name:?} is not a plain file name, which --dump needs; use 1 to {MAX_NAME} bytes without / or \\ or \
         control characters"
    )]
    BadName {
        /// The name, cut to the greatest length allowed.
        name: String,
    },
    /// The text is not pairs of hexadecimal digits.
    #[error("not pairs of hexadecimal digits; write bytes such as \"00ff\"")]
    NotHex,
    /// A buffer cannot be a texture or surface.
    #[error("buffer `{name}` cannot be an image: {why}")]
    NotAnImage {
        /// The buffer.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// A size is zero, or their product is too large.
    #[error("a shape is a list of sizes above 0, in all at most 64 GiB, not {shape:?}")]
    BadShape {
        /// The sizes.
        shape: Vec<u64>,
    },
    /// A shape has too many sizes.
    #[error("a shape has at most {limit} sizes, as in numpy, not {found}")]
    TooManySizes {
        /// Sizes of the shape.
        found: usize,
        /// Most sizes.
        limit: usize,
    },
    /// The bounds of random elements enclose no number.
    #[error("random elements need a `low` below `high`, both finite, not {low} and {high}")]
    EmptyRange {
        /// The lower bound.
        low: Number,
        /// The upper bound.
        high: Number,
    },
    /// An element of a counted buffer exceeds 128 bits.
    #[error(
        "element {index} is beyond 2^127, which integers cannot count to; give a `start` or `step` with a point, such as 1.0"
    )]
    BeyondIntegers {
        /// Index of the element.
        index: u64,
    },
    /// Mean or deviation of random elements is infinite or not a number, or the deviation is negative.
    #[error("normal elements need a finite `mean` and a finite `deviation` of at least 0, not {mean} and {deviation}")]
    NotNormal {
        /// The mean.
        mean: Number,
        /// The standard deviation.
        deviation: Number,
    },
    /// The repetitions of all launches are too many.
    #[error("more than {limit} launches with all repetitions; repeat fewer, or split the scenario")]
    TooManyLaunches {
        /// Most launches.
        limit: usize,
    },
    /// The file is a program.
    #[error("a PTX program, not a scenario; run `warpwave check {path}`, or name it in a scenario: ptx = \"{path}\"")]
    IsPtx {
        /// The file.
        path: String,
    },
    /// The list of PTX files is empty.
    #[error("an empty list; name at least one PTX file")]
    NoProgram,
    /// The PTX files do not form one program.
    #[error("the files do not form a valid program: {}\n{findings}", counted(*.count))]
    Link {
        /// Number of the findings.
        count: usize,
        /// Each finding, with its file and line.
        findings: String,
    },
    /// The data do not fit the memory of the GPU.
    #[error(
        "has {bytes} bytes, {need} with all data before it, but {gpu} has {limit} bytes of memory; \
         take smaller shapes or another --gpu"
    )]
    TooLargeForGpu {
        /// Bytes of this buffer or variable.
        bytes: u64,
        /// Bytes of it and of all data before it.
        need: u64,
        /// The GPU.
        gpu: String,
        /// Bytes of its memory.
        limit: u64,
    },
    /// The host has no memory for a buffer.
    #[error("the host has no memory for {bytes} bytes; take a smaller shape, or a host with more memory")]
    HostMemory {
        /// Bytes of the buffer.
        bytes: u64,
    },
    /// The bounding box of an im2col map has the wrong number of corners.
    #[error(
        "an im2col map needs a buffer of 3 to 5 dimensions (images, depth, height, width, channels), and one number per dimension \
         between the first and the last in `lower` and in `upper`; the buffer has {rank} dimensions"
    )]
    BadIm2col {
        /// Dimensions of the buffer.
        rank: usize,
    },
    /// No bulk copy can use the tensor map.
    #[error(
        "a bulk copy cannot use tiles of {tile:?} with a swizzle of {swizzle} bytes on a tensor of {shape:?}; give one size per \
         dimension of the buffer (one to five), each from 1 to 256, rows of whole 16 bytes, and a swizzle of 32, 64 or 128 bytes \
         that is at least a row, or none; steps are 1 to 8, one per dimension; fill = \"nan\" needs floats; a tile of an im2col map \
         is its pixels (1 to 1024) and its channels (1 to 256)"
    )]
    BadTiles {
        /// Sizes of the buffer.
        shape: Vec<u64>,
        /// Sizes of a tile.
        tile: Vec<u32>,
        /// Bytes of swizzling.
        swizzle: u32,
    },
    /// An argument names a buffer that does not exist.
    #[error("no buffer is named `{name}`; declare it as [buffers.{name}]{}", hint(.nearest))]
    UnknownBuffer {
        /// The name.
        name: String,
        /// The most similar buffer name.
        nearest: Option<String>,
    },
    /// The scenario launches nothing.
    #[error("nothing is launched; add a [[launch]]")]
    NoLaunch,
    /// An assertion names a launch that does not exist.
    #[error("launch {launch} does not exist; the scenario has {n}, counted from 0")]
    NoSuchLaunch {
        /// The index.
        launch: usize,
        /// Number of launches.
        n: usize,
    },
    /// An expression has a fault.
    #[error(transparent)]
    Expression(Box<ExprError>),
    /// An element that an expression gives has a fault.
    #[error("element {index}: {fault}")]
    Element {
        /// Index of the element, in row-major order.
        index: u64,
        /// The fault.
        fault: Box<Fault>,
    },
    /// An expression gives a size that is out of range, or not whole.
    #[error("`{text}` is {value}; give a whole number from {least} to {most}")]
    BadSize {
        /// The text of the size.
        text: String,
        /// Its value.
        value: Number,
        /// The smallest size.
        least: u64,
        /// The greatest size.
        most: u64,
    },
    /// The scenario has too many constants.
    #[error("more than {limit} constants; use fewer")]
    TooManyConstants {
        /// Most constants.
        limit: usize,
    },
    /// An expression cannot name a constant so.
    #[error("not a name; use letters, digits and _, and no name that expressions have")]
    BadConstantName,
    /// A constant has the name of a metric.
    #[error("expressions read a metric by this name; rename the constant")]
    ConstantIsMetric,
    /// Constants depend on each other.
    #[error("the constants form a circle; give one of them a number")]
    CircularConstant,
    /// A constant has the name of a buffer.
    #[error("a buffer has this name too; rename one of them")]
    ConstantIsBuffer,
    /// The scenario has no constant of this name.
    #[error("the scenario has no such constant{}; it has {}", hint(.nearest), list(.known))]
    UnknownConstant {
        /// The most similar constant.
        nearest: Option<String>,
        /// All constants.
        known: Vec<String>,
    },
    /// A constant with the name of a launch size that no launch computes from it.
    #[error("no launch computes its {name} from this constant, so a new value changes no {name}; rename the constant{}", launch_axis(.name))]
    ConstantIsNoSize {
        /// The constant and the size.
        name: String,
    },
    /// A buffer has neither elements of one type nor fields, or both.
    #[error("give either dtype, or fields without init and expect")]
    DtypeOrFields,
    /// A structure has no field.
    #[error("a structure needs fields; give at least one")]
    NoFields,
    /// Two fields of a structure have this name.
    #[error("two fields are named `{name}`; rename one of them")]
    TwoFields {
        /// Buffer and field.
        name: String,
    },
    /// A module variable cannot have fields here.
    #[error("a module variable has no fields; give dtype and shape of its bytes")]
    VariableFields,
    /// The elements are too narrow for an address.
    #[error("an address has 64 bits, which {dtype} cannot hold; take u64")]
    NotAnAddress {
        /// The type of the elements.
        dtype: Dtype,
    },
    /// An address lies behind its buffer.
    #[error("element {index}: an offset of {offset} bytes is outside `{name}`, which has {most}")]
    OffsetOutside {
        /// Index of the element.
        index: u64,
        /// The offset in bytes.
        offset: u64,
        /// The buffer.
        name: String,
        /// Its bytes.
        most: u64,
    },
    /// No matrix has this name and part.
    #[error("no matrix has the part `{name}`; write NAME.offsets or NAME.columns for a table [matrices.NAME]{}", hint(.nearest))]
    UnknownMatrix {
        /// Matrix and part.
        name: String,
        /// The most similar matrix.
        nearest: Option<String>,
    },
    /// A part of a matrix has another number of elements than the buffer.
    #[error("`{name}` has {want} elements, but the buffer has {found}; change its shape")]
    MatrixShape {
        /// Matrix and part.
        name: String,
        /// Elements of the buffer.
        found: u64,
        /// Elements of the part.
        want: u64,
    },
    /// `reference` stands in an `init`.
    #[error("the reference model computes results, not initial elements; give another source")]
    ReferenceAsInit,
    /// No launch has this name.
    #[error("no launch is named `{name}`{}; give its name, its kernel or its index", hint(.nearest))]
    UnknownLaunch {
        /// The name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// Two launches have this name.
    #[error("several launches are named `{name}`; give the index, or a `name` to each")]
    AmbiguousLaunch {
        /// The name.
        name: String,
    },
    /// An index in a comparison is not a launch.
    #[error("the index of a metric is a launch: its name, its kernel or its index")]
    NotALaunch,
    /// A host step needs two buffers of one size.
    #[error("`{}` has {} bytes and `{}` has {}; a step needs buffers of one size", .names[0], .bytes[0], .names[1], .bytes[1])]
    StepSizes {
        /// The buffers.
        names: [String; 2],
        /// Their bytes.
        bytes: [u64; 2],
    },
    /// An assertion gives both forms, or none.
    #[error("give either metric with min, max or equal, or that")]
    TwoAssertions,
    /// A `that` is not a comparison.
    #[error("compares nothing; write two expressions with <, <=, >, >=, == or != between them")]
    NoComparison,
    /// A `that` joins comparisons by `or`.
    #[error("`or` joins comparisons; write one comparison, or several with `and`")]
    EitherOr,
    /// Both sides of a comparison are the same expression.
    #[error("compares an expression with itself; it holds or fails whatever the kernel does")]
    EqualSides,
    /// A comparison names no metric.
    #[error("measures nothing; name a metric or `cycles`")]
    NothingMeasured,
    /// A tolerance for a comparison that is not an equation.
    #[error("`within` needs ==; put the tolerance into the expression instead")]
    WithinWithoutEqual,
    /// A tolerance of a comparison is out of range.
    #[error("a tolerance is from 0 % to below 100 %, or a distance from 0 to below the right side")]
    BadWithin,
    /// An assertion has neither `min` nor `max` nor `equal`.
    #[error("asserts nothing; add min, max or equal")]
    NothingAsserted,
    /// The exit code of an expected failure is that of a success.
    #[error("`exit` is the code of a failure, from 1 to 255, not 0")]
    NotAFailure,
    /// No value is within all bounds of an assertion.
    #[error("cannot hold: min is above max, or equal is outside them")]
    CannotHold,
}

impl From<ExprError> for Fault {
    fn from(error: ExprError) -> Self {
        Fault::Expression(error.into())
    }
}

/// The dotted key with a colon. Empty for the whole file.
fn place(key: &str) -> String {
    match key {
        "" => String::new(),
        key => format!("{key}: "),
    }
}

/// The axis of a sweep that changes a size whatever the constants are. Empty for the one size of all launches.
fn launch_axis(size: &str) -> String {
    match size {
        "max_registers" => String::new(),
        size => format!(", or sweep over launch[0].{size}"),
    }
}

/// The names with commas, or "none".
fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn counted(errors: usize) -> String {
    match errors {
        1 => "1 error".to_owned(),
        n => format!("{n} errors"),
    }
}
