//! Target: the VCD writer, read back by the reader of the crate `vcd`.
//!
//! Oracle: every signal has the changes that were written, in the same cycles, under its name and under its alias. Times never go back.

use std::collections::BTreeMap;

use vcd::{Command, IdCode, Parser, ScopeItem};
use warpwave_waveforms::vcd::writer::VcdWriter;

use crate::waves::{Dump, Waves, number};

/// Reads the changes of all signals but the clock.
fn read(file: &[u8]) -> Waves {
    let mut parser = Parser::new(file);
    let header = parser.parse_header().expect("the writer writes a header");
    let mut names = BTreeMap::new();
    collect(&header.items, "", &mut names);
    let (mut waves, mut now) = (Waves::new(), 0);
    for command in parser {
        let (code, value) = match command.expect("the writer writes commands") {
            Command::Timestamp(at) => {
                assert!(at >= now, "the time goes back from {now} to {at}");
                now = at;
                continue;
            }
            Command::ChangeScalar(code, value) => (code, number(&value.to_string())),
            Command::ChangeVector(code, value) => (code, number(&value.to_string())),
            Command::ChangeReal(code, value) => (code, Some(value.to_bits())),
            _ => continue,
        };
        // A signal and its alias share one code.
        for path in &names[&code] {
            waves.entry(path.clone()).or_default().push((now, value));
        }
    }
    // The writer adds these two signals. The dump does not know them.
    waves.remove("gpu.clock");
    waves.remove("gpu.cycle");
    waves
}

fn collect(items: &[ScopeItem], above: &str, names: &mut BTreeMap<IdCode, Vec<String>>) {
    for item in items {
        match item {
            ScopeItem::Var(var) => names
                .entry(var.code)
                .or_default()
                .push(format!("{above}{}", var.reference)),
            ScopeItem::Scope(scope) => collect(&scope.items, &format!("{above}{}.", scope.identifier), names),
            _ => {}
        }
    }
}

/// Writes and reads the dump.
///
/// # Panics
/// If the reader refuses the dump, or finds other changes.
pub fn check(dump: Dump) {
    let signals = dump.signals();
    let mut file = Vec::new();
    let mut writer = VcdWriter::new(&mut file, &["a $run".into()], dump.axis, &signals).expect("memory has room");
    let expected = dump.write(&signals, &mut writer);
    drop(writer);
    assert_eq!(read(&file), expected, "changes by signal");
}
