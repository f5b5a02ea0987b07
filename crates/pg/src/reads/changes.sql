    -- What a statement may change.
    UNION
    SELECT u.n, 'writes ' || u.o || ' ' || s.nspname || '.' || c.relname
    FROM (SELECT u.n, u.o FROM u GROUP BY u.n, u.o) u, pg_catalog.pg_class c, pg_catalog.pg_namespace s
    WHERE c.oid = u.o AND s.oid = c.relnamespace AND c.relkind <> 'v' AND c.relpersistence <> 't'
    UNION
    SELECT t.n, 'through ' || t.o FROM t
    UNION
    SELECT g.n, 'anything' FROM g, e
    WHERE e.oid = g.o AND g.o NOT IN (SELECT h.o FROM h) GROUP BY g.n
    UNION
    SELECT t.n, 'anything' FROM t WHERE t.o IS NULL
    UNION
    SELECT t.n, 'anything' FROM t, pg_catalog.pg_class c, pg_catalog.pg_namespace s
    WHERE c.oid = t.o AND s.oid = c.relnamespace AND (c.oid < 16384 OR s.nspname = 'information_schema'
        OR c.relkind NOT IN ('r', 'p', 'v') AND NOT (c.relkind = 'm' AND t.k = 'x'))
    UNION
    SELECT t.n, 'anything' FROM t, pg_catalog.pg_rewrite q WHERE q.ev_class = t.o AND q.ev_type <> '1'
