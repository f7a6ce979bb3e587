//! Special registers: launch values from constant bank 0, and the others by S2R.

use super::{Form, Selector};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Bits, Op, VGuard, VReg};
use crate::lower::limits;
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Special;
use warpwave_isa::space::bank0;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Returns a special register, as two words for a 64-bit instruction.
    pub(super) fn special(
        &mut self,
        form: &Form<'t, 'a>,
        name: &str,
        component: &str,
        wide: bool,
    ) -> Result<Arg, Diagnostic> {
        let axis = match component {
            ".y" => 1,
            ".z" => 2,
            _ => 0,
        };
        let low = match (name, axis) {
            // The host writes the launch sizes to bank 0.
            ("%ntid", _) => return Ok(self.launch_word(bank0::BLOCK_SIZE + 4 * axis, wide)),
            ("%nctaid", _) => return Ok(self.launch_word(bank0::GRID_SIZE + 4 * axis, wide)),
            ("%envreg1", _) => return Ok(self.launch_word(bank0::WORKSPACE_HIGH, wide)),
            ("%envreg2", _) => return Ok(self.launch_word(bank0::WORKSPACE_LOW, wide)),
            ("%clock64", _) => return Ok(self.special_pair(Special::ClockLo, Special::ClockHi)),
            ("%globaltimer", _) => return Ok(self.special_pair(Special::GlobaltimerLo, Special::GlobaltimerHi)),
            ("%tid", 0) => Special::TidX,
            ("%tid", 1) => Special::TidY,
            ("%tid", _) => Special::TidZ,
            ("%ctaid", 0) => Special::CtaidX,
            ("%ctaid", 1) => Special::CtaidY,
            ("%ctaid", _) => Special::CtaidZ,
            ("%laneid", _) => Special::LaneId,
            ("%warpid", _) => Special::WarpId,
            ("%nwarpid", _) => Special::NWarpId,
            ("%smid", _) => Special::SmId,
            ("%nsmid", _) => Special::NSmId,
            ("%gridid", _) => Special::GridId,
            ("%lanemask_eq", _) => Special::LanemaskEq,
            ("%lanemask_le", _) => Special::LanemaskLe,
            ("%lanemask_lt", _) => Special::LanemaskLt,
            ("%lanemask_ge", _) => Special::LanemaskGe,
            ("%lanemask_gt", _) => Special::LanemaskGt,
            ("%clock", _) => Special::ClockLo,
            ("%clock_hi", _) => Special::ClockHi,
            ("%globaltimer_lo", _) => Special::GlobaltimerLo,
            ("%globaltimer_hi", _) => Special::GlobaltimerHi,
            ("%cluster_ctarank", _) => Special::ClusterCtarank,
            ("%cluster_nctarank", _) => Special::ClusterNctarank,
            ("%clusterid", 0) => Special::ClusteridX,
            ("%clusterid", 1) => Special::ClusteridY,
            ("%clusterid", _) => Special::ClusteridZ,
            ("%nclusterid", 0) => Special::NclusteridX,
            ("%nclusterid", 1) => Special::NclusteridY,
            ("%nclusterid", _) => Special::NclusteridZ,
            ("%cluster_ctaid", 0) => Special::ClusterCtaidX,
            ("%cluster_ctaid", 1) => Special::ClusterCtaidY,
            ("%cluster_ctaid", _) => Special::ClusterCtaidZ,
            ("%cluster_nctaid", 0) => Special::ClusterNctaidX,
            ("%cluster_nctaid", 1) => Special::ClusterNctaidY,
            ("%cluster_nctaid", _) => Special::ClusterNctaidZ,
            // Zero: the system uses no shared memory, and a launch has no graph and no other environment.
            ("%current_graph_exec", _) => return Ok(Arg::ZERO),
            (name, _)
                if ["%envreg", "%pm", "%reserved_smem"]
                    .iter()
                    .any(|start| name.starts_with(start)) =>
            {
                return Ok(Arg::ZERO);
            }
            ("%dynamic_smem_size", _) => Special::DynamicSharedSize,
            ("%total_smem_size" | "%aggr_smem_size", _) => Special::TotalSharedSize,
            ("%is_explicit_cluster", _) => {
                let finding = form.malformed("`%is_explicit_cluster` is a predicate, not a number");
                return Err(finding.help("read it with `mov.pred`"));
            }
            _ => {
                let message = format!("special register `{name}{component}`");
                return Err(Diagnostic::unsupported(form.op.instruction.span, message));
            }
        };
        let word = if wide { self.temp_pair() } else { self.temp() };
        self.read_special(word, low);
        if wide {
            // A 32-bit special register is zero-extended.
            self.emit(Op::machine(Opcode::Mov).dst(word.offset(1)));
        }
        Ok(Arg::vreg(word))
    }

    /// Returns a special register that is a predicate.
    pub(super) fn special_pred(
        &mut self,
        form: &Form<'t, 'a>,
        name: &str,
        component: &str,
    ) -> Result<VGuard, Diagnostic> {
        if name != "%is_explicit_cluster" {
            return Err(form.malformed(&format!("`{name}{component}` is a number, not a predicate")));
        }
        let kernel = self.frames[0].body.function;
        if limits::has_cluster(kernel) {
            return Ok(VGuard::ALWAYS);
        }
        // A launch with clusters of one block cannot be told from one without clusters.
        let pred = self.code.new_pred();
        let blocks = self.special_word(Special::ClusterNctarank);
        let compare = Op::machine(Opcode::Isetp).src(&[blocks, Arg::imm(1)]);
        self.emit(compare.pdst(pred).mods(|mods| mods.cmp = Cmp::Ne));
        Ok(VGuard::pred(pred))
    }

    fn special_pair(&mut self, low: Special, high: Special) -> Arg {
        let pair = self.temp_pair();
        self.read_special(pair, low);
        self.read_special(pair.offset(1), high);
        Arg::vreg(pair)
    }

    /// Returns a word of bank 0 as an operand, zero-extended in a register pair for a 64-bit instruction.
    fn launch_word(&mut self, offset: u16, wide: bool) -> Arg {
        let word = Arg::of(Bits::Const { bank: 0, offset });
        if !wide {
            return word;
        }
        // The next word of the bank is another value.
        let pair = self.temp_pair();
        self.emit(Op::machine(Opcode::Mov).dst(pair).src(&[word]));
        self.emit(Op::machine(Opcode::Mov).dst(pair.offset(1)));
        Arg::vreg(pair)
    }

    fn read_special(&mut self, word: VReg, special: Special) {
        let op = Op::machine(Opcode::S2r)
            .dst(word)
            .src(&[Arg::of(Bits::Special(special))]);
        self.emit(op);
    }

    /// Reads a special register into a new register.
    pub(super) fn special_word(&mut self, special: Special) -> Arg {
        let word = self.temp();
        self.read_special(word, special);
        Arg::vreg(word)
    }
}
