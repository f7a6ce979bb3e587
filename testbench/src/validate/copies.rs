//! Microbenchmarks of asynchronous copies from memory: `cp.async` and bulk copies.
//!
//! A pipeline has one or several stages in shared memory. Each stage holds one copy in flight.

use super::kernels::with_header;
use super::lab::slope;
use super::{Lab, Point};
use crate::gpu::{GpuError, Shape};

/// GB/s of bulk copies of `x` KB from memory: `y` CTAs of one thread.
pub(super) fn bulk(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let (bytes, ctas) = (point.x() * 1024, point.y());
    let (stages, text) = match point.series.as_str() {
        "copy" => (1, copy_text(bytes)),
        "one copy in flight" => (1, pipeline_text(bytes, 1)),
        "two copies in flight" => (2, pipeline_text(bytes, 2)),
        "four copies in flight" => (4, pipeline_text(bytes, 4)),
        series => panic!("the silicon figures name {series}, and no kernel belongs to it"),
    };
    let text = with_header(&text, &point.gpu);
    // On silicon the short run copies 256 MB, far more than the L2 holds.
    let short = if lab.is_real() {
        (256 << 20) / (bytes * ctas)
    } else {
        4 * stages
    };
    let mut ghz = 0.0;
    let cycles = slope([short, 3 * short], |copies| {
        let mut bench = lab.bench(&point.gpu, &text)?;
        ghz = bench.core_ghz();
        let source = bench.zeros::<u8>((bytes * ctas) as usize * (copies as usize + 1))?;
        let shape = Shape::from((ctas, 1)).dynamic_shared_bytes(bytes * stages);
        bench.cycles("k", shape, &[&source, &copies])
    })?;
    Ok(f64::from(bytes * ctas) / cycles * ghz)
}

/// A kernel that copies, waits for the copy, and then goes on to the next bytes. The rows of the H100s are of it.
fn copy_text(bytes: u32) -> String {
    let wait = "mbarrier.try_wait.parity.shared.b64 %p1, [%r2], %r7; @!%p1 bra wait; xor.b32 %r7, %r7, 1;";
    let init = "mbarrier.init.shared.b64 [%r2], 1; mov.u32 %r7, 0;";
    bulk_text(bytes, 1, &format!("{init}\nnext:\n{}\nwait:\n{wait}", start(bytes)), "")
}

/// A kernel that waits for the oldest copy, and starts the next one in its stage.
fn pipeline_text(bytes: u32, stages: u32) -> String {
    let inits: String = (0..stages)
        .map(|stage| format!("mbarrier.init.shared.b64 [%r2+{}], 1; ", 8 * stage))
        .collect();
    let wait =
        |label: &str| format!("{label}:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r2], %r7; @!%p1 bra {label};");
    // The next stage: its bytes, its mbarrier, and the parity of the phase before the current one.
    let advance = format!(
        "add.u32 %r6, %r6, 1; setp.eq.u32 %p3, %r6, {stages}; @%p3 mov.u32 %r6, 0; @%p3 xor.b32 %r7, %r7, 1;\n\
         mov.u32 %r2, bars; mad.lo.u32 %r2, %r6, 8, %r2; mov.u32 %r1, sm; mad.lo.u32 %r1, %r6, {bytes}, %r1;"
    );
    let turn = format!(
        "{inits} mov.u32 %r6, 0; mov.u32 %r7, 1;\n{}\n{}\n{advance}",
        wait("next"),
        start(bytes)
    );
    let drain = format!(
        "mov.u32 %r4, 0;\n{}\n{advance}\nadd.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, {stages}; @%p2 bra drain;",
        wait("drain")
    );
    bulk_text(bytes, stages, &turn, &drain)
}

/// Starts the copy of a stage.
fn start(bytes: u32) -> String {
    format!(
        "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], {bytes};\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], {bytes}, [%r2];"
    )
}

/// A kernel `k(src, copies)` around one turn of its loop, which has the label `next`. `%r1` and `%r2` hold a stage and its mbarrier.
fn bulk_text(bytes: u32, stages: u32, turn: &str, end: &str) -> String {
    format!(
        ".extern .shared .align 128 .b8 sm[];\n\
         .visible .entry k(.param .u64 src, .param .u32 copies)\n{{\n\
         .shared .align 8 .b64 bars[{stages}];\n\
         .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n\
         ld.param.u64 %rd1, [src]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r9, [copies];\n\
         mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd2, %r3, {bytes}; add.s64 %rd1, %rd1, %rd2;\n\
         mov.u32 %r8, %nctaid.x; mul.wide.u32 %rd3, %r8, {bytes}; mov.u32 %r4, 0;\n\
         mov.u32 %r1, sm; mov.u32 %r2, bars;\n\
         {turn}\n\
         add.s64 %rd1, %rd1, %rd3; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r9; @%p2 bra next;\n\
         {end}\n\
         ret;\n}}\n"
    )
}

/// Bytes of a copy and stages of the pipeline, from the name of a series.
fn pipeline(series: &str) -> (u32, u32) {
    let numbers: Vec<u32> = series.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [bytes, stages] = numbers[..] else {
        panic!("the silicon figures name {series}, which has no bytes and stages");
    };
    (bytes, stages)
}

/// GB/s of `cp.async` from memory: `y` CTAs of `x` threads on each SM. The series names the bytes of a thread's copy, and the stages.
pub(super) fn async_copies(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let (bytes, stages) = pipeline(&point.series);
    let (threads, ctas_per_sm) = (point.x(), point.y());
    let text = with_header(&async_text(threads, bytes, stages), &point.gpu);
    let mut bench = lab.bench(&point.gpu, &text)?;
    let ctas = bench.n_sms() * ctas_per_sm;
    // One turn copies these bytes. The published program steps over those of the other stages.
    let turn = ctas * threads * bytes;
    // The model copies a few MB, and at least two rounds of the stages.
    let short = if lab.is_real() {
        (256 << 20) / turn
    } else {
        ((2 << 20) / turn).max(2 * stages)
    };
    let cycles = slope([short, 3 * short], |turns| {
        let source = bench.zeros::<u8>(turn as usize * (stages * turns) as usize)?;
        bench.cycles("k", (ctas, threads), &[&source, &turns])
    })?;
    Ok(f64::from(turn) / cycles * bench.core_ghz())
}

/// A kernel `k(src, turns)`. Each turn waits for the oldest stage, and copies into it.
fn async_text(threads: u32, bytes: u32, stages: u32) -> String {
    // `__pipeline_memcpy_async` passes the L1 with 16 bytes.
    let caching = if bytes == 16 { "cg" } else { "ca" };
    format!(
        ".visible .entry k(.param .u64 src, .param .u32 turns)\n{{\n\
         .shared .align 16 .b8 sm[{all}];\n\
         .reg .pred %p<2>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n\
         ld.param.u64 %rd1, [src]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r9, [turns];\n\
         mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, {threads}, %r1;\n\
         mov.u32 %r4, %nctaid.x; mul.lo.u32 %r4, %r4, {of_turn};\n\
         mov.u32 %r5, sm; mad.lo.u32 %r5, %r1, {bytes}, %r5; mov.u32 %r6, 0;\n\
         next:\n\
         cp.async.wait_group {others};\n\
         rem.u32 %r7, %r6, {stages}; mad.lo.u32 %r7, %r7, {of_stage}, %r5;\n\
         mad.lo.u32 %r8, %r4, %r6, %r3; mul.wide.u32 %rd2, %r8, {bytes}; add.s64 %rd2, %rd1, %rd2;\n\
         cp.async.{caching}.shared.global [%r7], [%rd2], {bytes};\n\
         cp.async.commit_group;\n\
         add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r9; @%p1 bra next;\n\
         cp.async.wait_group {others};\n\
         ret;\n}}\n",
        all = threads * bytes * stages,
        of_turn = threads * stages,
        of_stage = threads * bytes,
        others = stages - 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_names_bytes_and_stages() {
        assert_eq!(pipeline("16 bytes, 4 stages"), (16, 4));
        assert_eq!(pipeline("4 bytes, 1 stage"), (4, 1));
    }
}
