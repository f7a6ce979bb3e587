//! A metric's value: a number, or why there is none.

use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

use serde::{Serialize, Serializer};

/// A number, or the reason why there is none. Arithmetic keeps the reason.
///
/// ```
/// use warpwave::report::metrics::Value;
/// assert_eq!(Value::Number(6.0) / Value::Number(4.0) * 100.0, Value::Number(150.0));
/// assert_eq!(Value::Number(6.0) / Value::Number(0.0), Value::NotReached);
/// assert_eq!(Value::NotModelled + Value::Number(1.0), Value::NotModelled);
/// assert_eq!(Value::greatest([Value::Number(1.0), Value::NotReached, Value::Number(2.0)]), Value::Number(2.0));
/// assert_eq!(Value::greatest([Value::NotModelled, Value::NotReached]), Value::NotReached);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A number.
    Number(f64),
    /// No component counts it.
    NotModelled,
    /// The formula divides by zero, or the metric needs a single launch.
    NotReached,
}

impl Value {
    /// A count.
    pub fn of(count: u64) -> Self {
        Value::Number(count as f64)
    }

    /// The number, if it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The greatest number among the values. Without a number, `NotReached` if another run could give one.
    pub fn greatest(values: impl IntoIterator<Item = Value>) -> Value {
        values
            .into_iter()
            .fold(Value::NotModelled, |best, value| match (best, value) {
                (Value::Number(a), Value::Number(b)) => Value::Number(if b.total_cmp(&a).is_gt() { b } else { a }),
                (best, Value::NotModelled) => best,
                (Value::Number(_), Value::NotReached) => best,
                (_, value) => value,
            })
    }

    fn combine(self, other: Value, operation: impl Fn(f64, f64) -> Value) -> Value {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => operation(a, b),
            // The stronger reason: no run would give this metric a number.
            (Value::NotModelled, _) | (_, Value::NotModelled) => Value::NotModelled,
            _ => Value::NotReached,
        }
    }
}

impl Add for Value {
    type Output = Value;
    fn add(self, other: Value) -> Value {
        self.combine(other, |a, b| Value::Number(a + b))
    }
}

impl Sub for Value {
    type Output = Value;
    fn sub(self, other: Value) -> Value {
        self.combine(other, |a, b| Value::Number(a - b))
    }
}

impl Div for Value {
    type Output = Value;
    fn div(self, other: Value) -> Value {
        self.combine(other, |a, b| {
            if b == 0.0 {
                Value::NotReached
            } else {
                Value::Number(a / b)
            }
        })
    }
}

impl Mul<f64> for Value {
    type Output = Value;
    fn mul(self, factor: f64) -> Value {
        self.combine(Value::Number(factor), |a, b| Value::Number(a * b))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Number(number) if is_whole(number) => write!(f, "{number:.0}"),
            Value::Number(number) if number.abs() >= 1e4 => write!(f, "{number:.0}"),
            Value::Number(number) if number.abs() >= 1e2 => write!(f, "{number:.2}"),
            Value::Number(number) => write!(f, "{number:.4}"),
            Value::NotModelled => f.write_str("not modelled"),
            Value::NotReached => f.write_str("not reached"),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            // Counters stay integers in JSON.
            Value::Number(number) if is_whole(number) => serializer.serialize_i64(number as i64),
            Value::Number(number) => serializer.serialize_f64(number),
            _ => serializer.collect_str(self),
        }
    }
}

fn is_whole(number: f64) -> bool {
    // Below 2^53, where every integer is exact.
    number.fract() == 0.0 && number.abs() < 9e15
}
