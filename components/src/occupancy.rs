//! Occupancy of an SM: resident CTAs and warps of a launch, and the resource that limits them.
//!
//! [`occupancy`] takes the threads, registers and shared memory of a CTA. It also returns the shared-memory carve-out that the driver
//! picks. The rules are those of the vendor's occupancy calculator (`occ_header` in [`crate::preset::source_titles`]):
//!
//! | resource | CTAs per SM, with W = ceil(threads / 32) |
//! |---|---|
//! | warps | floor(max warps / W) |
//! | CTA slots | max CTAs |
//! | shared memory | floor(carve-out / allocated bytes); no limit when 0 bytes are allocated |
//! | registers | floor(warps that fit a part of the register file x parts / W); no limit without registers |
//!
//! ```
//! use warpwave_components::{occupancy, preset};
//!
//! let v100 = preset::load("v100-sxm2", &[]).unwrap().config;
//! let found = occupancy::occupancy(&v100, 256, 64, 0).unwrap();
//! assert_eq!((found.blocks, found.warps, found.percent), (4, 32, 50.0));
//! assert_eq!(found.limiter, occupancy::Limiter::Registers);
//! ```

use std::fmt;

use thiserror::Error;

use crate::config::GpuConfig;

/// Occupancy of one SM by a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    /// Resident CTAs.
    pub blocks: u32,
    /// Resident warps.
    pub warps: u32,
    /// Resident warps in per cent of the SM's warp slots.
    pub percent: f64,
    /// The resource that runs out first. Among equals, the first in the order of [`Limiter`].
    pub limiter: Limiter,
    /// CTAs that each resource alone allows.
    pub allowed: Allowed,
    /// Shared-memory carve-out of the unified array, bytes.
    pub carveout: u32,
}

/// CTAs that each resource alone allows on one SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// By warps.
    pub warps: u32,
    /// By CTA slots.
    pub blocks: u32,
    /// By shared memory at the largest carve-out. `None` if the CTA is allocated no shared memory.
    pub shared: Option<u32>,
    /// By registers. `None` if the CTA uses no register.
    pub registers: Option<u32>,
}

/// A resource of an SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// Resident warps.
    Warps,
    /// CTA slots.
    Blocks,
    /// Shared memory.
    SharedMemory,
    /// Registers.
    Registers,
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warps => "warps",
            Self::Blocks => "block slots",
            Self::SharedMemory => "shared memory",
            Self::Registers => "registers",
        })
    }
}

/// Reason why not even one CTA fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OccupancyError {
    /// A CTA without threads.
    #[error("a block of 0 threads cannot be launched")]
    NoThreads,
    /// A need above its limit.
    #[error("{resource}: a {owner} needs {need}{unit}, the limit is {limit}")]
    Exceeds {
        /// The resource, such as "registers".
        resource: &'static str,
        /// Owner of the resource: "block" or "thread".
        owner: &'static str,
        /// Amount that the owner needs.
        need: u64,
        /// Text after the need, such as " bytes".
        unit: &'static str,
        /// Maximum that the owner can have.
        limit: u32,
    },
}

/// Occupancy of one SM by CTAs of `block_threads` threads, `regs_per_thread` registers per thread, and `shared_bytes` of static and dynamic
/// shared memory.
///
/// # Errors
///
/// The first limit that a single CTA exceeds.
pub fn occupancy(
    config: &GpuConfig,
    block_threads: u32,
    regs_per_thread: u32,
    shared_bytes: u32,
) -> Result<Occupancy, OccupancyError> {
    let limits = &config.limits;
    check_launch(config, block_threads, regs_per_thread, shared_bytes)?;
    let warps = block_threads.div_ceil(limits.warp_size);
    let shared = shared_per_block(config, shared_bytes);
    let largest = limits.shared_carveouts.last().copied().unwrap_or(0);
    let allowed = Allowed {
        warps: limits.max_warps_per_sm / warps,
        blocks: limits.max_blocks_per_sm,
        // `None` for a division by 0: without shared memory there is no limit.
        shared: largest.checked_div(shared),
        registers: (regs_per_thread > 0).then(|| blocks_by_registers(config, warps, regs_per_thread)),
    };
    let (blocks, limiter) = allowed.least();
    Ok(Occupancy {
        blocks,
        warps: blocks * warps,
        percent: f64::from(blocks * warps) * 100.0 / f64::from(limits.max_warps_per_sm),
        limiter,
        allowed,
        carveout: carveout(config, blocks * shared),
    })
}

impl Allowed {
    /// CTAs that all resources allow, and the limiter.
    fn least(&self) -> (u32, Limiter) {
        let ranked = [
            (Some(self.warps), Limiter::Warps),
            (Some(self.blocks), Limiter::Blocks),
            (self.shared, Limiter::SharedMemory),
            (self.registers, Limiter::Registers),
        ];
        let some = ranked
            .into_iter()
            .filter_map(|(blocks, limiter)| Some((blocks?, limiter)));
        // `min_by_key` returns the first of equals, so the order above ranks the limiters.
        some.min_by_key(|(blocks, _)| *blocks)
            .expect("warps and CTA slots always limit")
    }
}

fn check_launch(config: &GpuConfig, threads: u32, registers: u32, shared: u32) -> Result<(), OccupancyError> {
    let limits = &config.limits;
    if threads == 0 {
        return Err(OccupancyError::NoThreads);
    }
    let check = |resource, owner, need: u64, unit, limit: u32| match need <= limit.into() {
        true => Ok(()),
        false => Err(OccupancyError::Exceeds {
            resource,
            owner,
            need,
            unit,
            limit,
        }),
    };
    check("threads", "block", threads.into(), "", limits.max_threads_per_block)?;
    check(
        "registers",
        "thread",
        registers.into(),
        "",
        limits.max_registers_per_thread,
    )?;
    let warps = threads
        .div_ceil(limits.warp_size)
        .next_multiple_of(limits.warp_allocation_granularity);
    // Whole groups of warps get registers, also for warps that the CTA does not have.
    let allocated = u64::from(registers_per_warp(config, registers)) * u64::from(warps);
    check(
        "registers",
        "block",
        allocated,
        " as allocated",
        limits.registers_per_block,
    )?;
    check(
        "shared memory",
        "block",
        shared.into(),
        " bytes",
        limits.shared_per_block_max,
    )
}

/// Registers allocated to a warp with `regs_per_thread` registers per lane.
pub fn registers_per_warp(config: &GpuConfig, regs_per_thread: u32) -> u32 {
    let limits = &config.limits;
    // On Fermi the allocation unit is twice as large for these counts (`occ_header`).
    let doubled = config.cc_major == 2 && matches!(regs_per_thread, 21 | 22 | 29 | 30 | 37 | 38 | 45 | 46);
    let unit = limits.register_unit.saturating_mul(if doubled { 2 } else { 1 });
    (regs_per_thread * limits.warp_size).next_multiple_of(unit)
}

/// Bytes of shared memory allocated to a CTA with `shared_bytes` of static and dynamic shared memory.
pub fn shared_per_block(config: &GpuConfig, shared_bytes: u32) -> u32 {
    let limits = &config.limits;
    // The driver keeps some bytes of each CTA for itself on Ampere and later.
    (shared_bytes + limits.shared_reserved_per_block).next_multiple_of(limits.shared_unit)
}

/// Carve-out that the driver picks for `bytes` of shared memory on one SM. From Volta on: the smallest that fits. Before: the largest.
fn carveout(config: &GpuConfig, bytes: u32) -> u32 {
    let carveouts = &config.limits.shared_carveouts;
    let fixed = config.cc_major < 7;
    let fitting = carveouts.iter().find(|&&carveout| !fixed && carveout >= bytes);
    fitting.or(carveouts.last()).copied().unwrap_or(0)
}

fn blocks_by_registers(config: &GpuConfig, warps: u32, regs_per_thread: u32) -> u32 {
    let per_warp = registers_per_warp(config, regs_per_thread);
    // A warp's registers must be in one part, so each part is rounded down on its own.
    let in_parts = |parts: u32| config.limits.registers_per_sm / parts / per_warp * parts / warps;
    let parts = config.limits.warp_allocation_granularity;
    match (config.cc_major, config.cc_minor) {
        // The vendor's calculator evaluates GP100 a second time, with four parts.
        (6, 0) => in_parts(parts).min(in_parts(4)),
        _ => in_parts(parts),
    }
}
