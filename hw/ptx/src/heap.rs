//! Device `malloc` and `free`: PTX functions that are appended to a text that calls them and does not define them.
//!
//! The heap is a global variable of the module. A block has a power of two of bytes, at least 32: a header of 16, then the bytes of the
//! caller, aligned to 16. A freed block goes on a stack of its size, and `malloc` takes blocks from there first. Otherwise it moves the
//! end of the heap by one atomic. Blocks are never divided or joined.
//!
//! - Requests are served in the order of their atomics in memory, which depends on no host thread.
//! - No lock is held, so lanes of a warp make progress on every GPU.
//! - A request of 0 bytes, or one that does not fit, returns 0. Among concurrent requests, one that fails may use up the rest.
//! - `free` of 0 has no effect. `free` of another pointer that `malloc` did not return, or of a freed one, traps.
//! - `free` releases, and the `malloc` that gives the block to another thread acquires: CUDA's are safe for threads.
//! - [`Options::heap_bytes`](crate::Options::heap_bytes) is the size of the heap, with 256 bytes of its own data.
//! - The heap lives as long as the module: blocks survive a launch.

use crate::ast::Module;
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Default size of the heap in bytes, as in CUDA.
pub const HEAP_BYTES: u64 = 8 << 20;

/// Sizes that the heap can have, in bytes. Its own data take 256, and the code computes the size of a block in 32 bits.
pub const HEAP_RANGE: RangeInclusive<u64> = 1 << 10..=1 << 30;

/// Bytes before the first block.
const HEADER_BYTES: u64 = 256;

/// Suffix of the functions that stand for functions of the CUDA runtime.
const SUFFIX: &str = "$device";

/// Message of a wrong `free`.
pub(crate) const WRONG_FREE: &str = "the pointer is from `malloc`, and no other call has freed it";

/// The functions that a text can leave to the library.
const FUNCTIONS: [&str; 2] = ["malloc", "free"];

/// Returns the text, with the library appended if the module declares one of its functions without a body.
///
/// The heap has `heap_bytes`, clamped to [`HEAP_RANGE`].
pub(crate) fn with_library<'t>(text: &'t str, module: &Module<'_>, heap_bytes: u64) -> Cow<'t, str> {
    // CUDA declares `malloc` and `free` as functions without a body.
    let is_open = |name: &str| {
        let mut named = module
            .functions
            .iter()
            .filter(|function| function.name.text == name)
            .peekable();
        named.peek().is_some() && named.all(|function| function.body.is_none())
    };
    if !FUNCTIONS.into_iter().any(is_open) {
        return Cow::Borrowed(text);
    }
    let heap_bytes = heap_bytes.clamp(*HEAP_RANGE.start(), *HEAP_RANGE.end());
    let library = include_str!("lower/routines/heap.ptx")
        .replace("HEAP_BYTES", &heap_bytes.to_string())
        .replace("BLOCK_BYTES", &(heap_bytes - HEADER_BYTES).to_string());
    // Behind the text, so that spans and lines of the text stay as they are.
    Cow::Owned(format!("{text}\n{library}"))
}

/// Returns the name of the library function that stands for a function without a body.
pub(crate) fn library_name(function: &str) -> Option<String> {
    FUNCTIONS.contains(&function).then(|| format!("{function}{SUFFIX}"))
}

/// True for a function of the library. Its code has the line of its call.
pub(crate) fn is_library(function: &str) -> bool {
    function.ends_with(SUFFIX)
}

/// True for the library's `free`, whose trap is a wrong pointer.
pub(crate) fn is_free(function: &str) -> bool {
    function.strip_suffix(SUFFIX) == Some("free")
}
