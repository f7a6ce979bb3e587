//! The candidates of each policy, from queues written out by hand.

use super::*;
use crate::config::{Mapping, RowPolicy, Timing};
use crate::hbm::layout::Location;
use crate::hbm::queue::{Entry, RowState};
use crate::proto::mem::Packet;

fn hbm(scheduler: DramScheduler) -> Hbm {
    Hbm {
        channels: 1,
        banks: 4,
        bank_groups: 1,
        row_bytes: 1024,
        mapping: Mapping::Modulo,
        queue_depth: 8,
        scheduler,
        write_drain_start: 3,
        write_drain_stop: 1,
        starved_after: 100,
        row_policy: RowPolicy::Open,
        row_timeout: 1,
        burst_bytes: 32,
        bus_bytes_per_command_cycle: 32,
        access_latency: 1,
        latency_extra: 0,
        timing: Timing {
            t_rcd: 1,
            t_rp: 1,
            t_ras: 1,
            t_rc: 2,
            t_rrd: 1,
            t_ccd_s: 1,
            t_ccd_l: 1,
            cl: 1,
            wl: 1,
            t_wr: 1,
            t_wtr: 1,
            t_rtp: 1,
            t_rfc: 1,
            t_refi: 100,
        },
    }
}

/// A queue of requests: bank, row and column of each, whether it writes, and whether its row is open; oldest first.
fn queue(requests: &[([u32; 3], bool, bool)]) -> Queue {
    let mut queue = Queue::new(8, 4);
    for &([bank, row, column], write, open) in requests {
        let entry = Entry {
            packet: Box::new(Packet::blank()),
            port: 0,
            at: Location { row, bank, column },
            bursts: 1,
            write,
            found: RowState::Hit,
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
fn first_ready_takes_every_read_with_an_open_row_and_rows_of_other_banks() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstReadyFirstCome));
    let queue = queue(&[
        ([0, 7, 0], READ, !OPEN),
        ([0, 3, 0], READ, OPEN),
        ([1, 5, 0], READ, !OPEN),
        ([2, 5, 0], WRITE, OPEN),
    ]);
    policy.look(&queue, 10);
    assert!(!policy.is_writing());
    assert_eq!(policy.columns(&queue), 0b0010);
    assert_eq!(
        policy.rows(&queue),
        0b0100,
        "the open row of bank 0 is needed, so it stays"
    );
    assert_eq!(policy.changes_at(&queue), 101);
}

#[test]
fn first_ready_starving_oldest_closes_the_row_that_others_of_its_bank_use() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstReadyFirstCome));
    let queue = queue(&[
        ([0, 7, 0], READ, !OPEN),
        ([0, 3, 0], READ, OPEN),
        ([1, 5, 0], READ, OPEN),
    ]);
    policy.look(&queue, 100);
    assert_eq!(policy.columns(&queue), 0b0110);
    policy.look(&queue, 101);
    assert_eq!(policy.columns(&queue), 0b0100);
    assert_eq!(policy.rows(&queue), 0b0001);
}

#[test]
fn first_ready_drains_writes_between_its_two_thresholds() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstReadyFirstCome));
    let write = |column| ([0, 0, column], WRITE, OPEN);
    let mut queue = queue(&[([1, 0, 0], READ, OPEN), write(0), write(1)]);
    policy.look(&queue, 0);
    assert!(!policy.is_writing(), "two writes are fewer than three");
    let more = self::queue(&[([1, 0, 0], READ, OPEN), write(0), write(1), write(2)]);
    policy.look(&more, 0);
    assert!(policy.is_writing());
    policy.look(&queue, 0);
    assert!(policy.is_writing(), "two are more than one");
    queue.remove(1);
    policy.look(&queue, 0);
    assert!(!policy.is_writing());
    queue.remove(0);
    policy.look(&queue, 0);
    assert!(policy.is_writing(), "no read waits");
}

#[test]
fn first_come_takes_the_oldest_alone_be_it_a_write() {
    let mut policy = Scheduler::new(&hbm(DramScheduler::FirstComeFirstServed));
    let mut queue = queue(&[
        ([0, 7, 0], WRITE, !OPEN),
        ([0, 3, 0], READ, OPEN),
        ([1, 5, 0], READ, !OPEN),
    ]);
    policy.look(&queue, 10);
    assert!(policy.is_writing());
    assert_eq!((policy.columns(&queue), policy.rows(&queue)), (0, 0b001));
    queue.remove(0);
    policy.look(&queue, 10);
    assert!(!policy.is_writing());
    assert_eq!((policy.columns(&queue), policy.rows(&queue)), (0b01, 0));
    assert_eq!(policy.changes_at(&queue), u64::MAX);
}
