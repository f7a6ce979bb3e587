//! Reads litmus tests in herd's column form.
//!
//! ```text
//! PTX NAME
//! Key=text                                   any number of lines
//! { x=0; y=0; }
//!  P0@cta 0,gpu 0   | P1@cta 1,gpu 0      ;
//!  st.weak [x], 1   | ld.weak r0, [x]     ;
//! exists (1:r0=1 /\ x=1)
//! ```
//!
//! A place may also name a `cluster` and a `warp`. Instructions are PTX without state space and type, which are optional. A condition
//! has the operators `/\`, `\/` and `~`. Comments stand between `(*` and `*)`.
//! Source of the form: Alglave, Maranget, Tautschnig, "Herding cats" (TOPLAS 2014), and the litmus files of its tool.

use thiserror::Error;

use super::program::{Condition, Guard, Inst, Op, Order, Place, Program, Scope, Thread, Update, Value};

/// Why a litmus file cannot be read, with its line and column from 1.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ReadError {
    line: usize,
    column: usize,
    what: String,
}

/// A part of a line, read from left to right.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    fn error<T>(&self, what: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError {
            line: self.line,
            column: self.column,
            what: what.into(),
        })
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.column += taken.chars().count();
        self.rest = rest;
        taken
    }

    fn skip_spaces(&mut self) {
        let spaces = self.rest.len() - self.rest.trim_start().len();
        self.advance(spaces);
    }

    /// Takes `text` if it comes next.
    fn take(&mut self, text: &str) -> bool {
        self.skip_spaces();
        let found = self.rest.starts_with(text);
        if found {
            self.advance(text.len());
        }
        found
    }

    fn expect(&mut self, text: &str) -> Result<(), ReadError> {
        match self.take(text) {
            true => Ok(()),
            false => self.error(format!("expected `{text}`")),
        }
    }

    /// A word of letters, digits, `_`, `.` and `:`.
    fn word(&mut self, what: &str) -> Result<&'a str, ReadError> {
        self.skip_spaces();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
        let bytes = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        match bytes {
            0 => self.error(format!("expected {what}")),
            _ => Ok(self.advance(bytes)),
        }
    }

    fn number(&mut self) -> Result<u32, ReadError> {
        let start = *self;
        let word = self.word("a number")?;
        word.parse()
            .or_else(|_| start.error(format!("`{word}` is not a number")))
    }

    fn end(&mut self) -> Result<(), ReadError> {
        self.skip_spaces();
        match self.rest.is_empty() {
            true => Ok(()),
            false => self.error(format!("unexpected `{}`", self.rest.trim_end())),
        }
    }

    fn is_empty(&self) -> bool {
        self.rest.trim().is_empty()
    }

    /// Splits at each `mark`. The parts keep their columns.
    fn split(mut self, mark: char) -> Vec<Self> {
        let mut parts = Vec::new();
        while let Some(at) = self.rest.find(mark) {
            let part = Self {
                rest: &self.rest[..at],
                ..self
            };
            parts.push(part);
            self.advance(at + mark.len_utf8());
        }
        parts.push(self);
        parts
    }
}

/// Replaces comments by spaces, so that columns stay.
fn without_comments(text: &str) -> Result<String, ReadError> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("(*") {
        plain += &rest[..start];
        let Some(length) = rest[start..].find("*)") else {
            let line = plain.lines().count().max(1);
            let column = plain.lines().last().map_or(1, |last| last.chars().count() + 1);
            let what = "the comment has no end".to_owned();
            return Err(ReadError { line, column, what });
        };
        let comment = &rest[start..start + length + 2];
        plain.extend(comment.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[start + length + 2..];
    }
    Ok(plain + rest)
}

/// Reads a litmus test.
pub fn read(text: &str) -> Result<Program, ReadError> {
    let plain = without_comments(text)?;
    let cursor = |(n, rest)| Cursor {
        rest,
        line: n + 1,
        column: 1,
    };
    let lines: Vec<Cursor<'_>> = plain.lines().enumerate().map(cursor).collect();
    let mut lines = lines.into_iter().filter(|line| !line.is_empty()).peekable();
    let end = Cursor {
        rest: "",
        line: plain.lines().count() + 1,
        column: 1,
    };
    let mut first = lines.next().unwrap_or(end);
    first.expect("PTX ")?;
    let mut program = Program {
        name: first.rest.trim().to_owned(),
        info: Vec::new(),
        locations: Vec::new(),
        threads: Vec::new(),
        condition: Condition::And(Vec::new()),
    };
    let mut line = lines.next().unwrap_or(end);
    while !line.take("{") {
        let Some((key, value)) = line.rest.split_once('=') else {
            return line.error("expected `Key=text` or `{`");
        };
        program.info.push((key.trim().to_owned(), value.trim().to_owned()));
        line = lines.next().unwrap_or(end);
    }
    loop {
        if line.is_empty() {
            line = match lines.next() {
                Some(line) => line,
                None => return end.error("expected `}`"),
            };
        }
        if line.take("}") {
            break;
        }
        let name = line.word("a location")?;
        line.expect("=")?;
        program.locations.push((name.to_owned(), line.number()?));
        line.take(";");
    }
    line.end()?;
    let places = lines.next().unwrap_or(end);
    for (n, mut cell) in columns(places)?.into_iter().enumerate() {
        program.threads.push(thread(n, &mut cell)?);
    }
    while let Some(&row) = lines.peek() {
        let mut start = row;
        if start.take("exists") || start.take("~exists") {
            break;
        }
        let cells = columns(row)?;
        if cells.len() != program.threads.len() {
            return row.error(format!("{} columns for {} threads", cells.len(), program.threads.len()));
        }
        for (n, mut cell) in cells.into_iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let inst = instruction(&program.locations, &mut program.threads[n], &mut cell)?;
            program.threads[n].code.push(inst);
        }
        lines.next();
    }
    let mut line = lines.next().unwrap_or(end);
    line.take("~");
    line.expect("exists")?;
    program.condition = any(&program, &mut line)?;
    line.end()?;
    check_barriers(&program).map_or_else(|what| end.error(what), |()| Ok(program))
}

/// The cells of a row. It ends with `;`.
fn columns(row: Cursor<'_>) -> Result<Vec<Cursor<'_>>, ReadError> {
    let trimmed = row.rest.trim_end();
    match trimmed.strip_suffix(';') {
        Some(rest) => Ok(Cursor { rest, ..row }.split('|')),
        None => {
            let mut end = row;
            end.advance(trimmed.len());
            end.error("expected `;` at the end of the row")
        }
    }
}

/// The threads of a CTA, or of a cluster, pass their barriers equally often.
fn check_barriers(program: &Program) -> Result<(), String> {
    let count = |n: usize, op: Op| program.threads[n].code.iter().filter(|inst| inst.op == op).count();
    for a in 0..program.threads.len() {
        for b in 0..a {
            let same_cta = program.is_in_scope(Scope::Cta, a, b);
            let same_cluster = program.is_in_scope(Scope::Cluster, a, b);
            let differ = |op| count(a, op) != count(b, op);
            if same_cta && differ(Op::Barrier) || same_cluster && (differ(Op::ClusterArrive) || differ(Op::ClusterWait))
            {
                return Err(format!("P{b} and P{a} pass a different number of barriers"));
            }
        }
    }
    Ok(())
}

fn thread(n: usize, cell: &mut Cursor<'_>) -> Result<Thread, ReadError> {
    cell.expect(&format!("P{n}"))?;
    let mut place = Place {
        warp: None,
        cta: n as u32,
        cluster: None,
    };
    let mut more = cell.take("@");
    while more {
        cell.skip_spaces();
        let start = *cell;
        let level = cell.word("`warp`, `cta`, `cluster` or `gpu`")?;
        let number = cell.number()?;
        match level {
            "warp" => place.warp = Some(number),
            "cta" => place.cta = number,
            "cluster" => place.cluster = Some(number),
            "gpu" if number == 0 => {}
            "gpu" => return start.error("the machine has one GPU: `gpu 0`"),
            _ => {
                return start.error(format!(
                    "`{level}` is no level: write `warp`, `cta`, `cluster` or `gpu`"
                ));
            }
        }
        more = cell.take(",");
    }
    cell.end()?;
    Ok(Thread {
        place,
        registers: Vec::new(),
        code: Vec::new(),
    })
}

/// Index of the register that an instruction writes. A new name gets a new index.
fn destination(thread: &mut Thread, cell: &mut Cursor<'_>, first: char) -> Result<usize, ReadError> {
    cell.skip_spaces();
    let start = *cell;
    let name = cell.word("a register")?;
    let digits = name.strip_prefix(first).unwrap_or_default();
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return start.error(format!("`{name}` is no register: write `{first}` and a number"));
    }
    let known = thread.registers.iter().position(|known| known == name);
    Ok(known.unwrap_or_else(|| {
        thread.registers.push(name.to_owned());
        thread.registers.len() - 1
    }))
}

/// Index of a register that has a value.
fn source(thread: &Thread, cell: &mut Cursor<'_>) -> Result<usize, ReadError> {
    cell.skip_spaces();
    let start = *cell;
    let name = cell.word("a register")?;
    let known = thread.registers.iter().position(|known| known == name);
    known.map_or_else(|| start.error(format!("`{name}` has no value yet")), Ok)
}

fn value(thread: &Thread, cell: &mut Cursor<'_>) -> Result<Value, ReadError> {
    cell.skip_spaces();
    match cell.rest.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(Value::Const(cell.number()?)),
        false => Ok(Value::Register(source(thread, cell)?)),
    }
}

fn location(locations: &[(String, u32)], cell: &mut Cursor<'_>) -> Result<usize, ReadError> {
    cell.expect("[")?;
    cell.skip_spaces();
    let start = *cell;
    let name = cell.word("a location")?;
    let Some(at) = locations.iter().position(|(known, _)| known == name) else {
        return start.error(format!("the location `{name}` has no first value"));
    };
    cell.expect("]")?;
    Ok(at)
}

/// The order, the scope, and the other words of an opcode.
type Modifiers<'a> = (Option<Order>, Option<Scope>, Vec<&'a str>);

/// The order and the scope of a memory instruction. The words that name neither remain in `rest`.
fn modifiers<'a>(start: Cursor<'_>, words: &[&'a str]) -> Result<Modifiers<'a>, ReadError> {
    let (mut order, mut scope, mut rest) = (None, None, Vec::new());
    for &word in words {
        match word {
            "weak" => order = Some(Order::Weak),
            "relaxed" => order = Some(Order::Relaxed),
            "acquire" => order = Some(Order::Acquire),
            "release" => order = Some(Order::Release),
            "acq_rel" => order = Some(Order::AcqRel),
            "sc" => order = Some(Order::Sc),
            "cta" => scope = Some(Scope::Cta),
            "cluster" => scope = Some(Scope::Cluster),
            "gpu" => scope = Some(Scope::Gpu),
            "sys" => scope = Some(Scope::Sys),
            "global" | "u32" | "b32" => {}
            "volatile" | "add" | "exch" | "cas" => rest.push(word),
            _ => return start.error(format!("`.{word}` is unknown")),
        }
    }
    Ok((order, scope, rest))
}

fn instruction(locations: &[(String, u32)], thread: &mut Thread, cell: &mut Cursor<'_>) -> Result<Inst, ReadError> {
    let mut guard = None;
    if cell.take("@") {
        let is = !cell.take("!");
        let predicate = source(thread, cell)?;
        guard = Some(Guard { predicate, is });
    }
    cell.skip_spaces();
    let start = *cell;
    let mnemonic = cell.word("an instruction")?;
    let words: Vec<&str> = mnemonic.split('.').collect();
    let (op, order, scope) = match words[0] {
        "ld" | "st" => load_or_store(locations, thread, cell, start, &words)?,
        "atom" | "red" => atomic(locations, thread, cell, start, &words)?,
        "fence" => match modifiers(start, &words[1..])? {
            (Some(order), Some(scope), rest) if order != Order::Weak && order != Order::Relaxed && rest.is_empty() => {
                (Op::Fence, order, scope)
            }
            _ => return start.error("a fence has an order (`sc`, `acq_rel`, `acquire`, `release`) and a scope"),
        },
        "membar" => match mnemonic {
            "membar.cta" => (Op::Fence, Order::Sc, Scope::Cta),
            "membar.gl" => (Op::Fence, Order::Sc, Scope::Gpu),
            "membar.sys" => (Op::Fence, Order::Sc, Scope::Sys),
            _ => return start.error("a membar has the level `cta`, `gl` or `sys`"),
        },
        "bar" | "barrier" => {
            let op = match mnemonic {
                "bar.sync" => {
                    cell.expect("0")?;
                    Op::Barrier
                }
                "barrier.cluster.arrive" => Op::ClusterArrive,
                "barrier.cluster.wait" => Op::ClusterWait,
                _ => return start.error(format!("`{mnemonic}` is unknown")),
            };
            if guard.is_some() {
                return start.error("a barrier has no guard");
            }
            (op, Order::Weak, Scope::Cta)
        }
        "mov" | "add" => {
            let to = destination(thread, cell, 'r')?;
            cell.expect(",")?;
            let first = value(thread, cell)?;
            let second = match words[0] {
                "add" => {
                    cell.expect(",")?;
                    value(thread, cell)?
                }
                _ => Value::Const(0),
            };
            let terms = [first, second];
            (Op::Add { to, terms }, Order::Weak, Scope::Cta)
        }
        "setp" => {
            let equal = match words.get(1) {
                Some(&"eq") => true,
                Some(&"ne") => false,
                _ => return start.error("a setp compares by `eq` or `ne`"),
            };
            let to = destination(thread, cell, 'p')?;
            cell.expect(",")?;
            let first = value(thread, cell)?;
            cell.expect(",")?;
            let values = [first, value(thread, cell)?];
            (Op::Test { to, equal, values }, Order::Weak, Scope::Cta)
        }
        _ => return start.error(format!("`{mnemonic}` is unknown")),
    };
    cell.end()?;
    Ok(Inst {
        guard,
        mnemonic: mnemonic.to_owned(),
        op,
        order,
        scope,
    })
}

fn load_or_store(
    locations: &[(String, u32)],
    thread: &mut Thread,
    cell: &mut Cursor<'_>,
    start: Cursor<'_>,
    words: &[&str],
) -> Result<(Op, Order, Scope), ReadError> {
    let is_load = words[0] == "ld";
    let (order, scope) = match modifiers(start, &words[1..])? {
        // A volatile access is relaxed with system scope (PTX ISA, "ld.volatile").
        (None, None, rest) if rest == ["volatile"] => (Order::Relaxed, Scope::Sys),
        (None | Some(Order::Weak), None, rest) if rest.is_empty() => (Order::Weak, Scope::Cta),
        (Some(order), Some(scope), rest)
            if rest.is_empty()
                && (order == Order::Relaxed || order == if is_load { Order::Acquire } else { Order::Release }) =>
        {
            (order, scope)
        }
        _ => {
            let strong = if is_load { "acquire" } else { "release" };
            return start.error(format!(
                "write `weak`, `volatile`, or `relaxed` or `{strong}` with a scope"
            ));
        }
    };
    let op = match is_load {
        true => {
            let to = destination(thread, cell, 'r')?;
            cell.expect(",")?;
            let at = location(locations, cell)?;
            Op::Load { to, at }
        }
        false => {
            let at = location(locations, cell)?;
            cell.expect(",")?;
            let value = value(thread, cell)?;
            Op::Store { at, value }
        }
    };
    Ok((op, order, scope))
}

fn atomic(
    locations: &[(String, u32)],
    thread: &mut Thread,
    cell: &mut Cursor<'_>,
    start: Cursor<'_>,
    words: &[&str],
) -> Result<(Op, Order, Scope), ReadError> {
    let (order, scope, rest) = modifiers(start, &words[1..])?;
    let is_reduction = words[0] == "red";
    let order = order.unwrap_or(Order::Relaxed);
    if matches!(order, Order::Weak | Order::Sc) || is_reduction && order.acquires() {
        return start
            .error("an atomic is `relaxed`, `acquire`, `release` or `acq_rel`, a reduction `relaxed` or `release`");
    }
    let to = match is_reduction {
        true => None,
        false => {
            let to = destination(thread, cell, 'r')?;
            cell.expect(",")?;
            Some(to)
        }
    };
    let at = location(locations, cell)?;
    cell.expect(",")?;
    let mut operand = value(thread, cell)?;
    let update = match rest[..] {
        ["add"] => Update::Add,
        ["exch"] if !is_reduction => Update::Exchange,
        ["cas"] if !is_reduction => {
            let compared = operand;
            cell.expect(",")?;
            operand = value(thread, cell)?;
            Update::CompareAndSwap(compared)
        }
        _ => return start.error("an atomic has the operation `add`, `exch` or `cas`, a reduction `add`"),
    };
    let op = Op::Atomic {
        to,
        at,
        update,
        value: operand,
    };
    Ok((op, order, scope.unwrap_or(Scope::Gpu)))
}

fn any(program: &Program, line: &mut Cursor<'_>) -> Result<Condition, ReadError> {
    let mut parts = vec![all(program, line)?];
    while line.take("\\/") {
        parts.push(all(program, line)?);
    }
    Ok(Condition::Or(parts))
}

fn all(program: &Program, line: &mut Cursor<'_>) -> Result<Condition, ReadError> {
    let mut parts = vec![term(program, line)?];
    while line.take("/\\") {
        parts.push(term(program, line)?);
    }
    Ok(Condition::And(parts))
}

fn term(program: &Program, line: &mut Cursor<'_>) -> Result<Condition, ReadError> {
    if line.take("~") {
        return Ok(Condition::Not(Box::new(term(program, line)?)));
    }
    if line.take("(") {
        let inner = any(program, line)?;
        line.expect(")")?;
        return Ok(inner);
    }
    line.skip_spaces();
    let start = *line;
    let name = line.word("a location or `THREAD:REGISTER`")?;
    let index = match name.split_once(':') {
        Some((thread, register)) => {
            let thread = thread.parse().ok().filter(|&n: &usize| n < program.threads.len());
            let found = thread.and_then(|n| {
                let registers = &program.threads[n].registers;
                let found = registers.iter().position(|known| known == register);
                found.map(|register| program.register_index(n, register))
            });
            found.map_or_else(|| start.error(format!("no instruction writes `{name}`")), Ok)?
        }
        None => {
            let found = program.locations.iter().position(|(known, _)| known == name);
            let found = found.map(|n| program.n_registers() + n);
            found.map_or_else(|| start.error(format!("the location `{name}` has no first value")), Ok)?
        }
    };
    line.expect("=")?;
    Ok(Condition::Is(index, line.number()?))
}

#[test]
fn file_gives_threads_places_instructions_and_the_condition() {
    let text = "PTX MP (* a comment *)\nSource=nobody\n{ x=0;\n  y=7; }\n P0@warp 1,cta 0,gpu 0 | P1@cta 1,cluster 2,gpu 0 ;\n \
                st.weak.global.u32 [x], 1 | ld.acquire.gpu r0, [y] ;\n st.volatile [y], 1 | ;\n | atom.cas.b32 r1, [x], 0, r0 ;\n\
                exists (1:r0=1 /\\ ~(1:r1=0 \\/ x=3))\n";
    let program = read(text).unwrap();
    assert_eq!(program.name, "MP");
    assert_eq!(program.info("Source"), Some("nobody"));
    assert_eq!(program.locations, [("x".to_owned(), 0), ("y".to_owned(), 7)]);
    assert_eq!(program.threads[0].place.warp, Some(1));
    assert_eq!(program.threads[1].place.cluster, Some(2));
    let store = &program.threads[0].code[1];
    assert_eq!(
        (store.order, store.scope),
        (Order::Relaxed, Scope::Sys),
        "a volatile store"
    );
    let swap = &program.threads[1].code[1];
    assert_eq!(
        (swap.order, swap.scope),
        (Order::Relaxed, Scope::Gpu),
        "an atomic without order and scope"
    );
    let update = Update::CompareAndSwap(Value::Const(0));
    let expected = Op::Atomic {
        to: Some(1),
        at: 0,
        update,
        value: Value::Register(0),
    };
    assert_eq!(swap.op, expected);
    assert!(program.condition.holds(&[1, 1, 0, 0]));
    assert!(!program.condition.holds(&[1, 1, 3, 0]));
    assert_eq!(program.show(&[1, 2, 3, 4]), "1:r0=1 1:r1=2 x=3 y=4");
}

#[test]
fn error_has_its_line_and_column() {
    let file = |row: &str, condition: &str| {
        format!("PTX T\n{{ x=0; }}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{row}\nexists ({condition})\n")
    };
    let good = " st.weak [x], 1 | ld.weak r0, [x] ;";
    for (text, error) in [
        ("C T\n".to_owned(), "line 1, column 1: expected `PTX `"),
        ("PTX T\n{ x=a; }\n".to_owned(), "line 2, column 5: `a` is not a number"),
        (
            "PTX T\n(* no end\n".to_owned(),
            "line 1, column 6: the comment has no end",
        ),
        (
            file(" st.weak [x], 1 ;", "x=0"),
            "line 4, column 1: 1 columns for 2 threads",
        ),
        (
            file(" st.weak [x], 1 | ld.weak r0, [x]", "x=0"),
            "line 4, column 34: expected `;` at the end of the row",
        ),
        (
            file(" st.weak [y], 1 | ;", "x=0"),
            "line 4, column 11: the location `y` has no first value",
        ),
        (
            file(" st.weak [x], r1 | ;", "x=0"),
            "line 4, column 15: `r1` has no value yet",
        ),
        (
            file(" | ld.relaxed r0, [x] ;", "x=0"),
            "line 4, column 4: write `weak`, `volatile`, or `relaxed` or `acquire` with a scope",
        ),
        (
            file(" | ld.weak.cg r0, [x] ;", "x=0"),
            "line 4, column 4: `.cg` is unknown",
        ),
        (file(" | ldu r0, [x] ;", "x=0"), "line 4, column 4: `ldu` is unknown"),
        (
            file(" | ld.weak x, [x] ;", "x=0"),
            "line 4, column 12: `x` is no register: write `r` and a number",
        ),
        (
            file(" | fence.sc ;", "x=0"),
            "line 4, column 4: a fence has an order (`sc`, `acq_rel`, `acquire`, `release`) and a scope",
        ),
        (file(good, "1:r1=0"), "line 5, column 9: no instruction writes `1:r1`"),
        (
            file(good, "x=0 /\\"),
            "line 5, column 15: expected a location or `THREAD:REGISTER`",
        ),
        (file(good, "x=0"), ""),
    ] {
        let found = read(&text).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(found, error, "{text}");
    }
}

#[test]
fn threads_of_a_cta_pass_the_same_number_of_barriers() {
    let text = "PTX T\n{ x=0; }\n P0@cta 0 | P1@cta 0 ;\n bar.sync 0 | ;\nexists (x=0)\n";
    assert_eq!(
        read(text).unwrap_err().to_string(),
        "line 6, column 1: P0 and P1 pass a different number of barriers"
    );
}
