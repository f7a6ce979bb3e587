//! A component in place of the LSU: sends a script of packets and records the responses.

use std::sync::{Arc, Mutex};

use warpwave_components::gpu::BeforeL1Ports;
use warpwave_components::proto::mem::Packet;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::Show;
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

/// The packets of a driver, and its pace.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// Packets in order, each with the idle cycles before it.
    pub(super) requests: Vec<(u64, Packet)>,
    /// Maximum number of packets in flight.
    pub(super) most_in_flight: usize,
    /// The driver takes no response in every n-th cycle, unless n is 0.
    pub(super) pause: u64,
}

/// A recorded response.
#[derive(Clone, Debug)]
pub(super) struct Response {
    /// Index of the request in the script.
    pub(super) op: u32,
    /// The cycle in which the driver took it.
    pub(super) at: Cycle,
    /// The packet.
    pub(super) packet: Packet,
}

/// The responses that a driver took.
pub(super) type Record = Arc<Mutex<Vec<Response>>>;

/// Removes and returns all responses of a record.
pub(super) fn take(record: &Record) -> Vec<Response> {
    std::mem::take(&mut record.lock().expect("no driver panics while it writes"))
}

/// The driver. The LSU behind it is idle.
pub(super) struct Driver {
    path: Path,
    script: Script,
    ports: BeforeL1Ports,
    record: Record,
    state: State,
}

#[derive(Default)]
struct State {
    /// Index of the next request, and the first cycle in which it may be sent.
    next: usize,
    next_at: Cycle,
    in_flight: usize,
}

impl State {
    fn new(script: &Script) -> Self {
        State {
            next_at: Cycle(script.requests.first().map_or(0, |&(gap, _)| gap)),
            ..State::default()
        }
    }
}

impl Driver {
    pub(super) fn new(path: Path, script: Script, ports: BeforeL1Ports, record: Record) -> Self {
        let state = State::new(&script);
        Driver {
            path,
            script,
            ports,
            record,
            state,
        }
    }

    fn take_response(&mut self, now: Cycle) {
        // A pause fills the response queue of the L1: back-pressure is part of the test.
        if self.script.pause != 0 && now.0.is_multiple_of(self.script.pause) {
            return;
        }
        if let Some(packet) = self.ports.from_l1.recv(now) {
            self.state.in_flight -= 1;
            let response = Response {
                op: packet.tag,
                at: now,
                packet: *packet,
            };
            let mut record = self.record.lock().expect("no driver panics while it writes");
            record.push(response);
        }
    }

    fn has_request(&self) -> bool {
        self.state.next < self.script.requests.len() && self.state.in_flight < self.script.most_in_flight
    }

    fn send_request(&mut self, now: Cycle) {
        if !self.has_request() || now < self.state.next_at || !self.ports.to_l1.has_room(now) {
            return;
        }
        let requests = &self.script.requests;
        let State {
            next,
            next_at,
            in_flight,
        } = &mut self.state;
        let packet = Packet {
            // The tag comes back in the response and names the request.
            tag: *next as u32,
            ..requests[*next].1.clone()
        };
        self.ports.to_l1.send(now, Box::new(packet));
        *in_flight += 1;
        *next += 1;
        *next_at = now + 1 + requests.get(*next).map_or(0, |&(gap, _)| gap);
    }
}

warpwave_hw::warm!(Driver);

impl Component for Driver {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // Responses first: they free room in flight for the next request.
        self.take_response(now);
        self.send_request(now);
        match self.has_request() {
            // A response that was not taken must be looked at in the next cycle.
            _ if self.ports.from_l1.is_ready(now) => Activity::Busy,
            true => Activity::Until(self.state.next_at.max(now + 1)),
            false => Activity::Idle,
        }
    }

    fn reset(&mut self) {
        self.ports.clear_inputs();
        take(&self.record);
        self.state = State::new(&self.script);
    }

    fn is_quiescent(&self) -> bool {
        self.state.in_flight == 0 && self.state.next == self.script.requests.len()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("in_flight", 16, Some(self.state.in_flight as u64));
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("requests", self.state.next as u64);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        if self.state.in_flight > 0 {
            say(format!(
                "{}: {} requests have no response",
                self.path, self.state.in_flight
            ));
        }
    }
}
