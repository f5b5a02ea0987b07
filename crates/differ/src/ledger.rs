//! The ledger of a direct session: replies that are outstanding, and the session's state.
//!
//! The ledger gets every message that a client sends *directly* to PostgreSQL and every reply, and
//! says when all replies have arrived that a step may wait for. The rules are those of PostgreSQL's
//! main loop. An error in an extended message skips everything up to the next Sync, an error in a
//! Query does not. While a COPY reads, PostgreSQL ignores Flush and Sync, and every other message
//! but the data is fatal.

use crate::msg::Msg;
use crate::reply::Frame;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The environment in which a statement was parsed: a hash of the reported settings, or a number
/// that is used only once if the settings are not known for certain.
pub type Env = u64;

/// Returned by [`Ledger::answering`] for a Query that runs a prepared statement with SQL EXECUTE.
pub const SQL_EXECUTE: u8 = b'X';
/// Returned by [`Ledger::answering`] if that EXECUTE is one of several commands.
pub const SQL_EXECUTES: u8 = b'x';

/// Returns as much of a statement's name as PostgreSQL looks at.
#[must_use]
pub fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(63)]
}

fn answers(sql: &[u8]) -> u8 {
    let word = b"execute ";
    let executes = sql.windows(word.len()).any(|at| at.eq_ignore_ascii_case(word));
    match executes {
        true if sql.contains(&b';') => SQL_EXECUTES,
        true => SQL_EXECUTE,
        false => b'Q',
    }
}

/// A prepared statement that the server has confirmed.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its text.
    pub sql: Vec<u8>,
    /// The environment of its Parse.
    pub env: Env,
}

#[derive(Clone, Debug)]
enum Owed {
    Parse(Vec<u8>, Prepared),
    Bind,
    Describe,
    Execute,
    Close(Option<Vec<u8>>),
    Flush,
    Sync,
    Query { answers: u8 },
    Function,
    Copy,
    CopyEnd,
    Other,
}

impl Owed {
    fn of(msg: &Msg, env: Env) -> Self {
        match msg {
            Msg::Parse(name, sql, _) => {
                Self::Parse(cut(name).to_vec(), Prepared { sql: sql.clone(), env })
            }
            Msg::Bind(_) | Msg::Raw(b'B', _) => Self::Bind,
            Msg::DescribeStatement(_) | Msg::DescribePortal(_) | Msg::Raw(b'D', _) => {
                Self::Describe
            }
            Msg::Execute(..) => Self::Execute,
            Msg::CloseStatement(name) => Self::Close(Some(cut(name).to_vec())),
            Msg::ClosePortal(_) => Self::Close(None),
            Msg::Flush => Self::Flush,
            Msg::Sync => Self::Sync,
            Msg::Query(sql) => Self::Query { answers: answers(sql) },
            Msg::FunctionCall(..) => Self::Function,
            Msg::CopyData(_) => Self::Copy,
            Msg::CopyDone | Msg::CopyFail(_) => Self::CopyEnd,
            Msg::Raw(b'S', _) => Self::Sync,
            Msg::Raw(..) | Msg::Leave { .. } => Self::Other,
        }
    }

    fn makes_server_answer(&self) -> bool {
        matches!(self, Self::Flush | Self::Sync | Self::Query { .. } | Self::Function)
    }
}

/// Whether a session gives further replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Open,
    Dying,
}

/// The state of one direct session.
#[derive(Clone, Debug)]
pub struct Ledger {
    owed: VecDeque<Owed>,
    skipping: bool,
    copying: bool,
    life: Life,
    status: u8,
    open: bool,
    /// Statements that exist, by name as PostgreSQL cuts it; the unnamed one is the empty name.
    pub stmts: BTreeMap<Vec<u8>, Prepared>,
    /// The last reported value of each setting.
    pub params: Rc<BTreeMap<String, String>>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            owed: VecDeque::new(),
            skipping: false,
            copying: false,
            life: Life::Open,
            status: b'I',
            open: false,
            stmts: BTreeMap::new(),
            params: Rc::default(),
        }
    }
}

impl Ledger {
    /// Notes a message that is about to be sent; `env` is used if it is a Parse.
    pub fn sent(&mut self, msg: &Msg, env: Env) {
        self.open = true;
        let owed = Owed::of(msg, env);
        if self.copying {
            match owed {
                Owed::Copy | Owed::Sync | Owed::Flush => return,
                Owed::CopyEnd => {
                    self.copying = false;
                    return;
                }
                _ => {}
            }
        }
        if self.skipping {
            if !matches!(owed, Owed::Sync) {
                return;
            }
            self.skipping = false;
        }
        self.owed.push_back(owed);
        self.settle();
    }

    /// Notes a reply.
    pub fn received(&mut self, frame: &Frame) {
        match frame.tag {
            b'S' => {
                if let Some((name, value)) = frame.parameter() {
                    Rc::make_mut(&mut self.params).insert(name, value);
                }
            }
            b'E' => self.failed(frame),
            b'G' => self.begin_copy(),
            b'C' => self.completed(frame),
            b'Z' => {
                self.status = frame.body.first().copied().unwrap_or(b'?');
                if let Some(Owed::Query { .. }) = self.owed.pop_front() {
                    self.stmts.remove(&b""[..]);
                }
                self.open = !self.owed.is_empty();
            }
            tag => self.answered(tag),
        }
        self.settle();
    }

    /// Returns the statement that a client means by this name.
    #[must_use]
    pub fn stmt(&self, name: &[u8]) -> Option<&Prepared> {
        self.stmts.get(cut(name))
    }

    fn answered(&mut self, tag: u8) {
        let done = matches!(
            (tag, self.owed.front()),
            (b'1', Some(Owed::Parse(..)))
                | (b'2', Some(Owed::Bind))
                | (b'3', Some(Owed::Close(_)))
                | (b'T' | b'n', Some(Owed::Describe))
                | (b's' | b'I', Some(Owed::Execute))
        );
        if !done {
            return;
        }
        match self.owed.pop_front() {
            Some(Owed::Parse(name, prepared)) => {
                self.stmts.insert(name, prepared);
            }
            Some(Owed::Close(Some(name))) => {
                self.stmts.remove(&name);
            }
            _ => {}
        }
    }

    fn completed(&mut self, frame: &Frame) {
        if matches!(frame.body.as_slice(), b"DEALLOCATE ALL\0" | b"DISCARD ALL\0") {
            self.stmts.clear();
        }
        if matches!(self.owed.front(), Some(Owed::Execute)) {
            self.owed.pop_front();
        }
    }

    fn failed(&mut self, frame: &Frame) {
        if frame.is_fatal() {
            self.life = Life::Dying;
            return;
        }
        self.copying = false;
        match self.owed.front() {
            Some(Owed::Query { .. } | Owed::Function | Owed::Sync) => return,
            Some(Owed::Parse(name, _)) if name.is_empty() => {
                self.stmts.remove(&b""[..]);
            }
            _ => {}
        }
        while !matches!(self.owed.front(), Some(Owed::Sync) | None) {
            self.owed.pop_front();
        }
        self.skipping = self.owed.is_empty();
    }

    /// Notes that a COPY has begun to read, and drops the messages sent ahead that belong to it.
    fn begin_copy(&mut self) {
        self.copying = true;
        while let Some(next) = self.owed.get(1) {
            match next {
                Owed::Copy | Owed::Sync | Owed::Flush => {}
                Owed::CopyEnd => self.copying = false,
                _ => return,
            }
            self.owed.remove(1);
            if !self.copying {
                return;
            }
        }
    }

    /// Drops messages at the head of the queue that PostgreSQL never answers.
    fn settle(&mut self) {
        while matches!(self.owed.front(), Some(Owed::Flush | Owed::Copy | Owed::CopyEnd)) {
            self.owed.pop_front();
        }
    }

    /// True while PostgreSQL will send a reply without a further message.
    #[must_use]
    pub fn awaits(&self) -> bool {
        let waits = self.copying && self.owed.len() == 1;
        self.life == Life::Open && !waits && self.owed.iter().any(Owed::makes_server_answer)
    }

    /// True if the server has said that it ends the connection.
    #[must_use]
    pub fn dying(&self) -> bool {
        self.life == Life::Dying
    }

    /// Returns the type of the message that the next reply answers, or [`SQL_EXECUTE`] or
    /// [`SQL_EXECUTES`]; 0 if no reply is outstanding.
    #[must_use]
    pub fn answering(&self) -> u8 {
        match self.owed.front() {
            None => 0,
            Some(Owed::Parse(..)) => b'P',
            Some(Owed::Bind) => b'B',
            Some(Owed::Describe) => b'D',
            Some(Owed::Execute) => b'E',
            Some(Owed::Close(_)) => b'C',
            Some(Owed::Query { answers }) => *answers,
            Some(Owed::Function) => b'F',
            Some(_) => b'S',
        }
    }

    /// True if no reply is outstanding and no COPY reads.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.owed.is_empty() && !self.copying
    }

    /// True while a proxy in transaction mode may not give this client's server to another.
    #[must_use]
    pub fn holds_server(&self) -> bool {
        self.status != b'I' || self.open || self.copying || self.skipping
    }

    /// True if the client has sent messages since the last ReadyForQuery.
    #[must_use]
    pub fn open(&self) -> bool {
        self.open
    }

    /// True while a COPY reads.
    #[must_use]
    pub fn copying(&self) -> bool {
        self.copying
    }

    /// Returns the status of the last ReadyForQuery.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.status
    }
}

#[cfg(test)]
mod tests {
    use super::Ledger;
    use crate::msg::{Bind, Msg};
    use crate::reply::Frame;

    fn feed(ledger: &mut Ledger, msgs: &[Msg], replies: &[(u8, &[u8])]) {
        msgs.iter().for_each(|msg| ledger.sent(msg, 0));
        for (tag, body) in replies {
            assert!(ledger.awaits(), "nothing awaited before {:?}", char::from(*tag));
            ledger.received(&Frame::new(*tag, body));
        }
    }

    fn parse(name: &[u8]) -> Msg {
        Msg::Parse(name.to_vec(), b"select 1".to_vec(), Vec::new())
    }

    const ERROR: (u8, &[u8]) = (b'E', b"VERROR\0C42601\0\0");

    #[test]
    fn an_extended_error_skips_to_sync() {
        let mut ledger = Ledger::default();
        let msgs = [
            parse(b"a"),
            parse(b"b"),
            Msg::Query(b"x".to_vec()),
            Msg::Sync,
            parse(b"c"),
            Msg::Sync,
        ];
        feed(&mut ledger, &msgs, &[(b'1', b""), ERROR, (b'Z', b"I"), (b'1', b""), (b'Z', b"I")]);
        assert!(!ledger.awaits() && ledger.settled() && !ledger.holds_server());
        assert_eq!(ledger.stmts.len(), 2);
    }

    #[test]
    fn a_flush_after_an_error_awaits_nothing() {
        let mut ledger = Ledger::default();
        feed(&mut ledger, &[parse(b"a"), Msg::Flush], &[ERROR]);
        assert!(!ledger.awaits() && ledger.holds_server());
        feed(&mut ledger, &[Msg::Query(b"x".to_vec())], &[]);
        assert!(!ledger.awaits());
        feed(&mut ledger, &[Msg::Sync], &[(b'Z', b"I")]);
        assert!(!ledger.holds_server());
    }

    fn copy(early: bool) -> Vec<Msg> {
        let mut msgs = vec![Msg::Bind(Bind::default()), Msg::Execute(Vec::new(), 0)];
        if early {
            msgs.push(Msg::Sync);
        }
        msgs.extend([Msg::CopyData(b"1".to_vec()), Msg::CopyDone, Msg::Sync]);
        msgs
    }

    #[test]
    fn copy_swallows_an_early_sync_unless_it_never_began() {
        let mut ledger = Ledger::default();
        let began = [(b'2', &b""[..]), (b'G', b""), (b'C', b"COPY 1\0"), (b'Z', b"I")];
        feed(&mut ledger, &copy(true), &began);
        assert!(!ledger.awaits());
        feed(&mut ledger, &copy(true), &[(b'2', b""), ERROR, (b'Z', b"I"), (b'Z', b"I")]);
        assert!(!ledger.awaits());
        feed(&mut ledger, &copy(false), &[(b'2', b""), ERROR, (b'Z', b"I")]);
        assert!(!ledger.awaits());
    }

    #[test]
    fn names_are_as_long_as_postgresql_looks_at() {
        let mut ledger = Ledger::default();
        let long = |tail: &str| format!("{}{tail}", "n".repeat(63)).into_bytes();
        feed(&mut ledger, &[parse(&long("a")), Msg::Sync], &[(b'1', b""), (b'Z', b"I")]);
        assert!(ledger.stmt(&long("b")).is_some() && ledger.stmt(&long("")[1..]).is_none());
        let close = Msg::CloseStatement(long("c"));
        feed(&mut ledger, &[close, Msg::Sync], &[(b'3', b""), (b'Z', b"I")]);
        assert!(ledger.stmts.is_empty());
    }

    #[test]
    fn a_query_drops_the_unnamed_statement() {
        let mut ledger = Ledger::default();
        feed(&mut ledger, &[parse(b""), Msg::Sync], &[(b'1', b""), (b'Z', b"I")]);
        assert_eq!(ledger.stmts.len(), 1);
        feed(&mut ledger, &[Msg::Query(Vec::new())], &[(b'I', b""), (b'Z', b"I")]);
        assert!(ledger.stmts.is_empty());
    }
}
