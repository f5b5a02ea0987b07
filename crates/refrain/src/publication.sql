WITH RECURSIVE
-- The tables that replies read, with their partitions and other children.
d(o, m) AS (
    SELECT a, a FROM pg_catalog.unnest('{$tables}'::pg_catalog.oid[]) a
    UNION
    SELECT d.o, i.inhrelid FROM d, pg_catalog.pg_inherits i WHERE i.inhparent = d.m),
-- What is published in whole.
p(s, t) AS MATERIALIZED (
    SELECT t.schemaname, t.tablename
    FROM pg_catalog.pg_publication_tables t, pg_catalog.pg_publication p
    WHERE p.pubname = t.pubname AND p.pubname = ANY($publications::pg_catalog.text[])
        AND p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate
        AND pg_catalog.to_jsonb(t) ->> 'rowfilter' IS NULL),
-- Indexes by which PostgreSQL can tell a row from all others, whether such a one is the primary
-- key, whether it is the replica identity, and whether a column of it is generated. Streams lack
-- generated columns, and from 18 on PostgreSQL refuses updates for that.
g(r, x, k, i, g) AS MATERIALIZED (
    SELECT i.indrelid, pg_catalog.quote_ident(x.relname), i.indisprimary, i.indisreplident,
        EXISTS (SELECT FROM pg_catalog.pg_attribute t WHERE t.attrelid = i.indrelid
            AND t.attnum = ANY(i.indkey) AND t.attgenerated <> '')
    FROM (SELECT DISTINCT m FROM d) d, pg_catalog.pg_index i, pg_catalog.pg_class x
    WHERE i.indrelid = d.m AND x.oid = i.indexrelid AND i.indisvalid AND i.indisunique
        AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
        AND (i.indisprimary OR NOT i.indisexclusion)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute t WHERE t.attrelid = i.indrelid
            AND t.attnum = ANY(i.indkey) AND NOT t.attnotnull))
SELECT 'relation', d.o::text, d.m::text,
    pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),
    CASE
        WHEN c.relkind = 'm' THEN 'it is a materialized view'
        WHEN c.relkind = 'f' THEN 'it is a foreign table'
        WHEN c.relkind NOT IN ('r', 'p') THEN 'it is no table'
        WHEN c.relpersistence <> 'p' THEN 'it is not logged'
        ELSE '' END,
    CASE WHEN c.relkind = 'p' THEN 'partitioned' WHEN c.relhassubclass THEN 'parent' ELSE '' END,
    CASE WHEN EXISTS (SELECT FROM p WHERE p.s = n.nspname AND p.t = c.relname)
        THEN 'published' ELSE '' END,
    CASE
        -- New partitions have the key of what they are partitions of, and the default.
        WHEN c.relkind = 'p'
            THEN CASE WHEN EXISTS (SELECT FROM g WHERE g.r = c.oid AND g.k AND NOT g.g)
                THEN 'identity' ELSE '' END
        WHEN c.relreplident = 'f'
            THEN CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_attribute t
                WHERE t.attrelid = c.oid AND t.attgenerated <> '' AND NOT t.attisdropped)
                THEN '' ELSE 'identity' END
        WHEN EXISTS (SELECT FROM g WHERE g.r = c.oid AND NOT g.g
            AND CASE c.relreplident WHEN 'd' THEN g.k WHEN 'i' THEN g.i ELSE false END)
            THEN 'identity'
        ELSE '' END,
    CASE WHEN c.relkind = 'r' THEN (
        SELECT CASE WHEN g.k THEN 'DEFAULT' ELSE 'USING INDEX ' || g.x END
        FROM g WHERE g.r = c.oid AND NOT g.g ORDER BY g.k DESC, g.x LIMIT 1) END,
    CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_attribute t
        WHERE t.attrelid = c.oid AND t.attgenerated <> '' AND NOT t.attisdropped)
        THEN 'generated' ELSE '' END
FROM d, pg_catalog.pg_class c, pg_catalog.pg_namespace n
WHERE c.oid = d.m AND n.oid = c.relnamespace
UNION ALL
SELECT * FROM (
    SELECT 'publication', NULL, NULL, pg_catalog.quote_ident(u.name),
        CASE
            WHEN p.oid IS NULL THEN 'new'
            WHEN NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate)
                THEN 'it leaves a kind of change out'
            WHEN p.puballtables THEN 'it is for all tables'
            WHEN p.pubviaroot THEN 'it publishes partitions under the name of their root'
            ELSE '' END,
        pg_catalog.current_setting('wal_level'), NULL, NULL, NULL, NULL
    FROM pg_catalog.unnest($publications::pg_catalog.text[]) WITH ORDINALITY u(name, place)
    LEFT JOIN pg_catalog.pg_publication p ON p.pubname = u.name
    ORDER BY u.place) u
