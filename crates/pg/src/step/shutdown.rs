//! The last segment of a client in a shutdown.
//!
//! A client may finish the transaction that it has begun, and gets no other. Whether a segment
//! belongs to that transaction is known when the segments before it are answered. So in a shutdown
//! Refrain reads one segment at a time.

use refrain_pg_wire::Header;
use refrain_pg_wire::tag::front;

use crate::pipeline::outstanding::{Copying, Outstanding};
use crate::state::parts::Client;

/// Returns the part of a client's input that may go to its server in a shutdown: the rest of the
/// segment under way, or one segment; `None` if the replies to the segments before it are still to
/// come.
#[cold]
pub(crate) fn last_segment<'a>(
    client: &Client,
    outstanding: &Outstanding,
    input: &'a [u8],
) -> Option<&'a [u8]> {
    let (rest, skips) = (client.inbox.rest as usize, client.session.reading.is_skipping());
    if outstanding.copying() != Copying::No {
        return Some(input);
    }
    if rest > 0 {
        return Some(&input[..rest.min(input.len())]);
    }
    if !skips && !outstanding.is_open() && !outstanding.is_empty() {
        return None;
    }
    Some(first_segment(input))
}

/// Returns the messages up to the first one that ends a segment, or all if none does.
fn first_segment(input: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Ok(Some(header)) = Header::parse(&input[at..]) {
        at += header.message_bytes();
        if at >= input.len() {
            break;
        }
        if matches!(header.tag, front::QUERY | front::SYNC | front::FUNCTION_CALL) {
            return &input[..at];
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_ends_behind_a_sync_a_query_or_a_function_call() {
        let (parse, sync) = (*b"P\0\0\0\x05x", *b"S\0\0\0\x04");
        let query = *b"Q\0\0\0\x06x\0";
        let all = [&parse[..], &sync, &query, &parse].concat();
        assert_eq!(first_segment(&all), [&parse[..], &sync].concat());
        assert_eq!(first_segment(&all[parse.len() + sync.len()..]), query);
        for whole in [&parse[..], &sync, &query[..6], b"", b"Q\0"] {
            assert_eq!(first_segment(whole), whole);
        }
    }
}
