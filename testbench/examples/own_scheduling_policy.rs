//! Replaces the warp scheduling policy: the youngest eligible warp issues.
//!
//! A policy implements [`SchedulingPolicy`]. Once for each instruction that issues, `choose` gets the eligible warps and returns the
//! slot of one of them. The factory makes one policy for each sub-core, so a policy may keep state.
//!
//! The kernel is one long loop without memory accesses, and all warps of a sub-core start within a few cycles. A strict priority
//! then shows in the order in which warps end: the oldest first with the built-in `oldest-first`, the youngest first here. Results
//! are the same.
//!
//! ```sh
//! cargo run --release --example own_scheduling_policy
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use warpwave::components::preset;
use warpwave::components::proto::event::EventKind;
use warpwave::components::sm::subcore::policy::{Eligible, SchedulingPolicy};
use warpwave::gpu::{Event, Factory, Gpu, GpuError};

/// The youngest eligible warp issues.
struct YoungestFirst;

impl SchedulingPolicy for YoungestFirst {
    fn choose(&mut self, eligible: &Eligible<'_>) -> usize {
        eligible.by_age().next_back().expect("at least one warp is eligible")
    }
}

/// Each thread adds 1 to four sums 500 times, so the FP64 pipe is the limit.
const PTX: &str = ".version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 sums)
{
    .reg .pred %p1;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .reg .f64 %fd<6>;
    ld.param.u64 %rd1, [sums];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 8;
    add.s64 %rd3, %rd1, %rd2;
    cvt.rn.f64.u32 %fd1, %r1;
    mov.f64 %fd2, %fd1;
    mov.f64 %fd3, %fd1;
    mov.f64 %fd4, %fd1;
    mov.u32 %r3, 500;
LOOP:
    add.f64 %fd1, %fd1, 0d3ff0000000000000;
    add.f64 %fd2, %fd2, 0d3ff0000000000000;
    add.f64 %fd3, %fd3, 0d3ff0000000000000;
    add.f64 %fd4, %fd4, 0d3ff0000000000000;
    sub.s32 %r3, %r3, 1;
    setp.ne.s32 %p1, %r3, 0;
    @%p1 bra LOOP;
    add.f64 %fd1, %fd1, %fd2;
    add.f64 %fd3, %fd3, %fd4;
    add.f64 %fd1, %fd1, %fd3;
    st.global.f64 [%rd3], %fd1;
    ret;
}";

/// Runs 8 warps on each of four sub-cores. Returns the order in which the warps of the first sub-core end, and the cycles.
fn run(factory: &Factory) -> Result<(Vec<u8>, u64), GpuError> {
    let sets = [("sm.scheduler".to_owned(), "oldest-first".to_owned())];
    let mut gpu = Gpu::with_factory(preset::load("tiny", &sets)?.config, factory)?;
    let module = gpu.load(PTX)?;
    let sums = gpu.buffer(&[0.0f64; 1024])?;
    let ends = Rc::new(RefCell::new(Vec::new()));
    let list = Rc::clone(&ends);
    gpu.subscribe(move |event| {
        if let Event::Warp { event, .. } = event
            && (event.subcore, event.kind) == (0, EventKind::End)
        {
            list.borrow_mut().push(event.warp);
        }
    });
    let report = gpu.launch(&module, "add", (1, 1024), &[&sums])?;
    let expected: Vec<f64> = (0..1024).map(|i| 4.0 * (f64::from(i) + 500.0)).collect();
    assert_eq!(gpu.read(&sums), expected);
    let ends = ends.take();
    Ok((ends, report.cycles()))
}

/// Compares the policies.
pub fn main() -> Result<(), GpuError> {
    let (oldest_first, cycles) = run(&Factory::new())?;
    println!("{:<16} {cycles:>8} cycles, ends {oldest_first:?}", "oldest-first");
    let (youngest_first, cycles) = run(&Factory::new().scheduling_policy(|_| YoungestFirst))?;
    println!("{:<16} {cycles:>8} cycles, ends {youngest_first:?}", "youngest first");
    assert_eq!((oldest_first.len(), oldest_first[0]), (8, 0));
    assert_eq!((youngest_first.len(), youngest_first[0]), (8, 7));
    Ok(())
}
