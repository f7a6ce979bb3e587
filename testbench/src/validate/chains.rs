//! Latency and rate of instructions: dependent chains of one warp, and four chains in each of 32 warps.
//!
//! A chain has two lengths. The difference of their times is the cost of the steps between, so start and end cancel out.

use super::kernels::{Timed, sink};
use super::lab::{Spans, slope};
use super::{Lab, Point};
use crate::gpu::{Dims, GpuError};

/// An instruction, or a short sequence, whose result feeds the next one. `#` stands for the number of the chain.
struct Chain {
    name: &'static str,
    /// Register type of the chain: selects its start value, its register and its store.
    kind: Kind,
    step: &'static str,
    /// Instructions that a rate counts for each step.
    counted: f64,
}

#[derive(Clone, Copy)]
enum Kind {
    U32,
    U64,
    F32,
    F64,
    /// A predicate. Its chain compares a 64-bit float.
    Predicate,
}

impl Kind {
    /// Each chain starts with a value of its own: an assembler makes one chain of two that are equal.
    fn start(self) -> &'static str {
        match self {
            Kind::U32 => "add.u32 %r#, %r70, %r71; add.u32 %r#, %r#, #; setp.ne.u32 %p1, %r70, 0;\n",
            Kind::U64 => "add.u32 %r75, %r70, #; cvt.u64.u32 %rd#, %r75; cvt.u64.u32 %rd27, %r71;\n",
            Kind::F32 => "add.u32 %r75, %r70, #; cvt.rn.f32.u32 %f#, %r75;\n",
            Kind::F64 => "add.u32 %r75, %r70, #; cvt.rn.f64.u32 %d#, %r75;\n",
            Kind::Predicate => "add.u32 %r75, %r70, #; cvt.rn.f64.u32 %d#, %r75; setp.lt.f64 %p2, %d#, %d30;\n",
        }
    }

    /// Text before the store.
    fn end(self) -> &'static str {
        match self {
            Kind::Predicate => "selp.u32 %r#, 1, 0, %p2;\n",
            _ => "",
        }
    }

    /// Type of the store, and register.
    fn result(self) -> (&'static str, &'static str) {
        match self {
            Kind::U32 | Kind::Predicate => ("u32", "%r#"),
            Kind::U64 => ("u64", "%rd#"),
            Kind::F32 => ("f32", "%f#"),
            Kind::F64 => ("f64", "%d#"),
        }
    }
}

const fn chain(name: &'static str, kind: Kind, step: &'static str) -> Chain {
    Chain {
        name,
        kind,
        step,
        counted: 1.0,
    }
}

use Kind::{F32, F64, Predicate, U32, U64};

/// Chains by the names of the silicon figures.
const CHAINS: [Chain; 38] = [
    chain("FADD", F32, "add.f32 %f#, %f#, %f70;"),
    chain("FMUL", F32, "mul.f32 %f#, %f#, %f70;"),
    chain("FFMA", F32, "fma.rn.f32 %f#, %f#, %f70, %f71;"),
    chain("FMNMX", F32, "min.f32 %f#, %f#, %f70;"),
    chain("IADD3", U32, "add.u32 %r#, %r#, %r70;"),
    chain("IMAD", U32, "mad.lo.u32 %r#, %r#, %r70, %r71;"),
    chain("LOP3", U32, "lop3.b32 %r#, %r#, %r70, %r71, 0x96;"),
    chain("SHF", U32, "shf.l.wrap.b32 %r#, %r#, %r70, %r71;"),
    chain("IMNMX", U32, "max.u32 %r#, %r#, %r70;"),
    chain("SEL", U32, "selp.u32 %r#, %r#, %r70, %p1;"),
    chain(
        "ISETP then SEL",
        U32,
        "setp.lt.u32 %p2, %r#, %r70; selp.u32 %r#, %r71, %r70, %p2;",
    ),
    chain(
        "FSETP then FSEL",
        F32,
        "setp.lt.f32 %p2, %f#, %f70; selp.f32 %f#, %f70, %f71, %p2;",
    ),
    chain("DSETP", Predicate, "setp.lt.and.f64 %p2, %d#, %d30, %p2;"),
    chain(
        "ISETP then guarded IMAD",
        U32,
        "setp.ge.u32 %p2, %r#, %r70; @%p2 mad.lo.u32 %r#, %r#, %r71, %r70;",
    ),
    chain("POPC", U32, "popc.b32 %r#, %r#;"),
    chain("BREV", U32, "brev.b32 %r#, %r#;"),
    chain("FLO", U32, "bfind.u32 %r#, %r#;"),
    chain("DADD", F64, "add.f64 %d#, %d#, %d30;"),
    chain("DMUL", F64, "mul.f64 %d#, %d#, %d30;"),
    chain("DFMA", F64, "fma.rn.f64 %d#, %d#, %d30, %d30;"),
    chain("HADD2", U32, "add.f16x2 %r#, %r#, %r70;"),
    chain("HMUL2", U32, "mul.f16x2 %r#, %r#, %r70;"),
    chain("HFMA2", U32, "fma.rn.f16x2 %r#, %r#, %r70, %r71;"),
    chain("MUFU.EX2", F32, "ex2.approx.ftz.f32 %f#, %f#;"),
    chain("MUFU.RCP", F32, "rcp.approx.ftz.f32 %f#, %f#;"),
    chain("fast square root", F32, "sqrt.approx.ftz.f32 %f#, %f#;"),
    chain("sine", F32, "sin.approx.ftz.f32 %f#, %f#;"),
    Chain {
        counted: 2.0,
        ..chain("F2I and I2F", U32, "cvt.rn.f32.s32 %f#, %r#; cvt.rzi.s32.f32 %r#, %f#;")
    },
    chain("SHFL", U32, "shfl.sync.bfly.b32 %r#, %r#, 1, 0x1f, -1;"),
    chain(
        "SETP then VOTE",
        U32,
        "setp.ne.u32 %p3, %r#, 0; vote.sync.ballot.b32 %r#, %p3, -1;",
    ),
    chain("MATCH", U32, "match.any.sync.b32 %r#, %r#, -1;"),
    chain("DP4A", U32, "dp4a.u32.u32 %r#, %r#, %r70, %r71;"),
    chain("IADD64", U64, "add.u64 %rd#, %rd#, %rd27;"),
    chain("REDUX", U32, "redux.sync.add.u32 %r#, %r#, -1;"),
    chain("bar.warp.sync", U32, "bar.warp.sync -1;"),
    chain("VIADDMNMX", U32, "add.s32 %r#, %r#, %r70; max.s32 %r#, %r#, %r71;"),
    chain("VIMNMX3", U32, "max.s32 %r#, %r#, %r70; max.s32 %r#, %r#, %r71;"),
    chain("bar.sync", U32, "bar.sync 0;"),
];

/// End of a series with two blocks on each SM.
const TWO_BLOCKS: &str = " in two blocks of each SM";

/// The latency of one step of a chain in one warp, in cycles. Barriers have more warps.
pub(super) fn latency(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let name = point.series.as_str();
    if let Some(ways) = name.strip_prefix("LDS.32") {
        return shared_load(lab, &point.gpu, number(ways).unwrap_or(1));
    }
    if let Some(count) = name.strip_prefix("ldmatrix.x") {
        return matrix_load(lab, &point.gpu, number(count).unwrap_or(1));
    }
    let (name, warps) = match name.strip_prefix("bar.sync of ") {
        Some(warps) => ("bar.sync", number(warps).unwrap_or(1)),
        None => (name, 1),
    };
    let is_on_all_sms = point.series.ends_with(TWO_BLOCKS);
    let chain = find(name);
    let (kind, register) = chain.kind.result();
    let timed = Timed {
        init: nth(chain.kind.start(), 1),
        end: nth(chain.kind.end(), 1) + &sink(0, kind, &nth(register, 1)),
        ..Timed::default()
    };
    let (step, threads) = (nth(chain.step, 1), 32 * warps);
    if is_on_all_sms {
        let n_sms = lab.bench(&point.gpu, &timed.text(&point.gpu))?.n_sms();
        let shape = ((2 * n_sms).into(), threads);
        return steps_in(lab, &point.gpu, &timed, &step, shape, None, [32, 96]);
    }
    steps(lab, &point.gpu, &timed, &step, threads, [32, 96])
}

/// Results per cycle of one SM with 32 warps. For loads from shared memory: bytes per cycle.
pub(super) fn rate(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    const WARPS: u32 = 32;
    const CHAINS: u32 = 4;
    let lanes = f64::from(32 * WARPS);
    if let Some(bits) = point.series.strip_prefix("LDS.") {
        let bits = number(bits).unwrap_or(32);
        let cycles = shared_loads(lab, &point.gpu, bits, 32 * WARPS)?;
        return Ok(lanes * f64::from(bits / 8) / cycles);
    }
    let chain = find(&point.series);
    let (kind, register) = chain.kind.result();
    // Independent chains hide the latency of the pipe, so that its rate is measured.
    let each = |text: &str| (1..=CHAINS).map(|n| nth(text, n)).collect::<String>();
    let timed = Timed {
        init: each(chain.kind.start()),
        end: (1..=CHAINS)
            .map(|n| sink(n as usize, kind, &nth(register, n)))
            .collect(),
        ..Timed::default()
    };
    let cycles = steps(lab, &point.gpu, &timed, &each(chain.step), 32 * WARPS, [32, 96])?;
    Ok(lanes * f64::from(CHAINS) * chain.counted / cycles)
}

/// Cycles of one step in one CTA.
pub(super) fn steps(
    lab: &Lab,
    gpu: &str,
    timed: &Timed,
    step: &str,
    threads: u32,
    lengths: [u32; 2],
) -> Result<f64, GpuError> {
    steps_in(lab, gpu, timed, step, (1.into(), threads), None, lengths)
}

/// Cycles of one step in a grid of CTAs, or in one cluster of them.
pub(super) fn steps_in(
    lab: &Lab,
    gpu: &str,
    timed: &Timed,
    step: &str,
    shape: (Dims, u32),
    cluster: Option<u32>,
    lengths: [u32; 2],
) -> Result<f64, GpuError> {
    spans_in(lab, (gpu, timed), step, shape, cluster, lengths, Spans::all)
}

/// As [`steps_in`]. `of` takes one figure from the clock values of all threads.
pub(super) fn spans_in(
    lab: &Lab,
    (gpu, timed): (&str, &Timed),
    step: &str,
    (grid, threads): (Dims, u32),
    cluster: Option<u32>,
    lengths: [u32; 2],
    of: fn(&Spans) -> f64,
) -> Result<f64, GpuError> {
    slope(lengths, |n| {
        let body = format!("{step}\n").repeat(n as usize);
        let mut bench = lab.bench(gpu, &Timed { body, ..timed.clone() }.text(gpu))?;
        let Dims([x, y, z]) = grid;
        let out = bench.zeros::<u64>(2 * (x * y * z * threads) as usize)?;
        // The sink: a kernel stores its last results there, so that an assembler keeps the chain.
        let results = bench.zeros::<u64>(4096)?;
        let shape = crate::gpu::Shape::from((grid.0, threads));
        let shape = cluster.map_or(shape, |size| shape.cluster(size));
        bench.launch("k", shape, &[&out, &results, &1u32])?;
        Ok(of(&bench.spans(&out)))
    })
}

/// Latency of a load from shared memory with an address from the load before, in cycles. Lanes are `ways` words apart: with a power of
/// two, `ways` lanes share a bank.
fn shared_load(lab: &Lab, gpu: &str, ways: u32) -> Result<f64, GpuError> {
    let timed = Timed {
        init: format!(
            "mov.u32 %r1, sm; mov.u32 %r10, 0; mul.lo.u32 %r4, %r71, {}; and.b32 %r4, %r4, 16383; add.u32 %r2, %r1, %r4;",
            4 * ways
        ),
        end: sink(0, "u32", "%r2"),
        shared: 16384,
        ..Timed::default()
    };
    let step = "ld.shared.u32 %r10, [%r2]; add.u32 %r2, %r2, %r10;";
    Ok(steps(lab, gpu, &timed, step, 32, [32, 96])? - ADD)
}

/// Latency of a matrix load with an address from the load before, in cycles.
fn matrix_load(lab: &Lab, gpu: &str, count: u32) -> Result<f64, GpuError> {
    let timed = Timed {
        init: "mov.u32 %r1, sm; and.b32 %r4, %r71, 31; shl.b32 %r4, %r4, 4; add.u32 %r2, %r1, %r4;".to_owned(),
        end: sink(0, "u32", "%r2"),
        shared: 4096,
        ..Timed::default()
    };
    let registers: Vec<_> = (10..10 + count).map(|n| format!("%r{n}")).collect();
    let step = format!(
        "ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{}}}, [%r2]; add.u32 %r2, %r2, %r10;",
        registers.join(", ")
    );
    Ok(steps(lab, gpu, &timed, &step, 32, [32, 96])? - ADD)
}

/// Latency of the addition in a chain of loads, in cycles: IADD3 of every preset.
const ADD: f64 = 4.0;

/// Cycles of one independent load of `bits` per lane by all warps of a CTA.
fn shared_loads(lab: &Lab, gpu: &str, bits: u32, threads: u32) -> Result<f64, GpuError> {
    let timed = Timed {
        init: format!(
            "mov.u32 %r1, sm; mul.lo.u32 %r4, %r71, {}; and.b32 %r4, %r4, 4095; add.u32 %r2, %r1, %r4;",
            bits / 8
        ),
        end: (0..4).map(|n| sink(n, "u32", &format!("%r{}", 10 + 4 * n))).collect(),
        shared: 4096,
        ..Timed::default()
    };
    // Four loads with targets of their own: none waits for another.
    let load = |n: u32| {
        let targets: Vec<_> = (0..bits / 32).map(|word| format!("%r{}", 10 + 4 * n + word)).collect();
        // One, two or four targets.
        let vector = ["", ".v2", ".v4"][targets.len() / 2];
        match bits {
            32 => format!("ld.shared.u32 {}, [%r2];", targets[0]),
            _ => format!("ld.shared{vector}.u32 {{{}}}, [%r2];", targets.join(", ")),
        }
    };
    let step: String = (0..4).map(load).collect();
    Ok(steps(lab, gpu, &timed, &step, threads, [16, 48])? / 4.0)
}

fn find(name: &str) -> &'static Chain {
    let found = CHAINS.iter().find(|chain| chain.name == name);
    found.unwrap_or_else(|| panic!("the silicon figures name {name}, and no chain has this name"))
}

/// The first number in a text.
fn number(text: &str) -> Option<u32> {
    let digits: String = text
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The text for chain `n`.
fn nth(text: &str, n: u32) -> String {
    text.replace('#', &n.to_string())
}
