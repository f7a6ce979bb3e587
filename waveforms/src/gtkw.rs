//! What GTKWave needs to show a dump at once: a save file with groups, rows and radices, and the names of states.
//!
//! Beside `run.vcd` come `run.gtkw`, which opens it (`gtkwave run.gtkw`), and `run.NAME.txt` for each list of states. The names are
//! relative, so the files may be moved together. GTKWave drops a row silently if its name differs from the declared one,
//! so rows are made from the same table as the dump.
//!
//! Every scope is a group; of numbered ones the first is open: one SM, one sub-core, one warp are seen at first.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::error::WaveError;
use crate::signal::{Scope, Signal};

/// Most rows laid out; what is beyond is still in the viewer's tree.
pub const MAX_ROWS: usize = 4000;

/// Flags of a trace in a save file: how a value is shown, what a group line does.
mod flag {
    pub const HEX: &str = "@22";
    pub const DECIMAL: &str = "@24";
    pub const BINARY: &str = "@28";
    pub const NAMED: &str = "@2022";
    pub const COMMENT: &str = "@200";
    pub const OPEN: [&str; 2] = ["@800200", "@1000200"];
    pub const CLOSED: [&str; 2] = ["@c00200", "@1401200"];
}

/// Backgrounds of states from the second on; the first is mostly one of rest.
const COLOURS: [&str; 16] = [
    "SeaGreen",
    "SteelBlue",
    "DarkOrange",
    "IndianRed",
    "MediumPurple",
    "Goldenrod",
    "CadetBlue",
    "DimGray",
    "OliveDrab",
    "RoyalBlue",
    "Sienna",
    "DeepPink4",
    "DarkSlateBlue",
    "DarkKhaki",
    "LimeGreen",
    "Firebrick",
];

/// Writes the save file and the state files beside the dump at `vcd`.
pub fn write_beside(vcd: &Path, signals: &[Signal]) -> Result<(), WaveError> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| WaveError::Io {
            path: path.into(),
            error,
        })
    };
    let layout = Layout::new(vcd, signals);
    for list in &layout.states {
        write(&vcd.with_file_name(&list.file), translation(list.states))?;
    }
    write(&vcd.with_extension("gtkw"), layout.text())
}

/// The names of a state's values and the file that tells GTKWave.
struct StateList {
    name: String,
    states: &'static [&'static str],
    file: String,
}

/// `VALUE ?colour?NAME`, a line each; the value as GTKWave shows it: in hex, with all its digits.
fn translation(states: &[&str]) -> String {
    let digits = crate::signal::state_width(states).div_ceil(4) as usize;
    let line = |(n, state): (usize, &&str)| match n.checked_sub(1) {
        None => format!("{n:0digits$x} {state}\n"),
        Some(n) => format!("{:0digits$x} ?{}?{state}\n", n + 1, COLOURS[n % COLOURS.len()]),
    };
    states.iter().enumerate().map(line).collect()
}

/// A save file in the making.
struct Layout<'a> {
    signals: &'a [Signal],
    states: Vec<StateList>,
    text: String,
    rows: usize,
    radix: &'static str,
}

impl<'a> Layout<'a> {
    fn new(vcd: &Path, signals: &'a [Signal]) -> Self {
        let name = |path: &Path| {
            path.file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        let (dump, save) = (name(vcd), name(&vcd.with_extension("gtkw")));
        let top = &signals[0].scope[0];
        Layout {
            signals,
            states: state_lists(&name(&vcd.with_extension("")), signals),
            text: format!(
                "[dumpfile] \"{dump}\"\n[savefile] \"{save}\"\n[size] 1600 900\n[sst_width] 220\n[signals_width] 320\n[treeopen] {top}.\n"
            ),
            rows: 0,
            radix: "",
        }
    }

    fn text(mut self) -> String {
        for scope in &Scope::tree(self.signals).scopes {
            self.group(scope, "", true);
        }
        if self.rows < self.signals.len() {
            let more = self.signals.len() - self.rows;
            let _ = write!(self.text, "{}\n-{more} more signals are in the tree\n", flag::COMMENT);
        }
        self.text
    }

    /// A scope as a group; one that holds nothing but a single scope gives it its name.
    fn group(&mut self, scope: &Scope, above: &str, is_open: bool) {
        let label = format!("{above}{}", scope.name);
        if let ([], [only]) = (&scope.signals[..], &scope.scopes[..]) {
            return self.group(only, &format!("{label}."), is_open);
        }
        if self.rows >= MAX_ROWS {
            return;
        }
        let [begin, end] = if is_open { flag::OPEN } else { flag::CLOSED };
        let _ = writeln!(self.text, "{begin}\n-{label}");
        self.radix = "";
        for &n in &scope.signals {
            self.row(&self.signals[n]);
        }
        for inner in &scope.scopes {
            let is_first = !inner.name.ends_with(']') || inner.name.ends_with("[0]");
            self.group(inner, "", is_first);
        }
        let _ = writeln!(self.text, "{end}\n-{label}");
        self.radix = "";
    }

    fn row(&mut self, signal: &Signal) {
        self.rows += 1;
        let radix = radix(signal);
        if let Some(states) = signal.states {
            let list = self
                .states
                .iter()
                .find(|list| (&list.name, list.states) == (&signal.name, states));
            let file = &list.expect("every list has its file").file;
            let _ = writeln!(self.text, "{radix}\n^1 {file}");
        } else if self.radix != radix {
            let _ = writeln!(self.text, "{radix}");
        }
        self.radix = if signal.states.is_some() { "" } else { radix };
        let _ = writeln!(self.text, "{}.{}", signal.scope.join("."), signal.declared());
    }
}

/// A list for each pair of name and states; the second of a name has a number.
fn state_lists(stem: &str, signals: &[Signal]) -> Vec<StateList> {
    let mut lists: Vec<StateList> = Vec::new();
    for signal in signals {
        let Some(states) = signal.states else { continue };
        let same_name = lists.iter().filter(|list| list.name == signal.name);
        if same_name.clone().any(|list| list.states == states) {
            continue;
        }
        let file = match same_name.count() {
            0 => format!("{stem}.{}.txt", signal.name),
            n => format!("{stem}.{}.{}.txt", signal.name, n + 1),
        };
        lists.push(StateList {
            name: signal.name.clone(),
            states,
            file,
        });
    }
    lists
}

/// States by name, bits in binary, places and masks in hex, what is left and narrow is a count.
fn radix(signal: &Signal) -> &'static str {
    let is_place = ["pc", "addr", "mask", "line"]
        .iter()
        .any(|word| signal.name.contains(word));
    match signal.width {
        _ if signal.states.is_some() => flag::NAMED,
        1 => flag::BINARY,
        width if is_place || width > 32 => flag::HEX,
        _ => flag::DECIMAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(path: &str, width: u32, states: Option<&'static [&'static str]>) -> Signal {
        let mut scope: Vec<String> = path.split('.').map(String::from).collect();
        let name = scope.pop().expect("a name");
        Signal {
            scope,
            name,
            width,
            states,
        }
    }

    #[test]
    fn two_warps_are_laid_out_as_groups_the_second_closed() {
        let states: &[&str] = &["idle", "ready", "stalled"];
        let signals = [
            signal("gpu.sm[0].issued", 1, None),
            signal("gpu.sm[0].warp[0].state", 2, Some(states)),
            signal("gpu.sm[0].warp[0].pc", 32, None),
            signal("gpu.sm[0].warp[1].state", 2, Some(states)),
            signal("gpu.sm[0].warp[1].pc", 32, None),
            signal("gpu.sm[0].warp[1].n_waiting", 4, None),
        ];
        let text = Layout::new(Path::new("/some/where/run.vcd"), &signals).text();
        let expected = "\
[dumpfile] \"run.vcd\"
[savefile] \"run.gtkw\"
[size] 1600 900
[sst_width] 220
[signals_width] 320
[treeopen] gpu.
@800200
-gpu.sm[0]
@28
gpu.sm[0].issued
@800200
-warp[0]
@2022
^1 run.state.txt
gpu.sm[0].warp[0].state[1:0]
@22
gpu.sm[0].warp[0].pc[31:0]
@1000200
-warp[0]
@c00200
-warp[1]
@2022
^1 run.state.txt
gpu.sm[0].warp[1].state[1:0]
@22
gpu.sm[0].warp[1].pc[31:0]
@24
gpu.sm[0].warp[1].n_waiting[3:0]
@1401200
-warp[1]
@1000200
-gpu.sm[0]
";
        assert_eq!(text, expected);
        assert_eq!(translation(states), "0 idle\n1 ?SeaGreen?ready\n2 ?SteelBlue?stalled\n");
    }
}
