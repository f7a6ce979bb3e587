//! Hubs and leaves: two sides of a machine, such that links between tiles lead from one side to the other. Desks are hubs too.
//!
//! A GPU is a star: SMs and memory tiles talk to the crossbar and to GigaThread, never straight to each other. While the hubs
//! stand still in some cycle, nothing can reach a leaf before the shortest latency is over, whatever the other leaves do; and
//! the other way round. So the sides run in turn, each as far as one latency beyond the other: two latencies a turn, with the
//! caches of the machine that simulates warm for twice as long as if all tiles met every latency.

use std::collections::HashMap;

use crate::tile::Tile;

/// One of the sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Side {
    /// The few tiles that the others meet at.
    Hub,
    /// Those of the hubs that may promise to answer only ([`crate::tile::Promise`]).
    Desk,
    /// All others; every tile, where there is no such order.
    Leaf,
}

impl Side {
    /// All sides.
    pub const ALL: [Side; SIDES] = [Side::Hub, Side::Desk, Side::Leaf];
}

/// Number of sides.
pub const SIDES: usize = Side::Leaf as usize + 1;

/// The side of every tile.
pub fn of(tiles: &[Tile]) -> Vec<Side> {
    let numbers: HashMap<usize, usize> = tiles.iter().map(Tile::identity).zip(0..).collect();
    let number = |identity| numbers.get(&identity).copied();
    let neighbors = tiles
        .iter()
        .map(|tile| tile.neighbors().into_iter().filter_map(number).collect());
    let mut sides = split(&neighbors.collect::<Vec<_>>());
    let hubs = || (0..tiles.len()).filter(|&n| sides[n] == Side::Hub);
    let desks: Vec<usize> = hubs().filter(|&n| tiles[n].promise().is_some()).collect();
    // Somebody must say how far the leaves may run when all desks promise.
    if desks.len() < hubs().count() {
        desks.iter().for_each(|&n| sides[n] = Side::Desk);
    }
    sides
}

/// The side of every tile, by the tiles that each is joined to.
fn split(neighbors: &[Vec<usize>]) -> Vec<Side> {
    let mut colors: Vec<Option<bool>> = vec![None; neighbors.len()];
    let mut sides = vec![Side::Leaf; neighbors.len()];
    for first in 0..neighbors.len() {
        if colors[first].is_none() {
            let Some(group) = color(first, neighbors, &mut colors) else {
                return vec![Side::Leaf; neighbors.len()];
            };
            let n_true = group.iter().filter(|&&n| colors[n] == Some(true)).count();
            let hub_color = 2 * n_true < group.len();
            let hubs = group.iter().filter(|&&n| colors[n] == Some(hub_color));
            hubs.for_each(|&n| sides[n] = Side::Hub);
        }
    }
    sides
}

/// Gives neighbours different colours from `first` on: the tiles reached; nothing if that cannot be.
fn color(first: usize, neighbors: &[Vec<usize>], colors: &mut [Option<bool>]) -> Option<Vec<usize>> {
    let mut group = vec![first];
    colors[first] = Some(false);
    let mut next = 0;
    while next < group.len() {
        let n = group[next];
        next += 1;
        let other = colors[n].map(|color| !color);
        for &neighbor in &neighbors[n] {
            if colors[neighbor].is_none() {
                colors[neighbor] = other;
                group.push(neighbor);
            } else if colors[neighbor] != other {
                return None;
            }
        }
    }
    Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sides of so many tiles, joined in pairs.
    fn sides(tiles: usize, links: &[(usize, usize)]) -> Vec<Side> {
        let mut neighbors = vec![Vec::new(); tiles];
        for &(one, other) in links {
            neighbors[one].push(other);
            neighbors[other].push(one);
        }
        split(&neighbors)
    }

    #[test]
    fn star_its_middle_is_the_hub() {
        let (hub, leaf) = (Side::Hub, Side::Leaf);
        assert_eq!(sides(4, &[(0, 1), (2, 1), (1, 3)]), [leaf, hub, leaf, leaf]);
    }

    #[test]
    fn two_stars_that_share_leaves_have_both_middles_as_hubs() {
        let (hub, leaf) = (Side::Hub, Side::Leaf);
        let links = [(0, 2), (0, 3), (0, 4), (1, 2), (3, 1), (4, 1)];
        assert_eq!(sides(5, &links), [hub, hub, leaf, leaf, leaf]);
    }

    #[test]
    fn ring_of_three_has_no_sides() {
        assert_eq!(sides(3, &[(0, 1), (1, 2), (2, 0)]), [Side::Leaf; 3]);
    }

    #[test]
    fn tile_alone_is_a_leaf() {
        assert_eq!(sides(2, &[]), [Side::Leaf; 2]);
    }
}
