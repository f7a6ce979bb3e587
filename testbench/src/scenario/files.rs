//! Where the files beside a scenario are: in a folder on disk, or in the folder built into the program.

use std::path::{Component, Path, PathBuf};

use include_dir::{Dir, include_dir};

use super::error::Fault;

/// The built-in scenarios with their files.
pub(super) static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// A folder that relative paths start from.
#[derive(Clone, Debug)]
pub(super) enum Files {
    /// A folder on disk.
    Disk(PathBuf),
    /// A folder of [`BUILT_IN`].
    BuiltIn(PathBuf),
}

impl Files {
    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Fault> {
        let unreadable = |reason: String| Fault::Unreadable {
            path: path.to_owned(),
            reason,
        };
        match self {
            Files::Disk(folder) => std::fs::read(folder.join(path)).map_err(|error| unreadable(error.to_string())),
            Files::BuiltIn(folder) => BUILT_IN
                .get_file(plain(&folder.join(path)))
                .map(|file| file.contents().to_vec())
                .ok_or_else(|| unreadable("no such file among the built-in scenarios".to_owned())),
        }
    }

    /// The text of a file.
    pub fn read_text(&self, path: &str) -> Result<String, Fault> {
        String::from_utf8(self.read(path)?).map_err(|_| Fault::Unreadable {
            path: path.to_owned(),
            reason: "not UTF-8 text".to_owned(),
        })
    }

    /// A path beside the scenario as one from the current folder; built-in files have none.
    pub fn resolve(&self, path: &str) -> String {
        match self {
            Files::Disk(folder) => folder.join(path).display().to_string(),
            Files::BuiltIn(_) => path.to_owned(),
        }
    }
}

/// The path without `.` and `..`.
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
