//! Instruction buffers (ibuffers) of a sub-core's warps, and the fetch stage that fills them.
//!
//! One instruction is fetched per cycle: for the same warp while its buffer has room, else for the youngest warp with room (huerta25).
//! A warp is chosen once per round, and a round ends when no other warp has room (assumed). So warps that spin in a loop cannot starve
//! the warp that they wait for. An instruction enters the buffer `latency` cycles after its fetch. A jump empties the warp's buffer, and
//! its fetches in flight are dropped on arrival. Every fetch hits: an instruction cache is not modelled.

use std::collections::VecDeque;

use warpwave_hw::time::Cycle;

use crate::proto::warp::{MAX_SLOTS, SlotMask};

/// One fetch in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fetch {
    arrives: Cycle,
    warp: u8,
    /// [`Buffer::epoch`] at the start of the fetch.
    epoch: u8,
}

/// One warp's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Buffer {
    /// Instructions in the buffer.
    ready: u8,
    /// Instructions in flight to the buffer.
    in_flight: u8,
    /// Jumps so far (mod 256). A fetch of an earlier epoch is dropped.
    epoch: u8,
}

/// The buffers of all warps of a sub-core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IBuffers {
    /// Capacity of each buffer, in instructions.
    entries: u8,
    /// Cycles of a fetch.
    latency: u64,
    buffers: [Buffer; MAX_SLOTS],
    /// Fetches in flight, oldest first: at most one per cycle of the latency.
    fetches: VecDeque<Fetch>,
    /// Arrival of the oldest fetch, or [`Cycle::NEVER`].
    next_arrival: Cycle,
    /// Warps whose buffer has room, bit i for slot i.
    has_room: SlotMask,
    /// Warp of the last fetch.
    last: u8,
    /// Warps chosen in this round, bit i for slot i. The round ends when no other warp has room.
    served: SlotMask,
}

impl IBuffers {
    /// Empty buffers of `entries` instructions for `warps` warps.
    pub fn new(warps: usize, entries: u32, latency: u32) -> Self {
        assert!(warps <= MAX_SLOTS, "at most {MAX_SLOTS} warp slots, not {warps}");
        IBuffers {
            entries: entries as u8,
            latency: u64::from(latency),
            buffers: [Buffer::default(); MAX_SLOTS],
            fetches: VecDeque::with_capacity(latency as usize + 1),
            next_arrival: Cycle::NEVER,
            has_room: 0,
            last: 0,
            served: 0,
        }
    }

    /// True if the warp's next instruction is in its buffer.
    #[inline]
    pub fn has_instruction(&self, warp: usize) -> bool {
        // `%` costs nothing for a power of two, and tells the compiler that the index is in bounds.
        self.buffers[warp % MAX_SLOTS].ready > 0
    }

    /// Removes the warp's next instruction at its issue.
    #[inline]
    pub fn take(&mut self, warp: usize) {
        let buffer = &mut self.buffers[warp % MAX_SLOTS];
        buffer.ready -= 1;
        self.has_room |= 1 << warp;
    }

    /// Empties the warp's buffer, and starts to fetch from its new program counter.
    pub fn jump(&mut self, warp: usize) {
        let buffer = &mut self.buffers[warp];
        *buffer = Buffer {
            ready: 0,
            in_flight: 0,
            // Wrapping is safe: each jump needs a fetched instruction, so older fetches arrive long before 256 jumps.
            epoch: buffer.epoch.wrapping_add(1),
        };
        self.has_room |= 1 << warp;
    }

    /// Stops the fetch for a warp that has exited, or whose next program counter is unknown.
    pub fn stop(&mut self, warp: usize) {
        // Drops the fetches in flight too.
        self.jump(warp);
        self.has_room &= !(1 << warp);
    }

    /// Moves arrived fetches into the buffers. Returns the warps whose buffer was empty before.
    #[inline]
    pub fn fill(&mut self, now: Cycle) -> SlotMask {
        if self.next_arrival > now {
            0
        } else {
            self.take_arrivals(now)
        }
    }

    fn take_arrivals(&mut self, now: Cycle) -> SlotMask {
        let mut filled = 0;
        while let Some(Fetch { warp, epoch, .. }) = self.fetches.pop_front_if(|fetch| fetch.arrives <= now) {
            let buffer = &mut self.buffers[warp as usize % MAX_SLOTS];
            // A fetch from before the last jump is dropped.
            if buffer.epoch == epoch {
                filled |= SlotMask::from(buffer.ready == 0) << warp;
                buffer.in_flight -= 1;
                buffer.ready += 1;
            }
        }
        self.next_arrival = self.fetches.front().map_or(Cycle::NEVER, |fetch| fetch.arrives);
        filled
    }

    /// Starts this cycle's fetch and returns its warp. `youngest` returns the youngest of a set of warps.
    #[inline]
    pub fn fetch(&mut self, now: Cycle, youngest: impl Fn(SlotMask) -> usize) -> Option<usize> {
        if self.has_room == 0 {
            return None;
        }
        // Greedy like the issue stage, so the warp that is fetched for is mostly the warp that issues.
        let warp = if self.has_room >> self.last & 1 == 1 {
            self.last as usize
        } else {
            let unserved = self.has_room & !self.served;
            if unserved == 0 {
                // Every warp with room has had its turn: a new round.
                self.served = 0;
            }
            let warp = youngest(self.has_room & !self.served);
            self.served |= 1 << warp;
            warp
        };
        let buffer = &mut self.buffers[warp % MAX_SLOTS];
        buffer.in_flight += 1;
        // Fetches in flight need an entry too.
        if buffer.ready + buffer.in_flight >= self.entries {
            self.has_room &= !(1 << warp);
        }
        let arrives = now + self.latency;
        self.next_arrival = self.next_arrival.min(arrives);
        self.fetches.push_back(Fetch {
            arrives,
            warp: warp as u8,
            epoch: buffer.epoch,
        });
        self.last = warp as u8;
        Some(warp)
    }

    /// True if the next cycle has a fetch: a buffer has room.
    pub fn is_fetching(&self) -> bool {
        self.has_room != 0
    }

    /// Arrival of the oldest fetch in flight, or [`Cycle::NEVER`].
    #[inline]
    pub fn next_arrival(&self) -> Cycle {
        self.next_arrival
    }

    /// Number of instructions in a warp's buffer.
    pub fn ready(&self, warp: usize) -> u8 {
        self.buffers[warp].ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_fetched_in_t_is_in_the_buffer_in_t_plus_latency() {
        let mut buffers = IBuffers::new(1, 3, 2);
        buffers.jump(0);
        buffers.fetch(Cycle(5), |_| 0);
        assert_eq!(buffers.fill(Cycle(6)), 0);
        assert_eq!(buffers.fill(Cycle(7)), 1);
        assert!(buffers.has_instruction(0));
    }

    #[test]
    fn full_buffer_gets_no_fetch_until_an_instruction_is_taken() {
        let mut buffers = IBuffers::new(1, 2, 1);
        buffers.jump(0);
        for now in 0..4 {
            buffers.fill(Cycle(now));
            buffers.fetch(Cycle(now), |_| 0);
        }
        assert_eq!(buffers.ready(0), 2);
        assert!(!buffers.is_fetching());
        buffers.take(0);
        assert!(buffers.is_fetching());
    }

    #[test]
    fn youngest_warps_that_jump_each_time_leave_the_others_their_turn() {
        let mut buffers = IBuffers::new(4, 1, 3);
        (0..4).for_each(|warp| buffers.jump(warp));
        // Slot 3 holds the youngest warp. A warp jumps a cycle after its fetch, so it has room again.
        let mut last = None;
        let fetched = [0, 1, 2, 3, 4, 5, 6, 7].map(|now| {
            let warp = buffers.fetch(Cycle(now), |set| set.ilog2() as usize).unwrap();
            last.replace(warp).into_iter().for_each(|warp| buffers.jump(warp));
            warp
        });
        // At first slot 0 counts as the last one fetched for.
        assert_eq!(fetched, [0, 3, 2, 1, 0, 3, 2, 1]);
    }

    #[test]
    fn jump_drops_the_fetches_in_flight() {
        let mut buffers = IBuffers::new(1, 2, 2);
        buffers.jump(0);
        buffers.fetch(Cycle(0), |_| 0);
        buffers.jump(0);
        assert_eq!(buffers.fill(Cycle(2)), 0);
        assert!(!buffers.has_instruction(0));
    }
}
