//! The packets of the drivers, and their expected responses, computed on a flat array of bytes.

use warpwave_components::config::GpuConfig;
use warpwave_components::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind, SECTOR, byte_mask};
use warpwave_components::storage::BASE;
use warpwave_isa::exec::atomic::{AtomicUnit, atomic};
use warpwave_isa::inst::{AtomOp, Ty};

use super::driver::{Response, Script};
use super::{Kind, MemoryTraffic, Request};

/// Address of line 0.
pub(super) const FIRST_LINE: u64 = BASE;

/// Number of lines in use. Line 0 has the counters. The lines of [`READ_ONLY`] are never written.
pub(super) const LINES: usize = 96;
const COUNTERS: usize = 0;
pub(super) const READ_ONLY: std::ops::Range<usize> = 1..16;

/// Bytes of a unit. Only one SM writes it.
const UNIT: usize = 8;

/// Expected contents of a response.
#[derive(Clone, Debug)]
enum Expected {
    /// These bytes, under the mask.
    Bytes(u128, [u8; LINE]),
    /// These old values, by lane.
    Old(Vec<u128>),
    /// No data: an acknowledgement.
    Acknowledged,
}

/// The traffic of one input.
pub(super) struct Traffic {
    pub(super) config: GpuConfig,
    pub(super) l1_bytes: u32,
    pub(super) l1_waiting: u32,
    /// The bytes of all lines before the run and after it.
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
    /// The script of each SM.
    pub(super) scripts: Vec<Script>,
    expected: Vec<Vec<Expected>>,
}

/// Pseudo-random bits (SplitMix64).
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mix = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mix ^ mix >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// One of `options`.
    fn of<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }
}

impl Traffic {
    pub(super) fn new(input: &MemoryTraffic) -> Self {
        let mut bits = Bits(input.seed);
        let config = input.shape.config();
        let n_sms = config.n_sms() as usize;
        let before: Vec<u8> = (0..LINES * LINE).map(|_| bits.next() as u8).collect();
        let script = |driver: &super::DriverShape| Script {
            requests: Vec::new(),
            most_in_flight: driver.most_in_flight,
            pause: driver.pause,
        };
        let mut traffic = Traffic {
            l1_bytes: input.shape.l1.bytes,
            l1_waiting: input.shape.l1.waiting,
            after: before.clone(),
            before,
            scripts: input.drivers[..n_sms].iter().map(script).collect(),
            expected: vec![Vec::new(); n_sms],
            config,
        };
        for (n, request) in input.requests.iter().enumerate() {
            traffic.add(n % n_sms, input.lines, request, &mut bits);
        }
        traffic
    }

    /// Requests of one SM on a given machine, one at a time and far apart. Their bytes are not checked.
    #[cfg(test)]
    pub(super) fn one_by_one(config: GpuConfig, requests: Vec<Packet>) -> Self {
        let n_sms = config.n_sms() as usize;
        let mut traffic = Traffic {
            l1_bytes: config.sm.l1.size,
            l1_waiting: 1,
            before: Vec::new(),
            after: Vec::new(),
            scripts: vec![Script::default(); n_sms],
            expected: vec![Vec::new(); n_sms],
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

    /// Appends a request to an SM's script.
    fn add(&mut self, sm: usize, lines: usize, request: &Request, bits: &mut Bits) {
        let line = usize::from(request.line) % lines;
        let mut packet = Packet {
            line: FIRST_LINE + (line * LINE) as u64,
            cache: request.cache,
            ..Packet::blank()
        };
        let expected = match request.kind {
            _ if line == COUNTERS => self.count(&mut packet, bits),
            _ if READ_ONLY.contains(&line) => self.load(&mut packet, sm, bits),
            Kind::Load => self.load(&mut packet, sm, bits),
            Kind::Store => self.store(&mut packet, sm, bits),
            Kind::Atomic => self.atomic(&mut packet, sm, bits),
            // Drops the lines of this L1. Loads behind it must find the same bytes in the L2.
            Kind::Invalidate => {
                packet.kind = PacketKind::Invalidate { bytes: 16 << 10 };
                Expected::Acknowledged
            }
        };
        self.scripts[sm].requests.push((request.gap, packet));
        self.expected[sm].push(expected);
    }

    fn load(&self, packet: &mut Packet, sm: usize, bits: &mut Bits) -> Expected {
        // At least one sector.
        packet.sectors = bits.next() as u8 % 15 + 1;
        let known = self.known(packet.line, sm) & byte_mask(packet.sectors);
        Expected::Bytes(known, *self.line(packet.line))
    }

    fn store(&mut self, packet: &mut Packet, sm: usize, bits: &mut Bits) -> Expected {
        let some = u128::from(bits.next()) << 64 | u128::from(bits.next());
        let sectors = byte_mask(bits.next() as u8 % 15 + 1);
        // One store in four has scattered bytes, which sector masks must keep apart.
        let dense = if bits.next().is_multiple_of(4) { some } else { u128::MAX };
        packet.byte_mask = self.owned(packet.line, sm) & sectors & dense;
        // A store needs at least one byte.
        if packet.byte_mask == 0 {
            packet.byte_mask = 1 << self.owned(packet.line, sm).trailing_zeros();
        }
        packet.kind = PacketKind::Store;
        packet.sectors = touched(packet.byte_mask);
        packet.bytes.fill_with(|| bits.next() as u8);
        let (mask, bytes) = (packet.byte_mask, packet.bytes);
        let line = self.line_mut(packet.line);
        set(mask).for_each(|n| line[n] = bytes[n]);
        Expected::Acknowledged
    }

    /// An atomic on words that only this SM writes.
    fn atomic(&mut self, packet: &mut Packet, sm: usize, bits: &mut Bits) -> Expected {
        use AtomOp::*;
        let mut atomics = AtomicLanes {
            op: bits.of(&[Add, Min, Max, Inc, Dec, And, Or, Xor, Exch, Cas]),
            ty: [Ty::U32, Ty::S32, Ty::U64][bits.below(3)],
            n: bits.below(32) + 1,
            ..AtomicLanes::default()
        };
        let n = atomics.n;
        // PTX has these operations for u32 only.
        if matches!(atomics.op, Inc | Dec) {
            atomics.ty = Ty::U32;
        }
        let size = usize::from(atomics.ty.bytes());
        let owned = self.owned(packet.line, sm);
        let words: Vec<usize> = (0..LINE).step_by(size).filter(|n| owned >> n & 1 == 1).collect();
        for lane in &mut atomics.lanes[..n] {
            *lane = AtomicLane {
                lane: 0,
                // Several lanes may share a word, as in a kernel.
                offset: words[bits.below(words.len())] as u8,
                value: (bits.next() % 1000).into(),
                // Small values, so that a compare-and-swap sometimes succeeds.
                compare: (bits.next() % 3).into(),
            };
        }
        // Both kinds update the array: a reduction only drops the old values.
        let old = self.perform(packet, atomics);
        packet.kind = if bits.next().is_multiple_of(2) {
            PacketKind::Atomic
        } else {
            PacketKind::Reduction
        };
        match packet.kind {
            PacketKind::Atomic => Expected::Old(old),
            _ => Expected::Acknowledged,
        }
    }

    /// An atomic addition to the counters.
    fn count(&mut self, packet: &mut Packet, bits: &mut Bits) -> Expected {
        let mut atomics = AtomicLanes {
            n: bits.below(4) + 1,
            ..AtomicLanes::default()
        };
        let n = atomics.n;
        for lane in &mut atomics.lanes[..n] {
            lane.offset = 4 * bits.below(LINE / 4) as u8;
            lane.value = (bits.next() % 1000).into();
        }
        // Old values depend on the order of SMs, so only the final sums are checked.
        packet.kind = PacketKind::Reduction;
        self.perform(packet, atomics);
        Expected::Acknowledged
    }

    /// Performs an atomic on the flat array. Returns the old values.
    fn perform(&mut self, packet: &mut Packet, atomics: AtomicLanes) -> Vec<u128> {
        let size = usize::from(atomics.ty.bytes());
        let mut mask = 0;
        let mut old_values = Vec::new();
        for lane in &atomics.lanes[..atomics.n] {
            let first = usize::from(lane.offset);
            let word = &mut self.line_mut(packet.line)[first..first + size];
            let mut old = [0; 16];
            old[..size].copy_from_slice(word);
            let old = u128::from_le_bytes(old);
            // Lane after lane: several lanes may update one word.
            let new = atomic(AtomicUnit::L2, atomics.op, atomics.ty, old, lane.value, lane.compare);
            word.copy_from_slice(&new.to_le_bytes()[..size]);
            old_values.push(old);
            mask |= 1 << first;
        }
        packet.sectors = touched(mask);
        packet.atomic = Some(Box::new(atomics));
        old_values
    }

    /// Mask of the bytes in a line that this SM writes.
    fn owned(&self, address: u64, sm: usize) -> u128 {
        let line = ((address - FIRST_LINE) / LINE as u64) as usize;
        let n_sms = self.scripts.len();
        (0..LINE)
            // Owners alternate from unit to unit, so SMs share sectors but no byte.
            .filter(|n| (n / UNIT + line) % n_sms == sm)
            .fold(0, |mask, n| mask | 1 << n)
    }

    /// Mask of the bytes in a line with a value known to this SM: its own and the read-only ones.
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

    /// Compares the responses of an SM with the expected ones.
    pub(super) fn check(&self, sm: usize, responses: &[Response]) -> Result<(), String> {
        let expected = &self.expected[sm];
        let mut answered = vec![false; expected.len()];
        for Response { op, at, packet } in responses {
            let request = format!("SM {sm} request {op} ({:?}), response in cycle {at}", packet.kind);
            if std::mem::replace(&mut answered[*op as usize], true) {
                return Err(format!("{request}: this request already had a response"));
            }
            // Responses come in any order, so each names its request.
            expected[*op as usize]
                .check(packet)
                .map_err(|what| format!("{request}, line {:#x}: {what}", packet.line))?;
        }
        match answered.iter().position(|answered| !answered) {
            Some(op) => Err(format!("SM {sm} request {op} has no response")),
            None => Ok(()),
        }
    }
}

impl Expected {
    fn check(&self, packet: &Packet) -> Result<(), String> {
        match self {
            Expected::Acknowledged => Ok(()),
            Expected::Bytes(mask, bytes) => match set(*mask).find(|&n| packet.bytes[n] != bytes[n]) {
                Some(n) => Err(format!("byte {n} is {:#x}, not {:#x}", packet.bytes[n], bytes[n])),
                None => Ok(()),
            },
            Expected::Old(values) => {
                let lanes = packet
                    .atomic
                    .as_ref()
                    .map_or(&[][..], |atomics| &atomics.lanes[..atomics.n]);
                let old: Vec<u128> = lanes.iter().map(|lane| lane.value).collect();
                if old == *values {
                    Ok(())
                } else {
                    Err(format!("old values {old:?}, not {values:?}"))
                }
            }
        }
    }
}

/// The indices of the set bits.
fn set(mask: u128) -> impl Iterator<Item = usize> {
    (0..LINE).filter(move |n| mask >> n & 1 == 1)
}

/// Mask of the sectors with at least one byte in `mask`.
fn touched(mask: u128) -> u8 {
    (0..LINE / SECTOR)
        .filter(|n| (mask >> (n * SECTOR)) as u32 != 0)
        .fold(0, |sectors, n| sectors | 1 << n)
}
