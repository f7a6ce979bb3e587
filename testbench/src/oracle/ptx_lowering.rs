//! Oracle: a random program leaves the same memory with any passes of the compiler as with the naive lowering.
//!
//! The naive lowering has no optional pass ([`warpwave_ptx::OPTIONAL_PASSES`]): no folding, no common subexpressions, no joined
//! accesses, no predication, no uniform values, no scheduling. Registers are allocated in both. Both programs run on the reference, so
//! no time hides a difference.

use arbitrary::{Arbitrary, Unstructured};
use warpwave_components::config::{GpuConfig, Reconvergence};
use warpwave_components::preset;
use warpwave_components::storage::Storage;
use warpwave_ptx::{Diagnostic, OPTIONAL_PASSES, PassSet, VALUE_PASS};

use super::Reached;
use super::draw::one_of;
use super::random_programs::RandomProgram;
use crate::bench;
use crate::host::{self, Placement};
use crate::reference::{self, Memory};
use crate::scenario::Scenario;

/// Limit of warp instructions. Every generated program needs fewer.
const LIMIT: u64 = 4_000_000;

/// A program, and how it is compiled.
#[derive(Arbitrary, Clone, Debug)]
pub struct PtxLowering {
    /// Optional passes left out, bit n for pass n: none, one, or half of them.
    #[arbitrary(with = skipped)]
    skipped: u16,
    /// Registers per thread. Few registers spill to local memory.
    #[arbitrary(with = one_of(&[None, None, Some(64), Some(40), Some(32), Some(24)]))]
    max_registers: Option<u8>,
    #[arbitrary(with = one_of(&[Reconvergence::Independent, Reconvergence::Stack]))]
    reconvergence: Reconvergence,
    program: RandomProgram,
}

/// Compiles a program twice, and runs both on the reference.
///
/// # Panics
/// If a program does not compile or end, or if the two leave different bytes in memory.
///
/// ```
/// use warpwave::oracle;
/// oracle::replay(b"any bytes make a program", oracle::ptx_lowering);
/// ```
pub fn ptx_lowering(input: PtxLowering) -> Reached {
    let mut config = preset::load("tiny", &[]).expect("a built-in preset").config;
    let mut scenario = input.program.scenario();
    // The naive lowering first, with the default reconvergence and no limit of registers.
    scenario.skipped_passes = passes(u16::MAX);
    let Some(expected) = buffers(&scenario, &config, &mut Reached::default()) else {
        panic!("the naive lowering needs too many registers for\n{}", scenario.ptx);
    };
    config.sm.reconvergence = input.reconvergence;
    scenario.skipped_passes = passes(input.skipped);
    scenario.max_registers = input.max_registers;
    // A program that does not fit into its registers is refused.
    let mut reached = Reached::default();
    let Some(found) = buffers(&scenario, &config, &mut reached) else {
        return reached;
    };
    for ((buffer, found), expected) in scenario.buffers.iter().zip(found).zip(expected) {
        let differs = found
            .iter()
            .zip(&expected)
            .position(|(found, expected)| found != expected);
        if let Some(at) = differs {
            panic!(
                "byte {at} of {} differs from the naive lowering of\n{}",
                buffer.name, scenario.ptx
            );
        }
    }
    reached
}

/// Decodes the passes that a program leaves out.
fn skipped(bytes: &mut Unstructured<'_>) -> arbitrary::Result<u16> {
    let passes = OPTIONAL_PASSES.len();
    Ok(match bytes.choose_index(passes + 5)? {
        pass if pass < passes => 1 << pass,
        half if half < passes + 2 => 0x5555 << (half - passes),
        _ => 0,
    })
}

/// The optional passes with a bit in `bits`, without the one that changes values.
fn passes(bits: u16) -> PassSet {
    let is_chosen = |&(n, name): &(usize, &&str)| bits >> n & 1 == 1 && *name != VALUE_PASS;
    let names = OPTIONAL_PASSES.iter().enumerate().filter(is_chosen);
    names.fold(PassSet::EMPTY, |set, (_, name)| {
        set.with(name).expect("an optional pass")
    })
}

/// The bytes of each buffer after the launches. `None` if the program needs more registers than its limit. Notes its instructions.
fn buffers(scenario: &Scenario, config: &GpuConfig, reached: &mut Reached) -> Option<Vec<Vec<u8>>> {
    let fails = |what: String| -> ! { panic!("{what}\nof this program:\n{}", scenario.ptx) };
    let module = match scenario.module(host::compiler_options(config)) {
        Ok(module) => module,
        Err(findings) => fails(format!("{findings:?}")),
    };
    // The only refusal that a limit of registers may cause. Any other one is a bug.
    let is_full = |finding: &Diagnostic| finding.message.contains("registers per thread; the limit is");
    let mut refused = module.entries.iter().filter_map(|entry| entry.program().as_ref().err());
    if scenario.max_registers.is_some() && refused.any(|findings| findings.iter().all(is_full)) {
        return None;
    }
    let programs = module.entries.iter().filter_map(|entry| entry.program().as_ref().ok());
    programs.for_each(|program| reached.note_code(program));
    let storage = Storage::new(config.memory_bytes);
    let mut placement = match Placement::new(scenario, &module, &storage) {
        Ok(placement) => placement,
        Err(error) => fails(format!("{error:?}")),
    };
    let grids = match bench::grids(scenario, &module, &mut placement, &storage, config) {
        Ok(grids) => grids,
        Err(error) => fails(format!("{error:?}")),
    };
    let mut memory = Memory::of(&storage);
    for grid in grids {
        if let Err(error) = reference::run(&grid, &mut memory, LIMIT) {
            fails(format!("without time: {error}"));
        }
    }
    let bytes = placement.of(scenario).map(|(buffer, address)| {
        let bytes = memory.get(address, buffer.layout.bytes() as usize);
        bytes.expect("the buffer is allocated").to_vec()
    });
    Some(bytes.collect())
}
