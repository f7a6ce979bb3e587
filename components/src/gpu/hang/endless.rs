//! Code without an end: a warp that gets there runs for ever, and changes nothing but its registers.

use std::collections::BTreeSet;

use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Program;
use warpwave_isa::reg::Guard;

use crate::sm::subcore::warp::Warp;

/// True if all lanes of a warp run together in code without an end.
pub(in crate::gpu) fn is_in_endless_code(warp: &Warp) -> bool {
    let (active, live) = (warp.flow.active(), warp.flow.live());
    !active.is_empty() && active == live && is_endless(&warp.grid.program, warp.flow.pc())
}

/// True if no instruction that follows `pc` on some path ends a warp, or acts outside its registers.
fn is_endless(program: &Program, pc: u32) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![pc];
    while let Some(pc) = open.pop() {
        let Some(inst) = program.code().get(pc as usize) else {
            return false;
        };
        if !seen.insert(pc) {
            continue;
        }
        match inst.op {
            Opcode::Bra => {
                open.extend((inst.guard != Guard::NEVER).then_some(inst.target));
                open.extend((inst.guard != Guard::ALWAYS).then_some(pc + 1));
            }
            Opcode::Nanosleep | Opcode::Mov | Opcode::Iadd3 | Opcode::Imad | Opcode::Lop3 | Opcode::Isetp => {
                open.push(pc + 1);
            }
            // Any other instruction may end the warp, or another warp may see it.
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use warpwave_isa::program::Requirements;

    use super::*;

    fn is_endless_at_0(text: &str) -> bool {
        let code = text.lines().map(|line| line.trim().parse().expect(line)).collect();
        is_endless(&Program::new("k", code, Requirements::default()), 0)
    }

    #[test]
    fn loop_that_sleeps_and_counts_has_no_end() {
        assert!(is_endless_at_0(
            "NANOSLEEP R1\nIADD3 R2, PT, R2, 0x1, RZ, PT\nBRA 0\nEXIT"
        ));
    }

    #[test]
    fn branch_under_a_predicate_has_an_end_if_the_exit_follows() {
        assert!(!is_endless_at_0("NANOSLEEP R1\n@P0 BRA 0\nEXIT"));
        // Both ways lead back.
        assert!(is_endless_at_0("NANOSLEEP R1\n@P0 BRA 0\nBRA 1\nEXIT"));
    }

    #[test]
    fn loop_that_loads_stores_or_waits_may_matter_to_others() {
        for inst in ["LD.B32 R2, [R4]", "ST.B32 [R4], R2", "BAR R2, R3"] {
            assert!(!is_endless_at_0(&format!("{inst}\nBRA 0\nEXIT")), "{inst}");
        }
    }
}
