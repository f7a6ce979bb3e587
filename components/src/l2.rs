//! The second-level cache: slices, and which slice is home to a line.
