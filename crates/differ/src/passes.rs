//! What may differ in the order of replies, each with its reason.

use crate::features::Features;
use crate::ledger::SQL_EXECUTES;
use crate::reply::Frame;

/// Differences that are let pass without a [`crate::mask::Mask`], because they concern the order of
/// frames. Most end the episode, since the sessions may have parted.
pub const PASSES: [(&str, &str); 14] = [
    (
        "describe-stale",
        "PostgreSQL sends 't' before the error of a stale statement, a Parse put in \
      front by the proxy fails without it (E44)",
    ),
    (
        "aborted-describe",
        "in an aborted transaction a Bind says first that its parameters are wrong, and Describe of a statement without \
      rows succeeds; a Parse put in front cannot, nor is it known what Describe of an unnamed one, or of EXECUTE, would say",
    ),
    (
        "gone-describe",
        "Describe of a statement without rows succeeds though what it was analysed against is gone, \
      a Parse put in front cannot",
    ),
    (
        "gone-bind",
        "a Bind or EXECUTE whose parameters or portal are wrong says so before it is seen that what the statement was analysed \
      against is gone, and a Parse of EXECUTE does not look; a Parse put in front sees that first",
    ),
    (
        "plan-choice",
        "with the parameters' values PostgreSQL may see an error as it plans, in Bind or EXPLAIN; from the sixth use on \
      it may plan without them, and uses are counted per session (E62)",
    ),
    (
        "copy-intruder",
        "a message amid COPY data ends the session with its type in the words: of two pipelined ones the first \
      may be one that the proxy put in front",
    ),
    (
        "pipeline-warning",
        "that there is no transaction block is neither warned of nor a reason to refuse where a statement came before \
      in the pipeline, be it one of the proxy's",
    ),
    ("stale-plan", "0A000 on one side only: feature `stale`, another server has no old plan (E67)"),
    (
        "aside-pipeline",
        "a command that must stand alone is refused behind a statement that the proxy prepares amid the same pipeline \
      under the settings of its Parse: that takes commands (E57)",
    ),
    (
        "late-snapshot",
        "a statement that was prepared before a change of the schema is analysed anew when it is described, with a \
      snapshot; one that was prepared behind it on another server is not",
    ),
    (
        "late-folding",
        "a plan for all values folds no constants: an error in one comes behind the columns, or not at all where no row \
        needs it (docs/autoprepare.md)",
    ),
    (
        "rows-before-error",
        "how many rows come before the same error in a value is up to the plan, and one for all values may be another \
        (docs/autoprepare.md)",
    ),
    (
        "beyond-limit",
        "whether what is selected is computed for rows beyond a LIMIT, or that another condition leaves out, is up to \
        the plan, and one for all values may be another (docs/autoprepare.md)",
    ),
    (
        "lent-in-vain",
        "a query string of several commands is refused as a whole where a statement that one of them executes cannot be \
        parsed again; directly the commands before it run first (docs/decisions/0018)",
    ),
];

/// Whether an error comes in the place of a description that is followed by one.
#[must_use]
pub fn describe_failed_early(now: &Frame, next: Option<&Frame>, proxied: &Frame) -> bool {
    now.tag == b't' && proxied.tag == b'E' && next.is_some_and(|next| next.tag == b'E')
}

/// Whether a warning that there is no transaction block comes directly only.
#[must_use]
pub fn warned_only(now: &Frame, next: Option<&Frame>, proxied: &Frame) -> bool {
    let warning = now.tag == b'N' && now.field(b'C') == b"25P01";
    warning && proxied.tag != b'N' && next.is_some_and(|next| next.tag == proxied.tag)
}

/// True for what says that a statement was planned: its Bind, EXPLAIN EXECUTE, or what is looked at behind that.
fn is_planned(frame: &Frame) -> bool {
    let explains = || frame.tag == b'T' && frame.body.windows(10).any(|it| it == b"QUERY PLAN");
    frame.tag == b'2'
        || explains()
        || frame.tag == b'E' && frame.field(b'R') == b"PortalSetResultFormat"
}

/// True for what refuses a change of the transaction's nature because a snapshot has been taken.
fn comes_late(frame: &Frame) -> bool {
    let late = frame.field(b'M').ends_with(b"before any query");
    frame.tag == b'E' && frame.field(b'C') == b"25001" && late
}

/// True for an error about something that the schema, or the search path, has no longer.
fn is_gone(frame: &Frame) -> bool {
    let gone: [&[u8]; 5] = [b"3F000", b"42704", b"42703", b"42883", b"42P01"];
    frame.tag == b'E' && gone.contains(&frame.field(b'C'))
}

/// True where a string of several commands is refused as a whole for the statement that one of them executes. The error of what
/// the proxy puts in front has no position.
fn lent_in_vain(direct: &Frame, answers: u8, proxied: &Frame) -> bool {
    let refused = is_gone(proxied) && proxied.field(b'P').is_empty();
    refused && answers == SQL_EXECUTES && direct.tag != b'Z'
}

/// Which pass, by its index, lets this difference by.
#[must_use]
pub fn pass(direct: &Frame, answers: u8, proxied: &Frame, features: &Features) -> Option<usize> {
    if lent_in_vain(direct, answers, proxied) {
        return Some(13);
    }
    let fails = |frame: &Frame, code: &[u8]| frame.tag == b'E' && frame.field(b'C') == code;
    let in_front = fails(proxied, b"25P02") && proxied.field(b'R') == b"exec_parse_message";
    if (direct.tag == b't' || fails(direct, b"08P01")) && in_front {
        return Some(1);
    }
    let gone = is_gone(proxied);
    if direct.tag == b't' && gone {
        return Some(2);
    }
    let misread = direct.tag == b'E'
        && (["08P01", "42P03"].iter().any(|code| fails(direct, code.as_bytes()))
            || direct.field(b'C').starts_with(b"22")
            || direct.field(b'R') == b"EvaluateParams");
    // What the proxy puts in front has no position.
    let lent = direct.tag == b'1' && proxied.field(b'P').is_empty();
    if (misread || lent) && gone {
        return Some(3);
    }
    let divides = |frame: &Frame| frame.tag == b'E' && frame.field(b'C').starts_with(b"22");
    if is_planned(direct) && divides(proxied) || is_planned(proxied) && divides(direct) {
        return Some(4);
    }
    let intruded = |frame: &Frame| frame.field(b'M').starts_with(b"unexpected message type 0x");
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
    let alone = proxied.field(b'R') == b"PreventInTransactionBlock";
    if direct.tag == b'C' && fails(proxied, b"25001") && alone {
        return Some(8);
    }
    let stale = ["0A000", "42804", "42883", "42P18", "XX000", "42704", "42703", "26000"];
    let one_stale =
        stale.iter().any(|code| fails(direct, code.as_bytes()) != fails(proxied, code.as_bytes()));
    // Without an error the new shape shows: RowDescription, ParameterDescription or a row.
    let shape = direct.tag == proxied.tag && matches!(direct.tag, b'T' | b't' | b'D');
    (features.has("stale") && (one_stale || shape)).then_some(7)
}
