//! A bounded queue inside a component: a ring that takes its memory once and never grows.
//!
//! What is pushed can be popped in the same cycle: the queue knows no time. A component that steps its stages from the last to
//! the first gets a latch out of it, since the later stage has looked before the earlier one pushes.
//!
//! Ask for room, then push: pushing without room is a bug and panics.

use std::collections::VecDeque;

/// First in, first out, at most `depth` values.
///
/// ```
/// use warpwave_hw::queue::Queue;
/// let mut queue = Queue::new(2);
/// queue.push('a');
/// queue.push('b');
/// assert!(!queue.has_room());
/// assert_eq!((queue.pop(), queue.front()), (Some('a'), Some(&'b')));
/// ```
#[derive(Clone, Debug)]
pub struct Queue<T> {
    ring: VecDeque<T>,
    depth: usize,
}

impl<T> Queue<T> {
    /// An empty queue for `depth` values.
    ///
    /// # Panics
    /// If the depth is 0.
    pub fn new(depth: usize) -> Self {
        assert!(depth > 0, "a queue needs a depth of at least 1");
        Queue {
            ring: VecDeque::with_capacity(depth),
            depth,
        }
    }

    /// Whether a value may be pushed.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.ring.len() < self.depth
    }

    /// Values that may still be pushed.
    pub fn room(&self) -> usize {
        self.depth - self.ring.len()
    }

    /// Adds the youngest value.
    ///
    /// # Panics
    /// If there is no room: ask [`Queue::has_room`] first.
    #[inline]
    pub fn push(&mut self, value: T) {
        assert!(
            self.has_room(),
            "value pushed into a full queue of depth {}",
            self.depth
        );
        self.ring.push_back(value);
    }

    /// The oldest value, left where it is.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.ring.front()
    }

    /// The oldest value, to be changed where it is.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.ring.front_mut()
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.ring.pop_front()
    }

    /// Takes the oldest value if `ready` holds for it.
    #[inline]
    pub fn pop_if(&mut self, ready: impl FnOnce(&T) -> bool) -> Option<T> {
        if ready(self.front()?) { self.pop() } else { None }
    }

    /// Takes the value that is `place` behind the oldest; the order of the others stays.
    pub fn remove(&mut self, place: usize) -> Option<T> {
        self.ring.remove(place)
    }

    /// Values waiting.
    #[inline]
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Most values that can wait.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The values, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.ring.iter()
    }

    /// The values, oldest first, to be changed where they are.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.ring.iter_mut()
    }

    /// Drops everything, as a reset does.
    pub fn clear(&mut self) {
        self.ring.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rounds_keep_the_order_and_the_memory() {
        let mut queue = Queue::new(3);
        let memory = queue.ring.capacity();
        let mut popped = Vec::new();
        for n in 0..100 {
            if !queue.has_room() {
                popped.extend(queue.pop());
            }
            queue.push(n);
        }
        assert_eq!(popped, (0..97).collect::<Vec<_>>());
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [97, 98, 99]);
        assert_eq!(queue.ring.capacity(), memory);
    }

    #[test]
    fn value_in_the_middle_is_removed_the_others_close_up() {
        let mut queue = Queue::new(4);
        (0..4).for_each(|n| queue.push(n));
        assert_eq!(queue.remove(1), Some(1));
        assert_eq!(queue.remove(3), None);
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(queue.room(), 1);
    }

    #[test]
    fn oldest_not_ready_stays() {
        let mut queue = Queue::new(1);
        queue.push(8);
        assert_eq!(queue.pop_if(|&at| at <= 7), None);
        assert_eq!(queue.pop_if(|&at| at <= 8), Some(8));
        assert_eq!(queue.pop_if(|_| true), None);
    }

    #[test]
    #[should_panic(expected = "full queue of depth 1")]
    fn full_queue_push_panics() {
        let mut queue = Queue::new(1);
        queue.push(0);
        queue.push(1);
    }
}
