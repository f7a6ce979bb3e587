//! Register pressure: live registers of one class while operations are reordered.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Live registers of one class in a region. Registers have local numbers.
pub(super) struct Tally {
    /// Registers that each operation reads, with the number of reads.
    reads: Vec<Vec<(usize, u32)>>,
    /// Registers that each operation writes.
    writes: Vec<Vec<usize>>,
    /// Remaining reads of each register, plus one if later code reads it.
    left: Vec<u32>,
    is_held: Vec<bool>,
    n_held: usize,
    most: usize,
}

impl Tally {
    /// Creates the state from the reads and writes of each operation.
    ///
    /// Registers of `behind` are read by later code. Registers of `before` are live at the start. At most `most` may be live.
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

    /// Returns the change of live registers by an operation: new registers minus registers read for the last time.
    pub fn change(&self, op: usize) -> isize {
        let made = self.writes[op].iter().filter(|&&register| !self.is_held[register]);
        let freed = self.reads[op]
            .iter()
            .filter(|&&(register, times)| self.left[register] == times);
        made.count() as isize - freed.count() as isize
    }

    /// True if the operation keeps the limit, or does not add live registers.
    pub fn fits(&self, op: usize) -> bool {
        let change = self.change(op);
        change <= 0 || self.n_held as isize + change <= self.most as isize
    }

    /// Records that an operation is scheduled next.
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

/// Returns each distinct number with its count.
fn counted(mut numbers: Vec<usize>) -> Vec<(usize, u32)> {
    numbers.sort_unstable();
    let same = numbers.chunk_by(|a, b| a == b);
    same.map(|group| (group[0], group.len() as u32)).collect()
}
