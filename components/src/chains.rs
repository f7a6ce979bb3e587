//! The lines of a cache, found by their numbers.
//!
//! What a machine does by comparing all tags of a set at once is done here by following a short chain of the places whose lines
//! hash alike. The cache keeps its places, each with a [`Tag`]; here is where the chains begin.
//!
//! Invariant: a place with a line is in one chain, once; a place without is in none.

/// No line: device memory begins far above line 0.
const NONE: u32 = 0;

/// The end of a chain.
const END: u32 = u32::MAX;

/// Which line a place has, and the next place of its chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    line: u32,
    next: u32,
}

impl Tag {
    /// No line.
    pub(crate) const FREE: Tag = Tag { line: NONE, next: END };

    /// The line, if there is one.
    #[inline]
    pub(crate) fn line(self) -> Option<u32> {
        (self.line != NONE).then_some(self.line)
    }
}

/// The first place of a chain, and its line: most lines that are here are found without a look at their place's tag.
#[derive(Clone, Copy)]
struct First {
    line: u32,
    at: u32,
}

impl First {
    /// Of an empty chain.
    const NONE: First = First { line: NONE, at: END };
}

/// A place for a line.
pub(crate) trait Tagged {
    /// Its tag.
    fn tag(&self) -> Tag;

    /// The same, to be changed.
    fn tag_mut(&mut self) -> &mut Tag;
}

/// Where the chains of a cache's places begin.
///
/// Most lines that are looked for in vain are known not to be here by a filter, which is small enough to be asked for as a whole, and
/// no chain is asked.
///
/// The chains of lines whose numbers differ in the lowest `NEAR` bits alone stand side by side, for a cache that has all of them: what
/// is used together then lies together.
pub(crate) struct Chains<const NEAR: u32> {
    /// Where each chain begins.
    first: Box<[First]>,
    /// Which lines each chain may have, one bit of 8 for those that hash alike.
    filter: Box<[u8]>,
}

impl<const NEAR: u32> Chains<NEAR> {
    /// Empty chains for so many places.
    pub(crate) fn new(places: usize) -> Self {
        let n = places.next_power_of_two();
        Chains {
            first: vec![First::NONE; n].into(),
            filter: vec![0; n].into(),
        }
    }

    /// Takes the lines out of all places.
    pub(crate) fn clear(&mut self, places: &mut [impl Tagged]) {
        places.iter_mut().for_each(|place| *place.tag_mut() = Tag::FREE);
        self.first.fill(First::NONE);
        self.filter.fill(0);
    }

    /// The place of a line, if it has one.
    #[inline]
    pub(crate) fn find(&self, places: &[impl Tagged], line: u32) -> Option<usize> {
        let hash = Self::hash(line);
        let place = self.place(line, hash);
        if self.filter[place] & bit(hash) == 0 {
            return None;
        }
        let First {
            line: mut found,
            mut at,
        } = self.first[place];
        while found != line {
            at = places[at as usize].tag().next;
            found = places.get(at as usize)?.tag().line;
        }
        Some(at as usize)
    }

    /// Puts a line in a place that has none.
    #[inline]
    pub(crate) fn put(&mut self, places: &mut [impl Tagged], at: usize, line: u32) {
        let hash = Self::hash(line);
        let place = self.place(line, hash);
        let first = First { line, at: at as u32 };
        let next = std::mem::replace(&mut self.first[place], first).at;
        self.filter[place] |= bit(hash);
        *places[at].tag_mut() = Tag { line, next };
    }

    /// Takes the line out of a place that has one. Its bit stays until its chain is empty, as others may have the same.
    pub(crate) fn take(&mut self, places: &mut [impl Tagged], at: usize) {
        let Tag { line, next } = std::mem::replace(places[at].tag_mut(), Tag::FREE);
        let place = self.place(line, Self::hash(line));
        let first = &mut self.first[place];
        if first.at == at as u32 {
            *first = First::NONE;
            match places.get(next as usize) {
                Some(second) => (first.line, first.at) = (second.tag().line, next),
                None => self.filter[place] = 0,
            }
            return;
        }
        let mut before = first.at as usize;
        while places[before].tag().next != at as u32 {
            before = places[before].tag().next as usize;
        }
        places[before].tag_mut().next = next;
    }

    #[inline]
    fn hash(line: u32) -> u64 {
        u64::from(line >> NEAR).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Where the chain of a line with this hash stands.
    #[inline]
    fn place(&self, line: u32, hash: u64) -> usize {
        let near = line & ((1 << NEAR) - 1);
        ((hash >> 32 << NEAR) as usize + near as usize) & (self.first.len() - 1)
    }
}

/// The bit of the lines with this hash.
#[inline]
fn bit(hash: u64) -> u8 {
    1 << (hash >> 29 & 7)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::collections::hash_map::Entry;

    use proptest::prelude::*;

    use super::*;

    const PLACES: usize = 16;

    #[derive(Clone)]
    struct Place(Tag);

    impl Tagged for Place {
        fn tag(&self) -> Tag {
            self.0
        }

        fn tag_mut(&mut self) -> &mut Tag {
            &mut self.0
        }
    }

    /// Lines come to free places and go from taken ones.
    fn check<const NEAR: u32>(uses: Vec<(usize, u32)>) -> Result<(), TestCaseError> {
        let mut chains = Chains::<NEAR>::new(PLACES);
        let mut places = vec![Place(Tag::FREE); PLACES];
        let mut expected = HashMap::new();
        for (at, line) in uses {
            if let Some(line) = places[at].tag().line() {
                chains.take(&mut places, at);
                expected.remove(&line);
            } else if let Entry::Vacant(entry) = expected.entry(line) {
                chains.put(&mut places, at, line);
                entry.insert(at);
            }
            for line in 1..60 {
                prop_assert_eq!(chains.find(&places, line), expected.get(&line).copied());
            }
        }
        chains.clear(&mut places);
        prop_assert!((1..60).all(|line| chains.find(&places, line).is_none()));
        Ok(())
    }

    proptest! {
        #[test]
        fn lines_are_found_where_they_were_put_until_they_are_taken_out_neighbours_side_by_side_or_not(
            uses in prop::collection::vec((0..PLACES, 1..60u32), 1..200),
        ) {
            check::<0>(uses.clone())?;
            check::<3>(uses)?;
        }
    }
}
