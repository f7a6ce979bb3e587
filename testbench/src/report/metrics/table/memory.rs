//! Metrics of the memory path inside an SM: requests, L1, shared memory.

use super::Row;
use crate::report::metrics::{Inputs, Value};

pub(super) const L1: &[Row] = &[
    (
        "smsp__sass_inst_executed_op_global_ld.sum",
        "inst",
        "lsu",
        "Global loads, as warp instructions.",
        "sum of global_ld_inst",
        |i| i.sum("lsu", "global_ld_inst"),
    ),
    (
        "smsp__sass_inst_executed_op_global_st.sum",
        "inst",
        "lsu",
        "Global stores, as warp instructions.",
        "sum of global_st_inst",
        |i| i.sum("lsu", "global_st_inst"),
    ),
    (
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "request",
        "lsu",
        "Requests of global loads: one per warp instruction with an active lane, also if a lane loads 8 or 16 bytes. \
         Source: NVIDIA's forum, topic 165293.",
        "sum of global_ld_inst",
        |i| i.sum("lsu", "global_ld_inst"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "sector",
        "lsu",
        "32-byte sectors accessed by global loads, after coalescing.",
        "sum of global_ld_sectors",
        |i| i.sum("lsu", "global_ld_sectors"),
    ),
    (
        "l1tex__t_sectors_pipe_tex_mem_texture.sum",
        "sector",
        "lsu",
        "32-byte sectors accessed by texture fetches. A filtered fetch counts its first texel alone.",
        "sum of texture_ld_sectors",
        |i| i.sum("lsu", "texture_ld_sectors"),
    ),
    (
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "sector/request",
        "lsu",
        "Sectors per global load request. Ideal are 4 with 4 bytes per lane, 8 with 8 and 16 with 16.",
        "sum of global_ld_sectors / sum of global_ld_inst",
        |i| i.sum("lsu", "global_ld_sectors") / i.sum("lsu", "global_ld_inst"),
    ),
    (
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        "B/sector",
        "lsu",
        "Bytes used by lanes per sector accessed by global loads; 32 is ideal. A byte that several lanes load counts once.",
        "sum of global_ld_distinct_bytes / sum of global_ld_sectors",
        |i| i.sum("lsu", "global_ld_distinct_bytes") / i.sum("lsu", "global_ld_sectors"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
        "sector",
        "l1",
        "Sectors of global loads that hit in the L1. A merge with a pending miss is a hit, as the profiler counts it.",
        "sum of global_load_sectors_hit + global_load_sectors_merged",
        l1_global_hits,
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum",
        "sector",
        "l1",
        "Sectors of global loads that missed in the L1. Bypasses of the L1 count too, merges with a pending miss do not.",
        "sum of global_load_sectors_missed - global_load_sectors_merged",
        // The L1 counts a merge as missed. The profiler counts it as a hit.
        |i| i.sum("l1", "global_load_sectors_missed") - i.sum("l1", "global_load_sectors_merged"),
    ),
    (
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "request",
        "lsu",
        "Requests of global stores: one per warp instruction with an active lane, also if a lane stores 8 or 16 bytes.",
        "sum of global_st_inst",
        |i| i.sum("lsu", "global_st_inst"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "sector",
        "lsu",
        "32-byte sectors accessed by global stores, after coalescing.",
        "sum of global_st_sectors",
        |i| i.sum("lsu", "global_st_sectors"),
    ),
    (
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
        "sector/request",
        "lsu",
        "Sectors per global store request.",
        "sum of global_st_sectors / sum of global_st_inst",
        |i| i.sum("lsu", "global_st_sectors") / i.sum("lsu", "global_st_inst"),
    ),
    (
        "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
        "%",
        "l1",
        "L1 hit rate of global loads, by sectors. A merge with a pending miss is a hit.",
        "sum of (global_load_sectors_hit + global_load_sectors_merged) / sum of global_load_sectors x 100",
        |i| l1_global_hits(i) / i.sum("l1", "global_load_sectors") * 100.0,
    ),
    (
        "l1tex__t_sector_hit_rate.pct",
        "%",
        "l1",
        "L1 hit rate of all accesses, by sectors. A merge with a pending miss is a hit.",
        "(load_sectors_hit + load_sectors_merged + store_sectors_hit) / (load, store, atomic and reduction sectors) x 100",
        |i| {
            let hits = l1_load_hits(i) + i.sum("l1", "store_sectors_hit");
            let loads_and_stores = i.sum("l1", "load_sectors") + i.sum("l1", "store_sectors");
            // Atomics are performed in the L2, so they never hit.
            let others = i.sum("l1", "atomic_sectors") + i.sum("l1", "reduction_sectors");
            hits / (loads_and_stores + others) * 100.0
        },
    ),
    (
        "memory_l2_theoretical_sectors_global",
        "sector",
        "lsu",
        "Sectors that loads, stores and atomics on global memory access, before any cache.",
        "sum of global_ld_sectors, global_st_sectors, global_atom_sectors",
        theoretical,
    ),
    (
        "memory_l2_theoretical_sectors_global_ideal",
        "sector",
        "lsu",
        "The same sectors if the bytes of each instruction lay without gaps.",
        "theoretical sectors - excessive sectors",
        |i| theoretical(i) - excessive(i),
    ),
    (
        "derived__memory_l2_theoretical_sectors_global_excessive",
        "sector",
        "lsu",
        "Sectors above the ideal: the waste of uncoalesced accesses.",
        "for each instruction, its sectors above bytes of its lanes / 32",
        excessive,
    ),
    (
        "l1tex__tlb_lookups_hit.sum",
        "packet",
        "l1",
        "Packets from the L1 to the L2 whose page was in the TLB of the SM, or took an entry that was never used.",
        "sum of tlb_hits",
        |i| i.sum("l1", "tlb_hits"),
    ),
    (
        "l1tex__tlb_lookups_miss.sum",
        "packet",
        "l1",
        "Packets from the L1 to the L2 that waited `sm.tlb.miss_latency` for the translation of their page.",
        "sum of tlb_misses",
        |i| i.sum("l1", "tlb_misses"),
    ),
    (
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "%",
        "l1, shared",
        "Busy share of the L1's busiest stage, in cycles in which its SM held warps.",
        "greatest of tag_cycles, data_cycles and shared busy_cycles / sum of cta active_cycles x 100",
        |i| l1_share(i, i.sum("cta", "active_cycles")),
    ),
];

fn theoretical(i: &Inputs<'_>) -> Value {
    let counters = ["global_ld_sectors", "global_st_sectors", "global_atom_sectors"];
    sum(i, counters)
}

fn excessive(i: &Inputs<'_>) -> Value {
    let counters = [
        "global_ld_excess_sectors",
        "global_st_excess_sectors",
        "global_atom_excess_sectors",
    ];
    sum(i, counters)
}

fn sum(i: &Inputs<'_>, counters: [&'static str; 3]) -> Value {
    let [loads, stores, atomics] = counters.map(|counter| i.sum("lsu", counter));
    loads + stores + atomics
}

pub(super) const LOCAL: &[Row] = &[
    (
        "smsp__sass_inst_executed_op_local_ld.sum",
        "inst",
        "lsu",
        "Loads from local memory, as warp instructions: spilled registers and variables of a thread.",
        "sum of local_ld_inst",
        |i| i.sum("lsu", "local_ld_inst"),
    ),
    (
        "smsp__sass_inst_executed_op_local_st.sum",
        "inst",
        "lsu",
        "Stores to local memory, as warp instructions.",
        "sum of local_st_inst",
        |i| i.sum("lsu", "local_st_inst"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
        "sector",
        "lsu",
        "32-byte sectors accessed by loads from local memory.",
        "sum of local_ld_sectors",
        |i| i.sum("lsu", "local_ld_sectors"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
        "sector",
        "lsu",
        "32-byte sectors accessed by stores to local memory.",
        "sum of local_st_sectors",
        |i| i.sum("lsu", "local_st_sectors"),
    ),
    (
        "idc__requests.sum",
        "request",
        "lsu",
        "Requests to the indexed constant cache (IDC) by loads of constants (LDC). A constant as an operand sends none.",
        "sum of constant_loads",
        |i| i.sum("lsu", "constant_loads"),
    ),
    (
        "idc__request_hit_rate.pct",
        "%",
        "lsu",
        "Hit rate of the indexed constant cache. A load with an absent line is a miss.",
        "(constant_loads - constant_loads_missed) / constant_loads x 100",
        |i| {
            let loads = i.sum("lsu", "constant_loads");
            (loads - i.sum("lsu", "constant_loads_missed")) / loads * 100.0
        },
    ),
];

/// Sectors of all loads that hit in the L1, as the profiler counts them: a merge with a pending miss is a hit.
fn l1_load_hits(i: &Inputs<'_>) -> Value {
    i.sum("l1", "load_sectors_hit") + i.sum("l1", "load_sectors_merged")
}

/// Sectors of global loads that hit in the L1, as the profiler counts them.
fn l1_global_hits(i: &Inputs<'_>) -> Value {
    i.sum("l1", "global_load_sectors_hit") + i.sum("l1", "global_load_sectors_merged")
}

/// Busy share of the L1's busiest stage in `cycles`, a sum over all SMs.
pub(super) fn l1_share(i: &Inputs<'_>, cycles: Value) -> Value {
    // Shared memory is part of the unified L1 array, so its banks count too.
    let stages = [("l1", "tag_cycles"), ("l1", "data_cycles"), ("shared", "busy_cycles")];
    Value::greatest(stages.map(|(block, counter)| i.sum(block, counter) / cycles * 100.0))
}

fn shared(i: &Inputs<'_>, counters: [&'static str; 3]) -> Value {
    let [loads, stores, atomics] = counters.map(|counter| i.sum("shared", counter));
    loads + stores + atomics
}

const PASSES: [&str; 3] = ["shared_ld_passes", "shared_st_passes", "shared_atom_passes"];
const CONFLICTS: [&str; 3] = ["shared_ld_conflicts", "shared_st_conflicts", "shared_atom_conflicts"];
const SHARED_INST: [&str; 3] = ["shared_ld_inst", "shared_st_inst", "shared_atom_inst"];

pub(super) const SHARED: &[Row] = &[
    (
        "smsp__sass_inst_executed_op_shared_ld.sum",
        "inst",
        "shared",
        "Loads from shared memory, as warp instructions with an active lane. Matrix loads and tests of mbarriers are apart, as on an H100.",
        "sum of shared_ld_inst - sum of matrix_loads, barrier_tests",
        // The banks serve both like loads, so the unit counts them as loads.
        |i| i.sum("shared", "shared_ld_inst") - i.sum("shared", "matrix_loads") - i.sum("shared", "barrier_tests"),
    ),
    (
        "smsp__sass_inst_executed_op_ldsm.sum",
        "inst",
        "shared",
        "Matrix loads (ldmatrix), as warp instructions.",
        "sum of matrix_loads",
        |i| i.sum("shared", "matrix_loads"),
    ),
    (
        "smsp__sass_inst_executed_op_shared_st.sum",
        "inst",
        "shared",
        "Stores to shared memory, as warp instructions with an active lane. Asynchronous copies are apart, as on an H100.",
        "sum of shared_st_inst - sum of copies",
        // The banks serve the write of a copy like a store.
        |i| i.sum("shared", "shared_st_inst") - i.sum("shared", "copies"),
    ),
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "wavefront",
        "shared",
        "Passes of shared memory: cycles in which its banks serve an access.",
        "sum of shared_ld_passes, shared_st_passes, shared_atom_passes",
        |i| shared(i, PASSES),
    ),
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "wavefront",
        "shared",
        "Passes of loads from shared memory.",
        "sum of shared_ld_passes",
        |i| i.sum("shared", "shared_ld_passes"),
    ),
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "wavefront",
        "shared",
        "Passes of stores to shared memory.",
        "sum of shared_st_passes",
        |i| i.sum("shared", "shared_st_passes"),
    ),
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "conflict",
        "shared",
        "Passes added by bank conflicts: lanes access different words of one bank.",
        "sum of shared_ld_conflicts, shared_st_conflicts, shared_atom_conflicts",
        |i| shared(i, CONFLICTS),
    ),
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "conflict",
        "shared",
        "Passes of loads added by bank conflicts.",
        "sum of shared_ld_conflicts",
        |i| i.sum("shared", "shared_ld_conflicts"),
    ),
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "conflict",
        "shared",
        "Passes of stores added by bank conflicts.",
        "sum of shared_st_conflicts",
        |i| i.sum("shared", "shared_st_conflicts"),
    ),
    (
        "derived__memory_l1_wavefronts_shared_excessive",
        "wavefront",
        "shared",
        "Passes of shared memory that were added by bank conflicts.",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum; the model has no other cause of extra passes",
        |i| shared(i, CONFLICTS),
    ),
    (
        "derived__memory_l1_conflicts_shared_nway",
        "way",
        "shared",
        "Passes per warp instruction on shared memory; 1 is free of conflicts for up to 4 bytes per lane.",
        "passes / instructions",
        |i| shared(i, PASSES) / shared(i, SHARED_INST),
    ),
];
