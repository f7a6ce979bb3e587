//! GigaThread alone: the contract of a component, and the cycle in which each SM gets each CTA, counted by hand.

use warpwave_hw::rig::{Rig, check};

use super::*;
use crate::config::CtaOrder;
use crate::proto::launch::{Trap, TrapKind};
use crate::test_ports::{grid, run, times, wire, wire_of};

const CONFIG: config::GigaThread = config::GigaThread {
    launch_latency: 20,
    launch_interval: 0,
    dispatch_interval: 2,
    warps_per_cycle: 4,
    link_latency: 3,
    sm_interval: 10,
    turnover_latency: 0,
    launch_queue: 2,
    order: CtaOrder::BreadthFirst,
    standstill_cycles: 0,
};

/// One GPC of `n` SMs.
fn sms(n: usize) -> Sms {
    Sms {
        gpcs: std::iter::once(0..n).collect(),
        by_smid: (0..n).collect(),
    }
}

const LAUNCH: [&str; 3] = ["launch0", "launch1", "launch2"];

/// An engine with three SMs. SM n reports the end of a CTA in each cycle of `ends[n]`.
fn engine(rig: &mut Rig, ctas: u32, ends: [&[u64]; 3]) -> GigaThread {
    engine_with(CONFIG, rig, ctas, ends)
}

/// As [`engine`], with another configuration. Links are at most three cycles long.
fn engine_with(config: config::GigaThread, rig: &mut Rig, ctas: u32, ends: [&[u64]; 3]) -> GigaThread {
    engine_of(config, rig, vec![(0, grid("EXIT", ctas))], ends)
}

/// As [`engine_with`], with the grids and the cycles in which the host sends them.
fn engine_of(config: config::GigaThread, rig: &mut Rig, grids: Vec<(u64, Arc<Grid>)>, ends: [&[u64]; 3]) -> GigaThread {
    let link = config.link_latency.min(CONFIG.link_latency);
    let done = |at: &u64| {
        (
            *at,
            SmEvent::CtaDone {
                index: 0,
                slot: 0,
                is_storing: false,
            },
        )
    };
    let ports = Ports {
        grid: rig.input("grid", 1, 2, grids),
        event: rig.output("event", 1, 4, |_| true),
        launch: LAUNCH.map(|name| rig.output(name, link, 2, |_| true)).into(),
        sm: ends
            .map(|ends| rig.input("ended", link, 8, ends.iter().map(done).collect()))
            .into(),
    };
    GigaThread::new(Path::root("gigathread"), config, sms(3), ports)
}

#[test]
fn ten_ctas_on_three_sms_of_two_slots_are_sent_breadth_first_and_then_as_slots_free() {
    let build = |rig: &mut Rig| engine(rig, 10, [&[300, 400, 500, 600], &[300, 400, 500], &[300, 400, 500]]);
    let events = check(build, 700).unwrap();
    let broken = |rig: &mut Rig| {
        let mut engine = build(rig);
        engine.state.resident[1] = 1;
        engine
    };
    let found = check(broken, 10).unwrap_err();
    assert!(found.contains("resident CTAs: 1, not 0"), "{found}");
    // The grid arrives in cycle 1. The first CTA is sent 20 cycles later and arrives 3 later; the next SM's CTA 2 later. An SM gets its
    // second CTA 10 cycles after its first. The end in cycle 300 is received in 303, when the SM's next CTA is sent: it arrives in 306.
    assert_eq!(times(&events, "launch0"), [24, 34, 306, 406]);
    assert_eq!(times(&events, "launch1"), [26, 36, 308]);
    assert_eq!(times(&events, "launch2"), [28, 38, 310]);
    // The last CTA ends in cycle 600. The host's event arrives a cycle after the engine's.
    assert_eq!(times(&events, "event"), [604]);
}

#[test]
fn equally_free_sms_get_ctas_in_the_order_of_smid() {
    let build = |rig: &mut Rig| {
        let mut engine = engine(rig, 6, [&[300, 310], &[300, 310], &[300, 310]]);
        engine.sms.by_smid = vec![0, 2, 1];
        engine
    };
    let events = check(build, 700).unwrap();
    // As in the test above, with the last two SMs exchanged.
    assert_eq!(times(&events, "launch0"), [24, 34]);
    assert_eq!(times(&events, "launch2"), [26, 36]);
    assert_eq!(times(&events, "launch1"), [28, 38]);
}

fn trap() -> SmEvent {
    SmEvent::Trap(Box::new(Trap {
        kind: TrapKind::Trapped,
        pc: 0,
        line: 0,
        block: [0; 3],
        thread: [0; 3],
        address: None,
        bytes: 0,
        space: "",
    }))
}

#[test]
fn trap_on_one_sm_is_reported_and_no_further_cta_is_sent() {
    let build = |rig: &mut Rig| {
        let mut engine = engine(rig, 10, [&[], &[], &[400]]);
        engine.ports.sm[1] = rig.input("trap", 1, 2, vec![(300, trap())]);
        engine
    };
    let events = check(build, 600).unwrap();
    let launched: usize = LAUNCH.iter().map(|link| times(&events, link).len()).sum();
    assert_eq!(launched, 6);
    assert_eq!(times(&events, "event"), [302]);
}

#[test]
fn depth_first_seven_ctas_fill_one_sm_after_the_other() {
    let config = config::GigaThread {
        order: CtaOrder::DepthFirst,
        ..CONFIG
    };
    let build = |rig: &mut Rig| engine_with(config, rig, 7, [&[300, 400, 510], &[350, 360], &[350, 360]]);
    let events = check(build, 700).unwrap();
    // Each SM gets its second CTA 10 cycles after its first, and the next SM its first 2 later. The seventh CTA waits for an end.
    assert_eq!(times(&events, "launch0"), [24, 34, 306]);
    assert_eq!(times(&events, "launch1"), [36, 46]);
    assert_eq!(times(&events, "launch2"), [48, 58]);
}

#[test]
fn latency_beyond_the_link_delays_ctas_and_ends() {
    let config = config::GigaThread {
        link_latency: 103,
        ..CONFIG
    };
    let build = |rig: &mut Rig| engine_with(config, rig, 7, [&[300, 400, 510], &[350, 360], &[350, 360]]);
    let events = check(build, 800).unwrap();
    // Each CTA arrives 100 cycles later than with a latency of 3. The seventh arrives 200 later: the end it waits for is also late.
    assert_eq!(times(&events, "launch0"), [124, 134, 506]);
    assert_eq!(times(&events, "launch1"), [126, 136]);
    assert_eq!(times(&events, "launch2"), [128, 138]);
}

#[test]
fn slot_stays_empty_for_its_turnover_and_the_end_of_the_grid_does_not_wait() {
    let config = config::GigaThread {
        turnover_latency: 150,
        ..CONFIG
    };
    let build = |rig: &mut Rig| engine_with(config, rig, 7, [&[300, 500, 600], &[400, 410], &[420, 430]]);
    let events = check(build, 900).unwrap();
    // As without a turnover, and the seventh CTA arrives 150 cycles later.
    assert_eq!(times(&events, "launch0"), [24, 34, 456]);
    assert_eq!(times(&events, "launch1"), [26, 36]);
    assert_eq!(times(&events, "launch2"), [28, 38]);
    assert_eq!(times(&events, "event"), [604]);
}

#[test]
fn grid_ends_after_the_stores_of_its_ctas() {
    let build = |rig: &mut Rig| {
        let done = |is_storing| SmEvent::CtaDone {
            index: 0,
            slot: 0,
            is_storing,
        };
        let ends = [
            // The end of the stores may come before the last CTA, and is announced again then.
            vec![
                (100, done(true)),
                (120, SmEvent::StoresDone),
                (300, done(true)),
                (450, SmEvent::StoresDone),
            ],
            vec![(200, done(false))],
            vec![(250, done(true)), (400, SmEvent::StoresDone)],
        ];
        let ports = Ports {
            grid: rig.input("grid", 1, 2, vec![(0, grid("EXIT", 4))]),
            event: rig.output("event", 1, 4, |_| true),
            launch: LAUNCH.map(|name| rig.output(name, 3, 2, |_| true)).into(),
            sm: ends.map(|ends| rig.input("ended", 3, 8, ends)).into(),
        };
        GigaThread::new(Path::root("gigathread"), CONFIG, sms(3), ports)
    };
    let events = check(build, 600).unwrap();
    // Sent in cycle 450, three cycles to the engine, one to the host.
    assert_eq!(times(&events, "event"), [454]);
}

/// The phases of a launch of three CTAs on an SM with two slots. The SM sends `events`, each with the cycle in which it is sent.
fn phases_with(events: impl IntoIterator<Item = (u64, SmEvent)>) -> [u64; 4] {
    let (mut to_engine, from_host) = wire();
    let (event, _to_host) = wire();
    let (launch, _to_sm) = wire_of(3, 8);
    let (mut to_front, from_sm) = wire_of(3, 8);
    let ports = Ports {
        grid: from_host,
        event,
        launch: vec![launch],
        sm: vec![from_sm],
    };
    let mut engine = GigaThread::new(Path::root("gigathread"), CONFIG, sms(1), ports);
    let mut now = Cycle::ZERO;
    to_engine.send(now, grid("EXIT", 3));
    for (sent, event) in events {
        run(&mut engine, &mut now, sent);
        to_front.send(now, event);
    }
    run(&mut engine, &mut now, 300);
    engine.state.stats.phases
}

#[test]
fn phases_of_a_launch_add_up_to_its_cycles() {
    // The ends are received three cycles after they are sent, in cycles 100, 150 and 210.
    let ended = |(sent, slot)| {
        let end = SmEvent::CtaDone {
            index: 0,
            slot,
            is_storing: false,
        };
        (sent, end)
    };
    // The grid arrives in cycle 1. The first CTA is sent 20 cycles later, and 10 cycles later the second one fills the SM. The third
    // one takes the place of the first. The second one ends in cycle 150, and no CTA is left for its slot.
    let phases = phases_with([(97, 0), (147, 1), (207, 0)].map(ended));
    assert_eq!(phases, [20, 10, 119, 60]);
}

#[test]
fn trap_ends_the_phase_in_which_it_arrives() {
    // The trap is received in cycle 100. The SM is full since cycle 31.
    assert_eq!(phases_with([(97, trap())]), [20, 10, 69, 0]);
}

#[test]
fn grid_of_fewer_ctas_per_sm_waits_for_the_turnover_of_the_last_grid() {
    let config = config::GigaThread {
        turnover_latency: 1000,
        ..CONFIG
    };
    let build = |rig: &mut Rig| {
        let second = Grid {
            id: 1,
            ctas_per_sm: 1,
            ..(*grid("EXIT", 1)).clone()
        };
        let grids = vec![(0, grid("EXIT", 6)), (310, Arc::new(second))];
        engine_of(config, rig, grids, [&[300, 301, 1500], &[300, 301], &[300, 301]])
    };
    let events = check(build, 1700).unwrap();
    // The ends of the first grid are received in cycles 303 and 304, so an SM holds no CTA from 1304 on. The CTA arrives 3 later.
    assert_eq!(times(&events, "launch0"), [24, 34, 1307]);
    assert_eq!(times(&events, "event"), [305, 1504]);
}

#[test]
fn next_grid_begins_the_launch_interval_after_the_last_cta_of_the_one_before() {
    let sent = |launch_interval| {
        let config = config::GigaThread {
            launch_interval,
            ..CONFIG
        };
        let build = |rig: &mut Rig| {
            let second = Grid {
                id: 1,
                ..(*grid("EXIT", 1)).clone()
            };
            let grids = vec![(0, grid("EXIT", 3)), (60, Arc::new(second))];
            engine_of(config, rig, grids, [&[40, 1100], &[40], &[40]])
        };
        times(&check(build, 1200).unwrap(), "launch0")
    };
    // The first grid sends its CTAs in cycles 21, 23 and 25, and ends in cycle 43. The second one arrives in cycle 61: 18 cycles do not
    // count. A CTA takes 3 cycles to its SM.
    assert_eq!(sent(0), [24, 84]);
    assert_eq!(sent(38), [24, 84], "cycle 81 either way");
    assert_eq!(sent(39), [24, 85]);
    assert_eq!(sent(1000), [24, 1046]);
}
