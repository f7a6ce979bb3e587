//! Builds the tile of an SM: its blocks and the links between them.

use std::sync::Arc;

use warpwave_hw::component::Component;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Tile, TileBuilder};

use super::engine::build_engine;
use super::factory::{BeforeL1Ports, Factory};
use super::gpc::SmCluster;
use super::subcore::{SubcorePorts, SubcoreSlots, build_subcore, warps};
use super::wiring::{
    BEFORE_L1_REQUEST, BEFORE_L1_RESPONSE, Block, Blocks, CONSTANT, CONSTANT_FILL, L1_REQUEST, L1_RESPONSE, SHARED,
    SHARED_TRAP, TRAP,
};
use crate::config::{GpuConfig, OUTSIDE_L1};
use crate::proto::bulk::BulkInst;
use crate::proto::cluster::CtaResidence;
use crate::proto::launch::{CtaLaunch, SmEvent, Trap};
use crate::proto::mem::Packet;
use crate::proto::noc::AddressMap;
use crate::proto::warp::WarpInst;
use crate::sm::constant::{self, ConstantCache};
use crate::sm::cta::{self, CtaManager};
use crate::sm::ideal_memory::{self, IdealMemory};
use crate::sm::l1;
use crate::sm::lsu::{self, Lsu};
use crate::sm::shared::{self, SharedMemory};
use crate::storage::Storage;

/// An SM's ends of its links to the rest of the chip.
pub(super) struct SmNeighbours {
    /// From GigaThread.
    pub launch: InPort<CtaLaunch>,
    /// To GigaThread.
    pub event: OutPort<SmEvent>,
    /// To and from the crossbar.
    pub xbar: (OutPort<Box<Packet>>, InPort<Box<Packet>>),
    /// To and from the other SMs of its GPC, on a part with clusters.
    pub cluster: Option<SmCluster>,
}

/// The tile of an SM under construction, with the slots of the blocks that its sub-cores share. Links from outside end at these blocks.
pub(super) struct SmSlots<'a> {
    tile: TileBuilder,
    pub blocks: Blocks<'a>,
}

impl<'a> SmSlots<'a> {
    /// A tile without sub-cores.
    pub(super) fn new(config: &'a GpuConfig, path: Path, factory: &Factory) -> Self {
        let mut tile = TileBuilder::new();
        let mut blocks = Blocks::new(config, path);
        // Before the sub-cores: links from outside the SM need these slots first.
        blocks.reserve(&mut tile, &[Block::Cta, Block::Lsu, Block::L1, Block::Shared]);
        if config.cluster.max_ctas > 0 {
            blocks.reserve(&mut tile, &[Block::Tma]);
        }
        // If every constant access hits, no line is fetched, and the SM needs no L1.5.
        if config.sm.constant.has_misses() {
            blocks.reserve(&mut tile, &[Block::Constant]);
        }
        if factory.has_before_l1() {
            blocks.reserve(&mut tile, &[Block::BeforeL1]);
        }
        SmSlots { tile, blocks }
    }
}

/// Ports of the blocks that the sub-cores share.
struct SmPorts {
    cta: cta::Ports,
    lsu: lsu::Ports,
    shared: shared::Ports,
    l1: l1::Ports,
    constant: Option<constant::Ports>,
}

/// Builds SM `number` of the chip.
pub(super) fn build_sm(
    slots: SmSlots<'_>,
    number: u16,
    map: &Arc<AddressMap>,
    factory: &Factory,
    neighbours: SmNeighbours,
    storage: &Arc<Storage>,
) -> Tile {
    let SmSlots { mut tile, blocks } = slots;
    let Blocks { config, path, .. } = &blocks;
    let subcores: Vec<_> = (0..config.sm.subcores as usize)
        .map(|n| SubcoreSlots::new(config, path.at("subcore", n), &mut tile))
        .collect();
    let mut ends = SubcorePorts::default();
    for (n, subcore) in subcores.iter().enumerate() {
        build_subcore(subcore, &blocks, (number, n as u8), factory, &mut tile, &mut ends);
    }
    let lsu_l1 = join_lsu_and_l1(&blocks, factory, &mut tile);
    let ports = join_blocks(&blocks, number, neighbours, ends, lsu_l1, &mut tile);
    let cta = CtaManager::new(path.child("cta"), cta_config(config), ports.cta);
    blocks.fill(&mut tile, Block::Cta, cta);
    let lsu = Lsu::new(path.child("lsu"), lsu_config(config, number), ports.lsu);
    blocks.fill(&mut tile, Block::Lsu, lsu);
    let shared = SharedMemory::new(path.child("shared"), shared_config(config), ports.shared);
    blocks.fill(&mut tile, Block::Shared, shared);
    if let Some(ports) = ports.constant {
        let cache = ConstantCache::new(path.child("constant"), config.sm.constant, ports);
        blocks.fill(&mut tile, Block::Constant, cache);
    }
    let path = path.child("l1");
    let l1 = match config.sm.ideal_memory_latency {
        // 0 stands for the real memory hierarchy.
        0 => factory.build_l1(path, l1_config(config, number, map), ports.l1),
        latency => build_ideal_memory(path, latency, ports.l1, storage),
    };
    blocks.fill_boxed(&mut tile, Block::L1, l1);
    tile.build()
}

/// Builds the ideal memory in place of the L1. The links to the crossbar carry nothing.
fn build_ideal_memory(path: Path, latency: u32, ports: l1::Ports, storage: &Arc<Storage>) -> Box<dyn Component> {
    let l1::Ports {
        requests,
        responses,
        bulk,
        ..
    } = ports;
    let bulk = bulk.map(|l1::BulkPorts { requests, responses }| ideal_memory::Ports { requests, responses });
    let ports = [ideal_memory::Ports { requests, responses }].into_iter().chain(bulk);
    let config = ideal_memory::Config { latency };
    Box::new(IdealMemory::new(path, config, ports.collect(), storage.clone()))
}

/// Ports that the blocks of an SM have on a part with clusters.
#[derive(Default)]
struct ClusterEnds {
    cta: Option<cta::ClusterPorts>,
    engine_trap: Option<InPort<Box<Trap>>>,
    lsu: Option<lsu::ClusterPorts>,
    engine: Option<OutPort<BulkInst>>,
    l1: Option<l1::BulkPorts>,
    lines: Vec<shared::LinePorts>,
    residence: Option<InPort<CtaResidence>>,
}

/// Connects the SM to the others of its GPC, and builds its bulk copy engine.
fn join_cluster(
    sm: &Blocks<'_>,
    number: u16,
    tile: &mut TileBuilder,
    cluster: SmCluster,
    bulk_done: Vec<OutPort<Box<WarpInst>>>,
) -> ClusterEnds {
    let split = cluster.split(sm);
    let engine = build_engine(sm, number, tile, bulk_done, split.engine);
    ClusterEnds {
        cta: Some(split.cta),
        engine_trap: Some(split.engine_trap),
        lsu: Some(split.lsu),
        engine: Some(engine.input),
        l1: Some(engine.l1),
        // The two sources of shared memory's round robin.
        lines: vec![split.lines, engine.lines],
        residence: Some(split.residence),
    }
}

/// A block's ends of two links: packets leave by one and come by the other.
type PacketPorts = (OutPort<Box<Packet>>, InPort<Box<Packet>>);

/// Connects the LSU and the L1, directly or through the factory's component. Returns the ends of the LSU, then of the L1.
fn join_lsu_and_l1(sm: &Blocks<'_>, factory: &Factory, tile: &mut TileBuilder) -> [PacketPorts; 2] {
    if !factory.has_before_l1() {
        let (to_l1, from_lsu) = sm.join(&L1_REQUEST);
        let (to_lsu, from_l1) = sm.join(&L1_RESPONSE);
        return [(to_l1, from_l1), (to_lsu, from_lsu)];
    }
    let (lsu_out, from_lsu) = sm.join(&BEFORE_L1_REQUEST);
    let (to_lsu, lsu_in) = sm.join(&BEFORE_L1_RESPONSE);
    // The L1's links keep path, latency and depth. They lead to the factory's component in place of the LSU.
    let (to_l1, l1_in) = sm.join(&L1_REQUEST.from(Block::BeforeL1));
    let (l1_out, from_l1) = sm.join(&L1_RESPONSE.to(Block::BeforeL1));
    let ports = BeforeL1Ports {
        from_lsu,
        to_l1,
        from_l1,
        to_lsu,
    };
    sm.fill_boxed(tile, Block::BeforeL1, factory.build_before_l1(&sm.path, ports));
    [(lsu_out, lsu_in), (l1_out, l1_in)]
}

/// Connects the L1.5 constant cache, if the part has one. Returns the ends of the LSU and of the cache.
fn join_constant(sm: &Blocks<'_>, ends: &mut SubcorePorts) -> Option<(lsu::ConstantPorts, constant::Ports)> {
    if !sm.has(Block::Constant) {
        return None;
    }
    let (request, from_lsu) = sm.join(&CONSTANT);
    let (to_lsu, fill) = sm.join(&CONSTANT_FILL);
    let mut ports = constant::Ports {
        requests: std::mem::take(&mut ends.constant_requests),
        fills: std::mem::take(&mut ends.constant_fills),
    };
    ports.requests.push(from_lsu);
    ports.fills.push(to_lsu);
    Some((lsu::ConstantPorts { request, fill }, ports))
}

/// Connects the blocks that the sub-cores share.
fn join_blocks(
    sm: &Blocks<'_>,
    number: u16,
    neighbours: SmNeighbours,
    mut subcores: SubcorePorts,
    lsu_l1: [PacketPorts; 2],
    tile: &mut TileBuilder,
) -> SmPorts {
    let (to_shared, from_lsu) = sm.join(&SHARED);
    let [(to_l1, response), (responses, requests)] = lsu_l1;
    let (trap, from_lsu_trap) = sm.join(&TRAP);
    let (shared_trap, from_shared_trap) = sm.join(&SHARED_TRAP);
    let (lsu_constant, constant) = join_constant(sm, &mut subcores).unzip();
    let cluster = neighbours.cluster;
    let cluster = cluster.map_or_else(ClusterEnds::default, |cluster| {
        join_cluster(sm, number, tile, cluster, subcores.bulk_done)
    });
    let (to_xbar, from_xbar) = neighbours.xbar;
    SmPorts {
        cta: cta::Ports {
            launch: neighbours.launch,
            event: neighbours.event,
            command: subcores.command,
            warp_info: subcores.warp_info,
            warp: subcores.event,
            traps: [from_lsu_trap, from_shared_trap]
                .into_iter()
                .chain(cluster.engine_trap)
                .collect(),
            cluster: cluster.cta,
        },
        lsu: lsu::Ports {
            input: subcores.memory,
            output: subcores.memory_done,
            ack: subcores.ack,
            shared: to_shared,
            l1: to_l1,
            response,
            trap,
            constant: lsu_constant,
            cluster: cluster.lsu,
            bulk: cluster.engine,
        },
        shared: shared::Ports {
            input: from_lsu,
            output: subcores.shared_done,
            products: subcores.products,
            lines: cluster.lines,
            residence: cluster.residence,
            trap: shared_trap,
        },
        l1: l1::Ports {
            requests,
            responses,
            to_xbar,
            from_xbar,
            bulk: cluster.l1,
        },
        constant,
    }
}

fn cta_config(config: &GpuConfig) -> cta::Config {
    cta::Config {
        subcores: config.sm.subcores as usize,
        warps_per_subcore: warps(config) as usize,
        max_ctas: config.limits.max_blocks_per_sm as usize,
        barrier: config.sm.barrier,
        shared_unit: config.limits.shared_unit,
    }
}

fn lsu_config(config: &GpuConfig, sm: u16) -> lsu::Config {
    lsu::Config {
        sm,
        sm_in_gpc: config.place_in_gpc(sm).1,
        cta_slots: config.limits.max_blocks_per_sm,
        shared_unit: config.limits.shared_unit,
        lsu: config.sm.lsu,
        tag_banks: config.sm.l1.tag_banks,
        constant: config.sm.constant,
        fence: config.sm.fence,
        // Local memory has a slot for each warp slot of the chip.
        first_local_slot: u32::from(sm) * config.limits.max_warps_per_sm,
        warps_per_subcore: warps(config),
    }
}

fn shared_config(config: &GpuConfig) -> shared::Config {
    shared::Config {
        // The largest carve-out costs nothing: host memory is allocated at its first use.
        bytes: config.limits.shared_carveouts.iter().copied().max().unwrap_or(0),
        shared_unit: config.limits.shared_unit,
        shared: config.sm.shared,
    }
}

fn l1_config(config: &GpuConfig, sm: u16, map: &Arc<AddressMap>) -> l1::Config {
    let l1 = config.sm.l1;
    l1::Config {
        sm,
        bytes: l1.size,
        associativity: l1.associativity,
        carveout_takes: l1.carveout_takes,
        replacement: l1.replacement.new_replacement(),
        write_policy: l1.write_policy,
        // The preset counts from issue to dependent issue, the L1 only its own stages.
        latency: l1.hit_latency - OUTSIDE_L1,
        mshr_sectors: l1.mshr_entries,
        mshr_merges: l1.mshr_merges,
        mshr_targets: l1.mshr_targets,
        tag_banks: l1.tag_banks,
        data_bytes_per_cycle: l1.data_bytes_per_cycle,
        store_queue: l1.store_queue,
        // With `check.weak`, packets leave the L1 out of order.
        disorder: config.check,
        tlb: config.sm.tlb,
        return_queue: l1.return_queue,
        partition: config.partition_of(sm),
        map: map.clone(),
    }
}
