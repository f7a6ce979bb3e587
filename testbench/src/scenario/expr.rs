//! Expressions in a scenario's text: numbers, names, operators and functions.
//!
//! ```text
//! text ── parse ──> Expr ── value(scope) ──> Number
//! ```
//!
//! | operators, the loosest first | meaning |
//! |---|---|
//! | or, and | both accept numbers: 0 is false |
//! | <, <=, >, >=, ==, != | 1 or 0; they do not chain |
//! | bitwise or, ^, &, << and >> | integers only |
//! | + - | sum, difference |
//! | * / // % | product, quotient, quotient rounded down, its remainder |
//! | - ! ~ | of one operand |
//! | ** | power, from right to left |
//!
//! Integers are exact: 128 bits, and an overflow is an error. The quotient of two integers is an integer if there is no remainder. Any
//! other number is an f64. Functions such as `exp` come from the crate `libm`, so every host computes the same bits.
//!
//! Invariant: a text has at most [`MAX_TEXT`] bytes and [`MAX_DEPTH`] nested parts, so no input exhausts the stack.

mod eval;

mod functions;

mod parse;

use thiserror::Error;

use super::dtype::Number;
use super::similar::hint;

pub use eval::{Scope, binary};
pub(super) use functions::NAMES as FUNCTIONS;

/// Most bytes of an expression's text.
pub const MAX_TEXT: usize = 2000;

/// Most nested parts of an expression.
pub const MAX_DEPTH: usize = 64;

/// A parsed expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    text: String,
    root: Node,
}

/// A part of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Node {
    /// A number, with its unit applied.
    Number(Number),
    /// A text in quotes: an argument of a function of the scope.
    Text(String),
    /// A name that the scope resolves.
    Name(String),
    /// An element of a name, or of a call: `x[i + 1]`.
    Index(Box<Node>, Box<Node>),
    /// A function with its arguments.
    Call(String, Vec<Node>),
    /// An operator with one operand.
    Unary(Unary, Box<Node>),
    /// An operator with two operands.
    Binary(Binary, Box<Node>, Box<Node>),
}

/// An operator with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// Minus.
    Negate,
    /// 1 for zero, and 0 for any other number.
    Not,
    /// The complement of an integer's bits.
    Invert,
}

/// An operator with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is the operation of that name")]
pub enum Binary {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

/// The reason for refusing an expression.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ExprError {
    /// The text is not an expression.
    #[error("`{text}` is not an expression: {expected} expected at column {column}")]
    Syntax {
        /// The expression.
        text: String,
        /// The column of the fault, in characters from 1.
        column: usize,
        /// What may stand there.
        expected: &'static str,
    },
    /// The text is too long, or nested too deeply.
    #[error("an expression has at most {MAX_TEXT} bytes and {MAX_DEPTH} nested parts; split it with [constants]")]
    TooLarge,
    /// The scope does not know a name.
    #[error("nothing is named `{name}` here{}", hint(.nearest))]
    UnknownName {
        /// The name.
        name: String,
        /// The most similar known name.
        nearest: Option<String>,
    },
    /// No function has this name.
    #[error("no function is named `{name}`{}", hint(.nearest))]
    UnknownFunction {
        /// The name.
        name: String,
        /// The most similar function.
        nearest: Option<String>,
    },
    /// A function has another number of arguments.
    #[error("`{name}` takes {want}, not {found}")]
    ArgumentCount {
        /// The function.
        name: String,
        /// Arguments that it takes, in words.
        want: &'static str,
        /// Arguments given.
        found: usize,
    },
    /// An operation is not possible with its operands.
    #[error("cannot compute {operation}: {reason}")]
    Operation {
        /// The operation with its operands.
        operation: String,
        /// The reason.
        reason: &'static str,
    },
    /// A value is not what its place needs.
    #[error("`{text}` is {value}, not {want}")]
    NotA {
        /// The expression.
        text: String,
        /// Its value.
        value: Number,
        /// What the place needs, in words.
        want: String,
    },
    /// A part cannot stand where it does.
    #[error("{0}")]
    Misplaced(String),
}

impl Expr {
    /// Parses an expression.
    ///
    /// ```
    /// use warpwave::scenario::dtype::Number;
    /// use warpwave::scenario::expr::Expr;
    /// let blocks = Expr::parse("ceil(1e6 / 256)").unwrap();
    /// assert_eq!(blocks.value(&()), Ok(Number::Int(3907)));
    /// assert_eq!(Expr::parse("48 KiB").unwrap().value(&()), Ok(Number::Int(49152)));
    /// ```
    ///
    /// # Errors
    /// If the text is not an expression.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        let root = parse::parse(text)?;
        Ok(Expr {
            text: text.trim().to_owned(),
            root,
        })
    }

    /// The text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The outermost part.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// If a name is unknown, or an operation is not possible.
    pub fn value(&self, scope: &impl Scope) -> Result<Number, ExprError> {
        self.root.value(scope)
    }
}

impl Node {
    /// All names of the expression, also those within an index or a call.
    pub fn names<'a>(&'a self, found: &mut Vec<&'a str>) {
        match self {
            Node::Number(_) | Node::Text(_) => {}
            Node::Name(name) => found.push(name),
            Node::Call(_, args) => args.iter().for_each(|arg| arg.names(found)),
            Node::Unary(_, operand) => operand.names(found),
            Node::Index(left, right) | Node::Binary(_, left, right) => {
                left.names(found);
                right.names(found);
            }
        }
    }
}

impl Binary {
    /// The symbol in a text.
    pub const fn symbol(self) -> &'static str {
        match self {
            Binary::Or => "||",
            Binary::And => "&&",
            Binary::Less => "<",
            Binary::LessEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterEqual => ">=",
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::BitOr => "|",
            Binary::BitXor => "^",
            Binary::BitAnd => "&",
            Binary::ShiftLeft => "<<",
            Binary::ShiftRight => ">>",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::FloorDivide => "//",
            Binary::Remainder => "%",
            Binary::Power => "**",
        }
    }

    /// True for an operator that compares its operands.
    pub const fn compares(self) -> bool {
        matches!(
            self,
            Binary::Less
                | Binary::LessEqual
                | Binary::Greater
                | Binary::GreaterEqual
                | Binary::Equal
                | Binary::NotEqual
        )
    }
}

#[cfg(test)]
mod tests;
