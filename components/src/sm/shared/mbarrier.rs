//! Tests of mbarriers. A test that may wait is parked until its phase is complete or its time limit is over.

use warpwave_hw::link::OutPort;
use warpwave_hw::link::delay::DelayLines;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::mbarrier::is_over;
use warpwave_isa::opcode::Opcode;

use crate::proto::timing::RETURN_CYCLES;
use crate::proto::warp::WarpInst;

/// Parked tests.
#[derive(Default)]
pub struct ParkedTests {
    /// The tests, each with the cycle of its time limit.
    #[allow(
        clippy::vec_box,
        reason = "boxes travel: taking one out must not copy the instruction"
    )]
    tests: Vec<(Cycle, Box<WarpInst>)>,
    /// True if a test has ended and waits for room in its link.
    is_blocked: bool,
}

impl ParkedTests {
    /// Parks a test, at most until cycle `until`.
    pub fn park(&mut self, warp_inst: Box<WarpInst>, until: Cycle) {
        self.tests.push((until, warp_inst));
    }

    /// Ends each test whose phase is complete in `bytes` or whose time limit is over, if the link to its sub-core has room. A test takes no
    /// less than the latency of its instruction.
    pub fn respond(
        &mut self,
        bytes: &[u8],
        late: &mut DelayLines<Box<WarpInst>>,
        output: &mut [OutPort<Box<WarpInst>>],
        now: Cycle,
    ) {
        let mut n = 0;
        self.is_blocked = false;
        while n < self.tests.len() {
            let (until, warp_inst) = &mut self.tests[n];
            // Tested in each tick: any access may have completed the phase.
            test(bytes, warp_inst);
            let has_ended = *until <= now || !may_wait(warp_inst);
            if has_ended && output[warp_inst.subcore as usize].has_room(now) {
                let (_, warp_inst) = self.tests.remove(n);
                let spent = now.since(warp_inst.issued) + RETURN_CYCLES;
                let extra = u64::from(warp_inst.timing().latency).saturating_sub(spent);
                late.send(output, warp_inst.subcore as usize, now, extra, warp_inst);
            } else {
                self.is_blocked |= has_ended;
                n += 1;
            }
        }
    }

    /// True if no test is parked.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// True if a test has ended and waits for room in its link.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// The first time limit.
    pub fn next_end(&self) -> Option<Cycle> {
        self.tests.iter().map(|(until, _)| *until).min()
    }
}

/// Sets the result of each lane: true if the phase that it tests is complete.
pub fn test(bytes: &[u8], warp_inst: &mut WarpInst) {
    let parity = warp_inst.decoded().first_word[1] as usize;
    // One object of 8 bytes: arrival counts, transaction count and phase bit.
    let own = &bytes[warp_inst.shared_base as usize..];
    warp_inst.results.preds[0] = warp_inst.shared_lanes.filter(|lane| {
        let state = own[warp_inst.addresses.get(lane) as usize..].first_chunk();
        let state = u64::from_le_bytes(*state.expect("a barrier has eight bytes"));
        is_over(state, warp_inst.operands.words[parity].0[lane])
    });
}

/// True if an instruction is a test that may wait, and the phase of some lane is not complete.
pub fn may_wait(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    inst.op == Opcode::Syncs && inst.mods.count == 1 && warp_inst.results.preds[0] & warp_inst.lanes != warp_inst.lanes
}
