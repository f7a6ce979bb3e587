//! Lists in the sentences about a launch that hangs.

use warpwave_hw::bits::ones;

/// Items in a sentence: "a", "a and b", "a, b and c".
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Numbers in a sentence, with ranges: "0", "0 and 2", "0 to 3 and 7".
pub(super) fn numbers(mask: u64) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for n in ones(mask) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => ranges.push((n, n)),
        }
    }
    let items: Vec<String> = ranges
        .iter()
        .flat_map(|&(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first} to {last}")],
        })
        .collect();
    list(&items)
}

/// Numbers behind their noun: "warp 1", "warps 0 to 3".
pub(super) fn named(noun: &str, mask: u64) -> String {
    let ending = if mask.count_ones() == 1 { "" } else { "s" };
    format!("{noun}{ending} {}", numbers(mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_with_ranges() {
        for (mask, text) in [
            (0b1, "warp 0"),
            (0b11, "warps 0 and 1"),
            (0b1011_1101, "warps 0, 2 to 5 and 7"),
            (u64::MAX, "warps 0 to 63"),
        ] {
            assert_eq!(named("warp", mask), text);
        }
    }
}
