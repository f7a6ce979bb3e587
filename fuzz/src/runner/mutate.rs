//! Mutations of inputs.

use fastrand::Rng;

/// Values that often lie at a limit.
const LIMITS: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, 0x20];

/// The next input: a mutation of one of `corpus`, or random bytes.
pub(super) fn next(corpus: &[Vec<u8>], random: &mut Rng, most: usize) -> Vec<u8> {
    // One input in 16 is noise. Short ones are as likely as long ones.
    if corpus.is_empty() || random.u8(..) < 16 {
        let most = 1 << random.u32(0..=10);
        let n = random.usize(0..=most);
        return std::iter::repeat_with(|| random.u8(..)).take(n).collect();
    }
    let mut input = corpus[random.usize(..corpus.len())].clone();
    // 1 to 16 mutations: small steps, and leaps.
    for _ in 0..1 << random.u32(0..=4) {
        let other = &corpus[random.usize(..corpus.len())];
        mutate(&mut input, other, random);
    }
    input.truncate(most);
    input
}

fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    let at = random.usize(0..=input.len());
    let n = random.usize(1..=8);
    match random.u8(0..8) {
        0 => input.splice(at..at, (0..n).map(|_| random.u8(..))).for_each(drop),
        1 => drop(input.drain(at..(at + n).min(input.len()))),
        2 if at < input.len() => input[at] ^= 1 << random.u8(0..8),
        3 if at < input.len() => input[at] = random.u8(..),
        4 if at < input.len() => input[at] = LIMITS[random.usize(..LIMITS.len())],
        5 if at < input.len() => input[at] = input[at].wrapping_add(random.u8(0..9)).wrapping_sub(4),
        6 if !other.is_empty() => {
            let from = random.usize(..other.len());
            let part = &other[from..(from + 4 * n).min(other.len())];
            input.splice(at..at, part.iter().copied()).for_each(drop);
        }
        _ if !input.is_empty() => {
            let from = random.usize(..input.len());
            let part = input[from..(from + n).min(input.len())].to_vec();
            let end = (at + part.len()).min(input.len());
            input.splice(at..end, part).for_each(drop);
        }
        _ => {}
    }
}

/// A smaller input: a part is missing, or bytes are zero.
pub(super) fn smaller(input: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut smaller = input.to_vec();
    if input.is_empty() {
        return smaller;
    }
    let at = random.usize(..input.len());
    // Mostly a small part, so that shrinking does not stop early.
    let n = random.usize(1..=(input.len() / 2).max(1)) >> random.u32(0..=6);
    let end = (at + n.max(1)).min(input.len());
    match random.u8(0..4) {
        0 => smaller.truncate(at),
        1 | 2 => drop(smaller.drain(at..end)),
        _ => smaller[at..end].fill(0),
    }
    smaller
}
