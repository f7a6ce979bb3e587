//! Target: an ideal memory between its LSU, its copy engine and the storage.
//!
//! Oracle: a memory without time. Each requester has lines of its own, so the order between the two is free. Each response leaves in the
//! order of its requester's requests, not before the latency, and with the bytes or old values of that memory.

use std::collections::VecDeque;
use std::sync::Arc;

use arbitrary::Arbitrary;
use warpwave_components::proto::mem::{Packet, PacketKind};
use warpwave_components::sm::ideal_memory::{Config, IdealMemory, Ports};
use warpwave_components::storage::Storage;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;

use crate::draw::{Pace, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{Owed, PlainMemory, Request};

/// The LSU and the copy engine.
const REQUESTERS: usize = 2;

/// A memory and its traffic.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = within(1..=40))]
    latency: u32,
    /// True for a part with a copy engine.
    has_copies: bool,
    paces: [Pace; REQUESTERS],
    #[arbitrary(with = up_to(60))]
    requests: Vec<Request>,
    /// The requests before which the LSU invalidates its L1, which an ideal memory has not.
    #[arbitrary(with = up_to(2))]
    invalidations: Vec<u8>,
}

struct Requesters {
    input: Input,
    storage: Arc<Storage>,
    sources: Vec<Source<Box<Packet>>>,
    sinks: Vec<Sink<Box<Packet>>>,
    memory: PlainMemory,
    owed: Owed,
    /// By requester: the tags of its requests in order, each with the first cycle of its response.
    order: Vec<VecDeque<(u32, u64)>>,
}

impl Requesters {
    fn start(&mut self) {
        (self.memory, self.owed) = Default::default();
        let n = self.sources.len();
        self.order = vec![VecDeque::new(); n];
        let (mut at, mut tag) = (0, 0);
        for (number, request) in self.input.requests.clone().into_iter().enumerate() {
            at += request.gap;
            if self.input.invalidations.contains(&(number as u8)) {
                let mut packet = Box::new(Packet::blank());
                (packet.kind, packet.tag) = (PacketKind::Invalidate { bytes: 1 << 14 }, tag);
                self.push(0, at, packet);
                tag += 1;
            }
            let requester = usize::from(request.choice) % n;
            let line = u64::from(request.line) * REQUESTERS as u64 + requester as u64;
            self.push(requester, at, request.packet(line, tag));
            tag += 1;
        }
    }

    fn push(&mut self, requester: usize, at: u64, packet: Box<Packet>) {
        self.owed.request(&mut self.memory, &packet);
        // A cycle on each link, and the latency.
        let earliest = at + 2 + u64::from(self.input.latency);
        self.order[requester].push_back((packet.tag, earliest));
        self.sources[requester].push(at, packet);
    }
}

impl World for Requesters {
    fn tick(&mut self, now: Cycle) -> bool {
        self.sources.iter_mut().for_each(|source| source.tick(now));
        for (sink, order) in self.sinks.iter_mut().zip(&mut self.order) {
            if let Some(response) = sink.take(now) {
                let (tag, earliest) = order.pop_front().expect("a response that is not owed");
                assert_eq!(response.tag, tag, "a response passes an older one");
                assert!(now.0 >= earliest, "response {tag} in cycle {now}, before {earliest}");
                self.owed.response(&response);
            }
        }
        !self.owed.is_empty()
    }

    fn reset(&mut self) {
        self.sources.iter_mut().for_each(Source::clear);
        self.sinks.iter_mut().for_each(Sink::clear);
        self.memory.clear_in(&self.storage);
        self.start();
    }

    fn check_end(&self) {
        self.memory.assert_in(&self.storage);
    }

    fn digest(&self) -> u64 {
        combine(self.sinks.iter().map(Sink::digest))
    }
}

/// Runs the memory.
///
/// # Panics
/// If a byte or an old value is wrong, if a response is missing, doubled, early or overtaken, or if the memory breaks the contract.
pub fn check(input: Input) {
    let n = if input.has_copies { REQUESTERS } else { 1 };
    let build = |wiring: &Wiring| {
        let storage = Arc::new(Storage::new(1 << 20));
        let (sources, requests): (Vec<_>, Vec<_>) = (0..n).map(|_| wiring.input(1, 4)).unzip();
        let (responses, sinks): (Vec<_>, Vec<_>) = (0..n).map(|_| wiring.output(1, 2)).unzip();
        let ports = requests.into_iter().zip(responses);
        let ports = ports.map(|(requests, responses)| Ports { requests, responses });
        let config = Config { latency: input.latency };
        let memory = IdealMemory::new(Path::root("l1"), config, ports.collect(), storage.clone());
        let sinks = sinks.into_iter().zip(input.paces);
        let mut world = Requesters {
            storage,
            sources: sources.into_iter().map(Source::new).collect(),
            sinks: sinks.map(|(port, pace)| Sink::new(port, pace)).collect(),
            memory: PlainMemory::default(),
            owed: Owed::default(),
            order: Vec::new(),
            input: input.clone(),
        };
        world.start();
        (memory, world)
    };
    check_component(build, input.second, 200_000);
}
