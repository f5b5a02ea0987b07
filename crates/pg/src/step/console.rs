//! Clients of the admin console: the protocol around their commands. The program makes the replies.

use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::{ClientSerial, Conn};
use refrain_wire::back::Status;
use refrain_wire::tag::front;
use refrain_wire::write::{self, Report};
use refrain_wire::{Header, front as read};

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
        let Some((authenticated, name)) = client.session.login.console() else { return };
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
        match header.tag {
            front::TERMINATE => {
                self.step.end_client(conn, DisconnectReason::Terminated);
                return None;
            }
            front::SYNC => {
                client.session.login.console.skips_to_sync = false;
                self.console_ready(conn);
            }
            // After an error PostgreSQL drops a Query before the Sync as well.
            _ if client.session.login.console.skips_to_sync => {}
            front::QUERY => self.question(conn, body),
            front::FUNCTION_CALL => {
                self.refuse_extended(conn);
                self.console_ready(conn);
            }
            front::PARSE | front::BIND | front::DESCRIBE | front::EXECUTE | front::CLOSE => {
                client.session.login.console.skips_to_sync = true;
                self.refuse_extended(conn);
            }
            // PostgreSQL ignores these outside of a COPY as well.
            front::FLUSH | front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => {}
            _ => {
                self.step.end_client(conn, DisconnectReason::ClientProtocol);
                return None;
            }
        }
        Some(header.message_bytes())
    }

    fn refuse_extended(&mut self, conn: Conn) {
        let report = Report {
            severity: "ERROR",
            sqlstate: "0A000",
            message: "the admin console takes simple queries only",
            hint: "Have the driver send simple queries, or use psql.",
        };
        write::error(self.step.ports.out(conn), &report);
    }

    /// Sends a ReadyForQuery. Its status is that of a transaction block if the client has begun
    /// one: some drivers end a connection that says otherwise behind a BEGIN.
    fn console_ready(&mut self, conn: Conn) {
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let status = match client.session.login.console.is_in_block {
            true => Status::Transaction,
            false => Status::Idle,
        };
        write::ready(self.step.ports.out(conn), status);
    }

    /// Refuses a message that is too long, and drops the rest of it as it comes. Returns the number
    /// of bytes of it that are here.
    fn too_long(&mut self, conn: Conn, header: &Header, here: usize) -> Option<usize> {
        let client = self.step.engine.connections.client(conn)?;
        let dropped = client.inbox.drop_message(header.message_bytes(), here);
        let console = &mut client.session.login.console;
        if console.skips_to_sync {
            return Some(dropped);
        }
        let ends = matches!(header.tag, front::QUERY | front::FUNCTION_CALL);
        console.skips_to_sync = !ends && header.tag != front::SYNC;
        let message = format!("a command of the console has at most {QUESTION_BYTES_MAX} bytes");
        let report = Report { severity: "ERROR", sqlstate: "54000", message: &message, hint: "" };
        write::error(self.step.ports.out(conn), &report);
        if ends {
            self.console_ready(conn);
        }
        Some(dropped)
    }

    fn question(&mut self, conn: Conn, body: &[u8]) {
        let Ok(text) = read::query_text(body) else {
            return self.step.end_client(conn, DisconnectReason::ClientProtocol);
        };
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        if let Some((tag, begins)) = transaction_command(text) {
            let console = &mut client.session.login.console;
            console.is_in_block = begins.unwrap_or(console.is_in_block);
            write::command_complete(self.step.ports.out(conn), tag);
            return self.console_ready(conn);
        }
        let Some((authenticated, _)) = client.session.login.console() else { return };
        let user = authenticated.user().to_owned();
        let serial = client.serial();
        client.await_replies();
        let admin = matches!(self.rights(&user), Rights::Change);
        self.step.ports.act(Action::Ask(Request::Console {
            client: serial,
            user: user.into(),
            admin,
            query: String::from_utf8_lossy(text).into_owned(),
        }));
    }

    /// Sends the program's reply to the client that gave the command.
    pub(crate) fn console_reply(&mut self, serial: ClientSerial, reply: &[u8]) {
        let found = self.step.engine.connections.clients().find(|client| client.serial() == serial);
        let Some(conn) = found.map(|client| client.conn()) else { return };
        self.step.ports.out(conn).extend_from_slice(reply);
        self.console_ready(conn);
        self.step.unblock(conn);
        self.dismiss_from_console(conn);
    }
}

/// Returns the tag of a command about transaction blocks, and whether it begins or ends one.
/// Drivers send such commands around whatever they are told to send. A block of the console is a
/// status and nothing else: each command takes effect at once.
fn transaction_command(text: &[u8]) -> Option<(&'static [u8], Option<bool>)> {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    if text.contains(&b';') {
        return None;
    }
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = words.next()?;
    let is = |word: &str| first.eq_ignore_ascii_case(word.as_bytes());
    let mut has = |word: &[u8]| words.any(|other| other.eq_ignore_ascii_case(word));
    Some(match () {
        () if is("BEGIN") => (b"BEGIN", Some(true)),
        () if is("START") && has(b"TRANSACTION") => (b"START TRANSACTION", Some(true)),
        () if is("COMMIT") || is("END") => (b"COMMIT", Some(false)),
        // ROLLBACK TO a savepoint does not end the block.
        () if is("ROLLBACK") && has(b"TO") => (b"ROLLBACK", None),
        () if is("ROLLBACK") || is("ABORT") => (b"ROLLBACK", Some(false)),
        () if is("SAVEPOINT") => (b"SAVEPOINT", None),
        () if is("RELEASE") => (b"RELEASE", None),
        () => return None,
    })
}
