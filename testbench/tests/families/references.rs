//! Cube maps, and images that the host binds to references of the module, with samplers of their own.

use warpwave::scenario::dtype::Dtype;
use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use super::Kernel;

fn image(width: u32, height: u32, depth: u32) -> Texture {
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

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The direction to the place (s, t) of a face, each from -1 to 1. The faces lie at +x, -x, +y, -y, +z, -z.
fn direction(face: usize, s: f32, t: f32) -> [f32; 3] {
    match face {
        0 => [1.0, -t, -s],
        1 => [-1.0, -t, s],
        2 => [s, 1.0, t],
        3 => [s, -1.0, -t],
        4 => [s, -t, 1.0],
        _ => [-s, -t, -1.0],
    }
}

/// Each thread fetches in the direction in `in`, and in `%layer`, the number of its warp modulo 2 plus `shift`.
fn cube_kernel(fetch: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 cube, .param .u64 in, .param .u64 out) {{\n\
         .reg .b64 %h, %i, %o;\n.reg .b32 %t, %layer;\n.reg .f32 %x, %y, %z, %f<4>;\n\
         ld.param.u64 %h, [cube];\nld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n\
         mad.wide.u32 %i, %t, 12, %i;\nmad.wide.u32 %o, %t, 4, %o;\nshr.u32 %layer, %t, 5;\nand.b32 %layer, %layer, 1;\n\
         ld.global.f32 %x, [%i];\nld.global.f32 %y, [%i+4];\nld.global.f32 %z, [%i+8];\n{fetch}\nst.global.f32 [%o], %f0;\nret;\n}}\n"
    )
}

#[test]
fn each_texel_of_a_cube_is_found_by_its_direction() {
    const SIZE: usize = 4;
    let texels: Vec<f32> = (0..2 * 6 * SIZE * SIZE).map(|n| n as f32 * 0.5 - 7.0).collect();
    let mut directions = Vec::new();
    for face in 0..6 {
        for y in 0..SIZE {
            for x in 0..SIZE {
                let [s, t] = [x, y].map(|at| (2.0 * at as f32 + 1.0) / SIZE as f32 - 1.0);
                // The length of the direction has no influence.
                directions.extend(direction(face, s, t).map(|part| part * 2.5));
            }
        }
    }
    let threads = (6 * SIZE * SIZE) as u32;
    let run = |fetch: &str, depth: u32, expected: &[f32]| {
        let texels = bytes(&texels[..SIZE * SIZE * depth as usize]);
        let kernel = Kernel::of(&cube_kernel(fetch)).sizes(1, threads);
        let kernel = kernel.image(Dtype::F32, texels, image(SIZE as u32, SIZE as u32, depth));
        kernel.input(&bits(&directions)).output(&bits(expected)).holds();
    };
    let one = "tex.cube.v4.f32.f32 {%f0, _, _, _}, [%h, {%x, %y, %z, %z}];";
    run(one, 6, &texels[..96]);
    let cube_of = |thread: usize| if thread / 32 % 2 == 1 { 96 } else { 0 };
    let layered: Vec<f32> = (0..96).map(|thread| texels[cube_of(thread) + thread]).collect();
    run(
        "tex.acube.v4.f32.f32 {%f0, _, _, _}, [%h, {%layer, %x, %y, %z}];",
        12,
        &layered,
    );
    // A layer beyond the last cube is the last cube.
    let beyond: Vec<f32> = (0..96).map(|thread| texels[96 + thread]).collect();
    let fetch = "add.u32 %layer, %layer, 1;\ntex.acube.v4.f32.f32 {%f0, _, _, _}, [%h, {%layer, %x, %y, %z}];";
    run(fetch, 12, &beyond);
}

/// A sampler that differs from the texture in filter, address mode and coordinates.
#[test]
fn sampler_replaces_the_sampling_of_the_texture() {
    let text = ".version 8.0\n.target sm_80, texmode_independent\n.address_size 64\n\
        .entry k(.param .u64 pic, .param .u64 sampler, .param .u64 out) {\n.reg .b64 %h, %s, %o;\n.reg .b32 %t;\n.reg .f32 %x, %f<4>;\n\
        ld.param.u64 %h, [pic];\nld.param.u64 %s, [sampler];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %o, %t, 4, %o;\n\
        cvt.rn.f32.u32 %x, %t;\nmul.f32 %x, %x, 0f3d800000;\ntex.1d.v4.f32.f32 {%f0, _, _, _}, [%h, %s, {%x}];\nst.global.f32 [%o], %f0;\nret;\n}\n";
    let texels: Vec<f32> = (0..8).map(|n| (n * n) as f32).collect();
    let sampler = Texture {
        address_mode: AddressMode::Wrap,
        normalized_coords: true,
        linear_filter: true,
        ..image(1, 1, 1)
    };
    // Thread t samples at t / 16 of the image, that is at texel t / 2: half way between two texels for even t.
    let texel = |n: usize| texels[n % 8];
    let expected: Vec<f32> = (0..32)
        .map(|t| match t % 2 {
            0 => (texel(t / 2 + 7) + texel(t / 2)) / 2.0,
            _ => texel(t / 2),
        })
        .collect();
    let kernel = Kernel::of(text).image(Dtype::F32, bytes(&texels), image(8, 1, 1));
    let kernel = kernel.image(Dtype::F32, bytes(&[0.0]), sampler);
    kernel.output(&bits(&expected)).holds();
}

const REFERENCES: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .global .u32 before = 77;\n.global .texref pic;\n.global .samplerref smooth;\n.global .surfref target;\n.tex .u32 old;\n\
    .entry k(.param .u64 out) {\n.reg .b64 %o, %h;\n.reg .b32 %t, %r, %i;\n.reg .f32 %x, %y, %f<4>;\n\
    ld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %o, %t, 16, %o;\n\
    and.b32 %r, %t, 7;\nshr.u32 %i, %t, 3;\ncvt.rn.f32.u32 %x, %r;\ncvt.rn.f32.u32 %y, %i;\n\
    tex.2d.v4.f32.f32 {%f0, _, _, _}, [pic, {%x, %y}];\nst.global.f32 [%o], %f0;\n\
    mov.u64 %h, pic;\ntex.2d.v4.f32.s32 {%f0, _, _, _}, [%h, {%r, %i}];\nst.global.f32 [%o+4], %f0;\n\
    tex.2d.v4.f32.f32 {%f0, _, _, _}, [pic, smooth, {%x, %y}];\nst.global.f32 [%o+8], %f0;\n\
    txq.width.b32 %r, [old];\nsuq.width.b32 %i, [target];\nmad.lo.u32 %r, %r, 1000, %i;\nld.global.u32 %i, [before];\nadd.u32 %r, %r, %i;\n\
    st.global.u32 [%o+12], %r;\nmul.lo.u32 %i, %t, 4;\nsust.b.1d.b32.trap [target, {%i}], %t;\nret;\n}\n";

#[test]
fn references_of_the_module_name_the_images_of_the_host() {
    let texels: Vec<f32> = (0..32).map(|n| (n * 3 % 16) as f32).collect();
    let at = |x: usize, y: usize| texels[8 * y + x];
    let smooth = Texture {
        linear_filter: true,
        ..image(1, 1, 1)
    };
    let mut expected = Vec::new();
    for t in 0..32 {
        let (x, y) = (t % 8, t / 8);
        // Between the four texels around the corner of texel (x, y), clamped at the edge.
        let [left, above] = [x, y].map(|at: usize| at.saturating_sub(1));
        let mean = (at(left, above) + at(x, above) + at(left, y) + at(x, y)) / 4.0;
        expected.extend([
            at(x, y).to_bits(),
            at(x, y).to_bits(),
            mean.to_bits(),
            3 * 1000 + 32 + 77,
        ]);
    }
    let written: Vec<u8> = (0..32u32).flat_map(u32::to_le_bytes).collect();
    let kernel = Kernel::of(REFERENCES).output(&expected);
    let kernel = kernel.reference("pic", bytes(&texels), None, image(8, 4, 1));
    let kernel = kernel.reference("smooth", bytes(&[0.0]), None, smooth);
    let kernel = kernel.reference("old", bytes(&[0.0; 3]), None, image(3, 1, 1));
    let kernel = kernel.reference("target", vec![0; 128], Some(&written), image(32, 1, 1));
    kernel.holds();
}

/// A kernel that samples `[pic, smp, {t / 16 - 1/2}]` in thread t. The module initialises `smp` with `fields`.
fn with_sampler(fields: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80, texmode_independent\n.address_size 64\n.global .texref pic;\n.global .samplerref smp = {{{fields}}};\n\
         .entry k(.param .u64 out) {{\n.reg .b64 %o, %s;\n.reg .b32 %t;\n.reg .f32 %x, %f<4>;\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n\
         mad.wide.u32 %o, %t, 8, %o;\ncvt.rn.f32.u32 %x, %t;\nfma.rn.f32 %x, %x, 0f3d800000, 0fbf000000;\n\
         tex.1d.v4.f32.f32 {{%f0, _, _, _}}, [pic, smp, {{%x}}];\nst.global.f32 [%o], %f0;\n\
         mov.u64 %s, smp;\ntex.1d.v4.f32.f32 {{%f0, _, _, _}}, [pic, %s, {{%x}}];\nst.global.f32 [%o+4], %f0;\nret;\n}}\n"
    )
}

/// Thread t samples an image of 8 texels at texel (t - 8) / 2. Its coordinate is (t - 8) / 16 of the width.
#[test]
fn initialised_sampler_has_the_modes_of_its_fields() {
    let texels: Vec<f32> = (0..8).map(|n| (n * n + 1) as f32).collect();
    let inside = |at: i32| texels[at as usize];
    // CUDA programming guide: coordinate x becomes frac(x) if floor(x) is even, else 1 - frac(x). Here in sixteenths of the width.
    let mirrored = |t: i32| {
        let (turn, part) = ((t - 8).div_euclid(16), (t - 8).rem_euclid(16));
        let at = if turn % 2 == 0 { part } else { 16 - part };
        inside((at / 2).min(7))
    };
    let border = |at: i32| if (0..8).contains(&at) { inside(at) } else { 0.0 };
    let nearest = |rule: &dyn Fn(i32) -> f32| (0..32).map(|t: i32| rule((t - 8).div_euclid(2))).collect::<Vec<f32>>();
    let cases = [
        (
            "addr_mode_0 = wrap, filter_mode = nearest",
            nearest(&|at| inside(at.rem_euclid(8))),
        ),
        ("addr_mode_0=mirror,addr_mode_1=mirror", (0..32).map(mirrored).collect()),
        (
            "filter_mode=nearest, addr_mode_0=clamp_to_edge",
            nearest(&|at| inside(at.clamp(0, 7))),
        ),
        ("addr_mode_0=clamp_to_border", nearest(&border)),
        // A place between two texels is their mean. Place (t - 8) / 2 is half way between two centres for even t.
        (
            "addr_mode_0=wrap, filter_mode=linear",
            (0..32)
                .map(|t: i32| match t % 2 {
                    0 => (inside(((t - 8) / 2 - 1).rem_euclid(8)) + inside(((t - 8) / 2).rem_euclid(8))) / 2.0,
                    _ => inside((t - 8).div_euclid(2).rem_euclid(8)),
                })
                .collect(),
        ),
        // Coordinates from -1/2 to 3/2 count texels: the first and the second one, clamped.
        (
            "addr_mode_0=clamp_to_edge, force_unnormalized_coords=1",
            (0..32).map(|t| inside(if t < 24 { 0 } else { 1 })).collect(),
        ),
    ];
    let picture = Texture {
        normalized_coords: true,
        // The sampler replaces both.
        address_mode: AddressMode::Border,
        linear_filter: true,
        ..image(8, 1, 1)
    };
    for (fields, expected) in cases {
        // Through the name and through a register.
        let expected: Vec<f32> = expected.into_iter().flat_map(|value: f32| [value, value]).collect();
        let kernel = Kernel::of(&with_sampler(fields)).reference("pic", bytes(&texels), None, picture);
        kernel.output(&bits(&expected)).holds();
    }
}
