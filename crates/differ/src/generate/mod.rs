//! Random steps: the messages that one client sends before the test reads the replies.
//!
//! A step is one or more segments. Sync or a Query ends most of them, Flush or nothing the others.
//! The choice depends only on the seed and on the state of the client's *direct* session, so the
//! same seed gives the same episode as long as PostgreSQL's replies are the same.

pub(crate) mod texts;
pub(crate) mod calls;
pub(crate) mod sessions;
mod copy;
mod startup;
mod long;
mod simple;
mod extended;
mod streams;
mod step;

use crate::features::Features;
use crate::guard::bare;
use crate::ledger::Ledger;
use crate::msg::Msg;
use crate::rng::Rng;
use std::collections::BTreeMap;

/// Limits on the messages of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All messages but those that pin the client to its server.
    Free,
    /// All messages.
    Pinning,
    /// Only messages after which the session is as idle as before.
    Closed,
}

/// The generator of one episode.
#[derive(Debug)]
pub struct Generator {
    rng: Rng,
    features: Features,
    /// The parameter kinds of all generated texts.
    kinds: BTreeMap<Vec<u8>, &'static str>,
}

/// An unfinished step.
struct Draft<'a> {
    client: usize,
    ledger: &'a Ledger,
    mode: Mode,
    msgs: Vec<Msg>,
    /// Names parsed in this step, with their texts.
    parsed: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether a COPY may wait for data. Then no other message may follow in this step.
    waits_for_data: bool,
}

const NAMES: [&str; 9] = ["s0", "s1", "s2", "s3", "s4", "S5", "a b", "\"q\"", "s6"];

/// As much of a name as PostgreSQL looks at.
const LONG_NAME: &str = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

impl Generator {
    /// Creates a generator that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64, features: Features) -> Self {
        Self { rng: Rng::new(seed), features, kinds: BTreeMap::new() }
    }

    /// Returns the generator's source of chance, for decisions between steps.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Returns a text for Parse or Query and the kinds of its parameters.
    fn text(&mut self, client: usize) -> (Vec<u8>, &'static str) {
        let list = match self.rng.weighted(&[60, 30, 10]) {
            0 => texts::READS,
            1 => texts::WRITES,
            _ => texts::ODD,
        };
        let (mut text, mut kinds) = *self.rng.pick(list);
        if self.features.has("domains") && self.rng.chance(6) {
            (text, kinds) = *self.rng.pick(texts::DOMAINS);
        }
        if self.features.has("frozen") && self.rng.chance(15) {
            (text, kinds) = (self.rng.pick::<&str>(sessions::ANALYSED), "");
        }
        if self.features.has("stale") && self.rng.chance(25) {
            (text, kinds) = ("select * from {s}.t3 order by id", "");
        }
        let mut sql = texts::fill(text, client, &mut self.rng);
        if self.rng.chance(8) {
            sql.extend_from_slice(format!(" -- {}", self.rng.below(1000)).as_bytes());
        }
        self.kinds.insert(sql.clone(), kinds);
        (sql, kinds)
    }

    /// Returns DDL on a client's table for a connection straight to the server.
    pub fn outside(&mut self, client: usize) -> Vec<u8> {
        let text = *self.rng.pick(texts::OUTSIDE);
        texts::fill(text, client, &mut self.rng)
    }

    /// Returns a text without parameters that is not transaction control.
    fn plain_text(&mut self, client: usize) -> Vec<u8> {
        loop {
            let (sql, kinds) = self.text(client);
            if kinds.is_empty() || self.rng.chance(2) {
                return sql;
            }
        }
    }

    /// Returns SET, DDL or the like: a command outside of READS and WRITES, if the features allow
    /// one.
    fn command(&mut self, draft: &Draft<'_>) -> Option<Vec<u8>> {
        let on = |name: &str, weight: usize| usize::from(self.features.has(name)) * weight;
        let control = if draft.mode == Mode::Closed { 0 } else { 40 };
        let pins = if draft.mode == Mode::Pinning { on("pins", 12) } else { 0 };
        let weights = [
            control,
            on("set-reported", 20),
            on("set-unreported", 14),
            on("ddl", 7),
            pins,
            on("discard", 3),
            on("stale", 14),
            on("vacuum", 1),
            on("hidden", 4),
            on("calls", 8),
            on("functions", 5),
            self.sessions_weight(draft.mode),
        ];
        let hidden = ["do $$ begin execute 'deallocate all'; end $$", HIDDEN_SET];
        let text = match self.rng.weighted(&weights) {
            0 if control == 0 => return None,
            0 => self.control(draft.ledger.status()),
            1 => *self.rng.pick(texts::REPORTED),
            2 => *self.rng.pick(texts::UNREPORTED),
            3 => *self.rng.pick(texts::DDL),
            4 => *self.rng.pick(texts::PINS),
            5 => *self.rng.pick(&["discard all", "discard all", "discard plans", "discard temp"]),
            6 => *self.rng.pick(texts::STALE),
            7 => "vacuum {s}.t1",
            8 => *self.rng.pick(&hidden),
            10 => *self.rng.pick(texts::FUNCTIONS),
            11 => return Some(self.session_text(draft)),
            _ if pins > 0 && self.rng.chance(40) => *self.rng.pick(calls::LEAVING),
            _ if self.rng.chance(20) => *self.rng.pick(calls::RESETTING),
            _ => *self.rng.pick(calls::CALLS),
        };
        Some(texts::fill(text, draft.client, &mut self.rng))
    }

    /// Returns a command of transaction control that mostly suits the session's state.
    fn control(&mut self, status: u8) -> &'static str {
        let weights = match status {
            b'I' => [85, 8, 7],
            b'T' => [8, 25, 67],
            _ => [5, 45, 50],
        };
        let list = [texts::BEGIN, texts::END, texts::SAVEPOINT][self.rng.weighted(&weights)];
        self.rng.pick::<&str>(list)
    }

    /// Returns a statement name, most often one of a client's own.
    fn name(&mut self) -> Vec<u8> {
        if self.features.has("longnames") && self.rng.chance(10) {
            let tail = self.rng.pick(&["a", "b", ""]);
            return format!("{LONG_NAME}{tail}").into_bytes();
        }
        self.rng.pick(&NAMES).as_bytes().to_vec()
    }

    /// Returns a name to prepare a statement under, mostly one that is free.
    fn new_name(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let name = self.name();
        let taken = draft.ledger.stmt(&name).is_some() || draft.parsed.contains_key(&name);
        if taken && self.rng.chance(75) { self.name() } else { name }
    }

    /// Returns the name and text of a statement that should exist.
    fn known(&mut self, draft: &Draft<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        let before = draft.ledger.stmts.iter().map(|(name, stmt)| (name, &stmt.sql));
        let all: Vec<_> = before
            .chain(&draft.parsed)
            .filter(|(_, sql)| !sql.starts_with(b"copy "))
            .filter(|(_, sql)| draft.mode != Mode::Closed || !opens_transaction(sql))
            .collect();
        (!all.is_empty()).then(|| {
            let (name, sql) = *self.rng.pick(&all);
            let tail = if name.starts_with(LONG_NAME.as_bytes()) && self.rng.chance(50) {
                "b"
            } else {
                ""
            };
            ([name, tail.as_bytes()].concat(), sql.clone())
        })
    }
}

const HIDDEN_SET: &str = "select set_config('work_mem', '{n}3MB', false)";

/// True if a command of this text may begin a transaction block.
#[must_use]
pub fn opens_transaction(sql: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    ["begin", "start", "chain"].iter().any(|word| text.contains(word))
}

/// True if this message may tie a client to its server.
#[must_use]
pub fn pins(msg: &Msg) -> bool {
    match msg {
        Msg::Parse(_, sql, _) => leaves(sql) || names(sql, &["execute "]),
        Msg::Query(sql) => {
            let several = sql.strip_suffix(b";").unwrap_or(sql).contains(&b';');
            // The proxy passes on what PostgreSQL truncates, and so needs the statement there.
            let long = String::from_utf8_lossy(sql).contains(LONG_NAME);
            leaves(sql) || (several || long) && names(sql, &["execute ", "deallocate "])
        }
        _ => false,
    }
}

/// True if a command of this text names a prepared statement behind one of these words.
fn names(sql: &[u8], words: &[&str]) -> bool {
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    text.split(';').any(|command| {
        // No client has a statement of that name.
        let command = command.trim_end_matches("execute nosuch");
        let command = bare(command.trim_end_matches("deallocate nosuch"));
        let explained = ["explain", "create table"].iter().any(|word| command.starts_with(word));
        words.iter().any(|word| command.starts_with(word))
            || explained && command.contains("execute ")
    })
}

/// Words with which a command begins that leaves such state. A proxy may keep its server for a
/// client with a role.
const WORDS: [&str; 8] = [
    "prepare ",
    "listen ",
    "set role",
    "set local role",
    "set session auth",
    "set local session auth",
    "reset role",
    "reset session auth",
];

/// True if a command of this text leaves session state that cannot move to another server.
fn leaves(sql: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
    let ties = |command: &str| {
        let command = bare(command);
        WORDS.iter().any(|word| command.starts_with(word))
            || [
                "temp table",
                "advisory_lock",
                "with hold",
                "leave_lock",
                "leave_temp",
                "leave_channel",
                "pg_temp",
                "set_config('role'",
            ]
            .iter()
            .any(|w| command.contains(w))
    };
    text.split(';').any(ties)
}
