//! Logins: the greeting and the exchange, on the model server's side and on the model client's.

use crate::reply::{Change, Outcome, Reply};
use crate::session::Session;
use crate::variables::COLLATIONS;
use crate::wire::{Message, cap, flag, take_string, take_zeroed};

/// The plugin that proves passwords.
pub(crate) const PLUGIN: &[u8] = b"mysql_native_password";

/// Returns the payload of a server's greeting.
pub(crate) fn greeting(number: u32) -> Vec<u8> {
    let mut out = vec![10];
    out.extend_from_slice(b"8.0.15-model\0");
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(b"abcdefgh\0");
    out.extend_from_slice(&cap::OFFERED.to_le_bytes()[..2]);
    out.push(255);
    out.extend_from_slice(&flag::AUTOCOMMIT.to_le_bytes());
    out.extend_from_slice(&cap::OFFERED.to_le_bytes()[2..]);
    out.push(21);
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(b"ijklmnopqrst\0");
    out.extend_from_slice(PLUGIN);
    out.push(0);
    out
}

/// Returns the plugin that a greeting names.
pub(crate) fn plugin(greeting: &[u8]) -> &[u8] {
    let greeting = greeting.strip_suffix(b"\0").unwrap_or(greeting);
    greeting.rsplit(|&byte| byte == 0).next().unwrap_or_default()
}

/// Returns whether a payload is a greeting, and the capabilities that it offers.
pub(crate) fn offered(payload: &[u8]) -> Option<u32> {
    let mut rest = payload.strip_prefix(&[10])?;
    take_zeroed(&mut rest)?;
    let low = rest.get(13..15)?;
    let high = rest.get(18..20)?;
    Some(u32::from_le_bytes([low[0], low[1], high[0], high[1]]))
}

/// Returns the number of the session that a greeting names.
pub(crate) fn session_number(greeting: &[u8]) -> Option<u32> {
    let mut rest = greeting.strip_prefix(&[10])?;
    take_zeroed(&mut rest)?;
    let (number, _) = rest.split_first_chunk::<4>()?;
    Some(u32::from_le_bytes(*number))
}

/// Returns the payload of a client's login.
pub(crate) fn response(
    agreed: u32,
    collation: u8,
    (user, schema): (&str, Option<&str>),
    plugin: &[u8],
) -> Vec<u8> {
    let mut out = agreed.to_le_bytes().to_vec();
    out.extend_from_slice(&(1u32 << 24).to_le_bytes());
    out.push(collation);
    out.extend_from_slice(&[0; 23]);
    out.extend_from_slice(user.as_bytes());
    out.extend_from_slice(&[0, 0]);
    if let Some(schema) = schema {
        out.extend_from_slice(schema.as_bytes());
        out.push(0);
    }
    if agreed & cap::PLUGIN_AUTH != 0 {
        out.extend_from_slice(plugin);
        out.push(0);
    }
    out
}

/// A client's login, as far as it matters.
struct Response {
    agreed: u32,
    collation: u8,
    schema: Option<String>,
}

fn read(payload: &[u8]) -> Option<Response> {
    let agreed = u32::from_le_bytes(*payload.first_chunk()?) & cap::OFFERED;
    let collation = *payload.get(8)?;
    let mut rest = payload.get(32..)?;
    take_zeroed(&mut rest)?;
    if agreed & cap::PLUGIN_AUTH_LENENC != 0 {
        take_string(&mut rest)?;
    } else {
        let (&length, after) = rest.split_first()?;
        rest = after.get(length.into()..)?;
    }
    let schema = match agreed & cap::CONNECT_WITH_DB {
        0 => None,
        _ => Some(String::from_utf8_lossy(take_zeroed(&mut rest)?).into_owned()),
    };
    Some(Response { agreed, collation, schema: schema.filter(|name| !name.is_empty()) })
}

impl Session {
    /// Handles the login.
    pub(crate) fn log_in(&mut self, message: &Message) -> Reply {
        let mut reply = Reply::to(message.last, 0);
        let Some(Response { agreed, collation, schema }) = read(&message.payload) else {
            reply.err(1043, "08S01", "Bad handshake");
            reply.closes = true;
            return reply;
        };
        reply.agreed = agreed;
        if let Some(schema) = schema.as_deref().filter(|schema| schema.starts_with("no")) {
            reply.err(1049, "42000", &format!("Unknown database '{schema}'"));
            reply.closes = true;
            self.ended = true;
            return reply;
        }
        self.agreed = Some(agreed);
        self.has_several = agreed & cap::MULTI_STATEMENTS != 0;
        if let Some((_, set, name)) = COLLATIONS.iter().find(|(number, ..)| *number == collation) {
            self.variables.set_names(set, name);
        }
        let changes: Vec<Change> = schema.iter().cloned().map(Change::Schema).collect();
        self.schema = schema;
        reply.ok(0, Outcome { status: self.status(), ..Outcome::default() }, &changes);
        reply
    }
}
