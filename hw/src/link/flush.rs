//! Lets go what ends of links have sent to other tiles, when the window of their tile is over.

use super::carrier::Sender;
use super::{InPort, OutPort};

/// An end of a link, or several.
pub trait Flush {
    /// Lets go what was sent to another tile.
    fn flush(&mut self);
}

impl<T> Flush for OutPort<T> {
    #[inline]
    fn flush(&mut self) {
        let is_well = match &mut self.carrier {
            Sender::Window(stage) => stage.flush(),
            Sender::Place | Sender::Each(_) => true,
        };
        assert!(
            is_well,
            "{}: more batches of messages under way than messages may be",
            self.config.path
        );
    }
}

impl<T> Flush for InPort<T> {
    fn flush(&mut self) {}
}

impl<E: Flush> Flush for Vec<E> {
    fn flush(&mut self) {
        self.iter_mut().for_each(Flush::flush);
    }
}

impl<E: Flush> Flush for Option<E> {
    fn flush(&mut self) {
        self.iter_mut().for_each(Flush::flush);
    }
}

impl<A: Flush, B: Flush> Flush for (A, B) {
    fn flush(&mut self) {
        self.0.flush();
        self.1.flush();
    }
}
