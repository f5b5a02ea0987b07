//! Listings as JSON: the rows that were asked for, in the order that was asked for.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

use super::query::RowsWanted;
use crate::admin::shown_text;
use crate::console::{Heading, Kind, Table};
use crate::quoted::quote;

/// The version of the form. It rises if something goes, or means something else.
const VERSION: u32 = 1;
/// Columns with texts of clients, whose literals are nobody's business.
const TEXTS: [&str; 3] = ["text", "template", "statement"];

/// Writes listings, each by its name.
pub(super) fn listings(choices: &[RowsWanted], tables: &[Table]) -> String {
    let mut out = format!("{{\"version\":{VERSION},\"listings\":{{");
    for (place, (choice, table)) in choices.iter().zip(tables).enumerate() {
        if place > 0 {
            out.push(',');
        }
        quote(&mut out, choice.listing);
        out.push(':');
        listing(&mut out, choice, table);
    }
    out + "}}\n"
}

/// Writes the reasons for a text. Their rules are to be copied as they are.
pub(super) fn reasons(tables: &[Table]) -> String {
    let mut out = format!("{{\"version\":{VERSION},\"reasons\":");
    match tables.first() {
        Some(table) => {
            let rows: Vec<_> = table.rows.iter().collect();
            rows_of(&mut out, table, rows.len(), 0, &rows);
        }
        None => out.push_str("null"),
    }
    out + "}\n"
}

/// Writes why a request is refused.
pub(super) fn error(why: &str) -> String {
    let mut out = format!("{{\"version\":{VERSION},\"error\":");
    quote(&mut out, why);
    out + "}\n"
}

type Row = Vec<Option<String>>;

fn listing(out: &mut String, choice: &RowsWanted, table: &Table) {
    // Before anything is found or sorted: the literals would decide both.
    let all = without_literals_of(table);
    let mut rows: Vec<&Row> = all.iter().filter(|row| has(row, &choice.find)).collect();
    let named = |heading: &Heading| choice.sort.as_deref() == Some(&*heading.name);
    if let Some(place) = table.columns.iter().position(named) {
        rows.sort_by(|a, b| {
            let order = compare(&sort_key(a, place), &sort_key(b, place));
            if choice.descending { order.reverse() } else { order }
        });
    }
    let found = rows.len();
    let shown: Vec<_> = rows.into_iter().skip(choice.offset).take(choice.limit).collect();
    rows_of(out, table, found, choice.offset, &shown);
}

/// Returns the rows of a table, with the texts of clients as they are shown.
fn without_literals_of(table: &Table) -> Cow<'_, [Row]> {
    let is_text = |heading: &Heading| TEXTS.contains(&&*heading.name);
    if !table.columns.iter().any(is_text) {
        return Cow::Borrowed(&table.rows);
    }
    let mut rows = table.rows.clone();
    for row in &mut rows {
        for (value, heading) in row.iter_mut().zip(&table.columns) {
            if let Some(text) = value.as_mut().filter(|_| is_text(heading)) {
                *text = shown_text(text);
            }
        }
    }
    Cow::Owned(rows)
}

/// Whether a row has a text in any of its columns.
fn has(row: &Row, find: &str) -> bool {
    find.is_empty() || row.iter().flatten().any(|value| value.to_lowercase().contains(find))
}

/// A value as rows are sorted by it: what is absent stands first, then numbers by their size, then
/// texts.
type SortKey<'a> = (u8, f64, &'a str);

fn sort_key(row: &Row, place: usize) -> SortKey<'_> {
    let value = row.get(place).and_then(|value| value.as_deref());
    let number = |text: &str| Some(text).filter(|it| is_json_number(it))?.parse().ok();
    match (value, value.and_then(number)) {
        (None, _) => (0, 0.0, ""),
        (Some(_), Some(number)) => (1, number, ""),
        (Some(text), None) => (2, 0.0, text),
    }
}

fn compare(one: &SortKey<'_>, other: &SortKey<'_>) -> Ordering {
    one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(other.2))
}

fn rows_of(out: &mut String, table: &Table, found: usize, offset: usize, rows: &[&Row]) {
    out.push_str("{\"columns\":[");
    for (place, Heading { name, kind }) in table.columns.iter().enumerate() {
        out.push_str(if place > 0 { ",{\"name\":" } else { "{\"name\":" });
        quote(out, name);
        let kind = if is_number(*kind) { "number" } else { "text" };
        // Writing to a `String` does not fail.
        let _ = write!(out, ",\"type\":\"{kind}\"}}");
    }
    let _ = write!(out, "],\"found\":{found},\"offset\":{offset},\"rows\":[");
    for (place, row) in rows.iter().enumerate() {
        out.push_str(if place > 0 { ",\n[" } else { "\n[" });
        for (place, (value, heading)) in row.iter().zip(&table.columns).enumerate() {
            if place > 0 {
                out.push(',');
            }
            self::value(out, heading, value.as_deref());
        }
        out.push(']');
    }
    out.push_str("]}");
}

fn value(out: &mut String, heading: &Heading, value: Option<&str>) {
    match value {
        None => out.push_str("null"),
        Some(number) if is_number(heading.kind) && is_json_number(number) => out.push_str(number),
        Some(text) => quote(out, text),
    }
}

fn is_number(kind: Kind) -> bool {
    kind != Kind::Text
}

/// Whether a number is one to JSON too, which has no leading zeros, and nothing for infinity.
fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    all_digits(whole) && all_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let heading = |name: &'static str, kind| Heading { name: name.into(), kind };
        let columns = vec![
            heading("id", Kind::Int8),
            heading("text", Kind::Text),
            heading("rate", Kind::Text),
        ];
        let row = |id: &str, text: &str, rate: &str| {
            [id, text, rate]
                .map(|value| Some(value.to_owned()).filter(|it| !it.is_empty()))
                .to_vec()
        };
        let rows = vec![
            row("9", "select 'ann'", "0.5"),
            row("10", "select \"a\n\"", ""),
            row("8", "table t", "0.25"),
        ];
        Table { columns, rows }
    }

    fn rows(choice: RowsWanted) -> String {
        let all = listings(&[choice], &[table()]);
        all.split_once("\"rows\":[").unwrap().1.to_owned()
    }

    fn sorted(by: &str, descending: bool) -> RowsWanted {
        RowsWanted { sort: Some(by.to_owned()), descending, ..RowsWanted::new("pools") }
    }

    #[test]
    fn rows_are_sorted_cut_and_written() {
        assert_eq!(
            listings(&[RowsWanted { limit: 1, offset: 1, ..RowsWanted::new("pools") }], &[table()]),
            "{\"version\":1,\"listings\":{\"pools\":{\"columns\":[{\"name\":\"id\",\"type\":\"number\"},\
             {\"name\":\"text\",\"type\":\"text\"},{\"name\":\"rate\",\"type\":\"text\"}],\"found\":3,\
             \"offset\":1,\"rows\":[\n[10,\"select \\\"a\\n\\\"\",null]]}}}\n"
        );
        let first = |choice| rows(choice).trim_start()[1..3].to_owned();
        assert_eq!(first(sorted("id", true)), "10");
        assert_eq!(first(sorted("id", false)), "8,");
        assert_eq!(first(sorted("rate", true)), "9,");
        assert_eq!(first(sorted("rate", false)), "10", "what is absent stands first");
        assert_eq!(
            first(RowsWanted { find: "TABLE".to_lowercase(), ..RowsWanted::new("pools") }),
            "8,"
        );
    }

    #[test]
    fn only_what_is_written_as_a_number_is_sorted_as_one() {
        let texts = ["-2", "0.5", "10", "007", "1e3", "ann", "inf", "nan"];
        let texts = texts.map(|text| Some(text.to_owned()));
        let sorted: Row = [None].into_iter().chain(texts).collect();
        let order = |a, b| compare(&sort_key(&sorted, a), &sort_key(&sorted, b));
        for place in 1..sorted.len() {
            assert_eq!(order(place - 1, place), Ordering::Less, "{sorted:?} at {place}");
        }
    }

    #[test]
    fn texts_have_no_literals() {
        let all = rows(RowsWanted::new("pools"));
        assert!(all.contains("\"select ''\"") && !all.contains("ann"), "{all}");
    }

    /// Otherwise a literal could be guessed, one character after another.
    #[test]
    fn literals_decide_neither_what_is_found_nor_its_order() {
        for find in ["'ann'", "ann", "'a"] {
            let all = rows(RowsWanted { find: find.to_owned(), ..RowsWanted::new("pools") });
            assert!(!all.contains("select"), "{find}: {all}");
        }
        let all = rows(RowsWanted { find: "t ''".to_owned(), ..RowsWanted::new("pools") });
        assert!(all.contains("select ''"), "{all}");
        let row = |id: &str, text: &str| {
            let value = |text: &str| Some(text.to_owned());
            vec![value(id), value(text), None]
        };
        let columns = table().columns;
        let texts = [row("1", "select 'b'"), row("2", "select 'a'"), row("3", "select 2")];
        let all = listings(&[sorted("text", false)], &[Table { columns, rows: texts.into() }]);
        let places = ["[1,", "[2,", "[3,"].map(|id| all.find(id));
        assert!(places[0] < places[1] && places[1] < places[2], "{all}");
    }

    #[test]
    fn only_numbers_of_json_are_written_as_such() {
        for (text, is_number) in [
            ("0", true),
            ("-12.50", true),
            ("007", false),
            ("inf", false),
            ("", false),
            ("1.", false),
        ] {
            assert_eq!(is_json_number(text), is_number, "{text}");
        }
        assert_eq!(error("a\u{7}\"b"), "{\"version\":1,\"error\":\"a\\u0007\\\"b\"}\n");
    }
}
