//! The interface between a component's signals and a waveform.
//!
//! One call of [`Component::probe`](crate::component::Component::probe) both declares the signals (names, widths, states) and gives their
//! values. So declarations and values always agree. An unwatched component costs one branch per tick.

/// The width of an instruction's number, in bits.
pub const CODE_WIDTH: u32 = 24;

/// Bits of a count of at most `most`, at least 1.
pub const fn count_width(most: u64) -> u32 {
    if most == 0 { 1 } else { u64::BITS - most.leading_zeros() }
}

/// Receives the signals of a component, in their fixed order.
///
/// A value of `None` is missing. A waveform shows it as x (never written) for storage, and as z (not driven) for other signals.
pub trait Probe {
    /// Shows a bit.
    fn bit(&mut self, name: &'static str, value: Option<bool>);
    /// Shows an unsigned number of `width` bits, 1 to 64.
    fn vector(&mut self, name: &'static str, width: u32, value: Option<u64>);
    /// Shows an unsigned number of `width` bits that is kept in storage.
    fn stored(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        // Only a waveform tells storage (x) from other signals (z).
        self.vector(name, width, value);
    }
    /// Shows an instruction by its number among the instructions of all kernels, of [`CODE_WIDTH`] bits. Views show its text.
    fn code(&mut self, name: &'static str, value: Option<u64>) {
        self.vector(name, CODE_WIDTH, value);
    }
    /// Shows a state: `value` is an index into `names`.
    fn state(&mut self, name: &'static str, names: &'static [&'static str], value: Option<usize>);
    /// Begins the part `name[index]`. The signals up to `leave` belong to it.
    fn enter(&mut self, name: &'static str, index: usize);
    /// Ends the innermost part.
    fn leave(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_holds_the_greatest_count_and_no_bit_more() {
        let widths = [0, 1, 2, 3, 4, 255, 256, u64::MAX].map(count_width);
        assert_eq!(widths, [1, 1, 2, 2, 3, 8, 9, 64]);
    }
}
