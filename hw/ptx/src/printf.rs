//! The `printf` buffer: one record in device memory for each `vprintf` call of a thread.
//!
//! | bytes | content |
//! |---|---|
//! | 0-3 | bytes requested by all calls; more than [`BUFFER_BYTES`] - [`FIRST_RECORD`] after an overflow |
//! | from [`FIRST_RECORD`] | records without gaps |
//!
//! A record has these fields, and its size is a multiple of 16 bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 0-3 | size of the record |
//! | 4-7 | linear index of the thread in its block |
//! | 8-15 | address of the format string |
//! | 16-27 | block index in x, y and z |
//! | 28-31 | zero |
//! | from [`HEADER_BYTES`] | arguments in the caller's layout |
//!
//! A call that finds no room writes no record and returns -1.

/// Name of the buffer in [`crate::Module::globals`].
pub const BUFFER: &str = "printf buffer";
/// Size of the buffer in bytes: CUDA's default.
pub const BUFFER_BYTES: u32 = 1 << 20;
/// Offset of the first record in bytes.
pub const FIRST_RECORD: u32 = 16;
/// Bytes of a record before its arguments.
pub const HEADER_BYTES: u32 = 32;

/// Size class of a format argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// 4 bytes: an integer of 32 bits, a width or a precision.
    Word,
    /// 8 bytes, aligned to 8: a wider integer, an address or a floating-point number.
    Wide,
}

/// Returns the arguments that a format string consumes, in order.
///
/// ```
/// use warpwave_ptx::printf::{Argument::*, arguments};
/// assert_eq!(arguments(b"%d %5.*f%% %s %lld\n"), [Word, Word, Wide, Wide, Wide]);
/// ```
pub fn arguments(format: &[u8]) -> Vec<Argument> {
    let mut found = Vec::new();
    let mut rest = format.iter().copied().take_while(|&byte| byte != 0);
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            continue;
        }
        let mut longer = 0;
        for byte in rest.by_ref() {
            match byte {
                // Types as C passes them: narrow integers as `int`, and `float` as `double`.
                b'*' => found.push(Argument::Word),
                b'l' | b'j' | b'z' | b't' => longer += 1,
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' if longer > 0 => found.push(Argument::Wide),
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' => found.push(Argument::Word),
                b'a'..=b'z' | b'A'..=b'Z' if byte != b'h' && byte != b'L' => found.push(Argument::Wide),
                _ => {}
            }
            if byte == b'%' || (byte.is_ascii_alphabetic() && !b"ljzthL".contains(&byte)) {
                break;
            }
        }
    }
    found
}

/// Returns the bytes of the arguments, with alignment gaps.
pub fn bytes(arguments: &[Argument]) -> u32 {
    arguments.iter().fold(0, |end, argument| match argument {
        Argument::Word => end + 4,
        Argument::Wide => end.next_multiple_of(8) + 8,
    })
}
