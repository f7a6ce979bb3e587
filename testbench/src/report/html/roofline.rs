//! The roofline: each launch by its operations per byte and its operations per second, below the peaks of memory and pipes.
//!
//! An operation is an addition or a multiplication of floats, or of a matrix product. Bytes are those of device memory.

use maud::{Markup, html};
use warpwave_components::config::GpuConfig;

use super::{Page, chart, heading};
use crate::bench::LaunchRun;
use crate::report::metrics;
use crate::report::svg::{Axis, Plot, Scale, colour};
use crate::report::units::{digits, scaled};

/// Size of the chart, in pixels.
const SIZE: (u32, u32) = (1040, 360);

/// Operations per byte at the left edge.
const LEAST: f64 = 0.01;

/// Least operations per byte at the right edge. A launch beyond it moves the edge.
const MOST: f64 = 1000.0;

/// A launch on the chart.
struct Dot {
    intensity: f64,
    rate: f64,
    tooltip: String,
}

pub(super) fn markup(page: &Page<'_>) -> Markup {
    let config = &page.run.config;
    let launches = page.run.launches.iter().enumerate();
    let (counted, silent): (Vec<_>, Vec<_>) = launches
        .map(|(index, launch)| (index, launch, operations(launch, config)))
        .partition(|(_, _, operations)| *operations > 0.0);
    if counted.is_empty() {
        return html! {
            (heading("Roofline", "No launch has floating-point operations, so none is on the roofline."))
        };
    }
    let dots: Vec<_> = counted
        .iter()
        .map(|(index, launch, n)| dot(config, *index, launch, *n))
        .collect();
    html! {
        (heading(
            "Roofline",
            "Each dot is a launch: floating-point operations per byte of device memory, and per second. The rising line is the memory's \
             peak, the flat ones are the peaks of the pipes. A dot far below all lines is bound by latency.",
        ))
        (chart(&plot(config, &dots)))
        @if !silent.is_empty() {
            p.soft {
                "Launches without floating-point operations: "
                @for (nth, (index, launch, _)) in silent.iter().enumerate() {
                    @if nth > 0 { ", " }
                    (index) " (" (launch.entry) ")"
                }
            }
        }
    }
}

fn seconds(config: &GpuConfig, cycles: u64) -> f64 {
    cycles as f64 / (f64::from(config.clocks.core_khz) * 1e3)
}

fn dot(config: &GpuConfig, index: usize, launch: &LaunchRun, operations: f64) -> Dot {
    let sum = |name| launch.counts.sum("channel", name).unwrap_or(0);
    let bytes = (sum("bytes_read") + sum("bytes_written")) as f64;
    // A launch with all data in the caches has no limit by memory.
    let intensity = if bytes > 0.0 { operations / bytes } else { f64::INFINITY };
    let rate = operations / seconds(config, launch.cycles.max(1));
    Dot {
        intensity,
        rate,
        tooltip: format!(
            "launch {index}, {}: {}, {}",
            launch.entry,
            match bytes > 0.0 {
                true => format!("{} operations a byte", digits(intensity)),
                false => "no byte of device memory, at the right edge".to_owned(),
            },
            scaled(rate, "FLOP/s")
        ),
    }
}

fn plot(config: &GpuConfig, dots: &[Dot]) -> Markup {
    let bytes = memory_peak(config);
    let roofs = roofs(config);
    let highest = roofs.iter().map(|roof| roof.1).fold(1.0, f64::max);
    // The memory line begins at the left edge with this rate. A slower launch lowers the axis.
    let lowest = dots.iter().map(|dot| dot.rate).fold(bytes * LEAST, f64::min);
    let floor = 10f64.powf(lowest.log10().floor());
    let most = right_edge(dots);
    let x = Axis::new("operations per byte of device memory", Scale::Log, LEAST, most);
    let y = Axis::new("operations per second", Scale::Log, floor, highest * 2.0);
    let y = y.with_ticks(powers(floor, highest * 2.0));
    let mut plot = Plot::new("Roofline", SIZE, x, y).with_side_legend(28, roofs.len() + 1);
    let memory = format!("memory {}", scaled(bytes, "B/s"));
    // Right of the ridge, even the fastest pipe is the limit.
    let ridge = (highest / bytes).min(most);
    plot.line(&memory, colour(0), &[(LEAST, bytes * LEAST), (ridge, bytes * ridge)]);
    for (n, (name, peak)) in roofs.iter().enumerate() {
        let name = format!("{name} {}", scaled(*peak, "FLOP/s"));
        plot.line(&name, colour(n + 1), &[(peak / bytes, *peak), (most, *peak)]);
    }
    let dots: Vec<_> = dots
        .iter()
        .map(|dot| ((dot.intensity.min(most), dot.rate), dot.tooltip.clone()))
        .collect();
    plot.dots(colour(3), &dots);
    plot.finish()
}

/// Operations per byte at the right edge: a power of ten beyond every launch with device memory traffic.
fn right_edge(dots: &[Dot]) -> f64 {
    let finite = dots.iter().map(|dot| dot.intensity).filter(|x| x.is_finite());
    let highest = finite.fold(MOST, f64::max);
    10f64.powf(highest.log10().ceil())
}

/// Ticks at each power of ten, or at each second one of more than six, with prefixes.
fn powers(from: f64, to: f64) -> Vec<(f64, String)> {
    let first = from.log10().round() as i32;
    let last = to.log10().floor() as i32;
    let step = if last - first > 5 { 2 } else { 1 };
    let tick = |power| (10f64.powi(power), scaled(10f64.powi(power), ""));
    (first..=last).step_by(step).map(tick).collect()
}

/// Peak of the memory channels, in bytes per second.
fn memory_peak(config: &GpuConfig) -> f64 {
    let bytes = config.hbm.channels * config.hbm.bus_bytes_per_command_cycle;
    f64::from(bytes) * f64::from(config.clocks.memory_khz) * 1e3
}

/// Name and peak of each pipe, in operations per second: two for each multiply-add.
fn roofs(config: &GpuConfig) -> Vec<(&'static str, f64)> {
    let pipes = &config.sm.pipes;
    // Warp instructions per second at an interval of 1, over all sub-cores.
    let warps = f64::from(config.n_sms() * config.sm.subcores) * f64::from(config.clocks.core_khz) * 1e3;
    let lanes = f64::from(config.limits.warp_size);
    let peak = |operations: f64, interval: u32| warps * operations / f64::from(interval.max(1));
    // `mma.m16n8k16`: the interval of the preset is for one such product.
    let tensor = ("tensor, 16 bits", peak(2.0 * 16.0 * 8.0 * 16.0, pipes.tensor.interval));
    // Volta is the first architecture with tensor cores.
    let tensor = (config.compute_capability() >= 70).then_some(tensor);
    // Arithmetic on packed halves begins with compute capability 5.3.
    let half = ("FP16", peak(4.0 * lanes, pipes.half.interval));
    let half = (config.compute_capability() >= 53).then_some(half);
    let others = [
        ("FP32", peak(2.0 * lanes, pipes.fp32.interval)),
        ("FP64", peak(2.0 * lanes, pipes.fp64.interval)),
    ];
    tensor.into_iter().chain(half).chain(others).collect()
}

/// Floating-point operations of a launch, as the metrics count them.
fn operations(launch: &LaunchRun, config: &GpuConfig) -> f64 {
    metrics::all_flops(&launch.inputs(config)).number().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_of_the_h100_are_those_of_its_data_sheet() {
        let h100 = warpwave_components::preset::load("h100-sxm5", &[]).unwrap().config;
        let peaks = roofs(&h100);
        let near = |found: f64, teraflops: f64| (found / 1e12 / teraflops - 1.0).abs() < 0.01;
        // At 1980 MHz: the data sheet's tensor figure of 989.4 is at 1830 MHz.
        assert!(near(peaks[0].1, 989.4 * 1980.0 / 1830.0), "{peaks:?}");
        assert!(near(peaks[1].1, 133.8), "{peaks:?}");
        assert!(near(peaks[2].1, 66.9) && near(peaks[3].1, 33.5), "{peaks:?}");
        assert!(
            (memory_peak(&h100) / 3.35e12 - 1.0).abs() < 0.02,
            "{}",
            memory_peak(&h100)
        );
    }

    #[test]
    fn gpu_without_tensor_cores_has_no_roof_for_them() {
        for (name, expected) in [
            ("m2070", &["FP32", "FP64"][..]),
            ("gtx1080ti", &["FP16", "FP32", "FP64"]),
        ] {
            let config = warpwave_components::preset::load(name, &[]).unwrap().config;
            let names: Vec<_> = roofs(&config).iter().map(|roof| roof.0).collect();
            assert_eq!(names, expected, "{name}");
        }
    }

    #[test]
    fn right_edge_is_a_power_of_ten_beyond_every_launch_with_traffic() {
        let dot = |intensity| Dot {
            intensity,
            rate: 1.0,
            tooltip: String::new(),
        };
        assert_eq!(right_edge(&[dot(3.0), dot(f64::INFINITY)]), 1000.0);
        assert_eq!(right_edge(&[dot(8448.0)]), 10_000.0);
    }
}
