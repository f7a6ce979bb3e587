//! What can be wrong with a scenario: where, what, and what to do.

use std::fmt;

use super::draft::MAX_NAME;
use super::dtype::{Dtype, Number};

/// A scenario that cannot be used.
#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioError {
    /// The scenario's file, or the name that was asked for.
    pub file: String,
    /// Dotted key of the place, such as `buffers.x.init`; empty for the whole file.
    pub key: String,
    /// What is wrong there.
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

/// What is wrong.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// Neither a built-in scenario nor a file.
    NoScenario {
        /// The built-in name that comes nearest.
        nearest: Option<String>,
    },
    /// A file cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// The text is not a scenario.
    Syntax {
        /// The reader's finding, with the source line.
        message: String,
        /// The word that was probably meant.
        nearest: Option<String>,
    },
    /// A file is not an npy array.
    NotNpy {
        /// The file.
        path: String,
        /// What the reader says.
        reason: String,
    },
    /// An npy array holds another type than the buffer.
    WrongDtype {
        /// The file.
        path: String,
        /// The array's type, as npy writes it.
        found: String,
        /// The buffer's type.
        want: Dtype,
    },
    /// An npy array has another shape than the buffer.
    WrongShape {
        /// The file.
        path: String,
        /// The array's shape.
        found: Vec<u64>,
        /// The buffer's shape.
        want: Vec<u64>,
    },
    /// An npy array is stored column by column.
    ColumnMajor {
        /// The file.
        path: String,
    },
    /// A list of values has another length than the buffer.
    WrongCount {
        /// Values in the list.
        found: usize,
        /// Elements of the buffer.
        want: u64,
    },
    /// A type cannot hold a number.
    OutOfRange {
        /// The number.
        number: Number,
        /// The type.
        dtype: Dtype,
    },
    /// `expect` does not name exactly one source.
    NotOneSource,
    /// A tolerance is negative, infinite or not a number.
    BadTolerance {
        /// Its value.
        value: f64,
    },
    /// A relative tolerance with which zeros agree with every number.
    BadRelative {
        /// Its value.
        value: f64,
    },
    /// Tolerances within which every number of the type agrees.
    CannotFail {
        /// The type.
        dtype: Dtype,
        /// Relative tolerance.
        rtol: f64,
        /// Absolute tolerance.
        atol: f64,
    },
    /// A bound of an assertion that no metric reaches.
    BadBound {
        /// Its value.
        value: f64,
    },
    /// The name of a buffer or variable is no plain file name.
    BadName {
        /// The name, cut to the greatest length.
        name: String,
    },
    /// Text that should be pairs of hexadecimal digits is not.
    NotHex,
    /// A buffer cannot be a texture or surface.
    NotAnImage {
        /// The buffer.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A size is zero, or their product is too large.
    BadShape {
        /// The sizes.
        shape: Vec<u64>,
    },
    /// The data need more than the memory of the GPU.
    TooLargeForGpu {
        /// Bytes of this buffer or variable.
        bytes: u64,
        /// Bytes of it and of those before it.
        need: u64,
        /// The GPU.
        gpu: String,
        /// Bytes of its memory.
        limit: u64,
    },
    /// The host has no memory for a buffer.
    HostMemory {
        /// Bytes of the buffer.
        bytes: u64,
    },
    /// A tensor map that no bulk copy can use.
    BadTiles {
        /// Sizes of the buffer.
        shape: Vec<u64>,
        /// Sizes of a tile.
        tile: Vec<u32>,
        /// Bytes of swizzling.
        swizzle: u32,
    },
    /// An argument names a buffer that does not exist.
    UnknownBuffer {
        /// The name.
        name: String,
        /// The buffer that was probably meant.
        nearest: Option<String>,
    },
    /// The scenario launches nothing.
    NoLaunch,
    /// An assertion names a launch that does not exist.
    NoSuchLaunch {
        /// The index.
        launch: usize,
        /// How many launches there are.
        n: usize,
    },
    /// An assertion has neither `min` nor `max` nor `equal`.
    NothingAsserted,
}

/// "; did you mean …?" or nothing.
fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// The candidate that comes nearest to `word`, if one is near enough to be a slip of the keyboard.
///
/// ```
/// use warpwave::scenario::nearest;
/// assert_eq!(nearest("dytpe", ["dtype", "shape"]), Some("dtype".to_owned()));
/// assert_eq!(nearest("colour", ["dtype", "shape"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let limit = 1 + word.chars().count() / 3;
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        self.fault.fmt(f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoScenario { nearest } => write!(
                f,
                "neither a file nor a built-in scenario{}; `warpwave list` shows those built in",
                hint(nearest)
            ),
            Fault::Unreadable { path, reason } => {
                write!(
                    f,
                    "cannot read {path}: {reason}; paths are relative to the scenario file"
                )
            }
            Fault::Syntax { message, nearest } => write!(f, "{}{}", message.trim_end(), hint(nearest)),
            Fault::NotNpy { path, reason } => {
                write!(f, "{path} is not an npy array: {reason}; write it with numpy.save")
            }
            Fault::WrongDtype { path, found, want } => write!(
                f,
                "{path} holds {found}, but the buffer's dtype is {want}; convert one of the two"
            ),
            Fault::WrongShape { path, found, want } => write!(
                f,
                "{path} has shape {found:?}, but the buffer's is {want:?}; change one of the two"
            ),
            Fault::ColumnMajor { path } => write!(
                f,
                "{path} is stored column by column; save it through numpy.ascontiguousarray"
            ),
            Fault::WrongCount { found, want } => {
                write!(
                    f,
                    "{found} values for a buffer of {want} elements; give one per element"
                )
            }
            Fault::OutOfRange { number, dtype } => {
                write!(f, "{dtype} cannot hold {number}; change the number or the dtype")
            }
            Fault::NotOneSource => write!(
                f,
                "needs exactly one of npy, fill, iota, uniform, values; rtol and atol may stand beside it"
            ),
            Fault::BadTolerance { value } => {
                write!(f, "a tolerance is a finite number from 0 on, not {value:?}")
            }
            Fault::BadRelative { value } => write!(
                f,
                "at 1 and above a buffer of zeros agrees with every number; give an rtol below 1, not {value:?}"
            ),
            Fault::CannotFail { dtype, rtol, atol } => {
                let finite = if dtype.is_float() { "finite " } else { "" };
                write!(
                    f,
                    "every {finite}{dtype} agrees within an atol of {atol:?} and an rtol of {rtol:?}; give smaller ones"
                )
            }
            Fault::BadBound { value } => write!(
                f,
                "a bound is a number of at most 2^64, the range of a counter, not {value:?}"
            ),
            Fault::BadName { name } => write!(
                f,
                "the name {name:?} is no plain file name, which --dump needs; use 1 to {MAX_NAME} bytes without / or \\ or \
                 control characters"
            ),
            Fault::NotAnImage { name, why } => write!(f, "buffer `{name}` is no image: {why}"),
            Fault::NotHex => write!(f, "not pairs of hexadecimal digits; write bytes such as \"00ff\""),
            Fault::BadShape { shape } => write!(
                f,
                "a shape is one or more sizes above 0, together at most 64 GiB, not {shape:?}"
            ),
            Fault::TooLargeForGpu {
                bytes,
                need,
                gpu,
                limit,
            } => write!(
                f,
                "takes {bytes} bytes, with the data before it {need}, and {gpu} has {limit} bytes of memory; \
                 take smaller shapes or another --gpu"
            ),
            Fault::HostMemory { bytes } => write!(
                f,
                "the host has no memory for {bytes} bytes; take a smaller shape, or a host with more memory"
            ),
            Fault::BadTiles { shape, tile, swizzle } => write!(
                f,
                "a tile of {tile:?} with a swizzle of {swizzle} bytes of a tensor of {shape:?} cannot be copied; give one to five \
                 sizes, as many as the buffer has, each from 1 to 256, whole 16 bytes in a row, and a swizzle of 32, 64 or 128 bytes \
                 that is no less than a row, or none"
            ),
            Fault::UnknownBuffer { name, nearest } => write!(
                f,
                "no buffer is named `{name}`; declare it as [buffers.{name}]{}",
                hint(nearest)
            ),
            Fault::NoLaunch => write!(f, "nothing is launched; add a [[launch]]"),
            Fault::NoSuchLaunch { launch, n } => {
                write!(f, "launch {launch} does not exist; the {n} launches are counted from 0")
            }
            Fault::NothingAsserted => write!(f, "asserts nothing; add min, max or equal"),
        }
    }
}

impl std::error::Error for ScenarioError {}
