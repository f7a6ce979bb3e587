//! The address generation unit: where each lane's access lies, and whether it may.

use warpwave_isa::exec::access::{addresses_into, copy_destinations, narrow_addresses};
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, LOCAL_WINDOW, SHARED_WINDOW, SHARED_WINDOWS_BYTES, Space, WINDOW_BYTES};

use super::texture;
use crate::proto::launch::{Grid, Trap, TrapKind};
use crate::proto::mem::LINE;
use crate::proto::warp::WarpInst;
use crate::sm::lsu::cluster::{self, Clusters};
use crate::sm::lsu::halves::Halves;

/// What is wrong with a lane's access.
struct Fault {
    kind: TrapKind,
    lane: usize,
    address: u64,
    bytes: u32,
    space: &'static str,
}

/// The bits that some lanes' addresses all have, and those that any of them has: no address is below the one or above the other,
/// and bit by bit all lanes are looked at together, without comparing them.
#[derive(PartialEq, Eq, Debug)]
pub struct Common {
    /// No address is below this.
    pub least: u64,
    /// No address is above this; a bit that is 0 here is 0 in every address.
    pub greatest: u64,
}

impl Common {
    /// Of no lanes, `least` is above `greatest`.
    #[inline]
    pub fn of(addresses: &[u64; WARP_SIZE], lanes: LaneMask) -> Self {
        let join = |(every, any), &address| (every & address, any | address);
        let (least, greatest) = match lanes {
            LaneMask::ALL => addresses.iter().fold((u64::MAX, 0), join),
            some => some.iter().map(|lane| &addresses[lane]).fold((u64::MAX, 0), join),
        };
        Common { least, greatest }
    }

    /// Whether the addresses differ in none but their lowest `bits` bits.
    #[inline]
    pub fn is_within(&self, bits: u32) -> bool {
        (self.least ^ self.greatest) >> bits == 0
    }
}

/// Works out the lanes' addresses and the memory that each is in; the first fault, if any lane's access is misaligned or outside
/// everything allocated. `local_slot` is the warp's place in local memory, `clusters` knows the CTAs of its cluster.
pub fn generate(warp_inst: &mut WarpInst, local_slot: u64, clusters: &Clusters) -> Option<Box<Trap>> {
    let inst = warp_inst.inst();
    let (op, space, access) = (inst.op, inst.mods.space, inst.mods.access);
    if texture::is_texture(op) {
        return texture::generate(warp_inst);
    }
    work_out_addresses(warp_inst);
    let lanes = accessing_lanes(warp_inst);
    let bytes = if op == Opcode::Ldsm { 16 } else { access.total() };
    let remote = sort_by_space(warp_inst, space, lanes);
    if op == Opcode::Cctl {
        keep_lanes_in_memory(warp_inst, remote);
        place_local(warp_inst, local_slot);
        return None;
    }
    let fault = match op {
        Opcode::Ldc => check_constants(warp_inst, lanes, bytes),
        Opcode::Ldgsts => check_copy(warp_inst, lanes, bytes),
        _ => check(warp_inst, lanes, remote, bytes),
    };
    if let Some(fault) = fault {
        return Some(trap(warp_inst, &fault));
    }
    place_local(warp_inst, local_slot);
    for lane in remote.iter() {
        warp_inst.addresses[lane] = clusters.place(warp_inst, warp_inst.addresses[lane]);
    }
    None
}

/// The same for a load or store by offsets in shared memory, most of which are quick to check. Shared memory sees itself what halves
/// want, so that the addresses of such an access are not worked out.
pub fn generate_shared(warp_inst: &mut WarpInst) -> Option<Box<Trap>> {
    let mods = &warp_inst.inst().mods;
    let (offset, access) = (mods.offset, mods.access);
    let (bytes, own) = (access.total(), u64::from(warp_inst.grid.shared_bytes));
    (warp_inst.shared_lanes, warp_inst.local_lanes) = (warp_inst.lanes, LaneMask::NONE);
    if is_word(access)
        && let Some(halves) = halves_in_shared(warp_inst)
        && halves.is_aligned()
        && halves.bounds().1 <= own
    {
        return None;
    }
    let base = &warp_inst.operands.words[0];
    // Lanes that do not take part mostly have such addresses too.
    let greatest = narrow_addresses(base, offset, &mut warp_inst.addresses);
    if greatest & (bytes - 1) == 0 && u64::from(greatest) + u64::from(bytes) <= own {
        return None;
    }
    let fault = check(warp_inst, warp_inst.lanes, LaneMask::NONE, bytes)?;
    Some(trap(warp_inst, &fault))
}

/// The same for an access by addresses of device memory; what its halves want, if that is quick to see: then the addresses of a load
/// or store are not worked out.
pub fn generate_device(warp_inst: &mut WarpInst, clusters: &Clusters) -> Result<Option<Halves>, Box<Trap>> {
    let Some(halves) = halves_in_device(warp_inst) else {
        return generate(warp_inst, 0, clusters).map_or(Ok(None), Err);
    };
    (warp_inst.shared_lanes, warp_inst.local_lanes) = (LaneMask::NONE, LaneMask::NONE);
    if !matches!(warp_inst.inst().op, Opcode::Ld | Opcode::St) {
        work_out_addresses(warp_inst);
    }
    Ok(Some(halves))
}

/// What the halves of an access by offsets in shared memory want.
pub fn halves_in_shared(warp_inst: &WarpInst) -> Option<Halves> {
    let (offset, lanes) = (warp_inst.inst().mods.offset, warp_inst.lanes);
    Halves::narrow(&warp_inst.operands.words[0], offset, lanes)
}

/// What the halves of an access want, if that is words of one allocation.
fn halves_in_device(warp_inst: &WarpInst) -> Option<Halves> {
    let mods = &warp_inst.inst().mods;
    if !is_word(mods.access) {
        return None;
    }
    let (words, offset, lanes) = (&warp_inst.operands.words, mods.offset, warp_inst.lanes);
    let halves = Halves::wide(&words[0], &words[1], offset, lanes)?;
    let (first, end) = halves.bounds();
    let is_there = halves.is_aligned() && contains(&warp_inst.grid.allocations, first, end - first);
    is_there.then_some(halves)
}

/// Whether each lane's access is of one word, and not of elements in it.
pub fn is_word(access: Access) -> bool {
    (access.bytes, access.count) == (4, 1)
}

fn work_out_addresses(warp_inst: &mut WarpInst) {
    let program = &warp_inst.grid.program;
    let (inst, decoded) = (
        &program.code()[warp_inst.pc as usize],
        &program.decoded()[warp_inst.pc as usize],
    );
    addresses_into(inst, decoded, &warp_inst.operands, &mut warp_inst.addresses);
}

/// The lanes whose addresses count: for a matrix load those that name its rows.
pub fn accessing_lanes(warp_inst: &WarpInst) -> LaneMask {
    let inst = warp_inst.inst();
    if inst.op == Opcode::Ldsm {
        LaneMask::first(8 * u32::from(inst.mods.count))
    } else {
        warp_inst.lanes
    }
}

/// Notes which lanes are in the CTA's shared and in local memory, and makes their addresses offsets there; gives the lanes in other
/// CTAs' shared memory, whose addresses are then those of [`Space::Cluster`].
fn sort_by_space(warp_inst: &mut WarpInst, space: Space, lanes: LaneMask) -> LaneMask {
    warp_inst.shared_lanes = if space == Space::Shared { lanes } else { LaneMask::NONE };
    warp_inst.local_lanes = if space == Space::Local { lanes } else { LaneMask::NONE };
    let mut remote = LaneMask::NONE;
    let has_windows = match space {
        Space::Generic => Common::of(&warp_inst.addresses, lanes).greatest >= SHARED_WINDOW,
        Space::Cluster => true,
        _ => false,
    };
    if !has_windows {
        return remote;
    }
    for lane in lanes.iter() {
        let address = warp_inst.addresses[lane];
        let base = if space == Space::Cluster { 0 } else { SHARED_WINDOW };
        if address.wrapping_sub(base) < SHARED_WINDOWS_BYTES || space == Space::Cluster {
            warp_inst.addresses[lane] = address - base;
            match cluster::own_address(warp_inst, address - base) {
                Some(own) => {
                    warp_inst.addresses[lane] = own;
                    warp_inst.shared_lanes |= LaneMask::lane(lane);
                }
                None => remote |= LaneMask::lane(lane),
            }
        } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
            warp_inst.addresses[lane] = address - LOCAL_WINDOW;
            warp_inst.local_lanes |= LaneMask::lane(lane);
        }
    }
    remote
}

/// What is wrong with the accesses, if anything.
#[inline(never)]
fn check(warp_inst: &WarpInst, lanes: LaneMask, remote: LaneMask, bytes: u32) -> Option<Fault> {
    let at = &warp_inst.addresses;
    let common = Common::of(at, lanes);
    // Accesses are of 1, 2, 4, 8 or 16 bytes: one bit too low is that of some lane.
    if common.greatest & u64::from(bytes - 1) != 0
        && let Some(lane) = lanes.iter().find(|&lane| at[lane] & u64::from(bytes - 1) != 0)
    {
        return Some(fault(warp_inst, remote, TrapKind::Misaligned, lane, bytes));
    }
    let end = common.greatest.saturating_add(u64::from(bytes));
    let beyond = |lanes: LaneMask, size: u32| {
        // Mostly all lanes together are seen to be inside.
        (end > u64::from(size)).then(|| first_beyond(at, lanes, bytes, size))?
    };
    let shared = beyond(warp_inst.shared_lanes, warp_inst.grid.shared_bytes);
    let local = beyond(warp_inst.local_lanes, warp_inst.grid.program.requirements().local_bytes);
    let far = remote
        .iter()
        .find(|&lane| !cluster::holds(&warp_inst.grid, at[lane], bytes));
    let global = lanes & !(warp_inst.shared_lanes | warp_inst.local_lanes | remote);
    let outside = shared
        .or(local)
        .or(far)
        .or_else(|| first_outside_memory(&warp_inst.grid, at, global, bytes, &common));
    outside.map(|lane| fault(warp_inst, remote, TrapKind::OutOfBounds, lane, bytes))
}

/// Leaves the lanes of a prefetch whose address is in local or device memory: shared memory has no cache, and a prefetch of nothing
/// does nothing.
fn keep_lanes_in_memory(warp_inst: &mut WarpInst, remote: LaneMask) {
    let local_bytes = u64::from(warp_inst.grid.program.requirements().local_bytes);
    let is_there = |&lane: &usize| match warp_inst.local_lanes.contains(lane) {
        true => warp_inst.addresses[lane] < local_bytes,
        false => contains(&warp_inst.grid.allocations, warp_inst.addresses[lane], 1),
    };
    let cached = warp_inst.lanes & !(warp_inst.shared_lanes | remote);
    let kept = cached.iter().filter(is_there);
    warp_inst.lanes = kept.fold(LaneMask::NONE, |lanes, lane| lanes | LaneMask::lane(lane));
    warp_inst.local_lanes &= warp_inst.lanes;
    warp_inst.shared_lanes = LaneMask::NONE;
}

/// Where each lane reads in a constant bank.
fn check_constants(warp_inst: &WarpInst, lanes: LaneMask, bytes: u32) -> Option<Fault> {
    let bank = warp_inst.inst().mods.bank;
    let wrong = |lane: usize| warp_inst.grid.constant_fault(bank, warp_inst.addresses[lane], bytes);
    let (lane, kind) = lanes.iter().find_map(|lane| Some((lane, wrong(lane)?)))?;
    Some(Fault {
        kind,
        lane,
        address: warp_inst.addresses[lane],
        bytes,
        space: Grid::bank_name(bank),
    })
}

/// A copy reads as many bytes as its third operand says, and writes all of its size.
fn check_copy(warp_inst: &WarpInst, lanes: LaneMask, bytes: u32) -> Option<Fault> {
    let to = copy_destinations(&warp_inst.operands);
    let size = warp_inst.decoded().first_word[2] as usize;
    for lane in lanes.iter() {
        let read = warp_inst.operands.words[size].0[lane].min(bytes);
        let from = warp_inst.addresses[lane];
        let is_aligned = |address: u64| address.is_multiple_of(u64::from(bytes));
        let (address, space, kind) = if !is_aligned(from) {
            (from, "global", TrapKind::Misaligned)
        } else if read > 0 && !contains(&warp_inst.grid.allocations, from, u64::from(read)) {
            (from, "global", TrapKind::OutOfBounds)
        } else if !is_aligned(to[lane]) {
            (to[lane], "shared", TrapKind::Misaligned)
        } else if to[lane] + u64::from(bytes) > u64::from(warp_inst.grid.shared_bytes) {
            (to[lane], "shared", TrapKind::OutOfBounds)
        } else {
            continue;
        };
        return Some(Fault {
            kind,
            lane,
            address,
            bytes,
            space,
        });
    }
    None
}

fn fault(warp_inst: &WarpInst, remote: LaneMask, kind: TrapKind, lane: usize, bytes: u32) -> Fault {
    let space = if remote.contains(lane) {
        "shared::cluster"
    } else if warp_inst.shared_lanes.contains(lane) {
        "shared"
    } else if warp_inst.local_lanes.contains(lane) {
        "local"
    } else {
        "global"
    };
    Fault {
        kind,
        lane,
        address: warp_inst.addresses[lane],
        bytes,
        space,
    }
}

/// Local memory lies word by word: the same word of a warp's 32 lanes fills one line, so equal offsets coalesce.
fn place_local(warp_inst: &mut WarpInst, slot: u64) {
    let words = u64::from(warp_inst.grid.program.requirements().local_bytes.div_ceil(4));
    let base = warp_inst.grid.local_base + slot * words * LINE as u64;
    for lane in warp_inst.local_lanes.iter() {
        let offset = warp_inst.addresses[lane];
        warp_inst.addresses[lane] = base + offset / 4 * LINE as u64 + lane as u64 * 4 + offset % 4;
    }
}

/// The first lane whose bytes do not end before `size`.
fn first_beyond(addresses: &[u64; WARP_SIZE], lanes: LaneMask, bytes: u32, size: u32) -> Option<usize> {
    lanes
        .iter()
        .find(|&lane| addresses[lane] + u64::from(bytes) > u64::from(size))
}

/// The first lane whose bytes lie in no allocation. Lanes mostly lie in one: what they have in `common` tells, or their least and
/// greatest address.
fn first_outside_memory(
    grid: &Grid,
    addresses: &[u64; WARP_SIZE],
    lanes: LaneMask,
    bytes: u32,
    common: &Common,
) -> Option<usize> {
    let bytes = u64::from(bytes);
    let first = addresses[lanes.lowest()?];
    let is_one_place = |least: u64, greatest: u64| {
        let spread = greatest.saturating_sub(least);
        contains(&grid.allocations, least, spread.saturating_add(bytes))
    };
    if is_one_place(common.least, common.greatest) {
        return None;
    }
    let (least, greatest) = lanes.iter().fold((first, first), |(least, greatest), lane| {
        (least.min(addresses[lane]), greatest.max(addresses[lane]))
    });
    if is_one_place(least, greatest) {
        return None;
    }
    lanes
        .iter()
        .find(|&lane| !contains(&grid.allocations, addresses[lane], bytes))
}

/// Whether so many bytes from an address on lie in one allocation.
pub fn contains(allocations: &[(u64, u64)], address: u64, bytes: u64) -> bool {
    let n = allocations.partition_point(|&(first, _)| first <= address);
    n > 0 && {
        let (first, size) = allocations[n - 1];
        (address - first).saturating_add(bytes) <= size
    }
}

/// A trap of a texture's or surface's access; `address` is the handle or the place on the surface.
pub fn texture_trap(warp_inst: &WarpInst, kind: TrapKind, lane: usize, address: u64) -> Box<Trap> {
    let inst = warp_inst.inst();
    let fault = Fault {
        kind,
        lane,
        address,
        bytes: inst.mods.access.total(),
        space: if inst.op == Opcode::Tex { "texture" } else { "surface" },
    };
    trap(warp_inst, &fault)
}

fn trap(warp_inst: &WarpInst, fault: &Fault) -> Box<Trap> {
    Box::new(Trap {
        kind: fault.kind,
        pc: warp_inst.pc,
        line: warp_inst.inst().line,
        block: warp_inst.block,
        thread: warp_inst.thread(fault.lane),
        address: Some(fault.address),
        bytes: fault.bytes,
        space: fault.space,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_lanes_have_in_common_bounds_their_addresses(
            lanes in 1..=u32::MAX,
            base: u64,
            spread in 0..40u32,
            each: [u64; 32],
        ) {
            let addresses = each.map(|own| base ^ own & ((1 << spread) - 1));
            let lanes = LaneMask(lanes);
            let common = Common::of(&addresses, lanes);
            prop_assert!(lanes.iter().all(|lane| (common.least..=common.greatest).contains(&addresses[lane])));
            for bits in 0..64 {
                let blocks: BTreeSet<u64> = lanes.iter().map(|lane| addresses[lane] >> bits).collect();
                prop_assert_eq!(common.is_within(bits), blocks.len() == 1);
            }
        }
    }

    #[test]
    fn bytes_across_an_allocations_end_are_outside() {
        let allocations = [(0x1000, 100), (0x2000, 16)];
        assert!(contains(&allocations, 0x1000, 100));
        assert!(!contains(&allocations, 0x1000, 101));
        assert!(contains(&allocations, 0x1060, 4));
        assert!(!contains(&allocations, 0x1064, 1));
        assert!(!contains(&allocations, 0xfff, 1));
        assert!(contains(&allocations, 0x200f, 1));
        assert!(!contains(&allocations, 0x2008, u64::MAX));
    }
}
