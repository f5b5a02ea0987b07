//! Every reader of whole payloads, behind one function each for clients and servers.

use refrain_mysql_wire::handshake::{AuthReply, Greeting, Login};
use refrain_mysql_wire::prepared::{BulkExecute, Execute, PrepareOk};
use refrain_mysql_wire::reply::{EofPacket, ErrPacket, Head, OkPacket};
use refrain_mysql_wire::request::Request;
use refrain_mysql_wire::{Capabilities, Malformed, column::ColumnDefinition};

use super::dice::Dice;

/// A kind of payload, and what a reader made of it, for comparison.
pub(crate) type Reader = (&'static str, fn(&[u8], Capabilities) -> Result<String, Malformed>);

/// Returns the debug text of what was read.
fn text(read: impl std::fmt::Debug) -> String {
    format!("{read:?}")
}

/// Number of parameters for which executions are read.
pub(crate) const PARAMETERS: u16 = 9;

/// Every reader.
pub(crate) const READERS: &[Reader] = &[
    ("greeting", |payload, _| Greeting::read(payload).map(text)),
    ("login", |payload, offered| Login::read(payload, offered).map(text)),
    ("reply to a login", |payload, agreed| AuthReply::read(payload, agreed).map(text)),
    ("request", |payload, agreed| Request::read(payload, agreed).map(text)),
    ("OK", |payload, agreed| {
        let ok = OkPacket::read(payload, agreed)?;
        ok.changes.iter().collect::<Result<Vec<_>, _>>().map(|changes| text((ok, changes)))
    }),
    ("ERR", |payload, _| ErrPacket::read(payload).map(text)),
    ("EOF", |payload, agreed| EofPacket::read(payload, agreed).map(text)),
    ("head", |payload, agreed| Head::read(payload, agreed).map(text)),
    ("column", |payload, agreed| ColumnDefinition::read(payload, agreed).map(text)),
    ("prepared", |payload, agreed| PrepareOk::read(payload, agreed).map(text)),
    ("execute", |payload, agreed| Execute::read(payload, PARAMETERS, agreed, true).map(text)),
    ("bulk", |payload, _| BulkExecute::read(payload, PARAMETERS, true).map(text)),
];

/// Returns some capabilities, always with those without which there is no session.
pub(crate) fn capabilities(dice: &mut Dice) -> Capabilities {
    let always = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
    Capabilities::from_bits(dice.bits() & 0x3F_FFFF_FFFF) | always
}
