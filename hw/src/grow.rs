//! Grows a list by moving it to a new allocation.
//!
//! `Vec` would enlarge the old allocation in place. It then stays in the heap of the host thread that made it, behind that heap's lock.
//! Other threads would wait for the lock while the system clears fresh memory.

/// The smallest capacity after growth, in items.
const MIN_CAPACITY: usize = 32;

/// Resizes a list to `len` items. New items are copies of `item`.
pub fn grow<T: Copy>(list: &mut Vec<T>, len: usize, item: T) {
    make_room(list, len);
    list.resize(len, item);
}

/// Appends an item.
pub fn push<T>(list: &mut Vec<T>, item: T) {
    make_room(list, list.len() + 1);
    list.push(item);
}

fn make_room<T>(list: &mut Vec<T>, len: usize) {
    if len > list.capacity() {
        // Memory comes from the heap of the calling thread. Doubled, so n pushes move at most 2 n items.
        let mut longer = Vec::with_capacity(len.max(2 * list.capacity()).max(MIN_CAPACITY));
        longer.append(list);
        *list = longer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_keeps_the_items_and_doubles_the_capacity() {
        let mut list = Vec::new();
        grow(&mut list, 40, 7);
        assert_eq!((&list[..], list.capacity()), (&[7; 40][..], 40));
        push(&mut list, 8);
        assert_eq!((list[39], list[40], list.len(), list.capacity()), (7, 8, 41, 80));
        grow(&mut list, 200, 9);
        assert_eq!((list[40], list[41], list.len(), list.capacity()), (8, 9, 200, 200));
    }
}
