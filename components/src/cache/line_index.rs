//! Finds the slot of a line: a hash index over the tags of a cache or the entries of an MSHR table.
//!
//! Hardware compares all tags of a set at once. The host follows a short list of the slots whose lines have one hash.
//!
//! Invariant: a slot with a line is in exactly one bucket's list. A slot without a line is in none.

/// No line: device memory begins far above line 0.
const NO_LINE: u32 = 0;

/// The end of a bucket's list.
const END: u32 = u32::MAX;

// Warps access neighbouring lines one after the other. Their buckets share a host cache line.
/// Lowest bits of a line number that the hash keeps: such lines have neighbouring buckets.
const NEIGHBOUR_BITS: u32 = 3;

/// The line of a slot, and the next slot of its bucket.
#[derive(Clone, Copy)]
struct Tag {
    line: u32,
    next: u32,
}

const FREE: Tag = Tag {
    line: NO_LINE,
    next: END,
};

/// The first slot of a bucket, with a copy of its line: most lookups need no slot's tag.
#[derive(Clone, Copy)]
struct Bucket {
    line: u32,
    slot: u32,
}

const EMPTY: Bucket = Bucket {
    line: NO_LINE,
    slot: END,
};

/// An index from lines to slots. Several slots may hold the same line.
pub(crate) struct LineIndex {
    tags: Box<[Tag]>,
    buckets: Box<[Bucket]>,
    /// A Bloom filter of 8 bits per bucket. It refuses most absent lines and is small in host memory.
    filter: Box<[u8]>,
}

impl LineIndex {
    /// An index of `slots` slots without lines.
    pub(crate) fn new(slots: usize) -> Self {
        // A power of two makes the modulo a mask.
        let buckets = slots.next_power_of_two();
        LineIndex {
            tags: vec![FREE; slots].into(),
            buckets: vec![EMPTY; buckets].into(),
            filter: vec![0; buckets].into(),
        }
    }

    /// Number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.tags.len()
    }

    /// Number of slots with a line, for a check.
    pub(crate) fn n_lines(&self) -> usize {
        self.tags.iter().filter(|tag| tag.line != NO_LINE).count()
    }

    /// Removes all lines.
    pub(crate) fn clear(&mut self) {
        self.tags.fill(FREE);
        self.buckets.fill(EMPTY);
        self.filter.fill(0);
    }

    /// The line in `slot`.
    #[inline]
    pub(crate) fn line(&self, slot: usize) -> Option<u32> {
        let line = self.tags[slot].line;
        (line != NO_LINE).then_some(line)
    }

    /// The slot of `line`. If several slots have it, the slot of the last insert.
    #[inline]
    pub(crate) fn find(&self, line: u32) -> Option<usize> {
        let hash = hash(line);
        let bucket = self.bucket(line, hash);
        if self.filter[bucket] & filter_bit(hash) == 0 {
            return None;
        }
        let first = self.buckets[bucket];
        if first.line == line {
            return Some(first.slot as usize);
        }
        self.next(first.slot as usize, line)
    }

    /// The next slot of `line` after `slot` in its bucket.
    #[inline]
    pub(crate) fn next(&self, slot: usize, line: u32) -> Option<usize> {
        // `END` is no slot, so the list ends here.
        let mut tag = self.tags.get(slot)?;
        loop {
            let slot = tag.next as usize;
            tag = self.tags.get(slot)?;
            if tag.line == line {
                return Some(slot);
            }
        }
    }

    /// Puts `line` in `slot`, which has none.
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize, line: u32) {
        let hash = hash(line);
        let bucket = self.bucket(line, hash);
        let first = Bucket {
            line,
            slot: slot as u32,
        };
        // In front: the line inserted last is the likeliest to be looked up next.
        let next = std::mem::replace(&mut self.buckets[bucket], first).slot;
        self.filter[bucket] |= filter_bit(hash);
        self.tags[slot] = Tag { line, next };
    }

    /// Removes the line of `slot`, which has one.
    pub(crate) fn remove(&mut self, slot: usize) {
        // The filter bit stays until the bucket is empty: other lines may share it.
        let Tag { line, next } = std::mem::replace(&mut self.tags[slot], FREE);
        let bucket = self.bucket(line, hash(line));
        let first = self.buckets[bucket].slot;
        if first == slot as u32 {
            match self.tags.get(next as usize) {
                Some(second) => {
                    self.buckets[bucket] = Bucket {
                        line: second.line,
                        slot: next,
                    }
                }
                None => (self.buckets[bucket], self.filter[bucket]) = (EMPTY, 0),
            }
            return;
        }
        // The list has no backward links: walk to the slot before this one.
        let mut before = first as usize;
        while self.tags[before].next != slot as u32 {
            before = self.tags[before].next as usize;
        }
        self.tags[before].next = next;
    }

    /// The bucket of a line: the upper bits of its hash, then its neighbour bits.
    #[inline]
    fn bucket(&self, line: u32, hash: u64) -> usize {
        let neighbour = line & ((1 << NEIGHBOUR_BITS) - 1);
        ((hash >> 32 << NEIGHBOUR_BITS) as usize + neighbour as usize) & (self.buckets.len() - 1)
    }
}

#[inline]
fn hash(line: u32) -> u64 {
    // Fibonacci hashing: 2^64 divided by the golden ratio.
    u64::from(line >> NEIGHBOUR_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The filter bit of lines with this hash.
#[inline]
fn filter_bit(hash: u64) -> u8 {
    // Not the bits of the bucket, which begin at bit 32.
    1 << (hash >> 29 & 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SLOTS: usize = 16;

    proptest! {
        #[test]
        fn line_is_found_in_every_slot_that_holds_it_after_any_inserts_and_removes(
            uses in prop::collection::vec((0..SLOTS, 1..60u32), 1..200),
        ) {
            let mut index = LineIndex::new(SLOTS);
            let mut held = [None; SLOTS];
            for (slot, line) in uses {
                if index.line(slot).is_some() {
                    index.remove(slot);
                    held[slot] = None;
                } else {
                    index.insert(slot, line);
                    held[slot] = Some(line);
                }
                for line in 1..60 {
                    let first = index.find(line);
                    let mut found: Vec<_> = std::iter::successors(first, |&slot| index.next(slot, line)).collect();
                    found.sort();
                    let expected: Vec<_> = (0..SLOTS).filter(|&slot| held[slot] == Some(line)).collect();
                    prop_assert_eq!(found, expected);
                }
            }
            index.clear();
            prop_assert!((1..60).all(|line| index.find(line).is_none()));
        }
    }
}
