//! Expansions of remote and vector accesses.
//!
//! A store or reduction that signals an mbarrier becomes an access and a signal. A vector atomic becomes one atomic per element.

use super::integer::parts;
use super::{Form, Selected, Selector};
use crate::ast::Type;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Expands `st.async`: a store, then a `complete_tx` of its bytes.
    pub(super) fn store_async(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".async", ".weak", ".shared::cluster", COMPLETE_TX, ".v2", ".v4"])?;
        let n = parts(form.operand(1)?).len();
        let vector = if n == 1 { String::new() } else { format!(".v{n}") };
        let values: Vec<String> = (0..n).map(|n| format!("%v{n}")).collect();
        let store = format!(
            "st.shared::cluster{vector}.b{} [%at], {{{}}};\n",
            form.ty().bits(),
            values.join(", ")
        );
        self.with_complete_tx(form, n, &store)
    }

    /// Expands `red.async`: a reduction, then a `complete_tx` of its bytes.
    pub(super) fn reduce_async(&mut self, form: &Form<'t, 'a>) -> Selected {
        const OPERATIONS: [&str; 8] = [".inc", ".dec", ".min", ".max", ".add", ".and", ".or", ".xor"];
        form.only(
            &[
                &[".async", ".relaxed", ".cluster", ".shared::cluster", COMPLETE_TX][..],
                &OPERATIONS,
            ]
            .concat(),
        )?;
        let operation = OPERATIONS
            .into_iter()
            .find(|word| form.has(word))
            .ok_or_else(|| form.unsupported())?;
        let reduction = format!(
            "red.relaxed.cluster.shared::cluster{operation}{} [%at], %v0;\n",
            form.ty().dotted()
        );
        self.with_complete_tx(form, 1, &reduction)
    }

    /// Expands `access` of `n` elements, then a signal of their bytes to the mbarrier.
    fn with_complete_tx(&mut self, form: &Form<'t, 'a>, n: usize, access: &str) -> Selected {
        let [ty] = form.types[..] else {
            return Err(form.unsupported());
        };
        if !form.has(COMPLETE_TX) || !matches!(ty.bits(), 32 | 64) {
            return Err(form.unsupported());
        }
        let registers: Vec<String> = (0..n).map(|n| format!("%v{n}")).collect();
        // The access comes first, because the signal says that its bytes are there.
        let code = format!(
            ".reg .b32 %at; .reg .b{0} {1}; .reg .b32 %bar;\n{access}mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%bar], {2};\n",
            ty.bits(),
            registers.join(", "),
            n as u32 * ty.bytes()
        );
        self.expand(form, &code)
    }

    /// Expands `cp.reduce.async.bulk` and copies between CTAs into a loop over elements.
    pub(super) fn bulk_loop(&mut self, form: &Form<'t, 'a>) -> Selected {
        // The copy is complete when the instruction is.
        const OPERATIONS: [&str; 8] = [".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor"];
        let known = [
            ".async",
            ".bulk",
            ".reduce",
            ".shared::cluster",
            ".shared::cta",
            ".global",
            ".bulk_group",
            COMPLETE_TX,
        ];
        form.only(&[&known[..], &OPERATIONS, &[".noftz", ".L2::cache_hint"]].concat())?;
        let (to_global, reduces) = (form.has(".bulk_group"), form.has(".reduce"));
        if to_global == form.has(COMPLETE_TX) || to_global != form.has(".global") || !form.has(".shared::cta") {
            return Err(form.unsupported());
        }
        let words = form.qualifiers().map(|name| name.text);
        let mut operation: String = words
            .filter(|word| OPERATIONS.contains(word) || *word == ".noftz")
            .collect();
        // The minimum and maximum of halves have `.noftz` as an atomic, but not as a bulk reduction.
        let is_half = matches!(form.types[..], [Type::F16 | Type::Bf16]);
        if is_half && (form.has(".min") || form.has(".max")) && !form.has(".noftz") {
            operation += ".noftz";
        }
        let (bytes, access) = match (form.types.as_slice(), reduces) {
            ([], false) => (16, "ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%from];\nst.shared::cluster.v4.b32 [%to], {%v0, %v1, %v2, %v3};\n".to_owned()),
            ([ty], true) => {
                let space = if to_global { ".global" } else { ".shared::cluster" };
                let value = ["%h", "%v0", "%w"][(ty.bytes() / 4) as usize];
                let load = format!("ld.shared.b{} {value}, [%from];\n", ty.bits());
                (ty.bytes(), format!("{load}red.relaxed.gpu{space}{operation}{} [%to], {value};\n", form.ty().dotted()))
            }
            _ => return Err(form.unsupported()),
        };
        // The operand after the size is a cache policy, or the mbarrier to signal.
        let (address, tail, complete_tx) = match to_global {
            true => ("b64", ".reg .b64 %policy;", String::new()),
            false => (
                "b32",
                ".reg .b32 %bar;",
                "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%bar], %all;\n".to_owned(),
            ),
        };
        // The hardware traps on a size or an address that is no multiple of 16.
        let low = match to_global {
            true => "cvt.u32.u64 %low, %to;",
            false => "mov.b32 %low, %to;",
        };
        let code = format!(
            ".reg .{address} %to; .reg .b32 %from, %size; {tail} .reg .b16 %h; .reg .b32 %v<4>, %all, %low; .reg .b64 %w; .reg .pred %p;\n\
             {low}\nor.b32 %low, %low, %from;\nor.b32 %low, %low, %size;\nand.b32 %low, %low, 15;\nsetp.ne.u32 %p, %low, 0;\n@%p trap;\n\
             mov.b32 %all, %size;\nnext:\nsetp.lt.u32 %p, %size, {bytes};\n@%p bra done;\n{access}\
             add.u{bits} %to, %to, {bytes};\nadd.u32 %from, %from, {bytes};\nsub.u32 %size, %size, {bytes};\nbra next;\ndone:\n{complete_tx}",
            bits = &address[1..]
        );
        self.expand(form, &code)
    }

    /// Expands vector atomics such as `atom.v2.f32.add`.
    pub(super) fn atomic_vector(&mut self, form: &Form<'t, 'a>, n: usize) -> Selected {
        if !matches!(
            form.ty(),
            Type::F32 | Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2
        ) {
            return Err(form.unsupported());
        }
        let words = form.qualifiers().map(|name| name.text);
        let words: String = words
            .filter(|word| {
                Type::from_dotted(word).is_none() && !matches!(*word, ".v2" | ".v4" | ".v8" | ".L2::cache_hint")
            })
            .collect();
        let ty = form.ty().dotted();
        let (bits, bytes) = (form.ty().bits(), form.ty().bytes());
        let list = |letter: char| (0..n).map(|n| format!("%{letter}{n}")).collect::<Vec<_>>().join(", ");
        let returns = form.opcode() == "atom";
        let mut code = if returns {
            format!(".reg .b{bits} {}; ", list('d'))
        } else {
            String::new()
        };
        code += &format!(".reg .b64 %at; .reg .b{bits} {}; .reg .b64 %policy;\n", list('v'));
        // PTX promises atomicity for each element, not for the vector.
        for n in 0..n {
            let result = if returns { format!("%d{n}, ") } else { String::new() };
            code += &format!(
                "{}{words}{ty} {result}[%at+{}], %v{n};\n",
                form.opcode(),
                n as u32 * bytes
            );
        }
        let given = form
            .operands()
            .iter()
            .skip(usize::from(returns) + 1)
            .take(1)
            .map(|value| parts(value).len());
        if !given.eq([n]) || (returns && parts(form.operand(0)?).len() != n) {
            return Err(form.malformed("the number of elements differs from the vector width"));
        }
        self.expand(form, &code)
    }
}

/// Qualifier of accesses that signal an mbarrier.
const COMPLETE_TX: &str = ".mbarrier::complete_tx::bytes";
