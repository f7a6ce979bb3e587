//! Write-back: writes results to the register file, completes their instructions, and returns the boxes to the pool.

use warpwave_hw::bits::ones;
use warpwave_hw::grow::push;
use warpwave_hw::link::InPort;
use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::reg::Pred;

use super::{Dispatch, FIRST_RESULT, Written};
use crate::proto::event::EventKind;
use crate::proto::issue::Release;
use crate::proto::warp::{IssueInfo, WarpInst};

impl Dispatch {
    /// Writes arrived results, lower ports first. Bit n of `ports` is set if result port n has a message in flight.
    pub(super) fn write_back(&mut self, mut ports: u64, now: Cycle) {
        let n_results = self.ports.results.len();
        while ports != 0 && self.ports.release.has_room(now) {
            let n = ports.trailing_zeros() as usize;
            if let Some(warp_inst) = self.result_port(n).recv(now) {
                self.write_result(warp_inst, now);
                // A port behind a queue writes one result per cycle, a pipe's port every arrived result.
                ports &= !(u64::from(n >= n_results) << n);
            } else {
                // Nothing more from this port in this cycle: clears its bit, which is the lowest.
                ports &= ports - 1;
            }
        }
    }

    fn result_port(&mut self, n: usize) -> &mut InPort<Box<WarpInst>> {
        let n_results = self.ports.results.len();
        match n < n_results {
            true => &mut self.ports.results[n],
            false => &mut self.ports.queued_results[n - n_results],
        }
    }

    /// True if a result can be written in the next cycle.
    pub(super) fn has_result(&mut self, now: Cycle) -> bool {
        ones(self.arrivals.in_flight() >> FIRST_RESULT).any(|n| self.result_port(n).is_ready(now))
    }

    fn write_result(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        let IssueInfo {
            pipe,
            dst,
            result_words,
            sets_predicates,
            ..
        } = warp_inst.info;
        if pipe == Pipe::Control {
            // The branch unit has sent its result to the scheduler. Here only the box returns.
            let number = warp_inst.issued.0;
            self.emit(now, warp_inst.warp, EventKind::Complete { number });
            push(&mut self.state.pool, warp_inst);
            return;
        }
        let (warp, lanes) = (warp_inst.warp as usize, warp_inst.lanes);
        for (n, words) in warp_inst.results.words[..result_words as usize].iter().enumerate() {
            let reg = dst.offset(n as u8);
            self.state.file.write(warp, reg, words, lanes);
        }
        if sets_predicates {
            self.write_predicates(&warp_inst);
        }
        self.state.stats.writebacks += 1;
        self.state.written = Some(Written {
            warp: warp_inst.warp,
            pc: warp_inst.pc,
            first: dst.0,
            registers: result_words,
        });
        self.complete(warp_inst, now);
    }

    fn write_predicates(&mut self, warp_inst: &WarpInst) {
        let inst = warp_inst.inst();
        let all: [Pred; Pred::COUNT] = std::array::from_fn(|n| Pred(n as u8));
        let written = match inst.op {
            Opcode::R2p => &all[..],
            op => &inst.pdst[..op.info().pdst as usize],
        };
        let (warp, lanes) = (warp_inst.warp as usize, warp_inst.lanes);
        for (&pred, &value) in written.iter().zip(&warp_inst.results.preds) {
            self.state.file.write_predicate(warp, pred, value, lanes);
        }
    }

    /// Completes the instruction: releases its registers at the scheduler, and returns its box to the pool.
    pub(super) fn complete(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        let number = warp_inst.issued.0;
        self.emit(now, warp_inst.warp, EventKind::Complete { number });
        // The LSU itself reports the end of a posted store.
        if !warp_inst.info.is_posted {
            let release = Release::new(warp_inst.warp, warp_inst.pc, warp_inst.group);
            self.ports.release.send(now, release);
        }
        push(&mut self.state.pool, warp_inst);
    }
}
