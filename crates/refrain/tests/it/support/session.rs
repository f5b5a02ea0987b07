//! A client's connection, on the level of messages.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};

use refrain_differ::msg::{Bind, Msg};
use refrain_differ::reply::{Frame, frame_end};

use crate::reply::Reply;
pub(crate) use crate::transport::LIMIT;
use crate::transport::{Transport, Way};

/// If this variable of the environment is set, sessions with a name print what they send and get.
const BYTES: &str = "REFRAIN_BYTES";

/// A connection of a client.
#[derive(Debug)]
pub(crate) struct Session {
    transport: Transport,
    /// The name before each printed message; `None` if messages are not printed.
    printed_as: Option<String>,
    buffer: Vec<u8>,
    start: usize,
    /// The settings that the server has reported.
    pub(crate) params: BTreeMap<String, String>,
    /// The body of BackendKeyData.
    pub(crate) key: Vec<u8>,
}

impl Session {
    /// Connects and sends these bytes. Reads nothing.
    pub(crate) fn raw(addr: SocketAddr, first: &[u8]) -> Self {
        Self::connect(None, addr, &Way::Clear, first)
    }

    /// Connects in this way and sends these bytes. With `REFRAIN_BYTES` each message is printed,
    /// behind `name`.
    pub(crate) fn named(name: String, addr: SocketAddr, way: &Way, first: &[u8]) -> Self {
        let printed_as = Some(name).filter(|_| std::env::var_os(BYTES).is_some());
        Self::connect(printed_as, addr, way, first)
    }

    fn connect(printed_as: Option<String>, addr: SocketAddr, way: &Way, first: &[u8]) -> Self {
        let transport = Transport::open(addr, way).unwrap();
        let (buffer, params, key) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut session = Self { transport, printed_as, buffer, start: 0, params, key };
        session.write(first);
        session
    }

    /// Opens a session of protocol 3.0 for the superuser, who needs no password.
    pub(crate) fn open(addr: SocketAddr, database: &str) -> Self {
        Self::with(addr, database, &[])
    }

    /// Opens such a session with startup parameters.
    pub(crate) fn with(addr: SocketAddr, database: &str, params: &[(&str, &str)]) -> Self {
        let mut all = vec![("user", "postgres"), ("database", database)];
        all.extend_from_slice(params);
        Self::login(addr, &all).unwrap_or_else(|reply| panic!("login: {}", reply.words()))
    }

    /// Logs in with these startup parameters. The error is the reply.
    pub(crate) fn login(addr: SocketAddr, params: &[(&str, &str)]) -> Result<Self, Reply> {
        let mut session = Self::raw(addr, &startup(0x0003_0000, params));
        let reply = session.ready();
        if reply.status().is_some() { Ok(session) } else { Err(reply) }
    }

    /// Sends bytes. A peer that has gone is noticed at the next read.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.print('>', bytes);
        match self.transport.write(bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("the peer takes no bytes")
            }
            _ => {}
        }
    }

    /// Sends messages, in one write.
    pub(crate) fn send(&mut self, msgs: &[Msg]) {
        self.write(&encode(msgs));
    }

    /// Returns the next frame; `None` at the end of the connection.
    pub(crate) fn frame(&mut self) -> Option<Frame> {
        loop {
            let bytes = &self.buffer[self.start..];
            if let Some(end) = frame_end(bytes).unwrap() {
                self.print('<', &bytes[..end]);
                let frame = Frame::new(bytes[0], &bytes[5..end]);
                self.start += end;
                self.note(&frame);
                return Some(frame);
            }
            if !self.fill() {
                assert!(self.buffer.len() == self.start, "half a message before the end");
                return None;
            }
        }
    }

    /// Reads up to the end of the connection. Returns the last frame, and whether the connection
    /// ended amid another.
    pub(crate) fn last_frame(&mut self) -> (Option<Frame>, bool) {
        let mut last = None;
        loop {
            while frame_end(&self.buffer[self.start..]).unwrap().is_some() {
                last = self.frame();
            }
            if !self.fill() {
                return (last, self.buffer.len() > self.start);
            }
        }
    }

    fn print(&self, arrow: char, bytes: &[u8]) {
        if let Some(name) = &self.printed_as {
            println!("{name:>14} {arrow} {}", bytes.escape_ascii());
        }
    }

    fn note(&mut self, frame: &Frame) {
        if frame.tag == b'K' {
            self.key.clone_from(&frame.body);
        }
        if let Some((name, value)) = frame.parameter().filter(|_| frame.tag == b'S') {
            self.params.insert(name, value);
        }
    }

    fn fill(&mut self) -> bool {
        self.buffer.drain(..std::mem::take(&mut self.start));
        match self.transport.read(&mut self.buffer) {
            Ok(count) => count > 0,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                panic!("no reply; unread are {} bytes", self.buffer.len())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the next frame, but no ParameterStatus, BackendKeyData or NegotiateProtocolVersion.
    pub(crate) fn answer(&mut self) -> Option<Frame> {
        loop {
            let frame = self.frame()?;
            if !matches!(frame.tag, b'S' | b'K' | b'v') {
                return Some(frame);
            }
        }
    }

    /// Returns all replies up to ReadyForQuery, or up to the end of the connection.
    pub(crate) fn ready(&mut self) -> Reply {
        let mut frames = Vec::new();
        while let Some(frame) = self.answer() {
            let last = frame.tag == b'Z';
            frames.push(frame);
            if last {
                break;
            }
        }
        Reply { frames }
    }

    /// Sends messages whose replies end in one ReadyForQuery, and returns these replies.
    pub(crate) fn ask(&mut self, msgs: &[Msg]) -> Reply {
        self.send(msgs);
        self.ready()
    }

    /// Runs a simple query.
    pub(crate) fn query(&mut self, sql: &str) -> Reply {
        self.ask(&[query(sql)])
    }

    /// Runs a simple query, and returns the first column of the first row.
    pub(crate) fn value(&mut self, sql: &str) -> String {
        self.query(sql).value()
    }

    /// Runs a simple query that must succeed.
    pub(crate) fn run(&mut self, sql: &str) {
        let reply = self.query(sql);
        assert!(reply.error().is_none() && reply.status().is_some(), "{sql}: {}", reply.words());
    }

    /// Returns the process ID of the current server.
    pub(crate) fn pid(&mut self) -> String {
        self.value("select pg_backend_pid()")
    }

    /// Reads until the end of the connection.
    pub(crate) fn rest(&mut self) -> Reply {
        Reply { frames: std::iter::from_fn(|| self.answer()).collect() }
    }

    /// Sends Terminate, and waits until the peer has closed the connection.
    pub(crate) fn leave(mut self) {
        self.write(b"X\0\0\0\x04");
        self.rest();
    }

    /// Closes the connection in both directions, without Terminate.
    pub(crate) fn vanish(self) {
        self.transport.vanish();
    }

    /// Closes the half for writing. The session still reads.
    pub(crate) fn end_writing(&self) {
        self.transport.shut();
    }

    /// Returns the connection, whose replies have all been read.
    pub(crate) fn transport(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Returns another handle of the same connection, to write to while this one reads.
    pub(crate) fn second(&self) -> TcpStream {
        self.transport.second()
    }
}

/// Encodes messages.
pub(crate) fn encode(msgs: &[Msg]) -> Vec<u8> {
    let mut bytes = Vec::new();
    msgs.iter().for_each(|msg| msg.encode(&mut bytes));
    bytes
}

/// Returns a startup packet of this protocol version.
pub(crate) fn startup(version: u32, params: &[(&str, &str)]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for word in params.iter().flat_map(|(name, value)| [name, value]) {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    body.push(0);
    packet(&body)
}

/// Returns a CancelRequest with this process ID and secret, which BackendKeyData has in the same
/// form.
pub(crate) fn cancel_request(key: &[u8]) -> Vec<u8> {
    packet(&[&80_877_102u32.to_be_bytes(), key].concat())
}

fn packet(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&length.to_be_bytes(), body].concat()
}

/// Makes a Query.
pub(crate) fn query(sql: &str) -> Msg {
    Msg::Query(sql.as_bytes().to_vec())
}

/// Makes a Parse.
pub(crate) fn parse(name: &str, sql: &str) -> Msg {
    Msg::Parse(name.as_bytes().to_vec(), sql.as_bytes().to_vec(), Vec::new())
}

/// Makes a Bind of the unnamed portal, with text parameters.
pub(crate) fn bind(statement: &str, values: &[&str]) -> Msg {
    let values = values.iter().map(|value| Some(value.as_bytes().to_vec())).collect();
    Msg::Bind(Bind { stmt: statement.as_bytes().to_vec(), values, ..Bind::default() })
}

/// Makes an Execute of the unnamed portal.
pub(crate) fn execute() -> Msg {
    Msg::Execute(Vec::new(), 0)
}
