//! A warp of the reference: registers, predicates, local memory and control flow.

use warpwave_components::proto::launch::Grid;
use warpwave_isa::exec::special::WarpContext;
use warpwave_isa::exec::{self, Operands, Results};
use warpwave_isa::flow::Flow;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Decoded, WordSource};
use warpwave_isa::reg::{Pred, Special};

/// State of a warp at the cluster barrier.
#[derive(Clone, Copy, Default)]
pub(super) struct ClusterState {
    /// Lanes that have arrived in the current phase.
    pub arrived: LaneMask,
    /// Lanes that had not begun to wait when the barrier opened. Their wait passes at once.
    pub open: LaneMask,
}

/// Architectural state of a warp.
pub(super) struct Warp {
    pub flow: Flow,
    pub place: WarpContext,
    /// Block barrier at which lanes wait after the warp's arrival, if any.
    pub waits_at: Option<usize>,
    /// Number and thread count of the block barrier that lanes reached last.
    pub barrier: (usize, u32),
    /// Lanes with a true predicate at a counting barrier, until all lanes have arrived.
    pub counted: u32,
    /// State at the cluster barrier.
    pub cluster: ClusterState,
    registers: Vec<Lanes>,
    preds: [LaneMask; Pred::COUNT],
    /// Local memory, lane by lane.
    local: Vec<u8>,
    local_bytes: usize,
}

impl Warp {
    /// Creates warp `index` of the CTA at `cta`, before its first instruction.
    pub fn new(grid: &Grid, cta: [u32; 3], index: u32) -> Self {
        let first_thread = index * WARP_SIZE as u32;
        let needs = grid.program.requirements();
        Warp {
            flow: Flow::new(0, LaneMask::first(grid.threads() - first_thread))
                .with_reconvergence(grid.program.reconvergence()),
            place: WarpContext {
                block_size: grid.block,
                first_thread,
                cta,
                warp: index,
                n_warps: grid.warps(),
                grid: grid.id,
                grid_size: grid.grid,
                cluster: grid.cluster,
                dynamic_shared_bytes: grid.dynamic_shared_bytes,
                total_shared_bytes: grid.shared_bytes,
                ..WarpContext::default()
            },
            waits_at: None,
            barrier: (0, 0),
            counted: 0,
            cluster: ClusterState::default(),
            registers: vec![Lanes::ZERO; grid.registers as usize],
            preds: [LaneMask::NONE; Pred::COUNT],
            local: vec![0; needs.local_bytes as usize * WARP_SIZE],
            local_bytes: needs.local_bytes as usize,
        }
    }

    /// The active lanes in which the guard of an instruction is true.
    pub fn guard(&self, inst: &Inst) -> LaneMask {
        exec::guard(inst, &self.preds, self.flow.active())
    }

    /// The source operands of an instruction.
    pub fn operands(&self, grid: &Grid, inst: &Inst, decoded: &Decoded) -> Operands {
        let mut operands = Operands {
            preds: exec::predicate_sources(inst, &self.preds),
            // P2R and R2P read all predicates.
            file: self.preds,
            ..Operands::default()
        };
        for (word, source) in operands
            .words
            .iter_mut()
            .zip(&decoded.sources[..decoded.source_words as usize])
        {
            *word = match *source {
                WordSource::Zero => Lanes::ZERO,
                WordSource::Reg(reg) => self.registers[reg.0 as usize],
                WordSource::Imm(bits) => Lanes::splat(bits),
                WordSource::Const { bank, word } => Lanes::splat(grid.constant(bank, word)),
                WordSource::Special(special) => self.place.lanes(special),
            };
        }
        operands
    }

    /// Writes results to registers and predicates in `lanes`.
    pub fn write(&mut self, inst: &Inst, decoded: &Decoded, lanes: LaneMask, results: &Results) {
        if !inst.dst.is_zero() {
            for n in 0..decoded.result_words {
                let register = inst.dst.offset(n).0 as usize;
                self.registers[register].merge(&results.words[n as usize], lanes);
            }
        }
        // R2P has no list of destinations: its results are all predicates.
        if inst.op == Opcode::R2p {
            for (pred, &value) in self.preds.iter_mut().zip(&results.preds) {
                *pred = (*pred & !lanes) | (value & lanes);
            }
            return;
        }
        for (pred, &value) in inst.pdst[..inst.op.info().pdst as usize].iter().zip(&results.preds) {
            // PT is read-only: a result for it is dropped.
            if !pred.is_true() {
                let pred = &mut self.preds[pred.0 as usize];
                *pred = (*pred & !lanes) | (value & lanes);
            }
        }
    }

    /// `n` bytes of a lane's local memory. `None` if they are out of bounds.
    pub fn local_mut(&mut self, lane: usize, address: u64, n: usize) -> Option<&mut [u8]> {
        // The bytes of a lane are contiguous here. On a GPU the words of the lanes alternate, which no program can see.
        let own = &mut self.local[lane * self.local_bytes..][..self.local_bytes];
        let at = usize::try_from(address).ok()?;
        own.get_mut(at..at.checked_add(n)?)
    }

    /// Makes lanes arrive at the cluster barrier.
    pub fn arrive_in_cluster(&mut self, lanes: LaneMask) {
        self.flow.step();
        self.cluster.arrived |= lanes;
        // A new phase: a lane that never waited in the phase before waits for this one.
        self.cluster.open &= !lanes;
    }

    /// Makes lanes wait at the cluster barrier. Returns true if lanes pass it at once.
    pub fn wait_for_cluster(&mut self, lanes: LaneMask) -> bool {
        let passing = lanes & self.cluster.open;
        self.cluster.open &= !lanes;
        self.flow.wait_for_cluster(lanes & !passing);
        !passing.is_empty()
    }

    /// Opens the cluster barrier. Returns true if it releases lanes.
    pub fn open_cluster(&mut self) -> bool {
        let waiting = self.flow.at_cluster_barrier();
        self.cluster = ClusterState {
            arrived: LaneMask::NONE,
            open: self.flow.live() & !waiting,
        };
        if waiting.is_empty() {
            return false;
        }
        self.flow.release_cluster();
        true
    }

    /// True if every live lane has arrived at the cluster barrier.
    pub fn has_arrived_in_cluster(&self) -> bool {
        let live = self.flow.live();
        live & self.cluster.arrived == live
    }

    /// Position of a lane's thread in the block.
    pub fn thread(&self, lane: usize) -> [u32; 3] {
        [Special::TidX, Special::TidY, Special::TidZ].map(|special| self.place.word(special, lane))
    }
}
