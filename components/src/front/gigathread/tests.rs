//! GigaThread by itself: the contract of a component, and the cycle in which each SM gets each CTA, counted by hand.

use warpwave_hw::rig::{Event, Rig, check};

use super::*;
use crate::config::CtaOrder;
use crate::proto::launch::{Trap, TrapKind};
use crate::test_ports::grid;

const CONFIG: config::GigaThread = config::GigaThread {
    launch_latency: 20,
    dispatch_interval: 2,
    warps_per_cycle: 4,
    link_latency: 3,
    sm_interval: 10,
    launch_queue: 2,
    order: CtaOrder::BreadthFirst,
};

const LAUNCH: [&str; 3] = ["launch0", "launch1", "launch2"];

/// Three SMs that report the end of a CTA in these cycles each.
fn engine(rig: &mut Rig, ctas: u32, ends: [&[u64]; 3]) -> GigaThread {
    engine_with(CONFIG, rig, ctas, ends)
}

/// As [`engine`], with these numbers. Links are at most three cycles long.
fn engine_with(config: config::GigaThread, rig: &mut Rig, ctas: u32, ends: [&[u64]; 3]) -> GigaThread {
    let way = config.link_latency.min(CONFIG.link_latency);
    let done = |at: &u64| (*at, SmEvent::CtaDone { index: 0, slot: 0 });
    let ports = Ports {
        grid: rig.input("grid", 1, 2, vec![(0, grid("EXIT", ctas))]),
        event: rig.output("event", 1, 4, |_| true),
        launch: LAUNCH.map(|name| rig.output(name, way, 2, |_| true)).into(),
        sm: ends
            .map(|ends| rig.input("ended", way, 8, ends.iter().map(done).collect()))
            .into(),
    };
    GigaThread::new(Path::root("gigathread"), config, std::iter::once(0..3).collect(), ports)
}

/// When an SM got its CTAs.
fn times(events: &[Event], link: &str) -> Vec<u64> {
    let of_link = events.iter().filter(|event| event.link == link);
    of_link.map(|event| event.at.0).collect()
}

#[test]
fn ten_blocks_on_three_sms_of_two_go_out_breadth_first_and_then_as_room_frees() {
    let build = |rig: &mut Rig| engine(rig, 10, [&[300, 400, 500, 600], &[300, 400, 500], &[300, 400, 500]]);
    let events = check(build, 700).unwrap();
    // The grid arrives in cycle 1; the first CTA goes out 20 later and is there 3 later still, the next SM's 2 later. An SM takes
    // its second 10 after its first. A CTA ended in cycle 300 is known in 303: its SM's next goes out then, and is there in 306.
    assert_eq!(times(&events, "launch0"), [24, 34, 306, 406]);
    assert_eq!(times(&events, "launch1"), [26, 36, 308]);
    assert_eq!(times(&events, "launch2"), [28, 38, 310]);
    // The last CTA ended in cycle 600; the host hears of it a cycle after the engine.
    assert_eq!(times(&events, "event"), [604]);
}

#[test]
fn trap_on_one_sm_host_is_told_and_nothing_more_goes_out() {
    let trap = Trap {
        kind: TrapKind::Trapped,
        pc: 0,
        line: 0,
        block: [0; 3],
        thread: [0; 3],
        address: None,
        bytes: 0,
        space: "",
    };
    let build = |rig: &mut Rig| {
        let mut engine = engine(rig, 10, [&[], &[], &[400]]);
        engine.ports.sm[1] = rig.input("trap", 1, 2, vec![(300, SmEvent::Trap(Box::new(trap.clone())))]);
        engine
    };
    let events = check(build, 600).unwrap();
    let launched: usize = LAUNCH.iter().map(|link| times(&events, link).len()).sum();
    assert_eq!(launched, 6);
    assert_eq!(times(&events, "event"), [302]);
}

#[test]
fn depth_first_seven_blocks_fill_one_sm_after_the_other() {
    let config = config::GigaThread {
        order: CtaOrder::DepthFirst,
        ..CONFIG
    };
    let build = |rig: &mut Rig| engine_with(config, rig, 7, [&[300, 400, 510], &[350, 360], &[350, 360]]);
    let events = check(build, 700).unwrap();
    // Each SM takes its second 10 cycles after its first, and the next SM its first 2 later. The seventh waits for an end.
    assert_eq!(times(&events, "launch0"), [24, 34, 306]);
    assert_eq!(times(&events, "launch1"), [36, 46]);
    assert_eq!(times(&events, "launch2"), [48, 58]);
}

#[test]
fn way_longer_than_its_link_delays_blocks_and_ends_by_the_rest() {
    let config = config::GigaThread {
        link_latency: 103,
        ..CONFIG
    };
    let build = |rig: &mut Rig| engine_with(config, rig, 7, [&[300, 400, 510], &[350, 360], &[350, 360]]);
    let events = check(build, 800).unwrap();
    // As over a way of 3 cycles, each block 100 later, and the seventh 200: the end and the block are on their way.
    assert_eq!(times(&events, "launch0"), [124, 134, 506]);
    assert_eq!(times(&events, "launch1"), [126, 136]);
    assert_eq!(times(&events, "launch2"), [128, 138]);
}
