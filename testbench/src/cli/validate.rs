//! `warpwave validate`: microbenchmarks on the model, beside figures of silicon.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Instant;

use warpwave::plan;
use warpwave::report::units::count;
use warpwave::validate::{
    self, FAMILIES, Family, FamilyRows, Lab, Point, Results, Row, Summary, csv, deviations, differences, figures, page,
    record, rows, table,
};

use super::args::Validate;
use super::failure::{Failure, INTERRUPTED, WRONG};
use super::print;
use super::progress::{self, Count};

/// Runs the families, prints errors, writes files, and compares with a record.
pub fn validate(options: &Validate) -> Result<(), Failure> {
    let families = selected(&options.families)?;
    if let (Some(folder), Some(gpu)) = (&options.plan, &options.gpu) {
        // A plan needs no run of the model.
        return plan(folder, gpu, &families);
    }
    let measured = options.measured.as_deref().map(Results::read).transpose();
    let measured = measured.map_err(Failure::input)?;
    if let (Some(path), Some(results)) = (&options.silicon, &measured) {
        let points = |&family: &&'static Family| Ok((family, measured_points(family, options, results)?));
        let points = families.iter().map(points).collect::<Result<Vec<_>, Failure>>()?;
        // The figures of silicon alone: no run of the model.
        return write(path, &figures(&points));
    }
    progress::catch_interrupt();
    let begin = Instant::now();
    let Ran { results, wanted } = run(options, &families, measured.as_ref())?;
    let summaries: Vec<_> = results
        .iter()
        .map(|(family, rows)| (*family, Summary::of(rows)))
        .collect();
    if !options.families.is_empty() {
        for (family, measured) in &results {
            print(&rows(family, measured))?;
        }
        print("\n")?;
    }
    print(&table(&summaries))?;
    let rows = || results.iter().flat_map(|(_, rows)| rows);
    let (done, stored) = (rows().count(), rows().filter(|row| row.is_stored).count());
    print(&format!(
        "\n{}: {} computed in {:.1} s, {stored} from {}\n",
        count(done as u64, "point"),
        done - stored,
        begin.elapsed().as_secs_f64(),
        options.store.display()
    ))?;
    write_files(options, &results, &summaries)?;
    // Files are written even then: the rows that ran are complete.
    if progress::is_stopped() {
        let left = wanted - done;
        let text = format!("{left} of {wanted} points are not computed; the same command goes on with them");
        return Err(Failure {
            code: INTERRUPTED,
            text,
        });
    }
    if summaries.iter().any(|(_, summary)| summary.failed > 0) {
        let text = "the model gave no figure for some rows; each row says why (name its family)".to_owned();
        return Err(Failure { code: WRONG, text });
    }
    compare(options, &summaries)
}

fn selected(names: &[String]) -> Result<Vec<&'static Family>, Failure> {
    if names.is_empty() {
        return Ok(FAMILIES.iter().collect());
    }
    let find = |name: &String| {
        Family::find(name).ok_or_else(|| {
            let all: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
            Failure::input(format!("there is no family `{name}`; there are {}", all.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// Writes the microbenchmarks for a real GPU.
fn plan(folder: &Path, gpu: &str, families: &[&Family]) -> Result<(), Failure> {
    let plans = families.iter().map(|family| family.plans(gpu));
    let plans = plans.collect::<Result<Vec<_>, _>>().map_err(Failure::input)?.concat();
    plan::write(folder, &plans)
        .map_err(|error| Failure::input(format!("cannot write into {}: {error}", folder.display())))?;
    print(&format!(
        "{} microbenchmarks are in {}; on a machine with the GPU: python3 measure.py {}\n",
        plans.len(),
        folder.display(),
        folder.display()
    ))
}

/// The points of a family with the figures that `measure.py` left.
fn measured_points(family: &Family, options: &Validate, results: &Results) -> Result<Vec<Point>, Failure> {
    let gpu = options.gpu.as_deref().unwrap_or_default();
    family.measured(gpu, results).map_err(Failure::input)
}

/// What a run gave.
struct Ran {
    results: Vec<FamilyRows<'static>>,
    /// Number of points of these families, computed or not.
    wanted: usize,
}

fn run(options: &Validate, families: &[&'static Family], measured: Option<&Results>) -> Result<Ran, Failure> {
    let lab = Lab::with_sets(options.set.clone());
    let is_wanted = |family: &Family, point: &Point| {
        let is_of_gpu = options.gpu.as_ref().is_none_or(|wanted| *wanted == point.gpu);
        is_of_gpu && (!options.quick || family.is_quick(point))
    };
    let points = |&family: &&'static Family| {
        let points = match measured {
            Some(results) => measured_points(family, options, results)?,
            None => family.points(),
        };
        let wanted = points.into_iter().filter(|point| is_wanted(family, point));
        Ok((family, wanted.collect::<Vec<_>>()))
    };
    let families = families.iter().map(points).collect::<Result<Vec<_>, Failure>>()?;
    let wanted: usize = families.iter().map(|(_, points)| points.len()).sum();
    if wanted == 0 {
        let text = "no row of these families is left; --gpu and --quick leave rows out";
        return Err(Failure::input(text));
    }
    for (_, points) in &families {
        // A fault of a preset concerns every row of the GPU.
        points
            .iter()
            .try_for_each(|point| lab.check(&point.gpu))
            .map_err(Failure::input)?;
    }
    // Written from here on: a run with a fault above leaves no folder behind.
    let failed = |error| Failure::write(&options.store, error);
    let lab = lab.keep_in(&options.store).map_err(failed)?;
    if options.fresh {
        for (family, point) in families
            .iter()
            .flat_map(|(family, points)| points.iter().map(move |point| (family, point)))
        {
            lab.forget(family, point).map_err(failed)?;
        }
    }
    let threads = options.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
    let threads = threads.unwrap_or_else(|| available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let count = Count::new(wanted, !options.no_progress);
    let each =
        |family: &Family, row: &Row| count.add(&format!("{}: {} {}", family.name, row.point.gpu, row.point.series));
    let results = validate::run(&lab, families, threads, each);
    // A family without a row of this GPU, or without a quick row, is left out.
    let results = results.into_iter().filter(|(_, rows)| !rows.is_empty()).collect();
    Ok(Ran { results, wanted })
}

fn write_files(
    options: &Validate,
    results: &[(&Family, Vec<Row>)],
    summaries: &[(&Family, Summary)],
) -> Result<(), Failure> {
    let mut files = Vec::new();
    if let Some(path) = &options.csv {
        files.push((path.clone(), csv(results)));
    }
    if let Some(path) = &options.html {
        files.push((path.clone(), page(results)));
    }
    // The record of an interrupted run would lack rows.
    if let Some(folder) = options.write.as_ref().filter(|_| !progress::is_stopped()) {
        let quick: Vec<_> = results
            .iter()
            .map(|(family, rows)| (*family, quick(family, rows)))
            .collect();
        // Families that did not run stay as they were.
        let update = |name: &str, text: &dyn Fn(&str) -> String| {
            let path = folder.join(name);
            let earlier = fs::read_to_string(&path).unwrap_or_default();
            (path, text(&earlier))
        };
        files.push(update("all.csv", &|earlier| record(earlier, summaries)));
        files.push(update("quick.csv", &|earlier| record(earlier, &quick)));
        files.push(update("DEVIATIONS.md", &|earlier| deviations(earlier, results)));
    }
    files.iter().try_for_each(|(path, text)| write(path, text))
}

/// The errors of the rows of `--quick`.
fn quick(family: &Family, rows: &[Row]) -> Summary {
    let rows = rows.iter().filter(|row| family.is_quick(&row.point)).cloned();
    Summary::of(&rows.collect::<Vec<_>>())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::input(format!("cannot write {}: {error}", path.display())))
}

fn compare(options: &Validate, summaries: &[(&Family, Summary)]) -> Result<(), Failure> {
    let Some(path) = &options.check else { return Ok(()) };
    let record =
        fs::read_to_string(path).map_err(|error| Failure::input(format!("cannot read {}: {error}", path.display())))?;
    let differences = differences(&record, summaries);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Failure {
            code: WRONG,
            text: format!(
                "errors differ from {}; if that is wanted, record them with --write:\n{}",
                path.display(),
                differences.join("\n")
            ),
        }),
    }
}
