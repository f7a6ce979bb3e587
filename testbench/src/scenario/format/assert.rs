//! Assertions, the runs that they compare with, and the expected failure, as the text gives them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::elements::Text;
use super::{LaunchName, Quantity, Setting};
use crate::scenario::expr::{FUNCTIONS, Node};

/// A table `[[assert]]`: bounds of a metric, or a comparison.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Assert {
    pub that: Option<Text>,
    pub within: Option<Within>,
    pub metric: Option<String>,
    pub min: Option<Quantity>,
    pub max: Option<Quantity>,
    pub equal: Option<Quantity>,
    pub launch: Option<LaunchName>,
    /// True if each point of a sweep must hold it too.
    #[serde(default)]
    pub points: bool,
}

impl Assert {
    /// Paths of the CSV files that the comparison reads.
    pub fn tables(&self) -> Vec<&str> {
        let mut found = Vec::new();
        if let Some(Text(expr)) = &self.that {
            tables(expr.root(), &mut found);
        }
        found
    }

    /// Names of the other runs that the comparison reads: tables `[runs.NAME]`, or scenarios.
    pub fn other_runs(&self) -> Vec<&str> {
        let mut found = Vec::new();
        if let Some(Text(expr)) = &self.that {
            other_runs(expr.root(), &mut found);
        }
        found
    }
}

/// Collects the arguments of all metrics that are called, as in `cycles(other)`.
fn other_runs<'a>(node: &'a Node, found: &mut Vec<&'a str>) {
    match node {
        Node::Call(name, args) => {
            let is_metric = name != "csv" && !FUNCTIONS.contains(&name.as_str());
            match &args[..] {
                [Node::Name(run) | Node::Text(run)] if is_metric => found.push(run),
                args => args.iter().for_each(|arg| other_runs(arg, found)),
            }
        }
        Node::Unary(_, operand) => other_runs(operand, found),
        Node::Index(left, right) | Node::Binary(_, left, right) => {
            other_runs(left, found);
            other_runs(right, found);
        }
        Node::Number(_) | Node::Text(_) | Node::Name(_) => {}
    }
}

/// Collects the first arguments of all calls of `csv`.
fn tables<'a>(node: &'a Node, found: &mut Vec<&'a str>) {
    match node {
        Node::Call(name, args) => {
            // A path that is not a literal text is refused when the comparison is evaluated.
            if let (true, Some(Node::Text(path))) = (name == "csv", args.first()) {
                found.push(path);
            }
            args.iter().for_each(|arg| tables(arg, found));
        }
        Node::Unary(_, operand) => tables(operand, found),
        Node::Index(left, right) | Node::Binary(_, left, right) => {
            tables(left, found);
            tables(right, found);
        }
        Node::Number(_) | Node::Text(_) | Node::Name(_) => {}
    }
}

/// The tolerance of an equation: a part of the right side, or an absolute distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::scenario) enum Within {
    Part(f64),
    Distance(f64),
}

impl<'de> Deserialize<'de> for Within {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WithinVisitor)
    }
}

struct WithinVisitor;

impl Visitor<'_> for WithinVisitor {
    type Value = Within;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share of the right side such as \"5 %\", or a distance such as 8")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Within, E> {
        Ok(Within::Distance(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Within, E> {
        Ok(Within::Distance(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Within, E> {
        // Without the sign, the number is a distance, which TOML writes without quotes.
        let percent = text
            .trim()
            .strip_suffix('%')
            .and_then(|number| number.trim().parse().ok());
        let percent: f64 = percent.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))?;
        Ok(Within::Part(percent / 100.0))
    }
}

/// A table `[runs.NAME]`: another run that assertions compare with.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct OtherRun {
    pub scenario: Option<String>,
    pub gpu: Option<String>,
    #[serde(default)]
    pub set: BTreeMap<String, Setting>,
    #[serde(default)]
    pub constants: BTreeMap<String, Quantity>,
}

/// The table `[expect_failure]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct ExpectFailure {
    pub exit: u8,
    #[serde(default)]
    pub message: String,
}
