//! Figures of statements: what is counted when a command is complete, or has failed.
//!
//! The time of a command runs from the moment when its request was sent, or from the end of the
//! command before it in the same request, to the completion. It is that of the core's turns, so no
//! clock is read for it. Commands whose statement Refrain does not know, above all those of query
//! strings that are not prepared, count together for their pool.
//!
//! Not here: replies from the cache, which no server gave; commands of Refrain's own; and those of
//! clients that have left.

use refrain_pool::event::Level;
use refrain_pool::note_duration;

use crate::pipeline::outstanding::OutstandingRequest;
use crate::relay::pipe::Pipeline;
use crate::results::texts::without_literals;
use crate::state::client::statements::ClientStatements;

/// Counts a command of a client's that is complete, as this tag says.
#[inline]
pub(crate) fn count_command(
    pipe: &mut Pipeline<'_>,
    statements: &mut ClientStatements,
    entry: &OutstandingRequest,
    tag: &[u8],
) {
    let us = pipe.server.command_ends(pipe.now);
    let id = entry.statement | pipe.server.session.front.take_bound();
    let core = &mut pipe.core_state.protocol;
    core.figures.count(id, pipe.server.pool(), us, rows(tag));
    if us >= core.told_from_us {
        tell_duration(pipe, statements, id, us);
    }
}

/// Has the log tell of a command that took so many microseconds.
#[cold]
fn tell_duration(pipe: &mut Pipeline<'_>, statements: &mut ClientStatements, id: u64, us: u64) {
    let random = u32::from_le_bytes(pipe.core_state.random());
    let shared = &pipe.core_state.shared.protocol;
    if !pipe.ports.notes(Level::Info) || !shared.durations().tells(us, random) {
        return;
    }
    let text = statements.by_id(id).map(|it| without_literals(it.held.cached().statement.text()));
    let text = text.map_or_else(String::new, |text| format!(", statement {id}: {text}"));
    let detail = format!("{}.{:03} ms{text}", us / 1_000, us % 1_000);
    let pool = pipe.server.pool();
    if let Some(pool) = pipe.core_state.peek_pool(pool) {
        note_duration(pipe.ports, pool, detail);
    }
}

/// Counts a command, or another use of a statement, that has failed.
#[cold]
pub(crate) fn count_error(pipe: &mut Pipeline<'_>, entry: &OutstandingRequest) {
    if entry.statement != 0 || entry.action.is_for_client() {
        let (pool, front) = (pipe.server.pool(), &mut pipe.server.session.front);
        let id = entry.statement | front.take_bound();
        pipe.core_state.protocol.figures.count_error(id, pool);
    }
}

/// Returns the number of rows at the end of a tag; 0 if it has none.
#[inline]
fn rows(tag: &[u8]) -> u64 {
    let digits = tag.iter().rev().map(|byte| byte.wrapping_sub(b'0')).take_while(|it| *it < 10);
    let add = |(sum, unit): (u64, u64), it: u8| {
        (sum.wrapping_add(unit.wrapping_mul(it.into())), unit.wrapping_mul(10))
    };
    digits.fold((0, 1), add).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_at_the_end_of_a_tag() {
        let all = [("SELECT 1", 1), ("INSERT 0 250", 250), ("BEGIN", 0), ("", 0), ("COPY 10", 10)];
        all.into_iter().for_each(|(tag, due)| assert_eq!(rows(tag.as_bytes()), due, "{tag}"));
        // A server may say anything.
        assert_eq!(rows(b"9999999999999999999"), 9_999_999_999_999_999_999);
        assert_ne!(rows(&[b'9'; 100]), 0);
    }
}
