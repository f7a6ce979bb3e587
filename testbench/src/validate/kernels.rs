//! PTX texts of the microbenchmarks.

/// Kernels of memory microbenchmarks, compiled from `memory.cu`.
const MEMORY: &str = include_str!("../../validation/kernels/memory.ptx");

/// The PTX version and the target of a preset, by the first letter of its name.
pub(super) fn target(gpu: &str) -> (&'static str, &'static str) {
    match gpu.as_bytes()[0] {
        // M2070, V100 and A100. All others are taken for an H100.
        b'm' => ("7.8", "sm_20"),
        b'v' => ("7.8", "sm_70"),
        b'a' => ("7.8", "sm_80"),
        _ => ("8.0", "sm_90a"),
    }
}

/// The memory kernels for a preset.
pub(super) fn memory(gpu: &str) -> String {
    for_target(MEMORY, gpu)
}

/// Kernels with the version and the target of a preset before them.
pub(super) fn with_header(kernels: &str, gpu: &str) -> String {
    let (version, target) = target(gpu);
    format!(".version {version}\n.target {target}\n.address_size 64\n{kernels}")
}

/// A text for `sm_80` as a text for a preset.
pub(super) fn for_target(text: &str, gpu: &str) -> String {
    let (version, target) = target(gpu);
    // The kernels use nothing newer, and a driver refuses versions newer than its own.
    let version = format!(".version {version}");
    text.replace(".version 9.5", &version)
        .replace(".version 7.8", &version)
        .replace(".target sm_80", &format!(".target {target}"))
}

/// A kernel that times a sequence of instructions.
///
/// Registers: `%r70` holds the argument 1, `%f70` and `%d30` the same as floats, `%r71` the thread index. `%rd31` holds the address
/// of the sink. `sm` is an array in shared memory.
#[derive(Clone, Default)]
pub(super) struct Timed {
    /// Runs before the clock starts.
    pub init: String,
    /// Is timed.
    pub body: String,
    /// Runs after the clock: stores results, so that no instruction is dead.
    pub end: String,
    /// Size of `sm` in bytes.
    pub shared: u32,
}

impl Timed {
    /// The text for a preset. The kernel is `k(out, sink, one)`. Thread t stores its clock values to `out[2 * t]`.
    pub fn text(&self, gpu: &str) -> String {
        let (version, target) = target(gpu);
        let Timed {
            init,
            body,
            end,
            shared,
        } = self;
        let shared = shared.max(&16);
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n\
             .visible .entry k(.param .u64 out, .param .u64 sink, .param .u32 one)\n{{\n\
             .shared .align 128 .b8 sm[{shared}];\n\
             .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<80>; .reg .b64 %rd<40>; .reg .f32 %f<80>; .reg .f64 %d<40>;\n\
             ld.param.u64 %rd30, [out]; cvta.to.global.u64 %rd30, %rd30;\n\
             ld.param.u64 %rd31, [sink]; cvta.to.global.u64 %rd31, %rd31;\n\
             ld.param.u32 %r70, [one];\n\
             mov.u32 %r71, %tid.x; mov.u32 %r72, %ctaid.x; mov.u32 %r73, %ntid.x; mad.lo.u32 %r74, %r72, %r73, %r71;\n\
             cvt.rn.f32.u32 %f70, %r70; cvt.f64.f32 %d30, %f70;\n\
             {init}\nbar.sync 0;\nmov.u64 %rd28, %clock64;\n{body}\nmov.u64 %rd29, %clock64;\n\
             mul.wide.u32 %rd32, %r74, 16; add.s64 %rd32, %rd30, %rd32;\n\
             st.global.u64 [%rd32], %rd28; st.global.u64 [%rd32+8], %rd29;\n{end}\nret;\n}}\n"
        )
    }
}

/// A store of a result register to the sink, at a slot of 8 bytes.
pub(super) fn sink(slot: usize, kind: &str, register: &str) -> String {
    format!("st.global.{kind} [%rd31+{}], {register};\n", 8 * slot)
}
