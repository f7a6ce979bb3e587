//! Makes all tiles and the links between them.

use std::sync::Arc;

use warpwave_hw::clock::Clock;
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Slot, TileBuilder};
use warpwave_hw::time::Cycle;

use crate::config::GpuConfig;
use crate::front::gigathread::{self, gpcs::Gpcs};
use crate::gpu::gpc::Gpc;
use crate::gpu::memory::MemorySide;
use crate::gpu::sm::{Outside, SmSlots, join};
use crate::gpu::{Gpu, Launched, sm};
use crate::proto::noc::AddressMap;
use crate::storage::Storage;

/// The whole machine.
pub(super) fn machine(config: GpuConfig) -> Gpu {
    let storage = Arc::new(Storage::new(config.memory_bytes));
    let map = Arc::new(AddressMap::new(config.l2.slices, config.hbm.channels));
    let root = Path::root("gpu");
    let mut front = TileBuilder::new();
    let giga = front.slot();
    let mut memory = MemorySide::new(&config, &map);
    let host = Slot::outside();
    let giga_path = root.child("gigathread");
    let (grids, grid) = join(giga_path.child("grid"), 1, 2, &host, &giga);
    let (event, events) = join(giga_path.child("event"), 1, 4, &giga, &host);
    let mut ports = gigathread::Ports {
        grid,
        event,
        launch: Vec::new(),
        sm: Vec::new(),
    };
    let mut tiles = Vec::new();
    let has_clusters = config.cluster.max_ctas > 0;
    let gpc = |n| Gpc::new(&config, root.at("gpc", n));
    let mut gpcs: Vec<_> = (0..config.topology.tpcs_per_gpc.len())
        .filter(|_| has_clusters)
        .map(gpc)
        .collect();
    let way = config.gigathread.link_latency;
    for (number, path) in sm_paths(&config, &root).into_iter().enumerate() {
        let slots = SmSlots::new();
        let (launch, launches) = join(path.child("cta.launch"), way, 2, &giga, &slots.cta);
        let (event, sm_events) = join(path.child("cta.event"), way, 8, &slots.cta, &giga);
        let (below, returns) = memory.connect(&path, &slots.l1);
        let (of_gpc, _) = config.place_in_gpc(number as u16);
        let cluster = gpcs.get_mut(of_gpc).map(|gpc| gpc.connect(&path, &slots));
        ports.launch.push(launch);
        ports.sm.push(sm_events);
        let outside = Outside {
            launch: launches,
            event,
            below,
            returns,
            cluster,
        };
        tiles.push(sm::fill(&config, &path, number as u16, &map, slots, outside).build());
    }
    let gpcs_of_sms = Gpcs::new(config.gpcs());
    front.fill(
        &giga,
        gigathread::GigaThread::new(giga_path, config.gigathread, gpcs_of_sms, ports),
    );
    let (memory, slices) = memory.build(&root, &storage);
    tiles.insert(0, front.build());
    tiles.extend(memory);
    tiles.extend(gpcs.into_iter().map(Gpc::build));
    Gpu {
        clock: Clock::new(tiles),
        storage,
        grids,
        events,
        slices,
        local: (0, 0),
        launches: 0,
        latest: Launched {
            start: Cycle::ZERO,
            end: Cycle::ZERO,
        },
        config,
    }
}

/// Instance names of the SMs, in GPC, TPC order: gpu.gpc[g].sm[n], n counted over the chip.
fn sm_paths(config: &GpuConfig, root: &Path) -> Vec<Path> {
    let mut paths = Vec::new();
    for (gpc, &tpcs) in config.topology.tpcs_per_gpc.iter().enumerate() {
        for _ in 0..tpcs * config.topology.sms_per_tpc {
            paths.push(root.at("gpc", gpc).at("sm", paths.len()));
        }
    }
    paths
}
