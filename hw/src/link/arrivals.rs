//! A mask of the input ports of a component with messages in flight. A tick reads only these ports.
//!
//! A component with many ports numbers them when it is built. A port's bit is set while a message is on its link, visible or not.
//! No result depends on the mask: a tick that reads all ports finds the same messages.

use std::sync::Arc;

use super::{HEADER, InPort, LINK_NUMBER};
use crate::tile::TileState;
use crate::time::Cycle;

/// The largest number of ports per component.
pub const MAX_PORTS: u32 = 63;

/// The mask of a component's numbered ports.
#[derive(Default)]
pub struct ArrivalMask {
    /// The component's tile, and its number there.
    component: Option<(Arc<TileState>, u8)>,
    ports: u32,
    /// Ports with a sender in another tile. Their bits are always set, because that sender cannot write to the mask.
    always: u64,
}

impl ArrivalMask {
    /// Adds a port. Returns its number, counted from 0.
    ///
    /// # Panics
    /// If there are [`MAX_PORTS`] already, or the link is in use.
    pub fn add<T>(&mut self, port: &InPort<T>) -> u32 {
        let number = self.ports;
        assert!(number < MAX_PORTS, "a component numbers at most {MAX_PORTS} ports");
        assert!(port.is_empty(), "a port is numbered before its link is used");
        // The header has 0 for a link without a number. So its numbers are 1 to 63, all valid shifts of a 64-bit mask.
        self.ports += 1;
        if port.is_remote {
            self.always |= 1 << number;
            return number;
        }
        let (tile, component) = self.component.get_or_insert_with(|| (port.tile.clone(), port.receiver));
        // A mask has the ports of one component. A port of another component counts as always set.
        if !Arc::ptr_eq(tile, &port.tile) || *component != port.receiver {
            self.always |= 1 << number;
        } else {
            let header = &port.stamps[HEADER];
            header.set_header(header.header() & !LINK_NUMBER | u64::from(number + 1));
        }
        number
    }

    /// Defers the wake-ups of messages on the numbered ports until cycle `at`, which must be within the horizon of a tile.
    ///
    /// A component uses it when it cannot accept a message before that cycle.
    #[inline]
    pub fn defer_wakeups(&self, at: Cycle) {
        if let Some((tile, component)) = &self.component {
            tile.defer_wakeups(*component, at);
        }
    }

    /// The ports that may have a message: bit n for port n.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        let component = self.component.as_ref();
        self.always | component.map_or(0, |(tile, component)| tile.arrivals(*component))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkConfig, OutPort, link};
    use crate::path::Path;
    use crate::tile::{TileBuilder, TileSlot};
    use crate::time::Cycle;

    fn joined(from: &TileSlot, to: &TileSlot) -> (OutPort<u32>, InPort<u32>) {
        let config = LinkConfig {
            path: Path::root("l"),
            latency: 1,
            depth: 2,
        };
        link(&config, from, to)
    }

    #[test]
    fn bit_is_set_from_the_send_until_the_last_message_is_taken() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let ((_, quiet), (mut out, mut input)) = (joined(&from, &to), joined(&from, &to));
        let mut arrivals = ArrivalMask::default();
        assert_eq!((arrivals.add(&quiet), arrivals.add(&input)), (0, 1));
        assert_eq!(arrivals.in_flight(), 0);
        out.send(Cycle(0), 7);
        out.send(Cycle(0), 8);
        assert_eq!(arrivals.in_flight(), 0b10);
        assert_eq!(input.recv(Cycle(1)), Some(7));
        assert_eq!(arrivals.in_flight(), 0b10);
        assert_eq!(input.recv(Cycle(1)), Some(8));
        assert_eq!(arrivals.in_flight(), 0);
        out.send(Cycle(2), 9);
        input.clear();
        assert_eq!(arrivals.in_flight(), 0);
    }

    #[test]
    fn deferred_wakeup_comes_in_its_cycle_and_not_with_the_message() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let (mut out, mut input) = joined(&from, &to);
        let mut arrivals = ArrivalMask::default();
        arrivals.add(&input);
        arrivals.defer_wakeups(Cycle(5));
        out.send(Cycle(0), 7);
        assert_eq!(input.recv(Cycle(1)), Some(7));
        out.send(Cycle(6), 8);
        let due = |now| out.tile.wheel.next(now);
        assert_eq!((due(Cycle(0)), due(Cycle(6))), (Cycle(5), Cycle(7)));
    }

    #[test]
    fn bit_of_a_port_from_another_tile_is_always_set() {
        let (mut here, mut there) = (TileBuilder::new(), TileBuilder::new());
        let (from, near, to) = (there.slot(), here.slot(), here.slot());
        let ((_, far), (_, input)) = (joined(&from, &to), joined(&near, &to));
        let mut arrivals = ArrivalMask::default();
        arrivals.add(&far);
        arrivals.add(&input);
        assert_eq!(arrivals.in_flight(), 0b01);
    }

    #[test]
    fn header_holds_a_waiting_sender_and_the_port_number() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let (mut out, mut input) = joined(&from, &to);
        let mut arrivals = ArrivalMask::default();
        arrivals.add(&input);
        out.send(Cycle(0), 1);
        out.send(Cycle(0), 2);
        out.await_room(Cycle(0));
        input.recv(Cycle(1));
        out.send(Cycle(2), 3);
        assert_eq!(arrivals.in_flight(), 1);
    }
}
