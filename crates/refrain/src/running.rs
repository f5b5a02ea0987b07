//! Running: a Refrain that runs elsewhere, which the commands `refrain advise` and `refrain
//! publication` ask.

use std::io::{self, Read, Write};

use refrain_config::{Options, Server};
use refrain_pg::auth::{Login, NONCE_BYTES, Password, Reply, Secret};
use refrain_pg_wire::back::{self as read, Authentication, Fields, field};
use refrain_pg_wire::frame::HEADER_BYTES;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::{Header, startup, write};

use crate::source;
use crate::tls::{BlockingStream, Setup, Store};

/// The database that is the admin console.
pub(crate) const CONSOLE: &str = "refrain";
/// Most bytes of a message that is read.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// A row of an answer.
pub(crate) type AnsweredRow = Vec<Option<String>>;

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
    pub(crate) server: Server,
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

/// A connection to a database of a running Refrain, or to its admin console.
pub(crate) struct Connection {
    stream: BlockingStream,
}

impl Connection {
    /// Connects to a database, and logs in.
    ///
    /// # Errors
    /// If Refrain cannot be reached, or refuses the login.
    pub(crate) fn open(console: &Console, database: &str) -> io::Result<Self> {
        let mut packet = Vec::new();
        let parameters = [("user", &*console.user), ("database", database)];
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
    ///
    /// # Errors
    /// If the connection breaks, or the answer is an error.
    pub(crate) fn ask(&mut self, text: &str) -> io::Result<Vec<AnsweredRow>> {
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
