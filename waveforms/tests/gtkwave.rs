//! GTKWave itself opens what lies beside a dump, shows every row and the names of states. Skipped where it is not installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use warpwave_waveforms::gtkw;
use warpwave_waveforms::signal::Signal;
use warpwave_waveforms::vcd::writer::Writer;

const STATES: &[&str] = &["idle", "ready", "stalled"];

/// Two SMs of two warps.
fn signals() -> Vec<Signal> {
    let mut signals = Vec::new();
    for (sm, warp) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut add = |name: &str, width, states| {
            signals.push(Signal {
                scope: ["gpu".into(), format!("sm[{sm}]"), format!("warp[{warp}]")].to_vec(),
                name: name.into(),
                width,
                states,
            });
        };
        add("state", 2, Some(STATES));
        add("pc", 32, None);
        add("active_mask", 32, None);
        add("n_waiting", 4, None);
        add("issued", 1, None);
    }
    signals
}

fn write_run(vcd: &Path) {
    let signals = signals();
    let file = fs::File::create(vcd).expect("a file");
    let mut writer = Writer::new(file, &["two SMs".into()], &signals).expect("a file");
    writer.dump(0, &vec![None; signals.len()]).expect("a file");
    for now in 1..200u64 {
        for warp in 0..4 {
            let first = (warp * 5) as u32;
            if now % (3 + warp) == 0 {
                writer.change(now, first, Some(now / (3 + warp) % 3)).expect("a file");
                writer.change(now, first + 1, Some(0x1000 + 16 * now)).expect("a file");
                writer
                    .change(now, first + 2, Some(0xffff_ffff >> (now % 32)))
                    .expect("a file");
                writer.change(now, first + 3, Some(now % 16)).expect("a file");
                writer
                    .change(now, first + 4, Some(now / (3 + warp) % 2))
                    .expect("a file");
            }
        }
    }
    writer.finish(200).expect("a file");
    gtkw::write_beside(vcd, &signals).expect("files");
}

const SCRIPT: &str = r#"
puts "facs [gtkwave::getNumFacs] rows [llength [gtkwave::getDisplayedSignals]] end [gtkwave::getMaxTime]"
gtkwave::setMarker 190
update
foreach n [gtkwave::getDisplayedSignals] { puts "$n = [gtkwave::getTraceValueAtMarkerFromName $n]" }
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

#[test]
fn save_file_alone_shows_every_row_with_names_of_states() {
    let folder = tempfile::tempdir().expect("a folder");
    write_run(&folder.path().join("run.vcd"));
    let Some(said) = gtkwave(folder.path(), "run.gtkw") else {
        println!("skipped: gtkwave with xvfb-run is not installed");
        return;
    };
    for fault in ["Unknown VCD", "backtracking", "Duplicate", "parse error", "malformed"] {
        assert!(!said.contains(fault), "{said}");
    }
    assert!(said.contains("facs 20 rows 20 end 200"), "{said}");
    // 190: warp 0 changed last in 189 (189 / 3 % 3 = 0), the state's name is shown; values of closed groups are not given.
    for line in [
        "gpu.sm[0].warp[0].state[1:0] = idle",
        "gpu.sm[0].warp[0].pc[31:0] = 00001BD0",
        "gpu.sm[0].warp[0].active_mask[31:0] = 00000007",
        "gpu.sm[0].warp[0].n_waiting[3:0] = 13",
        "gpu.sm[0].warp[0].issued = 1",
    ] {
        assert!(said.contains(line), "no `{line}` in:\n{said}");
    }
}
