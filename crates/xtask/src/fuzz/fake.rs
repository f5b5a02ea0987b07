//! The lying server: it answers as PostgreSQL does, and breaks the protocol now and then.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustls::ServerConfig;

use crate::bench::session::{is_timeout, message};
use crate::channel::Channel;
use crate::records::Records;
use crate::soak::dice::Dice;

use super::spoil;
use super::tally::Tally;

/// Letters of a server's messages, and some letters that no message has.
const LETTERS: &[u8] = b"12CDEGHINRKSTVWZdcnstvA\0x9";
/// Number of bytes in a flood of messages.
const FLOOD_BYTES: usize = 512 * 1024;
/// Time without a byte after which the server closes a connection.
const IDLE_MAX: Duration = Duration::from_secs(20);

/// The longest wait for a byte before the end of the run is looked for.
const WAIT: Duration = Duration::from_millis(200);
/// The longest wait for a byte of a handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Accepts connections until the run is over.
pub(super) fn serve(
    listener: &TcpListener,
    encrypted: Option<&Arc<ServerConfig>>,
    seed: u64,
    tally: &Tally,
) -> Result<()> {
    listener.set_nonblocking(true)?;
    thread::scope(|scope| {
        let mut number = 0;
        while !tally.is_over() {
            match listener.accept() {
                Ok((stream, _)) => {
                    number += 1;
                    tally.servers.fetch_add(1, Relaxed);
                    let dice = Dice::new(seed ^ (number << 20));
                    scope.spawn(move || {
                        Fake::new(stream, dice).and_then(|mut f| f.run(encrypted, tally))
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    })
}

/// Returns a free port and its listener.
pub(super) fn listen() -> Result<(u16, TcpListener)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok((listener.local_addr()?.port(), listener))
}

/// A session of the server.
struct Fake {
    channel: Channel,
    dice: Dice,
    unread: Vec<u8>,
    out: Vec<u8>,
    status: u8,
    skipping: bool,
    copying: bool,
    /// The session breaks the protocol once in this many messages.
    interval: u64,
}

impl Fake {
    fn new(stream: TcpStream, mut dice: Dice) -> Result<Fake> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WAIT))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        let interval = [15, 60, 300][dice.index(3)];
        let (unread, out) = (Vec::new(), Vec::new());
        let (skipping, copying) = (false, false);
        let channel = Channel::new(stream, None);
        Ok(Fake { channel, dice, unread, out, status: b'I', skipping, copying, interval })
    }

    /// Reads a packet without a letter; `None` if the stream ends.
    fn packet(&mut self, tally: &Tally) -> Result<Option<Vec<u8>>> {
        let Some(length) = self.need(4, tally)? else { return Ok(None) };
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        self.need(length.saturating_sub(4), tally)
    }

    fn run(&mut self, encrypted: Option<&Arc<ServerConfig>>, tally: &Tally) -> Result<()> {
        let Some(mut packet) = self.packet(tally)? else { return Ok(()) };
        if packet.starts_with(&80_877_103u32.to_be_bytes()) {
            self.encrypt(encrypted)?; // a request for TLS
            let Some(next) = self.packet(tally)? else { return Ok(()) };
            packet = next;
        }
        if packet.starts_with(&80_877_102u32.to_be_bytes()) {
            return Ok(()); // a cancel request: no statement runs here
        }
        self.welcome();
        self.send(tally)?;
        while let Some(head) = self.need(5, tally)? {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let Some(body) = self.need(length.saturating_sub(4), tally)? else { break };
            if head[0] == b'X' {
                break;
            }
            self.answer(head[0], &body);
            if self.unread.len() < 5 || self.out.len() > 8192 {
                self.send(tally)?;
            }
        }
        Ok(())
    }

    /// Answers a request for TLS, now and then wrongly, and shakes hands if it can.
    fn encrypt(&mut self, encrypted: Option<&Arc<ServerConfig>>) -> Result<()> {
        let Some(config) = encrypted else { return Ok(self.channel.write_all(b"N")?) };
        if self.dice.once_in(self.interval) {
            let answers: [&[u8]; 4] = [b"N", b"SR\0\0\0\x08\0\0\0\0", b"E\0\0\0\x04", b"?"];
            self.channel.write_all(answers[self.dice.index(answers.len())])?;
            return Ok(());
        }
        let mut stream = self.channel.tcp().try_clone()?;
        stream.write_all(b"S")?;
        stream.set_read_timeout(Some(HANDSHAKE_MAX))?;
        let records = Records::accept(config, &mut stream)?;
        stream.set_read_timeout(Some(WAIT))?;
        self.channel = Channel::new(stream, Some(records));
        Ok(())
    }

    /// Reads `count` bytes; `None` if the proxy has closed the connection or the run is over.
    fn need(&mut self, count: usize, tally: &Tally) -> Result<Option<Vec<u8>>> {
        let begun = Instant::now();
        let mut buffer = [0; 16 * 1024];
        while self.unread.len() < count {
            match self.channel.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(got) => self.unread.extend_from_slice(&buffer[..got]),
                Err(error) if is_timeout(&error) => {
                    if tally.is_over() || begun.elapsed() > IDLE_MAX {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(self.unread.drain(..count).collect()))
    }

    fn say(&mut self, letter: u8, body: &[u8]) {
        if self.dice.once_in(self.interval) {
            self.misbehave(letter, body);
        } else {
            self.out.extend_from_slice(&message(letter, body));
        }
    }

    fn welcome(&mut self) {
        self.say(b'R', &[0; 4]);
        for pair in ["server_version\x0015.0", "client_encoding\0UTF8", "TimeZone\0UTC"] {
            self.say(b'S', format!("{pair}\0").as_bytes());
        }
        self.say(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]);
        self.say(b'Z', b"I");
    }

    fn send(&mut self, tally: &Tally) -> Result<()> {
        let mut out = std::mem::take(&mut self.out);
        if self.dice.once_in(self.interval * 20) {
            spoil::bytes(&mut self.dice, &mut out);
        }
        tally.sent(1 + out.len() / 40);
        while self.dice.once_in(8) && !out.is_empty() {
            let rest = out.split_off(self.dice.index(out.len()));
            self.channel.write_all(&out)?;
            out = rest;
        }
        if self.dice.once_in(self.interval)
            && let Some(records) = self.channel.records()
        {
            tally.records.fetch_add(1, Relaxed);
            let mut record = records.data(&out)?;
            spoil::record(&mut self.dice, &mut record);
            self.channel.write_raw(&record)?;
            return Ok(());
        }
        self.channel.write_all(&out)?;
        Ok(())
    }

    /// Sends other bytes in the place of a message, or in addition to it.
    fn misbehave(&mut self, letter: u8, body: &[u8]) {
        let other = LETTERS[self.dice.index(LETTERS.len())];
        let mut bytes = message(letter, body);
        match self.dice.below(14) {
            0 => bytes.clear(),
            1 => bytes.extend(message(letter, body)),
            2 => bytes[0] = other,
            3 => bytes.extend(message(other, b"")),
            4 => bytes.splice(0..0, error("XX000", "fuzz")).for_each(drop),
            5 => bytes.splice(0..0, fatal()).for_each(drop),
            6 => bytes.splice(0..0, message(b'S', b"DateStyle\0ISO, MDY\0")).for_each(drop),
            7 => bytes.splice(0..0, message(b'Z', b"ITE?"[..1].as_ref())).for_each(drop),
            8 => bytes[1..5].copy_from_slice(&spoil::length(&mut self.dice).to_be_bytes()),
            9 => bytes.truncate(self.dice.index(bytes.len())),
            10 => bytes = self.flood(),
            11 => bytes.splice(0..0, message(b'N', b"SNOTICE\0C00000\0Mn\0\0")).for_each(drop),
            12 => {
                let garbage = message(other, &(0..9).map(|_| self.dice.byte()).collect::<Vec<_>>());
                bytes.splice(0..0, garbage).for_each(drop);
            }
            _ => spoil::bytes(&mut self.dice, &mut bytes),
        }
        self.out.extend(bytes);
    }

    /// Returns many messages of one kind.
    fn flood(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (kind, mut number) = (self.dice.below(5), 0u32);
        while bytes.len() < FLOOD_BYTES {
            number += 1;
            bytes.extend(match kind {
                0 => message(b'S', format!("name{number}\0value\0").as_bytes()),
                1 => message(b'N', b"SNOTICE\0C00000\0Mn\0\0"),
                2 => message(b'D', b"\0\x01\0\0\0\x01x"),
                3 => message(b'A', b"\0\0\0\x01ch\0p\0"),
                _ => message(b'1', b""),
            });
        }
        bytes
    }

    /// Answers a message roughly as PostgreSQL does.
    fn answer(&mut self, letter: u8, body: &[u8]) {
        if self.copying {
            match letter {
                b'c' => {
                    self.copying = false;
                    self.say(b'C', b"COPY 1\0");
                    self.say(b'Z', &[self.status]);
                }
                b'f' => {
                    self.copying = false;
                    self.out.extend(error("57014", "copy"));
                    self.say(b'Z', &[self.status]);
                }
                _ => {}
            }
            return;
        }
        if self.skipping && letter != b'S' {
            return;
        }
        match letter {
            b'Q' => self.query(body),
            b'S' => {
                self.skipping = false;
                self.say(b'Z', &[self.status]);
            }
            b'P' => self.say(b'1', b""),
            b'B' => self.say(b'2', b""),
            b'C' => self.say(b'3', b""),
            b'D' => {
                if body.first() == Some(&b'S') {
                    self.say(b't', b"\0\0");
                }
                self.columns();
            }
            b'E' => {
                self.say(b'D', b"\0\x01\0\0\0\x011");
                self.say(b'C', b"SELECT 1\0");
            }
            b'F' => {
                self.say(b'V', b"\0\0\0\x011");
                self.say(b'Z', &[self.status]);
            }
            _ => {}
        }
        if self.dice.once_in(self.interval) && matches!(letter, b'P' | b'B' | b'D' | b'E' | b'C') {
            self.out.extend(error("XX000", "fuzz"));
            self.skipping = true;
        }
    }

    fn columns(&mut self) {
        self.say(b'T', b"\0\x01x\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
    }

    fn query(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body).to_ascii_lowercase();
        if text.starts_with("copy") && text.contains("from stdin") {
            self.copying = true;
            return self.say(b'G', b"\0\0\x01\0\0");
        }
        for (word, status) in [("begin", b'T'), ("commit", b'I'), ("rollback", b'I')] {
            if text.starts_with(word) {
                self.status = status;
                self.say(b'C', b"BEGIN\0");
                return self.say(b'Z', &[self.status]);
            }
        }
        self.columns();
        self.say(b'D', b"\0\x01\0\0\0\x011");
        self.say(b'C', b"SELECT 1\0");
        self.say(b'Z', &[self.status]);
    }
}

fn error(code: &str, words: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0VERROR\0C{code}\0M{words}\0\0").as_bytes())
}

fn fatal() -> Vec<u8> {
    message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mend\0\0")
}
