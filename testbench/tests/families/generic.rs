//! Generic addresses: one instruction accesses every state space.

use super::{Kernel, one_word_each};

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
