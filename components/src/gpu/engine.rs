//! Wires the bulk copy engine of an SM: beside the L1 and shared memory, behind the LSU.

use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::tile::{Slot, TileBuilder};

use crate::config::GpuConfig;
use crate::gpu::sm::join;
use crate::proto::warp::Flight;
use crate::sm::l1;
use crate::sm::lsu::shared;
use crate::sm::tma::{Ports, Tma};

/// What the engine's neighbours hold of its links.
pub(super) struct Engine {
    /// The LSU's.
    pub input: OutPort<Box<Flight>>,
    /// The L1's.
    pub l1: l1::BulkPorts,
    /// Shared memory's.
    pub lines: shared::LinePorts,
}

/// Builds the engine in its slot, the first of these; the others are those of LSU, L1 and shared memory.
pub(super) fn fill(
    config: &GpuConfig,
    sm: &Path,
    tile: &mut TileBuilder,
    [tma, lsu, l1, shared_memory]: [&Slot; 4],
    output: Vec<OutPort<Box<Flight>>>,
) -> Engine {
    let path = sm.child("tma");
    let (to_tma, input) = join(path.clone(), 1, 2, lsu, tma);
    let (to_l1, requests) = join(sm.child("l1.bulk"), 1, 2, tma, l1);
    let (answers, answer) = join(path.child("answer"), 1, 2, l1, tma);
    let (to_shared, lines) = join(sm.child("shared.bulk"), 1, 2, tma, shared_memory);
    let (written, shared_answer) = join(path.child("line"), 1, 2, shared_memory, tma);
    let ports = Ports {
        input,
        output,
        l1: to_l1,
        answer,
        shared: to_shared,
        shared_answer,
    };
    tile.fill(tma, Tma::new(path, config.sm.tma, ports));
    Engine {
        input: to_tma,
        l1: l1::BulkPorts { requests, answers },
        lines: shared::LinePorts {
            input: lines,
            output: written,
            latency: 1,
        },
    }
}
