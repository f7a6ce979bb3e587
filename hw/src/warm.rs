//! Hints to the host's caches, kept apart from the hardware's code.
//!
//! The state of a machine of many tiles is larger than the host's caches. When a window begins, a tile [warms](Warm) the components
//! that are likely to run. Their reads stand side by side, so the host does many at once. No result depends on it.
//! The gain is in `hw/docs/performance.md`.

use crate::link::{InPort, OutPort};

/// State that can be brought into the host's caches before it is used.
pub trait Warm {
    /// Prefetches what the next ticks are likely to read.
    fn warm(&self) {}
}

/// Prefetches the line of host memory in which `place` begins, where the host can.
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

/// `warm!(Unit: queue, stats; ports)`: warms a component by prefetching fields and warming others. `warm!(Unit)`: it has no hints.
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

impl<T> Warm for OutPort<T> {
    #[inline]
    fn warm(&self) {
        self.prefetch_stamps();
    }
}

impl<T> Warm for InPort<T> {
    #[inline]
    fn warm(&self) {
        self.prefetch_stamps();
    }
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
