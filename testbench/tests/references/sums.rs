//! Sums, prefix sums and counts.

/// Sums of consecutive chunks, taken in f64.
pub fn chunk_sums(input: &[f32], chunk: usize) -> Vec<f32> {
    let sum = |chunk: &[f32]| chunk.iter().copied().map(f64::from).sum::<f64>() as f32;
    input.chunks(chunk).map(sum).collect()
}

/// Inclusive prefix sums, restarted every `block` elements.
pub fn prefix_sums(input: &[i32], block: usize) -> Vec<i32> {
    let scan = |sum: &mut i32, v: &i32| {
        *sum += v;
        Some(*sum)
    };
    input
        .chunks(block)
        .flat_map(|chunk| chunk.iter().scan(0, scan))
        .collect()
}

/// Sums of consecutive blocks.
pub fn block_sums(input: &[i32], block: usize) -> Vec<i32> {
    input.chunks(block).map(|chunk| chunk.iter().sum()).collect()
}

/// The total that each of `blocks` blocks has after `rounds` rounds. In a round, block b adds b + 1 and the total of the round before.
pub fn rounds(blocks: u32, rounds: i32) -> Vec<u32> {
    let total = (0..rounds).fold(0, |total, _| (1..=blocks).map(|n| n + total).sum());
    vec![total; blocks as usize]
}

/// How often each byte occurs.
pub fn histogram(bytes: impl Iterator<Item = u8>) -> Vec<u32> {
    let mut bins = vec![0; 256];
    for byte in bytes {
        bins[byte as usize] += 1;
    }
    bins
}

/// The sum of the products of two arrays' elements.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
