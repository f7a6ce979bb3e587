//! Tests of a slice alone. The test acts as crossbar, host and memory.

mod pair;

use super::*;
use crate::config::ReplacementPolicy;
use crate::proto::mem::{LINE, PacketKind, Stage};
use crate::test_ports::{Packets, add, all, line, load, run, store, wire};

const LATENCY: u64 = 10;

struct Bench {
    slice: Slice,
    now: Cycle,
    xbar: OutPort<Box<Packet>>,
    responses: InPort<Box<Packet>>,
    host: OutPort<SliceCommand>,
    fetches: InPort<Box<Packet>>,
    memory: OutPort<Box<Packet>>,
}

/// One set of two ways.
fn config() -> Config {
    Config {
        bytes: 256,
        associativity: 2,
        replacement: ReplacementPolicy::Lru.new_replacement(),
        latency: LATENCY as u32,
        l2_data_latency: 0,
        far_latency: 0,
        near_sms: 0..1,
        mshr_sectors: 8,
        mshr_targets: 8,
        memory_depth: 8,
        bytes_per_cycle: 64,
        atomic: AtomicPace {
            round: 130,
            float_add: 313,
        },
        clock: Domain::GLOBAL,
        twin: None,
        map: Arc::new(AddressMap::new(1, 1)),
    }
}

impl Bench {
    fn new(config: Config) -> Self {
        let ((xbar, requests), (to_xbar, responses)) = (wire(), wire());
        let ((to_memory, fetches), (memory, from_memory)) = (wire(), wire());
        let (host, commands) = wire();
        let ports = Ports {
            requests,
            responses: to_xbar,
            commands,
            memory: vec![ChannelPorts {
                requests: to_memory,
                responses: from_memory,
            }],
            twin: None,
        };
        Bench {
            slice: Slice::new(Path::root("slice"), config, ports),
            now: Cycle::ZERO,
            xbar,
            responses,
            host,
            fetches,
            memory,
        }
    }

    fn send(&mut self, packet: Box<Packet>, cycles: u64) {
        self.xbar.send(self.now, packet);
        self.run(cycles);
    }

    fn run(&mut self, cycles: u64) {
        let end = self.now.0 + cycles;
        run(&mut self.slice, &mut self.now, end);
    }

    /// Takes the fetches and write-backs that the slice has sent.
    fn memory_requests(&mut self) -> Packets {
        all(&mut self.fetches, self.now)
    }

    /// Returns a packet from memory with all bytes `value`. Returns the responses of the slice.
    fn return_packet(&mut self, mut packet: Box<Packet>, value: u8) -> Packets {
        packet.bytes = [value; LINE];
        self.memory.send(self.now, packet);
        self.run(LATENCY + 8);
        all(&mut self.responses, self.now)
    }

    /// Stores `value` to the bytes of line n in `mask`, and takes the acknowledgement.
    fn store(&mut self, n: u64, mask: u128, value: u8) {
        self.send(store(n, mask, value, 0), LATENCY + 6);
        assert_eq!(all(&mut self.responses, self.now).len(), 1);
    }
}

#[test]
fn load_that_misses_fetches_its_sectors_and_returns_the_bytes() {
    let mut bench = Bench::new(config());
    bench.send(load(3, 0b0110, 7), 3);
    let fetch = bench.memory_requests().remove(0);
    assert_eq!(
        (fetch.kind, fetch.line, fetch.sectors),
        (PacketKind::Load, line(3), 0b0110)
    );
    let responses = bench.return_packet(fetch, 9);
    assert_eq!(
        (responses[0].tag, responses[0].bytes[32], responses[0].l2_hit),
        (7, 9, false)
    );
    assert!(bench.slice.is_quiescent());
}

#[test]
fn load_that_hits_gets_its_response_after_the_latency() {
    let mut bench = Bench::new(config());
    bench.store(3, u128::MAX, 5);
    let sent = bench.now;
    bench.send(load(3, 0b1111, 1), LATENCY + 2);
    let response = bench
        .responses
        .recv(bench.now)
        .expect("sent after the latency, visible 1 cycle later");
    assert_eq!(response.stamps.at(Stage::L2), Some(sent + 1));
    assert!(response.l2_hit && response.bytes == [5; LINE]);
    assert!(bench.memory_requests().is_empty());
}

#[test]
fn response_to_a_far_sm_takes_longer_and_does_not_delay_a_near_one() {
    let mut bench = Bench::new(Config {
        far_latency: 20,
        ..config()
    });
    bench.store(3, u128::MAX, 5);
    let far = Packet {
        sm: 1,
        ..*load(3, 0b0001, 1)
    };
    bench.send(Box::new(far), 1);
    bench.send(load(3, 0b0001, 2), LATENCY + 2);
    assert_eq!(all(&mut bench.responses, bench.now)[0].tag, 2);
    bench.run(18);
    assert!(all(&mut bench.responses, bench.now).is_empty());
    bench.run(1);
    assert_eq!(all(&mut bench.responses, bench.now)[0].tag, 1);
}

#[test]
fn store_that_misses_fetches_nothing() {
    let mut bench = Bench::new(config());
    bench.store(3, 0xff, 5);
    assert!(bench.memory_requests().is_empty());
    assert_eq!(bench.slice.counters().store_sectors_missed, 1);
}

#[test]
fn load_of_a_partly_written_sector_fetches_it_and_keeps_the_written_bytes() {
    let mut bench = Bench::new(config());
    bench.store(3, 0xff, 5);
    bench.send(load(3, 0b0001, 1), 3);
    let fetch = bench.memory_requests().remove(0);
    assert_eq!(fetch.sectors, 0b0001);
    let responses = bench.return_packet(fetch, 9);
    assert_eq!(responses[0].bytes[7..9], [5, 9]);
}

#[test]
fn requests_for_a_sector_in_flight_wait_and_are_served_in_order() {
    let mut bench = Bench::new(config());
    bench.send(load(3, 0b0001, 1), 1);
    bench.send(store(3, 0b1, 5, 2), 1);
    bench.send(load(3, 0b0001, 3), 1);
    bench.send(add(3, 1, 1, 4), 4);
    let mut packets = bench.memory_requests();
    assert_eq!(packets.len(), 1);
    let responses = bench.return_packet(packets.remove(0), 9);
    let tags: Vec<_> = responses.iter().map(|packet| packet.tag).collect();
    assert_eq!(tags, [1, 2, 3, 4]);
    assert_eq!((responses[0].bytes[0], responses[2].bytes[0]), (9, 5));
    let old = responses[3].atomic.as_ref().unwrap().lanes[0].value;
    assert_eq!(old, 0x0909_0905);
}

#[test]
fn atomics_on_one_word_keep_their_pace_in_hundredths_of_a_cycle() {
    let mut bench = Bench::new(config());
    bench.store(3, u128::MAX, 0);
    // 7 lanes of 1.3 cycles each: the eighth atomic is taken in cycle 9 after the first.
    let sent = bench.now;
    (0..8).for_each(|tag| bench.xbar.send(sent, add(3, 1, 1, tag)));
    bench.run(LATENCY + 14);
    let taken: Vec<_> = all(&mut bench.responses, bench.now)
        .iter()
        .filter_map(|packet| packet.stamps.at(Stage::L2))
        .map(|at| at.0 - sent.0 - 1)
        .collect();
    // The whole cycles of 1.3, 2.6, 3.9, 5.2, 6.5, 7.8 and 9.1.
    assert_eq!(taken, [0, 1, 2, 3, 5, 6, 7, 9]);
}

#[test]
fn fetch_of_a_sector_does_not_delay_another_sector() {
    let mut bench = Bench::new(config());
    bench.store(3, 0xffff_ffff, 5);
    bench.send(load(3, 0b0010, 1), 1);
    bench.send(load(3, 0b0001, 2), LATENCY + 3);
    assert_eq!(all(&mut bench.responses, bench.now)[0].tag, 2);
}

#[test]
fn victim_is_written_back_with_its_byte_mask() {
    let mut bench = Bench::new(config());
    bench.store(1, 0xff << 32, 5);
    bench.store(2, u128::MAX, 6);
    bench.send(load(3, 0b0001, 1), 4);
    let packets = bench.memory_requests();
    assert_eq!(packets.len(), 2, "the write-back, then the fetch");
    let back = &packets[0];
    assert_eq!(
        (back.kind, back.line, back.sectors),
        (PacketKind::Store, line(1), 0b0010)
    );
    assert_eq!((back.byte_mask, back.bytes[32]), (0xff << 32, 5));
    assert_eq!((packets[1].kind, packets[1].line), (PacketKind::Load, line(3)));
    assert_eq!(bench.slice.counters().sectors_written_back, 1);
}

#[test]
fn requests_and_write_backs_in_memory_stay_within_the_depth() {
    let mut bench = Bench::new(Config {
        memory_depth: 3,
        ..config()
    });
    bench.store(1, u128::MAX, 5);
    bench.store(2, u128::MAX, 6);
    bench.send(load(3, 0b0001, 3), 2);
    bench.send(load(4, 0b0001, 4), 8);
    let mut packets = bench.memory_requests();
    assert_eq!(packets.len(), 2, "each load needs room for a write-back and a fetch");
    bench.return_packet(packets.remove(0), 0);
    assert_eq!(bench.memory_requests().len(), 2);
    assert!(bench.slice.counters().memory_stall_cycles > 0);
}

#[test]
fn miss_stalls_while_every_way_is_pinned() {
    let mut bench = Bench::new(config());
    for n in 1..4 {
        bench.send(load(n, 0b0001, n as u32), 2);
    }
    bench.run(4);
    let mut packets = bench.memory_requests();
    assert_eq!(packets.len(), 2);
    bench.return_packet(packets.remove(0), 9);
    assert_eq!(bench.memory_requests()[0].line, line(3));
    assert!(bench.slice.counters().pinned_stall_cycles > 0);
}

#[test]
fn write_back_command_cleans_dirty_lines_and_keeps_them() {
    let mut bench = Bench::new(config());
    bench.store(1, u128::MAX, 5);
    bench.store(2, u128::MAX, 6);
    bench.host.send(bench.now, SliceCommand::WriteBack);
    bench.run(8);
    let lines: Vec<_> = bench.memory_requests().iter().map(|packet| packet.line).collect();
    assert_eq!((lines.len(), lines.contains(&line(1))), (2, true));
    let counters = bench.slice.counters();
    assert_eq!((counters.sectors_flushed, counters.sectors_written_back), (8, 0));
    assert!(bench.slice.is_quiescent());
    bench.send(load(1, 0b1111, 1), LATENCY + 4);
    assert!(all(&mut bench.responses, bench.now)[0].l2_hit);
    bench.host.send(bench.now, SliceCommand::WriteBack);
    bench.run(8);
    assert!(bench.memory_requests().is_empty(), "no line is dirty");
}

#[test]
fn invalidate_command_drops_clean_lines() {
    let mut bench = Bench::new(config());
    bench.store(1, u128::MAX, 5);
    bench.host.send(bench.now, SliceCommand::WriteBack);
    bench.run(6);
    bench.memory_requests();
    bench.host.send(bench.now, SliceCommand::Invalidate);
    bench.run(3);
    bench.send(load(1, 0b0001, 1), 4);
    assert_eq!(bench.memory_requests().len(), 1);
}

#[test]
fn full_lines_keep_the_data_array_busy_for_two_cycles_each() {
    let mut bench = Bench::new(config());
    bench.store(1, u128::MAX, 5);
    let mut arrivals = Vec::new();
    for tag in 0..30 {
        if tag < 4 {
            bench.xbar.send(bench.now, load(1, 0b1111, tag));
        }
        bench.run(1);
        arrivals.extend(all(&mut bench.responses, bench.now).iter().map(|_| bench.now.0));
    }
    assert!(
        arrivals.len() == 4 && arrivals.is_sorted_by(|a, b| b - a == 2),
        "{arrivals:?}"
    );
}

#[test]
fn ten_lanes_on_one_word_delay_the_next_request_by_thirteen_cycles() {
    let mut bench = Bench::new(config());
    bench.store(1, u128::MAX, 0);
    // 1.3 cycles per lane.
    bench.send(add(1, 10, 3, 1), 1);
    bench.send(load(1, 0b0001, 2), 40);
    let responses = all(&mut bench.responses, bench.now);
    let lookup = |n: usize| responses[n].stamps.at(Stage::L2).unwrap();
    assert_eq!(lookup(1) - lookup(0), 13);
    let old = responses[0].atomic.as_ref().unwrap().lanes.map(|lane| lane.value);
    assert_eq!(old[..10], [0, 3, 6, 9, 12, 15, 18, 21, 24, 27]);
    assert_eq!(responses[1].bytes[0], 30);
}

#[test]
fn clock_at_half_rate_doubles_the_latency() {
    let mut bench = Bench::new(Config {
        clock: Domain::new(1, 2),
        ..config()
    });
    bench.send(store(1, u128::MAX, 5, 0), 2 * LATENCY + 8);
    let response = bench.responses.recv(bench.now).unwrap();
    assert_eq!(
        response.stamps.at(Stage::L2),
        Some(Cycle(2)),
        "the first edge after cycle 1"
    );
    bench.send(load(1, 0b0001, 1), 2 * LATENCY + 4);
    let response = bench.responses.recv(bench.now).unwrap();
    let looked_up = response.stamps.at(Stage::L2).unwrap().0;
    assert!(looked_up.is_multiple_of(2));
    assert!((looked_up + 2 * LATENCY + 1..=looked_up + 2 * LATENCY + 3).contains(&bench.now.0));
}

#[test]
fn slice_keeps_the_contract_of_a_component() {
    for clock in [Domain::GLOBAL, Domain::new(3, 5), Domain::new(7, 4)] {
        let build = |rig: &mut warpwave_hw::rig::Rig| {
            let requests = vec![
                (0, load(1, 0b0001, 1)),
                (0, store(1, 0xff, 7, 2)),
                (0, add(1, 5, 1, 3)),
                (0, store(2, u128::MAX, 8, 4)),
                (0, load(3, 0b0001, 5)),
                (70, load(3, 0b0001, 6)),
                (90, load(1, 0b0001, 7)),
            ];
            // Line 1 takes way 0. Line 3 takes the way of line 2 after its write-back.
            let fills = vec![
                (30, load(1, 0b0001, 0)),
                (60, load(3, 0b0001, 1)),
                (61, store(2, u128::MAX, 8, 0)),
            ];
            let ports = Ports {
                requests: rig.input("requests", 1, 2, requests),
                responses: rig.output("responses", 1, 2, |now| now.0 % 3 == 0),
                commands: rig.input("commands", 1, 1, vec![(300, SliceCommand::WriteBack)]),
                memory: vec![ChannelPorts {
                    requests: rig.output("fetches", 1, 2, |now| now.0 % 2 == 0),
                    responses: rig.input("fills", 1, 2, fills),
                }],
                twin: None,
            };
            Slice::new(Path::root("slice"), Config { clock, ..config() }, ports)
        };
        let events = warpwave_hw::rig::check(build, 400);
        let events = events.unwrap_or_else(|fault| panic!("{clock:?}: {fault}"));
        let passed = |link| events.iter().filter(|event| event.link == link).count();
        assert!(passed("responses") == 7, "{clock:?}: {}", passed("responses"));
    }
}
