//! The TLB of an SM: the pages with a translation, in the order of their last use.
//!
//! The L1 is virtually indexed (Jia et al., 2018), so only packets for the crossbar are looked up: misses, bypasses and bulk copies.
//!
//! | Page | Cycles that the packet waits |
//! |---|---|
//! | in an entry | 0 |
//! | not in an entry, and an entry was never used | 0: the page takes the entry, and the lookup counts as a hit |
//! | not in an entry, all entries used | `miss_latency`; the page replaces the least recently used one |
//!
//! So the TLB begins with the first pages of its SM, as after an earlier run of the same kernel. Assumed: the published figures are of warm
//! TLBs. A footprint within the reach takes no cycle more. Launches keep the entries.
//!
//! Several misses overlap: each begins at its lookup. But packets leave in the order of their lookups, so a hit waits for an earlier miss.
//! Assumed. The order of replacement, least recently used first, is assumed too.

use warpwave_hw::invariant::Invariants;

use crate::config::Tlb as Config;

/// The entries.
pub(super) struct Tlb {
    config: Config,
    /// Pages, the most recently used first.
    pages: Vec<u32>,
}

impl Tlb {
    /// A TLB whose entries were never used. `None` for a part without entries.
    pub(super) fn new(config: Config) -> Option<Self> {
        (config.entries > 0).then(|| Tlb {
            config,
            pages: Vec::with_capacity(config.entries as usize),
        })
    }

    /// Looks up the page of a line. True if the lookup hits.
    #[inline]
    pub(super) fn look_up(&mut self, line: u64) -> bool {
        // The check of a configuration bounds device memory, so 32 bits hold the number of a page.
        let page = (line >> self.config.page.trailing_zeros()) as u32;
        // Most packets are for the page of the packet before.
        self.pages.first() == Some(&page) || self.use_page(page)
    }

    /// Moves a page to the front. Replaces the least recently used one if the page has no entry. True for a hit.
    fn use_page(&mut self, page: u32) -> bool {
        let entries = self.config.entries as usize;
        let (place, hits) = match self.pages.iter().position(|&of| of == page) {
            Some(place) => (place, true),
            None if self.pages.len() < entries => {
                self.pages.push(page);
                (self.pages.len() - 1, true)
            }
            None => (entries - 1, false),
        };
        self.pages.copy_within(..place, 1);
        self.pages[0] = page;
        hits
    }

    /// No page has two entries, and no more entries are in use than the TLB has.
    pub(super) fn invariants(&self, check: &mut Invariants) {
        let is_double = |&(n, page): &(usize, &u32)| self.pages[..n].contains(page);
        let doubles = self.pages.iter().enumerate().filter(is_double).count();
        check.equal("pages with two TLB entries", doubles as u64, 0);
        check.at_most("TLB entries", self.pages.len() as u64, self.config.entries.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The misses of lookups of these pages in a TLB with `entries` entries.
    fn misses(entries: u32, pages: &[u64]) -> Vec<bool> {
        let config = Config {
            entries,
            page: 4096,
            miss_latency: 9,
        };
        let mut tlb = Tlb::new(config).expect("it has entries");
        let look_up = |&page: &u64| {
            let hits = tlb.look_up(0x1000_0000 + page * 4096 + 128 * (page % 32));
            assert_eq!(Invariants::broken(|check| tlb.invariants(check)), [""; 0]);
            !hits
        };
        pages.iter().map(look_up).collect()
    }

    #[test]
    fn first_pages_take_the_free_entries_without_a_miss() {
        assert_eq!(misses(2, &[4, 7, 4, 7, 7]), [false; 5]);
        assert_eq!(misses(2, &[4, 7, 9]), [false, false, true]);
    }

    #[test]
    fn miss_replaces_the_least_recently_used_page() {
        // 4 is used after 7, so 9 replaces 7. Then 7 replaces 4.
        assert_eq!(
            misses(2, &[4, 7, 4, 9, 4, 9, 7, 9, 4]),
            [false, false, false, true, false, false, true, false, true]
        );
    }

    #[test]
    fn ring_of_one_page_more_than_the_entries_misses_each_time_after_the_first_lap() {
        for entries in [1, 2, 4, 16] {
            let lap: Vec<u64> = (0..=u64::from(entries)).collect();
            let found = misses(entries, &lap.repeat(3));
            let (first, later) = found.split_at(entries as usize);
            assert!(first.iter().all(|missed| !missed), "{entries}: {found:?}");
            assert!(later.iter().all(|missed| *missed), "{entries}: {found:?}");
            assert_eq!(misses(entries, &lap[1..].repeat(3)), vec![false; 3 * entries as usize]);
        }
    }
}
