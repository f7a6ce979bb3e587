//! Stack memory: local variables of recursive functions, and `alloca`.

use super::{Kernel, one_word_each, with_function};

/// Each activation adds to a variable of its caller, and reads its own variables after the call.
#[test]
fn activations_have_local_variables_of_their_own() {
    let function = "\
        .func (.param .b32 result) count(.param .b32 n, .param .b64 above)\n{\n\
        .reg .b32 %n, %v, %r, %x, %y;\n.reg .b64 %p, %q;\n.reg .pred %z;\n.local .align 16 .b32 own[3];\n\
        ld.param.u32 %n, [n];\nld.param.u64 %p, [above];\nld.u32 %v, [%p];\nadd.u32 %v, %v, %n;\nst.u32 [%p], %v;\n\
        mov.u32 %v, 100;\nst.local.u32 [own], %v;\nst.local.u32 [own+8], %n;\nmov.u32 %r, 1;\nsetp.eq.u32 %z, %n, 0;\n@%z bra done;\n\
        mov.u64 %q, own;\ncvta.local.u64 %q, %q;\nsub.u32 %v, %n, 1;\n\
        { .param .b32 a; .param .b64 b; .param .b32 c;\nst.param.b32 [a], %v;\nst.param.b64 [b], %q;\n\
        call.uni (c), count, (a, b);\nld.param.b32 %r, [c]; }\n\
        ld.local.u32 %x, [own];\nld.local.u32 %y, [own+8];\nmad.lo.u32 %r, %r, 3, %x;\nadd.u32 %r, %r, %y;\n\
        done:\nst.param.b32 [result], %r;\nret;\n}\n";
    let body = "\
        .local .align 4 .b32 first;\nand.b32 %r, %t, 7;\nmov.u64 %d1, first;\nmov.u32 %x, 0;\nst.local.u32 [%d1], %x;\ncvta.local.u64 %d2, %d1;\n\
        { .param .b32 a; .param .b64 b; .param .b32 c;\nst.param.b32 [a], %r;\nst.param.b64 [b], %d2;\n\
        call.uni (c), count, (a, b);\nld.param.b32 %r, [c]; }\nld.local.u32 %x, [first];\nmad.lo.u32 %r, %x, 1000000, %r;";
    let text = with_function(function, &format!(".reg .b32 %x;\n{body}"));
    let count = |n: u32| (1..=n).fold(1, |result, n| 3 * result + (100 + n - 1) + n);
    let expected: Vec<u32> = (0..32)
        .map(|thread| thread % 8 * 1_000_000 + count(thread % 8))
        .collect();
    Kernel::of(&text).output(&expected).holds();
}

/// Each thread of a block of 16 warps stores to its own variable. It reads the variable after all others have stored.
#[test]
fn warps_of_a_block_have_local_variables_of_their_own() {
    let body = ".reg .b32 %x;\n.local .align 4 .b32 own;\nmul.lo.u32 %x, %t, 3;\nst.local.u32 [own], %x;\nbar.sync 0;\n\
                ld.local.cv.u32 %r, [own];";
    let expected: Vec<u32> = (0..512).map(|thread| 3 * thread).collect();
    Kernel::of(&with_function("", body))
        .sizes(1, 512)
        .output(&expected)
        .holds();
}

/// A function's stack memory is freed when it returns. Memory of `alloca` is freed by `stackrestore`.
#[test]
fn stack_memory_is_freed() {
    let function = "\
        .func (.param .b32 result) taken(.param .b32 n)\n{\n.reg .b32 %n, %x;\n.reg .b64 %p, %q;\n\
        ld.param.u32 %n, [n];\nmov.u64 %q, 200;\nalloca.u64 %p, %q, 32;\nst.local.u32 [%p+196], %n;\ncvt.u32.u64 %x, %p;\nand.b32 %x, %x, 31;\n\
        ld.local.u32 %n, [%p+196];\nadd.u32 %n, %n, %x;\nst.param.b32 [result], %n;\nret;\n}\n";
    let body = "\
        .reg .b32 %x, %i;\n.reg .pred %more;\nmov.u32 %r, 0;\nmov.u32 %i, 0;\nloop:\n\
        { .param .b32 a; .param .b32 c;\nst.param.b32 [a], %i;\ncall.uni (c), taken, (a);\nld.param.b32 %x, [c]; }\nadd.u32 %r, %r, %x;\n\
        stacksave.u64 %d1;\nadd.u32 %x, %t, 4;\nshl.b32 %x, %x, 2;\ncvt.u64.u32 %d2, %x;\nalloca.u64 %d3, %d2;\nst.local.u32 [%d3], %i;\n\
        alloca.u64 %d2, %d2;\nst.local.u32 [%d2], %r;\nld.local.u32 %x, [%d3];\nadd.u32 %r, %r, %x;\nstackrestore.u64 %d1;\n\
        add.u32 %i, %i, 1;\nsetp.lt.u32 %more, %i, 100;\n@%more bra loop;";
    let text = with_function(function, &body.replace("%d3", "%d0"));
    Kernel::of(&text).output(&[2 * (99 * 100 / 2); 32]).holds();
}

/// A vector of small elements is less than a word. Its store must not change the next word of local memory.
#[test]
fn stores_of_small_vectors_to_local_memory_write_only_their_bytes() {
    let body = "\
        .local .align 8 .b8 own[16];\n.reg .b16 %h<4>, %k<4>;\n.reg .b32 %x, %y;\nmov.u32 %x, 0x01010101;\n\
        st.local.u32 [own], %x;\nst.local.u32 [own+4], %x;\nst.local.u32 [own+8], %x;\nst.local.u32 [own+12], %x;\n\
        cvt.u16.u32 %h0, %t;\nadd.u16 %h1, %h0, 0x0302;\nadd.u16 %h2, %h0, 7;\nadd.u16 %h3, %h0, 9;\n\
        st.local.v2.u16 [own], {%h0, %h1};\nld.local.v2.u16 {%k0, %k1}, [own];\n\
        st.local.v4.u8 [own+8], {%h0, %h1, %h2, %h3};\nld.local.v4.u8 {%h0, %h1, %h2, %h3}, [own+8];\n\
        sub.u16 %k1, %k1, %k0;\ncvt.u32.u16 %r, %k1;\nsub.u16 %h3, %h3, %h2;\ncvt.u32.u16 %y, %h3;\nmad.lo.u32 %r, %y, 0x10000, %r;\n\
        ld.local.u32 %x, [own+4];\nadd.u32 %r, %r, %x;\nld.local.u32 %x, [own+12];\nadd.u32 %r, %r, %x;";
    let expected = 0x0302 + 2 * 0x10000 + 2 * 0x0101_0101;
    Kernel::of(&one_word_each("sm_80", body))
        .output(&[expected; 32])
        .holds();
}

/// 70 predicates are live across a recursive call: more than two words of bits.
#[test]
fn activations_keep_predicates_of_more_than_a_word() {
    const N: u32 = 70;
    let tests: String = (0..N)
        .map(|n| {
            format!(
                "mad.lo.u32 %x, %n, {}, {n};\nand.b32 %x, %x, 5;\nsetp.eq.u32 %q{n}, %x, 1;\n",
                2 * n + 1
            )
        })
        .collect();
    let sums: String = (0..N)
        .map(|n| format!("selp.u32 %x, {}, 0, %q{n};\nadd.u32 %r, %r, %x;\n", n + 1))
        .collect();
    let function = format!(
        ".func (.param .b32 result) sum(.param .b32 n)\n{{\n.reg .b32 %n, %r, %x;\n.reg .pred %z, %q<{N}>;\n\
         ld.param.u32 %n, [n];\nmov.u32 %r, 0;\nsetp.eq.u32 %z, %n, 0;\n@%z bra done;\n{tests}sub.u32 %n, %n, 1;\n\
         {{ .param .b32 a; .param .b32 c;\nst.param.b32 [a], %n;\ncall.uni (c), sum, (a);\nld.param.b32 %r, [c]; }}\n{sums}\
         done:\nst.param.b32 [result], %r;\nret;\n}}\n"
    );
    let body = "{ .param .b32 a; .param .b32 c;\nand.b32 %r, %t, 3;\nst.param.b32 [a], %r;\n\
                call.uni (c), sum, (a);\nld.param.b32 %r, [c]; }";
    let text = with_function(&function, body);
    let sum = |depth: u32| -> u32 {
        let held = |n: u32, of: u32| (of * (2 * n + 1) + n) & 5 == 1;
        (1..=depth)
            .flat_map(|of| (0..N).filter(move |&n| held(n, of)).map(|n| n + 1))
            .sum()
    };
    let expected: Vec<u32> = (0..32).map(|thread| sum(thread % 4)).collect();
    assert!(expected[3] > expected[2] && expected[1] > 0);
    Kernel::of(&text).output(&expected).holds();
}

/// `stackrestore` reads its register. So the register has the value of its own activation after a call of the same function.
#[test]
fn activation_restores_its_own_stack_pointer_after_a_call() {
    let function = "\
        .func (.param .b32 result) moved(.param .b32 n)\n{\n.reg .b32 %n, %x;\n.reg .b64 %top, %p, %q;\n.reg .pred %z;\n\
        stacksave.u64 %top;\nalloca.u64 %p, 16;\nld.param.u32 %n, [n];\nmov.u32 %x, 0;\nsetp.eq.u32 %z, %n, 0;\n@%z bra done;\n\
        sub.u32 %n, %n, 1;\n\
        { .param .b32 a; .param .b32 c;\nst.param.b32 [a], %n;\ncall.uni (c), moved, (a); }\n\
        stackrestore.u64 %top;\nalloca.u64 %q, 16;\nsub.u64 %q, %q, %p;\ncvt.u32.u64 %x, %q;\n\
        done:\nst.param.b32 [result], %x;\nret;\n}\n";
    let body =
        "{ .param .b32 a; .param .b32 c;\nst.param.b32 [a], 1;\ncall.uni (c), moved, (a);\nld.param.b32 %r, [c]; }";
    // The second `alloca` takes the place of the first.
    Kernel::of(&with_function(function, body)).output(&[0; 32]).holds();
}
