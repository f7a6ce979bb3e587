//! The address generation unit: where each lane's access lies, and whether it may.

use warpwave_isa::exec::access::addresses;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

use crate::proto::launch::{Grid, Trap, TrapKind};
use crate::proto::warp::Flight;

/// Works out the lanes' addresses; the first fault, if any lane's access is misaligned or outside everything allocated.
pub fn generate(flight: &mut Flight) -> Option<Box<Trap>> {
    let inst = &flight.grid.program.code()[flight.pc as usize];
    let decoded = &flight.grid.program.decoded()[flight.pc as usize];
    flight.addresses = addresses(inst, decoded, &flight.operands);
    let bytes = if inst.op == Opcode::Ldsm {
        16
    } else {
        inst.mods.access.total()
    };
    let lanes = accessing_lanes(flight);
    let misaligned = lanes
        .iter()
        .find(|&lane| flight.addresses[lane] % u64::from(bytes) != 0);
    if let Some(lane) = misaligned {
        return Some(trap(flight, TrapKind::Misaligned, lane, bytes));
    }
    let outside = match inst.mods.space {
        Space::Global => first_outside_memory(&flight.grid, &flight.addresses, lanes, bytes),
        Space::Shared => lanes
            .iter()
            .find(|&l| flight.addresses[l] + u64::from(bytes) > u64::from(flight.grid.shared_bytes)),
        Space::Const | Space::Local | Space::Generic => None,
    };
    outside.map(|lane| trap(flight, TrapKind::OutOfBounds, lane, bytes))
}

/// The lanes whose addresses count: for a matrix load those that name its rows.
pub fn accessing_lanes(flight: &Flight) -> LaneMask {
    let inst = flight.inst();
    if inst.op == Opcode::Ldsm {
        LaneMask::first(8 * u32::from(inst.mods.count))
    } else {
        flight.lanes
    }
}

/// The first lane whose bytes lie in no allocation. Lanes mostly lie in one: their least and greatest address decide.
fn first_outside_memory(grid: &Grid, addresses: &[u64; 32], lanes: LaneMask, bytes: u32) -> Option<usize> {
    let bytes = u64::from(bytes);
    let first = addresses[lanes.lowest()?];
    let (least, greatest) = lanes.iter().fold((first, first), |(least, greatest), lane| {
        (least.min(addresses[lane]), greatest.max(addresses[lane]))
    });
    if contains(&grid.allocations, least, (greatest - least).saturating_add(bytes)) {
        return None;
    }
    lanes
        .iter()
        .find(|&lane| !contains(&grid.allocations, addresses[lane], bytes))
}

fn contains(allocations: &[(u64, u64)], address: u64, bytes: u64) -> bool {
    let n = allocations.partition_point(|&(first, _)| first <= address);
    n > 0 && {
        let (first, size) = allocations[n - 1];
        (address - first).saturating_add(bytes) <= size
    }
}

fn trap(flight: &Flight, kind: TrapKind, lane: usize, bytes: u32) -> Box<Trap> {
    let inst = flight.inst();
    let space = match inst.mods.space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Const => "const",
        Space::Generic => "generic",
    };
    Box::new(Trap {
        kind,
        pc: flight.pc,
        line: inst.line,
        block: flight.block,
        thread: flight.thread(lane),
        address: Some(flight.addresses[lane]),
        bytes,
        space,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
