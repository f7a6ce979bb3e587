//! Statements without others inside: what is computed, loaded, stored and exchanged.

use arbitrary::Result;

use super::generate::{INPUT_WORDS, OWN_WORDS, REGISTERS, SHARED_COUNTERS, Text};
use super::table::{COLLECTIVE, COMMUTING, COMPUTING};

impl Text<'_, '_> {
    pub(super) fn computing(&mut self) -> Result<()> {
        let (mnemonic, operands) = *self.bytes.choose(COMPUTING)?;
        let guard = self.guard()?;
        let operands = self.operands(operands)?;
        self.line(format!("{guard}{mnemonic} {operands};"));
        Ok(())
    }

    pub(super) fn collective(&mut self) -> Result<()> {
        let (mnemonic, operands) = *self.bytes.choose(COLLECTIVE)?;
        let (operands, clamp) = operands.split_once('%').unwrap_or((operands, ""));
        let operands = self.operands(operands)?;
        let clamp = if clamp.is_empty() {
            String::new()
        } else {
            format!(", {clamp}")
        };
        self.line(format!("{mnemonic} {operands}{clamp}, -1;"));
        Ok(())
    }

    /// A sum and a difference of 64 bits in halves.
    pub(super) fn carry(&mut self) -> Result<()> {
        let op = *self.bytes.choose(&["add", "sub"])?;
        let (low, high) = (self.operands("r=rR")?, self.operands("r=rR")?);
        self.line(format!("{op}.cc.u32 {low};\n\t{op}c.u32 {high};"));
        Ok(())
    }

    fn guard(&mut self) -> Result<String> {
        Ok(match self.bytes.int_in_range(0..=7u8)? {
            0 => format!("@{} ", self.register('p')?),
            1 => format!("@!{} ", self.register('p')?),
            _ => String::new(),
        })
    }

    fn operands(&mut self, letters: &str) -> Result<String> {
        let letters = letters.chars().filter(|&letter| letter != '=');
        let operands = letters.map(|letter| self.operand(letter)).collect::<Result<Vec<_>>>()?;
        Ok(operands.join(", "))
    }

    fn operand(&mut self, letter: char) -> Result<String> {
        if letter == '#' {
            return Ok(self.bytes.int_in_range(0..=255u8)?.to_string());
        }
        if letter.is_lowercase() || self.bytes.ratio(3, 5)? {
            return self.register(letter.to_ascii_lowercase());
        }
        let edge: bool = self.bytes.arbitrary()?;
        Ok(match letter {
            'R' if edge => (*self
                .bytes
                .choose(&[0i64, 1, 2, 31, 32, 33, -1, 0x7fff_ffff, -0x8000_0000])?)
            .to_string(),
            'R' => self.bytes.arbitrary::<i32>()?.to_string(),
            'H' => self.bytes.arbitrary::<i16>()?.to_string(),
            'L' if edge => (*self.bytes.choose(&[0i64, 1, 63, 64, -1, i64::MAX, 1 << 32])?).to_string(),
            'L' => self.bytes.arbitrary::<i32>()?.to_string(),
            'F' if edge => format!(
                "0f{:08x}",
                *self
                    .bytes
                    .choose(&[0u32, 1 << 31, 1, 0x3f80_0000, 0x7f80_0000, 0x7fc0_0000])?
            ),
            'F' => format!("0f{:08x}", self.bytes.arbitrary::<u32>()?),
            _ => format!("0d{:016x}", self.bytes.arbitrary::<u64>()?),
        })
    }

    pub(super) fn register(&mut self, letter: char) -> Result<String> {
        let n = REGISTERS.iter().find(|row| row.0 == letter).map_or(1, |row| row.2);
        Ok(format!("%{letter}{}", self.bytes.int_in_range(0..=n - 1)?))
    }

    /// `%a1` = `base` + a place that a register chooses among `n` of `bytes` bytes.
    fn place(&mut self, base: &str, n: u64, bytes: u64) -> Result<()> {
        let index = self.register('r')?;
        self.line(format!(
            "and.b32 %t2, {index}, {};\n\tmul.wide.u32 %a1, %t2, {bytes};",
            n - 1
        ));
        self.line(format!("add.s64 %a1, {base}, %a1;"));
        Ok(())
    }

    /// Loads of every width from what nobody writes.
    pub(super) fn load(&mut self) -> Result<()> {
        let (ty, bytes, letters) = *self.bytes.choose(&[
            ("u32", 4, "r"),
            ("f32", 4, "f"),
            ("u64", 8, "l"),
            ("f64", 8, "d"),
            ("s8", 1, "r"),
            ("u16", 2, "r"),
            ("b16", 2, "h"),
            ("v2.u32", 8, "rr"),
            ("v4.f32", 16, "ffff"),
            ("v4.u8", 4, "hhhh"),
        ])?;
        let cache = *self.bytes.choose(&["", ".nc", ".cg", ".cs"])?;
        let cache = if ty == "v4.u8" { "" } else { cache };
        self.place("%input", INPUT_WORDS * 4 / bytes, bytes)?;
        let (guard, target) = (self.guard()?, self.list(letters)?);
        self.line(format!("{guard}ld.global{cache}.{ty} {target}, [%a1];"));
        Ok(())
    }

    /// Registers in order, a list in braces if there are several; none stands twice.
    fn list(&mut self, letters: &str) -> Result<String> {
        let first = letters.chars().next().unwrap_or('r');
        let n = REGISTERS.iter().find(|row| row.0 == first).map_or(1, |row| row.2);
        if letters.len() == 1 {
            return self.register(first);
        }
        let start = self.bytes.int_in_range(0..=n - 1)?;
        let used = letters.len().min(n.into());
        let mut names: Vec<_> = (0..used as u8)
            .map(|at| format!("%{first}{}", (start + at) % n))
            .collect();
        names.resize(letters.len(), "_".to_owned());
        Ok(format!("{{{}}}", names.join(", ")))
    }

    /// A store to a place of the thread's own.
    pub(super) fn store(&mut self) -> Result<()> {
        let (ty, bytes, letter) =
            *self
                .bytes
                .choose(&[("u32", 4, 'r'), ("u8", 1, 'r'), ("u64", 8, 'l'), ("f32", 4, 'f')])?;
        self.place("%output", OWN_WORDS * 4 / bytes, bytes)?;
        let (guard, value) = (self.guard()?, self.register(letter)?);
        self.line(format!("{guard}st.global.{ty} [%a1], {value};"));
        if self.bytes.arbitrary()? {
            self.line(format!("ld.global.{ty} {value}, [%a1];"));
        }
        Ok(())
    }

    /// An atomic without order, in global or in shared memory.
    pub(super) fn combine(&mut self) -> Result<()> {
        let n = self.bytes.choose_index(COMMUTING.len())? as u64;
        let (op, value, guard) = (COMMUTING[n as usize], self.register('r')?, self.guard()?);
        let name = *self.bytes.choose(&["red", "atom"])?;
        let old = if name == "atom" { "%t3, " } else { "" };
        if self.bytes.arbitrary()? {
            self.line("mov.u32 %t2, tile;".to_string());
            let at = 4 * (u64::from(self.block) + n);
            self.line(format!("{guard}{name}.shared.{op} {old}[%t2+{at}], {value};"));
            return Ok(());
        }
        self.place("%counters", SHARED_COUNTERS, 4)?;
        let at = 4 * SHARED_COUNTERS * n;
        self.line(format!("{guard}{name}.global.{op} {old}[%a1+{at}], {value};"));
        Ok(())
    }

    /// Local memory, by its own and by generic addresses.
    pub(super) fn local(&mut self) -> Result<()> {
        let (ty, bytes, letter) =
            *self
                .bytes
                .choose(&[("u32", 4, 'r'), ("u64", 8, 'l'), ("s8", 1, 'r'), ("f64", 8, 'd')])?;
        self.place("%own", OWN_WORDS * 4 / bytes, bytes)?;
        let (guard, value) = (self.guard()?, self.register(letter)?);
        let space = if self.bytes.arbitrary()? {
            self.line("cvta.local.u64 %a1, %a1;".to_string());
            ""
        } else {
            ".local"
        };
        if self.bytes.arbitrary()? {
            let ty = ty.replace('s', "u");
            self.line(format!("{guard}st{space}.{ty} [%a1], {value};"));
        } else {
            self.line(format!("{guard}ld{space}.{ty} {value}, [%a1];"));
        }
        Ok(())
    }

    /// Each thread hands a word to another one through shared memory.
    pub(super) fn exchange(&mut self) -> Result<()> {
        let (value, from) = (self.register('r')?, self.register('r')?);
        let result = self.register('r')?;
        let threads = if self.bytes.arbitrary()? {
            String::new()
        } else {
            format!(", {}", self.block.next_multiple_of(32))
        };
        let number = self.bytes.int_in_range(0..=3)?;
        self.line(format!(
            "mov.u32 %t0, tile;\n\tmad.lo.u32 %t1, %tid, 4, %t0;\n\tst.shared.u32 [%t1], {value};"
        ));
        self.line(format!(
            "rem.u32 %t2, {from}, {};\n\tmad.lo.u32 %t2, %t2, 4, %t0;",
            self.block
        ));
        self.line(format!(
            "bar.sync {number}{threads};\n\tld.shared.u32 {result}, [%t2];\n\tbar.sync {number}{threads};"
        ));
        Ok(())
    }
}
