//! Sidebands: 15 bits beside a message, like the header wires of a hardware link.
//!
//! The sideband lies in the slot's stamp. A receiver that only passes a message on, such as a crossbar, never reads the message itself.

use super::{InPort, MAX_SIDEBAND, OutPort};
use crate::time::Cycle;

impl<T> OutPort<T> {
    /// Sends a message with a sideband of at most 15 bits.
    ///
    /// # Panics
    /// If there is no room, or the sideband has more bits.
    #[inline]
    pub fn send_sideband(&mut self, now: Cycle, sideband: u16, message: T) {
        self.check(sideband);
        if self.attached.is_some() {
            return self.send_attached(now, 0, sideband, message);
        }
        self.put(now, u64::from(self.latency), sideband, message);
    }

    #[inline]
    fn check(&self, sideband: u16) {
        if sideband > MAX_SIDEBAND {
            self.cannot_send_sideband(sideband);
        }
    }

    #[cold]
    #[inline(never)]
    fn cannot_send_sideband(&self, sideband: u16) -> ! {
        panic!("{}: sideband {sideband:#x} has more than 15 bits", self.config.path);
    }
}

impl<T> InPort<T> {
    /// The sideband of the oldest visible message, or 0 if it was sent without one. The message stays in the link.
    #[inline]
    pub fn sideband(&self, now: Cycle) -> Option<u16> {
        self.stamp().sideband(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkConfig, link};
    use crate::path::Path;
    use crate::tile::TileBuilder;

    fn ends() -> (OutPort<Box<u32>>, InPort<Box<u32>>) {
        let mut tile = TileBuilder::new();
        let config = LinkConfig {
            path: Path::root("l"),
            latency: 2,
            depth: 3,
        };
        link(&config, &tile.slot(), &tile.slot())
    }

    #[test]
    fn sideband_is_visible_as_long_as_its_message() {
        let (mut out, mut input) = ends();
        out.send_sideband(Cycle(0), MAX_SIDEBAND, Box::new(1));
        out.send_sideband(Cycle(1), 5, Box::new(2));
        out.send(Cycle(2), Box::new(3));
        assert_eq!(
            [0, 1, 2].map(|at| input.sideband(Cycle(at))),
            [None, None, Some(MAX_SIDEBAND)]
        );
        assert_eq!(
            (input.recv(Cycle(2)), input.sideband(Cycle(2))),
            (Some(Box::new(1)), None)
        );
        assert_eq!(input.sideband(Cycle(3)), Some(5));
        assert_eq!(
            (input.recv(Cycle(4)), input.sideband(Cycle(4))),
            (Some(Box::new(2)), Some(0))
        );
    }

    #[test]
    fn slot_of_a_message_with_sideband_is_free_after_the_credit_latency() {
        let (mut out, mut input) = ends();
        (0..3).for_each(|n| out.send_sideband(Cycle(0), MAX_SIDEBAND - n, Box::new(0)));
        assert!(!out.has_room(Cycle(2)));
        input.recv(Cycle(2));
        assert!(!out.has_room(Cycle(2)) && out.has_room(Cycle(3)));
    }

    #[test]
    #[should_panic(expected = "l: sideband 0x8000 has more than 15 bits")]
    fn sideband_of_16_bits_panics() {
        ends().0.send_sideband(Cycle(0), 0x8000, Box::new(0));
    }
}
