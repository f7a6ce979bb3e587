//! Audit of a link: a second account of its messages, latency and credits, for runs that check invariants.
//!
//! Both ends write to one account. It holds the number of each message in flight ([`Payload::summary`]), and not its contents.
//!
//! | Rule | Broken by a message that is |
//! |---|---|
//! | a message taken is the oldest in flight | lost, sent twice, invented or overtaken |
//! | a message is taken `latency` cycles after its send, or later | early |
//! | a message is sent with a credit: fewer than `depth` slots hold a message or a credit on its way back | sent without room |
//! | a machine at rest has no message in flight | lost |
//!
//! The account shares no state with the slots of the link, so a fault in their stamps shows here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::LinkConfig;
use super::monitor::Monitor;
use super::payload::Payload;
use crate::invariant::Invariants;
use crate::path::Path;
use crate::time::Cycle;

/// The audit of one link, shared by both ends.
#[derive(Clone, Debug)]
pub struct LinkAudit(Arc<Mutex<Account>>);

#[derive(Debug)]
struct Account {
    link: LinkConfig,
    credit_latency: u64,
    /// Ends that write to the account.
    ends: u32,
    /// Cycle of the send and number of each message in flight, oldest first.
    in_flight: VecDeque<(Cycle, u64)>,
    /// First cycle in which each slot on its way back is free, oldest first.
    credits: VecDeque<Cycle>,
    /// Messages taken so far.
    taken: u64,
    /// The first violation.
    violation: Option<String>,
}

impl LinkAudit {
    /// The audit of an empty link.
    pub fn new(link: &LinkConfig) -> Self {
        LinkAudit(Arc::new(Mutex::new(Account {
            link: link.clone(),
            credit_latency: 0,
            ends: 0,
            in_flight: VecDeque::new(),
            credits: VecDeque::new(),
            taken: 0,
            violation: None,
        })))
    }

    /// Notes an end that will write to the account, with its credit latency. The sending end has 0.
    pub fn add_end(&self, credit_latency: u64) {
        let mut account = self.account();
        account.ends += 1;
        account.credit_latency = account.credit_latency.max(credit_latency);
    }

    /// True if both ends write to the account. With one end there is nothing to compare.
    pub fn is_complete(&self) -> bool {
        self.account().ends == 2
    }

    /// The link's path.
    pub fn path(&self) -> Path {
        self.account().link.path.clone()
    }

    /// Checks that no rule was broken so far.
    pub fn invariants(&self, check: &mut Invariants) {
        check.none(self.account().violation.as_ref());
    }

    /// Checks a machine at rest: no message is in flight.
    pub fn at_rest(&self, check: &mut Invariants) {
        check.equal("messages in flight at rest", self.account().in_flight.len() as u64, 0);
    }

    /// The monitor of one end.
    pub(super) fn end<T: Payload>(self) -> Box<dyn Monitor<T>> {
        Box::new(self)
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn send(&mut self, now: Cycle, number: u64) {
        // A credit of a later cycle belongs to a receiver that runs ahead of the sender.
        while self.credits.pop_front_if(|free| *free <= now).is_some() {}
        let (used, depth) = (self.in_flight.len() + self.credits.len(), self.link.depth as usize);
        if self.ends == 2 && used >= depth {
            let [messages, credits] = [self.in_flight.len(), self.credits.len()];
            self.note(format!(
                "cycle {now}: sent without a credit: in flight {messages}, credits on their way back {credits}, depth {depth}"
            ));
        }
        self.in_flight.push_back((now, number));
    }

    fn take(&mut self, now: Cycle, number: u64) {
        let (nth, latency) = (self.taken, u64::from(self.link.latency));
        self.taken += 1;
        self.credits.push_back(now + self.credit_latency);
        let sent = self.in_flight.pop_front();
        if self.ends != 2 {
            return;
        }
        match sent {
            None => self.note(format!("cycle {now}: message {nth} was taken, but never sent")),
            Some((_, sent)) if sent != number => self.note(format!(
                "cycle {now}: message {nth} is {number:#x}, but {sent:#x} was sent"
            )),
            Some((at, _)) if now.since(at) < latency => self.note(format!(
                "cycle {now}: message {nth} of cycle {at} was taken early, the latency is {latency}"
            )),
            Some(_) => {}
        }
    }

    fn clear(&mut self) {
        self.in_flight.clear();
        self.credits.clear();
    }

    /// Keeps the first violation.
    fn note(&mut self, violation: String) {
        self.violation.get_or_insert(violation);
    }
}

impl<T: Payload> Monitor<T> for LinkAudit {
    fn sent(&mut self, now: Cycle, message: &T) {
        self.account().send(now, message.summary());
    }

    fn taken(&mut self, now: Cycle, message: &T) {
        self.account().take(now, message.summary());
    }

    fn cleared(&mut self, _: usize, _: Cycle) {
        self.account().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::{Fault, FaultKind, FaultyLink, LinkCheck};
    use super::super::wires::{LinkEnd, LinkEventLog, LinkObserver, Show};
    use super::*;
    use crate::link::{InPort, OutPort, link};
    use crate::tile::TileBuilder;

    /// Gives its audit to each end.
    struct Auditor(LinkAudit);

    impl LinkObserver for Auditor {
        fn end(&mut self, _: &LinkEnd<'_>) -> Option<(LinkEventLog, u32)> {
            None
        }

        fn audit(&mut self, end: &LinkEnd<'_>) -> Option<LinkAudit> {
            self.0.add_end(end.credit_latency);
            Some(self.0.clone())
        }
    }

    /// A link of latency 2 and depth 2 inside a tile, with an audit of both ends.
    fn audited() -> (OutPort<u64>, InPort<u64>, LinkAudit) {
        let mut tile = TileBuilder::new();
        let path = Path::root("link");
        let config = LinkConfig {
            path,
            latency: 2,
            depth: 2,
        };
        let (mut output, mut input) = link(&config, &tile.slot(), &tile.slot());
        let mut auditor = Auditor(LinkAudit::new(&config));
        output.show(&mut auditor);
        assert!(!auditor.0.is_complete());
        input.show(&mut auditor);
        assert!(auditor.0.is_complete());
        (output, input, auditor.0)
    }

    fn broken(audit: &LinkAudit) -> Vec<String> {
        Invariants::broken(|check| audit.invariants(check))
    }

    /// The account of an empty link of latency 2 and depth 2, with a credit latency of 1.
    fn account() -> Account {
        let (output, input, audit) = audited();
        drop((output, input));
        let account = Arc::into_inner(audit.0).expect("the ends are dropped");
        account.into_inner().expect("no test panics with the lock")
    }

    #[test]
    fn correct_link_breaks_no_rule() {
        let (mut output, mut input, audit) = audited();
        let mut taken = Vec::new();
        for now in (0..20).map(Cycle) {
            if output.has_room(now) {
                output.send(now, now.0);
            }
            taken.extend(input.recv(now));
        }
        // Depth 2: two messages in four cycles.
        assert_eq!(taken[..4], [0, 1, 3, 4]);
        assert_eq!(broken(&audit), [""; 0]);
        input.clear();
        output.send(Cycle(20), 7);
        assert_eq!(input.recv(Cycle(22)), Some(7));
        assert_eq!(broken(&audit), [""; 0]);
        assert_eq!(Invariants::broken(|check| audit.at_rest(check)), [""; 0]);
    }

    #[test]
    fn message_in_flight_at_rest_is_reported() {
        let (mut output, _input, audit) = audited();
        output.send(Cycle(3), 1);
        let broken = Invariants::broken(|check| audit.at_rest(check));
        assert_eq!(broken, ["messages in flight at rest: 1, not 0"]);
    }

    #[test]
    fn lost_message_is_reported_when_the_next_one_is_taken() {
        let (mut output, mut input, audit) = audited();
        let fault = Fault {
            kind: FaultKind::Drop,
            from: Cycle(0),
            cycles: 0,
            seed: 0,
        };
        let check = LinkCheck::new(audit.path());
        output.inject(FaultyLink { fault, check });
        output.send(Cycle(3), 0x3);
        output.send(Cycle(4), 0x4);
        assert_eq!(input.recv(Cycle(6)), Some(4));
        assert_eq!(broken(&audit), ["cycle 6: message 0 is 0x4, but 0x3 was sent"]);
    }

    #[test]
    fn invented_message_is_reported() {
        let mut account = account();
        account.send(Cycle(1), 5);
        account.take(Cycle(3), 5);
        account.take(Cycle(4), 5);
        let violation = account.violation.expect("a violation");
        assert_eq!(violation, "cycle 4: message 1 was taken, but never sent");
    }

    #[test]
    fn early_message_is_reported() {
        let mut account = account();
        account.send(Cycle(1), 5);
        account.take(Cycle(2), 5);
        let violation = account.violation.expect("a violation");
        assert_eq!(
            violation,
            "cycle 2: message 0 of cycle 1 was taken early, the latency is 2"
        );
    }

    #[test]
    fn slot_is_used_until_its_credit_is_back() {
        let mut account = account();
        account.send(Cycle(1), 5);
        account.send(Cycle(2), 6);
        account.take(Cycle(3), 5);
        // The credit of cycle 3 is back in cycle 4.
        account.send(Cycle(3), 7);
        let violation = account.violation.take().expect("a violation");
        let expected = "cycle 3: sent without a credit: in flight 1, credits on their way back 1, depth 2";
        assert_eq!(violation, expected);
        account.take(Cycle(4), 6);
        account.send(Cycle(5), 8);
        assert_eq!(account.violation, None);
    }
}
