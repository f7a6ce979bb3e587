//! Tests of expressions: values by hand, and complete error texts.

use super::*;

fn value(text: &str) -> Result<Number, String> {
    let expr = Expr::parse(text).map_err(|error| error.to_string())?;
    expr.value(&()).map_err(|error| error.to_string())
}

fn int(text: &str) -> i128 {
    match value(text) {
        Ok(Number::Int(value)) => value,
        other => panic!("{text} is {other:?}, not an integer"),
    }
}

fn float(text: &str) -> f64 {
    match value(text) {
        Ok(Number::Float(value)) => value,
        other => panic!("{text} is {other:?}, not a float"),
    }
}

#[test]
fn integers_are_exact() {
    assert_eq!(int("1_000_000 * 4"), 4_000_000);
    assert_eq!(int("0xffff_ffff_ffff_ffff + 1"), 1 << 64);
    assert_eq!(int("2 ** 100 - 1"), (1 << 100) - 1);
    assert_eq!(int("ceil(1_000_001 / 256)"), 3907);
    assert_eq!(int("7 // 2 + -7 // 2 * 10"), 3 - 40);
    assert_eq!(int("7 % 4 * 100 + -7 % 4"), 301);
    assert_eq!(int("12 / 4"), 3);
    assert_eq!(float("7 / 2"), 3.5);
}

#[test]
fn numbers_have_units_and_powers_of_ten() {
    assert_eq!(int("48 KiB"), 49152);
    assert_eq!(int("2MiB + 1 GiB"), (2 << 20) + (1 << 30));
    assert_eq!(int("3 MB // 1 kB"), 3000);
    assert_eq!(int("1e6"), 1_000_000);
    assert_eq!(float("1.5 KiB"), 1536.0);
    assert_eq!(float("1e-3"), 0.001);
    assert_eq!(float("2.5e3"), 2500.0);
}

#[test]
fn operators_bind_as_in_c_and_python() {
    assert_eq!(int("1 + 2 * 3 << 1"), 14);
    assert_eq!(int("-2 ** 2"), -4);
    assert_eq!(int("2 ** 3 ** 2"), 512);
    assert_eq!(int("6 & 3 | 8 ^ 1"), 2 | 9);
    assert_eq!(int("1 < 2 && 3 >= 4 || 5 != 6"), 1);
    assert_eq!(int("!0 + 1"), 2);
    assert_eq!(int("1 == 1 and 0 or 0"), 0);
    assert_eq!(int("(1 + 2) * 3"), 9);
    assert_eq!(int("~0 & 0xff"), 255);
}

#[test]
fn operand_that_does_not_decide_is_not_evaluated() {
    assert_eq!(int("0 and 1 // 0"), 0);
    assert_eq!(int("1 or 1 // 0"), 1);
    assert_eq!(int("if(1 > 2, 1 // 0, 7)"), 7);
}

#[test]
fn functions_give_the_values_of_mathematics() {
    assert_eq!(int("floor(-1.5) * 100 + ceil(-1.5) * 10 + round(2.5)"), -200 - 10 + 3);
    assert_eq!(int("min(3, 1, 2) + max(3, 1, 2) * 10 + abs(-4) * 100"), 431);
    assert_eq!(float("sqrt(2.25)"), 1.5);
    assert_eq!(float("exp(0) + log(1) + sin(0) + erf(0) + tanh(0)"), 1.0);
    assert_eq!(float("log2(8) + exp2(3)"), 11.0);
    // One rounding: 2^-60 would be lost in the product of two roundings.
    assert_eq!(float("fma(1 + 2.0 ** -30, 1 - 2.0 ** -30, -1.0)"), -(2f64.powi(-60)));
}

#[test]
fn conversions_round_and_wrap_as_the_types_do() {
    assert_eq!(float("f32(0.1)"), f64::from(0.1f32));
    assert_eq!(float("f16(2049)"), 2048.0);
    assert_eq!(int("u32(-1)"), 0xffff_ffff);
    assert_eq!(int("i8(200)"), -56);
    assert_eq!(int("u32(1664525 * 4294967295 + 1013904223)"), 1_012_239_698);
    assert_eq!(int("i32(-2.7)"), -2);
}

#[test]
fn wrong_text_is_refused_with_its_column() {
    for (text, says) in [
        (
            "",
            "`` is not an expression: a number, a name or `(` expected at column 1",
        ),
        (
            "ceil(n / 256",
            "`ceil(n / 256` is not an expression: `,` or `)` expected at column 13",
        ),
        (
            "1 +",
            "`1 +` is not an expression: a number, a name or `(` expected at column 4",
        ),
        (
            "2 x",
            "`2 x` is not an expression: a unit (kB, MB, GB, KiB, MiB, GiB) or an operator expected at column 3",
        ),
        (
            "(2 x)",
            "`(2 x)` is not an expression: a unit (kB, MB, GB, KiB, MiB, GiB) or an operator expected at column 4",
        ),
        ("(1", "`(1` is not an expression: `)` expected at column 3"),
        ("x[1", "`x[1` is not an expression: `]` expected at column 4"),
        ("'ab", "`'ab` is not an expression: a closed text expected at column 1"),
        (
            "0x",
            "`0x` is not an expression: an integer below 2^127, or a finite number expected at column 1",
        ),
        (
            "1e400",
            "`1e400` is not an expression: an integer below 2^127, or a finite number expected at column 1",
        ),
        (
            "1 < 2 < 3",
            "`1 < 2 < 3` is not an expression: `and`, or the end: comparisons do not chain, so an operator expected at column 7",
        ),
    ] {
        assert_eq!(value(text).unwrap_err(), says, "{text}");
    }
    for text in ["1 KB", "2 TiB + 1", "3 n"] {
        let says = value(text).unwrap_err();
        assert!(says.ends_with(" or an operator expected at column 3"), "{says}");
        for (unit, _) in warpwave_components::preset::BYTE_UNITS {
            assert!(says.contains(unit), "{says}");
        }
    }
    assert_eq!(int("1 and 2"), 1);
    let limits = "an expression has at most 2000 bytes and 64 nested parts; split it with [constants]";
    for text in ["(".repeat(1999), "-".repeat(1999), format!("1{}", "+1".repeat(1000))] {
        assert_eq!(value(&text).unwrap_err(), limits);
    }
    assert_eq!(int(&format!("1{}", "+1".repeat(999))), 1000);
}

#[test]
fn impossible_operation_is_refused_with_its_operands() {
    for (text, says) in [
        ("1 // 0", "cannot compute 1 // 0: division by zero"),
        ("1 % 0", "cannot compute 1 % 0: division by zero"),
        (
            "2 ** 200",
            "cannot compute 2 ** 200: the result needs more than 128 bits",
        ),
        ("1.5 << 1", "cannot compute 1.5 << 1: it needs integers"),
        ("~1.5", "cannot compute ~1.5: it needs an integer of 128 bits"),
        (
            "(2 ** 60 + 1) / 2",
            "cannot compute 1152921504606846977 / 2: above 2^53 the quotient of integers is not exact; use //",
        ),
        (
            "ceil(1.0 / 0)",
            "cannot compute ceil(inf): the result is no integer of 128 bits",
        ),
        ("ciel(1)", "no function is named `ciel`; did you mean `ceil`?"),
        ("exp(1, 2)", "`exp` takes one argument, not 2"),
        ("if(1)", "`if` takes three arguments, not 1"),
        ("n", "nothing is named `n` here"),
        ("n[1]", "`n` has no elements here"),
        ("'n'", "the text \"n\" has no value"),
    ] {
        assert_eq!(value(text).unwrap_err(), says, "{text}");
    }
}

#[test]
fn quotient_of_smallest_integer_and_minus_one_is_refused() {
    let least = "(-(2 ** 126) - 2 ** 126)";
    for operator in ["/", "//", "%", "*"] {
        let found = value(&format!("{least} {operator} -1"));
        assert!(found.is_err(), "{operator}: {found:?}");
    }
}
