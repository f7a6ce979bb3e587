//! Link events for waveforms: each message sent or taken, with its cycle.
//!
//! A waveform derives the handshake from the events: valid, ready, occupancy and the message's number. A link that is not watched
//! costs one branch per message.

use std::sync::{Arc, Mutex, PoisonError};

use super::monitor::Monitor;
use super::{InPort, LinkConfig, OutPort};
use crate::time::Cycle;

/// A message that says in one number what it is.
pub trait Payload {
    /// What the number is, in one word.
    const NAME: &'static str;

    /// The number, of at most 48 bits.
    fn summary(&self) -> u64;
}

/// What happened at an end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkEvent {
    /// When.
    pub at: Cycle,
    /// The number that the observer gave the link.
    pub link: u32,
    /// The message's number if it was sent. `None` if it was taken.
    pub sent: Option<u64>,
}

/// The events of watched links, shared by their ends.
#[derive(Clone, Default, Debug)]
pub struct LinkEventLog(Arc<Mutex<Vec<LinkEvent>>>);

impl LinkEventLog {
    /// Moves all events to the end of `to`.
    pub fn drain_into(&self, to: &mut Vec<LinkEvent>) {
        to.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn push(&self, event: LinkEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

/// An end of a link, as a component offers it.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The link.
    pub link: &'a LinkConfig,
    /// Whether it is the sending end.
    pub is_sender: bool,
    /// What a message's number is ([`Payload::NAME`]).
    pub payload: &'static str,
    /// Cycles from taking a message until its slot is free for the sender.
    pub credit_latency: u64,
}

/// Chooses the ends to watch.
pub trait Wires {
    /// The log for the events of this end, and the link's number. `None` if the end is not watched.
    fn end(&mut self, end: &End<'_>) -> Option<(LinkEventLog, u32)>;
}

/// Logs the events of one end.
struct Tap {
    log: LinkEventLog,
    link: u32,
}

impl<T: Payload> Monitor<T> for Tap {
    fn sent(&mut self, now: Cycle, message: &T) {
        self.log.push(LinkEvent {
            at: now,
            link: self.link,
            sent: Some(message.summary()),
        });
    }

    fn taken(&mut self, now: Cycle, _: &T) {
        self.log.push(LinkEvent {
            at: now,
            link: self.link,
            sent: None,
        });
    }
}

/// An end of a link, or several.
pub trait Show {
    /// Offers them to be watched.
    fn show(&mut self, wires: &mut dyn Wires);

    /// Drops every message at the input ends. An output end has none: its receiver clears the link.
    fn clear_inputs(&mut self);
}

impl<T: Payload> Show for OutPort<T> {
    fn show(&mut self, wires: &mut dyn Wires) {
        let link = Arc::clone(&self.config);
        let end = End {
            link: &link,
            is_sender: true,
            payload: T::NAME,
            credit_latency: 0,
        };
        if let Some((log, link)) = wires.end(&end) {
            self.watch(Box::new(Tap { log, link }));
        }
    }

    fn clear_inputs(&mut self) {}
}

impl<T: Payload> Show for InPort<T> {
    fn show(&mut self, wires: &mut dyn Wires) {
        let link = Arc::clone(&self.config);
        let end = End {
            link: &link,
            is_sender: false,
            payload: T::NAME,
            credit_latency: u64::from(self.credit_latency),
        };
        if let Some((log, link)) = wires.end(&end) {
            self.watch(Box::new(Tap { log, link }));
        }
    }

    fn clear_inputs(&mut self) {
        self.clear();
    }
}

impl<S: Show> Show for Vec<S> {
    fn show(&mut self, wires: &mut dyn Wires) {
        self.iter_mut().for_each(|end| end.show(wires));
    }

    fn clear_inputs(&mut self) {
        self.iter_mut().for_each(Show::clear_inputs);
    }
}

impl<S: Show> Show for Option<S> {
    fn show(&mut self, wires: &mut dyn Wires) {
        self.iter_mut().for_each(|end| end.show(wires));
    }

    fn clear_inputs(&mut self) {
        self.iter_mut().for_each(Show::clear_inputs);
    }
}

impl<A: Show, B: Show> Show for (A, B) {
    fn show(&mut self, wires: &mut dyn Wires) {
        self.0.show(wires);
        self.1.show(wires);
    }

    fn clear_inputs(&mut self) {
        self.0.clear_inputs();
        self.1.clear_inputs();
    }
}

/// `show_ports!(Ports: input, output)`: all of these ends of a structure.
#[macro_export]
macro_rules! show_ports {
    ($ports:ty: $($end:ident),+) => {
        impl $crate::link::wires::Show for $ports {
            fn show(&mut self, wires: &mut dyn $crate::link::wires::Wires) {
                $(self.$end.show(wires);)+
            }

            fn clear_inputs(&mut self) {
                $($crate::link::wires::Show::clear_inputs(&mut self.$end);)+
            }
        }

        impl $crate::warm::Warm for $ports {
            fn warm(&self) {
                $crate::warm::prefetch(self);
                $($crate::warm::Warm::warm(&self.$end);)+
            }
        }
    };
}

impl<T: Payload + ?Sized> Payload for Box<T> {
    const NAME: &'static str = T::NAME;

    fn summary(&self) -> u64 {
        (**self).summary()
    }
}

impl<T: Payload + ?Sized> Payload for Arc<T> {
    const NAME: &'static str = T::NAME;

    fn summary(&self) -> u64 {
        (**self).summary()
    }
}

impl Payload for u64 {
    const NAME: &'static str = "number";

    fn summary(&self) -> u64 {
        self & 0xffff_ffff_ffff
    }
}
