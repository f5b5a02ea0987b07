//! Describe and Close of a prepared statement, and Close of a portal that a DEALLOCATE names.

use refrain_wire::write;

use crate::ground::name::Name;
use crate::messages::check::Use;
use crate::messages::fits::Fit;
use crate::messages::named::Wanted;
use crate::pipeline::outstanding::{OutstandingRequest, Refusal, ReplyAction, RequestKind};
use crate::relay::link::{Link, Stop};
use crate::relay::message::Message;
use crate::statements::of_client::ByName;

impl Link<'_> {
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
        let Some(cached) = self.find(name)? else {
            self.hide_unnamed(name);
            let safe = self.not_ours(name);
            write::describe_statement(self.pipe.out(), &safe);
            self.pipe
                .owe(OutstandingRequest::new(RequestKind::DescribeStatement, ReplyAction::Forward));
            return Ok(message.bytes.len());
        };
        let fit = self.fit(name, &cached, &Use::Describe)?;
        if fit == Fit::Lacks && self.describe_in_failed_transaction(&cached)? {
            return Ok(message.bytes.len());
        }
        let called = match fit {
            Fit::Has(called) | Fit::Checked(called) => called,
            Fit::Lacks => self.prepare_for(name, &cached),
            Fit::Stale(_) => {
                return Ok(self.refuse(message, RequestKind::DescribeStatement, Refusal::Stale));
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
        self.wait_until_settled()?;
        if name.is_empty() {
            let seq = self.pipe.server.session.outstanding.next_seq();
            let used = self.closed(message);
            let outstanding = &self.pipe.server.session.outstanding;
            self.client.session.statements.replace_unnamed(seq, None, outstanding);
            return Ok(used);
        }
        let Some(old) = self.client.session.statements.remove(name) else {
            // The client may have prepared it by SQL, of which Refrain does not keep the names.
            let safe = self.not_ours(name);
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
            self.close_unmanaged(&name);
            return Ok(());
        }
        self.wait_until_settled()?;
        // Also in a failed transaction, which a command before it in its segment may end: if none
        // does, the Execute is refused, and what is done here is undone.
        if self.lacked(&name, Wanted::Name).is_some() {
            self.lend_empty(&name);
        }
        let Some(old) = self.client.session.statements.remove(&name) else { return Ok(()) };
        let outstanding = &self.pipe.server.session.outstanding;
        self.client.session.statements.closed(outstanding.next_seq(), name, old, outstanding);
        Ok(())
    }
}
