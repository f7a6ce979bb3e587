//! The format of the log: simulated cycle, instance path, message, fields.
//!
//! The machine emits `tracing` events with the fields `cycle` (a `u64`) and `path`. [`CycleFormat`] writes these two first:
//!
//! ```text
//!      1042 gpu.gpc[0].sm[1].cta        cta 3 starts slot=0 warps=8
//!         - warpwave_ptx                PTX compiled entries=1 us=1260
//! ```
//!
//! An event before the clock runs has `-` for its cycle. An event without a path shows the module that emits it.
//! `testbench/docs/log.md` lists the events and shows how to filter them.
//!
//! ```
//! // A library user's own subscriber.
//! let log = tracing_subscriber::fmt().with_writer(std::io::stderr).event_format(warpwave::log::CycleFormat);
//! log.init();
//! ```

use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Formats an event as a line: cycle, path, message, other fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct CycleFormat;

impl<S, N> FormatEvent<S, N> for CycleFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = Line::default();
        event.record(&mut line);
        let cycle = line.cycle.map_or_else(|| "-".to_owned(), |cycle| cycle.to_string());
        // An event of the compiler or the testbench has no instance: its target is the module.
        let place = match line.path.as_str() {
            "" => event.metadata().target(),
            path => path,
        };
        // Fixed widths align the columns. A longer path shifts the rest of its line.
        writeln!(writer, "{cycle:>9} {place:<27} {}{}", line.message, line.fields)
    }
}

/// The fields of an event as text.
#[derive(Default)]
struct Line {
    cycle: Option<u64>,
    path: String,
    message: String,
    /// All other fields, each after a blank.
    fields: String,
}

impl Visit for Line {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            // Only a `u64` is a cycle. A field of this name with another type is printed with the rest.
            "cycle" => self.cycle = Some(value),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "path" => self.path.push_str(value),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // A write to a string cannot fail.
        let _ = match field.name() {
            "path" => write!(self.path, "{value:?}"),
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::{debug, info};
    use tracing_subscriber::fmt::MakeWriter;
    use warpwave_hw::clock::Clock;
    use warpwave_hw::link::stall::Stall;
    use warpwave_hw::link::{LinkConfig, link};
    use warpwave_hw::path::Path;
    use warpwave_hw::tile::TileBuilder;
    use warpwave_hw::time::Cycle;

    use super::*;

    /// A writer to memory.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Memory {
        type Writer = Memory;

        fn make_writer(&'a self) -> Memory {
            self.clone()
        }
    }

    /// The log of the events that `act` emits.
    fn log_of(act: impl FnOnce()) -> String {
        let memory = Memory::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(memory.clone())
            .event_format(CycleFormat)
            .finish();
        tracing::subscriber::with_default(subscriber, act);
        let bytes = memory.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn cycle_and_path_come_first_then_the_message_then_the_fields_in_order() {
        let path = Path::root("gpu").at("sm", 1).child("cta");
        let log = log_of(
            || debug!(cycle = 1042u64, path = %path, slot = 0, kernel = "k", block = ?[1, 2], "cta {} starts", 3),
        );
        assert_eq!(
            log,
            "     1042 gpu.sm[1].cta               cta 3 starts slot=0 kernel=\"k\" block=[1, 2]\n"
        );
        let log = log_of(|| info!(cycle = 7u64, path = "gpu", "launch 0 ends"));
        assert_eq!(log, "        7 gpu                         launch 0 ends\n");
    }

    #[test]
    fn event_without_cycle_and_path_shows_a_dash_and_its_module() {
        let log = log_of(|| info!(target: "warpwave_ptx", entries = 1, "PTX compiled"));
        assert_eq!(log, "        - warpwave_ptx                PTX compiled entries=1\n");
    }

    #[test]
    fn event_in_a_span_shows_its_own_fields_only() {
        let log = log_of(|| {
            let _span = tracing::info_span!("launch", cycle = 3u64, number = 0).entered();
            info!(cycle = 5u64, path = "gpu", "inside");
        });
        assert_eq!(log, "        5 gpu                         inside\n");
    }

    #[test]
    fn stall_of_a_link_is_logged_with_its_delay_and_no_stall_is_not() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let config = LinkConfig {
            path: Path::root("gpu").child("requests"),
            latency: 2,
            depth: 4,
        };
        let (mut out, mut input) = link(&config, &from, &to);
        // First outputs of SplitMix64 for seed 1234567: 6457827717110365317, then 3203168211198807973.
        let log = log_of(|| {
            out.send(Cycle(0), 'a');
            assert_eq!(input.recv(Cycle(2)), Some('a'));
            out.disturb(Stall::new(1234567, 9));
            out.send(Cycle(0), 'b');
            out.send(Cycle(1), 'c');
        });
        let expected = [(0, 6457827717110365317u64 % 10), (1, 3203168211198807973 % 10)]
            .map(|(cycle, delay)| format!("{cycle:>9} gpu.requests                stall injected cycles={delay}\n"));
        assert_eq!(log, expected.concat());
    }

    #[test]
    fn jump_of_the_clock_is_logged_with_both_cycles() {
        let mut clock = Clock::new(Vec::new());
        let log = log_of(|| {
            clock.skip_to(Cycle(64));
            clock.skip_to(Cycle(64));
        });
        assert_eq!(log, "        0 clock                       clock jumps to=64\n");
    }

    #[test]
    fn largest_cycle_and_a_long_path_are_written_whole() {
        let log = log_of(|| info!(cycle = u64::MAX, path = "gpu.gpc[10].sm[100].subcore[3].lsu", "x"));
        assert_eq!(log, "18446744073709551615 gpu.gpc[10].sm[100].subcore[3].lsu x\n");
    }
}
