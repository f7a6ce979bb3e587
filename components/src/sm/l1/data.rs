//! The bytes of the L1's lines, by place.

use crate::line_bytes::LineBytes;
use crate::proto::mem::{LINE, copy_bytes, copy_sectors};

/// One line's bytes for each place of the tags.
pub(super) struct Data(LineBytes);

impl Data {
    /// Bytes for so many places.
    pub(super) fn new(places: usize) -> Self {
        Data(LineBytes::new(places))
    }

    /// Copies sectors of a line out.
    #[inline]
    pub(super) fn read(&self, place: usize, sectors: u8, to: &mut [u8; LINE]) {
        copy_sectors(&self.0[place], to, sectors);
    }

    /// Copies filled sectors in.
    #[inline]
    pub(super) fn fill(&mut self, place: usize, sectors: u8, from: &[u8; LINE]) {
        self.0.use_place(place);
        copy_sectors(from, &mut self.0[place], sectors);
    }

    /// Copies stored bytes in.
    #[inline]
    pub(super) fn write(&mut self, place: usize, mask: u128, from: &[u8; LINE]) {
        copy_bytes(from, &mut self.0[place], mask);
    }
}
