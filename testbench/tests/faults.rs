//! A fault of each kind on a link of each type. Delays and stalls give right results, every other fault is found.
//!
//! With `WARPWAVE_WRITE_FAULTS` the test writes the table of `docs/faults.md`. Otherwise it compares.

use std::collections::BTreeMap;
use std::path::PathBuf;

use warpwave::bench::{Bench, Options, Run, StopReason};
use warpwave::fault::KINDS;
use warpwave::scenario::{Scenario, builtin};
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset;
use warpwave_hw::link::fault::{Fault, FaultKind, Violation};
use warpwave_hw::link::wires::{LinkEnd, LinkEventLog, LinkObserver};
use warpwave_hw::time::Cycle;

/// A scenario and a machine.
type Case = (&'static str, &'static str);

/// Kernels that use shared memory, barriers, clusters, bulk copies, matrix products, all math pipes and constants. The A100 has links that `tiny` lacks:
/// of its constant caches, and between two slices of the L2 that hold one line.
const CASES: [Case; 9] = [
    ("cluster_histogram", "tiny"),
    ("tma_bulk_scale", "tiny"),
    ("wgmma_gemm", "tiny"),
    ("mma_f16", "tiny"),
    ("tma_multicast", "tiny"),
    ("latency_hiding", "tiny"),
    ("alu-latency", "tiny"),
    ("transpose_naive", "a100-sxm4-80"),
    ("constant-memory", "a100-sxm4-80"),
];

/// The fault acts on the first message of the link.
const FROM: Cycle = Cycle(0);

const OPTIONS: Options = Options {
    threads: 1,
    max_cycles: Some(400_000),
};

/// A machine with the scenario's buffers. Of the A100, one TPC.
fn bench<'a>(scenario: &'a Scenario, gpu: &str) -> Bench<'a> {
    let mut config = preset::load(gpu, &[]).unwrap().config;
    if gpu != "tiny" {
        (config.topology.gpcs, config.topology.tpcs_per_gpc) = (1, vec![1]);
    }
    Bench::new(scenario, config).unwrap()
}

/// Runs a case with a fault. Returns the run, and whether the fault acted.
fn run((scenario, gpu): Case, link: &str, kind: FaultKind) -> (Run, bool) {
    let scenario = builtin::load(scenario).unwrap();
    let mut bench = bench(&scenario, gpu);
    let fault = Fault {
        kind,
        from: FROM,
        cycles: 40,
        seed: 7,
    };
    bench
        .gpu_mut()
        .inject(link, fault)
        .unwrap_or_else(|error| panic!("{error}"));
    let run = bench.run(OPTIONS, &mut |_| true);
    let acted = bench.gpu().faults_acted()[0].is_some();
    (run, acted)
}

#[test]
fn audit_of_a_link_finds_a_doubled_message_without_the_check_of_the_fault() {
    let scenario = builtin::load("saxpy").unwrap();
    for link in ["gpu.gpc[0].sm[0].subcore[0].fp32.in", "gpu.l2_slice[0].request"] {
        let mut bench = bench(&scenario, "tiny");
        bench.gpu_mut().check_invariants();
        let fault = Fault {
            kind: FaultKind::Duplicate,
            from: FROM,
            cycles: 40,
            seed: 7,
        };
        let injected = bench.gpu_mut().inject(link, fault);
        injected.unwrap_or_else(|error| panic!("{error}"));
        let run = bench.run(OPTIONS, &mut |_| true);
        let Some((_, LaunchError::Fault(report))) = run.stopped else {
            panic!("{link}: {:?}", run.stopped);
        };
        let broken = report.broken.expect("the audit breaks the run");
        assert!(broken.starts_with(&format!("{link}: before cycle ")), "{broken}");
    }
}

/// Counts the ends of each link.
#[derive(Default)]
struct Ends(BTreeMap<String, u32>);

impl LinkObserver for Ends {
    fn end(&mut self, end: &LinkEnd<'_>) -> Option<(LinkEventLog, u32)> {
        *self.0.entry(end.link.path.to_string()).or_default() += 1;
        None
    }
}

/// The links between two components of a case's machine, by type: the path with `N` for every index.
fn links_by_type((scenario, gpu): Case) -> BTreeMap<String, Vec<String>> {
    let scenario = builtin::load(scenario).unwrap();
    let mut bench = bench(&scenario, gpu);
    let mut ends = Ends::default();
    let tiles = bench.gpu_mut().clock_mut().tiles_mut().iter_mut();
    tiles
        .flat_map(|tile| tile.components_mut())
        .for_each(|component| component.ports(&mut ends));
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, _) in ends.0.into_iter().filter(|(_, ends)| *ends == 2) {
        let parts = path.split('[').enumerate().map(|(n, part)| match part.split_once(']') {
            Some((_, rest)) if n > 0 => format!("[N]{rest}"),
            _ => part.to_owned(),
        });
        types.entry(parts.collect()).or_default().push(path);
    }
    types
}

/// The types of links of all machines, each with a case and a link that carry a message. `None` for a type without one.
fn links_in_use() -> BTreeMap<String, Option<(Case, String)>> {
    let mut types = BTreeMap::new();
    for case in CASES {
        for (name, links) in links_by_type(case) {
            let link: &mut Option<(Case, String)> = types.entry(name).or_default();
            if link.is_none() {
                let mut links = links.into_iter();
                let used = links.find(|link| run(case, link, FaultKind::Delay).1);
                *link = used.map(|link| (case, link));
            }
        }
    }
    types
}

/// The link whose messages must not be late. The CTA manager sends the start of a warp to the scheduler and to the dispatch unit in one
/// cycle. The dispatch unit needs it before the first instruction.
const PUNCTUAL: &str = "gpu.gpc[0].sm[0].subcore[0].start";

/// The outcome of a fault as a cell of the table. A wrong outcome is an error.
fn outcome(case: Case, link: &str, kind: FaultKind) -> Result<&'static str, String> {
    let (run, acted) = run(case, link, kind);
    let is_right = run.stopped.is_none() && run.differences.is_empty();
    let finding = match &run.stopped {
        Some((_, LaunchError::Fault(report))) => report.finding.as_ref(),
        _ => None,
    };
    let wrong = |what: String| Err(format!("{link}, {kind:?}: {what}"));
    match kind {
        _ if !acted => match is_right {
            true => Ok("no room"),
            false => wrong(format!("did not act, but {:?}", run.stopped)),
        },
        FaultKind::Delay | FaultKind::Stall if link == PUNCTUAL && run.stopped_by() == Some(StopReason::Fault) => {
            Ok("invariant")
        }
        FaultKind::Delay | FaultKind::Stall if is_right => Ok("right"),
        FaultKind::Delay | FaultKind::Stall => wrong(format!("{:?} {:?}", run.stopped, run.differences)),
        _ if run.stopped_by() != Some(StopReason::Fault) => wrong(format!("{:?} {:?}", run.stopped, run.differences)),
        _ => match finding {
            Some(finding) if finding.link.as_str() != link => wrong(format!("found at {}", finding.link)),
            Some(finding) => Ok(match finding.violation {
                Violation::Lost => "lost",
                Violation::Duplicated => "doubled",
                Violation::Changed => "changed",
                Violation::OutOfOrder => "out of order",
            }),
            None => Ok("invariant"),
        },
    }
}

#[test]
fn every_fault_is_found_and_every_delay_gives_the_right_result() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut table = "| Link | Scenario, GPU |".to_owned();
    KINDS.iter().for_each(|(name, _)| table += &format!(" {name} |"));
    table += &format!("\n|---|---|{}\n", "---|".repeat(KINDS.len()));
    let (mut wrong, mut found, mut unused) = (Vec::new(), 0, Vec::new());
    for (name, link) in links_in_use() {
        let Some((case, link)) = link else {
            unused.push(name);
            continue;
        };
        let (scenario, gpu) = case;
        table += &format!("| `{name}` | `{scenario}`, `{gpu}` |");
        for (_, kind) in KINDS {
            let cell = outcome(case, &link, kind).unwrap_or_else(|what| {
                wrong.push(what);
                "WRONG"
            });
            found += usize::from(!["right", "no room", "WRONG"].contains(&cell));
            table += &format!(" {cell} |");
        }
        table += "\n";
    }
    let _ = std::panic::take_hook();
    table += &format!("\nWithout a message in these scenarios: `{}`.\n", unused.join("`, `"));
    assert!(wrong.is_empty(), "{}\n{table}", wrong.join("\n"));
    assert!(found >= 40, "{found} faults found:\n{table}");
    compare_with_page(&table);
}

/// Compares the table with the page, or writes it there.
fn compare_with_page(table: &str) {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/faults.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, old) = text
        .split_once("<!-- table -->\n\n")
        .expect("the page has a mark before its table");
    if std::env::var_os("WARPWAVE_WRITE_FAULTS").is_some() {
        std::fs::write(&page, format!("{head}<!-- table -->\n\n{table}")).unwrap();
    } else {
        assert_eq!(old, table, "write the page with WARPWAVE_WRITE_FAULTS=1");
    }
}
