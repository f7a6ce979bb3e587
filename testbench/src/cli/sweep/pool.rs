//! Computes points in parallel: each in a process of its own, so that a crash or a limit ends that point alone.

use std::num::NonZeroUsize;
use std::process::{Command, ExitStatus, Output};
use std::sync::Mutex;

use warpwave::sweep::{Job, Key, Limits, Outcome, Point, Reached, Record, Store, options, shown};

use super::super::child;
use super::super::failure::Failure;
use super::super::lab::in_parallel;
use super::super::progress::{Count, is_stopped};

/// Exit code for a process that ended without a code.
const CRASHED: u8 = 101;

/// Signals that ask a process to end: hang-up, interrupt, terminate. Such a point has not failed.
const INTERRUPTS: [i32; 3] = [1, 2, 15];

/// The signal of `abort`.
const ABORT: i32 = 6;

/// Computes the points, at most `jobs` at a time. After Ctrl-C no more begin. With `retries`, a record of a failure does not count.
pub fn compute(
    store: &Store,
    missing: &[&(Point, Job, Key)],
    jobs: NonZeroUsize,
    (limits, retries): (Limits, bool),
    has_progress: bool,
) -> Result<(), Failure> {
    if missing.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(Failure::input)?;
    let count = Count::new(missing.len(), has_progress);
    let first_error = Mutex::new(None);
    in_parallel(missing.len(), jobs, |n| {
        let (point, job, key) = missing[n];
        let mut command = Command::new(&program);
        command.args(["sweep", "run-point", &key.to_string(), "--store"]);
        command.arg(store.folder()).args(options(limits, retries));
        let before = store.record(key);
        let recorded = child::output(&mut command).and_then(|output| {
            // The process stored its own result or reason.
            match store.record(key) == before {
                true => record(store, job, key, &output, limits),
                false => Ok(()),
            }
        });
        if let Err(error) = recorded {
            // The others go on: one point that cannot be stored does not end the sweep.
            first_error.lock().expect("no worker panicked").get_or_insert(error);
        }
        count.add(&shown(point));
    });
    let first_error = first_error.into_inner().expect("no worker panicked");
    first_error.map_or(Ok(()), |error| Err(Failure::write(store.folder(), error)))
}

/// Stores the reason why a process ended without a record. An interrupt is no failure, and not every host tells it by a signal.
fn record(store: &Store, job: &Job, key: &Key, output: &Output, limits: Limits) -> std::io::Result<()> {
    if is_stopped() {
        return Ok(());
    }
    match crash(output.status, &String::from_utf8_lossy(&output.stderr), limits) {
        Some(outcome) => store.put(key, &Record::new(job.clone(), outcome, 0.0)),
        None => Ok(()),
    }
}

/// The outcome of a process that ended without a record. `None` if it was interrupted.
fn crash(status: ExitStatus, err: &str, limits: Limits) -> Option<Outcome> {
    let signal = signal(status);
    if signal.is_some_and(|signal| INTERRUPTS.contains(&signal)) {
        return None;
    }
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(CRASHED);
    let says = err.trim();
    let (reason, limit) = match limits.memory {
        // Rust aborts when an allocation fails, and says so.
        Some(bytes) if signal == Some(ABORT) && says.contains("memory allocation") => {
            let first = says.lines().next().unwrap_or_default();
            let reason = format!("the memory limit of {bytes} bytes is reached; raise --point-memory ({first})");
            (reason, Some(Reached::Memory(bytes)))
        }
        _ => (format!("its process ended with {status}: {says}"), None),
    };
    Some(Outcome::Failed { code, reason, limit })
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn interrupted_point_is_missing_and_a_crash_has_its_reason() {
        let limits = Limits {
            time: None,
            memory: Some(64),
        };
        assert_eq!(crash(ExitStatus::from_raw(2), "", limits), None);
        let aborted = ExitStatus::from_raw(ABORT);
        let failed = |status, err| match crash(status, err, limits) {
            Some(Outcome::Failed { code, reason, limit }) => (code, reason, limit),
            other => panic!("{other:?}"),
        };
        let (code, reason, limit) = failed(aborted, "memory allocation of 99 bytes failed\n");
        assert_eq!((code, limit), (CRASHED, Some(Reached::Memory(64))));
        assert!(
            reason.starts_with("the memory limit of 64 bytes is reached"),
            "{reason}"
        );
        let (code, reason, limit) = failed(ExitStatus::from_raw(101 << 8), "panicked at x\n");
        assert_eq!((code, limit), (101, None));
        assert!(reason.ends_with("101: panicked at x"), "{reason}");
    }
}
