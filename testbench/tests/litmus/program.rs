//! A litmus program: locations, threads with their places, instructions, and the final state in question.

/// The scope of a strong operation or a fence (PTX ISA, "Scope"), from the smallest to the largest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// The memory order of a load, store, atomic or fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}

impl Order {
    pub fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel | Self::Sc)
    }

    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel | Self::Sc)
    }
}

/// A constant, or the index of a register of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    Const(u32),
    Register(usize),
}

/// The new value of an atomic, from the old value and the operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    Add,
    Exchange,
    /// Writes the operand if the old value equals this value. Otherwise it writes nothing.
    CompareAndSwap(Value),
}

/// What an instruction does. Locations and registers are indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Load {
        to: usize,
        at: usize,
    },
    Store {
        at: usize,
        value: Value,
    },
    /// `to` is `None` for a reduction. Its read is no part of an acquire pattern.
    Atomic {
        to: Option<usize>,
        at: usize,
        update: Update,
        value: Value,
    },
    Fence,
    /// `bar.sync 0` of all threads of the CTA.
    Barrier,
    ClusterArrive,
    ClusterWait,
    /// Sum of two values. A move adds 0.
    Add {
        to: usize,
        terms: [Value; 2],
    },
    /// A predicate: true if the values are equal, or if they differ.
    Test {
        to: usize,
        equal: bool,
        values: [Value; 2],
    },
}

/// The condition of an instruction: a predicate register and the value that it must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard {
    pub predicate: usize,
    pub is: bool,
}

/// An instruction of a litmus thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inst {
    pub guard: Option<Guard>,
    /// The opcode with its modifiers, as written.
    pub mnemonic: String,
    pub op: Op,
    pub order: Order,
    pub scope: Scope,
}

/// Where a thread runs. Threads with one `warp` share a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub warp: Option<u32>,
    pub cta: u32,
    pub cluster: Option<u32>,
}

/// A thread of a litmus program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    pub place: Place,
    /// Names of the registers. A name that begins with `p` is a predicate.
    pub registers: Vec<String>,
    pub code: Vec<Inst>,
}

impl Thread {
    /// True if register `n` is a predicate: no part of the outcome.
    pub fn is_predicate(&self, n: usize) -> bool {
        self.registers[n].starts_with('p')
    }
}

/// A condition on the final state. A term is an index of the outcome and a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    Is(usize, u32),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

impl Condition {
    pub fn holds(&self, outcome: &[u32]) -> bool {
        match self {
            Self::Is(n, value) => outcome[*n] == *value,
            Self::Not(inner) => !inner.holds(outcome),
            Self::And(all) => all.iter().all(|one| one.holds(outcome)),
            Self::Or(any) => any.iter().any(|one| one.holds(outcome)),
        }
    }
}

/// The final values of a run: the registers of each thread without predicates, then the locations.
pub type Outcome = Vec<u32>;

/// A litmus test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub name: String,
    /// Lines `Key=text` of the header.
    pub info: Vec<(String, String)>,
    /// Names and first values.
    pub locations: Vec<(String, u32)>,
    pub threads: Vec<Thread>,
    pub condition: Condition,
}

impl Program {
    /// The text of a line `Key=text` of the header.
    pub fn info(&self, key: &str) -> Option<&str> {
        self.info
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, text)| text.as_str())
    }

    /// Index in the outcome of register `n` of a thread.
    pub fn register_index(&self, thread: usize, n: usize) -> usize {
        let count = |thread: &Thread, to: usize| (0..to).filter(|&n| !thread.is_predicate(n)).count();
        let before = self.threads[..thread]
            .iter()
            .map(|thread| count(thread, thread.registers.len()));
        before.sum::<usize>() + count(&self.threads[thread], n)
    }

    /// Number of registers in the outcome.
    pub fn n_registers(&self) -> usize {
        self.register_index(
            self.threads.len() - 1,
            self.threads[self.threads.len() - 1].registers.len(),
        )
    }

    /// The outcome as text.
    pub fn show(&self, outcome: &[u32]) -> String {
        let mut names = Vec::new();
        for (n, thread) in self.threads.iter().enumerate() {
            let values = thread.registers.iter().filter(|name| !name.starts_with('p'));
            names.extend(values.map(|name| format!("{n}:{name}")));
        }
        names.extend(self.locations.iter().map(|(name, _)| name.clone()));
        let terms = names.iter().zip(outcome).map(|(name, value)| format!("{name}={value}"));
        terms.collect::<Vec<_>>().join(" ")
    }

    /// True if the program names clusters: in places, scopes or barriers.
    pub fn needs_clusters(&self) -> bool {
        let is_of_cluster = |inst: &Inst| inst.mnemonic.contains("cluster");
        let needs = |thread: &Thread| thread.place.cluster.is_some() || thread.code.iter().any(is_of_cluster);
        self.threads.iter().any(needs)
    }

    /// True if each thread is in the scope of the other.
    pub fn is_in_scope(&self, scope: Scope, a: usize, b: usize) -> bool {
        let [a, b] = [a, b].map(|n| self.threads[n].place);
        match scope {
            Scope::Cta => a.cta == b.cta,
            Scope::Cluster => a.cta == b.cta || (a.cluster.is_some() && a.cluster == b.cluster),
            Scope::Gpu | Scope::Sys => true,
        }
    }
}
