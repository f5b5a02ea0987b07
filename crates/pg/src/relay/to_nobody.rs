//! From a server to nobody: a job reads its answers, and the replies to a client that has left are
//! dropped.
//!
//! What the dropped replies say of the server is noted all the same: which statements it has, which
//! settings it reports, whether the schema has changed. So whoever gets the server next finds a
//! true record of it.

use refrain_pg_wire::back::{self as read, Fields, Status};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::{Header, write};
use refrain_sql::Tag;

use crate::ground::schema::DEFINES;
use crate::pipeline::outstanding::{
    Failed, FakeReply, Purpose, ReplyAction, RequestKind, Seq, Settled,
};
use crate::pipeline::purposes::{Done, OwnError, Rows};
use crate::relay::described::{described_there, parameters_described};
use crate::relay::pipe::Pipeline;
use crate::relay::reader::{Goes, Halt, LOOKED_INTO_MAX, Reader, ServerInput, rest_of};
use crate::relay::resend::{is_refused, may_be_repeated, messages, request};
use crate::relay::words::Words;
use crate::results::filling::reported_age;
use crate::settings::of_server::Reported;
use crate::settings::session::{AGE_REPORT, is_settable};
use crate::state::parts::intern_settings;

impl<'a> Reader<'a> for Pipeline<'a> {
    fn pipe(&mut self) -> &mut Pipeline<'a> {
        self
    }

    fn copy(&mut self, _: &[u8]) {}

    fn fake_reply(&mut self, _: FakeReply) {}

    fn make_final(&mut self, seq: Seq) {
        self.server.session.statements.settle(seq);
    }

    fn awaits_row(&mut self, length: usize) -> bool {
        self.server.is_at_work() && length <= LOOKED_INTO_MAX
    }

    fn begin_stream(&mut self, run: &mut ServerInput<'_>, header: Header) -> Result<(), Halt> {
        if !matches!(header.tag, back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE) {
            self.server.session.outstanding.settle(header.tag)?;
        }
        if let Some(job) = self.server.job_mut() {
            job.object();
        }
        let there = run.input.len() - run.at;
        self.server.inbox.expect(header.message_bytes() - there, rest_of(Goes::Nowhere));
        self.advance(run, there, Goes::Nowhere);
        Err(Halt::More)
    }

    fn row(&mut self, run: &mut ServerInput<'_>, length: usize, body: &[u8]) -> Result<(), Halt> {
        self.settled(run, back::DATA_ROW, length, body)
    }

    fn unasked(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        _: &[u8],
    ) -> Result<(), Halt> {
        if let Some(job) = self.server.job_mut().filter(|_| tag == back::NOTICE_RESPONSE) {
            job.object();
        }
        self.advance(run, length, Goes::Nowhere);
        Ok(())
    }

    fn reported(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<Goes, Halt> {
        self.note_state(name, value);
        if name == AGE_REPORT {
            if let Some(job) = self.server.job_mut() {
                job.note_age(reported_age(value));
            }
        } else if is_settable(name)
            && self.server.session.settings.report(name, value, None) == Reported::TooMuch
        {
            self.server.close_later();
        }
        Ok(Goes::Nowhere)
    }

    fn intern_reports(&mut self) {
        let Some(reported) = self.server.session.settings.take_reported() else { return };
        if reported.has_lost() {
            self.server.close_later();
        }
        let core_state = &mut *self.core_state;
        let settings = &mut self.server.session.settings;
        settings.were_reported(&reported, |edit| intern_settings(core_state, edit));
    }

    fn error(&mut self, words: &Words<'_>) -> Result<bool, Halt> {
        let fields = &words.fields;
        if fields.is_fatal() {
            self.note_last_words(fields);
            return Err(Halt::Fatal);
        }
        let failed = self.server.session.outstanding.fail()?;
        self.server.session.statements.undo(&failed);
        let own = failed.entry.action.own();
        if own.is_some_and(|own| own.done == Done::Reset) {
            self.server.close_later();
        }
        let syncs = own.is_some_and(|own| own.error == OwnError::RefuseSettings);
        if let Some(job) = self.server.job_mut() {
            job.fails(&failed.entry, fields);
            if job.asks_primary() {
                self.note_unsaid(fields);
            }
        }
        // A query that sets or resets settings has failed half-way: the server's settings are
        // unknown.
        if failed.entry.kind == RequestKind::Query && (syncs || self.server.is_at_work()) {
            self.server.session.soil();
        }
        if failed.open {
            // The server ignores everything up to a Sync, and the client never sent it.
            write::sync(self.out());
            self.owe_us(RequestKind::Sync, Purpose::Rollback, 0);
        } else {
            self.run_as_sent(&failed, fields);
            self.repeat(&failed, fields);
        }
        Ok(false)
    }

    fn ready(&mut self, run: &mut ServerInput<'_>, length: usize, body: &[u8]) -> Result<(), Halt> {
        let status = Status::read(body)?;
        let session = &mut self.server.session;
        let settled = session.outstanding.settle(back::READY_FOR_QUERY)?;
        // Nobody has looked at the completions of the transaction, so it may have done what its
        // texts say.
        if session.transaction.is_defining() && !session.outstanding.intersects(DEFINES) {
            session.transaction.change_schema();
        }
        self.becomes_ready(status);
        if settled.entry.action.own().is_some_and(|own| own.done == Done::Reset) {
            self.server.session.reset();
        }
        self.make_final(settled.seq);
        self.advance(run, length, Goes::Nowhere);
        if self.server.requests_behind() == 0 {
            self.fake_due(run);
        }
        Err(Halt::Ready)
    }

    fn settled(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        body: &[u8],
    ) -> Result<(), Halt> {
        let settled = self.server.session.outstanding.settle(tag)?;
        self.note_reply(&settled, tag, body);
        self.advance(run, length, Goes::Nowhere);
        if settled.done {
            self.make_final(settled.seq);
            self.fake_due(run);
        }
        // The client that had the COPY data has left.
        if tag == back::COPY_IN_RESPONSE { Err(Halt::Intruded) } else { Ok(()) }
    }
}

impl Pipeline<'_> {
    /// Notes what a reply says of the schema, and hands it to the server's job.
    fn note_reply(&mut self, settled: &Settled, tag: u8, body: &[u8]) {
        if tag == back::COMMAND_COMPLETE && refrain_sql::tag(read::command_tag(body)) == Tag::Ddl {
            // The client has left, but its change to the schema stays.
            self.pool().shared.protocol.begin_schema_version();
        }
        if let Some(job) = self.server.job_mut() {
            let registry = &self.core_state.shared.protocol.registry;
            job.hears(registry, &settled.entry, tag, body);
            let own = settled.entry.action.own();
            let syncs = own.is_some_and(|own| own.rows == Rows::Synced);
            if syncs && job.syncs_settings() && tag == back::DATA_ROW {
                self.settings_of_job(body);
            }
        }
        if tag == back::BIND_COMPLETE {
            self.server.session.front.run.bind();
        }
        if settled.entry.action == ReplyAction::Skip(Purpose::Shape) && settled.entry.statement != 0
        {
            match tag {
                back::PARAMETER_DESCRIPTION => parameters_described(self, body),
                back::ROW_DESCRIPTION | back::NO_DATA => {
                    described_there(self, &settled.entry, settled.seq, body);
                }
                _ => {}
            }
        }
        if matches!(tag, back::BIND_COMPLETE | back::ROW_DESCRIPTION | back::NO_DATA) {
            self.server.session.front.unnamed.answer();
        }
    }

    /// Reads the answer to the query that synced the settings for a job. If it shows other defaults
    /// than those known, the reply is not that of the clients who ask for it.
    #[cold]
    fn settings_of_job(&mut self, row: &[u8]) {
        let settings = &mut self.server.session.settings;
        let news = settings.were_reset(row, |edit| intern_settings(self.core_state, edit));
        if let Some(job) = self.server.job_mut().filter(|_| !news.is_empty()) {
            job.object();
            self.server.close_later();
        }
    }

    /// Runs a query string as the client sent it, if it was autoprepared and failed before it did
    /// anything. The client has left, but PostgreSQL would run its query all the same.
    fn run_as_sent(&mut self, failed: &Failed, fields: &Fields<'_>) {
        let run = &mut self.server.session.front.run;
        let repeated = run.under_way().is_some_and(|run| run.may_be_repeated(fields));
        if failed.entry.action != ReplyAction::Skip(Purpose::Autoprepare) || !repeated {
            return;
        }
        run.end();
        write::query(self.ports.out(self.server.conn()), self.server.session.front.run.text());
        self.owe_us(RequestKind::Query, Purpose::Autoprepare, 0);
    }

    /// Sends the messages again of an unnamed statement that ran as a named one and was refused.
    /// The client has left, but PostgreSQL would run them all the same.
    fn repeat(&mut self, failed: &Failed, fields: &Fields<'_>) {
        let session = &mut self.server.session;
        let run = session.front.unnamed.end().filter(|run| is_refused(run, &failed.entry));
        let Some(run) = run else { return };
        let repeats = may_be_repeated(&run, &session.outstanding, fields);
        let Some(statement) = run.repeats.filter(|_| repeats) else { return };
        let out = self.ports.out(self.server.conn());
        let behind = self.server.session.front.unnamed.behind().to_vec();
        write::parse(out, b"", statement.tail());
        out.extend_from_slice(&behind);
        self.owe_us(RequestKind::Parse, Purpose::Autoprepare, 0);
        for message in messages(&behind) {
            self.owe(request(&message, &statement, ReplyAction::Skip(Purpose::Autoprepare)));
        }
    }
}
