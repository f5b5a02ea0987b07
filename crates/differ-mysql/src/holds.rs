//! Whether a client may hold a server of the proxy's pool, from what the direct session says.

use crate::command::Command;
use crate::reply::{IN_TRANSACTION, Reply};

/// Bit of a status: each statement is a transaction.
const AUTOCOMMIT: u16 = 2;

/// Words of texts that leave something behind in the session, which no other server has.
const LEAVING: &[&str] = &[
    "temporary",
    "temp(",
    "get_lock",
    "handler",
    "lock tables",
    "prepare",
    "execute",
    "set transaction",
    "savepoint",
    "xa ",
    "into @",
    ":=",
    "set @",
    ", @",
    "_vars(",
    "p_set(",
    "p_zone(",
    "f_set(",
    "_fails(",
    "set statement",
    "insert_id=",
    "insert_id =",
    "timestamp=",
    "timestamp =",
    "rand_seed",
    "set role",
];

/// Words with which texts begin that may open a transaction.
const OPENING: &[&str] = &["begin", "start", "call", "execute", "xa"];

/// The things of a session that tie its client once another command comes.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    /// The transaction may have an access mode.
    has_mode: bool,
    /// The session may have limits on what a statement reads.
    has_limits: bool,
}

/// The reasons for which a client may hold a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holds {
    /// The flags of the last reply that had any.
    status: u16,
    /// An error may have ended a transaction, or come behind the beginning of one.
    is_unsure: bool,
    /// Something may be in the session that no other server has.
    is_pinned: bool,
    /// The session has prepared a statement.
    pub has_prepared: bool,
    /// The things that tie the client once another command comes.
    ahead: Ahead,
    /// The session began without a schema. It cannot be without one again.
    is_without_schema: bool,
}

impl Holds {
    /// Makes those of a session that begins with a schema, or without one.
    #[must_use]
    pub fn new(has_schema: bool) -> Self {
        Self { is_without_schema: !has_schema, ..Self::default() }
    }

    /// Whether a change of the schema ties the client to its server. MariaDB reports that the state
    /// has changed with each execution under another schema.
    #[must_use]
    pub fn keep_schema(&self) -> bool {
        self.has_prepared || self.is_without_schema
    }

    /// Whether the client may hold a server.
    #[must_use]
    pub fn any(&self) -> bool {
        self.in_transaction() || self.is_unsure || self.is_pinned
    }

    /// Whether a transaction is open.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.status & IN_TRANSACTION != 0
    }

    /// Whether a PING would tell more.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// Whether a command behind others of a step may tie the client to its server.
    #[must_use]
    pub fn pin(&self, before: &[Command], command: &Command) -> bool {
        self.ties(before, command) || pins(std::slice::from_ref(command))
    }

    /// Whether a command ties the client to its server because of what was before it.
    fn ties(&self, before: &[Command], command: &Command) -> bool {
        let has = |text| command.text().is_some_and(|its| its.contains(text));
        // In MySQL it ends a transaction, and leaves the access mode to the next one.
        let leaves_mode = has("SET autocommit") || has("@@autocommit =");
        // The question behind it, for all variables, has the limits as well.
        let asks = has("session_track_") || has("SET @@");
        leaves_mode && (self.ahead.has_mode || before.iter().any(may_begin_with_mode))
            || asks && (self.ahead.has_limits || before.iter().any(limits))
    }

    /// Notes the commands of a step.
    pub fn sent(&mut self, commands: &[Command]) {
        self.is_pinned |= pins(commands);
        for (at, command) in commands.iter().enumerate() {
            self.is_pinned |= self.ties(&commands[..at], command);
        }
        self.ahead.has_limits |= commands.iter().any(limits);
        self.ahead.has_mode |= commands.iter().any(may_begin_with_mode);
        for command in commands {
            let uses = |text: &str| text.to_ascii_lowercase().contains("use ");
            let moves = matches!(command, Command::InitDb(_)) || command.text().is_some_and(uses);
            self.is_pinned |= self.keep_schema() && moves;
            self.has_prepared |= matches!(command, Command::Prepare(..));
        }
    }

    /// Notes a direct reply.
    pub fn received(&mut self, command: &Command, reply: &Reply) {
        match command {
            Command::Statistics | Command::Raw(_) => {}
            Command::ResetConnection | Command::ChangeUser(_) if reply.error().is_none() => {
                let Self { is_pinned, is_without_schema, .. } = *self;
                let status = AUTOCOMMIT;
                *self = Self { is_pinned, is_without_schema, status, ..Self::default() };
            }
            _ if reply.error().is_some() => {
                let opens = command.text().is_some_and(|text| {
                    let text = text.to_ascii_lowercase();
                    text.contains(';') || OPENING.iter().any(|word| text.starts_with(word))
                });
                let executes = matches!(command, Command::Execute(_));
                let is_autocommit = self.status & AUTOCOMMIT != 0;
                self.is_unsure |= self.in_transaction() || !is_autocommit || opens || executes;
            }
            _ => {
                if let Some(status) = reply.status() {
                    self.status = status;
                    self.is_unsure = false;
                    // The replies to those before it have come since it was noted.
                    self.ahead.has_mode |= may_begin_with_mode(command);
                    self.ahead.has_mode &= self.in_transaction();
                }
            }
        }
    }
}

/// Whether a command may begin a transaction that is READ ONLY or READ WRITE.
fn may_begin_with_mode(command: &Command) -> bool {
    command.text().is_some_and(|text| {
        let text = text.to_ascii_uppercase();
        let has_mode = text.contains("READ ONLY") || text.contains("READ WRITE");
        has_mode && text.contains("TRANSACTION")
    })
}

/// Whether a command may limit what a statement reads.
fn limits(command: &Command) -> bool {
    command.text().is_some_and(|text| {
        ["max_join_size", "sql_select_limit", "sql_big_selects"].iter().any(|it| text.contains(it))
    })
}

/// Whether the commands of a step may tie a client to its server.
fn pins(commands: &[Command]) -> bool {
    commands.iter().enumerate().any(|(at, command)| {
        let is_closed = |handle: u32| commands[at..].contains(&Command::Close(handle));
        match command {
            Command::LongData(handle, ..) | Command::Fetch(handle, _) => !is_closed(*handle),
            Command::Execute(execute) => execute.cursor != 0 && !is_closed(execute.handle),
            _ => command.text().is_some_and(|text| {
                let text = text.to_ascii_lowercase();
                // A change among several statements may be another one than of a setting.
                let is_amid = text.contains(';') && text.contains("set ");
                is_amid || LEAVING.iter().any(|word| text.contains(word))
            }),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autocommit_amid_a_transaction_with_an_access_mode_ties_a_client() {
        let query = |text: &str| Command::Query(text.to_owned(), Vec::new());
        let (begin, ends) = (query("START TRANSACTION READ WRITE"), query("SET autocommit = 1"));
        let mut holds = Holds::new(true);
        assert!(!holds.pin(&[], &ends) && !holds.pin(&[query("BEGIN")], &ends));
        assert!(holds.pin(std::slice::from_ref(&begin), &ends));
        holds.sent(&[begin]);
        assert!(holds.pin(&[], &ends) && !holds.any());
        holds.sent(&[ends]);
        assert!(holds.any());
    }

    #[test]
    fn questions_for_all_variables_under_limits_tie_a_client() {
        let query = |text: &str| Command::Query(text.to_owned(), Vec::new());
        let asks = query("SET session_track_schema = 1");
        let mut holds = Holds::new(true);
        assert!(!holds.pin(&[], &asks));
        holds.sent(&[query("SET sql_big_selects = 0, max_join_size = 10")]);
        assert!(holds.pin(&[], &asks) && !holds.any());
    }
}
