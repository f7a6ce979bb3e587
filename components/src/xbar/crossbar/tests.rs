//! One network alone: the test sends and receives as the SMs and the slices.

use super::*;
use crate::test_ports::{add, all, load, run, store, wire_of};

struct Bench {
    xbar: Crossbar,
    now: Cycle,
    to: Vec<OutPort<Box<Packet>>>,
    from: Vec<InPort<Box<Packet>>>,
}

impl Bench {
    fn new(direction: Direction, inputs: usize, outputs: usize, clock: Domain) -> Self {
        Self::with_window(1, direction, [inputs, outputs], clock)
    }

    fn with_window(window: usize, direction: Direction, [inputs, outputs]: [usize; 2], clock: Domain) -> Self {
        let (to, ins) = (0..inputs).map(|_| wire_of(1, 16)).unzip();
        let (outs, from) = (0..outputs).map(|_| wire_of(1, 4)).unzip();
        let config = Config {
            direction,
            bytes_per_cycle: 32,
            clock,
            window,
        };
        Bench {
            xbar: Crossbar::new(Path::root("xbar"), config, ins, outs),
            now: Cycle::ZERO,
            to,
            from,
        }
    }

    fn requests(inputs: usize, outputs: usize) -> Self {
        Self::new(Direction::Request, inputs, outputs, Domain::GLOBAL)
    }

    fn send(&mut self, input: usize, mut packet: Box<Packet>, slice: u16) {
        packet.slice = slice;
        let header = Header::of(&packet, self.xbar.config.direction);
        self.to[input].send_sideband(self.now, header.sideband(), packet);
    }

    /// Runs for `cycles` cycles and takes every packet at once. Returns cycle and tag, by output.
    fn drain(&mut self, cycles: u64) -> Vec<Vec<(u64, u32)>> {
        let mut taken = vec![Vec::new(); self.from.len()];
        for _ in 0..cycles {
            let next = self.now.0 + 1;
            run(&mut self.xbar, &mut self.now, next);
            for (port, taken) in self.from.iter_mut().zip(&mut taken) {
                taken.extend(all(port, self.now).iter().map(|packet| (self.now.0, packet.tag)));
            }
        }
        taken
    }
}

#[test]
fn packet_through_an_idle_network_takes_the_latency_of_its_links() {
    let mut bench = Bench::requests(2, 3);
    bench.send(1, load(0, 1, 7), 2);
    assert_eq!(bench.drain(4), [vec![], vec![], vec![(2, 7)]]);
    assert!(bench.xbar.is_quiescent());
}

#[test]
fn different_inputs_to_different_outputs_do_not_wait() {
    let mut bench = Bench::requests(3, 3);
    (0..3).for_each(|n| bench.send(n, load(0, 1, n as u32), 2 - n as u16));
    assert_eq!(bench.drain(4), [vec![(2, 2)], vec![(2, 1)], vec![(2, 0)]]);
}

#[test]
fn all_inputs_request_one_output_each_is_served_in_turn() {
    let mut bench = Bench::requests(3, 2);
    for round in 0..4 {
        (0..3).for_each(|n| bench.send(n, load(0, 1, 10 * n as u32 + round), 1));
    }
    let tags: Vec<u32> = bench.drain(20)[1].iter().map(|&(_, tag)| tag).collect();
    assert_eq!(tags, [0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23]);
    assert_eq!(
        bench.xbar.counters().conflict_cycles,
        11 * 2 - 1,
        "two heads wait in each of ten cycles, and one in the eleventh"
    );
}

#[test]
fn store_of_four_sectors_occupies_both_ports_for_four_cycles() {
    let mut bench = Bench::requests(2, 2);
    bench.send(0, store(0, u128::MAX, 1, 0), 0);
    bench.send(0, load(0, 1, 1), 1);
    bench.send(1, load(0, 1, 2), 0);
    assert_eq!(bench.drain(9), [vec![(2, 0), (6, 2)], vec![(6, 1)]]);
    let stats = bench.xbar.counters();
    assert_eq!((stats.packets, stats.data_bytes, stats.output_cycles), (3, 128, 6));
}

#[test]
fn atomic_of_nine_lanes_occupies_its_ports_for_36_bytes() {
    let mut bench = Bench::requests(2, 1);
    bench.send(0, add(0, 9, 1, 7), 0);
    bench.send(1, load(0, 1, 8), 0);
    assert_eq!(bench.drain(6), [vec![(2, 7), (4, 8)]], "36 bytes at 32 a cycle");
    let stats = bench.xbar.counters();
    assert_eq!((stats.packets, stats.data_bytes, stats.output_cycles), (2, 36, 3));
}

#[test]
fn full_output_does_not_block_others_and_keeps_its_order() {
    let mut bench = Bench::requests(2, 2);
    for tag in 0..8 {
        bench.send(0, load(0, 1, tag), 0);
        bench.send(1, load(0, 1, 100 + tag), 1);
    }
    let end = bench.now.0 + 12;
    run(&mut bench.xbar, &mut bench.now, end); // no packet is taken: each link holds four
    assert!(bench.xbar.counters().blocked_cycles > 0);
    let other: Vec<u32> = all(&mut bench.from[1], bench.now)
        .iter()
        .map(|packet| packet.tag)
        .collect();
    assert_eq!(other, [100, 101, 102, 103]);
    let taken = bench.drain(12);
    let tags = |n: usize| taken[n].iter().map(|&(_, tag)| tag).collect::<Vec<_>>();
    assert_eq!(tags(0), (0..8).collect::<Vec<_>>());
    assert_eq!(tags(1), (104..108).collect::<Vec<_>>());
}

/// Input 0 sends packets 0 and 1 to output 0 and packet 2 to output 1. Input 1 keeps output 0 busy for four cycles.
fn behind_a_busy_output(window: usize) -> Vec<Vec<(u64, u32)>> {
    let mut bench = Bench::with_window(window, Direction::Request, [2, 2], Domain::GLOBAL);
    bench.send(1, store(0, u128::MAX, 1, 9), 0);
    bench.drain(1);
    (0..3).for_each(|tag| bench.send(0, load(0, 1, tag), u16::from(tag == 2)));
    let taken = bench.drain(12);
    assert!(bench.xbar.is_quiescent());
    taken
}

#[test]
fn head_blocks_the_packets_behind_it_in_a_window_of_one() {
    // The store leaves in cycle 1 and keeps the output until cycle 5. Then a packet leaves each cycle.
    assert_eq!(behind_a_busy_output(1), [vec![(2, 9), (6, 0), (7, 1)], vec![(8, 2)]]);
}

#[test]
fn packet_for_a_free_output_passes_those_for_a_busy_one() {
    // Packet 2 is in the window in cycle 4, a packet a cycle after packet 0 in cycle 2.
    let taken = behind_a_busy_output(3);
    assert_eq!(taken, [vec![(2, 9), (6, 0), (7, 1)], vec![(5, 2)]]);
    // A window of two has no place for packet 2 before packet 0 leaves, and packet 1 is older.
    assert_eq!(behind_a_busy_output(2)[1], [(8, 2)]);
}

#[test]
fn input_with_two_grants_accepts_that_of_its_older_packet() {
    let mut bench = Bench::with_window(2, Direction::Request, [2, 2], Domain::GLOBAL);
    bench.send(0, load(0, 1, 0), 0);
    bench.send(0, load(0, 1, 1), 1);
    bench.send(1, load(0, 1, 2), 0);
    bench.send(1, load(0, 1, 3), 1);
    // Both windows fill while both outputs are busy.
    bench
        .xbar
        .state
        .outputs
        .iter_mut()
        .for_each(|output| output.free_at = 6);
    // In cycle 6 both outputs grant input 0, which accepts the grant for packet 0. Output 1 keeps its turn.
    assert_eq!(bench.drain(12), [vec![(7, 0), (8, 2)], vec![(8, 1), (9, 3)]]);
}

#[test]
fn packet_is_passed_a_bounded_number_of_times() {
    let mut bench = Bench::with_window(2, Direction::Request, [1, 2], Domain::GLOBAL);
    bench.xbar.state.outputs[0].free_at = u64::MAX;
    bench.send(0, load(0, 1, 0), 0);
    let mut passed = 0;
    for tag in 1..400 {
        if bench.to[0].has_room(bench.now) {
            bench.send(0, load(0, 1, tag), 1);
        }
        passed += bench.drain(1)[1].len();
    }
    assert_eq!(passed, 64);
    bench.xbar.state.outputs[0].free_at = 0;
    let taken = bench.drain(3);
    assert_eq!(taken[0].len(), 1);
    assert!(!taken[1].is_empty(), "the others go on");
}

#[test]
fn saturated_uniform_traffic_never_stops() {
    const PORTS: usize = 4;
    let mut bench = Bench::with_window(16, Direction::Request, [PORTS, PORTS], Domain::GLOBAL);
    let mut state = 11u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % n) as usize
    };
    for round in 0..40_000 {
        for from in 0..PORTS {
            while bench.to[from].has_room(bench.now) {
                bench.send(from, store(0, u128::MAX, 1, round), below(PORTS as u64) as u16);
            }
        }
        // A store of 128 bytes takes four cycles, so a working crossbar always delivers within 16.
        let arrived: usize = bench.drain(16).iter().map(Vec::len).sum();
        assert!(arrived > 0, "round {round}");
    }
}

#[test]
fn every_packet_arrives_in_order_through_any_window() {
    for window in [1, 2, 4, 16] {
        let mut bench = Bench::with_window(window, Direction::Request, [3, 3], Domain::GLOBAL);
        let mut state = 7u64;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as usize
        };
        let mut sent = vec![vec![Vec::new(); 3]; 3];
        let mut taken = vec![vec![Vec::new(); 3]; 3];
        for tag in 0..600u32 {
            let (from, to) = (below(3), below(3));
            if bench.to[from].has_room(bench.now) {
                let tag = tag << 4 | from as u32;
                let packet = if below(2) == 0 {
                    load(0, 1, tag)
                } else {
                    store(0, u128::MAX, 1, tag)
                };
                bench.send(from, packet, to as u16);
                sent[from][to].push(tag);
            }
            let arrived = bench.drain(below(2) as u64);
            for (to, packets) in arrived.into_iter().enumerate() {
                packets
                    .iter()
                    .for_each(|&(_, tag)| taken[tag as usize % 16][to].push(tag));
            }
        }
        for (to, packets) in bench.drain(2000).into_iter().enumerate() {
            packets
                .iter()
                .for_each(|&(_, tag)| taken[tag as usize % 16][to].push(tag));
        }
        assert_eq!(taken, sent, "window {window}");
        assert!(bench.xbar.is_quiescent());
    }
}

#[test]
fn responses_go_to_their_sm() {
    let mut bench = Bench::new(Direction::Response, 1, 130, Domain::GLOBAL);
    let mut packet = load(0, 1, 5);
    packet.sm = 129;
    bench.send(0, packet, 0);
    assert_eq!(bench.drain(3)[129], [(2, 5)]);
}

#[test]
fn clock_of_half_the_rate_moves_a_packet_every_other_cycle() {
    let mut bench = Bench::new(Direction::Request, 1, 1, Domain::new(1, 2));
    (0..4).for_each(|tag| bench.send(0, load(0, 1, tag), 0));
    assert_eq!(bench.drain(12)[0], [(3, 0), (5, 1), (7, 2), (9, 3)]);
}

#[test]
fn contract_of_a_component_is_kept() {
    let clocks = [Domain::GLOBAL, Domain::new(3, 5), Domain::new(7, 4)];
    for (clock, window) in clocks.into_iter().flat_map(|clock| [(clock, 1), (clock, 4)]) {
        let build = |rig: &mut warpwave_hw::rig::Rig| {
            let traffic = |n: u32| -> Vec<(u64, Box<Packet>)> {
                let packet = |k: u32| {
                    if k.is_multiple_of(3) {
                        store(0, u128::MAX, 1, k)
                    } else {
                        load(0, 1, k)
                    }
                };
                let to = |k| {
                    Box::new(Packet {
                        slice: (k / 2 % 2) as u16,
                        ..*packet(k)
                    })
                };
                (0..10).map(|k| (u64::from(k / 5 * 40), to(10 * n + k))).collect()
            };
            let inputs = ["in0", "in1", "in2"].into_iter().zip(0..);
            let inputs = inputs
                .map(|(name, n)| {
                    rig.sideband_input(name, 1, 2, traffic(n), |packet| {
                        Header::of(packet, Direction::Request).sideband()
                    })
                })
                .collect();
            let outputs = vec![
                rig.output("out0", 1, 2, |now| now.0 % 3 == 0),
                rig.output("out1", 2, 3, |_| true),
            ];
            let config = Config {
                direction: Direction::Request,
                bytes_per_cycle: 32,
                clock,
                window,
            };
            Crossbar::new(Path::root("xbar"), config, inputs, outputs)
        };
        let events = warpwave_hw::rig::check(build, 200).unwrap();
        let broken = |rig: &mut warpwave_hw::rig::Rig| {
            let mut crossbar = build(rig);
            crossbar.state.inputs[0].window.push(Waiting {
                packet: load(0, 1, 0),
                output: 0,
                bytes: 0,
            });
            crossbar
        };
        let found = warpwave_hw::rig::check(broken, 1).unwrap_err();
        assert!(found.contains("requests at the outputs: 0, not 1"), "{found}");
        let out = events.iter().filter(|event| event.link.starts_with("out")).count();
        assert_eq!(out, 30, "{clock:?}");
    }
}
