//! Steps of the host between launches: copies, fills and exchanges in device memory.
//!
//! The machine and the reference model run the same steps, each on its own memory.

use warpwave_components::storage::Storage;

use super::Placement;
use crate::reference::Memory;
use crate::scenario::{Scenario, Step};

/// Device memory as the host reads and writes it.
pub(crate) trait DeviceMemory {
    /// Reads `n` bytes of an allocation.
    fn read(&self, address: u64, n: usize) -> Vec<u8>;
    /// Writes bytes of an allocation.
    fn write(&mut self, address: u64, bytes: &[u8]);
}

impl DeviceMemory for &Storage {
    fn read(&self, address: u64, n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        Storage::read(self, address, &mut bytes);
        bytes
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        Storage::write(self, address, bytes);
    }
}

impl DeviceMemory for Memory {
    fn read(&self, address: u64, n: usize) -> Vec<u8> {
        self.get(address, n).expect("buffers are allocated").to_vec()
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        let to = self.get_mut(address, bytes.len()).expect("buffers are allocated");
        to.copy_from_slice(bytes);
    }
}

/// Runs the steps before a launch.
pub(crate) fn run(steps: &[Step], scenario: &Scenario, placement: &Placement, memory: &mut impl DeviceMemory) {
    let place = |index: usize| {
        (
            placement.buffers[index],
            scenario.buffers[index].layout.bytes() as usize,
        )
    };
    for step in steps {
        match step {
            Step::Copy { from, to } => {
                let (from, n) = place(*from);
                let bytes = memory.read(from, n);
                memory.write(place(*to).0, &bytes);
            }
            Step::Fill { buffer, element } => {
                let (address, n) = place(*buffer);
                // `n` is a multiple of the element: both come from the layout of the buffer.
                memory.write(address, &element.repeat(n / element.len()));
            }
            Step::Reset(buffer) => memory.write(place(*buffer).0, &placement.init_of(scenario, *buffer)),
            Step::Swap(first, second) => {
                // The scenario's checks made both buffers equally large, so one size does.
                let ((first, n), (second, _)) = (place(*first), place(*second));
                let (a, b) = (memory.read(first, n), memory.read(second, n));
                memory.write(first, &b);
                memory.write(second, &a);
            }
        }
    }
}
