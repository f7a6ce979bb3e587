//! Contract and pace of the LSU. The test acts as sub-cores, shared memory and L1.

use std::sync::Arc;

use warpwave_hw::rig::{Rig, check};
use warpwave_isa::lane::{LaneMask, Lanes};

use super::*;
use crate::preset;
use crate::proto::constant::ConstantLine;
use crate::proto::launch::Grid;
use crate::storage::BASE;
use crate::test_ports::{all, grid, run, times, warp_inst, wire, wire_of};

/// The cycles, counted from the first, in which the packets of one access leave for the L1. Lane addresses are `stride` bytes apart.
fn packet_cycles(pc: u32, stride: u32) -> Vec<u64> {
    let grid = Arc::new(Grid {
        allocations: vec![(BASE, 1 << 16)],
        ..(*grid(
            "LD.B32 R0, [R2]\n LD.B64 R0, [R2]\n RED.ADD.B32 [R2], R4\n ATOM.EXCH.B32 R0, [R2], R4, RZ",
            1,
        ))
        .clone()
    });
    let (mut input, from_subcore) = wire();
    let (to_l1, mut packets) = wire_of(1, 64);
    let (_to_lsu, response) = wire();
    let (ack, _credits) = wire();
    let (output, _complete) = wire();
    let ports = Ports {
        input: vec![from_subcore],
        output: vec![output],
        ack: vec![ack],
        shared: wire().0,
        l1: to_l1,
        response,
        trap: wire().0,
        constant: None,
        cluster: None,
        bulk: None,
    };
    let mut lsu = Lsu::new(Path::root("lsu"), config(), ports);
    // The access does not have to invalidate the L1 first.
    lsu.state.grid = Some(grid.id);
    input.send(Cycle::ZERO, access(&grid, (0, pc), BASE, stride));
    let (mut now, mut cycles) = (Cycle::ZERO, Vec::new());
    for _ in 0..80 {
        let next = now.0 + 1;
        run(&mut lsu, &mut now, next);
        // Accepted in cycle 1, sent from cycle 2 on, seen a cycle later.
        cycles.extend(all(&mut packets, now).iter().map(|_| now.0 - 3));
    }
    cycles
}

#[test]
fn access_takes_as_long_as_its_busiest_data_bank_or_tag_bank() {
    let last_and_count = |pc, stride| {
        let cycles = packet_cycles(pc, stride);
        (cycles.last().copied(), cycles.len())
    };
    // 32 words in a row: one line.
    assert_eq!(last_and_count(0, 4), (Some(0), 1));
    // Every second word: two lines, and two words of each bank.
    assert_eq!(last_and_count(0, 8), (Some(1), 2));
    // Every 32nd word: 32 lines, all words in one bank.
    assert_eq!(last_and_count(0, 128), (Some(31), 32));
    // Every 33rd word: 32 lines, one word of each bank, so the four tag banks take 8 cycles.
    assert_eq!(last_and_count(0, 132), (Some(7), 32));
    // 64-bit words are two requests of 16 lanes. In a row, each is one line.
    assert_eq!(last_and_count(1, 8), (Some(1), 2));
    // An atomic takes a cycle, and one for each sector: 32 sectors in 32 lines, or 4 in one line.
    assert_eq!(last_and_count(2, 132), (Some(32), 32));
    assert_eq!(last_and_count(2, 4), (Some(4), 1));
    // All lanes on one word: one sector for an addition. An exchange takes 2 cycles for each lane.
    assert_eq!(last_and_count(2, 0), (Some(1), 1));
    assert_eq!(last_and_count(3, 0), (Some(63), 1));
}

const PROGRAM: &str = "LD.B32 R0, [R2]
    ST.B32 [R2], R4
    LD.B64 R0, [R2]
    ST.SHARED.B32 [R2], R4
    SHFL.BFLY R1, PT, R0, 0x10, 0x1f";

fn config() -> Config {
    let tiny = preset::load("tiny", &[]).expect("tiny is built in").config;
    Config {
        sm: 0,
        sm_in_gpc: 0,
        cta_slots: 2,
        shared_unit: 128,
        lsu: tiny.sm.lsu,
        tag_banks: 4,
        constant: tiny.sm.constant,
        fence: tiny.sm.fence,
        first_local_slot: 0,
        warps_per_subcore: 4,
    }
}

/// The instruction at `pc` of the program. The addresses of its lanes are `stride` bytes apart.
fn access(grid: &Arc<Grid>, (subcore, pc): (u8, u32), address: u64, stride: u32) -> Box<WarpInst> {
    let mut inst = warp_inst(grid, subcore, pc, LaneMask::ALL);
    inst.operands.words[0] = Lanes(std::array::from_fn(|lane| address as u32 + lane as u32 * stride));
    inst.operands.words[1] = Lanes([(address >> 32) as u32; 32]);
    inst
}

#[test]
fn lsu_keeps_the_contract_and_every_access_ends_once() {
    let grid = Arc::new(Grid {
        allocations: vec![(BASE, 1 << 16)],
        shared_bytes: 4096,
        ..(*grid(PROGRAM, 1)).clone()
    });
    let at = |subcore, pc, address, stride| access(&grid, (subcore, pc), address, stride);
    let build = |rig: &mut Rig| {
        let first = vec![
            (0, at(0, 0, BASE, 4)),
            (1, at(0, 1, BASE + 512, 8)),
            (2, at(0, 3, 64, 4)),
            (60, at(0, 0, BASE + 1024, 128)),
        ];
        let second = vec![
            (0, at(1, 2, BASE, 8)),
            (1, at(1, 4, 0, 0)),
            (150, at(1, 0, BASE + 2048, 4)),
        ];
        let (l1, response) = rig.responder(["l1", "response"], 2, |packet: Box<Packet>| vec![(30, packet)]);
        let ports = Ports {
            input: vec![rig.input("in0", 1, 2, first), rig.input("in1", 1, 2, second)],
            output: vec![
                rig.output("out0", 1, 2, |now| now.0 % 4 == 0),
                rig.output("out1", 1, 2, |_| true),
            ],
            ack: vec![
                rig.output("ack0", 1, 2, |_| true),
                rig.output("ack1", 1, 2, |now| now.0 % 3 == 0),
            ],
            shared: rig.output("shared", 1, 2, |now| now.0 % 7 == 0),
            l1,
            response,
            trap: rig.output("trap", 1, 1, |_| true),
            constant: None,
            cluster: None,
            bulk: None,
        };
        Lsu::new(Path::root("lsu"), config(), ports)
    };
    let events = check(build, 500).unwrap();
    let count = |link: &str| events.iter().filter(|event| event.link == link).count();
    let counts = ["out0", "out1", "shared", "trap"].map(count);
    assert_eq!(
        counts,
        [3, 2, 2, 0],
        "loads and stores, accesses to shared memory, no trap"
    );
}

/// Two loads of constants, issued in cycles 0 and 200, with lane addresses `stride` bytes apart. Returns the number of lines that they
/// request, and the cycles of their returns.
fn constant_load(stride: u32) -> (usize, Vec<u64>) {
    let grid = Arc::new(Grid {
        constants: vec![(0..2048).collect()],
        ..(*grid("LDC.B32 R0, c[0][R2]", 1)).clone()
    });
    let build = |rig: &mut Rig| {
        let load = |at| {
            let mut inst = warp_inst(&grid, 0, 0, LaneMask::ALL);
            inst.operands.words[0] = Lanes(std::array::from_fn(|lane| lane as u32 * stride));
            inst.issued = Cycle(at);
            (at, inst)
        };
        let (l1, response) = rig.responder(["l1", "response"], 2, |packet: Box<Packet>| vec![(30, packet)]);
        let (request, fill) = rig.responder(["request", "fill"], 64, |line: ConstantLine| vec![(80, line)]);
        let ports = Ports {
            input: vec![rig.input("in", 1, 2, vec![load(0), load(200)])],
            output: vec![rig.output("out", 1, 2, |_| true)],
            ack: vec![rig.output("ack", 1, 2, |_| true)],
            shared: rig.output("shared", 1, 2, |_| true),
            l1,
            response,
            trap: rig.output("trap", 1, 1, |_| true),
            constant: Some(ConstantPorts { request, fill }),
            cluster: None,
            bulk: None,
        };
        Lsu::new(Path::root("lsu"), config(), ports)
    };
    let events = check(build, 500).unwrap();
    let requests = events.iter().filter(|event| event.link == "request").count();
    (requests, times(&events, "out"))
}

#[test]
fn constant_load_waits_for_its_lines_and_the_next_one_hits() {
    // All lanes read one word: one line. The second load finds it.
    let (requests, returns) = constant_load(0);
    assert_eq!(requests, 1);
    let hit = u64::from(config().constant.latency) - RETURN_CYCLES;
    assert!(returns[0] >= 80 && returns[1] - 200 <= hit + 2, "{returns:?}");
    // 32 words in a row are 128 bytes: two lines, and 32 passes.
    let (requests, two_lines) = constant_load(4);
    assert_eq!(requests, 2);
    assert_eq!(two_lines[1] - returns[1], 31, "a pass for each word beyond the first");
}

#[test]
fn accesses_of_one_sub_core_are_an_issue_interval_apart_and_those_of_another_go_between() {
    let grid = grid(PROGRAM, 1);
    let shuffle = |subcore| access(&grid, (subcore, 4), 0, 0);
    let build = |rig: &mut Rig| {
        let (l1, response) = rig.responder(["l1", "response"], 2, |packet: Box<Packet>| vec![(30, packet)]);
        let ports = Ports {
            input: vec![
                rig.input("in0", 1, 4, vec![(0, shuffle(0)), (0, shuffle(0)), (0, shuffle(0))]),
                rig.input("in1", 1, 4, vec![(2, shuffle(1))]),
            ],
            output: ["out0", "out1"].map(|name| rig.output(name, 1, 2, |_| true)).into(),
            ack: ["ack0", "ack1"].map(|name| rig.output(name, 1, 2, |_| true)).into(),
            shared: rig.output("shared", 1, 4, |_| true),
            l1,
            response,
            trap: rig.output("trap", 1, 1, |_| true),
            constant: None,
            cluster: None,
            bulk: None,
        };
        let mut config = config();
        (config.lsu.accept_interval, config.lsu.issue_interval) = (1, 6);
        Lsu::new(Path::root("lsu"), config, ports)
    };
    let events = check(build, 100).unwrap();
    let taken = times(&events, "shared");
    let after_first: Vec<_> = taken.iter().map(|at| at - taken[0]).collect();
    assert_eq!(after_first, [0, 2, 6, 12], "{taken:?}");
}

#[test]
fn constant_loads_whose_line_comes_wait_for_room_in_the_link_of_their_results() {
    let grid = Arc::new(Grid {
        constants: vec![(0..2048).collect()],
        ..(*grid("LDC.B32 R0, c[0][R2]", 1)).clone()
    });
    let build = |rig: &mut Rig| {
        // All loads wait for one line: as many as can wait.
        let loads = (0..config().constant.indexed_loads).map(|n| {
            let mut inst = warp_inst(&grid, 0, 0, LaneMask::ALL);
            inst.issued = Cycle(n.into());
            (u64::from(n), inst)
        });
        let (l1, response) = rig.responder(["l1", "response"], 2, |packet: Box<Packet>| vec![(30, packet)]);
        let (request, fill) = rig.responder(["request", "fill"], 64, |line: ConstantLine| vec![(80, line)]);
        let ports = Ports {
            input: vec![rig.input("in", 1, 4, loads.collect())],
            // Room for one result, taken once in 50 cycles.
            output: vec![rig.output("out", 1, 1, |now| now.0 % 50 == 0)],
            ack: vec![rig.output("ack", 1, 8, |_| true)],
            shared: rig.output("shared", 1, 2, |_| true),
            l1,
            response,
            trap: rig.output("trap", 1, 1, |_| true),
            constant: Some(ConstantPorts { request, fill }),
            cluster: None,
            bulk: None,
        };
        Lsu::new(Path::root("lsu"), config(), ports)
    };
    let events = check(build, 500).unwrap();
    // The line comes before cycle 100. `tiny` has four loads.
    assert_eq!(times(&events, "out"), [100, 150, 200, 250]);
}

/// Issues a constant load of 32 addresses that hits in cycle 200, a load of device memory in cycle 210, or both. Returns the cycles of
/// their returns.
fn returns_of(with_constant: bool, with_device: bool) -> Vec<u64> {
    let grid = Arc::new(Grid {
        allocations: vec![(BASE, 1 << 16)],
        constants: vec![(0..2048).collect()],
        ..(*grid("LDC.B32 R0, c[0][R2]\n LD.B32 R0, [R2]", 1)).clone()
    });
    let inst = |at: u64, pc: u32, address: u64| {
        let mut inst = access(&grid, (0, pc), address, 4);
        inst.issued = Cycle(at);
        (at, inst)
    };
    let build = |rig: &mut Rig| {
        // The first two loads fetch the lines of constants, and invalidate the L1.
        let mut loads = vec![inst(0, 0, 0), inst(1, 1, BASE)];
        loads.extend(with_constant.then(|| inst(200, 0, 0)));
        loads.extend(with_device.then(|| inst(210, 1, BASE)));
        let (l1, response) = rig.responder(["l1", "response"], 2, |packet: Box<Packet>| vec![(20, packet)]);
        let (request, fill) = rig.responder(["request", "fill"], 64, |line: ConstantLine| vec![(80, line)]);
        let ports = Ports {
            input: vec![rig.input("in", 1, 4, loads)],
            output: vec![rig.output("out", 1, 4, |_| true)],
            ack: vec![rig.output("ack", 1, 8, |_| true)],
            shared: rig.output("shared", 1, 2, |_| true),
            l1,
            response,
            trap: rig.output("trap", 1, 1, |_| true),
            constant: Some(ConstantPorts { request, fill }),
            cluster: None,
            bulk: None,
        };
        Lsu::new(Path::root("lsu"), config(), ports)
    };
    let events = check(build, 500).unwrap();
    times(&events, "out").into_iter().filter(|&at| at > 200).collect()
}

#[test]
fn constant_load_delays_no_load_of_device_memory() {
    let (constant, device) = (returns_of(true, false), returns_of(false, true));
    // 32 passes: the first is part of the latency.
    let latency = u64::from(config().constant.latency) + 31;
    assert_eq!(constant, [200 + latency - RETURN_CYCLES + 1]);
    assert!(device[0] < constant[0], "{device:?}");
    assert_eq!(returns_of(true, true), [device, constant].concat());
}
