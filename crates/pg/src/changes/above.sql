WITH RECURSIVE
a(o) AS (SELECT pg_catalog.unnest('{$tables}'::pg_catalog.oid[])),
-- The relations above them.
u(o, m) AS (
    SELECT a.o, i.inhparent FROM a, pg_catalog.pg_inherits i WHERE i.inhrelid = a.o
    UNION
    SELECT u.o, i.inhparent FROM u, pg_catalog.pg_inherits i WHERE i.inhrelid = u.m)
SELECT 'above', u.o::text, u.m::text, n.nspname || '.' || c.relname
FROM u, pg_catalog.pg_class c, pg_catalog.pg_namespace n
WHERE c.oid = u.m AND n.oid = c.relnamespace
