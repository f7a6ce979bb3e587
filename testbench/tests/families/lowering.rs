//! Rules of the lowering that change values: spilled results, contraction, and literals.

use super::Kernel;

/// Returns a kernel with the words of `in` in `%v0` and up, and `%t` the thread. What the body leaves in `%r` goes to `out`.
fn with_words(n: usize, attributes: &str, body: &str) -> String {
    let loads: String = (0..n)
        .map(|word| format!("ld.volatile.global.u32 %v{word}, [%i+{}];\n", 4 * word))
        .collect();
    format!(
        ".version 8.6\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {attributes}\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %t, %r, %v<32>;\n.reg .b64 %i, %o, %d<8>;\n.reg .f32 %f<16>;\n.reg .f64 %g<8>;\n\
         ld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %o, %t, 4, %o;\n{loads}{body}\n\
         st.global.u32 [%o], %r;\nret;\n}}\n"
    )
}

/// The shuffle overwrites its own guard. Its result has a slot in local memory, which all lanes store.
#[test]
fn spilled_result_survives_a_write_to_its_guard() {
    let n = 24;
    let words: Vec<u32> = (0..n as u32).map(|word| 100 + word).collect();
    let sum: String = (0..n).map(|word| format!("add.u32 %r, %r, %v{word};\n")).collect();
    let again: String = (0..n)
        .map(|word| format!("ld.volatile.global.u32 %r, [%i];\nadd.u32 %v{word}, %v{word}, %r;\n"))
        .collect();
    // Lanes from 16 up have no source: they keep their own value, and the predicate becomes false.
    let body = format!(
        "setp.ne.u32 %p1, %v0, 0;\nmov.u32 %v30, 5;\nadd.u32 %v31, %t, 1000;\n\
         @%p1 shfl.sync.down.b32 %v30|%p1, %v31, 16, 0x1f, 0xffffffff;\n{again}\
         selp.u32 %r, 1, 0, %p1;\nmad.lo.u32 %r, %r, 100000, %v30;\n{sum}"
    );
    let expected: Vec<u32> = (0..32)
        .map(|lane: u32| {
            let (value, valid) = if lane < 16 { (lane + 16, 1) } else { (lane, 0) };
            valid * 100_000 + 1000 + value + words.iter().map(|word| word + words[0]).sum::<u32>()
        })
        .collect();
    let text = with_words(n, ".maxnreg 16", &body);
    Kernel::of(&text).input(&words).output(&expected).holds();
}
