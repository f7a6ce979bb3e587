//! The scenarios built into the program: every TOML file below `scenarios`, named by its stem.

use std::ffi::OsStr;
use std::path::Path;

use include_dir::{Dir, DirEntry};

use super::error::{Fault, ScenarioError};
use super::files::{BUILT_IN, Files};
use super::similar::nearest;
use super::{Draft, Scenario};

/// The folder of the speed suite. Its kernels are for timing, so they are not listed.
pub const SUITE: &str = "speed";

/// The folders of the lessons: first the lessons of seconds, then the lessons of minutes. [`crate::lesson`] lists them.
pub const LESSONS: [&str; 2] = ["lessons", "lessons-nightly"];

/// A row in the list of scenarios.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The title. May be empty.
    pub title: String,
    /// The claim. May be empty.
    pub claim: String,
}

/// Names of the built-in scenarios, sorted, without the ones in [`SUITE`] and [`LESSONS`].
pub fn names() -> Vec<&'static str> {
    let is_listed = |path: &&Path| ![SUITE].iter().chain(&LESSONS).any(|folder| path.starts_with(folder));
    // The order of the built-in files is that of their folders, not of their names.
    let mut names: Vec<_> = files().into_iter().filter(is_listed).filter_map(stem).collect();
    names.sort_unstable();
    names
}

/// Names of the built-in scenarios in a folder such as `transpose`, and in the folders below it, sorted. Empty if the folder does not
/// exist.
///
/// ```
/// use warpwave::scenario::builtin;
/// assert_eq!(builtin::in_folder("gelu"), ["gelu_erf", "gelu_tanh"]);
/// assert!(builtin::in_folder("lessons").contains(&"warps"));
/// assert!(builtin::in_folder("no_such_folder").is_empty());
/// ```
pub fn in_folder(folder: &str) -> Vec<&'static str> {
    let inside = |path: &&Path| {
        path.ancestors()
            // The first ancestor of a path is the path itself.
            .skip(1)
            .any(|above| above.file_name() == Some(OsStr::new(folder)))
    };
    let mut names: Vec<_> = files().into_iter().filter(inside).filter_map(stem).collect();
    names.sort_unstable();
    names
}

/// Loads a built-in scenario.
///
/// # Errors
/// If none has the name, or if it has a fault.
pub fn load(name: &str) -> Result<Scenario, ScenarioError> {
    draft(name)?.build(None)
}

/// Title and claim of a built-in scenario.
///
/// # Errors
/// If none has the name, or if its text is not a scenario.
pub fn entry(name: &str) -> Result<Entry, ScenarioError> {
    let draft = draft(name)?;
    let words = draft.words();
    Ok(Entry {
        name: name.to_owned(),
        title: words.title.to_owned(),
        claim: words.claim.to_owned(),
    })
}

/// True if a built-in scenario has this name, listed or not.
pub fn exists(name: &str) -> bool {
    files().into_iter().any(|path| stem(path) == Some(name))
}

/// Parses a built-in scenario.
pub(crate) fn draft(name: &str) -> Result<Draft, ScenarioError> {
    let path = find(name)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let text = BUILT_IN.get_file(path).and_then(|file| file.contents_utf8());
    Draft::read(name, text.unwrap_or_default(), Files::BuiltIn(folder.to_owned()))
}

fn find(name: &str) -> Result<&'static Path, ScenarioError> {
    // A stem is unique among the built-in scenarios, so the folder need not be named.
    let path = files().into_iter().find(|path| stem(path) == Some(name));
    path.ok_or_else(|| {
        let nearest = nearest(name, files().into_iter().filter_map(stem));
        ScenarioError::new(name, "", Fault::NoScenario { nearest })
    })
}

fn stem(path: &'static Path) -> Option<&'static str> {
    path.file_stem()?.to_str()
}

fn files() -> Vec<&'static Path> {
    let mut found = Vec::new();
    collect(&BUILT_IN, &mut found);
    found
}

fn collect(folder: &'static Dir<'static>, found: &mut Vec<&'static Path>) {
    for entry in folder.entries() {
        match entry {
            DirEntry::Dir(inner) => collect(inner, found),
            DirEntry::File(file) if file.path().extension().is_some_and(|end| end == "toml") => found.push(file.path()),
            DirEntry::File(_) => {}
        }
    }
}
