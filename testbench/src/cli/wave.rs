//! The waveform of a run, where one is asked for.

use std::io::Write;

use warpwave::bench::Bench;
use warpwave::scenario::Scenario;
use warpwave_hw::time::Cycle;
use warpwave_waveforms::error::WaveError;
use warpwave_waveforms::file::About;
use warpwave_waveforms::select::Selection;
use warpwave_waveforms::waveform::{Summary, Waveform};

use super::args;
use super::failure::Failure;

/// A waveform in the making, or none.
pub struct Wave {
    waveform: Option<Waveform>,
    error: Option<WaveError>,
}

impl Wave {
    /// Begins to watch the machine, if `--vcd` is given.
    pub fn begin(args: &args::Run, scenario: &Scenario, bench: &mut Bench<'_>) -> Result<Self, Failure> {
        let Some(file) = &args.vcd else {
            return Ok(Wave {
                waveform: None,
                error: None,
            });
        };
        let selection = Selection::new(&args.trace, &args.trace_cycles).map_err(failure)?;
        let config = bench.gpu().config();
        let run = vec![format!("{} on {}", scenario.name, config.name)];
        let about = About::new(config.clocks.core_khz.into(), run);
        let waveform = Waveform::create(file, &selection, &about, bench.gpu_mut().clock_mut());
        Ok(Wave {
            waveform: Some(waveform.map_err(failure)?),
            error: None,
        })
    }

    /// Takes what was recorded before `now`; false when it cannot be written.
    pub fn collect(&mut self, now: Cycle) -> bool {
        let result = self.waveform.as_mut().map_or(Ok(()), |waveform| waveform.collect(now));
        self.error = result.err();
        self.error.is_none()
    }

    /// Ends the file.
    pub fn finish(self, now: Cycle) -> Result<(), Failure> {
        if let Some(error) = self.error {
            return Err(failure(error));
        }
        let Some(waveform) = self.waveform else {
            return Ok(());
        };
        let Summary { reached, .. } = waveform.finish(now).map_err(failure)?;
        if !reached {
            let _ = writeln!(
                std::io::stderr(),
                "note: the waveform is empty: the run ended in cycle {now}, before the cycles of --trace-cycles"
            );
        }
        Ok(())
    }
}

fn failure(error: WaveError) -> Failure {
    Failure::input(error)
}
