//! The reply to a segment, as a client got it, and the part of it that is kept.

use std::ops::Range;

use refrain_pg_wire::Header;
use refrain_pg_wire::back::{Status, command_tag};
use refrain_pg_wire::frame::HEADER_BYTES;
use refrain_pg_wire::tag::back;

/// The part of a reply that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// Its place: RowDescription if there is one, rows, and CommandComplete.
    pub(crate) bytes: Range<usize>,
    /// Whether there are no rows.
    pub(crate) empty: bool,
}

/// The state of a reply, by what its client has got of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    More,
    /// All, and it may be kept.
    Whole(Body),
    /// Something that is not kept: an error, a notice, a report, or the reply to another kind of
    /// request.
    Other,
}

/// Looks at what a client has got since it sent a segment that runs so many statements.
/// `keeps_errors` is for the simulator ([`refrain_cache::Bug::KeptError`]).
pub(crate) fn progress(sent: &[u8], statements: usize, keeps_errors: bool) -> Progress {
    let (mut at, mut begins, mut empty) = (0, None, true);
    // Where the messages of the statement begin that are no answers to Parse and Bind, where it
    // ends, and how many have ended.
    let (mut part, mut ends, mut ended) = (0, None, 0);
    while let Ok(Some(header)) = Header::parse(&sent[at..]) {
        let next = at + header.message_bytes();
        let Some(body) = sent.get(at + HEADER_BYTES..next) else { break };
        let is_head = matches!(header.tag, back::PARSE_COMPLETE | back::BIND_COMPLETE);
        if is_head && ends == Some(at) && ended < statements {
            (ends, part) = (None, at);
        }
        if !is_head {
            begins.get_or_insert(at);
        }
        match header.tag {
            _ if is_head && ends.is_none() && at == part => part = next,
            back::ROW_DESCRIPTION if at == part => {}
            back::DATA_ROW if ends.is_none() => empty = false,
            back::COMMAND_COMPLETE
                if ends.is_none() && command_tag(body).starts_with(b"SELECT") =>
            {
                (ends, ended) = (Some(next), ended + 1);
            }
            back::ERROR_RESPONSE if keeps_errors && ends.is_none() => {
                (ends, ended) = (Some(next), statements);
            }
            back::READY_FOR_QUERY => {
                let idle = matches!(Status::read(body), Ok(Status::Idle));
                return match (begins, ends) {
                    (Some(begins), Some(ends)) if idle && ended == statements => {
                        Progress::Whole(Body { bytes: begins..ends, empty })
                    }
                    _ => Progress::Other,
                };
            }
            _ => return Progress::Other,
        }
        at = next;
    }
    Progress::More
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_pg_wire::write;

    fn reply(tag: &[u8], status: Status) -> Vec<u8> {
        let mut out = Vec::new();
        write::bare(&mut out, back::PARSE_COMPLETE);
        write::bare(&mut out, back::BIND_COMPLETE);
        write::message(&mut out, back::ROW_DESCRIPTION, |out| out.extend_from_slice(&[0, 0]));
        write::message(&mut out, back::DATA_ROW, |out| out.extend_from_slice(&[0, 0]));
        write::command_complete(&mut out, tag);
        write::ready(&mut out, status);
        out
    }

    #[test]
    fn a_whole_reply_is_kept_without_what_belongs_to_its_request() {
        let sent = reply(b"SELECT 1", Status::Idle);
        for cut in 0..sent.len() {
            assert_eq!(progress(&sent[..cut], 1, false), Progress::More);
        }
        let Progress::Whole(body) = progress(&sent, 1, false) else { panic!("it is whole") };
        assert!(!body.empty);
        assert_eq!(body.bytes, 10..sent.len() - 6);
    }

    #[test]
    fn the_reply_to_several_statements_is_kept_with_the_heads_of_all_but_the_first() {
        let one = reply(b"SELECT 1", Status::Idle);
        let sent = [&one[..one.len() - 6], &one].concat();
        for cut in 0..sent.len() {
            assert_eq!(progress(&sent[..cut], 2, false), Progress::More);
        }
        let Progress::Whole(body) = progress(&sent, 2, false) else { panic!("it is whole") };
        assert_eq!(body.bytes, 10..sent.len() - 6);
        for statements in [1, 3] {
            assert_eq!(progress(&sent, statements, false), Progress::Other);
        }
    }

    #[test]
    fn another_reply_is_not_kept() {
        for sent in [
            reply(b"SELECT 1", Status::Transaction),
            reply(b"SELECT 1", Status::Failed),
            reply(b"INSERT 0 1", Status::Idle),
        ] {
            assert_eq!(progress(&sent, 1, false), Progress::Other);
        }
        let mut notice = reply(b"SELECT 1", Status::Idle);
        let ready = notice.split_off(notice.len() - 6);
        write::bare(&mut notice, back::NOTICE_RESPONSE);
        assert_eq!(progress(&[notice, ready].concat(), 1, false), Progress::Other);
    }
}
