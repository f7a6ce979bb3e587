//! An ideal memory: it takes the place of L1, crossbar, L2 and channels, and serves every access in the same number of cycles.
//!
//! ```text
//!                +-------------------------+
//!   LSU requests |--> access --> delay ----|--> responses LSU
//!   copy engine  |      |                  |--> responses copy engine
//!                +------|------------------+
//!                    storage
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` from the LSU | one packet per request and line |
//! | `responses` to the LSU | the same packets: loads with bytes, atomics with old values, all others as acknowledgements |
//! | `bulk` | packets of the bulk copy engine, both ways |
//!
//! | Operation | Cycles |
//! |---|---|
//! | access | one packet of the LSU and one of the copy engine per cycle; response sent `latency` cycles later |
//!
//! It is for teaching: the preset `toy` has it. Its path is that of the L1, and its counters have the names of an L1 without misses.
//!
//! # Invariants
//! - A packet reads and changes the storage in the cycle in which it is taken, so all accesses are in the order of arrival.
//! - Each packet gets exactly one response.

use std::collections::VecDeque;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::atomic::AtomicUnit;

use crate::proto::mem::{LINE, Packet, PacketKind, Purpose, Stage, apply_atomic, byte_mask, shown};
use crate::storage::Storage;

/// Parameters of an ideal memory.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Cycles from taking a request to sending its response, at least 1. Preset key `sm.ideal_memory_latency`.
    pub latency: u32,
}

/// The links of a requester: the LSU, or the bulk copy engine.
pub struct Ports {
    /// From the requester.
    pub requests: InPort<Box<Packet>>,
    /// To the requester.
    pub responses: OutPort<Box<Packet>>,
}

warpwave_hw::show_ports!(Ports: requests, responses);

warpwave_hw::counters! {
    /// Counters of an ideal memory.
    pub struct Stats {
        pub load_requests: u64,
        pub store_requests: u64,
        pub atomic_requests: u64,
        pub reduction_requests: u64,
        pub load_sectors: u64,
        /// Equal to `load_sectors`: nothing misses.
        pub load_sectors_hit: u64,
        /// 0: nothing misses.
        pub load_sectors_merged: u64,
        /// Sectors of loads of warps from global memory.
        pub global_load_sectors: u64,
        /// Equal to `global_load_sectors`: nothing misses.
        pub global_load_sectors_hit: u64,
        /// 0: nothing misses.
        pub global_load_sectors_merged: u64,
        pub store_sectors: u64,
        pub atomic_sectors: u64,
        pub reduction_sectors: u64,
        /// Lines of packets whose atomics have changed a byte.
        pub atomic_lines_changed: u64,
        pub invalidations: u64,
    }
}

impl Stats {
    fn count(&mut self, packet: &Packet) {
        let n = u64::from(packet.n_sectors());
        let (requests, sectors) = match packet.kind {
            PacketKind::Load => {
                self.load_sectors_hit += n;
                if packet.purpose == Purpose::GlobalLoad {
                    self.global_load_sectors += n;
                    self.global_load_sectors_hit += n;
                }
                (&mut self.load_requests, &mut self.load_sectors)
            }
            PacketKind::Store => (&mut self.store_requests, &mut self.store_sectors),
            PacketKind::Atomic => (&mut self.atomic_requests, &mut self.atomic_sectors),
            PacketKind::Reduction => (&mut self.reduction_requests, &mut self.reduction_sectors),
            PacketKind::Invalidate { .. } => {
                self.invalidations += 1;
                return;
            }
        };
        *requests += 1;
        *sectors += n;
    }
}

/// The state that `reset` clears.
#[derive(Default)]
struct State {
    /// Served packets of each requester, with the due cycle of the response.
    delays: Vec<VecDeque<(Cycle, Box<Packet>)>>,
    /// Line of the access in the last tick, for the waveform.
    line: Option<u64>,
    stats: Stats,
}

/// The ideal memory of an SM.
pub struct IdealMemory {
    path: Path,
    config: Config,
    /// The LSU, then the bulk copy engine on a part that has one.
    ports: Vec<Ports>,
    storage: Arc<Storage>,
    state: State,
}

warpwave_hw::warm!(IdealMemory);

impl IdealMemory {
    /// A memory without accesses in flight.
    ///
    /// # Panics
    /// If the latency is 0.
    pub fn new(path: Path, config: Config, ports: Vec<Ports>, storage: Arc<Storage>) -> Self {
        assert!(config.latency >= 1, "{path}: the latency is at least 1 cycle");
        let mut memory = IdealMemory {
            path,
            config,
            ports,
            storage,
            state: State::default(),
        };
        memory.state.delays.resize_with(memory.ports.len(), VecDeque::new);
        memory
    }

    /// Sends one due response to each requester.
    fn respond(&mut self, now: Cycle) {
        for (delay, ports) in self.state.delays.iter_mut().zip(&mut self.ports) {
            if delay.front().is_some_and(|&(due, _)| due <= now) && ports.responses.has_room(now) {
                let (_, mut packet) = delay.pop_front().expect("a response is due");
                packet.note(Stage::Return, now);
                ports.responses.send(now, packet);
            }
        }
    }

    /// Takes and serves one request of each requester.
    fn take_requests(&mut self, now: Cycle) {
        self.state.line = None;
        for (delay, ports) in self.state.delays.iter_mut().zip(&mut self.ports) {
            // One packet per cycle of latency, and the one that is due.
            if delay.len() > self.config.latency as usize || !ports.requests.is_ready(now) {
                continue;
            }
            let mut packet = ports.requests.take(now);
            packet.note(Stage::L1, now);
            self.state.stats.count(&packet);
            self.state.line = Some(packet.line);
            (packet.l1_hit, packet.l2_hit) = (true, true);
            let changes = access(&mut packet, &self.storage);
            self.state.stats.atomic_lines_changed += u64::from(changes);
            delay.push_back((now + u64::from(self.config.latency), packet));
        }
    }

    /// When to tick next.
    fn activity(&mut self, now: Cycle) -> Activity {
        let latency = self.config.latency as usize;
        let of_requester = |(delay, ports): (&VecDeque<(Cycle, Box<Packet>)>, &Ports)| match delay.front() {
            _ if delay.len() <= latency && ports.requests.is_ready(now) => Activity::Busy,
            Some(&(due, _)) if due > now => Activity::Until(due),
            Some(_) => ports.responses.await_room(now),
            None => Activity::Idle,
        };
        let requesters = self.state.delays.iter().zip(&self.ports);
        requesters.map(of_requester).fold(Activity::Idle, Activity::or)
    }
}

/// Reads or changes the storage as a packet says. Returns true if an atomic has changed a byte.
fn access(packet: &mut Packet, storage: &Storage) -> bool {
    match packet.kind {
        PacketKind::Load => storage.read_sectors(packet.line, packet.sectors, &mut packet.bytes),
        PacketKind::Store => {
            let written = packet.byte_mask & byte_mask(packet.sectors);
            storage.write_masked(packet.line, written, &packet.bytes);
        }
        PacketKind::Atomic | PacketKind::Reduction => return update(packet, storage),
        // No copy of a line can be stale.
        PacketKind::Invalidate { .. } => {}
    }
    false
}

/// Applies the lanes of an atomic in lane order. Returns true if a byte has changed.
fn update(packet: &mut Packet, storage: &Storage) -> bool {
    let Some(atomic) = &mut packet.atomic else {
        return false;
    };
    let mut bytes = [0; LINE];
    storage.read_sectors(packet.line, packet.sectors, &mut bytes);
    let before = bytes;
    let (op, ty) = (atomic.op, atomic.ty);
    for lane in &mut atomic.lanes[..atomic.n] {
        let offset = usize::from(lane.offset);
        let word = &mut bytes[offset..offset + usize::from(ty.bytes())];
        lane.value = apply_atomic(AtomicUnit::L2, word, op, ty, (lane.value, lane.compare));
    }
    storage.write_masked(packet.line, byte_mask(packet.sectors), &bytes);
    bytes != before
}

impl Component for IdealMemory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // From the last stage to the first, so a packet passes one stage per cycle.
        self.respond(now);
        self.take_requests(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.ports.iter_mut().for_each(|ports| ports.requests.clear());
        self.state = State::default();
        self.state.delays.resize_with(self.ports.len(), VecDeque::new);
    }

    fn is_quiescent(&self) -> bool {
        self.state.delays.iter().all(VecDeque::is_empty)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        // A waveform shows addresses in 48 bits.
        probe.vector("line", 48, self.state.line.map(shown));
        let in_flight: usize = self.state.delays.iter().map(VecDeque::len).sum();
        let most = (u64::from(self.config.latency) + 1) * self.ports.len() as u64;
        probe.vector("in_flight", count_width(most), Some(in_flight as u64));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// Packets of a port keep their order.
    fn invariants(&self, check: &mut Invariants) {
        for (n, delays) in self.state.delays.iter().enumerate() {
            let late = delays
                .iter()
                .zip(delays.iter().skip(1))
                .filter(|((a, _), (b, _))| a > b);
            check.equal(format_args!("packets of port {n} out of order"), late.count() as u64, 0);
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }
}

#[cfg(test)]
mod tests;
