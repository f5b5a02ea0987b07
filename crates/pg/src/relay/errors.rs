//! Errors of a server: what they undo, what Refrain learns from them, and which error the client
//! gets.
//!
//! An ErrorResponse to an extended message undoes the changes by all messages that failed or were
//! skipped, newest first. The error of a stale plan begins a new generation of the statement (E63,
//! E68): every server prepares it anew at its next use. PostgreSQL quotes the name by which it
//! knows a statement; the client gets the name that it gave. All other fields stay as they are.
//!
//! An error may be as long as a row. Severity and SQLSTATE stand at its beginning; the rest of a
//! long one streams, see [`crate::relay::words`].

use refrain_pg_wire::back::{Fields, Status, field};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_pool::server::HostFinding;
use refrain_sql::Traits;

use crate::ground::name::Name;
use crate::ground::server_state;
use crate::pipeline::outstanding::{
    Failed, OutstandingRequest, Purpose, Refusal, ReplyAction, RequestKind, Syncs,
};
use crate::pipeline::purposes::{OwnError, Unasked};
use crate::relay::beside::role_may_be_back;
use crate::relay::effects::{passed_barrier, pin};
use crate::relay::figures::count_error;
use crate::relay::link::{Link, for_client_statement};
use crate::relay::look::look_again;
use crate::relay::pipe::Pipeline;
use crate::relay::reader::Halt;
use crate::relay::refused::{is_unused, log_refusal, miss_server, settings_refused, write_refusal};
use crate::relay::replayed::{ends_read, refuses_read};
use crate::relay::run::{as_client_sent, give_way, run_again};
use crate::relay::unnamed_run::run_unnamed_again;
use crate::relay::words::{Words, rename};
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::reading::{Ahead, Reading};
use crate::state::client::settings::ClientSettings;
use crate::state::client::statements::ClientStatements;
use crate::statements::statement::{STALE_FILE, STALE_MESSAGE, STALE_ROUTINE, is_stale};

/// SQLSTATE of a write in a transaction that may not write.
const READ_ONLY_TRANSACTION: &[u8] = b"25006";

impl Link<'_> {
    /// Handles an error. True if the client gets the part of it that has not arrived.
    pub(crate) fn take_error(&mut self, words: &Words<'_>) -> Result<bool, Halt> {
        self.client.session.pins.rolled_back();
        let fields = words.fields;
        let pool = self.pipe.pool();
        pool.counters.pool.server_errors += 1;
        let wants = pool.settings.server.target_session_attrs;
        if fields.is_fatal() {
            self.pipe.note_last_words(&fields);
            // The client's request runs elsewhere, so the client does not hear of it.
            if self.client.pool() != self.pipe.server.pool() {
                ends_read(self, &fields).map_or(Ok(()), Err)?;
            } else if self.client.may_go_elsewhere(self.pipe.server) {
                return Err(Halt::Lost);
            }
            if is_unused(&self.pipe, &self.client.session)
                && miss_server(&mut self.pipe, &mut self.client.session.reading)
            {
                return Err(Halt::Unused);
            }
            self.tell(&words.cut());
            return Err(Halt::Fatal);
        }
        if server_state::doubts_refusal(wants) && fields.sqlstate() == READ_ONLY_TRANSACTION {
            // The client's transaction may be read-only by the client's own wish. A new server
            // shows whether all sessions are.
            self.pipe.find_host(HostFinding::Doubtful);
        }
        if self.client.pool() != self.pipe.server.pool() && refuses_read(self, &fields)? {
            return Err(Halt::Elsewhere);
        }
        let failed = self.pipe.server.session.outstanding.fail()?;
        let goes = self.settle_error(&failed, words)?;
        match failed.syncs {
            Syncs::Sure | Syncs::Bounded => {}
            Syncs::Countable => count_syncs(&mut self.pipe),
            Syncs::Lost => return Err(Halt::Intruded),
        }
        Ok(goes)
    }
}

/// Asks the server how many of the client's Syncs a failed COPY has not skipped (E42): the server
/// answers each of them, then Refrain's own Sync, and in any case the Close behind it. The client
/// waits for the result.
#[cold]
fn count_syncs(pipe: &mut Pipeline<'_>) {
    let name = pipe.core_state.shared.protocol.registry.no_statement();
    let out = pipe.out();
    write::sync(out);
    write::close_statement(out, &name);
    pipe.owe_us(RequestKind::Syncs, Purpose::Count, 0);
    write::sync(pipe.out());
    pipe.owe_us(RequestKind::Sync, Purpose::Count, 0);
}

impl Link<'_> {
    /// Sends the client a ReadyForQuery for each Sync that was counted. If there was none, its
    /// messages are ignored up to its next Sync.
    #[cold]
    pub(crate) fn syncs_counted(&mut self) {
        let counted = self.pipe.server.session.outstanding.counted();
        let status = self.pipe.server.session.outstanding.status();
        if counted == 0 {
            self.client.session.reading.skip_to_sync();
        }
        for _ in 0..counted {
            write::ready(self.pipe.ports.out(self.client.conn()), status);
        }
    }

    /// Undoes the changes by the requests that an error ended, and learns from it. True if the
    /// client gets the part of the error that has not arrived.
    fn settle_error(&mut self, failed: &Failed, words: &Words<'_>) -> Result<bool, Halt> {
        let fields = &words.fields;
        // The undo below may take the name away.
        let name = self.client.session.statements.name_of(&failed.entry);
        if failed_at_commit(&failed.entry, fields)
            && failed.entry.traits.contains(Traits::DEALLOCATE)
        {
            // No rollback brings the statement back.
            self.client.session.statements.confirm(failed.seq);
        }
        undo(&mut self.pipe, &mut self.client.session, failed);
        role_may_be_back(&self.pipe, &mut self.client.session.settings, failed);
        self.client.session.reading.failed(failed);
        if skip_known_error(&mut self.pipe, &mut self.client.session.reading, failed) {
            self.client.session.evidence.undo();
            return Ok(false);
        }
        if self.pipe.server.session.front.is_watched() && self.run_text_again(failed, fields)? {
            return Ok(false);
        }
        leaves(&mut self.pipe, &mut self.client.session, &failed.entry);
        self.client.session.settings.rolled_back();
        if !self.client.session.suspicion.is_asked() {
            // Calls that failed prove nothing about the state that they would leave.
            self.client.session.evidence.undo();
        }
        learn(&mut self.pipe, &mut self.client.session.statements, &failed.entry, fields);
        learn_end(&mut self.pipe, &mut self.client.session, failed, fields, name.as_ref());
        count_error(&mut self.pipe, &failed.entry);
        self.answer_error(failed, words, name.as_deref())
    }

    /// Handles an error while autoprepare watches the text under way. True if the text now runs as
    /// it was sent, so that nobody gets the error.
    fn run_text_again(&mut self, failed: &Failed, fields: &Fields<'_>) -> Result<bool, Halt> {
        let entry = &failed.entry;
        if self.pipe.server.is_shared() && give_way(&mut self.pipe, entry, fields) {
            return Err(Halt::Elsewhere);
        }
        let own = entry.action.own();
        let before = own.is_some_and(|own| own.error == OwnError::RefuseSettings);
        Ok(!before
            && (run_again(
                self.client.conn(),
                &mut self.pipe,
                &mut self.client.session,
                entry,
                fields,
            ) || run_unnamed_again(
                self.client.conn(),
                &mut self.pipe,
                &mut self.client.session,
                entry,
                fields,
            )))
    }

    /// Sends the client an error, or keeps it back, as the request says. True if the client gets
    /// the part of it that has not arrived.
    fn answer_error(
        &mut self,
        failed: &Failed,
        words: &Words<'_>,
        name: Option<&[u8]>,
    ) -> Result<bool, Halt> {
        let fields = &words.fields;
        if let ReplyAction::Refuse(why) = failed.entry.action {
            return Ok(self.tell_refusal(why, words));
        }
        match failed.entry.action.own().map_or(OwnError::Tell, |own| own.error) {
            OwnError::RefuseSettings => return Err(self.refuse_settings(failed, fields)),
            OwnError::ReadAgain
                if look_again(&self.pipe, &mut self.client.session, fields)
                    || read_again(&self.pipe, &mut self.client.session.settings, fields) => {}
            OwnError::ReadAgain => {
                self.client.session.pins.pin(Pins::SETTINGS);
                self.client.session.settings.give_up_reading();
                self.pipe.server.session.soil();
                return Ok(self.forward_ours(failed, words));
            }
            // Going back to the client's settings has failed (E57). The statement is prepared, and
            // the end of Refrain's own segment goes back to the settings all the same.
            OwnError::TellInBlock if is_ours_alone(&self.pipe) && !fails_block(&self.pipe) => {}
            OwnError::RestoreAgain => return Ok(self.take_restore_error(failed, words)),
            OwnError::Close => self.pipe.server.close_later(),
            OwnError::Stale
                if failed.entry.kind == RequestKind::Bind && is_behind_parameters(fields) =>
            {
                return Ok(self.tell_instead(Refusal::Stale, fields));
            }
            OwnError::Stale if failed.until == failed.seq => {}
            OwnError::Nothing => {}
            OwnError::Tell | OwnError::TellOnce | OwnError::TellInBlock | OwnError::Stale => {
                self.forward(&failed.entry, words, name);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Link<'_> {
    /// Handles the error of the query that syncs settings. Returns what is to become of the client.
    fn refuse_settings(&mut self, failed: &Failed, fields: &Fields<'_>) -> Halt {
        let halt = settings_refused(&mut self.pipe, &mut self.client.session, failed, fields);
        let ends = halt == Halt::Refused;
        if ends {
            let pool = self.pipe.core_state.peek_pool(self.client.pool());
            log_refusal((self.client, pool), (self.pipe.ports, self.pipe.now), fields);
        }
        if ends || halt == Halt::Failed {
            write_refusal(self.pipe.ports.out(self.client.conn()), fields, ends);
        }
        halt
    }
}

/// Handles the error of a query for the client's settings. True if the query is sent again, with
/// short timeouts switched off: one of them has ended it, or a cancel request that came late.
fn read_again(pipe: &Pipeline<'_>, settings: &mut ClientSettings, fields: &Fields<'_>) -> bool {
    let next = pipe.server.session.outstanding.front();
    let apart = next.is_some_and(|next| {
        next.kind == RequestKind::Sync && next.action == ReplyAction::Skip(Purpose::ReadSettings)
    });
    let cancelled = matches!(fields.sqlstate(), b"57014" | b"55P03");
    apart && cancelled && settings.read_again()
}

impl Link<'_> {
    /// Handles the error of a query that restores settings behind a RESET. Outside of a transaction
    /// block, a cancel request that hits the query comes too late for the RESET: PostgreSQL would
    /// ignore it, and Refrain sends the query again. Otherwise the client gets the error: its block
    /// has failed, and the settings go back with it. True if the client gets the part of the error
    /// that has not arrived.
    fn take_restore_error(&mut self, failed: &Failed, words: &Words<'_>) -> bool {
        let reading = &mut self.client.session.reading;
        let cancelled = words.fields.sqlstate().starts_with(b"57");
        let fails_block = self.pipe.server.session.outstanding.status() == Status::Failed;
        if cancelled && !fails_block && reading.restore_again() {
            return false;
        }
        // Behind an Execute, the message that waits for the query fails in its place.
        let next = self.pipe.server.session.outstanding.front();
        if next.is_some_and(|next| next.action == failed.entry.action) {
            reading.skip_to_sync();
        }
        self.forward(&failed.entry, words, None);
        true
    }
}

/// Skips an error of which the client has got the cause; true if so. Refrain prepares a statement
/// in a segment of its own (E51). If the server refuses it, the client gets that error, and not the
/// error of the query that uses the statement. A query string that waits for it is not run. In a
/// transaction block, going back to the client's settings belongs to that: if a cancel request hits
/// it, the block has failed.
fn skip_known_error(pipe: &mut Pipeline<'_>, reading: &mut Reading, failed: &Failed) -> bool {
    if pipe.server.session.front.skip_error(failed) {
        return true;
    }
    let ours = match failed.entry.action.own().map(|own| own.error) {
        Some(OwnError::TellOnce) => true,
        Some(OwnError::TellInBlock) => fails_block(pipe),
        // A cancel request may hit the Describe behind the Parse.
        Some(OwnError::Stale) => reading.ahead() != Ahead::Nothing,
        _ => false,
    };
    if ours && is_ours_alone(pipe) && !reading.refuse_ahead() {
        pipe.server.session.front.skip_next_error(failed);
    }
    false
}

/// Whether the error stands in a segment of Refrain's own, in which a statement is prepared.
fn is_ours_alone(pipe: &Pipeline<'_>) -> bool {
    let ours = ReplyAction::Skip(Purpose::Prepare);
    let next = pipe.server.session.outstanding.front();
    next.is_some_and(|next| next.kind == RequestKind::Sync && next.action == ours)
}

/// Whether the error under way stands in a transaction block, which has failed by it or before.
fn fails_block(pipe: &Pipeline<'_>) -> bool {
    pipe.server.session.outstanding.status() == Status::Failed
}

/// Undoes the changes by messages that failed or were skipped, newest first (E1, E2, E23).
fn undo(pipe: &mut Pipeline<'_>, session: &mut ClientSession, failed: &Failed) {
    let undone = session.statements.undo(failed);
    pipe.pool().counters.protocol.changes_undone += undone.changes;
    if undone.lent {
        // A statement that was lent to be dropped stays on this server.
        pin(pipe, session, Pins::PREPARED);
    }
    pipe.server.session.statements.undo(failed);
}

/// Learns from an error that the server lacks a statement, or that its columns have changed.
fn learn(
    pipe: &mut Pipeline<'_>,
    statements: &mut ClientStatements,
    entry: &OutstandingRequest,
    fields: &Fields<'_>,
) {
    let uses = matches!(
        entry.kind,
        RequestKind::Bind | RequestKind::DescribeStatement | RequestKind::Execute
    );
    if !uses || entry.statement == 0 || matches!(entry.action, ReplyAction::Refuse(_)) {
        return;
    }
    let id = entry.statement;
    if fields.sqlstate() == b"26000" {
        // The error may be about the statement that an EXECUTE names: then the one that was used is
        // still there.
        let message = fields.get(field::MESSAGE).unwrap_or_default();
        let prefix = pipe.core_state.shared.protocol.registry.prefix();
        let ours = message.windows(prefix.len()).any(|part| part == prefix);
        let mut names = false;
        for_client_statement(statements, id, |it| names = it.held.cached().statement.names);
        if names && !ours {
            return;
        }
        // The server does not know an internal name: something that Refrain cannot see, such as a
        // function, has dropped all statements (E47).
        pipe.pool().counters.protocol.lost_statements += 1;
        pipe.server.session.statements.clear();
        pipe.server.close_later();
    } else if is_stale(fields) {
        let generation = pipe.server.session.statements.peek(id).map(|slot| slot.generation);
        let unnamed = pipe.server.session.statements.unnamed();
        let seen = generation.or((unnamed.id == id).then_some(unnamed.generation));
        let schema_version = pipe.home().shared.protocol.schema_version();
        let mut begun = false;
        for_client_statement(statements, id, |statement| {
            let shared = &statement.held.cached().statement;
            begun = seen.is_some_and(|seen| shared.begin_generation(seen, schema_version));
        });
        pipe.pool().counters.protocol.statements_renewed += u64::from(begun);
    }
}

impl Link<'_> {
    /// Handles the error of an internal query. The client gets it if its own messages failed with
    /// it.
    fn forward_ours(&mut self, failed: &Failed, words: &Words<'_>) -> bool {
        let next = self.pipe.server.session.outstanding.front();
        let hears = !next.is_some_and(|next| next.action == failed.entry.action);
        if hears {
            self.forward(&failed.entry, words, None);
        }
        hears
    }
}

/// Notes what a statement leaves in the session though it failed.
fn leaves(pipe: &mut Pipeline<'_>, session: &mut ClientSession, entry: &OutstandingRequest) {
    // Locks of the session outlive the transaction in which they were taken.
    if entry.traits.contains(Traits::ADVISORY) {
        pin(pipe, session, Pins::ADVISORY);
    }
}

/// Notes statements that a query has dropped though it failed: a deferred constraint failed as its
/// transaction ended. The last command ran, but the server does not report its completion.
fn learn_end(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    failed: &Failed,
    fields: &Fields<'_>,
    name: Option<&Name>,
) {
    let entry = &failed.entry;
    if !failed_at_commit(entry, fields) {
        return;
    }
    let last = session.reading.is_barred_by_end_of(failed.seq);
    if last {
        passed_barrier(session);
    }
    let drops = entry.traits.intersects(Traits::DEALLOCATE_ALL | Traits::DISCARD_ALL);
    if drops && last {
        pipe.server.session.statements.doubt_all();
        session.statements.forget_named();
    }
    if let Some(name) = name.filter(|_| entry.traits.contains(Traits::DEALLOCATE)) {
        pipe.server.session.statements.doubt(entry.statement);
        drop(session.statements.remove(name));
    }
}

impl Link<'_> {
    /// Passes an error on, with the client's name of the statement in it.
    fn forward(&mut self, entry: &OutstandingRequest, words: &Words<'_>, name: Option<&[u8]>) {
        // The client did not send the text of an internal Parse just now, so a position in it would
        // mislead (E33).
        let ours = entry.action.own().is_some_and(|own| own.unasked != Unasked::All);
        let fields =
            as_client_sent(&self.pipe, &self.client.session.settings, entry, &words.fields);
        let prefix = self.pipe.core_state.shared.protocol.registry.prefix();
        let out = self.pipe.ports.out(self.client.conn());
        write::beginning(out, back::ERROR_RESPONSE, words.missing, |out| {
            for (code, value) in &fields {
                if *code == field::POSITION && ours {
                    continue;
                }
                out.push(*code);
                match name {
                    Some(name) => rename(out, value, prefix, name),
                    None => out.extend_from_slice(value),
                }
                out.push(0);
            }
            words.end(out);
        });
    }

    fn tell(&mut self, words: &Words<'_>) {
        let out = self.pipe.ports.out(self.client.conn());
        write::beginning(out, back::ERROR_RESPONSE, words.missing, |out| {
            out.extend_from_slice(words.fields.0);
            words.end(out);
        });
    }

    /// Replaces the words of an error that Refrain made the server raise by the words for the
    /// reason.
    fn tell_refusal(&mut self, why: Refusal, words: &Words<'_>) -> bool {
        if words.fields.sqlstate() != b"26000" {
            self.tell(words); // it failed before it came to that: 25P02, 57014
            return true;
        }
        self.tell_instead(why, &words.fields)
    }

    /// Sends an error with the words for the reason. The client gets no more of the server's.
    fn tell_instead(&mut self, why: Refusal, fields: &Fields<'_>) -> bool {
        let (sqlstate, message, routine): (&[u8], &[u8], &[u8]) = match why {
            Refusal::Stale => (b"0A000", STALE_MESSAGE, STALE_ROUTINE),
            Refusal::Quota => (b"54000", b"too many prepared statements", b""),
            Refusal::Portals => (b"53200", b"too many portals", b""),
            Refusal::Prepare => (b"0A000", b"PREPARE is switched off (sql_prepare)", b""),
        };
        let out = self.pipe.ports.out(self.client.conn());
        write::message(out, back::ERROR_RESPONSE, |out| {
            for (code, value) in fields.iter() {
                let value = match code {
                    field::SQLSTATE => sqlstate,
                    field::MESSAGE => message,
                    field::ROUTINE if routine.is_empty() => continue,
                    field::ROUTINE => routine,
                    field::FILE if why == Refusal::Stale => STALE_FILE,
                    field::FILE | field::LINE | field::POSITION => continue,
                    _ => value,
                };
                out.push(code);
                write::string(out, value);
            }
            out.push(0);
        });
        false
    }
}

/// Whether a Bind failed behind its parameters, where PostgreSQL would have seen that the plan is
/// stale: it looks at rights, and folds constants, in the new plan alone.
fn is_behind_parameters(fields: &Fields<'_>) -> bool {
    matches!(fields.sqlstate(), b"42501" | b"22012")
}

/// Whether a query string may have failed as its transaction ended: a deferred constraint does so
/// behind the last command, whose completion the server then does not report.
fn failed_at_commit(entry: &OutstandingRequest, fields: &Fields<'_>) -> bool {
    entry.kind == RequestKind::Query && fields.sqlstate().starts_with(b"23")
}
