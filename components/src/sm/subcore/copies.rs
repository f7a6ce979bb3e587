//! The asynchronous copies of one warp (LDGSTS), in groups.
//!
//! LDGDEPBAR closes the group begun; DEPBAR waits until at most the n groups closed last have copies under way.

/// Groups that may be under way; closing one more waits for the oldest.
const GROUPS: usize = crate::proto::issue::GROUPS as usize;

/// Copies under way by group, in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copies {
    pending: [u16; GROUPS],
    /// The group that is open.
    open: u8,
    /// The warp waits until at most so many closed groups are pending.
    awaited: Option<u8>,
}

impl Copies {
    /// A copy is issued; gives its group.
    pub fn begin(&mut self) -> u8 {
        self.pending[self.open as usize] += 1;
        self.open
    }

    /// A copy of a group is in shared memory.
    pub fn end(&mut self, group: u8) {
        self.pending[group as usize] -= 1;
        if self.awaited.is_some_and(|n| self.holds(n)) {
            self.awaited = None;
        }
    }

    /// Closes the open group. Where the ring is full the warp waits for the oldest.
    pub fn close(&mut self) {
        self.open = (self.open + 1) % GROUPS as u8;
        if self.pending[self.open as usize] > 0 {
            self.wait(GROUPS as u8 - 1);
        }
    }

    /// The warp waits until at most the `n` groups closed last are pending.
    pub fn wait(&mut self, n: u8) {
        self.awaited = (!self.holds(n)).then_some(n);
    }

    /// Whether the warp waits.
    pub fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    fn holds(&self, n: u8) -> bool {
        (n as usize + 1..=GROUPS).all(|back| {
            let group = (self.open as usize + GROUPS - back % GROUPS) % GROUPS;
            // A full turn back is the open group itself, which nobody waits for unless the ring is full.
            (back == GROUPS && n as usize != GROUPS - 1) || self.pending[group] == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_wait_for_all_but_one_goes_on_when_the_older_is_done() {
        let mut copies = Copies::default();
        let first = copies.begin();
        copies.close();
        let second = copies.begin();
        copies.close();
        copies.wait(1);
        assert!(copies.is_awaited());
        copies.end(second);
        assert!(copies.is_awaited());
        copies.end(first);
        assert!(!copies.is_awaited());
    }

    #[test]
    fn open_group_is_not_waited_for() {
        let mut copies = Copies::default();
        copies.begin();
        copies.wait(0);
        assert!(!copies.is_awaited());
        copies.close();
        copies.wait(0);
        assert!(copies.is_awaited());
    }

    #[test]
    fn full_ring_waits_for_the_oldest_group() {
        let mut copies = Copies::default();
        let groups: Vec<u8> = (0..8).map(|_| (copies.begin(), copies.close()).0).collect();
        assert!(copies.is_awaited());
        copies.end(groups[1]);
        assert!(copies.is_awaited());
        copies.end(groups[0]);
        assert!(!copies.is_awaited());
    }
}
