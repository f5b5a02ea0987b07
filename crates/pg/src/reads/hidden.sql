-- The words of texts behind which functions hide that are volatile. The labels of functions say
-- which ones are; PostgreSQL lets functions that are not volatile run others that are, so bodies
-- are read for the words in them. In doubt, a word counts.
WITH RECURSIVE
-- The user's functions that a query may run, and what can be read of their bodies: the words, or
-- what the server has parsed.
f(o, n, v, l, s) AS MATERIALIZED (
    SELECT p.oid, p.proname, p.provolatile, y.lanname, CASE
        WHEN y.lanname IN ('c', 'internal') THEN ''
        WHEN p.prosrc <> '' THEN pg_catalog.lower(p.prosrc)
        ELSE (SELECT pg_catalog.string_agg(coalesce('oid_' || m.x[1], 'insert'), ' ')
            FROM pg_catalog.regexp_matches(pg_catalog.to_jsonb(p) ->> 'prosqlbody',
                ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([0-9]+)|:commandType [2-9]', 'g') m(x)) END
    FROM pg_catalog.pg_proc p, pg_catalog.pg_language y
    WHERE p.oid >= 16384 AND y.oid = p.prolang AND p.prorettype NOT IN (2279, 3838)),
-- What runs what, as the catalog knows it: functions (1255), operators (2617), views and tables
-- with policies (1259), domains and types with casts (1247), and what any statement may run (0).
-- What has a type counts with the type.
d(c, o, x, y) AS MATERIALIZED (
    SELECT d.refclassid, d.refobjid, x.c::pg_catalog.oid, x.o FROM pg_catalog.pg_depend d, LATERAL (
        SELECT d.classid, d.objid
        WHERE d.classid IN (1255, 2617, 1247) OR d.classid = 1259 AND d.refclassid = 1247
        UNION ALL
        SELECT 0, 0 WHERE d.classid IN (2602, 2603, 2616) AND d.refclassid <> 1247
        UNION ALL
        SELECT 1259, q.ev_class FROM pg_catalog.pg_rewrite q
        WHERE d.classid = 2618 AND q.oid = d.objid AND q.ev_type = '1'
        UNION ALL
        SELECT 1259, q.polrelid FROM pg_catalog.pg_policy q
        WHERE d.classid = 3256 AND q.oid = d.objid
        UNION ALL
        SELECT 1247, q.contypid FROM pg_catalog.pg_constraint q
        WHERE d.classid = 2606 AND q.oid = d.objid AND q.contypid <> 0
        UNION ALL
        SELECT CASE WHEN y.y < 16384 THEN 0 ELSE 1247 END, y.y FROM pg_catalog.pg_cast q, LATERAL (
            SELECT q.castsource WHERE q.castsource >= 16384 OR q.casttarget < 16384
            UNION ALL
            SELECT q.casttarget WHERE q.casttarget >= 16384) y(y)
        WHERE d.classid = 2605 AND d.refclassid = 1255 AND q.oid = d.objid) x(c, o)
    WHERE d.refobjid >= 16384 AND (d.refclassid = 1255 OR d.refclassid = 2617
        OR d.refclassid = 1247 AND d.classid <> 2605
        OR d.refclassid = 1259 AND d.classid IN (1255, 2618, 3256))
    GROUP BY 1, 2, 3, 4),
-- The names by which bodies run them.
n(w, c, o) AS MATERIALIZED (
    SELECT pg_catalog.lower(f.n::text), 1255::pg_catalog.oid, f.o FROM f
    UNION
    SELECT pg_catalog.lower(c.relname::text), 1259, c.oid FROM pg_catalog.pg_class c
    WHERE c.oid IN (SELECT d.y FROM d WHERE d.x = 1259)
    UNION
    SELECT pg_catalog.lower(y.typname::text), 1247, y.oid FROM pg_catalog.pg_type y
    WHERE y.oid IN (SELECT d.y FROM d WHERE d.x = 1247)),
-- The words that are bad in any function ('u': it shows something else each time, 'w': it may
-- change rows) or in one that is volatile ('v').
a(w, k) AS MATERIALIZED (
    SELECT x.w, pg_catalog.max(x.k) FROM (
        SELECT z.w, CASE WHEN p.proname ~ '_to_xml' OR p.proname IN ('ts_rewrite', 'ts_stat')
            THEN 'w' ELSE 'u' END
        FROM pg_catalog.pg_proc p, LATERAL (VALUES (p.proname::text), ('oid_' || p.oid)) z(w)
        WHERE p.oid < 16384 AND p.provolatile = 'v' AND p.prorettype NOT IN (2279, 3838)
        UNION ALL
        VALUES ('execute', 'w'), ('spi_exec', 'w'), ('spi_execp', 'w'), ('spi_exec_query', 'w'),
            ('spi_query', 'w'), ('insert', 'v'), ('update', 'v'), ('delete', 'v'), ('merge', 'v'),
            ('truncate', 'v'), ('copy', 'v'), ('call', 'v'), ('do', 'v'), ('create', 'v'),
            ('alter', 'v'), ('drop', 'v'), ('grant', 'v'), ('revoke', 'v'), ('refresh', 'v'),
            ('import', 'v'), ('reassign', 'v'), ('cluster', 'v')) x(w, k)
    GROUP BY x.w),
-- Which of these words are in which bodies.
t(o, w) AS MATERIALIZED (
    SELECT f.o, w.w FROM f, LATERAL pg_catalog.regexp_split_to_table(f.s,
        '[\x01-\x23\x25-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]+') w(w)
    WHERE w.w IN (SELECT n.w FROM n UNION ALL SELECT a.w FROM a) GROUP BY f.o, w.w),
e(c, o, x, y) AS MATERIALIZED (
    SELECT d.c, d.o, d.x, d.y FROM d
    UNION ALL
    SELECT n.c, n.o, 1255, t.o FROM t, n WHERE n.w = t.w AND t.o <> n.o
    UNION ALL
    SELECT 2617, q.oid, 1255, g.o FROM pg_catalog.pg_operator q, f, f g
    WHERE q.oid >= 16384 AND q.oprcode = f.o AND f.l NOT IN ('c', 'internal')
        AND pg_catalog.strpos(g.s, q.oprname::text) > 0),
-- What is bad, and how. Names that begin with pg_ are of functions in C that show the server.
h(c, o, k) AS (
    SELECT 1255::pg_catalog.oid, x.o, x.k FROM (
        SELECT f.o, 'u' FROM f WHERE f.v = 'v'
        UNION ALL
        SELECT f.o, 'w' FROM f WHERE f.v = 'v' AND f.l NOT IN ('sql', 'plpgsql')
            AND NOT (f.l = 'c' AND (f.n ~ '^pg_' OR f.n IN ('gen_random_bytes',
                'gen_random_uuid', 'gen_salt', 'moddatetime', 'uuid_generate_v1',
                'uuid_generate_v1mc', 'uuid_generate_v4')))
        UNION ALL
        SELECT f.o, CASE a.k WHEN 'u' THEN 'u' ELSE 'w' END FROM f, t, a
        WHERE t.o = f.o AND a.w = t.w AND (a.k <> 'v' OR f.v = 'v')) x(o, k)
    UNION
    SELECT e.x, e.y, h.k FROM h, e WHERE e.c = h.c AND e.o = h.o)
-- The names: a blank stands for one beyond ASCII, and none for types of parameters.
SELECT '-1 hides ' || x.k || ' ' || CASE
    WHEN pg_catalog.octet_length(x.w::text) = pg_catalog.char_length(x.w::text) THEN x.w::text
    ELSE ' ' END
FROM (
    SELECT h.k, f.n FROM h, f
    WHERE h.c = 1255 AND f.o = h.o AND (f.v <> 'v' OR h.k = 'w' AND (
        -- What looks like a field, a function of the system's own or a key word.
        EXISTS (SELECT FROM pg_catalog.pg_proc p, pg_catalog.pg_type y
            WHERE p.oid = f.o AND y.oid = p.proargtypes[0] AND y.typtype IN ('c', 'd', 'p'))
        OR f.n IN (SELECT p.proname FROM pg_catalog.pg_proc p WHERE p.oid < 16384)
        OR f.n::text IN (SELECT s.word FROM pg_catalog.pg_get_keywords() s)))
    UNION ALL
    SELECT h.k, q.oprname FROM h, pg_catalog.pg_operator q WHERE h.c = 2617 AND q.oid = h.o
    UNION ALL
    SELECT h.k, c.relname FROM h, pg_catalog.pg_class c
    WHERE h.c = 1259 AND c.oid = h.o AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c')
    UNION ALL
    SELECT h.k, y.typname FROM h, pg_catalog.pg_type y WHERE h.c = 1247 AND y.oid = h.o
    UNION ALL
    SELECT h.k, '' FROM h WHERE h.c = 1247
    UNION ALL
    SELECT h.k, '=' FROM h WHERE h.c = 0) x(k, w)
GROUP BY 1 LIMIT 4100
