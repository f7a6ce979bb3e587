//! Contract test of shared memory. The test acts as LSU, GPC network and dispatch units.

use std::sync::Arc;

use warpwave_hw::rig::{Event, Rig, check};
use warpwave_isa::lane::LaneMask;

use super::*;
use crate::preset;
use crate::proto::addresses::WarpAddresses;
use crate::proto::cluster::remote_address;
use crate::proto::launch::Grid;
use crate::proto::mem::{AtomicLanes, Packet, PacketKind};
use crate::test_ports::{grid, load, warp_inst};

const PROGRAM: &str = "ST.SHARED.B32 [R2], R4
    LD.SHARED.B32 R0, [R2]
    SHFL.BFLY R1, PT, R0, 0x10, 0x1f";

/// Shared memory with these links. Its lines have a latency of 6 cycles.
fn memory(
    input: InPort<Box<WarpInst>>,
    output: Vec<OutPort<Box<WarpInst>>>,
    requests: InPort<Box<Packet>>,
    responses: OutPort<Box<Packet>>,
) -> SharedMemory {
    let lines = LinePorts {
        input: requests,
        output: responses,
        latency: 6,
    };
    let ports = Ports {
        input,
        output,
        products: Vec::new(),
        lines: vec![lines],
    };
    let config = Config {
        bytes: 1 << 16,
        shared: preset::load("tiny", &[]).expect("tiny is built in").config.sm.shared,
    };
    SharedMemory::new(Path::root("shared"), config, ports)
}

/// Shared memory with one sub-core and one source of lines. All outputs always have room.
fn with_lines(rig: &mut Rig, own: Vec<(u64, Box<WarpInst>)>, packets: Vec<(u64, Box<Packet>)>) -> SharedMemory {
    let input = rig.input("in", 1, 2, own);
    let requests = rig.input("requests", 1, 2, packets);
    let outputs = vec![rig.output("out0", 1, 4, |_| true)];
    memory(input, outputs, requests, rig.output("responses", 1, 2, |_| true))
}

/// Cycles of the events of one link.
fn times(events: &[Event], link: &str) -> Vec<u64> {
    let of_link = events.iter().filter(|event| event.link == link);
    of_link.map(|event| event.at.0).collect()
}

#[test]
fn line_access_waits_for_the_last_pass_of_the_sms_own_access() {
    let grid = Arc::new(Grid {
        shared_bytes: 8192,
        ..(*grid(PROGRAM, 1)).clone()
    });
    let build = |rig: &mut Rig| {
        let mut remote = load(0, 0b0001, 7);
        remote.line = remote_address(0, 128);
        // 32 passes occupy the banks from cycle 1 up to cycle 32. The second line access finds idle banks in cycle 101.
        let own = vec![(0, access(&grid, (0, 1), 128))];
        with_lines(rig, own, vec![(10, remote.clone()), (100, remote)])
    };
    let events = check(build, 400).unwrap();
    let broken = |rig: &mut Rig| {
        let mut memory = build(rig);
        memory.state.bytes = vec![0; memory.config.bytes as usize + 1];
        memory
    };
    let found = check(broken, 1).unwrap_err();
    assert!(found.contains("bytes: "), "{found}");
    let [first, second] = times(&events, "responses")[..] else {
        panic!("two responses")
    };
    assert_eq!(first - 33, second - 101);
}

#[test]
fn access_ends_in_the_last_of_its_passes() {
    let grid = Arc::new(Grid {
        shared_bytes: 8192,
        ..(*grid(PROGRAM, 1)).clone()
    });
    // The access of sub-core 0 has 32 passes. That of sub-core 1 waits longer than its latency, so it ends with its own last pass.
    let second_ends = |stride| {
        let build = |rig: &mut Rig| {
            let own = [(0, 128), (1, stride)].map(|(subcore, stride)| (0, access(&grid, (subcore, 1), stride)));
            let (input, requests) = (
                rig.input("in", 1, 2, own.into()),
                rig.input("requests", 1, 2, Vec::new()),
            );
            let outputs = ["out0", "out1"].map(|name| rig.output(name, 1, 4, |_| true)).into();
            memory(input, outputs, requests, rig.output("responses", 1, 2, |_| true))
        };
        times(&check(build, 400).unwrap(), "out1")[0]
    };
    // Words 32 bytes apart are in 4 of 32 banks: 8 passes. Words 8 bytes apart are in 16 banks: 2 passes.
    assert_eq!(second_ends(32) - second_ends(4), 7);
    assert_eq!(second_ends(8) - second_ends(4), 1);
}

#[test]
fn line_accesses_of_several_passes_leave_the_sm_its_turn() {
    let grid = Arc::new(Grid {
        shared_bytes: 8192,
        ..(*grid(PROGRAM, 1)).clone()
    });
    let build = |rig: &mut Rig| {
        // Two lanes on one word: two passes each. The stream occupies the banks for 100 cycles.
        let mut remote = load(0, 0b0001, 7);
        remote.line = remote_address(0, 128);
        remote.kind = PacketKind::Reduction;
        let mut lanes = AtomicLanes::default();
        (lanes.n, lanes.lanes[1].lane) = (2, 1);
        remote.atomic = Some(Box::new(lanes));
        let own = vec![(10, access(&grid, (0, 1), 4))];
        with_lines(rig, own, (0..50).map(|n| (n, remote.clone())).collect())
    };
    let events = check(build, 600).unwrap();
    let (own, responses) = (times(&events, "out0")[0], times(&events, "responses"));
    let later = responses.iter().filter(|&&at| at > own + 10).count();
    assert!(
        later > 30,
        "the own access ends in cycle {own}, after most line accesses"
    );
}

/// The instruction at `pc` of the program. The addresses of its lanes are `stride` bytes apart.
fn access(grid: &Arc<Grid>, (subcore, pc): (u8, u32), stride: u64) -> Box<WarpInst> {
    let mut inst = warp_inst(grid, subcore, pc, LaneMask::ALL);
    inst.addresses = WarpAddresses::per_lane(std::array::from_fn(|lane| lane as u64 * stride));
    if inst.info.route == Route::Shared {
        inst.shared_lanes = LaneMask::ALL;
    }
    inst
}

#[test]
fn shared_memory_keeps_the_contract_and_every_access_ends_once() {
    let grid = Arc::new(Grid {
        shared_bytes: 8192,
        ..(*grid(PROGRAM, 1)).clone()
    });
    let build = |rig: &mut Rig| {
        let accesses = [
            (0, access(&grid, (0, 0), 4)),
            (1, access(&grid, (1, 1), 4)),
            (2, access(&grid, (0, 1), 128)),
            (3, access(&grid, (1, 2), 0)),
            (90, access(&grid, (0, 1), 8)),
        ];
        let mut remote = load(0, 0b0001, 7);
        remote.line = remote_address(0, 128);
        let input = rig.input("in", 1, 2, accesses.into());
        let lines = rig.input("requests", 1, 2, vec![(4, remote.clone()), (100, remote)]);
        let outputs = [
            rig.output("out0", 1, 4, |now| now.0 % 4 == 0),
            rig.output("out1", 1, 4, |_| true),
        ];
        memory(
            input,
            outputs.into(),
            lines,
            rig.output("responses", 1, 2, |now| now.0 % 5 == 0),
        )
    };
    let events = check(build, 400).unwrap();
    let count = |link: &str| events.iter().filter(|event| event.link == link).count();
    assert_eq!(["out0", "out1", "responses"].map(count), [3, 2, 2]);
}

const MBARRIER: &str = "ST.SHARED.B64 [R2], R4
    SYNCS.PHASECHK.SHARED.B64.N1 P0, [R2], R4
    LD.SHARED.B32 R0, [R2]
    ATOM.ARRIVE.SHARED.U64.B64 R0, [R2], R4, RZ";

/// Found by the fuzz target `mbarriers`. If the link of a test was full at the end of its phase, the test waited for its time limit.
#[test]
fn test_of_a_complete_phase_leaves_once_its_link_has_room() {
    let grid = Arc::new(Grid {
        shared_bytes: 1024,
        ..(*grid(MBARRIER, 1)).clone()
    });
    let inst = |subcore: u8, pc: u32, operand: u32| {
        let mut inst = warp_inst(&grid, subcore, pc, LaneMask(1));
        inst.shared_lanes = inst.lanes;
        // The operand follows the address. Its upper word is 0.
        inst.operands.words[1].0[0] = operand;
        inst
    };
    let build = |rig: &mut Rig| {
        // A phase of one arrival. The load fills the link of sub-core 0, where the test waits.
        let accesses = [
            (0, inst(1, 0, 1 | 1 << 20)),
            (4, inst(0, 1, 0)),
            (8, inst(0, 2, 0)),
            (12, inst(1, 3, 1)),
        ];
        let input = rig.input("in", 1, 2, accesses.into());
        let requests = rig.input("requests", 1, 2, Vec::new());
        let outputs = [
            rig.output("out0", 1, 1, |now| now.0 % 60 == 0),
            rig.output("out1", 1, 4, |_| true),
        ];
        memory(input, outputs.into(), requests, rig.output("responses", 1, 2, |_| true))
    };
    let events = check(build, 400).unwrap();
    assert_eq!(times(&events, "out0"), [60, 120]);
}

#[test]
fn test_that_waits_a_cycle_for_its_phase_takes_as_long_as_one_of_a_complete_phase() {
    let grid = Arc::new(Grid {
        shared_bytes: 1024,
        ..(*grid(MBARRIER, 1)).clone()
    });
    let inst = |at: u64, subcore: u8, pc: u32, operand: u32| {
        let mut inst = warp_inst(&grid, subcore, pc, LaneMask(1));
        (inst.shared_lanes, inst.issued) = (inst.lanes, Cycle(at));
        inst.operands.words[1].0[0] = operand;
        (at, inst)
    };
    // A phase of one arrival. The cycle in which the test of it returns, if test and arrival are issued in these cycles.
    let returns = |test: u64, arrival: u64| {
        let build = |rig: &mut Rig| {
            let mut accesses = vec![inst(0, 1, 0, 1 | 1 << 20), inst(test, 0, 1, 0), inst(arrival, 1, 3, 1)];
            accesses.sort_by_key(|(at, _)| *at);
            let input = rig.input("in", 1, 4, accesses);
            let requests = rig.input("requests", 1, 2, Vec::new());
            let outputs = ["out0", "out1"].map(|name| rig.output(name, 1, 4, |_| true)).into();
            memory(input, outputs, requests, rig.output("responses", 1, 2, |_| true))
        };
        times(&check(build, 400).unwrap(), "out0")
    };
    let latency = preset::load("tiny", &[])
        .expect("tiny is built in")
        .config
        .sm
        .shared
        .latency;
    // The first test is complete at once, the second one waits a cycle for the arrival.
    let at = 40 + u64::from(latency) - RETURN_CYCLES + 1;
    assert_eq!([returns(40, 30), returns(40, 41)], [[at], [at]]);
    // A phase that ends later than the latency ends the test in its cycle: the arrival is seen in 101, and the link takes one more.
    assert_eq!(returns(40, 100), [102]);
}
