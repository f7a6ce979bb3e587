//! The meaning and the unit of each preset key, from the doc comments of the configuration's types.
//!
//! ```text
//! sm.l1.size:  GpuConfig { sm: Sm } --> Sm { l1: L1 } --> L1 { /// Bytes of the unified array. ... size: u32 }
//! ```
//!
//! The comments are the only description of a key, so a reader of the source and a user of the command see the same text.

use std::collections::BTreeMap;

/// The source texts with the types of a configuration.
const TEXTS: [&str; 4] = [
    include_str!("../config.rs"),
    include_str!("memory.rs"),
    include_str!("pipe.rs"),
    include_str!("sm.rs"),
];

/// The description of a preset key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyDoc {
    /// Its meaning: the first sentence of its comment.
    pub text: String,
    /// Its unit, such as `core cycles` or `bytes`.
    pub unit: &'static str,
}

/// A field of a type: the type of its value, and its comment.
#[derive(Clone, Default)]
struct Field {
    of: String,
    comment: String,
}

/// The description of a key. `None` if no preset has it.
pub fn key_doc(key: &str) -> Option<KeyDoc> {
    let types = types();
    let mut of = "GpuConfig".to_owned();
    let mut path = Vec::new();
    for name in key.split('.') {
        let field = types.get(&of)?.get(name)?;
        path.push(field.comment.as_str());
        of.clone_from(&field.of);
    }
    // A key is a value, not a table.
    if types.contains_key(&of) {
        return None;
    }
    let (own, parents) = path.split_last()?;
    // These comments name a part of what the level above names: the number of a pipe, the scope of a fence.
    let needs_parent = key.starts_with("sm.fence.") || key.starts_with("sm.pipes.") && path.len() == 4;
    let text = match parents.last().filter(|_| needs_parent) {
        Some(parent) => format!("{} {}", first_sentence(parent), first_sentence(own)),
        None => first_sentence(own).to_owned(),
    };
    let unit = unit(key, own, &of);
    Some(KeyDoc { text, unit })
}

/// The fields of each type by name.
fn types() -> BTreeMap<String, BTreeMap<String, Field>> {
    let mut types = BTreeMap::<String, BTreeMap<String, Field>>::new();
    for text in TEXTS {
        let (mut inside, mut comment) = (None::<String>, String::new());
        for line in text.lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("/// ") {
                let gap = if comment.is_empty() { "" } else { " " };
                comment = format!("{comment}{gap}{words}");
                continue;
            }
            if line.starts_with("#[") {
                // An attribute stands between a comment and its field.
                continue;
            }
            let field = line.strip_prefix("pub ").and_then(|rest| rest.strip_suffix(','));
            if let Some(name) = line.strip_prefix("pub struct ") {
                inside = name.strip_suffix(" {").map(str::to_owned);
            } else if let (Some(of), Some((name, value))) = (&inside, field.and_then(|field| field.split_once(": "))) {
                let fields = types.entry(of.clone()).or_default();
                let comment = comment.clone();
                fields.insert(
                    name.to_owned(),
                    Field {
                        of: value.to_owned(),
                        comment,
                    },
                );
            } else if line == "}" {
                inside = None;
            }
            comment.clear();
        }
    }
    types
}

/// The first sentence of a comment.
fn first_sentence(comment: &str) -> &str {
    comment.find(". ").map_or(comment, |end| &comment[..=end])
}

/// The unit of a key, from its name and the words of its comment. `of` is the type of its value.
fn unit(key: &str, comment: &str, of: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| comment.contains(word));
    let begins = |words: &[&str]| words.iter().any(|word| comment.starts_with(word));
    match () {
        () if !matches!(of, "u32" | "u64" | "Vec<u32>") => "name",
        () if key.starts_with("clocks.") => "kHz",
        () if key.starts_with("hbm.timing.") => "command cycles",
        () if key.ends_with("bytes_per_cycle") || key.ends_with("bytes_per_command_cycle") => "bytes per cycle",
        () if key.ends_with("_centicycles") => "hundredths of an L2 cycle",
        () if begins(&["Maximum number of cycles"]) => "core cycles",
        () if begins(&["Seed", "Maximum number", "Number", "Depth", "Warps", "Bursts", "Ways"]) => "count",
        () if has(&["ommand cycles"]) => "command cycles",
        () if has(&["L2-clock cycles", "L2 clock"]) => "L2 cycles",
        () if has(&["cycles", "Cycles"]) || key.starts_with("sm.fence.") => "core cycles",
        () if has(&["bytes", "Bytes"]) => "bytes",
        () => "count",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn every_key_of_a_preset_has_a_sentence() {
        let tiny = preset::load("tiny", &[]).unwrap();
        let without = tiny.sources.iter().filter(|row| {
            let doc = key_doc(&row.key);
            doc.is_none_or(|doc| !doc.text.ends_with('.'))
        });
        let without: Vec<_> = without.map(|row| &row.key).collect();
        assert!(without.is_empty(), "{without:?}");
        // A name of the source says nothing to the user of a key.
        let with_names = tiny
            .sources
            .iter()
            .filter_map(|row| key_doc(&row.key))
            .filter(|doc| doc.text.contains("[`"));
        let with_names: Vec<_> = with_names.map(|doc| doc.text).collect();
        assert!(with_names.is_empty(), "{with_names:?}");
    }

    #[test]
    fn key_has_the_text_and_the_unit_of_its_comment() {
        for (key, text, unit) in [
            ("sm.l1.size", "Bytes of the unified array.", "bytes"),
            ("clocks.core_khz", "Front end and SMs, kHz.", "kHz"),
            ("hbm.timing.t_rp", "Precharge to activate.", "command cycles"),
            (
                "sm.pipes.fp64.latency",
                "64-bit floating point. Issue to dependent issue of the same class, cycles.",
                "core cycles",
            ),
            (
                "l2.replacement",
                "Policy that chooses the victim in a full set.",
                "name",
            ),
            (
                "limits.shared_carveouts",
                "Sizes that shared memory can take of the unified array, bytes, ascending.",
                "bytes",
            ),
            (
                "xbar.latency",
                "Port to port, one way, on an idle network, L2-clock cycles.",
                "L2 cycles",
            ),
            (
                "l2.mshr_entries",
                "Maximum number of sectors of a slice in flight to memory.",
                "count",
            ),
            (
                "sm.l1.data_bytes_per_cycle",
                "Bytes that a hit delivers per cycle.",
                "bytes per cycle",
            ),
        ] {
            let text = text.to_owned();
            assert_eq!(key_doc(key), Some(KeyDoc { text, unit }), "{key}");
        }
        assert_eq!(key_doc("sm.l1"), None, "a table is no key");
        assert_eq!(key_doc("sm.l1.bytes"), None);
    }
}
