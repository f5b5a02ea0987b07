//! Questions of clients at the console, and the replies as rows and words.
//!
//! A client asks in the messages of its protocol, and gets the reply in these. The console
//! (`admin`) knows none: the protocol takes the question out of a message, and writes the reply
//! into others.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use refrain_pool::ids::ClientSerial;

/// A call at the thread that answers.
pub(crate) enum Call {
    /// A client's query.
    Client(Question),
    /// A look of the dashboard.
    Dashboard(Glance),
}

/// A look of the dashboard at the program: all tables are of one moment.
pub(crate) struct Glance {
    pub(crate) at: Sight,
    /// The time up to which somebody waits for the answer.
    pub(crate) until: Instant,
    pub(crate) answer: Box<dyn FnOnce(Vec<Table>) + Send>,
}

impl Glance {
    /// Whether nobody waits any more.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.until <= now
    }
}

/// The things that a look is at.
pub(crate) enum Sight {
    /// Listings, by their names.
    Listings(Vec<&'static str>),
    /// The reasons for which a text is prepared, shared and cached, or not.
    Text(String),
    /// The same for the normalized query that is shown as this text.
    Template(String),
    /// The same for the shared statement of this number.
    Statement(u64),
}

/// A query of a client of the console.
pub(crate) struct Question {
    pub(crate) client: ClientSerial,
    pub(crate) user: Arc<str>,
    /// True if the user may run commands that change something.
    pub(crate) admin: bool,
    pub(crate) query: String,
    /// True if the client wants to know the columns alone: the command takes no effect.
    pub(crate) describes: bool,
    pub(crate) answer: Answer,
}

/// Passes a reply on to the client.
pub(crate) type Answer = Box<dyn FnOnce(Reply) + Send>;

/// A reply: its parts in order.
pub(crate) type Reply = Vec<Part>;

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Rows(Table),
    Notice {
        text: Cow<'static, str>,
        /// More than the text says; empty if there is no more.
        detail: String,
    },
    /// A command has been carried out, with the tag that a client gets.
    Done(Cow<'static, str>),
    /// A query without a command.
    Nothing,
    Refused(Refusal),
}

/// Rows of values in words, `None` for null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Heading>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

impl Table {
    /// Makes a table of one text.
    pub(crate) fn of(name: &'static str, value: &str) -> Self {
        let heading = Heading { name: name.into(), kind: Kind::Text };
        Self { columns: vec![heading], rows: vec![vec![Some(value.to_owned())]] }
    }
}

/// The name of a column, and the kind of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
}

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// An integer of four bytes.
    Int4,
    /// An integer of eight bytes.
    Int8,
    /// A number of any size.
    Numeric,
    /// A number with a floating point, of eight bytes.
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "only a SELECT has such values")
    )]
    Float8,
}

/// The error with which a command is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }

    /// Makes error 42601, `syntax_error`.
    pub(crate) fn syntax(command: &str) -> Self {
        Self::new("42601", format!("invalid command '{command}', use SHOW HELP;"))
    }

    /// Makes error 42601 with the command that was probably meant, if there is one.
    pub(crate) fn meant(command: &str, meant: Option<String>) -> Self {
        let Some(meant) = meant else { return Self::syntax(command) };
        let meant = meant.trim().to_uppercase();
        Self::new("42601", format!("invalid command '{command}'; did you mean {meant}?"))
    }

    /// Makes error 42501, `insufficient_privilege`.
    pub(crate) fn not_allowed() -> Self {
        Self::new("42501", "admin access needed")
    }

    /// Makes error 3D000, `invalid_catalog_name`, with the database that was probably meant.
    pub(crate) fn no_database(name: &str, meant: Option<&str>) -> Self {
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        Self::new("3D000", format!("no such database: {name}{meant}"))
    }

    /// Makes error 42704, `undefined_object`, with the option that was probably meant.
    pub(crate) fn no_option(name: &str, meant: Option<&str>) -> Self {
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        Self::new("42704", format!("no such option: {name}{meant}"))
    }

    /// Makes error 57P01, `admin_shutdown`.
    pub(crate) fn ending() -> Self {
        Self::new("57P01", "the program is about to end")
    }

    /// Makes error 57014, `query_canceled`.
    pub(crate) fn undone() -> Self {
        Self::new("57014", "the database was resumed meanwhile")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_look_is_over_when_nobody_waits_any_more() {
        let until = Instant::now();
        let at = Sight::Listings(Vec::new());
        let glance = Glance { at, until, answer: Box::new(drop) };
        assert!(glance.is_over(until));
        assert!(!glance.is_over(until - Duration::from_millis(1)));
    }

    #[test]
    fn a_refusal_says_what_was_probably_meant() {
        let message = |refusal: Refusal| refusal.message;
        let meant = Refusal::meant("show x", Some("show mem ".to_owned()));
        assert_eq!(message(meant), "invalid command 'show x'; did you mean SHOW MEM?");
        assert_eq!(message(Refusal::meant("x", None)), "invalid command 'x', use SHOW HELP;");
        let database = Refusal::no_database("shpo", Some("shop"));
        assert_eq!(message(database), "no such database: shpo; did you mean shop?");
        assert_eq!(message(Refusal::no_database("x", None)), "no such database: x");
    }
}
