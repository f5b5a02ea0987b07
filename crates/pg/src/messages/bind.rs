//! Bind, Describe and Close of statements: the client's name of a statement becomes the server's.
//!
//! [`crate::messages::parse`] makes sure that the server has the statement. This module rewrites
//! the names in the message that uses it, and passes the rest on unchanged. A name that the client
//! has not prepared goes to the server, which refuses it (E34): an error made by Refrain would let
//! the rest of the transaction commit.

use std::rc::Rc;

use refrain_pg_wire::front::Bind;
use refrain_pg_wire::write;

use crate::autoprepare::unnamed::begin_expected;
use crate::messages::check::Use;
use crate::messages::fits::{Fit, fit};
use crate::messages::meaning::statement_of;
use crate::messages::named::lend_name;
use crate::messages::prepare::{not_ours, prepare_for};
use crate::messages::refuse::{has_room_for, refuse};
use crate::messages::unmanaged::bind_unmanaged;
use crate::pipeline::outstanding::{
    OutstandingRequest, Purpose, Refusal, ReplyAction, RequestKind,
};
use crate::relay::copies::Called;
use crate::relay::link::{Link, Stop};
use crate::relay::look::{suspect, suspect_prepared};
use crate::relay::message::{Message, Next};
use crate::relay::pipe::Pipeline;
use crate::relay::to_server::rewritten_header;
use crate::relay::writes::sends_statement;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::Unnamed;

impl Link<'_> {
    /// Handles Bind.
    pub(crate) fn bind(&mut self, message: &Message<'_>, next: &[u8]) -> Result<usize, Stop> {
        let Some(bind) = Bind::read(message.body(), message.complete)? else {
            return Err(Stop::More);
        };
        self.pipe.pool().counters.protocol.binds += 1;
        if !self.client.session.statements.are_managed() {
            bind_unmanaged(&mut self.pipe, &mut self.client.session, &bind)?;
            return Ok(self.pass(message));
        }
        let Some(cached) = statement_of(&mut self.pipe, &mut self.client.session, bind.statement)?
        else {
            return Ok(self.bind_unknown(message, &bind));
        };
        sends_statement(&mut self.pipe, &self.client.session, &cached.statement);
        // If the statement is an SQL EXECUTE, PostgreSQL looks for the statement that it names at
        // each Bind. That one must exist under the client's name (E51).
        lend_name(&mut self.pipe, &mut self.client.session, &cached.statement)?;
        let to = Use::Bind { portal: bind.portal, next: Next(next) };
        let fit = fit(&mut self.pipe, &mut self.client.session, bind.statement, &cached, &to)?;
        if let Fit::Stale(copy) = fit {
            return Ok(self.refuse_stale(message, &bind, &cached, copy));
        }
        // An Execute needs to know its portal's statement only if running that may change the
        // session.
        let portal = cached.statement.acts().then(|| cached.clone());
        if portal.is_some()
            && !has_room_for(&mut self.pipe, &self.client.session.portals, bind.portal, &cached)?
        {
            return Ok(self.refuse_bind(message, &bind, cached.statement.id, Refusal::Portals));
        }
        let calls = suspect(&mut self.pipe, &mut self.client.session, &cached.statement.scan);
        self.client.session.evidence.bind(bind.portal, calls);
        let alone = self.pipe.server.session.outstanding.owes_client_nothing();
        let called = called(&mut self.pipe, &self.client.session, bind.statement, &cached, fit);
        if bind.statement.is_empty() {
            begin_expected(&mut self.pipe, &mut self.client.session, called, alone);
        }
        let from = called.generation();
        let of_unnamed = (from.is_none() || bind.statement.is_empty()).then_some(bind.portal);
        self.pipe.server.session.statements.bind(of_unnamed, from);
        self.send_bind(message, &bind, &cached, called);
        let entry = OutstandingRequest::new(RequestKind::Bind, ReplyAction::Forward);
        self.pipe.owe(entry.about(cached.statement.id).called(bind.statement));
        let segment = self.pipe.server.session.outstanding.segment();
        self.client.session.portals.set(bind.portal, portal, segment);
        Ok(self.pass_missing(message))
    }
}

/// Returns the server's name of a statement that the client calls `name`. Sends a Parse first if
/// the server lacks the statement.
#[inline]
fn called(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    name: &[u8],
    cached: &Rc<CachedStatement>,
    fit: Fit,
) -> Called {
    cached.count_use();
    let called = match fit {
        Fit::Has(called) => called,
        Fit::Checked(called) => return called,
        Fit::Lacks | Fit::Stale(_) => {
            return prepare_for(pipe, &session.settings, name, cached);
        }
    };
    // A second use makes the statement worth a name on servers (E88), also where this server still
    // has it unnamed.
    if called == Called::Unnamed && !name.is_empty() {
        cached.used();
    }
    pipe.count_hit();
    called
}

impl Link<'_> {
    /// Sends the Bind with the server's name of the statement. All bytes behind the names stay as
    /// they are.
    #[inline]
    fn send_bind(
        &mut self,
        message: &Message<'_>,
        bind: &Bind<'_>,
        cached: &CachedStatement,
        called: Called,
    ) {
        let old = bind.names_bytes();
        let name_bytes = match called {
            Called::Named(generation) => cached.statement.name_bytes(generation),
            Called::Unnamed => 0,
        };
        rewritten_header(&mut self.pipe, message, old, bind.portal.len() + name_bytes + 2);
        let out = self.pipe.ports.out(self.pipe.server.conn());
        write::string(out, bind.portal);
        if let Called::Named(generation) = called {
            cached.statement.write_name(out, generation);
        }
        out.push(0);
        out.extend_from_slice(&message.body()[old..]);
    }

    /// Passes on a Bind of a statement that the client has not prepared. The server answers it with
    /// its own error (E34), so that the transaction fails as it would without Refrain.
    fn bind_unknown(&mut self, message: &Message<'_>, bind: &Bind<'_>) -> usize {
        hide_unnamed(&mut self.pipe, bind.statement);
        self.pipe.sends_unknown();
        if self.client.session.pins.has(Pins::PREPARED) {
            suspect_prepared(&mut self.pipe, &mut self.client.session);
        }
        let old = bind.names_bytes();
        rewritten_header(&mut self.pipe, message, old, old);
        let safe = not_ours(&self.pipe, bind.statement);
        let out = self.pipe.ports.out(self.pipe.server.conn());
        write::string(out, bind.portal);
        write::string(out, &safe);
        out.extend_from_slice(&message.body()[old..]);
        self.pipe.owe(OutstandingRequest::new(RequestKind::Bind, ReplyAction::Forward));
        self.client.session.portals.set(
            bind.portal,
            None,
            self.pipe.server.session.outstanding.segment(),
        );
        self.pass_missing(message)
    }
}

/// Closes the server's unnamed statement if the message names the unnamed statement. The client has
/// none, so the server's belongs to another client, whose statement would run otherwise (E16).
pub(crate) fn hide_unnamed(pipe: &mut Pipeline<'_>, name: &[u8]) {
    let unnamed = pipe.server.session.statements.unnamed();
    // An earlier Close of it may still be skipped, behind an error.
    let may_be = unnamed.id != 0 || pipe.server.session.outstanding.is_unsettled(unnamed.segment);
    if name.is_empty() && may_be {
        write::close_statement(pipe.out(), b"");
        let seq = pipe.owe_us(RequestKind::Close, Purpose::Prepare, 0);
        let none = Unnamed::none_since(pipe.server.session.outstanding.segment());
        pipe.server.session.statements.replace_unnamed(seq, none);
    }
}

impl Link<'_> {
    /// Makes a Bind of a stale statement fail on the server. PostgreSQL reads the parameters before
    /// it sees that the columns have changed (`exec_bind_message`). So the Bind goes to a copy that
    /// takes the same parameters, if there is one, and the refusal stands behind that: an error of
    /// the parameters is the server's own. A Bind of which a part has not arrived is refused at
    /// once: nothing can be sent behind it yet.
    #[cold]
    fn refuse_stale(
        &mut self,
        message: &Message<'_>,
        bind: &Bind<'_>,
        cached: &CachedStatement,
        copy: Option<Called>,
    ) -> usize {
        let id = cached.statement.id;
        let Some(called) = copy.filter(|_| message.complete) else {
            return self.refuse_bind(message, bind, id, Refusal::Stale);
        };
        self.send_bind(message, bind, cached, called);
        let action = ReplyAction::Skip(Purpose::Shape);
        let entry = OutstandingRequest::new(RequestKind::Bind, action).about(id);
        self.pipe.owe(entry.called(bind.statement));
        refuse(&mut self.pipe, message, RequestKind::Bind, Refusal::Stale)
    }

    /// Makes a Bind fail on the server, by the name of a statement that never exists. So the
    /// transaction fails with it, as it would at PostgreSQL. The error gets the words for `why` on
    /// its way back.
    fn refuse_bind(
        &mut self,
        message: &Message<'_>,
        bind: &Bind<'_>,
        id: u64,
        why: Refusal,
    ) -> usize {
        let old = bind.names_bytes();
        let name = self.pipe.core_state.shared.protocol.registry.no_statement();
        rewritten_header(&mut self.pipe, message, old, bind.portal.len() + name.len() + 2);
        let out = self.pipe.ports.out(self.pipe.server.conn());
        write::string(out, bind.portal);
        write::string(out, &name);
        out.extend_from_slice(&message.body()[old..]);
        self.pipe
            .owe(OutstandingRequest::new(RequestKind::Bind, ReplyAction::Refuse(why)).about(id));
        self.pass_missing(message)
    }
}
