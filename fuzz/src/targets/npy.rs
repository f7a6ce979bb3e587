//! Target: reads any bytes as an npy array, and reads back what was written.

use arbitrary::Arbitrary;
use warpwave::scenario::dtype::Dtype;
use warpwave::scenario::npy;

use crate::draw::{one_of, up_to, within};
use crate::features;

/// Bytes of a file, and the array that a scenario expects in it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    #[arbitrary(with = one_of(&Dtype::ALL))]
    dtype: Dtype,
    #[arbitrary(with = up_to(3))]
    shape: Vec<Size>,
    file: File,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Size(#[arbitrary(with = within(0..=5))] u64);

/// How the file comes about.
#[derive(Arbitrary, Clone, Debug)]
enum File {
    /// The bytes as they are.
    Any(Vec<u8>),
    /// The bytes after the magic number and a version.
    Version(u8, Vec<u8>),
    /// A header with the right length and this text, then the bytes.
    Header(String, Vec<u8>),
    /// A dictionary with these texts as values.
    Values(String, bool, String, Vec<u8>),
    /// A file that the writer wrote, with one byte changed.
    Written(u16, u8),
}

/// Reads the file.
///
/// # Panics
/// If the reader panics, if an array has another length than its shape, or if a written array is not read back.
pub fn check(input: Input) {
    let shape: Vec<u64> = input.shape.iter().map(|size| size.0).collect();
    let n = shape.iter().product::<u64>() as usize * input.dtype.bytes();
    let data: Vec<u8> = (0..n).map(|at| at as u8).collect();
    let mut written = Vec::new();
    npy::write(&mut written, input.dtype, &shape, &data).expect("memory has room");
    let read = |file: &[u8]| npy::read("x.npy", file, input.dtype, &shape);
    // Every input checks the writer, whatever its file is.
    assert_eq!(read(&written).as_ref(), Ok(&data), "a written array");
    match read(&bytes_of(input.file, written)) {
        Ok(bytes) => {
            assert_eq!(bytes.len(), n, "bytes of the array");
            features::note("read");
        }
        Err(fault) => {
            let text = fault.to_string();
            assert!(text.starts_with("x.npy"), "{text}");
            // The first words name the fault. What follows quotes the file.
            let words = text.split(|c: char| !c.is_ascii_alphabetic());
            features::note(words.filter(|word| !word.is_empty()).take(9).collect::<Vec<_>>());
        }
    }
}

fn bytes_of(file: File, mut written: Vec<u8>) -> Vec<u8> {
    let with_header = |text: &str, data: &[u8]| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        [&bytes, text.as_bytes(), data].concat()
    };
    match file {
        File::Any(bytes) => bytes,
        File::Version(version, rest) => [b"\x93NUMPY", &[version][..], &rest].concat(),
        File::Header(text, data) => with_header(&text, &data),
        File::Values(descr, fortran, shape, data) => {
            let fortran = if fortran { "True" } else { "False" };
            let text = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
            with_header(&text, &data)
        }
        File::Written(at, byte) => {
            let at = usize::from(at) % written.len();
            written[at] = byte;
            written
        }
    }
}
