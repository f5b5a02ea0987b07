//! A conversation in memory: scripted clients, the engine, scripted servers.
//!
//! A test lists the messages that clients and servers send, and the messages that each of them
//! gets, byte for byte. After each step the engine's invariants are checked, and at the end no
//! client or server may have got a message that the test does not list. Tests use only the engine's
//! public interface.
//!
//! Servers accept connections and log Refrain in by themselves, unless a test begins with
//! [`Conversation::by_hand`]. Names that Refrain gives statements begin with `~` here: `~1` is the
//! first text that became a statement, `~1.1` its next generation, `~none` a statement that never
//! exists, `~aside` that of an internal query.

mod autoprepare;
mod lines;
mod words;
mod world;

pub(crate) use self::autoprepare::*;
pub(crate) use self::lines::*;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::world::Question;
use self::world::{Role, SharedWorld, World};
use refrain_config::Options;
use refrain_pg::console::reply::{ProgramReply, ShownColumn};
use refrain_pg::requests::{Answer, Case, ReadCase, TextFindings};
use refrain_pg::snapshot::{HbaRow, StatementView};
use refrain_pg::{Counters, Event, LookupStats, Shared, Snapshot};
use refrain_pg_wire::tag::back;
use refrain_pool::Now;
use refrain_pool::event::Command;
use refrain_pool::ids::{Core, Peer};
use refrain_pool::secured::{Certificate, Secured};
use refrain_pool::snapshot::Extent;
use refrain_sql::normalize::Analysis;

/// Time between two ticks, as in the program.
const TICK: Duration = Duration::from_millis(100);
/// Ticks in which a longer time passes.
const TICKS_MAX: u32 = 200;

/// Engines, and the clients and servers around them.
pub(crate) struct Conversation(SharedWorld);

/// A client or a server of a conversation.
#[derive(Clone)]
pub(crate) struct Party {
    world: SharedWorld,
    end: usize,
}

/// Returns a whole file of options with these of the pool, one `name = value` per line. Refrain
/// does not ask servers about functions, unless these options say so.
pub(crate) fn options(pool: &str) -> String {
    let unless = |name, text| if pool.contains(name) { "" } else { text };
    let tracks = unless("track_functions", "track_functions = \"off\"\n");
    let shares = unless("share_servers", "share_servers = \"off\"\n");
    format!(
        "auth = \"trust\"\n[pool]\n{tracks}{shares}{pool}\n\
         [databases.\"*\"]\nurl = \"postgres://u@127.0.0.1:1\"\n"
    )
}

/// Begins a conversation with one server for all clients.
pub(crate) fn one_server() -> Conversation {
    Conversation::new(options("pool_size = 1"))
}

/// Begins a conversation with at most two servers.
pub(crate) fn two_servers() -> Conversation {
    Conversation::new(options("pool_size = 2"))
}

fn read(options: &str) -> Arc<Options> {
    Arc::new(Options::from_toml(options).unwrap_or_else(|error| panic!("{error}\n{options}")))
}

/// Returns a column of the type `text`.
pub(crate) fn column(name: &str) -> ShownColumn {
    ShownColumn { name: name.to_owned(), oid: 25, size: -1 }
}

impl Conversation {
    /// Begins a conversation on one core, with these options.
    pub(crate) fn new(options: String) -> Self {
        Self::on_cores(1, options)
    }

    /// Begins a conversation on several cores.
    pub(crate) fn on_cores(cores: u16, options: String) -> Self {
        let shared = Shared::new(read(&options), cores, &mut |bytes| bytes.fill(7));
        Self(Rc::new(RefCell::new(World::new(shared, cores))))
    }

    /// Has servers do nothing that the test does not say, their logins included.
    pub(crate) fn by_hand(self) -> Self {
        self.0.borrow_mut().greets = false;
        self
    }

    /// Has servers report this setting at logins from now on.
    pub(crate) fn servers_report(&self, name: &str, value: &str) {
        let mut world = self.0.borrow_mut();
        world.settings.retain(|(other, _)| other != name);
        world.settings.push((name.to_owned(), value.to_owned()));
    }

    fn party(&self, end: usize) -> Party {
        Party { world: self.0.clone(), end }
    }

    /// Connects a client, which sends nothing.
    pub(crate) fn newcomer(&self) -> Party {
        self.newcomer_on(0)
    }

    /// Connects a client on another core.
    pub(crate) fn newcomer_on(&self, core: usize) -> Party {
        self.newcomer_from(core, Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 5000))))
    }

    /// Connects a client from another address.
    pub(crate) fn newcomer_from(&self, core: usize, peer: Peer) -> Party {
        let mut world = self.0.borrow_mut();
        let end = world.accept(core, peer);
        world.settle();
        drop(world);
        self.party(end)
    }

    /// Logs a client in, as user `u` of database `d`.
    pub(crate) fn client(&self) -> Party {
        self.client_with(&[])
    }

    /// Logs a client in with further startup parameters.
    pub(crate) fn client_with(&self, parameters: &[(&str, &str)]) -> Party {
        let client = self.newcomer();
        client.logs_in(parameters);
        client
    }

    /// Logs a client in on another core.
    pub(crate) fn client_on(&self, core: usize) -> Party {
        let client = self.newcomer_on(core);
        client.logs_in(&[]);
        client
    }

    /// Returns the n-th server to which Refrain has sent a startup packet.
    pub(crate) fn server(&self, number: usize) -> Party {
        self.far(Role::Server, number)
    }

    /// Returns the n-th connection on which Refrain has sent a CancelRequest.
    pub(crate) fn cancel(&self, number: usize) -> Party {
        self.far(Role::Cancel, number)
    }

    fn far(&self, role: Role, number: usize) -> Party {
        let name = if role == Role::Server { "server" } else { "cancel" };
        let name = format!("{name} {number}");
        let world = self.0.borrow();
        let end = world.ends.iter().position(|end| end.role == role && end.name == name);
        self.party(end.unwrap_or_else(|| panic!("there is no {name}")))
    }

    /// Returns the n-th connection that Refrain has asked for.
    pub(crate) fn connection(&self, number: usize) -> Party {
        let world = self.0.borrow();
        let mut ends = (0..world.ends.len()).filter(|end| world.ends[*end].role != Role::Client);
        self.party(ends.nth(number - 1).unwrap_or_else(|| panic!("there is no such connection")))
    }

    /// Returns the beginning of the names that Refrain gives statements.
    pub(crate) fn prefix(&self) -> String {
        let prefix = self.0.borrow().shared.protocol.registry.prefix().to_vec();
        String::from_utf8(prefix).expect("it is a word")
    }

    /// Returns the reasons why the first client keeps its server, in words.
    pub(crate) fn pinned(&self) -> String {
        self.snapshot().clients[0].session.pinned.clone()
    }

    /// Has a core give its clients to another core, as far as they do nothing.
    pub(crate) fn gives_clients(&self, from: usize, to: u16) {
        let mut world = self.0.borrow_mut();
        world.step(from, Event::GiveClients { to: Core(to), most: usize::MAX });
        world.settle();
    }

    /// Returns the number of connections that Refrain has asked for.
    pub(crate) fn connections(&self) -> usize {
        self.0.borrow().ends.iter().filter(|end| end.role != Role::Client).count()
    }

    /// Lets time pass, with ticks in it.
    pub(crate) fn waits(&self, time: Duration) {
        let mut world = self.0.borrow_mut();
        let end = world.now.after(time);
        let tick = TICK.max(time / TICKS_MAX);
        while world.now < end {
            world.now = world.now.after(tick).min(end);
            for core in 0..world.cores.len() {
                world.step(core, Event::Tick);
            }
            world.settle();
        }
    }

    /// Returns the time for the next tick of the first core.
    pub(crate) fn next_tick(&self) -> Option<Now> {
        let core = &self.0.borrow().cores[0];
        core.engine.next_tick(&core.ports)
    }

    /// Gives a command of the operator to every core.
    pub(crate) fn commands(&self, command: Command) {
        let mut world = self.0.borrow_mut();
        match &command {
            Command::Pause(of) => world.shared.set_paused(of.as_ref(), true),
            Command::Kill(of) => world.shared.kill(of.as_ref()),
            Command::Resume(of) => world.shared.set_paused(of.as_ref(), false),
            Command::Reconnect(of) => world.shared.reconnect(of.as_ref()),
            Command::Reload(options) => world.shared.reload(options.clone()),
            _ => {}
        }
        for core in 0..world.cores.len() {
            world.step(core, Event::Command(command.clone()));
        }
        world.settle();
    }

    /// Reads other options, as on RELOAD.
    pub(crate) fn reloads(&self, options: &str) {
        self.commands(Command::Reload(read(options)));
    }

    /// Keeps mail between cores back, until [`Self::delivers`].
    pub(crate) fn keeps_mail(&self) {
        self.0.borrow_mut().delivers = false;
    }

    /// Delivers mail between cores, now and from now on.
    pub(crate) fn delivers(&self) {
        let mut world = self.0.borrow_mut();
        world.delivers = true;
        world.settle();
    }

    /// Returns the oldest question that a client has asked at the console.
    pub(crate) fn question(&self) -> Question {
        self.0.borrow_mut().questions.pop_front().expect("a client has asked something")
    }

    /// Answers a question with these messages, as the program does.
    pub(crate) fn answers(&self, question: &Question, reply: &[Line]) {
        let bytes = reply.iter().flat_map(|line| line.bytes.clone()).collect();
        self.replies(question, ProgramReply::Messages(bytes));
    }

    /// Refuses a question, as the program does.
    pub(crate) fn refuses(&self, question: &Question, error: &Line) {
        self.replies(question, ProgramReply::Refused(error.bytes.clone()));
    }

    /// Answers a question about columns, as the program does: all have the type `text`.
    pub(crate) fn describes(&self, question: &Question, names: &[&str]) {
        let columns = names.iter().map(|name| column(name)).collect();
        self.replies(question, ProgramReply::Columns(columns));
    }

    fn replies(&self, question: &Question, reply: ProgramReply) {
        let mut world = self.0.borrow_mut();
        world.step(0, Event::Answered(Answer::Console { client: question.client, reply }));
        world.settle();
    }

    /// Returns the oldest text that is to be analysed.
    pub(crate) fn case(&self) -> Box<Case> {
        self.0.borrow_mut().cases.pop_front().expect("there is a text to analyse")
    }

    /// Returns the number of texts that are to be analysed.
    pub(crate) fn cases(&self) -> usize {
        self.0.borrow().cases.len()
    }

    /// Ends the analysis of a text, as the parser thread does.
    pub(crate) fn analysed(&self, case: Box<Case>, analysis: Analysis) {
        let mut world = self.0.borrow_mut();
        world.step(0, Event::Answered(Answer::Analysed { case, analysis }));
        world.settle();
    }

    /// Returns the oldest statement whose text is to be read.
    pub(crate) fn read_case(&self) -> Box<ReadCase> {
        self.0.borrow_mut().read_cases.pop_front().expect("there is a statement to read")
    }

    /// Returns the number of statements whose texts are to be read.
    pub(crate) fn read_cases(&self) -> usize {
        self.0.borrow().read_cases.len()
    }

    /// Says what the text of a statement mentions, as the parser thread does.
    pub(crate) fn read(&self, case: Box<ReadCase>, found: impl Into<TextFindings>) {
        let mut world = self.0.borrow_mut();
        world.step(0, Event::Answered(Answer::Read { case, found: Box::new(found.into()) }));
        world.settle();
    }

    /// Returns a snapshot of the first core.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let world = self.0.borrow();
        world.cores[0].engine.snapshot(world.now)
    }

    /// Returns a snapshot of a part of the first core.
    pub(crate) fn snapshot_of(&self, extent: Extent) -> Snapshot {
        let world = self.0.borrow();
        world.cores[0].engine.snapshot_of(world.now, extent)
    }

    /// Returns the counts of users that were looked up.
    pub(crate) fn lookups(&self) -> LookupStats {
        self.0.borrow().shared.protocol.lookup_stats()
    }

    /// Forgets what databases said of users, as FLUSH AUTH does.
    pub(crate) fn flushes_users(&self) {
        let world = self.0.borrow();
        world.shared.protocol.flush_users(world.now);
    }

    /// Returns what the console shows of each statement.
    pub(crate) fn statements(&self) -> Vec<StatementView> {
        let world = self.0.borrow();
        let cores: Vec<_> =
            world.cores.iter().map(|core| refrain_pg::core_statements(&core.engine)).collect();
        refrain_pg::statements_at(&world.shared, &cores)
    }

    /// Returns what the console shows of each rule of `pg_hba.conf`.
    pub(crate) fn hba_rules(&self) -> Vec<HbaRow> {
        refrain_pg::hba_rules(&self.0.borrow().shared)
    }

    /// Returns the counters of the first pool of the first core.
    pub(crate) fn counters(&self) -> Counters {
        self.snapshot().pools[0].counters.clone()
    }

    /// Whether the first core has no clients left after a shutdown began.
    pub(crate) fn is_drained(&self) -> bool {
        self.0.borrow().cores[0].engine.is_drained()
    }

    /// Returns the lines in the log: the cause and the words of each.
    pub(crate) fn log(&self) -> Vec<(&'static str, String)> {
        let world = self.0.borrow();
        world.notes.iter().map(|note| (note.cause, note.detail.clone())).collect()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let ends = self.0.borrow().ends.len();
        for end in 0..ends {
            let party = self.party(end);
            let rest = party.take();
            let goodbye = party.role() != Role::Client && rest == [terminate()];
            assert!(
                rest.is_empty() || goodbye || party.role() == Role::Connecting,
                "the test did not look at what {} has got:{}",
                party.name(),
                party.list(&rest)
            );
        }
    }
}

impl Party {
    fn name(&self) -> String {
        self.world.borrow().ends[self.end].name.clone()
    }

    fn role(&self) -> Role {
        self.world.borrow().ends[self.end].role
    }

    pub(crate) fn take(&self) -> Vec<Line> {
        self.world.borrow_mut().take_got(self.end)
    }

    fn list(&self, lines: &[Line]) -> String {
        let sender = self.world.borrow().sender_to(self.end);
        let told = lines.iter().map(|line| format!("\n    {}", words::tell(line, sender)));
        if lines.is_empty() { "\n    nothing".to_owned() } else { told.collect() }
    }

    /// Sends the startup packet of user `u` for database `d`, with further parameters.
    pub(crate) fn asks_to_log_in(&self, parameters: &[(&str, &str)]) {
        let parameters = [&[("user", "u"), ("database", "d")], parameters].concat();
        self.sends([startup(0, &parameters)]);
    }

    /// Has its connection encrypted, with this certificate of the client.
    pub(crate) fn is_secured(&self, certificate: Option<Certificate>) -> &Self {
        let secured = Secured {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256".into(),
            end_point: None,
            certificate,
        };
        let mut world = self.world.borrow_mut();
        let (core, conn) = (world.ends[self.end].core, world.ends[self.end].conn);
        world.step(core, Event::Secured { conn, secured: Arc::new(secured) });
        drop(world);
        self
    }

    /// Logs in, where no password is asked for.
    fn logs_in(&self, parameters: &[(&str, &str)]) {
        self.world.borrow_mut().is_silent = true;
        self.asks_to_log_in(parameters);
        self.is_let_in();
        let mut world = self.world.borrow_mut();
        world.is_silent = false;
        world.tell(self.end, "has logged in");
    }

    /// Forgets the messages of the login, of which the last says that it is let in, and remembers
    /// the key for cancelling.
    pub(crate) fn is_let_in(&self) {
        let got = self.take();
        let last = got.last();
        assert!(last == Some(&ready()), "{} is let in:{}", self.name(), self.list(&got));
        let key = got.iter().find(|line| line.bytes[0] == back::BACKEND_KEY_DATA);
        let body = key.map(|line| line.bytes[5..].to_vec()).expect("it gets a key");
        let (pid, key) = body.split_at(4);
        let pid = u32::from_be_bytes(pid.try_into().expect("four bytes"));
        self.world.borrow_mut().ends[self.end].key = (pid, key.to_vec());
    }

    /// Returns the process ID and the key that the client was given.
    pub(crate) fn key(&self) -> (u32, Vec<u8>) {
        self.world.borrow().ends[self.end].key.clone()
    }

    /// Sends lines, in one packet.
    pub(crate) fn sends(&self, lines: impl IntoIterator<Item = Line>) -> &Self {
        let lines: Vec<_> = lines.into_iter().collect();
        let mut world = self.world.borrow_mut();
        world.say(self.end, &lines);
        world.settle();
        drop(world);
        self
    }

    /// Sends lines, as a server that was asked.
    pub(crate) fn answers(&self, lines: impl IntoIterator<Item = Line>) -> &Self {
        self.sends(lines)
    }

    /// Sends lines, each byte in a packet of its own.
    pub(crate) fn sends_byte_by_byte(&self, lines: impl IntoIterator<Item = Line>) -> &Self {
        let bytes: Vec<u8> = lines.into_iter().flat_map(|line| line.bytes).collect();
        for byte in bytes {
            self.sends_bytes(&[byte]);
        }
        self
    }

    /// Sends bytes, which need not be whole messages.
    pub(crate) fn sends_bytes(&self, bytes: &[u8]) -> &Self {
        let mut world = self.world.borrow_mut();
        world.say_bytes(self.end, bytes);
        world.settle();
        drop(world);
        self
    }

    /// Asserts that it has got these messages since the test last looked, and nothing else.
    #[track_caller]
    pub(crate) fn gets(&self, expected: impl IntoIterator<Item = Line>) -> &Self {
        let expected: Vec<_> = expected.into_iter().collect();
        let got = self.take();
        let pairs = expected.iter().zip(&got);
        let alike = expected.len() == got.len() && pairs.clone().all(|(e, g)| words::fits(e, g));
        if !alike {
            let same = pairs.take_while(|(e, g)| words::fits(e, g)).count();
            panic!(
                "{} is due to get:{}\nand got:{}\nThe first {same} are as expected.",
                self.name(),
                self.list(&expected),
                self.list(&got)
            );
        }
        self
    }

    /// Asserts that it has got nothing since the test last looked.
    #[track_caller]
    pub(crate) fn gets_nothing(&self) -> &Self {
        self.gets([])
    }

    /// Asserts that it has got these bytes.
    #[track_caller]
    pub(crate) fn gets_bytes(&self, expected: &[u8]) -> &Self {
        let got: Vec<u8> = self.take().into_iter().flat_map(|line| line.bytes).collect();
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
        self
    }

    /// Returns all that it has got, without looking.
    pub(crate) fn forgets(&self) -> Vec<Line> {
        self.take()
    }

    /// Sends a query string, which the server gets as it is and answers like this; gets the same.
    #[track_caller]
    pub(crate) fn asks(&self, server: &Self, text: &str, reply: impl IntoIterator<Item = Line>) {
        let reply: Vec<_> = reply.into_iter().collect();
        self.sends([query(text)]);
        server.gets([query(text)]).answers(reply.clone());
        self.gets(reply);
    }

    /// Sends a query string, which a server gets that was connected for it.
    #[track_caller]
    pub(crate) fn asks_another(&self, talk: &Conversation, server: usize, text: &str) {
        self.sends([query(text)]);
        talk.server(server).gets([query(text)]).answers(one_row());
        self.gets(one_row());
    }

    /// Sets the client's time zone to Asia/Tokyo on this server, which reports the change.
    #[track_caller]
    pub(crate) fn moves_to_tokyo(&self, server: &Self) {
        let set = [complete("SET"), parameter("TimeZone", "Asia/Tokyo"), ready()];
        self.asks(server, "set timezone = 'Asia/Tokyo'", set);
    }

    /// Begins a transaction block.
    #[track_caller]
    pub(crate) fn opens_block(&self, server: &Self) {
        self.asks(server, "begin", [complete("BEGIN"), ready_in_block()]);
    }

    /// Ends its transaction block.
    #[track_caller]
    pub(crate) fn commits(&self, server: &Self) {
        self.asks(server, "commit", [complete("COMMIT"), ready()]);
    }

    /// Prepares a statement that returns no rows. The server gets it unnamed, as it gets any text
    /// for the first time.
    #[track_caller]
    pub(crate) fn prepares(&self, server: &Self, name: &str, text: &str) {
        self.sends([parse(name, text), describe_statement(name), sync()]);
        let reply = [parse_complete(), parameters(&[25]), no_data(), ready()];
        server.gets([parse("", text), describe_statement(""), sync()]).answers(reply.clone());
        self.gets(reply);
    }

    /// Prepares a statement that returns no rows, and runs it until the server has it by name, as
    /// `there`.
    #[track_caller]
    pub(crate) fn prepares_by_name(&self, server: &Self, name: &str, text: &str, there: &str) {
        self.prepares(server, name, text);
        self.runs(server, name, [bind("", "")]);
        self.sends([bind("", name), execute(""), sync()]);
        server.gets([parse(there, text), bind("", there), execute(""), sync()]);
        server.answers([parse_complete(), bind_complete(), complete("UPDATE 1"), ready()]);
        self.gets([bind_complete(), complete("UPDATE 1"), ready()]);
    }

    /// Runs a prepared statement; the server gets this Bind for it.
    #[track_caller]
    pub(crate) fn runs(&self, server: &Self, name: &str, due: [Line; 1]) {
        self.sends([bind("", name), execute(""), sync()]);
        server.gets(due.into_iter().chain([execute(""), sync()]));
        server.answers([bind_complete(), complete("UPDATE 1"), ready()]);
        self.gets([bind_complete(), complete("UPDATE 1"), ready()]);
    }

    /// Returns the number of bytes that it has got and the test has not looked at.
    pub(crate) fn has_got(&self) -> usize {
        self.world.borrow().ends[self.end].got.len()
    }

    /// Accepts Refrain's connection.
    pub(crate) fn accepts(&self) -> &Self {
        self.happens(|conn| Event::Connected { conn })
    }

    /// Refuses Refrain's connection.
    pub(crate) fn fails(&self, why: &str) -> &Self {
        self.happens(|conn| Event::Failed { conn, why })
    }

    /// Shakes hands with Refrain.
    pub(crate) fn secures(&self, end_point: &[u8]) -> &Self {
        let secured = Arc::new(Secured {
            version: "TLSv1.3",
            cipher: "TLS_AES_256_GCM_SHA384".into(),
            end_point: Some(end_point.into()),
            certificate: None,
        });
        self.happens(|conn| Event::Secured { conn, secured })
    }

    /// Returns the number of bytes in the clear before the handshake that Refrain wants, and what
    /// has come of it.
    pub(crate) fn handshake(&self) -> Option<(usize, Vec<u8>)> {
        self.world.borrow_mut().ends[self.end].handshake.take()
    }

    /// Ends its stream in order.
    pub(crate) fn ends_stream(&self) -> &Self {
        self.happens(|conn| Event::Closed { conn, why: None })
    }

    /// Loses its connection.
    pub(crate) fn breaks(&self) -> &Self {
        self.happens(|conn| Event::Closed { conn, why: Some("connection reset by peer") })
    }

    fn happens<'a>(&self, event: impl FnOnce(refrain_pg::Conn) -> Event<'a>) -> &Self {
        let mut world = self.world.borrow_mut();
        let (core, conn) = (world.ends[self.end].core, world.ends[self.end].conn);
        world.step(core, event(conn));
        world.settle();
        drop(world);
        self
    }

    /// Logs Refrain in without a password, as a server whose process has this ID.
    pub(crate) fn greets(&self, pid: u32) -> &Self {
        let greeting = self.world.borrow().greeting(pid);
        self.sends(greeting)
    }

    /// Takes nothing in from now on.
    pub(crate) fn stalls(&self) -> &Self {
        self.world.borrow_mut().ends[self.end].stalls = true;
        self
    }

    /// Takes everything in again.
    pub(crate) fn takes_in(&self) -> &Self {
        self.world.borrow_mut().resume(self.end);
        self
    }

    /// Whether Refrain has closed the connection.
    pub(crate) fn is_closed(&self) -> bool {
        self.world.borrow().ends[self.end].closed
    }

    /// Whether Refrain has stopped reading the connection.
    pub(crate) fn is_paused(&self) -> bool {
        self.world.borrow().ends[self.end].paused
    }

    /// Returns the core that has the connection.
    pub(crate) fn core(&self) -> usize {
        self.world.borrow().ends[self.end].core
    }

    /// Returns the address that Refrain has connected to.
    pub(crate) fn host(&self) -> String {
        self.world.borrow().ends[self.end].host.clone()
    }
}
