//! The world around the engines: connections, the clock, and mail between cores.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use refrain_pg::console::reply::ReplyForm;
use refrain_pg::requests::{Case, ReadCase, Request};
use refrain_pg::{Action, Engine, Event, Output, Ports, Shared, Transfer};
use refrain_pg_wire::Header;
use refrain_pg_wire::startup::{self, Opening};
use refrain_pool::event::Note;
use refrain_pool::ids::Peer;
use refrain_pool::message::CoreMessage;
use refrain_pool::{Conn, Core, Now};

use super::lines::{self, Line};
use super::words::{self, Sender};

/// Microseconds that a step takes.
const STEP_US: u64 = 10;
/// The environment variable that has each message printed as bytes, too.
const BYTES: &str = "REFRAIN_BYTES";

/// The role of a connection's far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A client.
    Client,
    /// Refrain connects, and has sent nothing.
    Connecting,
    /// A PostgreSQL server.
    Server,
    /// A PostgreSQL server that gets a CancelRequest.
    Cancel,
}

/// The far end of a connection.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) core: usize,
    pub(crate) conn: Conn,
    /// Bytes that it got and that the test has not looked at yet.
    pub(crate) got: Vec<u8>,
    /// How many of them are printed.
    shown: usize,
    /// Whether Refrain has closed the connection.
    pub(crate) closed: bool,
    /// Whether Refrain has stopped reading it.
    pub(crate) paused: bool,
    /// Bytes that it sent while Refrain did not read it.
    unread: Vec<u8>,
    /// Whether it takes nothing in for now.
    pub(crate) stalls: bool,
    /// The send under way that it has not taken in.
    in_flight: Option<Vec<u8>>,
    /// The process ID and the key that Refrain gave it, if it is a client.
    pub(crate) key: (u32, Vec<u8>),
    /// The address that Refrain connects to.
    pub(crate) host: String,
    /// The number of bytes in the clear before the handshake that is due, and its beginning, if
    /// Refrain wants to encrypt.
    pub(crate) handshake: Option<(usize, Vec<u8>)>,
}

/// A question at the admin console, for the program.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) client: refrain_pg::ClientSerial,
    pub(crate) user: String,
    pub(crate) admin: bool,
    pub(crate) query: String,
    pub(crate) form: ReplyForm,
}

/// Something on its way between cores.
#[derive(Debug)]
pub(crate) enum Mail {
    Message { to: Core, message: CoreMessage },
    Server { to: Core, end: usize, transfer: Box<Transfer> },
}

/// An engine and its connections.
#[derive(Debug)]
pub(crate) struct OneCore {
    pub(crate) engine: Engine,
    pub(crate) ports: Ports,
}

/// Everything in a conversation.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cores: Vec<OneCore>,
    pub(crate) ends: Vec<End>,
    pub(crate) now: Now,
    /// Whether servers accept connections and log Refrain in by themselves.
    pub(crate) greets: bool,
    /// The settings that such a server reports.
    pub(crate) settings: Vec<(String, String)>,
    /// Whether mail is delivered at once.
    pub(crate) delivers: bool,
    pub(crate) mail: VecDeque<Mail>,
    pub(crate) questions: VecDeque<Question>,
    pub(crate) cases: VecDeque<Box<Case>>,
    /// Statements whose texts the parser thread is to read.
    pub(crate) read_cases: VecDeque<Box<ReadCase>>,
    pub(crate) notes: Vec<Note>,
    /// Whether nothing is printed: a login that does not matter.
    pub(crate) is_silent: bool,
}

/// A world that the parties of a conversation share.
pub(crate) type SharedWorld = Rc<RefCell<World>>;

impl World {
    pub(crate) fn new(shared: Arc<Shared>, cores: u16) -> Self {
        let engine = |core| OneCore {
            engine: Engine::new(Core(core), shared.clone(), Box::new(|bytes| bytes.fill(9))),
            ports: Ports::default(),
        };
        let settings = [
            ("client_encoding", "UTF8"),
            ("server_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("TimeZone", "UTC"),
            ("server_version", "18.0"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            cores: (0..cores).map(engine).collect(),
            shared,
            ends: Vec::new(),
            now: Now(1_000_000),
            greets: true,
            settings: settings.into(),
            delivers: true,
            mail: VecDeque::new(),
            questions: VecDeque::new(),
            cases: VecDeque::new(),
            read_cases: VecDeque::new(),
            notes: Vec::new(),
            is_silent: false,
        }
    }

    /// Steps one engine, and checks what always holds there.
    pub(crate) fn step(&mut self, core: usize, event: Event<'_>) {
        self.now.0 += STEP_US;
        let OneCore { engine, ports } = &mut self.cores[core];
        engine.step(self.now, event, ports);
        if let Err(broken) = engine.check() {
            panic!("after this step, an invariant of core {core} does not hold: {broken}");
        }
    }

    /// Does everything that the engines ask for, until they ask for nothing more.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut busy = false;
            for core in 0..self.cores.len() {
                while let Some(output) = self.cores[core].ports.next() {
                    busy = true;
                    self.put_out(core, output);
                }
            }
            while self.delivers
                && let Some(mail) = self.mail.pop_front()
            {
                busy = true;
                self.deliver(mail);
            }
            if !busy {
                return;
            }
        }
    }

    fn put_out(&mut self, core: usize, output: Output) {
        match output {
            Output::Send { conn, bytes } => {
                let end = self.end_of(core, conn);
                if self.ends[end].stalls {
                    self.ends[end].in_flight = Some(bytes);
                } else {
                    self.take_in(end, bytes);
                }
            }
            Output::Close { conn } => {
                let end = self.end_of(core, conn);
                self.ends[end].closed = true;
                self.tell(end, "is closed by Refrain");
            }
            Output::Act(action) => self.act(core, action),
        }
    }

    fn act(&mut self, core: usize, action: Action) {
        match action {
            Action::Connect { conn, host } => {
                let number = self.ends.iter().filter(|end| end.role != Role::Client).count() + 1;
                let end = self.open(core, conn, Role::Connecting, format!("connection {number}"));
                self.ends[end].host = host.to_string();
                if self.greets {
                    self.step(core, Event::Connected { conn });
                }
            }
            Action::StartTls { conn, clear, early, .. } => {
                let end = self.end_of(core, conn);
                self.tell(end, "is to be encrypted");
                self.ends[end].handshake = Some((clear, early));
            }
            Action::Pause { conn } => {
                let end = self.end_of(core, conn);
                assert!(!std::mem::replace(&mut self.ends[end].paused, true), "paused twice");
                self.tell(end, "is not read for now");
            }
            Action::Resume { conn } => {
                let end = self.end_of(core, conn);
                assert!(std::mem::replace(&mut self.ends[end].paused, false), "resumed twice");
                self.tell(end, "is read again");
                let bytes = std::mem::take(&mut self.ends[end].unread);
                if !bytes.is_empty() {
                    self.step(core, Event::Bytes { conn, bytes: &bytes });
                }
            }
            Action::HandOver { conn, to, transfer } => {
                let end = self.end_of(core, conn);
                self.cores[core].ports.release(conn);
                self.ends[end].core = usize::MAX;
                self.mail.push_back(Mail::Server { to, end, transfer });
            }
            Action::Tell { core: to, message } => {
                self.mail.push_back(Mail::Message { to, message });
            }
            Action::Ask(Request::Console { client, user, admin, query, form }) => {
                let user = user.to_string();
                self.questions.push_back(Question { client, user, admin, query, form });
            }
            // There is no other process.
            Action::Ask(Request::Cancel { .. } | Request::PassOn { .. }) => {}
            Action::Ask(Request::Analyse(case)) => self.cases.push_back(case),
            Action::Ask(Request::Read(case)) => self.read_cases.push_back(case),
            Action::Note(note) => self.notes.push(*note),
        }
    }

    /// Delivers one piece of mail.
    pub(crate) fn deliver(&mut self, mail: Mail) {
        match mail {
            Mail::Message { to, message } => {
                self.step(usize::from(to.0), Event::Message(message));
            }
            Mail::Server { to, end, transfer } => {
                let core = usize::from(to.0);
                let conn = self.cores[core].ports.open();
                (self.ends[end].core, self.ends[end].conn) = (core, conn);
                self.tell(end, &format!("is handed over to core {core}"));
                self.step(core, Event::Arrived { conn, transfer });
            }
        }
    }

    /// Adds a far end.
    pub(crate) fn open(&mut self, core: usize, conn: Conn, role: Role, name: String) -> usize {
        let end = End {
            name,
            role,
            core,
            conn,
            got: Vec::new(),
            shown: 0,
            closed: false,
            paused: false,
            unread: Vec::new(),
            stalls: false,
            in_flight: None,
            key: (0, Vec::new()),
            host: String::new(),
            handshake: None,
        };
        self.ends.push(end);
        self.ends.len() - 1
    }

    /// Connects a client, and returns its far end.
    pub(crate) fn accept(&mut self, core: usize, peer: Peer) -> usize {
        let conn = self.cores[core].ports.open();
        let number = self.ends.iter().filter(|end| end.role == Role::Client).count() + 1;
        let end = self.open(core, conn, Role::Client, format!("client {number}"));
        self.step(core, Event::Accepted { conn, peer });
        end
    }

    fn end_of(&self, core: usize, conn: Conn) -> usize {
        let found =
            self.ends.iter().position(|it| !it.closed && it.core == core && it.conn == conn);
        found.unwrap_or_else(|| panic!("{conn:?} of core {core} is open"))
    }

    /// Has a far end take bytes in.
    fn take_in(&mut self, end: usize, bytes: Vec<u8>) {
        self.ends[end].got.extend_from_slice(&bytes);
        self.show(end);
        let (core, conn) = (self.ends[end].core, self.ends[end].conn);
        if self.cores[core].ports.sent(conn, bytes) {
            self.step(core, Event::Drained { conn });
        }
        if self.ends[end].role == Role::Connecting {
            self.begin(end);
        }
    }

    /// Has a far end that stalled take in everything that is queued to it.
    pub(crate) fn resume(&mut self, end: usize) {
        self.ends[end].stalls = false;
        if let Some(bytes) = self.ends[end].in_flight.take() {
            self.take_in(end, bytes);
        }
        self.settle();
    }

    /// Reads the first packet of a connection that Refrain has opened: a login, or a cancel
    /// request.
    fn begin(&mut self, end: usize) {
        let Ok(Some((opening, _))) = startup::parse(&self.ends[end].got) else { return };
        let role =
            if matches!(opening, Opening::Cancel { .. }) { Role::Cancel } else { Role::Server };
        let number = self.ends.iter().filter(|end| end.role == role).count() + 1;
        let name = if role == Role::Cancel { "cancel" } else { "server" };
        self.ends[end].role = role;
        self.ends[end].name = format!("{name} {number}");
        if role == Role::Server && self.greets {
            self.ends[end].got.clear();
            self.ends[end].shown = 0;
            let greeting = self.greeting(u32::try_from(number).unwrap_or(0));
            let before = std::mem::replace(&mut self.is_silent, true);
            self.say(end, &greeting);
            self.is_silent = before;
            self.tell(end, "has logged Refrain in");
        }
    }

    /// Returns the login of a server that asks for no password.
    pub(crate) fn greeting(&self, pid: u32) -> Vec<Line> {
        let mut greeting = vec![lines::authentication(0, b"")];
        greeting.extend(self.settings.iter().map(|(name, value)| lines::parameter(name, value)));
        greeting.extend([lines::backend_key(pid, b"key!"), lines::ready()]);
        greeting
    }

    /// Has a far end send lines. A server sends the beginning of Refrain's names for each `~`.
    pub(crate) fn say(&mut self, end: usize, lines: &[Line]) {
        let mut bytes = Vec::new();
        for line in lines {
            assert!(!line.is_pattern, "a pattern is not said");
            match self.ends[end].role {
                Role::Client => bytes.extend_from_slice(&line.bytes),
                _ => bytes.extend_from_slice(&replace(&line.bytes, b"~", self.prefix())),
            }
            self.print(end, ">", line);
        }
        self.say_bytes(end, &bytes);
    }

    /// Has a far end send these bytes.
    pub(crate) fn say_bytes(&mut self, end: usize, bytes: &[u8]) {
        let it = &mut self.ends[end];
        let (core, conn) = (it.core, it.conn);
        if it.closed {
            panic!("{} is closed, and says nothing more", it.name);
        } else if it.paused {
            it.unread.extend_from_slice(bytes);
        } else if core == usize::MAX {
            panic!("{} is on its way to another core", it.name);
        } else {
            self.step(core, Event::Bytes { conn, bytes });
        }
    }

    /// Takes what a far end has got, as messages. Refrain's own names begin with `~`.
    pub(crate) fn take_got(&mut self, end: usize) -> Vec<Line> {
        let bytes = std::mem::take(&mut self.ends[end].got);
        self.ends[end].shown = 0;
        let prefix = self.prefix().to_vec();
        if self.ends[end].role == Role::Client {
            let leak = bytes.windows(prefix.len()).any(|part| part == prefix);
            assert!(!leak, "a client never sees a name of Refrain's: {}", bytes.escape_ascii());
            return words::split(&bytes);
        }
        let lines = words::split(&bytes).into_iter();
        lines.map(|line| raw(replace(&line.bytes, &prefix, b"~"))).collect()
    }

    fn prefix(&self) -> &[u8] {
        self.shared.protocol.registry.prefix()
    }

    /// Returns the kind of sender of the messages that a far end gets.
    pub(crate) fn sender_to(&self, end: usize) -> Sender {
        if self.ends[end].role == Role::Client { Sender::Back } else { Sender::Front }
    }

    /// Prints the whole messages that a far end has got.
    fn show(&mut self, end: usize) {
        if self.ends[end].role == Role::Connecting {
            return;
        }
        loop {
            let it = &self.ends[end];
            let rest = &it.got[it.shown..];
            let Ok(Some(header)) = Header::parse(rest) else { return };
            let Some(message) = rest.get(..header.message_bytes()) else { return };
            let line = match it.role {
                Role::Client => raw(message.to_vec()),
                _ => raw(replace(message, self.prefix(), b"~")),
            };
            self.print(end, "<", &line);
            self.ends[end].shown += header.message_bytes();
        }
    }

    fn print(&self, end: usize, arrow: &str, line: &Line) {
        let to_end = self.sender_to(end);
        let by_end = if to_end == Sender::Back { Sender::Front } else { Sender::Back };
        let sender = if arrow == "<" { to_end } else { by_end };
        self.tell(end, &format!("{arrow} {}", words::tell(line, sender)));
        if std::env::var_os(BYTES).is_some() {
            self.tell(end, &format!("{arrow} {}", line.bytes.escape_ascii()));
        }
    }

    /// Prints a line about a far end. The test harness shows it if the test fails.
    #[expect(clippy::print_stdout, reason = "the record of a conversation, for a test that fails")]
    pub(crate) fn tell(&self, end: usize, what: &str) {
        if !self.is_silent {
            println!("{:>14} {what}", self.ends[end].name);
        }
    }
}

fn raw(bytes: Vec<u8>) -> Line {
    Line { bytes, is_pattern: false }
}

/// Replaces each `from` in a message by `to`, and corrects the message's length.
fn replace(message: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(message.len());
    let (mut rest, mut found) = (message, false);
    while let Some(at) = rest.windows(from.len()).position(|part| part == from) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(to);
        rest = &rest[at + from.len()..];
        found = true;
    }
    replaced.extend_from_slice(rest);
    if found {
        let whole = u32::from_be_bytes([message[1], message[2], message[3], message[4]]);
        let longer = replaced.len().wrapping_sub(message.len());
        let length = whole.wrapping_add(u32::try_from(longer as u64 & 0xffff_ffff).unwrap_or(0));
        replaced[1..5].copy_from_slice(&length.to_be_bytes());
    }
    replaced
}
