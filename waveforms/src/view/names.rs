//! Names of values: the lists that tell a viewer what a number means, and in which colour to show it.

use std::fmt::Write as _;

use warpwave_hw::probe::CODE_WIDTH;

use crate::signal::{Kind, Signal, state_width};

/// Colours by what a state says: X11's name for GTKWave, and as Surfer wants it. States of rest have none.
const COLOURS: &[(&[&str], &str, &str)] = &[
    (&["idle", "empty", "none", "closed"], "", ""),
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
    (&["lg_throttle", "stall_answer"], "DeepPink4", "8b0a50"),
    (&["barrier", "membar", "gmma", "activate"], "Purple3", "7d26cd"),
    (&["math_pipe_throttle", "write"], "SteelBlue", "4682b4"),
    (&["branch_resolving", "stall_pinned"], "DarkGoldenrod", "b8860b"),
    (&["wait", "pass", "2_passes"], "SlateGray", "708090"),
    (&["no_instruction", "precharge"], "Gray30", "4d4d4d"),
    (&["dispatch_stall"], "DarkSlateBlue", "483d8b"),
    (&["drain", "sleeping"], "Gray45", "737373"),
];

/// Colour of a state that is not in the table.
const OTHER: (&str, &str) = ("DarkSlateGray", "2f4f4f");

/// The names of the values of one kind of signal.
pub struct List<'a> {
    /// What the files of it are called.
    pub name: String,
    /// Bits of a value.
    pub width: u32,
    kind: Kind,
    /// Values from 0 on.
    texts: Vec<&'a str>,
}

/// All lists of a run.
pub struct Lists<'a>(pub Vec<List<'a>>);

impl<'a> Lists<'a> {
    /// A list for each pair of name and states, the second of a name with a number, and one for the instructions.
    pub fn new(signals: &[Signal], code: &'a [String]) -> Self {
        let mut lists = Lists(Vec::new());
        for signal in signals {
            match signal.kind {
                _ if lists.place(signal).is_some() => {}
                Kind::State(names) => {
                    let same = lists
                        .0
                        .iter()
                        .filter(|list| is_called(&list.name, &signal.name))
                        .count();
                    let name = match same {
                        0 => signal.name.clone(),
                        n => format!("{}.{}", signal.name, n + 1),
                    };
                    lists.add(name, state_width(names), signal.kind, names.to_vec());
                }
                Kind::Code if !code.is_empty() => {
                    let texts = code.iter().map(String::as_str).collect();
                    lists.add("instructions".into(), CODE_WIDTH, Kind::Code, texts);
                }
                _ => {}
            }
        }
        lists
    }

    fn add(&mut self, name: String, width: u32, kind: Kind, texts: Vec<&'a str>) {
        self.0.push(List {
            name,
            width,
            kind,
            texts,
        });
    }

    fn place(&self, signal: &Signal) -> Option<usize> {
        let tells = |list: &List<'_>| {
            list.kind == signal.kind && (signal.kind == Kind::Code || is_called(&list.name, &signal.name))
        };
        self.0.iter().position(tells)
    }

    /// The list that tells of a signal's values.
    pub fn of(&self, signal: &Signal) -> Option<&List<'a>> {
        self.place(signal).map(|place| &self.0[place])
    }
}

/// Whether a list is that of a name, numbered or not.
fn is_called(list: &str, name: &str) -> bool {
    list == name || list.rsplit_once('.').is_some_and(|(list, _)| list == name)
}

impl List<'_> {
    /// For GTKWave, `VALUE ?colour?NAME`, a line each; the value as it is shown: in hex, with all its digits.
    pub fn translation(&self) -> String {
        let digits = self.width.div_ceil(4) as usize;
        let mut out = String::new();
        for (n, text) in self.texts.iter().enumerate() {
            let colour = match self.colour(text).0 {
                "" => String::new(),
                colour => format!("?{colour}?"),
            };
            let _ = writeln!(out, "{n:0digits$x} {colour}{text}");
        }
        out
    }

    /// For Surfer, a header and `VALUE[#colour] NAME`, a line each.
    pub fn mapping(&self) -> String {
        let mut out = format!("Name = {}\nBits = {}\n", self.name, self.width);
        for (n, text) in self.texts.iter().enumerate() {
            let colour = match self.colour(text).1 {
                "" => String::new(),
                colour => format!("[#{colour}]"),
            };
            let _ = writeln!(out, "{n:#x}{colour} {text}");
        }
        out
    }

    fn colour(&self, text: &str) -> (&'static str, &'static str) {
        if self.kind == Kind::Code {
            return ("", "");
        }
        let known = COLOURS.iter().find(|(states, ..)| states.contains(&text));
        known.map_or(OTHER, |&(_, gtkwave, surfer)| (gtkwave, surfer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_instructions_are_listed_once_each_with_digits_as_shown() {
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
        let lists = Lists::new(&signals, &code);
        let names: Vec<_> = lists.0.iter().map(|list| list.name.as_str()).collect();
        assert_eq!(names, ["state", "state.2", "instructions"]);
        let of = |n: usize| lists.of(&signals[n]).map(|list| list.name.as_str());
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
            lists.0[0].translation(),
            "0 ?SeaGreen?selected\n1 ?Purple3?barrier\n2 ?DarkSlateGray?odd\n"
        );
        assert_eq!(
            lists.0[1].mapping(),
            "Name = state.2\nBits = 1\n0x0 idle\n0x1[#2e8b57] hit\n"
        );
        assert_eq!(lists.0[2].translation(), "000000 MOV R1, R2\n000001 EXIT\n");
    }
}
