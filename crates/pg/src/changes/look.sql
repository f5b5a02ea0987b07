WITH RECURSIVE
-- The tables that replies read.
a(o) AS (SELECT pg_catalog.unnest('{$tables}'::pg_catalog.oid[])),
-- These with their partitions and other children.
d(o, m) AS (
    SELECT a.o, a.o FROM a
    UNION
    SELECT d.o, i.inhrelid FROM d, pg_catalog.pg_inherits i WHERE i.inhparent = d.m),
-- What is published: whether by all four kinds, whether all rows, and whether in place of what is
-- below it. The view pg_publication_tables would ask for all of it once for each schema.
p(o, k, w, v) AS MATERIALIZED (
    SELECT t.relid, p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate, $whole,
        p.pubviaroot
    FROM pg_catalog.pg_publication p, pg_catalog.pg_get_publication_tables(p.pubname) t
    WHERE p.pubname IN ($publications)),
-- The same once for each relation: what follows must not compare each table with each.
q(o, k, w) AS MATERIALIZED (
    SELECT p.o, pg_catalog.bool_or(p.k), pg_catalog.bool_or(p.k AND p.w) FROM p GROUP BY p.o),
-- Relations of which PostgreSQL sends some rows only, whatever other publications have: of all that
-- publish a partition, the filters count of those that name the relation farthest above it.
f(o) AS (
    SELECT p.o FROM p WHERE p.v AND NOT p.w
    UNION
    SELECT i.inhrelid FROM f, pg_catalog.pg_inherits i WHERE i.inhparent = f.o)
SELECT 'member', d.o::text, d.m::text, CASE
    WHEN c.relkind = 'p' THEN ''
    WHEN c.relkind = 'm' THEN 'materialized'
    WHEN c.relkind = 'f' THEN 'foreign'
    WHEN c.relkind <> 'r' THEN 'relation'
    WHEN c.relpersistence <> 'p' THEN 'unlogged'
    WHEN q.k IS NULL THEN 'unpublished'
    WHEN NOT q.k THEN 'kinds'
    WHEN NOT q.w OR f.o IS NOT NULL THEN 'filtered'
    ELSE '' END
FROM d
JOIN pg_catalog.pg_class c ON c.oid = d.m
LEFT JOIN q ON q.o = c.oid
LEFT JOIN f ON f.o = c.oid
