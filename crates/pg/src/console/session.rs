//! A session: its prepared statements and portals, and the reply to each message.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::front::{self as read, Parse, Target};
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write::{self, Report};
use refrain_pg_wire::{Header, Malformed};

use super::block::{BlockCommand, BlockEffect, Dropped};
use super::bound::Bound;
use super::reply::{Format, ProgramReply, ReplyForm, ShownColumn};
use super::split;

/// The most statements, and the most portals, of a session.
const OBJECTS_MAX: usize = 1000;
/// The most bytes of replies that portals of a session keep for later Executes.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// A console client's session, as far as the protocol knows it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Whether the client may do everything, whatever the options say of its user.
    is_owner: bool,
    /// Whether its messages are dropped up to its next Sync.
    skips_to_sync: bool,
    /// Whether it has begun a transaction block.
    is_in_block: bool,
    statements: HashMap<Box<[u8]>, Arc<Prepared>>,
    portals: HashMap<Box<[u8]>, Portal>,
    /// The message that the program's reply is for.
    asked: ReplyOwner,
}

/// A prepared command.
#[derive(Debug)]
struct Prepared {
    text: String,
    /// The columns of its rows; none if it shows none.
    columns: Vec<ShownColumn>,
}

#[derive(Debug)]
struct Portal {
    statement: Arc<Prepared>,
    /// The format of each column.
    formats: Vec<Format>,
    /// The reply; `None` before the command has run.
    reply: Option<KeptReply>,
}

/// The reply to a portal's command.
#[derive(Debug)]
struct KeptReply {
    messages: Vec<u8>,
    /// Bytes that the client has got.
    sent: usize,
}

/// The message that the program's reply is for.
#[derive(Debug, Default)]
enum ReplyOwner {
    #[default]
    Nothing,
    /// A Query with these commands.
    Query(Vec<String>),
    /// A Parse with this name and text.
    Parse(Box<[u8]>, String),
    /// An Execute of this portal with this limit of rows.
    Execute(Box<[u8]>, u32),
}

/// The next step behind a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Nothing: the client has its reply.
    Read,
    /// The program is asked for this part of the reply to a command.
    Ask(String, ReplyForm),
}

/// The SQLSTATE and the message of an error, or a message that breaks the protocol.
enum Failure {
    Error(&'static str, String),
    Malformed(Malformed),
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<(&'static str, String)> for Failure {
    fn from((sqlstate, message): (&'static str, String)) -> Self {
        Self::Error(sqlstate, message)
    }
}

fn failed<T>(sqlstate: &'static str, message: String) -> Result<T, Failure> {
    Err(Failure::Error(sqlstate, message))
}

impl Session {
    /// Makes a session of a client that may do everything, whatever the options say of its user.
    pub(crate) fn of_owner() -> Self {
        Self { is_owner: true, ..Self::default() }
    }

    /// Whether the client may do everything, whatever the options say of its user.
    pub(crate) fn is_owner(&self) -> bool {
        self.is_owner
    }

    /// Handles a message. Appends the reply if it takes nothing of the program.
    ///
    /// # Errors
    /// A message that breaks the protocol.
    pub(crate) fn message(
        &mut self,
        tag: u8,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<NextStep, Malformed> {
        let next = match tag {
            front::SYNC => Ok(self.sync(out)),
            // After an error PostgreSQL drops a Query before the Sync as well.
            _ if self.skips_to_sync => Ok(NextStep::Read),
            front::QUERY => return self.query(body, out),
            front::FUNCTION_CALL => {
                error(out, "0A000", "the admin console has no functions");
                self.ready(out);
                Ok(NextStep::Read)
            }
            front::PARSE => self.parse(body, out),
            front::BIND => self.bind(body, out),
            front::DESCRIBE => self.describe(body, out),
            front::EXECUTE => self.execute(body, out),
            front::CLOSE => self.close(body, out),
            // PostgreSQL ignores these outside of a COPY as well.
            front::FLUSH | front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => {
                Ok(NextStep::Read)
            }
            _ => return Err(Malformed::new("message type")),
        };
        match next {
            Ok(next) => Ok(next),
            Err(Failure::Malformed(malformed)) => Err(malformed),
            Err(Failure::Error(sqlstate, message)) => {
                error(out, sqlstate, &message);
                self.skips_to_sync = true;
                Ok(NextStep::Read)
            }
        }
    }

    /// Refuses a message that is too long to be read, by its tag.
    pub(crate) fn too_long(&mut self, tag: u8, most: u32, out: &mut Vec<u8>) {
        if self.skips_to_sync {
            return;
        }
        error(out, "54000", &format!("a command of the console has at most {most} bytes"));
        match tag {
            front::QUERY | front::FUNCTION_CALL => self.ready(out),
            tag => self.skips_to_sync = tag != front::SYNC,
        }
    }

    /// Passes the program's reply on, to the message that it is for.
    pub(crate) fn reply(&mut self, reply: ProgramReply, out: &mut Vec<u8>) {
        match (mem::take(&mut self.asked), reply) {
            (ReplyOwner::Parse(name, text), ProgramReply::Columns(columns)) => {
                self.statements.insert(name, Arc::new(Prepared { text, columns }));
                write::bare(out, back::PARSE_COMPLETE);
            }
            (ReplyOwner::Execute(name, limit), ProgramReply::Messages(messages)) => {
                self.run_portal(&name, limit, messages, out);
            }
            (ReplyOwner::Query(commands), ProgramReply::Messages(messages)) => {
                out.extend_from_slice(&messages);
                commands.iter().for_each(|command| self.take_effect(command.as_bytes()));
                self.ready(out);
            }
            (ReplyOwner::Query(_), ProgramReply::Refused(messages)) => {
                out.extend_from_slice(&messages);
                self.ready(out);
            }
            (_, ProgramReply::Refused(messages)) => {
                out.extend_from_slice(&messages);
                self.skips_to_sync = true;
            }
            // The program replies in the form that it is asked for.
            (_, ProgramReply::Messages(_) | ProgramReply::Columns(_)) => {}
        }
    }

    /// Sends a ReadyForQuery. Its status is that of a transaction block if the client has begun
    /// one: some drivers end a connection that says otherwise behind a BEGIN.
    fn ready(&self, out: &mut Vec<u8>) {
        write::ready(out, if self.is_in_block { Status::Transaction } else { Status::Idle });
    }

    fn sync(&mut self, out: &mut Vec<u8>) -> NextStep {
        self.skips_to_sync = false;
        if !self.is_in_block {
            self.portals.clear();
        }
        self.ready(out);
        NextStep::Read
    }

    fn query(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<NextStep, Malformed> {
        let text = read::query_text(body)?;
        // A Query replaces the unnamed statement and portal.
        self.statements.remove(&b""[..]);
        self.portals.remove(&b""[..]);
        let text = String::from_utf8_lossy(text).into_owned();
        let commands = split::commands(&text);
        if let [command] = &commands[..]
            && let Some(block) = BlockCommand::read(command.as_bytes())
        {
            self.run_in_session(block, out);
            self.ready(out);
            return Ok(NextStep::Read);
        }
        self.asked = ReplyOwner::Query(commands);
        Ok(NextStep::Ask(text, ReplyForm::Whole))
    }

    fn parse(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<NextStep, Failure> {
        let parse = Parse::read(body)?;
        if !parse.name.is_empty() && self.statements.contains_key(parse.name) {
            let name = String::from_utf8_lossy(parse.name);
            return failed("42P05", format!("prepared statement \"{name}\" already exists"));
        }
        if self.statements.len() >= OBJECTS_MAX && !self.statements.contains_key(parse.name) {
            let most = format!("a session of the console has at most {OBJECTS_MAX} statements");
            return failed("53400", most);
        }
        let text = String::from_utf8_lossy(parse.text()).into_owned();
        if block_of(&text).is_some() {
            let prepared = Prepared { text, columns: Vec::new() };
            self.statements.insert(parse.name.into(), Arc::new(prepared));
            write::bare(out, back::PARSE_COMPLETE);
            return Ok(NextStep::Read);
        }
        self.asked = ReplyOwner::Parse(parse.name.into(), text.clone());
        Ok(NextStep::Ask(text, ReplyForm::Columns))
    }

    fn bind(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<NextStep, Failure> {
        let bound = Bound::read(body)?;
        let statement = self.statement(bound.statement)?;
        if bound.parameters > 0 {
            let (number, name) = (bound.parameters, String::from_utf8_lossy(bound.statement));
            let message = format!(
                "bind message supplies {number} parameters, but prepared statement \"{name}\" \
                 requires 0"
            );
            return failed("08P01", message);
        }
        if !bound.portal.is_empty() && self.portals.contains_key(bound.portal) {
            let name = String::from_utf8_lossy(bound.portal);
            return failed("42P03", format!("portal \"{name}\" already exists"));
        }
        if self.portals.len() >= OBJECTS_MAX && !self.portals.contains_key(bound.portal) {
            let most = format!("a session of the console has at most {OBJECTS_MAX} portals");
            return failed("53400", most);
        }
        let portal = Portal {
            formats: bound.formats(statement.columns.len())?,
            statement: Arc::clone(statement),
            reply: None,
        };
        self.portals.insert(bound.portal.into(), portal);
        write::bare(out, back::BIND_COMPLETE);
        Ok(NextStep::Read)
    }

    fn describe(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<NextStep, Failure> {
        match Target::read(body)? {
            Target::Statement(name) => {
                let statement = self.statement(name)?;
                // No parameters.
                write::message(out, back::PARAMETER_DESCRIPTION, |out| out.extend([0, 0]));
                let formats = vec![Format::Text; statement.columns.len()];
                describe(&statement.columns, &formats, out);
            }
            Target::Portal(name) => {
                let portal = self.portal(name)?;
                describe(&portal.statement.columns, &portal.formats, out);
            }
            Target::Unknown => return failed("08P01", "invalid DESCRIBE message subtype".into()),
        }
        Ok(NextStep::Read)
    }

    fn execute(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<NextStep, Failure> {
        let name = read::execute_portal(body)?;
        let limit = body.last_chunk().map_or(0, |limit| i32::from_be_bytes(*limit));
        // Zero and less stand for all rows.
        let limit = u32::try_from(limit).unwrap_or(0);
        let portal = self.portal(name)?;
        if let Some(kept) = &mut portal.reply {
            kept.send_rows(limit, out);
            return Ok(NextStep::Read);
        }
        let text = portal.statement.text.clone();
        let columns = portal.statement.columns.iter().cloned().zip(portal.formats.iter().copied());
        let form = ReplyForm::Rows(columns.collect());
        if let Some(command) = block_of(&text) {
            self.run_in_session(command, out);
            return Ok(NextStep::Read);
        }
        self.asked = ReplyOwner::Execute(name.into(), limit);
        Ok(NextStep::Ask(text, form))
    }

    fn close(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<NextStep, Failure> {
        match Target::read(body)? {
            Target::Statement(name) => drop(self.statements.remove(name)),
            Target::Portal(name) => drop(self.portals.remove(name)),
            Target::Unknown => return failed("08P01", "invalid CLOSE message subtype".into()),
        }
        write::bare(out, back::CLOSE_COMPLETE);
        Ok(NextStep::Read)
    }

    fn run_in_session(&mut self, command: BlockCommand, out: &mut Vec<u8>) {
        self.enter_or_leave(command);
        write::command_complete(out, command.tag.as_bytes());
    }

    fn enter_or_leave(&mut self, command: BlockCommand) {
        self.is_in_block = match command.block {
            BlockEffect::Begins => true,
            BlockEffect::Ends => false,
            BlockEffect::Stays => self.is_in_block,
        };
    }

    /// Has the effect of a command that the program has carried out: on the transaction block, or
    /// on statements. Portals keep theirs.
    fn take_effect(&mut self, command: &[u8]) {
        if let Some(block) = BlockCommand::read(command) {
            self.enter_or_leave(block);
        }
        match Dropped::read(command) {
            Some(Dropped::All) => self.statements.clear(),
            Some(Dropped::One(name)) => drop(self.statements.remove(name)),
            None => {}
        }
    }

    /// Keeps the reply to a portal's command, and sends its first rows.
    fn run_portal(&mut self, name: &[u8], limit: u32, messages: Vec<u8>, out: &mut Vec<u8>) {
        let replies = self.portals.values().filter_map(|portal| portal.reply.as_ref());
        let kept: usize = replies.map(|reply| reply.messages.len()).sum();
        let Some(portal) = self.portals.get_mut(name) else { return };
        if limit > 0 && kept + messages.len() > KEPT_BYTES_MAX {
            let most = format!("portals of a session keep at most {KEPT_BYTES_MAX} bytes of rows");
            error(out, "53400", &most);
            self.skips_to_sync = true;
            return;
        }
        portal.reply.insert(KeptReply { messages, sent: 0 }).send_rows(limit, out);
        let commands = split::commands(&portal.statement.text);
        commands.iter().for_each(|command| self.take_effect(command.as_bytes()));
    }

    fn statement(&self, name: &[u8]) -> Result<&Arc<Prepared>, Failure> {
        let unknown = || match name {
            [] => "unnamed prepared statement does not exist".to_owned(),
            name => {
                let name = String::from_utf8_lossy(name);
                format!("prepared statement \"{name}\" does not exist")
            }
        };
        self.statements.get(name).ok_or_else(|| Failure::Error("26000", unknown()))
    }

    fn portal(&mut self, name: &[u8]) -> Result<&mut Portal, Failure> {
        let unknown = || format!("portal \"{}\" does not exist", String::from_utf8_lossy(name));
        self.portals.get_mut(name).ok_or_else(|| Failure::Error("34000", unknown()))
    }
}

impl KeptReply {
    /// Sends the next rows, at most `limit` unless that is 0, and what stands between them. Behind
    /// the last row the command's tag stays, for an Execute that comes once more.
    fn send_rows(&mut self, limit: u32, out: &mut Vec<u8>) {
        let rest = &self.messages[self.sent..];
        let (mut at, mut rows, mut last) = (0, 0, 0);
        while let Ok(Some(header)) = Header::parse(&rest[at..]) {
            if limit > 0 && rows == limit {
                out.extend_from_slice(&rest[..at]);
                self.sent += at;
                return write::bare(out, back::PORTAL_SUSPENDED);
            }
            rows += u32::from(header.tag == back::DATA_ROW);
            last = at;
            at += header.message_bytes();
        }
        out.extend_from_slice(&rest[..at]);
        *self = Self { messages: rest[last..].to_vec(), sent: 0 };
    }
}

/// Returns the command about transaction blocks that a text is, if it is one.
fn block_of(text: &str) -> Option<BlockCommand> {
    match &split::commands(text)[..] {
        [command] => BlockCommand::read(command.as_bytes()),
        _ => None,
    }
}

/// Appends the RowDescription of these columns, or a NoData without any.
fn describe(columns: &[ShownColumn], formats: &[Format], out: &mut Vec<u8>) {
    let columns = columns.iter().zip(formats).map(|(column, format)| {
        let ShownColumn { name, oid, size } = column;
        write::Column { name, oid: *oid, size: *size, format: format.code() }
    });
    match columns.len() {
        0 => write::bare(out, back::NO_DATA),
        _ => write::columns(out, columns),
    }
}

fn error(out: &mut Vec<u8>, sqlstate: &str, message: &str) {
    write::error(out, &Report { severity: "ERROR", sqlstate, message, hint: "" });
}
