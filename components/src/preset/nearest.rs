//! Suggestions for an unknown name: the known names nearest to it.

use strsim::levenshtein;

/// Maximum number of bytes of a name that is compared. A longer one resembles no known name, and the comparison takes time in proportion.
const MAX_GIVEN: usize = 100;

/// The known names that `given` may misspell, at most three, the nearest first.
///
/// A dotted key is compared whole and by its last part, so `queue_depth` finds `sm.lsu.queue_depth`. Keys that end in `given` come first.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    if given.len() > MAX_GIVEN {
        return Vec::new();
    }
    // Two typing errors, and one more for each four bytes.
    let limit = 2 + given.len() / 4;
    let rank = |name: &'a str| {
        let whole = levenshtein(given, name);
        // 1: of two equal distances, that of the whole key counts more.
        let part = 1 + levenshtein(last(given), last(name));
        let score = if name.ends_with(given) { 0 } else { whole.min(part) };
        (score, whole, name)
    };
    let mut ranked: Vec<_> = known.map(rank).filter(|(score, ..)| *score <= limit).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(3).map(|(.., name)| name.to_owned()).collect()
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_part_of_a_key_finds_the_keys() {
        let known = ["l2.queue_depth", "sm.lsu.queue_depth", "sm.subcores"];
        assert_eq!(
            nearest("queue_depht", known.into_iter()),
            ["l2.queue_depth", "sm.lsu.queue_depth"]
        );
    }

    #[test]
    fn name_near_to_none_finds_nothing() {
        assert!(nearest("xyz", ["sm.subcores"].into_iter()).is_empty());
        let long = "x".repeat(MAX_GIVEN);
        assert_eq!(nearest(&long, [&long[1..]].into_iter()), [&long[1..]]);
        assert!(nearest(&format!("{long}x"), [&long[..]].into_iter()).is_empty());
    }
}
