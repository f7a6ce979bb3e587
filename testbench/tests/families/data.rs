//! Initial values of variables: addresses of other variables and of functions, bytes of addresses, nested lists.

use super::{Kernel, with_function};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .const .align 8 .u32 front[2] = {1, 2};\n.const .align 8 .u32 numbers[4] = {10, 11, 12, 13};\n.global .align 8 .u32 words[4] = {20, 21, 22, 23};\n";

/// Runs the cases in one thread. Each computes a word in `%r`.
fn hold(data: &str, cases: &[(&str, u32)]) {
    let steps: String = cases
        .iter()
        .enumerate()
        .map(|(n, (code, _))| format!("mov.u32 %r, 0;\n{code}\nst.global.u32 [%o+{}], %r;\n", 4 * n))
        .collect();
    let text = format!(
        "{HEAD}{data}\n.visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r, %x, %y;\n.reg .b64 %o, %d, %e;\n\
         ld.param.u64 %o, [out];\n{steps}ret;\n}}\n"
    );
    let words: Vec<u32> = cases.iter().map(|&(_, word)| word).collect();
    Kernel::of(&text).sizes(1, 1).output(&words).holds();
}

/// The bytes of an address, one by one.
fn bytes_of(address: &str) -> String {
    let bytes: Vec<String> = (0..8)
        .map(|n| format!("{:#X}({address})", 0xffu64 << (8 * n)))
        .collect();
    bytes.join(", ").replace("0X", "0x")
}

#[test]
fn constant_table_can_have_addresses_of_constants() {
    hold(
        ".const .align 8 .u64 table[4] = {numbers, numbers+8, generic(numbers), generic(numbers)+12};",
        &[
            ("ld.const.u64 %d, [table];\nld.const.u32 %r, [%d];", 10),
            ("ld.const.u64 %d, [table];\nld.const.u32 %r, [%d+4];", 11),
            ("ld.const.u64 %d, [table+8];\nld.const.u32 %r, [%d];", 12),
            ("ld.const.u64 %d, [table+16];\nld.u32 %r, [%d];", 10),
            ("ld.const.u64 %d, [table+24];\nld.u32 %r, [%d];", 13),
            (
                "ld.const.u64 %d, [table+24];\ncvta.to.const.u64 %d, %d;\nld.const.u32 %r, [%d];",
                13,
            ),
        ],
    );
}

#[test]
fn constant_table_can_have_addresses_of_globals() {
    hold(
        ".const .align 8 .u64 table[3] = {words+4, generic(words), generic(words+12)};",
        &[
            ("ld.const.u64 %d, [table];\nld.global.u32 %r, [%d];", 21),
            ("ld.const.u64 %d, [table+8];\nld.u32 %r, [%d];", 20),
            ("ld.const.u64 %d, [table+16];\nld.u32 %r, [%d];", 23),
            (
                "ld.const.u64 %d, [table];\nmov.u32 %x, 99;\nst.global.u32 [%d], %x;\nld.global.u32 %r, [words+4];",
                99,
            ),
        ],
    );
}

#[test]
fn global_table_can_have_addresses_of_constants_and_globals() {
    hold(
        ".global .align 8 .u64 table[4] = {numbers+4, generic(numbers)+8, words+8, generic(words)};",
        &[
            ("ld.global.u64 %d, [table];\nld.const.u32 %r, [%d];", 11),
            ("ld.global.u64 %d, [table+8];\nld.u32 %r, [%d];", 12),
            ("ld.global.u64 %d, [table+16];\nld.global.u32 %r, [%d];", 22),
            ("ld.global.u64 %d, [table+24];\nld.u32 %r, [%d-0];", 20),
        ],
    );
}

/// Only the table converts the constant's address to a generic one. No instruction does.
#[test]
fn generic_address_of_a_constant_in_a_variable_works_for_loads_of_any_width() {
    hold(
        ".global .align 8 .u64 place = generic(numbers)+4;",
        &[
            ("ld.global.u64 %d, [place];\nld.u8 %r, [%d];", 11),
            (
                "ld.global.u64 %d, [place];\nld.v2.u32 {%x, %y}, [%d+4];\nmad.lo.u32 %r, %x, 100, %y;",
                1213,
            ),
            ("mov.u64 %d, words;\nld.u32 %r, [%d+4];", 21),
        ],
    );
}

#[test]
fn words_of_32_bits_hold_constant_offsets_beside_numbers() {
    hold(
        ".const .align 4 .u32 near[3] = {numbers+12, 7, numbers};\n.global .align 4 .b32 far[3] = {8, numbers+4, 9};",
        &[
            ("ld.const.u32 %x, [near];\nld.const.u32 %r, [%x];", 13),
            ("ld.const.u32 %r, [near+4];", 7),
            ("ld.const.u32 %x, [near+8];\nld.const.u32 %r, [%x];", 10),
            ("ld.global.u32 %r, [far];", 8),
            ("ld.global.u32 %x, [far+4];\nld.const.u32 %r, [%x];", 11),
            ("ld.global.u32 %r, [far+8];", 9),
        ],
    );
}

#[test]
fn bytes_of_an_address_form_the_address_without_alignment() {
    let data = format!(
        ".global .align 8 .b8 whole[16] = {{{}, {}}};\n.const .align 8 .b8 packed[20] = {{1, 2, {}, 3, {}}};\n\
         .global .align 4 .b8 odd[13] = {{4, {}, 5}};\n.const .u8 number[2] = {{0xFF00(0x1234), 0xFF(1000+546-2)}};",
        bytes_of("words"),
        bytes_of("generic(words)+8"),
        bytes_of("words+4"),
        bytes_of("generic(numbers)+12"),
        bytes_of("numbers+8"),
    );
    let unaligned = |space: &str, name: &str, first: usize, load: &str| {
        let step = |n: usize| {
            format!(
                "ld.{space}.u8 %x, [{name}+{}];\ncvt.u64.u32 %e, %x;\nshl.b64 %d, %d, 8;\nor.b64 %d, %d, %e;\n",
                first + n
            )
        };
        let steps: String = (0..8).rev().map(step).collect();
        format!("mov.u64 %d, 0;\n{steps}{load}")
    };
    let cases = [
        ("ld.global.u64 %d, [whole];\nld.global.u32 %r, [%d];".to_owned(), 20),
        ("ld.global.u64 %d, [whole+8];\nld.u32 %r, [%d];".to_owned(), 22),
        (unaligned("const", "packed", 2, "ld.global.u32 %r, [%d];"), 21),
        ("ld.const.u8 %r, [packed+10];".to_owned(), 3),
        (unaligned("const", "packed", 11, "ld.u32 %r, [%d];"), 13),
        ("ld.const.u8 %r, [packed+1];".to_owned(), 2),
        ("ld.const.u8 %r, [packed+19];".to_owned(), 0),
        (unaligned("global", "odd", 1, "ld.const.u32 %r, [%d];"), 12),
        ("ld.global.u8 %r, [odd+9];".to_owned(), 5),
        ("ld.const.u8 %r, [number];".to_owned(), 0x12),
        ("ld.const.u8 %r, [number+1];".to_owned(), 1544 & 255),
    ];
    let cases: Vec<(&str, u32)> = cases.iter().map(|(code, word)| (code.as_str(), *word)).collect();
    hold(&data, &cases);
}

#[test]
fn function_addresses_in_tables_and_in_bytes_can_be_called() {
    let function = |name: &str, factor: u32| {
        format!(
            ".func (.param .b32 r) {name}(.param .b32 n)\n{{\n.reg .b32 %n;\nld.param.u32 %n, [n];\nmul.lo.u32 %n, %n, {factor};\n\
             st.param.b32 [r], %n;\nret;\n}}\n"
        )
    };
    let data = format!(
        "{}{}.const .align 8 .u64 table[2] = {{twice, thrice}};\n.global .align 8 .b8 packed[8] = {{{}}};",
        function("twice", 2),
        function("thrice", 3),
        bytes_of("thrice")
    );
    let call = |load: &str| {
        format!(
            "{load}\n{{ .param .b32 a; .param .b32 c;\nmov.u32 %x, 7;\nst.param.b32 [a], %x;\n\
             p: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (c), %d, (a), p;\nld.param.b32 %r, [c]; }}"
        )
    };
    hold(
        &data,
        &[
            (&call("ld.const.u64 %d, [table];"), 14),
            (&call("ld.const.u64 %d, [table+8];"), 21),
            (&call("ld.global.u64 %d, [packed];"), 21),
        ],
    );
}

/// PTX ISA, initializers: `x[3][2] = { {1,2}, {3} }` is `{ {1,2}, {3,0}, {0,0} }`.
#[test]
fn short_nested_lists_are_filled_with_zeros_row_by_row() {
    let words = |name: &str, n: usize| {
        let step = |at: usize| {
            format!(
                "ld.{name}.u32 %x, [rows_{name}+{}];\nmad.lo.u32 %r, %r, 10, %x;\n",
                4 * at
            )
        };
        (0..n).map(step).collect::<String>()
    };
    hold(
        ".global .s32 rows_global[3][2] = { {1,2}, {3}, {4} };\n.const .align 8 .v2 .u32 rows_const[2] = { {5}, {6, 7} };\n\
         .global .u32 flat[2][2] = {1, 2, 3};\n.const .u8 small[2][3] = {{1}, {2, 3}};\n.const .u8 behind;",
        &[
            (&words("global", 6), 123_040),
            (&words("const", 4), 5_067),
            ("ld.global.u32 %r, [flat+8];", 3),
            ("ld.const.u8 %r, [small+3];", 2),
            ("ld.const.u8 %r, [small+1];", 0),
            ("ld.const.u8 %r, [behind];", 0),
        ],
    );
}

#[test]
fn variable_declared_extern_before_its_definition_has_the_value_of_the_definition() {
    hold(
        ".extern .global .align 4 .u32 later;\n.global .align 4 .u32 later = 31;\n.extern .const .align 4 .u32 fixed[2];\n\
         .const .align 4 .u32 fixed[2] = {32, 33};\n.extern .const .align 4 .u32 fixed[2];",
        &[("ld.global.u32 %r, [later];", 31), ("ld.const.u32 %r, [fixed+4];", 33)],
    );
}

/// A `.global` or `.const` variable of a function exists once in the module. Its initial value sees the names of its scope.
#[test]
fn variables_of_functions_have_their_initial_values_and_one_instance() {
    let functions = "\
        .global .b32 same = 1000;\n.global .b64 outer = same;\n\
        .func (.reg .u32 r) next()\n{\n.global .b32 same = 7;\n.const .b32 steps[3] = {1, 2, 3};\n.reg .b32 x, y;\n\
        ld.const.u32 y, [steps+8];\natom.global.add.u32 x, [same], y;\nadd.u32 r, x, y;\nret;\n}\n";
    let body = "\
        .global .align 4 .b32 own[2] = {50, 60};\n.global .b64 same = own+4;\n.const .b64 both[2] = {same, generic(outer)};\n.shared .b32 tile;\n.reg .b32 %x, %y;\n\
        ld.global.u64 %d1, [same];\nld.global.u32 %a1, [%d1];\n\
        { .global .b32 own = 4;\nld.global.u32 %a2, [own];\nst.shared.u32 [tile], %a2;\n}\n\
        ld.const.u64 %d2, [both];\nld.global.u64 %d2, [%d2];\nld.global.u32 %a3, [%d2-4];\nld.const.u64 %d3, [both+8];\nld.u64 %d3, [%d3];\nld.global.u32 %a4, [%d3];\n\
        ld.shared.u32 %a5, [tile];\nmov.u32 %r, 0;\nsetp.eq.u32 %p1, %t, 0;\n@!%p1 bra done;\ncall (%x), next;\ncall (%y), next;\nmad.lo.u32 %r, %y, 100, %x;\ndone:\n\
        add.u32 %r, %r, %a1;\nadd.u32 %r, %r, %a3;\nadd.u32 %r, %r, %a4;\nadd.u32 %r, %r, %a5;";
    let text = with_function(functions, body);
    // 7 + 3 and 10 + 3 by the two calls of thread 0. Every thread adds 60, 50, 1000 and 4.
    let expected: Vec<u32> = (0..32).map(|t| if t == 0 { 1310 + 1114 } else { 1114 }).collect();
    Kernel::of(&text).output(&expected).holds();
}

#[test]
fn initial_values_and_offsets_can_be_expressions() {
    hold(
        ".const .u32 table[3] = {1<<3, 8*2, WARP_SZ-1};\n.const .u64 inner = numbers+4*2;\n.const .f32 floats[2] = {-1.5, 1e3};",
        &[
            ("ld.const.u32 %r, [table];", 8),
            ("ld.const.u32 %r, [table+8-4];", 16),
            ("ld.const.u32 %r, [table+2*4];", 31),
            ("ld.const.u64 %d, [inner];\nld.const.u32 %r, [%d];", 12),
            ("ld.const.u32 %r, [floats];", 0xbfc0_0000),
            ("ld.const.u32 %r, [floats+4];", 0x447a_0000),
        ],
    );
}
