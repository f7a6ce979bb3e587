//! Tests of the `--hist` files. Independent readers parse them where such a reader exists.

use std::collections::BTreeSet;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::{Histogram, serialization::Deserializer};
use warpwave_components::proto::event::Request;
use warpwave_components::proto::mem::{Packet, Stage, Stamps};
use warpwave_hw::time::Cycle;

use super::*;
use crate::watch::Listener;

/// Loads that miss all caches, are issued in cycle 0, and return in these cycles.
fn collected(answered: &[u64]) -> Requests {
    let mut requests = Requests::new(1000);
    for &at in answered {
        let mut packet = Packet::blank();
        packet.stamps = Stamps::NONE;
        packet.stamps.note(Stage::Issue, Cycle(0));
        packet.stamps.note(Stage::Return, Cycle(at));
        requests.request(0, &Request::of(&packet, 0, (0, 0, 0)));
    }
    requests
}

fn file(name: &str, requests: &Requests) -> String {
    let paths = paths(std::iter::empty(), requests);
    let files = files(&paths, requests, &[]).unwrap();
    let found = files.into_iter().find(|(found, _)| found == name);
    String::from_utf8(found.unwrap_or_else(|| panic!("no file {name}")).1).unwrap()
}

#[test]
fn every_latency_below_2048_cycles_has_its_own_count() {
    let requests = collected(&(0..2046).collect::<Vec<_>>());
    let text = file("hbm.hgrm", &requests);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(2)
        .map(|row| row.split_whitespace().collect())
        .collect();
    for cycles in 2..2048u64 {
        let row = &rows[cycles as usize - 2];
        assert_eq!(row[0], format!("{cycles}.000"));
        assert_eq!(row[2], (cycles - 1).to_string());
    }
}

#[test]
fn interval_log_read_by_the_hdrhistogram_crate_has_every_latency_in_its_interval() {
    let text = file("latencies.hlog", &collected(&[300, 300, 2900]));
    let intervals: Vec<_> = IntervalLogIterator::new(text.as_bytes())
        .filter_map(|entry| match entry.unwrap() {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        })
        .collect();
    let times: Vec<_> = intervals
        .iter()
        .map(|i| (i.start_timestamp().as_millis(), i.duration().as_millis()))
        .collect();
    assert_eq!(times, [(0, 1000), (2000, 1000)]);
    let counts = intervals.iter().map(|interval| {
        let bytes = base64(interval.encoded_histogram());
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        (
            interval.tag().unwrap().as_str().to_owned(),
            histogram.count_at(302),
            histogram.len(),
        )
    });
    let wanted = [("hbm".to_owned(), 2, 2), ("hbm".to_owned(), 0, 1)];
    assert_eq!(counts.collect::<Vec<_>>(), wanted);
}

/// Decodes base 64.
fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let bits = digits
        .iter()
        .flat_map(|digit| (0..6).rev().map(move |n| digit >> n & 1));
    let bits: Vec<u8> = bits.collect();
    bits.chunks_exact(8)
        .map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | bit))
        .collect()
}

#[test]
fn picture_shows_each_path_in_both_charts_and_is_balanced_markup() {
    let text = file("latencies.svg", &collected(&[40, 40, 700]));
    assert_eq!(text.matches("<title>hbm</title>").count(), 2);
    assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
}

#[test]
fn table_names_the_slowest_request_its_warp_and_its_instruction() {
    let requests = collected(&[40, 700]);
    let text = file("latencies.txt", &requests);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("slowest"));
    // The page of a run has the same names of columns.
    let head = "slowest path cycles issued warp of block address instruction";
    assert_eq!(
        lines.next().unwrap().split_whitespace().collect::<Vec<_>>().join(" "),
        head
    );
    let slowest = lines.next().unwrap();
    let words: Vec<_> = slowest.split_whitespace().collect();
    assert_eq!(&words[..5], ["sm0#1", "hbm", "702", "0", "sm[0].0.0"]);
}

#[test]
fn bars_count_every_request_once() {
    let mut latency = Latency::new();
    [1, 2, 3, 3, 900, 901, 5000]
        .iter()
        .for_each(|&cycles| latency.record(cycles));
    let shares: f64 = bars(&latency).iter().map(|bar| bar.1).sum();
    assert!((shares - 100.0).abs() < 1e-9, "{shares}");
    let edges: BTreeSet<u64> = bars(&latency).iter().map(|bar| bar.0.to_bits()).collect();
    assert_eq!(edges.len(), bars(&latency).len());
}
