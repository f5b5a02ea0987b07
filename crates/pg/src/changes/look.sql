WITH RECURSIVE
-- The tables that replies read, and relations of the stream that are new.
a(o) AS (SELECT pg_catalog.unnest('{$tables}'::pg_catalog.oid[])),
-- These with their partitions and other children.
d(o, m) AS (
    SELECT a.o, a.o FROM a
    UNION
    SELECT d.o, i.inhrelid FROM d, pg_catalog.pg_inherits i WHERE i.inhparent = d.m),
-- The relations above them.
u(o, m) AS (
    SELECT a.o, i.inhparent FROM a, pg_catalog.pg_inherits i WHERE i.inhrelid = a.o
    UNION
    SELECT u.o, i.inhparent FROM u, pg_catalog.pg_inherits i WHERE i.inhrelid = u.m),
-- What is published: whether by all four kinds, whether all rows, and whether in place of what is
-- below it. PostgreSQL 14 has no filters.
p(s, t, k, w, v) AS MATERIALIZED (
    SELECT t.schemaname, t.tablename, p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate,
        pg_catalog.to_jsonb(t) ->> 'rowfilter' IS NULL, p.pubviaroot
    FROM pg_catalog.pg_publication_tables t, pg_catalog.pg_publication p
    WHERE p.pubname = t.pubname AND p.pubname IN ($publications)),
-- Relations of which PostgreSQL sends some rows only, whatever other publications have: of all that
-- publish a partition, the filters count of those that name the relation farthest above it.
f(o) AS (
    SELECT c.oid FROM p, pg_catalog.pg_class c, pg_catalog.pg_namespace n
    WHERE p.v AND NOT p.w AND n.nspname = p.s AND c.relname = p.t AND c.relnamespace = n.oid
    UNION
    SELECT i.inhrelid FROM f, pg_catalog.pg_inherits i WHERE i.inhparent = f.o)
SELECT 'member', d.o::text, d.m::text, CASE
    WHEN c.relkind = 'p' THEN ''
    WHEN c.relkind = 'm' THEN 'materialized'
    WHEN c.relkind = 'f' THEN 'foreign'
    WHEN c.relkind <> 'r' THEN 'relation'
    WHEN c.relpersistence <> 'p' THEN 'unlogged'
    WHEN NOT EXISTS (SELECT FROM p WHERE p.s = n.nspname AND p.t = c.relname) THEN 'unpublished'
    WHEN NOT EXISTS (SELECT FROM p WHERE p.s = n.nspname AND p.t = c.relname AND p.k) THEN 'kinds'
    WHEN NOT EXISTS (SELECT FROM p WHERE p.s = n.nspname AND p.t = c.relname AND p.k AND p.w)
        OR EXISTS (SELECT FROM f WHERE f.o = c.oid) THEN 'filtered'
    ELSE '' END
FROM d, pg_catalog.pg_class c, pg_catalog.pg_namespace n
WHERE c.oid = d.m AND n.oid = c.relnamespace
UNION ALL
SELECT 'above', u.o::text, u.m::text, n.nspname || '.' || c.relname
FROM u, pg_catalog.pg_class c, pg_catalog.pg_namespace n
WHERE c.oid = u.m AND n.oid = c.relnamespace
-- What changes with each change of a publication.
UNION ALL
SELECT 'as-of', '', '', pg_catalog.string_agg(x.v, ' ' ORDER BY x.v) FROM (
    SELECT 'p' || b.oid || '.' || b.xmin FROM pg_catalog.pg_publication b
    UNION ALL
    SELECT 'r' || b.oid || '.' || b.xmin FROM pg_catalog.pg_publication_rel b
    $schemas) x(v)
