//! The guard: keeps steps out that have more than one right answer.
//!
//! PostgreSQL converts literals such as `'05/06/2024'::date` when it *parses* a statement. A pooler
//! that parses the statement again on another server gets another date if the client has changed
//! its settings since. The test does not run a step that would need such a second Parse, unless the
//! feature `frozen` is on. Texts that depend on the settings carry the comment [`MARK`].
//!
//! The guard also keeps PostgreSQL alive: see [`may_crash`].

use crate::ledger::{Env, Ledger, cut};
use crate::msg::Msg;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The comment in texts whose meaning depends on the settings at their Parse.
pub const MARK: &[u8] = b"/*env*/";

/// Settings that change the meaning of a text. The server reports all of them.
const SETTINGS: [&str; 5] =
    ["DateStyle", "IntervalStyle", "TimeZone", "client_encoding", "standard_conforming_strings"];

/// A client's guard, which remembers whether the client's settings are known.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    dirty: bool,
    fresh: Env,
}

impl Guard {
    /// Returns the environment of each message of a step, or `None` if the step must not be run.
    pub fn check(&mut self, ledger: &Ledger, msgs: &[Msg]) -> Option<Vec<Env>> {
        if harms(ledger, msgs) {
            return None;
        }
        let mut walk = Walk {
            env: if self.dirty { self.unknown() } else { known(ledger) },
            touched: self.dirty,
            local: BTreeMap::new(),
            writes: BTreeMap::new(),
        };
        let mut envs = Vec::with_capacity(msgs.len());
        for (at, msg) in msgs.iter().enumerate() {
            envs.push(walk.env);
            if !walk.allows(ledger, msg) || walk.suspends(ledger, msg, msgs.get(at + 1)) {
                return None;
            }
            if walk.changes(ledger, msg) {
                walk.touched = true;
                walk.env = self.unknown();
            }
        }
        self.dirty = walk.touched;
        Some(envs)
    }

    /// Notes that the replies to a step have been read.
    pub fn settle(&mut self, ledger: &Ledger) {
        if !ledger.open() {
            self.dirty = false;
        }
    }

    fn unknown(&mut self) -> Env {
        self.fresh += 1;
        self.fresh | 1 << 63
    }
}

/// True if the step may bring PostgreSQL into a state in which replies cannot be compared.
#[must_use]
pub fn harms(ledger: &Ledger, msgs: &[Msg]) -> bool {
    may_crash(ledger, msgs) || breaks_session(ledger, msgs) || strays(msgs)
}

/// True if CopyDone or CopyFail comes before an Execute. If that Execute runs a COPY, PostgreSQL
/// ignores the Sync after it as part of the data, and waits for more.
fn strays(msgs: &[Msg]) -> bool {
    let mut ended = false;
    msgs.iter().any(|msg| match msg {
        Msg::CopyDone | Msg::CopyFail(_) => {
            ended = true;
            false
        }
        Msg::Execute(..) => ended,
        _ => false,
    })
}

/// True for a query string that has a command after a RESET. The proxy can restore the client's
/// start-up parameters only after the whole string.
#[must_use]
pub fn resets_amid(msg: &Msg) -> bool {
    let Msg::Query(sql) = msg else { return false };
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    let resets = |at: usize| !text[at..].trim_end_matches([';', ' ']).contains(';');
    ["reset ", "discard all", "to default"]
        .iter()
        .filter_map(|word| text.find(word))
        .any(|at| !resets(at))
}

/// The comment at the end of texts whose code resets settings.
pub const RESETS: &[u8] = b"/*reset*/";

fn has_reset(sql: &[u8]) -> bool {
    sql.windows(RESETS.len()).any(|part| part == RESETS)
}

/// True if a text of a step runs code that resets settings.
#[must_use]
pub fn resets_unseen(msgs: &[Msg]) -> bool {
    msgs.iter().any(|msg| match msg {
        Msg::Query(sql) | Msg::Parse(_, sql, _) => has_reset(sql),
        _ => false,
    })
}

/// True if code that resets settings has something beside it in its segment, or may run later. The
/// proxy can restore the client's start-up parameters only behind the segment, and not where it may
/// have a COPY.
#[must_use]
pub fn resets_unseen_amid(msgs: &[Msg]) -> bool {
    msgs.iter().enumerate().any(|(at, msg)| match (msg, &msgs[at + 1..]) {
        (Msg::Query(sql), rest) => has_reset(sql) && !(sql.ends_with(RESETS) && rest.is_empty()),
        (
            Msg::Parse(name, sql, _),
            [Msg::Bind(_), Msg::Execute(..), Msg::Sync]
            | [Msg::Bind(_), Msg::DescribePortal(_), Msg::Execute(..), Msg::Sync],
        ) => has_reset(sql) && !(name.is_empty() && sql.ends_with(RESETS) && at == 0),
        (Msg::Parse(_, sql, _), _) => has_reset(sql),
        _ => false,
    })
}

/// True if the step uses an unnamed portal that a failed Query may have left behind.
///
/// A simple Query that fails while it runs in a transaction block leaves its portal in the aborted
/// transaction, with a pointer to statements that PostgreSQL has already freed. Execute or Describe
/// of the unnamed portal then reads that memory. PostgreSQL 15.18 crashes (signal 11), and all
/// sessions end. So the test uses the unnamed portal only in the segment that binds it, or at the
/// beginning of a step in a live transaction.
#[must_use]
pub fn may_crash(ledger: &Ledger, msgs: &[Msg]) -> bool {
    let mut bound = ledger.status() == b'T' && !ledger.open();
    msgs.iter().any(|msg| match msg {
        Msg::Bind(bind) if bind.portal.is_empty() => {
            bound = true;
            false
        }
        Msg::Execute(portal, _) | Msg::DescribePortal(portal) => portal.is_empty() && !bound,
        Msg::Query(_) | Msg::Sync => {
            bound = false;
            false
        }
        _ => false,
    })
}

/// True if a step ends a segment by a Query or FunctionCall, and the server is PostgreSQL 18 or
/// newer.
///
/// Such a server then refuses the session's next command with XX000 (E38), and the proxy closes
/// that server, so there is nothing to compare.
#[must_use]
pub fn breaks_session(ledger: &Ledger, msgs: &[Msg]) -> bool {
    let version = ledger.params.get("server_version").map_or("", String::as_str);
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    let mut open = ledger.open();
    major >= 18
        && msgs.iter().any(|msg| match msg {
            Msg::Query(_) | Msg::FunctionCall(..) => open,
            Msg::Sync => {
                open = false;
                false
            }
            _ => {
                open = true;
                false
            }
        })
}

struct Walk {
    env: Env,
    touched: bool,
    local: BTreeMap<Vec<u8>, (Vec<u8>, Env)>,
    /// Portals bound in this step, and whether their statements write.
    writes: BTreeMap<Vec<u8>, bool>,
}

impl Walk {
    fn look<'a>(&'a self, ledger: &'a Ledger, name: &[u8]) -> Option<(&'a [u8], Env)> {
        match self.local.get(cut(name)) {
            Some((sql, env)) => Some((sql, *env)),
            None => ledger.stmt(name).map(|prepared| (prepared.sql.as_slice(), prepared.env)),
        }
    }

    /// True if a statement has this name. A statement closed in this step has an empty text.
    fn is_taken(&self, ledger: &Ledger, name: &[u8]) -> bool {
        self.look(ledger, name).is_some_and(|(sql, _)| !sql.is_empty())
    }

    fn allows(&mut self, ledger: &Ledger, msg: &Msg) -> bool {
        let name = match msg {
            // PostgreSQL refuses a Parse of a name that is taken: the statement stays as it is.
            Msg::Parse(name, ..) if !name.is_empty() && self.is_taken(ledger, name) => return true,
            Msg::CloseStatement(name) => {
                self.local.insert(cut(name).to_vec(), (Vec::new(), self.env));
                return true;
            }
            Msg::Parse(name, sql, _) => {
                self.local.insert(cut(name).to_vec(), (sql.clone(), self.env));
                name.clone()
            }
            Msg::Bind(bind) => bind.stmt.clone(),
            // A malformed Bind may name a statement all the same, behind the name of a portal.
            Msg::Raw(b'B', body) => match body.split(|byte| *byte == 0).nth(1) {
                Some(name) => name.to_vec(),
                None => return true,
            },
            // Describe analyses a text again if its plan has been invalidated.
            Msg::DescribeStatement(name) => {
                // The columns of a FETCH are those of the cursor that was open at its Parse.
                let fetches = |sql: &[u8]| sql.to_ascii_lowercase().starts_with(b"fetch");
                if self.look(ledger, name).is_some_and(|(sql, _)| fetches(sql)) {
                    return false;
                }
                name.clone()
            }
            Msg::Query(sql) => return executed_names(sql).all(|name| self.settled(ledger, &name)),
            _ => return true,
        };
        self.settled(ledger, &name)
    }

    /// Whether a statement was parsed under the present settings or means the same under all, and
    /// so does the statement that it executes.
    fn settled(&self, ledger: &Ledger, name: &[u8]) -> bool {
        let settled = |(sql, env): (&[u8], Env)| !is_marked(sql) || env == self.env;
        self.look(ledger, name)
            .is_none_or(|it| settled(it) && self.executed(ledger, it.0).is_none_or(settled))
    }

    /// Returns the statement that a text executes by name.
    fn executed<'a>(&'a self, ledger: &'a Ledger, sql: &[u8]) -> Option<(&'a [u8], Env)> {
        self.look(ledger, &executed_name(sql)?)
    }

    /// True if this text, or a statement that it executes, changes settings.
    fn sets(&self, ledger: &Ledger, sql: &[u8]) -> bool {
        let run = |name: Vec<u8>| self.look(ledger, &name);
        changes_settings(sql)
            || executed_names(sql).filter_map(run).any(|(sql, _)| changes_settings(sql))
    }

    /// True if a row limit may suspend a statement that writes, and its segment goes on. The next
    /// Parse makes the rows written so far visible, and the proxy may add a Parse of its own.
    fn suspends(&mut self, ledger: &Ledger, msg: &Msg, next: Option<&Msg>) -> bool {
        match msg {
            Msg::Bind(bind) => {
                let writes = self.look(ledger, &bind.stmt).is_some_and(|(sql, _)| writes(sql));
                self.writes.insert(bind.portal.clone(), writes);
                false
            }
            Msg::Execute(portal, limit) => {
                let writes = self.writes.get(portal).copied().unwrap_or(true);
                *limit > 0 && writes && !matches!(next, Some(Msg::Sync))
            }
            _ => false,
        }
    }

    fn changes(&self, ledger: &Ledger, msg: &Msg) -> bool {
        match msg {
            Msg::Bind(bind) => {
                self.look(ledger, &bind.stmt).is_some_and(|(sql, _)| self.sets(ledger, sql))
            }
            Msg::Query(sql) => self.touched || self.sets(ledger, sql),
            Msg::Execute(..) | Msg::Sync | Msg::FunctionCall(..) => self.touched,
            _ => false,
        }
    }
}

fn known(ledger: &Ledger) -> Env {
    let mut hasher = DefaultHasher::new();
    for name in SETTINGS {
        ledger.params.get(name).hash(&mut hasher);
    }
    hasher.finish() >> 1
}

/// True if the meaning of this text depends on the settings.
#[must_use]
pub fn is_marked(sql: &[u8]) -> bool {
    sql.windows(MARK.len()).any(|window| window == MARK)
}

/// True if this text changes rows.
fn writes(sql: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    ["insert", "update", "delete"].iter().any(|word| text.contains(word))
}

/// True if a command of this text may change a setting, or undo a change.
#[must_use]
pub fn changes_settings(sql: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    let words =
        ["set", "reset", "discard", "commit", "end", "rollback", "abort", "release", "prepare"];
    text.contains("set_config")
        || sql.ends_with(RESETS)
        || text.split(';').any(|command| {
            bare(command).split_whitespace().next().is_some_and(|word| words.contains(&word))
        })
}

/// Returns a command without the spaces and comments before it.
#[must_use]
pub fn bare(command: &str) -> &str {
    let mut rest = command.trim_start();
    loop {
        if let Some(line) = rest.strip_prefix("--") {
            rest = line.split_once('\n').map_or("", |parts| parts.1).trim_start();
        } else if rest.starts_with("/*") {
            rest = behind_comment(rest).trim_start();
        } else {
            return rest;
        }
    }
}

/// Returns the text behind the comment with which it begins, which may have others within.
fn behind_comment(text: &str) -> &str {
    let (mut depth, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return &text[at..];
        }
    }
    ""
}

/// Returns the names of the statements that the commands of a text execute.
pub fn executed_names(sql: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    sql.split(|&byte| byte == b';').filter_map(executed_name)
}

/// Returns the name in `EXECUTE name` or `EXPLAIN … EXECUTE name`.
fn executed_name(sql: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(sql);
    let at = text.to_ascii_lowercase().find("execute ")?;
    let rest = text[at + "execute ".len()..].trim_start();
    let name = match rest.strip_prefix('"') {
        Some(quoted) => {
            let masked = quoted.replace("\"\"", "\0");
            masked.split('"').next()?.replace('\0', "\"")
        }
        None => rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?.to_ascii_lowercase(),
    };
    Some(name.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Guard, changes_settings, executed_name, executed_names};
    use crate::ledger::Ledger;
    use crate::msg::{Bind, Msg};
    use crate::reply::Frame;

    #[test]
    fn commands_that_touch_settings_are_known() {
        for sql in ["SET a=1", "select 1; reset all", "/* x */ set b=1", "end", "rollback to a"] {
            assert!(changes_settings(sql.as_bytes()), "{sql}");
        }
        for sql in ["/* /* x */ */ set b=1", "-- x\n /**/ reset b"] {
            assert!(changes_settings(sql.as_bytes()), "{sql}");
        }
        for sql in ["update t set v=1", "", ";", "select 'set'"] {
            assert!(!changes_settings(sql.as_bytes()), "{sql}");
        }
        assert_eq!(executed_name(b"explain (costs off) execute s1(1)"), Some(b"s1".to_vec()));
        assert_eq!(executed_name(b"EXECUTE \"a \"\"B\""), Some(b"a \"B".to_vec()));
        assert_eq!(executed_name(b"select 1"), None);
        let several: Vec<_> = executed_names(b"execute a; select 1; execute \"B\" (2)").collect();
        assert_eq!(several, [b"a", b"B"]);
    }

    #[test]
    fn the_unnamed_portal_of_a_failed_query_is_left_alone() {
        let execute = Msg::Execute(Vec::new(), 0);
        let bind = Msg::Bind(Bind::default());
        let query = Msg::Query(b"select 1 / 0".to_vec());
        let ledger = Ledger::default();
        assert!(super::may_crash(&ledger, std::slice::from_ref(&execute)));
        assert!(!super::may_crash(&ledger, &[bind.clone(), execute.clone()]));
        assert!(super::may_crash(&ledger, &[bind.clone(), query, execute.clone()]));
        assert!(super::may_crash(&ledger, &[bind, Msg::Sync, execute]));
    }

    #[test]
    fn a_literal_is_not_bound_under_other_settings() {
        let mut ledger = Ledger::default();
        let mut guard = Guard::default();
        let parse = Msg::Parse(b"s".to_vec(), b"select 1 /*env*/".to_vec(), Vec::new());
        let bind = Msg::Bind(Bind::new(b"", b"s", Vec::new()));
        let set = Msg::Query(b"set datestyle='sql'".to_vec());
        assert!(guard.check(&ledger, &[parse.clone(), bind.clone()]).is_some());
        assert!(guard.check(&ledger, &[parse.clone(), set.clone(), bind.clone()]).is_none());
        assert!(guard.check(&ledger, &[set, parse.clone(), bind.clone()]).is_some());
        guard.settle(&ledger);
        let envs = guard.check(&ledger, std::slice::from_ref(&parse)).unwrap();
        ledger.sent(&parse, envs[0]);
        ledger.sent(&Msg::Sync, 0);
        ledger.received(&Frame::new(b'1', b""));
        ledger.received(&Frame::new(b'Z', b"I"));
        guard.settle(&ledger);
        assert!(guard.check(&ledger, std::slice::from_ref(&bind)).is_some());
        ledger.received(&Frame::new(b'S', b"DateStyle\0SQL\0"));
        assert!(guard.check(&ledger, &[bind]).is_none());
    }
}
