//! Functions and the types of their results.

use crate::types::Type;

use super::reader::{Guess, TypeReader};

/// The type of a function's result.
enum Yields {
    Always(Type),
    /// The type of its arguments, without the first `usize` of them.
    Arguments(usize),
    /// The type of a sum of its argument.
    Sum,
}

/// Functions whose result is not a text.
const FUNCTIONS: &[(&[&str], Yields)] = &[
    (
        &[
            "count",
            "length",
            "instr",
            "changes",
            "total_changes",
            "last_insert_rowid",
            "row_number",
            "rank",
            "dense_rank",
            "ntile",
            "unixepoch",
            "octet_length",
            "json_array_length",
            "unicode",
            "random",
            "sign",
            "json_valid",
            "pg_backend_pid",
            "glob",
            "like",
            "txid_current",
        ],
        Yields::Always(Type::Int8),
    ),
    (
        &[
            "avg",
            "total",
            "round",
            "julianday",
            "sqrt",
            "exp",
            "ln",
            "log",
            "log10",
            "log2",
            "power",
            "pow",
            "pi",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "radians",
            "degrees",
            "percent_rank",
            "cume_dist",
            "median",
        ],
        Yields::Always(Type::Float8),
    ),
    (&["randomblob", "zeroblob", "unhex"], Yields::Always(Type::Bytea)),
    (
        &["now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"],
        Yields::Always(Type::Timestamptz),
    ),
    (&["gen_random_uuid"], Yields::Always(Type::Uuid)),
    (
        &[
            "min",
            "max",
            "coalesce",
            "ifnull",
            "nullif",
            "abs",
            "lag",
            "lead",
            "first_value",
            "last_value",
            "nth_value",
            "likely",
            "unlikely",
            "ceil",
            "floor",
            "trunc",
            "ceiling",
        ],
        Yields::Arguments(0),
    ),
    (&["iif", "if"], Yields::Arguments(1)),
    (&["sum"], Yields::Sum),
];

impl TypeReader<'_> {
    /// Returns the type of a function's result.
    pub(super) fn yielded(&mut self, name: &str, arguments: &[Guess]) -> Guess {
        let known = FUNCTIONS.iter().find(|(names, _)| names.contains(&name));
        match known.map(|(_, yields)| yields) {
            Some(Yields::Always(is)) => Guess::Is(*is),
            Some(Yields::Arguments(skip)) => {
                let all = arguments.iter().skip(*skip).copied();
                let all: Vec<Guess> = all.collect();
                let together = all.iter().fold(Guess::Nothing, |a, b| self.unify(a, *b));
                all.iter().for_each(|guess| {
                    self.unify(*guess, together);
                });
                together
            }
            Some(Yields::Sum) => {
                let whole = matches!(arguments.first(), Some(Guess::Is(is)) if is.is_integer());
                Guess::Is(if whole { Type::Int8 } else { Type::Float8 })
            }
            None => Guess::Is(Type::Text),
        }
    }
}
