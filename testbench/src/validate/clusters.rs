//! Microbenchmarks of clusters and bulk copies.

use super::chains::{spans_in, steps_in};
use super::kernels::{Timed, sink, target};
use super::lab::{Spans, slope};
use super::{Lab, Point};
use crate::gpu::GpuError;

/// Cycles of a load from another CTA's shared memory, or of a barrier, in a cluster of `x` CTAs.
pub(super) fn cluster(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let size = point.x();
    if point.series == "cluster barrier" {
        let barrier = "barrier.cluster.arrive; barrier.cluster.wait;";
        return steps_in(
            lab,
            &point.gpu,
            &Timed::default(),
            barrier,
            (size.into(), 32),
            Some(size),
            [8, 24],
        );
    }
    // The silicon figure includes the loop of its test. Its cost is that of a local load there, less a local load here.
    let test_overhead = LOCAL_LOAD - load(lab, &point.gpu, size, 0, Spans::all)?;
    if point.series != "remote load, mean of all pairs" {
        return Ok(load(lab, &point.gpu, size, 1, Spans::all)? + test_overhead);
    }
    let at = |distance| load(lab, &point.gpu, size, distance, Spans::mean);
    let all: f64 = (1..size).map(at).sum::<Result<_, _>>()?;
    Ok(all / f64::from(size - 1) + test_overhead)
}

/// A local load in the test of the silicon figures, in cycles (hpmll).
const LOCAL_LOAD: f64 = 33.0;

/// Cycles of a load, and of an addition, from the shared memory of the CTA whose rank is `distance` higher. `of` takes one figure from
/// those of all CTAs.
fn load(lab: &Lab, gpu: &str, size: u32, distance: u32, of: fn(&Spans) -> f64) -> Result<f64, GpuError> {
    // The loaded word is 0. Each step adds it to the address, so that the next load depends on it.
    let init = format!(
        "mov.u32 %r1, sm; mov.u32 %r2, 0; st.shared.u32 [%r1], %r2; mov.u32 %r3, %cluster_ctarank; add.u32 %r3, %r3, {distance};\n\
         rem.u32 %r3, %r3, {size}; mapa.shared::cluster.u32 %r4, %r1, %r3; barrier.cluster.arrive; barrier.cluster.wait;"
    );
    let timed = Timed {
        init,
        end: sink(0, "u32", "%r4") + "barrier.cluster.arrive; barrier.cluster.wait;",
        shared: 1024,
        ..Timed::default()
    };
    let step = "ld.shared::cluster.u32 %r5, [%r4]; add.u32 %r4, %r4, %r5;";
    spans_in(lab, (gpu, &timed), step, (size.into(), 1), Some(size), [32, 96], of)
}

/// GB/s of bulk copies from memory: `y` CTAs, each copies `x` KB, waits, and copies the next.
pub(super) fn bulk(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let (bytes, ctas) = (point.x() * 1024, point.y());
    let mut ghz = 0.0;
    // On silicon the short run copies 256 MB, far more than the L2 holds.
    let short = if lab.is_real() { (256 << 20) / (bytes * ctas) } else { 4 };
    let cycles = slope([short, 3 * short], |copies| {
        let mut bench = lab.bench(&point.gpu, &copy_text(&point.gpu, bytes, ctas, copies))?;
        ghz = bench.core_ghz();
        let source = bench.zeros::<u8>((bytes * ctas) as usize * (copies as usize + 1))?;
        bench.cycles("k", (ctas, 1), &[&source])
    })?;
    Ok(f64::from(bytes * ctas) / cycles * ghz)
}

fn copy_text(gpu: &str, bytes: u32, ctas: u32, copies: u32) -> String {
    let (version, target) = target(gpu);
    let stride = bytes * ctas;
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .visible .entry k(.param .u64 src)\n{{\n\
         .shared .align 128 .b8 sm[{bytes}]; .shared .align 8 .b64 bar;\n\
         .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n\
         ld.param.u64 %rd1, [src]; cvta.to.global.u64 %rd1, %rd1;\n\
         mov.u32 %r1, sm; mov.u32 %r2, bar; mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd2, %r3, {bytes}; add.s64 %rd1, %rd1, %rd2;\n\
         mbarrier.init.shared.b64 [%r2], 1; mov.u32 %r4, 0; mov.u32 %r5, 0;\n\
         next:\n\
         mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], {bytes};\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], {bytes}, [%r2];\n\
         wait:\n\
         mbarrier.try_wait.parity.shared.b64 %p1, [%r2], %r5; @!%p1 bra wait;\n\
         xor.b32 %r5, %r5, 1; add.s64 %rd1, %rd1, {stride}; add.u32 %r4, %r4, 1;\n\
         setp.lt.u32 %p2, %r4, {copies}; @%p2 bra next;\n\
         ret;\n}}\n"
    )
}
