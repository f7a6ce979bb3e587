//! Device functions, traps, constant variables and `printf`.

use crate::case::{Case, ceil, input, int, output};
use crate::draw::{floats, ints, whole};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        call_noinline(),
        call_recursive(),
        call_indirect(),
        call_virtual(),
        assert_that_holds(),
        assert_that_fails(),
        no_nan(),
        one_nan(),
        const_poly(),
        const_lookup(),
        hello_printf(),
    ]
}

/// Complex products of integers, pair by pair. A clamped index selects the second factor.
fn call_noinline() -> Case {
    let n = 201;
    let complex = |seed| -> Vec<f64> { whole(seed, 2 * n, -99, 99).into_iter().map(f64::from).collect() };
    let (a, b) = (complex(1), complex(2));
    let chosen = ints(3, n, -50, 300);
    let product = |i: usize| {
        let j = chosen[i].clamp(0, n as i32 - 1) as usize;
        let (x, y) = ([a[2 * i], a[2 * i + 1]], [b[2 * j], b[2 * j + 1]]);
        [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]
    };
    let c: Vec<_> = (0..n).flat_map(product).collect();
    Case::cuda("device_calls", "call_noinline")
        .launch(ceil(n, 128), 128)
        .args([
            input(&a),
            input(&b),
            output(&vec![0.0; 2 * n], &c),
            input(&chosen),
            int(n),
        ])
}

fn ackermann_like(m: u32, n: u32) -> u32 {
    match (m, n) {
        (0, n) => n + 1,
        (m, 0) => ackermann_like(m - 1, 1),
        (m, n) => ackermann_like(m - 1, ackermann_like(m, n - 1) & 7),
    }
}

fn call_recursive() -> Case {
    let depths: Vec<u32> = ints(4, 70, 0, 99).into_iter().map(|m| m as u32).collect();
    let results: Vec<_> = depths.iter().map(|m| ackermann_like(m & 3, 2)).collect();
    Case::cuda("device_calls", "call_recursive")
        .launch(ceil(70, 64), 64)
        .args([input(&depths), output(&[0; 70], &results), int(70)])
}

fn call_indirect() -> Case {
    let (which, values) = (ints(5, 201, 0, 9), floats(6, 201, -9.0, 9.0));
    let called = |(which, v): (&i32, &f32)| if which & 1 == 0 { v * v } else { 0.5 * v };
    let after: Vec<_> = which.iter().zip(&values).map(called).collect();
    Case::cuda("device_calls", "call_indirect")
        .launch(ceil(201, 128), 128)
        .args([input(&which), output(&values, &after), int(201)])
}

fn call_virtual() -> Case {
    let (kinds, sizes) = (ints(7, 201, 0, 1), floats(8, 201, 0.0, 9.0));
    let area = |(kind, x): (&i32, &f32)| {
        if *kind != 0 {
            x * x
        } else {
            std::f32::consts::PI * x * x
        }
    };
    let areas: Vec<_> = kinds.iter().zip(&sizes).map(area).collect();
    Case::cuda("device_calls", "call_virtual")
        .launch(ceil(201, 128), 128)
        .args([input(&kinds), input(&sizes), output(&[0.0; 201], &areas), int(201)])
}

fn assert_index(indices: &[i32]) -> Case {
    let n = indices.len();
    let values = floats(9, n, -9.0, 9.0);
    let chosen: Vec<_> = indices
        .iter()
        .map(|&i| values[i.rem_euclid(n as i32) as usize])
        .collect();
    Case::cuda("assert_trap", "assert_index")
        .launch(ceil(n, 128), 128)
        .args([input(indices), input(&values), output(&vec![0.0; n], &chosen), int(n)])
}

fn assert_that_holds() -> Case {
    assert_index(&ints(10, 201, 0, 200)).about("every index is in range")
}

fn assert_that_fails() -> Case {
    let mut indices = ints(10, 201, 0, 200);
    indices[150] = -1;
    assert_index(&indices).about("one index is out of range").traps()
}

fn trap_on_nan(values: &[f32]) -> Case {
    Case::cuda("assert_trap", "trap_on_nan")
        .launch(ceil(values.len(), 128), 128)
        .args([input(values), output(&[-7], &[-7]), int(values.len())])
}

fn no_nan() -> Case {
    trap_on_nan(&floats(11, 201, -9.0, 9.0)).about("all are numbers")
}

fn one_nan() -> Case {
    let mut values = floats(11, 201, -9.0, 9.0);
    values[155] = f32::NAN;
    trap_on_nan(&values).about("one is not a number").traps()
}

/// A polynomial of degree 3 with small integers, so that fused and separate operations agree.
fn const_poly() -> Case {
    let (x, coefficients) = (whole(12, 300, -9, 9), whole(13, 16, -9, 9));
    let axis = [7.0f32, 2.0, -5.0];
    let value = |x: &f32| coefficients[..4].iter().rev().fold(0.0, |sum, c| sum * x + c) * axis[1] + axis[2];
    let y: Vec<_> = x.iter().map(value).collect();
    Case::cuda("const_memory", "const_poly")
        .launch(ceil(300, 256), 256)
        .global("coef", &coefficients)
        .global("params", &parameters(axis, 0))
        .args([input(&x), output(&[0.0; 300], &y), int(300), int(3)])
}

/// The parameter structure: three floats and an integer.
fn parameters(axis: [f32; 3], shift: i32) -> Vec<u8> {
    let axis = axis.iter().flat_map(|v| v.to_le_bytes());
    axis.chain(shift.to_le_bytes()).collect()
}

fn const_lookup() -> Case {
    let table = ints(14, 256, -9999, 9999);
    let indices = crate::draw::bytes(15, 300);
    let found: Vec<_> = indices.iter().map(|&i| table[usize::from(i)] << 3).collect();
    Case::cuda("const_memory", "const_lookup")
        .launch(ceil(300, 256), 256)
        .global("table", &table)
        .global("params", &parameters([0.0; 3], 3))
        .args([input(&indices), output(&[0; 300], &found), int(300)])
}

/// `%f` of C prints six digits after the point.
fn hello_printf() -> Case {
    let (n, block) = (75, 32);
    let values = floats(16, n, -99.0, 99.0);
    let line = |i: usize| {
        let parity = if i % 2 == 1 { "odd" } else { "even" };
        format!("block {} thread {} x={:.6} {parity}\n", i / block, i % block, values[i])
    };
    Case::cuda("hello_printf", "hello_printf")
        .launch(ceil(n, block), block)
        .args([input(&values), int(n)])
        .prints((0..n).map(line).collect())
}
