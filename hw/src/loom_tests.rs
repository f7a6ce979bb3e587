//! Every interleaving of the host threads, on what they share. `loom` runs each test once per interleaving, and lets a load return every
//! value that the memory model allows.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --package warpwave-hw --lib --release --target-dir target/loom loom_tests
//! ```
//!
//! | Shared | Claim |
//! |---|---|
//! | barrier | no thread is a round ahead; writes before it are visible after it; no sleeper is forgotten; a panic ends every wait |
//! | mailbox, due table | a wake-up is on the wheel or in the mailbox, and a tile with a wake-up in the mailbox is due |
//! | link between tiles | a full slot has its message; no slot is used before it is free |
//!
//! The channel of a link is crossbeam's. `loom` does not see into it, so a link is modelled by its stamps and a cell per slot.

use std::sync::Arc;

use loom::cell::Cell;
use loom::model::Builder;
use loom::thread;

use crate::clock::barrier::ThreadBarrier;
use crate::link::stamp::{FIRST_SLOT, next_slot, stamps};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::tile::due::DueTable;
use crate::tile::slot::TileState;
use crate::time::Cycle;

/// Runs a test in every interleaving with at most `preemptions` forced switches between threads.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

/// A barrier for `threads` threads. A thread reads the round `spins` times before it sleeps.
fn barrier(threads: usize, spins: u32) -> Arc<ThreadBarrier> {
    Arc::new(ThreadBarrier::with_spins(threads, spins))
}

/// Each thread writes its round, waits, and reads the rounds of the others.
fn run_rounds(barrier: &ThreadBarrier, rounds: &[AtomicUsize], own: usize, last: usize) {
    for round in 1..=last {
        rounds[own].store(round, Ordering::Relaxed);
        assert!(barrier.wait());
        for other in rounds {
            assert_eq!(other.load(Ordering::Relaxed), round, "the round of each thread");
        }
        assert!(barrier.wait());
    }
}

fn check_rounds(threads: usize, spins: u32, last: usize, preemptions: usize) {
    check(preemptions, move || {
        let barrier = barrier(threads, spins);
        let rounds: Arc<Vec<_>> = Arc::new((0..threads).map(|_| AtomicUsize::new(0)).collect());
        let others: Vec<_> = (1..threads)
            .map(|own| {
                let (barrier, rounds) = (barrier.clone(), rounds.clone());
                thread::spawn(move || run_rounds(&barrier, &rounds, own, last))
            })
            .collect();
        run_rounds(&barrier, &rounds, 0, last);
        others
            .into_iter()
            .for_each(|other| other.join().expect("no thread panics"));
    });
}

#[test]
fn two_threads_that_sleep_meet_in_every_round() {
    check_rounds(2, 0, 2, 4);
}

#[test]
fn two_threads_that_spin_meet_in_every_round() {
    check_rounds(2, 1, 1, 3);
}

#[test]
fn three_threads_meet_in_every_round() {
    check_rounds(3, 0, 1, 2);
}

#[test]
fn broken_barrier_ends_the_wait_of_the_others() {
    check(4, || {
        let barrier = barrier(3, 0);
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let barrier = barrier.clone();
                thread::spawn(move || barrier.wait())
            })
            .collect();
        barrier.break_up();
        for thread in waiting {
            assert!(!thread.join().expect("no thread panics"), "the barrier is broken");
        }
    });
}

/// The cycle of the wake-ups. The tile runs the window before it.
const AT: Cycle = Cycle(40);

/// A tile that runs a window while `senders` threads wake component 3 of it. An entry of the due table from before is `due`.
fn check_wakeups(senders: usize, entry: Option<Cycle>) {
    check(3, move || {
        let (tile, due) = (TileState::new(), DueTable::new(1));
        let joined = tile.remote.due.set((due.clone(), 0));
        assert!(joined.is_ok(), "the tile is in no other machine");
        if let Some(at) = entry {
            due.lower(0, at);
        }
        let threads: Vec<_> = (0..senders)
            .map(|_| {
                let tile = tile.clone();
                thread::spawn(move || tile.wake_remote(3, AT))
            })
            .collect();
        // The order of `Tile::run`.
        due.raise(0);
        tile.drain_mail();
        due.lower(0, tile.wheel.next(Cycle(0)).min(tile.remote.mail.next(Cycle(0))));
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no thread panics"));
        // Between two windows: the tile runs again exactly if its entry is not after the wake-up.
        assert!(
            due.get(0) <= AT,
            "the wake-up in cycle 40 is lost: the tile is due in {}",
            due.get(0)
        );
        tile.drain_mail();
        assert_eq!(tile.wheel.take(AT), 1 << 3, "the wake-up is not on the wheel");
    });
}

#[test]
fn wakeup_of_an_idle_tile_makes_it_due() {
    check_wakeups(1, None);
}

#[test]
fn wakeup_of_a_tile_that_runs_makes_it_due_afterwards() {
    check_wakeups(1, Some(Cycle(8)));
}

#[test]
fn same_wakeup_from_two_tiles_is_not_lost() {
    check_wakeups(2, Some(Cycle(8)));
}

#[test]
fn full_slot_has_its_message_and_a_taken_slot_is_free_later() {
    check(4, || {
        let stamps = stamps(2);
        // The message of each slot. `loom` reports a write beside a read.
        let messages: Arc<Vec<Cell<u64>>> = Arc::new((0..=2).map(|_| Cell::new(0)).collect());
        let sender = {
            let (stamps, messages) = (stamps.clone(), messages.clone());
            thread::spawn(move || {
                let mut slot = FIRST_SLOT;
                // A send per cycle, visible 8 cycles later. The third one needs a slot that the receiver has freed.
                for n in 0..3 {
                    let stamp = &stamps[slot as usize];
                    if !stamp.is_free(Cycle(20 + n)) {
                        return n;
                    }
                    messages[slot as usize].set(100 + n);
                    stamp.fill(Cycle(28 + n), n as u16);
                    slot = next_slot(slot, &stamps);
                }
                3
            })
        };
        let (mut slot, mut taken) = (FIRST_SLOT, 0);
        for now in [28, 29] {
            let stamp = &stamps[slot as usize];
            if let Some(sideband) = stamp.sideband(Cycle(now)) {
                assert_eq!(u64::from(sideband), taken, "messages keep their order");
                assert_eq!(messages[slot as usize].get(), 100 + taken, "the message of a full slot");
                // The slot is free at once for this sender: the receiver's credits are those of an earlier window.
                stamp.free(Cycle(20));
                (slot, taken) = (next_slot(slot, &stamps), taken + 1);
            }
        }
        let sent = sender.join().expect("no thread panics");
        assert!(sent >= 2 && taken <= sent, "{taken} of {sent} messages");
    });
}
