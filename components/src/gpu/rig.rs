//! The memory system by itself: stand-ins for LSUs drive real L1s, crossbar, slices and channels with any traffic, and every
//! answer is held against a flat array of bytes.
//!
//! ```text
//!   driver -- L1 --+                                    n SMs
//!   driver -- L1 --+-- crossbar -- slices -- channels -- storage
//! ```
//!
//! Bytes in, verdict out, so that a test, a property test and a fuzz target can all call [`check`].
//!
//! # What must hold
//! - Every request is answered once, and then nothing is left anywhere.
//! - Each unit of eight bytes has one SM that writes it, or none, so its bytes are known exactly: a load gets what the SM's
//!   requests before it left there, never something older or newer, through any hit, merge, eviction or write-back; atomics
//!   likewise. Units of several SMs lie in one sector, so that parts of sectors travel.
//! - One line of counters takes additions from every SM; their sums are exact.
//! - After a write-back, storage holds the flat array.
//! - Without idle-skipping, in another tick order, with a quantum of 1: every answer comes in the same cycle.

mod driver;
mod traffic;

use std::sync::Arc;

use warpwave_hw::clock::{Clock, Stop};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Tile, TileBuilder};
use warpwave_hw::time::Cycle;

use crate::gpu::memory::MemorySide;
use crate::gpu::sm::l1_config;
use crate::gpu::wiring::{Block, Blocks, L1_REQUEST, L1_RESPONSE};
use crate::proto::mem::{LINE, SliceCommand};
use crate::proto::noc::AddressMap;
use crate::sm::l1::{self, L1};
use crate::storage::Storage;
use driver::{Answer, Driver, Record};
use traffic::Traffic;

/// Cycles after which traffic that is not done never will be.
const LIMIT: Cycle = Cycle(20_000_000);

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Requests answered.
    pub requests: u64,
    /// The cycle after the last answer.
    pub cycles: u64,
    /// Loads answered by the L1 alone.
    pub l1_hits: u64,
    /// Loads whose sectors were all in L1 or L2.
    pub l2_hits: u64,
}

/// Reads a machine's shape and its traffic from bytes, runs it, and says what does not hold.
///
/// ```
/// use warpwave_components::gpu::rig;
/// let bytes: Vec<u8> = (0..600u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
/// assert!(rig::check(&bytes).unwrap().requests > 0);
/// ```
pub fn check(bytes: &[u8]) -> Result<Summary, String> {
    let traffic = Traffic::from_bytes(bytes);
    let (plain, ends) = Rig::new(&traffic).run(&traffic, None)?;
    let mut other = Rig::new(&traffic);
    other.clock.set_quantum(1);
    for tile in other.clock.tiles_mut() {
        tile.set_skipping(false);
        tile.set_order((0..tile.components().len()).rev().collect());
    }
    let (other, _) = other.run(&traffic, Some(ends))?;
    for (sm, (a, b)) in plain.iter().zip(&other).enumerate() {
        if let Some((a, b)) = a.iter().zip(b).find(|(a, b)| (a.op, a.at) != (b.op, b.at)) {
            return Err(format!(
                "SM {sm}: request {} was answered in cycle {}, but with every component ticked request {} in cycle {}",
                a.op, a.at, b.op, b.at
            ));
        }
    }
    Ok(summary(&plain))
}

fn summary(answers: &[Vec<Answer>]) -> Summary {
    let mut summary = Summary::default();
    for answer in answers.iter().flatten() {
        summary.requests += 1;
        summary.cycles = summary.cycles.max(answer.at.0 + 1);
        summary.l1_hits += u64::from(answer.packet.l1_hit);
        summary.l2_hits += u64::from(answer.packet.l1_hit || answer.packet.l2_hit);
    }
    summary
}

/// A memory system with a driver for each SM.
struct Rig {
    clock: Clock,
    storage: Arc<Storage>,
    commands: Vec<warpwave_hw::link::OutPort<SliceCommand>>,
    records: Vec<Record>,
}

impl Rig {
    fn new(traffic: &Traffic) -> Self {
        let config = &traffic.config;
        let storage = Arc::new(Storage::new(1 << 20));
        storage.write(traffic::FIRST_LINE, &traffic.before);
        let map = Arc::new(AddressMap::new(config.l2.slices, config.hbm.channels));
        let root = Path::root("rig");
        let mut memory = MemorySide::new(config, &root, &map);
        let mut records = Vec::new();
        let mut tiles = Vec::new();
        for sm in 0..config.n_sms() as u16 {
            let blocks = Blocks::new(config, root.at("sm", sm.into()));
            let (tile, record) = build_sm(blocks, sm, &map, traffic, &mut memory);
            records.push(record);
            tiles.push(tile);
        }
        let (others, commands) = memory.build(&storage);
        tiles.extend(others);
        Rig {
            clock: Clock::new(tiles),
            storage,
            commands,
            records,
        }
    }

    /// Runs the traffic to its end, writes back, and checks everything; gives the answers of each SM in order, and when traffic
    /// and write-back were over. With `ends`, runs for exactly as long as another run has: a machine that skips nothing is
    /// never seen to be quiet.
    fn run(mut self, traffic: &Traffic, ends: Option<[Cycle; 2]>) -> Result<(Vec<Vec<Answer>>, [Cycle; 2]), String> {
        let done = self.run_until_quiet(ends.map(|[done, _]| done))?;
        for command in &mut self.commands {
            command.send(done, SliceCommand::WriteBack);
        }
        let written = self.run_until_quiet(ends.map(|[_, written]| written))?;
        let mut after = vec![0; traffic.after.len()];
        self.storage.read(traffic::FIRST_LINE, &mut after);
        if let Some(n) = (0..after.len()).find(|&n| after[n] != traffic.after[n]) {
            let (line, byte) = (n / LINE, n % LINE);
            return Err(format!(
                "line {line} byte {byte} is {:#x} in storage, not {:#x}",
                after[n], traffic.after[n]
            ));
        }
        let answers: Vec<Vec<Answer>> = self.records.iter().map(driver::take).collect();
        for (sm, answers) in answers.iter().enumerate() {
            traffic.check(sm, answers)?;
        }
        Ok((answers, [done, written]))
    }

    fn run_until_quiet(&mut self, end: Option<Cycle>) -> Result<Cycle, String> {
        let stop = self.clock.run(end.unwrap_or(LIMIT), |_| false);
        let components = || self.clock.tiles().iter().flat_map(|tile| tile.components());
        let unquiet = components().find(|component| !component.is_quiescent());
        match (stop, unquiet) {
            (Stop::Quiet, None) => Ok(self.clock.now()),
            (Stop::Limit, None) if end.is_some() => Ok(self.clock.now()),
            (stop, unquiet) => {
                let mut waits = Vec::new();
                components().for_each(|component| component.waits(&mut |wait| waits.push(wait)));
                let path = unquiet.map(|component| component.path().to_string());
                Err(format!("stopped ({stop:?}) with work left at {path:?}: {waits:?}"))
            }
        }
    }
}

/// A driver in the place of the LSU, and its L1, in a tile.
fn build_sm<'a>(
    mut blocks: Blocks<'a>,
    sm: u16,
    map: &Arc<AddressMap>,
    traffic: &Traffic,
    memory: &mut MemorySide<'a>,
) -> (Tile, Record) {
    let mut tile = TileBuilder::new();
    blocks.reserve(&mut tile, &[Block::Lsu, Block::L1]);
    let (request, requests) = blocks.join(&L1_REQUEST);
    let (answer, answers) = blocks.join_deep(&blocks, &L1_RESPONSE, 2);
    let (to_xbar, from_xbar) = memory.connect(&blocks);
    let ports = l1::Ports {
        requests,
        responses: answer,
        to_xbar,
        from_xbar,
        bulk: None,
    };
    let config = l1::Config {
        bytes: traffic.l1_bytes,
        waiting: traffic.l1_waiting,
        ..l1_config(blocks.config, sm, map)
    };
    blocks.fill(&mut tile, Block::L1, L1::new(blocks.path.child("l1"), config, ports));
    let script = traffic.script(sm.into());
    let (driver, record) = Driver::new(blocks.path.child("driver"), script, request, answers);
    blocks.fill(&mut tile, Block::Lsu, driver);
    (tile.build(), record)
}

#[cfg(test)]
mod tests;
