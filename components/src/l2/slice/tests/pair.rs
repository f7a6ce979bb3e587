//! Dialogues with two slices that keep copies of each other's lines. The test acts as the SMs of both partitions, host and memory.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::proto::mem::{Crossing, SECTOR, SECTORS, each_sector};
use crate::test_ports::wire_of;

/// Latency of each link between the slices.
const LINK: u64 = 4;
/// Cycles of a crossing to the home and back.
const CROSSING: u64 = 2 + 3 + 2 * LINK;

/// One slice with its SM, its host and its memory.
struct Side {
    slice: Slice,
    xbar: OutPort<Box<Packet>>,
    responses: InPort<Box<Packet>>,
    host: OutPort<SliceCommand>,
    fetches: InPort<Box<Packet>>,
    memory: OutPort<Box<Packet>>,
    /// What memory answers, with the cycle in which it does.
    due: VecDeque<(u64, Box<Packet>)>,
}

/// A slice of each partition. SM n is in partition n.
struct Pair {
    sides: [Side; 2],
    map: Arc<AddressMap>,
    now: Cycle,
    memory_delay: u64,
    /// The bytes of memory, zero at first.
    bytes: BTreeMap<u64, [u8; LINE]>,
}

impl Pair {
    fn new(config: &Config, memory_delay: u64) -> Self {
        let map = Arc::new(AddressMap::new(2, 2).with_copies());
        let (first, second) = (wire_of(LINK as u32, 16), wire_of(LINK as u32, 16));
        let (third, fourth) = (wire_of(LINK as u32, 16), wire_of(LINK as u32, 16));
        let twins = [
            TwinPorts {
                to_requests: first.0,
                requests: second.1,
                to_responses: third.0,
                responses: fourth.1,
            },
            TwinPorts {
                to_requests: second.0,
                requests: first.1,
                to_responses: fourth.0,
                responses: third.1,
            },
        ];
        let mut numbers = 0..2;
        let sides = twins.map(|twin| {
            let n = numbers.next().expect("two sides");
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
                twin: Some(twin),
            };
            let config = Config {
                near_sms: n..n + 1,
                twin: Some(TwinLatency {
                    request: 2,
                    response: 3,
                }),
                map: map.clone(),
                ..config.clone()
            };
            Side {
                slice: Slice::new(Path::root("slice"), config, ports),
                xbar,
                responses,
                host,
                fetches,
                memory,
                due: VecDeque::new(),
            }
        });
        Pair {
            sides,
            map,
            now: Cycle::ZERO,
            memory_delay,
            bytes: BTreeMap::new(),
        }
    }

    /// The n-th line whose home is slice 0.
    fn line_at_home(&self, n: usize) -> u64 {
        let homes = (1..).filter(|&n| self.map.home(line(n)).slice == 0);
        homes.clone().nth(n).expect("half of the lines")
    }

    /// Sends a request of an SM, if the link has room.
    fn try_send(&mut self, sm: u16, mut packet: Box<Packet>) -> bool {
        let (slice, crossing) = self.map.route(packet.line, sm.into());
        (packet.sm, packet.slice, packet.crossing) = (sm, slice, crossing);
        assert_eq!(slice, sm, "an SM sends to the slice of its partition");
        let side = &mut self.sides[usize::from(sm)];
        let has_room = side.xbar.has_room(self.now);
        if has_room {
            side.xbar.send(self.now, packet);
        }
        has_room
    }

    fn send(&mut self, sm: u16, packet: Box<Packet>) {
        assert!(self.try_send(sm, packet), "room for a request");
    }

    /// Runs one cycle of both slices and memory.
    fn step(&mut self) {
        for side in &mut self.sides {
            side.slice.tick(self.now);
            while let Some(mut packet) = side.fetches.recv(self.now) {
                let bytes = self.bytes.entry(packet.line).or_insert([0; LINE]);
                match packet.kind {
                    PacketKind::Store => crate::proto::mem::copy_bytes(&packet.bytes, bytes, packet.byte_mask),
                    _ => packet.bytes = *bytes,
                }
                side.due.push_back((self.now.0 + self.memory_delay, packet));
            }
            if side.memory.has_room(self.now)
                && let Some((_, packet)) = side.due.pop_front_if(|(at, _)| *at <= self.now.0)
            {
                side.memory.send(self.now, packet);
            }
        }
        self.now += 1;
    }

    fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.step());
    }

    /// The responses that have arrived at an SM.
    fn responses(&mut self, sm: u16) -> Packets {
        all(&mut self.sides[usize::from(sm)].responses, self.now)
    }

    /// Sends a request and runs until its response. Returns the response and its cycles.
    fn ask(&mut self, sm: u16, packet: Box<Packet>) -> (Box<Packet>, u64) {
        let sent = self.now;
        self.send(sm, packet);
        for _ in 0..300 {
            self.step();
            if let Some(response) = self.responses(sm).pop() {
                return (response, self.now - sent);
            }
        }
        panic!("no response");
    }

    fn load_byte(&mut self, sm: u16, n: u64) -> u8 {
        self.ask(sm, load(n, 0b0001, 0)).0.bytes[0]
    }

    fn twin(&self, n: usize) -> TwinStats {
        *self.sides[n].slice.twin_counters().expect("a slice with a twin")
    }

    fn is_quiescent(&self) -> bool {
        self.sides
            .iter()
            .all(|side| side.slice.is_quiescent() && side.due.is_empty())
    }

    fn broken_invariants(&self) -> Vec<String> {
        let broken = |side: &Side| Invariants::broken(|check| side.slice.invariants(check));
        self.sides.iter().flat_map(broken).collect()
    }
}

/// Two sets of four ways.
fn pair() -> Pair {
    let config = Config {
        bytes: 1024,
        associativity: 4,
        ..config()
    };
    Pair::new(&config, 20)
}

#[test]
fn second_far_load_hits_the_copy_without_a_crossing() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    pair.bytes.insert(line(n), [7; LINE]);
    let (first, to_memory) = pair.ask(1, load(n, 0b0011, 0));
    assert_eq!(
        (first.bytes[..64] == [7; 64], first.l2_hit, first.crossing),
        (true, false, Crossing::Far)
    );
    let (near, of_near) = pair.ask(0, load(n, 0b0001, 0));
    assert!(near.l2_hit && near.crossing == Crossing::Near);
    let (copy, of_copy) = pair.ask(1, load(n, 0b0011, 0));
    assert!(copy.bytes[..64] == [7; 64] && copy.l2_hit && copy.crossing == Crossing::Near);
    assert_eq!(of_copy, of_near, "as a hit at home");
    let (beyond, of_far) = pair.ask(1, load(n, 0b1100, 0));
    assert!(
        !beyond.l2_hit && of_far == to_memory,
        "the other sectors come from memory"
    );
    let (fetched, crossing) = (pair.twin(1).copy_sectors_fetched, pair.twin(0).fabric_sectors);
    assert_eq!((fetched, crossing, pair.twin(0).fabric_sectors_missed), (4, 4, 4));
    assert!(pair.is_quiescent());
}

#[test]
fn far_hit_takes_the_crossing_longer_than_a_near_hit() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    let (_, missed) = pair.ask(0, load(n, 0b0011, 0));
    let (_, near) = pair.ask(0, load(n, 0b0001, 0));
    let (response, far) = pair.ask(1, load(n, 0b0001, 0));
    assert_eq!(
        (far, response.l2_hit, response.crossing),
        (near + CROSSING, true, Crossing::Far)
    );
    let (_, far_missed) = pair.ask(1, load(n, 0b0100, 0));
    assert_eq!(far_missed, missed + CROSSING);
    let (_, stored) = pair.ask(1, store(n, 1, 5, 0));
    assert_eq!(stored, near + CROSSING, "a store passes on");
}

#[test]
fn store_at_home_takes_effect_after_the_copy_is_gone() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    assert_eq!(pair.load_byte(1, n), 0);
    let (_, cycles) = pair.ask(0, store(n, 1, 5, 0));
    let (_, near) = pair.ask(0, load(n, 0b0001, 0));
    // The recall takes the pipe of responses, and so does its answer.
    assert_eq!(cycles, near + 2 * (3 + LINK));
    assert_eq!((pair.twin(0).recalls, pair.twin(1).copy_sectors_dropped), (1, 1));
    assert_eq!(pair.load_byte(1, n), 5);
    let (_, cycles) = pair.ask(0, store(n, 1 << 32, 6, 0));
    assert_eq!(cycles, near, "no copy of another sector");
}

#[test]
fn store_of_the_copys_side_needs_no_recall() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    assert_eq!(pair.load_byte(1, n), 0);
    pair.ask(1, store(n, 1, 5, 0));
    assert_eq!((pair.load_byte(0, n), pair.load_byte(1, n)), (5, 5));
    assert_eq!((pair.twin(0).recalls, pair.twin(1).copy_sectors_dropped), (0, 1));
    pair.ask(1, store(n, 1, 7, 0));
    pair.ask(0, store(n, 1, 8, 0));
    assert_eq!(pair.twin(0).recalls, 0, "its own side has dropped the copy");
    assert_eq!(pair.load_byte(1, n), 8);
    // The line has a copy once more, so a store at home recalls it.
    pair.ask(0, store(n, 1, 6, 0));
    assert_eq!((pair.load_byte(1, n), pair.twin(0).recalls), (6, 1));
}

#[test]
fn fill_that_crosses_a_recall_leaves_no_copy() {
    // Both sectors come from memory, and the second fetch is later. So the home serves sector 0, and is recalled before the fill leaves.
    let mut pair = pair();
    let n = pair.line_at_home(0);
    pair.bytes.insert(line(n), [9; LINE]);
    pair.ask(0, load(n, 0b0001, 0));
    pair.send(1, load(n, 0b0011, 1));
    // The fetch arrives, takes sector 0, and waits for sector 1.
    pair.run(2 + LINK + 4);
    pair.send(0, store(n, 1, 5, 2));
    pair.run(2 * (3 + LINK) + LATENCY + 3);
    assert_eq!(pair.responses(0).len(), 1, "the store is performed before the fill");
    // A load that comes after the store must not have the old bytes.
    pair.send(1, load(n, 0b0001, 3));
    pair.run(100);
    let bytes: BTreeMap<u32, u8> = pair
        .responses(1)
        .iter()
        .map(|packet| (packet.tag, packet.bytes[0]))
        .collect();
    assert_eq!(bytes, BTreeMap::from([(1, 9), (3, 5)]));
    assert_eq!(pair.load_byte(1, n), 5);
}

#[test]
fn load_after_a_store_of_its_own_side_passes_a_fetch_in_flight() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    pair.bytes.insert(line(n), [9; LINE]);
    for packet in [load(n, 0b0001, 1), store(n, 1, 5, 2), load(n, 0b0001, 3)] {
        pair.send(1, packet);
        pair.run(1);
    }
    pair.run(120);
    let bytes: BTreeMap<u32, u8> = pair
        .responses(1)
        .iter()
        .map(|packet| (packet.tag, packet.bytes[0]))
        .collect();
    assert_eq!((bytes[&1], bytes[&3], bytes.len()), (9, 5, 3));
    assert_eq!(pair.twin(1).requests_passed, 2, "the store, and the load behind it");
    assert_eq!(pair.load_byte(1, n), 5, "the stale fill has left no copy");
    pair.ask(0, store(n, 1, 6, 0));
    assert_eq!(pair.load_byte(1, n), 6);
}

#[test]
fn atomics_of_both_sides_see_each_other() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    let old = |packet: &Packet| packet.atomic.as_ref().expect("an atomic").lanes[0].value;
    assert_eq!(pair.load_byte(1, n), 0);
    assert_eq!(old(&pair.ask(0, add(n, 1, 3, 0)).0), 0);
    assert_eq!(pair.load_byte(1, n), 3);
    assert_eq!(old(&pair.ask(1, add(n, 1, 4, 0)).0), 3);
    assert_eq!((pair.load_byte(0, n), pair.load_byte(1, n)), (7, 7));
    assert_eq!(old(&pair.ask(0, add(n, 1, 5, 0)).0), 7);
    assert_eq!((pair.load_byte(1, n), pair.twin(0).recalls), (12, 2));
}

#[test]
fn store_behind_a_fetch_that_waits_for_memory_recalls_its_copy() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    // All three wait for one sector from memory: an atomic, the fetch of a copy, a store.
    pair.send(0, add(n, 1, 1, 1));
    pair.send(1, load(n, 0b0001, 2));
    pair.run(2 + LINK + 4);
    pair.send(0, store(n, 1, 6, 3));
    pair.run(100);
    let of_home: Vec<u32> = pair.responses(0).iter().map(|packet| packet.tag).collect();
    assert_eq!(of_home, [1, 3]);
    let loaded = pair.responses(1).pop().map(|packet| packet.bytes[0]);
    assert_eq!(loaded, Some(1), "after the atomic, before the store");
    assert_eq!(pair.twin(0).recalls, 1);
    assert_eq!((pair.load_byte(1, n), pair.load_byte(0, n)), (6, 6));
}

#[test]
fn copy_in_a_cache_of_one_way_is_never_made() {
    let one_way = Config {
        bytes: 128,
        associativity: 1,
        ..config()
    };
    let mut pair = Pair::new(&one_way, 20);
    let n = pair.line_at_home(0);
    pair.bytes.insert(line(n), [9; LINE]);
    assert_eq!((pair.load_byte(1, n), pair.load_byte(1, n)), (9, 9));
    assert_eq!(
        (pair.twin(1).requests_passed, pair.twin(1).copy_sectors_fetched),
        (2, 0)
    );
}

#[test]
fn evicted_home_line_leaves_its_copy_equal() {
    let one_set = Config {
        bytes: 256,
        associativity: 2,
        ..config()
    };
    let mut pair = Pair::new(&one_set, 20);
    let [n, second, third] = [0, 1, 2].map(|k| pair.line_at_home(k));
    pair.ask(0, store(n, u128::MAX, 5, 0));
    assert_eq!(pair.load_byte(1, n), 5);
    for other in [second, third] {
        pair.ask(0, load(other, 0b0001, 0));
    }
    assert_eq!(pair.bytes[&line(n)][0], 5, "written back");
    let crossings = pair.twin(0).fabric_requests;
    assert_eq!(
        (pair.load_byte(1, n), pair.twin(0).fabric_requests),
        (5, crossings),
        "a hit"
    );
    pair.ask(0, store(n, 1, 6, 0));
    assert_eq!((pair.twin(0).recalls, pair.load_byte(1, n)), (1, 6));
}

/// A machine of one set of two ways at each side. Its directory names a copy of the returned line, which the home has evicted.
///
/// Memory has 9 in each byte of the line. The home's ways have lines of 7s.
fn copy_of_an_absent_line(copy_stays: bool) -> (Pair, u64) {
    let one_set = Config {
        bytes: 256,
        associativity: 2,
        ..config()
    };
    let mut pair = Pair::new(&one_set, 20);
    let [n, second, third] = [0, 1, 2].map(|k| pair.line_at_home(k));
    pair.bytes.insert(line(n), [9; LINE]);
    for other in [second, third] {
        pair.bytes.insert(line(other), [7; LINE]);
    }
    assert_eq!(pair.load_byte(1, n), 9);
    for other in [second, third] {
        pair.ask(0, load(other, 0b1111, 0));
    }
    // Lines of the near slice replace the copy there, without a message.
    let of_near = (1..).filter(|&n| pair.map.home(line(n)).slice == 1).take(2);
    let others: Vec<u64> = of_near.filter(|_| !copy_stays).collect();
    for n in others {
        pair.ask(1, load(n, 0b0001, 0));
    }
    (pair, n)
}

#[test]
fn load_behind_a_recall_for_an_absent_line_gets_the_bytes_of_memory() {
    let (mut pair, n) = copy_of_an_absent_line(true);
    pair.send(0, store(n, 1, 5, 1));
    pair.run(2);
    pair.send(0, load(n, 0b0011, 2));
    pair.run(200);
    let responses = pair.responses(0);
    let loaded = responses.iter().find(|packet| packet.tag == 2).expect("a response");
    assert_eq!((loaded.bytes[0], loaded.bytes[1..64] == [9; 63]), (5, true));
    assert_eq!((pair.twin(0).recalls, pair.load_byte(1, n)), (1, 5));
}

#[test]
fn atomic_behind_a_recall_for_an_absent_line_changes_the_bytes_of_memory() {
    let (mut pair, n) = copy_of_an_absent_line(true);
    pair.send(0, store(n, 1, 5, 1));
    pair.run(2);
    pair.send(0, add(n, 1, 1, 2));
    pair.run(200);
    let responses = pair.responses(0);
    let added = responses.iter().find(|packet| packet.tag == 2).expect("a response");
    let old = added.atomic.as_ref().expect("an atomic").lanes[0].value;
    assert_eq!(old, 0x0909_0905);
    assert_eq!(pair.load_byte(0, n), 6);
}

#[test]
fn fetch_behind_a_recall_for_an_absent_line_fills_the_copy_with_the_bytes_of_memory() {
    let (mut pair, n) = copy_of_an_absent_line(false);
    pair.send(1, load(n, 0b0001, 2));
    // The fetch reaches the home a few cycles behind the store.
    pair.run(LINK);
    pair.send(0, store(n, 1, 5, 1));
    pair.run(200);
    let recalls = pair.twin(0).recalls;
    for responses in [pair.responses(1), vec![pair.ask(1, load(n, 0b0001, 3)).0]] {
        assert_eq!((responses[0].bytes[0], responses[0].bytes[1..32] == [9; 31]), (5, true));
    }
    assert_eq!(recalls, 1, "the fetch came behind the recall");
}

#[test]
fn invalidate_command_drops_copies_and_the_directory() {
    let mut pair = pair();
    let n = pair.line_at_home(0);
    assert_eq!(pair.load_byte(1, n), 0);
    for command in [SliceCommand::WriteBack, SliceCommand::Invalidate] {
        let now = pair.now;
        pair.sides.iter_mut().for_each(|side| side.host.send(now, command));
        pair.run(10);
    }
    pair.bytes.insert(line(n), [8; LINE]);
    pair.ask(0, store(n, 1 << 32, 5, 0));
    assert_eq!((pair.load_byte(1, n), pair.twin(0).recalls), (8, 0));
}

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) % n
    }
}

/// An access to the counters of a line: the sectors, and the value that it must see at least in each.
struct Access {
    line: u64,
    sectors: u8,
    least: [u64; SECTORS],
}

/// The first word of each sector.
fn words(bytes: &[u8; LINE]) -> [u64; SECTORS] {
    std::array::from_fn(|s| {
        let word = bytes[s * SECTOR..].first_chunk().expect("a word");
        u32::from_le_bytes(*word).into()
    })
}

/// Each sector has a counter in its first word, which grows by 1 with each atomic. So an access that begins after another has ended sees
/// no smaller value: the L2 is one memory. Stores write other bytes of the sectors, also of lines that are absent. There are more lines
/// than ways.
#[test]
fn counters_of_random_traffic_never_run_backwards() {
    const LINES: u64 = 5;
    for seed in 1..=300 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let ways = [1, 2, 2, 4][random.below(4) as usize];
        let config = Config {
            bytes: ways * LINE as u32 * [1, 2][random.below(2) as usize],
            associativity: ways,
            mshr_sectors: [4, 8][random.below(2) as usize],
            mshr_targets: [1, 2, 8][random.below(3) as usize],
            memory_depth: [2, 8][random.below(2) as usize],
            ..config()
        };
        let mut pair = Pair::new(&config, [1, 30, 90][random.below(3) as usize]);
        let lines: Vec<u64> = (0..LINES).map(|n| pair.line_at_home(n as usize)).collect();
        // The greatest values that an access has returned.
        let mut seen = BTreeMap::from_iter(lines.iter().map(|&n| (line(n), [0; SECTORS])));
        let mut adds = seen.clone();
        let mut open: BTreeMap<u32, Access> = BTreeMap::new();
        let (mut sent, mut idle) = (0, 0);
        let most = 250;
        while sent < most || !open.is_empty() {
            let sm = random.below(2) as u16;
            if sent < most && random.below(3) != 0 {
                let n = lines[random.below(LINES) as usize];
                let sector = random.below(SECTORS as u64) as usize;
                let packet = match random.below(8) {
                    0 | 1 => add_to_sectors(n, 1 << sector | 1 << random.below(SECTORS as u64), sent),
                    2 => store(n, 1 << (SECTOR * sector + 8), sent as u8, sent),
                    3 => load(n, 1 << sector, sent),
                    _ => load(n, 1 + random.below(15) as u8, sent),
                };
                let (kind, sectors) = (packet.kind, packet.sectors);
                if pair.try_send(sm, packet) {
                    let (line, least) = (line(n), seen[&line(n)]);
                    open.insert(sent, Access { line, sectors, least });
                    if kind == PacketKind::Atomic {
                        let sums = adds.get_mut(&line).expect("a line");
                        each_sector(sectors).for_each(|s| sums[s] += 1);
                    }
                    sent += 1;
                }
            }
            pair.step();
            idle += 1;
            for sm in 0..2 {
                for packet in pair.responses(sm) {
                    idle = 0;
                    let access = open.remove(&packet.tag).expect("one response for each request");
                    let mut values = words(&packet.bytes);
                    match packet.kind {
                        PacketKind::Load => {}
                        PacketKind::Atomic => {
                            let atomics = packet.atomic.as_ref().expect("an atomic");
                            for lane in &atomics.lanes[..atomics.n] {
                                values[usize::from(lane.offset) / SECTOR] = lane.value as u64 + 1;
                            }
                        }
                        _ => continue,
                    }
                    let seen = seen.get_mut(&access.line).expect("a line");
                    for s in each_sector(access.sectors) {
                        let (value, least, most) = (values[s], access.least[s], adds[&access.line][s]);
                        assert!(
                            (least..=most).contains(&value),
                            "seed {seed}: {value}, not {least} to {most}"
                        );
                        seen[s] = value.max(seen[s]);
                    }
                }
            }
            assert!(idle < 2000, "seed {seed}: {} requests without a response", open.len());
            assert_eq!(pair.broken_invariants(), [""; 0], "seed {seed}");
        }
        pair.run(200);
        assert!(pair.is_quiescent(), "seed {seed}");
        let now = pair.now;
        pair.sides
            .iter_mut()
            .for_each(|side| side.host.send(now, SliceCommand::WriteBack));
        pair.run(200);
        for (address, sums) in adds {
            let bytes = pair.bytes.get(&address).copied().unwrap_or([0; LINE]);
            assert_eq!(words(&bytes), sums, "seed {seed}: line {address:#x}");
        }
    }
}

/// An atomic that adds 1 to the first word of each of `sectors` of line `n`, by one lane each.
fn add_to_sectors(n: u64, sectors: u8, tag: u32) -> Box<Packet> {
    let lanes = each_sector(sectors).count();
    let mut packet = add(n, lanes, 1, tag);
    packet.sectors = sectors;
    let atomics = packet.atomic.as_mut().expect("an atomic");
    for (lane, sector) in each_sector(sectors).enumerate() {
        atomics.lanes[lane].offset = (sector * SECTOR) as u8;
    }
    packet
}
