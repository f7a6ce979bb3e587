//! Reads the words that links keep their state in, so that the processor has them when a tick asks.
//!
//! A machine of many tiles is larger than the processor's caches. A tick that comes to a link for the first time in a window
//! waits for one line of memory after the other; here the reads of all links stand side by side, and the processor does many
//! of them at once.

use std::hint::black_box;

use super::carrier::{Receiver, Sender};
use super::{InPort, OutPort};
use crate::prefetch::prefetch;

/// An end of a link, or several.
pub trait Touch {
    /// Has the processor bring the ends themselves.
    fn prefetch(&self);

    /// Reads the state behind them.
    fn touch(&self);
}

impl<T> InPort<T> {
    /// Has `ahead` ask for what messages of a word point to ([`crate::prefetch`]), as soon as one that was sent before them is looked at.
    /// For links between tiles: inside one the boxes are near.
    pub fn ask_ahead(&mut self, ahead: fn(&T)) {
        self.carrier.show_ahead(ahead);
    }

    /// The message `n` behind the one at the head, which was looked at, as far as it is known ahead. Only to ask for what it will need:
    /// how far ahead messages are known is another for each run.
    #[inline]
    pub fn ahead(&self, n: u32) -> Option<&T> {
        match &self.carrier {
            Receiver::Ahead(ahead) => ahead.message(n),
            Receiver::Place | Receiver::Queue(_) => None,
        }
    }
}

impl<T> Touch for OutPort<T> {
    #[inline]
    fn prefetch(&self) {
        prefetch(&self.places);
    }

    #[inline]
    fn touch(&self) {
        prefetch(self.place());
        if let Sender::Queue(queue) = &self.carrier {
            black_box(queue.len());
        }
    }
}

impl<T> Touch for InPort<T> {
    #[inline]
    fn prefetch(&self) {
        prefetch(&self.places);
    }

    #[inline]
    fn touch(&self) {
        prefetch(self.place());
        match &self.carrier {
            Receiver::Place => {}
            Receiver::Ahead(ahead) => prefetch(&**ahead),
            Receiver::Queue(queue) => _ = black_box(queue.len()),
        }
    }
}

impl<E: Touch> Touch for Vec<E> {
    fn prefetch(&self) {
        self.iter().for_each(Touch::prefetch);
    }

    fn touch(&self) {
        self.iter().for_each(Touch::touch);
    }
}

impl<E: Touch> Touch for Option<E> {
    fn prefetch(&self) {
        self.iter().for_each(Touch::prefetch);
    }

    fn touch(&self) {
        self.iter().for_each(Touch::touch);
    }
}

impl<A: Touch, B: Touch> Touch for (A, B) {
    fn prefetch(&self) {
        self.0.prefetch();
        self.1.prefetch();
    }

    fn touch(&self) {
        self.0.touch();
        self.1.touch();
    }
}
