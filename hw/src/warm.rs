//! Prefetches state into the host's caches, apart from the code of the hardware.
//!
//! The state of a large machine does not fit into the host's caches. When a window begins, a tile [warms](Warm) the components that are
//! likely to run. The host then overlaps many reads. No result depends on it. `hw/docs/performance.md` has the gain.

/// State that can be prefetched into the host's caches.
pub trait Warm {
    /// Prefetches the fields that the next ticks are likely to read.
    fn warm(&self) {}
}

/// Prefetches the host cache line of `place`. Does nothing on hosts other than x86-64.
///
/// ```
/// use warpwave_hw::warm::prefetch;
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

/// Implements [`Warm`]: `warm!(Unit: queue, stats; ports)` prefetches two fields and warms a third. `warm!(Unit)` prefetches nothing.
///
/// ```
/// use warpwave_hw::warm::Warm;
/// struct Unit {
///     queue: Vec<u32>,
///     stats: [u64; 4],
/// }
/// warpwave_hw::warm!(Unit: queue, stats);
/// let unit = Unit { queue: vec![1], stats: [0; 4] };
/// unit.warm();
/// assert_eq!((unit.queue.len(), unit.stats), (1, [0; 4]));
/// ```
#[macro_export]
macro_rules! warm {
    ($unit:ty $(: $($field:ident),* $(; $($part:ident),+)?)?) => {
        impl $crate::warm::Warm for $unit {
            fn warm(&self) {
                $(
                    $($crate::warm::prefetch(&self.$field);)*
                    $($($crate::warm::Warm::warm(&self.$part);)+)?
                )?
            }
        }
    };
}

impl<E: Warm> Warm for Vec<E> {
    fn warm(&self) {
        self.iter().for_each(Warm::warm);
    }
}

impl<E: Warm> Warm for Option<E> {
    fn warm(&self) {
        self.iter().for_each(Warm::warm);
    }
}

impl<A: Warm, B: Warm> Warm for (A, B) {
    fn warm(&self) {
        self.0.warm();
        self.1.warm();
    }
}
