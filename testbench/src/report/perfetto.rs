//! The timeline of a run for Perfetto: a group of tracks per SM, one for the L2, and one for memory.
//!
//! | track | slices |
//! |---|---|
//! | a warp slot | the warp's states in order; an issue shows its instruction |
//! | a sub-core's pipe, the LSU, shared memory, the L1 | instructions and requests in the cycle of their entry |
//! | an L2 slice, a memory channel | requests in the cycle of their entry |
//!
//! A memory request is a span on the track of its path, with its stages inside. An arrow follows it from its issue through the caches
//! back to the LSU. Curves show instructions per cycle, resident warps, and requests in flight at each level.

mod curves;
pub(super) mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use warpwave_components::config::{GpuConfig, Pipes};
use warpwave_components::proto::event::Request;
use warpwave_components::proto::mem::Stage;
use warpwave_components::sm::subcore::stall;
use warpwave_components::sm::timing;
use warpwave_hw::time::Cycle;
use warpwave_waveforms::perfetto::{Args, FlowPoint, PerfettoWriter, Track};

use crate::watch::pipeline::{Picture, Row, Step};
use crate::watch::requests::{self, RequestId};
use units::Units;

/// Writes the timeline.
///
/// # Errors
/// If `to` cannot be written.
pub fn write(to: impl Write, picture: &Picture, config: &GpuConfig) -> io::Result<()> {
    let mut timeline = Timeline {
        writer: PerfettoWriter::new(to)?,
        units: Units::new(config),
        pipes: &config.sm.pipes,
        picture,
        named: BTreeSet::new(),
        entered: BTreeSet::new(),
        issues: picture.rows.iter().filter_map(gathered).collect(),
    };
    // Instructions before requests: an arrow begins at the issue of its instruction.
    for row in &picture.rows {
        timeline.warp(row)?;
        timeline.instruction(row)?;
    }
    for (sm, number, request) in &picture.requests {
        let id = RequestId {
            sm: *sm,
            number: *number,
        };
        timeline.request(id, request)?;
    }
    curves::write(&mut timeline.writer, picture)?;
    timeline.writer.finish()?;
    Ok(())
}

/// The key of a row (SM, sub-core, cycle of the operand reads), and its cycle of issue.
fn gathered(row: &Row) -> Option<((u16, u8, Cycle), Cycle)> {
    Some(((row.sm, row.subcore, row.at(Step::Gather)?), row.issued()))
}

struct Timeline<'a, W> {
    writer: PerfettoWriter<W>,
    units: Units,
    pipes: &'a Pipes,
    picture: &'a Picture,
    /// Groups and tracks that are already named.
    named: BTreeSet<(u32, Option<u32>)>,
    /// Entries already drawn. Merged requests share an entry.
    entered: BTreeSet<(Track, Cycle)>,
    /// Cycles of issue by SM, sub-core and cycle of the operand reads, which is one after a request's issue stamp.
    issues: BTreeMap<(u16, u8, Cycle), Cycle>,
}

impl<W: Write> Timeline<'_, W> {
    /// Names the track when it is first used.
    fn name(&mut self, track: Track, name: impl FnOnce() -> (String, String)) -> io::Result<Track> {
        if self.named.insert((track.group, Some(track.track))) {
            let (group, unit) = name();
            if self.named.insert((track.group, None)) {
                self.writer.name_group(track.group, &group)?;
            }
            self.writer.name_track(track, &unit)?;
        }
        Ok(track)
    }

    /// Writes the states of a warp before an issue, and the issue.
    fn warp(&mut self, row: &Row) -> io::Result<()> {
        let track = self.units.warp(row);
        let track = self.name(track, || {
            (format!("SM {}", row.sm), format!("warp {}.{}", row.subcore, row.slot))
        })?;
        for wait in &row.waits {
            let name = stall::NAMES[wait.state as usize];
            self.writer.slice(track, name, wait.from, wait.to - wait.from, &[])?;
        }
        let text = self.picture.text(row.grid, row.pc);
        let mask = format!("{:#010x}", row.lanes);
        let [x, y, z] = row.block;
        let block = format!("({x}, {y}, {z})");
        let args: &Args<'_> = &[
            ("pc", u64::from(row.pc).into()),
            ("mask", mask.as_str().into()),
            ("launch", u64::from(row.grid).into()),
            ("block", block.as_str().into()),
            ("warp", u64::from(row.warp).into()),
        ];
        self.writer.slice(track, &text, row.issued(), 1, args)
    }

    /// Writes an instruction's entries into the units of its SM.
    fn instruction(&mut self, row: &Row) -> io::Result<()> {
        let Some(program) = self.picture.programs.get(row.grid as usize) else {
            return Ok(());
        };
        let Some(inst) = program.code().get(row.pc as usize) else {
            return Ok(());
        };
        let text = self.picture.text(row.grid, row.pc);
        for (track, unit, from, cycles) in self.units.entries(row, timing::pipe(inst, self.pipes)) {
            let track = self.name(track, || (format!("SM {}", row.sm), unit))?;
            self.writer
                .slice(track, &text, from, cycles, &[("pc", u64::from(row.pc).into())])?;
        }
        Ok(())
    }

    fn request(&mut self, id: RequestId, request: &Request) -> io::Result<()> {
        let Some(path) = requests::path(request) else {
            return Ok(());
        };
        let stages = requests::stages(request);
        let Some((_, last, cycles)) = stages.last() else {
            return Ok(());
        };
        let group = Units::sm_group(id.sm);
        let line = format!("{:#x}", request.line);
        let name = id.to_string();
        let args: &Args<'_> = &[
            ("line", line.as_str().into()),
            ("sectors", u64::from(request.sectors.count_ones()).into()),
            ("pc", u64::from(request.pc).into()),
        ];
        let (begin, end) = (requests::begin(request), *last + *cycles);
        self.writer.begin_span(group, &name, path, begin, args)?;
        for (stage, from, cycles) in stages {
            // A stage without a cycle would be invisible.
            if cycles > 0 {
                self.writer.begin_span(group, &name, stage, from, &[])?;
                self.writer.end_span(group, &name, stage, from + cycles)?;
            }
        }
        // After its stages: a span ends last if others are inside it.
        self.writer.end_span(group, &name, path, end)?;
        self.arrow(id, request)
    }

    /// Writes the arrow of a request: issue, entries into units, response.
    fn arrow(&mut self, id: RequestId, request: &Request) -> io::Result<()> {
        let name = id.to_string();
        let gathered = requests::begin(request) + 1;
        // The picture has no row of the instruction: it issued outside the recorded cycles.
        let Some(issued) = self.issues.get(&(id.sm, request.subcore, gathered)) else {
            return Ok(());
        };
        let warp = self.units.warp_slot(id.sm, request.subcore, request.warp);
        self.writer.flow(warp, &name, FlowPoint::Start, *issued)?;
        // The stages in which a request enters a unit with a track.
        for stage in [Stage::L1, Stage::L2, Stage::Hbm, Stage::Return] {
            let Some(at) = request.stamps.at(stage) else { continue };
            let (track, group, unit) = self.units.of_request(id.sm, request.line, stage);
            let track = self.name(track, || (group, unit))?;
            // Slices of a track must not overlap, so merged requests draw one slice.
            if self.entered.insert((track, at)) {
                let line = format!("{:#x}", request.line);
                self.writer
                    .slice(track, &line, at, 1, &[("request", name.as_str().into())])?;
            }
            let point = if stage == Stage::Return {
                FlowPoint::End
            } else {
                FlowPoint::Step
            };
            self.writer.flow(track, &name, point, at)?;
        }
        Ok(())
    }
}
