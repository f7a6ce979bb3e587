//! Products of warp groups (GMMA): reads their matrices from shared memory, beside the crossbar of the banks.
//!
//! The four warps of a group share matrix B, which is read once for all of them. Assumed: these reads do not slow other accesses. Their
//! effect is not published.

use warpwave_hw::time::Cycle;
use warpwave_isa::exec::gmma;

use super::{SharedMemory, end_of_cta};
use crate::proto::timing::RETURN_CYCLES;
use crate::proto::warp::WarpInst;

impl SharedMemory {
    /// Computes products, and sends them to their sub-cores after the latency of the tensor pipe.
    pub(super) fn run_products(&mut self, now: Cycle) {
        for n in 0..self.ports.products.len() {
            while self.ports.output[n].has_room(now)
                && let Some(mut warp_inst) = self.ports.products[n].recv(now)
            {
                self.use_bytes(end_of_cta(&warp_inst));
                self.multiply(&mut warp_inst);
                self.state.stats.products += 1;
                let spent = now.since(warp_inst.issued) + RETURN_CYCLES;
                // The latency is that of the tensor pipe: it counts from the issue, so the way here is part of it.
                let extra = u64::from(warp_inst.timing().latency).saturating_sub(spent);
                self.state.late.send(&mut self.ports.output, n, now, extra, warp_inst);
            }
        }
    }

    /// Computes one product. Bytes outside the CTA's shared memory read as zero.
    fn multiply(&self, warp_inst: &mut WarpInst) {
        let grid = warp_inst.grid.clone();
        let (inst, decoded) = grid.instruction(warp_inst.pc);
        let own = &self.state.bytes[warp_inst.shared_base as usize..][..grid.shared_bytes as usize];
        let read = |at: usize| match own.get(at..at + 2) {
            Some(bytes) => u16::from_le_bytes([bytes[0], bytes[1]]),
            None => 0,
        };
        gmma::multiply(
            inst,
            decoded,
            &warp_inst.operands,
            warp_inst.index,
            read,
            &mut warp_inst.results,
        );
    }
}
