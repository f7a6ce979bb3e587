//! Lists that grow with use, into a new place.
//!
//! A list that the allocator enlarges stays in the heap of the host thread that made it, behind that heap's lock. Other threads
//! would wait there while the system clears fresh memory.

/// The least capacity of a list that has grown.
const LEAST: usize = 32;

/// Resizes a list to `len` items; new items are `item`.
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
        let mut longer = Vec::with_capacity(len.max(2 * list.capacity()).max(LEAST));
        longer.append(list);
        *list = longer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_that_grows_keeps_its_items_and_has_room_for_twice_as_many() {
        let mut list = Vec::new();
        grow(&mut list, 40, 7);
        assert_eq!((&list[..], list.capacity()), (&[7; 40][..], 40));
        push(&mut list, 8);
        assert_eq!((list[39], list[40], list.len(), list.capacity()), (7, 8, 41, 80));
        grow(&mut list, 200, 9);
        assert_eq!((list[40], list[41], list.len(), list.capacity()), (8, 9, 200, 200));
    }
}
