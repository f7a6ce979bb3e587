//! Attachments of a sending end, for tests and waveforms: a monitor that sees its messages, and a stall that delays them.

use tracing::trace;

use super::OutPort;
use super::monitor::Monitor;
use super::stall::Stall;
use crate::time::Cycle;

/// The monitor and the stall of a sending end. An end without either has no `Attached`.
pub(super) struct Attached<T> {
    monitor: Option<Box<dyn Monitor<T>>>,
    stall: Option<Stall>,
}

impl<T> OutPort<T> {
    /// Sends a message of an end with attachments.
    #[cold]
    pub(super) fn send_attached(&mut self, now: Cycle, extra: u64, sideband: u16, message: T) {
        let delay = self.notify_and_delay(now, extra, &message);
        if delay > 0 {
            trace!(cycle = now.0, path = %self.config.path, cycles = delay, "stall injected");
        }
        self.put(now, u64::from(self.latency) + extra + delay, sideband, message);
    }

    /// Shows the message to the monitor. Returns the delay of the stall, in cycles, cut off at the horizon.
    fn notify_and_delay(&mut self, now: Cycle, extra: u64, message: &T) -> u64 {
        let Some(attached) = &mut self.attached else { return 0 };
        if let Some(monitor) = &mut attached.monitor {
            monitor.sent(now, message);
        }
        let most = u64::from(self.max_latency).saturating_sub(u64::from(self.latency) + extra);
        attached.stall.as_ref().map_or(0, |stall| stall.delay(now).min(most))
    }

    /// Attaches a monitor, which sees every message sent from now on.
    pub fn watch(&mut self, monitor: Box<dyn Monitor<T>>) {
        self.attach().monitor = Some(monitor);
    }

    /// Attaches a [stall](super::stall), which delays messages at random from now on.
    pub fn disturb(&mut self, stall: Stall) {
        self.attach().stall = Some(stall);
    }

    fn attach(&mut self) -> &mut Attached<T> {
        let nothing = || Attached {
            monitor: None,
            stall: None,
        };
        self.attached.get_or_insert_with(|| Box::new(nothing()))
    }
}
