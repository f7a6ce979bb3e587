//! Passes of the lowering that can be left out. The values of a kernel do not depend on them, but its instructions and registers do.

/// Names of the passes that can be left out, in the order of their first run.
///
/// The other passes put the code into a form that the machine can run. `uniformity` finds the branches on which all lanes agree. Without
/// it, every branch reconverges at a barrier.
pub const OPTIONAL_PASSES: [&str; 9] = [
    "copy_prop",
    "addresses",
    "dce",
    "cse",
    "join",
    "if_convert",
    "uniformity",
    "narrow",
    "schedule",
];

/// A set of [`OPTIONAL_PASSES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassSet(u16);

impl PassSet {
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
