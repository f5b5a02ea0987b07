//! Names of constraints that a CREATE TABLE statement does not give.

use std::cmp::Reverse;

use super::{Constraint, all};
use crate::key_mark::KeyMark;
use crate::sql_text::quoted;

/// Returns the CREATE statement of a table in which each constraint has its name; none if all have
/// it. The mark of a key has the key's name in it.
pub(crate) fn with_names(sql: &str, table: &str) -> Option<String> {
    let mark = KeyMark::read(sql);
    let mut unnamed: Vec<Constraint> = all(sql, table);
    unnamed.retain(|it| it.given.is_none());
    unnamed.sort_by_key(|it| Reverse(it.place.start));
    let mut made = sql.to_owned();
    let mut marked = None;
    for it in &unnamed {
        match &mark {
            Some(mark) if it.kind == "PRIMARY KEY" && !it.of_table => marked = Some((mark, it)),
            _ => made.insert_str(it.place.start, &format!("CONSTRAINT {} ", quoted(&it.name))),
        }
    }
    if let Some((mark, key)) = marked {
        let words = |name: &str| format!(" CONSTRAINT {} PRIMARY", quoted(&mark.words_with(name)));
        made = made.replacen(&words(""), &words(&key.name), 1);
    }
    (made != sql).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_get_the_names_that_they_have() {
        let sql = "CREATE TABLE \"t\" (\"id\" INTEGER CONSTRAINT \"int4 generated\" PRIMARY KEY, \
                   \"a\" INT UNIQUE REFERENCES \"u\", \"b\" INT CONSTRAINT \"own\" CHECK (b > 0), \
                   UNIQUE (\"a\", \"b\"))";
        let named = "CREATE TABLE \"t\" (\"id\" INTEGER CONSTRAINT \"int4 generated as t_pkey\" \
                     PRIMARY KEY, \"a\" INT CONSTRAINT \"t_a_key\" UNIQUE CONSTRAINT \
                     \"t_a_fkey\" REFERENCES \"u\", \"b\" INT CONSTRAINT \"own\" CHECK (b > 0), \
                     CONSTRAINT \"t_a_b_key\" UNIQUE (\"a\", \"b\"))";
        assert_eq!(with_names(sql, "t").as_deref(), Some(named));
        assert_eq!(with_names(named, "other"), None);
    }
}
