//! Explains a launch that hangs: which warps wait for what, where they are, and why it cannot come.
//!
//! | Part | Finds |
//! |---|---|
//! | `barriers` | block and cluster barriers with too few arrivals, and cycles of barriers; lanes that wait for lanes of their own warp |
//! | `poll` | what running warps poll, the value that they read, and the lines that could change it |
//! | `place` | where a warp is |
//! | `endless` | code that no warp leaves |
//! | `closed` | loops that a polled value alone can end |
//!
//! Everything is read from the stopped machine, so a run that does not hang has no cost.

mod barriers;
mod closed;
mod endless;
mod lists;
mod place;
mod poll;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use warpwave_hw::component::Component;
use warpwave_hw::tile::Tile;

use crate::front::gigathread::GigaThread;
use crate::sm::cta::{Cta, CtaManager};
use crate::sm::shared::SharedMemory;
use crate::sm::subcore::dispatch::Dispatch;
use crate::sm::subcore::scheduler::Scheduler;
use place::{Place, each_place};

pub(super) use closed::{Turn, copies_to_shared, turn};
pub(super) use endless::is_in_endless_code;
pub(super) use place::branches_to_itself;
pub(super) use poll::{Poll, find as find_poll, find_spin, lines_of_loop};

/// What warps poll, by the number of the sub-core on the chip and the slot.
pub(super) type Polls = BTreeMap<(usize, usize), Poll>;

/// Most groups of warps in the sentence that tells where all warps are.
const MAX_PLACES: usize = 6;

/// Why a launch hangs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hang {
    /// The wait-for graph, one sentence for each wait.
    pub reasons: Vec<String>,
    /// Lines of the PTX text that the sentences name.
    pub lines: BTreeSet<u32>,
    /// Addresses of the words of device memory that warps poll.
    pub polled: BTreeSet<u64>,
    /// Instance names of the SMs with a block, in order.
    pub sms: Vec<String>,
}

/// An SM with a block.
struct Sm<'a> {
    path: String,
    /// Number of its first sub-core on the chip.
    first_subcore: usize,
    manager: &'a CtaManager,
    shared: &'a SharedMemory,
    /// True if every running warp has returned to an earlier state.
    stands_still: bool,
    schedulers: Vec<&'a Scheduler>,
    dispatches: Vec<&'a Dispatch>,
}

/// A resident block.
struct Block<'a> {
    sm: &'a Sm<'a>,
    cta: &'a Cta,
    /// The first byte of its shared memory.
    shared_base: u32,
}

/// Sentences about blocks. Equal ones of several blocks become one.
#[derive(Default)]
struct Sentences(Vec<(String, u64, [u32; 3])>);

impl Sentences {
    fn add(&mut self, block: [u32; 3], text: String) {
        match self.0.iter_mut().find(|(known, ..)| *known == text) {
            Some((_, n, _)) => *n += 1,
            None => self.0.push((text, 1, block)),
        }
    }

    fn into_lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(text, n, [x, y, z])| match n {
            1 => format!("block ({x}, {y}, {z}): {text}"),
            _ => format!("{n} blocks, the first of them ({x}, {y}, {z}): {text}"),
        })
    }
}

impl Hang {
    /// Explains the state of the stopped machine. The SMs have one tile each. After a standstill, `polls` has what was seen of the warps
    /// that run. A deadlock has none.
    pub(super) fn explain(giga: &Tile, sms: &[Tile], polls: Option<&Polls>) -> Self {
        let of = |(n, tile)| Sm::of(n, tile, polls.is_some());
        let sms: Vec<Sm> = sms.iter().enumerate().filter_map(of).collect();
        let blocks: Vec<Block> = sms.iter().flat_map(Sm::blocks).collect();
        let mut hang = Hang {
            sms: sms.iter().map(|sm| sm.path.clone()).collect(),
            ..Hang::default()
        };
        let seen = |place: &(usize, usize)| polls.and_then(|polls| polls.get(place).cloned());
        hang.explain_polls(&blocks, |place, find| seen(place).or_else(find));
        if polls.is_some() {
            hang.tell_places(&blocks);
        }
        hang.explain_barriers(&blocks);
        hang.reasons.extend(grid(giga));
        hang
    }

    /// Explains what the warps poll at the limit of cycles. `loops` has a line and a sentence for each loop in which others stay. The
    /// report leaves out any other warp, which may make progress.
    pub(super) fn explain_spins(sms: &[Tile], spins: &Polls, loops: Vec<(u32, String)>) -> Self {
        let of = |(n, tile)| Sm::of(n, tile, false);
        let sms: Vec<Sm> = sms.iter().enumerate().filter_map(of).collect();
        let blocks: Vec<Block> = sms.iter().flat_map(Sm::blocks).collect();
        // A loop may be only long, so it alone makes no SM one that hangs.
        let hanging = sms.iter().filter(|_| !spins.is_empty());
        let mut hang = Hang {
            sms: hanging.map(|sm| sm.path.clone()).collect(),
            ..Hang::default()
        };
        hang.explain_polls(&blocks, |place, _| spins.get(place).cloned());
        for (line, sentence) in loops {
            hang.reasons.push(sentence);
            hang.lines.insert(line);
        }
        hang
    }

    /// Tells where all warps are, the largest groups first.
    fn tell_places(&mut self, blocks: &[Block<'_>]) {
        let mut groups: Vec<(Place, u64)> = Vec::new();
        for (_, _, place) in blocks.iter().flat_map(each_place) {
            match groups.iter_mut().find(|(known, _)| *known == place) {
                Some((_, n)) => *n += 1,
                None => groups.push((place, 1)),
            }
        }
        if let [(Place::Polls { .. }, _)] = groups[..] {
            // Another sentence names the polled address and the place.
            return;
        }
        // A stable sort: groups of equal size stay in the order of the blocks.
        groups.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let all: u64 = groups.iter().map(|(_, n)| n).sum();
        let ending = if all == 1 { "" } else { "s" };
        let mut told: Vec<String> = Vec::new();
        for (place, n) in groups.iter().take(MAX_PLACES) {
            self.lines.extend(place.line());
            told.push(format!("{n} {}", place.say(*n > 1)));
        }
        if groups.len() > MAX_PLACES {
            told.push("the others are elsewhere".to_owned());
        }
        self.reasons
            .push(format!("of {all} warp{ending}, {}", lists::list(&told)));
    }
}

impl<'a> Sm<'a> {
    /// The SM of a tile, if it has a block.
    fn of(number: usize, tile: &'a Tile, stands_still: bool) -> Option<Self> {
        let manager = find::<CtaManager>(tile).next()?;
        // An SM without blocks has no part in a hang.
        manager.residents().next()?;
        let path = manager.path().to_string();
        let schedulers: Vec<&Scheduler> = find(tile).collect();
        Some(Sm {
            first_subcore: number * schedulers.len(),
            // The path of the CTA manager, without its last name.
            path: path.rsplit_once('.').map_or(path.clone(), |(sm, _)| sm.to_owned()),
            manager,
            shared: find(tile).next()?,
            stands_still,
            schedulers,
            dispatches: find(tile).collect(),
        })
    }

    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        self.manager.residents().map(|(cta, shared_base)| Block {
            sm: self,
            cta,
            shared_base,
        })
    }
}

/// The components of a type in a tile.
fn find<T: Component>(tile: &Tile) -> impl Iterator<Item = &T> {
    tile.components().iter().filter_map(|component| {
        let block: &dyn Any = component.as_ref();
        block.downcast_ref()
    })
}

/// The blocks of a grid that have no room, if the resident ones have not ended.
fn grid(giga: &Tile) -> Option<String> {
    let (grid, [sent, ended]) = find::<GigaThread>(giga).next()?.running()?;
    let (all, resident) = (grid.ctas(), sent - ended);
    (all > sent && resident > 0).then(|| {
        format!(
            "{resident} of {all} blocks are resident; the {} others wait for room that these never give",
            all - sent
        )
    })
}
