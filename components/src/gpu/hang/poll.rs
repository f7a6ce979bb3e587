//! What the running warps of a hanging launch poll: the last load or atomic before their program counter.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use warpwave_isa::exec::mbarrier;
use warpwave_isa::inst::{AtomOp, CacheOp, Inst};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Program, WordSource};
use warpwave_isa::reg::{Reg, RegSet};
use warpwave_isa::space::{LOCAL_WINDOW, SHARED_WINDOW, SHARED_WINDOWS_BYTES, Space, WINDOW_BYTES, split_window};

use super::lists::list;
use super::{Block, Hang, Sentences};
use crate::sm::subcore::regfile::RegFile;
use crate::sm::subcore::warp::Warp;

/// Instructions before the program counter among which the polling access of a loop is looked for.
const LOOP_REACH: usize = 64;

/// An access that a warp repeats.
#[derive(Clone, Debug)]
pub(in crate::gpu) struct Poll {
    /// Its line in the PTX text.
    pub(super) line: u32,
    op: Opcode,
    space: Space,
    cache: CacheOp,
    address: u64,
    /// What it reads. `None` while that is not in a register.
    value: Option<u32>,
}

/// The access that a running warp polls, and the loop around it and the program counter. Once the warp `has_repeated` its loop, an access
/// behind the program counter counts too.
fn locate(warp: &Warp, has_repeated: bool) -> Option<(usize, RangeInclusive<usize>)> {
    // A warp without active lanes waits or has ended. Its program counter may be beyond the code.
    warp.flow.active().lowest()?;
    let (program, pc) = (&warp.grid.program, warp.flow.pc() as usize);
    let code = program.code();
    let before = code.get(..=pc)?;
    // Backwards from the program counter: the access that this round has made.
    let this_round = |is_poll: fn(&Inst) -> bool| {
        let at = pc - before.iter().rev().take(LOOP_REACH).position(is_poll)?;
        let body = loop_around(program, at, LOOP_REACH).filter(|body| body.contains(&pc))?;
        Some((at, body))
    };
    // Backwards from the end of the loop: the access that the round before has made.
    let earlier_round = |is_poll: fn(&Inst) -> bool| {
        let body = loop_around(program, pc, LOOP_REACH)?;
        let at = (pc + 1..=*body.end()).rev().find(|&at| is_poll(&code[at]))?;
        Some((at, body))
    };
    let find = |is_poll| this_round(is_poll).or_else(|| earlier_round(is_poll).filter(|_| has_repeated));
    // A constant never changes, so it is looked at last.
    find(|inst| matches!(inst.op, Opcode::Ld | Opcode::Atom | Opcode::Syncs))
        .or_else(|| find(|inst| inst.op == Opcode::Ldc))
}

/// First and last line of the loop around the program counter of a running warp.
pub(in crate::gpu) fn lines_of_loop(warp: &Warp) -> Option<[u32; 2]> {
    warp.flow.active().lowest()?;
    let program = &warp.grid.program;
    // The copies of an unrolled loop are hundreds of instructions.
    let body = loop_around(program, warp.flow.pc() as usize, program.code().len())?;
    // Instructions without a line stand for no text, and scheduling may have changed their order.
    let lines = program.code()[body]
        .iter()
        .map(|inst| inst.line)
        .filter(|&line| line > 0);
    Some([lines.clone().min()?, lines.max()?])
}

/// The polling access of a running warp, if its loop branches on the value.
pub(in crate::gpu) fn find_spin(slot: usize, warp: &Warp, file: &RegFile) -> Option<Poll> {
    let (at, body) = locate(warp, false)?;
    // A loop that compares with a constant may make progress.
    let poll = find(slot, warp, file, false).filter(|poll| poll.space != Space::Const)?;
    decides_a_branch(&warp.grid.program, at, body).then_some(poll)
}

/// True if a branch or exit of the loop depends on the result of the instruction at `at`.
fn decides_a_branch(program: &Program, at: usize, body: RangeInclusive<usize>) -> bool {
    let decoded = program.decoded();
    let (mut registers, mut predicates) = (decoded[at].defs, decoded[at].pred_defs);
    // From the access to the end of the loop, then from its begin.
    let after = at + 1..body.end() + 1;
    after.chain(*body.start()..at).any(|pc| {
        let inst = &decoded[pc];
        if inst.uses.intersects(&registers) || inst.pred_uses & predicates != 0 {
            registers = registers.union(&inst.defs);
            predicates |= inst.pred_defs;
        }
        let leaves = matches!(program.code()[pc].op, Opcode::Bra | Opcode::Exit | Opcode::Break);
        leaves && inst.pred_guard & predicates != 0
    })
}

/// The polling access of a running warp, if it is in a loop around the program counter. `has_repeated` is true once the warp has returned
/// to an earlier state.
pub(in crate::gpu) fn find(slot: usize, warp: &Warp, file: &RegFile, has_repeated: bool) -> Option<Poll> {
    let lane = warp.flow.active().lowest()?;
    let code = warp.grid.program.code();
    let (at, body) = locate(warp, has_repeated)?;
    let inst = &code[at];
    let access = Access {
        warp,
        at,
        body,
        file,
        slot,
        lane,
    };
    // An address in these spaces has one word, any other two.
    let is_narrow = !matches!(inst.mods.space, Space::Global | Space::Generic);
    let low = access.address_word(0);
    let base = if is_narrow {
        low
    } else {
        low | access.address_word(1) << 32
    };
    let (space, address) = in_space(inst.mods.space, base.wrapping_add(inst.mods.offset as i64 as u64));
    Some(Poll {
        line: inst.line,
        op: inst.op,
        space,
        cache: inst.mods.cache,
        address,
        value: access.value(),
    })
}

/// The state space that an address lies in, and the address there.
fn in_space(space: Space, address: u64) -> (Space, u64) {
    let shared = SHARED_WINDOW..SHARED_WINDOW + SHARED_WINDOWS_BYTES;
    let local = LOCAL_WINDOW..LOCAL_WINDOW + WINDOW_BYTES;
    let (space, address) = match space {
        Space::Generic if shared.contains(&address) => (Space::Cluster, address - SHARED_WINDOW),
        Space::Generic if local.contains(&address) => (Space::Local, address - LOCAL_WINDOW),
        space => (space, address),
    };
    match split_window(address) {
        (None, own) if space == Space::Cluster => (Space::Shared, own),
        _ => (space, address),
    }
}

/// The loop around an instruction: to the first branch back to it or before it, at most `reach` instructions ahead.
pub(super) fn loop_around(program: &Program, at: usize, reach: usize) -> Option<RangeInclusive<usize>> {
    let code = program.code();
    let is_latch = |inst: &Inst| inst.op == Opcode::Bra && inst.target as usize <= at;
    let latch = at + code[at..].iter().take(reach).position(is_latch)?;
    Some(code[latch].target as usize..=latch)
}

/// A polling access with its loop.
struct Access<'a> {
    warp: &'a Warp,
    at: usize,
    body: RangeInclusive<usize>,
    file: &'a RegFile,
    slot: usize,
    /// The lane that is looked at.
    lane: usize,
}

impl Access<'_> {
    /// A word of the base address.
    fn address_word(&self, n: usize) -> u64 {
        let program = &self.warp.grid.program;
        let decoded = &program.decoded()[self.at];
        let source = decoded.sources[usize::from(decoded.first_word[0]) + n];
        let WordSource::Reg(reg) = source else {
            return self.constant(source).unwrap_or(0).into();
        };
        // The result may overwrite the address, which the loop then loads from a constant each time.
        let definition = (*self.body.start()..self.at).rev().find(|&n| self.defines(n, reg));
        let moved = definition.filter(|&n| program.code()[n].op == Opcode::Mov);
        let constant = moved.and_then(|n| self.constant(program.decoded()[n].sources[0]));
        constant.unwrap_or_else(|| self.register(reg)).into()
    }

    fn constant(&self, source: WordSource) -> Option<u32> {
        match source {
            WordSource::Zero => Some(0),
            WordSource::Imm(bits) => Some(bits),
            WordSource::Const { bank, word } => Some(self.warp.grid.constant(bank, word)),
            WordSource::Reg(_) | WordSource::Special(_) => None,
        }
    }

    fn register(&self, reg: Reg) -> u32 {
        self.file.read(self.slot, reg).0[self.lane]
    }

    fn defines(&self, n: usize, reg: Reg) -> bool {
        let mut set = RegSet::default();
        set.insert(reg, 1);
        self.warp.grid.program.decoded()[n].defs.intersects(&set)
    }

    /// What the access has read: its result register, while nothing else has overwritten it.
    fn value(&self) -> Option<u32> {
        let inst = &self.warp.grid.program.code()[self.at];
        if inst.op == Opcode::Syncs || inst.dst.is_zero() {
            return None;
        }
        let pc = self.warp.flow.pc() as usize;
        // The load of this round has returned.
        let is_back = self.warp.loads == 0 && pc > self.at;
        let since = self.at + 1..pc.max(self.at + 1);
        let is_kept = is_back && !since.into_iter().any(|n| self.defines(n, inst.dst));
        // Or nothing else in the loop writes the register: it holds what an earlier round has read.
        let is_only = || !self.body.clone().any(|n| n != self.at && self.defines(n, inst.dst));
        (is_kept || is_only()).then(|| self.register(inst.dst))
    }
}

impl Poll {
    /// True if address and value are known, or there is no value to know.
    pub(in crate::gpu) fn is_complete(&self) -> bool {
        self.value.is_some() || self.op == Opcode::Syncs
    }

    /// True for the same access in the text with the same address.
    pub(in crate::gpu) fn is_same_access(&self, other: &Poll) -> bool {
        (self.line, self.op, self.space, self.address) == (other.line, other.op, other.space, other.address)
    }

    /// The poll with the value of an earlier one, if its own is not known.
    pub(in crate::gpu) fn or_value_of(self, earlier: &Poll) -> Self {
        Poll {
            value: self.value.or(earlier.value),
            ..self
        }
    }

    /// True if the access reads device memory through the L1, which does not see the stores of other SMs.
    fn may_be_stale(&self) -> bool {
        let is_cached = matches!(self.cache, CacheOp::All | CacheOp::Streaming | CacheOp::ReadOnly);
        self.op == Opcode::Ld && self.writer() == Writer::Global && is_cached
    }

    /// What is polled, with its value.
    fn what(&self) -> String {
        let (rank, address) = match self.space {
            Space::Cluster => split_window(self.address),
            _ => (None, self.address),
        };
        let of = rank.map_or(String::new(), |rank| {
            format!(" of the block with rank {rank} in the cluster")
        });
        let space = match self.space {
            Space::Shared | Space::Cluster => "shared memory",
            Space::Local => "local memory",
            Space::Const => "constant memory",
            _ => "memory",
        };
        match (self.op, self.value) {
            (Opcode::Syncs, _) => format!("the mbarrier at {address:#x} of {space}{of}"),
            (_, None) => format!("{space} at {address:#x}{of}"),
            (_, Some(value)) => format!("{space} at {address:#x}{of} (value {value})"),
        }
    }

    /// The kind of instruction that could end the polling.
    fn writer(&self) -> Writer {
        match (self.op, self.space) {
            (Opcode::Syncs, _) => Writer::Arrivals,
            (_, Space::Shared | Space::Cluster) => Writer::Shared,
            (_, Space::Local) => Writer::Local,
            (_, Space::Const) => Writer::Nothing,
            _ => Writer::Global,
        }
    }
}

/// The kind of instruction that changes what is polled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Writer {
    Arrivals,
    Shared,
    Global,
    Local,
    /// Constants do not change during a launch.
    Nothing,
}

impl Writer {
    fn is(self, inst: &Inst) -> bool {
        let is_arrival = matches!(inst.mods.atom, AtomOp::Arrive | AtomOp::ArriveDrop);
        let is_atomic = matches!(inst.op, Opcode::Atom | Opcode::Red);
        let is_write = is_atomic && !is_arrival || inst.op == Opcode::St;
        let is_shared = matches!(inst.mods.space, Space::Shared | Space::Cluster | Space::Generic);
        let is_bulk = matches!(inst.op, Opcode::Ublkcp | Opcode::Ublkred);
        let (to_shared, to_global) = (is_bulk && !inst.mods.high, is_bulk && inst.mods.high);
        match self {
            Writer::Arrivals => is_atomic && is_arrival || to_shared,
            Writer::Shared => is_write && is_shared || inst.op == Opcode::Ldgsts || to_shared,
            Writer::Global => is_write && matches!(inst.mods.space, Space::Global | Space::Generic) || to_global,
            Writer::Local => is_write && matches!(inst.mods.space, Space::Local | Space::Generic),
            Writer::Nothing => false,
        }
    }

    /// The lines of a kernel that could end the polling.
    fn say(self, lines: &BTreeSet<u32>) -> String {
        let what = match self {
            Writer::Arrivals => ["arrivals at mbarriers are", "arrives at no mbarrier"],
            Writer::Shared => [
                "stores and atomics of shared memory are",
                "does not write shared memory",
            ],
            Writer::Global => [
                "stores and atomics of global memory are",
                "does not write global memory",
            ],
            Writer::Local => ["stores of local memory are", "does not write local memory"],
            Writer::Nothing => return "constant memory does not change during a launch".to_owned(),
        };
        let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
        match numbers.len() {
            0 => format!("the kernel {}", what[1]),
            1 => format!("the kernel's {} in line {}", what[0], numbers[0]),
            _ => format!("the kernel's {} in lines {}", what[0], list(&numbers)),
        }
    }
}

impl Hang {
    /// Explains what the running warps poll: address, value, and the lines that could change it. `choose` gets the place of a warp and a
    /// search for its poll in the stopped machine.
    pub(super) fn explain_polls(
        &mut self,
        blocks: &[Block<'_>],
        choose: impl Fn(&(usize, usize), &dyn Fn() -> Option<Poll>) -> Option<Poll>,
    ) {
        let mut polls: BTreeMap<(u32, String), (u32, String)> = BTreeMap::new();
        let mut mbarriers = Sentences::default();
        let mut writers: BTreeMap<Writer, BTreeSet<u32>> = BTreeMap::new();
        let mut stale = BTreeSet::new();
        for block in blocks {
            let mut states = BTreeMap::new();
            for (poll, warp) in polls_of(block, &choose) {
                let writer = poll.writer();
                let code = warp.grid.program.code();
                let lines = code.iter().filter(|inst| writer.is(inst)).map(|inst| inst.line);
                writers.entry(writer).or_default().extend(lines);
                match writer {
                    Writer::Arrivals => drop(states.insert(poll.address, mbarrier_at(block, poll.address))),
                    Writer::Global => drop(self.polled.insert(poll.address)),
                    Writer::Shared | Writer::Local | Writer::Nothing => {}
                }
                self.lines.insert(poll.line);
                stale.extend(poll.may_be_stale().then_some(poll.line));
                let [x, y, z] = warp.block;
                let first = || format!("block ({x}, {y}, {z}) warp {}", warp.index);
                // Warps that poll one value in one line share a sentence.
                let of = polls.entry((poll.line, poll.what())).or_insert_with(|| (0, first()));
                of.0 += 1;
            }
            for (address, state) in states {
                mbarriers.add(
                    block.cta.block(),
                    format!("mbarrier at {address:#x}: {}", arrivals(state)),
                );
            }
        }
        if polls.is_empty() {
            return;
        }
        let say = |((line, what), (n, first)): ((u32, String), (u32, String))| match n {
            1 => format!("1 warp polls {what} in line {line}: {first}"),
            _ => format!("{n} warps poll {what} in line {line}, the first of them {first}"),
        };
        self.reasons.extend(polls.into_iter().map(say));
        self.reasons.extend(mbarriers.into_lines());
        let say = |line| {
            format!("the load in line {line} may read an old copy in the L1: use ld.volatile, ld.relaxed or ld.acquire")
        };
        self.reasons.extend(stale.into_iter().map(say));
        for (writer, lines) in writers {
            self.reasons.push(writer.say(&lines));
            self.lines.extend(lines);
        }
    }
}

/// The polls of the running warps of a block.
fn polls_of<'b>(
    block: &'b Block<'_>,
    choose: &'b impl Fn(&(usize, usize), &dyn Fn() -> Option<Poll>) -> Option<Poll>,
) -> impl Iterator<Item = (Poll, &'b Warp)> {
    let warps = (0..block.cta.grid.warps()).filter_map(|index| block.warp(index));
    let running = warps.filter(|(.., warp)| !warp.flow.active().is_empty());
    running.filter_map(move |(subcore, slot, warp)| {
        let now = || {
            find(
                slot,
                warp,
                block.sm.dispatches[subcore].registers(),
                block.sm.stands_still,
            )
        };
        Some((choose(&(block.sm.first_subcore + subcore, slot), &now)?, warp))
    })
}

/// The state of an mbarrier of a block.
fn mbarrier_at(block: &Block<'_>, address: u64) -> Option<u64> {
    let first = usize::try_from(u64::from(block.shared_base) + address).ok()?;
    let bytes = block.sm.shared.bytes().get(first..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The arrivals and bytes of an mbarrier, as a sentence.
fn arrivals(state: Option<u64>) -> String {
    let Some(state) = state.filter(|&state| mbarrier::count(state) > 0) else {
        return "it was never initialised with mbarrier.init".to_owned();
    };
    let count = mbarrier::count(state);
    let arrived = count.saturating_sub(mbarrier::pending(state));
    let bytes = match mbarrier::bytes(state) {
        0 => String::new(),
        n @ 1.. => format!(", and {n} bytes have not come"),
        n => format!(", and {} bytes more than expected have come", -n),
    };
    format!("{arrived} of {count} arrivals{bytes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_isa::exec::mbarrier::{arrive, init};

    #[test]
    fn arrivals_and_bytes_of_an_mbarrier_are_told() {
        let of_33 = arrive(init(33), 32, false);
        assert_eq!(arrivals(Some(of_33)), "32 of 33 arrivals");
        // 256 bytes more are expected, by an operation without an arrival.
        let with_bytes = arrive(of_33, 256 << 32, false);
        assert_eq!(
            arrivals(Some(with_bytes)),
            "32 of 33 arrivals, and 256 bytes have not come"
        );
        let early = arrive(init(1), u64::from((-16i32) as u32) << 32, false);
        assert_eq!(
            arrivals(Some(early)),
            "0 of 1 arrivals, and 16 bytes more than expected have come"
        );
        for never in [None, Some(0)] {
            assert_eq!(arrivals(never), "it was never initialised with mbarrier.init");
        }
    }
}
