//! Fragments of matrix products: the registers that hold a lane's part of a matrix.
//!
//! The lanes share a matrix evenly, so its size and its elements give the number of registers. Source: matrix fragments of `mma`,
//! `wmma` and `wgmma` in the PTX ISA. There are two exceptions:
//! - A factor of halves in `wmma` has eight registers in every shape.
//! - `mma.m8n8k4` of halves computes four products.

use super::operand::kind_clash;
use super::{Checker, Value};
use crate::ast::{Instruction, Type};
use crate::diag::{Diagnostic, Span};
use warpwave_isa::lane::WARP_SIZE;

/// A matrix of the product D = A * B + C.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Matrix {
    A,
    B,
    C,
    D,
}

use Matrix::{A, B, C, D};

/// A matrix product, or the load or store of one of its matrices.
struct Product<'i, 'a> {
    instruction: &'i Instruction<'a>,
    /// Qualifier of the shape, and its rows, columns and depth.
    shape: &'a str,
    sizes: [u32; 3],
    /// Type qualifiers, in order.
    elements: Vec<&'a str>,
}

impl<'a> Checker<'_, 'a> {
    /// Checks the register lists of `mma`, `wmma` and `wgmma`. Returns false after a finding.
    pub(super) fn check_fragments(&mut self, instruction: &Instruction<'a>, operands: &[Value<'a>]) -> bool {
        let before = self.findings.len();
        let Some(product) = Product::of(instruction) else {
            return true;
        };
        // The third operand of a load or store is the stride, in elements.
        if let (true, Some(stride)) = (product.has(".load") || product.has(".store"), operands.get(2)) {
            self.check_typed(Type::B32, 32, stride, instruction.operands[2].span);
        }
        for (place, matrix) in product.places(operands) {
            let (Some(value), Some(operand)) = (operands.get(place), instruction.operands.get(place)) else {
                continue;
            };
            if let Some((element, count)) = product.registers(matrix) {
                self.check_fragment(&product, matrix, element, count, value, operand.span);
            }
        }
        self.findings.len() == before
    }

    fn check_fragment(
        &mut self,
        product: &Product<'_, 'a>,
        matrix: Matrix,
        element: &str,
        count: usize,
        value: &Value<'a>,
        span: Span,
    ) {
        let ty = register_type(element);
        let Value::Vector(found) = value else {
            let message = format!("{matrix:?} of `{}` is a list of registers", product.shape);
            let finding = Diagnostic::malformed(span, message);
            self.findings
                .push(finding.help(format!("write a list such as {}", list(count, ty))));
            return;
        };
        if found.len() != count {
            let ending = if count == 1 { "" } else { "s" };
            let message = format!(
                "{matrix:?} of `{}` with `{element}` has {count} register{ending} of {} bits, found {}",
                product.shape,
                ty.bits(),
                found.len()
            );
            let finding = Diagnostic::malformed(span, message);
            self.findings
                .push(finding.help(format!("write a list such as {}", list(count, ty))));
            return;
        }
        let types: Vec<Type> = found
            .iter()
            .filter_map(|value| match value {
                Value::Register(register) => Some(self.type_of(*register)),
                _ => None,
            })
            .collect();
        let expected = product.sum_type(matrix).unwrap_or(ty);
        if let Some(&wrong) = types.iter().find(|found| found.bits() != ty.bits()) {
            self.mismatch(wrong, ty.bits(), span);
        } else if !types.is_empty() && types.iter().all(|&found| kind_clash(expected, found)) {
            // The vendor's assembler takes a list with some registers of another kind.
            self.clash(expected, types[0], span);
        } else if found
            .iter()
            .any(|value| matches!(value, Value::Symbol(..) | Value::Label(_)))
        {
            self.report(span, "an element of a fragment is a register".to_owned());
        }
    }
}

/// Returns the type of a register with elements of a type.
fn register_type(element: &str) -> Type {
    if element == ".f64" { Type::B64 } else { Type::B32 }
}

/// Returns a list of registers as an example: `{%r1, %r2}`.
fn list(count: usize, ty: Type) -> String {
    let prefix = if ty == Type::B64 { "%rd" } else { "%r" };
    let names: Vec<String> = (1..=count).map(|n| format!("{prefix}{n}")).collect();
    format!("`{{{}}}`", names.join(", "))
}

impl<'i, 'a> Product<'i, 'a> {
    /// Returns the product of an instruction. `None` for other instructions and for unknown shapes.
    fn of(instruction: &'i Instruction<'a>) -> Option<Product<'i, 'a>> {
        if !["mma", "wmma", "wgmma"].contains(&instruction.opcode.text) {
            return None;
        }
        let words = || instruction.qualifiers.iter().map(|name| name.text);
        let (shape, sizes) = words().find_map(|word| Some((word, sizes_of(word)?)))?;
        let elements = words().filter(|word| bits_of(word).is_some()).collect();
        Some(Product {
            instruction,
            shape,
            sizes,
            elements,
        })
    }

    fn has(&self, word: &str) -> bool {
        self.instruction.qualifiers.iter().any(|name| name.text == word)
    }

    fn is(&self, opcode: &str) -> bool {
        self.instruction.opcode.text == opcode
    }

    /// Returns the operands that are fragments, by their numbers.
    fn places(&self, operands: &[Value<'a>]) -> Vec<(usize, Matrix)> {
        let in_registers = |place: usize| matches!(operands.get(place), Some(Value::Vector(_)));
        match () {
            // Other matrices of a warp group are in shared memory.
            () if self.is("wgmma") && in_registers(1) => vec![(0, D), (1, A)],
            () if self.is("wgmma") => vec![(0, D)],
            () if self.has(".load") => {
                let matrix = [(".a", A), (".b", B), (".c", C)]
                    .into_iter()
                    .find(|(name, _)| self.has(name));
                matrix.map(|(_, matrix)| (0, matrix)).into_iter().collect()
            }
            () if self.has(".store") => vec![(1, D)],
            () => vec![(0, D), (1, A), (2, B), (3, C)],
        }
    }

    /// Returns the type qualifier of a matrix.
    fn element(&self, matrix: Matrix) -> Option<&'a str> {
        match (self.elements.as_slice(), matrix) {
            (&[element], _) => Some(element),
            // Products of halves name only the results and the sums.
            (&[d, _], D) | (&[d, _, _], D) | (&[d, _, _, _], D) => Some(d),
            (&[_, _], A | B) => Some(".f16"),
            (&[_, c], C) | (&[_, _, _, c], C) => Some(c),
            (&[_, a, _] | &[_, a, _, _], A) => Some(a),
            (&[_, _, b] | &[_, _, b, _], B) => Some(b),
            _ => None,
        }
    }

    /// Returns the type of the sums of `mma`, if its registers must have this kind.
    fn sum_type(&self, matrix: Matrix) -> Option<Type> {
        let ty = Type::from_dotted(self.element(matrix)?)?;
        let is_sum = self.is("mma") && matches!(matrix, C | D) && matches!(ty, Type::F32 | Type::S32);
        is_sum.then_some(ty)
    }

    /// Returns the type qualifier and the number of registers of a matrix. `None` for a combination without a fragment.
    fn registers(&self, matrix: Matrix) -> Option<(&'a str, usize)> {
        let element = self.element(matrix)?;
        let bits = bits_of(element)?;
        let [m, n, k] = self.sizes;
        let is_sparse = self.has(".sp") || self.has(".sp::ordered_metadata");
        let elements = match matrix {
            // Only half of a sparse A is stored.
            A if is_sparse => m * k / 2,
            A => m * k,
            B => k * n,
            C | D => m * n,
        };
        let lanes = WARP_SIZE as u32 * if self.is("wgmma") { 4 } else { 1 };
        let has_halves = self.element(A) == Some(".f16");
        let products = if self.is("mma") && has_halves && self.sizes == [8, 8, 4] {
            4
        } else {
            1
        };
        let count = match matrix {
            A | B if self.is("wmma") && element == ".f16" => 8,
            _ => products * elements * bits / (lanes * register_type(element).bits()),
        };
        (count > 0).then_some((element, count as usize))
    }
}

/// Returns the rows, columns and depth of a shape such as `.m16n8k16`.
fn sizes_of(word: &str) -> Option<[u32; 3]> {
    let (m, rest) = word.strip_prefix(".m")?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    // The largest shapes have 256 columns or a depth of 256.
    let size = |digits: &str| digits.parse().ok().filter(|size| *size <= 1024);
    Some([size(m)?, size(n)?, size(k)?])
}

/// Returns the bits of an element, from its type qualifier.
fn bits_of(word: &str) -> Option<u32> {
    Some(match word {
        ".b1" => 1,
        ".s4" | ".u4" => 4,
        ".s8" | ".u8" | ".e4m3" | ".e5m2" => 8,
        ".f16" | ".bf16" => 16,
        ".tf32" | ".f32" | ".s32" => 32,
        ".f64" => 64,
        _ => return None,
    })
}
