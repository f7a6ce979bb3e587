//! The sources of elements, as the text gives them: `init` and `expect`.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{LaunchName, Quantity, one, zero};
use crate::scenario::expr::{Expr, Node};

/// The source of a buffer's elements.
#[derive(Clone)]
pub(in crate::scenario) enum ElementSource {
    Zeros,
    /// One expression for all elements.
    Expr(Expr),
    /// What the reference model computes: only for `expect`.
    Reference,
    Table(SourceTable),
}

/// A source that a table gives.
#[derive(Clone)]
pub(in crate::scenario) enum SourceTable {
    Npy(String),
    Fill(Quantity),
    Iota(Iota),
    Uniform(Uniform),
    Values(Vec<Quantity>),
}

impl ElementSource {
    /// The path of an npy file.
    pub fn path(&self) -> Option<&String> {
        match self {
            ElementSource::Table(SourceTable::Npy(path)) => Some(path),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for ElementSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

/// The keys of a table that gives elements.
const SOURCES: &[&str] = &["npy", "fill", "iota", "uniform", "values", "expr"];

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = ElementSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"zeros\", an expression such as \"i % 7\", or a table such as { fill = 1 }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ElementSource, E> {
        let expr = Expr::parse(text).map_err(E::custom)?;
        Ok(Text(expr).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ElementSource, A::Error> {
        let kind = map.next_key::<String>()?;
        let kind = kind.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let source = match kind.as_str() {
            "npy" => ElementSource::Table(SourceTable::Npy(map.next_value()?)),
            "fill" => ElementSource::Table(SourceTable::Fill(map.next_value()?)),
            "iota" => ElementSource::Table(SourceTable::Iota(map.next_value()?)),
            "uniform" => ElementSource::Table(SourceTable::Uniform(map.next_value()?)),
            "values" => ElementSource::Table(SourceTable::Values(map.next_value()?)),
            "expr" => map.next_value::<Text>()?.into(),
            other => return Err(A::Error::unknown_variant(other, SOURCES)),
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(source),
            Some(_) => Err(A::Error::custom("more than one source; give one of them")),
        }
    }
}

/// Element i is `start + i * step`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Iota {
    #[serde(default = "zero")]
    pub start: Quantity,
    #[serde(default = "one")]
    pub step: Quantity,
}

/// Random elements from `low` up to `high`, which is not included.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Uniform {
    #[serde(default = "zero")]
    pub low: Quantity,
    #[serde(default = "one")]
    pub high: Quantity,
    #[serde(default = "zero")]
    pub seed: Quantity,
}

/// An `expect`: a source of elements, with tolerances.
#[derive(Clone)]
pub(in crate::scenario) struct Expect {
    /// The source. `None` unless the text names exactly one.
    pub source: Option<ElementSource>,
    pub rtol: f64,
    pub atol: f64,
    /// The launch after which the elements are compared. `None` is the last one.
    pub after: Option<LaunchName>,
    /// The first element and the one behind the last. `None` is the whole buffer.
    pub range: Option<[Quantity; 2]>,
    /// True if a NaN agrees with every number.
    pub nan: bool,
}

/// A table of an `expect`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectTable {
    npy: Option<String>,
    fill: Option<Quantity>,
    iota: Option<Iota>,
    uniform: Option<Uniform>,
    values: Option<Vec<Quantity>>,
    expr: Option<Text>,
    #[serde(default)]
    rtol: f64,
    #[serde(default)]
    atol: f64,
    after: Option<LaunchName>,
    range: Option<[Quantity; 2]>,
    #[serde(default)]
    nan: bool,
}

/// A text that is an expression.
#[derive(Clone)]
pub(in crate::scenario) struct Text(pub Expr);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Expr::parse(&text).map(Text).map_err(D::Error::custom)
    }
}

impl From<Text> for ElementSource {
    fn from(Text(expr): Text) -> Self {
        match expr.root() {
            Node::Name(name) if name == "reference" => ElementSource::Reference,
            Node::Name(name) if name == "zeros" => ElementSource::Zeros,
            _ => ElementSource::Expr(expr),
        }
    }
}

impl From<ExpectTable> for Expect {
    fn from(table: ExpectTable) -> Self {
        let tables = [
            table.npy.map(SourceTable::Npy),
            table.fill.map(SourceTable::Fill),
            table.iota.map(SourceTable::Iota),
            table.uniform.map(SourceTable::Uniform),
            table.values.map(SourceTable::Values),
        ];
        let tables = tables.into_iter().flatten().map(ElementSource::Table);
        let mut sources = tables.chain(table.expr.map(ElementSource::from));
        let first = sources.next();
        Expect {
            source: if sources.next().is_none() { first } else { None },
            rtol: table.rtol,
            atol: table.atol,
            after: table.after,
            range: table.range,
            nan: table.nan,
        }
    }
}

/// All expectations of a buffer. The text gives one, or a list.
#[derive(Default)]
pub(in crate::scenario) struct Expects(pub Vec<Expect>);

impl<'de> Deserialize<'de> for Expects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExpectVisitor).map(Expects)
    }
}

struct ExpectVisitor;

impl<'de> Visitor<'de> for ExpectVisitor {
    type Value = Vec<Expect>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an expression such as \"2.0 * x + y\", a table such as { fill = 1 }, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<Expect>, E> {
        Ok(vec![Expect {
            source: Some(SourceVisitor.visit_str(text)?),
            rtol: 0.0,
            atol: 0.0,
            after: None,
            range: None,
            nan: false,
        }])
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<Expect>, A::Error> {
        let table = ExpectTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(vec![table.into()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Expect>, A::Error> {
        let mut all = Vec::new();
        while let Some(Expects(some)) = list.next_element()? {
            all.extend(some);
        }
        Ok(all)
    }
}
