//! Documented latencies and throughputs of the SM, measured from outside: programs written by hand, cycles counted by hand.
//!
//! A chain of n dependent instructions and one of 2 n differ by n times the latency, whatever surrounds them.

use std::sync::Arc;

use warpwave_components::config::GpuConfig;
use warpwave_components::gpu::{Gpu, LaunchError, Launched};
use warpwave_components::preset;
use warpwave_components::proto::launch::Grid;
use warpwave_isa::inst::Inst;
use warpwave_isa::program::{Program, Requirements};
use warpwave_isa::space::bank0;

/// A machine of preset `tiny` and one buffer of `words` words.
struct Bench {
    gpu: Gpu,
    buffer: u64,
}

impl Bench {
    fn new(words: u64) -> Self {
        Bench::with(&[], words)
    }

    /// As [`Bench::new`], with other numbers.
    fn with(sets: &[(&str, u32)], words: u64) -> Self {
        let sets: Vec<_> = sets
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_string()))
            .collect();
        let preset = preset::load("tiny", &sets).unwrap_or_else(|error| panic!("{error}"));
        let gpu = Gpu::new(preset.config);
        let buffer = gpu.storage().allocate(4 * words).expect("a small buffer fits");
        Bench { gpu, buffer }
    }

    /// As [`Bench::new`], with one other word.
    fn with_word(key: &str, word: &str, words: u64) -> Self {
        let preset = preset::load("tiny", &[(key.to_owned(), word.to_owned())]);
        let gpu = Gpu::new(preset.unwrap_or_else(|error| panic!("{error}")).config);
        let buffer = gpu.storage().allocate(4 * words).expect("a small buffer fits");
        Bench { gpu, buffer }
    }

    fn config(&self) -> &GpuConfig {
        self.gpu.config()
    }

    /// Runs a program of one instruction per line; its only parameter is the buffer's address.
    fn run(&mut self, text: &str, ctas: u32, threads: u32) -> Result<Launched, LaunchError> {
        let grid = self.grid(text, ctas, threads);
        self.gpu.launch(grid, Some(100_000), &mut |_| true)
    }

    fn grid(&self, text: &str, ctas: u32, threads: u32) -> Grid {
        let code: Vec<Inst> = text.lines().map(|line| line.trim().parse().expect(line)).collect();
        let needs = Requirements {
            registers: 32,
            shared_bytes: 4096,
            ..Requirements::default()
        };
        let mut bank = vec![0; 0x200 / 4];
        bank[bank0::BLOCK_SIZE as usize / 4] = threads;
        bank[bank0::PARAMS as usize / 4] = self.buffer as u32;
        bank[bank0::PARAMS as usize / 4 + 1] = (self.buffer >> 32) as u32;
        Grid {
            id: 0,
            program: Arc::new(Program::new("test", code, needs)),
            grid: [ctas, 1, 1],
            block: [threads, 1, 1],
            cluster: [1; 3],
            shared_bytes: 4096,
            dynamic_shared_bytes: 0,
            registers: 32,
            allocations: self.gpu.storage().allocations(),
            textures: Vec::new(),
            local_base: 0,
            l1_bytes: 0,
            constants: vec![bank],
            ctas_per_sm: 4,
            timing: Vec::new(),
            predecoded: Arc::default(),
        }
    }

    fn words(&self, n: usize) -> Vec<u32> {
        (0..n as u64)
            .map(|i| self.gpu.storage().load(self.buffer + 4 * i))
            .collect()
    }

    /// Cycles that one more repetition of `line` takes for a lone warp.
    fn marginal(&mut self, before: &str, line: &str) -> u64 {
        let mut cycles = |n: usize| {
            let text = format!("{before}{}EXIT", format!("{line}\n").repeat(n));
            self.run(&text, 1, 32).expect("a straight program ends").cycles()
        };
        let (few, many) = (cycles(16), cycles(48));
        assert_eq!((many - few) % 32, 0, "a steady state: {few} {many}");
        (many - few) / 32
    }
}

#[test]
fn dependent_chain_takes_the_latency_of_its_pipe() {
    let mut bench = Bench::new(64);
    let pipes = bench.config().sm.pipes;
    for (line, latency) in [
        ("FFMA R0, R0, R0, R0", pipes.fp32.latency),
        ("FADD R0, R0, R0", pipes.fp32.latency),
        ("IADD3 R0, PT, R0, R0, RZ, PT", pipes.int.latency),
        ("IMAD R0, R0, R0, R0", pipes.imad_latency),
        ("DADD R0, R0, R0", pipes.fp64.latency),
        ("MUFU.RCP R0, R0", pipes.sfu.latency),
        ("SHFL.IDX R0, PT, R0, 0x0, 0x1f", pipes.shuffle_latency),
    ] {
        assert_eq!(bench.marginal("", line), u64::from(latency), "{line}");
    }
}

#[test]
fn instructions_with_a_latency_of_their_own_take_it() {
    for (key, line) in [
        ("sm.pipes.fmnmx_latency", "FMNMX R0, R0, R1, PT"),
        ("sm.pipes.popc_latency", "POPC R0, R0"),
        ("sm.pipes.match_latency", "MATCH.ANY R0, PT, R0"),
        ("sm.pipes.vote_latency", "VOTE.ANY R0, P0, P0"),
    ] {
        for latency in [9, 40, 70] {
            let mut bench = Bench::with(&[(key, latency)], 64);
            assert_eq!(bench.marginal("", line), u64::from(latency), "{key}={latency}");
        }
    }
}

#[test]
fn barrier_of_a_warp_whose_lanes_are_together_takes_its_latency() {
    // With a latency of 1, the fetch of a lone warp is slower than its issue.
    for latency in [2, 5, 70] {
        let mut bench = Bench::with(&[("sm.barrier.warp_latency", latency)], 64);
        assert_eq!(bench.marginal("", "WARPSYNC 0xffffffff"), u64::from(latency));
        // A guard that holds in no lane skips the barrier. The branch unit finds that.
        let branch = bench.config().sm.branch_latency;
        assert_eq!(bench.marginal("", "@!PT WARPSYNC 0xffffffff"), u64::from(branch));
    }
}

#[test]
fn reader_of_a_shared_dependency_barrier_waits_for_all_its_results() {
    // SHFL takes 70 cycles. Meanwhile MUFU and five dependent FADD are over. The last FADD reads the result of SHFL.
    let text = "SHFL.IDX R1, PT, R0, 0x0, 0x1f\nMUFU.RCP R2, R0\nFADD R3, R2, R2\n".to_owned()
        + &"FADD R3, R3, R3\n".repeat(4)
        + "FADD R4, R1, R1\nEXIT";
    let cycles = |barriers| {
        let sets = [("sm.pipes.shuffle_latency", 70), ("sm.dependency_barriers", barriers)];
        Bench::with(&sets, 64).run(&text, 1, 32).expect("it ends").cycles()
    };
    // Each register is tracked, or each result has a barrier of its own.
    assert_eq!(cycles(0), cycles(6));
    assert_eq!(cycles(2), cycles(6));
    // With one barrier the first FADD waits for SHFL. The others follow 4 cycles apart, and the last one after the interval of the pipe.
    assert_eq!(cycles(1), cycles(6) + 4 * 4 + 2);
}

#[test]
fn registers_of_one_bank_add_a_cycle_each_to_a_chain() {
    // Two banks with one port: even registers are in one bank, odd ones in the other.
    let mut bench = Bench::with(&[("sm.register_banks", 2), ("sm.register_read_ports", 1)], 64);
    let latency = u64::from(bench.config().sm.pipes.fp32.latency);
    for (line, conflicts) in [
        ("FFMA R0, R0, R0, R0", 0),
        ("FFMA R0, R0, R1, R1", 0),
        ("FFMA R0, R0, R1, R2", 1),
        ("FFMA R0, R0, R2, R4", 2),
    ] {
        assert_eq!(bench.marginal("", line), latency + conflicts, "{line}");
    }
}

/// A compare with a result that holds in every lane: 0 = 0.
const COMPARE: &str = "ISETP.EQ.AND.S32 P0, PT, R0, R0, PT, PT\n";

#[test]
fn predicate_as_data_takes_the_latency_of_the_writers_pipe() {
    let mut bench = Bench::new(64);
    let pipes = bench.config().sm.pipes;
    let (int, fp64) = (pipes.int.latency, pipes.fp64_compare_latency);
    for (lines, cycles) in [
        (format!("{COMPARE}SEL R0, R1, R0, P0"), int + int),
        (
            "FSETP.EQ.AND.F32 P0, PT, R0, R0, PT\nSEL R0, R1, R0, P0".to_owned(),
            int + int,
        ),
        (
            "DSETP.EQ.AND.F64 P0, PT, R0, R2, PT\nSEL R0, R1, R0, P0".to_owned(),
            fp64 + int,
        ),
        ("PLOP3.0x8 P0, P1, P0, P1".to_owned(), int),
        (format!("{COMPARE}VOTE.ANY R0, PT, P0"), int + pipes.vote_latency),
        ("VOTE.ANY R0, P0, P0".to_owned(), pipes.vote_latency),
        ("IADD3.X R0, P0, R0, R1, RZ, P0".to_owned(), int),
    ] {
        assert_eq!(bench.marginal("", &lines), u64::from(cycles), "{lines}");
    }
}

#[test]
fn predicate_as_guard_takes_the_guard_latency() {
    for guard_latency in [5, 13, 70] {
        let mut bench = Bench::with(&[("sm.pipes.guard_latency", guard_latency)], 64);
        let sm = &bench.config().sm;
        let (int, branch, interval) = (sm.pipes.int.latency, sm.branch_latency, sm.pipes.int.interval);
        for (lines, cycles) in [
            (
                format!("{COMPARE}@P0 IADD3 R0, PT, R0, RZ, RZ, PT"),
                guard_latency + int,
            ),
            // The branch is not taken: the next compare follows its resolution.
            (format!("{COMPARE}@!P0 BRA 0"), guard_latency + branch),
            // Both writes of P0 delay the guard from their own issue on.
            (
                format!("{COMPARE}{COMPARE}@P0 MOV R1, R2"),
                int + guard_latency + interval,
            ),
        ] {
            assert_eq!(
                bench.marginal("", &lines),
                u64::from(cycles),
                "guard latency {guard_latency}: {lines}"
            );
        }
    }
}

#[test]
fn guard_latency_below_that_of_the_result_has_no_effect() {
    let mut bench = Bench::with(
        &[("sm.pipes.guard_latency", 4), ("sm.pipes.fp64_compare_latency", 9)],
        64,
    );
    let int = bench.config().sm.pipes.int.latency;
    let lines = "DSETP.EQ.AND.F64 P0, PT, R0, R0, PT\n@P0 IADD3 R0, PT, R0, RZ, RZ, PT";
    assert_eq!(bench.marginal("", lines), u64::from(9 + int));
}

#[test]
fn shared_load_chain_takes_the_shared_latency() {
    let mut bench = Bench::new(64);
    let latency = bench.config().sm.shared.latency;
    assert_eq!(
        bench.marginal("MOV R0, RZ\n", "LD.SHARED.B32 R0, [R0]"),
        u64::from(latency)
    );
}

#[test]
fn latency_longer_than_a_tile_looks_ahead_is_kept() {
    for (key, line) in [
        ("sm.pipes.fp32.latency", "FFMA R0, R0, R0, R0"),
        ("sm.pipes.fp64.latency", "DADD R0, R0, R0"),
        ("sm.pipes.shuffle_latency", "SHFL.IDX R0, PT, R0, 0x0, 0x1f"),
        ("sm.shared.latency", "LD.SHARED.B32 R0, [R0]"),
        ("sm.constant.latency", "LDC.B32 R0, c[0][R0]"),
    ] {
        for latency in [62, 63, 64, 65, 66, 67, 130, 1000] {
            let mut bench = Bench::with(&[(key, latency), ("cluster.load_latency", 2000)], 64);
            assert_eq!(
                bench.marginal("MOV R0, RZ\n", line),
                u64::from(latency),
                "{key}={latency}"
            );
        }
    }
}

#[test]
fn pipe_with_a_long_interval_takes_it_between_two_instructions() {
    let mut bench = Bench::with(&[("sm.pipes.fp64.interval", 128)], 64);
    assert_eq!(bench.marginal("", "DADD R0, R0, R0"), 128);
}

#[test]
fn long_way_to_an_sm_is_taken_there_and_back() {
    let cycles = |way| {
        let mut bench = Bench::with(&[("gigathread.link_latency", way)], 64);
        bench.run("EXIT", 1, 32).expect("it ends").cycles()
    };
    let short = cycles(10);
    for way in [31, 32, 33, 100] {
        assert_eq!(cycles(way) - short, 2 * (u64::from(way) - 10), "a way of {way} cycles");
    }
}

#[test]
fn load_from_another_sm_of_the_cluster_takes_the_latency_of_its_network() {
    let mut bench = Bench::new(64);
    let cluster = &bench.config().cluster;
    // The blocks are on the first two SMs of the GPC.
    let latency = cluster.load_latency + cluster.sm_distances[..2].iter().sum::<u32>();
    let mut cycles = |n: usize| {
        // Block 1 waits at the cluster barrier; block 0 follows zeros in its shared memory, which is in window 2, back to its start.
        let end = 4 + 2 * n;
        let chase = "LD.CLUSTER.B32 R1, [R0]\nIADD3 R0, PT, R0, R1, RZ, PT\n".repeat(n);
        let text = format!(
            "S2R R2, SR_CTAID.X\nISETP.NE.AND.S32 P0, PT, R2, RZ, PT, PT\nMOV R0, 0x2000000\n@P0 BRA {end}\n{chase}\
             UCGABAR_ARV\nUCGABAR_WAIT\nEXIT"
        );
        let mut grid = bench.grid(&text, 2, 32);
        grid.cluster = [2, 1, 1];
        bench
            .gpu
            .launch(grid, Some(100_000), &mut |_| true)
            .expect("it ends")
            .cycles()
    };
    let (few, many) = (cycles(16), cycles(48));
    let add = u64::from(Bench::new(64).config().sm.pipes.int.latency);
    assert_eq!(many - few, 32 * (u64::from(latency) + add));
}

#[test]
fn products_of_a_warp_group_run_at_the_rate_of_the_tensor_pipe() {
    let mut bench = Bench::new(64);
    let interval = bench.config().sm.pipes.tensor.interval;
    // Four warps, one on each sub-core; a product of 64 by 32 by 16 is four pieces, each as long as an m16n8k16.
    let pieces: Vec<_> = (0..4)
        .map(|n| format!("HGMMA.16816F16.HI.N{n} R{}, R8, R10, R{}, PT", 12 + 4 * n, 12 + 4 * n))
        .collect();
    let mut cycles = |n: usize| {
        let text = format!(
            "{}\nWARPGROUP.COMMIT\nWARPGROUP.DEPBAR\nEXIT",
            vec![pieces.join("\n"); n].join("\n")
        );
        bench.run(&text, 1, 128).expect("it ends").cycles()
    };
    let (few, many) = (cycles(8), cycles(24));
    assert_eq!(many - few, 16 * 4 * u64::from(interval));
}

#[test]
fn products_of_a_warp_have_an_interval_of_their_own() {
    let mut bench = Bench::with(&[("sm.pipes.mma_interval", 13)], 64);
    let mut cycles = |n: usize| {
        let product = |n: usize| format!("MMA.16816F16.F32 R{0}, R4, R8, R{0}", 12 + 4 * (n % 4));
        let text: Vec<_> = (0..n).map(product).collect();
        let launched = bench.run(&format!("{}\nEXIT", text.join("\n")), 1, 32);
        launched.expect("it ends").cycles()
    };
    // Four sums take turns: 52 cycles hide the latency of 24.
    let (few, many) = (cycles(8), cycles(24));
    assert_eq!(many - few, 16 * 13);
}

/// Cycles of one more product of independent sums, for a lone warp.
fn product_interval(sets: &[(&str, u32)], product: impl Fn(usize) -> String) -> u64 {
    let mut bench = Bench::with(sets, 64);
    let mut cycles = |n: usize| {
        let text: Vec<_> = (0..n).map(&product).collect();
        let launched = bench.run(&format!("{}\nEXIT", text.join("\n")), 1, 32);
        launched.expect("it ends").cycles()
    };
    // Four sums take turns, which hides the latency of 24.
    let (few, many) = (cycles(8), cycles(24));
    assert_eq!((many - few) % 16, 0, "a steady state: {few} {many}");
    (many - few) / 16
}

#[test]
fn interval_of_a_product_is_that_of_the_type_of_its_sums() {
    let sets = [
        ("sm.pipes.mma_interval", 11),
        ("sm.pipes.mma_f16_interval", 14),
        ("sm.pipes.mma_int_interval", 18),
        ("sm.pipes.mma_fp64_interval", 23),
    ];
    for (product, interval) in [
        ("MMA.16816F16.F32", 11),
        ("MMA.16816F16.F16", 14),
        ("MMA.1688F16.F16", 7),
        ("MMA.16832S8", 18),
        ("MMA.16816U8S8", 9),
        ("MMA.168256B1AND", 18),
        ("MMA.884F64", 23),
    ] {
        let text = |n: usize| format!("{product} R{0}, R4, R8, R{0}", 12 + 4 * (n % 4));
        assert_eq!(product_interval(&sets, text), interval, "{product}");
    }
}

/// A GeForce card has a quarter of the rate of an A100. Sums of 16 bits and integers have half of it (white paper of GA102).
#[test]
fn rtx_3090_has_the_multiply_adds_of_its_white_paper() {
    let pipes = preset::load("rtx3090", &[]).expect("it is built in").config.sm.pipes;
    let per_sm = |multiply_adds: u32, interval: u32| 4 * multiply_adds / interval;
    assert_eq!(per_sm(16 * 8 * 16, pipes.mma_interval), 256);
    assert_eq!(per_sm(16 * 8 * 16, pipes.mma_f16_interval), 512);
    assert_eq!(per_sm(16 * 8 * 32, pipes.mma_int_interval), 1024);
}

#[test]
fn search_for_equal_lanes_takes_longer_for_each_further_value() {
    // The lanes have 32, 8, 2 and 1 values.
    for (shift, values) in [(0, 32), (2, 8), (4, 2), (5, 1)] {
        let mut bench = Bench::with(&[("sm.pipes.match_latency", 28), ("sm.pipes.match_per_value", 11)], 64);
        let before = format!("S2R R4, SR_TID.X\nSHF.S32.HI.R R0, RZ, 0x{shift:x}, R4\n");
        // The result names the lanes with an equal value, so it has as many values.
        let any = bench.marginal(&before, "MATCH.ANY R0, PT, R0");
        assert_eq!(any, 28 + 11 * (values - 1), "{values} values");
        assert_eq!(bench.marginal(&before, "MATCH.ALL R0, PT, R0"), 28, "{values} values");
    }
}

#[test]
fn result_behind_a_search_for_equal_lanes_waits_for_it() {
    let cycles = |line: &str| {
        let mut bench = Bench::with(&[("sm.pipes.match_per_value", 100)], 64);
        let text = format!("S2R R4, SR_TID.X\n{line}\nMUFU.RCP R6, R4\nIADD3 R7, PT, R6, R6, RZ, PT\nEXIT");
        bench.run(&text, 1, 32).expect("it ends").cycles()
    };
    let (any, all) = (cycles("MATCH.ANY R5, PT, R4"), cycles("MATCH.ALL R5, PT, R4"));
    assert_eq!(
        any - all,
        31 * 100 - 8,
        "the second result is 8 cycles behind the first"
    );
}

/// An H100 has 32 results a cycle of the two in turn. ptxas converts integers in the integer pipe, and floats in the SFU.
#[test]
fn conversion_of_an_integer_takes_the_pipe_of_the_preset() {
    for (pipe, latency) in [("sfu", 14), ("int", 4)] {
        let mut bench = Bench::with_word("sm.pipes.i2f_pipe", pipe, 64);
        assert_eq!(bench.marginal("", "I2F.F32.S32 R0, R0"), latency, "{pipe}");
        // All others stay in the SFU.
        assert_eq!(bench.marginal("", "I2F.F16.S32 R0, R0"), 14, "{pipe}");
    }
}

#[test]
fn products_with_half_accumulators_have_the_cycles_of_the_tensor_pipe() {
    let mut bench = Bench::new(64);
    let unit = bench.config().sm.pipes.tensor;
    let mut of_16 = |product: &dyn Fn(usize) -> String| {
        let mut cycles = |n: usize| {
            let text: Vec<_> = (0..n).map(product).collect();
            bench
                .run(&format!("{}\nEXIT", text.join("\n")), 1, 32)
                .expect("it ends")
                .cycles()
        };
        let (few, many) = (cycles(8), cycles(24));
        many - few
    };
    for ty in ["F16", "F32"] {
        // Each adds to the result of the one before. Then four sums take turns, which hides the latency.
        let chain = of_16(&|_| format!("MMA.16816F16.{ty} R16, R4, R8, R16"));
        let rate = of_16(&|n| format!("MMA.16816F16.{ty} R{0}, R4, R8, R{0}", 16 + 4 * (n % 4)));
        let expected = [unit.latency, unit.interval].map(|cycles| 16 * u64::from(cycles));
        assert_eq!([chain, rate], expected, "{ty}");
    }
}

/// A sparse product takes the time of a dense one with the shape of its stored half: the whole depth is twice as much.
#[test]
fn sparse_products_have_the_cycles_of_their_stored_half() {
    let mut bench = Bench::new(64);
    let unit = bench.config().sm.pipes.tensor;
    for (shape, share) in [("16816F16", 1), ("1688F16", 2), ("16832S8", 1), ("1684TF32", 2)] {
        let mut cycles = |n: usize| {
            let product = |n: usize| format!("MMA.SP.{shape} R{0}, R4, R8, R{0}, R12", 16 + 4 * (n % 4));
            let text: Vec<_> = (0..n).map(product).collect();
            let launched = bench.run(&format!("{}\nEXIT", text.join("\n")), 1, 32);
            launched.expect("it ends").cycles()
        };
        let (few, many) = (cycles(8), cycles(24));
        let interval = u64::from((unit.interval / share).max(unit.latency.div_ceil(4)));
        assert_eq!(many - few, 16 * interval, "{shape}");
    }
}

/// A buffer of pointers, each to the one `stride` bytes further.
fn chase(bench: &Bench, nodes: u64, stride: u64) {
    for n in 0..nodes {
        let next = bench.buffer + (n + 1) % nodes * stride;
        bench
            .gpu
            .storage()
            .write(bench.buffer + n * stride, &next.to_le_bytes());
    }
}

const FOLLOW: &str = "MOV R2, c[0][0x160]\nMOV R3, c[0][0x164]\n";

/// Cycles of one step of a pointer chase by one thread, measured as in the published ones. The program reads the clock before and after.
/// The second read waits for the register of the last step. The first step, a miss, is before both.
fn step(bench: &mut Bench, load: &str) -> f64 {
    let mut clocks = |n: usize| {
        let text = format!(
            "{FOLLOW}MOV R6, R2\nMOV R7, R3\n{load}
            MOV R4, R2\nS2R R4, SR_CLOCKLO\n{}MOV R5, R2\nS2R R5, SR_CLOCKLO
            IADD3 R5, PT, R5, -R4, RZ, PT\nST.B32 [R6+0x8], R5\nEXIT",
            format!("{load}\n").repeat(n)
        );
        bench.run(&text, 1, 1).expect("it ends");
        bench.words(3)[2]
    };
    f64::from(clocks(48) - clocks(16)) / 32.0
}

#[test]
fn pointer_chase_takes_the_published_latency_of_its_level() {
    let mut bench = Bench::new(1 << 18);
    let (l1, l2) = (bench.config().sm.l1.hit_latency, bench.config().l2.hit_latency);
    chase(&bench, 1, 8);
    assert_eq!(step(&mut bench, "LD.B64 R2, [R2]"), f64::from(l1), "L1");
    assert_eq!(
        step(&mut bench, "LD.B64.CG R2, [R2]"),
        f64::from(l2),
        "L2, the L1 passed by"
    );
}

#[test]
fn pointer_chase_beyond_the_reach_of_the_tlb_waits_for_each_translation() {
    let sets = [("sm.tlb.entries", 4), ("sm.tlb.page", 4096), ("sm.tlb.miss_latency", 9)];
    // A ring over 16 KiB is within the reach. In one over 20 KiB each page loses its entry before its turn comes.
    for (pages, wait) in [(4, 0), (5, 9)] {
        let mut bench = Bench::with(&sets, 8 << 10);
        let l2 = u64::from(bench.config().l2.hit_latency);
        chase(&bench, pages, 4096);
        let mut cycles = |n: usize| {
            // The loads pass the L1 by.
            let text = format!("{FOLLOW}{}EXIT", "LD.B64.CG R2, [R2]\n".repeat(n));
            bench.run(&text, 1, 1).expect("it ends").cycles()
        };
        // The first launch brings the lines into the L2.
        cycles(16);
        let (few, many) = (cycles(16), cycles(48));
        assert_eq!(many - few, 32 * (l2 + wait), "{pages} pages");
    }
}

#[test]
fn pointer_chase_beyond_the_caches_takes_at_most_the_latency_of_a_closed_row() {
    let mut bench = Bench::new(1 << 18);
    let (l2, memory) = (bench.config().l2.hit_latency, bench.config().hbm.access_latency);
    // 64 lines, none touched twice within 48 steps; the host's writing empties the L2.
    let mut cycles = |n: usize| {
        chase(&bench, 64, 4096);
        let text = format!("{FOLLOW}{}EXIT", "LD.B64 R2, [R2]\n".repeat(n));
        bench.run(&text, 1, 32).expect("it ends").cycles()
    };
    let each = (cycles(48) - cycles(16)) as f64 / 32.0;
    // Refresh and a row left open by the line before move single accesses a little.
    let (least, most) = (f64::from(l2) + 20.0, f64::from(memory) * 1.1);
    assert!(
        least < each && each <= most,
        "{each} cycles an access, wanted {least} to {most}"
    );
}

#[test]
fn vector_add_of_uneven_length_gives_the_sums() {
    let mut bench = Bench::new(256);
    for i in 0..256 {
        bench.gpu.storage().store(bench.buffer + 4 * i, i as u32 * 3);
    }
    // y[i] += 5 for i < 100 of 2 blocks of 64 threads.
    let text = "S2R R0, SR_CTAID.X
        S2R R1, SR_TID.X
        IMAD R0, R0, c[0][0x0], R1
        ISETP.GE.AND.S32 P0, PT, R0, 0x64, PT, PT
        @P0 EXIT
        IMAD.WIDE.S32 R2, R0, 0x4, c[0][0x160]
        LD.B32 R4, [R2]
        IADD3 R4, PT, R4, 0x5, RZ, PT
        ST.B32 [R2], R4
        EXIT";
    bench.run(text, 2, 64).expect("it ends");
    let wanted: Vec<u32> = (0..256).map(|i| if i < 100 { i * 3 + 5 } else { i * 3 }).collect();
    assert_eq!(bench.words(256), wanted);
}

/// Cycles of one barrier in a chain of them, in `ctas` CTAs of `warps` warps.
fn barrier_cycles(ctas: u32, warps: u32) -> f64 {
    let mut bench = Bench::new(64);
    let mut cycles = |n: usize| {
        let text = format!("{}EXIT", "BAR 0x0, 0x0\n".repeat(n));
        bench.run(&text, ctas, 32 * warps).expect("it ends").cycles()
    };
    (cycles(80) - cycles(16)) as f64 / 64.0
}

/// Measured on an A100 (burtchell24): `__syncthreads()` in a loop, one block on an SM. `tiny` has the numbers of that part.
#[test]
fn barrier_takes_the_cycles_of_an_a100() {
    for (warps, silicon) in [(1, 23.0), (2, 25.0), (4, 29.0), (8, 37.0), (16, 53.0), (32, 85.0)] {
        assert_eq!(barrier_cycles(1, warps), silicon, "{warps} warps");
    }
}

/// Measured on an A100, an RTX 2070 Super and an RTX 4090 (burtchell24). Two blocks of 16 warps on each SM take 64 cycles a barrier. Two
/// blocks of 8 warps take no more than one alone.
#[test]
fn ctas_of_an_sm_share_its_barrier_unit() {
    // Two SMs with two CTAs each.
    for (warps, silicon) in [(8, 37.0), (16, 64.0)] {
        assert_eq!(barrier_cycles(4, warps), silicon, "{warps} warps");
    }
}

/// 16 threads arrive per cycle (cuda_guide), a warp in 2 cycles: arrivals of long ago cost the last one nothing.
#[test]
fn late_arrival_waits_for_no_count_of_earlier_ones() {
    let mut bench = Bench::new(64);
    // Warp 0 arrives last, after a chain of 200 products.
    let late = |barrier: &str| {
        format!(
            "S2R R0, SR_TID.X
            ISETP.GE.AND.S32 P0, PT, R0, 0x20, PT, PT
            {}{barrier}EXIT",
            "@!P0 IMAD R1, R1, R1, R1\n".repeat(200)
        )
    };
    // Two warps on a sub-core at most: the others issue their products, which no lane needs, no later.
    for threads in [64, 128, 256] {
        let mut cycles = |barrier| bench.run(&late(barrier), 1, threads).expect("it ends").cycles();
        // One count and the base: as for a lone warp, whose barrier takes 23.
        let cost = cycles("BAR 0x0, 0x0\n") - cycles("");
        assert!(cost <= 23, "{threads} threads: {cost}");
    }
}

#[test]
fn shared_loads_with_conflicts_take_a_pass_each() {
    let mut bench = Bench::new(64);
    let chain = |stride: u32| format!("S2R R1, SR_LANEID\nIMAD R1, R1, {stride:#x}, RZ\n");
    let free = bench.marginal(&chain(4), "LD.SHARED.B32 R2, [R1]");
    let conflict = bench.marginal(&chain(32), "LD.SHARED.B32 R2, [R1]");
    let per_pass = u64::from(bench.config().sm.shared.conflict_latency_per_pass);
    assert_eq!(conflict - free, 7 * per_pass, "8 passes against 1");
}

#[test]
fn shared_stores_with_conflicts_hold_the_banks_for_every_pass() {
    let mut bench = Bench::new(64);
    let stores = |stride: u32| format!("S2R R1, SR_LANEID\nIMAD R1, R1, {stride:#x}, RZ\n");
    for (stride, passes) in [(32, 8), (64, 16), (128, 32)] {
        assert_eq!(bench.marginal(&stores(stride), "ST.SHARED.B32 [R1], R1"), passes);
    }
}

#[test]
fn store_still_queued_at_a_barrier_is_seen_by_every_warp_after_it() {
    let mut bench = Bench::new(256);
    // Warp 0 makes stores of 32 passes each, which fill its queue; then every warp reads what the last of them wrote.
    let text = "S2R R0, SR_TID.X
        S2R R5, SR_LANEID
        IMAD R1, R5, 0x80, RZ
        ISETP.GE.AND.S32 P0, PT, R0, 0x20, PT, PT
        @P0 BRA 10
        ST.SHARED.B32 [R1], R0
        ST.SHARED.B32 [R1+0x4], R0
        ST.SHARED.B32 [R1+0x8], R0
        ST.SHARED.B32 [R1+0xc], R0
        ST.SHARED.B32 [R1+0x10], R0
        BAR RZ, RZ
        LD.SHARED.B32 R4, [R1+0x10]
        IMAD.WIDE.S32 R6, R0, 0x4, c[0][0x160]
        ST.B32 [R6], R4
        EXIT";
    bench.run(text, 1, 256).expect("it ends");
    assert_eq!(bench.words(256), (0..256).map(|t| t % 32).collect::<Vec<u32>>());
}

#[test]
fn host_writes_between_launches_the_next_launch_reads_the_new_value_whatever_its_number() {
    let mut bench = Bench::new(64);
    let text = "MOV R2, c[0][0x160]
        MOV R3, c[0][0x164]
        LD.B32 R4, [R2]
        ST.B32 [R2+0x80], R4
        EXIT";
    for value in [7, 8] {
        bench.gpu.storage().store(bench.buffer, value);
        bench.run(text, 8, 32).expect("it ends");
        assert_eq!(bench.words(33)[32], value);
    }
}

/// Cycles that a load of word 64 takes on a fresh machine, a while behind `before`, with what it loads.
fn load_behind(before: &str) -> (u32, u32) {
    let mut bench = Bench::new(128);
    bench.gpu.storage().store(bench.buffer + 256, 7);
    let text = format!(
        "MOV R2, c[0][0x160]
        MOV R3, c[0][0x164]
        {before}
        NANOSLEEP 0x2000
        S2R R6, SR_CLOCKLO
        LD.B32 R4, [R2+0x100]
        IADD3 R5, PT, R4, R4, RZ, PT
        S2R R7, SR_CLOCKLO
        IADD3 R8, PT, R7, -R6, RZ, PT
        ST.B32 [R2], R8
        ST.B32 [R2+0x4], R4
        EXIT"
    );
    bench.run(&text, 1, 32).expect("it ends");
    let words = bench.words(2);
    (words[0], words[1])
}

#[test]
fn line_prefetched_is_found_in_the_cache_named() {
    let (cold, value) = load_behind("NOP");
    assert_eq!(value, 7);
    let in_l1 = load_behind("LD.B32 R9, [R2+0x100]");
    let in_l2 = load_behind("LD.B32.CG R9, [R2+0x100]");
    assert!(in_l1.0 < in_l2.0 && in_l2.0 < cold, "{in_l1:?} {in_l2:?} {cold}");
    // Another sector of the line does, too: a prefetch fetches all four.
    for address in ["[R2+0x100]", "[R2+0x17c]"] {
        assert_eq!(load_behind(&format!("CCTL.PF {address}")), in_l1, "{address}");
        assert_eq!(load_behind(&format!("CCTL.PF.CG {address}")), in_l2, "{address}");
    }
    // A prefetch of the next line does not help. A prefetch outside all memory is no fault.
    for address in ["[R2+0x180]", "[R2-0x400000]", "[RZ]"] {
        let (cycles, value) = load_behind(&format!("CCTL.PF {address}"));
        assert!(cycles > in_l2.0 && value == 7, "{address}: {cycles}, {value}");
    }
    assert_eq!(load_behind("CCTL.PF.GENERIC [R2+0x100]"), in_l1);
}

#[test]
fn fence_with_nothing_under_way_takes_the_latency_of_its_scope() {
    let mut bench = Bench::new(64);
    let fence = bench.config().sm.fence;
    for (scope, latency) in [
        ("CTA", fence.cta_latency),
        ("GPU", fence.gpu_latency),
        ("SYS", fence.sys_latency),
    ] {
        assert_eq!(
            bench.marginal("", &format!("MEMBAR.{scope}")),
            u64::from(latency),
            "{scope}"
        );
    }
}

#[test]
fn fence_behind_a_store_only_that_of_the_block_does_not_wait_for_the_l2() {
    let mut bench = Bench::new(64);
    let fence = bench.config().sm.fence;
    let mut behind_store = |scope: &str| bench.marginal(FOLLOW, &format!("ST.B32 [R2], R4\nMEMBAR.{scope}"));
    let [cta, gpu, sys] = ["CTA", "GPU", "SYS"].map(&mut behind_store);
    // The store itself issues in a cycle, and the fence in the next at the earliest.
    assert!(cta <= u64::from(fence.cta_latency) + 4, "{cta}");
    // A store's round trip to the L2 is a load's without the stages of the L1. The latency of the fence runs at the same time.
    let (l1, l2) = (bench.config().sm.l1.hit_latency, bench.config().l2.hit_latency);
    let round_trip = u64::from(l2 - l1);
    let [of_gpu, of_sys] = [fence.gpu_latency, fence.sys_latency].map(u64::from);
    assert!(of_gpu < round_trip && 2 * round_trip < of_sys, "one of each kind");
    assert!(
        (round_trip..2 * round_trip).contains(&gpu),
        "{gpu}, a round trip takes {round_trip}"
    );
    // The store is back long before. It issues in a cycle, and the fence in the next at the earliest.
    assert!((of_sys + 1..of_sys + 5).contains(&sys), "{sys}");
}

/// Cycles of a MEMBAR in warp 0. Warp 1 executes `before` first, then both pass a block barrier.
fn fence_behind_other_warp(scope: &str, before: &str) -> u32 {
    let mut bench = Bench::new(4096);
    let text = format!(
        "{FOLLOW}S2R R0, SR_TID.X
        ISETP.GE.AND.S32 P0, PT, R0, 0x20, PT, PT
        @P0 {before}
        BAR RZ, RZ
        @P0 EXIT
        S2R R6, SR_CLOCKLO
        MEMBAR.{scope}
        S2R R7, SR_CLOCKLO
        IADD3 R8, PT, R7, -R6, RZ, PT
        ST.B32 [R2], R8
        EXIT"
    );
    bench.run(&text, 1, 64).expect("it ends");
    bench.words(1)[0]
}

#[test]
fn fence_of_the_gpu_waits_for_accesses_of_other_warps_that_the_block_barrier_has_ordered() {
    // Warp 1's access goes to memory: it is under way for longer than the fence's own latency.
    let quiet = fence_behind_other_warp("GPU", "NOP");
    for before in [
        "ST.B32 [R2+0x1000], R0",
        "LD.B32 R9, [R2+0x1000]",
        "RED.ADD.U32.B32 [R2+0x1000], R0",
    ] {
        let waits = fence_behind_other_warp("GPU", before);
        assert!(waits > quiet, "{before}: {waits} cycles, {quiet} without");
        let block = fence_behind_other_warp("CTA", before);
        assert_eq!(
            block,
            fence_behind_other_warp("CTA", "NOP"),
            "{before}: the block's fence waits for no other warp"
        );
    }
}

#[test]
fn invalidation_of_the_l1_a_loaded_line_is_fetched_again_from_the_l2() {
    let load = "LD.B32 R9, [R2+0x100]\nIADD3 R9, PT, R9, RZ, RZ, PT";
    let (in_l1, in_l2) = (load_behind(load), load_behind("LD.B32.CG R9, [R2+0x100]"));
    assert_eq!(load_behind(&format!("{load}\nCCTL.IVALL")), in_l2);
    assert_eq!(
        load_behind(&format!("{load}\nMEMBAR.GPU")),
        in_l1,
        "a fence alone keeps the lines"
    );
}

/// Cycles of one NANOSLEEP. R1 is the lane times 256.
fn cycles_asleep(sleep: &str) -> u64 {
    let mut bench = Bench::new(64);
    let text = format!(
        "S2R R0, SR_TID.X
        IMAD R1, R0, 0x100, RZ
        MOV R2, 0x4000
        ISETP.LT.AND.S32 P0, PT, R0, 0x8, PT, PT
        S2R R6, SR_CLOCKLO
        {sleep}
        S2R R7, SR_CLOCKLO
        IADD3 R8, PT, R7, -R6, RZ, PT
        MOV R4, c[0][0x160]
        MOV R5, c[0][0x164]
        ST.B32 [R4], R8
        EXIT"
    );
    bench.run(&text, 1, 32).expect("it ends");
    bench.words(1)[0].into()
}

/// A sleep has at most 1 ms (PTX ISA, `nanosleep`): as many cycles as the core clock has kHz.
#[test]
fn sleep_of_two_seconds_ends_after_one_millisecond() {
    let khz = u64::from(Bench::new(1).config().clocks.core_khz);
    let text = "MOV R1, 0x77359400\nNANOSLEEP R1\nEXIT";
    let mut bench = Bench::new(1);
    let grid = bench.grid(text, 1, 32);
    let ran = bench.gpu.launch(grid, Some(2 * khz), &mut |_| true).expect("it ends");
    assert!((khz..khz + 1000).contains(&ran.cycles()), "{}", ran.cycles());
}

/// The warp sleeps for the longest of its lanes that execute the instruction: 31 or 7 times 256 ns, or not at all.
#[test]
fn warp_sleeps_for_the_longest_of_its_executing_lanes() {
    let khz = u64::from(Bench::new(1).config().clocks.core_khz);
    let of = |lane: u64| 256 * lane * khz / 1_000_000;
    // The two reads of the clock and the branch unit take a few cycles.
    for (sleep, expected) in [
        ("NANOSLEEP R1", of(31)),
        ("@P0 NANOSLEEP R1", of(7)),
        ("@!PT NANOSLEEP R2", 0),
    ] {
        let cycles = cycles_asleep(sleep);
        assert!(
            (expected..expected + 100).contains(&cycles),
            "{sleep}: {cycles}, not {expected}"
        );
    }
}
