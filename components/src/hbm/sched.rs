//! Which request's command goes out next: first-ready, first-come, first-served.
//!
//! Column commands to open rows go before those that must wait for a row; the older goes before the younger. Reads go before
//! writes until many writes wait or no read can go; then writes go until few are left. Nothing is passed over for longer than
//! [`STARVED_AFTER`].
//!
//! Entries stand in order of age; entry n is bit n of every mask.
//!
//! Source: Rixner et al., "Memory access scheduling" (ISCA 2000).

use warpwave_hw::bits::ones;

use super::bank::Location;
use super::timing::Clockwork;
use crate::config::MAX_CHANNEL_QUEUE;
use crate::proto::mem::Packet;

/// Command cycles after which the oldest request goes before all others of its bank. Assumed.
pub(super) const STARVED_AFTER: u64 = 1000;

/// An entry is a bit of a mask.
const _: () = assert!(MAX_CHANNEL_QUEUE <= u64::BITS);

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
    pub(super) port: u16,
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
    /// The bank of each entry: side by side, as every choice asks for several.
    bank_of: [u32; MAX_CHANNEL_QUEUE as usize],
    depth: usize,
    /// Entries of each bank.
    of_bank: Vec<u64>,
    /// Entries whose row is open.
    hits: u64,
    /// Reads, and writes, that need not wait for an older entry of the same line.
    ready: [u64; 2],
    /// Entries that must.
    held: u64,
    n_writes: usize,
    writing: bool,
    /// Before this edge no row command can go out, unless something changes that makes it 0.
    row_from: u64,
}

impl Queue {
    /// An empty queue of at most `depth` entries, for so many banks.
    pub(super) fn new(depth: u32, banks: u32) -> Self {
        assert!(
            (1..=MAX_CHANNEL_QUEUE).contains(&depth),
            "a queue has 1 to {MAX_CHANNEL_QUEUE} entries, not {depth}"
        );
        Queue {
            entries: Vec::with_capacity(depth as usize),
            bank_of: [0; MAX_CHANNEL_QUEUE as usize],
            depth: depth as usize,
            of_bank: vec![0; banks as usize],
            hits: 0,
            ready: [0; 2],
            held: 0,
            n_writes: 0,
            writing: false,
            row_from: 0,
        }
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.depth as u32, self.of_bank.len() as u32);
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
        let of_bank = &mut self.of_bank[entry.at.bank as usize];
        let held = ones(*of_bank).any(|other| self.entries[other].at == entry.at);
        *of_bank |= 1 << n;
        self.hits |= u64::from(open) << n;
        let mask = match held {
            true => &mut self.held,
            false => &mut self.ready[usize::from(entry.write)],
        };
        *mask |= 1 << n;
        self.n_writes += usize::from(entry.write);
        if !open {
            self.row_from = 0;
        }
        self.bank_of[n] = entry.at.bank;
        self.entries.push(entry);
    }

    /// Takes a request out that is done.
    pub(super) fn remove(&mut self, n: usize) -> Entry {
        self.bank_of.copy_within(n + 1..self.entries.len(), n);
        let entry = self.entries.remove(n);
        self.n_writes -= usize::from(entry.write);
        let below = (1 << n) - 1;
        let close = |mask: &mut u64| *mask = (*mask & below) | (*mask >> 1 & !below);
        let [reads, writes] = &mut self.ready;
        [&mut self.hits, reads, writes, &mut self.held]
            .into_iter()
            .for_each(close);
        self.of_bank.iter_mut().for_each(close);
        let of_bank = self.of_bank[entry.at.bank as usize];
        // The next of the same line need wait no longer.
        let next = ones(self.held & of_bank & !below).find(|&other| self.entries[other].at == entry.at);
        if let Some(next) = next {
            self.held &= !(1 << next);
            self.ready[usize::from(self.entries[next].write)] |= 1 << next;
        }
        // A row that nobody wants any more may be closed.
        if next.is_some() || self.hits & self.in_direction() & of_bank == 0 {
            self.row_from = 0;
        }
        entry
    }

    /// A bank's row was opened, or closed.
    pub(super) fn row_changed(&mut self, bank: u32, row: Option<u32>) {
        let of_bank = self.of_bank[bank as usize];
        let wants_it = |&n: &usize| row == Some(self.entries[n].at.row);
        let open = ones(of_bank).filter(wants_it).fold(0, |open, n| open | 1 << n);
        self.hits = self.hits & !of_bank | open;
        self.row_from = 0;
    }

    /// Every row was closed.
    pub(super) fn all_rows_closed(&mut self) {
        self.hits = 0;
        self.row_from = 0;
    }

    /// The bank of the oldest entry, if that has waited too long.
    pub(super) fn starving(&self, edge: u64) -> Option<u32> {
        let oldest = self.entries.first()?;
        (edge >= self.starved_at()).then_some(oldest.at.bank)
    }

    /// Chooses between reads and writes for this edge.
    pub(super) fn choose_direction(&mut self, starving: Option<u32>) {
        let before = self.writing;
        self.writing = match starving {
            Some(_) => self.entries[0].write,
            None => self.would_write(),
        };
        if self.writing != before {
            self.row_from = 0;
        }
    }

    fn would_write(&self) -> bool {
        let [reads, writes] = self.ready;
        if writes == 0 {
            return false;
        }
        let enough = if self.writing {
            self.depth / 8 + 1
        } else {
            self.depth / 2
        };
        reads == 0 || self.n_writes >= enough
    }

    /// The entry whose column command goes out.
    #[inline]
    pub(super) fn column(&self, edge: u64, starving: Option<u32>, clockwork: &Clockwork) -> Choice {
        let mut candidates = self.hits & self.in_direction();
        if let Some(bank) = starving
            && candidates & 1 == 0
        {
            candidates &= !self.of_bank[bank as usize];
        }
        // While the bus is not free nobody need be asked.
        let free = clockwork.any_column_at(self.writing);
        if candidates != 0 && free > edge {
            return Choice::At(free);
        }
        self.first_of_banks(candidates, edge, |bank| clockwork.column_at(bank, self.writing))
    }

    /// The entry for which a bank is precharged or activated.
    pub(super) fn row(&mut self, edge: u64, starving: Option<u32>, clockwork: &Clockwork) -> Choice {
        if edge < self.row_from {
            return Choice::At(self.row_from);
        }
        let in_direction = self.in_direction();
        let candidates = in_direction & !self.hits & !self.of_kept_rows(in_direction, starving);
        let choice = self.first_of_banks(candidates, edge, |bank| match clockwork.banks[bank].row {
            None => clockwork.activate_at(bank),
            Some(_) => clockwork.precharge_at(bank),
        });
        if let Choice::At(at) = choice {
            self.row_from = at.min(self.starved_at());
        }
        choice
    }

    /// The oldest candidate whose bank is ready. Entries of one bank may go in the same cycle: the oldest stands for them.
    #[inline]
    fn first_of_banks(&self, mut candidates: u64, edge: u64, ready_at: impl Fn(usize) -> u64) -> Choice {
        let mut first = u64::MAX;
        while candidates != 0 {
            let n = candidates.trailing_zeros() as usize;
            let bank = self.bank(n);
            candidates &= !self.of_bank[bank];
            let at = ready_at(bank);
            if at <= edge {
                return Choice::Now(n);
            }
            first = first.min(at);
        }
        Choice::At(first)
    }

    #[inline]
    fn bank(&self, n: usize) -> usize {
        self.bank_of[n % MAX_CHANNEL_QUEUE as usize] as usize
    }

    #[inline]
    fn in_direction(&self) -> u64 {
        self.ready[usize::from(self.writing)]
    }

    /// Entries of banks whose open row is still wanted: it is not closed, but for an entry that starves.
    fn of_kept_rows(&self, in_direction: u64, starving: Option<u32>) -> u64 {
        let mut hits = self.hits & in_direction;
        let mut kept = 0;
        while hits != 0 {
            let bank = self.bank(hits.trailing_zeros() as usize);
            let of_bank = self.of_bank[bank];
            hits &= !of_bank;
            if starving != Some(bank as u32) {
                kept |= of_bank;
            }
        }
        kept
    }
}
