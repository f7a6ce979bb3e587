//! Number of copies of a loop's body, against the vendor's assembler: the tables of `hw/docs/unrolling.md`.

use warpwave_isa::inst::Inst;
use warpwave_isa::opcode::Opcode;
use warpwave_ptx::{Options, PassSet};

/// Returns a kernel with a loop of dependent FFMAs, from 0 up to `bound`.
fn chain(body: usize, bound: &str) -> String {
    let chain = "fma.rn.f32 %f1, %f1, %f2, %f2;\n".repeat(body);
    around(&format!(
        "loop:\n{chain}add.s32 %i, %i, 1;\nsetp.lt.s32 %p1, %i, {bound};\n@%p1 bra loop;\n"
    ))
}

/// Returns a kernel around a loop. `%i` is 0, and `%n` unknown.
fn around(text: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 p, .param .u32 n)\n{{\n.reg .pred %p<4>;\n.reg .b32 %i, %n, %r<4>;\n\
         .reg .f32 %f<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\nld.param.u32 %n, [n];\nld.global.f32 %f1, [%rd1];\n\
         ld.global.f32 %f2, [%rd1+4];\nmov.u32 %i, 0;\n{text}st.global.f32 [%rd1], %f1;\nst.global.u32 [%rd1+8], %i;\nret;\n}}\n"
    )
}

/// Returns the number of FFMAs of a kernel that every pass has compiled.
fn ffmas(text: &str) -> usize {
    let code = compiled(text, PassSet::EMPTY);
    code.iter().filter(|inst| inst.op == Opcode::Ffma).count()
}

/// Returns the instructions of a kernel that all but the skipped passes have compiled.
fn compiled(text: &str, skipped_passes: PassSet) -> Vec<Inst> {
    let options = Options {
        skipped_passes,
        ..Options::default()
    };
    let module = warpwave_ptx::load_with(text, options, |_| true);
    let module = module.unwrap_or_else(|findings| panic!("{}", findings[0].render("k", text)));
    let program = module.entries[0].program().as_ref();
    let program = program.unwrap_or_else(|findings| panic!("{}", findings[0].render("k", text)));
    program.code().to_vec()
}

#[test]
fn loops_are_copied_in_full_up_to_about_as_many_iterations_as_by_the_vendor() {
    let most = [
        (2, 2659),
        (4, 899),
        (8, 280),
        (12, 136),
        (16, 75),
        (24, 37),
        (32, 21),
        (48, 10),
        (64, 6),
        (96, 4),
    ];
    for (body, trips) in most {
        let fewer = trips * 9 / 10;
        assert_eq!(
            ffmas(&chain(body, &fewer.to_string())),
            body * fewer,
            "{fewer} x {body}"
        );
        let more = (trips * 115).div_ceil(100);
        assert!(ffmas(&chain(body, &more.to_string())) < body * more, "{more} x {body}");
    }
}

#[test]
fn longer_loops_have_as_many_copies_inside_and_outside_as_by_the_vendor() {
    // Body, iterations, copies in the loop and copies outside.
    let rows = [
        (4, 1024, 73, 2),
        (8, 1024, 34, 4),
        (16, 1024, 17, 4),
        (24, 64, 10, 4),
        (32, 1024, 8, 0),
        (48, 16, 5, 1),
        (64, 1024, 4, 0),
        // A body of 96 instructions or more stays as it is.
        (96, 1024, 1, 0),
        (128, 16, 1, 0),
    ];
    for (body, trips, inside, outside) in rows {
        let found = ffmas(&chain(body, &trips.to_string()));
        assert_eq!(found, body * (inside + outside), "{trips} x {body}");
    }
}

#[test]
fn unknown_number_of_iterations_gives_four_copies_up_to_the_size_of_the_vendor() {
    // Rolled, with counter, test and branch: 21 instructions. The original loop stays for the last iterations.
    assert_eq!(ffmas(&chain(18, "%n")), 18 * (4 + 1));
    assert_eq!(ffmas(&chain(19, "%n")), 19);
}

#[test]
fn exit_by_polled_memory_keeps_a_loop() {
    let loop_with = |load: &str| {
        format!(
            "loop:\nfma.rn.f32 %f1, %f1, %f2, %f2;\n{load} %r1, [%rd1+16];\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra out;\n\
             add.s32 %i, %i, 1;\nsetp.lt.s32 %p1, %i, 3;\n@%p1 bra loop;\nout:\n"
        )
    };
    assert_eq!(ffmas(&around(&loop_with("ld.global.u32"))), 3);
    assert_eq!(ffmas(&around(&loop_with("ld.volatile.global.u32"))), 1);
}

#[test]
fn pragmas_keep_loops() {
    let text = chain(4, "8");
    assert_eq!(ffmas(&text), 32);
    let pragma = ".pragma \"nounroll\";\n";
    for place in ["loop:\n", "(.param .u64 p, .param .u32 n)\n", ".target sm_80\n"] {
        let kept = text.replace(place, &format!("{place}{pragma}"));
        assert_eq!(ffmas(&kept), 4, "{kept}");
    }
}

#[test]
fn exchanges_fences_and_exact_divisions_keep_a_loop() {
    let copied = [
        "bar.sync 0;",
        "atom.global.add.u32 %r1, [%rd1], 1;",
        "mov.u32 %r1, %clock;",
        "ld.volatile.global.u32 %r1, [%rd1];",
    ];
    let kept = [
        "shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;",
        "membar.gl;",
        "membar.cta;",
        "mbarrier.test_wait.shared.b64 %p2, [%r2], %rd2;",
        "div.rn.f32 %f3, %f1, %f2;",
        "sqrt.rn.f32 %f3, %f1;",
    ];
    let count = |inside: &str| {
        let text = format!(
            "loop:\nfma.rn.f32 %f1, %f1, %f2, %f2;\n{inside}\nadd.s32 %i, %i, 1;\nsetp.lt.s32 %p1, %i, 3;\n@%p1 bra loop;\n"
        );
        ffmas(&around(&text)) - ffmas(&around(&format!("{inside}\n")))
    };
    for inside in copied {
        assert_eq!(count(inside), 3, "{inside}");
    }
    for inside in kept {
        assert_eq!(count(inside), 1, "{inside}");
    }
}

#[test]
fn loop_up_to_and_with_its_bound_has_a_copy_for_each_iteration() {
    for (cmp, step, bound, copies) in [
        ("le", 1, 4, 5),
        ("lt", 1, 4, 4),
        ("ge", -1, -4, 5),
        ("le", 3, 10, 4),
        ("ne", 2, 8, 4),
    ] {
        // The test follows the counter: the iteration with the last value that passes is not the last one.
        let text = around(&format!(
            "loop:\nfma.rn.f32 %f1, %f1, %f2, %f2;\nadd.s32 %i, %i, {step};\nsetp.{cmp}.s32 %p1, %i, {bound};\n@%p1 bra loop;\n"
        ));
        assert_eq!(ffmas(&text), copies, "{cmp} {bound} by {step}");
    }
}

#[test]
fn copies_of_moves_have_a_limit() {
    // 60 moves and a counter: 5,000 copies would be 310,000 operations.
    let moves: String = (0..60).map(|n| format!("mov.f32 %m{n}, %m{};\n", n + 1)).collect();
    let text = around(&format!(
        ".reg .f32 %m<61>;\nloop:\n{moves}mov.f32 %m60, %f1;\nfma.rn.f32 %f1, %m0, %f2, %f2;\nadd.s32 %i, %i, 1;\n\
         setp.lt.s32 %p1, %i, 5000;\n@%p1 bra loop;\n"
    ));
    assert_eq!(ffmas(&text), 1);
}

#[test]
fn sum_of_a_counter_has_the_line_of_the_increment() {
    // Three of four copies need the counter plus a constant. The loop for the rest needs none.
    let text = around(
        "mov.u32 %r1, 0;\nloop:\nmad.lo.u32 %r1, %i, %i, %r1;\nadd.s32 %i, %i, 1;\nsetp.lt.s32 %p1, %i, %n;\n@%p1 bra loop;\n\
         st.global.u32 [%rd1+4], %r1;\n",
    );
    let line = text.lines().position(|line| line.starts_with("mad")).unwrap() as u32 + 1;
    let code = compiled(&text, PassSet::EMPTY);
    let of_line = code.iter().filter(|inst| inst.line == line);
    assert_eq!(of_line.map(|inst| inst.op).collect::<Vec<_>>(), [Opcode::Imad; 5]);
}

#[test]
fn pass_that_is_left_out_does_not_run_within_the_unrolling() {
    // The tests of the eight copies have no reader.
    let text = chain(4, "8");
    let without_dce = PassSet::EMPTY.with("dce").expect("an optional pass");
    assert!(compiled(&text, without_dce).len() >= compiled(&text, PassSet::EMPTY).len() + 7);
}
