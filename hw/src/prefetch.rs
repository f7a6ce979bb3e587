//! Asks the processor for memory that will be needed soon, and does not wait for it.
//!
//! The state of a large machine does not fit the processor's caches, and a component mostly knows what it will need before it does.
//! No result depends on it.

/// Has the processor bring the line of memory in which `place` begins into its caches, where it can be asked to.
///
/// ```
/// use warpwave_hw::prefetch::prefetch;
/// let state = [7u64; 100];
/// prefetch(&state[50]);
/// assert_eq!(state[50], 7);
/// ```
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    safe_arch::prefetch_t0(place);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
