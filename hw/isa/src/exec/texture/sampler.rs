//! Samplers of the program text.

use super::AddressMode;

/// A sampler of the program text, without an image: the modes of an initialised `.samplerref`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sampler {
    /// Rule for coordinates beyond the edge.
    pub address_mode: AddressMode,
    /// True if a fetch with float coordinates interpolates between neighbours.
    pub linear_filter: bool,
    /// True if coordinates count texels, whatever the image says.
    pub unnormalized: bool,
}

/// Marks a sampler in the high word of a handle. Numbers of images are smaller.
const SAMPLER: u32 = 1 << 31;

impl Sampler {
    /// Returns the high word of a handle with this sampler.
    ///
    /// ```
    /// use warpwave_isa::exec::texture::{AddressMode, Sampler};
    /// let sampler = Sampler { address_mode: AddressMode::Border, linear_filter: true, unnormalized: false };
    /// assert_eq!(Sampler::of_word(sampler.word()), Some(sampler));
    /// assert_eq!(Sampler::of_word(7), None);
    /// ```
    pub const fn word(self) -> u32 {
        SAMPLER | self.address_mode as u32 | (self.linear_filter as u32) << 2 | (self.unnormalized as u32) << 3
    }

    /// Returns the sampler in the high word of a handle. `None` for the number of an image.
    pub fn of_word(word: u32) -> Option<Sampler> {
        const MODES: [AddressMode; 4] = [
            AddressMode::Clamp,
            AddressMode::Wrap,
            AddressMode::Mirror,
            AddressMode::Border,
        ];
        (word & SAMPLER != 0).then(|| Sampler {
            address_mode: MODES[(word & 3) as usize],
            linear_filter: word & 4 != 0,
            unnormalized: word & 8 != 0,
        })
    }
}
