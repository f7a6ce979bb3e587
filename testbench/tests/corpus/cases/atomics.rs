//! Atomics: compare-and-swap loops, locks, each operation, messages between blocks, a breadth-first search that claims nodes.

use crate::case::{Case, Param, ceil, input, int, output, satisfying, unordered};
use crate::draw::{floats, ints, whole};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        cas_float_max(),
        cas_spin_lock(),
        atomic_zoo(1).about("one thread, whose old values are known"),
        atomic_zoo(77).about("many threads, whose order is open"),
        bfs_step(),
        cache_hints(),
        message_pass(),
    ]
}

fn cas_float_max() -> Case {
    let values = floats(1, 333, -9.0, 9.0);
    let greatest = values.iter().copied().fold(f32::MIN, f32::max);
    Case::cuda("atomic_cas_loop", "cas_float_max")
        .launch(ceil(333, 128), 128)
        .args([input(&values), output(&[-1.0e30], &[greatest]), int(333)])
}

/// Lanes of one warp compete for one lock.
fn cas_spin_lock() -> Case {
    let (n, locks) = (150, 5);
    let (keys, values) = (ints(2, n, 0, 4), ints(3, n, -99, 99));
    let mut sums = [0; 5];
    keys.iter()
        .zip(&values)
        .for_each(|(&key, value)| sums[key as usize] += value);
    Case::cuda("atomic_cas_loop", "cas_spin_lock")
        .launch(ceil(n, 128), 128)
        .args([
            input(&keys),
            input(&values),
            output(&vec![0; locks], &[0; 5]),
            output(&vec![0; locks], &sums),
            int(n),
        ])
}

/// The memory of the kernel `atomic_zoo`. `a[6]` and `l[4]` receive old values, which are predictable for one thread only.
struct Zoo {
    a: [i32; 9],
    u: [u32; 3],
    l: [u64; 5],
    f: [f32; 1],
}

const BEFORE: Zoo = Zoo {
    a: [1000, -1, 0, 0x5555, 50, -50, 0, 7, 8],
    u: [30, 2, 5],
    l: [1 << 40, 3, 4, 2, 0],
    f: [0.0],
};

impl Zoo {
    /// Performs the operations of one thread, whose value is `x`.
    fn turn(&mut self, x: i32) {
        let olds = [self.a[0], self.a[1], self.a[2], self.a[3], self.a[4], self.a[5]];
        self.a[0] -= x;
        self.a[1] &= x;
        self.a[2] |= x;
        self.a[3] ^= x;
        self.a[4] = self.a[4].min(x);
        self.a[5] = self.a[5].max(x);
        let counts = self.u;
        self.u[0] = if counts[0] >= 31 { 0 } else { counts[0] + 1 };
        self.u[1] = if counts[1] == 0 || counts[1] > 31 {
            31
        } else {
            counts[1] - 1
        };
        self.u[2] = counts[2].max(x as u32);
        let counted = counts.iter().fold(0, |sum: i32, &old| sum.wrapping_add(old as i32));
        self.a[6] = olds.iter().fold(counted, |sum, &old| sum.wrapping_add(old));
        let wide = i64::from(x) as u64;
        let old = [self.l[0], self.l[1], self.l[2], self.l[3]];
        self.l[0] = old[0].wrapping_add(wide);
        if old[1] == 0 {
            self.l[1] = wide;
        }
        self.l[2] = 7;
        self.l[3] = old[3].max(9);
        self.l[4] = old.iter().fold(0, |sum: u64, &old| sum.wrapping_add(old));
        self.f[0] = 1.5;
        self.a[7] += 1;
        self.a[8] += 1;
    }
}

/// A buffer whose elements must be as expected, except element `open`.
fn all_but<T: crate::case::Element + PartialEq + std::fmt::Debug + Send + Sync + 'static>(
    before: &[T],
    after: &[T],
    open: usize,
) -> Param {
    let after = after.to_vec();
    satisfying(before, move |found: &[T]| {
        let same = |i: usize| i == open || found[i] == after[i];
        (0..after.len())
            .all(same)
            .then_some(())
            .ok_or(format!("{found:?} is not {after:?}"))
    })
}

fn atomic_zoo(threads: usize) -> Case {
    let values = ints(4, threads, -999, 999);
    let mut zoo = BEFORE;
    values.iter().for_each(|&x| zoo.turn(x));
    let case = Case::cuda("atomic_cas_loop", "atomic_zoo").launch(1, threads);
    let (a, l) = match threads {
        1 => (output(&BEFORE.a, &zoo.a), output(&BEFORE.l, &zoo.l)),
        _ => (all_but(&BEFORE.a, &zoo.a, 6), all_but(&BEFORE.l, &zoo.l, 4)),
    };
    let u = output(&BEFORE.u, &zoo.u);
    case.args([a, u, l, output(&BEFORE.f, &zoo.f), input(&values)])
}

/// A graph of 500 nodes with up to 6 neighbours each. Half of the nodes are visited before the step.
fn bfs_step() -> Case {
    let (nodes, depth) = (500usize, 3);
    let degrees = ints(5, nodes, 0, 6);
    let row: Vec<i32> = std::iter::once(0)
        .chain(degrees.iter().scan(0, |sum, degree| {
            *sum += degree;
            Some(*sum)
        }))
        .collect();
    let edges = row[nodes] as usize;
    let neighbours = ints(6, edges, 0, nodes as i32 - 1);
    let levels: Vec<i32> = ints(7, nodes, 0, 1)
        .iter()
        .map(|&seen| if seen == 1 { 2 } else { -1 })
        .collect();
    let frontier: Vec<i32> = (0..300).map(|i| (i * 7) % nodes as i32).collect();
    let mut after = levels.clone();
    let mut found = Vec::new();
    for &node in &frontier {
        for edge in row[node as usize]..row[node as usize + 1] {
            let next = neighbours[edge as usize];
            if after[next as usize] == -1 {
                after[next as usize] = depth;
                found.push(next);
            }
        }
    }
    Case::cuda("bfs_step", "bfs_step")
        .launch(ceil(frontier.len(), 256), 256)
        .args([
            input(&row),
            input(&neighbours),
            input(&frontier),
            int(frontier.len()),
            output(&levels, &after),
            int(depth as usize),
            unordered(&vec![-9; nodes], &found, &vec![-9; nodes - found.len()]),
            output(&[0], &[found.len() as i32]),
        ])
}

/// Six loads with different cache operators, and a prefetch of the seventh part of the buffer.
fn cache_hints() -> Case {
    let n = 201;
    let from = whole(8, 7 * n, -99, 99);
    let sum = |at: usize| (0..6).map(|part| from[at % n + part * n]).sum::<f32>();
    let to: Vec<_> = (0..4 * n).map(sum).collect();
    Case::cuda("cache_hints", "cache_hints")
        .launch(ceil(n, 128), 128)
        .args([input(&from), output(&vec![0.0; 4 * n], &to), int(n)])
}

/// The first block writes a message and sets a flag. The second block waits for the flag.
fn message_pass() -> Case {
    let message: Vec<i32> = (0..70).map(|i| 3 * i).collect();
    Case::cuda("cache_hints", "message_pass").launch(2, 70).args([
        output(&[-1; 70], &message),
        output(&[0], &[1]),
        output(&[-1; 70], &message),
    ])
}
