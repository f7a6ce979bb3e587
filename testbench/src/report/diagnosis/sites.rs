//! Instructions with their counters and their places in the PTX and in the source.

use std::fmt;

use serde::Serialize;
use warpwave_isa::inst::Inst;
use warpwave_isa::opcode::Opcode;

use crate::bench::LaunchRun;

/// The place of an instruction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// The PTX file, if the scenario names several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of the PTX file, from 1.
    pub line: u32,
    /// File and line of the source, if the PTX names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(file) = &self.file {
            write!(f, " of {file}")?;
        }
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// An instruction with three counters.
pub(super) struct Site {
    pub inst: Inst,
    pub place: Place,
    pub counts: [u64; 3],
}

impl Site {
    /// The instruction in one word.
    pub fn verb(&self) -> &'static str {
        match self.inst.op {
            Opcode::Ld | Opcode::Ldsm | Opcode::Tex | Opcode::Suld => "load",
            Opcode::St | Opcode::Sust => "store",
            Opcode::Ldgsts => "copy",
            _ => "atomic",
        }
    }
}

/// The instructions of a launch with a first counter above 0.
pub(super) fn sites(launch: &LaunchRun, counters: [&str; 3]) -> Vec<Site> {
    let [first, second, third] = counters.map(|name| launch.counts.by_pc(name));
    let counted = first.iter().enumerate().filter(|(_, n)| **n > 0);
    let site = |(pc, n): (usize, &u64)| {
        let inst = *launch.program.code().get(pc)?;
        let of = |counts: &[u64]| counts.get(pc).copied().unwrap_or(0);
        Some(Site {
            place: place(launch, pc as u32, &inst),
            inst,
            counts: [*n, of(second), of(third)],
        })
    };
    counted.filter_map(site).collect()
}

fn place(launch: &LaunchRun, pc: u32, inst: &Inst) -> Place {
    let source = launch.program.source(pc).map(|source| {
        // The name alone: paths of compilers are long.
        let file = source.file.rsplit('/').next().unwrap_or(source.file);
        format!("{file}:{}", source.line)
    });
    // Line 0 is an instruction of the compiler.
    let modules = launch.modules.as_ref().filter(|_| inst.line > 0);
    let module = modules.map(|modules| modules.place(inst.line));
    Place {
        file: module.map(|(file, _)| file.to_owned()),
        line: module.map_or(inst.line, |(_, line)| line),
        source,
    }
}
