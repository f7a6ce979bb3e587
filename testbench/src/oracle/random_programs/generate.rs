//! Generates the PTX text and the scenario of a program. The program is structured, ends, and has no race.
//!
//! Threads read a constant buffer, write words of their own, and update shared counters by commutative atomics.
//! Blocks of a cluster exchange words between two cluster barriers.
//! Barriers, exchanges through shared memory and shuffles need all threads. So they are outside of divergent conditions and of loops
//! with a trip count per thread.

use std::fmt::{Display, Write};

use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::Ty;

use super::program::{Decision, Exit, RandomProgram, Statement, Turns};
use super::table::{COMMUTING, REGISTERS, n_registers, register};
use super::tree::MOST_DEPTH;
use crate::scenario::dtype::Dtype;
use crate::scenario::{Arg, Buffer, Image, Launch, Layout, Scenario};

/// Words of the input buffer.
pub(super) const INPUT_WORDS: u64 = 256;
/// Words per thread in the output, and in local memory.
pub(super) const OWN_WORDS: u64 = 16;
/// Number of shared counters per atomic operation.
pub(super) const SHARED_COUNTERS: u64 = 4;
/// Words of the counter of tickets and of the sum over their numbers.
pub(super) const TICKET_WORDS: u64 = 2;
/// Bytes of shared memory of each thread for asynchronous copies: two of 16 bytes.
pub(super) const STAGED_BYTES: u32 = 32;
/// Bytes of a bulk copy.
pub(super) const BULK_BYTES: u32 = 256;

/// A scenario with one launch of the program, or with two in a row.
pub(crate) fn scenario(program: &RandomProgram) -> Scenario {
    let &RandomProgram { block, grid, seed, .. } = program;
    let has_clusters = has_clusters(program.machine);
    let cluster = if has_clusters { cluster(grid, seed) } else { 1 };
    let mut text = Text {
        block,
        has_copies: has_clusters,
        cluster,
        out: String::new(),
        n_labels: 0,
        depth: 0,
    };
    text.head();
    text.statements(&program.body);
    text.tail();
    let counters = COMMUTING.len() as u64 * SHARED_COUNTERS + TICKET_WORDS;
    let launch = Launch {
        entry: None,
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        dynamic_shared_bytes: 0,
        cluster: (cluster > 1).then_some([cluster, 1, 1]),
        args: vec![Arg::Buffer(0), Arg::Buffer(1), Arg::Buffer(2), Arg::Image(image())],
        ..Launch::default()
    };
    // One in four: the second launch begins with the memory that the first one leaves.
    let n_launches = if seed >> 62 == 1 { 2 } else { 1 };
    Scenario {
        name: "random".to_owned(),
        ptx_path: "random.ptx".to_owned(),
        // Inputs and counters are random, outputs zero: a store that is lost shows.
        ptx: text.out,
        buffers: vec![
            words("input", INPUT_WORDS, |n| mixed(seed ^ n) as u32),
            words("output", u64::from(grid * block) * OWN_WORDS, |_| 0),
            words("counters", counters, |n| mixed(seed ^ n << 32) as u32),
        ],
        globals: Vec::new(),
        launches: vec![launch; n_launches],
        ..Scenario::default()
    }
}

/// Blocks of a cluster: a grid of four has one of four or two of two.
fn cluster(grid: u32, seed: u64) -> u32 {
    match grid {
        4 if seed >> 61 & 1 == 1 => 4,
        n if n.is_multiple_of(2) => 2,
        _ => 1,
    }
}

/// True if a machine has clusters, and with them bulk copies.
fn has_clusters(machine: &str) -> bool {
    ["tiny", "h100-pcie", "h100-sxm5", "h200", "gh100-full", "b200"].contains(&machine)
}

/// The input as an image of 16 by 16 words.
fn image() -> Image {
    Image {
        buffer: 0,
        texture: Texture {
            base: 0,
            width: 16,
            height: 16,
            depth: 1,
            channel: Ty::U32,
            channels: 1,
            address_mode: AddressMode::Clamp,
            normalized_coords: false,
            linear_filter: false,
            normalized_values: false,
            order: TexelOrder::Rows,
        },
    }
}

fn words(name: &str, n: u64, word: impl Fn(u64) -> u32) -> Buffer {
    Buffer {
        name: name.to_owned(),
        layout: Layout {
            dtype: Dtype::U32,
            shape: vec![n],
        },
        init: (0..n).flat_map(|n| word(n).to_le_bytes()).collect(),
        expect: None,
    }
}

/// Scatters the bits of a number (the finaliser of SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// The PTX text so far.
pub(super) struct Text {
    pub block: u32,
    /// The machine has a bulk copy engine.
    pub has_copies: bool,
    /// Blocks of a cluster, 1 without clusters.
    pub cluster: u32,
    out: String,
    n_labels: u32,
    pub depth: u32,
}

impl Text {
    pub(super) fn label_line(&mut self, label: impl Display) {
        let _ = writeln!(self.out, "{label}");
    }

    pub(super) fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.out, "\t{line}");
    }

    /// Writes declarations, the addresses of the thread's own words, and an initial value of every register.
    fn head(&mut self) {
        // One word per thread, then one counter per operation, then the words of tickets.
        let shared = u64::from(self.block) * 4 + 4 * u64::from(Self::shared_counters());
        let _ = writeln!(
            self.out,
            ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 tile[{shared}];\n\
             .entry random(.param .u64 input, .param .u64 output, .param .u64 counters, .param .u64 image) {{\n\
             \t.local .align 16 .b8 own[{}];\n\t.shared .align 128 .b8 copied[{BULK_BYTES}];\n\t.shared .align 8 .b64 bar;",
            4 * OWN_WORDS
        );
        self.line(format!(".shared .align 16 .b8 staged[{}];", self.block * STAGED_BYTES));
        for (letter, ty, n) in REGISTERS {
            self.line(format!(".reg .{ty} %{letter}<{n}>;"));
        }
        self.line(format!(".reg .b32 %thread, %t<4>, %turns<{}>, %phase;", MOST_DEPTH + 1));
        self.line(".reg .b64 %input, %output, %counters, %image, %own, %a<3>; .reg .pred %q;".to_string());
        self.line(".reg .f32 %x<2>;");
        for (register, param) in ["input", "output", "counters", "image"].map(|name| (name, name)) {
            self.line(format!("ld.param.u64 %{register}, [{param}];"));
        }
        // A row of the output belongs to one thread, so stores do not race.
        self.line("mov.u32 %thread, %tid.x;\n\tmov.u32 %t0, %ctaid.x;".to_string());
        self.line(format!("mad.lo.u32 %r0, %t0, {}, %thread;", self.block));
        self.line(format!("mul.wide.u32 %a0, %r0, {};", 4 * OWN_WORDS));
        self.line("add.s64 %output, %output, %a0;\n\tmov.u64 %own, own;".to_string());
        // Different values in all registers and threads, so that a mixed-up register is noticed.
        for n in 1..REGISTERS[0].2 {
            self.line(format!("mad.lo.u32 %r{n}, %r{}, 0x9e3779b1, {n};", n - 1));
        }
        for (letter, make) in [
            ('h', "cvt.u16.u32 %h# , %r#;"),
            ('l', "mul.wide.s32 %l#, %r#, %r5;"),
            ('f', "cvt.rn.f32.s32 %f#, %r#;"),
            ('d', "cvt.rn.f64.s32 %d#, %r#;"),
            ('p', "setp.lt.s32 %p#, %r#, 0;"),
        ] {
            (0..n_registers(letter)).for_each(|n| self.line(make.replace('#', &n.to_string()).to_string()));
        }
        for at in (0..OWN_WORDS).step_by(4) {
            self.line(format!("st.local.v4.u32 [%own+{}], {{%r1, %r2, %r3, %r4}};", 4 * at));
        }
        self.line("mov.u32 %t0, tile;\n\tmad.lo.u32 %t1, %thread, 4, %t0;\n\tst.shared.u32 [%t1], %r1;".to_string());
        // Thread 0 initializes the shared counters. The barrier orders the writes before all uses.
        self.line("setp.eq.u32 %q, %thread, 0;".to_string());
        for n in 0..Self::shared_counters() {
            self.line(format!("@%q st.shared.u32 [%t0+{}], {n};", 4 * (self.block + n)));
        }
        if self.has_copies {
            self.line("@%q mbarrier.init.shared.b64 [bar], 1;\n\tmov.u32 %phase, 0;");
        }
        self.line("bar.sync 0;".to_string());
    }

    /// Counters of a block in shared memory.
    fn shared_counters() -> u32 {
        (COMMUTING.len() as u64 + TICKET_WORDS) as u32
    }

    /// Combines all registers, local words and shared counters, and stores them to the output.
    fn tail(&mut self) {
        // The barrier ends all updates of the shared counters.
        self.line("bar.sync 0;\n\tmov.u32 %t0, tile;".to_string());
        for n in 0..Self::shared_counters() {
            self.line(format!(
                "ld.shared.u32 %t1, [%t0+{}];\n\txor.b32 %r0, %r0, %t1;",
                4 * (self.block + n)
            ));
        }
        for n in 0..4 {
            self.line(format!(
                "selp.u32 %t1, 1, 0, %p{n};\n\tshf.l.wrap.b32 %r1, %r1, %t1, 7;"
            ));
            self.line(format!(
                "xor.b64 %l0, %l0, %l{n};\n\tld.local.u32 %t1, [%own+{}];\n\txor.b32 %r2, %r2, %t1;",
                16 * n
            ));
        }
        let stores = [
            "st.global.v4.u32 [%output], {%r0, %r1, %r2, %r3};",
            "st.global.v4.u32 [%output+16], {%r4, %r5, %r6, %r7};",
            "st.global.v2.f32 [%output+32], {%f0, %f1};",
            "st.global.f64 [%output+40], %d0;",
            "st.global.u64 [%output+48], %l0;",
            "st.global.u16 [%output+56], %h0;",
            "st.global.f32 [%output+60], %f2;",
            "ret;\n}",
        ];
        stores.iter().for_each(|store| self.line(store.to_string()));
    }

    fn statements(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::If {
                decision,
                then,
                otherwise,
            } => self.condition(*decision, then, otherwise),
            Statement::Loop { turns, body, exit } => self.repeat(*turns, body, exit.as_ref()),
            Statement::Load(load) => self.load(load),
            Statement::Store(store) => self.store(store),
            Statement::Combine(combine) => self.combine(combine),
            Statement::Local(local) => self.local(local),
            Statement::Exchange(exchange) => self.exchange(exchange),
            Statement::Collective(instruction) => self.collective(instruction),
            Statement::Carry(carry) => self.carry(carry),
            Statement::Compute(guard, instruction) => self.compute(*guard, instruction),
            Statement::OwnAtomic(atomic) => self.own_atomic(atomic),
            Statement::Overlap(overlap) => self.overlap(overlap),
            Statement::Fetch(fetch) => self.fetch(fetch),
            Statement::Reduce(reduce) => self.reduce(reduce),
            Statement::Relay(relay) => self.relay(relay),
            Statement::Tensor(tensor) => self.tensor(tensor),
            Statement::ClusterExchange(exchange) => self.cluster_exchange(exchange),
            Statement::Bulk(bulk) => self.bulk(bulk),
            Statement::Ticket(ticket) => self.ticket(ticket),
            Statement::AsyncCopy(copy) => self.async_copy(copy),
        }
    }

    pub(super) fn label(&mut self) -> u32 {
        self.n_labels += 1;
        self.n_labels
    }

    fn condition(&mut self, decision: Decision, then: &[Statement], otherwise: &[Statement]) {
        let label = self.label();
        match decision {
            Decision::Block { bit } => {
                self.line(format!(
                    "mov.u32 %t2, %ctaid.x;\n\tand.b32 %t2, %t2, 1;\n\tsetp.eq.u32 %q, %t2, {bit};"
                ));
                self.line(format!("@%q bra ELSE{label};"));
            }
            Decision::Thread { pred } => self.line(format!("@{} bra ELSE{label};", register('p', pred))),
        }
        self.depth += 1;
        self.statements(then);
        self.line(format!("bra END{label};"));
        let _ = writeln!(self.out, "ELSE{label}:");
        self.statements(otherwise);
        let _ = writeln!(self.out, "END{label}:");
        self.depth -= 1;
    }

    fn repeat(&mut self, turns: Turns, body: &[Statement], exit: Option<&Exit>) {
        let label = self.label();
        // One counter per depth, so a nested loop keeps the count of the outer one.
        let left = format!("%turns{}", self.depth);
        match turns {
            Turns::Same(n) => self.line(format!("mov.u32 {left}, {n};")),
            Turns::Register(n) => {
                let count = register('r', n);
                // The trip count is at least 1 and small, so every program ends.
                self.line(format!("and.b32 {left}, {count}, 3;\n\tadd.u32 {left}, {left}, 1;"));
            }
        }
        let _ = writeln!(self.out, "LOOP{label}:");
        self.depth += 1;
        self.statements(body);
        if let Some(Exit { pred, rest }) = exit {
            self.line(format!("@{} bra OUT{label};", register('p', *pred)));
            self.statements(rest);
        }
        self.depth -= 1;
        self.line(format!(
            "sub.u32 {left}, {left}, 1;\n\tsetp.ne.u32 %q, {left}, 0;\n\t@%q bra LOOP{label};"
        ));
        // Threads that left early join the others here.
        let _ = writeln!(self.out, "OUT{label}:");
    }
}
