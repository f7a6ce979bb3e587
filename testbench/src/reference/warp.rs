//! A warp of the reference: its lanes' registers, predicates, local memory, and where they stand.

use warpwave_components::proto::launch::Grid;
use warpwave_isa::exec::special::WarpContext;
use warpwave_isa::exec::{self, Operands, Results};
use warpwave_isa::flow::Flow;
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Decoded, WordSource};
use warpwave_isa::reg::{Pred, Special};

/// How far a warp is with the barrier of its cluster.
#[derive(Clone, Copy, Default)]
pub(super) struct ClusterState {
    /// Lanes that have arrived since it opened last.
    pub arrived: LaneMask,
    /// Whether it has opened, and the warp has not come to wait for that yet.
    pub open: bool,
    /// Whether lanes wait for it.
    pub waits: bool,
}

/// A warp.
pub(super) struct Warp {
    pub flow: Flow,
    pub place: WarpContext,
    /// Block barrier at which every live lane waits, if they do.
    pub waits_at: Option<usize>,
    /// Number and threads of the barrier to which lanes of it came last.
    pub last_barrier: Option<(usize, u32)>,
    /// Lanes whose predicate a counting barrier counts, so far.
    pub counted: u32,
    /// Where it stands with the barrier of its cluster.
    pub cluster: ClusterState,
    registers: Vec<Lanes>,
    preds: [LaneMask; Pred::COUNT],
    /// Local memory of all lanes, one lane after the other.
    local: Vec<u8>,
    local_bytes: usize,
}

impl Warp {
    /// Warp `index` of the CTA at `cta`, before its first instruction.
    pub fn new(grid: &Grid, cta: [u32; 3], index: u32) -> Self {
        let first_thread = index * WARP_SIZE as u32;
        let needs = grid.program.requirements();
        Warp {
            flow: Flow::new(0, LaneMask::first(grid.threads() - first_thread)),
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
            last_barrier: None,
            counted: 0,
            cluster: ClusterState::default(),
            registers: vec![Lanes::ZERO; grid.registers as usize],
            preds: [LaneMask::NONE; Pred::COUNT],
            local: vec![0; needs.local_bytes as usize * WARP_SIZE],
            local_bytes: needs.local_bytes as usize,
        }
    }

    /// The running lanes in which the guard holds.
    pub fn guard(&self, inst: &Inst) -> LaneMask {
        exec::guard(inst, &self.preds, self.flow.active())
    }

    /// Everything that an instruction reads.
    pub fn operands(&self, grid: &Grid, inst: &Inst, decoded: &Decoded) -> Operands {
        let mut operands = Operands {
            preds: exec::predicate_sources(inst, &self.preds),
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

    /// Stores results in the lanes in which the instruction takes effect.
    pub fn write(&mut self, inst: &Inst, decoded: &Decoded, lanes: LaneMask, results: &Results) {
        if !inst.dst.is_zero() {
            for n in 0..decoded.result_words {
                let register = inst.dst.offset(n).0 as usize;
                self.registers[register].merge(&results.words[n as usize], lanes);
            }
        }
        if inst.op == Opcode::R2p {
            for (pred, &value) in self.preds.iter_mut().zip(&results.preds) {
                *pred = (*pred & !lanes) | (value & lanes);
            }
            return;
        }
        for (pred, &value) in inst.pdst[..inst.op.info().pdst as usize].iter().zip(&results.preds) {
            if !pred.is_true() {
                let pred = &mut self.preds[pred.0 as usize];
                *pred = (*pred & !lanes) | (value & lanes);
            }
        }
    }

    /// A lane's bytes of local memory, if they exist.
    pub fn local_mut(&mut self, lane: usize, address: u64, n: usize) -> Option<&mut [u8]> {
        let own = &mut self.local[lane * self.local_bytes..][..self.local_bytes];
        let at = usize::try_from(address).ok()?;
        own.get_mut(at..at.checked_add(n)?)
    }

    /// Lanes of it come to wait for the barrier of the cluster.
    pub fn wait_for_cluster(&mut self) {
        self.cluster.waits = true;
        self.flow.arrive();
        self.pass_cluster_barrier();
    }

    /// Goes on behind the barrier of the cluster, if it is open and every live lane is there.
    pub fn pass_cluster_barrier(&mut self) {
        if self.cluster.open && self.cluster.waits && self.flow.is_at_barrier() {
            self.cluster = ClusterState::default();
            self.flow.release();
        }
    }

    /// Whether every live lane has arrived at the barrier of the cluster.
    pub fn has_arrived_in_cluster(&self) -> bool {
        let live = self.flow.live();
        live & self.cluster.arrived == live
    }

    /// Position in the block of the thread in a lane.
    pub fn thread(&self, lane: usize) -> [u32; 3] {
        [Special::TidX, Special::TidY, Special::TidZ].map(|special| self.place.word(special, lane))
    }
}
