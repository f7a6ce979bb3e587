//! The request of `--transaction`. A first run finds it, so that the waveform of the second run can show it from its issue on.

use warpwave::bench::Options;
use warpwave::report::transaction;
use warpwave::scenario::Scenario;
use warpwave::watch::requests::{begin, end};
use warpwave::watch::transaction::{TransactionFinder, Wanted};
use warpwave_components::config::GpuConfig;
use warpwave_hw::time::Cycle;
use warpwave_waveforms::scheduled::ScheduledSignal;
use warpwave_waveforms::select::Selection;

use super::args;
use super::failure::{Failure, tell};
use super::lab;
use super::progress::is_stopped;

/// Runs the scenario, finds the request, and returns its signals. Empty without the option.
pub fn find(
    args: &args::Run,
    scenario: &Scenario,
    config: &GpuConfig,
    options: Options,
) -> Result<Vec<ScheduledSignal>, Failure> {
    let Some(wanted) = args.transaction else {
        return Ok(Vec::new());
    };
    let none: [&str; 0] = [];
    let window = Selection::new(&none, &args.recorded_cycles())
        .map_err(Failure::input)?
        .window();
    // A machine of its own. The run that is recorded starts from the same state.
    let mut bench = lab::bench(scenario, config, args.ignore_target)?;
    if let Some(sample) = &args.sample {
        bench.sample(Cycle(sample.start)..Cycle(sample.end));
    }
    let mut finder = TransactionFinder::new(wanted, window);
    // Runs to the end, or to the interrupt. A stopped run has requests too.
    bench.run_with_events(options, &mut [&mut finder], &mut |_| !is_stopped());
    let found = finder.finish();
    let Some((id, request)) = found.first() else {
        return Err(Failure::input(match wanted {
            Wanted::Slowest => {
                "the run has no load that --transaction slowest could show; name a store or an atomic by its request, as \
                 --hist DIR lists them in latencies.txt"
            }
            Wanted::Id(_) => {
                "the run has no request that --transaction names; --hist DIR lists the slowest ones in latencies.txt"
            }
        }));
    };
    let others = match found.len() - 1 {
        0 => "no other request has the same fill".to_owned(),
        1 => "one other request has the same fill".to_owned(),
        n => format!("{n} other requests have the same fill"),
    };
    tell(&format!(
        "note: the group `transaction` shows request {id}, issued in cycle {} and complete in cycle {}; {others}",
        begin(request),
        end(request)
    ));
    Ok(transaction::signals(&found, bench.programs(), config))
}
