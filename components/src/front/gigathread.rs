//! The GigaThread engine: takes a grid from the host and hands its CTAs to the SMs as room frees.
//!
//! ```text
//!   host --Grid--> [gigathread] --CtaLaunch--> cta manager of each SM
//!        <-GridEvent-           <--SmEvent----
//! ```
//!
//! CTAs go out in row-major order, each to the SM with the most free CTA slots; among equals the first in GPC, TPC order, so
//! that the first fill is breadth first (reference rules §6).
//!
//! | what | cycles |
//! |---|---|
//! | grid accepted to first CTA | `launch_latency` |
//! | between two CTAs of the chip | `dispatch_interval`, or its warps / `warps_per_cycle` if that is more |
//! | between two CTAs of one SM | `sm_interval` |
//!
//! The CTAs of a cluster go together to SMs of one GPC (see [`gpcs`]): nothing is handed out of it before there is room for all.
//!
//! Invariants: an SM never holds more CTAs than fit; every CTA of a grid runs once; one grid runs at a time.

pub mod gpcs;

use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;

use crate::config;
use crate::front::gigathread::gpcs::Gpcs;
use crate::proto::launch::{CtaLaunch, Grid, GridEvent, SmEvent};

/// The links of the engine.
pub struct Ports {
    /// Grids to run.
    pub grid: InPort<Arc<Grid>>,
    /// What became of them.
    pub event: OutPort<GridEvent>,
    /// To each SM.
    pub launch: Vec<OutPort<CtaLaunch>>,
    /// From each SM.
    pub sm: Vec<InPort<SmEvent>>,
}

warpwave_hw::show_ports!(Ports: grid, event, launch, sm);

/// The grid that runs.
#[derive(Clone, Debug)]
struct Running {
    grid: Arc<Grid>,
    next: u64,
    done: u64,
    accepted: Cycle,
    in_clusters: bool,
}

/// What the engine counts.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Grids finished.
    pub grids: u64,
    /// CTAs handed out.
    pub ctas: u64,
    /// From a grid's acceptance to each of its CTAs' being handed out.
    pub dispatch: Latency,
}

/// The GigaThread engine.
pub struct GigaThread {
    path: Path,
    config: config::GigaThread,
    ports: Ports,
    running: Option<Running>,
    /// CTAs on each SM.
    resident: Vec<u32>,
    gpcs: Gpcs,
    next_dispatch: Cycle,
    sm_free: Vec<Cycle>,
    sent: Option<(usize, u64)>,
    stats: Stats,
}

impl GigaThread {
    /// An engine with nothing to run.
    pub fn new(path: Path, config: config::GigaThread, gpcs: Gpcs, ports: Ports) -> Self {
        let sms = ports.launch.len();
        GigaThread {
            running: None,
            resident: vec![0; sms],
            gpcs,
            next_dispatch: Cycle::ZERO,
            sm_free: vec![Cycle::ZERO; sms],
            sent: None,
            stats: Stats::default(),
            path,
            config,
            ports,
        }
    }

    fn take_events(&mut self, now: Cycle) {
        for sm in 0..self.ports.sm.len() {
            while self.ports.sm[sm].is_ready(now)
                && self.ports.event.has_room(now)
                && let Some(event) = self.ports.sm[sm].recv(now)
            {
                match event {
                    SmEvent::CtaDone { slot, .. } => self.cta_done(sm, slot, now),
                    SmEvent::Trap(trap) => {
                        // Nothing more is handed out; the host resets the machine.
                        self.running = None;
                        self.ports.event.send(now, GridEvent::Trap(trap));
                    }
                }
            }
        }
    }

    fn cta_done(&mut self, sm: usize, slot: u8, now: Cycle) {
        self.resident[sm] -= 1;
        self.gpcs.left(sm, slot);
        let Some(running) = &mut self.running else { return };
        running.done += 1;
        if running.done == running.grid.ctas() {
            let grid = running.grid.id;
            self.stats.grids += 1;
            self.running = None;
            self.ports.event.send(now, GridEvent::Done { grid, at: now });
        }
    }

    fn take_grid(&mut self, now: Cycle) {
        if self.running.is_none()
            && let Some(grid) = self.ports.grid.recv(now)
        {
            self.running = Some(Running {
                in_clusters: grid.in_clusters(),
                grid,
                next: 0,
                done: 0,
                accepted: now,
            });
            self.next_dispatch = now + u64::from(self.config.launch_latency);
        }
    }

    fn dispatch(&mut self, now: Cycle) {
        self.sent = None;
        if now < self.next_dispatch {
            return;
        }
        let Some(sm) = self.next_sm(now) else { return };
        let Some(running) = &mut self.running else { return };
        let hold = self
            .config
            .dispatch_interval
            .max(running.grid.warps().div_ceil(self.config.warps_per_cycle));
        let (index, placement) = match self.gpcs.hand_out() {
            Some((rank, placement)) => {
                let cluster = running.next / u64::from(running.grid.cluster_ctas());
                (running.grid.cluster_cta(cluster, rank), Some(placement))
            }
            None => (running.next, None),
        };
        running.next += 1;
        self.resident[sm] += 1;
        self.sm_free[sm] = now + u64::from(self.config.sm_interval);
        self.next_dispatch = now + u64::from(hold);
        self.sent = Some((sm, index));
        self.stats.ctas += 1;
        self.stats.dispatch.record(now.since(running.accepted));
        let launch = CtaLaunch {
            grid: running.grid.clone(),
            index,
            placement,
        };
        self.ports.launch[sm].send(now, launch);
    }

    /// The SM that takes the next CTA now.
    fn next_sm(&mut self, now: Cycle) -> Option<usize> {
        let running = self.running.as_ref()?;
        if !running.in_clusters {
            return self.emptiest(now);
        }
        let size = running.grid.cluster_ctas();
        let is_left = running.next < running.grid.ctas();
        let sm = self.gpcs.seat(size, running.grid.ctas_per_sm, is_left)?;
        (self.sm_free[sm] <= now && self.ports.launch[sm].has_room(now)).then_some(sm)
    }

    /// The SM with the most free slots that can take a CTA now.
    fn emptiest(&self, now: Cycle) -> Option<usize> {
        let running = self.running.as_ref()?;
        if running.next == running.grid.ctas() {
            return None;
        }
        let (mut emptiest, mut least) = (None, running.grid.ctas_per_sm);
        for (sm, &resident) in self.resident.iter().enumerate() {
            // The link, which lies elsewhere in memory, is asked last.
            if resident < least && self.sm_free[sm] <= now && self.ports.launch[sm].has_room(now) {
                (emptiest, least) = (Some(sm), resident);
            }
        }
        emptiest
    }

    /// Whether there is room for a CTA of the grid, as far as slots are concerned.
    fn has_room(&self, running: &Running) -> bool {
        match running.in_clusters {
            true => self.gpcs.may_hand_out(),
            false => self.resident.iter().any(|&n| n < running.grid.ctas_per_sm),
        }
    }

    /// When a CTA can next be handed out, as far as is known here.
    fn next_chance(&self, now: Cycle) -> Activity {
        let Some(running) = &self.running else {
            return Activity::Idle;
        };
        if running.next == running.grid.ctas() || !self.has_room(running) {
            Activity::Idle
        } else if self.next_dispatch > now + 1 {
            Activity::Until(self.next_dispatch)
        } else {
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
        self.take_events(now);
        self.take_grid(now);
        self.dispatch(now);
        let waiting = self.running.is_none() && self.ports.grid.is_ready(now);
        // Events are left only for want of room to tell of them.
        let unread = !self.ports.event.has_room(now) && self.ports.sm.iter().any(|port| port.is_ready(now));
        Activity::busy_if(waiting || unread).or(self.next_chance(now))
    }

    fn reset(&mut self) {
        self.running = None;
        self.resident.fill(0);
        self.gpcs.clear();
        self.next_dispatch = Cycle::ZERO;
        self.sm_free.fill(Cycle::ZERO);
        self.sent = None;
        self.stats = Stats::default();
        self.ports.grid.clear();
        self.ports.sm.iter_mut().for_each(InPort::clear);
    }

    fn is_quiescent(&self) -> bool {
        self.running.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("launch", 32, self.running.as_ref().map(|r| u64::from(r.grid.id)));
        probe.bit("launch_valid", Some(self.sent.is_some()));
        probe.vector("launch_sm", 12, self.sent.map(|(sm, _)| sm as u64));
        probe.vector("launch_cta", 32, self.sent.map(|(_, index)| index));
        probe.vector("ctas_launched", 32, self.running.as_ref().map(|r| r.next));
        probe.vector("ctas_done", 32, self.running.as_ref().map(|r| r.done));
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("grids", self.stats.grids);
        report.count("ctas", self.stats.ctas);
        report.latency("dispatch", &self.stats.dispatch);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        if let Some(running) = &self.running {
            say(format!(
                "{}: kernel {}: {} of {} blocks handed out, {} ended",
                self.path,
                running.grid.program.name(),
                running.next,
                running.grid.ctas(),
                running.done
            ));
        }
    }
}

#[cfg(test)]
mod tests;
