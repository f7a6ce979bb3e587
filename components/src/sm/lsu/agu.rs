//! The address generation unit (AGU): computes the address of each lane, finds its memory, and checks the access.
//!
//! | Memory of a lane | Resulting address |
//! |---|---|
//! | global | in device memory |
//! | local | in device memory: word n of the 32 lanes of a warp fills one line |
//! | shared, own CTA | offset in the CTA's shared memory |
//! | shared, other CTA of the cluster | a [`RemoteByte`](crate::proto::cluster::RemoteByte) |
//! | constant | offset in the bank |

use warpwave_isa::exec::access::{addresses_into, copy_destinations};
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{LOCAL_WINDOW, SHARED_WINDOW, SHARED_WINDOWS_BYTES, Space, WINDOW_BYTES};

use crate::proto::addresses::AddressBounds;
use crate::proto::launch::{Grid, Route, Trap, TrapKind};
use crate::proto::mem::LINE;
use crate::proto::warp::WarpInst;
use crate::sm::lsu::cluster::{self, Clusters};
use crate::sm::lsu::fault::Fault;

/// Computes the addresses of an access and the lanes of each memory. `local_slot` is the slot of the warp in local memory.
///
/// Returns the trap of the first lane whose access is misaligned or outside every allocation.
pub fn generate(warp_inst: &mut WarpInst, local_slot: u64, clusters: &Clusters) -> Option<Box<Trap>> {
    compute_addresses(warp_inst);
    let inst = warp_inst.inst();
    let (op, space, access) = (inst.op, inst.mods.space, inst.mods.access);
    let lanes = warp_inst.address_lanes();
    let remote = sort_by_memory(warp_inst, space, lanes);
    // A lane of a matrix load has the address of a row of 16 bytes.
    let bytes = if op == Opcode::Ldsm { 16 } else { access.total() };
    let fault = match op {
        Opcode::Cctl => {
            // A prefetch never traps: lanes with a bad address do nothing.
            keep_cached_lanes(warp_inst, remote);
            place_local(warp_inst, local_slot);
            return None;
        }
        Opcode::Ldc => check_constants(warp_inst, lanes, bytes),
        Opcode::Ldgsts => check_copy(warp_inst, lanes, bytes),
        _ => check(warp_inst, lanes, remote, bytes),
    };
    if let Some(fault) = fault {
        return Some(fault.trap(warp_inst));
    }
    // Only now: the checks need offsets in local memory and addresses with a CTA rank.
    place_local(warp_inst, local_slot);
    for lane in remote.iter() {
        let address = clusters.to_remote(warp_inst, warp_inst.addresses.get(lane));
        warp_inst.addresses.set(lane, address);
    }
    None
}

/// Computes base plus offset of each lane.
fn compute_addresses(warp_inst: &mut WarpInst) {
    let (inst, decoded) = warp_inst.grid.instruction(warp_inst.pc);
    let (operands, addresses) = (&warp_inst.operands, &mut warp_inst.addresses);
    let (access, offset) = (inst.mods.access, inst.mods.offset);
    // A pattern covers all lanes, each with one word, in one memory.
    let is_full = warp_inst.lanes == LaneMask::ALL && (access.bytes, access.count) == (4, 1);
    let has_pattern = match warp_inst.info.route {
        Route::Shared if is_full => addresses.set_pattern32(&operands.words[0], offset),
        Route::Device if is_full => addresses.set_pattern64(&operands.words[0], &operands.words[1], offset),
        _ => false,
    };
    if !has_pattern {
        addresses.set_all(|all| addresses_into(inst, decoded, operands, all));
    }
}

/// Finds the lanes in the CTA's shared memory and in local memory, and turns their addresses into offsets. Returns the lanes in the shared
/// memory of other CTAs. Their addresses become those of [`Space::Cluster`].
fn sort_by_memory(warp_inst: &mut WarpInst, space: Space, lanes: LaneMask) -> LaneMask {
    // Generic lanes are global until their address proves otherwise.
    warp_inst.shared_lanes = if space == Space::Shared { lanes } else { LaneMask::NONE };
    warp_inst.local_lanes = if space == Space::Local { lanes } else { LaneMask::NONE };
    let (has_windows, shared_window) = match space {
        Space::Generic => (
            // Both windows lie above global memory, so one comparison serves all lanes of a global access.
            warp_inst.addresses.bounds(lanes).greatest >= SHARED_WINDOW,
            SHARED_WINDOW,
        ),
        // A cluster address counts from the first window already.
        Space::Cluster => (true, 0),
        _ => (false, 0),
    };
    let mut remote = LaneMask::NONE;
    if !has_windows {
        return remote;
    }
    for lane in lanes.iter() {
        let address = warp_inst.addresses.get(lane);
        let in_shared = address.wrapping_sub(shared_window);
        if space == Space::Cluster || in_shared < SHARED_WINDOWS_BYTES {
            // A cluster address can name the warp's own CTA: that lane takes the short way through its own SM.
            let own = cluster::own_address(warp_inst, in_shared);
            let lanes = if own.is_some() {
                &mut warp_inst.shared_lanes
            } else {
                &mut remote
            };
            *lanes |= LaneMask::lane(lane);
            warp_inst.addresses.set(lane, own.unwrap_or(in_shared));
        } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
            warp_inst.local_lanes |= LaneMask::lane(lane);
            warp_inst.addresses.set(lane, address - LOCAL_WINDOW);
        }
    }
    remote
}

/// Checks alignment and bounds of each lane.
#[inline(never)]
fn check(warp_inst: &WarpInst, lanes: LaneMask, remote: LaneMask, bytes: u32) -> Option<Fault> {
    let addresses = &warp_inst.addresses;
    let bounds = addresses.bounds(lanes);
    let inst = warp_inst.inst();
    let alignment = match inst.op {
        Opcode::Ld | Opcode::St => inst.mods.alignment(),
        _ => bytes,
    };
    // An alignment is a power of two.
    let offset_bits = u64::from(alignment - 1);
    let fault = |kind: TrapKind, lane: usize, bytes: u32| {
        let space = space_name(warp_inst, remote, lane);
        Fault::new(kind, lane, addresses.get(lane), bytes, space)
    };
    // One test of all lanes first: most accesses are aligned.
    if bounds.low_bits & offset_bits != 0
        && let Some(lane) = lanes.iter().find(|&lane| addresses.get(lane) & offset_bits != 0)
    {
        return Some(fault(TrapKind::Misaligned, lane, alignment));
    }
    let first_beyond = |lanes: LaneMask, size: u32| {
        // An access at the end of the address space must not wrap to 0.
        let end = |address: u64| address.saturating_add(u64::from(bytes));
        // The bounds cover more lanes than these, so a fault of one of these never passes this test.
        if end(bounds.greatest) <= u64::from(size) {
            return None;
        }
        lanes.iter().find(|&lane| end(addresses.get(lane)) > u64::from(size))
    };
    let is_outside_cta = |&lane: &usize| !cluster::contains(&warp_inst.grid, addresses.get(lane), bytes);
    let global = lanes & !(warp_inst.shared_lanes | warp_inst.local_lanes | remote);
    let outside = first_beyond(warp_inst.shared_lanes, warp_inst.grid.shared_bytes)
        .or_else(|| first_beyond(warp_inst.local_lanes, warp_inst.grid.program.requirements().local_bytes))
        .or_else(|| remote.iter().find(is_outside_cta))
        .or_else(|| first_unallocated(warp_inst, global, bytes, &bounds));
    outside.map(|lane| fault(TrapKind::OutOfBounds, lane, bytes))
}

/// The first lane whose bytes are in no allocation.
fn first_unallocated(warp_inst: &WarpInst, lanes: LaneMask, bytes: u32, bounds: &AddressBounds) -> Option<usize> {
    let (allocations, bytes) = (&warp_inst.grid.allocations, u64::from(bytes));
    let first = warp_inst.addresses.get(lanes.lowest()?);
    let is_one_allocation = |least: u64, greatest: u64| {
        let distance = greatest.saturating_sub(least);
        contains(allocations, least, distance.saturating_add(bytes))
    };
    // Mostly all lanes access one buffer: one search for the whole warp.
    if is_one_allocation(bounds.least, bounds.greatest) {
        return None;
    }
    // The bounds can be wider than the addresses, and other lanes can be in other memories.
    let (least, greatest) = lanes.iter().fold((first, first), |(least, greatest), lane| {
        let address = warp_inst.addresses.get(lane);
        (least.min(address), greatest.max(address))
    });
    if is_one_allocation(least, greatest) {
        return None;
    }
    lanes
        .iter()
        .find(|&lane| !contains(allocations, warp_inst.addresses.get(lane), bytes))
}

/// True if `bytes` bytes from `address` on are in one allocation.
pub fn contains(allocations: &[(u64, u64)], address: u64, bytes: u64) -> bool {
    // The allocations are sorted and disjoint, so only the last one that begins at or before the address can hold it.
    let n = allocations.partition_point(|&(first, _)| first <= address);
    n > 0 && {
        let (first, size) = allocations[n - 1];
        (address - first).saturating_add(bytes) <= size
    }
}

/// Name of the state space of a lane's access.
fn space_name(warp_inst: &WarpInst, remote: LaneMask, lane: usize) -> &'static str {
    match lane {
        // The names of the PTX state spaces.
        _ if remote.contains(lane) => "shared::cluster",
        _ if warp_inst.shared_lanes.contains(lane) => "shared",
        _ if warp_inst.local_lanes.contains(lane) => "local",
        _ => "global",
    }
}

/// Removes the lanes of a prefetch whose address is in shared memory or in no allocation.
fn keep_cached_lanes(warp_inst: &mut WarpInst, remote: LaneMask) {
    let local_bytes = u64::from(warp_inst.grid.program.requirements().local_bytes);
    let cached = warp_inst.lanes & !(warp_inst.shared_lanes | remote);
    let kept = cached.filter(|lane| {
        let address = warp_inst.addresses.get(lane);
        match warp_inst.local_lanes.contains(lane) {
            true => address < local_bytes,
            false => contains(&warp_inst.grid.allocations, address, 1),
        }
    });
    warp_inst.lanes = kept;
    warp_inst.local_lanes &= kept;
    warp_inst.shared_lanes = LaneMask::NONE;
}

/// Checks each lane's read of a constant bank.
fn check_constants(warp_inst: &WarpInst, lanes: LaneMask, bytes: u32) -> Option<Fault> {
    let bank = warp_inst.inst().mods.bank;
    lanes.iter().find_map(|lane| {
        let address = warp_inst.addresses.get(lane);
        let kind = warp_inst.grid.constant_fault(bank, address, bytes)?;
        Some(Fault::new(kind, lane, address, bytes, Grid::bank_name(bank)))
    })
}

/// Checks an asynchronous copy (LDGSTS). The third operand is the number of bytes read. It always writes `bytes` bytes.
fn check_copy(warp_inst: &WarpInst, lanes: LaneMask, bytes: u32) -> Option<Fault> {
    let destinations = copy_destinations(&warp_inst.operands);
    let size = &warp_inst.operands.words[warp_inst.decoded().first_word[2] as usize];
    let is_aligned = |address: u64| address.is_multiple_of(u64::from(bytes));
    lanes.iter().find_map(|lane| {
        let (from, to) = (warp_inst.addresses.get(lane), destinations[lane]);
        // The copy fills the rest of its destination with zeros, and reads no byte for it.
        let read = u64::from(size.0[lane].min(bytes));
        let (address, space, kind) = if !is_aligned(from) {
            (from, "global", TrapKind::Misaligned)
        // A copy that reads 0 bytes may name any source.
        } else if read > 0 && !contains(&warp_inst.grid.allocations, from, read) {
            (from, "global", TrapKind::OutOfBounds)
        } else if !is_aligned(to) {
            (to, "shared", TrapKind::Misaligned)
        } else if to + u64::from(bytes) > u64::from(warp_inst.grid.shared_bytes) {
            (to, "shared", TrapKind::OutOfBounds)
        } else {
            return None;
        };
        Some(Fault::new(kind, lane, address, bytes, space))
    })
}

/// Maps local addresses to device memory.
fn place_local(warp_inst: &mut WarpInst, slot: u64) {
    if warp_inst.local_lanes.is_empty() {
        return;
    }
    // A warp's slot has one line per word of local memory.
    let words = u64::from(warp_inst.grid.program.requirements().local_bytes.div_ceil(4));
    let base = warp_inst.grid.local_base + slot * words * LINE as u64;
    for lane in warp_inst.local_lanes.iter() {
        let offset = warp_inst.addresses.get(lane);
        // Word n of the 32 lanes fills one line, so lanes with equal local addresses coalesce.
        let address = base + offset / 4 * LINE as u64 + lane as u64 * 4 + offset % 4;
        warp_inst.addresses.set(lane, address);
    }
}

#[cfg(test)]
mod tests {
    use warpwave_isa::lane::Lanes;

    use super::*;
    use crate::test_ports::{grid, warp_inst};

    #[test]
    fn access_across_the_end_of_an_allocation_is_outside() {
        let allocations = [(0x1000, 100), (0x2000, 16)];
        assert!(contains(&allocations, 0x1000, 100));
        assert!(!contains(&allocations, 0x1000, 101));
        assert!(contains(&allocations, 0x1060, 4));
        assert!(!contains(&allocations, 0x1064, 1));
        assert!(!contains(&allocations, 0xfff, 1));
        assert!(contains(&allocations, 0x200f, 1));
        assert!(!contains(&allocations, 0x2008, u64::MAX));
    }

    /// Lane, address and kind of the trap of an access to 1 KiB of shared memory at 32-bit offsets.
    fn trap(lanes: LaneMask, offsets: [u32; 32]) -> Option<(u32, u64, TrapKind)> {
        trap_of("LD.SHARED.B32 R0, [R2]", 1024, lanes, offsets)
    }

    /// As [`trap`], of this access to shared memory of `shared_bytes` bytes.
    fn trap_of(text: &str, shared_bytes: u32, lanes: LaneMask, offsets: [u32; 32]) -> Option<(u32, u64, TrapKind)> {
        let grid = Grid {
            shared_bytes,
            block: [32, 1, 1],
            ..(*grid(text, 1)).clone()
        };
        let mut load = warp_inst(&std::sync::Arc::new(grid), 0, 0, lanes);
        load.operands.words[0] = Lanes(offsets);
        let trap = generate(&mut load, 0, &Clusters::new(1, 128))?;
        Some((trap.thread[0], trap.address?, trap.kind))
    }

    #[test]
    fn first_faulting_lane_traps_with_and_without_a_pattern() {
        let row = |first: u32| std::array::from_fn(|lane| first.wrapping_add(4 * lane as u32));
        let falling = |first: u32| std::array::from_fn(|lane| first - 4 * lane as u32);
        assert_eq!(trap(LaneMask::ALL, row(896)), None);
        assert_eq!(trap(LaneMask::ALL, row(904)), Some((30, 1024, TrapKind::OutOfBounds)));
        assert_eq!(trap(LaneMask::first(30), row(904)), None);
        assert_eq!(trap(LaneMask::ALL, falling(1020)), None);
        assert_eq!(
            trap(LaneMask::ALL, falling(1028)),
            Some((0, 1028, TrapKind::OutOfBounds))
        );
        assert_eq!(trap(LaneMask::ALL, row(2)), Some((0, 2, TrapKind::Misaligned)));
        assert_eq!(
            trap(LaneMask::ALL, row(u32::MAX - 63)),
            Some((0, 0xffff_ffc0, TrapKind::OutOfBounds))
        );
    }

    #[test]
    fn access_with_one_byte_past_the_end_traps() {
        // Lane n accesses element n from offset 0 on. The element of the last lane ends behind the shared memory, by one byte.
        for (text, bytes) in [
            ("LD.SHARED.B16 R0, [R2]", 2),
            ("LD.SHARED.B32 R0, [R2]", 4),
            ("LD.SHARED.B64 R0, [R2]", 8),
            ("LD.SHARED.B32X4 R0, [R2]", 16),
        ] {
            let offsets = std::array::from_fn(|lane| bytes * lane as u32);
            let last = Some((31, u64::from(31 * bytes), TrapKind::OutOfBounds));
            assert_eq!(trap_of(text, 32 * bytes, LaneMask::ALL, offsets), None, "{text}");
            assert_eq!(trap_of(text, 32 * bytes - 1, LaneMask::ALL, offsets), last, "{text}");
        }
    }

    #[test]
    fn inactive_lane_never_traps() {
        let mut offsets = [64; 32];
        offsets[31] = u32::MAX;
        assert_eq!(trap(LaneMask::first(31), offsets), None);
        assert_eq!(
            trap(LaneMask::ALL, offsets),
            Some((31, u32::MAX.into(), TrapKind::Misaligned))
        );
    }
}
