//! Commands that Refrain carries out itself, and not SQLite: transactions with PostgreSQL's syntax,
//! settings, and commands that have no meaning with SQLite.
//!
//! The first word tells whether a statement is one of them. The rest of it is read strictly: an
//! unknown part is a syntax error or is refused, and is never ignored.

use refrain_sql::lex::TokenKind;

use crate::failure::{Failure, state};
use crate::tokens::Tokens;

/// The modes of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// READ ONLY or READ WRITE, if the statement has one of them. The isolation level is always the
    /// same.
    pub(crate) read_only: Option<bool>,
}

/// All things, or one by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Named(String),
}

/// A setting to be changed by `set_config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// The value; `None` for the default.
    pub(crate) value: Option<String>,
    pub(crate) local: bool,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// BEGIN, or START TRANSACTION if `start`.
    Begin {
        modes: Modes,
        start: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    /// SET TRANSACTION.
    Modes(Modes),
    /// SET SESSION CHARACTERISTICS.
    SessionModes(Modes),
    Set(Assignment),
    /// `SELECT set_config(…), …` of constants.
    SetConfig(Vec<Assignment>),
    Reset(Which),
    Show(Which),
    Deallocate(Which),
    /// EXECUTE with the name of a statement.
    Execute(String),
    /// DISCARD, with the object.
    Discard(&'static str),
    /// Does nothing. The reply is a CommandComplete with this tag.
    Nothing(&'static str),
    Copy,
}

/// PostgreSQL's statements that Refrain does not have, by their first word.
const UNSUPPORTED: &[&str] = &[
    "call", "cluster", "declare", "fetch", "grant", "import", "listen", "load", "lock", "merge",
    "move", "notify", "prepare", "reassign", "refresh", "revoke", "security",
];

const LEAVE_OUT: &str =
    "leave it out, or do it in the application: docs/sqlite.md lists what is supported";

/// Ways out for some of them.
const INSTEAD: &[(&str, &str)] = &[
    ("prepare", "prepare statements through the protocol, as drivers do"),
    ("merge", "write INSERT … ON CONFLICT"),
    ("lock", "one transaction writes at a time"),
    ("declare", "read with a row limit through the protocol, as drivers do"),
    ("fetch", "read with a row limit through the protocol, as drivers do"),
    ("listen", "query again from time to time: there are no notifications"),
    ("notify", "write to a table that others read: there are no notifications"),
    ("grant", "there are no roles: every user may do everything"),
    ("revoke", "there are no roles: every user may do everything"),
    ("call", "run the statements from the application"),
    ("refresh", "create a table, and fill it with INSERT … SELECT"),
];

/// Forms of SET with key words of their own.
const FORMS: &[(&[&str], &str)] = &[
    (&["time", "zone"], "timezone"),
    (&["names"], "client_encoding"),
    (&["role"], "role"),
    (&["session", "authorization"], "session_authorization"),
    (&["schema"], "search_path"),
];

impl Command {
    /// Reads the statement at the start of `text`. Returns it and the position of its end; `None`
    /// if it is for SQLite.
    ///
    /// # Errors
    /// If the statement is not for SQLite and Refrain does not have it.
    pub(crate) fn read(text: &[u8]) -> Result<Option<(Self, usize)>, Failure> {
        let mut tokens = Tokens::new(text);
        if tokens.kind() != Some(TokenKind::Word) {
            return Ok(None);
        }
        let word = tokens.bytes().to_ascii_lowercase();
        let word = std::str::from_utf8(&word).unwrap_or_default();
        let Some(command) = of_word(word, &mut tokens)? else { return Ok(None) };
        if !tokens.is_end() {
            return Err(syntax(&tokens, text));
        }
        Ok(Some((command, tokens.end())))
    }
}

fn syntax(tokens: &Tokens<'_>, text: &[u8]) -> Failure {
    match tokens.peek() {
        Some(token) => {
            let near = String::from_utf8_lossy(token.of(text)).into_owned();
            let failure =
                Failure::new(state::SYNTAX, format!("syntax error at or near \"{near}\""));
            failure.at(text, token.start as usize)
        }
        None => Failure::new(state::SYNTAX, "syntax error at end of input").at(text, text.len()),
    }
}

fn of_word(word: &str, tokens: &mut Tokens<'_>) -> Result<Option<Command>, Failure> {
    if word == "select" {
        return Ok(set_config(tokens));
    }
    if UNSUPPORTED.contains(&word) {
        let instead = INSTEAD.iter().find(|(known, _)| *known == word);
        let failure =
            Failure::unsupported(format!("{} is not supported", word.to_ascii_uppercase()));
        return Err(failure.hint(instead.map_or(LEAVE_OUT, |(_, hint)| *hint)));
    }
    let read: fn(&mut Tokens<'_>) -> Option<Command> = match word {
        "begin" => |tokens| begin(tokens, false),
        "start" => start,
        "commit" | "end" => commit,
        "rollback" | "abort" => rollback,
        "savepoint" => |tokens| tokens.take_name().map(Command::Savepoint),
        "release" => |tokens| {
            tokens.take_word(&["savepoint"]);
            tokens.take_name().map(Command::Release)
        },
        "set" => set,
        "reset" => |tokens| which_setting(tokens).map(Command::Reset),
        "show" => |tokens| which_setting(tokens).map(Command::Show),
        "deallocate" => |tokens| {
            tokens.take_word(&["prepare"]);
            which(tokens).map(Command::Deallocate)
        },
        "execute" => |tokens| {
            let name = tokens.take_name();
            tokens.skip();
            name.map(Command::Execute)
        },
        "discard" => discard,
        "close" => {
            |tokens| tokens.take_word(&["all"]).then_some(Command::Nothing("CLOSE CURSOR ALL"))
        }
        "unlisten" => |tokens| {
            tokens.skip();
            Some(Command::Nothing("UNLISTEN"))
        },
        "checkpoint" => |_| Some(Command::Nothing("CHECKPOINT")),
        "copy" => |tokens| {
            tokens.skip();
            Some(Command::Copy)
        },
        _ => return Ok(None),
    };
    let source = tokens.clone();
    tokens.take();
    let command = read(tokens);
    let unread = || {
        let at = source.peek().map_or(0, |token| token.start as usize);
        let failure =
            Failure::new(state::SYNTAX, format!("syntax error in {}", word.to_ascii_uppercase()));
        Failure { position: at + 1, ..failure }
    };
    command.map(Some).ok_or_else(unread)
}

fn begin(tokens: &mut Tokens<'_>, start: bool) -> Option<Command> {
    // SQLite's words are accepted as well, but Refrain decides when the transaction begins.
    tokens.take_word(&["work", "transaction", "deferred", "immediate", "exclusive"]);
    tokens.take_word(&["transaction"]);
    Some(Command::Begin { modes: modes(tokens)?, start })
}

fn start(tokens: &mut Tokens<'_>) -> Option<Command> {
    tokens.take_word(&["transaction"]).then(|| begin(tokens, true)).flatten()
}

fn modes(tokens: &mut Tokens<'_>) -> Option<Modes> {
    let mut modes = Modes::default();
    while !tokens.is_end() {
        if tokens.take_words(&["isolation", "level"]) {
            let known = [
                &["serializable"][..],
                &["repeatable", "read"],
                &["read", "committed"],
                &["read", "uncommitted"],
            ];
            known.iter().any(|level| tokens.take_words(level)).then_some(())?;
        } else if tokens.take_words(&["read", "only"]) {
            modes.read_only = Some(true);
        } else if tokens.take_words(&["read", "write"]) {
            modes.read_only = Some(false);
        } else {
            tokens.take_word(&["not"]);
            tokens.take_word(&["deferrable"]).then_some(())?;
        }
        tokens.take_kind(TokenKind::Comma);
    }
    Some(modes)
}

fn chain(tokens: &mut Tokens<'_>) -> bool {
    if !tokens.take_word(&["and"]) {
        return false;
    }
    let no = tokens.take_word(&["no"]);
    tokens.take_word(&["chain"]) && !no
}

fn commit(tokens: &mut Tokens<'_>) -> Option<Command> {
    tokens.take_word(&["work", "transaction"]);
    Some(Command::Commit { chain: chain(tokens) })
}

fn rollback(tokens: &mut Tokens<'_>) -> Option<Command> {
    tokens.take_word(&["work", "transaction"]);
    if tokens.take_word(&["to"]) {
        tokens.take_word(&["savepoint"]);
        return tokens.take_name().map(Command::RollbackTo);
    }
    Some(Command::Rollback { chain: chain(tokens) })
}

fn which(tokens: &mut Tokens<'_>) -> Option<Which> {
    if tokens.take_word(&["all"]) {
        return Some(Which::All);
    }
    tokens.take_dotted().map(Which::Named)
}

fn which_setting(tokens: &mut Tokens<'_>) -> Option<Which> {
    if tokens.take_words(&["transaction", "isolation", "level"]) {
        return Some(Which::Named("transaction_isolation".to_owned()));
    }
    let form = FORMS.iter().find(|(words, _)| words.len() > 1 && tokens.take_words(words));
    form.map(|(_, name)| Which::Named((*name).to_owned())).or_else(|| which(tokens))
}

fn discard(tokens: &mut Tokens<'_>) -> Option<Command> {
    let kinds = [
        (&["all"][..], "ALL"),
        (&["plans"], "PLANS"),
        (&["sequences"], "SEQUENCES"),
        (&["temp", "temporary"], "TEMP"),
    ];
    let kind = kinds.iter().find(|(words, _)| tokens.take_word(words));
    kind.map(|(_, kind)| Command::Discard(kind))
}

fn set(tokens: &mut Tokens<'_>) -> Option<Command> {
    if tokens.take_words(&["session", "characteristics", "as", "transaction"]) {
        return modes(tokens).map(Command::SessionModes);
    }
    if tokens.take_word(&["transaction"]) {
        return modes(tokens).map(Command::Modes);
    }
    if tokens.take_word(&["constraints"]) {
        // What is deferred is checked at COMMIT, whatever this says.
        while !tokens.take_word(&["deferred", "immediate"]) {
            tokens.take()?;
        }
        return Some(Command::Nothing("SET CONSTRAINTS"));
    }
    let local = tokens.take_word(&["local"]);
    let form = |tokens: &mut Tokens<'_>| {
        let form = FORMS.iter().find(|(words, _)| tokens.take_words(words));
        form.map(|(_, name)| (*name).to_owned())
    };
    let mut name = form(tokens);
    if name.is_none() && !local && tokens.take_word(&["session"]) {
        name = form(tokens);
    }
    let name = match name {
        Some(name) => {
            // After TIME ZONE and the like, the value may follow without TO.
            let _ = tokens.take_word(&["to"]) || tokens.take_operator("=");
            name
        }
        None => {
            let name = tokens.take_dotted()?;
            (tokens.take_word(&["to"]) || tokens.take_operator("=")).then_some(())?;
            name
        }
    };
    let value = match name == "timezone" && tokens.take_word(&["interval"]) {
        true => Some(zone_of(&tokens.take_text()?)?),
        false => value(tokens)?,
    };
    let _ =
        tokens.take_word(&["hour"]) && tokens.take_word(&["to"]) && tokens.take_word(&["minute"]);
    Some(Command::Set(Assignment { name, value, local }))
}

/// Returns the time zone of an interval of hours and minutes, as the server shows it: the sign
/// behind the name is POSIX's, where west is positive.
fn zone_of(interval: &str) -> Option<String> {
    let (sign, rest) = match interval.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', interval.strip_prefix('+').unwrap_or(interval)),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "00"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let offset = match minutes {
        0 => format!("{hours:02}"),
        minutes => format!("{hours:02}:{minutes:02}"),
    };
    let west = if sign == '-' { '+' } else { '-' };
    Some(format!("<{sign}{offset}>{west}{offset}"))
}

/// Reads the values of a SET, with commas between them.
fn value(tokens: &mut Tokens<'_>) -> Option<Option<String>> {
    if tokens.take_word(&["default"]) {
        return Some(None);
    }
    let mut all = String::new();
    loop {
        let negative = tokens.take_operator("-");
        let part = match tokens.kind()? {
            TokenKind::Text | TokenKind::EscapeText => tokens.take_text()?,
            TokenKind::Quoted => tokens.take_name()?,
            TokenKind::Word | TokenKind::Integer | TokenKind::Decimal => {
                let written = String::from_utf8_lossy(tokens.bytes()).into_owned();
                tokens.take();
                written
            }
            _ => return None,
        };
        all.push_str(if negative { "-" } else { "" });
        all.push_str(&part);
        if !tokens.take_kind(TokenKind::Comma) {
            return Some(Some(all));
        }
        all.push_str(", ");
    }
}

/// Reads `SELECT [pg_catalog.]set_config('…', '…', false), …`, if the statement has no other part.
fn set_config(tokens: &mut Tokens<'_>) -> Option<Command> {
    let mut ahead = tokens.clone();
    ahead.take();
    let mut all = Vec::new();
    loop {
        ahead.take_words(&["pg_catalog"]);
        ahead.take_kind(TokenKind::Dot);
        ahead.take_word(&["set_config"]).then_some(())?;
        ahead.take_kind(TokenKind::Open).then_some(())?;
        let name = ahead.take_text()?.to_ascii_lowercase();
        ahead.take_kind(TokenKind::Comma).then_some(())?;
        let value = if ahead.take_word(&["null"]) { None } else { Some(ahead.take_text()?) };
        ahead.take_kind(TokenKind::Comma).then_some(())?;
        let local = ahead.take_word(&["true"]);
        (local || ahead.take_word(&["false"])).then_some(())?;
        ahead.take_kind(TokenKind::Close).then_some(())?;
        all.push(Assignment { name, value, local });
        if !ahead.take_kind(TokenKind::Comma) {
            break;
        }
    }
    ahead.is_end().then_some(())?;
    *tokens = ahead;
    Some(Command::SetConfig(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Command {
        Command::read(text.as_bytes()).unwrap().unwrap().0
    }

    fn set_to(name: &str, value: Option<&str>, local: bool) -> Assignment {
        Assignment { name: name.to_owned(), value: value.map(str::to_owned), local }
    }

    #[test]
    fn transactions_in_all_spellings() {
        let begin = |read_only| Command::Begin { modes: Modes { read_only }, start: false };
        for text in ["BEGIN", "begin work;", "Begin transaction isolation level read committed"] {
            assert_eq!(read(text), begin(None), "{text}");
        }
        assert_eq!(
            read("BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, NOT DEFERRABLE"),
            begin(Some(true))
        );
        assert_eq!(read("begin immediate"), begin(None));
        for text in ["COMMIT", "end", "COMMIT WORK AND NO CHAIN", "commit transaction"] {
            assert_eq!(read(text), Command::Commit { chain: false }, "{text}");
        }
        assert_eq!(read("ABORT AND CHAIN"), Command::Rollback { chain: true });
        assert_eq!(read("rollback to savepoint \"A\""), Command::RollbackTo("A".to_owned()));
        assert_eq!(read("release A"), Command::Release("a".to_owned()));
        assert!(matches!(read("start transaction read write"), Command::Begin { start: true, .. }));
        for text in ["BEGIN soon", "COMMIT twice", "START", "SAVEPOINT 1", "SET x"] {
            assert_eq!(Command::read(text.as_bytes()).unwrap_err().sqlstate, "42601", "{text}");
        }
    }

    #[test]
    fn settings_in_all_spellings() {
        for (text, name, value, local) in [
            ("SET x TO 1", "x", Some("1"), false),
            ("set session DateStyle = 'ISO'", "datestyle", Some("ISO"), false),
            ("SET LOCAL statement_timeout = '5s'", "statement_timeout", Some("5s"), true),
            ("SET TIME ZONE 'UTC'", "timezone", Some("UTC"), false),
            ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "timezone", Some("<+00>-00"), false),
            ("SET TIME ZONE INTERVAL '-05:30'", "timezone", Some("<-05:30>+05:30"), false),
            ("SET NAMES 'utf8'", "client_encoding", Some("utf8"), false),
            ("SET a.b TO DEFAULT", "a.b", None, false),
            ("SET search_path TO public, \"X\"", "search_path", Some("public, X"), false),
            ("SET extra_float_digits = -1", "extra_float_digits", Some("-1"), false),
        ] {
            assert_eq!(read(text), Command::Set(set_to(name, value, local)), "{text}");
        }
        assert_eq!(
            read("SELECT pg_catalog.set_config('A','x',false),set_config('b',NULL,true)"),
            Command::SetConfig(vec![set_to("a", Some("x"), false), set_to("b", None, true)])
        );
        assert_eq!(Command::read(b"SELECT set_config(x, 'y', false) from t").unwrap(), None);
        let isolation = Which::Named("transaction_isolation".to_owned());
        assert_eq!(read("show transaction isolation level"), Command::Show(isolation));
        assert_eq!(read("RESET ALL"), Command::Reset(Which::All));
    }

    #[test]
    fn the_rest_is_left_to_sqlite_or_refused() {
        for text in
            ["SELECT 1", "insert into t values (1)", "", "pragma x", "with a as (select 1) select"]
        {
            assert_eq!(Command::read(text.as_bytes()).unwrap(), None, "{text}");
        }
        for text in ["LISTEN x", "CALL x()", "PREPARE x AS SELECT 1"] {
            assert_eq!(Command::read(text.as_bytes()).unwrap_err().sqlstate, "0A000", "{text}");
        }
    }
}
