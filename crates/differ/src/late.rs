//! Errors in values that a generic plan raises later than a plan with constants, or not at all.
//!
//! PostgreSQL evaluates constant expressions when it plans a query. Autoprepare replaces constants
//! by parameters, and PostgreSQL then plans the statement once and finds an error in a value when
//! the statement runs: after the description of the columns, after the first rows, or not at all
//! if no row needs the value. Of two errors the other may come first. `docs/autoprepare.md` says
//! so. No other difference is allowed: where the error is missing, the reply has no row either, or
//! the text has a branch that need not be taken.

use crate::reply::Frame;

/// Words of a text in which a value may not be needed although there are rows.
const BRANCHES: [&str; 12] = [
    " and ",
    " or ",
    "case ",
    "coalesce",
    "filter",
    "limit",
    "exists",
    "left join",
    "(select",
    " union ",
    " except ",
    " intersect ",
];

/// Whether an error may come late: an error in a value that answers a simple query.
#[must_use]
pub fn may_be_late(error: &Frame, answers: u8) -> bool {
    let of_value = error.field(b'C').starts_with(b"22")
        || error.field(b'M').starts_with(b"cannot convert infinity");
    error.tag == b'E' && answers == b'Q' && of_value
}

/// Whether a frame may come before a late error, or in the place of one.
#[must_use]
pub fn is_before(frame: &Frame) -> bool {
    matches!(frame.tag, b'T' | b'D' | b'C')
}

/// Whether the proxied side reports another error in a value than the direct side. The plan decides
/// which of two errors comes first. PostgreSQL never checks a domain while it plans, so a domain's
/// error may be the other error, but is not late itself.
#[must_use]
pub fn is_another(direct: &Frame, proxied: &Frame, answers: u8) -> bool {
    let differs = |field| direct.field(field) != proxied.field(field);
    let of_domain = answers == b'Q' && !proxied.field(b'd').is_empty();
    (of_domain || may_be_late(proxied, answers)) && (differs(b'C') || differs(b'M'))
}

/// Whether a query may fail that succeeds directly: PostgreSQL may compute a value for rows beyond
/// a LIMIT.
#[must_use]
pub fn is_beyond_limit(text: &[u8], proxied: &Frame, answers: u8) -> bool {
    may_be_late(proxied, answers)
        && String::from_utf8_lossy(text).to_lowercase().contains(" limit ")
}

/// Whether a query with these replies may succeed although PostgreSQL, asked directly, reports an
/// error in a constant.
#[must_use]
pub fn is_needless(text: &[u8], replies: &[Frame]) -> bool {
    let rows = replies.iter().any(|frame| frame.tag == b'D');
    let touched = replies.iter().any(|frame| frame.tag == b'C' && !ends_in_none(&frame.body));
    let text = String::from_utf8_lossy(text).to_lowercase();
    !rows && !touched || BRANCHES.iter().any(|word| text.contains(word))
}

/// Whether a command tag counts no row.
fn ends_in_none(tag: &[u8]) -> bool {
    tag.strip_suffix(b"\0").unwrap_or(tag).ends_with(b" 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_no_row_needs() {
        let none = [Frame::new(b'T', b"\0\0"), Frame::new(b'C', b"SELECT 0\0")];
        let one =
            [Frame::new(b'T', b"\0\0"), Frame::new(b'D', b"\0\0"), Frame::new(b'C', b"SELECT 1\0")];
        let updated = [Frame::new(b'C', b"UPDATE 10\0")];
        assert!(is_needless(b"select 'x'::int from t", &none));
        assert!(!is_needless(b"select 'x'::int from t", &one));
        assert!(!is_needless(b"update t set a = 'x'::int", &updated));
        assert!(is_needless(b"select CASE when a then 'x'::int end from t", &one));
    }

    #[test]
    fn of_two_errors_in_values_either_comes_first() {
        let infinity = Frame::new(b'E', b"C0A000\0Mcannot convert infinity to integer\0\0");
        let domain = Frame::new(b'E', b"C23514\0Mno\0dsmall\0\0");
        let table = Frame::new(b'E', b"C23514\0Mno\0tt\0\0");
        assert!(is_another(&infinity, &domain, b'Q') && !is_another(&infinity, &domain, b'B'));
        assert!(!is_another(&infinity, &table, b'Q') && !is_another(&domain, &domain, b'Q'));
        assert!(!may_be_late(&domain, b'Q'));
    }

    #[test]
    fn only_errors_in_values_are_late() {
        let error = |code: &str| Frame::new(b'E', format!("C{code}\0Mno\0\0").as_bytes());
        assert!(may_be_late(&error("22003"), b'Q') && !may_be_late(&error("22003"), b'B'));
        assert!(is_beyond_limit(b"select 1 LIMIT 2", &error("22003"), b'Q'));
        assert!(!is_beyond_limit(b"select 1", &error("22003"), b'Q'));
        assert!(!may_be_late(&error("42601"), b'Q') && !may_be_late(&error("0A000"), b'Q'));
    }
}
