//! Builds again when a built-in scenario comes or goes: the compiler itself sees only changes of those it knows.
//!
//! Also passes a hash of all sources that decide a result, as `WARPWAVE_SOURCES`. Stored points of a sweep carry it.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// Folders and files that decide the results of a run.
const SOURCES: [&str; 9] = [
    "scenarios",
    "src",
    "validation/kernels",
    "../components/presets",
    "../components/src",
    "../hw/isa/src",
    "../hw/ptx/src",
    "../hw/src",
    "../Cargo.lock",
];

fn main() {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        add(Path::new(source), &mut hasher);
    }
    println!("cargo::rustc-env=WARPWAVE_SOURCES={:016x}", hasher.finish());
}

/// Adds the names and contents of all files below `path`.
fn add(path: &Path, hasher: &mut DefaultHasher) {
    let entries = fs::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.path()));
    let Ok(entries) = entries else {
        // A missing file counts as an empty one.
        let bytes = fs::read(path).unwrap_or_default();
        hasher.write(path.to_string_lossy().as_bytes());
        hasher.write_usize(bytes.len());
        hasher.write(&bytes);
        return;
    };
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    entries.iter().for_each(|entry| add(entry, hasher));
}
