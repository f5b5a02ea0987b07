//! Clients of the admin console: the protocol around their commands. The program makes the replies.

use refrain_config::ConsoleRights;
use refrain_pg_wire::Header;
use refrain_pg_wire::tag::front;
use refrain_pool::Step as PoolStep;
use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::{ClientSerial, Conn};

use crate::console::reply::{ProgramReply, ReplyForm};
use crate::console::session::NextStep;
use crate::engine::Step;
use crate::state::parts::{Action, Pg};
use crate::state::requests::Request;

/// Bytes of unread replies of a console client; beyond that its next command waits.
const UNREAD_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of a command.
const QUESTION_BYTES_MAX: u32 = 64 * 1024;

/// A client of the admin console, within a step of the pool's engine.
pub(crate) struct ConsoleClient<'s, 'a> {
    pub(crate) step: &'s mut PoolStep<'a, Pg>,
    pub(crate) conn: Conn,
}

impl<'s, 'a> ConsoleClient<'s, 'a> {
    /// Finds the client that gave a command; `None` if the client is gone.
    pub(crate) fn find(step: &'s mut PoolStep<'a, Pg>, serial: ClientSerial) -> Option<Self> {
        let found = step.engine.connections.clients().find(|client| client.serial() == serial);
        let conn = found?.conn();
        Some(Self { step, conn })
    }

    /// Ends the session of a client that may not use the console any more. A client that waits for
    /// a reply gets the reply first.
    pub(crate) fn dismiss(&mut self) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let waits = client.waiting_for() != WaitingFor::Nothing;
        let Some((authenticated, name, session)) = client.session.login.console() else { return };
        if session.is_owner() {
            return;
        }
        let user = authenticated.user().to_owned();
        let options = self.step.engine.core_state.shared.options();
        let admitted = options.admits(name, &user);
        let may_not_look =
            !admitted || options.general.console_rights(&user) == ConsoleRights::Nothing;
        if may_not_look && !waits {
            self.step.end_client(self.conn, DisconnectReason::Removed);
        }
    }

    /// Handles bytes from a console client. One command at a time: the next is read once the last
    /// has its reply.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let skipped = client.inbox.take_rest(bytes);
        let all = client.inbox.join(&bytes[skipped..]);
        let mut at = 0;
        while let Some(used) = self.message(&all[at..]) {
            at += used;
        }
        if let Some(client) = self.step.engine.connections.client(self.conn) {
            client.inbox.put_back(all, at);
            Step { step: self.step }.leave_if_ended(self.conn);
            match self.step.ports.queued(self.conn) > UNREAD_BYTES_MAX {
                true => self.step.flow().stop_reading(self.conn),
                false => self.step.flow().regulate(self.conn),
            }
        }
    }

    fn message(&mut self, input: &[u8]) -> Option<usize> {
        let client = self.step.engine.connections.client(self.conn)?;
        if client.waiting_for() != WaitingFor::Nothing
            || self.step.ports.queued(self.conn) > UNREAD_BYTES_MAX
        {
            return None;
        }
        let header = match Header::parse(input) {
            Ok(None) => return None,
            Ok(Some(header)) if header.body <= QUESTION_BYTES_MAX => header,
            Ok(Some(header)) => return self.too_long(&header, input.len()),
            Err(_) => {
                self.step.end_client(self.conn, DisconnectReason::ClientProtocol);
                return None;
            }
        };
        let body = input.get(refrain_pg_wire::frame::HEADER_BYTES..header.message_bytes())?;
        if header.tag == front::TERMINATE {
            self.step.end_client(self.conn, DisconnectReason::Terminated);
            return None;
        }
        let session = client.session.login.console_session()?;
        let next = session.message(header.tag, body, self.step.ports.out(self.conn));
        match next {
            Ok(NextStep::Read) => {}
            Ok(NextStep::Ask(query, form)) => self.ask_program(query, form),
            Err(_) => {
                self.step.end_client(self.conn, DisconnectReason::ClientProtocol);
                return None;
            }
        }
        Some(header.message_bytes())
    }

    /// Refuses a message that is too long, and drops the rest of it as it comes. Returns the number
    /// of bytes of it that are here.
    fn too_long(&mut self, header: &Header, here: usize) -> Option<usize> {
        let client = self.step.engine.connections.client(self.conn)?;
        let dropped = client.inbox.drop_message(header.message_bytes(), here);
        let session = client.session.login.console_session()?;
        session.too_long(header.tag, QUESTION_BYTES_MAX, self.step.ports.out(self.conn));
        Some(dropped)
    }

    fn ask_program(&mut self, query: String, form: ReplyForm) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let Some((authenticated, _, session)) = client.session.login.console() else { return };
        let (user, is_owner) = (authenticated.user().to_owned(), session.is_owner());
        let serial = client.serial();
        client.await_replies();
        let options = self.step.engine.core_state.shared.options();
        let admin = is_owner || options.general.console_rights(&user) == ConsoleRights::Change;
        let user = user.into();
        let request = Request::Console { client: serial, user, admin, query, form };
        self.step.ports.act(Action::Ask(request));
    }

    /// Sends the client the program's reply to the client's command.
    pub(crate) fn reply(&mut self, reply: ProgramReply) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let Some(session) = client.session.login.console_session() else { return };
        session.reply(reply, self.step.ports.out(self.conn));
        self.step.engine.connections.unblock(self.conn);
        self.dismiss();
    }
}
