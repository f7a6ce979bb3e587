//! Register allocation: virtual registers to R0..R254.
//!
//! Registers of one value become consecutive and aligned. Registers that are live at the same time never share. The register
//! count is the highest number plus one, and at least 8. Source and destination of a move share a register if possible, and the
//! move is removed.
//!
//! A *group* is the virtual registers of one value, such as the two words of a 64-bit value. A *bundle* is one group or one
//! register, or several joined by moves. It has up to four slots for consecutive registers, or the eight of one wide group.
//! Joined registers may share a slot, because their live ranges are disjoint.

use super::code::{Bits, Code, Op, VReg};
use super::graph::Graph;
use super::live::{self, LiveRanges};
use super::spill::SpillSlots;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Reg;

/// Result of the allocation.
pub(super) struct Allocation {
    /// Physical register of each virtual register; RZ for one without a value.
    pub registers: Vec<Reg>,
    /// Registers per thread.
    pub count: u32,
}

/// Allocates at most `limit` registers, and spills values if they are too few.
///
/// # Errors
///
/// Returns the number of registers needed if spilling does not help.
pub(super) fn allocate(code: &mut Code, limit: usize, slots: &mut SpillSlots) -> Result<Allocation, usize> {
    // The loads of spilled values need registers too, so the spill target can be below `limit`.
    let mut target = limit;
    loop {
        let graph = Graph::of(code);
        let ranges = live::live_ranges::<live::GeneralRegs>(code, &graph);
        // More live registers than `limit` never fit, and first fit among thousands is slow.
        if live::peak(&ranges) <= limit
            && let Some(allocation) = Bundles::joined(code, ranges.clone()).assign(limit)
        {
            drop_moves(code, &allocation.registers);
            return Ok(allocation);
        }
        let spilled = slots.spill(code, &graph, &ranges, target);
        target = spilled.ok_or_else(|| Bundles::joined(code, ranges).needed())?;
    }
}

/// Minimum register count of a kernel: the allocation unit of the hardware.
const MIN_REGISTERS: usize = 8;

/// Maximum width of a bundle with several groups.
const MAX_BUNDLE_WIDTH: usize = 4;

/// Maximum width of a group: coordinates of a five-dimensional tile, aligned to 8.
const MAX_GROUP_WIDTH: usize = 8;

/// Registers that must be allocated at fixed distances.
#[derive(Default)]
struct Bundle {
    /// Live ranges in each slot.
    slots: [LiveRanges; MAX_GROUP_WIDTH],
    /// Registers, with their slots.
    vregs: Vec<(VReg, usize)>,
    /// Number of slots up to the last register.
    width: usize,
    /// Required alignments, each once: slot and power of two.
    aligned: Vec<(usize, usize)>,
    /// Place among bundles that start at the same time.
    rank: usize,
}

impl Bundle {
    fn add(&mut self, vreg: VReg, slot: usize) {
        self.vregs.push((vreg, slot));
        self.width = self.width.max(slot + 1);
    }

    fn alignment(&self) -> usize {
        self.aligned.iter().map(|&(_, align)| align).max().unwrap_or(1)
    }

    fn start(&self) -> u32 {
        self.slots
            .iter()
            .filter_map(|ranges| ranges.first())
            .map(|range| range.0)
            .min()
            .unwrap_or(0)
    }
}

/// All bundles of a kernel.
struct Bundles {
    bundles: Vec<Bundle>,
    /// Minimum register count of the kernel.
    min_registers: usize,
    /// Bundle and slot of each register.
    positions: Vec<Option<(usize, usize)>>,
}

impl Bundles {
    /// Creates one bundle for each group that is used as a whole, and for each other register.
    fn of(code: &Code, mut ranges: Vec<LiveRanges>) -> Bundles {
        let is_grouped = grouped_vregs(code);
        let mut bundles = Bundles {
            bundles: Vec::new(),
            positions: vec![None; ranges.len()],
            min_registers: code.min_registers,
        };
        for vreg in (0..ranges.len() as u32).map(VReg) {
            // A group that no operation uses as a whole falls apart into words, which are easier to place.
            let (first, words) = if is_grouped[vreg.0 as usize] {
                code.groups[vreg.0 as usize]
            } else {
                (vreg, 1)
            };
            // The first register of a group makes the bundle for all. A group that is never live needs none.
            if first != vreg || (0..words).all(|n| ranges[vreg.offset(n).0 as usize].is_empty()) {
                continue;
            }
            let mut bundle = Bundle {
                aligned: vec![(0, usize::from(words).next_power_of_two())],
                rank: bundles.bundles.len(),
                ..Bundle::default()
            };
            for n in 0..words {
                let member = vreg.offset(n);
                bundle.slots[usize::from(n)] = std::mem::take(&mut ranges[member.0 as usize]);
                bundle.add(member, n.into());
                bundles.positions[member.0 as usize] = Some((bundles.bundles.len(), n.into()));
            }
            bundles.bundles.push(bundle);
        }
        bundles
    }

    /// Creates the bundles of a kernel, and merges those of moves.
    fn joined(code: &Code, ranges: Vec<LiveRanges>) -> Bundles {
        let mut bundles = Bundles::of(code, ranges);
        for mv in moves(code) {
            bundles.join(mv);
        }
        bundles
    }

    /// Merges the bundles of a move's source and destination, so that both share a slot. Does nothing if that is impossible.
    fn join(&mut self, (to, from): (VReg, VReg)) {
        let (Some((a, slot_a)), Some((b, slot_b))) = (self.positions[to.0 as usize], self.positions[from.0 as usize])
        else {
            return;
        };
        // In one bundle the distance of the two registers is fixed.
        if a == b {
            return;
        }
        let Some((shift_a, shift_b)) = self.fit(a, slot_a, b, slot_b) else {
            return;
        };
        let rank = self.bundles[a].rank;
        // The smaller one moves, so that thousands of joins to one bundle take no quadratic time.
        let (kept, shift_kept, moved, shift_moved) = match self.bundles[a].vregs.len() < self.bundles[b].vregs.len() {
            true => (b, shift_b, a, shift_a),
            false => (a, shift_a, b, shift_b),
        };
        // The emptied bundle has width 0, and `orders` leaves it out.
        let merged = std::mem::take(&mut self.bundles[moved]);
        self.shift(kept, shift_kept);
        let bundle = &mut self.bundles[kept];
        bundle.rank = rank;
        for (slot, ranges) in merged.slots.iter().enumerate().filter(|(_, ranges)| !ranges.is_empty()) {
            live::merge(&mut bundle.slots[slot + shift_moved], ranges);
        }
        for (slot, align) in merged.aligned {
            let needed = (slot + shift_moved, align);
            if !bundle.aligned.contains(&needed) {
                bundle.aligned.push(needed);
            }
        }
        for (vreg, slot) in merged.vregs {
            bundle.add(vreg, slot + shift_moved);
            self.positions[vreg.0 as usize] = Some((kept, slot + shift_moved));
        }
    }

    /// Returns the shifts of both bundles that bring the two registers into one slot.
    fn fit(&self, a: usize, slot_a: usize, b: usize, slot_b: usize) -> Option<(usize, usize)> {
        let (first, second) = (&self.bundles[a], &self.bundles[b]);
        let first_slot = slot_a.max(slot_b);
        (first_slot..MAX_BUNDLE_WIDTH)
            .map(|slot| (slot - slot_a, slot - slot_b))
            .find(|&(shift_a, shift_b)| {
                let narrow = first.width + shift_a <= MAX_BUNDLE_WIDTH && second.width + shift_b <= MAX_BUNDLE_WIDTH;
                let shifted = |bundle: &Bundle, shift: usize| {
                    bundle
                        .aligned
                        .iter()
                        .all(|&(slot, align)| (slot + shift).is_multiple_of(align))
                };
                narrow
                    && shifted(first, shift_a)
                    && shifted(second, shift_b)
                    && self.are_disjoint(a, shift_a, b, shift_b)
            })
    }

    /// True if no slot of the shifted bundles holds two values at the same time.
    fn are_disjoint(&self, a: usize, shift_a: usize, b: usize, shift_b: usize) -> bool {
        (0..MAX_BUNDLE_WIDTH).all(|slot| {
            let of =
                |bundle: usize, shift: usize| slot.checked_sub(shift).map(|slot| &self.bundles[bundle].slots[slot]);
            match (of(a, shift_a), of(b, shift_b)) {
                (Some(first), Some(second)) => !live::overlap(first, second),
                _ => true,
            }
        })
    }

    /// Moves the registers of a bundle up by `by` slots.
    fn shift(&mut self, bundle: usize, by: usize) {
        if by == 0 {
            return;
        }
        let shifted = &mut self.bundles[bundle];
        shifted.width += by;
        shifted.slots.rotate_right(by);
        for (slot, _) in &mut shifted.aligned {
            *slot += by;
        }
        for (vreg, slot) in &mut shifted.vregs {
            *slot += by;
            self.positions[vreg.0 as usize] = Some((bundle, *slot));
        }
    }

    /// Assigns at most `limit` registers by first fit in two orders, by time and by width. Keeps the result with fewer registers.
    fn assign(&self, limit: usize) -> Option<Allocation> {
        let [by_time, by_width] = self.orders();
        // The encoding names R0 to R254, and R255 is RZ.
        let first = self.first_fit(&by_time, limit.min(Reg::COUNT));
        // The second order counts only if it needs fewer registers.
        let fewer = first
            .as_ref()
            .map_or(limit.min(Reg::COUNT), |(_, count)| count.saturating_sub(1));
        let (registers, count) = self.first_fit(&by_width, fewer).or(first)?;
        let count = count.max(MIN_REGISTERS).max(self.min_registers);
        let registers = registers
            .into_iter()
            .map(|number| number.map_or(Reg::ZERO, |n| Reg(n as u8)))
            .collect();
        (count <= limit).then_some(Allocation {
            registers,
            count: count as u32,
        })
    }

    /// Returns the number of registers that first fit needs without a limit.
    fn needed(&self) -> usize {
        let counts = self
            .orders()
            .into_iter()
            .filter_map(|order| self.first_fit(&order, usize::MAX));
        let fewest = counts.map(|(_, count)| count).min().unwrap_or(0);
        if fewest > Reg::COUNT {
            return fewest;
        }
        fewest.max(MIN_REGISTERS).max(self.min_registers)
    }

    /// Returns the bundles in order of time, and in order of width.
    fn orders(&self) -> [Vec<usize>; 2] {
        let mut by_time: Vec<usize> = (0..self.bundles.len()).filter(|&n| self.bundles[n].width > 0).collect();
        by_time.sort_by_key(|&n| (self.bundles[n].start(), self.bundles[n].rank));
        let mut by_width = by_time.clone();
        // Wide bundles first, while aligned registers are free. Bundles of one width stay in order of time.
        by_width.sort_by_key(|&n| MAX_GROUP_WIDTH - self.bundles[n].width.next_power_of_two());
        [by_time, by_width]
    }

    /// Gives each bundle the first registers that are free for it. Returns `None` if more than `limit` are needed.
    fn first_fit(&self, order: &[usize], limit: usize) -> Option<(Vec<Option<usize>>, usize)> {
        let mut taken_ranges: Vec<LiveRanges> = Vec::new();
        let mut registers = vec![None; self.positions.len()];
        let mut count = 0;
        for &n in order {
            let bundle = &self.bundles[n];
            let mut base = 0;
            while !fits(&taken_ranges, bundle, base) {
                // There is a free place at the latest after all taken registers.
                base += bundle.alignment();
            }
            count = count.max(base + bundle.width);
            if count > limit {
                return None;
            }
            for (slot, ranges) in bundle.slots.iter().enumerate().filter(|(_, ranges)| !ranges.is_empty()) {
                taken_ranges.resize(taken_ranges.len().max(base + slot + 1), LiveRanges::new());
                live::merge(&mut taken_ranges[base + slot], ranges);
            }
            for &(vreg, slot) in &bundle.vregs {
                registers[vreg.0 as usize] = Some(base + slot);
            }
        }
        Some((registers, count))
    }
}

fn fits(taken_ranges: &[LiveRanges], bundle: &Bundle, base: usize) -> bool {
    let taken = |slot: usize| taken_ranges.get(base + slot).map_or(&[][..], Vec::as_slice);
    bundle
        .slots
        .iter()
        .enumerate()
        .all(|(slot, ranges)| !live::overlap(taken(slot), ranges))
}

/// Marks registers whose group is used as one value by an operation.
fn grouped_vregs(code: &Code) -> Vec<bool> {
    let mut is_grouped = vec![false; code.groups.len()];
    for op in code.ops() {
        let shape = op.shape();
        let sources = op.src.iter().map(|arg| arg.as_vreg()).zip(shape.src);
        for (vreg, _) in sources.chain([(op.dst, shape.dst)]).filter(|&(_, words)| words > 1) {
            let Some(vreg) = vreg else { continue };
            let (first, length) = code.groups[vreg.0 as usize];
            // An encoded operand names only its first register. So the whole group stays together, even if the operand is a part of it.
            for n in 0..length {
                is_grouped[first.offset(n).0 as usize] = true;
            }
        }
    }
    is_grouped
}

/// Returns all moves between registers. Moves in loops come first, because they run most often.
fn moves(code: &Code) -> Vec<(VReg, VReg)> {
    let graph = Graph::of(code);
    let mut found: Vec<(bool, VReg, VReg)> = Vec::new();
    for (body, in_cycle) in code.blocks.iter().zip(graph.in_cycles()) {
        let straight = !in_cycle;
        found.extend(
            body.ops
                .iter()
                .filter_map(|op| Some((straight, op.dst?, move_source(op)?))),
        );
    }
    found.sort_by_key(|&(straight, ..)| straight);
    found.into_iter().map(|(_, to, from)| (to, from)).collect()
}

fn move_source(op: &Op) -> Option<VReg> {
    match op.src[0].bits {
        Bits::VReg(vreg) if op.is(Opcode::Mov) && op.src[0].is_plain() => Some(vreg),
        _ => None,
    }
}

/// Removes moves from a register to itself.
fn drop_moves(code: &mut Code, registers: &[Reg]) {
    for block in &mut code.blocks {
        block.ops.retain(|op| {
            let (Some(to), Some(from)) = (op.dst, move_source(op)) else {
                return true;
            };
            // A move to itself does nothing, under any guard.
            registers[to.0 as usize] != registers[from.0 as usize]
        });
    }
}
