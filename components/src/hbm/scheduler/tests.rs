//! Tests of each policy: its candidates for queues written by hand.

use super::*;
use crate::hbm::layout::Location;
use crate::hbm::queue::{Entry, RowState};
use crate::preset;
use crate::proto::mem::Packet;

fn hbm(scheduler: DramScheduler) -> Hbm {
    Hbm {
        scheduler,
        write_drain_start: 3,
        write_drain_stop: 1,
        starved_after: 100,
        ..preset::load("tiny", &[]).expect("tiny is built in").config.hbm
    }
}

/// A queue of requests, oldest first. Each is bank, row and column, then true for a write, then true if its row is open.
fn queue(requests: &[([u32; 3], bool, bool)]) -> Queue {
    let mut queue = Queue::new(8, 4);
    for &([bank, row, column], write, open) in requests {
        let entry = Entry {
            packet: Box::new(Packet::blank()),
            port: 0,
            location: Location { row, bank, column },
            bursts: 1,
            write,
            row_state: RowState::Hit,
            arrived: 0,
        };
        queue.push(entry, open);
    }
    queue
}

const READ: bool = false;
const WRITE: bool = true;
const OPEN: bool = true;

#[test]
fn first_ready_serves_open_rows_and_opens_rows_of_other_banks() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstReadyFirstCome));
    let queue = queue(&[
        ([0, 7, 0], READ, !OPEN),
        ([0, 3, 0], READ, OPEN),
        ([1, 5, 0], READ, !OPEN),
        ([2, 5, 0], WRITE, OPEN),
    ]);
    policy.update(&queue, 10);
    assert!(!policy.is_writing());
    assert_eq!(policy.column_candidates(&queue), 0b0010);
    assert_eq!(
        policy.row_candidates(&queue),
        0b0100,
        "the open row of bank 0 is needed, so it stays"
    );
    assert_eq!(policy.next_change(&queue), 101);
}

#[test]
fn first_ready_closes_a_needed_row_for_a_starving_request() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstReadyFirstCome));
    let queue = queue(&[
        ([0, 7, 0], READ, !OPEN),
        ([0, 3, 0], READ, OPEN),
        ([1, 5, 0], READ, OPEN),
    ]);
    policy.update(&queue, 100);
    assert_eq!(policy.column_candidates(&queue), 0b0110);
    policy.update(&queue, 101);
    assert_eq!(policy.column_candidates(&queue), 0b0100);
    assert_eq!(policy.row_candidates(&queue), 0b0001);
}

/// Found by fuzzing. The younger request to another row of the bank closed the row before the starving request could use it.
#[test]
fn first_ready_keeps_the_open_row_of_a_starving_request() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstReadyFirstCome));
    let queue = queue(&[([0, 7, 0], READ, OPEN), ([0, 3, 0], READ, !OPEN)]);
    policy.update(&queue, 101);
    assert_eq!(policy.column_candidates(&queue), 0b01);
    assert_eq!(policy.row_candidates(&queue), 0);
}

#[test]
fn first_ready_drains_writes_between_its_thresholds() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstReadyFirstCome));
    let write = |column| ([0, 0, column], WRITE, OPEN);
    let mut queue = queue(&[([1, 0, 0], READ, OPEN), write(0), write(1)]);
    policy.update(&queue, 0);
    assert!(!policy.is_writing(), "2 writes, the drain starts at 3");
    let more = self::queue(&[([1, 0, 0], READ, OPEN), write(0), write(1), write(2)]);
    policy.update(&more, 0);
    assert!(policy.is_writing());
    policy.update(&queue, 0);
    assert!(policy.is_writing(), "2 writes, the drain stops at 1");
    queue.remove(1);
    policy.update(&queue, 0);
    assert!(!policy.is_writing());
    queue.remove(0);
    policy.update(&queue, 0);
    assert!(policy.is_writing(), "no read is in the queue");
}

#[test]
fn first_come_serves_only_the_oldest_request() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstComeFirstServed));
    let mut queue = queue(&[
        ([0, 7, 0], WRITE, !OPEN),
        ([0, 3, 0], READ, OPEN),
        ([1, 5, 0], READ, !OPEN),
    ]);
    policy.update(&queue, 10);
    assert!(policy.is_writing());
    assert_eq!(
        (policy.column_candidates(&queue), policy.row_candidates(&queue)),
        (0, 0b001)
    );
    queue.remove(0);
    policy.update(&queue, 10);
    assert!(!policy.is_writing());
    assert_eq!(
        (policy.column_candidates(&queue), policy.row_candidates(&queue)),
        (0b01, 0)
    );
    assert_eq!(policy.next_change(&queue), u64::MAX);
}
