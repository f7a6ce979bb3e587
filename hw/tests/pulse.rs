//! A pulse: a signal that a tick sets and the next tick clears. A waveform shows its end though no tick was due then.

use std::sync::{Arc, Mutex};

use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::{Sampler, TileBuilder};
use warpwave_hw::time::Cycle;

/// Shows a pulse in each cycle in which it is due: 0, 7 and 8.
struct Pulse {
    path: Path,
    shows: bool,
    due: Cycle,
    ticks: Arc<Mutex<u32>>,
}

impl warpwave_hw::warm::Warm for Pulse {}

impl Component for Pulse {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        *self.ticks.lock().expect("no panic while it is held") += 1;
        self.shows = now == self.due;
        if self.shows {
            self.due = match now.0 {
                0 => Cycle(7),
                7 => Cycle(8),
                _ => Cycle::NEVER,
            };
        }
        match self.due {
            Cycle::NEVER => Activity::Idle,
            due => Activity::Until(due),
        }
    }

    fn reset(&mut self) {
        self.shows = false;
        self.due = Cycle::ZERO;
    }

    fn is_quiescent(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("shows", Some(self.shows));
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
        let shown = bit.0.expect("a pulse shows a bit");
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

/// What the samples of a run show with a window from cycle `from` on, and the ticks of the run.
fn watched_from(from: u64) -> (Vec<(u64, bool)>, u32) {
    let (seen, ticks) = (Seen::default(), Arc::<Mutex<u32>>::default());
    let mut tile = TileBuilder::new();
    let slot = tile.slot();
    let pulse = Pulse {
        path: Path::root("pulse"),
        shows: false,
        due: Cycle::ZERO,
        ticks: ticks.clone(),
    };
    tile.fill(&slot, pulse);
    let mut tile = tile.build();
    tile.watch(Box::new(seen.clone()), 1, Cycle(from)..Cycle::NEVER);
    let mut clock = Clock::new(vec![tile]);
    clock.run(Cycle(5), |_| false);
    clock.run(Cycle(50), |_| false);
    clock.skip_to(Cycle(60));
    let seen = seen.0.lock().expect("no panic").clone();
    let ticks = *ticks.lock().expect("no panic");
    (seen, ticks)
}

#[test]
fn watched_pulse_ends_in_the_cycle_after_its_own() {
    let (seen, ticks) = watched_from(0);
    let samples = [(0, true), (1, false), (7, true), (8, true), (9, false)];
    assert_eq!((seen[0], &seen[1..]), ((0, false), &samples[..]));
    assert_eq!(ticks, 5);
}

#[test]
fn pulse_that_no_sampler_watches_costs_one_tick() {
    let (_, ticks) = watched_from(55);
    assert_eq!(ticks, 3);
}
