//! Internal queries: queries of Refrain's own, amid a client's messages or in a job, whose replies
//! no client gets.
//!
//! They are extended messages under internal names, which are closed behind them. A Query would end
//! the transaction of the messages before it that have no Sync, and would drop the unnamed
//! statement and portal. An internal query that fails fails the client's transaction too, and the
//! client gets the error.

use std::sync::Arc;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::front;
use refrain_pg_wire::write;
use refrain_sql::Traits;

use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq};
use crate::relay::pipe::Pipeline;
use crate::settings::defaults::Defaults;
use crate::settings::guard;
use crate::settings::placeholders::is_placeholder;
use crate::settings::queries::Restores;
use crate::settings::session::Settings;

impl Pipeline<'_> {
    /// Sends an internal query behind the client's messages so far.
    pub(crate) fn run_internal(&mut self, text: &[u8], purpose: Purpose) {
        let name = self.core_state.shared.protocol.registry.internal();
        let tail = [text, &[0; 3]].concat();
        let out = self.ports.out(self.server.conn());
        // An earlier internal query that failed half-way may have left its statement.
        write::close_statement(out, &name);
        write::parse(out, &name, &tail);
        write::bind(out, &name, &name);
        write::execute(out, &name);
        write::close_portal(out, &name);
        write::close_statement(out, &name);
        use RequestKind::{Bind, Close, Execute, Parse};
        for kind in [Close, Parse, Bind, Execute, Close, Close] {
            self.owe_us(kind, purpose, 0);
        }
    }

    /// Sends a query for the session's settings, in a segment of its own unless the client's is
    /// open. A segment of its own names the mode of its transaction, and switches short timeouts
    /// off if there may be any (`hurried`).
    pub(crate) fn run_reading(&mut self, text: &[u8], hurried: bool) {
        let outstanding = &self.server.session.outstanding;
        let open = outstanding.is_open();
        if !open && outstanding.status() == Status::Idle {
            self.name_mode(Purpose::Guard);
            if hurried {
                self.run_internal(&guard::no_hurry(), Purpose::Guard);
            }
        }
        self.run_internal(text, Purpose::ReadSettings);
        if open {
            write::bare(self.out(), front::FLUSH);
        } else {
            self.end_segment(Purpose::ReadSettings);
        }
    }

    /// Has a transaction that is to begin wait for no other, and work on a standby.
    pub(crate) fn name_mode(&mut self, purpose: Purpose) {
        if guard::may_wait(self.server.session.settings.current()) {
            self.run_internal(guard::READ_COMMITTED, purpose);
        }
    }

    /// Notes that the server has a parameter of a user's own from now on.
    pub(crate) fn note_placeholder(&mut self, name: &[u8]) {
        self.server.session.settings.placeholders.add(name);
        self.pool().mark();
    }

    /// Counts a sync of the server's settings, and notes the parameters of users' own among them.
    pub(crate) fn syncs_settings(&mut self, settings: &Settings) {
        self.pool().counters.protocol.settings_synced += 1;
        if settings.leaves_placeholders {
            let names = settings.iter().map(|(name, _)| name);
            let placeholders = names.filter(|name| is_placeholder(name));
            placeholders.for_each(|name| self.note_placeholder(name));
        }
    }

    /// Sends the query that gives the server a client's settings and defaults, if it has others.
    /// With `checks`, the settings are those of a startup packet, which the server checks. Returns
    /// the number of the request if the server may refuse it.
    pub(crate) fn give_settings(
        &mut self,
        expected: &Arc<Settings>,
        defaults: &Defaults,
        checks: bool,
    ) -> Option<Seq> {
        let (text, may_fail) = self.server.session.settings.sync(expected, defaults, checks)?;
        write::query(self.out(), &text);
        let seq = self.owe_us(RequestKind::Query, Purpose::SyncSettings, 0);
        self.server.session.statements.forget_unnamed();
        self.syncs_settings(expected);
        self.close_if_brief();
        may_fail.then_some(seq)
    }

    /// Has the server closed behind its client if PostgreSQL is about to end an idle session with
    /// its settings: the end could take the next client's query with it.
    pub(crate) fn close_if_brief(&mut self) {
        if guard::is_brief(self.server.session.settings.current()) {
            self.server.close_later();
        }
    }

    /// Sends a query about objects that texts name, and ends the segment.
    pub(crate) fn run_question(&mut self, question: &[u8]) {
        self.run_internal(guard::OWN_OPERATORS, Purpose::SyncSettings);
        self.run_internal(question, Purpose::Verify);
        self.end_segment(Purpose::Verify);
    }

    /// Sends a Sync whose ReadyForQuery the client does not get.
    pub(crate) fn end_segment(&mut self, purpose: Purpose) {
        write::sync(self.out());
        self.owe_us(RequestKind::Sync, purpose, 0);
    }

    /// Gives the server an empty statement of this name, in place of any statement that had it.
    pub(crate) fn take_name(&mut self, name: &[u8]) -> Seq {
        let out = self.ports.out(self.server.conn());
        write::close_statement(out, name);
        write::parse(out, name, &[0; 3]);
        self.owe_us(RequestKind::Close, Purpose::Prepare, 0);
        self.owe_us(RequestKind::Parse, Purpose::Prepare, 0)
    }

    /// Restores startup settings, and ends the segment; `end` is what becomes of ReadyForQuery.
    pub(crate) fn restore_then(&mut self, first: &Restores, end: ReplyAction) -> Seq {
        let text = self.server.session.settings.restoring(first);
        self.run_internal(&text, Purpose::Restore);
        write::sync(self.out());
        self.owe(OutstandingRequest::new(RequestKind::Sync, end).with(Traits::RESET))
    }
}
