//! Writes the PTX text of statements for single units: atomics, textures, barriers, matrix products, clusters, copies to shared memory.

use super::generate::{BULK_BYTES, INPUT_WORDS, OWN_WORDS, SHARED_COUNTERS, STAGED_BYTES, Text};
use super::program::{AsyncCopy, Bulk, ClusterExchange, Fetch, Overlap, OwnAtomic, Reduce, Relay, Tensor, Ticket};
use super::statements::registers;
use super::table::{COMMUTING, register};

impl Text {
    pub(super) fn own_atomic(&mut self, atomic: &OwnAtomic) {
        let OwnAtomic { op, .. } = atomic;
        let [old, value] = [atomic.old, atomic.value].map(|n| register('r', n));
        let guard = atomic.guard.text();
        // Compare-and-swap has one operand more: the value to compare with.
        let operands = match op.starts_with("cas") {
            true => format!("{old}, {value}"),
            false => value,
        };
        if atomic.in_shared {
            self.own_shared_word();
            self.line(format!("{guard}atom.shared.{op} {old}, [%t1], {operands};"));
        } else {
            self.place("%output", atomic.index, OWN_WORDS, 4);
            self.line(format!("{guard}atom.global.{op} {old}, [%a1], {operands};"));
        }
    }

    /// Writes `%t1` = address of the thread's word in shared memory.
    fn own_shared_word(&mut self) {
        self.line("mov.u32 %t0, tile;\n\tmad.lo.u32 %t1, %thread, 4, %t0;");
    }

    pub(super) fn overlap(&mut self, overlap: &Overlap) {
        let (ty, bytes, letters) = overlap.access;
        let (base, space) = if overlap.in_local {
            ("%own", "local")
        } else {
            ("%output", "global")
        };
        self.place(base, overlap.index, OWN_WORDS * 4 / bytes, bytes);
        let (value, guard) = (registers(letters, overlap.value), overlap.guard.text());
        self.line(format!("{guard}st.{space}.{ty} [%a1], {value};"));
        let (part, part_bytes, letters) = overlap.part;
        // Aligned to the part, and inside the vector.
        let offset = u64::from(overlap.offset) % (bytes / part_bytes) * part_bytes;
        let result = registers(letters, overlap.result);
        self.line(format!("ld.{space}.{part} {result}, [%a1+{offset}];"));
    }

    pub(super) fn fetch(&mut self, fetch: &Fetch) {
        let [x, y, result] = [fetch.x, fetch.y, fetch.result].map(|n| register('r', n));
        let guard = fetch.guard.text();
        self.line(format!("and.b32 %t1, {x}, 255;\n\tand.b32 %t2, {y}, 255;"));
        if fetch.is_float {
            for (n, word) in [(0, "%t1"), (1, "%t2")] {
                self.line(format!(
                    // 0f3d800000 is 1/16: coordinates from 0 to just below 16.
                    "cvt.rn.f32.u32 %x{n}, {word};\n\tmul.f32 %x{n}, %x{n}, 0f3d800000;"
                ));
            }
            self.line(format!(
                "{guard}tex.2d.v4.u32.f32 {{{result}, %t1, %t2, %t3}}, [%image, {{%x0, %x1}}];"
            ));
        } else {
            self.line("and.b32 %t1, %t1, 15;\n\tand.b32 %t2, %t2, 15;");
            self.line(format!(
                "{guard}tex.2d.v4.u32.s32 {{{result}, %t1, %t2, %t3}}, [%image, {{%t1, %t2}}];"
            ));
        }
    }

    pub(super) fn reduce(&mut self, reduce: &Reduce) {
        let letter = if reduce.op.starts_with("popc") { 'r' } else { 'p' };
        let (result, value) = (register(letter, reduce.result), register('p', reduce.value));
        self.line(format!("bar.red.{} {result}, {}, {value};", reduce.op, reduce.barrier));
    }

    pub(super) fn relay(&mut self, relay: &Relay) {
        if self.block < 64 || !self.block.is_multiple_of(32) {
            return;
        }
        let (label, block) = (self.label(), self.block);
        let Relay { barrier, .. } = relay;
        let [value, result] = [relay.value, relay.result].map(|n| register('r', n));
        self.own_shared_word();
        self.line(format!("setp.ge.u32 %q, %thread, 32;\n\t@%q bra TAKE{label};"));
        self.line(format!(
            "st.shared.u32 [%t1], {value};\n\tbar.arrive {barrier}, {block};\n\tbra GO{label};"
        ));
        self.label_line(format!("TAKE{label}:"));
        self.line("and.b32 %t2, %thread, 31;\n\tmad.lo.u32 %t2, %t2, 4, %t0;");
        self.line(format!(
            "bar.sync {barrier}, {block};\n\tld.shared.u32 {result}, [%t2];"
        ));
        self.label_line(format!("GO{label}:"));
        // All warps meet before the words are written in another statement.
        self.line("bar.sync 0;");
    }

    pub(super) fn tensor(&mut self, tensor: &Tensor) {
        if !self.block.is_multiple_of(32) {
            return;
        }
        let (mnemonic, letters) = tensor.product;
        let fragment = |n: usize| match letters[n].len() {
            1 => format!("{{{}}}", registers(letters[n], tensor.registers[n])),
            _ => registers(letters[n], tensor.registers[n]),
        };
        let [d, a, b, c] = [0, 1, 2, 3].map(fragment);
        self.line(format!("mma.sync.aligned.{mnemonic} {d}, {a}, {b}, {c};"));
    }

    pub(super) fn cluster_exchange(&mut self, exchange: &ClusterExchange) {
        if self.cluster == 1 {
            return;
        }
        // With two blocks the one other, with four one of three.
        let distance = 1 + u32::from(exchange.value) % (self.cluster - 1);
        let [value, result] = [exchange.value, exchange.result].map(|n| register('r', n));
        self.own_shared_word();
        self.line(format!("st.shared.u32 [%t1], {value};"));
        self.line(format!(
            "mov.u32 %t2, %cluster_ctarank;\n\txor.b32 %t2, %t2, {distance};\n\tmapa.shared::cluster.u32 %t1, %t1, %t2;"
        ));
        self.line("barrier.cluster.arrive;\n\tbarrier.cluster.wait;");
        self.line(format!("ld.shared::cluster.u32 {result}, [%t1];"));
        // The twin may overwrite its word after this barrier.
        self.line("barrier.cluster.arrive;\n\tbarrier.cluster.wait;");
    }

    pub(super) fn ticket(&mut self, ticket: &Ticket) {
        let guard = ticket.guard.text();
        let space = if ticket.in_shared { "shared" } else { "global" };
        let (counter, sum) = if ticket.in_shared {
            let at = 4 * (u64::from(self.block) + COMMUTING.len() as u64);
            self.line("mov.u32 %t0, tile;");
            (format!("[%t0+{at}]"), format!("[%t0+{}]", at + 4))
        } else {
            let at = 4 * SHARED_COUNTERS * COMMUTING.len() as u64;
            (format!("[%counters+{at}]"), format!("[%counters+{}]", at + 4))
        };
        // A swap of one thread makes those of all others fail. So one thread of each warp swaps, and not inside of loops.
        let by_cas = ticket.by_cas && self.depth == 0;
        let label = self.label();
        if by_cas {
            self.line(format!(
                "and.b32 %t1, %thread, 31;\n\tsetp.ne.u32 %q, %t1, 0;\n\t@%q bra TAKEN{label};"
            ));
            self.line("mov.u32 %t3, 0;");
            self.label_line(format!("TAKE{label}:"));
            self.line("mov.u32 %t2, %t3;\n\tadd.u32 %t1, %t2, 1;");
            self.line(format!("atom.{space}.cas.b32 %t3, {counter}, %t2, %t1;"));
            self.line(format!("setp.ne.u32 %q, %t3, %t2;\n\t@%q bra TAKE{label};"));
        } else {
            self.line(format!("{guard}atom.{space}.add.u32 %t3, {counter}, 1;"));
        }
        // Scattered bits, so that two wrong numbers do not cancel.
        self.line("mul.lo.u32 %t3, %t3, 0x9e3779b1;\n\tshr.u32 %t2, %t3, 15;\n\txor.b32 %t3, %t3, %t2;");
        let guard = if by_cas { "" } else { &guard };
        self.line(format!("{guard}red.{space}.add.u32 {sum}, %t3;"));
        self.label_line(format!("TAKEN{label}:"));
    }

    pub(super) fn async_copy(&mut self, copy: &AsyncCopy) {
        let (cache, bytes, read) = copy.form;
        let slot = STAGED_BYTES / 2;
        self.line(format!(
            "mov.u32 %t0, staged;\n\tmad.lo.u32 %t1, %thread, {STAGED_BYTES}, %t0;"
        ));
        for (n, index) in (0u32..).zip(copy.indices) {
            // A source of 16 bytes: all sizes are aligned.
            self.place("%input", index, INPUT_WORDS / 4, 16);
            let rest = if read < bytes {
                format!(", {read}")
            } else {
                String::new()
            };
            self.line(format!(
                "cp.async{cache}.shared.global [%t1+{}], [%a1], {bytes}{rest};",
                n * slot
            ));
            self.line("cp.async.commit_group;");
        }
        let at = u32::from(copy.word) % (bytes / 4) * 4;
        for (n, result) in (0u32..).zip(copy.results) {
            match (copy.one_by_one, n) {
                (true, _) => self.line(format!("cp.async.wait_group {};", 1 - n)),
                (false, 0) => self.line("cp.async.wait_all;"),
                (false, _) => {}
            }
            self.line(format!(
                "ld.shared.u32 {}, [%t1+{}];",
                register('r', result),
                n * slot + at
            ));
        }
    }

    pub(super) fn bulk(&mut self, bulk: &Bulk) {
        if !self.has_copies {
            return;
        }
        let label = self.label();
        // The last of 32 places ends 272 bytes before the end of the input.
        self.place("%input", bulk.index, 32, 16);
        self.line("setp.eq.u32 %q, %thread, 0;");
        self.line(format!(
            "@%q mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {BULK_BYTES};"
        ));
        self.line(format!(
            "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [copied], [%a1], {BULK_BYTES}, [bar];"
        ));
        self.label_line(format!("WAIT{label}:"));
        self.line("mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], %phase;");
        self.line(format!("@!%q bra WAIT{label};\n\txor.b32 %phase, %phase, 1;"));
        let (word, result) = (register('r', bulk.word), register('r', bulk.result));
        self.line(format!(
            "and.b32 %t1, {word}, {};\n\tmov.u32 %t0, copied;",
            BULK_BYTES / 4 - 1
        ));
        self.line("mad.lo.u32 %t1, %t1, 4, %t0;");
        // The next copy overwrites the buffer. The barrier puts all reads before it.
        self.line(format!("ld.shared.u32 {result}, [%t1];\n\tbar.sync 0;"));
    }
}
