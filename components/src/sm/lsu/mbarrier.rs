//! Tests of mbarriers, at once or held until the phase is over.
//!
//! A unit of shared memory. A held test goes on when an arrival ends the phase that it waits for, or when its time is over.

use warpwave_hw::link::OutPort;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::mbarrier::is_over;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use crate::proto::warp::Flight;

/// Cycles after which a test that may wait gives up (assumed: PTX leaves the limit to the system).
pub const TRY_WAIT_CYCLES: u64 = 1000;

/// Tests that wait, each with the cycle in which it gives up.
#[derive(Default)]
#[allow(
    clippy::vec_box,
    reason = "the boxes travel: taking them out must not move what they hold"
)]
pub struct Waiting(Vec<(Cycle, Box<Flight>)>);

impl Waiting {
    /// Holds a test from now on.
    pub fn hold(&mut self, flight: Box<Flight>, now: Cycle) {
        self.0.push((now + TRY_WAIT_CYCLES, flight));
    }

    /// Answers the tests whose phase is over in `bytes`, or whose time is, as far as the links to their sub-cores have room.
    pub fn answer(&mut self, bytes: &[u8], output: &mut [OutPort<Box<Flight>>], now: Cycle) {
        let mut n = 0;
        while n < self.0.len() {
            let (until, flight) = &mut self.0[n];
            test(bytes, flight);
            let answers = *until <= now || !may_wait(flight);
            if answers && output[flight.subcore as usize].has_room(now) {
                let (_, flight) = self.0.remove(n);
                output[flight.subcore as usize].send(now, flight);
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
pub fn test(bytes: &[u8], flight: &mut Flight) {
    let parity = flight.decoded().first_word[1] as usize;
    let mut over = LaneMask::NONE;
    for lane in flight.shared_lanes.iter() {
        let at = flight.shared_base as usize + flight.addresses[lane] as usize;
        let state = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if is_over(state, flight.operands.words[parity].0[lane]) {
            over |= LaneMask::lane(lane);
        }
    }
    flight.results.preds[0] = over;
}

/// Whether this is a test that may wait, and the phase of some lane is not over.
pub fn may_wait(flight: &Flight) -> bool {
    let inst = flight.inst();
    inst.op == Opcode::Syncs && inst.mods.count == 1 && flight.results.preds[0] & flight.lanes != flight.lanes
}
