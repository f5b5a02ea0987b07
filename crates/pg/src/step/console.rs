//! Clients of the admin console: the protocol around their commands. The program makes the replies.

use refrain_pool::Step as PoolStep;
use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::{ClientSerial, Conn};
use refrain_wire::back::Status;
use refrain_wire::tag::front;
use refrain_wire::write::{self, Report};
use refrain_wire::{Header, front as read};

use crate::engine::Step;
use crate::login::console::{Rights, rights};
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
        let Some((authenticated, name)) = client.session.login.console() else { return };
        let user = authenticated.user().to_owned();
        let options = self.step.engine.core_state.shared.options();
        let admitted = options.admits(name, &user);
        let may_not_look = !admitted || rights(&options.general, &user) == Rights::Nothing;
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
                true => self.step.stop_reading(self.conn),
                false => self.step.regulate(self.conn),
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
        let body = input.get(refrain_wire::frame::HEADER_BYTES..header.message_bytes())?;
        match header.tag {
            front::TERMINATE => {
                self.step.end_client(self.conn, DisconnectReason::Terminated);
                return None;
            }
            front::SYNC => {
                client.session.login.console.skips_to_sync = false;
                self.ready();
            }
            // After an error PostgreSQL drops a Query before the Sync as well.
            _ if client.session.login.console.skips_to_sync => {}
            front::QUERY => self.question(body),
            front::FUNCTION_CALL => {
                self.refuse_extended();
                self.ready();
            }
            front::PARSE | front::BIND | front::DESCRIBE | front::EXECUTE | front::CLOSE => {
                client.session.login.console.skips_to_sync = true;
                self.refuse_extended();
            }
            // PostgreSQL ignores these outside of a COPY as well.
            front::FLUSH | front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => {}
            _ => {
                self.step.end_client(self.conn, DisconnectReason::ClientProtocol);
                return None;
            }
        }
        Some(header.message_bytes())
    }

    fn refuse_extended(&mut self) {
        let report = Report {
            severity: "ERROR",
            sqlstate: "0A000",
            message: "the admin console takes simple queries only",
            hint: "Have the driver send simple queries, or use psql.",
        };
        write::error(self.step.ports.out(self.conn), &report);
    }

    /// Sends a ReadyForQuery. Its status is that of a transaction block if the client has begun
    /// one: some drivers end a connection that says otherwise behind a BEGIN.
    fn ready(&mut self) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let status = match client.session.login.console.is_in_block {
            true => Status::Transaction,
            false => Status::Idle,
        };
        write::ready(self.step.ports.out(self.conn), status);
    }

    /// Refuses a message that is too long, and drops the rest of it as it comes. Returns the number
    /// of bytes of it that are here.
    fn too_long(&mut self, header: &Header, here: usize) -> Option<usize> {
        let client = self.step.engine.connections.client(self.conn)?;
        let dropped = client.inbox.drop_message(header.message_bytes(), here);
        let console = &mut client.session.login.console;
        if console.skips_to_sync {
            return Some(dropped);
        }
        let ends = matches!(header.tag, front::QUERY | front::FUNCTION_CALL);
        console.skips_to_sync = !ends && header.tag != front::SYNC;
        let message = format!("a command of the console has at most {QUESTION_BYTES_MAX} bytes");
        let report = Report { severity: "ERROR", sqlstate: "54000", message: &message, hint: "" };
        write::error(self.step.ports.out(self.conn), &report);
        if ends {
            self.ready();
        }
        Some(dropped)
    }

    fn question(&mut self, body: &[u8]) {
        let Ok(text) = read::query_text(body) else {
            return self.step.end_client(self.conn, DisconnectReason::ClientProtocol);
        };
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        if let Some((tag, block)) = transaction_command(text) {
            let console = &mut client.session.login.console;
            match block {
                Block::Begins => console.is_in_block = true,
                Block::Ends => console.is_in_block = false,
                Block::Stays => {}
            }
            write::command_complete(self.step.ports.out(self.conn), tag);
            return self.ready();
        }
        let Some((authenticated, _)) = client.session.login.console() else { return };
        let user = authenticated.user().to_owned();
        let serial = client.serial();
        client.await_replies();
        let options = self.step.engine.core_state.shared.options();
        let admin = rights(&options.general, &user) == Rights::Change;
        self.step.ports.act(Action::Ask(Request::Console {
            client: serial,
            user: user.into(),
            admin,
            query: String::from_utf8_lossy(text).into_owned(),
        }));
    }

    /// Sends the client the program's reply to the client's command.
    pub(crate) fn reply(&mut self, reply: &[u8]) {
        self.step.ports.out(self.conn).extend_from_slice(reply);
        self.ready();
        self.step.unblock(self.conn);
        self.dismiss();
    }
}

/// The effect of a command on the client's transaction block.
#[derive(Clone, Copy, Debug)]
enum Block {
    Begins,
    Ends,
    /// There is a block behind the command if there was one before.
    Stays,
}

/// Returns the tag of a command about transaction blocks, and its effect on the client's block.
/// Drivers send such commands around whatever they are told to send. A block of the console is a
/// status and nothing else: each command takes effect at once.
fn transaction_command(text: &[u8]) -> Option<(&'static [u8], Block)> {
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
        () if is("BEGIN") => (b"BEGIN", Block::Begins),
        () if is("START") && has(b"TRANSACTION") => (b"START TRANSACTION", Block::Begins),
        () if is("COMMIT") || is("END") => (b"COMMIT", Block::Ends),
        // ROLLBACK TO a savepoint does not end the block.
        () if is("ROLLBACK") && has(b"TO") => (b"ROLLBACK", Block::Stays),
        () if is("ROLLBACK") || is("ABORT") => (b"ROLLBACK", Block::Ends),
        () if is("SAVEPOINT") => (b"SAVEPOINT", Block::Stays),
        () if is("RELEASE") => (b"RELEASE", Block::Stays),
        () => return None,
    })
}
