//! The families, from one instruction to whole kernels.

use super::{ErrorLimits, Family, cache, chains, clusters, copies, memory, scenarios, tensor};

macro_rules! silicon {
    ($name:literal) => {
        include_str!(concat!("../../validation/silicon/", $name, ".csv"))
    };
}

const fn limits(median: f64, p90: f64, row: f64) -> ErrorLimits {
    limits_with_plateaus(median, p90, row, row)
}

const fn limits_with_plateaus(median: f64, p90: f64, row: f64, plateau: f64) -> ErrorLimits {
    ErrorLimits {
        median,
        p90,
        row,
        plateau,
    }
}

/// All families.
pub static FAMILIES: [Family; 16] = [
    Family {
        name: "latency",
        title: "Latency of dependent instructions",
        x_label: "",
        y_label: "",
        limits: limits(0.0, 5.0, 5.0),
        is_quick: |_| true,
        silicon: silicon!("latency"),
        measure: chains::latency,
    },
    Family {
        name: "rate",
        title: "Results per cycle and SM with 32 warps",
        x_label: "",
        y_label: "",
        limits: limits(0.0, 5.0, 5.0),
        is_quick: |_| true,
        silicon: silicon!("rate"),
        measure: chains::rate,
    },
    Family {
        name: "tensor",
        title: "Latency and rate of matrix instructions",
        x_label: "",
        y_label: "",
        limits: limits(5.0, 5.0, 5.0),
        is_quick: |_| true,
        silicon: silicon!("tensor"),
        measure: tensor::measure,
    },
    Family {
        name: "chase",
        title: "Latency of dependent loads by footprint",
        x_label: "KB",
        y_label: "",
        limits: limits_with_plateaus(5.0, 10.0, 10.0, 5.0),
        is_quick: |point| point.x() <= 1024,
        silicon: silicon!("chase"),
        measure: memory::chase,
    },
    Family {
        name: "strides",
        title: "L1 loads by stride of the lanes or width of the block",
        x_label: "stride or width",
        y_label: "",
        limits: limits(5.0, 15.0, 15.0),
        is_quick: |point| point.x().is_multiple_of(8),
        silicon: silicon!("strides"),
        measure: memory::strides,
    },
    Family {
        name: "cache",
        title: "Load bandwidth of one SM by footprint",
        x_label: "KB",
        y_label: "",
        limits: limits(10.0, 15.0, 15.0),
        is_quick: |point| point.series.starts_with("L1"),
        silicon: silicon!("cache"),
        measure: cache::cache,
    },
    Family {
        name: "l2",
        title: "L2 read bandwidth by footprint",
        x_label: "KB",
        y_label: "",
        limits: limits(10.0, 10.0, 10.0),
        is_quick: |point| point.gpu.starts_with('v'),
        silicon: silicon!("l2"),
        measure: memory::l2,
    },
    Family {
        name: "streams",
        title: "Stream bandwidth with two blocks on each SM",
        x_label: "threads of a block",
        y_label: "",
        limits: limits_with_plateaus(5.0, 10.0, 10.0, 5.0),
        is_quick: |point| point.x() == 32 && point.gpu.starts_with('v'),
        silicon: silicon!("streams"),
        measure: memory::streams,
    },
    Family {
        name: "atomics",
        title: "Atomics and fences",
        x_label: "blocks",
        y_label: "threads",
        limits: limits(15.0, 30.0, 30.0),
        is_quick: |point| point.x() <= 2 && point.y() <= 64,
        silicon: silicon!("atomics"),
        measure: memory::atomics,
    },
    Family {
        name: "small-kernels",
        title: "Time of small kernels in a graph",
        x_label: "doubles",
        y_label: "threads of a block",
        limits: limits(10.0, 20.0, 20.0),
        is_quick: |point| point.x() < 10_000,
        silicon: silicon!("small-kernels"),
        measure: memory::small_kernels,
    },
    Family {
        name: "launches",
        title: "Cycles of a launch in a graph: empty, store, copy, two dependent loads",
        x_label: "blocks",
        y_label: "threads of a block",
        limits: limits(10.0, 30.0, 20.0),
        is_quick: |_| true,
        silicon: silicon!("launches"),
        measure: memory::launches,
    },
    Family {
        name: "kernels",
        title: "Cycles of the built-in scenarios with a warm L2",
        x_label: "launch",
        y_label: "",
        limits: limits(10.0, 20.0, 20.0),
        is_quick: |_| true,
        silicon: silicon!("kernels"),
        measure: scenarios::kernels,
    },
    Family {
        name: "matrix-add",
        title: "Matrix addition by block shape",
        x_label: "width of the block",
        y_label: "height of the block",
        limits: limits(10.0, 10.0, 10.0),
        is_quick: |point| point.y() == 32 && point.x() == 32,
        silicon: silicon!("matrix-add"),
        measure: memory::matrix_add,
    },
    Family {
        name: "cluster",
        title: "Distributed shared memory and cluster barriers",
        x_label: "blocks of the cluster",
        y_label: "",
        limits: limits(10.0, 10.0, 10.0),
        is_quick: |_| true,
        silicon: silicon!("cluster"),
        measure: clusters::cluster,
    },
    Family {
        name: "bulk",
        title: "Bulk copies from memory",
        x_label: "KB",
        y_label: "blocks",
        limits: limits(10.0, 10.0, 10.0),
        is_quick: |point| point.x() * point.y() <= 256,
        silicon: silicon!("bulk"),
        measure: copies::bulk,
    },
    Family {
        name: "async-copies",
        title: "Asynchronous copies from memory",
        x_label: "threads of a block",
        y_label: "blocks on each SM",
        limits: limits(10.0, 10.0, 10.0),
        is_quick: |point| point.x() * point.y() <= 64,
        silicon: silicon!("async-copies"),
        measure: copies::async_copies,
    },
];
