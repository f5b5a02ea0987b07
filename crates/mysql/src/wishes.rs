//! The changes of its session that a client wants to be told of, and the OK packets that tell it.
//!
//! Refrain has servers report far more than clients ask for. A client gets what a server would tell
//! it under the client's own `session_track_*` variables, which servers do not have for it.

use std::sync::Arc;

use refrain_mysql_wire::reply::{OkPacket, first};
use refrain_mysql_wire::track::{Change, Changes};
use refrain_mysql_wire::{Capabilities, Status};

use crate::settings::{self, Base};

/// The variables of which wishes are made, in the order in which they are asked for.
pub(crate) const QUESTION: &[u8] = b"SELECT @@session_track_schema, \
    @@session_track_state_change, @@session_track_transaction_info, \
    @@session_track_system_variables LIMIT 1";

/// The changes that a client wants to be told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    schema: bool,
    state: bool,
    transactions: bool,
    characteristics: bool,
    /// The list of variables.
    variables: Arc<[u8]>,
}

/// The names of these variables, in that order.
const NAMES: [&[u8]; 4] = [
    b"session_track_schema",
    b"session_track_state_change",
    b"session_track_transaction_info",
    b"session_track_system_variables",
];

impl Wishes {
    /// Whether a variable is one of those of which wishes are made.
    pub(crate) fn have(name: &[u8]) -> bool {
        NAMES.contains(&name)
    }

    /// Makes those that a session begins with.
    pub(crate) fn of_base(base: &Base) -> Self {
        let [flags @ .., variables] = NAMES;
        let flags = flags.map(|name| base.value(name).unwrap_or_default());
        Self::with(flags, base.shared(variables))
    }

    /// Makes them of the values of [`QUESTION`].
    pub(crate) fn of([schema, state, transactions, variables]: [&[u8]; 4]) -> Self {
        Self::with([schema, state, transactions], variables.into())
    }

    fn with([schema, state, transactions]: [&[u8]; 3], variables: Arc<[u8]>) -> Self {
        let is_on = |value: &[u8]| value == b"1" || value.eq_ignore_ascii_case(b"on");
        let characteristics = transactions.eq_ignore_ascii_case(b"characteristics");
        Self {
            schema: is_on(schema),
            state: is_on(state),
            transactions: characteristics || transactions.eq_ignore_ascii_case(b"state"),
            characteristics,
            variables,
        }
    }

    /// Makes those of a client that wants to be told of everything.
    pub(crate) fn all() -> Self {
        Self::of([b"1", b"1", b"CHARACTERISTICS", b"*"])
    }

    /// Returns the statement that gives a server these wishes.
    pub(crate) fn statement(&self) -> Vec<u8> {
        let transactions = match (self.transactions, self.characteristics) {
            (_, true) => "CHARACTERISTICS",
            (true, false) => "STATE",
            (false, false) => "OFF",
        };
        let mut text = format!(
            "SET SESSION session_track_schema={}, session_track_state_change={}, \
             session_track_transaction_info='{transactions}', session_track_system_variables=",
            u8::from(self.schema),
            u8::from(self.state),
        )
        .into_bytes();
        settings::put_string(&mut text, &self.variables);
        text
    }

    /// Whether the client wants to be told of a change.
    fn has(&self, change: &Change<'_>) -> bool {
        match *change {
            Change::SystemVariable { name, .. } => {
                let mut listed = self.variables.split(|&byte| byte == b',');
                listed.any(|listed| {
                    let listed = listed.trim_ascii();
                    listed == b"*" || listed.eq_ignore_ascii_case(name)
                })
            }
            Change::Schema(_) => self.schema,
            Change::State(_) => self.state,
            Change::TransactionState(_) => self.transactions,
            Change::TransactionCharacteristics(_) => self.characteristics,
            Change::Other(..) => true,
        }
    }

    /// Appends the payload of an OK packet for the client, without the changes that the client does
    /// not want to be told of. `first` is the first byte of the server's.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        (ok, first): (&OkPacket<'_>, u8),
        agreed: Capabilities,
    ) {
        let mut block = Vec::new();
        if agreed.has(Capabilities::SESSION_TRACK) {
            let changes = ok.changes.iter().flatten().filter(|change| self.has(change));
            changes.for_each(|change| change.write(&mut block));
        }
        let status = match block.is_empty() {
            true => ok.status.without(Status::SESSION_STATE_CHANGED),
            false => ok.status,
        };
        let told = OkPacket { status, changes: Changes(&block), ..*ok };
        told.write(out, first, agreed);
    }

    /// Appends the payload of an OK packet of Refrain's own.
    pub(crate) fn write_own(
        &self,
        out: &mut Vec<u8>,
        (status, schema): (Status, Option<&[u8]>),
        agreed: Capabilities,
    ) {
        let mut block = Vec::new();
        if let Some(schema) = schema {
            Change::Schema(schema).write(&mut block);
        }
        let changed = if block.is_empty() { Status(0) } else { Status::SESSION_STATE_CHANGED };
        let (status, changes) = (status.with(changed), Changes(&block));
        let ok = OkPacket { status, changes, ..OkPacket::default() };
        self.write(out, (&ok, first::OK), agreed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACKS: Capabilities = Capabilities::SESSION_TRACK;

    fn told(wishes: &Wishes, agreed: Capabilities) -> Vec<u8> {
        let mut block = Vec::new();
        Change::SystemVariable { name: b"autocommit", value: b"OFF" }.write(&mut block);
        Change::SystemVariable { name: b"sql_mode", value: b"" }.write(&mut block);
        Change::State(b"1").write(&mut block);
        let status = Status::SESSION_STATE_CHANGED;
        let ok = OkPacket { status, changes: Changes(&block), ..OkPacket::default() };
        let mut out = Vec::new();
        wishes.write(&mut out, (&ok, first::OK), agreed);
        out
    }

    #[test]
    fn a_client_is_told_what_it_wants() {
        let wishes = Wishes::of([b"1", b"0", b"OFF", b"time_zone, AUTOCOMMIT"]);
        let payload = told(&wishes, TRACKS);
        let ok = OkPacket::read(&payload, TRACKS).expect("an OK packet");
        let changes: Vec<_> = ok.changes.iter().flatten().collect();
        assert_eq!(changes, [Change::SystemVariable { name: b"autocommit", value: b"OFF" }]);
        assert_eq!(told(&wishes, Capabilities::NONE), b"\x00\x00\x00\x00\x00\x00\x00");
        assert_eq!(told(&Wishes::default(), TRACKS), b"\x00\x00\x00\x00\x00\x00\x00");
    }

    #[test]
    fn a_list_may_say_all() {
        let wishes = Wishes::of([b"ON", b"ON", b"STATE", b"*"]);
        let payload = told(&wishes, TRACKS);
        let ok = OkPacket::read(&payload, TRACKS).expect("an OK packet");
        assert_eq!(ok.changes.iter().flatten().count(), 3);
    }
}
