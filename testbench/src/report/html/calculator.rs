//! The occupancy calculator for a launch: occupancy over registers, shared memory and block size, with the launch's own point.

use maud::{Markup, html};
use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::occupancy;

use super::chart;
use crate::bench::LaunchRun;
use crate::report::metrics::LaunchShape;
use crate::report::svg::{Axis, Plot, Scale, colour};

/// Size of a chart, in pixels.
const SIZE: (u32, u32) = (340, 220);

/// Points of a curve over shared memory.
const STEPS: u32 = 96;

/// A curve: title, axis, values, the value of the launch, and the shape of a launch for a value.
struct Curve {
    title: &'static str,
    axis: &'static str,
    values: Vec<u32>,
    own: u32,
    shape: fn(&LaunchShape, u32) -> (u32, u32, u32),
}

pub(super) fn markup(launch: &LaunchRun, config: &GpuConfig) -> Markup {
    let (limits, shape) = (&config.limits, &launch.shape);
    let bytes = limits.shared_per_block_max;
    let curves = [
        Curve {
            title: "Occupancy by registers",
            axis: "registers a thread",
            values: (1..=limits.max_registers_per_thread).collect(),
            own: shape.registers,
            shape: |own, n| (own.threads, n, own.shared_bytes),
        },
        Curve {
            title: "Occupancy by shared memory",
            axis: "bytes a block",
            values: (0..=STEPS).map(|n| bytes / STEPS * n).collect(),
            own: shape.shared_bytes,
            shape: |own, n| (own.threads, own.registers, n),
        },
        Curve {
            title: "Occupancy by block size",
            axis: "threads a block",
            // Whole warps: a part of a warp takes the resources of all of it.
            values: (1..=limits.max_threads_per_block / limits.warp_size)
                .map(|n| n * limits.warp_size)
                .collect(),
            own: shape.threads,
            shape: |own, n| (n, own.registers, own.shared_bytes),
        },
    ];
    html! {
        div.trio {
            @for curve in &curves { (chart(&curve.plot(shape, config))) }
        }
    }
}

impl Curve {
    fn plot(&self, shape: &LaunchShape, config: &GpuConfig) -> Markup {
        let percent = |n: u32| {
            let (threads, registers, bytes) = (self.shape)(shape, n);
            // A shape that cannot be launched has no warps.
            occupancy(config, threads, registers, bytes).map_or(0.0, |found| found.percent)
        };
        let last = self.values.last().copied().unwrap_or(1);
        let x = Axis::new(self.axis, Scale::Linear, 0.0, f64::from(last));
        let y = Axis::new("%", Scale::Linear, 0.0, 100.0);
        let mut plot = Plot::new(self.title, SIZE, x, y);
        let points: Vec<_> = self.values.iter().map(|&n| (f64::from(n), percent(n))).collect();
        plot.unnamed_line(self.axis, colour(0), &points);
        // The occupancy of the launch itself, which may lie between two points of the curve.
        let own = (f64::from(self.own), shape.occupancy.percent);
        let tooltip = format!("this launch: {} {}, {:.1} %", self.own, self.axis, own.1);
        plot.dots(colour(3), &[(own, tooltip)]);
        plot.finish()
    }
}
