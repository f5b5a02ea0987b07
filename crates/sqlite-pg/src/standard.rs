//! Facts of `information_schema` that a CREATE TABLE statement alone has: constraints, and defaults
//! with PostgreSQL's syntax.

pub(crate) mod names;

use std::ops::Range;

use refrain_sql::lex::{Lexer, Token, TokenKind};

use crate::arrays::json_string;
use crate::failure::{Failure, state};
use crate::key_mark::KeyMark;
use crate::sql_text::{
    elements, identifier, name_of, object_name, printed, quoted, token_text, within,
};

/// Functions for SQLite's arithmetic operators; those of integers check that the result fits.
pub(crate) const COMPUTES: &[(&str, &str)] = &[
    ("+", "refrain_add"),
    ("-", "refrain_subtract"),
    ("*", "refrain_multiply"),
    ("/", "refrain_divide"),
    ("%", "refrain_remainder"),
];

/// A constraint: its name, its kind, and the columns of the table that it names.
struct Constraint {
    name: String,
    /// The name that the statement gives it.
    given: Option<String>,
    /// The columns of which its name is made otherwise, and its end.
    naming: String,
    ending: &'static str,
    kind: &'static str,
    columns: Vec<String>,
    refers: Option<Reference>,
    /// The condition of a CHECK.
    condition: String,
    /// Its place in the CREATE TABLE statement.
    place: Range<usize>,
    /// True if it belongs to no column.
    of_table: bool,
}

/// The target of a foreign key, and its actions.
#[derive(Default)]
struct Reference {
    table: String,
    /// Its columns; none stands for the primary key.
    columns: Vec<String>,
    on_update: String,
    on_delete: String,
    deferrable: bool,
    deferred: bool,
}

/// The placeholder of the primary key's columns in the definition of a foreign key.
const KEY_OF_TARGET: char = '\u{1}';

impl Constraint {
    /// Returns the letter of its kind (`pg_constraint.contype`).
    fn letter(&self) -> &'static str {
        match self.kind {
            "PRIMARY KEY" => "p",
            "UNIQUE" => "u",
            "FOREIGN KEY" => "f",
            _ => "c",
        }
    }

    /// Returns its definition (`pg_get_constraintdef`).
    fn definition(&self) -> String {
        let columns = listed_names(&self.columns);
        let Some(it) = &self.refers else {
            return match self.kind {
                "CHECK" => format!("CHECK ({})", self.condition),
                kind => format!("{kind} ({columns})"),
            };
        };
        let target = match &it.columns[..] {
            [] => KEY_OF_TARGET.to_string(),
            columns => listed_names(columns),
        };
        let mut made =
            format!("FOREIGN KEY ({columns}) REFERENCES {}({target})", identifier(&it.table));
        for (event, action) in [("UPDATE", &it.on_update), ("DELETE", &it.on_delete)] {
            if !action.is_empty() {
                made.push_str(&format!(" ON {event} {action}"));
            }
        }
        match (it.deferrable, it.deferred) {
            (true, true) => made.push_str(" DEFERRABLE INITIALLY DEFERRED"),
            (true, false) => made.push_str(" DEFERRABLE"),
            _ => {}
        }
        made
    }

    fn json(&self) -> String {
        let list = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|name| json_string(name)).collect();
            format!("[{}]", names.join(","))
        };
        let none = Reference::default();
        let refers = self.refers.as_ref().unwrap_or(&none);
        let parts = [
            json_string(&self.name),
            json_string(self.kind),
            list(&self.columns),
            json_string(self.letter()),
            self.refers.as_ref().map_or("null".to_owned(), |it| json_string(&it.table)),
            list(&refers.columns),
            json_string(action_letter(&refers.on_update)),
            json_string(action_letter(&refers.on_delete)),
            u8::from(refers.deferrable).to_string(),
            u8::from(refers.deferred).to_string(),
            json_string(&self.definition()),
            json_string(&self.condition),
        ];
        format!("[{}]", parts.join(","))
    }
}

/// Returns the letter of an action of a foreign key (`pg_constraint.confdeltype`).
fn action_letter(action: &str) -> &'static str {
    match action {
        "RESTRICT" => "r",
        "CASCADE" => "c",
        "SET NULL" => "n",
        "SET DEFAULT" => "d",
        _ => "a",
    }
}

fn listed_names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    names.join(", ")
}

/// Returns the parts of a CREATE INDEX as PostgreSQL prints them, as JSON: the list of its elements
/// as a text, its condition or null, and the elements, each with whether it is an expression.
pub(crate) fn index_parts(sql: &str) -> Option<String> {
    let on = sql.find(" ON ")?;
    let (inside, end) = within(sql, on)?;
    let mut elements = Vec::new();
    let mut lexer = Lexer::new(inside.as_bytes(), false);
    let (mut depth, mut start) = (0_usize, 0);
    while let Some(token) = lexer.significant() {
        match token.kind {
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Comma if depth == 0 => {
                elements.push(inside.get(start..token.start as usize)?);
                start = token.end as usize;
            }
            _ => {}
        }
    }
    elements.push(inside.get(start..)?);
    let comment = |element: &str| {
        element.rsplit_once("*/").map_or(element, |(_, rest)| rest).trim().to_owned()
    };
    let printed_all: Vec<String> =
        elements.iter().map(|element| printed(&comment(element))).collect();
    let single = |element: &String| json_string(element.strip_suffix(" DESC").unwrap_or(element));
    let condition = sql.get(end..)?.trim().strip_prefix("WHERE ").map(printed);
    Some(format!(
        "[{},{},[{}]]",
        json_string(&printed_all.join(", ")),
        condition.map_or("null".to_owned(), |text| json_string(&text)),
        printed_all.iter().map(single).collect::<Vec<_>>().join(",")
    ))
}

/// Returns the constraints of a table. Constraints of one name get numbers, as in the server.
fn all(sql: &str, table: &str) -> Vec<Constraint> {
    // The names of constraints are made without the schema.
    let table = table.split_once('.').map_or(table, |(_, own)| own);
    let marked = KeyMark::read(sql).is_some();
    let mut all: Vec<Constraint> = Vec::new();
    for mut it in elements(sql).iter().flat_map(|tokens| of_element(sql, tokens, table, marked)) {
        let (plain, mut number) = (it.name.clone(), 0);
        while all.iter().any(|known| known.name == it.name) {
            number += 1;
            it.name = match &it.given {
                None => object_name(table, &it.naming, &format!("{}{number}", it.ending)),
                Some(_) => format!("{plain}{number}"),
            };
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

/// True if a table has a CHECK or a foreign key of this name.
pub(crate) fn has_other(sql: &str, table: &str, name: &str) -> bool {
    let others = ["CHECK", "FOREIGN KEY"];
    all(sql, table).iter().any(|it| others.contains(&it.kind) && it.name == name)
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

/// Returns the constraints of a table as JSON, each with the parts that `refrain_constraint` reads.
pub(crate) fn constraints(sql: &str, table: &str) -> String {
    let written: Vec<String> = all(sql, table).iter().map(Constraint::json).collect();
    format!("[{}]", written.join(","))
}

fn of_element(sql: &str, tokens: &[(Token, usize)], table: &str, marked: bool) -> Vec<Constraint> {
    let word = |at: usize| {
        let token = tokens.get(at).filter(|(_, depth)| *depth == 0).map(|(token, _)| token);
        token.map_or(String::new(), |token| token_text(sql, token).to_ascii_uppercase())
    };
    let first = tokens.first().map(|(token, _)| name_of(sql, token)).unwrap_or_default();
    let of_table = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"].contains(&&*word(0));
    let mut named = None;
    let mut begun = None;
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let (kind, ending) = match word(at).as_str() {
            "CONSTRAINT" => {
                named = tokens.get(at + 1).map(|(token, _)| name_of(sql, token));
                begun = tokens.get(at).map(|(token, _)| token.start as usize);
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
        let given = match marked && kind == "PRIMARY KEY" && !of_table {
            true => named.take().and_then(|mark| KeyMark::name(&mark).map(str::to_owned)),
            false => named.take(),
        };
        let naming = if kind == "PRIMARY KEY" { String::new() } else { columns.join("_") };
        let name = given.clone().unwrap_or_else(|| object_name(table, &naming, ending));
        let refers = (kind == "FOREIGN KEY").then(|| reference(sql, &tokens[at..]));
        let condition = match kind {
            "CHECK" => within(sql, tokens[at].0.end as usize).map(|(inside, _)| printed(inside)),
            _ => None,
        };
        let condition = condition.unwrap_or_default();
        let start = begun.take().unwrap_or(tokens[at].0.start as usize);
        let place = start..end_of(sql, tokens, at);
        found.push(Constraint {
            name,
            given,
            naming,
            ending,
            kind,
            columns,
            refers,
            condition,
            place,
            of_table,
        });
    }
    found
}

/// Returns where the constraint ends whose first word is at `at`.
fn end_of(sql: &str, tokens: &[(Token, usize)], at: usize) -> usize {
    const NEXT: &[&str] =
        &["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "COLLATE", "GENERATED", "AS"];
    let upper = |at: usize| {
        tokens
            .get(at)
            .map_or(String::new(), |(token, _)| token_text(sql, token).to_ascii_uppercase())
    };
    let begins = |at: &usize| match upper(*at).as_str() {
        // The actions SET NULL and SET DEFAULT, and NOT DEFERRABLE, belong to a foreign key.
        "NULL" | "DEFAULT" => upper(at - 1) != "SET",
        "NOT" => upper(at + 1) == "NULL",
        word => NEXT.contains(&word),
    };
    let inside = |at: &usize| tokens.get(*at).is_some_and(|(_, depth)| *depth > 0);
    let next = (at + 1..tokens.len()).find(|at| !inside(at) && begins(at));
    let own = upper(at) == "FOREIGN";
    let last = if own { tokens.len() } else { next.unwrap_or(tokens.len()) };
    let (token, depth) = &tokens[last - 1];
    let end = token.end as usize;
    let closing = sql.get(end..).unwrap_or_default().match_indices(')');
    closing.take(*depth).last().map_or(end, |(place, _)| end + place + 1)
}

/// Takes away the constraint of this name; none if the table has none, or SQLite would have to
/// store the rows in another way: the constraint is the row's number, or the table's only order.
pub(crate) fn without(sql: &str, table: &str, name: &str) -> Option<String> {
    let found = all(sql, table);
    let it = found.iter().find(|it| it.name == name)?;
    if it.kind == "PRIMARY KEY" && (is_row_number(sql, it) || is_without_rows(sql)) {
        return None;
    }
    let before = sql.get(..it.place.start)?.trim_end();
    // There is a comma in front of a table's constraint: a table begins with a column.
    let before = if it.of_table { before.strip_suffix(',')? } else { before };
    Some(format!("{before}{}", sql.get(it.place.end..)?))
}

/// True if a primary key is the row's number: one column of this type.
fn is_row_number(sql: &str, it: &Constraint) -> bool {
    let named = |tokens: &&Vec<(Token, usize)>| {
        tokens.first().is_some_and(|(token, _)| it.columns == [name_of(sql, token)])
    };
    let tokens = elements(sql);
    let is = tokens.iter().find(named).and_then(|tokens| tokens.get(1));
    is.is_some_and(|(token, _)| token_text(sql, token).eq_ignore_ascii_case("integer"))
}

/// True if a table has no row numbers (WITHOUT ROWID).
fn is_without_rows(sql: &str) -> bool {
    let tail = sql.rsplit(')').next().unwrap_or_default();
    tail.to_ascii_uppercase().contains("WITHOUT")
}

/// Returns the column that is the row's number, if the table has one.
pub(crate) fn row_number(sql: &str) -> Option<String> {
    let key = all(sql, "").into_iter().find(|it| it.kind == "PRIMARY KEY")?;
    (is_row_number(sql, &key) && !is_without_rows(sql)).then(|| key.columns.concat())
}

/// True if a CHECK, a foreign key or a generated column of a table names a column.
pub(crate) fn depends_on(sql: &str, table: &str, column: &str) -> bool {
    let named = quoted(column);
    let by = |it: Constraint| match it.kind {
        "CHECK" => sql.get(it.place).is_some_and(|text| text.contains(&named)),
        "FOREIGN KEY" => it.columns.iter().any(|known| known == column),
        _ => false,
    };
    let computes = |tokens: &Vec<(Token, usize)>| {
        let mut words = tokens.iter().map(|(token, _)| token_text(sql, token));
        words.next().is_some_and(|first| first != named)
            && words.by_ref().any(|word| word == "GENERATED")
            && words.any(|word| word == named)
    };
    all(sql, table).into_iter().any(by) || elements(sql).iter().any(computes)
}

/// A constraint on which foreign keys of others may depend.
pub(crate) struct Key {
    pub(crate) columns: Vec<String>,
    pub(crate) is_primary: bool,
}

/// Returns the PRIMARY KEY or UNIQUE constraint of this name.
pub(crate) fn key_named(sql: &str, table: &str, name: &str) -> Option<Key> {
    let mut keys = all(sql, table).into_iter().filter(|it| matches!(it.letter(), "p" | "u"));
    let it = keys.find(|it| it.name == name)?;
    Some(Key { is_primary: it.kind == "PRIMARY KEY", columns: it.columns })
}

/// Returns the name that the statement gives the primary key.
pub(crate) fn given_key(sql: &str, table: &str) -> Option<String> {
    all(sql, table).into_iter().find(|it| it.kind == "PRIMARY KEY")?.given
}

/// Returns the name of the last constraint of a table.
pub(crate) fn last_name(sql: &str, table: &str) -> Option<String> {
    all(sql, table).pop().map(|it| it.name)
}

/// A foreign key, and the table and columns that it refers to: without columns, the primary key.
pub(crate) struct ForeignKey {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) target: String,
    pub(crate) target_columns: Vec<String>,
}

/// Returns the foreign keys of a table.
pub(crate) fn foreign_keys(sql: &str, table: &str) -> Vec<ForeignKey> {
    let key = |it: Constraint| {
        let Reference { table: target, columns: target_columns, .. } = it.refers?;
        Some(ForeignKey { name: it.name, columns: it.columns, target, target_columns })
    };
    all(sql, table).into_iter().filter_map(key).collect()
}

/// Returns the name of the primary key or UNIQUE constraint of these columns.
pub(crate) fn key_of(sql: &str, table: &str, columns: &[&str]) -> Option<String> {
    let is_key = |it: &Constraint| ["PRIMARY KEY", "UNIQUE"].contains(&it.kind);
    let mut keys = all(sql, table).into_iter().filter(is_key);
    keys.find(|it| it.columns == columns).map(|it| it.name)
}

/// Returns the name of the CHECK of which SQLite says that it failed: by its name or its condition.
pub(crate) fn check_of(sql: &str, table: &str, said: &str) -> Option<String> {
    let checks: Vec<_> = all(sql, table).into_iter().filter(|it| it.kind == "CHECK").collect();
    let condition = printed(said);
    let named = checks.iter().find(|it| it.name == said);
    named.or_else(|| checks.iter().find(|it| it.condition == condition)).map(|it| it.name.clone())
}

/// Returns the names of a table's foreign keys that refer to another table.
pub(crate) fn referring(sql: &str, table: &str, target: &str) -> Vec<String> {
    let keys = foreign_keys(sql, table).into_iter();
    keys.filter(|key| key.target == target).map(|key| key.name).collect()
}

/// Reads REFERENCES and what stands behind it.
fn reference(sql: &str, tokens: &[(Token, usize)]) -> Reference {
    let upper = |token: &Token| token_text(sql, token).to_ascii_uppercase();
    let behind = tokens.iter().skip_while(|(token, _)| upper(token) != "REFERENCES").skip(1);
    let mut behind = behind.peekable();
    let table = behind.next().map(|(token, _)| name_of(sql, token)).unwrap_or_default();
    let mut made = Reference { table, ..Reference::default() };
    if behind.next_if(|(token, _)| token.kind == TokenKind::Open).is_some() {
        while let Some((token, _)) = behind.next_if(|(_, depth)| *depth > 0) {
            if token.kind != TokenKind::Comma {
                made.columns.push(name_of(sql, token));
            }
        }
    }
    let rest: Vec<String> = behind.map(|(token, _)| upper(token)).collect();
    let rest = format!("{} ", rest.join(" "));
    let action = |event: &str| {
        let (_, rest) = rest.split_once(event)?;
        let actions = ["RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];
        actions.into_iter().find(|action| rest.starts_with(action)).map(str::to_owned)
    };
    made.on_update = action("ON UPDATE ").unwrap_or_default();
    made.on_delete = action("ON DELETE ").unwrap_or_default();
    made.deferrable = rest.contains("DEFERRABLE ") && !rest.contains("NOT DEFERRABLE");
    made.deferred = made.deferrable && rest.contains("INITIALLY DEFERRED");
    made
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_read_from_what_made_the_table() {
        let sql = "CREATE TABLE \"t\" (\"id\" INTEGER CONSTRAINT \"int8 generated\" PRIMARY KEY AUTOINCREMENT, \
                   \"a,b\" TEXT DEFAULT ('UNIQUE (') CONSTRAINT \"once\" UNIQUE, c INT REFERENCES \"u\" (\"x\"), \
                   CONSTRAINT \"f\" FOREIGN KEY (\"c\", \"id\") REFERENCES \"u\" (\"x\", \"y\"), UNIQUE (\"a,b\", c), CHECK (\"c\" > 0), \
                   CHECK (\"c\" <> 7), CHECK (\"c\" > \"id\"))";
        let expected = [
            "t_pkey|PRIMARY KEY|[id]|PRIMARY KEY (id)",
            "once|UNIQUE|[a,b]|UNIQUE (\"a,b\")",
            "t_c_fkey|FOREIGN KEY|[c]|FOREIGN KEY (c) REFERENCES u(x)",
            "f|FOREIGN KEY|[c, id]|FOREIGN KEY (c, id) REFERENCES u(x, y)",
            "t_a,b_c_key|UNIQUE|[a,b, c]|UNIQUE (\"a,b\", c)",
            "t_c_check|CHECK|[c]|CHECK (c > 0)",
            "t_c_check1|CHECK|[c]|CHECK (c <> 7)",
            "t_check|CHECK|[]|CHECK (c > id)",
        ];
        let written = all(sql, "t").into_iter().map(|it| {
            format!("{}|{}|[{}]|{}", it.name, it.kind, it.columns.join(", "), it.definition())
        });
        assert_eq!(written.collect::<Vec<_>>(), expected);
        for (name, gone) in [
            ("t_c_fkey", " REFERENCES \"u\" (\"x\")"),
            ("f", ", CONSTRAINT \"f\" FOREIGN KEY (\"c\", \"id\") REFERENCES \"u\" (\"x\", \"y\")"),
            ("t_c_check1", ", CHECK (\"c\" <> 7)"),
        ] {
            assert_eq!(without(sql, "t", name), Some(sql.replacen(gone, "", 1)), "{name}");
        }
        let once = without(sql, "t", "once").unwrap();
        assert_eq!(once, sql.replacen(" CONSTRAINT \"once\" UNIQUE", "", 1));
        assert_eq!(without(sql, "t", "t_pkey"), None, "it is the row's number");
        let row = "CREATE TABLE \"t\" (\"a\" INT CHECK (\"a\" > (1)) NOT NULL REFERENCES \"u\" ON DELETE SET NULL UNIQUE)";
        let plain = without(&without(row, "t", "t_a_check").unwrap(), "t", "t_a_fkey");
        assert_eq!(plain.as_deref(), Some("CREATE TABLE \"t\" (\"a\" INT NOT NULL UNIQUE)"));
        let actions = "CREATE TABLE \"t\" (\"a\" INT REFERENCES \"u\" ON DELETE SET NULL ON UPDATE CASCADE \
                       DEFERRABLE INITIALLY DEFERRED)";
        let json = constraints(actions, "t");
        assert!(json.contains("\"u\",[],\"c\",\"n\",1,1,"), "{json}");
        assert_eq!(constraints("", "t"), "[]");
    }

    #[test]
    fn indexes_are_told_in_the_servers_words() {
        let sql = "CREATE UNIQUE INDEX \"i\" ON \"t\" (\"a\", lower(\"B\") DESC) WHERE (\"a\" > 0)";
        let expected = r#"["a, lower(\"B\") DESC","(a > 0)",["a","lower(\"B\")"]]"#;
        assert_eq!(index_parts(sql).as_deref(), Some(expected));
        let added = "CREATE UNIQUE INDEX \"c\" ON \"t\" (/*refrain constraint*/\"a\", \"select\")";
        let expected = r#"["a, \"select\"",null,["a","\"select\""]]"#;
        assert_eq!(index_parts(added).as_deref(), Some(expected));
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
}
