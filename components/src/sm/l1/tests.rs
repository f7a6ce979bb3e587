//! Tests of an L1 alone. The test acts as LSU and crossbar.

use super::*;
use crate::config::{self, CarveoutTakes, Check, ReplacementPolicy};
use crate::proto::mem::{LINE, Stage};
use crate::test_ports::{Packets, add, all, line, load, run, store, wire};

const LATENCY: u64 = 20;

const NO_TLB: config::Tlb = config::Tlb {
    entries: 0,
    page: 4096,
    miss_latency: 9,
};

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
        carveout_takes: CarveoutTakes::Sets,
        replacement: ReplacementPolicy::Lru.new_replacement(),
        write_policy: WritePolicy::WriteThrough,
        latency: LATENCY as u32,
        mshr_sectors: 8,
        mshr_merges: 2,
        mshr_targets: 8,
        tag_banks: 4,
        data_bytes_per_cycle: 128,
        store_queue: 8,
        disorder: Check { weak: 0, seed: 1 },
        tlb: NO_TLB,
        return_queue: 8,
        partition: 0,
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

    /// Returns a packet from the crossbar. The bytes of a load are all `value`.
    fn return_packet(&mut self, mut packet: Box<Packet>, value: u8) {
        if packet.kind == PacketKind::Load {
            packet.bytes = [value; LINE];
        }
        self.from_l2.send(self.now, packet);
        self.run(3);
    }

    /// Tags and first bytes of the responses to the LSU.
    fn received(&mut self) -> Vec<(u32, u8)> {
        let responses = all(&mut self.responses, self.now);
        responses.iter().map(|packet| (packet.tag, packet.bytes[0])).collect()
    }

    /// Loads sectors of line n into the L1, with all bytes `value`.
    fn fetch(&mut self, n: u64, sectors: u8, value: u8) {
        self.send(load(n, sectors, 0), 3);
        for request in self.requests() {
            self.return_packet(request, value);
        }
        self.received();
    }

    /// Cycles of the responses to `n` loads of a full line that hit, sent one per cycle.
    fn hit_cycles(&mut self, n: u32) -> Vec<u64> {
        self.fetch(5, 0b1111, 9);
        let mut cycles = Vec::new();
        for tag in 0..40 {
            if tag < n {
                self.lsu.send(self.now, load(5, 0b1111, tag));
            }
            self.run(1);
            cycles.extend(self.received().iter().map(|_| self.now.0));
        }
        cycles
    }
}

fn invalidate() -> Box<Packet> {
    Box::new(Packet {
        kind: PacketKind::Invalidate { bytes: 512 },
        tag: 8,
        ..Packet::blank()
    })
}

#[test]
fn load_that_misses_fetches_its_sectors_and_returns_the_bytes() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0101, 7), 4); // seen in cycle 1, sent in cycle 2, visible in cycle 3
    let request = bench.requests().remove(0);
    assert_eq!((request.line, request.sectors, request.sm), (line(5), 0b0101, 3));
    assert_eq!(request.stamps.at(Stage::Request), Some(Cycle(2)));
    bench.return_packet(request, 9);
    assert_eq!(bench.received(), [(7, 9)]);
    assert!(bench.l1.is_quiescent());
    let stats = bench.l1.counters();
    assert_eq!(
        (stats.load_sectors_hit, stats.load_sectors_missed, stats.l2_sectors_read),
        (0, 2, 2)
    );
}

#[test]
fn load_that_hits_gets_its_response_after_the_latency() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0011, 9);
    let sent = bench.now;
    bench.send(load(5, 0b0010, 1), LATENCY + 1);
    assert_eq!(bench.received(), [], "not yet visible in cycle {}", bench.now);
    bench.run(1);
    let response = bench.responses.recv(bench.now).unwrap();
    assert_eq!(response.bytes[32], 9);
    assert!(response.l1_hit);
    assert_eq!(response.stamps.at(Stage::L1), Some(sent + 1));
    assert_eq!(response.stamps.at(Stage::Return), Some(sent + 1 + LATENCY));
    assert!(bench.requests().is_empty());
}

#[test]
fn load_that_hits_in_part_fetches_only_the_missing_sectors() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    bench.send(load(5, 0b1001, 1), 3);
    let request = bench.requests().remove(0);
    assert_eq!(request.sectors, 0b1000);
    bench.return_packet(request, 4);
    let response = bench.responses.recv(bench.now).unwrap();
    assert_eq!((response.bytes[0], response.bytes[96], response.l1_hit), (9, 4, false));
}

#[test]
fn loads_of_a_sector_in_flight_merge_until_the_limit_then_stall() {
    let mut bench = Bench::new(config());
    for tag in 0..3 {
        bench.send(load(5, 0b0001, tag), 1);
    }
    bench.run(3);
    let requests = bench.requests();
    assert_eq!(requests.len(), 1, "one request for two loads");
    for request in requests {
        bench.return_packet(request, 6);
    }
    bench.run(LATENCY + 2);
    assert_eq!(bench.received(), [(0, 6), (1, 6), (2, 6)]);
    assert!(
        bench.l1.counters().mshr_stall_cycles > 0,
        "a sector has at most two targets"
    );
    let stats = bench.l1.counters();
    assert_eq!(
        (stats.load_sectors_merged, stats.load_sectors_hit),
        (1, 1),
        "the third hits after the fill"
    );
}

#[test]
fn merged_load_has_the_stamps_of_the_fill_since_its_own_lookup() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0001, 0), 3); // looked up in cycle 1, sent on in cycle 2
    let mut request = bench.requests().remove(0);
    bench.run(7);
    bench.send(load(5, 0b0001, 1), 3); // looked up in cycle 11
    for (stage, at) in [(Stage::L2, 9), (Stage::Hbm, 12), (Stage::L2Data, 13)] {
        request.stamps.note(stage, Cycle(at));
    }
    bench.return_packet(request, 6); // seen in cycle 14
    bench.run(3);
    let responses = all(&mut bench.responses, bench.now);
    let stages = [
        Stage::L1,
        Stage::Request,
        Stage::L2,
        Stage::Hbm,
        Stage::L2Data,
        Stage::Response,
    ];
    let stamps = |n: usize| stages.map(|stage| responses[n].stamps.at(stage).map(|at| at.0));
    assert_eq!(stamps(0), [Some(1), Some(2), Some(9), Some(12), Some(13), Some(14)]);
    assert_eq!(stamps(1), [Some(11), None, None, Some(12), Some(13), Some(14)]);
}

#[test]
fn store_that_hits_writes_the_line_and_goes_on_to_the_l2() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    bench.send(store(5, 0b1, 0x55, 1), 1);
    bench.send(load(5, 0b0001, 2), LATENCY + 3);
    let requests = bench.requests();
    assert_eq!((requests.len(), requests[0].kind), (1, PacketKind::Store));
    let response = bench.responses.recv(bench.now).unwrap();
    assert_eq!(response.bytes[..2], [0x55, 9], "the stored byte and an old one");
}

#[test]
fn store_that_misses_allocates_no_line() {
    let mut bench = Bench::new(config());
    bench.send(store(5, u128::MAX, 0x55, 1), 3);
    let requests = bench.requests().remove(0);
    bench.return_packet(requests, 0);
    assert_eq!(bench.received(), [(1, 0x55)], "the acknowledgement");
    bench.send(load(5, 0b0001, 2), 3);
    assert_eq!(bench.requests().len(), 1, "the load misses");
}

#[test]
fn load_after_a_store_does_not_merge_with_an_older_miss() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0001, 0), 1);
    bench.send(store(5, 0b1, 0x55, 1), 1);
    bench.send(load(5, 0b0001, 2), 4);
    let mut requests = bench.requests();
    let kinds: Vec<_> = requests.iter().map(|packet| packet.kind).collect();
    assert_eq!(
        kinds,
        [PacketKind::Load, PacketKind::Store, PacketKind::Load],
        "no merge, and in order"
    );
    let second = requests.pop().unwrap();
    bench.return_packet(requests.remove(0), 9);
    assert_eq!(bench.received(), [(0, 9)], "the load before the store gets old bytes");
    bench.send(load(5, 0b0001, 3), 3);
    assert!(bench.requests().is_empty(), "it merges with the second load");
    bench.return_packet(second, 0x55);
    bench.run(1);
    assert_eq!(bench.received(), [(2, 0x55), (3, 0x55)]);
    bench.send(load(5, 0b0001, 4), LATENCY + 3);
    assert_eq!(bench.received(), [(4, 0x55)], "the stale fill is not in the cache");
}

#[test]
fn atomic_drops_its_line() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b1111, 9);
    bench.send(add(5, 1, 1, 1), 3);
    assert_eq!(bench.requests()[0].kind, PacketKind::Atomic);
    bench.send(load(5, 0b0001, 2), 3);
    assert_eq!(bench.requests().len(), 1);
}

#[test]
fn uncached_load_bypasses_a_valid_line() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    for (tag, cache) in [(1, CacheOp::Global), (2, CacheOp::Volatile)] {
        let packet = Packet {
            cache,
            ..*load(5, 0b0001, tag)
        };
        bench.send(Box::new(packet), 3);
        let requests = bench.requests().remove(0);
        bench.return_packet(requests, 40);
        assert_eq!(bench.received(), [(tag, 40)]);
    }
    assert_eq!(bench.l1.counters().load_sectors_bypassed, 2);
}

/// A load of sector 0 of line 5 that bypasses the L1.
fn uncached(cache: CacheOp, tag: u32) -> Box<Packet> {
    let packet = *load(5, 0b0001, tag);
    Box::new(Packet { cache, ..packet })
}

#[test]
fn strong_load_drops_its_sectors_and_a_weak_one_does_not() {
    for (cache, misses) in [(CacheOp::Volatile, 1), (CacheOp::Global, 0)] {
        let mut bench = Bench::new(config());
        bench.fetch(5, 0b0011, 9);
        bench.send(uncached(cache, 1), 3);
        assert_eq!(bench.requests().len(), 1);
        bench.send(load(5, 0b0001, 2), LATENCY + 3);
        assert_eq!(bench.requests().len(), misses, "{cache:?}: the sector of the load");
        bench.send(load(5, 0b0010, 3), LATENCY + 3);
        assert!(bench.requests().is_empty(), "{cache:?}: the other sector is valid");
    }
}

#[test]
fn fill_from_before_a_strong_load_fills_no_line() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0001, 1), 3);
    let request = bench.requests().remove(0);
    bench.send(uncached(CacheOp::Volatile, 2), 3);
    assert_eq!(bench.requests().len(), 1);
    bench.return_packet(request, 7);
    assert_eq!(bench.received(), [(1, 7)]);
    bench.send(load(5, 0b0001, 3), 3);
    assert_eq!(bench.requests().len(), 1, "the old fill is not in the cache");
}

#[test]
fn full_set_evicts_its_least_recently_used_line() {
    let mut bench = Bench::new(config()); // 4 sets of 2 ways
    bench.fetch(0, 0b0001, 1);
    bench.fetch(4, 0b0001, 2);
    bench.send(load(0, 0b0001, 1), LATENCY + 3);
    bench.fetch(8, 0b0001, 3);
    bench.send(load(0, 0b0001, 2), LATENCY + 3);
    assert!(bench.requests().is_empty(), "line 0 is present");
    bench.send(load(4, 0b0001, 3), LATENCY + 3);
    assert_eq!(bench.requests().len(), 1, "line 4 is absent");
    assert_eq!(bench.l1.counters().lines_evicted, 1);
}

#[test]
fn invalidation_drops_every_line_and_gets_a_response() {
    let mut bench = Bench::new(config());
    bench.fetch(5, 0b0001, 9);
    bench.send(invalidate(), LATENCY + 3);
    assert_eq!(bench.received().len(), 1);
    bench.send(load(5, 0b0001, 2), 3);
    assert_eq!(bench.requests().len(), 1);
}

#[test]
fn fill_after_an_invalidation_serves_its_load_and_fills_no_line() {
    let mut bench = Bench::new(config());
    bench.send(load(5, 0b0001, 1), 3);
    let request = bench.requests().remove(0);
    bench.send(invalidate(), LATENCY + 3);
    bench.received();
    // A load after the invalidation does not merge with the load before it.
    bench.send(load(5, 0b0001, 2), 3);
    let behind = bench.requests().remove(0);
    bench.return_packet(request, 9);
    assert_eq!(bench.received(), [(1, 9)]);
    bench.return_packet(behind, 7);
    assert_eq!(bench.received(), [(2, 7)]);
    bench.send(load(5, 0b0001, 3), LATENCY + 3);
    assert_eq!(bench.received(), [(3, 7)], "the line has the bytes of the later load");
}

#[test]
fn blocked_crossbar_stalls_stores_and_loses_none() {
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
        "8 sectors fit the queue, 8 packets the link"
    );
}

#[test]
fn hits_get_one_response_per_cycle() {
    let cycles = Bench::new(config()).hit_cycles(10);
    assert_eq!(cycles.len(), 10);
    assert!(cycles.is_sorted_by(|a, b| b - a == 1), "{cycles:?}");
}

/// Cycles of the responses to loads of `words` words of lines 0 to 4, sent in one cycle. All hit.
fn cycles_of_five_lines(tag_banks: u32, words: u8) -> Vec<u64> {
    let mut bench = Bench::new(Config { tag_banks, ..config() });
    (0..5).for_each(|n| bench.fetch(n, 0b1111, 9));
    let sent = bench.now;
    for n in 0..5 {
        let packet = Packet {
            words,
            ..*load(n, 0b1111, n as u32)
        };
        bench.lsu.send(sent, Box::new(packet));
    }
    let mut cycles = Vec::new();
    for _ in 0..LATENCY + 12 {
        bench.run(1);
        // Looked up 1 cycle after they were sent, and seen 1 cycle after the response.
        cycles.extend(bench.received().iter().map(|_| bench.now.0 - sent.0 - LATENCY - 2));
    }
    cycles
}

#[test]
fn lines_in_different_tag_banks_are_looked_up_in_one_cycle() {
    // Lines 0 to 3 are in different banks, line 4 is in the bank of line 3.
    assert_eq!(cycles_of_five_lines(4, 1), [0, 0, 0, 0, 1]);
    assert_eq!(cycles_of_five_lines(1, 1), [0, 1, 2, 3, 4]);
}

#[test]
fn hits_share_a_cycle_of_the_data_path_up_to_its_width() {
    assert_eq!(cycles_of_five_lines(4, 16), [0, 0, 1, 1, 2]);
    assert_eq!(cycles_of_five_lines(4, 32), [0, 1, 2, 3, 4]);
}

#[test]
fn full_lines_take_two_cycles_with_half_the_data_width() {
    let half = Config {
        data_bytes_per_cycle: 64,
        ..config()
    };
    let cycles = Bench::new(half).hit_cycles(4);
    assert_eq!(cycles.len(), 4);
    assert!(cycles.is_sorted_by(|a, b| b - a == 2), "{cycles:?}");
}

/// Packets from the LSU, and packets from the crossbar, each with its first possible cycle.
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
        (90, invalidate()),
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
fn l1_keeps_the_contract_of_a_component() {
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

/// Sends 32 stores, one per cycle, store n to line `line_of(n)`. Returns n of each in the order in which they leave for the L2.
fn stores_to_l2(disorder: Check, line_of: fn(u64) -> u64) -> Vec<u64> {
    let mut bench = Bench::new(Config {
        disorder,
        store_queue: 64,
        ..config()
    });
    let mut left = Vec::new();
    // A store leaves within 101 cycles of its arrival, or of the departure of an older one to its line.
    for n in 0..500 {
        if n < 32 {
            let store = store(line_of(n), 0xf, n as u8, n as u32);
            bench.lsu.send(bench.now, store);
        }
        bench.run(1);
        left.extend(bench.requests().iter().map(|packet| u64::from(packet.tag)));
    }
    left
}

#[test]
fn stores_to_other_lines_pass_each_other_with_check_weak_alone() {
    let in_order: Vec<u64> = (0..32).collect();
    let disorder = |weak, seed| stores_to_l2(Check { weak, seed }, |n| n);
    assert_eq!(disorder(0, 1), in_order);
    let shuffled = disorder(100, 1);
    assert_ne!(shuffled, in_order);
    assert_eq!(disorder(100, 1), shuffled, "the seed gives the order");
    assert_ne!(disorder(100, 2), shuffled);
    let mut sorted = shuffled;
    sorted.sort_unstable();
    assert_eq!(sorted, in_order, "none is lost");
}

#[test]
fn stores_to_one_line_keep_their_order_with_check_weak() {
    let left = stores_to_l2(Check { weak: 100, seed: 1 }, |n| n % 4);
    assert_eq!(left.len(), 32);
    for line in 0..4 {
        assert!(
            left.iter().filter(|&n| n % 4 == line).is_sorted(),
            "line {line} of {left:?}"
        );
    }
    assert!(!left.is_sorted(), "{left:?}");
}

/// Pages of 32 lines in two entries.
fn two_pages() -> Config {
    let tlb = config::Tlb { entries: 2, ..NO_TLB };
    Config { tlb, ..config() }
}

/// Loads one line of each page, one after the other. Returns the cycles from each lookup until its packet left for the L2.
fn cycles_to_leave(bench: &mut Bench, pages: &[u64]) -> Vec<u64> {
    let mut cycles = Vec::new();
    for (n, page) in (0..).zip(pages) {
        let sent = bench.now;
        // Another line of the page each time, so that the L1 never has it.
        bench.send(load(32 * page + n, 0b0001, n as u32), 20);
        let request = bench.requests().remove(0);
        cycles.push(request.stamps.at(Stage::Request).unwrap().0 - sent.0 - 1);
        bench.return_packet(request, 9);
        assert_eq!(bench.received(), [(n as u32, 9)]);
    }
    cycles
}

#[test]
fn chase_over_three_pages_waits_for_each_translation_with_two_entries() {
    let mut bench = Bench::new(two_pages());
    // The first two pages take the free entries. From then on, each page has left before it comes back.
    assert_eq!(cycles_to_leave(&mut bench, &[0, 1, 2, 0, 1, 2]), [1, 1, 10, 10, 10, 10]);
    let stats = bench.l1.counters();
    assert_eq!((stats.tlb_hits, stats.tlb_misses), (2, 4));
}

#[test]
fn chase_over_two_pages_never_waits_with_two_entries() {
    let mut bench = Bench::new(two_pages());
    assert_eq!(cycles_to_leave(&mut bench, &[5, 9, 5, 9, 5]), [1; 5]);
    // The start of a grid invalidates the lines, not the translations.
    bench.send(invalidate(), LATENCY + 3);
    bench.received();
    assert_eq!(cycles_to_leave(&mut bench, &[9, 5, 9]), [1; 3]);
    assert_eq!(bench.l1.counters().tlb_misses, 0);
}

#[test]
fn load_that_hits_in_the_l1_needs_no_translation() {
    let mut bench = Bench::new(two_pages());
    assert_eq!(cycles_to_leave(&mut bench, &[0, 1, 2]), [1, 1, 10]);
    let before = *bench.l1.counters();
    // Line 0 of page 0 is in the L1. Page 0 has lost its entry.
    bench.send(load(0, 0b0001, 7), LATENCY + 3);
    assert_eq!(bench.received(), [(7, 9)]);
    let after = bench.l1.counters();
    assert_eq!((after.tlb_hits, after.tlb_misses), (before.tlb_hits, before.tlb_misses));
}

/// Reads the signal `tlb_misses`.
struct TlbMisses(Option<u64>);

impl Probe for TlbMisses {
    fn bit(&mut self, _: &'static str, _: Option<bool>) {}
    fn vector(&mut self, name: &'static str, _: u32, value: Option<u64>) {
        if name == "tlb_misses" {
            self.0 = value;
        }
    }
    fn state(&mut self, _: &'static str, _: &'static [&'static str], _: Option<usize>) {}
    fn enter(&mut self, _: &'static str, _: usize) {}
    fn leave(&mut self) {}
}

/// The packets that have missed the TLB and wait, as a waveform shows them.
fn waiting(l1: &L1) -> u64 {
    let mut signal = TlbMisses(None);
    l1.probe(&mut signal);
    signal.0.expect("the L1 has the signal")
}

#[test]
fn misses_overlap_and_packets_leave_in_order() {
    let mut bench = Bench::new(two_pages());
    cycles_to_leave(&mut bench, &[0, 1]);
    let sent = bench.now;
    // A miss, a hit, and another miss: looked up in the cycles 1, 2 and 3 from here.
    bench.send(store(64, 0b1, 1, 0), 1);
    bench.send(store(32, 0b1, 1, 1), 1);
    bench.send(add(96, 1, 1, 2), 1);
    bench.run(3);
    assert_eq!(waiting(&bench.l1), 2, "in cycle 6 both wait");
    bench.run(20);
    assert_eq!(waiting(&bench.l1), 0);
    let left: Vec<_> = bench
        .requests()
        .iter()
        .map(|packet| packet.stamps.at(Stage::Request).unwrap().0 - sent.0)
        .collect();
    // 1 + 1 + 9. The hit could leave in cycle 3, and waits for the store before it. 3 + 1 + 9.
    assert_eq!(left, [11, 12, 13]);
}
