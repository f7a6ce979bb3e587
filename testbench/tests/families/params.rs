//! Parameters and results of calls: every layout of stores is combined with every layout of loads, byte by byte.

use super::{Kernel, with_function};
use warpwave::scenario::Arg;

/// Bytes of an element and elements of a vector, for every kind of parameter access.
const LAYOUTS: [(usize, usize); 12] = [
    (1, 1),
    (1, 2),
    (1, 4),
    (2, 1),
    (2, 2),
    (2, 4),
    (4, 1),
    (4, 2),
    (4, 4),
    (8, 1),
    (8, 2),
    (16, 1),
];

/// Bytes of a parameter.
const BYTES: usize = 16;

/// Threads of a kernel here.
const THREADS: usize = 8;

/// Statements `op` for all bytes from `address` on, in this layout. With `loads`, registers are the first operand.
fn all(op: &str, address: &str, (bytes, count): (usize, usize), loads: bool) -> String {
    let vector = if count == 1 {
        String::new()
    } else {
        format!(".v{count}")
    };
    let access = |at: usize| {
        let first = at * count;
        let list: Vec<String> = (first..first + count).map(|n| format!("%x{bytes}_{n}")).collect();
        let list = if count == 1 {
            list[0].clone()
        } else {
            format!("{{{}}}", list.join(", "))
        };
        let place = format!("[{address}+{}]", at * bytes * count);
        let [left, right] = if loads { [list, place] } else { [place, list] };
        format!("{op}{vector}.b{} {left}, {right};\n", 8 * bytes)
    };
    (0..BYTES / bytes / count).map(access).collect()
}

/// Registers for every layout.
fn registers() -> String {
    [1, 2, 4, 8, 16]
        .map(|bytes| format!(".reg .b{} %x{bytes}_<{}>;\n", (8 * bytes).max(16), BYTES / bytes))
        .concat()
}

/// A kernel that passes the bytes of its thread to a function and stores the result.
fn kernel(functions: &str, call: &str, caller: (usize, usize)) -> String {
    let b128 = "{\n.reg .b64 %lo, %hi;\n";
    let (load, store) = match caller.0 {
        16 => (
            format!("{b128}ld.global.v2.b64 {{%lo, %hi}}, [%i];\nmov.b128 %x16_0, {{%lo, %hi}};\n}}\n"),
            format!("{b128}mov.b128 {{%lo, %hi}}, %x16_0;\nst.global.v2.b64 [%o], {{%lo, %hi}};\n}}\n"),
        ),
        _ => (
            all("ld.global", "%i", caller, true),
            all("st.global", "%o", caller, false),
        ),
    };
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n{functions}.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .b32 %t;\n.reg .b64 %i, %o, %f;\n.reg .pred %p;\n{}ld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n\
         mad.wide.u32 %i, %t, {BYTES}, %i;\nmad.wide.u32 %o, %t, {BYTES}, %o;\n{load}\
         {{ .param .align 16 .b8 a[16]; .param .align 16 .b8 c[16];\n{}{call}\n{}}}\n{store}ret;\n}}\n",
        registers(),
        all("st.param", "a", caller, false),
        all("ld.param", "c", caller, true),
    )
}

/// The expected word of a thread.
type Expect = fn(u32) -> u32;

/// Byte `n` of thread `t`.
fn byte(t: usize, n: usize) -> u8 {
    (17 * n + 31 * t + 3) as u8
}

fn words(byte: impl Fn(usize, usize) -> u8) -> Vec<u32> {
    let word = |at: usize| {
        let bytes = [0, 1, 2, 3].map(|n| byte(4 * at / BYTES, 4 * at % BYTES + n));
        u32::from_le_bytes(bytes)
    };
    (0..THREADS * BYTES / 4).map(word).collect()
}

/// Runs a function for every layout inside of it and every layout of its caller.
fn for_all_layouts(function: impl Fn((usize, usize)) -> String, call: &str, result: impl Fn(usize, usize) -> u8) {
    let expected = words(result);
    for inside in LAYOUTS {
        for caller in LAYOUTS {
            println!("caller {caller:?}, function {inside:?}");
            Kernel::of(&kernel(&function(inside), call, caller))
                .sizes(1, THREADS as u32)
                .input(&words(byte))
                .output(&expected)
                .holds();
        }
    }
}

fn copies(layout: (usize, usize)) -> String {
    format!(
        ".func (.param .align 16 .b8 result[16]) copy(.param .align 16 .b8 given[16])\n{{\n{}{}{}ret;\n}}\n",
        registers(),
        all("ld.param", "given", layout, true),
        all("st.param", "result", layout, false),
    )
}

#[test]
fn parameter_keeps_every_byte_for_any_layout_of_stores_and_loads() {
    for_all_layouts(copies, "call.uni (c), copy, (a);", byte);
}

#[test]
fn parameter_of_a_call_through_a_pointer_keeps_every_byte_in_any_layout() {
    let call = "mov.u64 %f, copy;\np: .callprototype (.param .align 16 .b8 _[16]) _ (.param .align 16 .b8 _[16]);\ncall (c), %f, (a), p;";
    for_all_layouts(copies, call, byte);
}

/// Each activation passes its bytes on, with the depth in the first byte. Its own first byte is unchanged after the call. The last byte
/// counts the activations.
#[test]
fn parameter_of_a_recursive_call_keeps_every_byte_of_each_activation_in_any_layout() {
    let function = |layout| {
        format!(
            ".func (.param .align 16 .b8 result[16]) deep(.param .align 16 .b8 given[16], .param .b32 depth)\n{{\n{}\
             .reg .b32 %n, %m;\n.reg .b16 %last;\n.reg .pred %z;\nld.param.u32 %n, [depth];\nmov.u16 %last, 0;\n\
             st.param.b8 [result+15], %last;\n{}setp.eq.u32 %z, %n, 0;\n@%z bra done;\nsub.u32 %m, %n, 1;\n\
             {{ .param .align 16 .b8 a[16]; .param .b32 b; .param .align 16 .b8 c[16];\n{}st.param.b8 [a], %m;\nst.param.b32 [b], %m;\n\
             call.uni (c), deep, (a, b);\nld.param.u8 %last, [c+15];\n}}\nadd.u16 %last, %last, 1;\n{}\
             done:\n{}st.param.b8 [result+15], %last;\nret;\n}}\n",
            registers(),
            all("ld.param", "given", layout, true),
            all("st.param", "a", layout, false),
            all("ld.param", "given", layout, true),
            all("st.param", "result", layout, false),
        )
    };
    let call = "{ .param .b32 n;\nand.b32 %t, %t, 3;\nst.param.b32 [n], %t;\ncall.uni (c), deep, (a, n); }";
    let result = |t: usize, n: usize| if n == 15 { (t % 4) as u8 } else { byte(t, n) };
    for_all_layouts(function, call, result);
}

/// Each activation stores its result first. The inner activations must not overwrite it.
#[test]
fn result_stored_before_a_recursive_call_is_kept() {
    let function = "\
        .func (.param .align 4 .b8 result[4]) f(.param .b32 n)\n{\n.reg .b32 %n;\n.reg .pred %z;\nld.param.u32 %n, [n];\n\
        st.param.b8 [result], %n;\nst.param.b8 [result+1], 7;\nst.param.b16 [result+2], %n;\nsetp.eq.u32 %z, %n, 0;\n@%z bra done;\nsub.u32 %n, %n, 1;\n\
        { .param .b32 a; .param .align 4 .b8 c[4];\nst.param.b32 [a], %n;\ncall.uni (c), f, (a); }\ndone:\nret;\n}\n";
    let body = "and.b32 %a1, %t, 3;\n{ .param .b32 a; .param .align 4 .b8 c[4];\nst.param.b32 [a], %a1;\ncall.uni (c), f, (a);\nld.param.b32 %r, [c]; }";
    let expected: Vec<u32> = (0..32).map(|t| (0x0001_0001 * (t % 4)) | 0x700).collect();
    Kernel::of(&with_function(function, body)).output(&expected).holds();
}

/// Both arguments are stored before the first of two calls.
#[test]
fn argument_stored_before_another_recursive_call_is_kept() {
    let function = "\
        .func (.param .b32 result) tree(.param .b32 n)\n{\n.reg .b32 %n, %x, %y;\n.reg .pred %z;\nld.param.u32 %n, [n];\n\
        mov.u32 %x, 0;\nmov.u32 %y, 0;\nsetp.lt.u32 %z, %n, 2;\n@%z bra done;\n\
        { .param .b32 a; .param .b32 b; .param .b32 c; .param .b32 d;\nst.param.b32 [a], %n-1;\nst.param.b32 [b], %n-2;\n\
        call.uni (c), tree, (a);\ncall.uni (d), tree, (b);\nld.param.b32 %x, [c];\nld.param.b32 %y, [d]; }\n\
        done:\nadd.u32 %x, %x, %y;\nadd.u32 %x, %x, %n;\nst.param.b32 [result], %x;\nret;\n}\n";
    let body = "and.b32 %a1, %t, 7;\n{ .param .b32 a; .param .b32 c;\nst.param.b32 [a], %a1;\ncall.uni (c), tree, (a);\nld.param.b32 %r, [c]; }";
    fn tree(n: u32) -> u32 {
        if n < 2 { n } else { n + tree(n - 1) + tree(n - 2) }
    }
    let expected: Vec<u32> = (0..32).map(|t| tree(t % 8)).collect();
    Kernel::of(&with_function(function, body)).output(&expected).holds();
}

/// A function that returns its eight bytes.
const SAME: &str = ".func (.param .align 8 .b8 result[8]) same(.param .align 8 .b8 given[8])\n{\n.reg .b64 %x;\n\
    ld.param.b64 %x, [given];\nst.param.b64 [result], %x;\nret;\n}\n";

/// The code of nvcc for a structure of four bytes.
#[test]
fn structure_stored_as_a_vector_and_read_as_a_word_has_all_its_bytes() {
    let function = ".func (.param .align 4 .b8 result[4]) turn(.param .align 4 .b8 given[4])\n{\n.reg .b32 %x;\n\
        ld.param.u32 %x, [given];\nprmt.b32 %x, %x, 0, 0x0123;\nst.param.b32 [result], %x;\nret;\n}\n";
    let body = ".reg .b16 %h<8>;\ncvt.u16.u32 %h0, %t;\nmov.u16 %h1, 0x2A1;\nmov.u16 %h2, 0xB2;\nmov.u16 %h3, 0xC3;\n\
        { .param .align 4 .b8 a[4]; .param .align 4 .b8 c[4];\nst.param.v4.b8 [a], {%h0, %h1, %h2, %h3};\ncall.uni (c), turn, (a);\n\
        ld.param.v4.b8 {%h4, %h5, %h6, %h7}, [c]; }\n\
        cvt.u32.u16 %a0, %h7;\nshl.b32 %r, %a0, 24;\ncvt.u32.u16 %a0, %h6;\nshl.b32 %a0, %a0, 16;\nor.b32 %r, %r, %a0;\n\
        cvt.u32.u16 %a0, %h5;\nshl.b32 %a0, %a0, 8;\nor.b32 %r, %r, %a0;\ncvt.u32.u16 %a0, %h4;\nor.b32 %r, %r, %a0;";
    let expected: Vec<u32> = (0..32).map(|t| t << 24 | 0x00A1_B2C3).collect();
    Kernel::of(&with_function(function, body)).output(&expected).holds();
}

/// In each case the parameter holds 0x89ABCDEF and its upper word 0x01234567 before the stores.
#[test]
fn store_to_part_of_a_word_keeps_its_other_bytes() {
    let cases: [(&str, &str, Expect); 9] = [
        ("st.param.b8 [a+1], 0x55;", "ld.param.u32 %r, [c];", |_| 0x89AB_55EF),
        ("st.param.b8 [a+3], %t;", "ld.param.u32 %r, [c];", |t| {
            0x00AB_CDEF | t << 24
        }),
        ("st.param.b16 [a+2], 0x5566;", "ld.param.u32 %r, [c];", |_| 0x5566_CDEF),
        ("st.param.b16 [a], 0x5566;", "ld.param.u32 %r, [c];", |_| 0x89AB_5566),
        ("st.param.v2.b8 [a+2], {0x11, 0x22};", "ld.param.u32 %r, [c];", |_| {
            0x2211_CDEF
        }),
        ("st.param.v4.b8 [a+4], {1, 2, 3, 4};", "ld.param.u32 %r, [c+4];", |_| {
            0x0403_0201
        }),
        ("st.param.v4.b8 [a+4], {1, 2, 3, 4};", "ld.param.u32 %r, [c];", |_| {
            0x89AB_CDEF
        }),
        ("@%p1 st.param.b8 [a], 0x55;", "ld.param.u32 %r, [c];", |t| {
            if t < 16 { 0x89AB_CD55 } else { 0x89AB_CDEF }
        }),
        (
            "@!%p1 st.param.v2.b16 [a+4], {%h1, %h2};",
            "ld.param.u32 %r, [c+4];",
            |t| {
                if t < 16 { 0x0123_4567 } else { 0x0002_0001 }
            },
        ),
    ];
    for (store, load, expect) in cases {
        println!("{store}");
        let body = format!(
            ".reg .b16 %h<4>;\nmov.u16 %h1, 1;\nmov.u16 %h2, 2;\nsetp.lt.u32 %p1, %t, 16;\n\
             {{ .param .align 8 .b8 a[8]; .param .align 8 .b8 c[8];\nst.param.b64 [a], 0x0123456789ABCDEF;\n{store}\n\
             call.uni (c), same, (a);\n{load} }}"
        );
        let expected: Vec<u32> = (0..32).map(expect).collect();
        Kernel::of(&with_function(SAME, &body)).output(&expected).holds();
        // The same store into the result of a function.
        let function = format!(
            ".func (.param .align 8 .b8 c[8]) same(.param .b32 %t)\n{{\n.reg .b32 %x;\n.reg .pred %p1;\n.reg .b16 %h<4>;\n\
             mov.u16 %h1, 1;\nmov.u16 %h2, 2;\nld.param.u32 %x, [%t];\nsetp.lt.u32 %p1, %x, 16;\nst.param.b64 [c], 0x0123456789ABCDEF;\n{}\nret;\n}}\n",
            store.replace("[a", "[c").replace("%t", "%x")
        );
        let body = format!(
            "{{ .param .b32 a; .param .align 8 .b8 c[8];\nst.param.b32 [a], %t;\ncall.uni (c), same, (a);\n{load} }}"
        );
        Kernel::of(&with_function(&function, &body)).output(&expected).holds();
    }
}

#[test]
fn part_of_a_word_is_extended_by_the_type_of_its_load() {
    let cases: [(&str, u32); 10] = [
        ("ld.param.u8 %r, [c+2];", 0xAB),
        ("ld.param.s8 %r, [c+3];", 0xFFFF_FF89),
        ("ld.param.s8 %r, [c+5];", 0x45),
        ("ld.param.u16 %r, [c+2];", 0x89AB),
        ("ld.param.s16 %r, [c+2];", 0xFFFF_89AB),
        ("ld.param.s16 %r, [c+6];", 0x0123),
        (
            "ld.param.s8 %d1, [c+2];\nshr.u64 %d1, %d1, 16;\ncvt.u32.u64 %r, %d1;",
            0xFFFF_FFFF,
        ),
        (
            "ld.param.u16 %d1, [c+2];\nshr.u64 %d1, %d1, 8;\ncvt.u32.u64 %r, %d1;",
            0x89,
        ),
        ("ld.param.v2.s8 {%a1, %a2}, [c+2];\nadd.u32 %r, %a1, %a2;", 0xFFFF_FF34),
        ("mov.u32 %r, 9;\n@%p1 ld.param.u8 %r, [c+1];", 9),
    ];
    for (load, expect) in cases {
        println!("{load}");
        let body = format!(
            "setp.gt.u32 %p1, %t, 99;\n{{ .param .align 8 .b8 a[8]; .param .align 8 .b8 c[8];\nst.param.b64 [a], 0x0123456789ABCDEF;\n\
             call.uni (c), same, (a);\n{load} }}"
        );
        Kernel::of(&with_function(SAME, &body)).output(&[expect; 32]).holds();
    }
}

#[test]
fn parameter_of_a_kernel_is_read_in_any_layout() {
    for layout in LAYOUTS.into_iter().filter(|layout| layout.0 < 16) {
        println!("{layout:?}");
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .b8 first, .param .align 16 .b8 given[16], .param .u64 out)\n{{\n\
             .reg .b64 %o;\n{}ld.param.u64 %o, [out];\n{}{}ret;\n}}\n",
            registers(),
            all("ld.param", "given", layout, true),
            all("st.global", "%o", layout, false),
        );
        let mut kernel = Kernel::of(&text).sizes(1, 1);
        kernel.launch().args.push(Arg::Bytes(vec![9]));
        let bytes = (0..BYTES).map(|n| byte(0, n)).collect();
        kernel.launch().args.push(Arg::Bytes(bytes));
        kernel.output(&words(byte)[..BYTES / 4]).holds();
    }
}

/// Bytes without a store are zero, on the machine and on the reference.
#[test]
fn partly_stored_parameter_is_zero_elsewhere() {
    let body = "mov.u32 %r, 0;\nmov.u32 %a1, 3;\nloop:\n{ .param .align 8 .b8 a[8]; .param .align 8 .b8 c[8];\nst.param.b8 [a+1], %a1;\n\
        call.uni (c), same, (a);\nld.param.u32 %a2, [c]; }\nadd.u32 %r, %r, %a2;\nsub.u32 %a1, %a1, 1;\nsetp.ne.u32 %p1, %a1, 0;\n@%p1 bra loop;";
    Kernel::of(&with_function(SAME, body)).output(&[0x600; 32]).holds();
}

/// Registers of every width go to a function and come back. The function sees copies: its own parameter is not that of the caller.
#[test]
fn parameters_and_results_in_registers_have_their_values() {
    let functions = "\
        .func (.reg .u32 r, .reg .f64 s) both(.reg .u32 a, .reg .f64 b)\n{\nadd.u32 r, a, 5;\nadd.u32 a, a, 100;\nadd.f64 s, b, b;\nret;\n}\n\
        .func (.reg .pred r) odd(.reg .b32 a)\n{\n.reg .b32 x;\nand.b32 x, a, 1;\nsetp.eq.u32 r, x, 1;\nret;\n}\n\
        .func (.reg .u32 r) chosen(.reg .pred p, .reg .u32 a, .reg .u32 b)\n{\nselp.u32 r, a, b, p;\nret;\n}\n\
        .func (.reg .b128 r) turned(.reg .b128 a)\n{\n.reg .b64 x, y;\nmov.b128 {x, y}, a;\nmov.b128 r, {y, x};\nret;\n}\n\
        .func (.reg .u16 r) next(.reg .u16 a)\n{\nadd.u16 r, a, 1;\nret;\n}\n";
    let body = "\
        .reg .b32 x, y;\n.reg .f64 d, e;\n.reg .pred o;\n.reg .b128 q;\n.reg .u16 h;\nmov.u32 x, %t;\ncvt.rn.f64.u32 d, %t;\n\
        call (y, e), both, (x, d);\ncall (o), odd, (x);\ncall (%a1), chosen, (o, y, 1000);\ncvt.rzi.u32.f64 %a2, e;\n\
        cvt.u64.u32 %d1, %t;\nmov.b128 q, {%d1, 7};\ncall (q), turned, (q);\nmov.b128 {%d2, %d3}, q;\ncvt.u32.u64 %a3, %d2;\n\
        cvt.u32.u64 %a4, %d3;\ncvt.u16.u32 h, %t;\ncall (h), next, (h);\ncall (h), next, (h);\ncvt.u32.u16 %a5, h;\n\
        setp.lt.u32 %p1, %t, 8;\nmov.u32 %a6, 3;\n@%p1 call (%a6, _), both, (0x10, 0d4000000000000000);\n\
        mad.lo.u32 %r, %a1, 10000, %a2;\nmad.lo.u32 %a3, %a3, 1000, %a4;\nadd.u32 %r, %r, %a3;\nadd.u32 %r, %r, %a5;\nadd.u32 %r, %r, x;\nadd.u32 %r, %r, %a6;";
    let body = body.replace("mov.b128 q, {%d1, 7}", "mov.u64 %d4, 7;\nmov.b128 q, {%d1, %d4}");
    let expected: Vec<u32> = (0..32)
        .map(|t| {
            let chosen = if t % 2 == 1 { t + 5 } else { 1000 };
            let guarded = if t < 8 { 0x15 } else { 3 };
            chosen * 10_000 + 2 * t + (7 * 1000 + t) + (t + 2) + t + guarded
        })
        .collect();
    Kernel::of(&with_function(functions, &body)).output(&expected).holds();
}

/// A call may mix registers and `.param` variables with either kind of parameter.
#[test]
fn registers_and_param_variables_stand_for_each_other_in_calls() {
    let functions = "\
        .func (.reg .u32 r) loads(.param .u32 a)\n{\nld.param.u32 r, [a];\nadd.u32 r, r, 1;\nret;\n}\n\
        .func (.param .u32 r) stores(.reg .u32 a)\n{\nadd.u32 a, a, 20;\nst.param.u32 [r], a;\nret;\n}\n";
    let body = "\
        .param .b32 v, w;\nst.param.b32 [v], %t;\ncall (%a1), loads, (v);\ncall (%a2), loads, (%a1);\ncall (w), stores, (%a2);\n\
        ld.param.b32 %a3, [w];\ncall (%a4), stores, (%a3);\ncall (v), stores, (300);\nld.param.b32 %a5, [v];\ncall (w), loads, (v);\n\
        ld.param.b32 %a6, [w];\nadd.u32 %r, %a4, %a6;";
    let expected: Vec<u32> = (0..32).map(|t| (t + 1 + 1 + 20 + 20) + (300 + 20 + 1)).collect();
    Kernel::of(&with_function(functions, body)).output(&expected).holds();
}

/// The parameter is read again behind two calls of the function by itself, and so is the result of the first.
#[test]
fn recursive_calls_keep_parameters_and_results_in_registers() {
    let function = "\
        .func (.reg .u32 r, .reg .pred odd) tree(.reg .u32 n)\n{\n.reg .u32 x, y, m;\n.reg .pred z, o;\nmov.u32 r, n;\nsetp.ne.u32 odd, n, n;\n\
        setp.lt.u32 z, n, 2;\n@z setp.eq.u32 odd, n, 1;\n@z bra done;\nsub.u32 m, n, 1;\ncall (x, odd), tree, (m);\nsub.u32 m, n, 2;\n\
        call (y, o), tree, (m);\nxor.pred odd, odd, o;\nadd.u32 r, x, y;\nadd.u32 r, r, n;\ndone:\nret;\n}\n";
    let body = ".reg .pred o;\nand.b32 %a1, %t, 7;\ncall (%r, o), tree, (%a1);\n@o add.u32 %r, %r, 1000;";
    fn tree(n: u32) -> (u32, bool) {
        if n < 2 {
            return (n, n == 1);
        }
        let [(x, odd), (y, other)] = [tree(n - 1), tree(n - 2)];
        (n + x + y, odd ^ other)
    }
    let expected: Vec<u32> = (0..32)
        .map(|t| {
            let (sum, odd) = tree(t % 8);
            sum + if odd { 1000 } else { 0 }
        })
        .collect();
    Kernel::of(&with_function(function, body)).output(&expected).holds();
}

#[test]
fn call_through_a_pointer_passes_registers() {
    let functions = "\
        .func (.reg .u32 r) plus(.reg .u32 a, .reg .u64 b)\n{\n.reg .u32 x;\ncvt.u32.u64 x, b;\nadd.u32 r, a, x;\nret;\n}\n\
        .func (.reg .u32 r) times(.reg .u32 a, .reg .u64 b)\n{\n.reg .u32 x;\ncvt.u32.u64 x, b;\nmul.lo.u32 r, a, x;\nret;\n}\n\
        .func (.reg .u32 r) other(.reg .u64 a, .reg .u64 b)\n{\nmov.u32 r, 0;\nret;\n}\n";
    let body = "\
        and.b32 %a1, %t, 1;\nsetp.eq.u32 %p1, %a1, 0;\nmov.u64 %d1, plus;\nmov.u64 %d2, times;\nmov.u64 %d4, other;\nselp.b64 %d1, %d1, %d2, %p1;\n\
        mov.u64 %d3, 9;\np: .callprototype (.reg .u32 _) _ (.reg .u32 _, .reg .u64 _);\ncall (%r), %d1, (%t, %d3), p;";
    let expected: Vec<u32> = (0..32).map(|t| if t % 2 == 0 { t + 9 } else { 9 * t }).collect();
    Kernel::of(&with_function(functions, body)).output(&expected).holds();
}
