//! The engine by itself: the contract of a component, and who gets which CTA when, counted by hand.

use warpwave_hw::rig::{Event, Rig, check};
use warpwave_hw::tile::TileBuilder;

use super::*;
use crate::dialogue::{all, grid, run, wire_of};
use crate::proto::launch::{Trap, TrapKind};

const CONFIG: config::GigaThread = config::GigaThread {
    launch_latency: 20,
    dispatch_interval: 2,
    warps_per_cycle: 4,
    link_latency: 3,
    sm_interval: 10,
};

const LAUNCH: [&str; 3] = ["launch0", "launch1", "launch2"];

/// Three SMs that report the end of a CTA in these cycles each.
fn engine(rig: &mut Rig, ctas: u32, ends: [&[u64]; 3]) -> GigaThread {
    let way = CONFIG.link_latency;
    let done = |at: &u64| (*at, SmEvent::CtaDone { index: 0, slot: 0 });
    let ports = Ports {
        grid: rig.input("grid", 1, 2, vec![(0, grid("EXIT", ctas))]),
        event: rig.output("event", 1, 4, |_| true),
        launch: LAUNCH.map(|name| rig.output(name, way, 2, |_| true)).into(),
        sm: ends
            .map(|ends| rig.input("ended", way, 8, ends.iter().map(done).collect()))
            .into(),
    };
    GigaThread::new(
        Path::root("gigathread"),
        CONFIG,
        Gpcs::new(std::iter::once(0..3).collect()),
        Promise::of(&TileBuilder::new().slot()),
        ports,
    )
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

/// The engine with its ends: what the SMs say, and what they get.
struct Bench {
    engine: GigaThread,
    promise: Promise,
    now: Cycle,
    ended: Vec<OutPort<SmEvent>>,
    launched: Vec<InPort<CtaLaunch>>,
    _host: (OutPort<Arc<Grid>>, InPort<GridEvent>),
}

impl Bench {
    /// Three SMs; a grid arrives in cycle 1.
    fn new(grid: Arc<Grid>) -> Self {
        let ((mut to, from_host), (to_host, events)) = (wire_of(1, 2), wire_of(1, 4));
        to.send(Cycle::ZERO, grid);
        let (launch, launched) = (0..3).map(|_| wire_of(CONFIG.link_latency, 2)).unzip();
        let (ended, sm) = (0..3).map(|_| wire_of(CONFIG.link_latency, 8)).unzip();
        let ports = Ports {
            grid: from_host,
            event: to_host,
            launch,
            sm,
        };
        let promise = Promise::of(&TileBuilder::new().slot());
        let gpcs = Gpcs::new(std::iter::once(0..3).collect());
        Bench {
            engine: GigaThread::new(Path::root("gigathread"), CONFIG, gpcs, promise.clone(), ports),
            promise,
            now: Cycle::ZERO,
            ended,
            launched,
            _host: (to, events),
        }
    }

    /// Whether the engine promises after its tick in a cycle; the SMs take what they get.
    fn promises(&mut self, at: u64) -> bool {
        while self.now.0 <= at {
            let next = self.now.0 + 1;
            run(&mut self.engine, &mut self.now, next);
            self.launched.iter_mut().for_each(|port| drop(all(port, self.now)));
        }
        self.promise.holds()
    }

    /// The engine hears of an end in a cycle to come.
    fn end(&mut self, sm: usize, slot: u8, heard: u64) {
        let at = Cycle(heard - u64::from(CONFIG.link_latency));
        self.ended[sm].send(at, SmEvent::CtaDone { index: 0, slot });
    }
}

#[test]
fn only_answers_are_promised_while_all_sms_are_full_or_all_blocks_are_out() {
    let mut bench = Bench::new(grid("EXIT", 9));
    assert_eq!([0, 21, 34].map(|at| bench.promises(at)), [false; 3], "there is room");
    // The sixth goes out 14 cycles after the first.
    assert!(bench.promises(35) && bench.promises(49));
    bench.end(0, 0, 50);
    assert!(bench.promises(50), "the next goes out at once");
    [1, 2].into_iter().for_each(|sm| bench.end(sm, 0, 60));
    // One block in two cycles: the other SM has room meanwhile.
    assert_eq!([60, 61, 62].map(|at| bench.promises(at)), [false, false, true]);
    // Nine are out: room makes no difference any more.
    [0, 1, 2].into_iter().for_each(|sm| bench.end(sm, 0, 70));
    assert!(bench.promises(80));
    [0, 1, 2].into_iter().for_each(|sm| bench.end(sm, 1, 90));
    assert!(!bench.promises(90), "the next grid may begin anywhere");
}

#[test]
fn cluster_that_waits_may_go_to_an_sm_that_did_not_end_a_block_so_nothing_is_promised() {
    let mut grid = grid("EXIT", 8);
    Arc::get_mut(&mut grid).expect("nobody else has it").cluster = [2, 1, 1];
    let mut bench = Bench::new(grid);
    // Three clusters fill the SMs by cycle 35; the fourth waits for two slots.
    assert!(!bench.promises(40));
    [0, 1].into_iter().for_each(|sm| bench.end(sm, 0, 50));
    assert_eq!([50, 51, 52].map(|at| bench.promises(at)), [false, false, true]);
}
