//! `warpwave run` of several scenarios: the output names of each, and the summary at the end.
//!
//! | Option with | One scenario | Several |
//! |---|---|---|
//! | a file | `out.vcd` | `out.NAME.vcd` for the scenario NAME |
//! | a folder | `out` | `out/NAME` |
//!
//! A device such as `/dev/null` keeps its name.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::args::Run;
use super::write::is_special;

/// The options for one of several scenarios. `name` is unique among them, and `path` is its name or path on the command line.
pub fn options(args: &Run, name: &str, path: &str) -> Run {
    let mut args = Run {
        scenarios: vec![path.to_owned()],
        ..args.clone()
    };
    for file in args.files_mut().into_iter().flatten() {
        *file = of_scenario(file, name);
    }
    for folder in args.folders_mut().into_iter().flatten() {
        *folder = folder.join(name);
    }
    args
}

/// `out.vcd.gz` with the name before its ending: `out.NAME.vcd.gz`.
fn of_scenario(path: &Path, name: &str) -> PathBuf {
    let file = path.file_name().map(|file| file.to_string_lossy());
    let Some(file) = file.filter(|_| !is_special(path)) else {
        return path.to_owned();
    };
    let base = file.strip_suffix(".gz").unwrap_or(&file);
    // A dot in front begins a hidden name, not an ending.
    let end = base.rfind('.').filter(|&at| at > 0).unwrap_or(base.len());
    path.with_file_name(format!("{}.{name}{}", &file[..end], &file[end..]))
}

/// The end of one scenario: its name, and its exit code.
pub type Ended = (String, u8);

/// A line for each scenario, and their number.
pub fn summary(ended: &[Ended]) -> String {
    let width = ended.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let held = ended.iter().filter(|(_, code)| *code == 0).count();
    let mut out = format!("{held} of {} scenarios held\n\n", ended.len());
    for (name, code) in ended {
        let _ = match code {
            0 => writeln!(out, "{name:<width$}  held"),
            code => writeln!(out, "{name:<width$}  exit code {code}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_comes_before_the_ending() {
        let of = |path: &str| of_scenario(Path::new(path), "saxpy").display().to_string();
        assert_eq!(of("out.vcd"), "out.saxpy.vcd");
        assert_eq!(of("a.b/out.v1.vcd.gz"), "a.b/out.v1.saxpy.vcd.gz");
        assert_eq!(of("out"), "out.saxpy");
        assert_eq!(of(".hidden"), ".hidden.saxpy");
        assert_eq!(of("/dev/null"), "/dev/null");
    }
}
