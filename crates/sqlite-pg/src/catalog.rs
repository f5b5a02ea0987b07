//! PostgreSQL's catalog, as relations over SQLite's schema.
//!
//! In front of a statement that names relations of the catalog stands a common table expression
//! for each of them. So nothing is created, no connection is changed, and a query of the catalog is
//! translated like any other query.

mod tables;

use crate::types::Type;

use tables::{EMPTY, RELATIONS, Relation};

/// Prefix of the names that relations of `information_schema` have in SQLite.
const STANDARD: &str = "information_schema_";
/// Prefix of the names of relations that serve others alone.
const OWN: &str = "refrain_";

fn rows() -> impl Iterator<Item = &'static Relation> {
    RELATIONS.into_iter().flatten()
}

/// Returns the name that a relation of the catalog has in SQLite, with its columns. `pg_catalog` is
/// searched first for a name without a schema.
pub(crate) fn relation(schema: &str, name: &str) -> Option<(&'static str, Vec<(String, Type)>)> {
    let wanted = match schema {
        "" | "pg_catalog" if name.starts_with("pg_") => name.to_owned(),
        "information_schema" => format!("{STANDARD}{name}"),
        _ => return None,
    };
    let with_rows = rows().map(|(name, columns, _)| (*name, *columns));
    let mut all = with_rows.chain(EMPTY.iter().copied());
    let (known, columns) = all.find(|(known, _)| *known == wanted)?;
    let column = |written: &str| {
        let (name, is) = written.trim().split_once(' ')?;
        let is = if is == "char" { Some(Type::Char) } else { Type::named(is) };
        Some((name.to_owned(), is.unwrap_or(Type::Text)))
    };
    Some((known, columns.split(',').filter_map(column).collect()))
}

/// Returns the relations that a piece of SQL of Refrain's own names.
pub(crate) fn named_in(sql: &str) -> impl Iterator<Item = &'static str> {
    let words = |word: &str| {
        sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|known| known == word)
    };
    rows().map(|(name, ..)| *name).filter(move |name| words(name))
}

/// Puts the relations that a statement names in front of it.
pub(crate) fn with_relations(statement: &str, named: &[&'static str]) -> String {
    let mut needed = Vec::new();
    for name in named {
        need(name, &mut needed);
    }
    if needed.is_empty() {
        return statement.to_owned();
    }
    let relations: Vec<String> = needed.iter().filter_map(|name| written(name)).collect();
    let relations = relations.join(", ");
    let statement = statement.trim_start();
    let rest = |word: &str| {
        let start = statement.get(..word.len())?;
        start.eq_ignore_ascii_case(word).then(|| statement.get(word.len()..)).flatten()
    };
    if let Some(rest) = rest("WITH RECURSIVE ") {
        format!("WITH RECURSIVE {relations}, {rest}")
    } else if let Some(rest) = rest("WITH ") {
        format!("WITH {relations}, {rest}")
    } else {
        format!("WITH {relations} {statement}")
    }
}

/// Writes a relation as a common table expression.
fn written(name: &str) -> Option<String> {
    let names = |columns: &str| {
        let name = |column: &str| {
            let name = column.trim().split(' ').next().unwrap_or_default();
            format!("\"{name}\"")
        };
        columns.split(',').map(name).collect::<Vec<_>>()
    };
    if let Some((_, columns, query)) = rows().find(|(known, ..)| *known == name) {
        return Some(format!("{name}({}) AS ({query})", names(columns).join(", ")));
    }
    let (_, columns) = EMPTY.iter().find(|(known, _)| *known == name)?;
    let names = names(columns);
    let nulls = vec!["NULL"; names.len()].join(", ");
    Some(format!("{name}({}) AS (SELECT {nulls} WHERE 0)", names.join(", ")))
}

/// Adds a relation after those that its query reads.
fn need(name: &'static str, needed: &mut Vec<&'static str>) {
    if needed.contains(&name) {
        return;
    }
    if let Some((_, _, query)) = rows().find(|(known, ..)| *known == name) {
        let used = named_in(query).filter(|other| *other != name);
        let used = used.filter(|other| other.starts_with(OWN) || *other == "pg_namespace");
        used.collect::<Vec<_>>().into_iter().for_each(|other| need(other, needed));
    }
    needed.push(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_relation_reads_only_those_before_it() {
        let mut before: Vec<&str> = Vec::new();
        for (name, columns, query) in rows() {
            let later = named_in(query)
                .find(|other| (other.starts_with(OWN)) && !before.contains(other) && other != name);
            assert_eq!(later, None, "{name}");
            assert!(columns.split(',').all(|column| column.trim().contains(' ')), "{name}");
            before.push(name);
        }
    }

    #[test]
    fn the_catalog_comes_first_in_the_search_path() {
        let (name, columns) = relation("", "pg_index").expect("a relation");
        assert_eq!(name, "pg_index");
        assert!(columns.contains(&("indkey".to_owned(), Type::Int2Vector)));
        assert!(columns.contains(&("indisunique".to_owned(), Type::Bool)));
        assert_eq!(relation("public", "pg_index"), None);
        assert_eq!(relation("", "tables"), None);
        assert!(relation("information_schema", "tables").is_some());
        assert!(relation("pg_catalog", "pg_trigger").is_some());
    }
}
