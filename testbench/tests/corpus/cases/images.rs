//! Textures and surfaces: texel fetches, filtered images, surface loads and stores (CUDA C Programming Guide, texture fetching).

use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use crate::case::{Case, ceil, image, input, int, output, scalar};
use crate::draw::{bytes, floats, ints, whole};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![tex_gather1d(), tex_rotate2d(), surf_invert()]
}

fn texture(width: usize, height: usize, channels: u8, channel: Ty) -> Texture {
    Texture {
        base: 0,
        width: width as u32,
        height: height as u32,
        depth: 1,
        channel,
        channels,
        address_mode: AddressMode::Clamp,
        normalized_coords: false,
        linear_filter: false,
        normalized_values: false,
        order: TexelOrder::Rows,
    }
}

fn tex_gather1d() -> Case {
    let (texels, indices) = (floats(1, 77, -9.0, 9.0), ints(2, 300, 0, 76));
    let found: Vec<_> = indices.iter().map(|&at| texels[at as usize]).collect();
    Case::cuda("texture_fetch", "tex_gather1d")
        .launch(ceil(300, 256), 256)
        .args([image(texture(77, 1, 1, Ty::F32), input(&texels)), input(&indices)])
        .args([output(&[0.0; 300], &found), int(300)])
}

/// Bilinear filter of the four texels around a point, clamped at the edge. Sizes and angle make each coordinate a multiple of 1/256, so it is
/// exact. The texels are such that the result is exact too.
fn tex_rotate2d() -> Case {
    let (w, h, cosine, sine) = (32, 8, 0.5, 0.25);
    let (width, height) = (16, 4);
    let texels = whole(3, 4 * width * height, -30, 30);
    let point = |at: usize| {
        let (u, v) = (((at % w) as f32 - 16.0) / 32.0, ((at / w) as f32 - 4.0) / 8.0);
        let (s, t) = (u * cosine - v * sine + 0.5, u * sine + v * cosine + 0.5);
        let (x, y) = (s * width as f32 - 0.5, t * height as f32 - 0.5);
        let (a, b) = (x - x.floor(), y - y.floor());
        let texel = |dx: f32, dy: f32, channel: usize| {
            let place = |at: f32, size: usize| at.clamp(0.0, (size - 1) as f32) as usize;
            texels[4 * (place(y.floor() + dy, height) * width + place(x.floor() + dx, width)) + channel]
        };
        let mixed = |channel: usize| {
            let row = |dy: f32| (1.0 - a) * texel(0.0, dy, channel) + a * texel(1.0, dy, channel);
            (1.0 - b) * row(0.0) + b * row(1.0)
        };
        std::array::from_fn::<_, 4, _>(mixed)
    };
    let picture: Vec<f32> = (0..w * h).flat_map(point).collect();
    let filtered = Texture {
        normalized_coords: true,
        linear_filter: true,
        ..texture(width, height, 4, Ty::F32)
    };
    Case::cuda("texture_fetch", "tex_rotate2d")
        .launch_3d([2, 1, 1], [16, 16, 1])
        .args([image(filtered, input(&texels)), output(&vec![0.0; 4 * w * h], &picture)])
        .args([int(w), int(h), scalar(cosine), scalar(sine)])
}

/// Inverts three channels and keeps the fourth.
fn surf_invert() -> Case {
    let (w, h) = (37, 21);
    let pixels = bytes(4, 4 * w * h);
    let turned = |(at, byte): (usize, &u8)| if at % 4 < 3 { 255 - byte } else { *byte };
    let inverted: Vec<_> = pixels.iter().enumerate().map(turned).collect();
    let surface = texture(w, h, 4, Ty::U8);
    Case::cuda("texture_fetch", "surf_invert")
        .launch_3d([3, 2, 1], [16, 16, 1])
        .args([
            image(surface, input(&pixels)),
            image(surface, output(&vec![0; 4 * w * h], &inverted)),
        ])
        .args([int(w), int(h)])
}
