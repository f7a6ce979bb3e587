//! Receiving messages of a word, which need not be taken out of their place.

use super::InPort;
use crate::time::Cycle;

impl<T: Copy> InPort<T> {
    /// As [`InPort::recv`]. Inside a tile the message is read where it lies, and stays there until another comes: so a message of a
    /// word passes the link without any locked operation of the processor.
    #[inline]
    pub fn recv_copy(&mut self, now: Cycle) -> Option<T> {
        if self.head.is_some() || self.unpack.is_some() {
            return self.recv(now);
        }
        if !self.is_ready(now) {
            return None;
        }
        let message = self.place().message.load().expect("a taken place has a message");
        self.free_place(now, &message);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use crate::link::{LinkConfig, link};
    use crate::path::Path;
    use crate::tile::TileBuilder;
    use crate::time::Cycle;

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
            out.send(at, 2 * n);
            out.send(at, 2 * n + 1);
            assert_eq!(input.recv_copy(at), None);
            if n % 3 == 0 {
                assert_eq!(input.peek(at + 1), Some(&(2 * n)));
            }
            assert_eq!(input.recv_copy(at + 1), Some(2 * n));
            let second = if n % 2 == 0 {
                input.recv(at + 1)
            } else {
                input.recv_copy(at + 1)
            };
            assert_eq!(second, Some(2 * n + 1));
            assert_eq!((input.recv_copy(at + 1), input.recv(at + 1)), (None, None));
        }
    }

    #[test]
    fn link_cleared_after_copies_is_empty_and_goes_on() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let (mut out, mut input) = link(&config(), &from, &to);
        out.send(Cycle(0), 1);
        assert_eq!(input.recv_copy(Cycle(1)), Some(1));
        out.send(Cycle(2), 2);
        input.clear();
        assert!(input.is_empty());
        out.send(Cycle(3), 3);
        assert_eq!(input.recv_copy(Cycle(4)), Some(3));
    }

    #[test]
    fn between_tiles_it_is_a_message_as_any() {
        let (mut here, mut there) = (TileBuilder::new(), TileBuilder::new());
        let (from, to) = (here.slot(), there.slot());
        let (mut out, mut input) = link(&config(), &from, &to);
        out.send(Cycle(0), 7);
        crate::link::flush::Flush::flush(&mut out);
        assert_eq!((input.recv_copy(Cycle(0)), input.recv_copy(Cycle(1))), (None, Some(7)));
    }
}
