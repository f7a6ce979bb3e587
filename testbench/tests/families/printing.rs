//! The `printf` output of kernels: sorted by block, thread and call, for any order of warps.

use super::Kernel;

const NVCC: &str = include_str!("hello_printf.ptx");

#[test]
fn every_thread_of_every_block_prints_its_line_in_order() {
    let values: Vec<f32> = (0..117).map(|n| n as f32 * 0.25 - 3.0).collect();
    let line = |i: usize| {
        let parity = if i % 2 == 1 { "odd" } else { "even" };
        format!("block {} thread {} x={:.6} {parity}\n", i / 48, i % 48, values[i])
    };
    let text: String = (0..values.len()).map(line).collect();
    let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
    let kernel = Kernel::of(NVCC).sizes(3, 48);
    kernel.input(&bits).number(117).prints(&text).holds();
}

/// Two calls a thread, the second under a guard; `vprintf` returns the number of arguments.
#[test]
fn calls_of_a_thread_stay_together_and_return_their_arguments() {
    let string = |text: &str| {
        let bytes: Vec<String> = text.bytes().chain([0]).map(|byte| byte.to_string()).collect();
        format!("[{}] = {{{}}}", bytes.len(), bytes.join(", "))
    };
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
         .global .align 1 .b8 one{};\n.global .align 1 .b8 two{};\n\
         .entry k(.param .u64 out) {{\n.local .align 8 .b8 list[16];\n.reg .b64 %d<8>;\n.reg .b32 %t, %r, %s;\n.reg .pred %p;\n\
         ld.param.u64 %d1, [out];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %d1, %t, 4, %d1;\n\
         mov.u64 %d2, list;\ncvta.local.u64 %d3, %d2;\nst.local.u32 [list], %t;\nst.local.u64 [list+8], 0x123456789;\n\
         mov.u64 %d4, one;\ncvta.global.u64 %d5, %d4;\n\
         {{ .param .b64 p0;\n.param .b64 p1;\n.param .b32 q;\nst.param.b64 [p0], %d5;\nst.param.b64 [p1], %d3;\n\
         call.uni (q), vprintf, (p0, p1);\nld.param.b32 %r, [q]; }}\n\
         mov.u32 %s, 0;\nsetp.gt.u32 %p, %t, 37;\nmov.u64 %d6, two;\n\
         {{ .param .b64 p0;\n.param .b64 p1;\n.param .b32 q;\nst.param.b64 [p0], %d6;\nst.param.b64 [p1], 0;\n\
         @%p call (q), vprintf, (p0, p1);\n@%p ld.param.b32 %s, [q]; }}\n\
         shl.b32 %s, %s, 8;\nadd.u32 %r, %r, %s;\nst.global.u32 [%d1], %r;\nret;\n}}\n",
        string("%2d %llx\n"),
        string("late\n")
    );
    let printed: String = (0..40)
        .map(|thread| format!("{thread:2} 123456789\n{}", if thread > 37 { "late\n" } else { "" }))
        .collect();
    Kernel::of(&text).sizes(1, 40).output(&[2; 40]).prints(&printed).holds();
}
