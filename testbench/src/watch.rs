//! Collects the events of all SMs while the machine runs, and delivers them to listeners.
//!
//! ```text
//! sm[0] log --+
//! sm[1] log --+-- EventCollector::collect, after each quantum --> Listener: requests, ...
//! ```
//!
//! A listener receives the events of an SM by cycle, in a fixed order within a cycle. So the order is the same for any quantum,
//! thread count and tick order. Without listeners, an event costs one branch.

pub mod requests;

pub mod transaction;

pub mod pipeline;

pub mod profile;

pub mod issues;

use warpwave_components::gpu::Gpu;
use warpwave_components::proto::event::{Event, EventBatch, Log, Request};
use warpwave_components::proto::mem::Stage;
use warpwave_hw::time::Cycle;

/// Receives events and completed requests.
pub trait Listener {
    /// An event of a warp in SM `sm`.
    fn event(&mut self, _sm: u16, _event: &Event) {}
    /// A completed request: its response has arrived at the LSU of SM `sm`.
    fn request(&mut self, _sm: u16, _request: &Request) {}
}

/// The event logs of all SMs, and the events that are not delivered yet.
pub struct EventCollector {
    logs: Vec<Log>,
    pending: Vec<EventBatch>,
}

impl EventCollector {
    /// Subscribes to the events of a machine.
    pub fn begin(gpu: &mut Gpu) -> Self {
        let logs = gpu.subscribe();
        let pending = logs.iter().map(|_| EventBatch::default()).collect();
        EventCollector { logs, pending }
    }

    /// Delivers the events before cycle `now`. Call it between quanta.
    pub fn collect(&mut self, now: Cycle, listeners: &mut [&mut dyn Listener]) {
        for (sm, (log, batch)) in self.logs.iter().zip(&mut self.pending).enumerate() {
            log.drain_into(batch);
            // A wait that ends with the quantum has the next cycle. The other events of that cycle are not logged yet, so it
            // stays in the batch.
            batch.events.sort_unstable();
            let complete = batch.events.partition_point(|event| event.at < now);
            let mut requests = batch.requests.iter().peekable();
            for event in &batch.events[..complete] {
                // Requests are in the order of their responses, so one pass merges them with the events.
                while let Some(request) = requests.next_if(|request| returned(request) <= event.at) {
                    listeners.iter_mut().for_each(|to| to.request(sm as u16, request));
                }
                listeners.iter_mut().for_each(|to| to.event(sm as u16, event));
            }
            for request in requests {
                listeners.iter_mut().for_each(|to| to.request(sm as u16, request));
            }
            batch.events.drain(..complete);
            // A request is logged when it is complete, so none waits for the next call.
            batch.requests.clear();
        }
    }
}

fn returned(request: &Request) -> Cycle {
    request.stamps.0[Stage::Return as usize]
}
