//! The GigaThread engine: takes a grid from the host and sends its CTAs to SMs with free slots.
//!
//! ```text
//!   host --Grid--> [gigathread] --CtaLaunch--> cta manager of each SM
//!        <-GridEvent-           <--SmEvent----
//! ```
//!
//! CTAs are sent in row-major order. The policy `gigathread.order` (module `order`) chooses the SM of each CTA. It sees the SMs in the order
//! of `%smid`, which goes around the GPCs, TPC by TPC. Ports are in GPC, TPC order.
//!
//! | From, to | Cycles |
//! |---|---|
//! | grid accepted to first CTA | `launch_latency` |
//! | last CTA of a grid to first CTA of the next one, less the time from the end of a grid to the next | at least `launch_interval` |
//! | between two CTAs of the chip | max(`dispatch_interval`, ceil(warps of the CTA / `warps_per_cycle`)) |
//! | between two CTAs of one SM | `sm_interval` |
//! | end of a CTA received to the next CTA in its slot | `turnover_latency` |
//!
//! A grid ends with its last CTA, or with the last store of an ended CTA.
//!
//! Stages of `tick`: take the events of SMs, free slots, take a grid if none runs, send at most one CTA.
//!
//! The CTAs of a cluster go to SMs of one GPC (`gpcs`). The first CTA is sent once all have a slot.
//!
//! # Invariants
//! - An SM never holds more CTAs than fit.
//! - Every CTA of a grid runs once. One grid runs at a time.

mod gpcs;
mod order;

use std::ops::Range;
use std::sync::Arc;

use tracing::debug;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;

use crate::config;
use crate::front::delay_queue::DelayQueue;
use crate::front::gigathread::gpcs::Gpcs;
pub use crate::front::gigathread::gpcs::Sms;
use crate::front::gigathread::order::Candidate;
use crate::proto::launch::{CtaLaunch, Grid, GridEvent, SmEvent};

/// The links of the engine.
pub struct Ports {
    /// Grids to run.
    pub grid: InPort<Arc<Grid>>,
    /// Ends of grids, and traps.
    pub event: OutPort<GridEvent>,
    /// To each SM.
    pub launch: Vec<OutPort<CtaLaunch>>,
    /// From each SM.
    pub sm: Vec<InPort<SmEvent>>,
}

warpwave_hw::show_ports!(Ports: grid, event, launch, sm);

/// The running grid.
#[derive(Clone, Debug)]
struct Running {
    grid: Arc<Grid>,
    /// CTAs sent. In a grid without clusters, also the index of the next CTA.
    n_sent: u64,
    /// CTAs that have ended.
    n_done: u64,
    /// Cycle in which the grid arrived.
    accepted: Cycle,
    phase: Phase,
    /// Cycle in which `phase` began.
    phase_since: Cycle,
    in_clusters: bool,
}

/// The phases of a launch, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No CTA was sent.
    Launch,
    /// CTAs fill the slots, until no slot is free or no CTA is left.
    Ramp,
    /// After the ramp, until a CTA ends with no CTA left to send.
    Steady,
    /// From the end of a CTA with no CTA left to take its slot, to the end of the last CTA and its stores.
    Tail,
}

/// Counters of the engine.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Grids finished.
    pub grids: u64,
    /// CTAs sent.
    pub ctas: u64,
    /// CTAs that have ended.
    pub ctas_done: u64,
    /// Cycles of the launch, ramp, steady and tail phases. A phase counts when it ends.
    pub phases: [u64; 4],
    /// Cycles from the arrival of a grid to the sending of each of its CTAs.
    pub dispatch: Latency,
}

/// Counter of each phase.
const PHASES: [&str; 4] = ["launch_cycles", "ramp_cycles", "steady_cycles", "tail_cycles"];

impl Running {
    /// Ends the phases before `next`.
    fn begin_phase(&mut self, next: Phase, now: Cycle, stats: &mut Stats) {
        if (self.phase as usize) < next as usize {
            stats.phases[self.phase as usize] += now.since(self.phase_since);
            (self.phase, self.phase_since) = (next, now);
        }
    }

    fn all_sent(&self) -> bool {
        self.n_sent == self.grid.ctas()
    }
}

/// The GigaThread engine.
pub struct GigaThread {
    path: Path,
    config: config::GigaThread,
    sms: Sms,
    ports: Ports,
    state: State,
}

/// State that `reset` clears.
struct State {
    running: Option<Running>,
    /// Slots in use on each SM: of CTAs sent and not ended, and of ended ones in `freeing`.
    resident: Vec<u32>,
    /// Slots of ended CTAs that no CTA can take yet.
    freeing: DelayQueue<u8>,
    /// The cluster to send, and the slots that clusters occupy.
    clusters: Gpcs,
    /// SMs that have stores of ended warps in flight.
    storing: Vec<bool>,
    /// CTAs sent, held before their link for the part of `link_latency` that the link does not model.
    launches: DelayQueue<CtaLaunch>,
    /// Events of SMs, held after their link for the part of `link_latency` that the link does not model.
    events: DelayQueue<SmEvent>,
    /// First cycle in which the chip may send a CTA.
    next_dispatch: Cycle,
    /// First cycle in which the next grid may send its first CTA, if it arrives before this one ends.
    next_launch: Cycle,
    /// Cycles left until then at the end of the last grid.
    launch_rest: u64,
    /// First cycle in which each SM may be sent a CTA.
    sm_free_at: Vec<Cycle>,
    /// SM and index of the CTA that the last tick sent, for the waveform.
    sent: Option<(usize, u64)>,
    stats: Stats,
}

impl State {
    fn new(config: &config::GigaThread, gpcs: &[Range<usize>], ports: &Ports) -> Self {
        let n_sms = ports.launch.len();
        let link = ports.launch.first().map_or(0, OutPort::latency);
        // The links model the first cycles of `link_latency`. The queues `launches` and `events` add the rest.
        let extra = u64::from(config.link_latency).saturating_sub(link);
        State {
            running: None,
            resident: vec![0; n_sms],
            freeing: DelayQueue::new(config.turnover_latency.into()),
            clusters: Gpcs::new(gpcs.to_vec(), config.order),
            storing: vec![false; n_sms],
            launches: DelayQueue::new(extra),
            events: DelayQueue::new(extra),
            next_dispatch: Cycle::ZERO,
            next_launch: Cycle::ZERO,
            launch_rest: 0,
            sm_free_at: vec![Cycle::ZERO; n_sms],
            sent: None,
            stats: Stats::default(),
        }
    }
}

impl GigaThread {
    /// An idle engine.
    pub fn new(path: Path, config: config::GigaThread, sms: Sms, ports: Ports) -> Self {
        GigaThread {
            state: State::new(&config, &sms.gpcs, &ports),
            path,
            config,
            sms,
            ports,
        }
    }

    /// The running grid, and how many of its CTAs were sent and have ended.
    pub(crate) fn running(&self) -> Option<(&Grid, [u64; 2])> {
        let running = self.state.running.as_ref()?;
        Some((&running.grid, [running.n_sent, running.n_done]))
    }

    fn take_events(&mut self, now: Cycle) {
        for (sm, port) in self.ports.sm.iter_mut().enumerate() {
            while port.is_ready(now)
                && let Some(event) = port.recv(now)
            {
                self.state.events.push(now, sm, event);
            }
        }
        // Any event can be the grid's last, or a trap: both need room in the link to the host.
        while self.ports.event.has_room(now)
            && let Some((sm, event)) = self.state.events.pop_due(now)
        {
            match event {
                SmEvent::CtaDone { slot, is_storing, .. } => {
                    self.state.storing[sm] |= is_storing;
                    self.cta_done(sm, slot, now);
                }
                SmEvent::StoresDone => {
                    self.state.storing[sm] = false;
                    self.end_grid(now);
                }
                SmEvent::Trap(trap) => {
                    // A trap ends the launch: no further CTA is sent, and the host resets the machine.
                    let State { running, stats, .. } = &mut self.state;
                    if let Some(running) = running.take() {
                        stats.phases[running.phase as usize] += now.since(running.phase_since);
                    }
                    self.ports.event.send(now, GridEvent::Trap(trap));
                }
            }
        }
    }

    fn cta_done(&mut self, sm: usize, slot: u8, now: Cycle) {
        let state = &mut self.state;
        // The SM has freed the slot already. The turnover is the front end's own delay before it fills the slot.
        state.freeing.push(now, sm, slot);
        // After a trap no grid runs, but CTAs still end.
        let Some(running) = &mut state.running else { return };
        running.n_done += 1;
        state.stats.ctas_done += 1;
        if running.all_sent() {
            // From here on slots run empty: no CTA is left to take them.
            running.begin_phase(Phase::Tail, now, &mut state.stats);
        }
        self.end_grid(now);
    }

    /// Ends the grid if every CTA has ended and no store is in flight.
    fn end_grid(&mut self, now: Cycle) {
        let state = &mut self.state;
        let Some(running) = &state.running else { return };
        if running.n_done == running.grid.ctas() && !state.storing.contains(&true) {
            let grid = running.grid.id;
            state.stats.grids += 1;
            state.stats.phases[Phase::Tail as usize] += now.since(running.phase_since);
            state.running = None;
            state.launch_rest = state.next_launch.0.saturating_sub(now.0);
            // `take_events` has seen room in this link.
            self.ports.event.send(now, GridEvent::Done { grid, at: now });
        }
    }

    /// Frees the slots whose turnover is over.
    fn free_slots(&mut self, now: Cycle) {
        let state = &mut self.state;
        while let Some((sm, slot)) = state.freeing.pop_due(now) {
            state.resident[sm] -= 1;
            state.clusters.free_slot(sm, slot);
        }
    }

    fn take_grid(&mut self, now: Cycle) {
        // One grid at a time: the next one waits in its link. Concurrent kernels are not modelled.
        if self.state.running.is_none()
            && let Some(grid) = self.ports.grid.recv(now)
        {
            let latency = self.config.launch_latency;
            debug!(cycle = now.0, path = %self.path, ctas = grid.ctas(), latency, "grid {} is accepted", grid.id);
            self.state.running = Some(Running {
                in_clusters: grid.in_clusters(),
                grid,
                n_sent: 0,
                n_done: 0,
                accepted: now,
                phase: Phase::Launch,
                phase_since: now,
            });
            // The host's time between two grids does not count: on silicon the interval was measured with grids in a queue.
            self.state.next_dispatch = now + u64::from(latency).max(self.state.launch_rest);
        }
    }

    fn dispatch(&mut self, now: Cycle) {
        self.state.sent = None;
        if now < self.state.next_dispatch {
            return;
        }
        let Some(sm) = self.next_sm(now) else { return };
        let state = &mut self.state;
        let Some(running) = &mut state.running else { return };
        // A CTA of many warps takes the front end longer than the interval between small CTAs.
        let set_up = running.grid.warps().div_ceil(self.config.warps_per_cycle);
        let interval = self.config.dispatch_interval.max(set_up);
        // The CTAs of a cluster are neighbours in up to three dimensions, so their linear indices are not consecutive.
        let (index, placement) = match state.clusters.send_next() {
            Some((rank, placement)) => {
                let cluster = running.n_sent / u64::from(running.grid.cluster_ctas());
                (running.grid.cluster_cta(cluster, rank), Some(placement))
            }
            None => (running.n_sent, None),
        };
        running.n_sent += 1;
        // Counted at once: the SM itself reports only ends.
        state.resident[sm] += 1;
        state.sm_free_at[sm] = now + u64::from(self.config.sm_interval);
        state.next_dispatch = now + u64::from(interval);
        state.next_launch = now + u64::from(self.config.launch_interval);
        state.sent = Some((sm, index));
        state.stats.ctas += 1;
        state.stats.dispatch.record(now.since(running.accepted));
        let launch = CtaLaunch {
            grid: running.grid.clone(),
            index,
            placement,
        };
        running.begin_phase(Phase::Ramp, now, &mut state.stats);
        state.launches.push(now, sm, launch);
        self.end_ramp(now);
    }

    /// Ends the ramp once no slot is free or no CTA is left.
    fn end_ramp(&mut self, now: Cycle) {
        let is_full = |running: &Running| running.all_sent() || !self.may_have_slot(running);
        let ends = |running: &Running| running.phase == Phase::Ramp && is_full(running);
        if !self.state.running.as_ref().is_some_and(ends) {
            return;
        }
        let State { running, stats, .. } = &mut self.state;
        if let Some(running) = running {
            running.begin_phase(Phase::Steady, now, stats);
        }
    }

    /// The SM to which the next CTA is sent now, if any.
    fn next_sm(&mut self, now: Cycle) -> Option<usize> {
        let running = self.state.running.as_ref()?;
        let has_next = running.n_sent < running.grid.ctas();
        let per_sm = running.grid.ctas_per_sm;
        if !running.in_clusters {
            let sms = self.sms.by_smid.iter().map(|&index| Candidate {
                index,
                // Slots in turnover can be of the last grid, which may have had more CTAs per SM.
                free_slots: per_sm.saturating_sub(self.state.resident[index]),
            });
            return has_next.then(|| self.config.order.choose(sms, |sm| self.can_send(sm, now)))?;
        }
        let size = running.grid.cluster_ctas();
        // A cluster's SM is fixed at its placement. No other SM gets a CTA while that SM cannot be sent one.
        let sm = self.state.clusters.next_sm(size, per_sm, has_next)?;
        self.can_send(sm, now).then_some(sm)
    }

    /// True if the interval and the link of an SM allow a CTA now.
    #[inline]
    fn can_send(&self, sm: usize, now: Cycle) -> bool {
        self.state.sm_free_at[sm] <= now && self.ports.launch[sm].has_room(now)
    }

    /// True if a slot may be free for the next CTA of the grid.
    fn may_have_slot(&self, running: &Running) -> bool {
        match running.in_clusters {
            true => self.state.clusters.may_have_slot(),
            false => self.state.resident.iter().any(|&n| n < running.grid.ctas_per_sm),
        }
    }

    /// The next cycle in which a CTA may be sent. The end of a CTA comes as a message, which wakes the engine.
    fn dispatch_activity(&self, now: Cycle) -> Activity {
        let Some(running) = &self.state.running else {
            return Activity::Idle;
        };
        if running.all_sent() || !self.may_have_slot(running) {
            Activity::Idle
        } else if self.state.next_dispatch > now + 1 {
            Activity::Until(self.state.next_dispatch)
        } else {
            // A slot may be free, but the interval or the link of its SM delays the CTA.
            Activity::Busy
        }
    }
}

warpwave_hw::warm!(GigaThread);

impl Component for GigaThread {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // Ends first: with a turnover of 0, this tick can fill the slot of a CTA that has just ended.
        self.take_events(now);
        self.free_slots(now);
        self.take_grid(now);
        // After `take_grid`, so with a launch latency of 0 a grid's first CTA is sent in the cycle of the grid's arrival.
        self.dispatch(now);
        // Last, so a CTA without extra latency enters its link in the cycle of its dispatch.
        self.state.launches.send_due(now, &mut self.ports.launch);
        let waiting = self.state.running.is_none() && self.ports.grid.is_ready(now);
        let State {
            launches,
            events,
            freeing,
            ..
        } = &self.state;
        let delayed = [launches.next_due(), events.next_due(), freeing.next_due()];
        let delayed = delayed.into_iter().flatten().min();
        let next = delayed.map_or(Activity::Idle, |due| Activity::Until(due.max(now + 1)));
        Activity::busy_if(waiting).or(next).or(self.dispatch_activity(now))
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config, &self.sms.gpcs, &self.ports);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        self.state.running.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("launch", 32, self.state.running.as_ref().map(|r| u64::from(r.grid.id)));
        probe.bit("launch_valid", Some(self.state.sent.is_some()));
        probe.vector("launch_sm", 12, self.state.sent.map(|(sm, _)| sm as u64));
        probe.vector("launch_cta", 32, self.state.sent.map(|(_, index)| index));
        probe.vector("ctas_launched", 32, self.state.running.as_ref().map(|r| r.n_sent));
        probe.vector("ctas_done", 32, self.state.running.as_ref().map(|r| r.n_done));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// No CTA is lost: CTAs sent = resident + ended. No SM has more CTAs than slots.
    fn invariants(&self, check: &mut Invariants) {
        let Some(running) = &self.state.running else { return };
        let resident: u64 = self.state.resident.iter().map(|&n| u64::from(n)).sum();
        check.at_most("CTAs sent", running.n_sent, running.grid.ctas());
        let freeing = self.state.freeing.len() as u64;
        check.equal("resident CTAs", resident + running.n_done, running.n_sent + freeing);
        for (sm, &n) in self.state.resident.iter().enumerate() {
            // Slots in turnover can be of the last grid, which may have had more CTAs per SM. The SM gets no CTA of this grid before it has
            // fewer of them.
            let turnover = self.state.freeing.n_of(sm) as u64;
            let limit = u64::from(running.grid.ctas_per_sm).max(turnover);
            check.at_most(format_args!("CTAs of SM {sm}"), n.into(), limit);
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("grids", self.state.stats.grids);
        report.count("ctas", self.state.stats.ctas);
        report.count("ctas_done", self.state.stats.ctas_done);
        let mut phases = self.state.stats.phases;
        // A stopped run ends in a phase.
        if let (Some(until), Some(running)) = (report.until(), &self.state.running) {
            phases[running.phase as usize] += until.since(running.phase_since);
        }
        for (name, cycles) in PHASES.into_iter().zip(phases) {
            report.count(name, cycles);
        }
        report.latency("dispatch", &self.state.stats.dispatch);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        if let Some(running) = &self.state.running {
            let (n_sent, n) = (running.n_sent, running.grid.ctas());
            let waiting = match n - n_sent {
                0 => String::new(),
                others => format!("; the {others} others wait for room"),
            };
            say(format!(
                "{}: kernel {}: {n_sent} of {n} blocks sent, {} ended{waiting}",
                self.path,
                running.grid.program.name(),
                running.n_done
            ));
        }
    }
}

#[cfg(test)]
mod tests;
