//! The lines of a cache, found by their numbers.
//!
//! What a machine does by comparing all tags of a set at once is done here by following a short chain of the places whose lines
//! hash alike. The cache keeps its places, each with a [`Tag`]; here is where the chains begin.
//!
//! Invariant: a place with a line is in one chain, once; a place without is in none.

use warpwave_hw::prefetch::prefetch;

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

/// A place for a line.
pub(crate) trait Tagged {
    /// Its tag.
    fn tag(&self) -> Tag;

    /// The same, to be changed.
    fn tag_mut(&mut self) -> &mut Tag;
}

/// Where the chains of a cache's places begin.
pub(crate) struct Chains(Box<[u32]>);

impl Chains {
    /// Empty chains for so many places.
    pub(crate) fn new(places: usize) -> Self {
        Chains(vec![END; places.next_power_of_two()].into())
    }

    /// Takes the lines out of all places.
    pub(crate) fn clear(&mut self, places: &mut [impl Tagged]) {
        places.iter_mut().for_each(|place| *place.tag_mut() = Tag::FREE);
        self.0.fill(END);
    }

    /// The place of a line, if it has one.
    #[inline]
    pub(crate) fn find(&self, places: &[impl Tagged], line: u32) -> Option<usize> {
        let mut at = self.0[self.chain(line)];
        while at != END {
            let tag = places[at as usize].tag();
            if tag.line == line {
                return Some(at as usize);
            }
            at = tag.next;
        }
        None
    }

    /// Asks for where the chain of a line begins ([`prefetch`]).
    #[inline]
    pub(crate) fn prefetch(&self, line: u32) {
        prefetch(&self.0[self.chain(line)]);
    }

    /// Asks for the first place of a line's chain, where that begins being here already.
    #[inline]
    pub(crate) fn prefetch_place(&self, places: &[impl Tagged], line: u32) {
        if let Some(place) = places.get(self.0[self.chain(line)] as usize) {
            prefetch(place);
        }
    }

    /// Puts a line in a place that has none.
    #[inline]
    pub(crate) fn put(&mut self, places: &mut [impl Tagged], at: usize, line: u32) {
        let chain = self.chain(line);
        let next = std::mem::replace(&mut self.0[chain], at as u32);
        *places[at].tag_mut() = Tag { line, next };
    }

    /// Takes the line out of a place that has one.
    pub(crate) fn take(&mut self, places: &mut [impl Tagged], at: usize) {
        let Tag { line, next } = std::mem::replace(places[at].tag_mut(), Tag::FREE);
        let chain = self.chain(line);
        if self.0[chain] == at as u32 {
            self.0[chain] = next;
            return;
        }
        let mut before = self.0[chain] as usize;
        while places[before].tag().next != at as u32 {
            before = places[before].tag().next as usize;
        }
        places[before].tag_mut().next = next;
    }

    #[inline]
    fn chain(&self, line: u32) -> usize {
        let hash = u64::from(line).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize & (self.0.len() - 1)
    }
}
