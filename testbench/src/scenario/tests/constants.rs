//! Tests of constants, and of elements that an expression gives.

use super::load;
use crate::scenario::dtype::{Dtype, Number};
use crate::scenario::{Arg, Draft};

/// A scenario with constants `n` and `a`, and these buffers.
fn text(buffers: &str) -> String {
    format!(
        "ptx = \"k.ptx\"\n[constants]\nn = 8\na = 0.5\nblocks = \"ceil(n / 3)\"\n{buffers}\n\
         [[launch]]\ngrid = [\"blocks\", 2]\nblock = \"4 * n\"\ndynamic_shared_bytes = \"2 KiB\"\nargs = [{{ u32 = \"n\" }}]\n"
    )
}

/// The expected elements of buffer `y`.
fn expected(buffers: &str) -> Result<Vec<Number>, String> {
    let scenario = load(&text(buffers), &[])?;
    let y = scenario.buffers.iter().find(|buffer| buffer.name == "y").unwrap();
    let (bytes, dtype) = (&y.expect.as_ref().unwrap().bytes, y.layout.dtype);
    Ok(bytes
        .chunks_exact(dtype.bytes())
        .map(|element| dtype.read(element))
        .collect())
}

#[test]
fn sizes_and_arguments_are_given_by_expression() {
    let scenario = load(&text("[buffers.x]\ndtype = \"u8\"\nshape = [2, \"n + 1\"]"), &[]).unwrap();
    let launch = &scenario.launches[0];
    assert_eq!((launch.grid, launch.block), ([3, 2, 1], [32, 1, 1]));
    assert_eq!(launch.dynamic_shared_bytes, 2048);
    assert_eq!(launch.args, [Arg::Scalar(Dtype::U32, vec![8, 0, 0, 0])]);
    assert_eq!(scenario.buffers[0].layout.shape, [2, 9]);
}

#[test]
fn expected_floats_are_rounded_once_to_the_element_type() {
    let found = expected(
        "[buffers.x]\ndtype = \"f32\"\nshape = [3]\ninit = \"0.1 * i\"\n\
         [buffers.y]\ndtype = \"f32\"\nshape = [3]\ninit = { fill = 100 }\nexpect = \"a * x + y\"",
    );
    let wanted = [0.0f64, 0.1, 0.2].map(|x| (0.5 * f64::from((x) as f32) + 100.0) as f32);
    assert_eq!(found, Ok(wanted.map(|y| Number::Float(y.into())).to_vec()));
}

#[test]
fn expected_integers_are_exact() {
    let found = expected(
        "[buffers.x]\ndtype = \"u64\"\nshape = [4]\ninit = \"2 ** 64 - 1 - i\"\n\
         [buffers.y]\ndtype = \"u64\"\nshape = [4]\nexpect = \"u64(3 * x) + x[3 - i] % 2\"",
    );
    // 3 (2^64 - k) is -3 k modulo 2^64, and the elements 3 to 0 are even, odd, even, odd.
    let wanted = [(1, 0), (2, 1), (3, 0), (4, 1)].map(|(k, odd)| (1i128 << 64) - 3 * k + odd);
    assert_eq!(found, Ok(wanted.map(Number::Int).to_vec()));
}

#[test]
fn element_may_be_chosen_by_any_index() {
    let found = expected(
        "[buffers.x]\ndtype = \"i32\"\nshape = [2, 3]\ninit = { iota = { start = 10 } }\n\
         [buffers.y]\ndtype = \"i32\"\nshape = [3, 2]\nexpect = \"x[i % 2 * 3 + i // 2]\"",
    );
    assert_eq!(found, Ok([10, 13, 11, 14, 12, 15].map(Number::Int).to_vec()));
}

#[test]
fn branch_that_is_not_chosen_is_not_evaluated() {
    // Element 0 has no left neighbour.
    let found = expected(
        "[buffers.x]\ndtype = \"i32\"\nshape = [3]\ninit = { iota = { start = 10 } }\n\
         [buffers.y]\ndtype = \"i32\"\nshape = [3]\nexpect = \"if(i > 0, x[i - 1], 0)\"",
    );
    assert_eq!(found, Ok([0, 10, 11].map(Number::Int).to_vec()));
}

#[test]
fn wrong_expression_is_refused_with_its_element() {
    let y = |dtype: &str, expect: &str| {
        expected(&format!(
            "[buffers.x]\ndtype = \"u8\"\nshape = [2]\ninit = {{ fill = 5 }}\n\
             [buffers.y]\ndtype = \"{dtype}\"\nshape = [4]\nexpect = {expect}"
        ))
        .unwrap_err()
    };
    for (dtype, expect, says) in [
        ("u8", "\"x\"", "element 2: `x[...]` is 2, not an index below 2"),
        ("u8", "\"x[0.5]\"", "element 0: `x[...]` is 0.5, not a whole index"),
        ("u8", "\"z\"", "element 0: nothing is named `z` here; did you mean `a`?"),
        (
            "u8",
            "\"i * 100\"",
            "element 3: u8 cannot hold 300; change the number or the dtype",
        ),
        (
            "u8",
            "\"i / 2\"",
            "element 1: u8 cannot hold 0.5; change the number or the dtype",
        ),
        ("u8", "\"blocks[1]\"", "element 0: only a buffer has elements"),
        (
            "f32",
            "{ expr = \"x[0]\", fill = 1 }",
            "give exactly one of npy, fill, iota, uniform, permutation, values, expr; rtol and atol may be added",
        ),
        (
            "f32",
            "{ expr = \"x[0]\", rtol = 1.5 }",
            "with an rtol of 1 or more, zeros agree with every number; give an rtol below 1, not 1.5",
        ),
    ] {
        assert_eq!(
            y(dtype, expect),
            format!("s.toml: buffers.y.expect: {says}"),
            "{expect}"
        );
    }
    let slip = y("u8", "\"x +\"");
    assert!(
        slip.contains("line 13") && slip.contains("`x +` is not an expression"),
        "{slip}"
    );
}

#[test]
fn wrong_size_is_refused_with_its_key() {
    let says = |from: &str, to: &str| load(&text("").replace(from, to), &[]).unwrap_err();
    assert_eq!(
        says("\"blocks\", 2", "\"n - 8\", 2"),
        "s.toml: launch[0].grid: `n - 8` is 0; give a whole number from 1 to 4294967295"
    );
    assert_eq!(
        says("4 * n", "n / 3"),
        "s.toml: launch[0].block: `n / 3` is 2.6666666666666665; give a whole number from 1 to 4294967295"
    );
    assert_eq!(
        says("n = 8", "n = \"blocks\""),
        "s.toml: constants.blocks: the constants form a circle; give one of them a number"
    );
    // No size has an element, so `i` is no hint.
    assert_eq!(
        load("ptx = \"k.ptx\"\nlaunch = [{ grid = \"n\", block = 32 }]", &[]).unwrap_err(),
        "s.toml: launch[0].grid: nothing is named `n` here"
    );
    let both = load(&text("[buffers.n]\ndtype = \"u8\"\nshape = [1]"), &[]).unwrap_err();
    assert_eq!(
        both,
        "s.toml: constants.n: a buffer has this name too; rename one of them"
    );
}

#[test]
fn constant_is_replaced_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    std::fs::write(folder.path().join("k.ptx"), "").unwrap();
    std::fs::write(&path, text("")).unwrap();
    let with = |values: &[(&str, &str)]| {
        let draft = Draft::load(&path).unwrap().with_constants(values);
        let scenario = draft.and_then(|draft| draft.build(None));
        let shown = format!("{}/", folder.path().display());
        scenario
            .map(|scenario| scenario.launches[0].grid)
            .map_err(|error| error.to_string().replace(&shown, ""))
    };
    assert_eq!(with(&[]), Ok([3, 2, 1]));
    assert_eq!(with(&[("n", "3 * 4"), ("a", "2")]), Ok([4, 2, 1]));
    assert_eq!(with(&[("blocks", "n + 1")]), Ok([9, 2, 1]));
    assert_eq!(
        with(&[("bloks", "1")]).unwrap_err(),
        "s.toml: constants.bloks: the scenario has no such constant; did you mean `blocks`?; it has a, blocks, n"
    );
    assert_eq!(
        with(&[("n", "4 *")]).unwrap_err(),
        "s.toml: constants.n: `4 *` is not an expression: a number, a name or `(` expected at column 4"
    );
    let listed = Draft::load(&path).unwrap().constants();
    assert_eq!(listed[1], ("blocks".to_owned(), "ceil(n / 3)".to_owned()));
}

#[test]
fn constant_named_like_a_size_is_an_axis_only_if_a_launch_takes_it() {
    let with = |launch: &str, name: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        std::fs::write(folder.path().join("k.ptx"), "").unwrap();
        let text = format!("ptx = \"k.ptx\"\nconstants = {{ {name} = 32, through = \"{name}\" }}\n{launch}\n");
        std::fs::write(&path, text).unwrap();
        // A new value alone promises nothing.
        let changed = Draft::load(&path).unwrap().with_constants(&[(name, "64")]);
        assert!(changed.is_ok());
        let checked = Draft::load(&path).unwrap().check_axes(["through", name].into_iter());
        checked.map_err(|error| error.fault.to_string())
    };
    let refused = |name: &str, rest: &str| {
        Err(format!(
            "no launch computes its {name} from this constant, so a new value changes no {name}; rename the constant{rest}"
        ))
    };
    let others = "[[launch]]\ngrid = \"block\"\nblock = 32\n";
    assert_eq!(
        with(others, "block"),
        refused("block", ", or sweep over launch[0].block")
    );
    // One launch that takes it is enough, also through another constant.
    assert_eq!(
        with(
            &format!("{others}[[launch]]\ngrid = 1\nblock = [1, \"through\"]"),
            "block"
        ),
        Ok(())
    );
    let plain = "launch = [{ grid = 1, block = 32 }]";
    for name in ["grid", "cluster", "dynamic_shared_bytes"] {
        assert_eq!(
            with(plain, name),
            refused(name, &format!(", or sweep over launch[0].{name}"))
        );
        let used = format!("launch = [{{ grid = 1, block = 32, {name} = \"{name}\" }}]")
            .replace("grid = 1, block = 32, grid", "block = 32, grid");
        assert_eq!(with(&used, name), Ok(()), "{name}");
    }
    assert_eq!(with(plain, "max_registers"), refused("max_registers", ""));
    assert_eq!(
        with(&format!("max_registers = \"through\"\n{plain}"), "max_registers"),
        Ok(())
    );
    assert_eq!(with(plain, "n"), Ok(()));
}
