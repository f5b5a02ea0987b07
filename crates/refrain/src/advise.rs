//! `refrain advise`: asks a running Refrain which requests are repeated, and writes the rules of
//! the cache that would save most.

use std::io::{self, Read, Write};

use refrain_config::{Options, Server};
use refrain_pg::auth::{Login, NONCE_BYTES, Password, Reply, Secret};
use refrain_pg_wire::back::{self as read, Authentication, Fields, field};
use refrain_pg_wire::frame::HEADER_BYTES;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::{Header, startup, write};

use crate::quoted::quoted;
use crate::source;
use crate::tls::{BlockingStream, Setup, Store};

/// The database that is the admin console.
const CONSOLE: &str = "refrain";
/// Most rules.
const RULES_MAX: usize = 10;
/// Most bytes of a message that is read.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// The variables of the environment that stand for options of a URL, as for libpq.
const VARIABLES: [(&str, &str); 7] = [
    ("PGSSLMODE", "sslmode"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCRL", "sslcrl"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGCHANNELBINDING", "channel_binding"),
];

/// Where Refrain listens, and who asks.
pub(crate) struct Console {
    server: Server,
    store: Store,
    user: String,
    password: Option<String>,
}

impl Console {
    /// Reads the URL or the address of Refrain, and the files that the URL names. `user` is that of
    /// a URL without one; `variable` returns variables of the environment, over which the URL takes
    /// precedence.
    ///
    /// # Errors
    /// Why it is no such URL, without a part of it: it may contain a password.
    pub(crate) fn read(
        target: &str,
        user: String,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let scheme = if target.contains("://") { "" } else { "postgres://" };
        let (place, query) = target.split_once('?').unwrap_or((target, ""));
        let mut url = format!("{scheme}{place}?");
        for (name, option) in VARIABLES {
            if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
                url.extend([option, "=", &source::encoded(&value), "&"]);
            }
        }
        let options = Options::from_url(&(url + query)).map_err(|errors| errors.to_string())?;
        let store = Store::new(Setup::read(&options)?);
        let mut databases = options.databases.into_iter().map(|database| database.server);
        let server = databases.next().ok_or("expected the URL of a running Refrain")?;
        let password = server.password.as_ref().map(|password| password.expose().to_owned());
        Ok(Self {
            store,
            user: server.user.clone().unwrap_or(user),
            password: password.or_else(|| variable("PGPASSWORD")),
            server,
        })
    }
}

/// A text whose requests are repeated.
#[derive(Debug, PartialEq, Eq)]
struct Advice {
    database: String,
    user: String,
    requests: u64,
    repeats: u64,
    saves_us: u64,
    text: String,
}

/// Writes the best rules to `out`.
///
/// # Errors
/// If Refrain cannot be reached, refuses the login or the question, or `out` cannot be written to.
pub(crate) fn advise(console: &Console, out: &mut dyn Write) -> Result<(), String> {
    print(console, out).map_err(|error| format!("{}: {error}", console.server.host))
}

fn print(console: &Console, out: &mut dyn Write) -> io::Result<()> {
    let mut connection = Connection::open(console)?;
    let rows = connection.ask("SHOW CACHE ADVICE")?;
    let found: Vec<Advice> = rows.iter().filter_map(|row| Advice::read(row)).collect();
    let best: Vec<_> = found.iter().filter(|it| it.saves_us > 0).take(RULES_MAX).collect();
    if best.is_empty() {
        return writeln!(
            out,
            "# No read that could be kept, and that no rule is for, was repeated within a second\n\
             # so far. Refrain looks for one second in thirty, and judges reads that are used\n\
             # often where servers are shared (share_servers) or there are rules of the cache."
        );
    }
    best.into_iter().try_for_each(|advice| advice.write(out))
}

impl Advice {
    fn read(row: &[Option<String>]) -> Option<Self> {
        let [database, user, requests, _, repeats, saves_us, text] = row else { return None };
        let number = |value: &Option<String>| value.as_deref()?.parse().ok();
        Some(Self {
            database: database.clone()?,
            user: user.clone()?,
            requests: number(requests)?,
            repeats: number(repeats)?,
            saves_us: number(saves_us)?,
            text: text.clone()?,
        })
    }

    /// Writes a rule, and what it would have saved so far.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { database, user, requests, repeats, saves_us, text } = self;
        let (percent, seconds) = (100 * repeats / requests.max(&1), saves_us / 1_000_000);
        writeln!(
            out,
            "# {percent} % of some {requests} requests said the same as one in the same second.\n\
             # A rule would have saved about {seconds}.{:03} s of the database's time so far.\n\
             [[cache.rules]]\ndatabase = {}\nuser = {}\nstatement = {}\nttl = \"1s\"\n",
            saves_us / 1000 % 1000,
            quoted(database),
            quoted(user),
            quoted(text)
        )
    }
}

/// A connection to the admin console.
struct Connection {
    stream: BlockingStream,
}

impl Connection {
    /// Connects and logs in.
    fn open(console: &Console) -> io::Result<Self> {
        let mut packet = Vec::new();
        let parameters = [("user", &*console.user), ("database", CONSOLE)];
        let parameters = parameters.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        startup::write(&mut packet, 0, parameters.into_iter());
        let stream = BlockingStream::open(&console.store, &console.server.host, packet)?;
        let mut connection = Self { stream };
        connection.log_in(console)?;
        Ok(connection)
    }

    fn log_in(&mut self, console: &Console) -> io::Result<()> {
        let mut random = [0; NONCE_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let password = console.password.as_ref().and_then(Password::new);
        let secret = password.map_or(Secret::None, Secret::Password);
        let (mut tag, mut body) = self.message()?;
        // Not before: the first answer settles whether the connection is encrypted.
        let (secured, binding) = (self.stream.secured(), console.server.channel_binding);
        let mut login = Some(Login::new(&console.user, secret, &random).over(secured, binding));
        let mut salted = None;
        loop {
            match tag {
                back::READY_FOR_QUERY => return Ok(()),
                back::AUTHENTICATION => {
                    let asked = Authentication::read(&body).map_err(io::Error::other)?;
                    let exchange = login.take().ok_or_else(|| io::Error::other("out of turn"))?;
                    match exchange.answer(asked.into(), &mut salted).map_err(io::Error::other)? {
                        Reply::Send(body, next) => {
                            let mut packet = Vec::new();
                            write::password(&mut packet, &body);
                            self.stream.write_all(&packet)?;
                            login = Some(next);
                        }
                        Reply::Wait(next) => login = Some(next),
                        Reply::LoggedIn => {}
                    }
                }
                _ => {}
            }
            (tag, body) = self.message()?;
        }
    }

    /// Asks a question. Returns the rows of the answer.
    fn ask(&mut self, text: &str) -> io::Result<Vec<Vec<Option<String>>>> {
        let mut packet = Vec::new();
        write::query(&mut packet, text.as_bytes());
        self.stream.write_all(&packet)?;
        let mut rows = Vec::new();
        loop {
            let (tag, body) = self.message()?;
            match tag {
                back::READY_FOR_QUERY => return Ok(rows),
                back::DATA_ROW => {
                    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                    rows.push(read::columns(&body).map(|value| value.map(text)).collect());
                }
                _ => {}
            }
        }
    }

    /// Reads a message. One with an error is an error.
    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; HEADER_BYTES];
        self.stream.read_exact(&mut head)?;
        let header = Header::parse(&head).map_err(io::Error::other)?;
        let header = header.filter(|header| header.message_bytes() <= MESSAGE_BYTES_MAX);
        let header = header.ok_or_else(|| io::Error::other("this is no answer of Refrain"))?;
        let mut body = vec![0; header.message_bytes() - HEADER_BYTES];
        self.stream.read_exact(&mut body)?;
        if header.tag == back::ERROR_RESPONSE {
            let message = Fields(&body).get(field::MESSAGE).unwrap_or_default();
            return Err(io::Error::other(String::from_utf8_lossy(message).into_owned()));
        }
        Ok((header.tag, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_a_configuration() {
        let advice = Advice {
            database: "shop".to_owned(),
            user: "o\"brien".to_owned(),
            requests: 1200,
            repeats: 900,
            saves_us: 12_345_678,
            text: "select a\n\tfrom \"T\" where b = E'\\\\' and c = '\u{7f}'".to_owned(),
        };
        let mut out = Vec::new();
        advice.write(&mut out).unwrap();
        let written = String::from_utf8(out).unwrap();
        assert!(written.contains("75 % of some 1200 requests"), "{written}");
        assert!(written.contains("about 12.345 s"), "{written}");
        let options = Options::from_toml(&format!(
            "auth = \"trust\"\n[databases.shop]\nhost = \"db\"\n{written}"
        ));
        let rule = options.unwrap().cache.rules.remove(0);
        assert_eq!(rule.statement.as_deref(), Some(&*advice.text));
        assert_eq!(rule.user.as_deref(), Some("o\"brien"));
    }
}
