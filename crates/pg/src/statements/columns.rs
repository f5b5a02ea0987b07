//! The columns that a statement returns, and which copies of it a client may be given for the one it prepared.
//!
//! PostgreSQL settles them at the client's Parse, and refuses the statement from then on where they have changed, whatever
//! the client has described (`fixed_result` in plancache.c): a driver decodes rows by what it saw once. Each server keeps
//! to that for the copy that it has, and for that one only. So every copy has the columns that its own Parse found, every
//! client those that its Parse found, and a client is given only a copy with the same.

/// What a Parse found that a statement returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Nothing, or what cannot change.
    #[default]
    Fixed,
    /// Not known yet: what the Parse of this list of outstanding requests entry of this server found.
    Of {
        /// The server's serial.
        server: u64,
        /// The number of the entry.
        parse: u64,
    },
    /// These.
    Known(Shape),
}

/// Hashes of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Of their names and types.
    pub(crate) types: u64,
    /// Of their names, types and type modifiers; zero where only a portal was described: the planner may know less, or
    /// more, of a modifier.
    pub(crate) whole: u64,
}

/// A copy of a statement that a server has: what its Parse found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// What it returns.
    pub(crate) columns: Columns,
    /// A hash of the types of its parameters; zero while nobody has asked.
    pub(crate) parameters: u64,
    /// The number of the list of outstanding requests entry that says what it returns; zero while nobody has asked.
    pub(crate) asked: u64,
}

impl Columns {
    /// The number of the Parse's list of outstanding requests entry whose columns are not known.
    pub(crate) fn parse(self) -> Option<u64> {
        match self {
            Self::Of { parse, .. } => Some(parse),
            Self::Fixed | Self::Known(_) => None,
        }
    }

    /// Whether two are the same; `None` where that is not known.
    pub(crate) fn agree(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Known(one), Self::Known(two)) => {
                let exact = one.whole == two.whole || one.whole == 0 || two.whole == 0;
                Some(one.types == two.types && exact)
            }
            (one, two) if one == two => Some(true),
            (Self::Fixed, _) | (_, Self::Fixed) => Some(true),
            (Self::Of { .. }, _) | (_, Self::Of { .. }) => None,
        }
    }
}

/// Statements that return rows whose columns hang on the schema.
const RETURNS: &[&str] = &["call", "select", "table", "values", "with"];
/// Those that do with RETURNING.
const MAY_RETURN: &[&str] = &["delete", "insert", "merge", "update"];

/// Whether what a text returns may change with the schema. What EXPLAIN and SHOW return is always the same; of FETCH and
/// EXECUTE it is settled at their Parse, and never looked at again. In doubt it may.
pub(crate) fn may_change(text: &[u8]) -> bool {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b'(');
    let text = &text[start.unwrap_or(text.len())..];
    let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    let word = &text[..end];
    let among = |words: &[&str]| words.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()));
    let returning = || text.windows(9).any(|word| word.eq_ignore_ascii_case(b"returning"));
    // A comment, perhaps.
    let unclear = word.is_empty() && !text.is_empty();
    unclear || among(RETURNS) || among(MAY_RETURN) && returning()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(types: u64, whole: u64) -> Columns {
        Columns::Known(Shape { types, whole })
    }

    #[test]
    fn modifiers_count_where_both_are_known() {
        assert_eq!(known(1, 1).agree(known(1, 1)), Some(true));
        assert_eq!(known(1, 1).agree(known(1, 2)), Some(false));
        assert_eq!(known(1, 1).agree(known(1, 0)), Some(true));
        assert_eq!(known(1, 0).agree(known(2, 0)), Some(false));
    }

    #[test]
    fn what_one_parse_found_is_the_same_even_unknown() {
        let of = |server, parse| Columns::Of { server, parse };
        assert_eq!(of(1, 1).agree(of(1, 1)), Some(true));
        assert_eq!(of(1, 1).agree(of(2, 1)), None);
        assert_eq!(of(1, 1).agree(known(1, 1)), None);
        assert_eq!(of(1, 1).agree(Columns::Fixed), Some(true));
    }

    #[test]
    fn texts_that_return_what_hangs_on_the_schema() {
        let returns = [
            "select 1",
            "call p()",
            " ((VALUES (1)))",
            "table t",
            "with a as (select 1) select * from a",
            "insert into t values (1) Returning *",
            "/* a comment */ select 1",
            "-- one\nselect 1",
        ];
        for text in returns {
            assert!(may_change(text.as_bytes()), "{text}");
        }
        for text in ["", "insert into t values (1)", "update t set a = 1", "show all", "begin"] {
            assert!(!may_change(text.as_bytes()), "{text}");
        }
        for text in ["explain select 1", "fetch c", "execute q", "delete from t"] {
            assert!(!may_change(text.as_bytes()), "{text}");
        }
    }
}
