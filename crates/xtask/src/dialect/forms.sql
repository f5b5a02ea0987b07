-- Forms of PostgreSQL's dialect that tools use: each statement means the same here.
CREATE TABLE t (a INT, b TEXT, c INT);
INSERT INTO t VALUES (1, 'x', 10), (1, 'y', 20), (2, 'x', 30), (2, NULL, 40), (3, 'z', NULL), (NULL, 'z', 60);

-- DISTINCT ON
SELECT DISTINCT ON (a) a, b, c FROM t ORDER BY a, c DESC;
SELECT DISTINCT ON (a) a, b FROM t ORDER BY a DESC, b NULLS FIRST;
SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a LIMIT 2;
SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a OFFSET 1;
SELECT DISTINCT ON (1) a + 1 AS n, c FROM t ORDER BY 1, 2;
SELECT DISTINCT ON (n) a + 1 AS n, c FROM t ORDER BY n, c DESC NULLS LAST;
SELECT DISTINCT ON (a, b) c FROM t ORDER BY b, a, c;
SELECT DISTINCT ON (a) b FROM t ORDER BY a, c;
SELECT DISTINCT ON (a) b, a FROM t ORDER BY b, a;
SELECT DISTINCT ON (a) b, a FROM t ORDER BY a, b, a;
SELECT DISTINCT ON (a, b) a FROM t ORDER BY a;
SELECT DISTINCT ON (a) a, count(*) FROM t GROUP BY a, b ORDER BY a, count(*) DESC;
SELECT DISTINCT ON (a) a, sum(c) OVER (PARTITION BY b) AS s FROM t ORDER BY a, s, b;
SELECT sum(c) FROM (SELECT DISTINCT ON (a) a, c FROM t ORDER BY a, c) AS s;
SELECT DISTINCT ON (t.a) t.a, u.c FROM t JOIN t AS u ON u.a = t.a ORDER BY t.a, u.c DESC;
SELECT a FROM t WHERE EXISTS (SELECT DISTINCT ON (u.b) u.b FROM t AS u WHERE u.a = t.a) ORDER BY a;
SELECT DISTINCT ON (a) a, count(*) FROM t ORDER BY a;
SELECT DISTINCT ON (a) a FROM t FOR UPDATE;

-- Rows
SELECT (1, 2) = (1, 2), (1, 2) <> (1, 3), (1, NULL) = (2, 3), (1, NULL) = (1, 3), ROW(1, 2) < ROW(1, 3);
SELECT (1, 2) < (1, NULL), (1, 2) < (2, NULL), (2, NULL) <= (1, 1), (NULL, 1) > (1, 1), (1, 'b') >= (1, 'a');
SELECT a, c FROM t WHERE (a, c) > (1, 10) ORDER BY a, c;
SELECT a, c FROM t WHERE (a, c) <= (2, 30) ORDER BY a, c;
SELECT a FROM t WHERE (a, b) IN ((1, 'x'), (2, 'x'), (3, 'y')) ORDER BY a;
SELECT a, b FROM t WHERE (a, b) NOT IN ((1, 'x'), (2, 'x')) ORDER BY a, b;
SELECT a, b FROM t WHERE (a, b) IN (SELECT a + 1, 'x' FROM t) ORDER BY a, b;
SELECT a, c FROM t WHERE (a, c) NOT IN (SELECT a, 10 FROM t WHERE a IS NOT NULL) ORDER BY a, c;
SELECT (1, 2) = (1, 2, 3);
SELECT (1, 2) IN (SELECT 1);
UPDATE t SET (b, c) = ('w', c + 1) WHERE (a, c) = (3, 1);

-- LATERAL
SELECT t.a, l.m FROM t, LATERAL (SELECT max(u.c) AS m FROM t AS u WHERE u.a = t.a) AS l ORDER BY 1, 2;
SELECT t.a, l.b, l.c FROM t LEFT JOIN LATERAL (SELECT u.b, u.c FROM t AS u WHERE u.a = t.a ORDER BY u.c DESC LIMIT 1) AS l ON true ORDER BY 1, 2, 3;
SELECT t.a, l.n FROM t CROSS JOIN LATERAL (SELECT t.a + 1 AS n) AS l ORDER BY 1;
SELECT t.a, l.x FROM t JOIN LATERAL (VALUES (t.a), (t.c)) AS l (x) ON l.x > 1 ORDER BY 1, 2;
SELECT l.f, l.k, l.d, l.s FROM t, LATERAL (SELECT 0.1::float8 + t.a AS f, t.a = 1 AS k, DATE '2020-01-01' + t.a AS d, t.b AS s) AS l ORDER BY 1, 4;
SELECT count(*) FROM t, LATERAL (SELECT 1 FROM t AS u WHERE u.a = t.a) AS l (one);
SELECT t.a, m.y FROM t, LATERAL (SELECT t.a AS x) AS l, LATERAL (SELECT l.x * 2 AS y) AS m ORDER BY 1;
SELECT a FROM t AS o WHERE EXISTS (SELECT 1 FROM t AS i, LATERAL (SELECT i.a + o.a AS s) AS l WHERE l.s = 4) ORDER BY a;
SELECT l.x FROM t LEFT JOIN LATERAL (SELECT 1 AS x WHERE t.a = 2) AS l ON l.x = 1 ORDER BY 1;

-- Arrays
CREATE TABLE r (id INT PRIMARY KEY, i INT[], s TEXT[] NOT NULL DEFAULT '{}', f DOUBLE PRECISION[], k BOOLEAN[], v VARCHAR[], d DATE[], l BIGINT[] DEFAULT ARRAY[1, 2]);
INSERT INTO r (id, i, s, f, k, v, d) VALUES (1, '{1,2,3}', '{a,"b c",NULL}', '{1.5,-2}', '{t,f}', '{x}', '{2020-01-01}');
INSERT INTO r (id, i, s) VALUES (2, ARRAY[4, NULL], ARRAY['d', 'e']), (3, '{}', '{}'), (4, NULL, '{"",null,"null","{}","\\"}');
INSERT INTO r (id) VALUES (5);
SELECT * FROM r ORDER BY id;
SELECT id, i[1], i[2], i[9], s[1] FROM r ORDER BY id;
SELECT id FROM r WHERE i = '{1,2,3}' OR s = ARRAY['d', 'e'] ORDER BY id;
SELECT id FROM r WHERE i <> '{}' ORDER BY id;
SELECT id, i @> ARRAY[1], i @> '{}', i <@ '{1,2,3,4}', i && ARRAY[4, 9] FROM r ORDER BY id;
SELECT id, s @> ARRAY['a'], s @> '{b c}', s && '{d}' FROM r ORDER BY id;
SELECT ARRAY[1, NULL] @> ARRAY[NULL]::int[], ARRAY[1] @> ARRAY[1, 1], ARRAY[1, NULL] && ARRAY[NULL]::int[];
SELECT id, array_length(i, 1), cardinality(s), array_upper(i, 1), array_lower(i, 1), array_ndims(i) FROM r ORDER BY id;
SELECT id, array_append(i, 7), array_prepend(7, i), array_cat(i, '{8,9}'), array_remove(i, 2) FROM r ORDER BY id;
SELECT id, i || 7, 7 || i, i || ARRAY[8, 9], i || '{5}', i || NULL, s || 'z'::text, s || ARRAY['y'] FROM r ORDER BY id;
SELECT NULL::int[] || 1, NULL::int[] || NULL::int[], '{}'::int[] || '{}'::int[], ARRAY[1] || 2::bigint;
SELECT id, array_to_string(s, ','), array_position(s, 'e') FROM r ORDER BY id;
SELECT id, u FROM r, unnest(i) AS u ORDER BY id, u;
SELECT id FROM r WHERE 2 = ANY (i) OR 'd' = ANY (s) ORDER BY id;
SELECT id FROM r WHERE 0 < ALL (i) ORDER BY id;
SELECT i, count(*) FROM r GROUP BY i HAVING count(*) > 1;
SELECT DISTINCT s FROM r WHERE id IN (3, 5);
UPDATE r SET i = i || 10, s = array_append(s, 'n') WHERE id < 3 RETURNING id, i, s;
UPDATE r SET l = NULL, k = '{}' WHERE id = 5 RETURNING l, k;
INSERT INTO r (id, i) VALUES (6, '{x}');
INSERT INTO r (id, i) VALUES (6, '{1,2');
INSERT INTO r (id, i) VALUES (6, ARRAY['x']);
INSERT INTO r (id, s) VALUES (6, NULL);
SELECT array_agg(id ORDER BY id) FROM r WHERE s <> '{}';
SELECT i::text, s::text, f::text, k::text, d::text FROM r WHERE id = 1;
SELECT attname, format_type(atttypid, atttypmod), attndims::int FROM pg_attribute WHERE attrelid = 'r'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, data_type, udt_name FROM information_schema.columns WHERE table_name = 'r' ORDER BY ordinal_position;
ALTER TABLE r ADD COLUMN more INT[] NOT NULL DEFAULT '{1}';
SELECT id, more FROM r ORDER BY id;
CREATE UNIQUE INDEX r_i ON r (l) WHERE id > 4;
CREATE VIEW rv AS SELECT id, i, s FROM r;
SELECT * FROM rv ORDER BY id;

-- JSON
SELECT json_build_object('a', 1, 'b', true, 'c', NULL::text, 'd', 1.5::float8, 'e', 'x"y\', 'f', 2.50);
SELECT jsonb_build_object('b', 1, 'aa', 2, 'a', 'x', 'b', 3), jsonb_build_object(), json_build_object();
SELECT json_build_array(1, 'x', NULL, false, 1e20::float8), jsonb_build_array(1, 'x'), json_build_array();
SELECT json_build_object('d', DATE '2020-01-02', 't', TIMESTAMP '2020-01-02 03:04:05.6', 'z', TIMESTAMPTZ '2020-01-02 03:04:05+00', 'u', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
SELECT json_build_object('j', '{"a": 1}'::json, 'b', '[1,2]'::jsonb, 'i', ARRAY[1, 2], 's', ARRAY['x', NULL]);
SELECT json_build_object('a');
SELECT json_agg(a ORDER BY c), jsonb_agg(b ORDER BY c) FROM t;
SELECT json_agg(a) FROM t WHERE a > 100;
SELECT b, json_agg(json_build_object('a', a, 'c', c) ORDER BY c) FROM t GROUP BY b ORDER BY b;
SELECT coalesce(json_agg(a) FILTER (WHERE a > 100), '[]'::json) FROM t;
SELECT json_agg(x ORDER BY c) FROM (SELECT a, b, c FROM t WHERE c < 35) AS x;
SELECT row_to_json(x) FROM (SELECT a, b, a = 1 AS one FROM t) AS x ORDER BY x.a, x.b;
SELECT to_json('x'::text), to_json(1), to_jsonb(true), to_json(NULL::int), to_jsonb('a b'::text), array_to_json(ARRAY[1, 2]);
SELECT t.a, l.data FROM t LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_array(u.b, u.c) ORDER BY u.c), '[]'::json) AS data FROM t AS u WHERE u.a = t.a) AS l ON true ORDER BY t.a, t.c;
SELECT json_agg(count(*)) FROM t;

-- DELETE … USING
CREATE TABLE v (a INT);
INSERT INTO v VALUES (1), (3);
DELETE FROM t USING v WHERE t.a = v.a AND t.c = 10 RETURNING t.a, t.b;
DELETE FROM t USING v, v AS w WHERE t.a = v.a AND v.a = w.a;
SELECT a, b, c FROM t ORDER BY c;

-- Names and definitions
SELECT '{}'::int[], '{a}'::text[], 'a'::varchar(3);
SELECT 1 FROM pg_class WHERE oid = 'nosuch'::regclass AND relname = 'nosuch';
SELECT pg_get_viewdef('nosuch'::regclass), pg_relation_size('nosuch');
SELECT pg_get_serial_sequence('nosuch', 'a');
SELECT pg_size_pretty(10::bigint), pg_size_pretty(-1000000::bigint), pg_size_pretty(10485248::bigint), pg_size_pretty(9223372036854775807::bigint);
SELECT format_type('bpchar'::regtype, -1), format_type('bpchar'::regtype, NULL), format_type('varchar'::regtype, 9);
SELECT '\101'::"char", 'ab'::"char", ''::"char", '\377'::text::"char";
CREATE TABLE k (id INT NOT NULL, n INT CONSTRAINT n_big CHECK (n > 1), CONSTRAINT k_own PRIMARY KEY (id));
CREATE TABLE kt (id VARCHAR(9) CONSTRAINT kt_own PRIMARY KEY, k INT CONSTRAINT kt_k REFERENCES k);
SELECT conname, contype FROM pg_constraint WHERE conrelid IN ('k'::regclass, 'kt'::regclass) AND contype <> 'n' ORDER BY conname;
SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid IN ('k'::regclass, 'kt'::regclass) ORDER BY 1;
ALTER TABLE k ADD CONSTRAINT n_big UNIQUE (n);
ALTER TABLE k ADD CONSTRAINT n_big CHECK (n > 2);
ALTER TABLE k ADD CONSTRAINT k_own CHECK (n > 2);
ALTER TABLE k DROP CONSTRAINT nosuch;
ALTER TABLE k ALTER id TYPE BIGINT;
SELECT conname FROM pg_constraint WHERE conrelid = 'k'::regclass AND contype = 'p';
CREATE TABLE nk (a INT);
ALTER TABLE nk ADD COLUMN b INT REFERENCES nk;
CREATE INDEX ON nk (a, a);
SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'nk'::regclass;
CREATE TABLE a_table_with_a_name_of_forty_letters_or_so (a_column_with_a_name_of_forty_letters_or_so INT UNIQUE, CHECK (a_column_with_a_name_of_forty_letters_or_so > 1), CHECK (a_column_with_a_name_of_forty_letters_or_so > 2));
SELECT conname FROM pg_constraint WHERE conrelid = 'a_table_with_a_name_of_forty_letters_or_so'::regclass ORDER BY conname;
CREATE VIEW kv AS SELECT id, n FROM k;
ALTER TABLE kv ALTER COLUMN n DROP NOT NULL;
ALTER TABLE kv ADD COLUMN x INT;
COPY kv TO STDOUT;
DROP MATERIALIZED VIEW IF EXISTS nosuch;

-- Temporary objects
CREATE TEMP TABLE temp_nk (a INT, z TEXT);
INSERT INTO temp_nk VALUES (7, 'own');
CREATE VIEW tv AS SELECT a, z FROM temp_nk;
SELECT * FROM tv;
CREATE VIEW public.tv2 AS SELECT a FROM temp_nk;
CREATE TEMP TABLE nk (a INT, z TEXT);
INSERT INTO nk VALUES (8, 'temporary');
INSERT INTO public.nk VALUES (9);
SELECT * FROM nk;
SELECT * FROM public.nk;
UPDATE public.nk SET a = a + 1 RETURNING nk.a;
COPY public.nk TO STDOUT;
COPY nosuch.nk TO STDOUT;
TRUNCATE public.nk;
DROP TABLE public.nk;
SELECT * FROM nk;
DROP TABLE temp_nk CASCADE;
SELECT * FROM tv;

-- Functions in FROM see the items before them
SELECT r.id, f.u FROM r, upper(r.s[1]) AS f (u) ORDER BY r.id;
SELECT r.id, n FROM r CROSS JOIN array_length(r.i, 1) AS n ORDER BY r.id;
SELECT r.id, n FROM r LEFT JOIN array_length(r.i, 1) AS n ON n > 1 ORDER BY r.id;
SELECT * FROM lower('A') AS x;

-- Relations of the catalog have their OIDs
SELECT 'pg_class'::regclass::oid, 'pg_catalog.pg_statistic_ext'::regclass::oid, 'pg_publication'::regclass::oid, 'pg_operator'::regclass::oid, 'pg_sequence'::regclass::oid;
SELECT 'pg_default_acl'::regclass::oid, 'pg_shdepend'::regclass::oid, 'pg_auth_members'::regclass::oid, 'pg_foreign_server'::regclass::oid, 'pg_user_mapping'::regclass::oid, 'pg_foreign_data_wrapper'::regclass::oid, 'pg_shdescription'::regclass::oid, 'pg_aggregate'::regclass::oid, 'pg_am'::regclass::oid, 'pg_amop'::regclass::oid;
SELECT 'pg_amproc'::regclass::oid, 'pg_cast'::regclass::oid, 'pg_conversion'::regclass::oid, 'pg_depend'::regclass::oid, 'pg_inherits'::regclass::oid, 'pg_language'::regclass::oid, 'pg_largeobject'::regclass::oid, 'pg_opclass'::regclass::oid, 'pg_statistic'::regclass::oid, 'pg_opfamily'::regclass::oid;
SELECT 'pg_db_role_setting'::regclass::oid, 'pg_foreign_table'::regclass::oid, 'pg_policy'::regclass::oid, 'pg_partitioned_table'::regclass::oid, 'pg_init_privs'::regclass::oid, 'pg_event_trigger'::regclass::oid, 'pg_range'::regclass::oid, 'pg_transform'::regclass::oid, 'pg_seclabel'::regclass::oid, 'pg_ts_dict'::regclass::oid, 'pg_ts_parser'::regclass::oid, 'pg_ts_config'::regclass::oid, 'pg_ts_template'::regclass::oid, 'pg_subscription'::regclass::oid, 'pg_publication_rel'::regclass::oid;

-- Intervals
SELECT INTERVAL '-1 +02:03', INTERVAL '1 day -00:00:01', INTERVAL '5', INTERVAL '1 week 2 days 3 hours';
SELECT INTERVAL '1 second 3 milliseconds', INTERVAL '2 days ago', INTERVAL '1 year 2 mons 3 days 04:05:06.789';

-- Parts of jsonb
SELECT ('{"a": 1, "b": [1, "2", null]}'::jsonb)['a'], ('[1, "2", null]'::jsonb)[1], ('[1, 2]'::jsonb)[-1], ('{"a": 1}'::jsonb)[0], ('3'::jsonb)['a'];

-- Rows of the queries around
SELECT t.a, l.x FROM t, t AS u JOIN LATERAL (VALUES (t.a), (-1)) AS l (x) ON u.a = l.x ORDER BY t.a, l.x, u.c;
SELECT l.* FROM t, LATERAL (SELECT t.*) AS l ORDER BY l.c;
SELECT s.n FROM (VALUES (1), (2)) AS v (n), LATERAL (SELECT v.*) AS s ORDER BY s.n;

-- The right of an outer join does not see its left
SELECT n FROM t RIGHT JOIN generate_series(1, t.a) AS n ON true;
SELECT n FROM t FULL JOIN generate_series(1, a) AS n ON true;
SELECT n FROM t RIGHT JOIN (t AS u JOIN generate_series(1, t.a) AS n ON true) ON true;
SELECT (SELECT n FROM t RIGHT JOIN generate_series(1, t.a) AS n ON true) FROM t;
SELECT t.a, n FROM t RIGHT JOIN generate_series(1, 2) AS n ON t.a = n ORDER BY 2, 1;

-- Names of 63 bytes
CREATE TABLE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb SERIAL PRIMARY KEY, c INT);
CREATE TABLE ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt (x INT, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb INT UNIQUE);
ALTER TABLE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ADD UNIQUE (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, c);
ALTER TABLE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ADD UNIQUE (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, c);
CREATE INDEX ON aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb);
ALTER TABLE ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt ADD FOREIGN KEY (bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb) REFERENCES aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;
ALTER TABLE ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt ADD PRIMARY KEY (x);
SELECT conname FROM pg_constraint WHERE contype IN ('u', 'f', 'p') AND length(conname) > 40 AND conname NOT LIKE 'pg%' ORDER BY conname;
SELECT relname FROM pg_class WHERE relname LIKE 'aaaaaaaaaaaaaaaaaaaa%' ORDER BY relname;
SELECT pg_get_serial_sequence('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb');
DROP TABLE ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;
