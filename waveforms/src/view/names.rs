//! Tables of names and colours, so that a viewer shows `barrier` and not 2.

use std::fmt::Write as _;

use warpwave_hw::probe::CODE_WIDTH;

use crate::signal::{Kind, Signal, state_width};

/// Colours of states: an X11 name for GTKWave and an RGB value for Surfer. States without activity have none.
const COLOURS: &[(&[&str], &str, &str)] = &[
    (&["idle", "empty", "none", "closed"], "", ""),
    (&["issue_to_lsu", "lsu_to_l1"], "Sienna", "a0522d"),
    (&["l1", "l1_to_lsu", "lsu_to_use"], "SeaGreen", "2e8b57"),
    (&["to_l2", "to_l1"], "SlateGray", "708090"),
    (&["l2"], "DarkOrange3", "cd6600"),
    (&["memory"], "Firebrick", "b22222"),
    (&["selected", "hit", "read", "open", "1_pass"], "SeaGreen", "2e8b57"),
    (&["not_selected"], "DarkOliveGreen", "556b2f"),
    (
        &[
            "long_scoreboard",
            "miss",
            "stall_mshr",
            "stall_fetch",
            "to_16_passes",
            "to_32_passes",
        ],
        "Firebrick",
        "b22222",
    ),
    (
        &["short_scoreboard", "data_busy", "to_4_passes", "to_8_passes"],
        "DarkOrange3",
        "cd6600",
    ),
    (&["mio_throttle", "stall_store", "stall_memory"], "Sienna", "a0522d"),
    (&["lg_throttle", "stall_response"], "DeepPink4", "8b0a50"),
    (&["barrier", "membar", "gmma", "activate"], "Purple3", "7d26cd"),
    (&["math_pipe_throttle", "write"], "SteelBlue", "4682b4"),
    (&["imc_miss"], "Goldenrod3", "cd9b1d"),
    (&["branch_resolving", "stall_pinned"], "DarkGoldenrod", "b8860b"),
    (&["wait", "bypass", "2_passes"], "SlateGray", "708090"),
    (&["no_instruction", "precharge"], "Gray30", "4d4d4d"),
    (&["dispatch_stall"], "DarkSlateBlue", "483d8b"),
    (&["drain", "sleeping"], "Gray45", "737373"),
];

/// The colour of a state that is not in the table.
const OTHER_COLOUR: (&str, &str) = ("DarkSlateGray", "2f4f4f");

/// The names of a signal's values. Signals with the same name and states share a table.
pub struct NameTable<'a> {
    /// The name of its files.
    pub name: String,
    /// The width of a value, in bits.
    pub width: u32,
    kind: Kind,
    /// The names of the values from 0 on.
    texts: Vec<&'a str>,
}

/// All tables of a run.
pub struct NameTables<'a>(pub Vec<NameTable<'a>>);

impl<'a> NameTables<'a> {
    /// Creates a table for each pair of signal name and states, and one for the instructions. A second table of the same name gets
    /// a number.
    pub fn new(signals: &[Signal], code: &'a [String]) -> Self {
        let mut tables = NameTables(Vec::new());
        for signal in signals {
            match signal.kind {
                _ if tables.index_of(signal).is_some() => {}
                Kind::State(names) => {
                    let same = tables
                        .0
                        .iter()
                        .filter(|table| is_called(&table.name, &signal.name))
                        .count();
                    let name = match same {
                        0 => signal.name.clone(),
                        n => format!("{}.{}", signal.name, n + 1),
                    };
                    tables.add(name, state_width(names), signal.kind, names.to_vec());
                }
                Kind::Code if !code.is_empty() => {
                    let texts = code.iter().map(String::as_str).collect();
                    tables.add("instructions".into(), CODE_WIDTH, Kind::Code, texts);
                }
                _ => {}
            }
        }
        tables
    }

    fn add(&mut self, name: String, width: u32, kind: Kind, texts: Vec<&'a str>) {
        self.0.push(NameTable {
            name,
            width,
            kind,
            texts,
        });
    }

    fn index_of(&self, signal: &Signal) -> Option<usize> {
        if !matches!(signal.kind, Kind::State(_) | Kind::Code) {
            return None;
        }
        // The comparison of states takes longer than that of names.
        let fits = |table: &NameTable<'_>| {
            (signal.kind == Kind::Code || is_called(&table.name, &signal.name)) && table.kind == signal.kind
        };
        self.0.iter().position(fits)
    }

    /// The table of a signal, if its values have names.
    pub fn of(&self, signal: &Signal) -> Option<&NameTable<'a>> {
        self.index_of(signal).map(|index| &self.0[index])
    }
}

/// True if a table has this name, with or without a number.
fn is_called(table: &str, name: &str) -> bool {
    table == name || table.rsplit_once('.').is_some_and(|(table, _)| table == name)
}

impl NameTable<'_> {
    /// A translate file for GTKWave: lines of the form `VALUE ?colour?NAME`. The value has all its hex digits, as GTKWave shows it.
    pub fn translate_file(&self) -> String {
        let digits = self.width.div_ceil(4) as usize;
        let mut out = String::new();
        for (n, text) in self.texts.iter().enumerate() {
            let colour = match self.colours(text).0 {
                "" => String::new(),
                colour => format!("?{colour}?"),
            };
            let _ = writeln!(out, "{n:0digits$x} {colour}{text}");
        }
        out
    }

    /// A mapping file for Surfer: a header and lines of the form `VALUE[#colour] NAME`.
    pub fn mapping_file(&self) -> String {
        let mut out = format!("Name = {}\nBits = {}\n", self.name, self.width);
        for (n, text) in self.texts.iter().enumerate() {
            let colour = match self.colours(text).1 {
                "" => String::new(),
                colour => format!("[#{colour}]"),
            };
            let _ = writeln!(out, "{n:#x}{colour} {text}");
        }
        out
    }

    /// The colours of a value, for GTKWave and for Surfer.
    fn colours(&self, text: &str) -> (&'static str, &'static str) {
        if self.kind == Kind::Code {
            return ("", "");
        }
        let known = COLOURS.iter().find(|(states, ..)| states.contains(&text));
        known.map_or(OTHER_COLOUR, |&(_, gtkwave, surfer)| (gtkwave, surfer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_of_states_and_the_instructions_have_one_table() {
        let (warp, tag) = (
            Kind::State(&["selected", "barrier", "odd"]),
            Kind::State(&["idle", "hit"]),
        );
        let signals = [
            Signal::new("sm.warp[0].state", warp),
            Signal::new("sm.warp[1].state", warp),
            Signal::new("hbm.state", tag),
            Signal::new("sm.issue_inst", Kind::Code),
            Signal::new("sm.issue_pc", Kind::Vector(32)),
        ];
        let code = ["MOV R1, R2".to_owned(), "EXIT".to_owned()];
        let tables = NameTables::new(&signals, &code);
        let names: Vec<_> = tables.0.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["state", "state.2", "instructions"]);
        let of = |n: usize| tables.of(&signals[n]).map(|table| table.name.as_str());
        assert_eq!(
            [0, 1, 2, 3, 4].map(of),
            [
                Some("state"),
                Some("state"),
                Some("state.2"),
                Some("instructions"),
                None
            ]
        );
        assert_eq!(
            tables.0[0].translate_file(),
            "0 ?SeaGreen?selected\n1 ?Purple3?barrier\n2 ?DarkSlateGray?odd\n"
        );
        assert_eq!(
            tables.0[1].mapping_file(),
            "Name = state.2\nBits = 1\n0x0 idle\n0x1[#2e8b57] hit\n"
        );
        assert_eq!(tables.0[2].translate_file(), "000000 MOV R1, R2\n000001 EXIT\n");
    }
}
