//! Bytes between registers and packets: what a packet carries out, and what its answer brings back.

use warpwave_isa::exec::access::{load_words, store_bytes};
use warpwave_isa::inst::AtomOp;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use crate::proto::mem::{ALL_SECTORS, AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::halves::Halves;

/// The lanes that read or write device memory: copies of no bytes read nothing.
pub fn device_lanes(warp_inst: &WarpInst) -> LaneMask {
    let lanes = warp_inst.lanes & !warp_inst.shared_lanes;
    if warp_inst.inst().op != Opcode::Ldgsts {
        return lanes;
    }
    let size = &warp_inst.operands.words[warp_inst.decoded().first_word[2] as usize];
    LaneMask(
        lanes
            .iter()
            .filter(|&lane| size.0[lane] > 0)
            .fold(0, |mask, lane| mask | 1 << lane),
    )
}

/// Words of a wide local access, or texels of a fetch, each in lines of its own; one for every other access.
pub fn lines_apart(warp_inst: &WarpInst) -> u32 {
    // Most boxes never held a fetch, and to see whether one does takes a line of memory that nobody else needs.
    if warp_inst.inst().op == Opcode::Tex
        && let Some(fetch) = &warp_inst.fetch
    {
        return fetch.n as u32;
    }
    match warp_inst.local_lanes.is_empty() {
        true => 1,
        false => u32::from(warp_inst.inst().mods.access.words()),
    }
}

/// How the packets of an access are made: the same for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filling {
    /// With nothing.
    Load,
    /// With nothing, but the whole line is wanted.
    Prefetch,
    /// With the words that the halves of the warp want of the line.
    Halves(Halves),
    /// With whole words, so many in each lane, from this one of what the instruction read on.
    Words1(u8),
    /// As above.
    Words2(u8),
    /// As above.
    Words4(u8),
    /// With elements of any size.
    Elements,
    /// With a value for each lane.
    Lanes(PacketKind),
}

impl Filling {
    /// What the instruction asks for; what its halves want, if that is known.
    pub fn of(warp_inst: &WarpInst, halves: Option<Halves>) -> Self {
        let inst = warp_inst.inst();
        let access = inst.mods.access;
        match (inst.op, access.bytes, access.total()) {
            (Opcode::St | Opcode::Sust, ..) if lines_apart(warp_inst) > 1 => Filling::Elements,
            (Opcode::St | Opcode::Sust, 4.., 4) => {
                halves.map_or_else(|| Filling::Words1(stored_word(warp_inst)), Filling::Halves)
            }
            (Opcode::St | Opcode::Sust, 4.., 8) => Filling::Words2(stored_word(warp_inst)),
            (Opcode::St | Opcode::Sust, 4.., 16) => Filling::Words4(stored_word(warp_inst)),
            (Opcode::St | Opcode::Sust, ..) => Filling::Elements,
            (Opcode::Atom, ..) => Filling::Lanes(PacketKind::Atomic),
            (Opcode::Red, ..) => Filling::Lanes(PacketKind::Reduction),
            (Opcode::Cctl, ..) => Filling::Prefetch,
            _ => Filling::Load,
        }
    }

    /// What the packets want.
    pub fn kind(self) -> PacketKind {
        match self {
            Filling::Load | Filling::Prefetch => PacketKind::Load,
            Filling::Lanes(kind) => kind,
            _ => PacketKind::Store,
        }
    }

    /// Makes a packet carry what the instruction wants of it in some lanes; `word` as in [`lines_apart`].
    pub fn fill(self, packet: &mut Packet, warp_inst: &WarpInst, lanes: LaneMask, word: usize) {
        match self {
            Filling::Load => {}
            Filling::Prefetch => packet.sectors = ALL_SECTORS,
            Filling::Halves(halves) => store_halves(packet, warp_inst, halves),
            Filling::Words1(first) => store_words_of::<4>(packet, warp_inst, first, lanes),
            Filling::Words2(first) => store_words_of::<8>(packet, warp_inst, first, lanes),
            Filling::Words4(first) => store_words_of::<16>(packet, warp_inst, first, lanes),
            Filling::Elements => store_elements(packet, warp_inst, lanes, word),
            Filling::Lanes(_) => fill_lanes(packet, warp_inst, lanes),
        }
    }
}

/// The first word of what a store stores.
fn stored_word(warp_inst: &WarpInst) -> u8 {
    let slot = if warp_inst.inst().op == Opcode::Sust { 2 } else { 1 };
    warp_inst.decoded().first_word[slot]
}

/// Stores the words that the halves of the warp want.
#[inline(never)]
fn store_halves(packet: &mut Packet, warp_inst: &WarpInst, halves: Halves) {
    let words = &warp_inst.operands.words[usize::from(stored_word(warp_inst))];
    packet.byte_mask = halves.store_line(packet.line, &mut packet.bytes, words);
}

/// Stores whole words, `N` bytes in each lane, from the word `first` of the operands on. As lanes are aligned, a line is an array of such
/// places.
#[inline(never)]
fn store_words_of<const N: usize>(packet: &mut Packet, warp_inst: &WarpInst, first: u8, lanes: LaneMask) {
    let words = &warp_inst.operands.words[usize::from(first)..][..N / 4];
    let (places, addresses) = (packet.bytes.as_chunks_mut::<N>().0, &warp_inst.addresses);
    if let Some(lane) = lanes.as_single() {
        let n = addresses[lane] as usize % LINE / N;
        for (bytes, word) in places[n].as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.0[lane].to_le_bytes();
        }
        packet.byte_mask = ((1u128 << N) - 1) << (N * n);
        return;
    }
    let written = lanes.iter().fold(0, |written, lane| {
        let n = addresses[lane] as usize % LINE / N;
        for (bytes, word) in places[n].as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.0[lane].to_le_bytes();
        }
        written | 1u32 << n
    });
    packet.byte_mask = bytes_of_places::<N>(written);
}

/// The bits of the bytes in places of `N` bytes.
fn bytes_of_places<const N: usize>(places: u32) -> u128 {
    if places.count_ones() as usize == LINE / N {
        return u128::MAX;
    }
    let bytes = (1u128 << N) - 1;
    let places = LaneMask(places);
    places.iter().fold(0, |mask, n| mask | bytes << (N * n))
}

/// Stores elements of any size; the words of a wide local access one by one.
#[inline(never)]
fn store_elements(packet: &mut Packet, warp_inst: &WarpInst, lanes: LaneMask, word: usize) {
    let access = warp_inst.inst().mods.access;
    let first = usize::from(stored_word(warp_inst));
    packet.byte_mask = 0;
    for lane in lanes.iter() {
        let by_word = warp_inst.local_lanes.contains(lane) && access.total() > 4;
        let n = if by_word { 4 } else { access.total() as usize };
        let offset = (warp_inst.addresses[lane] + (word * LINE) as u64 - packet.line) as usize;
        let words = std::array::from_fn(|n| source_word(warp_inst, first + n, lane, n < access.words() as usize));
        let bytes = store_bytes(access, words);
        let from = if by_word { 4 * word } else { 0 };
        packet.bytes[offset..offset + n].copy_from_slice(&bytes[from..from + n]);
        packet.byte_mask |= ((1u128 << n) - 1) << offset;
    }
}

#[inline(never)]
fn fill_lanes(packet: &mut Packet, warp_inst: &WarpInst, lanes: LaneMask) {
    let inst = warp_inst.inst();
    let decoded = warp_inst.decoded();
    let wide = inst.mods.access.words() > 1;
    let value = |slot: usize, lane: usize| {
        let first = decoded.first_word[slot] as usize;
        let low = u64::from(source_word(warp_inst, first, lane, true));
        low | u64::from(source_word(warp_inst, first + 1, lane, wide)) << 32
    };
    let atomic = packet.atomic.get_or_insert_with(Box::<AtomicLanes>::default);
    atomic.op = inst.mods.atom;
    atomic.ty = inst.mods.ty;
    atomic.n = 0;
    let compares = inst.op == Opcode::Atom && inst.mods.atom == AtomOp::Cas;
    for lane in lanes.iter() {
        let offset = (warp_inst.addresses[lane] - packet.line) as u8;
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
fn source_word(warp_inst: &WarpInst, word: usize, lane: usize, exists: bool) -> u32 {
    if exists {
        warp_inst.operands.words[word].0[lane]
    } else {
        0
    }
}

/// Takes what an answered load brings into the results of the lanes that it concerns; `on_line` are those on its line, for an access
/// whose words do not lie in [lines apart](lines_apart).
pub fn fill_loaded(warp_inst: &mut WarpInst, packet: &Packet, on_line: LaneMask) {
    let access = warp_inst.inst().mods.access;
    match (access.bytes, access.total()) {
        _ if lines_apart(warp_inst) > 1 => load_elements(warp_inst, packet),
        (4.., 4) => load_words_of::<4>(warp_inst, packet, on_line),
        (4.., 8) => load_words_of::<8>(warp_inst, packet, on_line),
        (4.., 16) => load_words_of::<16>(warp_inst, packet, on_line),
        _ => load_elements(warp_inst, packet),
    }
}

/// Loads whole words, `N` bytes in each lane, as [`store_words_of`] stores them.
fn load_words_of<const N: usize>(warp_inst: &mut WarpInst, packet: &Packet, on_line: LaneMask) {
    let (places, addresses) = (packet.bytes.as_chunks::<N>().0, &warp_inst.addresses);
    let results = &mut warp_inst.results.words;
    on_line.iter().for_each(|lane| {
        let offset = addresses[lane] as usize % LINE;
        // A word in each lane is one request, whose packet for a line has the sectors of all its lanes.
        if N > 4 && packet.sectors >> (offset / SECTOR) & 1 == 0 {
            return;
        }
        for (result, word) in results.iter_mut().zip(places[offset / N].as_chunks().0) {
            result.0[lane] = u32::from_le_bytes(*word);
        }
    });
}

/// Loads elements of any size; the words of a wide local access one by one.
fn load_elements(warp_inst: &mut WarpInst, packet: &Packet) {
    let access = warp_inst.inst().mods.access;
    let results = &mut warp_inst.results.words;
    let words = if warp_inst.local_lanes.is_empty() {
        1
    } else {
        access.words() as usize
    };
    for lane in (warp_inst.lanes & !warp_inst.shared_lanes).iter() {
        let local = words > 1 && warp_inst.local_lanes.contains(lane);
        let apart = if local { words } else { 1 };
        for word in 0..apart {
            let Some(offset) = offset_in(packet, warp_inst.addresses[lane] + (word * LINE) as u64) else {
                continue;
            };
            if local {
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
pub fn fill_atomic(warp_inst: &mut WarpInst, packet: &Packet) {
    let words = warp_inst.inst().mods.access.words() as usize;
    let Some(atomic) = &packet.atomic else { return };
    for part in &atomic.lanes[..atomic.n] {
        for n in 0..words {
            warp_inst.results.words[n].0[part.lane as usize] = (part.value >> (32 * n)) as u32;
        }
    }
}

/// Reads the constant bank in every lane; gives the passes, one for each distinct address.
pub fn load_constants(warp_inst: &mut WarpInst) -> u64 {
    let mods = warp_inst.inst().mods;
    let access = mods.access;
    let mut passes = 0;
    for lane in warp_inst.lanes.iter() {
        let address = warp_inst.addresses[lane];
        let words: [u32; 5] =
            std::array::from_fn(|n| warp_inst.grid.constant(mods.bank, (address / 4) as u16 + n as u16));
        let bytes: [u8; 20] = std::array::from_fn(|n| words[n / 4].to_le_bytes()[n % 4]);
        let values = load_words(access, &bytes[(address % 4) as usize..]);
        for (n, &value) in values.iter().enumerate().take(access.words() as usize) {
            warp_inst.results.words[n].0[lane] = value;
        }
        let seen = warp_inst.lanes & LaneMask::first(lane as u32);
        passes += u64::from(seen.iter().all(|other| warp_inst.addresses[other] != address));
    }
    passes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpwave_isa::lane::Lanes;

    use super::*;
    use crate::sm::lsu::coalescer::tests::{any_addresses, parts_of};
    use crate::test_ports::grid;

    /// Accesses of whole words, and the bytes of each lane.
    const KINDS: [(&str, u32); 5] = [("B32", 4), ("B32X2", 8), ("B32X4", 16), ("B64", 8), ("B64X2", 16)];

    fn access() -> impl Strategy<Value = (&'static str, u32, [u64; 32])> {
        let kind = prop::sample::select(&KINDS);
        kind.prop_flat_map(|(kind, bytes)| (Just(kind), Just(bytes), any_addresses(u64::from(bytes))))
    }

    fn warp_inst(text: &str, lanes: u32, addresses: [u64; 32]) -> WarpInst {
        WarpInst {
            lanes: LaneMask(lanes),
            addresses,
            ..WarpInst::blank(0, grid(text, 1))
        }
    }

    proptest! {
        #[test]
        fn whole_words_are_loaded_as_elements_of_any_size_are(
            lanes: u32,
            (kind, bytes, addresses) in access(),
            brought: [u8; LINE],
        ) {
            let mut at_once = warp_inst(&format!("LD.{kind} R4, [R0]"), lanes, addresses);
            let mut general = at_once.clone();
            let parts = parts_of(&addresses, LaneMask(lanes), bytes);
            for (n, part) in parts.all().iter().enumerate() {
                let bytes = brought.map(|byte| byte ^ n as u8);
                let packet = Packet { line: part.line, sectors: part.sectors, bytes, ..Packet::blank() };
                fill_loaded(&mut at_once, &packet, parts.lanes_on_line(n));
                load_elements(&mut general, &packet);
                prop_assert_eq!(&at_once.results, &general.results);
            }
        }

        #[test]
        fn whole_words_are_stored_as_elements_of_any_size_are(
            lanes: u32,
            (kind, bytes, addresses) in access(),
            words in prop::collection::vec(any::<[u32; 32]>(), 10),
        ) {
            let mut warp_inst = warp_inst(&format!("ST.{kind} [R0], R4"), lanes, addresses);
            warp_inst.operands.words = std::array::from_fn(|n| Lanes(words[n]));
            for part in parts_of(&addresses, LaneMask(lanes), bytes).all() {
                let blank = Packet { line: part.line, ..Packet::blank() };
                let (mut at_once, mut general) = (blank.clone(), blank);
                Filling::of(&warp_inst, None).fill(&mut at_once, &warp_inst, part.lanes, 0);
                store_elements(&mut general, &warp_inst, part.lanes, 0);
                prop_assert_eq!(at_once.byte_mask, general.byte_mask);
                prop_assert_eq!(at_once.bytes, general.bytes);
            }
        }
    }

    proptest! {
        #[test]
        fn words_of_halves_are_stored_as_elements_are(
            first in prop::array::uniform2(0..200u64),
            rows in prop::array::uniform2(any::<bool>()),
            words: [u32; 32],
        ) {
            let step = |lane: usize| if rows[lane / 16] { 4 * (lane % 16) as u64 } else { 0 };
            let addresses = std::array::from_fn(|lane| 4 * first[lane / 16] + step(lane));
            let mut store = warp_inst("ST.B32 [R0], R4", u32::MAX, addresses);
            store.operands.words.fill(Lanes(words));
            let halves = Halves::narrow(&Lanes(addresses.map(|address| address as u32)), 0, LaneMask::ALL);
            let filling = Filling::of(&store, halves);
            prop_assert_eq!(filling, Filling::Halves(halves.expect("each half is a row or one word")));
            for part in parts_of(&addresses, LaneMask::ALL, 4).all() {
                let blank = Packet { line: part.line, ..Packet::blank() };
                let (mut at_once, mut general) = (blank.clone(), blank);
                filling.fill(&mut at_once, &store, part.lanes, 0);
                store_elements(&mut general, &store, part.lanes, 0);
                prop_assert_eq!((at_once.byte_mask, at_once.bytes), (general.byte_mask, general.bytes));
            }
        }
    }
}
