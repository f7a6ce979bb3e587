//! Textures and surfaces: computes the texels of each lane, takes them from the responses, and filters them at the end.
//!
//! A fetch goes through the L1 like a load, with one group of packets per texel of a lane. Bilinear filtering needs 4 texels, in three
//! dimensions 8. Each lane has the image of its own handle. Lanes with different handles coalesce apart. Assumed: the descriptor of an image hits in its cache, and filtering takes no cycles. A surface access is a load or store
//! at the coordinates of each lane.

use warpwave_isa::exec::access::load_words;
use warpwave_isa::exec::texture::{
    BoundaryMode, FetchMode, MAX_TEXELS, TexCoord, Texel, Texture, fetch_result, surface_address, texels,
};
use warpwave_isa::inst::Ty;
use warpwave_isa::lane::{LaneMask, WARP_SIZE};
use warpwave_isa::opcode::Opcode;

use crate::proto::addresses::WarpAddresses;
use crate::proto::launch::{Trap, TrapKind};
use crate::proto::mem::Packet;
use crate::proto::warp::{Fetch, WarpInst};
use crate::sm::lsu::coalescer::{CoalescedAccess, coalesce};
use crate::sm::lsu::fault::Fault;

/// True for an instruction with the handle of a texture or surface.
pub fn is_texture(op: Opcode) -> bool {
    matches!(op, Opcode::Tex | Opcode::Suld | Opcode::Sust)
}

/// Computes the texels or the surface address of each lane. Returns the trap of the first lane outside a surface, if the instruction traps
/// there, or of a handle without an image.
pub fn generate(warp_inst: &mut WarpInst) -> Option<Box<Trap>> {
    (warp_inst.shared_lanes, warp_inst.local_lanes) = (LaneMask::NONE, LaneMask::NONE);
    // The box is reused with its instruction: texels are large, and few instructions have any.
    let mut fetch = warp_inst.fetch.take().unwrap_or_default();
    fetch.n = 0;
    let fault = generate_texels(warp_inst, &mut fetch);
    warp_inst.fetch = Some(fetch);
    fault.map(|fault| fault.trap(warp_inst))
}

/// The handle of a lane.
fn handle(warp_inst: &WarpInst, lane: usize) -> u64 {
    let [low, high] = [0, 1].map(|n| warp_inst.operands.words[n].0[lane]);
    u64::from(high) << 32 | u64::from(low)
}

/// The image of a lane's handle, if there is one.
fn texture_of(warp_inst: &WarpInst, lane: usize) -> Option<Texture> {
    Texture::of_handle(&warp_inst.grid.textures, handle(warp_inst, lane))
}

/// A fault of a texture or surface access. `address` is the handle, or the first coordinate.
fn fault(warp_inst: &WarpInst, kind: TrapKind, lane: usize, address: u64) -> Fault {
    let inst = warp_inst.inst();
    let space = if inst.op == Opcode::Tex { "texture" } else { "surface" };
    Fault::new(kind, lane, address, inst.mods.access.total(), space)
}

fn generate_texels(warp_inst: &mut WarpInst, fetch: &mut Fetch) -> Option<Fault> {
    let inst = *warp_inst.inst();
    let first = warp_inst.decoded().first_word[1] as usize;
    let bytes = inst.mods.access.total();
    for lane in warp_inst.lanes.iter() {
        let Some(texture) = &texture_of(warp_inst, lane) else {
            return Some(fault(warp_inst, TrapKind::OutOfBounds, lane, handle(warp_inst, lane)));
        };
        let coord = TexCoord::of(&inst.mods, |n| warp_inst.operands.words[first + n].0[lane]);
        if inst.op == Opcode::Tex {
            let n;
            (fetch.texels[lane], n) = texels(texture, &coord, inst.mods.from != Ty::F32, FetchMode::of(inst.mods.lut));
            fetch.lane_texels[lane] = n as u8;
            fetch.n = fetch.n.max(n);
            continue;
        }
        let Ok(address) = surface_address(texture, &coord, bytes, BoundaryMode::of(inst.mods.lut)) else {
            return Some(fault(warp_inst, TrapKind::OutOfBounds, lane, coord.at[0].into()));
        };
        if address.is_some_and(|address| !address.is_multiple_of(u64::from(bytes))) {
            return Some(fault(warp_inst, TrapKind::Misaligned, lane, coord.at[0].into()));
        }
        match (inst.op, address) {
            (Opcode::Sust, Some(address)) => warp_inst.addresses.set(lane, address),
            // A store outside the surface is dropped.
            (Opcode::Sust, None) => warp_inst.lanes &= !LaneMask::lane(lane),
            _ => {
                (fetch.n, fetch.lane_texels[lane]) = (1, 1);
                fetch.texels[lane][0] = Texel { address, weight: 1.0 };
                // A load outside the surface returns 0.
                fetch.bytes[lane][0] = [0; 16];
            }
        }
    }
    None
}

/// Coalesces texel `n` of each lane.
pub fn coalesce_texel(warp_inst: &WarpInst, n: usize, access: &mut CoalescedAccess) {
    let mut addresses = [0; WARP_SIZE];
    let texel = |lane: usize| {
        let fetch = warp_inst.fetch.as_ref()?;
        fetch.texels[lane][..usize::from(fetch.lane_texels[lane])]
            .get(n)?
            .address
    };
    // A texel outside the image has no address.
    let mut rest = warp_inst.lanes.filter(|lane| {
        addresses[lane] = texel(lane).unwrap_or(0);
        texel(lane).is_some()
    });
    let addresses = WarpAddresses::per_lane(addresses);
    // One pass for each handle: images can have texels of different sizes.
    while let Some(lane) = rest.lowest() {
        let bytes = match (warp_inst.inst().op, texture_of(warp_inst, lane)) {
            (Opcode::Tex, Some(texture)) => texture.texel_bytes(),
            _ => warp_inst.inst().mods.access.total(),
        };
        let same = rest.filter(|other| handle(warp_inst, other) == handle(warp_inst, lane));
        coalesce(&addresses, same, bytes, access);
        rest &= !same;
    }
}

/// Stores the texels of a response.
pub fn take_texels(warp_inst: &mut WarpInst, packet: &Packet) {
    let Some(fetch) = &mut warp_inst.fetch else { return };
    for lane in warp_inst.lanes.iter() {
        for n in 0..usize::from(fetch.lane_texels[lane]) {
            let address = fetch.texels[lane][n].address;
            if let Some(offset) = address.and_then(|address| packet.offset_of(address)) {
                // A texel has at most 16 bytes: those beyond it are not used.
                let end = (offset + 16).min(packet.bytes.len());
                fetch.bytes[lane][n][..end - offset].copy_from_slice(&packet.bytes[offset..end]);
            }
        }
    }
}

/// Computes the results from the texels: filters a fetch.
pub fn finish(warp_inst: &mut WarpInst) {
    let inst = *warp_inst.inst();
    let Some(fetch) = &warp_inst.fetch else { return };
    for lane in warp_inst.lanes.iter() {
        let Some(texture) = texture_of(warp_inst, lane) else {
            return;
        };
        let n = usize::from(fetch.lane_texels[lane]);
        let (texels, bytes) = (&fetch.texels[lane][..n], &fetch.bytes[lane][..n]);
        let words = match inst.op {
            Opcode::Tex => fetch_result(
                &texture,
                texels,
                bytes,
                inst.mods.ty == Ty::F32,
                FetchMode::of(inst.mods.lut),
            ),
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

const _: () = assert!(MAX_TEXELS == 8, "the module doc counts texels");
