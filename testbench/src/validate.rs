//! Validation: microbenchmarks on the model, beside figures measured on silicon.
//!
//! ```text
//! silicon/FAMILY.csv ── points() ──> Point ── measure ──> Row: model beside silicon ── Summary: median, p90, worst
//!                                       │                   ├─ text, CSV
//!                    kernels: own PTX ──┘                   └─ page with plots, DEVIATIONS.md
//! ```
//!
//! A [`Lab`] may keep the figures of the model in a store. A validation that was killed then computes only the rest.
//!
//! A [`Family`] is one microbenchmark with the silicon figures that it is compared with. Each figure has a source and a grade.
//! Grade A is read from the primary text or data. Grade B is read from a reliable secondary source. Grade C is recalled from memory.
//!
//! An error is (model - silicon) / silicon, in percent. Points run on the preset that matches the card. No point is an application
//! benchmark. This keeps presets from being tuned to applications.

mod cache;
mod chains;
mod clusters;
mod copies;
mod deviations;
mod families;
mod kept;
mod kernels;
mod lab;
mod memory;
mod page;
mod scenarios;
mod silicon;
mod summary;
mod tensor;
mod text;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde::Deserialize;

pub use deviations::deviations;
pub use families::FAMILIES;
pub use lab::Lab;
pub use page::page;
pub use silicon::{Results, SiliconError};
pub use summary::{Summary, differences, record};
pub use text::{csv, figures, rows, table};

use crate::gpu::GpuError;

/// A microbenchmark, and the silicon figures that it is compared with.
pub struct Family {
    /// Name on the command line.
    pub name: &'static str,
    /// What it measures, in one line.
    pub title: &'static str,
    /// Meaning of the first parameter, such as `KB`. Empty if the points have none.
    pub x_label: &'static str,
    /// Meaning of the second parameter.
    pub y_label: &'static str,
    /// Upper limits of its errors.
    pub limits: ErrorLimits,
    /// True if `--quick` runs the point, which takes seconds at most.
    is_quick: fn(&Point) -> bool,
    /// Silicon figures as CSV: gpu, series, x, y, silicon, unit, grade, source.
    silicon: &'static str,
    /// Runs the point on the model. Returns the value in the unit of the point.
    measure: fn(&Lab, &Point) -> Result<f64, GpuError>,
}

/// Upper limits of the absolute errors of a family, in percent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ErrorLimits {
    /// For the median row.
    pub median: f64,
    /// For nine rows in ten.
    pub p90: f64,
    /// For each row. A row with a larger error, or without a figure of the model, is a deviation. It needs a reason.
    pub row: f64,
    /// For a row on a plateau of silicon.
    pub plateau: f64,
}

/// A figure measured on silicon.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Point {
    /// The preset that matches the card.
    pub gpu: String,
    /// Kernel or instruction.
    pub series: String,
    /// First parameter.
    pub x: Option<f64>,
    /// Second parameter.
    pub y: Option<f64>,
    /// The figure of the card.
    pub silicon: f64,
    /// Unit of the figure.
    pub unit: String,
    /// A, B or C.
    pub grade: char,
    /// Key of the source.
    pub source: String,
    /// True if the next smaller or the next larger `x` of the same GPU and series has the same figure within 3 %.
    #[serde(skip)]
    pub is_plateau: bool,
}

impl Point {
    fn x(&self) -> u32 {
        self.x.expect("the family has a first parameter") as u32
    }

    fn y(&self) -> u32 {
        self.y.expect("the family has a second parameter") as u32
    }
}

/// A point with the model's value.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The figure of silicon.
    pub point: Point,
    /// The figure of the model, in the same unit; or why there is none.
    pub model: Result<f64, String>,
    /// Wall seconds of the computation. A stored figure has those of the run that computed it.
    pub seconds: f64,
    /// True if the figure was in the store.
    pub is_stored: bool,
}

impl Row {
    /// The error in percent. `None` if the model gave no figure.
    pub fn error(&self) -> Option<f64> {
        let model = *self.model.as_ref().ok()?;
        Some((model - self.point.silicon) / self.point.silicon * 100.0)
    }
}

impl Family {
    /// The family with this name.
    pub fn find(name: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.name == name)
    }

    /// The silicon figures, in the order of the file.
    pub fn points(&self) -> Vec<Point> {
        let mut reader = ::csv::Reader::from_reader(self.silicon.as_bytes());
        let points = reader.deserialize();
        let mut points: Vec<Point> = points
            .map(|point| point.unwrap_or_else(|error| panic!("silicon/{}.csv: {error}", self.name)))
            .collect();
        mark_plateaus(&mut points);
        points
    }

    /// The largest error of a point, in percent, that is no deviation.
    pub fn limit(&self, point: &Point) -> f64 {
        if point.is_plateau {
            self.limits.plateau
        } else {
            self.limits.row
        }
    }

    /// True if the row is a deviation: its error is beyond the limit, or it has no figure.
    pub fn is_deviation(&self, row: &Row) -> bool {
        row.error().is_none_or(|error| error.abs() > self.limit(&row.point))
    }

    /// True if `--quick` runs the point, which takes seconds at most.
    pub fn is_quick(&self, point: &Point) -> bool {
        (self.is_quick)(point)
    }

    /// Runs points on the model with `threads` host threads, as [`run`] does.
    pub fn run(
        &self,
        lab: &Lab,
        points: Vec<Point>,
        threads: NonZeroUsize,
        each: impl Fn(&Family, &Row) -> bool + Sync,
    ) -> Vec<Row> {
        run(lab, vec![(self, points)], threads, each)
            .pop()
            .map_or_else(Vec::new, |(_, rows)| rows)
    }
}

/// Finds the points whose neighbour in `x` has the same figure within 3 %.
fn mark_plateaus(points: &mut [Point]) {
    let is_near = |a: f64, b: f64| (a - b).abs() <= 0.03 * a.max(b);
    let mut order: Vec<usize> = (0..points.len()).filter(|n| points[*n].x.is_some()).collect();
    let key = |point: &Point| (point.gpu.clone(), point.series.clone(), point.y.map(f64::to_bits));
    order.sort_by(|a, b| {
        let (a, b) = (&points[*a], &points[*b]);
        key(a).cmp(&key(b)).then(a.x.partial_cmp(&b.x).expect("x is a number"))
    });
    for pair in order.windows(2) {
        let [a, b] = [pair[0], pair[1]];
        if key(&points[a]) == key(&points[b]) && is_near(points[a].silicon, points[b].silicon) {
            points[a].is_plateau = true;
            points[b].is_plateau = true;
        }
    }
}

/// The rows of families.
pub type FamilyRows<'a> = (&'a Family, Vec<Row>);

/// Runs the points of families on the model with `threads` host threads. Rows come in the order of the points.
///
/// `each` receives each row as it ends. If it returns false, points not yet begun are left out.
pub fn run<'a>(
    lab: &Lab,
    families: Vec<(&'a Family, Vec<Point>)>,
    threads: NonZeroUsize,
    each: impl Fn(&Family, &Row) -> bool + Sync,
) -> Vec<FamilyRows<'a>> {
    let names: Vec<&Family> = families.iter().map(|(family, _)| *family).collect();
    let points = families.into_iter().enumerate();
    // One queue for all families: no thread waits for the last point of a family.
    let points = points.flat_map(|(n, (family, points))| points.into_iter().map(move |point| (n, family, point)));
    let (queue, rows) = (Mutex::new(points.enumerate()), Mutex::new(Vec::new()));
    let stop = AtomicBool::new(false);
    let work = || {
        while !stop.load(Ordering::Relaxed)
            && let Some((n, (of, family, point))) = { queue.lock().expect("no worker panicked").next() }
        {
            let row = lab.row(family, point);
            if !each(family, &row) {
                stop.store(true, Ordering::Relaxed);
            }
            rows.lock().expect("no worker panicked").push((n, of, row));
        }
    };
    thread::scope(|scope| {
        (0..threads.get()).for_each(|_| drop(scope.spawn(work)));
    });
    let mut rows = rows.into_inner().expect("no worker panicked");
    // Points end in any order.
    rows.sort_by_key(|(n, ..)| *n);
    let mut results: Vec<FamilyRows<'a>> = names.into_iter().map(|family| (family, Vec::new())).collect();
    rows.into_iter().for_each(|(_, of, row)| results[of].1.push(row));
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `x` of each plateau point of a GPU and series.
    fn plateaus(family: &str, gpu: &str, series: &str) -> Vec<u32> {
        let points = Family::find(family).unwrap().points();
        let found = points
            .iter()
            .filter(|point| (&*point.gpu, &*point.series) == (gpu, series));
        found.filter(|point| point.is_plateau).map(Point::x).collect()
    }

    #[test]
    fn plateau_has_a_neighbour_with_the_same_figure() {
        // A V100 writes 895 GB/s with 512 and with 1,024 threads. It reads 746 with 512, 861 with 992, and 866 with 1,024.
        assert_eq!(plateaus("streams", "v100-sxm2", "init"), [512, 1024]);
        assert_eq!(plateaus("streams", "v100-sxm2", "read"), [992, 1024]);
    }

    #[test]
    fn plateau_has_a_limit_of_its_own() {
        let streams = Family::find("streams").unwrap();
        let is_deviation = |gpu: &str, series: &str, x: f64| {
            let mut points = streams.points().into_iter();
            let point = points.find(|point| (&*point.gpu, &*point.series, point.x) == (gpu, series, Some(x)));
            let point = point.unwrap();
            let model = Ok(point.silicon * 1.07);
            streams.is_deviation(&Row {
                point,
                model,
                seconds: 0.0,
                is_stored: false,
            })
        };
        // 7 % is beyond the limit of a plateau, and within the limit of a ramp.
        assert!(is_deviation("v100-sxm2", "init", 512.0));
        assert!(!is_deviation("v100-sxm2", "read", 512.0));
    }
}
