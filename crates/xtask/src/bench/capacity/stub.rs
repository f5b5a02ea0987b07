//! The stub: a server that speaks as much of PostgreSQL's protocol as a pool needs, and answers at
//! once.
//!
//! Every SELECT has the same row. Nothing is parsed, planned or stored, there are no transactions,
//! and a session forgets nothing because it knows nothing. The messages that one read brings are
//! answered by one write, as PostgreSQL answers a pipeline.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};

use anyhow::{Result, bail};

use crate::bench::session::message;

use super::frames::Incoming;
use super::sockets::Sockets;

/// The value of each row.
pub const VALUE: &str = "4711";

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;
/// The number that [`Sockets`] has for the listener.
const LISTENER: usize = usize::MAX;
/// The protocol's version, and requests that have its place in a first packet.
const VERSION_3: u32 = 196_608;
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
/// The parameters that a server reports at login.
const PARAMETERS: &[(&str, &str)] = &[
    ("server_version", "15.0"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("application_name", ""),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("is_superuser", "on"),
    ("session_authorization", "postgres"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
];

/// A running stub. Dropping this ends its threads.
#[derive(Debug)]
pub struct Stub {
    port: u16,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Stub {
    /// Starts this number of threads behind a free port of 127.0.0.1.
    pub fn start(threads: usize) -> Result<Stub> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        // All threads hear of a new connection, and one of them gets it.
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let mut stub = Stub { port, over: Arc::default(), threads: Vec::new() };
        for _ in 0..threads {
            let (listener, over) = (listener.try_clone()?, Arc::clone(&stub.over));
            stub.threads.push(thread::spawn(move || serve(&listener, &over)));
        }
        Ok(stub)
    }

    /// Returns the TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Serves connections until the run is over.
fn serve(listener: &TcpListener, over: &AtomicBool) -> Result<()> {
    let mut sockets = Sockets::new()?;
    sockets.add(listener, LISTENER)?;
    let replies = Replies::new();
    let mut sessions: Vec<Option<Session>> = Vec::new();
    while !over.load(Relaxed) {
        let mut comes = false;
        for number in sockets.readable()? {
            if number == LISTENER {
                comes = true;
            } else if let Some(place) = sessions.get_mut(number)
                && let Some(session) = place
                && !matches!(session.turn(&replies), Ok(true))
            {
                // A proxy may end a connection in any way.
                *place = None;
            }
        }
        if comes && let Some(session) = accept(listener)? {
            let free = sessions.iter().position(Option::is_none);
            let number = free.unwrap_or(sessions.len());
            sockets.add(&session.stream, number)?;
            match sessions.get_mut(number) {
                Some(place) => *place = Some(session),
                None => sessions.push(Some(session)),
            }
        }
    }
    Ok(())
}

/// Returns a new session, unless another thread was faster.
fn accept(listener: &TcpListener) -> Result<Option<Session>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            let (incoming, out) = Default::default();
            Ok(Some(Session { stream, incoming, out, is_open: false }))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

struct Session {
    stream: TcpStream,
    incoming: Incoming,
    /// Replies that are not sent yet.
    out: Vec<u8>,
    /// Whether the client has logged in.
    is_open: bool,
}

impl Session {
    /// Reads once and answers what came. Returns false if the client has left.
    fn turn(&mut self, replies: &Replies) -> Result<bool> {
        let mut buffer = [0; READ_BYTES];
        let count = self.stream.read(&mut buffer)?;
        let mut bytes = &buffer[..count];
        let mut stays = count > 0;
        if !self.is_open {
            stays = stays && self.greet(bytes, replies)?;
            bytes = &[];
        }
        let out = &mut self.out;
        self.incoming.messages(bytes, |letter, body| {
            stays = stays && letter != b'X';
            replies.answer(letter, body, out)
        })?;
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(stays)
    }

    /// Answers a first packet, if it is complete. Returns false if the connection ends with it.
    fn greet(&mut self, bytes: &[u8], replies: &Replies) -> Result<bool> {
        match self.incoming.first_packet(bytes)? {
            None => {}
            Some((VERSION_3, _)) => {
                self.out.extend_from_slice(&replies.welcome);
                self.is_open = true;
            }
            Some((SSL | GSS, _)) => self.out.push(b'N'),
            // No statement runs for so long that it could be cancelled.
            Some((CANCEL, _)) => return Ok(false),
            Some((version, _)) => bail!("protocol {version}"),
        }
        Ok(true)
    }
}

/// The bytes of all replies.
struct Replies {
    welcome: Vec<u8>,
    parameters: Vec<u8>,
    columns: Vec<u8>,
    row: Vec<u8>,
    other: Vec<u8>,
    ready: Vec<u8>,
}

impl Replies {
    fn new() -> Replies {
        let ready = message(b'Z', b"I");
        let mut welcome = message(b'R', &0_u32.to_be_bytes());
        for (name, value) in PARAMETERS {
            welcome.extend(message(b'S', format!("{name}\0{value}\0").as_bytes()));
        }
        welcome.extend(message(b'K', b"\0\0\0\x01\0\0\0\x02"));
        welcome.extend_from_slice(&ready);
        let int4 = 23_u32.to_be_bytes();
        // One column: its name, no table, int4, 4 bytes, no modifier, text.
        let column = [b"\0\x01abalance\0\0\0\0\0\0\0", &int4[..], b"\0\x04\xff\xff\xff\xff\0\0"];
        let length = (VALUE.len() as u32).to_be_bytes();
        let row = message(b'D', &[b"\0\x01", &length[..], VALUE.as_bytes()].concat());
        Replies {
            welcome,
            parameters: message(b't', &[b"\0\x01", &int4[..]].concat()),
            columns: message(b'T', &column.concat()),
            row: [row, message(b'C', b"SELECT 1\0")].concat(),
            other: message(b'C', b"SET\0"),
            ready,
        }
    }

    /// Appends the replies to a message.
    fn answer(&self, letter: u8, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match letter {
            b'P' => out.extend_from_slice(b"1\0\0\0\x04"),
            b'B' => out.extend_from_slice(b"2\0\0\0\x04"),
            b'C' => out.extend_from_slice(b"3\0\0\0\x04"),
            b'D' => {
                if body.starts_with(b"S") {
                    out.extend_from_slice(&self.parameters);
                }
                out.extend_from_slice(&self.columns);
            }
            b'E' => out.extend_from_slice(&self.row),
            b'S' => out.extend_from_slice(&self.ready),
            b'Q' => {
                let selects =
                    body.get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"select"));
                if selects {
                    out.extend_from_slice(&self.columns);
                    out.extend_from_slice(&self.row);
                } else {
                    out.extend_from_slice(&self.other);
                }
                out.extend_from_slice(&self.ready);
            }
            b'H' | b'X' => {}
            other => bail!("the stub has no reply to {:?}", char::from(other)),
        }
        Ok(())
    }
}
