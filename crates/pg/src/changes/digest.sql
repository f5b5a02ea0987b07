WITH RECURSIVE
-- The tables that replies read, with their partitions and other children.
b(o) AS (SELECT pg_catalog.unnest('{$tables}'::pg_catalog.oid[])),
e(m) AS (
    SELECT b.o FROM b
    UNION
    SELECT i.inhrelid FROM e, pg_catalog.pg_inherits i WHERE i.inhparent = e.m)
-- What changes with each change of a publication.
SELECT 'as-of', '', '', pg_catalog.bit_xor(pg_catalog.hashint8extended(x.o, x.s))::text FROM (
    SELECT b.oid::int8, b.xmin::text::int8 FROM pg_catalog.pg_publication b
    UNION ALL
    SELECT b.oid::int8 | 1::int8 << 32, b.xmin::text::int8 FROM pg_catalog.pg_publication_rel b
    $schemas) x(o, s)
-- What changes with what is above and below, and with the tables.
UNION ALL
SELECT 'rest', '', '', pg_catalog.bit_xor(pg_catalog.hashint8extended(x.o, x.s))::text FROM (
    SELECT i.inhrelid::int8 << 32 | i.inhparent::int8, i.xmin::text::int8
    FROM pg_catalog.pg_inherits i
    UNION ALL
    SELECT c.oid::int8 << 32 | c.relnamespace::int8,
        1::int8 << 32 | c.relkind::int4 << 8 | c.relpersistence::int4
    FROM e JOIN pg_catalog.pg_class c ON c.oid = e.m) x(o, s)
