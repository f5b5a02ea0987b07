//! Words and functions in an expression.

use refrain_sql::lex::TokenKind;

use crate::types::Type;

use super::{Guess, TypeReader, plain_name};

/// What a function yields.
enum Yields {
    Always(Type),
    /// What its arguments are, the first `usize` of them left out.
    Arguments(usize),
    /// The sum of its argument's type.
    Sum,
}

/// Functions that yield something else than text.
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
    /// A key word, a function or a column.
    pub(super) fn word(&mut self) -> Guess {
        if self.take_word(&["null"]) {
            Guess::Nothing
        } else if self.take_word(&["true", "false"]) {
            Guess::Is(Type::Bool)
        } else if self.take_word(&["current_timestamp"]) {
            Guess::Is(Type::Timestamptz)
        } else if self.take_word(&["current_date"]) {
            Guess::Is(Type::Date)
        } else if self.take_word(&["current_time"]) {
            Guess::Is(Type::Time)
        } else if self.take_word(&["case"]) {
            self.case()
        } else if self.is_word(0, &["cast"]) && self.kind(1) == Some(TokenKind::Open) {
            self.cast()
        } else if self.is_word(0, &["exists"]) && self.kind(1) == Some(TokenKind::Open) {
            self.at += 2;
            self.body();
            self.take(TokenKind::Close);
            Guess::Is(Type::Bool)
        } else if self.kind(1) == Some(TokenKind::Open) {
            self.function()
        } else {
            self.column()
        }
    }

    fn column(&mut self) -> Guess {
        let mut qualifier = None;
        let mut name = plain_name(self.bytes(0));
        self.at += 1;
        while self.take(TokenKind::Dot) {
            qualifier = Some(std::mem::replace(&mut name, plain_name(self.bytes(0))));
            self.at += 1;
            if self.kind(0) == Some(TokenKind::Open) {
                self.at -= 1; // `pg_catalog.f(…)`
                return self.function();
            }
        }
        self.tables.column(qualifier.as_deref(), &name).map_or(Guess::Nothing, Guess::Is)
    }

    fn case(&mut self) -> Guess {
        let base = if self.is_word(0, &["when"]) { Guess::Nothing } else { self.expression(0) };
        let mut all = Guess::Nothing;
        while self.take_word(&["when"]) {
            let condition = self.expression(0);
            self.unify(base, condition);
            self.take_word(&["then"]);
            let result = self.expression(0);
            all = self.unify(all, result);
        }
        if self.take_word(&["else"]) {
            let result = self.expression(0);
            all = self.unify(all, result);
        }
        self.take_word(&["end"]);
        all
    }

    fn cast(&mut self) -> Guess {
        self.at += 2;
        let inner = self.expression(0);
        self.take_word(&["as"]);
        let name = self.type_name();
        self.take(TokenKind::Close);
        let name = name.trim();
        // A parameter may be of any type; a result is what SQLite's cast makes of it.
        let wire = Type::named(name).unwrap_or_else(|| Type::declared(name));
        if let Guess::Parameter(_) = inner {
            self.unify(inner, Guess::Is(wire));
        }
        Guess::Is(Type::declared(name))
    }

    fn function(&mut self) -> Guess {
        let name = plain_name(self.bytes(0));
        self.at += 2;
        self.take_word(&["distinct"]);
        let star = self.take_operator(&["*"]);
        let empty = star || self.kind(0) == Some(TokenKind::Close);
        let arguments = if empty { Vec::new() } else { self.list(Guess::Nothing) };
        if self.take_word(&["order"]) {
            self.take_word(&["by"]);
            self.list(Guess::Nothing);
        }
        self.take(TokenKind::Close);
        self.tail();
        let known = FUNCTIONS.iter().find(|(names, _)| names.contains(&name.as_str()));
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

    /// `FILTER (…)` and `OVER …` behind a function.
    fn tail(&mut self) {
        while self.take_word(&["filter", "over"]) {
            if self.take(TokenKind::Open) {
                self.body();
                self.take(TokenKind::Close);
            } else {
                self.at += 1;
            }
        }
    }
}
