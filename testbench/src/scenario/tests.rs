//! Tests of accepted and refused scenario texts, with complete error texts.

mod constants;
mod pointers;

use super::*;
use warpwave_isa::exec::texture::AddressMode;
use warpwave_isa::inst::Ty;

/// Loads `s.toml` with this text from a folder with `k.ptx` and these files. Removes the folder's path from messages.
fn load(text: &str, files: &[(&str, &[u8])]) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("k.ptx", b".version 7.0");
    write("s.toml", text.as_bytes());
    files.iter().for_each(|(name, bytes)| write(name, bytes));
    let shown = format!("{}/", folder.path().display());
    Scenario::load(&folder.path().join("s.toml")).map_err(|error| error.to_string().replace(&shown, ""))
}

/// The error text for a scenario with one launch and one buffer `x` with this body.
fn refused(buffer: &str) -> String {
    load(
        &format!("ptx = \"k.ptx\"\n[buffers.x]\n{buffer}\n[[launch]]\ngrid = 1\nblock = 1\n"),
        &[],
    )
    .unwrap_err()
}

#[test]
fn scenario_with_every_key_is_resolved() {
    let text = r#"
        title = "all keys"
        claim = "a scenario may say all this"
        ptx = "k.ptx"
        gpu = "tiny"

        [buffers.x]
        dtype = "f32"
        shape = [2, 1]
        init = { npy = "x.npy" }
        expect = { values = [1, 2.5], rtol = 1e-5, atol = 1e-6 }

        [buffers.a]
        dtype = "u8"
        shape = [3]
        init = { iota = { start = 7 } }
        expect = { fill = 0 }

        [globals.table]
        dtype = "bf16"
        shape = [2]
        init = { fill = 1 }

        [[launch]]
        entry = "k"
        grid = [4, 2]
        block = 256
        dynamic_shared_bytes = 64
        cluster = [2, 1, 1]
        args = ["x", { f32 = 2 }, { u64 = "0xffff_ffff_ffff_ffff" }, { bytes = "00fF" }, { struct = ["a", { i8 = -1 }] }]

        [[launch]]
        grid = 1
        block = [8, 8, 8]

        [[assert]]
        metric = "smsp__inst_executed.sum"
        max = 0
        launch = 1
    "#;
    let mut npy = Vec::new();
    npy::write(&mut npy, Dtype::F32, &[2, 1], &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let scenario = load(text, &[("x.npy", &npy)]).unwrap();

    assert_eq!((scenario.name.as_str(), scenario.gpu.as_deref()), ("s", Some("tiny")));
    assert_eq!(scenario.ptx, ".version 7.0");
    let [a, x] = &scenario.buffers[..] else {
        panic!("two buffers, by name")
    };
    assert_eq!((a.name.as_str(), &a.init), ("a", &vec![7, 8, 9]));
    assert_eq!(
        a.expect,
        Some(Expect {
            bytes: vec![0; 3],
            rtol: 0.0,
            atol: 0.0
        })
    );
    assert_eq!(x.init, [1, 2, 3, 4, 5, 6, 7, 8]);
    let values = [1f32.to_le_bytes(), 2.5f32.to_le_bytes()].concat();
    assert_eq!(
        x.expect,
        Some(Expect {
            bytes: values,
            rtol: 1e-5,
            atol: 1e-6
        })
    );
    assert_eq!(scenario.globals[0].init, [0x80, 0x3f, 0x80, 0x3f]);
    assert_eq!(
        scenario.launches[0],
        Launch {
            entry: Some("k".into()),
            grid: [4, 2, 1],
            block: [256, 1, 1],
            dynamic_shared_bytes: 64,
            cluster: Some([2, 1, 1]),
            args: vec![
                Arg::Buffer(1),
                Arg::Scalar(Dtype::F32, 2f32.to_le_bytes().to_vec()),
                Arg::Scalar(Dtype::U64, vec![0xff; 8]),
                Arg::Bytes(vec![0, 0xff]),
                Arg::Struct(vec![Arg::Buffer(0), Arg::Scalar(Dtype::I8, vec![0xff])]),
            ],
            ..Launch::default()
        }
    );
    assert_eq!(
        (scenario.launches[1].grid, scenario.launches[1].block),
        ([1, 1, 1], [8, 8, 8])
    );
    assert_eq!(
        (scenario.asserts[0].max, scenario.asserts[0].launch),
        (Some(0.0), Some(1))
    );
}

#[test]
fn texture_has_the_sizes_of_its_buffer() {
    let text = |shape: &str, rest: &str| {
        format!(
            "ptx = \"k.ptx\"\n[buffers.b]\ndtype = \"u8\"\nshape = {shape}\n\
             [[launch]]\ngrid = 1\nblock = 1\nargs = [{{ texture = {{ buffer = \"b\"{rest} }} }}]\n"
        )
    };
    let wrapped = text(
        "[3, 5, 4]",
        ", address = \"wrap\", normalized = true, read = \"normalized\"",
    );
    let scenario = load(&wrapped, &[]).unwrap();
    let [Arg::Image(Image { buffer: 0, texture })] = &scenario.launches[0].args[..] else {
        panic!("an image of the only buffer")
    };
    assert_eq!(
        (texture.width, texture.height, texture.depth, texture.channels),
        (5, 3, 1, 4)
    );
    assert_eq!((texture.channel, texture.address_mode), (Ty::U8, AddressMode::Wrap));
    assert!(texture.normalized_coords && texture.normalized_values && !texture.linear_filter);
    let layers = load(&text("[6, 5]", ", layers = 3"), &[]).unwrap();
    let [Arg::Image(Image { texture, .. })] = &layers.launches[0].args[..] else {
        panic!("an image of the only buffer")
    };
    assert_eq!((texture.width, texture.height, texture.depth), (5, 2, 3));
    let refused = |shape, rest| load(&text(shape, rest), &[]).unwrap_err();
    assert!(refused("[3, 5, 3]", "").contains("buffer `b` cannot be an image: its shape must be [width]"));
    assert!(refused("[7, 5]", ", layers = 3").contains("its number of rows must be a multiple of its layers"));
    assert!(refused("[5]", ", filter = \"linear\"").contains("on integers needs read = \"normalized\""));
    let blocks = ", order = \"blocks\"";
    assert!(load(&text("[8, 64]", blocks), &[]).is_ok());
    for shape in ["[8, 63]", "[12, 64]", "[64]"] {
        assert!(refused(shape, blocks).contains("needs rows of whole 64 bytes, and a multiple of 8 rows"));
    }
}

#[test]
fn misspelt_key_is_reported_with_its_line_and_the_nearest_key() {
    assert_eq!(
        refused("dytpe = \"f32\"\nshape = [1]"),
        "s.toml: buffers.x.dytpe: TOML parse error at line 3, column 1\n  \
           |\n3 | dytpe = \"f32\"\n  | ^^^^^\n\
         unknown field `dytpe`, expected one of `dtype`, `shape`, `init`, `expect`, `fields`; did you mean `dtype`?"
    );
    let init = refused("dtype = \"f32\"\nshape = [1]\ninit = \"zeroes\"");
    assert!(init.starts_with("s.toml: buffers.x.init: "), "{init}");
    assert!(init.ends_with("did you mean `zeros`?"), "{init}");
}

#[test]
fn wrong_value_is_refused_with_key_and_remedy() {
    let cases = [
        (
            "dtype = \"u8\"\nshape = [2]\ninit = { fill = 300 }",
            "s.toml: buffers.x.init: u8 cannot hold 300; change the number or the dtype",
        ),
        (
            "dtype = \"u8\"\nshape = [2]\ninit = { values = [1] }",
            "s.toml: buffers.x.init: 1 values for a buffer of 2 elements; give one per element",
        ),
        (
            "dtype = \"u8\"\nshape = [0]",
            "s.toml: buffers.x.shape: a shape is a list of sizes above 0, in all at most 64 GiB, not [0]",
        ),
        (
            "dtype = \"u8\"\nshape = [2]\nexpect = { rtol = 1.0 }",
            "s.toml: buffers.x.expect: give exactly one of npy, fill, iota, uniform, permutation, values, expr; rtol and atol may be added",
        ),
        (
            "dtype = \"f32\"\nshape = [2]\nexpect = { fill = 0, rtol = -1.0 }",
            "s.toml: buffers.x.expect: a tolerance is a finite number of at least 0, not -1.0",
        ),
    ];
    for (buffer, message) in cases {
        assert_eq!(refused(buffer), message);
    }
    let missing = refused("dtype = \"f32\"\nshape = [2]\ninit = { npy = \"no.npy\" }");
    assert!(
        missing.starts_with("s.toml: buffers.x.init: cannot read no.npy: "),
        "{missing}"
    );
}

/// An npy file with this shape and these data.
fn npy_file(shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

#[test]
fn array_with_fewer_or_more_bytes_than_its_shape_is_refused() {
    let text = "ptx = \"k.ptx\"\n[buffers.x]\ndtype = \"u32\"\nshape = [2]\ninit = { npy = \"x.npy\" }\n\
                [[launch]]\ngrid = 1\nblock = 1\n";
    let given = |data: &[u8]| {
        load(text, &[("x.npy", &npy_file("(2,)", data))]).map(|scenario| scenario.buffers[0].init.clone())
    };
    assert_eq!(given(&[1, 0, 0, 0, 2, 0, 0, 0]), Ok(vec![1, 0, 0, 0, 2, 0, 0, 0]));
    for (n, found) in [(0, "0"), (7, "7"), (9, "more than 8"), (4096, "more than 8")] {
        assert_eq!(
            given(&vec![0; n]).unwrap_err(),
            format!(
                "s.toml: buffers.x.init: x.npy is not an npy array: {found} bytes of data, its shape and dtype take 8; \
                 write it with numpy.save"
            )
        );
    }
}

#[test]
fn array_with_an_oversized_header_is_refused_before_it_is_read() {
    let text = "ptx = \"k.ptx\"\n[buffers.x]\ndtype = \"u32\"\nshape = [2]\ninit = { npy = \"x.npy\" }\n\
                [[launch]]\ngrid = 1\nblock = 1\n";
    let file = [&b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..], b"{'descr': '<u4'"].concat();
    assert_eq!(
        load(text, &[("x.npy", &file)]).unwrap_err(),
        "s.toml: buffers.x.init: x.npy is not an npy array: a header of 4294967295 bytes, at most 1048576 are read; \
         write it with numpy.save"
    );
}

#[test]
fn expectation_that_cannot_fail_is_refused() {
    let tolerance = "a tolerance is a finite number of at least 0, not";
    let relative = "with an rtol of 1 or more, zeros agree with every number; give an rtol below 1, not";
    let cases = [
        ("f32", "fill = 1, atol = inf", format!("{tolerance} inf")),
        ("f32", "fill = 1, atol = nan", format!("{tolerance} NaN")),
        ("f32", "fill = 1, atol = -1e-9", format!("{tolerance} -1e-9")),
        ("f32", "fill = 1, rtol = inf", format!("{tolerance} inf")),
        ("f32", "fill = 1, rtol = -inf", format!("{tolerance} -inf")),
        ("f32", "fill = 1, rtol = 1e300", format!("{relative} 1e300")),
        ("f64", "fill = 1, rtol = 1", format!("{relative} 1.0")),
        (
            "f32",
            "fill = 1, atol = 1e300",
            "every finite f32 agrees within an atol of 1e300 and an rtol of 0.0; give smaller ones".to_owned(),
        ),
        (
            "f16",
            "fill = 1, atol = 65505",
            "every finite f16 agrees within an atol of 65505.0 and an rtol of 0.0; give smaller ones".to_owned(),
        ),
        (
            "u8",
            "fill = 0, atol = 255",
            "every u8 agrees within an atol of 255.0 and an rtol of 0.0; give smaller ones".to_owned(),
        ),
        (
            "i8",
            "fill = -128, atol = 128, rtol = 0.999",
            "every i8 agrees within an atol of 128.0 and an rtol of 0.999; give smaller ones".to_owned(),
        ),
    ];
    for (dtype, expect, message) in cases {
        let found = refused(&format!("dtype = \"{dtype}\"\nshape = [2]\nexpect = {{ {expect} }}"));
        assert_eq!(
            found,
            format!("s.toml: buffers.x.expect: {message}"),
            "{dtype} {expect}"
        );
    }
    for (dtype, expect) in [
        ("f32", "fill = 1, rtol = 0.999"),
        ("f32", "fill = 1, atol = 1e38"),
        ("u8", "fill = 0, atol = 254"),
        ("i8", "fill = -128, atol = 127, rtol = 0.99"),
        ("u8", "values = [0, 128], atol = 127"),
        ("f32", "fill = inf, rtol = 0.5"),
    ] {
        let text = format!(
            "ptx = \"k.ptx\"\n[buffers.x]\ndtype = \"{dtype}\"\nshape = [2]\nexpect = {{ {expect} }}\n\
             [[launch]]\ngrid = 1\nblock = 1\n"
        );
        assert!(load(&text, &[]).is_ok(), "{dtype} {expect}");
    }
}

#[test]
fn assertion_with_an_infinite_or_nan_bound_is_refused() {
    let asserts = |bound: &str| {
        let text = format!("ptx = \"k.ptx\"\n[[launch]]\ngrid = 1\nblock = 1\n[[assert]]\nmetric = \"m\"\n{bound}\n");
        load(&text, &[]).map(|_| ())
    };
    for (bound, shown) in [
        ("max = nan", "NaN"),
        ("min = nan", "NaN"),
        ("equal = nan", "NaN"),
        ("max = inf", "inf"),
        ("min = -inf", "-inf"),
        ("equal = inf", "inf"),
        ("max = 1e300", "1e300"),
        ("min = -2e19", "-2e19"),
        ("min = -5", "-5.0"),
        ("max = -5", "-5.0"),
        ("min = 1\nmax = nan", "NaN"),
    ] {
        assert_eq!(
            asserts(bound),
            Err(format!(
                "s.toml: assert[0]: a bound is a number from 0 to 2^64, the range of a counter, not {shown}"
            )),
            "{bound}"
        );
    }
    assert_eq!(asserts("max = 1e19\nmin = 0"), Ok(()));
}

#[test]
fn name_must_be_a_plain_file_name() {
    let long = "x".repeat(201);
    for table in ["buffers", "globals"] {
        for name in [
            "",
            ".",
            "..",
            "../../x",
            "/etc/x",
            "a/b",
            "a\\\\b",
            "a\\u0000b",
            "a\\nb",
            &long,
        ] {
            let text = format!(
                "ptx = \"k.ptx\"\n[{table}.\"{name}\"]\ndtype = \"u8\"\nshape = [1]\n[[launch]]\ngrid = 1\nblock = 1\n"
            );
            let message = load(&text, &[]).unwrap_err();
            assert!(
                message.starts_with(&format!("s.toml: {table}: the name "))
                    && message.ends_with(
                        " is not a plain file name, which --dump needs; use 1 to 200 bytes without / or \\ or control characters"
                    ),
                "{table} {name}: {message}"
            );
        }
    }
    let text =
        "ptx = \"k.ptx\"\n[buffers.\"..a b-$1.ü\"]\ndtype = \"u8\"\nshape = [1]\n[[launch]]\ngrid = 1\nblock = 1\n";
    assert!(load(text, &[]).is_ok());
}

#[test]
fn byte_order_mark_is_skipped() {
    let text = "\u{feff}ptx = \"k.ptx\"\n[[launch]]\ngrid = 1\nblock = 1\n";
    assert_eq!(load(text, &[]).map(|scenario| scenario.launches.len()), Ok(1));
    let slip = load("\u{feff}ptxx = 1\n", &[]).unwrap_err();
    assert!(slip.contains("line 1, column 1\n"), "{slip}");
}

#[test]
fn unknown_buffer_of_an_argument_is_refused_with_the_nearest_name() {
    let text = "ptx = \"k.ptx\"\n[buffers.input]\ndtype = \"u8\"\nshape = [1]\n[[launch]]\ngrid = 1\nblock = 1\nargs = [\"imput\"]";
    assert_eq!(
        load(text, &[]).unwrap_err(),
        "s.toml: launch[0].args: no buffer is named `imput`; declare it as [buffers.imput]; did you mean `input`?"
    );
    let unknown = load(&text.replace("\"imput\"", "{ f31 = 1.0 }"), &[]).unwrap_err();
    assert!(unknown.ends_with("did you mean `f32`?"), "{unknown}");
    let two = load(&text.replace("\"imput\"", "{ f32 = 1.0, u32 = 1 }"), &[]).unwrap_err();
    assert!(two.contains("expected a buffer's name, { dtype = value }"), "{two}");
}

#[test]
fn scenario_without_launch_or_with_an_empty_assertion_is_refused() {
    assert_eq!(
        load("ptx = \"k.ptx\"", &[]).unwrap_err(),
        "s.toml: nothing is launched; add a [[launch]]"
    );
    let launch = "ptx = \"k.ptx\"\n[[launch]]\ngrid = 1\nblock = 1\n[[assert]]\nmetric = \"m\"\n";
    assert_eq!(
        load(launch, &[]).unwrap_err(),
        "s.toml: assert[0]: asserts nothing; add min, max or equal"
    );
    assert_eq!(
        load(&format!("{launch}max = 1\nlaunch = 1"), &[]).unwrap_err(),
        "s.toml: assert[0]: launch 1 does not exist; the scenario has 1, counted from 0"
    );
    let zero = load("ptx = \"k.ptx\"\n[[launch]]\ngrid = 0\nblock = 1\n", &[]).unwrap_err();
    assert!(zero.contains("each from 1 to 4294967295"), "{zero}");
}

#[test]
fn unknown_scenario_is_refused_with_a_remedy() {
    assert_eq!(
        Scenario::find("no-such-thing").unwrap_err().to_string(),
        "no-such-thing: neither a file nor a built-in scenario; `warpwave list` shows those built in"
    );
    let missing = Scenario::find("missing.toml").unwrap_err().to_string();
    assert!(missing.starts_with("missing.toml: cannot read it: "), "{missing}");
}
