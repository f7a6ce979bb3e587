//! Tests of the laboratory commands: `sweep`, `compare`, `test`, `validate`.

mod compare;
mod curves;
mod engines;
#[cfg(target_os = "linux")]
mod slurm;
mod suite;
mod sweep;
mod validate;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
#[cfg(unix)]
use std::{process::Stdio, thread::sleep, time::Duration};

/// Standard output, standard error and exit code of a command.
struct Answer {
    out: String,
    err: String,
    code: i32,
}

impl Answer {
    fn of(output: Output) -> Self {
        Answer {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().expect("no signal ends the command"),
        }
    }
}

/// The command, to be run in a folder.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwave"));
    command.env_remove("RUST_LOG").current_dir(folder).args(args);
    command
}

fn warpwave_in(folder: &Path, args: &[&str]) -> Answer {
    Answer::of(command(folder, args).output().unwrap())
}

fn warpwave(args: &[&str]) -> Answer {
    warpwave_in(tempfile::tempdir().unwrap().path(), args)
}

/// Starts a command, interrupts it as Ctrl-C does once `is_ready`, and waits for its end. Fails with the output of one that ended before.
#[cfg(unix)]
fn interrupt(mut command: Command, is_ready: impl Fn() -> bool) -> Answer {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    while !is_ready() {
        if let Some(status) = child.try_wait().unwrap() {
            let answer = child.wait_with_output().unwrap();
            let [out, err] = [&answer.stdout, &answer.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            panic!("{command:?} ended before it was interrupted, with {status}:\n{out}\n{err}");
        }
        sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(killed.success());
    Answer::of(child.wait_with_output().unwrap())
}

/// The records of a store, by file name.
fn records(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(store.join("points")).into_iter().flatten().flatten();
    let complete = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
    let record = |entry: fs::DirEntry| {
        let bytes = fs::read(entry.path()).unwrap();
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    };
    complete.map(record).collect()
}

/// The path of a scenario in `tests/errors`.
fn error_scenario(name: &str) -> String {
    format!("{}/tests/errors/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// A kernel that loops over `n` elements: thread i adds 1 to elements i, i + threads, and so on.
const COUNT_PTX: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .entry count(.param .u64 data, .param .u32 n) {
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ntid.x;
again:
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra done;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r4, [%rd3];
    add.u32 %r5, %r4, 1;
    st.global.u32 [%rd3], %r5;
    add.u32 %r2, %r2, %r3;
    bra again;
done:
    ret;
}
";

const COUNT: &str = "
ptx = \"count.ptx\"
gpu = \"tiny\"
buffers.data = { dtype = \"u32\", shape = [4096] }

[[launch]]
grid = 1
block = 64
args = [\"data\", { u32 = 64 }]
";

/// A folder with `count.toml`, which ends with `more`.
fn project(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("count.ptx"), COUNT_PTX).unwrap();
    std::fs::write(folder.path().join("count.toml"), COUNT.to_owned() + more).unwrap();
    folder
}
