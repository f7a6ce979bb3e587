//! Rules of the lowering that change values: spilled results, contraction, and literals.

use super::{Kernel, one_word_each};

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

/// Every case has the value of one multiply-add if ptxas 11.8 for sm_80 gives one, and of a rounded product otherwise.
#[test]
fn products_contract_where_the_vendor_contracts_them() {
    let (x, y) = (f32::from_bits(0x3f80_0003), f32::from_bits(0x3f80_0006));
    let fused = x.mul_add(x, -y).to_bits();
    let rounded = (x * x - y).to_bits();
    assert_ne!(fused, rounded);
    let product = "mul.f32 %f3, %f1, %f1;\n";
    let sum = "sub.f32 %f5, %f3, %f2;\n";
    let between = |code: &str| format!("{product}{code}\n{sum}");
    let cases = [
        // Copies, negations and reused registers.
        (format!("{product}{sum}"), fused),
        (format!("{product}mov.f32 %f4, %f3;\nsub.f32 %f5, %f4, %f2;"), fused),
        (
            format!("{product}mov.b32 %v9, %f3;\nmov.b32 %f4, %v9;\nsub.f32 %f5, %f4, %f2;"),
            fused,
        ),
        (
            format!("{product}neg.f32 %f4, %f3;\nadd.f32 %f5, %f4, %f2;\nneg.f32 %f5, %f5;"),
            fused,
        ),
        (format!("{product}neg.f32 %f4, %f3;\nneg.f32 %f3, %f4;\n{sum}"), fused),
        ("mul.f32 %f1, %f1, %f1;\nsub.f32 %f5, %f1, %f2;".to_owned(), fused),
        (
            format!("mul.f32 %f3, %f2, %f2;\nadd.f32 %f6, %f3, %f2;\nst.global.f32 [%o], %f6;\n{product}{sum}"),
            fused,
        ),
        (
            format!("{product}mov.f32 %f1, %f2;\n{sum}st.global.f32 [%o], %f1;"),
            fused,
        ),
        (format!("{product}{sum}max.f32 %f6, %f3, %f1;"), fused),
        // An integer operation on the sign is a reader.
        (
            format!(
                "{product}mov.b32 %v9, %f3;\nxor.b32 %v9, %v9, 0x80000000;\nmov.b32 %f3, %v9;\nadd.f32 %f5, %f3, %f2;"
            ),
            rounded,
        ),
        (
            format!("{product}{sum}@%p1 mov.f32 %f3, %f2;\nst.global.f32 [%o], %f3;"),
            rounded,
        ),
        // Labels and jumps.
        (between("unused:"), fused),
        (between("@%p1 bra next;\nnext:"), fused),
        (between("@%p1 bra over;\nst.global.u32 [%o], %t;\nover:"), rounded),
        // Instructions that end a region, or not.
        (between("bar.sync 0;"), fused),
        (between("@%p1 add.u32 %v9, %t, %v9;"), fused),
        (between("st.global.u32 [%o], %t;"), fused),
        (between("@%p1 st.global.u32 [%o], %t;"), rounded),
        (between("@%p1 ld.global.u32 %v9, [%o];"), rounded),
        (between("@%p1 red.global.add.u32 [%o], 1;"), rounded),
        (between("@%p1 exit;"), rounded),
        (between("membar.gl;"), rounded),
        (between("fence.acq_rel.cta;"), rounded),
        (
            between("div.approx.f32 %f9, %f1, %f2;\nst.global.f32 [%o], %f9;"),
            fused,
        ),
        (between("div.rn.f32 %f9, %f1, %f2;\nst.global.f32 [%o], %f9;"), rounded),
        (between("div.s32 %v9, %v0, 7;\nst.global.u32 [%o], %v9;"), rounded),
    ];
    for (code, expected) in cases {
        let body = format!(
            "mov.b32 %f1, %v0;\nmov.b32 %f2, %v1;\nmov.u32 %v9, 0;\nsetp.eq.u32 %p1, %t, 99;\n{code}\nmov.b32 %r, %f5;"
        );
        println!("{code}");
        let kernel = Kernel::of(&with_words(2, "", &body)).sizes(1, 1);
        kernel.input(&[x.to_bits(), y.to_bits()]).output(&[expected]).holds();
    }
}

/// A double is two registers: `neg` changes the second, and `mov.b64` moves them one by one.
#[test]
fn products_of_doubles_contract_through_their_words() {
    let (x, y) = (f64::from(f32::from_bits(0x3f80_0003)) + 1e-12, 1.000_001);
    let product = "mul.f64 %g3, %g1, %g1;\n";
    let cases = [
        format!("{product}sub.f64 %g5, %g3, %g2;"),
        format!("{product}neg.f64 %g3, %g3;\nadd.f64 %g5, %g3, %g2;\nneg.f64 %g5, %g5;"),
        format!("{product}mov.b64 {{%v8, %v9}}, %g3;\nmov.b64 %g4, {{%v8, %v9}};\nsub.f64 %g5, %g4, %g2;"),
    ];
    let fused = x.mul_add(x, -y).to_bits();
    assert_ne!(fused, (x * x - y).to_bits());
    let words = |bits: u64| [bits as u32, (bits >> 32) as u32];
    let input = [words(x.to_bits()), words(y.to_bits())].concat();
    for code in cases {
        for (part, expected) in ["%r, %v9", "%v9, %r"].into_iter().zip(words(fused)) {
            let body =
                format!("mov.b64 %g1, {{%v0, %v1}};\nmov.b64 %g2, {{%v2, %v3}};\n{code}\nmov.b64 {{{part}}}, %g5;");
            let kernel = Kernel::of(&with_words(4, "", &body)).sizes(1, 1);
            kernel.input(&input).output(&[expected]).holds();
        }
    }
}

#[test]
fn literal_fills_both_words_of_its_part() {
    for (part, expected) in [("%r, %a1", u32::MAX - 1), ("%a1, %r", u32::MAX)] {
        let body = format!(
            ".reg .b128 %q;\nmov.u64 %d1, 5;\nmov.b128 %q, {{%d1, -2}};\nmov.b128 {{%d2, %d3}}, %q;\nmov.b64 {{{part}}}, %d3;"
        );
        Kernel::of(&one_word_each("sm_80", &body))
            .output(&[expected; 32])
            .holds();
    }
}

#[test]
fn constant_expressions_and_short_floats_have_their_values() {
    let body = "\
        .reg .u64 %q<4>;\nmov.u32 %r, (1<<4)|3;\nadd.u32 %r, %r, 4+8*2;\nsub.u32 %r, %r, -(3);\nadd.u32 %r, %r, 1?100:3;\n\
        mov.u64 %q1, ~0>>1;\nshr.u64 %q1, %q1, 8*7+6;\ncvt.u32.u64 %a1, %q1;\nmad.lo.u32 %r, %a1, 1000, %r;\n\
        add.f32 %f1, 1e3, .5;\nadd.f32 %f1, %f1, 1.;\nmul.f32 %f1, %f1, -2E+1;\ncvt.rzi.s32.f32 %a2, %f1;\nsub.u32 %r, %r, %a2;";
    // 19 + 20 + 3 + 100, 1 * 1000, and 1001.5 * 20.
    Kernel::of(&one_word_each("sm_80", body))
        .output(&[142 + 1000 + 20_030; 32])
        .holds();
}

/// A product and a sum round once as one multiply-add, and twice without the pass that joins them.
#[test]
fn product_and_sum_round_twice_without_contraction() {
    let body = "cvt.rn.f32.u32 %f0, %t;\nfma.rn.f32 %f0, %f0, 0f35000000, 0f3f800000;\nmul.f32 %f1, %f0, %f0;\nadd.f32 %f2, %f1, 0fbf800000;\n\
                mov.b32 %r, %f2;";
    let text = super::one_word_each("sm_80", body);
    // 1 + t / 2^21, exact.
    let x = |t: u32| 1.0 + t as f32 / 2_097_152.0;
    let once: Vec<u32> = (0..32).map(|t| x(t).mul_add(x(t), -1.0).to_bits()).collect();
    let twice: Vec<u32> = (0..32).map(|t| (x(t) * x(t) - 1.0).to_bits()).collect();
    assert_ne!(once, twice);
    super::Kernel::of(&text).output(&once).holds();
    super::Kernel::of(&text).without("contract").output(&twice).holds();
}
