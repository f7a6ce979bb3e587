//! Reads the words that links keep their state in, so that the processor has them when a tick asks.
//!
//! A machine of many tiles is larger than the processor's caches. A tick that comes to a link for the first time in a window
//! waits for one line of memory after the other; here the reads of all links stand side by side, and the processor does many
//! of them at once.

use std::hint::black_box;

use super::carrier::{NOTE, Receiver, Sender};
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
        prefetch(&self.places[NOTE]);
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
        prefetch(&self.places[NOTE]);
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

#[cfg(test)]
mod tests {
    use crate::link::{LinkConfig, link};
    use crate::path::Path;
    use crate::tile::TileBuilder;
    use crate::time::Cycle;

    #[test]
    fn messages_behind_the_one_looked_at_are_known_ahead_and_come_in_their_cycles() {
        let (mut here, mut there) = (TileBuilder::new(), TileBuilder::new());
        let config = LinkConfig {
            path: Path::root("l"),
            latency: 5,
            depth: 3,
        };
        let (mut out, mut input) = link(&config, &here.slot(), &there.slot());
        input.ask_ahead(|_| ());
        (0..3).for_each(|n| out.send(Cycle(n), Box::new(n)));
        assert_eq!((input.ahead(0), input.seen()), (None, None), "none was looked at");
        assert_eq!(input.peek(Cycle(5)), Some(&Box::new(0)));
        assert_eq!(input.seen(), Some(&Box::new(0)));
        assert_eq!(
            [0, 1, 2].map(|n| input.ahead(n).map(|message| **message)),
            [Some(1), Some(2), None]
        );
        assert_eq!(input.recv(Cycle(5)), Some(Box::new(0)));
        assert_eq!(input.recv(Cycle(5)), None, "known ahead, not visible");
        assert_eq!(input.recv(Cycle(6)), Some(Box::new(1)));
        input.clear();
        assert!(input.is_empty());
        out.send(Cycle(8), Box::new(8));
        assert_eq!(
            (input.recv(Cycle(12)), input.recv(Cycle(13))),
            (None, Some(Box::new(8)))
        );
    }
}
