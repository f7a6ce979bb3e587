//! What carries a link's messages. A message of a word lies in its place, a larger one passes a bounded crossbeam queue.
//!
//! Who sends and who receives know from the words of the places whether there is room or a message, and count the places alike. So a
//! ring of crossbeam's [`AtomicCell`]s does for a bounded channel, without indices of its own: a box goes in by a plain store, and
//! out by one exchange. Of messages that no word holds a cell would need a lock, and those pass crossbeam's [`ArrayQueue`]: its
//! bounded channel without the part that puts threads to sleep and wakes them, since no end ever waits, and nobody hangs up.
//!
//! The boxes that come from another tile were filled a window ago, and what they hold is far from the processor by now. Who
//! receives them may have several taken out at once and look at them ahead ([`crate::prefetch`]).

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::atomic::AtomicCell;
use crossbeam::queue::ArrayQueue;

use crate::tile::HORIZON;
use crate::time::Cycle;

/// A place of a link, for one message.
pub(super) struct Place<T> {
    /// While a message is in it, [`TAKEN`], the cycle from which the message is visible, and its label; else the cycle from which the
    /// place is free. One word answers both sides' questions.
    ///
    /// Inside a tile, that of the place before the first says whether the sender waits for room ([`WAITED_FOR`]), and by which number
    /// the receiver's [`inbox`](super::inbox) knows the link ([`NUMBER`], 0 where it does not).
    pub(super) word: AtomicU64,
    /// The message, where a word holds it.
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
const TAKEN: u64 = 1 << 63;

/// Bits of a label, below those of the cycle.
const LABEL_BITS: u32 = u16::BITS - 1;

/// The largest label of a message.
pub const LARGEST_LABEL: u16 = (1 << LABEL_BITS) - 1;

/// What is sent in the last cycle is visible before the cycles' bits end.
const _: () = assert!(Cycle::LAST.0 + HORIZON < TAKEN >> LABEL_BITS);

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

/// The sending side.
pub(super) enum Sender<T> {
    /// Into the places.
    Place,
    /// Through a queue.
    Queue(Arc<ArrayQueue<T>>),
}

/// The receiving side.
pub(super) enum Receiver<T> {
    /// Out of the places.
    Place,
    /// Out of the places, some before their turn.
    Ahead(Box<Ahead<T>>),
    /// Through a queue.
    Queue(Arc<ArrayQueue<T>>),
}

/// Most messages that are taken out before their turn.
const AHEAD: usize = 8;

/// Fewer than these are filled up.
const ENOUGH: u32 = 4;

/// The oldest messages, taken out of their places before their turn, and shown to whoever asks for what they point to.
pub(super) struct Ahead<T> {
    /// A ring.
    messages: [Option<T>; AHEAD],
    first: u32,
    n: u32,
    show: fn(&T),
}

const WRONG_WAY: &str = "a message of a word lies in its place, any other passes a queue";

/// Both sides, for at most `depth` messages under way.
pub(super) fn carrier<T>(depth: u32) -> (Sender<T>, Receiver<T>) {
    if Cell::<T>::is_lock_free() {
        (Sender::Place, Receiver::Place)
    } else {
        let queue = Arc::new(ArrayQueue::new(depth as usize));
        (Sender::Queue(queue.clone()), Receiver::Queue(queue))
    }
}

impl<T> Sender<T> {
    /// Sends a message, for which this place is free.
    ///
    /// # Panics
    /// If a queue is full all the same.
    #[inline]
    pub(super) fn push(&mut self, place: &Place<T>, message: T) {
        match self {
            // The compiler knows which of the two it is, and leaves out what would take a lock.
            Sender::Place if Cell::<T>::is_lock_free() => place.message.put(message),
            Sender::Queue(queue) if !Cell::<T>::is_lock_free() => {
                assert!(queue.push(message).is_ok(), "a free place, but a full queue");
            }
            Sender::Place | Sender::Queue(_) => unreachable!("{WRONG_WAY}"),
        }
    }
}

impl<T> Receiver<T> {
    /// The oldest message that has come: it was sent into the place `at`.
    #[inline(always)]
    pub(super) fn pop(&mut self, places: &[Place<T>], at: u32) -> Option<T> {
        match self {
            // As in `push`.
            Receiver::Place if Cell::<T>::is_lock_free() => places[at as usize].message.take(),
            Receiver::Ahead(ahead) if Cell::<T>::is_lock_free() => ahead.pop(places, at),
            Receiver::Queue(queue) if !Cell::<T>::is_lock_free() => queue.pop(),
            Receiver::Place | Receiver::Ahead(_) | Receiver::Queue(_) => unreachable!("{WRONG_WAY}"),
        }
    }

    /// Takes messages out of their places before their turn from now on, and shows them.
    pub(super) fn show_ahead(&mut self, show: fn(&T)) {
        if let Receiver::Place = self {
            let messages = [const { None }; AHEAD];
            let (first, n) = (0, 0);
            *self = Receiver::Ahead(Box::new(Ahead {
                messages,
                first,
                n,
                show,
            }));
        }
    }
}

impl<T> Ahead<T> {
    /// The oldest message, which was sent into the place `at`.
    #[inline(always)]
    fn pop(&mut self, places: &[Place<T>], at: u32) -> Option<T> {
        if self.n < ENOUGH {
            self.fill(places, at);
        }
        let message = self.messages[self.first as usize % AHEAD].take()?;
        self.first = (self.first + 1) % AHEAD as u32;
        self.n -= 1;
        Some(message)
    }

    /// Takes out as many messages as have come and are not too many.
    #[inline(never)]
    fn fill(&mut self, places: &[Place<T>], at: u32) {
        let depth = places.len() as u32 - FIRST;
        let most = depth.min(AHEAD as u32);
        while self.n < most {
            let next = at + self.n;
            let place = &places[if next > depth { next - depth } else { next } as usize];
            if !place.is_taken() {
                break;
            }
            let message = place.message.take();
            message.iter().for_each(self.show);
            self.messages[(self.first + self.n) as usize % AHEAD] = message;
            self.n += 1;
        }
    }

    /// The message `n` behind the oldest, if it was taken out.
    #[inline]
    pub(super) fn message(&self, n: u32) -> Option<&T> {
        self.messages[(self.first + n) as usize % AHEAD].as_ref()
    }
}

impl<T> Place<T> {
    /// Whether a message is in the place, or was taken out before its turn.
    #[inline]
    pub(super) fn is_taken(&self) -> bool {
        self.word.load(Ordering::Acquire) & TAKEN != 0
    }

    /// Whether a message may be put in.
    #[inline]
    pub(super) fn is_free(&self, now: Cycle) -> bool {
        // With TAKEN it is beyond any cycle.
        self.word.load(Ordering::Acquire) >> LABEL_BITS <= now.0
    }

    /// From when the place is free, unless a message is in it.
    #[inline]
    pub(super) fn free_from(&self) -> Option<Cycle> {
        let word = self.word.load(Ordering::Acquire);
        (word & TAKEN == 0).then_some(Cycle(word >> LABEL_BITS))
    }

    /// Whether a message is visible.
    #[inline]
    pub(super) fn is_ready(&self, now: Cycle) -> bool {
        is_ready(self.word.load(Ordering::Acquire), now)
    }

    /// The label of the message, if it is visible.
    #[inline]
    pub(super) fn label(&self, now: Cycle) -> Option<u16> {
        let word = self.word.load(Ordering::Acquire);
        is_ready(word, now).then_some(word as u16 & LARGEST_LABEL)
    }

    /// The cycle in which the message is or becomes visible, and its label, if there is one.
    #[inline]
    pub(super) fn coming(&self) -> Option<(Cycle, u16)> {
        let word = self.word.load(Ordering::Acquire);
        let visible = Cycle((word & !TAKEN) >> LABEL_BITS);
        (word & TAKEN != 0).then_some((visible, word as u16 & LARGEST_LABEL))
    }

    /// Lets the receiver know of the message that was put in.
    #[inline]
    pub(super) fn fill(&self, visible: Cycle, label: u16) {
        let word = TAKEN | visible.0 << LABEL_BITS | u64::from(label);
        self.word.store(word, Ordering::Release);
    }

    /// Lets the sender know that the message was taken.
    #[inline]
    pub(super) fn free(&self, from: Cycle) {
        self.word.store(from.0 << LABEL_BITS, Ordering::Release);
    }
}

#[inline]
fn is_ready(word: u64, now: Cycle) -> bool {
    // A free place's word is below TAKEN, so it wraps to something far beyond any cycle.
    word.wrapping_sub(TAKEN) >> LABEL_BITS <= now.0
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    /// Sends messages into the places that follow one another from the first on.
    fn send<T: Clone>(sender: &mut Sender<T>, places: &[Place<T>], messages: &[T]) {
        for (place, message) in places[1..].iter().zip(messages) {
            sender.push(place, message.clone());
            place.fill(Cycle::ZERO, 0);
        }
    }

    #[test]
    fn messages_to_be_shown_are_shown_as_far_as_sent_before_the_first_is_taken() {
        static SHOWN: AtomicU64 = AtomicU64::new(0);
        let places = places::<NonZeroU64>(20);
        let (mut sender, mut receiver) = carrier(20);
        receiver.show_ahead(|message: &NonZeroU64| _ = SHOWN.fetch_add(message.get(), Ordering::Relaxed));
        assert_eq!(receiver.pop(&places, 1), None);
        let messages = [1, 20, 300].map(|n| NonZeroU64::new(n).expect("not zero"));
        send(&mut sender, &places, &messages);
        assert_eq!(receiver.pop(&places, 1), Some(messages[0]));
        assert_eq!(SHOWN.load(Ordering::Relaxed), 321);
        let rest = [2, 3, 4].map(|at| receiver.pop(&places, at));
        assert_eq!(rest, [Some(messages[1]), Some(messages[2]), None]);
    }

    #[test]
    fn messages_to_be_shown_come_in_order_however_many_and_from_a_ring_that_is_full() {
        for depth in [1, 6, 7, 8, 50] {
            let places = places::<Box<u32>>(depth);
            let (mut sender, mut receiver) = carrier(depth);
            receiver.show_ahead(|_| ());
            send(&mut sender, &places, &(1..=depth).map(Box::new).collect::<Vec<_>>());
            assert!((1..=depth).all(|at| receiver.pop(&places, at) == Some(Box::new(at))));
            assert_eq!(receiver.pop(&places, FIRST), None);
        }
    }

    #[test]
    fn messages_left_in_their_places_are_dropped_with_them() {
        let message = Arc::new(7);
        let places = places(2);
        let (mut sender, _) = carrier(2);
        send(&mut sender, &places, &[message.clone(), message.clone()]);
        assert_eq!(Arc::strong_count(&message), 3);
        drop(places);
        assert_eq!(Arc::strong_count(&message), 1);
    }

    #[test]
    fn message_of_a_word_lies_in_its_place_and_a_larger_one_passes_a_queue() {
        fn lies_in_place<T>() -> bool {
            matches!(carrier::<T>(2), (Sender::Place, Receiver::Place))
        }
        assert!(lies_in_place::<Box<[u64; 9]>>() && lies_in_place::<NonZeroU64>());
        assert!(!lies_in_place::<[u64; 3]>() && !lies_in_place::<u64>());
    }

    #[test]
    fn any_way_messages_sent_come_in_order() {
        fn pass<T: Copy + PartialEq + std::fmt::Debug>(messages: [T; 2]) {
            for is_ahead in [false, true] {
                let places = places(2);
                let (mut sender, mut receiver) = carrier(2);
                if is_ahead {
                    receiver.show_ahead(|_| ());
                }
                send(&mut sender, &places, &messages);
                let came = [1, 2, 1].map(|at| receiver.pop(&places, at));
                assert_eq!(came, [Some(messages[0]), Some(messages[1]), None]);
            }
        }
        pass([1, 2].map(|n| NonZeroU64::MIN.saturating_add(n)));
        pass([[1u64; 3], [2; 3]]);
    }
}
