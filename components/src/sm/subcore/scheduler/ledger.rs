//! Ledger of a scheduler: a second account of its warps and instructions, for runs that check invariants. Other runs have none.
//!
//! | Account | Must equal |
//! |---|---|
//! | instructions of a warp without a release | its instructions in flight, less one at the branch unit |
//! | registers, predicates and barriers of these instructions | those pending in the scoreboard; each register and predicate has one writer |
//! | cycles of a warp from its start to its end | its cycles charged to states |
//! | issue interval of the last instruction of a math pipe | over before the next issue to the pipe |

use warpwave_hw::invariant::Invariants;
use warpwave_hw::time::Cycle;

use super::State;
use crate::config::N_PIPES;
use crate::proto::predecoded::{Group, IssueTarget, Predecoded};
use crate::sm::subcore::warp::Warp;

/// The ledger of one scheduler.
pub(super) struct Ledger {
    slots: Vec<Slot>,
    /// First cycle in which each pipe accepts an instruction.
    free_from: [Cycle; N_PIPES],
    /// Cycles of the warps that have ended.
    ended: u64,
    /// The first violation.
    violation: Option<String>,
}

/// The warp in one slot.
#[derive(Clone, Default)]
struct Slot {
    /// Cycle of its start.
    start: Cycle,
    /// Program counters of the instructions without a release.
    in_flight: Vec<u32>,
}

impl Ledger {
    /// A ledger of `n` empty slots.
    pub(super) fn new(n: usize) -> Self {
        Ledger {
            slots: vec![Slot::default(); n],
            free_from: [Cycle::ZERO; N_PIPES],
            ended: 0,
            violation: None,
        }
    }

    /// A warp starts.
    pub(super) fn start(&mut self, slot: usize, now: Cycle) {
        self.slots[slot].start = now;
    }

    /// A warp ends before cycle `end`.
    pub(super) fn end(&mut self, slot: usize, end: Cycle) {
        self.ended += end.since(self.slots[slot].start);
    }

    /// An instruction is issued to a unit.
    pub(super) fn issue(&mut self, slot: usize, pc: u32, inst: &Predecoded, now: Cycle) {
        let pipe = inst.pipe as usize;
        match inst.target {
            IssueTarget::Math if self.free_from[pipe] > now => self.note(format!(
                "slot {slot} issues instruction {pc} in cycle {now}, and its pipe accepts none before cycle {}",
                self.free_from[pipe]
            )),
            IssueTarget::Math => self.free_from[pipe] = now + u64::from(inst.interval),
            // Complete for its warp once it is sent: it has no release.
            IssueTarget::Posted => return,
            _ => {}
        }
        self.slots[slot].in_flight.push(pc);
    }

    /// An instruction is released.
    pub(super) fn release(&mut self, slot: usize, pc: u32) {
        let in_flight = &mut self.slots[slot].in_flight;
        match in_flight.iter().position(|&issued| issued == pc) {
            Some(n) => _ = in_flight.swap_remove(n),
            None => self.note(format!(
                "slot {slot} has a release of instruction {pc}, which is not in flight"
            )),
        }
    }

    /// Keeps the first violation.
    fn note(&mut self, violation: String) {
        self.violation.get_or_insert(violation);
    }

    /// Compares both accounts.
    pub(super) fn invariants(&self, state: &State, check: &mut Invariants) {
        check.none(self.violation.as_ref());
        self.check_states(state, check);
        for (slot, warp) in state.warps.iter().enumerate() {
            let Some(warp) = warp else { continue };
            self.check_warp(slot, warp, check);
        }
    }

    fn check_warp(&self, slot: usize, warp: &Warp, check: &mut Invariants) {
        let in_flight = &self.slots[slot].in_flight;
        check.equal(
            format_args!("instructions in flight of slot {slot}"),
            warp.in_flight.into(),
            in_flight.len() as u64 + u64::from(warp.resolving),
        );
        let owners = in_flight.iter().map(|&pc| &warp.code[pc as usize]);
        let is_load = |inst: &&Predecoded| inst.target == IssueTarget::Memory && inst.group == Group::None;
        check.equal(
            format_args!("loads in flight of slot {slot}"),
            warp.loads.into(),
            owners.clone().filter(is_load).count() as u64,
        );
        warp.board.check_owners(slot, owners, check);
    }

    /// Checks that each cycle of each warp is charged to one state.
    fn check_states(&self, state: &State, check: &mut Invariants) {
        // Both sums grow by one per warp and cycle, so any cycle serves that is after all charges.
        let stalled = || state.warps.iter().flatten().filter(|warp| warp.stall.is_some());
        let until = stalled().map(|warp| warp.since).fold(state.charged_until, Cycle::max);
        let open_stalls: u64 = stalled().map(|warp| until.since(warp.since)).sum();
        let open_throttles = until.since(state.charged_until) * u64::from(state.ready.warps.count_ones());
        let warps = state.warps.iter().zip(&self.slots).filter(|(warp, _)| warp.is_some());
        let resident: u64 = warps.map(|(_, slot)| until.since(slot.start)).sum();
        check.equal(
            "warp cycles charged to states",
            state.stats.stalls.total() + open_stalls + open_throttles,
            self.ended + resident,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sm::subcore::scheduler::Scheduler;
    use crate::sm::subcore::scheduler::tests::resident;
    use crate::test_ports::grid;

    #[test]
    fn issue_within_the_interval_of_the_pipe_is_reported() {
        let code = grid("MUFU.RCP R1, R2\nMUFU.RCP R3, R4\nEXIT", 1).predecoded.clone();
        let mut ledger = Ledger::new(4);
        // The preset `tiny` has an interval of 8 for the SFU.
        ledger.issue(0, 0, &code[0], Cycle(20));
        ledger.issue(1, 0, &code[0], Cycle(28));
        assert_eq!(ledger.violation, None);
        ledger.issue(0, 1, &code[1], Cycle(35));
        let violation = ledger.violation.expect("a violation");
        let expected = "slot 0 issues instruction 1 in cycle 35, and its pipe accepts none before cycle 36";
        assert_eq!(violation, expected);
    }

    #[test]
    fn second_release_of_an_instruction_is_reported() {
        let code = grid("FADD R1, R2, R3\nEXIT", 1).predecoded.clone();
        let mut ledger = Ledger::new(4);
        ledger.issue(2, 0, &code[0], Cycle(20));
        ledger.release(2, 0);
        assert_eq!(ledger.violation, None);
        ledger.release(2, 0);
        let violation = ledger.violation.expect("a violation");
        assert_eq!(
            violation,
            "slot 2 has a release of instruction 0, which is not in flight"
        );
    }

    /// What a scheduler with a stalled warp reports after a change of its state.
    fn broken(change: fn(&mut Scheduler)) -> Vec<String> {
        let mut scheduler = resident();
        let broken = |scheduler: &Scheduler| {
            let ledger = scheduler.ledger.as_ref().expect("the ledger is armed");
            Invariants::broken(|check| ledger.invariants(&scheduler.state, check))
        };
        assert_eq!(broken(&scheduler), [""; 0]);
        change(&mut scheduler);
        broken(&scheduler)
    }

    #[test]
    fn cycle_without_a_state_or_with_two_is_reported() {
        use crate::sm::subcore::stall::WarpState;
        let found = broken(|scheduler| scheduler.state.stats.stalls.charge(WarpState::Wait, 1, 0));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("warp cycles charged to states: "), "{found:?}");
        let found = broken(|scheduler| scheduler.state.warp(0).since = Cycle(12));
        assert!(found[0].starts_with("warp cycles charged to states: "), "{found:?}");
    }

    #[test]
    fn lost_instruction_is_reported() {
        let found = broken(|scheduler| scheduler.state.warp(0).in_flight -= 1);
        assert_eq!(found, ["instructions in flight of slot 0: 1, not 2"]);
        let found = broken(|scheduler| scheduler.state.warp(0).loads = 0);
        assert_eq!(found, ["loads in flight of slot 0: 0, not 1"]);
        // The addition writes R2, the load R4.
        let found = broken(|scheduler| scheduler.state.warp(0).board = Default::default());
        assert!(
            found.contains(&"pending writes of slot 0: 0, not 20".to_owned()),
            "{found:?}"
        );
    }
}
