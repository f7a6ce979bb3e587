//! Fuzzes a target on stable Rust: mutates the corpus, keeps what reaches new features, shrinks what fails.
//!
//! libFuzzer sees code and is the better guide; this runner needs no nightly, no C++ and no second build.

mod mutate;
mod store;

use std::collections::HashSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::features;
use crate::targets::Target;
pub use store::{corpus, name_of, regressions, replace, save};

/// Longest input, in bytes.
const MAX_BYTES: usize = 4096;

/// Most inputs of a saved corpus.
const MOST_KEPT: usize = 60;

/// Attempts to shrink a failing input.
const SHRINK_ATTEMPTS: usize = 3000;

/// An input that fails, and the message of its panic.
#[derive(Clone, Debug)]
pub struct Find {
    /// The shrunk input.
    pub input: Vec<u8>,
    /// What the target said.
    pub message: String,
}

/// The results of a run of a target.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Executions.
    pub executions: u64,
    /// Host seconds.
    pub seconds: f64,
    /// Features reached.
    pub features: usize,
    /// The committed inputs, and inputs that together reach the features.
    pub corpus: Vec<Vec<u8>>,
    /// The longest execution, in milliseconds.
    pub slowest_ms: f64,
    /// The first failure.
    pub find: Option<Find>,
}

impl Outcome {
    /// Executions per host second.
    pub fn per_second(&self) -> f64 {
        self.executions as f64 / self.seconds.max(1e-9)
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Host seconds.
    pub seconds: f64,
    /// Executions.
    pub executions: u64,
    /// Seed of the mutations.
    pub seed: u64,
}

/// The message of the last panic. The hook stores it, and prints nothing.
static MESSAGE: Mutex<String> = Mutex::new(String::new());

/// Runs a target on one input. Returns the message of a panic.
fn execute(target: &Target, input: &[u8]) -> Result<HashSet<u64>, String> {
    features::take();
    match panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        Ok(()) => Ok(features::take()),
        Err(_) => Err(MESSAGE.lock().map(|text| text.clone()).unwrap_or_default()),
    }
}

/// Keeps the text of panics instead of printing it, as long as `action` runs.
pub fn with_quiet_panics<T>(action: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        if let Ok(mut message) = MESSAGE.lock() {
            *message = info.to_string();
        }
    }));
    let result = action();
    panic::set_hook(hook);
    result
}

/// Fuzzes a target until a limit or a failure. Starts with its corpus and its regressions.
pub fn fuzz(target: &Target, limits: Limits) -> Outcome {
    let begin = Instant::now();
    let mut outcome = Outcome::default();
    let mut reached = HashSet::new();
    let mut random = fastrand::Rng::with_seed(limits.seed);
    // Committed inputs first, then the empty one: a mutation needs something to start from.
    let mut first: Vec<Vec<u8>> = [corpus(target), regressions(target)].concat();
    first.push(Vec::new());
    let n_first = first.len() as u64;
    let mut first = first.into_iter();
    let end = Duration::from_secs_f64(limits.seconds);
    while begin.elapsed() < end && outcome.executions < limits.executions {
        let input = first
            .next()
            .unwrap_or_else(|| mutate::next(&outcome.corpus, &mut random, MAX_BYTES));
        let started = Instant::now();
        let result = execute(target, &input);
        outcome.slowest_ms = outcome.slowest_ms.max(started.elapsed().as_secs_f64() * 1e3);
        outcome.executions += 1;
        match result {
            // A committed input stays, also in a target without features.
            Ok(found) if found.is_subset(&reached) && outcome.executions > n_first => {}
            Ok(found) => {
                reached.extend(found);
                outcome.corpus.push(input);
            }
            Err(message) => {
                // The message is that of the first failure. The shrunk input may fail in another way.
                let input = shrink(target, input, &mut random);
                outcome.find = Some(Find { input, message });
                break;
            }
        }
    }
    outcome.features = reached.len();
    outcome.seconds = begin.elapsed().as_secs_f64();
    outcome
}

/// Makes a failing input smaller while it fails.
fn shrink(target: &Target, mut input: Vec<u8>, random: &mut fastrand::Rng) -> Vec<u8> {
    for _ in 0..SHRINK_ATTEMPTS {
        let smaller = mutate::smaller(&input, random);
        if smaller != input && execute(target, &smaller).is_err() {
            input = smaller;
        }
    }
    input
}

/// The fewest and smallest inputs that reach all features of `inputs`, chosen greedily. At most 60 inputs.
pub fn minimise(target: &Target, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut inputs: Vec<_> = inputs
        .iter()
        .filter_map(|input| Some((input.clone(), execute(target, input).ok()?)))
        .collect();
    inputs.sort_by_key(|(input, _)| input.len());
    let mut reached = HashSet::new();
    let mut kept = Vec::new();
    while let Some((input, found)) = inputs
        .iter()
        .max_by_key(|(input, found)| {
            let new = found.difference(&reached).count();
            // From eight new features on, the smaller input wins.
            (new.min(8), std::cmp::Reverse(input.len()))
        })
        .filter(|(_, found)| !found.is_subset(&reached) && kept.len() < MOST_KEPT)
    {
        reached.extend(found);
        kept.push(input.clone());
    }
    kept
}
