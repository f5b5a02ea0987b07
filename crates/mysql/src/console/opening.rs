//! Texts that client libraries and command lines send before anybody asks for a listing: they set
//! up a session as they would on a server, and ask for its variables.
//!
//! The console has no such session. It takes what they set, and tells variables with the values of
//! a session that nobody has set up. What is nothing of this kind is a command for the program.

use refrain_config::Database;
use refrain_mysql_wire::error_code;

use super::reply::{COMMAND_BYTES_MAX, Column, ReplyPart, Rows, ValueKind};
use crate::errors;

/// The facts of a session that its client may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    /// The version with which the client was greeted.
    pub(crate) version: &'a str,
    /// The number with which the client was greeted.
    pub(crate) number: u32,
    pub(crate) user: &'a str,
    /// The name under which the client has asked for the console.
    pub(crate) database: &'a str,
}

/// The value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Text(&'static str),
    Number(u64),
    /// The version with which the client was greeted.
    Version,
}

/// The variables of a session, by name.
const VARIABLES: &[(&str, Value)] = &[
    ("auto_increment_increment", Value::Number(1)),
    ("auto_increment_offset", Value::Number(1)),
    ("autocommit", Value::Number(1)),
    ("big_tables", Value::Number(0)),
    ("character_set_client", Value::Text("utf8mb4")),
    ("character_set_connection", Value::Text("utf8mb4")),
    ("character_set_database", Value::Text("utf8mb4")),
    ("character_set_results", Value::Text("utf8mb4")),
    ("character_set_server", Value::Text("utf8mb4")),
    ("character_set_system", Value::Text("utf8mb4")),
    ("collation_connection", Value::Text("utf8mb4_general_ci")),
    ("collation_database", Value::Text("utf8mb4_general_ci")),
    ("collation_server", Value::Text("utf8mb4_general_ci")),
    ("default_storage_engine", Value::Text("InnoDB")),
    ("error_count", Value::Number(0)),
    ("foreign_key_checks", Value::Number(1)),
    ("group_concat_max_len", Value::Number(1024)),
    ("init_connect", Value::Text("")),
    ("innodb_lock_wait_timeout", Value::Number(50)),
    ("innodb_read_only", Value::Number(0)),
    ("interactive_timeout", Value::Number(28_800)),
    ("last_insert_id", Value::Number(0)),
    ("license", Value::Text("MIT OR Apache-2.0")),
    ("lock_wait_timeout", Value::Number(86_400)),
    ("lower_case_table_names", Value::Number(0)),
    ("max_allowed_packet", Value::Number(COMMAND_BYTES_MAX as u64)),
    ("max_execution_time", Value::Number(0)),
    ("max_join_size", Value::Number(u64::MAX)),
    ("max_statement_time", Value::Number(0)),
    ("net_buffer_length", Value::Number(16_384)),
    ("net_read_timeout", Value::Number(30)),
    ("net_write_timeout", Value::Number(60)),
    ("performance_schema", Value::Number(0)),
    ("protocol_version", Value::Number(10)),
    ("query_cache_size", Value::Number(0)),
    ("query_cache_type", Value::Text("OFF")),
    ("read_only", Value::Number(0)),
    ("session_track_schema", Value::Number(0)),
    ("session_track_state_change", Value::Number(0)),
    ("session_track_system_variables", Value::Text("")),
    ("session_track_transaction_info", Value::Text("OFF")),
    ("sql_auto_is_null", Value::Number(0)),
    ("sql_big_selects", Value::Number(1)),
    ("sql_mode", Value::Text("")),
    ("sql_notes", Value::Number(1)),
    ("sql_quote_show_create", Value::Number(1)),
    ("sql_safe_updates", Value::Number(0)),
    ("sql_select_limit", Value::Number(u64::MAX)),
    ("sql_warnings", Value::Number(0)),
    ("system_time_zone", Value::Text("UTC")),
    ("time_zone", Value::Text("SYSTEM")),
    ("transaction_isolation", Value::Text("REPEATABLE-READ")),
    ("transaction_read_only", Value::Number(0)),
    ("tx_isolation", Value::Text("REPEATABLE-READ")),
    ("tx_read_only", Value::Number(0)),
    ("unique_checks", Value::Number(1)),
    ("version", Value::Version),
    ("version_comment", Value::Text("Refrain's console")),
    ("version_compile_os", Value::Text("Linux")),
    ("wait_timeout", Value::Number(28_800)),
    ("warning_count", Value::Number(0)),
];

/// Words that stand behind SET in the place of a variable.
const SET_WORDS: &[&str] = &["names", "character", "charset", "transaction"];

/// Returns the answer to a text of this kind; `None` if it is a command for the program.
pub(crate) fn answer(text: &str, about: &About<'_>) -> Option<ReplyPart> {
    let tokens = tokens(text);
    let (verb, rest) = tokens.split_first()?;
    // The program carries out several, or none.
    if tokens.iter().any(|token| token.text == ";") {
        return None;
    }
    match verb.text.to_ascii_lowercase().as_str() {
        "set" => sets_up(rest).then(done),
        "select" => select(text, rest, about),
        "show" => show(rest, about),
        "use" => rest.first().map(|name| used(name.name())),
        "begin" | "commit" | "rollback" => Some(done()),
        "start" if rest.first().is_some_and(|word| word.is("transaction")) => Some(done()),
        _ => None,
    }
}

/// Returns the answer to a change of the schema: the console has itself alone.
pub(crate) fn used(name: &str) -> ReplyPart {
    match Database::console(name) {
        Some(_) => done(),
        None => ReplyPart::Refused(error_code::BAD_DB, errors::unknown_database(name)),
    }
}

fn done() -> ReplyPart {
    ReplyPart::Done(String::new())
}

/// Whether what stands behind SET is about the session alone.
fn sets_up(tokens: &[Token<'_>]) -> bool {
    let all = items(tokens);
    !all.is_empty() && all.iter().all(|item| is_of_session(item))
}

fn is_of_session(item: &[Token<'_>]) -> bool {
    let is_scope = |token: &&Token<'_>| token.is("session") || token.is("local");
    let behind = if item.first().is_some_and(|token| is_scope(&token)) { &item[1..] } else { item };
    let Some(name) = behind.first() else { return false };
    if name.text.to_ascii_lowercase().starts_with("@@global.") {
        return false;
    }
    let is_variable = || known(&name.variable()).is_some();
    match name.text.strip_prefix('@') {
        // A variable of the user.
        Some(rest) if !rest.starts_with('@') => true,
        _ => SET_WORDS.iter().any(|word| name.is(word)) || is_variable(),
    }
}

/// Answers a SELECT of variables and of what a session tells of itself.
fn select(text: &str, tokens: &[Token<'_>], about: &About<'_>) -> Option<ReplyPart> {
    let limit = tokens.iter().position(|token| token.is("limit"));
    let mut rows = Rows { columns: Vec::new(), rows: vec![Vec::new()] };
    for item in items(&tokens[..limit.unwrap_or(tokens.len())]) {
        let (expression, alias) = named(item);
        let (value, kind) = match evaluate(expression, about) {
            Evaluated::Value(value, kind) => (value, kind),
            Evaluated::NoVariable(name) => {
                let words = format!("Unknown system variable '{name}'");
                return Some(ReplyPart::Refused(error_code::UNKNOWN_SYSTEM_VARIABLE, words));
            }
            Evaluated::Other => return None,
        };
        let (first, last) = (expression.first()?, expression.last()?);
        let written = &text[first.at..last.at + last.text.len()];
        let name = alias.map_or(written, Token::name).to_owned();
        rows.columns.push(Column { name, kind });
        rows.rows[0].push(value);
    }
    (!rows.columns.is_empty()).then_some(ReplyPart::Rows(rows))
}

/// The value of an expression.
enum Evaluated<'a> {
    Value(Option<String>, ValueKind),
    /// It is a variable that a session does not have.
    NoVariable(&'a str),
    /// It is something else.
    Other,
}

fn evaluate<'a>(expression: &[Token<'a>], about: &About<'_>) -> Evaluated<'a> {
    let text = |value: &str| Evaluated::Value(Some(value.to_owned()), ValueKind::Text);
    match expression {
        [one] if one.text.starts_with("@@") => match known(&one.variable()) {
            Some(value) => {
                let (value, kind) = told(value, about);
                Evaluated::Value(Some(value), kind)
            }
            None => Evaluated::NoVariable(one.text.trim_start_matches('@')),
        },
        // A variable of the user that nobody has set.
        [one] if one.text.starts_with('@') => Evaluated::Value(None, ValueKind::Text),
        [name, open, close] if open.is("(") && close.is(")") => {
            match name.text.to_ascii_lowercase().as_str() {
                "database" | "schema" => text(about.database),
                "version" => text(about.version),
                "user" | "current_user" | "session_user" | "system_user" => text(about.user),
                "connection_id" => {
                    Evaluated::Value(Some(about.number.to_string()), ValueKind::LongLong)
                }
                _ => Evaluated::Other,
            }
        }
        _ => Evaluated::Other,
    }
}

fn known(name: &str) -> Option<Value> {
    let found = VARIABLES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map(|(_, value)| *value)
}

fn told(value: Value, about: &About<'_>) -> (String, ValueKind) {
    match value {
        Value::Text(text) => (text.to_owned(), ValueKind::Text),
        Value::Number(number) => (number.to_string(), ValueKind::LongLong),
        Value::Version => (about.version.to_owned(), ValueKind::Text),
    }
}

/// Answers SHOW VARIABLES, and SHOW WARNINGS and ERRORS, of which there are never any.
fn show(tokens: &[Token<'_>], about: &About<'_>) -> Option<ReplyPart> {
    let is_scope =
        |token: &Token<'_>| ["session", "local", "global"].iter().any(|scope| token.is(scope));
    let tokens = match tokens {
        [first, rest @ ..] if is_scope(first) => rest,
        all => all,
    };
    let (what, condition) = tokens.split_first()?;
    let text = |name: &str| Column { name: name.to_owned(), kind: ValueKind::Text };
    if what.is("warnings") || what.is("errors") {
        let code = Column { name: "Code".to_owned(), kind: ValueKind::Long };
        let columns = vec![text("Level"), code, text("Message")];
        return Some(ReplyPart::Rows(Rows { columns, rows: Vec::new() }));
    }
    if !what.is("variables") {
        return None;
    }
    let is_meant = |name: &str| match condition {
        [like, pattern] if like.is("like") => matches(pattern.name(), name),
        [] => true,
        // The names that the condition has.
        all => all.iter().any(|token| token.name().eq_ignore_ascii_case(name)),
    };
    let rows = VARIABLES.iter().filter(|(name, _)| is_meant(name)).map(|(name, value)| {
        let (value, _) = told(*value, about);
        vec![Some((*name).to_owned()), Some(value)]
    });
    let columns = vec![text("Variable_name"), text("Value")];
    Some(ReplyPart::Rows(Rows { columns, rows: rows.collect() }))
}

/// Whether a name has the form of a pattern of LIKE. The time is at most the product of both
/// lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern = like(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut next) = (0, 0);
    // The place behind the last `%`, and how much of the name that one has taken.
    let mut back = None;
    while next < name.len() {
        match pattern.get(at) {
            Some(PatternPart::Any) => {
                back = Some((at + 1, next));
                at += 1;
            }
            Some(part) if part.fits(name[next]) => (at, next) = (at + 1, next + 1),
            _ => {
                let Some((behind, taken)) = back else { return false };
                back = Some((behind, taken + 1));
                (at, next) = (behind, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|part| *part == PatternPart::Any)
}

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternPart {
    Letter(char),
    AnyLetter,
    /// Any number of any letters.
    Any,
}

impl PatternPart {
    fn fits(self, letter: char) -> bool {
        match self {
            Self::Letter(own) => own.eq_ignore_ascii_case(&letter),
            Self::AnyLetter | Self::Any => true,
        }
    }
}

fn like(pattern: &str) -> Vec<PatternPart> {
    let mut letters = pattern.chars();
    let mut parts = Vec::new();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            '%' => PatternPart::Any,
            '_' => PatternPart::AnyLetter,
            '\\' => PatternPart::Letter(letters.next().unwrap_or('\\')),
            letter => PatternPart::Letter(letter),
        });
    }
    parts
}

/// A part of a text.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a str,
    /// Where it begins.
    at: usize,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    /// Returns a name or a string without its quotes.
    fn name(&self) -> &str {
        let quote = |letter| matches!(letter, '\'' | '"' | '`');
        let inner = self.text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inner.unwrap_or(self.text)
    }

    /// Returns the name of a variable without what says whose it is.
    fn variable(&self) -> String {
        let name = self.text.trim_start_matches('@').to_ascii_lowercase();
        let scopes = ["session.", "local.", "global."];
        let bare = scopes.iter().find_map(|scope| name.strip_prefix(scope));
        bare.unwrap_or(&name).to_owned()
    }
}

/// Splits tokens at the commas outside of parentheses.
fn items<'a, 't>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut depth = 0_u32;
    let parts = tokens.split(|token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        token.text == "," && depth == 0
    });
    parts.filter(|item| !item.is_empty()).collect()
}

/// Splits an item of a SELECT into its expression and its alias.
fn named<'a, 't>(item: &'t [Token<'a>]) -> (&'t [Token<'a>], Option<&'t Token<'a>>) {
    match item {
        [expression @ .., word, alias] if word.is("as") => (expression, Some(alias)),
        [variable, alias] if variable.text.starts_with('@') => {
            (std::slice::from_ref(variable), Some(alias))
        }
        all => (all, None),
    }
}

/// Returns the tokens of a text, without comments and the end of its statement. What a server would
/// run in a comment counts.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if let Some(length) = comment(rest) {
            length
        } else {
            let length = token(rest, first);
            tokens.push(Token { text: &rest[..length], at });
            length
        };
        at += length;
    }
    while tokens.last().is_some_and(|token| token.text == ";") {
        tokens.pop();
    }
    tokens
}

/// Returns the length of what a text begins with that is a comment.
fn comment(text: &str) -> Option<usize> {
    let line = || text.find('\n').unwrap_or(text.len());
    let is_line = text.starts_with('#')
        || text
            .strip_prefix("--")
            .is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace));
    if is_line {
        return Some(line());
    }
    // The beginning and the end of what is no comment for a server.
    if let Some(rest) = text.strip_prefix("/*!").or_else(|| text.strip_prefix("/*M!")) {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        return Some(text.len() - rest.len() + digits);
    }
    if text.starts_with("*/") {
        return Some(2);
    }
    let inner = text.strip_prefix("/*")?;
    Some(inner.find("*/").map_or(text.len(), |end| end + 4))
}

/// Returns the length of the token that a text begins with.
fn token(text: &str, first: char) -> usize {
    if matches!(first, '\'' | '"' | '`') {
        return quoted(text, first);
    }
    let is_word =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '@' | '.');
    let length = text.find(|letter| !is_word(letter)).unwrap_or(text.len());
    length.max(first.len_utf8())
}

/// Returns the length of what stands between quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if letter == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = letter == '\\' && !is_escaped && quote != '`';
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About<'static> =
        About { version: "8.0.15", number: 7, user: "ann", database: "refrain" };

    /// Returns the names of the columns, and the values of the first row.
    fn row(text: &str) -> (Vec<String>, Vec<Option<String>>) {
        let Some(ReplyPart::Rows(rows)) = answer(text, &ABOUT) else {
            panic!("{text} shows no rows")
        };
        let names = rows.columns.into_iter().map(|column| column.name).collect();
        (names, rows.rows.into_iter().next().unwrap_or_default())
    }

    #[test]
    fn libraries_set_up_their_sessions() {
        for text in [
            "SET NAMES utf8mb4",
            "set names 'utf8mb4' collate 'utf8mb4_bin';",
            "SET AUTOCOMMIT = 0",
            "/* a library */SET sql_mode='STRICT_TRANS_TABLES', @@session.time_zone = '+00:00'",
            "SET character_set_results = NULL",
            "set autocommit=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES')",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "/*!40101 SET @OLD = @@sql_mode */",
            "SET @a = 1",
            "COMMIT",
            "begin",
            "START TRANSACTION READ ONLY",
            "ROLLBACK",
            "use `refrain`",
        ] {
            assert_eq!(answer(text, &ABOUT), Some(done()), "{text}");
        }
    }

    #[test]
    fn commands_are_for_the_program() {
        for text in [
            "SHOW POOLS",
            "SET pool_size = 3",
            "SET autocommit = 1, pool_size = 3",
            "SET GLOBAL wait_timeout = 5",
            "SET @@global.wait_timeout = 5",
            "SET NAMES utf8mb4; RELOAD",
            "COMMIT; SHOW POOLS",
            "SET",
            "SELECT 1",
            "SELECT database FROM pools",
            "SELECT @@version, database FROM pools",
            "SELECT count(*) FROM pools",
            "RELOAD",
            "start",
            "",
            "-- nothing",
        ] {
            assert_eq!(answer(text, &ABOUT), None, "{text}");
        }
    }

    #[test]
    fn variables_are_told_under_the_name_that_was_asked_for() {
        let some = |text: &str| Some(text.to_owned());
        let (names, values) = row("select @@version_comment limit 1");
        assert_eq!((&*names[0], &values[0]), ("@@version_comment", &some("Refrain's console")));
        let text = "/* x */ SELECT @@session.auto_increment_increment AS auto_increment_increment, \
                    @@character_set_client AS `client`, @@sql_mode mode, Version(), DATABASE() , \
                    CONNECTION_ID(), @unset";
        let (names, values) = row(text);
        let due = ["auto_increment_increment", "client", "mode", "Version()", "DATABASE()"];
        assert_eq!(names[..5], due);
        assert_eq!(names[5..], ["CONNECTION_ID()", "@unset"]);
        assert_eq!(
            values[..5],
            [some("1"), some("utf8mb4"), some(""), some("8.0.15"), some("refrain")]
        );
        assert_eq!(values[5..], [some("7"), None]);
        let unknown = answer("SELECT @@nothing", &ABOUT);
        let words = "Unknown system variable 'nothing'".to_owned();
        assert_eq!(unknown, Some(ReplyPart::Refused(error_code::UNKNOWN_SYSTEM_VARIABLE, words)));
    }

    #[test]
    fn lists_of_variables_are_as_long_as_their_condition_says() {
        let count = |text| match answer(text, &ABOUT) {
            Some(ReplyPart::Rows(rows)) => rows.rows.len(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(count("SHOW VARIABLES"), VARIABLES.len());
        assert_eq!(count("SHOW SESSION VARIABLES LIKE 'sql\\_mode'"), 1);
        assert_eq!(count("show variables like 'CHARACTER\\_SET\\_%'"), 6);
        assert_eq!(count("SHOW VARIABLES LIKE 'nothing'"), 0);
        let in_list = "SHOW VARIABLES WHERE Variable_name IN ('wait_timeout', 'time_zone', 'x')";
        assert_eq!(count(in_list), 2);
        assert_eq!(count("SHOW WARNINGS LIMIT 3"), 0);
        assert_eq!(answer("SHOW DATABASES", &ABOUT), None);
    }

    #[test]
    fn patterns_are_those_of_like() {
        for (pattern, name, due) in [
            ("%", "", true),
            ("a%b%c", "aXbYbZc", true),
            ("a%b%c", "aXbYbZ", false),
            ("_b", "ab", true),
            ("_b", "b", false),
            ("a\\_b", "axb", false),
            ("A\\_B", "a_b", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), due, "{pattern} {name}");
        }
        assert!(!matches(&"%a".repeat(10_000), &"a".repeat(60)));
    }

    #[test]
    fn the_console_has_no_other_schema() {
        let Some(ReplyPart::Refused(code, words)) = answer("USE shop", &ABOUT) else { panic!() };
        assert_eq!((code.number, &*words), (1049, "Unknown database 'shop'"));
    }

    #[test]
    fn names_are_in_order() {
        assert!(VARIABLES.is_sorted_by_key(|(name, _)| *name));
    }
}
