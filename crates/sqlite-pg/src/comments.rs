//! Comments on tables and columns: they are SQLite's comments in the table's definition.

use crate::arrays::json_string;
use crate::sql_text::{elements, name_of, within};

/// The beginning of a comment on a table or column in the table's definition.
pub(crate) const COMMENT: &str = "/*comment: ";

/// Writes a comment for the definition, with a blank in front.
pub(crate) fn comment(text: &str) -> String {
    format!(" {COMMENT}{}*/", text.replace('%', "%25").replace('*', "%2A"))
}

/// Returns the comments of a table as JSON: each with its column, or null.
pub(crate) fn comments(sql: &str) -> String {
    let elements = elements(sql);
    let end = within(sql, 0).map_or(sql.len(), |(_, end)| end);
    let column = |at: usize| {
        let heads = elements.iter().filter_map(|tokens| tokens.first());
        let own = heads.take_while(|(token, _)| (token.start as usize) < at).last();
        let own = own.filter(|_| at < end);
        own.map_or("null".to_owned(), |(token, _)| json_string(&name_of(sql, token)))
    };
    let found = sql.match_indices(COMMENT).filter_map(|(at, mark)| {
        let (text, _) = sql.get(at + mark.len()..)?.split_once("*/")?;
        let text = text.replace("%2A", "*").replace("%25", "%");
        Some(format!("[{},{}]", column(at), json_string(&text)))
    });
    format!("[{}]", found.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_those_of_columns_and_the_table() {
        let (one, two) = (comment("a * 5 %"), comment("b"));
        let sql = format!(
            "CREATE TABLE \"t\" (\"a\" INT{one}, \"b\" TEXT CHECK ((\"b\" > '')){two}){two}"
        );
        assert_eq!(comments(&sql), r#"[["a","a * 5 %"],["b","b"],[null,"b"]]"#);
        let own = format!("CREATE TABLE \"t\" (\"a\" INT CHECK ((\"a\" > 0))){two}");
        assert_eq!(comments(&own), r#"[[null,"b"]]"#);
        assert_eq!(comments("CREATE TABLE t (a)"), "[]");
    }
}
