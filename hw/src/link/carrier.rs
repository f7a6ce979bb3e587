//! What carries a link's messages. Inside a tile a message of a word lies in its place, a larger one passes a bounded crossbeam queue;
//! between tiles all those of a window go together through such a queue.
//!
//! Who sends and who receives know from the words of the places whether there is room or a message, and count the places alike. So a
//! ring of crossbeam's [`AtomicCell`]s does for a bounded channel, without indices of its own: a box is handed over by one exchange
//! at either end. Of messages that no word holds a cell would need a lock, and those pass a queue.
//!
//! Nobody in another tile can look at a message before the window in which it was sent is over. So messages wait at the sending
//! end until then, and one passage through the queue, with the locked operations of the processor that it takes, does for a line
//! full of them. That queue is crossbeam's [`ArrayQueue`]: its bounded channel without the part that puts threads to sleep and wakes
//! them, since no end ever waits, and nobody hangs up.

use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrayvec::{ArrayVec, IntoIter};
use crossbeam::atomic::AtomicCell;
use crossbeam::queue::ArrayQueue;

/// A place of a link, for one message.
pub(super) struct Place<T> {
    /// While a message is in it, [`TAKEN`] and the cycle from which the message is visible; else the cycle from which the place is
    /// free. One word answers both sides' questions.
    ///
    /// Inside a tile, that of the place before the first says whether the sender waits for room ([`WAITED_FOR`]), and by which number
    /// the receiver's [`inbox`](super::inbox) knows the link ([`NUMBER`], 0 where it does not).
    pub(super) word: AtomicU64,
    /// The message, where a word holds it, inside a tile.
    pub(super) message: Cell<T>,
}

/// Holds a message. Who puts one in knows that none is there, so a box goes in by a plain store: the cell need not give back, and drop,
/// what it held.
pub(super) struct Cell<T>(AtomicCell<ManuallyDrop<Option<T>>>);

impl<T> Cell<T> {
    fn new() -> Self {
        Cell(AtomicCell::new(ManuallyDrop::new(None)))
    }

    /// Whether messages go in and out without a lock: those of a word.
    fn is_lock_free() -> bool {
        AtomicCell::<ManuallyDrop<Option<T>>>::is_lock_free()
    }

    /// Puts a message into an empty cell.
    #[inline]
    fn put(&self, message: T) {
        self.0.store(ManuallyDrop::new(Some(message)));
    }

    /// Takes the message out.
    #[inline]
    fn take(&self) -> Option<T> {
        ManuallyDrop::into_inner(self.0.swap(ManuallyDrop::new(None)))
    }
}

impl<T: Copy> Cell<T> {
    /// The message, which stays.
    #[inline]
    pub(super) fn copy(&self) -> Option<T> {
        *self.0.load()
    }
}

impl<T> Drop for Cell<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// The places of a link, shared by both ends.
pub(super) type Places<T> = Arc<[Place<T>]>;

/// Where the place stands that is for no message.
pub(super) const NOTE: usize = 0;

/// The first place of the ring.
pub(super) const FIRST: u32 = NOTE as u32 + 1;

/// A message is in the place.
pub(super) const TAKEN: u64 = 1 << 63;

/// The sender is to be woken when a place is free.
pub(super) const WAITED_FOR: u64 = 1 << 63;

/// The link's number in its receiver's inbox, counted from 1.
pub(super) const NUMBER: u64 = WAITED_FOR - 1;

/// Places for at most `depth` messages under way, all free.
pub(super) fn places<T>(depth: u32) -> Places<T> {
    let place = |_| Place {
        word: AtomicU64::new(0),
        message: Cell::new(),
    };
    (0..=depth).map(place).collect()
}

/// The place that follows in the ring.
#[inline]
pub(super) fn next<T>(place: u32, places: &[Place<T>]) -> u32 {
    let next = place + 1;
    if next as usize == places.len() { FIRST } else { next }
}

/// Most messages that pass the queue together: boxes fill a line of the processor's cache with the count of them.
const BATCH: usize = 7;

type Batch<T> = ArrayVec<T, BATCH>;

/// The sending side.
pub(super) enum Sender<T> {
    /// Into the places.
    Place,
    /// One by one.
    Each(Arc<ArrayQueue<T>>),
    /// Window by window.
    Window(Box<Stage<T>>),
}

/// The receiving side.
pub(super) enum Receiver<T> {
    /// Out of the places.
    Place,
    /// One by one.
    Each(Arc<ArrayQueue<T>>),
    /// Window by window.
    Window(Box<Unpack<T>>),
}

/// The sending side between tiles: messages sent in this window, as far as they are not on their way.
pub(super) struct Stage<T> {
    batch: Batch<T>,
    queue: Arc<ArrayQueue<Batch<T>>>,
}

/// The receiving side between tiles: messages of an earlier window.
pub(super) struct Unpack<T> {
    batch: IntoIter<T, BATCH>,
    queue: Arc<ArrayQueue<Batch<T>>>,
    /// Is shown each message as soon as it comes, to ask for what it points to.
    ahead: Option<fn(&T)>,
}

/// Both sides, for at most `depth` messages under way.
pub(super) fn carrier<T>(depth: u32, by_window: bool) -> (Sender<T>, Receiver<T>) {
    if by_window {
        let (stage, unpack) = between_tiles(depth);
        (Sender::Window(Box::new(stage)), Receiver::Window(Box::new(unpack)))
    } else if Cell::<T>::is_lock_free() {
        (Sender::Place, Receiver::Place)
    } else {
        let queue = Arc::new(ArrayQueue::new(depth as usize));
        (Sender::Each(queue.clone()), Receiver::Each(queue))
    }
}

impl<T> Sender<T> {
    /// Sends a message, for which this place is free. Whether there was room for it.
    #[inline]
    pub(super) fn push(&mut self, place: &Place<T>, message: T) -> bool {
        match self {
            Sender::Place => {
                place.message.put(message);
                true
            }
            Sender::Each(queue) => queue.push(message).is_ok(),
            Sender::Window(stage) => stage.push(message),
        }
    }
}

impl<T> Receiver<T> {
    /// The oldest message that has come, whose place this is.
    #[inline]
    pub(super) fn pop(&mut self, place: &Place<T>) -> Option<T> {
        match self {
            Receiver::Place => place.message.take(),
            Receiver::Each(queue) => queue.pop(),
            Receiver::Window(unpack) => unpack.pop(),
        }
    }
}

fn between_tiles<T>(depth: u32) -> (Stage<T>, Unpack<T>) {
    // A batch has a message or more, so there are never more batches than messages.
    let queue = Arc::new(ArrayQueue::new(depth as usize));
    let stage = Stage {
        batch: ArrayVec::new(),
        queue: queue.clone(),
    };
    let unpack = Unpack {
        batch: ArrayVec::new().into_iter(),
        queue,
        ahead: None,
    };
    (stage, unpack)
}

impl<T> Stage<T> {
    /// Sends a message. Whether the queue had room.
    #[inline]
    pub(super) fn push(&mut self, message: T) -> bool {
        self.batch.push(message);
        !self.batch.is_full() || self.send()
    }

    /// The window is over: its messages may be looked at. Whether the queue had room.
    #[inline]
    pub(super) fn flush(&mut self) -> bool {
        self.batch.is_empty() || self.send()
    }

    fn send(&mut self) -> bool {
        self.queue.push(std::mem::take(&mut self.batch)).is_ok()
    }
}

impl<T> Unpack<T> {
    /// The oldest message that has come.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.batch.next().or_else(|| self.next_batch())
    }

    /// The first message of the next batch.
    fn next_batch(&mut self) -> Option<T> {
        let batch = self.queue.pop()?;
        if let Some(ahead) = self.ahead {
            batch.iter().for_each(ahead);
        }
        self.batch = batch.into_iter();
        self.batch.next()
    }

    /// Has `ahead` ask for what messages point to, as soon as they come.
    pub(super) fn ask_ahead(&mut self, ahead: fn(&T)) {
        self.ahead = Some(ahead);
    }

    /// Reads what receiving needs.
    #[inline]
    pub(super) fn touch(&self) {
        black_box(self.queue.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_not_over_nothing_has_come_then_all_of_it_in_order() {
        let (mut stage, mut unpack) = between_tiles(4);
        assert!(stage.push(1) && stage.push(2));
        assert_eq!(unpack.pop(), None);
        assert!(stage.flush());
        assert!(stage.push(3) && stage.flush() && stage.flush());
        assert_eq!([(); 4].map(|()| unpack.pop()), [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn window_of_many_messages_all_come_in_order() {
        let (mut stage, mut unpack) = between_tiles(100);
        assert!((0..100).all(|n| stage.push(n)) && stage.flush());
        assert!((0..100).all(|n| unpack.pop() == Some(n)) && unpack.pop().is_none());
    }

    #[test]
    fn batch_that_comes_is_shown_whole_before_its_first_message_is_taken() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static SHOWN: AtomicU32 = AtomicU32::new(0);
        let (mut stage, mut unpack) = between_tiles(4);
        unpack.ask_ahead(|message: &u32| _ = SHOWN.fetch_add(*message, Ordering::Relaxed));
        assert!(stage.push(20) && stage.push(1));
        assert!(stage.flush());
        assert_eq!(unpack.pop(), Some(20));
        assert_eq!(SHOWN.load(Ordering::Relaxed), 21);
    }

    #[test]
    fn message_of_a_word_lies_in_its_place_and_a_larger_one_passes_a_queue() {
        fn way<T>() -> &'static str {
            match carrier::<T>(2, false) {
                (Sender::Place, Receiver::Place) => "place",
                (Sender::Each(_), Receiver::Each(_)) => "queue",
                _ => "window",
            }
        }
        assert_eq!([way::<Box<[u64; 9]>>(), way::<std::num::NonZeroU64>()], ["place"; 2]);
        assert_eq!([way::<[u64; 3]>(), way::<u64>()], ["queue"; 2]);
    }

    #[test]
    fn any_way_messages_sent_come_in_order() {
        fn pass<T: Copy + PartialEq + std::fmt::Debug>(messages: [T; 2], by_window: bool) {
            let places = places(2);
            let (mut sender, mut receiver) = carrier(2, by_window);
            for n in 0..2 {
                assert!(sender.push(&places[n + 1], messages[n]));
            }
            if let Sender::Window(stage) = &mut sender {
                assert!(stage.flush());
            }
            assert_eq!(
                [1, 2, 1].map(|n| receiver.pop(&places[n])),
                [Some(messages[0]), Some(messages[1]), None]
            );
        }
        pass([1, 2].map(|n| std::num::NonZeroU64::MIN.saturating_add(n)), false);
        pass([[1u64; 3], [2; 3]], false);
        pass([1u64, 2], true);
    }
}
