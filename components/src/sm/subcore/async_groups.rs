//! The asynchronous operations of one warp, in groups: copies (LDGSTS), products of a warp group, bulk groups.
//!
//! For copies: LDGDEPBAR closes the open group; DEPBAR waits until of the closed groups only the last n have operations in flight.
//! The scheduler keeps one counter set for each kind of operation.

/// Groups that may be in flight. Closing one more waits for the oldest.
const GROUPS: usize = crate::proto::issue::GROUPS as usize;

/// Operations in flight, by group, in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AsyncGroups {
    pending: [u16; GROUPS],
    /// Index of the open group.
    open: u8,
    /// Closed groups that may be pending when the warp continues. `None` while it does not wait.
    awaited: Option<u8>,
}

impl AsyncGroups {
    /// An operation is issued. Returns its group.
    pub fn begin(&mut self) -> u8 {
        self.pending[self.open as usize] += 1;
        self.open
    }

    /// An operation of a group is complete.
    pub fn end(&mut self, group: u8) {
        self.pending[group as usize] -= 1;
        if self.awaited.is_some_and(|n| self.holds(n)) {
            self.awaited = None;
        }
    }

    /// Closes the open group. If the ring is full, the warp waits for the oldest group.
    pub fn close(&mut self) {
        self.open = (self.open + 1) % GROUPS as u8;
        if self.pending[self.open as usize] > 0 {
            self.wait(GROUPS as u8 - 1);
        }
    }

    /// The warp waits until, of the closed groups, only the last `n` are pending.
    pub fn wait(&mut self, n: u8) {
        self.awaited = (!self.holds(n)).then_some(n);
    }

    /// True while the warp waits.
    pub fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// True if, of the closed groups, only the last `n` are pending.
    fn holds(&self, n: u8) -> bool {
        (n as usize + 1..=GROUPS).all(|back| {
            let group = (self.open as usize + GROUPS - back % GROUPS) % GROUPS;
            // A full turn back is the open group itself: only a full ring waits for it.
            (back == GROUPS && n as usize != GROUPS - 1) || self.pending[group] == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_wait_for_all_but_one_goes_on_when_the_older_is_done() {
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
    fn open_group_is_not_waited_for() {
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
