//! Reads: statements that a server may run for one client while it runs others for other clients,
//! and that may run twice.
//!
//! What: a read is one SELECT that leaves nothing behind in the session or in the database, shows
//! nothing of the session in which it runs, and locks no rows. [`may_be_read`] rules out by a scan
//! what is none. PostgreSQL's grammar rules out more and finds what the text mentions
//! ([`Mentioned`]), and the catalog decides about that. Whatever says that a text is no read is an
//! [`Objection`].
//!
//! What always holds: each objection is a row of one table, with its reason.

use crate::normalize::Reason;
use crate::scan::{Kind, Scan, scan_with};

/// The names in a text that decide whether it is a read. Relations are as SQL writes them; all
/// others are the last parts of the names, as the catalog has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentioned {
    /// The relations that it reads; a name of its own WITH may be among them.
    pub relations: Vec<String>,
    /// The names that its WITH clauses give, as `relations` has them.
    pub with: Vec<String>,
    /// Functions; `f(x)` may also be a cast to a type.
    pub functions: Vec<String>,
    /// Fields: `x.f` is `f(x)` if `x` has no field of that name.
    pub fields: Vec<String>,
    /// Operators.
    pub operators: Vec<String>,
    /// Types that it casts to.
    pub types: Vec<String>,
    /// Why its results are not to be kept, as far as the text shows.
    pub unkept: Option<Unkept>,
    /// Whether it may turn texts into dates or times as it runs.
    pub dates: bool,
}

macro_rules! reasons {
    ($(#[$doc:meta])* $type:ident $all:ident; $($name:ident $key:literal: $text:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $type {
            $(#[doc = $text] $name,)*
        }

        #[doc = concat!("All values of [`", stringify!($type), "`], each with its name and its text.")]
        pub static $all: &[($type, Reason)] =
            &[$(($type::$name, Reason { name: $key, text: $text })),*];

        impl $type {
            /// Returns its name and the reason, for operators.
            pub fn reason(self) -> &'static Reason {
                &$all[self as usize].1
            }

            /// Returns the one of this name.
            pub fn named(name: &str) -> Option<Self> {
                $all.iter().find(|(_, reason)| reason.name == name).map(|(it, _)| *it)
            }
        }
    };
}

reasons! {
    /// The reason why a statement is not a read.
    Objection OBJECTIONS;
    // What the text shows.
    Kind "kind": "the text is not a single SELECT without effects on its session";
    Syntax "syntax": "PostgreSQL's grammar does not take the text";
    Encoding "encoding": "the text is not read as UTF-8, and the grammar reads nothing else";
    Deep "depth": "expressions are nested too deep to be looked at";
    Into "into": "INTO creates a table";
    Locks "locks": "FOR UPDATE, FOR SHARE and the like lock rows";
    Writes "writes": "a query of WITH writes";
    Form "form": "the text has an expression that Refrain does not know, or samples a table";
    // What the catalog shows.
    Temporary "temporary": "a relation is temporary, and belongs to one session";
    Missing "missing": "there is no relation of this name";
    Relation "relation": "a relation is no table, materialized view or view, or a part of it is none";
    Catalog "catalog": "a system catalog may show the session";
    Policies "row-security": "row security may call any function";
    Locking "view-locks": "a view locks rows";
    Volatile "volatile": "a function, or a function behind an operator or a default of an argument, is volatile";
    Session "session": "a function shows the session, its server process or its transaction, or runs what its arguments say";
    Cast "cast": "the function of a cast in the database is volatile";
    Type "type": "an input or output function of a type in the database is volatile";
    Class "operator-class": "the function of an operator class in the database is volatile";
    Domain "domain": "a constraint of a domain in the database calls a volatile function, and the text may check it";
    Server "server": "the server refused the query about what the text mentions";
    Hidden "hidden-writes": "a word of the text may run a function that it does not call, and that may write";
}

reasons! {
    /// The reason why the result of a read is not to be kept. Of several, the last counts.
    Unkept UNKEPT;
    Stable "stable-function": "a function of the user's may read tables, or show the time or the session";
    Hidden "hidden-function": "a word of the text may run a volatile function that it does not call";
    Session "session-value": "the text asks for the user, the schema or the database of the session";
    Sample "sample": "a view samples a table";
    Column "system-column": "a system column shows where and when a row was written";
    Word "date-word": "a literal such as 'today' stands for another date each day";
    Text "date-text": "a view turns texts into dates, and a text may stand for the present";
    Clock "clock-function": "a function shows the time, the session or the catalog";
}

impl Objection {
    /// True if the text alone is the reason, so that no change of the schema ends it.
    pub fn is_of_text(self) -> bool {
        (self as u8) < Self::Temporary as u8
    }

    /// True if it may be of the moment. Another session may just have replaced the relation, and
    /// the server looked in between: it finds none, or an error of its catalog.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Missing | Self::Server)
    }
}

/// True if a text may be a read, as far as a scan shows.
pub fn may_be_read(scan: &Scan) -> bool {
    let selects = matches!(scan.kind, Kind::Select | Kind::With);
    selects && scan.statements == 1 && scan.traits.is_empty() && !scan.sets
}

/// Whether a text may be a read. Reads no more than its first word, if it begins with one.
pub fn text_may_be_read(text: &[u8], backslash: bool) -> bool {
    let text = text.trim_ascii_start();
    let begins_with =
        |word: &[u8]| text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    match text.first() {
        Some(first) if first.is_ascii_alphabetic() => {
            begins_with(b"select") || begins_with(b"with")
        }
        _ => may_be_read(&scan_with(text, backslash)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::scan;

    #[test]
    fn the_first_word_rules_most_texts_out() {
        for text in ["select 1", " \nWITH a AS (SELECT 1) TABLE a", "/* a */ select 1", "selects"] {
            assert!(text_may_be_read(text.as_bytes(), false), "{text}");
        }
        for text in ["", "set a = 1", "-- a\n insert into t values (1)", "/* a */ select 1; end"] {
            assert!(!text_may_be_read(text.as_bytes(), false), "{text}");
        }
    }

    #[test]
    fn each_objection_has_its_row() {
        for (index, (objection, reason)) in OBJECTIONS.iter().enumerate() {
            assert_eq!(*objection as usize, index);
            assert_eq!(Objection::named(reason.name), Some(*objection));
        }
        for (index, (unkept, reason)) in UNKEPT.iter().enumerate() {
            assert_eq!((*unkept as usize, unkept.reason().name), (index, reason.name));
            assert_eq!(Unkept::named(reason.name), Some(*unkept));
            assert_eq!(Objection::named(reason.name), None);
        }
        assert!(Objection::Form.is_of_text() && !Objection::Temporary.is_of_text());
    }

    #[test]
    fn a_scan_rules_out_what_acts() {
        for text in ["select 1", "with x as (select 1) select * from x", "SELECT now()"] {
            assert!(may_be_read(&scan(text.as_bytes())), "{text}");
        }
        let others = [
            "",
            "insert into t values (1)",
            "select 1; select 2",
            "select set_config('a.b', 'x', true)",
            "select pg_advisory_lock(1)",
            "select 1 into t",
            "begin",
        ];
        for text in others {
            assert!(!may_be_read(&scan(text.as_bytes())), "{text}");
        }
    }
}
