//! The role of each tile: interconnect or leaf.
//!
//! The tile graph of a GPU is bipartite: SMs and memory partitions have links only to the crossbar and to GigaThread. The smaller half is
//! the interconnect. If the graph is not bipartite, every tile is a leaf.

use std::collections::HashMap;

use crate::tile::Tile;

/// What a tile is for the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A tile that leaves have links to.
    Interconnect,
    /// Any other tile.
    Leaf,
}

/// The role of every tile, in the order of `tiles`.
pub fn of(tiles: &[Tile]) -> Vec<Role> {
    let places: HashMap<usize, usize> = tiles.iter().map(Tile::identity).zip(0..).collect();
    let place = |identity| places.get(&identity).copied();
    let neighbors = tiles
        .iter()
        .map(|tile| tile.neighbors().into_iter().filter_map(place).collect());
    split(&neighbors.collect::<Vec<_>>())
}

/// The role of every tile, from the neighbors of each.
fn split(neighbors: &[Vec<usize>]) -> Vec<Role> {
    let mut colors: Vec<Option<bool>> = vec![None; neighbors.len()];
    let mut roles = vec![Role::Leaf; neighbors.len()];
    for first in 0..neighbors.len() {
        if colors[first].is_none() {
            let Some(group) = color(first, neighbors, &mut colors) else {
                return vec![Role::Leaf; neighbors.len()];
            };
            let n_true = group.iter().filter(|&&n| colors[n] == Some(true)).count();
            let smaller = 2 * n_true < group.len();
            let interconnect = group.iter().filter(|&&n| colors[n] == Some(smaller));
            interconnect.for_each(|&n| roles[n] = Role::Interconnect);
        }
    }
    roles
}

/// Gives neighbors different colors, from `first` on, and returns the tiles reached. `None` if two neighbors need the same color.
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

    /// The roles of `tiles` tiles, joined in pairs.
    fn roles(tiles: usize, links: &[(usize, usize)]) -> Vec<Role> {
        let mut neighbors = vec![Vec::new(); tiles];
        for &(one, other) in links {
            neighbors[one].push(other);
            neighbors[other].push(one);
        }
        split(&neighbors)
    }

    #[test]
    fn star_its_middle_is_the_interconnect() {
        let (middle, leaf) = (Role::Interconnect, Role::Leaf);
        assert_eq!(roles(4, &[(0, 1), (2, 1), (1, 3)]), [leaf, middle, leaf, leaf]);
    }

    #[test]
    fn two_stars_with_common_leaves_have_two_interconnect_tiles() {
        let (middle, leaf) = (Role::Interconnect, Role::Leaf);
        let links = [(0, 2), (0, 3), (0, 4), (1, 2), (3, 1), (4, 1)];
        assert_eq!(roles(5, &links), [middle, middle, leaf, leaf, leaf]);
    }

    #[test]
    fn ring_of_three_has_only_leaves() {
        assert_eq!(roles(3, &[(0, 1), (1, 2), (2, 0)]), [Role::Leaf; 3]);
    }

    #[test]
    fn tile_without_links_is_a_leaf() {
        assert_eq!(roles(2, &[]), [Role::Leaf; 2]);
    }
}
