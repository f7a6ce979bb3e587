//! Addresses in initial elements and arguments: names of buffers and module variables with offsets.
//!
//! The host places all data before the first launch. Until then an element that is an address holds its offset.

use super::dtype::Dtype;
use super::elements;
use super::format::{Address, Ring};
use super::patterns;
use super::quantity::{Constants, Quantity};
use super::{Fault, Layout, Target, data};

/// A buffer that addresses may name.
pub(super) struct Named<'a> {
    pub name: &'a str,
    pub bytes: u64,
}

/// Initial elements, and the list of elements that are addresses.
pub(super) struct Elements {
    pub bytes: Vec<u8>,
    pub pointers: Vec<Pointing>,
}

/// Elements that are addresses in one buffer or variable.
pub(super) struct Pointing {
    pub to: Target,
    /// Indices of the elements.
    pub elements: Vec<u64>,
}

/// The buffer of the elements themselves, for addresses of a ring.
pub(super) struct Owner {
    pub target: Target,
    /// Bytes from one element, or structure, to the next.
    pub stride: u64,
    /// Elements of a structure.
    pub count: u64,
}

impl From<Vec<u8>> for Elements {
    fn from(bytes: Vec<u8>) -> Self {
        let pointers = Vec::new();
        Elements { bytes, pointers }
    }
}

/// The buffer of this name, or else a module variable.
pub(super) fn target(name: &str, named: &[Named<'_>]) -> Target {
    match named.iter().position(|buffer| buffer.name == name) {
        Some(index) => Target::Buffer(index),
        None => Target::Variable(name.to_owned()),
    }
}

/// Resolves one address: its target, and its offset in bytes.
pub(super) fn address(address: &Address, named: &[Named<'_>], constants: &Constants) -> Result<(Target, u64), Fault> {
    let to = target(&address.to, named);
    let offset = constants.size(&address.offset, 0, most(&to, named))?;
    Ok((to, offset))
}

/// The greatest offset: the end of a buffer. The size of a variable is not known here.
fn most(to: &Target, named: &[Named<'_>]) -> u64 {
    match to {
        Target::Buffer(index) => named[*index].bytes,
        // Excludes only an overflow of address plus offset.
        Target::Variable(_) => i64::MAX as u64,
    }
}

/// Elements that are all addresses in one buffer or variable. The offset may be an expression for element i.
pub(super) fn all(
    text: &Address,
    layout: &Layout,
    named: &[Named<'_>],
    constants: &Constants,
) -> Result<Elements, Fault> {
    check_type(layout)?;
    let to = target(&text.to, named);
    let bytes = match &text.offset {
        Quantity::Number(_) => {
            let (_, offset) = address(text, named, constants)?;
            offset.to_le_bytes().repeat(layout.elements() as usize)
        }
        Quantity::Expr(expr) => elements::bytes(expr, layout, 0, constants, &[])?,
    };
    let most = most(&to, named);
    // A negative element of an i64 buffer reads as a huge offset here, so it is refused too.
    let offsets = bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes));
    if let Some((index, offset)) = (0..).zip(offsets).find(|&(_, offset)| offset > most) {
        return Err(Fault::OffsetOutside {
            index,
            offset,
            name: text.to.clone(),
            most,
        });
    }
    let elements = (0..layout.elements()).collect();
    let pointers = vec![Pointing { to, elements }];
    Ok(Elements { bytes, pointers })
}

/// A list of addresses, one for each element.
pub(super) fn list(
    list: &[Address],
    layout: &Layout,
    named: &[Named<'_>],
    constants: &Constants,
) -> Result<Elements, Fault> {
    check_type(layout)?;
    if list.len() as u64 != layout.elements() {
        return Err(Fault::WrongCount {
            found: list.len(),
            want: layout.elements(),
        });
    }
    let (mut bytes, mut pointers) = (Vec::new(), Vec::<Pointing>::new());
    for (index, text) in (0..).zip(list) {
        let (to, offset) = address(text, named, constants)?;
        bytes.extend(offset.to_le_bytes());
        match pointers.iter_mut().find(|known| known.to == to) {
            Some(known) => known.elements.push(index),
            None => pointers.push(Pointing {
                to,
                elements: vec![index],
            }),
        }
    }
    Ok(Elements { bytes, pointers })
}

/// A ring for pointer chasing: indices or addresses of the successors.
pub(super) fn ring(ring: &Ring, layout: &Layout, owner: &Owner, constants: &Constants) -> Result<Elements, Fault> {
    let step = constants.size(&ring.step, 1, layout.elements())?;
    let seed = constants.size(&ring.seed, 0, u64::MAX)?;
    let next = patterns::ring(layout.elements().div_ceil(step), seed);
    let value = |index: u64| match ring.addresses {
        // The start of the structure, as in a linked list.
        true => index / owner.count * owner.stride,
        false => index,
    };
    let mut numbers = vec![0; layout.elements() as usize];
    for (index, next) in next.iter().enumerate() {
        numbers[index * step as usize] = value(next * step);
    }
    let mut pointers = Vec::new();
    if ring.addresses {
        check_type(layout)?;
        pointers.push(Pointing {
            to: owner.target.clone(),
            // The elements between neighbours stay 0: they are no addresses.
            elements: (0..layout.elements()).step_by(step as usize).collect(),
        });
    }
    let bytes = data::integers(layout.dtype, &numbers)?;
    Ok(Elements { bytes, pointers })
}

/// Checks that the elements can hold addresses.
fn check_type(layout: &Layout) -> Result<(), Fault> {
    match layout.dtype {
        Dtype::U64 | Dtype::I64 => Ok(()),
        dtype => Err(Fault::NotAnAddress { dtype }),
    }
}
