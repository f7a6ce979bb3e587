//! Keeps the figures of the model in the store of `warpwave sweep`.
//!
//! ```text
//! build | family | GPU, every number | series, x, y ── blake3 ──> Key ──> Record: figure, seconds
//! ```
//!
//! The build stands for the kernels, their launches and their seeds. A figure of silicon is no part of the key.

use std::io;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use warpwave_components::preset::{self, PresetError};

use super::{Family, Point};
use crate::sweep::{Key, Record, Store, numbers};

/// Changed preset keys with their values.
type Sets = [(String, String)];

/// The description of a point in the store.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureJob {
    family: String,
    gpu: String,
    series: String,
    x: Option<f64>,
    y: Option<f64>,
    sets: Vec<(String, String)>,
}

/// A store of figures.
pub(super) struct Figures(Store<FigureJob, f64>);

/// A figure of the model, or why there is none.
pub(super) struct Figure {
    pub model: Result<f64, String>,
    /// Wall seconds of the computation.
    pub seconds: f64,
    pub is_stored: bool,
}

impl Figure {
    /// Runs the model.
    pub fn of(run: impl FnOnce() -> Result<f64, String>) -> Self {
        let begin = Instant::now();
        let model = run();
        Figure {
            model,
            seconds: begin.elapsed().as_secs_f64(),
            is_stored: false,
        }
    }
}

impl Figures {
    /// Opens a store, and creates its folders.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Store::open(folder).map(Figures)
    }

    /// Removes the figure of a point.
    pub fn forget(&self, family: &Family, point: &Point, sets: &Sets) -> io::Result<()> {
        key(family, point, sets).map_or(Ok(()), |key| self.0.forget(&key))
    }

    /// The stored figure of a point, or else the one that `run` computes. A point without a figure is not stored.
    pub fn find_or_run(
        &self,
        family: &Family,
        point: &Point,
        sets: &Sets,
        run: impl FnOnce() -> Result<f64, String>,
    ) -> Figure {
        // The preset is wrong. The run reports what is wrong with it.
        let Ok(key) = key(family, point, sets) else {
            return Figure::of(run);
        };
        if let Some(figure) = self.find(&key) {
            return figure;
        }
        // Another process may be at work on the point. Without a lock, both compute the same figure.
        let _lock = self.0.lock(&key);
        if let Some(figure) = self.find(&key) {
            return figure;
        }
        let figure = Figure::of(run);
        if let Ok(value) = figure.model {
            let job = FigureJob {
                family: family.name.to_owned(),
                gpu: point.gpu.clone(),
                series: point.series.clone(),
                x: point.x,
                y: point.y,
                sets: sets.to_vec(),
            };
            // A figure that cannot be stored is valid for this run.
            let _ = self.0.put(&key, &Record::new(job, value, figure.seconds));
        }
        figure
    }

    fn find(&self, key: &Key) -> Option<Figure> {
        let record = self.0.record(key)?;
        Some(Figure {
            model: Ok(record.outcome),
            seconds: record.seconds,
            is_stored: true,
        })
    }
}

/// The key of a point.
fn key(family: &Family, point: &Point, sets: &Sets) -> Result<Key, PresetError> {
    let gpu = numbers(&preset::load(&point.gpu, sets)?.config);
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let (x, y) = (number(point.x), number(point.y));
    let parts = ["validate", family.name, &gpu, &point.series, &x, &y];
    Ok(Key::of(parts.map(str::as_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(series: &str) -> Point {
        let family = Family::find("latency").expect("the family exists");
        let mut points = family.points().into_iter();
        points.find(|point| point.series == series).expect("the series exists")
    }

    fn key_of(family: &str, point: &Point, sets: &Sets) -> Key {
        key(Family::find(family).unwrap(), point, sets).unwrap()
    }

    #[test]
    fn each_part_of_a_point_changes_its_key_and_the_figure_of_silicon_does_not() {
        let ffma = point("FFMA");
        let set = [("sm.pipes.fp32.latency".to_owned(), "9".to_owned())];
        let mut wide = ffma.clone();
        wide.x = Some(2.0);
        let mut high = ffma.clone();
        high.y = Some(2.0);
        let mut keys = vec![
            key_of("latency", &ffma, &[]),
            key_of("rate", &ffma, &[]),
            key_of("latency", &point("IMAD"), &[]),
            key_of("latency", &ffma, &set),
            key_of("latency", &wide, &[]),
            key_of("latency", &high, &[]),
        ];
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 6);
        let mut measured = ffma.clone();
        (measured.silicon, measured.source) = (99.0, "measured".to_owned());
        assert_eq!(key_of("latency", &measured, &[]), key_of("latency", &ffma, &[]));
    }

    #[test]
    fn figure_is_computed_once_and_comes_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let figures = Figures::open(folder.path()).unwrap();
        let (family, point) = (Family::find("latency").unwrap(), point("FFMA"));
        let find = |value: f64| figures.find_or_run(family, &point, &[], || Ok(value));
        // 0.1 + 0.2 has no short decimal form.
        let value = 0.1 + 0.2;
        assert!(!find(value).is_stored);
        let again = find(7.0);
        assert_eq!((again.model, again.is_stored), (Ok(value), true));
        figures.forget(family, &point, &[]).unwrap();
        assert_eq!(find(7.0).model, Ok(7.0));
    }

    #[test]
    fn point_without_a_figure_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let figures = Figures::open(folder.path()).unwrap();
        let (family, point) = (Family::find("latency").unwrap(), point("FFMA"));
        let failed = figures.find_or_run(family, &point, &[], || Err("a trap".to_owned()));
        assert_eq!(failed.model, Err("a trap".to_owned()));
        assert_eq!(figures.find_or_run(family, &point, &[], || Ok(4.0)).model, Ok(4.0));
    }
}
