//! Warp states: each resident warp is in one state in each cycle, so the states add up to the resident warp-cycles.

use super::counts::Counts;

/// Each state with its counter, in order of priority: a warp is in the first state that applies.
pub const STATES: [(&str, &str); 18] = [
    ("drain", "stall_drain"),
    ("sleeping", "stall_sleeping"),
    ("barrier", "stall_barrier"),
    ("membar", "stall_membar"),
    ("gmma", "stall_gmma"),
    ("branch_resolving", "stall_branch_resolving"),
    ("no_instruction", "stall_no_instruction"),
    ("imc_miss", "stall_imc_miss"),
    ("long_scoreboard", "stall_long_scoreboard"),
    ("short_scoreboard", "stall_short_scoreboard"),
    ("wait", "stall_wait"),
    ("lg_throttle", "stall_lg_throttle"),
    ("tex_throttle", "stall_tex_throttle"),
    ("mio_throttle", "stall_mio_throttle"),
    ("math_pipe_throttle", "stall_math_pipe_throttle"),
    ("dispatch_stall", "stall_dispatch_stall"),
    ("not_selected", "stall_not_selected"),
    ("selected", "stall_selected"),
];

/// Warp-cycles spent in one state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stall {
    /// The state.
    pub state: &'static str,
    /// Warp-cycles in this state, over all schedulers.
    pub warp_cycles: u64,
    /// Share of all warp-cycles, in per cent.
    pub percent: f64,
}

/// Returns all modelled states, in the order of [`STATES`].
///
/// # Panics
/// If the states do not add up to the resident warp-cycles: a scheduler lost a cycle or counted it twice.
pub fn table(counts: &Counts) -> Vec<Stall> {
    let total = counts.sum("scheduler", "warp_cycles").unwrap_or(0);
    let stall = |(state, counter): (&'static str, &'static str)| {
        // A state that no scheduler counts is left out: it is not modelled.
        let warp_cycles = counts.sum("scheduler", counter)?;
        let percent = if total == 0 {
            0.0
        } else {
            warp_cycles as f64 * 100.0 / total as f64
        };
        Some(Stall {
            state,
            warp_cycles,
            percent,
        })
    };
    let stalls: Vec<_> = STATES.into_iter().filter_map(stall).collect();
    let sum: u64 = stalls.iter().map(|stall| stall.warp_cycles).sum();
    assert_eq!(
        sum, total,
        "the stall states add up to {sum} warp-cycles, but warps were resident for {total}"
    );
    stalls
}

#[cfg(test)]
mod tests {
    use super::super::counts::tests::counts;
    use super::*;

    #[test]
    fn states_of_two_schedulers_are_added_in_order_of_priority() {
        let counts = counts(&[
            ("scheduler", "warp_cycles", &[30, 10]),
            ("scheduler", "stall_selected", &[5, 5]),
            ("scheduler", "stall_wait", &[25, 5]),
        ]);
        let table = table(&counts);
        let rows: Vec<_> = table
            .iter()
            .map(|row| (row.state, row.warp_cycles, row.percent))
            .collect();
        assert_eq!(rows, [("wait", 30, 75.0), ("selected", 10, 25.0)]);
    }

    #[test]
    #[should_panic(expected = "add up to 10 warp-cycles, but warps were resident for 11")]
    fn cycle_without_a_state_stops_the_report() {
        table(&counts(&[
            ("scheduler", "warp_cycles", &[11]),
            ("scheduler", "stall_wait", &[10]),
        ]));
    }
}
