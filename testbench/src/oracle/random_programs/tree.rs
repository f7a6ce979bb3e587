//! Draws the tree of statements of a program.
//!
//! The tree is finite: each list draws its length first, and limits bound the depth and the number of statements.

use arbitrary::{Result, Unstructured};

use super::program::{Decision, Exit, Instruction, Statement, Turns};
use super::table::{COLLECTIVE, COMPUTING, register};

/// Deepest nesting of statements.
pub(super) const MOST_DEPTH: u32 = 3;

/// Maximum number of statements of a program.
const MOST_STATEMENTS: u32 = 60;

/// The threads that execute a statement together: one thread on its own path, a whole block, or the whole grid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reach {
    Thread,
    Block,
    Grid,
}

/// Draws the statements of a program.
pub(super) fn body(bytes: &mut Unstructured<'_>) -> Result<Vec<Statement>> {
    let mut tree = Tree {
        bytes,
        depth: 0,
        left: MOST_STATEMENTS,
    };
    tree.statements(4, 30, Reach::Grid)
}

/// The bytes that the statements are drawn from, and the limits.
struct Tree<'u, 'b> {
    bytes: &'u mut Unstructured<'b>,
    depth: u32,
    /// Number of statements that may still be drawn.
    left: u32,
}

impl Tree<'_, '_> {
    fn statements(&mut self, least: u32, most: u32, reach: Reach) -> Result<Vec<Statement>> {
        let n = self.bytes.int_in_range(least..=most)?;
        let mut statements = Vec::new();
        for _ in 0..n {
            // The limit holds for the whole tree, so it may end any list.
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            statements.push(self.statement(reach)?);
        }
        Ok(statements)
    }

    /// One statement for the threads of `reach`.
    fn statement(&mut self, reach: Reach) -> Result<Statement> {
        let converged = reach >= Reach::Block;
        let bytes = &mut *self.bytes;
        // Most numbers lead to an instruction that only computes. A statement that cannot stand here becomes one too.
        Ok(match bytes.int_in_range(0..=31u8)? {
            0 if self.depth < MOST_DEPTH => self.condition(reach)?,
            1 if self.depth < MOST_DEPTH => self.repeat(reach)?,
            2 | 3 => Statement::Load(bytes.arbitrary()?),
            4 => Statement::Store(bytes.arbitrary()?),
            5 => Statement::Combine(bytes.arbitrary()?),
            6 | 7 => Statement::Local(bytes.arbitrary()?),
            8 | 9 if converged => Statement::Exchange(bytes.arbitrary()?),
            10 | 11 if converged => {
                let (mnemonic, letters) = *bytes.choose(COLLECTIVE)?;
                let (letters, clamp) = letters.split_once('%').unwrap_or((letters, ""));
                let mut operands = operands(letters)(bytes)?;
                if !clamp.is_empty() {
                    operands = format!("{operands}, {clamp}");
                }
                Statement::Collective(Instruction { mnemonic, operands })
            }
            12 => Statement::Carry(bytes.arbitrary()?),
            13 => Statement::OwnAtomic(bytes.arbitrary()?),
            14 => Statement::Overlap(bytes.arbitrary()?),
            15 => Statement::Fetch(bytes.arbitrary()?),
            16 if converged => Statement::Reduce(bytes.arbitrary()?),
            17 if converged => Statement::Relay(bytes.arbitrary()?),
            18 if converged => Statement::Tensor(bytes.arbitrary()?),
            19 if reach == Reach::Grid => Statement::ClusterExchange(bytes.arbitrary()?),
            20 if converged => Statement::Bulk(bytes.arbitrary()?),
            21 => Statement::Ticket(bytes.arbitrary()?),
            22 => Statement::AsyncCopy(bytes.arbitrary()?),
            _ => {
                let (mnemonic, letters) = *bytes.choose(COMPUTING)?;
                let guard = bytes.arbitrary()?;
                let operands = operands(letters)(bytes)?;
                Statement::Compute(guard, Instruction { mnemonic, operands })
            }
        })
    }

    fn condition(&mut self, reach: Reach) -> Result<Statement> {
        let decision = match self.bytes.arbitrary()? {
            true => Decision::Block {
                bit: self.bytes.int_in_range(0..=1)?,
            },
            false => Decision::Thread {
                pred: self.bytes.arbitrary()?,
            },
        };
        // A condition of the block keeps its threads together. Blocks of the grid may part.
        let reach = match decision {
            Decision::Block { .. } => reach.min(Reach::Block),
            Decision::Thread { .. } => Reach::Thread,
        };
        self.depth += 1;
        let then = self.statements(1, 6, reach)?;
        let otherwise = self.statements(0, 6, reach)?;
        self.depth -= 1;
        Ok(Statement::If {
            decision,
            then,
            otherwise,
        })
    }

    fn repeat(&mut self, reach: Reach) -> Result<Statement> {
        let turns = match self.bytes.arbitrary()? {
            true => Turns::Same(self.bytes.int_in_range(1..=4)?),
            false => Turns::Register(self.bytes.arbitrary()?),
        };
        // Equal trip counts keep the threads together.
        let alike = matches!(turns, Turns::Same(_));
        self.depth += 1;
        let body = self.statements(1, 6, if alike { reach } else { Reach::Thread })?;
        // With equal trip counts, an exit would part the threads.
        let exit = if !alike && self.bytes.arbitrary()? {
            let pred = self.bytes.arbitrary()?;
            let rest = self.statements(1, 3, Reach::Thread)?;
            Some(Exit { pred, rest })
        } else {
            None
        };
        self.depth -= 1;
        Ok(Statement::Loop { turns, body, exit })
    }
}

/// Draws an operand for each letter ([`super::table`]).
pub(super) fn operands(letters: &str) -> impl Fn(&mut Unstructured<'_>) -> Result<String> {
    move |bytes| {
        let letters = letters.chars().filter(|&letter| letter != '=');
        let operands: Result<Vec<_>> = letters.map(|letter| operand(letter, bytes)).collect();
        Ok(operands?.join(", "))
    }
}

fn operand(letter: char, bytes: &mut Unstructured<'_>) -> Result<String> {
    if letter == '#' {
        return Ok(bytes.int_in_range(0..=255u8)?.to_string());
    }
    // A capital letter allows an immediate: two in five.
    if letter.is_lowercase() || bytes.ratio(3, 5)? {
        return Ok(register(letter.to_ascii_lowercase(), bytes.arbitrary()?));
    }
    let edge: bool = bytes.arbitrary()?;
    Ok(match letter {
        // Half of the immediates are values at which shifts, signs and wrapping change.
        'R' if edge => (*bytes.choose(&[0i64, 1, 2, 31, 32, 33, -1, 0x7fff_ffff, -0x8000_0000])?).to_string(),
        'R' => bytes.arbitrary::<i32>()?.to_string(),
        'H' => bytes.arbitrary::<i16>()?.to_string(),
        'L' if edge => (*bytes.choose(&[0i64, 1, 63, 64, -1, i64::MAX, 1 << 32])?).to_string(),
        'L' => bytes.arbitrary::<i32>()?.to_string(),
        'F' if edge => {
            let edges = [0u32, 1 << 31, 1, 0x3f80_0000, 0x7f80_0000, 0x7fc0_0000];
            format!("0f{:08x}", *bytes.choose(&edges)?)
        }
        'F' => format!("0f{:08x}", bytes.arbitrary::<u32>()?),
        _ => format!("0d{:016x}", bytes.arbitrary::<u64>()?),
    })
}
