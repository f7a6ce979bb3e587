//! Contract test of shared memory. The test acts as LSU, GPC network and dispatch units.

use std::sync::Arc;

use warpwave_hw::rig::{Event, Rig, check};
use warpwave_isa::inst::{AtomOp, Ty};
use warpwave_isa::lane::LaneMask;

use super::*;
use crate::preset;
use crate::proto::addresses::WarpAddresses;
use crate::proto::cluster::{CtaResidence, MAX_START, RemoteByte, remote_address};
use crate::proto::launch::Grid;
use crate::proto::mem::{AtomicLanes, Packet, PacketKind};
use crate::test_ports::{grid, load, warp_inst};

const PROGRAM: &str = "ST.SHARED.B32 [R2], R4
    LD.SHARED.B32 R0, [R2]
    SHFL.BFLY R1, PT, R0, 0x10, 0x1f";

/// Shared memory with these links. Its lines have a latency of 6 cycles.
fn memory(
    rig: &mut Rig,
    input: InPort<Box<WarpInst>>,
    output: Vec<OutPort<Box<WarpInst>>>,
    requests: InPort<Box<Packet>>,
    takes_response: fn(Cycle) -> bool,
) -> SharedMemory {
    let lines = LinePorts {
        input: requests,
        output: rig.output("responses", 1, 2, takes_response),
        latency: 6,
    };
    let ports = Ports {
        input,
        output,
        products: Vec::new(),
        lines: vec![lines],
        residence: None,
        trap: rig.output("trap", 1, 4, |_| true),
    };
    let config = Config {
        bytes: 1 << 16,
        shared_unit: 128,
        shared: preset::load("tiny", &[]).expect("tiny is built in").config.sm.shared,
    };
    SharedMemory::new(Path::root("shared"), config, ports)
}

/// Shared memory with one sub-core and one source of lines. All outputs always have room.
fn with_lines(rig: &mut Rig, own: Vec<(u64, Box<WarpInst>)>, packets: Vec<(u64, Box<Packet>)>) -> SharedMemory {
    let input = rig.input("in", 1, 2, own);
    let requests = rig.input("requests", 1, 2, packets);
    let outputs = vec![rig.output("out0", 1, 4, |_| true)];
    memory(rig, input, outputs, requests, |_| true)
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
            memory(rig, input, outputs, requests, |_| true)
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
        memory(rig, input, outputs.into(), lines, |now| now.0 % 5 == 0)
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
        memory(rig, input, outputs.into(), requests, |_| true)
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
            memory(rig, input, outputs, requests, |_| true)
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

#[test]
fn arrival_beyond_the_counts_of_its_mbarrier_traps_and_changes_nothing() {
    let grid = Arc::new(Grid {
        shared_bytes: 1000,
        ..(*grid(MBARRIER, 1)).clone()
    });
    // An mbarrier at byte 16 of the second block of the SM: its bytes begin at 1024, the next multiple of the allocation unit.
    let inst = |pc: u32, lane: u32, operand: u32| {
        let mut inst = warp_inst(&grid, 0, pc, LaneMask(1 << lane));
        (inst.shared_lanes, inst.shared_base) = (inst.lanes, 1024);
        inst.addresses = WarpAddresses::per_lane([16; 32]);
        inst.operands.words[1].0 = [operand; 32];
        inst
    };
    let remote = |operand: u64| {
        let mut packet = load(0, 0b0001, 7);
        (packet.line, packet.kind) = (remote_address(0, 1024 + 16), PacketKind::Reduction);
        let mut atomic = AtomicLanes {
            op: AtomOp::Arrive,
            ty: Ty::U64,
            origin: inst(3, 0, 0).origin(),
            n: 1,
            ..AtomicLanes::default()
        };
        (atomic.lanes[0].lane, atomic.lanes[0].value) = (9, operand.into());
        packet.atomic = Some(Box::new(atomic));
        packet
    };
    let build = |rig: &mut Rig| {
        // Phases of two arrivals. Three at once are one too many.
        let own = vec![(0, inst(0, 0, 2 | 2 << 20)), (10, inst(3, 5, 3)), (20, inst(3, 5, 1))];
        // One is pending. Two at once are too many, and 2^20 bytes are too. The right arrival ends the phase, so two are pending.
        let packets = [2, 1 << 52, 1, 3].map(remote);
        with_lines(rig, own, (40..).step_by(10).zip(packets).collect())
    };
    let events = check(build, 400).unwrap();
    let traps: Vec<_> = events.iter().filter(|event| event.link == "trap").collect();
    let expected = [
        ("Arrivals { arrivals: 3, pending: 2, count: 2 }", 5, "shared"),
        ("Arrivals { arrivals: 2, pending: 1, count: 2 }", 9, "shared::cluster"),
        ("Bytes { bytes: 1048576 }", 9, "shared::cluster"),
        ("Arrivals { arrivals: 3, pending: 2, count: 2 }", 9, "shared::cluster"),
    ];
    assert_eq!(traps.len(), expected.len(), "{traps:?}");
    for (trap, (fault, lane, space)) in traps.iter().zip(expected) {
        let place = format!("thread: [{lane}, 0, 0], address: Some(16), bytes: 8, space: {space:?}");
        assert!(
            trap.message.contains(fault) && trap.message.contains(&place) && trap.message.contains("pc: 3"),
            "{}: {fault}, {place}",
            trap.message
        );
    }
}

/// A load of slot 0 by another SM, for the CTA with this start number.
fn load_of_cta(start: u32) -> Box<Packet> {
    let mut packet = load(0, 0b0001, 7);
    let (sm, rank, byte) = (0, 1, 128);
    packet.line = RemoteByte { sm, rank, start, byte }.address();
    packet
}

#[test]
fn line_access_to_a_cta_that_has_ended_is_refused_and_to_one_that_starts_later_it_is_not() {
    let change = |start, is_resident| CtaResidence {
        slot: 0,
        start,
        slot_bytes: 1024,
        is_resident,
    };
    // Start numbers of slot 0: the CTA before 1 has the highest number, since they wrap.
    let changes = vec![
        (10, change(MAX_START, true)),
        (30, change(MAX_START, false)),
        (50, change(1, true)),
        (90, change(1, false)),
    ];
    let loads = [
        // Before, during and after the first CTA.
        (5, MAX_START),
        (20, MAX_START),
        (40, MAX_START),
        // For the next one, which is placed and has not started yet.
        (45, 1),
        // In the slot of the next one.
        (60, 1),
        (70, MAX_START),
        // Without a name.
        (80, 0),
        // Both have ended.
        (100, 1),
        (110, MAX_START),
    ];
    let build = |rig: &mut Rig| {
        let loads = loads.map(|(at, start)| (at, load_of_cta(start)));
        let mut memory = with_lines(rig, Vec::new(), loads.into());
        memory.ports.residence = Some(rig.input("residence", 1, 2, changes.clone()));
        memory
    };
    let events = check(build, 400).unwrap();
    let responses = events.iter().filter(|event| event.link == "responses");
    let refused: Vec<_> = responses.map(|event| event.message.contains("sectors: 0,")).collect();
    assert_eq!(refused, [false, false, true, false, false, true, false, true, true]);
    assert_eq!(events.iter().filter(|event| event.link == "trap").count(), 0);
}

#[test]
fn store_to_a_cta_that_has_ended_changes_nothing() {
    let end = CtaResidence {
        slot: 0,
        start: 1,
        slot_bytes: 1024,
        is_resident: false,
    };
    let byte_after = |start: u32| {
        let mut store = load_of_cta(start);
        (store.kind, store.byte_mask, store.bytes[0]) = (PacketKind::Store, 1, 9);
        let mut read = load_of_cta(0);
        read.kind = PacketKind::Load;
        let build = |rig: &mut Rig| {
            let packets = vec![(10, store.clone()), (20, read.clone())];
            let mut memory = with_lines(rig, Vec::new(), packets);
            memory.ports.residence = Some(rig.input("residence", 1, 2, vec![(0, end)]));
            memory
        };
        let events = check(build, 100).unwrap();
        let last = events.iter().rfind(|event| event.link == "responses");
        last.is_some_and(|event| event.message.contains("bytes: [9, 0,"))
    };
    assert_eq!([0, 1, 2].map(byte_after), [true, false, true]);
}
