//! Copies and tiles of the target `tma`: their instructions, and the bytes that each moves. Own loops over bytes and elements.

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use warpwave_components::proto::bulk::BulkInst;
use warpwave_components::proto::launch::Grid;
use warpwave_components::proto::warp::WarpInst;
use warpwave_components::storage::BASE;
use warpwave_isa::exec::bulk::{Element, TensorMap};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::space::PARAM_WINDOW;

use crate::draw::{one_of, within};
use crate::features;
use crate::warp_access::grid;

/// One instruction: a copy of each lane.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct CopySpec {
    #[arbitrary(with = one_of(&[0, 0, 1, 9, 100]))]
    gap: u64,
    to_global: bool,
    #[arbitrary(with = one_of(&[1, 0, 1 << 31 | 1, 6]))]
    lanes: u32,
    subcore: bool,
    /// The second CTA of the SM.
    second_cta: bool,
    #[arbitrary(with = within(0..=2))]
    barrier: u8,
    /// Position of the copy in its lines of shared and of global memory, in units of 16 bytes.
    shared_at: u8,
    global_at: u8,
    tile: Option<TileSpec>,
    /// Units of 16 bytes of a plain copy.
    #[arbitrary(with = one_of(&[4, 0, 1, 8, 9, 40]))]
    units: u32,
}

/// A tensor, and a tile of it.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct TileSpec {
    #[arbitrary(with = one_of(&[Element::U32, Element::U8, Element::U16, Element::U64]))]
    element: Element,
    #[arbitrary(with = one_of(&[2, 1, 3, 5]))]
    rank: u8,
    #[arbitrary(with = within(0..=3))]
    swizzle: u8,
    #[arbitrary(with = one_of(&[[9, 5, 2, 1, 2], [40, 3, 1, 2, 1], [1, 1, 1, 1, 1], [16, 8, 4, 2, 2]]))]
    sizes: [u32; 5],
    #[arbitrary(with = one_of(&[[8, 2, 1, 1, 1], [16, 4, 1, 1, 1], [3, 5, 2, 1, 2], [32, 1, 1, 1, 1], [2, 2, 2, 2, 2]]))]
    tile: [u32; 5],
    /// Coordinates of its first element, less 3.
    at: [u8; 5],
}

const PROGRAM: &str = "UBLKCP R0, R2, R4, R5
    UBLKCP.N1 R0, R2, R4, R5
    UBLKCP.N2 R0, R2, R4, R6
    UBLKCP.N3 R0, R2, R4, R7
    UBLKCP.N5 R0, R2, R4, R9
    UBLKCP.HI R0, R2, R4, R5
    UBLKCP.HI.N1 R0, R2, R4, R5
    UBLKCP.HI.N2 R0, R2, R4, R6
    UBLKCP.HI.N3 R0, R2, R4, R7
    UBLKCP.HI.N5 R0, R2, R4, R9";

/// Program counters of the copies with 0, 1, 2, 3 and 5 coordinates to shared memory. Those to global memory follow.
const RANKS: [u8; 5] = [0, 1, 2, 3, 5];

/// Bytes of shared memory of a copy: it uses a part of them.
const SLOT: u32 = 2048;
/// First mbarrier of a CTA, behind 24 slots. An input has at most 16 copies.
const BARRIERS: u32 = 24 * SLOT;
/// Bytes of shared memory of a CTA.
const CTA_BYTES: u32 = BARRIERS + SLOT;
/// Bytes of global memory of a copy.
const REGION: u64 = 1 << 17;

static GRID: LazyLock<Grid> = LazyLock::new(|| grid(PROGRAM));

/// A move of a byte. `global` is `None` outside of the tensor.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    pub shared: u32,
    pub global: Option<u64>,
}

/// The copy of one lane.
#[derive(Clone, Debug)]
pub struct Copy {
    pub to_global: bool,
    /// Address of its mbarrier in shared memory.
    pub barrier: u32,
    /// Bytes that its mbarrier counts.
    pub bytes: u32,
    pub moves: Vec<Move>,
}

impl TileSpec {
    /// The tensor at `base`, with a tile of at most `SLOT` bytes.
    fn map(&self, base: u64) -> TensorMap {
        // A size of 1 in the unused dimensions changes no address.
        let used = |all: [u32; 5]| std::array::from_fn(|n| if n < usize::from(self.rank) { all[n] } else { 1 });
        let (sizes, tile) = (used(self.sizes), used(self.tile));
        let mut strides = [u64::from(self.element.bytes()); 5];
        // Rows are 16 bytes apart or more.
        strides[1] = (u64::from(sizes[0]) * strides[0]).next_multiple_of(16) + 16;
        for n in 2..5 {
            strides[n] = strides[n - 1] * u64::from(sizes[n - 1]);
        }
        TensorMap {
            base,
            rank: self.rank,
            element: self.element,
            swizzle: self.swizzle,
            sizes,
            strides,
            tile,
            steps: [1; 5],
            nan_fill: false,
            im2col: None,
        }
    }

    fn coordinates(&self) -> [i32; 5] {
        std::array::from_fn(|n| match n < usize::from(self.rank) {
            true => i32::from(self.at[n] % 12) - 3,
            false => 0,
        })
    }
}

/// The moves of a tile, element by element. `shared` is its first byte in the CTA.
fn tile_moves(map: &TensorMap, at: [i32; 5], shared: u32) -> Vec<Move> {
    let n_elements: u32 = map.tile.iter().product();
    // The first dimension varies fastest.
    let mut moves = Vec::new();
    for n in 0..n_elements {
        let mut rest = n;
        let mut global = Some(map.base);
        for (axis, &first) in at.iter().enumerate() {
            let position = i64::from(first) + i64::from(rest % map.tile[axis]);
            rest /= map.tile[axis];
            let is_inside = position >= 0 && position < i64::from(map.sizes[axis]);
            global = global
                .filter(|_| is_inside)
                .map(|base| base + position as u64 * map.strides[axis]);
        }
        let element_bytes = u32::from(map.element.bytes());
        for byte in 0..element_bytes {
            let at = shared + n * element_bytes + byte;
            let (line, chunk) = (at / 128, at % 128 / 16);
            // The swizzle permutes the 16-byte chunks of a line by the number of the line.
            let chunk = chunk ^ (line % (1 << map.swizzle));
            moves.push(Move {
                shared: line * 128 + chunk * 16 + at % 16,
                global: global.map(|global| global + u64::from(byte)),
            });
        }
    }
    moves
}

/// All copies of an input: instructions, and what each does.
pub struct Plan {
    grid: Arc<Grid>,
    pub insts: Vec<(u64, BulkInst)>,
    /// Copies of each instruction.
    pub copies: Vec<Vec<Copy>>,
}

impl Plan {
    pub fn new(specs: &[CopySpec]) -> Plan {
        let mut maps = Vec::new();
        let mut drafts = Vec::new();
        let (mut at, mut slot) = (0, 0);
        for spec in specs {
            at += spec.gap;
            let mut lanes = Vec::new();
            for lane in LaneMask(spec.lanes).iter() {
                lanes.push((lane, draft(spec, slot, &mut maps)));
                slot += 1;
            }
            drafts.push((at, *spec, lanes));
        }
        let words = |map: &TensorMap| {
            let bytes = map.to_bytes();
            bytes
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")))
                .collect::<Vec<_>>()
        };
        let grid = Arc::new(Grid {
            // Tensor maps are kernel parameters, in constant bank 0.
            constants: vec![maps.iter().flat_map(words).collect()],
            shared_bytes: CTA_BYTES,
            ..GRID.clone()
        });
        let mut plan = Plan {
            grid,
            insts: Vec::new(),
            copies: Vec::new(),
        };
        drafts
            .into_iter()
            .for_each(|(at, spec, lanes)| plan.add(at, &spec, lanes));
        plan
    }

    fn add(&mut self, at: u64, spec: &CopySpec, lanes: Vec<(usize, Draft)>) {
        let mut inst = Box::new(WarpInst::blank(spec.subcore.into(), self.grid.clone()));
        let rank = spec.tile.map_or(0, |tile| tile.rank);
        let pc = RANKS.iter().position(|&n| n == rank).expect("a listed rank");
        inst.pc = pc as u32 + if spec.to_global { RANKS.len() as u32 } else { 0 };
        inst.lanes = LaneMask(spec.lanes);
        inst.index = self.insts.len() as u32;
        inst.shared_base = base_of(spec);
        let mut copies = Vec::new();
        for (lane, draft) in lanes {
            for (n, word) in draft.operands.iter().enumerate() {
                let Lanes(words) = &mut inst.operands.words[n];
                words[lane] = *word;
            }
            copies.push(draft.copy);
        }
        let inst = BulkInst {
            warp_inst: inst,
            cluster: None,
            cta_bytes: CTA_BYTES,
        };
        self.insts.push((at, inst));
        self.copies.push(copies);
    }
}

/// First byte of the CTA of a copy.
fn base_of(spec: &CopySpec) -> u32 {
    if spec.second_cta { CTA_BYTES } else { 0 }
}

/// Operand words and moves of a copy.
struct Draft {
    operands: Vec<u32>,
    copy: Copy,
}

/// The copy in shared memory slot `slot`. Adds its tensor map to `maps`.
fn draft(spec: &CopySpec, slot: u32, maps: &mut Vec<TensorMap>) -> Draft {
    let shared = slot * SLOT + 16 * (u32::from(spec.shared_at) % 16);
    let global = BASE + u64::from(slot) * REGION + 16 * (u64::from(spec.global_at) % 16);
    let barrier = BARRIERS + 8 * u32::from(spec.barrier);
    let (extent, source, moves, bytes) = match spec.tile {
        Some(tile) => {
            let map = tile.map(global);
            let at = tile.coordinates();
            // A tensor map has 128 bytes.
            let address = PARAM_WINDOW + 128 * maps.len() as u64;
            maps.push(map);
            let words = at[..usize::from(tile.rank)].iter().map(|&at| at as u32).collect();
            let bytes = map.tile.iter().product::<u32>() * u32::from(map.element.bytes());
            (words, address, tile_moves(&map, at, shared), bytes)
        }
        None => {
            let bytes = 16 * spec.units;
            let moves = (0..bytes).map(|n| Move {
                shared: shared + n,
                global: Some(global + u64::from(n)),
            });
            (vec![bytes], global, moves.collect(), bytes)
        }
    };
    let operands = [
        vec![shared, source as u32, (source >> 32) as u32],
        extent,
        vec![barrier],
    ]
    .concat();
    features::note((
        spec.to_global,
        spec.tile.map(|tile| (tile.rank, tile.swizzle)),
        moves.len().checked_ilog2(),
    ));
    Draft {
        operands,
        copy: Copy {
            to_global: spec.to_global,
            barrier: base_of(spec) + barrier,
            bytes,
            moves: moves
                .into_iter()
                .map(|byte| Move {
                    shared: base_of(spec) + byte.shared,
                    ..byte
                })
                .collect(),
        },
    }
}
