//! Contents of device memory, and its allocations.
//!
//! Memory is a fixed table of chunks. The host memory of a chunk is allocated at its first write. Every byte belongs to one memory channel,
//! so two host threads never access one word at once. Relaxed atomics express that in safe Rust, at the cost of plain loads and stores. The
//! host of the GPU allocates and copies between launches, through the same shared reference that the channels hold.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::proto::mem::{LINE, SECTOR};

/// First device address. Smaller addresses, such as null pointers with an offset, are never valid.
pub const BASE: u64 = 0x1000_0000;

/// Alignment of allocations in bytes, as of cudaMalloc.
pub const ALIGN: u64 = 256;

/// Bytes of a chunk.
const CHUNK: u64 = 1 << 20;

/// Bytes of a host word, the unit of storage.
const WORD: usize = size_of::<u64>();

const SECTOR_WORDS: usize = SECTOR / WORD;

type Chunk = OnceLock<Box<[AtomicU64]>>;

/// Device memory of a fixed size, from [`BASE`] on.
///
/// ```
/// use warpwave_components::storage::Storage;
/// let memory = Storage::new(1 << 20);
/// let at = memory.allocate(100).unwrap();
/// memory.write(at + 1, b"warp");
/// let mut bytes = [0; 6];
/// memory.read(at, &mut bytes);
/// assert_eq!(&bytes, b"\0warp\0");
/// assert_eq!(memory.allocate(1 << 20), None);
/// ```
#[derive(Debug)]
pub struct Storage {
    /// Size in bytes.
    capacity: u64,
    chunks: Box<[Chunk]>,
    /// First address and bytes of each allocation, ascending.
    allocations: Mutex<Vec<(u64, u64)>>,
    /// True if the host has written since the last [`Storage::take_host_wrote`].
    host_wrote: AtomicBool,
}

impl Storage {
    /// Memory of `capacity` bytes, nothing allocated.
    pub fn new(capacity: u64) -> Self {
        Storage {
            capacity,
            chunks: (0..capacity.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            allocations: Mutex::default(),
            host_wrote: AtomicBool::new(false),
        }
    }

    /// True if [`Storage::write`] or [`Storage::store`] was called since the last call of this. Caches may then be stale.
    pub fn take_host_wrote(&self) -> bool {
        self.host_wrote.swap(false, Ordering::Relaxed)
    }

    /// Size in bytes, allocated or not.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Allocates `bytes` bytes of zeros. Returns their address, or `None` if they do not fit.
    pub fn allocate(&self, bytes: u64) -> Option<u64> {
        let mut allocations = self.list();
        // One byte between allocations: an access beyond the end of one is not in the next.
        let free = allocations.last().map_or(BASE, |&(first, size)| first + size + 1);
        let address = free.next_multiple_of(ALIGN);
        let end = address.checked_add(bytes)?.checked_add(1)?;
        if end - BASE > self.capacity() {
            return None;
        }
        allocations.push((address, bytes));
        Some(address)
    }

    /// First address and bytes of each allocation, ascending.
    pub fn allocations(&self) -> Vec<(u64, u64)> {
        self.list().clone()
    }

    /// The allocation that contains all `bytes` bytes at `address`, if any.
    pub fn allocation_of(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let allocations = self.list();
        let n = allocations.partition_point(|&(first, _)| first <= address);
        let (first, size) = *allocations.get(n.checked_sub(1)?)?;
        ((address - first).checked_add(bytes)? <= size).then_some((first, size))
    }

    /// Reads the 4 bytes at an address that is a multiple of 4. Outside device memory they are zero.
    #[inline]
    pub fn load(&self, address: u64) -> u32 {
        let word = self
            .written(address)
            .map_or(0, |(chunk, word)| chunk[word].load(Ordering::Relaxed));
        (word >> bit(address)) as u32
    }

    /// Writes the 4 bytes at an address that is a multiple of 4. Outside device memory the write is ignored.
    #[inline]
    pub fn store(&self, address: u64, value: u32) {
        self.host_wrote.store(true, Ordering::Relaxed);
        if let Some((chunk, word)) = self.writable(address) {
            let new = u64::from(value) << bit(address);
            write_bits(&chunk[word], new, u64::from(u32::MAX) << bit(address));
        }
    }

    /// Copies sectors of a line from device memory. `line` is a multiple of [`LINE`].
    #[inline]
    pub fn read_sectors(&self, line: u64, sectors: u8, to: &mut [u8; LINE]) {
        let words = self.written(line);
        for (n, to) in to.as_chunks_mut::<SECTOR>().0.iter_mut().enumerate() {
            match words {
                _ if sectors >> n & 1 == 0 => {}
                Some((chunk, first)) => copy_out(&chunk[first + n * SECTOR_WORDS..][..SECTOR_WORDS], to),
                None => to.fill(0),
            }
        }
    }

    /// Copies the bytes of a line whose bit is set in `mask` to device memory. `line` is a multiple of [`LINE`].
    #[inline]
    pub fn write_masked(&self, line: u64, mask: u128, from: &[u8; LINE]) {
        let Some((chunk, first)) = self.writable(line) else {
            return;
        };
        for (n, from) in from.as_chunks::<SECTOR>().0.iter().enumerate() {
            let words = &chunk[first + n * SECTOR_WORDS..][..SECTOR_WORDS];
            match (mask >> (n * SECTOR)) as u32 {
                0 => {}
                u32::MAX => copy_in(from, words),
                some => copy_some(from, words, some),
            }
        }
    }

    /// Copies from device memory to `to`.
    pub fn read(&self, address: u64, to: &mut [u8]) {
        // Bytes up to a word boundary, whole words by chunk, then the rest.
        let (head, body) = to.split_at_mut(unaligned(address, to.len()));
        self.read_bytes(address, head);
        let mut at = address + head.len() as u64;
        for part in pieces_mut(body, at) {
            let whole = part.len() / WORD * WORD;
            let (words, tail) = part.split_at_mut(whole);
            match self.written(at) {
                Some((chunk, word)) => copy_out(&chunk[word..], words),
                None => words.fill(0),
            }
            self.read_bytes(at + whole as u64, tail);
            at += part.len() as u64;
        }
    }

    /// Copies `from` to device memory.
    pub fn write(&self, address: u64, from: &[u8]) {
        self.host_wrote.store(true, Ordering::Relaxed);
        // As in `read`: bytes, whole words by chunk, bytes.
        let (head, mut body) = from.split_at(unaligned(address, from.len()));
        // Bytes one by one: at most 7 at each end of a copy.
        self.write_bytes(address, head);
        let mut at = address + head.len() as u64;
        while !body.is_empty() {
            let (part, rest) = body.split_at(body.len().min(to_chunk_end(at)));
            let (words, tail) = part.split_at(part.len() / WORD * WORD);
            if let Some((chunk, word)) = self.writable(at) {
                copy_in(words, &chunk[word..]);
            }
            self.write_bytes(at + words.len() as u64, tail);
            at += part.len() as u64;
            body = rest;
        }
    }

    fn read_bytes(&self, address: u64, to: &mut [u8]) {
        for (at, byte) in (address..).zip(to) {
            *byte = self.load(at & !3).to_le_bytes()[(at & 3) as usize];
        }
    }

    fn write_bytes(&self, address: u64, from: &[u8]) {
        for (at, &byte) in (address..).zip(from) {
            let mut word = self.load(at & !3).to_le_bytes();
            word[(at & 3) as usize] = byte;
            self.store(at & !3, u32::from_le_bytes(word));
        }
    }

    /// The chunk of an address and the index of its word, if the chunk has ever been written.
    #[inline]
    fn written(&self, address: u64) -> Option<(&[AtomicU64], usize)> {
        // An address below `BASE` wraps to an offset beyond every chunk.
        let offset = address.wrapping_sub(BASE);
        let chunk = self.chunks.get((offset / CHUNK) as usize)?.get()?;
        Some((chunk, (offset % CHUNK) as usize / WORD))
    }

    /// The chunk of an address and the index of its word, for a write. Allocates the chunk at its first write.
    #[inline]
    fn writable(&self, address: u64) -> Option<(&[AtomicU64], usize)> {
        let offset = address.wrapping_sub(BASE);
        let chunk = self.chunks.get((offset / CHUNK) as usize)?;
        let chunk = chunk.get_or_init(|| (0..CHUNK as usize / WORD).map(|_| AtomicU64::new(0)).collect());
        Some((chunk, (offset % CHUNK) as usize / WORD))
    }

    fn list(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.allocations.lock().expect("no code panics while it holds the list")
    }
}

/// Bytes before the first whole word.
fn unaligned(address: u64, len: usize) -> usize {
    (address.wrapping_neg() as usize % WORD).min(len)
}

fn to_chunk_end(address: u64) -> usize {
    (CHUNK - address.wrapping_sub(BASE) % CHUNK) as usize
}

/// Splits `bytes`, the bytes from `address` on, at the ends of chunks.
fn pieces_mut(mut bytes: &mut [u8], mut address: u64) -> impl Iterator<Item = &mut [u8]> {
    std::iter::from_fn(move || {
        let n = bytes.len().min(to_chunk_end(address));
        let part = std::mem::take(&mut bytes);
        let (part, rest) = part.split_at_mut(n);
        address += n as u64;
        bytes = rest;
        (n > 0).then_some(part)
    })
}

/// First bit of an address's byte in its word.
fn bit(address: u64) -> u64 {
    address % WORD as u64 * 8
}

#[inline]
fn copy_out(words: &[AtomicU64], to: &mut [u8]) {
    for (bytes, word) in to.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
    }
}

#[inline]
fn copy_in(from: &[u8], words: &[AtomicU64]) {
    for (bytes, word) in from.as_chunks().0.iter().zip(words) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
}

fn copy_some(from: &[u8; SECTOR], words: &[AtomicU64], mask: u32) {
    for (n, (word, bytes)) in words.iter().zip(from.as_chunks().0).enumerate() {
        write_bits(word, u64::from_le_bytes(*bytes), spread(mask >> (WORD * n)));
    }
}

/// Writes some bits of a word.
#[inline]
fn write_bits(word: &AtomicU64, new: u64, bits: u64) {
    // No other host thread writes the word at the same time, so load and store need not be one operation.
    let old = word.load(Ordering::Relaxed);
    word.store(old & !bits | new & bits, Ordering::Relaxed);
}

/// Expands a mask of 8 bytes to a mask of their 64 bits.
#[inline]
fn spread(bytes: u32) -> u64 {
    (0..WORD)
        .filter(|n| bytes >> n & 1 == 1)
        .fold(0, |bits, n| bits | 0xff << (8 * n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_across_a_chunk_end_read_back_as_written() {
        let memory = Storage::new(2 * CHUNK);
        let bytes: Vec<u8> = (0..CHUNK as u32 + 9).map(|n| ((n * 7) >> 3) as u8).collect();
        for shift in 0..8 {
            let at = BASE + CHUNK / 2 + shift;
            memory.write(at, &bytes);
            let mut back = vec![0; bytes.len()];
            memory.read(at, &mut back);
            assert!(back == bytes, "shift {shift}");
        }
    }

    #[test]
    fn masked_write_changes_only_the_bytes_in_the_mask() {
        let memory = Storage::new(CHUNK);
        memory.write(BASE + 128, &[0xaa; LINE]);
        memory.write_masked(
            BASE + 128,
            0x8000_0021 << 32 | u128::from(u32::MAX) << 64,
            &[0x55; LINE],
        );
        let mut back = [0; LINE];
        memory.read_sectors(BASE + 128, 0b0111, &mut back);
        for (n, byte) in back.into_iter().enumerate() {
            let expected = match n {
                32 | 37 | 63 | 64..96 => 0x55,
                96.. => 0,
                _ => 0xaa,
            };
            assert_eq!(byte, expected, "byte {n}");
        }
        memory.read_sectors(BASE + CHUNK, 0b0010, &mut back);
        assert_eq!(
            back[31..65],
            [&[0xaa][..], &[0; 32], &[0x55]].concat(),
            "zeros outside device memory"
        );
    }

    #[test]
    fn address_outside_device_memory_reads_zero_and_ignores_writes() {
        let memory = Storage::new(CHUNK);
        for at in [0, 4, BASE - 4, BASE + CHUNK, u64::MAX - 3] {
            memory.store(at, 1);
            assert_eq!(memory.load(at), 0);
        }
    }

    #[test]
    fn allocations_are_aligned_apart_and_found_by_address() {
        let memory = Storage::new(CHUNK);
        let (a, b) = (memory.allocate(256).unwrap(), memory.allocate(1).unwrap());
        assert_eq!((a, b), (BASE, BASE + 512));
        assert_eq!(memory.allocation_of(a + 252, 4), Some((a, 256)));
        assert_eq!(memory.allocation_of(a + 253, 4), None);
        assert_eq!(memory.allocation_of(BASE - 1, 1), None);
        assert_eq!(memory.allocations(), [(a, 256), (b, 1)]);
    }

    #[test]
    fn allocation_in_full_memory_fails() {
        let memory = Storage::new(CHUNK);
        assert_eq!(memory.allocate(CHUNK), None);
        assert_eq!(memory.allocate(u64::MAX), None);
        assert!(memory.allocate(CHUNK - 1).is_some());
        assert_eq!(memory.allocate(1), None);
    }
}
