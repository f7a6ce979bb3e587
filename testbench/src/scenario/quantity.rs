//! Numbers of a scenario's text: literal ones, or expressions over the named constants.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::dtype::Number;
use super::error::Fault;
use super::expr::{Expr, ExprError, FUNCTIONS, Scope};
use super::similar::nearest;
use crate::report::metrics;

/// Most constants of a scenario.
const MAX_CONSTANTS: usize = 1000;

/// Names with a fixed meaning: the index of an element, and the words of `init` and `expect`.
pub(super) const RESERVED: [&str; 5] = ["i", "zeros", "reference", "and", "or"];

/// A number, or an expression that gives one.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Quantity {
    Number(Number),
    Expr(Expr),
}

impl Quantity {
    /// Parses a text: a number or an expression.
    pub fn parse(text: &str) -> Result<Quantity, ExprError> {
        Expr::parse(text).map(Quantity::Expr)
    }

    /// All names of the expression. Empty for a number.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if let Quantity::Expr(expr) = self {
            expr.root().names(&mut names);
        }
        names
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        Quantity::Number(Number::Int(value.into()))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Number(number) => number.fmt(f),
            Quantity::Expr(expr) => f.write_str(expr.text()),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or an expression as text such as \"ceil(n / 256)\"")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Quantity, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity::Number(Number::Int(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Quantity, E> {
        Ok(Quantity::Number(Number::Float(value)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text).map_err(E::custom)
    }
}

/// The named constants of a scenario, with their values.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants {
    values: BTreeMap<String, Number>,
}

impl Constants {
    /// Evaluates all constants. Each may use any other one, but not in a circle.
    pub fn new(table: &BTreeMap<String, Quantity>) -> Result<Constants, (String, Fault)> {
        if table.len() > MAX_CONSTANTS {
            let fault = Fault::TooManyConstants { limit: MAX_CONSTANTS };
            return Err((String::new(), fault));
        }
        // Before the evaluation, so that a wrong name is not reported where it is used.
        if let Some(name) = table.keys().find(|name| !is_name(name)) {
            return Err((name.clone(), Fault::BadConstantName));
        }
        // A comparison would read the constant in place of the metric.
        if let Some(name) = table.keys().find(|name| is_metric(name)) {
            return Err((name.clone(), Fault::ConstantIsMetric));
        }
        let mut constants = Constants::default();
        // Each pass evaluates at least one constant, or the rest form a circle.
        while constants.values.len() < table.len() {
            let n = constants.values.len();
            for (name, quantity) in table {
                if !constants.values.contains_key(name) && constants.can_evaluate(quantity, table) {
                    let number = constants.number(quantity).map_err(|fault| (name.clone(), fault))?;
                    constants.values.insert(name.clone(), number);
                }
            }
            if constants.values.len() == n {
                let mut open = table.keys().filter(|name| !constants.values.contains_key(*name));
                let name = open.next().expect("a constant has no value").clone();
                return Err((name, Fault::CircularConstant));
            }
        }
        Ok(constants)
    }

    /// True unless the expression names a constant that has no value yet.
    fn can_evaluate(&self, quantity: &Quantity, table: &BTreeMap<String, Quantity>) -> bool {
        let is_open = |name: &&str| table.contains_key(*name) && !self.values.contains_key(*name);
        !quantity.names().iter().any(is_open)
    }

    /// The value of a quantity. A whole float from an expression becomes an integer.
    pub fn number(&self, quantity: &Quantity) -> Result<Number, Fault> {
        match quantity {
            // The author chose integer or float for a literal, so it stays as it is.
            Quantity::Number(number) => Ok(*number),
            Quantity::Expr(expr) => Ok(whole(expr.value(self)?)),
        }
    }

    /// The value of a size, from `least` to `most`.
    pub fn size(&self, quantity: &Quantity, least: u64, most: u64) -> Result<u64, Fault> {
        let number = match self.number(quantity)? {
            // A literal such as `1e6` is a float in TOML.
            Number::Float(value) => whole(Number::Float(value)),
            number => number,
        };
        let size = match number {
            Number::Int(value) => u64::try_from(value).ok(),
            Number::Float(_) => None,
        };
        size.filter(|size| (least..=most).contains(size))
            .ok_or_else(|| Fault::BadSize {
                text: quantity.to_string(),
                value: number,
                least,
                most,
            })
    }

    /// Sizes in x, y, z, each at least 1.
    pub fn sizes(&self, sizes: &[Quantity; 3]) -> Result<[u32; 3], Fault> {
        let [x, y, z] = sizes.each_ref().map(|size| self.size(size, 1, u32::MAX.into()));
        Ok([x? as u32, y? as u32, z? as u32])
    }

    /// All constants with their values.
    pub fn into_values(self) -> BTreeMap<String, Number> {
        self.values
    }

    /// Names of all constants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }
}

impl Scope for Constants {
    fn name(&self, name: &str) -> Result<Number, ExprError> {
        self.values.get(name).copied().ok_or_else(|| ExprError::UnknownName {
            nearest: nearest(name, self.names()),
            name: name.to_owned(),
        })
    }
}

/// Converts a float without fraction to an integer, if it is exact.
pub(crate) fn whole(number: Number) -> Number {
    match number {
        // Above 2^53 a float does not show which integer was meant. -0 is kept for buffers of floats.
        Number::Float(value) if value.fract() == 0.0 && value.abs() < 2f64.powi(53) && !is_negative_zero(value) => {
            Number::Int(value as i128)
        }
        number => number,
    }
}

fn is_negative_zero(value: f64) -> bool {
    value == 0.0 && value.is_sign_negative()
}

/// True if an expression can name a constant so.
fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    // No dots: a name with dots is a metric or a number of the GPU.
    begins && name.chars().all(is_word) && !RESERVED.contains(&name) && !FUNCTIONS.contains(&name)
}

/// True for `cycles` and for a metric without a dot in its name.
fn is_metric(name: &str) -> bool {
    name == "cycles" || metrics::find(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Table {
        constants: BTreeMap<String, Quantity>,
    }

    fn constants(text: &str) -> Result<Constants, String> {
        let table: Table = toml::from_str(&format!("[constants]\n{text}")).map_err(|error| error.to_string())?;
        Constants::new(&table.constants).map_err(|(key, fault)| format!("{key}: {fault}"))
    }

    fn value(text: &str) -> Number {
        constants(text).unwrap().values["n"]
    }

    #[test]
    fn integer_as_text_is_read_with_prefix_and_separators() {
        assert_eq!(
            value("n = \"18_446_744_073_709_551_615\""),
            Number::Int(u64::MAX.into())
        );
        assert_eq!(value("n = \"0xffff_ffff_ffff_ffff\""), Number::Int(u64::MAX.into()));
        assert_eq!(value("n = -3"), Number::Int(-3));
        assert_eq!(value("n = \"-3\""), Number::Int(-3));
        assert_eq!(value("n = 1e3"), Number::Float(1000.0));
    }

    #[test]
    fn constants_may_use_each_other_in_any_order() {
        assert_eq!(value("n = \"b * 2\"\nb = \"a + 1\"\na = 20"), Number::Int(42));
        assert_eq!(value("n = \"0.5 * 8\""), Number::Int(4));
    }

    #[test]
    fn constant_without_a_value_is_refused() {
        for (text, says) in [
            (
                "a = \"b\"\nb = \"a + 1\"",
                "a: the constants form a circle; give one of them a number",
            ),
            (
                "n = \"mny\"\nmany = 1",
                "n: nothing is named `mny` here; did you mean `many`?",
            ),
            (
                "\"a b\" = 1",
                "a b: not a name; use letters, digits and _, and no name that expressions have",
            ),
            (
                "i = 1",
                "i: not a name; use letters, digits and _, and no name that expressions have",
            ),
            (
                "max = 1",
                "max: not a name; use letters, digits and _, and no name that expressions have",
            ),
            (
                "cycles = 1",
                "cycles: expressions read a metric by this name; rename the constant",
            ),
            (
                "smsp__pcsamp_warps_issue_stalled_barrier = 1",
                "smsp__pcsamp_warps_issue_stalled_barrier: expressions read a metric by this name; rename the constant",
            ),
            ("n = \"1 // 0\"", "n: cannot compute 1 // 0: division by zero"),
        ] {
            assert_eq!(constants(text).unwrap_err(), says, "{text}");
        }
        let many: String = (0..1001).map(|n| format!("a{n} = 1\n")).collect();
        assert_eq!(constants(&many).unwrap_err(), ": more than 1000 constants; use fewer");
    }

    #[test]
    fn size_out_of_range_is_refused_with_its_text() {
        let constants = constants("n = 1000").unwrap();
        let size = |text: &str| {
            let found = constants.size(&Quantity::parse(text).unwrap(), 1, 4096);
            found.map_err(|fault| fault.to_string())
        };
        assert_eq!(size("ceil(n / 256)"), Ok(4));
        assert_eq!(size("4 KiB"), Ok(4096));
        assert_eq!(
            size("n / 256").unwrap_err(),
            "`n / 256` is 3.90625; give a whole number from 1 to 4096"
        );
        assert_eq!(
            size("n * 5").unwrap_err(),
            "`n * 5` is 5000; give a whole number from 1 to 4096"
        );
        assert_eq!(size("0").unwrap_err(), "`0` is 0; give a whole number from 1 to 4096");
    }
}
