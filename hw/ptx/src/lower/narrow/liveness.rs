//! Live values of one register class, from the last operation of a region to the first.
//!
//! A value is a register between two of its writes. So the count is right for any order that keeps the dependencies.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Values of a region, and those live at the point reached.
#[derive(Clone)]
pub(super) struct Liveness {
    /// Operations that read each value.
    pub readers: Vec<Vec<usize>>,
    /// Values that each operation reads, each once.
    reads: Vec<Vec<usize>>,
    /// Values that each operation writes.
    writes: Vec<Vec<usize>>,
    is_live: Vec<bool>,
    n_live: usize,
}

impl Liveness {
    /// Creates the values at the end of a region, where the registers of `live_after` are live.
    ///
    /// Each operation comes with the registers that it reads and writes. The flag is true if it keeps old bits of the written registers.
    pub fn of<R: Copy + Eq + Hash>(
        ops: impl Iterator<Item = (Vec<R>, Vec<R>, bool)>,
        live_after: &HashSet<R>,
    ) -> Liveness {
        let mut n_values = 0;
        let mut new_value = || {
            n_values += 1;
            n_values - 1
        };
        let mut values: HashMap<R, usize> = HashMap::new();
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (read, written, keeps_old) in ops {
            let kept = written.iter().filter(|_| keeps_old);
            let read = read.iter().chain(kept);
            let mut read: Vec<usize> = read
                .map(|&register| *values.entry(register).or_insert_with(&mut new_value))
                .collect();
            read.sort_unstable();
            read.dedup();
            reads.push(read);
            let mut write = |register| {
                let value = new_value();
                values.insert(register, value);
                value
            };
            writes.push(written.into_iter().map(&mut write).collect());
        }
        // A register that the region does not use is a value too: it adds one in every order.
        let live: Vec<usize> = live_after
            .iter()
            .map(|&register| *values.entry(register).or_insert_with(&mut new_value))
            .collect();
        let mut is_live = vec![false; n_values];
        live.iter().for_each(|&value| is_live[value] = true);
        let mut readers = vec![Vec::new(); n_values];
        for (op, read) in reads.iter().enumerate() {
            read.iter().for_each(|&value| readers[value].push(op));
        }
        Liveness {
            readers,
            reads,
            writes,
            is_live,
            n_live: live.len(),
        }
    }

    /// True if the operation writes a register.
    pub fn has_result(&self, op: usize) -> bool {
        !self.writes[op].is_empty()
    }

    /// Returns the change of live registers if the operation comes before the point reached.
    pub fn change(&self, op: usize) -> isize {
        let count = |values: &[usize], live| values.iter().filter(|&&value| self.is_live[value] == live).count();
        count(&self.reads[op], false) as isize - count(&self.writes[op], true) as isize
    }

    /// Steps back over an operation. Returns the values that become live.
    pub fn step_back(&mut self, op: usize) -> Vec<usize> {
        for &value in &self.writes[op] {
            self.n_live -= usize::from(std::mem::replace(&mut self.is_live[value], false));
        }
        let is_live = &mut self.is_live;
        let began = self.reads[op]
            .iter()
            .copied()
            .filter(|&value| !std::mem::replace(&mut is_live[value], true));
        let began: Vec<usize> = began.collect();
        self.n_live += began.len();
        began
    }

    /// Returns the maximum number of live registers in an order of all operations.
    pub fn peak(&self, order: &[usize]) -> usize {
        let mut point = self.clone();
        let mut peak = point.n_live;
        for &op in order.iter().rev() {
            point.step_back(op);
            peak = peak.max(point.n_live);
        }
        peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_two_loads_decides_the_peak() {
        // a = load p; b = load p; c = c + a; c = c + b. The base p and the sum c are live throughout.
        let ops = [
            (vec!['p'], vec!['a'], false),
            (vec!['p'], vec!['b'], false),
            (vec!['a', 'c'], vec!['c'], false),
            (vec!['b', 'c'], vec!['c'], false),
        ];
        let after = HashSet::from(['p', 'c']);
        let mut values = Liveness::of(ops.into_iter(), &after);
        assert_eq!(values.peak(&[0, 1, 2, 3]), 4);
        assert_eq!(values.peak(&[0, 2, 1, 3]), 3);
        // The last sum needs b. The load of b frees it, since p is live.
        assert_eq!(values.change(3), 1);
        assert_eq!(values.step_back(3).len(), 2);
        assert_eq!(values.change(1), -1);
    }

    #[test]
    fn guarded_write_keeps_its_register_live() {
        let ops = |keeps_old| [(vec![], vec!['x'], false), (vec![], vec!['x'], keeps_old)].into_iter();
        let after = HashSet::from(['x']);
        for (keeps_old, n_live) in [(false, 0), (true, 1)] {
            let mut values = Liveness::of(ops(keeps_old), &after);
            values.step_back(1);
            assert_eq!(values.n_live, n_live);
        }
    }
}
