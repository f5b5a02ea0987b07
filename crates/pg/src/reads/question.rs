//! The question about statements: Refrain asks a server whether they are reads, whether their
//! results may be kept, and what they may change, by the names that they mention.
//!
//! It is one query for several statements. Each row of the answer is the number of a statement and
//! a [`Remark`] on it; a negative number means all of them. A name stands for everything in the
//! database that has it: if one function of the name is volatile, in whatever schema, the statement
//! is no read. What any statement may run without naming it (a cast, the function of an operator
//! class, the input function of a type) must not be volatile anywhere in the database.
//!
//! The label of a function is trusted, as PostgreSQL's planner trusts it. PostgreSQL itself refuses
//! writes in a function that is not volatile, but not a call of another function that is. What such
//! calls hide is asked for apart, once for all statements of a database (`crate::reads::hidden`):
//! the part `hidden.sql` stands beside the question, and its rows among those of the answer.
//!
//! The query sees through views: their rules name relations and functions by OID.

use refrain_sql::effect::{Target, Way};
use refrain_sql::hidden::Hides;
use refrain_sql::reads::{Mentioned, Objection, Unkept};

use crate::ground::ids::DatabaseIdentity;
use crate::settings::value::write_literal;

/// The first OID that is not the system's own.
pub(crate) const FIRST_OWN: u32 = 16384;
/// The OID of `time with time zone`, whose values depend on the offset of today.
const TIMETZ: u32 = 1266;

/// The question, in which parts are missing.
const QUESTION: &str = include_str!("question.sql");
/// The part about the relations that are changed.
const TARGETS: &str = include_str!("targets.sql");
/// The rows of the answer about what is changed.
const CHANGES: &str = include_str!("changes.sql");
/// The question about the words behind which functions hide.
const HIDDEN: &str = include_str!("hidden.sql");
/// [`TARGETS`] if no statement is asked about what it may change, as most are not: these parts cost
/// the server more than all others.
const NO_TARGETS: &str = "t(n, o, k) AS (SELECT 0, 0::pg_catalog.oid, '' WHERE false),\n";

/// A statement of the question.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The names in its text.
    pub mentioned: &'a Mentioned,
    /// The relations that it names as changed, if the question is what it may change: a function
    /// in a SELECT may change any.
    pub targets: Option<&'a [Target]>,
    /// The types of its parameters as its Parse gives them.
    pub parameters: &'a [u8],
}

impl Subject<'_> {
    /// Calls `row` with the kind and the name of each row about the statement.
    fn rows(&self, mut row: impl FnMut(u8, &str)) {
        // A statement that mentions nothing is asked about as well.
        row(b's', "");
        let Mentioned { relations, with, functions, fields, operators, types, .. } = self.mentioned;
        let kinds = [
            (b'r', relations),
            (b'w', with),
            (b'f', functions),
            (b'a', fields),
            (b'o', operators),
            (b't', types),
        ];
        for (kind, names) in kinds {
            names.iter().for_each(|name| row(kind, name));
        }
        for target in self.targets.unwrap_or_default() {
            row(letter(target.way), &target.relation);
        }
        let has = |is: fn(u32) -> bool| oids(self.parameters).any(is);
        if has(|oid| oid >= FIRST_OWN) {
            row(b'p', "");
        }
        if has(|oid| oid == TIMETZ) {
            row(b't', "timetz");
        }
    }
}

/// Returns the kind of a row about a relation that is changed.
fn letter(way: Way) -> u8 {
    match way {
        Way::Insert => b'i',
        Way::Update => b'u',
        Way::Delete => b'd',
        Way::Truncate => b'c',
        Way::TruncateCascade => b'e',
        Way::Refresh => b'x',
    }
}

/// Writes the question about these statements; with `hidden`, also that about words.
pub fn question<'a>(statements: impl Iterator<Item = Subject<'a>>, hidden: bool) -> Vec<u8> {
    let (mut names, mut changes) = (Vec::new(), false);
    for (number, subject) in statements.enumerate() {
        changes |= subject.targets.is_some();
        subject.rows(|kind, name| {
            let separator = if names.is_empty() { "" } else { "," };
            names.extend_from_slice(format!("{separator}({number},'{}',", kind as char).as_bytes());
            write_literal(&mut names, name.as_bytes());
            names.push(b')');
        });
    }
    if names.is_empty() {
        names.extend_from_slice(NO_NAMES);
    }
    let mut text = if hidden { beside() } else { Vec::new() };
    for line in lines(QUESTION) {
        match (line.trim_end(), line.split_once("$names")) {
            ("$targets", _) if changes => text.extend(lines(TARGETS).flat_map(str::bytes)),
            ("$targets", _) => text.extend_from_slice(NO_TARGETS.as_bytes()),
            ("$changes", _) if changes => text.extend(lines(CHANGES).flat_map(str::bytes)),
            ("$changes", _) => {}
            (_, Some((head, rest))) => {
                text.extend([head.as_bytes(), &names, rest.as_bytes()].concat());
            }
            (_, None) => text.extend_from_slice(line.as_bytes()),
        }
    }
    if hidden {
        text.push(b')');
    }
    text
}

/// Returns the question about words and what joins another behind it.
fn beside() -> Vec<u8> {
    let hidden = lines(HIDDEN).flat_map(str::bytes);
    b"(".iter().copied().chain(hidden).chain(*b") UNION ALL (").collect()
}

/// The names of no statement.
const NO_NAMES: &[u8] = b"(-1,'s','')";

/// Returns the lines of SQL that are no comments, without indentation.
fn lines(sql: &str) -> impl Iterator<Item = &str> {
    sql.split_inclusive('\n').map(str::trim_start).filter(|line| !line.starts_with("--"))
}

/// The content of a row of the answer about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark<'a> {
    /// It is no read.
    No(Objection),
    /// Its result is not to be kept.
    Unkept(Unkept),
    /// Its result depends on the rows of the relation with this OID; its schema and its name, if
    /// they are UTF-8.
    Reads(u32, &'a str),
    /// It may change rows of the relation with this OID; its schema and its name.
    Writes(u32, &'a str),
    /// Its result depends on rows of a relation that is a partition or another child of the one
    /// with this OID.
    Below(u32),
    /// It may change rows of this relation and of all below it, also of those that come later.
    Through(u32),
    /// It may change anything in the database.
    Anything,
    /// The server is of this database. It is no remark on a statement.
    Database(DatabaseIdentity),
    /// Texts with this name may hide something; without a name, those with parameters of types of
    /// the user's. It is no remark on a statement either.
    Hidden(Hides, Option<&'a [u8]>),
}

/// Returns a row of the answer: the number of the statement, `None` for all of them, and the
/// remark. A remark that is not known here is [`Objection::Server`], and so is a row that is no
/// answer at all, for all statements.
pub fn remark(row: &[u8]) -> (Option<usize>, Remark<'_>) {
    if let Some(hidden) = row.strip_prefix(b"-1 hides ").and_then(hidden) {
        return (None, hidden);
    }
    let mut words = row.splitn(4, |byte| *byte == b' ').map(std::str::from_utf8);
    let mut word = || words.next().and_then(Result::ok);
    let number = word().and_then(|number| number.parse::<i64>().ok());
    let (Some(number), Some(said)) = (number, word()) else {
        return (None, Remark::No(Objection::Server));
    };
    let said = said_of(said, word(), word()).unwrap_or(Remark::No(Objection::Server));
    (usize::try_from(number).ok(), said)
}

/// Reads the rest of a row about a word. A name may be in any encoding.
fn hidden(rest: &[u8]) -> Option<Remark<'_>> {
    let (kind, name) = rest.split_first_chunk::<2>()?;
    let hides = match kind {
        b"u " => Hides::Volatile,
        b"w " => Hides::Writes,
        _ => return None,
    };
    Some(Remark::Hidden(hides, (!name.is_empty()).then_some(name)))
}

fn said_of<'a>(said: &str, oid: Option<&str>, name: Option<&'a str>) -> Option<Remark<'a>> {
    match (said, oid) {
        ("reads", Some(oid)) => Some(Remark::Reads(oid.parse().ok()?, name.unwrap_or_default())),
        ("writes", Some(oid)) => Some(Remark::Writes(oid.parse().ok()?, name.unwrap_or_default())),
        ("database", Some(cluster)) => {
            let (cluster, database) = (cluster.parse().ok()?, name?.parse().ok()?);
            Some(Remark::Database(DatabaseIdentity { cluster, database }))
        }
        ("below", Some(oid)) => Some(Remark::Below(oid.parse().ok()?)),
        ("through", Some(oid)) => Some(Remark::Through(oid.parse().ok()?)),
        (_, Some(_)) => None,
        ("anything", None) => Some(Remark::Anything),
        (_, None) => Objection::named(said)
            .map(Remark::No)
            .or_else(|| Unkept::named(said).map(Remark::Unkept)),
    }
}

/// Returns the OIDs of types as a Parse has them: their number, and then each of them.
pub(crate) fn oids(parameters: &[u8]) -> impl Iterator<Item = u32> {
    let oids = parameters.get(2..).unwrap_or_default().as_chunks().0;
    oids.iter().map(|oid| u32::from_be_bytes(*oid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_literals_and_statements_have_numbers() {
        let one = Mentioned { relations: vec!["\"o'clock\"".to_owned()], ..Mentioned::default() };
        let two = Mentioned { functions: vec!["g\\".to_owned()], ..Mentioned::default() };
        let own = [&[0, 2][..], &FIRST_OWN.to_be_bytes(), &TIMETZ.to_be_bytes()].concat();
        let target = [Target { relation: "t".to_owned(), way: Way::Update }];
        let asked = |targets| {
            let one = Subject { mentioned: &one, targets: None, parameters: &[0, 0] };
            let two = Subject { mentioned: &two, targets, parameters: &own };
            String::from_utf8(question([one, two].into_iter(), false)).unwrap()
        };
        let names = r#"(0,'s',''),(0,'r','"o''clock"'),(1,'s',''),(1,'f', E'g\\'),"#;
        let (read, write) = (asked(None), asked(Some(&target[..])));
        assert!(read.contains(&format!("{names}(1,'p',''),(1,'t','timetz')),")), "{read}");
        assert!(write.contains(&format!("{names}(1,'u','t'),(1,'p',''),")), "{write}");
        assert!(!read.contains("'anything'") && write.contains("'anything'"));
        assert!(!read.contains("$names") && !write.contains("$names"));
    }

    #[test]
    fn what_is_hidden_is_asked_beside_the_question() {
        let text = String::from_utf8(question(std::iter::empty(), true)).unwrap();
        assert!(text.starts_with("(WITH RECURSIVE") && text.ends_with(')'), "{text}");
        assert!(text.contains("m(n, k, t) AS (VALUES (-1,'s','')),"), "{text}");
        assert_eq!(text.matches("-1 hides ").count(), 1);
    }

    #[test]
    fn rows_of_the_answer() {
        assert_eq!(remark(b"3 volatile"), (Some(3), Remark::No(Objection::Volatile)));
        assert_eq!(remark(b"-1 cast"), (None, Remark::No(Objection::Cast)));
        let identity = DatabaseIdentity { cluster: 7_000_000_000_000_000_000, database: 5 };
        let database = (None, Remark::Database(identity));
        assert_eq!(remark(b"-1 database 7000000000000000000 5"), database);
        assert_eq!(remark(b"-1 database 7"), (None, Remark::No(Objection::Server)));
        assert_eq!(remark(b"0 what"), (Some(0), Remark::No(Objection::Server)));
        assert_eq!(remark(b"1 date-word"), (Some(1), Remark::Unkept(Unkept::Word)));
        assert_eq!(remark(b"1 reads 70000 a.b c"), (Some(1), Remark::Reads(70000, "a.b c")));
        assert_eq!(remark(b"1 reads 7 a.\xff"), (Some(1), Remark::Reads(7, "")));
        assert_eq!(remark(b"1 writes 7 a.b"), (Some(1), Remark::Writes(7, "a.b")));
        assert_eq!(remark(b"1 anything"), (Some(1), Remark::Anything));
        assert_eq!(remark(b"1 below 7"), (Some(1), Remark::Below(7)));
        assert_eq!(remark(b"1 through 7"), (Some(1), Remark::Through(7)));
        assert_eq!(remark(b"1 reads t"), (Some(1), Remark::No(Objection::Server)));
        assert_eq!(
            remark(b"-1 hides u a b"),
            (None, Remark::Hidden(Hides::Volatile, Some(b"a b")))
        );
        assert_eq!(
            remark(b"-1 hides w \xe9"),
            (None, Remark::Hidden(Hides::Writes, Some(b"\xe9")))
        );
        assert_eq!(remark(b"-1 hides w "), (None, Remark::Hidden(Hides::Writes, None)));
        assert_eq!(remark(b"-1 hides x a"), (None, Remark::No(Objection::Server)));
        for row in [&b"volatile"[..], b"4711", b"one anything", b"\xff 1", b""] {
            assert_eq!(remark(row), (None, Remark::No(Objection::Server)));
        }
    }
}
