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

use super::{Form, Frame, Home, Selected, Selector};
use crate::ast::Type;
use crate::check::{self, Body, Checked};
use crate::lower::code::{Arg, Op, When, Word};
use crate::parse;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use warpwave_isa::inst::Round;
use warpwave_isa::opcode::Opcode;

/// A file of routines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum File {
    F32,
    F64,
    Integer,
}

/// Tags of the selected form of a file.
type Forms = [&'static str; 3];

const WORDS: [&str; 11] = [
    "rn", "rz", "rm", "rp", "directed", "ftz", "exact", "div", "rem", "s", "u",
];

impl File {
    fn text(self) -> &'static str {
        match self {
            File::F32 => include_str!("../routines/f32.ptx"),
            File::F64 => include_str!("../routines/f64.ptx"),
            File::Integer => include_str!("../routines/integer.ptx"),
        }
    }

    /// Returns the functions of the file in one form. Each form is parsed once per process.
    fn functions(self, forms: Forms) -> &'static Checked<'static, 'static> {
        static READ: Mutex<BTreeMap<(File, Forms), &'static Checked<'static, 'static>>> = Mutex::new(BTreeMap::new());
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry((self, forms)).or_insert_with(|| {
            let text: &'static str = Box::leak(in_forms(self.text(), &forms).into_boxed_str());
            let output = parse::parse(text);
            let module = Box::leak(Box::new(output.module));
            let (checked, findings) = check::check(module);
            let faults: Vec<String> = output
                .findings
                .iter()
                .chain(&findings)
                .map(|finding| finding.render("routines", text))
                .collect();
            assert!(faults.is_empty(), "{self:?} in {forms:?}: {}", faults.join("\n"));
            Box::leak(Box::new(checked))
        })
    }

    fn function(self, name: &str, forms: Forms) -> &'static Body<'static, 'static> {
        let mut bodies = self.functions(forms).bodies.iter();
        let found = bodies.find(|body| body.function.name.text == name);
        found.unwrap_or_else(|| panic!("the library {self:?} has no function {name}"))
    }
}

/// Returns the lines of one form, with `ROUND` replaced by the rounding mode.
fn in_forms(text: &str, forms: &Forms) -> String {
    let mut out = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    for line in text.lines() {
        let line = match line.split_once(':') {
            Some((word, rest)) if WORDS.contains(&word) => Some(rest).filter(|_| forms.contains(&word)),
            _ => Some(line),
        };
        out.extend(line);
        out.push('\n');
    }
    out.replace("ROUND", forms[0])
}

fn rounding_forms(round: Round, ftz: bool) -> Forms {
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
    fn routine(&mut self, body: &'static Body<'static, 'static>, sources: &[Arg]) -> Vec<Home> {
        let guard = std::mem::replace(&mut self.guard, When::ALWAYS);
        let mut frame = Frame::of(body, &mut self.code, &mut self.places);
        frame.line = Some(self.line);
        let homes = frame.homes.clone();
        for ((home, ty), &source) in homes.iter().zip(&body.registers).skip(1).zip(sources) {
            if let Home::Words(word) = *home {
                self.copy(word, source, *ty);
            }
        }
        self.frames.push(frame);
        self.steps();
        self.frames.pop();
        self.guard = guard;
        homes
    }

    /// Expands an exact quotient (`div`), reciprocal (`rcp`) or square root (`sqrt`).
    pub(super) fn exact_float(&mut self, form: &Form<'t, 'a>, round: Round, result: Word, sources: &[Arg]) -> Selected {
        let ty = form.ty();
        let file = match ty {
            Type::F32 => File::F32,
            Type::F64 => File::F64,
            _ => return Err(form.unsupported()),
        };
        let (quick, slow) = match form.opcode() {
            "div" => ("quick_div", "slow_div"),
            "rcp" => ("quick_rcp", "slow_div"),
            "sqrt" => ("quick_sqrt", "slow_sqrt"),
            _ => return Err(form.unsupported()),
        };
        let forms = rounding_forms(round, form.has(".ftz"));
        let [quick, slow] = [quick, slow].map(|name| file.function(name, forms));
        let one = if ty == Type::F64 {
            1f64.to_bits()
        } else {
            1f32.to_bits().into()
        };
        let slow_sources = match sources {
            &[divisor] if form.opcode() == "rcp" => vec![Arg::imm(one), divisor],
            _ => sources.to_vec(),
        };
        let behind = self.around_guard();
        let homes = self.routine(quick, sources);
        let far = match homes.get(1 + sources.len()) {
            Some(&Home::Flag(far)) => When::flag(far),
            _ => self.division_check(sources),
        };
        let value = self.code.group(ty.bits().div_ceil(32) as u8);
        self.take_result(value, &homes, ty);
        let done = self.jump_where(far.negated());
        let homes = self.routine(slow, &slow_sources);
        self.take_result(value, &homes, ty);
        self.label(done);
        self.copy(result, Arg::word(value), ty);
        if let Some(label) = behind {
            self.label(label);
        }
        Ok(())
    }

    /// Expands `rsqrt` of a 64-bit float.
    pub(super) fn double_rsqrt(&mut self, result: Word, a: Arg) {
        let body = File::F64.function("rsqrt", rounding_forms(Round::Nearest, false));
        let homes = self.routine(body, &[a]);
        self.take_result(result, &homes, Type::F64);
    }

    /// Expands integer `div` and `rem` of extended sources.
    pub(super) fn integer_division(&mut self, form: &Form<'t, 'a>, result: Word, sources: [Arg; 2]) {
        let ty = form.ty();
        let which = if form.opcode() == "rem" { "rem" } else { "div" };
        let forms = ["", which, if ty.is_signed() { "s" } else { "u" }];
        let (name, branches) = match ty.bits() {
            64 => ("of_64", true),
            32 => ("of_32", false),
            _ => ("of_16", false),
        };
        let behind = if branches { self.around_guard() } else { None };
        let homes = self.routine(File::Integer.function(name, forms), &sources);
        self.take_result(result, &homes, ty);
        if let Some(label) = behind {
            self.label(label);
        }
    }

    /// Returns a predicate that is true where the fast 32-bit quotient is not exact.
    fn division_check(&mut self, sources: &[Arg]) -> When {
        let flag = self.code.flag();
        self.emit(Op::row(Opcode::Fchk).src(sources).flags(flag));
        When::flag(flag)
    }

    fn take_result(&mut self, to: Word, homes: &[Home], ty: Type) {
        if let Some(&Home::Words(word)) = homes.first() {
            self.copy(to, Arg::word(word), ty);
        }
    }

    /// Emits a branch to a new label and returns the label.
    pub(super) fn jump_where(&mut self, when: When) -> usize {
        let label = self.new_label();
        self.jump(label, when);
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
                assert_eq!(File::F32.functions(rounding_forms(round, ftz)).bodies.len(), 5);
            }
            assert_eq!(File::F64.functions(rounding_forms(round, false)).bodies.len(), 6);
        }
        for which in ["div", "rem"] {
            for sign in ["s", "u"] {
                assert_eq!(File::Integer.functions(["", which, sign]).bodies.len(), 3);
            }
        }
    }

    #[test]
    fn select_lines_drops_other_forms_and_inserts_rounding() {
        let text = "rz:\tone;\nrn:\ttwo.ROUND;\nLABEL:\n\tthree;";
        let got = in_forms(text, &["rn", "", "exact"]);
        assert!(got.ends_with("\n\n\ttwo.rn;\nLABEL:\n\tthree;\n"), "{got}");
    }
}
