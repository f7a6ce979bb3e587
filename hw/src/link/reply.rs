//! Dialogues: of two links between a tile and a hub one carries what the tile says, the other what it is told in reply.
//!
//! ```text
//!   tile --- ask ---> hub       reply is visible no sooner than the latencies of both links after asking,
//!        <-- reply --           as long as the hub promises to send nothing else
//! ```
//!
//! The clock lets tiles run further ahead of a hub that promises that ([`crate::tile::Promise`]).

use super::OutPort;
use crate::time::Cycle;

/// Makes a dialogue of two links: what is sent on `reply` may answer what is sent on `ask`, whose receiver sends it. What is asked
/// takes the latency of its link and no more.
///
/// # Panics
/// If they do not lead from one tile to another and back, take different times, or the tile that asks does so elsewhere too.
pub fn dialogue<A, R>(ask: &mut OutPort<A>, reply: &mut OutPort<R>) {
    let (tile, hub) = (&ask.sender.0, &reply.sender.0);
    let path = &ask.config.path;
    let is_pair = ask.tile.identity() == hub.identity() && reply.tile.identity() == tile.identity();
    assert!(
        ask.is_remote && is_pair,
        "{path}: a dialogue needs a link to another tile and one back"
    );
    assert_eq!(
        ask.latency, reply.latency,
        "{path}: the ways of a dialogue take equally long"
    );
    assert!(tile.leash.tie(reply.latency.into()), "{path}: a tile asks one hub");
    hub.note_answering();
    // Whoever asks may be twice as far ahead of the hub as the longest link is long: more would be beyond the horizon.
    ask.longest = ask.latency;
    ask.hook().asks = true;
    reply.hook().replies = true;
}

impl<T> OutPort<T> {
    /// A message was sent that may be of a dialogue.
    pub(super) fn note_dialogue(&self, now: Cycle, asks: bool, replies: bool) {
        let visible = self.last_visible;
        if asks {
            self.sender.0.leash.asked(visible);
        }
        let reached = self.tile.leash.reached();
        assert!(
            !replies || visible >= reached,
            "{}, cycle {now}: a message visible in cycle {visible}, and its receiver, to which only replies were promised, has run up to \
             {reached}",
            self.config.path
        );
    }
}
