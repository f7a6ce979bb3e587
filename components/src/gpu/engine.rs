//! Builds the bulk copy engine (TMA) of an SM, and its links to LSU, L1 and shared memory.

use warpwave_hw::link::OutPort;
use warpwave_hw::tile::TileBuilder;

use super::wiring::{Block, Blocks, TMA, TMA_L1_REQUEST, TMA_L1_RESPONSE, TMA_LINE, TMA_LINE_RESPONSE};
use crate::proto::bulk::BulkInst;
use crate::proto::warp::WarpInst;
use crate::sm::tma::{Config, Ports, RemotePorts, Tma};
use crate::sm::{l1, shared};

/// The other ends of the engine's links.
pub(super) struct Engine {
    /// At the LSU.
    pub input: OutPort<BulkInst>,
    /// At the L1.
    pub l1: l1::BulkPorts,
    /// At shared memory.
    pub lines: shared::LinePorts,
}

/// Builds the engine of SM `number`. `output` has the links to the sub-cores.
pub(super) fn build_engine(
    sm: &Blocks<'_>,
    number: u16,
    tile: &mut TileBuilder,
    output: Vec<OutPort<Box<WarpInst>>>,
    remote: RemotePorts,
) -> Engine {
    let (to_tma, input) = sm.join(&TMA);
    let (to_l1, requests) = sm.join(&TMA_L1_REQUEST);
    let (responses, l1_response) = sm.join(&TMA_L1_RESPONSE);
    let (to_shared, lines) = sm.join(&TMA_LINE);
    let (written, shared_response) = sm.join(&TMA_LINE_RESPONSE);
    let ports = Ports {
        input,
        output,
        l1: to_l1,
        l1_response,
        shared: to_shared,
        shared_response,
        remote,
    };
    let (gpc, sm_in_gpc) = sm.config.place_in_gpc(number);
    let config = Config {
        tma: sm.config.sm.tma,
        sm_in_gpc,
        gpc_sms: sm.config.gpcs()[gpc].len() as u16,
        shared_unit: sm.config.limits.shared_unit,
    };
    sm.fill(tile, Block::Tma, Tma::new(sm.path.child("tma"), config, ports));
    Engine {
        input: to_tma,
        l1: l1::BulkPorts { requests, responses },
        lines: shared::LinePorts {
            input: lines,
            output: written,
            // The least. `sm.tma.latency` has the extra time of a copy.
            latency: 1,
        },
    }
}
