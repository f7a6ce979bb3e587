//! Delivers the events of the SMs to listeners while the machine runs.
//!
//! ```text
//! sm[0] log --+
//! sm[1] log --+-- Watch::collect, after each quantum --> Listener: requests, ...
//! ```
//!
//! A listener receives the events of each SM by cycle, and in a fixed order within a cycle. So the order is the same for any quantum,
//! thread count and tick order. A machine without listeners pays a branch per event.

pub mod requests;

pub mod pipeline;

pub mod profile;

use warpwave_components::gpu::Gpu;
use warpwave_components::proto::event::{Event, EventBatch, Log, Request};
use warpwave_components::proto::mem::Stage;
use warpwave_hw::time::Cycle;

/// Is told what happens.
pub trait Listener {
    /// Something happened to a warp of SM `sm`.
    fn event(&mut self, _sm: u16, _event: &Event) {}
    /// A request is back at the LSU of SM `sm`.
    fn request(&mut self, _sm: u16, _request: &Request) {}
}

/// The logs of a machine's SMs, and what of them has not been passed on.
pub struct Watch {
    logs: Vec<Log>,
    told: Vec<EventBatch>,
}

impl Watch {
    /// Watches a machine from now on.
    pub fn begin(gpu: &mut Gpu) -> Self {
        let logs = gpu.subscribe();
        let told = logs.iter().map(|_| EventBatch::default()).collect();
        Watch { logs, told }
    }

    /// Passes on what happened before cycle `now`. To be called between quanta.
    pub fn collect(&mut self, now: Cycle, listeners: &mut [&mut dyn Listener]) {
        for (sm, (log, told)) in self.logs.iter().zip(&mut self.told).enumerate() {
            log.drain_into(told);
            // A wait that ends with the quantum belongs to the next cycle, whose other events are still to come.
            told.events.sort_unstable();
            let complete = told.events.partition_point(|event| event.at < now);
            let mut requests = told.requests.iter().peekable();
            for event in &told.events[..complete] {
                while let Some(request) = requests.next_if(|request| returned(request) <= event.at) {
                    listeners.iter_mut().for_each(|to| to.request(sm as u16, request));
                }
                listeners.iter_mut().for_each(|to| to.event(sm as u16, event));
            }
            for request in requests {
                listeners.iter_mut().for_each(|to| to.request(sm as u16, request));
            }
            told.events.drain(..complete);
            told.requests.clear();
        }
    }
}

fn returned(request: &Request) -> Cycle {
    request.stamps.0[Stage::Return as usize]
}
