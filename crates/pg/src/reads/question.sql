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
-- The relations, and how they come: named or behind views (r), as partitions and other children
-- (c), to be refreshed (x). CASE decides the order: to_regclass fails for what is no name.
r(n, o, h) AS (
    SELECT m.n, CASE WHEN m.k IN ('r', 'x') THEN pg_catalog.to_regclass(m.t)::pg_catalog.oid END, m.k
    FROM m WHERE m.k IN ('r', 'x')
    UNION
    SELECT r.n, x.o, x.h FROM r, LATERAL (
        SELECT i.inhrelid, 'c' FROM pg_catalog.pg_inherits i WHERE i.inhparent = r.o
        UNION ALL
        SELECT (pg_catalog.regexp_matches(q.ev_action::text, ':relid (\d+)', 'g'))[1]::pg_catalog.oid, 'r'
        FROM pg_catalog.pg_class c, pg_catalog.pg_rewrite q
        WHERE c.oid = r.o AND (c.relkind = 'v' OR r.h = 'x') AND q.ev_class = c.oid AND q.ev_type = '1'
        ) x(o, h)),
-- The relations above those that are read: parents, and theirs.
y(n, o) AS (
    SELECT r.n, i.inhparent FROM r, pg_catalog.pg_inherits i WHERE r.h = 'r' AND i.inhrelid = r.o
    UNION
    SELECT y.n, i.inhparent FROM y, pg_catalog.pg_inherits i WHERE i.inhrelid = y.o),
-- The relations that a statement changes (t), and those whose rows change with them (u).
$targets
-- The queries of the views, and of what is refreshed.
w(n, q) AS (
    SELECT a.n, q.ev_action::text
    FROM (SELECT r.n, r.o, r.h FROM r UNION SELECT t.n, t.o, 'r' FROM t) a, pg_catalog.pg_class c,
        pg_catalog.pg_rewrite q
    WHERE c.oid = a.o AND (c.relkind = 'v' OR a.h = 'x') AND q.ev_class = c.oid AND q.ev_type = '1'),
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
-- These, those of aggregates and of defaults of arguments, and those that run when a row changes:
-- in triggers, constraints, defaults and policies.
g(n, o) AS MATERIALIZED (SELECT x.n, x.o FROM (
    SELECT f.n, f.o FROM f
    UNION ALL
    SELECT f.n, x.o FROM f, pg_catalog.pg_aggregate g, LATERAL (VALUES (g.aggtransfn), (g.aggfinalfn),
        (g.aggcombinefn), (g.aggserialfn), (g.aggdeserialfn), (g.aggmtransfn), (g.aggminvtransfn),
        (g.aggmfinalfn)) x(o)
    WHERE g.aggfnoid = f.o AND f.o >= 16384
    UNION ALL
    SELECT t.n, x.tgfoid FROM t, pg_catalog.pg_trigger x
    WHERE x.tgrelid = t.o AND x.tgenabled <> 'D' AND x.tgtype::int4
        & CASE t.k WHEN 'i' THEN 4 WHEN 'd' THEN 8 WHEN 'u' THEN 16 ELSE 32 END <> 0
    UNION ALL
    SELECT e.n, (pg_catalog.regexp_matches(e.x, ':(?:funcid|opfuncid) (\d+)', 'g'))[1]::pg_catalog.oid
    FROM (
        SELECT f.n, p.proargdefaults::text FROM f, pg_catalog.pg_proc p
        WHERE p.oid = f.o AND p.pronargdefaults > 0
        UNION ALL
        SELECT t.n, x.adbin::text FROM t, pg_catalog.pg_attrdef x WHERE x.adrelid = t.o
        UNION ALL
        SELECT t.n, x.conbin::text FROM t, pg_catalog.pg_constraint x WHERE x.conrelid = t.o
        UNION ALL
        SELECT t.n, x.tgqual::text FROM t, pg_catalog.pg_trigger x WHERE x.tgrelid = t.o
        UNION ALL
        SELECT a.n, z.x FROM (SELECT r.n, r.o FROM r UNION SELECT t.n, t.o FROM t) a,
            pg_catalog.pg_policy x, LATERAL (VALUES (x.polqual::text), (x.polwithcheck::text)) z(x)
        WHERE x.polrelid = a.o) e(n, x)) x(n, o) GROUP BY x.n, x.o),
-- The bodies of the user's functions that can be judged by their words: they read no relation, and
-- no word of them is hidden by quotes, comments or letters beyond ASCII.
b(o, x) AS MATERIALIZED (
    SELECT p.oid, y.x FROM pg_catalog.pg_proc p, pg_catalog.pg_language l, LATERAL (
        SELECT pg_catalog.regexp_replace(pg_catalog.lower(p.prosrc COLLATE pg_catalog."C"),
            '\mis\s+(not\s+)?distinct\s+from\M', '=', 'g')) y(x)
    WHERE p.oid IN (SELECT g.o FROM g WHERE g.o >= 16384) AND l.oid = p.prolang
        AND l.lanname IN ('plpgsql', 'sql') AND p.prosrc <> ''
        AND p.prosrc COLLATE pg_catalog."C" !~ '["]|/\*|--[^\n]*\n\s*\(|[^\x01-\x7f]'
        AND y.x !~ '\m(from|join|table|using|insert|update|delete|merge|truncate|copy|execute|call|do|create|alter|drop|grant|revoke|refresh|import|reassign|cluster)\M'),
-- The words in them that may be the names of functions.
z(o, t) AS MATERIALIZED (
    SELECT b.o, (pg_catalog.regexp_matches(b.x, '([\w$]+)\s*\(', 'g'))[1] FROM b
    UNION
    SELECT b.o, (pg_catalog.regexp_matches(b.x, '\.\s*([\w$]+)', 'g'))[1] FROM b),
-- The functions that may change rows: of the system's own those that run the text that they are
-- given, of the user's the volatile ones, unless their words tell otherwise.
e(oid) AS MATERIALIZED (
    SELECT p.oid FROM pg_catalog.pg_proc p, pg_catalog.pg_language l WHERE l.oid = p.prolang AND (
        p.oid >= 16384 AND p.provolatile = 'v' AND NOT (l.lanname = 'c' AND p.proname IN (
            'gen_random_bytes', 'gen_random_uuid', 'gen_salt', 'moddatetime', 'uuid_generate_v1',
            'uuid_generate_v1mc', 'uuid_generate_v4'))
        OR p.oid < 16384 AND (p.proname IN ('ts_rewrite', 'ts_stat')
            OR p.proname LIKE 'query\_to\_xml%' OR p.proname LIKE 'cursor\_to\_xml%'
            OR p.proname LIKE 'table\_to\_xml%' OR p.proname LIKE 'schema\_to\_xml%'
            OR p.proname LIKE 'database\_to\_xml%'))),
-- The user's functions that change no rows, by their words: nothing that the words do not show is
-- volatile either.
h(o) AS MATERIALIZED (
    SELECT b.o FROM b
    WHERE NOT EXISTS (SELECT FROM z, pg_catalog.pg_proc p
            WHERE z.o = b.o AND p.proname = z.t AND (p.oid IN (SELECT e.oid FROM e)
                OR p.oid >= 16384 AND (p.prokind = 'a' OR p.pronargdefaults > 0)))
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_operator o, e WHERE o.oprcode = e.oid)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k, e, LATERAL pg_catalog.regexp_matches(
                k.conbin::text, ':(?:funcid|opfuncid) (\d+)', 'g') x(o)
            WHERE k.contypid <> 0 AND e.oid = x.o[1]::pg_catalog.oid)),
-- Stable functions of the system's own that may show the present: all that are not known to depend
-- on their arguments and on settings alone.
s AS MATERIALIZED (
    SELECT p.oid, p.proname, p.proargtypes FROM pg_catalog.pg_proc p
    WHERE p.provolatile = 's' AND p.oid < 16384 AND p.proname NOT IN (
        'array_to_json', 'array_to_string', 'concat', 'concat_ws', 'convert', 'convert_from',
        'convert_to', 'date', 'date_part', 'date_trunc', 'extract', 'format', 'generate_series',
        'json_agg', 'json_build_array', 'json_build_object', 'json_object_agg',
        'json_populate_record', 'json_populate_recordset', 'json_to_record', 'json_to_recordset',
        'jsonb_agg', 'jsonb_build_array', 'jsonb_build_object', 'jsonb_object_agg',
        'jsonb_populate_record', 'jsonb_populate_recordset', 'jsonb_to_record',
        'jsonb_to_recordset', 'length', 'make_timestamptz', 'numeric', 'overlaps',
        'quote_literal', 'quote_nullable', 'row_to_json', 'time', 'timestamp', 'timestamptz',
        'timezone', 'to_char', 'to_date', 'to_json', 'to_jsonb', 'to_number', 'to_timestamp')),
-- Reasons why a result is not to be kept. The offset of a time with time zone is that of today.
p(n, why) AS (
    SELECT m.n, 'clock-function' FROM m, s WHERE m.k = 'f' AND s.proname = m.t
    UNION
    SELECT m.n, 'clock-function' FROM m, s, pg_catalog.pg_type y
    WHERE m.k = 'a' AND s.proname = m.t AND y.oid = s.proargtypes[0] AND y.typtype IN ('c', 'd', 'p')
    UNION
    SELECT e.n, 'clock-function' FROM s, (
        SELECT w.n, (pg_catalog.regexp_matches(w.q,
            ':(?:funcid|aggfnoid|winfnoid) (\d+)', 'g'))[1]::pg_catalog.oid FROM w) e(n, o)
    WHERE s.oid = e.o
    UNION
    SELECT m.n, 'clock-function' FROM m WHERE m.k = 't' AND m.t = 'timetz'
    UNION
    SELECT r.n, 'clock-function' FROM r, pg_catalog.pg_attribute a
    WHERE a.attrelid = r.o AND a.attnum > 0 AND a.atttypid IN (1266, 1270)
    UNION
    SELECT w.n, x.why FROM w, LATERAL (VALUES (w.q LIKE '%SQLVALUEFUNCTION%', 'clock-function'),
        (w.q LIKE '%TABLESAMPLECLAUSE%', 'sample'),
        (w.q LIKE '%:varattno -%', 'system-column'),
        (w.q ~ ':resulttype (1082|1083|1114|1184|1266) :resultcollid', 'date-text')) x(holds, why)
    WHERE x.holds
    -- Immutable functions may be marked so wrongly: their words have to show it.
    UNION
    SELECT g.n, 'stable-function' FROM g, pg_catalog.pg_proc p, pg_catalog.pg_language l
    WHERE p.oid = g.o AND g.o >= 16384 AND l.oid = p.prolang AND NOT (p.provolatile = 'i'
        AND (l.lanname IN ('c', 'internal') OR EXISTS (SELECT FROM b WHERE b.o = g.o
            AND b.x !~ '\m(current_\w+|localtime\w*|session_user|user|system_user|now|today|tomorrow|yesterday|timetz)\M'
            AND NOT EXISTS (SELECT FROM z, pg_catalog.pg_proc q WHERE z.o = b.o AND q.proname = z.t
                AND (q.oid IN (SELECT s.oid FROM s) OR q.oid IN (SELECT v.oid FROM v)
                    OR q.oid >= 16384)))))
    GROUP BY g.n),
-- The statements that may check the constraint of a domain: those that know a type of the user's.
d(n) AS (
    SELECT m.n FROM m WHERE m.k = 'p'
    UNION
    SELECT m.n FROM m, pg_catalog.pg_type y WHERE m.k IN ('t', 'f') AND y.typname = m.t AND y.oid >= 16384
    UNION
    SELECT f.n FROM f, pg_catalog.pg_proc p, pg_catalog.unnest(p.proargtypes) u(y)
    WHERE p.oid = f.o AND u.y >= 16384
    UNION
    SELECT a.n FROM (SELECT r.n, r.o FROM r UNION SELECT t.n, t.o FROM t) a, pg_catalog.pg_attribute x
    WHERE x.attrelid = a.o AND x.attnum > 0 AND x.atttypid >= 16384
    UNION
    SELECT w.n FROM w WHERE w.q LIKE '%COERCETODOMAIN%')
SELECT x.n || ' ' || x.why FROM (
    SELECT g.n, pg_catalog.min(v.why) FROM g, v WHERE v.oid = g.o GROUP BY g.n
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
    SELECT p.n, p.why FROM p
    -- What a result depends on.
    UNION
    SELECT r.n, 'reads ' || r.o || ' ' || s.nspname || '.' || c.relname
    FROM r, pg_catalog.pg_class c, pg_catalog.pg_namespace s
    WHERE c.oid = r.o AND s.oid = c.relnamespace AND r.h = 'r' AND c.relkind <> 'v'
    UNION
    SELECT y.n, 'below ' || y.o FROM y
    $changes
    -- The database, and the cluster.
    UNION
    SELECT -1, 'database ' || s.system_identifier || ' ' || d.oid
    FROM pg_catalog.pg_control_system() s, pg_catalog.pg_database d
    WHERE d.datname = pg_catalog.current_database()
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
