//! Snapshots of the counters of all components, and differences between two snapshots.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Arc;

use warpwave_hw::component::Component;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;

/// A snapshot: counters by kind of block and name, one value per instance. Latencies by path, over all instances.
///
/// The kind of a block is the last part of its path without an index: `scheduler`, `l1`, `slice`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    kinds: Arc<Kinds>,
    /// Counters, by the index of their kind.
    blocks: Vec<Block>,
    latencies: BTreeMap<&'static str, Latency>,
    /// Counters by program counter, summed over all instances.
    indexed: BTreeMap<&'static str, Vec<u64>>,
}

/// The counters of one kind of block with their names, in the order of its report.
type Block = Vec<(&'static str, Vec<u64>)>;

/// The kinds of a machine's components. They never change, so snapshots share them.
#[derive(Debug, Default)]
struct Kinds {
    names: Vec<String>,
    /// For each component, the index of its kind.
    of: Vec<usize>,
}

impl Counts {
    /// Takes the first snapshot of a machine, up to cycle `until`.
    pub fn of<'a>(components: impl Iterator<Item = &'a dyn Component> + Clone, until: Cycle) -> Self {
        let kinds = Kinds::of(components.clone());
        let blocks = vec![Block::new(); kinds.names.len()];
        Counts::collect(Arc::new(kinds), blocks, components, until)
    }

    /// Takes another snapshot of the same machine, up to cycle `until`. Faster than [`Counts::of`].
    pub fn next_snapshot<'a>(&self, components: impl Iterator<Item = &'a dyn Component>, until: Cycle) -> Self {
        let room = |(name, values): &(_, Vec<u64>)| (*name, Vec::with_capacity(values.len()));
        let blocks = self.blocks.iter().map(|block| block.iter().map(room).collect());
        Counts::collect(Arc::clone(&self.kinds), blocks.collect(), components, until)
    }

    fn collect<'a>(
        kinds: Arc<Kinds>,
        mut blocks: Vec<Block>,
        components: impl Iterator<Item = &'a dyn Component>,
        until: Cycle,
    ) -> Self {
        let (mut latencies, mut indexed) = (BTreeMap::new(), BTreeMap::new());
        // The order of the components is fixed, so position n of a counter is always the same instance.
        for (component, &kind) in components.zip(&kinds.of) {
            component.stats(&mut Collector {
                block: &mut blocks[kind],
                latencies: &mut latencies,
                indexed: &mut indexed,
                next: 0,
                until,
            });
        }
        Counts {
            kinds,
            blocks,
            latencies,
            indexed,
        }
    }

    /// Subtracts the counters and latencies of `earlier`, a previous snapshot of the machine or a part of this one.
    pub fn since(&self, earlier: &Counts) -> Counts {
        // A counter that `earlier` lacks began after it, so it keeps its value.
        let mut counts = self.clone();
        for (kind, block) in self.kinds.names.iter().zip(&mut counts.blocks) {
            for (name, values) in block {
                if let Some(before) = earlier.each(kind, name) {
                    values.iter_mut().zip(before).for_each(|(now, before)| *now -= before);
                }
            }
        }
        for (name, values) in &mut counts.indexed {
            let before = earlier.by_pc(name);
            values.iter_mut().zip(before).for_each(|(now, before)| *now -= before);
        }
        for (path, latency) in &mut counts.latencies {
            if let Some(before) = earlier.latencies.get(path) {
                latency.subtract(before);
            }
        }
        counts
    }

    /// The counter's sum over all instances for each instruction, by program counter. Empty if nothing was counted.
    pub fn by_pc(&self, name: &str) -> &[u64] {
        self.indexed.get(name).map_or(&[], Vec::as_slice)
    }

    /// The counter's value in each instance. `None` if this kind of block has no such counter.
    pub fn each(&self, block: &str, name: &str) -> Option<&[u64]> {
        let kind = self.kinds.names.iter().position(|kind| kind == block)?;
        let mut counters = self.blocks[kind].iter();
        counters
            .find(|(known, _)| *known == name)
            .map(|(_, values)| values.as_slice())
    }

    /// The counter's sum over all instances. `None` if this kind of block has no such counter.
    pub fn sum(&self, block: &str, name: &str) -> Option<u64> {
        self.each(block, name).map(|values| values.iter().sum())
    }

    /// All latency paths with at least one value.
    pub fn latencies(&self) -> impl Iterator<Item = (&'static str, &Latency)> {
        let recorded = |(_, latency): &(&&'static str, &Latency)| !latency.histogram().is_empty();
        self.latencies
            .iter()
            .filter(recorded)
            .map(|(name, latency)| (*name, latency))
    }
}

impl Kinds {
    fn of<'a>(components: impl Iterator<Item = &'a dyn Component>) -> Self {
        let mut kinds = Kinds::default();
        for component in components {
            let kind = kind(component.path().as_str());
            let known = kinds.names.iter().position(|name| name == kind);
            kinds.of.push(known.unwrap_or(kinds.names.len()));
            if known.is_none() {
                kinds.names.push(kind.to_owned());
            }
        }
        kinds
    }
}

/// The kind of a block: the last part of its path, without index.
pub(crate) fn kind(path: &str) -> &str {
    let last = path.rsplit('.').next().unwrap_or(path);
    last.split('[').next().unwrap_or(last)
}

struct Collector<'a> {
    block: &'a mut Block,
    latencies: &'a mut BTreeMap<&'static str, Latency>,
    indexed: &'a mut BTreeMap<&'static str, Vec<u64>>,
    /// Index of the next counter, if this instance reports in the order of the previous one.
    next: usize,
    /// The first cycle that does not count.
    until: Cycle,
}

impl Report for Collector<'_> {
    fn until(&self) -> Option<Cycle> {
        Some(self.until)
    }

    fn count(&mut self, name: &'static str, value: u64) {
        // A name is usually the same pointer: comparing it is faster than comparing the text.
        let is_it = |(known, _): &(&str, Vec<u64>)| ptr::eq(*known, name) || *known == name;
        let at = match self.block.get(self.next) {
            Some(counter) if is_it(counter) => self.next,
            _ => self.block.iter().position(is_it).unwrap_or(self.block.len()),
        };
        if at == self.block.len() {
            self.block.push((name, Vec::new()));
        }
        self.block[at].1.push(value);
        self.next = at + 1;
    }

    fn latency(&mut self, name: &'static str, value: &Latency) {
        self.latencies.entry(name).or_default().add(value);
    }

    fn indexed(&mut self, names: &[&'static str], counts: &[u64]) {
        for (nth, name) in names.iter().enumerate() {
            let sums = self.indexed.entry(name).or_default();
            // The counters of one instruction lie side by side.
            let values = counts.iter().skip(nth).step_by(names.len());
            sums.resize(sums.len().max(values.len()), 0);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use warpwave_components::gpu::Gpu;
    use warpwave_components::preset;

    use super::*;

    /// Builds counters from values given by hand.
    pub fn counts(counters: &[(&str, &'static str, &[u64])]) -> Counts {
        let (mut kinds, mut blocks) = (Kinds::default(), Vec::<Block>::new());
        for &(block, name, values) in counters {
            let known = kinds.names.iter().position(|kind| kind == block);
            let at = known.unwrap_or_else(|| {
                kinds.names.push(block.to_owned());
                blocks.push(Block::new());
                blocks.len() - 1
            });
            blocks[at].push((name, values.to_vec()));
        }
        Counts {
            kinds: Arc::new(kinds),
            blocks,
            latencies: BTreeMap::new(),
            indexed: BTreeMap::new(),
        }
    }

    #[test]
    fn kind_is_the_last_part_of_a_path_without_its_index() {
        assert_eq!(kind("gpu.gpc[0].sm[1].subcore[2].scheduler"), "scheduler");
        assert_eq!(kind("gpu.partition[1].slice[7]"), "slice");
    }

    #[test]
    fn second_snapshot_has_one_value_per_instance_of_each_kind() {
        let tiny = preset::load("tiny", &[]).expect("a built-in GPU").config;
        let (n_sms, gpu) = (tiny.n_sms() as usize, Gpu::new(tiny));
        let first = Counts::of(gpu.components(), gpu.clock().now());
        let second = first.next_snapshot(gpu.components(), gpu.clock().now());
        for (block, name, n) in [("scheduler", "inst_issued", 4 * n_sms), ("l1", "load_sectors", n_sms)] {
            assert_eq!(second.each(block, name), Some(&vec![0; n][..]), "{block}");
            assert_eq!(second.each(block, name), first.each(block, name));
        }
        assert_eq!(second.each("l1", "inst_issued"), None);
    }

    #[test]
    fn counters_reported_in_any_order_are_stored_by_name() {
        let (mut block, mut latencies, mut indexed) = (Block::new(), BTreeMap::new(), BTreeMap::new());
        for told in [
            &[("a", 1), ("b", 2)][..],
            &[("b", 3), ("c", 4), ("a", 5)],
            &[("a", 6), ("b", 7)],
        ] {
            let mut collector = Collector {
                block: &mut block,
                latencies: &mut latencies,
                indexed: &mut indexed,
                next: 0,
                until: Cycle::ZERO,
            };
            told.iter().for_each(|&(name, value)| collector.count(name, value));
        }
        assert_eq!(block, [("a", vec![1, 5, 6]), ("b", vec![2, 3, 7]), ("c", vec![4])]);
    }

    #[test]
    fn counters_by_program_counter_are_added_over_instances() {
        let (mut block, mut latencies, mut indexed) = (Block::new(), BTreeMap::new(), BTreeMap::new());
        for values in [&[1, 10, 2, 20][..], &[4, 40]] {
            let mut collector = Collector {
                block: &mut block,
                latencies: &mut latencies,
                indexed: &mut indexed,
                next: 0,
                until: Cycle::ZERO,
            };
            collector.indexed(&["requests", "sectors"], values);
        }
        let counts = Counts {
            indexed,
            ..Counts::default()
        };
        assert_eq!(counts.by_pc("requests"), [5, 2]);
        assert_eq!(counts.by_pc("sectors"), [50, 20]);
        assert!(counts.by_pc("conflicts").is_empty());
        assert_eq!(counts.since(&counts).by_pc("sectors"), [0, 0]);
    }

    #[test]
    fn difference_is_computed_per_instance() {
        let later = counts(&[("l1", "load_sectors", &[5, 7])]).since(&counts(&[("l1", "load_sectors", &[2, 7])]));
        assert_eq!(later.each("l1", "load_sectors"), Some(&[3, 0][..]));
        assert_eq!(later.sum("l1", "load_sectors"), Some(3));
        assert_eq!(later.sum("l1", "store_sectors"), None);
    }
}
