//! Generic addresses: one instruction accesses every state space.

use super::{Kernel, one_word_each, with_function};

/// A generic store with all lanes in shared memory never reaches the L2. The block must still end.
#[test]
fn block_ends_after_generic_stores_to_shared_memory() {
    let body = "\
        .shared .align 4 .b32 words[96];\n\
        mov.u64 %d1, words;\ncvta.shared.u64 %d1, %d1;\nmul.wide.u32 %d2, %t, 4;\nadd.u64 %d1, %d1, %d2;\n\
        add.u32 %r, %t, 7;\nst.u32 [%d1], %r;\nbar.sync 0;\nld.u32 %r, [%d1];";
    let expected: Vec<u32> = (0..96).map(|thread| thread + 7).collect();
    Kernel::of(&one_word_each("sm_80", body))
        .sizes(1, 96)
        .output(&expected)
        .holds();
}

/// The lanes of one load access a parameter, a constant, shared, local and global memory.
#[test]
fn generic_loads_read_parameters_constants_and_memory() {
    let body = "\
        .local .align 4 .b32 mine;\n.shared .align 4 .b32 word;\n.reg .b16 %h<3>;\nmov.u32 %a1, 40;\nst.shared.u32 [word], %a1;\nmov.u32 %a1, 50;\nst.local.u32 [mine], %a1;\n\
        mov.u64 %d1, table;\ncvta.const.u64 %d1, %d1;\nand.b32 %a2, %t, 3;\nmad.wide.u32 %d1, %a2, 4, %d1;\n\
        mov.b64 %d2, given;\ncvta.param.u64 %d2, %d2;\nmov.u64 %d3, word;\ncvta.shared.u64 %d3, %d3;\nmov.u64 %d4, mine;\ncvta.local.u64 %d4, %d4;\n\
        st.global.u32 [%o], %t;\nrem.u32 %a3, %t, 5;\nmov.u64 %d5, %o;\n\
        setp.eq.u32 %p1, %a3, 0;\n@%p1 mov.u64 %d5, %d1;\nsetp.eq.u32 %p1, %a3, 1;\n@%p1 mov.u64 %d5, %d2;\n\
        setp.eq.u32 %p1, %a3, 2;\n@%p1 mov.u64 %d5, %d3;\nsetp.eq.u32 %p1, %a3, 3;\n@%p1 mov.u64 %d5, %d4;\n\
        mov.u32 %r, 1000;\nsetp.ne.u32 %p2, %t, 7;\n@%p2 ld.u32 %r, [%d5];\nld.v2.u16 {%h1, %h2}, [%d1];\ncvt.u32.u16 %a1, %h2;\nadd.u32 %r, %r, %a1;\n\
        cvta.to.const.u64 %d6, %d1;\nld.const.u32 %a1, [%d6];\nadd.u32 %r, %r, %a1;";
    let text = one_word_each("sm_80", body)
        .replace(".visible .entry k(.param .u64 out)", ".const .align 4 .u32 table[4] = {65536, 131072, 196608, 262144};\n.visible .entry k(.param .u64 out, .param .u32 given)");
    let expected: Vec<u32> = (0..32)
        .map(|thread| {
            let constant = 65536 * (thread % 4 + 1);
            let found = match thread % 5 {
                _ if thread == 7 => 1000,
                0 => constant,
                1 => 30,
                2 => 40,
                3 => 50,
                _ => thread,
            };
            found + (thread % 4 + 1) + constant
        })
        .collect();
    Kernel::of(&text).output(&expected).number(30).holds();
}

/// Loads, stores and atomics without a state space name variables of shared, local and global memory.
#[test]
fn accesses_without_a_space_reach_the_variables_that_they_name() {
    let body = "\
        .shared .align 16 .b32 words[64];\n.shared .align 8 .b64 count;\n.local .align 8 .b8 own[64];\n.reg .b32 %x, %y;\n.reg .b64 %at;\n\
        mov.u64 %d1, 5;\nst.u64 [count], %d1;\nbar.sync 0;\natom.add.u64 %d2, [count], 1;\nred.add.u64 [count], 2;\nbar.sync 0;\nld.u64 %d3, [count];\ncvt.u32.u64 %r, %d3;\n\
        st.u32 [own+8], %t;\nadd.u32 %x, %t, 1;\nst.v2.u32 [own+16], {%x, %r};\nld.v2.u32 {%a1, %a2}, [own+16];\nld.volatile.u32 %a3, [own+8];\n\
        mov.u64 %d4, own;\nld.local.u32 %a4, [%d4+8];\nadd.u32 %a1, %a1, %a4;\n\
        setp.eq.u32 %p1, %t, 3;\nmov.u32 %y, 77;\n@%p1 st.u32 [words+20], %y;\nbar.sync 0;\nld.relaxed.cta.u32 %a5, [words+20];\nst.u32 [wide+4], %a5;\nld.u32 %a6, [wide+4];\n\
        atom.exch.b32 %a7, [wide], %a6;\natom.v2.f32.add {%f1, %f2}, [floats], {0f3F800000, 0f40000000};\nbar.sync 0;\nld.shared.f32 %f3, [floats+4];\ncvt.rzi.u32.f32 %a8, %f3;\n\
        add.u32 %r, %a1, %a2;\nadd.u32 %r, %r, %a3;\nadd.u32 %r, %r, %a5;\nadd.u32 %r, %r, %a6;\nmad.lo.u32 %r, %a8, 1000, %r;";
    let head = ".global .align 8 .b32 wide[2];\n.shared .align 8 .f32 floats[2];\n.visible .entry";
    let body = format!(
        "setp.eq.u32 %p2, %t, 0;\nmov.u64 %d0, 0;\n@%p2 st.u64 [floats], %d0;\nbar.sync 0;\n{}",
        body.replace("{0f3F800000, 0f40000000}", "{%f4, %f5}")
            .replace("atom.v2", "mov.f32 %f4, 0f3F800000;\nmov.f32 %f5, 0f40000000;\natom.v2")
    );
    let text = one_word_each("sm_90", &body).replace(".visible .entry", head);
    let expected: Vec<u32> = (0..32)
        .map(|t| {
            let count = 5 + 32 * 3;
            64 * 1000 + (t + 1 + t) + count + t + 77 + 77
        })
        .collect();
    Kernel::of(&text).output(&expected).holds();
}

/// Each activation of a recursive function has its own copy of the variable.
#[test]
fn accesses_without_a_space_reach_variables_on_the_stack() {
    let function = "\
        .func (.reg .u32 r) sum(.reg .u32 n)\n{\n.local .align 4 .b32 own[2];\n.reg .u32 m;\n.reg .pred z;\nst.u32 [own+4], n;\nmov.u32 r, 0;\n\
        setp.eq.u32 z, n, 0;\n@z bra done;\nsub.u32 m, n, 1;\ncall (r), sum, (m);\nld.u32 m, [own+4];\nadd.u32 r, r, m;\ndone:\nret;\n}\n";
    let text = with_function(function, "and.b32 %a1, %t, 7;\ncall (%r), sum, (%a1);");
    let expected: Vec<u32> = (0..32).map(|t| (t % 8) * (t % 8 + 1) / 2).collect();
    Kernel::of(&text).output(&expected).holds();
}

/// Fuzzing found that the upper half of the lanes, which do not run, added to their address past 64 bits.
#[test]
fn lanes_that_do_not_run_may_hold_any_address() {
    // An access of two words to local memory takes the lines of each word.
    let body = ".local .align 8 .b32 pair[2];\nmov.u32 %r, 0;\nadd.u32 %a1, %t, 100;\nst.local.u32 [pair], %t;\nst.local.u32 [pair+4], %a1;\n\
                mov.u64 %d0, pair;\ncvta.local.u64 %d0, %d0;\nsetp.ge.u32 %p0, %t, 16;\n@%p0 mov.u64 %d0, -4;\nmov.u64 %d1, 0;\n\
                @!%p0 ld.u64 %d1, [%d0];\nmov.b64 {%a2, %a3}, %d1;\nadd.u32 %r, %a2, %a3;\n";
    let wanted: Vec<u32> = (0..32).map(|t| if t < 16 { 2 * t + 100 } else { 0 }).collect();
    Kernel::of(&one_word_each("sm_80", body)).output(&wanted).holds();
}

/// A compiler takes a pointer from memory for one to global memory (nvcc 13.5: `pointer = table;`, then `pointer[i]` in another kernel).
#[test]
fn pointer_to_a_constant_in_memory_is_read_as_a_global_one() {
    let head = ".const .align 4 .u32 table[4] = {7, 8, 9, 10};\n.global .align 8 .u64 pointer = generic(table);\n.visible .entry";
    let body = "\
        ld.global.u64 %d1, [pointer];\nmov.u64 %d2, table;\ncvta.const.u64 %d3, %d2;\nsetp.ne.u64 %p1, %d1, %d3;\n\
        cvta.to.global.u64 %d4, %d1;\nand.b32 %a1, %t, 3;\nmad.wide.u32 %d4, %a1, 4, %d4;\nld.global.u32 %r, [%d4];\n\
        ld.volatile.u32 %a2, [%d4];\nmad.lo.u32 %r, %a2, 100, %r;\ncvta.to.const.u64 %d5, %d4;\nld.const.u32 %a3, [%d5];\n\
        mad.lo.u32 %r, %a3, 10000, %r;\n@%p1 mov.u32 %r, 0;\n\
        isspacep.const %p2, %d4;\n@!%p2 mov.u32 %r, 1;\nisspacep.global %p3, %d4;\n@%p3 mov.u32 %r, 2;\n\
        add.u64 %d4, %d1, 65536;\nisspacep.const %p2, %d4;\n@%p2 mov.u32 %r, 3;\nisspacep.global %p3, %o;\n@!%p3 mov.u32 %r, 4;";
    let text = one_word_each("sm_80", body).replace(".visible .entry", head);
    let expected: Vec<u32> = (0..32).map(|t| 10101 * (7 + t % 4)).collect();
    Kernel::of(&text).output(&expected).holds();
}
