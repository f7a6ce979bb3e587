//! The request queue of a channel: entries in order of age, and sets of entries by bank, direction and open row.
//!
//! Each set is a mask: bit n for the n-th oldest entry.
//!
//! Invariant: an entry is in `ready` or in `held`. A held entry waits for an older entry of the same line.

use warpwave_hw::bits::ones;
use warpwave_hw::invariant::Invariants;

use super::layout::Location;
use crate::config::MAX_CHANNEL_QUEUE;
use crate::proto::mem::Packet;

// An entry is a bit of a mask.
const _: () = assert!(MAX_CHANNEL_QUEUE <= u64::BITS);

/// State of the bank when a request was served, for the counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowState {
    /// Its row was open.
    Hit,
    /// The bank was closed.
    Closed,
    /// Another row was open.
    Conflict,
}

/// A request in the queue.
pub(super) struct Entry {
    /// The request.
    pub(super) packet: Box<Packet>,
    /// The port that it came from.
    pub(super) port: u16,
    /// Bank, row and column of its line.
    pub(super) location: Location,
    /// Bursts left, bit i for burst i of the line.
    pub(super) bursts: u8,
    /// True for a write.
    pub(super) write: bool,
    /// State of its bank so far.
    pub(super) row_state: RowState,
    /// Edge of its arrival in the queue.
    pub(super) arrived: u64,
}

/// The next command of a bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextCommand {
    /// The command of this entry, at this edge.
    Now(usize),
    /// No command before this edge. `u64::MAX` if only another event can allow one.
    At(u64),
}

/// The queue of a channel.
pub(super) struct Queue {
    entries: Vec<Entry>,
    /// The bank of each entry, in an array of its own: each choice reads several.
    bank_of: [u32; MAX_CHANNEL_QUEUE as usize],
    /// Entries of each bank.
    of_bank: Vec<u64>,
    /// Entries whose row is open.
    hits: u64,
    /// Reads that are not held, and writes that are not held.
    ready: [u64; 2],
    /// Entries that wait for an older entry of the same line.
    held: u64,
    n_writes: usize,
}

impl Queue {
    /// An empty queue of at most `depth` entries, for `banks` banks.
    pub(super) fn new(depth: u32, banks: u32) -> Self {
        assert!(
            (1..=MAX_CHANNEL_QUEUE).contains(&depth),
            "a channel queue has 1 to {MAX_CHANNEL_QUEUE} entries, not {depth}"
        );
        Queue {
            entries: Vec::with_capacity(depth as usize),
            bank_of: [0; MAX_CHANNEL_QUEUE as usize],
            of_bank: vec![0; banks as usize],
            hits: 0,
            ready: [0; 2],
            held: 0,
            n_writes: 0,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Checks the sets: each entry is ready or held, in the set of its bank, and a held one has an older entry of its line.
    pub(super) fn invariants(&self, depth: u32, check: &mut Invariants) {
        let n = self.entries.len();
        check.at_most("entries", n as u64, depth.into());
        let all = if n == 0 { 0 } else { u64::MAX >> (64 - n) };
        let [reads, writes] = self.ready;
        check.equal("ready and held entries", reads | writes | self.held, all);
        check.equal("entries in two sets", reads & writes | (reads | writes) & self.held, 0);
        let is_write = self.entries.iter().filter(|entry| entry.write);
        check.equal("writes", self.n_writes as u64, is_write.count() as u64);
        for (n, entry) in self.entries.iter().enumerate() {
            let bank = entry.location.bank as usize;
            check.equal(
                format_args!("bank of entry {n}"),
                u64::from(self.bank_of[n]),
                bank as u64,
            );
            check.equal(format_args!("bank bit of entry {n}"), self.of_bank[bank] >> n & 1, 1);
            let follows = self.entries[..n].iter().any(|older| older.location == entry.location);
            check.equal(
                format_args!("held bit of entry {n}"),
                self.held >> n & 1,
                follows.into(),
            );
        }
    }

    /// Number of writes, held ones included.
    pub(super) fn n_writes(&self) -> usize {
        self.n_writes
    }

    /// The oldest entry.
    pub(super) fn oldest(&self) -> Option<&Entry> {
        self.entries.first()
    }

    /// An entry.
    pub(super) fn entry(&mut self, n: usize) -> &mut Entry {
        &mut self.entries[n]
    }

    /// The writes, or else the reads, that are not held.
    #[inline]
    pub(super) fn ready(&self, write: bool) -> u64 {
        self.ready[usize::from(write)]
    }

    /// The entries whose row is open.
    #[inline]
    pub(super) fn hits(&self) -> u64 {
        self.hits
    }

    /// The entries of a bank.
    #[inline]
    pub(super) fn of_bank(&self, bank: usize) -> u64 {
        self.of_bank[bank]
    }

    /// The bank of an entry.
    #[inline]
    pub(super) fn bank(&self, n: usize) -> usize {
        self.bank_of[n % MAX_CHANNEL_QUEUE as usize] as usize
    }

    /// Appends a request. `open` is true if its row is open.
    pub(super) fn push(&mut self, entry: Entry, open: bool) {
        let n = self.entries.len();
        let of_bank = &mut self.of_bank[entry.location.bank as usize];
        // Requests of one line keep their order: the younger one waits.
        let held = ones(*of_bank).any(|other| self.entries[other].location == entry.location);
        *of_bank |= 1 << n;
        self.hits |= u64::from(open) << n;
        let mask = match held {
            true => &mut self.held,
            false => &mut self.ready[usize::from(entry.write)],
        };
        *mask |= 1 << n;
        self.n_writes += usize::from(entry.write);
        self.bank_of[n] = entry.location.bank;
        self.entries.push(entry);
    }

    /// Removes a request after its last burst.
    pub(super) fn remove(&mut self, n: usize) -> Entry {
        self.bank_of.copy_within(n + 1..self.entries.len(), n);
        let entry = self.entries.remove(n);
        self.n_writes -= usize::from(entry.write);
        // Younger entries move down by one bit.
        let older = (1 << n) - 1;
        let close = |mask: &mut u64| *mask = (*mask & older) | (*mask >> 1 & !older);
        let [reads, writes] = &mut self.ready;
        [&mut self.hits, reads, writes, &mut self.held]
            .into_iter()
            .for_each(close);
        self.of_bank.iter_mut().for_each(close);
        // The next request of the same line is no longer held.
        let of_bank = self.of_bank[entry.location.bank as usize];
        let next = ones(self.held & of_bank & !older).find(|&other| self.entries[other].location == entry.location);
        if let Some(next) = next {
            self.held &= !(1 << next);
            self.ready[usize::from(self.entries[next].write)] |= 1 << next;
        }
        entry
    }

    /// Updates the hits of a bank after its row was opened or closed.
    pub(super) fn row_changed(&mut self, bank: u32, row: Option<u32>) {
        let of_bank = self.of_bank[bank as usize];
        // Only entries of this bank can have gained or lost their row.
        let needs_it = |&n: &usize| row == Some(self.entries[n].location.row);
        let open = ones(of_bank).filter(needs_it).fold(0, |open, n| open | 1 << n);
        self.hits = self.hits & !of_bank | open;
    }

    /// The oldest candidate whose bank is ready, or the first edge at which one is.
    #[inline]
    pub(super) fn oldest_ready(&self, mut candidates: u64, edge: u64, ready_at: impl Fn(usize) -> u64) -> NextCommand {
        let mut first = u64::MAX;
        while candidates != 0 {
            let n = candidates.trailing_zeros() as usize;
            let bank = self.bank(n);
            // All candidates of a bank are ready at the same edge, so the oldest is enough.
            candidates &= !self.of_bank[bank];
            let at = ready_at(bank);
            if at <= edge {
                return NextCommand::Now(n);
            }
            first = first.min(at);
        }
        NextCommand::At(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_without_its_entry_breaks_an_invariant() {
        let mut queue = Queue::new(4, 2);
        let broken = |queue: &Queue| Invariants::broken(|check| queue.invariants(4, check));
        assert!(broken(&queue).is_empty());
        queue.held = 1;
        assert_eq!(broken(&queue), ["ready and held entries: 1, not 0"]);
        (queue.held, queue.n_writes) = (0, 2);
        assert_eq!(broken(&queue), ["writes: 2, not 0"]);
    }
}
