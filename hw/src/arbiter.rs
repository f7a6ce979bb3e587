//! A round-robin arbiter over a bit mask of requests.
//!
//! # Promises
//! - The one granted is the first request at or after the place behind the last grant, so whoever keeps asking is served after
//!   at most as many grants as there are others.
//! - A choice alone changes nothing; with no request nothing changes.

/// Whose turn it is, among up to 64.
///
/// ```
/// use warpwave_hw::arbiter::RoundRobin;
/// let mut arbiter = RoundRobin::new();
/// let grants: Vec<_> = (0..4).map(|_| arbiter.grant(0b1011)).collect();
/// assert_eq!(grants, [Some(0), Some(1), Some(3), Some(0)]);
/// assert_eq!(arbiter.grant(0), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundRobin {
    next: u32,
}

impl RoundRobin {
    /// An arbiter whose first turn is bit 0's.
    pub const fn new() -> Self {
        RoundRobin { next: 0 }
    }

    /// The request whose turn it is. The turn does not pass on: see [`RoundRobin::passed`].
    #[inline]
    pub fn choose(&self, requests: u64) -> Option<usize> {
        if requests == 0 {
            return None;
        }
        let ahead = requests.rotate_right(self.next).trailing_zeros();
        Some(((self.next + ahead) % 64) as usize)
    }

    /// The choice was taken: the turn is with the one behind it.
    #[inline]
    pub fn passed(&mut self, chosen: usize) {
        self.next = (chosen as u32 + 1) % 64;
    }

    /// Chooses, and passes the turn on.
    #[inline]
    pub fn grant(&mut self, requests: u64) -> Option<usize> {
        let chosen = self.choose(requests)?;
        self.passed(chosen);
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ask_each_is_served_once_a_round() {
        for n in [1, 2, 5, 63, 64] {
            let mut arbiter = RoundRobin::new();
            let all = u64::MAX >> (64 - n);
            let grants: Vec<_> = (0..3 * n).filter_map(|_| arbiter.grant(all)).collect();
            let expected: Vec<_> = (0..3 * n).map(|k| k % n).collect();
            assert_eq!(grants, expected, "{n} ask");
        }
    }

    #[test]
    fn refused_choice_keeps_its_turn() {
        let mut arbiter = RoundRobin::new();
        arbiter.passed(2);
        assert_eq!(arbiter.choose(0b11001), Some(3));
        assert_eq!(arbiter.choose(0b10001), Some(4));
        assert_eq!(arbiter.choose(0b00001), Some(0));
        assert_eq!(arbiter.grant(0b11001), Some(3));
        assert_eq!(arbiter.grant(0b11001), Some(4));
    }

    #[test]
    fn whoever_keeps_asking_waits_for_each_other_once_at_most() {
        let mut arbiter = RoundRobin::new();
        let mut others = 1u64;
        for _ in 0..200 {
            others = others
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let waited = (0..).find(|_| arbiter.grant(others | 1 << 17) == Some(17));
            assert!(waited <= Some(63));
        }
    }
}
