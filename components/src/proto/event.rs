//! Events of warps, instructions and requests in an SM, for subscribers.
//!
//! Each component keeps a [`Log`]. Without a subscriber it costs a branch per event and stores nothing. The events of a cycle come
//! in any order of the components, so a reader sorts them: [`Event`] is ordered for that.
//!
//! ```text
//! Start  { Fetch  Wait*  Issue  [Collect  Dispatch  [Take  [Access]]  Complete] }*  Wait  End      of each warp
//! ```
//!
//! The waits of a warp cover its resident cycles without gap or overlap. Its state `selected` counts as a wait of one cycle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpwave_hw::time::Cycle;

use crate::proto::mem::{Packet, PacketKind, Stamps};

/// Kind of an event of a warp.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EventKind {
    /// The instruction is complete: its results are written, its branch is resolved, or its store data have left.
    Complete {
        /// Its number.
        number: u64,
    },
    /// The warp starts.
    Start {
        /// Number of its launch.
        grid: u32,
        /// Position of its CTA in the grid.
        block: [u32; 3],
        /// Its index in the CTA.
        index: u32,
    },
    /// The program counter of the warp jumps: its fetched instructions are dropped.
    Jump,
    /// The warp was in this state for `cycles` cycles, until now.
    Wait {
        /// Index into [`NAMES`](crate::sm::subcore::stall::NAMES).
        state: u8,
        /// Cycles, the last one before `at`.
        cycles: u64,
    },
    /// The next instruction of the warp is issued.
    Issue {
        /// The instruction.
        pc: u32,
        /// Active lanes.
        lanes: u32,
        /// True if the instruction goes to the dispatch unit. If false, it is complete at issue.
        goes_on: bool,
    },
    /// The oldest issued instruction of the sub-core enters the collector and reads its operands.
    Collect {
        /// Identifies the instruction in its sub-core from now on: the cycle of its issue.
        number: u64,
    },
    /// The instruction is dispatched into its pipe.
    Dispatch {
        /// Its number.
        number: u64,
    },
    /// The LSU takes the instruction.
    Take {
        /// Its number.
        number: u64,
    },
    /// The instruction has the banks of shared memory.
    Access {
        /// Its number.
        number: u64,
        /// Passes that it takes.
        passes: u32,
    },
    /// A fetch for the warp starts.
    Fetch,
    /// The warp retires.
    End,
}

/// An event of a warp.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event {
    /// The cycle. For a wait, the cycle after its last.
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
    /// Load, store or atomic.
    pub kind: PacketKind,
    /// Device address of the line.
    pub line: u64,
    /// Sectors, bit i for bytes 32*i on.
    pub sectors: u8,
    /// Bytes of the line that the request wrote, bit i for byte i.
    pub written: u128,
    /// True if the L1 had all sectors.
    pub l1_hit: bool,
    /// True if the L2 had all sectors.
    pub l2_hit: bool,
    /// Cycle in which it passed each stage.
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
            written: packet.written(),
            l1_hit: packet.l1_hit,
            l2_hit: packet.l2_hit,
            stamps: packet.stamps,
        }
    }
}

/// Events of one SM that are not read yet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EventBatch {
    /// Events of warps, unsorted.
    pub events: Vec<Event>,
    /// Requests, in the order in which they came back.
    pub requests: Vec<Request>,
}

/// The sink of events of an SM's components. Silent without a subscriber.
#[derive(Clone, Debug, Default)]
pub struct Log(Option<Arc<Mutex<EventBatch>>>);

impl Log {
    /// A log that stores events. Clones share the store.
    pub fn subscribed() -> Self {
        Log(Some(Arc::default()))
    }

    /// True if there is a subscriber.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Stores an event of a warp, if there is a subscriber.
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

    /// Stores a request, if there is a subscriber.
    #[inline]
    pub fn emit_request(&self, packet: &Packet, grid: u32, of: (u8, u8, u32)) {
        if let Some(told) = &self.0 {
            keep_request(told, Request::of(packet, grid, of));
        }
    }

    /// Appends the stored events to `to`.
    pub fn drain_into(&self, to: &mut EventBatch) {
        if let Some(told) = &self.0 {
            let mut told = open(told);
            to.events.append(&mut told.events);
            to.requests.append(&mut told.requests);
        }
    }
}

/// Not inlined: most runs have no subscriber.
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

/// A panic elsewhere cannot leave a batch half written, so a poisoned lock is opened.
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
