//! Tests of translations and refusals, word for word.

use crate::key_mark::GivenBy;

use super::*;

/// A catalog with two tables.
pub(super) struct Fixed;

impl Catalog for Fixed {
    fn table(&self, schema: Option<&str>, table: &str) -> Option<Vec<Attribute>> {
        let column = |name: &str, is, key, given| Attribute {
            name: name.to_owned(),
            is,
            limit: None,
            not_null: key > 0,
            key,
            default: None,
            computed: false,
            writable: true,
            given,
        };
        let text = |name| column(name, Type::Text, 0, GivenBy::Statement);
        match table {
            _ if schema == Some("temp") => None,
            "t" => Some(vec![column("a", Type::Int4, 1, GivenBy::Key), text("b")]),
            "u" => Some(vec![column("id", Type::Int8, 1, GivenBy::Next), text("b")]),
            "x" => Some(vec![column("a", Type::Int4, 0, GivenBy::Statement)]),
            _ => None,
        }
    }

    fn definition(&self, table: &str) -> Option<String> {
        match table {
            "t" => Some("CREATE TABLE \"t\" (\"a\" INTEGER PRIMARY KEY, \"b\" TEXT)".to_owned()),
            // No change has a place in it.
            "x" => Some("CREATE TABLE \"x\"".to_owned()),
            _ => None,
        }
    }

    fn computed(&self, sql: &str) -> Result<String, Failure> {
        Ok(sql.to_owned())
    }

    fn is_unique(&self, _: &str, columns: &[String]) -> bool {
        columns == ["a"] || columns == ["id"]
    }

    fn schemas(&self) -> Vec<String> {
        Vec::new()
    }

    fn inside(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn key_sequence(&self, name: &str) -> Option<(String, Type)> {
        (name == "u_id_seq").then(|| ("u".to_owned(), Type::Int8))
    }

    fn key_sequence_name(&self, table: &str, column: &str) -> String {
        format!("{table}_{column}_seq")
    }

    fn users_of_sequence(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    fn owned_sequences(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    fn columns_of(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn dependents(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn readers(&self, name: &str) -> Vec<String> {
        if name == "u" { vec!["v".to_owned()] } else { Vec::new() }
    }

    fn referrers(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn constrained(&self, index: &str) -> Option<(String, bool)> {
        (index == "t_pkey").then(|| ("t".to_owned(), false))
    }

    fn is_taken(&self, name: &str) -> bool {
        name == "t_b_idx"
    }
}
