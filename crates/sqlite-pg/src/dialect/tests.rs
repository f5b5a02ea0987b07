//! Tests of translations and refusals, word for word.

use crate::enums::{self, EnumType};
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

    fn enum_of(&self, _: u32) -> Option<EnumType> {
        None
    }

    fn columns_of_enum(&self, _: EnumType) -> Vec<EnumColumn> {
        Vec::new()
    }

    fn with_text(&self, _: &str) -> Vec<SchemaObject> {
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

/// An operand of about 20 kB.
fn long_operand() -> String {
    format!("concat({})", vec!["b"; 7_000].join(", "))
}

/// Writes a form around itself again and again: `$` is the place of the inner one.
fn nested(innermost: &str, form: &str, depth: usize) -> String {
    (0..depth).fold(innermost.to_owned(), |inner, _| form.replace('$', &inner))
}

/// Each text is about 50 kB long, and would be gigabytes of SQL if each item had its copy of the
/// operand.
#[test]
fn an_operand_with_many_items_is_not_copied_without_end() {
    let operand = long_operand();
    let each = |item: &str, count: usize| vec![item; count].join(", ");
    let when = " WHEN 'x' THEN 1".repeat(1_800);
    let rows = each("('x', 1)", 3_000);
    let refused = [
        format!("SELECT CASE {operand}{when} END FROM t"),
        format!("SELECT a FROM t WHERE {operand}::char(9) IN ({})", each("'x'", 5_000)),
        format!("SELECT a FROM t WHERE length({operand}) NOT IN ({})", each("1.5", 5_000)),
        format!("SELECT a FROM t WHERE ({operand}, a) IN ({rows})"),
        format!("SELECT a FROM t WHERE ({operand}, a) NOT IN ({rows})"),
        format!("SELECT {operand} FROM t ORDER BY {}", each("1", 9_000)),
        format!("SELECT DISTINCT ON ({}) {operand} FROM t", each("1", 9_000)),
        format!("SELECT {operand} FROM t GROUP BY {}", each("1", 9_000)),
        format!("SELECT {} FROM t", each(&nested("b", "quote_literal($)", 12), 150)),
        format!("UPDATE t SET b = CASE {operand}{when} END"),
        format!("INSERT INTO t SELECT 1, CASE {operand}{when} END FROM t"),
        format!("DELETE FROM t WHERE ({operand}, a) IN ({rows})"),
    ];
    for text in &refused {
        assert_eq!(grown(text), Some("54001"), "{}…", &text[..40]);
    }
    let short = [
        format!("SELECT greatest({operand}, {}) FROM t", each("b", 9_000)),
        format!("SELECT coalesce({operand}, {}) FROM t", each("b", 9_000)),
        format!("SELECT a FROM t WHERE {operand} IN ({})", each("'x'", 5_000)),
        format!("SELECT a FROM t WHERE {operand} = ANY (ARRAY[{}])", each("'x'", 5_000)),
        format!("SELECT a FROM t WHERE {operand} BETWEEN 'a' AND 'b'"),
        format!("SELECT a FROM t WHERE ({}) < ({})", each("a", 9_000), each("1", 9_000)),
        format!("SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY {operand})"),
        format!("SELECT CASE a{} END FROM t", " WHEN 1 THEN 1".repeat(3_000)),
        format!("SELECT a FROM t WHERE a IN ({})", each("1.5", 9_000)),
        format!("SELECT a FROM t WHERE (b, a) IN ({rows})"),
        format!("INSERT INTO t VALUES {}", each("(1, 'x')", 5_000)),
    ];
    for text in &short {
        assert_eq!(grown(text), None, "{}…", &text[..40]);
    }
    assert_eq!(grown(&format!("SELECT {} FROM t", each("t.*", 9_000))), Some("54011"));
    let tables = (0..65).map(|number| format!("t t{number}")).collect::<Vec<_>>().join(", ");
    assert_eq!(grown(&format!("SELECT 1 FROM {tables}")), Some("54000"));
}

#[test]
fn an_operand_within_itself_is_not_copied_without_end() {
    for (innermost, form) in [
        ("a", "CASE $ WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END"),
        ("a", "CASE $ IN (1.5, 2.5, 3.5) WHEN true THEN 1 ELSE 2 END"),
        ("a", "CASE ($, 1) IN ((1, 2), (3, 4)) WHEN true THEN 1 END"),
        ("a", "CASE ($, 1) < (1, 2) WHEN true THEN 1 END"),
        ("a", "CASE $ BETWEEN 1 AND 2 WHEN true THEN 1 END"),
        ("b", "quote_literal($)"),
        ("array[a]", "array_append($, 1)"),
        ("array[a]", "$ || array[1]"),
        ("a", "(SELECT 1 WHERE NULL IN (SELECT NULL WHERE $ = 1))"),
        ("a", "(SELECT 1 WHERE ($, NULL) IN (SELECT 1, NULL WHERE $ = 1))"),
    ] {
        // The last form has its operand twice in the text.
        let depth = if form.matches('$').count() > 1 { 9 } else { 40 };
        let text = format!("SELECT {} FROM t", nested(innermost, form, depth));
        let found = grown(&text);
        assert!(found == Some("54001") || found.is_none() && depth < 40, "{form}: {found:?}");
    }
}

/// Returns the error of a text. The SQL of a text without an error is no longer than the limits
/// allow.
fn grown(text: &str) -> Option<&'static str> {
    match translate(text, &Fixed, &[], &[]) {
        Ok(made) => {
            let most = (8 << 20) + 300 * text.len();
            assert!(made.sql.len() <= most, "{} bytes", made.sql.len());
            None
        }
        Err(NotTranslated::Refused(failure)) => Some(failure.sqlstate),
        Err(NotTranslated::Sqlite) => Some("SQLite"),
    }
}

/// A statement that is only translated leaves no definition of a type.
#[test]
fn a_definition_is_kept_when_it_is_read() {
    let text = "CREATE TYPE only_translated AS ENUM ('a')";
    let made = translate(text, &Fixed, &[], &[]).expect("a translation");
    assert!(!enums::is_kept("only_translated"));
    let read = EnumType::read("only_translated", &made.sql).expect("an enum");
    assert_eq!(read.labels(), ["a"]);
    assert!(enums::is_kept("only_translated"));
}
