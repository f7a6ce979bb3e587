//! Reads numpy arrays (`.npy`) as little-endian bytes, and writes them for `--dump`.
//!
//! numpy has no bf16. A bf16 array is read from `uint16` (its bits) or from two-byte voids (`|V2`), and written as `uint16`.

use std::io::{self, Read, Write};

use npyz::{DType, NpyHeader, Order, TypeChar, TypeStr};

use super::dtype::Dtype;
use super::error::Fault;

/// Maximum number of bytes of a header. numpy accepts 10,000.
const MAX_HEADER: u64 = 1 << 20;

/// Deepest nesting of brackets in a header. A shape is at depth 2, a type with fields a few levels deeper.
const MAX_DEPTH: usize = 32;

/// Reads an npy file of this type and shape as little-endian bytes. Reads at most one byte more than the elements have.
///
/// # Errors
/// If the file is not an npy array, if its type, shape or order differ, or if its data have another length.
pub fn read(path: &str, mut file: impl Read, dtype: Dtype, shape: &[u64]) -> Result<Vec<u8>, Fault> {
    let path = || path.to_owned();
    let not_npy = |reason: String| Fault::NotNpy { path: path(), reason };
    let header = header(&mut file).map_err(not_npy)?;
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
    // With one dimension, both orders are the same.
    if header.order() == Order::Fortran && shape.len() > 1 {
        return Err(Fault::ColumnMajor { path: path() });
    }
    let n = shape.iter().product::<u64>() * dtype.bytes() as u64;
    let mut bytes = Vec::with_capacity(n as usize);
    // One byte more than needed tells a file that is too long.
    let read = file.take(n + 1).read_to_end(&mut bytes);
    read.map_err(|error| not_npy(error.to_string()))?;
    if bytes.len() as u64 != n {
        let found = match bytes.len() as u64 {
            found if found < n => found.to_string(),
            _ => format!("more than {n}"),
        };
        return Err(not_npy(format!("{found} bytes of data, its shape and dtype take {n}")));
    }
    if scalar.endianness() == npyz::Endianness::Big {
        bytes.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    Ok(bytes)
}

/// Reads the header. Bounds its length and its nesting before it is parsed.
fn header(file: &mut impl Read) -> Result<NpyHeader, String> {
    let text = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file ends within its header".to_owned(),
        _ => error.to_string(),
    };
    let mut bytes = vec![0; 8];
    file.read_exact(&mut bytes).map_err(text)?;
    // Version 1 has a length of two bytes, later ones of four.
    let mut length = [0; 4];
    let width = if bytes[6] == 1 { 2 } else { 4 };
    file.read_exact(&mut length[..width]).map_err(text)?;
    let n = u64::from(u32::from_le_bytes(length));
    // Another file goes to the parser with its first bytes, which names the fault.
    if bytes.starts_with(b"\x93NUMPY") {
        if n > MAX_HEADER {
            return Err(format!("a header of {n} bytes, at most {MAX_HEADER} are read"));
        }
        bytes.extend(&length[..width]);
        file.take(n).read_to_end(&mut bytes).map_err(text)?;
        if depth(&bytes) > MAX_DEPTH {
            return Err(format!("a header with brackets nested more than {MAX_DEPTH} deep"));
        }
        if let Some(key) = double_key(&bytes) {
            return Err(format!("a header with two entries `{key}`"));
        }
        if has_huge_shape(&bytes) {
            return Err("a shape with 2^64 elements or more".to_owned());
        }
    }
    NpyHeader::from_reader(&bytes[..]).map_err(text)
}

/// The first key that a header has more than once. The parser would take the last entry.
fn double_key(header: &[u8]) -> Option<&'static str> {
    let header = String::from_utf8_lossy(header);
    let is_double = |key: &&str| {
        let is_entry = |rest: &&str| rest.starts_with(['\'', '"']) && rest[1..].trim_start().starts_with(':');
        header.split(*key).skip(1).filter(is_entry).count() > 1
    };
    ["descr", "fortran_order", "shape"].into_iter().find(is_double)
}

/// True if the product of the numbers in some parentheses needs more than 64 bits. The parser would multiply them unchecked.
fn has_huge_shape(header: &[u8]) -> bool {
    let header = String::from_utf8_lossy(header);
    let mut tuples = header.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    tuples.any(|tuple| {
        let mut sizes = tuple.split(',').filter_map(python_integer);
        sizes.try_fold(1u64, u64::checked_mul).is_none()
    })
}

/// Reads an integer of Python's syntax, such as `8`, `0x8` or `1_000L`.
fn python_integer(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['L', 'l']).replace('_', "").to_lowercase();
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter();
    let mut digits = prefixed.filter_map(|(prefix, radix)| Some((text.strip_prefix(prefix)?, radix)));
    let (digits, radix) = digits.next().unwrap_or((&text, 10));
    u64::from_str_radix(digits, radix).ok()
}

/// Computes the deepest nesting of brackets.
fn depth(text: &[u8]) -> usize {
    let mut open = 0usize;
    let after = text.iter().map(|byte| {
        open = match byte {
            b'(' | b'[' | b'{' => open + 1,
            b')' | b']' | b'}' => open.saturating_sub(1),
            _ => open,
        };
        open
    });
    after.max().unwrap_or(0)
}

/// The array's scalar type, if it matches a buffer of `dtype`.
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

/// Writes elements as an npy file of version 1.0.
///
/// ```
/// use warpwave::scenario::dtype::Dtype;
/// use warpwave::scenario::npy;
/// let mut file = Vec::new();
/// npy::write(&mut file, Dtype::U16, &[2], &[1, 0, 2, 0]).unwrap();
/// assert_eq!(npy::read("a.npy", &file[..], Dtype::U16, &[2]).unwrap(), [1, 0, 2, 0]);
/// assert_eq!(file.len() % 64, 4);
/// ```
///
/// # Errors
/// If `to` cannot be written.
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
    // Magic, version and length have 10 bytes. The data must begin at a multiple of 64.
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
            read("x.npy", &file[..], Dtype::F32, &[1]),
            Ok(1.5f32.to_le_bytes().to_vec())
        );
    }

    #[test]
    fn data_of_a_written_array_begin_at_a_multiple_of_64_bytes() {
        // NEP 1: magic, version, the length of the header in two bytes, the header with spaces and a line feed at its end, the data.
        for shape in [
            &[1][..],
            &[128],
            &[100_000],
            &[2, 3],
            &[16, 16, 16],
            &[1_000_000, 1_000_000],
        ] {
            for dtype in [Dtype::F32, Dtype::I8, Dtype::U64, Dtype::Bf16] {
                let mut file = Vec::new();
                write(&mut file, dtype, shape, b"data").unwrap();
                let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
                let (head, data) = file.split_at(10 + length);
                assert_eq!((head.len() % 64, data), (0, &b"data"[..]), "{dtype:?} {shape:?}");
                assert_eq!((&head[..8], head.last()), (&b"\x93NUMPY\x01\x00"[..], Some(&b'\n')));
            }
        }
    }

    #[test]
    fn bf16_is_read_from_uint16_and_from_voids() {
        for descr in ["<u2", "|V2"] {
            let file = file(descr, "False", "(1,)", &[0x80, 0x3f]);
            assert_eq!(
                read("x.npy", &file[..], Dtype::Bf16, &[1]),
                Ok(vec![0x80, 0x3f]),
                "{descr}"
            );
        }
    }

    #[test]
    fn array_of_another_type_shape_or_length_is_refused_with_both_values() {
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
        assert!(
            refused(&two[..two.len() - 1], Dtype::I32, &[2]).contains("7 bytes of data, its shape and dtype take 8")
        );
        assert!(refused(b"no array", Dtype::I32, &[2]).contains("numpy.save"));
    }

    #[test]
    fn deeply_nested_header_is_refused_before_it_is_parsed() {
        let nested = file("<i4", "False", &"(".repeat(9000), &[]);
        let error = read("x.npy", &nested[..], Dtype::I32, &[1]).unwrap_err();
        assert!(
            error.to_string().contains("brackets nested more than 32 deep"),
            "{error}"
        );
    }

    #[test]
    fn shape_beyond_64_bits_is_refused_before_it_is_multiplied() {
        for shape in [
            "(4294967296, 4294967296, 8)",
            "(0xffffffffffffffff, 2)",
            "(1_0, 18446744073709551615)",
        ] {
            let error = read("x.npy", &file("<i4", "False", shape, &[])[..], Dtype::I32, &[1]).unwrap_err();
            assert!(
                error.to_string().contains("a shape with 2^64 elements or more"),
                "{error}"
            );
        }
    }
}
