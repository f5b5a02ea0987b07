//! Passes: differences in what a reply says that are known, with reasons.

use crate::command::Command;
use crate::packet::Packet;
use crate::reply::Reply;

/// The names of all passes, with the reasons why they are no faults.
pub const PASSES: [(&str, &str); 1] = [(
    "asks-back",
    "what a session remembers of the statement before is gone if another client has had the \
     server since: error 3566 says so",
)];

/// A reply with its counterpart, as far as passes look at them.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The command that they answer.
    pub command: &'a Command,
    /// The direct reply.
    pub direct: &'a Reply,
    /// The proxied reply.
    pub proxied: &'a Reply,
    /// The number of the first packet that differs.
    pub at: usize,
}

/// Returns the pass that allows a difference, and whether the sessions can be compared further.
#[must_use]
pub fn pass(pair: Pair<'_>) -> Option<(usize, bool)> {
    let first = pair.proxied.packets.first();
    if first.and_then(Packet::error) == Some(3566) {
        let has_effects = pair.command.text().is_some_and(|text| {
            let text = text.to_ascii_lowercase();
            text.contains(';') || !(text.starts_with("select") || text.starts_with("show"))
        });
        return Some((0, !has_effects));
    }
    None
}
