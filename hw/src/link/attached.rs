//! What hangs on a sending end, for tests and waveforms: a monitor that sees its messages, a stall that delays them.

use tracing::trace;

use super::OutPort;
use super::monitor::Monitor;
use super::stall::Stall;
use crate::time::Cycle;

/// Where nothing hangs on it, an end has none of these.
pub(super) struct Attached<T> {
    monitor: Option<Box<dyn Monitor<T>>>,
    stall: Option<Stall>,
}

impl<T> OutPort<T> {
    /// Sends a message past what hangs on this end.
    #[cold]
    pub(super) fn send_attached(&mut self, now: Cycle, extra: u64, sideband: u16, message: T) {
        let delay = self.attached(now, extra, &message);
        if delay > 0 {
            trace!(cycle = now.0, path = %self.config.path, cycles = delay, "stall injected");
        }
        self.put(now, u64::from(self.latency) + extra + delay, sideband, message);
    }

    /// Shows the message to the monitor; cycles that the stall adds, as far as the horizon allows.
    fn attached(&mut self, now: Cycle, extra: u64, message: &T) -> u64 {
        let Some(attached) = &mut self.attached else { return 0 };
        if let Some(monitor) = &mut attached.monitor {
            monitor.sent(now, message);
        }
        let most = u64::from(self.longest).saturating_sub(u64::from(self.latency) + extra);
        attached.stall.as_ref().map_or(0, |stall| stall.delay(now).min(most))
    }

    /// Shows every message sent to `monitor`.
    pub fn watch(&mut self, monitor: Box<dyn Monitor<T>>) {
        self.hook().monitor = Some(monitor);
    }

    /// Delays messages at random from now on; see [`stall`](super::stall).
    pub fn disturb(&mut self, stall: Stall) {
        self.hook().stall = Some(stall);
    }

    fn hook(&mut self) -> &mut Attached<T> {
        let nothing = || Attached {
            monitor: None,
            stall: None,
        };
        self.attached.get_or_insert_with(|| Box::new(nothing()))
    }
}
