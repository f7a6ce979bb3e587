//! Lists of PTX forms: supported and refused ones (`forms.txt`), malformed ones (`malformed.txt`), and forms for newer GPUs
//! (`capabilities.txt`).

use std::collections::{HashMap, HashSet};

/// Returns every form that a line stands for.
fn alternatives(line: &str) -> Vec<String> {
    let Some((before, rest)) = line.split_once('<') else {
        return vec![line.to_owned()];
    };
    let (choices, rest) = rest.split_once('>').expect("an alternative is closed");
    let tails = alternatives(rest);
    let all = choices
        .split('|')
        .flat_map(|choice| tails.iter().map(move |tail| format!("{before}{choice}{tail}")));
    all.collect()
}

fn module(form: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 param) {{\n\
         .reg .pred %p<8>;\n.reg .b8 %b<4>;\n.reg .b16 %h<16>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n.reg .b128 %q<4>;\n\
         .reg .u32 %u<2>;\n.reg .f32 %f<2>;\n.reg .u64 %v<2>;\n.reg .f64 %g<2>;\n.shared .align 16 .b8 buffer[1024];\n{form}\nret;\n}}\n"
    )
}

/// Returns the first finding of a kernel with one form.
fn finding(form: &str) -> Option<String> {
    let text = module(form);
    let shown = |findings: &[warpwave_ptx::Diagnostic]| findings[0].render("form", &text);
    match warpwave_ptx::compile(&text) {
        Err(findings) => Some(shown(&findings)),
        Ok(module) => module.entries[0]
            .program()
            .as_ref()
            .err()
            .map(|findings| shown(findings)),
    }
}

/// Returns the supported forms, and the refused ones.
fn forms() -> [Vec<String>; 2] {
    let (run, refused) = include_str!("forms.txt").split_once("==== refused").expect("two parts");
    [run, refused].map(listed)
}

/// Returns every form of a list.
fn listed(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(alternatives).collect()
}

#[test]
fn forms_outside_ptx_are_malformed() {
    let forms = listed(include_str!("malformed.txt"));
    assert!(forms.len() > 300, "{}", forms.len());
    let taken: Vec<String> = forms
        .into_iter()
        .filter_map(|form| {
            let found = finding(&form).unwrap_or_default();
            (!found.starts_with("error: ")).then(|| format!("{form} {found}"))
        })
        .collect();
    assert!(taken.is_empty(), "{}", taken.join("\n"));
}

/// The lists in `forms.txt` have the lengths that the vendor's assembler takes. One register less or more is malformed.
#[test]
fn fragments_of_another_length_are_malformed() {
    let [run, _] = forms();
    let is_product = |form: &&String| {
        ["mma.", "wmma.", "wgmma.mma_async."]
            .iter()
            .any(|name| form.starts_with(name))
    };
    let mut taken = Vec::new();
    for form in run.iter().filter(is_product) {
        for (at, _) in form.match_indices('{') {
            let end = at + form[at..].find('}').expect("a list is closed");
            let names: Vec<&str> = form[at + 1..end].split(", ").collect();
            let (shorter, longer) = (
                names[1..].join(", "),
                [names.as_slice(), &names[..1]].concat().join(", "),
            );
            for other in [shorter, longer] {
                let text = format!("{}{{{other}}}{}", &form[..at], &form[end + 1..]);
                let found = finding(&text).unwrap_or_default();
                let expected = format!("of {} bits", if form[at..].starts_with("{%d") { 64 } else { 32 });
                if !(found.starts_with("error: ") && found.contains(&expected)) {
                    taken.push(format!("{text} {found}"));
                }
            }
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n"));
}

/// Versions and verdicts are those of the vendor's assembler (ptxas 11.8).
#[test]
fn texts_of_old_ptx_versions_need_fewer_modifiers() {
    let is_valid = |version: &str, form: &str| {
        let text = module(form).replace(".version 8.6", &format!(".version {version}"));
        warpwave_ptx::compile(&text.replace("sm_90a", "sm_13")).is_ok()
    };
    let first_refused = [
        ("div.f32 %f1, %f1, %f1;", "1.4"),
        ("div.f64 %g1, %g1, %g1;", "1.4"),
        ("sqrt.f32 %f1, %f1;", "1.4"),
        ("rcp.f32 %f1, %f1;", "1.4"),
        ("sin.f32 %f1, %f1;", "1.4"),
        ("rsqrt.f32 %f1, %f1;", "1.4"),
        ("mad.f64 %g1, %g1, %g1, %g1;", "1.4"),
        ("mad.f32 %f1, %f1, %f1, %f1;", "3.2"),
        ("fma.f32 %f1, %f1, %f1, %f1;", "1.0"),
        ("cvt.f32.f64 %f1, %g1;", "1.0"),
        ("cvt.s32.f32 %r1, %f1;", "1.0"),
        ("mul.u32 %r1, %r2, %r3;", "1.0"),
    ];
    for (form, first) in first_refused {
        for version in ["1.0", "1.3", "1.4", "2.0", "3.1", "3.2", "8.6"] {
            // These versions compare as text.
            assert_eq!(is_valid(version, form), version < first, "{form} in {version}");
        }
    }
}

/// The vendor's assembler (ptxas 13.5) takes these modifiers on either side of the type. Headers of CUDA write `max.s32.relu`.
#[test]
fn modifier_after_the_type_gives_the_code_of_one_before_it() {
    let code = |form: &str| {
        let text = module(form);
        let compiled = warpwave_ptx::compile(&text).unwrap_or_else(|found| panic!("{form}: {}", found[0].message));
        let program = compiled.entries[0].program().clone();
        let program = program.unwrap_or_else(|found| panic!("{form}: {}", found[0].message));
        program.code().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let pairs = [
        (
            "min.s32.relu",
            "min.relu.s32",
            "%r1, %r2, %r3; st.global.u32 [%d1], %r1;",
        ),
        (
            "max.s32.relu",
            "max.relu.s32",
            "%r1, %r2, %r3; st.global.u32 [%d1], %r1;",
        ),
        (
            "min.s16x2.relu",
            "min.relu.s16x2",
            "%r1, %r2, %r3; st.global.u32 [%d1], %r1;",
        ),
        (
            "max.s16x2.relu",
            "max.relu.s16x2",
            "%r1, %r2, %r3; st.global.u32 [%d1], %r1;",
        ),
        (
            "min.f32.xorsign.abs",
            "min.xorsign.abs.f32",
            "%f1, %f0, %f0; st.global.f32 [%d1], %f1;",
        ),
        ("add.s32.sat", "add.sat.s32", "%r1, %r2, %r3; st.global.u32 [%d1], %r1;"),
        (
            "mad.hi.s32.sat",
            "mad.hi.sat.s32",
            "%r1, %r2, %r3, %r4; st.global.u32 [%d1], %r1;",
        ),
        (
            "fma.rn.f16.relu",
            "fma.rn.relu.f16",
            "%h1, %h2, %h3, %h4; st.global.u16 [%d1], %h1;",
        ),
        (
            "cvt.f16.f32.rn.relu",
            "cvt.rn.relu.f16.f32",
            "%h1, %f0; st.global.u16 [%d1], %h1;",
        ),
        (
            "cvt.pack.u16.s32.sat",
            "cvt.pack.sat.u16.s32",
            "%r1, %r2, %r3; st.global.u32 [%d1], %r1;",
        ),
        (
            "bfind.u64.shiftamt",
            "bfind.shiftamt.u64",
            "%r1, %d2; st.global.u32 [%d1], %r1;",
        ),
        (
            "szext.u32.clamp",
            "szext.clamp.u32",
            "%r1, %r2, %r3; st.global.u32 [%d1], %r1;",
        ),
        (
            "slct.s32.f32.ftz",
            "slct.ftz.s32.f32",
            "%r1, %r2, %r3, %f0; st.global.u32 [%d1], %r1;",
        ),
    ];
    for (after, before, operands) in pairs {
        assert_eq!(
            code(&format!("{after} {operands}")),
            code(&format!("{before} {operands}")),
            "{after}"
        );
    }
    // These words are parts of the name, with a place of their own.
    assert!(finding("mul24.s32.lo %r1, %r2, %r3;").is_some());
}

#[test]
fn listed_forms_run_or_are_refused_by_name() {
    let [run, refused] = forms();
    println!("{} forms are run, {} refused", run.len(), refused.len());
    assert!(run.len() > 1800, "{}", run.len());
    let faults: Vec<String> = run.iter().filter_map(|form| finding(form)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for form in refused {
        let found = finding(&form).unwrap_or_else(|| panic!("{form} is run: move it to the first part"));
        let opcode = form.split('.').next().unwrap();
        assert!(
            found.starts_with("unsupported: ") && found.contains(&format!("`{opcode}")),
            "{form}: {found}"
        );
    }
}

/// Returns whether a GPU of a compute capability may run a form. The text's target is older than all listed capabilities.
fn may_run(form: &str, capability: u32) -> bool {
    let text = module(form).replace("sm_90a", "sm_50");
    let module = warpwave_ptx::compile(&text).unwrap_or_else(|found| panic!("{form}: {}", found[0].message));
    module.unmet_requirements(capability).is_empty()
}

#[test]
fn form_runs_from_its_compute_capability_on() {
    const CAPABILITIES: [u32; 9] = [70, 72, 75, 80, 86, 89, 90, 100, 120];
    let sections = include_str!("capabilities.txt").split("== ").skip(1);
    let mut needed: HashMap<String, u32> = HashMap::new();
    let mut never = HashSet::new();
    for section in sections {
        let (capability, list) = section.split_once('\n').unwrap();
        match capability.parse() {
            Ok(capability) => needed.extend(listed(list).into_iter().map(|form| (form, capability))),
            Err(_) => never.extend(listed(list)),
        }
    }
    assert!(needed.len() > 450, "{}", needed.len());
    let [run, _] = forms();
    let others = run
        .into_iter()
        .filter(|form| !needed.contains_key(form) && !never.contains(form));
    let all: Vec<(String, u32)> = others.map(|form| (form, 70)).chain(needed.clone()).collect();
    let faults: Vec<String> = all
        .into_iter()
        .filter(|(form, needed)| CAPABILITIES.iter().any(|&gpu| may_run(form, gpu) != (gpu >= *needed)))
        .map(|(form, needed)| {
            let from = CAPABILITIES.iter().find(|&&gpu| may_run(&form, gpu));
            format!("needs {needed}, runs from {from:?}: {form}")
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn unknown_qualifier_is_reported_for_every_form() {
    let [run, _] = forms();
    let passed: Vec<String> = run
        .iter()
        .filter_map(|form| {
            let first = form.split(';').next().unwrap();
            let (name, operands) = first.split_once(' ').unwrap_or((first, ""));
            let changed = format!("{name}.bogus {operands};");
            finding(&changed).is_none().then_some(changed)
        })
        .collect();
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}

/// Splits operands at commas outside brackets and braces.
fn operands(text: &str) -> Vec<String> {
    let mut depth = 0;
    let at_top = |letter: char| {
        depth += i32::from("{[".contains(letter)) - i32::from("}]".contains(letter));
        letter == ',' && depth == 0
    };
    text.split(at_top).map(|operand| operand.trim().to_owned()).collect()
}

/// Changes qualifiers and operands at random: exchanged, left out or added.
#[test]
fn randomly_changed_forms_never_panic() {
    const OTHERS: [&str; 28] = [
        "%r1",
        "%d1",
        "%h1",
        "%p1",
        "%q1",
        "%b1",
        "{%r1, %r2}",
        "{%d1, %d2}",
        "[%r1]",
        "[%d1]",
        "[buffer]",
        "[param]",
        "_",
        "-5",
        "0f3F800000",
        "!%p1",
        "%r1|%p1",
        "-%r1",
        "%r1.b0",
        "%tid.x",
        "{}",
        "[%d1, {%r1, %r2}]",
        "[%d1, {}]",
        "%clock64",
        "%r1+4",
        "%d1-8",
        "{%r1+1, %h2}",
        "[%d1+64, {%r1+1, %r2}]",
    ];
    let [run, _] = forms();
    let qualifiers: Vec<&str> = run
        .iter()
        .flat_map(|form| form.split([' ', ';']).next().unwrap().split('.').skip(1))
        .collect();
    let mut state = 88_172_645_463_325_252u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    for _ in 0..20_000 {
        let form = run[below(run.len())].split(';').next().unwrap();
        let (name, rest) = form.split_once(' ').unwrap_or((form, ""));
        let mut words: Vec<&str> = name.split('.').collect();
        let mut operands = operands(rest);
        let at = below(words.len());
        match below(4) {
            0 if at > 0 => words[at] = qualifiers[below(qualifiers.len())],
            1 if at > 0 => drop(words.remove(at)),
            2 => words.push(qualifiers[below(qualifiers.len())]),
            _ => {}
        }
        for _ in 0..below(3) {
            let (at, other) = (below(operands.len()), OTHERS[below(OTHERS.len())].to_owned());
            match below(4) {
                0 if operands.len() > 1 => drop(operands.remove(at)),
                1 => operands.push(other),
                _ => operands[at] = other,
            }
        }
        let guard = if below(4) == 0 { "@%p3 " } else { "" };
        let changed = format!("{guard}{} {};", words.join("."), operands.join(", "));
        let found = std::panic::catch_unwind(|| finding(&changed));
        assert!(found.is_ok(), "{changed}");
    }
}
