//! Receiving messages of a word, which need not be taken out of their place.

use super::InPort;
use super::carrier::Receiver;
use crate::time::Cycle;

impl<T: Copy> InPort<T> {
    /// As [`InPort::recv`]. Inside a tile a message of a word is read where it lies, and stays there until another comes: so it passes
    /// the link without any locked operation of the processor.
    #[inline]
    pub fn recv_copy(&mut self, now: Cycle) -> Option<T> {
        if self.head.is_some() || self.monitor.is_some() || !matches!(self.carrier, Receiver::Place) {
            return self.recv(now);
        }
        if !self.is_ready(now) {
            return None;
        }
        let message = self.place().message.copy().expect("a taken place has a message");
        self.free_place(now);
        Some(message)
    }

    /// The message that comes next, visible or not, where it is known. Only to ask for what it will need.
    #[inline]
    pub fn next_copy(&self) -> Option<T> {
        if !matches!(self.carrier, Receiver::Place) || !self.place().is_taken() {
            return None;
        }
        self.place().message.copy()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use crate::link::{LinkConfig, link};
    use crate::path::Path;
    use crate::tile::TileBuilder;
    use crate::time::Cycle;

    /// A message of a word.
    fn message(n: u64) -> NonZeroU64 {
        NonZeroU64::MIN.saturating_add(n)
    }

    fn config() -> LinkConfig {
        LinkConfig {
            path: Path::root("l"),
            latency: 1,
            depth: 2,
        }
    }

    #[test]
    fn messages_copied_and_messages_taken_come_once_each_and_in_order() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let (mut out, mut input) = link(&config(), &from, &to);
        assert_eq!(input.recv_copy(Cycle(0)), None);
        for n in 0..20 {
            let at = Cycle(2 * n);
            out.send(at, message(2 * n));
            out.send(at, message(2 * n + 1));
            assert_eq!(input.recv_copy(at), None);
            if n % 3 == 0 {
                assert_eq!(input.peek(at + 1), Some(&message(2 * n)));
            }
            assert_eq!(input.recv_copy(at + 1), Some(message(2 * n)));
            let second = if n % 2 == 0 {
                input.recv(at + 1)
            } else {
                input.recv_copy(at + 1)
            };
            assert_eq!(second, Some(message(2 * n + 1)));
            assert_eq!((input.recv_copy(at + 1), input.recv(at + 1)), (None, None));
        }
    }

    #[test]
    fn next_message_is_known_before_it_is_visible_and_until_it_is_taken() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let (mut out, mut input) = link(&config(), &from, &to);
        assert_eq!(input.next_copy(), None);
        out.send(Cycle(0), message(7));
        assert_eq!((input.recv_copy(Cycle(0)), input.next_copy()), (None, Some(message(7))));
        assert_eq!((input.recv_copy(Cycle(1)), input.next_copy()), (Some(message(7)), None));
    }

    #[test]
    fn link_cleared_after_copies_is_empty_and_goes_on() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let (mut out, mut input) = link(&config(), &from, &to);
        out.send(Cycle(0), message(1));
        assert_eq!(input.recv_copy(Cycle(1)), Some(message(1)));
        out.send(Cycle(2), message(2));
        input.clear();
        assert!(input.is_empty());
        out.send(Cycle(3), message(3));
        assert_eq!(input.recv_copy(Cycle(4)), Some(message(3)));
    }

    #[test]
    fn between_tiles_it_is_a_message_as_any() {
        let (mut here, mut there) = (TileBuilder::new(), TileBuilder::new());
        let (from, to) = (here.slot(), there.slot());
        let (mut out, mut input) = link(&config(), &from, &to);
        out.send(Cycle(0), message(7));
        assert_eq!(
            (input.recv_copy(Cycle(0)), input.recv_copy(Cycle(1))),
            (None, Some(message(7)))
        );
    }
}
