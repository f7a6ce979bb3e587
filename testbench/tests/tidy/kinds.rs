//! The invariants by kind: the second table of the guarantees, from the checks in the sources. And the paths that the guarantees name.
//!
//! A row names components. Each has the text of a check in its sources. Without that check this test fails, and the row changes.

use std::fs;

use crate::{assert_none, root};

/// A kind of invariant.
struct Kind {
    name: &'static str,
    /// A component or the audit, a file of `components/src` or of `hw/src`, and the text of the check in it.
    checks: &'static [(&'static str, &'static str, &'static str)],
    /// Tests that hold what no component can see.
    tests: &'static str,
}

/// Name of the audit in place of a component.
const AUDIT: &str = "the audit of each link";

const AUDIT_FILE: &str = "link/audit.rs";

const KINDS: &[Kind] = &[
    Kind {
        name: "credits conserved",
        checks: &[
            (
                "Scheduler",
                "sm/subcore/scheduler.rs",
                "memory credits here and in the queue",
            ),
            (AUDIT, AUDIT_FILE, "sent without a credit"),
        ],
        tests: "",
    },
    Kind {
        name: "no message lost, doubled or invented",
        checks: &[
            (AUDIT, AUDIT_FILE, "was taken, but never sent"),
            ("MathPipe", "sm/pipe/account.rs", "instructions inside"),
            ("BranchUnit", "sm/pipe/account.rs", "instructions inside"),
            ("GigaThread", "front/gigathread.rs", "resident CTAs"),
            ("ConstantCache", "sm/constant.rs", "fills sent and waiting"),
        ],
        tests: "`testbench/tests/faults.rs`",
    },
    Kind {
        name: "order kept",
        checks: &[
            (
                AUDIT,
                AUDIT_FILE,
                "message {nth} is {number:#x}, but {sent:#x} was sent",
            ),
            (
                "MathPipe",
                "sm/pipe/account.rs",
                "leaves, as slot and program counter, and not",
            ),
            (
                "BranchUnit",
                "sm/pipe/account.rs",
                "leaves, as slot and program counter, and not",
            ),
            ("L1", "sm/l1.rs", "hits out of order"),
            ("IdealMemory", "sm/ideal_memory.rs", "packets of port {n} out of order"),
            ("ConstantCache", "sm/constant.rs", "fills of requester {n} out of order"),
            ("Channel", "hbm/queue.rs", "held bit of entry {n}"),
        ],
        tests: "",
    },
    Kind {
        name: "timing kept",
        checks: &[
            ("Channel", "hbm/channel.rs", "command of cycle {}: {violation}"),
            (
                "Scheduler",
                "sm/subcore/scheduler/ledger.rs",
                "its pipe accepts none before cycle",
            ),
            (AUDIT, AUDIT_FILE, "was taken early, the latency is"),
        ],
        tests: "",
    },
    Kind {
        name: "occupancy bounded",
        checks: &[
            ("GigaThread", "front/gigathread.rs", "CTAs of SM {sm}"),
            ("CtaManager", "sm/cta.rs", "warp slots in use"),
            ("Scheduler", "sm/subcore/scheduler.rs", "\"memory credits\""),
            ("Lsu", "sm/lsu/pending.rs", "check.at_most(\"accesses\""),
            ("SharedMemory", "sm/shared.rs", "check.at_most(\"bytes\""),
            ("Tma", "sm/tma.rs", "pieces in flight and free tags"),
            ("L1", "cache/mshr.rs", "MSHRs in use"),
            ("Slice", "cache/mshr.rs", "MSHRs in use"),
            ("Channel", "hbm/queue.rs", "check.at_most(\"entries\""),
        ],
        tests: "",
    },
    Kind {
        name: "one owner per register write, scoreboard balance",
        checks: &[(
            "Scheduler",
            "sm/subcore/scoreboard.rs",
            "writes of slot {slot} with two owners",
        )],
        tests: "fuzz target `scheduler`",
    },
    Kind {
        name: "MSHR merges complete",
        checks: &[
            ("L1", "cache/targets.rs", "sectors that target {n} waits for"),
            ("Slice", "cache/targets.rs", "sectors that target {n} waits for"),
        ],
        tests: "",
    },
    Kind {
        name: "legal line states",
        checks: &[
            ("L1", "sm/l1/lines.rs", "lines without valid sectors"),
            ("Slice", "l2/lines.rs", "dirty sectors without a valid byte"),
            ("ConstantCache", "cache/tags.rs", "ways with a wrong line"),
            (
                "Lsu",
                "cache/constant_lines.rs",
                "constant lines both in the cache and in flight",
            ),
        ],
        tests: "",
    },
    Kind {
        name: "barrier counts",
        checks: &[
            ("CtaManager", "sm/barrier.rs", "warps that wait at barrier {number}"),
            (
                "ClusterBarrier",
                "front/cluster_barrier.rs",
                "complete barriers of cluster {cluster}",
            ),
        ],
        tests: "",
    },
    Kind {
        name: "stall states sum",
        checks: &[(
            "Scheduler",
            "sm/subcore/scheduler/ledger.rs",
            "warp cycles charged to states",
        )],
        tests: "`testbench/tests/watch.rs`, `testbench/tests/counts/`",
    },
];

impl Kind {
    fn row(&self) -> String {
        let name = |component: &str| match component {
            AUDIT => AUDIT.to_owned(),
            component => format!("`{component}`"),
        };
        let components: Vec<String> = self.checks.iter().map(|check| name(check.0)).collect();
        let tests = if self.tests.is_empty() { "" } else { "; " };
        format!("| {} | {}{tests}{} |\n", self.name, components.join(", "), self.tests)
    }
}

fn page() -> String {
    fs::read_to_string(root().join("testbench/docs/guarantees.md")).unwrap()
}

#[test]
fn every_kind_of_invariant_has_its_checks_and_the_guarantees_list_them() {
    const HEAD: &str = "| Kind | Components, or tests |\n|---|---|\n";
    let page = page();
    let mut findings = Vec::new();
    for (component, file, text) in KINDS.iter().flat_map(|kind| kind.checks) {
        let folder = if *component == AUDIT { "hw" } else { "components" };
        let source = fs::read_to_string(root().join(folder).join("src").join(file)).unwrap_or_default();
        if !source.contains(text) {
            findings.push(format!("{folder}/src/{file} has no check {text:?}, of {component}"));
        }
        if *component != AUDIT && !page.contains(&format!("\n| `{component}` | ")) {
            findings.push(format!("{component} states no invariants"));
        }
    }
    assert_none(findings, "adapt `KINDS` to the checks");
    let (before, after) = page.split_once(HEAD).expect("the page has the table of kinds");
    let end = after.find("\n\n").map_or(after.len(), |at| at + 1);
    let table: String = KINDS.iter().map(Kind::row).collect();
    if std::env::var_os("WARPWAVE_WRITE_CONTRACTS").is_some() {
        let path = root().join("testbench/docs/guarantees.md");
        fs::write(path, format!("{before}{HEAD}{table}{}", &after[end..])).unwrap();
    } else {
        let written = &after[..end];
        assert_eq!(written, table, "write the page with WARPWAVE_WRITE_CONTRACTS=1");
    }
}

/// The names between backticks in the last column of a table's rows.
fn kept_by(page: &str) -> impl Iterator<Item = &str> {
    let cells = page
        .lines()
        .filter_map(|line| line.strip_suffix(" |")?.rsplit(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2))
}

/// True if a name is that of a file, of a folder, or of a fuzz target.
fn exists(name: &str) -> bool {
    let target = || root().join(format!("fuzz/fuzz_targets/{name}.rs")).is_file();
    root().join(name).exists() || target()
}

#[test]
fn every_guarantee_names_tests_that_exist() {
    let page = page();
    let (table, _) = page
        .split_once("\n## Long runs")
        .expect("the tables of guarantees come first");
    // A setting or a command has a space, and names no file. An option starts with dashes.
    let is_file = |name: &&str| !name.contains(' ') && !name.starts_with("--");
    let names: Vec<&str> = kept_by(table).filter(is_file).collect();
    assert!(names.len() > 40, "only {} names", names.len());
    let missing = names.iter().filter(|name| !exists(name));
    let missing = missing.map(|name| (*name).to_owned());
    assert_none(missing.collect(), "name tests that exist");
}

#[test]
fn names_are_those_between_backticks_of_the_last_column() {
    let page = "| Guarantee | Kept by |\n|---|---|\n| **A** `b` | `c/d.rs`, target `e` |\ntext `f`\n";
    assert_eq!(kept_by(page).collect::<Vec<_>>(), ["c/d.rs", "e"]);
    assert!(exists("testbench/tests/tidy") && exists("hbm") && !exists("testbench/tests/nothing.rs"));
}
