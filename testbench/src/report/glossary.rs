//! A line of explanation for each unusual word of a report.

use super::html::stall_text;
use super::stalls::STATES;

/// Words besides the warp states.
const WORDS: [(&str, &str); 14] = [
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
    ("waves", "blocks of the grid per blocks that the SMs hold at once"),
    (
        "cta",
        "a thread block (cooperative thread array), from its arrival at an SM to its end",
    ),
    ("dispatch", "a block, from the launch until it is sent to an SM"),
    ("hbm", "a load whose data came from device memory"),
    ("l1_hit", "a load whose data were in the L1"),
    ("l2_hit", "a load whose data were in the L2"),
    ("sector", "32 bytes, the unit that caches move"),
    ("occupancy", "resident warps in per cent of the warp slots of an SM"),
    ("atomic", "an atomic operation that returns a value"),
    ("cluster", "an access to the shared memory of another block"),
];

/// The meaning of a word. `None` if it has no entry.
pub fn meaning(word: &str) -> Option<String> {
    let listed = WORDS.iter().find(|(known, _)| *known == word);
    let listed = listed.map(|(_, meaning)| (*meaning).to_owned());
    let state = || STATES.iter().find(|(state, _)| *state == word);
    listed.or_else(|| state().map(|_| format!("warp state: the warp {}", stall_text::of(word).means)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warp_state_and_unusual_word_has_a_meaning() {
        for (state, _) in STATES {
            assert!(meaning(state).is_some(), "{state}");
        }
        assert_eq!(
            meaning("drain").as_deref(),
            Some("warp state: the warp had exited and waited for its stores")
        );
        assert!(meaning("cta").is_some_and(|text| text.contains("thread block")));
        assert_eq!(meaning("saxpy"), None);
    }
}
