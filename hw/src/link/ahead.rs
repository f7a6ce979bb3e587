//! Sending what is settled: a sender that knows what it will send in the next cycle need not be ticked for it.

use super::OutPort;
use crate::time::Cycle;

impl<T> OutPort<T> {
    /// Sends a message now that the sender would send in the next cycle, whatever happens until then. To whoever watches the link it is
    /// sent in the next cycle.
    ///
    /// # Panics
    /// If there is no room in this cycle, or the message would come beyond the horizon of a tile.
    #[inline]
    pub fn send_ahead(&mut self, now: Cycle, message: T) {
        self.send_labelled_ahead(now, 0, message);
    }
}

#[cfg(test)]
mod tests {
    use crate::link::{LinkConfig, link};
    use crate::path::Path;
    use crate::tile::TileBuilder;
    use crate::time::Cycle;

    #[test]
    fn message_sent_ahead_comes_as_one_sent_in_the_next_cycle() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let config = LinkConfig {
            path: Path::root("l"),
            latency: 2,
            depth: 2,
        };
        let (mut out, mut input) = link(&config, &from, &to);
        out.send_ahead(Cycle(3), 7);
        assert_eq!(input.recv(Cycle(5)), None);
        assert_eq!(input.recv(Cycle(6)), Some(7));
    }
}
