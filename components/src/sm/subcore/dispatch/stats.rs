//! Counters of a dispatch unit.

use warpwave_hw::stats::Report;
use warpwave_isa::inst::{Inst, Source, Ty};
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::reg::Special;

/// Counters of a dispatch unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Instructions sent into pipes.
    pub instructions: u64,
    /// Active lanes of these instructions whose guard holds, by class of the instruction.
    lanes: [u64; CLASSES],
    /// Multiply-adds of matrix products.
    tensor_multiply_adds: u64,
    /// Operations on half-precision floats outside the tensor pipe. A multiply-add is two.
    half_operations: u64,
    /// Reads of a clock. A warp that reads one may leave its loop after any number of turns.
    clock_reads: u64,
    /// Cycles lost to register-bank conflicts.
    pub bank_conflict_cycles: u64,
    /// Results written.
    pub writebacks: u64,
}

/// Names of the counters of lanes, by class.
const NAMES: [&str; CLASSES] = [
    "lanes_fadd",
    "lanes_fmul",
    "lanes_ffma",
    "lanes_fp32",
    "lanes_hadd",
    "lanes_hmul",
    "lanes_hfma",
    "lanes_fp16",
    "lanes_dadd",
    "lanes_dmul",
    "lanes_dfma",
    "lanes_fp64",
    "lanes_integer",
    "lanes_bit",
    "lanes_conversion",
    "lanes_memory",
    "lanes_exchange",
    "lanes_control",
    "lanes_tensor",
    "lanes_misc",
];

/// Number of instruction classes.
const CLASSES: usize = 20;

/// Class of the matrix products.
const TENSOR: usize = 18;

/// Classes of the half-precision adds, multiplies and multiply-adds.
const HALF_ADD: usize = 4;
const HALF_MULTIPLY: usize = 5;
const HALF_FUSED: usize = 6;

/// Class of each opcode, in table order.
const CLASS_OF: [u8; Opcode::ALL.len()] = {
    let mut classes = [0; Opcode::ALL.len()];
    let mut n = 0;
    // A constant's initializer cannot use a `for` loop.
    while n < classes.len() {
        classes[n] = class(Opcode::ALL[n]) as u8;
        n += 1;
    }
    classes
};

/// Class of an opcode: an index in [`NAMES`].
const fn class(op: Opcode) -> usize {
    match op {
        Opcode::Fadd => 0,
        Opcode::Fmul => 1,
        Opcode::Ffma => 2,
        Opcode::Fmnmx | Opcode::Fsetp | Opcode::Mufu | Opcode::Fchk => 3,
        Opcode::Hadd2 => HALF_ADD,
        Opcode::Hmul2 => HALF_MULTIPLY,
        Opcode::Hfma2 => HALF_FUSED,
        Opcode::Hmnmx2 | Opcode::Hsetp2 => 7,
        Opcode::Dadd => 8,
        Opcode::Dmul => 9,
        Opcode::Dfma => 10,
        Opcode::Dmnmx | Opcode::Dsetp => 11,
        Opcode::Iadd3 | Opcode::Lea | Opcode::Imnmx | Opcode::Isetp | Opcode::Iabs => 12,
        Opcode::Viaddmnmx | Opcode::Vimnmx3 => 12,
        // By operation, not by pipe: IMAD runs in the FP32 pipe.
        Opcode::Imad | Opcode::ImadWide | Opcode::Idp4a | Opcode::Vabsdiff4 => 12,
        Opcode::Lop3 | Opcode::Shf | Opcode::Bfe | Opcode::Bfi | Opcode::Popc | Opcode::Flo | Opcode::Brev => 13,
        Opcode::I2i | Opcode::I2f | Opcode::F2i | Opcode::F2f | Opcode::F2fp => 14,
        Opcode::Shfl | Opcode::Vote | Opcode::Match | Opcode::Redux => 16,
        _ => match op.info().pipe {
            Pipe::Lsu => 15,
            Pipe::Control => 17,
            Pipe::Tensor => TENSOR,
            _ => 19,
        },
    }
}

impl Stats {
    /// Counts an instruction that is sent into a pipe with `lanes` lanes.
    #[inline]
    pub(super) fn count(&mut self, inst: &Inst, lanes: u32) {
        let class = usize::from(CLASS_OF[inst.op as usize]);
        self.instructions += 1;
        self.lanes[class] += u64::from(lanes);
        if class == TENSOR && lanes > 0 {
            self.tensor_multiply_adds += u64::from(inst.mods.mma.multiply_adds());
        }
        if matches!(class, HALF_ADD | HALF_MULTIPLY | HALF_FUSED) {
            let halves = if matches!(inst.mods.ty, Ty::F16x2 | Ty::Bf16x2) {
                2
            } else {
                1
            };
            let operations = if class == HALF_FUSED { 2 } else { 1 };
            self.half_operations += u64::from(lanes * halves * operations);
        }
        if inst.op == Opcode::S2r {
            self.clock_reads += u64::from(reads_clock(inst));
        }
    }

    /// Reports every counter.
    pub(super) fn report(&self, report: &mut dyn Report) {
        report.count("inst_executed", self.instructions);
        report.count("thread_inst_pred_on", self.lanes.iter().sum());
        report.count("bank_conflict_cycles", self.bank_conflict_cycles);
        report.count("writebacks", self.writebacks);
        report.count("tensor_multiply_adds", self.tensor_multiply_adds);
        report.count("half_operations", self.half_operations);
        report.count("clock_reads", self.clock_reads);
        NAMES
            .iter()
            .zip(self.lanes)
            .for_each(|(name, lanes)| report.count(name, lanes));
    }
}

/// True if an S2R reads a clock.
fn reads_clock(inst: &Inst) -> bool {
    matches!(
        inst.src[0].source,
        Source::Special(Special::ClockLo | Special::ClockHi | Special::GlobaltimerLo | Special::GlobaltimerHi)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_the_class_of_its_arithmetic() {
        let name = |op: Opcode| NAMES[usize::from(CLASS_OF[op as usize])];
        for (op, class) in [
            (Opcode::Ffma, "lanes_ffma"),
            (Opcode::Dsetp, "lanes_fp64"),
            (Opcode::ImadWide, "lanes_integer"),
            (Opcode::F2f, "lanes_conversion"),
            (Opcode::Ldsm, "lanes_memory"),
            (Opcode::Shfl, "lanes_exchange"),
            (Opcode::Exit, "lanes_control"),
            (Opcode::Hgmma, "lanes_tensor"),
            (Opcode::Mov, "lanes_misc"),
        ] {
            assert_eq!(name(op), class);
        }
    }
}
