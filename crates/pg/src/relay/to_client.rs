//! From the server to its client: the second half of the hot path.
//!
//! Every message passes one scanner of headers; the list of outstanding requests says whose each is. What is forwarded as it came
//! is copied in runs: a run ends where something is skipped, rewritten or put in. Rows stream
//! through without ever being whole here.
//!
//! A reply that no entry names ends the server: a guess would be another client's row. Notices,
//! notifications and reports of settings may come at any time and strike nothing off; what reports do is in
//! [`crate::relay::reports`].

use refrain_sql::{Tag, Traits};
use refrain_wire::back::{self as read, Status};
use refrain_wire::frame::split_string;
use refrain_wire::tag::back;
use refrain_wire::{Header, Malformed};

use crate::ground::ids::pid_of;
use crate::ground::inbox::Rest;
use crate::pipeline::outstanding::{
    OutstandingRequest, Purpose, ReplyAction, RequestKind, Settled, UnexpectedMessage,
};
use crate::pipeline::schema::DEFINES;
use crate::relay::link::{Link, write_fake};
use crate::relay::words::Words;
use crate::settings::session::SETTINGS_BYTES_MAX;
use crate::state::client::Pins;

/// Bytes of a message that is looked into, at most. PostgreSQL bounds none of these. Errors and settings come near: of
/// those the beginning is looked into.
pub(crate) const LOOKED_INTO_MAX: usize = 1024 * 1024;

/// The beginning of a notification: its header, and the process that has sent it.
const SENDER_BYTES: usize = refrain_wire::frame::HEADER_BYTES + size_of::<u32>();

/// Why the reading of a server's messages stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The rest is the beginning of a message.
    More,
    /// ReadyForQuery: the server may be free now. Reading goes on after a look at that.
    Ready,
    /// The server says that it is going away; the client has been told.
    Fatal,
    /// The reply could not be made sense of.
    Broken,
    /// A change of settings that the client's login depends on was refused; the client was told.
    Refused,
    /// The client has said something else where the server waits for its COPY data; it was told.
    Intruded,
}

impl From<UnexpectedMessage> for Halt {
    fn from(_: UnexpectedMessage) -> Self {
        Self::Broken
    }
}

impl From<Malformed> for Halt {
    fn from(_: Malformed) -> Self {
        Self::Broken
    }
}

/// What becomes of a message as it came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goes {
    On,
    Nowhere,
}

/// A stretch of input that goes to the client as it came.
struct Run<'a> {
    input: &'a [u8],
    /// Everything before this has been dealt with.
    from: usize,
    /// Everything before this has been looked at.
    at: usize,
}

impl Link<'_> {
    /// Deals with as much of a server's output as it can; says how many bytes that was, and why it stopped.
    pub(crate) fn replies(&mut self, input: &[u8]) -> (usize, Halt) {
        let mut run = Run { input, from: 0, at: 0 };
        let halt = loop {
            if let Err(halt) = self.reply(&mut run) {
                break halt;
            }
        };
        self.flush(&mut run);
        self.take_told();
        (run.at, halt)
    }

    /// Sends the stretch that goes on as it came.
    fn flush(&mut self, run: &mut Run<'_>) {
        if run.from < run.at {
            self.ports.out(self.client.conn).extend_from_slice(&run.input[run.from..run.at]);
        }
        run.from = run.at;
    }

    /// Deals with one message.
    #[inline]
    fn reply(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        self.take_rest(run);
        let input = &run.input[run.at..];
        let Some(header) = Header::parse(input)? else { return Err(Halt::More) };
        let length = header.message_bytes();
        if input.len() >= length {
            let body = &input[refrain_wire::frame::HEADER_BYTES..length];
            return self.message(run, header, body);
        }
        // The rows of what we ask are for us.
        let asked =
            [ReplyAction::Skip(Purpose::ReadSettings), ReplyAction::Skip(Purpose::SyncSettings)];
        let ours =
            self.server.outstanding.front().is_some_and(|entry| asked.contains(&entry.action));
        let long = length > SETTINGS_BYTES_MAX;
        if streams(header.tag) && !(ours && header.tag == back::DATA_ROW && !long) {
            self.server.overfull |= ours && header.tag == back::DATA_ROW;
            self.begin_stream(run, header)
        } else if length <= LOOKED_INTO_MAX {
            Err(Halt::More)
        } else {
            self.large(run, header)
        }
    }

    /// A message that is too long to be held here and has to be looked into: at its beginning.
    #[cold]
    fn large(&mut self, run: &mut Run<'_>, header: Header) -> Result<(), Halt> {
        let begun = &run.input[run.at..];
        if !begins_well(header.tag) {
            return Err(Halt::Broken);
        } else if begun.len() < LOOKED_INTO_MAX {
            return Err(Halt::More);
        }
        let body = &begun[refrain_wire::frame::HEADER_BYTES..];
        let missing = header.message_bytes() - begun.len();
        if header.tag == back::PARAMETER_STATUS {
            let Some((name, _)) = split_string(body) else { return Err(Halt::Broken) };
            let goes = self.reported(name, None)?;
            self.server.inbox.expect(missing, rest_of(goes));
            self.advance(run, begun.len(), goes);
            return Err(Halt::More);
        }
        self.failed(run, &Words::read(body, missing), begun.len())?;
        Err(Halt::More)
    }

    /// An error, of which `length` bytes are there.
    fn failed(&mut self, run: &mut Run<'_>, words: &Words<'_>, length: usize) -> Result<(), Halt> {
        self.client.unpins = Pins::default();
        self.take_told();
        self.advance(run, length, Goes::Nowhere);
        let result = self.error(words);
        let missing = words.missing;
        let rest = if *result.as_ref().unwrap_or(&false) { Rest::On } else { Rest::Nowhere };
        match missing {
            0 => self.fake_due(run),
            _ => self.server.inbox.expect(missing, rest),
        }
        result.map(drop)
    }

    fn take_rest(&mut self, run: &mut Run<'_>) {
        let inbox = &mut self.server.inbox;
        if inbox.rest == 0 {
            return;
        }
        let count = inbox.take_rest(&run.input[run.at..]);
        let goes = if inbox.rest_goes == Rest::On { Goes::On } else { Goes::Nowhere };
        let ends = inbox.rest == 0;
        self.advance(run, count, goes);
        if ends {
            self.fake_due(run);
        }
    }

    /// Steps over `count` bytes, which go on or nowhere.
    #[inline]
    fn advance(&mut self, run: &mut Run<'_>, count: usize, goes: Goes) {
        if goes == Goes::Nowhere {
            self.flush(run);
            run.from += count;
        }
        run.at += count;
    }

    /// The beginning of a row, or of anything that is not looked into.
    fn begin_stream(&mut self, run: &mut Run<'_>, header: Header) -> Result<(), Halt> {
        if header.tag == back::DATA_ROW {
            self.release(run);
        }
        let goes = match header.tag {
            tag @ (back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE) => self.unasked(tag),
            tag => action(&self.server.outstanding.settle(tag)?.entry, tag),
        };
        let missing = header.message_bytes() - (run.input.len() - run.at);
        if header.tag == back::NOTIFICATION_RESPONSE && goes == Goes::On {
            self.name_sender(run)?;
        }
        let there = run.input.len() - run.at;
        self.server.inbox.expect(missing, rest_of(goes));
        self.advance(run, there, goes);
        Err(Halt::More)
    }

    /// A whole message.
    #[inline]
    fn message(&mut self, run: &mut Run<'_>, header: Header, body: &[u8]) -> Result<(), Halt> {
        let length = header.message_bytes();
        match header.tag {
            back::DATA_ROW => {
                self.release(run);
                let settled = self.server.outstanding.settle(header.tag)?;
                self.advance(run, length, action(&settled.entry, header.tag));
                match settled.entry.action {
                    ReplyAction::Skip(Purpose::ReadSettings) => self.read_settings_row(body),
                    ReplyAction::Skip(Purpose::SyncSettings) => self.sync_settings_row(body),
                    _ => {}
                }
                Ok(())
            }
            back::NOTICE_RESPONSE if self.is_binding() && self.holds_notice(body) => {
                self.advance(run, length, Goes::Nowhere);
                Ok(())
            }
            back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE => {
                if header.tag == back::NOTIFICATION_RESPONSE {
                    // It is sent between transactions: that of a run is over, and nothing can fail any more.
                    self.release(run);
                }
                let goes = self.unasked(header.tag);
                let end = run.at + length;
                if header.tag == back::NOTIFICATION_RESPONSE && goes == Goes::On {
                    self.name_sender(run)?;
                }
                self.advance(run, end - run.at, goes);
                Ok(())
            }
            back::PARAMETER_STATUS => self.setting(run, length, body),
            back::ERROR_RESPONSE => self.failed(run, &Words::read(body, 0), length),
            back::READY_FOR_QUERY => self.ready(run, length, body),
            tag => self.settled(run, tag, length, body),
        }
    }

    /// What becomes of a notice or a notification.
    fn unasked(&self, tag: u8) -> Goes {
        self.server.outstanding.front().map_or(Goes::On, |entry| unasked(entry, tag))
    }

    /// A notification that the session has sent itself names the process that the client was told it is. Its
    /// beginning is dealt with then.
    fn name_sender(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let Some(begun) = run.input[run.at..].first_chunk::<SENDER_BYTES>() else {
            return Err(Halt::More);
        };
        let (head, pid) = begun.split_at(refrain_wire::frame::HEADER_BYTES);
        if *pid != self.server.pid.to_be_bytes() {
            return Ok(());
        }
        self.flush(run);
        let own = pid_of(self.core_state.core, self.client.conn).to_be_bytes();
        let out = self.ports.out(self.client.conn);
        out.extend_from_slice(head);
        out.extend_from_slice(&own);
        self.advance(run, SENDER_BYTES, Goes::Nowhere);
        Ok(())
    }

    /// Sends what was held back until it was known that no error follows.
    #[inline]
    fn release(&mut self, run: &mut Run<'_>) {
        if let Some(held) = self.held_back() {
            self.flush(run);
            self.ports.out(self.client.conn).extend_from_slice(&held);
        }
    }

    /// Whether the values of a run are being bound.
    fn is_binding(&self) -> bool {
        let ours = ReplyAction::Skip(Purpose::Autoprepare);
        self.server
            .outstanding
            .front()
            .is_some_and(|e| e.kind == RequestKind::Bind && e.action == ours)
    }

    /// Sends the notices that were held back until it was known that the text is not run again.
    #[inline]
    fn release_notices(&mut self, run: &mut Run<'_>) {
        if let Some(notices) = self.held_notices() {
            self.flush(run);
            self.ports.out(self.client.conn).extend_from_slice(&notices);
        }
    }

    /// A reply that strikes something off, or is part of what will.
    fn settled(
        &mut self,
        run: &mut Run<'_>,
        tag: u8,
        length: usize,
        body: &[u8],
    ) -> Result<(), Halt> {
        let settled = self.server.outstanding.settle(tag)?;
        self.look_into(tag, &settled, body);
        if tag == back::BIND_COMPLETE {
            self.release_notices(run);
        }
        let unsaid = match tag {
            back::NO_DATA => settled.entry.action == ReplyAction::Rows,
            back::ROW_DESCRIPTION | back::COMMAND_COMPLETE => {
                self.holds_back(&settled.entry, &run.input[run.at..], length)
            }
            _ => false,
        };
        if tag == back::COMMAND_COMPLETE && !unsaid {
            self.release(run);
        }
        self.advance(run, length, if unsaid { Goes::Nowhere } else { action(&settled.entry, tag) });
        if let (ReplyAction::Instead(made), back::COMMAND_COMPLETE) = (settled.entry.action, tag) {
            self.flush(run);
            self.answered_there(made);
        }
        if settled.done {
            self.take_told();
            match (settled.entry.kind, settled.entry.action) {
                (RequestKind::Execute, ReplyAction::Skip(Purpose::ReadSettings)) => {
                    self.read_settings_ends()
                }
                (RequestKind::Syncs, _) => {
                    self.flush(run);
                    self.syncs_counted();
                }
                _ => {}
            }
            self.settle(settled.seq);
            self.fake_due(run);
        }
        // The server does not see the message that ends the session: it was answered here.
        if tag == back::COPY_IN_RESPONSE
            && let Some(made) = self.server.outstanding.made_amid_copy()
        {
            self.flush(run);
            self.intruded(made.answers());
            return Err(Halt::Intruded);
        }
        Ok(())
    }

    /// Replies of our making whose turn has come.
    #[inline]
    fn fake_due(&mut self, run: &mut Run<'_>) {
        while let Some((seq, made)) = self.server.outstanding.made() {
            self.flush(run);
            write_fake(self.ports.out(self.client.conn), made);
            self.settle(seq);
        }
    }

    /// What a reply says beyond being one.
    #[inline]
    fn look_into(&mut self, tag: u8, settled: &Settled, body: &[u8]) {
        match (tag, settled.entry.kind) {
            (back::COMMAND_COMPLETE, _) => self.completed(&settled.entry, settled.seq, body),
            (back::FUNCTION_CALL_RESPONSE, _) => self.function_called(settled.seq, body),
            // What its rows so far have done is done.
            (back::PORTAL_SUSPENDED, _) if !settled.entry.traits.is_empty() => {
                self.completed_specially(Tag::Select, settled.entry.traits);
            }
            (back::PARSE_COMPLETE, _) => {
                let id = settled.entry.statement;
                self.for_client_statement(id, |statement| statement.held.cached().accept());
            }
            (back::BIND_COMPLETE, _) => self.run_is_bound(),
            (back::PARAMETER_DESCRIPTION, _) => self.parameters_described(body),
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribeStatement) => {
                self.described(&settled.entry, settled.seq, body);
            }
            (back::ROW_DESCRIPTION | back::NO_DATA, RequestKind::DescribePortal) => {
                self.described(&settled.entry, settled.seq, body);
            }
            _ => {}
        }
    }

    /// A setting was reported. The client is told where it knows another value.
    fn setting(&mut self, run: &mut Run<'_>, length: usize, body: &[u8]) -> Result<(), Halt> {
        let (name, value) = read::parameter_status(body)?;
        let goes = self.reported(name, Some(value))?;
        self.advance(run, length, goes);
        Ok(())
    }

    /// The server waits for the next request.
    #[inline]
    fn ready(&mut self, run: &mut Run<'_>, length: usize, body: &[u8]) -> Result<(), Halt> {
        let status = Status::read(body)?;
        let settled = self.server.outstanding.settle(back::READY_FOR_QUERY)?;
        self.take_told();
        self.server.outstanding.ready(status);
        if status == Status::Idle {
            let outstanding = &self.server.outstanding;
            self.client.transaction_ends(|segment| outstanding.is_over(segment));
            self.client.sets_locally = false;
            if let Some(claims) = &mut self.client.claims {
                claims.settle();
            }
        }
        if status == Status::Idle && std::mem::take(&mut self.server.defines) {
            // What was planned meanwhile was planned without it.
            self.pool().shared.schema_change();
        }
        if self.server.defining.is_some()
            && status == Status::Idle
            && !self.server.outstanding.intersects(DEFINES)
        {
            self.server.defining = None;
        }
        if status == Status::Idle && std::mem::take(&mut self.server.renews) {
            self.renew();
        }
        self.release(run);
        self.settle(settled.seq);
        let behind = settled.entry.action == ReplyAction::Held;
        let held = behind && self.restores_behind(settled.seq);
        if restores(&settled.entry) || behind && !held {
            self.flush(run);
            self.tell_settings();
        }
        if self.client.sets {
            self.settings_told();
        }
        let goes = action(&settled.entry, back::READY_FOR_QUERY);
        self.advance(run, length, if held { Goes::Nowhere } else { goes });
        self.fake_due(run);
        match settled.entry.action {
            ReplyAction::Skip(Purpose::Reset) => self.reset_ends(),
            ReplyAction::Skip(_) => {}
            _ if held => {}
            _ => {
                self.client.requested = self.now;
                let took = self.now.since(self.server.asked);
                self.server.asked = self.now;
                let counters = &mut self.pool().counters;
                counters.queries += 1;
                counters.query_time.count(took);
                self.run_ends(took);
            }
        }
        Err(Halt::Ready)
    }
}

/// Whether a message is passed on in pieces, unseen.
fn streams(tag: u8) -> bool {
    matches!(
        tag,
        back::DATA_ROW
            | back::COPY_DATA
            | back::FUNCTION_CALL_RESPONSE
            | back::NOTICE_RESPONSE
            | back::NOTIFICATION_RESPONSE
    )
}

/// Whether a message may be longer than what is looked into, and says what counts at its beginning.
fn begins_well(tag: u8) -> bool {
    matches!(tag, back::ERROR_RESPONSE | back::PARAMETER_STATUS)
}

fn rest_of(goes: Goes) -> Rest {
    if goes == Goes::On { Rest::On } else { Rest::Nowhere }
}

/// Whether it ends what was put behind a RESET.
pub(crate) fn restores(entry: &OutstandingRequest) -> bool {
    entry.kind == RequestKind::Sync && entry.traits.contains(Traits::RESET)
}

#[inline]
fn action(entry: &OutstandingRequest, tag: u8) -> Goes {
    let ours = matches!(entry.action, ReplyAction::Instead(_)) && tag != back::READY_FOR_QUERY;
    if entry.action.is_for_client() && !ours { Goes::On } else { Goes::Nowhere }
}

/// What becomes of a notice or a notification that comes for an entry. What is said while a text is run is for the client. A
/// notification answers nothing: whatever the server is asked just then, it is for the client, who has listened; but not before the server
/// has the client's settings.
fn unasked(entry: &OutstandingRequest, tag: u8) -> Goes {
    match entry.action {
        ReplyAction::Skip(Purpose::Autoprepare) => Goes::On,
        ReplyAction::Skip(Purpose::SyncSettings) => Goes::Nowhere,
        _ if tag == back::NOTIFICATION_RESPONSE => Goes::On,
        _ => action(entry, tag),
    }
}
