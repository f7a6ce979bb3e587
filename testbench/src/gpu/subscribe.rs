//! Delivers events of all SMs to closures, in one order for the whole machine.

use warpwave_components::gpu::Gpu;
use warpwave_components::proto::event::{Event as WarpEvent, Request};
use warpwave_components::proto::mem::Stage;
use warpwave_hw::time::Cycle;

use crate::watch::{EventCollector, Listener};

/// An event in an SM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A step of a warp, such as its start, a fetch or an issue, or a step of one of its instructions.
    Warp {
        /// Number of the SM.
        sm: u16,
        /// The kind, the cycle and the warp.
        event: WarpEvent,
    },
    /// A completed memory request: its response has arrived at the LSU.
    Request {
        /// Number of the SM.
        sm: u16,
        /// The warp, the line, and the cycle in which the request entered each stage.
        request: Request,
    },
}

impl Event {
    /// The cycle of the event. For a request, the cycle of its response.
    pub fn at(&self) -> Cycle {
        match self {
            Event::Warp { event, .. } => event.at,
            Event::Request { request, .. } => request.stamps.0[Stage::Return as usize],
        }
    }

    /// Number of the SM.
    pub fn sm(&self) -> u16 {
        match self {
            Event::Warp { sm, .. } | Event::Request { sm, .. } => *sm,
        }
    }
}

/// A closure that receives events.
pub(super) type Subscriber = Box<dyn FnMut(&Event)>;

/// The subscribers of a machine.
pub(super) struct Subscription {
    collector: EventCollector,
    /// Collected events that are not delivered yet.
    events: Vec<Event>,
    pub(super) subscribers: Vec<Subscriber>,
}

impl Listener for Vec<Event> {
    fn event(&mut self, sm: u16, event: &WarpEvent) {
        self.push(Event::Warp { sm, event: *event });
    }

    fn request(&mut self, sm: u16, request: &Request) {
        let request = *request;
        self.push(Event::Request { sm, request });
    }
}

impl Subscription {
    pub(super) fn new(gpu: &mut Gpu) -> Self {
        Subscription {
            collector: EventCollector::begin(gpu),
            events: Vec::new(),
            subscribers: Vec::new(),
        }
    }

    /// Delivers all events before cycle `now`. Every tile has run those cycles.
    pub(super) fn deliver(&mut self, now: Cycle) {
        self.collector.collect(now, &mut [&mut self.events]);
        // A stable sort: events of one SM in one cycle keep the order of the collector.
        self.events.sort_by_key(|event| (event.at(), event.sm()));
        // A tile may be ahead of the others. Its later events wait.
        // Sorted by cycle above, so the complete events come first.
        let complete = self.events.partition_point(|event| event.at() < now);
        for event in self.events.drain(..complete) {
            self.subscribers.iter_mut().for_each(|to| to(&event));
        }
    }
}
