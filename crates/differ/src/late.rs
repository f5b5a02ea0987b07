//! What a plan for all values finds later than one for a constant, and what it does not find.
//!
//! PostgreSQL computes what is constant as it plans a text. A statement whose constants are parameters is planned once, and finds an error in
//! one as it runs: behind the description of its columns, behind rows that came first, or, where no row needs the value, not
//! at all; of two errors the other may come first. `docs/autoprepare.md` says so. Nothing else is let pass: where no error comes, no row
//! has come either, or the text has a branch that need not be taken.

use crate::reply::Frame;

/// Words of a text by which a value may not be needed though there are rows.
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

/// Whether an error may come late: one in a value, of a simple query.
#[must_use]
pub fn may_be_late(error: &Frame, answers: u8) -> bool {
    let of_value = error.field(b'C').starts_with(b"22")
        || error.field(b'M').starts_with(b"cannot convert infinity");
    error.tag == b'E' && answers == b'Q' && of_value
}

/// Whether a frame comes before an error that is late, or in its place.
#[must_use]
pub fn is_before(frame: &Frame) -> bool {
    matches!(frame.tag, b'T' | b'D' | b'C')
}

/// Whether another error in a value comes first: which of two does is up to the plan. What a domain refuses is never
/// computed as the text is planned, so it may be the other, but is not late itself.
#[must_use]
pub fn is_another(direct: &Frame, proxied: &Frame, answers: u8) -> bool {
    let differs = |field| direct.field(field) != proxied.field(field);
    let of_domain = answers == b'Q' && !proxied.field(b'd').is_empty();
    (of_domain || may_be_late(proxied, answers)) && (differs(b'C') || differs(b'M'))
}

/// Whether a query may fail that succeeds directly: a value may be computed for rows beyond those that are asked for.
#[must_use]
pub fn is_beyond_limit(text: &[u8], proxied: &Frame, answers: u8) -> bool {
    may_be_late(proxied, answers)
        && String::from_utf8_lossy(text).to_lowercase().contains(" limit ")
}

/// Whether a query may succeed that fails in a constant directly: its replies are these.
#[must_use]
pub fn is_needless(text: &[u8], replies: &[Frame]) -> bool {
    let rows = replies.iter().any(|frame| frame.tag == b'D');
    let touched = replies.iter().any(|frame| frame.tag == b'C' && !ends_in_none(&frame.body));
    let text = String::from_utf8_lossy(text).to_lowercase();
    !rows && !touched || BRANCHES.iter().any(|word| text.contains(word))
}

/// Whether a command says that it did something to no row.
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
