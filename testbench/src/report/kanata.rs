//! The pipeline diagram of a run for Konata: one row per warp instruction.
//!
//! | lane | stages |
//! |---|---|
//! | 0 | `F` fetch, `D` in the ibuffer, `I` issue, `OC` operand collector, `X` pipe or LSU, `M` memory or shared-memory banks, `W` writeback |
//! | 1 | the stall states of the warp since its previous instruction, by the profiler's names |
//!
//! An arrow leads from each instruction with a pending result that this one needs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use warpwave_components::config::GpuConfig;
use warpwave_components::sm::subcore::stall;
use warpwave_hw::time::Cycle;
use warpwave_waveforms::kanata::{self, KanataWriter, Stage};

use crate::watch::pipeline::{Picture, Row, Step};

/// Writes the diagram.
///
/// # Errors
/// If `to` cannot be written.
pub fn write(to: impl Write, picture: &Picture, config: &GpuConfig) -> io::Result<()> {
    let mut rows: Vec<&Row> = picture.rows.iter().collect();
    rows.sort_by_key(|row| (row.begin(), row.issued(), row.sm, row.subcore));
    // A sub-core issues at most one instruction per cycle, so this names it.
    let name = |row: &Row, issued: Cycle| (row.sm, row.subcore, issued);
    let mut numbers = BTreeMap::new();
    let mut writer = KanataWriter::new(to)?;
    for row in rows {
        // A producer issued earlier, so its row is already written. One before the recorded cycles has no row.
        let producers = row
            .producers
            .iter()
            .filter_map(|issued| numbers.get(&name(row, *issued)));
        let number = writer.instruction(kanata::Instruction {
            thread: thread(row, config),
            label: label(picture, row),
            tooltip: tooltip(picture, row),
            stages: stages(row, config),
            producers: producers.copied().collect(),
            flushed: false,
        })?;
        numbers.insert(name(row, row.issued()), number);
    }
    writer.finish()?;
    Ok(())
}

/// The number of a warp slot, counted over the whole GPU.
fn thread(row: &Row, config: &GpuConfig) -> u64 {
    let slots = config.limits.max_warps_per_sm / config.sm.subcores;
    let subcore = u32::from(row.sm) * config.sm.subcores + u32::from(row.subcore);
    u64::from(subcore * slots + u32::from(row.slot))
}

fn label(picture: &Picture, row: &Row) -> String {
    let inst = picture.text(row.grid, row.pc);
    format!(
        "sm{}.{}.w{} {:4} {inst}  mask={:08x}",
        row.sm, row.subcore, row.slot, row.pc, row.lanes
    )
}

fn tooltip(picture: &Picture, row: &Row) -> String {
    let [x, y, z] = row.block;
    let program = picture.programs.get(row.grid as usize);
    let line = program.and_then(|program| Some(program.code().get(row.pc as usize)?.line));
    let source = program.and_then(|program| program.source(row.pc));
    let mut text = format!("launch {} block ({x}, {y}, {z}) warp {}", row.grid, row.warp);
    text.extend(line.map(|line| format!("\nPTX line {line}")));
    text.extend(source.map(|source| format!("\n{source}")));
    if row.passes > 0 {
        text.push_str(&format!("\n{} passes of the banks", row.passes));
    }
    text
}

fn stages(row: &Row, config: &GpuConfig) -> Vec<Stage> {
    let mut stages = Vec::new();
    let mut add = |name, from: Option<Cycle>, to: Option<Cycle>| {
        // A stage that was not reached, or has no cycle, is left out.
        let ends = from.zip(to).filter(|(from, to)| from < to);
        stages.extend(ends.map(|(from, to)| Stage {
            lane: 0,
            name,
            from,
            to,
        }));
    };
    let issued = row.issued();
    let buffered = row.at(Step::Fetch).map(|at| at + u64::from(config.sm.fetch_latency));
    let [gather, store] = [Step::Gather, Step::Store].map(|step| row.at(step));
    // An instruction that is sent or accepted in a cycle is in its next stage one cycle later.
    let [sent, taken] = [Step::Send, Step::Take].map(|step| row.at(step).map(|at| at + 1));
    add("F", row.at(Step::Fetch), buffered);
    add("D", buffered, Some(issued));
    add("I", Some(issued), gather.or(Some(issued + 1)));
    add("OC", gather, sent);
    // Only the LSU takes instructions. All others stay in their pipe until the writeback.
    add("X", sent, taken.or(store));
    add("M", taken, store);
    add("W", store.filter(|at| Some(*at) >= sent), store.map(|at| at + 1));
    let wait = |wait: &crate::watch::pipeline::Wait| Stage {
        lane: 1,
        name: stall::NAMES[wait.state as usize],
        from: wait.from,
        to: wait.to,
    };
    stages.extend(row.waits.iter().map(wait));
    stages
}
