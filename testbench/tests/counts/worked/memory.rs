//! Worked values of the memory path: stores, caches of constants, textures, the L2, and device memory.
//!
//! Where only the time of an access is not counted by hand, a value is a number over the cycles of the launch.

use super::{Number, Over, PLAIN, Worked};

pub(super) const WORKED: &[Worked] = &[
    // Lane l uses word l of a line. Both stores write the line, both loads read the next one. Between the loads the L1 loses its lines, so
    // that the second one reads from the L2. The line loaded comes from memory, 4 sectors. Neither line was in the L2 at first.
    Worked {
        name: "line stored twice, line loaded twice",
        text: "S2R R0, SR_LANEID\nIMAD.WIDE.S32 R2, R0, 0x4, c[0][0x160]\nST.B32 [R2], R0\nLD.B32 R4, [R2+0x80]\n\
               FFMA R5, R4, R4, R4\nMEMBAR.GPU\nCCTL.IVALL\nST.B32 [R2], R0\nLD.B32 R6, [R2+0x80]\nEXIT",
        values: &[
            ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", Number(2.0)),
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", Number(8.0)),
            (
                "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
                Number(4.0),
            ),
            ("l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct", Number(0.0)),
            // Four accesses of 4 sectors, none with a gap.
            ("memory_l2_theoretical_sectors_global", Number(16.0)),
            ("memory_l2_theoretical_sectors_global_ideal", Number(16.0)),
            ("l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum", Number(8.0)),
            ("l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum", Number(8.0)),
            ("lts__t_sectors_srcunit_tex_op_read.sum", Number(8.0)),
            // The second access of each kind hits.
            ("lts__t_sector_op_read_hit_rate.pct", Number(50.0)),
            ("lts__t_sector_op_write_hit_rate.pct", Number(50.0)),
            ("dram__sectors_read.sum", Number(4.0)),
            ("dram__sectors_write.sum", Number(0.0)),
            ("dram__bytes_read.sum", Number(128.0)),
            // A burst of 32 bytes has the bus for a cycle: 4 cycles on 2 buses.
            (
                "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                Over(100.0 * 4.0 / 2.0, "gpc__cycles_elapsed.max"),
            ),
            // The peak is 2 x 32 bytes per cycle.
            (
                "dram__bytes_read.sum.pct_of_peak_sustained_elapsed",
                Over(100.0 * 128.0 / 64.0, "gpc__cycles_elapsed.max"),
            ),
            // A multiply-add in 32 lanes, over the 128 bytes read.
            ("derived__arithmetic_intensity_dram.ratio", Number(64.0 / 128.0)),
        ],
        ..PLAIN
    },
    // The same line three times, each load behind the use of the one before: one miss, two hits.
    Worked {
        name: "line loaded three times",
        text: "S2R R0, SR_LANEID\nIMAD.WIDE.S32 R2, R0, 0x4, c[0][0x160]\nLD.B32 R4, [R2]\nIADD3 R5, PT, R4, RZ, RZ, PT\n\
               LD.B32 R4, [R2]\nIADD3 R5, PT, R4, RZ, RZ, PT\nLD.B32 R4, [R2]\nEXIT",
        values: &[(
            "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
            Number(100.0 * 2.0 / 3.0),
        )],
        ..PLAIN
    },
    // Each of 8 instructions stores 4 lines. The L2 has room for 16 of the 32 lines: 2 slices with one set of 8 ways. So 16 lines leave it
    // in the launch, as the sleep at the end gives them time. 16 lines are 64 sectors and 2048 bytes. The other 16 leave it later.
    Worked {
        name: "more lines stored than the L2 has room for",
        text: "S2R R0, SR_LANEID\nIMAD.WIDE.S32 R2, R0, 0x10, c[0][0x160]\nST.B32X4 [R2], R4\nST.B32X4 [R2+0x200], R4\n\
               ST.B32X4 [R2+0x400], R4\nST.B32X4 [R2+0x600], R4\nST.B32X4 [R2+0x800], R4\nST.B32X4 [R2+0xa00], R4\n\
               ST.B32X4 [R2+0xc00], R4\nST.B32X4 [R2+0xe00], R4\nMEMBAR.GPU\nNANOSLEEP 0xfa0\nEXIT",
        sets: &[("l2.size", "2048")],
        values: &[
            ("dram__sectors_write.sum", Number(64.0)),
            ("dram__bytes_write.sum", Number(2048.0)),
            ("dram__bytes_write_after_launch.sum", Number(2048.0)),
            ("dram__bytes_read.sum", Number(0.0)),
            (
                "dram__bytes_write.sum.pct_of_peak_sustained_elapsed",
                Over(100.0 * 2048.0 / 64.0, "gpc__cycles_elapsed.max"),
            ),
        ],
        ..PLAIN
    },
    // Slot 0 of the 32 lanes is a line: 4 sectors.
    Worked {
        name: "local memory, two stores and a load",
        text: "ST.LOCAL.B32 [RZ], R4\nST.LOCAL.B32 [RZ], R5\nLD.LOCAL.B32 R6, [RZ]\nEXIT",
        values: &[
            ("smsp__sass_inst_executed_op_local_st.sum", Number(2.0)),
            ("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", Number(8.0)),
            ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", Number(4.0)),
        ],
        ..PLAIN
    },
    // The second load finds the line of the first one, whose value was used before. The third one needs the next line of 64 bytes.
    Worked {
        name: "constants by loads",
        text: "LDC.B32 R4, c[0][RZ+0x140]\nIADD3 R5, PT, R4, RZ, RZ, PT\nLDC.B32 R6, c[0][RZ+0x144]\n\
               IADD3 R5, PT, R6, RZ, RZ, PT\nLDC.B32 R7, c[0][RZ+0x180]\nEXIT",
        sets: &[("sm.constant.l15_size", "2048")],
        values: &[
            ("idc__requests.sum", Number(3.0)),
            ("idc__request_hit_rate.pct", Number(100.0 / 3.0)),
            ("smsp__imc_requests.sum", Number(0.0)),
        ],
        ..PLAIN
    },
    // The second operand is in the line of the first one, the third one is in the next line. The last instruction has no constant.
    Worked {
        name: "constants as operands",
        text: "FADD R3, R1, c[0][0x140]\nFADD R4, R1, c[0][0x144]\nFADD R5, R1, c[0][0x180]\nFADD R6, R1, R2\nEXIT",
        sets: &[("sm.constant.l15_size", "2048")],
        values: &[
            ("smsp__imc_requests.sum", Number(3.0)),
            ("smsp__imc_request_hit_rate.pct", Number(100.0 / 3.0)),
            ("idc__requests.sum", Number(0.0)),
        ],
        ..PLAIN
    },
    // Lane l fetches texel l, of 4 bytes: a line of 4 sectors.
    Worked {
        name: "texture fetch",
        text: "MOV R4, 0x1\nMOV R5, RZ\nS2R R2, SR_LANEID\nTEX.F32.S32.N1 R8, R4, R2\nEXIT",
        values: &[
            ("l1tex__t_sectors_pipe_tex_mem_texture.sum", Number(4.0)),
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", Number(0.0)),
        ],
        ..PLAIN
    },
    // A matrix has 8 rows of 16 bytes. All addresses are 0, so the rows are one: one pass. A matrix load is a load apart.
    Worked {
        name: "matrix load",
        text: "LDSM.SHARED R4, [RZ]\nEXIT",
        values: &[
            ("smsp__sass_inst_executed_op_ldsm.sum", Number(1.0)),
            ("smsp__sass_inst_executed_op_shared_ld.sum", Number(0.0)),
        ],
        ..PLAIN
    },
    // Word 4 x l: four lanes on each of 8 banks, so four passes for the store, three of them by conflicts. The first load reads the same
    // words: 4 passes, 3 by conflicts. The second load reads one word in all lanes: 1 pass. 9 passes of 3 instructions.
    Worked {
        name: "bank conflicts of four lanes",
        text: "S2R R0, SR_LANEID\nIMAD R1, R0, 0x10, RZ\nST.SHARED.B32 [R1], R0\nLD.SHARED.B32 R2, [R1]\nLD.SHARED.B32 R3, [RZ]\nEXIT",
        values: &[
            ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", Number(4.0)),
            ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", Number(5.0)),
            ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", Number(3.0)),
            ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", Number(3.0)),
            ("derived__memory_l1_conflicts_shared_nway", Number(9.0 / 3.0)),
        ],
        ..PLAIN
    },
];
