//! Packets, written and read without the crate that Refrain uses: an error of that one would hide
//! itself.

/// The longest payload of a packet; a message of this length or more goes on in the next one.
pub const PAYLOAD_MAX: usize = 0xFF_FFFF;

/// Capabilities, by their bits.
pub mod cap {
    /// Affected rows are those found.
    pub const FOUND_ROWS: u32 = 1 << 1;
    /// The login names a schema.
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    /// The server may ask for a file.
    pub const LOCAL_FILES: u32 = 1 << 7;
    /// The protocol of version 4.1.
    pub const PROTOCOL_41: u32 = 1 << 9;
    /// Status flags.
    pub const TRANSACTIONS: u32 = 1 << 13;
    /// Proofs of 20 bytes.
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    /// A text may have several statements.
    pub const MULTI_STATEMENTS: u32 = 1 << 16;
    /// A text may have several results.
    pub const MULTI_RESULTS: u32 = 1 << 17;
    /// An execution may have several results.
    pub const PS_MULTI_RESULTS: u32 = 1 << 18;
    /// The login names a plugin.
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    /// A proof has a length of any size in front.
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    /// OK packets report changes of the session.
    pub const SESSION_TRACK: u32 = 1 << 23;
    /// No EOF packets.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
    /// What the model server offers.
    pub const OFFERED: u32 = 0x01FF_F7FF;
}

/// Commands, by their bytes.
pub mod com {
    /// The session ends.
    pub const QUIT: u8 = 0x01;
    /// The schema changes.
    pub const INIT_DB: u8 = 0x02;
    /// A text.
    pub const QUERY: u8 = 0x03;
    /// A question whether anybody is there.
    pub const PING: u8 = 0x0E;
    /// Another user.
    pub const CHANGE_USER: u8 = 0x11;
    /// A text is prepared.
    pub const PREPARE: u8 = 0x16;
    /// A statement is executed.
    pub const EXECUTE: u8 = 0x17;
    /// A part of a value.
    pub const LONG_DATA: u8 = 0x18;
    /// A statement is forgotten.
    pub const CLOSE: u8 = 0x19;
    /// A statement's cursor and values are forgotten.
    pub const STMT_RESET: u8 = 0x1A;
    /// The option for several statements in a text.
    pub const SET_OPTION: u8 = 0x1B;
    /// Rows of a cursor.
    pub const FETCH: u8 = 0x1C;
    /// The session becomes as new.
    pub const RESET_CONNECTION: u8 = 0x1F;
}

/// Status flags, by their bits.
pub mod flag {
    /// A transaction is open.
    pub const IN_TRANS: u16 = 0x0001;
    /// Each statement commits.
    pub const AUTOCOMMIT: u16 = 0x0002;
    /// Another result follows.
    pub const MORE_RESULTS: u16 = 0x0008;
    /// A cursor is open.
    pub const CURSOR_EXISTS: u16 = 0x0040;
    /// The cursor has no more rows.
    pub const LAST_ROW_SENT: u16 = 0x0080;
    /// A backslash is a byte like any other.
    pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
    /// Changes of the session are reported.
    pub const STATE_CHANGED: u16 = 0x4000;
    /// The transaction reads only.
    pub const IN_TRANS_READONLY: u16 = 0x2000;
}

/// A message: the sequence id of its first packet, that of its last one, and its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sequence id of the first packet.
    pub first: u8,
    /// The sequence id of the last packet.
    pub last: u8,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// Bytes that have arrived and are not read yet.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    at: usize,
}

impl Frames {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether all bytes are read.
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Takes the next message, if all of it has arrived.
    pub fn take(&mut self) -> Option<Message> {
        let mut rest = &self.bytes[self.at..];
        let mut payload = Vec::new();
        let first = *rest.get(3)?;
        loop {
            let (&[a, b, c, last], after) = rest.split_first_chunk::<4>()?;
            let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            payload.extend_from_slice(after.get(..length)?);
            rest = &after[length..];
            if length < PAYLOAD_MAX {
                self.at = self.bytes.len() - rest.len();
                return Some(Message { first, last, payload });
            }
        }
    }
}

/// Appends a message whose first packet has this sequence id. Returns the next one.
pub fn message(out: &mut Vec<u8>, mut sequence: u8, payload: &[u8]) -> u8 {
    let mut rest = payload;
    loop {
        let length = rest.len().min(PAYLOAD_MAX);
        out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        out.push(sequence);
        sequence = sequence.wrapping_add(1);
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        if length < PAYLOAD_MAX {
            return sequence;
        }
    }
}

/// Appends a number of any size.
pub fn put_int(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    match number {
        0..0xFB => out.push(bytes[0]),
        0xFB..0x1_0000 => out.extend_from_slice(&[0xFC, bytes[0], bytes[1]]),
        0x1_0000..0x100_0000 => out.extend_from_slice(&[0xFD, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a string with its length in front.
pub fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_int(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Takes a number of any size.
pub fn take_int(from: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = from.split_first()?;
    let length = match first {
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        0xFB | 0xFF => return None,
        _ => 0,
    };
    let bytes = rest.get(..length)?;
    *from = &rest[length..];
    if length == 0 {
        return Some(first.into());
    }
    let mut number = [0; 8];
    number[..length].copy_from_slice(bytes);
    Some(u64::from_le_bytes(number))
}

/// Takes a string with its length in front.
pub fn take_string<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_int(from)?).ok()?;
    let (string, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(string)
}

/// Takes bytes up to a zero.
pub fn take_zeroed<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = from.iter().position(|&byte| byte == 0)?;
    let (string, rest) = (&from[..end], &from[end + 1..]);
    *from = rest;
    Some(string)
}

/// Returns the number that four bytes at this place are.
pub fn number_at(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?))
}

/// Returns the number of an ERR packet.
pub fn error_number(payload: &[u8]) -> Option<u16> {
    match payload {
        [0xFF, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

/// Returns a payload in words, for people.
pub fn show(payload: &[u8]) -> String {
    let shown = &payload[..payload.len().min(300)];
    let text: String = shown
        .iter()
        .map(|&byte| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '.' })
        .collect();
    let first: Vec<String> = payload.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{} {text}", first.join(" "))
}
