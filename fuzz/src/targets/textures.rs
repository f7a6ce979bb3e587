//! Target: texture and surface instructions in an LSU, between a sub-core and an L1.
//!
//! Oracle: the sampler of the module `sampler`, texel by texel, on the bytes of a memory without time. Surface accesses of a warp take
//! effect in program order, lane by lane. Each instruction returns once.

mod sampler;

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::launch::{Grid, Trap};
use warpwave_components::proto::mem::Packet;
use warpwave_components::proto::warp::{IssueInfo, LsuAck, WarpInst};
use warpwave_components::sm::lsu::{Config, Lsu, Ports};
use warpwave_components::storage::BASE;
use warpwave_hw::link::OutPort;
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Opcode;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{SecondRun, Sink, Source, Wiring, World, check as check_component, combine};
use crate::parts::{PlainMemory, TINY};
use crate::warp_access::{check_results, grid};
use sampler::ImageSpec;

/// Images, and instructions on them.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    images: [ImageSpec; IMAGES],
    #[arbitrary(with = within(1..=6))]
    pending_requests: u32,
    #[arbitrary(with = one_of(&[32, 128]))]
    load_unit: u32,
    /// Cycles of the L1, for lines of even and of odd numbers.
    delays: [Delay; 2],
    paces: [Pace; 2],
    #[arbitrary(with = up_to(12))]
    fetches: Vec<FetchSpec>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Delay(#[arbitrary(with = one_of(&[3, 1, 25, 90]))] u64);

#[derive(Arbitrary, Clone, Copy, Debug)]
struct FetchSpec {
    #[arbitrary(with = one_of(&[0, 0, 1, 20, 90]))]
    gap: u64,
    pc: u8,
    #[arbitrary(with = within(0..=2))]
    image: u8,
    #[arbitrary(with = within(0..=1))]
    warp: u8,
    #[arbitrary(with = one_of(&[u32::MAX, 1, 0xffff, 0x8000_0001, 0]))]
    lanes: u32,
    /// Coordinates of lane 0, and their step from a lane to the next, in 16ths of a texel or of the image.
    first: [i8; 3],
    step: [i8; 3],
    data: u8,
}

/// Fetches of textures, then accesses to surfaces.
const PROGRAM: &str = "TEX.F32.F32.N1 R0, R4, R6
    TEX.F32.F32.N2 R0, R4, R6
    TEX.F32.F32.N3 R0, R4, R6
    TEX.F32.F32.HI.N2 R0, R4, R6
    TEX.F32.S32.N2 R0, R4, R6
    TEX.U32.S32.N1 R0, R4, R6
    TEX.U32.F32.N2 R0, R4, R6
    TEX.F32.F32.N2.0x01 R0, R4, R6
    TEX.F32.F32.N2.0x04 R0, R4, R6
    TEX.U32.F32.N2.0x10 R0, R4, R6
    SULD.B32.N2.0x01 R0, R4, R6
    SULD.B8.N2.0x02 R0, R4, R6
    SULD.B32X2.N2.0x02 R0, R4, R6
    SUST.B32.N2.0x01 R4, R6, R8
    SUST.B8.N2.0x02 R4, R6, R8
    SUST.B32X4.N2.0x02 R4, R6, R8";

/// The first instruction on surfaces.
const SURFACES: u32 = 10;
/// Textures of an input. As many surfaces follow, one per warp.
const IMAGES: usize = 3;
const WARPS: usize = 2;
/// Bytes of device memory of an image.
const REGION: u64 = 1 << 14;

static GRID: LazyLock<Grid> = LazyLock::new(|| Grid {
    allocations: vec![(BASE, 1 << 20)],
    ..grid(PROGRAM)
});

struct Neighbours {
    input: Input,
    grid: Arc<Grid>,
    source: Source<Box<WarpInst>>,
    output: Sink<Box<WarpInst>>,
    ack: Sink<LsuAck>,
    to_l1: Sink<Box<Packet>>,
    from_l1: OutPort<Box<Packet>>,
    trap: Sink<Box<Trap>>,
    l1: PlainMemory,
    /// Responses of even and of odd lines, with the cycle in which each is due.
    responses: [VecDeque<(u64, Box<Packet>)>; 2],
    owed: Vec<Option<Vec<[u32; WARP_SIZE]>>>,
    n_owed: usize,
    /// Credits and acknowledgements of stores that have not arrived.
    credits: usize,
    stores: usize,
}

/// Bytes of device memory, from `BASE` on.
fn first_bytes() -> Vec<u8> {
    let byte = |at: usize| (at as u32).wrapping_mul(0x9e37_79b1) >> 24;
    (0..(IMAGES + WARPS) * REGION as usize)
        .map(|at| byte(at) as u8)
        .collect()
}

static MEMORY: LazyLock<Vec<u8>> = LazyLock::new(first_bytes);

impl Neighbours {
    fn start(&mut self) {
        let mut memory = MEMORY.clone();
        for image in 0..IMAGES {
            self.input.images[image].fix_floats(&mut memory[image * REGION as usize..][..REGION as usize]);
        }
        self.l1 = PlainMemory::default();
        for (line, bytes) in (BASE..).step_by(128).zip(memory.as_chunks().0) {
            *self.l1.line(line) = *bytes;
        }
        self.owed.clear();
        (self.credits, self.stores) = (0, 0);
        let mut at = 0;
        for spec in self.input.fetches.clone() {
            at += spec.gap;
            let mut inst = self.inst(&spec, at);
            let results = self.results(&inst, &mut memory);
            inst.index = self.owed.len() as u32;
            self.credits += 1;
            self.stores += usize::from(inst.info.is_posted);
            self.owed.push(Some(results));
            self.source.push(at, inst);
        }
        self.n_owed = self.owed.len();
    }

    fn inst(&self, spec: &FetchSpec, at: u64) -> Box<WarpInst> {
        let mut inst = Box::new(WarpInst::blank(0, self.grid.clone()));
        inst.pc = u32::from(spec.pc) % GRID.program.code().len() as u32;
        (inst.lanes, inst.warp, inst.issued) = (LaneMask(spec.lanes), spec.warp, Cycle(at));
        inst.info = IssueInfo::of(inst.inst(), inst.decoded(), &inst.timing());
        let image = match inst.pc >= SURFACES {
            // A surface per warp: the order between warps is open.
            true => IMAGES + usize::from(spec.warp),
            false => usize::from(spec.image),
        };
        let texture = self.grid.textures[image];
        let [handle, coordinates, data] = [0, 1, 2].map(|slot| usize::from(inst.decoded().first_word[slot]));
        let counts_texels = inst.pc >= SURFACES || inst.inst().mods.from != warpwave_isa::inst::Ty::F32;
        let access = inst.inst().mods.access.total();
        let words = &mut inst.operands.words;
        for lane in 0..WARP_SIZE {
            // A handle is the index of a texture plus 1.
            words[handle].0[lane] = 1 + image as u32;
            for axis in 0..3 {
                let at = i32::from(spec.first[axis]) + i32::from(spec.step[axis]) * lane as i32;
                words[coordinates + axis].0[lane] = match counts_texels {
                    // x of a surface counts bytes. An access is aligned.
                    true if inst.pc >= SURFACES && axis == 0 => (at.div_euclid(16) * access as i32) as u32,
                    true => at.div_euclid(16) as u32,
                    false if texture.normalized_coords => (at as f32 / 64.0).to_bits(),
                    false => (at as f32 / 16.0).to_bits(),
                };
            }
            // Only a store has data, behind the coordinates.
            if inst.pc >= SURFACES && data > coordinates {
                for (n, word) in words[data..].iter_mut().enumerate().take(4) {
                    word.0[lane] = (u32::from(spec.data) * 0x0101_0101) ^ (lane as u32 * 0x1_0001) ^ n as u32;
                }
            }
        }
        inst
    }

    /// The results of an instruction. A surface store changes `memory`.
    fn results(&self, inst: &WarpInst, memory: &mut [u8]) -> Vec<[u32; WARP_SIZE]> {
        let mut results = vec![[0; WARP_SIZE]; 4];
        let coordinates = usize::from(inst.decoded().first_word[1]);
        for lane in inst.lanes.iter() {
            let at = [0, 1, 2].map(|axis| inst.operands.words[coordinates + axis].0[lane]);
            let image = &self.grid.textures[inst.operands.words[0].0[lane] as usize - 1];
            features::note((inst.pc, image.address_mode, image.linear_filter, image.channels));
            if inst.inst().op == Opcode::Tex {
                let words = sampler::sample(image, &inst.inst().mods, at, memory);
                (0..4).for_each(|n| results[n][lane] = words[n]);
                continue;
            }
            let access = inst.inst().mods.access;
            let place = sampler::surface(image, &inst.inst().mods, at);
            if inst.inst().op == Opcode::Suld {
                // A load outside the surface gives zeros.
                let mut bytes = [0; 16];
                if let Some(place) = place {
                    bytes[..access.total() as usize].copy_from_slice(&memory[place..][..access.total() as usize]);
                }
                (0..4).for_each(|n| results[n][lane] = u32::from_le_bytes(bytes.as_chunks().0[n]));
            } else if let Some(place) = place {
                let data = usize::from(inst.decoded().first_word[2]);
                for n in 0..access.total() as usize {
                    memory[place + n] = inst.operands.words[data + n / 4].0[lane].to_le_bytes()[n % 4];
                }
            }
        }
        results.truncate(inst.info.result_words.into());
        results
    }

    /// Performs a packet at its arrival, and answers it later.
    fn run_l1(&mut self, now: Cycle) {
        if let Some(mut packet) = self.to_l1.take(now) {
            // The order of arrival is the order of memory, whatever the delay.
            self.l1.perform(&mut packet);
            let bank = (packet.line / 128 % 2) as usize;
            self.responses[bank].push_back((now.0 + self.input.delays[bank].0, packet));
        }
        // The banks take turns, so responses overtake each other.
        let first = (now.0 % 2) as usize;
        for bank in [first, 1 - first] {
            if self.from_l1.has_room(now)
                && let Some((_, packet)) = self.responses[bank].pop_front_if(|(at, _)| *at <= now.0)
            {
                self.from_l1.send(now, packet);
            }
        }
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        self.source.tick(now);
        if let Some(inst) = self.output.take(now) {
            let owed = self.owed[inst.index as usize]
                .take()
                .expect("an instruction returns once");
            self.n_owed -= 1;
            check_results(&inst, &owed);
        }
        match self.ack.take(now) {
            Some(LsuAck::QueueCredit { .. }) => self.credits -= 1,
            Some(LsuAck::StoreDone { .. }) => self.stores -= 1,
            None => {}
        }
        assert!(self.trap.take(now).is_none(), "no access leaves its image");
        self.run_l1(now);
        let is_owed = self.n_owed > 0 || self.credits > 0 || self.stores > 0;
        is_owed || self.to_l1.is_ready(now) || self.responses.iter().any(|waiting| !waiting.is_empty())
    }

    fn reset(&mut self) {
        self.source.clear();
        self.output.clear();
        self.ack.clear();
        self.to_l1.clear();
        self.trap.clear();
        self.responses = Default::default();
        self.start();
    }

    fn digest(&self) -> u64 {
        combine([self.output.digest(), self.ack.digest(), self.to_l1.digest()])
    }
}

fn config(input: &Input) -> Config {
    let mut lsu = TINY.sm.lsu;
    lsu.pending_requests = input.pending_requests;
    lsu.load_unit = input.load_unit;
    Config {
        sm: 0,
        sm_in_gpc: 0,
        cta_slots: 2,
        shared_unit: 128,
        lsu,
        tag_banks: 4,
        constant: TINY.sm.constant,
        fence: TINY.sm.fence,
        first_local_slot: 0,
        warps_per_subcore: WARPS as u32,
    }
}

/// Runs the LSU.
///
/// # Panics
/// If a texel or a byte is wrong, if an instruction is lost or doubled, or if the LSU breaks the contract.
pub fn check(input: Input) {
    let textures = input
        .images
        .iter()
        .enumerate()
        .map(|(n, image)| image.texture(BASE + n as u64 * REGION));
    let surfaces = (IMAGES..IMAGES + WARPS).map(|n| ImageSpec::surface(BASE + n as u64 * REGION));
    let grid = Arc::new(Grid {
        textures: textures.chain(surfaces).collect(),
        ..GRID.clone()
    });
    let build = |wiring: &Wiring| {
        let (source, to_lsu) = wiring.input(1, 2);
        let (output, sink) = wiring.output(1, 2);
        // The link has room for the acknowledgement of every store: a response cannot wait.
        let (ack, acknowledged) = wiring.output(1, 64);
        let (to_shared, _) = wiring.output(1, 2);
        let (l1, to_l1) = wiring.output(1, 2);
        let (from_l1, response) = wiring.input(1, 4);
        let (trap, traps) = wiring.output(1, 1);
        let ports = Ports {
            input: vec![to_lsu],
            output: vec![output],
            ack: vec![ack],
            shared: to_shared,
            l1,
            response,
            trap,
            constant: None,
            cluster: None,
            bulk: None,
        };
        let mut world = Neighbours {
            grid: grid.clone(),
            source: Source::new(source),
            output: Sink::new(sink, input.paces[0]),
            ack: Sink::new(acknowledged, Pace::ALWAYS),
            to_l1: Sink::new(to_l1, input.paces[1]),
            from_l1,
            trap: Sink::new(traps, Pace::ALWAYS),
            l1: PlainMemory::default(),
            responses: Default::default(),
            owed: Vec::new(),
            n_owed: 0,
            credits: 0,
            stores: 0,
            input: input.clone(),
        };
        world.start();
        (Lsu::new(Path::root("lsu"), config(&input), ports), world)
    };
    check_component(build, input.second, 200_000);
}
