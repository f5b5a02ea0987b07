//! Replies to unnamed statements that run as named ones.
//!
//! A named statement that is refused before its values are bound has done nothing. Outside a
//! transaction Refrain then parses the text as the client sent it, and sends the client's messages
//! again: PostgreSQL may have refused the plan of an older schema, which a new Parse would not
//! have had. Within a transaction the error stands.

use refrain_wire::back::Fields;
use refrain_wire::front::{self, Target};
use refrain_wire::tag::front as tag;
use refrain_wire::write;

use crate::autoprepare::verify::Ran;
use crate::normalized::compare_times::Turn;
use crate::normalized::run::{Again, is_passing};
use crate::normalized::unnamed_run::UnnamedRun;
use crate::pipeline::outstanding::{
    Outstanding, OutstandingRequest, Purpose, ReplyAction, RequestKind,
};
use crate::relay::copies::Called;
use crate::relay::link::Link;
use crate::relay::message::Message;
use crate::state::server::ServerSession;
use crate::statements::statement::Statement;

impl Link<'_> {
    /// Handles an error while an unnamed statement runs. True if the client's messages now run as
    /// they were sent.
    pub(crate) fn unnamed_runs_again(
        &mut self,
        entry: &OutstandingRequest,
        fields: &Fields<'_>,
    ) -> bool {
        let session = &self.pipe.server.session;
        let Some(run) = session.front.unnamed.under_way() else { return false };
        let place = run.place;
        let alone = run.repeats.is_some();
        let refused = is_refused(run, entry);
        let repeats = run
            .repeats
            .clone()
            .filter(|_| refused && may_be_repeated(run, &session.outstanding, fields));
        let changed = refused && self.refutes(place, fields, alone);
        let sqlstate = fields.sqlstate().first_chunk().copied();
        if let (Some(statement), Some(sqlstate)) = (repeats, sqlstate)
            && self.repeat(&statement, Again { sqlstate, changed })
        {
            return true;
        }
        let held = self.held_replies().unwrap_or_default();
        self.pipe.ports.out(self.client.conn()).extend_from_slice(&held);
        self.pipe.server.session.front.unnamed.fail();
        false
    }

    /// Notes that the server has described a statement: from now on the client has replies.
    pub(crate) fn run_is_described(&mut self) {
        self.pipe.server.session.front.unnamed.answer();
    }

    /// Whether to hold back the first half of the answer to a Describe.
    pub(crate) fn holds_parameters(&mut self, entry: &OutstandingRequest, reply: &[u8]) -> bool {
        entry.action.is_for_client() && self.pipe.server.session.front.unnamed.hold_reply(reply)
    }

    /// Sends the client's messages again, behind a Parse of the text as the client sent it. False
    /// if the client's unnamed statement is another one.
    fn repeat(&mut self, statement: &Statement, again: Again) -> bool {
        let own = self.client.session.statements.unnamed().map(|own| own.held.cached().clone());
        let Some(cached) = own.filter(|cached| cached.statement.id == statement.id) else {
            return false;
        };
        // The client has sent one Sync, and gets one ReadyForQuery.
        self.pipe.server.session.outstanding.skip_first(Purpose::Autoprepare);
        let seq = self.send_parse_unnamed(&cached, ReplyAction::Skip(Purpose::Prepare));
        let parsed = self.client_statement(cached, Called::Unnamed);
        let outstanding = &self.pipe.server.session.outstanding;
        self.client.session.statements.replace_unnamed(seq, Some(parsed), outstanding);
        let behind = self.pipe.server.session.front.unnamed.behind().to_vec();
        self.pipe.out().extend_from_slice(&behind);
        for message in messages(&behind) {
            let entry = request(&message, statement, ReplyAction::Forward);
            let seq = self.pipe.server.session.outstanding.next_seq();
            match entry.kind {
                RequestKind::DescribeStatement => self.pipe.asks(Called::Unnamed, entry),
                _ => drop(self.pipe.owe(entry)),
            }
            if entry.kind == RequestKind::Execute
                && let Ok(portal) = front::execute_portal(message.body())
            {
                self.client.session.evidence.execute(portal, seq);
            }
        }
        self.pipe.pool().counters.protocol.auto_fallbacks += 1;
        self.pipe.server.session.front.unnamed.repeat(again);
        true
    }

    /// Ends an unnamed statement that autoprepare has looked at. If the client only asked what it
    /// returns, the time of its next Bind will count.
    pub(crate) fn unnamed_ends(&mut self, took: u64) {
        let run = self.pipe.server.session.front.unnamed.end();
        let Some(run) = run.filter(|run| !run.failed) else { return };
        if run.executes || run.again.is_some() {
            self.ran(
                &Ran { place: run.place, turn: run.turn, again: run.again, unnamed: true },
                took,
            );
        } else {
            self.client.session.expected_run = Some((run.place, run.turn));
        }
    }
}

/// Whether the error is the refusal of a statement that runs as a named one.
fn is_refused(run: &UnnamedRun, entry: &OutstandingRequest) -> bool {
    let uses = matches!(entry.kind, RequestKind::Bind | RequestKind::DescribeStatement);
    run.turn == Turn::Prepared && uses && entry.action == ReplyAction::Forward
}

/// Whether the client's messages may be sent again after this error: none has had a reply or an
/// effect, and the server has got all of them, so that it goes on behind their Sync.
fn may_be_repeated(run: &UnnamedRun, outstanding: &Outstanding, fields: &Fields<'_>) -> bool {
    let synced = outstanding.front().is_some_and(|next| next.kind == RequestKind::Sync);
    run.repeats.is_some() && synced && !is_passing(fields)
}

/// Returns the messages that a server gets again after an error, if the client has left: PostgreSQL
/// would run them all the same. Notes their requests.
pub(crate) fn repeat_for_nobody(
    session: &mut ServerSession,
    entry: &OutstandingRequest,
    fields: &Fields<'_>,
) -> Option<Vec<u8>> {
    let run = session.front.unnamed.end().filter(|run| is_refused(run, entry))?;
    let statement = run.repeats.clone();
    let statement = statement.filter(|_| may_be_repeated(&run, &session.outstanding, fields))?;
    let mut out = Vec::new();
    write::parse(&mut out, b"", &statement.tail);
    out.extend_from_slice(session.front.unnamed.behind());
    let ours = ReplyAction::Skip(Purpose::Autoprepare);
    session.outstanding.push(OutstandingRequest::new(RequestKind::Parse, ours));
    for message in messages(session.front.unnamed.behind()) {
        session.outstanding.push(request(&message, &statement, ours));
    }
    Some(out)
}

/// Reads the messages that a client sent in one piece, from its Parse to its Sync.
fn messages(mut input: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let message = Message::read(input).ok().flatten()?;
        input = &input[message.bytes.len()..];
        Some(message)
    })
}

/// Returns the request that such a message makes when it is sent again.
fn request(
    message: &Message<'_>,
    statement: &Statement,
    action: ReplyAction,
) -> OutstandingRequest {
    let (id, traits) = (statement.id, statement.scan.traits);
    let of = |kind| OutstandingRequest::new(kind, action);
    match (message.header.tag, Target::read(message.body())) {
        (tag::BIND, _) => of(RequestKind::Bind).about(id).called(b""),
        (tag::DESCRIBE, Ok(Target::Statement(_))) => {
            of(RequestKind::DescribeStatement).about(id).called(b"")
        }
        (tag::DESCRIBE, _) => of(RequestKind::DescribePortal),
        (tag::EXECUTE, _) => of(RequestKind::Execute).with(traits),
        (tag::CLOSE, _) => of(RequestKind::Close),
        _ => of(RequestKind::Sync),
    }
}
