-- The relations that a statement changes, and how: insert (i), update (u), delete (d), truncate (c,
-- or e with CASCADE), refresh (x). An update may move a row to another partition.
t(n, o, k) AS (
    SELECT m.n, CASE WHEN m.k IN ('i', 'u', 'd', 'c', 'e', 'x')
        THEN pg_catalog.to_regclass(m.t)::pg_catalog.oid END, m.k
    FROM m WHERE m.k IN ('i', 'u', 'd', 'c', 'e', 'x')
    UNION
    SELECT t.n, x.o, x.k FROM t, LATERAL (
        SELECT i.inhrelid, t.k FROM pg_catalog.pg_inherits i WHERE i.inhparent = t.o
        UNION ALL
        SELECT t.o, z.k FROM pg_catalog.pg_class c, (VALUES ('i'), ('d')) z(k)
        WHERE t.k = 'u' AND c.oid = t.o AND c.relkind = 'p'
        UNION ALL
        SELECT (pg_catalog.regexp_matches(q.ev_action::text, ':relid (\d+)', 'g'))[1]::pg_catalog.oid, t.k
        FROM pg_catalog.pg_class c, pg_catalog.pg_rewrite q
        WHERE c.oid = t.o AND c.relkind = 'v' AND q.ev_class = c.oid AND q.ev_type = '1'
        UNION ALL
        SELECT f.conrelid, CASE WHEN t.k = 'e' THEN 'e' WHEN t.k = 'd' AND f.confdeltype = 'c' THEN 'd' ELSE 'u' END
        FROM pg_catalog.pg_constraint f
        WHERE f.contype = 'f' AND f.confrelid = t.o AND (t.k = 'e'
            OR t.k = 'd' AND f.confdeltype IN ('c', 'n', 'd') OR t.k = 'u' AND f.confupdtype IN ('c', 'n', 'd'))
        ) x(o, k)),
-- Those whose rows change, seen from a query of any of them: a parent has its children's rows.
u(n, o) AS (
    SELECT t.n, t.o FROM t GROUP BY t.n, t.o
    UNION
    SELECT u.n, i.inhparent FROM u, pg_catalog.pg_inherits i WHERE i.inhrelid = u.o),
