//! Contract and cycles of the L1.5 constant cache. The test acts as two schedulers and the LSU.

use warpwave_hw::rig::{Event, Rig, check};

use super::*;

/// The caches of a V100, as jia18 and huerta25 measured them.
fn v100() -> config::Constant {
    crate::preset::load("v100-sxm2", &[])
        .expect("v100-sxm2 is built in")
        .config
        .sm
        .constant
}

/// A line of bank 3 of a launch, by its first byte.
fn line(grid: u32, address: u32) -> ConstantLine {
    let line = ConstantLine::number(3, address, 64);
    ConstantLine { grid, line }
}

type Requests = Vec<(u64, ConstantLine)>;

/// The cycles in which fills are visible. Requests are sent in the cycles of `requests`, by requester.
fn fills(requests: [Requests; 3]) -> Vec<Event> {
    let build = move |rig: &mut Rig| {
        let names = ["scheduler0", "scheduler1", "lsu"];
        let fills = ["fill0", "fill1", "fill_lsu"];
        let ports = Ports {
            requests: names
                .iter()
                .zip(requests.clone())
                .map(|(name, sent)| rig.input(name, 1, 8, sent))
                .collect(),
            fills: fills.map(|name| rig.output(name, 1, 8, |_| true)).into(),
        };
        ConstantCache::new(Path::root("constant"), v100(), ports)
    };
    check(build, 1000).unwrap()
}

/// The cycles in which the messages of a link were taken.
fn at(events: &[Event], link: &str) -> Vec<u64> {
    crate::test_ports::times(events, link)
}

#[test]
fn first_touch_comes_from_the_l2_and_the_second_from_the_l15() {
    let events = fills([vec![(0, line(0, 0)), (500, line(0, 64))], vec![], vec![]]);
    // 79 cycles of a miss, and the way to the L2: 245 - 89. Byte 64 is in the same line of 256 bytes.
    assert_eq!(at(&events, "fill0"), [79 + 245 - 89, 500 + 79]);
}

#[test]
fn load_takes_its_latency_less_the_stages_outside() {
    let events = fills([vec![], vec![], vec![(0, line(0, 0)), (500, line(0, 0))]]);
    // The LSU has the load 3 cycles after its issue, and a dependent instruction issues 2 cycles after its return.
    assert_eq!(at(&events, "fill_lsu"), [245 - 5, 500 + 89 - 5]);
}

#[test]
fn first_touch_of_a_parameter_hits() {
    let line = ConstantLine::number(0, 512, 64);
    let parameter = |grid| ConstantLine { grid, line };
    let events = fills([
        vec![(0, parameter(0)), (500, parameter(1))],
        vec![],
        vec![(900, parameter(1))],
    ]);
    assert_eq!(at(&events, "fill0"), [79, 500 + 79]);
    assert_eq!(at(&events, "fill_lsu"), [900 + 89 - 5]);
}

#[test]
fn second_request_of_a_line_on_its_way_gets_it_with_the_first() {
    let events = fills([vec![(0, line(0, 0))], vec![(100, line(0, 128))], vec![]]);
    assert_eq!(at(&events, "fill0"), [235]);
    assert_eq!(at(&events, "fill1"), [235]);
}

#[test]
fn hit_overtakes_a_miss() {
    let events = fills([
        vec![(0, line(0, 0)), (300, line(0, 256)), (301, line(0, 0))],
        vec![],
        vec![],
    ]);
    assert_eq!(at(&events, "fill0"), [235, 301 + 79, 300 + 235]);
}

#[test]
fn launch_begins_with_an_empty_cache() {
    let events = fills([vec![(0, line(0, 0)), (500, line(1, 0))], vec![], vec![]]);
    assert_eq!(at(&events, "fill0"), [235, 735]);
}

#[test]
fn one_request_is_looked_up_per_cycle() {
    let first = |address| vec![(0, line(0, address))];
    let events = fills([first(0), first(256), first(512)]);
    let mut all: Vec<u64> = ["fill0", "fill1"].iter().flat_map(|link| at(&events, link)).collect();
    all.sort_unstable();
    assert!(all[1] > all[0], "{all:?}");
    assert_eq!(at(&events, "fill_lsu").len(), 1);
}

#[test]
fn more_lines_found_than_requested_break_the_invariants() {
    let build = |rig: &mut Rig| {
        let ports = Ports {
            requests: vec![rig.input("lsu", 1, 8, Vec::new())],
            fills: vec![rig.output("fill_lsu", 1, 8, |_| true)],
        };
        let mut cache = ConstantCache::new(Path::root("constant"), v100(), ports);
        cache.state.stats.requests_hit = 1;
        cache
    };
    let found = check(build, 1).unwrap_err();
    assert!(found.contains("constant lines found: "), "{found}");
}
