//! Facts of `information_schema` that a CREATE TABLE statement alone has: constraints, and defaults
//! with PostgreSQL's syntax.

use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::dialect::{COMPUTES, KeyMark};
use crate::failure::{Failure, state};
use crate::types::Type;

/// A constraint: its name, its kind, and the columns of the table that it names.
struct Constraint {
    name: String,
    kind: &'static str,
    columns: Vec<String>,
}

/// Writes a default with PostgreSQL's syntax.
pub(crate) fn default_of(sql: &str, is: Type) -> String {
    let inside = sql.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(sql);
    match (is, inside) {
        (Type::Bool, "0") => "false".to_owned(),
        (Type::Bool, "1") => "true".to_owned(),
        _ if inside.starts_with('\'') && inside.ends_with('\'') => {
            format!("{inside}::{}", is.name())
        }
        _ => inside.to_owned(),
    }
}

/// Returns the constraints of a table. Constraints of one name get numbers, as in the server.
fn all(sql: &str, table: &str) -> Vec<Constraint> {
    let marked = KeyMark::read(sql).is_some();
    let mut all: Vec<Constraint> = Vec::new();
    for mut it in elements(sql).iter().flat_map(|tokens| of_element(sql, tokens, table, marked)) {
        let (plain, mut number) = (it.name.clone(), 0);
        while all.iter().any(|known| known.name == it.name) {
            number += 1;
            it.name = format!("{plain}{number}");
        }
        all.push(it);
    }
    all
}

/// True if a table has a PRIMARY KEY or UNIQUE constraint of this name.
pub(crate) fn has_key(sql: &str, table: &str, name: &str) -> bool {
    let mut keys =
        all(sql, table).into_iter().filter(|it| ["PRIMARY KEY", "UNIQUE"].contains(&it.kind));
    keys.any(|it| it.name.eq_ignore_ascii_case(name))
}

/// Returns the expression of a generated column as the server prints it (`ruleutils.c`), if it is
/// arithmetic of columns and integers.
pub(crate) fn generated(sql: &str, column: &str) -> Option<String> {
    let is = |tokens: &Vec<(Token, usize)>| {
        tokens.first().is_some_and(|(token, _)| name_of(sql, token) == column)
    };
    let tokens = elements(sql).into_iter().find(is)?;
    let outside = |(token, depth): &&(Token, usize)| *depth > 0 || token_text(sql, token) != "AS";
    let inside = tokens.iter().skip_while(outside).skip(2).take_while(|(_, depth)| *depth > 0);
    let mut words = inside.map(|(token, _)| token_text(sql, token)).peekable();
    let made = deparsed(&mut words)?;
    words.next().is_none().then_some(made)
}

/// Returns 0A000: the expression of a generated column is stored in SQLite's dialect.
pub(crate) fn no_expression(column: &str) -> Failure {
    let message =
        format!("the expression of column \"{column}\" is not known in PostgreSQL's dialect");
    Failure::new(state::NOT_SUPPORTED, message).hint(
        "select the other columns without generation_expression, or read it from SQLite: SELECT sql FROM sqlite_schema",
    )
}

fn deparsed<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    let word = words.next()?;
    if let Some((sign, _)) = COMPUTES.iter().find(|(_, function)| *function == word) {
        // The parentheses contain the type and the two operands, with commas between them.
        words.nth(2)?;
        let left = deparsed(words)?;
        words.next()?;
        return deparsed(words).map(|right| format!("({left} {sign} {right})"));
    }
    let plain =
        |letter: char| letter.is_ascii_lowercase() || letter == '_' || letter.is_ascii_digit();
    let column = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    match column {
        Some(column) if column.chars().all(plain) => Some(column.to_owned()),
        None if word.parse::<i32>().is_ok() => Some(word.to_owned()),
        _ => None,
    }
}

/// Returns the constraints of a table as JSON: lists of name, kind and columns.
pub(crate) fn constraints(sql: &str, table: &str) -> String {
    let written = all(sql, table).into_iter().map(|it| {
        let columns: Vec<String> = it.columns.iter().map(|column| quoted(column)).collect();
        format!("[{},{},[{}]]", quoted(&it.name), quoted(it.kind), columns.join(","))
    });
    format!("[{}]", written.collect::<Vec<_>>().join(","))
}

/// Writes a text as JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Splits the parentheses of CREATE TABLE at its commas: tokens with their depth, without closing
/// parentheses.
fn elements(sql: &str) -> Vec<Vec<(Token, usize)>> {
    let mut lexer = Lexer::new(sql.as_bytes(), false);
    let (mut depth, mut all) = (0_usize, Vec::new());
    while let Some(token) = lexer.significant() {
        match token.kind {
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Open if depth == 0 => all.push(Vec::new()),
            TokenKind::Comma if depth == 1 => all.push(Vec::new()),
            _ if depth > 0 => {
                all.last_mut().into_iter().for_each(|last| last.push((token, depth - 1)))
            }
            _ => {}
        }
        depth += usize::from(token.kind == TokenKind::Open);
    }
    all
}

fn of_element(sql: &str, tokens: &[(Token, usize)], table: &str, marked: bool) -> Vec<Constraint> {
    let word = |at: usize| {
        let token = tokens.get(at).filter(|(_, depth)| *depth == 0).map(|(token, _)| token);
        token.map_or(String::new(), |token| token_text(sql, token).to_ascii_uppercase())
    };
    let first = tokens.first().map(|(token, _)| name_of(sql, token)).unwrap_or_default();
    let of_table = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"].contains(&&*word(0));
    let mut named = None;
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let (kind, ending) = match word(at).as_str() {
            "CONSTRAINT" => {
                named = tokens.get(at + 1).map(|(token, _)| name_of(sql, token));
                continue;
            }
            "PRIMARY" => ("PRIMARY KEY", "pkey"),
            "UNIQUE" => ("UNIQUE", "key"),
            "CHECK" => ("CHECK", "check"),
            "FOREIGN" => ("FOREIGN KEY", "fkey"),
            "REFERENCES" if !of_table => ("FOREIGN KEY", "fkey"),
            _ => continue,
        };
        let columns = match of_table {
            _ if kind == "CHECK" => only_column(sql, &tokens[at..]),
            false => vec![first.clone()],
            true => listed(sql, &tokens[at..]),
        };
        let given = named.take().filter(|_| !(marked && kind == "PRIMARY KEY" && !of_table));
        let mut parts = vec![table.to_owned()];
        parts.extend(columns.iter().filter(|_| kind != "PRIMARY KEY").cloned());
        parts.push(ending.to_owned());
        found.push(Constraint { name: given.unwrap_or_else(|| parts.join("_")), kind, columns });
    }
    found
}

/// Returns the column that a CHECK names, if it names one. All names are in quotes.
fn only_column(sql: &str, tokens: &[(Token, usize)]) -> Vec<String> {
    let outside = tokens.iter().skip_while(|(_, depth)| *depth == 0);
    let inside = outside.take_while(|(_, depth)| *depth > 0);
    let quoted = inside.filter(|(token, _)| token_text(sql, token).starts_with('"'));
    let mut names: Vec<String> = quoted.map(|(token, _)| name_of(sql, token)).collect();
    names.dedup();
    if names.len() == 1 { names } else { Vec::new() }
}

/// Returns the names in the first parentheses.
fn listed(sql: &str, tokens: &[(Token, usize)]) -> Vec<String> {
    let outside = tokens.iter().skip_while(|(_, depth)| *depth == 0);
    let inside = outside.take_while(|(_, depth)| *depth > 0);
    let names = inside.filter(|(token, _)| token.kind != TokenKind::Comma);
    names.map(|(token, _)| name_of(sql, token)).collect()
}

fn token_text<'a>(sql: &'a str, token: &Token) -> &'a str {
    sql.get(token.start as usize..token.end as usize).unwrap_or_default()
}

/// Returns a name without its quotes.
fn name_of(sql: &str, token: &Token) -> String {
    let text = token_text(sql, token);
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inside.map_or(text.to_owned(), |inside| inside.replace("\"\"", "\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_read_from_what_made_the_table() {
        let sql = "CREATE TABLE \"t\" (\"id\" INTEGER CONSTRAINT \"int8 generated\" PRIMARY KEY AUTOINCREMENT, \
                   \"a,b\" TEXT DEFAULT ('UNIQUE (') CONSTRAINT \"once\" UNIQUE, c INT REFERENCES \"u\" (\"x\"), \
                   CONSTRAINT \"f\" FOREIGN KEY (\"c\", \"id\") REFERENCES \"u\" (\"x\", \"y\"), UNIQUE (\"a,b\", c), CHECK (\"c\" > 0), \
                   CHECK (\"c\" <> 7), CHECK (\"c\" > \"id\"))";
        let expected = "[[\"t_pkey\",\"PRIMARY KEY\",[\"id\"]],[\"once\",\"UNIQUE\",[\"a,b\"]],\
                        [\"t_c_fkey\",\"FOREIGN KEY\",[\"c\"]],[\"f\",\"FOREIGN KEY\",[\"c\",\"id\"]],\
                        [\"t_a,b_c_key\",\"UNIQUE\",[\"a,b\",\"c\"]],[\"t_c_check\",\"CHECK\",[\"c\"]],[\"t_c_check1\",\"CHECK\",[\"c\"]],\
                        [\"t_check\",\"CHECK\",[]]]";
        assert_eq!(constraints(sql, "t"), expected);
        assert_eq!(constraints("", "t"), "[]");
    }

    #[test]
    fn what_computes_a_column_is_told_where_it_is_known() {
        let sql = "CREATE TABLE \"t\" (\"a\" INTEGER, \"b\" INTEGER GENERATED ALWAYS AS (refrain_multiply(23, \"a\", \
                   refrain_add(23, 2, \"c1\"))) STORED, \"c\" INT GENERATED ALWAYS AS (55) STORED, \
                   \"d\" TEXT GENERATED ALWAYS AS (lower(\"e\")) STORED)";
        assert_eq!(generated(sql, "b").as_deref(), Some("(a * (2 + c1))"));
        assert_eq!(generated(sql, "c").as_deref(), Some("55"));
        assert_eq!(generated(sql, "d"), None);
    }

    #[test]
    fn defaults_are_told_in_the_servers_words() {
        assert_eq!(default_of("(1)", Type::Bool), "true");
        assert_eq!(default_of("(18)", Type::Int8), "18");
        assert_eq!(default_of("('{}')", Type::Jsonb), "'{}'::jsonb");
        assert_eq!(default_of("(now())", Type::Timestamptz), "now()");
    }
}
