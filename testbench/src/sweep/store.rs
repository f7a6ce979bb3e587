//! The store of sweeps and validations: a folder with one record a point, by its key.
//!
//! ```text
//! STORE/planned/KEY.json   the job
//! STORE/points/KEY.json    the record: the report, or why there is none
//! STORE/locks/KEY          locked by the process that computes the point
//! ```
//!
//! A record appears complete or not at all: it is renamed into place. A lock ends with its process, even if that is killed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::job::BUILD;
use super::{Job, Key, Limits};

/// A folder of records. `J` describes a point, and `O` is its result.
#[derive(Clone, Debug)]
pub struct Store<J = Job, O = Outcome> {
    folder: PathBuf,
    records: PhantomData<fn() -> (J, O)>,
}

/// The record of one point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record<J = Job, O = Outcome> {
    /// The point.
    pub job: J,
    /// Version and source hash of the simulator.
    pub build: String,
    /// The result.
    pub outcome: O,
    /// Wall seconds of the computation.
    pub seconds: f64,
    /// Process that computed it.
    pub process: u32,
}

/// The result of one point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Every launch ended.
    Done {
        /// The report of `warpwave run --json`.
        report: serde_json::Value,
        /// Buffers that differ from their `expect`.
        wrong: Vec<String>,
    },
    /// The point has no result.
    Failed {
        /// Exit code of the same run by `warpwave run`.
        code: u8,
        /// The reason.
        reason: String,
        /// The limit of the point that was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Reached>,
    },
}

/// A limit of a point that ended it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reached {
    /// Wall time in seconds.
    Time(f64),
    /// Address space in bytes.
    Memory(u64),
}

impl Outcome {
    /// True if the point failed at a limit that `limits` raises or lifts.
    fn failed_below(&self, limits: Limits) -> bool {
        match self {
            Outcome::Failed {
                limit: Some(Reached::Time(seconds)),
                ..
            } => limits.time.is_none_or(|time| time.as_secs_f64() > *seconds),
            Outcome::Failed {
                limit: Some(Reached::Memory(bytes)),
                ..
            } => limits.memory.is_none_or(|memory| memory > *bytes),
            _ => false,
        }
    }

    /// True if the point is computed a second time. It failed, and `retries` is true or `limits` raises or lifts the limit that it
    /// reached.
    pub fn is_retried(&self, limits: Limits, retries: bool) -> bool {
        retries && matches!(self, Outcome::Failed { .. }) || self.failed_below(limits)
    }
}

impl<J, O> Record<J, O> {
    /// A record by this process and build.
    pub fn new(job: J, outcome: O, seconds: f64) -> Self {
        Record {
            job,
            build: BUILD.to_owned(),
            outcome,
            seconds,
            process: process::id(),
        }
    }
}

impl<J, O> Store<J, O>
where
    J: Serialize + DeserializeOwned + PartialEq,
    O: Serialize + DeserializeOwned,
{
    /// Opens a store, and creates its folders.
    ///
    /// # Errors
    /// If a folder cannot be created.
    pub fn open(folder: &Path) -> io::Result<Self> {
        for part in ["planned", "points", "locks"] {
            fs::create_dir_all(folder.join(part))?;
        }
        Ok(Store {
            // Processes of other working folders use this path too.
            folder: std::path::absolute(folder)?,
            records: PhantomData,
        })
    }

    /// The folder, as an absolute path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, part: &str, key: &Key) -> PathBuf {
        self.folder.join(part).join(format!("{key}.json"))
    }

    /// Stores the job of a key.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn plan(&self, key: &Key, job: &J) -> io::Result<()> {
        match self.planned(key) {
            Some(planned) if planned == *job => Ok(()),
            _ => put(&self.path("planned", key), job),
        }
    }

    /// The planned job of a key.
    pub fn planned(&self, key: &Key) -> Option<J> {
        get(&self.path("planned", key))
    }

    /// The record of a key. A damaged file counts as none.
    pub fn record(&self, key: &Key) -> Option<Record<J, O>> {
        get(&self.path("points", key))
    }

    /// Stores the record of a key.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&self, key: &Key, record: &Record<J, O>) -> io::Result<()> {
        put(&self.path("points", key), record)
    }

    /// Removes the record of a key, so that its point is missing.
    ///
    /// # Errors
    /// If the file exists and cannot be removed.
    pub fn forget(&self, key: &Key) -> io::Result<()> {
        match fs::remove_file(self.path("points", key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits until no other process computes the point. The lock ends when the file is dropped.
    ///
    /// # Errors
    /// If the file cannot be created or locked.
    pub fn lock(&self, key: &Key) -> io::Result<File> {
        let path = self.folder.join("locks").join(key.to_string());
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        // The file stays: if it were removed, two processes could lock two files of one name.
        file.lock()?;
        Ok(file)
    }
}

fn get<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn put(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(value).map_err(io::Error::other)?;
    // The process id keeps two writers apart. A rename replaces the file in one step.
    let temporary = path.with_extension(format!("{}.tmp", process::id()));
    fs::write(&temporary, text)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn job() -> Job {
        Job {
            scenario: "saxpy".to_owned(),
            gpu: "tiny".to_owned(),
            sets: Vec::new(),
            settings: vec![("block".to_owned(), "64".to_owned())],
            ignore_target: false,
            max_cycles: None,
        }
    }

    #[test]
    fn record_comes_back_until_it_is_forgotten_and_half_a_file_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let store: Store = Store::open(folder.path()).unwrap();
        let key = Key::parse(&"a1".repeat(16)).unwrap();
        assert_eq!(store.record(&key), None);
        let failed = Outcome::Failed {
            code: 3,
            reason: "a trap".to_owned(),
            limit: None,
        };
        let record = Record::new(job(), failed, 0.5);
        store.put(&key, &record).unwrap();
        store.plan(&key, &job()).unwrap();
        assert_eq!(store.record(&key), Some(record));
        assert_eq!(store.planned(&key), Some(job()));
        store.forget(&key).unwrap();
        store.forget(&key).unwrap();
        assert_eq!(store.record(&key), None);
        fs::write(store.path("points", &key), "{\"job\":").unwrap();
        assert_eq!(store.record(&key), None);
    }

    #[test]
    fn point_that_failed_at_a_limit_has_another_chance_below_a_higher_one() {
        let failed = |limit| Outcome::Failed {
            code: 4,
            reason: String::new(),
            limit,
        };
        let time = |seconds: Option<u64>| Limits {
            time: seconds.map(Duration::from_secs),
            memory: None,
        };
        let memory = |memory| Limits { time: None, memory };
        let (slow, large) = (failed(Some(Reached::Time(2.0))), failed(Some(Reached::Memory(64))));
        assert_eq!(
            [Some(1), Some(2), Some(3), None].map(|s| slow.is_retried(time(s), false)),
            [false, false, true, true]
        );
        assert_eq!(
            [Some(63), Some(64), Some(65), None].map(|m| large.is_retried(memory(m), false)),
            [false, false, true, true]
        );
        assert!(slow.is_retried(time(Some(1)), true));
        assert!(!failed(None).is_retried(Limits::default(), false));
        assert!(failed(None).is_retried(Limits::default(), true));
        let done = Outcome::Done {
            report: serde_json::Value::Null,
            wrong: vec!["y".to_owned()],
        };
        assert!(!done.is_retried(Limits::default(), true));
    }

    #[test]
    fn second_lock_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let store: Store = Store::open(folder.path()).unwrap();
        let key = Key::parse(&"0".repeat(32)).unwrap();
        let first = store.lock(&key).unwrap();
        let path = folder.path().join("locks").join(key.to_string());
        let other = File::open(path).unwrap();
        assert!(other.try_lock().is_err());
        drop(first);
        assert!(other.try_lock().is_ok());
    }
}
