//! Registers per thread against the vendor's assembler, for every kernel of the corpus that it was asked about.
//!
//! `testbench/corpus/ptxas.csv` has what ptxas 13.5 (12.9 for the NVRTC texts) says of each kernel and target. The count is no constant
//! of nature: two versions of the tool differ by up to 18. What matters is how many warps fit on an SM.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbench/corpus")
}

/// The text of a file of the corpus, wherever it is stored; some are not.
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

/// Warps that 65,536 registers in four quarters hold, of 64: registers come in eights a thread.
fn warps(registers: u32) -> u32 {
    (4 * (16_384 / (32 * registers.max(1).next_multiple_of(8)))).min(64)
}

/// Registers of each kernel of a text, by name, as far as they can be lowered.
fn allocated(text: &str) -> HashMap<String, u32> {
    let module = warpwave_ptx::compile(text).unwrap_or_else(|findings| panic!("{}", findings[0].render("text", text)));
    let entries = module.entries.into_iter();
    let registers = |entry: warpwave_ptx::Entry| Some((entry.name, entry.program.ok()?.requirements().registers));
    entries.filter_map(registers).collect()
}

/// The entry that a source's name stands for: itself, or a mangled one with the name and its length in it.
fn of_kernel(allocated: &HashMap<String, u32>, kernel: &str) -> Option<u32> {
    let mangled = format!("{}{kernel}", kernel.len());
    let is_meant = |name: &str| name == kernel || name.starts_with("_Z") && name.contains(&mangled);
    allocated
        .iter()
        .find(|(name, _)| is_meant(name))
        .map(|(_, &count)| count)
}

#[test]
fn corpus_registers_give_the_vendors_occupancy_in_nine_rows_of_ten() {
    let csv = fs::read_to_string(corpus().join("ptxas.csv")).unwrap();
    let mut texts: HashMap<String, Option<HashMap<String, u32>>> = HashMap::new();
    let (mut rows, mut same_warps, mut near, mut unknown) = (0, 0, 0, 0);
    for line in csv.lines().skip(1) {
        let [set, file, kernel, target, registers, ..] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("`{line}` is no row");
        };
        let path = format!("{set}/{file}");
        let kernels = texts
            .entry(path.clone())
            .or_insert_with_key(|path| Some(allocated(&text(path)?)));
        let Some(ours) = kernels.as_ref().and_then(|kernels| of_kernel(kernels, kernel)) else {
            unknown += 1;
            continue;
        };
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
    assert!(100 * near >= 85 * rows, "within 8 in {near} of {rows}");
}

#[test]
fn kernels_that_print_or_assert_have_the_registers_that_the_vendor_gives_them() {
    // `ptxas.csv`, version 13.5: 24 of each of these, of which the code beside the call needs far fewer.
    for (path, kernel) in [
        ("nvcc13.5-sm_80/hello_printf.ptx", "hello_printf"),
        ("nvcc13.5-sm_80/assert_trap.ptx", "assert_index"),
        ("clang19-sm_80/hello_printf.ptx", "hello_printf"),
        ("clang19-sm_80/assert_trap.ptx", "assert_index"),
    ] {
        let ours = of_kernel(&allocated(&text(path).unwrap()), kernel);
        assert_eq!(ours, Some(24), "{path}");
    }
    let trap = of_kernel(
        &allocated(&text("nvcc13.5-sm_80/assert_trap.ptx").unwrap()),
        "trap_on_nan",
    );
    assert!(trap.unwrap() < 16, "`trap` is no call: {trap:?}");
}

/// A kernel that reads 24 words and writes them in reverse, so that all are wanted at once, under a directive.
fn reversal(directive: &str) -> warpwave_isa::program::Program {
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
    let module = warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    module.entries[0].program.clone().unwrap()
}

#[test]
fn more_values_than_registers_allowed_some_live_in_local_memory() {
    let free = reversal("");
    // 24 values and the address.
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
    // At least 24 + 2 - 16 of them go.
    assert!(
        tight.requirements().local_bytes >= 40,
        "{}",
        tight.requirements().local_bytes
    );
}
