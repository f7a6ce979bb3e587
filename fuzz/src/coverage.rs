//! Coverage of the sources under test, by an instrumented build of the fuzz command.
//!
//! ```text
//!   cargo build with -C instrument-coverage --> target/coverage/
//!        |
//!        v  run TARGET
//!   profile --llvm-profdata--> merged --llvm-cov--> lines of each file: covered / all
//! ```
//!
//! `llvm-profdata` and `llvm-cov` are those of the toolchain: `rustup component add llvm-tools`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

use crate::runner::Limits;
use crate::targets::Target;

/// The instrumented command, and the tools that read its profiles.
pub struct Coverage {
    command: PathBuf,
    tools: PathBuf,
    profiles: TempDir,
}

/// Lines with code of the files under test.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lines {
    /// Lines.
    pub all: u64,
    /// Lines that ran at least once.
    pub covered: u64,
}

impl Lines {
    /// The covered lines, in per cent.
    pub fn percent(self) -> f64 {
        100.0 * self.covered as f64 / (self.all as f64).max(1.0)
    }
}

impl Coverage {
    /// Builds the instrumented command into `target/coverage`.
    ///
    /// # Errors
    /// If the toolchain has no `llvm-cov`, or if the build fails.
    pub fn build() -> Result<Coverage, String> {
        let tools = tools()?;
        let target = root().join("target/coverage");
        succeed(
            Command::new("cargo")
                .args(["build", "--quiet", "--profile", "test", "--package", "warpwave-fuzz"])
                .args(["--bin", "warpwave-fuzz", "--target-dir"])
                .arg(&target)
                .env("RUSTFLAGS", "-C instrument-coverage")
                // Build scripts are instrumented too, and write their profiles here.
                .env("LLVM_PROFILE_FILE", target.join("build.profraw")),
        )?;
        Ok(Coverage {
            command: target.join("debug/warpwave-fuzz"),
            tools,
            profiles: TempDir::new().map_err(|error| error.to_string())?,
        })
    }

    /// Fuzzes a target with the instrumented command. Returns the lines of the files under test.
    ///
    /// # Errors
    /// If the command or a tool fails. A find does not fail: its profile counts.
    pub fn of(&self, target: &Target, limits: Limits) -> Result<Lines, String> {
        let file = |kind: &str| self.profiles.path().join(format!("{}.{kind}", target.name));
        let (raw, merged) = (file("profraw"), file("profdata"));
        let mut fuzz = Command::new(&self.command);
        fuzz.args(["run", target.name]);
        for (option, value) in [
            ("--seconds", limits.seconds.to_string()),
            ("--executions", limits.executions.to_string()),
            ("--seed", limits.seed.to_string()),
        ] {
            fuzz.args([option, &value]);
        }
        // A find ends the run with status 1, and the table has reported it.
        fuzz.env("LLVM_PROFILE_FILE", &raw)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("{}: {error}", self.command.display()))?;
        let merge = [OsStr::new("merge"), raw.as_ref(), OsStr::new("-o"), merged.as_ref()];
        succeed(Command::new(self.tools.join("llvm-profdata")).args(merge))?;
        let report = succeed(
            Command::new(self.tools.join("llvm-cov"))
                .args(["export", "--summary-only", "--instr-profile"])
                .arg(&merged)
                .arg(&self.command),
        )?;
        lines(&report, &root(), target.sources)
    }
}

/// The root of the repository, as `llvm-cov` names it.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// The folder of `llvm-cov` in the toolchain.
fn tools() -> Result<PathBuf, String> {
    let sysroot = succeed(Command::new("rustc").args(["--print", "sysroot"]))?;
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
    std::fs::read_dir(&libraries)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .find(|folder| folder.join("llvm-cov").is_file())
        .ok_or_else(|| "the toolchain has no llvm-cov; `rustup component add llvm-tools` installs it".to_owned())
}

/// Runs a command. Returns its output.
fn succeed(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The lines in a report of `llvm-cov export --summary-only` whose file is one of `sources`, or below one.
fn lines(report: &str, root: &Path, sources: &[&str]) -> Result<Lines, String> {
    #[derive(Deserialize)]
    struct Report {
        data: Vec<Data>,
    }
    #[derive(Deserialize)]
    struct Data {
        files: Vec<File>,
    }
    #[derive(Deserialize)]
    struct File {
        filename: PathBuf,
        summary: Summary,
    }
    #[derive(Deserialize)]
    struct Summary {
        lines: Count,
    }
    #[derive(Deserialize)]
    struct Count {
        count: u64,
        covered: u64,
    }
    let report: Report = serde_json::from_str(report).map_err(|error| format!("llvm-cov: {error}"))?;
    let under_test = |file: &File| {
        sources
            .iter()
            .any(|source| file.filename.starts_with(root.join(source)))
    };
    let files = report
        .data
        .iter()
        .flat_map(|data| &data.files)
        .filter(|file| under_test(file));
    Ok(files.fold(Lines::default(), |sum, file| Lines {
        all: sum.all + file.summary.lines.count,
        covered: sum.covered + file.summary.lines.covered,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_files_under_test() {
        let file = |name: &str, count, covered| {
            format!(r#"{{"filename": "{name}", "summary": {{"lines": {{"count": {count}, "covered": {covered}}}}}}}"#)
        };
        // The folder `/r/l1` and the file `/r/l1.rs` are under test; `/r/l10.rs` is not.
        let files = [
            file("/r/l1.rs", 30, 20),
            file("/r/l1/a.rs", 10, 10),
            file("/r/l10.rs", 5, 5),
        ]
        .join(",");
        let report = format!(r#"{{"data": [{{"files": [{files}]}}]}}"#);
        let lines = lines(&report, Path::new("/r"), &["l1", "l1.rs"]);
        assert_eq!(lines, Ok(Lines { all: 40, covered: 30 }));
        assert_eq!(lines.map(Lines::percent), Ok(75.0));
    }
}
