//! Runs every PTX form without addresses on special and random operands. Machine and reference must leave the same registers.
//!
//! Each block has operands of one kind: limits of the types, random bits, halves, singles, singles near the limits, small integers,
//! halves with all exponents.
//! `WARPWAVE_PLAN=DIR cargo test -p warpwave --test families forms_with_special` writes the kernels as plans with the model's results.
//! `measure.py DIR/*` then compares them with those of a real GPU.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use warpwave::bench::{Bench, Options};
use warpwave::lockstep;
use warpwave::plan::{self, Plan};
use warpwave_components::preset;

use super::Kernel;
use super::listed::listed_forms;

const THREADS: u32 = 128;
/// Blocks: one for each kind of operands.
const KINDS: u32 = 7;
/// Input of a thread in 4-byte words: 16 of 32 bits, 16 of 16 bits, 16 of 64 bits.
const WORDS: usize = 16 + 8 + 32;
/// Kernels in one folder of plans: a kernel that the driver refuses stops the others of its folder alone.
const PLANS: usize = 20;

/// Parts of forms that give other values on another machine, or need other threads: states of the machine, addresses, barriers.
const EXCLUDED: [&str; 26] = [
    "[",
    "%envreg3",
    "%pm0",
    "%reserved_smem",
    "%nwarpid",
    "%total_smem",
    "createpolicy",
    "isspacep",
    "cvta",
    "mapa",
    "getctarank",
    "bar.",
    "barrier",
    "trap",
    "brkpt",
    "exit",
    "nanosleep",
    "setmaxnreg",
    "alloca",
    "stacksave",
    "stackrestore",
    "griddepcontrol",
    "clusterlaunch",
    "activemask",
    "pmevent",
    "cp.async",
];

#[test]
fn forms_with_special_operands_give_the_same_on_machine_and_reference() {
    let forms: Vec<String> = listed_forms()
        .into_iter()
        .filter(|form| !EXCLUDED.iter().any(|part| form.contains(part)))
        .collect();
    assert!(forms.len() > 1000, "{} forms", forms.len());
    let folder = std::env::var_os("WARPWAVE_PLAN").map(PathBuf::from);
    let mut faults = Vec::new();
    for (n, some) in forms.chunks(PLANS).enumerate() {
        let kernels: Vec<Kernel> = some
            .iter()
            .enumerate()
            .map(|(at, form)| named(form, n * PLANS + at))
            .collect();
        let folder = folder.as_ref().map(|folder| folder.join(format!("{n:03}")));
        if let Some(folder) = &folder {
            let plans: Vec<Plan> = kernels.iter().map(|kernel| Plan::of(&kernel.0).unwrap()).collect();
            plan::write(folder, &plans).expect("the folder can be written");
            fs::write(folder.join("forms.txt"), some.join("\n")).expect("the folder can be written");
        }
        let ends = kernels.iter().map(|kernel| differs(kernel, folder.as_deref()));
        faults.extend(
            some.iter()
                .zip(ends)
                .filter_map(|(form, end)| Some(format!("{form}: {}", end.err()?))),
        );
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// The kernel of a form. Its results are the registers that the form names.
fn named(form: &str, n: usize) -> Kernel {
    let registers = registers(form);
    let bytes: u32 = registers.iter().map(|register| register.stride()).sum();
    // The results of each thread begin aligned to the widest register.
    let bytes = bytes.next_multiple_of(registers.first().map_or(4, |register| register.stride()));
    let out = vec![0; (bytes * THREADS * KINDS / 4) as usize];
    let mut kernel = Kernel::of(&text(form, &registers, bytes))
        .sizes(KINDS, THREADS)
        .input(&input())
        .input(&out);
    kernel.0.name = format!("f{n:04}");
    kernel
}

/// Runs a kernel on machine and reference. With a folder, writes the results for its plan.
fn differs(kernel: &Kernel, folder: Option<&Path>) -> Result<(), String> {
    let config = preset::load("tiny", &[]).unwrap().config;
    let mut bench = Bench::new(&kernel.0, config).map_err(|error| format!("{error}: {error:?}"))?;
    let reference = lockstep::reference(&bench, 1_000_000).map_err(|(_, error)| error.to_string())?;
    let options = Options {
        threads: 1,
        max_cycles: Some(1_000_000),
    };
    let run = bench.run(options, &mut |_| true);
    if let Some((_, error)) = run.stopped {
        return Err(error.to_string());
    }
    if let Some(folder) = folder {
        let (buffer, address) = bench.data().nth(1).expect("two buffers");
        let bytes = lockstep::bytes_of(buffer, address, bench.gpu().storage());
        let name = format!("{}.{}.model", kernel.0.name, buffer.name);
        fs::write(folder.join(name), bytes).expect("the folder can be written");
    }
    lockstep::difference(&bench, &reference).map_or(Ok(()), |difference| Err(difference.to_string()))
}

/// A register that a form names, such as `r3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Register {
    class: char,
    number: u32,
}

impl Register {
    /// Bytes of the register among the results of a thread.
    fn stride(self) -> u32 {
        match self.class {
            'd' => 8,
            'q' => 16,
            _ => 4,
        }
    }

    /// Stores the register at an offset of the thread's results.
    fn store(self, at: u32) -> String {
        let Register { class, number } = self;
        match class {
            'r' => format!("st.global.u32 [%o+{at}], %r{number};\n"),
            'h' => format!("cvt.u32.u16 %t, %h{number};\nst.global.u32 [%o+{at}], %t;\n"),
            'b' => format!("cvt.u32.u8 %t, %b{number};\nst.global.u32 [%o+{at}], %t;\n"),
            'd' => format!("st.global.u64 [%o+{at}], %d{number};\n"),
            'q' => format!("st.global.b128 [%o+{at}], %q{number};\n"),
            _ => format!("selp.u32 %t, 1, 0, %p{number};\nst.global.u32 [%o+{at}], %t;\n"),
        }
    }
}

/// The registers of a form, the widest first, so that each is aligned among the results.
fn registers(form: &str) -> Vec<Register> {
    let named: BTreeSet<Register> = form
        .split('%')
        .skip(1)
        .filter_map(|rest| {
            let class = rest.chars().next().filter(|class| "rhbdqp".contains(*class))?;
            // A descriptor is an address, which differs from machine to machine.
            if class == 'd' && form.starts_with("wgmma") {
                return None;
            }
            let digits: String = rest[1..].chars().take_while(char::is_ascii_digit).collect();
            let number = digits.parse().ok()?;
            Some(Register { class, number })
        })
        .collect();
    let mut named: Vec<Register> = named.into_iter().collect();
    named.sort_by_key(|register| std::cmp::Reverse(register.stride()));
    named
}

/// The text of a kernel: loads every register from the input, runs the form, stores `registers`.
fn text(form: &str, registers: &[Register], bytes: u32) -> String {
    let loads: String = (0..16)
        .map(|n| {
            format!(
                "ld.global.u32 %r{n}, [%i+{}];\nld.global.u16 %h{n}, [%i+{}];\nld.global.u64 %d{n}, [%i+{}];\n",
                4 * n,
                64 + 2 * n,
                96 + 8 * n
            )
        })
        .collect();
    let mut derived: String = (0..4).map(|n| format!("cvt.u8.u32 %b{n}, %r{n};\n")).collect();
    if form.contains("%q") {
        let joined = (0..4).map(|n| format!("mov.b128 %q{n}, {{%d{n}, %d{}}};\n", n + 4));
        derived = [".reg .b128 %q<4>;\n".to_owned(), derived, joined.collect()].concat();
    }
    let mut at = 0;
    let stores: String = registers
        .iter()
        .map(|register| {
            at += register.stride();
            register.store(at - register.stride())
        })
        .collect();
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .pred %p<8>;\n.reg .b8 %b<4>;\n.reg .b16 %h<16>;\n.reg .b32 %r<16>, %t, %s;\n.reg .b64 %d<16>, %i, %o;\n\
         .shared .align 1024 .b8 buffer[8192];\n\
         mov.u32 %t, %ctaid.x;\nmov.u32 %s, %tid.x;\nmad.lo.u32 %t, %t, {THREADS}, %s;\n\
         ld.param.u64 %o, [out];\nmad.wide.u32 %o, %t, {bytes}, %o;\nld.param.u64 %i, [in];\nmad.wide.u32 %i, %t, {}, %i;\n\
         {loads}{derived}setp.lt.s32 %p1, %r15, 0;\nsetp.lt.s32 %p2, %r14, 0;\nsetp.lt.s32 %p3, %r13, 0;\n\
         {}{form}\n{}{stores}ret;\n}}\n",
        4 * WORDS,
        prepared(form),
        if form.starts_with("wgmma") {
            "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        } else {
            ""
        },
    )
}

/// What a form needs beside its operands: a full mask of lanes, metadata that are legal, matrices in shared memory.
fn prepared(form: &str) -> String {
    let mask = match form.split('.').next() {
        Some("shfl") => "mov.u32 %r5, 0xffffffff;\n",
        Some("vote") => "mov.u32 %r1, 0xffffffff;\nmov.u32 %r2, 0xffffffff;\n",
        Some("match" | "redux") => "mov.u32 %r3, 0xffffffff;\n",
        Some("elect") => "mov.u32 %r2, 0xffffffff;\n",
        _ => "",
    };
    // Each nibble selects two of four elements, or one of two.
    let metadata = if form.contains(".sp") {
        "mov.u32 %r5, 0x4e4e4e4e;\n"
    } else {
        ""
    };
    if !form.starts_with("wgmma") {
        return format!("{mask}{metadata}");
    }
    // A thread writes 64 bytes. The matrices begin at the start and in the middle: 8 rows of 16 bytes are one core matrix.
    let tile: String = (0..8)
        .map(|n| format!("st.shared.u64 [%t+{}], %d{};\n", 8 * n, n + 8))
        .collect();
    format!(
        "{metadata}mov.u32 %t, %tid.x;\nmov.u32 %s, buffer;\nmad.lo.u32 %t, %t, 64, %s;\n{tile}bar.sync 0;\nfence.proxy.async;\n\
         mov.u32 %t, buffer;\nshr.u32 %t, %t, 4;\ncvt.u64.u32 %d1, %t;\nor.b64 %d1, %d1, 0x1000080000;\nadd.u64 %d2, %d1, 256;\n\
         mov.u32 %t, %ctaid.x;\nsetp.ne.s32 %p1, %t, 1;\nwgmma.fence.sync.aligned;\n"
    )
}

/// The operands of all threads.
fn input() -> Vec<u32> {
    let mut state = 1;
    (0..KINDS)
        .flat_map(|kind| (0..THREADS).map(move |_| kind))
        .flat_map(|kind| {
            let singles: Vec<u32> = (0..16).map(|_| single(kind, &mut state)).collect();
            let halves: Vec<u32> = (0..8)
                .map(|_| half(kind, &mut state) | half(kind, &mut state) << 16)
                .collect();
            let doubles: Vec<u32> = (0..16)
                .map(|_| double(kind, &mut state))
                .flat_map(|bits| [bits as u32, (bits >> 32) as u32])
                .collect();
            [singles, halves, doubles].concat()
        })
        .collect()
}

/// Random bits (SplitMix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// A random floating-point number: its exponent is in a range.
fn float(state: &mut u64, mantissa: u32, bias: u64, exponents: std::ops::Range<u64>) -> u64 {
    let bits = random(state);
    let exponent = bias - exponents.end + 1 + (bits >> 8) % (exponents.end - exponents.start);
    let sign = bits & 1;
    let width = if mantissa == 52 {
        63
    } else if mantissa == 23 {
        31
    } else {
        15
    };
    sign << width | exponent << mantissa | random(state) & ((1 << mantissa) - 1)
}

/// A half of any exponent below 2^6, with zeros and subnormals.
fn wide_half(state: &mut u64) -> u64 {
    match random(state) % 8 {
        0 => 0,
        1 => random(state) & 0x83ff,
        _ => float(state, 10, 20, 0..20),
    }
}

const SINGLES: [u32; 40] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc0_0000,
    0x7f80_0001,
    0xffff_ffff,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0xbfc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x4f00_0000,
    0xcf00_0000,
    0x4eff_ffff,
    0x4f80_0000,
    0x4f7f_ffff,
    0x437f_8000,
    0x42ff_0000,
    0xc300_8000,
    0x477f_ff00,
    0x4780_0000,
    0x477f_efff,
    0x3300_0000,
    0x7fff_ffff,
    0x3380_0001,
];

const HALVES: [u32; 28] = [
    0, 0x8000, 1, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x7bff, 0xfbff, 0x7c00,
    0xfc00, 0x7e00, 0xfe00, 0x7c01, 0xffff, 0x3800, 0x7f80, 0xff80, 0x7f7f, 0x3f80, 0x7fff, 0x0080, 0x5bff,
];

const DOUBLES: [u64; 26] = [
    0,
    1 << 63,
    1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    u64::MAX,
    0x3fe0_0000_0000_0000,
    0xc004_0000_0000_0000,
    0x41df_ffff_ffc0_0000,
    0x41e0_0000_0000_0000,
    0xc1e0_0000_0000_0000,
    0x43e0_0000_0000_0000,
    0x47ef_ffff_e000_0000,
    0x47ef_ffff_f000_0000,
    0x3690_0000_0000_0000,
    0x40ef_fdff_ffff_ffff,
    0x3810_0000_0000_0000,
];

fn pick<T: Copy>(from: &[T], state: &mut u64) -> T {
    from[(random(state) % from.len() as u64) as usize]
}

/// 32 bits: a single, or a pair of halves.
fn single(kind: u32, state: &mut u64) -> u32 {
    let pair = |state: &mut u64, one: fn(&mut u64) -> u64| (one(state) | one(state) << 16) as u32;
    match kind {
        0 if random(state).is_multiple_of(4) => pick(&HALVES, state) | pick(&HALVES, state) << 16,
        0 => pick(&SINGLES, state),
        1 => random(state) as u32,
        2 => pair(state, |state| float(state, 10, 15, 0..8)),
        3 => float(state, 23, 127, 0..12) as u32,
        4 => float(state, 23, 254, 0..254) as u32,
        5 => (random(state) % 80) as u32,
        _ => pair(state, wide_half),
    }
}

/// 16 bits: an f16, or a bf16.
fn half(kind: u32, state: &mut u64) -> u32 {
    match kind {
        0 => pick(&HALVES, state),
        1 => random(state) as u32 & 0xffff,
        2 => float(state, 10, 15, 0..8) as u32,
        3 => float(state, 7, 127, 0..12) as u32,
        4 => float(state, 10, 30, 0..30) as u32,
        5 => (random(state) % 80) as u32,
        _ => wide_half(state) as u32,
    }
}

/// 64 bits: a double, or two singles, or four halves.
fn double(kind: u32, state: &mut u64) -> u64 {
    match kind {
        0 => pick(&DOUBLES, state),
        1 => random(state),
        2 => (0..4).fold(0, |bits, n| bits | float(state, 10, 15, 0..8) << (16 * n)),
        3 => float(state, 52, 1023, 0..12),
        4 => float(state, 52, 2046, 0..2046),
        5 => random(state) % 80,
        _ => (0..4).fold(0, |bits, n| bits | wide_half(state) << (16 * n)),
    }
}
