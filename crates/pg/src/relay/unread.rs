//! Texts that are longer than what Refrain reads before it sends them on.
//!
//! The rest of such a text streams through, and is looked at as it passes ([`refrain_sql::Rest`]).
//! A server does nothing before it has the whole string, so the conclusions are drawn once the last
//! byte has passed. A query string that is more than one long list of values may do anything:
//! Refrain looks at the session behind it, and the client's next message waits for its end. Of a
//! Parse that is too long to be kept, Refrain learns which custom parameters it may set. A
//! parameter whose name cannot be read ties the client to the server.

use refrain_sql::{Behind, Rest, Scan, Traits};

use crate::ground::ids::Segment;
use crate::pipeline::outstanding::Seq;
use crate::relay::effects::pin;
use crate::relay::learn::{may_change_settings_in, note_name};
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::relay::restore::{may_reset_unseen, restore_unseen};
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::unread::UnreadText;
use crate::state::options::looks_back;

/// The number of commands of a string of which it is not known.
const ANY_COMMANDS: u32 = u32::MAX;

/// Begins to watch the rest of a query string whose `beginning` has been sent as this request.
#[cold]
pub(crate) fn watch_rest(
    session: &mut ClientSession,
    beginning: &[u8],
    scan: &Scan,
    request: (Seq, Segment),
) {
    let backslash = session.settings.reads_backslash();
    let rest = Rest::behind(beginning, scan, backslash);
    session.unread = Some(Box::new(UnreadText::new(rest, Some(request))));
}

/// Begins to watch a Parse that is not kept, of which this has arrived.
#[cold]
pub(crate) fn watch_parse(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
) {
    let rest = Rest::behind(&[], &refrain_sql::scan(&[]), false);
    session.unread = Some(Box::new(UnreadText::new(rest, None)));
    see_rest(pipe, session, message.body(), message.complete);
}

/// Looks at a piece of the rest, which is passed on now.
#[cold]
pub(crate) fn see_rest(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    piece: &[u8],
    is_last: bool,
) {
    let Some(unread) = &mut session.unread else { return };
    unread.see(piece);
    if !is_last {
        return;
    }
    let Some(unread) = session.unread.take() else { return };
    let query = unread.query;
    let Behind::Anything { names, unreadable, resets } = unread.end() else { return };
    if let Some((seq, segment)) = query {
        may_do_anything(pipe, session, seq, segment);
        may_reset_unseen(session, resets.iter().map(Vec::as_slice));
        if session.reading.unseen.is_some() {
            restore_unseen(pipe, session, seq);
        }
    }
    names.iter().for_each(|name| note_name(pipe, session, name));
    if unreadable && looks_back(pipe.pool()) {
        pin(pipe, session, Pins::SETTINGS);
    }
}

/// Notes that the query string of a request may do anything.
fn may_do_anything(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    seq: Seq,
    segment: Segment,
) {
    pipe.owes_more(seq, Traits::UNREAD);
    pipe.server.session.settings.may_stick(true);
    may_change_settings_in(pipe, &mut session.settings, segment);
    if looks_back(pipe.pool()) {
        session.suspicion.look_later();
    }
    if !session.reading.has_barrier() {
        session.reading.bar(seq, ANY_COMMANDS, None);
    }
}
