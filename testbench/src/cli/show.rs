//! The commands that simulate nothing: `list`, `gpus`, `occupancy`.

use std::fmt::Write;

use warpwave::lesson;
use warpwave::report::units::count;
use warpwave::scenario::builtin;
use warpwave_components::occupancy::{self, Limiter};
use warpwave_components::preset::{self, Preset};

use super::args::Shape;
use super::failure::Failure;
use super::print;

/// `warpwave list`: every built-in scenario with its claim, then the lessons.
pub fn list() -> Result<(), Failure> {
    let mut out = String::new();
    for name in builtin::names() {
        let entry = builtin::entry(name).map_err(Failure::input)?;
        let says = if entry.claim.is_empty() {
            entry.title
        } else {
            entry.claim
        };
        let _ = writeln!(out, "{}", format!("{name:<24} {says}").trim_end());
    }
    for name in lesson::NAMES {
        let lesson = lesson::find(name).map_err(Failure::input)?;
        let _ = writeln!(out, "{name:<24} lesson {}: {}", lesson.number, lesson.claim);
    }
    print(&out)
}

/// `warpwave gpus`: one line per GPU, or all parameters of one GPU.
pub fn gpus(name: Option<&str>) -> Result<(), Failure> {
    match name {
        None => preset::names()
            .into_iter()
            .try_for_each(|name| print(&line(name, &load(name)?))),
        Some(name) => print(&full(&load(name)?)),
    }
}

fn load(name: &str) -> Result<Preset, Failure> {
    preset::load(name, &[]).map_err(Failure::input)
}

fn line(name: &str, preset: &Preset) -> String {
    let config = &preset.config;
    let (sms, mhz) = (config.n_sms(), config.clocks.core_khz / 1000);
    let noun = if sms == 1 { "SM" } else { "SMs" };
    format!("{name:<14} {sms:>4} {noun:<3} {mhz:>5} MHz  {}\n", preset.summary)
}

/// Every parameter of a preset with its source, then the list of sources.
fn full(preset: &Preset) -> String {
    let mut out = line(&preset.config.name, preset);
    out.push('\n');
    for value in &preset.sources {
        let grade = if value.grade.is_empty() {
            String::new()
        } else {
            format!(" ({})", value.grade)
        };
        let source = format!("{}{grade}", value.source);
        let row = format!("{:<38} {:>20}  {source:<22} {}", value.key, value.value, value.note);
        let _ = writeln!(out, "{}", row.trim_end());
    }
    out.push('\n');
    for (key, title) in preset::source_titles() {
        // Only the sources that this preset uses.
        if preset.sources.iter().any(|value| value.source == key) {
            let _ = writeln!(out, "{key:<22} {title}");
        }
    }
    out.push_str("grades: A from the primary text, B from a summary of it, C from memory\n");
    out
}

/// `warpwave occupancy`: blocks, warps and occupancy of an SM, and the limiting resource.
pub fn occupancy(shape: &Shape) -> Result<(), Failure> {
    let config = preset::load(&shape.gpu, &shape.set).map_err(Failure::input)?.config;
    let found = occupancy::occupancy(&config, shape.block, shape.regs, shape.smem)
        .map_err(|reason| Failure::input(format!("such a block cannot be launched on {}: {reason}", config.name)))?;
    let allowed = &found.allowed;
    // `None` for a resource that the block does not use.
    let rows = [
        (Limiter::Warps, Some(allowed.warps)),
        (Limiter::Blocks, Some(allowed.blocks)),
        (Limiter::SharedMemory, allowed.shared),
        (Limiter::Registers, allowed.registers),
    ];
    let mut out = format!(
        "{}: {}, {}, {} of shared memory\n\n",
        config.name,
        count(shape.block.into(), "thread"),
        count(shape.regs.into(), "register"),
        count(shape.smem.into(), "byte")
    );
    let _ = writeln!(out, "blocks per SM   {:>6}", found.blocks);
    let _ = writeln!(
        out,
        "warps per SM    {:>6} of {}",
        found.warps, config.limits.max_warps_per_sm
    );
    let _ = writeln!(out, "occupancy       {:>6.1} %", found.percent);
    let _ = writeln!(out, "limiter         {}", found.limiter);
    let _ = writeln!(
        out,
        "shared memory   {:>6} bytes of the unified array\n",
        found.carveout
    );
    for (resource, blocks) in rows {
        let blocks = blocks.map_or("no limit".to_owned(), |blocks| count(blocks.into(), "block"));
        let _ = writeln!(out, "{:<16}{blocks}", format!("{resource}:"));
    }
    print(&out)
}
