//! Fences: memory orders, scopes and proxies.

use super::forms::Kind;
use super::{Modifiers, either, exclude};
use crate::ast::Name;
use crate::check::Value;
use crate::diag::{Diagnostic, Span};

impl Modifiers<'_, '_> {
    /// Checks `fence` and `membar`.
    pub(super) fn fence(&self, operands: &[Value<'_>]) -> Option<Diagnostic> {
        if self.has(".proxy") {
            return self.proxy_fence(operands);
        }
        if let Some(operand) = self.instruction.operands.first() {
            return Some(self.no_operands(operand.span));
        }
        if let Some(restriction) = self.of(Kind::Restriction) {
            return self.restricted(restriction);
        }
        let is_init = self.has(".mbarrier_init");
        if is_init && !(self.has(".release") && self.has(".cluster")) {
            let finding = self.wrong("`fence.mbarrier_init` without a memory order and a scope".to_owned());
            return Some(finding.help("write `fence.mbarrier_init.release.cluster`"));
        }
        if self.of(Kind::Scope).is_some() {
            return None;
        }
        let order = self.of(Kind::Order).map_or("", |order| order.text);
        let finding = self.wrong(format!("`{}{order}` without a scope", self.form.name));
        Some(finding.help(format!("write {}", either(&self.form.words(Kind::Scope)))))
    }

    /// Checks that a restriction has its only order, with cluster scope.
    fn restricted(&self, restriction: Name<'_>) -> Option<Diagnostic> {
        let order = match restriction.text {
            ".sync_restrict::shared::cta" => ".release",
            _ => ".acquire",
        };
        if self.has(order) && self.has(".cluster") {
            return None;
        }
        let message = format!("`{}` is for `{order}` at cluster scope", restriction.text);
        let help = format!("write `{order}{}.cluster`", restriction.text);
        Some(Diagnostic::malformed(restriction.span, message).help(help))
    }

    fn no_operands(&self, span: Span) -> Diagnostic {
        Diagnostic::malformed(span, format!("this form of `{}` takes no operands", self.form.name))
    }

    /// Checks `fence.proxy` and `membar.proxy`.
    fn proxy_fence(&self, operands: &[Value<'_>]) -> Option<Diagnostic> {
        let Some(proxy) = self.of(Kind::Proxy) else {
            let finding = self.wrong(format!("`{}` without a proxy kind", self.form.name));
            return Some(finding.help(format!("write {}", either(&self.form.words(Kind::Proxy)))));
        };
        let (order, scope) = (self.of(Kind::Order), self.of(Kind::Scope));
        // A tensor-map fence has an order and a scope, and `.async::generic` a restriction too. Other proxies have none.
        let is_map = proxy.text == ".tensormap::generic";
        let is_restricted = proxy.text == ".async::generic";
        let space = self.of(Kind::Space).filter(|_| proxy.text != ".async");
        let restriction = self.of(Kind::Restriction);
        let other = restriction
            .or(order.or(scope).filter(|_| !is_map))
            .filter(|_| !is_restricted);
        if let Some(other) = space.or(other) {
            return Some(exclude(proxy, other));
        }
        if is_restricted && restriction.is_none() {
            let finding =
                self.wrong("`fence.proxy.async::generic` without an order, a restriction and a scope".to_owned());
            return Some(finding.help("write them, as in `.acquire.sync_restrict::shared::cluster.cluster`"));
        }
        if let Some(finding) = restriction.and_then(|restriction| self.restricted(restriction)) {
            return Some(finding);
        }
        if is_map && (order.is_none() || scope.is_none()) {
            let finding = self.wrong("`fence.proxy.tensormap::generic` without a memory order and a scope".to_owned());
            return Some(finding.help("write one of each, as in `.release.gpu`"));
        }
        let acquires = is_map && order.is_some_and(|order| order.text == ".acquire");
        match operands {
            [] if acquires => {
                let finding = self.wrong("this form of `fence.proxy` takes an address and a size".to_owned());
                Some(finding.help("write them: `[%rd1], 128`"))
            }
            [_, Value::Int(128)] if acquires => None,
            [_, _] if acquires => {
                let size = &self.instruction.operands[1];
                Some(Diagnostic::malformed(
                    size.span,
                    "the size of a tensor-map fence must be 128 bytes",
                ))
            }
            [] => None,
            _ => Some(self.no_operands(self.instruction.operands[0].span)),
        }
    }
}
