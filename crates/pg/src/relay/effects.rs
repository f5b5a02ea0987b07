//! Effects of completed commands on the session and on the schema.
//!
//! The text says what it may do ([`refrain_sql::Traits`]); the tag of CommandComplete says what was
//! done.

use refrain_config::TrackFunctions;
use refrain_pg_wire::back as read;
use refrain_sql::{Tag, Traits};

use crate::pipeline::evidence::{self, CallsOutcome};
use crate::pipeline::outstanding::{OutstandingRequest, Seq};
use crate::relay::beside::{may_be_temporary, stands_apart};
use crate::relay::figures::count_command;
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::state::client::pins::{ClientPins, Pins};
use crate::state::options::tracks;

/// Effects of a prepared statement that neither the tag of its EXECUTE shows nor its calls.
const HIDDEN_IN_PREPARED: Traits = Traits::UNREAD.union(Traits::ROLE);

/// Notes the effects of a command that is complete.
#[inline]
pub(crate) fn completed(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    entry: &OutstandingRequest,
    seq: Seq,
    body: &[u8],
) {
    let words = read::command_tag(body);
    if entry.action.is_for_client() {
        count_command(pipe, &mut session.statements, entry, words);
    }
    let tag = refrain_sql::tag(words);
    session.evidence.completed(seq, || evidence::outcome(words));
    if tag == Tag::Ddl && refrain_sql::changes_code(words) {
        pipe.pool().shared.protocol.change_code();
    }
    if session.reading.is_barred_by(seq) {
        passed_barrier(session);
    }
    let plain = matches!(tag, Tag::Select | Tag::Insert | Tag::Update | Tag::Delete);
    if !(plain && entry.traits.is_empty()) && entry.action.is_for_client() {
        completed_specially(pipe, session, tag, entry.traits);
        pipe.server.session.outstanding.may_end_transaction(seq);
    }
}

/// Notes that a portal has returned as many rows as the client wanted, and has more.
#[cold]
pub(crate) fn suspended(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    entry: &OutstandingRequest,
) {
    count_command(pipe, &mut session.statements, entry, b"");
    // The portal is not complete, but calls for its rows so far have taken effect: a lock, a
    // setting.
    if !entry.traits.is_empty() {
        completed_specially(pipe, session, Tag::Select, entry.traits);
    }
}

/// Notes that a command of a text that drops statements is complete. No rollback brings the
/// statements back (E55).
#[cold]
pub(crate) fn passed_barrier(session: &mut ClientSession) {
    if let Some(name) = session.reading.command_completed() {
        drop(session.statements.remove(&name));
    }
}

/// Notes that a function called by FunctionCall has run.
pub(crate) fn function_called(session: &mut ClientSession, seq: Seq, body: &[u8]) {
    // PostgreSQL does not call a strict function for a null, and answers null.
    let null = body.first_chunk() == Some(&[0xff; 4]);
    let outcome = if null { CallsOutcome::Vain } else { CallsOutcome::Ran };
    session.evidence.completed(seq, || outcome);
}

/// Notes the effects of a command that may change the session or the schema.
pub(crate) fn completed_specially(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    tag: Tag,
    traits: Traits,
) {
    let free = session.pins.is_empty();
    match tag {
        Tag::Set | Tag::Reset if traits.contains(Traits::SET) => {
            session.settings.read_later();
        }
        Tag::Prepare => {
            pin(pipe, session, Pins::PREPARED);
            if traits.intersects(HIDDEN_IN_PREPARED) {
                session.suspicion.prepare_anything();
            }
        }
        Tag::Listen => pin(pipe, session, Pins::LISTEN),
        Tag::Unlisten if traits.contains(Traits::UNLISTEN_ALL) => {
            unpin_at_commit(&mut session.pins, Pins::LISTEN);
        }
        Tag::DeclareCursor if traits.contains(Traits::HOLD) => pin(pipe, session, Pins::HOLD),
        Tag::CloseCursorAll => unpin(&mut session.pins, Pins::HOLD),
        Tag::Load => pin(pipe, session, Pins::LOAD),
        Tag::DiscardTemp => {
            unpin_at_commit(&mut session.pins, Pins::TEMP);
            schema_change(pipe);
        }
        Tag::Rollback => {
            session.pins.rolled_back();
            pipe.server.session.outstanding.recovers();
            // The rollback took back what the calls left, so Refrain cannot learn from this
            // transaction what they leave.
            session.evidence.undo();
            session.settings.rolled_back();
        }
        Tag::DeallocateAll => deallocated_all(pipe, session),
        Tag::DiscardAll => {
            discarded_all(pipe, session);
            schema_change(pipe);
        }
        Tag::Ddl => {
            pipe.server.session.transaction.change_schema();
            pipe.pool().shared.protocol.begin_schema_version();
            may_be_temporary(pipe, session);
        }
        Tag::Commit => pipe.server.session.outstanding.recovers(),
        Tag::Do => {
            session.settings.read_later();
            schema_change(pipe);
        }
        Tag::Call if tracks(pipe.pool()) == TrackFunctions::Off => schema_change(pipe),
        // CREATE TABLE AS and the like complete with the tag of their query.
        _ if traits.contains(Traits::DDL) => {
            schema_change(pipe);
            may_be_temporary(pipe, session);
        }
        Tag::Select | Tag::Other if traits.contains(Traits::UNREAD) => schema_change(pipe),
        _ => {}
    }
    if traits.contains(Traits::LOCAL) {
        session.settings.change_locally();
    }
    if tag == Tag::Defaults && traits.intersects(Traits::DEFAULTS | Traits::UNREAD) {
        pipe.server.session.transaction.change_defaults();
    }
    pin_for(pipe, session, tag, traits);
    if traits.contains(Traits::ADVISORY_FREE) {
        unpin(&mut session.pins, Pins::ADVISORY);
    }
    if traits.contains(Traits::SET) && !matches!(tag, Tag::Set | Tag::Reset) {
        session.settings.read_later();
    }
    if free && !session.pins.is_empty() {
        pipe.pool().counters.protocol.pins += 1;
    }
}

/// Pins the client for what a command has left.
fn pin_for(pipe: &mut Pipeline<'_>, session: &mut ClientSession, tag: Tag, traits: Traits) {
    let may = [
        (Traits::TEMP, Pins::TEMP, matches!(tag, Tag::Ddl | Tag::Select | Tag::Other)),
        (Traits::ADVISORY, Pins::ADVISORY, true),
        (Traits::ROLE, Pins::ROLE, matches!(tag, Tag::Set | Tag::Reset | Tag::Select)),
    ];
    for (_, left, _) in may.iter().filter(|(t, _, fits)| *fits && traits.contains(*t)) {
        pin(pipe, session, *left);
    }
}

/// Notes that a command may have changed the schema, though its tag does not say so.
fn schema_change(pipe: &mut Pipeline<'_>) {
    pipe.server.session.transaction.change_schema();
    pipe.pool().shared.protocol.schema_change();
}

pub(crate) fn pin(pipe: &mut Pipeline<'_>, session: &mut ClientSession, pin: Pins) {
    stands_apart(pipe, session, pin);
    session.pins.pin(pin);
    pipe.server.session.soil();
}

pub(crate) fn unpin(pins: &mut ClientPins, pin: Pins) {
    pins.unpin(pin);
}

/// Removes a pin when the transaction commits: a rollback would bring back what it stands for.
fn unpin_at_commit(pins: &mut ClientPins, pin: Pins) {
    pins.unpin_at_commit(pin);
}

/// Drops all statements of the server and of the client, because DEALLOCATE ALL has run.
fn deallocated_all(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    pipe.server.session.statements.clear_named();
    session.statements.forget_named();
    session.suspicion.deallocate_all();
    unpin(&mut session.pins, Pins::PREPARED);
}

/// Resets the record of the session, because DISCARD ALL has run: the server is as after its login,
/// except for its unnamed statement.
fn discarded_all(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    deallocated_all(pipe, session);
    session.pins.clear();
    session.settings.discarded_all();
    pipe.server.session.discarded();
}
