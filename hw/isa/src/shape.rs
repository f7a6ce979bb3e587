//! The shapes and types of the tensor cores' products.

macro_rules! shapes {
    ($first:ident $first_name:literal, $($shape:ident $name:literal,)+) => {
        /// The shape and types of a tensor-core product: mMnNkK and the types of A and B, one name where they are alike; single bits as
        /// they are joined. The accumulator's type is `Mods::ty`. M8n8k4F16 is four products, each of eight lanes.
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

        /// As they are printed.
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

impl MmaShape {
    /// Registers per lane of A, B and the accumulator (PTX ISA, fragments of mma.m16n8k*): accumulators are 32-bit, f64 for one shape;
    /// the upper half of the rows doubles A, and depth beyond 16 bytes doubles both.
    pub const fn words(self) -> (u8, u8, u8) {
        use MmaShape::*;
        match self {
            M8n8k4F64 | M8n8k4F16 => (2, 2, 4),
            M16n8k8F16 | M16n8k8Bf16 | M16n8k4Tf32 | M16n8k16S8 | M16n8k16U8 | M16n8k16S8U8 | M16n8k16U8S8 => (2, 1, 4),
            M16n8k32S4 | M16n8k32U4 | M16n8k32S4U4 | M16n8k32U4S4 | M16n8k128And | M16n8k128Xor => (2, 1, 4),
            _ => (4, 2, 4),
        }
    }
}
