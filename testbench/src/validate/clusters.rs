//! Microbenchmarks of clusters.

use super::chains::{spans_in, steps_in};
use super::kernels::{Timed, sink};
use super::lab::Spans;
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
