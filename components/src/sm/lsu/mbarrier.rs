//! Tests of mbarriers, at once or held until the phase is over.
//!
//! A unit of shared memory. A held test goes on when an arrival ends the phase that it waits for, or when its time is over.

use warpwave_hw::link::OutPort;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::mbarrier::is_over;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use crate::proto::warp::WarpInst;

/// Tests that wait, each with the cycle in which it gives up.
#[derive(Default)]
#[allow(
    clippy::vec_box,
    reason = "the boxes travel: taking them out must not move what they hold"
)]
pub struct Waiting(Vec<(Cycle, Box<WarpInst>)>);

impl Waiting {
    /// Holds a test until it gives up in cycle `gives_up`.
    pub fn hold(&mut self, warp_inst: Box<WarpInst>, gives_up: Cycle) {
        self.0.push((gives_up, warp_inst));
    }

    /// Answers the tests whose phase is over in `bytes`, or whose time is, as far as the links to their sub-cores have room.
    pub fn answer(&mut self, bytes: &[u8], output: &mut [OutPort<Box<WarpInst>>], now: Cycle) {
        let mut n = 0;
        while n < self.0.len() {
            let (until, warp_inst) = &mut self.0[n];
            test(bytes, warp_inst);
            let answers = *until <= now || !may_wait(warp_inst);
            if answers && output[warp_inst.subcore as usize].has_room(now) {
                let (_, warp_inst) = self.0.remove(n);
                output[warp_inst.subcore as usize].send(now, warp_inst);
            } else {
                n += 1;
            }
        }
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cycle in which the first one gives up.
    pub fn until(&self) -> Option<Cycle> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Notes in which lanes the phase is over.
pub fn test(bytes: &[u8], warp_inst: &mut WarpInst) {
    let parity = warp_inst.decoded().first_word[1] as usize;
    let mut over = LaneMask::NONE;
    for lane in warp_inst.shared_lanes.iter() {
        let at = warp_inst.shared_base as usize + warp_inst.addresses[lane] as usize;
        let state = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if is_over(state, warp_inst.operands.words[parity].0[lane]) {
            over |= LaneMask::lane(lane);
        }
    }
    warp_inst.results.preds[0] = over;
}

/// Whether this is a test that may wait, and the phase of some lane is not over.
pub fn may_wait(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    inst.op == Opcode::Syncs && inst.mods.count == 1 && warp_inst.results.preds[0] & warp_inst.lanes != warp_inst.lanes
}
