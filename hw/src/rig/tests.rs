//! A correct component, and one for each fault that the contract finds.

use std::collections::VecDeque;

use super::*;
use crate::component::Activity;
use crate::probe::Probe;
use crate::stats::Report;

/// The fault of a test component.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    CountsIdleTicks,
    OversleepsRoom,
    ForgetsToReset,
    ForgetsToResetCounter,
    CountsDown,
    ClaimsRest,
    NeverRests,
    LooksAtTheChannel,
    ShowsMoreWhenBusy,
    ShowsTooMuch,
}

/// The latency of an addition, in cycles, and the number of sums in the pipeline.
const LATENCY: u64 = 4;

/// Adds one to each number.
struct Adder {
    path: Path,
    fault: Fault,
    input: InPort<u32>,
    output: OutPort<u32>,
    /// Sums, each with the cycle from which it may be sent.
    pipe: VecDeque<(Cycle, u32)>,
    sums: u64,
    ticks: u64,
}

impl crate::warm::Warm for Adder {}

impl Component for Adder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.ticks += 1;
        if self.output.has_room(now)
            && let Some((_, sum)) = self.pipe.pop_front_if(|(ready, _)| *ready <= now)
        {
            self.output.send(now, sum);
            self.sums += 1;
        }
        if self.pipe.len() < LATENCY as usize
            && let Some(number) = self.input.recv(now)
        {
            self.pipe.push_back((now + LATENCY, number + 1));
        }
        if self.input.is_ready(now) || self.fault == Fault::NeverRests {
            return Activity::Busy;
        }
        match self.pipe.front().map(|(ready, _)| *ready) {
            Some(at) if self.fault == Fault::OversleepsRoom && at <= now => Activity::Idle,
            Some(at) => Activity::Until(at),
            None => Activity::Idle,
        }
    }

    fn reset(&mut self) {
        self.input.clear();
        if self.fault != Fault::ForgetsToReset {
            self.pipe.clear();
        }
        if self.fault != Fault::ForgetsToResetCounter {
            self.sums = 0;
        }
        self.ticks = 0;
    }

    fn is_quiescent(&self) -> bool {
        match self.fault {
            Fault::ClaimsRest => self.input.is_empty(),
            Fault::NeverRests => false,
            _ => self.pipe.is_empty() && self.input.is_empty(),
        }
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let held = self.pipe.len() as u64;
        probe.enter("stage", 0);
        probe.vector("held", 4, Some(held));
        probe.leave();
        match self.fault {
            Fault::CountsIdleTicks => probe.vector("ticks", 32, Some(self.ticks)),
            Fault::LooksAtTheChannel => probe.bit("coming", Some(!self.input.is_empty())),
            Fault::ShowsMoreWhenBusy if held > 0 => probe.bit("busy", Some(true)),
            Fault::ShowsTooMuch => probe.vector("sums", 4, Some(self.sums)),
            _ => {}
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        let sums = match self.fault {
            Fault::CountsDown => 10_u64.saturating_sub(self.sums),
            _ => self.sums,
        };
        report.count("sums", sums);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        say(format!("{} sums inside", self.pipe.len()));
    }
}

fn verdict(fault: Fault) -> Result<Vec<Event>, String> {
    let build = |rig: &mut Rig| {
        let traffic = (0..20).map(|n| (u64::from(n) * 3 % 40, n)).collect();
        Adder {
            path: Path::root("adder"),
            fault,
            input: rig.input("numbers", 1, 2, traffic),
            output: rig.output("sums", 2, 1, |now| now.0 % 5 != 0),
            pipe: VecDeque::new(),
            sums: 0,
            ticks: 0,
        }
    };
    check(build, 200)
}

#[test]
fn correct_component_keeps_the_contract() {
    let events = verdict(Fault::None).expect("sound");
    let sums: Vec<_> = events
        .iter()
        .filter(|event| event.link == "sums")
        .map(|event| &event.message[..])
        .collect();
    let expected: Vec<_> = (1..=20).map(|sum| sum.to_string()).collect();
    assert_eq!(sums, expected);
}

#[test]
fn every_fault_is_found() {
    let expected = [
        (
            Fault::CountsIdleTicks,
            "without idle-skipping: after cycle 3 ticks is Some(4), not Some(3)",
        ),
        (Fault::OversleepsRoom, "not at rest after 200 cycles: 4 sums inside"),
        (Fault::ForgetsToReset, "after a reset in cycle 2: event"),
        (Fault::ForgetsToResetCounter, "after a reset in cycle 10: counts sums 2"),
        (Fault::CountsDown, "in cycle 5 counter sums falls from 10 to 9"),
        (Fault::ClaimsRest, "at rest and quiescent after cycle"),
        (Fault::NeverRests, "not at rest after 200 cycles: 0 sums inside"),
        (
            Fault::LooksAtTheChannel,
            "in cycle 0 coming changes without a tick: it is Some(1), and was Some(0) after the last tick",
        ),
        (
            Fault::ShowsMoreWhenBusy,
            "after cycle 1 it shows other signals than after construction",
        ),
        (Fault::ShowsTooMuch, "sums of 4 bits is 16"),
    ];
    for (fault, words) in expected {
        let finding = verdict(fault).expect_err("a fault");
        assert!(finding.contains(words), "{fault:?}: {finding}");
    }
}
