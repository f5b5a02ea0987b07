//! Relations of which the others are made: SQLite's schema in the catalog's terms.

use super::Relation;

pub(super) const RELATIONS: &[Relation] = &[
    (
        "refrain_object",
        "oid oid, type text, name text, table_name text, sql text, full text, schema text, \
         namespace oid",
        "SELECT CAST(rowid + 16384 AS INTEGER), type, refrain_own_name(name), tbl_name, sql, \
         +name, refrain_schema(name), refrain_namespace(refrain_schema(name)) FROM sqlite_schema \
         WHERE type IN ('table', 'view', 'index') AND sql IS NOT NULL AND name NOT LIKE \
         'sqlite\\_%' ESCAPE '\\' AND NOT instr(sql, '/*refrain sequence ') AND NOT instr(sql, \
         '/*refrain schema*/') AND NOT instr(sql, '/*refrain enum ')",
    ),
    (
        "refrain_enum",
        "oid oid, typname text, namespace oid, schema text, labels text",
        "SELECT v ->> 0, refrain_own_name(name), refrain_namespace(refrain_schema(name)), \
         refrain_schema(name), v -> 1 FROM (SELECT +name AS name, refrain_enum_definition(name, \
         sql) AS v FROM sqlite_schema WHERE type = 'table' AND instr(sql, '/*refrain enum '))",
    ),
    (
        "refrain_column",
        "attrelid oid, attname text, attnum int4, atttypid oid, declared text, attnotnull bool, \
         adbin text, primary_key int4, hidden int4, given text",
        "SELECT o.oid, +c.name, CAST(c.cid + 1 AS INTEGER), CAST(coalesce(iif(c.pk AND \
         upper(c.type) = 'INTEGER', refrain_key_type(o.sql), NULL), refrain_view(o.sql, c.cid, \
         'type'), refrain_declared(c.type)) AS INTEGER), coalesce(refrain_view(o.sql, c.cid, \
         'limit'), c.type), c.\"notnull\" OR c.pk > 0, c.dflt_value, c.pk, c.hidden, iif(c.pk AND \
         upper(c.type) = 'INTEGER', refrain_key_given(o.sql), NULL) FROM refrain_object o, \
         pragma_table_xinfo(o.full) c WHERE o.type IN ('table', 'view') AND c.hidden <> 1",
    ),
    (
        "refrain_constraint",
        "oid oid, table_oid oid, table_name text, name text, kind text, contype text, columns \
         text, conkey text, target_oid oid, confkey text, on_update text, on_delete text, \
         is_deferrable bool, is_deferred bool, definition text, condition text, index_oid oid, \
         schema text, namespace oid",
        "SELECT 100000000 + o.oid * 1000 + j.key, o.oid, o.name, j.value ->> 0, j.value ->> 1, \
         j.value ->> 3, j.value -> 2, (SELECT json_group_array(c.attnum ORDER BY k.key) FROM \
         json_each(j.value -> 2) k JOIN refrain_column c ON c.attrelid = o.oid AND c.attname = \
         k.value COLLATE NOCASE), t.oid, CASE WHEN t.oid IS NULL THEN NULL WHEN \
         json_array_length(j.value -> 5) THEN (SELECT json_group_array(c.attnum ORDER BY k.key) \
         FROM json_each(j.value -> 5) k JOIN refrain_column c ON c.attrelid = t.oid AND c.attname \
         = k.value COLLATE NOCASE) ELSE (SELECT json_group_array(c.attnum ORDER BY c.primary_key) \
         FROM refrain_column c WHERE c.attrelid = t.oid AND c.primary_key) END, j.value ->> 6, \
         j.value ->> 7, j.value ->> 8, j.value ->> 9, replace(j.value ->> 10, char(1), \
         coalesce((SELECT group_concat(refrain_identifier(c.attname), ', ' ORDER BY c.primary_key) \
         FROM refrain_column c WHERE c.attrelid = t.oid AND c.primary_key), '')), j.value ->> 11, \
         CASE WHEN j.value ->> 3 IN ('p', 'u') THEN 200000000 + o.oid * 1000 + j.key END, \
         o.schema, o.namespace FROM refrain_object o, json_each(refrain_constraints(o.sql, \
         o.name)) j LEFT JOIN refrain_object t ON t.type = 'table' AND t.full = j.value ->> 4 \
         COLLATE NOCASE WHERE o.type = 'table' UNION ALL SELECT 100000000 + i.oid * 1000 + 999, \
         t.oid, t.name, i.name, 'UNIQUE', 'u', (SELECT json_group_array(x.name) FROM \
         pragma_index_info(i.full) x), (SELECT json_group_array(x.cid + 1) FROM \
         pragma_index_info(i.full) x), NULL, NULL, 'a', 'a', 0, 0, 'UNIQUE (' || (SELECT \
         group_concat(refrain_identifier(x.name), ', ') FROM pragma_index_info(i.full) x) || ')', \
         '', i.oid, t.schema, t.namespace FROM refrain_object i, refrain_object t WHERE i.type = \
         'index' AND t.type = 'table' AND t.full = i.table_name COLLATE NOCASE AND instr(i.sql, \
         '/*refrain constraint*/')",
    ),
    (
        "refrain_index",
        "oid oid, table_oid oid, table_name text, name text, is_unique bool, is_primary bool, \
         indkey text, indoption text, elements text, list text, condition text, definition text, \
         schema text, namespace oid",
        "SELECT oid, table_oid, table_name, name, is_unique, is_primary, indkey, indoption, \
         elements, list, condition, 'CREATE ' || iif(is_unique, 'UNIQUE ', '') || 'INDEX ' || \
         refrain_identifier(name) || ' ON ' || refrain_identifier(schema) || '.' || \
         refrain_identifier(table_name) || ' USING btree (' || list || ')' || coalesce(' WHERE ' \
         || condition, ''), schema, namespace FROM (SELECT index_oid AS oid, table_oid, \
         table_name, name, 1 AS is_unique, contype = 'p' AS is_primary, conkey AS indkey, (SELECT \
         json_group_array(0) FROM json_each(conkey)) AS indoption, (SELECT \
         json_group_array(refrain_identifier(k.value) ORDER BY k.key) FROM json_each(columns) k) \
         AS elements, (SELECT group_concat(refrain_identifier(k.value), ', ' ORDER BY k.key) FROM \
         json_each(columns) k) AS list, NULL AS condition, schema, namespace FROM \
         refrain_constraint WHERE index_oid >= 200000000 UNION ALL SELECT i.oid, t.oid, t.name, \
         i.name, l.\"unique\", 0, (SELECT json_group_array(iif(x.cid < 0, 0, x.cid + 1) ORDER BY \
         x.seqno) FROM pragma_index_xinfo(i.full) x WHERE x.key), (SELECT \
         json_group_array(iif(x.desc, 3, 0) ORDER BY x.seqno) FROM pragma_index_xinfo(i.full) x \
         WHERE x.key), refrain_index_parts(i.sql) -> 2, refrain_index_parts(i.sql) ->> 0, \
         refrain_index_parts(i.sql) ->> 1, t.schema, t.namespace FROM refrain_object t, \
         refrain_object i, pragma_index_list(t.full) l WHERE t.type = 'table' AND i.type = 'index' \
         AND i.table_name = t.full COLLATE NOCASE AND l.name = i.full)",
    ),
    (
        "refrain_sequence",
        "oid oid, table_oid oid, table_name text, attname text, attnum int4, atttypid oid, given \
         text, name text, start int8, increment int8, minimum int8, maximum int8, cache int8, \
         cycle bool, full text, schema text, namespace oid, table_full text",
        "SELECT 300000000 + o.oid * 1000, o.oid, o.name, c.attname, c.attnum, c.atttypid, \
         c.given, refrain_own_name(refrain_sequence_name(o.sql, o.full, c.attname)), 1, 1, 1, CASE \
         c.atttypid WHEN 21 THEN 32767 WHEN 23 THEN 2147483647 ELSE 9223372036854775807 END, 1, 0, \
         refrain_sequence_name(o.sql, o.full, c.attname), o.schema, o.namespace, o.full FROM \
         refrain_column c, refrain_object o WHERE o.oid = c.attrelid AND c.given IN ('n', 'a', \
         'd') UNION ALL SELECT q.oid, t.oid, t.name, c.attname, c.attnum, q.v ->> 0, 's', \
         refrain_own_name(q.name), q.v ->> 1, q.v ->> 2, q.v ->> 3, q.v ->> 4, q.v ->> 5, q.v ->> \
         6, q.name, refrain_schema(q.name), refrain_namespace(refrain_schema(q.name)), t.full \
         FROM (SELECT CAST(rowid + 16384 AS INTEGER) AS oid, +name AS name, \
         refrain_sequence(sql) AS v FROM sqlite_schema WHERE type = 'table' AND instr(sql, \
         '/*refrain sequence ')) q LEFT JOIN refrain_object t ON t.type = 'table' AND t.full = \
         q.v ->> 7 LEFT JOIN refrain_column c ON c.attrelid = t.oid AND c.attname = q.v ->> 8",
    ),
    (
        "refrain_views",
        "oid oid, name text, definition text",
        "SELECT oid, name, sql FROM refrain_object WHERE type = 'view'",
    ),
    (
        "refrain_relation",
        "oid oid, name text, kind text, namespace oid, full text, schema text",
        "SELECT oid, name, iif(type = 'table', 'r', 'v'), namespace, full, schema FROM \
         refrain_object WHERE type IN ('table', 'view') UNION ALL SELECT oid, name, 'i', \
         namespace, iif(schema = 'public', '', schema || '.') || name, schema FROM refrain_index \
         UNION ALL SELECT oid, name, 'S', namespace, full, schema FROM refrain_sequence",
    ),
    (
        "refrain_regclass",
        "oid oid, name text, shown text",
        "SELECT oid, full, iif(schema = 'public', '', refrain_identifier(schema) || '.') || \
         refrain_identifier(name) FROM refrain_relation UNION ALL SELECT column1, column2, column2 \
         FROM (VALUES (1259, 'pg_class'), (1249, 'pg_attribute'), (1247, 'pg_type'), (1255, \
         'pg_proc'), (2604, 'pg_attrdef'), (2606, 'pg_constraint'), (2609, 'pg_description'), \
         (2610, 'pg_index'), (2615, 'pg_namespace'), (2618, 'pg_rewrite'), (2620, 'pg_trigger'), \
         (1260, 'pg_authid'), (1262, 'pg_database'), (1213, 'pg_tablespace'), (3079, \
         'pg_extension'), (3456, 'pg_collation'), (3501, 'pg_enum'), (826, 'pg_default_acl'), \
         (1214, 'pg_shdepend'), (1261, 'pg_auth_members'), (1417, 'pg_foreign_server'), (1418, \
         'pg_user_mapping'), (2224, 'pg_sequence'), (2328, 'pg_foreign_data_wrapper'), (2396, \
         'pg_shdescription'), (2600, 'pg_aggregate'), (2601, 'pg_am'), (2602, 'pg_amop'), (2603, \
         'pg_amproc'), (2605, 'pg_cast'), (2607, 'pg_conversion'), (2608, 'pg_depend'), (2611, \
         'pg_inherits'), (2612, 'pg_language'), (2613, 'pg_largeobject'), (2616, 'pg_opclass'), \
         (2617, 'pg_operator'), (2619, 'pg_statistic'), (2753, 'pg_opfamily'), (2964, \
         'pg_db_role_setting'), (3118, 'pg_foreign_table'), (3256, 'pg_policy'), (3350, \
         'pg_partitioned_table'), (3381, 'pg_statistic_ext'), (3394, 'pg_init_privs'), (3466, \
         'pg_event_trigger'), (3541, 'pg_range'), (3576, 'pg_transform'), (3596, 'pg_seclabel'), \
         (3600, 'pg_ts_dict'), (3601, 'pg_ts_parser'), (3602, 'pg_ts_config'), (3764, \
         'pg_ts_template'), (6100, 'pg_subscription'), (6104, 'pg_publication'), (6106, \
         'pg_publication_rel'))",
    ),
    (
        "refrain_type",
        "oid oid, typname text, typlen int4, typelem oid, typarray oid, category text, typbyval \
         bool, typalign text, typstorage text, typcollation oid, namespace oid, schema text, kind \
         text",
        "SELECT value ->> 0, value ->> 2, value ->> 1, value ->> 3, value ->> 4, CASE WHEN value \
         ->> 6 = 'e' THEN 'E' WHEN value \
         ->> 3 AND value ->> 0 <> 19 THEN 'A' WHEN value ->> 0 = 16 THEN 'B' WHEN value ->> 0 IN \
         (20, 21, 23, 26, 24, 2202, 2205, 2206, 4089, 700, 701, 1700) THEN 'N' WHEN value ->> 0 IN \
         (19, 25, 1042, 1043) THEN 'S' WHEN value ->> 0 IN (1082, 1083, 1114, 1184) THEN 'D' WHEN \
         value ->> 0 = 705 THEN 'X' WHEN value ->> 0 = 2278 THEN 'P' WHEN value ->> 0 = 18 THEN \
         'Z' ELSE 'U' END, value ->> 1 IN (1, 2, 4, 8), CASE value ->> 1 WHEN 1 THEN 'c' WHEN 2 \
         THEN 's' WHEN 8 THEN 'd' ELSE iif(value ->> 0 IN (18, 19, 705, 2950), 'c', 'i') END, CASE \
         WHEN value ->> 1 = -1 THEN iif(value ->> 0 = 1700, 'm', 'x') ELSE 'p' END, CASE WHEN \
         value ->> 0 IN (25, 1042, 1043, 1009, 1014, 1015) THEN 100 WHEN value ->> 0 IN (19, 1003) \
         THEN 950 ELSE 0 END, refrain_namespace(value ->> 5), value ->> 5, value ->> 6 FROM \
         json_each(refrain_types())",
    ),
];
