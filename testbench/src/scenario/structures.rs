//! Buffers of structures: fields with the alignment of C, each with elements of its own.
//!
//! ```text
//! fields of one element type each ── layout ──> offsets, stride ── interleave ──> bytes of the buffer
//! ```
//!
//! Such a buffer is one of bytes, with the stride as its last size. An expectation of a field reads through a [`StructField`].

use super::dtype::Dtype;
use super::quantity::Constants;
use super::{Fault, Layout, StructField, format};

/// Most elements of a field in one structure.
const MAX_COUNT: u64 = 1 << 16;

/// The fields of a structure with their places, and its bytes.
pub(super) struct Structure {
    pub fields: Vec<StructField>,
    pub stride: u64,
}

impl Structure {
    /// Places the fields in order. Each is aligned to its type, and the whole to the widest one.
    pub fn new(buffer: &str, fields: &[format::Field], constants: &Constants) -> Result<Structure, Fault> {
        let (mut placed, mut end) = (Vec::new(), 0u64);
        for field in fields {
            let name = format!("{buffer}.{}", field.name);
            if placed.iter().any(|other: &StructField| other.name == name) {
                return Err(Fault::TwoFields { name });
            }
            let bytes = field.dtype.bytes() as u64;
            let count = constants.size(&field.count, 1, MAX_COUNT)?;
            // In C, a scalar is aligned to its size.
            let offset = end.next_multiple_of(bytes);
            end = offset + count * bytes;
            placed.push(StructField {
                name,
                dtype: field.dtype,
                offset,
                stride: 0,
                count,
            });
        }
        let widest = placed.iter().map(|field| field.dtype.bytes() as u64).max();
        let stride = end.next_multiple_of(widest.ok_or(Fault::NoFields)?);
        placed.iter_mut().for_each(|field| field.stride = stride);
        Ok(Structure { fields: placed, stride })
    }

    /// The layout of a buffer with this many structures in each dimension.
    pub fn layout(&self, mut shape: Vec<u64>) -> Layout {
        shape.push(self.stride);
        Layout {
            dtype: Dtype::U8,
            shape,
        }
    }
}

impl StructField {
    /// The layout of the field's elements alone, in a buffer of this layout.
    pub(super) fn layout(&self, buffer: &Layout) -> Layout {
        let structures = buffer.elements() / self.stride;
        // A scalar field has one dimension, so that an npy file of it needs no size of 1.
        let count = Some(self.count).filter(|&count| count > 1);
        Layout {
            dtype: self.dtype,
            shape: [structures].into_iter().chain(count).collect(),
        }
    }

    /// Offset of element `index` in the buffer, in bytes.
    pub fn at(&self, index: u64) -> u64 {
        let (structure, element) = (index / self.count, index % self.count);
        structure * self.stride + self.offset + element * self.dtype.bytes() as u64
    }

    /// Writes the field's elements into the bytes of a buffer.
    pub(super) fn scatter(&self, elements: &[u8], buffer: &mut [u8]) {
        for (index, element) in elements.chunks_exact(self.dtype.bytes()).enumerate() {
            buffer[self.at(index as u64) as usize..][..element.len()].copy_from_slice(element);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, dtype: Dtype, count: i64) -> format::Field {
        format::Field {
            name: name.to_owned(),
            dtype,
            count: count.into(),
            init: None,
            expect: format::Expects::default(),
        }
    }

    fn structure(fields: &[format::Field]) -> Result<Structure, String> {
        Structure::new("p", fields, &Constants::default()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn fields_lie_where_c_places_them() {
        // struct { char tag; double mass; short n[3]; float v; } has offsets 0, 8, 16 and 24, and 32 bytes.
        let fields = [
            field("tag", Dtype::I8, 1),
            field("mass", Dtype::F64, 1),
            field("n", Dtype::I16, 3),
            field("v", Dtype::F32, 1),
        ];
        let found = structure(&fields).unwrap();
        let offsets: Vec<_> = found.fields.iter().map(|field| field.offset).collect();
        assert_eq!((offsets, found.stride), (vec![0, 8, 16, 24], 32));
        let layout = found.layout(vec![5]);
        assert_eq!(layout.shape, [5, 32]);
        let n = &found.fields[2];
        assert_eq!(n.layout(&layout).shape, [5, 3]);
        assert_eq!([0, 2, 3, 14].map(|index| n.at(index)), [16, 20, 48, 148]);
        let mut bytes = vec![0; 64];
        n.scatter(&[1, 0, 2, 0, 3, 0, 4, 0], &mut bytes);
        assert_eq!((bytes[16], bytes[18], bytes[20], bytes[48]), (1, 2, 3, 4));
    }

    #[test]
    fn structure_without_fields_or_with_two_of_one_name_is_refused() {
        assert_eq!(
            structure(&[]).err().unwrap(),
            "a structure needs fields; give at least one"
        );
        let twice = [field("a", Dtype::F32, 1), field("a", Dtype::I8, 1)];
        assert_eq!(
            structure(&twice).err().unwrap(),
            "two fields are named `p.a`; rename one of them"
        );
    }
}
