//! Lowering pass by pass: `tests/lower` holds PTX and the expected code after a pass, under a line `== pass`.
//!
//! The expected code is written by hand from the rule of the pass.

use std::fs;
use std::path::{Path, PathBuf};
use warpwave_isa::opcode::Opcode;
use warpwave_ptx::{Relocation, Severity};

/// Splits a case into the PTX text and the sections: name of a pass, and the code after it.
fn sections(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = text.split("== ");
    let ptx = parts.next().unwrap();
    (ptx, parts.map(|part| part.split_once('\n').unwrap()).collect())
}

/// Returns the files of `tests/lower` with their text.
fn cases() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lower");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = paths
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

#[test]
fn each_pass_has_a_case_with_code_before_and_after() {
    let ptx = ".version 7.8\n.target sm_80\n.entry k() { ret; }\n";
    let stages = warpwave_ptx::stages(ptx, "k").unwrap();
    let cases = cases();
    let shows = |pair: &[(&str, String)]| {
        let holds = |text: &str, name: &str| sections(text).1.iter().any(|(section, _)| *section == name);
        cases
            .iter()
            .any(|(_, text)| pair.iter().all(|(name, _)| holds(text, name)))
    };
    let missing: Vec<_> = stages
        .windows(2)
        .filter(|pair| !shows(pair))
        .map(|pair| pair[1].0)
        .collect();
    assert!(
        missing.is_empty(),
        "write a case in tests/lower with the sections of these passes and of those before them: {missing:?}"
    );
}

#[test]
fn each_pass_gives_the_expected_code() {
    for (path, text) in cases() {
        let (ptx, expected) = sections(&text);
        let stages = warpwave_ptx::stages(ptx, "k").unwrap_or_else(|findings| {
            let shown: Vec<_> = findings.iter().map(|finding| finding.render("k", ptx)).collect();
            panic!("{}: {}", path.display(), shown.join("\n"))
        });
        for (pass, code) in expected {
            let (_, found) = stages.iter().find(|(name, _)| *name == pass).unwrap();
            assert_eq!(found.trim_end(), code.trim_end(), "{}, after {pass}", path.display());
        }
    }
}

#[test]
fn compilation_is_deterministic() {
    let ptx = include_str!("ok/triton_softmax.ptx");
    let [first, second] = [(); 2].map(|()| warpwave_ptx::compile(ptx).unwrap());
    let code = |module: &warpwave_ptx::Module| module.entries[0].program().as_ref().unwrap().code().to_vec();
    assert_eq!(code(&first), code(&second));
}

#[test]
fn unsupported_instruction_affects_its_entry_only() {
    let ptx =
        ".version 7.8\n.target sm_80\n.entry a() { tcgen05.wait::st; tcgen05.wait::ld; ret; }\n.entry b() { ret; }\n";
    let module = warpwave_ptx::compile(ptx).unwrap();
    assert_eq!(module.unsupported().count(), 2);
    assert!(module.entry("b").unwrap().program().is_ok());
    let first = module.unsupported().next().unwrap().render("a.ptx", ptx);
    let expected = "\
unsupported: instruction `tcgen05.wait::st`
  --> a.ptx:3:14
  |
3 | .entry a() { tcgen05.wait::st; tcgen05.wait::ld; ret; }
  |              ^^^^^^^^^^^^^^^^
  = help: use `mma.sync`, or `wgmma` in a text for `sm_90a`
";
    assert_eq!(first, expected);
}

#[test]
fn each_read_of_a_timer_stays() {
    let ptx = ".version 7.8\n.target sm_80\n.entry k(.param .u64 p) {\n.reg .b64 %rd<5>;\nld.param.u64 %rd1, [p];\n\
               mov.u64 %rd2, %globaltimer;\nmov.u64 %rd3, %globaltimer;\nsub.s64 %rd4, %rd3, %rd2;\nst.global.u64 [%rd1], %rd4;\nret;\n}\n";
    let module = warpwave_ptx::compile(ptx).unwrap();
    let code = module.entries[0].program().as_ref().unwrap().code();
    let reads = code.iter().filter(|inst| inst.to_string().contains("SR_GLOBALTIMERLO"));
    assert_eq!(reads.count(), 2);
}

#[test]
fn format_in_a_register_that_is_moved_to_itself_is_refused() {
    let ptx = ".version 7.8\n.target sm_80\n.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n\
               .entry k() {\n.reg .b64 %rd<3>; .reg .b32 %r<2>;\nmov.u64 %rd1, %rd2;\nmov.u64 %rd2, %rd1;\n{\n\
               .param .b64 a; .param .b64 b; .param .b32 r;\nst.param.b64 [a], %rd1;\nst.param.b64 [b], 0;\n\
               call.uni (r), vprintf, (a, b);\nld.param.b32 %r1, [r];\n}\nret;\n}\n";
    let module = warpwave_ptx::compile(ptx).unwrap();
    assert_eq!(module.unsupported().count(), 1);
}

/// Checks that two ways to write an operand give the same program.
fn same_code(first: &str, second: &str) {
    let [first, second] = [first, second].map(|code| {
        let text = format!(
            ".version 8.0\n.target sm_90a\n.entry k(.param .u64 p) {{\n.reg .b32 %r<8>; .reg .b64 %rd<8>;\n\
             .shared .align 128 .b8 room[4096];\nld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n{code}\nret;\n}}\n"
        );
        let module =
            warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
        let program = module.entries[0].program().as_ref();
        let program = program.unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
        program.code().iter().map(ToString::to_string).collect::<Vec<_>>()
    });
    assert_eq!(first, second);
}

/// Compiles one instruction and returns how often its code has MMA or HGMMA, and conversions.
fn products_and_conversions(instruction: &str) -> [usize; 2] {
    let text = format!(
        ".version 8.0\n.target sm_90a\n.entry k(.param .u64 p) {{\n.reg .b32 %r<26>; .reg .b64 %p, %x, %y; .reg .pred %q;\n\
         ld.param.u64 %p, [p]; ld.global.v2.b64 {{%x, %y}}, [%p]; setp.eq.u64 %q, %x, %y;\n{}{instruction}\n{}ret;\n}}\n",
        (0..26)
            .map(|n| format!("ld.global.b32 %r{n}, [%p+{}];\n", 4 * n))
            .collect::<String>(),
        (0..4)
            .map(|n| format!("st.global.b32 [%p+{}], %r{n};\n", 4 * n))
            .collect::<String>(),
    );
    let module = warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    let program = module.entries[0].program().as_ref();
    let program = program.unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    let count = |opcodes: &[Opcode]| program.code().iter().filter(|inst| opcodes.contains(&inst.op)).count();
    [
        count(&[Opcode::Mma, Opcode::Hgmma]),
        count(&[Opcode::F2f, Opcode::F2fp, Opcode::Prmt]),
    ]
}

#[test]
fn products_with_f16_accumulators_need_no_conversion() {
    let (c, a, b) = ("{%r0, %r1, %r2, %r3}", "{%r4, %r5, %r6, %r7}", "{%r8, %r9}");
    let (left, right) = (
        "{%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}",
        "{%r12, %r13, %r14, %r15, %r16, %r17, %r18, %r19}",
    );
    let tile = |shape: &str, types: &str, d: &str| {
        format!("wmma.mma.sync.aligned.row.col.{shape}.{types} {d}, {left}, {right}, {c};")
    };
    let wide = "{%r0, %r1, %r2, %r3, %r20, %r21, %r22, %r23}";
    for (instruction, products, conversions) in [
        (
            format!("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{%r0, %r1}}, {a}, {b}, {{%r0, %r1}};"),
            1,
            0,
        ),
        (
            format!("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {{%r0, %r1}}, {b}, {{%r7}}, {{%r2, %r3}};"),
            1,
            0,
        ),
        // Four rows of eight columns are two instructions of four accumulators each.
        (
            format!("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {c}, {{%r4, %r5}}, {b}, {c};"),
            2,
            0,
        ),
        // Each tile is two products of 16 by 8.
        (tile("m16n16k16", "f16.f16", c), 2, 0),
        (tile("m32n8k16", "f16.f16", c), 2, 0),
        (tile("m8n32k16", "f16.f16", c), 2, 0),
        // Halves are widened to f32 results: four conversions and two moves of the upper half for each of two tiles.
        (tile("m16n16k16", "f32.f16", wide), 2, 12),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r0, %r1}, %x, %y, %q, 1, 1, 0, 0;".to_owned(),
            1,
            0,
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e5m2 {%r0, %r1}, %x, %y, %q, 1, 1;".to_owned(),
            1,
            0,
        ),
        // A is negated, so the sum is rounded once to f16.
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r0, %r1}, %x, %y, %q, -1, 1, 0, 0;".to_owned(),
            1,
            0,
        ),
    ] {
        assert_eq!(
            products_and_conversions(&instruction),
            [products, conversions],
            "{instruction}"
        );
    }
}

#[test]
fn offsets_in_handles_and_lists_are_added_before_the_instruction() {
    let copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [room]";
    same_code(
        &format!("{copy}, [%rd1+64, {{%r1+3, %r1}}], [room+2048];"),
        &format!("add.u64 %rd2, %rd1, 64; add.u32 %r2, %r1, 3;\n{copy}, [%rd2, {{%r2, %r1}}], [room+2048];"),
    );
    same_code(
        "st.global.v4.u32 [%rd1], {%r1+1, %r1+2, %r1, %r1-1};",
        "add.u32 %r2, %r1, 1; add.u32 %r3, %r1, 2; add.u32 %r4, %r1, -1;\nst.global.v4.u32 [%rd1], {%r2, %r3, %r1, %r4};",
    );
}

#[test]
fn stack_of_recursive_functions_begins_at_a_multiple_of_8() {
    // The frames of a function have 8-byte values. The kernel's own variable has 4, 8 or 12 bytes.
    let stack = |bytes: u32| {
        let text = format!(
            ".version 8.0\n.target sm_80\n.func f(.reg .b64 %x) {{\n.reg .pred %p;\n\
             setp.eq.u64 %p, %x, 0; @%p ret; call f, (%x); ret;\n}}\n\
             .entry k() {{\n.local .align 4 .b8 own[{bytes}];\n.reg .b64 %x;\n.reg .b32 %r;\n\
             mov.u32 %r, %tid.x; st.local.u32 [own], %r; mov.u64 %x, 3; call f, (%x); ret;\n}}\n"
        );
        let module =
            warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
        module.entries[0].program().as_ref().unwrap().requirements().local_bytes
    };
    let with_8 = stack(8);
    assert_eq!(stack(4), with_8);
    assert_eq!(stack(12), with_8 + 8);
}

/// The code of a kernel after each pass. Its parameters are a pointer `%rd1`, at 0x160, and the words `%r1` to `%r3`, from 0x168 on.
fn passes(code: &str) -> Vec<(&'static str, String)> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p, .param .u32 a, .param .u32 b, .param .u32 c) {{\n\
         .reg .b32 %r<8>; .reg .b64 %rd<8>;\nld.param.u64 %rd1, [p]; ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b];\n\
         ld.param.u32 %r3, [c];\n{code}\nret;\n}}\n"
    );
    warpwave_ptx::stages(&text, "k").unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)))
}

#[test]
fn pair_of_constants_is_one_operand_if_it_begins_at_a_multiple_of_8() {
    let sum = |pair: &str| {
        passes(&format!(
            "mov.b64 %rd2, {{{pair}}}; add.u64 %rd3, %rd2, %rd1; st.global.u64 [%rd1], %rd3;"
        ))
    };
    let reads = |passes: &[(&str, String)], pair: &str| passes.iter().any(|(_, code)| code.contains(pair));
    // An operand of 64 bits in a constant bank is a multiple of 8, as every vector access is aligned to its size.
    assert!(reads(&sum("%r1, %r2"), "c[0x0][0x168]:2"));
    assert!(!reads(&sum("%r2, %r3"), "c[0x0][0x16c]:2"));
}

#[test]
fn shift_and_sum_are_a_multiply_add_if_the_factor_is_a_positive_word() {
    // 2^30 is the greatest power of two that is positive as a signed word.
    for (shift, is_fused) in [(2, true), (30, true), (31, false), (32, false)] {
        let code = format!(
            "mov.u32 %r4, %tid.x; cvt.s64.s32 %rd2, %r4; shl.b64 %rd3, %rd2, {shift}; add.u64 %rd4, %rd3, %rd1;\n\
             st.global.u64 [%rd1], %rd4;"
        );
        let passes = passes(&code);
        let (_, last) = passes.last().unwrap();
        assert_eq!(last.contains("IMAD.WIDE"), is_fused, "shift by {shift}:\n{last}");
    }
}

#[test]
fn module_data_is_placed_filled_and_relocated() {
    let ptx = "\
.version 7.8
.target sm_80
.const .align 8 .f64 half = 0d3FE0000000000000;
.const .b8 bytes[6] = {1, 2, 3};
.global .align 8 .u64 table[2] = {generic(data), data+4};
.global .b32 data[2] = {7};
.extern .shared .align 16 .b8 dynamic[];
.entry k() .reqntid 32, 2 {
    .shared .align 4 .b8 tile[20];
    .reg .b32 %r<3>;
    mov.u32 %r1, dynamic;
    st.shared.u32 [tile+4], %r1;
    ret;
}
";
    let module = warpwave_ptx::compile(ptx).unwrap();
    assert_eq!(module.constant_image, [0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 1, 2, 3, 0, 0, 0]);
    assert_eq!((module.constants[1].offset, module.constants[1].bytes), (8, 6));
    let relocation = |at: u32, addend: u64| Relocation {
        at,
        global: 1,
        addend,
        shift: 0,
        bytes: 8,
    };
    assert_eq!(module.globals[0].bytes, [0; 16]);
    assert_eq!(module.globals[0].relocations, [relocation(0, 0), relocation(8, 4)]);
    assert_eq!(module.globals[1].bytes, [7, 0, 0, 0, 0, 0, 0, 0]);
    let needs = module.entries[0].program().as_ref().unwrap().requirements();
    // 20 bytes of `tile`, then the dynamic part at the next multiple of 16.
    assert_eq!(needs.shared_bytes, 32);
    assert_eq!(needs.required_block, Some([32, 2, 1]));
}

/// Builds a module with this data and two entries. `uses` has the code, and `other` has none.
fn with_data(data: &str, code: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.const .u32 numbers[4];\n.global .u32 words[4];\n.shared .u32 tile[4];\n.global .texref picture;\n\
         .extern .func elsewhere;\n.func near() {{ ret; }}\n{data}\n\
         .entry uses() {{ .reg .b64 %d; .reg .b32 %r; {code} ret; }}\n.entry other() {{ ret; }}\n"
    )
}

#[test]
fn malformed_initial_value_is_an_error_with_its_reason() {
    let cases = [
        (".global .u16 t = words;", "an address in a variable of `.u16`"),
        (".const .u8 t[2] = {1, numbers};", "an address in a variable of `.u8`"),
        (".global .f32 t = words;", "an address in a variable of `.f32`"),
        (".global .f64 t = 0xFF(words);", "an address in a variable of `.f64`"),
        (
            ".global .u64 t = tile;",
            "the address of `tile` cannot be an initial value",
        ),
        (".global .u64 t = nothing;", "undefined symbol `nothing`"),
        (
            ".global .u64 t = near+4;",
            "the address of the function `near` takes no offset and no `generic()`",
        ),
        (
            ".global .u64 t = generic(near);",
            "the address of the function `near` takes no offset and no `generic()`",
        ),
        (
            ".global .u32 t[2] = {1, 2, 3};",
            "more initial values than the variable holds",
        ),
        (
            ".const .u32 t[2] = {1, 2, 3};\n.const .u32 behind[4];",
            "more initial values than the variable holds",
        ),
        (
            ".global .u32 t[2][2] = {{1, 2, 3}};",
            "more initial values than the variable holds",
        ),
        (
            ".global .u32 t[2][2] = {{1}, {2}, {3}};",
            "more initial values than the variable holds",
        ),
        (".global .f32 t = 1;", "an integer in a variable of `.f32`"),
        (".global .f16 t = 1.0;", "an initial value in a variable of `.f16`"),
        (".global .u32 t = 1.5;", "a float of 64 bits in a variable of `.u32`"),
        (".global .b8 t = 0xFFF(words);", "a mask must select one whole byte"),
        (".global .b8 t = 0xFF(generic(words)", "expected `)`, found `.entry`"),
        (
            ".shared .u32 t = 1;",
            "only `.global` and `.const` variables have initial values",
        ),
        (
            ".extern .global .u32 t = 1;",
            "an `.extern` variable cannot have an initial value",
        ),
    ];
    for (data, reason) in cases {
        let findings = warpwave_ptx::compile(&with_data(data, "")).expect_err(data);
        assert_eq!(findings[0].message, reason, "{data}");
        assert_eq!(findings[0].severity, Severity::Malformed, "{data}");
    }
    let later = with_data("", ".global .u64 own = later; .global .u32 later;");
    let findings = warpwave_ptx::compile(&later).unwrap_err();
    assert_eq!(findings[0].message, "undefined symbol `later`");
    let picture = with_data("", ".global .texref own;");
    let findings = warpwave_ptx::compile(&picture).unwrap_err();
    assert_eq!(findings[0].message, "`own` is a texture or surface inside a function");
    let shared = with_data("", ".shared .u32 own = 1;");
    let findings = warpwave_ptx::compile(&shared).unwrap_err();
    assert_eq!(
        findings[0].message,
        "only `.global` and `.const` variables have initial values"
    );
}

#[test]
fn unsupported_data_affects_entries_that_can_reach_it() {
    let reasons = [
        (
            ".global .u32 t = words;",
            "an address of 64 bits in a variable of `.u32`",
        ),
        (
            ".const .u32 t[2] = {1, generic(numbers)};",
            "an address of 64 bits in a variable of `.u32`",
        ),
        (
            ".global .u64 t = elsewhere;",
            "`elsewhere` is declared, but no PTX defines it",
        ),
        (
            ".global .u64 t[2] = {picture};",
            "the handle of `picture` in an initial value",
        ),
    ];
    for (data, reason) in reasons {
        for (code, is_reached) in [("", false), ("mov.u64 %d, t;", true), ("ld.u32 %r, [t];", true)] {
            let text = with_data(
                data,
                &code.replace(
                    "ld.u32",
                    if data.contains("const .u32 t") {
                        "ld.const.u32"
                    } else {
                        "ld.global.u32"
                    },
                ),
            );
            let module = warpwave_ptx::compile(&text).unwrap();
            let found: Vec<_> = module.unsupported().map(|finding| finding.message.as_str()).collect();
            assert_eq!(found, [reason], "{data} {code}");
            assert_eq!(
                module.entry("uses").unwrap().program().is_err(),
                is_reached,
                "{data} {code}"
            );
            assert!(module.entry("other").unwrap().program().is_ok(), "{data} {code}");
        }
    }
}

#[test]
fn entry_reaches_data_through_other_data_and_functions() {
    let bad = ".global .u32 t = words;\n";
    let reached = [
        (
            format!("{bad}.global .u64 way[2] = {{0, generic(t)+4}};"),
            "mov.u64 %d, way;",
        ),
        (
            format!("{bad}.global .b8 way[2] = {{0, 0xFF00(t)}};\n.const .u64 first = way;"),
            "ld.const.u64 %d, [first];",
        ),
        (
            format!("{bad}.func f() {{ .global .u64 way = t; .reg .b64 %d; mov.u64 %d, way; ret; }}"),
            "call f;",
        ),
        (
            "".to_owned(),
            ".global .u32 bad = words; .global .u64 t[2] = {0, bad}; mov.u64 %d, t;",
        ),
        (
            format!("{bad}.func deep() {{ .reg .b64 %d; mov.u64 %d, t; ret; }}\n.func f() {{ call deep; ret; }}"),
            "call f;",
        ),
        (
            format!("{bad}.func f() {{ .reg .b64 %d; mov.u64 %d, t; ret; }}\n.global .u64 way = f;"),
            "ld.global.u64 %d, [way]; p: .callprototype ()_(); call %d, p;",
        ),
    ];
    for (data, code) in reached {
        let text = with_data(&data, code);
        let module =
            warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
        let findings = module.entry("uses").unwrap().program().as_ref().expect_err(&data);
        assert_eq!(
            findings[0].message, "an address of 64 bits in a variable of `.u32`",
            "{data}"
        );
        assert!(module.entry("other").unwrap().program().is_ok(), "{data}");
    }
}

/// Returns the first finding in an entry that calls `f`, a function from eight bytes to four.
fn finding_of_call(code: &str) -> String {
    let text = format!(
        ".version 8.0\n.target sm_90\n.func (.param .b32 r) f(.param .align 8 .b8 x[8]) {{ ret; }}\n\
         .entry k(.param .align 8 .b8 given[8]) {{ .reg .b32 %r<4>; .reg .b64 %d; .param .align 8 .b8 a[8]; .param .b32 c; .param .b64 wide;\n{code} ret; }}\n"
    );
    let module = warpwave_ptx::compile(&text).unwrap_or_else(|findings| panic!("{}", findings[0].render("k", &text)));
    let findings = module.entries[0].program().as_ref().expect_err(code);
    findings[0].message.clone()
}

#[test]
fn parameter_access_outside_or_unaligned_is_refused() {
    let outside = "an access outside of the 8 bytes of this parameter";
    let unaligned = "the offset in the parameter is not a multiple of the element size";
    let cases = [
        ("st.param.b8 [a+8], %r1;", outside),
        ("st.param.v4.b16 [a+2], {%r1, %r1, %r2, %r3};", outside),
        ("st.param.b32 [a-4], %r1;", outside),
        ("ld.param.u32 %r1, [a+8];", outside),
        ("st.param.b16 [a+1], %r1;", unaligned),
        ("st.param.b32 [a+2], %r1;", unaligned),
        ("ld.param.b64 %d, [a+4];", outside),
        ("ld.param.v2.u16 {%r1, %r2}, [a+3];", unaligned),
        ("ld.param.u32 %r1, [given+8];", outside),
        ("ld.param.u8 %r1, [given-1];", outside),
    ];
    for (code, message) in cases {
        assert_eq!(finding_of_call(code), message, "{code}");
    }
}

#[test]
fn call_variables_of_wrong_size_or_number_are_refused() {
    let cases = [
        ("call (c), f, (c);", "`c` has 4 bytes, but the function declares 8"),
        (
            "call (wide), f, (a);",
            "`wide` has 8 bytes, but the function declares 4",
        ),
        (
            "call (c, wide), f, (a);",
            "the number of results differs from the function's results",
        ),
        (
            "call (c), f, (a, a);",
            "the number of arguments differs from the function's parameters",
        ),
    ];
    for (code, message) in cases {
        assert_eq!(finding_of_call(code), message, "{code}");
    }
}

/// Returns the first finding of a module with functions whose parameters are registers.
fn finding_of_register_call(code: &str) -> String {
    let text = format!(
        ".version 8.0\n.target sm_90\n.global .u32 word;\n.func (.reg .u32 r) f(.reg .u32 a) {{ mov.u32 r, a; ret; }}\n\
         .func (.reg .f32 r) g(.param .align 4 .b8 a[8]) {{ ret; }}\n\
         .entry k(.param .b32 given) {{ .reg .b32 %r<4>; .reg .f32 %f; .reg .b16 %h; .reg .b64 %d; .reg .pred %p; .param .b64 wide;\n{code} ret; }}\n"
    );
    let findings = match warpwave_ptx::compile(&text) {
        Err(findings) => findings,
        Ok(module) => module.entries[0].program().clone().expect_err(code),
    };
    assert_eq!(findings.len(), 1, "{code}: {findings:?}");
    findings[0].message.clone()
}

#[test]
fn registers_and_literals_of_a_call_have_the_types_of_the_function() {
    let cases = [
        (
            "call (%r1), f, (%d);",
            "this register holds 64 bits, the instruction needs 32 bits",
        ),
        (
            "call (%h), f, (%r1);",
            "this register holds 16 bits, the instruction needs 32 bits",
        ),
        (
            "call (%r1), f, (%p);",
            "this register holds a predicate, the instruction needs 32 bits",
        ),
        (
            "call (%f), f, (%r1);",
            ".f32 register where the instruction works on .u32",
        ),
        (
            "call (%r1), f, (1.0);",
            "float literal where the instruction works on .u32",
        ),
        (
            "call (%r1), f, (%r1, %r2);",
            "the number of arguments differs from the function's parameters",
        ),
        (
            "call (%r1, %r2), f, (%r1);",
            "the number of results differs from the function's results",
        ),
        (
            "call (%r1), f, (wide);",
            "`wide` has 8 bytes, but the function declares 4",
        ),
        (
            "call (%f), g, (%r1);",
            "a register of this call has 4 bytes, but the function declares 8",
        ),
        (
            "call (%r1), f, (word);",
            "`word` is not a `.param` variable of this function: a call cannot take it",
        ),
        (
            "call (%r1), f, (given);",
            "`given` is not a `.param` variable of this function: a call cannot take it",
        ),
    ];
    for (code, message) in cases {
        assert_eq!(finding_of_register_call(code), message, "{code}");
    }
    for (head, message) in [
        (".entry k(.reg .u32 a)", "a kernel takes no parameters in registers"),
        (
            ".func f(.reg .u32 a[2])",
            "a parameter in a register takes no alignment and no array size",
        ),
        (".func f(.reg .u32 a, .reg .u32 a)", "register `a` is defined twice"),
    ] {
        let findings =
            warpwave_ptx::compile(&format!(".version 8.0\n.target sm_80\n{head} {{ ret; }}")).expect_err(head);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].message, message);
    }
}

#[test]
fn array_without_size_takes_it_from_initial_values() {
    let text = ".version 8.0\n.target sm_80\n.global .b8 bytes[] = {1, 2, 3};\n.const .u16 pairs[][2] = {{1, 2}, {3, 4}};\n\
                .entry k() { ret; }\n";
    let module = warpwave_ptx::compile(text).unwrap();
    assert_eq!(module.globals[0].bytes, [1, 2, 3]);
    assert_eq!(module.constant_image, [1, 0, 2, 0, 3, 0, 4, 0]);
}
