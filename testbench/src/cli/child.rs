//! Processes that this command starts and waits for.

use std::io::{self, Read};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use super::progress::is_stopped;

/// Most time between two looks at a running process.
const LONGEST_LOOK: Duration = Duration::from_millis(20);

/// Runs a process without input to its end. Returns its standard error, and no standard output.
///
/// After Ctrl-C the process gets the same signal: one that is sent to this process alone would not reach it.
pub fn output(command: &mut Command) -> io::Result<Output> {
    // Several processes cannot share the terminal's input.
    let piped = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = piped.spawn()?;
    let pipe = child.stderr.take();
    scope(|scope| {
        // Read in parallel: a full pipe would stop the process.
        let reader = scope.spawn(move || {
            let mut bytes = Vec::new();
            pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))
                .map(|_| bytes)
        });
        let status = wait(&mut child)?;
        let stderr = reader.join().expect("the reader does not panic")?;
        let stdout = Vec::new();
        Ok(Output { status, stdout, stderr })
    })
}

/// Waits for the end of a process, and interrupts it once after Ctrl-C.
fn wait(child: &mut Child) -> io::Result<std::process::ExitStatus> {
    let begin = Instant::now();
    while !is_stopped() {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        // A short process must not wait for a long look.
        sleep((begin.elapsed() / 16).clamp(Duration::from_millis(1), LONGEST_LOOK));
    }
    interrupt(child)?;
    child.wait()
}

/// Interrupts a process, so that it ends its own processes too.
#[cfg(unix)]
fn interrupt(child: &mut Child) -> io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    // The process is not waited for yet, so no other one has its number.
    if child.try_wait()?.is_none() {
        kill_process(Pid::from_child(child), Signal::INT)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn interrupt(child: &mut Child) -> io::Result<()> {
    child.kill()
}
