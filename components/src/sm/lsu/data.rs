//! Bytes between registers and packets: what a packet carries out, and what its answer brings back.

use warpwave_isa::exec::access::{load_words, store_bytes};
use warpwave_isa::inst::AtomOp;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR};
use crate::proto::warp::Flight;

/// The lanes that read or write device memory: copies of no bytes read nothing.
pub fn device_lanes(flight: &Flight) -> LaneMask {
    let lanes = flight.lanes & !flight.shared_lanes;
    if flight.inst().op != Opcode::Ldgsts {
        return lanes;
    }
    let size = &flight.operands.words[flight.decoded().first_word[2] as usize];
    LaneMask(
        lanes
            .iter()
            .filter(|&lane| size.0[lane] > 0)
            .fold(0, |mask, lane| mask | 1 << lane),
    )
}

/// Words of a wide local access, or texels of a fetch, each in lines of its own; one for every other access.
pub fn lines_apart(flight: &Flight) -> u32 {
    match &flight.fetch {
        Some(fetch) if flight.inst().op == Opcode::Tex => fetch.n as u32,
        _ if flight.local_lanes.is_empty() => 1,
        _ => u32::from(flight.inst().mods.access.words()),
    }
}

/// Makes a packet carry what the instruction wants of it in some lanes; `word` as in [`lines_apart`].
pub fn fill_packet(packet: &mut Packet, flight: &Flight, lanes: LaneMask, word: usize) {
    match flight.inst().op {
        Opcode::St | Opcode::Sust => fill_store(packet, flight, lanes, word),
        Opcode::Atom => fill_lanes(packet, flight, lanes, PacketKind::Atomic),
        Opcode::Red => fill_lanes(packet, flight, lanes, PacketKind::Reduction),
        _ => packet.kind = PacketKind::Load,
    }
}

fn fill_store(packet: &mut Packet, flight: &Flight, lanes: LaneMask, word: usize) {
    let access = flight.inst().mods.access;
    let slot = if flight.inst().op == Opcode::Sust { 2 } else { 1 };
    let first = flight.decoded().first_word[slot] as usize;
    packet.kind = PacketKind::Store;
    packet.byte_mask = 0;
    for lane in lanes.iter() {
        let by_word = flight.local_lanes.contains(lane) && access.total() > 4;
        let n = if by_word { 4 } else { access.total() as usize };
        let offset = (flight.addresses[lane] + (word * LINE) as u64 - packet.line) as usize;
        let words = std::array::from_fn(|n| source_word(flight, first + n, lane, n < access.words() as usize));
        let bytes = store_bytes(access, words);
        let from = if by_word { 4 * word } else { 0 };
        packet.bytes[offset..offset + n].copy_from_slice(&bytes[from..from + n]);
        packet.byte_mask |= ((1u128 << n) - 1) << offset;
    }
}

fn fill_lanes(packet: &mut Packet, flight: &Flight, lanes: LaneMask, kind: PacketKind) {
    let inst = flight.inst();
    let decoded = flight.decoded();
    let wide = inst.mods.access.words() > 1;
    let value = |slot: usize, lane: usize| {
        let first = decoded.first_word[slot] as usize;
        let low = u64::from(source_word(flight, first, lane, true));
        low | u64::from(source_word(flight, first + 1, lane, wide)) << 32
    };
    packet.kind = kind;
    let atomic = packet.atomic.get_or_insert_with(Box::<AtomicLanes>::default);
    atomic.op = inst.mods.atom;
    atomic.ty = inst.mods.ty;
    atomic.n = 0;
    let compares = inst.op == Opcode::Atom && inst.mods.atom == AtomOp::Cas;
    for lane in lanes.iter() {
        let offset = (flight.addresses[lane] - packet.line) as u8;
        // CAS compares with B and stores C; the others take B.
        let (value, compare) = if compares {
            (value(2, lane), value(1, lane))
        } else {
            (value(1, lane), 0)
        };
        atomic.lanes[atomic.n] = AtomicLane {
            lane: lane as u8,
            offset,
            value,
            compare,
        };
        atomic.n += 1;
    }
}

/// A source word of a lane, or zero where the source has no such word.
fn source_word(flight: &Flight, word: usize, lane: usize, exists: bool) -> u32 {
    if exists { flight.operands.words[word].0[lane] } else { 0 }
}

/// Takes what an answered load brings into the results of the lanes that it concerns.
pub fn fill_loaded(flight: &mut Flight, packet: &Packet) {
    let inst = &flight.grid.program.code()[flight.pc as usize];
    let access = inst.mods.access;
    let results = &mut flight.results.words;
    let words = if flight.local_lanes.is_empty() {
        1
    } else {
        access.words() as usize
    };
    for lane in (flight.lanes & !flight.shared_lanes).iter() {
        let local = words > 1 && flight.local_lanes.contains(lane);
        let apart = if local { words } else { 1 };
        for word in 0..apart {
            let Some(offset) = offset_in(packet, flight.addresses[lane] + (word * LINE) as u64) else {
                continue;
            };
            if local || access.bytes == 4 && access.count == 1 {
                let bytes = &packet.bytes[offset..offset + 4];
                results[word].0[lane] = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                continue;
            }
            let values = load_words(access, &packet.bytes[offset..offset + access.total() as usize]);
            for (result, &value) in results.iter_mut().zip(&values).take(access.words() as usize) {
                result.0[lane] = value;
            }
        }
    }
}

/// Where an address lies in the packet's line, if the packet carries its sector.
#[inline]
pub fn offset_in(packet: &Packet, address: u64) -> Option<usize> {
    let offset = address.wrapping_sub(packet.line) as usize;
    (offset < LINE && packet.sectors >> (offset / SECTOR) & 1 == 1).then_some(offset)
}

/// Takes the old values that an answered atomic brings.
pub fn fill_atomic(flight: &mut Flight, packet: &Packet) {
    let words = flight.inst().mods.access.words() as usize;
    let Some(atomic) = &packet.atomic else { return };
    for part in &atomic.lanes[..atomic.n] {
        for n in 0..words {
            flight.results.words[n].0[part.lane as usize] = (part.value >> (32 * n)) as u32;
        }
    }
}

/// Reads the constant bank in every lane; gives the passes, one for each distinct address.
pub fn load_constants(flight: &mut Flight) -> u64 {
    let mods = flight.inst().mods;
    let access = mods.access;
    let mut passes = 0;
    for lane in flight.lanes.iter() {
        let address = flight.addresses[lane];
        let words: [u32; 5] = std::array::from_fn(|n| flight.grid.constant(mods.bank, (address / 4) as u16 + n as u16));
        let bytes: [u8; 20] = std::array::from_fn(|n| words[n / 4].to_le_bytes()[n % 4]);
        let values = load_words(access, &bytes[(address % 4) as usize..]);
        for (n, &value) in values.iter().enumerate().take(access.words() as usize) {
            flight.results.words[n].0[lane] = value;
        }
        let seen = flight.lanes & LaneMask::first(lane as u32);
        passes += u64::from(seen.iter().all(|other| flight.addresses[other] != address));
    }
    passes
}
