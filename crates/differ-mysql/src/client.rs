//! A client of an episode: a proxied and a direct session that get the same commands.

use crate::capability::{Capabilities, SESSION_TRACK, WITH_SCHEMA};
use crate::command::{Command, Due, Execute};
use crate::conn::Conn;
use crate::greeting::{Greeting, same_greetings};
use crate::holds::Holds;
use crate::mask::{Answers, MASKS, Said, same};
use crate::packet::{Packet, put};
use crate::passes::{PASSES, Pair, Reset, pass};
use crate::reply::{Reader, Reply, kind};
use crate::side::{DIRECT, PROXIED, Side};
use refrain_differ::conn::Broken;
use refrain_differ::outcome;
use refrain_differ::rng::Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// A difference between the two sides.
pub type Difference = outcome::Difference<Packet>;
/// Why an episode ends before its last step.
pub type Stop = outcome::Stop<Packet>;
/// Counts of a run.
pub type Tally = outcome::Tally<{ MASKS.len() + PASSES.len() }>;

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Address of the proxy.
    pub proxied: String,
    /// Address of the server.
    pub direct: String,
    /// Added to the names of users and schemas.
    pub suffix: String,
    /// User of the server who makes schemas.
    pub admin: String,
    /// The longest that a reply may take.
    pub limit: Duration,
    /// Whether writes to the proxy are cut into pieces.
    pub fragment: bool,
}

/// A login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The capabilities.
    pub agreed: Capabilities,
    /// The schema, if the capabilities have one.
    pub schema: String,
    /// The collation.
    pub collation: u8,
}

/// A client with its two sessions.
#[derive(Debug)]
pub struct Client {
    direct: Conn,
    proxied: Conn,
    sides: [Side; 2],
    /// The texts of prepared statements, by their handles.
    texts: BTreeMap<u32, String>,
    /// Commands whose replies are still to be read.
    sent: Vec<Command>,
    /// The reasons for which the client may hold a server.
    pub holds: Holds,
    /// Whether the client has had an error that a proxy says itself.
    was_refused: bool,
    /// Whether the session has been reset.
    reset: Reset,
    /// The things that the client has said about changes.
    said: Said,
    /// Whether the server is MySQL 9.
    is_mysql_9: bool,
    /// True after the sessions have ended.
    pub dead: bool,
}

impl Client {
    /// Opens both sessions and compares the replies to their logins.
    ///
    /// # Errors
    /// If the replies differ, or the direct session cannot be opened.
    pub fn open(peers: &Peers, login: &Login, tally: &mut Tally) -> Result<Self, Stop> {
        let broken = |broken: Broken| Stop::Broken(format!("direct connection: {broken:?}"));
        let mut direct = Conn::open(&peers.direct, peers.limit).map_err(broken)?;
        let refused = |broken: Broken| differs(format!("connect: {broken:?}"), &[], &[]);
        let mut proxied = Conn::open(&peers.proxied, peers.limit).map_err(refused)?;
        let greetings = [direct.read().map_err(broken)?, proxied.read().map_err(refused)?];
        same_greetings(&greetings[0], &greetings[1])
            .map_err(|what| differs(what, &greetings[..1], &greetings[1..]))?;
        let greeting = Greeting::read(&greetings[0].payload).map_err(Stop::Broken)?;
        let agreed = Capabilities(login.agreed.0 & greeting.capabilities);
        let side = |name: &'static str| Side {
            prefix: format!("{name}{}", peers.suffix),
            plugin: greeting.plugin.clone(),
            agreed,
            numbers: BTreeMap::new(),
        };
        let sides = [side(DIRECT), side(PROXIED)];
        for (conn, side) in [(&mut direct, &sides[0]), (&mut proxied, &sides[1])] {
            let mut out = Vec::new();
            put(&mut out, 1, &side.login(&side.fill(&login.schema), login.collation));
            conn.write(&out).map_err(broken)?;
        }
        let mut client = Self {
            direct,
            proxied,
            sides,
            texts: BTreeMap::new(),
            sent: Vec::new(),
            holds: Holds::new(agreed.has(WITH_SCHEMA)),
            was_refused: false,
            reset: Reset::Never,
            said: Said { tracks: told_unasked(&greeting.version), ..Said::default() },
            is_mysql_9: greeting.version.starts_with("9."),
            dead: false,
        };
        // The rest of a login looks as that of a change of the user.
        client.sent.push(Command::ChangeUser(String::new()));
        client.settle(tally)?;
        Ok(client)
    }

    /// Whether OK packets say what has changed.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        self.sides[0].agreed.has(SESSION_TRACK)
    }

    /// Returns what the sessions agreed on.
    #[must_use]
    pub fn agreed(&self) -> Capabilities {
        self.sides[0].agreed
    }

    /// Notes commands that are about to be sent on both sides.
    pub fn note(&mut self, commands: &[Command]) {
        self.sent.extend_from_slice(commands);
        self.holds.sent(commands);
    }

    /// Sends commands through the proxy.
    ///
    /// # Errors
    /// If the proxy takes no more bytes.
    pub fn send(&mut self, commands: &[Command], cuts: Option<&mut Rng>) -> Result<(), Stop> {
        let bytes = encoded(commands, &self.sides[1]);
        // A peer that has closed the connection is noticed when its replies are read.
        let sent = match cuts {
            None => self.proxied.write(&bytes),
            Some(rng) => self.proxied.write_pieces(&bytes, rng),
        };
        if sent == Err(Broken::Hang) {
            return Err(differs("proxied side takes no more bytes".to_owned(), &[], &[]));
        }
        Ok(())
    }

    /// Sends commands directly.
    ///
    /// # Errors
    /// If the server takes no more bytes.
    pub fn send_directly(&mut self, commands: &[Command]) -> Result<(), Stop> {
        match self.direct.write(&encoded(commands, &self.sides[0])) {
            Err(Broken::Hang) => Err(Stop::Broken("direct side takes no more bytes".to_owned())),
            _ => Ok(()),
        }
    }

    /// Reads all replies that are due on both sides, and compares them.
    ///
    /// # Errors
    /// If the replies differ.
    pub fn settle(&mut self, tally: &mut Tally) -> Result<(), Stop> {
        for command in std::mem::take(&mut self.sent) {
            if command.due() == Due::Nothing {
                continue;
            }
            if let Command::Prepare(handle, text) = &command {
                self.texts.insert(*handle, text.clone());
            }
            let tracks = |text: &str| text.contains("session_track_transaction_info");
            self.said.tracks |= command.text().is_some_and(tracks);
            // Rows of a client without DEPRECATE_EOF end without a report.
            let changes = |text: &str| text.contains("_fails(") || text.contains("f_set(");
            self.said.changes_late |= command.text().is_some_and(changes);
            let direct = self.direct_reply(&command)?;
            let name = direct.error().map_or_else(String::new, |number| format!(" ERR {number}"));
            *tally.replies.entry(format!("{}{name}", command.name())).or_default() += 1;
            let proxied = self.proxied_reply(&command, &direct)?;
            self.holds.received(&command, &direct);
            self.was_refused |= matches!(direct.error(), Some(1210 | 1243 | 1421 | 1835 | 1047));
            let sets = |text: &str| text.contains("SET CHARACTER SET");
            self.reset = match self.reset {
                Reset::Never if command == Command::ResetConnection => Reset::Done,
                Reset::Done if command.text().is_some_and(sets) => Reset::SetBehind,
                reset => reset,
            };
            self.compare(&command, &direct, &proxied, tally)?;
            if let (Command::Prepare(handle, _), [direct, proxied]) =
                (&command, [direct.prepared(), proxied.prepared()])
            {
                for (side, number) in self.sides.iter_mut().zip([direct, proxied]) {
                    number.map(|number| side.numbers.insert(*handle, number));
                }
            }
            if self.dead {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the direct reply to a command. If the server ends the session instead, so it has to
    /// be on the other side.
    fn direct_reply(&mut self, command: &Command) -> Result<Reply, Stop> {
        let mut reply = reply_to(command);
        let mut reader = Reader::new(command.due(), self.sides[0].agreed);
        match self.direct.reply(&mut reader, command.file(), &mut reply.packets) {
            Ok(()) => {}
            Err(Broken::Closed) => self.dead = true,
            Err(broken) => {
                let got: Vec<_> = reply.packets.iter().map(Packet::to_string).collect();
                let what = format!("direct side, {command}: {broken:?} after {got:#?}");
                return Err(Stop::Broken(what));
            }
        }
        Ok(reply)
    }

    fn proxied_reply(&mut self, command: &Command, direct: &Reply) -> Result<Reply, Stop> {
        let mut reply = reply_to(command);
        let mut reader = Reader::new(command.due(), self.sides[1].agreed);
        match self.proxied.reply(&mut reader, command.file(), &mut reply.packets) {
            Ok(()) if self.dead => {
                let what = format!("{}: a reply instead of an end", command.name());
                Err(differs(what, &direct.packets, &reply.packets))
            }
            Ok(()) => Ok(reply),
            Err(Broken::Closed) if self.dead => Ok(reply),
            Err(broken) => {
                let what = format!("{}: {broken:?} instead of a reply", command.name());
                Err(differs(what, &direct.packets, &reply.packets))
            }
        }
    }

    fn compare(
        &mut self,
        command: &Command,
        direct: &Reply,
        proxied: &Reply,
        tally: &mut Tally,
    ) -> Result<(), Stop> {
        let mut reader = Reader::new(command.due(), self.sides[0].agreed);
        let pairs = direct.packets.iter().zip(&proxied.packets);
        for (at, (one, two)) in pairs.enumerate() {
            let is_head = at == 0 || reader.is_head();
            reader.take(one).map_err(Stop::Broken)?;
            let answers = Answers {
                command: command.name(),
                due: command.due(),
                uses: command.text().is_some_and(|text| text.contains("USE ")),
                said: self.said,
                wishes: command.text().is_some_and(|text| text.contains("session_track_")),
                is_head,
            };
            if let Some(used) = same(one, two, answers) {
                used.iter().zip(&mut tally.uses).for_each(|(used, sum)| *sum += u64::from(*used));
                continue;
            }
            let text = match command {
                Command::Execute(Execute { handle, .. }) | Command::Fetch(handle, _) => {
                    self.texts.get(handle).map(String::as_str)
                }
                _ => command.text(),
            };
            let text = text.unwrap_or_default();
            let pair = Pair {
                text,
                direct,
                proxied,
                was_refused: self.was_refused,
                reset: self.reset,
                lacks_types: matches!(command, Command::Execute(it) if !it.has_types),
                has_cursor: matches!(command, Command::Execute(it) if it.cursor != 0),
                fixes_types: self.is_mysql_9,
                at,
            };
            if let Some((index, goes_on)) = pass(pair) {
                tally.uses[MASKS.len() + index] += 1;
                return if goes_on { Ok(()) } else { Err(Stop::Passed) };
            }
            let kinds = [one, two].map(|packet| kind(packet, at == 0));
            let [one, two] = match one.sequence == two.sequence {
                true => kinds,
                false => [one, two].map(|packet| format!("sequence id {}", packet.sequence)),
            };
            let what = format!("{}: {two} instead of {one}", command.name());
            return Err(self.differs(what, direct, proxied));
        }
        if direct.packets.len() != proxied.packets.len() {
            let what = format!("{}: another number of packets", command.name());
            return Err(self.differs(what, direct, proxied));
        }
        Ok(())
    }

    /// Makes a report of the last reply, with what follows it on the proxied side.
    fn differs(&self, what: String, direct: &Reply, proxied: &Reply) -> Stop {
        differs(what, &direct.packets, &proxied.packets)
    }

    /// Ends both sessions: by COM_QUIT if `polite`, else by closing the connections.
    pub fn close(mut self, polite: bool) {
        if polite {
            let mut out = Vec::new();
            put(&mut out, 0, &[1]);
            self.direct.write(&out).ok();
            self.proxied.write(&out).ok();
            // Its end comes when the server is free of it.
            self.proxied.shorten(Duration::from_secs(2));
            self.proxied.read().ok();
        }
    }
}

fn reply_to(command: &Command) -> Reply {
    Reply { command: command.name(), due: command.due(), packets: Vec::new() }
}

fn encoded(commands: &[Command], side: &Side) -> Vec<u8> {
    let mut bytes = Vec::new();
    commands.iter().for_each(|command| command.encode(side, &mut bytes));
    bytes
}

fn differs(what: String, direct: &[Packet], proxied: &[Packet]) -> Stop {
    Stop::Differs(Box::new(Difference { what, direct: direct.to_vec(), proxied: proxied.to_vec() }))
}

/// Whether a server reports its transactions to clients that have not asked: MySQL 9.7 does,
/// whatever `session_track_transaction_info` is.
fn told_unasked(version: &str) -> bool {
    version.starts_with("9.")
}
