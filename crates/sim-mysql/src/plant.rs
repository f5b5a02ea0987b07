//! Planted bugs: changes of what an engine sends, and lies of the model server, with which a right
//! engine acts like one with a bug.
//!
//! A checker must find each of them within a few seeds. A planted bug that no checker finds shows
//! that a checker does not work.

use crate::session::Lie;
use crate::wire::{Frames, com, message, take_string};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// An execution that leaves out its types gets those of whoever came before.
    ForeignTypes,
    /// The characteristics of the next transaction do not keep a server.
    ForgottenNext,
    /// An error leaves the status as it was.
    KeptStatus,
    /// The option for several statements does not follow the client.
    ForgottenOption,
    /// The sequence ids of a reply are off by one.
    Sequence,
    /// The number of a statement is not compared with the one that was foretold.
    ForetoldNumber,
    /// The collation behind SET NAMES is not asked for.
    ForgottenCollation,
    /// A server is not reset for the next client.
    SkipReset,
    /// A server does not get the next client's settings.
    SkipSettings,
    /// A server does not get the next client's schema.
    SkipSchema,
    /// A reply goes to another client.
    Misroute,
    /// A server's connection is never closed.
    LeakServer,
    /// A client's connection is never closed.
    LeakClient,
    /// An engine never reads a paused connection again.
    LoseResume,
    /// A command is sent to a server twice.
    Twice,
}

/// All planted bugs, by name.
pub const PLANTS: [(&str, Plant); 15] = [
    ("foreign-types", Plant::ForeignTypes),
    ("forgotten-next", Plant::ForgottenNext),
    ("kept-status", Plant::KeptStatus),
    ("forgotten-option", Plant::ForgottenOption),
    ("sequence", Plant::Sequence),
    ("foretold-number", Plant::ForetoldNumber),
    ("forgotten-collation", Plant::ForgottenCollation),
    ("skip-reset", Plant::SkipReset),
    ("skip-settings", Plant::SkipSettings),
    ("skip-schema", Plant::SkipSchema),
    ("misroute", Plant::Misroute),
    ("leak-server", Plant::LeakServer),
    ("leak-client", Plant::LeakClient),
    ("lose-resume", Plant::LoseResume),
    ("twice", Plant::Twice),
];

impl Plant {
    /// Returns the bug with this name.
    pub fn named(name: &str) -> Option<Self> {
        PLANTS.iter().find(|(known, _)| *known == name).map(|(_, plant)| *plant)
    }

    /// Returns the lie that makes a right engine act so.
    pub fn lie(self) -> Lie {
        match self {
            Self::ForgottenNext => Lie::NoCharacteristics,
            Self::KeptStatus => Lie::OldStatus,
            Self::ForgottenOption => Lie::KeepsOption,
            Self::ForetoldNumber => Lie::ForetoldNumber,
            Self::ForgottenCollation => Lie::FirstCollation,
            Self::SkipReset => Lie::NoReset,
            Self::SkipSettings => Lie::NoSettings,
            Self::SkipSchema => Lie::NoSchema,
            _ => Lie::None,
        }
    }

    /// Changes the bytes that the engine sends to a server.
    pub fn to_server(self, bytes: Vec<u8>) -> Vec<u8> {
        if self != Self::ForeignTypes {
            return bytes;
        }
        let mut frames = Frames::default();
        frames.push(&bytes);
        let mut out = Vec::new();
        while let Some(one) = frames.take() {
            let payload = without_types(&one.payload).unwrap_or(one.payload);
            message(&mut out, one.first, &payload);
        }
        if frames.is_empty() { out } else { bytes }
    }
}

/// Takes the types out of an execution whose values say that the client sent none.
fn without_types(payload: &[u8]) -> Option<Vec<u8>> {
    let (head, after) = payload.split_at_checked(12)?;
    let is_one = head[0] == com::EXECUTE && head[11] == 1;
    (1..=3).filter(|_| is_one).find_map(|count| {
        let mut values = after.get(2 * count..)?;
        let mut rest = values;
        let mut all_without = true;
        for _ in 0..count {
            all_without &= take_string(&mut rest)?.ends_with(b"-");
        }
        let fits = rest.is_empty() && all_without;
        values = values.get(..values.len())?;
        fits.then(|| [&head[..11], &[0], values].concat())
    })
}
