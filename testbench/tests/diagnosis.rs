//! The diagnosis of a run: its first line is the point of each lesson, its phases add up, and its lines name the right instructions.

use std::path::Path;

use warpwave::bench::{Bench, Options, Run};
use warpwave::report::diagnosis::{self, Bound, Diagnosis};
use warpwave::report::{json, text};
use warpwave::scenario::{Scenario, builtin};
use warpwave_components::preset;

const OPTIONS: Options = Options {
    threads: 1,
    max_cycles: None,
};

/// Runs a scenario, built in or in a file.
fn run(scenario: &Scenario, gpu: &str) -> Run {
    let config = preset::load(gpu, &[]).unwrap().config;
    let run = Bench::new(scenario, config).unwrap().run(OPTIONS, &mut |_| true);
    assert!(run.stopped.is_none() && run.differences.is_empty(), "{}", scenario.name);
    run
}

fn summary(scenario: &Scenario, run: &Run) -> String {
    let mut bytes = Vec::new();
    text::summary(&mut bytes, &scenario.name, run).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The number after `line ` in a text.
fn line_in(text: &str) -> usize {
    let (_, rest) = text
        .split_once("line ")
        .unwrap_or_else(|| panic!("no line in `{text}`"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Scenario, words of its first line, and the PTX at the line that it names. The last one is empty where no line is named.
const LESSONS: [(&str, &[&str], &str); 16] = [
    (
        "transpose_naive",
        &["uncoalesced store", "30 sectors a request where 4 would do"],
        "st.global",
    ),
    (
        "transpose_tiled",
        &["-way bank conflict", "where 1 would do"],
        "ld.shared",
    ),
    ("copy_strided", &["uncoalesced store", "where 4 would do"], "st.global"),
    ("diverge_nested", &["divergence", "of 32 lanes"], "bra"),
    ("diverge_switch", &["divergence", "of 32 lanes"], "bra"),
    ("loop_collatz", &["divergence", "of 32 lanes"], "bra"),
    (
        "latency_hiding",
        &[
            "launch 0",
            "too few warps to hide latency: 1.0 of 64",
            "long_scoreboard",
        ],
        "",
    ),
    ("triton_matmul", &["uncoalesced load", "where 2 would do"], "ld.global"),
    (
        "coalescing",
        &["uncoalesced load", "32 sectors a request where 4 would do"],
        "ld.global",
    ),
    (
        "latency-hiding",
        &["too few warps to hide latency: 4.0 of 64", "wait is"],
        "",
    ),
    ("divergence", &["divergence: 1.", "of 32 lanes"], "bra"),
    (
        "transpose",
        &[
            "(naive)",
            "uncoalesced store",
            "31.2 sectors a request where 4 would do",
        ],
        "st.global",
    ),
    (
        "occupancy-is-not-speed",
        &["(full)", "uncoalesced load", "32 sectors a request where 4 would do"],
        "ld.global",
    ),
    (
        "bank-conflicts",
        &["(s32)", "32-way bank conflict", "32 passes a load where 1 would do"],
        "ld.shared",
    ),
    (
        "register-pressure",
        &["(capped)", "spilled registers", "bytes a thread in local memory"],
        "",
    ),
    ("saxpy", &["grid too small: 40 blocks on 132 SMs, 0.04 waves"], ""),
];

#[test]
fn first_line_of_the_report_is_the_point_of_the_lesson() {
    for (name, words, ptx) in LESSONS {
        let scenario = builtin::load(name).unwrap();
        let gpu = scenario.gpu.as_deref().unwrap_or("h100-sxm5");
        let summary = summary(&scenario, &run(&scenario, gpu));
        let first = summary.lines().next().unwrap();
        assert!(first.starts_with(&format!("{name}: ")), "{first}");
        for word in words {
            assert!(first.contains(word), "`{word}` is not in `{first}`");
        }
        if !ptx.is_empty() {
            let line = scenario.ptx.lines().nth(line_in(first) - 1).unwrap();
            assert!(line.contains(ptx), "{first}: the line is `{line}`");
        }
    }
}

/// A row of 32 tiles of the copy kernels: the strided one fills the SMs, the coalesced one has half their warps.
const OCCUPANCY: &str = r#"
ptx = "copy_patterns.ptx"
gpu = "tiny"
[buffers.src]
dtype = "f32"
shape = [65536]
init = "zeros"
[buffers.dst]
dtype = "f32"
shape = [65536]
init = "zeros"
[[launch]]
name = "full"
entry = "copy_strided"
grid = 32
block = 256
args = ["src", "dst", { i32 = 65536 }, { i32 = 8 }]
[[launch]]
name = "half"
entry = "copy_coalesced"
grid = 32
block = 256
dynamic_shared_bytes = 40000
args = ["src", "dst", { i32 = 8192 }]
"#;

/// A scenario file beside copies of built-in kernels.
fn scenario_of(text: &str, files: &[(&str, String)]) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let file = folder.path().join("own.toml");
    std::fs::write(&file, text).unwrap();
    Scenario::find_all(file.to_str().unwrap()).unwrap().remove(0)
}

#[test]
fn slow_kernel_at_full_occupancy_is_blamed_for_its_accesses() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/copy/copy_patterns.ptx");
    let kernels = std::fs::read_to_string(kernels).unwrap();
    let scenario = scenario_of(OCCUPANCY, &[("copy_patterns.ptx", kernels)]);
    let run = run(&scenario, "tiny");
    let diagnoses = diagnosis::of_run(&run);
    let headline = diagnosis::headline(&run, &diagnoses).unwrap();
    assert!(headline.starts_with("launch 0 (full): uncoalesced "), "{headline}");
    let [full, half] = &diagnoses[..] else {
        panic!("two launches")
    };
    assert!(full.occupancy.theoretical > half.occupancy.theoretical);
    assert_eq!(half.occupancy.limiter, "shared memory");
    assert!(run.launches[0].cycles > run.launches[1].cycles);
}

/// A branch on the index of the thread, then a loop of 64 turns.
const PARTIAL: &str = ".version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n) {
    .reg .b32 %r<6>; .reg .b64 %rd<3>; .reg .f32 %f<2>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r2, [n];
    mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r1, %r3, %r4, %r1;
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    mov.f32 %f1, 0f3f800000; mov.u32 %r5, 0;
TURN:
    fma.rn.f32 %f1, %f1, %f1, %f1;
    fma.rn.f32 %f1, %f1, %f1, %f1;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 64;
    @%p2 bra TURN;
    st.global.f32 [%rd1], %f1;
DONE:
    ret;
}
";

#[test]
fn small_blocks_are_blamed_and_not_a_branch_that_rarely_diverges() {
    // 200 blocks of 8 threads. The branch diverges in the last block alone.
    let text = "ptx = \"k.ptx\"\nbuffers.o = { dtype = \"f32\", shape = [1600] }\n[[launch]]\ngrid = 200\nblock = 8\n\
                args = [\"o\", { u32 = 1597 }]\n";
    let scenario = scenario_of(text, &[("k.ptx", PARTIAL.to_owned())]);
    let run = run(&scenario, "tiny");
    let diagnoses = diagnosis::of_run(&run);
    let partial = diagnoses[0].causes.iter().find(|cause| cause.kind == "divergence");
    let partial = partial.expect("24 of 32 lanes are off");
    assert!(partial.text.starts_with("partial warps: "), "{}", partial.text);
    assert!(
        partial.text.ends_with("a block of 8 threads has 1 warp"),
        "{}",
        partial.text
    );
    assert!(partial.at.is_none());
}

#[test]
fn textures_and_other_blocks_are_not_uncoalesced() {
    for name in ["texture", "cluster_swap", "cluster_histogram"] {
        let scenario = builtin::load(name).unwrap();
        let run = run(&scenario, "tiny");
        let diagnoses = diagnosis::of_run(&run);
        // One kernel reads the image from a buffer, column by column.
        let of_others = run
            .launches
            .iter()
            .zip(&diagnoses)
            .filter(|(launch, _)| launch.entry != "by_buffer");
        for (_, diagnosis) in of_others {
            let cause = diagnosis.causes.iter().find(|cause| cause.kind == "uncoalesced");
            assert!(cause.is_none(), "{name}: {cause:?}");
        }
    }
}

/// Loads 24 values and uses each twice, in two rounds, with 16 registers.
fn spilling() -> String {
    let registers = 24;
    let load = |n: usize| format!("ld.global.u32 %r{n}, [%rd1+{}];\n", 4 * n);
    let add = |n: usize| format!("mad.lo.u32 %r30, %r30, %r{n}, %r{n};\n");
    let loads: String = (0..registers).map(load).collect();
    let adds: String = (0..registers).chain(0..registers).map(add).collect();
    format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry spill(.param .u64 data)\n.maxnreg 16\n{{\n\
         .reg .b32 %r<32>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [data];\nmov.u32 %r30, 1;\n{loads}{adds}\
         st.global.u32 [%rd1+128], %r30;\nret;\n}}\n"
    )
}

#[test]
fn register_pressure_is_diagnosed_as_spills() {
    let toml = "ptx = \"spill.ptx\"\nbuffers.data = { dtype = \"u32\", shape = [64], init = \"zeros\" }\n\
                launch = [{ grid = 4, block = 256, args = [\"data\"] }]\n";
    let scenario = scenario_of(toml, &[("spill.ptx", spilling())]);
    let run = run(&scenario, "tiny");
    let diagnoses = diagnosis::of_run(&run);
    let headline = &diagnoses[0].headline;
    assert!(headline.starts_with("spilled registers: "), "{headline}");
    let bytes = run.launches[0].program.requirements().local_bytes;
    assert!(bytes >= 4 * (24 - 16), "{bytes} bytes");
    assert!(headline.contains(&format!("{bytes} bytes a thread")), "{headline}");
    assert!(diagnoses[0].causes[0].advice.contains("more than 16 registers"));
}

/// Sums 1 to 8 by recursion.
const RECURSION: &str = "
.version 7.8
.target sm_80
.address_size 64
.func (.param .b32 result) sum(.param .b32 n)
{
    .reg .b32 %n, %r, %x;
    .reg .pred %z;
    ld.param.u32 %n, [n];
    mov.u32 %r, 0;
    setp.eq.u32 %z, %n, 0;
    @%z bra done;
    sub.u32 %x, %n, 1;
    { .param .b32 a; .param .b32 c;
    st.param.b32 [a], %x;
    call.uni (c), sum, (a);
    ld.param.b32 %r, [c]; }
    add.u32 %r, %r, %n;
done:
    st.param.b32 [result], %r;
    ret;
}
.visible .entry recurse(.param .u64 data)
{
    .reg .b32 %t, %r;
    .reg .b64 %d;
    ld.param.u64 %d, [data];
    mov.u32 %t, 8;
    { .param .b32 a; .param .b32 c;
    st.param.b32 [a], %t;
    call.uni (c), sum, (a);
    ld.param.b32 %r, [c]; }
    st.global.u32 [%d], %r;
    ret;
}
";

#[test]
fn call_stack_is_not_diagnosed_as_spills() {
    let toml = "ptx = \"recurse.ptx\"\nbuffers.data = { dtype = \"u32\", shape = [1], expect = { fill = 36 } }\n\
                launch = [{ grid = 4, block = 256, args = [\"data\"] }]\n";
    let scenario = scenario_of(toml, &[("recurse.ptx", RECURSION.to_owned())]);
    let run = run(&scenario, "tiny");
    let [diagnosis] = &diagnosis::of_run(&run)[..] else {
        panic!("one launch")
    };
    let cause = diagnosis.causes.iter().find(|cause| cause.kind == "local_memory");
    let cause = cause.unwrap_or_else(|| panic!("{:?}", diagnosis.causes));
    let bytes = run.launches[0].program.requirements().local_bytes;
    let says = format!("arrays and call stack in local memory: {bytes} bytes a thread, ");
    assert!(cause.text.starts_with(&says), "{}", cause.text);
    assert!(diagnosis.causes.iter().all(|cause| cause.kind != "spills"));
}

#[test]
fn busy_memory_explains_the_waits_for_memory() {
    let scenario = builtin::load("copy_coalesced").unwrap();
    // A bus of an eighth of the width: the kernel needs most of it.
    let sets = [
        ("hbm.bus_bytes_per_command_cycle", "4"),
        ("hbm.timing.t_ccd_s", "8"),
        ("hbm.timing.t_ccd_l", "8"),
        ("hbm.access_latency", "200"),
    ];
    let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let config = preset::load("tiny", &sets).unwrap().config;
    let run = Bench::new(&scenario, config).unwrap().run(OPTIONS, &mut |_| true);
    let [diagnosis] = &diagnosis::of_run(&run)[..] else {
        panic!("one launch")
    };
    let kinds: Vec<_> = diagnosis.causes.iter().map(|cause| cause.kind).collect();
    assert!(diagnosis.headline.starts_with("memory bandwidth: "), "{kinds:?}");
    assert_eq!(diagnosis.bound, Bound::Memory);
    assert!(!kinds.contains(&"stall"), "{:?}", diagnosis.causes);
}

/// The diagnosis of a kernel of 4 blocks of 128 threads on `tiny`. `%p` is the buffer `data` of 1,024 words, and `%o` 4 times the thread.
fn of_buffer(body: &str) -> diagnosis::Diagnosis {
    let ptx = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data) {{\n.reg .pred %q;\n\
         .reg .b64 %p, %o, %v, %w;\n.reg .b32 %t, %n;\nld.param.u64 %p, [data];\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %o, %t, 4;\nmov.u32 %n, 0;\n{body}\nret;\n}}\n"
    );
    let toml = "ptx = \"k.ptx\"\nbuffers.data = { dtype = \"u32\", shape = [4096], init = \"zeros\" }\n\
                launch = [{ grid = 4, block = 128, args = [\"data\"] }]\n";
    let run = run(&scenario_of(toml, &[("k.ptx", ptx)]), "tiny");
    diagnosis::of_run(&run).remove(0)
}

#[test]
fn atomics_on_one_word_are_the_cause_and_not_too_few_warps() {
    let diagnosis =
        of_buffer("LOOP:\nred.global.add.u32 [%p], 1;\nadd.u32 %n, %n, 1;\nsetp.lt.u32 %q, %n, 32;\n@%q bra LOOP;");
    let cause = &diagnosis.causes[0];
    // Eleven lines of the head and a label come before.
    assert!(
        cause
            .text
            .starts_with("atomics at line 13: 1 of 2 L2 slices are busy with them for up to "),
        "{}",
        cause.text
    );
    assert!(cause.advice.contains("shared memory"), "{}", cause.advice);
}

#[test]
fn wide_scattered_load_has_the_sectors_of_a_warp_instruction() {
    // 32 lanes of 8 bytes, 128 bytes apart: 32 sectors, and 256 bytes fit 8.
    let diagnosis = of_buffer(
        "mul.wide.u32 %o, %t, 128;\nadd.s64 %p, %p, %o;\nld.global.u64 %v, [%p];\nld.global.u64 %w, [%p+16];\n\
         add.s64 %v, %v, %w;\nst.global.u64 [%p+8], %v;",
    );
    let cause = diagnosis.causes.iter().find(|cause| cause.kind == "uncoalesced");
    let text = &cause.expect("lanes are a line apart").text;
    assert!(text.ends_with(": 32 sectors a request where 8 would do"), "{text}");
}

#[test]
fn conflict_of_atomics_has_its_own_remedy_and_its_words_are_explained() {
    let scenario = builtin::load("histogram_shared").unwrap();
    let run = run(&scenario, "tiny");
    let diagnoses = diagnosis::of_run(&run);
    let cause = diagnoses[0].causes.iter().find(|cause| cause.kind == "bank_conflict");
    let cause = cause.expect("lanes of a warp count in one bin");
    assert!(cause.text.contains("-way conflict at line "), "{}", cause.text);
    assert!(
        cause.text.ends_with(" passes an atomic where 1 would do"),
        "{}",
        cause.text
    );
    assert!(cause.advice.contains("one lane act for its warp"), "{}", cause.advice);
    let summary = summary(&scenario, &run);
    let explained = |word: &str| summary.matches(&format!("\n{word:<20} ")).count();
    assert_eq!(["passes", "MSHRs", "waves"].map(explained), [1, 1, 0]);
    // A state of warps and a path of latencies: a row in each table, and both meanings.
    assert_eq!(explained("barrier"), 4);
}

#[test]
fn parts_of_the_speed_of_light_have_the_basis_of_the_whole() {
    let scenario = builtin::load("transpose_naive").unwrap();
    let run = run(&scenario, "tiny");
    let [diagnosis] = &diagnosis::of_run(&run)[..] else {
        panic!("one launch")
    };
    let speed = &diagnosis.speed_of_light;
    for part in [speed.l1, speed.l2, speed.dram] {
        assert!(part <= speed.memory * (1.0 + 1e-9), "{speed:?}");
    }
    // The L1 by hand: its busiest stage in all cycles of all SMs.
    let counts = &run.launches[0].counts;
    let stages = [("l1", "tag_cycles"), ("l1", "data_cycles"), ("shared", "busy_cycles")];
    let busiest = stages
        .map(|(block, counter)| counts.sum(block, counter).unwrap())
        .into_iter()
        .max()
        .unwrap();
    let all = run.launches[0].cycles * u64::from(run.config.n_sms());
    let l1 = busiest as f64 / all as f64 * 100.0;
    assert!((speed.l1 - l1).abs() < 1e-9 && l1 > 0.0, "{} is not {l1}", speed.l1);
    // A launch that is bound by latency has no busy unit among its causes.
    let busy = diagnosis.causes.iter().any(|cause| cause.kind == "busy_unit");
    assert_eq!(diagnosis.bound, diagnosis::Bound::Latency);
    assert!(!busy, "{:?}", diagnosis.causes);
}

#[test]
fn phases_of_a_launch_are_those_of_its_blocks() {
    let scenario = builtin::load("saxpy").unwrap();
    let run = run(&scenario, "tiny");
    let config = &run.config;
    let [diagnosis] = &diagnosis::of_run(&run)[..] else {
        panic!("one launch")
    };
    let phases = &diagnosis.phases;
    let cycles: u64 = phases.each().iter().map(|(_, cycles)| cycles).sum();
    assert_eq!(cycles, run.launches[0].cycles);
    // Before the first block lie the launch latency and some cycles of the host's link.
    let latency = u64::from(config.gigathread.launch_latency);
    assert!((latency..latency + 10).contains(&phases.launch), "{}", phases.launch);
    // Both SMs are full with 8 blocks of 8 warps each. So the ramp lasts from the first to the 16th of 40 blocks.
    assert_eq!(run.launches[0].shape.occupancy.blocks * config.n_sms(), 16);
    let (_, dispatch) = run.totals.latencies().find(|(path, _)| *path == "dispatch").unwrap();
    let sent = dispatch.histogram();
    assert_eq!(phases.ramp, sent.value_at_quantile(16.0 / 40.0) - sent.min());
    assert!(phases.steady > phases.ramp && phases.tail > 0);
}

#[test]
fn every_diagnosis_has_at_most_three_ranked_causes_and_a_share_of_one_at_most() {
    for (name, ..) in LESSONS {
        let scenario = builtin::load(name).unwrap();
        let run = run(&scenario, "tiny");
        for Diagnosis {
            causes,
            headline,
            speed_of_light,
            bound,
            ..
        } in diagnosis::of_run(&run)
        {
            assert!(causes.len() <= 3 && !headline.is_empty(), "{name}");
            assert!(
                causes.iter().all(|cause| (0.1..=1.0).contains(&cause.share)),
                "{name}: {causes:?}"
            );
            let is_busy = speed_of_light.sm >= 60.0 || speed_of_light.memory >= 60.0;
            assert_eq!(is_busy, bound != Bound::Latency, "{name}");
        }
    }
}

#[test]
fn each_launch_has_its_own_diagnosis_in_text_and_json() {
    let scenario = builtin::load("latency_hiding").unwrap();
    let run = run(&scenario, "tiny");
    let summary = summary(&scenario, &run);
    assert_eq!(
        summary.matches("state of warps").count(),
        3,
        "two launches, and both together"
    );
    assert!(
        summary.contains("\nlaunch 0, ddot: ") && summary.contains("\nlaunch 1, ddot: "),
        "{summary}"
    );
    assert!(summary.contains("\nall launches\n"));
    assert!(
        summary.contains("\nlong_scoreboard      warp state: "),
        "the glossary explains its words"
    );
    let report: serde_json::Value = serde_json::from_str(&json::report("latency_hiding", &run)).unwrap();
    for launch in 0..2 {
        let diagnosis = &report["launches"][launch]["diagnosis"];
        let phases: u64 = ["launch", "ramp", "steady", "tail"]
            .map(|name| diagnosis["phases"][name].as_u64().unwrap())
            .iter()
            .sum();
        assert_eq!(phases, run.launches[launch].cycles);
        assert_eq!(diagnosis["headline"], diagnosis["causes"][0]["text"]);
        assert_eq!(diagnosis["bound"], "latency");
        assert!(diagnosis["occupancy"]["theoretical"].as_f64() >= diagnosis["occupancy"]["achieved"].as_f64());
    }
    assert!(
        report["diagnosis"]
            .as_str()
            .unwrap()
            .starts_with("launch 0 (ddot): too few warps")
    );
}

/// Diagnoses a kernel of 2 blocks on `tiny`, which has 2 SMs. `%t` is the thread, and `%a` an address in shared memory.
fn causes_of(body: &str, block: u32) -> Vec<(&'static str, String, f64)> {
    let folder = tempfile::tempdir().unwrap();
    let ptx = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n.shared .align 4 .b8 tile[8192];\n\
         .reg .pred %p, %q; .reg .b32 %t, %a, %n, %m, %v;\nmov.u32 %t, %tid.x;\nmov.u32 %a, tile;\n{body}\nret;\n}}\n"
    );
    std::fs::write(folder.path().join("k.ptx"), ptx).unwrap();
    let path = folder.path().join("k.toml");
    let text = format!("ptx = \"k.ptx\"\n[[launch]]\ngrid = 2\nblock = {block}\n");
    std::fs::write(&path, text).unwrap();
    let run = run(&Scenario::load(&path).unwrap(), "tiny");
    let [diagnosis] = &diagnosis::of_run(&run)[..] else {
        panic!("one launch")
    };
    let cause = |cause: &diagnosis::Cause| (cause.kind, cause.text.clone(), cause.share);
    diagnosis.causes.iter().map(cause).collect()
}

/// Warp 0 counts to 2000, and the other warps wait at a barrier for it.
const WARP_0_COUNTS: &str = "
setp.ge.u32 %q, %t, 32;
@%q bra MET;
mov.u32 %n, 2000;
LOOP:
.pragma \"nounroll\";
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;
MET:
bar.sync 0;";

#[test]
fn few_bank_conflicts_before_a_long_barrier_are_not_the_cause() {
    // One store with a stride of 64 bytes: 16 passes for each warp. The barrier takes thousands of cycles.
    let body = format!("mad.lo.u32 %a, %t, 64, %a;\nst.shared.u32 [%a], %t;\n{WARP_0_COUNTS}");
    let causes = causes_of(&body, 128);
    assert!(causes[0].1.starts_with("barrier, "), "{causes:?}");
    assert!(causes.iter().all(|(kind, ..)| *kind != "bank_conflict"), "{causes:?}");
}

#[test]
fn idle_lanes_of_warps_that_wait_at_a_barrier_are_not_the_cause() {
    // Half the lanes of each warp branch before the barrier.
    let body = format!(
        "and.b32 %m, %t, 16;\nsetp.ne.u32 %p, %m, 0;\n@%p bra OVER;\nmul.lo.u32 %v, %t, 3;\nst.shared.u32 [%a], %v;\nOVER:\n{}",
        WARP_0_COUNTS.replace("sub.u32", "@%p bra TURN;\nTURN:\nsub.u32")
    );
    let causes = causes_of(&body, 128);
    assert!(causes[0].1.starts_with("barrier, "), "{causes:?}");
}

#[test]
fn sleep_is_the_cause_of_a_kernel_that_sleeps() {
    // A block sleeps 20 times. Between two sleeps, 8 of 32 lanes store with conflicts.
    let body = "
mov.u32 %n, 20;
and.b32 %m, %t, 24;
setp.eq.u32 %q, %m, 0;
mad.lo.u32 %a, %t, 64, %a;
LOOP:
nanosleep.u32 500;
@!%q bra SKIP;
st.shared.u32 [%a], %n;
add.u32 %v, %n, 1;
mul.lo.u32 %v, %v, %v;
st.shared.u32 [%a], %v;
SKIP:
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;";
    let causes = causes_of(body, 128);
    assert!(causes[0].1.starts_with("sleeping, "), "{causes:?}");
}

#[test]
fn early_return_of_half_the_lanes_is_named_with_its_line() {
    // The upper half of each warp returns at the top. The lower half counts to 500.
    let body = "
and.b32 %m, %t, 16;
setp.ne.u32 %p, %m, 0;
@%p ret;
mov.u32 %n, 500;
LOOP:
.pragma \"nounroll\";
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra LOOP;";
    let causes = causes_of(body, 512);
    let (kind, text, share) = &causes[0];
    // Four lines of the head, `.shared`, `.reg`, two moves, and an empty line come before the third line.
    assert_eq!((*kind, line_in(text)), ("early_return", 12), "{causes:?}");
    assert!(
        text.starts_with("early return: 16") && text.contains("100 % of the returns"),
        "{text}"
    );
    // Half the lanes are idle.
    assert!((0.4..=0.5).contains(share), "{causes:?}");
}
