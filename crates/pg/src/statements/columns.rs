//! The columns that a statement returns, and which copies of the statement a client may be given.
//!
//! PostgreSQL settles the columns at the client's Parse. If they have changed later, it refuses the
//! statement, whatever the client has described (`fixed_result` in plancache.c): a driver decodes
//! rows by the columns that it saw once. Each server does so for the copy that it has, and for no
//! other. So every copy has the columns that its own Parse found, every client has those that the
//! client's Parse found, and Refrain gives a client only a copy with the same columns.

/// The columns that a Parse found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Columns {
    /// None, or columns that cannot change.
    #[default]
    Fixed,
    /// Not known yet: those that the Parse of this outstanding request of this server found.
    Of {
        /// The lower bits of the server's serial.
        server: u32,
        /// The number of the outstanding request.
        parse: u64,
    },
    /// These columns.
    Known(Shape),
}

/// Hashes of columns. It is packed so that [`Columns`] takes 16 bytes: a process has two of these
/// for each statement of each client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub(crate) struct Shape {
    /// A hash of their names and types.
    pub(crate) types: u64,
    /// A hash of their names, types and type modifiers; zero if only a portal was described: the
    /// planner may know less of a modifier, or more.
    pub(crate) whole: u32,
}

/// A server's copy of a statement: what its Parse found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The columns that it returns.
    pub(crate) columns: Columns,
    /// A hash of the types of its parameters; zero before a Describe.
    pub(crate) parameters: u32,
    /// The number of the outstanding request that will say which columns it returns; zero if there
    /// is none.
    pub(crate) asked: u64,
}

/// The columns and parameters that a client was told of a statement, while a server runs a new
/// copy of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The columns.
    pub(crate) columns: Columns,
    /// A hash of the types of parameters; zero for none.
    pub(crate) parameters: u32,
    /// The generation that the client was told of.
    pub(crate) generation: u32,
    /// Whether the copy has them, as far as is known.
    pub(crate) met: bool,
}

impl Expected {
    /// Nothing in particular.
    pub(crate) const ANYTHING: Self =
        Self { columns: Columns::Fixed, parameters: 0, generation: 0, met: true };

    /// Notes those that the copy has.
    pub(crate) fn compare(&mut self, columns: Columns, parameters: u32) {
        let told = self.parameters == 0 || self.parameters == parameters;
        self.met = told && self.columns.compare(columns) == Agreement::Same;
    }
}

/// Returns the mark of parameters whose types have this hash: half of its bits, and never zero.
pub(crate) fn of_parameters(hash: u64) -> u32 {
    (hash as u32).max(1)
}

impl Shape {
    /// Makes it of a hash of names and types, and of one of these and type modifiers.
    pub(crate) fn of_statement(types: u64, whole: u64) -> Self {
        Self { types, whole: whole as u32 | 1 }
    }

    /// Makes it of a hash of names and types.
    pub(crate) fn of_portal(types: u64) -> Self {
        Self { types, whole: 0 }
    }

    /// Bytes of [`Self::write`].
    pub(crate) const BYTES: usize = 12;

    /// Appends it to a reply that is kept.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.types.to_le_bytes());
        out.extend_from_slice(&self.whole.to_le_bytes());
    }

    /// Takes it from the end of a reply that was kept.
    pub(crate) fn take(out: &mut Vec<u8>) -> Option<Self> {
        let (rest, last) = out.split_last_chunk::<{ Self::BYTES }>()?;
        let (types, whole) = last.split_first_chunk::<8>()?;
        let whole = whole.first_chunk::<4>()?;
        let shape = Self { types: u64::from_le_bytes(*types), whole: u32::from_le_bytes(*whole) };
        let length = rest.len();
        out.truncate(length);
        Some(shape)
    }
}

/// The outcome of a comparison of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    Same,
    Other,
    /// The columns of one are not known.
    Unknown,
}

impl Columns {
    /// Makes the columns that the Parse of this outstanding request found at the server with this
    /// serial.
    pub(crate) fn of(server: u64, parse: u64) -> Self {
        Self::Of { server: server as u32, parse }
    }

    /// Returns the number of the Parse whose columns are not known, if these are such.
    pub(crate) fn parse(self) -> Option<u64> {
        match self {
            Self::Of { parse, .. } => Some(parse),
            Self::Fixed | Self::Known(_) => None,
        }
    }

    /// Compares the columns of two copies of a statement.
    pub(crate) fn compare(self, other: Self) -> Agreement {
        match (self, other) {
            (Self::Known(one), Self::Known(two)) => {
                let exact = one.whole == two.whole || one.whole == 0 || two.whole == 0;
                match one.types == two.types && exact {
                    true => Agreement::Same,
                    false => Agreement::Other,
                }
            }
            (one, two) if one == two => Agreement::Same,
            (Self::Fixed, _) | (_, Self::Fixed) => Agreement::Same,
            (Self::Of { .. }, _) | (_, Self::Of { .. }) => Agreement::Unknown,
        }
    }
}

/// Statements that return rows whose columns depend on the schema.
const RETURNS: &[&str] = &["call", "select", "table", "values", "with"];
/// Statements that do so with RETURNING.
const MAY_RETURN: &[&str] = &["delete", "insert", "merge", "update"];

/// True if the columns that a text returns may change with the schema, and in doubt. EXPLAIN and
/// SHOW always return the same; those of FETCH and EXECUTE are settled at their Parse, and never
/// looked at again.
pub(crate) fn may_change(text: &[u8]) -> bool {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b'(');
    let text = &text[start.unwrap_or(text.len())..];
    let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    let word = &text[..end];
    let among = |words: &[&str]| words.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()));
    let returning = || refrain_sql::has_word(text, b"returning");
    // A text that does not begin with a word may begin with a comment, and any statement behind
    // that.
    let unclear = word.is_empty() && !text.is_empty();
    unclear || among(RETURNS) || among(MAY_RETURN) && returning()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(types: u64, whole: u32) -> Columns {
        Columns::Known(Shape { types, whole })
    }

    #[test]
    fn modifiers_count_where_both_are_known() {
        assert_eq!(known(1, 1).compare(known(1, 1)), Agreement::Same);
        assert_eq!(known(1, 1).compare(known(1, 2)), Agreement::Other);
        assert_eq!(known(1, 1).compare(known(1, 0)), Agreement::Same);
        assert_eq!(known(1, 0).compare(known(2, 0)), Agreement::Other);
    }

    #[test]
    fn what_one_parse_found_is_the_same_even_unknown() {
        let of = |server, parse| Columns::Of { server, parse };
        assert_eq!(of(1, 1).compare(of(1, 1)), Agreement::Same);
        assert_eq!(of(1, 1).compare(of(2, 1)), Agreement::Unknown);
        assert_eq!(of(1, 1).compare(known(1, 1)), Agreement::Unknown);
        assert_eq!(of(1, 1).compare(Columns::Fixed), Agreement::Same);
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
