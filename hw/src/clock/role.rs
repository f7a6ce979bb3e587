//! The role of each tile: interconnect or leaf.
//!
//! The tile graph of a GPU is bipartite: SMs and memory partitions have links only to the crossbar and to GigaThread. The smaller half is
//! the interconnect. If the graph is not bipartite, every tile is a leaf.

use std::collections::HashMap;

use bitvec::vec::BitVec;

use crate::tile::Tile;

/// The role of a tile in the clock's schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A tile with links to leaves.
    Interconnect,
    /// A tile with links only to interconnect tiles, or any tile if the graph is not bipartite.
    Leaf,
}

/// Finds the interconnect: bit n is set if tile n is part of it.
pub(super) fn interconnect_of(tiles: &[Tile]) -> BitVec {
    let numbers: HashMap<usize, usize> = tiles.iter().map(Tile::identity).zip(0..).collect();
    let number = |identity| numbers.get(&identity).copied();
    let neighbors = tiles
        .iter()
        .map(|tile| tile.neighbors().into_iter().filter_map(number).collect());
    smaller_halves(&neighbors.collect::<Vec<_>>())
}

/// The smaller half of each connected component of the graph. Empty if a connected component is not bipartite.
fn smaller_halves(neighbors: &[Vec<usize>]) -> BitVec {
    let n = neighbors.len();
    let (mut reached, mut colors) = (BitVec::repeat(false, n), BitVec::repeat(false, n));
    let mut interconnect = BitVec::repeat(false, n);
    while let Some(first) = reached.first_zero() {
        let Some(part) = color(first, neighbors, &mut reached, &mut colors) else {
            return BitVec::repeat(false, n);
        };
        let colored = part.iter().filter(|&&tile| colors[tile]).count();
        // Of equal halves, the half of the first tile. A tile without links is alone in the larger half, so it is a leaf.
        let smaller = 2 * colored < part.len();
        for tile in part.into_iter().filter(|&tile| colors[tile] == smaller) {
            interconnect.set(tile, true);
        }
    }
    interconnect
}

/// Colors the tiles reached from `first`, with different colors for neighbors. Returns these tiles, or `None` if two neighbors need the
/// same color.
fn color(first: usize, neighbors: &[Vec<usize>], reached: &mut BitVec, colors: &mut BitVec) -> Option<Vec<usize>> {
    let mut part = vec![first];
    reached.set(first, true);
    // Breadth first: `part` is also the queue.
    let mut next = 0;
    while next < part.len() {
        let tile = part[next];
        next += 1;
        let other = !colors[tile];
        for &neighbor in &neighbors[tile] {
            if !reached.replace(neighbor, true) {
                colors.set(neighbor, other);
                part.push(neighbor);
            } else if colors[neighbor] != other {
                return None;
            }
        }
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interconnect of a graph with `tiles` tiles.
    fn interconnect(tiles: usize, links: &[(usize, usize)]) -> Vec<usize> {
        let mut neighbors = vec![Vec::new(); tiles];
        for &(one, other) in links {
            neighbors[one].push(other);
            neighbors[other].push(one);
        }
        smaller_halves(&neighbors).iter_ones().collect()
    }

    #[test]
    fn middle_of_a_star_is_the_interconnect() {
        assert_eq!(interconnect(4, &[(0, 1), (2, 1), (1, 3)]), [1]);
    }

    #[test]
    fn two_stars_with_common_leaves_have_two_interconnect_tiles() {
        let links = [(0, 2), (0, 3), (0, 4), (1, 2), (3, 1), (4, 1)];
        assert_eq!(interconnect(5, &links), [0, 1]);
    }

    #[test]
    fn ring_of_three_has_only_leaves() {
        assert_eq!(interconnect(3, &[(0, 1), (1, 2), (2, 0)]), []);
    }

    #[test]
    fn tile_without_links_is_a_leaf() {
        assert_eq!(interconnect(2, &[]), []);
    }
}
