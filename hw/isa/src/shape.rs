//! Shapes and types of matrix products on the tensor cores.

use crate::inst::Ty;

macro_rules! shapes {
    ($first:ident $first_name:literal, $($shape:ident $name:literal,)+) => {
        /// Shape and types of a matrix product: mMnNkK, then the types of A and B. Equal types are named once.
        /// Single-bit shapes end with the operation that combines the bits. `Mods::ty` is the type of the accumulator.
        /// M8n8k4F16 is four products of eight lanes each.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        #[allow(missing_docs, reason = "the name says it")]
        pub enum MmaShape {
            #[default]
            $first,
            $($shape,)+
        }

        impl MmaShape {
            /// Every shape.
            pub const ALL: &[MmaShape] = &[MmaShape::$first, $(MmaShape::$shape,)+];
        }

        /// Name of each shape in assembly text.
        pub(crate) const NAMES: &[(MmaShape, &str)] = &[(MmaShape::$first, $first_name), $((MmaShape::$shape, $name),)+];
    };
}

shapes! {
    M16n8k16F16 "16816F16",
    M16n8k8F16 "1688F16",
    M16n8k16Bf16 "16816BF16",
    M16n8k8Tf32 "1688TF32",
    M16n8k4Tf32 "1684TF32",
    M16n8k32S8 "16832S8",
    M16n8k32U8 "16832U8",
    M8n8k4F64 "884F64",
    M16n8k16S8 "16816S8",
    M16n8k16U8 "16816U8",
    M16n8k8Bf16 "1688BF16",
    M16n8k16S8U8 "16816S8U8",
    M16n8k16U8S8 "16816U8S8",
    M16n8k32S8U8 "16832S8U8",
    M16n8k32U8S8 "16832U8S8",
    M16n8k32S4 "16832S4",
    M16n8k32U4 "16832U4",
    M16n8k32S4U4 "16832S4U4",
    M16n8k32U4S4 "16832U4S4",
    M16n8k64S4 "16864S4",
    M16n8k64U4 "16864U4",
    M16n8k64S4U4 "16864S4U4",
    M16n8k64U4S4 "16864U4S4",
    M16n8k128And "168128B1AND",
    M16n8k128Xor "168128B1XOR",
    M16n8k256And "168256B1AND",
    M16n8k256Xor "168256B1XOR",
    M16n8k32E4m3 "16832E4M3",
    M16n8k32E5m2 "16832E5M2",
    M16n8k32E4m3E5m2 "16832E4M3E5M2",
    M16n8k32E5m2E4m3 "16832E5M2E4M3",
    M8n8k4F16 "884F16",
}

/// Structure of a sparse A: which elements of a row are stored (PTX ISA, sparse matrix storage). The metadata has four bits per chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sparsity {
    /// One of two elements: `0b0100` for the first, `0b1110` for the second.
    OneOfTwo,
    /// Two of four elements: two bits for the place of each.
    TwoOfFour,
    /// Two of four pairs of neighbours: two bits for the place of each pair.
    TwoPairsOfFour,
}

impl Sparsity {
    /// Returns the column of stored element `n` of a row. `index` gives the four bits of a chunk.
    pub fn column(self, n: usize, index: impl Fn(usize) -> u32) -> usize {
        let place = |chunk: usize, n: usize| (index(chunk) >> (2 * n) & 3) as usize;
        match self {
            // The bits are the places of the element's two halves.
            Sparsity::OneOfTwo => 2 * n + place(n, 0) / 2,
            Sparsity::TwoOfFour => n / 2 * 4 + place(n / 2, n % 2),
            Sparsity::TwoPairsOfFour => n / 4 * 8 + 2 * place(n / 4, n / 2 % 2) + n % 2,
        }
    }
}

impl MmaShape {
    /// Returns the registers per lane of A, B and an unpacked accumulator (PTX ISA, fragments of mma.m16n8k*).
    ///
    /// Such an accumulator has 32 bits, or 64 in the f64 shape. The upper eight rows double A. A depth above 16 bytes doubles A and B.
    pub const fn words(self) -> (u8, u8, u8) {
        use MmaShape::*;
        match self {
            M8n8k4F64 | M8n8k4F16 => (2, 2, 4),
            M16n8k8F16 | M16n8k8Bf16 | M16n8k4Tf32 | M16n8k16S8 | M16n8k16U8 | M16n8k16S8U8 | M16n8k16U8S8 => (2, 1, 4),
            M16n8k32S4 | M16n8k32U4 | M16n8k32S4U4 | M16n8k32U4S4 | M16n8k128And | M16n8k128Xor => (2, 1, 4),
            // 16 rows and a depth above 16 bytes: both doublings.
            _ => (4, 2, 4),
        }
    }

    /// Returns the multiply-adds of one warp instruction. `M8n8k4F16` is four products, one for each quad pair of lanes.
    pub const fn multiply_adds(self) -> u32 {
        use MmaShape::*;
        let depth = match self {
            M8n8k4F64 => return 8 * 8 * 4,
            M8n8k4F16 => return 4 * 8 * 8 * 4,
            M16n8k4Tf32 => 4,
            M16n8k8F16 | M16n8k8Bf16 | M16n8k8Tf32 => 8,
            M16n8k16F16 | M16n8k16Bf16 | M16n8k16S8 | M16n8k16U8 | M16n8k16S8U8 | M16n8k16U8S8 => 16,
            M16n8k32S8 | M16n8k32U8 | M16n8k32S8U8 | M16n8k32U8S8 => 32,
            M16n8k32S4 | M16n8k32U4 | M16n8k32S4U4 | M16n8k32U4S4 => 32,
            M16n8k32E4m3 | M16n8k32E5m2 | M16n8k32E4m3E5m2 | M16n8k32E5m2E4m3 => 32,
            M16n8k64S4 | M16n8k64U4 | M16n8k64S4U4 | M16n8k64U4S4 => 64,
            M16n8k128And | M16n8k128Xor => 128,
            M16n8k256And | M16n8k256Xor => 256,
        };
        16 * 8 * depth
    }

    /// Returns the structure of a sparse A, if this is the shape of its stored half. `None` for a shape without a sparse form.
    pub const fn sparsity(self) -> Option<Sparsity> {
        use MmaShape::*;
        match self {
            M16n8k4Tf32 | M16n8k8Tf32 => Some(Sparsity::OneOfTwo),
            M16n8k32S4 | M16n8k32U4 | M16n8k32S4U4 | M16n8k32U4S4 => Some(Sparsity::TwoPairsOfFour),
            M16n8k64S4 | M16n8k64U4 | M16n8k64S4U4 | M16n8k64U4S4 => Some(Sparsity::TwoPairsOfFour),
            M8n8k4F64 | M8n8k4F16 | M16n8k128And | M16n8k128Xor | M16n8k256And | M16n8k256Xor => None,
            _ => Some(Sparsity::TwoOfFour),
        }
    }

    /// Returns the lanes of each group of four that hold the metadata of a sparse A with this stored half: 1, 2 or 4.
    pub const fn metadata_lanes(self) -> u8 {
        let stored = self.multiply_adds() / (16 * 8);
        // A lane has eight indices of four bits. A group of lanes has two rows.
        let indices = match self.sparsity() {
            Some(Sparsity::OneOfTwo) => stored,
            Some(Sparsity::TwoOfFour) => stored / 2,
            Some(Sparsity::TwoPairsOfFour) => stored / 4,
            None => 0,
        };
        (2 * indices / 8) as u8
    }

    /// Returns the registers per lane of the accumulator, of type `ty`. Two halves share a register.
    pub const fn accumulator_words(self, ty: Ty) -> u8 {
        let (_, _, unpacked) = self.words();
        if self.has_half_accumulators(ty) {
            unpacked / 2
        } else {
            unpacked
        }
    }

    /// True if the factors and the sums are integers.
    pub const fn has_integers(self) -> bool {
        use MmaShape::*;
        !matches!(
            self,
            M8n8k4F64
                | M8n8k4F16
                | M16n8k16F16
                | M16n8k8F16
                | M16n8k16Bf16
                | M16n8k8Bf16
                | M16n8k8Tf32
                | M16n8k4Tf32
                | M16n8k32E4m3
                | M16n8k32E5m2
                | M16n8k32E4m3E5m2
                | M16n8k32E5m2E4m3
        )
    }

    /// True if type `ty` gives this shape half accumulators. Only products of f16 and of 8-bit floats have them.
    pub const fn has_half_accumulators(self, ty: Ty) -> bool {
        use MmaShape::*;
        let allows_halves = matches!(
            self,
            M16n8k16F16 | M16n8k8F16 | M8n8k4F16 | M16n8k32E4m3 | M16n8k32E5m2 | M16n8k32E4m3E5m2 | M16n8k32E5m2E4m3
        );
        allows_halves && matches!(ty, Ty::F16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_a_chunk_names_its_columns() {
        // The rows of PTX ISA figures: elements 1 and 3 of the second chunk, the second of two, the first and last pair of four.
        let two_of_four = [4, 5].map(|n| Sparsity::TwoOfFour.column(n, |chunk| [0b0100, 0b1001, 0b1101][chunk]));
        assert_eq!(two_of_four, [8 + 1, 8 + 3]);
        assert_eq!(
            [0, 1].map(|n| Sparsity::OneOfTwo.column(n, |chunk| [0b0100, 0b1110][chunk])),
            [0, 3]
        );
        let pairs = [0, 1, 2, 3].map(|n| Sparsity::TwoPairsOfFour.column(n, |_| 0b1100));
        assert_eq!(pairs, [0, 1, 6, 7]);
    }

    /// Lanes that contribute metadata, by the shape with the whole depth (PTX ISA, sparse matrix storage).
    #[test]
    fn metadata_lanes_are_those_of_the_isa() {
        use MmaShape::*;
        for (lanes, shapes) in [
            (1, [M16n8k8F16, M16n8k8Bf16, M16n8k4Tf32]),
            (2, [M16n8k16F16, M16n8k16Bf16, M16n8k8Tf32]),
            (2, [M16n8k16S8, M16n8k16U8, M16n8k32S4]),
            (4, [M16n8k32S8, M16n8k32E4m3, M16n8k64U4]),
        ] {
            assert_eq!(shapes.map(MmaShape::metadata_lanes), [lanes; 3], "{shapes:?}");
        }
        assert_eq!(M8n8k4F64.metadata_lanes(), 0);
    }

    #[test]
    fn integers_are_signed_unsigned_or_single_bits() {
        for shape in MmaShape::ALL {
            let name = format!("{shape:?}");
            // After the k of the name: the types of the factors, or the operation on single bits.
            let is_integer = ["S4", "U4", "S8", "U8", "And", "Xor"]
                .iter()
                .any(|ty| name.ends_with(ty));
            assert_eq!(shape.has_integers(), is_integer, "{name}");
        }
    }

    #[test]
    fn multiply_adds_are_the_product_of_the_sizes_in_the_name() {
        for shape in MmaShape::ALL {
            let name = format!("{shape:?}");
            let sizes: Vec<u32> = name
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|size| size.parse().ok())
                .take(3)
                .collect();
            let products = if *shape == MmaShape::M8n8k4F16 { 4 } else { 1 };
            assert_eq!(
                shape.multiply_adds(),
                products * sizes.iter().product::<u32>(),
                "{name}"
            );
        }
    }
}
