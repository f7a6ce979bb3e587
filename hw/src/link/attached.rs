//! Attachments of a sending end, for tests and waveforms: a monitor that sees its messages, a stall that delays them, and a fault.

use tracing::trace;

use super::OutPort;
use super::fault::{FaultyLink, FaultySender, Filter, Outgoing};
use super::monitor::{Monitor, joined};
use super::payload::Payload;
use super::stall::Stall;
use crate::time::Cycle;

/// The attachments of a sending end. An end without any has no `Attached`.
pub(super) struct Attached<T> {
    monitor: Option<Box<dyn Monitor<T>>>,
    stall: Option<Stall>,
    fault: Option<Box<dyn Filter<T>>>,
}

impl<T> OutPort<T> {
    /// Sends a message of an end with attachments.
    #[cold]
    pub(super) fn send_attached(&mut self, now: Cycle, extra: u64, sideband: u16, message: T) {
        let delay = self.notify_and_stall(now, &message);
        let outgoing = Outgoing {
            message,
            extra,
            sideband,
        };
        let Some(fault) = self.attached.as_mut().and_then(|attached| attached.fault.as_mut()) else {
            return self.put_later(now, delay, outgoing);
        };
        // Nothing comes back for a dropped message, and for one that the next message will overtake.
        let Some((outgoing, fault_delay)) = fault.before(now, outgoing) else {
            return;
        };
        self.put_later(now, delay + fault_delay, outgoing);
        // A duplicate, or the message that was overtaken, takes the next slot.
        let has_room = self.has_room(now);
        let fault = self.attached.as_mut().and_then(|attached| attached.fault.as_mut());
        if let Some(next) = fault.and_then(|fault| fault.after(now, has_room)) {
            self.put_later(now, 0, next);
        }
    }

    /// Puts a message into the link, delayed by `delay` cycles, cut off at the horizon.
    fn put_later(&mut self, now: Cycle, delay: u64, outgoing: Outgoing<T>) {
        let after = u64::from(self.latency) + outgoing.extra;
        // `put` refuses a message that is visible later than `max_latency`.
        let delay = delay.min(u64::from(self.max_latency).saturating_sub(after));
        if delay > 0 {
            trace!(cycle = now.0, path = %self.config.path, cycles = delay, "stall injected");
        }
        self.put(now, after + delay, outgoing.sideband, outgoing.message);
    }

    /// Shows the message to the monitor. Returns the delay of the stall, in cycles.
    fn notify_and_stall(&mut self, now: Cycle, message: &T) -> u64 {
        let Some(attached) = &mut self.attached else { return 0 };
        if let Some(monitor) = &mut attached.monitor {
            monitor.sent(now, message);
        }
        attached.stall.as_ref().map_or(0, |stall| stall.delay(now))
    }

    /// Attaches a monitor, which sees every message sent from now on. Other monitors stay.
    pub fn watch(&mut self, monitor: Box<dyn Monitor<T>>)
    where
        T: 'static,
    {
        let attached = self.attach();
        attached.monitor = Some(joined(attached.monitor.take(), monitor));
    }

    /// Attaches a [stall](super::stall), which delays messages at random from now on.
    pub fn disturb(&mut self, stall: Stall) {
        self.attach().stall = Some(stall);
    }

    /// Attaches a [fault](super::fault), and the check that finds it. The receiving end needs [`InPort::check`](super::InPort::check).
    pub fn inject(&mut self, link: FaultyLink)
    where
        T: Payload,
    {
        self.attach().fault = Some(Box::new(FaultySender::new(link)));
    }

    fn attach(&mut self) -> &mut Attached<T> {
        let nothing = || Attached {
            monitor: None,
            stall: None,
            fault: None,
        };
        self.attached.get_or_insert_with(|| Box::new(nothing()))
    }
}
