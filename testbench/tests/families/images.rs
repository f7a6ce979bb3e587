//! Textures and surfaces, against images sampled in plain Rust.

use warpwave::scenario::Arg;
use warpwave::scenario::dtype::Dtype;
use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use super::Kernel;

const NVCC: &str = include_str!("texture_fetch.ptx");

fn image(width: u32, height: u32, channels: u8, channel: Ty) -> Texture {
    Texture {
        base: 0,
        width,
        height,
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

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Texels outside the image read as zero.
#[test]
fn texels_by_index_match_the_buffer() {
    let texels: Vec<f32> = (0..77).map(|n| n as f32 * 1.5 - 9.0).collect();
    let indices: Vec<u32> = (0..100).map(|n| (n * 31 + 5) % 83).collect();
    let found: Vec<f32> = indices
        .iter()
        .map(|&at| texels.get(at as usize).copied().unwrap_or(0.0))
        .collect();
    let kernel = Kernel::of(NVCC).entry("tex_gather1d").sizes(1, 128);
    let kernel = kernel.image(Dtype::F32, bytes(&bits(&texels)), image(77, 1, 1, Ty::F32));
    kernel.input(&indices).output(&bits(&found)).number(100).holds();
}

/// Texel and fraction of a filtered coordinate. Texel centres are at halves, fractions have 8 bits.
fn between(at: f32, size: usize) -> (f64, f64) {
    let at = f64::from(at) * size as f64 - 0.5;
    (at.floor(), ((at - at.floor()) * 256.0).round() / 256.0)
}

#[test]
fn rotated_image_is_filtered_from_the_four_nearest_texels() {
    const SIZE: [usize; 2] = [13, 9];
    let [width, height] = SIZE;
    let texels: Vec<f32> = (0..width * height * 4).map(|n| (n * 29 % 64) as f32 - 20.0).collect();
    let (cosine, sine) = (0.8f32, 0.6f32);
    for address in [
        AddressMode::Clamp,
        AddressMode::Wrap,
        AddressMode::Mirror,
        AddressMode::Border,
    ] {
        let place = |at: f64, size: usize| {
            let (size, at) = (size as i64, at as i64);
            match address {
                AddressMode::Border => (0..size).contains(&at).then_some(at),
                AddressMode::Wrap => Some(at.rem_euclid(size)),
                _ => Some(at.clamp(0, size - 1)),
            }
        };
        let turned = |at: f32| match address {
            AddressMode::Wrap => at - at.floor(),
            AddressMode::Mirror if at.floor().rem_euclid(2.0) == 1.0 => 1.0 - (at - at.floor()),
            AddressMode::Mirror => at - at.floor(),
            _ => at,
        };
        let sample = |u: f32, v: f32, channel: usize| {
            let ((x, a), (y, b)) = (between(turned(u), width), between(turned(v), height));
            let texel = |x: f64, y: f64| match (place(x, width), place(y, height)) {
                (Some(x), Some(y)) => f64::from(texels[(y as usize * width + x as usize) * 4 + channel]),
                _ => 0.0,
            };
            let upper = (1.0 - a) * texel(x, y) + a * texel(x + 1.0, y);
            let lower = (1.0 - a) * texel(x, y + 1.0) + a * texel(x + 1.0, y + 1.0);
            ((1.0 - b) * upper + b * lower) as f32
        };
        let mut found = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let (w, h) = (width as f32, height as f32);
                // As the compiler fused the source's sums.
                let u = (x as f32 - w * 0.5) / w;
                let v = (y as f32 - h * 0.5) / h;
                let (s, t) = (u * cosine - v * sine + 0.5, u.mul_add(sine, v * cosine) + 0.5);
                found.extend((0..4).map(|channel| sample(s, t, channel)));
            }
        }
        let texture = Texture {
            address_mode: address,
            normalized_coords: true,
            linear_filter: true,
            ..image(width as u32, height as u32, 4, Ty::F32)
        };
        let kernel = Kernel::of(NVCC).entry("tex_rotate2d").block([16, 16, 1]);
        let kernel = kernel
            .image(Dtype::F32, bytes(&bits(&texels)), texture)
            .output(&bits(&found));
        let kernel = kernel.number(width as u32).number(height as u32);
        let float = |value: f32| Arg::Scalar(Dtype::F32, value.to_le_bytes().to_vec());
        kernel.argument(float(cosine)).argument(float(sine)).holds();
    }
}

#[test]
fn surface_is_read_and_written_by_bytes() {
    let (width, height) = (21u32, 11u32);
    let pixels: Vec<u32> = (0..width * height).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let inverted: Vec<u32> = pixels.iter().map(|pixel| pixel ^ 0x00ff_ffff).collect();
    let surface = image(width, height, 4, Ty::U8);
    let kernel = Kernel::of(NVCC).entry("surf_invert").block([32, 16, 1]);
    let kernel = kernel.image(Dtype::U8, bytes(&pixels), surface);
    let kernel = kernel.image_left_as(Dtype::U8, vec![0; pixels.len() * 4], &bytes(&inverted), surface);
    kernel.number(width).number(height).holds();
}

/// Bytes read as numbers from 0 to 1, with point sampling. Surface reads outside the image give zero or the edge.
#[test]
fn normalized_texels_and_reads_outside_the_image() {
    let text = "\
        .version 8.0\n.target sm_80\n.address_size 64\n\
        .entry k(.param .u64 t, .param .u64 out) {\n.reg .b64 %h, %o;\n.reg .b32 %t, %r, %i;\n.reg .f32 %f<8>;\n.reg .s32 %a<4>;\n\
        ld.param.u64 %h, [t];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n\
        cvt.rn.f32.u32 %f1, %t;\nmul.f32 %f1, %f1, 0f3f000000;\nsub.f32 %f1, %f1, 0f3f800000;\n\
        tex.1d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%h, {%f1}];\n\
        sub.s32 %i, %t, 2;\nsuld.b.1d.b8.zero %a1, [%h, {%i}];\nsuld.b.1d.b8.clamp %a2, [%h, {%i}];\n\
        mul.f32 %f2, %f2, 0f437f0000;\nadd.f32 %f2, %f2, %f3;\nadd.f32 %f2, %f2, %f5;\ncvt.rni.u32.f32 %r, %f2;\n\
        mad.lo.u32 %r, %r, 1000, %a1;\nmad.lo.u32 %r, %r, 1000, %a2;\n\
        mad.wide.u32 %o, %t, 4, %o;\nst.global.u32 [%o], %r;\nret;\n}\n";
    let pixels: Vec<u8> = (0..12).map(|n| n * 20 + 3).collect();
    let at = |place: i32| u32::from(pixels[place.clamp(0, 11) as usize]);
    let expected: Vec<u32> = (0..32)
        .map(|thread: i32| {
            let sampled = at((thread - 2).div_euclid(2)) + 1;
            let inside = (0..12).contains(&(thread - 2));
            let zero = if inside { at(thread - 2) } else { 0 };
            sampled * 1_000_000 + zero * 1000 + at(thread - 2)
        })
        .collect();
    let texture = Texture {
        normalized_values: true,
        ..image(12, 1, 1, Ty::U8)
    };
    Kernel::of(text)
        .image(Dtype::U8, pixels.clone(), texture)
        .output(&expected)
        .holds();
}

/// Even and odd lanes have handles of different images in one register: texels of 4 bytes and of 1 byte, two surfaces to read, two to write.
#[test]
fn each_lane_accesses_the_image_of_its_own_handle() {
    let text = "\
        .version 8.0\n.target sm_80\n.address_size 64\n\
        .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 out) {\n\
        .reg .b64 %h<6>, %o;\n.reg .b32 %t, %i, %j, %r, %v<5>;\n.reg .pred %odd;\n\
        ld.param.u64 %h1, [a];\nld.param.u64 %h2, [b];\nld.param.u64 %h3, [c];\nld.param.u64 %h4, [d];\nld.param.u64 %h5, [e];\n\
        ld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nand.b32 %i, %t, 1;\nsetp.ne.u32 %odd, %i, 0;\nshr.u32 %i, %t, 1;\nshl.b32 %j, %i, 2;\n\
        selp.b64 %h2, %h2, %h1, %odd;\nselp.b64 %h3, %h3, %h1, %odd;\nselp.b64 %h4, %h5, %h4, %odd;\n\
        tex.1d.v4.u32.s32 {%v1, %v2, %v3, %v4}, [%h2, {%i}];\nsuld.b.1d.b32.trap %r, [%h3, {%j}];\nsust.b.1d.b32.trap [%h4, {%j}], %t;\n\
        mad.lo.u32 %r, %r, 1000, %v1;\nmad.wide.u32 %o, %t, 4, %o;\nst.global.u32 [%o], %r;\nret;\n}\n";
    let (words, narrow) = (image(16, 1, 1, Ty::U32), image(16, 1, 1, Ty::U8));
    let of = |value: fn(u32) -> u32| (0..16).map(value).collect::<Vec<u32>>();
    let (a, c) = (of(|n| 3 * n + 1), of(|n| 7 * n + 100));
    let b: Vec<u8> = (0..16).map(|n| 5 * n + 2).collect();
    let expected: Vec<u32> = (0..32)
        .map(|thread| match (thread % 2, thread / 2) {
            (0, n) => a[n] * 1000 + a[n],
            (_, n) => c[n] * 1000 + u32::from(b[n]),
        })
        .collect();
    let kernel = Kernel::of(text).image(Dtype::U32, bytes(&a), words);
    let kernel = kernel.image(Dtype::U8, b, narrow).image(Dtype::U32, bytes(&c), words);
    kernel
        .image_left_as(Dtype::U32, vec![0; 64], &bytes(&of(|n| 2 * n)), words)
        .image_left_as(Dtype::U32, vec![0; 64], &bytes(&of(|n| 2 * n + 1)), words)
        .output(&expected)
        .holds();
}
