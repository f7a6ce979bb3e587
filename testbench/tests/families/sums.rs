//! `register+offset` and `variable+offset` as source operands: the instruction uses the sum.

use super::{Kernel, one_word_each, with_function};

/// The expected word of a thread.
type Expect = fn(u32) -> u32;

/// Runs all cases in one kernel. Case `n` stores its word of thread `t` at `32 n + t`. Each case starts with `%a1` = 3 t, `%a2` = 7,
/// `%d1` = 2^32 + t, `%h1` = 65534 and `%p1` = (t is odd).
fn hold(declarations: &str, cases: &[(&str, Expect)]) {
    let steps: String = cases
        .iter()
        .enumerate()
        .map(|(n, (code, _))| {
            format!(
                "mul.lo.u32 %a1, %t, 3;\nmov.u32 %a2, 7;\nmov.u32 %r, 0;\n{code}\nst.global.u32 [%o+{}], %r;\n",
                128 * n
            )
        })
        .collect();
    let body = format!(
        "{declarations}\n.reg .b16 %h<4>;\n.reg .b64 %base;\nmov.u64 %base, %o;\nmov.u16 %h1, 65534;\ncvt.u64.u32 %d1, %t;\n\
         add.u64 %d1, %d1, 4294967296;\nand.b32 %a0, %t, 1;\nsetp.eq.u32 %p1, %a0, 1;\n{steps}\nld.global.u32 %r, [%o];"
    );
    let words: Vec<u32> = cases.iter().flat_map(|(_, expect)| (0..32).map(expect)).collect();
    Kernel::of(&one_word_each("sm_80", &body)).output(&words).holds();
}

#[test]
fn register_and_offset_as_integer_source_give_their_sum() {
    hold(
        "",
        &[
            ("mov.u32 %r, %a1+5;", |t| 3 * t + 5),
            ("mov.b32 %r, %a1-5;", |t| (3 * t).wrapping_sub(5)),
            ("mov.u32 %r, %a1+-1;", |t| (3 * t).wrapping_sub(1)),
            ("mov.u32 %r, %a1+4294967295;", |t| (3 * t).wrapping_sub(1)),
            ("add.u32 %r, %a1+5, 1;", |t| 3 * t + 6),
            ("add.u32 %r, 1, %a1+5;", |t| 3 * t + 6),
            ("sub.u32 %r, %a1+5, %a2+1;", |t| (3 * t + 5).wrapping_sub(8)),
            ("mul.lo.u32 %r, %a1+1, %a2+1;", |t| (3 * t + 1) * 8),
            ("mad.lo.u32 %r, %a1+1, %a2+1, %a1+2;", |t| (3 * t + 1) * 8 + 3 * t + 2),
            ("shl.b32 %r, %a1+1, %a2+1;", |t| (3 * t + 1) << 8),
            ("shr.u32 %r, %a1+16, 2;", |t| (3 * t + 16) >> 2),
            ("and.b32 %r, %a1+1, 15;", |t| (3 * t + 1) & 15),
            ("not.b32 %r, %a1+1;", |t| !(3 * t + 1)),
            ("min.s32 %r, %a1-10, %a2+2;", |t| (3 * t as i32 - 10).min(9) as u32),
            ("abs.s32 %r, %a1-10;", |t| (3 * t as i32 - 10).unsigned_abs()),
            ("div.u32 %r, %a1+8, %a2+1;", |t| (3 * t + 8) / 8),
            ("rem.u32 %r, %a1+8, %a2+1;", |t| (3 * t + 8) % 8),
            ("popc.b32 %r, %a1+1;", |t| (3 * t + 1).count_ones()),
            ("bfe.u32 %r, %a1+1, 1, %a2-4;", |t| ((3 * t + 1) >> 1) & 7),
            ("lop3.b32 %r, %a1+1, %a2+1, 3, 0x96;", |t| (3 * t + 1) ^ 8 ^ 3),
            ("prmt.b32 %r, %a1+1, %a2+1, 0x7770;", |t| (3 * t + 1) & 255),
            ("sad.u32 %r, %a1+1, %a2, %a2+1;", |t| (3 * t + 1).abs_diff(7) + 8),
            ("mul24.lo.u32 %r, %a1+1, 2;", |t| 2 * (3 * t + 1)),
            ("dp4a.u32.u32 %r, %a1+1, %a2-6, %a2+1;", |t| (3 * t + 1) + 8),
            ("vadd.u32.u32.u32 %r, %a1+1, %a2+1;", |t| 3 * t + 9),
            ("mad.wide.u32 %d2, %a1+1, %a2, %d1+1;\ncvt.u32.u64 %r, %d2;", |t| {
                (3 * t + 1) * 7 + t + 1
            }),
        ],
    );
}

#[test]
fn register_and_offset_of_16_or_64_bits_give_their_sum_in_that_width() {
    hold(
        "",
        &[
            ("add.u16 %h2, %h1+3, 0;\ncvt.u32.u16 %r, %h2;", |_| 1),
            ("cvt.u32.u16 %r, %h1+3;", |_| 1),
            ("cvt.s32.s16 %r, %h1+1;", |_| u32::MAX),
            ("mov.u64 %d2, %d1-4294967296;\ncvt.u32.u64 %r, %d2;", |t| t),
            (
                "add.u64 %d2, %d1+4294967295, 0;\nshr.u64 %d2, %d2, 32;\ncvt.u32.u64 %r, %d2;",
                |t| {
                    if t == 0 { 1 } else { 2 }
                },
            ),
            ("setp.eq.u64 %p2, %d1+1, 4294967297;\nselp.u32 %r, 1, 0, %p2;", |t| {
                u32::from(t == 0)
            }),
            ("cvt.u32.u64 %r, %d1+9;", |t| t + 9),
            (
                "cvt.u64.u32 %d2, %a1-1;\nshr.u64 %d2, %d2, 32;\ncvt.u32.u64 %r, %d2;",
                |_| 0,
            ),
            ("shl.b64 %d2, %d1+1, %a2-6;\ncvt.u32.u64 %r, %d2;", |t| 2 * (t + 1)),
            ("cvt.rn.f32.u32 %f1, %a1+1;\nmov.b32 %r, %f1;", |t| {
                ((3 * t + 1) as f32).to_bits()
            }),
        ],
    );
}

#[test]
fn register_and_offset_in_comparisons_choices_and_guarded_forms_give_their_sum() {
    hold(
        "",
        &[
            ("setp.lt.u32 %p2, %a1+5, %a2+5;\nselp.u32 %r, 1, 0, %p2;", |t| {
                u32::from(3 * t + 5 < 12)
            }),
            ("set.eq.u32.u32 %r, %a1+1, %a2;", |t| {
                if 3 * t + 1 == 7 { u32::MAX } else { 0 }
            }),
            ("selp.u32 %r, %a1+1, %a2+1, %p1;", |t| {
                if t % 2 == 1 { 3 * t + 1 } else { 8 }
            }),
            ("selp.b64 %d2, %d1+1, %d1+2, %p1;\ncvt.u32.u64 %r, %d2;", |t| {
                if t % 2 == 1 { t + 1 } else { t + 2 }
            }),
            ("@%p1 mov.u32 %r, %a1+5;", |t| if t % 2 == 1 { 3 * t + 5 } else { 0 }),
            ("@!%p1 add.u32 %r, %a1+5, %a2+1;", |t| {
                if t % 2 == 1 { 0 } else { 3 * t + 13 }
            }),
            ("mov.u32 %r, %a1;\n@%p1 mov.u32 %r, %r+5;", |t| 3 * t + 5 * (t % 2)),
            ("add.u32 %r, %a1, 1;\nadd.u32 %r, %r+2, %r+3;", |t| 2 * (3 * t + 1) + 5),
        ],
    );
}

#[test]
fn register_and_offset_in_vectors_stores_and_atomics_give_their_sum() {
    let declarations = ".shared .align 16 .b32 room[256];\n.reg .b32 %s;\nshl.b32 %s, %t, 4;\nmov.u32 %a3, room;\nadd.u32 %s, %s, %a3;";
    hold(
        declarations,
        &[
            ("st.shared.u32 [%s], %a1+5;\nld.shared.u32 %r, [%s];", |t| 3 * t + 5),
            ("st.shared.u32 [%s+4], %a1-5;\nld.shared.u32 %r, [%s+4];", |t| {
                (3 * t).wrapping_sub(5)
            }),
            ("st.shared.u8 [%s], %a1+255;\nld.shared.u8 %r, [%s];", |t| {
                (3 * t + 255) & 255
            }),
            (
                "st.shared.v2.u32 [%s], {%a1+1, %a2+2};\nld.shared.v2.u32 {%a3, %a4}, [%s];\nmad.lo.u32 %r, %a3, 100, %a4;",
                |t| 100 * (3 * t + 1) + 9,
            ),
            ("@%p1 st.shared.u32 [%s], %a1+900;\nld.shared.u32 %r, [%s];", |t| {
                if t % 2 == 1 { 3 * t + 900 } else { 3 * t + 1 }
            }),
            (
                "mov.b64 %d2, {%a1+1, %a2+2};\nmov.b64 {%a3, %a4}, %d2;\nmad.lo.u32 %r, %a4, 100, %a3;",
                |t| 900 + 3 * t + 1,
            ),
            ("mov.b64 {%a3, %a4}, %d1+1;\nmad.lo.u32 %r, %a4, 100, %a3;", |t| {
                100 + t + 1
            }),
            (
                "mov.u32 %a3, 5;\nst.shared.u32 [%s], %a3;\natom.shared.add.u32 %a4, [%s], %a1+2;\nld.shared.u32 %r, [%s];",
                |t| 3 * t + 7,
            ),
            (
                "st.shared.u32 [%s], %a2+1;\natom.shared.cas.b32 %a4, [%s], %a2+1, %a1+3;\nld.shared.u32 %r, [%s];",
                |t| 3 * t + 3,
            ),
            (
                "st.shared.u32 [%s], %a2+1;\nred.shared.max.u32 [%s], %a1+4;\nld.shared.u32 %r, [%s];",
                |t| (3 * t + 4).max(8),
            ),
            ("shfl.sync.idx.b32 %r, %a1+1, %a2-4, 31, 0xffffffff;", |_| 10),
            ("bar.sync %a2-6;\nmov.u32 %r, 1;", |_| 1),
            ("bar.red.popc.u32 %r, %a2-6, %p1;", |_| 16),
        ],
    );
}

#[test]
fn variable_and_offset_as_source_give_the_address_plus_the_offset() {
    let declarations = ".shared .align 8 .b32 first[2];\n.shared .align 8 .b32 words[4];\n.local .align 8 .b32 own[4];\n\
        mov.u32 %a3, words;\nmov.u32 %a4, 77;\nst.shared.u32 [words+8], %a4;\nst.local.u32 [own+4], %a4;\nbar.sync 0;";
    hold(
        declarations,
        &[
            ("mov.u32 %a4, words+8;\nld.shared.u32 %r, [%a4];", |_| 77),
            ("mov.u32 %a4, words+8;\nsub.u32 %r, %a4, %a3;", |_| 8),
            ("add.u32 %a4, words+12, -4;\nld.shared.u32 %r, [%a4];", |_| 77),
            ("mov.u64 %d2, own+4;\nld.local.u32 %r, [%d2];", |_| 77),
            (
                "st.shared.u32 [first], words+8;\nld.shared.u32 %r, [first];\nsub.u32 %r, %r, %a3;",
                |_| 8,
            ),
            (
                "mov.u64 %d2, words+16;\ncvt.u32.u64 %r, %d2-8;\nld.shared.u32 %r, [%r];",
                |_| 77,
            ),
        ],
    );
}

#[test]
fn index_of_a_branch_table_may_have_an_offset() {
    let code = "mov.u32 %a3, 0;\n@%p1 mov.u32 %a3, 1;\nts: .branchtargets l0, l1, l2;\nbrx.idx %a3+1, ts;\nl0: mov.u32 %r, 10;\nbra end;\n\
        l1: mov.u32 %r, 11;\nbra end;\nl2: mov.u32 %r, 12;\nend:";
    hold("", &[(code, |t| 11 + t % 2)]);
}

#[test]
fn argument_stored_as_register_and_offset_is_their_sum() {
    let function = ".func (.param .b32 result) twice(.param .b32 n)\n{\n.reg .b32 %n;\nld.param.u32 %n, [n];\n\
        add.u32 %n, %n, %n+1;\nst.param.b32 [result], %n+2;\nret;\n}\n";
    let body =
        "{ .param .b32 a; .param .b32 c;\nst.param.b32 [a], %t+10;\ncall.uni (c), twice, (a);\nld.param.b32 %r, [c]; }";
    let text = with_function(function, body);
    let expected: Vec<u32> = (0..32).map(|t| 2 * (t + 10) + 3).collect();
    Kernel::of(&text).output(&expected).holds();
}

/// The last use of `%n` is the sum after the call, so each activation must keep its own.
#[test]
fn register_of_a_sum_after_a_recursive_call_is_kept_per_activation() {
    let function = ".func (.param .b32 result) sum(.param .b32 n)\n{\n.reg .b32 %n, %m;\n.reg .pred %z;\nld.param.u32 %n, [n];\n\
        mov.u32 %m, 0;\nsetp.eq.u32 %z, %n, 0;\n@%z bra done;\n\
        { .param .b32 a; .param .b32 c;\nst.param.b32 [a], %n-1;\ncall.uni (c), sum, (a);\nld.param.b32 %m, [c]; }\n\
        add.u32 %m, %m, %n+100;\ndone:\nst.param.b32 [result], %m;\nret;\n}\n";
    let body = "and.b32 %a1, %t, 3;\n{ .param .b32 a; .param .b32 c;\nst.param.b32 [a], %a1;\ncall.uni (c), sum, (a);\nld.param.b32 %r, [c]; }";
    let text = with_function(function, body);
    let expected: Vec<u32> = (0..32).map(|t| (1..=t % 4).map(|n| n + 100).sum()).collect();
    Kernel::of(&text).output(&expected).holds();
}
