//! The pipes of a sub-core: their numbers in a preset, and the table [`PIPES`].
//!
//! A pipe has one name, in its component's path, its preset keys (`sm.pipes.NAME`), its counter (`inst_NAME`) and waveforms.

use serde::{Deserialize, Serialize};
use warpwave_isa::opcode::Pipe;

/// The arithmetic pipes of one sub-core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipes {
    /// 32-bit integer and logic.
    pub int: PipeTiming,
    /// 32-bit floating point.
    pub fp32: PipeTiming,
    /// Packed 16-bit floating point; one instruction makes two results per lane.
    pub half: PipeTiming,
    /// 64-bit floating point.
    pub fp64: PipeTiming,
    /// Special functions, and the conversions and bit scans that share their rate.
    pub sfu: PipeTiming,
    /// Matrix multiply: one m16n8k16 of 16-bit inputs, 2,048 multiply-adds. The interval of another shape or type is proportional to its
    /// multiply-adds divided by the rate of its type. The rate is half for 32-bit inputs, twice for 8-bit inputs, and a sixteenth for
    /// 64-bit inputs.
    pub tensor: PipeTiming,
    /// Least cycles between two matrix products of one warp (MMA) in the tensor pipe: one m16n8k16 of 16-bit inputs with 32-bit sums. Products
    /// of a warp group (HGMMA), whose operands are in shared memory, have the interval of `tensor`.
    pub mma_interval: u32,
    /// Least cycles between two products of one warp with 16-bit sums: one m16n8k16.
    pub mma_f16_interval: u32,
    /// Least cycles between two products of integers of one warp: one m16n8k32 of 8-bit inputs.
    pub mma_int_interval: u32,
    /// Least cycles between two products of 64-bit floats of one warp: one m8n8k4.
    pub mma_fp64_interval: u32,
    /// Issue to dependent issue of an integer multiply-add, cycles.
    pub imad_latency: u32,
    /// Issue interval of an integer multiply-add, cycles.
    pub imad_interval: u32,
    /// Issue to dependent issue of a minimum or maximum of 32-bit floats, cycles.
    pub fmnmx_latency: u32,
    /// Issue to dependent issue of a count of bits, cycles.
    pub popc_latency: u32,
    /// Issue to dependent issue of a search for lanes with equal values, where all lanes have one value, cycles.
    pub match_latency: u32,
    /// Cycles that MATCH.ANY takes longer for each further value.
    pub match_per_value: u32,
    /// Pipe of a conversion from a 32-bit integer to a 32-bit float.
    pub i2f_pipe: I2fPipe,
    /// Issue of a 64-bit compare to issue of an instruction that reads its predicate as data, cycles.
    pub fp64_compare_latency: u32,
    /// Issue to dependent issue of a vote, cycles.
    pub vote_latency: u32,
    /// Issue of a compare to issue of an instruction or branch that its predicate guards, cycles. Guards are read earlier in the pipeline
    /// than data.
    pub guard_latency: u32,
    /// Issue to dependent issue of a warp shuffle, cycles.
    pub shuffle_latency: u32,
}

impl Pipes {
    /// Timing of an integer multiply-add, which shares the FP32 pipe.
    pub fn imad(&self) -> PipeTiming {
        PipeTiming {
            latency: self.imad_latency,
            interval: self.imad_interval,
        }
    }
}

/// A pipe for conversions from 32-bit integers to 32-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum I2fPipe {
    /// The SFU, as for all other conversions (I2F).
    Sfu,
    /// The integer pipe, with its latency and interval (I2FP).
    Int,
}

/// Timing of one pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipeTiming {
    /// Issue to dependent issue of the same class, cycles.
    pub latency: u32,
    /// Least cycles between two instructions that enter the pipe.
    pub interval: u32,
}

/// A row of the table of pipes.
#[derive(Debug, Clone, Copy)]
pub struct PipeRow {
    /// The pipe in the opcode table.
    pub pipe: Pipe,
    /// Its name.
    pub name: &'static str,
    /// The scheduler's counter of instructions issued to it.
    pub counter: &'static str,
    /// Its label in a timeline.
    pub label: &'static str,
    /// Its numbers in a preset. `None` for the LSU and the branch unit, which have preset sections of their own.
    pub preset: Option<PipePreset>,
}

/// Location of a pipe's numbers in a preset.
#[derive(Debug, Clone, Copy)]
pub struct PipePreset {
    /// Keys of latency and interval.
    pub keys: [&'static str; 2],
    /// Reads the numbers.
    pub timing: fn(&Pipes) -> PipeTiming,
}

/// Number of pipes.
pub const N_PIPES: usize = Pipe::Control as usize + 1;

macro_rules! row {
    ($pipe:ident $name:ident $label:literal, $preset:expr) => {
        PipeRow {
            pipe: Pipe::$pipe,
            name: stringify!($name),
            counter: concat!("inst_", stringify!($name)),
            label: $label,
            preset: $preset,
        }
    };
    ($pipe:ident $name:ident $label:literal) => {
        row!(
            $pipe $name $label,
            Some(PipePreset {
                keys: [
                    concat!("sm.pipes.", stringify!($name), ".latency"),
                    concat!("sm.pipes.", stringify!($name), ".interval"),
                ],
                timing: |pipes| pipes.$name,
            })
        )
    };
}

/// Every pipe, in the order of [`Pipe`].
pub const PIPES: [PipeRow; N_PIPES] = [
    row!(Int int "INT"),
    row!(Fp32 fp32 "FP32"),
    row!(Half half "half"),
    row!(Fp64 fp64 "FP64"),
    row!(Sfu sfu "SFU"),
    row!(Tensor tensor "tensor"),
    row!(Lsu lsu "LSU", None),
    row!(Control control "branch", None),
];

/// The names, in the order of [`Pipe`].
pub const PIPE_NAMES: [&str; N_PIPES] = {
    let mut names = [""; N_PIPES];
    let mut n = 0;
    // A constant's initializer cannot use a `for` loop.
    while n < N_PIPES {
        assert!(PIPES[n].pipe as usize == n, "rows are in the order of `Pipe`");
        names[n] = PIPES[n].name;
        n += 1;
    }
    names
};

/// The row of a pipe.
pub fn pipe_row(pipe: Pipe) -> &'static PipeRow {
    const ROWS: &[PipeRow; N_PIPES] = &PIPES;
    &ROWS[pipe as usize]
}
