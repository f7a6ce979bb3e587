//! Routines: operations without a machine instruction, expanded as real compilers do.
//!
//! The code is PTX text in `lower/routines`. The first register of a function is its result, and the next ones are its sources. A
//! tag and a colon before a line select the forms that the line belongs to:
//!
//! | tags | meaning |
//! |---|---|
//! | `rn`, `rz`, `rm`, `rp` | rounding mode |
//! | `directed` | any rounding mode except `rn` |
//! | `ftz`, `exact` | denormals are flushed or kept |
//! | `div`, `rem` | integer quotient or remainder |
//! | `s`, `u` | signed or unsigned integers |
//!
//! An exact float operation has a fast function and a slow one. The fast one also reports where it is not exact.

use super::{Form, Frame, Selected, Selector, VLoc};
use crate::ast::Type;
use crate::check::{self, Body, Checked};
use crate::lower::code::{Arg, Op, VGuard, VReg};
use crate::parse;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use warpwave_isa::inst::Round;
use warpwave_isa::opcode::Opcode;

/// A file of routines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RoutineFile {
    F32,
    F64,
    Integer,
}

/// Tags of the selected form of a file.
type FormTags = [&'static str; 3];

const TAGS: [&str; 11] = [
    "rn", "rz", "rm", "rp", "directed", "ftz", "exact", "div", "rem", "s", "u",
];

impl RoutineFile {
    fn text(self) -> &'static str {
        match self {
            RoutineFile::F32 => include_str!("../routines/f32.ptx"),
            RoutineFile::F64 => include_str!("../routines/f64.ptx"),
            RoutineFile::Integer => include_str!("../routines/integer.ptx"),
        }
    }

    /// Returns the functions of the file in one form. Each form is parsed once per process.
    fn functions(self, forms: FormTags) -> &'static Checked<'static, 'static> {
        static CACHE: Mutex<BTreeMap<(RoutineFile, FormTags), &'static Checked<'static, 'static>>> =
            Mutex::new(BTreeMap::new());
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        cache.entry((self, forms)).or_insert_with(|| {
            // Leaked on purpose: there are few forms, and each stays for the process.
            let text: &'static str = Box::leak(select_lines(self.text(), &forms).into_boxed_str());
            let output = parse::parse(text);
            let module = Box::leak(Box::new(output.module));
            let (checked, findings) = check::check(module);
            let faults: Vec<String> = output
                .findings
                .iter()
                .chain(&findings)
                .map(|finding| finding.render("routines", text))
                .collect();
            // The routines are part of this crate, so a fault is a bug and not a finding.
            assert!(faults.is_empty(), "{self:?} in {forms:?}: {}", faults.join("\n"));
            Box::leak(Box::new(checked))
        })
    }

    fn function(self, name: &str, forms: FormTags) -> &'static Body<'static, 'static> {
        let mut bodies = self.functions(forms).bodies.iter();
        let found = bodies.find(|body| body.function.name.text == name);
        found.unwrap_or_else(|| panic!("the library {self:?} has no function {name}"))
    }
}

/// Returns the lines of one form, with `ROUND` replaced by the rounding mode.
fn select_lines(text: &str, forms: &FormTags) -> String {
    let mut out = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    for line in text.lines() {
        let line = match line.split_once(':') {
            Some((word, rest)) if TAGS.contains(&word) => Some(rest).filter(|_| forms.contains(&word)),
            _ => Some(line),
        };
        out.extend(line);
        out.push('\n');
    }
    out.replace("ROUND", forms[0])
}

fn rounding_forms(round: Round, ftz: bool) -> FormTags {
    let (word, directed) = match round {
        Round::Nearest => ("rn", ""),
        Round::Zero => ("rz", "directed"),
        Round::Down => ("rm", "directed"),
        Round::Up => ("rp", "directed"),
    };
    [word, directed, if ftz { "ftz" } else { "exact" }]
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Inlines a routine and returns the locations of its registers. The guard does not apply to it.
    fn routine(&mut self, body: &'static Body<'static, 'static>, sources: &[Arg]) -> Vec<VLoc> {
        let guard = std::mem::replace(&mut self.guard, VGuard::ALWAYS);
        let mut frame = Frame::of(body, &mut self.code, &mut self.label_blocks);
        frame.line = Some(self.line);
        let locations = frame.locations.clone();
        // Register 0 is the result, and the sources follow.
        for ((location, ty), &source) in locations.iter().zip(&body.registers).skip(1).zip(sources) {
            if let VLoc::VReg(word) = *location {
                self.copy(word, source, *ty);
            }
        }
        self.frames.push(frame);
        self.select_steps();
        self.frames.pop();
        self.guard = guard;
        locations
    }

    /// Expands an exact quotient (`div`), reciprocal (`rcp`) or square root (`sqrt`).
    pub(super) fn exact_float(&mut self, form: &Form<'t, 'a>, round: Round, result: VReg, sources: &[Arg]) -> Selected {
        let ty = form.ty();
        let file = match ty {
            Type::F32 => RoutineFile::F32,
            Type::F64 => RoutineFile::F64,
            _ => return Err(form.unsupported()),
        };
        let (fast, slow) = match form.opcode() {
            "div" => ("fast_div", "slow_div"),
            "rcp" => ("fast_rcp", "slow_div"),
            "sqrt" => ("fast_sqrt", "slow_sqrt"),
            _ => return Err(form.unsupported()),
        };
        let forms = rounding_forms(round, form.has(".ftz"));
        let [fast, slow] = [fast, slow].map(|name| file.function(name, forms));
        let one = if ty == Type::F64 {
            1f64.to_bits()
        } else {
            1f32.to_bits().into()
        };
        let slow_sources = match sources {
            &[divisor] if form.opcode() == "rcp" => vec![Arg::imm(one), divisor],
            _ => sources.to_vec(),
        };
        let skip_label = self.skip_if_guarded();
        // The vendor's assembler calls a function for the slow path, and unrolls no loop around it.
        self.keep_loop();
        let locations = self.routine(fast, sources);
        let needs_slow = match locations.get(1 + sources.len()) {
            Some(&VLoc::VPred(needs_slow)) => VGuard::pred(needs_slow),
            _ => self.division_check(sources),
        };
        let value = self.code.new_group(ty.bits().div_ceil(32) as u8);
        self.copy_result(value, &locations, ty);
        // Few operands need the slow function, so a warp usually jumps over it.
        let done = self.branch_if(needs_slow.negated());
        let locations = self.routine(slow, &slow_sources);
        self.copy_result(value, &locations, ty);
        self.label(done);
        self.copy(result, Arg::vreg(value), ty);
        if let Some(label) = skip_label {
            self.label(label);
        }
        Ok(())
    }

    /// Expands `rsqrt` of a 64-bit float.
    pub(super) fn double_rsqrt(&mut self, result: VReg, a: Arg) {
        let body = RoutineFile::F64.function("rsqrt", rounding_forms(Round::Nearest, false));
        let locations = self.routine(body, &[a]);
        self.copy_result(result, &locations, Type::F64);
    }

    /// Expands integer `div` and `rem` of extended sources.
    pub(super) fn integer_division(&mut self, form: &Form<'t, 'a>, result: VReg, sources: [Arg; 2]) {
        let ty = form.ty();
        let operation = if form.opcode() == "rem" { "rem" } else { "div" };
        let forms = ["", operation, if ty.is_signed() { "s" } else { "u" }];
        let (name, branches) = match ty.bits() {
            64 => ("of_64", true),
            32 => ("of_32", false),
            _ => ("of_16", false),
        };
        // Only the 64-bit routine branches. The others run in all lanes, and the guard goes to the copy of the result.
        let skip_label = if branches { self.skip_if_guarded() } else { None };
        let locations = self.routine(RoutineFile::Integer.function(name, forms), &sources);
        self.copy_result(result, &locations, ty);
        if let Some(label) = skip_label {
            self.label(label);
        }
    }

    /// Returns a predicate that is true where the fast 32-bit quotient is not exact.
    fn division_check(&mut self, sources: &[Arg]) -> VGuard {
        let pred = self.code.new_pred();
        self.emit(Op::machine(Opcode::Fchk).src(sources).pdst(pred));
        VGuard::pred(pred)
    }

    fn copy_result(&mut self, to: VReg, locations: &[VLoc], ty: Type) {
        if let Some(&VLoc::VReg(word)) = locations.first() {
            self.copy(to, Arg::vreg(word), ty);
        }
    }

    /// Emits a branch to a new label and returns the label.
    pub(super) fn branch_if(&mut self, guard: VGuard) -> usize {
        let label = self.new_label();
        self.jump(label, guard);
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_parses_without_findings() {
        for round in [Round::Nearest, Round::Zero, Round::Down, Round::Up] {
            for ftz in [false, true] {
                assert_eq!(RoutineFile::F32.functions(rounding_forms(round, ftz)).bodies.len(), 5);
            }
            assert_eq!(RoutineFile::F64.functions(rounding_forms(round, false)).bodies.len(), 6);
        }
        for operation in ["div", "rem"] {
            for sign in ["s", "u"] {
                assert_eq!(RoutineFile::Integer.functions(["", operation, sign]).bodies.len(), 3);
            }
        }
    }

    #[test]
    fn select_lines_drops_other_forms_and_inserts_rounding() {
        let text = "rz:\tone;\nrn:\ttwo.ROUND;\nLABEL:\n\tthree;";
        let got = select_lines(text, &["rn", "", "exact"]);
        assert!(got.ends_with("\n\n\ttwo.rn;\nLABEL:\n\tthree;\n"), "{got}");
    }
}
