//! The header of a packet for the crossbar. It travels in the sideband of the link.
//!
//! ```text
//!   14            3 2     0
//!   |    output    | size |     size: sectors of data, or 7 for an atomic
//! ```
//!
//! The crossbar routes by the header. It reads a packet only for the size of an atomic.

use warpwave_hw::link::MAX_SIDEBAND;
use warpwave_isa::inst::AtomOp;

use super::mem::{Packet, PacketKind, SECTOR};

/// The direction of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From SMs to slices.
    Request,
    /// From slices to SMs.
    Response,
}

/// Maximum number of outputs of a network: a header has 12 bits for the output.
pub const MAX_OUTPUTS: usize = (MAX_SIDEBAND as usize + 1) >> SIZE_BITS;

/// Bits of the size.
const SIZE_BITS: u32 = 3;

/// Size field of an atomic: its number of bytes depends on its lanes.
const OF_ATOMIC: u16 = (1 << SIZE_BITS) - 1;

/// Output and size of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header(u16);

impl Header {
    /// The header of a packet. A request goes to [`Packet::slice`], a response to [`Packet::sm`].
    #[inline]
    pub fn of(packet: &Packet, direction: Direction) -> Self {
        // A request carries data only for a store, a response only for a load.
        let (output, has_data) = match direction {
            Direction::Request => (packet.slice, matches!(packet.kind, PacketKind::Store)),
            Direction::Response => (packet.sm, matches!(packet.kind, PacketKind::Load)),
        };
        let size = match packet.kind {
            PacketKind::Atomic | PacketKind::Reduction => OF_ATOMIC,
            _ if has_data => packet.n_sectors() as u16,
            _ => 0,
        };
        // The output fits: a machine with more than `MAX_OUTPUTS` is refused.
        Header(output << SIZE_BITS | size)
    }

    /// The header in the sideband of a link.
    #[inline]
    pub fn from_sideband(sideband: u16) -> Self {
        Header(sideband)
    }

    /// The sideband of this header.
    #[inline]
    pub fn sideband(self) -> u16 {
        self.0
    }

    /// Number of the output.
    #[inline]
    pub fn output(self) -> usize {
        usize::from(self.0 >> SIZE_BITS)
    }

    /// Sectors of data; 0 for an atomic.
    #[inline]
    pub fn data_sectors(self) -> u32 {
        match self.0 & OF_ATOMIC {
            OF_ATOMIC => 0,
            sectors => sectors.into(),
        }
    }

    /// Data bytes. Calls `of_atomic` for the bytes of an atomic.
    #[inline]
    pub fn data_bytes(self, of_atomic: impl FnOnce() -> u32) -> u32 {
        match self.0 & OF_ATOMIC {
            OF_ATOMIC => of_atomic(),
            _ => self.data_sectors() * SECTOR as u32,
        }
    }
}

/// Data bytes of an atomic. A request has a word per lane, for CAS two. A response has the old values.
#[cold]
pub fn atomic_bytes(packet: &Packet, direction: Direction) -> u32 {
    let Some(atomic) = &packet.atomic else { return 0 };
    let words = atomic.n as u32 * u32::from(atomic.ty.bytes());
    match (packet.kind, direction) {
        (_, Direction::Request) if atomic.op == AtomOp::Cas => 2 * words,
        (_, Direction::Request) | (PacketKind::Atomic, _) => words,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ports::{add, load, store};

    fn bytes(packet: &Packet, direction: Direction) -> u32 {
        Header::of(packet, direction).data_bytes(|| atomic_bytes(packet, direction))
    }

    #[test]
    fn data_bytes_depend_on_the_direction() {
        let responses = |packet: &Packet| bytes(packet, Direction::Response);
        let requests = |packet: &Packet| bytes(packet, Direction::Request);
        let load = load(0, 0b1011, 0);
        assert_eq!((requests(&load), responses(&load)), (0, 96));
        let store = store(0, 0xff, 1, 0);
        assert_eq!((requests(&store), responses(&store)), (32, 0));
        let mut atomic = add(0, 9, 1, 0);
        assert_eq!((requests(&atomic), responses(&atomic)), (36, 36));
        atomic.atomic.as_mut().unwrap().op = AtomOp::Cas;
        assert_eq!(
            (requests(&atomic), responses(&atomic)),
            (72, 36),
            "CAS sends a compare value per lane"
        );
        atomic.kind = PacketKind::Reduction;
        assert_eq!(responses(&atomic), 0);
    }

    #[test]
    fn output_is_the_slice_or_the_sm() {
        let packet = Packet {
            slice: MAX_OUTPUTS as u16 - 1,
            sm: 7,
            sectors: 0b1111,
            ..Packet::blank()
        };
        let passed = |direction| Header::from_sideband(Header::of(&packet, direction).sideband());
        assert_eq!(passed(Direction::Request).output(), MAX_OUTPUTS - 1);
        assert_eq!(passed(Direction::Response).output(), 7);
        assert_eq!(passed(Direction::Response).data_bytes(|| unreachable!()), 128);
    }
}
