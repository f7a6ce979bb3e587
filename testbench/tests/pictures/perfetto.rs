//! The timeline, read by a strict reader of the trace event format.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ALWAYS, SCENARIOS, chain, picture};
use warpwave::bench::Run;
use warpwave::report::{perfetto, stalls};
use warpwave::watch::pipeline::Picture;

type Track = (u64, u64);

type Span = (usize, String, u64, u64);

/// A timeline as a viewer reads it.
#[derive(Default, Debug)]
struct Timeline {
    groups: BTreeMap<u64, String>,
    tracks: BTreeMap<Track, String>,
    /// First cycle, cycles and name of each track's slices.
    slices: BTreeMap<Track, Vec<(u64, u64, String)>>,
    /// Depth, name, first cycle and the one after the last of each request's spans, by group and id.
    spans: BTreeMap<(u64, String), Vec<Span>>,
    /// Phase, track and cycle of each arrow's points.
    arrows: BTreeMap<String, Vec<(char, Track, u64)>>,
    /// Cycle and value, by group and name.
    curves: BTreeMap<(u64, String), Vec<(u64, f64)>>,
}

fn number(event: &Value, key: &str) -> Result<u64, String> {
    event[key]
        .as_u64()
        .ok_or_else(|| format!("{key} of {event} is no number of cycles"))
}

fn text(event: &Value, key: &str) -> Result<String, String> {
    let text = event[key].as_str().filter(|text| !text.is_empty());
    Ok(text.ok_or_else(|| format!("{key} of {event} is no text"))?.to_owned())
}

/// Reads a timeline. Any offence against the format is an error.
fn read(source: &str) -> Result<Timeline, String> {
    let file: Value = serde_json::from_str(source).map_err(|error| error.to_string())?;
    let events = file["traceEvents"].as_array().ok_or("no events")?;
    let mut timeline = Timeline::default();
    let mut open = BTreeMap::<(u64, String), Vec<(String, u64)>>::new();
    for event in events {
        let group = number(event, "pid")?;
        let track = || Ok::<Track, String>((group, number(event, "tid")?));
        let phase = text(event, "ph")?;
        match phase.as_str() {
            "M" => match text(event, "name")?.as_str() {
                "process_name" => drop(timeline.groups.insert(group, text(&event["args"], "name")?)),
                "thread_name" => drop(timeline.tracks.insert(track()?, text(&event["args"], "name")?)),
                "process_sort_index" | "thread_sort_index" => drop(number(&event["args"], "sort_index")?),
                other => return Err(format!("no such metadata: {other}")),
            },
            "X" => {
                let slice = (number(event, "ts")?, number(event, "dur")?, text(event, "name")?);
                timeline.slices.entry(track()?).or_default().push(slice);
            }
            "b" | "e" => {
                let id = (group, text(event, "id")?);
                let (name, at) = (text(event, "name")?, number(event, "ts")?);
                let stack = open.entry(id.clone()).or_default();
                if phase == "b" {
                    stack.push((name, at));
                    continue;
                }
                let (opened, from) = stack.pop().ok_or_else(|| format!("nothing ends: {event}"))?;
                if opened != name || from > at {
                    return Err(format!("{opened} is open from {from}: {event}"));
                }
                let span = (stack.len(), name, from, at);
                timeline.spans.entry(id).or_default().push(span);
            }
            "s" | "t" | "f" => {
                let point = (phase.chars().next().unwrap(), track()?, number(event, "ts")?);
                timeline.arrows.entry(text(event, "id")?).or_default().push(point);
            }
            "C" => {
                let value = event["args"]["value"]
                    .as_f64()
                    .ok_or_else(|| format!("no value: {event}"))?;
                let curve = timeline.curves.entry((group, text(event, "name")?)).or_default();
                curve.push((number(event, "ts")?, value));
            }
            _ => return Err(format!("no such phase: {event}")),
        }
    }
    if open.values().any(|stack| !stack.is_empty()) {
        return Err("spans are open at the end".to_owned());
    }
    check(&mut timeline)?;
    Ok(timeline)
}

/// Checks rules between events: tracks have names, slices do not overlap, arrows touch slices, curves never go back.
fn check(timeline: &mut Timeline) -> Result<(), String> {
    for (track, slices) in &mut timeline.slices {
        if !timeline.tracks.contains_key(track) || !timeline.groups.contains_key(&track.0) {
            return Err(format!("track {track:?} has no name"));
        }
        slices.sort();
        if let Some(pair) = slices.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            return Err(format!("slices of {track:?} overlap: {pair:?}"));
        }
    }
    for (id, points) in &timeline.arrows {
        let phases: String = points.iter().map(|point| point.0).collect();
        let in_order = points.windows(2).all(|pair| pair[0].2 <= pair[1].2);
        if !phases.starts_with('s')
            || !phases.ends_with('f')
            || phases.trim_matches(['s', 'f']).contains(['s', 'f'])
            || !in_order
        {
            return Err(format!("arrow {id} is {points:?}"));
        }
        let touches = |(_, track, at): &(char, Track, u64)| {
            let slices = timeline.slices.get(track);
            slices.is_some_and(|slices| slices.iter().any(|slice| (slice.0..slice.0 + slice.1).contains(at)))
        };
        if let Some(point) = points.iter().find(|point| !touches(point)) {
            return Err(format!("arrow {id} touches no slice at {point:?}"));
        }
    }
    let goes_back = |curve: &Vec<(u64, f64)>| curve.windows(2).any(|pair| pair[0].0 >= pair[1].0);
    match timeline.curves.iter().find(|(_, curve)| goes_back(curve)) {
        Some((name, _)) => Err(format!("curve {name:?} goes back in time")),
        None => Ok(()),
    }
}

fn timeline(run: &Run, picture: &Picture) -> Timeline {
    let mut text = Vec::new();
    perfetto::write(&mut text, picture, &run.config).unwrap();
    read(&String::from_utf8(text).unwrap()).unwrap()
}

/// The area under a curve over all groups, in units times cycles.
fn area(timeline: &Timeline, name: &str) -> f64 {
    let curves = timeline.curves.iter().filter(|((_, found), _)| found == name);
    let area = |curve: &Vec<(u64, f64)>| -> f64 {
        assert_eq!(curve.last().unwrap().1, 0.0, "{name} ends at rest");
        curve
            .windows(2)
            .map(|pair| pair[0].1 * (pair[1].0 - pair[0].0) as f64)
            .sum()
    };
    curves.map(|(_, curve)| area(curve)).sum()
}

#[test]
fn reader_refuses_what_the_format_does_not_allow() {
    let slice = r#"{"ph":"X","pid":1,"tid":2,"ts":5,"dur":4,"name":"a","args":{}}"#;
    let names = r#"{"ph":"M","pid":1,"name":"process_name","args":{"name":"p"}},{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"t"}}"#;
    let file = |events: &[&str]| format!("{{\"traceEvents\":[{}]}}", events.join(","));
    assert!(read(&file(&[names, slice])).is_ok());
    let second = slice.replace(r#""ts":5"#, r#""ts":8"#);
    assert!(read(&file(&[names, slice, &second])).unwrap_err().contains("overlap"));
    assert!(read(&file(&[slice])).unwrap_err().contains("has no name"));
    let open = r#"{"ph":"b","pid":1,"id":"r","ts":5,"name":"a"}"#;
    assert!(read(&file(&[names, open])).unwrap_err().contains("open at the end"));
    let other = r#"{"ph":"e","pid":1,"id":"r","ts":6,"name":"b"}"#;
    assert!(read(&file(&[names, open, other])).unwrap_err().contains("a is open"));
    let air = r#"{"ph":"s","pid":1,"tid":2,"id":"r","ts":5},{"ph":"f","pid":1,"tid":2,"id":"r","ts":20}"#;
    assert!(
        read(&file(&[names, slice, air]))
            .unwrap_err()
            .contains("touches no slice")
    );
    assert!(read("{\"traceEvents\":[1").is_err());
}

#[test]
fn chain_of_seven_instructions_has_a_gapless_warp_track_and_an_arrow_to_the_l2() {
    let (run, picture) = chain::run();
    let timeline = timeline(&run, &picture);
    assert_eq!(timeline.groups[&1], "SM 0");
    let warp = &timeline.slices[&(1, 1)];
    assert_eq!(timeline.tracks[&(1, 1)], "warp 0.0");
    let s = warp[0].0;
    let expected = [
        ("no_instruction", 0, 4),
        (chain::INSTRUCTIONS[0], 4, 1),
        (chain::INSTRUCTIONS[1], 5, 1),
        ("math_pipe_throttle", 6, 1),
        (chain::INSTRUCTIONS[2], 7, 1),
        ("short_scoreboard", 8, 10),
        (chain::INSTRUCTIONS[3], 18, 1),
        ("wait", 19, 4),
        (chain::INSTRUCTIONS[4], 23, 1),
        ("wait", 24, 3),
        (chain::INSTRUCTIONS[5], 27, 1),
        (chain::INSTRUCTIONS[6], 28, 1),
    ];
    let found: Vec<_> = warp
        .iter()
        .map(|(from, cycles, name)| (name.as_str(), from - s, *cycles))
        .collect();
    assert_eq!(found[..expected.len()], expected);
    assert_eq!((found.len(), found[12].0, found[12].1), (13, "drain", 29));
    // One store of one sector: its span begins at its issue, and its stages cover it.
    assert_eq!(timeline.spans.len(), 1);
    let spans = &timeline.spans[&(1, "sm0#0".to_owned())];
    let whole = spans.iter().find(|span| span.0 == 0).unwrap();
    assert_eq!((whole.1.as_str(), whole.2), ("store", s + 27));
    let stages: u64 = spans
        .iter()
        .filter(|span| span.0 == 1)
        .map(|span| span.3 - span.2)
        .sum();
    assert_eq!(stages, whole.3 - whole.2);
    // Issue, L1, L2, response. The LSU sends it in s + 31, after it has told the L1 to invalidate its lines.
    let arrow = &timeline.arrows["sm0#0"];
    assert_eq!(arrow.len(), 4);
    assert_eq!((arrow[0].1, arrow[0].2), ((1, 1), s + 27));
    assert_eq!((timeline.tracks[&arrow[1].1].as_str(), arrow[1].2), ("L1", s + 32));
    assert_eq!(timeline.groups[&arrow[2].1.0], "L2");
    assert_eq!(timeline.tracks[&arrow[3].1], "LSU responses");
}

#[test]
fn warp_tracks_and_curves_add_up_to_the_counters() {
    for name in SCENARIOS {
        let (run, picture) = picture(name, ALWAYS);
        let timeline = timeline(&run, &picture);
        let states: BTreeSet<&str> = stalls::STATES.iter().map(|(state, _)| *state).collect();
        let mut drawn = BTreeMap::<&str, u64>::new();
        let warps = timeline
            .slices
            .iter()
            .filter(|(track, _)| timeline.tracks[*track].starts_with("warp "));
        for (_, cycles, slice) in warps.flat_map(|(_, slices)| slices) {
            let state = states.get(slice.as_str()).copied().unwrap_or("selected");
            *drawn.entry(state).or_default() += cycles;
        }
        for (state, counter) in stalls::STATES {
            let counted = run.totals.sum("scheduler", counter).unwrap_or(0);
            assert_eq!(counted, drawn.get(state).copied().unwrap_or(0), "{name}: {state}");
        }
        let total = |counter| run.totals.sum("scheduler", counter).unwrap() as f64;
        assert_eq!(area(&timeline, "resident warps"), total("warp_cycles"), "{name}");
        assert_eq!(area(&timeline, "IPC"), total("inst_issued"), "{name}");
    }
}

#[test]
fn spans_of_requests_add_up_to_the_curve_of_requests_in_flight() {
    let (run, picture) = picture("saxpy", ALWAYS);
    let timeline = timeline(&run, &picture);
    let packets = run.totals.sum("lsu", "packets").unwrap();
    assert_eq!(timeline.spans.len() as u64, packets);
    assert_eq!(timeline.arrows.len() as u64, packets);
    let stages = timeline.spans.values().flatten().filter(|span| span.0 == 1);
    let under_way = stages.filter(|span| !["issue_to_lsu", "lsu_to_use"].contains(&span.1.as_str()));
    let cycles: u64 = under_way.map(|span| span.3 - span.2).sum();
    assert_eq!(area(&timeline, "requests from LSU to response"), cycles as f64);
}
