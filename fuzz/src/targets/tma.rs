//! Target: the bulk copy engine (TMA) between an LSU, an L1 and shared memory.
//!
//! Oracle: own loops over the bytes of a copy and over the elements of a tile. When the engine arrives at an mbarrier, some copy of this
//! barrier has all its bytes in shared memory. When a copy to global memory ends, its bytes are in the L1, and no other byte has changed.

mod plan;

use std::collections::{BTreeMap, VecDeque};

use arbitrary::Arbitrary;
use warpwave_components::config;
use warpwave_components::proto::bulk::BulkInst;
use warpwave_components::proto::cluster::RemoteByte;
use warpwave_components::proto::mem::{Packet, PacketKind};
use warpwave_components::proto::warp::WarpInst;
use warpwave_components::sm::tma::{Config, Ports, RemotePorts, Tma};
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::AtomOp;

use crate::draw::{Pace, one_of, up_to, within};
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use plan::{Copy, CopySpec, Move, Plan};

/// An engine and its copies.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = one_of(&[4, 0, 1, 40]))]
    latency: u32,
    #[arbitrary(with = within(1..=8))]
    pieces: u32,
    /// Cycles of the L1 for lines of even and of odd numbers, and of shared memory.
    delays: [Delay; 3],
    #[arbitrary(with = within(1..=3))]
    depth: u32,
    paces: [Pace; 4],
    #[arbitrary(with = up_to(8))]
    copies: Vec<CopySpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Delay(#[arbitrary(with = one_of(&[3, 1, 25, 90]))] u64);

/// The first bytes of global and of shared memory.
fn initial(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn initial_line(number: u64) -> [u8; 128] {
    std::array::from_fn(|at| initial(128 * number + at as u64))
}

/// Lines of memory, with the first bytes where none is written.
#[derive(Clone, Default)]
struct Lines(BTreeMap<u64, [u8; 128]>);

impl Lines {
    fn line(&mut self, number: u64) -> &mut [u8; 128] {
        self.0.entry(number).or_insert_with(|| initial_line(number))
    }

    fn get(&self, address: u64) -> u8 {
        let line = self.0.get(&(address / 128));
        line.map_or_else(|| initial(address), |line| line[address as usize % 128])
    }

    fn set(&mut self, address: u64, byte: u8) {
        self.line(address / 128)[address as usize % 128] = byte;
    }
}

struct Neighbours {
    input: Input,
    lsu: Source<BulkInst>,
    subcores: Vec<Sink<Box<WarpInst>>>,
    to_l1: Sink<Box<Packet>>,
    from_l1: OutPort<Box<Packet>>,
    to_shared: Sink<Box<Packet>>,
    from_shared: OutPort<Box<Packet>>,
    /// Responses of even and odd lines, and of shared memory, with the cycle in which each is due.
    responses: [VecDeque<(u64, Box<Packet>)>; 3],
    global: Lines,
    shared: Lines,
    /// Memories after all copies.
    expected: [Lines; 2],
    copies: Vec<Vec<Copy>>,
    /// Copies to shared memory that have not reached their barrier.
    arriving: Vec<Copy>,
    returned: Vec<bool>,
    /// Pieces in flight between engine and memories.
    pieces: u32,
}

impl Neighbours {
    fn start(&mut self) {
        let plan = Plan::new(&self.input.copies);
        (self.global, self.shared, self.expected) = Default::default();
        self.pieces = 0;
        self.returned = vec![false; plan.insts.len()];
        for (at, inst) in plan.insts {
            self.lsu.push(at, inst);
        }
        let [global, shared] = &mut self.expected;
        for copy in plan.copies.iter().flatten() {
            for &Move {
                shared: here,
                global: there,
            } in &copy.moves
            {
                match (copy.to_global, there) {
                    (true, Some(there)) => global.set(there, initial(here.into())),
                    // An element outside the tensor is not written.
                    (true, None) => {}
                    // An element outside the tensor reads as zero.
                    (false, there) => shared.set(here.into(), there.map_or(0, initial)),
                }
            }
        }
        self.arriving = plan
            .copies
            .iter()
            .flatten()
            .filter(|copy| !copy.to_global)
            .cloned()
            .collect();
        self.copies = plan.copies;
    }

    /// True if the bytes of a copy are at their end.
    fn is_there(&self, copy: &Copy) -> bool {
        copy.moves.iter().all(|byte| match (copy.to_global, byte.global) {
            (true, Some(there)) => self.global.get(there) == initial(byte.shared.into()),
            (true, None) => true,
            (false, there) => self.shared.get(byte.shared.into()) == there.map_or(0, initial),
        })
    }

    fn take_back(&mut self, now: Cycle) {
        for n in 0..self.subcores.len() {
            let Some(inst) = self.subcores[n].take(now) else {
                continue;
            };
            assert_eq!(usize::from(inst.subcore), n, "the sub-core of a copy");
            let number = inst.index as usize;
            assert!(
                !std::mem::replace(&mut self.returned[number], true),
                "copy {number} ends twice"
            );
            for copy in self.copies[number].iter().filter(|copy| copy.to_global) {
                assert!(
                    self.is_there(copy),
                    "copy {number} ends before its bytes are in global memory"
                );
            }
        }
    }

    /// Performs a packet in the L1, and answers it later.
    fn run_l1(&mut self, now: Cycle) {
        if let Some(mut packet) = self.to_l1.take(now) {
            let line = self.global.line(packet.line / 128);
            if packet.kind == PacketKind::Load {
                self.pieces += 1;
                packet.bytes = *line;
            } else {
                let written = (0..128).filter(|at| packet.byte_mask >> at & 1 == 1);
                written.for_each(|at| line[at] = packet.bytes[at]);
            }
            let bank = (packet.line / 128 % 2) as usize;
            self.responses[bank].push_back((now.0 + self.input.delays[bank].0, packet));
        }
        // The banks take turns, so pieces overtake each other.
        let first = (now.0 % 2) as usize;
        for bank in [first, 1 - first] {
            if self.from_l1.has_room(now)
                && let Some((_, packet)) = self.responses[bank].pop_front_if(|(at, _)| *at <= now.0)
            {
                self.pieces -= 1;
                self.from_l1.send(now, packet);
            }
        }
    }

    /// Performs a packet in shared memory, in order, and answers it later.
    fn run_shared(&mut self, now: Cycle) {
        if let Some(mut packet) = self.to_shared.take(now) {
            let to = RemoteByte::of(packet.line).expect("an address in shared memory");
            let first = u64::from(to.byte);
            match packet.kind {
                PacketKind::Load => {
                    self.pieces += 1;
                    packet.bytes = std::array::from_fn(|at| self.shared.get(first + at as u64));
                }
                PacketKind::Store => {
                    let written = (0..128).filter(|at| packet.byte_mask >> at & 1 == 1);
                    written.for_each(|at| self.shared.set(first + at as u64, packet.bytes[at]));
                }
                // In the order of the link: the stores of a copy come before its arrival.
                _ => self.arrive(&packet, first as u32),
            }
            self.responses[2].push_back((now.0 + self.input.delays[2].0, packet));
        }
        if self.from_shared.has_room(now)
            && let Some((_, packet)) = self.responses[2].pop_front_if(|(at, _)| *at <= now.0)
        {
            self.from_shared.send(now, packet);
        }
    }

    /// An arrival: some copy of the barrier is complete.
    fn arrive(&mut self, packet: &Packet, line: u32) {
        let atomics = packet.atomic.as_ref().expect("an arrival has a lane");
        assert_eq!(
            (atomics.op, atomics.n),
            (AtomOp::Arrive, 1),
            "the arrival at an mbarrier"
        );
        let lane = &atomics.lanes[0];
        let (barrier, bytes) = (
            line + u32::from(lane.offset),
            ((lane.value >> 32) as u32).wrapping_neg(),
        );
        // Equal copies of one barrier cannot be told apart, so any complete one will do.
        let is_it = |copy: &Copy| (copy.barrier, copy.bytes) == (barrier, bytes) && self.is_there(copy);
        let found = self.arriving.iter().position(is_it);
        let found = found.unwrap_or_else(|| panic!("no complete copy has {bytes} bytes at mbarrier {barrier:#x}"));
        self.arriving.remove(found);
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.lsu.tick(now);
        self.take_back(now);
        self.run_l1(now);
        self.run_shared(now);
        // Each read in flight takes an entry of the engine.
        assert!(self.pieces <= self.input.pieces, "{} pieces are in flight", self.pieces);
        let is_done = self.returned.iter().all(|&returned| returned) && self.arriving.is_empty();
        !is_done || self.responses.iter().any(|waiting| !waiting.is_empty())
    }

    fn reset(&mut self) {
        self.lsu.clear();
        self.subcores.iter_mut().for_each(Sink::clear);
        self.to_l1.clear();
        self.to_shared.clear();
        self.responses = Default::default();
        self.start();
    }

    fn check_end(&self) {
        for (name, found, expected) in [
            ("global", &self.global, &self.expected[0]),
            ("shared", &self.shared, &self.expected[1]),
        ] {
            for &line in found.0.keys().chain(expected.0.keys()) {
                let bytes = |lines: &Lines| lines.0.get(&line).copied().unwrap_or_else(|| initial_line(line));
                assert_eq!(bytes(found), bytes(expected), "line {:#x} of {name} memory", 128 * line);
            }
        }
    }

    fn digest(&self) -> u64 {
        let subcores = self.subcores.iter().map(Sink::digest);
        combine(subcores.chain([self.to_l1.digest(), self.to_shared.digest()]))
    }
}

/// Runs the engine.
///
/// # Panics
/// If a byte is wrong, or a copy is lost. If a barrier is told early, twice or never. If the engine breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let (lsu, insts) = wiring.input(1, 2);
        let (outputs, sinks): (Vec<_>, Vec<_>) = (0..2).map(|_| wiring.output(1, input.depth)).unzip();
        let (l1, to_l1) = wiring.output(1, input.depth);
        let (from_l1, l1_response) = wiring.input(1, input.depth);
        let (shared, to_shared) = wiring.output(1, input.depth);
        let (from_shared, shared_response) = wiring.input(1, input.depth);
        let ports = Ports {
            input: insts,
            output: outputs,
            l1,
            l1_response,
            shared,
            shared_response,
            // No copy leaves the SM, and none traps.
            remote: RemotePorts {
                request: wiring.output(1, 1).0,
                response: wiring.input(1, 1).1,
                trap: wiring.output(1, 1).0,
            },
        };
        let subcores = sinks.into_iter().zip(input.paces);
        let mut world = Neighbours {
            lsu: Source::new(lsu),
            subcores: subcores.map(|(port, pace)| Sink::new(port, pace)).collect(),
            to_l1: Sink::new(to_l1, input.paces[2]),
            from_l1,
            to_shared: Sink::new(to_shared, input.paces[3]),
            from_shared,
            responses: Default::default(),
            global: Lines::default(),
            shared: Lines::default(),
            expected: Default::default(),
            copies: Vec::new(),
            arriving: Vec::new(),
            returned: Vec::new(),
            pieces: 0,
            input: input.clone(),
        };
        world.start();
        let config = Config {
            tma: config::Tma {
                latency: input.latency,
                pieces: input.pieces,
            },
            sm_in_gpc: 0,
            gpc_sms: 1,
            shared_unit: 128,
        };
        (Tma::new(Path::root("tma"), config, ports), world)
    };
    check_component(build, input.second, 200_000);
}
