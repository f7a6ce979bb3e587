//! How many registers of one file are held while operations are put into a new order.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// The registers of one file that a stretch of code names, by numbers of their own.
pub(super) struct Tally {
    /// Of each operation, the registers that it reads, each with how often.
    reads: Vec<Vec<(usize, u32)>>,
    /// Of each operation, the registers that it writes.
    writes: Vec<Vec<usize>>,
    /// Reads of each register still to come, and one where later code reads it.
    left: Vec<u32>,
    is_held: Vec<bool>,
    n_held: usize,
    most: usize,
}

impl Tally {
    /// Of operations by what they read and write; `behind` is read by later code, `before` is held already, `most` may be held.
    pub fn of<R: Copy + Eq + Hash>(
        ops: impl Iterator<Item = (Vec<R>, Vec<R>)>,
        behind: &HashSet<R>,
        before: &HashSet<R>,
        most: usize,
    ) -> Tally {
        let mut tally = Tally {
            reads: Vec::new(),
            writes: Vec::new(),
            left: Vec::new(),
            is_held: Vec::new(),
            n_held: before.len(),
            most,
        };
        let mut numbers = HashMap::new();
        for (reads, writes) in ops {
            let reads = reads.into_iter().map(|register| {
                let number = tally.number(&mut numbers, register, behind, before);
                tally.left[number] += 1;
                number
            });
            let reads = counted(reads.collect());
            let writes = writes.into_iter();
            let writes = writes.map(|register| tally.number(&mut numbers, register, behind, before));
            let writes = writes.collect();
            tally.reads.push(reads);
            tally.writes.push(writes);
        }
        tally
    }

    fn number<R: Copy + Eq + Hash>(
        &mut self,
        numbers: &mut HashMap<R, usize>,
        register: R,
        behind: &HashSet<R>,
        before: &HashSet<R>,
    ) -> usize {
        *numbers.entry(register).or_insert_with(|| {
            self.left.push(u32::from(behind.contains(&register)));
            self.is_held.push(before.contains(&register));
            self.left.len() - 1
        })
    }

    /// Registers that an operation adds, less those that it reads last.
    pub fn change(&self, op: usize) -> isize {
        let made = self.writes[op].iter().filter(|&&register| !self.is_held[register]);
        let freed = self.reads[op]
            .iter()
            .filter(|&&(register, times)| self.left[register] == times);
        made.count() as isize - freed.count() as isize
    }

    /// Whether no more than may be are held behind an operation, or no more than before it.
    pub fn fits(&self, op: usize) -> bool {
        let change = self.change(op);
        change <= 0 || self.n_held as isize + change <= self.most as isize
    }

    /// An operation has its place.
    pub fn take(&mut self, op: usize) {
        for &(register, times) in &self.reads[op] {
            self.left[register] -= times;
            if self.left[register] == 0 {
                self.n_held -= usize::from(std::mem::replace(&mut self.is_held[register], false));
            }
        }
        for &register in &self.writes[op] {
            if self.left[register] > 0 {
                self.n_held += usize::from(!std::mem::replace(&mut self.is_held[register], true));
            }
        }
    }
}

/// Each number with how often it occurs.
fn counted(mut numbers: Vec<usize>) -> Vec<(usize, u32)> {
    numbers.sort_unstable();
    let same = numbers.chunk_by(|a, b| a == b);
    same.map(|group| (group[0], group.len() as u32)).collect()
}
