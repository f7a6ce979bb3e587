//! What carries a link's messages. Inside a tile each message lies in the cell of its place; between tiles all those of a window go
//! together through a bounded crossbeam queue.
//!
//! Who sends and who receives know from the stamps of the places whether there is room or a message, and count the places alike. So a
//! ring of crossbeam's [`AtomicCell`]s does for a bounded channel, without indices of its own: a box is handed over by one exchange
//! at either end.
//!
//! Nobody in another tile can look at a message before the window in which it was sent is over. So messages wait at the sending
//! end until then, and one passage through the queue, with the locked operations of the processor that it takes, does for a line
//! full of them. That queue is crossbeam's [`ArrayQueue`]: its bounded channel without the part that puts threads to sleep and wakes
//! them, since no end ever waits, and nobody hangs up.

use std::hint::black_box;
use std::sync::Arc;

use arrayvec::{ArrayVec, IntoIter};
use crossbeam::atomic::AtomicCell;
use crossbeam::queue::ArrayQueue;

use crate::prefetch::prefetch;

/// Most messages that pass the queue together: boxes fill a line of the processor's cache with the count of them.
const BATCH: usize = 7;

type Batch<T> = ArrayVec<T, BATCH>;

/// A cell for the message of each place.
type Cells<T> = Arc<[AtomicCell<Option<T>>]>;

/// The sending side.
pub(super) enum Sender<T> {
    /// Message by message.
    Each(Cells<T>),
    /// Window by window.
    Window(Box<Stage<T>>),
}

/// Messages sent in this window, as far as they are not on their way.
pub(super) struct Stage<T> {
    batch: Batch<T>,
    queue: Arc<ArrayQueue<Batch<T>>>,
}

/// The receiving side.
pub(super) enum Receiver<T> {
    /// Message by message.
    Each(Cells<T>),
    /// Window by window.
    Window(Box<Unpack<T>>),
}

/// Messages of an earlier window.
pub(super) struct Unpack<T> {
    batch: IntoIter<T, BATCH>,
    queue: Arc<ArrayQueue<Batch<T>>>,
    /// Is shown each message as soon as it comes, to ask for what it points to.
    ahead: Option<fn(&T)>,
}

/// Both sides, for at most `depth` messages under way.
pub(super) fn carrier<T>(depth: usize, by_window: bool) -> (Sender<T>, Receiver<T>) {
    if !by_window {
        let cells: Cells<T> = (0..depth).map(|_| AtomicCell::new(None)).collect();
        return (Sender::Each(cells.clone()), Receiver::Each(cells));
    }
    // A batch has a message or more, so there are never more batches than messages.
    let queue = Arc::new(ArrayQueue::new(depth));
    let stage = Stage {
        batch: ArrayVec::new(),
        queue: queue.clone(),
    };
    let unpack = Unpack {
        batch: ArrayVec::new().into_iter(),
        queue,
        ahead: None,
    };
    (Sender::Window(Box::new(stage)), Receiver::Window(Box::new(unpack)))
}

impl<T> Sender<T> {
    /// Sends a message whose place, counted from 0, is free. Whether the queue had room.
    #[inline]
    pub(super) fn push(&mut self, place: usize, message: T) -> bool {
        match self {
            Sender::Each(cells) => {
                cells[place].store(Some(message));
                true
            }
            Sender::Window(stage) => {
                stage.batch.push(message);
                !stage.batch.is_full() || stage.send()
            }
        }
    }

    /// The window is over: its messages may be looked at. Whether the queue had room.
    #[inline]
    pub(super) fn flush(&mut self) -> bool {
        match self {
            Sender::Window(stage) if !stage.batch.is_empty() => stage.send(),
            _ => true,
        }
    }

    /// Asks for what sending to a place needs.
    #[inline]
    pub(super) fn touch(&self, place: usize) {
        match self {
            Sender::Each(cells) => prefetch(&cells[place]),
            Sender::Window(stage) => prefetch(&**stage),
        }
    }
}

impl<T> Stage<T> {
    fn send(&mut self) -> bool {
        self.queue.push(std::mem::take(&mut self.batch)).is_ok()
    }
}

impl<T> Receiver<T> {
    /// The oldest message that has come, in its place.
    #[inline]
    pub(super) fn pop(&mut self, place: usize) -> Option<T> {
        match self {
            Receiver::Each(cells) => cells[place].take(),
            Receiver::Window(unpack) => unpack.batch.next().or_else(|| unpack.next_batch()),
        }
    }

    /// Has `ahead` ask for what messages point to, as soon as they come; nothing inside a tile, where they have just been written.
    pub(super) fn ask_ahead(&mut self, ahead: fn(&T)) {
        if let Receiver::Window(unpack) = self {
            unpack.ahead = Some(ahead);
        }
    }

    /// Asks for what receiving from a place needs.
    #[inline]
    pub(super) fn touch(&self, place: usize) {
        match self {
            Receiver::Each(cells) => prefetch(&cells[place]),
            Receiver::Window(unpack) => {
                prefetch(&**unpack);
                black_box(unpack.queue.len());
            }
        }
    }
}

impl<T> Unpack<T> {
    /// The first message of the next batch.
    fn next_batch(&mut self) -> Option<T> {
        let batch = self.queue.pop()?;
        if let Some(ahead) = self.ahead {
            batch.iter().for_each(ahead);
        }
        self.batch = batch.into_iter();
        self.batch.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many messages, or finds none.
    fn take<const N: usize>(receiver: &mut Receiver<u32>) -> [Option<u32>; N] {
        std::array::from_fn(|place| receiver.pop(place))
    }

    #[test]
    fn window_not_over_nothing_has_come_then_all_of_it_in_order() {
        let (mut sender, mut receiver) = carrier(4, true);
        assert!(sender.push(0, 1) && sender.push(1, 2));
        assert_eq!(receiver.pop(0), None);
        assert!(sender.flush());
        assert!(sender.push(2, 3) && sender.flush() && sender.flush());
        assert_eq!(take(&mut receiver), [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn window_of_many_messages_all_come_in_order() {
        let (mut sender, mut receiver) = carrier(100, true);
        assert!((0..100).all(|n| sender.push(n, n)) && sender.flush());
        assert!((0..100).all(|n| receiver.pop(n) == Some(n)) && receiver.pop(0).is_none());
    }

    #[test]
    fn inside_a_tile_each_message_comes_at_once_in_its_place() {
        let (mut sender, mut receiver) = carrier(2, false);
        assert!(sender.push(0, 1) && sender.push(1, 2));
        assert_eq!(take(&mut receiver), [Some(1), Some(2)]);
        assert_eq!(take(&mut receiver), [None; 2]);
    }

    #[test]
    fn batch_that_comes_is_shown_whole_before_its_first_message_is_taken() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static SHOWN: AtomicU32 = AtomicU32::new(0);
        let (mut sender, mut receiver) = carrier(4, true);
        receiver.ask_ahead(|message: &u32| _ = SHOWN.fetch_add(*message, Ordering::Relaxed));
        assert!(sender.push(0, 20) && sender.push(1, 1));
        assert!(sender.flush());
        assert_eq!(receiver.pop(0), Some(20));
        assert_eq!(SHOWN.load(Ordering::Relaxed), 21);
    }
}
