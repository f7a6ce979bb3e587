//! The output files of a run. Refuses an output that is an input of the run, or another output.
//!
//! Two paths name the same file if they resolve to one path, also through symbolic links. Hard links of one file are the same file too.

use std::path::{Path, PathBuf};

use warpwave_waveforms::file::stem;

use super::args;
use super::failure::Failure;
use super::write::{is_special, resolve, try_file, try_folder};

/// The outputs of a run.
pub struct Outputs {
    files: Vec<Output>,
    folders: Vec<Folder>,
}

/// An output file with its option.
struct Output {
    option: &'static str,
    path: PathBuf,
    id: FileId,
}

/// An output folder whose file names are not known before the run.
struct Folder {
    option: &'static str,
    path: PathBuf,
    id: FileId,
    /// Returns true if a file of this name may be written.
    has: fn(&str) -> bool,
}

/// The identity of a file.
struct FileId {
    path: PathBuf,
    /// Device and inode of an existing file, on systems that have them.
    number: Option<(u64, u64)>,
    is_special: bool,
}

impl Outputs {
    /// Collects the outputs of all options. `dumped` has the names of the `--dump` arrays.
    pub fn of<'a>(args: &args::Run, dumped: impl Iterator<Item = &'a str>) -> Self {
        let mut outputs = Outputs {
            files: Vec::new(),
            folders: Vec::new(),
        };
        for (option, path) in [
            ("--json", &args.json),
            ("--csv", &args.csv),
            ("--html", &args.html),
            ("--kanata", &args.kanata),
            ("--perfetto", &args.perfetto),
        ] {
            outputs
                .files
                .extend(path.as_deref().map(|path| Output::new(option, path)));
        }
        outputs.add_waveform("--vcd", args.vcd.as_deref());
        #[cfg(feature = "fst")]
        outputs.add_waveform("--fst", args.fst.as_deref());
        outputs.add_waveform("--flight", args.flight.as_deref());
        if let Some(folder) = &args.dump {
            let file = |name| Output::new("--dump", &folder.join(format!("{name}.npy")));
            outputs.files.extend(dumped.map(file));
            // Its files are known by name above. The folder itself must not be another output.
            outputs.folders.push(Folder::new("--dump", folder, |_| false));
        }
        if let Some(folder) = &args.plan {
            outputs.folders.push(Folder::new("--plan", folder, |_| false));
        }
        // The names of the paths are not known before the run, so any `.hgrm` counts.
        let is_latencies = |name: &str| {
            matches!(name, "latencies.txt" | "latencies.svg" | "latencies.hlog") || name.ends_with(".hgrm")
        };
        outputs.folders.extend(
            args.hist
                .as_deref()
                .map(|folder| Folder::new("--hist", folder, is_latencies)),
        );
        outputs
    }

    /// The default flight-recorder file of a failed run.
    pub fn of_record(path: &Path) -> Self {
        let mut outputs = Outputs {
            files: Vec::new(),
            folders: Vec::new(),
        };
        outputs.add_waveform("the record", Some(path));
        outputs
    }

    /// Adds a waveform and its view files.
    fn add_waveform(&mut self, option: &'static str, path: Option<&Path>) {
        let Some(path) = path else { return };
        let beside = |ending: &str| {
            let mut name = stem(path).into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        self.files.push(Output::new(option, path));
        let views = [".gtkw", ".sucl"].map(|ending| Output::new(option, &beside(ending)));
        self.files.extend(views);
        // One file for each table of states or instructions, so the names depend on the selection.
        let is_name = |name: &str| name.ends_with(".txt") || name.ends_with(".mapping");
        self.folders.push(Folder::new(option, &beside(".names"), is_name));
    }

    /// Returns an error if an output would overwrite another one, or one of `inputs`.
    pub fn check(&self, inputs: &[PathBuf]) -> Result<(), Failure> {
        let conflict = self.over_input(inputs).or_else(|| self.over_each_other());
        conflict.map_or(Ok(()), |conflict| {
            Err(Failure::input(format!("{conflict}; choose another name")))
        })
    }

    /// The error text for an output that is one of `inputs`.
    fn over_input(&self, inputs: &[PathBuf]) -> Option<String> {
        inputs.iter().find_map(|input| {
            let id = FileId::of(input);
            let file = self.files.iter().find(|file| file.id.is(&id));
            let file = file.map(|file| format!("{} {}", file.option, file.path.display()));
            let inside = || {
                let folder = self.folders.iter().find(|folder| folder.may_write(&id))?;
                Some(format!(
                    "{} {}: {}",
                    folder.option,
                    folder.path.display(),
                    input.display()
                ))
            };
            Some(format!("{} is read by this run", file.or_else(inside)?))
        })
    }

    /// The error text for two outputs that are the same file.
    fn over_each_other(&self) -> Option<String> {
        let same = |a: &str, b: &str| Some(format!("{a} and {b} are the same file"));
        for (n, file) in self.files.iter().enumerate() {
            let other = self.files[n + 1..].iter().find(|other| file.id.is(&other.id));
            if let Some(other) = other {
                return same(&file.shown(), &other.shown());
            }
            let folder = self.folders.iter().find(|folder| folder.takes(file));
            if let Some(folder) = folder {
                return same(&file.shown(), &format!("{} {}", folder.option, folder.path.display()));
            }
        }
        None
    }

    /// The error text for a conflict of these outputs with `others` or `inputs`.
    pub fn conflict(&self, others: &Outputs, inputs: &[PathBuf]) -> Option<String> {
        let taken = |file: &Output| {
            let other = others.files.iter().find(|other| other.id.is(&file.id));
            let other = other.map(Output::shown);
            let folder = || others.folders.iter().find(|folder| folder.takes(file));
            let other = other.or_else(|| folder().map(|folder| format!("{} {}", folder.option, folder.path.display())));
            other.map(|other| format!("{} is {other}", file.path.display()))
        };
        let read = |file: &Output| {
            let is_read = inputs.iter().any(|input| file.id.is(&FileId::of(input)));
            is_read.then(|| format!("{} is read by this run", file.path.display()))
        };
        self.files.iter().find_map(|file| read(file).or_else(|| taken(file)))
    }

    /// Tests that all outputs can be written, without changing a file.
    pub fn try_all(&self) -> Result<(), Failure> {
        self.folders.iter().try_for_each(|folder| try_folder(&folder.path))?;
        // A file in a folder that does not exist yet is tested with the folder.
        let mut files = self
            .files
            .iter()
            .filter(|file| file.option != "--dump" || file.path.exists());
        files.try_for_each(|file| try_file(&file.path))
    }
}

impl Output {
    fn new(option: &'static str, path: &Path) -> Self {
        Output {
            option,
            path: path.to_owned(),
            id: FileId::of(path),
        }
    }

    fn shown(&self) -> String {
        format!("{} {}", self.option, self.path.display())
    }
}

impl Folder {
    fn new(option: &'static str, path: &Path, has: fn(&str) -> bool) -> Self {
        Folder {
            option,
            path: path.to_owned(),
            id: FileId::of(path),
            has,
        }
    }

    /// True if this may be a file that the option writes to the folder.
    fn may_write(&self, id: &FileId) -> bool {
        let name = id.path.file_name().and_then(|name| name.to_str());
        id.path.parent() == Some(&self.id.path) && name.is_some_and(self.has)
    }

    /// True if `file` is this folder, or if it belongs to another option and may be a file in this folder.
    fn takes(&self, file: &Output) -> bool {
        self.id.is(&file.id) || self.may_write(&file.id) && self.option != file.option
    }
}

impl FileId {
    fn of(path: &Path) -> Self {
        FileId {
            path: resolve(path),
            number: number(path),
            is_special: is_special(path),
        }
    }

    /// True if a write to one changes the other.
    fn is(&self, other: &FileId) -> bool {
        // The number finds hard links, which have different paths.
        let is_same = self.path == other.path || self.number.is_some() && self.number == other.number;
        // Two outputs may share a device, such as /dev/null.
        is_same && !self.is_special
    }
}

#[cfg(unix)]
fn number(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = path.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn number(_: &Path) -> Option<(u64, u64)> {
    None
}
