//! Access to the files beside a scenario: in a folder on disk, or in the folder built into the program.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use include_dir::{Dir, include_dir};
use warpwave_components::text_file;

use super::error::Fault;

/// The built-in scenarios and their files.
pub(super) static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// The folder of a scenario. Paths in the scenario are relative to it.
#[derive(Clone, Debug)]
pub(super) enum Files {
    /// A folder on disk.
    Disk(PathBuf),
    /// A folder of [`BUILT_IN`].
    BuiltIn(PathBuf),
}

impl Files {
    /// Opens a file.
    pub fn open(&self, path: &str) -> Result<Box<dyn Read>, Fault> {
        match self {
            Files::Disk(folder) => match text_file::open(&folder.join(path)) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(unreadable(path, error.to_string())),
            },
            Files::BuiltIn(folder) => Ok(Box::new(built_in(folder, path)?)),
        }
    }

    /// Reads a file as text.
    pub fn read_text(&self, path: &str) -> Result<String, Fault> {
        match self {
            Files::Disk(folder) => {
                text_file::read(&folder.join(path)).map_err(|error| unreadable(path, error.to_string()))
            }
            Files::BuiltIn(folder) => String::from_utf8(built_in(folder, path)?.to_vec())
                .map_err(|_| unreadable(path, text_file::TextError::NotUtf8.to_string())),
        }
    }

    /// Converts a path relative to the scenario to one relative to the working folder. Paths of built-in files stay as they are.
    pub fn resolve(&self, path: &str) -> String {
        match self {
            Files::Disk(folder) => folder.join(path).display().to_string(),
            Files::BuiltIn(_) => path.to_owned(),
        }
    }
}

fn built_in(folder: &Path, path: &str) -> Result<&'static [u8], Fault> {
    // The built-in folder finds a file only by its plain path.
    let file = BUILT_IN.get_file(plain(&folder.join(path)));
    let missing = || unreadable(path, "no such file among the built-in scenarios".to_owned());
    file.map(|file| file.contents()).ok_or_else(missing)
}

fn unreadable(path: &str, reason: String) -> Fault {
    let path = path.to_owned();
    Fault::Unreadable { path, reason }
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
