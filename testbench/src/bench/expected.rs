//! Compares device memory with the checks of a scenario, after the launch that each names.

use super::Bench;
use crate::lockstep::{self, Difference};
use crate::reference::{Memory, ReferenceError, Until};
use crate::scenario::dtype::Dtype;
use crate::scenario::{Check, CheckedData, Expect};

/// The elements that the reference model gives, by index of the check. `None` for a check with elements of its own.
pub(super) type Wanted = Vec<Option<Vec<u8>>>;

impl Bench<'_> {
    /// Runs the reference model for the checks that take its elements. Call it before the first launch.
    ///
    /// The machine issues at most one instruction per scheduler and cycle, so a limit of cycles is one of instructions too.
    pub(super) fn wanted(&self, max_cycles: Option<u64>) -> Result<Wanted, (usize, ReferenceError)> {
        let checks = &self.scenario.checks;
        let mut wanted: Wanted = vec![None; checks.len()];
        // The reference runs only if a check needs it: it can take as long as the machine.
        if checks.iter().all(|check| check.want.is_some()) {
            return Ok(wanted);
        }
        let last = self.grids().len().saturating_sub(1);
        let config = self.gpu().config();
        let schedulers = u64::from(config.n_sms() * config.sm.subcores);
        let until = Until {
            limit: max_cycles.map_or(u64::MAX, |cycles| cycles.saturating_mul(schedulers)),
            is_interrupted: self.is_interrupted,
        };
        lockstep::reference_with(self, until, |launch, memory| {
            for (check, wanted) in checks.iter().zip(&mut wanted) {
                if check.want.is_none() && check.after.unwrap_or(last) == launch {
                    *wanted = self.in_reference(check, memory);
                }
            }
        })?;
        Ok(wanted)
    }

    /// The elements of a check in the reference's memory.
    fn in_reference(&self, check: &Check, memory: &Memory) -> Option<Vec<u8>> {
        let read = |address, to: &mut [u8]| {
            let found = memory.get(address, to.len());
            found.map(|found| to.copy_from_slice(found))
        };
        self.elements(check, read)
    }

    /// The elements of a check, one `read` for each contiguous part.
    fn elements(&self, check: &Check, mut read: impl FnMut(u64, &mut [u8]) -> Option<()>) -> Option<Vec<u8>> {
        let size = self.dtype(check).bytes();
        let first = self.address(check.data)?;
        let mut bytes = vec![0; check.view.n as usize * size];
        let Some(field) = &check.field else {
            read(first + check.view.first * size as u64, &mut bytes)?;
            return Some(bytes);
        };
        for (index, element) in (check.view.first..).zip(bytes.chunks_exact_mut(size)) {
            read(first + field.at(index), element)?;
        }
        Some(bytes)
    }

    fn dtype(&self, check: &Check) -> Dtype {
        let field = check.field.as_ref().map(|field| field.dtype);
        field.unwrap_or_else(|| self.scenario.checked(check.data).layout.dtype)
    }

    fn address(&self, data: CheckedData) -> Option<u64> {
        match data {
            CheckedData::Buffer(index) => Some(self.placement.buffers[index]),
            // A constant has no address, and no launch changes it.
            CheckedData::Global(index) => self.placement.globals[index],
        }
    }

    /// The first difference of each check after `launch`.
    pub(super) fn check_after(&self, launch: usize, n_launches: usize, wanted: &Wanted) -> Vec<Difference> {
        let is_due = |check: &Check| check.after.unwrap_or(n_launches - 1) == launch;
        let checks = self.scenario.checks.iter().zip(wanted);
        let due = checks.filter(|(check, _)| is_due(check));
        due.filter_map(|(check, wanted)| self.compare(check, wanted.as_ref()))
            .collect()
    }

    fn compare(&self, check: &Check, wanted: Option<&Vec<u8>>) -> Option<Difference> {
        let name = &self.scenario.checked(check.data).name;
        let name = check.field.as_ref().map_or(name, |field| &field.name);
        let dtype = self.dtype(check);
        let size = dtype.bytes();
        let storage = self.gpu.storage();
        let mut found = self.elements(check, |address, to| {
            storage.read(address, to);
            Some(())
        })?;
        let want = Expect {
            bytes: check.want.as_ref().or(wanted)?.clone(),
            rtol: check.rtol,
            atol: check.atol,
        };
        // A NaN takes the wanted bits, so that it agrees with them.
        if check.nan {
            let pairs = found.chunks_exact_mut(size).zip(want.bytes.chunks_exact(size));
            let is_nan = |element: &[u8]| dtype.read(element).value().is_nan();
            pairs
                .filter(|(found, _)| is_nan(found))
                .for_each(|(found, want)| found.copy_from_slice(want));
        }
        let mut difference = lockstep::compare(name, dtype, &found, &want)?;
        // The index counts within the view until here.
        difference.index += check.view.first;
        difference.after = check.after;
        Some(difference)
    }
}
