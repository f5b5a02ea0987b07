//! Effects of completed commands on the session and on the schema.
//!
//! The text says what it may do ([`refrain_sql::Traits`]); the tag of CommandComplete says what was
//! done.

use refrain_config::TrackFunctions;
use refrain_sql::{Tag, Traits};
use refrain_wire::back as read;

use crate::pipeline::evidence::{self, Outcome};
use crate::pipeline::outstanding::{OutstandingRequest, Seq};
use crate::relay::link::Link;
use crate::state::client::pins::Pins;
use crate::state::options::tracks;

/// Effects of a prepared statement that neither the tag of its EXECUTE shows nor its calls.
const HIDDEN_IN_PREPARED: Traits = Traits::UNREAD.union(Traits::ROLE);

impl Link<'_> {
    /// Notes the effects of a command that is complete.
    #[inline]
    pub(crate) fn completed(&mut self, entry: &OutstandingRequest, seq: Seq, body: &[u8]) {
        let tag = refrain_sql::tag(read::command_tag(body));
        let evidence = &mut self.client.session.evidence;
        evidence.completed(seq, || evidence::outcome(read::command_tag(body)));
        if tag == Tag::Ddl && refrain_sql::changes_code(read::command_tag(body)) {
            self.pipe.pool().shared.protocol.change_code();
        }
        if self.client.session.reading.is_barred_by(seq) {
            self.passed_barrier();
        }
        let plain = matches!(tag, Tag::Select | Tag::Insert | Tag::Update | Tag::Delete);
        if !(plain && entry.traits.is_empty()) && entry.action.is_for_client() {
            self.completed_specially(tag, entry.traits);
            self.pipe.server.session.outstanding.may_end_transaction(seq);
        }
    }

    /// Notes that a command of a text that drops statements is complete. No rollback brings the
    /// statements back (E55).
    #[cold]
    pub(crate) fn passed_barrier(&mut self) {
        if let Some(name) = self.client.session.reading.command_completed() {
            drop(self.client.session.statements.remove(&name));
        }
    }

    /// Notes that a function called by FunctionCall has run.
    pub(crate) fn function_called(&mut self, seq: Seq, body: &[u8]) {
        // PostgreSQL does not call a strict function for a null, and answers null.
        let null = body.first_chunk() == Some(&[0xff; 4]);
        let outcome = if null { Outcome::Vain } else { Outcome::Ran };
        self.client.session.evidence.completed(seq, || outcome);
    }

    /// Notes the effects of a command that may change the session or the schema.
    pub(crate) fn completed_specially(&mut self, tag: Tag, traits: Traits) {
        let free = self.client.session.pins.is_empty();
        match tag {
            Tag::Set | Tag::Reset if traits.contains(Traits::SET) => {
                self.client.session.settings.read_later();
            }
            Tag::Prepare => {
                self.pin(Pins::PREPARED);
                if traits.intersects(HIDDEN_IN_PREPARED) {
                    self.client.session.suspicion.prepare_anything();
                }
            }
            Tag::Listen => self.pin(Pins::LISTEN),
            Tag::Unlisten if traits.contains(Traits::UNLISTEN_ALL) => {
                self.unpin_at_commit(Pins::LISTEN);
            }
            Tag::DeclareCursor if traits.contains(Traits::HOLD) => self.pin(Pins::HOLD),
            Tag::CloseCursorAll => self.unpin(Pins::HOLD),
            Tag::Load => self.pin(Pins::LOAD),
            Tag::DiscardTemp => {
                self.unpin_at_commit(Pins::TEMP);
                self.schema_change();
            }
            Tag::Rollback => {
                self.client.session.pins.rolled_back();
                self.pipe.server.session.outstanding.recovers();
                // The rollback took back what the calls left, so Refrain cannot learn from this
                // transaction what they leave.
                self.client.session.evidence.undo();
                self.client.session.settings.rolled_back();
            }
            Tag::DeallocateAll => self.deallocated_all(),
            Tag::DiscardAll => {
                self.discarded_all();
                self.schema_change();
            }
            Tag::Ddl => {
                self.pipe.server.session.transaction.change_schema();
                self.pipe.pool().shared.protocol.begin_schema_version();
                self.may_be_temporary();
            }
            Tag::Commit => self.pipe.server.session.outstanding.recovers(),
            Tag::Do => {
                self.client.session.settings.read_later();
                self.schema_change();
            }
            Tag::Call if tracks(self.pipe.pool()) == TrackFunctions::Off => self.schema_change(),
            // CREATE TABLE AS and the like complete with the tag of their query.
            _ if traits.contains(Traits::DDL) => {
                self.schema_change();
                self.may_be_temporary();
            }
            Tag::Select | Tag::Other if traits.contains(Traits::UNREAD) => self.schema_change(),
            _ => {}
        }
        if traits.contains(Traits::LOCAL) {
            self.client.session.settings.change_locally();
        }
        if tag == Tag::Defaults && traits.intersects(Traits::DEFAULTS | Traits::UNREAD) {
            self.pipe.server.session.transaction.change_defaults();
        }
        self.pin_for(tag, traits);
        if traits.contains(Traits::ADVISORY_FREE) {
            self.unpin(Pins::ADVISORY);
        }
        if traits.contains(Traits::SET) && !matches!(tag, Tag::Set | Tag::Reset) {
            self.client.session.settings.read_later();
        }
        if free && !self.client.session.pins.is_empty() {
            self.pipe.pool().counters.protocol.pins += 1;
        }
    }

    /// Pins the client for what a command has left.
    fn pin_for(&mut self, tag: Tag, traits: Traits) {
        let may = [
            (Traits::TEMP, Pins::TEMP, matches!(tag, Tag::Ddl | Tag::Select | Tag::Other)),
            (Traits::ADVISORY, Pins::ADVISORY, true),
            (Traits::ROLE, Pins::ROLE, matches!(tag, Tag::Set | Tag::Reset | Tag::Select)),
        ];
        for (_, pin, _) in may.iter().filter(|(t, _, fits)| *fits && traits.contains(*t)) {
            self.pin(*pin);
        }
    }

    /// Notes that a command may have changed the schema, though its tag does not say so.
    fn schema_change(&mut self) {
        self.pipe.server.session.transaction.change_schema();
        self.pipe.pool().shared.protocol.schema_change();
    }

    pub(crate) fn pin(&mut self, pin: Pins) {
        self.stands_apart(pin);
        self.client.session.pins.pin(pin);
        self.pipe.server.session.soil();
    }

    pub(crate) fn unpin(&mut self, pin: Pins) {
        self.client.session.pins.unpin(pin);
    }

    /// Removes a pin when the transaction commits: a rollback would bring back what it stands for.
    fn unpin_at_commit(&mut self, pin: Pins) {
        self.client.session.pins.unpin_at_commit(pin);
    }

    /// Drops all statements of the server and of the client, because DEALLOCATE ALL has run.
    fn deallocated_all(&mut self) {
        self.pipe.server.session.statements.clear_named();
        self.client.session.statements.forget_named();
        self.client.session.suspicion.deallocate_all();
        self.unpin(Pins::PREPARED);
    }

    /// Resets the record of the session, because DISCARD ALL has run: the server is as after its
    /// login, except for its unnamed statement.
    fn discarded_all(&mut self) {
        self.deallocated_all();
        self.client.session.pins.clear();
        self.client.session.settings.discarded_all();
        self.pipe.server.session.discarded();
    }
}
