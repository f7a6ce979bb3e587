//! Waveforms of scenarios agree with the counters, and with each other. GTKWave opens the saved view, shows every row, and gives the
//! values of another reader at several cycles. Without GTKWave that test says so, and `.ci/run` counts it as skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use warpwave::bench::{Bench, Options, Run};
use warpwave::scenario::builtin;
use warpwave_components::preset;
use warpwave_hw::time::Cycle;
use warpwave_waveforms::file::RunInfo;
use warpwave_waveforms::select::Selection;
use warpwave_waveforms::waveform::Waveform;

mod dump;

use dump::Dump;

/// Runs a scenario on the smallest machine with a waveform of everything, for `max_cycles` at most.
fn record(scenario: &str, vcd: &Path, max_cycles: u64) -> Run {
    let scenario = builtin::load(scenario).unwrap();
    let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let about = RunInfo {
        code: bench.instructions().into(),
        ..RunInfo::new(1_000_000, vec![scenario.name.clone()])
    };
    let clock = bench.gpu_mut().clock_mut();
    let mut waveform = Waveform::create(vcd, &Selection::all(), &about, clock).unwrap();
    let options = Options {
        threads: 1,
        max_cycles: Some(max_cycles),
    };
    let mut last = Cycle::ZERO;
    let run = bench.run(options, &mut |progress| {
        last = progress.now;
        waveform.collect(progress.now).is_ok()
    });
    // A stopped machine is reset, which moves its clock on.
    let end = if run.stopped.is_some() {
        last
    } else {
        bench.gpu().clock().now()
    };
    waveform.finish(end).unwrap();
    run
}

/// The counters of warps' states.
const COUNTERS: [&str; 17] = [
    "stall_gmma",
    "stall_drain",
    "stall_sleeping",
    "stall_barrier",
    "stall_membar",
    "stall_branch_resolving",
    "stall_no_instruction",
    "stall_imc_miss",
    "stall_long_scoreboard",
    "stall_short_scoreboard",
    "stall_wait",
    "stall_lg_throttle",
    "stall_mio_throttle",
    "stall_math_pipe_throttle",
    "stall_dispatch_stall",
    "stall_not_selected",
    "stall_selected",
];

/// The states of a warp, as the comments of a dump give them: `states of state: 0 drain, 1 sleeping, ...`.
fn states(dump: &Dump) -> Vec<String> {
    let lists = dump
        .comments
        .iter()
        .filter_map(|line| line.strip_prefix("states of state: "));
    let list = lists.into_iter().find(|list| list.contains("long_scoreboard")).unwrap();
    let name = |state: &str| state.trim().split_once(' ').unwrap().1.to_owned();
    list.split(',').map(name).collect()
}

#[test]
fn states_of_all_warps_in_the_waveform_sum_to_the_counters() {
    let folder = tempfile::tempdir().unwrap();
    // A run that is stopped ends while warps wait: their states count up to the last cycle.
    let stops = [
        ("transpose_tiled", 2_372),
        ("latency_hiding", 700),
        ("reduce_shuffle", 333),
    ];
    let ends = ["transpose_tiled", "diverge_nested", "latency_hiding", "reduce_shuffle"].map(|name| (name, 1_000_000));
    for (scenario, max_cycles) in ends.into_iter().chain(stops) {
        let file = folder.path().join("run.vcd");
        let run = record(scenario, &file, max_cycles);
        assert_eq!(run.stopped.is_some(), max_cycles < 1_000_000, "{scenario}");
        let dump = Dump::read(&fs::read_to_string(&file).unwrap()).by_cycle();
        let names = states(&dump);
        let empty = names.iter().position(|name| name == "empty").unwrap() as u64;
        let mut cycles = vec![0; names.len()];
        // The cycles in which the warp's scheduler issues nothing.
        let mut unissued = vec![0; names.len()];
        let mut issues: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        // For each scheduler, the cycles with a resident warp.
        let mut active: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        let warps = dump
            .signals
            .iter()
            .filter(|s| s.path.contains(".warp[") && s.path.ends_with(".state"));
        for warp in warps {
            let ends = warp.changes.iter().skip(1).map(|change| change.0).chain([dump.end]);
            for (&(begin, state), end) in warp.changes.iter().zip(ends) {
                let (scheduler, _) = warp.path.split_once(".warp[").unwrap();
                let issues = issues
                    .entry(scheduler)
                    .or_insert_with(|| issue_cycles(&dump, scheduler));
                cycles[state.unwrap() as usize] += end - begin;
                unissued[state.unwrap() as usize] += end - begin - issues.range(begin..end).count() as u64;
                if state != Some(empty) {
                    active.entry(scheduler).or_default().extend(begin..end);
                }
            }
        }
        let active: usize = active.values().map(BTreeSet::len).sum();
        let counted = run.totals.sum("scheduler", "active_cycles");
        assert_eq!(
            Some(active as u64),
            counted,
            "{scenario}: {max_cycles}: cycles with a warp"
        );
        let shown = names.iter().zip(cycles.into_iter().zip(unissued));
        for (name, (shown, unissued)) in shown.filter(|(name, _)| *name != "empty") {
            let counter = COUNTERS
                .into_iter()
                .find(|counter| counter.strip_prefix("stall_") == Some(name));
            let counter = counter.unwrap_or_else(|| panic!("no counter of {name}"));
            assert_eq!(
                Some(shown),
                run.totals.sum("scheduler", counter),
                "{scenario}: {max_cycles}: cycles in state {name}"
            );
            assert_eq!(
                Some(unissued),
                run.totals.sum("scheduler", &format!("unissued_{name}")),
                "{scenario}: {max_cycles}: cycles in state {name} without an issue"
            );
        }
    }
}

/// The cycles in which a scheduler issues.
fn issue_cycles(dump: &Dump, scheduler: &str) -> BTreeSet<u64> {
    let valid = dump.signal(&format!("{scheduler}.issue_valid")).unwrap();
    let ends = valid.changes.iter().skip(1).map(|change| change.0).chain([dump.end]);
    let issues = valid
        .changes
        .iter()
        .zip(ends)
        .filter(|((_, valid), _)| *valid == Some(1));
    issues.flat_map(|(&(begin, _), end)| begin..end).collect()
}

#[test]
fn sample_counts_the_states_that_the_waveform_has_in_its_cycles() {
    let folder = tempfile::tempdir().unwrap();
    for scenario in ["transpose_tiled", "diverge_nested", "latency_hiding"] {
        let file = folder.path().join("run.vcd");
        record(scenario, &file, 1_000_000);
        let dump = Dump::read(&fs::read_to_string(&file).unwrap()).by_cycle();
        let names = states(&dump);
        let whole = builtin::load(scenario).unwrap();
        for cycles in [900..901, 700..1500, 1001..2371] {
            let mut bench = Bench::new(&whole, preset::load("tiny", &[]).unwrap().config).unwrap();
            bench.sample(Cycle(cycles.start)..Cycle(cycles.end));
            let options = Options {
                threads: 1,
                max_cycles: None,
            };
            let run = bench.run(options, &mut |_| true);
            let mut shown = vec![0; names.len()];
            let warps = dump.signals.iter();
            for warp in warps.filter(|s| s.path.contains(".warp[") && s.path.ends_with(".state")) {
                let ends = warp.changes.iter().skip(1).map(|change| change.0).chain([dump.end]);
                for (&(begin, state), end) in warp.changes.iter().zip(ends) {
                    let within = end.min(cycles.end).saturating_sub(begin.max(cycles.start));
                    shown[state.unwrap() as usize] += within;
                }
            }
            for counter in COUNTERS {
                let name = counter.strip_prefix("stall_").unwrap();
                let at = names.iter().position(|state| state == name).unwrap();
                assert_eq!(
                    Some(shown[at]),
                    run.totals.sum("scheduler", counter),
                    "{scenario}: {cycles:?}: cycles in state {name}"
                );
            }
            let selected = names.iter().position(|state| state == "selected").unwrap();
            assert_eq!(Some(shown[selected]), run.totals.sum("scheduler", "inst_issued"));
            if run.stopped.is_some() {
                assert_eq!(run.cycles(), cycles.end - cycles.start, "{scenario}");
            }
        }
    }
}

#[test]
fn links_in_the_waveform_lose_no_message_and_never_exceed_their_depth() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.vcd");
    record("reduce_sequential", &file, 1_000_000);
    let dump = Dump::read(&fs::read_to_string(&file).unwrap()).by_cycle();
    let links: Vec<&str> = dump
        .signals
        .iter()
        .filter_map(|s| s.path.strip_suffix(".occupancy"))
        .collect();
    let links: Vec<&str> = links
        .into_iter()
        .filter(|path| dump.signal(&format!("{path}.ready")).is_some())
        .collect();
    assert!(links.len() > 100, "{} links are hardly all", links.len());
    let mut busy = 0;
    for path in links {
        let of = |name: &str| dump.signal(&format!("{path}.{name}")).unwrap();
        assert_eq!(
            of("occupancy").changes.last().unwrap().1,
            Some(0),
            "{path} is empty in the end"
        );
        assert_eq!(of("valid").changes.last().unwrap().1, Some(0), "{path}");
        assert_eq!(of("ready").changes.last().unwrap().1, Some(1), "{path}");
        // A payload has a value exactly while `valid` is 1.
        for &(at, valid) in &of("valid").changes {
            assert_eq!(of("payload").at(at).is_some(), valid == Some(1), "{path} in cycle {at}");
        }
        busy += usize::from(of("valid").changes.len() > 1);
    }
    assert!(busy > 40, "only {busy} links carried anything");
    // Both ends show the same link.
    let of = |path| dump.signal(path).map(|signal| &signal.changes).unwrap();
    let (there, here) = (
        "gpu.gpc[0].sm[0].l1.request.valid",
        "gpu.gpc[0].sm[0].lsu.to.l1.request.valid",
    );
    assert_eq!(of(there), of(here));
}

#[test]
fn packets_to_another_sm_of_a_cluster_show_sm_and_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.vcd");
    record("cluster_swap", &file, 1_000_000);
    let dump = Dump::read(&fs::read_to_string(&file).unwrap());
    let lines = dump.signals.iter().filter(|s| s.path.ends_with(".lsu.packet_line"));
    let shown: Vec<u64> = lines
        .flat_map(|line| &line.changes)
        .filter_map(|change| change.1)
        .collect();
    // SM in the upper of the 48 bits, byte of its shared memory in the lower.
    assert!(shown.iter().any(|line| line >> 32 == 1), "{shown:x?}");
}

/// A row of a save file: how it is shown, the names of its values, and its signal.
struct Row {
    flag: String,
    names: Option<String>,
    signal: String,
}

/// The rows from top to bottom. `None` for titles and blank lines.
fn rows(save: &str) -> Vec<Option<Row>> {
    let (mut rows, mut flag, mut names) = (Vec::new(), String::new(), None);
    for line in save.lines() {
        match line.split_at(1) {
            ("@", rest) => flag = rest.to_owned(),
            ("^", rest) => names = rest.split_once(' ').map(|(_, file)| file.to_owned()),
            ("-", _) => rows.push(None),
            ("[" | "*", _) => {}
            _ => {
                let signal = line.rsplit_once(' ').map_or(line, |(_, path)| path);
                rows.push(Some(Row {
                    flag: flag.clone(),
                    names: names.take(),
                    signal: signal.split('[').collect::<Vec<_>>().join("["),
                }));
            }
        }
    }
    rows
}

/// The names of values in a translation file, without colours.
fn names(text: &str) -> Vec<(u64, String)> {
    let line = |line: &str| {
        let (value, name) = line.split_once(' ').unwrap();
        let name = name.rsplit_once('?').map_or(name, |(_, name)| name);
        (u64::from_str_radix(value, 16).unwrap(), name.to_owned())
    };
    text.lines().map(line).collect()
}

/// The text that GTKWave must show for a value.
fn shown(folder: &Path, row: &Row, width: u32, value: u64) -> String {
    let digits = width.div_ceil(4) as usize;
    match (&row.names, row.flag.as_str()) {
        (Some(file), _) => {
            let names = names(&fs::read_to_string(folder.join(file)).unwrap());
            let named = names.into_iter().find(|(n, _)| *n == value);
            named.map_or(format!("{value:0digits$X}"), |(_, name)| name)
        }
        (None, "22" | "2022") => format!("{value:0digits$X}"),
        (None, "28") => format!("{value:b}"),
        (None, "88420") => format!("{}", f64::from_bits(value)),
        _ => value.to_string(),
    }
}

/// The output of GTKWave for a script on a save file. `None` if it cannot be run.
fn gtkwave(folder: &Path, script: &str, save: &str) -> Option<String> {
    fs::write(folder.join("look.tcl"), script).unwrap();
    let output = Command::new("xvfb-run")
        .args(["-a", "-s", "-screen 0 1600x1000x24", "timeout", "60", "gtkwave"])
        .args(["--rcvar", "splash_disable on", "-S", "look.tcl", save])
        .current_dir(folder)
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let missing = [
        "gtkwave: not found",
        "failed to run command",
        "No such file or directory",
    ];
    (!missing.iter().any(|text| said.contains(text))).then_some(said)
}

#[test]
fn gtkwave_shows_every_row_of_a_view_with_the_values_of_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    record("transpose_tiled", &folder.join("run.vcd"), 1_000_000);
    let save = fs::read_to_string(folder.join("run.gtkw")).unwrap();
    // Rows of closed groups are shown, but GTKWave gives no values for them.
    let open = save.replace("@c00200", "@800200").replace("@1401200", "@1000200");
    fs::write(folder.join("open.gtkw"), open.replace("run.gtkw", "open.gtkw")).unwrap();
    let rows = rows(&save);
    let cycles = [200u64, 1_000, 4_567, 9_000, 14_001];
    let mut script = "puts \"window [gtkwave::getWindowStartTime] [gtkwave::getWindowEndTime]\"\n".to_owned();
    script += "puts \"rows [llength [gtkwave::getDisplayedSignals]]\"\n";
    for cycle in cycles {
        script += &format!(
            "gtkwave::setMarker {}\nupdate\nfor {{set i 0}} {{$i < {}}} {{incr i}} {{ puts \"AT {cycle} $i [gtkwave::getTraceValueAtMarkerFromIndex $i]\" }}\n",
            cycle * 1000,
            rows.len()
        );
    }
    let Some(said) = gtkwave(folder, &(script + "gtkwave::/File/Quit\n"), "open.gtkw") else {
        println!("skipped: gtkwave with xvfb-run is not installed");
        return;
    };
    for fault in ["Unknown VCD", "backtracking", "Duplicate", "parse error", "malformed"] {
        assert!(!said.contains(fault), "{said}");
    }
    let n_rows = rows.iter().flatten().count();
    assert!(n_rows > 300, "{n_rows} rows are hardly a view");
    assert!(
        said.contains(&format!("rows {n_rows}\n")),
        "not every row of {n_rows} is shown"
    );
    let dump = Dump::read(&fs::read_to_string(folder.join("run.vcd")).unwrap());
    // The window opens at the launch and ends near the end of the run. GTKWave counts in ps, a cycle takes 1000 of them here.
    let window = said.lines().find_map(|line| line.strip_prefix("window ")).unwrap();
    let [from, to] = window
        .split(' ')
        .map(|time| time.parse::<u64>().unwrap() / 1000)
        .collect::<Vec<_>>()[..]
    else {
        panic!("{window}")
    };
    let end = dump.end / 10;
    assert!(
        from < 200 && to > end * 9 / 10 && to < end * 6 / 5,
        "{from} to {to} of {end}"
    );
    let mut compared = 0;
    for line in said.lines().filter_map(|line| line.strip_prefix("AT ")) {
        let mut words = line.splitn(3, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (cycle, index) = (number(), number());
        let text = words.next().unwrap_or("");
        let Some(row) = &rows[index as usize] else { continue };
        let path = match row.signal.rsplit_once('[') {
            Some((path, range)) if range.contains(':') => path,
            _ => &row.signal,
        };
        let signal = dump.signal(path).unwrap_or_else(|| panic!("{path} is not in the dump"));
        let Some(value) = signal.at(cycle * 10) else { continue };
        assert_eq!(text, shown(folder, row, signal.width, value), "{path} in cycle {cycle}");
        compared += 1;
    }
    assert!(compared > 1_000, "{compared} values are hardly a comparison");
}

/// The sub-cores of all SMs, by path.
fn subcores(dump: &Dump) -> BTreeSet<String> {
    let schedulers = dump
        .signals
        .iter()
        .filter_map(|s| s.path.strip_suffix(".scheduler.issue_pc"));
    schedulers.map(str::to_owned).collect()
}

/// The first register that an instruction's text names as its destination: 4 in `LD.B64.NC R4, [R2]`.
fn destination(text: &str) -> Option<u64> {
    let mut words = text.split(' ').filter(|word| !word.starts_with('@'));
    let operands = words.nth(1)?;
    let first = operands.split(',').next()?.trim();
    first.strip_prefix('R')?.parse().ok()
}

#[test]
fn write_back_shows_the_destination_in_the_instruction_and_its_scoreboard_bit_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.vcd");
    record("transpose_tiled", &file, 1_000_000);
    let scenario = builtin::load("transpose_tiled").unwrap();
    let bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let code = bench.instructions();
    let dump = Dump::read(&fs::read_to_string(&file).unwrap()).by_cycle();
    let mut compared = 0;
    for subcore in subcores(&dump) {
        let of = |name: &str| dump.signal(&format!("{subcore}.{name}")).unwrap();
        let written = of("dispatch.writeback_reg");
        for &(at, register) in &written.changes {
            let Some(register) = register else { continue };
            let inst = of("dispatch.writeback_inst").at(at).unwrap();
            assert_eq!(
                Some(register),
                destination(&code[inst as usize]),
                "cycle {at}: {}",
                code[inst as usize]
            );
            // The release reaches the scheduler in the next cycle.
            let warp = of("dispatch.writeback_warp").at(at).unwrap();
            let word = ["pending_r0", "pending_r64", "pending_r128", "pending_r192"][register as usize / 64];
            let pending = of(&format!("scheduler.warp[{warp}].{word}")).at(at).unwrap();
            assert_eq!(
                pending >> (register % 64) & 1,
                1,
                "{subcore}: R{register} in cycle {at}"
            );
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared} results are hardly a comparison");
}
