//! The stand-ins: each with its columns, and the query that returns its rows.
//!
//! The OID of a table is its row in SQLite's schema, above the OIDs of PostgreSQL's own objects.

/// A table: name, columns, query. A query may use the tables before it. After a column's name
/// stands its type: `?` for bool, `#` for oid, `+` for int8, `%` for int4, `@` for name, `~` for
/// varchar, nothing for text.
type Table = (&'static str, &'static str, &'static str);

pub(super) const TABLES: &[Table] = &[
    (
        "refrain_object",
        "oid, type, name, table_name, sql",
        "SELECT CAST(rowid + 16384 AS INTEGER), type, +name, tbl_name, sql FROM sqlite_schema \
         WHERE type IN ('table', 'view', 'index') AND (type = 'index' OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\')",
    ),
    (
        "refrain_column",
        "attrelid, attname, attnum, atttypid, declared, attnotnull, adbin, primary_key, hidden, given",
        "SELECT o.oid, +c.name, CAST(c.cid + 1 AS INTEGER), CAST(coalesce(iif(c.pk AND \
         upper(c.type) = 'INTEGER', refrain_key_type(o.sql), NULL), refrain_view(o.sql, c.cid, \
         'type'), refrain_declared(c.type)) AS INTEGER), coalesce(refrain_view(o.sql, c.cid, \
         'limit'), c.type), c.\"notnull\" OR c.pk > 0, c.dflt_value, c.pk, c.hidden, iif(c.pk AND \
         upper(c.type) = 'INTEGER', refrain_key_given(o.sql), NULL) FROM refrain_object o, \
         pragma_table_xinfo(o.name) c WHERE o.type IN ('table', 'view') AND c.hidden <> 1",
    ),
    (
        "refrain_index",
        "oid, table_oid, is_unique, is_primary, definition",
        "SELECT o.oid, t.oid, l.\"unique\", l.origin = 'pk', 'CREATE ' || iif(l.\"unique\", \
         'UNIQUE ', '') || 'INDEX ' || o.name || ' ON ' || t.name || ' USING btree (' || (SELECT \
         group_concat(coalesce(i.name, 'expression'), ', ') FROM pragma_index_info(o.name) i) || \
         ')' FROM refrain_object t, pragma_index_list(t.name) l, refrain_object o WHERE t.type = \
         'table' AND o.type = 'index' AND o.name = l.name",
    ),
    (
        "refrain_constraint",
        "table_name, name, kind, columns",
        "SELECT o.name, value ->> 0, value ->> 1, value -> 2 FROM refrain_object o, \
         json_each(refrain_constraints(o.sql, o.name)) WHERE o.type = 'table' UNION ALL SELECT \
         table_name, name, 'UNIQUE', (SELECT json_group_array(name) FROM \
         pragma_index_info(o.name)) FROM refrain_object o WHERE type = 'index' AND instr(sql, \
         '/*refrain constraint*/')",
    ),
    ("refrain_view", "oid, definition", "SELECT oid, sql FROM refrain_object WHERE type = 'view'"),
    (
        "pg_namespace",
        "oid#, nspname@, nspowner#, nspacl",
        "SELECT CAST(column1 AS INTEGER), column2, 10, NULL FROM (VALUES (11, 'pg_catalog'), (2200, 'public'))",
    ),
    (
        "pg_class",
        "oid#, relname@, relnamespace#, reltype#, reloftype#, relowner#, relam#, relfilenode#, \
         reltablespace#, relpages+, reltuples, relallvisible+, reltoastrelid#, relhasindex?, \
         relisshared?, relpersistence, relkind, relnatts+, relchecks+, relhasrules?, \
         relhastriggers?, relhassubclass?, relrowsecurity?, relforcerowsecurity?, relispopulated?, \
         relreplident, relispartition?, relrewrite, relacl, reloptions, relpartbound, tableoid#",
        "SELECT oid, name, 2200, 0, 0, 10, CASE type WHEN 'table' THEN 2 WHEN 'index' THEN 403 \
         ELSE 0 END, oid, 0, 0, -1, 0, 0, EXISTS (SELECT 1 FROM refrain_index i WHERE i.table_oid \
         = o.oid), 0, 'p', CASE type WHEN 'table' THEN 'r' WHEN 'index' THEN 'i' ELSE 'v' END, 0, \
         0, 0, 0, 0, 0, 0, 1, 'd', 0, 0, NULL, NULL, NULL, 1259 FROM refrain_object o",
    ),
    (
        "pg_attribute",
        "attrelid#, attname@, atttypid#, attstattarget+, attlen+, attnum+, attndims+, atttypmod+, \
         attbyval?, attstorage, attalign, attcompression, attnotnull?, atthasdef?, atthasmissing?, \
         attidentity, attgenerated, attisdropped?, attislocal?, attinhcount+, attcollation#, \
         attacl, attoptions, attfdwoptions",
        "SELECT attrelid, attname, atttypid, -1, -1, attnum, 0, coalesce(refrain_limit(declared) + \
         4, -1), 0, 'p', 'i', '', attnotnull, adbin IS NOT NULL, 0, '', CASE WHEN hidden > 1 THEN \
         's' ELSE '' END, 0, 1, 0, 0, NULL, NULL, NULL FROM refrain_column",
    ),
    (
        "pg_attrdef",
        "oid#, adrelid#, adnum+, adbin",
        "SELECT attrelid * 1000 + attnum, attrelid, attnum, adbin FROM refrain_column WHERE adbin IS NOT NULL",
    ),
    (
        "pg_index",
        "indexrelid#, indrelid#, indnatts+, indnkeyatts+, indisunique?, indisprimary?, \
         indisexclusion?, indimmediate?, indisclustered?, indisvalid?, indcheckxmin?, indisready?, \
         indislive?, indisreplident?, indkey, indpred, indexprs, indnullsnotdistinct?, indoption, \
         indcollation, indclass",
        "SELECT oid, table_oid, 0, 0, is_unique, is_primary, 0, 1, 0, 1, 0, 1, 1, 0, '', NULL, \
         NULL, 0, '', '', '' FROM refrain_index",
    ),
    (
        "pg_type",
        "oid#, typname@, typnamespace#, typowner#, typlen+, typbyval?, typtype, typcategory, \
         typispreferred?, typisdefined?, typdelim, typrelid#, typsubscript, typelem#, typarray#, \
         typinput, typoutput, typreceive, typsend, typnotnull?, typbasetype#, typtypmod+, \
         typndims+, typcollation#, typdefault, typacl",
        "SELECT CAST(value ->> 0 AS INTEGER), value ->> 2, 11, 10, value ->> 1, 0, 'b', 'U', 0, 1, \
         ',', 0, 0, 0, 0, value ->> 2 || 'in', value ->> 2 || 'out', value ->> 2 || 'recv', value \
         ->> 2 || 'send', 0, 0, -1, 0, 0, NULL, NULL FROM json_each(refrain_types())",
    ),
    (
        "pg_settings",
        "name, setting, source, unit, category, short_desc, context, vartype, reset_val, boot_val",
        "SELECT value ->> 0, value ->> 1, value ->> 2, NULL, '', '', 'user', 'string', NULL, NULL \
         FROM json_each(refrain_settings())",
    ),
    (
        "pg_database",
        "oid#, datname@, datdba#, encoding+, datlocprovider, datistemplate?, datallowconn?, \
         datconnlimit+, dattablespace, datcollate, datctype, daticulocale, datcollversion, datacl, \
         datlocale, daticurules",
        "SELECT 1, current_database(), 10, 6, 'c', 0, 1, -1, 1663, 'C', 'C', NULL, NULL, NULL, NULL, NULL",
    ),
    (
        "pg_roles",
        "oid#, rolname@, rolsuper?, rolinherit?, rolcreaterole?, rolcreatedb?, rolcanlogin?, \
         rolreplication?, rolconnlimit+, rolvaliduntil, rolbypassrls?, rolpassword",
        "SELECT 10, current_user(), 0, 1, 0, 0, 1, 0, -1, NULL, 0, NULL",
    ),
    (
        "pg_am",
        "oid#, amname@, amhandler, amtype",
        "SELECT column1, column2, 0, column3 FROM (VALUES (2, 'heap', 't'), (403, 'btree', 'i'))",
    ),
    (
        "pg_tables",
        "schemaname@, tablename@, tableowner@, tablespace@, hasindexes?, hasrules?, hastriggers?, rowsecurity?",
        "SELECT 'public', name, current_user(), NULL, 0, 0, 0, 0 FROM refrain_object WHERE type = 'table'",
    ),
    (
        "pg_indexes",
        "schemaname@, tablename@, indexname@, tablespace@, indexdef",
        "SELECT 'public', t.name, o.name, NULL, i.definition FROM refrain_index i, refrain_object \
         o, refrain_object t WHERE o.oid = i.oid AND t.oid = i.table_oid",
    ),
    (
        "information_schema_tables",
        "table_catalog@, table_schema@, table_name@, table_type~, self_referencing_column_name@, \
         reference_generation~, user_defined_type_catalog@, user_defined_type_schema@, \
         user_defined_type_name@, is_insertable_into~, is_typed~, commit_action~",
        "SELECT current_database(), 'public', name, iif(type = 'table', 'BASE TABLE', 'VIEW'), \
         NULL, NULL, NULL, NULL, NULL, iif(type = 'table' OR refrain_view(sql, NULL, 'writable'), \
         'YES', 'NO'), 'NO', NULL FROM refrain_object WHERE type IN ('table', 'view')",
    ),
    (
        "information_schema_columns",
        "table_catalog@, table_schema@, table_name@, column_name@, ordinal_position%, \
         column_default~, is_nullable~, data_type~, character_maximum_length%, \
         character_octet_length%, numeric_precision%, numeric_precision_radix%, numeric_scale%, \
         datetime_precision%, interval_type~, interval_precision%, character_set_catalog@, \
         character_set_schema@, character_set_name@, collation_catalog@, collation_schema@, \
         collation_name@, domain_catalog@, domain_schema@, domain_name@, udt_catalog@, \
         udt_schema@, udt_name@, scope_catalog@, scope_schema@, scope_name@, maximum_cardinality%, \
         dtd_identifier@, is_self_referencing~, is_identity~, identity_generation~, \
         identity_start~, identity_increment~, identity_maximum~, identity_minimum~, \
         identity_cycle~, is_generated~, generation_expression~, is_updatable~",
        "SELECT current_database(), 'public', o.name, c.attname, c.attnum, iif(c.given = 'n', \
         'nextval(''' || o.name || '_' || c.attname || '_seq''::regclass)', \
         refrain_default(c.adbin, c.atttypid)), iif(c.attnotnull, 'NO', 'YES'), \
         format_type(c.atttypid, -1), refrain_limit(c.declared), CASE WHEN c.atttypid IN (25, \
         1042, 1043) THEN coalesce(refrain_limit(c.declared) * 4, 1073741824) END, CASE c.atttypid \
         WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53 END, \
         iif(c.atttypid IN (20, 21, 23, 700, 701), 2, NULL), iif(c.atttypid IN (20, 21, 23), 0, \
         NULL), CASE WHEN c.atttypid IN (1083, 1114, 1184) THEN 6 WHEN c.atttypid = 1082 THEN 0 \
         END, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
         current_database(), 'pg_catalog', (SELECT value ->> 2 FROM json_each(refrain_types()) \
         WHERE value ->> 0 = c.atttypid), NULL, NULL, NULL, NULL, c.attnum || '', 'NO', \
         iif(c.given IN ('a', 'd'), 'YES', 'NO'), CASE c.given WHEN 'a' THEN 'ALWAYS' WHEN 'd' \
         THEN 'BY DEFAULT' END, iif(c.given IN ('a', 'd'), '1', NULL), iif(c.given IN ('a', 'd'), \
         '1', NULL), CASE WHEN c.given IN ('a', 'd') THEN CASE c.atttypid WHEN 21 THEN '32767' \
         WHEN 23 THEN '2147483647' ELSE '9223372036854775807' END END, iif(c.given IN ('a', 'd'), \
         '1', NULL), 'NO', iif(c.hidden > 1, 'ALWAYS', 'NEVER'), CASE WHEN c.hidden > 1 THEN \
         refrain_generated(o.sql, c.attname) END, iif(o.type = 'table' OR refrain_view(o.sql, \
         c.attnum - 1, 'writable'), 'YES', 'NO') FROM refrain_column c, refrain_object o WHERE \
         o.oid = c.attrelid",
    ),
    (
        "information_schema_table_constraints",
        "constraint_catalog@, constraint_schema@, constraint_name@, table_catalog@, table_schema@, \
         table_name@, constraint_type~, is_deferrable~, initially_deferred~, enforced~, \
         nulls_distinct~",
        "SELECT current_database(), 'public', name, current_database(), 'public', table_name, \
         kind, 'NO', 'NO', 'YES', iif(kind = 'UNIQUE', 'YES', NULL) FROM refrain_constraint UNION \
         ALL SELECT current_database(), 'public', '2200_' || o.oid || '_' || c.attnum || \
         '_not_null', current_database(), 'public', o.name, 'CHECK', 'NO', 'NO', 'YES', NULL FROM \
         refrain_column c, refrain_object o WHERE o.oid = c.attrelid AND o.type = 'table' AND \
         c.attnotnull",
    ),
    (
        "information_schema_constraint_column_usage",
        "table_catalog@, table_schema@, table_name@, column_name@, constraint_catalog@, constraint_schema@, constraint_name@",
        "SELECT current_database(), 'public', k.table_name, c.value, current_database(), 'public', \
         k.name FROM refrain_constraint k, json_each(k.columns) c WHERE k.kind IN ('PRIMARY KEY', \
         'UNIQUE')",
    ),
    (
        "pg_views",
        "schemaname@, viewname@, viewowner@, definition",
        "SELECT 'public', name, current_user(), sql FROM refrain_object WHERE type = 'view'",
    ),
    (
        "pg_constraint",
        "oid#, conname@, connamespace#, contype, condeferrable?, condeferred?, convalidated?, \
         conrelid#, contypid#, conindid#, conparentid, confrelid#, confupdtype, confdeltype, \
         confmatchtype, conislocal?, coninhcount, connoinherit?, conkey, confkey, conbin",
        "SELECT 0, '', 0, '', 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', 0, 0, 0, NULL, NULL, NULL WHERE 0",
    ),
    ("pg_description", "objoid, classoid, objsubid, description", "SELECT 0, 0, 0, '' WHERE 0"),
    (
        "pg_inherits",
        "inhrelid, inhparent, inhseqno, inhdetachpending?",
        "SELECT 0, 0, 0, 0 WHERE 0",
    ),
    ("pg_collation", "oid#, collname@, collnamespace, collprovider", "SELECT 0, '', 0, '' WHERE 0"),
    ("pg_enum", "oid#, enumtypid, enumsortorder, enumlabel@", "SELECT 0, 0, 0, '' WHERE 0"),
    (
        "pg_range",
        "rngtypid, rngsubtype, rngmultitypid, rngcollation, rngsubopc",
        "SELECT 0, 0, 0, 0, 0 WHERE 0",
    ),
    (
        "pg_tablespace",
        "oid#, spcname@, spcowner, spcacl, spcoptions",
        "SELECT 0, '', 0, NULL, NULL WHERE 0",
    ),
    (
        "pg_extension",
        "oid#, extname@, extowner, extnamespace, extversion",
        "SELECT 0, '', 0, 0, '' WHERE 0",
    ),
    ("pg_foreign_table", "ftrelid, ftserver, ftoptions", "SELECT 0, 0, NULL WHERE 0"),
    ("pg_foreign_server", "oid#, srvname@", "SELECT 0, '' WHERE 0"),
    (
        "pg_sequence",
        "seqrelid, seqtypid, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle",
        "SELECT 0, 0, 0, 0, 0, 0, 0, 0 WHERE 0",
    ),
    (
        "pg_trigger",
        "oid#, tgrelid, tgparentid, tgname@, tgfoid, tgtype, tgenabled, tgisinternal?, tgconstraint",
        "SELECT 0, 0, 0, '', 0, 0, '', 0, 0 WHERE 0",
    ),
    (
        "pg_prepared_statements",
        "name, statement, prepare_time, parameter_types, from_sql",
        "SELECT '', '', '', '', 0 WHERE 0",
    ),
];

/// Tables that have no row here in any file.
pub(super) const EMPTY: &[&str] = &[
    "pg_constraint",
    "pg_inherits",
    "pg_policy",
    "pg_statistic_ext",
    "pg_publication",
    "pg_publication_rel",
    "pg_publication_namespace",
    "pg_trigger",
    "pg_rewrite",
    "pg_foreign_table",
    "pg_foreign_server",
    "pg_event_trigger",
    "pg_extension",
    "pg_enum",
    "pg_range",
    "pg_auth_members",
    "pg_partitioned_table",
    "pg_subscription",
    "pg_default_acl",
    "pg_language",
    "pg_sequence",
    "pg_seclabel",
];
