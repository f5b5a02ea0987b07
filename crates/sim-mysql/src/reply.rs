//! The reply under way: packets of the model server.

use crate::wire::{PAYLOAD_MAX, cap, flag, put_int, put_string};

/// A change of the session that the server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A variable has a value.
    Variable(String, String),
    /// There is another schema.
    Schema(String),
    /// Something has changed.
    State,
    /// How to begin the transaction again.
    Characteristics(String),
    /// What the transaction has done.
    Transaction(String),
}

impl Change {
    fn write(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = match self {
            Self::Variable(name, value) => {
                put_string(&mut data, name.as_bytes());
                put_string(&mut data, value.as_bytes());
                0
            }
            Self::Schema(name) => {
                put_string(&mut data, name.as_bytes());
                1
            }
            Self::State => {
                put_string(&mut data, b"1");
                2
            }
            Self::Characteristics(text) => {
                put_string(&mut data, text.as_bytes());
                4
            }
            Self::Transaction(letters) => {
                put_string(&mut data, letters.as_bytes());
                5
            }
        };
        out.push(kind);
        put_string(out, &data);
    }
}

/// What an OK packet says, beside the changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Rows that were written.
    pub rows: u64,
    /// The number of the row that was written.
    pub id: u64,
    /// The number of warnings.
    pub warnings: u16,
    /// The status flags.
    pub status: u16,
}

/// The reply under way.
#[derive(Debug, Default)]
pub struct Reply {
    /// The packets: sequence id and payload.
    pub packets: Vec<(u8, Vec<u8>)>,
    /// The sequence id of the next packet.
    pub sequence: u8,
    /// What was agreed on.
    pub agreed: u32,
    /// Whether rows are those of a prepared statement.
    pub is_binary: bool,
    /// Whether the session ends behind it.
    pub closes: bool,
}

impl Reply {
    /// Begins a reply to a message whose last packet has this sequence id.
    pub fn to(last: u8, agreed: u32) -> Self {
        Self { sequence: last.wrapping_add(1), agreed, ..Self::default() }
    }

    /// Appends a packet.
    pub fn put(&mut self, payload: Vec<u8>) {
        let packets = (payload.len() / PAYLOAD_MAX + 1) as u8;
        self.packets.push((self.sequence, payload));
        self.sequence = self.sequence.wrapping_add(packets);
    }

    /// Appends an OK packet, whose first byte is given.
    pub fn ok(&mut self, first: u8, outcome: Outcome, changes: &[Change]) {
        let mut payload = vec![first];
        put_int(&mut payload, outcome.rows);
        put_int(&mut payload, outcome.id);
        let reports = self.agreed & cap::SESSION_TRACK != 0 && !changes.is_empty();
        let status = outcome.status | if reports { flag::STATE_CHANGED } else { 0 };
        payload.extend_from_slice(&status.to_le_bytes());
        payload.extend_from_slice(&outcome.warnings.to_le_bytes());
        if reports {
            put_string(&mut payload, b"");
            let mut block = Vec::new();
            changes.iter().for_each(|change| change.write(&mut block));
            put_string(&mut payload, &block);
        }
        self.put(payload);
    }

    /// Appends a short EOF packet.
    pub fn eof(&mut self, warnings: u16, status: u16) {
        let mut payload = vec![0xFE];
        payload.extend_from_slice(&warnings.to_le_bytes());
        payload.extend_from_slice(&status.to_le_bytes());
        self.put(payload);
    }

    /// Appends an ERR packet.
    pub fn err(&mut self, number: u16, state: &str, words: &str) {
        let mut payload = vec![0xFF];
        payload.extend_from_slice(&number.to_le_bytes());
        payload.push(b'#');
        payload.extend_from_slice(state.as_bytes());
        payload.extend_from_slice(words.as_bytes());
        self.put(payload);
    }

    /// Whether rows end with an OK packet.
    pub fn is_new(&self) -> bool {
        self.agreed & cap::DEPRECATE_EOF != 0
    }

    /// Appends the definitions of columns, behind their number.
    pub fn columns(&mut self, names: &[&str], status: u16) {
        let mut count = Vec::new();
        put_int(&mut count, names.len() as u64);
        self.put(count);
        self.definitions(names, status);
    }

    /// Appends definitions of columns or parameters.
    pub fn definitions(&mut self, names: &[&str], status: u16) {
        for name in names {
            let mut payload = Vec::new();
            for text in ["def", "", "", "", name, ""] {
                put_string(&mut payload, text.as_bytes());
            }
            payload.push(0x0C);
            payload.extend_from_slice(&[255, 0, 0, 1, 0, 0, 0xFD, 0, 0, 0, 0, 0]);
            self.put(payload);
        }
        if !self.is_new() && !names.is_empty() {
            self.eof(0, status);
        }
    }

    /// Appends a row.
    pub fn row(&mut self, values: &[&[u8]]) {
        let mut payload = Vec::new();
        if self.is_binary {
            payload.push(0);
            payload.extend(std::iter::repeat_n(0, (values.len() + 9) / 8));
        }
        values.iter().for_each(|value| put_string(&mut payload, value));
        self.put(payload);
    }
}
