//! 3D images, layers, gathers and queries, against images sampled in plain Rust.

use warpwave::scenario::dtype::Dtype;
use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use super::Kernel;

const SIZE: [usize; 3] = [5, 4, 3];

/// One channel of floats.
fn image() -> Texture {
    let [width, height, depth] = SIZE.map(|size| size as u32);
    Texture {
        base: 0,
        width,
        height,
        depth,
        channel: Ty::F32,
        channels: 1,
        address_mode: AddressMode::Clamp,
        normalized_coords: false,
        linear_filter: false,
        normalized_values: false,
        order: TexelOrder::Rows,
    }
}

fn texel([x, y, z]: [usize; 3]) -> f32 {
    ((z * 100 + y * 10 + x) * 7 % 64) as f32 - 20.0
}

fn texels() -> Vec<u8> {
    let places = (0..SIZE[2]).flat_map(|z| (0..SIZE[1]).flat_map(move |y| (0..SIZE[0]).map(move |x| [x, y, z])));
    places.flat_map(|place| texel(place).to_le_bytes()).collect()
}

/// A texel, with each coordinate clamped to the image.
fn clamped(at: [i64; 3]) -> f32 {
    texel([0, 1, 2].map(|n| at[n].clamp(0, SIZE[n] as i64 - 1) as usize))
}

/// A kernel in which each thread reads three words from `in` to `%a0` to `%a2`, and computes four in `%z0` to `%z3`.
fn text(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_80\n.address_size 64\n.entry k(.param .u64 image, .param .u64 in, .param .u64 out) {{\n\
         .reg .b64 %h, %p;\n.reg .b32 %t, %a<4>, %z<4>, %zero;\n.reg .pred %there;\nmov.u32 %t, %tid.x;\nld.param.u64 %h, [image];\n\
         ld.param.u64 %p, [in];\nmad.wide.u32 %p, %t, 12, %p;\nld.global.b32 %a0, [%p];\nld.global.b32 %a1, [%p+4];\nld.global.b32 %a2, [%p+8];\n\
         mov.u32 %zero, 0;\nmov.u32 %z0, 0;\nmov.u32 %z1, 0;\nmov.u32 %z2, 0;\nmov.u32 %z3, 0;\n{body}\n\
         ld.param.u64 %p, [out];\nmad.wide.u32 %p, %t, 16, %p;\nst.global.v4.b32 [%p], {{%z0, %z1, %z2, %z3}};\nret;\n}}\n"
    )
}

/// 64 coordinates in and around the image, in halves and quarters.
fn places() -> Vec<[f32; 3]> {
    let one = |n: usize, by: usize, size: usize| (n * by % (4 * (size + 2))) as f32 / 4.0 - 1.0;
    (0..64)
        .map(|n| [one(n, 7, SIZE[0]), one(n, 5, SIZE[1]), one(n, 11, SIZE[2])])
        .collect()
}

fn check(texture: Texture, body: &str, expected: impl Fn([f32; 3]) -> [f32; 4]) {
    let places = places();
    let input: Vec<u32> = places.iter().flatten().map(|at| at.to_bits()).collect();
    let output: Vec<u32> = places
        .iter()
        .flat_map(|&place| expected(place))
        .map(f32::to_bits)
        .collect();
    let kernel = Kernel::of(&text(body))
        .sizes(1, 64)
        .image(Dtype::F32, texels(), texture);
    kernel.input(&input).output(&output).holds();
}

/// The two texels next to a filtered coordinate, with their weights. Texel centres are at halves, fractions have 8 bits.
fn neighbours(at: f32) -> [(i64, f64); 2] {
    let at = f64::from(at) - 0.5;
    let fraction = ((at - at.floor()) * 256.0).round() / 256.0;
    [(at.floor() as i64, 1.0 - fraction), (at.floor() as i64 + 1, fraction)]
}

#[test]
fn samples_of_3d_images_are_texels_or_filtered_from_eight() {
    let fetch = "tex.3d.v4.f32.f32 {%z0, %z1, %z2, %z3}, [%h, {%a0, %a1, %a2, %a2}];";
    check(image(), fetch, |place| {
        [clamped(place.map(|at| at.floor() as i64)), 0.0, 0.0, 1.0]
    });
    let linear = Texture {
        linear_filter: true,
        ..image()
    };
    let mixed = |[x, y, z]: [f32; 3]| {
        let mut sum = 0.0;
        for (z, c) in neighbours(z) {
            for (y, b) in neighbours(y) {
                for (x, a) in neighbours(x) {
                    sum += a * b * c * f64::from(clamped([x, y, z]));
                }
            }
        }
        [sum as f32, 0.0, 0.0, 1.0]
    };
    check(linear, fetch, mixed);
    let level = "tex.level.3d.v4.f32.f32 {%z0, %z1, %z2, %z3}|%there, [%h, {%a0, %a1, %a2, %a2}], %a0;\nselp.b32 %z1, %z3, %z1, %there;";
    check(linear, level, |place| [mixed(place)[0], 1.0, 0.0, 1.0]);
}

#[test]
fn layers_are_separate_images() {
    let layer = |at: f32| (at.max(0.0) as i64).min(SIZE[2] as i64 - 1);
    let to_layer = "max.f32 %a2, %a2, 0f00000000;\ncvt.rzi.u32.f32 %a2, %a2;\n";
    let fetch = format!("{to_layer}tex.a2d.v4.f32.f32 {{%z0, %z1, %z2, %z3}}, [%h, {{%a2, %a0, %a1, %a1}}];");
    check(image(), &fetch, |[x, y, z]| {
        [clamped([x.floor() as i64, y.floor() as i64, layer(z)]), 0.0, 0.0, 1.0]
    });
    let line =
        format!("{to_layer}tex.grad.a1d.v4.f32.f32 {{%z0, %z1, %z2, %z3}}, [%h, {{%a2, %a0}}], {{%a0}}, {{%a0}};");
    let linear = Texture {
        linear_filter: true,
        ..image()
    };
    check(linear, &line, |[x, _, z]| {
        let sum: f64 = neighbours(x)
            .iter()
            .map(|&(x, a)| a * f64::from(clamped([x, 0, layer(z)])))
            .sum();
        [sum as f32, 0.0, 0.0, 1.0]
    });
}

/// Counter-clockwise from the lower left texel.
#[test]
fn gather_returns_a_channel_of_the_four_nearest_texels() {
    let gather = "tld4.r.2d.v4.f32.f32 {%z0, %z1, %z2, %z3}, [%h, {%a0, %a1}];";
    check(image(), gather, |[x, y, _]| {
        let [(left, _), (right, _)] = neighbours(x);
        let [(upper, _), (lower, _)] = neighbours(y);
        [[left, lower], [right, lower], [right, upper], [left, upper]].map(|[x, y]| clamped([x, y, 0]))
    });
    let missing = "tld4.a.a2d.v4.f32.f32 {%z0, %z1, %z2, %z3}, [%h, {%zero, %a0, %a1, %a1}];";
    check(image(), missing, |_| [1.0; 4]);
}

/// Types and orders of channels are OpenCL's: CL_FLOAT, CL_R.
#[test]
fn queries_return_the_properties_of_the_image() {
    let queries = [
        ("txq.width", 5),
        ("txq.height", 4),
        ("txq.depth", 3),
        ("txq.array_size", 3),
        ("txq.channel_data_type", 0x10de),
        ("txq.channel_order", 0x10b0),
        ("txq.normalized_coords", 0),
        ("txq.num_mipmap_levels", 1),
        ("txq.filter_mode", 1),
        ("txq.addr_mode_0", 3),
        ("suq.width", 5),
        ("suq.height", 4),
    ];
    let linear = Texture {
        linear_filter: true,
        ..image()
    };
    for (query, expected) in queries {
        let body = format!("{query}.b32 %z0, [%h];");
        check(linear, &body, |_| [f32::from_bits(expected), 0.0, 0.0, 0.0]);
    }
}

/// Copies words of a 3D surface. The x coordinate counts bytes, and reads outside the surface give zero.
#[test]
fn surfaces_with_3_dimensions_or_layers_are_read_and_written() {
    let to_place = |bits: usize| {
        let mut words = Vec::new();
        for n in 0..64usize {
            words.extend([n % 6, n / 6 % 5, n / 30 % 4].map(|at| (at as u32).wrapping_sub(bits as u32)));
        }
        words
    };
    let inside = |n: usize, shift: i64| {
        let at = [n % 6, n / 6 % 5, n / 30 % 4].map(|at| at as i64 - shift);
        let fits = at.iter().zip(SIZE).all(|(&at, size)| (0..size as i64).contains(&at));
        (at, fits)
    };
    let body = "shl.b32 %a0, %a0, 2;\nsuld.b.3d.b32.zero %z0, [%h, {%a0, %a1, %a2, %a2}];\nsuld.b.3d.b32.clamp %z1, [%h, {%a0, %a1, %a2, %a2}];";
    let output: Vec<u32> = (0..64)
        .flat_map(|n| {
            let (at, fits) = inside(n, 1);
            let zero = if fits { clamped(at).to_bits() } else { 0 };
            [zero, clamped(at).to_bits(), 0, 0]
        })
        .collect();
    let kernel = Kernel::of(&text(body))
        .sizes(1, 64)
        .image(Dtype::F32, texels(), image());
    kernel.input(&to_place(1)).output(&output).holds();
    for sust in [
        "sust.b.3d.b32.zero [%h, {%a0, %a1, %a2, %a2}], %t;",
        "sust.b.a2d.b32.zero [%h, {%a2, %a0, %a1, %a1}], %t;",
    ] {
        let mut after: Vec<u32> = texels()
            .chunks(4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        for n in 0..60 {
            let ([x, y, z], fits) = inside(n, 0);
            if fits {
                after[(z as usize * SIZE[1] + y as usize) * SIZE[0] + x as usize] = n as u32;
            }
        }
        let bytes: Vec<u8> = after.iter().flat_map(|word| word.to_le_bytes()).collect();
        let body = format!("shl.b32 %a0, %a0, 2;\n{sust}");
        let kernel = Kernel::of(&text(&body))
            .sizes(1, 60)
            .image_left_as(Dtype::F32, texels(), &bytes, image());
        kernel.input(&to_place(0)).output(&[0; 240]).holds();
    }
}
