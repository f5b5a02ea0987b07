//! Clients of the admin console: the protocol around their commands. The program makes the replies.

use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::{ClientSerial, Conn};
use refrain_wire::Header;
use refrain_wire::tag::front;

use crate::console::reply::{Form, Reply};
use crate::console::session::Next;
use crate::engine::Step;
use crate::login::console::Rights;
use crate::state::parts::Action;
use crate::state::requests::Request;

/// Bytes of unread replies of a console client; beyond that its next command waits.
const UNREAD_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of a command.
const QUESTION_BYTES_MAX: u32 = 64 * 1024;

impl Step<'_, '_> {
    /// Ends the session of a client that may not use the console any more. A client that waits for
    /// a reply gets the reply first.
    pub(crate) fn dismiss_from_console(&mut self, conn: Conn) {
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let waits = client.waiting_for() != WaitingFor::Nothing;
        let Some((authenticated, name, session)) = client.session.login.console() else { return };
        if session.is_owner() {
            return;
        }
        let user = authenticated.user().to_owned();
        let admitted = self.step.engine.core_state.shared.options().admits(name, &user);
        let may_not_look = !admitted || matches!(self.rights(&user), Rights::Nothing);
        if may_not_look && !waits {
            self.step.end_client(conn, DisconnectReason::Removed);
        }
    }

    /// Handles bytes from a console client. One command at a time: the next is read once the last
    /// has its reply.
    pub(crate) fn console_bytes(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let skipped = client.inbox.take_rest(bytes);
        let all = client.inbox.join(&bytes[skipped..]);
        let mut at = 0;
        while let Some(used) = self.console_message(conn, &all[at..]) {
            at += used;
        }
        if let Some(client) = self.step.engine.connections.client(conn) {
            client.inbox.put_back(all, at);
            self.leave_if_ended(conn);
            match self.step.ports.queued(conn) > UNREAD_BYTES_MAX {
                true => self.step.stop_reading(conn),
                false => self.step.regulate(conn),
            }
        }
    }

    fn console_message(&mut self, conn: Conn, input: &[u8]) -> Option<usize> {
        let client = self.step.engine.connections.client(conn)?;
        if client.waiting_for() != WaitingFor::Nothing
            || self.step.ports.queued(conn) > UNREAD_BYTES_MAX
        {
            return None;
        }
        let header = match Header::parse(input) {
            Ok(None) => return None,
            Ok(Some(header)) if header.body <= QUESTION_BYTES_MAX => header,
            Ok(Some(header)) => return self.too_long(conn, &header, input.len()),
            Err(_) => {
                self.step.end_client(conn, DisconnectReason::ClientProtocol);
                return None;
            }
        };
        let body = input.get(refrain_wire::frame::HEADER_BYTES..header.message_bytes())?;
        if header.tag == front::TERMINATE {
            self.step.end_client(conn, DisconnectReason::Terminated);
            return None;
        }
        let session = client.session.login.console_session()?;
        let next = session.message(header.tag, body, self.step.ports.out(conn));
        match next {
            Ok(Next::Read) => {}
            Ok(Next::Ask(query, form)) => self.ask_program(conn, query, form),
            Err(_) => {
                self.step.end_client(conn, DisconnectReason::ClientProtocol);
                return None;
            }
        }
        Some(header.message_bytes())
    }

    /// Refuses a message that is too long, and drops the rest of it as it comes. Returns the number
    /// of bytes of it that are here.
    fn too_long(&mut self, conn: Conn, header: &Header, here: usize) -> Option<usize> {
        let client = self.step.engine.connections.client(conn)?;
        let dropped = client.inbox.drop_message(header.message_bytes(), here);
        let session = client.session.login.console_session()?;
        session.too_long(header.tag, QUESTION_BYTES_MAX, self.step.ports.out(conn));
        Some(dropped)
    }

    fn ask_program(&mut self, conn: Conn, query: String, form: Form) {
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let Some((authenticated, _, session)) = client.session.login.console() else { return };
        let (user, is_owner) = (authenticated.user().to_owned(), session.is_owner());
        let serial = client.serial();
        client.await_replies();
        let admin = is_owner || matches!(self.rights(&user), Rights::Change);
        let user = user.into();
        let request = Request::Console { client: serial, user, admin, query, form };
        self.step.ports.act(Action::Ask(request));
    }

    /// Sends the program's reply to the client that gave the command.
    pub(crate) fn console_reply(&mut self, serial: ClientSerial, reply: Reply) {
        let found = self.step.engine.connections.clients().find(|client| client.serial() == serial);
        let Some(conn) = found.map(|client| client.conn()) else { return };
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let Some(session) = client.session.login.console_session() else { return };
        session.reply(reply, self.step.ports.out(conn));
        self.step.unblock(conn);
        self.dismiss_from_console(conn);
    }
}
