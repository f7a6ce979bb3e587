//! Memory instructions of warps for the targets, and what each does to a memory without time.

use std::sync::Arc;

use arbitrary::Arbitrary;
use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::predecoded;
use warpwave_components::proto::warp::{IssueInfo, WarpInst};
use warpwave_components::sm::timing;
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Program, Requirements};

use crate::draw::{one_of, within};
use crate::parts::{TINY, change_word};

/// A grid of one CTA with this program, one instruction per line, and the latencies of preset `tiny`.
///
/// # Panics
/// If a line is not an instruction.
pub fn grid(program: &str) -> Grid {
    let code = program.lines().map(str::trim).filter(|line| !line.is_empty());
    let code = code.map(|line| line.parse().unwrap_or_else(|error| panic!("{line}: {error:?}")));
    let program = Arc::new(Program::new("fuzz", code.collect(), Requirements::default()));
    let timing = timing::table(&program, &TINY.sm);
    Grid {
        id: 0,
        predecoded: predecoded::table(&program, &timing),
        timing,
        program,
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        dynamic_shared_bytes: 0,
        registers: 32,
        allocations: Vec::new(),
        textures: Vec::new(),
        local_base: 0,
        l1_bytes: 0,
        constants: Vec::new(),
        ctas_per_sm: 2,
    }
}

/// One memory instruction of random traffic.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct AccessSpec {
    /// Cycles after the previous instruction of its source.
    #[arbitrary(with = one_of(&[0, 0, 1, 3, 20, 90]))]
    pub gap: u64,
    /// A choice among the instructions of the program.
    pub op: u8,
    /// The warp.
    #[arbitrary(with = within(0..=3))]
    pub warp: u8,
    #[arbitrary(with = one_of(&[u32::MAX, 1, 0xffff, 0xaaaa_aaaa, 0x8000_0001, 0]))]
    lanes: u32,
    /// Bytes from the address of a lane to that of the next.
    #[arbitrary(with = one_of(&[4, 0, 8, 12, 128, 132, 260]))]
    stride: u64,
    first: u8,
    data: u8,
}

impl AccessSpec {
    /// A choice for the target, such as the sub-core.
    pub fn first_choice(&self) -> u8 {
        self.data
    }

    /// Addresses of the lanes in a region of `bytes` bytes, aligned to an access of `size` bytes.
    fn addresses(&self, bytes: u64, size: u64) -> [u64; WARP_SIZE] {
        let first = 4 * u64::from(self.first);
        // A stride of 0 gives one address to all lanes. Division aligns it to the access.
        std::array::from_fn(|lane| (first + self.stride * lane as u64) % bytes / size * size)
    }

    /// The instruction at `pc` of a grid for addresses from `region` on, `bytes` bytes. Its operands are the addresses and the data.
    pub fn inst(&self, grid: &Arc<Grid>, pc: u32, region: u64, bytes: u64) -> Box<WarpInst> {
        let mut inst = Box::new(WarpInst::blank(0, grid.clone()));
        (inst.pc, inst.lanes, inst.warp) = (pc, LaneMask(self.lanes), self.warp);
        inst.info = IssueInfo::of(inst.inst(), inst.decoded(), &inst.timing());
        let size = inst.inst().mods.access.total().max(1).into();
        let addresses = self.addresses(bytes, size).map(|offset| region + offset);
        inst.addresses.set_all(|all| *all = addresses);
        // A load has one source: its address.
        let decoded = inst.decoded();
        let data = match decoded.first_word[1] {
            0 => decoded.source_words,
            data => data,
        };
        let data = usize::from(data);
        for (n, word) in inst.operands.words.iter_mut().enumerate() {
            // Pairs of lanes share a value, so that a compare-and-swap sometimes succeeds.
            let value = |lane: usize| (u32::from(self.data) * 0x0101_0101) ^ (lane / 2 * 0x1_0001 + n) as u32;
            *word = match n.cmp(&data) {
                std::cmp::Ordering::Less => Lanes(addresses.map(|address| (address >> (32 * n)) as u32)),
                _ => Lanes(std::array::from_fn(value)),
            };
        }
        inst
    }
}

/// Performs an instruction of a warp at once, lane by lane. Returns its results, for the lanes of the instruction.
pub fn perform(inst: &WarpInst, memory: &mut [u8], region: u64) -> Vec<[u32; WARP_SIZE]> {
    let total = usize::from(inst.inst().mods.access.total() as u16);
    let mut results = vec![[0; WARP_SIZE]; total.div_ceil(4)];
    for lane in inst.lanes.iter() {
        let at = (inst.addresses.get(lane) - region) as usize;
        let word = &mut memory[at..at + total];
        match inst.inst().op {
            Opcode::Ld => load(inst, word, |n, value| results[n][lane] = value),
            Opcode::St => store(inst, word, lane),
            _ => {
                let (operand, compare) = atomic_operands(inst, lane);
                // Lane after lane, in rising order: several lanes may change one word.
                let old = change_word(inst.inst().mods.atom, word, operand.into(), compare.into());
                let words = results.iter_mut().enumerate();
                words.for_each(|(n, result)| result[lane] = (old >> (32 * n)) as u32);
            }
        }
    }
    results
}

fn load(inst: &WarpInst, memory: &[u8], mut set: impl FnMut(usize, u32)) {
    let access = inst.inst().mods.access;
    let size = usize::from(access.bytes as u16);
    // Wide elements fill whole registers.
    if size >= 4 {
        let words = memory.chunks_exact(4).enumerate();
        return words.for_each(|(n, bytes)| set(n, u32::from_le_bytes(bytes.try_into().expect("4 bytes"))));
    }
    for (n, bytes) in memory.chunks_exact(size).enumerate() {
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        let is_negative = access.signed && value >> (8 * size - 1) == 1;
        set(
            n,
            if is_negative {
                value | u32::MAX << (8 * size)
            } else {
                value
            },
        );
    }
}

fn store(inst: &WarpInst, memory: &mut [u8], lane: usize) {
    let words = &inst.operands.words[usize::from(inst.decoded().first_word[1])..];
    let size = usize::from(inst.inst().mods.access.bytes as u16).min(4);
    for (n, bytes) in memory.chunks_exact_mut(size).enumerate() {
        bytes.copy_from_slice(&words[n].0[lane].to_le_bytes()[..size]);
    }
}

/// Operand and compare value. A compare-and-swap has the compare value first.
fn atomic_operands(inst: &WarpInst, lane: usize) -> (u64, u64) {
    let wide = inst.inst().mods.access.total() == 8;
    let source = |slot: usize| {
        let first = usize::from(inst.decoded().first_word[slot]);
        let word = |n: usize| u64::from(inst.operands.words[first + n].0[lane]);
        word(0) | if wide { word(1) << 32 } else { 0 }
    };
    match inst.inst().mods.atom {
        warpwave_isa::inst::AtomOp::Cas => (source(2), source(1)),
        _ => (source(1), 0),
    }
}

/// Checks the results of a load or atomic in the lanes of the instruction.
///
/// # Panics
/// If a lane has another result.
pub fn check_results(inst: &WarpInst, expected: &[[u32; WARP_SIZE]]) {
    if inst.info.result_words == 0 {
        return;
    }
    for (n, expected) in expected.iter().enumerate() {
        for lane in inst.lanes.iter() {
            let found = inst.results.words[n].0[lane];
            assert_eq!(
                found,
                expected[lane],
                "word {n} of lane {lane} of {:?} number {} of warp {}, lanes {:?}",
                inst.inst().op,
                inst.index,
                inst.warp,
                inst.lanes
            );
        }
    }
}
