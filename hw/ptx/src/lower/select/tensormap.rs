//! Tensor maps in memory: `tensormap.replace` and `tensormap.cp_fenceproxy`.
//!
//! A map is plain memory with the layout of [`warpwave_isa::exec::bulk`], so a replacement is a store of the field.

use super::{Form, Selected, Selector};
use crate::check::Value;

/// A field: its name, first byte, bytes of the value stored, and values of it in the map.
const FIELDS: [(&str, u32, u32, u32); 10] = [
    (".global_address", 0, 8, 1),
    (".rank", 8, 1, 1),
    (".elemtype", 9, 1, 1),
    (".swizzle_mode", 10, 1, 1),
    (".global_dim", 12, 4, 5),
    (".global_stride", 32, 8, 4),
    (".box_dim", 64, 4, 5),
    (".element_stride", 84, 1, 5),
    (".interleave_layout", 89, 1, 1),
    (".fill_mode", 90, 1, 1),
];

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn tensor_map(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.has(".cp_fenceproxy") {
            true => self.copy_map(form),
            false => self.replace_field(form),
        }
    }

    /// Expands `tensormap.replace`. The rank is given as one less than the number of dimensions (PTX ISA, `tensormap.replace`).
    /// A global stride is in bytes (assumed).
    fn replace_field(&mut self, form: &Form<'t, 'a>) -> Selected {
        let field = FIELDS.into_iter().find(|(name, ..)| form.has(name));
        let (name, first, bytes, n) = field.ok_or_else(|| form.unsupported())?;
        form.only(&[".replace", ".tile", ".b1024", ".global", ".shared::cta", name])?;
        if !form.has(".replace") || !form.has(".tile") || !form.has(".b1024") {
            return Err(form.unsupported());
        }
        let (index, registers) = match (n, form.operands()) {
            (1, _) => (0, ""),
            (_, [_, Value::Int(index), _]) if (0..i128::from(n)).contains(index) => {
                (*index as u32, ".reg .b32 %index; ")
            }
            (_, [_, Value::Int(index), _]) => {
                let message = format!("dimension {index} of a tensor map that has dimensions 0 to {}", n - 1);
                return Err(form.malformed(&message));
            }
            _ => return Err(form.malformed("this field takes the number of a dimension, then the value")),
        };
        let value_bits = if bytes == 8 { 64 } else { 32 };
        if form.ty().bits() != value_bits {
            return Err(form.malformed("addresses and strides are `.b64`, the other fields `.b32`"));
        }
        let (space, address_bits) = match form.has(".shared::cta") {
            true => (".shared", 32),
            false if form.has(".global") => (".global", 64),
            false => ("", 64),
        };
        // The map holds the number of dimensions itself.
        let rank = if name == ".rank" {
            "add.u32 %value, %value, 1;\n"
        } else {
            ""
        };
        let code = format!(
            ".reg .b{address_bits} %at; {registers}.reg .b{value_bits} %value;\n{rank}st{space}.b{} [%at+{}], %value;\n",
            8 * bytes,
            first + bytes * index
        );
        self.expand(form, &code)
    }

    /// Expands `tensormap.cp_fenceproxy`. Each lane copies the whole map, so that any number of lanes does.
    fn copy_map(&mut self, form: &Form<'t, 'a>) -> Selected {
        const SCOPES: [&str; 4] = [".cta", ".cluster", ".gpu", ".sys"];
        const KNOWN: [&str; 7] = [
            ".cp_fenceproxy",
            ".global",
            ".shared::cta",
            ".tensormap::generic",
            ".release",
            ".sync",
            ".aligned",
        ];
        form.only(&[&KNOWN[..], &SCOPES].concat())?;
        let scope = SCOPES.into_iter().find(|scope| form.has(scope));
        let scope = scope.filter(|_| KNOWN.into_iter().all(|word| form.has(word)));
        let scope = scope.ok_or_else(|| form.unsupported())?;
        if !matches!(form.operands(), [_, _, Value::Int(128)]) {
            return Err(form.malformed("the size of a tensor map is 128 bytes"));
        }
        let mut code = ".reg .b64 %to; .reg .b32 %from, %size; .reg .b32 %v<4>;\n".to_owned();
        for at in (0..128).step_by(16) {
            code += &format!(
                "ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%from+{at}];\nst.global.v4.b32 [%to+{at}], {{%v0, %v1, %v2, %v3}};\n"
            );
        }
        // The fence releases the copied map to the scope.
        code += &format!("fence.acq_rel{scope};\n");
        self.expand(form, &code)
    }
}
