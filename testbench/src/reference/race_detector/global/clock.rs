//! Vector clock over the warps of a launch: sparse by CTA, and shared until it changes.

use std::rc::Rc;

/// Steps of the warps of a CTA.
type Steps = Rc<[u32]>;

/// For each warp, the last step that is ordered before. CTAs without an entry have no such step.
#[derive(Clone, Default, Debug)]
pub(super) struct Clock {
    /// CTAs, ascending.
    ctas: Rc<Vec<(u32, Steps)>>,
}

impl Clock {
    /// True if no step is ordered before.
    pub fn is_empty(&self) -> bool {
        self.ctas.is_empty()
    }

    /// The last step of a warp that is ordered before. Steps count from 1.
    pub fn get(&self, cta: u32, warp: usize) -> u32 {
        self.find(cta).map_or(0, |steps| steps[warp])
    }

    /// The steps of a CTA.
    fn find(&self, cta: u32) -> Option<&Steps> {
        // Most clocks have the own CTA alone.
        if let [(only, steps)] = &self.ctas[..] {
            return (*only == cta).then_some(steps);
        }
        let n = self.ctas.binary_search_by_key(&cta, |(cta, _)| *cta).ok()?;
        Some(&self.ctas[n].1)
    }

    /// The clock with another step for one warp. `warps` is the number of warps of each CTA.
    pub fn with(&self, cta: u32, warp: usize, step: u32, warps: usize) -> Clock {
        let mut steps: Vec<u32> = self.find(cta).map_or_else(|| vec![0; warps], |steps| steps.to_vec());
        steps[warp] = step;
        let mut ctas = (*self.ctas).clone();
        match ctas.binary_search_by_key(&cta, |(cta, _)| *cta) {
            Ok(n) => ctas[n].1 = steps.into(),
            Err(n) => ctas.insert(n, (cta, steps.into())),
        }
        Clock { ctas: Rc::new(ctas) }
    }

    /// Takes the later step of each warp from the two clocks.
    pub fn join(&mut self, other: &Clock) {
        // Warps and locations share clocks, so both may be one.
        if other.is_empty() || Rc::ptr_eq(&self.ctas, &other.ctas) {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        // A clock that covers the other is shared, not copied.
        let (mut mine, mut theirs) = (true, true);
        let mut joined = Vec::with_capacity(self.ctas.len().max(other.ctas.len()));
        let (mut a, mut b) = (self.ctas.iter().peekable(), other.ctas.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(x), Some(y)) if x.0 == y.0 => {
                    let steps = later(&x.1, &y.1);
                    mine &= Rc::ptr_eq(&steps, &x.1);
                    // Equal steps in two allocations count as theirs too, so that the clock can be shared.
                    theirs &= Rc::ptr_eq(&steps, &y.1) || steps == y.1;
                    joined.push((x.0, steps));
                    a.next();
                    b.next();
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    theirs = false;
                    joined.extend(a.next().cloned());
                }
                _ => {
                    mine = false;
                    joined.extend(b.next().cloned());
                }
            }
        }
        match (mine, theirs) {
            (true, _) => {}
            (_, true) => *self = other.clone(),
            _ => self.ctas = Rc::new(joined),
        }
    }

    /// Limits the steps of other CTAs to the steps in `known`. Steps of CTA `own` stay.
    pub fn within(&self, own: u32, known: &Clock) -> Clock {
        let kept = |(cta, steps): &(u32, Steps)| {
            if *cta == own {
                return Some((*cta, steps.clone()));
            }
            let others = known.find(*cta)?;
            Some((*cta, steps.iter().zip(&others[..]).map(|(&a, &b)| a.min(b)).collect()))
        };
        Clock {
            ctas: Rc::new(self.ctas.iter().filter_map(kept).collect()),
        }
    }
}

/// The later step of each warp: one of the two if it has all of them.
fn later(a: &Steps, b: &Steps) -> Steps {
    if Rc::ptr_eq(a, b) || a.iter().zip(&b[..]).all(|(a, b)| a >= b) {
        return a.clone();
    }
    if a.iter().zip(&b[..]).all(|(a, b)| a <= b) {
        return b.clone();
    }
    a.iter().zip(&b[..]).map(|(&a, &b)| a.max(b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(steps: &[(u32, usize, u32)]) -> Clock {
        let with = |clock: Clock, &(cta, warp, step): &(u32, usize, u32)| clock.with(cta, warp, step, 2);
        steps.iter().fold(Clock::default(), with)
    }

    #[test]
    fn join_takes_the_later_step_of_each_warp() {
        let mut joined = clock(&[(1, 0, 5), (3, 1, 2)]);
        joined.join(&clock(&[(0, 1, 7), (1, 0, 4), (1, 1, 9), (3, 1, 3)]));
        let steps = [
            (0, 0, 0),
            (0, 1, 7),
            (1, 0, 5),
            (1, 1, 9),
            (2, 0, 0),
            (3, 0, 0),
            (3, 1, 3),
        ];
        for (cta, warp, step) in steps {
            assert_eq!(joined.get(cta, warp), step, "CTA {cta}, warp {warp}");
        }
    }

    #[test]
    fn clock_that_covers_the_other_is_shared() {
        let (small, large) = (clock(&[(1, 0, 5)]), clock(&[(0, 0, 1), (1, 0, 6)]));
        for (first, second) in [(&small, &large), (&large, &small)] {
            let mut joined = first.clone();
            joined.join(second);
            assert!(Rc::ptr_eq(&joined.ctas, &large.ctas));
        }
    }

    #[test]
    fn steps_of_other_ctas_are_limited_to_the_known_ones() {
        let limited = clock(&[(0, 0, 5), (1, 0, 6), (1, 1, 6), (2, 0, 3)]).within(0, &clock(&[(1, 0, 4), (1, 1, 9)]));
        let steps = [(0, 0, 5), (1, 0, 4), (1, 1, 6), (2, 0, 0)];
        for (cta, warp, step) in steps {
            assert_eq!(limited.get(cta, warp), step, "CTA {cta}, warp {warp}");
        }
    }
}
