//! Microbenchmarks of the memory hierarchy, from one dependent load to streams that fill the GPU.

use super::lab::{Bench, slope};
use super::{Lab, Point, kernels};
use crate::gpu::{Buffer, GpuError, KernelArg, Shape};

fn bench<'a>(lab: &'a Lab, point: &Point) -> Result<Bench<'a>, GpuError> {
    lab.bench(&point.gpu, &kernels::memory(&point.gpu))
}

/// Bytes between two nodes of a pointer chase.
const NODE: u64 = 64;

/// Cycles of a dependent load. The pointers form one ring in random order over `x` KB.
pub(super) fn chase(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let nodes = u64::from(point.x()) * 1024 / NODE;
    let steps = nodes.clamp(2048, 32768) / 32 * 32;
    let warm = nodes.next_multiple_of(32);
    let mut bench = bench(lab, point)?;
    let buffer = bench.ring(nodes, NODE)?;
    let (sink, out) = (bench.zeros::<u64>(8)?, bench.zeros::<u64>(2)?);
    // The ring holds offsets; the first kernel makes addresses of them.
    let words = (NODE / 8) as i32;
    bench.launch(
        "rebase",
        (nodes.div_ceil(256) as u32, 256),
        &[&buffer, &(nodes as i32), &words],
    )?;
    bench.launch(
        "chase",
        (1, 64),
        &[&buffer, &sink, &(steps as i32), &(warm as i32), &out],
    )?;
    Ok(bench.spans(&out).all() / steps as f64)
}

/// Elements between two rows of a CTA of the block kernels, as `gpubenches` has it.
const PITCH: u32 = 4096 + 2;

/// Cycles of the L1 for the load of one warp. Lanes are `x` elements apart, or the block is `x` threads wide. The data stay in the L1.
pub(super) fn strides(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let (x, is_stride) = (point.x(), point.series.starts_with("stride"));
    let is_wide = point.series.ends_with("64 bits");
    let kernel = match (is_stride, is_wide) {
        (true, false) => "stride_f",
        (true, true) => "stride_d",
        (false, false) => "block_f",
        (false, true) => "block_d",
    };
    let (distance, block) = match is_stride {
        true => (x, [1024, 1, 1]),
        false => (PITCH, [x, 1024 / x, 1]),
    };
    let cycles = slope([64, 192], |loads| {
        let mut bench = bench(lab, point)?;
        // Zeros of either width are the same bytes.
        let a = bench.zeros::<f64>((64 * distance + 128) as usize)?;
        let (b, out) = (bench.zeros::<f64>(4096)?, bench.zeros::<u64>(2048)?);
        let args: [&dyn KernelArg; 6] = [&a, &b, &0i32, &(distance as i32), &(loads as i32), &out];
        bench.launch(kernel, (1, block), &args)?;
        Ok(bench.spans(&out).all())
    })?;
    // In these cycles each of the 32 warps makes one load.
    Ok(cycles / 32.0)
}

/// Bytes that one SM loads in a cycle: 16 KB again and again from the L1, or `x` KB by one CTA of 256 threads on each SM.
pub(super) fn cache(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    match point.series.strip_prefix("L1 LDG.") {
        Some(bits) => l1(lab, point, bits),
        None => footprint(lab, point),
    }
}

fn l1(lab: &Lab, point: &Point, bits: &str) -> Result<f64, GpuError> {
    const THREADS: u32 = 1024;
    // Bytes that a thread loads in one pass of the kernel's loop.
    let (kernel, bytes) = match bits {
        "32" => ("l1v1", 32),
        "64" => ("l1v2", 64),
        _ => ("l1v4", 64),
    };
    let cycles = slope([8, 24], |passes| {
        let mut bench = bench(lab, point)?;
        let (a, b) = (bench.zeros::<f32>(65536)?, bench.zeros::<f32>(65536)?);
        let out = bench.zeros::<u64>(2 * THREADS as usize)?;
        bench.launch(kernel, (1, THREADS), &[&a, &b, &(passes as i32), &out])?;
        Ok(bench.spans(&out).all())
    })?;
    Ok(f64::from(bytes * THREADS) / cycles)
}

/// Threads of the kernel that sums a footprint, as `gpubenches` has it.
const SUM_THREADS: u32 = 256;

/// Loads that this kernel has in a row.
const SUM_LOADS: u32 = 32;

fn footprint(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let kb = point.x();
    // A thread loads one float of each KB. A short pass is unrolled.
    let passes = (SUM_LOADS / kb).max(1);
    let text = kernels::with_header(&sum_text(kb, passes), &point.gpu);
    // On silicon a billion floats, as `gpubenches` has it. On the model enough turns to load 256 KB at least.
    let turns = if lab.is_real() { 1_000_000_000 / 256 } else { 256 } / (kb * passes);
    let mut bench = lab.bench(&point.gpu, &text)?;
    let floats = kb * SUM_THREADS;
    let (a, b) = (bench.zeros::<f32>(512)?, bench.zeros::<f32>(floats as usize + 512)?);
    let n_sms = bench.n_sms();
    let mut sum = |turns: u32| -> Result<f64, GpuError> {
        bench.cycles("cachesum", (n_sms, SUM_THREADS), &[&a, &b, &0i32, &(turns as i32)])
    };
    // The first launch fills the caches.
    sum(1)?;
    let turns = turns.max(1);
    let cycles = slope([1, 1 + turns], sum)?;
    Ok(f64::from(floats * passes) * 4.0 / cycles)
}

/// The kernel `cachesum(a, b, zero, turns)` of `gpubenches`: each CTA sums the same `kb` KB in every pass. A turn of the loop has `passes`.
/// Silicon's compiler unrolls the loads, because the number of floats is a constant of the kernel.
fn sum_text(kb: u32, passes: u32) -> String {
    let group = |loads: u32| {
        let each = |text: &dyn Fn(u32) -> String| (0..loads).map(text).collect::<String>();
        let load = |n: u32| format!("ld.global.nc.f32 %f{n}, [%rd5+{}]; ", 4 * SUM_THREADS * n);
        let add = |n: u32| format!("add.f32 %f40, %f40, %f{n}; ");
        each(&load) + &each(&add)
    };
    let step = 4 * SUM_THREADS * SUM_LOADS;
    // nvcc has unrolled this loop, and marks it so that the assembler does not unroll it further.
    let loop_of_groups = match kb / SUM_LOADS {
        0 => String::new(),
        groups => format!(
            "mov.u32 %r5, {groups};\ngroup:\n.pragma \"nounroll\";\n{}\nadd.s64 %rd5, %rd5, {step}; add.s32 %r5, %r5, -1;\n\
             setp.ne.s32 %p2, %r5, 0; @%p2 bra group;\n",
            group(SUM_LOADS)
        ),
    };
    let pass = format!(
        "add.s64 %rd2, %rd2, %rd4; mov.u64 %rd5, %rd2;\n{loop_of_groups}{}\nmul.f32 %f40, %f40, 0f3FA66666;\n",
        group(kb % SUM_LOADS)
    );
    format!(
        ".visible .entry cachesum(.param .u64 a, .param .u64 b, .param .u32 zero, .param .u32 turns)\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<41>;\n\
         ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [zero]; ld.param.u32 %r2, [turns];\n\
         cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; mov.u32 %r3, %tid.x;\n\
         mul.wide.u32 %rd3, %r3, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3; mul.wide.s32 %rd4, %r1, 4;\n\
         mov.f32 %f40, 0f00000000;\n\
         turn:\n{}\
         add.s32 %r2, %r2, -1; setp.ne.s32 %p1, %r2, 0; @%p1 bra turn;\n\
         setp.eq.f32 %p3, %f40, 0f449A2000; @%p3 st.global.f32 [%rd1], %f40;\n\
         ret;\n}}\n",
        pass.repeat(passes as usize)
    )
}

/// Bytes that the GPU reads in a cycle: two CTAs on each SM, which together read `x` KB. The data were read before.
pub(super) fn l2(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    // A CTA reads 64 arrays of 1,024 doubles: 512 KB.
    let run = point.x() / 512;
    let mut bench = bench(lab, point)?;
    let (a, b) = (bench.zeros::<f64>(2048)?, bench.zeros::<f64>((run * 65536) as usize)?);
    let n_sms = bench.n_sms();
    let mut read =
        |ctas: u32| -> Result<f64, GpuError> { bench.cycles("l2sum", (ctas, 1024), &[&a, &b, &(run as i32)]) };
    read(run.max(n_sms))?;
    // One CTA on an SM does not reach the full rate: the model takes two and four for each SM, silicon 32 and 64.
    let n_short = if lab.is_real() { 32 * n_sms } else { 2 * n_sms };
    let cycles = slope([n_short, 2 * n_short], read)?;
    Ok(64.0 * 1024.0 * 8.0 / cycles)
}

/// GB/s of a kernel over large arrays, with two CTAs of `x` threads on each SM. On silicon 1 GB hides the begin and the end of a launch. The
/// model moves a few MB: the slope of two lengths hides them.
pub(super) fn streams(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let threads = point.x();
    let is_v100 = point.gpu.starts_with('v');
    // The V100 of the figures ran at this clock.
    let clocks: &[_] = if is_v100 {
        &[("clocks.core_khz", "1380000"), ("clocks.l2_khz", "1380000")]
    } else {
        &[]
    };
    let mut bench = lab.bench_with(&point.gpu, clocks, &kernels::memory(&point.gpu))?;
    let (arrays, kernel) = match point.series.as_str() {
        "init" => (1, "s_init"),
        "read" => (1, "s_read"),
        _ => (2, "s_scale"),
    };
    let million = 1 << 20;
    // Every launch starts with a clean L2. A long run first fills it with dirty lines; from then on each line written evicts one. A quarter
    // more fills also the sets that get fewer lines.
    let filled = match kernel {
        "s_read" => 0,
        _ => bench.l2_bytes() as u32 / 8 / arrays * 5 / 4,
    };
    let lengths = match threads {
        // 1 GB, as `gpubenches` has it.
        _ if lab.is_real() => [64 * million, 128 * million],
        ..=128 => [million / 8, million / 2],
        _ if is_v100 => [filled + million / 2, filled + 2 * million],
        _ => [filled + million, filled + 3 * million],
    };
    // Dynamic shared memory leaves room for two CTAs.
    let shared = match point.gpu.as_bytes()[0] {
        b'v' => 33,
        b'a' => 56,
        _ => 80,
    };
    let run = |elements: u32| -> Result<f64, GpuError> {
        let len = |is_used: bool| if is_used { elements as usize } else { 2 };
        let a = bench.zeros::<f64>(len(kernel != "s_read"))?;
        let b = bench.zeros::<f64>(len(kernel != "s_init"))?;
        let c = bench.zeros::<f64>(2)?;
        let shape = Shape::from((elements / threads + 1, threads)).dynamic_shared_bytes(shared * 1024);
        let args: [&dyn KernelArg; 5] = [&a, &b, &c, &(elements as i32), &0i32];
        bench.cycles(kernel, shape, &args)
    };
    let cycles = slope(lengths, run)?;
    Ok(f64::from(arrays) * 8.0 / cycles * bench.core_ghz())
}

/// Microseconds of a kernel over `x` doubles in CTAs of `y` threads: the second of two launches.
pub(super) fn small_kernels(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let (elements, threads) = (point.x(), point.y());
    let mut bench = bench(lab, point)?;
    let (a, b) = (
        bench.zeros::<f64>(elements as usize)?,
        bench.zeros::<f64>(elements as usize)?,
    );
    let shape = (elements / threads + 1, threads);
    bench.launch("small", shape, &[&a, &b, &(elements as i32)])?;
    let cycles = bench.cycles("small", shape, &[&b, &a, &(elements as i32)])?;
    Ok(cycles / bench.core_ghz() / 1000.0)
}

/// Cycles of the third of three equal launches of `x` CTAs of `y` threads. The series names the kernel. The first one finds cold caches, so
/// its end and the begin of the second are not as in a long row.
pub(super) fn launches(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let (blocks, threads) = (point.x(), point.y());
    let mut bench = lab.bench(&point.gpu, LAUNCH)?;
    let words = (blocks * threads) as usize;
    // The second load of a thread is at twice its offset, so in another sector.
    let (from, to) = (bench.zeros::<u32>(2 * words)?, bench.zeros::<u32>(words)?);
    let shape = (blocks, threads);
    bench.launch(&point.series, shape, &[&from, &to])?;
    bench.launch(&point.series, shape, &[&from, &to])?;
    bench.cycles(&point.series, shape, &[&from, &to])
}

/// Cycles of one atomic or fence of a thread: `x` CTAs of `y` threads.
pub(super) fn atomics(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let operation = |kernel: &'static str, step: u32| operation(lab, point, kernel, step);
    match point.series.as_str() {
        "add i32 on one word, aggregated" => operation("a_addw", 0),
        "add i32 with step 1" => operation("a_add", 1),
        "add i32 with step 32" => operation("a_add", 32),
        "exchange i32 on one word" => operation("a_exch", 0),
        "add f32 on one word" => operation("a_addf", 0),
        "fence between atomics" => Ok(operation("a_fence", 1)? - operation("a_nofence", 1)?),
        "fence between stores" => Ok(operation("a_fencew", 1)? - operation("a_nofencew", 1)?),
        series => panic!("the silicon figures name {series}, and no kernel belongs to it"),
    }
}

fn operation(lab: &Lab, point: &Point, kernel: &str, step: u32) -> Result<f64, GpuError> {
    let (ctas, threads) = (point.x(), point.y());
    let all = ctas * threads;
    // The short run fills the queues: the LSU holds 128 operations (`sm.lsu.pending_requests` of the A100).
    let warps_per_sm = (ctas * threads.div_ceil(32)).div_ceil(bench(lab, point)?.n_sms());
    // The loop of the kernel makes eight operations in each turn.
    let short = (160 / warps_per_sm).clamp(8, 160).next_multiple_of(8);
    slope([short, 3 * short], |operations| {
        let mut bench = bench(lab, point)?;
        // The kernels with two stores use a second array, a million words behind the first.
        let words: Buffer<i32> = bench.zeros((all * step.max(1)) as usize + (2 << 20))?;
        let out = bench.zeros::<u64>(2 * all as usize)?;
        bench.launch(
            kernel,
            (ctas, threads),
            &[&words, &(step as i32), &(operations as i32), &out],
        )?;
        Ok(bench.spans(&out).slowest())
    })
}

const LAUNCH: &str = include_str!("../../validation/kernels/launch.ptx");

const MATRIX_ADD: &str = include_str!("../../validation/kernels/matrix_add.ptx");

/// GB/s of a matrix addition with CTAs of `x` by `y` threads: 256 rows of 16,384 floats on the model, 16,384 rows on silicon.
pub(super) fn matrix_add(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    const NX: u32 = 16_384;
    let mut bench = lab.bench(&point.gpu, &kernels::for_target(MATRIX_ADD, &point.gpu))?;
    let ny: u32 = if lab.is_real() { 16_384 } else { 256 };
    let elements = (NX * ny) as usize;
    let (a, b, c) = (
        bench.zeros::<f32>(elements)?,
        bench.zeros::<f32>(elements)?,
        bench.zeros::<f32>(elements)?,
    );
    let shape = ([NX / point.x(), ny / point.y()], [point.x(), point.y()]);
    let cycles = bench.cycles_without_launch("matrix_add", shape, &[&a, &b, &c, &NX, &ny])?;
    Ok(3.0 * f64::from(NX * ny) * 4.0 / cycles * bench.core_ghz())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, PlannedStep};
    use crate::validate::Family;

    /// The plans of all points of a family on its own GPUs.
    fn plans(family: &str) -> Vec<(Point, Vec<Plan>)> {
        let family = Family::find(family).unwrap();
        let plans = |point: Point| {
            let lab = Lab::planner();
            (family.measure)(&lab, &point).unwrap();
            (point, lab.into_plans())
        };
        family.points().into_iter().map(plans).collect()
    }

    /// A 32-bit argument of each launch.
    fn args(plan: &Plan, n: usize) -> Vec<u32> {
        let launches = plan.steps.iter().filter_map(|step| match step {
            PlannedStep::Launch(launch) => Some(launch),
            _ => None,
        });
        let number = |hex: &str| u32::from_str_radix(hex, 16).unwrap().swap_bytes();
        launches.map(|launch| number(&launch.args[n].hex)).collect()
    }

    #[test]
    fn atomics_are_counted_in_whole_turns_of_the_loop() {
        // A turn makes eight operations: with 5 and 15 asked for, 8 and 16 would run, and 10 would divide the cycles of 8.
        for (point, plans) in plans("atomics") {
            for operations in plans.iter().flat_map(|plan| args(plan, 2)) {
                assert!(
                    operations > 0 && operations.is_multiple_of(8),
                    "{operations} at {point:?}"
                );
            }
        }
    }

    #[test]
    fn kernel_of_a_footprint_loads_each_kilobyte_once_in_a_pass() {
        for (kb, passes) in [(4, 8), (16, 2), (31, 1), (48, 1), (64, 1), (204, 1)] {
            let text = sum_text(kb, passes);
            let (in_group, rest) = match text.split_once("group:") {
                Some((_, text)) => text.split_once("bra group").unwrap(),
                None => ("", text.as_str()),
            };
            let loads = |text: &str| text.matches("ld.global.nc.f32").count() as u32;
            assert_eq!(kb / 32 * loads(in_group) + loads(rest), kb * passes, "{kb} KB");
            assert!(warpwave_ptx::compile(&kernels::with_header(&text, "h100-sxm5")).is_ok());
        }
    }
}
