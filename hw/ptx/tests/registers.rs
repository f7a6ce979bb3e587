//! Registers per thread against the vendor's assembler, for the kernels of the corpus.
//!
//! `testbench/corpus/ptxas.csv` holds the output of ptxas 13.5 (12.9 for the NVRTC texts) for each kernel and target. Two
//! versions of ptxas differ by up to 18 registers. So the test compares the number of warps that fit on an SM.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbench/corpus")
}

/// Returns a text of the corpus, wherever it is stored. Some texts are not stored.
fn text(path: &str) -> Option<String> {
    let elsewhere = fs::read_to_string(corpus().join("elsewhere.txt")).unwrap();
    let stored = elsewhere
        .lines()
        .find_map(|line| line.strip_prefix(path)?.strip_prefix(' '));
    let file = match stored {
        Some(there) => corpus().join("../..").join(there),
        None => corpus().join("ptx").join(path),
    };
    fs::read_to_string(file).ok()
}

/// Returns the warps that fit in 65,536 registers in four sub-cores, at most 64. Registers per thread come in units of 8.
fn warps(registers: u32) -> u32 {
    (4 * (16_384 / (32 * registers.max(1).next_multiple_of(8)))).min(64)
}

/// Registers and spilled bytes of a thread.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Needs {
    registers: u32,
    spilled: u32,
}

impl Needs {
    fn of(program: &warpwave_isa::program::Program) -> Needs {
        let needs = program.requirements();
        let variables = needs
            .all_variables()
            .filter(|variable| variable.space == warpwave_isa::space::Space::Local);
        let variables = variables.map(|variable| variable.offset + variable.bytes).max();
        Needs {
            registers: needs.registers,
            spilled: needs.local_bytes - variables.unwrap_or(0),
        }
    }
}

/// Returns the needs of each kernel of a text, by name, if it can be lowered.
fn allocated(text: &str) -> HashMap<String, Needs> {
    let module = warpwave_ptx::compile(text).unwrap_or_else(|findings| panic!("{}", findings[0].render("text", text)));
    let entries = module.entries.into_iter();
    let needs = |entry: warpwave_ptx::Entry| Some((entry.name.clone(), Needs::of(entry.program().as_ref().ok()?)));
    entries.filter_map(needs).collect()
}

/// Finds the entry of a source-level kernel name: the same name, or a mangled one that contains it.
fn of_kernel(allocated: &HashMap<String, Needs>, kernel: &str) -> Option<Needs> {
    let mangled = format!("{}{kernel}", kernel.len());
    let is_meant = |name: &str| name == kernel || name.starts_with("_Z") && name.contains(&mangled);
    allocated
        .iter()
        .find(|(name, _)| is_meant(name))
        .map(|(_, &needs)| needs)
}

/// Kernels with a stack: recursion, calls through pointers, and the arguments of `printf`.
const STACK: [&str; 3] = ["call_recursive", "call_virtual", "hello_printf"];

#[test]
fn corpus_occupancy_matches_the_vendor_in_nine_rows_of_ten() {
    let csv = fs::read_to_string(corpus().join("ptxas.csv")).unwrap();
    let mut texts: HashMap<String, Option<HashMap<String, Needs>>> = HashMap::new();
    let (mut rows, mut same_warps, mut near, mut unknown) = (0, 0, 0, 0);
    let mut spills = Vec::new();
    for line in csv.lines().skip(1) {
        let [set, file, kernel, target, registers, spill_store, ..] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("malformed row `{line}`");
        };
        let path = format!("{set}/{file}");
        let kernels = texts
            .entry(path.clone())
            .or_insert_with_key(|path| Some(allocated(&text(path)?)));
        let Some(ours) = kernels.as_ref().and_then(|kernels| of_kernel(kernels, kernel)) else {
            unknown += 1;
            continue;
        };
        // The stack of recursion and calls through pointers is no spill, and its size is a limit of the model.
        if ours.spilled > 0 && spill_store == "0" && !STACK.contains(&kernel) {
            spills.push(format!("{path} {kernel} {target}: {} bytes", ours.spilled));
        }
        let ours = ours.registers;
        let vendors: u32 = registers.parse().unwrap();
        rows += 1;
        same_warps += u32::from(warps(ours) == warps(vendors));
        near += u32::from(ours.abs_diff(vendors) <= 8);
        if warps(ours) != warps(vendors) || ours.abs_diff(vendors) > 8 {
            println!("{ours:4} for {vendors:3}: {path} {kernel} {target}");
        }
    }
    println!("{rows} rows: occupancy equal in {same_warps}, within 8 in {near}; {unknown} not stored or not lowered");
    assert!(rows >= 650, "{rows} rows");
    assert!(
        100 * same_warps >= 90 * rows,
        "occupancy equal in {same_warps} of {rows}"
    );
    assert!(100 * near >= 92 * rows, "within 8 in {near} of {rows}");
    assert!(spills.is_empty(), "spilled here only: {spills:#?}");
}

/// Returns a kernel of a warp that multiplies tiles: `m` by `n` products of 16 x 8 for each of `k` steps of 16. It computes all
/// shared addresses before its loop. The loop loads all operands, then multiplies.
fn matrix_product(m: usize, n: usize, k: usize) -> String {
    let loads = k * (m + n / 2);
    let list = |name: &str, first: usize, length: usize| {
        let names: Vec<String> = (first..first + length).map(|at| format!("%{name}{at}")).collect();
        names.join(", ")
    };
    let zeros: String = (0..4 * m * n)
        .map(|at| format!("mov.f32 %f{at}, 0f00000000;\n"))
        .collect();
    let addresses: String = (0..loads)
        .map(|at| format!("xor.b32 %a{at}, %base, {};\n", 64 * (at + 1)))
        .collect();
    let fragments: String = (0..loads)
        .map(|at| {
            let words = list("r", 4 * at, 4);
            format!("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{words}}}, [%a{at}];\n")
        })
        .collect();
    let product = |at: usize| {
        let (step, row, column) = (at / (m * n), at / n % m, at % n);
        let first = 4 * step * (m + n / 2);
        let a = list("r", first + 4 * row, 4);
        let b = list("r", first + 4 * m + 2 * column, 2);
        let c = list("f", 4 * (at % (m * n)), 4);
        format!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};\n")
    };
    let products: String = (0..k * m * n).map(product).collect();
    let stores: String = (0..4 * m * n)
        .map(|at| format!("st.global.f32 [%p+{}], %f{at};\n", 4 * at))
        .collect();
    format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p, .param .u32 steps)\n{{\n.shared .align 128 .b8 tile[32768];\n\
         .reg .f32 %f<{}>;\n.reg .b32 %r<{}>;\n.reg .b32 %a<{loads}>;\n.reg .b32 %lane, %base, %step, %steps;\n.reg .pred %more;\n\
         .reg .b64 %p;\nld.param.u64 %p, [p];\nld.param.u32 %steps, [steps];\nmov.u32 %lane, %tid.x;\nshl.b32 %lane, %lane, 4;\n\
         mov.u32 %base, tile;\nadd.s32 %base, %base, %lane;\nmov.u32 %step, 0;\n{zeros}{addresses}again:\nbar.sync 0;\n{fragments}{products}\
         bar.sync 0;\nadd.s32 %step, %step, 1;\nsetp.lt.s32 %more, %step, %steps;\n@%more bra again;\n{stores}ret;\n}}\n",
        4 * m * n,
        4 * loads,
    )
}

/// Tiles by rows, columns and steps, with the registers that ptxas 12.9 gives them for sm_80. It spills nothing.
const VENDORS_MATRIX_PRODUCTS: [(usize, usize, usize, u32); 4] =
    [(4, 4, 4, 124), (4, 8, 2, 168), (4, 8, 4, 224), (2, 4, 32, 196)];

#[test]
fn matrix_products_need_no_more_registers_than_with_the_vendor() {
    for (m, n, k, vendor) in VENDORS_MATRIX_PRODUCTS {
        let text = matrix_product(m, n, k);
        let needs = of_kernel(&allocated(&text), "k").unwrap();
        println!("{m} x {n} x {k}: {needs:?} for {vendor}");
        assert_eq!(needs.spilled, 0, "{m} x {n} x {k}");
        assert!(needs.registers <= vendor + 8, "{m} x {n} x {k}: {needs:?} for {vendor}");
    }
}

#[test]
fn loads_before_their_sums_need_few_registers() {
    const LOADS: usize = 4000;
    let loads: String = (0..LOADS)
        .map(|n| format!("ld.global.f32 %f{n}, [%p+{}];\n", 4 * n))
        .collect();
    let sums: String = (0..LOADS)
        .map(|n| format!("fma.rn.f32 %sum, %f{n}, %f{n}, %sum;\n"))
        .collect();
    let text = format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p)\n{{\n.reg .f32 %f<{LOADS}>, %sum;\n.reg .b64 %p;\n\
         ld.param.u64 %p, [p];\nmov.f32 %sum, 0f00000000;\n{loads}{sums}st.global.f32 [%p], %sum;\nret;\n}}\n"
    );
    let needs = of_kernel(&allocated(&text), "k").unwrap();
    // ptxas 12.9 for sm_80: 82 registers, nothing spilled.
    assert!(needs.registers <= 82 && needs.spilled == 0, "{needs:?}");
}

/// Returns a kernel that loads `n` values through `%p`, then uses them, then stores sixteen sums through `%q`. `load` gives the text for the
/// index of a value. Each of `uses` does so too, and goes over all values.
fn loads_first(n: usize, load: impl Fn(usize) -> String, uses: &[&dyn Fn(usize) -> String]) -> String {
    let zeros: String = (0..16).map(|at| format!("mov.f32 %s{at}, 0f00000000;\n")).collect();
    let loads: String = (0..n).map(|at| load(at) + "\n").collect();
    let uses: String = uses.iter().flat_map(|text| (0..n).map(|at| text(at) + "\n")).collect();
    let stores: String = (0..16)
        .map(|at| format!("st.global.f32 [%q+{}], %s{at};\n", 4 * at))
        .collect();
    format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p, .param .u64 q)\n{{\n.reg .f32 %f<{n}>, %s<16>;\n.reg .b64 %p, %q;\n\
         .reg .b32 %t;\n.reg .pred %c;\nld.param.u64 %p, [p];\nld.param.u64 %q, [q];\nmov.u32 %t, %tid.x;\n\
         setp.lt.u32 %c, %t, 20;\n{zeros}{loads}{uses}{stores}ret;\n}}\n"
    )
}

/// Returns a load of value `n` with these qualifiers, 128 bytes behind the one before.
fn load(qualifiers: &str, n: usize) -> String {
    format!("ld{qualifiers}.f32 %f{n}, [%p+{}];", 128 * n)
}

#[test]
fn loads_far_before_their_uses_are_not_spilled() {
    let sum = |n: usize| format!("fma.rn.f32 %s0, %f{n}, %f{n}, %s0;");
    let second_sum = |n: usize| format!("fma.rn.f32 %s1, %f{n}, 0f40000000, %s1;");
    let sixteen_sums = |n: usize| format!("fma.rn.f32 %s{0}, %f{n}, %f{n}, %s{0};", n % 16);
    let guarded = |n: usize| format!("mov.f32 %f{n}, 0f3f800000;\n@%c {}", load(".global", n));
    let plain = |n: usize| load(".global", n);
    let volatile = |n: usize| load(".volatile.global", n);
    // Registers of ptxas 13.5 for sm_80. It spills nothing.
    for (case, vendor, text) in [
        ("one sum", 31, loads_first(600, plain, &[&sum])),
        ("two sums", 32, loads_first(600, plain, &[&sum, &second_sum])),
        ("sixteen sums", 32, loads_first(600, plain, &[&sixteen_sums])),
        ("guarded loads", 30, loads_first(600, guarded, &[&sum])),
        ("volatile loads", 31, loads_first(600, volatile, &[&sum])),
    ] {
        let needs = of_kernel(&allocated(&text), "k").unwrap();
        println!("{case}: {needs:?} for {vendor}");
        assert!(needs.registers <= vendor + 8 && needs.spilled == 0, "{case}: {needs:?}");
    }
}

#[test]
fn each_of_thousands_of_loads_and_sums_is_one_instruction() {
    let sum = |n: usize| format!("fma.rn.f32 %s0, %f{n}, %f{n}, %s0;");
    let code = |n| {
        let text = loads_first(n, |n| load(".global", n), &[&sum]);
        compiled(&text).code().len()
    };
    // Spilling would add a store and a load for each value without a register.
    assert_eq!(code(4000) - code(1000), 2 * 3000);
}

#[test]
fn accumulators_of_a_warp_group_stay_live_together() {
    let path = corpus().join("../scenarios/lessons/peak-flops/peak-flops-tensor.ptx");
    let kernels = allocated(&fs::read_to_string(path).unwrap());
    for kernel in ["f16_2", "f16_10"] {
        let needs = of_kernel(&kernels, kernel).unwrap();
        // A product of 64 x 256 has 128 sums in each thread. One instruction reads and writes all of them.
        assert!(needs.registers > 128 && needs.spilled == 0, "{kernel}: {needs:?}");
    }
}

#[test]
fn kernels_with_system_calls_have_the_vendors_register_count() {
    // `ptxas.csv`, version 13.5: 24 registers each, though the code around the call needs far fewer.
    for (path, kernel) in [
        ("nvcc13.5-sm_80/hello_printf.ptx", "hello_printf"),
        ("nvcc13.5-sm_80/assert_trap.ptx", "assert_index"),
        ("clang19-sm_80/hello_printf.ptx", "hello_printf"),
        ("clang19-sm_80/assert_trap.ptx", "assert_index"),
    ] {
        let ours = of_kernel(&allocated(&text(path).unwrap()), kernel);
        assert_eq!(ours.map(|needs| needs.registers), Some(24), "{path}");
    }
    let trap = of_kernel(
        &allocated(&text("nvcc13.5-sm_80/assert_trap.ptx").unwrap()),
        "trap_on_nan",
    );
    assert!(trap.unwrap().registers < 16, "`trap` is no call: {trap:?}");
}

/// Compiles a text, and returns the program of its first kernel.
fn compiled(text: &str) -> Arc<warpwave_isa::program::Program> {
    let module = warpwave_ptx::compile(text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", text)));
    module.entries[0].program().clone().unwrap()
}

/// Returns a kernel with a directive. It reads 24 words and writes them in reverse order, so all are live at once.
fn reversal(directive: &str) -> Arc<warpwave_isa::program::Program> {
    let loads: String = (0..24)
        .map(|n| format!("ld.volatile.global.u32 %r{n}, [%p+{}];\n", 4 * n))
        .collect();
    let stores: String = (0..24)
        .map(|n| format!("st.volatile.global.u32 [%p+{}], %r{n};\n", 4 * (23 - n)))
        .collect();
    let text = format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p) {directive}\n{{\n.reg .b32 %r<24>;\n.reg .b64 %p;\n\
         ld.param.u64 %p, [p];\n{loads}{stores}ret;\n}}\n"
    );
    compiled(&text)
}

#[test]
fn values_beyond_the_register_limit_are_spilled() {
    let free = reversal("");
    // 24 values and a 64-bit address.
    assert!(
        (26..=32).contains(&free.requirements().registers),
        "{}",
        free.requirements().registers
    );
    assert_eq!(free.requirements().local_bytes, 0);
    let tight = reversal(".maxnreg 16");
    assert!(
        tight.requirements().registers <= 16,
        "{}",
        tight.requirements().registers
    );
    // At least 24 + 2 - 16 words are spilled.
    assert!(
        tight.requirements().local_bytes >= 40,
        "{}",
        tight.requirements().local_bytes
    );
}

#[test]
fn thousands_of_live_values_are_spilled() {
    const VALUES: u32 = 5000;
    // Volatile accesses keep their order, so all values are live between the loads and the stores.
    let loads: String = (0..VALUES)
        .map(|n| format!("ld.volatile.global.u32 %r{n}, [%p+{}];\n", 4 * n))
        .collect();
    let stores: String = (0..VALUES)
        .map(|n| format!("st.volatile.global.u32 [%p+{}], %r{n};\n", 4 * n))
        .collect();
    let text = format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p)\n{{\n.reg .b32 %r<{VALUES}>;\n.reg .b64 %p;\n\
         ld.param.u64 %p, [p];\n{loads}{stores}ret;\n}}\n"
    );
    let program = compiled(&text);
    let needs = program.requirements();
    assert!(needs.registers <= 255, "{}", needs.registers);
    // Two registers hold the address, and at most 253 hold values. Each of the others has a word.
    assert!(
        (4 * (VALUES - 253)..=4 * VALUES).contains(&needs.local_bytes),
        "{}",
        needs.local_bytes
    );
}

/// Returns the needs of the kernel with at most 24 registers, without some passes.
fn needs_without(text: &str, passes: &[&str]) -> Needs {
    let skip = |set: warpwave_ptx::PassSet, pass: &&str| set.with(pass).expect("an optional pass");
    let options = warpwave_ptx::Options {
        max_registers: Some(24),
        skipped_passes: passes.iter().fold(warpwave_ptx::PassSet::EMPTY, skip),
        ..warpwave_ptx::Options::default()
    };
    let module = warpwave_ptx::load_with(text, options, |_| true).expect("it is PTX");
    Needs::of(module.entries[0].program().as_ref().expect("it is lowered"))
}

#[test]
fn constant_needs_local_memory_only_without_its_pass() {
    // 60 constants stay live through a loop. Each is an operand of a funnel shift, whose other operand is a constant too.
    let moves: String = (0..60)
        .map(|n| format!("mov.b32 %r{n}, {};\n", 1_000_003 * (n + 1)))
        .collect();
    let steps: String = (0..60)
        .map(|n| {
            format!(
                "shf.l.wrap.b32 %r61, %r{n}, %r{}, %r62;\nxor.b32 %r63, %r63, %r61;\n",
                (n + 1) % 60
            )
        })
        .collect();
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.entry k(.param .u64 q) {{\n.reg .b64 %d;\n.reg .b32 %r<64>;\n.reg .pred %p;\n\
         ld.param.u64 %d, [q];\n{moves}mov.u32 %r62, %tid.x;\nmov.u32 %r63, 0;\nL:\n{steps}sub.u32 %r62, %r62, 1;\n\
         setp.ne.u32 %p, %r62, 0;\n@%p bra L;\nst.global.u32 [%d], %r63;\nret;\n}}\n"
    );
    // Propagation of copies makes an operand of each constant, so no constant would be live.
    assert_eq!(needs_without(&text, &["copy_prop"]).spilled, 0);
    assert!(needs_without(&text, &["copy_prop", "remat"]).spilled > 0);
}

/// Returns a kernel that computes 300 addresses before a loop, each by `address` from `%b`. Each turn loads from all of them.
fn addresses_before_a_loop(address: impl Fn(usize) -> String) -> String {
    let (addresses, loads): (String, String) = (0..300)
        .map(|n| {
            (
                address(n),
                format!("ld.shared.f32 %x, [%a{n}];\nadd.f32 %sum, %sum, %x;\n"),
            )
        })
        .unzip();
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p, .param .u32 steps) {{\n.shared .align 16 .b8 tile[32768];\n\
         .reg .f32 %sum, %x;\n.reg .b32 %a<300>, %b, %step, %steps;\n.reg .pred %more;\n.reg .b64 %p;\n\
         ld.param.u64 %p, [p];\nld.param.u32 %steps, [steps];\nmov.u32 %b, %tid.x;\nmov.u32 %step, 0;\nmov.f32 %sum, 0f00000000;\n\
         {addresses}again:\nbar.sync 0;\n{loads}add.s32 %step, %step, 1;\nsetp.lt.s32 %more, %step, %steps;\n@%more bra again;\n\
         st.global.f32 [%p], %sum;\nret;\n}}\n"
    )
}

#[test]
fn addresses_of_one_register_are_computed_before_their_uses_and_not_spilled() {
    // ptxas 13.5 spills none of them.
    let xor = addresses_before_a_loop(|n| format!("xor.b32 %a{n}, %b, {};\n", 64 * (n + 1)));
    let product = addresses_before_a_loop(|n| format!("mul.lo.s32 %a{n}, %b, {};\n", 2 * n + 3));
    let sum = addresses_before_a_loop(|n| format!("mad.lo.s32 %a{n}, %b, {}, %steps;\n", 2 * n + 3));
    for text in [xor, product, sum] {
        let needs = of_kernel(&allocated(&text), "k").unwrap();
        assert_eq!(needs.spilled, 0, "{text}");
    }
}

/// Returns a kernel that multiplies `n` pairs of tiles in shared memory. It keeps one generic address for each tile, as nvcc does.
fn products_of_tiles(n: usize) -> String {
    let addresses: String = (0..2 * n)
        .map(|at| format!("add.s64 %d{at}, %base, {};\n", 32 * (at + 1)))
        .collect();
    let (a, b, c) = (
        "{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}",
        "{%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}",
        "{%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}",
    );
    let products: String = (0..n)
        .map(|at| {
            let (left, right) = (2 * at, 2 * at + 1);
            format!(
                "wmma.load.a.sync.aligned.row.m16n16k16.f16 {a}, [%d{left}], %stride;\n\
                 wmma.load.b.sync.aligned.col.m16n16k16.f16 {b}, [%d{right}], %stride;\n\
                 wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {c}, {a}, {b}, {c};\n"
            )
        })
        .collect();
    let zeros: String = (0..8).map(|at| format!("mov.f32 %c{at}, 0f00000000;\n")).collect();
    format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p, .param .u32 steps)\n{{\n.shared .align 32 .b8 tiles[49152];\n\
         .reg .f32 %c<8>;\n.reg .b32 %a<8>, %b<8>, %thread, %warp, %stride, %step, %steps;\n.reg .pred %more;\n.reg .b64 %p, %window, %all, %base, %of_warp, %d<{}>;\n\
         ld.param.u64 %p, [p];\nld.param.u32 %steps, [steps];\nmov.u32 %thread, %tid.x;\nshr.u32 %warp, %thread, 5;\n\
         mul.wide.u32 %of_warp, %warp, 288;\nmov.u64 %window, tiles;\ncvta.shared.u64 %all, %window;\nadd.s64 %base, %all, %of_warp;\n\
         mov.u32 %stride, 144;\nmov.u32 %step, 0;\n{zeros}{addresses}again:\nbar.sync 0;\n{products}\
         add.u32 %step, %step, 1;\nsetp.lt.u32 %more, %step, %steps;\n@%more bra again;\nst.global.f32 [%p], %c0;\nret;\n}}\n",
        2 * n
    )
}

#[test]
fn tiles_at_constant_distances_share_the_address_of_a_lane() {
    // ptxas 13.5 needs 30 registers for 20 pairs.
    let few = of_kernel(&allocated(&products_of_tiles(4)), "k").unwrap();
    let many = of_kernel(&allocated(&products_of_tiles(20)), "k").unwrap();
    assert_eq!((few.spilled, many.spilled), (0, 0));
    assert!(
        many.registers <= few.registers + 8 && many.registers <= 48,
        "{few:?}, {many:?}"
    );
}
