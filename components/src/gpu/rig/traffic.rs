//! A machine's shape and its traffic, read from bytes; what must come of it, from a flat array of bytes.

use warpwave_isa::exec::atomic::atomic;
use warpwave_isa::inst::{AtomOp, CacheOp, Ty};

use super::driver::{Answer, Script};
use crate::config::GpuConfig;
use crate::preset;
use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR, byte_mask};
use crate::storage::BASE;

/// Address of line 0.
pub(super) const FIRST_LINE: u64 = BASE;

/// Lines that traffic touches; the first of them holds the counters, the next few nobody writes.
const LINES: usize = 96;
const COUNTERS: usize = 0;
const READ_ONLY: std::ops::Range<usize> = 1..16;

/// Bytes with one owner.
const UNIT: usize = 8;

/// Most requests of one case.
const MOST_REQUESTS: usize = 4000;

/// What an answer must hold.
#[derive(Clone, Debug)]
enum Expected {
    /// These bytes, as far as the mask goes.
    Bytes(u128, [u8; LINE]),
    /// These old values, lane by lane.
    Old(Vec<u64>),
    /// Nothing in particular.
    Acknowledged,
}

/// One case.
pub(super) struct Traffic {
    pub(super) config: GpuConfig,
    pub(super) l1_bytes: u32,
    pub(super) l1_waiting: u32,
    /// The lines' bytes at first and at last.
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
    scripts: Vec<Script>,
    expected: Vec<Vec<Expected>>,
}

/// Bytes to read from; after their end come zeros.
struct Source<'a> {
    bytes: &'a [u8],
    noise: u64,
}

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        self.noise = (self.noise ^ u64::from(first)).wrapping_mul(0x5851_f42d_4c95_7f2d) | 1;
        first
    }

    /// One of `options`.
    fn of<T: Copy>(&mut self, options: &[T]) -> T {
        options[usize::from(self.byte()) % options.len()]
    }

    /// Bits that follow from the bytes read so far (a step of splitmix64).
    fn bits(&mut self) -> u64 {
        self.noise = self.noise.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mix = (self.noise ^ self.noise >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mix ^ mix >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}

impl Traffic {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut source = Source { bytes, noise: 1 };
        let config = shape(&mut source);
        let n_sms = config.n_sms() as usize;
        let before: Vec<u8> = (0..LINES * LINE).map(|_| source.bits() as u8).collect();
        let mut traffic = Traffic {
            l1_bytes: source.of(&[512, 1024, 2048, 8192]),
            l1_waiting: source.of(&[1, 4, 32]),
            after: before.clone(),
            before,
            scripts: vec![Script::default(); n_sms],
            expected: vec![Vec::new(); n_sms],
            config,
        };
        for script in &mut traffic.scripts {
            script.most_in_flight = source.of(&[64, 1, 8]);
            script.pause = source.of(&[0, 2, 3, 7]);
        }
        let most = MOST_REQUESTS.min(source.bytes.len());
        let lines = source.of(&[LINES, READ_ONLY.end + 2, READ_ONLY.end + 16]);
        for n in 0..most {
            if source.bytes.is_empty() {
                break;
            }
            traffic.add(n % n_sms, lines, &mut source);
        }
        traffic
    }

    /// One SM's requests on a given machine, one at a time and far apart; nothing is expected of the bytes.
    #[cfg(test)]
    pub(super) fn one_by_one(config: GpuConfig, requests: Vec<Packet>) -> Self {
        let mut traffic = Traffic {
            l1_bytes: config.sm.l1.size,
            l1_waiting: 1,
            before: Vec::new(),
            after: Vec::new(),
            scripts: vec![Script::default(); config.n_sms() as usize],
            expected: vec![Vec::new(); config.n_sms() as usize],
            config,
        };
        traffic.expected[0] = vec![Expected::Acknowledged; requests.len()];
        traffic.scripts[0] = Script {
            requests: requests.into_iter().map(|packet| (1000, packet)).collect(),
            most_in_flight: 1,
            pause: 0,
        };
        traffic
    }

    pub(super) fn script(&self, sm: usize) -> Script {
        self.scripts[sm].clone()
    }

    /// Adds one request of an SM.
    fn add(&mut self, sm: usize, lines: usize, source: &mut Source<'_>) {
        let line = usize::from(source.byte()) % lines;
        let mut packet = Packet {
            line: FIRST_LINE + (line * LINE) as u64,
            cache: source.of(&[
                CacheOp::All,
                CacheOp::All,
                CacheOp::All,
                CacheOp::Streaming,
                CacheOp::ReadOnly,
                CacheOp::Global,
                CacheOp::Volatile,
            ]),
            ..Packet::blank()
        };
        let what = source.byte();
        let expected = match what % 16 {
            _ if line == COUNTERS => self.count(&mut packet, source),
            0..8 => self.load(&mut packet, sm, source),
            _ if READ_ONLY.contains(&line) => self.load(&mut packet, sm, source),
            8..13 => self.store(&mut packet, sm, source),
            13..15 => self.atomic(&mut packet, sm, source),
            _ => {
                packet.kind = PacketKind::Invalidate { bytes: 16 << 10 };
                Expected::Acknowledged
            }
        };
        let gap = u64::from(what / 16).saturating_sub(12) * 20;
        self.scripts[sm].requests.push((gap, packet));
        self.expected[sm].push(expected);
    }

    fn load(&self, packet: &mut Packet, sm: usize, source: &mut Source<'_>) -> Expected {
        packet.sectors = source.bits() as u8 % 15 + 1;
        let known = self.known(packet.line, sm) & byte_mask(packet.sectors);
        Expected::Bytes(known, *self.line(packet.line))
    }

    fn store(&mut self, packet: &mut Packet, sm: usize, source: &mut Source<'_>) -> Expected {
        let some = u128::from(source.bits()) << 64 | u128::from(source.bits());
        let sectors = byte_mask(source.bits() as u8 % 15 + 1);
        let dense = if source.bits().is_multiple_of(4) {
            some
        } else {
            u128::MAX
        };
        packet.byte_mask = self.owned(packet.line, sm) & sectors & dense;
        if packet.byte_mask == 0 {
            packet.byte_mask = 1 << self.owned(packet.line, sm).trailing_zeros();
        }
        packet.kind = PacketKind::Store;
        packet.sectors = touched(packet.byte_mask);
        packet.bytes.fill_with(|| source.bits() as u8);
        let (mask, bytes) = (packet.byte_mask, packet.bytes);
        let line = self.line_mut(packet.line);
        (0..LINE)
            .filter(|n| mask >> n & 1 == 1)
            .for_each(|n| line[n] = bytes[n]);
        Expected::Acknowledged
    }

    /// An atomic on words of the SM's own.
    fn atomic(&mut self, packet: &mut Packet, sm: usize, source: &mut Source<'_>) -> Expected {
        use AtomOp::*;
        let mut atomics = AtomicLanes {
            op: source.of(&[Add, Min, Max, Inc, Dec, And, Or, Xor, Exch, Cas]),
            ty: [Ty::U32, Ty::S32, Ty::U64][source.below(3)],
            n: source.below(32) + 1,
            ..AtomicLanes::default()
        };
        let n = atomics.n;
        if matches!(atomics.op, Inc | Dec) {
            atomics.ty = Ty::U32;
        }
        let size = usize::from(atomics.ty.bytes());
        let owned = self.owned(packet.line, sm);
        let words: Vec<usize> = (0..LINE).step_by(size).filter(|n| owned >> n & 1 == 1).collect();
        for lane in &mut atomics.lanes[..n] {
            *lane = AtomicLane {
                lane: 0,
                offset: words[source.below(words.len())] as u8,
                value: source.bits() % 1000,
                compare: source.bits() % 3,
            };
        }
        let old = self.perform(packet, atomics);
        packet.kind = if source.bits().is_multiple_of(2) {
            PacketKind::Atomic
        } else {
            PacketKind::Reduction
        };
        match packet.kind {
            PacketKind::Atomic => Expected::Old(old),
            _ => Expected::Acknowledged,
        }
    }

    /// An addition to the counters.
    fn count(&mut self, packet: &mut Packet, source: &mut Source<'_>) -> Expected {
        let mut atomics = AtomicLanes {
            n: source.below(4) + 1,
            ..AtomicLanes::default()
        };
        let n = atomics.n;
        for lane in &mut atomics.lanes[..n] {
            lane.offset = 4 * source.below(LINE / 4) as u8;
            lane.value = source.bits() % 1000;
        }
        packet.kind = PacketKind::Reduction;
        self.perform(packet, atomics);
        Expected::Acknowledged
    }

    /// Does an atomic on the flat array; gives the old values.
    fn perform(&mut self, packet: &mut Packet, atomics: AtomicLanes) -> Vec<u64> {
        let size = usize::from(atomics.ty.bytes());
        let mut mask = 0;
        let mut old_values = Vec::new();
        for lane in &atomics.lanes[..atomics.n] {
            let first = usize::from(lane.offset);
            let word = &mut self.line_mut(packet.line)[first..first + size];
            let mut old = [0; 8];
            old[..size].copy_from_slice(word);
            let old = u64::from_le_bytes(old);
            let new = atomic(atomics.op, atomics.ty, old, lane.value, lane.compare);
            word.copy_from_slice(&new.to_le_bytes()[..size]);
            old_values.push(old);
            mask |= 1 << first;
        }
        packet.sectors = touched(mask);
        packet.atomic = Some(Box::new(atomics));
        old_values
    }

    /// Bytes of a line that the SM writes.
    fn owned(&self, address: u64, sm: usize) -> u128 {
        let line = ((address - FIRST_LINE) / LINE as u64) as usize;
        let n_sms = self.scripts.len();
        (0..LINE)
            .filter(|n| (n / UNIT + line) % n_sms == sm)
            .fold(0, |mask, n| mask | 1 << n)
    }

    /// Bytes of a line that the SM knows.
    fn known(&self, address: u64, sm: usize) -> u128 {
        let line = ((address - FIRST_LINE) / LINE as u64) as usize;
        if READ_ONLY.contains(&line) {
            u128::MAX
        } else {
            self.owned(address, sm)
        }
    }

    fn line(&self, address: u64) -> &[u8; LINE] {
        &self.after.as_chunks().0[((address - FIRST_LINE) / LINE as u64) as usize]
    }

    fn line_mut(&mut self, address: u64) -> &mut [u8; LINE] {
        &mut self.after.as_chunks_mut().0[((address - FIRST_LINE) / LINE as u64) as usize]
    }

    /// Holds the answers of an SM against what they must be.
    pub(super) fn check(&self, sm: usize, answers: &[Answer]) -> Result<(), String> {
        let expected = &self.expected[sm];
        let mut answered = vec![false; expected.len()];
        for Answer { op, at, packet } in answers {
            let request = format!("SM {sm} request {op} ({:?}), answered in cycle {at}", packet.kind);
            if std::mem::replace(&mut answered[*op as usize], true) {
                return Err(format!("{request}: the second answer"));
            }
            expected[*op as usize]
                .check(packet)
                .map_err(|what| format!("{request}, line {:#x}: {what}", packet.line))?;
        }
        match answered.iter().position(|answered| !answered) {
            Some(op) => Err(format!("SM {sm} request {op} was not answered")),
            None => Ok(()),
        }
    }
}

impl Expected {
    fn check(&self, packet: &Packet) -> Result<(), String> {
        match self {
            Expected::Acknowledged => Ok(()),
            Expected::Bytes(mask, bytes) => {
                match (0..LINE).find(|&n| mask >> n & 1 == 1 && packet.bytes[n] != bytes[n]) {
                    Some(n) => Err(format!("byte {n} is {:#x}, not {:#x}", packet.bytes[n], bytes[n])),
                    None => Ok(()),
                }
            }
            Expected::Old(values) => {
                let lanes = packet
                    .atomic
                    .as_ref()
                    .map_or(&[][..], |atomics| &atomics.lanes[..atomics.n]);
                let old: Vec<u64> = lanes.iter().map(|lane| lane.value).collect();
                if old == *values {
                    Ok(())
                } else {
                    Err(format!("old values {old:?}, not {values:?}"))
                }
            }
        }
    }
}

/// Sectors in which a mask of bytes has any.
fn touched(mask: u128) -> u8 {
    (0..LINE / SECTOR)
        .filter(|n| (mask >> (n * SECTOR)) as u32 != 0)
        .fold(0, |sectors, n| sectors | 1 << n)
}

/// A small machine: every count and rate is one of a few.
fn shape(source: &mut Source<'_>) -> GpuConfig {
    let mut config = preset::load("tiny", &[]).expect("the built-in preset is sound").config;
    config.topology.tpcs_per_gpc = vec![source.of(&[1, 2, 3])];
    config.topology.sms_per_tpc = 1;
    config.clocks.l2_khz = source.of(&[1_000_000, 700_000, 1_300_000]);
    config.clocks.memory_khz = source.of(&[1_000_000, 600_000, 1_900_000]);
    let l1 = &mut config.sm.l1;
    l1.associativity = source.of(&[2, 1, 8]);
    l1.mshr_entries = source.of(&[32, 4, 5]);
    l1.mshr_merges = source.of(&[8, 1, 2]);
    l1.store_queue = source.of(&[32, 1, 4]);
    l1.data_bytes_per_cycle = source.of(&[128, 32]);
    config.xbar.latency = source.of(&[20, 2, 75]);
    config.xbar.queue_depth = source.of(&[16, 1]);
    config.xbar.request_bytes_per_cycle = source.of(&[32, 8]);
    let l2 = &mut config.l2;
    l2.slices = source.of(&[2, 1, 3, 4, 6]);
    l2.associativity = source.of(&[2, 1, 4]);
    l2.size = l2.slices * l2.associativity * LINE as u32 * source.of(&[4, 1, 3]);
    l2.partitions = if l2.slices.is_multiple_of(2) {
        source.of(&[1, 2])
    } else {
        1
    };
    l2.far_latency = source.of(&[0, 30]) * (l2.partitions - 1);
    l2.mshr_entries = source.of(&[32, 4, 6]);
    l2.queue_depth = source.of(&[16, 1]);
    l2.bytes_per_cycle = source.of(&[64, 32]);
    let hbm = &mut config.hbm;
    hbm.channels = source.of(&[2, 1, 3, 4]);
    hbm.banks = source.of(&[16, 4]);
    hbm.burst_bytes = source.of(&[32, 64]);
    hbm.queue_depth = source.of(&[32, 1, 3]);
    hbm.timing.t_ccd_s = hbm.burst_bytes / hbm.bus_bytes_per_command_cycle;
    hbm.timing.t_refi = source.of(&[3900, 500]);
    config
}
