//! A delay line before a link, for latencies above the largest of a link.
//!
//! A link holds a message for fewer cycles than [`crate::tile::HORIZON`]. A longer pipeline keeps its youngest messages in a delay line.
//! The line hands each on once the link can hold it. Messages stay in order.
//!
//! The owner calls [`DelayLine::run`] in each tick, and adds [`DelayLine::activity`] to its own.

use std::collections::VecDeque;

use super::OutPort;
use crate::component::Activity;
use crate::time::Cycle;

/// Messages on their way to one link.
#[derive(Debug)]
pub struct DelayLine<T> {
    /// The cycle in which each message would be sent by [`OutPort::send`], and the message; oldest first.
    messages: VecDeque<(Cycle, T)>,
}

impl<T> Default for DelayLine<T> {
    fn default() -> Self {
        DelayLine {
            messages: VecDeque::new(),
        }
    }
}

impl<T> DelayLine<T> {
    /// Number of messages that no link holds yet.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// True if the line has no message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Sends a message that takes `extra` cycles more than the link's latency, any number. Messages never overtake.
    ///
    /// # Panics
    /// If the link has no room: check [`OutPort::has_room`] first.
    #[inline]
    pub fn send(&mut self, port: &mut OutPort<T>, now: Cycle, extra: u64, message: T) {
        // Behind waiting messages even a short one must wait, to keep the order.
        if self.messages.is_empty() && extra <= port.max_extra() {
            port.send_after(now, extra, message);
        } else {
            self.messages.push_back((now + extra, message));
        }
    }

    /// Hands on the messages that the link can hold, as far as it has room.
    #[inline]
    pub fn run(&mut self, port: &mut OutPort<T>, now: Cycle) {
        if !self.messages.is_empty() {
            self.hand_on(port, now);
        }
    }

    fn hand_on(&mut self, port: &mut OutPort<T>, now: Cycle) {
        while let Some(&(at, _)) = self.messages.front()
            && at <= now + port.max_extra()
            && port.has_room(now)
            && let Some((_, message)) = self.messages.pop_front()
        {
            // A message that had to wait for room is late. It takes the link's latency from now on.
            port.send_after(now, at.max(now).since(now), message);
        }
    }

    /// When the owner must tick to hand on the oldest message.
    #[inline]
    pub fn activity(&self, port: &OutPort<T>, now: Cycle) -> Activity {
        let Some(&(at, _)) = self.messages.front() else {
            return Activity::Idle;
        };
        // The first cycle in which the link can hold the message. From then on only room is needed.
        match Cycle(at.0.saturating_sub(port.max_extra())) {
            from if from > now => Activity::Until(from),
            _ => port.await_room(now),
        }
    }
}

/// The delay lines before several links, by number of the link.
#[derive(Debug)]
pub struct DelayLines<T> {
    lines: Vec<DelayLine<T>>,
    /// True if no message is in any of them. Most machines never have one.
    empty: bool,
}

impl<T> DelayLines<T> {
    /// Empty lines before `n` links.
    pub fn new(n: usize) -> Self {
        DelayLines {
            lines: (0..n).map(|_| DelayLine::default()).collect(),
            empty: true,
        }
    }

    /// True if no line has a message.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// Sends a message over link `n` of `ports`, like [`DelayLine::send`].
    #[inline]
    pub fn send(&mut self, ports: &mut [OutPort<T>], n: usize, now: Cycle, extra: u64, message: T) {
        self.lines[n].send(&mut ports[n], now, extra, message);
        self.empty &= self.lines[n].is_empty();
    }

    /// Hands on the messages of all lines, like [`DelayLine::run`].
    #[inline]
    pub fn run(&mut self, ports: &mut [OutPort<T>], now: Cycle) {
        if !self.empty {
            self.run_all(ports, now);
        }
    }

    #[cold]
    fn run_all(&mut self, ports: &mut [OutPort<T>], now: Cycle) {
        let lines = self.lines.iter_mut().zip(ports);
        lines.for_each(|(line, port)| line.run(port, now));
        self.empty = self.lines.iter().all(DelayLine::is_empty);
    }

    /// When the owner must tick to hand on the next message.
    #[inline]
    pub fn activity(&self, ports: &[OutPort<T>], now: Cycle) -> Activity {
        if self.empty {
            return Activity::Idle;
        }
        let lines = self.lines.iter().zip(ports);
        lines.fold(Activity::Idle, |next, (line, port)| next.or(line.activity(port, now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkConfig, link};
    use crate::path::Path;
    use crate::tile::TileBuilder;

    #[test]
    fn message_of_a_long_pipeline_is_visible_in_its_cycle_and_in_order() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let config = LinkConfig {
            path: Path::root("link"),
            latency: 1,
            depth: 4,
        };
        let (mut output, mut input) = link(&config, &from, &to);
        let mut line = DelayLine::default();
        let mut seen = Vec::new();
        for now in (0..400).map(Cycle) {
            line.run(&mut output, now);
            match now.0 {
                10 => line.send(&mut output, now, 200, 'a'),
                20 => line.send(&mut output, now, 0, 'b'),
                30 => line.send(&mut output, now, 300, 'c'),
                _ => {}
            }
            while let Some(message) = input.recv(now) {
                seen.push((now.0, message));
            }
        }
        // The link adds one cycle. The second message waits for the first.
        assert_eq!(seen, [(211, 'a'), (211, 'b'), (331, 'c')]);
        assert!(line.is_empty());
    }

    #[test]
    fn owner_ticks_when_the_link_can_hold_the_message() {
        let mut tile = TileBuilder::new();
        let (from, to) = (tile.slot(), tile.slot());
        let config = LinkConfig {
            path: Path::root("link"),
            latency: 1,
            depth: 1,
        };
        let (mut output, _input) = link(&config, &from, &to);
        let mut line = DelayLine::default();
        assert_eq!(line.activity(&output, Cycle(5)), Activity::Idle);
        line.send(&mut output, Cycle(5), 100, 'a');
        // 105 less the 62 cycles that a link of latency 1 holds a message beyond its latency.
        assert_eq!(line.activity(&output, Cycle(5)), Activity::Until(Cycle(43)));
    }
}
