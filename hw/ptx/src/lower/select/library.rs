//! Library of instructions that are expanded into other instructions.
//!
//! `lower/routines/forms.txt` holds the full name and the PTX code of each. The registers declared first are the instruction's
//! operands in order: results, then sources. Lists and pairs are flattened, and an address is a number.
//!
//! A name can have alternatives: `mul24.<lo|hi>.<u32|s32>`. In the code, `$1` and `$2` stand for the chosen ones. A line after
//! `hi:` belongs to the code only if `hi` was chosen.

use super::{Form, Frame, Selected, Selector, VLoc};
use crate::ast::Type;
use crate::check::{self, Body, Value};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, Wide};
use crate::lower::select::memory::space_of;
use crate::parse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, OnceLock, PoisonError};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

const FORMS: &str = include_str!("../routines/forms.txt");

/// All instructions of the library, by [`key`].
struct Library(HashMap<u64, Entry>);

/// An instruction of the library. Its code is expanded on first use, because most programs use few.
struct Entry {
    name: String,
    /// The name with alternatives, and the code for all of them.
    pattern: &'static str,
    /// Chosen alternatives.
    chosen: Vec<&'static str>,
    code: OnceLock<String>,
}

impl Entry {
    fn code(&self) -> &str {
        self.code.get_or_init(|| {
            let code = self.pattern.split_once('\n').map_or("", |(_, code)| code);
            expand_pattern(code, name_words(self.pattern), &self.chosen)
        })
    }
}

impl Library {
    /// Returns the library. The first call reads the file of forms.
    fn get() -> &'static Library {
        static CACHE: OnceLock<Library> = OnceLock::new();
        CACHE.get_or_init(|| {
            let mut entries = HashMap::new();
            for pattern in FORMS.split("\n== ").skip(1) {
                for (name, chosen) in alternatives(pattern.lines().next().unwrap_or_default()) {
                    let entry = Entry {
                        pattern,
                        chosen,
                        code: OnceLock::new(),
                        name,
                    };
                    entries.insert(key([entry.name.as_str()].into_iter()), entry);
                }
            }
            Library(entries)
        })
    }

    /// Returns the code of the instruction with this name, given in pieces.
    fn code<'w>(&self, mut words: impl Iterator<Item = &'w str> + Clone) -> Option<&str> {
        // The lookup allocates no string, because most instructions are not in the library.
        let entry = self.0.get(&key(words.clone()))?;
        let rest = words.try_fold(entry.name.as_str(), |rest, word| rest.strip_prefix(word))?;
        rest.is_empty().then(|| entry.code())
    }
}

/// Hashes a name independently of how it is divided (FNV-1a).
fn key<'w>(words: impl Iterator<Item = &'w str>) -> u64 {
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    words.flat_map(str::bytes).fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Returns every name of a pattern, with its chosen alternatives.
fn alternatives(pattern: &'static str) -> Vec<(String, Vec<&'static str>)> {
    let Some((before, rest)) = pattern.split_once('<') else {
        return vec![(pattern.to_owned(), Vec::new())];
    };
    let (choices, rest) = rest.split_once('>').expect("an alternative is closed");
    let tails = alternatives(rest);
    let all = choices.split('|').flat_map(|choice| {
        tails.iter().map(move |(tail, chosen)| {
            let chosen = std::iter::once(choice).chain(chosen.iter().copied());
            (format!("{before}{choice}{tail}"), chosen.collect())
        })
    });
    all.collect()
}

/// Splits an alternative into words: `.relu.satfinite` has two.
fn words(choice: &str) -> impl Iterator<Item = &str> {
    choice.split('.').filter(|word| !word.is_empty())
}

/// Returns all words of the alternatives in an entry's name.
fn name_words(entry: &'static str) -> HashSet<&'static str> {
    let name = entry.lines().next().unwrap_or_default();
    let choices = name.split('<').skip(1).filter_map(|part| part.split('>').next());
    choices.flat_map(|choices| choices.split('|')).flat_map(words).collect()
}

/// Returns the code of one choice of alternatives.
fn expand_pattern(code: &str, known: HashSet<&str>, chosen: &[&str]) -> String {
    let is_chosen = |expected: &str| {
        chosen
            .iter()
            .flat_map(|choice| words(choice))
            .any(|word| word == expected)
    };
    let mut out = String::new();
    for line in code.lines() {
        let mut line = line.trim_start();
        let mut belongs = true;
        while let Some((word, rest)) = line.split_once(':').filter(|(word, _)| known.contains(word)) {
            belongs &= is_chosen(word);
            line = rest.trim_start();
        }
        if belongs {
            out += line;
            out.push('\n');
        }
    }
    for (n, choice) in (1..).zip(chosen) {
        out = out.replace(&format!("${n}"), choice);
    }
    out
}

/// Parses the code of a function, once per process. `None` if it is not PTX, for wrong qualifiers of the user's instruction.
fn body(code: &str) -> Option<&'static Body<'static, 'static>> {
    static CACHE: Mutex<BTreeMap<String, &'static Body<'static, 'static>>> = Mutex::new(BTreeMap::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(body) = cache.get(code) {
        return Some(body);
    }
    // A target that allows every instruction the library uses.
    let text = format!(".version 8.6\n.target sm_90a\n.address_size 64\n.func f() {{\n{code}}}\n").leak();
    let output = parse::parse(text);
    let module = Box::leak(Box::new(output.module));
    let (checked, findings) = check::check(module);
    if !(output.findings.is_empty() && findings.is_empty()) {
        return None;
    }
    let body = &Box::leak(Box::new(checked)).bodies[0];
    cache.insert(code.to_owned(), body);
    Some(body)
}

/// Returns the library code of an instruction. The vendor's assembler takes a modifier on either side of the types.
pub(super) fn code_of(form: &Form<'_, '_>) -> Option<&'static str> {
    let (library, opcode) = (Library::get(), std::iter::once(form.opcode()));
    let qualifiers = form.op.instruction.qualifiers.iter().map(|name| name.text);
    let as_written = library.code(opcode.clone().chain(qualifiers.clone()));
    let is_type = |word: &&str| Type::from_dotted(word).is_some();
    let is_modifier = |word: &&str| !is_type(word);
    as_written.or_else(|| {
        let mut late = qualifiers
            .clone()
            .skip_while(is_modifier)
            .filter(is_modifier)
            .peekable();
        late.peek()?;
        // `.lo` and `.hi` have their place in the name.
        let is_movable = late.all(|word| ![".lo", ".hi"].contains(&word));
        let types_last = qualifiers.clone().filter(is_modifier).chain(qualifiers.filter(is_type));
        library.code(opcode.chain(types_last)).filter(|_| is_movable)
    })
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Inlines library code for an instruction. A false guard skips all of it.
    pub(super) fn expand(&mut self, form: &Form<'t, 'a>, code: &str) -> Selected {
        let body = body(code).ok_or_else(|| form.unsupported())?;
        let mut frame = Frame::of(body, &mut self.code, &mut self.label_blocks);
        frame.line = Some(self.line);
        let locations: Vec<(VLoc, Type)> = frame
            .locations
            .iter()
            .copied()
            .zip(body.registers.iter().copied())
            .collect();
        // One branch over all of it, because library code has guards of its own.
        let skip_label = self.skip_if_guarded();
        let n_results = self.copy_operands(form, &locations)?;
        let n_findings = self.findings.len();
        self.frames.push(frame);
        self.select_steps();
        self.frames.pop();
        // The guard of the last inlined instruction does not apply to the results.
        self.guard = VGuard::ALWAYS;
        if self.findings.len() > n_findings {
            // The findings refer to the library's text, which the user does not see.
            self.findings.truncate(n_findings);
            return Err(form.unsupported());
        }
        self.copy_results(form, &locations, n_results)?;
        self.end_skip(skip_label);
        Ok(())
    }

    /// Copies the sources to the code's registers after the results, and returns the number of results.
    fn copy_operands(&mut self, form: &Form<'t, 'a>, locations: &[(VLoc, Type)]) -> Result<usize, Diagnostic> {
        let mut locations = locations.iter();
        let mut n_results = 0;
        for (n, operand) in form.operands().iter().enumerate() {
            // The first operand of a store is its address.
            let is_result = n == 0 && !matches!(operand, Value::Address(..));
            for value in flattened(operand) {
                let Some(&(location, ty)) = locations.next() else {
                    return Err(form.malformed("more operands than this instruction takes"));
                };
                match location {
                    _ if is_result => n_results += 1,
                    VLoc::VPred(pred) => {
                        let source = self.src_pred(form, value)?;
                        self.copy_pred(Some(pred), source);
                    }
                    VLoc::VReg(word) => {
                        let source = self.operand(form, n, value, ty)?;
                        self.copy(word, source, ty);
                    }
                }
            }
        }
        Ok(n_results)
    }

    /// Returns a source, or an address as a number.
    fn operand(&mut self, form: &Form<'t, 'a>, n: usize, value: &Value<'a>, ty: Type) -> Result<Arg, Diagnostic> {
        let wide = ty.bits() == 64;
        if let Value::Address(..) = value {
            let space = match space_of(form) {
                // The library declares the address register, and its width decides.
                Space::Global | Space::Generic if !wide => Space::Shared,
                Space::Shared | Space::Cluster if wide => Space::Global,
                space => space,
            };
            let mem = self.mem_operand(form, n, space)?;
            let offset = Arg::imm(mem.offset as u64);
            return Ok(match wide {
                true => self.compute(Op::wide(Wide::Add).src(&[mem.base, offset])),
                false => self.compute(Op::machine(Opcode::Iadd3).src(&[mem.base.part(0), offset.part(0)])),
            });
        }
        let value = inner_register(value);
        if matches!(value, Value::Register(_)) && (self.word_count(value) == 2) != wide {
            return Err(form.malformed("a register has the wrong width for this instruction"));
        }
        self.arg(form, value, ty)
    }

    /// Copies the code's first `n` registers to the results of the instruction.
    fn copy_results(&mut self, form: &Form<'t, 'a>, locations: &[(VLoc, Type)], n: usize) -> Selected {
        let Some(operand) = form.operands().first().filter(|_| n > 0) else {
            return Ok(());
        };
        for (value, &(location, ty)) in flattened(operand).into_iter().zip(locations) {
            match location {
                VLoc::VPred(pred) => {
                    let result = self.dst_pred(form, value)?;
                    self.copy_pred(result, VGuard::pred(pred));
                }
                VLoc::VReg(word) => {
                    let value = inner_register(value);
                    if matches!(value, Value::Register(_)) && (self.word_count(value) == 2) != (ty.bits() == 64) {
                        return Err(form.malformed("a register has the wrong width for this instruction"));
                    }
                    let result = self.dst_of(form, value, ty)?;
                    self.copy(result, Arg::vreg(word), ty);
                }
            }
        }
        Ok(())
    }
}

/// Flattens lists and pairs.
fn flattened<'v, 'a>(value: &'v Value<'a>) -> Vec<&'v Value<'a>> {
    match value {
        Value::Vector(parts) => parts.iter().flat_map(flattened).collect(),
        Value::Pair(first, second) => flattened(first).into_iter().chain(flattened(second)).collect(),
        single => vec![single],
    }
}

/// Returns the register of a negated or selected operand.
fn inner_register<'v, 'a>(value: &'v Value<'a>) -> &'v Value<'a> {
    match value {
        Value::Part(inner, _) | Value::Minus(inner) => inner_register(inner),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_parses_without_findings() {
        let library = Library::get();
        assert!(library.0.len() > 100);
        for entry in library.0.values() {
            assert!(body(entry.code()).is_some(), "{}", entry.name);
        }
    }

    #[test]
    fn library_windows_match_the_machine() {
        use warpwave_isa::space::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, SHARED_WINDOWS_BYTES, WINDOW_BYTES};
        let holds = |name: &str, numbers: &[u64]| {
            let code = Library::get().code([name].into_iter()).unwrap();
            numbers.iter().all(|number| code.contains(&format!("{number:#x};")))
        };
        assert!(holds(
            "isspacep.shared::cluster",
            &[SHARED_WINDOW, SHARED_WINDOWS_BYTES]
        ));
        assert!(holds("isspacep.local", &[LOCAL_WINDOW, WINDOW_BYTES]));
        assert!(holds("isspacep.param", &[PARAM_WINDOW, WINDOW_BYTES]));
        assert!(holds(
            "isspacep.global",
            &[SHARED_WINDOW, PARAM_WINDOW + 2 * WINDOW_BYTES - SHARED_WINDOW]
        ));
        assert_eq!(WINDOW_BYTES, 1 << 24);
    }

    #[test]
    fn expansion_inserts_choices_and_drops_other_lines() {
        let known = name_words("op.<lo|hi><|.sat>\n");
        let code = "a.$1 b;\nhi: c;\nsat: lo: d$2;\nlabel:\n";
        assert_eq!(
            expand_pattern(code, known, &["lo", ".sat"]),
            "a.lo b;\nd.sat;\nlabel:\n"
        );
        let names: Vec<String> = alternatives("x<|.y>.<a|b>").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["x.a", "x.b", "x.y.a", "x.y.b"]);
    }
}
