//! Planted bugs: changes of an engine's output that have the effect of a bug in the engine.
//!
//! A checker must find each of them within a few seeds. A planted bug that no checker finds shows
//! that a checker does not work.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use refrain_pg::{CacheBug, StandbyBug, UserBug};
use refrain_pg_wire::Header;
use refrain_pg_wire::front::query_text;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write;

use crate::rows::{Rows, Sight};

/// The beginning of a text that the server only pretends to run.
pub const MARK: &str = "--planted\n";

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A reply goes to another client.
    Misroute,
    /// A client gets a ParseComplete that it should not get.
    ExtraParseComplete,
    /// A ReadyForQuery is lost.
    DropReady,
    /// A client gets a ReadyForQuery twice.
    DoubleReady,
    /// A client does not get a ParameterStatus.
    HideSetting,
    /// A server is not reset for the next client.
    SkipReset,
    /// A server does not get the next client's settings.
    SkipPutRight,
    /// A server is lent with an open transaction.
    SkipRollback,
    /// The engine does not ask what functions have left in a session.
    SkipLook,
    /// The engine takes a statement for prepared that is not prepared.
    SkipParse,
    /// A cancel request goes to another server.
    CancelNeighbour,
    /// A server is lent while a cancel request to it is under way.
    LateCancel,
    /// The engine never reads a paused connection again.
    LoseResume,
    /// The engine does not learn that a connection has sent all bytes.
    LoseSent,
    /// The engine reads a connection however many bytes are queued.
    IgnorePause,
    /// A server's connection is never closed.
    LeakServer,
    /// A client's connection is never closed.
    LeakClient,
    /// A message from one core to another is lost.
    LoseMessage,
    /// An engine counts one server more than it has.
    Miscount,
    /// A latency is not a function of the seed.
    HiddenChance,
    /// Each statement whose text may be that of a read counts as a read.
    BlindReads,
    /// The same, and no checker sees it before such a statement runs twice.
    RunTwice,
    /// A cancel request for a client whose turn has not come goes to its server at once.
    EarlyCancel,
    /// A client that has sent its request to another server gets the late replies too.
    LateReplies,
    /// A server answers reads of rows from what it has seen first.
    OldReads,
    /// A server shows rows that are not committed.
    DirtyReads,
    /// A transaction's writes are lost at its COMMIT.
    LostCommit,
    /// The client that came last gets the next server.
    LastComesFirst,
    /// Clients wait behind others for a minute.
    EndlessPatience,
    /// The catalog does not say which tables a statement changes.
    NoTargets,
    /// An idle server is not asked whether it is there.
    Unasked,
    /// A server that has fallen silent at work is never given up.
    EndlessSilence,
    /// A standby is taken for a primary.
    HideStandby,
    /// A host that was promoted is taken for a standby for a while.
    LatePromotion,
    /// Each statement whose text may be that of a read counts as a read, where reads run on
    /// standbys.
    BlindStandbys,
    /// A bug in what is known of standbys.
    Standbys(StandbyBug),
    /// A bug in the cache.
    Cache(CacheBug),
    /// A bug in what is known of users.
    Users(UserBug),
}

/// All planted bugs, by name.
pub const PLANTS: [(&str, Plant); 51] = [
    ("misroute", Plant::Misroute),
    ("extra-parse-complete", Plant::ExtraParseComplete),
    ("drop-ready", Plant::DropReady),
    ("double-ready", Plant::DoubleReady),
    ("hide-setting", Plant::HideSetting),
    ("skip-reset", Plant::SkipReset),
    ("skip-put-right", Plant::SkipPutRight),
    ("skip-rollback", Plant::SkipRollback),
    ("skip-look", Plant::SkipLook),
    ("skip-parse", Plant::SkipParse),
    ("cancel-neighbour", Plant::CancelNeighbour),
    ("late-cancel", Plant::LateCancel),
    ("lose-resume", Plant::LoseResume),
    ("lose-sent", Plant::LoseSent),
    ("ignore-pause", Plant::IgnorePause),
    ("leak-server", Plant::LeakServer),
    ("leak-client", Plant::LeakClient),
    ("lose-message", Plant::LoseMessage),
    ("miscount", Plant::Miscount),
    ("hidden-chance", Plant::HiddenChance),
    ("blind-reads", Plant::BlindReads),
    ("run-twice", Plant::RunTwice),
    ("early-cancel", Plant::EarlyCancel),
    ("late-replies", Plant::LateReplies),
    ("old-reads", Plant::OldReads),
    ("dirty-reads", Plant::DirtyReads),
    ("lost-commit", Plant::LostCommit),
    ("last-comes-first", Plant::LastComesFirst),
    ("endless-patience", Plant::EndlessPatience),
    ("no-targets", Plant::NoTargets),
    ("unasked", Plant::Unasked),
    ("endless-silence", Plant::EndlessSilence),
    ("hide-standby", Plant::HideStandby),
    ("late-promotion", Plant::LatePromotion),
    ("blind-standbys", Plant::BlindStandbys),
    ("no-comparison", Plant::Standbys(StandbyBug::NoComparison)),
    ("early-position", Plant::Standbys(StandbyBug::EarlyPosition)),
    ("any-timeline", Plant::Standbys(StandbyBug::AnyTimeline)),
    ("endless-lag", Plant::Standbys(StandbyBug::EndlessLag)),
    ("position-of-another", Plant::Standbys(StandbyBug::OtherClient)),
    ("late-stamp", Plant::Cache(CacheBug::LateStamp)),
    ("old-flight", Plant::Cache(CacheBug::OldFlight)),
    ("endless-time", Plant::Cache(CacheBug::EndlessTime)),
    ("short-key", Plant::Cache(CacheBug::ShortKey)),
    ("kept-error", Plant::Cache(CacheBug::KeptError)),
    ("late-void", Plant::Cache(CacheBug::LateVoid)),
    ("answer-of-any-database", Plant::Users(UserBug::AnyDatabase)),
    ("many-lookups", Plant::Users(UserBug::ManyLookups)),
    ("endless-answers", Plant::Users(UserBug::EndlessAnswers)),
    ("endless-stale-answers", Plant::Users(UserBug::EndlessStaleAnswers)),
    ("lost-waiters", Plant::Users(UserBug::LostWaiters)),
];

impl Plant {
    /// Returns the bug with this name.
    pub fn named(name: &str) -> Option<Self> {
        PLANTS.iter().find(|(known, _)| *known == name).map(|(_, plant)| *plant)
    }

    /// Whether the bug shows where reads run on standbys.
    pub(crate) fn is_of_standbys(self) -> bool {
        matches!(self, Self::BlindStandbys | Self::Standbys(_))
    }

    /// Returns the rows of the servers.
    pub(crate) fn rows(self) -> Rows {
        let sight = match self {
            Self::OldReads => Sight::Old,
            Self::DirtyReads => Sight::Dirty,
            _ => Sight::Committed,
        };
        Rows::planted(sight, self == Self::LostCommit)
    }

    /// Changes the bytes that the engine sends to a server.
    pub fn to_server(self, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::SkipReset
            | Self::SkipPutRight
            | Self::SkipRollback
            | Self::SkipLook
            | Self::SkipParse => {
                rewrite(&bytes, |out, tag, body| self.server_message(out, tag, body))
                    .unwrap_or(bytes)
            }
            _ => bytes,
        }
    }

    fn server_message(self, out: &mut Vec<u8>, tag: u8, body: &[u8]) -> bool {
        let text = query_text(body).unwrap_or(b"");
        let concerns = match (self, tag) {
            (Self::SkipReset, front::QUERY) => text == b"DISCARD ALL",
            (Self::SkipPutRight, front::QUERY) => {
                text.starts_with(b"SELECT pg_catalog.set_config(")
            }
            (Self::SkipRollback, front::QUERY) => text == b"ROLLBACK",
            (Self::SkipParse, front::PARSE) => body.starts_with(b"_r"),
            (Self::SkipLook, front::PARSE) => look(body).is_some(),
            _ => false,
        };
        if !concerns {
            return false;
        }
        if self == Self::SkipLook {
            let asked = [&body[..look(body).unwrap_or(0)], &[0; 3]].concat();
            write::message(out, tag, |out| out.extend_from_slice(&asked));
        } else if tag == front::PARSE {
            let renamed = [b"lost", body].concat();
            write::message(out, tag, |out| out.extend_from_slice(&renamed));
        } else {
            write::query(out, &[MARK.as_bytes(), text].concat());
        }
        true
    }

    /// Changes the bytes that the engine sends to a client. Returns `None` if this is not the place
    /// of the bug.
    pub fn to_client(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut done = false;
        let changed = rewrite(bytes, |out, tag, _| {
            let here = match self {
                Self::ExtraParseComplete => tag == back::BIND_COMPLETE,
                Self::DropReady | Self::DoubleReady => tag == back::READY_FOR_QUERY,
                Self::HideSetting => tag == back::PARAMETER_STATUS,
                _ => false,
            };
            if !here || done {
                return false;
            }
            done = true;
            match self {
                Self::ExtraParseComplete => {
                    write::bare(out, back::PARSE_COMPLETE);
                    write::bare(out, back::BIND_COMPLETE);
                }
                Self::DoubleReady => {
                    write::ready(out, refrain_pg_wire::back::Status::Idle);
                    write::ready(out, refrain_pg_wire::back::Status::Idle);
                }
                _ => {}
            }
            true
        });
        changed.filter(|_| done)
    }
}

/// Returns the begin of the part of the engine's question that is not about settings.
fn look(body: &[u8]) -> Option<usize> {
    const FIRST: &[u8] = b" UNION ALL SELECT '=";
    body.windows(FIRST.len()).position(|window| window == FIRST)
}

/// Copies messages. `change` returns true if it has appended others in the place of a message.
/// Returns `None` if the bytes are not whole messages.
fn rewrite(
    bytes: &[u8],
    mut change: impl FnMut(&mut Vec<u8>, u8, &[u8]) -> bool,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let header = Header::parse(rest).ok().flatten()?;
        let message = rest.get(..header.message_bytes())?;
        if !change(&mut out, header.tag, &message[refrain_pg_wire::frame::HEADER_BYTES..]) {
            out.extend_from_slice(message);
        }
        rest = &rest[message.len()..];
    }
    Some(out)
}

static HIDDEN: AtomicU64 = AtomicU64::new(0);

/// Returns a number that differs from call to call and from run to run: [`Plant::HiddenChance`].
pub(crate) fn hidden_chance() -> u64 {
    HIDDEN.fetch_add(1, Relaxed) % 17
}
