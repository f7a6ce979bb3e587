//! What `vprintf` leaves for the host: records in a buffer of device memory, one for each thread's call.
//!
//! | bytes | content |
//! |---|---|
//! | 0-3 | bytes that calls asked for, from [`FIRST`] on; more than there are where the buffer overflowed |
//! | [`FIRST`] on | records, one behind the other |
//!
//! A record is a multiple of 16 bytes: its size, the thread's linear index in its block, the address of the format (8 bytes), the block
//! in x, y, z, a zero, all of 4 bytes but the address; then the arguments as the caller laid them out. A call for which there is
//! no room leaves no record and returns -1.

/// The name of the buffer among [`crate::Module::globals`].
pub const BUFFER: &str = "printf buffer";
/// Bytes of the buffer, as many as CUDA gives by default.
pub const BYTES: u32 = 1 << 20;
/// The place of the first record.
pub const FIRST: u32 = 16;
/// Bytes of a record before its arguments.
pub const HEADER: u32 = 32;

/// What a conversion of a format takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A word: an integer of 32 bits, or a width or precision.
    Word,
    /// Eight bytes, which lie at a multiple of eight: a wider integer, an address, a number with a point.
    Wide,
}

/// The arguments of a format, in order.
///
/// ```
/// use warpwave_ptx::print::{Argument::*, arguments};
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

/// Bytes that arguments take, one behind the other with their alignment.
pub fn bytes(arguments: &[Argument]) -> u32 {
    arguments.iter().fold(0, |end, argument| match argument {
        Argument::Word => end + 4,
        Argument::Wide => end.next_multiple_of(8) + 8,
    })
}
