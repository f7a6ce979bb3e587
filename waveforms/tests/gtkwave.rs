//! GTKWave itself opens what lies beside a dump, shows every row and the names of states. Skipped where it is not installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use warpwave_waveforms::file::About;
use warpwave_waveforms::signal::{Kind, Signal};
use warpwave_waveforms::sink::Sink;
use warpwave_waveforms::vcd::{Axis, writer::Writer};
use warpwave_waveforms::view::{self, Span};

const STATES: &[&str] = &["idle", "ready", "stalled"];

/// Two SMs of two warps.
fn signals() -> Vec<Signal> {
    let warps = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let signal =
        |(sm, warp), (name, kind)| Signal::new(&format!("gpu.sm[{sm}].subcore[0].scheduler.warp[{warp}].{name}"), kind);
    let kinds = [
        ("state", Kind::State(STATES)),
        ("pc", Kind::Vector(32)),
        ("active_mask", Kind::Vector(32)),
        ("n_waiting", Kind::Vector(4)),
        ("issued", Kind::Bit),
    ];
    warps
        .into_iter()
        .flat_map(|warp| kinds.map(|kind| signal(warp, kind)))
        .collect()
}

fn write_run(vcd: &Path) {
    let signals = signals();
    let file = fs::File::create(vcd).expect("a file");
    let mut writer = Writer::new(file, &["two SMs".into()], Axis::Cycles, &signals).expect("a file");
    writer.begin(0, &vec![None; signals.len()]).expect("a file");
    for now in 1..200u64 {
        for warp in 0..4 {
            let first = (warp * 5) as u32;
            let mut change = |n, value| writer.change(now, first + n, Some(value)).expect("a file");
            if now % (3 + warp) == 0 {
                change(0, now / (3 + warp) % 3);
                change(1, 0x1000 + 16 * now);
                change(2, 0xffff_ffff >> (now % 32));
                change(3, now % 16);
                change(4, now / (3 + warp) % 2);
            }
        }
    }
    writer.finish(200).expect("a file");
    view::write_beside(vcd, &signals, &About::new(1_000_000, Vec::new()), &Span::NONE).expect("files");
}

const SCRIPT: &str = r#"
puts "facs [gtkwave::getNumFacs] rows [llength [gtkwave::getDisplayedSignals]] end [gtkwave::getMaxTime]"
gtkwave::setMarker 190000
update
for {set i 0} {$i < [gtkwave::getTotalNumTraces]} {incr i} {
    puts "[gtkwave::getTraceNameFromIndex $i] = [gtkwave::getTraceValueAtMarkerFromIndex $i]"
}
gtkwave::/Time/Zoom/Zoom_Full
update
gtkwave::/File/Grab_To_File shot.png
gtkwave::/File/Quit
"#;

/// What GTKWave says when it runs `SCRIPT` on a save file; `None` where it cannot be run.
fn gtkwave(folder: &Path, save: &str) -> Option<String> {
    fs::write(folder.join("look.tcl"), SCRIPT).expect("a file");
    let output = Command::new("xvfb-run")
        .args(["-a", "-s", "-screen 0 1600x900x24", "timeout", "60", "gtkwave"])
        .args(["--rcvar", "splash_disable on", "-S", "look.tcl", save])
        .current_dir(folder)
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let missing = [
        "gtkwave: not found",
        "failed to run command",
        "No such file or directory",
    ];
    (!missing.iter().any(|text| said.contains(text))).then_some(said)
}

/// Opens every group of a save file: rows of closed ones are shown, but GTKWave gives no values for them.
fn open_groups(save: &Path) {
    let text = fs::read_to_string(save).expect("a save file");
    let text = text.replace("@c00200", "@800200").replace("@1401200", "@1000200");
    fs::write(save, text).expect("a save file");
}

#[test]
fn save_file_alone_shows_every_row_with_names_of_states() {
    let folder = tempfile::tempdir().expect("a folder");
    write_run(&folder.path().join("run.vcd"));
    open_groups(&folder.path().join("run.gtkw"));
    let Some(said) = gtkwave(folder.path(), "run.gtkw") else {
        println!("skipped: gtkwave with xvfb-run is not installed");
        return;
    };
    for fault in ["Unknown VCD", "backtracking", "Duplicate", "parse error", "malformed"] {
        assert!(!said.contains(fault), "{said}");
    }
    assert!(said.contains("facs 22 rows 21 end 200000"), "{said}");
    // 190: warp 0 changed last in 189 (189 / 3 % 3 = 0), the state's name is shown.
    for line in [
        "warp 0-0 = idle",
        "pc = 00001BD0",
        "active_mask = 00000007",
        "n_waiting = 13",
        "issued = 1",
    ] {
        assert!(said.contains(line), "no `{line}` in:\n{said}");
    }
}
