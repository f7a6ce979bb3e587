//! Reads text files up to a size limit: an endless file (a device, a pipe) cannot exhaust the host's memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

/// Largest text file in bytes: PTX, scenario or preset. Assumed: compiling PTX takes about 60 times its bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// Reason why a text file cannot be read.
#[derive(Debug, Error)]
pub enum TextError {
    /// The system cannot open or read the file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has more bytes than [`MAX_BYTES`].
    #[error("larger than {} MiB, the limit of a text", MAX_BYTES >> 20)]
    TooLarge,
    /// The bytes are not UTF-8.
    #[error("not UTF-8 text")]
    NotUtf8,
}

/// Reads the text of a file.
///
/// # Errors
/// A file that cannot be read, has more than [`MAX_BYTES`] bytes or is not UTF-8.
pub fn read(path: &Path) -> Result<String, TextError> {
    let file = File::open(path)?;
    // Refuses a regular file before it is read. An endless file has length 0 here.
    if file.metadata()?.len() > MAX_BYTES {
        return Err(TextError::TooLarge);
    }
    decode(file, MAX_BYTES)
}

fn decode(from: impl Read, most: u64) -> Result<String, TextError> {
    let mut bytes = Vec::new();
    // One byte more shows that the text goes on.
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(TextError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| TextError::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_reader_is_refused_with_the_limit() {
        let text = |from: &[u8], most| decode(from, most).map_err(|error| error.to_string());
        assert_eq!(text(b"abc", 3), Ok("abc".to_owned()));
        let limit = Err("larger than 64 MiB, the limit of a text".to_owned());
        assert_eq!(text(b"abcd", 3), limit);
        assert_eq!(decode(io::repeat(0), 1 << 16).map_err(|error| error.to_string()), limit);
        assert_eq!(text(b"\xff", 3), Err("not UTF-8 text".to_owned()));
    }
}
