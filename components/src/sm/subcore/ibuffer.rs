//! Instruction buffers of a sub-core's warps, and the fetch that fills them.
//!
//! One instruction is fetched per cycle: for the last warp again while its buffer has room, else for the youngest warp with room
//! (huerta25). It is in the buffer `latency` cycles later. A jump empties the warp's buffer, and its fetches in flight are dropped
//! on arrival. Every fetch hits: instruction-cache misses are not modelled.

use warpwave_hw::time::Cycle;

/// Upper bound of the warp slots.
const SLOTS: usize = 32;

/// One fetch in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fetch {
    arrives: Cycle,
    warp: u8,
    /// [`Buffer::jumps`] when the fetch began.
    jumps: u8,
}

/// One warp's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Buffer {
    /// Instructions in the buffer.
    ready: u8,
    /// Instructions in flight to it.
    coming: u8,
    /// Jumps so far (mod 256): identifies fetches from before the last jump.
    jumps: u8,
}

/// The buffers of all warps of a sub-core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IBuffers {
    /// Capacity of each buffer, in instructions.
    entries: u8,
    latency: u64,
    buffers: [Buffer; SLOTS],
    /// Ring of fetches in flight, oldest first. Its length is a power of two.
    ring: Box<[Fetch]>,
    first: u32,
    n: u32,
    /// Arrival of the oldest fetch, or [`Cycle::NEVER`].
    arrives: Cycle,
    /// Warps whose buffer has room, bit i for slot i.
    has_room: u32,
    /// The warp of the last fetch.
    last: u8,
}

impl IBuffers {
    /// Empty buffers of `entries` instructions for `warps` warps.
    pub fn new(warps: usize, entries: u32, latency: u32) -> Self {
        assert!(warps <= SLOTS, "at most {SLOTS} warp slots, not {warps}");
        let none = Fetch {
            arrives: Cycle::ZERO,
            warp: 0,
            jumps: 0,
        };
        IBuffers {
            entries: entries as u8,
            latency: u64::from(latency),
            buffers: [Buffer::default(); SLOTS],
            ring: vec![none; (latency as usize + 1).next_power_of_two()].into(),
            first: 0,
            n: 0,
            arrives: Cycle::NEVER,
            has_room: 0,
            last: 0,
        }
    }

    /// True if the warp's next instruction is in its buffer.
    #[inline]
    pub fn has_instruction(&self, warp: usize) -> bool {
        self.buffers[warp % SLOTS].ready > 0
    }

    /// Removes the warp's next instruction, which is issued.
    #[inline]
    pub fn take(&mut self, warp: usize) {
        let buffer = &mut self.buffers[warp % SLOTS];
        buffer.ready -= 1;
        self.has_room |= 1 << warp;
    }

    /// Empties the warp's buffer and fetches from its new program counter.
    pub fn jump(&mut self, warp: usize) {
        let buffer = &mut self.buffers[warp];
        *buffer = Buffer {
            ready: 0,
            coming: 0,
            jumps: buffer.jumps.wrapping_add(1),
        };
        self.has_room |= 1 << warp;
    }

    /// Stops fetching for the warp: it has exited, or its next program counter is not known yet.
    pub fn stop(&mut self, warp: usize) {
        self.jump(warp);
        self.has_room &= !(1 << warp);
    }

    /// Moves arrived fetches into the buffers. Returns the warps whose buffer was empty before.
    #[inline]
    pub fn arrive(&mut self, now: Cycle) -> u32 {
        if self.arrives > now { 0 } else { self.take_arrived(now) }
    }

    fn take_arrived(&mut self, now: Cycle) -> u32 {
        let mut filled = 0;
        while self.arrives <= now {
            let Fetch { warp, jumps, .. } = self.ring[self.place(0)];
            self.first = self.first.wrapping_add(1);
            self.n -= 1;
            self.arrives = match self.n {
                0 => Cycle::NEVER,
                _ => self.ring[self.place(0)].arrives,
            };
            let buffer = &mut self.buffers[warp as usize % SLOTS];
            if buffer.jumps == jumps {
                filled |= u32::from(buffer.ready == 0) << warp;
                buffer.coming -= 1;
                buffer.ready += 1;
            }
        }
        filled
    }

    /// Index in the ring of the `n`th fetch after the oldest.
    #[inline]
    fn place(&self, n: u32) -> usize {
        self.first.wrapping_add(n) as usize & (self.ring.len() - 1)
    }

    /// Starts this cycle's fetch and returns its warp. `youngest` returns the youngest of a set of warps.
    #[inline]
    pub fn fetch(&mut self, now: Cycle, youngest: impl Fn(u32) -> usize) -> Option<usize> {
        if self.has_room == 0 || self.n as usize == self.ring.len() {
            return None;
        }
        let warp = if self.has_room >> self.last & 1 == 1 {
            self.last as usize
        } else {
            youngest(self.has_room)
        };
        let place = self.place(self.n);
        let buffer = &mut self.buffers[warp % SLOTS];
        buffer.coming += 1;
        if buffer.ready + buffer.coming >= self.entries {
            self.has_room &= !(1 << warp);
        }
        let arrives = now + self.latency;
        self.arrives = self.arrives.min(arrives);
        self.ring[place] = Fetch {
            arrives,
            warp: warp as u8,
            jumps: buffer.jumps,
        };
        self.n += 1;
        self.last = warp as u8;
        Some(warp)
    }

    /// True if a buffer has room.
    pub fn is_fetching(&self) -> bool {
        self.has_room != 0
    }

    /// Arrival of the oldest fetch in flight, or [`Cycle::NEVER`].
    #[inline]
    pub fn next_arrival(&self) -> Cycle {
        self.arrives
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
    fn fetched_at_t_is_here_at_t_plus_latency() {
        let mut buffers = IBuffers::new(1, 3, 2);
        buffers.jump(0);
        buffers.fetch(Cycle(5), |_| 0);
        assert_eq!(buffers.arrive(Cycle(6)), 0);
        assert_eq!(buffers.arrive(Cycle(7)), 1);
        assert!(buffers.has_instruction(0));
    }

    #[test]
    fn full_buffer_is_not_fetched_for_until_one_is_taken() {
        let mut buffers = IBuffers::new(1, 2, 1);
        buffers.jump(0);
        for now in 0..4 {
            buffers.arrive(Cycle(now));
            buffers.fetch(Cycle(now), |_| 0);
        }
        assert_eq!(buffers.ready(0), 2);
        assert!(!buffers.is_fetching());
        buffers.take(0);
        assert!(buffers.is_fetching());
    }

    #[test]
    fn jump_under_way_drops_what_was_fetched_before() {
        let mut buffers = IBuffers::new(1, 2, 2);
        buffers.jump(0);
        buffers.fetch(Cycle(0), |_| 0);
        buffers.jump(0);
        assert_eq!(buffers.arrive(Cycle(2)), 0);
        assert!(!buffers.has_instruction(0));
    }
}
