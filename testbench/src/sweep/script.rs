//! Job scripts, for an engine that spans several hosts. It runs each missing point by `warpwave sweep run-point KEY`.
//!
//! A script contains all keys. The points share the store, so it must be on a file system that all hosts see.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::Key;

/// A program that runs many jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// A Slurm job array.
    Slurm,
    /// GNU parallel.
    Parallel,
    /// A HyperQueue task array.
    Hyperqueue,
}

/// Limits of one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Wall time.
    pub time: Option<Duration>,
    /// Address space in bytes.
    pub memory: Option<u64>,
}

/// The options of `run-point`. `retries` computes failed points a second time.
pub fn options(limits: Limits, retries: bool) -> Vec<String> {
    let time = limits
        .time
        .map(|time| format!("--point-time-limit={}", time.as_secs_f64()));
    let memory = limits.memory.map(|bytes| format!("--point-memory={bytes}"));
    let retries = retries.then(|| "--retry-failed".to_owned());
    time.into_iter().chain(memory).chain(retries).collect()
}

/// How a job script calls `run-point`.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The path of `warpwave`.
    pub program: &'a Path,
    /// The folder of the store.
    pub store: &'a Path,
    /// Limits of each point.
    pub limits: Limits,
    /// True to compute failed points a second time.
    pub retries: bool,
    /// Most tasks of an array. A task takes several points if there are more.
    pub tasks: usize,
}

impl Call<'_> {
    /// The command without the key.
    fn command(&self) -> String {
        let program = quoted(&self.program.display().to_string());
        let store = quoted(&self.store.display().to_string());
        let options = options(self.limits, self.retries);
        let options: String = options.iter().map(|option| format!(" {option}")).collect();
        format!("{program} sweep run-point --store {store}{options}")
    }
}

/// The job script for these points, each with its settings as text.
pub fn script(engine: Engine, scenario: &str, points: &[(Key, String)], call: Call<'_>) -> String {
    let (command, tasks) = (call.command(), points.len().clamp(1, call.tasks.max(1)));
    let array = |run: &str, head: &str, task: &str| {
        let mut out = format!(
            "#!/bin/bash\n{head}# {} missing points of {scenario}. Run: {run}\nkeys=(\n",
            points.len()
        );
        for (key, point) in points {
            let _ = writeln!(out, "    {key} # {point}");
        }
        // Task N takes the points N, N + tasks, N + 2 tasks and so on.
        let each = format!("for ((n = {task}; n < ${{#keys[@]}}; n += {tasks})); do");
        let _ = write!(out, ")\n{each}\n    {command} \"${{keys[n]}}\"\ndone\n");
        out
    };
    match engine {
        Engine::Parallel => parallel(scenario, points, &command),
        Engine::Slurm => array(
            "sbatch FILE",
            &slurm_head(call.limits, tasks, points.len()),
            "SLURM_ARRAY_TASK_ID",
        ),
        Engine::Hyperqueue => {
            let head = format!(
                "#HQ --name=warpwave\n#HQ --array=0-{}\n#HQ --cpus=1\n#HQ --stdout=none\n",
                tasks - 1
            );
            array("hq submit FILE.sh", &head, "HQ_TASK_ID")
        }
    }
}

/// The options of a Slurm array.
fn slurm_head(limits: Limits, tasks: usize, points: usize) -> String {
    let last = tasks - 1;
    let mut head = format!("#SBATCH --job-name=warpwave\n#SBATCH --array=0-{last}\n#SBATCH --cpus-per-task=1\n");
    head.push_str("#SBATCH --output=/dev/null\n");
    // Slurm counts minutes and megabytes. Its limits end a point without a record, so they are at least those of
    // `run-point`.
    if let Some(time) = limits.time {
        // A task takes its points one after the other.
        let minutes = (time.as_secs() * points.div_ceil(tasks) as u64).div_ceil(60) + 1;
        let _ = writeln!(head, "#SBATCH --time={minutes}");
    }
    if let Some(bytes) = limits.memory {
        let _ = writeln!(head, "#SBATCH --mem={}M", bytes.div_ceil(1 << 20));
    }
    head
}

fn parallel(scenario: &str, keys: &[(Key, String)], command: &str) -> String {
    let mut out = format!(
        "#!/bin/sh\n# {} missing points of {scenario}. Run: sh FILE (JOBS=4 sh FILE for 4 at a time)\n\
         exec parallel --will-cite --jobs \"${{JOBS:-100%}}\" --colsep ' ' {} <<'POINTS'\n",
        keys.len(),
        // Quoted twice: `parallel` passes the command to a shell of its own. `{1}` is the key.
        quoted(&format!("{command} {{1}}"))
    );
    for (key, point) in keys {
        let _ = writeln!(out, "{key} {point}");
    }
    out.push_str("POINTS\n");
    out
}

/// A word in single quotes, for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(n: usize) -> Vec<(Key, String)> {
        let key = |n: usize| (Key::parse(&format!("{n:032x}")).unwrap(), format!("block={n}"));
        (0..n).map(key).collect()
    }

    fn of(engine: Engine, n: usize) -> String {
        let limits = Limits {
            time: Some(Duration::from_secs(90)),
            memory: Some(3 << 20),
        };
        let call = Call {
            program: Path::new("/opt/war wave"),
            store: Path::new("/data/it's"),
            limits,
            retries: n == 2,
            tasks: 1000,
        };
        script(engine, "saxpy", &keys(n), call)
    }

    #[test]
    fn slurm_array_has_one_task_a_point_and_the_limits() {
        let text = of(Engine::Slurm, 3);
        for line in [
            "#SBATCH --array=0-2",
            "#SBATCH --time=3",
            "#SBATCH --mem=3M",
            "n += 3))",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let command =
            r"'/opt/war wave' sweep run-point --store '/data/it'\''s' --point-time-limit=90 --point-memory=3145728";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn more_points_than_tasks_share_them() {
        let text = of(Engine::Hyperqueue, 2500);
        assert!(text.contains("#HQ --array=0-999") && text.contains("n = HQ_TASK_ID") && text.contains("n += 1000"));
    }

    #[test]
    fn parallel_reads_one_key_a_line() {
        let text = of(Engine::Parallel, 2);
        assert!(
            text.ends_with(&format!("{} block=0\n{} block=1\nPOINTS\n", keys(2)[0].0, keys(2)[1].0)),
            "{text}"
        );
        assert!(text.contains("--point-memory=3145728 --retry-failed {1}"), "{text}");
        assert!(!of(Engine::Parallel, 1).contains("--retry-failed"));
    }
}
