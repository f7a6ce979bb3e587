//! `forms.txt`: the forms of PTX instructions that are run, and those that are refused by name when a module is loaded.

/// Every form that a line stands for.
fn alternatives(line: &str) -> Vec<String> {
    let Some((before, rest)) = line.split_once('<') else {
        return vec![line.to_owned()];
    };
    let (choices, behind) = rest.split_once('>').expect("an alternative is closed");
    let behind = alternatives(behind);
    let all = choices
        .split('|')
        .flat_map(|choice| behind.iter().map(move |tail| format!("{before}{choice}{tail}")));
    all.collect()
}

fn module(form: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 param) {{\n\
         .reg .pred %p<8>;\n.reg .b8 %b<4>;\n.reg .b16 %h<16>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n.reg .b128 %q<4>;\n\
         .shared .align 16 .b8 buffer[1024];\n{form}\nret;\n}}\n"
    )
}

/// The first finding in a kernel of one form, if there is any.
fn finding(form: &str) -> Option<String> {
    let text = module(form);
    let shown = |findings: &[warpwave_ptx::Diagnostic]| findings[0].render("form", &text);
    match warpwave_ptx::compile(&text) {
        Err(findings) => Some(shown(&findings)),
        Ok(module) => module.entries[0].program.as_ref().err().map(|findings| shown(findings)),
    }
}

#[test]
fn forms_are_run_or_refused_by_name_as_the_list_says() {
    let (run, refused) = include_str!("forms.txt").split_once("==== refused").expect("two parts");
    let forms = |part: &str| -> Vec<String> {
        let lines = part.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.flat_map(alternatives).collect()
    };
    let (run, refused) = (forms(run), forms(refused));
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
