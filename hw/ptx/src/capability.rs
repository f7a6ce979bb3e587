//! The compute capability that a text needs: its `.target` and its newest instructions.
//!
//! The table has two sources: the target notes of each instruction (PTX ISA 9.0), and the vendor's assembler.
//! `tests/capabilities.txt` lists the oldest target that the assembler accepts for each form. Features of every GPU from
//! capability 7.0 are left out.

use crate::ast::{Instruction, Module, Operand, OperandKind, Statement};
use crate::diag::{Diagnostic, Span};

/// A requirement that only some GPUs meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Minimum compute capability: ten times the major number plus the minor number, 90 for 9.0.
    capability: u32,
    /// Other GPUs that run it.
    reach: TargetReach,
    span: Span,
    /// The feature as a finding names it.
    feature: String,
}

/// GPUs that run code for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetReach {
    /// All newer GPUs.
    Newer,
    /// Newer GPUs of the same major number: suffix `f`.
    Family,
    /// No other GPU: suffix `a`.
    Exact,
}

impl Requirement {
    fn newer(capability: u32, span: Span, name: &str) -> Requirement {
        Requirement {
            capability,
            reach: TargetReach::Newer,
            span,
            feature: format!("`{name}`"),
        }
    }

    /// Returns the finding for a GPU of capability `gpu`, or `None` if the GPU meets the requirement.
    fn finding(&self, gpu: u32) -> Option<Diagnostic> {
        let runs = match self.reach {
            TargetReach::Newer => gpu >= self.capability,
            TargetReach::Family => gpu >= self.capability && gpu / 10 == self.capability / 10,
            TargetReach::Exact => gpu == self.capability,
        };
        let shown = |capability: u32| format!("{}.{}", capability / 10, capability % 10);
        let message = format!(
            "{} needs compute capability {}, the GPU has {}",
            self.feature,
            shown(self.capability),
            shown(gpu)
        );
        (!runs).then(|| Diagnostic::unsupported(self.span, message))
    }
}

/// Returns a finding for each requirement that a GPU of capability `gpu` (80 for 8.0) does not meet.
pub(crate) fn unmet(requirements: &[Requirement], gpu: u32) -> Vec<Diagnostic> {
    requirements
        .iter()
        .filter_map(|requirement| requirement.finding(gpu))
        .collect()
}

/// Returns the capability that a text is written for: 80 for `sm_80`. 0 without a known name.
pub(crate) fn of_targets(names: &[&str]) -> u32 {
    let found = names.iter().find_map(|name| target(name));
    found.map_or(0, |(capability, _)| capability)
}

/// Returns the capability of a target name such as `sm_90a`, and the GPUs that run it. `None` for an unknown name.
fn target(name: &str) -> Option<(u32, TargetReach)> {
    let number = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
    let (digits, reach) = match number.as_bytes().last()? {
        b'a' => (&number[..number.len() - 1], TargetReach::Exact),
        b'f' => (&number[..number.len() - 1], TargetReach::Family),
        _ => (number, TargetReach::Newer),
    };
    let capability = digits.parse().ok().filter(|number| TARGETS.contains(number))?;
    let has_suffix =
        reach == TargetReach::Newer || capability >= 100 || (capability == 90 && reach == TargetReach::Exact);
    has_suffix.then_some((capability, reach))
}

/// True if a name is valid in `.target`: an architecture or an option.
pub(crate) fn is_target(name: &str) -> bool {
    let options = ["texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"];
    options.contains(&name) || target(name).is_some()
}

/// True if a name of `.target` is an architecture, not an option.
pub(crate) fn is_architecture(name: &str) -> bool {
    target(name).is_some()
}

/// Returns the newest architecture among the names of `.target`. A suffix demands more than the plain name.
pub(crate) fn newest<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let known = names.filter_map(|name| target(name).map(|(capability, reach)| (name, capability, reach)));
    let newest = known.max_by_key(|&(_, capability, reach)| (capability, reach != TargetReach::Newer));
    newest.map(|(name, ..)| name)
}

/// Returns the requirements of a module: its target, then the first instruction that uses each row of the table.
pub(crate) fn requirements(module: &Module<'_>) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for name in &module.target {
        if let Some((capability, reach)) = target(name) {
            requirements.push(Requirement {
                capability,
                reach,
                span: module.target_span,
                feature: format!("`.target {name}`"),
            });
        }
    }
    let mut seen = vec![false; FEATURES.len() + SPECIAL_REGISTERS.len()];
    for body in module.functions.iter().filter_map(|function| function.body.as_ref()) {
        add(&body.statements, &mut seen, &mut requirements);
    }
    requirements
}

/// Adds the requirements of the instructions, one for each row of the table that is not yet `seen`.
fn add(statements: &[Statement<'_>], seen: &mut [bool], requirements: &mut Vec<Requirement>) {
    for statement in statements {
        match statement {
            Statement::Block(block) => add(&block.statements, seen, requirements),
            Statement::Instruction(instruction) => {
                let matches = (0..).zip(FEATURES).filter(|(_, feature)| feature.is_of(instruction));
                // The newest feature of an instruction implies its older ones.
                if let Some((row, feature)) = matches.max_by_key(|(_, feature)| feature.capability)
                    && !std::mem::replace(&mut seen[row as usize], true)
                {
                    let qualifiers = instruction.qualifiers.iter().map(|word| word.text);
                    let name: String = std::iter::once(instruction.opcode.text).chain(qualifiers).collect();
                    requirements.push(Requirement::newer(feature.capability, instruction.span, &name));
                }
                for operand in &instruction.operands {
                    add_special(operand, seen, requirements);
                }
            }
            _ => {}
        }
    }
}

fn add_special(operand: &Operand<'_>, seen: &mut [bool], requirements: &mut Vec<Requirement>) {
    let (OperandKind::Name(name) | OperandKind::Component(name, _)) = operand.kind else {
        return;
    };
    let row = SPECIAL_REGISTERS.iter().position(|(start, _)| name.starts_with(start));
    if let Some(row) = row.filter(|row| !std::mem::replace(&mut seen[FEATURES.len() + row], true)) {
        requirements.push(Requirement::newer(SPECIAL_REGISTERS[row].1, operand.span, name));
    }
}

/// A row of the feature table: a pattern of instructions, and the capability that they need.
struct Feature {
    /// Opcodes with the feature; empty for any opcode.
    opcodes: &'static [&'static str],
    /// Sets of qualifiers. The instruction has at least one of each set.
    qualifiers: &'static [&'static [&'static str]],
    /// Minimum number of operands.
    operands: usize,
    /// A qualifier that the instruction must not have.
    without: &'static str,
    capability: u32,
}

impl Feature {
    fn is_of(&self, instruction: &Instruction<'_>) -> bool {
        let has = |word: &&str| instruction.qualifiers.iter().any(|name| name.text == *word);
        (self.opcodes.is_empty() || self.opcodes.contains(&instruction.opcode.text))
            && self.qualifiers.iter().all(|set| set.iter().any(has))
            && instruction.operands.len() >= self.operands
            && !has(&self.without)
    }

    const fn operands(self, operands: usize) -> Feature {
        Feature { operands, ..self }
    }

    const fn without(self, without: &'static str) -> Feature {
        Feature { without, ..self }
    }
}

const fn feature(
    opcodes: &'static [&'static str],
    qualifiers: &'static [&'static [&'static str]],
    capability: u32,
) -> Feature {
    Feature {
        opcodes,
        qualifiers,
        operands: 0,
        without: "",
        capability,
    }
}

/// Special registers of newer GPUs: prefix of the name, and minimum capability.
const SPECIAL_REGISTERS: &[(&str, u32)] = &[
    ("%reserved_smem", 80),
    ("%clusterid", 90),
    ("%nclusterid", 90),
    ("%cluster_", 90),
    ("%is_explicit_cluster", 90),
    ("%aggr_smem_size", 90),
];

/// Known architectures, up to PTX 9.5.
const TARGETS: [u32; 33] = [
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 82, 86, 87, 88, 89, 90, 100, 101,
    103, 107, 110, 120, 121,
];

const BF16: &[&str] = &[".bf16", ".bf16x2"];
const F16: &[&str] = &[".f16", ".f16x2"];

const FEATURES: &[Feature] = &[
    // Xavier and Turing.
    feature(&["cvt"], &[&[".pack"]], 72),
    feature(&["cvt"], &[&[".pack"], &[".u4", ".s4", ".u2", ".s2"]], 75),
    feature(&["ldmatrix", "movmatrix", "tanh"], &[], 75),
    feature(&["ex2"], &[F16], 75),
    feature(&["mma"], &[&[".m16n8k8", ".m8n8k16", ".m8n8k32", ".m8n8k128"]], 75),
    feature(&["wmma"], &[&[".s8", ".u8"]], 72),
    feature(&["wmma"], &[&[".s4", ".u4", ".b1", ".m8n8k32", ".m8n8k128"]], 75),
    feature(&["ld"], &[&[".L2::64B", ".L2::128B"]], 75),
    // Ampere.
    feature(
        &["redux", "createpolicy", "discard", "applypriority", "mbarrier"],
        &[],
        80,
    ),
    feature(&["cp"], &[&[".async"]], 80),
    feature(&["prefetch"], &[&[".L2::evict_last", ".L2::evict_normal"]], 80),
    feature(&["fma", "neg", "abs", "min", "max", "cvt"], &[BF16], 80),
    feature(&["min", "max"], &[&[".f16", ".f16x2", ".NaN"]], 80),
    feature(&["min", "max"], &[&[".xorsign"]], 86),
    feature(&["fma", "cvt"], &[&[".relu"]], 80),
    feature(&["cvt"], &[&[".f16x2"], &[".f32"]], 80),
    feature(&["cvt"], &[&[".tf32"]], 80),
    feature(
        &["mma"],
        &[&[
            ".bf16",
            ".tf32",
            ".f64",
            ".and",
            ".m16n8k4",
            ".m16n8k16",
            ".m16n8k32",
            ".m16n8k64",
            ".m16n8k128",
            ".m16n8k256",
        ]],
        80,
    ),
    feature(&["mma"], &[&[".sp", ".sp::ordered_metadata"]], 80),
    feature(&["wmma"], &[&[".bf16", ".tf32", ".f64", ".and"]], 80),
    feature(&[], &[&[".L2::cache_hint", ".L2::256B"]], 80),
    // Ada.
    feature(&["cvt", "mma"], &[&[".e4m3", ".e5m2", ".e4m3x2", ".e5m2x2"]], 89),
    // Hopper.
    feature(
        &[
            "mapa",
            "getctarank",
            "elect",
            "griddepcontrol",
            "setmaxnreg",
            "wgmma",
            "stmatrix",
            "multimem",
            "tensormap",
        ],
        &[],
        90,
    ),
    feature(&[], &[&[".cluster", ".shared::cluster"]], 90),
    feature(&["cp"], &[&[".bulk"]], 90),
    feature(&["st", "red"], &[&[".async"]], 90),
    feature(&["prefetch"], &[&[".tensormap"]], 90),
    feature(&["fence"], &[&[".mbarrier_init"]], 90),
    feature(
        &["fence", "membar"],
        &[&[".proxy"], &[".async", ".tensormap::generic"]],
        90,
    ),
    feature(&["mbarrier"], &[&[".try_wait", ".expect_tx", ".complete_tx"]], 90),
    // An arrival with a count.
    feature(&["mbarrier"], &[&[".arrive", ".arrive_drop"]], 90)
        .operands(3)
        .without(".noComplete"),
    feature(&["add", "min", "max"], &[&[".u16x2", ".s16x2"]], 90),
    feature(&["min", "max"], &[&[".relu"]], 90),
    feature(&["add", "sub", "mul", "ex2", "tanh", "set", "setp"], &[BF16], 90),
    // Conversions between `.bf16` and any type other than `.f32`.
    feature(
        &["cvt"],
        &[
            &[".bf16"],
            &[
                ".f64", ".f16", ".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64", ".rni", ".rzi", ".rmi",
                ".rpi",
            ],
        ],
        90,
    ),
    feature(&["cvt"], &[&[".tf32"], &[".rn", ".rz"]], 90),
    feature(&["mma"], &[&[".f64"], &[".m16n8k4", ".m16n8k8", ".m16n8k16"]], 90),
    feature(
        &["atom", "red"],
        &[&[".bf16", ".bf16x2", ".b128", ".v2", ".v4", ".v8"]],
        90,
    ),
    // Blackwell.
    feature(&["tcgen05", "clusterlaunchcontrol"], &[], 100),
    feature(&["add", "sub", "mul", "fma"], &[&[".f32x2"]], 100),
    feature(&["redux"], &[&[".f32"]], 100),
    feature(
        &["ld", "st"],
        &[&[".L2::evict_normal", ".L2::evict_first", ".L2::evict_last"]],
        100,
    ),
    feature(&["st"], &[&[".bulk"]], 100),
    // Vectors of 256 bits.
    feature(&["ld", "st"], &[&[".v4"], &[".b64", ".u64", ".s64", ".f64"]], 100),
    feature(&["ld", "st"], &[&[".v8"], &[".b32", ".u32", ".s32", ".f32"]], 100),
    feature(&["cvt"], &[&[".satfinite"], &[".tf32"], &[".rn", ".rz"]], 100),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str, gpu: u32) -> Vec<String> {
        let text = format!(".version 8.6\n{text}");
        let module = crate::parse(&text).unwrap_or_else(|findings| panic!("{findings:?}"));
        let found = unmet(&requirements(&module), gpu);
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn newer_target_is_reported_and_older_target_is_not() {
        let text = ".target sm_90\n.entry k() { ret; }";
        assert_eq!(
            findings(text, 80),
            ["`.target sm_90` needs compute capability 9.0, the GPU has 8.0"]
        );
        assert!(findings(text, 90).is_empty() && findings(text, 100).is_empty());
        assert!(findings(".target sm_70\n.entry k() { ret; }", 70).is_empty());
    }

    #[test]
    fn suffix_a_matches_one_capability_and_suffix_f_matches_its_family() {
        let of = |target: &str, gpu| findings(&format!(".target {target}\n.entry k() {{ ret; }}"), gpu).is_empty();
        assert_eq!([80, 90, 100].map(|gpu| of("sm_90a", gpu)), [false, true, false]);
        assert_eq!(
            [90, 100, 103, 120].map(|gpu| of("sm_100f", gpu)),
            [false, true, true, false]
        );
    }

    #[test]
    fn first_use_of_each_newer_feature_is_reported() {
        let text = ".target sm_70\n.entry k() { .reg .b32 %r<4>;\nredux.sync.add.u32 %r1, %r2, -1;\n{ redux.sync.add.u32 %r1, %r2, -1;\n\
                    fence.acq_rel.cluster; }\nret; }";
        assert_eq!(
            findings(text, 70),
            [
                "`redux.sync.add.u32` needs compute capability 8.0, the GPU has 7.0",
                "`fence.acq_rel.cluster` needs compute capability 9.0, the GPU has 7.0",
            ]
        );
        assert_eq!(findings(text, 80).len(), 1);
        assert!(findings(text, 90).is_empty());
    }

    #[test]
    fn target_names_match_the_isa() {
        for known in [
            "sm_50",
            "sm_80",
            "sm_90",
            "sm_90a",
            "sm_100f",
            "sm_120a",
            "compute_80",
            "debug",
        ] {
            assert!(is_target(known), "{known}");
        }
        for unknown in ["sm_999", "sm_80a", "sm_90f", "sm_", "sm_9x", "foo", "sm_1"] {
            assert!(!is_target(unknown), "{unknown}");
        }
    }
}
