//! Inputs: numbers that are the same on every machine, drawn by SplitMix64 (Steele, Lea and Flood, 2014).

/// `n` words of 64 random bits.
pub fn words(seed: u64, n: usize) -> Vec<u64> {
    let word = |i: u64| {
        let mut z = seed
            .wrapping_mul(0xD134_2543_DE82_EF95)
            .wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (0..n as u64).map(word).collect()
}

/// `n` words of 32 random bits.
pub fn bits(seed: u64, n: usize) -> Vec<u32> {
    words(seed, n).into_iter().map(|word| (word >> 32) as u32).collect()
}

/// `n` bytes.
pub fn bytes(seed: u64, n: usize) -> Vec<u8> {
    words(seed, n).into_iter().map(|word| (word >> 56) as u8).collect()
}

/// `n` integers from `low` up to and with `high`.
pub fn ints(seed: u64, n: usize, low: i32, high: i32) -> Vec<i32> {
    let span = (i64::from(high) - i64::from(low) + 1) as u64;
    let int = |word: u64| (i64::from(low) + (word % span) as i64) as i32;
    words(seed, n).into_iter().map(int).collect()
}

/// `n` whole numbers from `low` up to and with `high`: their sums are exact in any order while they stay below 2^24.
pub fn whole(seed: u64, n: usize, low: i32, high: i32) -> Vec<f32> {
    ints(seed, n, low, high).into_iter().map(|v| v as f32).collect()
}

/// `n` numbers in [`low`, `high`).
pub fn floats(seed: u64, n: usize, low: f32, high: f32) -> Vec<f32> {
    doubles(seed, n, low.into(), high.into())
        .into_iter()
        .map(|v| v as f32)
        .collect()
}

/// `n` numbers in [`low`, `high`).
pub fn doubles(seed: u64, n: usize, low: f64, high: f64) -> Vec<f64> {
    let double = |word: u64| low + (high - low) * ((word >> 11) as f64 / (1u64 << 53) as f64);
    words(seed, n).into_iter().map(double).collect()
}
