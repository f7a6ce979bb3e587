//! Latency, depth and credits of a link, cycle by cycle.

use super::*;
use crate::tile::TileBuilder;

fn joined(latency: u32, depth: u32) -> (OutPort<u32>, InPort<u32>) {
    let mut tile = TileBuilder::new();
    let (from, to) = (tile.slot(), tile.slot());
    link(
        &LinkConfig {
            path: Path::root("l"),
            latency,
            depth,
        },
        &from,
        &to,
    )
}

#[test]
fn sent_at_t_is_visible_at_t_plus_latency() {
    let (mut out, mut inp) = joined(3, 4);
    out.send(Cycle(10), 7);
    assert_eq!(inp.recv(Cycle(12)), None);
    assert_eq!(inp.peek(Cycle(13)), Some(&7));
    assert_eq!(inp.recv(Cycle(13)), Some(7));
    assert_eq!(inp.recv(Cycle(13)), None);
}

#[test]
fn messages_with_falling_delays_arrive_in_the_order_of_sending() {
    let (mut out, mut inp) = joined(2, 4);
    // On their own they would be visible in cycles 21, 16, 14 and 30.
    for (now, extra, message) in [(10, 9, 1), (11, 3, 2), (12, 0, 3), (13, 15, 4)] {
        out.send_after(Cycle(now), extra, message);
    }
    let arrivals: Vec<_> = (14..40)
        .flat_map(|now| std::iter::from_fn(|| Some((now, inp.recv(Cycle(now))?))).collect::<Vec<_>>())
        .collect();
    assert_eq!(arrivals, [(21, 1), (21, 2), (21, 3), (30, 4)]);
}

#[test]
fn depth_two_carries_one_message_a_cycle_depth_one_every_other() {
    for (depth, expected) in [(1, 50), (2, 100)] {
        let (mut out, mut inp) = joined(1, depth);
        let mut sent = 0;
        for now in (0..100).map(Cycle) {
            inp.recv(now);
            if out.has_room(now) {
                out.send(now, 0);
                sent += 1;
            }
        }
        assert_eq!(sent, expected, "depth {depth}");
    }
}

#[test]
fn slot_freed_in_this_cycle_is_usable_in_the_next() {
    let (mut out, mut inp) = joined(1, 1);
    out.send(Cycle(0), 1);
    assert_eq!(inp.recv(Cycle(1)), Some(1));
    assert!(!out.has_room(Cycle(1)));
    assert!(out.has_room(Cycle(2)));
}

#[test]
fn slot_is_usable_after_the_latency_between_tiles() {
    let (mut a, mut b) = (TileBuilder::new(), TileBuilder::new());
    let (from, to) = (a.slot(), b.slot());
    let (mut out, mut inp) = link(
        &LinkConfig {
            path: Path::root("l"),
            latency: 5,
            depth: 1,
        },
        &from,
        &to,
    );
    out.send(Cycle(0), 1);
    assert_eq!(inp.recv(Cycle(5)), Some(1));
    assert!(!out.has_room(Cycle(9)));
    assert!(out.has_room(Cycle(10)));
}

#[test]
#[should_panic(expected = "a message is sent without room")]
fn send_without_room_panics() {
    let (mut out, _inp) = joined(1, 1);
    out.send(Cycle(0), 1);
    out.send(Cycle(0), 2);
}

#[test]
fn both_ends_agree_on_the_next_slot_after_a_clear() {
    let (mut out, mut inp) = joined(1, 3);
    out.send(Cycle(0), 1);
    out.send(Cycle(0), 2);
    assert_eq!(inp.peek(Cycle(1)), Some(&1));
    inp.clear();
    for n in 3..6 {
        out.send(Cycle(10), n);
    }
    assert!(!out.has_room(Cycle(10)));
    assert_eq!(inp.recv(Cycle(11)), Some(3));
    assert!(out.has_room(Cycle(12)));
}

fn config(latency: u32, depth: u32) -> LinkConfig {
    LinkConfig {
        path: Path::root("l"),
        latency,
        depth,
    }
}

#[test]
fn stalled_link_keeps_bounds_and_order_and_repeats_exactly() {
    let run = || {
        let (mut out, mut inp) = joined(2, 8);
        out.disturb(stall::Stall::new(9, 20));
        let checker = monitor::Checker::attach(&config(2, 8), &mut out, &mut inp);
        let (mut sent, mut waits) = (0, Vec::new());
        for now in (0..2000).map(Cycle) {
            if let Some(at) = inp.recv(now) {
                waits.push(now.0 - u64::from(at));
            }
            if out.has_room(now) && sent < 500 {
                out.send(now, now.0 as u32);
                sent += 1;
            }
        }
        assert_eq!((sent, waits.len(), checker.n_in_flight()), (500, 500, 0));
        waits
    };
    let waits = run();
    assert_eq!(waits, run());
    // One message is taken per cycle. So a wait may exceed the delay by the number of messages in front.
    assert!(waits.iter().all(|wait| (2..=22 + 8).contains(wait)));
    assert!(
        waits.iter().max() > Some(&18) && waits.iter().min() < Some(&10),
        "{waits:?}"
    );
}

#[test]
fn stall_is_cut_off_at_the_horizon() {
    let (mut out, mut inp) = joined(60, 2);
    out.disturb(stall::Stall::new(3, 1000));
    (0..2).for_each(|n| out.send(Cycle(100), n));
    // Both are visible within 63 cycles.
    let taken = [inp.recv(Cycle(163)), inp.recv(Cycle(163))];
    assert_eq!(taken, [Some(0), Some(1)]);
}

#[test]
#[should_panic(expected = "cycle 9: l: 7 taken, but the oldest in flight is None and the latency is 1")]
fn checker_finds_a_message_that_was_never_sent() {
    let (mut out, mut inp) = joined(1, 2);
    out.send(Cycle(0), 7);
    monitor::Checker::attach(&config(1, 2), &mut out, &mut inp);
    inp.recv(Cycle(9));
}

#[test]
fn message_is_taken_with_and_without_a_peek() {
    let (mut out, mut inp) = joined(1, 2);
    (0..2).for_each(|n| out.send(Cycle(0), n));
    assert!(inp.is_ready(Cycle(1)));
    assert_eq!(inp.take(Cycle(1)), 0);
    assert_eq!(inp.peek(Cycle(1)), Some(&1));
    assert_eq!(inp.take(Cycle(1)), 1);
    assert!(!inp.is_ready(Cycle(1)) && out.has_room(Cycle(2)));
}

#[test]
#[should_panic(expected = "l, cycle 1: taken before it is visible")]
fn take_before_the_message_is_visible_panics() {
    let (mut out, mut inp) = joined(2, 2);
    out.send(Cycle(0), 7);
    inp.take(Cycle(1));
}

#[test]
fn checker_expects_no_message_that_a_clear_has_dropped() {
    let (mut out, mut inp) = joined(1, 4);
    let checker = monitor::Checker::attach(&config(1, 4), &mut out, &mut inp);
    (0..3).for_each(|n| out.send(Cycle(0), n));
    inp.clear();
    assert_eq!(checker.n_in_flight(), 0);
    out.send(Cycle(9), 7);
    assert_eq!(inp.recv(Cycle(10)), Some(7));
}
