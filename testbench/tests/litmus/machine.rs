//! Runs a litmus program on the machine: many instances per launch, each with locations of its own.
//!
//! ```text
//! launch = rounds of instances        all warps meet, then each thread of each instance runs its column
//! instance = lanes of a few warps     lane l of the warps of a group is an instance; a group has the CTAs of the program
//! ```
//!
//! The host chooses which lane is which thread, and where each location lies. It also chooses which locations a thread loads before a round
//! (warm lines), and the delay before each instruction.

use fastrand::Rng;
use warpwave::scenario::Scenario;
use warpwave_components::config::GpuConfig;

use super::kernel::{finished, launch};
use super::program::{Inst, Op, Outcome, Program, Update, Value};

/// Lanes of a warp.
const LANES: usize = 32;
/// The role of a lane without a thread.
const IDLE: u32 = u32::MAX;

/// Where the locations of an instance lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Each location in a line of its own.
    Lines,
    /// The locations of an instance in one sector.
    OneSector,
    /// The locations of an instance in sectors of one line.
    OneLine,
    /// One line per location for the instances of a warp, a word each.
    Packed,
    /// Each location a kilobyte after the last: few sets of a cache and few slices.
    Far,
}

pub const LAYOUTS: [Layout; 5] = [
    Layout::Lines,
    Layout::OneSector,
    Layout::OneLine,
    Layout::Packed,
    Layout::Far,
];

impl Layout {
    /// Offset in bytes of location `at` of the instance with number `n`.
    fn offset(self, n: usize, at: usize, locations: usize) -> usize {
        match self {
            Self::Lines => (n * locations + at) * 128,
            Self::OneSector => n * 32 + at * 4,
            Self::OneLine => n * 128 + at * 32,
            Self::Packed => (n / LANES * locations + at) * 128 + n % LANES * 4,
            Self::Far => (n * locations + at) * 1024,
        }
    }
}

/// What a thread waits for before its instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delays {
    None,
    /// A random time before the first instruction, one per warp.
    First,
    /// A random time before each instruction, one per warp.
    Each,
    /// A random time before each instruction, one per lane. Barriers need warps that are together.
    Lanes,
}

pub const DELAYS: [Delays; 4] = [Delays::None, Delays::First, Delays::Each, Delays::Lanes];

/// A launch with a litmus program.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub layout: Layout,
    pub delays: Delays,
    pub seed: u64,
    /// Number of warps, at most, beyond the warps of one instance. The warps meet, so all must be resident.
    pub warps: usize,
    pub rounds: usize,
}

/// The threads of a program by CTA and warp, and the lanes of each.
struct Seating {
    /// For each CTA of the program: its warps, and the threads of each.
    ctas: Vec<Vec<Vec<usize>>>,
    /// CTAs per cluster, if the program has clusters.
    cluster: Option<usize>,
    /// Instances per warp.
    per_warp: usize,
}

impl Seating {
    fn new(program: &Program) -> Self {
        let mut names: Vec<(Option<u32>, u32)> =
            program.threads.iter().map(|t| (t.place.cluster, t.place.cta)).collect();
        names.sort_unstable();
        names.dedup();
        let mut ctas: Vec<Vec<Vec<usize>>> = vec![Vec::new(); names.len()];
        for (n, thread) in program.threads.iter().enumerate() {
            let key = (thread.place.cluster, thread.place.cta);
            let warps = &mut ctas[names.iter().position(|name| *name == key).unwrap()];
            let shares = |warp: &&mut Vec<usize>| {
                thread.place.warp.is_some() && program.threads[warp[0]].place.warp == thread.place.warp
            };
            match warps.iter_mut().find(shares) {
                Some(warp) => warp.push(n),
                None => warps.push(vec![n]),
            }
        }
        let clusters = names.iter().filter_map(|(cluster, _)| *cluster);
        let mut numbers: Vec<u32> = clusters.collect();
        numbers.dedup();
        let most = ctas.iter().flatten().map(Vec::len).max().unwrap();
        Self {
            cluster: (!numbers.is_empty()).then(|| names.len() / numbers.len()),
            ctas,
            per_warp: LANES / most,
        }
    }

    fn warps_per_cta(&self) -> usize {
        self.ctas.iter().map(Vec::len).max().unwrap()
    }
}

/// A program as a plain kernel: one instance, no delays, no loads before it, and no synchronization beside its own.
pub struct Plain {
    pub scenario: Scenario,
    /// The lines of its instructions: line of the kernel, thread, place in the thread's code.
    pub lines: Vec<(u32, usize, usize)>,
    layout: Layout,
    n_registers: usize,
    n_locations: usize,
}

impl Plain {
    /// The CTAs of the program are the CTAs of the grid in this order.
    pub fn new(program: &Program, order: &[usize]) -> Self {
        let layout = Layout::Lines;
        let seating = Seating::new(program);
        let n_locations = program.locations.len();
        let (n_ctas, warps) = (seating.ctas.len(), seating.warps_per_cta());
        let mut memory = vec![0u8; (n_locations + 1) * 128];
        let table: Vec<u32> = (0..n_locations)
            .map(|at| layout.offset(0, at, n_locations) as u32)
            .collect();
        for (at, (_, first)) in table.iter().zip(&program.locations) {
            memory[*at as usize..][..4].copy_from_slice(&first.to_le_bytes());
        }
        let mut roles = vec![IDLE; n_ctas * warps * LANES * 2];
        for (block, &cta) in order.iter().enumerate() {
            for (warp, members) in seating.ctas[cta].iter().enumerate() {
                for (lane, &thread) in members.iter().enumerate() {
                    let at = 2 * ((block * warps + warp) * LANES + lane);
                    (roles[at], roles[at + 1]) = (thread as u32, 0);
                }
            }
        }
        let n_registers = program.n_registers();
        let out = vec![0u8; (n_registers * 4).max(4)];
        let buffers = vec![
            memory,
            bytes(&table),
            vec![0; 4],
            vec![0; 4],
            bytes(&roles),
            out,
            vec![0; 128],
        ];
        let mut lines = Vec::new();
        let kernel = Kernel {
            program,
            seating: &seating,
            instances: 1,
            threads: n_ctas * warps * LANES,
            steps: 0,
            rounds: 1,
        };
        let text = kernel.text(&mut lines);
        let grid = [n_ctas as u32, (warps * LANES) as u32];
        Plain {
            scenario: launch(text, grid, seating.cluster.map(|n| n as u32), buffers),
            lines,
            layout,
            n_registers,
            n_locations,
        }
    }

    /// The orders of the CTAs of a program. Those of a cluster program keep their order.
    pub fn orders(program: &Program) -> Vec<Vec<usize>> {
        let seating = Seating::new(program);
        let mut orders = vec![Vec::new()];
        for cta in 0..seating.ctas.len() {
            let with = |order: &Vec<usize>| -> Vec<Vec<usize>> {
                let at = if seating.cluster.is_some() { cta..=cta } else { 0..=cta };
                at.map(|at| [&order[..at], &[cta], &order[at..]].concat()).collect()
            };
            orders = orders.iter().flat_map(with).collect();
        }
        orders
    }

    /// The outcome, from the memory after the run. `word` reads a word of a buffer.
    pub fn outcome(&self, word: impl Fn(usize, usize) -> u32) -> Outcome {
        let registers = (0..self.n_registers).map(|register| word(5, register * 4));
        let finals = (0..self.n_locations).map(|at| word(0, self.layout.offset(0, at, self.n_locations)));
        registers.chain(finals).collect()
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Runs a trial. Returns the outcome of each instance.
pub fn outcomes(program: &Program, config: &GpuConfig, trial: Trial) -> Vec<Outcome> {
    let seating = Seating::new(program);
    let mut random = Rng::with_seed(trial.seed);
    let n_ctas = seating.ctas.len();
    let warps = seating.warps_per_cta();
    let groups = (trial.warps / (n_ctas * warps)).max(1);
    let threads = groups * n_ctas * warps * LANES;
    let instances = groups * seating.per_warp;
    let roles = roles(&seating, groups, &mut random);
    let steps = program.threads.iter().map(|thread| thread.code.len()).max().unwrap();
    let n_locations = program.locations.len();
    let numbers = 0..trial.rounds * instances;
    let offset = |n: usize, at: usize| trial.layout.offset(n, at, n_locations);
    let table: Vec<u32> = numbers
        .clone()
        .flat_map(|n| (0..n_locations).map(move |at| offset(n, at) as u32))
        .collect();
    let mut memory = vec![0u8; table.iter().max().map_or(0, |last| *last as usize) + 128];
    for (n, at) in table.iter().enumerate() {
        let first = program.locations[n % n_locations].1;
        memory[*at as usize..][..4].copy_from_slice(&first.to_le_bytes());
    }
    let delays = delays(program, trial, threads * trial.rounds, steps, &mut random);
    let warm: Vec<u32> = (0..threads * trial.rounds)
        .map(|_| random.u32(0..1 << n_locations))
        .collect();
    let n_registers = program.n_registers();
    let out = vec![0u8; (numbers.len() * n_registers * 4).max(4)];
    let buffers = vec![
        memory,
        bytes(&table),
        bytes(&delays),
        bytes(&warm),
        bytes(&roles),
        out,
        vec![0; 128],
    ];
    let text = Kernel {
        program,
        seating: &seating,
        instances,
        threads,
        steps,
        rounds: trial.rounds,
    }
    .text(&mut Vec::new());
    let grid = [(groups * n_ctas) as u32, (warps * LANES) as u32];
    let scenario = launch(text, grid, seating.cluster.map(|n| n as u32), buffers);
    let (_, memory) = finished(&scenario, config.clone());
    let word = |buffer: usize, at: usize| u32::from_le_bytes(memory[buffer][at..at + 4].try_into().unwrap());
    let outcome = |n: usize| {
        let registers = (0..n_registers).map(|register| word(5, (n * n_registers + register) * 4));
        let finals = (0..n_locations).map(|at| word(0, offset(n, at)));
        registers.chain(finals).collect()
    };
    numbers.map(outcome).collect()
}

/// For each kernel thread: its thread of the program, and its instance.
fn roles(seating: &Seating, groups: usize, random: &mut Rng) -> Vec<u32> {
    let n_ctas = seating.ctas.len();
    let warps = seating.warps_per_cta();
    let (interleaved, far) = (random.bool(), random.bool());
    let mut order: Vec<usize> = (0..n_ctas).collect();
    if seating.cluster.is_none() {
        random.shuffle(&mut order);
    }
    let mut roles = vec![IDLE; groups * n_ctas * warps * LANES * 2];
    for group in 0..groups {
        for (place, &cta) in order.iter().enumerate() {
            // Neighbouring CTAs are on different SMs where the machine has several.
            let block = match far && seating.cluster.is_none() {
                true => place * groups + group,
                false => group * n_ctas + place,
            };
            for (warp, members) in seating.ctas[cta].iter().enumerate() {
                for (member, &thread) in members.iter().enumerate() {
                    for n in 0..seating.per_warp {
                        let lane = match interleaved {
                            true => n * members.len() + member,
                            false => member * seating.per_warp + n,
                        };
                        let at = 2 * ((block * warps + warp) * LANES + lane);
                        roles[at] = thread as u32;
                        roles[at + 1] = (group * seating.per_warp + n) as u32;
                    }
                }
            }
        }
    }
    roles
}

/// For each kernel thread of each round: the delay before each instruction, in turns of a loop.
fn delays(program: &Program, trial: Trial, threads: usize, steps: usize, random: &mut Rng) -> Vec<u32> {
    let is_barrier = |inst: &Inst| matches!(inst.op, Op::Barrier | Op::ClusterArrive | Op::ClusterWait);
    let has_barrier = program.threads.iter().any(|thread| thread.code.iter().any(is_barrier));
    let kind = match trial.delays {
        Delays::Lanes if has_barrier => Delays::Each,
        kind => kind,
    };
    let mut delays = vec![0; threads * steps];
    for warp in 0..threads / LANES {
        let mut of_warp: Vec<u32> = (0..steps).map(|_| random.u32(0..24)).collect();
        if kind == Delays::First {
            of_warp[1..].fill(0);
        }
        for lane in 0..LANES {
            let mine = &mut delays[(warp * LANES + lane) * steps..][..steps];
            match kind {
                Delays::None => {}
                Delays::First | Delays::Each => mine.copy_from_slice(&of_warp),
                Delays::Lanes => mine.iter_mut().for_each(|delay| *delay = random.u32(0..6)),
            }
        }
    }
    delays
}

/// The kernel of a launch.
struct Kernel<'a> {
    program: &'a Program,
    seating: &'a Seating,
    instances: usize,
    threads: usize,
    /// Instructions with a delay. With none the kernel is plain: the warps do not meet, and no line is warm.
    steps: usize,
    rounds: usize,
}

impl Kernel<'_> {
    /// The text. Adds the lines of the program's instructions to `lines`.
    fn text(&self, lines: &mut Vec<(u32, usize, usize)>) -> String {
        let is_plain = self.steps == 0;
        let n_locations = self.program.locations.len();
        // Each delay is a loop of short turns, so loops stay rolled.
        let mut text = format!(
            "{}\n.address_size 64\n.pragma \"nounroll\";\n.visible .entry k(.param .u64 vars, .param .u64 table, .param .u64 delays, \
             .param .u64 warm, .param .u64 roles, .param .u64 out, .param .u64 count) {{\n\
             .reg .pred %q;\n.reg .b32 %n, %g, %role, %instance, %round, %slot, %goal, %lane, %hot;\n\
             .reg .b32 %d<{}>;\n.reg .b64 %vars, %table, %delays, %warm, %out, %count, %a, %x<{n_locations}>;\n",
            if self.program.needs_clusters() {
                ".version 8.0\n.target sm_90"
            } else {
                ".version 7.8\n.target sm_70"
            },
            self.steps.max(1)
        );
        for (n, thread) in self.program.threads.iter().enumerate() {
            for name in &thread.registers {
                let kind = if name.starts_with('p') { ".pred" } else { ".b32" };
                text += &format!(".reg {kind} %t{n}{name};\n");
            }
        }
        for name in ["vars", "table", "delays", "warm", "out", "count"] {
            text += &format!("ld.param.u64 %{name}, [{name}];\n");
        }
        text += "ld.param.u64 %a, [roles];\nmov.u32 %n, %ctaid.x;\nmov.u32 %g, %ntid.x;\nmul.lo.u32 %g, %g, %n;\nmov.u32 %n, %tid.x;\n\
                 add.u32 %g, %g, %n;\nmad.wide.u32 %a, %g, 8, %a;\nld.global.u32 %role, [%a];\nld.global.u32 %instance, [%a+4];\n\
                 mov.u32 %lane, %laneid;\nmov.u32 %round, 0;\nmov.u32 %goal, 0;\nROUND:\n";
        text += &format!(
            "add.u32 %goal, %goal, {};\nsetp.eq.u32 %q, %role, {IDLE};\n@%q bra MEET;\nmad.lo.u32 %slot, %round, {}, %instance;\n\
             mad.wide.u32 %a, %slot, {}, %table;\n",
            self.threads / LANES,
            self.instances,
            4 * n_locations
        );
        for at in 0..n_locations {
            text += &format!(
                "ld.global.u32 %n, [%a+{}];\nmad.wide.u32 %x{at}, %n, 1, %vars;\n",
                4 * at
            );
        }
        if is_plain {
            text += "MEET:\n";
        } else {
            self.meeting(&mut text);
        }
        for thread in 0..self.program.threads.len() {
            text += &format!("setp.eq.u32 %q, %role, {thread};\n@%q bra T{thread};\n");
        }
        text += "bra END;\n";
        (0..self.program.threads.len()).for_each(|thread| self.thread(thread, &mut text, lines));
        text += "END:\n";
        if !is_plain {
            text += "bar.warp.sync 0xffffffff;\n";
        }
        text += &format!(
            "add.u32 %round, %round, 1;\nsetp.lt.u32 %q, %round, {};\n@%q bra ROUND;\nret;\n}}\n",
            self.rounds
        );
        text
    }

    /// Reads the delays, loads the warm lines, and waits for all warps.
    fn meeting(&self, text: &mut String) {
        *text += &format!(
            "mad.lo.u32 %n, %round, {}, %g;\nmad.wide.u32 %a, %n, {}, %delays;\n",
            self.threads,
            4 * self.steps
        );
        for step in 0..self.steps {
            *text += &format!("ld.global.u32 %d{step}, [%a+{}];\n", 4 * step);
        }
        *text += "mad.wide.u32 %a, %n, 4, %warm;\nld.global.u32 %hot, [%a];\n";
        for (at, (_, first)) in self.program.locations.iter().enumerate() {
            *text += &format!(
                "and.b32 %n, %hot, {};\nsetp.eq.u32 %q, %n, 0;\n@%q bra COLD{at};\n\
                 ld.global.u32 %n, [%x{at}];\nsetp.ne.u32 %q, %n, {first};\n@%q trap;\nCOLD{at}:\n",
                1 << at
            );
        }
        // The accesses of the meeting are relaxed: they order nothing.
        *text += "MEET:\nsetp.ne.u32 %q, %lane, 0;\n@%q bra MET;\nred.relaxed.gpu.global.add.u32 [%count], 1;\n\
                 WAIT:\nld.relaxed.gpu.global.u32 %n, [%count];\nsetp.lt.u32 %q, %n, %goal;\n@%q bra WAIT;\nMET:\nbar.warp.sync 0xffffffff;\n";
    }

    fn thread(&self, n: usize, text: &mut String, lines: &mut Vec<(u32, usize, usize)>) {
        let thread = &self.program.threads[n];
        *text += &format!("T{n}:\n");
        for name in &thread.registers {
            *text += &match name.starts_with('p') {
                true => format!("setp.ne.u32 %t{n}{name}, %role, %role;\n"),
                false => format!("mov.u32 %t{n}{name}, 0;\n"),
            };
        }
        for (step, inst) in thread.code.iter().enumerate() {
            if step < self.steps {
                *text += &format!(
                    "D{n}S{step}:\nsetp.eq.u32 %q, %d{step}, 0;\n@%q bra E{n}S{step};\nsub.u32 %d{step}, %d{step}, 1;\nbra D{n}S{step};\nE{n}S{step}:\n"
                );
            }
            lines.push((text.lines().count() as u32 + 1, n, step));
            *text += &self.inst(n, inst);
        }
        let stride = 4 * self.program.n_registers();
        *text += &format!("mad.wide.u32 %a, %slot, {stride}, %out;\n");
        for register in (0..thread.registers.len()).filter(|&register| !thread.is_predicate(register)) {
            let at = 4 * self.program.register_index(n, register);
            *text += &format!("st.global.u32 [%a+{at}], %t{n}{};\n", thread.registers[register]);
        }
        *text += "bra END;\n";
    }

    fn inst(&self, n: usize, inst: &Inst) -> String {
        let thread = &self.program.threads[n];
        let register = |index: usize| format!("%t{n}{}", thread.registers[index]);
        let value = |value: Value| match value {
            Value::Const(value) => value.to_string(),
            Value::Register(index) => register(index),
        };
        let guard = inst.guard.map_or(String::new(), |guard| {
            let not = if guard.is { "" } else { "!" };
            format!("@{not}{} ", register(guard.predicate))
        });
        // The order and the scope as written, without state space, operation and type.
        let is_order = |word: &&str| !matches!(*word, "global" | "u32" | "b32" | "add" | "exch" | "cas");
        let words: Vec<&str> = inst.mnemonic.split('.').filter(is_order).collect();
        let mnemonic = words.join(".");
        let body = match inst.op {
            Op::Load { to, at } => format!("{mnemonic}.global.u32 {}, [%x{at}]", register(to)),
            Op::Store { at, value: stored } => format!("{mnemonic}.global.u32 [%x{at}], {}", value(stored)),
            Op::Atomic {
                to,
                at,
                update,
                value: operand,
            } => {
                let to = to.map_or(String::new(), |to| format!("{}, ", register(to)));
                let (operation, compared) = match update {
                    Update::Add => ("add.u32", String::new()),
                    Update::Exchange => ("exch.b32", String::new()),
                    Update::CompareAndSwap(compared) => ("cas.b32", format!("{}, ", value(compared))),
                };
                format!(
                    "{mnemonic}.global.{operation} {to}[%x{at}], {compared}{}",
                    value(operand)
                )
            }
            Op::Fence | Op::ClusterArrive | Op::ClusterWait => inst.mnemonic.clone(),
            Op::Barrier => {
                let has_thread = |cta: &&Vec<Vec<usize>>| cta.iter().flatten().any(|&member| member == n);
                let cta = self.seating.ctas.iter().find(has_thread).unwrap();
                format!("bar.sync 0, {}", cta.len() * LANES)
            }
            Op::Add { to, terms } => {
                format!(
                    "mov.u32 %n, {};\n{guard}add.u32 {}, %n, {}",
                    value(terms[0]),
                    register(to),
                    value(terms[1])
                )
            }
            Op::Test { to, equal, values } => {
                let compare = if equal { "eq" } else { "ne" };
                let [first, second] = values.map(value);
                format!(
                    "mov.u32 %n, {first};\n{guard}setp.{compare}.u32 {}, %n, {second}",
                    register(to)
                )
            }
        };
        match inst.op {
            Op::Add { .. } | Op::Test { .. } => format!("{body};\n"),
            _ => format!("{guard}{body};\n"),
        }
    }
}
