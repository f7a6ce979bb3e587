//! Cooperative launches: the workspace for barriers of the whole grid, and the check that all CTAs are resident together.
//!
//! A kernel finds the address of its workspace in `%envreg1` and `%envreg2`. Cooperative groups count arrivals in the word at byte 4.

use std::ops::Range;

use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::Occupancy;
use warpwave_components::proto::mem::LINE;
use warpwave_components::storage::Storage;

use super::memory::allocate;
use super::{HostError, Region, ResidencyFault};

/// Name of the memory of all workspaces.
const NAME: &str = "workspace of cooperative launches";

/// Bytes of a workspace: a line of its own, as no other data shares its word. Assumed.
const BYTES: u64 = LINE as u64;

/// Workspaces in device memory. Each launch has a new one, so its words are 0.
#[derive(Debug)]
pub struct Workspaces {
    unused: Range<u64>,
    batch: u64,
}

impl Workspaces {
    /// Workspaces with one allocation for each `batch` launches.
    pub(crate) fn new(batch: usize) -> Self {
        Workspaces {
            unused: 0..0,
            batch: batch as u64,
        }
    }

    /// The address of a workspace that no launch had before.
    pub(super) fn take(&mut self, storage: &Storage) -> Result<u64, HostError> {
        if self.unused.is_empty() {
            let bytes = self.batch * BYTES;
            let first = allocate(storage, NAME, bytes)?;
            self.unused = first..first + bytes;
        }
        let address = self.unused.start;
        self.unused.start += BYTES;
        Ok(address)
    }

    /// The last allocation, if there is one.
    pub(crate) fn region(&self) -> Option<Region> {
        let bytes = self.batch * BYTES;
        let first = self.unused.end.checked_sub(bytes).filter(|_| bytes > 0)?;
        Some(Region {
            name: NAME.to_owned(),
            first,
            bytes,
        })
    }
}

/// Compute capability of the first GPUs with cooperative launches: 6.0 (CUDA programming guide).
const MIN_CAPABILITY: u32 = 60;

/// Checks that the GPU has cooperative launches.
pub(super) fn check_capability(entry: &str, config: &GpuConfig) -> Result<(), HostError> {
    if config.compute_capability() >= MIN_CAPABILITY {
        return Ok(());
    }
    Err(HostError::NotCooperative {
        entry: entry.to_owned(),
        gpu: config.name.clone(),
        capability: (config.cc_major, config.cc_minor),
    })
}

/// Checks that the GPU holds all CTAs of a cooperative grid at once: each waits for all others.
pub(super) fn check_residency(
    grid: [u32; 3],
    cluster: [u32; 3],
    config: &GpuConfig,
    fit: &Occupancy,
) -> Result<(), ResidencyFault> {
    let need = grid.iter().map(|&n| u64::from(n)).product();
    let of_cluster = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
    // A cluster lies whole in one GPC, so each GPC may leave a rest of its slots empty.
    let slots = |gpc: &Range<usize>| gpc.len() as u64 * u64::from(fit.blocks);
    let limit = config
        .gpcs()
        .iter()
        .map(|gpc| slots(gpc) / of_cluster * of_cluster)
        .sum();
    if need <= limit {
        return Ok(());
    }
    Err(ResidencyFault {
        gpu: config.name.clone(),
        need,
        limit,
        per_sm: fit.blocks,
        limiter: fit.limiter,
        cluster: of_cluster,
    })
}
