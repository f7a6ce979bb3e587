//! Textures and surfaces in the LSU: the texels that lanes want, gathered from the packets that bring them, and mixed at the end.
//!
//! A fetch goes through the L1 like a load, once for each texel that a lane mixes: the four around a point take four passes, the eight in space eight. The
//! descriptor of an image is at hand (a hit in the header cache is assumed), filtering adds no cycle to the last texel's (assumed).
//! A warp's lanes use one handle; a surface access is a load or store at the place that the lanes name.

use warpwave_isa::exec::access::load_words;
use warpwave_isa::exec::texture::{
    BoundaryMode, FetchMode, MAX_TEXELS, TexCoord, Texel, Texture, fetch_result, surface_address, texels,
};
use warpwave_isa::inst::Ty;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Opcode;

use super::agu;
use super::coalescer::Parts;
use crate::proto::launch::{Trap, TrapKind};
use crate::proto::mem::Packet;
use crate::proto::warp::{Fetch, WarpInst};

/// Whether a row goes by a texture's or surface's handle.
pub fn is_texture(op: Opcode) -> bool {
    matches!(op, Opcode::Tex | Opcode::Suld | Opcode::Sust)
}

/// Works out what each lane wants; the first fault, if a lane is beyond a surface that traps, or if there is no such image.
pub fn generate(warp_inst: &mut WarpInst) -> Option<Box<Trap>> {
    (warp_inst.shared_lanes, warp_inst.local_lanes) = (LaneMask::NONE, LaneMask::NONE);
    let mut fetch = warp_inst.fetch.take().unwrap_or_default();
    fetch.n = 0;
    let trap = match texture_of(warp_inst) {
        Ok(texture) => want(warp_inst, &texture, &mut fetch),
        Err(trap) => trap,
    };
    warp_inst.fetch = Some(fetch);
    trap
}

/// The image that the lanes' handle means. `Err` holds a trap, or nothing where no lane asks.
fn texture_of(warp_inst: &WarpInst) -> Result<Texture, Option<Box<Trap>>> {
    let lane = warp_inst.lanes.lowest().ok_or(None)?;
    let [low, high] = [0, 1].map(|n| warp_inst.operands.words[n].0[lane]);
    let handle = u64::from(high) << 32 | u64::from(low);
    let index = handle.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    let found = index.and_then(|index| warp_inst.grid.textures.get(index));
    found
        .copied()
        .ok_or_else(|| Some(agu::texture_trap(warp_inst, TrapKind::OutOfBounds, lane, handle)))
}

fn want(warp_inst: &mut WarpInst, texture: &Texture, fetch: &mut Fetch) -> Option<Box<Trap>> {
    let inst = *warp_inst.inst();
    let first = warp_inst.decoded().first_word[1] as usize;
    let bytes = inst.mods.access.total();
    for lane in warp_inst.lanes.iter() {
        let at = TexCoord::of(&inst.mods, |n| warp_inst.operands.words[first + n].0[lane]);
        if inst.op == Opcode::Tex {
            (fetch.texels[lane], fetch.n) =
                texels(texture, &at, inst.mods.from != Ty::F32, FetchMode::of(inst.mods.lut));
            continue;
        }
        let Ok(address) = surface_address(texture, &at, bytes, BoundaryMode::of(inst.mods.lut)) else {
            return Some(agu::texture_trap(
                warp_inst,
                TrapKind::OutOfBounds,
                lane,
                u64::from(at.at[0]),
            ));
        };
        if address.is_some_and(|address| !address.is_multiple_of(u64::from(bytes))) {
            return Some(agu::texture_trap(
                warp_inst,
                TrapKind::Misaligned,
                lane,
                u64::from(at.at[0]),
            ));
        }
        match (inst.op, address) {
            (Opcode::Sust, Some(address)) => warp_inst.addresses[lane] = address,
            (Opcode::Sust, None) => warp_inst.lanes &= !LaneMask::lane(lane),
            _ => {
                fetch.n = 1;
                fetch.texels[lane][0] = Texel { address, weight: 1.0 };
                fetch.bytes[lane][0] = [0; 16];
            }
        }
    }
    None
}

/// Adds the packets for texel `n` of every lane.
pub fn add_parts(parts: &mut Parts, warp_inst: &WarpInst, n: usize) {
    let Some(fetch) = &warp_inst.fetch else { return };
    let bytes = match (warp_inst.inst().op, texture_of(warp_inst)) {
        (Opcode::Tex, Ok(texture)) => texture.texel_bytes(),
        _ => warp_inst.inst().mods.access.total(),
    };
    let mut addresses = [0; WARP_SIZE];
    let mut lanes = LaneMask::NONE;
    for lane in warp_inst.lanes.iter().filter(|_| n < fetch.n) {
        if let Some(address) = fetch.texels[lane][n].address {
            addresses[lane] = address;
            lanes |= LaneMask::lane(lane);
        }
    }
    parts.add(&addresses, lanes, bytes);
}

/// Takes what an answered packet brings of the lanes' texels.
pub fn fill(warp_inst: &mut WarpInst, packet: &Packet) {
    let Some(fetch) = &mut warp_inst.fetch else { return };
    for lane in warp_inst.lanes.iter() {
        for n in 0..fetch.n {
            let offset = fetch.texels[lane][n]
                .address
                .and_then(|address| super::data::offset_in(packet, address));
            if let Some(offset) = offset {
                let end = (offset + 16).min(packet.bytes.len());
                fetch.bytes[lane][n][..end - offset].copy_from_slice(&packet.bytes[offset..end]);
            }
        }
    }
}

/// Makes results of the texels.
pub fn finish(warp_inst: &mut WarpInst) {
    let inst = *warp_inst.inst();
    let Ok(texture) = texture_of(warp_inst) else { return };
    let Some(fetch) = &warp_inst.fetch else { return };
    for lane in warp_inst.lanes.iter() {
        let words = match inst.op {
            Opcode::Tex => {
                let (texels, bytes) = (&fetch.texels[lane][..fetch.n], &fetch.bytes[lane][..fetch.n]);
                fetch_result(
                    &texture,
                    texels,
                    bytes,
                    inst.mods.ty == Ty::F32,
                    FetchMode::of(inst.mods.lut),
                )
            }
            _ => load_words(
                inst.mods.access,
                &fetch.bytes[lane][0][..inst.mods.access.total() as usize],
            ),
        };
        for (n, word) in words.into_iter().enumerate() {
            warp_inst.results.words[n].0[lane] = word;
        }
    }
}

const _: () = assert!(MAX_TEXELS == 8, "the module doc counts passes");
