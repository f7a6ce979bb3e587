//! Instance names of components and links.

use std::fmt;
use std::sync::Arc;

/// A dotted instance name such as `gpu.gpc[2].sm[5].subcore[1].scheduler`. Cheap to clone.
///
/// ```
/// use warpwave_hw::path::Path;
/// let sm = Path::root("gpu").at("gpc", 2).at("sm", 5);
/// assert_eq!(sm.child("l1").to_string(), "gpu.gpc[2].sm[5].l1");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Arc<str>);

impl Path {
    /// The path of the outermost scope.
    pub fn root(name: &str) -> Self {
        Path(name.into())
    }

    /// The path of a part.
    pub fn child(&self, name: &str) -> Self {
        Path([self.as_str(), ".", name].concat().into())
    }

    /// The path of one of several equal parts, with its index.
    pub fn at(&self, name: &str, index: usize) -> Self {
        Path(format!("{self}.{name}[{index}]").into())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
