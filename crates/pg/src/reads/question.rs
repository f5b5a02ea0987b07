//! The question about reads: Refrain asks a server whether statements are reads, by the names that
//! they mention.
//!
//! It is one query for several statements. Each row of the answer is the number of a statement and
//! an objection to it; a negative number means all of them. A name stands for everything in the
//! database that has it: if one function of the name is volatile, in whatever schema, the statement
//! is no read. What any statement may run without naming it (a cast, the function of an operator
//! class, the input function of a type) must not be volatile anywhere in the database.
//!
//! The label of a function is trusted, as PostgreSQL's planner trusts it. PostgreSQL itself refuses
//! writes in a function that is not volatile, but not a call of another function that is.
//!
//! The query sees through views: their rules name relations and functions by OID.

use refrain_sql::reads::{Mentioned, Objection};

use crate::settings::session::write_literal;

/// The first OID that is not the system's own.
const FIRST_OWN: u32 = 16384;

/// The question, in which the mentioned names are missing.
const QUESTION: &str = include_str!("question.sql");

/// The place of the mentioned names in [`QUESTION`].
const NAMES: &str = "$names";

/// Writes the question about these statements. Each comes with the types of its parameters as its
/// Parse gives them.
pub(crate) fn question<'a>(statements: impl Iterator<Item = (&'a Mentioned, &'a [u8])>) -> Vec<u8> {
    let (head, rest) = QUESTION.split_once(NAMES).unwrap_or_default();
    let mut text = Vec::new();
    without_comments(head, &mut text);
    for (number, (mentioned, parameters)) in statements.enumerate() {
        let mut row = |kind: u8, name: &str| {
            let separator = if text.ends_with(b")") { "," } else { "" };
            text.extend_from_slice(format!("{separator}({number},'{}',", kind as char).as_bytes());
            write_literal(&mut text, name.as_bytes());
            text.push(b')');
        };
        // A statement that mentions nothing is asked about as well.
        row(b's', "");
        let Mentioned { relations, with, functions, fields, operators, types } = mentioned;
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
        if has_own_type(parameters) {
            row(b'p', "");
        }
    }
    without_comments(rest, &mut text);
    text
}

/// Writes SQL without the lines that are comments, and without indentation.
fn without_comments(sql: &str, out: &mut Vec<u8>) {
    let lines = sql.split_inclusive('\n').map(str::trim_start);
    lines
        .filter(|line| !line.starts_with("--"))
        .for_each(|line| out.extend_from_slice(line.as_bytes()));
}

/// The remark of a row of the answer about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// It is no read.
    No(Objection),
    /// It may show the present time, or what is the session's own.
    Present,
}

/// Returns a row of the answer: the number of the statement, `None` for all of them, and the
/// remark. A remark that is not known here is [`Objection::Server`], and so is a row that is no
/// answer at all, for all statements.
pub(crate) fn remark(row: &[u8]) -> (Option<usize>, Remark) {
    let row = std::str::from_utf8(row).unwrap_or_default();
    let parts = row.split_once(' ').map(|(number, name)| (number.parse::<i64>(), name));
    let Some((Ok(number), name)) = parts else { return (None, Remark::No(Objection::Server)) };
    let remark = match name {
        "present" => Remark::Present,
        name => Remark::No(Objection::named(name).unwrap_or(Objection::Server)),
    };
    (usize::try_from(number).ok(), remark)
}

/// True if a type among these is not the system's own. They are as a Parse has them: their number,
/// and the OID of each.
fn has_own_type(parameters: &[u8]) -> bool {
    let oids = parameters.get(2..).unwrap_or_default().as_chunks().0;
    oids.iter().any(|oid| u32::from_be_bytes(*oid) >= FIRST_OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_literals_and_statements_have_numbers() {
        let one = Mentioned { relations: vec!["\"o'clock\"".to_owned()], ..Mentioned::default() };
        let two = Mentioned { functions: vec!["g\\".to_owned()], ..Mentioned::default() };
        let own = [&[0, 1][..], &FIRST_OWN.to_be_bytes()].concat();
        let text = question([(&one, &[0, 0][..]), (&two, &own)].into_iter());
        let text = String::from_utf8(text).unwrap();
        let names =
            r#"(VALUES (0,'s',''),(0,'r','"o''clock"'),(1,'s',''),(1,'f', E'g\\'),(1,'p','')),"#;
        assert!(text.contains(names), "{text}");
        assert!(!text.contains(NAMES), "{text}");
    }

    #[test]
    fn rows_of_the_answer() {
        assert_eq!(remark(b"3 volatile"), (Some(3), Remark::No(Objection::Volatile)));
        assert_eq!(remark(b"-1 cast"), (None, Remark::No(Objection::Cast)));
        assert_eq!(remark(b"0 what"), (Some(0), Remark::No(Objection::Server)));
        assert_eq!(remark(b"1 present"), (Some(1), Remark::Present));
        for row in [&b"volatile"[..], b"4711", b"one present", b"\xff 1", b""] {
            assert_eq!(remark(row), (None, Remark::No(Objection::Server)));
        }
    }
}
