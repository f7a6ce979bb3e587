//! The committed inputs: `corpus/TARGET/` and `regressions/TARGET/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::targets::Target;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The inputs of the corpus of a target, and of the folders that it only reads.
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let own = root().join("corpus").join(target.name);
    let read = target.also_reads.iter().map(|folder| root().join("..").join(folder));
    std::iter::once(own)
        .chain(read)
        .flat_map(|folder| inputs(&folder))
        .collect()
}

/// The inputs that once failed.
pub fn regressions(target: &Target) -> Vec<Vec<u8>> {
    inputs(&root().join("regressions").join(target.name))
}

/// The contents of the files below a folder, in the order of their paths. Empty if the folder does not exist.
fn inputs(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    // The order of a folder depends on the file system.
    paths.sort();
    let contents = |path: &PathBuf| match path.is_dir() {
        true => inputs(path),
        false => fs::read(path).into_iter().collect(),
    };
    paths.iter().flat_map(contents).collect()
}

/// A name for an input: a hash of its bytes.
pub fn name_of(input: &[u8]) -> String {
    // FNV-1a: the same on every host, unlike the hasher of the library.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", hash >> 32)
}

/// Writes inputs into a folder of the package, in place of its files. Returns its path.
///
/// # Errors
/// If the folder or a file cannot be changed.
pub fn replace(folder: &str, inputs: &[Vec<u8>]) -> io::Result<PathBuf> {
    let path = root().join(folder);
    if path.is_dir() {
        for entry in fs::read_dir(&path)? {
            fs::remove_file(entry?.path())?;
        }
    }
    save(folder, inputs)
}

/// Writes inputs into a folder of the package, such as `corpus/l1`. Returns its path.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn save(folder: &str, inputs: &[Vec<u8>]) -> io::Result<PathBuf> {
    let folder = root().join(folder);
    fs::create_dir_all(&folder)?;
    for input in inputs {
        fs::write(folder.join(name_of(input)), input)?;
    }
    Ok(folder)
}
