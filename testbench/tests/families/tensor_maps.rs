//! Tensor maps that a kernel builds or changes, im2col copies, multicasts, and reductions of tiles. Plain Rust computes the values.

use half::f16;
use warpwave::scenario::{Arg, Tiles};
use warpwave_components::proto::launch::TrapKind;
use warpwave_isa::exec::bulk::{Element, Im2col};

use super::Kernel;

/// A tensor map of the buffer with this index.
fn tiles(buffer: usize, shape: &[u32], tile: &[u32], element: Element) -> Tiles {
    Tiles {
        buffer,
        shape: shape.to_vec(),
        tile: tile.to_vec(),
        swizzle: 0,
        element,
        steps: Vec::new(),
        nan_fill: false,
        im2col: None,
    }
}

/// Waits for phase `parity` of the mbarrier at `%bar`.
fn wait(label: &str, parity: &str) -> String {
    format!("{label}:\nmbarrier.try_wait.parity.shared.b64 %done, [%bar], {parity};\n@!%done bra {label};\n")
}

const HEAD: &str = ".version 8.6\n.target sm_90a\n.address_size 64\n.global .align 64 .b8 own_map[128];\n";

const COPY: &str = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s]";

/// A kernel whose thread 0 runs `build`, then copies the tile at (8, 4) by the map at `map`. Each of 12 threads writes a word of the
/// tile to `out`. `%i` is the tensor, `%p` a buffer for the map, `%m` zeros in shared memory.
fn with_map(build: &str, publish: &str, map: &str, bytes: u32) -> String {
    format!(
        "{HEAD}.entry k(.param .u64 in, .param .u64 maps, .param .u64 out) {{\n\
         .reg .b32 %t, %s, %m, %bar, %r;\n.reg .b64 %i, %p, %o, %g;\n.reg .pred %first, %done, %writes;\n\
         .shared .align 128 .b8 zeros[128];\n.shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 mbar;\n\
         mov.u32 %t, %tid.x;\nld.param.u64 %i, [in];\nld.param.u64 %p, [maps];\nld.param.u64 %o, [out];\n\
         mov.u32 %m, zeros;\nmov.u32 %s, tile;\nmov.u32 %bar, mbar;\nmov.u64 %g, own_map;\n\
         mad.lo.u32 %r, %t, 4, %m;\nst.shared.b32 [%r], 0;\nbar.sync 0;\nsetp.eq.u32 %first, %t, 0;\n\
         @!%first bra built;\n{build}built:\nbar.warp.sync -1;\n{publish}\
         @!%first bra issued;\nmbarrier.init.shared.b64 [%bar], 1;\nfence.mbarrier_init.release.cluster;\n\
         mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {bytes};\n{COPY}, [{map}, {{8, 4}}], [%bar];\n\
         issued:\nbar.sync 0;\n{}\
         setp.lt.u32 %writes, %t, 12;\nmad.lo.u32 %r, %t, 4, %s;\nmad.wide.u32 %o, %t, 4, %o;\n@!%writes ret;\n\
         ld.shared.b32 %r, [%r];\nst.global.b32 [%o], %r;\nret;\n}}\n",
        wait("poll", "0"),
    )
}

/// The replacements of a map of 10 by 6 words, with rows 48 bytes apart and tiles of 4 by 3 words.
fn replacements(at: &str, space: &str, element: u32, fill: u32, step: u32) -> String {
    let fields = [
        (".rank", "b32", "1".to_owned()),
        (".elemtype", "b32", element.to_string()),
        (".interleave_layout", "b32", "0".to_owned()),
        (".swizzle_mode", "b32", "0".to_owned()),
        (".fill_mode", "b32", fill.to_string()),
        (".global_dim", "b32", "0, 10".to_owned()),
        (".global_dim", "b32", "1, 6".to_owned()),
        (".global_stride", "b64", "0, 48".to_owned()),
        (".box_dim", "b32", "0, 4".to_owned()),
        (".box_dim", "b32", "1, 3".to_owned()),
        (".element_stride", "b32", "0, 1".to_owned()),
        (".element_stride", "b32", format!("1, {step}")),
        (".global_address", "b64", "%i".to_owned()),
    ];
    let replace = |(field, ty, value): &(&str, &str, String)| {
        format!("tensormap.replace.tile{field}{space}.b1024.{ty} [{at}], {value};\n")
    };
    fields.iter().map(replace).collect()
}

const PUBLISH: &str = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [PLACE], [%m], 128;\n\
    fence.proxy.tensormap::generic.acquire.gpu [PLACE], 128;\n";

/// 6 rows of 12 words. The map covers the first 10.
fn tensor() -> Vec<u32> {
    (0..72).map(|n| n * 3 + 1000).collect()
}

/// The tile at (8, 4): its words, with `fill` outside of the tensor. Rows are `step` apart.
fn expected_tile(fill: u32, step: usize) -> Vec<u32> {
    let rows = 3usize.div_ceil(step);
    let word = |row: usize, column: usize| match (4 + row * step, 8 + column) {
        (y, x) if y < 6 && x < 10 => tensor()[12 * y + x],
        _ => fill,
    };
    let mut words: Vec<u32> = (0..rows)
        .flat_map(|row| (0..4).map(move |column| word(row, column)))
        .collect();
    words.resize(12, 0);
    words
}

#[test]
fn map_built_in_shared_memory_and_copied_to_global_memory_gives_its_tile() {
    for (element, fill, word) in [
        (2, 0, 0),
        (3, 0, 0),
        (7, 0, 0),
        (7, 1, 0x7fff_ffff),
        (11, 1, 0x7fff_ffff),
    ] {
        // The second place crosses a line.
        for place in ["%p", "%p+64", "%g"] {
            let build = replacements("%m", ".shared::cta", element, fill, 1);
            let at = if place == "%p+64" { "%i" } else { place };
            let publish = PUBLISH.replace("PLACE", place);
            let publish = match place {
                "%p+64" => format!("{publish}add.u64 %i, %p, 64;\n"),
                _ => publish,
            };
            let text = with_map(&build, &publish, at, 48);
            let kernel = Kernel::of(&text).input(&tensor()).input(&[0; 64]);
            kernel.output(&expected_tile(word, 1)).holds();
        }
    }
}

#[test]
fn map_changed_in_global_memory_is_fetched_by_each_copy() {
    let fence = "fence.proxy.tensormap::generic.release.gpu;\nfence.proxy.tensormap::generic.acquire.gpu [%g], 128;\n";
    for step in [1, 2] {
        for (at, space, map) in [("%g", ".global", "own_map"), ("%g", "", "%g")] {
            let bytes = 16 * 3u32.div_ceil(step);
            let text = with_map(&replacements(at, space, 2, 0, step), fence, map, bytes);
            let kernel = Kernel::of(&text).input(&tensor()).input(&[0; 64]);
            kernel.output(&expected_tile(0, step as usize)).holds();
        }
    }
}

#[test]
fn bytes_that_are_no_map_trap() {
    for map in ["%p", "own_map"] {
        let text = with_map("", "", map, 48);
        let line = 1 + text.lines().position(|line| line.starts_with(COPY)).unwrap() as u32;
        let kernel = Kernel::of(&text).input(&tensor()).input(&[0; 64]).output(&[0; 12]);
        kernel.traps(TrapKind::OutOfBounds, line);
    }
}

/// The columns of a convolution with a 3 by 3 filter and a border of one pixel. Each offset of the filter has one channel vector per
/// output pixel.
#[test]
fn im2col_copies_give_the_columns_of_a_padded_convolution() {
    const SHAPE: [usize; 4] = [2, 4, 5, 4];
    let [images, height, width, channels] = SHAPE;
    let pixels = images * height * width;
    let input: Vec<u32> = (0..(pixels * channels) as u32).map(|n| n * 7 + 5).collect();
    let at = |image: usize, y: isize, x: isize, channel: usize| {
        let is_inside = (0..height as isize).contains(&y) && (0..width as isize).contains(&x);
        let pixel = || (image * height + y as usize) * width + x as usize;
        if is_inside {
            input[pixel() * channels + channel]
        } else {
            0
        }
    };
    let mut expected = Vec::new();
    for offset in 0..9 {
        let (r, s) = (offset / 3, offset % 3);
        for pixel in 0..pixels {
            let (image, y, x) = (pixel / (height * width), pixel / width % height, pixel % width);
            let (y, x) = (y as isize + r - 1, x as isize + s - 1);
            expected.extend((0..channels).map(|channel| at(image, y, x, channel)));
        }
    }
    let bytes = 4 * pixels * channels;
    let text = format!(
        "{HEAD}.entry k(.param .u64 in, .param .align 64 .b8 map[128], .param .u64 out) {{\n\
         .reg .b32 %t, %s, %bar, %r, %x, %n, %parity, %at;\n.reg .b16 %h<2>;\n.reg .b64 %o, %q;\n.reg .pred %first, %done, %more;\n\
         .shared .align 128 .b8 column[{bytes}];\n.shared .align 8 .b64 mbar;\n\
         mov.u32 %t, %tid.x;\nmov.u32 %s, column;\nmov.u32 %bar, mbar;\nld.param.u64 %o, [out];\nmad.wide.u32 %o, %t, 4, %o;\n\
         setp.eq.u32 %first, %t, 0;\n@%first mbarrier.init.shared.b64 [%bar], 1;\nbar.sync 0;\nmov.u32 %n, 0;\nmov.u32 %parity, 0;\n\
         next:\n@!%first bra issued;\nmbarrier.arrive.expect_tx.shared.b64 _, [%bar], {bytes};\n\
         rem.u32 %r, %n, 3;\ncvt.u16.u32 %h0, %r;\ndiv.u32 %r, %n, 3;\ncvt.u16.u32 %h1, %r;\n\
         cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%s], [map, {{0, -1, -1, 0}}], [%bar], {{%h0, %h1}};\n\
         issued:\n{}xor.b32 %parity, %parity, 1;\nmov.u32 %x, %t;\n\
         store:\nmad.lo.u32 %at, %x, 4, %s;\nld.shared.b32 %r, [%at];\nst.global.b32 [%o], %r;\nadd.u64 %o, %o, 128;\nadd.u32 %x, %x, 32;\n\
         setp.lt.u32 %more, %x, {};\n@%more bra store;\nbar.sync 0;\nadd.u32 %n, %n, 1;\nsetp.lt.u32 %more, %n, 9;\n@%more bra next;\nret;\n}}\n",
        wait("poll", "%parity"),
        pixels * channels
    );
    let map = Tiles {
        im2col: Some(Im2col {
            lower: [-1, -1, 0],
            upper: [-1, -1, 0],
        }),
        tile: vec![pixels as u32, channels as u32],
        ..tiles(0, &SHAPE.map(|n| n as u32), &[], Element::U32)
    };
    let kernel = Kernel::of(&text).input(&input).argument(Arg::TensorMap(map));
    kernel.output(&expected).holds();
}

/// An im2col copy needs an im2col map, and a copy of a tile must not have one.
#[test]
fn map_of_the_other_mode_traps() {
    let text = format!(
        "{HEAD}.entry k(.param .u64 in, .param .align 64 .b8 map[128]) {{\n.reg .b32 %s, %bar;\n.reg .b16 %h;\n\
         .shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 mbar;\nmov.u32 %s, tile;\nmov.u32 %bar, mbar;\nmov.b16 %h, 0;\n\
         cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%s], [map, {{0, 0, 0}}], [%bar], {{%h}};\nret;\n}}\n"
    );
    let map = tiles(0, &[2, 2, 4], &[1, 1, 4], Element::U32);
    let kernel = Kernel::of(&text)
        .sizes(1, 1)
        .input(&[1; 16])
        .argument(Arg::TensorMap(map));
    kernel.traps(TrapKind::OutOfBounds, 13);
}

/// Block 0 of the cluster sends 512 bytes to the blocks of the mask. Every block of the mask waits for them at its own mbarrier.
fn multicast(copy: &str, params: &str, mask: u32, blocks: u32) -> String {
    format!(
        "{HEAD}.entry k(.param .u64 in, {params}.param .u64 out) .explicitcluster .reqnctapercluster {blocks}, 1, 1 {{\n\
         .reg .b32 %t, %s, %bar, %r, %rank, %far, %farbar;\n.reg .b16 %mask;\n.reg .b64 %i, %o;\n.reg .pred %p, %q, %done;\n\
         .shared .align 128 .b8 line[512];\n.shared .align 8 .b64 mbar;\n\
         mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\nmov.u32 %s, line;\nmov.u32 %bar, mbar;\nld.param.u64 %i, [in];\nld.param.u64 %o, [out];\n\
         mov.b16 %mask, {mask};\nmad.lo.u32 %r, %t, 16, %s;\nst.shared.b32 [%r], 0;\nst.shared.b32 [%r+4], 0;\nst.shared.b32 [%r+8], 0;\nst.shared.b32 [%r+12], 0;\n\
         setp.eq.u32 %p, %t, 0;\n@%p mbarrier.init.shared.b64 [%bar], 1;\n@%p mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 512;\n\
         fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
         mapa.shared::cluster.u32 %far, %s, 1;\nmapa.shared::cluster.u32 %farbar, %bar, 1;\n\
         setp.eq.u32 %q, %rank, 0;\nand.pred %p, %p, %q;\n@%p {copy}\n\
         shr.u32 %r, {mask}, %rank;\nand.b32 %r, %r, 1;\nsetp.eq.u32 %p, %r, 0;\n@%p bra through;\n{}through:\n\
         mad.lo.u32 %t, %t, 16, %s;\nmad.wide.u32 %o, %rank, 512, %o;\nsub.u32 %r, %t, %s;\ncvt.u64.u32 %i, %r;\nadd.u64 %o, %o, %i;\n\
         ld.shared.b128 %q0, [%t];\nst.global.b128 [%o], %q0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}}\n",
        wait("poll", "0")
    )
    .replace(".reg .b16 %mask;", ".reg .b16 %mask;\n.reg .b128 %q0;")
}

/// The words of each block of the mask; zeros in the others.
fn received(input: &[u32], mask: u32, blocks: u32) -> Vec<u32> {
    let words = |rank: u32| {
        input
            .iter()
            .map(move |&word| if mask >> rank & 1 == 1 { word } else { 0 })
    };
    (0..blocks).flat_map(words).collect()
}

#[test]
fn multicast_delivers_to_every_block_of_the_mask() {
    let input: Vec<u32> = (0..128).map(|n| n * 11 + 3).collect();
    let plain = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%i], 512, [%bar], %mask;";
    let tensor = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster \
                  [%s], [map, {0, 0}], [%bar], %mask;";
    for mask in [0b01, 0b10, 0b11] {
        let expected = received(&input, mask, 2);
        let text = multicast(plain, "", mask, 2);
        let counts = Kernel::of(&text).sizes(2, 32).input(&input).output(&expected).counted();
        // 512 bytes are 16 sectors, whatever the number of blocks.
        assert_eq!(counts.sum("l1", "bulk_sectors_read"), Some(16), "mask {mask:#b}");
        let text = multicast(tensor, ".param .align 64 .b8 map[128], ", mask, 2);
        let map = tiles(0, &[8, 16], &[8, 16], Element::U32);
        let kernel = Kernel::of(&text)
            .sizes(2, 32)
            .input(&input)
            .argument(Arg::TensorMap(map));
        kernel.output(&expected).holds();
    }
    // The fill outside of the tensor goes to every block too.
    let text = multicast(tensor, ".param .align 64 .b8 map[128], ", 0b11, 2);
    let map = tiles(0, &[6, 16], &[8, 16], Element::U32);
    let inside: Vec<u32> = (0..128).map(|n| if n < 96 { input[n] } else { 0 }).collect();
    let kernel = Kernel::of(&text)
        .sizes(2, 32)
        .input(&input)
        .argument(Arg::TensorMap(map));
    kernel.output(&received(&inside, 0b11, 2)).holds();
}

#[test]
fn bulk_copy_to_another_block_completes_on_its_mbarrier() {
    let input: Vec<u32> = (0..128).map(|n| n * 5 + 1).collect();
    let remote = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%far], [%i], 512, [%farbar];";
    let text = multicast(remote, "", 0b10, 2);
    let kernel = Kernel::of(&text).sizes(2, 32).input(&input);
    kernel.output(&received(&input, 0b10, 2)).holds();
}

#[test]
fn copy_from_the_shared_memory_of_another_block_to_global_memory_traps() {
    let remote = "cp.async.bulk.global.shared::cta.bulk_group [%i], [%far], 512;";
    let text = multicast(remote, "", 0, 2);
    let line = 1 + text.lines().position(|line| line.contains(remote)).unwrap() as u32;
    let kernel = Kernel::of(&text).sizes(2, 32).input(&[0; 128]).output(&[0; 256]);
    kernel.traps(TrapKind::OutOfBounds, line);
}

#[test]
fn mask_beyond_the_cluster_traps() {
    let plain = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%i], 512, [%bar], %mask;";
    let text = multicast(plain, "", 0b101, 2);
    let line = 1 + text.lines().position(|line| line.contains(plain)).unwrap() as u32;
    let kernel = Kernel::of(&text).sizes(2, 32).input(&[0; 128]).output(&[0; 256]);
    kernel.traps(TrapKind::OutOfBounds, line);
}

/// A kernel that reduces a tile of shared memory into the tensor at (x, y). The tile has 512 bytes; word t is `in[t]`.
fn reduction(operation: &str, [x, y]: [i32; 2]) -> String {
    format!(
        "{HEAD}.entry k(.param .u64 tensor, .param .u64 in, .param .align 64 .b8 map[128]) {{\n\
         .reg .b32 %t, %s, %at, %r;\n.reg .b64 %i;\n.reg .pred %first;\n.shared .align 128 .b8 tile[512];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %s, tile;\nld.param.u64 %i, [in];\nmad.lo.u32 %at, %t, 4, %s;\nmad.wide.u32 %i, %t, 4, %i;\n\
         ld.global.b32 %r, [%i];\nst.shared.b32 [%at], %r;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.eq.u32 %first, %t, 0;\n@!%first ret;\n\
         cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group [map, {{{x}, {y}}}], [%s];\n\
         cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}}\n"
    )
}

#[test]
fn reduction_of_a_tile_changes_the_elements_inside_the_tensor() {
    // 8 rows of 20 words; tiles of 8 rows of 16 words.
    let before: Vec<u32> = (0..160).map(|n| n * 977 % 251).collect();
    let tile: Vec<u32> = (0..128).map(|n| n * 613 % 239).collect();
    type Operation = fn(u32, u32) -> u32;
    let cases: [(&str, Operation); 6] = [
        ("add", |a, b| a.wrapping_add(b)),
        ("min", |a, b| a.min(b)),
        ("max", |a, b| a.max(b)),
        ("inc", |a, b| if a >= b { 0 } else { a + 1 }),
        ("and", |a, b| a & b),
        ("xor", |a, b| a ^ b),
    ];
    for (name, operation) in cases {
        let at = [7i32, -2];
        let mut after = before.clone();
        for (n, &operand) in tile.iter().enumerate() {
            let (x, y) = (at[0] + n as i32 % 16, at[1] + n as i32 / 16);
            if (0..20).contains(&x) && (0..8).contains(&y) {
                let word = &mut after[(y * 20 + x) as usize];
                *word = operation(*word, operand);
            }
        }
        let map = tiles(0, &[8, 20], &[8, 16], Element::U32);
        let kernel = Kernel::of(&reduction(name, at)).sizes(1, 128);
        let kernel = kernel.changed(&before, &after).input(&tile);
        kernel.argument(Arg::TensorMap(map)).holds();
    }
}

#[test]
fn reduction_of_halves_adds_each_half() {
    let pair =
        |low: f32, high: f32| u32::from(f16::from_f32(low).to_bits()) | u32::from(f16::from_f32(high).to_bits()) << 16;
    // 4 rows of 64 halves: 128 bytes a row.
    let before: Vec<u32> = (0..128).map(|n| pair(n as f32, -0.5)).collect();
    let tile: Vec<u32> = (0..128).map(|n| pair(1.5, n as f32)).collect();
    let after: Vec<u32> = (0..128).map(|n| pair(n as f32 + 1.5, n as f32 - 0.5)).collect();
    let map = tiles(0, &[4, 64], &[4, 64], Element::F16);
    let kernel = Kernel::of(&reduction("add", [0, 0])).sizes(1, 128);
    let kernel = kernel.changed(&before, &after).input(&tile);
    kernel.argument(Arg::TensorMap(map)).holds();
    // Halves have no bitwise operations.
    let map = tiles(0, &[4, 64], &[4, 64], Element::F16);
    let text = reduction("or", [0, 0]);
    let line = 1 + text.lines().position(|line| line.starts_with("cp.reduce")).unwrap() as u32;
    let kernel = Kernel::of(&text).sizes(1, 128).input(&before).input(&tile);
    kernel.argument(Arg::TensorMap(map)).traps(TrapKind::OutOfBounds, line);
}

/// The PTX ISA's swizzle of 128 bytes. In shared memory, chunk c of row r is in the place of chunk c xor r mod 8. A chunk has 16 bytes.
#[test]
fn tile_with_a_swizzle_is_stored_from_its_chunks() {
    let (rows, words) = (16, 32);
    let text = format!(
        "{HEAD}.entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128]) {{\n\
         .reg .b32 %t, %s, %r, %n;\n.reg .b64 %i;\n.reg .pred %p;\n.shared .align 1024 .b8 tile[2048];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %s, tile;\nld.param.u64 %i, [in];\n\
         mad.wide.u32 %i, %t, 4, %i;\nld.global.u32 %n, [%i];\nmad.lo.u32 %r, %t, 4, %s;\nst.shared.b32 [%r], %n;\n\
         fence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.ne.u32 %p, %t, 0;\n@%p ret;\n\
         cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [map, {{0, 0}}], [%s];\n\
         cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}}\n"
    );
    let tile: Vec<u32> = (0..rows * words).map(|n| n * 7 + 1).collect();
    let tensor: Vec<u32> = (0..rows * words)
        .map(|n| {
            let (row, chunk, word) = (n / words, n % words / 4, n % 4);
            tile[(row * words + (chunk ^ (row % 8)) * 4 + word) as usize]
        })
        .collect();
    let map = Tiles {
        swizzle: 3,
        ..tiles(0, &[rows, words], &[rows, words], Element::U32)
    };
    let kernel = Kernel::of(&text).sizes(1, rows * words).output(&tensor).input(&tile);
    kernel.argument(Arg::TensorMap(map)).holds();
}

/// A copy of a tile by one thread, to `offset` in shared memory.
fn tile_copy(rank: usize, offset: u32) -> (String, u32) {
    let at = vec!["0"; rank].join(", ");
    let copy = format!(
        "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [map, {{{at}}}], [%bar];"
    );
    let text = format!(
        "{HEAD}.entry k(.param .u64 in, .param .align 64 .b8 map[128]) {{\n.reg .b32 %s, %bar;\n\
         .shared .align 128 .b8 tile[512];\n.shared .align 8 .b64 mbar;\nmov.u32 %s, tile;\nadd.u32 %s, %s, {offset};\n\
         mov.u32 %bar, mbar;\n{copy}\nret;\n}}\n"
    );
    let line = 1 + text.lines().position(|line| line == copy).expect("the copy") as u32;
    (text, line)
}

/// PTX ISA, `cp.async.bulk.tensor`: the tile in shared memory is aligned to 128 bytes, and the instruction has the map's rank.
#[test]
fn tile_at_a_wrong_address_or_of_another_rank_traps() {
    for (rank, offset, kind) in [
        (2, 16, TrapKind::Misaligned),
        (3, 0, TrapKind::OutOfBounds),
        (1, 0, TrapKind::OutOfBounds),
    ] {
        let map = tiles(0, &[4, 4], &[4, 4], Element::U32);
        let (text, line) = tile_copy(rank, offset);
        let kernel = Kernel::of(&text).sizes(1, 1).input(&[1; 16]);
        kernel.argument(Arg::TensorMap(map)).traps(kind, line);
    }
}

/// PTX ISA, `cp.async.bulk`: the size and both addresses are multiples of 16.
#[test]
fn plain_copy_of_a_wrong_size_traps_as_one() {
    let copy = "cp.async.bulk.global.shared::cta.bulk_group [%i], [%s], 24;";
    let text = format!(
        "{HEAD}.entry k(.param .u64 in) {{\n.reg .b32 %s;\n.reg .b64 %i;\n.shared .align 128 .b8 tile[512];\n\
         ld.param.u64 %i, [in];\nmov.u32 %s, tile;\n{copy}\nret;\n}}\n"
    );
    let line = 1 + text.lines().position(|line| line == copy).expect("the copy") as u32;
    Kernel::of(&text)
        .sizes(1, 1)
        .input(&[1; 16])
        .traps(TrapKind::BulkSize, line);
}

#[test]
fn plain_reduction_of_a_wrong_size_or_address_traps() {
    for (size, from, to) in [(10, 0, 0), (16, 4, 0), (16, 0, 4)] {
        let reduction = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%i], [%s], %n;";
        let text = format!(
            "{HEAD}.entry k(.param .u64 in) {{\n.reg .b32 %s, %n;\n.reg .b64 %i;\n.shared .align 128 .b8 tile[512];\n\
             ld.param.u64 %i, [in];\nadd.u64 %i, %i, {to};\nmov.u32 %s, tile;\nadd.u32 %s, %s, {from};\nmov.u32 %n, {size};\n\
             {reduction}\nret;\n}}\n"
        );
        let line = 1 + text.lines().position(|line| line == reduction).expect("the reduction") as u32;
        Kernel::of(&text)
            .sizes(1, 1)
            .input(&[1; 16])
            .traps(TrapKind::Trapped, line);
    }
}

/// A constant address beyond the constants of the module traps, as one in a register does.
#[test]
fn load_beyond_the_constants_traps() {
    let load = "ld.const.u32 %r, [c+16];";
    let text = format!(
        "{HEAD}.const .align 4 .u32 c[4] = {{1, 2, 3, 4}};\n.entry k(.param .u64 in) {{\n.reg .b32 %r;\n.reg .b64 %i;\n\
         ld.param.u64 %i, [in];\n{load}\nst.global.u32 [%i], %r;\nret;\n}}\n"
    );
    let line = 1 + text.lines().position(|line| line == load).expect("the load") as u32;
    Kernel::of(&text)
        .sizes(1, 1)
        .input(&[1; 16])
        .traps(TrapKind::OutOfBounds, line);
}

/// PTX ISA, causality order: a proxy fence on the way orders the stores of other warps before a bulk copy. It stands in the writers before
/// the block barrier, or in the reader after it. Each of four warps stores to one bank, so its store takes 32 passes.
#[test]
fn proxy_fence_on_either_side_of_a_barrier_orders_the_stores_of_other_warps() {
    const FENCE: &str = "fence.proxy.async;\n";
    copy_behind_a_barrier(FENCE, "");
    copy_behind_a_barrier("", FENCE);
}

fn copy_behind_a_barrier(in_writers: &str, in_reader: &str) {
    let text = format!(
        "{HEAD}.entry k(.param .u64 out) {{\n.reg .b32 %t, %lane, %warp, %s, %at, %r;\n.reg .b64 %o;\n.reg .pred %p;\n\
         .shared .align 128 .b8 rows[32768];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %s, rows;\n\
         setp.gt.u32 %p, %t, 127;\n@%p bra copy;\nand.b32 %lane, %t, 31;\nshr.u32 %warp, %t, 5;\n\
         mad.lo.u32 %r, %lane, 4, %warp;\nmad.lo.u32 %at, %r, 128, %s;\nadd.u32 %r, %t, 1;\n\
         st.shared.u32 [%at+16384], %r;\nst.shared.u32 [%at+16388], %r;\nst.shared.u32 [%at+16392], %r;\nst.shared.u32 [%at], %r;\n\
         {in_writers}bar.sync 0;\nret;\n\
         copy:\nsetp.ne.u32 %p, %t, 128;\nbar.sync 0;\n@%p ret;\n{in_reader}\
         cp.async.bulk.global.shared::cta.bulk_group [%o], [%s], 16384;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}}\n"
    );
    // Row 4 * lane + warp begins with the number of its thread, plus 1. Shared memory is zero at first.
    let mut expected = vec![0; 4096];
    (0..128).for_each(|t| expected[(4 * (t % 32) + t / 32) * 32] = t as u32 + 1);
    Kernel::of(&text).sizes(1, 160).output(&expected).holds();
}
