//! Dialogues with an L1: the test is LSU and crossbar.

use super::*;
use crate::config::ReplacementPolicy;
use crate::proto::mem::Stage;
use crate::test_ports::{Packets, add, all, line, load, run, store, wire};

const LATENCY: u64 = 20;

struct Bench {
    l1: L1,
    now: Cycle,
    lsu: OutPort<Box<Packet>>,
    responses: InPort<Box<Packet>>,
    to_l2: InPort<Box<Packet>>,
    from_l2: OutPort<Box<Packet>>,
}

fn config() -> Config {
    Config {
        sm: 3,
        bytes: 1024,
        associativity: 2,
        replacement: ReplacementPolicy::Lru.new_replacement(),
        write_policy: WritePolicy::WriteThrough,
        latency: LATENCY as u32,
        mshr_entries: 8,
        mshr_merges: 2,
        waiting: 8,
        data_bytes_per_cycle: 128,
        store_queue: 8,
        return_queue: 8,
        map: Arc::new(AddressMap::new(1, 1)),
    }
}

impl Bench {
    fn new(config: Config) -> Self {
        let ((lsu, requests), (to_lsu, responses)) = (wire(), wire());
        let ((to_xbar, to_l2), (from_l2, from_xbar)) = (wire(), wire());
        let ports = Ports {
            requests,
            responses: to_lsu,
            to_xbar,
            from_xbar,
            bulk: None,
        };
        Bench {
            l1: L1::new(Path::root("l1"), config, ports),
            now: Cycle::ZERO,
            lsu,
            responses,
            to_l2,
            from_l2,
        }
    }

    /// Sends a packet of the LSU now, and runs the L1 for `cycles` cycles.
    fn send(&mut self, packet: Box<Packet>, cycles: u64) {
        self.lsu.send_sideband(self.now, packet.n_changed() as u16, packet);
        self.run(cycles);
    }

    fn run(&mut self, cycles: u64) {
        let end = self.now.0 + cycles;
        run(&mut self.l1, &mut self.now, end);
    }

    fn requests(&mut self) -> Packets {
        all(&mut self.to_l2, self.now)
    }

    /// The crossbar brings a load back with all bytes equal, or anything else as it is.
    fn bring_back(&mut self, mut packet: Box<Packet>, value: u8) {
        if packet.kind == PacketKind::Load {
            packet.bytes = [value; LINE];
        }
        self.from_l2.send(self.now, packet);
        self.run(3);
    }

    /// Tags and first bytes of what the LSU got.
    fn answered(&mut self) -> Vec<(u32, u8)> {
        let responses = all(&mut self.responses, self.now);
        responses.iter().map(|packet| (packet.tag, packet.bytes[0])).collect()
    }

    /// Loads a line and answers the miss, so that the L1 holds it.
    fn fetch(&mut self, n: u64, sectors: u8, value: u8) {
        self.send(load(n, sectors, 0), 3);
        for request in self.requests() {
            self.bring_back(request, value);
        }
        self.answered();
    }
}

#[test]
fn empty_cache_load_asks_the_l2_and_gives_the_bytes_back() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0101, 7), 4); // seen in cycle 1, sent in cycle 2, visible in cycle 3
    let request = bench.requests().remove(0);
    assert_eq!((request.line, request.sectors, request.sm), (line(5), 0b0101, 3));
    assert_eq!(request.stamps.at(Stage::Request), Some(Cycle(2)));
    bench.bring_back(request, 9);
    assert_eq!(bench.answered(), [(7, 9)]);
    assert!(bench.l1.is_quiescent());
    let stats = bench.l1.counters();
    assert_eq!(
        (
            stats.load_sectors_hit,
            stats.load_sectors_missed,
            stats.sectors_read_below
        ),
        (0, 2, 2)
    );
}

#[test]
fn line_present_load_is_answered_after_the_latency_without_the_l2() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0011, 9);
    let sent = bench.now;
    bench.send(load(5, 0b0010, 1), LATENCY + 1);
    assert_eq!(bench.answered(), [], "not yet visible in cycle {}", bench.now);
    bench.run(1);
    let answer = bench.responses.recv(bench.now).unwrap();
    assert_eq!(answer.bytes[32], 9);
    assert!(answer.l1_hit);
    assert_eq!(answer.stamps.at(Stage::L1), Some(sent + 1));
    assert_eq!(answer.stamps.at(Stage::Return), Some(sent + 1 + LATENCY));
    assert!(bench.requests().is_empty());
}

#[test]
fn line_present_in_part_load_fetches_the_other_sectors_alone() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    bench.send(load(5, 0b1001, 1), 3);
    let request = bench.requests().remove(0);
    assert_eq!(request.sectors, 0b1000);
    bench.bring_back(request, 4);
    let answer = bench.responses.recv(bench.now).unwrap();
    assert_eq!((answer.bytes[0], answer.bytes[96], answer.l1_hit), (9, 4, false));
}

#[test]
fn miss_pending_second_load_of_the_sector_merges_third_waits_for_the_limit() {
    let mut bench = Bench::new(config());
    for tag in 0..3 {
        bench.send(load(5, 0b0001, tag), 1);
    }
    bench.run(3);
    let requests = bench.requests();
    assert_eq!(requests.len(), 1, "one request for two loads");
    for request in requests {
        bench.bring_back(request, 6);
    }
    bench.run(LATENCY + 2);
    assert_eq!(bench.answered(), [(0, 6), (1, 6), (2, 6)]);
    assert!(
        bench.l1.counters().mshr_stall_cycles > 0,
        "a sector has two waiters at most here"
    );
    let stats = bench.l1.counters();
    assert_eq!(
        (stats.load_sectors_merged, stats.load_sectors_hit),
        (1, 1),
        "the third hits at last"
    );
}

#[test]
fn line_present_store_changes_it_and_goes_down() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    bench.send(store(5, 0b1, 0x55, 1), 1);
    bench.send(load(5, 0b0001, 2), LATENCY + 3);
    let below = bench.requests();
    assert_eq!((below.len(), below[0].kind), (1, PacketKind::Store));
    let answer = bench.responses.recv(bench.now).unwrap();
    assert_eq!(
        answer.bytes[..2],
        [0x55, 9],
        "the store's byte, and the others as they were"
    );
}

#[test]
fn line_absent_store_brings_nothing_in() {
    let mut bench = Bench::new(config());
    bench.send(store(5, u128::MAX, 0x55, 1), 3);
    let below = bench.requests().remove(0);
    bench.bring_back(below, 0);
    assert_eq!(bench.answered(), [(1, 0x55)], "the acknowledgement");
    bench.send(load(5, 0b0001, 2), 3);
    assert_eq!(bench.requests().len(), 1, "the load misses");
}

#[test]
fn fill_under_way_when_a_store_passes_next_load_asks_again_and_gets_the_store() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0001, 0), 1);
    bench.send(store(5, 0b1, 0x55, 1), 1);
    bench.send(load(5, 0b0001, 2), 4);
    let mut below = bench.requests();
    let kinds: Vec<_> = below.iter().map(|packet| packet.kind).collect();
    assert_eq!(
        kinds,
        [PacketKind::Load, PacketKind::Store, PacketKind::Load],
        "no merge, and in order"
    );
    let second = below.pop().unwrap();
    bench.bring_back(below.remove(0), 9);
    assert_eq!(
        bench.answered(),
        [(0, 9)],
        "the load before the store gets the old byte"
    );
    bench.send(load(5, 0b0001, 3), 3);
    assert!(bench.requests().is_empty(), "merges with the second");
    bench.bring_back(second, 0x55);
    bench.run(1);
    assert_eq!(bench.answered(), [(2, 0x55), (3, 0x55)]);
    bench.send(load(5, 0b0001, 4), LATENCY + 3);
    assert_eq!(bench.answered(), [(4, 0x55)], "the old fill was not installed");
}

#[test]
fn line_present_atomic_drops_it() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b1111, 9);
    bench.send(add(5, 1, 1, 1), 3);
    assert_eq!(bench.requests()[0].kind, PacketKind::Atomic);
    bench.send(load(5, 0b0001, 2), 3);
    assert_eq!(bench.requests().len(), 1);
}

#[test]
fn uncached_load_passes_a_line_that_is_here() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    for (tag, cache) in [(1, CacheOp::Global), (2, CacheOp::Volatile)] {
        let packet = Packet {
            cache,
            ..*load(5, 0b0001, tag)
        };
        bench.send(Box::new(packet), 3);
        let below = bench.requests().remove(0);
        bench.bring_back(below, 40);
        assert_eq!(bench.answered(), [(tag, 40)]);
    }
    assert_eq!(bench.l1.counters().load_sectors_bypassed, 2);
}

#[test]
fn set_full_the_line_used_longest_ago_goes() {
    let mut bench = Bench::new(config()); // 4 sets of 2 ways
    bench.fetch(0, 0b0001, 1);
    bench.fetch(4, 0b0001, 2);
    bench.send(load(0, 0b0001, 1), LATENCY + 3);
    bench.fetch(8, 0b0001, 3);
    bench.send(load(0, 0b0001, 2), LATENCY + 3);
    assert!(bench.requests().is_empty(), "line 0 is still here");
    bench.send(load(4, 0b0001, 3), LATENCY + 3);
    assert_eq!(bench.requests().len(), 1, "line 4 is not");
    assert_eq!(bench.l1.counters().lines_evicted, 1);
}

#[test]
fn invalidation_forgets_every_line_and_is_answered() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    let invalidate = Packet {
        kind: PacketKind::Invalidate { bytes: 512 },
        tag: 8,
        ..Packet::blank()
    };
    bench.send(Box::new(invalidate), LATENCY + 3);
    assert_eq!(bench.answered().len(), 1);
    bench.send(load(5, 0b0001, 2), 3);
    assert_eq!(bench.requests().len(), 1);
}

#[test]
fn load_under_way_invalidation_passes_its_fill_answers_it_and_stays_out_of_the_cache() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0001, 1), 3);
    let request = bench.requests().remove(0);
    let invalidate = Packet {
        kind: PacketKind::Invalidate { bytes: 512 },
        tag: 8,
        ..Packet::blank()
    };
    bench.send(Box::new(invalidate), LATENCY + 3);
    bench.answered();
    // A load behind the invalidation does not join the load before it.
    bench.send(load(5, 0b0001, 2), 3);
    let behind = bench.requests().remove(0);
    bench.bring_back(request, 9);
    assert_eq!(bench.answered(), [(1, 9)]);
    bench.bring_back(behind, 7);
    assert_eq!(bench.answered(), [(2, 7)]);
    bench.send(load(5, 0b0001, 3), LATENCY + 3);
    assert_eq!(bench.answered(), [(3, 7)], "the line is that of the later load");
}

#[test]
fn nobody_takes_what_the_l1_sends_nothing_is_lost() {
    let mut bench = Bench::new(config());
    for tag in 0..20 {
        bench.send(store(u64::from(tag), 0b1, 1, tag), 1);
    }
    bench.run(50);
    let mut tags = Vec::new();
    for _ in 0..40 {
        tags.extend(bench.requests().iter().map(|packet| packet.tag));
        bench.run(1);
    }
    assert_eq!(tags, (0..20).collect::<Vec<_>>());
    assert!(
        bench.l1.counters().store_stall_cycles > 0,
        "eight sectors may wait, eight more in the link"
    );
}

#[test]
fn hits_in_a_row_come_one_a_cycle() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b1111, 9);
    let mut arrivals = Vec::new();
    for tag in 0..40 {
        if tag < 10 {
            bench.lsu.send(bench.now, load(5, 0b1111, tag));
        }
        bench.run(1);
        arrivals.extend(bench.answered().iter().map(|_| bench.now.0));
    }
    assert_eq!(arrivals.len(), 10);
    assert!(arrivals.is_sorted_by(|a, b| b - a == 1), "{arrivals:?}");
}

#[test]
fn half_the_data_width_full_lines_come_every_other_cycle() {
    let mut bench = Bench::new(Config {
        data_bytes_per_cycle: 64,
        ..config()
    });
    bench.fetch(5, 0b1111, 9);
    let mut arrivals = Vec::new();
    for tag in 0..40 {
        if tag < 4 {
            bench.lsu.send(bench.now, load(5, 0b1111, tag));
        }
        bench.run(1);
        arrivals.extend(bench.answered().iter().map(|_| bench.now.0));
    }
    assert!(
        arrivals.len() == 4 && arrivals.is_sorted_by(|a, b| b - a == 2),
        "{arrivals:?}"
    );
}

/// What the LSU sends, and what the crossbar brings back for it, each with the cycle from which on.
fn script() -> [Vec<(u64, Box<Packet>)>; 2] {
    let fill = |n, sectors, entry| {
        let bytes = [n as u8; LINE];
        Box::new(Packet {
            bytes,
            ..*load(n, sectors, entry)
        })
    };
    let requests = vec![
        (0, load(5, 0b0011, 1)),
        (0, load(5, 0b0001, 2)),
        (0, store(5, 0xff, 7, 3)),
        (0, load(5, 0b0001, 4)),
        (60, load(5, 0b0011, 5)),
        (60, load(5, 0b0010, 6)),
        (61, add(5, 2, 1, 7)),
        (
            90,
            Box::new(Packet {
                kind: PacketKind::Invalidate { bytes: 512 },
                ..Packet::blank()
            }),
        ),
    ];
    let returns = vec![
        (20, fill(5, 0b0011, 0)),
        (20, store(5, 0xff, 7, 3)),
        (21, fill(5, 0b0001, 1)),
        (75, add(5, 2, 1, 7)),
    ];
    [requests, returns]
}

#[test]
fn contract_of_a_component_is_kept() {
    let build = |rig: &mut warpwave_hw::rig::Rig| {
        let [requests, returns] = script();
        let ports = Ports {
            requests: rig.input("requests", 1, 2, requests),
            responses: rig.output("responses", 1, 2, |now| now.0 % 3 != 0),
            to_xbar: rig.output("to_xbar", 1, 2, |now| now.0 % 4 == 0),
            from_xbar: rig.input("from_xbar", 3, 4, returns),
            bulk: None,
        };
        L1::new(Path::root("l1"), config(), ports)
    };
    let events = warpwave_hw::rig::check(build, 150).unwrap();
    let passed = |link| events.iter().filter(|event| event.link == link).count();
    assert_eq!((passed("responses"), passed("to_xbar")), (8, 4));
}
