//! The stand-in for an LSU: sends a script of packets, writes down the answers.

use std::sync::{Arc, Mutex};

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::proto::mem::Packet;

/// What a driver does.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// Packets, and how many cycles pass before each.
    pub(super) requests: Vec<(u64, Packet)>,
    /// Packets under way at a time.
    pub(super) most_in_flight: usize,
    /// Answers are left alone in every n-th cycle, unless n is 0.
    pub(super) pause: u64,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Number of the request in the script.
    pub(super) op: u32,
    /// When it was taken.
    pub(super) at: Cycle,
    /// The packet.
    pub(super) packet: Packet,
}

/// Where a driver writes its answers.
pub(super) type Record = Arc<Mutex<Vec<Answer>>>;

/// Empties a record.
pub(super) fn take(record: &Record) -> Vec<Answer> {
    std::mem::take(&mut record.lock().expect("no driver panics while it writes"))
}

/// The stand-in.
pub(super) struct Driver {
    path: Path,
    script: Script,
    requests: OutPort<Box<Packet>>,
    answers: InPort<Box<Packet>>,
    record: Record,
    next: usize,
    next_at: Cycle,
    in_flight: usize,
}

impl Driver {
    pub(super) fn new(
        path: Path,
        script: Script,
        requests: OutPort<Box<Packet>>,
        answers: InPort<Box<Packet>>,
    ) -> (Self, Record) {
        let record = Record::default();
        let driver = Driver {
            path,
            next_at: first(&script),
            script,
            requests,
            answers,
            record: record.clone(),
            next: 0,
            in_flight: 0,
        };
        (driver, record)
    }

    fn take_answer(&mut self, now: Cycle) {
        if self.script.pause != 0 && now.0.is_multiple_of(self.script.pause) {
            return;
        }
        if let Some(packet) = self.answers.recv(now) {
            self.in_flight -= 1;
            let answer = Answer {
                op: packet.tag,
                at: now,
                packet: *packet,
            };
            self.record
                .lock()
                .expect("no driver panics while it writes")
                .push(answer);
        }
    }

    fn send_request(&mut self, now: Cycle) {
        let Some((_, packet)) = self.script.requests.get(self.next) else {
            return;
        };
        if now < self.next_at || self.in_flight >= self.script.most_in_flight || !self.requests.has_room(now) {
            return;
        }
        let packet = Packet {
            tag: self.next as u32,
            ..packet.clone()
        };
        self.requests.send(now, Box::new(packet));
        self.in_flight += 1;
        self.next += 1;
        let gap = self.script.requests.get(self.next).map_or(0, |&(gap, _)| gap);
        self.next_at = now + 1 + gap;
    }
}

fn first(script: &Script) -> Cycle {
    Cycle(script.requests.first().map_or(0, |&(gap, _)| gap))
}

warpwave_hw::warm!(Driver);

impl Component for Driver {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.take_answer(now);
        self.send_request(now);
        let is_sending = self.next < self.script.requests.len() && self.in_flight < self.script.most_in_flight;
        match is_sending {
            _ if self.answers.is_ready(now) => Activity::Busy,
            true => Activity::Until(self.next_at.max(now + 1)),
            false => Activity::Idle,
        }
    }

    fn reset(&mut self) {
        self.answers.clear();
        take(&self.record);
        self.next = 0;
        self.next_at = first(&self.script);
        self.in_flight = 0;
    }

    fn is_quiescent(&self) -> bool {
        self.in_flight == 0 && self.next == self.script.requests.len()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("in_flight", 16, Some(self.in_flight as u64));
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("requests", self.next as u64);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        if self.in_flight > 0 {
            say(format!("{}: {} requests are not answered", self.path, self.in_flight));
        }
    }
}
