//! Faults of a configuration, each with a text that names the key and its bound.

use thiserror::Error;

/// A fault of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigFault {
    /// A count is 0.
    #[error("`{key}` is 0: it must be at least 1")]
    Zero {
        /// Dotted key.
        key: String,
    },
    /// A number that divides addresses is not a power of two.
    #[error("`{key}` is {value}: it must be a power of two")]
    NotPowerOfTwo {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
    },
    /// A number is not a multiple of its unit.
    #[error("`{key}` is {value}: it must be a multiple of {of} ({unit})")]
    NotMultiple {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// Name of the unit.
        of: String,
        /// Value of the unit.
        unit: u64,
    },
    /// A number does not divide another.
    #[error("`{key}` is {value}: it must divide `{of}` ({whole})")]
    NotDivisor {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// Dotted key of the number that it must divide.
        of: &'static str,
        /// Value of that number.
        whole: u64,
    },
    /// A number is below its least value.
    #[error("`{key}` is {value}: it must be at least {least}, {why}")]
    TooSmall {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// Least value.
        least: u64,
        /// Where the bound comes from.
        why: &'static str,
    },
    /// A number is above its greatest value.
    #[error("`{key}` is {value}: it must be at most {most}, {why}")]
    TooLarge {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// Greatest value.
        most: u64,
        /// Where the bound comes from.
        why: &'static str,
    },
    /// A count, depth or number of cycles is far above that of any GPU.
    #[error("`{key}` is {value}: it must be at most {most}, far more than any part has")]
    Excessive {
        /// Dotted key.
        key: String,
        /// Its value.
        value: u64,
        /// Greatest value.
        most: u64,
    },
    /// A number of the part that this model has as a constant.
    #[error("`{key}` is {value}: it must be {constant}, {why}")]
    Constant {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The only value.
        constant: u64,
        /// What the constant is.
        why: &'static str,
    },
    /// A list and the count of its entries differ.
    #[error("`{key}` has {len} entries: it must have {count}, the value of `{count_key}`")]
    WrongLength {
        /// Dotted key of the list.
        key: &'static str,
        /// Its length.
        len: u64,
        /// Dotted key of the count.
        count_key: &'static str,
        /// The count.
        count: u64,
    },
    /// A list is empty, or not in strictly ascending order.
    #[error("`{key}` is {values:?}: it must have at least one entry, in ascending order")]
    NotAscending {
        /// Dotted key of the list.
        key: &'static str,
        /// The list.
        values: Vec<u32>,
    },
}
