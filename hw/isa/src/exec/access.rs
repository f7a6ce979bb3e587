//! Memory accesses without a memory: addresses of lanes, and bytes of registers.

use super::Operands;
use crate::inst::Inst;
use crate::lane::{Lanes, WARP_SIZE};
use crate::opcode::{Opcode, Width};
use crate::program::Decoded;
use crate::space::Access;

/// Returns each lane's address: base plus offset, modulo the address width of the space.
///
/// For LDGSTS, the global address that is read. [`copy_destinations`] returns the shared address.
///
/// ```
/// use warpwave_isa::exec::{Operands, access::addresses};
/// use warpwave_isa::inst::{Inst, Operand};
/// use warpwave_isa::lane::Lanes;
/// use warpwave_isa::opcode::Opcode;
/// use warpwave_isa::program::Decoded;
/// use warpwave_isa::reg::Reg;
/// let mut load = Inst::new(Opcode::Ld);
/// load.src[0] = Operand::reg(Reg(2));
/// load.mods.offset = -16;
/// let mut operands = Operands::default();
/// operands.words[1] = Lanes::splat(1); // the base is 0x1_0000_0000
/// assert_eq!(addresses(&load, &Decoded::of(&load), &operands)[0], 0xffff_fff0);
/// ```
pub fn addresses(inst: &Inst, decoded: &Decoded, operands: &Operands) -> [u64; WARP_SIZE] {
    let mut out = [0; WARP_SIZE];
    addresses_into(inst, decoded, operands, &mut out);
    out
}

/// Writes each lane's address to `out`, as [`addresses`] returns it.
pub fn addresses_into(inst: &Inst, decoded: &Decoded, operands: &Operands, out: &mut [u64; WARP_SIZE]) {
    let slot = if inst.op == Opcode::Ldgsts { 1 } else { 0 };
    let first = decoded.first_word[slot] as usize;
    let base = &operands.words[first..];
    if address_width(inst, slot) == 2 {
        wide_addresses(&base[0], &base[1], inst.mods.offset, out);
    } else {
        narrow_addresses(&base[0], inst.mods.offset, out);
    }
}

/// Returns the number of words of the address in a slot.
fn address_width(inst: &Inst, slot: usize) -> u8 {
    inst.op
        .info()
        .src
        .get(slot)
        .copied()
        .unwrap_or(Width::Words(1))
        .of(&inst.mods)
}

/// Returns the shared addresses that LDGSTS writes.
pub fn copy_destinations(operands: &Operands) -> [u64; WARP_SIZE] {
    let mut out = [0; WARP_SIZE];
    narrow_addresses(&operands.words[0], 0, &mut out);
    out
}

#[inline]
fn wide_addresses(low: &Lanes, high: &Lanes, offset: i32, out: &mut [u64; WARP_SIZE]) {
    for (lane, address) in out.iter_mut().enumerate() {
        let base = u64::from(high.0[lane]) << 32 | u64::from(low.0[lane]);
        // The offset is signed: its sign is extended to 64 bits.
        *address = base.wrapping_add(offset as i64 as u64);
    }
}

/// Computes one-word addresses: base plus offset, modulo 2^32. Returns the bitwise or of all addresses.
#[inline]
pub fn narrow_addresses(base: &Lanes, offset: i32, out: &mut [u64; WARP_SIZE]) -> u32 {
    let mut any = 0;
    for (lane, address) in out.iter_mut().enumerate() {
        let own = base.0[lane].wrapping_add(offset as u32);
        any |= own;
        *address = own.into();
    }
    any
}

/// Converts the bytes of one lane's access to registers, little-endian.
///
/// `bytes` has [`Access::total`] bytes, at most 16. Elements of 1 and 2 bytes take one register each, zero- or sign-extended.
///
/// ```
/// use warpwave_isa::exec::access::load_words;
/// use warpwave_isa::space::Access;
/// let signed = Access { bytes: 1, count: 2, signed: true };
/// assert_eq!(load_words(signed, &[0x7f, 0x80]), [0x7f, 0xffff_ff80, 0, 0]);
/// ```
#[inline]
pub fn load_words(access: Access, bytes: &[u8]) -> [u32; 4] {
    let mut words = [0; 4];
    match (access.bytes, access.signed) {
        (1, false) => words
            .iter_mut()
            .zip(bytes)
            .for_each(|(word, &byte)| *word = byte.into()),
        (1, true) => words
            .iter_mut()
            .zip(bytes)
            .for_each(|(word, &byte)| *word = byte as i8 as u32),
        (2, signed) => {
            for (word, pair) in words.iter_mut().zip(bytes.chunks_exact(2)) {
                let value = u16::from_le_bytes([pair[0], pair[1]]);
                *word = if signed { value as i16 as u32 } else { value.into() };
            }
        }
        _ => {
            for (word, quad) in words.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_le_bytes([quad[0], quad[1], quad[2], quad[3]]);
            }
        }
    }
    words
}

/// Converts a lane's registers to bytes. The first [`Access::total`] bytes are valid.
///
/// ```
/// use warpwave_isa::exec::access::store_bytes;
/// use warpwave_isa::space::Access;
/// let halves = Access { bytes: 2, count: 2, signed: false };
/// assert_eq!(store_bytes(halves, [0x1234, 0xabcd, 0, 0])[..4], [0x34, 0x12, 0xcd, 0xab]);
/// ```
#[inline]
pub fn store_bytes(access: Access, words: [u32; 4]) -> [u8; 16] {
    // An element of 8 or 16 bytes is several whole registers.
    let each = usize::from(access.bytes.min(4));
    let mut bytes = [0; 16];
    for (chunk, word) in bytes.chunks_exact_mut(each).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes()[..each]);
    }
    bytes
}
