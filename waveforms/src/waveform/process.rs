//! Processes the recorded changes, cycle by cycle: derives signals, finds markers, checks the trigger, and writes the outputs.
//!
//! A cycle is processed if a value changes in it. It is also processed if a derived signal, a link, a scheduled signal or the trigger is
//! due.

use warpwave_hw::time::Cycle;

use super::Waveform;
use crate::error::WaveError;
use crate::recorder::Change;

impl Waveform {
    /// Reads all changes before cycle `now` and processes them.
    pub(super) fn process(&mut self) -> Result<(), WaveError> {
        self.read_buffers();
        self.process_cycles()
    }

    /// Reads the buffers of the tiles. Begins when the initial values of all tiles are known.
    pub(super) fn read_buffers(&mut self) {
        self.links.refill();
        // Without recorded components there are only links, and no initial values to wait for.
        let is_due = self.merge.is_empty() && self.now > self.recorded.start;
        match self.merge.refill(&mut self.values) || is_due {
            _ if self.begun => {}
            true => self.begin(),
            false => self.links.skip_to(self.now),
        }
    }

    /// Processes all cycles before `now` in which a value changes or the trigger may fire.
    pub(super) fn process_cycles(&mut self) -> Result<(), WaveError> {
        if !self.begun {
            return Ok(());
        }
        loop {
            // The next cycle that needs work without a recorded change.
            let timed = (self.derived.next())
                .min(self.links.next())
                .min(self.schedule.next())
                .min(self.next_trigger_check());
            let timed = if timed < self.now.min(self.recorded.end) {
                timed
            } else {
                Cycle::NEVER
            };
            match self.merge.next().min(timed) {
                // Some tile has not run this cycle.
                cycle if cycle >= self.now => return Ok(()),
                cycle => self.process_cycle(cycle)?,
            }
        }
    }

    /// The next cycle in which the outputs may begin without a change. Never, once they have begun.
    fn next_trigger_check(&self) -> Cycle {
        match (&self.trigger, self.first_shown) {
            (Some(trigger), None) => trigger.next().max(self.selection.window().start),
            (None, None) => self.selection.window().start,
            _ => Cycle::NEVER,
        }
    }

    /// Begins the recording with the initial values.
    fn begin(&mut self) {
        self.begun = true;
        self.links.begin(self.recorded.start, &mut self.values);
        self.derived.begin(&mut self.values);
        self.schedule.begin(self.recorded.start, &mut self.values);
        if let Some(trigger) = &mut self.trigger {
            trigger.begin(self.recorded.start, &self.values);
        }
    }

    /// Processes the changes of one cycle: derives signals, finds markers, records and writes.
    fn process_cycle(&mut self, now: Cycle) -> Result<(), WaveError> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        // In the order of signal indices, as a sink requires: components, links, derived signals, scheduled signals.
        self.merge.take(now, &mut changes);
        self.links.take(now, &mut changes);
        // Once the outputs have begun, only derived signals and the flight recorder read values.
        let keeps_all = self.first_shown.is_none() || self.flight.is_some();
        for &(signal, value) in &changes {
            if self.is_read[signal as usize] {
                self.markers.on_change(now, signal, value);
                self.derived.on_change(now, signal, self.values[signal as usize], value);
                if !keeps_all {
                    self.values[signal as usize] = value;
                }
            }
        }
        self.derived.take(now, &mut changes);
        self.schedule.take(now, &mut changes);
        // Before `values` change: a block of the flight recorder begins with the values before its first cycle.
        if let Some(flight) = &mut self.flight {
            flight.record(now, &changes, &self.values);
        }
        if keeps_all {
            for &(signal, value) in &changes {
                self.values[signal as usize] = value;
            }
        }
        // After `values` have changed: the dump begins with the values that this cycle ends with.
        let result = match self.first_shown {
            None => self.begin_outputs(now, &changes),
            Some(_) if now < self.selection.window().end => self.write_changes(now, &changes),
            Some(_) => Ok(()),
        };
        self.changes = changes;
        result
    }

    /// Begins the outputs in this cycle if it is in the window and the trigger fires.
    fn begin_outputs(&mut self, now: Cycle, changes: &[Change]) -> Result<(), WaveError> {
        let fires = match &mut self.trigger {
            Some(trigger) => {
                for &(signal, value) in changes {
                    trigger.on_change(now, signal, value);
                }
                trigger.fires(now, &self.values)
            }
            None => true,
        };
        if !fires || !self.selection.window().contains(&now) {
            return Ok(());
        }
        self.first_shown = Some(now);
        self.last_written = now;
        // Taken out for the call, because `each_output` borrows all of the waveform.
        let values = std::mem::take(&mut self.values);
        let result = self.each_output(|sink| sink.begin(now.0, &values));
        self.values = values;
        result
    }

    /// Writes the changes of one cycle, unless the outputs have ended at the limit or do so now.
    fn write_changes(&mut self, now: Cycle, changes: &[Change]) -> Result<(), WaveError> {
        if self.limited_at.is_some() {
            return Ok(());
        }
        if self
            .outputs
            .iter()
            .any(|output| output.sink.bytes_at(now.0) > self.limit)
        {
            return self.end_at_limit();
        }
        self.last_written = now;
        // Counted once, not per output.
        self.n_changes += changes.len() as u64;
        for output in &mut self.outputs {
            let result = output.sink.changes(now.0, changes);
            result.map_err(|error| WaveError::io(&output.path, error))?;
        }
        Ok(())
    }

    /// Ends the outputs behind the last cycle written, with a remark.
    fn end_at_limit(&mut self) -> Result<(), WaveError> {
        let end = self.last_written + 1;
        self.limited_at = Some(end);
        let remark = format!(
            "the recording ends before cycle {end}: its limit is {} bytes",
            self.limit
        );
        self.each_output(|sink| {
            sink.remark(&remark)?;
            sink.finish(end.0)
        })
    }
}
