//! Vector registers (`.reg .v4 .f32 a`): whole in vector instructions, and by element (`a.x` or `a.r`) everywhere else.

use super::{Kernel, one_word_each, with_function};

#[test]
fn vector_registers_are_loaded_stored_moved_and_read_by_element() {
    let body = "\
        .reg .v4 .b32 a, b;\n.reg .v2 .b32 p<3>;\n.reg .v2 .f64 d;\n.reg .v4 .b16 h;\n.reg .b32 %x, %y;\n.shared .align 16 .b32 tile[4];\n\
        mul.lo.u32 a.x, %t, 2;\nadd.u32 a.y, a.x, 1;\nmov.u32 a.b, 100;\nmov.u32 a.a, 7;\nmov.v4.b32 b, {a.w, a.z, a.y, a.x};\n\
        mov.v4.b32 b, {b.y, b.x, b.w, b.z};\n// b is now 100, 7, 2t, 2t + 1.\nsub.u32 %r, b.x, b.g;\nmad.lo.u32 %r, b.b, 1000, %r;\nadd.u32 %r, %r, b.w;\n\
        setp.eq.u32 %p1, %t, 9;\n@%p1 st.shared.v4.b32 [tile], a;\nbar.sync 0;\nld.shared.v2.b32 p2, [tile];\nld.shared.v2.b32 p1, [tile+8];\n\
        // p2 is 18, 19 and p1 100, 7.\nadd.u32 %r, %r, p2.y;\nmov.b64 %d1, p1;\nshr.u64 %d1, %d1, 32;\ncvt.u32.u64 %x, %d1;\nmad.lo.u32 %r, %x, 100000, %r;\n\
        mov.v2.f64 d, {0d4000000000000000, 0d4008000000000000};\nmov.v2.f64 d, {d.y, d.x};\nsub.f64 d.x, d.x, d.y;\ncvt.rzi.u32.f64 %y, d.x;\nadd.u32 %r, %r, %y;\n\
        mov.b64 h, 0x0004000300020001;\nmov.b32 %x, {h.y, h.w};\nsetp.ne.u32 %p2, %x, 0x00040002;\n@%p2 mov.u32 %r, 0;\n\
        mov.v4.u32 a, %tid;\n@%p1 mov.v4.u32 b, %ntid;\nadd.u32 %r, %r, a.x;\nadd.u32 %r, %r, a.w;\n@%p1 add.u32 %r, %r, b.x;";
    let expected: Vec<u32> = (0..32)
        .map(|t| {
            let ntid = if t == 9 { 32 } else { 0 };
            93 + 2 * t * 1000 + (2 * t + 1) + 19 + 700_000 + 1 + t + ntid
        })
        .collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// Where the guard is false every element keeps its value.
#[test]
fn guarded_vector_accesses_leave_all_elements_alone() {
    let body = "\
        .reg .v4 .b32 a;\n.reg .b64 %at;\nsetp.lt.u32 %p1, %t, 4;\nmov.v4.b32 a, {1, 2, 3, 4};\n@%p1 mov.v4.b32 a, {a.w, a.x, a.y, a.z};\n\
        mul.lo.u32 %r, a.x, 1000;\nmad.lo.u32 %r, a.y, 100, %r;\nmad.lo.u32 %r, a.z, 10, %r;\nadd.u32 %r, %r, a.w;";
    let expected: Vec<u32> = (0..32).map(|t| if t < 4 { 4123 } else { 1234 }).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&expected).holds();
}

/// A vector is a parameter and a result of a function as a whole.
#[test]
fn vector_registers_are_parameters_and_results() {
    let functions = ".func (.reg .v2 .b32 r) turned(.reg .v2 .b32 a, .reg .b32 b)\n{\nadd.u32 r.x, a.y, b;\nmov.b32 r.y, a.x;\nret;\n}\n";
    let body = "\
        .reg .v2 .b32 v, w;\nmov.v2.b32 v, {%t, 5};\ncall (w), turned, (v, 10);\ncall (w), turned, (w, 20);\n\
        mad.lo.u32 %r, w.x, 100, w.y;";
    // (t, 5) becomes (15, t), then (t + 20, 15).
    let expected: Vec<u32> = (0..32).map(|t| (t + 20) * 100 + 15).collect();
    Kernel::of(&with_function(functions, body)).output(&expected).holds();
}
