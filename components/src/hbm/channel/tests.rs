//! Dialogues with a channel: the test is the slices. Cycles are counted by hand from the timing below.

use super::*;
use crate::config::{DramScheduler, Mapping, RowPolicy as Rows, Timing};
use crate::storage::BASE;
use crate::test_ports::{all, run, wire};

const EXTRA: u64 = 30;

/// Every number another, so that none stands in for another.
const TIMING: Timing = Timing {
    t_rcd: 14,
    t_rp: 15,
    t_ras: 33,
    t_rc: 48,
    t_rrd: 4,
    t_ccd_s: 1,
    t_ccd_l: 3,
    cl: 13,
    wl: 5,
    t_wr: 12,
    t_wtr: 6,
    t_rtp: 7,
    t_rfc: 300,
    t_refi: 4000,
};

type Ends = (OutPort<Box<Packet>>, InPort<Box<Packet>>);

struct Bench {
    channel: Channel,
    storage: Arc<Storage>,
    now: Cycle,
    /// The other ends of the channel's ports.
    slices: Vec<Ends>,
}

const HBM: Hbm = Hbm {
    channels: 1,
    banks: 8,
    bank_groups: 4,
    row_bytes: 1024,
    mapping: Mapping::Hash,
    queue_depth: 8,
    scheduler: DramScheduler::FirstReadyFirstCome,
    write_drain_start: 4,
    write_drain_stop: 1,
    starved_after: 1000,
    row_policy: Rows::Open,
    row_timeout: 100,
    burst_bytes: 32,
    bus_bytes_per_command_cycle: 32,
    access_latency: 0,
    latency_extra: EXTRA as u32,
    timing: TIMING,
};

fn config() -> Config {
    with(HBM)
}

/// A channel with these numbers.
fn with(hbm: Hbm) -> Config {
    Config {
        hbm,
        way_cycles: 0,
        interface_cycles: hbm.latency_extra,
        clock: Domain::GLOBAL,
        map: Arc::new(AddressMap::new(1, 1)),
    }
}

impl Bench {
    fn new(config: Config, slices: usize) -> Self {
        let storage = Arc::new(Storage::new(1 << 22));
        let wires: Vec<_> = (0..slices).map(|_| (wire(), wire())).collect();
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for ((to, from_slice), (to_slice, from)) in wires {
            outside.push((to, from));
            inside.push((from_slice, to_slice));
        }
        Bench {
            channel: Channel::new(Path::root("channel"), config, inside, storage.clone()),
            storage,
            now: Cycle::ZERO,
            slices: outside,
        }
    }

    fn run_until(&mut self, end: u64) {
        run(&mut self.channel, &mut self.now, end);
    }

    fn send(&mut self, slice: usize, packet: Packet) {
        self.slices[slice].0.send(self.now, Box::new(packet));
    }

    /// Runs until `n` responses are visible. Returns the cycle and tag of each, in order.
    fn answers(&mut self, n: usize) -> Vec<(u64, u32)> {
        let mut answers = Vec::new();
        while answers.len() < n {
            assert!(self.now < Cycle(100_000), "only {answers:?}");
            for (_, port) in &mut self.slices {
                answers.extend(all(port, self.now).iter().map(|packet| (self.now.0, packet.tag)));
            }
            let next = self.now.0 + 1;
            self.run_until(next);
        }
        answers
    }

    /// Sends one packet into an idle channel: cycles from its acceptance to its answer being sent.
    fn cycles_of(&mut self, packet: Packet) -> u64 {
        let accepted = self.now.0 + 1;
        self.send(0, packet);
        self.answers(1)[0].0 - 1 - accepted
    }
}

/// With one slice and one channel a local line number is the line number without the base. Line 0 is in bank group 0.
fn address(local: u64) -> u64 {
    BASE + local * LINE as u64
}

fn read(local: u64, sectors: u8, tag: u32) -> Packet {
    Packet {
        line: address(local),
        sectors,
        tag,
        ..Packet::blank()
    }
}

fn write(local: u64, sectors: u8, value: u8, tag: u32) -> Packet {
    Packet {
        kind: PacketKind::Store,
        byte_mask: u128::MAX,
        bytes: [value; LINE],
        ..read(local, sectors, tag)
    }
}

/// Lines of the same bank as line 0, in the same row or in others.
fn lines_in_bank(same_row: bool) -> impl Iterator<Item = u64> {
    let layout = Layout {
        banks: 8,
        groups: 4,
        lines_per_row: 8,
        mapping: Mapping::Hash,
    };
    let base = BASE / LINE as u64;
    let first = layout.locate(base);
    (1..1000).filter(move |n| {
        let other = layout.locate(base + n);
        other.bank == first.bank && (other.row == first.row) == same_row
    })
}

fn another_row() -> u64 {
    lines_in_bank(false).next().unwrap()
}

fn same_row() -> u64 {
    lines_in_bank(true).next().unwrap()
}

#[test]
fn idle_channel_row_closed_open_and_in_the_way() {
    let mut bench = Bench::new(config(), 1);
    let closed = 1 + 14 + 13 + 1 + EXTRA;
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), closed);
    let open = 1 + 13 + 1 + EXTRA;
    assert_eq!(bench.cycles_of(read(0, 0b0100, 0)), open);
    assert_eq!(
        bench.cycles_of(read(another_row(), 0b0001, 0)),
        1 + 15 + 14 + 13 + 1 + EXTRA
    );
    let stats = bench.channel.counters();
    assert_eq!((stats.row_misses, stats.row_hits, stats.row_conflicts), (1, 1, 1));
    assert_eq!((stats.activates, stats.precharges, stats.bytes_read), (2, 1, 96));
}

#[test]
fn way_to_the_queue_is_added_to_each_access_and_holds_places_of_the_queue() {
    let mut bench = Bench::new(
        Config {
            way_cycles: 20,
            ..config()
        },
        1,
    );
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 20 + 1 + 14 + 13 + 1 + EXTRA);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 20 + 1 + 13 + 1 + EXTRA);
}

#[test]
fn four_sectors_of_a_line_follow_each_other_by_the_group_distance() {
    let mut bench = Bench::new(config(), 1);
    assert_eq!(bench.cycles_of(read(0, 0b1111, 0)), 1 + 14 + 13 + 3 * 3 + 1 + EXTRA);
}

#[test]
fn row_just_opened_must_stay_for_tras_and_the_bank_for_trc() {
    let mut bench = Bench::new(config(), 1);
    bench.send(0, read(0, 0b0001, 0));
    bench.send(0, read(another_row(), 0b0001, 1));
    let answers = bench.answers(2);
    // Activate, activate again tRC later, whatever comes between.
    assert_eq!(answers[1].0 - answers[0].0, 48);
}

#[test]
fn two_groups_their_bursts_interleave_on_the_bus() {
    let mut bench = Bench::new(config(), 1);
    bench.send(0, read(0, 0b1111, 0));
    bench.send(0, read(1, 0b1111, 1));
    let answers = bench.answers(2);
    // The second bank opens tRRD later, its bursts fall between the other's: four each, 3 apart.
    assert_eq!(answers[1].0 - answers[0].0, 4);
    assert_eq!(bench.channel.counters().bus_cycles, 8);
}

#[test]
fn open_row_younger_request_goes_before_an_older_one_that_must_wait() {
    let mut bench = Bench::new(config(), 1);
    bench.cycles_of(read(0, 0b0001, 9));
    bench.send(0, read(another_row(), 0b0001, 0));
    bench.send(0, read(same_row(), 0b1111, 1));
    let tags: Vec<_> = bench.answers(2).iter().map(|&(_, tag)| tag).collect();
    // The precharge of the older goes out first where it may; here tRAS has passed, so it does.
    assert_eq!(tags, [0, 1]);
    let mut bench = Bench::new(config(), 1);
    bench.send(0, read(0, 0b0001, 9));
    bench.send(0, read(another_row(), 0b0001, 0));
    bench.send(0, read(same_row(), 0b1111, 1));
    let tags: Vec<_> = bench.answers(3).iter().map(|&(_, tag)| tag).collect();
    assert_eq!(tags, [9, 1, 0], "tRAS holds the row open long enough for the younger");
}

#[test]
fn stream_to_one_row_the_other_row_is_served_before_it_starves() {
    let mut bench = Bench::new(config(), 2);
    let row: Vec<u64> = lines_in_bank(true).collect();
    let (mut n, sent) = (0, 100);
    let answered = loop {
        if bench.slices[0].0.has_room(bench.now) {
            n += 1;
            bench.send(0, read(row[n % row.len()], 0b1111, 0));
        }
        if bench.now.0 == sent {
            bench.send(1, read(another_row(), 0b0001, 7));
        }
        all(&mut bench.slices[0].1, bench.now);
        if !all(&mut bench.slices[1].1, bench.now).is_empty() {
            break bench.now.0;
        }
        let next = bench.now.0 + 1;
        bench.run_until(next);
    };
    let waited = answered - sent;
    assert!((1000..1200).contains(&waited), "{waited} cycles");
}

#[test]
fn write_then_read_of_another_line_waits_for_the_turnaround() {
    let mut bench = Bench::new(config(), 1);
    bench.cycles_of(read(0, 0b0001, 0));
    let alone = bench.cycles_of(read(0, 0b0001, 0));
    bench.send(0, write(0, 0b0001, 1, 1));
    let end = bench.now.0 + 4;
    bench.run_until(end); // accepted, and written in the next cycle: no read waits
    assert_eq!(bench.channel.counters().write_bursts, 1);
    // WL + burst + tWTR after the write at `end - 2`; the read could have gone out at end + 2.
    let read_at = end - 2 + 5 + 1 + 6;
    let late = read_at - (end + 2);
    assert_eq!(bench.answers(1).len(), 1);
    bench.run_until(400);
    let mut bench = Bench::new(config(), 1);
    bench.cycles_of(read(0, 0b0001, 0));
    bench.send(0, write(0, 0b0001, 1, 1));
    let end = bench.now.0 + 4;
    bench.run_until(end);
    bench.send(0, read(same_row(), 0b0001, 2));
    let answers = bench.answers(2);
    assert_eq!(answers[1], (end + 1 + alone + 1 + late, 2));
}

#[test]
fn bytes_written_are_read_back_and_masked_ones_stay() {
    let mut bench = Bench::new(config(), 1);
    let mut packet = write(0, 0b0010, 0x55, 1);
    packet.byte_mask = 0xf << 32;
    bench.storage.write(address(0), &[0xaa; LINE]);
    bench.send(0, packet);
    bench.send(0, read(0, 0b0010, 2));
    bench.answers(1);
    while bench.now.0 < 300 {
        if let Some(packet) = bench.slices[0].1.recv(bench.now) {
            assert_eq!(packet.bytes[32..38], [0x55, 0x55, 0x55, 0x55, 0xaa, 0xaa]);
            assert_eq!(bench.storage.load(address(0) + 32), 0x5555_5555);
            return;
        }
        let next = bench.now.0 + 1;
        bench.run_until(next);
    }
    panic!("the read was not answered");
}

#[test]
fn refresh_due_closes_rows_and_holds_the_banks() {
    let mut bench = Bench::new(config(), 1);
    bench.run_until(3900);
    bench.cycles_of(read(0, 0b0001, 0));
    assert!(bench.now.0 < 4000);
    bench.run_until(3999);
    // Accepted at 4000, when the refresh falls due: precharge, tRFC, and only then the activate.
    let cycles = bench.cycles_of(read(0, 0b0001, 0));
    assert_eq!(cycles, 15 + 300 + 14 + 13 + 1 + EXTRA);
}

#[test]
fn channel_slept_through_refreshes_the_next_read_finds_a_closed_row_and_no_wait() {
    let mut bench = Bench::new(config(), 1);
    bench.cycles_of(read(0, 0b0001, 0));
    bench.run_until(14_000);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 1 + 14 + 13 + 1 + EXTRA);
    assert_eq!(bench.channel.state.refresh.done(), 3);
}

#[test]
fn queue_full_requests_wait_in_their_links_and_all_slices_get_their_turn() {
    let mut bench = Bench::new(config(), 2);
    for n in 0..8 {
        for slice in 0..2 {
            let line = n * 64 + slice as u64 * 512;
            bench.send(slice, read(line, 0b1111, slice as u32));
        }
    }
    let answers = bench.answers(16);
    assert!(bench.channel.counters().full_cycles > 0);
    let early = answers[..8].iter().filter(|&&(_, slice)| slice == 0).count();
    assert!((3..=5).contains(&early), "{early} of the first eight are of slice 0");
}

#[test]
fn bursts_of_64_bytes_move_two_sectors_at_once() {
    let mut bench = Bench::new(
        with(Hbm {
            burst_bytes: 64,
            timing: Timing { t_ccd_s: 2, ..TIMING },
            ..HBM
        }),
        1,
    );
    assert_eq!(bench.cycles_of(read(0, 0b1111, 0)), 1 + 14 + 13 + 3 + 2 + EXTRA);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 1 + 13 + 2 + EXTRA);
    let stats = bench.channel.counters();
    assert_eq!((stats.read_bursts, stats.bytes_read), (3, 192));
}

#[test]
fn reads_stream_over_all_banks_the_bus_is_nearly_always_busy() {
    let timing = Timing { t_ccd_l: 2, ..TIMING };
    let mut bench = Bench::new(
        with(Hbm {
            timing,
            queue_depth: 64,
            write_drain_start: 32,
            write_drain_stop: 8,
            ..HBM
        }),
        4,
    );
    let mut next = 0;
    while bench.now.0 < 3000 {
        for slice in 0..4 {
            if bench.slices[slice].0.has_room(bench.now) {
                bench.send(slice, read(next, 0b1111, 0));
                next += 1;
            }
            all(&mut bench.slices[slice].1, bench.now);
        }
        let end = bench.now.0 + 1;
        bench.run_until(end);
    }
    let busy = bench.channel.counters().bus_cycles as f64 / 3000.0;
    assert!(busy > 0.9, "{busy}");
}

/// A bench whose channel has this row policy, after one read that opened the row of line 0. Its activate went out in cycle 2.
fn after_one_read(row_policy: Rows) -> Bench {
    let mut bench = Bench::new(with(Hbm { row_policy, ..HBM }), 1);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 1 + 14 + 13 + 1 + EXTRA);
    bench
}

#[test]
fn idle_row_stays_open_or_is_closed_by_the_policy() {
    let open = 1 + 13 + 1 + EXTRA;
    let closed = 1 + 14 + 13 + 1 + EXTRA;
    let in_the_way = 1 + 15 + 14 + 13 + 1 + EXTRA;
    // The response took until cycle 60 or so: long after tRAS, not yet a timeout after the burst.
    for (policy, same, other) in [
        (Rows::Open, open, in_the_way),
        (Rows::Closed, closed, closed),
        (Rows::Timeout, open, in_the_way),
    ] {
        let mut bench = after_one_read(policy);
        assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), same, "{policy:?}");
        let mut bench = after_one_read(policy);
        assert_eq!(bench.cycles_of(read(another_row(), 0b0001, 0)), other, "{policy:?}");
    }
}

#[test]
fn closed_row_is_precharged_after_tras_and_the_bank_can_open_after_trp() {
    let mut bench = after_one_read(Rows::Closed);
    let stats = *bench.channel.counters();
    assert_eq!((stats.activates, stats.precharges), (1, 1));
    // Activate in cycle 2, precharge tRAS later, ready tRP after that: tRC after the activate.
    let bank = bench
        .channel
        .state
        .timers
        .banks
        .iter()
        .map(|bank| bank.activate_at)
        .max();
    assert_eq!(bank, Some(2 + 48));
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 1 + 14 + 13 + 1 + EXTRA);
    let stats = bench.channel.counters();
    assert_eq!((stats.row_misses, stats.row_hits, stats.row_conflicts), (2, 0, 0));
}

#[test]
fn row_idle_for_the_timeout_is_closed_and_not_a_cycle_before() {
    let mut bench = after_one_read(Rows::Timeout);
    // Activate in cycle 2, the burst tRCD later, the precharge 100 after that.
    bench.run_until(2 + 14 + 100);
    assert_eq!(bench.channel.counters().precharges, 0);
    bench.run_until(2 + 14 + 100 + 1);
    assert_eq!(bench.channel.counters().precharges, 1);
}

#[test]
fn row_that_a_waiting_request_needs_is_not_closed() {
    // Sixteen bursts of one row: the last four lie beyond tRAS.
    for policy in [Rows::Open, Rows::Closed] {
        let mut bench = Bench::new(
            with(Hbm {
                row_policy: policy,
                ..HBM
            }),
            1,
        );
        for (n, line) in std::iter::once(0).chain(lines_in_bank(true)).take(4).enumerate() {
            bench.send(0, read(line, 0b1111, n as u32));
            let next = bench.now.0 + 1;
            bench.run_until(next);
        }
        assert_eq!(bench.answers(4).len(), 4);
        assert_eq!(bench.channel.counters().activates, 1, "{policy:?}");
    }
}

#[test]
fn first_come_first_served_keeps_the_order_of_arrival() {
    let hbm = Hbm {
        scheduler: DramScheduler::FirstComeFirstServed,
        ..HBM
    };
    let mut bench = Bench::new(with(hbm), 1);
    bench.send(0, read(0, 0b0001, 9));
    bench.send(0, read(another_row(), 0b0001, 0));
    bench.send(0, read(same_row(), 0b1111, 1));
    let answers = bench.answers(3);
    assert_eq!(answers.iter().map(|&(_, tag)| tag).collect::<Vec<_>>(), [9, 0, 1]);
    // The second waits for tRAS and tRP of the first's row, and the third's row must be opened again: tRC after the second's.
    let [first, second, third] = answers[..] else {
        panic!("three answers")
    };
    assert_eq!(second.0 - first.0, 48);
    assert_eq!(third.0 - second.0, 48 + 3 * 3);
    let stats = bench.channel.counters();
    assert_eq!((stats.row_misses, stats.row_conflicts), (1, 2));
}

#[test]
fn first_come_first_served_opens_no_row_ahead() {
    let hbm = Hbm {
        scheduler: DramScheduler::FirstComeFirstServed,
        ..HBM
    };
    let mut bench = Bench::new(with(hbm), 1);
    bench.send(0, read(0, 0b1111, 0));
    bench.send(0, read(1, 0b1111, 1));
    let answers = bench.answers(2);
    // The second's activate goes out with the first's last burst: then tRCD and four bursts.
    assert_eq!(answers[1].0 - answers[0].0, 14 + 3 * 3);
}

#[test]
fn contract_of_a_component_is_kept() {
    let timeout = Hbm {
        row_policy: Rows::Timeout,
        scheduler: DramScheduler::FirstComeFirstServed,
        ..HBM
    };
    let closed = Hbm {
        row_policy: Rows::Closed,
        ..HBM
    };
    for (hbm, clock) in [
        (HBM, Domain::GLOBAL),
        (HBM, Domain::new(3, 5)),
        (HBM, Domain::new(7, 4)),
        (closed, Domain::new(3, 5)),
        (timeout, Domain::new(7, 4)),
    ] {
        let build = |rig: &mut warpwave_hw::rig::Rig| {
            let traffic = |from: u64| -> Vec<(u64, Box<Packet>)> {
                let packet = |k: u64| {
                    if k.is_multiple_of(3) {
                        write(7 * k, 0b1111, 9, 0)
                    } else {
                        read(7 * k, 0b0110, 0)
                    }
                };
                let burst = (from..from + 12).map(|k| ((k - from) / 6 * 300, Box::new(packet(k))));
                burst.chain([(5000, Box::new(read(from, 0b0001, 0)))]).collect()
            };
            let slices = vec![
                (
                    rig.input("in0", 1, 2, traffic(0)),
                    rig.output("out0", 1, 2, |now| now.0 % 5 == 0),
                ),
                (rig.input("in1", 1, 2, traffic(100)), rig.output("out1", 1, 2, |_| true)),
            ];
            let storage = Arc::new(Storage::new(1 << 20));
            Channel::new(Path::root("channel"), Config { clock, ..with(hbm) }, slices, storage)
        };
        let events = warpwave_hw::rig::check(build, 5500);
        let events = events.unwrap_or_else(|what| panic!("{clock:?}, {hbm:?}: {what}"));
        let out = events.iter().filter(|event| event.link.starts_with("out")).count();
        assert_eq!(out, 26, "{clock:?}");
    }
}
