//! Passes: differences in what a reply says that are known, with reasons.

use crate::command::Due;
use crate::packet::Packet;
use crate::reply::{Reply, is_definition};

/// The names of all passes, with the reasons why they are no faults.
pub const PASSES: [(&str, &str); 7] = [
    (
        "asks-back",
        "what a session remembers of the statement before is gone if another client has had the \
         server since: error 3566 says so",
    ),
    (
        "unfit-execution",
        "servers see in the values what an execution lacks, and say one of two errors; the proxy \
         does not look at values, and knows types of an execution that a server has refused",
    ),
    (
        "kept-conditions",
        "MariaDB keeps the error of one statement through the next ones without tables, and no \
         server has an error that the proxy has said itself",
    ),
    (
        "row-count",
        "ROW_COUNT() is 0 behind a COM_PING, which the proxy sends behind errors and answers itself",
    ),
    (
        "collation-of-parameter",
        "on MySQL a parameter has the collation that the login or SET NAMES has named; a server \
         that gets the settings later has the character set's own one",
    ),
    (
        "schema-behind-reset",
        "MariaDB forgets with COM_RESET_CONNECTION which character set the schema has, until it is \
         named again, as the proxy does on another server",
    ),
    (
        "first-execution",
        "since MySQL 8.0.22 a parameter has the type of its first value that is not NULL, and on a \
         server of the proxy that has prepared the statement again another value is the first",
    ),
];

/// Whether a session has been reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reset {
    /// No.
    #[default]
    Never,
    /// Yes.
    Done,
    /// Yes, and behind that it has set what depends on the schema's character set.
    SetBehind,
}

/// A reply with its counterpart, as far as passes look at them.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The text that the command runs.
    pub text: &'a str,
    /// The direct reply.
    pub direct: &'a Reply,
    /// The proxied reply.
    pub proxied: &'a Reply,
    /// Whether the client has had an error that a proxy says itself.
    pub was_refused: bool,
    /// Whether the session has been reset.
    pub reset: Reset,
    /// Whether it is an execution without types.
    pub lacks_types: bool,
    /// Whether rows are to be fetched.
    pub has_cursor: bool,
    /// Whether a server goes by the first execution of a statement for good.
    pub fixes_types: bool,
    /// The number of the first packet that differs.
    pub at: usize,
}

/// Returns the pass that allows a difference, and whether the sessions can be compared further.
#[must_use]
pub fn pass(pair: Pair<'_>) -> Option<(usize, bool)> {
    let first = pair.proxied.packets.first();
    if first.and_then(Packet::error) == Some(3566) {
        let text = pair.text.to_ascii_lowercase();
        let is_read = text.starts_with("select") || text.starts_with("show");
        return Some((0, is_read && !text.contains(';') && !pair.has_cursor));
    }
    let is_unfit = |reply: &Reply| matches!(reply.error(), Some(1210 | 1232 | 1835 | 1243));
    if pair.direct.command == "Execute" && is_unfit(pair.direct) && is_unfit(pair.proxied) {
        return Some((1, true));
    }
    if pair.lacks_types && is_unfit(pair.direct) {
        return Some((1, false));
    }
    let shows = ["SHOW WARN", "SHOW ERR", "SHOW COUNT", "SELECT @@warning_count"];
    let shows = shows.iter().any(|beginning| pair.text.starts_with(beginning));
    if pair.was_refused && shows {
        return Some((2, true));
    }
    let packet = pair.direct.packets.get(pair.at)?;
    let is_row = (pair.at > 0 || pair.direct.due == Due::Rows)
        && !packet.is_error()
        && !is_definition(&packet.payload);
    let asks = |words: &str| pair.text.contains(words);
    let was_reset = pair.reset >= Reset::Done;
    let names_parameter = packet.payload.starts_with(b"\x03def\0\0\0\x01?")
        || is_definition(&packet.payload) && packet.payload.windows(3).any(|it| it == b"(?)");
    // The length of such a column is that of its value.
    let is_of_collation = is_definition(&packet.payload)
        && packet.payload.windows(22).any(|it| it == b"@@collation_connection");
    let is_literal = asks("_connection") || asks("COLLATION('a')");
    let is_collation = is_row && is_literal || is_of_collation;
    let is_parameter = pair.direct.command == "Execute" && names_parameter;
    match () {
        () if pair.fixes_types && is_parameter => Some((6, true)),
        () if is_row && asks("ROW_COUNT()") => Some((3, true)),
        () if is_row && asks("COLLATION(?)") => Some((4, true)),
        () if was_reset && asks("@@character_set_database") => Some((5, true)),
        () if was_reset && asks("SET CHARACTER SET") => Some((5, false)),
        () if pair.reset == Reset::SetBehind && is_collation => Some((5, false)),
        () => None,
    }
}
