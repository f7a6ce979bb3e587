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
