//! Waveform signals of a transaction: one memory request, and the requests with the same fill.
//!
//! | signal of `gpu.transaction.sm0#12` | value |
//! |---|---|
//! | `stage` | the stage of the request ([`STAGE_NAMES`]) |
//! | `instruction`, `subcore`, `warp`, `line` | the instruction, its warp slot, the address of the line |
//! | `merged_into` | the number of the request of this SM that sent the miss, if it is another one |
//! | `lsu`, `l1`, `request`, `l2_slice_N`, `channel_N`, `response`, `write_back` | the number of the request while it is in this unit |
//!
//! No signal has a value before the issue of the request and after its last stage.

use warpwave_components::config::GpuConfig;
use warpwave_components::proto::event::Request;
use warpwave_components::proto::mem::Stage;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::Program;
use warpwave_waveforms::scheduled::ScheduledSignal;
use warpwave_waveforms::signal::{Kind, Signal};
use warpwave_waveforms::view::layout::TRANSACTION;

use super::perfetto::units::Units;
use crate::watch::requests::{self, RequestId, STAGE_NAMES};

use std::sync::Arc;

/// Width of a request's number, in bits. Viewers show up to 32 bits as a decimal number.
const NUMBER_WIDTH: u32 = 32;

/// The signals of all requests of a transaction. `programs` has the program of each launch.
pub fn signals(
    transaction: &[(RequestId, Request)],
    programs: &[Arc<Program>],
    config: &GpuConfig,
) -> Vec<ScheduledSignal> {
    let units = Units::new(config);
    let all = transaction.iter().map(|(id, request)| {
        let builder = RequestSignals::new(*id, request);
        builder.build(&units, first_of(*id, request, transaction), programs)
    });
    all.flatten().collect()
}

/// The request of the same SM that sent the miss for `request`, if it is another one.
fn first_of(id: RequestId, request: &Request, transaction: &[(RequestId, Request)]) -> Option<u64> {
    let lookup = |request: &Request| request.stamps.0[Stage::L1 as usize];
    let shares = |other: &&(RequestId, Request)| {
        // One response fills the line for the miss and for all requests merged into it.
        other.0.sm == id.sm && other.1.stamps.at(Stage::Response) == request.stamps.at(Stage::Response)
    };
    let first = transaction
        .iter()
        .filter(shares)
        // The first lookup sent the miss.
        .min_by_key(|(id, request)| (lookup(request), *id));
    first.filter(|(first, _)| *first != id).map(|(first, _)| first.number)
}

/// The bits of a request's number that are shown.
fn shown(number: u64) -> u64 {
    number & u64::from(u32::MAX)
}

/// The signals of one request, in a scope of its own.
struct RequestSignals<'a> {
    id: RequestId,
    request: &'a Request,
    stages: Vec<(&'static str, Cycle, u64)>,
    signals: Vec<ScheduledSignal>,
}

impl<'a> RequestSignals<'a> {
    fn new(id: RequestId, request: &'a Request) -> Self {
        RequestSignals {
            id,
            request,
            stages: requests::stages(request),
            signals: Vec::new(),
        }
    }

    fn build(mut self, units: &Units, merged_into: Option<u64>, programs: &[Arc<Program>]) -> Vec<ScheduledSignal> {
        let Request {
            grid,
            pc,
            line,
            subcore,
            warp,
            ..
        } = *self.request;
        self.add_stage();
        let program = programs.get(grid as usize);
        let code = program.map(|program| u64::from(program.base_index()) + u64::from(pc));
        self.add_constant("instruction", Kind::Code, code);
        self.add_constant("subcore", Kind::Vector(3), Some(subcore.into()));
        self.add_constant("warp", Kind::Vector(6), Some(warp.into()));
        self.add_constant("line", Kind::Vector(48), Some(line));
        if merged_into.is_some() {
            self.add_constant("merged_into", Kind::Vector(NUMBER_WIDTH), merged_into.map(shown));
        }
        let slice = format!("l2_slice_{}", units.slice(self.id.sm, line));
        let channel = format!("channel_{}", units.channel(line));
        for (name, stages) in [
            ("lsu", &["issue_to_lsu", "lsu_to_l1"][..]),
            ("l1", &["l1"]),
            ("request", &["to_l2"]),
            (&slice, &["l2"]),
            (&channel, &["memory"]),
            ("response", &["to_l1"]),
            ("write_back", &["l1_to_lsu", "lsu_to_use"]),
        ] {
            self.add_unit(name, stages);
        }
        self.signals
    }

    fn add(&mut self, name: &str, kind: Kind, changes: Vec<(Cycle, Option<u64>)>) {
        let signal = Signal {
            scope: ["gpu".to_owned(), TRANSACTION.to_owned(), self.id.to_string()].into(),
            name: name.to_owned(),
            kind,
            alias_scope: None,
        };
        self.signals.push(ScheduledSignal { signal, changes });
    }

    /// The cycle after the last stage.
    fn end(&self) -> Cycle {
        self.stages
            .last()
            .map_or(Cycle::ZERO, |(_, from, cycles)| *from + *cycles)
    }

    /// Adds the stage. Stages without a cycle are left out.
    fn add_stage(&mut self) {
        let index = |name: &str| STAGE_NAMES.iter().position(|known| *known == name).map(|n| n as u64);
        let shown = self.stages.iter().filter(|(.., cycles)| *cycles > 0);
        let changes = shown.map(|(name, from, _)| (*from, index(name)));
        let changes = changes.chain([(self.end(), None)]).collect();
        self.add("stage", Kind::State(&STAGE_NAMES), changes);
    }

    /// Adds a value that holds from the issue to the end.
    fn add_constant(&mut self, name: &str, kind: Kind, value: Option<u64>) {
        // No value after the end, so that a viewer shows when the request lived.
        let changes = vec![(requests::begin(self.request), value), (self.end(), None)];
        self.add(name, kind, changes);
    }

    /// Adds a signal that has the request's number during `stages`, which follow each other.
    fn add_unit(&mut self, name: &str, stages: &[&str]) {
        let inside = self
            .stages
            .iter()
            .filter(|(stage, _, cycles)| *cycles > 0 && stages.contains(stage));
        let cycles: Vec<_> = inside.map(|(_, from, cycles)| (*from, *from + *cycles)).collect();
        let changes = match (cycles.first(), cycles.last()) {
            (Some((from, _)), Some((_, to))) => vec![(*from, Some(shown(self.id.number))), (*to, None)],
            _ => Vec::new(),
        };
        self.add(name, Kind::Vector(NUMBER_WIDTH), changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_components::preset;
    use warpwave_components::proto::mem::{Packet, Stamps};

    /// A load with these stamps, by stage.
    fn load(stamps: &[(Stage, u64)]) -> Request {
        let mut packet = Packet::blank();
        packet.stamps = Stamps::NONE;
        stamps
            .iter()
            .for_each(|&(stage, at)| packet.stamps.note(stage, Cycle(at)));
        Request::of(&packet, 0, (1, 2, 3))
    }

    /// The changes of a signal, as pairs of cycle and value.
    fn changes<'a>(signals: &'a [ScheduledSignal], path: &str) -> Vec<(u64, Option<u64>)> {
        let found = signals.iter().find(|one| one.signal.path() == path);
        let found: &'a ScheduledSignal = found.unwrap_or_else(|| panic!("no signal {path}"));
        found.changes.iter().map(|(at, value)| (at.0, *value)).collect()
    }

    #[test]
    fn two_warps_on_one_line_are_told_apart_by_their_numbers() {
        use Stage::{Hbm, Issue, L1, L2, L2Data, Lsu, Request as Below, Response, Return};
        let missed = [Issue, Lsu, L1, Below, L2, Hbm, L2Data, Response, Return];
        let cycles = [10, 14, 15, 16, 100, 102, 400, 490, 500];
        let missed = load(&missed.into_iter().zip(cycles).collect::<Vec<_>>());
        let merged = load(&[(Issue, 20), (Lsu, 24), (L1, 25), (Response, 490), (Return, 501)]);
        let id = |number| RequestId { sm: 1, number };
        let config = preset::load("tiny", &[]).unwrap().config;
        let signals = signals(&[(id(7), missed), (id(8), merged)], &[], &config);
        let of = |path: &str| changes(&signals, &format!("gpu.transaction.{path}"));
        // The miss goes through all units.
        assert_eq!(of("sm1#7.lsu"), [(10, Some(7)), (15, None)]);
        assert_eq!(of("sm1#7.l1"), [(15, Some(7)), (16, None)]);
        assert_eq!(of("sm1#7.request"), [(16, Some(7)), (100, None)]);
        assert_eq!(of("sm1#7.response"), [(400, Some(7)), (490, None)]);
        assert_eq!(of("sm1#7.write_back"), [(490, Some(7)), (502, None)]);
        // The merged load stays in the L1 until the fill.
        assert_eq!(of("sm1#8.l1"), [(25, Some(8)), (490, None)]);
        assert_eq!(of("sm1#8.request"), []);
        assert_eq!(of("sm1#8.merged_into"), [(20, Some(7)), (503, None)]);
        assert!(
            !signals
                .iter()
                .any(|one| one.signal.path() == "gpu.transaction.sm1#7.merged_into")
        );
        let stages = of("sm1#8.stage")
            .iter()
            .map(|(at, stage)| (*at, stage.map(|n| STAGE_NAMES[n as usize])))
            .collect::<Vec<_>>();
        assert_eq!(
            stages,
            [
                (20, Some("issue_to_lsu")),
                (24, Some("lsu_to_l1")),
                (25, Some("l1")),
                (490, Some("l1_to_lsu")),
                (501, Some("lsu_to_use")),
                (503, None)
            ]
        );
    }
}
