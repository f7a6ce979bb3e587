//! Results come in: they are stored, the scheduler hears of it, the box is free again.

use warpwave_hw::link::InPort;
use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::reg::Pred;

use super::{Dispatch, FIRST_RESULT};
use crate::proto::event::EventKind;
use crate::proto::issue::Release;
use crate::proto::warp::{IssueInfo, WarpInst};
use warpwave_hw::grow::push;

impl Dispatch {
    /// Stores what has come in, lower ports first.
    pub(super) fn take_results(&mut self, mut under_way: u64, now: Cycle) {
        let n_results = self.ports.results.len();
        while under_way != 0 && self.ports.release.has_room(now) {
            let n = under_way.trailing_zeros() as usize;
            if let Some(warp_inst) = self.result_port(n).recv(now) {
                self.store(warp_inst, now);
                // What is queued gives one result a cycle, a pipe all that it has.
                under_way &= !(u64::from(n >= n_results) << n);
            } else {
                under_way &= under_way - 1;
            }
        }
    }

    fn result_port(&mut self, n: usize) -> &mut InPort<Box<WarpInst>> {
        let n_results = self.ports.results.len();
        match n < n_results {
            true => &mut self.ports.results[n],
            false => &mut self.ports.queued[n - n_results],
        }
    }

    /// Whether a result could be stored in the next cycle.
    pub(super) fn has_result(&mut self, now: Cycle) -> bool {
        let mut under_way = self.inbox.under_way() >> FIRST_RESULT;
        while under_way != 0 {
            if self.result_port(under_way.trailing_zeros() as usize).is_ready(now) {
                return true;
            }
            under_way &= under_way - 1;
        }
        false
    }

    fn store(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        let IssueInfo {
            pipe,
            dst,
            result_words,
            sets_predicates,
            ..
        } = warp_inst.info;
        if pipe == Pipe::Control {
            // Nothing to store: the branch unit has told the scheduler, and gives the box back.
            let number = warp_inst.issued.0;
            self.emit(now, warp_inst.warp, EventKind::Store { number });
            push(&mut self.pool, warp_inst);
            return;
        }
        let (warp, lanes) = (warp_inst.warp as usize, warp_inst.lanes);
        for (n, words) in warp_inst.results.words[..result_words as usize].iter().enumerate() {
            let reg = dst.offset(n as u8);
            self.file.write(warp, reg, words, lanes);
        }
        if sets_predicates {
            self.store_predicates(&warp_inst);
        }
        self.stats.writebacks += 1;
        self.stored = Some((warp_inst.warp, warp_inst.pc));
        self.finish(warp_inst, now);
    }

    fn store_predicates(&mut self, warp_inst: &WarpInst) {
        let inst = warp_inst.inst();
        let all: [Pred; Pred::COUNT] = std::array::from_fn(|n| Pred(n as u8));
        let named = match inst.op {
            Opcode::R2p => &all[..],
            op => &inst.pdst[..op.row().pdst as usize],
        };
        for (&pred, &value) in named.iter().zip(&warp_inst.results.preds) {
            self.file
                .write_predicate(warp_inst.warp as usize, pred, value, warp_inst.lanes);
        }
    }

    /// The instruction is over: its scheduler may know, its box is free. Posted stores report their end through the LSU.
    pub(super) fn finish(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        let number = warp_inst.issued.0;
        self.emit(now, warp_inst.warp, EventKind::Store { number });
        if !warp_inst.info.is_posted {
            let release = Release::new(warp_inst.warp, warp_inst.pc, warp_inst.group);
            self.ports.release.send(now, release);
        }
        push(&mut self.pool, warp_inst);
    }
}
