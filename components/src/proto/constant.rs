//! Lines of constant banks, between the caches of an SM: a request, and the same message back as its fill.
//!
//! No bytes travel. The banks do not change during a launch, and each reader has them in its `Grid`.

/// Bits of a byte address in a bank: 2^16 words.
const ADDRESS_BITS: u32 = 18;

/// A line of a constant bank of one launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConstantLine {
    /// The launch.
    pub grid: u32,
    /// Number of the line among those of all banks: [`ConstantLine::number`].
    pub line: u32,
}

impl ConstantLine {
    /// Number of the line of `bytes` bytes, a power of two, that holds byte `address` of a bank. Never 0.
    #[inline]
    pub fn number(bank: u8, address: u32, bytes: u32) -> u32 {
        let place = (u32::from(bank) << ADDRESS_BITS) | (address % (1 << ADDRESS_BITS));
        // Number 0 means no line in the index of a cache.
        (place >> bytes.trailing_zeros()) + 1
    }

    /// True for a line of bank 0, which has the parameters of the launch.
    #[inline]
    pub fn is_in_bank_0(number: u32, bytes: u32) -> bool {
        (number - 1) << bytes.trailing_zeros() < 1 << ADDRESS_BITS
    }

    /// Number of the line of `larger` bytes that holds line `number` of `bytes` bytes. Both are powers of two.
    #[inline]
    pub fn containing(number: u32, bytes: u32, larger: u32) -> u32 {
        ((number - 1) >> (larger.trailing_zeros() - bytes.trailing_zeros())) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_two_banks_and_of_neighbours_differ() {
        let number = |bank, address| ConstantLine::number(bank, address, 64);
        assert_eq!(number(0, 0), number(0, 63));
        assert_eq!(number(0, 64), number(0, 0) + 1);
        assert_ne!(number(0, 0), number(1, 0));
        assert_ne!(number(0, 0), 0);
    }

    #[test]
    fn first_and_last_line_of_bank_0_are_in_it_and_bank_1_is_not() {
        let number = |bank, address| ConstantLine::number(bank, address, 64);
        assert!(ConstantLine::is_in_bank_0(number(0, 0), 64));
        assert!(ConstantLine::is_in_bank_0(number(0, (1 << 18) - 1), 64));
        assert!(!ConstantLine::is_in_bank_0(number(1, 0), 64));
    }

    #[test]
    fn larger_line_holds_four_neighbours() {
        let larger = |address| ConstantLine::containing(ConstantLine::number(3, address, 64), 64, 256);
        assert_eq!(larger(256), larger(448));
        assert_eq!(larger(256), ConstantLine::number(3, 300, 256));
        assert_ne!(larger(192), larger(256));
    }
}
