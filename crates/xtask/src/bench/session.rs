//! A client that writes the protocol's bytes itself: it can send what no client library sends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustls::ClientConfig;

use crate::channel::Channel;
use crate::records::Records;

/// The longest message. A longer length field is garbage.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// A session over TCP.
#[derive(Debug)]
pub struct Session {
    stream: BufReader<Channel>,
    /// The process ID and the key with which a cancel request names this session.
    pub key: (u32, Vec<u8>),
}

/// The replies to a request, up to ReadyForQuery or CopyInResponse.
#[derive(Debug, Default)]
pub struct Answer {
    /// Values of each row; a CopyData message is a row of one value.
    pub rows: Vec<Vec<Vec<u8>>>,
    /// SQLSTATE and message of each error.
    pub errors: Vec<(String, String)>,
    /// Command tags.
    pub tags: Vec<String>,
    /// Whether the last error ended the session.
    pub fatal: bool,
}

impl Session {
    /// Logs in to a database as the superuser. `patience` is the time limit of each read.
    pub fn open(port: u16, database: &str, patience: Duration) -> Result<Session> {
        Self::log_in(dial(port, patience, None)?, database)
    }

    /// Logs in over a connection that [`dial`] has made.
    pub fn log_in(channel: Channel, database: &str) -> Result<Session> {
        Self::log_in_as(channel, "postgres", database)
    }

    /// Logs a user in over such a connection.
    pub fn log_in_as(channel: Channel, user: &str, database: &str) -> Result<Session> {
        let stream = BufReader::with_capacity(1024, channel);
        let mut session = Session { stream, key: (0, Vec::new()) };
        let pairs = format!("user\0{user}\0database\0{database}\0\0");
        session.send(&startup(196_608, pairs.as_bytes()))?;
        loop {
            match session.receive()? {
                (b'K', body) => {
                    let (pid, key) = body.split_first_chunk::<4>().context("short key")?;
                    session.key = (u32::from_be_bytes(*pid), key.to_vec());
                }
                (b'E', body) => bail!("login refused: {:?}", error_of(&body)),
                (b'Z', _) => return Ok(session),
                _ => {}
            }
        }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    /// Returns the next message: its letter and body.
    pub fn receive(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).context("reading a message")?;
        let [letter, length @ ..] = head;
        let length = u32::from_be_bytes(length) as usize;
        ensure!((4..MESSAGE_BYTES_MAX).contains(&length), "a message of {length} bytes");
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).context("reading a message's body")?;
        Ok((letter, body))
    }

    /// Reads replies up to ReadyForQuery, CopyInResponse or a fatal error.
    pub fn answer(&mut self) -> Result<Answer> {
        let mut answer = Answer::default();
        loop {
            let (letter, body) = self.receive()?;
            match letter {
                b'D' => answer.rows.push(values(&body).context("a row")?),
                b'd' => answer.rows.push(vec![body]),
                b'E' => {
                    answer.fatal = body.starts_with(b"SFATAL\0");
                    answer.errors.push(error_of(&body));
                    if answer.fatal {
                        return Ok(answer);
                    }
                }
                b'C' => answer.tags.push(text_of(&body)),
                b'Z' | b'G' => return Ok(answer),
                _ => {}
            }
        }
    }

    /// Whether a byte arrives within this time.
    pub fn hears_within(&mut self, time: Duration) -> Result<bool> {
        let patience = self.stream.get_ref().tcp().read_timeout()?;
        self.stream.get_ref().tcp().set_read_timeout(Some(time))?;
        let heard = self.stream.fill_buf().map(|_| true);
        self.stream.get_ref().tcp().set_read_timeout(patience)?;
        match heard {
            Err(error) if is_timeout(&error) => Ok(false),
            heard => Ok(heard?),
        }
    }

    /// Runs a text with the simple protocol.
    pub fn query(&mut self, text: &str) -> Result<Answer> {
        self.send(&query(text))?;
        self.answer()
    }

    /// Sends Terminate and closes the connection.
    pub fn close(mut self) -> Result<()> {
        self.send(&message(b'X', &[]))
    }

    /// Returns the connection, of which every reply has been read.
    pub fn into_stream(self) -> TcpStream {
        self.stream.into_inner().into_tcp()
    }

    /// Closes the connection without Terminate.
    pub fn vanish(&self) {
        let _ = self.stream.get_ref().tcp().shutdown(Shutdown::Both);
    }
}

/// Connects, and encrypts with this configuration if there is one.
pub fn dial(
    port: u16,
    patience: Duration,
    encrypted: Option<&Arc<ClientConfig>>,
) -> Result<Channel> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("connecting")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let shake = |config| Records::connect(config, &mut stream).context("encrypting");
    let records = encrypted.map(shake).transpose()?;
    Ok(Channel::new(stream, records))
}

/// Sends a cancel request for a session, and waits until the server closes that connection.
pub fn cancel(port: u16, key: &(u32, Vec<u8>)) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let (pid, secret) = key;
    stream.write_all(&startup(80_877_102, &[&pid.to_be_bytes()[..], secret].concat()))?;
    let _ = stream.read(&mut [0])?;
    Ok(())
}

/// Whether a read or write failed because it took too long.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Returns a first packet, which has no message letter.
fn startup(code: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 8).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat()
}

/// Returns a message.
pub fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [&[letter][..], &length.to_be_bytes(), body].concat()
}

/// Returns a Query.
pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

/// Returns a Parse without parameter types.
pub fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

/// Returns Bind of text parameters to the unnamed portal, Execute and Sync.
pub fn run(statement: &str, parameters: &[&str]) -> Vec<u8> {
    let mut bind = format!("\0{statement}\0\0\0").into_bytes();
    bind.extend_from_slice(&u16::try_from(parameters.len()).unwrap_or(0).to_be_bytes());
    for value in parameters {
        bind.extend_from_slice(&u32::try_from(value.len()).unwrap_or(0).to_be_bytes());
        bind.extend_from_slice(value.as_bytes());
    }
    bind.extend_from_slice(&[0, 0]);
    [message(b'B', &bind), message(b'E', b"\0\0\0\0\0"), sync()].concat()
}

/// Returns a Close of a statement.
pub fn close_statement(name: &str) -> Vec<u8> {
    message(b'C', format!("S{name}\0").as_bytes())
}

/// Returns a Sync.
pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// Returns a CopyData.
pub fn copy_data(data: &[u8]) -> Vec<u8> {
    message(b'd', data)
}

/// Returns a CopyDone.
pub fn copy_done() -> Vec<u8> {
    message(b'c', &[])
}

/// Returns the values of a DataRow; a null is empty.
fn values(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (value, after) = after.split_at_checked(length)?;
        values.push(value.to_vec());
        rest = after;
    }
    Some(values)
}

fn error_of(body: &[u8]) -> (String, String) {
    let field = |letter: u8| {
        let mut fields = body.split(|byte| *byte == 0);
        fields.find_map(|field| field.strip_prefix(&[letter])).map(text_of).unwrap_or_default()
    };
    (field(b'C'), field(b'M'))
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_as_on_the_wire() {
        assert_eq!(query("x"), b"Q\0\0\0\x06x\0");
        assert_eq!(parse("s", "t"), b"P\0\0\0\x0as\0t\0\0\0");
        assert_eq!(startup(1, b"ab"), b"\0\0\0\x0a\0\0\0\x01ab");
        let bind = b"B\0\0\0\x12\0s\0\0\0\0\x01\0\0\0\x017\0\0";
        assert!(run("s", &["7"]).starts_with(bind));
    }

    #[test]
    fn rows_and_errors_are_read() {
        let row = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff";
        assert_eq!(values(row), Some(vec![b"a".to_vec(), Vec::new()]));
        assert_eq!(values(b"\0\x01\0\0"), None);
        let error = error_of(b"SERROR\0C57014\0Mgone\0\0");
        assert_eq!(error, ("57014".to_owned(), "gone".to_owned()));
    }
}
