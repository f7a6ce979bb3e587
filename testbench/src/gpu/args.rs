//! Inputs of a launch: elements, buffers, arguments, and the shape of the grid.

use std::marker::PhantomData;

use half::{bf16, f16};

/// A number type of buffers and scalars, stored in little-endian bytes.
pub trait Element: Copy + private::Bytes {}

// Sealed: only the types below have a fixed size and byte order.
mod private {
    pub trait Bytes: Sized {
        const SIZE: usize;
        fn put(self, to: &mut Vec<u8>);
        fn get(from: &[u8]) -> Self;
    }
}

macro_rules! elements {
    ($($type:ty),+) => {
        $(
            impl Element for $type {}
            impl private::Bytes for $type {
                const SIZE: usize = size_of::<$type>();
                fn put(self, to: &mut Vec<u8>) {
                    to.extend(self.to_le_bytes());
                }
                fn get(from: &[u8]) -> Self {
                    Self::from_le_bytes(from.try_into().expect("the bytes of one element"))
                }
            }
            impl KernelArg for $type {
                fn bytes(&self) -> Vec<u8> {
                    to_bytes(&[*self])
                }
            }
        )+
    };
}

elements!(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, f16, bf16);

pub(super) fn to_bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(elements.len() * T::SIZE);
    elements.iter().for_each(|element| element.put(&mut bytes));
    bytes
}

pub(super) fn from_bytes<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::SIZE).map(T::get).collect()
}

/// A buffer in device memory. It is never freed before its [`Gpu`](super::Gpu) is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer<T> {
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// A buffer at an address that the caller chooses. No machine has allocated it.
    pub(crate) fn at(address: u64, len: usize) -> Self {
        Buffer {
            address,
            len,
            element: PhantomData,
        }
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.len * T::SIZE
    }
}

/// An argument of a kernel: a number, or a buffer. A buffer passes its address.
pub trait KernelArg {
    /// The argument's bytes. The kernel's parameter must have the same size.
    fn bytes(&self) -> Vec<u8>;
}

impl<T> KernelArg for Buffer<T> {
    fn bytes(&self) -> Vec<u8> {
        // Device addresses have 8 bytes.
        to_bytes(&[self.address])
    }
}

/// Sizes in x, y, z. Missing sizes are 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dims(pub [u32; 3]);

impl From<u32> for Dims {
    fn from(x: u32) -> Self {
        Dims([x, 1, 1])
    }
}

impl From<[u32; 2]> for Dims {
    fn from([x, y]: [u32; 2]) -> Self {
        Dims([x, y, 1])
    }
}

impl From<[u32; 3]> for Dims {
    fn from(sizes: [u32; 3]) -> Self {
        Dims(sizes)
    }
}

/// The shape of a launch. A pair `(blocks, threads)` converts to it; each is a number or sizes in x, y, z.
///
/// ```
/// use warpwave::gpu::Shape;
/// let shape = Shape::from((40, [16, 16])).dynamic_shared_bytes(1024);
/// assert_eq!(shape.block.0, [16, 16, 1]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// CTAs of the grid.
    pub grid: Dims,
    /// Threads of a CTA.
    pub block: Dims,
    /// CTAs of a cluster. `None` leaves it to the kernel.
    pub cluster: Option<Dims>,
    /// Dynamic shared memory of a CTA, in bytes.
    pub dynamic_shared_bytes: u32,
    /// True for a cooperative launch, which can pass barriers of the whole grid.
    pub is_cooperative: bool,
}

impl<G: Into<Dims>, B: Into<Dims>> From<(G, B)> for Shape {
    fn from((grid, block): (G, B)) -> Self {
        Shape {
            grid: grid.into(),
            block: block.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            is_cooperative: false,
        }
    }
}

impl Shape {
    /// Sets the CTAs of a cluster.
    pub fn cluster(self, size: impl Into<Dims>) -> Self {
        Shape {
            cluster: Some(size.into()),
            ..self
        }
    }

    /// Sets the dynamic shared memory of a CTA, in bytes.
    pub fn dynamic_shared_bytes(self, bytes: u32) -> Self {
        Shape {
            dynamic_shared_bytes: bytes,
            ..self
        }
    }

    /// Makes the launch cooperative, for barriers of the whole grid. All its CTAs must fit on the GPU together.
    pub fn cooperative(self) -> Self {
        Shape {
            is_cooperative: true,
            ..self
        }
    }
}
