//! The cases, by topic. A new case belongs in the file of its topic. A new file needs a line here.

mod copy;

mod reduce;

mod scan;

mod atomics;

mod calls;

mod cluster;

mod control;

mod matrix;

mod math;

mod bits;

mod grid;

mod half;

mod memory;

mod images;

use crate::case::{Case, Element, Param, scalar};

/// Every case.
pub fn all() -> Vec<Case> {
    let topics = [
        copy::cases,
        reduce::cases,
        scan::cases,
        atomics::cases,
        calls::cases,
        cluster::cases,
        control::cases,
        matrix::cases,
        math::cases,
        bits::cases,
        grid::cases,
        half::cases,
        memory::cases,
        images::cases,
    ];
    topics.iter().flat_map(|cases| cases()).collect()
}

/// The two scratch pointers that Triton's compiler appends to the parameters.
fn triton_scratch() -> [Param; 2] {
    [scalar(0u64), scalar(0u64)]
}

/// A Numba array of one dimension, as seven parameters: two pointers of the host, elements, bytes of one, data, shape, stride.
fn numba_1d<T: Element>(elements: &[T], data: Param) -> Vec<Param> {
    let (n, bytes) = (elements.len() as u64, T::DTYPE.bytes() as u64);
    let mut params = [0, 0, n, bytes].map(scalar).to_vec();
    params.push(data);
    params.extend([n, bytes].map(scalar));
    params
}

/// A Numba array of `rows` rows, as nine parameters: shape and strides have two numbers each.
fn numba_2d<T: Element>(elements: &[T], rows: usize, data: Param) -> Vec<Param> {
    let (n, rows, bytes) = (elements.len() as u64, rows as u64, T::DTYPE.bytes() as u64);
    let mut params = [0, 0, n, bytes].map(scalar).to_vec();
    params.push(data);
    params.extend([rows, n / rows, n / rows * bytes, bytes].map(scalar));
    params
}
