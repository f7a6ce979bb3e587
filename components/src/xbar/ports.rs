//! A set of port numbers, a bit each.

/// Some of the ports 0 to n.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ports(Box<[u64]>);

impl Ports {
    /// None of `n` ports.
    pub(super) fn none(n: usize) -> Self {
        Ports(vec![0; n.div_ceil(64)].into())
    }

    /// Takes a port in.
    #[inline]
    pub(super) fn add(&mut self, port: usize) {
        self.0[port / 64] |= 1 << (port % 64);
    }

    /// Takes a port out.
    #[inline]
    pub(super) fn remove(&mut self, port: usize) {
        self.0[port / 64] &= !(1 << (port % 64));
    }

    /// Takes ports in: bit i of `ports` for port 64 * n + i.
    #[inline]
    pub(super) fn add_some(&mut self, n: usize, ports: u64) {
        self.0[n] |= ports;
    }

    /// Takes ports out: bit i of `ports` for port 64 * n + i.
    #[inline]
    pub(super) fn remove_some(&mut self, n: usize, ports: u64) {
        self.0[n] &= !ports;
    }

    /// Takes all ports out.
    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Whether there is no port in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Words of 64 ports.
    #[inline]
    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    /// Ports 64 * n on: bit i for the i-th of them.
    #[inline]
    pub(super) fn word(&self, n: usize) -> u64 {
        self.0[n]
    }

    /// The lowest port in it from `first` on.
    #[inline]
    pub(super) fn first_from(&self, first: usize) -> Option<usize> {
        let mut word = first / 64;
        let mut bits = self.0.get(word)? & u64::MAX << (first % 64);
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_several_words_come_out_lowest_first() {
        let mut ports = Ports::none(130);
        [129, 0, 64, 63].into_iter().for_each(|port| ports.add(port));
        ports.remove(64);
        let next = |port: &usize| ports.first_from(port + 1);
        let all: Vec<_> = std::iter::successors(ports.first_from(0), next).collect();
        assert_eq!(all, [0, 63, 129]);
        assert_eq!(ports.first_from(500), None);
        assert_eq!((ports.words(), ports.word(0), ports.word(2)), (3, 1 << 63 | 1, 0b10));
        ports.remove_some(2, 0b110);
        ports.add_some(2, 0b110);
        assert_eq!(ports.word(2), 0b110);
        ports.remove_some(2, 0b110);
        assert_eq!((ports.word(0), ports.word(2)), (1 << 63 | 1, 0));
        ports.clear();
        assert!(ports.is_empty());
    }
}
