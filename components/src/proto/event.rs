//! What happens in an SM to warps, instructions and requests: told as it happens, to whoever listens.
//!
//! Blocks keep a [`Log`]. With nobody listening it costs a branch per event and holds nothing. The events of a cycle come in any
//! order of the blocks, so whoever reads sorts them: [`Event`] is ordered for that.
//!
//! ```text
//! Start  { Fetch  Wait*  Issue  [Gather  Send  [Take  [Access]]  Store] }*  Wait  End      of each warp
//! ```
//!
//! The waits of a warp, its state `selected` counted as a wait of one cycle, cover its resident cycles without gap or overlap.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpwave_hw::time::Cycle;

use crate::proto::mem::{Packet, PacketKind, Stamps};

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EventKind {
    /// The results of the instruction gathered under this number are stored; of a branch, it is known; of a store, its data have left.
    Store {
        /// Its number.
        number: u64,
    },
    /// The warp begins.
    Start {
        /// Number of its launch.
        grid: u32,
        /// Position of its CTA in the grid.
        block: [u32; 3],
        /// Its index in the CTA.
        index: u32,
    },
    /// It goes on elsewhere: what was fetched and not issued is dropped.
    Jump,
    /// Until now, and for so many cycles, it was in this state (an index into the scheduler's names).
    Wait {
        /// The state.
        state: u8,
        /// Cycles, the last one before `at`.
        cycles: u64,
    },
    /// Its next instruction is issued.
    Issue {
        /// The instruction.
        pc: u32,
        /// Running lanes.
        lanes: u32,
        /// Whether it goes on to the dispatch unit; if not, it is over.
        goes_on: bool,
    },
    /// The oldest instruction of the sub-core that was issued and not gathered reads its operands.
    Gather {
        /// Names it in the sub-core from now on.
        number: u64,
    },
    /// It goes into its pipe.
    Send {
        /// Its number.
        number: u64,
    },
    /// The LSU takes it.
    Take {
        /// Its number.
        number: u64,
    },
    /// It has the banks of shared memory.
    Access {
        /// Its number.
        number: u64,
        /// For so many passes.
        passes: u32,
    },
    /// The next instruction that is not in the buffer is asked for.
    Fetch,
    /// The warp is over.
    End,
}

/// What happened to a warp, and when.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event {
    /// The cycle; of a wait, the one after its last.
    pub at: Cycle,
    /// Sub-core of the SM.
    pub subcore: u8,
    /// Slot in the sub-core.
    pub warp: u8,
    /// What happened.
    pub kind: EventKind,
}

/// A packet that is back at the LSU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Number of its launch.
    pub grid: u32,
    /// Sub-core of the warp.
    pub subcore: u8,
    /// Its slot there.
    pub warp: u8,
    /// The instruction.
    pub pc: u32,
    /// What it wanted.
    pub kind: PacketKind,
    /// Device address of the line.
    pub line: u64,
    /// Sectors, bit i for bytes 32*i on.
    pub sectors: u8,
    /// Whether the L1 had them.
    pub l1_hit: bool,
    /// Whether the L2 had them.
    pub l2_hit: bool,
    /// When it passed each stage.
    pub stamps: Stamps,
}

impl Request {
    /// A packet of a launch's instruction: sub-core, slot, program counter.
    pub fn of(packet: &Packet, grid: u32, (subcore, warp, pc): (u8, u8, u32)) -> Self {
        Request {
            grid,
            subcore,
            warp,
            pc,
            kind: packet.kind,
            line: packet.line,
            sectors: packet.sectors,
            l1_hit: packet.l1_hit,
            l2_hit: packet.l2_hit,
            stamps: packet.stamps,
        }
    }
}

/// What one SM has told and nobody has read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EventBatch {
    /// Events of warps, as they came.
    pub events: Vec<Event>,
    /// Requests, in the order in which they came back.
    pub requests: Vec<Request>,
}

/// Where an SM's blocks tell what happens; silent until it is made to listen.
#[derive(Clone, Debug, Default)]
pub struct Log(Option<Arc<Mutex<EventBatch>>>);

impl Log {
    /// A log that keeps what it is told. Clones keep it together.
    pub fn subscribed() -> Self {
        Log(Some(Arc::default()))
    }

    /// Whether anybody listens.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps an event of a warp, if anybody listens.
    #[inline]
    pub fn emit(&self, at: Cycle, subcore: u8, warp: u8, kind: EventKind) {
        if let Some(told) = &self.0 {
            keep(
                told,
                Event {
                    at,
                    subcore,
                    warp,
                    kind,
                },
            );
        }
    }

    /// Keeps a request, if anybody listens.
    #[inline]
    pub fn emit_request(&self, packet: &Packet, grid: u32, of: (u8, u8, u32)) {
        if let Some(told) = &self.0 {
            keep_request(told, Request::of(packet, grid, of));
        }
    }

    /// Moves what was told behind what `to` holds.
    pub fn drain_into(&self, to: &mut EventBatch) {
        if let Some(told) = &self.0 {
            let mut told = open(told);
            to.events.append(&mut told.events);
            to.requests.append(&mut told.requests);
        }
    }
}

/// Out of the way of machines to which nobody listens.
#[cold]
#[inline(never)]
fn keep(told: &Mutex<EventBatch>, event: Event) {
    open(told).events.push(event);
}

#[cold]
#[inline(never)]
fn keep_request(told: &Mutex<EventBatch>, request: Request) {
    open(told).requests.push(request);
}

/// Whoever panicked with the lock did so outside of these few lines.
fn open(told: &Mutex<EventBatch>) -> MutexGuard<'_, EventBatch> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_log_keeps_nothing_and_a_listening_one_keeps_what_its_clones_are_told() {
        let (silent, log) = (Log::default(), Log::subscribed());
        let mut told = EventBatch::default();
        silent.emit(Cycle(3), 0, 1, EventKind::Fetch);
        silent.drain_into(&mut told);
        assert_eq!(told, EventBatch::default());
        log.clone().emit(Cycle(3), 0, 1, EventKind::Fetch);
        log.clone().emit_request(&Packet::blank(), 0, (2, 3, 4));
        log.drain_into(&mut told);
        assert_eq!(told.events.len(), 1);
        assert_eq!(
            (told.requests[0].subcore, told.requests[0].warp, told.requests[0].pc),
            (2, 3, 4)
        );
        log.drain_into(&mut told);
        assert_eq!(told.events.len(), 1);
    }
}
