//! The scenarios of a folder, a glob pattern, a file or a built-in name.

use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use thiserror::Error;
use warpwave_components::text_file;

use crate::scenario::{builtin, nearest};

/// Keys of a scenario's text. Other TOML files, such as presets, have none of them.
const KEYS: [&str; 2] = ["launch", "ptx"];

/// Why there is no scenario to test.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FilesError {
    /// Nothing has this name.
    #[error("`{name}` is no file, folder, glob pattern or built-in scenario{}", hint(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// The most similar built-in scenario.
        nearest: Option<String>,
    },
    /// A folder or pattern has no scenario.
    #[error("`{name}` has no scenario; a scenario is a TOML file with `ptx` and `launch`")]
    Empty {
        /// The folder or pattern.
        name: String,
    },
    /// A folder cannot be read: its scenarios would be left out without a word.
    #[error("cannot read the folder {folder}: {reason}; give read permission, or name the scenarios one by one")]
    Unreadable {
        /// The folder.
        folder: String,
        /// Reason given by the system.
        reason: String,
    },
    /// The glob pattern is malformed.
    #[error("`{name}` is no glob pattern: {reason}")]
    BadPattern {
        /// The pattern.
        name: String,
        /// The fault.
        reason: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Finds scenarios, in alphabetical order of their paths. In a folder, and in all folders below it, TOML files of other kinds are
/// left out.
///
/// # Errors
/// If there is no scenario, or if a folder on the way cannot be read.
pub fn find(name: &str) -> Result<Vec<String>, FilesError> {
    let path = Path::new(name);
    if path.is_file() {
        // A file that is named is a scenario, whatever its keys: the run reports its fault.
        return Ok(vec![name.to_owned()]);
    }
    let found = if path.is_dir() {
        in_folder(name)?
    } else if name.contains(['*', '?', '[']) {
        let mut found = Vec::new();
        for path in matches(name)? {
            match Path::new(&path).is_dir() {
                true => found.extend(in_folder(&path)?),
                false => found.push(path),
            }
        }
        found
    } else {
        return built_in(name);
    };
    match found.is_empty() {
        true => Err(FilesError::Empty { name: name.to_owned() }),
        false => Ok(found),
    }
}

fn in_folder(folder: &str) -> Result<Vec<String>, FilesError> {
    // The name of a folder may have the signs of a pattern, such as `[`.
    let pattern = format!("{}/**/*.toml", Pattern::escape(folder.trim_end_matches('/')));
    let mut found = matches(&pattern)?;
    found.retain(|path| is_scenario(Path::new(path)));
    Ok(found)
}

fn matches(pattern: &str) -> Result<Vec<String>, FilesError> {
    let options = MatchOptions {
        // Leaves out hidden folders, such as those of version control.
        require_literal_leading_dot: true,
        ..MatchOptions::new()
    };
    let paths = glob::glob_with(pattern, options).map_err(|error| FilesError::BadPattern {
        name: pattern.to_owned(),
        reason: error.to_string(),
    })?;
    let shown = |path: Result<PathBuf, glob::GlobError>| match path {
        Ok(path) => Ok(path.display().to_string()),
        Err(error) => Err(FilesError::Unreadable {
            folder: error.path().display().to_string(),
            reason: error.error().to_string(),
        }),
    };
    paths.map(shown).collect()
}

/// True for a scenario, and for a text that is no TOML: its fault must be seen.
fn is_scenario(path: &Path) -> bool {
    let table = text_file::read(path).map(|text| text.parse::<toml::Table>());
    match table {
        Ok(Ok(table)) => KEYS.iter().any(|key| table.contains_key(*key)),
        _ => true,
    }
}

fn built_in(name: &str) -> Result<Vec<String>, FilesError> {
    let folder = builtin::in_folder(name);
    match folder.is_empty() {
        true if builtin::exists(name) => Ok(vec![name.to_owned()]),
        true => Err(FilesError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, builtin::names()),
        }),
        false => Ok(folder.into_iter().map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folder_has_scenarios_at_any_depth_and_other_toml_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("b.toml", "ptx = \"k.ptx\"");
        write("a/b/c.toml", "launch = []");
        write("a/gpu.toml", "base = \"tiny\"");
        write("a/broken.toml", "ptx = ");
        write(".hidden/d.toml", "ptx = \"k.ptx\"");
        let names = |pattern: &str| {
            let pattern = format!("{}/{pattern}", folder.path().display());
            let found = find(&pattern).unwrap();
            let short = found.iter().map(|path| path.rsplit('/').next().unwrap().to_owned());
            short.collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["c.toml", "broken.toml", "b.toml"]);
        assert_eq!(names("b*"), ["b.toml"]);
        assert_eq!(names("a/**/*.toml"), ["c.toml", "broken.toml", "gpu.toml"]);
        assert_eq!(names("b.toml"), ["b.toml"]);
    }

    #[test]
    fn built_in_scenario_is_found_by_name_or_folder_and_a_wrong_name_is_refused() {
        assert_eq!(find("gelu"), Ok(vec!["gelu_erf".to_owned(), "gelu_tanh".to_owned()]));
        assert_eq!(find("saxpy"), Ok(vec!["saxpy".to_owned()]));
        assert!(
            find("saxpi")
                .unwrap_err()
                .to_string()
                .ends_with("did you mean `saxpy`?")
        );
        assert!(matches!(find("no/such/*.toml"), Err(FilesError::Empty { .. })));
        assert!(matches!(find("[a"), Err(FilesError::BadPattern { .. })));
    }
}
