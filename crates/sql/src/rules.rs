//! The tables of rules: how the words of a statement may change a session, and why a pooler cares.
//!
//! What: [`RULES`] maps the first words of a statement to its kind and its possible effects.
//! [`MENTIONS`] maps words anywhere in a statement to effects. [`FORMS`] and [`PARAMETERS`] say
//! which parameter a `SET` means and what setting it does.
//!
//! Why here: every judgement is one row with its reason; [`crate::scan()`] and [`crate::set`] just
//! walk the rows.
//!
//! What always holds (checked at compile time): the rows of [`RULES`] are grouped by the first
//! letter of their heads.
//!
//! What it does not do: know the grammar. A row looks at just as much of a statement as
//! distinguishes it from others. For a statement that the server refuses, a row may describe what
//! it would have done.

use crate::traits::Traits;

/// One step through the tokens of a statement, without blanks and comments.
pub(crate) enum Step {
    /// One of these key words.
    Word(&'static [&'static str]),
    /// One of these key words, or none.
    Opt(&'static [&'static str]),
    /// Any number of these key words.
    Skip(&'static [&'static str]),
    /// `( … )`, or nothing.
    OptParens,
    /// Moves to just after the first place, outside parentheses, where these stand side by side.
    Find(&'static [&'static [&'static str]]),
    /// A name with this prefix and a dot after it, at any place.
    Schema(&'static str),
    /// `*`
    Star,
    /// A string constant.
    Text,
    /// A name, which the walk returns.
    Name,
    /// The end of the statement.
    End,
    /// The end of the statement, or parentheses, or WITH: the tokens that may follow the name in
    /// EXECUTE.
    Arguments,
}

/// The kind of a statement by a rule, besides its traits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Makes {
    /// No particular kind. This variant and those down to `Prepare` are the kinds of these names in
    /// `crate::Kind`.
    Other,
    Select,
    Insert,
    Update,
    Delete,
    With,
    Begin,
    TransactionEnd,
    Chain,
    DeallocateAll,
    Deallocate,
    DiscardAll,
    Execute,
    ExplainExecute,
    CreateAsExecute,
    Prepare,
    /// The parameter decides the traits and the kind. For this variant and the following, the row
    /// does not decide alone.
    Set,
    Reset,
    /// Continues with the statement after EXPLAIN and its options.
    Explained,
    /// A routine, whose body may hold statements of its own.
    Routine,
}

/// A row, for statements that begin with `head` and continue with `steps`. The first row that fits
/// decides. If its `go_on` is set, the rows after it add to it.
pub(crate) struct Rule {
    pub(crate) head: &'static str,
    pub(crate) steps: &'static [Step],
    pub(crate) makes: Makes,
    pub(crate) traits: Traits,
    pub(crate) go_on: bool,
    pub(crate) why: &'static str,
}

const fn rule(
    head: &'static str,
    steps: &'static [Step],
    makes: Makes,
    traits: Traits,
    why: &'static str,
) -> Rule {
    Rule { head, steps, makes, traits, go_on: false, why }
}

/// Creates a row to which the rows after it add.
const fn also(
    head: &'static str,
    steps: &'static [Step],
    makes: Makes,
    traits: Traits,
    why: &'static str,
) -> Rule {
    Rule { head, steps, makes, traits, go_on: true, why }
}

const TEMP_WORDS: &[&str] = &["temp", "temporary"];
const BEFORE_TEMP: &[&str] = &["or", "replace", "global", "local"];
const BEFORE_TABLE: &[&str] = &["global", "local", "temp", "temporary", "unlogged"];
const BLOCK: &[&str] = &["work", "transaction"];
const DATABASE: &[&str] = &["database"];
const ROLE_SET: &[Step] = &[Word(&["role", "user"]), Find(&[&["set", "reset"]])];

/// Objects that no result depends on for its columns. Creating, changing or dropping one leaves
/// every prepared statement valid.
pub(crate) const SHAPELESS: &[&str] = &[
    "database",
    "default",
    "group",
    "index",
    "publication",
    "role",
    "server",
    "statistics",
    "subscription",
    "system",
    "tablespace",
    "user",
];

use Makes as M;
use Step::{Arguments, End, Find, Name, Opt, OptParens, Schema, Skip, Star, Text, Word};
use Traits as T;

const AND_CHAIN: &[Step] = &[Opt(BLOCK), Word(&["and"]), Word(&["chain"])];
const ALL: &[Step] = &[Word(&["all"]), End];
const STDIN_OUT: &[Step] = &[Find(&[&["from", "to"], &["stdin", "stdout"]])];
const ROUTINE: &[Step] = &[Opt(&["or"]), Opt(&["replace"]), Word(&["function", "procedure"])];
const AS_EXECUTE: &[Step] =
    &[Skip(BEFORE_TABLE), Word(&["table"]), Find(&[&["as"]]), Word(&["execute"]), Name, Arguments];
const TEMP_DROPPED: &[Step] = &[
    Skip(BEFORE_TEMP),
    Word(TEMP_WORDS),
    Word(&["table"]),
    Find(&[&["on"], &["commit"], &["drop"]]),
];
const TEMPORARY: Traits = T::TEMP.union(T::DDL);
const ALL_PREPARED: &[Step] = &[Opt(&["prepare"]), Word(&["all"]), End];
const ONE_PREPARED: &[Step] = &[Opt(&["prepare"]), Name, End];
const WITH_HOLD: &[Step] = &[Find(&[&["cursor"], &["with"], &["hold"]])];
const ALL_GONE: Traits = T::DISCARD_ALL.union(T::RESET).union(T::ALONE).union(T::READING);
const APART: &[Step] = &[Word(&["database", "tablespace", "subscription"])];
const CONCURRENTLY: &[Step] = &[Opt(&["unique"]), Word(&["index"]), Word(&["concurrently"])];
const EXPLAINS: &[&str] = &["analyze", "analyse", "verbose"];
/// Statements after EXPLAIN that have rules of their own.
pub(crate) const EXPLAINED: &[&str] = &["create", "declare"];
const EXPLAIN_EXECUTE: &[Step] = &[Skip(EXPLAINS), OptParens, Word(&["execute"]), Name, Arguments];

// One row per line, however long, because it is a table.
#[rustfmt::skip]
pub(crate) static RULES: &[Rule] = &[
    rule("abort", AND_CHAIN, M::Chain, T::BEGINS, "ends a block and begins the next"),
    rule("abort", &[], M::TransactionEnd, T::NONE, "ends the block"),
    also("alter", &[Word(&["system"])], M::Other, T::ALONE, "not in a transaction block"),
    also("alter", &[Word(DATABASE), Name, Word(&["rename", "set"]), Word(&["to", "tablespace"])], M::Other, T::DRAINS, "nobody may be connected to it"),
    also("alter", ROLE_SET, M::Other, T::DEFAULTS, "sessions of the role begin with other settings"),
    also("alter", &[Word(DATABASE), Name, Word(&["set", "reset"])], M::Other, T::DEFAULTS, "sessions of the database begin with other settings"),
    rule("alter", &[Word(SHAPELESS)], M::Other, T::NONE, "no result has its shape from it"),
    rule("alter", &[], M::Other, T::DDL, "a prepared statement may return other columns now"),
    rule("begin", &[], M::Begin, T::BEGINS, "begins a block"),
    rule("call", &[], M::Other, T::PROCEDURAL, "the procedure's body is not in the text"),
    rule("close", ALL, M::Other, T::CLOSE_ALL, "held cursors are gone"),
    rule("cluster", &[], M::Other, T::ALONE, "may commit within"),
    rule("commit", &[Word(&["prepared"])], M::Other, T::ALONE, "ends a transaction of another time"),
    rule("commit", AND_CHAIN, M::Chain, T::BEGINS, "ends a block and begins the next"),
    rule("commit", &[], M::TransactionEnd, T::NONE, "ends the block"),
    rule("copy", STDIN_OUT, M::Other, T::COPY, "the data goes over the connection"),
    also("create", ROUTINE, M::Routine, T::NONE, "a body of BEGIN ATOMIC holds semicolons"),
    also("create", APART, M::Other, T::ALONE, "not in a transaction block"),
    also("create", CONCURRENTLY, M::Other, T::ALONE, "commits within"),
    also("create", AS_EXECUTE, M::CreateAsExecute, T::EXECUTE, "runs a prepared statement by its name"),
    rule("create", TEMP_DROPPED, M::Other, T::DDL, "hides others, and is gone with the transaction"),
    rule("create", &[Skip(BEFORE_TEMP), Word(TEMP_WORDS)], M::Other, TEMPORARY, "lives as long as the session, and hides others"),
    also("create", &[Schema("pg_temp")], M::Other, T::TEMP, "in the session's own schema"),
    also("create", &[Word(DATABASE)], M::Other, T::DRAINS, "nobody may be connected to its template"),
    rule("create", &[Opt(&["unique"]), Word(SHAPELESS)], M::Other, T::NONE, "no result has its shape from it"),
    rule("create", &[], M::Other, T::DDL, "may come before, or replace, what a prepared statement means"),
    rule("deallocate", ALL_PREPARED, M::DeallocateAll, T::DEALLOCATE_ALL, "every prepared statement is gone"),
    rule("deallocate", ONE_PREPARED, M::Deallocate, T::DEALLOCATE, "the name is one of the client's"),
    rule("deallocate", &[Name, End], M::Deallocate, T::DEALLOCATE, "a statement may be named prepare"),
    rule("declare", WITH_HOLD, M::Other, T::HOLD, "the cursor stays open after the transaction"),
    rule("delete", &[], M::Delete, T::NONE, "rows only"),
    rule("discard", ALL, M::DiscardAll, ALL_GONE, "the session is as new"),
    rule("discard", &[Word(TEMP_WORDS), End], M::Other, T::DISCARD_TEMP, "temporary tables are gone"),
    rule("do", &[], M::Other, T::PROCEDURAL, "the body is code"),
    also("drop", APART, M::Other, T::ALONE, "not in a transaction block"),
    also("drop", CONCURRENTLY, M::Other, T::ALONE, "commits within"),
    also("drop", &[Word(DATABASE)], M::Other, T::DRAINS, "nobody may be connected to it"),
    rule("drop", &[Word(SHAPELESS)], M::Other, T::NONE, "no result has its shape from it"),
    rule("drop", &[], M::Other, T::DDL, "a prepared statement may mean another object now, or none"),
    rule("end", AND_CHAIN, M::Chain, T::BEGINS, "ends a block and begins the next"),
    rule("end", &[], M::TransactionEnd, T::NONE, "ends the block"),
    rule("execute", &[Name, Arguments], M::Execute, T::EXECUTE, "runs a prepared statement by its name"),
    rule("explain", EXPLAIN_EXECUTE, M::ExplainExecute, T::EXECUTE, "names a prepared statement"),
    rule("explain", &[Skip(EXPLAINS), OptParens], M::Explained, T::NONE, "with ANALYZE, runs it"),
    rule("import", &[Word(&["foreign"])], M::Other, T::DDL, "makes foreign tables"),
    rule("insert", &[], M::Insert, T::NONE, "rows only"),
    rule("listen", &[], M::Other, T::LISTEN, "notifications come to the session that listens"),
    rule("load", &[], M::Other, T::LOAD, "a library stays loaded"),
    rule("prepare", &[Word(&["transaction"]), Text], M::TransactionEnd, T::NONE, "ends the block, leaves its transaction"),
    rule("prepare", &[Name], M::Prepare, T::PREPARE, "the name may be one of the client's, and is known to this session only"),
    rule("prepare", &[], M::Other, T::PREPARE, "the name is known to this session only"),
    rule("reindex", &[], M::Other, T::ALONE, "may commit within"),
    rule("reset", &[], M::Reset, T::RESET, "see the parameters"),
    rule("rollback", &[Word(&["prepared"])], M::Other, T::ALONE, "ends a transaction of another time"),
    rule("rollback", &[Opt(BLOCK), Word(&["to"])], M::Other, T::NONE, "goes back within the block"),
    rule("rollback", AND_CHAIN, M::Chain, T::BEGINS, "ends a block and begins the next"),
    rule("rollback", &[], M::TransactionEnd, T::NONE, "ends the block"),
    rule("select", &[], M::Select, T::NONE, "see the words in it"),
    rule("set", &[], M::Set, T::NONE, "see the parameters"),
    rule("start", &[Word(&["transaction"])], M::Begin, T::BEGINS, "begins a block"),
    rule("unlisten", &[Star, End], M::Other, T::UNLISTEN_ALL, "no more notifications"),
    rule("update", &[], M::Update, T::NONE, "rows only"),
    rule("vacuum", &[], M::Other, T::ALONE, "commits within"),
    rule("with", &[], M::With, T::NONE, "see the words in it"),
];

/// The meaning of a word at its place.
#[derive(Clone, Copy)]
pub(crate) enum Mention {
    /// A function that is called.
    Call(Traits),
    /// `set_config(`: its arguments say which parameter it sets and for how long.
    SetConfig,
    /// INTO, which names a new table unless it follows INSERT or MERGE.
    Into,
    /// UPDATE, which sets parameters if it updates the view `pg_settings`.
    Update,
    /// Any other command that writes to a table.
    Writes,
}

/// Words that count anywhere in a statement, the most common first.
#[rustfmt::skip]
pub(crate) static MENTIONS: &[(&str, Mention, &str)] = &[
    ("into", Mention::Into, "SELECT INTO makes a table, perhaps a temporary one"),
    ("update", Mention::Update, "of the view pg_settings, it is SET"),
    ("copy", Mention::Writes, "triggers may call functions"),
    ("delete", Mention::Writes, "triggers may call functions"),
    ("truncate", Mention::Writes, "triggers may call functions"),
    ("crosstab", Mention::Call(Traits::PROCEDURAL), "runs its argument (tablefunc)"),
    ("currval", Mention::Call(Traits::SEQUENCE_STATE), "what nextval gave in this session"),
    ("dblink_connect", Mention::Call(Traits::PROCEDURAL), "the connection stays with the session"),
    ("dblink_connect_u", Mention::Call(Traits::PROCEDURAL), "the connection stays with the session"),
    ("lastval", Mention::Call(Traits::SEQUENCE_STATE), "what nextval gave in this session"),
    ("pg_advisory_lock", Mention::Call(Traits::ADVISORY), "held by the session"),
    ("pg_advisory_lock_shared", Mention::Call(Traits::ADVISORY), "held by the session"),
    ("pg_advisory_unlock_all", Mention::Call(Traits::ADVISORY_FREE), "the session holds none"),
    ("pg_replication_origin_session_setup", Mention::Call(Traits::PROCEDURAL), "stays with the session"),
    ("pg_try_advisory_lock", Mention::Call(Traits::ADVISORY), "held by the session"),
    ("pg_try_advisory_lock_shared", Mention::Call(Traits::ADVISORY), "held by the session"),
    ("query_to_xml", Mention::Call(Traits::PROCEDURAL), "runs its argument"),
    ("query_to_xml_and_xmlschema", Mention::Call(Traits::PROCEDURAL), "runs its argument"),
    ("set_config", Mention::SetConfig, "SET as a function"),
    ("set_limit", Mention::Call(Traits::SET), "sets pg_trgm.similarity_threshold"),
    ("setseed", Mention::Call(Traits::SEQUENCE_STATE), "random() of this session"),
    ("ts_rewrite", Mention::Call(Traits::PROCEDURAL), "runs its argument"),
    ("ts_stat", Mention::Call(Traits::PROCEDURAL), "runs its argument"),
];

/// The possible effects of calling a function whose name is `U&"…"`, which is not read.
pub(crate) const UNREAD_CALL: Traits = Traits::SET
    .union(Traits::ROLE)
    .union(Traits::ADVISORY)
    .union(Traits::SEQUENCE_STATE)
    .union(Traits::PROCEDURAL);

/// The possible effects of setting a parameter whose name is not known.
pub(crate) const UNKNOWN_PARAMETER: Traits = Traits::SET.union(Traits::ROLE).union(Traits::READING);

/// The effects of setting a parameter that decides how constants are read.
const READ: Traits = Traits::SET_REPORTED.union(Traits::READING);

/// Forms of SET and RESET that name their parameters by special words. The first that fits decides.
pub(crate) static FORMS: &[(&[&str], &[&str])] = &[
    (
        &["session", "characteristics"],
        &[
            "default_transaction_isolation",
            "default_transaction_read_only",
            "default_transaction_deferrable",
        ],
    ),
    (&["session", "authorization"], &["session_authorization"]),
    (&["time", "zone"], &["TimeZone"]),
    (&["xml", "option"], &["xmloption"]),
    (&["all"], &["ALL"]),
    (&["names"], &["client_encoding"]),
    (&["role"], &["role"]),
    (&["schema"], &["search_path"]),
    // These end with the transaction.
    (&["transaction"], &[]),
    (&["constraints"], &[]),
];

/// The tokens after SET when it means RESET.
pub(crate) static DEFAULTS: &[&[Step]] = &[
    &[Find(&[&["default"]])],
    &[Opt(&["session"]), Word(&["time"]), Word(&["zone"]), Word(&["local"])],
    &[Opt(&["session"]), Word(&["names"]), End],
];

/// Parameters and the effects of setting them for the session; every other parameter is
/// [`Traits::SET`]. Compared without regard to case.
pub(crate) static PARAMETERS: &[(&str, Traits)] = &[
    ("client_encoding", READ),
    ("datestyle", READ),
    ("timezone", READ),
    ("intervalstyle", READ),
    ("standard_conforming_strings", READ),
    ("application_name", Traits::SET_REPORTED),
    ("default_transaction_read_only", Traits::SET_REPORTED),
    ("all", Traits::SET.union(Traits::READING)),
    ("role", Traits::ROLE),
    ("session_authorization", Traits::ROLE),
    // These apply to the current transaction only, in spite of SET without LOCAL.
    ("transaction_isolation", Traits::NONE),
    ("transaction_read_only", Traits::NONE),
    ("transaction_deferrable", Traits::NONE),
];

/// Returns the effects of setting a parameter for the session. `name` has one part, in any case,
/// without quotes.
pub(crate) fn parameter_traits(name: &[u8]) -> Traits {
    PARAMETERS
        .iter()
        .find(|(known, _)| is_word(name, known))
        .map_or(Traits::SET, |(_, traits)| *traits)
}

/// Returns the rows of [`RULES`] for a statement that begins with `word`.
pub(crate) fn rules_of(word: &[u8]) -> impl Iterator<Item = &'static Rule> {
    let (from, to) = STARTS[letter(word)];
    let rows = &RULES[from as usize..to as usize];
    rows.iter().filter(move |rule| is_word(word, rule.head))
}

/// True if a word that begins with `first` and is `length` bytes long may be among [`MENTIONS`].
#[inline]
pub(crate) fn may_be_mention(first: u8, length: usize) -> bool {
    LENGTHS[(first & 31) as usize] >> (length & 63) & 1 != 0
}

/// Returns the meaning of `word`, if it is among [`MENTIONS`].
#[cold]
pub(crate) fn mention(word: &[u8]) -> Option<Mention> {
    let same = |row: &&(&str, Mention, &str)| is_word(word, row.0);
    MENTIONS.iter().find(same).map(|row| row.1)
}

/// True if a word equals one of the tables' words, which are in lower case. Shorter than
/// `eq_ignore_ascii_case`, which is made for long texts.
#[inline]
pub(crate) fn is_word(word: &[u8], known: &str) -> bool {
    let known = known.as_bytes();
    word.len() == known.len()
        && word.iter().zip(known).all(|(byte, known)| byte == known || byte | 0x20 == *known)
}

/// Returns the first letter of a word, without regard to case, as an index of [`STARTS`].
#[inline]
fn letter(word: &[u8]) -> usize {
    (word.first().copied().unwrap_or(0) & 31) as usize
}

/// The range of the rows of [`RULES`] for each first letter.
static STARTS: [(u8, u8); 32] = {
    let mut table = [(0, 0); 32];
    let mut at = 0;
    while at < RULES.len() {
        let letter = (RULES[at].head.as_bytes()[0] & 31) as usize;
        if table[letter].1 == 0 {
            table[letter].0 = at as u8;
        }
        assert!(
            table[letter].1 == 0 || table[letter].1 as usize == at,
            "rows of a letter stand together"
        );
        at += 1;
        table[letter].1 = at as u8;
    }
    table
};

/// For each first letter, the lengths of the words of [`MENTIONS`], one bit each.
static LENGTHS: [u64; 32] = {
    let mut table = [0; 32];
    let mut at = 0;
    while at < MENTIONS.len() {
        let word = MENTIONS[at].0.as_bytes();
        assert!(word.len() < 64, "a length has a bit");
        table[(word[0] & 31) as usize] |= 1 << word.len();
        at += 1;
    }
    table
};

/// A rule in words, for documentation.
#[derive(Clone, Debug)]
pub struct RuleText {
    /// The words that it fits: `[a|b]` is optional, `…` stands for any tokens.
    pub words: String,
    /// Its possible effects.
    pub traits: Traits,
    /// The reason why this matters, or does not.
    pub why: &'static str,
}

/// Iterates over all rules, in words: statements by their first words, then words that count
/// anywhere.
pub fn rules() -> impl Iterator<Item = RuleText> {
    let statements = RULES.iter().map(|rule| RuleText {
        words: rule.steps.iter().fold(rule.head.to_owned(), |words, step| words + &step.words()),
        traits: rule.traits,
        why: rule.why,
    });
    let mentions = MENTIONS.iter().map(|&(word, mention, why)| {
        let (after, traits) = match mention {
            Mention::Call(traits) => ("(…)", traits),
            Mention::SetConfig => ("(…)", UNKNOWN_PARAMETER),
            Mention::Into => ("", Traits::DDL | Traits::TEMP),
            Mention::Update => (" pg_settings", Traits::SET),
            Mention::Writes => ("", Traits::NONE),
        };
        RuleText { words: format!("… {word}{after}"), traits, why }
    });
    statements.chain(mentions)
}

impl Step {
    fn words(&self) -> String {
        match self {
            Word(words) => format!(" {}", words.join("|")),
            Opt(words) => format!(" [{}]", words.join("|")),
            Skip(words) => format!(" [{}…]", words.join("|")),
            OptParens => " [(…)]".to_owned(),
            Find(places) => {
                let places: Vec<String> = places.iter().map(|words| words.join("|")).collect();
                format!(" … {}", places.join(" "))
            }
            Schema(name) => format!(" … {name}."),
            Star => " *".to_owned(),
            Text => " '…'".to_owned(),
            Name => " name".to_owned(),
            End => String::new(),
            Arguments => " [(…)]".to_owned(),
        }
    }
}
