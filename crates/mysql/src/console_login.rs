//! Logins to the admin console: who may, by the rules of PostgreSQL's clients.

use std::sync::Arc;

use refrain_config::{ConsoleRights, Database};
use refrain_mysql_wire::error_code;
use refrain_mysql_wire::packet;
use refrain_mysql_wire::reply::{OkPacket, first};
use refrain_mysql_wire::{Capabilities, Status};
use refrain_pool::client::Client;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::ids::Peer;
use refrain_pool::lobby::Counted;
use refrain_pool::{Conn, Step};

use crate::client_state::{AtConsole, ClientState};
use crate::console::ConsoleSession;
use crate::errors::{self, Brand};
use crate::login::{Agreed, ServerSecret};
use crate::parts::{My, Place};

/// Whether a client is let into the console without a password: the operating system says that it
/// is the user as which the program runs, and it calls itself `pgbouncer`.
pub(crate) fn is_owner(client: &Client<My>, user: &str, schema: &str) -> bool {
    let is_own = matches!(client.peer(), Peer::Unix { is_own: true, .. });
    is_own && user == Database::CONSOLE_OWNER && Database::console(schema).is_some()
}

/// Lets a client into the console that has authenticated. `host` is the client's, as it stands in
/// errors.
pub(crate) fn enter(
    step: &mut Step<'_, My>,
    conn: Conn,
    (agreed, name): (Agreed, &'static str),
    host: &str,
) {
    let options = step.engine.core_state.shared.options();
    let Some(client) = step.engine.connections.client(conn) else { return };
    let user: Arc<str> = String::from_utf8_lossy(&agreed.user).into();
    let is_owner = is_owner(client, &user, name);
    let brand = client.session.brand.unwrap_or(Brand::MySql);
    let sequence = agreed.sequence;
    client.session.place = Place { sequence, ..Place::default() };
    client.session.state = ClientState::Entering(Box::new(agreed));
    if !is_owner && !options.admits(name, &user) {
        return step.end_client(conn, DisconnectReason::Login);
    }
    if !is_owner && options.general.console_rights(&user) == ConsoleRights::Nothing {
        let words = errors::database_denied(&user, host, name);
        errors::write(
            step.ports.out(conn),
            sequence,
            error_code::DBACCESS_DENIED,
            words.as_bytes(),
        );
        step.log().note_client(conn, Level::Warn, DisconnectReason::Login, words);
        return step.remove_client(conn, false);
    }
    if !step.count_as(conn, Counted::Console) {
        return step.end_client(conn, DisconnectReason::TooManyClients);
    }
    let Some(client) = step.engine.connections.client(conn) else { return };
    let ClientState::Entering(agreed) = std::mem::take(&mut client.session.state) else { return };
    // No server is logged in to with the secret.
    let agreed = Agreed { secret: ServerSecret::None, ..*agreed };
    let session = ConsoleSession::new(brand, agreed.capabilities);
    let at_console = AtConsole { agreed, name, user, is_owner, session };
    client.session.state = ClientState::Console(Box::new(at_console));
    client.session.place = Place::default();
    let ok = OkPacket { status: Status::AUTOCOMMIT, ..OkPacket::default() };
    packet::message(step.ports.out(conn), sequence, |out| {
        ok.write(out, first::OK, Capabilities::NONE);
    });
}
