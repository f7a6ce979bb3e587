//! Module variables in a scenario: initial values of the program or the scenario, and expectations.

use crate::{Answer, assert_fails, scenario, warpwave};

/// One thread copies all variables of the module to `out`, word by word, then adds 1 to `v`.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 v = 5;
.visible .global .align 4 .u32 part[4] = {6, 7};
.visible .global .align 4 .u32 bare[2];
.visible .const .align 4 .u32 c[2] = {8, 9};
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<12>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [v];
    ld.global.u32 %r2, [part];
    ld.global.u32 %r3, [part+4];
    ld.global.u32 %r4, [part+8];
    ld.global.u32 %r5, [part+12];
    ld.global.u32 %r6, [bare+4];
    ld.const.u32 %r7, [c];
    ld.const.u32 %r8, [c+4];
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd1+4], %r2;
    st.global.u32 [%rd1+8], %r3;
    st.global.u32 [%rd1+12], %r4;
    st.global.u32 [%rd1+16], %r5;
    st.global.u32 [%rd1+20], %r6;
    st.global.u32 [%rd1+24], %r7;
    st.global.u32 [%rd1+28], %r8;
    add.u32 %r9, %r1, 1;
    st.global.u32 [v], %r9;
    ret;
}
";

/// Runs the kernel with these tables of variables. `out` has the expected values of the output.
fn run(globals: &str, out: [u32; 8]) -> Answer {
    let text = format!(
        "ptx = \"k.ptx\"\n[buffers.out]\ndtype = \"u32\"\nshape = [8]\nexpect = {{ values = {out:?} }}\n{globals}\n\
         [[launch]]\ngrid = 1\nblock = 1\nargs = [\"out\"]\n"
    );
    let (_folder, path) = scenario(&text, &[("k.ptx", PTX.as_bytes())]);
    warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"])
}

fn table(name: &str, n: u32, rest: &str) -> String {
    format!("[globals.{name}]\ndtype = \"u32\"\nshape = [{n}]\n{rest}\n")
}

#[test]
fn variables_without_init_start_with_the_values_of_the_program() {
    let all = [
        table("v", 1, "expect = { values = [6] }"),
        table("part", 4, "expect = { values = [6, 7, 0, 0] }"),
        table("bare", 2, "expect = { fill = 0 }"),
        table("c", 2, ""),
    ];
    let answer = run(&all.concat(), [5, 6, 7, 0, 0, 0, 8, 9]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let wrong = table("part", 4, "expect = { values = [6, 7, 0, 1] }");
    assert_fails(&run(&wrong, [5, 6, 7, 0, 0, 0, 8, 9]), 1, &["part[3] is 0, not 1"]);
}

#[test]
fn variables_with_init_start_with_it() {
    let all = [
        table("v", 1, "init = \"zeros\"\nexpect = { values = [1] }"),
        table("part", 4, "init = { values = [1, 2, 3, 4] }"),
        table("bare", 2, "init = { fill = 11 }"),
        table("c", 2, "init = { values = [12, 13] }"),
    ];
    let answer = run(&all.concat(), [0, 1, 2, 3, 4, 11, 12, 13]);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn variable_with_another_size_in_the_scenario_is_refused() {
    for rest in ["", "init = { fill = 1 }"] {
        for n in [1, 8] {
            let answer = run(&table("part", n, rest), [0; 8]);
            let says = format!("module variable `part` has 16 bytes, but the scenario gives {}", 4 * n);
            assert_fails(&answer, 2, &[&says]);
        }
    }
}
