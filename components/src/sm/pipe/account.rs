//! Account of the instructions in a pipe, for runs that check invariants. Monitors at the ends of the pipe's links keep it.
//!
//! - Instructions leave in the order of entry. A product of a warp group leaves at its entry, before older results.
//! - Those inside are the ones that the pipe's stages hold.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::monitor::Monitor;
use warpwave_hw::time::Cycle;

use crate::proto::warp::{Resolved, WarpInst};

/// Warp slot and program counter of an instruction.
type Id = (u8, u32);

/// A message of one instruction.
pub(super) trait OfInstruction {
    fn id(&self) -> Id;
}

impl OfInstruction for Box<WarpInst> {
    fn id(&self) -> Id {
        (self.warp, self.pc)
    }
}

impl OfInstruction for Resolved {
    fn id(&self) -> Id {
        (self.warp, self.pc)
    }
}

/// The account of one pipe, shared by its monitors.
#[derive(Clone, Default)]
pub(super) struct Account(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    /// Instructions that have entered and not left, oldest first.
    instructions: VecDeque<Id>,
    /// The first violation.
    violation: Option<String>,
}

impl Account {
    /// The monitor of the input.
    pub(super) fn entry(&self) -> Box<dyn Monitor<Box<WarpInst>>> {
        Box::new(Entry(self.clone()))
    }

    /// The monitor of the output.
    pub(super) fn exit<T: OfInstruction>(&self) -> Box<dyn Monitor<T>> {
        Box::new(Exit {
            account: self.clone(),
            next: VecDeque::pop_front,
        })
    }

    /// The monitor of the output for products of warp groups.
    pub(super) fn bypass<T: OfInstruction>(&self) -> Box<dyn Monitor<T>> {
        Box::new(Exit {
            account: self.clone(),
            next: VecDeque::pop_back,
        })
    }

    /// Checks the order so far, and that `held` instructions are inside.
    pub(super) fn invariants(&self, held: usize, check: &mut Invariants) {
        let inside = self.inside();
        check.none(inside.violation.as_ref());
        check.equal("instructions inside", inside.instructions.len() as u64, held as u64);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Entry(Account);

impl Monitor<Box<WarpInst>> for Entry {
    fn taken(&mut self, _: Cycle, inst: &Box<WarpInst>) {
        self.0.inside().instructions.push_back(inst.id());
    }

    fn cleared(&mut self, _: usize, _: Cycle) {
        *self.0.inside() = Inside::default();
    }
}

struct Exit {
    account: Account,
    /// Takes the instruction that must leave next.
    next: fn(&mut VecDeque<Id>) -> Option<Id>,
}

impl<T: OfInstruction> Monitor<T> for Exit {
    fn sent(&mut self, now: Cycle, message: &T) {
        let mut inside = self.account.inside();
        let (found, expected) = (message.id(), (self.next)(&mut inside.instructions));
        if expected != Some(found) {
            let violation = format!("cycle {now}: {found:?} leaves, as slot and program counter, and not {expected:?}");
            inside.violation.get_or_insert(violation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ports::grid;

    fn inst(pc: u32) -> Box<WarpInst> {
        Box::new(WarpInst {
            pc,
            ..WarpInst::blank(0, grid("EXIT", 1))
        })
    }

    fn broken(account: &Account, held: usize) -> Vec<String> {
        Invariants::broken(|check| account.invariants(held, check))
    }

    #[test]
    fn lost_result_is_reported() {
        let account = Account::default();
        let (mut entry, mut exit) = (account.entry(), account.exit());
        entry.taken(Cycle(5), &inst(0));
        entry.taken(Cycle(6), &inst(1));
        assert_eq!(broken(&account, 2), [""; 0]);
        exit.sent(Cycle(9), &inst(0));
        assert_eq!(broken(&account, 1), [""; 0]);
        assert_eq!(broken(&account, 0), ["instructions inside: 1, not 0"]);
        entry.cleared(0, Cycle::ZERO);
        assert_eq!(broken(&account, 0), [""; 0]);
    }

    #[test]
    fn result_that_overtakes_or_was_invented_is_reported() {
        let account = Account::default();
        let (mut entry, mut exit) = (account.entry(), account.exit());
        entry.taken(Cycle(5), &inst(0));
        entry.taken(Cycle(6), &inst(1));
        exit.sent(Cycle(9), &inst(1));
        let expected = "cycle 9: (0, 1) leaves, as slot and program counter, and not Some((0, 0))";
        assert_eq!(broken(&account, 1), [expected]);
        entry.cleared(0, Cycle::ZERO);
        exit.sent(Cycle(12), &inst(1));
        let expected = "cycle 12: (0, 1) leaves, as slot and program counter, and not None";
        assert_eq!(broken(&account, 0), [expected]);
    }

    #[test]
    fn product_of_a_warp_group_passes_older_results() {
        let account = Account::default();
        let (mut entry, mut exit, mut group) = (account.entry(), account.exit(), account.bypass());
        entry.taken(Cycle(5), &inst(0));
        entry.taken(Cycle(6), &inst(1));
        group.sent(Cycle(6), &inst(1));
        exit.sent(Cycle(9), &inst(0));
        assert_eq!(broken(&account, 0), [""; 0]);
    }
}
