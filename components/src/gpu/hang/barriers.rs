//! Barriers that never open: the warps that wait there, and where the other warps are.

use std::collections::BTreeMap;

use warpwave_hw::bits::ones;
use warpwave_isa::flow::{Held, Hold};

use super::lists::{list, named};
use super::place::Place;
use super::{Block, Hang, Sentences};

/// Warps that a barrier waits for, by the barrier that they wait at.
type Edges = BTreeMap<usize, BTreeMap<usize, u64>>;

impl Hang {
    /// Explains every barrier with arrivals, and every warp whose lanes wait for one another.
    pub(super) fn explain_barriers(&mut self, blocks: &[Block<'_>]) {
        let (mut barriers, mut cycles, mut splits) = (Sentences::default(), Sentences::default(), Sentences::default());
        for block in blocks {
            let edges = self.explain_block(block, &mut barriers);
            if let Some(cycle) = cycle(&edges) {
                cycles.add(block.cta.block(), say_cycle(&cycle, &edges));
            }
            self.explain_splits(block, &mut splits);
        }
        self.reasons.extend(barriers.into_lines());
        self.reasons.extend(cycles.into_lines());
        self.explain_clusters(blocks);
        self.reasons.extend(splits.into_lines());
    }

    /// Explains the barriers of a block. Returns its wait-for graph.
    fn explain_block(&mut self, block: &Block<'_>, sentences: &mut Sentences) -> Edges {
        let mut edges = Edges::new();
        for (number, arrived, expected) in block.cta.barriers.pending() {
            let waiting = block.cta.barriers.waiting(number);
            // Also the warps that went on after bar.arrive: they may be what another barrier waits for.
            let mut others = self.places(block, !waiting);
            // 0 stands for all live warps, as in the barrier itself.
            let needs = if expected == 0 { block.cta.live } else { expected };
            // A barrier of the whole block does not wait for ended warps.
            others.retain(|(place, _)| expected != 0 || !matches!(place, Place::Ended(_)));
            for (place, warps) in &others {
                if let Place::Barrier { number: other, .. } = place {
                    *edges.entry(number).or_default().entry(usize::from(*other)).or_default() |= warps;
                }
            }
            let there = self.places(block, waiting);
            let there: Vec<String> = there.iter().map(|(place, warps)| at_line(*place, *warps)).collect();
            let passed = arrived.saturating_sub(waiting.count_ones());
            let passed = match passed {
                0 => String::new(),
                n => format!(", and {n} went on after bar.arrive"),
            };
            sentences.add(
                block.cta.block(),
                format!(
                    "barrier {number} has {arrived} of {needs} warps ({}{passed}); {}",
                    list(&there),
                    missing(&others, needs.saturating_sub(arrived), expected)
                ),
            );
        }
        edges
    }

    /// The places of the warps in `mask`, each with its warps.
    fn places(&mut self, block: &Block<'_>, mask: u64) -> Vec<(Place, u64)> {
        let mut groups: Vec<(Place, u64)> = Vec::new();
        for index in ones(mask & u64::MAX >> (64 - block.cta.grid.warps())) {
            let place = block.place(index as u32);
            self.lines.extend(place.line());
            match groups.iter_mut().find(|(known, _)| *known == place) {
                Some((_, warps)) => *warps |= 1 << index,
                None => groups.push((place, 1 << index)),
            }
        }
        groups
    }

    /// Explains the cluster barriers at which warps wait.
    fn explain_clusters(&mut self, blocks: &[Block<'_>]) {
        let mut clusters: BTreeMap<u64, Vec<&Block<'_>>> = BTreeMap::new();
        for block in blocks {
            if let Some(member) = block.cta.member {
                clusters.entry(member.cluster()).or_default().push(block);
            }
        }
        let mut sentences = Sentences::default();
        for blocks in clusters.into_values() {
            let waits = |block: &&Block<'_>| {
                let mut warps = (0..block.cta.grid.warps()).map(|index| block.place(index));
                warps.any(|place| matches!(place, Place::Cluster { .. }))
            };
            if !blocks.iter().any(waits) {
                continue;
            }
            let mut missing = Vec::new();
            for block in &blocks {
                let [x, y, z] = block.cta.block();
                let mask = block
                    .cta
                    .member
                    .map_or(0, |member| member.missing(block.cta.grid.warps()));
                missing.extend(self.places(block, mask).into_iter().map(|(place, warps)| {
                    let (who, many) = (named("warp", warps), warps.count_ones() > 1);
                    format!("{who} of block ({x}, {y}, {z}), which {}", place.say(many))
                }));
            }
            sentences.add(
                blocks[0].cta.block(),
                format!("the barrier of its cluster waits for {}", list(&missing)),
            );
        }
        self.reasons.extend(sentences.into_lines());
    }

    /// Explains the warps with lanes that wait for other lanes of the warp.
    fn explain_splits(&mut self, block: &Block<'_>, sentences: &mut Sentences) {
        for index in 0..block.cta.grid.warps() {
            let Some((_, _, warp)) = block.warp(index) else {
                continue;
            };
            let (held, running) = (warp.flow.held(), warp.flow.active());
            // A warp that waits as a whole is told with its barrier.
            if held.is_empty() || warp.flow.is_at_barrier() {
                continue;
            }
            let code = warp.grid.program.code();
            let mut line = |pc: u32| {
                let line = code.get(pc as usize).map_or(0, |inst| inst.line);
                self.lines.insert(line);
                line
            };
            let mut parts: Vec<String> = held.iter().map(|held| say_held(held, line(held.pc))).collect();
            if !running.is_empty() {
                let (lanes, many) = (named("lane", running.0.into()), running.count() > 1);
                let verb = if many { "run" } else { "runs" };
                parts.push(format!("{lanes} {verb} in line {}", line(warp.flow.pc())));
            }
            sentences.add(block.cta.block(), format!("warp {index}: {}", parts.join("; ")));
        }
    }
}

/// Warps that wait at a barrier, with their line.
fn at_line(place: Place, warps: u64) -> String {
    let line = place.line().map_or(String::new(), |line| format!(" in line {line}"));
    format!("{}{line}", named("warp", warps))
}

/// The warps that have not arrived at a barrier that needs `n` more.
fn missing(others: &[(Place, u64)], n: u32, expected: u32) -> String {
    let all: Vec<String> = others
        .iter()
        .map(|(place, warps)| {
            let many = warps.count_ones() > 1;
            format!("{}, which {}", named("warp", *warps), place.say(many))
        })
        .collect();
    let may_arrive = |(place, _): &&(Place, u64)| !matches!(place, Place::Ended(_));
    match (others.len(), others.iter().filter(may_arrive).count()) {
        (0, _) => format!("it waits for {n} more, but the block has no other warp"),
        (_, 0) => format!(
            "it waits for {n} more, but no warp is left: it waits for {}",
            list(&all)
        ),
        _ if expected == 0 => format!("it waits for {}", list(&all)),
        _ => format!("it waits for {n} of: {}", list(&all)),
    }
}

/// Lanes that wait, and what for.
fn say_held(held: &Held, line: u32) -> String {
    let lanes = named("lane", held.lanes.0.into());
    let verb = if held.lanes.count() > 1 { "wait" } else { "waits" };
    let why = match held.by {
        Hold::Arrival => "at a barrier for the warp's other lanes".to_owned(),
        Hold::Barrier => "at a barrier for other warps".to_owned(),
        Hold::Cluster => "at the barrier of the cluster".to_owned(),
        Hold::Warpsync(mask) => format!("for {} of a member mask", named("lane", (mask & !held.lanes).0.into())),
        Hold::Reconvergence(members) => {
            format!("to reconverge with {}", named("lane", (members & !held.lanes).0.into()))
        }
    };
    format!("{lanes} {verb} in line {line} {why}")
}

/// A cycle of barriers, each waiting for warps at the next one.
fn cycle(edges: &Edges) -> Option<Vec<usize>> {
    fn walk(edges: &Edges, path: &mut Vec<usize>) -> bool {
        let (first, last) = (path[0], path[path.len() - 1]);
        let next: Vec<usize> = edges.get(&last).map_or(Vec::new(), |to| to.keys().copied().collect());
        for to in next {
            if to == first {
                return true;
            }
            if !path.contains(&to) {
                path.push(to);
                if walk(edges, path) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }
    // A search without memory is fast enough: a block has 16 barriers, and a warp waits at one.
    edges.keys().find_map(|&start| {
        let mut path = vec![start];
        walk(edges, &mut path).then_some(path)
    })
}

/// A cycle as a sentence.
fn say_cycle(path: &[usize], edges: &Edges) -> String {
    let next = path.iter().skip(1).chain(path.first());
    let links = path.iter().zip(next).map(|(from, to)| {
        let warps = edges[from][to];
        let verb = if warps.count_ones() > 1 { "wait" } else { "waits" };
        format!(
            "barrier {from} needs {}, which {verb} at barrier {to}",
            named("warp", warps)
        )
    });
    format!("a cycle: {}", links.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_of_three_barriers_is_found_beside_a_dead_end() {
        let edges: Edges = [
            (1, [(0, 1), (2, 0b10)].into()),
            (2, [(4, 0b1100)].into()),
            (4, [(1, 0b1_0000)].into()),
        ]
        .into();
        let path = cycle(&edges).unwrap();
        assert_eq!(path, [1, 2, 4]);
        assert_eq!(
            say_cycle(&path, &edges),
            "a cycle: barrier 1 needs warp 1, which waits at barrier 2; barrier 2 needs warps 2 and 3, which wait at \
             barrier 4; barrier 4 needs warp 4, which waits at barrier 1"
        );
        assert_eq!(cycle(&[(1, [(0, 1)].into())].into()), None);
    }
}
