//! Writes the PTX text of simple statements, which contain no other statements.

use super::generate::{INPUT_WORDS, OWN_WORDS, SHARED_COUNTERS, Text};
use super::program::{Carry, Combine, CounterPlace, Exchange, Guard, Instruction, Load, Local, Store};
use super::table::{COMMUTING, n_registers, register};

impl Guard {
    pub(super) fn text(self) -> String {
        match self {
            Guard::Always => String::new(),
            Guard::If(n) => format!("@{} ", register('p', n)),
            Guard::Unless(n) => format!("@!{} ", register('p', n)),
        }
    }
}

/// A register, or a vector operand with consecutive registers. No register is in it twice.
pub(super) fn registers(letters: &str, first: u8) -> String {
    let letter = letters.chars().next().unwrap_or('r');
    if letters.len() == 1 {
        return register(letter, first);
    }
    let first = first % n_registers(letter);
    let used = letters.len().min(n_registers(letter).into());
    let mut names: Vec<_> = (0..used as u8).map(|at| register(letter, first + at)).collect();
    // `_` drops an element: a type may have fewer registers than the vector.
    names.resize(letters.len(), "_".to_owned());
    format!("{{{}}}", names.join(", "))
}

impl Text {
    pub(super) fn compute(&mut self, guard: Guard, instruction: &Instruction) {
        let Instruction { mnemonic, operands } = instruction;
        self.line(format!("{}{mnemonic} {operands};", guard.text()));
    }

    pub(super) fn collective(&mut self, instruction: &Instruction) {
        let Instruction { mnemonic, operands } = instruction;
        // A partial warp lacks lanes that the mask -1 names.
        if self.block.is_multiple_of(32) {
            self.line(format!("{mnemonic} {operands}, -1;"));
        }
    }

    pub(super) fn carry(&mut self, carry: &Carry) {
        let Carry { op, low, high } = carry;
        self.line(format!("{op}.cc.u32 {low};\n\t{op}c.u32 {high};"));
    }

    /// Writes `%a1` = `base` + `bytes` * (register `index` modulo `n`).
    pub(super) fn place(&mut self, base: &str, index: u8, n: u64, bytes: u64) {
        self.line(format!(
            "and.b32 %t2, {}, {};\n\tmul.wide.u32 %a1, %t2, {bytes};",
            // A mask bounds the index, so `n` must be a power of two.
            register('r', index),
            n - 1
        ));
        self.line(format!("add.s64 %a1, {base}, %a1;"));
    }

    pub(super) fn load(&mut self, load: &Load) {
        let (ty, bytes, letters) = load.access;
        // The narrow vector is tested with the default cache operator alone.
        let cache = if ty == "v4.u8" { "" } else { load.cache };
        self.place("%input", load.index, INPUT_WORDS * 4 / bytes, bytes);
        let (guard, target) = (load.guard.text(), registers(letters, load.target));
        self.line(format!("{guard}ld.global{cache}.{ty} {target}, [%a1];"));
    }

    pub(super) fn store(&mut self, store: &Store) {
        let (ty, bytes, letters) = store.access;
        self.place("%output", store.index, OWN_WORDS * 4 / bytes, bytes);
        let (guard, value) = (store.guard.text(), registers(letters, store.value));
        self.line(format!("{guard}st.global.{ty} [%a1], {value};"));
        if store.reads_back {
            self.line(format!("ld.global.{ty} {value}, [%a1];"));
        }
    }

    pub(super) fn combine(&mut self, combine: &Combine) {
        let &Combine { name, .. } = combine;
        let (n, op) = (combine.op as u64, COMMUTING[combine.op]);
        let (value, guard) = (register('r', combine.value), combine.guard.text());
        let old = if name == "atom" { "%t3, " } else { "" };
        match combine.place {
            CounterPlace::Shared => {
                self.line("mov.u32 %t2, tile;");
                let at = 4 * (u64::from(self.block) + n);
                self.line(format!("{guard}{name}.shared.{op} {old}[%t2+{at}], {value};"));
            }
            CounterPlace::Global { index } => {
                self.place("%counters", index, SHARED_COUNTERS, 4);
                let at = 4 * SHARED_COUNTERS * n;
                self.line(format!("{guard}{name}.global.{op} {old}[%a1+{at}], {value};"));
            }
        }
    }

    pub(super) fn local(&mut self, local: &Local) {
        let (ty, bytes, letters) = local.access;
        self.place("%own", local.index, OWN_WORDS * 4 / bytes, bytes);
        let (guard, value) = (local.guard.text(), registers(letters, local.value));
        let space = if local.is_generic {
            self.line("cvta.local.u64 %a1, %a1;");
            ""
        } else {
            ".local"
        };
        if local.is_store {
            let ty = ty.replace('s', "u");
            self.line(format!("{guard}st{space}.{ty} [%a1], {value};"));
        } else {
            self.line(format!("{guard}ld{space}.{ty} {value}, [%a1];"));
        }
    }

    pub(super) fn exchange(&mut self, exchange: &Exchange) {
        let [value, from, result] = [exchange.value, exchange.from, exchange.result].map(|n| register('r', n));
        let threads = if exchange.is_whole_block {
            String::new()
        } else {
            format!(", {}", self.block.next_multiple_of(32))
        };
        let number = exchange.barrier;
        self.line(format!(
            "mov.u32 %t0, tile;\n\tmad.lo.u32 %t1, %thread, 4, %t0;\n\tst.shared.u32 [%t1], {value};"
        ));
        self.line(format!(
            "rem.u32 %t2, {from}, {};\n\tmad.lo.u32 %t2, %t2, 4, %t0;",
            self.block
        ));
        self.line(format!(
            // The second barrier keeps a later store from overtaking the loads.
            "bar.sync {number}{threads};\n\tld.shared.u32 {result}, [%t2];\n\tbar.sync {number}{threads};"
        ));
    }
}
