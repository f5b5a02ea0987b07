//! Lines for the log.

use std::borrow::Cow;

use refrain_config::Host;

use crate::client::Client;
use crate::disconnect::DisconnectReason;
use crate::engine::Log;
use crate::event::{Action, Level, News, Note};
use crate::ids::{Conn, Peer, PoolId};
use crate::pool::Pool;
use crate::ports::Ports;
use crate::protocol::Protocol;
use crate::time::Now;

/// A line about a client.
#[derive(Debug)]
pub struct ClientNote<'a> {
    /// The importance of the line.
    pub level: Level,
    /// The event.
    pub cause: DisconnectReason,
    /// The code of the error that the client gets, unless it is the one for `cause`.
    pub code: Option<&'a str>,
    /// Database and user, if the client is in no pool, and the protocol does not know any more who
    /// it says that it is.
    pub names: Option<(&'a str, &'a str)>,
    /// The details, in words.
    pub detail: String,
    /// Whether the client's session, or its login, ends by that.
    pub is_end: bool,
}

impl ClientNote<'_> {
    /// Makes a line about an end, without details.
    pub fn new(level: Level, cause: DisconnectReason) -> Self {
        let detail = String::new();
        Self { level, cause, code: None, names: None, detail, is_end: true }
    }
}

/// Logs a line about a client of a pool. If the operator wants to see ends of sessions, one says
/// how long the session was.
pub fn note_client<P: Protocol>(
    (ports, now): (&mut Ports<P>, Now),
    (client, pool): (&Client<P>, Option<&Pool<P>>),
    note: ClientNote<'_>,
) {
    let ClientNote { level, cause, code, names, mut detail, is_end } = note;
    if !ports.notes(level) {
        return;
    }
    let code = code.map(|code| code.to_owned().into()).or(P::code(cause).map(Cow::Borrowed));
    let ends = is_end && ports.session_notes().ends;
    // Logins that fail may be a flood.
    let is_each = ends && client.logged_in.is_some();
    if ends {
        let comma = if detail.is_empty() { "" } else { ", " };
        detail += &format!("{comma}age {} s", now.since(client.connected) / 1_000_000);
    }
    put(ports, (client, pool), (level, is_each), (cause.key(), code), names, detail);
}

/// Puts a line about a client into the log.
fn put<P: Protocol>(
    ports: &mut Ports<P>,
    (client, pool): (&Client<P>, Option<&Pool<P>>),
    (level, is_each): (Level, bool),
    (cause, code): (&'static str, Option<Cow<'static, str>>),
    names: Option<(&str, &str)>,
    detail: String,
) {
    let peer = match &client.peer {
        Peer::Tcp(address) => address.to_string(),
        Peer::Unix { .. } => "unix".to_owned(),
    };
    let said = || names.or_else(|| P::claimed(&client.session));
    let (database, user) = match pool {
        Some(pool) => (Some(pool.shared.database.clone()), Some(client.user.clone())),
        None => said().map(|(database, user)| (database.into(), user.into())).unzip(),
    };
    let (client, peer) = (Some(client.serial), Some(peer));
    let server = None;
    let note = Note { level, is_each, cause, code, client, peer, database, user, server, detail };
    ports.act(Action::Note(Box::new(note)));
}

/// Logs a line about a server of a pool, with the code and the words of the server's error.
pub fn note_server_error<P: Protocol>(
    ports: &mut Ports<P>,
    (pool, host, pid): (&Pool<P>, &Host, u32),
    level: Level,
    code: String,
    words: &str,
) {
    let detail = format!("{host}, process {pid}: {words}");
    let cause = DisconnectReason::ServerGone.key();
    note_pool(ports, (pool, host), level, cause, Some(code.into()), detail);
}

/// Logs that reads of a pool stay on the primary, because a server cannot say how far it is.
pub fn note_standby_reads<P: Protocol>(
    ports: &mut Ports<P>,
    (pool, host): (&Pool<P>, &Host),
    code: String,
    detail: String,
) {
    let (level, cause) = (Level::Warn, News::StandbyReads.key());
    note_pool(ports, (pool, host), level, cause, Some(code.into()), detail);
}

/// Logs the time of a command, in words.
pub fn note_duration<P: Protocol>(ports: &mut Ports<P>, pool: &Pool<P>, detail: String) {
    let (level, cause) = (Level::Info, News::Duration.key());
    note_pool(ports, (pool, &pool.settings.host), level, cause, None, detail);
}

fn note_pool<P: Protocol>(
    ports: &mut Ports<P>,
    (pool, host): (&Pool<P>, &Host),
    level: Level,
    cause: &'static str,
    code: Option<Cow<'static, str>>,
    detail: String,
) {
    let (database, user) = (Some(pool.shared.database.clone()), Some(pool.shared.user.clone()));
    let server = Some(host.to_string());
    let (client, peer) = (None, None);
    // The options of these bound how many are told.
    let is_each = cause == News::Duration.key()
        || cause == News::ServerLogin.key() && ports.session_notes().logins;
    let note = Note { level, is_each, cause, code, client, peer, database, user, server, detail };
    ports.act(Action::Note(Box::new(note)));
}

impl<P: Protocol> Log<'_, P> {
    /// Logs that a client's session, or its login, ends.
    pub fn note_client(
        &mut self,
        conn: Conn,
        level: Level,
        cause: DisconnectReason,
        detail: String,
    ) {
        self.tell_of_client(conn, ClientNote { detail, ..ClientNote::new(level, cause) });
    }

    /// Logs that a client has logged in.
    pub(crate) fn note_login(&mut self, conn: Conn) {
        let level = self.ports.session_notes().login_level();
        if !self.ports.notes(level) {
            return;
        }
        let Some(client) = self.connections.peek_client(conn) else { return };
        let pool = self.core_state.peek_pool(client.pool);
        let key = News::ClientLogin.key();
        let detail = client.secured.as_ref().map_or_else(String::new, ToString::to_string);
        let is_each = level == Level::Info;
        put(self.ports, (client, pool), (level, is_each), (key, None), None, detail);
    }

    /// Logs a line about a client, with all that it may have.
    pub fn tell_of_client(&mut self, conn: Conn, note: ClientNote<'_>) {
        let Some(client) = self.connections.peek_client(conn) else { return };
        let pool = self.core_state.peek_pool(client.pool);
        note_client((self.ports, self.now), (client, pool), note);
    }

    /// Logs a line about a pool.
    pub fn note_pool(
        &mut self,
        pool: PoolId,
        level: Level,
        cause: DisconnectReason,
        detail: String,
    ) {
        let Some(pool) = self.core_state.peek_pool(pool) else { return };
        note_pool(self.ports, (pool, &pool.settings.host), level, cause.key(), None, detail);
    }

    /// Logs a line about a host of a pool.
    pub(crate) fn note_host(
        &mut self,
        pool: PoolId,
        host: &Host,
        level: Level,
        cause: &'static str,
        detail: String,
    ) {
        let Some(pool) = self.core_state.peek_pool(pool) else { return };
        note_pool(self.ports, (pool, host), level, cause, None, detail);
    }

    /// Logs news about a pool.
    pub(crate) fn note_news(&mut self, pool: PoolId, level: Level, news: News, detail: String) {
        let Some(pool) = self.core_state.peek_pool(pool) else { return };
        note_pool(self.ports, (pool, &pool.settings.host), level, news.key(), None, detail);
    }
}
