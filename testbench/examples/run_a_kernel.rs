//! Runs a kernel on a simulated H100: loads PTX, creates buffers from slices, launches, reads the report.
//!
//! Device memory behaves as under a driver: [`Gpu::buffer`] copies a slice to the device, [`Gpu::read`] copies a buffer back.
//! The report has the cycles, the profiler's metrics by name, and every counter of the machine.
//!
//! A subscribed closure receives every event of the machine, sorted by cycle, then by SM. The order is the same for any number of host
//! threads.
//!
//! ```sh
//! cargo run --release --example run_a_kernel
//! ```

use std::cell::Cell;
use std::rc::Rc;

use warpwave::components::proto::event::EventKind;
use warpwave::gpu::{Event, Gpu, GpuError};

const N: u32 = 5000;

/// Runs the kernel and checks its results.
pub fn main() -> Result<(), GpuError> {
    let mut gpu = Gpu::preset("h100-sxm5")?;
    let module = gpu.load(include_str!("saxpy.ptx"))?;

    let xs: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let x = gpu.buffer(&xs)?;
    let y = gpu.buffer(&vec![1.0f32; N as usize])?;

    // The GPU owns the closure, so the counter is shared.
    let issued = Rc::new(Cell::new(0));
    let counter = Rc::clone(&issued);
    gpu.subscribe(move |event| {
        if let Event::Warp { event, .. } = event
            && matches!(event.kind, EventKind::Issue { .. })
        {
            counter.set(counter.get() + 1);
        }
    });

    let report = gpu.launch(&module, "saxpy", (N.div_ceil(256), 256), &[&N, &2.0f32, &x, &y])?;

    // Each sum and product is exact in 32-bit floating point.
    let expected: Vec<f32> = xs.iter().map(|x| 2.0 * x + 1.0).collect();
    assert_eq!(gpu.read(&y), expected);

    // Counters and events agree.
    let executed = report.metric("smsp__inst_executed.sum");
    assert_eq!(executed, Some(f64::from(issued.get())));
    println!("{report}");
    println!("{:<26} {:>14}", "issues, by events", issued.get());
    Ok(())
}
