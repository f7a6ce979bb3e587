//! Attaches recorders to the tiles of a machine: as few signals are declared and watched as the selection allows.

use std::ops::Range;

use bitvec::vec::BitVec;
use warpwave_hw::clock::Clock;
use warpwave_hw::tile::Tile;
use warpwave_hw::time::Cycle;

use crate::error::WaveError;
use crate::links::Links;
use crate::merge::{Merge, TileStream};
use crate::recorder::{ChangeBuffer, Recorder};
use crate::select::Selection;
use crate::signal::{Signal, declare};

/// For each component of a tile: one bit per signal, set if it is recorded. Empty if the component has no recorded signal.
type Taken = Vec<BitVec>;

/// Records what is selected in the cycles of `recorded`: the signals, by tile and component, and then those of links; what joins
/// the tiles again; and the links.
///
/// # Errors
/// If a pattern selects nothing.
pub fn attach(
    selection: &Selection,
    clock: &mut Clock,
    recorded: &Range<Cycle>,
) -> Result<(Vec<Signal>, Merge, Links), WaveError> {
    let mut signals = Vec::new();
    let taken: Vec<(usize, Taken)> = (clock.tiles().iter())
        .map(|tile| (signals.len(), take(tile, selection, &mut signals)))
        .collect();
    let links = Links::attach(selection, clock, &mut signals);
    if let Some(pattern) = selection.idle_pattern(&signals) {
        return Err(selection.no_match(pattern, &all_signals(clock)));
    }
    let mut merge = Merge::default();
    for (tile, (base, taken)) in clock.tiles_mut().iter_mut().zip(taken) {
        let component = |(n, takes): (usize, &BitVec)| u64::from(!takes.is_empty()) << n;
        let watched = taken.iter().enumerate().map(component).fold(0, |mask, bit| mask | bit);
        if watched != 0 {
            let buffer = ChangeBuffer::default();
            let recorder = Recorder::new(base as u32, &taken, recorded.clone(), buffer.clone());
            tile.watch(Box::new(recorder), watched, recorded.clone());
            merge.add(TileStream::new(buffer, base));
        }
    }
    Ok((signals, merge, links))
}

/// Adds to `signals` what is selected of a tile, and what the trigger must see of one of which anything is selected.
fn take(tile: &Tile, selection: &Selection, signals: &mut Vec<Signal>) -> Taken {
    let may_take = |path: &str| selection.may_take(path.split('.'));
    let is_concerned = tile
        .components()
        .iter()
        .any(|component| may_take(component.path().as_str()));
    let watched_by_trigger = |path: &str| match selection.trigger() {
        Some(trigger) if trigger.is_of_the_front() => path.ends_with(".gigathread"),
        Some(_) => is_concerned,
        None => false,
    };
    let mut taken = Vec::new();
    for component in tile.components() {
        let path = component.path().as_str();
        let sees = watched_by_trigger(path);
        if !may_take(path) && !sees {
            taken.push(BitVec::new());
            continue;
        }
        let declared = declare(component.as_ref());
        let needs = |signal: &Signal| sees && selection.trigger().is_some_and(|trigger| trigger.needs(signal));
        let takes = |signal: &Signal| selection.takes(signal.names()) || needs(signal);
        let takes: BitVec = declared.iter().map(takes).collect();
        let shown = declared
            .into_iter()
            .zip(takes.iter().by_vals())
            .filter(|&(_, takes)| takes);
        signals.extend(shown.map(|(signal, _)| signal));
        taken.push(if takes.any() { takes } else { BitVec::new() });
    }
    taken
}

/// Every signal of the machine, those of links too.
fn all_signals(clock: &mut Clock) -> Vec<Signal> {
    let components = clock.tiles().iter().flat_map(|tile| tile.components());
    let mut signals = components.flat_map(|component| declare(component.as_ref())).collect();
    Links::attach(&Selection::all(), clock, &mut signals);
    signals
}
