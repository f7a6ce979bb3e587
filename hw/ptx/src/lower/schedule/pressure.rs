//! Register pressure: live registers of one class while operations are reordered.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Live registers of one class in a region. Registers have local numbers.
#[derive(Clone)]
pub(super) struct RegPressure {
    /// Registers that each operation reads, with the number of reads.
    reads: Vec<Vec<(usize, u32)>>,
    /// Registers that each operation writes.
    writes: Vec<Vec<usize>>,
    /// Remaining reads of each register, plus one if later code reads it.
    reads_left: Vec<u32>,
    is_live: Vec<bool>,
    n_live: usize,
    limit: usize,
}

impl RegPressure {
    /// Creates the state from the reads and writes of each operation.
    ///
    /// Registers of `live_after` are read by later code. Registers of `live_before` are live at the start. At most `limit` may
    /// be live.
    pub fn of<R: Copy + Eq + Hash>(
        ops: impl Iterator<Item = (Vec<R>, Vec<R>)>,
        live_after: &HashSet<R>,
        live_before: &HashSet<R>,
        limit: usize,
    ) -> RegPressure {
        let mut pressure = RegPressure {
            reads: Vec::new(),
            writes: Vec::new(),
            reads_left: Vec::new(),
            is_live: Vec::new(),
            n_live: live_before.len(),
            limit,
        };
        let mut numbers = HashMap::new();
        for (reads, writes) in ops {
            let reads = reads.into_iter().map(|register| {
                let number = pressure.number(&mut numbers, register, live_after, live_before);
                pressure.reads_left[number] += 1;
                number
            });
            // An operation may read one register twice.
            let reads = counted(reads.collect());
            let writes = writes.into_iter();
            let writes = writes.map(|register| pressure.number(&mut numbers, register, live_after, live_before));
            let writes = writes.collect();
            pressure.reads.push(reads);
            pressure.writes.push(writes);
        }
        pressure
    }

    /// Returns the local number of a register.
    fn number<R: Copy + Eq + Hash>(
        &mut self,
        numbers: &mut HashMap<R, usize>,
        register: R,
        live_after: &HashSet<R>,
        live_before: &HashSet<R>,
    ) -> usize {
        *numbers.entry(register).or_insert_with(|| {
            self.reads_left.push(u32::from(live_after.contains(&register)));
            self.is_live.push(live_before.contains(&register));
            self.reads_left.len() - 1
        })
    }

    /// Returns the change of live registers by an operation: new registers minus registers read for the last time.
    pub fn change(&self, op: usize) -> isize {
        let defined = self.writes[op].iter().filter(|&&register| !self.is_live[register]);
        let freed = self.reads[op]
            .iter()
            .filter(|&&(register, count)| self.reads_left[register] == count);
        defined.count() as isize - freed.count() as isize
    }

    /// True if the operation keeps the limit, or does not add live registers.
    pub fn fits(&self, op: usize) -> bool {
        let change = self.change(op);
        change <= 0 || self.n_live as isize + change <= self.limit as isize
    }

    /// Lowers the limit by `excess`.
    pub fn lower_limit(&mut self, excess: usize) {
        self.limit = self.limit.saturating_sub(excess);
    }

    /// Records that an operation is scheduled next.
    pub fn take(&mut self, op: usize) {
        for &(register, count) in &self.reads[op] {
            self.reads_left[register] -= count;
            if self.reads_left[register] == 0 {
                self.n_live -= usize::from(std::mem::replace(&mut self.is_live[register], false));
            }
        }
        for &register in &self.writes[op] {
            // A result without a reader is dead at once.
            if self.reads_left[register] > 0 {
                self.n_live += usize::from(!std::mem::replace(&mut self.is_live[register], true));
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
