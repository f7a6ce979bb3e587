//! Generic addresses: one instruction for every space.

use super::{Kernel, one_word_each};

/// A store whose lanes all mean shared memory never comes to the L2; the block must end all the same.
#[test]
fn generic_stores_to_shared_memory_alone_let_the_block_end() {
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
