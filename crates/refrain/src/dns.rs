//! Names by DNS, asked of the name servers that a file names (`resolv_conf`), and not of the
//! system's resolver.
//!
//! The file has the form of `resolv.conf(5)`. Of its lines `nameserver`, `search` and `domain`
//! count, and of `options` the words `ndots`, `timeout` and `attempts`. A name server may have a
//! port, as in c-ares: `127.0.0.1:5353`. Names in `/etc/hosts` are found there. A lookup blocks,
//! and has a thread of its own (`resolve.rs`).
//!
//! An answer counts if it comes from the server that was asked, over a socket of its own, and has
//! the random number and the question of the query (RFC 5452). What does not fit into a datagram is
//! asked again over TCP.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::random;

const HOSTS: &str = "/etc/hosts";
const PORT: u16 = 53;
/// Most name servers of a file, as in the system's resolver.
const SERVERS_MAX: usize = 3;
/// The longest answer in a datagram, without extensions.
const DATAGRAM_MAX: usize = 512;
/// The longest name, and the longest part of one (RFC 1035, 2.3.4).
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

const HEADER: usize = 12;
const CLASS_INTERNET: u16 = 1;

/// The kind of addresses that is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    V4 = 1,
    V6 = 28,
}

/// The answer to a question.
#[derive(Debug, PartialEq, Eq)]
enum DnsAnswer {
    /// These addresses, or none of this kind.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoName,
    /// The server does not answer the question.
    Refused,
    /// The answer is too long for a datagram.
    Truncated,
}

/// The lines of a file that count.
#[derive(Debug, PartialEq, Eq)]
struct ResolvConf {
    servers: Vec<SocketAddr>,
    search: Vec<String>,
    /// Dots from which on a name is asked for as it is before others.
    ndots: usize,
    timeout: Duration,
    attempts: u32,
}

impl ResolvConf {
    fn read(text: &str) -> Self {
        let (servers, search) = (Vec::new(), Vec::new());
        let timeout = Duration::from_secs(5);
        let mut conf = Self { servers, search, ndots: 1, timeout, attempts: 2 };
        for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") if conf.servers.len() < SERVERS_MAX => {
                    conf.servers.extend(words.next().and_then(server));
                }
                Some("search" | "domain") => {
                    let bare = |name: &str| name.trim_end_matches('.').to_owned();
                    conf.search = words.map(bare).filter(|name| !name.is_empty()).collect();
                }
                Some("options") => words.for_each(|word| conf.option(word)),
                _ => {}
            }
        }
        if conf.servers.is_empty() {
            conf.servers.push(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
        }
        conf
    }

    /// Reads a word of `options`. The bounds are those of `resolv.conf(5)`.
    fn option(&mut self, word: &str) {
        let Some((name, Ok(number))) = word.split_once(':').map(|(n, v)| (n, v.parse::<u32>()))
        else {
            return;
        };
        match name {
            "ndots" => self.ndots = number.min(15) as usize,
            "timeout" => self.timeout = Duration::from_secs(number.clamp(1, 30).into()),
            "attempts" => self.attempts = number.clamp(1, 5),
            _ => {}
        }
    }

    /// Returns the names that may be meant by a name, in the order in which they are asked for.
    fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(whole) = name.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let mut names: Vec<_> = self.search.iter().map(|end| format!("{name}.{end}")).collect();
        let dots = name.bytes().filter(|&byte| byte == b'.').count();
        names.insert(if dots >= self.ndots { 0 } else { names.len() }, name.to_owned());
        names
    }
}

/// Reads the address of a name server, which may have a port.
fn server(text: &str) -> Option<SocketAddr> {
    let alone = text.parse().ok().map(|address: IpAddr| SocketAddr::new(address, PORT));
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    alone
        .or_else(|| text.parse().ok())
        .or_else(|| bracketed().map(|address: Ipv6Addr| SocketAddr::new(address.into(), PORT)))
}

/// Returns a warning if the file has name servers, none of which can be read: a server of this
/// machine is asked then, as where it has none.
pub(crate) fn warning(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let named = |line: &&str| line.split_whitespace().next() == Some("nameserver");
    let mut lines = text.lines().filter(named).peekable();
    let first = *lines.peek()?;
    let is_read = |line: &str| line.split_whitespace().nth(1).and_then(server).is_some();
    (!lines.any(is_read)).then(|| {
        format!("resolv_conf {}: no address in {first:?}: 127.0.0.1 is asked", file.display())
    })
}

/// Returns the addresses of a name: those that `/etc/hosts` has, in the order of its lines, or else
/// those of name servers, of which those of IPv4 stand in front.
///
/// # Errors
/// The file cannot be read, there is no such name, or no server answers.
pub(crate) fn look_up(file: &Path, name: &str) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let hosts = fs::read_to_string(HOSTS).unwrap_or_default();
    let known = in_hosts(&hosts, name);
    if !known.is_empty() {
        return Ok(known);
    }
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| format!("resolv_conf {}: {error}", file.display()))?;
    let conf = ResolvConf::read(&text);
    let mut failure = None;
    for candidate in conf.candidates(name) {
        let mut found = Vec::new();
        for family in [Family::V4, Family::V6] {
            match ask(&conf, &candidate, family) {
                Ok(DnsAnswer::Addresses(addresses)) => found.extend(addresses),
                // There are none of the other kind either.
                Ok(_) => break,
                // Some name servers answer for one kind alone. The other kind's addresses are good
                // without these, and so are those of another candidate.
                Err(why) => failure = Some(why),
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(match failure {
        Some(why) => format!("host {name:?}: {why}"),
        None => format!("host {name:?} has no address"),
    })
}

/// Returns the addresses that `/etc/hosts` has for a name. A final dot says that a name is whole,
/// and so are all names there.
fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut found = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default()) {
        let mut words = line.split_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse) else { continue };
        if words.any(|other| other.eq_ignore_ascii_case(name)) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// Asks the name servers in turn, until one answers.
fn ask(conf: &ResolvConf, name: &str, family: Family) -> Result<DnsAnswer, String> {
    let Some(question) = question(name, family) else { return Ok(DnsAnswer::NoName) };
    let mut why = "no name server answers".to_owned();
    for _ in 0..conf.attempts {
        for &server in &conf.servers {
            match exchange(server, &question, conf.timeout) {
                Ok(DnsAnswer::Refused | DnsAnswer::Truncated) => {
                    why = format!("{server} does not answer the question");
                }
                Ok(answer) => return Ok(answer),
                Err(error) => why = words(server, conf.timeout, &error),
            }
        }
    }
    Err(why)
}

/// Returns the words for a server that could not be asked. The kernel says of a socket whose time
/// is over that the resource is temporarily unavailable.
fn words(server: SocketAddr, timeout: Duration, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("{server} did not answer within {} s", timeout.as_secs())
        }
        _ => format!("{server}: {error}"),
    }
}

/// Makes a question; `None` if the name can be none.
fn question(name: &str, family: Family) -> Option<Vec<u8>> {
    let mut question = Vec::new();
    let fits = |label: &str| (1..=LABEL_MAX).contains(&label.len());
    if name.len() > NAME_MAX || !name.split('.').all(fits) {
        return None;
    }
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).ok()?);
        question.extend(label.bytes());
    }
    question.push(0);
    question.extend((family as u16).to_be_bytes());
    question.extend(CLASS_INTERNET.to_be_bytes());
    Some(question)
}

/// Asks one server, over TCP if the answer does not fit into a datagram. `timeout` is for both.
fn exchange(server: SocketAddr, question: &[u8], timeout: Duration) -> io::Result<DnsAnswer> {
    let mut id = [0; 2];
    random::fill(&mut id);
    // One question, with recursion.
    let query = [&id[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0], question].concat();
    let until = Instant::now() + timeout;
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(&query)?;
    let mut buffer = [0; DATAGRAM_MAX];
    loop {
        socket.set_read_timeout(Some(time_left(until)?))?;
        let length = socket.recv(&mut buffer)?;
        match answer(&buffer[..length], &query) {
            Some(DnsAnswer::Truncated) => return exchange_by_tcp(server, &query, until),
            Some(answer) => return Ok(answer),
            // It is no answer to this question: the right one may come still.
            None => {}
        }
    }
}

/// Asks one server over TCP. The answer has to be there in full by `until`.
fn exchange_by_tcp(server: SocketAddr, query: &[u8], until: Instant) -> io::Result<DnsAnswer> {
    let mut stream = TcpStream::connect_timeout(&server, time_left(until)?)?;
    stream.set_write_timeout(Some(time_left(until)?))?;
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], query].concat())?;
    let mut length = [0; 2];
    read_until(&mut stream, &mut length, until)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    read_until(&mut stream, &mut message, until)?;
    answer(&message, query).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Fills a buffer. A timeout of the socket is for each read, so a server that sends byte by byte
/// would never exceed one.
fn read_until(stream: &mut TcpStream, mut buffer: &mut [u8], until: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(time_left(until)?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => buffer = &mut buffer[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the time that is left.
///
/// # Errors
/// None is.
fn time_left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Reads the answer to a query; `None` if the message is none.
fn answer(message: &[u8], query: &[u8]) -> Option<DnsAnswer> {
    let (header, asked) = (message.get(..HEADER)?, &query[HEADER..]);
    let is_answer = header[..2] == query[..2] && header[2] & 0x80 != 0;
    let repeated = message.get(HEADER..HEADER + asked.len());
    // A server that cannot read the question may leave it out.
    let code = header[3] & 0x0f;
    match (repeated, code) {
        _ if !is_answer => return None,
        (Some(repeated), _) if repeated.eq_ignore_ascii_case(asked) => {}
        (_, 1 | 4 | 5) => return Some(DnsAnswer::Refused),
        _ => return None,
    }
    match code {
        _ if header[2] & 0x02 != 0 => return Some(DnsAnswer::Truncated),
        0 => {}
        3 => return Some(DnsAnswer::NoName),
        _ => return Some(DnsAnswer::Refused),
    }
    let kind = &asked[asked.len() - 4..asked.len() - 2];
    let records = u16::from_be_bytes([header[6], header[7]]);
    let mut rest = &message[HEADER + asked.len()..];
    let mut addresses = Vec::new();
    // The records of other names are those to which the name leads (CNAME).
    for _ in 0..records {
        rest = behind_name(rest)?;
        let (fixed, data) = rest.split_at_checked(10)?;
        let length = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        let (data, behind) = data.split_at_checked(length)?;
        let is_wanted = &fixed[..2] == kind && fixed[2..4] == CLASS_INTERNET.to_be_bytes();
        addresses.extend(address(data).filter(|it| is_wanted && !addresses.contains(it)));
        rest = behind;
    }
    Some(DnsAnswer::Addresses(addresses))
}

/// Returns what is behind a name, which may end with a pointer to another.
fn behind_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (&length, rest) = bytes.split_first()?;
        match length {
            0 => return Some(rest),
            pointer if pointer & 0xc0 == 0xc0 => return rest.get(1..),
            length => bytes = rest.get(usize::from(length)..)?,
        }
    }
}

fn address(data: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(data).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(data).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests;
