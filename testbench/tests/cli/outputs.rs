//! Output files: conflicts with inputs and other outputs, paths that cannot be written, and replacement of old files.

use std::fs;
use std::path::Path;

use crate::{Answer, FILL, assert_fails, error_scenario, warpwave_in};

/// Every option that writes one file.
const FILES: [&str; 8] = [
    "--json",
    "--csv",
    "--html",
    "--kanata",
    "--perfetto",
    "--vcd",
    "--fst",
    "--flight",
];

/// A folder with a scenario, its PTX, its arrays, and a preset that inherits from another file.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let text = "ptx = \"k.ptx\"\ngpu = \"gpu.toml\"\n[buffers.out]\ndtype = \"u32\"\nshape = [8]\ninit = { npy = \"out.npy\" }\n\
                expect = { npy = \"want.npy\" }\n[[launch]]\ngrid = 1\nblock = 8\nargs = [\"out\"]\n";
    write("s.toml", text.as_bytes());
    write("k.ptx", FILL.as_bytes());
    write("gpu.toml", b"base = \"base.toml\"\n");
    write("base.toml", b"base = \"tiny\"\n");
    let array = |word: fn(u32) -> u32| {
        let mut npy = Vec::new();
        let bytes: Vec<u8> = (0..8).flat_map(|n| word(n).to_le_bytes()).collect();
        warpwave::scenario::npy::write(&mut npy, warpwave::scenario::dtype::Dtype::U32, &[8], &bytes).unwrap();
        npy
    };
    write("out.npy", &array(|_| 0));
    write("want.npy", &array(|n| n));
    folder
}

/// Every file below a folder with its bytes, by path.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() && !path.is_symlink() {
            true => found.extend(contents(&path)),
            false => found.push((path.display().to_string(), fs::read(&path).unwrap_or_default())),
        }
    }
    found.sort();
    found
}

/// Runs a project's scenario with these options. Asserts that it is refused with these words before it writes a file.
fn refused(folder: &Path, options: &[&str], says: &[&str]) {
    let before = contents(folder);
    let answer = warpwave_in(folder, &[&["run", "s.toml"], options].concat());
    assert_fails(&answer, 2, says);
    assert_eq!(answer.out, "", "{options:?}");
    assert!(contents(folder) == before, "{options:?} changed a file");
}

fn held(folder: &Path, options: &[&str]) -> Answer {
    let answer = warpwave_in(folder, &[&["run", "s.toml"], options].concat());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{options:?}");
    answer
}

#[test]
fn output_over_an_input_is_refused_and_the_input_stays() {
    let folder = project();
    for option in FILES {
        for input in ["s.toml", "k.ptx", "out.npy", "want.npy", "gpu.toml", "base.toml"] {
            let says = [option, input, "is read by this run; choose another name"];
            refused(folder.path(), &[option, input], &says);
        }
    }
    refused(
        folder.path(),
        &["--dump", "."],
        &["--dump", "out.npy", "is read by this run"],
    );
    let named = folder.path().join("latencies.svg");
    fs::rename(folder.path().join("k.ptx"), named).unwrap();
    let text = fs::read_to_string(folder.path().join("s.toml")).unwrap();
    fs::write(folder.path().join("s.toml"), text.replace("k.ptx", "latencies.svg")).unwrap();
    refused(
        folder.path(),
        &["--hist", "."],
        &["--hist", "latencies.svg", "is read by this run"],
    );
    refused(
        folder.path(),
        &["--gpu", "base.toml", "--json", "base.toml"],
        &["--json base.toml", "is read"],
    );
    held(folder.path(), &["--gpu", "base.toml", "--json", "gpu.toml"]);
}

#[test]
fn source_that_the_page_shows_is_not_overwritten() {
    let folder = project();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("src")).unwrap();
    fs::write(at("src/own.cu"), "__global__ void fill();\n").unwrap();
    fs::write(at("beside.cu"), "__device__ int one();\n").unwrap();
    let ptx = FILL.replace(
        ".visible .entry",
        ".file 1 \"src/own.cu\"\n.file 2 \"/none/beside.cu\"\n.visible .entry",
    );
    let ptx = ptx
        .replace("\tst.global", "\t.loc 1 1 1\n\tst.global")
        .replace("\tret;", "\t.loc 2 1 1\n\tret;");
    fs::write(at("k.ptx"), ptx).unwrap();
    for file in ["src/own.cu", "beside.cu"] {
        refused(
            folder.path(),
            &["--html", "x.html", "--json", file],
            &["--json", file, "is read by this run"],
        );
        refused(
            folder.path(),
            &["--html", file],
            &["--html", file, "is read by this run"],
        );
    }
    held(folder.path(), &["--json", "beside.cu"]);
}

#[cfg(unix)]
#[test]
fn input_is_recognized_through_links_and_other_paths() {
    let folder = project();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    std::os::unix::fs::symlink(folder.path(), at("sub/up")).unwrap();
    std::os::unix::fs::symlink("k.ptx", at("soft")).unwrap();
    std::os::unix::fs::symlink("soft", at("softer")).unwrap();
    fs::hard_link(at("k.ptx"), at("hard")).unwrap();
    let whole = at("s.toml").display().to_string();
    for path in [
        "./s.toml",
        "sub/../k.ptx",
        "sub/up/k.ptx",
        "sub/up/sub/../out.npy",
        "soft",
        "softer",
        "hard",
        &whole,
    ] {
        for option in ["--json", "--vcd", "--flight"] {
            refused(folder.path(), &[option, path], &[option, path, "is read by this run"]);
        }
    }
    std::os::unix::fs::symlink("../k.ptx", at("sub/out.npy")).unwrap();
    refused(
        folder.path(),
        &["--dump", "sub"],
        &["--dump", "out.npy", "is read by this run"],
    );
}

#[test]
fn two_outputs_in_one_file_are_refused() {
    let folder = project();
    for (n, first) in FILES.iter().enumerate() {
        for second in &FILES[n + 1..] {
            let says = [first, "x", "and", second, "the same file; choose another name"];
            refused(folder.path(), &[first, "x", second, "./x"], &says);
        }
    }
    let same = "the same file; choose another name";
    let cases = [
        (["--dump", "d", "--json", "d/out.npy"], "--json d/out.npy"),
        (["--hist", "d", "--html", "d/latencies.txt"], "--html d/latencies.txt"),
        (["--hist", "d", "--html", "d/hbm.dram.hgrm"], "--html d/hbm.dram.hgrm"),
        (["--dump", "d", "--json", "./d"], "--json ./d"),
        (["--vcd", "run.vcd", "--json", "run.gtkw"], "--vcd run.gtkw"),
        (["--fst", "run.fst", "--json", "run.fst.sucl"], "--fst run.fst.sucl"),
        (["--vcd", "run.vcd", "--flight", "run.vcd.gz"], "--vcd run.gtkw"),
    ];
    for (options, says) in cases {
        refused(folder.path(), &options, &["error: ", says, same]);
    }
    // Each waveform has a view of its own, and one folder may have both kinds of files.
    held(
        folder.path(),
        &["--vcd", "a.vcd", "--fst", "a.fst", "--hist", "d", "--dump", "d"],
    );
}

#[test]
fn buffer_and_variable_with_one_name_are_not_dumped_to_one_file() {
    let folder = project();
    let ptx = FILL.replace(".visible .entry", ".visible .global .u32 out[8];\n.visible .entry");
    fs::write(folder.path().join("k.ptx"), ptx).unwrap();
    let text = fs::read_to_string(folder.path().join("s.toml")).unwrap();
    let text = text.replace("[[launch]]", "[globals.out]\ndtype = \"u32\"\nshape = [8]\n[[launch]]");
    fs::write(folder.path().join("s.toml"), text).unwrap();
    refused(folder.path(), &["--dump", "d"], &["--dump d/out.npy", "the same file"]);
    held(folder.path(), &[]);
}

#[test]
fn buffer_with_a_path_as_its_name_is_refused_before_a_file_is_written() {
    let folder = project();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    let text = fs::read_to_string(folder.path().join("s.toml")).unwrap();
    for name in ["../../x", "/x", "..", "a\\\\x"] {
        let text = text.replace("buffers.out", &format!("buffers.\"{name}\""));
        fs::write(
            folder.path().join("s.toml"),
            text.replace("\"out\"", &format!("\"{name}\"")),
        )
        .unwrap();
        refused(
            folder.path(),
            &["--dump", "a/b"],
            &["s.toml: buffers: the name ", "is not a plain file name"],
        );
    }
}

#[test]
fn unwritable_path_is_reported_before_the_run() {
    let folder = project();
    fs::create_dir(folder.path().join("taken")).unwrap();
    let places = ["none/x", "taken", "k.ptx/x", "/dev/null/x"];
    for option in FILES {
        for place in places {
            refused(
                folder.path(),
                &[option, place],
                &["cannot write ", place, "choose an existing folder"],
            );
        }
    }
    for option in ["--dump", "--hist"] {
        for place in ["k.ptx", "k.ptx/x", "/dev/null/x"] {
            refused(
                folder.path(),
                &[option, place],
                &["cannot write ", place, "choose an existing folder"],
            );
        }
    }
}

#[test]
fn outputs_replace_old_files_and_leave_no_temporary_files() {
    let folder = project();
    let json = folder.path().join("x.json");
    fs::write(&json, "old").unwrap();
    let options = ["--json", "x.json", "--html", "x.html", "--dump", "new/dump"];
    let wrong = [&["run", "s.toml", "--set", "sm.subcores=0"], &options[..]].concat();
    assert_fails(&warpwave_in(folder.path(), &wrong), 2, &["sm.subcores"]);
    assert_eq!(
        fs::read_to_string(&json).unwrap(),
        "old",
        "a run that is refused writes nothing"
    );
    let before = contents(folder.path());
    held(folder.path(), &options);
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(report["scenario"], "s");
    let after = contents(folder.path());
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let new = |name: &String| !names(&before).contains(name);
    let found: Vec<_> = names(&after).into_iter().filter(new).collect();
    let at = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(found, [at("new/dump/out.npy"), at("x.html")]);
}

#[cfg(unix)]
#[test]
fn output_through_a_link_keeps_the_link_and_the_mode_of_the_file() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = project();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("kept")).unwrap();
    fs::write(at("kept/x.json"), "old").unwrap();
    fs::set_permissions(at("kept/x.json"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("kept/x.json", at("there.json")).unwrap();
    symlink("kept/new.json", at("missing.json")).unwrap();
    for (link, file) in [("there.json", "kept/x.json"), ("missing.json", "kept/new.json")] {
        held(folder.path(), &["--json", link]);
        assert!(at(link).is_symlink(), "{link}");
        assert!(fs::read(at(file)).unwrap().starts_with(b"{"), "{file}");
    }
    assert_eq!(
        fs::metadata(at("kept/x.json")).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(fs::read_dir(at("kept")).unwrap().count(), 2);
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_written_directly() {
    let folder = project();
    held(
        folder.path(),
        &["--json", "/dev/null", "--html", "/dev/null", "--perfetto", "/dev/null"],
    );
    let answer = held(folder.path(), &["--json", "/dev/stdout"]);
    assert!(answer.out.contains("\n{\n  \"scenario\": \"s\","), "{}", answer.out);
    assert!(answer.out.ends_with("assertions: 0)\n"), "{}", answer.out);

    let pipe = folder.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    held(folder.path(), &["--json", "pipe"]);
    assert!(reader.join().unwrap().starts_with("{\n  \"scenario\": \"s\","));
}

#[cfg(unix)]
#[test]
fn wait_for_the_reader_of_a_pipe_is_told_and_ends_at_an_interrupt() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    for option in ["--json", "--vcd"] {
        let folder = project();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut run = Command::new(env!("CARGO_BIN_EXE_warpwave"))
            .current_dir(folder.path())
            .args(["run", "s.toml", "--quiet", option, "pipe"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(run.stderr.take().unwrap()).lines();
        let says = "note: waiting for a process that reads the pipe pipe";
        assert_eq!(err.next().unwrap().unwrap(), says, "{option}");
        let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let rest: Vec<String> = err.map(Result::unwrap).collect();
        assert!(
            rest.join("\n")
                .contains("cannot write pipe: no process reads this pipe"),
            "{rest:?}"
        );
        assert_eq!(run.wait().unwrap().code(), Some(2), "{option}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn trap_decides_the_exit_code_when_an_output_cannot_be_written_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = [
        "run",
        &error_scenario("out_of_bounds"),
        "--gpu",
        "tiny",
        "--json",
        "/dev/full",
    ];
    let answer = warpwave_in(folder.path(), &run);
    assert_fails(
        &answer,
        3,
        &["cannot write /dev/full", "launch[0]: out-of-bounds access"],
    );
    let folder = project();
    let answer = warpwave_in(folder.path(), &["run", "s.toml", "--json", "/dev/full"]);
    assert_fails(&answer, 2, &["cannot write /dev/full"]);
}

#[test]
fn unwritable_default_flight_file_does_not_change_the_exit_code() {
    for (name, code, says) in [
        ("out_of_bounds", 3, "launch[0]: out-of-bounds access"),
        ("barrier", 4, "deadlock: no component can make progress after cycle"),
        ("wrong_result", 1, "2 did not hold"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let record = format!("{name}.flight.vcd");
        fs::create_dir(folder.path().join(&record)).unwrap();
        let run = ["run", &error_scenario(name), "--gpu", "tiny"];
        let warning = format!("warning: the last cycles are not recorded: cannot write {record}");
        let answer = warpwave_in(folder.path(), &run);
        assert_fails(&answer, code, &[&warning, "error: ", says]);
        let asked = [&run[..], &["--flight", &record]].concat();
        let answer = warpwave_in(folder.path(), &asked);
        assert_fails(&answer, 2, &["error: cannot write ", &record]);
        assert_eq!(answer.out, "");
    }
}

#[test]
fn default_flight_file_does_not_overwrite_inputs_or_outputs() {
    let folder = project();
    let text = fs::read_to_string(folder.path().join("s.toml")).unwrap();
    let wrong = text.replace("want.npy", "out.npy").replace("k.ptx", "s.flight.vcd");
    fs::write(folder.path().join("s.toml"), wrong).unwrap();
    fs::rename(folder.path().join("k.ptx"), folder.path().join("s.flight.vcd")).unwrap();
    let warning =
        "warning: the last cycles are not recorded: s.flight.vcd is read by this run; name another file with --flight";
    let answer = warpwave_in(folder.path(), &["run", "s.toml"]);
    assert_fails(&answer, 1, &[warning, "expect: out[1] is 1, not 0"]);
    assert_eq!(fs::read_to_string(folder.path().join("s.flight.vcd")).unwrap(), FILL);
}

#[test]
fn failed_scenarios_with_one_name_have_a_flight_file_each() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = error_scenario("out_of_bounds");
    let answer = warpwave_in(folder.path(), &["run", &scenario, &scenario, "--gpu", "tiny"]);
    assert_fails(
        &answer,
        3,
        &["are in out_of_bounds.flight.vcd", "are in out_of_bounds.2.flight.vcd"],
    );
    let answer = warpwave_in(
        folder.path(),
        &["run", &scenario, &scenario, "--gpu", "tiny", "--flight", "x.vcd"],
    );
    assert_fails(
        &answer,
        3,
        &["are in x.out_of_bounds.vcd", "are in x.out_of_bounds.2.vcd"],
    );
}

#[test]
fn no_command_replaces_an_input_of_a_scenario() {
    let folder = project();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let scenario = fs::read_to_string(folder.path().join("s.toml")).unwrap();
    let own = scenario.replace("\"k.ptx\"", "\"other.ptx\"");
    write("other.toml", &own);
    write("other.ptx", FILL);
    write("run.toml", "base = \"tiny\"\n");
    write("curve.csv", "grid,cycles\n1,1\n");
    let more = "[[assert]]\nthat = \"cycles == cycles(b)\"\nwithin = \"50 %\"\n[runs.b]\nscenario = \"other.toml\"\ngpu = \"run.toml\"\n\
                [sweep]\nover = [\"grid=1\"]\n[[sweep.assert]]\ncsv = \"curve.csv\"\ncolumn = \"cycles\"\nwithin = 0.1\n";
    write("s.toml", &(scenario + more));
    let before = contents(folder.path());
    let inputs = [
        "s.toml",
        "k.ptx",
        "out.npy",
        "want.npy",
        "gpu.toml",
        "base.toml",
        "other.toml",
        "other.ptx",
        "run.toml",
        "curve.csv",
    ];
    for input in inputs {
        for args in [
            ["run", "s.toml", "--json", input],
            ["run", "s.toml", "--vcd", input],
            ["compare", "s.toml", "--json", input],
            ["compare", "s.toml", "--html", input],
            ["test", "s.toml", "--junit", input],
            ["sweep", "s.toml", "--csv", input],
        ] {
            let answer = warpwave_in(folder.path(), &args);
            assert_fails(
                &answer,
                2,
                &[args[2], input, "is read by this run; choose another name"],
            );
            fs::remove_dir_all(folder.path().join(".warpwave-store")).unwrap_or_default();
            assert!(contents(folder.path()) == before, "{args:?} changed a file");
        }
    }
    let swept = ["sweep", "s.toml", "--over", "gpu=tiny,run.toml", "--plot", "run.toml"];
    assert_fails(
        &warpwave_in(folder.path(), &swept),
        2,
        &["--plot", "run.toml", "is read by this run"],
    );
    let kept = ["test", "s.toml", "--baseline", "kept.toml"];
    write("kept.toml", "[tolerance]\ncycles = 0.1\n");
    let answer = warpwave_in(folder.path(), &[&kept[..], &["--junit", "kept.toml"]].concat());
    assert_fails(&answer, 2, &["--junit kept.toml is read by this run"]);
}
