//! Passes: differences in the order of replies that the test allows, each with its reason.

use crate::features::Features;
use crate::ledger::SQL_EXECUTES;
use crate::reply::Frame;

/// Differences that no [`crate::mask::Mask`] can hide, because they concern the order of frames.
/// Most of them end the episode, since the state of the two sessions may differ from then on.
pub const PASSES: [(&str, &str); 15] = [
    (
        "describe-stale",
        "Describe of a stale statement sends 't' before its error; a Parse that the proxy puts in \
         front fails without it (E44)",
    ),
    (
        "aborted-describe",
        "in an aborted transaction Bind reports wrong parameters first, and Describe of a statement \
         without rows succeeds; a Parse that the proxy puts in front fails, and an EXECUTE that it \
         has parsed again may have rows (docs/decisions/0018)",
    ),
    (
        "gone-describe",
        "Describe of a statement without rows succeeds although a table or type that it names is \
         gone; a Parse that the proxy puts in front fails. An EXECUTE of what is gone that the \
         proxy has parsed again has no rows (docs/decisions/0018)",
    ),
    (
        "gone-bind",
        "Bind and EXECUTE report wrong parameters or a wrong portal before a table or type that is \
         gone, or row security that is off, and Parse of EXECUTE reports neither; a Parse that the \
         proxy puts in front reports the latter",
    ),
    (
        "plan-choice",
        "PostgreSQL may find an error in a parameter's value when it plans, in Bind or EXPLAIN; from \
         the sixth use on it may plan without values, and each session counts its own uses (E62)",
    ),
    (
        "copy-intruder",
        "a message amid COPY data ends the session, and the error has the message's type; the first \
         of two pipelined messages may be one that the proxy put in front, and the last error may \
         be the proxy's",
    ),
    (
        "pipeline-warning",
        "a missing transaction block is neither a warning nor an error if a statement, which may be \
         the proxy's, came before in the pipeline",
    ),
    (
        "stale-plan",
        "one side alone reports a stale plan: with feature `stale`, another server has no old plan \
         (E67)",
    ),
    (
        "internal-pipeline",
        "PostgreSQL refuses a command that must stand alone in a pipeline if the proxy has to set a \
         statement's environment before it: that takes commands of the proxy's (E57)",
    ),
    (
        "late-snapshot",
        "Describe analyses a statement again, with a snapshot, if the schema has changed since its \
         Parse; another server, which parsed it later, takes no snapshot",
    ),
    (
        "late-folding",
        "a generic plan folds no constants: an error in a constant comes after the columns, or not \
         at all if no row needs the constant (docs/autoprepare.md)",
    ),
    (
        "rows-before-error",
        "the plan decides how many rows come before the same error in a value, and a generic plan \
         may be another plan (docs/autoprepare.md)",
    ),
    (
        "beyond-limit",
        "the plan decides whether values are computed for rows beyond a LIMIT or for rows that \
         another condition leaves out, and a generic plan may be another plan (docs/autoprepare.md)",
    ),
    (
        "string-refused",
        "a query string fails as a whole if the proxy cannot parse a statement again that one of its \
         commands executes; directly the commands before it run first (docs/decisions/0018)",
    ),
    (
        "stale-formats",
        "Bind reports that the columns have changed before a wrong number of result formats; the \
         proxy's copy, which was parsed under the client's new path, has the new columns (E67)",
    ),
];

/// Whether the proxied side sends an error in the place of a ParameterDescription that an error
/// follows directly.
#[must_use]
pub fn describe_failed_early(now: &Frame, next: Option<&Frame>, proxied: &Frame) -> bool {
    now.tag == b't' && proxied.tag == b'E' && next.is_some_and(|next| next.tag == b'E')
}

/// Whether only the direct side warns that there is no transaction block.
#[must_use]
pub fn warned_only(now: &Frame, next: Option<&Frame>, proxied: &Frame) -> bool {
    let warning = now.tag == b'N' && now.field(b'C') == b"25P01";
    warning && proxied.tag != b'N' && next.is_some_and(|next| next.tag == proxied.tag)
}

/// True for a reply that comes after PostgreSQL has planned a statement: BindComplete, the columns
/// or the plan of EXPLAIN, or an error in the formats of Bind.
fn is_planned(frame: &Frame) -> bool {
    let explains = || frame.tag == b'T' && frame.body.windows(10).any(|it| it == b"QUERY PLAN");
    let plan = || frame.tag == b'D' && frame.body == b"\0\x01\0\0\0\x06Result";
    frame.tag == b'2'
        || explains()
        || plan()
        || frame.tag == b'E' && frame.field(b'R') == b"PortalSetResultFormat"
}

/// True for the error that refuses a change of the transaction's mode because the transaction has
/// already taken a snapshot.
fn comes_late(frame: &Frame) -> bool {
    let late = frame.field(b'M').ends_with(b"before any query");
    frame.tag == b'E' && frame.field(b'C') == b"25001" && late
}

/// True for an error about an object that is no longer in the schema or the search path, or that
/// row security guards.
fn is_gone(frame: &Frame) -> bool {
    let gone: [&[u8]; 5] = [b"3F000", b"42704", b"42703", b"42883", b"42P01"];
    let hidden = frame.field(b'R') == b"check_enable_rls";
    frame.tag == b'E' && (hidden || gone.contains(&frame.field(b'C')))
}

/// True if a string of several commands fails as a whole for a statement that one of them executes.
/// The error of a Parse that the proxy puts in front has no position.
fn string_refused(direct: &Frame, answers: u8, proxied: &Frame) -> bool {
    let refused = is_gone(proxied) && proxied.field(b'P').is_empty();
    refused && answers == SQL_EXECUTES && direct.tag != b'Z'
}

/// Returns the index of the pass that allows this difference.
#[must_use]
pub fn pass(direct: &Frame, answers: u8, proxied: &Frame, features: &Features) -> Option<usize> {
    if string_refused(direct, answers, proxied) {
        return Some(13);
    }
    let fails = |frame: &Frame, code: &[u8]| frame.tag == b'E' && frame.field(b'C') == code;
    let by = |routine: &[u8]| fails(proxied, b"25P02") && proxied.field(b'R') == routine;
    let in_front = by(b"exec_parse_message");
    if direct.tag == b't' && by(b"exec_describe_statement_message") {
        return Some(1);
    }
    if (direct.tag == b't' || fails(direct, b"08P01")) && in_front {
        return Some(1);
    }
    let gone = is_gone(proxied);
    let forgotten = fails(direct, b"26000") && direct.field(b'R') == b"FetchPreparedStatement";
    if direct.tag == b't' && gone || answers == b'D' && forgotten && proxied.tag == b'n' {
        return Some(2);
    }
    let misread = direct.tag == b'E'
        && (["08P01", "42P03"].iter().any(|code| fails(direct, code.as_bytes()))
            || direct.field(b'C').starts_with(b"22")
            || direct.field(b'R') == b"EvaluateParams");
    // The error of a Parse that the proxy puts in front has no position.
    let lent = direct.tag == b'1' && proxied.field(b'P').is_empty();
    if (misread || lent) && gone {
        return Some(3);
    }
    let divides = |frame: &Frame| frame.tag == b'E' && frame.field(b'C').starts_with(b"22");
    if is_planned(direct) && divides(proxied) || is_planned(proxied) && divides(direct) {
        return Some(4);
    }
    let words: [&[u8]; 2] =
        [b"unexpected message type 0x", b"terminating connection because protocol synchronization"];
    let intruded = |frame: &Frame| words.iter().any(|it| frame.field(b'M').starts_with(it));
    if fails(direct, b"08P01") && fails(proxied, b"08P01") && intruded(direct) && intruded(proxied)
    {
        return Some(5);
    }
    if fails(direct, b"25P01") && !fails(proxied, b"25P01") {
        return Some(6);
    }
    if comes_late(direct) != comes_late(proxied) {
        return Some(9);
    }
    if fails(direct, b"0A000") && proxied.field(b'R') == b"PortalSetResultFormat" {
        return Some(14);
    }
    let alone = proxied.field(b'R') == b"PreventInTransactionBlock";
    if direct.tag == b'C' && fails(proxied, b"25001") && alone {
        return Some(8);
    }
    let stale = ["0A000", "42804", "42883", "42P18", "XX000", "42704", "42703", "26000"];
    let one_stale =
        stale.iter().any(|code| fails(direct, code.as_bytes()) != fails(proxied, code.as_bytes()));
    // Without an error the replies have the new shape: RowDescription, ParameterDescription, rows.
    let shape = direct.tag == proxied.tag && matches!(direct.tag, b'T' | b't' | b'D');
    (features.has("stale") && (one_stale || shape)).then_some(7)
}
