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

/// Returns the register count of each kernel of a text, by name, if it can be lowered.
fn allocated(text: &str) -> HashMap<String, u32> {
    let module = warpwave_ptx::compile(text).unwrap_or_else(|findings| panic!("{}", findings[0].render("text", text)));
    let entries = module.entries.into_iter();
    let registers = |entry: warpwave_ptx::Entry| {
        Some((
            entry.name.clone(),
            entry.program().as_ref().ok()?.requirements().registers,
        ))
    };
    entries.filter_map(registers).collect()
}

/// Finds the entry of a source-level kernel name: the same name, or a mangled one that contains it.
fn of_kernel(allocated: &HashMap<String, u32>, kernel: &str) -> Option<u32> {
    let mangled = format!("{}{kernel}", kernel.len());
    let is_meant = |name: &str| name == kernel || name.starts_with("_Z") && name.contains(&mangled);
    allocated
        .iter()
        .find(|(name, _)| is_meant(name))
        .map(|(_, &count)| count)
}

#[test]
fn corpus_occupancy_matches_the_vendor_in_nine_rows_of_ten() {
    let csv = fs::read_to_string(corpus().join("ptxas.csv")).unwrap();
    let mut texts: HashMap<String, Option<HashMap<String, u32>>> = HashMap::new();
    let (mut rows, mut same_warps, mut near, mut unknown) = (0, 0, 0, 0);
    for line in csv.lines().skip(1) {
        let [set, file, kernel, target, registers, ..] = line.split(',').collect::<Vec<_>>()[..] else {
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
fn kernels_with_system_calls_have_the_vendors_register_count() {
    // `ptxas.csv`, version 13.5: 24 registers each, though the code around the call needs far fewer.
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
    let module = warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    module.entries[0].program().clone().unwrap()
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
    let module = warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    let needs = module.entries[0].program().as_ref().unwrap().requirements();
    assert!(needs.registers <= 255, "{}", needs.registers);
    // Two registers hold the address, and at most 253 hold values. Each of the others has a word.
    assert!(
        (4 * (VALUES - 253)..=4 * VALUES).contains(&needs.local_bytes),
        "{}",
        needs.local_bytes
    );
}
