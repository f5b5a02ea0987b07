//! Replication connections: what clients ask for by the startup parameter `replication`, and how
//! far each has come.
//!
//! A walsender keeps the startup parameters of its session, since it runs no SET. So its server is
//! one of a pool of its own variant: servers whose startup packets are the same as that of the
//! client. Such a server has one client, whose bytes it gets as they are.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use refrain_config::{Autoprepare, PoolCache, PoolMode, ShareServers};
use refrain_pool::settings::PoolSettings;

use crate::settings::session::Setting;

/// Most different startup packets of replication connections that there are at the same time.
const STARTS_MAX: usize = 4096;
/// Time after which a pool without clients goes: another client of its kind may never come.
const UNUSED: Duration = Duration::from_secs(10);

/// The replication that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replication {
    /// Of the whole server: `replication = true`.
    Physical,
    /// Of a database: `replication = database`.
    Logical,
}

impl Replication {
    /// Reads the value of the startup parameter; `Some(None)` if it asks for no replication.
    /// Returns `None` if PostgreSQL refuses it.
    pub(crate) fn read(value: &[u8]) -> Option<Option<Self>> {
        if value == b"database" {
            return Some(Some(Self::Logical));
        }
        let value = value.to_ascii_lowercase();
        let begins = |word: &[u8], least: usize| value.len() >= least && word.starts_with(&value);
        // PostgreSQL takes the beginning of a word, as long as only one begins so.
        if value == b"1" || begins(b"true", 1) || begins(b"yes", 1) || begins(b"on", 2) {
            return Some(Some(Self::Physical));
        }
        let is_off = value == b"0" || begins(b"false", 1) || begins(b"no", 1) || begins(b"off", 2);
        is_off.then_some(None)
    }

    /// Returns PgBouncer's word, for `SHOW CLIENTS`.
    fn word(self) -> &'static str {
        match self {
            Self::Physical => "physical",
            Self::Logical => "logical",
        }
    }

    /// Returns the word for a connection that may be one of replication.
    pub(crate) fn word_of(replication: Option<Self>) -> &'static str {
        replication.map_or("none", Self::word)
    }

    /// Returns the value of the startup parameter.
    fn value(self) -> &'static str {
        match self {
            Self::Physical => "true",
            Self::Logical => "database",
        }
    }
}

/// The beginning of a replication connection: its kind, and the parameters of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    kind: Replication,
    settings: Vec<Setting>,
}

impl Start {
    pub(crate) fn new(kind: Replication, settings: Vec<Setting>) -> Self {
        Self { kind, settings }
    }

    /// Changes the settings of a pool to those of servers that begin so.
    fn adapt(&self, settings: &mut PoolSettings) {
        settings.cache = PoolCache::default();
        let options = &mut settings.options;
        options.pool_mode = PoolMode::Session;
        options.share_servers = ShareServers::Off;
        options.autoprepare = Autoprepare::Off;
        options.prepared_statements = false;
        options.min_pool_size = 0;
        options.server_check_delay = None;
        // A stream has no end.
        options.query_timeout = None;
        options.transaction_timeout = None;
        options.idle_transaction_timeout = None;
        options.client_idle_timeout = None;
        let unused = options.pool_idle_timeout.map_or(UNUSED, |timeout| timeout.min(UNUSED));
        options.pool_idle_timeout = Some(unused);
        let server = &mut settings.server;
        server.connect_query = None;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for (name, value) in &self.settings {
            let (name, value) = (text(name), text(value));
            if name.eq_ignore_ascii_case("application_name") {
                server.application_name = None;
            }
            server.parameters.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
            server.parameters.push((name, value));
        }
        server.parameters.push(("replication".to_owned(), self.kind.value().to_owned()));
    }
}

/// The variants of pools for replication: each is a beginning. A beginning goes when its pools have
/// gone, and leaves its number to another.
#[derive(Debug, Default)]
pub(crate) struct Starts(Mutex<Vec<Arc<Start>>>);

impl Starts {
    /// Returns the variant of servers that begin so, which is theirs for as long as somebody has
    /// the beginning. `None` if there are too many.
    pub(crate) fn variant(&self, start: Start) -> Option<(u16, Arc<Start>)> {
        let mut starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |other: &Arc<Start>| Arc::strong_count(other) == 1;
        let known = starts.iter().position(|other| **other == start);
        let place = known.or_else(|| {
            let start = Arc::new(start);
            if let Some(free) = starts.iter().position(is_free) {
                starts[free] = start;
                return Some(free);
            }
            (starts.len() < STARTS_MAX).then(|| starts.push(start))?;
            Some(starts.len() - 1)
        })?;
        Some((u16::try_from(place + 1).ok()?, Arc::clone(&starts[place])))
    }

    /// Returns the beginning of the servers of a variant; `None` for other servers.
    pub(crate) fn of(&self, variant: u16) -> Option<Arc<Start>> {
        let starts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        starts.get(usize::from(variant).checked_sub(1)?).cloned()
    }

    /// Changes the settings of a pool to those of a variant.
    pub(crate) fn adapt(&self, settings: &mut PoolSettings, variant: u16) {
        if let Some(start) = self.of(variant) {
            start.adapt(settings);
        }
    }
}

/// A replication connection: a server that gets the bytes of its client as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relay {
    kind: Replication,
    doing: Doing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// It runs a command.
    Command,
    /// It streams, until one of both ends that.
    Stream,
}

impl Relay {
    pub(crate) fn new(kind: Replication) -> Self {
        Self { kind, doing: Doing::Nothing }
    }

    /// Returns the kind of its replication.
    pub(crate) fn kind(self) -> Replication {
        self.kind
    }

    /// Whether it runs a command that comes to an end.
    pub(crate) fn is_busy(self) -> bool {
        self.doing == Doing::Command
    }

    /// Whether there is something to cancel.
    pub(crate) fn is_under_way(self) -> bool {
        self.doing != Doing::Nothing
    }

    /// Notes a message of the client.
    pub(crate) fn note_request(&mut self) {
        if self.doing == Doing::Nothing {
            self.doing = Doing::Command;
        }
    }

    /// Notes that a stream begins.
    pub(crate) fn note_stream(&mut self) {
        self.doing = Doing::Stream;
    }

    /// Notes that the server waits for a command.
    pub(crate) fn note_ready(&mut self) {
        self.doing = Doing::Nothing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_is_read_as_postgresql_reads_it() {
        let read = |value: &str| Replication::read(value.as_bytes());
        for value in ["true", "T", "yes", "on", "1"] {
            assert_eq!(read(value), Some(Some(Replication::Physical)), "{value}");
        }
        for value in ["false", "n", "OFF", "of", "0"] {
            assert_eq!(read(value), Some(None), "{value}");
        }
        for value in ["o", "2", "DATABASE", "truer"] {
            assert_eq!(read(value), None, "{value}");
        }
        assert_eq!(read("database"), Some(Some(Replication::Logical)));
    }

    #[test]
    fn a_number_is_used_again_once_nobody_has_the_beginning() {
        let start = |name: &str| {
            let setting = (Box::from(&b"application_name"[..]), Box::from(name.as_bytes()));
            Start::new(Replication::Physical, vec![setting])
        };
        let starts = Starts::default();
        let (one, kept) = starts.variant(start("one")).unwrap();
        let (two, dropped) = starts.variant(start("two")).unwrap();
        assert_eq!((one, two), (1, 2));
        drop(dropped);
        assert_eq!(starts.variant(start("one")).unwrap().0, 1);
        assert_eq!(starts.variant(start("three")).unwrap().0, 2, "nobody has the second");
        assert_eq!(starts.of(1), Some(kept));
        assert_eq!(starts.of(0), None);
    }
}
