//! Device memory of the reference: a copy of each allocation.

use warpwave_components::storage::Storage;

/// A copy of all allocations in device memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// First address and bytes, ascending.
    regions: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    /// Copies the current contents of all allocations.
    ///
    /// ```
    /// use warpwave::reference::Memory;
    /// use warpwave_components::storage::Storage;
    /// let storage = Storage::new(1 << 20);
    /// let address = storage.allocate(4).unwrap();
    /// storage.write(address, &[1, 2, 3, 4]);
    /// let memory = Memory::of(&storage);
    /// assert_eq!(memory.get(address + 1, 2), Some(&[2, 3][..]));
    /// assert_eq!(memory.get(address + 1, 4), None);
    /// ```
    pub fn of(storage: &Storage) -> Self {
        // Allocations apart: an access from one into the next must trap, as on the machine.
        let copy = |(first, n): (u64, u64)| {
            let mut bytes = vec![0; n as usize];
            storage.read(first, &mut bytes);
            (first, bytes)
        };
        Memory {
            regions: storage.allocations().into_iter().map(copy).collect(),
        }
    }

    /// The `n` bytes at an address. `None` if they are not inside one allocation.
    pub fn get(&self, address: u64, n: usize) -> Option<&[u8]> {
        let (region, at) = self.find(address)?;
        self.regions[region].1.get(at..at.checked_add(n)?)
    }

    /// The `n` bytes at an address, mutable. `None` if they are not inside one allocation.
    pub fn get_mut(&mut self, address: u64, n: usize) -> Option<&mut [u8]> {
        let (region, at) = self.find(address)?;
        self.regions[region].1.get_mut(at..at.checked_add(n)?)
    }

    /// The allocation that begins at or before an address: its index, and the offset of the address.
    fn find(&self, address: u64) -> Option<(usize, usize)> {
        let after = self.regions.partition_point(|&(first, _)| first <= address);
        let region = after.checked_sub(1)?;
        Some((region, (address - self.regions[region].0) as usize))
    }
}
