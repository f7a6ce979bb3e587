//! Builds the tiles of the machine: front, SMs, GPCs, crossbar and memory.

use std::sync::Arc;

use warpwave_hw::clock::Clock;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::TileBuilder;

use super::factory::Factory;
use super::gpc::Gpc;
use super::memory::MemorySide;
use super::sm::{SmNeighbours, SmSlots, build_sm};
use super::wiring::{Block, Blocks, CTA_EVENT, CTA_LAUNCH, GRID, GRID_EVENT};
use crate::config::GpuConfig;
use crate::front::gigathread::{self, GigaThread};
use crate::proto::launch::{Grid, GridEvent};
use crate::proto::mem::SliceCommand;
use crate::proto::noc::AddressMap;
use crate::storage::Storage;

/// The clock with all tiles, and the host's ends of its links.
pub(super) struct Machine {
    pub clock: Clock,
    pub grids: OutPort<Arc<Grid>>,
    pub events: InPort<GridEvent>,
    pub slices: Vec<OutPort<SliceCommand>>,
}

/// Builds the whole machine.
pub(super) fn build_machine(config: &GpuConfig, factory: &Factory, storage: &Arc<Storage>) -> Machine {
    let map = Arc::new(AddressMap::of(config));
    let mut front = TileBuilder::new();
    let mut root = Blocks::new(config, Path::root("gpu"));
    root.reserve(&mut front, &[Block::GigaThread]);
    root.add_host();
    let (grids, grid) = root.join(&GRID);
    let (event, events) = root.join(&GRID_EVENT);
    let mut ports = gigathread::Ports {
        grid,
        event,
        launch: Vec::new(),
        sm: Vec::new(),
    };
    let mut memory = MemorySide::new(config, &root.path, &map);
    memory.replacement = factory.l2_replacement_or(memory.replacement);
    let mut gpcs = gpcs(config, &root.path);
    let mut tiles = Vec::new();
    // In order: the place of an SM in each list of ports is its number.
    for (number, path) in sm_paths(config, &root.path).into_iter().enumerate() {
        let sm = SmSlots::new(config, path, factory);
        let (launch, launches) = sm.blocks.join_to(&root, &CTA_LAUNCH);
        let (event, events) = sm.blocks.join_to(&root, &CTA_EVENT);
        ports.launch.push(launch);
        ports.sm.push(events);
        let (gpc, _) = config.place_in_gpc(number as u16);
        let neighbours = SmNeighbours {
            launch: launches,
            event,
            xbar: memory.connect(&sm.blocks),
            cluster: gpcs.get_mut(gpc).map(|gpc| gpc.connect(&sm.blocks)),
        };
        tiles.push(build_sm(sm, number as u16, &map, factory, neighbours, storage));
    }
    let path = root.path.child("gigathread");
    let sms = gigathread::Sms {
        gpcs: config.gpcs(),
        by_smid: config.by_smid(),
    };
    let giga = GigaThread::new(path, config.gigathread, sms, ports);
    root.fill(&mut front, Block::GigaThread, giga);
    let (memory, slices) = memory.build(storage);
    // `Gpu::subscribe` relies on this order: front, SMs, memory, GPCs.
    tiles.insert(0, front.build());
    tiles.extend(memory);
    tiles.extend(gpcs.into_iter().map(Gpc::build));
    Machine {
        clock: Clock::new(tiles),
        grids,
        events,
        slices,
    }
}

/// The GPCs of a part with clusters. Without clusters a GPC has no components.
fn gpcs<'a>(config: &'a GpuConfig, root: &Path) -> Vec<Gpc<'a>> {
    let n = match config.cluster.max_ctas {
        0 => 0,
        _ => config.topology.tpcs_per_gpc.len(),
    };
    (0..n).map(|n| Gpc::new(config, root.at("gpc", n))).collect()
}

/// Instance names of the SMs in GPC, TPC order: gpu.gpc[g].sm[n], where n counts over the chip.
fn sm_paths(config: &GpuConfig, root: &Path) -> Vec<Path> {
    let mut paths = Vec::new();
    for (gpc, &tpcs) in config.topology.tpcs_per_gpc.iter().enumerate() {
        for _ in 0..tpcs * config.topology.sms_per_tpc {
            paths.push(root.at("gpc", gpc).at("sm", paths.len()));
        }
    }
    paths
}
