//! The symbols of module scope: which definition counts, and which private names change.

use super::edits::Edits;
use super::{LinkFinding, Unit};
use crate::ast::{Function, Linkage, Variable};
use crate::diag::{Diagnostic, Span};
use crate::lex::{Kind, Token};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// A module-scope name in one text: its definition, or a declaration of another text's definition.
#[derive(Clone, Copy)]
struct Symbol<'u, 'a> {
    text: usize,
    linkage: Linkage,
    /// Span of the name where it is defined, or else declared.
    span: Span,
    kind: SymbolKind<'u, 'a>,
}

#[derive(Clone, Copy)]
enum SymbolKind<'u, 'a> {
    Function(&'u Function<'a>),
    Variable(&'u Variable<'a>),
}

impl Symbol<'_, '_> {
    /// Strength of a definition. The strongest definition of a name is kept, and the first of two equal ones.
    fn strength(&self) -> (u8, bool, u64, Reverse<usize>) {
        let rank = match self.linkage {
            Linkage::Visible => 2,
            Linkage::Common => 1,
            Linkage::Weak | Linkage::Internal | Linkage::Extern => 0,
        };
        let (has_value, bytes) = match self.kind {
            SymbolKind::Variable(variable) if rank == 1 => (variable.init.is_some(), variable.bytes()),
            _ => (false, 0),
        };
        (rank, has_value, bytes, Reverse(self.text))
    }

    fn finding(&self, message: String, help: &str) -> LinkFinding {
        LinkFinding {
            text: self.text,
            finding: Diagnostic::malformed(self.span, message).help(help),
        }
    }
}

/// Chooses the definition of each name, removes the others, and renames private symbols that clash.
pub(super) fn resolve(units: &[Unit<'_>], edits: &mut [Edits], findings: &mut Vec<LinkFinding>) {
    let mut names: BTreeMap<&str, Vec<Symbol<'_, '_>>> = BTreeMap::new();
    for (text, unit) in units.iter().enumerate() {
        for (name, symbol) in symbols_of(text, unit) {
            names.entry(name).or_default().push(symbol);
        }
    }
    let mut used = words(units);
    for (name, symbols) in names.into_iter().filter(|(_, symbols)| symbols.len() > 1) {
        let (private, shared): (Vec<_>, Vec<_>) = symbols
            .into_iter()
            .partition(|symbol| symbol.linkage == Linkage::Internal);
        // The first private symbol keeps a name that no other text can see.
        for symbol in private.iter().skip(usize::from(shared.is_empty())) {
            let new = unused_name(name, symbol.text, &mut used);
            rename(&units[symbol.text], name, &new, &mut edits[symbol.text]);
        }
        choose(name, &shared, findings, |loser| {
            remove(&units[loser.text], loser, &mut used, &mut edits[loser.text]);
        });
    }
}

/// Returns the module-scope names of a text, each once.
fn symbols_of<'u, 'a>(text: usize, unit: &'u Unit<'a>) -> BTreeMap<&'a str, Symbol<'u, 'a>> {
    let mut symbols: BTreeMap<&str, Symbol<'_, '_>> = BTreeMap::new();
    let functions = unit.module.functions.iter().map(|function| {
        let linkage = match (&function.body, function.linkage) {
            // A prototype without a body in this text.
            (None, _) => Linkage::Extern,
            (Some(_), Linkage::Internal) if function.is_entry => Linkage::Visible,
            (Some(_), linkage) => linkage,
        };
        (function.name, linkage, SymbolKind::Function(function))
    });
    let variables = unit.module.variables.iter();
    let variables = variables.map(|variable| (variable.name, variable.linkage, SymbolKind::Variable(variable)));
    for (name, linkage, kind) in functions.chain(variables) {
        let symbol = Symbol {
            text,
            linkage,
            span: name.span,
            kind,
        };
        let before = symbols.entry(name.text).or_insert(symbol);
        // A definition replaces the declarations of its text.
        if before.linkage == Linkage::Extern {
            *before = symbol;
        }
    }
    symbols
}

/// Chooses one of the definitions that all texts can see, removes the others, and checks that all declarations match it.
fn choose(
    name: &str,
    symbols: &[Symbol<'_, '_>],
    findings: &mut Vec<LinkFinding>,
    mut remove: impl FnMut(&Symbol<'_, '_>),
) {
    let definitions = || symbols.iter().filter(|symbol| symbol.linkage != Linkage::Extern);
    let Some(chosen) = definitions().max_by_key(|symbol| symbol.strength()) else {
        return;
    };
    for other in symbols.iter().filter(|symbol| symbol.text != chosen.text) {
        findings.extend(mismatch(name, chosen, other));
        if other.linkage == Linkage::Extern {
            continue;
        }
        remove(other);
        let both = [chosen.linkage, other.linkage];
        let is_common = both == [Linkage::Common; 2];
        let has_value = |symbol: &Symbol<'_, '_>| symbol.strength().1;
        if both == [Linkage::Visible; 2] {
            let help = "make one of them `.weak`, or leave out its `.visible`";
            findings.push(other.finding(format!("`{name}` is defined by two texts"), help));
        } else if is_common && has_value(chosen) && has_value(other) {
            let message = format!("`.common` variable `{name}` has two initial values");
            findings.push(other.finding(message, "leave out one of them"));
        } else if is_common && has_value(chosen) && other.strength().2 > chosen.strength().2 {
            let message = format!("`.common` variable `{name}` is larger than the one with the initial value");
            findings.push(other.finding(message, "move the initial value to the largest one"));
        }
    }
}

/// Returns the finding for a declaration that does not match the definition.
fn mismatch(name: &str, chosen: &Symbol<'_, '_>, other: &Symbol<'_, '_>) -> Option<LinkFinding> {
    let differs = match (chosen.kind, other.kind) {
        (SymbolKind::Function(a), SymbolKind::Function(b)) => {
            a.is_entry != b.is_entry
                || shapes(&a.returns) != shapes(&b.returns)
                || shapes(&a.params) != shapes(&b.params)
        }
        (SymbolKind::Variable(a), SymbolKind::Variable(b)) => {
            let has_size = !b.dims.contains(&None) && b.linkage != Linkage::Common;
            a.space != b.space || (has_size && a.bytes() != b.bytes())
        }
        _ => true,
    };
    let message = format!("`{name}` does not match its definition in another text");
    differs.then(|| other.finding(message, "use the same kind, state space, parameters and size"))
}

/// Returns the sizes of parameters or results.
fn shapes(params: &[Variable<'_>]) -> Vec<u64> {
    params.iter().map(Variable::bytes).collect()
}

/// Returns all words of the texts.
fn words<'a>(units: &[Unit<'a>]) -> HashSet<Cow<'a, str>> {
    let of = |unit: &Unit<'a>| {
        let words = unit.tokens.iter().filter(|token| token.kind == Kind::Word);
        let words: Vec<&str> = words.map(|token| unit.slice(token.span)).collect();
        words
    };
    units.iter().flat_map(of).map(Into::into).collect()
}

/// Returns a name like `name$2` that no text uses, and marks it as used.
fn unused_name(name: &str, text: usize, used: &mut HashSet<Cow<'_, str>>) -> String {
    let mut number = text + 1;
    loop {
        let new = format!("{name}${number}");
        if used.insert(new.clone().into()) {
            return new;
        }
        number += 1;
    }
}

/// Renames a symbol of a text, and everything inside its functions that hides it.
///
/// A register of a family keeps its name. For a symbol `x1`, that is the register `x1` of `x<8>`: its declaration does not contain `x1`.
fn rename(unit: &Unit<'_>, name: &str, new: &str, edits: &mut Edits) {
    let mut depth = 0_u32;
    // Depth of the block whose family has a member of this name, up to the end of the block.
    let mut hidden_at: Option<u32> = None;
    for (at, token) in unit.tokens.iter().enumerate() {
        match token.kind {
            Kind::Punct(b'{') => depth += 1,
            Kind::Punct(b'}') => {
                depth = depth.saturating_sub(1);
                hidden_at = hidden_at.filter(|&hidden| hidden <= depth);
            }
            Kind::Word => {
                let word = unit.slice(token.span);
                match family_count(unit, at) {
                    Some(count) if depth > 0 && is_member(name, word, count) => {
                        hidden_at = hidden_at.or(Some(depth));
                    }
                    None if word == name && hidden_at.is_none() => edits.replace(token.span, new),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Returns the count of a family: 8 if token `at` is the `name` of `name<8>`, `None` for other names.
fn family_count(unit: &Unit<'_>, at: usize) -> Option<u32> {
    let [_, open, count, close, ..] = unit.tokens.get(at..)? else {
        return None;
    };
    let is_family = open.kind == Kind::Punct(b'<') && count.kind == Kind::Int && close.kind == Kind::Punct(b'>');
    is_family.then(|| unit.slice(count.span).parse().unwrap_or(u32::MAX))
}

/// True if `family<count>` declares a register with this name.
fn is_member(name: &str, family: &str, count: u32) -> bool {
    let Some(index) = name.strip_prefix(family) else {
        return false;
    };
    let is_number = index.bytes().all(|byte| byte.is_ascii_digit()) && (index == "0" || !index.starts_with('0'));
    is_number && index.parse::<u32>().is_ok_and(|index| index < count)
}

/// Removes a definition. One variable of a list stays, under a name that no text uses.
fn remove(unit: &Unit<'_>, symbol: &Symbol<'_, '_>, used: &mut HashSet<Cow<'_, str>>, edits: &mut Edits) {
    let at = unit
        .tokens
        .partition_point(|token| token.span.start < symbol.span.start);
    let is_linkage = |token: &Token| LINKAGES.contains(&unit.slice(token.span));
    // Back from the name to the first directive of the definition.
    let directives = unit.tokens[..at].iter().rposition(is_linkage).unwrap_or(at);
    let others = unit.tokens[..directives]
        .iter()
        .rev()
        .take_while(|token| is_linkage(token));
    let first = directives - others.count();
    let end = match symbol.kind {
        SymbolKind::Function(_) => end_of_block(&unit.tokens[at..]),
        SymbolKind::Variable(_) => end_of_only_variable(&unit.tokens[first..]).map(|end| first + end - at),
    };
    match end {
        Some(end) => edits.blank(unit.tokens[first].span.to(unit.tokens[at + end].span), unit.text),
        None => edits.replace(symbol.span, unused_name(unit.slice(symbol.span), symbol.text, used)),
    }
}

/// Directives of linkage. A definition that other texts can see begins with one.
const LINKAGES: [&str; 4] = [".visible", ".extern", ".weak", ".common"];

/// Returns the index of the brace that closes the first block.
fn end_of_block(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().position(|token| {
        match token.kind {
            Kind::Punct(b'{') => depth += 1,
            Kind::Punct(b'}') => depth -= 1,
            _ => return false,
        }
        depth == 0
    })
}

/// Returns the index of the semicolon of a declaration, or `None` if it declares several variables.
fn end_of_only_variable(tokens: &[Token]) -> Option<usize> {
    let end = tokens.iter().position(|token| token.kind == Kind::Punct(b';'))?;
    let mut depth = 0;
    let is_list = tokens[..end].iter().any(|token| {
        match token.kind {
            Kind::Punct(b'{' | b'(') => depth += 1,
            Kind::Punct(b'}' | b')') => depth -= 1,
            _ => {}
        }
        depth == 0 && token.kind == Kind::Punct(b',')
    });
    (!is_list).then_some(end)
}
