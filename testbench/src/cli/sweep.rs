//! `warpwave sweep`: one scenario at every combination of values, each point in its own process.

pub mod args;

mod point;

mod pool;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Instant;

use warpwave::report::saved::{CYCLES, is_column, launch_of};
use warpwave::report::units::count;
use warpwave::scenario::Draft;
use warpwave::sweep::{
    self, Axis, Call, DrawnLaunches, Job, JobError, Key, Keys, Outcome, PlotOptions, Point, Record, Row, Spec, Status,
    Store, Table, launch_names, page, plot, points, script, shown,
};
use warpwave_components::preset;

use self::args::{Part, Plan, Sweep, What};
use super::args::DEFAULT_GPU;
use super::explain::unknown_metric;
use super::failure::{Failure, INTERRUPTED, WRONG, tell};
use super::lab::{check_names, check_outputs};
use super::print;
use super::progress;
use super::write::write;

/// The points of a sweep, and where their results are.
struct Planned {
    /// The scenario as it was named.
    name: String,
    /// The title of plots and pages: that of the scenario, or else its name.
    title: String,
    spec: Spec,
    store: Store,
    points: Vec<(Point, Job, Key)>,
    /// The records of points to compute a second time, by key.
    retried: BTreeMap<Key, Record>,
    /// Every input file, which no output may replace.
    inputs: Vec<PathBuf>,
    launches: Launches,
}

/// The launches of the points.
struct Launches {
    /// The name of each launch.
    names: Vec<String>,
    /// True for each launch that only warms up.
    warm_up: Vec<bool>,
    /// False if a swept constant may change their number.
    are_fixed: bool,
}

/// Runs a sweep, plans it, or computes one point.
pub fn sweep(args: &Sweep) -> Result<(), Failure> {
    match &args.part {
        Some(Part::Plan(args)) => print_plan(args),
        Some(Part::RunPoint(args)) => point::run(args),
        None => run(args),
    }
}

/// Finds the points, and stores a job for each missing one. A record stays until a new one replaces it.
fn plan(what: &What) -> Result<Planned, Failure> {
    let name = what.scenario.clone().unwrap_or_default();
    let draft = Draft::find(&name).map_err(Failure::input)?;
    let title = title(&name, &draft);
    let mut spec = draft.sweep().cloned().unwrap_or_default();
    spec.override_axes(&what.over);
    refuse_unused(what)?;
    let gpu = what.gpu.clone().or_else(|| draft.gpu());
    let gpu = gpu.unwrap_or_else(|| DEFAULT_GPU.to_owned());
    let base = Job {
        scenario: sweep::absolute(&name),
        gpu: sweep::absolute_gpu(&gpu),
        // An option of the command wins over the scenario.
        sets: [draft.settings(), what.set.clone()].concat(),
        settings: Vec::new(),
        ignore_target: what.ignore_target,
        max_cycles: what.max_cycles,
    };
    let all = points(&spec.over).map_err(Failure::input)?;
    // The keys tell an axis over the GPU from one over the scenario. All presets have the same keys.
    let fault = draft.gpu_fault(&gpu);
    let failure = |error: JobError| match (error, &fault) {
        (JobError::Preset(_), Some(fault)) => Failure::input(fault),
        (error, _) => Failure::input(error),
    };
    let preset_keys = preset::load(&base.gpu, &[])
        .map_err(|error| failure(error.into()))?
        .sources;
    let preset_keys = preset_keys.into_iter().map(|row| row.key).collect();
    let jobs: Vec<(Point, Job)> = all
        .into_iter()
        .map(|point| (point.clone(), base.at(&point, &preset_keys)))
        .collect();
    let gpus: BTreeSet<_> = jobs.iter().map(|(_, job)| job.gpu.as_str()).collect();
    let inputs = draft.inputs(gpus);
    // Before the store is opened: a refused sweep leaves no folder behind.
    let launches = check_settings(draft, &jobs)?;
    let store: Store = Store::open(&what.store).map_err(|error| Failure::write(&what.store, error))?;
    let mut keys = Keys::default();
    let keyed = jobs.into_iter().map(|(point, job)| {
        let key = keys.of(&job).map_err(failure)?;
        Ok((point, job, key))
    });
    let points = keyed.collect::<Result<Vec<_>, Failure>>()?;
    let written = |error| Failure::write(store.folder(), error);
    let mut retried = BTreeMap::new();
    for (_, job, key) in &points {
        let record = store.record(key);
        let is_missing = record.is_none();
        let record = record.filter(|record| record.outcome.is_retried(what.limits.limits(), what.retry_failed));
        if is_missing || record.is_some() {
            store.plan(key, job).map_err(written)?;
        }
        retried.extend(record.map(|record| (key.clone(), record)));
    }
    Ok(Planned {
        name,
        title,
        spec,
        store,
        points,
        retried,
        inputs,
        launches,
    })
}

/// The title of a scenario, or else its name without the folder.
fn title(name: &str, draft: &Draft) -> String {
    let stem = Path::new(name)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    match draft.words().title {
        "" => stem.unwrap_or_else(|| name.to_owned()),
        title => title.to_owned(),
    }
}

/// The option for a value that one of the axes gives to each point.
fn unused_option(what: &What, axes: &[Axis]) -> Option<String> {
    let is_axis = |key: &str| axes.iter().any(|axis| axis.name == key);
    let set = what.set.iter().find(|(key, _)| is_axis(key));
    if what.gpu.is_some() && is_axis("gpu") {
        return Some("--gpu".to_owned());
    }
    set.map(|(key, _)| format!("--set {key}"))
}

/// Refuses an option that an axis of the command line overrides.
fn refuse_unused(what: &What) -> Result<(), Failure> {
    // An axis of the scenario stays free to win: `test --sweeps --gpu` passes the option to every sweep.
    unused_option(what, &what.over).map_or(Ok(()), |option| {
        Err(Failure::input(format!(
            "{option} has no effect: --over gives each point its own value; leave out one of the two"
        )))
    })
}

/// Refuses a plot with the name of another format.
fn check_plot(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        // A device or a pipe has no ending.
        None | Some("svg") => Ok(()),
        Some(_) => Err(Failure::input(format!(
            "--plot {}: a plot is an SVG file; let its name end in .svg",
            path.display()
        ))),
    }
}

/// Applies every setting once, so that a misspelt one is refused before the first point. Returns the launches.
fn check_settings(draft: Draft, jobs: &[(Point, Job)]) -> Result<Launches, Failure> {
    let mut settings: Vec<_> = jobs.iter().flat_map(|(_, job)| job.settings.clone()).collect();
    settings.sort();
    settings.dedup();
    let (constants, settings) = sweep::split_constants(&draft, &settings);
    // By the text of the scenario: new values may not name the constants that they replace.
    draft
        .check_axes(constants.iter().map(|(name, _)| name.as_str()))
        .map_err(Failure::input)?;
    let draft = draft.with_constants(&constants).map_err(Failure::input)?;
    let gpu = draft.gpu().unwrap_or_else(|| DEFAULT_GPU.to_owned());
    let set = draft.settings();
    let mut scenario = draft.build(None).map_err(Failure::input)?;
    check_names(&scenario, &gpu, &set)?;
    let mut checked = settings
        .iter()
        .map(|(name, value)| sweep::apply(&mut scenario, name, value));
    checked.try_for_each(|result| result.map_err(|error| Failure::input(JobError::from(error))))?;
    // All points have the same axes, in the same order.
    let names = jobs.iter().take(1).flat_map(|(_, job)| &job.settings);
    let names = names.map(|(name, _)| name.as_str());
    // A constant may size data too, so its effect is not known here.
    let of_launches: Vec<_> = names
        .filter(|name| !constants.iter().any(|(constant, _)| constant == name))
        .collect();
    sweep::check_effects(&scenario, &of_launches).map_err(|error| Failure::input(JobError::from(error)))?;
    Ok(Launches {
        names: launch_names(&scenario.launches),
        warm_up: scenario.launches.iter().map(|launch| launch.is_warm_up).collect(),
        are_fixed: constants.is_empty(),
    })
}

impl Planned {
    /// The points without a record, and those to retry that have their old one.
    fn missing(&self) -> Vec<&(Point, Job, Key)> {
        let is_missing = |(_, _, key): &&(Point, Job, Key)| self.done(key).is_none();
        self.points.iter().filter(is_missing).collect()
    }

    /// The record of a point. `None` if it is still to be computed.
    fn done(&self, key: &Key) -> Option<Record> {
        let record = self.store.record(key);
        record.filter(|record| self.retried.get(key) != Some(record))
    }

    /// Refuses a column of a launch that no point has. Swept constants may change the number of launches, so only results show it.
    fn check_launches(&self, columns: &[String]) -> Result<(), Failure> {
        let launches = self
            .points
            .iter()
            .filter_map(|(_, _, key)| match self.done(key)?.outcome {
                Outcome::Done { report, .. } => report["launches"].as_array().map(Vec::len),
                Outcome::Failed { .. } => None,
            });
        let beyond = |most: usize| {
            let is_beyond = |name: &&String| launch_of(name).is_some_and(|(launch, _)| launch >= most);
            columns.iter().find(is_beyond).map(|name| no_launch(name, most))
        };
        // Without constants, the columns are checked before the first point.
        let has_launches = columns.iter().any(|name| launch_of(name).is_some());
        let most = if !self.launches.are_fixed && has_launches {
            launches.max()
        } else {
            None
        };
        most.and_then(beyond).map_or(Ok(()), Err)
    }

    /// The results so far.
    fn table(&self, columns: Vec<String>) -> Table {
        let row = |(point, _, key): &(Point, Job, Key)| Row::new(point.clone(), self.done(key).as_ref(), &columns);
        Table {
            axes: self.spec.over.clone(),
            rows: self.points.iter().map(row).collect(),
            columns,
        }
    }
}

/// `sweep plan`: a line for each missing point, or a job script.
fn print_plan(args: &Plan) -> Result<(), Failure> {
    let planned = plan(&args.what)?;
    let missing = planned
        .missing()
        .into_iter()
        .map(|(point, _, key)| (key.clone(), shown(point)));
    let missing: Vec<_> = missing.collect();
    let Some(engine) = args.engine else {
        let lines: String = missing.iter().map(|(key, point)| format!("{key} {point}\n")).collect();
        return print(&lines);
    };
    let call = Call {
        program: &std::env::current_exe().map_err(Failure::input)?,
        store: planned.store.folder(),
        limits: args.what.limits.limits(),
        retries: args.what.retry_failed,
        tasks: args.tasks.into(),
    };
    print(&script(engine.engine(), &planned.name, &missing, call))
}

/// `sweep`: computes the missing points, then prints and writes the table.
fn run(args: &Sweep) -> Result<(), Failure> {
    let planned = plan(&args.what)?;
    let drawn = plot_options(args, &planned)?;
    let columns = columns(args, &planned, &drawn)?;
    // A wrong option must fail now, not after hours of points.
    let files = [
        ("--csv", &args.csv),
        ("--parquet", &args.parquet),
        ("--plot", &args.plot),
        ("--html", &args.html),
    ];
    check_outputs(&files.map(|(option, path)| (option, path.as_deref())), &planned.inputs)?;
    check_plot(args.plot.as_deref())?;
    if args.parquet.is_some() && cfg!(not(feature = "parquet")) {
        let text = "--parquet needs a program with the feature `parquet`: cargo build --release --features parquet";
        return Err(Failure::input(text));
    }
    // So must an assertion that names no axis or metric of the sweep.
    let faults = planned.spec.asserts.iter().enumerate();
    let fault = faults
        .filter_map(|(n, assert)| Some(format!("sweep.assert[{n}]: {}", assert.fault(&planned.spec.over)?)))
        .next();
    if let Some(fault) = fault {
        return Err(Failure::input(format!("{}: {fault}", planned.name)));
    }
    if let Some(option) = unused_option(&args.what, &planned.spec.over).filter(|_| !args.quiet) {
        tell(&format!(
            "note: {option} has no effect: an axis of the scenario gives each point its own value"
        ));
    }
    progress::catch_interrupt();
    // A point with a current record is not computed, also after an interrupt.
    let (begin, missing) = (Instant::now(), planned.missing());
    let jobs = args.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into()));
    let jobs = jobs.unwrap_or_else(|| available_parallelism().unwrap_or(NonZeroUsize::MIN));
    pool::compute(
        &planned.store,
        &missing,
        jobs,
        (args.what.limits.limits(), args.what.retry_failed),
        !args.no_progress && !args.quiet,
    )?;
    planned.check_launches(&columns)?;
    let table = planned.table(columns);
    let (all, left) = (
        table.rows.len(),
        table.rows.iter().filter(|row| row.status == Status::Missing).count(),
    );
    if !args.quiet {
        print(&table.text())?;
        print(&format!(
            "\n{}: {} computed in {:.1} s, {} from {}\n",
            count(all as u64, "point"),
            // The folder may have been removed meanwhile.
            missing.len().saturating_sub(left),
            begin.elapsed().as_secs_f64(),
            all - missing.len(),
            args.what.store.display()
        ))?;
    }
    if let Some(path) = &args.csv {
        write(path, table.csv().as_bytes())?;
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &args.parquet {
        let bytes = table
            .parquet()
            .map_err(|reason| Failure::input(format!("--parquet {}: {reason}", path.display())))?;
        write(path, &bytes)?;
    }
    if let Some(path) = &args.plot {
        let text = plot(&planned.title, &table, &drawn);
        let text = text.map_err(|reason| Failure::input(format!("--plot {}: {reason}", path.display())))?;
        write(path, text.as_bytes())?;
    }
    // Files are written whether or not the assertions hold.
    let held = verdict(&planned, &table, left);
    if let Some(path) = &args.html {
        let says = held
            .as_ref()
            .map_or_else(|failure| failure.text.as_str(), String::as_str);
        write(path, page(&planned.title, &table, &drawn, says).as_bytes())?;
    }
    let held = held?;
    if args.quiet { Ok(()) } else { print(&held) }
}

/// The columns: cycles, the scenario's metrics and assertions, then those of the command line.
fn columns(args: &Sweep, planned: &Planned, drawn: &PlotOptions) -> Result<Vec<String>, Failure> {
    let spec = &planned.spec;
    let asserted = spec.asserts.iter().map(|assert| &assert.metric);
    let mut columns = vec![CYCLES.to_owned()];
    // A metric of an assertion or plot needs a column too.
    let plotted = spec.plot.metric.iter();
    let by_launch = drawn.by_launch.iter().map(|n| format!("launch[{n}].{}", drawn.y));
    let by_launch: Vec<String> = by_launch.collect();
    let named = spec.metrics.iter().chain(asserted).chain(plotted);
    for name in named.chain(&args.metric).chain(&by_launch) {
        if !is_column(name) {
            return Err(unknown_metric(name));
        }
        let n = planned.launches.names.len();
        if let Some((launch, _)) = launch_of(name)
            && planned.launches.are_fixed
            && launch >= n
        {
            return Err(no_launch(name, n));
        }
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    Ok(columns)
}

fn no_launch(column: &str, n: usize) -> Failure {
    Failure::input(format!(
        "{column}: launches are counted from 0, and the scenario has {n}"
    ))
}

/// The options of the command, or else those of the scenario.
fn plot_options(args: &Sweep, planned: &Planned) -> Result<PlotOptions, Failure> {
    let (spec, launches) = (&planned.spec.plot, &planned.launches);
    let y = args.metric.first().or(spec.metric.as_ref());
    let y = y.map_or(CYCLES, String::as_str).to_owned();
    let all = args.by_launch.then_some(&DrawnLaunches::All(true));
    let by_launch = match all.or(spec.launches.as_ref()) {
        // A column of one launch is drawn alone.
        Some(drawn) if launch_of(&y).is_none() => {
            let counted = launches.names.iter().zip(&launches.warm_up);
            let names: Vec<_> = counted
                .map(|(name, warms_up)| (!warms_up).then_some(name.as_str()))
                .collect();
            let indices = drawn.indices(&names);
            indices.map_err(|says| Failure::input(format!("{}: {says}", planned.name)))?
        }
        _ => Vec::new(),
    };
    // The label of the scenario is for its own axis.
    let is_own_axis = args.x.is_none() || args.x == spec.x;
    Ok(PlotOptions {
        x: args.x.clone().or_else(|| spec.x.clone()),
        x_label: spec.x_label.clone().filter(|_| is_own_axis),
        y,
        by_launch,
        launches: launches.names.clone(),
        log_x: args.log_x || spec.log_x,
        log_y: args.log_y || spec.log_y,
    })
}

/// Checks that every point has a result, and that the assertions hold. Returns a line about them.
fn verdict(planned: &Planned, table: &Table, left: usize) -> Result<String, Failure> {
    let of_all = count(table.rows.len() as u64, "point");
    // Assertions over a curve need all its points.
    if left > 0 {
        let is = if left == 1 { "is" } else { "are" };
        let text = format!("{left} of {of_all} {is} not computed; the same command goes on with them");
        let code = if progress::is_stopped() { INTERRUPTED } else { WRONG };
        return Err(Failure { code, text });
    }
    let number = |is_it: fn(&Status) -> bool| table.rows.iter().filter(|row| is_it(&row.status)).count();
    let failed = number(|status| matches!(status, Status::Failed(_)));
    let wrong = number(|status| matches!(status, Status::Wrong(_)));
    let mut failures = Vec::new();
    if failed > 0 {
        failures.push(format!(
            "{failed} of {of_all} failed; mend the cause, then run with --retry-failed"
        ));
    }
    if wrong > 0 {
        let has = if wrong == 1 { "has" } else { "have" };
        failures.push(format!("{wrong} of {of_all} {has} wrong results"));
    }
    for (n, assert) in planned.spec.asserts.iter().enumerate() {
        // The file is named relative to the scenario.
        let beside = |path: &String| Draft::find(&planned.name).and_then(|draft| draft.read_beside(path));
        let csv = assert.csv.as_ref().map(beside).transpose().map_err(Failure::input)?;
        let says = assert.failures(table, csv.as_deref());
        failures.extend(says.into_iter().map(|says| format!("sweep.assert[{n}]: {says}")));
    }
    if !failures.is_empty() {
        let text = format!("{}: {}", planned.name, failures.join("\n  "));
        return Err(Failure { code: WRONG, text });
    }
    Ok(match planned.spec.asserts.len() {
        0 => String::new(),
        n => format!("all held (assertions over the curves: {n})\n"),
    })
}
