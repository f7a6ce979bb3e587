//! Groups of asynchronous operations of one warp: copies (LDGSTS), matrix products (HGMMA) or bulk copies.
//!
//! A commit (LDGDEPBAR for copies) closes the open group. A wait (DEPBAR) blocks the warp until at most the last n closed groups have
//! operations in flight. Each warp has one [`AsyncGroups`] per kind of operation.

/// Maximum number of groups in flight. A commit of one more waits for the oldest.
const GROUPS: usize = crate::proto::issue::GROUPS as usize;

/// Operations in flight by group, in a ring of groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AsyncGroups {
    /// Operations in flight of each group.
    pending: [u16; GROUPS],
    /// Index of the open group.
    open: u8,
    /// Number of last closed groups that may be pending when the wait ends. `None` while the warp does not wait.
    awaited: Option<u8>,
}

impl AsyncGroups {
    /// Adds an operation to the open group. Returns the group's index.
    pub fn begin(&mut self) -> u8 {
        self.pending[self.open as usize] += 1;
        self.open
    }

    /// Completes an operation of a group.
    pub fn end(&mut self, group: u8) {
        self.pending[group as usize] -= 1;
        if self.awaited.is_some_and(|n| self.is_met(n)) {
            self.awaited = None;
        }
    }

    /// Closes the open group. If all groups are in flight, the warp waits for the oldest.
    pub fn close(&mut self) {
        self.open = (self.open + 1) % GROUPS as u8;
        // The ring is full: the next group would share its counter with one in flight.
        if self.pending[self.open as usize] > 0 {
            self.wait(GROUPS as u8 - 1);
        }
    }

    /// Makes the warp wait until at most the last `n` closed groups are pending.
    pub fn wait(&mut self, n: u8) {
        self.awaited = (!self.is_met(n)).then_some(n);
    }

    /// True while the warp waits.
    pub fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// True if at most the last `n` closed groups are pending.
    fn is_met(&self, n: u8) -> bool {
        (n as usize + 1..=GROUPS).all(|back| {
            // One step back from the open group is the group closed last.
            let group = (self.open as usize + GROUPS - back % GROUPS) % GROUPS;
            // GROUPS steps back is the open group's own slot. Only a full ring waits for it.
            (back == GROUPS && n as usize != GROUPS - 1) || self.pending[group] == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_for_all_but_one_of_two_groups_ends_with_the_older_group() {
        let mut groups = AsyncGroups::default();
        let first = groups.begin();
        groups.close();
        let second = groups.begin();
        groups.close();
        groups.wait(1);
        assert!(groups.is_awaited());
        groups.end(second);
        assert!(groups.is_awaited());
        groups.end(first);
        assert!(!groups.is_awaited());
    }

    #[test]
    fn wait_ignores_the_open_group() {
        let mut groups = AsyncGroups::default();
        groups.begin();
        groups.wait(0);
        assert!(!groups.is_awaited());
        groups.close();
        groups.wait(0);
        assert!(groups.is_awaited());
    }

    #[test]
    fn full_ring_waits_for_the_oldest_group() {
        let mut groups = AsyncGroups::default();
        let numbers: Vec<u8> = (0..8).map(|_| (groups.begin(), groups.close()).0).collect();
        assert!(groups.is_awaited());
        groups.end(numbers[1]);
        assert!(groups.is_awaited());
        groups.end(numbers[0]);
        assert!(!groups.is_awaited());
    }
}
