//! Resolves texture and surface arguments.

use warpwave_isa::exec::texture::{AddressMode, BLOCK_BYTES, BLOCK_ROWS, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use super::dtype::Dtype;
use super::format::{self, ImageAddress, ImageFilter, ImageOrder, ImageRead};
use super::resolve::find_buffer;
use super::{Arg, Buffer, Fault, Image};

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
        [height, width, channels @ (1 | 2 | 4)] => (width, height, channels as u8),
        _ => {
            return Err(not(
                "its shape must be [width], [height, width] or [height, width, 1, 2 or 4]",
            ));
        }
    };
    let layers = u64::from(image.layers.max(1));
    if !height.is_multiple_of(layers) {
        return Err(not("its number of rows must be a multiple of its layers"));
    }
    let size = |size: u64| u32::try_from(size).map_err(|_| not("each of its sizes must fit 32 bits"));
    let normalized_values = image.read == ImageRead::Normalized;
    let linear_filter = image.filter == ImageFilter::Linear;
    if linear_filter && !normalized_values && !matches!(channel, Ty::F16 | Ty::F32) {
        return Err(not("filter = \"linear\" on integers needs read = \"normalized\""));
    }
    let order = match image.order {
        ImageOrder::Rows => TexelOrder::Rows,
        ImageOrder::Blocks => TexelOrder::Blocks,
    };
    let row = width * u64::from(channels) * buffer.layout.dtype.bytes() as u64;
    let is_whole = row.is_multiple_of(BLOCK_BYTES) && (height / layers).is_multiple_of(BLOCK_ROWS);
    if order == TexelOrder::Blocks && !is_whole {
        return Err(not(
            "order = \"blocks\" needs rows of whole 64 bytes, and a multiple of 8 rows",
        ));
    }
    Ok(Image {
        buffer: index,
        texture: Texture {
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
