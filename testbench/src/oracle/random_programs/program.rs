//! The input of the oracle: a program as a tree of statements.
//!
//! A register is a number, modulo the registers of its type.

use arbitrary::{Arbitrary, Result, Unstructured};

use super::table::COMMUTING;
use super::tree::{body, operands};
use crate::oracle::draw::{one_of, within};

/// A program and the shape of its launch.
#[derive(Arbitrary, Clone, Debug)]
pub struct RandomProgram {
    /// Threads of a block.
    #[arbitrary(with = one_of(&[32, 64, 96, 128, 33, 7, 65]))]
    pub(super) block: u32,
    /// Blocks of the grid. An even number has clusters of two or four blocks, if the machine has clusters.
    #[arbitrary(with = within(1..=4))]
    pub(super) grid: u32,
    /// The preset of the machine, with one TPC.
    #[arbitrary(with = one_of(MACHINES))]
    pub(super) machine: &'static str,
    /// Seed of the words in the buffers. Its bits also choose the size of clusters and the number of launches.
    pub(super) seed: u64,
    #[arbitrary(with = body)]
    pub(super) body: Vec<Statement>,
}

/// Presets, the smallest one most often.
pub(super) const MACHINES: &[&str] = &[
    "tiny",
    "tiny",
    "tiny",
    "tiny",
    "tiny",
    "tiny",
    "toy",
    "m2070",
    "gtx1080ti",
    "v100-sxm2",
    "a100-sxm4-80",
    "rtx3090",
    "h100-pcie",
    "h100-sxm5",
    "h200",
    "gh100-full",
    "b200",
];

#[derive(Clone, Debug)]
pub(super) enum Statement {
    If {
        decision: Decision,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Loop {
        turns: Turns,
        body: Vec<Statement>,
        exit: Option<Exit>,
    },
    Load(Load),
    Store(Store),
    Combine(Combine),
    Local(Local),
    Exchange(Exchange),
    /// An instruction of whole warps. Skipped in blocks with a partial warp.
    Collective(Instruction),
    Carry(Carry),
    Compute(Guard, Instruction),
    OwnAtomic(OwnAtomic),
    Overlap(Overlap),
    Fetch(Fetch),
    Reduce(Reduce),
    Relay(Relay),
    /// A matrix product of whole warps. Skipped in blocks with a partial warp.
    Tensor(Tensor),
    /// An exchange with another block of the cluster. Skipped without clusters.
    ClusterExchange(ClusterExchange),
    /// A bulk copy of input words to shared memory. Skipped if the machine has no copy engine.
    Bulk(Bulk),
    Ticket(Ticket),
    AsyncCopy(AsyncCopy),
}

/// The condition of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decision {
    /// The lowest bit of `%ctaid`, the same for all threads of a block.
    Block { bit: u8 },
    /// A predicate of the thread.
    Thread { pred: u8 },
}

/// The trip count of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turns {
    /// One count for all threads.
    Same(u8),
    /// A count from 1 to 4, from a register of the thread.
    Register(u8),
}

/// Exits a loop if the predicate is true. Other threads continue with `rest`.
#[derive(Clone, Debug)]
pub(super) struct Exit {
    pub pred: u8,
    pub rest: Vec<Statement>,
}

/// A guard predicate, which may be negated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Guard {
    Always,
    If(u8),
    Unless(u8),
}

/// Type, bytes, and register letters of an access.
pub(super) type Access = (&'static str, u64, &'static str);

/// A load from the input buffer.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Load {
    #[arbitrary(with = one_of(LOADS))]
    pub access: Access,
    #[arbitrary(with = one_of(&["", ".nc", ".cg", ".cs"]))]
    pub cache: &'static str,
    pub index: u8,
    pub guard: Guard,
    pub target: u8,
}

const LOADS: &[Access] = &[
    ("u32", 4, "r"),
    ("f32", 4, "f"),
    ("u64", 8, "l"),
    ("f64", 8, "d"),
    ("s8", 1, "r"),
    ("u16", 2, "r"),
    ("b16", 2, "h"),
    ("v2.u32", 8, "rr"),
    ("v4.f32", 16, "ffff"),
    ("v4.u8", 4, "hhhh"),
];

/// A store to the thread's own words.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Store {
    #[arbitrary(with = one_of(&[("u32", 4, "r"), ("u8", 1, "r"), ("u64", 8, "l"), ("f32", 4, "f")]))]
    pub access: Access,
    pub index: u8,
    pub guard: Guard,
    pub value: u8,
    pub reads_back: bool,
}

/// A commutative atomic on a shared counter.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Combine {
    /// Index in [`COMMUTING`].
    #[arbitrary(with = within(0..=COMMUTING.len() - 1))]
    pub op: usize,
    pub value: u8,
    pub guard: Guard,
    #[arbitrary(with = one_of(&["red", "atom"]))]
    pub name: &'static str,
    pub place: CounterPlace,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum CounterPlace {
    Shared,
    Global { index: u8 },
}

/// A store to local memory and a load from it, by local or generic addresses.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Local {
    #[arbitrary(with = one_of(&[("u32", 4, "r"), ("u64", 8, "l"), ("s8", 1, "r"), ("f64", 8, "d")]))]
    pub access: Access,
    pub index: u8,
    pub guard: Guard,
    pub value: u8,
    pub is_generic: bool,
    pub is_store: bool,
}

/// Each thread passes a word to another one through shared memory.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub value: u8,
    pub from: u8,
    pub result: u8,
    /// True if the barriers have no thread count.
    pub is_whole_block: bool,
    #[arbitrary(with = within(0..=3u8))]
    pub barrier: u8,
}

/// A 64-bit sum or difference in two halves with a carry.
#[derive(Arbitrary, Clone, Debug)]
pub(super) struct Carry {
    #[arbitrary(with = one_of(&["add", "sub"]))]
    pub op: &'static str,
    #[arbitrary(with = operands("r=rR"))]
    pub low: String,
    #[arbitrary(with = operands("r=rR"))]
    pub high: String,
}

/// An atomic on a word that only this thread uses. Its old value is used.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct OwnAtomic {
    #[arbitrary(with = one_of(&["add.u32", "exch.b32", "cas.b32", "max.s32", "min.u32", "xor.b32", "inc.u32", "dec.u32"]))]
    pub op: &'static str,
    pub in_shared: bool,
    pub index: u8,
    pub guard: Guard,
    pub old: u8,
    pub value: u8,
}

/// A vector store, and a load of a part of it at another offset.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Overlap {
    pub in_local: bool,
    #[arbitrary(with = one_of(&[("v4.u32", 16, "rrrr"), ("v2.u32", 8, "rr"), ("v2.u64", 16, "ll"), ("v4.f32", 16, "ffff")]))]
    pub access: Access,
    pub index: u8,
    pub value: u8,
    #[arbitrary(with = one_of(&[("u32", 4, "r"), ("u8", 1, "r"), ("u16", 2, "r"), ("s8", 1, "r"), ("u64", 8, "l"), ("v2.u32", 8, "rr")]))]
    pub part: Access,
    pub offset: u8,
    pub guard: Guard,
    pub result: u8,
}

/// A texel of the input as an image of 16 by 16 words.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub x: u8,
    pub y: u8,
    /// Float coordinates, which count 16ths of a texel.
    pub is_float: bool,
    pub guard: Guard,
    pub result: u8,
}

/// A barrier that combines a predicate of all threads of the block.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Reduce {
    #[arbitrary(with = one_of(&["popc.u32", "and.pred", "or.pred"]))]
    pub op: &'static str,
    #[arbitrary(with = within(0..=15u8))]
    pub barrier: u8,
    pub value: u8,
    pub result: u8,
}

/// The first warp arrives at a barrier and continues. The others wait there for its words. Skipped unless a block has two whole warps.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Relay {
    #[arbitrary(with = within(1..=15u8))]
    pub barrier: u8,
    pub value: u8,
    pub result: u8,
}

/// A matrix product: mnemonic, and the letters of its fragments.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Tensor {
    #[arbitrary(with = one_of(PRODUCTS))]
    pub product: (&'static str, [&'static str; 4]),
    pub registers: [u8; 4],
}

const PRODUCTS: &[(&str, [&str; 4])] = &[
    ("m16n8k16.row.col.f32.f16.f16.f32", ["ffff", "rrrr", "rr", "ffff"]),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", ["ffff", "rrrr", "rr", "ffff"]),
    ("m16n8k16.row.col.f16.f16.f16.f16", ["rr", "rrrr", "rr", "rr"]),
    ("m16n8k32.row.col.s32.s8.s8.s32", ["rrrr", "rrrr", "rr", "rrrr"]),
    ("m8n8k4.row.col.f64.f64.f64.f64", ["dd", "d", "d", "dd"]),
];

/// Each thread reads the word of its twin in another block of the cluster.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct ClusterExchange {
    pub value: u8,
    pub result: u8,
}

/// A copy of 256 bytes.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Bulk {
    pub index: u8,
    pub word: u8,
    pub result: u8,
}

/// A number from a counter that all threads share. Which thread gets which number depends on the order, and the set of numbers does not. So
/// a sum over functions of the numbers is known.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub in_shared: bool,
    /// True if a loop of compare-and-swaps takes the number.
    pub by_cas: bool,
    pub guard: Guard,
}

/// Two asynchronous copies of input words to the thread's own shared memory, in groups of their own.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct AsyncCopy {
    /// Operator, bytes, and bytes that are read: the rest is zero.
    #[arbitrary(with = one_of(&[(".ca", 4, 4), (".ca", 8, 8), (".ca", 16, 16), (".cg", 16, 16), (".ca", 16, 8), (".ca", 8, 0)]))]
    pub form: (&'static str, u32, u32),
    pub indices: [u8; 2],
    /// True if the first copy is awaited alone, and then the second one.
    pub one_by_one: bool,
    pub word: u8,
    pub results: [u8; 2],
}

/// An instruction of the table, as text.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub mnemonic: &'static str,
    pub operands: String,
}

impl<'a> Arbitrary<'a> for Guard {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.int_in_range(0..=7u8)? {
            0 => Guard::If(bytes.arbitrary()?),
            1 => Guard::Unless(bytes.arbitrary()?),
            _ => Guard::Always,
        })
    }
}

impl<'a> Arbitrary<'a> for CounterPlace {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.arbitrary()? {
            true => CounterPlace::Shared,
            false => CounterPlace::Global {
                index: bytes.arbitrary()?,
            },
        })
    }
}
