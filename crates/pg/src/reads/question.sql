WITH RECURSIVE
-- What the statements mention: the number of the statement, the kind of the name, the name.
m(n, k, t) AS (VALUES $names),
-- The functions to which it objects. Those that are named here are not volatile, but show the
-- session, its server process or its transaction, or run what their arguments say: a query of a
-- relation, or the input function of a type.
v AS MATERIALIZED (
    SELECT p.oid, CASE p.provolatile WHEN 'v' THEN 'volatile' ELSE 'session' END AS why
    FROM pg_catalog.pg_proc p
    WHERE p.provolatile = 'v' OR p.provolatile = 's' AND p.oid < 16384 AND (
        p.proname IN ('inet_client_addr', 'inet_client_port', 'inet_server_addr',
            'inet_server_port', 'pg_backend_pid', 'pg_conf_load_time', 'pg_current_xact_id',
            'pg_current_xact_id_if_assigned', 'pg_cursor', 'pg_is_other_temp_schema',
            'pg_listening_channels', 'pg_my_temp_schema', 'pg_prepared_statement',
            'pg_show_all_settings', 'txid_current', 'txid_current_if_assigned')
        OR p.proname LIKE 'pg\_stat\_get\_%' OR p.proname LIKE 'table\_to\_xml%'
        OR p.proname LIKE 'schema\_to\_xml%' OR p.proname LIKE 'database\_to\_xml%'
        OR p.proname LIKE 'pg\_input\_%')),
-- The relations, with those behind views, and the partitions and other children. CASE decides the
-- order: to_regclass fails for what is no name.
r(n, o) AS (
    SELECT m.n, CASE m.k WHEN 'r' THEN pg_catalog.to_regclass(m.t)::pg_catalog.oid END
    FROM m WHERE m.k = 'r'
    UNION
    SELECT r.n, x.o FROM r, LATERAL (
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = r.o
        UNION ALL
        SELECT (pg_catalog.regexp_matches(q.ev_action::text, ':relid (\d+)', 'g'))[1]::pg_catalog.oid
        FROM pg_catalog.pg_class c, pg_catalog.pg_rewrite q
        WHERE c.oid = r.o AND c.relkind = 'v' AND q.ev_class = c.oid AND q.ev_type = '1') x(o)),
-- The queries of the views.
w(n, q) AS (
    SELECT r.n, q.ev_action::text
    FROM r, pg_catalog.pg_class c, pg_catalog.pg_rewrite q
    WHERE c.oid = r.o AND c.relkind = 'v' AND q.ev_class = c.oid AND q.ev_type = '1'),
-- The functions: those that are called, those that fields may be, those of operators, those in
-- views.
f(n, o) AS (
    SELECT m.n, p.oid FROM m, pg_catalog.pg_proc p WHERE m.k = 'f' AND p.proname = m.t
    UNION
    SELECT m.n, p.oid FROM m, pg_catalog.pg_proc p, pg_catalog.pg_type y
    WHERE m.k = 'a' AND p.proname = m.t AND y.oid = p.proargtypes[0] AND y.typtype IN ('c', 'd', 'p')
    UNION
    SELECT m.n, o.oprcode FROM m, pg_catalog.pg_operator o WHERE m.k = 'o' AND o.oprname = m.t
    UNION
    SELECT w.n, (pg_catalog.regexp_matches(w.q,
        ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g'))[1]::pg_catalog.oid
    FROM w),
-- Stable functions that may show the present: those of users, and of the system's own all that are
-- not known to depend on their arguments and on settings alone.
s AS MATERIALIZED (
    SELECT p.oid, p.proname, p.proargtypes FROM pg_catalog.pg_proc p
    WHERE p.provolatile = 's' AND (p.oid >= 16384 OR p.proname NOT IN (
        'array_to_json', 'array_to_string', 'concat', 'concat_ws', 'convert', 'convert_from',
        'convert_to', 'date', 'date_part', 'date_trunc', 'extract', 'format', 'generate_series',
        'json_agg', 'json_build_array', 'json_build_object', 'json_object_agg',
        'json_populate_record', 'json_populate_recordset', 'json_to_record', 'json_to_recordset',
        'jsonb_agg', 'jsonb_build_array', 'jsonb_build_object', 'jsonb_object_agg',
        'jsonb_populate_record', 'jsonb_populate_recordset', 'jsonb_to_record',
        'jsonb_to_recordset', 'length', 'make_timestamptz', 'numeric', 'overlaps',
        'quote_literal', 'quote_nullable', 'row_to_json', 'time', 'timestamp', 'timestamptz',
        'timetz', 'timezone', 'to_char', 'to_date', 'to_json', 'to_jsonb', 'to_number',
        'to_timestamp'))),
-- The statements that may show the present: no objection, but their results are not kept.
p(n) AS (
    SELECT m.n FROM m, s WHERE m.k = 'f' AND s.proname = m.t
    UNION
    SELECT m.n FROM m, s, pg_catalog.pg_type y
    WHERE m.k = 'a' AND s.proname = m.t AND y.oid = s.proargtypes[0] AND y.typtype IN ('c', 'd', 'p')
    UNION
    SELECT f.n FROM f, s WHERE s.oid = f.o AND f.o >= 16384
    UNION
    SELECT e.n FROM s, (
        SELECT w.n, (pg_catalog.regexp_matches(w.q,
            ':(?:funcid|aggfnoid|winfnoid) (\d+)', 'g'))[1]::pg_catalog.oid FROM w) e(n, o)
    WHERE s.oid = e.o
    UNION
    SELECT w.n FROM w WHERE w.q LIKE '%SQLVALUEFUNCTION%'),
-- The statements that may check the constraint of a domain: those that know a type of the user's.
d(n) AS (
    SELECT m.n FROM m WHERE m.k = 'p'
    UNION
    SELECT m.n FROM m, pg_catalog.pg_type y WHERE m.k IN ('t', 'f') AND y.typname = m.t AND y.oid >= 16384
    UNION
    SELECT f.n FROM f, pg_catalog.pg_proc p, pg_catalog.unnest(p.proargtypes) u(y)
    WHERE p.oid = f.o AND u.y >= 16384
    UNION
    SELECT r.n FROM r, pg_catalog.pg_attribute a
    WHERE a.attrelid = r.o AND a.attnum > 0 AND a.atttypid >= 16384
    UNION
    SELECT w.n FROM w WHERE w.q LIKE '%COERCETODOMAIN%')
SELECT x.n || ' ' || x.why FROM (
    SELECT f.n, v.why FROM f, v WHERE v.oid = f.o
    UNION
    SELECT f.n, v.why FROM f, pg_catalog.pg_aggregate g, v
    WHERE g.aggfnoid = f.o AND f.o >= 16384 AND v.oid IN (g.aggtransfn, g.aggfinalfn, g.aggcombinefn,
        g.aggserialfn, g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn)
    UNION
    SELECT f.n, v.why FROM f, pg_catalog.pg_proc p, v, LATERAL pg_catalog.regexp_matches(
        p.proargdefaults::text, ':(?:funcid|opfuncid) (\d+)', 'g') e(o)
    WHERE p.oid = f.o AND p.pronargdefaults > 0 AND v.oid = e.o[1]::pg_catalog.oid
    UNION
    SELECT m.n, 'missing' FROM m
    WHERE CASE m.k WHEN 'r' THEN pg_catalog.to_regclass(m.t) IS NULL END
        AND NOT EXISTS (SELECT FROM m o WHERE o.k = 'w' AND o.n = m.n AND o.t = m.t)
    UNION
    SELECT r.n, CASE WHEN c.oid < 16384 OR s.nspname = 'information_schema' THEN 'catalog'
        WHEN c.relpersistence = 't' THEN 'temporary'
        WHEN c.relrowsecurity THEN 'row-security'
        WHEN c.relkind NOT IN ('r', 'p', 'm', 'v') THEN 'relation' END
    FROM r, pg_catalog.pg_class c, pg_catalog.pg_namespace s
    WHERE c.oid = r.o AND s.oid = c.relnamespace
    UNION
    SELECT w.n, 'view-locks' FROM w WHERE w.q LIKE '%:rowMarks (%'
    UNION
    SELECT d.n, 'domain' FROM d WHERE EXISTS (
        SELECT FROM pg_catalog.pg_constraint k, v, LATERAL pg_catalog.regexp_matches(
            k.conbin::text, ':(?:funcid|opfuncid) (\d+)', 'g') e(o)
        WHERE k.contypid <> 0 AND v.oid = e.o[1]::pg_catalog.oid)
    UNION
    SELECT p.n, 'present' FROM p
    -- What any statement may run.
    UNION
    SELECT -1, 'volatile' FROM pg_catalog.pg_operator o, v
    WHERE o.oprcode = v.oid AND o.oprname IN ('=', '<>', '<', '<=', '>', '>=')
    UNION
    SELECT -1, 'cast' FROM pg_catalog.pg_cast c, v WHERE c.castfunc = v.oid
    UNION
    SELECT -1, 'operator-class' FROM pg_catalog.pg_amproc a, v WHERE a.amproc = v.oid
    UNION
    SELECT -1, 'type' FROM pg_catalog.pg_type y
    WHERE y.typinput IN (SELECT v.oid FROM v) OR y.typoutput IN (SELECT v.oid FROM v)
        OR y.typreceive IN (SELECT v.oid FROM v) OR y.typsend IN (SELECT v.oid FROM v)
) x(n, why) WHERE x.why IS NOT NULL ORDER BY 1
