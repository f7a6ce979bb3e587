//! Moves bytes between registers and packets: the data of a packet, and the results from its response.

use warpwave_isa::exec::access::{load_words, store_bytes};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Access;

use crate::proto::mem::{ALL_SECTORS, AtomicLane, AtomicLanes, LINE, Packet, PacketKind, Purpose, SECTOR, n_sectors};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::texture;

/// Contents of the packets of an access and of their responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketContents {
    /// Registers of the lanes.
    Registers {
        /// Size of each lane's data.
        access: Access,
        /// First source word of a store.
        first: u8,
    },
    /// One word of each lane, for a local access above 4 bytes a lane. Each word of a lane is on another line.
    LocalWords,
    /// Texels of a texture fetch, or the elements of a surface load.
    Texels,
    /// An operand per lane. The response has the old values.
    AtomicLanes,
    /// No data: whole lines are fetched into the L1.
    Prefetch,
}

/// Kind and contents of the packets of an instruction.
pub fn packets_of(warp_inst: &WarpInst) -> (PacketKind, PacketContents) {
    let inst = warp_inst.inst();
    let kind = match inst.op {
        Opcode::St | Opcode::Sust => PacketKind::Store,
        Opcode::Atom => PacketKind::Atomic,
        Opcode::Red => PacketKind::Reduction,
        _ => PacketKind::Load,
    };
    let contents = match inst.op {
        Opcode::Atom | Opcode::Red => PacketContents::AtomicLanes,
        Opcode::Tex | Opcode::Suld => PacketContents::Texels,
        Opcode::Cctl => PacketContents::Prefetch,
        _ if local_words(warp_inst) > 1 => PacketContents::LocalWords,
        _ => PacketContents::Registers {
            access: inst.mods.access,
            first: first_stored_word(warp_inst),
        },
    };
    (kind, contents)
}

/// What the packets of an instruction are for. An access with a lane in local memory counts as local.
pub fn purpose(warp_inst: &WarpInst) -> Purpose {
    match warp_inst.inst().op {
        Opcode::Ld | Opcode::Ldgsts if warp_inst.local_lanes.is_empty() => Purpose::GlobalLoad,
        Opcode::Tex | Opcode::Suld | Opcode::Sust => Purpose::Texture,
        _ => Purpose::Other,
    }
}

/// Number of groups of packets, which are built one after the other. A group is one texel of each lane, or one word of each lane of a wide
/// local access.
pub fn groups(warp_inst: &WarpInst) -> u32 {
    match (warp_inst.inst().op, &warp_inst.fetch) {
        // Only a fetch reads this field, because it is in another host cache line.
        (Opcode::Tex, Some(fetch)) => fetch.n as u32,
        _ => local_words(warp_inst),
    }
}

/// Words per lane of an access with lanes in local memory. 1 for any other access.
fn local_words(warp_inst: &WarpInst) -> u32 {
    match warp_inst.local_lanes.is_empty() {
        true => 1,
        false => warp_inst.inst().mods.access.total().div_ceil(4),
    }
}

/// The first source word of the data of a store.
fn first_stored_word(warp_inst: &WarpInst) -> u8 {
    // Before the data, a store has its address, and a surface store its handle and coordinates.
    let slot = if warp_inst.inst().op == Opcode::Sust { 2 } else { 1 };
    warp_inst.decoded().first_word[slot]
}

/// The lanes that access device memory or another SM.
pub fn device_lanes(warp_inst: &WarpInst) -> LaneMask {
    let lanes = warp_inst.lanes & !warp_inst.shared_lanes;
    if warp_inst.inst().op != Opcode::Ldgsts {
        return lanes;
    }
    let size = &warp_inst.operands.words[warp_inst.decoded().first_word[2] as usize];
    // A copy that reads 0 bytes sends no packet.
    lanes.filter(|lane| size.0[lane] > 0)
}

impl PacketContents {
    /// Fills a packet of `lanes`, of the given group.
    #[inline]
    pub fn fill(self, packet: &mut Packet, warp_inst: &WarpInst, lanes: LaneMask, group: u32) {
        match (self, packet.kind) {
            (PacketContents::Registers { access, first }, PacketKind::Store) => {
                let (addresses, line) = (&warp_inst.addresses, packet.line);
                let words = &warp_inst.operands.words[first.into()..];
                addresses.store(access, lanes, line, &mut packet.bytes, words);
                packet.byte_mask = addresses.byte_mask(lanes, access.total() as usize, line);
            }
            (PacketContents::LocalWords, PacketKind::Store) => store_local_words(packet, warp_inst, lanes, group),
            (PacketContents::AtomicLanes, _) => fill_atomic_lanes(packet, warp_inst, lanes),
            (PacketContents::Prefetch, _) => packet.sectors = ALL_SECTORS,
            _ => {}
        }
    }

    /// Words that `lanes` take from the response of a packet with `sectors`. Lanes on one word may count more than once.
    #[inline]
    pub fn words(self, lanes: LaneMask, sectors: u8) -> u8 {
        let in_sectors = n_sectors(sectors) * (SECTOR / 4) as u32;
        let words = match self {
            PacketContents::Registers { access, .. } => lanes.count() * access.total().div_ceil(4),
            PacketContents::LocalWords => lanes.count(),
            // Lanes are not counted here: the response is assumed to carry whole sectors.
            PacketContents::Texels | PacketContents::AtomicLanes => in_sectors,
            PacketContents::Prefetch => 1,
        };
        words.min(in_sectors) as u8
    }

    /// Copies the data of a response to the results. `lanes` are those of the packet.
    #[inline]
    pub fn take(self, packet: &Packet, warp_inst: &mut WarpInst, lanes: LaneMask) {
        match self {
            PacketContents::Registers { access, .. } => {
                let results = &mut warp_inst.results.words;
                warp_inst
                    .addresses
                    .load(access, lanes, packet.line, &packet.bytes, results);
            }
            // Packets of several groups share tags, so `lanes` may be those of another group here and for texels.
            PacketContents::LocalWords => load_local_words(warp_inst, packet),
            PacketContents::Texels => texture::take_texels(warp_inst, packet),
            PacketContents::AtomicLanes => take_old_values(warp_inst, packet),
            PacketContents::Prefetch => {}
        }
    }

    /// Completes the results after the last response.
    #[inline]
    pub fn finish(self, warp_inst: &mut WarpInst) {
        if self == PacketContents::Texels {
            texture::finish(warp_inst);
        }
    }
}

/// Stores word number `word` of each local lane, and all data of each other lane.
#[inline(never)]
fn store_local_words(packet: &mut Packet, warp_inst: &WarpInst, lanes: LaneMask, word: u32) {
    let access = warp_inst.inst().mods.access;
    let first = usize::from(first_stored_word(warp_inst));
    let sources = &warp_inst.operands.words[first..][..access.words().into()];
    packet.byte_mask = 0;
    for lane in lanes.iter() {
        let mut words = [0; 4];
        words
            .iter_mut()
            .zip(sources)
            .for_each(|(word, from)| *word = from.0[lane]);
        let bytes = store_bytes(access, words);
        let (from, n) = match warp_inst.local_lanes.contains(lane) {
            true => (4 * word as usize, 4),
            false => (0, access.total() as usize),
        };
        // Successive words of a local lane are a line apart.
        let at = (warp_inst.addresses.get(lane) + u64::from(word) * LINE as u64 - packet.line) as usize;
        packet.bytes[at..][..n].copy_from_slice(&bytes[from..][..n]);
        packet.byte_mask |= ((1u128 << n) - 1) << at;
    }
}

/// Loads each word of a local lane that is in the packet, and all data of each other lane.
#[inline(never)]
fn load_local_words(warp_inst: &mut WarpInst, packet: &Packet) {
    let access = warp_inst.inst().mods.access;
    // Registers per word: each element below 4 bytes has its line register.
    let per_word = (4 / usize::from(access.bytes)).max(1);
    let results = &mut warp_inst.results.words;
    for lane in (warp_inst.lanes & !warp_inst.shared_lanes).iter() {
        let is_local = warp_inst.local_lanes.contains(lane);
        let (words, bytes, registers) = match is_local {
            true => (access.total().div_ceil(4), 4, per_word),
            false => (1, access.total() as usize, access.words().into()),
        };
        for word in 0..words as usize {
            let address = warp_inst.addresses.get(lane) + (word * LINE) as u64;
            let Some(offset) = packet.offset_of(address) else {
                continue;
            };
            let values = load_words(access, &packet.bytes[offset..][..bytes]);
            let results = results[word * registers..].iter_mut().take(registers);
            results.zip(values).for_each(|(result, value)| result.0[lane] = value);
        }
    }
}

fn fill_atomic_lanes(packet: &mut Packet, warp_inst: &WarpInst, lanes: LaneMask) {
    let mods = &warp_inst.inst().mods;
    let atomic = packet.atomic.get_or_insert_with(Box::<AtomicLanes>::default);
    // The L2 executes the lanes in this order, the lowest first.
    (atomic.op, atomic.ty, atomic.n) = (mods.atom, mods.ty, lanes.count() as usize);
    if mods.atom.is_arrival() {
        atomic.origin = warp_inst.origin();
    }
    for (entry, lane) in atomic.lanes.iter_mut().zip(lanes.iter()) {
        let (value, compare) = warp_inst.atomic_operands(lane);
        *entry = AtomicLane {
            lane: lane as u8,
            offset: (warp_inst.addresses.get(lane) - packet.line) as u8,
            value,
            compare,
        };
    }
}

fn take_old_values(warp_inst: &mut WarpInst, packet: &Packet) {
    let Some(atomic) = &packet.atomic else { return };
    for old in &atomic.lanes[..atomic.n] {
        warp_inst.set_old_value(old.lane.into(), old.value);
    }
}

/// Reads the constant bank for each lane. Returns the passes: one per distinct address.
pub fn load_constants(warp_inst: &mut WarpInst) -> u64 {
    let mods = warp_inst.inst().mods;
    let access = mods.access;
    let mut passes = 0;
    for lane in warp_inst.lanes.iter() {
        let address = warp_inst.addresses.get(lane);
        // Five words hold 16 bytes from any byte of the first word on.
        let words: [u32; 5] =
            std::array::from_fn(|n| warp_inst.grid.constant(mods.bank, (address / 4) as u16 + n as u16));
        let bytes: [u8; 20] = std::array::from_fn(|n| words[n / 4].to_le_bytes()[n % 4]);
        let values = load_words(access, &bytes[(address % 4) as usize..]);
        for (n, &value) in values.iter().enumerate().take(access.words() as usize) {
            warp_inst.results.words[n].0[lane] = value;
        }
        // A lane with the address of an earlier lane shares its pass.
        let mut before = (warp_inst.lanes & LaneMask::first(lane as u32)).iter();
        passes += u64::from(before.all(|other| warp_inst.addresses.get(other) != address));
    }
    passes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpwave_isa::lane::Lanes;
    use warpwave_isa::program::MAX_SOURCE_WORDS;

    use super::*;
    use crate::proto::addresses::WarpAddresses;
    use crate::proto::addresses::tests::any_addresses;
    use crate::sm::lsu::coalescer::{CoalescedAccess, coalesce};
    use crate::test_ports::grid;

    /// Access suffixes, and their bytes per lane.
    const KINDS: [(&str, u32); 7] = [
        ("B32", 4),
        ("B32X2", 8),
        ("B32X4", 16),
        ("B64", 8),
        ("B64X2", 16),
        ("B16X2", 4),
        ("B8", 1),
    ];

    fn access() -> impl Strategy<Value = (&'static str, u32, [u64; 32])> {
        let kind = prop::sample::select(&KINDS);
        kind.prop_flat_map(|(kind, bytes)| (Just(kind), Just(bytes), any_addresses(u64::from(bytes))))
    }

    fn warp_inst(text: &str, lanes: u32, addresses: [u64; 32]) -> WarpInst {
        WarpInst {
            lanes: LaneMask(lanes),
            addresses: WarpAddresses::per_lane(addresses),
            ..WarpInst::blank(0, grid(text, 1))
        }
    }

    /// The byte of memory at an address.
    fn byte_at(seed: u8, address: u64) -> u8 {
        (address as u8).wrapping_mul(31) ^ (address >> 7) as u8 ^ seed
    }

    proptest! {
        #[test]
        fn load_takes_the_bytes_of_each_lane_from_the_packet_of_its_line(
            lanes: u32,
            (kind, bytes, addresses) in access(),
            seed: u8,
        ) {
            let mut load = warp_inst(&format!("LD.{kind} R4, [R0]"), lanes, addresses);
            let (packet_kind, contents) = packets_of(&load);
            prop_assert_eq!((packet_kind, groups(&load)), (PacketKind::Load, 1));
            let mut coalesced = CoalescedAccess::default();
            coalesce(&load.addresses, LaneMask(lanes), bytes, &mut coalesced);
            for part in coalesced.lines() {
                let bytes = std::array::from_fn(|n| byte_at(seed, part.line + n as u64));
                let packet = Packet { line: part.line, sectors: part.sectors, bytes, ..Packet::blank() };
                contents.take(&packet, &mut load, part.lanes);
            }
            let access = load.inst().mods.access;
            for lane in LaneMask(lanes).iter() {
                let memory: [u8; 16] = std::array::from_fn(|n| byte_at(seed, addresses[lane] + n as u64));
                let values = load_words(access, &memory[..bytes as usize]);
                for (word, value) in load.results.words.iter().zip(values).take(access.words().into()) {
                    prop_assert_eq!(word.0[lane], value, "lane {}", lane);
                }
            }
        }

        #[test]
        fn store_fills_its_packets_with_the_bytes_of_their_lanes(
            lanes: u32,
            (kind, bytes, addresses) in access(),
            words in prop::collection::vec(any::<[u32; 32]>(), MAX_SOURCE_WORDS),
        ) {
            let mut store = warp_inst(&format!("ST.{kind} [R0], R4"), lanes, addresses);
            store.operands.words = std::array::from_fn(|n| Lanes(words[n]));
            let (packet_kind, contents) = packets_of(&store);
            let first = store.decoded().first_word[1] as usize;
            let mut coalesced = CoalescedAccess::default();
            coalesce(&store.addresses, LaneMask(lanes), bytes, &mut coalesced);
            for part in coalesced.lines() {
                let blank = Packet { line: part.line, kind: packet_kind, ..Packet::blank() };
                let (mut filled, mut expected) = (blank.clone(), blank);
                contents.fill(&mut filled, &store, part.lanes, 0);
                for lane in part.lanes.iter() {
                    let at = (addresses[lane] - part.line) as usize;
                    let words = [0, 1, 2, 3].map(|n| words[first + n][lane]);
                    let stored = store_bytes(store.inst().mods.access, words);
                    expected.bytes[at..][..bytes as usize].copy_from_slice(&stored[..bytes as usize]);
                    expected.byte_mask |= ((1 << bytes) - 1) << at;
                }
                prop_assert_eq!((filled.byte_mask, filled.bytes), (expected.byte_mask, expected.bytes));
            }
        }
    }

    #[test]
    fn response_is_as_wide_as_the_words_of_its_lanes_and_at_most_as_its_sectors() {
        let words = |text: &str, lanes, sectors| {
            let (_, contents) = packets_of(&warp_inst(text, u32::MAX, [0; 32]));
            contents.words(LaneMask(lanes), sectors)
        };
        // A sector has 8 words.
        assert_eq!(words("LD.B32 R4, [R0]", 0b111, 0b0001), 3);
        assert_eq!(words("LD.B8 R4, [R0]", 0b111, 0b0101), 3);
        assert_eq!(words("LD.B32X2 R4, [R0]", 0b111, 0b0001), 6);
        assert_eq!(words("LD.B32 R4, [R0]", u32::MAX, 0b0001), 8);
        assert_eq!(words("LD.B32X4 R4, [R0]", 0xff, 0b1111), 32);
    }

    /// Stores through the packets of each group to lines of memory, then loads the same way.
    #[test]
    fn local_vector_of_any_element_is_stored_and_loaded_back() {
        for (kind, groups_expected) in [
            ("B16X2", 1),
            ("B8X4", 1),
            ("B8X2", 1),
            ("B16X4", 2),
            ("B32X2", 2),
            ("B64X2", 4),
        ] {
            let addresses = std::array::from_fn(|lane| 0x1000 + 4 * lane as u64);
            let mut store = warp_inst(&format!("ST.LOCAL.{kind} [R0], R4"), u32::MAX, addresses);
            let mut load = warp_inst(&format!("LD.LOCAL.{kind} R4, [R0]"), u32::MAX, addresses);
            let access = load.inst().mods.access;
            for (n, words) in store.operands.words.iter_mut().enumerate() {
                *words = Lanes(std::array::from_fn(|lane| (lane + 32 * n) as u32 & 0xff));
            }
            let mut memory = [[0xee; LINE]; 6];
            for inst in [&mut store, &mut load] {
                inst.local_lanes = LaneMask::ALL;
                let (kind, contents) = packets_of(inst);
                assert_eq!(groups(inst), groups_expected);
                for (group, line) in memory.iter_mut().enumerate().take(groups_expected as usize) {
                    let line_address = 0x1000 + (group * LINE) as u64;
                    let mut packet = Packet {
                        line: line_address,
                        sectors: 0xf,
                        bytes: *line,
                        kind,
                        ..Packet::blank()
                    };
                    contents.fill(&mut packet, inst, LaneMask::ALL, group as u32);
                    contents.take(&packet, inst, LaneMask::ALL);
                    *line = packet.bytes;
                }
            }
            let first = store.decoded().first_word[1] as usize;
            for n in 0..usize::from(access.words()) {
                assert_eq!(
                    load.results.words[n],
                    store.operands.words[first + n],
                    "{kind}, register {n}"
                );
            }
            assert_eq!(memory[groups_expected as usize], [0xee; LINE], "{kind}");
        }
    }
}
