//! Parallel map: lowers the kernels of a large text on several host threads.
//!
//! Results keep the order of the items, for any number of threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Minimum number of items per host thread. Starting a thread for fewer costs more than it saves.
const MIN_ITEMS_PER_THREAD: usize = 16;

/// Applies `apply` to each item and returns the results in item order.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], apply: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let n_cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let n_threads = (items.len() / MIN_ITEMS_PER_THREAD).clamp(1, n_cpus);
    let next = AtomicUsize::new(0);
    let run = || -> Vec<(usize, R)> {
        // Relaxed is enough: the numbers must differ, and `scope` orders the results.
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let items = numbers.map_while(|n| Some((n, items.get(n)?)));
        items.map(|(n, item)| (n, apply(item))).collect()
    };
    let mut results = thread::scope(|scope| {
        let workers: Vec<_> = (1..n_threads).map(|_| scope.spawn(run)).collect();
        let mut results = run();
        for worker in workers {
            results.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|&(n, _)| n);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_keep_item_order() {
        let items: Vec<u32> = (0..1000).collect();
        let expected: Vec<u32> = (0..1000).map(|n| n * n).collect();
        assert_eq!(super::map(&items, |n| n * n), expected);
        assert_eq!(super::map(&[7], |n| n + 1), [8]);
        assert_eq!(super::map(&[] as &[u8], |&n| n), []);
    }
}
