//! Link events for waveforms: each message sent or taken, with its cycle.
//!
//! A waveform derives the handshake from these events: valid, ready, occupancy and payload. Without an observer a message costs one
//! branch.

use std::sync::{Arc, Mutex, PoisonError};

use super::audit::LinkAudit;
use super::fault::FaultyLink;
use super::monitor::Monitor;
pub use super::payload::Payload;
use super::{InPort, LinkConfig, OutPort};
use crate::time::Cycle;

/// An event at one end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkEvent {
    /// The cycle of the event.
    pub at: Cycle,
    /// The link's number, which the observer chose.
    pub link: u32,
    /// For a send, the message's number. `None` for a message taken. A message that a reset drops has no such event: the
    /// waveform ends before the reset.
    pub sent: Option<u64>,
}

/// The events of watched links, shared by their ends. It has a lock, because two ends may run on two threads.
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
pub struct LinkEnd<'a> {
    /// The link.
    pub link: &'a LinkConfig,
    /// True for the sending end.
    pub is_sender: bool,
    /// The meaning of a message's number ([`Payload::NAME`]).
    pub payload: &'static str,
    /// Cycles from taking a message until its slot is free for the sender. 0 for the sending end, which does not know it.
    pub credit_latency: u64,
}

/// An observer, which chooses the ends to watch.
pub trait LinkObserver {
    /// The log for the events of this end, and the link's number. `None` if the end is not watched.
    fn end(&mut self, end: &LinkEnd<'_>) -> Option<(LinkEventLog, u32)>;

    /// The fault of this end's link, and its check. `None` for a link without a fault.
    fn fault(&mut self, _end: &LinkEnd<'_>) -> Option<FaultyLink> {
        None
    }

    /// The audit of this end's link. `None` for a link without an audit.
    fn audit(&mut self, _end: &LinkEnd<'_>) -> Option<LinkAudit> {
        None
    }
}

/// A monitor that logs the events of one end.
struct EventMonitor {
    log: LinkEventLog,
    link: u32,
}

impl<T: Payload> Monitor<T> for EventMonitor {
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

/// One or more ends of links.
pub trait Show {
    /// Offers each end to an observer.
    fn show(&mut self, observer: &mut dyn LinkObserver);

    /// Drops every message at the input ends. An output end holds no messages: the receiver clears the link.
    fn clear_inputs(&mut self);
}

impl<T: Payload> Show for OutPort<T> {
    fn show(&mut self, observer: &mut dyn LinkObserver) {
        let link = Arc::clone(&self.config);
        let end = LinkEnd {
            link: &link,
            is_sender: true,
            payload: T::NAME,
            credit_latency: 0,
        };
        if let Some((log, link)) = observer.end(&end) {
            self.watch(Box::new(EventMonitor { log, link }));
        }
        if let Some(faulty) = observer.fault(&end) {
            self.inject(faulty);
        }
        if let Some(audit) = observer.audit(&end) {
            self.watch(audit.end());
        }
    }

    fn clear_inputs(&mut self) {}
}

impl<T: Payload> Show for InPort<T> {
    fn show(&mut self, observer: &mut dyn LinkObserver) {
        let link = Arc::clone(&self.config);
        let end = LinkEnd {
            link: &link,
            is_sender: false,
            payload: T::NAME,
            credit_latency: u64::from(self.credit_latency),
        };
        if let Some((log, link)) = observer.end(&end) {
            self.watch(Box::new(EventMonitor { log, link }));
        }
        if let Some(faulty) = observer.fault(&end) {
            self.check(faulty.check);
        }
        if let Some(audit) = observer.audit(&end) {
            self.watch(audit.end());
        }
    }

    fn clear_inputs(&mut self) {
        self.clear();
    }
}

impl<S: Show> Show for Vec<S> {
    fn show(&mut self, observer: &mut dyn LinkObserver) {
        self.iter_mut().for_each(|end| end.show(observer));
    }

    fn clear_inputs(&mut self) {
        self.iter_mut().for_each(Show::clear_inputs);
    }
}

impl<S: Show> Show for Option<S> {
    fn show(&mut self, observer: &mut dyn LinkObserver) {
        self.iter_mut().for_each(|end| end.show(observer));
    }

    fn clear_inputs(&mut self) {
        self.iter_mut().for_each(Show::clear_inputs);
    }
}

impl<A: Show, B: Show> Show for (A, B) {
    fn show(&mut self, observer: &mut dyn LinkObserver) {
        self.0.show(observer);
        self.1.show(observer);
    }

    fn clear_inputs(&mut self) {
        self.0.clear_inputs();
        self.1.clear_inputs();
    }
}

/// Implements [`Show`] and [`Warm`](crate::warm::Warm) for a structure of link ends: `show_ports!(Ports: input, output)`.
#[macro_export]
macro_rules! show_ports {
    ($ports:ty: $($end:ident),+) => {
        impl $crate::link::wires::Show for $ports {
            fn show(&mut self, observer: &mut dyn $crate::link::wires::LinkObserver) {
                $(self.$end.show(observer);)+
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
