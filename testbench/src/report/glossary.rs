//! A line of explanation for each unusual word of a report.

use super::html::stall_text;
use super::stalls::STATES;
use super::text::HEADLINES;

/// Phases of a launch.
const PHASES: [(&str, &str); 4] = [
    (
        "launch",
        "phase: from the launch until the first block is sent to an SM",
    ),
    (
        "ramp",
        "phase: blocks are sent until no slot is free or no block is left",
    ),
    ("steady", "phase: each block that ends makes room for the next one"),
    ("tail", "phase: blocks end and none is left to follow"),
];

/// Words of the diagnosis.
const TERMS: [(&str, &str); 6] = [
    ("occupancy", "resident warps in per cent of the warp slots of an SM"),
    ("waves", "blocks of the grid per blocks that the SMs hold at once"),
    ("sectors", "units of 32 bytes, which caches move"),
    (
        "passes",
        "cycles of the shared-memory banks, or of the L1's, for one access",
    ),
    ("MSHRs", "entries of the L1 that each track a sector on its way"),
    ("LSU", "the unit of an SM that executes all memory accesses"),
];

/// Words of a report that no other table has.
const WORDS: [(&str, &str); 18] = [
    (
        "cycles",
        "cycles of the core clock, from the launch until the host knows of its end; assertions, expressions and sweeps use this name",
    ),
    ("sector", "a unit of 32 bytes, which caches move"),
    ("lane", "one of the 32 threads of a warp"),
    ("warp", "32 threads of a block that execute instructions together"),
    (
        "block",
        "threads that share an SM, its shared memory and barriers; also called CTA",
    ),
    ("grid", "all blocks of a launch"),
    ("wave", "the blocks that all SMs hold at once"),
    (
        "registers",
        "registers of 32 bits of each thread; they limit how many warps an SM holds, see `warpwave occupancy`",
    ),
    (
        "IPC",
        "instructions per cycle; the summary has those of an SM while it has warps: sm__inst_executed.avg.per_cycle_active",
    ),
    (
        "issue slots",
        "one for each sub-core and cycle; a warp scheduler issues at most one instruction in it",
    ),
    (
        "speed of light",
        "use of the SMs and of the memory, in per cent of the most that the hardware can do",
    ),
    (
        "roofline",
        "the most operations per second for each ratio of operations to bytes of device memory",
    ),
    (
        "warp-cycles",
        "cycles summed over warps: 2 warps for 3 cycles are 6 warp-cycles",
    ),
    (
        "MSHR",
        "miss status holding register: an entry of the L1 that tracks a sector on its way",
    ),
    (
        "p50",
        "the median: half of the requests took at most this number of cycles",
    ),
    ("p90", "90 % of the requests took at most this number of cycles"),
    ("p99", "99 % of the requests took at most this number of cycles"),
    ("p99.9", "99.9 % of the requests took at most this number of cycles"),
];

/// Paths of latencies.
const PATHS: [(&str, &str); 10] = [
    (
        "cta",
        "latency: a thread block (cooperative thread array), from its arrival at an SM to its end",
    ),
    (
        "dispatch",
        "latency: a block, from the launch until it is sent to an SM",
    ),
    ("hbm", "latency: a load whose data came from device memory"),
    ("l1_hit", "latency: a load whose data were in the L1"),
    ("l2_hit", "latency: a load whose data were in the L2"),
    ("atomic", "latency: an atomic operation that returns a value"),
    ("store", "latency: a store, until the L2 acknowledges it"),
    ("shared", "latency: an access to shared memory"),
    ("cluster", "latency: an access to the shared memory of another block"),
    ("barrier", "latency: a barrier, from its last arrival to its release"),
];

/// The meanings of a word of a report, in capitals or not: a phase, a term, a path of latencies. Empty for any other word.
pub fn meanings(word: &str) -> Vec<String> {
    let found = all().filter(|(known, _)| known.eq_ignore_ascii_case(word));
    found.map(|(_, meaning)| meaning.to_owned()).collect()
}

/// The words that [`meanings`] knows.
pub fn words() -> impl Iterator<Item = &'static str> {
    all().map(|(word, _)| word)
}

/// The metric of a label of the summary, in capitals or not. `None` if no label is this word.
pub fn metric_of(label: &str) -> Option<&'static str> {
    let found = HEADLINES.iter().find(|(known, _)| known.eq_ignore_ascii_case(label));
    found.map(|(_, metric)| *metric)
}

/// The labels that [`metric_of`] knows.
pub fn labels() -> impl Iterator<Item = &'static str> {
    HEADLINES.iter().map(|(label, _)| *label)
}

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    [&PHASES[..], &TERMS, &WORDS, &PATHS].into_iter().flatten().copied()
}

/// The phases with their meanings, in order.
pub fn phases() -> impl Iterator<Item = (&'static str, String)> {
    listed(&PHASES)
}

/// The terms that a text contains as whole words, with their meanings.
pub fn terms_in(text: &str) -> impl Iterator<Item = (&'static str, String)> {
    let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric()).collect();
    listed(&TERMS).filter(move |(term, _)| words.contains(term))
}

/// The meaning of a warp state. `None` if there is no such state.
pub fn state(name: &str) -> Option<(&'static str, String)> {
    let (state, _) = STATES.iter().find(|(state, _)| *state == name)?;
    Some((state, format!("warp state: the warp {}", stall_text::of(name).means)))
}

/// The meaning of a path of latencies. `None` if it has no entry.
pub fn path(name: &str) -> Option<(&'static str, String)> {
    listed(&PATHS).find(|(path, _)| *path == name)
}

fn listed(words: &'static [(&str, &str)]) -> impl Iterator<Item = (&'static str, String)> {
    words.iter().map(|(word, meaning)| (*word, (*meaning).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warp_state_has_a_meaning() {
        for (name, _) in STATES {
            assert!(state(name).is_some(), "{name}");
        }
        let drain = "warp state: the warp had exited and waited for its stores";
        assert_eq!(state("drain"), Some(("drain", drain.to_owned())));
        assert_eq!(state("saxpy"), None);
    }

    #[test]
    fn word_that_is_a_state_and_a_path_has_two_meanings() {
        let (state, path) = (state("barrier").unwrap().1, path("barrier").unwrap().1);
        assert!(state.contains("other warps of its block") && path.contains("release"));
        assert!(super::path("cta").unwrap().1.contains("thread block"));
        assert_eq!(super::path("saxpy"), None);
    }

    #[test]
    fn words_of_a_report_are_found_in_capitals_too() {
        assert!(meanings("LSU")[0].contains("memory accesses") && meanings("lsu") == meanings("LSU"));
        assert!(meanings("l1_hit")[0].starts_with("latency: ") && meanings("tail")[0].starts_with("phase: "));
        assert_eq!(meanings("saxpy"), [""; 0]);
        assert!(words().all(|word| meanings(word).len() == 1));
    }

    #[test]
    fn label_of_the_summary_leads_to_its_metric() {
        assert_eq!(metric_of("l1 hit rate"), Some("l1tex__t_sector_hit_rate.pct"));
        assert_eq!(metric_of("L1 hit"), None);
        // A word with two meanings would show one of them.
        assert!(labels().all(|label| meanings(label).is_empty()));
    }

    #[test]
    fn terms_are_found_as_whole_words() {
        let terms = |text| terms_in(text).map(|(term, _)| term).collect::<Vec<_>>();
        assert_eq!(
            terms("grid too small: 0.04 waves; 32 sectors a request"),
            ["waves", "sectors"]
        );
        assert_eq!(terms("its 32 MSHRs track a sector each"), ["MSHRs"]);
        assert!(terms("microwaves").is_empty());
    }
}
