//! Texts that are longer than what Refrain reads before it sends them on.
//!
//! The rest of such a text streams through, and is looked at as it passes
//! ([`refrain_sql::Rest`]). A server does nothing before it has the whole string, so the
//! conclusions are drawn once the last byte has passed. A query string that is more than one long
//! list of values may do anything: Refrain looks at the session behind it, and the client's next
//! message waits for its end. Of a Parse that is too long to be kept, Refrain learns which custom
//! parameters it may set. A parameter whose name cannot be read ties the client to the server.

use refrain_sql::{Behind, Rest, Scan, Traits};

use crate::ground::ids::Segment;
use crate::pipeline::outstanding::Seq;
use crate::relay::link::Link;
use crate::relay::message::Message;
use crate::state::client::pins::Pins;
use crate::state::client::unread::UnreadText;
use crate::state::options::looks_back;

/// The number of commands of a string of which it is not known.
const ANY_COMMANDS: u32 = u32::MAX;

impl Link<'_> {
    /// Begins to watch the rest of a query string whose `beginning` has been sent as this request.
    #[cold]
    pub(crate) fn watch_rest(&mut self, beginning: &[u8], scan: &Scan, request: (Seq, Segment)) {
        let backslash = self.client.session.settings.reads_backslash();
        let rest = Rest::behind(beginning, scan, backslash);
        self.client.session.unread = Some(Box::new(UnreadText::new(rest, Some(request))));
    }

    /// Begins to watch a Parse that is not kept, of which this has arrived.
    #[cold]
    pub(crate) fn watch_parse(&mut self, message: &Message<'_>) {
        let rest = Rest::behind(&[], &refrain_sql::scan(&[]), false);
        self.client.session.unread = Some(Box::new(UnreadText::new(rest, None)));
        self.see_rest(message.body(), message.complete);
    }

    /// Looks at a piece of the rest, which is passed on now.
    #[cold]
    pub(crate) fn see_rest(&mut self, piece: &[u8], is_last: bool) {
        let Some(unread) = &mut self.client.session.unread else { return };
        unread.see(piece);
        if !is_last {
            return;
        }
        let Some(unread) = self.client.session.unread.take() else { return };
        let query = unread.query;
        let Behind::Anything { names, unreadable, resets } = unread.end() else { return };
        if let Some((seq, segment)) = query {
            self.may_do_anything(seq, segment);
            self.may_reset_unseen(resets.iter().map(Vec::as_slice));
            if self.client.session.reading.unseen.is_some() {
                self.restore_unseen(seq);
            }
        }
        names.iter().for_each(|name| self.note_name(name));
        if unreadable && looks_back(self.pipe.pool()) {
            self.pin(Pins::SETTINGS);
        }
    }

    /// Notes that the query string of a request may do anything.
    fn may_do_anything(&mut self, seq: Seq, segment: Segment) {
        self.pipe.owes_more(seq, Traits::UNREAD);
        self.pipe.server.session.settings.may_stick(true);
        self.may_change_settings_in(segment);
        if looks_back(self.pipe.pool()) {
            self.client.session.suspicion.look_later();
        }
        if !self.client.session.reading.has_barrier() {
            self.client.session.reading.bar(seq, ANY_COMMANDS, None);
        }
    }
}
