//! Reasons why a literal is kept, or why a text is not normalized.

/// A reason, as an operator reads it. Each stands once, in a table with a text that shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// A short name, for listings and counters.
    pub name: &'static str,
    /// The fact and why it matters, in a sentence without its full stop.
    pub text: &'static str,
}

/// Reasons why [`super::normalize`] refuses a text; each is the row of [`REFUSALS`] at the same
/// place.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    Utility,
    Several,
    Parameter,
    Unicode,
    Continued,
    Junk,
    LongName,
    Malformed,
    Many,
    Moving,
}

impl Refusal {
    pub(super) const fn row(self) -> &'static Reason {
        &REFUSALS[self as usize].0
    }

    #[cold]
    pub(super) fn reason<T>(self) -> Result<T, &'static Reason> {
        Err(self.row())
    }
}

const fn row(
    name: &'static str,
    text: &'static str,
    example: &'static str,
) -> (Reason, &'static str) {
    (Reason { name, text }, example)
}

/// All reasons for which the lexer alone refuses a text, with an example each; the last one is from
/// [`super::Plan::refuses`].
pub static REFUSALS: &[(Reason, &str)] = &[
    row(
        "utility",
        "only SELECT, VALUES, TABLE, INSERT, UPDATE, DELETE and MERGE have a plan to keep",
        "EXPLAIN SELECT 1",
    ),
    row(
        "several",
        "the text holds several statements, which cannot be prepared",
        "SELECT 1; SELECT 2",
    ),
    row("parameter", "the text has parameters of its own", "SELECT $1"),
    row("unicode", "U& strings and names are read by what follows them", r"SELECT U&'d\0061t'"),
    row("continued", "a string goes on after a newline", "SELECT 'a'\n'b'"),
    row(
        "number-junk",
        "letters or underscores follow a number: what that means depends on the server's version",
        "SELECT 1_000",
    ),
    row(
        "long-name",
        "the server would tell at each run, but of a prepared statement only once, that it cuts a name off",
        "SELECT 1 AS a234567890123456789012345678901234567890123456789012345678901234",
    ),
    row(
        "malformed",
        "the text holds what the server refuses, or did before version 16",
        "SELECT 'a",
    ),
    row(
        "many-literals",
        "the text has more literals than autoprepare_max_literals",
        "SELECT 1, 2, 3",
    ),
    row(
        "moving-time",
        "a kept string that says now, today, tomorrow or yesterday would stand still in a prepared statement",
        "SELECT 1 ORDER BY 'today'::date",
    ),
];
