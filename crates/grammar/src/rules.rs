//! The table of rules: how literals are treated, and which texts are left alone.
//!
//! What: every judgement of [`crate::PgGrammar`] is a row here, with its reason and with texts that
//! show it.
//!
//! What always holds, and a test checks of each row:
//! - [`Effect::Never`]: each of its texts is left alone for the row's reason;
//! - [`Effect::Keep`]: of the literals in its texts, just those that say `keep` or consist of `7`s
//!   are kept, for the row's reason;
//! - [`Effect::Parameter`]: all literals in its texts become parameters, at least one by this row.
//!
//! What it does not do: find the places. `walk` knows to which nodes of the tree a row applies.

use refrain_sql::normalize::{Class, Edit, Reason};

/// A row of the table.
#[derive(Debug)]
pub struct Rule {
    /// Its name, and its reason.
    pub reason: Reason,
    /// Its effect.
    pub effect: Effect,
    /// Texts to which it applies.
    pub examples: &'static [&'static str],
}

/// The effect of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The whole text is left alone.
    Never,
    /// A literal is kept.
    Keep,
    /// A literal becomes a parameter.
    Parameter,
}

/// Returns the row by which a literal becomes a parameter.
pub(crate) fn parameter(class: Class, edit: Edit) -> &'static Rule {
    match edit {
        Edit::Sign { .. } => &SIGN,
        Edit::Typed { .. } => &TYPED,
        Edit::None if class.is_string() => &STRING,
        Edit::None => &NUMBER,
    }
}

macro_rules! rules {
    ($($name:ident $effect:ident $key:literal: $text:literal, [$($example:literal),+ $(,)?];)*) => {
        $(pub(crate) static $name: Rule = Rule {
            reason: Reason { name: $key, text: $text },
            effect: Effect::$effect,
            examples: &[$($example),+],
        };)*

        /// All rows.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    SYNTAX Never "syntax": "PostgreSQL's grammar does not take the text",
        ["SELECT FROM WHERE 1", "SELECT 'a' 'b'"];
    DEPTH Never "depth": "expressions are nested too deep to be looked at",
        ["SELECT a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a"];
    OPERATORS Never "operators": "so many operator characters in a row are read by the grammar in the square of their number",
        ["SELECT 1 \
         /**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**/\
         /**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**/\
         /**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**/\
         /**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**//**/"];
    UTILITY Never "utility": "only SELECT, VALUES, TABLE, INSERT, UPDATE, DELETE and MERGE have a plan to keep",
        ["WITH x AS (SELECT 1) SELECT 2 INTO t", "SELECT 1 INTO TEMP t"];
    CURRENT_OF Never "current-of": "WHERE CURRENT OF is about a cursor of the session",
        ["DELETE FROM t WHERE CURRENT OF c", "UPDATE t SET a = 1 WHERE CURRENT OF c"];
    SELF Never "looks-at-itself": "the text asks for its own text, or for what is prepared: the answer would differ",
        ["SELECT current_query(), 1", "SELECT * FROM pg_stat_activity WHERE pid = 1", "TABLE \"pg_cursors\"",
         "SELECT json_object('a': current_query())"];
    CLOCK Never "clock": "the text asks when the server took it in: a prepared statement is taken in by several messages",
        ["SELECT now() = statement_timestamp(), 1", "SELECT \"statement_timestamp\"()"];
    CALLED_CLOCK Never "called-time-type": "a call of a date, time or reg* type with one string is a cast, done once",
        ["SELECT date('2020-01-01')", "SELECT a FROM t WHERE oid = regclass('t')", "SELECT pg_catalog.timestamptz('x')"];

    ORDER_BY Keep "order-by": "a constant in ORDER BY is a column's number, or has to equal an expression that is selected",
        ["SELECT a, b FROM t WHERE a = 1 ORDER BY 77, a + 77 LIMIT 5", "SELECT 1 UNION SELECT 2 ORDER BY 77",
         "SELECT a FROM t ORDER BY (SELECT 77)"];
    GROUP_BY Keep "group-by": "a constant in GROUP BY is a column's number, or has to equal an expression that is selected",
        ["SELECT a FROM t WHERE b = 1 GROUP BY 77", "SELECT a FROM t GROUP BY ROLLUP (a, b + 77), GROUPING SETS ((77), ())"];
    GROUPED Keep "grouped-level":
        "in the select list or HAVING beside GROUP BY or DISTINCT an expression may have to equal another; two parameters never do",
        ["SELECT a + 77 FROM t WHERE a = 1 GROUP BY b HAVING sum(a) > 77", "SELECT DISTINCT 'keep', a FROM t WHERE a = 1",
         "SELECT a FROM (SELECT DISTINCT b + 77 AS a FROM t) x WHERE a = 1"];
    DISTINCT_ON Keep "distinct-on": "DISTINCT ON has to begin as ORDER BY does",
        ["SELECT DISTINCT ON (77) a FROM t WHERE a = 1", "SELECT DISTINCT ON (a + 77) a FROM t"];
    AGGREGATE Keep "aggregate-order": "the arguments of an aggregate with DISTINCT and what orders it have to be equal",
        ["SELECT string_agg(a, ', ' ORDER BY b + 77) FROM t", "SELECT count(DISTINCT a + 77), 1 FROM t",
         "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a + 77) FROM t"];
    WINDOW Keep "window": "expressions of a window are compared with others, and its frame is of the grammar",
        ["SELECT sum(a + 1) OVER (PARTITION BY b + 77 ORDER BY c ROWS 77 PRECEDING) FROM t",
         "SELECT sum(a) OVER w FROM t WHERE a = 1 WINDOW w AS (PARTITION BY a % 77)"];
    TYPE_MODIFIER Keep "type-modifier": "the grammar takes nothing but a literal as the modifier of a type",
        ["SELECT '5'::numeric(77, 77), CAST(a AS varchar(77)) FROM t"];
    TYPED_MODIFIER Keep "typed-literal-modifier": "the type in front of the literal has modifiers of its own",
        ["SELECT timestamp(77) 'keep', numeric(77,77) 'keep'"];
    TYPED_CHARACTER Keep "typed-character":
        "N'…', char '…' and bit '…' are as long as they are written, which casts to these types are not",
        ["SELECT N'keep', 'a'", "SELECT char 'keep', national character 'keep', bit 'keep', 1"];
    INTERVAL_FIELDS Keep "interval-fields": "fields of an interval say how a literal is read, and only cut a parameter off",
        ["SELECT interval 'keep' minute, '1'::interval, 'keep'::interval(77)",
         "SELECT CAST('keep' AS interval day to second)"];
    OWN_TYPE Keep "own-type": "a cast to a type that is not built in may treat literals otherwise than parameters",
        ["SELECT 'keep'::mood, 77::positive, 'a'", "SELECT a FROM t WHERE b = mood 'keep' AND c = 'd'::text",
         "SELECT CAST('keep' AS app.mood[])"];
    CONFLICT Keep "on-conflict": "what ON CONFLICT infers its index from has to equal the index's expressions",
        ["INSERT INTO t VALUES (1) ON CONFLICT (a, (b + 77)) WHERE c = 'keep' DO UPDATE SET d = 2 WHERE t.e = 3"];
    FULL_JOIN Keep "full-join": "FULL JOIN has to be able to see what it joins on",
        ["SELECT 1 FROM a FULL JOIN b ON 77 = 77 WHERE c = 2",
         "SELECT 1 FROM a LEFT JOIN b ON 3 = a.x FULL JOIN c ON a.y = 'keep'"];
    UNTYPED Keep "untyped": "the place takes any type and gives a string none",
        ["SELECT concat('keep', 1), format('keep', 'keep', a) FROM t", "SELECT 'keep' IS NULL, 5 IS NULL",
         "SELECT ROW('keep', 1), f(('keep', 2))",
         "SELECT pg_catalog.json_build_object('keep', a, 'keep', upper('x')) FROM t",
         "SELECT count('keep'), pg_typeof('keep'), num_nulls(VARIADIC a => 'keep')", "SELECT COLLATION FOR ('keep')"];
    CALLED_TYPE Keep "called-type": "a call of a type with one string is a cast; with a parameter it is another function, or none",
        ["SELECT cidr('keep'), box('keep'), int4(5)", "SELECT pg_catalog.text('keep'), tsquery('keep')"];
    CASE_CONDITION Keep "case-condition":
        "a condition without a column is decided as it is planned, and then the result has the type modifier of one branch",
        ["SELECT CASE WHEN 'keep'::timestamptz < 'keep' THEN c ELSE 'a' END FROM t WHERE b = 1",
         "SELECT CASE WHEN a > 1 AND NOT (77 = 77 OR b = 'x') THEN c END FROM t", "SELECT CASE 'keep' WHEN 'keep' THEN c END FROM t"];
    GRAMMAR Keep "grammar": "the grammar takes nothing but a literal here, or the place is not looked into",
        ["SELECT a::float(7), b::int[77] FROM t WHERE c = 1", "SELECT - -77, +5, -(77), - 5",
         "SELECT json_value(a, 'keep' PASSING 77 AS x), json_object('keep': 77) FROM t"];
    EXTRACT Keep "extract": "the field of EXTRACT is of the grammar", ["SELECT extract('keep' FROM a) FROM t WHERE b = 1"];
    XML Keep "xml": "parts of XML expressions take any type, or are of the grammar",
        ["SELECT xmlelement(name a, 'keep', 77), xmlforest('keep' AS b)", "SELECT xmlserialize(CONTENT 'keep' AS text), 1",
         "SELECT * FROM XMLTABLE('keep' PASSING a COLUMNS b int PATH 'keep' DEFAULT 77) WHERE b = 1",
         "SELECT xmlparse(DOCUMENT 'keep'), 'keep' IS DOCUMENT"];
    SAMPLE Keep "tablesample": "the server estimates a sample's size by its literal",
        ["SELECT * FROM t TABLESAMPLE system (77) REPEATABLE (77) WHERE a = 1"];
    CYCLE Keep "cycle": "the marks of CYCLE are constants by the grammar",
        ["WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT 2) CYCLE a SET c TO 'keep' DEFAULT 'keep' USING p SELECT 3"];
    COLLATE Keep "collate": "a string without a type has no collation to replace",
        ["SELECT 'keep' COLLATE \"C\", a FROM t WHERE b < ('c' || d) COLLATE \"C\""];
    INDEXED Keep "indexed-expression":
        "an index on an expression, or a partial one, is found only if its literals are known; without, each run is planned anew",
        ["SELECT a -> 'keep' ->> 77, a #>> 'keep' FROM t WHERE b ? 'c'",
         "SELECT * FROM t WHERE a + 77 = 5 AND 6 < b * 77 AND c = 8",
         "SELECT * FROM t WHERE date_trunc('keep', a) = '2020-01-01' AND lower(b) = 'x'",
         "SELECT a AT TIME ZONE 'keep', to_char(a, 'keep') FROM t", "SELECT * FROM t WHERE coalesce(a, 77) IN (1, 2)",
         "SELECT * FROM t WHERE a LIKE 'x%' AND substr(b, 77, 77) LIKE 'y%' AND c BETWEEN 1 AND 2"];

    NUMBER Parameter "number": "a number has the same type as a parameter, by its size and form",
        ["SELECT a, 1 FROM t WHERE b = 1 AND c IN (1, 2.5) AND d BETWEEN 1 AND 2 AND e > a + 1", "TABLE t LIMIT 5 OFFSET 1e2",
         "SELECT * FROM t ORDER BY a FETCH FIRST 5 ROWS WITH TIES", "UPDATE t SET a[2] = a[1] + 1, (b, c) = (1, 2) WHERE d = B'101'",
         "SELECT count(*) FROM t HAVING count(*) > 2", "SELECT 5 IN (SELECT 1), (ARRAY[1, 2])[1]",
         "SELECT generate_series(1, 10), g FROM generate_series(1, 3) g, f(2) JOIN t ON g = 4",
         "SELECT ntile(4) OVER (ORDER BY a) FROM t WHERE a = b.c + 1",
         "MERGE INTO t USING s ON t.a = s.a + 0 WHEN MATCHED AND s.b > 1 THEN UPDATE SET b = 2 WHEN NOT MATCHED THEN INSERT VALUES (3)",
         "WITH RECURSIVE x(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM x WHERE n < 100) SELECT sum(n) FROM x"];
    STRING Parameter "string": "a string has no type, and so its place gives it one, as it does a parameter",
        ["INSERT INTO t VALUES ('a', E'b\\n'), ($$c$$, 'd') ON CONFLICT (a) DO UPDATE SET b = 'e' WHERE t.c = 'f' RETURNING 'g'",
         "SELECT 'a', 'b'::date, CAST('c' AS numeric) WHERE FALSE OR TRUE AND NULL IS NULL",
         "SELECT * FROM t WHERE a LIKE 'x' ESCAPE '!' AND b ~ 'c' AND c SIMILAR TO 'd' AND (a, b) = ('e', 'f')",
         "SELECT CASE a WHEN 'a' THEN 'b' ELSE 'c' END, coalesce(a, 'd'), nullif(b, 'e'), greatest(a, 'f') FROM t",
         "SELECT a || 'b', ARRAY['c'], upper('d'), '{1}'::int[], 'pg_class'::regclass, 'now'::timestamptz FROM t",
         "SELECT 'a' UNION ALL SELECT 'b'", "UPDATE t SET j['k'] = 'v' WHERE j @> '{}'", "DELETE FROM t WHERE a = ANY ('{1}')"];
    SIGN Parameter "sign": "a minus sign before a number belongs to its value",
        ["SELECT -5, 1 - -2", "SELECT * FROM t WHERE a = - /* minus */ 2147483648"];
    TYPED Parameter "typed-literal": "the grammar takes no parameter behind a type; a cast to it is the same",
        ["SELECT date '2020-01-01', interval '1 day', timestamp with time zone 'now', pg_catalog.int4 '5', \"char\" 'a'"];
}
