//! Reads the words that links keep their state in, so that the processor has them when a tick asks.
//!
//! A machine of many tiles is larger than the processor's caches. A tick that comes to a link for the first time in a window
//! waits for one line of memory after the other; here the reads of all links stand side by side, and the processor does many
//! of them at once.

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
    /// Has `ahead` ask for what messages from another tile point to ([`crate::prefetch`]), as soon as they are here.
    pub fn ask_ahead(&mut self, ahead: fn(&T)) {
        if let Some(unpack) = &mut self.unpack {
            unpack.ask_ahead(ahead);
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
        self.stage.iter().for_each(|stage| prefetch(&**stage));
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
        if let Some(unpack) = &self.unpack {
            prefetch(&**unpack);
            unpack.touch();
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
