//! The reply to a segment, as a client got it, and the part of it that is kept.

use std::ops::Range;

use refrain_wire::Header;
use refrain_wire::back::{Status, command_tag};
use refrain_wire::frame::HEADER_BYTES;
use refrain_wire::tag::back;

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

/// Looks at what a client has got since it sent its segment. `keeps_errors` is for the simulator
/// ([`refrain_cache::Bug::KeptError`]).
pub(crate) fn progress(sent: &[u8], keeps_errors: bool) -> Progress {
    let (mut at, mut begins, mut empty) = (0, 0, true);
    let mut ends = None;
    while let Ok(Some(header)) = Header::parse(&sent[at..]) {
        let next = at + header.message_bytes();
        let Some(body) = sent.get(at + HEADER_BYTES..next) else { break };
        match header.tag {
            back::PARSE_COMPLETE | back::BIND_COMPLETE if ends.is_none() && at == begins => {
                begins = next;
            }
            back::ROW_DESCRIPTION if at == begins => {}
            back::DATA_ROW if ends.is_none() => empty = false,
            back::COMMAND_COMPLETE
                if ends.is_none() && command_tag(body).starts_with(b"SELECT") =>
            {
                ends = Some(next);
            }
            back::ERROR_RESPONSE if keeps_errors && ends.is_none() => ends = Some(next),
            back::READY_FOR_QUERY => {
                let idle = matches!(Status::read(body), Ok(Status::Idle));
                return match ends {
                    Some(ends) if idle => Progress::Whole(Body { bytes: begins..ends, empty }),
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
    use refrain_wire::write;

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
            assert_eq!(progress(&sent[..cut], false), Progress::More);
        }
        let Progress::Whole(body) = progress(&sent, false) else { panic!("it is whole") };
        assert!(!body.empty);
        assert_eq!(body.bytes, 10..sent.len() - 6);
    }

    #[test]
    fn another_reply_is_not_kept() {
        for sent in [
            reply(b"SELECT 1", Status::Transaction),
            reply(b"SELECT 1", Status::Failed),
            reply(b"INSERT 0 1", Status::Idle),
        ] {
            assert_eq!(progress(&sent, false), Progress::Other);
        }
        let mut notice = reply(b"SELECT 1", Status::Idle);
        let ready = notice.split_off(notice.len() - 6);
        write::bare(&mut notice, back::NOTICE_RESPONSE);
        assert_eq!(progress(&[notice, ready].concat(), false), Progress::Other);
    }
}
