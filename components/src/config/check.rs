//! What a configuration must fulfil before cycle 0. Every fault is reported, not the first alone.

mod bounds;

use warpwave_isa::lane::WARP_SIZE;
use warpwave_isa::space::MAX_CLUSTER;

use super::{AROUND_CHANNEL, ConfigFault, GpuConfig, Limits, OUTSIDE_L1, PIPES, PipeTiming};
use crate::proto::header::MAX_OUTPUTS;
use crate::proto::mem::{LINE, SECTOR};

/// Issue, operand read, execute, write-back: no pipe answers faster.
const MIN_PIPE_LATENCY: u64 = 4;

/// Longest issue interval of a pipe, cycles.
const MAX_INTERVAL: u64 = 4096;

/// Banks of shared memory: constants of the model.
const SHARED_BANKS: u64 = 32;
const SHARED_BANK_BYTES: u64 = 4;

/// Tag banks of the L1 on every part with a published number.
const TAG_BANKS: u64 = 4;

const LINE_IS: &str = "the bytes of a line in this model";
const SECTOR_IS: &str = "the bytes of a sector in this model";

/// Far more SMs than any part has, and slices likewise: as many as headers of packets can name.
const MAX_SMS: u64 = MAX_OUTPUTS as u64;

impl GpuConfig {
    /// Every fault of this configuration; empty when the machine can be built from it.
    pub fn check(&self) -> Vec<ConfigFault> {
        let mut faults = Faults(bounds::zeros(self));
        faults.0.append(&mut bounds::excessive(self));
        // These make the sums below meaningless, and are faults enough.
        if faults.0.is_empty() {
            bounds::check_bounds(self, &mut faults);
            check_topology(self, &mut faults);
            check_limits(&self.limits, &mut faults);
            check_carveouts(self, &mut faults);
            check_sm(self, &mut faults);
            check_l1(self, &mut faults);
            check_l2(self, &mut faults);
            check_hbm(self, &mut faults);
            check_latencies(self, &mut faults);
            check_cluster(self, &mut faults);
        }
        faults.0
    }
}

/// The faults found so far, and the questions that find them.
struct Faults(Vec<ConfigFault>);

impl Faults {
    fn power_of_two(&mut self, key: &'static str, value: u32) {
        if !value.is_power_of_two() {
            self.0.push(ConfigFault::NotPowerOfTwo {
                key,
                value: value.into(),
            });
        }
    }

    fn multiple(&mut self, key: &'static str, value: impl Into<u64>, of: &str, unit: impl Into<u64>) {
        let (value, unit) = (value.into(), unit.into());
        if !value.is_multiple_of(unit) {
            self.0.push(ConfigFault::NotMultiple {
                key,
                value,
                of: of.to_owned(),
                unit,
            });
        }
    }

    fn divisor(&mut self, key: &'static str, value: u32, of: &'static str, whole: u32) {
        if !whole.is_multiple_of(value) {
            let (value, whole) = (value.into(), whole.into());
            self.0.push(ConfigFault::NotDivisor { key, value, of, whole });
        }
    }

    fn at_least(&mut self, key: &'static str, value: impl Into<u64>, least: impl Into<u64>, why: &'static str) {
        let (value, least) = (value.into(), least.into());
        if value < least {
            self.0.push(ConfigFault::TooSmall { key, value, least, why });
        }
    }

    /// The model has the number as a constant.
    fn constant(&mut self, key: &'static str, value: impl Into<u64>, constant: impl Into<u64>, why: &'static str) {
        let (value, constant) = (value.into(), constant.into());
        if value != constant {
            self.0.push(ConfigFault::Constant {
                key,
                value,
                constant,
                why,
            });
        }
    }

    fn at_most(&mut self, key: &'static str, value: impl Into<u64>, most: impl Into<u64>, why: &'static str) {
        let (value, most) = (value.into(), most.into());
        if value > most {
            self.0.push(ConfigFault::TooLarge { key, value, most, why });
        }
    }
}

fn check_topology(config: &GpuConfig, faults: &mut Faults) {
    let topology = &config.topology;
    let len = topology.tpcs_per_gpc.len() as u64;
    if len != u64::from(topology.gpcs) {
        faults.0.push(ConfigFault::WrongLength {
            key: "topology.tpcs_per_gpc",
            len,
            count_key: "topology.gpcs",
            count: topology.gpcs.into(),
        });
    }
    let total = topology.tpcs_per_gpc.iter().copied().map(u64::from).sum::<u64>();
    faults.at_most(
        "topology.tpcs_per_gpc",
        total.saturating_mul(topology.sms_per_tpc.into()),
        MAX_SMS,
        "counted in SMs (x `topology.sms_per_tpc`)",
    );
    let fewest = topology.tpcs_per_gpc.iter().copied().min().unwrap_or(1);
    faults.at_least("topology.tpcs_per_gpc", fewest, 1u32, "for a GPC without TPCs is none");
}

fn check_limits(limits: &Limits, faults: &mut Faults) {
    let warp = limits.warp_size;
    faults.constant("limits.warp_size", warp, WARP_SIZE as u64, "as on every part");
    faults.multiple(
        "limits.max_threads_per_block",
        limits.max_threads_per_block,
        "`limits.warp_size`",
        warp,
    );
    faults.at_most(
        "limits.max_threads_per_block",
        limits.max_threads_per_block,
        u64::from(warp) * u64::from(limits.max_warps_per_sm),
        "the threads of `limits.max_warps_per_sm` warps",
    );
    faults.power_of_two("limits.register_unit", limits.register_unit);
    faults.power_of_two("limits.shared_unit", limits.shared_unit);
    let unit = "`limits.shared_unit`";
    faults.multiple(
        "limits.shared_per_block_max",
        limits.shared_per_block_max,
        unit,
        limits.shared_unit,
    );
    faults.multiple(
        "limits.shared_reserved_per_block",
        limits.shared_reserved_per_block,
        unit,
        limits.shared_unit,
    );
    faults.multiple(
        "limits.registers_per_sm",
        limits.registers_per_sm,
        "`limits.register_unit` x `limits.warp_allocation_granularity`",
        u64::from(limits.register_unit) * u64::from(limits.warp_allocation_granularity),
    );
    faults.at_most(
        "limits.registers_per_block",
        limits.registers_per_block,
        limits.registers_per_sm,
        "all of `limits.registers_per_sm`",
    );
    faults.at_most(
        "limits.max_registers_per_thread",
        limits.max_registers_per_thread,
        255u32,
        "what an instruction can name",
    );
}

fn check_carveouts(config: &GpuConfig, faults: &mut Faults) {
    let limits = &config.limits;
    let carveouts = &limits.shared_carveouts;
    let ascending = carveouts.windows(2).all(|pair| pair[0] < pair[1]);
    let Some(&largest) = carveouts.last().filter(|_| ascending) else {
        return faults.0.push(ConfigFault::NotAscending {
            key: "limits.shared_carveouts",
            values: carveouts.clone(),
        });
    };
    faults.at_most(
        "limits.shared_carveouts",
        largest,
        config.sm.l1.size - 1,
        "so that the L1 keeps part of `sm.l1.size`",
    );
    faults.at_most(
        "limits.shared_per_block_max",
        limits.shared_per_block_max,
        largest.saturating_sub(limits.shared_reserved_per_block),
        "the largest of `limits.shared_carveouts` less `limits.shared_reserved_per_block`",
    );
    let set_bytes = u64::from(config.sm.l1.line) * u64::from(config.sm.l1.associativity);
    for &carveout in carveouts.iter().filter(|&&carveout| carveout < config.sm.l1.size) {
        let of = format!(
            "`sm.l1.line` x `sm.l1.associativity` beyond the carve-out {carveout} of `limits.shared_carveouts`"
        );
        if !u64::from(config.l1_bytes(carveout)).is_multiple_of(set_bytes) {
            faults.0.push(ConfigFault::NotMultiple {
                key: "sm.l1.size",
                value: config.sm.l1.size.into(),
                of,
                unit: set_bytes,
            });
        }
    }
}

fn check_sm(config: &GpuConfig, faults: &mut Faults) {
    let sm = &config.sm;
    faults.multiple(
        "limits.max_warps_per_sm",
        config.limits.max_warps_per_sm,
        "`sm.subcores`",
        sm.subcores,
    );
    let pipes = &sm.pipes;
    for preset in PIPES.iter().filter_map(|row| row.preset) {
        check_pipe(preset.keys, (preset.timing)(pipes), faults);
    }
    check_pipe(
        ["sm.pipes.imad_latency", "sm.pipes.imad_interval"],
        pipes.imad(),
        faults,
    );
    let why = "the stages from issue to write-back";
    faults.at_least(
        "sm.pipes.predicate_latency",
        pipes.predicate_latency,
        MIN_PIPE_LATENCY,
        why,
    );
    faults.at_least("sm.pipes.shuffle_latency", pipes.shuffle_latency, MIN_PIPE_LATENCY, why);
    faults.at_least("sm.shared.latency", sm.shared.latency, MIN_PIPE_LATENCY, why);
    faults.at_least(
        "sm.shared.atomic_latency",
        sm.shared.atomic_latency,
        MIN_PIPE_LATENCY,
        why,
    );
    faults.at_least("sm.constant.latency", sm.constant.latency, MIN_PIPE_LATENCY, why);
    faults.power_of_two("sm.register_banks", sm.register_banks);
    faults.at_least(
        "sm.collector_entries",
        sm.collector_entries,
        2u32,
        "one instruction in the collector and one on its way to it",
    );
    let why = "the banks of shared memory in this model";
    faults.constant("sm.shared.banks", sm.shared.banks, SHARED_BANKS, why);
    let why = "the bytes of a bank's word in this model";
    faults.constant("sm.shared.bank_bytes", sm.shared.bank_bytes, SHARED_BANK_BYTES, why);
}

/// An interval is 32 lanes over the width of the unit; both are powers of two.
fn check_pipe([latency, interval]: [&'static str; 2], pipe: PipeTiming, faults: &mut Faults) {
    faults.at_least(
        latency,
        pipe.latency,
        MIN_PIPE_LATENCY,
        "the stages from issue to write-back",
    );
    faults.power_of_two(interval, pipe.interval);
    faults.at_most(interval, pipe.interval, MAX_INTERVAL, "far more than any part has");
}

fn check_l1(config: &GpuConfig, faults: &mut Faults) {
    let l1 = &config.sm.l1;
    faults.constant("sm.l1.line", l1.line, LINE as u64, LINE_IS);
    faults.constant("sm.l1.sector", l1.sector, SECTOR as u64, SECTOR_IS);
    let why = "since the model looks up one line per cycle and does not use it";
    faults.constant("sm.l1.tag_banks", l1.tag_banks, TAG_BANKS, why);
    faults.multiple(
        "sm.l1.data_bytes_per_cycle",
        l1.data_bytes_per_cycle,
        "`sm.l1.sector`",
        l1.sector,
    );
    faults.at_least(
        "sm.l1.hit_latency",
        l1.hit_latency,
        OUTSIDE_L1 + 1,
        "the stages from issue through the L1 and back",
    );
}

fn check_l2(config: &GpuConfig, faults: &mut Faults) {
    let l2 = &config.l2;
    faults.constant("l2.line", l2.line, LINE as u64, LINE_IS);
    faults.constant("l2.sector", l2.sector, SECTOR as u64, SECTOR_IS);
    let why = "a fetch and the write-back of the line in its way";
    faults.at_least("l2.memory_queue", l2.memory_queue, 2u32, why);
    faults.divisor("l2.partitions", l2.partitions, "l2.slices", l2.slices);
    faults.at_most("l2.slices", l2.slices, MAX_OUTPUTS as u64, "far more than any part has");
    let way_bytes = (u64::from(l2.slices) * u64::from(l2.line)).saturating_mul(l2.associativity.into());
    faults.multiple(
        "l2.size",
        l2.size,
        "`l2.slices` x `l2.line` x `l2.associativity`",
        way_bytes,
    );
    if l2.partitions == 1 {
        faults.at_most("l2.far_latency", l2.far_latency, 0u32, "with one of `l2.partitions`");
    }
}

fn check_hbm(config: &GpuConfig, faults: &mut Faults) {
    let (hbm, t) = (&config.hbm, &config.hbm.timing);
    faults.power_of_two("hbm.row_bytes", hbm.row_bytes);
    faults.power_of_two("hbm.burst_bytes", hbm.burst_bytes);
    faults.multiple("hbm.banks", hbm.banks, "`hbm.bank_groups`", hbm.bank_groups);
    faults.multiple("hbm.row_bytes", hbm.row_bytes, "`hbm.burst_bytes`", hbm.burst_bytes);
    faults.multiple("hbm.burst_bytes", hbm.burst_bytes, "`l2.sector`", config.l2.sector);
    faults.multiple(
        "hbm.burst_bytes",
        hbm.burst_bytes,
        "`hbm.bus_bytes_per_command_cycle`",
        hbm.bus_bytes_per_command_cycle,
    );
    faults.at_most(
        "hbm.write_drain_start",
        hbm.write_drain_start,
        hbm.queue_depth,
        "all of `hbm.queue_depth`",
    );
    faults.at_most(
        "hbm.write_drain_stop",
        hbm.write_drain_stop,
        hbm.write_drain_start - 1,
        "fewer than `hbm.write_drain_start`",
    );
    faults.multiple("memory_bytes", config.memory_bytes, "`l2.line`", config.l2.line);
    let burst = hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle);
    faults.at_least(
        "hbm.timing.t_ccd_s",
        t.t_ccd_s,
        burst,
        "the cycles that a burst holds the data bus (`hbm.burst_bytes` over `hbm.bus_bytes_per_command_cycle`)",
    );
    faults.at_least("hbm.timing.t_ccd_l", t.t_ccd_l, t.t_ccd_s, "as `hbm.timing.t_ccd_s`");
    faults.at_least("hbm.timing.t_ras", t.t_ras, t.t_rcd, "as `hbm.timing.t_rcd`");
    faults.at_least(
        "hbm.timing.t_rc",
        t.t_rc,
        u64::from(t.t_ras) + u64::from(t.t_rp),
        "`hbm.timing.t_ras` + `hbm.timing.t_rp`",
    );
    faults.at_least(
        "hbm.timing.t_refi",
        t.t_refi,
        u64::from(t.t_rfc) + 1,
        "or the banks do nothing but refresh (`hbm.timing.t_rfc`)",
    );
}

/// A total must have room for the stages that sum to it.
fn check_latencies(config: &GpuConfig, faults: &mut Faults) {
    let (l2, hbm, clocks) = (&config.l2, &config.hbm, &config.clocks);
    let core_cycles = |cycles: u64, khz: u32| (cycles * u64::from(clocks.core_khz)).div_ceil(khz.into());
    let l2_cycles = 2 * u64::from(config.xbar.latency) + u64::from(l2.slice_latency);
    faults.at_least(
        "l2.hit_latency",
        l2.hit_latency,
        u64::from(config.sm.l1.hit_latency) + core_cycles(l2_cycles, clocks.l2_khz),
        "`sm.l1.hit_latency` + 2 x `xbar.latency` + `l2.slice_latency`, from `clocks.l2_khz` to `clocks.core_khz`",
    );
    let burst = hbm.burst_bytes.div_ceil(hbm.bus_bytes_per_command_cycle);
    let memory_cycles = [1, hbm.timing.t_rcd, hbm.timing.cl, burst, hbm.latency_extra];
    let memory_cycles = memory_cycles.into_iter().map(u64::from).sum();
    faults.at_least(
        "hbm.access_latency",
        hbm.access_latency,
        u64::from(l2.hit_latency + AROUND_CHANNEL) + core_cycles(memory_cycles, clocks.memory_khz),
        "`l2.hit_latency` + 3 + a command cycle + `hbm.timing.t_rcd` + `hbm.timing.cl` + a burst (`hbm.burst_bytes` over \
         `hbm.bus_bytes_per_command_cycle`) + `hbm.latency_extra`, from `clocks.memory_khz` to `clocks.core_khz`",
    );
}

/// Where there are clusters, their network has room for its stages.
fn check_cluster(config: &GpuConfig, faults: &mut Faults) {
    let cluster = &config.cluster;
    if cluster.max_ctas == 0 {
        return;
    }
    faults.at_most(
        "cluster.max_ctas",
        cluster.max_ctas,
        MAX_CLUSTER,
        "as addresses can name",
    );
    faults.at_least(
        "cluster.bytes_per_cycle",
        cluster.bytes_per_cycle,
        1u32,
        "to move at all",
    );
    faults.at_least(
        "cluster.load_latency",
        cluster.load_latency,
        u64::from(config.sm.shared.latency) + 4,
        "`sm.shared.latency` and four links",
    );
    faults.at_least("sm.tma.pieces", config.sm.tma.pieces, 1u32, "to copy at all");
    faults.at_least("cluster.barrier_latency", cluster.barrier_latency, 4u32, "two links");
}

#[cfg(test)]
mod tests;
