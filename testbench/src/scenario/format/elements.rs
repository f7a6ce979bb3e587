//! The sources of elements, as the text gives them: `init` and `expect`.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{LaunchName, Quantity, one, zero};
use crate::scenario::expr::{Expr, Node};

/// The source of a buffer's elements.
#[derive(Clone)]
pub(in crate::scenario) enum ElementSource {
    Zeros,
    /// One expression for all elements.
    Expr(Expr),
    /// The results of the reference model: only for `expect`.
    Reference,
    /// Addresses in one buffer or module variable: only for `init`.
    Address(Address),
    /// A list of addresses: only for `init`.
    Addresses(Vec<Address>),
    Permutation(Permutation),
    Ring(Ring),
    /// A part of a sparse matrix: `NAME.offsets` or `NAME.columns`.
    Csr(String),
    Table(SourceTable),
}

/// A source that a table gives.
#[derive(Clone)]
pub(in crate::scenario) enum SourceTable {
    Npy(String),
    Fill(Quantity),
    Iota(Iota),
    Uniform(Uniform),
    Normal(Normal),
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

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = ElementSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"zeros\", an expression such as \"i % 7\", or a table such as { fill = 1 }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ElementSource, E> {
        let expr = Expr::parse(text).map_err(E::custom)?;
        // `zeros` and `reference` parse as names too. The conversion tells them apart.
        Ok(Text(expr).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ElementSource, A::Error> {
        let table = InitTable::deserialize(MapAccessDeserializer::new(map))?;
        table.source().ok_or_else(|| A::Error::custom(ONE_SOURCE))
    }
}

/// The error text for an `init` without exactly one source.
const ONE_SOURCE: &str = "give exactly one of npy, fill, iota, uniform, normal, permutation, ring, csr, values, expr, address, \
                          addresses; offset needs address";

/// A table of an `init`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InitTable {
    npy: Option<String>,
    fill: Option<Quantity>,
    iota: Option<Iota>,
    uniform: Option<Uniform>,
    normal: Option<Normal>,
    permutation: Option<Permutation>,
    ring: Option<Ring>,
    csr: Option<String>,
    values: Option<Vec<Quantity>>,
    expr: Option<Text>,
    address: Option<String>,
    addresses: Option<Vec<Address>>,
    offset: Option<Quantity>,
}

impl InitTable {
    /// The only source. `None` if there is none, or more than one.
    fn source(self) -> Option<ElementSource> {
        // An `offset` alone has no base.
        let has_base = self.address.is_some() || self.offset.is_none();
        let offset = self.offset.unwrap_or_else(zero);
        let tables = [
            self.npy.map(SourceTable::Npy),
            self.fill.map(SourceTable::Fill),
            self.iota.map(SourceTable::Iota),
            self.uniform.map(SourceTable::Uniform),
            self.normal.map(SourceTable::Normal),
            self.values.map(SourceTable::Values),
        ];
        let others = [
            self.expr.map(ElementSource::from),
            self.address.map(|to| ElementSource::Address(Address { to, offset })),
            self.addresses.map(ElementSource::Addresses),
            self.permutation.map(ElementSource::Permutation),
            self.ring.map(ElementSource::Ring),
            self.csr.map(ElementSource::Csr),
        ];
        let tables = tables.into_iter().flatten().map(ElementSource::Table);
        let mut sources = tables.chain(others.into_iter().flatten());
        let first = sources.next();
        // A second source makes the table ambiguous.
        first.filter(|_| has_base && sources.next().is_none())
    }
}

/// An address in a buffer or module variable: `"x"`, or `{ address = "x", offset = 64 }`.
#[derive(Clone)]
pub(in crate::scenario) struct Address {
    /// The buffer or variable.
    pub to: String,
    /// Bytes from its start.
    pub offset: Quantity,
}

/// An address as a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressTable {
    address: String,
    #[serde(default = "zero")]
    offset: Quantity,
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AddressVisitor)
    }
}

struct AddressVisitor;

impl<'de> Visitor<'de> for AddressVisitor {
    type Value = Address;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a buffer or variable, or { address = \"x\", offset = 64 }")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Address, E> {
        Ok(Address {
            to: name.to_owned(),
            offset: zero(),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Address, A::Error> {
        let AddressTable { address, offset } = AddressTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Address { to: address, offset })
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

/// Random elements of a normal distribution.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Normal {
    #[serde(default = "zero")]
    pub mean: Quantity,
    #[serde(default = "one")]
    pub deviation: Quantity,
    #[serde(default = "zero")]
    pub seed: Quantity,
}

/// The numbers from 0 to n - 1 in random order.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Permutation {
    #[serde(default = "zero")]
    pub seed: Quantity,
}

/// A ring: each element holds the index or the address of its successor. One circle in random order has all of them.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Ring {
    /// Distance between neighbours of the ring in the buffer. The elements between them are 0.
    #[serde(default = "one")]
    pub step: Quantity,
    #[serde(default = "zero")]
    pub seed: Quantity,
    /// True for device addresses instead of indices.
    #[serde(default)]
    pub addresses: bool,
}

/// A table `[matrices.NAME]`: a sparse matrix with random columns.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Matrix {
    pub rows: Quantity,
    pub columns: Quantity,
    /// Stored elements of all rows together.
    pub nonzeros: Quantity,
    #[serde(default)]
    pub lengths: RowLengths,
    #[serde(default = "zero")]
    pub seed: Quantity,
}

/// The numbers of stored elements in the rows of a sparse matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::scenario) enum RowLengths {
    /// All rows have the same number, give or take one.
    #[default]
    Even,
    /// Each element is in a random row.
    Random,
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
    /// The first element, and the one after the last. `None` is the whole buffer.
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
    permutation: Option<Permutation>,
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
            // The two words are reserved, so no constant has their names.
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
        let others = [
            table.expr.map(ElementSource::from),
            table.permutation.map(ElementSource::Permutation),
        ];
        let mut sources = tables.chain(others.into_iter().flatten());
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
        // A table without exactly one source is refused later, where the error has the buffer's key.
        let table = ExpectTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(vec![table.into()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Expect>, A::Error> {
        let mut all = Vec::new();
        // A list in the list is flattened.
        while let Some(Expects(some)) = list.next_element()? {
            all.extend(some);
        }
        Ok(all)
    }
}
