//! When the heads of inputs become visible: each is asked once, and not at every edge.
//!
//! Whoever sends from another tile has run before: what becomes visible in a window is there when it begins.

use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;

use super::ports::Ports;

/// Cycles after which a place is used again, more than a window has.
const PLACES: usize = 64;

/// Inputs by the cycle in which their heads become visible, for one window.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    /// For each cycle modulo [`PLACES`] a bit for each input, and whether any is set.
    inputs: Box<[u64]>,
    cycles: u64,
    words: usize,
    /// The first cycle that was not taken.
    from: Cycle,
}

impl Calendar {
    /// Nothing is known of so many inputs.
    pub(super) fn new(inputs: usize) -> Self {
        let words = inputs.div_ceil(64);
        Calendar {
            inputs: vec![0; PLACES * words].into(),
            cycles: 0,
            words,
            from: Cycle::ZERO,
        }
    }

    /// A window begins: all that was noted before is visible.
    pub(super) fn begin(&mut self, from: Cycle, visible: &mut Ports) {
        self.take_places(u64::MAX, visible);
        self.from = from;
    }

    /// An input's head becomes visible in a cycle of the window.
    #[inline]
    pub(super) fn note(&mut self, at: Cycle, input: usize) {
        let place = at.0 as usize % PLACES;
        self.cycles |= 1 << place;
        self.inputs[place * self.words + input / 64] |= 1 << (input % 64);
    }

    /// Those that have become visible until now.
    #[inline]
    pub(super) fn take(&mut self, now: Cycle, visible: &mut Ports) {
        let n = (now.0 + 1).saturating_sub(self.from.0);
        let places = u64::MAX
            .checked_shr(PLACES as u32 - n.min(PLACES as u64) as u32)
            .unwrap_or(0);
        let places = places.rotate_left((self.from.0 % PLACES as u64) as u32);
        self.from = now + 1;
        if self.cycles & places != 0 {
            self.take_places(places, visible);
        }
    }

    fn take_places(&mut self, places: u64, visible: &mut Ports) {
        for place in ones(self.cycles & places) {
            let inputs = &mut self.inputs[place * self.words..][..self.words];
            for (n, inputs) in inputs.iter_mut().enumerate() {
                visible.add_some(n, std::mem::take(inputs));
            }
        }
        self.cycles &= !places;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inputs that are visible in a cycle for the first time.
    fn taken(calendar: &mut Calendar, now: u64) -> Vec<usize> {
        let mut visible = Ports::none(100);
        calendar.take(Cycle(now), &mut visible);
        (0..100).filter(|&n| visible.first_from(n) == Some(n)).collect()
    }

    #[test]
    fn input_is_taken_once_in_the_first_cycle_asked_from_its_own_on() {
        let mut calendar = Calendar::new(100);
        calendar.begin(Cycle(1000), &mut Ports::none(100));
        for (at, input) in [(1000, 3), (1002, 70), (1002, 4), (1059, 5)] {
            calendar.note(Cycle(at), input);
        }
        assert_eq!(taken(&mut calendar, 1000), [3]);
        assert_eq!(taken(&mut calendar, 1001), []);
        assert_eq!(taken(&mut calendar, 1058), [4, 70]);
        assert_eq!(taken(&mut calendar, 1059), [5]);
        assert_eq!(taken(&mut calendar, 1059), []);
    }

    #[test]
    fn window_begins_what_nobody_took_in_the_last_is_visible() {
        let mut calendar = Calendar::new(100);
        calendar.begin(Cycle(0), &mut Ports::none(100));
        calendar.note(Cycle(59), 7);
        let mut visible = Ports::none(100);
        calendar.begin(Cycle(60), &mut visible);
        assert_eq!(visible.first_from(0), Some(7));
        calendar.note(Cycle(119), 8);
        assert_eq!(taken(&mut calendar, 118), []);
        assert_eq!(taken(&mut calendar, 119), [8]);
    }
}
