//! Decides if the accesses of a byte can be put in one order.
//!
//! Each write has a value of its own. So a write and the reads of its value are a *cluster*: no other write lies between them. An atomic
//! that reads one value and writes another joins its two clusters to a *chain*, in which they are neighbours. The order exists exactly if
//! these statements are true:
//! - Every value that an access reads was written.
//! - The atomics do not read each other's values in a circle.
//! - No access of a chain comes before one of an earlier cluster, or before the write of its own.
//! - No value has two atomics that replace it.
//! - The chains have an order that agrees with all pairs of accesses that are ordered.

use std::collections::{BTreeMap, BTreeSet};

use warpwave_components::proto::mem::LINE;

/// What an access did to the bytes of its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    pub sm: u16,
    /// The cycle of the request.
    pub sent: u64,
    /// The cycle of the response.
    pub done: u64,
    /// What it writes.
    pub value: u8,
    /// Mask of the bytes that it reads.
    pub reads: u128,
    /// The bytes that it has read.
    pub read: [u8; LINE],
    /// Mask of the bytes that it writes.
    pub writes: u128,
}

/// An access of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ByteAccess {
    /// The SM. `None` for the state before the run and after it.
    sm: Option<u16>,
    sent: u64,
    done: u64,
    read: Option<u8>,
    written: Option<u8>,
}

impl ByteAccess {
    /// True if this access comes first. Accesses of one SM are numbered in the order in which they were sent.
    fn is_before(&self, n: usize, other: &Self, m: usize) -> bool {
        self.done < other.sent || self.sm.is_some() && self.sm == other.sm && n < m
    }
}

/// Checks the bytes of a line. `last` are those of memory after the run. The accesses of an SM are in the order in which they were sent.
///
/// # Panics
/// If the accesses of a byte have no order.
pub fn check_line(line: u64, accesses: &[&Access], last: &[u8; LINE]) {
    let mut checked = Vec::new();
    for (at, &last) in last.iter().enumerate() {
        let history = history(accesses, at, last);
        // Most bytes of a sector have one history.
        if history == checked {
            continue;
        }
        if let Err(error) = find_order(&history) {
            let listed: Vec<String> = history.iter().map(|access| format!("  {access:?}")).collect();
            panic!("byte {at} of line {line:#x}: {error}\n{}", listed.join("\n"));
        }
        checked = history;
    }
}

/// The accesses of byte `at`, with its first write and a read of its last value.
fn history(accesses: &[&Access], at: usize, last: u8) -> Vec<ByteAccess> {
    let mut history = vec![ByteAccess {
        sm: None,
        sent: 0,
        done: 0,
        read: None,
        written: Some(0),
    }];
    for access in accesses {
        let of = |mask: u128, value: u8| (mask >> at & 1 == 1).then_some(value);
        let (read, written) = (of(access.reads, access.read[at]), of(access.writes, access.value));
        if read.or(written).is_some() {
            history.push(ByteAccess {
                sm: Some(access.sm),
                // From 1 on, so that the first write is before all.
                sent: access.sent + 1,
                done: access.done + 1,
                read,
                written,
            });
        }
    }
    history.push(ByteAccess {
        sm: None,
        sent: u64::MAX,
        done: u64::MAX,
        read: Some(last),
        written: None,
    });
    history
}

/// Finds out if an order exists. The error says why not.
fn find_order(history: &[ByteAccess]) -> Result<(), String> {
    let written: BTreeSet<u8> = history.iter().filter_map(|access| access.written).collect();
    let mut next = BTreeMap::new();
    for access in history {
        let Some(read) = access.read else { continue };
        if !written.contains(&read) {
            return Err(format!("{access:?} reads a value that no access has written"));
        }
        if let Some(value) = access.written
            && let Some(other) = next.insert(read, value)
        {
            return Err(format!("two atomics read {read}, and write {other} and {value}"));
        }
    }
    // The chain of each value, and its place there. A chain begins with a value that no atomic has put behind another.
    let mut places = BTreeMap::new();
    let mut n_chains = 0;
    for &first in written
        .iter()
        .filter(|value| next.values().all(|behind| behind != *value))
    {
        let mut value = Some(first);
        let mut place = 0;
        while let Some(of_chain) = value {
            places.insert(of_chain, (n_chains, place));
            place += 1;
            value = next.get(&of_chain).copied();
        }
        n_chains += 1;
    }
    if places.len() < written.len() {
        return Err("atomics read each other's values in a circle".to_owned());
    }
    // A chain is behind another if an access there comes first.
    let mut behind = vec![0u128; n_chains];
    let place = |access: &ByteAccess| places[&access.written.or(access.read).expect("an access")];
    for (n, first) in history.iter().enumerate() {
        let later = history
            .iter()
            .enumerate()
            .filter(|(m, second)| first.is_before(n, second, *m));
        for (_, second) in later {
            let ((chain, at), (other, other_at)) = (place(first), place(second));
            let is_write = second.written.is_some();
            if chain == other && (at > other_at || at == other_at && is_write) {
                return Err(format!("{second:?} comes after {first:?}"));
            }
            if chain != other {
                behind[other] |= 1 << chain;
            }
        }
    }
    // Takes a chain with no open chain before it, until none is left.
    let mut open: u128 = (0..n_chains).fold(0, |open, chain| open | 1 << chain);
    while open != 0 {
        let free = (0..n_chains).find(|&chain| open >> chain & 1 == 1 && behind[chain] & open == 0);
        let Some(free) = free else {
            return Err("no order of the writes agrees with the order of the accesses".to_owned());
        };
        open &= !(1 << free);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM, request, response, read value, written value.
    type Given = (u16, u64, u64, Option<u8>, Option<u8>);

    /// The order of these accesses. `last` is the byte at the end.
    fn order(accesses: &[Given], last: u8) -> Result<(), String> {
        let accesses: Vec<Access> = accesses
            .iter()
            .map(|&(sm, sent, done, read, written)| Access {
                sm,
                sent,
                done,
                value: written.unwrap_or(0),
                reads: read.is_some().into(),
                read: [read.unwrap_or(0); LINE],
                writes: written.is_some().into(),
            })
            .collect();
        find_order(&history(&accesses.iter().collect::<Vec<_>>(), 0, last))
    }

    #[test]
    fn load_beside_a_store_returns_either_value() {
        for (read, is_right) in [(0, true), (1, true), (2, false)] {
            let found = order(&[(0, 5, 20, None, Some(1)), (1, 10, 15, Some(read), None)], 1);
            assert_eq!(found.is_ok(), is_right, "{read}: {found:?}");
        }
    }

    #[test]
    fn load_after_a_store_returns_the_new_value() {
        for (read, is_right) in [(0, false), (1, true)] {
            let found = order(&[(0, 5, 9, None, Some(1)), (1, 10, 15, Some(read), None)], 1);
            assert_eq!(found.is_ok(), is_right, "{read}: {found:?}");
        }
    }

    #[test]
    fn last_value_is_that_of_a_last_store() {
        let stores = [(0, 5, 20, None, Some(1)), (1, 6, 30, None, Some(2))];
        assert_eq!([0, 1, 2].map(|last| order(&stores, last).is_ok()), [false, true, true]);
    }

    #[test]
    fn loads_of_two_sms_agree_on_the_order_of_two_stores() {
        let stores = [(2, 1, 90, None, Some(1)), (3, 1, 90, None, Some(2))];
        let loads = |of_0: [u8; 2], of_1: [u8; 2]| {
            let load = |sm, at, value| (sm, at, at + 5, Some(value), None);
            let loads = [
                load(0, 20, of_0[0]),
                load(0, 40, of_0[1]),
                load(1, 20, of_1[0]),
                load(1, 40, of_1[1]),
            ];
            order(&[&stores[..], &loads].concat(), of_0[1]).is_ok()
        };
        assert!(loads([1, 2], [1, 2]) && loads([1, 2], [0, 1]));
        assert!(!loads([1, 2], [2, 1]));
    }

    #[test]
    fn accesses_of_an_sm_keep_their_order() {
        let store = (0, 1, 50, None, Some(1));
        let load = |sm, read| (sm, 2, 40, Some(read), None);
        assert!(order(&[store, load(1, 0)], 1).is_ok());
        assert!(order(&[store, load(0, 0)], 1).is_err());
    }

    #[test]
    fn atomics_of_one_value_are_refused() {
        let atomic = |sm, read, written| (sm, 1, 50, Some(read), Some(written));
        assert!(order(&[atomic(0, 0, 1), atomic(1, 1, 2)], 2).is_ok());
        assert!(order(&[atomic(0, 0, 1), atomic(1, 0, 2)], 2).is_err(), "both read 0");
        assert!(order(&[atomic(0, 2, 1), atomic(1, 1, 2)], 2).is_err(), "a circle");
        // The store cannot lie between the value and the atomic that replaces it.
        let store = (1, 10, 20, None, Some(3));
        let later = (1, 30, 40, Some(1), None);
        assert!(order(&[atomic(0, 0, 1), store, later], 3).is_err());
    }
}
