//! Wires the bulk copy engine of an SM: beside the L1 and shared memory, behind the LSU.

use warpwave_hw::link::OutPort;
use warpwave_hw::tile::TileBuilder;

use super::wiring::{Block, Blocks, TMA, TMA_L1_REQUEST, TMA_L1_RESPONSE, TMA_LINE, TMA_LINE_RESPONSE};
use crate::proto::warp::WarpInst;
use crate::sm::l1;
use crate::sm::lsu::shared;
use crate::sm::tma::{Ports, Tma};

/// The ends of the engine's links at its neighbours.
pub(super) struct Engine {
    /// The LSU's.
    pub input: OutPort<Box<WarpInst>>,
    /// The L1's.
    pub l1: l1::BulkPorts,
    /// Shared memory's.
    pub lines: shared::LinePorts,
}

/// Builds the engine; `output` leads to the sub-cores.
pub(super) fn build_engine(sm: &Blocks<'_>, tile: &mut TileBuilder, output: Vec<OutPort<Box<WarpInst>>>) -> Engine {
    let (to_tma, input) = sm.join(&TMA);
    let (to_l1, requests) = sm.join(&TMA_L1_REQUEST);
    let (responses, answer) = sm.join(&TMA_L1_RESPONSE);
    let (to_shared, lines) = sm.join(&TMA_LINE);
    let (written, shared_answer) = sm.join(&TMA_LINE_RESPONSE);
    let ports = Ports {
        input,
        output,
        l1: to_l1,
        answer,
        shared: to_shared,
        shared_answer,
    };
    sm.fill(
        tile,
        Block::Tma,
        Tma::new(sm.path.child("tma"), sm.config.sm.tma, ports),
    );
    Engine {
        input: to_tma,
        l1: l1::BulkPorts { requests, responses },
        lines: shared::LinePorts {
            input: lines,
            output: written,
            latency: 1,
        },
    }
}
