//! A round-robin arbiter over a bit mask of requests.
//!
//! # Promises
//! - A grant goes to the next request after the last grant, in the order of bits. So a request waits for at most one grant of each
//!   other request.
//! - [`choose`](RoundRobin::choose) changes nothing. [`grant`](RoundRobin::grant) without a request changes nothing.

/// A round-robin arbiter for up to 64 requests.
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
    /// The bit that has the turn.
    next: u32,
}

impl RoundRobin {
    /// Creates an arbiter. Bit 0 has the first turn.
    pub const fn new() -> Self {
        RoundRobin { next: 0 }
    }

    /// The request that would be granted. The turn does not move: see [`RoundRobin::advance_past`].
    #[inline]
    pub fn choose(&self, requests: u64) -> Option<usize> {
        if requests == 0 {
            return None;
        }
        let ahead = requests.rotate_right(self.next).trailing_zeros();
        Some(((self.next + ahead) % 64) as usize)
    }

    /// Moves the turn to the bit after `chosen`.
    #[inline]
    pub fn advance_past(&mut self, chosen: usize) {
        self.next = (chosen as u32 + 1) % 64;
    }

    /// Grants a request and moves the turn.
    #[inline]
    pub fn grant(&mut self, requests: u64) -> Option<usize> {
        let chosen = self.choose(requests)?;
        self.advance_past(chosen);
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_requests_are_granted_once_per_round() {
        for n in [1, 2, 5, 63, 64] {
            let mut arbiter = RoundRobin::new();
            let all = u64::MAX >> (64 - n);
            let grants: Vec<_> = (0..3 * n).filter_map(|_| arbiter.grant(all)).collect();
            let expected: Vec<_> = (0..3 * n).map(|k| k % n).collect();
            assert_eq!(grants, expected, "{n} requests");
        }
    }

    #[test]
    fn choice_without_a_grant_keeps_its_turn() {
        let mut arbiter = RoundRobin::new();
        arbiter.advance_past(2);
        assert_eq!(arbiter.choose(0b11001), Some(3));
        assert_eq!(arbiter.choose(0b10001), Some(4));
        assert_eq!(arbiter.choose(0b00001), Some(0));
        assert_eq!(arbiter.grant(0b11001), Some(3));
        assert_eq!(arbiter.grant(0b11001), Some(4));
    }

    #[test]
    fn steady_request_waits_for_each_other_at_most_once() {
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
