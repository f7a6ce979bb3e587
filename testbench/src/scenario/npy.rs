//! Arrays as numpy stores them: read into plain little-endian bytes, written for `--dump`.
//!
//! numpy has no bf16: such arrays are stored as `uint16` (their bits) or as two-byte voids (`|V2`), and written as `uint16`.

use std::io::{self, Write};

use npyz::{DType, NpyHeader, Order, TypeChar, TypeStr};

use super::dtype::Dtype;
use super::error::Fault;

/// The elements of an npy file of this type and shape, as little-endian bytes.
///
/// # Errors
/// If the file is no npy array, or one of another type, shape or order.
pub fn read(path: &str, file: &[u8], dtype: Dtype, shape: &[u64]) -> Result<Vec<u8>, Fault> {
    let path = || path.to_owned();
    let not_npy = |reason: String| Fault::NotNpy { path: path(), reason };
    let mut rest = file;
    let header = NpyHeader::from_reader(&mut rest).map_err(|error| not_npy(error.to_string()))?;
    let found = header.dtype();
    let scalar = scalar_of(&found, dtype).ok_or_else(|| Fault::WrongDtype {
        path: path(),
        found: found.descr(),
        want: dtype,
    })?;
    if header.shape() != shape {
        return Err(Fault::WrongShape {
            path: path(),
            found: header.shape().to_vec(),
            want: shape.to_vec(),
        });
    }
    if header.order() == Order::Fortran && shape.len() > 1 {
        return Err(Fault::ColumnMajor { path: path() });
    }
    let n = shape.iter().product::<u64>() as usize * dtype.bytes();
    let data = rest.get(..n);
    let data = data.ok_or_else(|| not_npy(format!("{} bytes of data instead of {n}", rest.len())))?;
    let mut bytes = data.to_vec();
    if scalar.endianness() == npyz::Endianness::Big {
        bytes.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    Ok(bytes)
}

/// The array's scalar type, if it is what a buffer of `dtype` takes.
fn scalar_of(found: &DType, dtype: Dtype) -> Option<&TypeStr> {
    let DType::Plain(scalar) = found else { return None };
    let same_size = scalar.num_bytes() == Some(dtype.bytes());
    let same_kind = match dtype {
        Dtype::Bf16 => matches!(scalar.type_char(), TypeChar::Uint | TypeChar::RawData),
        _ if dtype.is_float() => scalar.type_char() == TypeChar::Float,
        _ if dtype.name().starts_with('u') => scalar.type_char() == TypeChar::Uint,
        _ => scalar.type_char() == TypeChar::Int,
    };
    (same_size && same_kind).then_some(scalar)
}

/// Writes elements as a version 1.0 npy file.
///
/// ```
/// use warpwave::scenario::dtype::Dtype;
/// use warpwave::scenario::npy;
/// let mut file = Vec::new();
/// npy::write(&mut file, Dtype::U16, &[2], &[1, 0, 2, 0]).unwrap();
/// assert_eq!(npy::read("a.npy", &file, Dtype::U16, &[2]).unwrap(), [1, 0, 2, 0]);
/// assert_eq!(file.len() % 64, 4);
/// ```
///
/// # Errors
/// What the writer gives.
pub fn write(to: &mut impl Write, dtype: Dtype, shape: &[u64], bytes: &[u8]) -> io::Result<()> {
    let kind = match dtype {
        Dtype::Bf16 => 'u',
        _ if dtype.is_float() => 'f',
        _ => dtype.name().chars().next().expect("names are not empty"),
    };
    let sizes: String = shape.iter().map(|n| format!("{n},")).collect();
    let mut header = format!(
        "{{'descr': '<{kind}{}', 'fortran_order': False, 'shape': ({sizes}), }}",
        dtype.bytes()
    );
    // Magic, version and length take 10 bytes; the data begin at a multiple of 64.
    let padding = 63 - (10 + header.len()) % 64;
    header.push_str(&" ".repeat(padding));
    header.push('\n');
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&(header.len() as u16).to_le_bytes())?;
    to.write_all(header.as_bytes())?;
    to.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn big_endian_array_comes_out_little_endian() {
        let file = file(">f4", "False", "(1,)", &1.5f32.to_be_bytes());
        assert_eq!(
            read("x.npy", &file, Dtype::F32, &[1]),
            Ok(1.5f32.to_le_bytes().to_vec())
        );
    }

    #[test]
    fn bf16_is_taken_from_uint16_and_from_voids() {
        for descr in ["<u2", "|V2"] {
            let file = file(descr, "False", "(1,)", &[0x80, 0x3f]);
            assert_eq!(read("x.npy", &file, Dtype::Bf16, &[1]), Ok(vec![0x80, 0x3f]), "{descr}");
        }
    }

    #[test]
    fn array_that_does_not_fit_its_buffer_is_refused_with_both_sides_named() {
        let two = file("<i4", "False", "(2,)", &[0; 8]);
        let refused = |file: &[u8], dtype, shape: &[u64]| read("x.npy", file, dtype, shape).unwrap_err().to_string();
        assert_eq!(
            refused(&two, Dtype::F32, &[2]),
            "x.npy holds '<i4', but the buffer's dtype is f32; convert one of the two"
        );
        assert_eq!(
            refused(&two, Dtype::I32, &[3]),
            "x.npy has shape [2], but the buffer's is [3]; change one of the two"
        );
        let columns = file("<i4", "True", "(1, 2)", &[0; 8]);
        assert!(refused(&columns, Dtype::I32, &[1, 2]).contains("numpy.ascontiguousarray"));
        assert!(refused(&two[..two.len() - 1], Dtype::I32, &[2]).contains("7 bytes of data instead of 8"));
        assert!(refused(b"no array", Dtype::I32, &[2]).contains("numpy.save"));
    }
}
