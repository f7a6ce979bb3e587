//! The memory path: L1, shared memory, L2, device memory.

use warpwave_components::proto::mem;

use super::{Row, not_modelled};
use crate::report::metrics::{Inputs, Value};

/// Bytes of a sector.
const SECTOR: f64 = mem::SECTOR as f64;

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
        "smsp__sass_inst_executed_op_local_ld.sum",
        "inst",
        "none",
        "Loads from local memory, as warp instructions.",
        "not counted",
        not_modelled,
    ),
    (
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "request",
        "lsu",
        "Requests that global loads became.",
        "sum of global_ld_requests",
        |i| i.sum("lsu", "global_ld_requests"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "sector",
        "lsu",
        "32-byte sectors that global loads touched, after coalescing.",
        "sum of global_ld_sectors",
        |i| i.sum("lsu", "global_ld_sectors"),
    ),
    (
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "sector/request",
        "lsu",
        "Sectors per global load request: 4 is ideal for 4 bytes a lane, 32 is fully scattered.",
        "sum of global_ld_sectors / sum of global_ld_requests",
        |i| i.sum("lsu", "global_ld_sectors") / i.sum("lsu", "global_ld_requests"),
    ),
    (
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        "B/sector",
        "lsu",
        "Bytes that lanes wanted for each sector that global loads touched.",
        "sum of global_ld_lane_bytes / sum of global_ld_sectors",
        |i| i.sum("lsu", "global_ld_lane_bytes") / i.sum("lsu", "global_ld_sectors"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
        "sector",
        "l1",
        "Of those, sectors found in the L1.",
        "sum of load_sectors_hit",
        |i| i.sum("l1", "load_sectors_hit"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum",
        "sector",
        "l1",
        "Of those, sectors not found in the L1, joined to a pending miss or passed by included.",
        "sum of load_sectors_missed",
        |i| i.sum("l1", "load_sectors_missed"),
    ),
    (
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "request",
        "lsu",
        "Requests that global stores became.",
        "sum of global_st_requests",
        |i| i.sum("lsu", "global_st_requests"),
    ),
    (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "sector",
        "lsu",
        "32-byte sectors that global stores touched.",
        "sum of global_st_sectors",
        |i| i.sum("lsu", "global_st_sectors"),
    ),
    (
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
        "sector/request",
        "lsu",
        "Sectors per global store request.",
        "sum of global_st_sectors / sum of global_st_requests",
        |i| i.sum("lsu", "global_st_sectors") / i.sum("lsu", "global_st_requests"),
    ),
    (
        "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
        "%",
        "l1",
        "Share of the sectors of loads found in the L1.",
        "sum of load_sectors_hit / sum of load_sectors x 100",
        |i| i.sum("l1", "load_sectors_hit") / i.sum("l1", "load_sectors") * 100.0,
    ),
    (
        "l1tex__t_sector_hit_rate.pct",
        "%",
        "l1",
        "Share of all sectors found in the L1.",
        "(load_sectors_hit + store_sectors_hit) / (load, store, atomic and reduction sectors) x 100",
        |i| {
            let hits = i.sum("l1", "load_sectors_hit") + i.sum("l1", "store_sectors_hit");
            let loads_and_stores = i.sum("l1", "load_sectors") + i.sum("l1", "store_sectors");
            let others = i.sum("l1", "atomic_sectors") + i.sum("l1", "reduction_sectors");
            hits / (loads_and_stores + others) * 100.0
        },
    ),
    (
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "%",
        "l1, shared",
        "How close the busiest stage of the L1 came to its peak while its SM was active.",
        "greatest of tag_cycles, data_cycles and shared busy_cycles / sum of cta active_cycles x 100",
        |i| l1_share(i, i.sum("cta", "active_cycles")),
    ),
];

fn l1_share(i: &Inputs<'_>, cycles: Value) -> Value {
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
        "Loads from shared memory, as warp instructions.",
        "sum of shared_ld_inst",
        |i| i.sum("shared", "shared_ld_inst"),
    ),
    (
        "smsp__sass_inst_executed_op_shared_st.sum",
        "inst",
        "shared",
        "Stores to shared memory, as warp instructions.",
        "sum of shared_st_inst",
        |i| i.sum("shared", "shared_st_inst"),
    ),
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "wavefront",
        "shared",
        "Passes of shared memory: cycles in which its banks served an access.",
        "sum of shared_ld_passes, shared_st_passes, shared_atom_passes",
        |i| shared(i, PASSES),
    ),
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "wavefront",
        "shared",
        "The same for loads.",
        "sum of shared_ld_passes",
        |i| i.sum("shared", "shared_ld_passes"),
    ),
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "wavefront",
        "shared",
        "The same for stores.",
        "sum of shared_st_passes",
        |i| i.sum("shared", "shared_st_passes"),
    ),
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "conflict",
        "shared",
        "Passes beyond those that the width of the access needs, because lanes wanted different words of a bank.",
        "sum of shared_ld_conflicts, shared_st_conflicts, shared_atom_conflicts",
        |i| shared(i, CONFLICTS),
    ),
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "conflict",
        "shared",
        "The same for loads.",
        "sum of shared_ld_conflicts",
        |i| i.sum("shared", "shared_ld_conflicts"),
    ),
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "conflict",
        "shared",
        "The same for stores.",
        "sum of shared_st_conflicts",
        |i| i.sum("shared", "shared_st_conflicts"),
    ),
    (
        "derived__memory_l1_wavefronts_shared_excessive",
        "wavefront",
        "shared",
        "Passes lost to bank conflicts.",
        "as l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum: the model has no other cause",
        |i| shared(i, CONFLICTS),
    ),
    (
        "derived__memory_l1_conflicts_shared_nway",
        "way",
        "shared",
        "Passes per shared-memory access.",
        "passes / instructions",
        |i| shared(i, PASSES) / shared(i, SHARED_INST),
    ),
];

/// Cycles of another clock in the time of the launch.
fn elapsed(i: &Inputs<'_>, khz: u32) -> f64 {
    i.cycles as f64 * f64::from(khz) / f64::from(i.config.clocks.core_khz)
}

/// Share of a counter of busy cycles in all cycles of its clock, over all instances.
fn busy(i: &Inputs<'_>, block: &str, counter: &'static str, khz: u32) -> Value {
    i.mean(block, counter) / Value::Number(elapsed(i, khz)) * 100.0
}

fn l2_share(i: &Inputs<'_>) -> Value {
    let stages = ["tag_cycles", "data_cycles", "answer_cycles"];
    Value::greatest(stages.map(|stage| busy(i, "l2_slice", stage, i.config.clocks.l2_khz)))
}

fn dram_share(i: &Inputs<'_>) -> Value {
    busy(i, "channel", "bus_cycles", i.config.clocks.memory_khz)
}

fn memory_share(i: &Inputs<'_>) -> Value {
    let sms = i.cycles() * f64::from(i.config.n_sms());
    Value::greatest([l1_share(i, sms), l2_share(i), dram_share(i)])
}

fn l2_sectors(i: &Inputs<'_>) -> Value {
    let stores_and_atomics = i.sum("l2_slice", "store_sectors") + i.sum("l2_slice", "atomic_sectors");
    i.sum("l2_slice", "load_sectors") + stores_and_atomics
}

fn l2_hits(i: &Inputs<'_>) -> Value {
    let stores_and_atomics = i.sum("l2_slice", "store_sectors_hit") + i.sum("l2_slice", "atomic_sectors_hit");
    i.sum("l2_slice", "load_sectors_hit") + stores_and_atomics
}

fn dram_bytes(i: &Inputs<'_>) -> Value {
    i.sum("channel", "bytes_read") + i.sum("channel", "bytes_written")
}

/// Bytes that the buses of all channels move in a command cycle.
fn dram_peak(i: &Inputs<'_>) -> f64 {
    f64::from(i.config.hbm.channels) * f64::from(i.config.hbm.bus_bytes_per_command_cycle)
}

fn dram_bytes_share(i: &Inputs<'_>, counter: &'static str) -> Value {
    let peak = dram_peak(i) * elapsed(i, i.config.clocks.memory_khz);
    i.sum("channel", counter) / Value::Number(peak) * 100.0
}

pub(super) const BELOW: &[Row] = &[
    (
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "l1, shared, l2_slice, channel",
        "How close the busiest stage of the memory path came to its own peak over the whole launch.",
        "greatest of L1, L2 and device-memory shares of elapsed cycles; the crossbar is not among them yet",
        memory_share,
    ),
    (
        "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum",
        "sector",
        "l1",
        "Sectors of loads that came to the L1 from the L2.",
        "sum of sectors_read_below",
        |i| i.sum("l1", "sectors_read_below"),
    ),
    (
        "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum",
        "sector",
        "l1",
        "Sectors of stores that the L1 sent to the L2.",
        "sum of sectors_written_below",
        |i| i.sum("l1", "sectors_written_below"),
    ),
    (
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "l2_slice",
        "How close the busiest stage of the L2 slices came to its peak, mean over slices.",
        "greatest of tag_cycles, data_cycles and answer_cycles / elapsed L2 cycles x 100",
        l2_share,
    ),
    (
        "lts__t_sectors.sum",
        "sector",
        "l2_slice",
        "Sectors that L2 slices were asked for.",
        "sum of load, store and atomic sectors",
        l2_sectors,
    ),
    (
        "lts__t_sectors_srcunit_tex_op_read.sum",
        "sector",
        "l2_slice",
        "Sectors that L1 caches read from the L2.",
        "sum of load_sectors",
        |i| i.sum("l2_slice", "load_sectors"),
    ),
    (
        "lts__t_sector_hit_rate.pct",
        "%",
        "l2_slice",
        "Share of the L2's sectors that were there.",
        "load, store and atomic sectors hit / lts__t_sectors.sum x 100",
        |i| l2_hits(i) / l2_sectors(i) * 100.0,
    ),
    (
        "lts__t_sector_op_read_hit_rate.pct",
        "%",
        "l2_slice",
        "The same for loads.",
        "sum of load_sectors_hit / sum of load_sectors x 100",
        |i| i.sum("l2_slice", "load_sectors_hit") / i.sum("l2_slice", "load_sectors") * 100.0,
    ),
    (
        "lts__t_sector_op_write_hit_rate.pct",
        "%",
        "l2_slice",
        "The same for stores: sectors stored to a line that was there.",
        "sum of store_sectors_hit / sum of store_sectors x 100",
        |i| i.sum("l2_slice", "store_sectors_hit") / i.sum("l2_slice", "store_sectors") * 100.0,
    ),
    (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "channel",
        "Share of its cycles in which the data bus of a memory channel moved data, mean over channels.",
        "mean of bus_cycles / elapsed command cycles x 100",
        dram_share,
    ),
    (
        "dram__cycles_elapsed.avg.per_second",
        "Hz",
        "gpu",
        "Command clock of the memory channels, from the preset.",
        "clocks.memory_khz x 1000",
        |i| Value::Number(f64::from(i.config.clocks.memory_khz) * 1e3),
    ),
    (
        "dram__bytes_read.sum",
        "B",
        "channel",
        "Bytes read from device memory.",
        "sum of bytes_read",
        |i| i.sum("channel", "bytes_read"),
    ),
    (
        "dram__bytes_write.sum",
        "B",
        "channel",
        "Bytes written to device memory, the write-backs at the end of the launch included.",
        "sum of bytes_written",
        |i| i.sum("channel", "bytes_written"),
    ),
    (
        "dram__sectors_read.sum",
        "sector",
        "channel",
        "The bytes read, in sectors.",
        "sum of bytes_read / 32",
        |i| i.sum("channel", "bytes_read") / Value::Number(SECTOR),
    ),
    (
        "dram__sectors_write.sum",
        "sector",
        "channel",
        "The bytes written, in sectors.",
        "sum of bytes_written / 32",
        |i| i.sum("channel", "bytes_written") / Value::Number(SECTOR),
    ),
    (
        "dram__bytes.sum.per_second",
        "B/s",
        "channel",
        "Bandwidth of device memory that the launch reached.",
        "(bytes_read + bytes_written) / time of the launch",
        |i| dram_bytes(i) / Value::Number(i.cycles as f64 / (f64::from(i.config.clocks.core_khz) * 1e3)),
    ),
    (
        "dram__bytes_read.sum.pct_of_peak_sustained_elapsed",
        "%",
        "channel",
        "Bytes read as a share of what the buses could move.",
        "sum of bytes_read / (dram__bytes.sum.peak_sustained x elapsed command cycles) x 100",
        |i| dram_bytes_share(i, "bytes_read"),
    ),
    (
        "dram__bytes_write.sum.pct_of_peak_sustained_elapsed",
        "%",
        "channel",
        "Bytes written as a share of what the buses could move.",
        "sum of bytes_written / (dram__bytes.sum.peak_sustained x elapsed command cycles) x 100",
        |i| dram_bytes_share(i, "bytes_written"),
    ),
    (
        "dram__bytes.sum.peak_sustained",
        "B/cycle",
        "gpu",
        "Bytes that the buses of all memory channels can move in a command cycle.",
        "hbm.channels x hbm.bus_bytes_per_command_cycle",
        |i| Value::Number(dram_peak(i)),
    ),
];
