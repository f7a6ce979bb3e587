//! The clock and its tiles as dialogues: messages and wake-ups by cycle, and the ticks that follow.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use warpwave_hw::clock::{Clock, Stop};
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::{Sampler, TileBuilder, TileSlot};
use warpwave_hw::time::Cycle;

/// The cycles in which a component was ticked.
type Ticks = Arc<Mutex<Vec<u64>>>;

/// A component that calls `act` in each tick.
struct Actor<F> {
    path: Path,
    act: F,
    ticks: Ticks,
}

impl<F: FnMut(Cycle) -> Activity + Send + 'static> warpwave_hw::warm::Warm for Actor<F> {}

impl<F: FnMut(Cycle) -> Activity + Send + 'static> Component for Actor<F> {
    fn path(&self) -> &Path {
        &self.path
    }
    fn tick(&mut self, now: Cycle) -> Activity {
        self.ticks.lock().expect("no panic while it is held").push(now.0);
        (self.act)(now)
    }
    fn reset(&mut self) {}
    fn is_quiescent(&self) -> bool {
        true
    }
    fn probe(&self, _: &mut dyn Probe) {}
    fn stats(&self, _: &mut dyn Report) {}
}

fn put(tile: &mut TileBuilder, slot: &TileSlot, act: impl FnMut(Cycle) -> Activity + Send + 'static) -> Ticks {
    let ticks = Ticks::default();
    let path = Path::root("actor");
    let actor = Actor {
        path,
        act,
        ticks: ticks.clone(),
    };
    tile.fill(slot, actor);
    ticks
}

fn ticks(ticks: &Ticks) -> Vec<u64> {
    ticks.lock().expect("no panic while it is held").clone()
}

fn joined(from: &TileSlot, to: &TileSlot, latency: u32, depth: u32) -> (OutPort<u64>, InPort<u64>) {
    let config = LinkConfig {
        path: Path::root("link"),
        latency,
        depth,
    };
    link(&config, from, to)
}

/// A clock over one tile with one actor.
fn alone(act: impl FnMut(Cycle) -> Activity + Send + 'static) -> (Clock, Ticks) {
    let mut tile = TileBuilder::new();
    let slot = tile.slot();
    let ticks = put(&mut tile, &slot, act);
    (Clock::new(vec![tile.build()]), ticks)
}

#[test]
fn component_ticks_exactly_in_the_cycles_that_it_asks_for() {
    let mut plan = [1, 2, 65, 66, 130, 1000, 1064, 1128].into_iter();
    let (mut clock, seen) = alone(move |_| {
        plan.next()
            .map_or(Activity::Until(Cycle::NEVER), |at| Activity::Until(Cycle(at)))
    });
    assert_eq!(clock.run(Cycle::NEVER, |_| false), Stop::Idle);
    assert_eq!(ticks(&seen), [0, 1, 2, 65, 66, 130, 1000, 1064, 1128]);
}

#[test]
fn stop_condition_can_read_every_component_with_any_thread_count() {
    for threads in [1, 2, 3] {
        let tiles = (0..4).map(|n| {
            let mut tile = TileBuilder::new();
            for _ in 0..=n {
                let slot = tile.slot();
                put(&mut tile, &slot, |now| Activity::Until(now + 1));
            }
            tile.build()
        });
        let mut clock = Clock::new(tiles.collect());
        clock.set_threads(threads);
        let (mut pauses, mut shown) = (0, 0);
        let stop = clock.run_observed(Cycle::NEVER, |pause| {
            pause.each_component(&mut |component| shown += usize::from(component.path().as_str() == "actor"));
            pauses += 1;
            pause.now() >= Cycle(200)
        });
        assert_eq!(stop, Stop::Condition);
        assert!(pauses > 1);
        assert_eq!(shown, pauses * (1 + 2 + 3 + 4), "{threads} threads");
    }
}

#[test]
fn component_that_asks_for_a_past_cycle_ticks_in_the_next_one() {
    let (mut clock, seen) = alone(|now| match now.0 {
        0 => Activity::Until(Cycle(100)),
        100 => Activity::Until(Cycle(3)),
        101 => Activity::Until(Cycle(101)),
        _ => Activity::Idle,
    });
    assert_eq!(clock.run(Cycle::NEVER, |_| false), Stop::Idle);
    assert_eq!(ticks(&seen), [0, 100, 101, 102]);
}

#[test]
fn overflow_wakeups_of_two_components_stay_apart() {
    let mut tile = TileBuilder::new();
    let (a, b) = (tile.slot(), tile.slot());
    let far = put(&mut tile, &a, |now| {
        if now.0 < 500 {
            Activity::Until(Cycle(500))
        } else {
            Activity::Idle
        }
    });
    let near = put(&mut tile, &b, |now| {
        if now.0 < 300 {
            Activity::Until(now + 100)
        } else {
            Activity::Idle
        }
    });
    let mut clock = Clock::new(vec![tile.build()]);
    assert_eq!(clock.run(Cycle::NEVER, |_| false), Stop::Idle);
    assert_eq!((ticks(&far), ticks(&near)), (vec![0, 500], vec![0, 100, 200, 300]));
}

#[test]
fn limit_up_to_the_current_cycle_runs_nothing() {
    let (mut clock, seen) = alone(|_| Activity::Busy);
    assert_eq!(clock.run(Cycle(10), |_| false), Stop::Limit);
    for limit in [10, 4, 0] {
        assert_eq!(clock.run(Cycle(limit), |_| false), Stop::Limit);
        assert_eq!(clock.now(), Cycle(10), "limit {limit}");
    }
    assert_eq!(ticks(&seen), (0..10).collect::<Vec<_>>());
}

#[test]
fn run_stops_exactly_at_a_limit_inside_a_window() {
    let (mut clock, seen) = alone(|_| Activity::Busy);
    for limit in [5, 6, 70] {
        assert_eq!(clock.run(Cycle(limit), |_| false), Stop::Limit);
        assert_eq!(ticks(&seen).len() as u64, limit);
    }
}

/// A host that sends to a component, and a component that sends each message back.
fn with_host(latency: u32) -> (Clock, Ticks, OutPort<u64>, InPort<u64>) {
    let mut tile = TileBuilder::new();
    let slot = tile.slot();
    let (to, mut input) = joined(&TileSlot::outside(), &slot, latency, 2);
    let (mut output, from) = joined(&slot, &TileSlot::outside(), latency, 2);
    let seen = put(&mut tile, &slot, move |now| {
        while let Some(message) = input.recv(now) {
            output.send(now, message + now.0);
        }
        Activity::Idle
    });
    (Clock::new(vec![tile.build()]), seen, to, from)
}

#[test]
fn host_message_wakes_an_idle_machine_when_it_is_visible() {
    for latency in [1, 7, 32] {
        let (mut clock, seen, mut to, mut from) = with_host(latency);
        assert_eq!(clock.run(Cycle::NEVER, |_| false), Stop::Idle);
        clock.skip_to(Cycle(1_000_000));
        to.send(clock.now(), 5);
        let stop = clock.run(Cycle::NEVER, |now| from.is_ready(now));
        let arrival = 1_000_000 + u64::from(latency);
        assert_eq!(ticks(&seen), [0, arrival], "latency {latency}");
        if stop == Stop::Idle {
            clock.skip_to(clock.now() + u64::from(latency));
        }
        assert_eq!(from.recv(clock.now()), Some(5 + arrival));
    }
}

/// A component that sends to the host in cycle 10, and is due again in cycle 1,000,000.
fn sends_then_sleeps(latency: u32) -> (Clock, InPort<u64>) {
    let mut tile = TileBuilder::new();
    let slot = tile.slot();
    let (mut output, from) = joined(&slot, &TileSlot::outside(), latency, 2);
    put(&mut tile, &slot, move |now| {
        match now.0 {
            ..10 => return Activity::Until(Cycle(10)),
            10 => output.send(now, 5),
            _ => {}
        }
        Activity::Until(Cycle(1_000_000))
    });
    (Clock::new(vec![tile.build()]), from)
}

#[test]
fn jump_of_the_clock_does_not_pass_a_message_to_the_host() {
    for (latency, quantum) in [(1, 1), (1, 32), (7, 1), (7, 32), (32, 1), (32, 32)] {
        let (mut clock, mut from) = sends_then_sleeps(latency);
        clock.set_quantum(quantum);
        let mut taken = None;
        let stop = clock.run(Cycle::NEVER, |now| {
            taken = from.recv(now);
            taken.is_some()
        });
        assert_eq!((stop, taken), (Stop::Condition, Some(5)));
        // The tick in cycle 10, at most one window, and the longest latency of a link.
        let seen = clock.now().0;
        assert!(
            seen <= 11 + 2 * 32,
            "latency {latency}, quantum {quantum}: seen in cycle {seen}"
        );
    }
}

#[test]
fn message_to_the_host_before_the_limit_is_seen_at_the_limit() {
    for (latency, quantum) in [(1, 1), (7, 1), (7, 32), (9, 32)] {
        let (mut clock, mut from) = sends_then_sleeps(latency);
        clock.set_quantum(quantum);
        let mut taken = None;
        let stop = clock.run(Cycle(20), |now| {
            taken = from.recv(now);
            taken.is_some()
        });
        assert_eq!(
            (stop, taken),
            (Stop::Condition, Some(5)),
            "latency {latency}, quantum {quantum}"
        );
    }
}

#[test]
#[should_panic(expected = "a component is due before cycle 50")]
fn skip_past_a_due_component_panics() {
    let (mut clock, _) = alone(|_| Activity::Until(Cycle(40)));
    clock.run(Cycle(10), |_| false);
    clock.skip_to(Cycle(50));
}

/// Cycle and content of each received message.
type Received = Arc<Mutex<Vec<(u64, u64)>>>;

/// Two tiles. For each (cycle, extra) in `sends`, the first tile sends a message that is visible `32 + extra` cycles later.
fn one_sided(sends: Vec<(u64, u64)>) -> (Clock, Received) {
    let (mut a, mut b) = (TileBuilder::new(), TileBuilder::new());
    let (from, to) = (a.slot(), b.slot());
    let (mut output, mut input) = joined(&from, &to, 32, 64);
    put(&mut a, &from, move |now| {
        for &(at, extra) in sends.iter().filter(|send| send.0 == now.0) {
            output.send_after(now, extra, at);
        }
        Activity::Busy
    });
    let received = Arc::new(Mutex::new(Vec::new()));
    let record = received.clone();
    put(&mut b, &to, move |now| {
        while let Some(message) = input.recv(now) {
            record.lock().expect("no panic").push((now.0, message));
        }
        Activity::Idle
    });
    (Clock::new(vec![a.build(), b.build()]), received)
}

#[test]
fn message_between_tiles_wakes_its_receiver_when_it_is_visible() {
    let sends = [0, 1, 31, 32, 33, 63, 64, 95, 96, 127, 160];
    let (mut clock, received) = one_sided(sends.map(|at| (at, 0)).to_vec());
    clock.run(Cycle(400), |_| false);
    assert_eq!(*received.lock().expect("no panic"), sends.map(|at| (at + 32, at)));
}

#[test]
fn message_between_tiles_beyond_half_the_horizon_panics() {
    let (mut clock, _) = one_sided(vec![(31, 1)]);
    let panic = catch_unwind(AssertUnwindSafe(|| clock.run(Cycle(400), |_| false))).expect_err("too far ahead");
    assert_eq!(
        text(&*panic),
        "link, cycle 31: a message would be visible in cycle 64, more than 32 cycles after its send"
    );
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let owned = panic.downcast_ref::<String>().cloned();
    owned
        .or(panic.downcast_ref::<&str>().map(|text| text.to_string()))
        .expect("a text")
}

#[test]
fn panic_of_a_component_on_any_thread_reaches_the_caller() {
    for culprit in 0..3 {
        let tiles = (0..3).map(|n| {
            let mut tile = TileBuilder::new();
            let slot = tile.slot();
            put(&mut tile, &slot, move |now| {
                assert!(n != culprit || now.0 < 40, "cycle {now}: tile {n} is broken");
                Activity::Busy
            });
            tile.build()
        });
        let mut clock = Clock::new(tiles.collect());
        clock.set_threads(3);
        let panic = catch_unwind(AssertUnwindSafe(|| clock.run(Cycle::NEVER, |_| false))).expect_err("it panics");
        assert_eq!(text(&*panic), format!("cycle 40: tile {culprit} is broken"));
    }
}

#[test]
fn run_beyond_the_last_cycle_panics() {
    let (mut clock, seen) = alone(|now| match now.0 {
        0 => Activity::Until(Cycle(Cycle::LAST.0 - 100)),
        _ => Activity::Until(Cycle(Cycle::LAST.0 + 1)),
    });
    let panic = catch_unwind(AssertUnwindSafe(|| clock.run(Cycle::NEVER, |_| false))).expect_err("too long");
    assert_eq!(ticks(&seen), [0, Cycle::LAST.0 - 100]);
    let last = "beyond the last, 140737488355327";
    assert!(text(&*panic).ends_with(last), "{}", text(&*panic));
}

#[test]
fn panic_of_the_stop_condition_reaches_the_caller() {
    let tiles = (0..2).map(|_| {
        let mut tile = TileBuilder::new();
        let slot = tile.slot();
        put(&mut tile, &slot, |_| Activity::Busy);
        tile.build()
    });
    let mut clock = Clock::new(tiles.collect());
    clock.set_threads(2);
    let panic =
        catch_unwind(AssertUnwindSafe(|| clock.run(Cycle::NEVER, |_| panic!("enough")))).expect_err("it panics");
    assert_eq!(text(&*panic), "enough");
}

#[test]
fn reset_link_drops_the_delay_of_its_last_message() {
    let mut tile = TileBuilder::new();
    let (from, to) = (tile.slot(), tile.slot());
    let (mut output, mut input) = joined(&from, &to, 1, 4);
    output.send_after(Cycle(10), 50, 1);
    input.clear();
    output.send(Cycle(20), 2);
    assert_eq!(input.recv(Cycle(21)), Some(2));
}

#[test]
fn tile_without_components_is_never_due() {
    let mut clock = Clock::new(vec![TileBuilder::new().build()]);
    assert_eq!(clock.run(Cycle(100), |_| false), Stop::Idle);
}

/// A sampler that logs its calls.
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, text: String) {
        self.0.lock().expect("no panic while it is held").push(text);
    }
}

impl Sampler for Log {
    fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]) {
        self.add(format!("begin {now} with {}", components.len()));
    }
    fn sample(&mut self, now: Cycle, index: usize, _: &dyn Component) {
        self.add(format!("{index} at {now}"));
    }
    fn flush(&mut self, end: Cycle) {
        self.add(format!("flush {end}"));
    }
}

/// The calls of a sampler with trace window `window`. One component ticks every 10 cycles and one every 100, up to cycle 200.
fn sampler_calls(window: std::ops::Range<u64>, drive: impl FnOnce(&mut Clock)) -> Vec<String> {
    let mut tile = TileBuilder::new();
    for interval in [10, 100] {
        let slot = tile.slot();
        put(&mut tile, &slot, move |now| {
            if now.0 < 200 {
                Activity::Until(Cycle((now.0 / interval + 1) * interval))
            } else {
                Activity::Idle
            }
        });
    }
    let mut tile = tile.build();
    let log = Arc::default();
    tile.watch(
        Box::new(Log(Arc::clone(&log))),
        0b10,
        Cycle(window.start)..Cycle(window.end),
    );
    drive(&mut Clock::new(vec![tile]));
    Arc::try_unwrap(log)
        .expect("the machine is gone")
        .into_inner()
        .expect("no panic")
}

#[test]
fn sampler_gets_watched_components_in_its_trace_window_only() {
    let calls = sampler_calls(95..130, |clock| {
        clock.run(Cycle::NEVER, |_| false);
    });
    // Windows of 32 cycles begin where a component is due: 0, 40, 80, 120, 160. The pulse of cycle 100 ends in cycle 101.
    assert_eq!(
        calls,
        ["begin 80 with 2", "1 at 100", "1 at 101", "flush 112", "flush 152"]
    );
}

#[test]
fn trace_window_begins_even_if_the_clock_skips_its_first_cycle() {
    let at_the_limit = sampler_calls(195..196, |clock| {
        clock.run(Cycle(195), |_| false);
        clock.run(Cycle(199), |_| false);
    });
    assert_eq!(at_the_limit, ["begin 199 with 2", "flush 199"]);
    let waiting = sampler_calls(300..400, |clock| {
        clock.run(Cycle::NEVER, |_| false);
        clock.skip_to(Cycle(500));
    });
    assert_eq!(waiting, ["begin 500 with 2", "flush 500"]);
}

/// A component with work until cycle `until`. It never ends if that is `NEVER`.
struct Busy {
    path: Path,
    until: Cycle,
    now: Cycle,
}

impl warpwave_hw::warm::Warm for Busy {}

impl Component for Busy {
    fn path(&self) -> &Path {
        &self.path
    }
    fn tick(&mut self, now: Cycle) -> Activity {
        self.now = now;
        match self.until {
            Cycle::NEVER => Activity::Idle,
            until if now < until => Activity::Until(until),
            _ => Activity::Idle,
        }
    }
    fn reset(&mut self) {}
    fn is_quiescent(&self) -> bool {
        self.now >= self.until
    }
    fn probe(&self, _: &mut dyn Probe) {}
    fn stats(&self, _: &mut dyn Report) {}
}

/// A clock over one `Busy` component per tile.
fn busy(until: &[u64]) -> Clock {
    let tiles = until.iter().map(|&until| {
        let mut tile = TileBuilder::new();
        let slot = tile.slot();
        let path = Path::root("busy");
        let until = Cycle(until);
        tile.fill(
            &slot,
            Busy {
                path,
                until,
                now: Cycle::ZERO,
            },
        );
        tile.build()
    });
    Clock::new(tiles.collect())
}

#[test]
fn quiescence_needs_two_quiescent_steps_in_a_row() {
    for threads in [1, 2, 3] {
        let mut clock = busy(&[0, 70, 30]);
        clock.set_threads(threads);
        clock.run_until_quiescent(64);
        // Busy at 64, quiescent at 128 and 192.
        assert_eq!(clock.now(), Cycle(192), "threads: {threads}");
        clock.run_until_quiescent(64);
        assert_eq!(clock.now(), Cycle(192 + 2 * 64), "threads: {threads}");
    }
}

#[test]
fn deadlock_ends_the_run_after_one_step() {
    let mut clock = busy(&[10, Cycle::NEVER.0]);
    clock.run_until_quiescent(64);
    assert_eq!(clock.now(), Cycle(64));
}
