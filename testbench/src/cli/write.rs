//! Writes output files. A path is tested before the run. A file is written under a temporary name and renamed once complete.
//!
//! Symbolic links are followed: the target is replaced and the link stays. Devices, pipes and standard output are written
//! directly. A named pipe needs a reader: Ctrl-C ends the wait for one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use super::failure::{Failure, tell};
use super::progress::is_stopped;

/// Maximum number of symbolic links in one path.
const MAX_LINKS: usize = 40;

/// Host time between two looks for the reader of a pipe, and looks before the user is told.
const PIPE_POLL: Duration = Duration::from_millis(10);
const QUIET_POLLS: u32 = 50;

/// Maximum number of temporary files of one process in one folder.
const MAX_TEMPORARY: u32 = 100;

/// Resolves a path, whether the file exists or not: follows links, and removes `.` and `..` from its folder.
pub fn resolve(path: &Path) -> PathBuf {
    follow(path, MAX_LINKS)
}

fn follow(path: &Path, links: usize) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let folder = folder_of(path);
    match (fs::read_link(path), path.file_name()) {
        // A link to a file that does not exist yet.
        (Ok(target), _) if links > 0 => follow(&folder.join(target), links - 1),
        (_, Some(name)) if path != folder => follow(folder, links).join(name),
        _ => path.to_owned(),
    }
}

/// The folder that a path is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// True if a file must be written directly: a device, a pipe, or an open file that the system shows as a path.
pub fn is_special(path: &Path) -> bool {
    // These paths may show a regular file, which a rename would replace.
    let shown = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    shown.iter().any(|place| path.starts_with(place))
        || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Refuses `-`, which other programs take for standard output: a file of that name is rarely wanted.
fn refuse_dash(path: &Path) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => Err(Failure::input(
            "`-` is no output here; write /dev/stdout for standard output, or ./- for a file of that name",
        )),
        false => Ok(()),
    }
}

/// Tests that a file can be written, without changing it.
pub fn try_file(path: &Path) -> Result<(), Failure> {
    refuse_dash(path)?;
    let tried = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) if is_special(path) => Ok(()),
        Ok(_) => OpenOptions::new().write(true).open(path).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Temporary::beside(&resolve(path)).map(drop),
        Err(error) => Err(error),
    };
    tried.map_err(|error| Failure::write(path, error))
}

/// Tests that files can be written to a folder, without changing it. The folder may not exist yet.
pub fn try_folder(path: &Path) -> Result<(), Failure> {
    refuse_dash(path)?;
    let existing = path.ancestors().find(|folder| folder.exists());
    let existing = existing.unwrap_or(Path::new("."));
    let tried = match fs::metadata(existing) {
        Ok(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => Temporary::beside(&existing.join("file")).map(drop),
        Err(error) => Err(error),
    };
    tried.map_err(|error| Failure::write(path, error))
}

/// Creates a folder.
pub fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))
}

/// Writes `bytes` to a file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, |to| to.write_all(bytes))
}

/// Writes a file with the function `fill`. An earlier file stays in place until the new one is complete.
pub fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let written = match path.to_str() {
        // A second handle of the path would write at position 0 of a redirected file.
        Some("/dev/stdout") => fill(&mut io::stdout()),
        Some("/dev/stderr") => fill(&mut io::stderr()),
        _ if is_special(path) => open_special(path).and_then(|file| filled(file, fill)),
        _ => rename(&resolve(path), fill),
    };
    written.map_err(|error| Failure::write(path, error))
}

fn open_special(path: &Path) -> io::Result<File> {
    // Held until the file is open, so the reader of a pipe stays.
    let _reader = await_reader(path)?;
    OpenOptions::new().write(true).open(path)
}

/// Waits until a process reads a named pipe, with a note on standard error. Returns a handle that keeps the reader. `None` for any other
/// file. A plain open waits too, and no signal ends that wait.
#[cfg(unix)]
pub fn await_reader(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

    use rustix::io::Errno;

    if !fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return Ok(None);
    }
    let no_reader = Some(Errno::NXIO.raw_os_error());
    let mut polls = 0;
    loop {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        match OpenOptions::new().write(true).custom_flags(flags).open(path) {
            Err(error) if error.raw_os_error() == no_reader && !is_stopped() => thread::sleep(PIPE_POLL),
            Err(error) if error.raw_os_error() == no_reader => {
                return Err(io::Error::new(error.kind(), "no process reads this pipe"));
            }
            opened => return opened.map(Some),
        }
        if polls == QUIET_POLLS {
            tell(&format!(
                "note: waiting for a process that reads the pipe {}",
                path.display()
            ));
        }
        polls += 1;
    }
}

/// Other systems have no named pipes among their files.
#[cfg(not(unix))]
pub fn await_reader(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

fn rename(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    match Temporary::beside(path) {
        Ok((file, mut temporary)) => {
            filled(file, fill)?;
            // The new file keeps the mode of the old one.
            if let Ok(before) = fs::metadata(path) {
                fs::set_permissions(&temporary.path, before.permissions())?;
            }
            fs::rename(&temporary.path, path)?;
            temporary.is_gone = true;
            Ok(())
        }
        // The folder accepts no new file, but the existing file may be writable.
        Err(_) if path.exists() => File::create(path).and_then(|file| filled(file, fill)),
        Err(error) => Err(error),
    }
}

fn filled(file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    fill(&mut to)?;
    to.flush()
}

/// A temporary file. A drop removes it, unless it was renamed.
struct Temporary {
    path: PathBuf,
    is_gone: bool,
}

impl Temporary {
    /// Creates a temporary file in the folder of `path`. The path must name a file.
    fn beside(path: &Path) -> io::Result<(File, Temporary)> {
        if path.file_name().is_none() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for n in 0..MAX_TEMPORARY {
            let path = folder_of(path).join(format!(".warpwave-{}-{n}.tmp", process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((file, Temporary { path, is_gone: false })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_gone {
            // An error is harmless: another process may have removed the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}
