//! A case: one launch of one kernel, and its expected results. It applies to the PTX of every compiler.
//!
//! Arguments are in the order of the kernel's parameters. A buffer has its bytes before the launch, and the expected bytes after it.
//! Expectations follow the kernel's source, in plain Rust.

use std::sync::Arc;

use half::{bf16, f16};
use warpwave::scenario::dtype::Dtype;
use warpwave_isa::exec::texture::Texture;

/// Source of a kernel: the language, and the stem of the source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// CUDA C: nvcc, NVRTC and clang compile it.
    Cuda(&'static str),
    /// One kernel of the Triton file, by its name.
    Triton(&'static str),
    /// One kernel of the Numba file, by its name.
    Numba(&'static str),
    /// The OpenCL C file.
    OpenCl,
    /// The Rust file.
    Rust,
}

/// How a launch ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Every thread comes to its end.
    Done,
    /// A thread traps.
    Trapped,
}

/// One launch and its expected results.
pub struct Case {
    /// The source of the kernel.
    pub source: Source,
    /// Its name in the source.
    pub entry: &'static str,
    /// A note on this launch. May be empty.
    pub about: &'static str,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z.
    pub cluster: [u32; 3],
    /// True for a cooperative launch.
    pub is_cooperative: bool,
    /// Shared memory beside the declared, in bytes.
    pub dynamic_shared_bytes: u32,
    /// Arguments in order.
    pub args: Vec<Param>,
    /// Initial values of module variables, by symbol.
    pub globals: Vec<(&'static str, Data)>,
    /// What the kernel prints.
    pub printed: String,
    /// How it ends.
    pub ending: Ending,
    /// Folders with a build that is left out, with the reason.
    pub exceptions: Vec<(&'static str, &'static str)>,
}

/// An argument.
#[derive(Clone)]
pub enum Param {
    /// A number, by value.
    Scalar(Dtype, Vec<u8>),
    /// A buffer's address.
    Buffer(Data, Check),
    /// A structure by value, laid out with natural alignment.
    Struct(Vec<Param>),
    /// A tensor map of a buffer of two dimensions: rows and columns, and those of a tile.
    Tiles(Data, Check, [u32; 2], [u32; 2]),
    /// The handle of a texture or surface, whose texels are a buffer's.
    Image(Texture, Data, Check),
}

/// Elements of a buffer.
#[derive(Clone)]
pub struct Data {
    /// Their type.
    pub dtype: Dtype,
    /// Their bytes, little-endian.
    pub bytes: Vec<u8>,
}

/// Checks the bytes of a buffer. The error says what is wrong.
pub type Condition = dyn Fn(&[u8]) -> Result<(), String> + Send + Sync;

/// The check of a buffer after the launch.
#[derive(Clone)]
pub enum Check {
    /// These elements, within a tolerance.
    Near {
        /// The elements.
        want: Vec<u8>,
        /// Relative tolerance.
        rtol: f64,
        /// Absolute tolerance.
        atol: f64,
    },
    /// No check: for times, which depend on the machine.
    Free,
    /// A condition, for results that depend on the order of threads. Machine and reference may differ.
    Holds(Arc<Condition>),
}

/// Numbers that buffers and arguments hold.
pub trait Element: Copy {
    /// Their type.
    const DTYPE: Dtype;
    /// Their little-endian bytes.
    fn append(self, to: &mut Vec<u8>);
    /// The number of these bytes.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($number:ty => $dtype:ident,)*) => {$(
        impl Element for $number {
            const DTYPE: Dtype = Dtype::$dtype;
            fn append(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("one element"))
            }
        }
    )*};
}
elements! {
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f16 => F16, bf16 => Bf16, f32 => F32, f64 => F64,
}

impl Data {
    /// These elements.
    pub fn of<T: Element>(elements: &[T]) -> Self {
        let mut bytes = Vec::new();
        elements.iter().for_each(|element| element.append(&mut bytes));
        Data { dtype: T::DTYPE, bytes }
    }
}

impl Case {
    /// A launch of one CTA of one thread without arguments.
    pub fn new(source: Source, entry: &'static str) -> Self {
        Case {
            source,
            entry,
            about: "",
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            is_cooperative: false,
            dynamic_shared_bytes: 0,
            args: Vec::new(),
            globals: Vec::new(),
            printed: String::new(),
            ending: Ending::Done,
            exceptions: Vec::new(),
        }
    }

    /// A kernel of a CUDA C file.
    pub fn cuda(file: &'static str, entry: &'static str) -> Self {
        Self::new(Source::Cuda(file), entry)
    }

    /// Sets the note.
    pub fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// CTAs and threads of each, in one dimension.
    pub fn launch(self, grid: usize, block: usize) -> Self {
        self.launch_3d([grid as u32, 1, 1], [block as u32, 1, 1])
    }

    /// CTAs and threads of each.
    pub fn launch_3d(mut self, grid: [u32; 3], block: [u32; 3]) -> Self {
        (self.grid, self.block) = (grid, block);
        self
    }

    /// CTAs of a cluster, in one dimension.
    pub fn cluster(mut self, ctas: u32) -> Self {
        self.cluster = [ctas, 1, 1];
        self
    }

    /// Makes the launch cooperative.
    pub fn cooperative(mut self) -> Self {
        self.is_cooperative = true;
        self
    }

    /// Shared memory beside the declared, in bytes.
    pub fn dynamic_shared(mut self, bytes: usize) -> Self {
        self.dynamic_shared_bytes = bytes as u32;
        self
    }

    /// Arguments in order.
    pub fn args(mut self, args: impl IntoIterator<Item = Param>) -> Self {
        self.args.extend(args);
        self
    }

    /// Gives a module variable these elements.
    pub fn global<T: Element>(mut self, name: &'static str, elements: &[T]) -> Self {
        self.globals.push((name, Data::of(elements)));
        self
    }

    /// Leaves out the build of a folder, because of a fault outside this project.
    pub fn except(mut self, folder: &'static str, why: &'static str) -> Self {
        self.exceptions.push((folder, why));
        self
    }

    /// Sets the expected `printf` output, in the order of blocks and threads.
    pub fn prints(mut self, text: String) -> Self {
        self.printed = text;
        self
    }

    /// Expects a trap. Buffers are not checked then.
    pub fn traps(mut self) -> Self {
        self.ending = Ending::Trapped;
        self
    }
}

/// A number by value.
pub fn scalar<T: Element>(value: T) -> Param {
    let data = Data::of(&[value]);
    Param::Scalar(data.dtype, data.bytes)
}

/// A count as the C type `int`.
pub fn int(value: usize) -> Param {
    scalar(i32::try_from(value).expect("counts are small"))
}

/// A buffer that must not change.
pub fn input<T: Element>(elements: &[T]) -> Param {
    output(elements, elements)
}

/// A tensor map of a buffer that must not change: rows and columns of the buffer, then of a tile.
pub fn tiles<T: Element>(elements: &[T], shape: [u32; 2], tile: [u32; 2]) -> Param {
    let data = Data::of(elements);
    let check = Check::Near {
        want: data.bytes.clone(),
        rtol: 0.0,
        atol: 0.0,
    };
    Param::Tiles(data, check, shape, tile)
}

/// A buffer with elements `before`. After the launch it must be equal to `after`, bit by bit.
pub fn output<T: Element>(before: &[T], after: &[T]) -> Param {
    near(before, after, 0.0, 0.0)
}

/// A buffer with elements `before`. After the launch |found - w| <= atol + rtol |w| must hold for the elements *w* of `after`.
pub fn near<T: Element>(before: &[T], after: &[T], rtol: f64, atol: f64) -> Param {
    assert_eq!(before.len(), after.len(), "a buffer keeps its size");
    let want = Data::of(after).bytes;
    Param::Buffer(Data::of(before), Check::Near { want, rtol, atol })
}

/// A buffer without a check.
pub fn free<T: Element>(before: &[T]) -> Param {
    Param::Buffer(Data::of(before), Check::Free)
}

/// A buffer that must satisfy a condition after the launch.
pub fn satisfying<T: Element>(
    before: &[T],
    holds: impl Fn(&[T]) -> Result<(), String> + Send + Sync + 'static,
) -> Param {
    let check = move |bytes: &[u8]| {
        let elements: Vec<T> = bytes.chunks(T::DTYPE.bytes()).map(T::read).collect();
        holds(&elements)
    };
    Param::Buffer(Data::of(before), Check::Holds(Arc::new(check)))
}

/// An image of a buffer.
pub fn image(texture: Texture, buffer: Param) -> Param {
    match buffer {
        Param::Buffer(data, check) => Param::Image(texture, data, check),
        other => other,
    }
}

/// A buffer that must have these elements in any order, followed by `rest`.
pub fn unordered<T: Element + Ord + std::fmt::Debug + Send + Sync + 'static>(
    before: &[T],
    after: &[T],
    rest: &[T],
) -> Param {
    let (mut sorted, rest) = (after.to_vec(), rest.to_vec());
    sorted.sort();
    satisfying(before, move |found: &[T]| {
        let (first, last) = found.split_at(sorted.len());
        let mut first = first.to_vec();
        first.sort();
        if first == sorted && last == rest {
            return Ok(());
        }
        Err(format!(
            "{found:?} is not {sorted:?} in some order with {rest:?} behind"
        ))
    })
}

/// Number of CTAs of `block` threads that cover `n` threads.
pub fn ceil(n: usize, block: usize) -> usize {
    n.div_ceil(block)
}
