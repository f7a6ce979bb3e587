//! Textures, surfaces and tensor maps of buffers. Resolves texture and surface arguments.

use warpwave_isa::exec::bulk::{Element, Im2col};
use warpwave_isa::exec::texture::{AddressMode, BLOCK_BYTES, BLOCK_ROWS, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use super::dtype::Dtype;
use super::format::{self, ImageAddress, ImageFilter, ImageOrder, ImageRead};
use super::resolve::find_buffer;
use super::{Arg, Buffer, Fault};

/// A buffer as a texture or surface.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    /// The buffer, by its index in [`Scenario::buffers`](super::Scenario::buffers).
    pub buffer: usize,
    /// The texture without its address.
    pub texture: Texture,
}

/// A tensor map of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiles {
    /// Index in [`Scenario::buffers`](super::Scenario::buffers).
    pub buffer: usize,
    /// Elements in each dimension. The contiguous dimension is the last one, as in the buffer's shape.
    pub shape: Vec<u32>,
    /// Elements of a tile in each dimension, in the same order.
    pub tile: Vec<u32>,
    /// Swizzle mode in shared memory: 0 none, 1 over 32 bytes, 2 over 64, 3 over 128.
    pub swizzle: u8,
    /// Type of an element.
    pub element: Element,
    /// Distance between neighbours of a tile in each dimension, in elements, in the same order. Empty for 1 everywhere.
    pub steps: Vec<u8>,
    /// True if elements outside the tensor read as NaN.
    pub nan_fill: bool,
    /// Bounding box of an im2col map. Its tile is pixels per column, then channels per pixel.
    pub im2col: Option<Im2col>,
}

/// Resolves an image. Its sizes are the buffer's shape.
pub(super) fn read(image: format::Image, buffers: &[Buffer]) -> Result<Image, Fault> {
    let Arg::Buffer(index) = find_buffer(image.buffer, buffers)? else {
        unreachable!("the search finds a buffer, or returns a fault");
    };
    let buffer = &buffers[index];
    let not = |why| Fault::NotAnImage {
        name: buffer.name.clone(),
        why,
    };
    let channel = channel(buffer.layout.dtype).ok_or_else(|| not("its dtype must be one of i8 to u32, f16, f32"))?;
    let (width, height, channels) = match buffer.layout.shape[..] {
        [width] => (width, 1, 1),
        [height, width] => (width, height, 1),
        // CUDA textures have no format of three channels.
        [height, width, channels @ (1 | 2 | 4)] => (width, height, channels as u8),
        _ => {
            return Err(not(
                "its shape must be [width], [height, width] or [height, width, 1, 2 or 4]",
            ));
        }
    };
    // The rows of all layers lie one below the other in the buffer.
    let layers = u64::from(image.layers.max(1));
    if !height.is_multiple_of(layers) {
        return Err(not("its number of rows must be a multiple of its layers"));
    }
    let size = |size: u64| u32::try_from(size).map_err(|_| not("each of its sizes must fit 32 bits"));
    let normalized_values = image.read == ImageRead::Normalized;
    let linear_filter = image.filter == ImageFilter::Linear;
    // CUDA filters only texels that it returns as floats.
    if linear_filter && !normalized_values && !matches!(channel, Ty::F16 | Ty::F32) {
        return Err(not("filter = \"linear\" on integers needs read = \"normalized\""));
    }
    let order = match image.order {
        ImageOrder::Rows => TexelOrder::Rows,
        ImageOrder::Blocks => TexelOrder::Blocks,
    };
    let row = width * u64::from(channels) * buffer.layout.dtype.bytes() as u64;
    // A block has 64 bytes of each of 8 rows: the texels of a block are 512 contiguous bytes.
    let is_whole = row.is_multiple_of(BLOCK_BYTES) && (height / layers).is_multiple_of(BLOCK_ROWS);
    if order == TexelOrder::Blocks && !is_whole {
        return Err(not(
            "order = \"blocks\" needs rows of whole 64 bytes, and a multiple of 8 rows",
        ));
    }
    Ok(Image {
        buffer: index,
        texture: Texture {
            // The host fills in the address when it builds the grid.
            base: 0,
            width: size(width)?,
            height: size(height / layers)?,
            depth: image.layers.max(1),
            channel,
            channels,
            address_mode: match image.address {
                ImageAddress::Clamp => AddressMode::Clamp,
                ImageAddress::Wrap => AddressMode::Wrap,
                ImageAddress::Mirror => AddressMode::Mirror,
                ImageAddress::Border => AddressMode::Border,
            },
            normalized_coords: image.normalized,
            linear_filter,
            normalized_values,
            order,
        },
    })
}

fn channel(dtype: Dtype) -> Option<Ty> {
    Some(match dtype {
        Dtype::I8 => Ty::S8,
        Dtype::U8 => Ty::U8,
        Dtype::I16 => Ty::S16,
        Dtype::U16 => Ty::U16,
        Dtype::I32 => Ty::S32,
        Dtype::U32 => Ty::U32,
        Dtype::F16 => Ty::F16,
        Dtype::F32 => Ty::F32,
        _ => return None,
    })
}
