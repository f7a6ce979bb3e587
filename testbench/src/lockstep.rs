//! Compares the machine with the reference: after the same launches, memory must have the same bytes.
//!
//! The two do not run side by side. The reference runs all launches first, on a copy of the memory.
//!
//! ```no_run
//! use warpwave::bench::{Bench, Options};
//! use warpwave::lockstep;
//! use warpwave::scenario::builtin;
//! use warpwave_components::preset;
//! let scenario = builtin::load("saxpy").unwrap();
//! let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
//! let reference = lockstep::reference(&bench, u64::MAX).unwrap();
//! bench.run(Options { threads: 1, max_cycles: None }, &mut |_| true);
//! assert_eq!(lockstep::difference(&bench, &reference), None);
//! ```

pub mod race_cycles;

use std::fmt;
use std::sync::Arc;

use warpwave_components::config::GpuConfig;
use warpwave_components::storage::Storage;
use warpwave_isa::program::Program;

use crate::bench::{self, Bench, BenchError};
use crate::host::{self, Placement, Region, steps};
use crate::reference::{self, Checks, Findings, Memory, ReferenceError, Until};
use crate::scenario::dtype::{Dtype, Number};
use crate::scenario::{Buffer, Expect, Scenario};

/// The first element of a buffer with a wrong value.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The buffer.
    pub buffer: String,
    /// Index of the element, in row-major order.
    pub index: u64,
    /// The value in the buffer.
    pub found: Number,
    /// The correct value.
    pub want: Number,
    /// Number of elements with a wrong value.
    pub n_different: u64,
    /// Number of elements that are compared.
    pub n: u64,
    /// Index of the launch after which the values were compared. `None`: after the last launch.
    pub after: Option<usize>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            buffer,
            index,
            found,
            want,
            n_different,
            n,
            after,
        } = self;
        write!(
            f,
            "{buffer}[{index}] is {found}, not {want}; {n_different} of {n} elements differ"
        )?;
        match after {
            Some(launch) => write!(f, " after launch {launch}"),
            None => Ok(()),
        }
    }
}

/// Compares the bytes `found` in a buffer with its expectation.
///
/// ```
/// use warpwave::lockstep::compare;
/// use warpwave::scenario::dtype::Dtype;
/// use warpwave::scenario::Expect;
/// let want = Expect { bytes: vec![1, 2, 3], rtol: 0.0, atol: 1.0 };
/// assert_eq!(compare("b", Dtype::U8, &[2, 1, 3], &want), None);
/// let difference = compare("b", Dtype::U8, &[1, 4, 9], &want).unwrap();
/// assert_eq!(difference.to_string(), "b[1] is 4, not 2; 2 of 3 elements differ");
/// ```
pub fn compare(buffer: &str, dtype: Dtype, found: &[u8], want: &Expect) -> Option<Difference> {
    // The common case: equal bytes need no conversion of elements.
    if found == want.bytes {
        return None;
    }
    let pairs = || {
        found
            .chunks_exact(dtype.bytes())
            .zip(want.bytes.chunks_exact(dtype.bytes()))
    };
    // Bits first: an equal element agrees, even one that is NaN.
    let differs = |(found, wanted): (&[u8], &[u8])| found != wanted && !agree(dtype, found, wanted, want);
    let index = pairs().position(differs)?;
    let (first_found, first_want) = pairs().nth(index).expect("just found");
    Some(Difference {
        buffer: buffer.to_owned(),
        index: index as u64,
        found: dtype.read(first_found),
        want: dtype.read(first_want),
        n_different: pairs().filter(|&pair| differs(pair)).count() as u64,
        n: (found.len() / dtype.bytes()) as u64,
        after: None,
    })
}

/// True if two elements with different bits agree within the tolerances.
fn agree(dtype: Dtype, found: &[u8], wanted: &[u8], want: &Expect) -> bool {
    let is_exact = want.rtol == 0.0 && want.atol == 0.0;
    let within = |distance: f64, wanted: f64| !is_exact && distance <= want.atol + want.rtol * wanted.abs();
    match (dtype.read(found), dtype.read(wanted)) {
        // Differences of integers are exact, whatever their size.
        (Number::Int(found), Number::Int(wanted)) => within((found - wanted).unsigned_abs() as f64, wanted as f64),
        (found, wanted) => {
            let (found, wanted) = (found.value(), wanted.value());
            let are_finite = found.is_finite() && wanted.is_finite();
            // The payload of a NaN is free, also without a tolerance. Without one, -0 differs from +0 by its bits.
            found.is_nan() && wanted.is_nan()
                || are_finite && within((found - wanted).abs(), wanted)
                // Equal infinities: their difference is not a number.
                || !is_exact && found == wanted
        }
    }
}

/// Runs every launch of a bench on the reference, with a copy of its memory. Call it before [`Bench::run`].
///
/// # Errors
/// If a launch does not end in time, as `until` says: its index and the reason.
pub fn reference(bench: &Bench<'_>, until: impl Into<Until>) -> Result<Memory, (usize, ReferenceError)> {
    reference_with(bench, until.into(), |_, _| {})
}

/// Runs every launch as [`reference`] does. Calls `after` with each launch and the memory that it leaves.
pub(crate) fn reference_with(
    bench: &Bench<'_>,
    until: Until,
    mut after: impl FnMut(usize, &Memory),
) -> Result<Memory, (usize, ReferenceError)> {
    let (scenario, placement) = bench.placed();
    let mut memory = Memory::of(bench.gpu().storage());
    for (index, grid) in bench.grids().iter().enumerate() {
        // Steps of the host belong before their launch: they see the memory that the launches before it left.
        steps::run(&scenario.launches[index].before, scenario, placement, &mut memory);
        reference::run(grid, &mut memory, until).map_err(|error| (index, error))?;
        after(index, &memory);
    }
    Ok(memory)
}

/// Findings of the race detector in one launch.
#[derive(Clone, Debug)]
pub struct CheckedLaunch {
    /// The program on the reference. It keeps every `bar.warp.sync`, so instruction numbers may differ from the machine's.
    pub program: Arc<Program>,
    /// The findings.
    pub findings: Findings,
    /// Why the check ended early, if it did.
    pub ended: Option<ReferenceError>,
    /// The named regions of global memory.
    pub regions: Arc<[Region]>,
}

/// Runs the launches of a scenario on the reference, and checks their accesses to shared and global memory with the race detectors.
///
/// A launch that fails, or does not end in time, ends the check. Its findings are included.
///
/// # Errors
/// If the scenario does not match its program or exceeds the GPU.
pub fn check_memory(
    scenario: &Scenario,
    config: &GpuConfig,
    checks: Checks,
    until: impl Into<Until>,
) -> Result<Vec<CheckedLaunch>, BenchError> {
    let until = until.into();
    let module = scenario
        .module(host::compiler_options(config))
        .map_err(BenchError::Ptx)?;
    let storage = Storage::new(config.memory_bytes);
    let mut placement = Placement::new(scenario, &module, &storage).map_err(BenchError::Host)?;
    let grids = bench::grids(scenario, &module, &mut placement, &storage, config)?;
    // After the placement: it has written the initial data, and the reference begins with a copy.
    let mut memory = Memory::of(&storage);
    let regions: Arc<[Region]> = placement.regions.clone().into();
    let mut all = Vec::new();
    for (grid, launch) in grids.into_iter().zip(&scenario.launches) {
        steps::run(&launch.before, scenario, &placement, &mut memory);
        let (outcome, mut findings) = reference::run_checked(&grid, &mut memory, until, checks);
        findings.join_copies(&grid.program);
        // The next launch would read memory that this one did not complete.
        let ended = outcome.err();
        let is_over = ended.is_some();
        all.push(CheckedLaunch {
            program: grid.program,
            findings,
            ended,
            regions: regions.clone(),
        });
        if is_over {
            break;
        }
    }
    Ok(all)
}

/// The first difference between the memories of machine and reference, over all data of the scenario.
///
/// A buffer with a tolerance in its `expect` is compared with that tolerance: the order of its float sums is open.
pub fn difference(bench: &Bench<'_>, reference: &Memory) -> Option<Difference> {
    bench.data().find_map(|(buffer, address)| {
        let found = bytes_of(buffer, address, bench.gpu().storage());
        let tolerance = buffer
            .expect
            .as_ref()
            .map_or((0.0, 0.0), |expect| (expect.rtol, expect.atol));
        let want = Expect {
            bytes: reference
                .get(address, found.len())
                .expect("the buffer is allocated")
                .to_vec(),
            rtol: tolerance.0,
            atol: tolerance.1,
        };
        compare(&buffer.name, buffer.layout.dtype, &found, &want)
    })
}

/// The bytes of a buffer in device memory.
pub fn bytes_of(buffer: &Buffer, address: u64, storage: &Storage) -> Vec<u8> {
    let mut bytes = vec![0; buffer.layout.bytes() as usize];
    storage.read(address, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(dtype: Dtype, found: &[u8], want: &[u8], [rtol, atol]: [f64; 2]) -> bool {
        let bytes = want.to_vec();
        compare("b", dtype, found, &Expect { bytes, rtol, atol }).is_none()
    }

    #[test]
    fn infinity_agrees_with_itself_alone_within_any_tolerance() {
        let agrees = |found: f32, want: f32| agrees(Dtype::F32, &found.to_le_bytes(), &want.to_le_bytes(), [0.5, 1e38]);
        assert!(agrees(f32::INFINITY, f32::INFINITY));
        for other in [0.0, 1.0, f32::MAX, f32::NEG_INFINITY, f32::NAN] {
            assert!(!agrees(other, f32::INFINITY), "{other} is not infinite");
            assert!(!agrees(f32::INFINITY, other), "infinity is not {other}");
        }
    }

    #[test]
    fn wide_integers_are_compared_without_rounding() {
        let agrees =
            |found: i64, want: i64, atol| agrees(Dtype::I64, &found.to_le_bytes(), &want.to_le_bytes(), [0.0, atol]);
        let large = 1 << 60;
        assert!(agrees(large + 2, large, 2.0));
        assert!(!agrees(large + 2, large, 1.0));
        assert!(!agrees(i64::MAX, i64::MIN, 1e18));
    }
}
