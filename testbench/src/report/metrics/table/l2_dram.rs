//! Metrics of the memory path outside the SMs: crossbar, L2 slices, memory channels.

use warpwave_components::proto::mem;

use super::Row;
use super::memory::l1_share;
use crate::report::metrics::{Inputs, Value};

/// Bytes of a sector.
const SECTOR: f64 = mem::SECTOR as f64;

/// The time of the launch in cycles of a clock of `khz` kHz.
fn elapsed(i: &Inputs<'_>, khz: u32) -> f64 {
    i.cycles as f64 * f64::from(khz) / f64::from(i.config.clocks.core_khz)
}

/// Busy share of a block in per cent, mean over instances. `counter` counts busy cycles of a clock of `khz` kHz.
fn busy(i: &Inputs<'_>, block: &str, counter: &'static str, khz: u32) -> Value {
    i.mean(block, counter) / Value::Number(elapsed(i, khz)) * 100.0
}

fn l2_share(i: &Inputs<'_>) -> Value {
    // The stages of a slice work at the same time, so the busiest one is the limit.
    let stages = ["tag_cycles", "data_cycles", "response_cycles"];
    Value::greatest(stages.map(|stage| busy(i, "l2_slice", stage, i.config.clocks.l2_khz)))
}

fn dram_share(i: &Inputs<'_>) -> Value {
    busy(i, "channel", "bus_cycles", i.config.clocks.memory_khz)
}

/// Busy share of the outputs of the busier network. Requests have an output per slice, responses one per SM.
fn crossbar_share(i: &Inputs<'_>) -> Value {
    let cycles = elapsed(i, i.config.clocks.l2_khz);
    let networks = [("request", i.config.l2.slices), ("response", i.config.n_sms())];
    Value::greatest(
        networks.map(|(network, outputs)| {
            i.sum(network, "output_cycles") / Value::Number(cycles * f64::from(outputs)) * 100.0
        }),
    )
}

fn memory_share(i: &Inputs<'_>) -> Value {
    // The L1 counts over all SMs, and elapsed cycles include idle SMs.
    let sms = i.cycles() * f64::from(i.config.n_sms());
    Value::greatest([l1_share(i, sms), crossbar_share(i), l2_share(i), dram_share(i)])
}

fn l2_sectors(i: &Inputs<'_>) -> Value {
    // A slice counts reductions as atomics.
    let stores_and_atomics = i.sum("l2_slice", "store_sectors") + i.sum("l2_slice", "atomic_sectors");
    i.sum("l2_slice", "load_sectors") + stores_and_atomics
}

fn l2_hits(i: &Inputs<'_>) -> Value {
    let stores_and_atomics = i.sum("l2_slice", "store_sectors_hit") + i.sum("l2_slice", "atomic_sectors_hit");
    i.sum("l2_slice", "load_sectors_hit") + stores_and_atomics
}

pub(super) fn dram_bytes(i: &Inputs<'_>) -> Value {
    i.sum("channel", "bytes_read") + i.sum("channel", "bytes_written")
}

/// Peak bytes per command cycle over all memory channels.
fn dram_peak(i: &Inputs<'_>) -> f64 {
    f64::from(i.config.hbm.channels) * f64::from(i.config.hbm.bus_bytes_per_command_cycle)
}

fn dram_bytes_share(i: &Inputs<'_>, counter: &'static str) -> Value {
    // A peak is per command cycle, so the time is in command cycles too.
    let peak = dram_peak(i) * elapsed(i, i.config.clocks.memory_khz);
    i.sum("channel", counter) / Value::Number(peak) * 100.0
}

pub(super) const L2_AND_DRAM: &[Row] = &[
    (
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "l1, shared, request, response, l2_slice, channel",
        "Busy share of the memory path's busiest stage over the whole launch.",
        "greatest busy share of L1, shared memory, crossbar, L2 and memory channels in elapsed cycles",
        memory_share,
    ),
    (
        "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum",
        "sector",
        "l1",
        "Sectors that loads from global and local memory read from the L2 through the L1.",
        "sum of l2_sectors_read",
        |i| i.sum("l1", "l2_sectors_read"),
    ),
    (
        "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum",
        "sector",
        "l1",
        "Sectors that stores to global and local memory wrote to the L2 through the L1.",
        "sum of l2_sectors_written",
        |i| i.sum("l1", "l2_sectors_written"),
    ),
    (
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "l2_slice",
        "Busy share of the L2's busiest stage, mean over slices.",
        "greatest of tag_cycles, data_cycles and response_cycles / elapsed L2 cycles x 100",
        l2_share,
    ),
    (
        "lts__t_sectors.sum",
        "sector",
        "l2_slice",
        "Sectors accessed in the L2 by loads, stores and atomics.",
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
        "L2 hit rate of all accesses, by sectors.",
        "load, store and atomic sectors hit / lts__t_sectors.sum x 100",
        |i| l2_hits(i) / l2_sectors(i) * 100.0,
    ),
    (
        "lts__t_sector_op_read_hit_rate.pct",
        "%",
        "l2_slice",
        "L2 hit rate of loads, by sectors.",
        "sum of load_sectors_hit / sum of load_sectors x 100",
        |i| i.sum("l2_slice", "load_sectors_hit") / i.sum("l2_slice", "load_sectors") * 100.0,
    ),
    (
        "lts__t_sector_op_write_hit_rate.pct",
        "%",
        "l2_slice",
        "L2 hit rate of stores, by sectors: a store hits if its line is present.",
        "sum of store_sectors_hit / sum of store_sectors x 100",
        |i| i.sum("l2_slice", "store_sectors_hit") / i.sum("l2_slice", "store_sectors") * 100.0,
    ),
    (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "channel",
        "Busy share of a memory channel's data bus, mean over channels.",
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
        "Bytes written to device memory during the launch. Lines that stay dirty in the L2 are not among them.",
        "sum of bytes_written",
        |i| i.sum("channel", "bytes_written"),
    ),
    (
        "dram__bytes_write_after_launch.sum",
        "B",
        "channel",
        "Bytes of lines that the launch left dirty in the L2, written back after it. Profilers have no such metric.",
        "sum of bytes_flushed",
        |i| i.sum("channel", "bytes_flushed"),
    ),
    (
        "dram__sectors_read.sum",
        "sector",
        "channel",
        "Sectors read from device memory.",
        "sum of bytes_read / 32",
        |i| i.sum("channel", "bytes_read") / Value::Number(SECTOR),
    ),
    (
        "dram__sectors_write.sum",
        "sector",
        "channel",
        "Sectors written to device memory.",
        "sum of bytes_written / 32",
        |i| i.sum("channel", "bytes_written") / Value::Number(SECTOR),
    ),
    (
        "dram__bytes.sum.per_second",
        "B/s",
        "channel",
        "Achieved bandwidth of device memory, reads and writes.",
        "(bytes_read + bytes_written) / time of the launch",
        |i| dram_bytes(i) / Value::Number(i.cycles as f64 / (f64::from(i.config.clocks.core_khz) * 1e3)),
    ),
    (
        "dram__bytes_read.sum.pct_of_peak_sustained_elapsed",
        "%",
        "channel",
        "Achieved read bandwidth of device memory, in per cent of the peak.",
        "sum of bytes_read / (dram__bytes.sum.peak_sustained x elapsed command cycles) x 100",
        |i| dram_bytes_share(i, "bytes_read"),
    ),
    (
        "dram__bytes_write.sum.pct_of_peak_sustained_elapsed",
        "%",
        "channel",
        "Achieved write bandwidth of device memory, in per cent of the peak.",
        "sum of bytes_written / (dram__bytes.sum.peak_sustained x elapsed command cycles) x 100",
        |i| dram_bytes_share(i, "bytes_written"),
    ),
    (
        "dram__bytes.sum.peak_sustained",
        "B/cycle",
        "gpu",
        "Peak bytes per command cycle over the data buses of all memory channels.",
        "hbm.channels x hbm.bus_bytes_per_command_cycle",
        |i| Value::Number(dram_peak(i)),
    ),
];
