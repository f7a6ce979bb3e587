//! The built-in functions of expressions.

use super::ExprError;
use crate::scenario::dtype::{Dtype, Number};

/// Names of all functions. The name of a `dtype` converts to that type.
pub(in crate::scenario) const NAMES: [&str; 31] = [
    "if", "floor", "ceil", "round", "trunc", "abs", "sqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh",
    "erf", "min", "max", "fma", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64",
];

/// Calls a function with its values.
pub(super) fn call(name: &str, args: &[Number]) -> Result<Number, ExprError> {
    let count = |want| ExprError::ArgumentCount {
        name: name.to_owned(),
        want,
        found: args.len(),
    };
    match (name, args) {
        ("min" | "max", []) => Err(count("one argument or more")),
        ("min", args) => Ok(args
            .iter()
            .copied()
            .reduce(|a, b| if less(b, a) { b } else { a })
            .expect("not empty")),
        ("max", args) => Ok(args
            .iter()
            .copied()
            .reduce(|a, b| if less(a, b) { b } else { a })
            .expect("not empty")),
        ("fma", [a, b, c]) => Ok(Number::Float(libm::fma(a.value(), b.value(), c.value()))),
        ("fma", _) => Err(count("three arguments")),
        (name, [arg]) => one(name, *arg),
        _ => Err(count("one argument")),
    }
}

fn less(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a < b,
        (a, b) => a.value() < b.value(),
    }
}

fn one(name: &str, arg: Number) -> Result<Number, ExprError> {
    let rounding: fn(f64) -> f64 = match name {
        "floor" => libm::floor,
        "ceil" => libm::ceil,
        "round" => libm::round,
        "trunc" => libm::trunc,
        _ => return continuous(name, arg),
    };
    match arg {
        Number::Int(_) => Ok(arg),
        Number::Float(value) => whole(name, rounding(value)),
    }
}

/// Converts a rounded float to an integer.
fn whole(name: &str, value: f64) -> Result<Number, ExprError> {
    // Every f64 below 2^126 in magnitude fits an i128. The test also rejects NaN.
    if value.abs() < 2f64.powi(126) {
        Ok(Number::Int(value as i128))
    } else {
        Err(ExprError::Operation {
            operation: format!("{name}({value})"),
            reason: "the result is no integer of 128 bits",
        })
    }
}

fn continuous(name: &str, arg: Number) -> Result<Number, ExprError> {
    let value = arg.value();
    if let Some(dtype) = Dtype::of_name(name) {
        return convert(dtype, arg);
    }
    Ok(match (name, arg) {
        // Integers stay exact. All functions below compute in f64.
        ("abs", Number::Int(value)) => Number::Int(value.saturating_abs()),
        ("abs", _) => Number::Float(libm::fabs(value)),
        ("sqrt", _) => Number::Float(libm::sqrt(value)),
        ("exp", _) => Number::Float(libm::exp(value)),
        ("exp2", _) => Number::Float(libm::exp2(value)),
        ("log", _) => Number::Float(libm::log(value)),
        ("log2", _) => Number::Float(libm::log2(value)),
        ("sin", _) => Number::Float(libm::sin(value)),
        ("cos", _) => Number::Float(libm::cos(value)),
        ("tan", _) => Number::Float(libm::tan(value)),
        ("tanh", _) => Number::Float(libm::tanh(value)),
        _ => Number::Float(libm::erf(value)),
    })
}

/// Converts to a type: a float is rounded, an integer is wrapped. A float becomes an integer towards zero.
fn convert(dtype: Dtype, arg: Number) -> Result<Number, ExprError> {
    let mut bytes = Vec::new();
    if dtype.is_float() {
        dtype.append_float(&mut bytes, arg.value());
        return Ok(dtype.read(&bytes));
    }
    let Number::Int(value) = (match arg {
        Number::Int(_) => arg,
        Number::Float(value) => whole(dtype.name(), libm::trunc(value))?,
    }) else {
        unreachable!("a rounded float is an integer")
    };
    // Wraps: the low bytes, as a cast in C.
    bytes.extend(&value.to_le_bytes()[..dtype.bytes()]);
    Ok(dtype.read(&bytes))
}
