//! Tests of a channel alone. The test acts as the slices. Cycles are counted by hand from the timings below.

use super::*;
use crate::config::{DramScheduler, Mapping, RefreshMode, RowPolicy as Rows, Timing};
use crate::storage::BASE;
use crate::test_ports::{all, run, wire};

const EXTRA: u64 = 30;

/// Timings with different values, so a wrong one changes a result.
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
    t_rfcsb: 160,
    t_rrefd: 8,
};

struct Bench {
    channel: Channel,
    storage: Arc<Storage>,
    now: Cycle,
    /// The slices' ends of the links.
    requests: Vec<OutPort<Box<Packet>>>,
    responses: Vec<InPort<Box<Packet>>>,
}

/// Cycles of a read of one burst from a bank without an open row.
const CLOSED: u64 = 1 + 14 + 13 + 1 + EXTRA;
/// Cycles of a read of one burst from an open row.
const OPEN: u64 = 1 + 13 + 1 + EXTRA;
/// Cycles of a read of one burst from a bank with another row open.
const CONFLICT: u64 = 1 + 15 + 14 + 13 + 1 + EXTRA;

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
    refresh: RefreshMode::AllBanks,
    burst_bytes: 32,
    bus_bytes_per_command_cycle: 32,
    check_interval: 0,
    access_latency: 0,
    latency_extra: EXTRA as u32,
    timing: TIMING,
};

fn config() -> Config {
    with(HBM)
}

/// A channel with these keys.
fn with(hbm: Hbm) -> Config {
    Config {
        hbm,
        number: 0,
        enqueue_latency: 0,
        response_latency: hbm.latency_extra,
        clock: Domain::GLOBAL,
        map: Arc::new(AddressMap::new(1, 1)),
    }
}

impl Bench {
    fn new(config: Config, slices: usize) -> Self {
        let storage = Arc::new(Storage::new(1 << 22));
        let (to_channel, requests): (Vec<_>, Vec<_>) = (0..slices).map(|_| wire()).unzip();
        let (responses, from_channel): (Vec<_>, Vec<_>) = (0..slices).map(|_| wire()).unzip();
        let ports = requests.into_iter().zip(responses);
        let ports = ports.map(|(requests, responses)| SlicePorts { requests, responses });
        let mut channel = Channel::new(Path::root("channel"), config, ports.collect(), storage.clone());
        channel.arm_invariants();
        Bench {
            channel,
            storage,
            now: Cycle::ZERO,
            requests: to_channel,
            responses: from_channel,
        }
    }

    fn run_until(&mut self, end: u64) {
        run(&mut self.channel, &mut self.now, end);
        assert_eq!(self.broken(), [""; 0]);
    }

    fn broken(&self) -> Vec<String> {
        Invariants::broken(|check| self.channel.invariants(check))
    }

    /// Runs the channel for `cycles` cycles.
    fn run(&mut self, cycles: u64) {
        self.run_until(self.now.0 + cycles);
    }

    fn send(&mut self, slice: usize, packet: Packet) {
        self.requests[slice].send(self.now, Box::new(packet));
    }

    /// Runs until `n` responses are visible. Returns the cycle and tag of each, in order.
    fn received(&mut self, n: usize) -> Vec<(u64, u32)> {
        let mut responses = Vec::new();
        while responses.len() < n {
            assert!(self.now < Cycle(100_000), "only {responses:?}");
            for port in &mut self.responses {
                responses.extend(all(port, self.now).iter().map(|packet| (self.now.0, packet.tag)));
            }
            self.run(1);
        }
        responses
    }

    /// Sends one packet to an idle channel. Returns the cycles from its acceptance to its response.
    fn cycles_of(&mut self, packet: Packet) -> u64 {
        let accepted = self.now.0 + 1;
        self.send(0, packet);
        self.received(1)[0].0 - 1 - accepted
    }
}

/// Address of a local line number. With one slice and one channel it counts lines from the base. Line 0 is in bank group 0.
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

/// Lines in the bank of line 0, either in its row or in other rows.
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
fn read_takes_longer_for_a_closed_bank_and_for_a_row_conflict() {
    let mut bench = Bench::new(config(), 1);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), CLOSED);
    assert_eq!(bench.cycles_of(read(0, 0b0100, 0)), OPEN);
    assert_eq!(bench.cycles_of(read(another_row(), 0b0001, 0)), CONFLICT);
    let stats = bench.channel.counters();
    assert_eq!((stats.row_misses, stats.row_hits, stats.row_conflicts), (1, 1, 1));
    assert_eq!((stats.activates, stats.precharges, stats.bytes_read), (2, 1, 96));
}

#[test]
fn way_to_the_queue_is_added_to_each_access() {
    let mut bench = Bench::new(
        Config {
            enqueue_latency: 20,
            ..config()
        },
        1,
    );
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 20 + 1 + 14 + 13 + 1 + EXTRA);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), 20 + 1 + 13 + 1 + EXTRA);
}

#[test]
fn bursts_of_a_line_are_tccd_l_apart() {
    let mut bench = Bench::new(config(), 1);
    assert_eq!(bench.cycles_of(read(0, 0b1111, 0)), 1 + 14 + 13 + 3 * 3 + 1 + EXTRA);
}

#[test]
fn second_activate_of_a_bank_waits_for_trc() {
    let mut bench = Bench::new(config(), 1);
    bench.send(0, read(0, 0b0001, 0));
    bench.send(0, read(another_row(), 0b0001, 1));
    let responses = bench.received(2);
    // The activates are tRC apart, and the rest of both reads is equal.
    assert_eq!(responses[1].0 - responses[0].0, 48);
}

#[test]
fn bursts_of_two_bank_groups_interleave_on_the_bus() {
    let mut bench = Bench::new(config(), 1);
    bench.send(0, read(0, 0b1111, 0));
    bench.send(0, read(1, 0b1111, 1));
    let responses = bench.received(2);
    // The second bank opens tRRD later. Each bank has 4 bursts, 3 cycles apart, and those of one fit between those of the other.
    assert_eq!(responses[1].0 - responses[0].0, 4);
    assert_eq!(bench.channel.counters().bus_cycles, 8);
}

#[test]
fn younger_request_to_an_open_row_goes_before_an_older_one_that_must_wait() {
    let mut bench = Bench::new(config(), 1);
    bench.cycles_of(read(0, 0b0001, 9));
    bench.send(0, read(another_row(), 0b0001, 0));
    bench.send(0, read(same_row(), 0b1111, 1));
    let tags: Vec<_> = bench.received(2).iter().map(|&(_, tag)| tag).collect();
    // tRAS has passed, so the precharge for the older request is sent first.
    assert_eq!(tags, [0, 1]);
    let mut bench = Bench::new(config(), 1);
    bench.send(0, read(0, 0b0001, 9));
    bench.send(0, read(another_row(), 0b0001, 0));
    bench.send(0, read(same_row(), 0b1111, 1));
    let tags: Vec<_> = bench.received(3).iter().map(|&(_, tag)| tag).collect();
    assert_eq!(
        tags,
        [9, 1, 0],
        "the row is open for tRAS, long enough for the younger request"
    );
}

#[test]
fn request_to_another_row_is_served_once_it_starves() {
    let mut bench = Bench::new(config(), 2);
    let row: Vec<u64> = lines_in_bank(true).collect();
    let (mut n, sent) = (0, 100);
    let answered = loop {
        if bench.requests[0].has_room(bench.now) {
            n += 1;
            bench.send(0, read(row[n % row.len()], 0b1111, 0));
        }
        if bench.now.0 == sent {
            bench.send(1, read(another_row(), 0b0001, 7));
        }
        all(&mut bench.responses[0], bench.now);
        if !all(&mut bench.responses[1], bench.now).is_empty() {
            break bench.now.0;
        }
        bench.run(1);
    };
    let waited = answered - sent;
    assert!((1000..1200).contains(&waited), "{waited} cycles");
}

#[test]
fn read_after_a_write_waits_for_the_turnaround() {
    let mut bench = Bench::new(config(), 1);
    bench.cycles_of(read(0, 0b0001, 0));
    let alone = bench.cycles_of(read(0, 0b0001, 0));
    bench.send(0, write(0, 0b0001, 1, 1));
    bench.run(4); // The write is accepted, and sent in the next cycle: no read waits.
    assert_eq!(bench.channel.counters().write_bursts, 1);
    let end = bench.now.0;
    // The write was sent at `end - 2`, and a read may follow after WL + burst + tWTR. Without the write it is sent at `end + 2`.
    let late = (end - 2 + 5 + 1 + 6) - (end + 2);
    bench.send(0, read(same_row(), 0b0001, 2));
    let responses = bench.received(2);
    assert_eq!(responses[1], (end + 1 + alone + 1 + late, 2));
    assert_eq!(bench.channel.counters().turnarounds, 2, "to the write, and back");
}

#[test]
fn read_returns_the_written_bytes_and_leaves_masked_ones() {
    let mut bench = Bench::new(config(), 1);
    let mut packet = write(0, 0b0010, 0x55, 1);
    packet.byte_mask = 0xf << 32;
    bench.storage.write(address(0), &[0xaa; LINE]);
    bench.send(0, packet);
    bench.send(0, read(0, 0b0010, 2));
    bench.received(1);
    while bench.now.0 < 300 {
        if let Some(packet) = bench.responses[0].recv(bench.now) {
            assert_eq!(packet.bytes[32..38], [0x55, 0x55, 0x55, 0x55, 0xaa, 0xaa]);
            assert_eq!(bench.storage.load(address(0) + 32), 0x5555_5555);
            return;
        }
        bench.run(1);
    }
    panic!("the read got no response");
}

#[test]
fn refresh_closes_rows_and_keeps_the_banks_busy() {
    let mut bench = Bench::new(config(), 1);
    bench.run_until(3900);
    bench.cycles_of(read(0, 0b0001, 0));
    assert!(bench.now.0 < 4000);
    bench.run_until(3999);
    // Accepted at 4000, when the refresh is due: precharge, tRFC, then the activate.
    let cycles = bench.cycles_of(read(0, 0b0001, 0));
    assert_eq!(cycles, 15 + 300 + 14 + 13 + 1 + EXTRA);
}

#[test]
fn refresh_waits_for_trp_after_a_precharge_and_for_trc_after_an_activate() {
    // The row policy closes the row tRAS after its activate. The refresh is due in the next cycle.
    let activated = 466;
    let closed = activated + 33;
    let timing = Timing {
        t_refi: closed as u32 + 1,
        t_rc: 52,
        ..TIMING
    };
    let mut bench = Bench::new(
        with(Hbm {
            row_policy: Rows::Closed,
            timing,
            ..HBM
        }),
        1,
    );
    bench.run_until(activated - 2);
    bench.send(0, read(0, 0b0001, 0));
    bench.run_until(closed + 1);
    assert_eq!(bench.channel.counters().precharges, 1);
    // Accepted in the cycle of the refresh. It starts tRC after the activate, which is later than tRP after the precharge.
    bench.send(0, read(0, 0b0001, 1));
    let responses = bench.received(2);
    let refreshed = activated + 52 + 300;
    assert_eq!(responses[1], (refreshed + 14 + 13 + 1 + EXTRA + 1, 1));
}

#[test]
fn refreshes_of_an_idle_channel_close_the_row_and_delay_no_read() {
    let mut bench = Bench::new(config(), 1);
    bench.cycles_of(read(0, 0b0001, 0));
    bench.run_until(14_000);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), CLOSED);
    assert_eq!(bench.channel.state.refresh.n_done(), 3);
}

#[test]
fn command_that_breaks_a_rule_is_a_broken_invariant_with_cycle_and_rule() {
    let mut bench = Bench::new(config(), 1);
    // The rule of the checker is one edge longer than the timing of the channel.
    let timing = Timing { t_rcd: 15, ..TIMING };
    bench.channel.checker = Some(Box::new(TimingChecker::new(&Hbm { timing, ..HBM })));
    bench.send(0, read(0, 0b0001, 0));
    run(&mut bench.channel, &mut bench.now, 100);
    // Accepted in cycle 1, activated in cycle 2, read 14 edges later.
    let [broken] = &bench.broken()[..] else {
        panic!("{:?}", bench.broken());
    };
    assert!(
        broken.starts_with("command of cycle 16: edge 16: Read { bank: "),
        "{broken}"
    );
    assert!(broken.contains(" comes 14 edges after Activate { bank: "), "{broken}");
    assert!(broken.ends_with(", and tRCD is 15"), "{broken}");
    bench.channel.reset();
    assert_eq!(bench.broken(), [""; 0]);
}

/// A channel that refreshes one bank after the other: bank n at 500 x (n + 1), since eight banks share 4,000 edges.
fn single_bank() -> Bench {
    let refresh = RefreshMode::SingleBank;
    let mapping = Mapping::Modulo;
    Bench::new(
        with(Hbm {
            refresh,
            mapping,
            ..HBM
        }),
        1,
    )
}

/// The first line in a bank of `single_bank`.
fn line_in(bench: &Bench, bank: u32) -> u64 {
    let bank_of = |line: u64| {
        let address = bench.channel.config.map.channel(read(line, 0b0001, 0).line);
        bench.channel.layout.locate(address.local).bank
    };
    (0..1024)
        .find(|&line| bank_of(line) == bank)
        .expect("eight banks share 1024 lines")
}

#[test]
fn refresh_of_a_single_bank_keeps_only_this_bank_busy() {
    let mut bench = single_bank();
    let [first, second] = [0, 1].map(|bank| line_in(&bench, bank));
    bench.run_until(300);
    for line in [first, second] {
        assert_eq!(bench.cycles_of(read(line, 0b0001, 0)), CLOSED);
    }
    // The refresh of bank 0 is due at 500. A read of bank 1 finds its row open as before.
    bench.run_until(499);
    assert_eq!(bench.cycles_of(read(second, 0b0001, 0)), OPEN);
}

#[test]
fn refresh_of_a_single_bank_takes_a_precharge_and_its_own_time() {
    let mut bench = single_bank();
    let line = line_in(&bench, 0);
    bench.run_until(300);
    bench.cycles_of(read(line, 0b0001, 0));
    bench.run_until(499);
    // Accepted at 500: precharge, tRFCSB, then the activate.
    assert_eq!(bench.cycles_of(read(line, 0b0001, 0)), 15 + 160 + 14 + 13 + 1 + EXTRA);
}

#[test]
fn busy_bank_is_drained_for_its_refresh() {
    let mut bench = single_bank();
    let line = line_in(&bench, 0);
    bench.run_until(480);
    // Reads of one row in bank 0, with a new one always waiting. The second burst follows the first after tCCD_L.
    let mut sent = 0;
    let mut responses = Vec::new();
    while bench.now.0 < 800 {
        if bench.requests[0].has_room(bench.now) {
            bench.send(0, read(line, 0b0001, sent));
            sent += 1;
        }
        bench.run(1);
        responses.extend(all(&mut bench.responses[0], bench.now).iter().map(|_| bench.now.0));
    }
    // Row open at 482, last column command before 500. The precharge waits for tRAS (515), the refresh for tRP (530).
    let gaps = responses.windows(2).map(|pair| (pair[1] - pair[0], pair[0]));
    let (gap, last) = gaps.max().unwrap();
    let before = 499 + 13 + 1 + EXTRA + 1;
    let after = 530 + 160 + 14 + 13 + 1 + EXTRA + 1;
    assert!(
        last <= before && last + 3 > before - 1,
        "last response before the refresh at {last}"
    );
    assert_eq!(last + gap, after);
}

#[test]
fn idle_channel_catches_up_with_single_banks() {
    let mut bench = single_bank();
    // Bank 2 is due at 13,500, and bank 3 at 14,000, so bank 2 is idle at 14,100.
    let line = line_in(&bench, 2);
    bench.cycles_of(read(line, 0b0001, 0));
    bench.run_until(14_100);
    assert_eq!(bench.cycles_of(read(line, 0b0001, 0)), CLOSED);
    // 14,101 / 500
    assert_eq!(bench.channel.state.refresh.n_done(), 28);
}

#[test]
fn full_queue_serves_slices_in_turn() {
    let mut bench = Bench::new(config(), 2);
    for n in 0..8 {
        for slice in 0..2 {
            let line = n * 64 + slice as u64 * 512;
            bench.send(slice, read(line, 0b1111, slice as u32));
        }
    }
    let responses = bench.received(16);
    assert!(bench.channel.counters().full_cycles > 0);
    let early = responses[..8].iter().filter(|&&(_, slice)| slice == 0).count();
    assert!((3..=5).contains(&early), "{early} of the first eight are of slice 0");
}

#[test]
fn burst_of_64_bytes_moves_two_sectors() {
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
fn burst_of_check_bits_follows_every_second_burst_of_data() {
    let mut bench = Bench::new(
        with(Hbm {
            check_interval: 2,
            ..HBM
        }),
        1,
    );
    // Columns at 0, 3, 3 + 3 + 1 and 10. The check bits of the second burst hold the bus for one cycle. Those of the fourth delay its end.
    assert_eq!(bench.cycles_of(read(0, 0b1111, 0)), 1 + 14 + 10 + 13 + 2 + EXTRA);
    let stats = bench.channel.counters();
    assert_eq!((stats.read_bursts, stats.bus_cycles, stats.bytes_read), (4, 6, 128));
}

#[test]
fn stream_over_all_banks_keeps_the_bus_busy() {
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
            if bench.requests[slice].has_room(bench.now) {
                bench.send(slice, read(next, 0b1111, 0));
                next += 1;
            }
            all(&mut bench.responses[slice], bench.now);
        }
        bench.run(1);
    }
    let busy = bench.channel.counters().bus_cycles as f64 / 3000.0;
    assert!(busy > 0.9, "{busy}");
}

/// A bench with this row policy after one read of line 0. The activate was sent in cycle 2.
fn after_one_read(row_policy: Rows) -> Bench {
    let mut bench = Bench::new(with(Hbm { row_policy, ..HBM }), 1);
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), CLOSED);
    bench
}

#[test]
fn row_policy_closes_an_idle_row_or_leaves_it_open() {
    // The first response leaves before cycle 65: after tRAS, and less than a timeout after the burst.
    for (policy, same, other) in [
        (Rows::Open, OPEN, CONFLICT),
        (Rows::Closed, CLOSED, CLOSED),
        (Rows::Timeout, OPEN, CONFLICT),
    ] {
        let mut bench = after_one_read(policy);
        assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), same, "{policy:?}");
        let mut bench = after_one_read(policy);
        assert_eq!(bench.cycles_of(read(another_row(), 0b0001, 0)), other, "{policy:?}");
    }
}

#[test]
fn closed_policy_precharges_after_tras() {
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
    assert_eq!(bench.cycles_of(read(0, 0b0001, 0)), CLOSED);
    let stats = bench.channel.counters();
    assert_eq!((stats.row_misses, stats.row_hits, stats.row_conflicts), (2, 0, 0));
}

#[test]
fn timeout_policy_closes_an_idle_row_exactly_at_its_timeout() {
    let mut bench = after_one_read(Rows::Timeout);
    // Activate in cycle 2, the burst tRCD later, the precharge 100 after that.
    bench.run_until(2 + 14 + 100);
    assert_eq!(bench.channel.counters().precharges, 0);
    bench.run_until(2 + 14 + 100 + 1);
    assert_eq!(bench.channel.counters().precharges, 1);
}

#[test]
fn row_that_a_request_needs_stays_open() {
    // 16 bursts of one row: the last 4 come after tRAS.
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
            bench.run(1);
        }
        assert_eq!(bench.received(4).len(), 4);
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
    let responses = bench.received(3);
    assert_eq!(responses.iter().map(|&(_, tag)| tag).collect::<Vec<_>>(), [9, 0, 1]);
    // The second activate waits for tRC. The third request reopens the first row, again tRC later.
    let [first, second, third] = responses[..] else {
        panic!("three responses")
    };
    assert_eq!(second.0 - first.0, 48);
    assert_eq!(third.0 - second.0, 48 + 3 * 3);
    let stats = bench.channel.counters();
    assert_eq!((stats.row_misses, stats.row_conflicts), (1, 2));
}

#[test]
fn first_come_first_served_opens_no_row_early() {
    let hbm = Hbm {
        scheduler: DramScheduler::FirstComeFirstServed,
        ..HBM
    };
    let mut bench = Bench::new(with(hbm), 1);
    bench.send(0, read(0, 0b1111, 0));
    bench.send(0, read(1, 0b1111, 1));
    let responses = bench.received(2);
    // The second activate is sent with the last burst of the first request. Then come tRCD and 4 bursts.
    assert_eq!(responses[1].0 - responses[0].0, 14 + 3 * 3);
}

#[test]
fn channel_keeps_the_contract_of_a_component() {
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
                SlicePorts {
                    requests: rig.input("in0", 1, 2, traffic(0)),
                    responses: rig.output("out0", 1, 2, |now| now.0 % 5 == 0),
                },
                SlicePorts {
                    requests: rig.input("in1", 1, 2, traffic(100)),
                    responses: rig.output("out1", 1, 2, |_| true),
                },
            ];
            let storage = Arc::new(Storage::new(1 << 20));
            Channel::new(Path::root("channel"), Config { clock, ..with(hbm) }, slices, storage)
        };
        let events = warpwave_hw::rig::check(build, 5500);
        let events = events.unwrap_or_else(|fault| panic!("{clock:?}, {hbm:?}: {fault}"));
        let out = events.iter().filter(|event| event.link.starts_with("out")).count();
        assert_eq!(out, 26, "{clock:?}");
    }
}

#[test]
fn flush_has_counters_of_its_own() {
    let mut bench = Bench::new(config(), 1);
    let flush = Packet {
        purpose: Purpose::Flush,
        ..write(0, 0b1111, 7, 0)
    };
    bench.send(0, flush);
    bench.run(200);
    let counters = bench.channel.counters();
    // Four sectors of 32 bytes: a burst each.
    assert_eq!(
        (counters.flush_requests, counters.flush_bursts, counters.bytes_flushed),
        (1, 4, 128)
    );
    assert_eq!(
        (counters.write_requests, counters.bytes_written, counters.bus_cycles),
        (0, 0, 0)
    );
    assert_eq!(
        (counters.row_hits, counters.row_misses, counters.row_conflicts),
        (0, 0, 0)
    );
}
