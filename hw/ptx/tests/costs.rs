//! Cost of a PTX instruction in machine instructions, slow paths included, against the vendor's assembler.
//!
//! The vendor's counts are from ptxas 13.5 for sm_80: kernel code with the instruction minus the code without it.

/// Instructions and the vendor's counts.
const VENDOR: [(&str, usize); 24] = [
    ("div.rn.f32 %f3, %f1, %f2;", 112),
    ("rcp.rn.f32 %f3, %f1;", 65),
    ("sqrt.rn.f32 %f3, %f1;", 36),
    ("div.full.f32 %f3, %f1, %f2;", 8),
    ("div.approx.f32 %f3, %f1, %f2;", 5),
    ("ex2.approx.f32 %f3, %f1;", 4),
    ("lg2.approx.f32 %f3, %f1;", 4),
    ("rsqrt.approx.f32 %f3, %f1;", 4),
    ("sin.approx.f32 %f3, %f1;", 2),
    ("ex2.approx.ftz.f32 %f3, %f1;", 1),
    ("div.s32 %r3, %r1, %r2;", 24),
    ("rem.s32 %r3, %r1, %r2;", 22),
    ("div.u32 %r3, %r1, %r2;", 18),
    ("rem.u32 %r3, %r1, %r2;", 17),
    ("div.rn.f64 %d3, %d1, %d2;", 109),
    ("sqrt.rn.f64 %d3, %d1;", 59),
    ("div.s64 %l3, %l1, %l2;", 88),
    ("rem.u64 %l3, %l1, %l2;", 68),
    ("mul.hi.u64 %l3, %l1, %l2;", 7),
    ("mul.lo.s64 %l3, %l1, %l2;", 4),
    ("add.s64 %l3, %l1, %l2;", 2),
    ("fma.rn.f32 %f3, %f1, %f2, %f1;", 1),
    ("mad.lo.s32 %r3, %r1, %r2, %r1;", 1),
    ("add.s32 %r3, %r1, %r2;", 1),
];

/// Counts the instructions of a kernel that loads two values of each kind and stores a third.
fn count(instruction: &str, kind: char, stored: u32) -> usize {
    let ty = match kind {
        'f' => "f32",
        'r' => "u32",
        'd' => "f64",
        _ => "u64",
    };
    let text = format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p)\n{{\n.reg .b64 %p, %l<4>;\n.reg .f32 %f<4>;\n.reg .f64 %d<4>;\n\
         .reg .b32 %r<4>;\nld.param.u64 %p, [p];\nld.global.{ty} %{kind}1, [%p];\nld.global.{ty} %{kind}2, [%p+8];\n{instruction}\n\
         st.global.{ty} [%p+16], %{kind}1;\nst.global.{ty} [%p+24], %{kind}{stored};\nret;\n}}\n"
    );
    let module = warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    let program = module.entries[0].program().as_ref();
    let program = program.unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    program.code().len()
}

#[test]
fn slow_operations_cost_about_as_much_as_with_the_vendors_assembler() {
    let mut far = Vec::new();
    for (instruction, vendor) in VENDOR {
        let kind = instruction.split('%').nth(1).unwrap().chars().next().unwrap();
        // The kernel without the instruction stores a source instead: the last one.
        let last = if instruction.matches('%').count() > 2 { 2 } else { 1 };
        let ours = count(instruction, kind, 3) - count("", kind, last);
        println!("{instruction:34} {ours:4} {vendor:4}");
        if ours.abs_diff(vendor) > vendor / 3 + 1 {
            far.push(instruction);
        }
    }
    assert!(far.is_empty(), "more than a third plus one off: {far:?}");
}
