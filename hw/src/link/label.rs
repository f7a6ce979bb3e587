//! Labels: a few bits that travel beside a message, for receivers that need no more of it to pass it on.
//!
//! A box that came from another tile is far from the processor by now. Its label lies in the word that says whether a message is there.

use super::{InPort, LARGEST_LABEL, OutPort};
use crate::time::Cycle;

impl<T> OutPort<T> {
    /// As [`OutPort::send`], with a label of at most 15 bits.
    ///
    /// # Panics
    /// If there is no room, or the label has more bits.
    #[inline]
    pub fn send_labelled(&mut self, now: Cycle, label: u16, message: T) {
        self.check(label);
        if self.attached.is_some() {
            return self.send_attached(now, 0, label, message);
        }
        self.put(now, u64::from(self.latency), label, message);
    }

    #[inline]
    fn check(&self, label: u16) {
        if label > LARGEST_LABEL {
            self.cannot_label(label);
        }
    }

    #[cold]
    #[inline(never)]
    fn cannot_label(&self, label: u16) -> ! {
        panic!("{}: label {label:#x} has more than 15 bits", self.config.path);
    }
}

impl<T> InPort<T> {
    /// The label of the oldest visible message, 0 if it was sent without one. The message stays where it is.
    #[inline]
    pub fn label(&self, now: Cycle) -> Option<u16> {
        self.stamp().label(now)
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
    fn label_is_seen_from_the_cycle_of_its_message_until_that_is_taken() {
        let (mut out, mut input) = ends();
        out.send_labelled(Cycle(0), LARGEST_LABEL, Box::new(1));
        out.send_labelled(Cycle(1), 5, Box::new(2));
        out.send(Cycle(2), Box::new(3));
        assert_eq!(
            [0, 1, 2].map(|at| input.label(Cycle(at))),
            [None, None, Some(LARGEST_LABEL)]
        );
        assert_eq!((input.recv(Cycle(2)), input.label(Cycle(2))), (Some(Box::new(1)), None));
        assert_eq!(input.label(Cycle(3)), Some(5));
        assert_eq!(
            (input.recv(Cycle(4)), input.label(Cycle(4))),
            (Some(Box::new(2)), Some(0))
        );
    }

    #[test]
    fn place_whose_message_had_a_label_is_free_after_the_credit_latency() {
        let (mut out, mut input) = ends();
        (0..3).for_each(|n| out.send_labelled(Cycle(0), LARGEST_LABEL - n, Box::new(0)));
        assert!(!out.has_room(Cycle(2)));
        input.recv(Cycle(2));
        assert!(!out.has_room(Cycle(2)) && out.has_room(Cycle(3)));
    }

    #[test]
    #[should_panic(expected = "l: label 0x8000 has more than 15 bits")]
    fn label_of_16_bits_is_none() {
        ends().0.send_labelled(Cycle(0), 0x8000, Box::new(0));
    }
}
