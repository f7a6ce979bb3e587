//! Passes of the lowering that can be left out. The instructions and registers of a kernel depend on them.
//!
//! Its values do not, with one exception: [`VALUE_PASS`].

/// Names of the passes that can be left out. All but the last are in the order of their first run.
///
/// `unroll` writes the iterations of a loop one after the other.
///
/// The other passes put the code into a form that the machine can run. `uniformity` finds the branches on which all lanes agree. Without
/// it, every branch reconverges at a barrier. `remat` computes a cheap value before each use where registers run out. Without it, such a
/// value is kept in local memory, as other values are.
pub const OPTIONAL_PASSES: [&str; 13] = [
    "copy_prop",
    "addresses",
    "dce",
    "unroll",
    "cse",
    "join",
    "if_convert",
    "uniformity",
    "narrow",
    "guards",
    "schedule",
    "remat",
    VALUE_PASS,
];

/// The optional pass that changes values: it makes one multiply-add of a product and a sum, which then round once instead of twice.
pub const VALUE_PASS: &str = "contract";

/// A set of [`OPTIONAL_PASSES`] to leave out. The default set is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassSet(u16);

impl PassSet {
    /// No pass: all of them run.
    pub const EMPTY: PassSet = PassSet(0);

    /// Returns the set with the pass `name` added; `None` if no optional pass has the name.
    ///
    /// ```
    /// use warpwave_ptx::PassSet;
    /// let set = PassSet::default().with("schedule").unwrap();
    /// assert!(set.contains("schedule") && !set.contains("cse"));
    /// assert!(set.with("legalize").is_none());
    /// ```
    #[must_use]
    pub fn with(self, name: &str) -> Option<PassSet> {
        Some(PassSet(self.0 | bit(name)?))
    }

    /// True if the pass `name` is in the set.
    pub fn contains(self, name: &str) -> bool {
        bit(name).is_some_and(|bit| self.0 & bit != 0)
    }
}

fn bit(name: &str) -> Option<u16> {
    // The number of a pass is its bit. All of them fit in 16.
    OPTIONAL_PASSES.iter().position(|pass| *pass == name).map(|at| 1 << at)
}
