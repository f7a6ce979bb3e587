//! Latency and rate of tensor instructions.

use std::fmt::Write;

use super::chains::steps;
use super::kernels::{Timed, sink};
use super::{Lab, Point};
use crate::gpu::GpuError;

/// A matrix instruction. Accumulators of chain n begin at a register of their own.
struct Matrix {
    name: &'static str,
    opcode: &'static str,
    accumulator: Accumulator,
    /// Number of registers of A, of B, and of the accumulator.
    registers: [u32; 3],
    /// Multiply-adds of one instruction.
    fma: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Accumulator {
    F32,
    /// Two halves, or one 32-bit integer, in each register.
    Word,
    F64,
}

const MATRICES: [Matrix; 7] = [
    Matrix {
        name: "wmma m16n16k16 f16 to f32",
        opcode: "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
        accumulator: Accumulator::F32,
        registers: [8, 8, 8],
        fma: 4096,
    },
    Matrix {
        name: "wmma m16n16k16 f16 to f16",
        opcode: "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16",
        accumulator: Accumulator::Word,
        registers: [8, 8, 4],
        fma: 4096,
    },
    Matrix {
        name: "mma m16n8k16 f16 to f32",
        opcode: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        accumulator: Accumulator::F32,
        registers: [4, 2, 4],
        fma: 2048,
    },
    Matrix {
        name: "mma m16n8k16 f16 to f16",
        opcode: "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        accumulator: Accumulator::Word,
        registers: [4, 2, 2],
        fma: 2048,
    },
    Matrix {
        name: "mma m16n8k8 tf32",
        opcode: "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        accumulator: Accumulator::F32,
        registers: [4, 2, 4],
        fma: 1024,
    },
    Matrix {
        name: "mma m16n8k32 s8",
        opcode: "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        accumulator: Accumulator::Word,
        registers: [4, 2, 4],
        fma: 4096,
    },
    Matrix {
        name: "mma m8n8k4 f64",
        opcode: "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        accumulator: Accumulator::F64,
        registers: [1, 1, 2],
        fma: 256,
    },
];

/// First registers of A, of B and of the accumulators.
const A: u32 = 10;
const B: u32 = 18;
const ACCUMULATOR: u32 = 30;

/// Independent chains of each warp.
const CHAINS: u32 = 2;

impl Matrix {
    /// The instruction of chain `n`.
    fn step(&self, n: u32) -> String {
        let [a, b, c] = self.registers;
        let (operand, accumulator) = match self.accumulator {
            Accumulator::F32 => ("%r", "%f"),
            Accumulator::Word => ("%r", "%r"),
            Accumulator::F64 => ("%d", "%d"),
        };
        // There are only 40 registers of 64 bits: accumulators of f64 begin at 1, A at 20 and B at 24.
        let (a_first, b_first, c_first) = match self.accumulator {
            Accumulator::F64 => (20, 24, 1),
            _ => (A, B, ACCUMULATOR),
        };
        let c = list(accumulator, c_first + c * n, c);
        format!(
            "{} {c}, {}, {}, {c};",
            self.opcode,
            list(operand, a_first, a),
            list(operand, b_first, b)
        )
    }

    /// The kernel without its body.
    fn timed(&self) -> Timed {
        let mut init = String::new();
        // Values that an assembler does not know: it would join equal chains, and read no register for a zero.
        for n in 10..60 {
            let _ = write!(init, "add.u32 %r{n}, %r70, {n}; cvt.rn.f32.u32 %f{n}, %r{n}; ");
        }
        for n in 1..30 {
            let _ = write!(init, "cvt.rn.f64.u32 %d{n}, %r{}; ", n + 10);
        }
        // An assembler removes an instruction without a reader of its result.
        let (kind, register, first) = match self.accumulator {
            Accumulator::F32 => ("f32", "%f", ACCUMULATOR),
            Accumulator::Word => ("u32", "%r", ACCUMULATOR),
            Accumulator::F64 => ("f64", "%d", 1),
        };
        let end = (0..CHAINS * self.registers[2]).map(|n| sink(n as usize, kind, &format!("{register}{}", first + n)));
        let end = end.collect();
        Timed {
            init,
            end,
            ..Timed::default()
        }
    }
}

/// A list of registers in PTX, in braces.
fn list(register: &str, first: u32, count: u32) -> String {
    let registers: Vec<_> = (first..first + count).map(|n| format!("{register}{n}")).collect();
    format!("{{{}}}", registers.join(", "))
}

/// The latency in cycles, or the multiply-adds per cycle of one SM. The rate is the best of 4, 8 and 16 warps with two chains each.
pub(super) fn measure(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    if let Some(rest) = point.series.strip_prefix("wgmma m64n") {
        return wgmma(lab, &point.gpu, rest);
    }
    let (name, what) = point
        .series
        .rsplit_once(' ')
        .expect("the series ends in latency or rate");
    let matrix = MATRICES.iter().find(|matrix| matrix.name == name);
    let matrix =
        matrix.unwrap_or_else(|| panic!("the silicon figures name {name}, and no matrix instruction has this name"));
    let timed = matrix.timed();
    if what == "latency" {
        return steps(lab, &point.gpu, &timed, &matrix.step(0), 32, [32, 96]);
    }
    let step: String = (0..CHAINS).map(|n| matrix.step(n)).collect();
    let mut best = 0.0f64;
    // How many warps fill the pipe depends on its latency.
    for warps in [4, 8, 16] {
        let cycles = steps(lab, &point.gpu, &timed, &step, 32 * warps, [16, 48])?;
        best = best.max(f64::from(CHAINS * warps * matrix.fma) / cycles);
    }
    Ok(best)
}

/// Cycles between two warpgroup instructions of one warpgroup. `shape` begins with the columns.
fn wgmma(lab: &Lab, gpu: &str, shape: &str) -> Result<f64, GpuError> {
    let columns = shape.split_once('k').and_then(|(n, _)| n.parse().ok());
    let columns: u32 = columns.expect("the series names the shape");
    let registers = columns / 2;
    let mut init = format!(".reg .f32 %c<{registers}>;\n");
    for n in 0..registers {
        let _ = write!(init, "mov.f32 %c{n}, 0f00000000; ");
    }
    // A descriptor of shared memory without swizzle: address, and offsets of 8 and 64 rows, in units of 16 bytes.
    init += "mov.u32 %r1, sm; cvt.u64.u32 %rd1, %r1; shr.u64 %rd1, %rd1, 4; and.b64 %rd1, %rd1, 0x3fff;\n\
             mov.u64 %rd3, 0x4000004000010000; or.b64 %rd1, %rd1, %rd3; mov.b64 %rd2, %rd1;\n";
    let timed = Timed {
        init,
        end: sink(0, "f32", "%c0"),
        shared: 40960,
        ..Timed::default()
    };
    let step = format!(
        "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 {}, %rd1, %rd2, 1, 1, 1, 0, 0;",
        list("%c", 0, registers)
    );
    super::lab::slope([8, 24], |n| {
        let body = format!(
            "wgmma.fence.sync.aligned;\n{}wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
            format!("{step}\n").repeat(n as usize)
        );
        let mut bench = lab.bench(gpu, &Timed { body, ..timed.clone() }.text(gpu))?;
        let (out, results) = (bench.zeros::<u64>(256)?, bench.zeros::<u64>(16)?);
        bench.launch("k", (1, 128), &[&out, &results, &1u32])?;
        Ok(bench.spans(&out).all())
    })
}
