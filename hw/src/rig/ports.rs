//! The components at the far ends of a rig's links: feeders, drains and responders.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Event, Events};
use crate::component::{Activity, Component};
use crate::link::monitor::Monitor;
use crate::link::{InPort, OutPort};
use crate::path::Path;
use crate::probe::Probe;
use crate::stats::Report;
use crate::time::Cycle;

/// Counts the messages in flight on all links.
pub(super) struct InFlightCounter(pub(super) Arc<AtomicUsize>);

impl<T> Monitor<T> for InFlightCounter {
    fn sent(&mut self, _: Cycle, _: &T) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn taken(&mut self, _: Cycle, _: &T) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Appends an event.
fn add_event(events: &Events, at: Cycle, link: &'static str, message: &impl Debug) {
    let message = format!("{message:?}");
    let event = Event { at, link, message };
    events.lock().expect("no feeder or drain panics").push(event);
}

/// Sends the traffic of a test.
pub(super) struct Feeder<T> {
    path: Path,
    name: &'static str,
    output: OutPort<T>,
    traffic: Vec<(u64, T)>,
    sideband: fn(&T) -> u16,
    next: usize,
    events: Events,
}

impl<T> Feeder<T> {
    pub(super) fn new(
        name: &'static str,
        output: OutPort<T>,
        traffic: Vec<(u64, T)>,
        sideband: fn(&T) -> u16,
        events: Events,
    ) -> Self {
        Feeder {
            path: Path::root("rig").child(name),
            name,
            output,
            traffic,
            sideband,
            next: 0,
            events,
        }
    }
}

impl<T: Clone + Debug + Send + 'static> crate::warm::Warm for Feeder<T> {}

impl<T: Clone + Debug + Send + 'static> Component for Feeder<T> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        if let Some((at, message)) = self.traffic.get(self.next)
            && *at <= now.0
            && self.output.has_room(now)
        {
            add_event(&self.events, now, self.name, message);
            self.output
                .send_sideband(now, (self.sideband)(message), message.clone());
            self.next += 1;
        }
        let next = self.traffic.get(self.next);
        // Without room the cycle has passed, which means the next one.
        next.map_or(Activity::Idle, |(at, _)| Activity::Until(Cycle(*at)))
    }

    fn reset(&mut self) {
        self.next = 0;
    }

    fn is_quiescent(&self) -> bool {
        self.next == self.traffic.len()
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn stats(&self, _: &mut dyn Report) {}
}

/// Takes messages in the cycles that a test chooses.
pub(super) struct Drain<T, F> {
    path: Path,
    name: &'static str,
    input: InPort<T>,
    takes: F,
    events: Events,
}

impl<T, F> Drain<T, F> {
    pub(super) fn new(name: &'static str, input: InPort<T>, takes: F, events: Events) -> Self {
        Drain {
            path: Path::root("rig").child(name),
            name,
            input,
            takes,
            events,
        }
    }
}

impl<T: Debug + Send + 'static, F: Fn(Cycle) -> bool + Send + 'static> crate::warm::Warm for Drain<T, F> {}

impl<T: Debug + Send + 'static, F: Fn(Cycle) -> bool + Send + 'static> Component for Drain<T, F> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        if (self.takes)(now)
            && let Some(message) = self.input.recv(now)
        {
            add_event(&self.events, now, self.name, &message);
        }
        // A message that stays in the link wakes the drain no second time.
        Activity::busy_if(self.input.is_ready(now))
    }

    fn reset(&mut self) {
        self.input.clear();
    }

    fn is_quiescent(&self) -> bool {
        // A message in its link counts as in flight, and a drain holds no other.
        true
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn stats(&self, _: &mut dyn Report) {}
}

/// Responses to one message, each with the cycles until it is sent.
pub(super) type Responses<R> = Vec<(u64, R)>;

/// Takes every message, and sends responses to it.
pub(super) struct Responder<T, R, F> {
    path: Path,
    names: [&'static str; 2],
    input: InPort<T>,
    output: OutPort<R>,
    respond: F,
    /// Responses with the cycle of their send, in the order of their messages.
    waiting: VecDeque<(Cycle, R)>,
    events: Events,
}

impl<T, R, F> Responder<T, R, F> {
    /// `names` are the names of the links from the component and to it.
    pub(super) fn new(
        names: [&'static str; 2],
        input: InPort<T>,
        output: OutPort<R>,
        respond: F,
        events: Events,
    ) -> Self {
        Responder {
            path: Path::root("rig").child(names[1]),
            names,
            input,
            output,
            respond,
            waiting: VecDeque::new(),
            events,
        }
    }
}

impl<T: Send, R: Send, F: Send> crate::warm::Warm for Responder<T, R, F> {}

impl<T, R, F> Component for Responder<T, R, F>
where
    T: Debug + Send + 'static,
    R: Debug + Send + 'static,
    F: Fn(T) -> Responses<R> + Send + 'static,
{
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        if let Some(message) = self.input.recv(now) {
            add_event(&self.events, now, self.names[0], &message);
            let responses = (self.respond)(message).into_iter();
            self.waiting
                .extend(responses.map(|(after, response)| (now + after, response)));
        }
        if self.output.has_room(now)
            && let Some((_, response)) = self.waiting.pop_front_if(|(at, _)| *at <= now)
        {
            add_event(&self.events, now, self.names[1], &response);
            self.output.send(now, response);
        }
        let next = self
            .waiting
            .front()
            .map_or(Activity::Idle, |(at, _)| Activity::Until(*at));
        next.or(Activity::busy_if(self.input.is_ready(now)))
    }

    fn reset(&mut self) {
        self.input.clear();
        self.waiting.clear();
    }

    fn is_quiescent(&self) -> bool {
        self.waiting.is_empty()
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn stats(&self, _: &mut dyn Report) {}
}
