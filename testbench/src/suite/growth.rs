//! What a warp instruction costs in machines of any size and runs of any length: it should always cost the same.
//!
//! The kernel is the suite's `sgemm_naive`: few blocks of it for short runs, all of them many times over for long ones. Processor
//! time is that of the launches alone, so that building a large machine does not count against a short run.

use warpwave_components::config::GpuConfig;

use super::{Figure, PREFIX, processor_seconds};
use crate::bench::{Bench, Options};
use crate::scenario::{Scenario, builtin};

/// The kernel.
pub const KERNEL: &str = "sgemm_naive";

/// How much of the kernel one measurement takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Rows of blocks and blocks of a row, of its 16 each.
    pub blocks: [u32; 2],
    /// How often that is launched.
    pub launches: usize,
}

/// From 12 thousand to 102 million warp instructions.
pub const SIZES: [Size; 5] = [
    Size::of([1, 1], 1),
    Size::of([4, 4], 1),
    Size::of([16, 16], 1),
    Size::of([16, 16], 4),
    Size::of([16, 16], 33),
];

impl Size {
    const fn of(blocks: [u32; 2], launches: usize) -> Self {
        Size { blocks, launches }
    }

    /// Makes the kernel's scenario this large.
    fn apply(self, scenario: &mut Scenario) {
        let [rows, columns] = self.blocks;
        scenario
            .launches
            .iter_mut()
            .for_each(|launch| launch.grid = [columns, rows, 1]);
        let once = std::mem::take(&mut scenario.launches);
        scenario.launches = (0..self.launches).flat_map(|_| once.clone()).collect();
    }
}

/// Simulates so much of the kernel once, on one thread.
///
/// # Errors
/// In words, if it does not run on the GPU.
pub fn measure(size: Size, config: &GpuConfig) -> Result<Figure, String> {
    let mut scenario = builtin::load(&format!("{PREFIX}{KERNEL}")).map_err(|error| error.to_string())?;
    size.apply(&mut scenario);
    let mut bench = Bench::new(&scenario, config.clone()).map_err(|error| error.to_string())?;
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    let begin = processor_seconds();
    let run = bench.run(options, &mut |_| true);
    let seconds = processor_seconds() - begin;
    if let Some((launch, error)) = &run.stopped {
        return Err(format!("launch {launch}: {error}"));
    }
    Ok(Figure {
        warp_instructions: run.totals.sum("scheduler", "inst_issued").unwrap_or(0),
        cycles: run.cycles(),
        seconds,
    })
}

#[cfg(test)]
mod tests {
    use warpwave_components::preset;

    use super::*;

    #[test]
    fn sizes_instructions_are_those_of_their_blocks_times_their_launches() {
        let config = preset::load("tiny", &[]).expect("a built-in GPU").config;
        let count = |size| measure(size, &config).expect("it runs").warp_instructions;
        let of_a_block = count(Size::of([1, 1], 1));
        assert_eq!(count(Size::of([1, 2], 3)), 6 * of_a_block);
    }
}
