//! Textures and surfaces of the reference, lane by lane.

use warpwave_components::proto::launch::{Trap, TrapKind};
use warpwave_isa::exec::Results;
use warpwave_isa::exec::access::{load_words, store_bytes};
use warpwave_isa::exec::texture::{
    BoundaryMode, FetchMode, MAX_TEXELS, TexCoord, Texture, fetch_result, surface_address, texels,
};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

use super::access::{Lsu, set_words};
use super::race_detector::{Kind, Strength};

impl Lsu<'_, '_> {
    /// Executes TEX, SULD or SUST in one lane. A trap without an address names the first coordinate.
    pub(super) fn image(&mut self, lane: usize, results: &mut Results) -> Result<(), Box<Trap>> {
        let handle = u64::from(self.word(0, 1, lane)) << 32 | u64::from(self.word(0, 0, lane));
        let Some(image) = Texture::of_handle(&self.cta.grid.textures, handle) else {
            return Err(self.trap(lane, TrapKind::OutOfBounds, Space::Global, handle, 0));
        };
        let at = TexCoord::of(&self.inst.mods, |n| self.word(1, n, lane));
        match self.inst.op {
            Opcode::Tex => self.sample(lane, &image, &at, results),
            _ => self.on_surface(lane, &image, &at, results),
        }
        .map_or_else(|kind| Err(self.trap(lane, kind, Space::Global, at.at[0].into(), 0)), Ok)
    }

    /// Fetches the texels of TEX, and filters them.
    fn sample(&mut self, lane: usize, image: &Texture, at: &TexCoord, results: &mut Results) -> Result<(), TrapKind> {
        let mods = self.inst.mods;
        let mode = FetchMode::of(mods.lut);
        let (found, n) = texels(image, at, mods.from != Ty::F32, mode);
        let mut bytes = [[0; 16]; MAX_TEXELS];
        let size = image.texel_bytes() as usize;
        for (texel, bytes) in found[..n].iter().zip(&mut bytes) {
            if let Some(address) = texel.address {
                self.show_to_global(lane, (Kind::Read, Strength::Weak), address, size, None);
                let read = self.memory.get(address, size).ok_or(TrapKind::OutOfBounds)?;
                bytes[..size].copy_from_slice(read);
            }
        }
        let words = fetch_result(image, &found[..n], &bytes[..n], mods.ty == Ty::F32, mode);
        for (result, word) in results.words.iter_mut().zip(words) {
            result.0[lane] = word;
        }
        Ok(())
    }

    /// Executes SULD or SUST.
    fn on_surface(
        &mut self,
        lane: usize,
        image: &Texture,
        at: &TexCoord,
        results: &mut Results,
    ) -> Result<(), TrapKind> {
        let access = self.inst.mods.access;
        let n = access.total() as usize;
        let address = surface_address(image, at, access.total(), BoundaryMode::of(self.inst.mods.lut));
        let address = address.map_err(|_| TrapKind::OutOfBounds)?;
        if address.is_some_and(|address| !address.is_multiple_of(n as u64)) {
            return Err(TrapKind::Misaligned);
        }
        // A store has its data in operand 2. A load does not use the words.
        let values = self.words(2 * usize::from(self.inst.op == Opcode::Sust), lane, access);
        let stored = (self.inst.op == Opcode::Sust).then(|| store_bytes(access, values));
        if let Some(address) = address {
            let kind = if stored.is_some() { Kind::Write } else { Kind::Read };
            let new = stored.as_ref().map(|bytes| &bytes[..n]);
            self.show_to_global(lane, (kind, Strength::Weak), address, n, new);
        }
        let place = match address {
            Some(address) => Some(self.memory.get_mut(address, n).ok_or(TrapKind::OutOfBounds)?),
            None => None,
        };
        match (self.inst.op, place) {
            (Opcode::Sust, Some(place)) => place.copy_from_slice(&store_bytes(access, values)[..n]),
            (Opcode::Suld, Some(place)) => set_words(results, lane, access, load_words(access, place)),
            // Beyond the edge in mode `.zero`: a load reads zeros, and a store writes nothing.
            (Opcode::Suld, None) => set_words(results, lane, access, [0; 4]),
            _ => {}
        }
        Ok(())
    }
}
