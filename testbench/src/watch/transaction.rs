//! Finds one memory request of a run, and the requests that share its fill. The run is deterministic. So a second run can
//! show the same request in a waveform.
//!
//! Requests share a fill in the L1 if they are of one SM and one line, and their data arrive there in one cycle. Requests of
//! several SMs share a fill in the L2 if their line was accepted by the memory channel in one cycle.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use std::str::FromStr;

use warpwave_components::proto::event::Request;
use warpwave_components::proto::mem::{PacketKind, Stage};
use warpwave_hw::time::Cycle;

use super::requests::{RequestId, begin, end, path};
use super::{Listener, returned};

/// Most requests of a transaction. Others with the same fill are left out.
pub const MAX_REQUESTS: usize = 8;

/// Requests that share a fill return within this many cycles. A longer queue behind the L1 is unlikely.
const SPREAD: u64 = 4_000;

/// The request to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The load with the longest latency. Among equals, the one issued first.
    Slowest,
    /// A request by its identity.
    Id(RequestId),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = || {
            let (sm, number) = text.strip_prefix("sm")?.split_once('#')?;
            Some(RequestId {
                sm: sm.parse().ok()?,
                number: number.parse().ok()?,
            })
        };
        match text {
            "slowest" => Ok(Wanted::Slowest),
            _ => id().map(Wanted::Id).ok_or_else(|| {
                "expected `slowest`, or a request such as `sm0#12`: see --hist or --perfetto".to_owned()
            }),
        }
    }
}

/// Searches the requests of a run.
pub struct TransactionFinder {
    wanted: Wanted,
    /// The cycles of issue among which the slowest load is searched.
    window: Range<Cycle>,
    /// Requests of each SM so far.
    numbers: Vec<u64>,
    /// Requests that may share a fill with the next one.
    recent: VecDeque<(RequestId, Request)>,
    /// The best request so far, then the requests with the same fill.
    found: Vec<(RequestId, Request)>,
}

impl TransactionFinder {
    /// Creates a finder. The slowest load is searched among the loads that issue in `window`.
    pub fn new(wanted: Wanted, window: Range<Cycle>) -> Self {
        TransactionFinder {
            wanted,
            window,
            numbers: Vec::new(),
            recent: VecDeque::new(),
            found: Vec::new(),
        }
    }

    /// The wanted request, then the others of its fill in order of their issue. Empty if the run has no such request.
    pub fn finish(mut self) -> Vec<(RequestId, Request)> {
        if let Some((_, others)) = self.found.split_first_mut() {
            others.sort_by_key(|(id, request)| (begin(request), *id));
        }
        self.found.truncate(MAX_REQUESTS);
        self.found
    }

    fn is_better(&self, id: RequestId, request: &Request) -> bool {
        match self.wanted {
            Wanted::Id(wanted) => wanted == id,
            Wanted::Slowest => {
                let key = |(id, request): &(RequestId, Request)| (Reverse(latency(request)), begin(request), *id);
                let is_candidate = request.kind == PacketKind::Load && self.window.contains(&begin(request));
                is_candidate && self.found.first().is_none_or(|best| key(&(id, *request)) < key(best))
            }
        }
    }
}

impl Listener for TransactionFinder {
    fn request(&mut self, sm: u16, request: &Request) {
        if path(request).is_none() {
            return;
        }
        if self.numbers.len() <= sm as usize {
            self.numbers.resize(sm as usize + 1, 0);
        }
        // The numbers are those of `Requests`, so an id of `--hist` finds its request here.
        let number = &mut self.numbers[sm as usize];
        let id = RequestId { sm, number: *number };
        *number += 1;
        if self.is_better(id, request) {
            let others = self
                // A request with the same fill may have returned before the best one was known.
                .recent
                .iter()
                .filter(|(other, with)| share_fill((id.sm, request), (other.sm, with)));
            self.found = [(id, *request)].into_iter().chain(others.copied()).collect();
        } else if let Some((best, with)) = self.found.first()
            && share_fill((best.sm, with), (id.sm, request))
        {
            self.found.push((id, *request));
        }
        self.recent.push_back((id, *request));
        let oldest = returned(request).0.saturating_sub(SPREAD);
        while self.recent.pop_front_if(|(_, old)| returned(old).0 < oldest).is_some() {}
    }
}

/// True if two requests wait for the same fill, in the L1 or in the L2.
fn share_fill((sm, one): (u16, &Request), (other_sm, other): (u16, &Request)) -> bool {
    // A stamp that neither has is no match.
    let both = |stage| one.stamps.at(stage).is_some() && one.stamps.at(stage) == other.stamps.at(stage);
    one.line == other.line && (sm == other_sm && both(Stage::Response) || both(Stage::Hbm))
}

fn latency(request: &Request) -> u64 {
    end(request).since(begin(request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_components::proto::mem::{Packet, Stamps};

    /// A load of a line with these stamps, by stage.
    fn load(line: u64, stamps: &[(Stage, u64)]) -> Request {
        let mut packet = Packet::blank();
        packet.line = line;
        packet.stamps = Stamps::NONE;
        stamps
            .iter()
            .for_each(|&(stage, at)| packet.stamps.note(stage, Cycle(at)));
        Request::of(&packet, 0, (0, 0, 0))
    }

    /// A load that is issued in cycle `issue`. Its line arrives at the L1 in cycle `response`.
    fn miss(line: u64, issue: u64, response: u64) -> Request {
        let stamps = [Stage::Issue, Stage::L1, Stage::Response, Stage::Return];
        let cycles = [issue, issue + 5, response, response + 10];
        load(line, &stamps.into_iter().zip(cycles).collect::<Vec<_>>())
    }

    fn find(wanted: &str, requests: &[(u16, Request)]) -> Vec<String> {
        let mut finder = TransactionFinder::new(wanted.parse().unwrap(), Cycle(0)..Cycle(1_000));
        requests.iter().for_each(|(sm, request)| finder.request(*sm, request));
        finder.finish().iter().map(|(id, _)| id.to_string()).collect()
    }

    #[test]
    fn slowest_load_comes_with_the_loads_that_merged_with_its_miss() {
        let requests = [
            (0, miss(0x100, 10, 200)),
            // Merged with the slowest load: the same SM, line and fill.
            (0, miss(0x080, 30, 500)),
            (0, miss(0x080, 20, 500)),
            (0, miss(0x080, 40, 500)),
            // Another SM, and a later fill of the line.
            (1, miss(0x080, 25, 500)),
            (0, miss(0x080, 600, 900)),
        ];
        assert_eq!(find("slowest", &requests), ["sm0#2", "sm0#1", "sm0#3"]);
        assert_eq!(find("sm0#3", &requests), ["sm0#3", "sm0#2", "sm0#1"]);
        assert_eq!(find("sm1#0", &requests), ["sm1#0"]);
        assert_eq!(find("sm2#0", &requests), [""; 0]);
    }

    #[test]
    fn loads_of_two_sms_share_the_fill_of_the_l2() {
        let with_hbm = |mut request: Request, at| {
            request.stamps.note(Stage::Hbm, Cycle(at));
            request
        };
        let requests = [
            (0, with_hbm(miss(0x080, 10, 480), 200)),
            (1, with_hbm(miss(0x080, 20, 510), 200)),
            (2, with_hbm(miss(0x100, 20, 300), 200)),
        ];
        assert_eq!(find("slowest", &requests), ["sm1#0", "sm0#0"]);
    }

    #[test]
    fn window_limits_the_search_by_the_cycle_of_issue() {
        let requests = [(0, miss(0x080, 1_000, 5_000)), (0, miss(0x100, 999, 1_100))];
        assert_eq!(find("slowest", &requests), ["sm0#1"]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "fastest", "sm0", "sm0#", "smx#1", "0#1", "sm0#-1"] {
            let error = text.parse::<Wanted>().unwrap_err();
            assert!(
                error.starts_with("expected `slowest`, or a request such as `sm0#12`"),
                "{error}"
            );
        }
    }
}
