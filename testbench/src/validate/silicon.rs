//! Microbenchmarks on a real GPU: writes them down, and computes the figures from what it gave.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use thiserror::Error;

use super::{Family, Lab, Point};
use crate::plan::{Measured, Plan, PlannedStep, Repetition};

/// Chains that the vendor's assembler shortens: it joins two additions or two maxima in one instruction, and removes a reciprocal of a
/// reciprocal.
const SHORTENED: [&str; 4] = ["IADD3", "IADD64", "IMNMX", "MUFU.RCP"];

/// Why there are no figures of a real GPU.
#[derive(Debug, Error)]
pub enum SiliconError {
    /// The results cannot be read.
    #[error("cannot read {0}: {1}; `measure.py` writes it into the folder of `--plan`")]
    Read(String, String),
    /// A microbenchmark cannot be written down: its name, and why.
    #[error("{0}: {1}")]
    Point(String, String),
}

impl Family {
    /// The points of all GPUs, each once, as points of `gpu`. Chains that silicon shortens are left out.
    pub fn points_for(&self, gpu: &str) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for mut point in self.points() {
            gpu.clone_into(&mut point.gpu);
            let is_same = |other: &Point| (&other.series, other.x, other.y) == (&point.series, point.x, point.y);
            let is_shortened = SHORTENED.contains(&point.series.as_str());
            // Several cards can have the same microbenchmark.
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
        let plans = self.points_for(gpu).into_iter().map(|point| self.plans_of(&point));
        Ok(plans.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The launches of one point: a plan for each bench, in order.
    fn plans_of(&self, point: &Point) -> Result<Vec<Plan>, SiliconError> {
        let name = name(self, point);
        let lab = Lab::planner();
        let planned = (self.measure)(&lab, point);
        planned.map_err(|error| SiliconError::Point(name.clone(), error.to_string()))?;
        let plans = lab.into_plans().into_iter().enumerate();
        let named = plans.map(|(n, plan)| Plan {
            name: format!("{name} #{n}"),
            ..plan
        });
        Ok(named.collect())
    }

    /// The points with the figures of a real GPU, each the median of the repetitions. Points without all their results are left out.
    ///
    /// # Errors
    /// If the GPU has no preset.
    pub fn measured(&self, gpu: &str, results: &Results) -> Result<Vec<Point>, SiliconError> {
        let mut points = Vec::new();
        for mut point in self.points_for(gpu) {
            let plans = self.plans_of(&point)?;
            let Some(figure) = self.figure(&point, &plans, results) else {
                continue;
            };
            point.silicon = figure;
            point.grade = 'A';
            "measured".clone_into(&mut point.source);
            points.push(point);
        }
        Ok(points)
    }

    /// The median figure of a point over the repetitions. `None` if a result of its plans is missing, or the figure is not finite.
    fn figure(&self, point: &Point, plans: &[Plan], results: &Results) -> Option<f64> {
        let of_plan = |plan: &Plan| {
            let found = results.0.get(&plan.name)?;
            found
                .repetitions
                .iter()
                .all(|one| is_complete(one, plan))
                .then_some(found)
        };
        let benches: Vec<&Measured> = plans.iter().map(of_plan).collect::<Option<_>>()?;
        // A figure needs the same repetition of each bench.
        let repetitions = benches.iter().map(|bench| bench.repetitions.len()).min()?;
        let mut figures = Vec::new();
        for n in 0..repetitions {
            let of = |bench: &&Measured| (bench.core_ghz, bench.repetitions[n].clone());
            // The function of the point computes its figure from results in place of runs.
            let lab = Lab::measured(benches.iter().map(of).collect());
            figures.push((self.measure)(&lab, point).ok()?);
        }
        figures.sort_by(f64::total_cmp);
        figures
            .get(figures.len() / 2)
            .copied()
            .filter(|figure| figure.is_finite())
    }
}

/// True if a repetition has a time for each timed launch of the plan, and values for each read.
fn is_complete(repetition: &Repetition, plan: &Plan) -> bool {
    let is_timed = |step: &&PlannedStep| matches!(step, PlannedStep::Launch(launch) if launch.is_timed);
    let is_read = |step: &&PlannedStep| matches!(step, PlannedStep::Read(_));
    repetition.launches.len() == plan.steps.iter().filter(is_timed).count()
        && repetition.reads.len() == plan.steps.iter().filter(is_read).count()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of the plans: 100 ns a launch, and clock values from 0 to 100 for each read.
    fn results(plans: &[Plan]) -> Vec<Measured> {
        let result = |plan: &Plan| {
            let n = |is: &dyn Fn(&PlannedStep) -> bool| plan.steps.iter().filter(|step| is(step)).count();
            let timed = n(&|step| matches!(step, PlannedStep::Launch(launch) if launch.is_timed));
            let repetition = Repetition {
                launches: vec![100.0; timed],
                reads: vec![vec![0, 100]; n(&|step| matches!(step, PlannedStep::Read(_)))],
            };
            Measured {
                name: plan.name.clone(),
                core_ghz: 1.0,
                repetitions: vec![repetition],
                error: None,
            }
        };
        plans.iter().map(result).collect()
    }

    fn points(family: &Family, results: Vec<Measured>) -> usize {
        let by_name = results.into_iter().map(|one| (one.name.clone(), one));
        let points = family.measured("h100-sxm5", &Results(by_name.collect())).unwrap();
        points.len()
    }

    #[test]
    fn point_without_all_its_results_is_left_out() {
        let family = Family::find("small-kernels").unwrap();
        let plans = family.plans("h100-sxm5").unwrap();
        let all = results(&plans);
        let n = family.points_for("h100-sxm5").len();
        assert_eq!(points(family, all.clone()), n);
        // A run that was cut, a launch without a time, and a plan that failed.
        assert_eq!(points(family, all[1..].to_vec()), n - 1);
        let mut short = all.clone();
        short[0].repetitions[0].launches.clear();
        assert_eq!(points(family, short), n - 1);
        let mut failed = all;
        failed[0].repetitions.clear();
        assert_eq!(points(family, failed), n - 1);
    }

    #[test]
    fn gpu_without_a_preset_is_an_error() {
        let family = Family::find("latency").unwrap();
        let error = family.measured("h900", &Results(HashMap::new())).unwrap_err();
        assert!(error.to_string().contains("h900"), "{error}");
    }
}
