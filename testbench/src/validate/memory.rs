//! Microbenchmarks of the memory hierarchy, from one dependent load to streams that fill the GPU.

use super::lab::{Bench, slope};
use super::{Lab, Point, kernels};
use crate::gpu::{Buffer, GpuError, KernelArg, Shape};

pub(super) fn bench<'a>(lab: &'a Lab, point: &Point) -> Result<Bench<'a>, GpuError> {
    lab.bench(&point.gpu, &kernels::memory(&point.gpu))
}

/// Bytes between two nodes of a pointer chase.
const NODE: u64 = 64;

/// The nodes of a chase over `kb` KB. The published lengths begin with 16. Each is 1.1 times the last one plus 16, cut to a whole number. The
/// figures give whole KB of them.
fn nodes(kb: u64) -> u64 {
    let next = |nodes: &u64| Some((*nodes as f64 * 1.1) as u64 + 16);
    let mut published = std::iter::successors(Some(16), next).take_while(|nodes| nodes * NODE / 1024 <= kb);
    published
        .find(|nodes| nodes * NODE / 1024 == kb)
        .unwrap_or(kb * 1024 / NODE)
}

/// Cycles of a dependent load. The pointers form one ring in random order over `x` KB.
pub(super) fn chase(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let nodes = nodes(u64::from(point.x()));
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
        ..=128 => [filled + million / 8, filled + million / 2],
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
        let shape = Shape::from((elements / threads + 1, threads)).dynamic_shared_bytes(shared * 1024);
        let args: [&dyn KernelArg; 4] = [&a, &b, &u64::from(elements), &0u8];
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
        // The program of the A100 loads and stores. A fence empties the L1, so its loads come from the L2 with fences alone.
        "fence between increments" => Ok(operation("a_rmwf", 1)? - operation("a_rmw", 1)?),
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
        let (step, operations) = (step as i32, operations as i32);
        match kernel {
            "a_rmw" | "a_rmwf" => {
                let second: Buffer<i32> = bench.zeros(all as usize)?;
                bench.launch(kernel, (ctas, threads), &[&words, &second, &step, &operations, &out])?;
            }
            _ => bench.launch(kernel, (ctas, threads), &[&words, &step, &operations, &out])?,
        }
        Ok(bench.spans(&out).slowest())
    })
}

const LAUNCH: &str = include_str!("../../validation/kernels/launch.ptx");

const MATRIX_ADD: &str = include_str!("../../validation/kernels/matrix_add.ptx");

/// GB/s of a matrix addition with CTAs of `x` by `y` threads over rows of 16,384 floats: the slope between two heights. Silicon has 16,384 rows.
pub(super) fn matrix_add(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    const NX: u32 = 16_384;
    const ROW_BYTES: u32 = 3 * NX * 4;
    let mut bench = lab.bench(&point.gpu, &kernels::for_target(MATRIX_ADD, &point.gpu))?;
    // Every launch of the model starts with a clean L2. Once it is full, each line written evicts another.
    let filled = (bench.l2_bytes() as u32 / ROW_BYTES * 5 / 4).next_multiple_of(32);
    let heights = match lab.is_real() {
        true => [8192, 16_384],
        false => [filled + 32, filled + 160],
    };
    let run = |ny: u32| -> Result<f64, GpuError> {
        let elements = (NX * ny) as usize;
        let a = bench.zeros::<f32>(elements)?;
        let b = bench.zeros::<f32>(elements)?;
        let c = bench.zeros::<f32>(elements)?;
        let shape = ([NX / point.x(), ny / point.y()], [point.x(), point.y()]);
        bench.cycles("matrix_add", shape, &[&a, &b, &c, &NX, &ny])
    };
    let cycles = slope(heights, run)?;
    Ok(f64::from(ROW_BYTES) / cycles * bench.core_ghz())
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
            // The kernel of increments has two arrays before its numbers.
            let place = if point.series.ends_with("increments") { 3 } else { 2 };
            for operations in plans.iter().flat_map(|plan| args(plan, place)) {
                assert!(
                    operations > 0 && operations.is_multiple_of(8),
                    "{operations} at {point:?}"
                );
            }
        }
    }

    #[test]
    fn chase_has_the_published_nodes() {
        // 16, 33, 52 and 73 nodes are 1.0, 2.1, 3.3 and 4.6 KB.
        assert_eq!([1, 2, 3, 4].map(nodes), [16, 33, 52, 73]);
        // `gpu-latency` names the footprint of 2,565 nodes 160.3 KB.
        assert_eq!(nodes(160), 2565);
        // No published footprint has 5 KB.
        assert_eq!(nodes(5), 80);
    }
}
