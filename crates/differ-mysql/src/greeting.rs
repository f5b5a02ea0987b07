//! The greetings of servers.

use crate::capability::{CHOICES, LEAST};
use crate::packet::Packet;

/// What a greeting says, but for random bytes and the session's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The version in words.
    pub version: String,
    /// The capabilities that the server has.
    pub capabilities: u32,
    collation: u8,
    status: u16,
    /// The plugin that it asks for.
    pub plugin: String,
}

impl Greeting {
    /// Reads a greeting.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(payload: &[u8]) -> Result<Self, String> {
        let no = || format!("no greeting: {}", payload.escape_ascii());
        let (&protocol, rest) = payload.split_first().ok_or_else(no)?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(no)?;
        let (version, rest) = rest.split_at(end);
        let fixed = rest.get(..45).filter(|_| protocol == 10).ok_or_else(no)?;
        let plugin = rest.get(45..).unwrap_or_default();
        Ok(Self {
            version: String::from_utf8_lossy(version).into_owned(),
            capabilities: u32::from_le_bytes([fixed[14], fixed[15], fixed[19], fixed[20]]),
            collation: fixed[16],
            status: u16::from_le_bytes([fixed[17], fixed[18]]),
            plugin: String::from_utf8_lossy(plugin).trim_end_matches('\0').to_owned(),
        })
    }
}

/// Compares greetings. The proxy need not have all capabilities, but all that clients here use.
///
/// # Errors
/// If they differ, in words.
pub fn same_greetings(direct: &Packet, proxied: &Packet) -> Result<(), String> {
    let (one, mut two) = (Greeting::read(&direct.payload)?, Greeting::read(&proxied.payload)?);
    let used = CHOICES.iter().fold(LEAST, |all, (bit, _)| all | bit);
    if one.capabilities & used == two.capabilities & used {
        two.capabilities = one.capabilities;
    }
    let is_same = one == two && direct.sequence == proxied.sequence;
    if is_same { Ok(()) } else { Err(format!("the greeting is {two:?} instead of {one:?}")) }
}
