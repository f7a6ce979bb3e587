//! Runs the command for a case: a child with limits of memory, files and time, in a folder of its own.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::case::{Answer, Case, Content, Stream, Table};

/// Wall time after which a child counts as hung: a child that sleeps uses no CPU time. It decides no case that ends.
const HUNG: Duration = Duration::from_secs(120);

/// A user and a group without rights.
const PLAIN_USER: u32 = 65_534;

/// The command at a path that every user may execute.
static PUBLIC: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("warpwave");
    fs::copy(env!("CARGO_BIN_EXE_warpwave"), &path).unwrap();
    (folder, path)
});

/// Runs a case.
pub fn run(table: &Table, case: &Case) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let drops_rights = case.as_user && fs::metadata(folder.path()).unwrap().uid() == 0;
    lay_out(table, case, folder.path(), drops_rights);
    let program = match drops_rights {
        true => &PUBLIC.1,
        false => Path::new(env!("CARGO_BIN_EXE_warpwave")),
    };
    let args = case.args.as_ref().unwrap_or(&table.args).iter().chain(&case.more);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &script(case)])
        .arg(program)
        .args(args.map(os_string))
        .current_dir(folder.path())
        .env_clear()
        .env("TMPDIR", folder.path())
        .envs(case.env.iter().map(|(name, value)| (name, os_string(value))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if drops_rights {
        command.uid(PLAIN_USER).gid(PLAIN_USER);
    }
    let answer = watch(command.spawn().unwrap(), case);
    // The temporary folder must be removable.
    for name in case.modes.keys() {
        fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o755)).unwrap();
    }
    answer
}

fn os_string(content: &Content) -> OsString {
    OsString::from_vec(content.bytes())
}

/// Creates the files of a case.
fn lay_out(table: &Table, case: &Case, folder: &Path, drops_rights: bool) {
    for name in &case.folders {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    for (name, bytes) in case.all_files(table) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    for (name, target) in &case.links {
        symlink(target, folder.join(name)).unwrap();
    }
    if drops_rights {
        chown(folder, Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
        let entries = fs::read_dir(folder).unwrap();
        entries.for_each(|entry| chown(entry.unwrap().path(), Some(PLAIN_USER), Some(PLAIN_USER)).unwrap());
    }
    for (name, mode) in &case.modes {
        let mode = u32::from_str_radix(mode, 8).unwrap();
        fs::set_permissions(folder.join(name), Permissions::from_mode(mode)).unwrap();
    }
}

/// The shell script that sets the limits and redirects the streams.
fn script(case: &Case) -> String {
    let (seconds, kib) = (case.cpu_seconds, case.memory_mib << 10);
    let mut script = format!("ulimit -c 0; ulimit -t {seconds}; ulimit -v {kib}; ");
    if let Some(kib) = case.file_kib {
        // A block of `ulimit -f` has 512 bytes. Without its signal, the limit is an error of the write.
        script += &format!("trap '' XFSZ; ulimit -f {}; ", kib * 2);
    }
    if let Some(files) = case.open_files {
        script += &format!("ulimit -n {files}; ");
    }
    script += "exec \"$0\" \"$@\"";
    for (number, stream) in [case.stdin, case.stdout, case.stderr].into_iter().enumerate() {
        match stream {
            Some(Stream::Closed) => script += &format!(" {number}>&-"),
            Some(Stream::Full) => script += &format!(" {number}>/dev/full"),
            Some(Stream::Pipe) | None => {}
        }
    }
    script
}

/// Reads the output of a child until it ends. Kills it if it hangs.
fn watch(mut child: Child, case: &Case) -> Answer {
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let closes = case.stdout == Some(Stream::Pipe);
    let out = thread::spawn(move || {
        let mut bytes = Vec::new();
        if !closes {
            out.read_to_end(&mut bytes).unwrap();
        }
        bytes
    });
    let err = thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > HUNG => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    let text = |bytes: Vec<u8>| OsStr::from_bytes(&bytes).to_string_lossy().into_owned();
    Answer {
        code: status.code(),
        out: text(out.join().unwrap()),
        err: text(err.join().unwrap()),
    }
}
