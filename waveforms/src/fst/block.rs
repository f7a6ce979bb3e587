//! Value-change blocks of an FST file: the values of all signals before a range of times, and their changes in it.
//!
//! A change is one record at the end of a list. It takes no search, no text and no allocation. When the block is written, two passes over
//! the lists make a chain of changes for each signal. The first pass finds its length, and the second one fills it.
//!
//! | Bytes | Part of the block |
//! |---|---|
//! | 1 | its type, [`VALUE_CHANGES`] |
//! | 8 | its length without the type |
//! | 8, 8 | its first and last time |
//! | 8 | the length of all chains, uncompressed |
//! | n, n, n | the lengths of the frame, uncompressed and as written, and its number of signals |
//! | | the frame: the value of each signal before the block, a digit per bit, or the 8 bytes of a real number; compressed with zlib if shorter |
//! | n, 1 | the number of signals, and the compression of the chains, [`LZ4`] |
//! | | the chains, each after its uncompressed length (n); 0 if it is not compressed |
//! | | the index: where the chain of each signal begins, which signal has the same chain, or that it has none |
//! | 8 | the length of the index |
//! | | the times (n): the first one, then the differences |
//! | 8, 8, 8 | the lengths of the times, uncompressed and as written, and their number |
//!
//! `n` is a number of seven bits per byte (LEB128). The other numbers are big-endian.
//!
//! A change in a chain begins with a number `n`. Its high bits are the number of times since the last change of the signal:
//!
//! | Value | Low bits of `n` | Bytes after `n` |
//! |---|---|---|
//! | one bit, 0 or 1 | the bit, 0 | |
//! | one bit, `x` or `z` | three bits: 0 is `x`, 1 is `z`; then 1 | |
//! | vector | 0 | its bits, the highest one first, padded with zeros to whole bytes |
//! | vector of `x` or `z` | 1 | a digit per bit |
//! | real number | 1 | 8, little-endian |
//!
//! Sources: `block_format.txt` in the sources of GTKWave, and the specification at <https://blog.timhutt.co.uk/fst_spec/>.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use wavefst::block::{ChainIndexEntry, encode_chain_index_dyn_alias2};
use wavefst::encoding::encode_varint;

use crate::signal::Kind;

/// The type of a block of value changes whose index may name equal chains.
const VALUE_CHANGES: u8 = 8;

/// The mark of chains that are compressed with LZ4.
const LZ4: u8 = b'4';

/// Most bytes of a chain or frame that is not compressed: it has hardly a repetition.
const SHORT: usize = 32;

/// The signals of a list of changes. Their rows, and the ends of their chains, fit in a cache of the host.
const LIST_ROWS: u32 = 4096;

/// Room for a change without the digits of a missing value: a number of at most 6 bytes, and 8 bytes of value. A copy of this size is faster
/// than one of the size of the change, so each chain is followed by as many bytes.
const CHANGE: usize = 16;

/// Marks a missing value in [`Record::time`].
const MISSING: u32 = 1 << 31;

/// The changes since the last block was written.
pub struct Block {
    rows: Vec<Row>,
    /// The row of each signal of the file, in the order of its handles.
    order: Vec<u32>,
    /// The changes, in a list for each [`LIST_ROWS`] rows, by time.
    records: Vec<Vec<Record>>,
    n_changes: usize,
    times: Times,
    /// Memory for the chains, the frame and the whole block.
    chains: Vec<u8>,
    frame: Vec<u8>,
    bytes: Vec<u8>,
    compressor: Compressor,
}

/// A change of a signal.
#[derive(Clone, Copy)]
struct Record {
    row: u32,
    /// The index of its time in the block, and [`MISSING`].
    time: u32,
    value: u64,
}

impl Record {
    #[inline]
    fn new(row: u32, time: u32, value: Option<u64>) -> Record {
        Record {
            row,
            time: if value.is_some() { time } else { time | MISSING },
            value: value.unwrap_or_default(),
        }
    }

    #[inline]
    fn value(self) -> Option<u64> {
        (self.time & MISSING == 0).then_some(self.value)
    }
}

impl Block {
    /// Creates an empty block for signals of these kinds. `order` has their indices in the order of the file's handles.
    pub fn new(kinds: impl Iterator<Item = Kind>, order: Vec<u32>) -> Block {
        let rows: Vec<Row> = kinds.map(Row::new).collect();
        Block {
            records: vec![Vec::new(); rows.len().div_ceil(LIST_ROWS as usize)],
            n_changes: 0,
            rows,
            order,
            times: Times::default(),
            chains: Vec::new(),
            frame: Vec::new(),
            bytes: Vec::new(),
            compressor: Compressor::default(),
        }
    }

    /// The number of changes.
    pub fn n_changes(&self) -> usize {
        self.n_changes
    }

    /// Sets the time of the next changes.
    pub fn set_time(&mut self, time: u64) {
        self.times.push(time);
    }

    /// Adds a change of the signal with index `row`.
    #[inline]
    pub fn push(&mut self, row: u32, value: Option<u64>) {
        let record = Record::new(row, self.times.index(), value);
        self.records[(row / LIST_ROWS) as usize].push(record);
        self.n_changes += 1;
    }

    /// Returns the bytes of the block, and begins the next one.
    pub fn take(&mut self) -> &[u8] {
        // Before the chains, which move the values to those at the end of the block.
        let frame = self.make_frame();
        let raw = self.make_chains();
        self.bytes.clear();
        self.bytes.push(VALUE_CHANGES);
        for n in [0, self.times.first, self.times.last, raw] {
            self.bytes.extend(n.to_be_bytes());
        }
        let signals = self.order.len() as u64;
        for n in [frame, self.frame.len() as u64, signals] {
            encode_varint(n, &mut self.bytes);
        }
        self.bytes.extend_from_slice(&self.frame);
        encode_varint(signals, &mut self.bytes);
        self.bytes.push(LZ4);
        self.write_chains();
        self.times.write(&mut self.bytes);
        let length = self.bytes.len() as u64 - 1;
        self.bytes[1..9].copy_from_slice(&length.to_be_bytes());
        self.records.iter_mut().for_each(Vec::clear);
        self.n_changes = 0;
        &self.bytes
    }

    /// Makes the frame. Returns its length before the compression.
    fn make_frame(&mut self) -> u64 {
        self.frame.clear();
        for &row in &self.order {
            self.rows[row as usize].write_digits(&mut self.frame);
        }
        let length = self.frame.len();
        if length > SHORT {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&self.frame).expect("memory takes all bytes");
            let compressed = encoder.finish().expect("memory takes all bytes");
            // Equal lengths would say that it is not compressed.
            if compressed.len() < length {
                self.frame = compressed;
            }
        }
        length as u64
    }

    /// Makes the chains. Returns their length.
    fn make_chains(&mut self) -> u64 {
        for record in self.records.iter().flatten() {
            let row = &mut self.rows[record.row as usize];
            row.end += row.encode(*record).total();
        }
        let (mut raw, mut start) = (0, 0);
        for &row in &self.order {
            let row = &mut self.rows[row as usize];
            let length = row.end;
            (row.start, row.end, row.last) = (start, start, 0);
            if length > 0 {
                raw += u64::from(length);
                start += length + CHANGE as u32;
            }
        }
        if self.chains.len() < start as usize {
            self.chains.resize(start as usize, 0);
        }
        for record in self.records.iter().flatten() {
            let row = &mut self.rows[record.row as usize];
            let change = row.encode(*record);
            let chain = &mut self.chains[row.end as usize..];
            chain[..CHANGE].copy_from_slice(&change.bytes.to_le_bytes());
            if change.digits > 0 {
                chain[change.length as usize..][..change.digits as usize].fill(row.missing);
            }
            row.end += change.total();
            row.value = record.value();
        }
        raw
    }

    /// Writes the chains and their index.
    fn write_chains(&mut self) {
        let base = self.bytes.len();
        let mut index = Vec::with_capacity(self.order.len());
        // The first signal with a chain: signals of units that do the same have equal ones.
        let mut owners: HashMap<&[u8], u32> = HashMap::with_capacity(self.order.len());
        for (handle, &row) in (1..).zip(&self.order) {
            let row = &mut self.rows[row as usize];
            let chain = &self.chains[row.start as usize..row.end as usize];
            // For the next block.
            (row.end, row.last) = (0, 0);
            if chain.is_empty() {
                index.push(ChainIndexEntry::Empty);
                continue;
            }
            index.push(match owners.entry(chain) {
                Entry::Occupied(owner) => ChainIndexEntry::Alias { target: *owner.get() },
                Entry::Vacant(vacant) => {
                    vacant.insert(handle);
                    let offset = (self.bytes.len() - base) as u64;
                    self.compressor.write(chain, &mut self.bytes);
                    ChainIndexEntry::Data { offset }
                }
            });
        }
        let index = encode_chain_index_dyn_alias2(&index).expect("offsets rise, and handles begin at 1");
        self.bytes.extend_from_slice(&index);
        self.bytes.extend((index.len() as u64).to_be_bytes());
    }
}

/// A signal: how its values are written, and its chain.
struct Row {
    form: Form,
    width: u8,
    /// The digit of a missing value.
    missing: u8,
    /// The index of the time of its last change in the block.
    last: u32,
    /// The chain in [`Block::chains`].
    start: u32,
    end: u32,
    /// The value at the end of the last block.
    value: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Bit,
    Vector,
    Real,
}

impl Row {
    fn new(kind: Kind) -> Row {
        let form = match (kind, kind.width()) {
            (Kind::Real, _) => Form::Real,
            (_, 1) => Form::Bit,
            _ => Form::Vector,
        };
        Row {
            form,
            width: kind.width() as u8,
            missing: kind.undefined_digit(),
            last: 0,
            start: 0,
            end: 0,
            value: None,
        }
    }

    /// Writes the value at the end of the last block.
    fn write_digits(&self, out: &mut Vec<u8>) {
        match (self.form, self.value) {
            (Form::Real, value) => out.extend(value.unwrap_or_default().to_le_bytes()),
            (_, Some(value)) => out.extend((0..self.width).rev().map(|bit| b'0' + (value >> bit & 1) as u8)),
            (_, None) => out.resize(out.len() + usize::from(self.width), self.missing),
        }
    }

    /// The bytes of a change. Records of a signal come in the order of their times.
    #[inline(always)]
    fn encode(&mut self, record: Record) -> ChainChange {
        let time = record.time & !MISSING;
        let times = u64::from(time - self.last);
        self.last = time;
        match (self.form, record.value()) {
            (Form::Bit, Some(value)) => ChainChange::new(times << 2 | (value & 1) << 1),
            (Form::Bit, None) => ChainChange::new(times << 4 | u64::from(self.missing == b'z') << 1 | 1),
            (Form::Vector, Some(value)) => {
                let bits = value << (64 - u32::from(self.width));
                // The highest bits are in the first byte.
                ChainChange::new(times << 1).with(bits.swap_bytes(), u32::from(self.width.div_ceil(8)))
            }
            (Form::Vector, None) => ChainChange {
                digits: u32::from(self.width),
                ..ChainChange::new(times << 1 | 1)
            },
            // A real number has no digit for a missing value.
            (Form::Real, value) => ChainChange::new(times << 1 | 1).with(value.unwrap_or_default(), 8),
        }
    }
}

/// A change in a chain.
struct ChainChange {
    /// Its bytes, the first one in the lowest bits. A number stays in registers of the host, and an array of bytes does not.
    bytes: u128,
    /// Bytes that are used.
    length: u32,
    /// Digits of a missing value, after the bytes.
    digits: u32,
}

impl ChainChange {
    /// Begins with the number `n`, of at most 36 bits.
    #[inline(always)]
    fn new(mut n: u64) -> ChainChange {
        let (mut bytes, mut length) = (0, 0);
        while n >= 0x80 {
            bytes |= (n & 0x7f | 0x80) << (8 * length);
            n >>= 7;
            length += 1;
        }
        bytes |= n << (8 * length);
        ChainChange {
            bytes: u128::from(bytes),
            length: length + 1,
            digits: 0,
        }
    }

    /// Appends the lowest `n` bytes of `bytes`.
    #[inline(always)]
    fn with(mut self, bytes: u64, n: u32) -> ChainChange {
        self.bytes |= u128::from(bytes) << (8 * self.length);
        self.length += n;
        self
    }

    #[inline]
    fn total(&self) -> u32 {
        self.length + self.digits
    }
}

/// The times of a block.
#[derive(Default)]
struct Times {
    bytes: Vec<u8>,
    count: u32,
    first: u64,
    last: u64,
}

impl Times {
    fn push(&mut self, time: u64) {
        if self.count == 0 {
            self.first = time;
            encode_varint(time, &mut self.bytes);
        } else if time > self.last {
            encode_varint(time - self.last, &mut self.bytes);
        } else {
            return;
        }
        self.last = time;
        self.count += 1;
    }

    /// The index of the last time.
    #[inline]
    fn index(&self) -> u32 {
        self.count - 1
    }

    /// Writes the times and empties the list.
    fn write(&mut self, out: &mut Vec<u8>) {
        let length = self.bytes.len() as u64;
        out.append(&mut self.bytes);
        for n in [length, length, u64::from(self.count)] {
            out.extend(n.to_be_bytes());
        }
        self.count = 0;
    }
}

/// Compresses chains.
struct Compressor {
    /// The tables of short and of long chains: the table is cleared for each chain, so most chains take the small one.
    small: CompressTable,
    large: CompressTable,
    compressed: Vec<u8>,
}

impl Default for Compressor {
    fn default() -> Self {
        Compressor {
            small: CompressTable::small(),
            large: CompressTable::large(),
            compressed: Vec::new(),
        }
    }
}

impl Compressor {
    /// Writes a chain, compressed if that is shorter.
    fn write(&mut self, chain: &[u8], out: &mut Vec<u8>) {
        if chain.len() > SHORT {
            let room = get_maximum_output_size(chain.len());
            if self.compressed.len() < room {
                self.compressed.resize(room, 0);
            }
            let table = if chain.len() < usize::from(u16::MAX) {
                &mut self.small
            } else {
                &mut self.large
            };
            let length = compress_into_with_table(chain, &mut self.compressed, table).expect("the memory has room");
            if length < chain.len() {
                encode_varint(chain.len() as u64, out);
                out.extend_from_slice(&self.compressed[..length]);
                return;
            }
        }
        encode_varint(0, out);
        out.extend_from_slice(chain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a block, counted by hand. `parts` are its frame, its chains, its index and its times.
    fn by_hand(times: [u64; 2], raw: u64, parts: [&[u8]; 4], n_times: u64) -> Vec<u8> {
        let [frame, chains, index, deltas] = parts;
        let mut bytes: Vec<u8> = [times[0], times[1], raw].iter().flat_map(|n| n.to_be_bytes()).collect();
        let frame_length = frame.len() as u8;
        bytes.extend([frame_length, frame_length, 3]);
        bytes.extend_from_slice(frame);
        bytes.extend([3, b'4']);
        bytes.extend_from_slice(chains);
        bytes.extend_from_slice(index);
        bytes.extend((index.len() as u64).to_be_bytes());
        bytes.extend_from_slice(deltas);
        for n in [deltas.len() as u64, deltas.len() as u64, n_times] {
            bytes.extend(n.to_be_bytes());
        }
        let mut block = vec![8];
        block.extend((bytes.len() as u64 + 8).to_be_bytes());
        block.extend(bytes);
        block
    }

    #[test]
    fn block_has_the_bytes_of_the_specification() {
        let kinds = [Kind::Bit, Kind::Stored(12), Kind::Real];
        // The vector has the first handle.
        let mut block = Block::new(kinds.into_iter(), vec![1, 0, 2]);
        block.set_time(300);
        block.push(0, Some(1));
        block.push(1, Some(0xa5c));
        block.push(2, Some(1.0_f64.to_bits()));
        block.set_time(305);
        block.push(0, None);
        block.push(1, None);
        // A real number of 0 has no bit set. That of 1.0 is 0x3ff0 and zeros.
        let mut frame = *b"xxxxxxxxxxxxz\0\0\0\0\0\0\0\0";
        let chains = [
            &[0, 0, 0xa5, 0xc0, 1 << 1 | 1][..],
            b"xxxxxxxxxxxx",
            &[0, 1 << 1, 1 << 4 | 1 << 1 | 1],
            &[0, 1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        ]
        .concat();
        // Places count from the mark of the compression: 1, then 17 and 3 more. Each is doubled, and the low bit marks a place.
        let index = [1 << 1 | 1, 17 << 1 | 1, 3 << 1 | 1];
        // 300 is 2 * 128 + 44.
        let times = [44 + 128, 2, 5];
        let expected = by_hand([300, 305], 16 + 2 + 9, [&frame, &chains, &index, &times], 2);
        assert_eq!(block.take(), expected);

        // The next block begins with the values of the last one, and its indices of times begin at 0.
        block.set_time(310);
        block.push(1, Some(1));
        block.set_time(320);
        block.push(0, Some(0));
        frame[13..].copy_from_slice(&1.0_f64.to_le_bytes());
        let chains = [0, 0, 0x00, 0x10, 0, 1 << 2];
        let index = [1 << 1 | 1, 4 << 1 | 1, 1 << 1];
        let times = [54 + 128, 2, 10];
        let expected = by_hand([310, 320], 3 + 1, [&frame, &chains, &index, &times], 2);
        assert_eq!(block.take(), expected);
    }

    #[test]
    fn equal_chains_are_written_once() {
        let mut block = Block::new([Kind::Vector(8); 3].into_iter(), vec![0, 1, 2]);
        block.set_time(1);
        for row in 0..3 {
            block.push(row, Some(7));
        }
        let chains = [0, 0, 7];
        // The place of the first chain. Then minus handle 1, and the same handle as before: as signed numbers, doubled, with the low bit set.
        let index = [1 << 1 | 1, 0x7f, 1];
        let expected = by_hand([1, 1], 6, [&[b'z'; 24], &chains, &index, &[1]], 1);
        assert_eq!(block.take(), expected);
    }

    #[test]
    fn frame_of_many_signals_is_compressed() {
        let n_signals = 10_000;
        let kinds = (0..n_signals).map(|_| Kind::Vector(8));
        let mut block = Block::new(kinds, (0..n_signals).collect());
        block.set_time(1);
        (0..n_signals).for_each(|row| block.push(row, Some(5)));
        block.take();
        block.set_time(2);
        block.push(n_signals - 1, Some(0));
        let bytes = block.take();
        // 80,000 digits are 0x13880, in groups of seven bits from the lowest: 0x00, 0x71, 0x04.
        assert_eq!(bytes[33..36], [0x80, 0xf1, 0x04]);
        let length = usize::from(bytes[36] & 0x7f) + (usize::from(bytes[37]) << 7);
        assert!(length < 2000, "{length} bytes");
        let mut frame = String::new();
        // After the number of signals, 10,000, which has two bytes.
        let mut decoder = flate2::read::ZlibDecoder::new(&bytes[40..40 + length]);
        std::io::Read::read_to_string(&mut decoder, &mut frame).unwrap();
        assert_eq!(frame, "00000101".repeat(10_000));
    }

    #[test]
    fn long_chains_are_compressed() {
        let mut block = Block::new([Kind::Bit; 3].into_iter(), vec![0, 1, 2]);
        // 100,000 changes are more than the small table of the compression takes.
        for time in 0..100_000 {
            block.set_time(time);
            block.push(0, Some(time & 1));
        }
        let length = block.take().len();
        // The times have a byte each. The chain has two kinds of bytes in turn.
        assert!((100_000..102_000).contains(&length), "{length} bytes");
    }
}
