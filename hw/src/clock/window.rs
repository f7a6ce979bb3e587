//! Windows: which cycles the tiles of a side run next, from where the sides stand.
//!
//! ```text
//!   leaves --------behind|-------leaves|- - - - - - - - - - - - - -|end
//!   hub    ------------------------------------|                   |
//!                        '----- its reach -----'---- once more ----'
//! ```
//!
//! A hub's *reach* is the shortest latency of its links, or the quantum if that is shorter: nothing that a leaf sends, or takes, can
//! reach it sooner. So a hub runs one reach beyond the leaf that is behind all others, and leaves run to one reach beyond every hub. A
//! desk that promises to answer only holds just those leaves that it may have to answer ([`crate::tile::Promise`]): they stay behind.
//!
//! | turn | who runs | until when |
//! |---|---|---|
//! | [`Turn::Hubs`] | hubs and desks | one reach beyond the leaves behind |
//! | [`Turn::Leaves`] | leaves | one reach beyond the hubs, and beyond the desks too if they do not promise |
//! | [`Turn::Desks`] | desks, when leaves stayed behind | one reach beyond these, which then may catch up |

use std::sync::atomic::{AtomicU64, Ordering};

use super::sides::Side;
use crate::time::Cycle;

/// Who runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    Hubs,
    Desks,
    Leaves,
}

/// Number of turns.
pub const TURNS: usize = Turn::ALL.len();

impl Turn {
    const ALL: [Turn; 3] = [Turn::Hubs, Turn::Desks, Turn::Leaves];

    /// The sides that run.
    pub fn sides(self) -> &'static [Side] {
        match self {
            Turn::Hubs => &[Side::Hub, Side::Desk],
            Turn::Desks => &[Side::Desk],
            Turn::Leaves => &[Side::Leaf],
        }
    }
}

/// Where the tiles of a machine stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stand {
    /// Up to here all have run.
    pub floor: Cycle,
    /// Up to here all leaves have run, and how far most of them.
    pub behind: Cycle,
    pub leaves: Cycle,
    /// Where the leaves behind were when the hubs ran last, and the desks; [`Cycle::NEVER`] if none has run since all were at the floor.
    hubs: Cycle,
    desks: Cycle,
    /// Nobody runs further.
    pub limit: Cycle,
}

impl Stand {
    /// All have run up to here.
    pub fn at(now: Cycle, limit: Cycle) -> Self {
        Stand {
            floor: now,
            behind: now,
            leaves: now,
            hubs: Cycle::NEVER,
            desks: Cycle::NEVER,
            limit,
        }
    }

    /// Up to where a tile of a side has run that has this reach; most of the leaves.
    #[inline]
    pub fn of(&self, side: Side, reach: u64) -> Cycle {
        match side {
            Side::Leaf => self.leaves,
            Side::Hub => self.beyond(self.hubs, reach),
            Side::Desk => self.beyond(self.desks, reach),
        }
    }

    #[inline]
    fn beyond(&self, leaves: Cycle, reach: u64) -> Cycle {
        match leaves {
            Cycle::NEVER => self.floor,
            leaves => self.floor.max((leaves + reach).min(self.limit)),
        }
    }

    /// Whether desks have run, so that what they promise is of now.
    pub fn have_desks_run(&self) -> bool {
        self.desks != Cycle::NEVER
    }

    /// When hubs, or desks alone, have run as far as the leaves let them.
    pub fn after_hubs(self, turn: Turn) -> Self {
        Stand {
            hubs: if turn == Turn::Hubs { self.behind } else { self.hubs },
            desks: self.behind,
            ..self
        }
    }

    /// When the leaves have run up to `end`, some only up to `behind`; those that were ahead stay there.
    pub fn after_leaves(self, end: Cycle, behind: Cycle) -> Self {
        let leaves = self.leaves.max(end);
        Stand {
            leaves,
            behind: behind.min(leaves),
            ..self
        }
    }
}

/// What the links of a machine allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reaches {
    /// The shortest reach of the hubs; without hubs, of all tiles.
    pub hubs: u64,
    /// The shortest of the desks, if there are any.
    pub desks: Option<u64>,
    /// The longest of all these.
    pub longest: u64,
}

impl Reaches {
    /// With no reach longer than this.
    pub fn within(self, quantum: u64) -> Self {
        Reaches {
            hubs: self.hubs.min(quantum),
            desks: self.desks.map(|reach| reach.min(quantum)),
            longest: self.longest.min(quantum),
        }
    }
}

/// What the tiles are to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Who.
    pub turn: Turn,
    /// Where all stand.
    pub stand: Stand,
    /// Up to here every desk has run; [`Cycle::NEVER`] where that holds nobody.
    pub desks: Cycle,
    /// Until when leaves run; hubs run as far as the leaves let them. [`Cycle::ZERO`] if nobody is to run, and only to say when it is due.
    pub end: Cycle,
}

/// A window that all threads see.
#[derive(Default)]
pub struct Posted {
    turn: AtomicU64,
    cycles: [AtomicU64; 8],
}

impl Posted {
    /// Replaces it, while nobody reads.
    pub fn post(&self, window: &Window) {
        let stand = &window.stand;
        let of_hubs = [stand.hubs, stand.desks, window.desks];
        let of_leaves = [stand.floor, stand.behind, stand.leaves, stand.limit, window.end];
        self.turn.store(window.turn as u64, Ordering::Release);
        for (posted, cycle) in self.cycles.iter().zip(of_hubs.into_iter().chain(of_leaves)) {
            posted.store(cycle.0, Ordering::Release);
        }
    }

    /// The window.
    pub fn read(&self) -> Window {
        let cycles = self.cycles.each_ref().map(|cycle| Cycle(cycle.load(Ordering::Acquire)));
        let [hubs, desks, desks_ran, floor, behind, leaves, limit, end] = cycles;
        Window {
            turn: Turn::ALL[self.turn.load(Ordering::Acquire) as usize],
            stand: Stand {
                floor,
                behind,
                leaves,
                hubs,
                desks,
                limit,
            },
            desks: desks_ran,
            end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Cycle = Cycle(100);

    #[test]
    fn hubs_run_a_reach_beyond_the_leaf_behind_and_desks_alone_leave_hubs_where_they_are() {
        let stand = Stand::at(NOW, Cycle::NEVER).after_leaves(Cycle(160), Cycle(141));
        assert_eq!((stand.behind, stand.leaves), (Cycle(141), Cycle(160)));
        let at = |stand: Stand| [stand.of(Side::Hub, 30), stand.of(Side::Desk, 20)];
        assert_eq!(at(stand), [NOW; 2]);
        assert_eq!(at(stand.after_hubs(Turn::Desks)), [NOW, Cycle(161)]);
        assert_eq!(at(stand.after_hubs(Turn::Hubs)), [Cycle(171), Cycle(161)]);
    }

    #[test]
    fn nobody_runs_beyond_the_limit_and_who_is_ahead_stays() {
        let stand = Stand::at(NOW, Cycle(120)).after_leaves(Cycle(115), Cycle::NEVER);
        assert_eq!(stand.after_hubs(Turn::Hubs).of(Side::Hub, 30), Cycle(120));
        assert_eq!(stand.after_leaves(Cycle(110), Cycle::NEVER).behind, Cycle(115));
    }

    #[test]
    fn posted_window_is_read_as_it_was() {
        let stand = Stand::at(NOW, Cycle(900))
            .after_leaves(Cycle(160), Cycle(141))
            .after_hubs(Turn::Desks);
        for turn in Turn::ALL {
            let window = Window {
                turn,
                stand,
                desks: Cycle(161),
                end: Cycle(180),
            };
            let posted = Posted::default();
            posted.post(&window);
            assert_eq!(posted.read(), window);
        }
    }
}
