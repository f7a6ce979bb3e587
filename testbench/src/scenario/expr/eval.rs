//! Evaluates expressions.

use super::functions;
use super::{Binary, ExprError, Node, Unary};
use crate::scenario::dtype::Number;
use crate::scenario::similar::nearest;

/// Integers below this convert to f64 without rounding.
const EXACT: u128 = 1 << 53;

/// The meaning of names. The unit type is the empty scope.
pub trait Scope {
    /// The value of a name.
    ///
    /// # Errors
    /// If the scope does not know it.
    fn name(&self, name: &str) -> Result<Number, ExprError>;

    /// The value of `base[index]`.
    ///
    /// # Errors
    /// If the base has no elements, or not this one.
    fn index(&self, base: &Node, index: &Node) -> Result<Number, ExprError> {
        let _ = index;
        Err(ExprError::Misplaced(match base {
            Node::Name(name) => format!("`{name}` has no elements here"),
            _ => "only a name has elements".to_owned(),
        }))
    }

    /// The value of a function that is not built in.
    ///
    /// # Errors
    /// If the scope does not know it.
    fn call(&self, name: &str, args: &[Node]) -> Result<Number, ExprError> {
        let _ = args;
        Err(ExprError::UnknownFunction {
            nearest: nearest(name, functions::NAMES.iter().copied()),
            name: name.to_owned(),
        })
    }
}

impl Scope for () {
    fn name(&self, name: &str) -> Result<Number, ExprError> {
        let name = name.to_owned();
        Err(ExprError::UnknownName { name, nearest: None })
    }
}

impl Node {
    /// Evaluates this part.
    ///
    /// # Errors
    /// If a name is unknown, or an operation is not possible.
    pub fn value(&self, scope: &impl Scope) -> Result<Number, ExprError> {
        match self {
            Node::Number(number) => Ok(*number),
            Node::Text(text) => Err(ExprError::Misplaced(format!("the text \"{text}\" has no value"))),
            Node::Name(name) => scope.name(name),
            Node::Index(base, index) => scope.index(base, index),
            Node::Call(name, args) if name == "if" => choose(args, scope),
            Node::Call(name, args) if functions::NAMES.contains(&name.as_str()) => {
                let values = args.iter().map(|arg| arg.value(scope)).collect::<Result<Vec<_>, _>>()?;
                functions::call(name, &values)
            }
            Node::Call(name, args) => scope.call(name, args),
            Node::Unary(operator, operand) => unary(*operator, operand.value(scope)?),
            Node::Binary(operator, left, right) => {
                let left = left.value(scope)?;
                match operator {
                    // The right operand is not evaluated if the left one decides.
                    Binary::And if !is_true(left) => Ok(Number::Int(0)),
                    Binary::Or if is_true(left) => Ok(Number::Int(1)),
                    Binary::And | Binary::Or => Ok(truth(is_true(right.value(scope)?))),
                    operator => binary(*operator, left, right.value(scope)?),
                }
            }
        }
    }
}

/// Evaluates `if(condition, then, else)`. Only one of the two values is computed.
fn choose(args: &[Node], scope: &impl Scope) -> Result<Number, ExprError> {
    match args {
        [condition, then, otherwise] => {
            let chosen = if is_true(condition.value(scope)?) {
                then
            } else {
                otherwise
            };
            chosen.value(scope)
        }
        _ => Err(ExprError::ArgumentCount {
            name: "if".to_owned(),
            want: "three arguments",
            found: args.len(),
        }),
    }
}

fn is_true(number: Number) -> bool {
    number.value() != 0.0
}

fn truth(is_true: bool) -> Number {
    Number::Int(is_true.into())
}

fn unary(operator: Unary, operand: Number) -> Result<Number, ExprError> {
    match (operator, operand) {
        (Unary::Negate, Number::Int(value)) => value.checked_neg().map(Number::Int),
        (Unary::Negate, Number::Float(value)) => Some(Number::Float(-value)),
        (Unary::Not, value) => Some(truth(!is_true(value))),
        (Unary::Invert, Number::Int(value)) => Some(Number::Int(!value)),
        (Unary::Invert, Number::Float(_)) => None,
    }
    .ok_or_else(|| ExprError::Operation {
        operation: format!("{}{operand}", if operator == Unary::Negate { '-' } else { '~' }),
        reason: "it needs an integer of 128 bits",
    })
}

/// Applies an operator with two operands.
///
/// # Errors
/// If the operation is not possible.
///
/// # Panics
/// For `and` and `or`, which may leave an operand without a value.
pub fn binary(operator: Binary, left: Number, right: Number) -> Result<Number, ExprError> {
    let cannot = |reason| ExprError::Operation {
        operation: format!("{left} {} {right}", operator.symbol()),
        reason,
    };
    match (left, right) {
        (Number::Int(left), Number::Int(right)) => integers(operator, left, right).map_err(cannot),
        _ => floats(operator, left.value(), right.value()).map_err(cannot),
    }
}

fn integers(operator: Binary, left: i128, right: i128) -> Result<Number, &'static str> {
    // `1 << 127` would be negative.
    let shift = || u32::try_from(right).ok().filter(|&n| n < 127);
    let value = match operator {
        Binary::Add => left.checked_add(right),
        Binary::Subtract => left.checked_sub(right),
        Binary::Multiply => left.checked_mul(right),
        Binary::Divide | Binary::FloorDivide | Binary::Remainder if right == 0 => return Err("division by zero"),
        Binary::Divide => return quotient(left, right),
        Binary::FloorDivide => floor_quotient(left, right),
        Binary::Remainder => {
            let product = floor_quotient(left, right).and_then(|quotient| quotient.checked_mul(right));
            product.and_then(|product| left.checked_sub(product))
        }
        // A negative power is a fraction, so the result is a float.
        Binary::Power if right < 0 => return floats(operator, left as f64, right as f64),
        Binary::Power => u32::try_from(right).ok().and_then(|right| left.checked_pow(right)),
        Binary::BitOr => Some(left | right),
        Binary::BitXor => Some(left ^ right),
        Binary::BitAnd => Some(left & right),
        // As a product, so that lost bits are an overflow.
        Binary::ShiftLeft => shift().and_then(|n| left.checked_mul(1 << n)),
        Binary::ShiftRight => shift().map(|n| left >> n),
        Binary::Less => Some((left < right).into()),
        Binary::LessEqual => Some((left <= right).into()),
        Binary::Greater => Some((left > right).into()),
        Binary::GreaterEqual => Some((left >= right).into()),
        Binary::Equal => Some((left == right).into()),
        Binary::NotEqual => Some((left != right).into()),
        Binary::And | Binary::Or => unreachable!("the caller evaluates both"),
    };
    value.map(Number::Int).ok_or("the result needs more than 128 bits")
}

/// The quotient, rounded down.
fn floor_quotient(left: i128, right: i128) -> Option<i128> {
    let quotient = left.checked_div(right)?;
    // Division truncates towards zero, which lies above a negative quotient.
    let is_above = left % right != 0 && (left < 0) != (right < 0);
    Some(quotient - i128::from(is_above))
}

/// The quotient: an integer without remainder, or else an f64. Above 2^53 `ceil` and `floor` of such an f64 could be wrong.
fn quotient(left: i128, right: i128) -> Result<Number, &'static str> {
    match left.checked_rem(right) {
        Some(0) => Ok(Number::Int(left / right)),
        // Both operands are exact floats, so the division rounds once.
        Some(_) if left.unsigned_abs().max(right.unsigned_abs()) < EXACT => {
            Ok(Number::Float(left as f64 / right as f64))
        }
        _ => Err("above 2^53 the quotient of integers is not exact; use //"),
    }
}

fn floats(operator: Binary, left: f64, right: f64) -> Result<Number, &'static str> {
    Ok(Number::Float(match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::FloorDivide => libm::floor(left / right),
        Binary::Remainder => left - right * libm::floor(left / right),
        Binary::Power => libm::pow(left, right),
        Binary::Less => return Ok(truth(left < right)),
        Binary::LessEqual => return Ok(truth(left <= right)),
        Binary::Greater => return Ok(truth(left > right)),
        Binary::GreaterEqual => return Ok(truth(left >= right)),
        Binary::Equal => return Ok(truth(left == right)),
        Binary::NotEqual => return Ok(truth(left != right)),
        _ => return Err("it needs integers"),
    }))
}
