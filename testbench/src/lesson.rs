//! The lessons: claims of courses, vendor guides and lectures about GPUs, each shown by scenarios.
//!
//! A lesson is a folder below `scenarios/lessons`, or below `scenarios/lessons-nightly` if it takes minutes. The scenario with the name of
//! the folder has the claim, the text, and a `[sweep]` if a curve teaches it. Others in the folder belong to the same lesson.

use std::fmt::Write;

use crate::scenario::builtin::{self, LESSONS};
use crate::scenario::{Draft, ScenarioError, nearest};

/// The names of all lessons, in the order of a course.
pub const NAMES: [&str; 38] = [
    "hierarchy",
    "gigathread",
    "launch-too-big",
    "warps",
    "divergence",
    "independent-threads",
    "coalescing",
    "soa-aos",
    "wide-access",
    "bank-conflicts",
    "transpose",
    "latency-ladder",
    "latency-hiding",
    "scheduler-timeline",
    "scheduler-toy",
    "scheduler-policies",
    "occupancy",
    "achieved-occupancy",
    "occupancy-is-not-speed",
    "constant-memory",
    "texture",
    "peak-flops",
    "alu-latency",
    "sfu",
    "tensor-core",
    "barrier",
    "cluster",
    "matrix-add-2d",
    "batch-sweep",
    "block-size",
    "register-pressure",
    "stream-bandwidth",
    "roofline",
    "speed-of-light",
    "occupancy-needed",
    "coherent-dispatch",
    "simt-not-simd",
    "sparse-tensor",
];

/// Lessons, or parts of them, that the model does not show yet, each with the reason.
pub const NOT_SHOWN: &[(&str, &str)] = &[
    (
        "latency-ladder",
        "The L1 of an A100 within 5 %: 33 cycles, and 36.3 on silicon. That of a V100 is 7 % from one of two sources. Both knees are sharper than on silicon.",
    ),
    (
        "latency-hiding",
        "Memory bandwidth of blocks of 512 against occupancy within 10 %: it is 15 % above silicon. The other six sizes are within 10 %.",
    ),
    (
        "stream-bandwidth",
        "Copies within 5 %: 806 to 854 GB/s by length, and 802 on silicon. 7 % is asserted. Reads and writes are within 5 %.",
    ),
];

/// A lesson.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lesson {
    /// Its place in [`NAMES`], from 1.
    pub number: usize,
    /// The name.
    pub name: &'static str,
    /// The claim: a sentence of at most 15 words.
    pub claim: String,
    /// What to see in it, and in which view.
    pub text: String,
    /// Commands that show more of it.
    pub look: Vec<String>,
    /// The scenarios, the one of this name first.
    pub scenarios: Vec<&'static str>,
    /// The GPUs that it runs on.
    pub gpus: Vec<String>,
    /// True if it has a sweep, and so a plot.
    pub has_sweep: bool,
    /// True if all of it takes minutes.
    pub is_nightly: bool,
}

/// Loads a lesson.
///
/// ```
/// let lesson = warpwave::lesson::find("warps").unwrap();
/// assert_eq!((lesson.number, lesson.look.len()), (4, 3));
/// ```
///
/// # Errors
/// If no lesson has the name, or if its scenario has a fault.
pub fn find(name: &str) -> Result<Lesson, LessonError> {
    let place = NAMES.iter().position(|known| *known == name);
    let place = place.ok_or_else(|| LessonError::Unknown {
        name: name.to_owned(),
        nearest: nearest(name, NAMES),
    })?;
    let name = NAMES[place];
    if !builtin::exists(name) {
        let reason = NOT_SHOWN.iter().find(|(missing, _)| *missing == name);
        return Err(LessonError::NotShown {
            name,
            reason: reason.map_or("it has no scenario yet", |(_, reason)| reason),
        });
    }
    let draft = Draft::find(name)?;
    let words = draft.words();
    let mut scenarios = builtin::in_folder(name);
    // A stable sort: the scenario of this name moves to the front, and the others stay sorted by name.
    scenarios.sort_by_key(|scenario| *scenario != name);
    let mut gpus = Vec::new();
    for scenario in &scenarios {
        // The other runs of assertions count too.
        gpus.extend(Draft::find(scenario)?.gpus());
    }
    gpus.sort();
    gpus.dedup();
    Ok(Lesson {
        number: place + 1,
        name,
        claim: words.claim.to_owned(),
        text: words.text.trim().to_owned(),
        look: words.look.to_vec(),
        gpus,
        has_sweep: draft.sweep().is_some(),
        is_nightly: builtin::in_folder(LESSONS[1]).contains(&name),
        scenarios,
    })
}

/// Why a lesson cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum LessonError {
    /// No lesson has the name.
    #[error("no lesson is named `{name}`{}; `warpwave lesson` lists them", hint(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// The model does not show it yet.
    #[error("the lesson `{name}` is not shown yet: {reason}")]
    NotShown {
        /// The name.
        name: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// Its scenario has a fault.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// The page of all lessons, in Markdown. The pictures are in the folder `lessons` beside it.
///
/// # Errors
/// If a scenario has a fault.
pub fn page() -> Result<String, LessonError> {
    let mut out = String::from(HEAD);
    for name in NAMES {
        match find(name) {
            Ok(lesson) => out.push_str(&row(&lesson)),
            Err(LessonError::NotShown { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if !NOT_SHOWN.is_empty() {
        out.push_str("\n## Not shown yet\n\n| Lesson | Why |\n|---|---|\n");
        for (name, reason) in NOT_SHOWN {
            let _ = writeln!(out, "| `{name}` | {reason} |");
        }
    }
    Ok(out)
}

/// The row of a lesson.
fn row(lesson: &Lesson) -> String {
    let Lesson {
        number, name, claim, ..
    } = lesson;
    let folder = LESSONS[usize::from(lesson.is_nightly)];
    let gpus = match lesson.gpus.is_empty() {
        true => "any".to_owned(),
        false => lesson.gpus.join(", "),
    };
    let picture = match lesson.has_sweep {
        true => format!("![{name}](lessons/{name}.svg)"),
        false => String::new(),
    };
    format!("| {number} | [{name}](../scenarios/{folder}/{name}/{name}.toml) | {claim} | {gpus} | {picture} |\n")
}

/// The page before its table.
const HEAD: &str = "\
# Lessons: what the machine shows

This page is made by `cargo run --release -- lesson --write testbench/docs`, so it may be longer than the other pages.

Each lesson is a claim of a course, a vendor guide or a lecture, as a scenario that proves it on the model. `warpwave lesson NAME` prints
its text, runs it, draws its curve, and names commands that show more.

```sh
cargo run --release -- lesson                      # the list
cargo run --release -- lesson warps                # one lesson
cargo run --release -- run warps                   # its scenarios alone
```

`warpwave test lessons --sweeps` checks all that take seconds, with their curves, and `warpwave test lessons-nightly --sweeps` the others.
A figure comes from the course, a data sheet or a measurement, never from the model. Where a course is loose or wrong, the scenario asserts
what is right, and its text says so.

| # | Lesson | Claim | GPUs | Curve |
|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum number of words of a claim.
    const CLAIM: usize = 15;

    fn shown() -> Vec<Lesson> {
        let found = NAMES.into_iter().map(find);
        found
            .filter(|lesson| !matches!(lesson, Err(LessonError::NotShown { .. })))
            .map(|lesson| lesson.unwrap_or_else(|error| panic!("{error}")))
            .collect()
    }

    #[test]
    fn every_lesson_is_shown_or_has_a_reason() {
        for name in NAMES {
            let has_reason = NOT_SHOWN.iter().any(|(missing, _)| *missing == name);
            assert!(builtin::exists(name) || has_reason, "{name}");
        }
        for (name, _) in NOT_SHOWN {
            assert!(NAMES.contains(name), "{name}");
        }
    }

    #[test]
    fn every_lesson_has_a_short_claim_a_text_and_three_commands() {
        for lesson in shown() {
            let words = lesson.claim.split_whitespace().count();
            assert!((1..=CLAIM).contains(&words), "{}: {words} words", lesson.name);
            assert!(lesson.claim.ends_with('.'), "{}", lesson.name);
            let sentences = lesson.text.matches(['.', '?']).count();
            assert!(sentences >= 4, "{}: {sentences} sentences", lesson.name);
            assert_eq!(lesson.look.len(), 3, "{}", lesson.name);
            assert!(lesson.look.iter().all(|command| command.starts_with("warpwave ")));
        }
    }

    #[test]
    fn every_scenario_of_the_lessons_belongs_to_one() {
        let lessons: Vec<_> = shown().into_iter().flat_map(|lesson| lesson.scenarios).collect();
        for name in LESSONS.into_iter().flat_map(builtin::in_folder) {
            assert!(lessons.contains(&name), "{name}");
        }
    }

    #[test]
    fn wrong_name_is_refused_with_the_nearest() {
        let says = find("warp").unwrap_err().to_string();
        assert!(says.contains("did you mean `warps`?"), "{says}");
    }
}
