//! Changes of a session's state, which OK packets report under SESSION_TRACK.
//!
//! A block is a list of entries: a byte for the kind, and data with a length. The session's
//! `session_track_*` variables say which kinds the server reports. (MySQL, "OK_Packet", "Session
//! State Information"; MariaDB, "OK_Packet", "Session State Info".)

use crate::Malformed;
use crate::fields::{Fields, put_string};

/// Kinds of entries on the wire.
mod kind {
    pub(super) const SYSTEM_VARIABLES: u8 = 0;
    pub(super) const SCHEMA: u8 = 1;
    pub(super) const STATE_CHANGE: u8 = 2;
    pub(super) const TRANSACTION_CHARACTERISTICS: u8 = 4;
    pub(super) const TRANSACTION_STATE: u8 = 5;
}

/// A block of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes<'a>(pub &'a [u8]);

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A system variable has been set, perhaps to the value that it had
    /// (`session_track_system_variables`).
    SystemVariable {
        /// The variable's name.
        name: &'a [u8],
        /// The new value, as SHOW VARIABLES prints it.
        value: &'a [u8],
    },
    /// The default database is this one now (`session_track_schema`).
    Schema(&'a [u8]),
    /// Something in the state has changed that a new session would not have
    /// (`session_track_state_change`): `1`. The manual has its length twice; servers send it once.
    State(&'a [u8]),
    /// The statement with which a transaction like the next or present one begins
    /// (`session_track_transaction_info`).
    TransactionCharacteristics(&'a [u8]),
    /// Eight letters on the transaction, or `_` where a letter does not hold
    /// (`session_track_transaction_info`).
    TransactionState(&'a [u8]),
    /// Another kind, such as GTIDs: its byte, and its data.
    Other(u8, &'a [u8]),
}

impl<'a> Changes<'a> {
    /// Iterates over the changes, in order. An error is the last item.
    pub fn iter(self) -> impl Iterator<Item = Result<Change<'a>, Malformed>> + use<'a> {
        // MariaDB's page allows several variables in one entry.
        let (mut rest, mut variables) = (Fields(self.0), Fields(&[]));
        std::iter::from_fn(move || {
            if rest.is_empty() && variables.is_empty() {
                return None;
            }
            let change = next(&mut rest, &mut variables);
            if change.is_none() {
                (rest, variables) = (Fields(&[]), Fields(&[]));
            }
            Some(change.ok_or(Malformed::new("session state information")))
        })
    }
}

/// Reads one change: of the variables that are left of an entry, or of the next entry.
fn next<'a>(rest: &mut Fields<'a>, variables: &mut Fields<'a>) -> Option<Change<'a>> {
    if variables.is_empty() {
        let (kind, data) = (rest.u8()?, rest.string()?);
        let mut fields = Fields(data);
        match kind {
            kind::SYSTEM_VARIABLES => *variables = fields,
            kind::SCHEMA => return fields.string().map(Change::Schema),
            kind::STATE_CHANGE => return Some(Change::State(data)),
            kind::TRANSACTION_CHARACTERISTICS => {
                return fields.string().map(Change::TransactionCharacteristics);
            }
            kind::TRANSACTION_STATE => return fields.string().map(Change::TransactionState),
            other => return Some(Change::Other(other, data)),
        }
    }
    Some(Change::SystemVariable { name: variables.string()?, value: variables.string()? })
}

impl Change<'_> {
    /// Appends the entry.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = match *self {
            Self::SystemVariable { name, value } => {
                put_string(&mut data, name);
                put_string(&mut data, value);
                kind::SYSTEM_VARIABLES
            }
            Self::Schema(name) => {
                put_string(&mut data, name);
                kind::SCHEMA
            }
            Self::State(value) => {
                data.extend_from_slice(value);
                kind::STATE_CHANGE
            }
            Self::TransactionCharacteristics(text) => {
                put_string(&mut data, text);
                kind::TRANSACTION_CHARACTERISTICS
            }
            Self::TransactionState(letters) => {
                put_string(&mut data, letters);
                kind::TRANSACTION_STATE
            }
            Self::Other(kind, bytes) => {
                data.extend_from_slice(bytes);
                kind
            }
        };
        out.push(kind);
        put_string(out, &data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &[u8]) -> Vec<Result<Change<'_>, Malformed>> {
        Changes(block).iter().collect()
    }

    #[test]
    fn changes_as_in_the_manual() {
        let autocommit = Change::SystemVariable { name: b"autocommit", value: b"OFF" };
        assert_eq!(read(b"\x00\x0f\x0aautocommit\x03OFF"), [Ok(autocommit)]);
        let block = b"\x01\x05\x04test\x02\x011";
        assert_eq!(read(block), [Ok(Change::Schema(b"test")), Ok(Change::State(b"1"))]);
        let block = b"\x05\x09\x08I_______\x03\x03\x00\x01x";
        let due = [Ok(Change::TransactionState(b"I_______")), Ok(Change::Other(3, b"\x00\x01x"))];
        assert_eq!(read(block), due);
    }

    #[test]
    fn an_entry_may_have_several_variables() {
        let due = [(&b"a"[..], &b"1"[..]), (b"b", b"2")]
            .map(|(name, value)| Ok(Change::SystemVariable { name, value }));
        assert_eq!(read(b"\x00\x08\x01a\x011\x01b\x012"), due);
    }

    #[test]
    fn an_error_is_the_last_item() {
        for bad in
            [&b"\x01"[..], b"\x01\x05\x04tes", b"\x01\x01\x04", b"\x00\x02\x01a", b"\x00\x00"]
        {
            let items = read(bad);
            assert!(matches!(items[..], [Err(_)]), "{items:?}");
        }
        assert!(read(b"").is_empty());
    }
}
