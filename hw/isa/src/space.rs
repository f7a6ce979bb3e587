//! State spaces, access sizes, address windows, and the layout of constant bank 0.

/// State space of an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Space {
    /// Device memory, with 64-bit addresses.
    #[default]
    Global,
    /// Shared memory of the CTA, with 32-bit addresses from 0.
    Shared,
    /// Shared memory of any CTA of the cluster, with 32-bit addresses (see [`split_window`]).
    Cluster,
    /// Local memory of the thread, with 32-bit addresses from 0.
    Local,
    /// Constant bank `Mods::bank`, with 32-bit addresses from 0.
    Const,
    /// A 64-bit address into global, local, or shared memory of any CTA of the cluster.
    Generic,
}

/// Size of one lane's access: one or more adjacent elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Access {
    /// Bytes of one element: 1, 2, 4, 8 or 16.
    pub bytes: u8,
    /// Elements: 1, 2 or 4.
    pub count: u8,
    /// True if elements of 1 or 2 bytes are sign-extended in their register.
    pub signed: bool,
}

impl Access {
    /// Returns an access of one element, zero-extended.
    pub const fn one(bytes: u8) -> Self {
        Access {
            bytes,
            count: 1,
            signed: false,
        }
    }

    /// Returns the bytes of one lane's access, which is also its alignment.
    pub const fn total(self) -> u32 {
        self.bytes as u32 * self.count as u32
    }

    /// Returns the registers of one lane's value. An element takes at least one.
    pub const fn words(self) -> u8 {
        // A byte or half has a register of its own.
        let each = if self.bytes < 4 { 1 } else { self.bytes / 4 };
        each * self.count
    }
}

/// Byte offsets in constant bank 0, which a launch fills (isa-notes, constant banks). Equal for every target here.
pub mod bank0 {
    /// Block size x, y, z: three words.
    pub const BLOCK_SIZE: u16 = 0x0;
    /// Grid size x, y, z: three words.
    pub const GRID_SIZE: u16 = 0xc;
    /// Generic address of the module's constants: two words, 0 if no code takes an address of one. As ptxas 13.5 places it for sm_80.
    pub const CONSTANTS: u16 = 0x50;
    /// `%envreg1`: high word of the address of a cooperative launch's workspace, 0 in other launches. As ptxas 13.5 places it for sm_80.
    pub const WORKSPACE_HIGH: u16 = 0x8c;
    /// `%envreg2`: low word of that address.
    pub const WORKSPACE_LOW: u16 = 0x90;
    /// First byte of the kernel's parameters.
    pub const PARAMS: u16 = 0x160;
}

/// First generic address of the shared-memory windows, 16 MiB each.
///
/// Window 0 is the shared memory of the CTA itself. Window n + 1 is the shared memory of the CTA with cluster rank n.
pub const SHARED_WINDOW: u64 = 0x7f00_0000_0000;
/// Bytes of all shared-memory windows, for the largest cluster.
pub const SHARED_WINDOWS_BYTES: u64 = (1 + MAX_CLUSTER as u64) * WINDOW_BYTES;
/// First generic address of the local-memory window.
pub const LOCAL_WINDOW: u64 = 0x7f00_2000_0000;
/// First generic address of the window of constant bank 0, where parameters are. Only bulk copies read there.
pub const PARAM_WINDOW: u64 = 0x7f00_3000_0000;
/// Bytes of one generic-address window.
pub const WINDOW_BYTES: u64 = 0x100_0000;
/// CTAs of the largest cluster (CUDA programming guide, compute capability 9.0; more than 8 is not portable).
pub const MAX_CLUSTER: u32 = 16;

/// Splits a shared-memory address into the cluster rank of its CTA and the address there.
///
/// `address` is relative to [`SHARED_WINDOW`], or an address in [`Space::Cluster`]. The rank is `None` in the CTA's own window.
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
        // Window n + 1 is the CTA with rank n.
        window => (Some((window - 1) as u32), address % WINDOW_BYTES),
    }
}
