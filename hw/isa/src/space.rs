//! State spaces, the sizes of accesses, and the layout of constant bank 0.

/// Where an address points.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Space {
    /// Device memory, 64-bit addresses.
    #[default]
    Global,
    /// A CTA's shared memory, 32-bit addresses from 0.
    Shared,
    /// The shared memory of any CTA of the cluster, 32-bit addresses: see [`split_window`].
    Cluster,
    /// A thread's own memory, 32-bit addresses from 0.
    Local,
    /// A constant bank, 32-bit addresses from 0 (bank in the modifiers).
    Const,
    /// A 64-bit address that may point into global, shared (of any CTA of the cluster) or local memory.
    Generic,
}

/// The size of one lane's access: elements of one size, side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Access {
    /// Bytes of one element: 1, 2, 4, 8 or 16.
    pub bytes: u8,
    /// Elements: 1, 2 or 4.
    pub count: u8,
    /// Whether elements of 1 or 2 bytes are sign-extended into their register.
    pub signed: bool,
}

impl Access {
    /// One element of `bytes` bytes, zero-extended.
    pub const fn one(bytes: u8) -> Self {
        Access {
            bytes,
            count: 1,
            signed: false,
        }
    }

    /// Bytes that one lane touches; also the alignment that the address needs.
    pub const fn total(self) -> u32 {
        self.bytes as u32 * self.count as u32
    }

    /// Registers that one lane's value fills; an element takes at least one.
    pub const fn words(self) -> u8 {
        let each = if self.bytes < 4 { 1 } else { self.bytes / 4 };
        each * self.count
    }
}

/// Byte offsets in constant bank 0, which a launch fills (isa-notes, constant banks; the same for every target here).
pub mod bank0 {
    /// Block size x, y, z: three words.
    pub const BLOCK_SIZE: u16 = 0x0;
    /// Grid size x, y, z: three words.
    pub const GRID_SIZE: u16 = 0xc;
    /// First byte of the kernel's parameters.
    pub const PARAMS: u16 = 0x160;
}

/// The generic-address windows of shared memory: the first address of the first, in which a CTA sees its own. Window n + 1 is the
/// shared memory of the CTA with rank n in the cluster. Each window is 16 MiB.
pub const SHARED_WINDOW: u64 = 0x7f00_0000_0000;
/// Bytes of all windows of shared memory: a CTA's own, and one for each CTA of the largest cluster.
pub const SHARED_WINDOWS_BYTES: u64 = (1 + MAX_CLUSTER as u64) * WINDOW_BYTES;
/// The generic-address window of local memory: its first address.
pub const LOCAL_WINDOW: u64 = 0x7f00_2000_0000;
/// The generic-address window of constant bank 0, which holds the parameters: its first address. Bulk copies alone read there.
pub const PARAM_WINDOW: u64 = 0x7f00_3000_0000;
/// Bytes in each generic-address window.
pub const WINDOW_BYTES: u64 = 0x100_0000;
/// CTAs of the largest cluster (CUDA programming guide, compute capability 9.0, not portable above 8).
pub const MAX_CLUSTER: u32 = 16;

/// Splits an address from the start of [`SHARED_WINDOW`], or in [`Space::Cluster`]: the rank of the CTA whose shared memory it is
/// in, none for the CTA's own window, and the address there.
///
/// ```
/// use warpwave_isa::space::split_window;
/// assert_eq!(split_window(0x40), (None, 0x40));
/// assert_eq!(split_window(0x0300_0040), (Some(2), 0x40));
/// ```
#[inline]
pub const fn split_window(address: u64) -> (Option<u32>, u64) {
    match address / WINDOW_BYTES {
        0 => (None, address),
        window => (Some((window - 1) as u32), address % WINDOW_BYTES),
    }
}
