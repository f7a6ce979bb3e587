//! Writes output files. A place is tried before the run; a file is written beside its place and renamed when it is complete.
//!
//! Links are followed: the file that a link names is replaced, and the link stays. Devices, pipes and standard output are
//! written to as they are.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

use super::failure::Failure;

/// Most links that one path may lead through.
const MAX_LINKS: usize = 40;

/// Most temporary files of one process in one folder.
const MAX_TEMPORARY: u32 = 100;

/// The file that a path names, whether it exists or not: links followed, its folder without `.` and `..`.
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

/// Whether a file is written where it is: a device, a pipe, or an open file that the system shows under a name.
pub fn is_special(path: &Path) -> bool {
    let shown = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    shown.iter().any(|place| path.starts_with(place))
        || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Tries whether a file can be written, and leaves everything as it is.
pub fn try_file(path: &Path) -> Result<(), Failure> {
    let tried = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) if is_special(path) => Ok(()),
        Ok(_) => OpenOptions::new().write(true).open(path).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Temporary::beside(&resolve(path)).map(drop),
        Err(error) => Err(error),
    };
    tried.map_err(|error| Failure::write(path, error))
}

/// Tries whether files can be written to a folder, which may be made first, and leaves everything as it is.
pub fn try_folder(path: &Path) -> Result<(), Failure> {
    let existing = path.ancestors().find(|folder| folder.exists());
    let existing = existing.unwrap_or(Path::new("."));
    let tried = match fs::metadata(existing) {
        Ok(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => Temporary::beside(&existing.join("file")).map(drop),
        Err(error) => Err(error),
    };
    tried.map_err(|error| Failure::write(path, error))
}

/// Makes a folder.
pub fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))
}

/// Writes a file of these bytes.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, |to| to.write_all(bytes))
}

/// Writes a file by `fill`. Until it is complete, an earlier file of the name stays.
pub fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let written = match path.to_str() {
        Some("/dev/stdout") => fill(&mut io::stdout()),
        Some("/dev/stderr") => fill(&mut io::stderr()),
        _ if is_special(path) => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| filled(file, fill)),
        _ => rename(&resolve(path), fill),
    };
    written.map_err(|error| Failure::write(path, error))
}

fn rename(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    match Temporary::beside(path) {
        Ok((file, mut temporary)) => {
            filled(file, fill)?;
            if let Ok(before) = fs::metadata(path) {
                fs::set_permissions(&temporary.path, before.permissions())?;
            }
            fs::rename(&temporary.path, path)?;
            temporary.is_gone = true;
            Ok(())
        }
        // The folder takes no new file, but the file itself may be written.
        Err(_) if path.exists() => File::create(path).and_then(|file| filled(file, fill)),
        Err(error) => Err(error),
    }
}

fn filled(file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    fill(&mut to)?;
    to.flush()
}

/// A file that is removed when this is dropped, unless it was renamed.
struct Temporary {
    path: PathBuf,
    is_gone: bool,
}

impl Temporary {
    /// A new file in the folder of `path`, which must name a file.
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
            // Another process may have removed it: then it is gone as well.
            let _ = fs::remove_file(&self.path);
        }
    }
}
