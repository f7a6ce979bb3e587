//! Replaces the replacement policy of the L1 by most recently used: the line used last is the victim.
//!
//! A policy implements [`Replacement`]. The cache calls `touch` for a hit and `insert` for a fill. For a full set it calls `victim`;
//! `may_go` is false for a way with a line that must stay. The factory creates a policy for each L1, and again when a launch changes the
//! L1's share of the unified array.
//!
//! The kernel walks around 160 lines. Shared memory takes 48 KiB of the 64 KiB, so the L1 has 128 lines: 16 sets of 8 ways. 10 lines map to
//! each set. Least recently used drops each line just before its next use, so nothing hits. Most recently used keeps most of the loop.
//!
//! ```sh
//! cargo run --release --example own_replacement_policy
//! ```

use warpwave::components::cache::replacement::Replacement;
use warpwave::components::preset;
use warpwave::gpu::{Factory, Gpu, GpuError, Shape};

/// For each set, the way used last.
struct MostRecentlyUsed(Vec<usize>);

impl Replacement for MostRecentlyUsed {
    fn touch(&mut self, set: usize, way: usize) {
        self.0[set] = way;
    }

    fn insert(&mut self, set: usize, way: usize) {
        self.0[set] = way;
    }

    fn victim(&self, set: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
        let last = Some(self.0[set]).filter(|&way| may_go(way));
        last.or_else(|| (0..256).find(|&way| may_go(way)))
    }
}

const LINES: u32 = 160;
const ROUNDS: u32 = 4;

/// Returns the cycles and the sectors that hit.
fn run(factory: &Factory) -> Result<(u64, u64), GpuError> {
    let sets = [("sm.l1.replacement".to_owned(), "lru".to_owned())];
    let mut gpu = Gpu::with_factory(preset::load("tiny", &sets)?.config, factory)?;
    let module = gpu.load(include_str!("walk.ptx"))?;
    let numbers: Vec<u32> = (0..LINES * 32).collect();
    let data = gpu.buffer(&numbers)?;
    let sums = gpu.buffer(&[0u32; 32])?;
    let shape = Shape::from((1, 32)).dynamic_shared_bytes(48 << 10);
    let report = gpu.launch(&module, "walk", shape, &[&data, &sums, &LINES, &ROUNDS])?;

    let sum = |lane| numbers.iter().skip(lane).step_by(32).sum::<u32>() * ROUNDS;
    assert_eq!(gpu.read(&sums), (0..32).map(sum).collect::<Vec<u32>>());
    let hits = report.counter("l1", "load_sectors_hit").unwrap_or(0);
    Ok((report.cycles(), hits))
}

/// Compares the policies.
pub fn main() -> Result<(), GpuError> {
    let sets_of_one = |sets: usize, _ways: usize| MostRecentlyUsed(vec![0; sets]);
    let (lru_cycles, lru_hits) = run(&Factory::new())?;
    let (own_cycles, own_hits) = run(&Factory::new().l1_replacement(sets_of_one))?;
    println!("{:<20} {:>8} {:>14}", "policy", "cycles", "sectors hit");
    println!("{:<20} {lru_cycles:>8} {lru_hits:>14}", "lru");
    println!("{:<20} {own_cycles:>8} {own_hits:>14}", "most recently used");

    // Every line has 4 sectors. The first round always misses.
    let after_first_round = u64::from((ROUNDS - 1) * LINES * 4);
    assert_eq!(lru_hits, 0);
    assert!(2 * own_hits > after_first_round && own_hits < after_first_round);
    assert!(own_cycles < lru_cycles);
    Ok(())
}
