//! Barriers of the whole grid, as `cooperative_groups::this_grid().sync()` of nvcc 13.5 has them.

use warpwave::bench::{Bench, BenchError, Options};
use warpwave::host::HostError;
use warpwave::lockstep;
use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::Limiter;
use warpwave_components::preset;
use warpwave_components::proto::launch::TrapKind;

use super::{Kernel, LIMIT};

const TEXT: &str = include_str!("../../scenarios/grid_sync/grid_sync.ptx");

/// A cooperative launch of `grid_rounds`: in each round every block sums what all blocks wrote before a barrier.
fn rounds(blocks: u32, rounds: u32) -> Kernel {
    let round = |total: u32| (1..=blocks).map(|n| n.wrapping_add(total)).fold(0, u32::wrapping_add);
    let before = (1..rounds).fold(0, |total, _| round(total));
    let sums: Vec<u32> = (1..=blocks).map(|n| n.wrapping_add(before)).collect();
    let totals = vec![round(before); blocks as usize];
    let kernel = Kernel::of(TEXT).entry("grid_rounds").sizes(blocks, 64).cooperative();
    kernel.output(&sums).output(&totals).number(rounds)
}

/// A cooperative launch of `grid_split`: each thread reads what its opposite in the grid wrote before a barrier.
fn split(blocks: u32, threads: u32) -> Kernel {
    let n = blocks * threads;
    let square = |i: u32| i.wrapping_mul(i);
    let squares: Vec<u32> = (0..n).map(square).collect();
    let out: Vec<u32> = (0..n).map(|i| square(n - 1 - i).wrapping_add(3 * i)).collect();
    let kernel = Kernel::of(TEXT)
        .entry("grid_split")
        .sizes(blocks, threads)
        .cooperative();
    kernel.output(&squares).output(&out)
}

fn config(gpu: &str) -> GpuConfig {
    preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config
}

/// Runs a kernel on the machine. Asserts its results, and returns its cycles.
fn cycles(Kernel(scenario, ..): &Kernel, gpu: &str, threads: usize) -> u64 {
    let mut bench = Bench::new(scenario, config(gpu)).unwrap_or_else(|error| panic!("{gpu}: {error}"));
    let max_cycles = Some(LIMIT);
    let run = bench.run(Options { threads, max_cycles }, &mut |_| true);
    assert!(run.stopped.is_none(), "{gpu}: {:?}", run.stopped);
    assert!(run.differences.is_empty(), "{gpu}: {}", run.differences[0]);
    run.launches[0].cycles
}

#[test]
fn blocks_read_what_all_blocks_wrote_before_a_barrier() {
    rounds(7, 5).holds();
    rounds(64, 2).holds();
    split(1, 32).holds();
    split(16, 256).holds();
}

/// Seven blocks in two rounds. Block 0 comes late: its loop takes at least 5000 turns of 4 cycles.
fn rounds_with_a_late_block() -> Kernel {
    let late = "{\n.reg .pred %late;\n.reg .b32 %turn;\nmov.u32 %turn, %ctaid.x;\nsetp.ne.u32 %late, %turn, 0;\n@%late bra GO;\n\
                BUSY:\nadd.s32 %turn, %turn, 1;\nsetp.lt.s32 %late, %turn, 5000;\n@%late bra BUSY;\nGO:\n}\n";
    let start = "$L__BB0_2:";
    assert_eq!(TEXT.matches(start).count(), 1);
    let Kernel(mut scenario, ..) = rounds(7, 2);
    scenario.ptx = TEXT.replace(start, &format!("{late}{start}"));
    Kernel(scenario, String::new(), Vec::new())
}

/// The other blocks poll for longer than a standstill is searched for.
#[test]
fn long_wait_at_a_barrier_is_no_hang() {
    rounds_with_a_late_block()
        .set(&["gigathread.standstill_cycles=10000"])
        .holds();
}

#[test]
fn without_the_barrier_a_block_reads_old_values() {
    let Kernel(mut scenario, ..) = rounds_with_a_late_block();
    // The branches back to the poll: each block goes on after its first look at the word.
    for poll in ["@%p6 bra \t$L__BB0_8;", "@%p15 bra \t$L__BB0_21;"] {
        assert_eq!(scenario.ptx.matches(poll).count(), 1, "{poll}");
        scenario.ptx = scenario.ptx.replace(poll, "");
    }
    let mut bench = Bench::new(&scenario, config("tiny")).unwrap();
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run(options, &mut |_| true);
    assert!(
        run.stopped.is_none() && !run.differences.is_empty(),
        "{:?}",
        run.stopped
    );
}

#[test]
fn grid_with_more_blocks_than_sms_passes_its_barriers_on_each_gpu() {
    // 28, 80, 108, 132 and 148 SMs.
    for (gpu, blocks) in [
        ("gtx1080ti", 60),
        ("v100-sxm2", 170),
        ("a100-sxm4-80", 230),
        ("h100-sxm5", 270),
        ("b200", 300),
    ] {
        let kernel = rounds(blocks, 2);
        let took = cycles(&kernel, gpu, 1);
        assert_eq!(cycles(&kernel, gpu, 2), took, "{gpu} with two host threads");
    }
}

#[test]
fn largest_grid_is_resident_as_a_whole_and_a_larger_one_is_refused() {
    // Blocks of a warp: 32 slots on each of 80 SMs. The reference has more CTAs at once than in other launches.
    let Kernel(scenario, ..) = &split(2560, 32);
    let bench = Bench::new(scenario, config("v100-sxm2")).unwrap();
    let memory = lockstep::reference(&bench, 100 * LIMIT).unwrap();
    for (buffer, address) in bench.data() {
        assert_eq!(
            memory.get(address, buffer.init.len()),
            buffer.expect.as_ref().map(|expect| &expect.bytes[..])
        );
    }
    cycles(&split(2560, 32), "v100-sxm2", 1);
    let Kernel(scenario, ..) = &split(2561, 32);
    let refused = Bench::new(scenario, config("v100-sxm2")).err().unwrap();
    let BenchError::Launch {
        error: HostError::NotResident { fault, .. },
        ..
    } = refused
    else {
        panic!("{refused}")
    };
    assert_eq!((fault.need, fault.limit, fault.per_sm), (2561, 2560, 32));
    assert_eq!(fault.limiter, Limiter::Blocks);
}

#[test]
fn launch_that_is_not_cooperative_traps() {
    let Kernel(mut scenario, ..) = split(2, 32);
    scenario.launches[0].is_cooperative = false;
    // The second `trap` of the file.
    let traps = TEXT.lines().enumerate().filter(|(_, line)| line.trim() == "trap;");
    let line = traps.map(|(n, _)| n as u32 + 1).last().unwrap();
    Kernel(scenario, String::new(), Vec::new()).traps(TrapKind::Trapped, line);
}

#[test]
fn other_environment_registers_are_zero_in_a_cooperative_launch() {
    let reads = |register: &str| super::one_word_each("sm_80", &format!("mov.u32 %r, {register};"));
    for register in ["%envreg0", "%envreg3", "%envreg31"] {
        Kernel::of(&reads(register)).cooperative().output(&[0; 32]).holds();
    }
    for register in ["%envreg1", "%envreg2"] {
        Kernel::of(&reads(register)).output(&[0; 32]).holds();
    }
}

/// Clusters of two blocks: each cluster barrier and each grid barrier opens.
#[test]
fn clusters_pass_barriers_of_the_grid() {
    let entry = ".visible .entry grid_split(";
    let text = TEXT.replace(".target sm_80", ".target sm_90");
    let (head, body) = text.split_once(entry).unwrap();
    let text = format!(
        "{head}{entry}{}",
        body.replacen(")\n{", ")\n.explicitcluster .reqnctapercluster 2, 1, 1\n{", 1)
    );
    let Kernel(mut scenario, ..) = split(6, 64);
    scenario.ptx = text;
    Kernel(scenario, String::new(), Vec::new()).holds();
}
