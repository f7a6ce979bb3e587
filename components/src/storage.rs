//! The bytes of device memory, and which of them are allocated.
//!
//! Every byte belongs to one memory channel, so a run never touches a word from two threads at once; relaxed atomics say so in
//! safe Rust and cost what plain loads and stores cost. The host allocates and copies between launches.

use std::sync::atomic::{AtomicU32, Ordering};

/// Device addresses begin here, so that 0 and small numbers are never valid.
pub const BASE: u64 = 0x1000_0000;

/// Allocations are aligned to this many bytes, as cudaMalloc's are.
pub const ALIGN: u64 = 256;

/// Device memory from [`BASE`] on, grown by allocation.
#[derive(Debug, Default)]
pub struct Storage {
    words: Vec<AtomicU32>,
    /// First address and bytes of each allocation, ascending.
    allocations: Vec<(u64, u64)>,
}

impl Storage {
    /// No memory allocated.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates `bytes` bytes of zeros and gives their address. Allocations never touch: at least one byte lies between them,
    /// so that a run over an end is found.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let address = BASE + (self.words.len() as u64 * 4).next_multiple_of(ALIGN);
        let end = (address - BASE + bytes + 1).next_multiple_of(ALIGN);
        self.words.resize_with((end / 4) as usize, || AtomicU32::new(0));
        self.allocations.push((address, bytes));
        address
    }

    /// First address and bytes of each allocation, ascending.
    pub fn allocations(&self) -> &[(u64, u64)] {
        &self.allocations
    }

    /// The allocation that holds all of `bytes` bytes at `address`, if one does.
    pub fn allocation_of(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let n = self.allocations.partition_point(|&(first, _)| first <= address);
        let (first, size) = *self.allocations.get(n.checked_sub(1)?)?;
        (address - first + bytes <= size).then_some((first, size))
    }

    /// The word at an address that is a multiple of 4; zero outside all memory.
    #[inline]
    pub fn load(&self, address: u64) -> u32 {
        self.word(address).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Writes the word at an address that is a multiple of 4; outside all memory nothing happens.
    #[inline]
    pub fn store(&self, address: u64, value: u32) {
        if let Some(word) = self.word(address) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Copies from device memory.
    pub fn read(&self, address: u64, to: &mut [u8]) {
        for (n, byte) in to.iter_mut().enumerate() {
            let at = address + n as u64;
            *byte = self.load(at & !3).to_le_bytes()[(at & 3) as usize];
        }
    }

    /// Copies to device memory.
    pub fn write(&self, address: u64, from: &[u8]) {
        for (n, &byte) in from.iter().enumerate() {
            let at = address + n as u64;
            let mut word = self.load(at & !3).to_le_bytes();
            word[(at & 3) as usize] = byte;
            self.store(at & !3, u32::from_le_bytes(word));
        }
    }

    #[inline]
    fn word(&self, address: u64) -> Option<&AtomicU32> {
        self.words.get((address.wrapping_sub(BASE) / 4) as usize)
    }
}
