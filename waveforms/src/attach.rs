//! Attaches recorders to the tiles of a machine.
//!
//! Only the selected signals and the inputs of the trigger are recorded.

use std::ops::Range;

use bitvec::vec::BitVec;
use warpwave_hw::clock::Clock;
use warpwave_hw::tile::Tile;
use warpwave_hw::time::Cycle;

use crate::error::WaveError;
use crate::links::LinkSignals;
use crate::merge::{Merge, TileStream};
use crate::recorder::{ChangeBuffer, Recorder};
use crate::select::Selection;
use crate::signal::{Signal, declare};
use crate::trigger::Trigger;

/// The recorded signals of a tile: for each component one bit per signal. A component without recorded signals has an empty mask.
type SignalMasks = Vec<BitVec>;

/// Attaches a recorder to each tile with selected signals, for the cycles of `recorded`.
///
/// Returns the signals (by tile and component, then the signals of links), the merge of the tiles, and the links.
///
/// # Errors
/// If a pattern selects nothing.
pub fn attach(
    selection: &Selection,
    clock: &mut Clock,
    recorded: &Range<Cycle>,
) -> Result<(Vec<Signal>, Merge, LinkSignals), WaveError> {
    let mut signals = Vec::new();
    let selected: Vec<(usize, SignalMasks)> = (clock.tiles().iter())
        .map(|tile| (signals.len(), select_signals(tile, selection, &mut signals)))
        .collect();
    // After all tiles, because the base of a tile counts signals of components only.
    let links = LinkSignals::attach(selection, clock, &mut signals);
    if let Some(pattern) = selection.unmatched_pattern(&signals) {
        // Only the error needs the signals of the whole machine.
        return Err(selection.no_match(pattern, &all_signals(clock)));
    }
    let mut merge = Merge::default();
    for (tile, (base, masks)) in clock.tiles_mut().iter_mut().zip(selected) {
        let component = |(n, mask): (usize, &BitVec)| u64::from(!mask.is_empty()) << n;
        let watched = masks.iter().enumerate().map(component).fold(0, |mask, bit| mask | bit);
        if watched != 0 {
            let buffer = ChangeBuffer::default();
            let recorder = Recorder::new(base as u32, &masks, recorded.clone(), buffer.clone());
            tile.watch(Box::new(recorder), watched, recorded.clone());
            merge.add(TileStream::new(buffer, base));
        }
    }
    Ok((signals, merge, links))
}

/// Selects the recorded signals of a tile and appends them to `signals`.
fn select_signals(tile: &Tile, selection: &Selection, signals: &mut Vec<Signal>) -> SignalMasks {
    let may_select = |path: &str| selection.may_select(path.split('.'));
    let has_selected = tile
        .components()
        .iter()
        .any(|component| may_select(component.path().as_str()));
    // A trigger on a launch looks at GigaThread. Any other looks at all components of the tiles with selected signals.
    let has_trigger_inputs = |path: &str| match selection.trigger() {
        Some(Trigger::Launch(_)) => path.ends_with(".gigathread"),
        Some(_) => has_selected,
        None => false,
    };
    let mut masks = Vec::new();
    for component in tile.components() {
        let path = component.path().as_str();
        let has_inputs = has_trigger_inputs(path);
        if !may_select(path) && !has_inputs {
            masks.push(BitVec::new());
            continue;
        }
        let declared = declare(component.as_ref());
        let is_input = |signal: &Signal| has_inputs && selection.trigger().is_some_and(|trigger| trigger.reads(signal));
        let is_recorded = |signal: &Signal| selection.selects(signal.names()) || is_input(signal);
        let mask: BitVec = declared.iter().map(is_recorded).collect();
        let recorded = declared
            .into_iter()
            .zip(mask.iter().by_vals())
            .filter(|&(_, is_recorded)| is_recorded);
        signals.extend(recorded.map(|(signal, _)| signal));
        // An empty mask: the tile does not sample the component.
        masks.push(if mask.any() { mask } else { BitVec::new() });
    }
    masks
}

/// Every signal of the machine, with the signals of links.
fn all_signals(clock: &mut Clock) -> Vec<Signal> {
    let components = clock.tiles().iter().flat_map(|tile| tile.components());
    let mut signals = components.flat_map(|component| declare(component.as_ref())).collect();
    LinkSignals::attach(&Selection::all(), clock, &mut signals);
    signals
}
