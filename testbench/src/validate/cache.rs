//! Microbenchmarks of an L1: loads that always hit, and sums of a footprint.

use super::lab::slope;
use super::memory::bench;
use super::{Lab, Point, kernels};
use crate::gpu::GpuError;

/// Bytes that one SM loads in a cycle: from the L1 alone, or `x` KB by one CTA of 256 threads on each SM.
pub(super) fn cache(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    match point.series.strip_prefix("L1 LDG.") {
        // The figures of the V100 come with a kernel of their own.
        Some(bits) if point.gpu.starts_with('v') => published_l1(lab, point, bits),
        Some(bits) => l1(lab, point, bits),
        None => footprint(lab, point),
    }
}

/// Threads of the kernels that load from the L1.
const L1_THREADS: u32 = 1024;

/// 16 KB again and again.
fn l1(lab: &Lab, point: &Point, bits: &str) -> Result<f64, GpuError> {
    // Bytes that a thread loads in one pass of the kernel's loop.
    let (kernel, bytes) = match bits {
        "32" => ("l1v1", 32),
        "64" => ("l1v2", 64),
        _ => ("l1v4", 64),
    };
    let cycles = slope([8, 24], |passes| {
        let mut bench = bench(lab, point)?;
        let (a, b) = (bench.zeros::<f32>(65536)?, bench.zeros::<f32>(65536)?);
        let out = bench.zeros::<u64>(2 * L1_THREADS as usize)?;
        bench.launch(kernel, (1, L1_THREADS), &[&a, &b, &(passes as i32), &out])?;
        Ok(bench.spans(&out).all())
    })?;
    Ok(f64::from(bytes * L1_THREADS) / cycles)
}

/// Turns of the published loop.
const TURNS: u32 = 256;

/// The L1 benchmarks of Accel-Sim: 1,024 threads load from 64 KB that are in the L1. The clock runs from the first thread to the last.
fn published_l1(lab: &Lab, point: &Point, bits: &str) -> Result<f64, GpuError> {
    let text = L1Loop::of(bits).text();
    let mut bench = lab.bench(&point.gpu, &kernels::with_header(&text, &point.gpu))?;
    let (a, b) = (bench.zeros::<f32>(1024)?, bench.zeros::<f32>(16384 + 128)?);
    let out = bench.zeros::<u64>(2 * L1_THREADS as usize)?;
    bench.launch("l1", (1, L1_THREADS), &[&a, &b, &out])?;
    Ok(f64::from(TURN_BYTES * L1_THREADS * TURNS) / bench.spans(&out).all())
}

/// Bytes that a thread loads in one turn.
const TURN_BYTES: u32 = 16;

/// The loop of a published kernel.
struct L1Loop {
    /// The index of the first turn.
    first: &'static str,
    /// Added to the index in each turn.
    step: u32,
    /// Makes an offset of an index.
    offset: &'static str,
    /// The loads of one turn, with their sums.
    loads: String,
    /// Turns that nvcc writes in a row.
    unrolled: u32,
}

impl L1Loop {
    fn of(bits: &str) -> L1Loop {
        let each = |loads: u32, text: &dyn Fn(u32) -> String| (0..loads).map(text).collect::<String>();
        match bits {
            // The published macro has no brackets: the index is the rest divided by 8. So eight lanes load one word.
            "32" => L1Loop {
                first: "mov.u32 %i, %t;",
                step: 128,
                offset: "and.b32 %n, %n, 131064; shr.u32 %n, %n, 3; mul.wide.u32 %d, %n, 4;",
                loads: each(4, &|n| {
                    format!("ld.global.ca.f32 %v{n}, [%d+{}]; add.f32 %f{n}, %v{n}, %f{n};", 128 * n)
                }),
                unrolled: 16,
            },
            "64" => L1Loop {
                first: "mov.u32 %i, %t;",
                step: 64,
                offset: "shl.b32 %n, %n, 3; cvt.u64.u32 %d, %n; and.b64 %d, %d, 65528;",
                loads: each(2, &|n| {
                    format!("ld.global.ca.f64 %w{n}, [%d+{}]; add.f64 %e{n}, %w{n}, %e{n};", 256 * n)
                }),
                unrolled: 32,
            },
            _ => L1Loop {
                first: "shl.b32 %i, %t, 2;",
                step: 128,
                offset: "shl.b32 %n, %n, 2; cvt.u64.u32 %d, %n; and.b64 %d, %d, 65520;",
                loads: "ld.global.ca.v4.f32 {%v0, %v1, %v2, %v3}, [%d];".to_owned()
                    + &each(4, &|n| format!("add.f32 %f{n}, %v{n}, %f{n};")),
                unrolled: 16,
            },
        }
    }

    /// The kernel `l1(a, b, out)`. It loads from `b`.
    fn text(&self) -> String {
        let turn = |n: u32| {
            let L1Loop { offset, loads, .. } = self;
            // Each turn has registers of its own, as in the code of nvcc.
            let first = self.step * n;
            format!(
                "{{ .reg .b32 %n; .reg .b64 %d; .reg .f32 %v<4>; .reg .f64 %w<2>;\n\
                 add.u32 %n, %i, {first}; {offset} add.s64 %d, %b, %d; {loads} }}\n"
            )
        };
        let turns: String = (0..self.unrolled).map(turn).collect();
        let zeros: String = (0..4)
            .map(|n| format!("mov.f32 %f{n}, 0f00000000; mov.f64 %e{n}, 0d0000000000000000; "))
            .collect();
        format!(
            ".visible .entry l1(.param .u64 a, .param .u64 b, .param .u64 out)\n{{\n\
             .reg .pred %p<3>; .reg .b32 %i, %t, %k; .reg .b64 %a, %b, %d, %o, %c<2>; .reg .f32 %f<5>; .reg .f64 %e<4>;\n\
             ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; {zeros}\n\
             mov.u32 %k, %t;\n\
             warm: .pragma \"nounroll\";\n\
             mul.wide.u32 %d, %k, 4; add.s64 %d, %b, %d; ld.global.ca.f32 %f4, [%d]; add.f32 %f0, %f0, %f4;\n\
             add.u32 %k, %k, {L1_THREADS}; setp.lt.u32 %p0, %k, 16384; @%p0 bra warm;\n\
             bar.sync 0;\nmov.u64 %c0, %clock64;\n{} mov.u32 %k, 0;\n\
             turn: .pragma \"nounroll\";\n{turns}\
             add.u32 %i, %i, {}; add.u32 %k, %k, {}; setp.ne.u32 %p1, %k, {TURNS}; @%p1 bra turn;\n\
             bar.sync 0;\nmov.u64 %c1, %clock64;\n\
             mul.wide.u32 %d, %t, 16; add.s64 %o, %o, %d; st.global.u64 [%o], %c0; st.global.u64 [%o+8], %c1;\n\
             add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f3; add.f32 %f0, %f0, %f2;\n\
             add.f64 %e0, %e0, %e1; cvt.rn.f32.f64 %f1, %e0; add.f32 %f0, %f0, %f1;\n\
             mul.wide.u32 %d, %t, 4; add.s64 %a, %a, %d; st.global.f32 [%a], %f0;\nret;\n}}\n",
            self.first,
            self.step * self.unrolled,
            self.unrolled,
        )
    }
}

/// Threads of the kernel that sums a footprint, as `gpubenches` has it.
const SUM_THREADS: u32 = 256;

/// Loads that this kernel has in a row.
const SUM_LOADS: u32 = 32;

/// Times that the model sums the footprint after its first sum. More take minutes. An A100 is not steady by then at 204 KB: it has 81 bytes
/// per cycle, 101 after 20 sums and 109 after 60. Silicon has 89.
const SUMS: u32 = 8;

fn footprint(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let kb = point.x();
    // The published figures of these GPUs come with doubles. An own measurement has floats.
    let sum = match point.series.as_str() {
        "sum of floats" => Sum { kb, bytes: 4 },
        _ => Sum { kb, bytes: 8 },
    };
    let passes = sum.passes();
    let text = kernels::with_header(&sum.text(), &point.gpu);
    // On silicon a billion elements in all, as `gpubenches` has it.
    let sums = if lab.is_real() {
        1_000_000_000 / (sum.loads() * SUM_THREADS)
    } else {
        SUMS
    };
    let mut bench = lab.bench(&point.gpu, &text)?;
    let words = kb as usize * 256;
    let (a, b) = (bench.zeros::<f32>(512)?, bench.zeros::<f32>(words + 512)?);
    let n_sms = bench.n_sms();
    let mut sum = |turns: u32| -> Result<f64, GpuError> {
        bench.cycles("cachesum", (n_sms, SUM_THREADS), &[&a, &b, &0i32, &(turns as i32)])
    };
    // The first launch fills the caches.
    sum(1)?;
    let turns = (sums / passes).max(1);
    let cycles = slope([1, 1 + turns], sum)?;
    Ok(f64::from(kb * 1024 * passes) / cycles)
}

/// The kernel that sums a footprint.
struct Sum {
    kb: u32,
    /// Bytes of an element.
    bytes: u32,
}

impl Sum {
    /// Loads of a thread in one pass.
    fn loads(&self) -> u32 {
        self.kb * 1024 / (self.bytes * SUM_THREADS)
    }

    /// Passes of a turn of the loop. A short pass is unrolled.
    fn passes(&self) -> u32 {
        (SUM_LOADS / self.loads()).max(1)
    }

    /// The kernel `cachesum(a, b, zero, turns)` of `gpubenches`: each CTA sums the same footprint in every pass. Silicon's compiler unrolls
    /// the loads, because the number of elements is a constant of the kernel.
    fn text(&self) -> String {
        let (ty, value, zero, factor, never) = match self.bytes {
            4 => ("f32", "%f", "0f00000000", "0f3FA66666", "0f449A2000"),
            _ => (
                "f64",
                "%e",
                "0d0000000000000000",
                "0d3FF4CCCCCCCCCCCD",
                "0d4093440000000000",
            ),
        };
        let row = self.bytes * SUM_THREADS;
        let group = |loads: u32| {
            let each = |text: &dyn Fn(u32) -> String| (0..loads).map(text).collect::<String>();
            let load = |n: u32| format!("ld.global.nc.{ty} {value}{n}, [%rd5+{}]; ", row * n);
            let add = |n: u32| format!("add.{ty} {value}40, {value}40, {value}{n}; ");
            each(&load) + &each(&add)
        };
        // nvcc has unrolled this loop, and marks it so that the assembler does not unroll it further.
        let loop_of_groups = match self.loads() / SUM_LOADS {
            0 => String::new(),
            groups => format!(
                "mov.u32 %r5, {groups};\ngroup:\n.pragma \"nounroll\";\n{}\nadd.s64 %rd5, %rd5, {}; add.s32 %r5, %r5, -1;\n\
                 setp.ne.s32 %p2, %r5, 0; @%p2 bra group;\n",
                group(SUM_LOADS),
                row * SUM_LOADS
            ),
        };
        let pass = format!(
            "add.s64 %rd2, %rd2, %rd4; mov.u64 %rd5, %rd2;\n{loop_of_groups}{}\nmul.{ty} {value}40, {value}40, {factor};\n",
            group(self.loads() % SUM_LOADS)
        );
        format!(
            ".visible .entry cachesum(.param .u64 a, .param .u64 b, .param .u32 zero, .param .u32 turns)\n{{\n\
             .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<41>; .reg .f64 %e<41>;\n\
             ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [zero]; ld.param.u32 %r2, [turns];\n\
             cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; mov.u32 %r3, %tid.x;\n\
             mul.wide.u32 %rd3, %r3, {bytes}; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3; mul.wide.s32 %rd4, %r1, {bytes};\n\
             mov.{ty} {value}40, {zero};\n\
             turn:\n{}\
             add.s32 %r2, %r2, -1; setp.ne.s32 %p1, %r2, 0; @%p1 bra turn;\n\
             setp.eq.{ty} %p3, {value}40, {never}; @%p3 st.global.{ty} [%rd1], {value}40;\n\
             ret;\n}}\n",
            pass.repeat(self.passes() as usize),
            bytes = self.bytes,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_of_a_footprint_loads_each_element_once_in_a_pass() {
        for (kb, bytes, loads_of_all) in [
            (4, 4, 32),
            (31, 4, 31),
            (204, 4, 204),
            (16, 8, 32),
            (120, 8, 60),
            (204, 8, 102),
        ] {
            let sum = Sum { kb, bytes };
            let text = sum.text();
            let (in_group, rest) = match text.split_once("group:") {
                Some((_, text)) => text.split_once("bra group").unwrap(),
                None => ("", text.as_str()),
            };
            let loads = |text: &str| text.matches("ld.global.nc").count() as u32;
            assert_eq!(
                sum.loads() / SUM_LOADS * loads(in_group) + loads(rest),
                loads_of_all,
                "{kb} KB of {bytes} bytes"
            );
            assert!(warpwave_ptx::compile(&kernels::with_header(&text, "h100-sxm5")).is_ok());
        }
    }

    #[test]
    fn published_kernels_load_16_bytes_of_a_thread_in_each_turn() {
        for (bits, loads, bytes) in [("32", 4, 4), ("64", 2, 8), ("128", 1, 16)] {
            let published = L1Loop::of(bits);
            let text = published.text();
            let turns = text.split_once("turn:").unwrap().1;
            let in_all = turns.matches("ld.global").count() as u32;
            assert_eq!(in_all * bytes, published.unrolled * TURN_BYTES, "{bits}");
            assert_eq!(in_all, loads * published.unrolled, "{bits}");
            assert!(TURNS.is_multiple_of(published.unrolled));
            assert!(warpwave_ptx::compile(&kernels::with_header(&text, "v100-sxm2")).is_ok());
        }
    }
}
