//! What every message of a link offers: a number for waveforms, and a bit to change for a fault.

use std::fmt::Debug;
use std::sync::Arc;

/// A message with a number for waveforms.
pub trait Payload: Clone + Debug + Send + 'static {
    /// The meaning of the number, as one word.
    const NAME: &'static str;

    /// The number, at most 48 bits.
    fn summary(&self) -> u64;

    /// Changes one bit of the message, for a [fault](super::fault).
    fn corrupt(&mut self);
}

impl<T: Payload> Payload for Box<T> {
    const NAME: &'static str = T::NAME;

    fn summary(&self) -> u64 {
        (**self).summary()
    }

    fn corrupt(&mut self) {
        (**self).corrupt();
    }
}

impl<T: Payload + Sync> Payload for Arc<T> {
    const NAME: &'static str = T::NAME;

    fn summary(&self) -> u64 {
        (**self).summary()
    }

    fn corrupt(&mut self) {
        Arc::make_mut(self).corrupt();
    }
}

impl Payload for u64 {
    const NAME: &'static str = "number";

    fn summary(&self) -> u64 {
        // 48 bits, the width of a payload in a waveform.
        self & 0xffff_ffff_ffff
    }

    fn corrupt(&mut self) {
        *self ^= 1 << 5;
    }
}
