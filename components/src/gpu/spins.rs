//! Finds warps that spin on a location in memory, or stay in a loop, when a launch reaches its limit of cycles or is cancelled.
//!
//! The host samples every warp [`SAMPLES`] times before the limit, every [`STRIDE`] cycles. A warp spins in this case: its loop branches on
//! a value that it loads, and [`SEEN`] samples in a row show the same access with the same address. The loop may count its turns, which a
//! standstill never does.
//!
//! A warp stays in a loop if all samples show it there and it does not spin. Such a loop may be endless, or only long.

use std::collections::BTreeMap;

use warpwave_hw::component::Component;
use warpwave_hw::time::Cycle;

use super::hang::{Poll, Polls, find_spin, lines_of_loop};
use super::standstill::{each_warp, subcores};

/// Samples before the limit.
const SAMPLES: u64 = 16;

/// Cycles between two samples: a prime, so that samples fall on all parts of a loop.
const STRIDE: u64 = 97;

/// Samples in a row with the same access. A loop over an array has another address in each turn.
const SEEN: u32 = 3;

/// The search for spinning warps before the end of a launch, or after its cancel.
pub(super) struct SpinSearch {
    next: Cycle,
    end: Cycle,
    /// The access of a warp, and the samples in a row that show it, by sub-core and slot.
    seen: BTreeMap<(usize, usize), (Poll, u32)>,
    /// Samples taken.
    samples: u32,
    /// Resident warps in the last sample.
    warps: usize,
    /// The loop of a warp, and the samples in a row that show it, by sub-core and slot.
    loops: BTreeMap<(usize, usize), (Loop, u32)>,
}

/// A warp in a loop. Another warp may have its slot later.
#[derive(PartialEq)]
struct Loop {
    block: [u32; 3],
    /// Index of the warp in its block.
    warp: u32,
    /// The first and last line.
    lines: [u32; 2],
}

impl SpinSearch {
    /// A search before cycle `end` in a launch from cycle `start` on. Without an end it finds nothing.
    pub(super) fn new(start: Cycle, end: Cycle) -> Self {
        let first = Cycle(end.0.saturating_sub(SAMPLES * STRIDE)).max(start + STRIDE);
        SpinSearch {
            next: if end == Cycle::NEVER || first >= end {
                Cycle::NEVER
            } else {
                first
            },
            end,
            seen: BTreeMap::new(),
            samples: 0,
            warps: 0,
            loops: BTreeMap::new(),
        }
    }

    /// Searches from cycle `now` of a launch that would run to `end`. Returns the end of the search.
    pub(super) fn search_on(&mut self, now: Cycle, end: Cycle) -> Cycle {
        let last = now + SAMPLES * STRIDE;
        // Near the limit of cycles the search is on.
        if last < end {
            *self = SpinSearch::new(now, last);
        }
        end.min(last)
    }

    /// The cycle of the next sample.
    pub(super) fn next(&self) -> Cycle {
        self.next
    }

    /// Samples the machine in the cycle [`SpinSearch::next`].
    pub(super) fn sample<'a>(&mut self, now: Cycle, components: impl Iterator<Item = &'a dyn Component> + Clone) {
        let subcores = subcores(components);
        self.samples += 1;
        self.warps = each_warp(&subcores).count();
        for (place, warp, file) in each_warp(&subcores) {
            if let Some(lines) = lines_of_loop(warp) {
                let inside = Loop {
                    block: warp.block,
                    warp: warp.index,
                    lines,
                };
                let seen = self.loops.get(&place).filter(|(known, _)| *known == inside);
                let n = seen.map_or(1, |(_, n)| n + 1);
                self.loops.insert(place, (inside, n));
            }
            let Some(poll) = find_spin(place.1, warp, file) else {
                continue;
            };
            let seen = match self.seen.remove(&place) {
                // The load may be in flight now, so the earlier value counts.
                Some((known, n)) if known.is_same_access(&poll) => (poll.or_value_of(&known), n + 1),
                _ => (poll, 1),
            };
            self.seen.insert(place, seen);
        }
        self.next = Some(now + STRIDE)
            .filter(|&next| next < self.end)
            .unwrap_or(Cycle::NEVER);
    }

    /// The loops of the warps that do not spin, the first line first: the last line of each, and a sentence.
    pub(super) fn loops(&self) -> Vec<(u32, String)> {
        let spins = |place| self.seen.get(place).is_some_and(|(_, n)| *n >= SEEN);
        let mut inside: BTreeMap<[u32; 2], usize> = BTreeMap::new();
        for (place, (warp, n)) in &self.loops {
            if *n == self.samples && *n >= SEEN && !spins(place) {
                *inside.entry(warp.lines).or_default() += 1;
            }
        }
        inside
            .into_iter()
            .map(|(lines, n)| (lines[1], self.say(lines, n)))
            .collect()
    }

    /// The sentence about `inside` warps that were in one loop in all samples.
    fn say(&self, lines: [u32; 2], inside: usize) -> String {
        let ending = if self.warps == 1 { "" } else { "s" };
        let was = if inside == 1 { "was" } else { "were" };
        let place = match lines {
            [first, last] if first == last => format!("line {first}"),
            [first, last] => format!("lines {first} to {last}"),
        };
        format!(
            "of {} warp{ending}, {inside} {was} in the loop in {place} in all {} samples of the last {} cycles",
            self.warps,
            self.samples,
            u64::from(self.samples) * STRIDE
        )
    }

    /// The spinning warps.
    pub(super) fn polls(self) -> Polls {
        let spins = self.seen.into_iter().filter(|(_, (_, n))| *n >= SEEN);
        spins.map(|(place, (poll, _))| (place, poll)).collect()
    }
}
