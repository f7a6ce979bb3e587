//! Packets, memories and configurations for the targets.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use warpwave_components::config::GpuConfig;
use warpwave_components::preset;
use warpwave_components::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR, SECTORS};
use warpwave_components::storage::{BASE, Storage};
use warpwave_hw::time::Domain;
use warpwave_isa::inst::{AtomOp, Ty};

use crate::draw::{one_of, within};

/// The preset `tiny`. Targets change the fields that they draw.
pub static TINY: LazyLock<GpuConfig> = LazyLock::new(|| preset::load("tiny", &[]).expect("tiny is built in").config);

/// The preset `h100-sxm5`, for parts that `tiny` lacks.
pub static H100: LazyLock<GpuConfig> =
    LazyLock::new(|| preset::load("h100-sxm5", &[]).expect("h100-sxm5 is built in").config);

/// Draws a clock domain: mostly the global clock.
pub fn clock(bytes: &mut Unstructured<'_>) -> Result<Domain> {
    let ratios = [(1, 1), (1, 1), (1, 2), (3, 5), (7, 4), (3, 1)];
    let (num, den) = *bytes.choose(&ratios)?;
    Ok(Domain::new(num, den))
}

/// What a request does to its line.
#[derive(Arbitrary, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Reads sectors.
    Load,
    /// Writes bytes: a pattern of the mask, from this byte.
    Store(Mask, u8),
    /// Reads, changes and writes words.
    Atomic(Atomic),
    /// An atomic without old values.
    Reduction(Atomic),
}

/// The bytes that a store writes in its sectors.
#[derive(Arbitrary, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mask {
    /// All.
    Whole,
    /// Every other word.
    Words,
    /// These bytes of each group of eight.
    Bytes(u8),
}

impl Mask {
    /// The bytes in these sectors.
    pub fn byte_mask(self, sectors: u8) -> u128 {
        let writes = |at: usize| {
            sectors >> (at / SECTOR) & 1 == 1
                && match self {
                    Mask::Whole => true,
                    Mask::Words => at / 4 % 2 == 1,
                    Mask::Bytes(bytes) => bytes >> (at % 8) & 1 == 1,
                }
        };
        (0..LINE).filter(|&at| writes(at)).fold(0, |mask, at| mask | 1 << at)
    }
}

/// An atomic: operation, lanes, distance of their words, operand.
#[derive(Arbitrary, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomic {
    #[arbitrary(with = one_of(&[AtomOp::Add, AtomOp::Exch, AtomOp::Cas, AtomOp::Max, AtomOp::Xor]))]
    op: AtomOp,
    #[arbitrary(with = one_of(&[Ty::U32, Ty::U64]))]
    ty: Ty,
    #[arbitrary(with = within(1..=5))]
    lanes: u8,
    #[arbitrary(with = within(0..=2))]
    distance: u8,
    #[arbitrary(with = within(0..=3))]
    operand: u8,
}

impl Atomic {
    /// The lanes of a packet with these sectors: their words are in its lowest sector.
    fn lanes(self, sectors: u8) -> AtomicLanes {
        let size = self.ty.bytes();
        let first = sectors.trailing_zeros() as u8 * SECTOR as u8;
        let mut atomics = AtomicLanes {
            op: self.op,
            ty: self.ty,
            n: self.lanes.into(),
            ..AtomicLanes::default()
        };
        for (n, lane) in (0..).zip(&mut atomics.lanes[..self.lanes.into()]) {
            *lane = AtomicLane {
                lane: n,
                // A distance of 0 puts all lanes on one word.
                offset: first + size * (n * self.distance % (SECTOR as u8 / size)),
                // Operand and compare value share a pattern, so that a compare-and-swap sometimes succeeds.
                value: u128::from(self.operand) * 0x0101_0000_0101,
                compare: u128::from(n / 2) * 0x0101_0000_0101,
            };
        }
        atomics
    }
}

/// One request of random traffic.
#[derive(Arbitrary, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Cycles after the previous request.
    #[arbitrary(with = one_of(&[0, 0, 0, 1, 2, 7, 20, 90]))]
    pub gap: u64,
    /// The line, of a small set.
    #[arbitrary(with = within(0..=23))]
    pub line: u8,
    /// The sectors, at least one.
    #[arbitrary(with = within(1..=15))]
    pub sectors: u8,
    /// What it does.
    pub action: Action,
    /// A choice for the target: the sender, the cache operator.
    #[arbitrary(with = within(0..=3))]
    pub choice: u8,
}

impl Request {
    /// The packet of the request for line number `line`.
    pub fn packet(&self, line: u64, tag: u32) -> Box<Packet> {
        let mut packet = Box::new(Packet {
            line: BASE + line * LINE as u64,
            sectors: self.sectors,
            tag,
            ..Packet::blank()
        });
        match self.action {
            Action::Load => {}
            Action::Store(mask, first) => {
                packet.kind = PacketKind::Store;
                packet.byte_mask = mask.byte_mask(self.sectors);
                packet.bytes = std::array::from_fn(|at| first.wrapping_add(at as u8));
            }
            Action::Atomic(atomic) | Action::Reduction(atomic) => {
                packet.kind = match self.action {
                    Action::Atomic(_) => PacketKind::Atomic,
                    _ => PacketKind::Reduction,
                };
                // All words of an atomic are in its lowest sector.
                packet.sectors = 1 << self.sectors.trailing_zeros();
                packet.atomic = Some(Box::new(atomic.lanes(packet.sectors)));
            }
        }
        packet
    }
}

/// Memory without time: it performs packets at once, in the order in which it gets them.
#[derive(Clone, Default)]
pub struct PlainMemory(BTreeMap<u64, [u8; LINE]>);

impl PlainMemory {
    /// The bytes of the line at an address.
    pub fn line(&mut self, address: u64) -> &mut [u8; LINE] {
        self.0.entry(address).or_insert([0; LINE])
    }

    /// The lines that a packet has touched.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8; LINE])> {
        self.0.iter().map(|(address, bytes)| (*address, bytes))
    }

    /// Checks that a storage has the same bytes.
    pub fn assert_in(&self, storage: &Storage) {
        for (line, bytes) in self.lines() {
            let mut found = [0; LINE];
            storage.read(line, &mut found);
            assert_eq!(&found, bytes, "line {line:#x} at the end");
        }
    }

    /// Clears the lines in a storage. It is outside its component, so a reset does not clear it.
    pub fn clear_in(&self, storage: &Storage) {
        self.lines().for_each(|(line, _)| storage.write(line, &[0; LINE]));
    }

    /// Performs a packet. It becomes its own response: bytes of a load, old values of an atomic.
    pub fn perform(&mut self, packet: &mut Packet) {
        match packet.kind {
            PacketKind::Load => packet.bytes = *self.line(packet.line),
            PacketKind::Store => {
                let line = self.line(packet.line);
                let written = (0..LINE).filter(|at| packet.byte_mask >> at & 1 == 1);
                written.for_each(|at| line[at] = packet.bytes[at]);
            }
            PacketKind::Atomic | PacketKind::Reduction => {
                let line = self.line(packet.line);
                let atomics = packet.atomic.as_mut().expect("an atomic has lanes");
                let (op, size) = (atomics.op, usize::from(atomics.ty.bytes()));
                for lane in &mut atomics.lanes[..atomics.n] {
                    let word = &mut line[lane.offset.into()..][..size];
                    lane.value = change_word(op, word, lane.value, lane.compare);
                }
            }
            // Memory has no copies to drop, and an invalidation names no line.
            PacketKind::Invalidate { .. } => {}
        }
    }
}

/// Changes a word as an atomic does. Returns the old value.
pub(crate) fn change_word(op: AtomOp, word: &mut [u8], operand: u128, compare: u128) -> u128 {
    let bits = 8 * word.len() as u32;
    let fit = |value: u128| value & (u128::MAX >> (128 - bits));
    let old = word.iter().rev().fold(0, |value, byte| value << 8 | u128::from(*byte));
    let (operand, compare) = (fit(operand), fit(compare));
    let new = match op {
        AtomOp::Add => fit(old.wrapping_add(operand)),
        AtomOp::Exch => operand,
        AtomOp::Cas if old == compare => operand,
        AtomOp::Cas => old,
        AtomOp::Max => old.max(operand),
        AtomOp::Xor => old ^ operand,
        other => unreachable!("{other:?} is not drawn"),
    };
    word.copy_from_slice(&new.to_le_bytes()[..word.len()]);
    old
}

/// The responses that a component owes: what each tag must bring.
#[derive(Clone, Default)]
pub struct Owed {
    /// The response to each tag.
    by_tag: Vec<Option<Box<Packet>>>,
    n: usize,
}

impl Owed {
    /// Performs a request on the memory, and remembers its response under its tag.
    pub fn request(&mut self, memory: &mut PlainMemory, packet: &Packet) {
        let mut response = Box::new(packet.clone());
        memory.perform(&mut response);
        let tag = packet.tag as usize;
        self.by_tag.resize(self.by_tag.len().max(tag + 1), None);
        // A fault of the world would look like one of the component.
        assert!(self.by_tag[tag].is_none(), "the world uses tag {tag} twice");
        self.by_tag[tag] = Some(response);
        self.n += 1;
    }

    /// Checks a response: owed once, with the right bytes or old values.
    ///
    /// # Panics
    /// If it is not owed, or differs.
    pub fn response(&mut self, found: &Packet) {
        let owed = self.by_tag.get_mut(found.tag as usize).and_then(Option::take);
        let owed = owed.unwrap_or_else(|| panic!("a response that is not owed: {found:?}"));
        self.n -= 1;
        // Taken out above, so a second response to a tag is not owed.
        let same = (owed.kind, owed.line, owed.sectors) == (found.kind, found.line, found.sectors);
        assert!(same, "another response: {found:?}, owed {owed:?}");
        match owed.kind {
            PacketKind::Load => {
                // Bytes of other sectors have no meaning in a response.
                for sector in (0..SECTORS).filter(|n| owed.sectors >> n & 1 == 1) {
                    let bytes = sector * SECTOR..(sector + 1) * SECTOR;
                    assert_eq!(
                        found.bytes[bytes.clone()],
                        owed.bytes[bytes],
                        "sector {sector} of load {} of {:#x}",
                        found.tag,
                        found.line
                    );
                }
            }
            PacketKind::Atomic => {
                let values = |packet: &Packet| {
                    let atomics = packet.atomic.as_ref().expect("an atomic keeps its lanes");
                    atomics.lanes[..atomics.n].to_vec()
                };
                assert_eq!(values(found), values(&owed), "old values of atomic {}", found.tag);
            }
            _ => {}
        }
    }

    /// True if every response has come.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }
}
