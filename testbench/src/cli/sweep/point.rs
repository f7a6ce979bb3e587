//! `warpwave sweep run-point`: computes one planned point, under its limits, and stores the record.

use std::io;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use warpwave::bench::Options;
use warpwave::report::json;
use warpwave::scenario::OtherRun;
use warpwave::sweep::{Job, Keys, Limits, Outcome, Prepared, Reached, Record, Store};
use warpwave::verdict;

use super::super::failure::{Failure, STUCK};
use super::super::lab;
use super::super::launch_error;
use super::args::RunPoint;

/// Computes the point, unless another process has.
pub fn run(args: &RunPoint) -> Result<(), Failure> {
    let key = &args.key;
    let store: Store = Store::open(&args.store).map_err(|error| Failure::write(&args.store, error))?;
    let job = store.planned(key).ok_or_else(|| {
        let store = args.store.display();
        Failure::input(format!(
            "{store} has no point {key}; plan the sweep with `warpwave sweep plan --store {store}`"
        ))
    })?;
    let lock = store.lock(key).map_err(|error| Failure::write(store.folder(), error))?;
    let limits = args.limits.limits();
    let record = store.record(key);
    if record.is_some_and(|record| !record.outcome.is_retried(limits, args.retry_failed)) {
        return Ok(());
    }
    // Before the scenario is read, so that its data count too.
    limit_memory(limits)?;
    let changed = format!("the input files of point {key} have changed since it was planned; plan the sweep again");
    // A record under this key would claim a result for inputs that no longer exist.
    if Keys::default().of(&job).map_err(Failure::input)? != *key {
        return Err(Failure::input(changed));
    }
    let begin = Instant::now();
    let (store, job) = (Arc::new(store), Arc::new(job));
    // True once the record is written: the limit must not replace it then.
    let is_done = Arc::new(Mutex::new(false));
    if let Some(limit) = limits.time {
        let (store, job, key, is_done) = (Arc::clone(&store), Arc::clone(&job), key.clone(), Arc::clone(&is_done));
        thread::spawn(move || {
            thread::sleep(limit);
            let expired = expire(&is_done, || store.put(&key, &timed_out(&job, limit)));
            // The guard lives to the end of the process, so that the other thread stores nothing.
            if expired.is_some() {
                process::exit(STUCK.into());
            }
        });
    }
    let outcome = outcome(&job).unwrap_or_else(failed);
    let ended = match &outcome {
        Outcome::Done { .. } => Ok(()),
        Outcome::Failed { code, reason, .. } => Err(Failure {
            code: *code,
            text: reason.clone(),
        }),
    };
    let record = Record::new(Job::clone(&job), outcome, begin.elapsed().as_secs_f64());
    finish(&is_done, || store.put(key, &record)).map_err(|error| Failure::write(store.folder(), error))?;
    drop(lock);
    ended
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed {
        code: failure.code,
        reason: failure.text,
        limit: None,
    }
}

fn outcome(job: &Job) -> Result<Outcome, Failure> {
    let Prepared { mut scenario, config } = job.prepare().map_err(Failure::input)?;
    // Other assertions hold for the scenario's own sizes alone.
    scenario.asserts.retain(|assert| assert.points);
    scenario.comparisons.retain(|comparison| comparison.points);
    let mut bench = lab::bench(&scenario, &config, job.ignore_target)?;
    let options = Options {
        threads: 1,
        max_cycles: job.max_cycles.or(scenario.max_cycles),
    };
    let mut run = bench.run(options, &mut |_| true);
    if let Some((launch, error)) = &run.stopped {
        return Err(launch_error::stopped(&scenario, &bench, *launch, (error, "")));
    }
    let mut other = |other: &OtherRun| {
        let run = verdict::run_other(other, &job.gpu, &job.sets, options, &|| false);
        run.map_err(|error| error.to_string())
    };
    run.asserts = verdict::check(&scenario, &run, &mut other);
    let report = serde_json::from_str(&json::report(&scenario.name, &run)).map_err(Failure::input)?;
    let differences = run.differences.iter().map(ToString::to_string);
    let unmet = run.asserts.iter().filter(|assert| !assert.holds);
    let unmet = unmet.map(|assert| format!("assert: {}", assert.values));
    let wrong = differences.chain(run.misprints.iter().cloned()).chain(unmet).collect();
    // The process ends soon: the system frees the memory faster than a drop does.
    std::mem::forget(bench);
    Ok(Outcome::Done { report, wrong })
}

fn timed_out(job: &Job, limit: Duration) -> Record {
    let seconds = limit.as_secs_f64();
    let reason =
        format!("the time limit of {seconds} s is reached; raise --point-time-limit, or make the point smaller");
    let outcome = Outcome::Failed {
        code: STUCK,
        reason,
        limit: Some(Reached::Time(seconds)),
    };
    Record::new(job.clone(), outcome, seconds)
}

/// Stores the record of a computed point with `record`. From then on the time limit has no effect.
fn finish(is_done: &Mutex<bool>, record: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut is_done = is_done.lock().expect("the other thread does not panic");
    record()?;
    *is_done = true;
    Ok(())
}

/// Stores the reason with `record` if the point is not done at its time limit. The guard keeps [`finish`] waiting.
fn expire(is_done: &Mutex<bool>, record: impl FnOnce() -> io::Result<()>) -> Option<MutexGuard<'_, bool>> {
    let is_done = is_done.lock().expect("the other thread does not panic");
    if *is_done {
        return None;
    }
    // Without a record the point is missing, and the next sweep computes it.
    let _ = record();
    Some(is_done)
}

/// Limits the address space of this process.
#[cfg(unix)]
fn limit_memory(limits: Limits) -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let Some(bytes) = limits.memory else { return Ok(()) };
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    setrlimit(Resource::As, limit).map_err(|error| Failure::input(format!("--point-memory: {error}")))
}

#[cfg(not(unix))]
fn limit_memory(limits: Limits) -> Result<(), Failure> {
    match limits.memory {
        None => Ok(()),
        Some(_) => Err(Failure::input("--point-memory needs a Unix system")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limit_keeps_the_record_of_a_finished_point() {
        let (is_done, records) = (Mutex::new(false), Mutex::new(Vec::new()));
        let record = |text: &'static str| {
            records.lock().unwrap().push(text);
            Ok(())
        };
        finish(&is_done, || record("the result")).unwrap();
        assert!(expire(&is_done, || record("the time limit")).is_none());
        assert_eq!(*records.lock().unwrap(), ["the result"]);
    }

    #[test]
    fn result_after_the_time_limit_is_not_stored() {
        let is_done = Mutex::new(false);
        let expired = expire(&is_done, || Ok(()));
        assert!(expired.is_some());
        // `finish` would wait here until the process ends.
        assert!(is_done.try_lock().is_err());
    }
}
