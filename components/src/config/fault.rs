//! The faults that a configuration can have, in sentences.

use std::fmt;

/// One thing wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigFault {
    /// A number that counts something is 0.
    Zero {
        /// Dotted key.
        key: String,
    },
    /// A number by which addresses are split is no power of two.
    NotPowerOfTwo {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
    },
    /// A number does not hold a whole count of a smaller one.
    NotMultiple {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// What it must be a multiple of, in words.
        of: String,
        /// The value of that.
        unit: u64,
    },
    /// A number does not divide another.
    NotDivisor {
        /// Dotted key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// Dotted key of what it must divide.
        of: &'static str,
        /// The value of that.
        whole: u64,
    },
    /// A number is below its least sensible value.
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
    /// A number is above its greatest sensible value.
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
    /// A count, depth or number of cycles is beyond any machine's.
    Excessive {
        /// Dotted key.
        key: String,
        /// Its value.
        value: u64,
        /// Greatest value.
        most: u64,
    },
    /// A list is not as long as the number that counts it.
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
    NotAscending {
        /// Dotted key of the list.
        key: &'static str,
        /// The list.
        values: Vec<u32>,
    },
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { key } => write!(f, "`{key}` is 0: it must be at least 1"),
            Self::NotPowerOfTwo { key, value } => {
                write!(f, "`{key}` is {value}: it must be a power of two")
            }
            Self::NotMultiple { key, value, of, unit } => {
                write!(f, "`{key}` is {value}: it must be a multiple of {of} ({unit})")
            }
            Self::NotDivisor { key, value, of, whole } => {
                write!(f, "`{key}` is {value}: it must divide `{of}` ({whole})")
            }
            Self::TooSmall { key, value, least, why } => {
                write!(f, "`{key}` is {value}: it must be at least {least}, {why}")
            }
            Self::TooLarge { key, value, most, why } => {
                write!(f, "`{key}` is {value}: it must be at most {most}, {why}")
            }
            Self::Excessive { key, value, most } => {
                write!(
                    f,
                    "`{key}` is {value}: it must be at most {most}, far more than any part has"
                )
            }
            Self::WrongLength {
                key,
                len,
                count_key,
                count,
            } => {
                write!(f, "`{key}` has {len} entries: `{count_key}` asks for {count}")
            }
            Self::NotAscending { key, values } => {
                write!(
                    f,
                    "`{key}` is {values:?}: it must have entries, each above the one before"
                )
            }
        }
    }
}
