//! Bells: a bit for each tile of a machine that says that another tile has sent it something.
//!
//! So a tile that sleeps need not be asked; a machine costs what happens in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One bit for each tile.
#[derive(Clone, Debug)]
pub struct Bells(Arc<Belfry>);

#[derive(Debug)]
struct Belfry {
    bells: Box<[AtomicU64]>,
    /// Whether one thread runs all tiles: then what they leave for each other takes no locked operations of the processor.
    is_alone: AtomicBool,
}

impl Bells {
    /// Silent bells for so many tiles.
    pub fn new(tiles: usize) -> Self {
        Bells(Arc::new(Belfry {
            bells: (0..tiles.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            is_alone: AtomicBool::new(false),
        }))
    }

    /// Whether one thread runs all tiles from now on; said while none runs.
    pub fn set_alone(&self, is_alone: bool) {
        self.0.is_alone.store(is_alone, Ordering::SeqCst);
    }

    /// Whether one thread runs all tiles.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.0.is_alone.load(Ordering::Relaxed)
    }

    /// Rings the bell of a tile. What was sent before is seen by whoever answers.
    #[inline]
    pub fn ring(&self, tile: usize) {
        let (word, bit) = (&self.0.bells[tile / 64], 1 << (tile % 64));
        // The bell mostly rings already, and a plain load does not take the line from the other threads.
        if word.load(Ordering::SeqCst) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Calls `answer` with every tile of `mine` whose bell rings, and silences it before.
    #[inline]
    pub fn answer(&self, mine: &[u64], mut answer: impl FnMut(usize)) {
        for (n, (word, mine)) in self.0.bells.iter().zip(mine).enumerate() {
            if word.load(Ordering::SeqCst) & mine == 0 {
                continue;
            }
            let mut ringing = word.fetch_and(!mine, Ordering::SeqCst) & mine;
            while ringing != 0 {
                answer(n * 64 + ringing.trailing_zeros() as usize);
                ringing &= ringing - 1;
            }
        }
    }
}
