//! Which request's command goes out next: first-ready, first-come, first-served.
//!
//! Column commands to open rows go before those that must wait for a row; the older goes before the younger. Reads go before
//! writes until many writes wait or no read can go; then writes go until few are left. Nothing is passed over for longer than
//! [`STARVED_AFTER`].
//!
//! Entries stand in order of age; entry n is bit n of every mask.
//!
//! Source: Rixner et al., "Memory access scheduling" (ISCA 2000).

use super::bank::Location;
use super::timing::Clockwork;
use crate::proto::mem::Packet;

/// Command cycles after which the oldest request goes before all others of its bank. Assumed.
pub(super) const STARVED_AFTER: u64 = 1000;

/// Most entries of a queue: the bits of a mask.
pub const MAX_DEPTH: u32 = 64;

/// How a request found its bank.
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
    /// What is wanted.
    pub(super) packet: Box<Packet>,
    /// The port that it came from.
    pub(super) port: usize,
    /// Where it lies.
    pub(super) at: Location,
    /// Bursts still to do, bit i for the i-th of the line.
    pub(super) bursts: u8,
    /// Whether it writes.
    pub(super) write: bool,
    /// How it found its bank.
    pub(super) found: RowState,
    /// Edge of its arrival.
    pub(super) arrived: u64,
}

/// What to do at an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// The command of this entry, now.
    Now(usize),
    /// Nothing before this edge; `u64::MAX` if nothing without an event before.
    At(u64),
}

/// The queue of a channel.
pub(super) struct Queue {
    entries: Vec<Entry>,
    depth: usize,
    /// Entries whose row is open.
    hits: u64,
    writes: u64,
    /// Entries that must wait for an older one of the same line.
    held: u64,
    writing: bool,
}

impl Queue {
    /// An empty queue of at most `depth` entries.
    pub(super) fn new(depth: u32) -> Self {
        assert!(
            (1..=MAX_DEPTH).contains(&depth),
            "a queue has 1 to {MAX_DEPTH} entries, not {depth}"
        );
        Queue {
            entries: Vec::with_capacity(depth as usize),
            depth: depth as usize,
            hits: 0,
            writes: 0,
            held: 0,
            writing: false,
        }
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.depth as u32);
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none more may enter.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() == self.depth
    }

    /// First edge at which the oldest entry has waited too long.
    pub(super) fn starved_at(&self) -> u64 {
        self.entries
            .first()
            .map_or(u64::MAX, |oldest| oldest.arrived + STARVED_AFTER + 1)
    }

    /// Whether writes go before reads now.
    pub(super) fn is_writing(&self) -> bool {
        self.writing
    }

    /// An entry.
    pub(super) fn entry(&mut self, n: usize) -> &mut Entry {
        &mut self.entries[n]
    }

    /// Puts a request at the end; `open` says whether its row is.
    pub(super) fn push(&mut self, entry: Entry, open: bool) {
        let n = self.entries.len();
        let held = self.entries.iter().any(|other| other.packet.line == entry.packet.line);
        self.hits |= u64::from(open) << n;
        self.writes |= u64::from(entry.write) << n;
        self.held |= u64::from(held) << n;
        self.entries.push(entry);
    }

    /// Takes a request out that is done.
    pub(super) fn remove(&mut self, n: usize) -> Entry {
        let entry = self.entries.remove(n);
        for mask in [&mut self.hits, &mut self.writes, &mut self.held] {
            let below = (1 << n) - 1;
            *mask = (*mask & below) | (*mask >> 1 & !below);
        }
        // The next of the same line need wait no longer.
        if let Some(next) = self.entries[n..]
            .iter()
            .position(|other| other.packet.line == entry.packet.line)
        {
            self.held &= !(1 << (n + next));
        }
        entry
    }

    /// A bank's row was opened, or closed.
    pub(super) fn row_changed(&mut self, bank: u32, row: Option<u32>) {
        for (n, entry) in self.entries.iter().enumerate() {
            if entry.at.bank == bank {
                let open = u64::from(row == Some(entry.at.row)) << n;
                self.hits = (self.hits & !(1 << n)) | open;
            }
        }
    }

    /// Every row was closed.
    pub(super) fn all_rows_closed(&mut self) {
        self.hits = 0;
    }

    /// Chooses between reads and writes for this edge.
    pub(super) fn choose_direction(&mut self, edge: u64) {
        let ready = all(self.entries.len()) & !self.held;
        let (reads, writes) = (ready & !self.writes != 0, ready & self.writes != 0);
        let n_writes = self.writes.count_ones() as usize;
        let enough = if self.writing {
            self.depth / 8 + 1
        } else {
            self.depth / 2
        };
        self.writing = match self.starving(edge) {
            Some(_) => self.writes & 1 == 1,
            None => writes && (n_writes >= enough || !reads),
        };
    }

    /// The entry whose column command goes out.
    pub(super) fn column(&self, edge: u64, clockwork: &Clockwork) -> Choice {
        let mut candidates = self.hits & self.in_direction();
        if let Some(bank) = self.starving(edge)
            && candidates & 1 == 0
        {
            candidates &= !self.of_bank(bank);
        }
        // While the bus is not free nobody need be asked.
        let free = clockwork.any_column_at(self.writing);
        if candidates != 0 && free > edge {
            return Choice::At(free);
        }
        let mut first = u64::MAX;
        // Entries of one bank may go in the same cycle: the oldest stands for them.
        let mut seen: u128 = 0;
        while candidates != 0 {
            let n = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let bank = self.entries[n].at.bank;
            if seen >> bank & 1 == 1 {
                continue;
            }
            seen |= 1 << bank;
            let at = clockwork.column_at(bank as usize, self.writing);
            if at <= edge {
                return Choice::Now(n);
            }
            first = first.min(at);
        }
        Choice::At(first)
    }

    /// The entry for which a bank is precharged or activated.
    pub(super) fn row(&self, edge: u64, clockwork: &Clockwork) -> Choice {
        let mut candidates = self.in_direction() & !self.hits;
        if candidates == 0 {
            return Choice::At(u64::MAX);
        }
        let starving = self.starving(edge);
        let mut first = u64::MAX;
        let mut seen = self.banks_with_hits(starving);
        while candidates != 0 {
            let n = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let bank = self.entries[n].at.bank;
            if seen >> bank & 1 == 1 {
                continue;
            }
            seen |= 1 << bank;
            let bank = bank as usize;
            let at = match clockwork.banks[bank].row {
                None => clockwork.activate_at(bank),
                Some(_) => clockwork.precharge_at(bank),
            };
            if at <= edge {
                return Choice::Now(n);
            }
            first = first.min(at);
        }
        Choice::At(first)
    }

    /// The bank of the oldest entry, if that has waited too long.
    fn starving(&self, edge: u64) -> Option<u32> {
        let oldest = self.entries.first()?;
        (edge >= self.starved_at()).then_some(oldest.at.bank)
    }

    fn in_direction(&self) -> u64 {
        let writes = if self.writing { self.writes } else { !self.writes };
        all(self.entries.len()) & writes & !self.held
    }

    fn of_bank(&self, bank: u32) -> u64 {
        let bit = |(n, entry): (usize, &Entry)| u64::from(entry.at.bank == bank) << n;
        self.entries.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    }

    /// Banks whose open row is still wanted: they are not closed, but for an entry that starves.
    fn banks_with_hits(&self, starving: Option<u32>) -> u128 {
        let mut hits = self.hits & self.in_direction();
        let mut banks = 0;
        while hits != 0 {
            banks |= 1 << self.entries[hits.trailing_zeros() as usize].at.bank;
            hits &= hits - 1;
        }
        match starving {
            Some(bank) => banks & !(1 << bank),
            None => banks,
        }
    }
}

fn all(n: usize) -> u64 {
    u64::MAX.checked_shr(MAX_DEPTH - n as u32).unwrap_or(0)
}
