//! Reads text files up to a size limit: an endless file (a device, a pipe) cannot exhaust the host's memory. A named pipe without a writer
//! is refused after [`PIPE_WAIT`].

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use thiserror::Error;

/// Largest text file in bytes: PTX, scenario or preset. Assumed: compiling PTX takes about 60 times its bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// Host time for which [`open`] waits for the writer of a named pipe. Assumed: a shell starts both ends at once.
pub const PIPE_WAIT: Duration = Duration::from_secs(10);

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
    let file = open(path)?;
    // Refuses a regular file before it is read. An endless file has length 0 here.
    if file.metadata()?.len() > MAX_BYTES {
        return Err(TextError::TooLarge);
    }
    decode(file, MAX_BYTES)
}

/// Opens an input file of any kind.
///
/// # Errors
/// A file that cannot be opened, or a named pipe that no process writes.
pub fn open(path: &Path) -> io::Result<File> {
    open_within(path, PIPE_WAIT)
}

fn open_within(path: &Path, wait: Duration) -> io::Result<File> {
    if !is_pipe(path) {
        return File::open(path);
    }
    // The system opens a pipe once both ends are there. If that never happens, the thread ends with the process.
    let (send, opened) = mpsc::channel();
    let owned = path.to_owned();
    thread::spawn(move || send.send(File::open(owned)));
    opened.recv_timeout(wait).unwrap_or_else(|_| {
        let text = format!(
            "no process has written to this pipe for {} s; start its writer first",
            wait.as_secs()
        );
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    })
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_path: &Path) -> bool {
    false
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

    #[cfg(unix)]
    #[test]
    fn pipe_without_a_writer_is_refused_and_one_with_a_writer_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let refused = open_within(&path, Duration::ZERO).unwrap_err().to_string();
        assert_eq!(
            refused,
            "no process has written to this pipe for 0 s; start its writer first"
        );
        let other = folder.path().join("other");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&other)
                .status()
                .unwrap()
                .success()
        );
        let writer = thread::spawn({
            let other = other.clone();
            move || std::fs::write(other, "text").unwrap()
        });
        assert_eq!(read(&other).unwrap(), "text");
        writer.join().unwrap();
    }

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
