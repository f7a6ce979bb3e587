//! The rules that a configuration must keep before cycle 0. All faults are reported, not only the first.

mod bounds;

use std::fmt::Display;

use thiserror::Error;
use warpwave_isa::lane::WARP_SIZE;
use warpwave_isa::space::MAX_CLUSTER;

use super::{AROUND_CHANNEL, FarLines, GpuConfig, Hbm, OUTSIDE_L1, PIPES, PipeTiming, RefreshMode};
use crate::cache::replacement::MOST_WAYS;
use crate::proto::header::MAX_OUTPUTS;
use crate::proto::mem::{LINE, SECTOR};
use crate::proto::tag_banks::MAX_TAG_BANKS;

/// Least latency of a pipe, cycles: issue, operand read, execute, write-back.
const MIN_PIPE_LATENCY: u32 = 4;

/// Longest issue interval of a pipe, cycles.
const MAX_INTERVAL: u32 = 4096;

/// Banks of shared memory: constants of the model.
const SHARED_BANKS: u32 = 32;
const SHARED_BANK_BYTES: u32 = 4;

const PIPE_STAGES: &str = "the stages from issue to write-back";
const LINE_IS: &str = "the bytes of a line in this model";
const SECTOR_IS: &str = "the bytes of a sector in this model";
const BEYOND_ANY_PART: &str = "far more than any part has";

/// A rule that a configuration breaks, as a sentence that names the key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{key}` {found}: it must {rule}")]
pub struct ConfigFault {
    /// Dotted key.
    pub key: String,
    /// The value, after "is" or "has".
    pub found: String,
    /// The rule, after "it must": the bound, and where it comes from.
    pub rule: String,
}

impl GpuConfig {
    /// Every fault of this configuration; empty when the machine can be built from it.
    pub fn check(&self) -> Vec<ConfigFault> {
        let mut faults = Faults::default();
        bounds::check_zeros(self, &mut faults);
        bounds::check_excessive(self, &mut faults);
        // With zeros or excessive numbers the sums below have no meaning.
        if faults.0.is_empty() {
            bounds::check_bounds(self, &mut faults);
            check_topology(self, &mut faults);
            check_limits(self, &mut faults);
            check_carveouts(self, &mut faults);
            check_sm(self, &mut faults);
            check_constant(self, &mut faults);
            check_l1(self, &mut faults);
            check_l2(self, &mut faults);
            check_hbm(self, &mut faults);
            check_latencies(self, &mut faults);
            check_cluster(self, &mut faults);
        }
        faults.0
    }
}

/// Dotted key and value of a number of the configuration.
macro_rules! entry {
    ($config:ident.$first:ident$(.$rest:ident)*) => {
        (concat!(stringify!($first) $(, ".", stringify!($rest))*), u64::from($config.$first$(.$rest)*))
    };
}
use entry;

/// The faults found so far. Each method tests one rule of an entry: dotted key and value.
#[derive(Default)]
struct Faults(Vec<ConfigFault>);

impl Faults {
    fn add(&mut self, key: &str, found: impl Display, rule: impl Display) {
        let (key, found, rule) = (key.to_owned(), found.to_string(), rule.to_string());
        self.0.push(ConfigFault { key, found, rule });
    }

    fn require(&mut self, holds: bool, (key, value): (&str, u64), rule: impl Display) {
        if !holds {
            self.add(key, format_args!("is {value}"), rule);
        }
    }

    fn power_of_two(&mut self, entry: (&str, u64)) {
        self.require(entry.1.is_power_of_two(), entry, "be a power of two");
    }

    fn multiple(&mut self, entry: (&str, u64), of: &str, unit: impl Into<u64>) {
        let unit = unit.into();
        let rule = format_args!("be a multiple of {of} ({unit})");
        self.require(entry.1.is_multiple_of(unit), entry, rule);
    }

    fn at_least(&mut self, entry: (&str, u64), least: impl Into<u64>, why: &str) {
        let least = least.into();
        self.require(entry.1 >= least, entry, format_args!("be at least {least}, {why}"));
    }

    fn at_most(&mut self, entry: (&str, u64), most: impl Into<u64>, why: &str) {
        let most = most.into();
        self.require(entry.1 <= most, entry, format_args!("be at most {most}, {why}"));
    }

    /// The model has the number as a constant.
    fn constant(&mut self, entry: (&str, u64), constant: u32, why: &str) {
        self.require(entry.1 == constant.into(), entry, format_args!("be {constant}, {why}"));
    }
}

fn check_topology(config: &GpuConfig, faults: &mut Faults) {
    let topology = &config.topology;
    let key = "topology.tpcs_per_gpc";
    let len = topology.tpcs_per_gpc.len();
    if len != topology.gpcs as usize {
        let rule = format_args!("have {}, the value of `topology.gpcs`", topology.gpcs);
        faults.add(key, format_args!("has {len} entries"), rule);
    }
    let tpcs = topology.tpcs_per_gpc.iter().copied().map(u64::from);
    let sms = tpcs.clone().sum::<u64>().saturating_mul(topology.sms_per_tpc.into());
    // A packet's header names its SM.
    faults.at_most(
        (key, sms),
        MAX_OUTPUTS as u64,
        "counted in SMs (x `topology.sms_per_tpc`)",
    );
    let sms_of_gpc = tpcs
        .clone()
        .max()
        .unwrap_or(1)
        .saturating_mul(topology.sms_per_tpc.into());
    if sms <= MAX_OUTPUTS as u64 && config.cluster.max_ctas > 0 {
        // A packet's header names the LSU or the copy engine of an SM.
        let why = "counted in SMs of a GPC with clusters (x `topology.sms_per_tpc`)";
        faults.at_most((key, sms_of_gpc), MAX_OUTPUTS as u64 / 2, why);
    }
    faults.at_least((key, tpcs.min().unwrap_or(1)), 1u32, "as every GPC has a TPC");
    if sms > 1 {
        let why = "with more than one SM: an ideal memory belongs to its SM";
        faults.at_most(entry!(config.sm.ideal_memory_latency), 0u32, why);
    }
}

fn check_limits(config: &GpuConfig, faults: &mut Faults) {
    let limits = &config.limits;
    faults.constant(entry!(config.limits.warp_size), WARP_SIZE as u32, "as on every part");
    let threads = entry!(config.limits.max_threads_per_block);
    faults.multiple(threads, "`limits.warp_size`", limits.warp_size);
    let most = u64::from(limits.warp_size) * u64::from(limits.max_warps_per_sm);
    faults.at_most(threads, most, "the threads of `limits.max_warps_per_sm` warps");
    faults.power_of_two(entry!(config.limits.register_unit));
    faults.power_of_two(entry!(config.limits.shared_unit));
    let unit = "`limits.shared_unit`";
    faults.multiple(entry!(config.limits.shared_per_block_max), unit, limits.shared_unit);
    faults.multiple(
        entry!(config.limits.shared_reserved_per_block),
        unit,
        limits.shared_unit,
    );
    faults.multiple(
        entry!(config.limits.registers_per_sm),
        "`limits.register_unit` x `limits.warp_allocation_granularity`",
        u64::from(limits.register_unit) * u64::from(limits.warp_allocation_granularity),
    );
    let all = "all of `limits.registers_per_sm`";
    faults.at_most(entry!(config.limits.registers_per_block), limits.registers_per_sm, all);
    let why = "what an instruction can name";
    faults.at_most(entry!(config.limits.max_registers_per_thread), 255u32, why);
}

fn check_carveouts(config: &GpuConfig, faults: &mut Faults) {
    let (limits, l1) = (&config.limits, &config.sm.l1);
    let (key, carveouts) = ("limits.shared_carveouts", &limits.shared_carveouts);
    let ascending = carveouts.windows(2).all(|pair| pair[0] < pair[1]);
    let Some(&largest) = carveouts.last().filter(|_| ascending) else {
        let rule = "have at least one entry, in ascending order";
        return faults.add(key, format_args!("is {carveouts:?}"), rule);
    };
    faults.at_most(
        (key, largest.into()),
        l1.size - 1,
        "so that the L1 keeps part of `sm.l1.size`",
    );
    faults.at_most(
        entry!(config.limits.shared_per_block_max),
        largest.saturating_sub(limits.shared_reserved_per_block),
        "the largest of `limits.shared_carveouts` less `limits.shared_reserved_per_block`",
    );
    // The L1 has whole sets, or whole ways of all sets, beside each carve-out.
    let (part, name) = l1.carveout_part();
    // A larger carve-out has been refused above.
    for &carveout in carveouts.iter().filter(|&&carveout| carveout < l1.size) {
        let rule = format_args!(
            "be a multiple of {name} beyond the carve-out {carveout} of `limits.shared_carveouts` ({part})"
        );
        let is_whole = u64::from(config.l1_bytes(carveout)).is_multiple_of(part);
        faults.require(is_whole, entry!(config.sm.l1.size), rule);
    }
}

fn check_sm(config: &GpuConfig, faults: &mut Faults) {
    let sm = &config.sm;
    let unit = entry!(config.sm.lsu.load_unit);
    let rule = format_args!("be {SECTOR}, the bytes of a sector, or {LINE}, the bytes of a line");
    faults.require([SECTOR as u64, LINE as u64].contains(&unit.1), unit, rule);
    faults.multiple(entry!(config.limits.max_warps_per_sm), "`sm.subcores`", sm.subcores);
    for preset in PIPES.iter().filter_map(|row| row.preset) {
        check_pipe(preset.keys, (preset.timing)(&sm.pipes), faults);
    }
    check_pipe(
        ["sm.pipes.imad_latency", "sm.pipes.imad_interval"],
        sm.pipes.imad(),
        faults,
    );
    for interval in [
        entry!(config.sm.pipes.mma_interval),
        entry!(config.sm.pipes.mma_f16_interval),
        entry!(config.sm.pipes.mma_int_interval),
        entry!(config.sm.pipes.mma_fp64_interval),
    ] {
        faults.at_most(interval, MAX_INTERVAL, BEYOND_ANY_PART);
    }
    for latency in [
        entry!(config.sm.pipes.fmnmx_latency),
        entry!(config.sm.pipes.popc_latency),
        entry!(config.sm.pipes.match_latency),
        entry!(config.sm.pipes.fp64_compare_latency),
        entry!(config.sm.pipes.vote_latency),
        entry!(config.sm.pipes.guard_latency),
        entry!(config.sm.pipes.shuffle_latency),
        entry!(config.sm.shared.latency),
        entry!(config.sm.shared.atomic_latency),
        entry!(config.sm.constant.latency),
    ] {
        faults.at_least(latency, MIN_PIPE_LATENCY, PIPE_STAGES);
    }
    let why = "the cycles of `sm.fence.gpu_latency`";
    faults.at_most(entry!(config.sm.fence.gpu_exclusive), config.sm.fence.gpu_latency, why);
    faults.power_of_two(entry!(config.sm.register_banks));
    let why = "one instruction in the collector and one on its way to it";
    faults.at_least(entry!(config.sm.collector_entries), 2u32, why);
    let why = "the banks of shared memory in this model";
    faults.constant(entry!(config.sm.shared.banks), SHARED_BANKS, why);
    let why = "the bytes of a bank's word in this model";
    faults.constant(entry!(config.sm.shared.bank_bytes), SHARED_BANK_BYTES, why);
}

/// Least cycles of a miss: the link to the L1.5 and back, and the stages of a constant load outside.
const MIN_CONSTANT_MISS: u32 = 8;

/// Maximum number of constant loads that wait for lines. Each may need 32 lines.
const MAX_CONSTANT_LOADS: u32 = 64;

fn check_constant(config: &GpuConfig, faults: &mut Faults) {
    let constant = &config.sm.constant;
    faults.power_of_two(entry!(config.sm.constant.line));
    faults.power_of_two(entry!(config.sm.constant.l15_line));
    faults.at_least(entry!(config.sm.constant.line), 16u32, "the bytes of the widest load");
    let why = "the bytes of `sm.constant.line`";
    faults.at_least(entry!(config.sm.constant.l15_line), constant.line, why);
    for (size, ways, line) in [
        (
            entry!(config.sm.constant.immediate_size),
            entry!(config.sm.constant.immediate_ways),
            entry!(config.sm.constant.line),
        ),
        (
            entry!(config.sm.constant.indexed_size),
            entry!(config.sm.constant.indexed_ways),
            entry!(config.sm.constant.line),
        ),
        (
            entry!(config.sm.constant.l15_size),
            entry!(config.sm.constant.l15_ways),
            entry!(config.sm.constant.l15_line),
        ),
    ] {
        let set = format!("the bytes of a set, `{}` x `{}`", ways.0, line.0);
        faults.multiple(size, &set, (ways.1 * line.1).max(1));
    }
    for ways in [
        entry!(config.sm.constant.immediate_ways),
        entry!(config.sm.constant.indexed_ways),
        entry!(config.sm.constant.l15_ways),
    ] {
        faults.at_most(ways, MOST_WAYS as u64, "a limit of the simulator");
    }
    let loads = entry!(config.sm.constant.indexed_loads);
    faults.at_most(loads, MAX_CONSTANT_LOADS, "a limit of the simulator");
    let why = "the way to the L1.5 and back";
    faults.at_least(
        entry!(config.sm.constant.immediate_miss_latency),
        MIN_CONSTANT_MISS,
        why,
    );
    faults.at_least(entry!(config.sm.constant.l15_latency), MIN_CONSTANT_MISS, why);
    let why = "the cycles of a hit in the L1.5, `sm.constant.l15_latency`";
    faults.at_least(entry!(config.sm.constant.l2_latency), constant.l15_latency, why);
}

fn check_pipe([latency, interval]: [&'static str; 2], pipe: PipeTiming, faults: &mut Faults) {
    faults.at_least((latency, pipe.latency.into()), MIN_PIPE_LATENCY, PIPE_STAGES);
    // An interval is 32 lanes over the width of the unit. Both are powers of two.
    let interval = (interval, pipe.interval.into());
    faults.power_of_two(interval);
    faults.at_most(interval, MAX_INTERVAL, BEYOND_ANY_PART);
}

fn check_l1(config: &GpuConfig, faults: &mut Faults) {
    let l1 = &config.sm.l1;
    faults.constant(entry!(config.sm.l1.line), LINE as u32, LINE_IS);
    faults.constant(entry!(config.sm.l1.sector), SECTOR as u32, SECTOR_IS);
    faults.power_of_two(entry!(config.sm.l1.tag_banks));
    let why = "the banks that the hash of a line can name";
    faults.at_most(entry!(config.sm.l1.tag_banks), MAX_TAG_BANKS as u64, why);
    faults.multiple(entry!(config.sm.l1.data_bytes_per_cycle), "`sm.l1.sector`", l1.sector);
    let why = "the stages from issue through the L1 and back";
    faults.at_least(entry!(config.sm.l1.hit_latency), OUTSIDE_L1 + 1, why);
}

/// Fewest cycles of a crossing between the partitions of the L2: a link and a stage each way.
const SHORTEST_CROSSING: u32 = 4;

fn check_l2(config: &GpuConfig, faults: &mut Faults) {
    let l2 = &config.l2;
    faults.constant(entry!(config.l2.line), LINE as u32, LINE_IS);
    faults.constant(entry!(config.l2.sector), SECTOR as u32, SECTOR_IS);
    faults.power_of_two(entry!(config.l2.interleave_bytes));
    faults.at_least(entry!(config.l2.interleave_bytes), l2.line, "`l2.line`");
    let why = "a fetch and the write-back of its victim";
    faults.at_least(entry!(config.l2.memory_queue), 2u32, why);
    let rule = format_args!("divide `l2.slices` ({})", l2.slices);
    faults.require(
        l2.slices.is_multiple_of(l2.partitions),
        entry!(config.l2.partitions),
        rule,
    );
    // A packet's header names its slice.
    faults.at_most(entry!(config.l2.slices), MAX_OUTPUTS as u64, BEYOND_ANY_PART);
    let way_bytes = (u64::from(l2.slices) * u64::from(l2.line)).saturating_mul(l2.associativity.into());
    faults.multiple(
        entry!(config.l2.size),
        "`l2.slices` x `l2.line` x `l2.associativity`",
        way_bytes,
    );
    if l2.partitions == 1 {
        faults.at_most(entry!(config.l2.far_latency), 0u32, "with one of `l2.partitions`");
    }
    if l2.far_lines == FarLines::Copied {
        if l2.partitions != 2 {
            let rule = format_args!("be `at-home` with {} of `l2.partitions`: copies need 2", l2.partitions);
            faults.add("l2.far_lines", "is `copied`", rule);
        }
        let why = "the stages of a crossing with `l2.far_lines` `copied`";
        faults.at_least(entry!(config.l2.far_latency), SHORTEST_CROSSING, why);
    }
}

fn check_hbm(config: &GpuConfig, faults: &mut Faults) {
    let (hbm, t) = (&config.hbm, &config.hbm.timing);
    faults.power_of_two(entry!(config.hbm.row_bytes));
    faults.power_of_two(entry!(config.hbm.burst_bytes));
    faults.multiple(entry!(config.hbm.banks), "`hbm.bank_groups`", hbm.bank_groups);
    faults.multiple(entry!(config.hbm.row_bytes), "`hbm.burst_bytes`", hbm.burst_bytes);
    let burst_bytes = entry!(config.hbm.burst_bytes);
    faults.multiple(burst_bytes, "`l2.sector`", config.l2.sector);
    faults.multiple(
        burst_bytes,
        "`hbm.bus_bytes_per_command_cycle`",
        hbm.bus_bytes_per_command_cycle,
    );
    faults.at_most(
        entry!(config.hbm.write_drain_start),
        hbm.queue_depth,
        "all of `hbm.queue_depth`",
    );
    let why = "fewer than `hbm.write_drain_start`";
    // Not 0: `check_zeros` has passed.
    faults.at_most(entry!(config.hbm.write_drain_stop), hbm.write_drain_start - 1, why);
    faults.multiple(entry!(config.memory_bytes), "`l2.line`", config.l2.line);
    let burst = hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle);
    let why = "the cycles that a burst holds the data bus (`hbm.burst_bytes` over `hbm.bus_bytes_per_command_cycle`)";
    faults.at_least(entry!(config.hbm.timing.t_ccd_s), burst, why);
    faults.at_least(
        entry!(config.hbm.timing.t_ccd_l),
        t.t_ccd_s,
        "the value of `hbm.timing.t_ccd_s`",
    );
    faults.at_least(
        entry!(config.hbm.timing.t_ras),
        t.t_rcd,
        "the value of `hbm.timing.t_rcd`",
    );
    let least = u64::from(t.t_ras) + u64::from(t.t_rp);
    faults.at_least(
        entry!(config.hbm.timing.t_rc),
        least,
        "`hbm.timing.t_ras` + `hbm.timing.t_rp`",
    );
    check_refresh(hbm, burst, faults);
}

/// Requires time for a column command between two refreshes. A refresh can start late: it waits for the end of an open row.
fn check_refresh(hbm: &Hbm, burst: u32, faults: &mut Faults) {
    let t = &hbm.timing;
    let sum = |cycles: &[u32]| cycles.iter().copied().map(u64::from).sum::<u64>();
    // Each end of an open row, with the keys that make it late. Check bits can follow the last burst of a write.
    let row_ends = [
        (sum(&[t.t_rc]), "`hbm.timing.t_rc`"),
        (
            sum(&[t.wl, burst, burst, t.t_wr, t.t_rp]),
            "`hbm.timing.wl` + two bursts + `hbm.timing.t_wr` + `hbm.timing.t_rp`",
        ),
        (sum(&[t.t_rtp, t.t_rp]), "`hbm.timing.t_rtp` + `hbm.timing.t_rp`"),
    ];
    let (row_end, keys) = row_ends
        .into_iter()
        .max_by_key(|(end, _)| *end)
        .expect("there are three");
    let (busy, name) = match hbm.refresh {
        RefreshMode::AllBanks => (t.t_rfc, "t_rfc"),
        RefreshMode::SingleBank => (t.t_rfcsb, "t_rfcsb"),
    };
    let least = sum(&[busy, t.t_rcd, 1]) + row_end;
    let why = format!(
        "or every refresh delays the next one, and no request is served (`hbm.timing.{name}` + `hbm.timing.t_rcd` + 1 + {keys})"
    );
    faults.at_least(("hbm.timing.t_refi", t.t_refi.into()), least, &why);
    if hbm.refresh == RefreshMode::SingleBank {
        // One bank after the other: each waits for its row, for an activate and for the last refresh.
        let least = u64::from(hbm.banks) * (row_end + sum(&[t.t_rrd, t.t_rrefd]));
        let why = format!(
            "or not every bank is refreshed in time (`hbm.banks` x (`hbm.timing.t_rrd` + `hbm.timing.t_rrefd` + {keys}))"
        );
        faults.at_least(("hbm.timing.t_refi", t.t_refi.into()), least, &why);
    }
}

/// A latency in total is at least the sum of its stages.
fn check_latencies(config: &GpuConfig, faults: &mut Faults) {
    let (l2, hbm, clocks) = (&config.l2, &config.hbm, &config.clocks);
    // Rounded up here and down where the stages are built, so the stages always fit the total.
    let core_cycles = |cycles: u64, khz: u32| (cycles * u64::from(clocks.core_khz)).div_ceil(khz.into());
    let l2_cycles = 2 * u64::from(config.xbar.latency) + u64::from(l2.slice_latency);
    faults.at_least(
        entry!(config.l2.hit_latency),
        u64::from(config.sm.l1.hit_latency) + core_cycles(l2_cycles, clocks.l2_khz),
        "`sm.l1.hit_latency` + 2 x `xbar.latency` + `l2.slice_latency`, from `clocks.l2_khz` to `clocks.core_khz`",
    );
    let burst = hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle);
    let memory_cycles = [1, hbm.timing.t_rcd, hbm.timing.cl, burst, hbm.latency_extra];
    let memory_cycles = memory_cycles.into_iter().map(u64::from).sum();
    faults.at_least(
        entry!(config.hbm.access_latency),
        u64::from(l2.hit_latency + AROUND_CHANNEL) + core_cycles(memory_cycles, clocks.memory_khz),
        "`l2.hit_latency` + 3 + a command cycle + `hbm.timing.t_rcd` + `hbm.timing.cl` + a burst (`hbm.burst_bytes` over \
         `hbm.bus_bytes_per_command_cycle`) + `hbm.latency_extra`, from `clocks.memory_khz` to `clocks.core_khz`",
    );
}

/// Largest distance of an SM in a GPC. Half of it is on one link.
const MOST_DISTANCE: u32 = 40;

fn check_cluster(config: &GpuConfig, faults: &mut Faults) {
    // On a part without clusters the other numbers are not used.
    if config.cluster.max_ctas == 0 {
        return;
    }
    let why = "the ranks that a cluster address can name";
    faults.at_most(entry!(config.cluster.max_ctas), MAX_CLUSTER, why);
    faults.at_least(entry!(config.cluster.bytes_per_cycle), 1u32, "or no packet moves");
    faults.at_least(
        entry!(config.cluster.load_latency),
        u64::from(config.sm.shared.latency) + 4,
        "`sm.shared.latency` and four links",
    );
    let (key, distances) = ("cluster.sm_distances", &config.cluster.sm_distances);
    match distances.iter().max() {
        None => faults.add(key, format_args!("is []"), "have at least one entry"),
        Some(&most) => faults.at_most(
            (key, most.into()),
            MOST_DISTANCE,
            "so that a link is no longer than the longest",
        ),
    }
    faults.at_least(entry!(config.sm.tma.pieces), 1u32, "or nothing is copied");
    faults.at_least(entry!(config.cluster.barrier_latency), 4u32, "two links");
}

#[cfg(test)]
mod tests;
