//! The catalog query: Refrain asks a server about a normalized query what no Describe shows, before
//! the server may prepare it.
//!
//! It is one query. Each row of the answer is an objection, in a word: see [`objection`]. The query
//! looks at the objects that the text names, and not at those that these name in turn, with one
//! exception: if a text may reach code of users' at all (a trigger, a view, a policy, a function),
//! no function of the database may ask for the text that runs or for the time at which it came.

use refrain_sql::normalize::Mentions;

use crate::normalized::query::Refused;
use crate::settings::value::write_literal;

/// Functions that tell which text a client sent, and when, as PostgreSQL writes them in an
/// expression tree: `current_query`, `statement_timestamp`, `pg_stat_get_activity`.
const TELLING: &str = "':funcid (817|2648|2022) '";

/// The same functions, and views that show what they return, as they stand in the source of a
/// function.
const TOLD: &str = "'current_query|statement_timestamp|pg_stat_(get_)?activity|\
    pg_prepared_statement|pg_cursor'";

/// The first OID that is not the system's own.
const FIRST_OWN: &str = "16384";

/// The beginning of a row that tells how much memory a plan takes for partitions.
const PLAN: &str = "plan ";

/// Writes the query about the statement that the server has under this name; `routes` means that
/// the rows that it writes find their partitions as it runs.
pub(crate) fn question(mentions: &Mentions, name: &[u8], routes: bool) -> Vec<u8> {
    let mut text =
        b"SELECT why FROM (SELECT 'domain' AS why FROM pg_catalog.pg_prepared_statements p,\
        pg_catalog.unnest(p.parameter_types) AS u(t),pg_catalog.pg_type y \
        WHERE y.oid=u.t AND y.typtype='d' AND p.name="
            .to_vec();
    write_literal(&mut text, name);
    if !mentions.writes.is_empty() {
        rules(&mut text, mentions);
    }
    if !mentions.constant_calls.is_empty() {
        text.extend_from_slice(
            b" UNION ALL SELECT 'folded' FROM pg_catalog.pg_proc WHERE provolatile='i' AND oid>=",
        );
        text.extend_from_slice(FIRST_OWN.as_bytes());
        text.extend_from_slice(b" AND proname IN (");
        list(&mut text, &mentions.constant_calls, b"");
        text.push(b')');
    }
    reflects(&mut text, mentions);
    partitions(&mut text, mentions, routes);
    if routes {
        columns(&mut text, mentions);
    }
    text.extend_from_slice(b") AS x");
    text
}

/// Returns the objection in a row of the answer, if it is one.
pub(crate) fn objection(why: &[u8]) -> Option<Refused> {
    match why {
        b"domain" => Some(Refused::Domain),
        b"folded" => Some(Refused::Folded),
        b"reflects" => Some(Refused::Reflects),
        b"rules" => Some(Refused::Rewritten),
        _ => None,
    }
}

/// Returns the memory that a plan takes for partitions, in bytes, if a row of the answer tells
/// that.
pub(crate) fn plan_bytes(why: &[u8]) -> Option<usize> {
    std::str::from_utf8(why).ok()?.strip_prefix(PLAN)?.parse().ok()
}

/// Asks for the memory that a plan takes for the partitions and other children of what the text
/// names: a generic plan has all of them. See [`crate::statements::statement::Statement::memory`].
fn partitions(text: &mut Vec<u8>, mentions: &Mentions, routes: bool) {
    let writes = if routes { &[][..] } else { &mentions.writes };
    if writes.is_empty() && mentions.reads.is_empty() {
        return;
    }
    text.extend_from_slice(b" UNION ALL SELECT '");
    text.extend_from_slice(PLAN.as_bytes());
    text.extend_from_slice(
        b"'||pg_catalog.sum(4096+256*c.relnatts) FROM pg_catalog.pg_class c WHERE c.oid IN \
        (WITH RECURSIVE t(o) AS (SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent IN (",
    );
    for (index, name) in writes.iter().chain(&mentions.reads).enumerate() {
        text.extend_from_slice(if index == 0 { b"" } else { b"," });
        text.extend_from_slice(b"pg_catalog.to_regclass(");
        write_literal(text, name.as_bytes());
        text.push(b')');
    }
    text.extend_from_slice(
        b") UNION SELECT i.inhrelid FROM t,pg_catalog.pg_inherits i WHERE i.inhparent=t.o) \
        SELECT o FROM t)",
    );
}

/// Asks for the columns of a table in which a sequence gives values: see
/// [`crate::normalized::stored`]. Enums, ranges and arrays count as `bool` does: all that matters
/// of them is that a value can be bound.
fn columns(text: &mut Vec<u8>, mentions: &Mentions) {
    let Some(table) = mentions.writes.first() else { return };
    if mentions.stores.is_empty() && !mentions.computes {
        return;
    }
    text.extend_from_slice(
        b" UNION ALL SELECT 'column '||pg_catalog.row_number() OVER (ORDER BY a.attnum)||' '||CASE \
        WHEN y.typtype IN ('e','r','m') OR y.typcategory='A' AND a.atttypmod<0 THEN 16 \
        ELSE a.atttypid END||' '||a.atttypmod||' '||a.attname FROM pg_catalog.pg_attribute a,\
        pg_catalog.pg_type y WHERE y.oid=a.atttypid AND a.attnum>0 AND NOT a.attisdropped \
        AND a.attrelid=",
    );
    write_literal(text, table.as_bytes());
    text.extend_from_slice(b"::pg_catalog.regclass");
    if mentions.calls.iter().any(|name| name == "nextval") {
        return;
    }
    text.extend_from_slice(
        b" AND (EXISTS (SELECT FROM pg_catalog.pg_attribute i WHERE i.attrelid=a.attrelid \
                AND i.attidentity<>'' AND NOT i.attisdropped) OR EXISTS (\
                SELECT FROM pg_catalog.pg_attrdef d \
                WHERE d.adrelid=a.attrelid AND d.adbin::text~':funcid 1574 '))",
    );
}

/// Objects if the target of a write is no table or has rules, and if its columns' defaults tell
/// what the client sent.
fn rules(text: &mut Vec<u8>, mentions: &Mentions) {
    text.extend_from_slice(b" UNION ALL SELECT 'rules' FROM pg_catalog.pg_class WHERE oid IN (");
    list(text, &mentions.writes, b"::pg_catalog.regclass");
    text.extend_from_slice(
        b") AND (relhasrules OR relkind NOT IN ('r','p','f')) \
        UNION ALL SELECT 'reflects' FROM pg_catalog.pg_attrdef WHERE adbin::text~",
    );
    text.extend_from_slice(TELLING.as_bytes());
    text.extend_from_slice(b" AND adrelid IN (");
    list(text, &mentions.writes, b"::pg_catalog.regclass");
    // The source of a function in C does not show what it asks for.
    text.extend_from_slice(
        b") UNION ALL SELECT 'reflects' FROM pg_catalog.pg_trigger t,pg_catalog.pg_proc f,\
        pg_catalog.pg_language l WHERE f.oid=t.tgfoid AND l.oid=f.prolang AND l.lanname='c' \
        AND f.oid>=",
    );
    text.extend_from_slice(FIRST_OWN.as_bytes());
    text.extend_from_slice(b" AND t.tgrelid IN (");
    list(text, &mentions.writes, b"::pg_catalog.regclass");
    text.push(b')');
}

/// Objects if code that the text reaches may tell what the client sent.
fn reflects(text: &mut Vec<u8>, mentions: &Mentions) {
    let mut ways = Vec::new();
    let relations = [
        (&mentions.writes, " AND (relhastriggers OR relrowsecurity)"),
        (&mentions.reads, " AND (relkind='v' OR relrowsecurity)"),
    ];
    for (names, which) in relations.iter().filter(|(names, _)| !names.is_empty()) {
        let mut way = b"EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid IN (".to_vec();
        let mut first = true;
        for name in names.iter() {
            way.extend_from_slice(if first { b"" } else { b"," });
            first = false;
            way.extend_from_slice(b"pg_catalog.to_regclass(");
            write_literal(&mut way, name.as_bytes());
            way.push(b')');
        }
        way.push(b')');
        way.extend_from_slice(which.as_bytes());
        way.push(b')');
        ways.push(way);
    }
    if !mentions.calls.is_empty() {
        let mut way = b"EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid>=".to_vec();
        way.extend_from_slice(FIRST_OWN.as_bytes());
        way.extend_from_slice(b" AND proname IN (");
        list(&mut way, &mentions.calls, b"");
        way.extend_from_slice(b"))");
        ways.push(way);
    }
    if ways.is_empty() {
        return;
    }
    text.extend_from_slice(b" UNION ALL SELECT 'reflects' WHERE (");
    text.extend_from_slice(&ways.join(&b" OR "[..]));
    let told = format!(
        ") AND (EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE oid>={FIRST_OWN} \
        AND (prosrc~*{TOLD} OR pg_catalog.to_jsonb(p)->>'prosqlbody'~{TELLING})) \
        OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class>={FIRST_OWN} \
        AND ev_action::text~{TELLING}) \
        OR EXISTS (SELECT FROM pg_catalog.pg_policy \
        WHERE pg_catalog.concat(polqual::text,polwithcheck::text)~{TELLING}))"
    );
    text.extend_from_slice(told.as_bytes());
}

/// Writes names as literals, each with `cast` behind it.
fn list(text: &mut Vec<u8>, names: &[String], cast: &[u8]) {
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_literal(text, name.as_bytes());
        text.extend_from_slice(cast);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(mentions: &Mentions) -> String {
        String::from_utf8(question(mentions, b"_r1", false)).unwrap()
    }

    #[test]
    fn what_a_text_does_not_speak_of_is_not_asked() {
        let text = asked(&Mentions::default());
        assert!(text.contains("p.name='_r1'"), "{text}");
        assert!(!text.contains("pg_proc") && !text.contains("pg_class"), "{text}");
    }

    #[test]
    fn an_insert_has_no_partitions_in_its_plan() {
        let mentions = Mentions { writes: ["w".to_owned()].into(), ..Mentions::default() };
        let text = |routes| String::from_utf8(question(&mentions, b"_r1", routes)).unwrap();
        assert!(text(false).contains("pg_inherits") && !text(true).contains("pg_inherits"));
        assert_eq!(plan_bytes(b"plan 1024"), Some(1024));
        assert_eq!((plan_bytes(b"domain"), plan_bytes(b"")), (None, None));
    }

    #[test]
    fn names_are_literals() {
        let writes = ["\"o'clock\"".to_owned()].into();
        let text = asked(&Mentions { writes, ..Mentions::default() });
        assert!(text.contains("'\"o''clock\"'::pg_catalog.regclass"), "{text}");
        let calls = ["f".to_owned(), "g\\".to_owned()].into();
        let text = asked(&Mentions { calls, ..Mentions::default() });
        assert!(text.contains("proname IN ('f', E'g\\\\')"), "{text}");
    }
}
