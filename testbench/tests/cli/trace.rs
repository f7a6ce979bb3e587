//! Waveform options: selected signals, the event that starts a waveform, and the flight recorder of a failed run.

use std::fs;
use std::path::Path;

use crate::dump::Dump;
use crate::{assert_fails, error_scenario, warpwave_in};

/// Runs a scenario on the smallest machine with these options, and reads the waveform with times in cycles.
fn traced(scenario: &str, options: &[&str]) -> Dump {
    let folder = tempfile::tempdir().unwrap();
    let args = [&["run", scenario, "--gpu", "tiny", "--vcd", "run.vcd"], options].concat();
    let answer = warpwave_in(folder.path(), &args);
    assert_eq!(answer.code, 0, "{}", answer.err);
    read(&folder.path().join("run.vcd"))
}

fn read(file: &Path) -> Dump {
    Dump::read(&fs::read_to_string(file).unwrap()).by_cycle()
}

fn refused(options: &[&str], says: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let args = [&["run", "saxpy", "--gpu", "tiny", "--vcd", "run.vcd"], options].concat();
    assert_fails(&warpwave_in(folder.path(), &args), 2, says);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn pattern_or_event_without_a_match_is_refused_with_existing_names() {
    refused(
        &["--trace", "gpu.gpc[0].sm[7].**"],
        &["no signal matches `gpu.gpc[0].sm[7].**`; `gpu.gpc[0]` exists; the nearest: gpu.gpc[0].sm[0]"],
    );
    refused(
        &["--trace", "gpu.gpc[0].sm[0].l1.request.vald"],
        &["`gpu.gpc[0].sm[0].l1.request` exists; the nearest: gpu.gpc[0].sm[0].l1.request.valid"],
    );
    refused(
        &["--trace", "gpu.gpc[0].sm[0]", "--trace-depth", "1"],
        &["no signal within 1 levels"],
    );
    refused(
        &["--trace-on", "moon=full"],
        &["launch=2, pc=0x40, stall>1000 or address=BUFFER[INDEX]"],
    );
    refused(&["--trace-on", "launch=1"], &["saxpy has 1 launch, counted from 0"]);
    refused(&["--trace-on", "pc=0x1000"], &["instructions, counted from 0"]);
    refused(
        &["--trace-on", "address=z[0]"],
        &["no buffer is named `z`; there are: x, y"],
    );
    refused(&["--trace-on", "address=x[10000]"], &["`x` has the shape [10000]"]);
}

#[test]
fn waveform_options_without_a_waveform_are_refused() {
    for option in [
        ["--trace-on", "launch=0"],
        ["--trace-time", "real"],
        ["--trace-cycles", "3..5"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let args = [&["run", "saxpy", "--gpu", "tiny"], &option[..]].concat();
        assert_fails(&warpwave_in(folder.path(), &args), 2, &["were not provided", "--vcd"]);
    }
}

#[test]
fn one_signal_of_a_link_selects_the_handshake() {
    let dump = traced("saxpy", &["--trace", "gpu.gpc[0].sm[0].l1.request.occupancy"]);
    let shown = dump
        .signals
        .iter()
        .filter_map(|signal| signal.path.strip_prefix("gpu.gpc[0].sm[0].l1.request."));
    assert_eq!(shown.collect::<Vec<_>>(), ["valid", "ready", "occupancy", "payload"]);
}

#[test]
fn links_of_the_bulk_copy_engine_and_of_clusters_are_handshakes_too() {
    let dump = traced("tma_bulk_scale", &["--trace", "gpu.gpc[0].**"]);
    let is_busy = |path: &str| {
        let valid = dump.signal(&format!("gpu.gpc[0].{path}.valid"));
        valid.unwrap_or_else(|| panic!("no link {path}")).changes.len() > 1
    };
    for path in [
        "sm[0].tma",
        "sm[0].l1.bulk",
        "sm[0].tma.response",
        "sm[0].shared.bulk",
        "sm[0].tma.line",
    ] {
        assert!(is_busy(path), "{path} carried nothing");
    }
    // This kernel does not use the cluster barrier: its links are shown, without messages.
    for path in ["sm[0].cluster.arrive", "sm[1].cluster.open"] {
        assert!(!is_busy(path), "{path} carried something");
    }
}

#[test]
fn marker_of_the_worst_request_is_the_issue_of_the_slowest_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "transpose_tiled",
        "--gpu",
        "tiny",
        "--vcd",
        "run.vcd",
        "--hist",
        "hist",
    ];
    assert_eq!(warpwave_in(folder.path(), &args).code, 0);
    let table = fs::read_to_string(folder.path().join("hist/latencies.txt")).unwrap();
    let slowest = table
        .lines()
        .skip_while(|line| !line.starts_with("slowest"))
        .nth(1)
        .unwrap();
    let issued: u64 = slowest.split_whitespace().nth(3).unwrap().parse().unwrap();
    let view = fs::read_to_string(folder.path().join("run.gtkw")).unwrap();
    let letter = |line: &str| Some(line.strip_prefix("[markername] ")?.strip_suffix("slowest")?.to_owned());
    let letter = view.lines().find_map(letter).unwrap();
    // After the zoom and the cursor come the markers A, B and so on, in ps. A cycle is shown as 1 ns.
    let times = view.lines().find_map(|line| line.strip_prefix('*')).unwrap();
    let place = 2 + usize::from(letter.as_bytes()[0] - b'A');
    let marked: u64 = times.split_whitespace().nth(place).unwrap().parse().unwrap();
    assert_eq!(marked, issued * 1000, "{slowest}");
}

#[test]
fn depth_two_below_an_sm_shows_only_the_signals_of_its_blocks() {
    let dump = traced("saxpy", &["--trace", "gpu.gpc[0].sm[0].**", "--trace-depth", "2"]);
    assert!(dump.signal("gpu.gpc[0].sm[0].l1.tag").is_some());
    let too_deep = dump.signals.iter().filter(|signal| signal.path.split('.').count() > 5);
    // The alias of a link at its other end is shown too.
    let too_deep = too_deep.filter(|signal| !signal.path.contains(".to."));
    assert_eq!(too_deep.map(|signal| signal.path.as_str()).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn waveform_begins_in_the_cycle_of_its_event() {
    let sm = ["--trace", "gpu.gpc[0].sm[0].**"];
    let whole = traced("latency_hiding", &[]);
    let at = |options: &[&str]| traced("latency_hiding", &[&sm[..], options].concat()).start;
    let first = |path_end: &str, value: &dyn Fn(u64) -> bool| {
        let signals = whole
            .signals
            .iter()
            .filter(|s| s.path.contains(".sm[0].") && s.path.ends_with(path_end));
        let changes = signals.flat_map(|signal| &signal.changes);
        changes
            .filter(|(_, v)| v.is_some_and(value))
            .map(|change| change.0)
            .min()
            .unwrap()
    };
    assert_eq!(at(&["--trace-on", "pc=9"]), first(".issue_pc", &|pc| pc == 9));
    let launch = whole.signal("gpu.gigathread.launch").unwrap();
    let second = launch.changes.iter().find(|change| change.1 == Some(1)).unwrap();
    assert_eq!(at(&["--trace-on", "launch=1"]), second.0);
}

#[test]
fn waveform_on_a_long_stall_begins_when_a_stall_exceeds_the_limit() {
    let sm = ["--trace", "gpu.gpc[0].sm[0].**"];
    let whole = traced("latency_hiding", &sm);
    // A wait that is not `not_selected` (13), `selected` (14) or an empty slot (15).
    let too_long = |changes: &[(u64, Option<u64>)]| {
        let waits = changes
            .windows(2)
            .filter(|pair| pair[0].1.is_some_and(|state| state < 13));
        waits
            .filter(|pair| pair[1].0 - pair[0].0 > 300)
            .map(|pair| pair[0].0 + 301)
            .min()
    };
    let warps = whole
        .signals
        .iter()
        .filter(|s| s.path.contains(".warp[") && s.path.ends_with(".state"));
    let expected = warps.filter_map(|warp| too_long(&warp.changes)).min().unwrap();
    let dump = traced("latency_hiding", &[&sm[..], &["--trace-on", "stall>300"]].concat());
    assert_eq!(dump.start, expected);
}

#[test]
fn waveform_on_an_address_begins_with_a_request_for_its_sector() {
    let sm = ["--trace", "gpu.gpc[0].sm[0].**"];
    let dump = traced("saxpy", &[&sm[..], &["--trace-on", "address=x[8]"]].concat());
    let line = dump.signal("gpu.gpc[0].sm[0].lsu.packet_line").unwrap();
    let sectors = dump.signal("gpu.gpc[0].sm[0].lsu.packet_sectors").unwrap();
    let (line, sectors) = (line.at(dump.start).unwrap(), sectors.at(dump.start).unwrap());
    // Element 8 of 4 bytes begins the second sector of the buffer, which begins with a line.
    assert_eq!(sectors >> 1 & 1, 1, "{line:#x}");
    let earlier = traced("saxpy", &sm);
    let first = earlier.signal("gpu.gpc[0].sm[0].lsu.packet_line").unwrap();
    let first = first.changes.iter().find(|change| change.1 == Some(line)).unwrap();
    assert_eq!(dump.start, first.0, "the first request for the line is a whole one");
}

#[test]
fn compressed_waveform_unpacks_to_the_plain_one() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["plain.vcd", "packed.vcd.gz"] {
        let answer = warpwave_in(folder.path(), &["run", "saxpy", "--gpu", "tiny", "--vcd", name]);
        assert_eq!(answer.code, 0, "{}", answer.err);
    }
    let packed = fs::File::open(folder.path().join("packed.vcd.gz")).unwrap();
    let unpacked = std::io::read_to_string(flate2::read::GzDecoder::new(packed)).unwrap();
    assert!(unpacked == fs::read_to_string(folder.path().join("plain.vcd")).unwrap());
    let save = fs::read_to_string(folder.path().join("packed.gtkw")).unwrap();
    assert!(
        save.starts_with("[dumpfile] \"packed.vcd.gz\"\n[savefile] \"packed.gtkw\"\n"),
        "{save}"
    );
}

#[test]
fn failed_run_writes_its_last_cycles_and_prints_the_file() {
    for (name, code, event) in [
        ("out_of_bounds", 3, "trap"),
        ("barrier", 4, "deadlock"),
        ("endless", 4, "cycle_limit"),
        ("wrong_result", 1, "failed_expectation"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let scenario = error_scenario(name);
        let run = ["run", &scenario, "--gpu", "tiny", "--max-cycles", "30000"];
        let answer = warpwave_in(folder.path(), &run);
        let note =
            format!("before the {event} are in {name}.flight.vcd; look at them with: gtkwave {name}.flight.gtkw");
        assert_fails(
            &answer,
            code,
            &["note: cycles ", "of gpu.gpc[0].sm[0]", &note, "error: "],
        );
        let dump = read(&folder.path().join(format!("{name}.flight.vcd")));
        assert!(
            dump.end - dump.start <= 20_000 && dump.end > dump.start,
            "{name}: {} to {}",
            dump.start,
            dump.end
        );
        assert!(dump.signal("gpu.gigathread.launch").is_some());
        let save = fs::read_to_string(folder.path().join(format!("{name}.flight.gtkw"))).unwrap();
        assert!(save.contains(&format!("[markername] A{event}")), "{save}");
        let without = warpwave_in(folder.path(), &[&run[..], &["--no-flight"]].concat());
        assert!(!without.err.contains("note: "), "{}", without.err);
    }
}

#[test]
fn last_cycles_match_the_whole_waveform() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = error_scenario("endless");
    let scope = ["--trace", "gpu.gpc[0].sm[0].**", "--max-cycles", "30000"];
    let run = [
        "run", &scenario, "--gpu", "tiny", "--flight", "last.vcd", "--vcd", "all.vcd",
    ];
    assert_eq!(warpwave_in(folder.path(), &[&run[..], &scope[..]].concat()).code, 4);
    let (all, last) = (
        read(&folder.path().join("all.vcd")),
        read(&folder.path().join("last.vcd")),
    );
    assert_eq!((all.start, all.end), (0, last.end));
    assert!(
        last.start > 0 && last.end - last.start <= 20_000,
        "{} to {}",
        last.start,
        last.end
    );
    for signal in &last.signals {
        let whole = all.signal(&signal.path).unwrap();
        assert_eq!(signal.at(last.start), whole.at(last.start), "{}", signal.path);
        let later = |changes: &[(u64, Option<u64>)]| {
            changes
                .iter()
                .filter(|change| change.0 > last.start)
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(later(&signal.changes), later(&whole.changes), "{}", signal.path);
    }
}

/// Runs `saxpy` with a waveform and `--json`. Returns the error text, the dump's text, its view, and the launches of the report.
fn limited(options: &[&str]) -> (String, String, String, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "run", "saxpy", "--gpu", "tiny", "--vcd", "run.vcd", "--json", "run.json",
    ];
    let answer = warpwave_in(folder.path(), &[&args[..], options].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&read("run.json")).unwrap();
    (
        answer.err,
        read("run.vcd"),
        read("run.gtkw"),
        report["launches"].clone(),
    )
}

#[test]
fn limit_ends_the_dump_with_a_whole_cycle_and_the_run_goes_on() {
    let signals = ["--trace", "gpu.gpc[0].sm[0].subcore[0]"];
    let (err, whole, _, results) = limited(&signals);
    assert_eq!(err, "");
    let limit = whole.len() / 2;
    let size = format!("{limit} B");
    let (err, part, view, same_results) = limited(&[&signals[..], &["--trace-limit", &size]].concat());
    assert_eq!(same_results, results);
    assert!(
        part.len() <= limit + 1000 && part.len() > limit - 5000,
        "{} of {limit}",
        part.len()
    );
    assert!(view.contains("size_limit"), "{view}");
    let remark = part
        .lines()
        .find(|line| line.starts_with("$comment the recording ends before cycle "));
    assert!(
        remark.unwrap().ends_with(&format!(": its limit is {limit} bytes $end")),
        "{remark:?}"
    );
    let (whole, part) = (Dump::read(&whole).by_cycle(), Dump::read(&part).by_cycle());
    let says = format!(
        "warning: the waveform ends before cycle {}, at the size of --trace-limit; the run goes on",
        part.end
    );
    assert!(err.starts_with(&says), "{err}");
    assert!(part.end < whole.end);
    for (part_of, signal) in part.signals.iter().zip(&whole.signals) {
        let before = signal.changes.partition_point(|&(at, _)| at < part.end);
        assert_eq!(
            (&part_of.path, &part_of.changes[..]),
            (&signal.path, &signal.changes[..before])
        );
    }
}

#[test]
fn limit_below_the_names_of_the_signals_is_told_with_their_size() {
    let signals = ["--trace", "gpu.gpc[0].sm[0].subcore[0]"];
    let (err, part, _, _) = limited(&[&signals[..], &["--trace-limit", "1 kB"]].concat());
    let (begin, end) = (
        "at the size of --trace-limit; the names and first values of the signals alone have ",
        " kB, so no change has room; the run goes on",
    );
    let size = err.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
    let size: f64 = size.unwrap_or_else(|| panic!("{err}")).0.parse().unwrap();
    assert!(
        Dump::read(&part)
            .by_cycle()
            .signals
            .iter()
            .all(|signal| signal.changes.len() <= 1)
    );
    // Three digits of the size of the file, with the remark on its end.
    let kilobytes = part.len() as f64 / 1e3;
    assert!((kilobytes - size).abs() <= 0.01 * kilobytes, "{size} of {kilobytes}");
}

#[test]
fn limit_that_is_not_reached_changes_no_byte() {
    let signals = ["--trace", "gpu.gigathread"];
    let (_, whole, _, _) = limited(&signals);
    let (err, same, view, _) = limited(&[&signals[..], &["--trace-limit", "1 GiB"]].concat());
    assert_eq!((err.as_str(), same), ("", whole));
    assert!(!view.contains("size_limit"));
}

/// The scopes of a transaction's requests, such as `gpu.transaction.sm0#12`.
fn requests(dump: &Dump) -> Vec<String> {
    let paths = dump.signals.iter().map(|signal| signal.path.as_str());
    let stages = paths.filter_map(|path| path.strip_suffix(".stage"));
    let stages = stages.filter(|path| path.starts_with("gpu.transaction."));
    stages.map(str::to_owned).collect()
}

/// The signal of a request whose name begins so: its name and the first and last cycle with a value.
fn unit<'a>(dump: &'a Dump, request: &str, name: &str) -> (&'a str, u64, u64) {
    let of_request = |path: &'a str| path.strip_prefix(request)?.strip_prefix('.');
    let signal = dump.signals.iter().find_map(|signal| {
        let found = of_request(&signal.path).filter(|found| found.starts_with(name))?;
        Some((found, signal))
    });
    let (found, signal) = signal.unwrap_or_else(|| panic!("{request} has no {name}"));
    let from = signal.changes.iter().find(|(_, value)| value.is_some());
    let to = signal.changes.last().filter(|(_, value)| value.is_none());
    match (from, to) {
        (Some((from, _)), Some((to, _))) => (found, *from, *to),
        _ => panic!("{found} of {request} has no value: {:?}", signal.changes),
    }
}

/// The number behind `name_`, such as 3 of `channel_3`.
fn index(name: &str) -> usize {
    name.rsplit_once('_').unwrap().1.parse().unwrap()
}

#[test]
fn load_passes_the_units_in_the_cycles_in_which_they_show_its_line() {
    let dump = traced("latency_hiding", &["--transaction", "sm0#2"]);
    let request = &requests(&dump)[0];
    let sm: usize = request
        .strip_prefix("gpu.transaction.sm")
        .unwrap()
        .split_once('#')
        .unwrap()
        .0
        .parse()
        .unwrap();
    let sms: Vec<&str> = dump
        .signals
        .iter()
        .filter_map(|signal| signal.path.strip_suffix(".lsu.packet_line"))
        .collect();
    let sm = sms[sm];
    let line = |path: &str, at: u64| dump.signal(path).unwrap().at(at);
    let (_, issue, end) = unit(&dump, request, "stage");
    let address = line(&format!("{request}.line"), issue);
    assert!(address.is_some());
    let units = [
        "lsu",
        "l1",
        "request",
        "l2_slice_",
        "channel_",
        "response",
        "write_back",
    ];
    let passed: Vec<_> = units.iter().map(|name| unit(&dump, request, name)).collect();
    // One unit follows the other, from the issue to the end.
    assert_eq!((passed[0].1, passed[6].2), (issue, end));
    assert!(passed.windows(2).all(|pair| pair[0].2 == pair[1].1), "{passed:?}");
    let (slice, channel) = (index(passed[3].0), index(passed[4].0));
    assert_eq!(line(&format!("{sm}.l1.line"), passed[1].1), address);
    assert_eq!(line(&format!("gpu.l2_slice[{slice}].line"), passed[3].1), address);
    let reads = &dump.signal(&format!("gpu.channel[{channel}].line")).unwrap().changes;
    let is_read = |(at, value): &(u64, Option<u64>)| (passed[4].1..passed[4].2).contains(at) && *value == address;
    assert!(reads.iter().any(is_read), "{channel} reads {address:x?}");
    // The last stage begins with the response at the LSU.
    let stages = &dump.signal(&format!("{request}.stage")).unwrap().changes;
    let (returned, _) = stages[stages.len() - 2];
    assert_eq!(line(&format!("{sm}.lsu.response_line"), returned), address);
}

#[test]
fn transaction_changes_no_other_signal() {
    let options = ["--trace", "gpu.gpc[0].sm[0].**", "--trace-cycles", "200..600"];
    let plain = traced("latency_hiding", &options);
    let with = traced("latency_hiding", &[&options[..], &["--transaction", "sm0#1"]].concat());
    assert_eq!(requests(&with)[0], "gpu.transaction.sm0#1");
    for signal in &plain.signals {
        assert_eq!(
            with.signal(&signal.path).unwrap().changes,
            signal.changes,
            "{}",
            signal.path
        );
    }
    assert_eq!((plain.start, plain.end), (with.start, with.end));
}

#[test]
fn transaction_without_a_request_is_refused() {
    refused(
        &["--transaction", "fastest"],
        &["expected `slowest`, or a request such as `sm0#12`"],
    );
    refused(
        &["--transaction", "sm9#0"],
        &["the run has no request that --transaction names"],
    );
    refused(
        &["--transaction", "slowest", "--trace-cycles", "0..1"],
        &["the run has no load that --transaction slowest could show"],
    );
}
