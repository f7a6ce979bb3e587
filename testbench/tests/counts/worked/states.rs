//! Worked cycles of each state: the whole time of a warp, cycle by cycle. A row gives the five metrics of its state.
//!
//! The comments of the programs have the cycle of each issue. The cycles between them are those of the states here, and a program has no
//! other. A warp alone on its scheduler waits only in cycles without an issue.

use std::collections::BTreeSet;

use warpwave::report::metrics;

use super::{Number, PLAIN, Worked, programs};

/// The cycles of a program's warps, by state.
struct States {
    program: &'static str,
    /// Instructions issued.
    issues: u32,
    /// A state, its warp-cycles, and those of them in which the scheduler issued nothing.
    cycles: &'static [(&'static str, u32, u32)],
}

const STATES: &[States] = &[
    States {
        program: "one exit",
        issues: 1,
        cycles: &[("no_instruction", 4, 4), ("selected", 1, 0)],
    },
    States {
        program: "chain of adds",
        issues: 9,
        cycles: &[
            ("no_instruction", 4, 4),
            ("wait", 21, 21),
            ("drain", 3, 3),
            ("selected", 9, 0),
        ],
    },
    States {
        program: "double-precision adds",
        issues: 4,
        cycles: &[
            ("no_instruction", 4, 4),
            ("math_pipe_throttle", 6, 6),
            ("drain", 7, 7),
            ("selected", 4, 0),
        ],
    },
    States {
        program: "jump",
        issues: 2,
        cycles: &[("no_instruction", 8, 8), ("branch_resolving", 3, 3), ("selected", 2, 0)],
    },
    States {
        program: "fence",
        issues: 2,
        cycles: &[("no_instruction", 4, 4), ("membar", 59, 59), ("selected", 2, 0)],
    },
    States {
        program: "load from shared memory",
        issues: 3,
        cycles: &[
            ("no_instruction", 4, 4),
            ("short_scoreboard", 22, 22),
            ("drain", 3, 3),
            ("selected", 3, 0),
        ],
    },
    States {
        program: "product of a warp group",
        issues: 16,
        cycles: &[
            ("no_instruction", 16, 16),
            ("gmma", 4 * 21, 4 * 21),
            ("selected", 16, 0),
        ],
    },
    States {
        program: "sleep",
        issues: 2,
        cycles: &[("no_instruction", 4, 4), ("sleeping", 99, 99), ("selected", 2, 0)],
    },
    // On sub-core 0, warp 4 issues in t+7, where warp 0 waits at the barrier. Warp 0 issues in t+4, where warp 4 has no instruction. Warp 4
    // is not selected in t+35, where warp 0 issues. In all other cycles of a wait the scheduler issues nothing.
    States {
        program: "barrier",
        issues: 10,
        cycles: &[
            ("no_instruction", 22, 21),
            ("barrier", 147, 146),
            ("not_selected", 1, 0),
            ("selected", 10, 0),
        ],
    },
    // The second move waits for a cycle for the pipe, the first load for 3 cycles for the move.
    States {
        program: "loads from an ideal memory",
        issues: 7,
        cycles: &[
            ("no_instruction", 4, 4),
            ("math_pipe_throttle", 1, 1),
            ("wait", 3, 3),
            ("long_scoreboard", 57 + 56, 57 + 56),
            ("drain", 3, 3),
            ("selected", 7, 0),
        ],
    },
    // The second add issues in t+85 and EXIT in t+86. The last result is complete in t+89.
    States {
        program: "absent constants",
        issues: 3,
        cycles: &[
            ("no_instruction", 4, 4),
            ("imc_miss", 80, 80),
            ("drain", 3, 3),
            ("selected", 3, 0),
        ],
    },
    // No instruction also in t+7. EXIT issues in t+10. The last add is collected in t+11, and its conflicts take 2 cycles more. Without any
    // conflict it would be in its pipe 4 cycles earlier: issued in t+8, it is complete in t+16 and not in t+12.
    States {
        program: "register bank conflicts",
        issues: 5,
        cycles: &[
            ("no_instruction", 5, 5),
            ("dispatch_stall", 1, 1),
            ("drain", 6, 6),
            ("selected", 5, 0),
        ],
    },
];

/// A program for states that no other program has.
pub(super) const WORKED: &[Worked] = &[
    // Four warps, one on each sub-core. The product issues in t+4, its commit in t+5 and the wait in t+6. The product is complete 24 after
    // its issue: EXIT issues in t+28. 29 cycles, 4 issues, of each warp. A piece of the product has 16 x 8 x 16 multiply-adds.
    Worked {
        name: "product of a warp group",
        text: "HGMMA.F32.HI R4, R20, R2, R4, PT\nWARPGROUP.COMMIT\nWARPGROUP.DEPBAR\nEXIT",
        shape: (1, 128),
        values: &[
            ("smsp__pcsamp_sample_count", Number(4.0 * 29.0)),
            ("derived__flops_tensor.sum", Number(4.0 * 4096.0)),
        ],
        ..PLAIN
    },
];

/// Programs that wait for the queue of a unit. Only that state is counted by hand.
const THROTTLED: &[States] = &[
    States {
        program: "stores to shared memory",
        issues: 8,
        cycles: &[("mio_throttle", 4, 4)],
    },
    States {
        program: "stores to device memory",
        issues: 10,
        cycles: &[("lg_throttle", 4, 4)],
    },
];

impl States {
    /// Cycles and cycles without an issue of a state.
    fn of(&self, state: &str) -> (u32, u32) {
        let row = self.cycles.iter().find(|row| row.0 == state);
        row.map_or((0, 0), |row| (row.1, row.2))
    }

    /// Findings of a run: the metrics of `states` that differ from the count. `resident` is the number of warp-cycles.
    fn findings(&self, states: &[&str], resident: Option<u32>) -> Vec<String> {
        let program = programs().find(|worked| worked.name == self.program).unwrap();
        let run = program.measured();
        let resident = resident.map_or_else(|| run.number("smsp__pcsamp_sample_count"), f64::from);
        let rows = states.iter().flat_map(|state| {
            let (cycles, unissued) = self.of(state);
            let [ratio, sum, percent, samples, unissued_samples] = names(state);
            [
                (ratio, f64::from(cycles) / f64::from(self.issues)),
                (sum, cycles.into()),
                (percent, 100.0 * f64::from(cycles) / resident),
                (samples, cycles.into()),
                (unissued_samples, unissued.into()),
            ]
        });
        let wrong = rows.filter_map(|(name, want)| {
            let found = run.number(&name);
            let is_right = (found - want).abs() <= 1e-9 * want.abs().max(1.0);
            (!is_right).then(|| format!("{}: {name} is {found}, not {want}", self.program))
        });
        wrong.collect()
    }
}

/// Names of the metrics of a state: per issue, sum, share, samples, samples without an issue.
fn names(state: &str) -> [String; 5] {
    // The profiler has another spelling in its samples.
    let sampled = match state {
        "no_instruction" => "no_instructions",
        other => other,
    };
    [
        format!("smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio"),
        format!("smsp__warps_issue_stalled_{state}.sum"),
        format!("smsp__warp_issue_stalled_{state}_per_warp_active.pct"),
        format!("smsp__pcsamp_warps_issue_stalled_{sampled}"),
        format!("smsp__pcsamp_warps_issue_stalled_{sampled}_not_issued"),
    ]
}

/// Metrics of the states with counted cycles.
pub(super) fn worked_names() -> BTreeSet<String> {
    let rows = STATES.iter().chain(THROTTLED).flat_map(|states| states.cycles);
    rows.flat_map(|(state, ..)| names(state)).collect()
}

/// Metrics of the state that the machine does not model. The LSU serves textures too.
pub(super) fn unmodelled_names() -> [String; 5] {
    names("tex_throttle")
}

#[test]
fn states_of_a_program_have_the_cycles_of_the_hand_count_and_others_have_none() {
    let unmodelled = unmodelled_names();
    let modelled: Vec<&str> = metrics::states()
        .into_iter()
        .filter(|state| !unmodelled.contains(&names(state)[0]))
        .collect();
    let whole = STATES.iter().flat_map(|states| {
        let resident = states.cycles.iter().map(|row| row.1).sum();
        states.findings(&modelled, Some(resident))
    });
    let part = THROTTLED
        .iter()
        .flat_map(|states| states.findings(&[states.cycles[0].0], None));
    let wrong: Vec<String> = whole.chain(part).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
