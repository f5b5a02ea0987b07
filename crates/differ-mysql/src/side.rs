//! The two sides, which do the same in schemas of their own.

use crate::capability::{ATTRIBUTES, Capabilities, WITH_SCHEMA};
use crate::packet::string;
use std::collections::BTreeMap;

/// The proxied side's user, and the prefix of its schemas and locks.
pub const PROXIED: &str = "diffp";
/// The direct side's user, and the prefix of its schemas and locks: as long as the other one.
pub const DIRECT: &str = "diffd";

/// The number of a statement that was never prepared.
const UNKNOWN: u32 = 0x7000_0000;

/// The names and numbers of one session.
#[derive(Clone, Debug)]
pub struct Side {
    /// The user, and the prefix of schemas and locks.
    pub prefix: String,
    /// The plugin with which the server greets.
    pub plugin: String,
    /// All capabilities of the session.
    pub agreed: Capabilities,
    /// The numbers of statements by their handles.
    pub numbers: BTreeMap<u32, u32>,
}

impl Side {
    /// Returns a text with the side's names.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        text.replace("{d}", &self.prefix)
    }

    /// Returns the number of a statement; one that no session has if it was not prepared.
    #[must_use]
    pub fn number(&self, handle: u32) -> u32 {
        self.numbers.get(&handle).copied().unwrap_or(UNKNOWN + handle)
    }

    /// Returns the payload of COM_CHANGE_USER. The password is empty, and so its proof.
    #[must_use]
    pub fn change_user(&self, schema: &str) -> Vec<u8> {
        let collation = 45u16.to_le_bytes(); // utf8mb4_general_ci
        let parts = [
            &[17][..],
            self.prefix.as_bytes(),
            b"\0\0",
            schema.as_bytes(),
            b"\0",
            &collation,
            self.plugin.as_bytes(),
            b"\0",
        ];
        let mut out = parts.concat();
        if self.agreed.has(ATTRIBUTES) {
            out.extend(attributes());
        }
        out
    }

    /// Returns the payload of a login behind the greeting.
    #[must_use]
    pub fn login(&self, schema: &str, collation: u8) -> Vec<u8> {
        let mut out = self.agreed.0.to_le_bytes().to_vec();
        out.extend((1u32 << 24).to_le_bytes());
        out.push(collation);
        out.extend([0; 23]);
        out.extend_from_slice(self.prefix.as_bytes());
        // The end of the name, and a proof without bytes.
        out.extend([0, 0]);
        if self.agreed.has(WITH_SCHEMA) {
            out.extend_from_slice(schema.as_bytes());
            out.push(0);
        }
        out.extend_from_slice(self.plugin.as_bytes());
        out.push(0);
        if self.agreed.has(ATTRIBUTES) {
            out.extend(attributes());
        }
        out
    }
}

/// Returns the attributes of a login.
fn attributes() -> Vec<u8> {
    string(&[string(b"program_name"), string(b"differ")].concat())
}
