//! Microbenchmarks on a real GPU: writes them down, and computes the figures from what it gave.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use thiserror::Error;

use super::{Family, Lab, Point, PointError};
use crate::plan::{Measured, Plan};

/// Chains that the vendor's assembler shortens: it joins two additions in one IADD3, and removes a reciprocal of a reciprocal.
const SHORTENED: [&str; 3] = ["IADD3", "IADD64", "MUFU.RCP"];

/// Why there are no figures of a real GPU.
#[derive(Debug, Error)]
pub enum SiliconError {
    /// The results cannot be read.
    #[error("cannot read {0}: {1}; `measure.py` writes it into the folder of `--plan`")]
    Read(String, String),
    /// A microbenchmark cannot be written down.
    #[error(transparent)]
    Point(#[from] PointError),
}

impl Family {
    /// The points of all GPUs, each once, as points of `gpu`. Chains that silicon shortens are left out.
    pub fn points_for(&self, gpu: &str) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for mut point in self.points() {
            gpu.clone_into(&mut point.gpu);
            let is_same = |other: &Point| (&other.series, other.x, other.y) == (&point.series, point.x, point.y);
            let is_shortened = SHORTENED.contains(&point.series.as_str());
            if !is_shortened && !points.iter().any(is_same) {
                points.push(point);
            }
        }
        points
    }

    /// The launches of all points on `gpu`, without a run of the model.
    ///
    /// # Errors
    /// If the GPU has no preset.
    pub fn plans(&self, gpu: &str) -> Result<Vec<Plan>, SiliconError> {
        let mut plans = Vec::new();
        for point in self.points_for(gpu) {
            let lab = Lab::planner();
            (self.measure)(&lab, &point).map_err(|error| PointError(name(self, &point), error.to_string()))?;
            for (n, plan) in lab.into_plans().into_iter().enumerate() {
                let name = format!("{} #{n}", name(self, &point));
                plans.push(Plan { name, ..plan });
            }
        }
        Ok(plans)
    }

    /// The points with the figures of a real GPU, each the median of the repetitions. Points that failed there are left out.
    pub fn measured(&self, gpu: &str, results: &Results) -> Vec<Point> {
        let points = self.points_for(gpu).into_iter();
        let figure = |mut point: Point| {
            let benches: Vec<_> = (0..)
                .map_while(|n| results.0.get(&format!("{} #{n}", name(self, &point))))
                .collect();
            let repetitions = benches.iter().map(|bench| bench.repetitions.len()).min()?;
            let mut figures = Vec::new();
            for repetition in 0..repetitions {
                let of = |bench: &&Measured| (bench.core_ghz, bench.repetitions[repetition].clone());
                let lab = Lab::measured(benches.iter().map(of).collect());
                figures.push((self.measure)(&lab, &point).ok()?);
            }
            figures.sort_by(f64::total_cmp);
            point.silicon = *figures.get(figures.len() / 2)?;
            point.grade = 'A';
            "measured".clone_into(&mut point.source);
            point.silicon.is_finite().then_some(point)
        };
        points.filter_map(figure).collect()
    }
}

/// What a real GPU gave, by the name of the plan.
pub struct Results(HashMap<String, Measured>);

impl Results {
    /// Reads `results.json` of a folder.
    ///
    /// # Errors
    /// If the file cannot be read, or is no list of results.
    pub fn read(folder: &Path) -> Result<Results, SiliconError> {
        let path = folder.join("results.json");
        let failed = |error: String| SiliconError::Read(path.display().to_string(), error);
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let results: Vec<Measured> = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        Ok(Results(
            results.into_iter().map(|one| (one.name.clone(), one)).collect(),
        ))
    }
}

fn name(family: &Family, point: &Point) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!(" {value}"));
    format!(
        "{}: {}{}{}",
        family.name,
        point.series,
        number(point.x),
        number(point.y)
    )
}
