//! What a component shows that changes by itself: it costs no tick, and a waveform has it all the same.

use std::sync::{Arc, Mutex};

use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, Sampler};
use warpwave_hw::stats::Report;
use warpwave_hw::tile::TileBuilder;
use warpwave_hw::time::Cycle;

/// Rings from cycle 7 on, without being ticked again after its first tick.
struct EggTimer {
    path: Path,
    rings: bool,
    ticks: Arc<Mutex<u32>>,
}

impl warpwave_hw::warm::Warm for EggTimer {}

impl Component for EggTimer {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        *self.ticks.lock().expect("no panic while it is held") += 1;
        self.rings |= now.0 >= 7;
        Activity::Idle
    }

    fn drifts_at(&self) -> Cycle {
        if self.rings { Cycle::NEVER } else { Cycle(7) }
    }

    fn catch_up(&mut self, now: Cycle) {
        self.rings |= now.0 > 7;
    }

    fn reset(&mut self) {
        self.rings = false;
    }

    fn is_quiescent(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("rings", Some(self.rings));
    }

    fn stats(&self, _: &mut dyn Report) {}
}

/// The last bit that was shown.
#[derive(Default)]
struct Bit(Option<bool>);

impl Probe for Bit {
    fn bit(&mut self, _: &'static str, value: Option<bool>) {
        self.0 = value;
    }
    fn vector(&mut self, _: &'static str, _: u32, _: Option<u64>) {}
    fn state(&mut self, _: &'static str, _: &'static [&'static str], _: Option<usize>) {}
    fn enter(&mut self, _: &'static str, _: usize) {}
    fn leave(&mut self) {}
}

/// The cycles at which it was looked at, and what it showed.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(u64, bool)>>>);

impl Seen {
    fn note(&self, now: Cycle, component: &dyn Component) {
        let mut bit = Bit::default();
        component.probe(&mut bit);
        let shown = bit.0.expect("a timer shows a bit");
        self.0.lock().expect("no panic while it is held").push((now.0, shown));
    }
}

impl Sampler for Seen {
    fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]) {
        self.note(now, components[0].as_ref());
    }
    fn sample(&mut self, now: Cycle, _: usize, component: &dyn Component) {
        self.note(now, component);
    }
    fn flush(&mut self, _: Cycle) {}
}

/// What a window that begins in cycle `from` shows, and the ticks of the run.
fn watched_from(from: u64) -> (Vec<(u64, bool)>, u32) {
    let (seen, ticks) = (Seen::default(), Arc::<Mutex<u32>>::default());
    let mut tile = TileBuilder::new();
    let slot = tile.slot();
    let timer = EggTimer {
        path: Path::root("timer"),
        rings: false,
        ticks: ticks.clone(),
    };
    tile.fill(&slot, timer);
    let mut tile = tile.build();
    tile.watch(Box::new(seen.clone()), 1, Cycle(from)..Cycle::NEVER);
    let mut clock = Clock::new(vec![tile]);
    clock.run(Cycle(5), |_| false);
    clock.run(Cycle(50), |_| false);
    clock.wait_until(Cycle(60));
    let seen = seen.0.lock().expect("no panic").clone();
    let ticks = *ticks.lock().expect("no panic");
    (seen, ticks)
}

#[test]
fn what_drifts_is_shown_in_its_cycle() {
    let (seen, ticks) = watched_from(0);
    assert_eq!(seen, [(0, false), (0, false), (1, false), (7, true)]);
    assert_eq!(ticks, 3);
}

#[test]
fn window_that_begins_later_shows_what_has_drifted_before() {
    let (seen, ticks) = watched_from(55);
    assert_eq!(seen, [(60, true)]);
    assert_eq!(ticks, 1, "nobody looked when it rang");
}
