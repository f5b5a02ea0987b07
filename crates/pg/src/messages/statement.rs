//! Describe and Close of a prepared statement, and Close of a portal that a DEALLOCATE names.

use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;

use crate::ground::name::Name;
use crate::messages::bind::hide_unnamed;
use crate::messages::check::Use;
use crate::messages::fits::{Fit, fit};
use crate::messages::meaning::statement_of;
use crate::messages::named::{WantedName, lacked, lend_empty};
use crate::messages::prepare::{not_ours, prepare_for};
use crate::messages::refuse::refuse;
use crate::messages::unmanaged::close_unmanaged;
use crate::messages::wait::wait_until_settled;
use crate::pipeline::outstanding::{
    FakeReply, OutstandingRequest, Refusal, ReplyAction, RequestKind,
};
use crate::relay::link::{Link, Stop};
use crate::relay::message::Message;
use crate::statements::of_client::ByName;
use crate::statements::of_core::CachedStatement;

impl Link<'_> {
    /// Answers a Describe in a failed transaction, of a statement that the server lacks. PostgreSQL
    /// answers it for a statement without rows: the parameters take no look at the catalogue. The
    /// server cannot answer, since it would refuse the Parse. True if Refrain has answered.
    pub(crate) fn describe_in_failed_transaction(
        &mut self,
        cached: &CachedStatement,
    ) -> Result<bool, Stop> {
        let Some(parameters) = cached.parameters() else { return Ok(false) };
        let outstanding = &self.pipe.server.session.outstanding;
        if !outstanding.has_failed() {
            return if outstanding.is_in_doubt() { Err(Stop::Replies) } else { Ok(false) };
        }
        // Nothing is outstanding, so the reply may go at once.
        let out = self.pipe.ports.out(self.client.conn());
        write::message(out, back::PARAMETER_DESCRIPTION, |out| out.extend_from_slice(&parameters));
        let conn = self.client.conn();
        self.pipe.fake(conn, RequestKind::DescribeStatement, FakeReply::NoRows);
        cached.count_use();
        Ok(true)
    }

    /// Handles Describe of a statement.
    pub(crate) fn describe_statement(
        &mut self,
        message: &Message<'_>,
        name: &[u8],
    ) -> Result<usize, Stop> {
        if !self.client.session.statements.are_managed() {
            self.pipe
                .owe(OutstandingRequest::new(RequestKind::DescribeStatement, ReplyAction::Forward));
            return Ok(self.pass(message));
        }
        let Some(cached) = statement_of(&mut self.pipe, &mut self.client.session, name)? else {
            hide_unnamed(&mut self.pipe, name);
            let safe = not_ours(&self.pipe, name);
            write::describe_statement(self.pipe.out(), &safe);
            self.pipe
                .owe(OutstandingRequest::new(RequestKind::DescribeStatement, ReplyAction::Forward));
            return Ok(message.bytes.len());
        };
        let fit = fit(&mut self.pipe, &mut self.client.session, name, &cached, &Use::Describe)?;
        if fit == Fit::Lacks && self.describe_in_failed_transaction(&cached)? {
            return Ok(message.bytes.len());
        }
        let called = match fit {
            Fit::Has(called) | Fit::Checked(called) => called,
            Fit::Lacks => prepare_for(&mut self.pipe, &self.client.session.settings, name, &cached),
            Fit::Stale(_) => {
                return Ok(refuse(
                    &mut self.pipe,
                    message,
                    RequestKind::DescribeStatement,
                    Refusal::Stale,
                ));
            }
        };
        cached.count_use();
        self.pipe.describe_copy(called, &cached.statement);
        let entry = OutstandingRequest::new(RequestKind::DescribeStatement, ReplyAction::Forward)
            .about(cached.statement.id);
        self.pipe.asks(called, entry.called(name));
        Ok(message.bytes.len())
    }

    /// Handles Close of a statement. Mostly Refrain answers it: the server keeps the statement for
    /// other clients.
    pub(crate) fn close_statement(
        &mut self,
        message: &Message<'_>,
        name: &[u8],
    ) -> Result<usize, Stop> {
        wait_until_settled(&self.pipe.server.session.outstanding, &self.client.session.statements)?;
        if name.is_empty() {
            let seq = self.pipe.server.session.outstanding.next_seq();
            let used = self.closed(message);
            let outstanding = &self.pipe.server.session.outstanding;
            self.client.session.statements.replace_unnamed(seq, None, outstanding);
            return Ok(used);
        }
        let Some(old) = self.client.session.statements.remove(name) else {
            // The client may have prepared it by SQL, of which Refrain does not keep the names.
            let safe = not_ours(&self.pipe, name);
            write::close_statement(self.pipe.out(), &safe);
            self.pipe.owe(OutstandingRequest::new(RequestKind::Close, ReplyAction::Forward));
            return Ok(message.bytes.len());
        };
        let seq = self.pipe.server.session.outstanding.next_seq();
        if old.lent() == ByName::Nothing {
            self.closed(message);
        } else {
            // The server was lent a statement of this very name (E51), and has to close that.
            self.pipe.owe(OutstandingRequest::new(RequestKind::Close, ReplyAction::Forward));
            self.pass(message);
        }
        let outstanding = &self.pipe.server.session.outstanding;
        self.client.session.statements.closed(seq, Name::from_slice(name), old, outstanding);
        Ok(message.bytes.len())
    }

    /// Prepares for the Execute of a portal that runs `DEALLOCATE name`. The server has the
    /// client's statement under another name. So Refrain gives it an empty statement of the
    /// client's name just before: PostgreSQL itself runs the DEALLOCATE, counts it as a statement
    /// of its transaction, or refuses it (E49).
    pub(crate) fn deallocate_portal(&mut self, name: Name) -> Result<(), Stop> {
        if !self.client.session.statements.are_managed() {
            close_unmanaged(&mut self.client.session, &name);
            return Ok(());
        }
        wait_until_settled(&self.pipe.server.session.outstanding, &self.client.session.statements)?;
        // Also in a failed transaction, which a command before it in its segment may end: if none
        // does, the Execute is refused, and what is done here is undone.
        if lacked(
            &self.pipe.server.session.outstanding,
            &mut self.client.session.statements,
            &name,
            WantedName::Name,
        )
        .is_some()
        {
            lend_empty(&mut self.pipe, &mut self.client.session.statements, &name);
        }
        let Some(old) = self.client.session.statements.remove(&name) else { return Ok(()) };
        let outstanding = &self.pipe.server.session.outstanding;
        self.client.session.statements.closed(outstanding.next_seq(), name, old, outstanding);
        Ok(())
    }
}
