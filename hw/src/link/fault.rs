//! Faults of a link on purpose, and the check that finds them.
//!
//! ```text
//!   sender --> [ check: number and digest ] --> [ fault ] --> channel --> [ check ] --> receiver
//! ```
//!
//! The check does what sequence numbers and a checksum do on a real link. The sender's end stores a digest of every message before the
//! fault acts. The receiver's end compares each message that it takes with the oldest digest.
//!
//! | [`FaultKind`] | Effect on the first message from a cycle on | Found as |
//! |---|---|---|
//! | `Delay` | visible later | nothing: the order is kept |
//! | `Stall` | this and every later message is delayed at random | nothing |
//! | `Drop` | not sent | [`Violation::Lost`], or [`Violation::OutOfOrder`] if a later message arrives first |
//! | `Duplicate` | sent twice | [`Violation::Duplicated`] |
//! | `Corrupt` | one bit changes | [`Violation::Changed`] |
//! | `Reorder` | sent after the next message | [`Violation::OutOfOrder`] |
//!
//! A correct machine gives the same results with delays and stalls. With any other fault, a run must not end as if nothing had happened.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::monitor::Monitor;
use super::payload::Payload;
use super::stall::Stall;
use crate::path::Path;
use crate::time::Cycle;

/// What a fault does to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The message is visible [`Fault::cycles`] later, cut off at the horizon of a tile.
    Delay,
    /// This message and all later ones are delayed at random, by at most [`Fault::cycles`].
    Stall,
    /// The message is lost.
    Drop,
    /// The message is sent twice.
    Duplicate,
    /// One bit of the message changes.
    Corrupt,
    /// The next message overtakes it.
    Reorder,
}

impl FaultKind {
    /// The name in options and messages.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Delay => "delay",
            FaultKind::Stall => "stall",
            FaultKind::Drop => "drop",
            FaultKind::Duplicate => "duplicate",
            FaultKind::Corrupt => "corrupt",
            FaultKind::Reorder => "reorder",
        }
    }
}

/// A fault of one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The fault acts on the first message sent in this cycle or later.
    pub from: Cycle,
    /// Cycles of a delay, or of the longest stall.
    pub cycles: u32,
    /// Seed of the stalls.
    pub seed: u64,
}

/// What the check of a link found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A message was sent and never arrived.
    Lost,
    /// A message arrived twice.
    Duplicated,
    /// A message arrived with other contents.
    Changed,
    /// A later message arrived first: this one is lost, or comes too late.
    OutOfOrder,
}

/// A violation, with its link and cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The link.
    pub link: Path,
    /// The cycle in which the receiver took the message, or in which its loss was seen.
    pub at: Cycle,
    /// Number of the message on its link, from 0.
    pub number: u64,
    /// What is wrong with it.
    pub violation: Violation,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.violation {
            Violation::Lost => "was lost",
            Violation::Duplicated => "arrived twice",
            Violation::Changed => "arrived with other contents",
            Violation::OutOfOrder => "has not arrived, but a later one has",
        };
        write!(f, "{}, cycle {}: message {} {what}", self.link, self.at, self.number)
    }
}

/// Cycles after which a message that waits to be overtaken counts as lost.
const HELD_LIMIT: u64 = 10_000;

/// The check of one link, shared by both ends.
#[derive(Clone, Debug)]
pub struct LinkCheck(Arc<Mutex<Checked>>);

#[derive(Debug)]
struct Checked {
    link: Path,
    /// Digests of the messages sent and not yet taken, oldest first.
    expected: VecDeque<u64>,
    /// Digest of the last message taken.
    last: Option<u64>,
    /// Messages that the channel has carried, and messages taken from it.
    carried: u64,
    taken: u64,
    /// Number of the oldest expected message.
    number: u64,
    /// Since when a message waits to be overtaken.
    held: Option<Cycle>,
    /// When the fault acted.
    acted: Option<Cycle>,
    finding: Option<Finding>,
    /// Number of times that the link was cleared.
    clears: u64,
}

impl LinkCheck {
    /// The check of an empty link.
    pub fn new(link: Path) -> Self {
        LinkCheck(Arc::new(Mutex::new(Checked {
            link,
            expected: VecDeque::new(),
            last: None,
            carried: 0,
            taken: 0,
            number: 0,
            held: None,
            acted: None,
            finding: None,
            clears: 0,
        })))
    }

    /// The cycle in which the fault acted. `None` while no message was sent in its time.
    pub fn acted(&self) -> Option<Cycle> {
        self.checked().acted
    }

    /// The violation found so far. A message is lost if the channel is empty and a message is expected.
    ///
    /// Call it between windows of the clock. `is_end` says that the machine is quiescent or stuck, so nothing more is sent.
    pub fn finding(&self, now: Cycle, is_end: bool) -> Option<Finding> {
        let mut checked = self.checked();
        let is_held = checked
            .held
            .is_some_and(|since| !is_end && now.since(since) < HELD_LIMIT);
        // All that the channel carried is taken, and yet a message is expected.
        if !checked.expected.is_empty() && checked.carried == checked.taken && !is_held {
            let number = checked.number;
            checked.find(now, number, Violation::Lost);
        }
        checked.finding.clone()
    }

    fn checked(&self) -> MutexGuard<'_, Checked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checked {
    /// Compares a message with the oldest expected one.
    fn take(&mut self, now: Cycle, digest: u64) {
        self.taken += 1;
        let number = self.number;
        if self.expected.front() == Some(&digest) {
            self.expected.pop_front();
            self.number += 1;
        // A message further back in the list has overtaken the oldest one.
        } else if let Some(later) = self.expected.iter().position(|&other| other == digest) {
            self.expected.remove(later);
            self.find(now, number, Violation::OutOfOrder);
        } else if self.last == Some(digest) {
            // The message taken last is the one before the oldest expected one.
            self.find(now, number.saturating_sub(1), Violation::Duplicated);
        } else {
            self.find(now, number, Violation::Changed);
        }
        self.last = Some(digest);
    }

    /// Expects nothing more: a reset has emptied the link. The fault does not act a second time.
    fn clear(&mut self) {
        self.number += self.expected.len() as u64;
        self.expected.clear();
        self.taken = self.carried;
        (self.last, self.held, self.finding) = (None, None, None);
        self.clears += 1;
    }

    /// Keeps the first violation.
    fn find(&mut self, at: Cycle, number: u64, violation: Violation) {
        let link = self.link.clone();
        self.finding.get_or_insert(Finding {
            link,
            at,
            number,
            violation,
        });
    }
}

/// A fault of a link, and its check.
#[derive(Clone, Debug)]
pub struct FaultyLink {
    /// The fault.
    pub fault: Fault,
    /// The check.
    pub check: LinkCheck,
}

/// A message on its way to the channel.
pub(super) struct Outgoing<T> {
    pub message: T,
    pub extra: u64,
    pub sideband: u16,
}

/// What happens to a message before it enters the channel.
pub(super) trait Filter<T>: Send {
    /// Returns the message to send and its delay in cycles. `None`: nothing is sent.
    fn before(&mut self, now: Cycle, outgoing: Outgoing<T>) -> Option<(Outgoing<T>, u64)>;

    /// Returns a message to send after it, if the link has room for one. Called after a message was sent.
    fn after(&mut self, now: Cycle, has_room: bool) -> Option<Outgoing<T>>;
}

/// The sending end of a faulty link.
pub(super) struct FaultySender<T> {
    fault: Fault,
    check: LinkCheck,
    stall: Stall,
    /// The message to be overtaken, or the copy of the last message.
    next: Option<Outgoing<T>>,
    /// True if the last message sent differs from `next`. To exchange equal messages would change nothing.
    differs: bool,
    /// [`Checked::clears`] at the last message.
    clears: u64,
}

impl<T> FaultySender<T> {
    pub(super) fn new(link: FaultyLink) -> Self {
        FaultySender {
            stall: Stall::new(link.fault.seed, link.fault.cycles),
            fault: link.fault,
            check: link.check,
            next: None,
            differs: false,
            clears: 0,
        }
    }
}

impl<T: Payload> Filter<T> for FaultySender<T> {
    fn before(&mut self, now: Cycle, mut outgoing: Outgoing<T>) -> Option<(Outgoing<T>, u64)> {
        let mut checked = self.check.checked();
        // A reset drops the message that waits to be overtaken.
        if self.clears != checked.clears {
            (self.clears, self.next) = (checked.clears, None);
        }
        let sent = digest(&outgoing.message);
        // Before the fault acts: the receiver is to see what the sender meant.
        checked.expected.push_back(sent);
        self.differs = self.next.as_ref().is_some_and(|next| digest(&next.message) != sent);
        // Every kind other than `Stall` acts on one message.
        let acts = now >= self.fault.from && checked.acted.is_none();
        // A duplicate has acted once its copy has found room (`after`).
        if acts && self.fault.kind != FaultKind::Duplicate {
            checked.acted = Some(now);
        }
        let mut delay = 0;
        match self.fault.kind {
            FaultKind::Delay if acts => delay = self.fault.cycles.into(),
            FaultKind::Stall if now >= self.fault.from => delay = self.stall.delay(now),
            FaultKind::Drop if acts => return None,
            FaultKind::Corrupt if acts => outgoing.message.corrupt(),
            FaultKind::Duplicate if acts => {
                self.next = Some(Outgoing {
                    message: outgoing.message.clone(),
                    ..outgoing
                });
            }
            FaultKind::Reorder if acts => {
                checked.held = Some(now);
                self.next = Some(outgoing);
                return None;
            }
            _ => {}
        }
        checked.carried += 1;
        Some((outgoing, delay))
    }

    fn after(&mut self, now: Cycle, has_room: bool) -> Option<Outgoing<T>> {
        let is_copy = self.fault.kind == FaultKind::Duplicate;
        // A held message waits until there is room and a different message has passed it. A copy does not wait.
        let next = self.next.take_if(|_| is_copy || has_room && self.differs)?;
        // Without room the copy is dropped, and the fault acts on a later message.
        if !has_room {
            return None;
        }
        let mut checked = self.check.checked();
        checked.acted.get_or_insert(now);
        checked.carried += 1;
        checked.held = None;
        Some(next)
    }
}

/// The receiving end of a faulty link.
pub(super) struct CheckedReceiver(pub LinkCheck);

impl<T: Payload> Monitor<T> for CheckedReceiver {
    fn taken(&mut self, now: Cycle, message: &T) {
        self.0.checked().take(now, digest(message));
    }

    fn cleared(&mut self, _: usize, _: Cycle) {
        self.0.checked().clear();
    }
}

/// A digest of the whole message.
fn digest(message: &impl Debug) -> u64 {
    // The text has every field. The hasher has fixed keys, so digests repeat.
    let mut hasher = DefaultHasher::new();
    hasher.write(format!("{message:?}").as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{InPort, LinkConfig, OutPort, link};
    use crate::tile::TileBuilder;

    /// A link of latency 2 and depth 4 with a fault from cycle 3 on.
    fn faulty(kind: FaultKind) -> (OutPort<u64>, InPort<u64>, LinkCheck) {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let config = LinkConfig {
            path: Path::root("link"),
            latency: 2,
            depth: 4,
        };
        let (mut output, mut input) = link(&config, &from, &to);
        let check = LinkCheck::new(config.path);
        let fault = Fault {
            kind,
            from: Cycle(3),
            cycles: 5,
            seed: 1,
        };
        output.inject(FaultyLink {
            fault,
            check: check.clone(),
        });
        input.check(check.clone());
        (output, input, check)
    }

    /// What arrives when, and what the check finds: the number of a message, and the violation.
    type Outcome = (Vec<(u64, u64)>, Option<(u64, Violation)>);

    /// Sends 100 + t in each cycle t from 1 to 6.
    fn run(kind: FaultKind) -> Outcome {
        let (mut output, mut input, check) = faulty(kind);
        let mut arrived = Vec::new();
        for now in (1..20).map(Cycle) {
            if now.0 <= 6 && output.has_room(now) {
                output.send(now, 100 + now.0);
            }
            while let Some(message) = input.recv(now) {
                arrived.push((now.0, message));
            }
        }
        let finding = check.finding(Cycle(20), true);
        (arrived, finding.map(|finding| (finding.number, finding.violation)))
    }

    #[test]
    fn delay_keeps_the_order_and_is_no_violation() {
        // The fault acts in cycle 3. The link is full in cycles 6 and later, so 106 is not sent.
        let (arrived, finding) = run(FaultKind::Delay);
        assert_eq!(
            arrived,
            [(3, 101), (4, 102), (10, 103), (10, 104), (10, 105), (10, 106)]
        );
        assert_eq!(finding, None);
    }

    #[test]
    fn stall_loses_nothing() {
        let (arrived, finding) = run(FaultKind::Stall);
        let messages: Vec<u64> = arrived.iter().map(|&(_, message)| message).collect();
        assert_eq!(messages[..4], [101, 102, 103, 104]);
        assert_eq!(finding, None);
    }

    #[test]
    fn lost_message_is_found_by_its_number() {
        let (arrived, finding) = run(FaultKind::Drop);
        assert_eq!(arrived, [(3, 101), (4, 102), (6, 104), (7, 105), (8, 106)]);
        assert_eq!(finding, Some((2, Violation::OutOfOrder)));
    }

    #[test]
    fn lost_last_message_is_found_once_the_link_is_empty() {
        let (mut output, _input, check) = faulty(FaultKind::Drop);
        output.send(Cycle(3), 103);
        let finding = check.finding(Cycle(4), false).unwrap();
        assert_eq!((finding.number, finding.violation), (0, Violation::Lost));
        assert_eq!(finding.to_string(), "link, cycle 4: message 0 was lost");
    }

    #[test]
    fn duplicate_is_found_at_its_arrival() {
        let (arrived, finding) = run(FaultKind::Duplicate);
        assert_eq!(arrived[..4], [(3, 101), (4, 102), (5, 103), (5, 103)]);
        assert_eq!(finding, Some((2, Violation::Duplicated)));
    }

    #[test]
    fn corrupt_message_is_found_at_its_arrival() {
        let (arrived, finding) = run(FaultKind::Corrupt);
        assert_eq!(arrived[2].0, 5);
        assert_eq!((arrived[2].1 ^ 103).count_ones(), 1);
        assert_eq!(finding, Some((2, Violation::Changed)));
    }

    #[test]
    fn message_that_the_next_one_overtakes_is_found() {
        let (arrived, finding) = run(FaultKind::Reorder);
        assert_eq!(arrived[..4], [(3, 101), (4, 102), (6, 104), (6, 103)]);
        assert_eq!(finding, Some((2, Violation::OutOfOrder)));
    }

    #[test]
    fn message_is_exchanged_with_the_next_one_that_differs() {
        let (mut output, mut input, check) = faulty(FaultKind::Reorder);
        let mut arrived = Vec::new();
        for (now, message) in [(3, 7), (4, 7), (5, 8)] {
            output.send(Cycle(now), message);
            arrived.extend(std::iter::from_fn(|| input.recv(Cycle(now + 2))));
        }
        assert_eq!(arrived, [7, 8, 7]);
        let finding = check.finding(Cycle(9), true).unwrap();
        assert_eq!((finding.number, finding.violation), (1, Violation::OutOfOrder));
    }

    #[test]
    fn message_that_none_follows_is_lost_at_the_end() {
        let (mut output, _input, check) = faulty(FaultKind::Reorder);
        output.send(Cycle(3), 103);
        assert_eq!(check.finding(Cycle(4), false), None);
        assert_eq!(check.finding(Cycle(4), true).unwrap().violation, Violation::Lost);
    }

    /// Sends 103 and 104 with a fault from cycle 3 on, clears the link in cycle 6, and sends 210 and 211. Returns what arrives after the
    /// clear, and the finding at the end.
    fn run_cleared(kind: FaultKind) -> (Vec<u64>, Option<Finding>) {
        let (mut output, mut input, check) = faulty(kind);
        let sent = [(3, 103), (4, 104), (10, 210), (11, 211)];
        let mut arrived = Vec::new();
        for now in (1..30).map(Cycle) {
            if now.0 == 6 {
                input.clear();
                assert_eq!(check.finding(now, true), None, "{kind:?}");
            }
            for &(_, message) in sent.iter().filter(|(at, _)| *at == now.0) {
                output.send(now, message);
            }
            if now.0 > 6 {
                arrived.extend(std::iter::from_fn(|| input.recv(now)));
            }
        }
        (arrived, check.finding(Cycle(30), true))
    }

    #[test]
    fn cleared_link_expects_nothing_and_holds_nothing_back() {
        use FaultKind::*;
        for kind in [Delay, Stall, Drop, Duplicate, Corrupt, Reorder] {
            assert_eq!(run_cleared(kind), (vec![210, 211], None), "{kind:?}");
        }
    }

    #[test]
    fn message_held_back_before_a_clear_is_not_sent_after_it() {
        let (mut output, mut input, check) = faulty(FaultKind::Reorder);
        output.send(Cycle(3), 103);
        input.clear();
        output.send(Cycle(10), 210);
        let arrived: Vec<u64> = std::iter::from_fn(|| input.recv(Cycle(12))).collect();
        assert_eq!((arrived, check.finding(Cycle(13), true)), (vec![210], None));
    }
}
