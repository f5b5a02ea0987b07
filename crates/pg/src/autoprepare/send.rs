//! Simple queries as prepared statements: from the client to the server; and the advice about any
//! text.
//!
//! A text whose normalized query is prepared is sent as Bind, Describe, Execute and Sync. The
//! client gets the replies of a query string: BindComplete and NoData are skipped. The client's
//! next message waits for these replies, since the text itself may have to be run after all: see
//! [`crate::relay::run`].
//!
//! Autoprepare takes a text if nothing is outstanding before it, the transaction has not failed,
//! the settings under which the server reads it are known, and it leaves nothing behind in the
//! session.
//!
//! This module prepares nothing. A text runs prepared if the server has its statement. Any other
//! text runs as it was sent, and Refrain notes the statement that the server lacked, for a job: see
//! [`crate::step::jobs`].

use std::rc::Rc;

use refrain_sql::normalize::{self, Plan, Span};
use refrain_sql::{Kind, Scan, Traits};
use refrain_wire::back::Status;
use refrain_wire::tag::front;
use refrain_wire::write;

use crate::normalized::queries::{Advice, Sight};
use crate::normalized::query::{Bounds, Place};
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::relay::learn::read_settings;
use crate::relay::link::{Link, Stop};
use crate::relay::look::is_suspect;
use crate::relay::message::Message;
use crate::state::client::pins::Pins;
use crate::state::options::{autoprepares, bounds};
use crate::state::parts::Action;
use crate::state::requests::{Case, Request};
use crate::statements::of_core::CachedStatement;

/// Effects on the session that do not keep a text from being prepared.
const HARMLESS: Traits = Traits::SEQUENCE_STATE;

impl Link<'_> {
    /// Runs a simple query as a prepared statement, if that is known to be right; `None` for any
    /// other.
    #[inline]
    pub(crate) fn autoprepare(
        &mut self,
        message: &Message<'_>,
        text: &[u8],
        scan: &Scan,
    ) -> Result<Option<usize>, Stop> {
        if !self.client.session.statements.are_managed() || !autoprepares(self.pipe.pool()) {
            return Ok(None);
        }
        self.look_at(message, text, scan)
    }

    fn look_at(
        &mut self,
        message: &Message<'_>,
        text: &[u8],
        scan: &Scan,
    ) -> Result<Option<usize>, Stop> {
        if !self.stands_alone(message) || !is_plain(scan) || !self.is_read_plainly() {
            return Ok(None);
        }
        // Startup settings that the text resets out of sight are restored behind a query string.
        if self.client.session.settings.have_startup()
            && is_suspect(&mut self.pipe, &self.client.session, scan)
        {
            return Ok(None);
        }
        let mut spans = std::mem::take(&mut self.pipe.core_state.protocol.spans);
        let most = self.pipe.pool().settings.options.autoprepare_max_literals as usize;
        let key = normalize::normalize(
            text,
            self.pipe.core_state.shared.protocol.registry.seed(),
            most,
            &mut spans,
        );
        let done = match key {
            Ok(key) => self.advised(message, text, &spans, key, scan.traits),
            Err(_) => Ok(None),
        };
        self.pipe.core_state.protocol.spans = spans;
        done
    }

    /// Whether a message has arrived in full, no request of the client is outstanding before it,
    /// and the transaction has not failed. If the server has requests behind that of its holder,
    /// they are those of other clients: the client has just joined them.
    pub(crate) fn stands_alone(&self, message: &Message<'_>) -> bool {
        let outstanding = &self.pipe.server.session.outstanding;
        message.complete
            && (self.pipe.server.requests_behind() > 0 || outstanding.syncs_settings())
            && !outstanding.is_open()
            && outstanding.status() != Status::Failed
            && self.pipe.server.session.last().run.under_way().is_none()
            && self.pipe.server.session.last().unnamed.under_way().is_none()
    }

    /// Whether each byte of a text means what it looks like, and the text means the same as outside
    /// its transaction: no settings end with the transaction, and no transaction under way may
    /// change the schema.
    pub(crate) fn is_read_plainly(&mut self) -> bool {
        let plain = self
            .client
            .session
            .settings
            .current()
            .reads
            .is_plain(self.pipe.server.session.settings.encoding());
        if !plain || self.client.session.settings.have_changed_locally() {
            return false;
        }
        let free = self.pipe.server.session.outstanding.status() == Status::Idle;
        free || !self.client.session.settings.are_queried()
            && !self.pipe.pool().shared.protocol.is_being_defined()
    }

    /// Handles a text as its normalized query advises.
    fn advised(
        &mut self,
        message: &Message<'_>,
        text: &[u8],
        spans: &[Span],
        key: normalize::Key,
        traits: Traits,
    ) -> Result<Option<usize>, Stop> {
        if !self.knows_settings()? {
            return Ok(None);
        }
        let seen = Seen { text, spans, key, tail: None, values: text };
        match self.advice(&seen)? {
            Advice::Watch(place) => {
                self.watch(place);
                Ok(None)
            }
            Advice::Run(place, plan, cached) => {
                let run = Prepared { place, plan: &plan, cached: &cached };
                let done = self.run(&run, text, spans, traits)?;
                Ok(done.then_some(message.bytes.len()))
            }
            _ => Ok(None),
        }
    }

    /// Asks for advice about a text, and follows it as far as it does not say how the text runs: to
    /// have the text analysed, or to wait.
    pub(crate) fn advice(&mut self, seen: &Seen<'_>) -> Result<Advice, Stop> {
        // A role or a path of the moment decides what names mean.
        if self.client.session.settings.beside().is_some() {
            return Ok(Advice::Pass);
        }
        let Seen { text, spans, key, tail, values } = *seen;
        let free = self.pipe.server.session.outstanding.status() == Status::Idle;
        let (own, now) = (self.is_like_any(), self.pipe.now);
        let pool = self.pipe.core_state.pool_in_use(self.pipe.server.pool());
        let settings = self.client.session.settings.current();
        let bounds = bounds(pool);
        let schema_version = pool.shared.protocol.schema_changes();
        let sight =
            Sight { text, spans, key, tail, values, settings, schema_version, now, free, own };
        match pool.protocol.normalized_queries.look(&sight, &bounds) {
            Advice::Wait => Err(self.wait_for_news()),
            Advice::Analyse => {
                let pool = self.pipe.server.pool();
                let case = Case { pool, key, text: text.into(), spans: spans.into() };
                self.pipe.ports.act(Action::Ask(Request::Analyse(Box::new(case))));
                if bounds.is_eager() { Err(self.wait_for_news()) } else { Ok(Advice::Pass) }
            }
            Advice::Due if self.waits_for_job(&bounds) => Err(self.wait_for_job()),
            advice => Ok(advice),
        }
    }

    /// Whether the settings under which the server reads a text are known. If not, and outside of
    /// transactions, asks for them.
    fn knows_settings(&mut self) -> Result<bool, Stop> {
        let Some(since) = self.client.session.settings.unknown_since() else { return Ok(true) };
        let idle = self.pipe.server.session.outstanding.status() == Status::Idle;
        if !idle || self.client.session.pins.has(Pins::SETTINGS) {
            return Ok(false);
        }
        // What a text calls is noted behind the Sync of the statement that ran in its place: in a
        // segment of which nothing was sent.
        let outstanding = &self.pipe.server.session.outstanding;
        debug_assert!(
            outstanding.is_over(since.segment) || outstanding.is_empty(),
            "nothing is owed"
        );
        read_settings(&mut self.pipe, &self.client.session.settings);
        Err(Stop::Replies)
    }

    /// Whether the client's texts mean what they mean to any other with its settings. What a
    /// session has of its own, a temporary table for one, says nothing of another client's text.
    fn is_like_any(&self) -> bool {
        self.client.session.settings.are_known()
            && !self.client.session.suspicion.is_due()
            && self.client.session.pins.is_empty()
    }

    /// Makes the client wait for news of a normalized query.
    fn wait_for_news(&mut self) -> Stop {
        let conn = self.client.conn();
        // A tick reads the client again if no news comes.
        self.pipe.core_state.pool(self.pipe.server.pool()).protocol.wait_for_news(conn);
        Stop::Replies
    }

    /// Whether the client is to wait until a job is done, and may: outside of any transaction.
    fn waits_for_job(&mut self, bounds: &Bounds) -> bool {
        let now = self.pipe.now;
        bounds.is_eager()
            && self.pipe.server.session.outstanding.status() == Status::Idle
            && self.is_like_any()
            && !self.pipe.pool().protocol.normalized_queries.rests(now)
    }

    /// Makes the client wait for a job, which its own server does once nothing is outstanding.
    fn wait_for_job(&mut self) -> Stop {
        if self.pipe.server.session.outstanding.quiescent().is_some() {
            Stop::Job
        } else {
            Stop::Replies
        }
    }

    /// Notes a text that runs by the simple protocol, to measure its time.
    fn watch(&mut self, place: Place) {
        self.pipe.server.session.last_mut().run.watch(place);
    }

    /// Runs a statement in place of a text. False if the server lacks the statement, or a value
    /// cannot be read.
    fn run(
        &mut self,
        run: &Prepared<'_>,
        text: &[u8],
        spans: &[Span],
        traits: Traits,
    ) -> Result<bool, Stop> {
        let alone = self.pipe.server.session.outstanding.status() == Status::Idle;
        let statement = &run.cached.statement;
        if self.pipe.server.session.has(statement).is_none() {
            self.lacks(run.place, run.cached)?;
            self.watch(run.place.without_choice());
            return Ok(false);
        }
        let mut values = std::mem::take(&mut self.pipe.core_state.protocol.scratch);
        values.clear();
        let utf8 = self.client.session.settings.current().reads.encoding.is_utf8();
        let bindable = write_values(run.plan, text, spans, utf8, &mut values);
        if bindable {
            self.pipe.count_hit();
            self.send_run(run.cached, &values, alone, traits);
            let writes = !run.plan.mentions.writes.is_empty();
            let planned = self.pipe.server.session.statements.is_planned(statement.id);
            let place = if planned { run.place.on_new_server() } else { run.place };
            self.pipe.server.session.last_mut().run.begin(place, alone, writes, text);
        }
        self.pipe.core_state.protocol.scratch = values;
        Ok(bindable)
    }

    /// Notes a statement that the server lacks, to be prepared once no client holds the server, if
    /// it is used often enough.
    #[cold]
    pub(crate) fn lacks(&mut self, place: Place, cached: &Rc<CachedStatement>) -> Result<(), Stop> {
        let statement = &cached.statement;
        let servers = statement.counts().1;
        let pool = self.pipe.pool();
        let bounds = bounds(pool);
        let worth = pool.protocol.normalized_queries.is_worth_a_server(place, servers, &bounds);
        if worth && self.is_like_any() {
            self.pipe.server.session.wishes.add(place, statement, &cached.settings);
            if self.waits_for_job(&bounds) {
                return Err(self.wait_for_job());
            }
        }
        self.pipe.count_miss();
        Ok(())
    }

    /// Sends the messages that run a statement.
    fn send_run(
        &mut self,
        cached: &Rc<CachedStatement>,
        values: &[u8],
        alone: bool,
        traits: Traits,
    ) {
        cached.count_use();
        let statement = &cached.statement;
        let generation = statement.generation();
        let out = self.pipe.ports.out(self.pipe.server.conn());
        write::message(out, front::BIND, |out| {
            out.push(0);
            statement.write_name(out, generation);
            out.push(0);
            out.extend_from_slice(values);
        });
        write::describe_portal(out, b"");
        write::execute(out, b"");
        if !alone {
            // An open portal would keep its tables open; a query string leaves no portal behind.
            write::close_portal(out, b"");
        }
        write::sync(out);
        let ours = ReplyAction::Skip(Purpose::Autoprepare);
        self.pipe.owe(OutstandingRequest::new(RequestKind::Bind, ours).about(statement.id));
        self.pipe.owe(
            OutstandingRequest::new(RequestKind::DescribePortal, ReplyAction::Rows)
                .about(statement.id),
        );
        self.pipe.owe(
            OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward)
                .about(statement.id)
                .with(traits),
        );
        if !alone {
            self.pipe.owe(OutstandingRequest::new(RequestKind::Close, ours));
        }
        self.pipe.owe(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        // Any query string drops the unnamed statement. The server still has it: see
        // `hide_unnamed`.
        self.client.session.statements.drop_unnamed_now(&self.pipe.server.session.outstanding);
        self.pipe.pool().counters.protocol.auto_hits += 1;
    }
}

/// A text about which autoprepare is asked: see [`Sight`].
pub(crate) struct Seen<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) spans: &'a [Span],
    pub(crate) key: normalize::Key,
    pub(crate) tail: Option<&'a [u8]>,
    pub(crate) values: &'a [u8],
}

/// A statement that is to be run in the place of a text.
struct Prepared<'a> {
    place: Place,
    plan: &'a Plan,
    cached: &'a Rc<CachedStatement>,
}

/// Whether a text is one command that may be prepared.
pub(crate) fn is_plain(scan: &Scan) -> bool {
    let known = matches!(
        scan.kind,
        Kind::Select | Kind::Insert | Kind::Update | Kind::Delete | Kind::With | Kind::Other
    );
    known && HARMLESS.contains(scan.traits)
}

/// Appends the part of a Bind behind the names: all values, and the results, are in text format.
/// False if a value could not be read.
fn write_values(plan: &Plan, text: &[u8], spans: &[Span], utf8: bool, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(&[0; 4]);
    let mut count = 0_u16;
    for bound in plan.bound(spans) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        if bound.value(text, utf8, out).is_err() {
            return false;
        }
        let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        count = count.wrapping_add(1);
    }
    out[2..4].copy_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    true
}
