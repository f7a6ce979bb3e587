//! Worked values of the instruction mix: operations of the lanes by class.
//!
//! Blocks of 20 threads run straight code. So each line counts 20 lanes in the class of its opcode, and the time plays no part.

use super::{Number, Over, PLAIN, Worked};

/// Active lanes of each program.
const LANES: f64 = 20.0;

/// Name of the metric of a class.
macro_rules! lanes {
    ($class:literal) => {
        concat!("smsp__sass_thread_inst_executed_op_", $class, "_pred_on.sum")
    };
}

pub(super) const WORKED: &[Worked] = &[
    // An add, two multiplies, three multiply-adds, a minimum and a reciprocal: 8 instructions, 1 + 2 + 3 x 2 operations.
    Worked {
        name: "classes of FP32",
        text: "FADD R0, R8, R9\nFMUL R1, R8, R9\nFMUL R2, R8, R9\nFFMA R3, R8, R9, R10\nFFMA R4, R8, R9, R10\nFFMA R5, R8, R9, R10\n\
               FMNMX R6, R8, R9, PT\nMUFU.RCP R7, R8\nEXIT",
        shape: (1, 20),
        values: &[
            (lanes!("fadd"), Number(LANES)),
            (lanes!("fmul"), Number(2.0 * LANES)),
            (lanes!("ffma"), Number(3.0 * LANES)),
            (lanes!("fp32"), Number(8.0 * LANES)),
            ("derived__flops_fp32.sum", Number(9.0 * LANES)),
            // A cycle is a nanosecond.
            (
                "derived__flops.sum.per_second",
                Over(9.0 * LANES * 1e9, "gpc__cycles_elapsed.max"),
            ),
            // 8 instructions and EXIT.
            ("smsp__inst_issued.sum", Number(9.0)),
            ("smsp__thread_inst_executed.sum", Number(9.0 * LANES)),
        ],
        ..PLAIN
    },
    // An add, two multiplies, three multiply-adds and a comparison: 7 instructions, 1 + 2 + 3 x 2 operations.
    Worked {
        name: "classes of FP64",
        text: "DADD R0, R8, R10\nDMUL R2, R8, R10\nDMUL R4, R8, R10\nDFMA R6, R8, R10, R12\nDFMA R14, R8, R10, R12\n\
               DFMA R16, R8, R10, R12\nDSETP.LT.AND P0, PT, R8, R10, PT\nEXIT",
        shape: (1, 20),
        values: &[
            (lanes!("dadd"), Number(LANES)),
            (lanes!("dmul"), Number(2.0 * LANES)),
            (lanes!("dfma"), Number(3.0 * LANES)),
            (lanes!("fp64"), Number(7.0 * LANES)),
            ("derived__flops_fp64.sum", Number(9.0 * LANES)),
        ],
        ..PLAIN
    },
    // An add of two halves, two multiplies of one, three multiply-adds of two, and a minimum: 7 instructions. Operations:
    // 2 + 2 x 1 + 3 x 2 x 2 = 16.
    Worked {
        name: "classes of half precision",
        text: "HADD2.F16X2 R0, R8, R9\nHMUL2.F16 R1, R8, R9\nHMUL2.F16 R2, R8, R9\nHFMA2.F16X2 R3, R8, R9, R10\n\
               HFMA2.F16X2 R4, R8, R9, R10\nHFMA2.F16X2 R5, R8, R9, R10\nHMNMX2.F16X2 R6, R8, R9, PT\nEXIT",
        shape: (1, 20),
        values: &[
            (lanes!("hadd"), Number(LANES)),
            (lanes!("hmul"), Number(2.0 * LANES)),
            (lanes!("hfma"), Number(3.0 * LANES)),
            (lanes!("fp16"), Number(7.0 * LANES)),
            ("derived__flops_fp16.sum", Number(16.0 * LANES)),
        ],
        ..PLAIN
    },
    // Two instructions with an interval of 2 issue in t+4 and t+6, EXIT in t+7. The second result is usable 6 after its issue, in t+12.
    // 13 cycles. EXIT is the one instruction of the control pipe.
    Worked {
        name: "packed multiply-adds",
        text: "HFMA2.F16X2 R0, R8, R9, R10\nHFMA2.F16X2 R1, R8, R9, R10\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(13.0)),
            (
                "sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active",
                Number(100.0 * 4.0 / 13.0),
            ),
            (
                "sm__inst_executed_pipe_cbu.avg.pct_of_peak_sustained_active",
                Number(100.0 / 13.0),
            ),
        ],
        ..PLAIN
    },
    // By line: integer 3 (IMAD too, by its operation), logic 2, conversions 2, memory 3, exchange 2, moves 3. The branch reads a predicate,
    // so the dispatch unit sends it: control 1. The scheduler resolves EXIT itself.
    Worked {
        name: "classes of integers, memory and control",
        text: "IADD3 R0, PT, R8, R9, RZ, PT\nIMAD R1, R8, R9, R10\nISETP.LT.AND.S32 P0, PT, R8, 0x8, PT, PT\n\
               LOP3.0xc0 R2, R8, R9, RZ\nPOPC R3, R8\nI2F.F32.S32 R4, R8\nF2F.F64.F32 R6, R8\n\
               ST.SHARED.B32 [RZ], R8\nLD.SHARED.B32 R11, [RZ]\nLD.SHARED.B32 R12, [RZ]\n\
               SHFL.BFLY R13, PT, R8, 0x1, 0x1f\nSHFL.BFLY R14, PT, R8, 0x2, 0x1f\n\
               MOV R15, R8\nSEL R16, R8, R9, P0\nS2R R17, SR_LANEID\n@P0 BRA 16\nEXIT",
        shape: (1, 20),
        values: &[
            (lanes!("integer"), Number(3.0 * LANES)),
            (lanes!("bit"), Number(2.0 * LANES)),
            (lanes!("conversion"), Number(2.0 * LANES)),
            (lanes!("memory"), Number(3.0 * LANES)),
            (lanes!("inter_thread_communication"), Number(2.0 * LANES)),
            (lanes!("misc"), Number(3.0 * LANES)),
            // All registers are 0, and 0 < 8.
            (lanes!("control"), Number(LANES)),
        ],
        ..PLAIN
    },
    // Two products of 16 x 8 by 16 x 16, each 2 x 16 x 8 x 16 operations.
    Worked {
        name: "operations of matrix products",
        text: "MMA.16816F16.F32 R16, R4, R8, R16\nMMA.16816F16.F32 R20, R4, R8, R20\nEXIT",
        values: &[("derived__flops_tensor.sum", Number(2.0 * 4096.0))],
        ..PLAIN
    },
];
