//! Settings that follow the server's defaults: when a server is lent, and when its defaults have
//! changed during a session.
//!
//! Refrain syncs the settings of a lent server by one query in front of the client's first message.
//! If the query resets a setting, the answer tells its default ([`sync_settings_row`]). If a server
//! reports a setting that no client has set, Refrain asks for the defaults when the transaction is
//! over ([`crate::relay::reports`]). The client gets a ParameterStatus for each default that
//! changed, unless the setting is its own.

use refrain_config::PoolMode;
use refrain_pg_wire::write;
use refrain_pool::{Conn, Now};
use refrain_sql::Traits;

use crate::ground::server_state::READ_ONLY;
use crate::relay::link::Link;
use crate::relay::pipe::Pipeline;
use crate::settings::defaults::{self, Defaults};
use crate::settings::session::{self, SettingsMut};
use crate::settings::value;
use crate::state::client::ClientSession;
use crate::state::client::settings::ClientSettings;
use crate::state::parts::intern_settings;
use crate::state::server::ServerSession;

/// Begins to use a server for a client, and syncs the server's settings in front of the client's
/// first message.
#[inline]
pub(crate) fn begin_use(link: Link<'_>) {
    let Link { mut pipe, client } = link;
    client.session.begin_use();
    sync_settings_if_needed(client.conn(), &mut pipe, &mut client.session);
}

/// Gives a server that was just lent the settings of its client, unless it has them.
#[inline]
pub(crate) fn sync_settings_if_needed(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
) {
    let changed = pipe.pool().shared.protocol.defaults_changed();
    let (settings, server) = (&session.settings, &*pipe.server);
    if !server.session.settings.are(settings.expected(), settings.defaults())
        || server.session.settings.defaults().since < changed
    {
        sync_settings(conn, pipe, session, changed);
    }
}

/// Sends the query that syncs the settings. The newest defaults hold for both: the client's, the
/// server's, or those that another server of the pool reported since.
#[cold]
fn sync_settings(conn: Conn, pipe: &mut Pipeline<'_>, session: &mut ClientSession, changed: Now) {
    if pipe.pool().shared.protocol.is_for_replication() {
        // Its server began with the client's settings, and may run no SQL.
        return;
    }
    let (client, server) = (session.settings.defaults(), pipe.server.session.settings.defaults());
    if client.since.max(server.since) < changed {
        if let Some(newest) = newest_defaults(pipe, changed) {
            follow(conn, pipe, session, newest);
        }
    } else if !client.are(server) && client.since <= server.since {
        follow(conn, pipe, session, server.clone());
    }
    let checks = session.login.is_checking();
    let (expected, defaults) = (session.settings.expected(), session.settings.defaults());
    let refusable = pipe.give_settings(expected, defaults, checks);
    if let Some(seq) = refusable.filter(|_| !checks) {
        // The server would run the client's request under the settings that it has.
        session.reading.bar(seq, 0, None);
    }
}

/// Reads the row that answers that query.
pub(crate) fn sync_settings_row(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    row: &[u8],
) {
    let settings = &mut pipe.server.session.settings;
    let news = settings.were_reset(row, |edit| intern_settings(pipe.core_state, edit));
    if !news.is_empty() {
        learn_defaults(conn, pipe, session, news.iter());
    }
    let settings = &mut pipe.server.session.settings;
    settings.were_checked(row, |edit| intern_settings(pipe.core_state, edit));
}

/// Learns changed defaults of a server, and has the client follow them.
pub(crate) fn learn_defaults<'a>(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    found: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    let settings = &mut pipe.server.session.settings;
    let intern = |edit| intern_settings(pipe.core_state, edit);
    let Some(news) = settings.learn_defaults(found, pipe.now, intern) else { return };
    if news.iter().any(|(name, _)| !session::is_harmless(name)) {
        // Statements may have been prepared under the new defaults before Refrain knew these.
        pipe.server.session.statements.doubt_all();
    }
    let known = pipe.server.session.settings.defaults().settings.clone();
    let now = pipe.now;
    let pool = pipe.pool();
    pool.shared.protocol.amend_server_parameters(news.iter(), now);
    pool.shared.protocol.meet(&known);
    pool.counters.protocol.defaults_learned += 1;
    follow(conn, pipe, session, pipe.server.session.settings.defaults().clone());
}

/// Returns the defaults that servers of the pool have since `changed`.
fn newest_defaults(pipe: &mut Pipeline<'_>, changed: Now) -> Option<Defaults> {
    let parameters = pipe.pool().shared.protocol.server_parameters()?;
    let settings = intern_settings(pipe.core_state, SettingsMut::settable(&parameters));
    Some(Defaults { settings, since: changed })
}

/// Gives the client these defaults for all settings that are not its own, and reports the changes
/// to it.
fn follow(conn: Conn, pipe: &mut Pipeline<'_>, session: &mut ClientSession, defaults: Defaults) {
    let own = &session.settings;
    let is_own = |name: &[u8]| own.owns(name);
    let edit = defaults::follow(own.expected(), own.defaults(), &defaults, is_own);
    let settings = intern_settings(pipe.core_state, edit);
    let before = session.settings.follow(settings, defaults);
    if !session.login.is_ready() {
        return;
    }
    // The names of PostgreSQL's reports, since `Settings` has them in lower case.
    let Some(server_parameters) = pipe.pool().shared.protocol.server_parameters() else {
        return;
    };
    for (name, _) in server_parameters.iter() {
        let value = session.settings.expected().get(name);
        if let Some(value) = value.filter(|value| before.get(name) != Some(value)) {
            let out = pipe.ports.out(conn);
            write::parameter_status(out, name, value::bytes(value));
        }
    }
}

/// Checks whether reported settings mean changed defaults: a setting had its default and the client
/// has not set it. Then Refrain asks for the defaults when the transaction is over.
pub(crate) fn suspect_defaults(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    reported: &SettingsMut,
) {
    if explains_settings(&pipe.server.session, session)
        || !pipe.server.session.settings.may_be_defaults(reported)
    {
        return;
    }
    let mut is_left = pipe.pool().settings.options.pool_mode == PoolMode::Session;
    if let Some(value) = reported.get(READ_ONLY) {
        pipe.note_read_only(value == b"on");
        // Behind a question the client's next write would reach a server that refuses it.
        is_left |= pipe.server.is_close_needed();
    }
    if is_left {
        // No other client gets this server before it is reset, so the reports are enough.
        let reported = reported.clone();
        return learn_defaults(conn, pipe, session, reported.iter());
    }
    session.settings.read_later();
}

/// Whether settings may be reported because the client has changed them.
pub(crate) fn explains_settings(server: &ServerSession, session: &ClientSession) -> bool {
    session.settings.have_changed()
        || session.settings.have_changed_locally()
        || server.settings.is_stuck()
        || session.reading.is_restoring()
        || !session.suspicion.is_clear()
}

/// Notes the reported settings that a text sets: they are the client's own, even with the default
/// value. A text that resets a setting ends that.
pub(crate) fn claim(settings: &mut ClientSettings, text: &[u8], traits: Traits) {
    let backslash = settings.reads_backslash();
    match traits.contains(Traits::RESET) {
        true => settings.disclaim(refrain_sql::set_names(text, backslash)),
        false => refrain_sql::set_names(text, backslash).for_each(|name| settings.claim(&name)),
    }
}
