//! Tests with requests whose stamps are given by hand.

use super::*;
use warpwave_components::proto::mem::{Packet, Stamps};

/// A load with these stamps, by stage.
fn load(stamps: &[(Stage, u64)]) -> Request {
    let mut packet = Packet::blank();
    packet.stamps = Stamps::NONE;
    stamps
        .iter()
        .for_each(|&(stage, at)| packet.stamps.note(stage, Cycle(at)));
    Request::of(&packet, 0, (1, 2, 3))
}

/// A load that is issued in cycle 10, misses in all caches, and returns in cycle 500.
fn missed() -> Request {
    use Stage::{Hbm, Issue, L1, L2, L2Data, Lsu, Request as Below, Response, Return};
    let stages = [Issue, Lsu, L1, Below, L2, Hbm, L2Data, Response, Return];
    let cycles = [10, 14, 15, 16, 100, 102, 400, 490, 500];
    let stamps: Vec<_> = stages.into_iter().zip(cycles).collect();
    load(&stamps)
}

#[test]
fn stages_of_a_missed_load_cover_it_from_issue_to_use() {
    let lengths = [4, 1, 1, 84, 2, 298, 90, 10, 2];
    let stages = stages(&missed());
    assert_eq!(stages.iter().map(|stage| stage.2).collect::<Vec<_>>(), lengths);
    assert_eq!(stages.iter().map(|stage| stage.2).sum::<u64>(), 502 - 10);
    assert_eq!(stages[5].0, "memory");
    let gapless = |pair: &[(&str, Cycle, u64)]| pair[0].1 + pair[0].2 == pair[1].1;
    assert!(stages.windows(2).all(gapless));
}

#[test]
fn l1_hit_has_no_stages_beyond_the_l1() {
    let mut hit = load(&[(Stage::Issue, 5), (Stage::Lsu, 9), (Stage::L1, 10), (Stage::Return, 36)]);
    hit.l1_hit = true;
    let names: Vec<_> = stages(&hit)
        .into_iter()
        .map(|(name, _, cycles)| (name, cycles))
        .collect();
    assert_eq!(
        names,
        [("issue_to_lsu", 4), ("lsu_to_l1", 1), ("l1", 26), ("lsu_to_use", 2)]
    );
    assert_eq!(path(&hit), Some("l1_hit"));
}

#[test]
fn request_without_a_response_at_the_lsu_has_no_path() {
    let mut remote = load(&[(Stage::Issue, 5), (Stage::Lsu, 9)]);
    remote.kind = PacketKind::Reduction;
    assert_eq!(path(&remote), None);
    let mut requests = Requests::new(1000);
    requests.request(0, &remote);
    assert!(requests.paths().next().is_none() && requests.slowest().is_empty());
}

#[test]
fn response_before_the_first_cycle_does_not_count() {
    // The response is in cycle 500.
    for (first, n) in [(500, 1), (501, 0)] {
        let mut requests = Requests::new(1000).since(Cycle(first));
        requests.request(0, &missed());
        assert_eq!(requests.paths().count(), n, "from cycle {first} on");
    }
}

#[test]
fn launch_that_warms_up_does_not_count() {
    // The requests are of launch 0.
    for (warms_up, n) in [(false, 1), (true, 0)] {
        let mut requests = Requests::new(1000).without(vec![warms_up]);
        requests.request(0, &missed());
        assert_eq!(requests.paths().count(), n);
    }
}

#[test]
fn request_that_returns_after_the_next_warp_of_its_slot_has_started_names_its_own_warp() {
    let mut requests = Requests::new(1000);
    // Issued in cycle 10, it returns in cycle 500.
    for (at, block) in [(5, 7), (300, 8)] {
        let kind = EventKind::Start {
            grid: 0,
            block: [block, 0, 0],
            index: block,
        };
        let (at, subcore, warp) = (Cycle(at), 1, 2);
        requests.event(
            0,
            &Event {
                at,
                subcore,
                warp,
                kind,
            },
        );
    }
    requests.request(0, &missed());
    let slowest = requests.slowest()[0];
    assert_eq!((slowest.block, slowest.warp), ([7, 0, 0], 7));
}

#[test]
fn store_ends_with_the_acknowledgement_of_the_l2() {
    let mut store = missed();
    store.kind = PacketKind::Store;
    let last = stages(&store).pop().map(|(name, _, cycles)| (name, cycles));
    assert_eq!(last, Some(("l1_to_lsu", 10)));
    assert_eq!(path(&store), Some("store"));
}

#[test]
fn slowest_requests_are_kept_in_order_with_their_warps() {
    let mut requests = Requests::new(1000);
    let (block, index) = ([7, 0, 0], 4);
    requests.event(
        3,
        &Event {
            at: Cycle(1),
            subcore: 1,
            warp: 2,
            kind: EventKind::Start { grid: 0, block, index },
        },
    );
    for slower in [5, 0, 9].into_iter().chain(10..40) {
        let mut request = missed();
        request.stamps.note(Stage::Return, Cycle(500 + slower));
        requests.request(3, &request);
    }
    let kept: Vec<_> = requests.slowest().iter().map(|slowest| slowest.cycles).collect();
    assert_eq!(kept, (492 + 24..492 + 40).rev().collect::<Vec<_>>());
    let slowest = requests.slowest()[0];
    assert_eq!(
        (slowest.block, slowest.warp, slowest.id.to_string().as_str()),
        (block, 4, "sm3#32")
    );
}

#[test]
fn request_is_counted_in_the_interval_of_its_response() {
    let mut requests = Requests::new(100);
    for _ in 0..3 {
        requests.request(0, &missed());
    }
    let intervals: Vec<_> = requests.intervals().collect();
    assert_eq!(intervals, [(5, "hbm", &LatencyCounts::from([(492, 3)]))]);
}
