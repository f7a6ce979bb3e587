//! The ground of the GPU model: time, links, components, statistics.
