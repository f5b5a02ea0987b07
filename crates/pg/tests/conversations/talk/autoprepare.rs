//! One normalized query for conversations about autoprepare, with its analysis and its messages.

use refrain_sql::normalize::{Analysis, Edit, Mentions, Plan, Slot};

use super::lines::*;
use super::{Conversation, Party, options};

/// A text of the normalized query [`NORMALIZED`].
pub(crate) const TEXT: &str = "select a from t where b = 7";
/// Another text of it.
pub(crate) const OTHER_TEXT: &str = "select a from t where b = 12";
/// The text that is prepared for both.
pub(crate) const NORMALIZED: &str = "select a from t where b = $1";

/// Begins a conversation on one server, whose pool prepares queries seen this often.
pub(crate) fn autopreparing(threshold: u32) -> Conversation {
    Conversation::new(options(&format!(
        "pool_size = 1\nautoprepare = \"on\"\nautoprepare_threshold = {threshold}"
    )))
}

/// Returns the analysis of a text whose one literal becomes a parameter.
pub(crate) fn one_parameter(writes: &[&str]) -> Analysis {
    let writes = writes.iter().map(|table| (*table).to_owned()).collect();
    Analysis::Normalized(Plan {
        slots: Box::new([Slot::Parameter { oid: 0, edit: Edit::None }]),
        frozen: false,
        mentions: Mentions { writes, ..Mentions::default() },
    })
}

/// Returns the job that verifies a normalized query: the text as it was sent, the text that is to
/// be prepared, and a question to the catalogue.
pub(crate) fn verification(text: &str, normalized: &str, there: &str) -> Vec<Line> {
    [
        internal("'lock_timeout', '10ms'"),
        vec![
            close_statement("~aside"),
            parse("~aside", text),
            describe_statement("~aside"),
            close_statement("~aside"),
            parse_typed(there, normalized, &[0]),
            describe_statement(there),
        ],
        internal("'search_path'"),
        internal("SELECT why FROM"),
        vec![sync()],
    ]
    .concat()
}

/// Returns the server's answer to a verification: the columns of both texts, and objections.
pub(crate) fn verified(columns: [Line; 2], objections: &[&[&str]]) -> Vec<Line> {
    let [as_sent, prepared] = columns;
    [
        internal_answer(&[]),
        vec![close_complete(), parse_complete(), parameters(&[]), as_sent, close_complete()],
        vec![parse_complete(), parameters(&[23]), prepared],
        internal_answer(&[]),
        internal_answer(objections),
        vec![ready()],
    ]
    .concat()
}

/// Returns the messages that run the normalized query for a value, outside of transaction blocks.
pub(crate) fn run_with(value: &str) -> Vec<Line> {
    vec![bind_value("", "~1", value), describe_portal(""), execute(""), sync()]
}

/// Returns the server's answer to these messages.
pub(crate) fn run_answer() -> Vec<Line> {
    [vec![bind_complete()], one_row()].concat()
}

impl Party {
    /// Sends [`TEXT`], which is analysed, verified on the server and run there as a prepared
    /// statement.
    #[track_caller]
    pub(crate) fn has_autoprepared(&self, talk: &Conversation, server: &Party) {
        self.sends([query(TEXT)]);
        talk.analysed(talk.case(), one_parameter(&[]));
        server.gets(verification(TEXT, NORMALIZED, "~1"));
        server.answers(verified([columns(&["a"]), columns(&["a"])], &[]));
        server.gets(run_with("7")).answers(run_answer());
        self.gets(one_row());
    }
}

/// Returns the analysis of a text that keeps its literals; `starred` says whether `*` lists its
/// columns.
pub(crate) fn all_kept(starred: bool) -> Analysis {
    let mentions = Mentions { starred, ..Mentions::default() };
    Analysis::Normalized(Plan { slots: Box::new([]), frozen: false, mentions })
}

/// Returns the messages of a client that runs a text unnamed.
pub(crate) fn unnamed(text: &str, value: &str) -> Vec<Line> {
    vec![parse("", text), bind_value("", "", value), describe_portal(""), execute(""), sync()]
}

/// Returns the messages that a server gets in their place if it has the statement as `there`.
pub(crate) fn unnamed_by_name(there: &str, value: &str) -> Vec<Line> {
    vec![bind_value("", there, value), describe_portal(""), execute(""), sync()]
}

/// Returns a server's answer to them from its BindComplete on.
pub(crate) fn bound() -> Vec<Line> {
    [vec![bind_complete()], one_row()].concat()
}

/// Returns the client's answer to an unnamed statement.
pub(crate) fn parsed_and_bound() -> Vec<Line> {
    [vec![parse_complete()], bound()].concat()
}

/// Returns the job that verifies the text of an unnamed statement.
pub(crate) fn unnamed_verification(text: &str, there: &str) -> Vec<Line> {
    let mut asked = verification(text, text, there);
    let place = asked.iter().position(|line| *line == parse_typed(there, text, &[0]));
    asked[place.expect("it is prepared")] = parse(there, text);
    asked
}

impl Party {
    /// Sends [`NORMALIZED`] as an unnamed statement, which is analysed, verified on the server, and
    /// run by its name.
    #[track_caller]
    pub(crate) fn has_unnamed_prepared(&self, talk: &Conversation, server: &Party) {
        self.sends(unnamed(NORMALIZED, "7"));
        talk.analysed(talk.case(), all_kept(false));
        server.gets(unnamed_verification(NORMALIZED, "~1"));
        server.answers(verified([columns(&["a"]), columns(&["a"])], &[]));
        server.gets(unnamed_by_name("~1", "7")).answers(bound());
        self.gets(parsed_and_bound());
    }

    /// Runs an unnamed statement that the server gets as the client sent it.
    #[track_caller]
    pub(crate) fn runs_as_sent(&self, server: &Party, text: &str) {
        self.sends(unnamed(text, "7"));
        server.gets(unnamed(text, "7")).answers(parsed_and_bound());
        self.gets(parsed_and_bound());
    }
}
