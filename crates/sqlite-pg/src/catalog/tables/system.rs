//! The relations of `pg_catalog`.

use super::Relation;

pub(super) const RELATIONS: &[Relation] = &[
    (
        "pg_namespace",
        "oid oid, nspname name, nspowner oid, nspacl _aclitem",
        "SELECT column1, column2, 10, NULL FROM (VALUES (11, 'pg_catalog'), (99, 'pg_toast'), \
         (2200, 'public'), (13000, 'information_schema')) UNION ALL SELECT \
         refrain_namespace(rtrim(name, '.')), rtrim(name, '.'), 10, NULL FROM sqlite_schema WHERE \
         type = 'table' AND instr(sql, '/*refrain schema*/')",
    ),
    (
        "pg_class",
        "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid, relam \
         oid, relfilenode oid, reltablespace oid, relpages int4, reltuples float4, relallvisible \
         int4, reltoastrelid oid, relhasindex bool, relisshared bool, relpersistence char, \
         relkind char, relnatts int2, relchecks int2, relhasrules bool, relhastriggers bool, \
         relhassubclass bool, relrowsecurity bool, relforcerowsecurity bool, relispopulated bool, \
         relreplident char, relispartition bool, relrewrite oid, relacl _aclitem, reloptions \
         _text, relpartbound text, tableoid oid",
        "SELECT r.oid, r.name, r.namespace, 0, 0, 10, CASE r.kind WHEN 'r' THEN 2 WHEN 'i' THEN \
         403 ELSE 0 END, iif(r.kind = 'v', 0, r.oid), 0, 0, -1.0, 0, 0, EXISTS (SELECT 1 FROM \
         refrain_index i WHERE i.table_oid = r.oid), 0, 'p', r.kind, (SELECT count(*) FROM \
         refrain_column c WHERE c.attrelid = r.oid), (SELECT count(*) FROM refrain_constraint k \
         WHERE k.table_oid = r.oid AND k.contype = 'c'), r.kind = 'v', EXISTS (SELECT 1 FROM \
         refrain_constraint k WHERE k.contype = 'f' AND r.oid IN \
         (k.table_oid, k.target_oid)), 0, 0, 0, 1, iif(r.kind \
         = 'r', 'd', 'n'), 0, 0, NULL, NULL, NULL, 1259 FROM refrain_relation r",
    ),
    (
        "pg_attribute",
        "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, attnum int2, \
         attndims int4, attcacheoff int4, atttypmod int4, attbyval bool, attalign char, \
         attstorage char, attcompression char, attnotnull bool, atthasdef bool, atthasmissing \
         bool, attidentity char, attgenerated char, attisdropped bool, attislocal bool, \
         attinhcount int4, attcollation oid, attacl _aclitem, attoptions _text, attfdwoptions \
         _text",
        "SELECT c.attrelid, c.attname, c.atttypid, -1, t.typlen, c.attnum, \
         format_type(c.atttypid, -1) LIKE '%[]', -1, \
         coalesce(refrain_limit(c.declared) + iif(c.atttypid IN (1083, 1114, 1184), 0, 4), -1), \
         t.typbyval, t.typalign, t.typstorage, '', \
         c.attnotnull, c.adbin IS NOT NULL OR coalesce(c.given = 'n', 0), 0, CASE WHEN c.given IN \
         ('a', 'd') THEN c.given ELSE '' END, iif(c.hidden > 1, 's', ''), 0, 1, 0, \
         t.typcollation, NULL, NULL, NULL FROM refrain_column c JOIN refrain_type t ON t.oid = \
         c.atttypid UNION ALL SELECT i.oid, iif(k.value, c.attname, 'expr'), \
         coalesce(c.atttypid, 25), -1, -1, k.key + 1, 0, -1, -1, 0, 'i', 'x', '', 0, 0, 0, '', '', \
         0, 1, 0, 0, NULL, NULL, NULL FROM refrain_index i, json_each(i.indkey) k LEFT JOIN \
         refrain_column c ON c.attrelid = i.table_oid AND c.attnum = k.value",
    ),
    (
        "pg_attrdef",
        "oid oid, adrelid oid, adnum int2, adbin text",
        "SELECT attrelid * 1000 + attnum, attrelid, attnum, CASE WHEN given = 'n' THEN \
         'nextval(''' || iif(o.schema = 'public', '', refrain_identifier(o.schema) || '.') || \
         refrain_identifier(refrain_own_name(refrain_sequence_name(o.sql, o.full, attname))) || \
         '''::regclass)' ELSE refrain_default(adbin, atttypid) END FROM refrain_column JOIN \
         refrain_object o ON o.oid = attrelid WHERE adbin IS NOT NULL OR given = 'n'",
    ),
    (
        "pg_description",
        "objoid oid, classoid oid, objsubid int4, description text",
        "SELECT o.oid, 1259, coalesce(c.attnum, 0), j.value ->> 1 FROM refrain_object o, \
         json_each(refrain_comments(o.sql)) j LEFT JOIN refrain_column c ON c.attrelid = o.oid \
         AND c.attname = j.value ->> 0 WHERE o.type = 'table'",
    ),
    (
        "pg_type",
        "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool, \
         typtype char, typcategory char, typispreferred bool, typisdefined bool, typdelim char, \
         typrelid oid, typsubscript regproc, typelem oid, typarray oid, typinput regproc, \
         typoutput regproc, typreceive regproc, typsend regproc, typmodin regproc, typmodout \
         regproc, typanalyze regproc, typalign char, typstorage char, typnotnull bool, \
         typbasetype oid, typtypmod int4, typndims int4, typcollation oid, typdefaultbin text, \
         typdefault text, typacl _aclitem",
        "SELECT oid, typname, namespace, 10, typlen, typbyval, kind, category, oid \
         IN (16, 25, 26, 701, 1184), 1, ',', 0, 0, typelem, typarray, 100000 + f, 200000 + f, \
         300000 + f, 400000 + f, 0, 0, 0, typalign, typstorage, 0, 0, -1, 0, typcollation, \
         NULL, NULL, NULL FROM (SELECT *, CASE WHEN kind = 'e' THEN 3500 WHEN category = 'A' \
         AND oid NOT IN (22, 30) THEN 1009 ELSE oid END AS f FROM refrain_type)",
    ),
    (
        "pg_enum",
        "oid oid, enumtypid oid, enumsortorder float4, enumlabel name",
        "SELECT e.oid + 2 + j.key, e.oid, CAST(j.key + 1 AS REAL), j.value FROM refrain_enum e, \
         json_each(e.labels) j",
    ),
    (
        "pg_index",
        "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, \
         indnullsnotdistinct bool, indisprimary bool, indisexclusion bool, indimmediate bool, \
         indisclustered bool, indisvalid bool, indcheckxmin bool, indisready bool, indislive \
         bool, indisreplident bool, indkey int2vector, indcollation oidvector, indclass \
         oidvector, indoption int2vector, indexprs text, indpred text",
        "SELECT oid, table_oid, json_array_length(indkey), json_array_length(indkey), is_unique, \
         0, is_primary, 0, 1, 0, 1, 0, 1, 1, 0, indkey, (SELECT json_group_array(0) FROM \
         json_each(indkey)), (SELECT json_group_array(1978) FROM json_each(indkey)), indoption, \
         CASE WHEN EXISTS (SELECT 1 FROM json_each(indkey) WHERE value = 0) THEN (SELECT \
         group_concat(e.value, ', ' ORDER BY e.key) FROM json_each(elements) e JOIN \
         json_each(indkey) k ON k.key = e.key WHERE k.value = 0) END, condition FROM \
         refrain_index",
    ),
    (
        "pg_constraint",
        "oid oid, conname name, connamespace oid, contype char, condeferrable bool, condeferred \
         bool, convalidated bool, conrelid oid, contypid oid, conindid oid, conparentid oid, \
         confrelid oid, confupdtype char, confdeltype char, confmatchtype char, conislocal bool, \
         coninhcount int4, connoinherit bool, conkey _int2, confkey _int2, conpfeqop _oid, \
         conppeqop _oid, conffeqop _oid, confdelsetcols _int2, conexclop _oid, conbin text",
        "SELECT oid, name, namespace, contype, is_deferrable, is_deferred, 1, table_oid, 0, \
         coalesce(index_oid, (SELECT i.oid FROM refrain_index i WHERE i.table_oid = target_oid \
         AND i.is_unique AND i.indkey = confkey LIMIT 1), 0), 0, coalesce(target_oid, 0), \
         iif(contype = 'f', on_update, ' '), iif(contype = 'f', on_delete, ' '), iif(contype = \
         'f', 's', ' '), 1, 0, contype <> 'c', conkey, confkey, NULL, NULL, NULL, NULL, NULL, \
         CASE WHEN contype = 'c' THEN condition END FROM refrain_constraint",
    ),
    (
        "pg_sequence",
        "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, \
         seqcache int8, seqcycle bool",
        "SELECT oid, atttypid, start, increment, maximum, minimum, cache, cycle FROM \
         refrain_sequence",
    ),
    (
        "pg_depend",
        "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, \
         deptype char",
        "SELECT 1259, oid, 0, 1259, table_oid, attnum, iif(given IN ('n', 's'), 'a', 'i') FROM \
         refrain_sequence WHERE attnum IS NOT NULL",
    ),
    (
        "pg_get_keywords",
        "word text, catcode char, barelabel bool, catdesc text, baredesc text",
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM \
         json_each(refrain_keywords())",
    ),
    (
        "pg_settings",
        "name text, setting text, unit text, category text, short_desc text, extra_desc text, \
         context text, vartype text, source text, min_val text, max_val text, enumvals _text, \
         boot_val text, reset_val text, sourcefile text, sourceline int4, pending_restart bool",
        "SELECT value ->> 0, value ->> 1, NULL, '', '', NULL, 'user', 'string', value ->> 2, \
         NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0 FROM json_each(refrain_settings())",
    ),
    (
        "pg_database",
        "oid oid, datname name, datdba oid, encoding int4, datlocprovider char, datistemplate \
         bool, datallowconn bool, datconnlimit int4, dattablespace oid, datcollate text, datctype \
         text, daticulocale text, datcollversion text, datacl _aclitem, datlocale text, \
         daticurules text",
        "SELECT 1, current_database(), 10, 6, 'c', 0, 1, -1, 1663, 'C', 'C', NULL, NULL, NULL, \
         NULL, NULL",
    ),
    (
        "pg_roles",
        "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, \
         rolcanlogin bool, rolreplication bool, rolconnlimit int4, rolpassword text, \
         rolvaliduntil timestamptz, rolbypassrls bool, rolconfig _text, oid oid",
        "SELECT current_user(), 1, 1, 1, 1, 1, 0, -1, '********', NULL, 1, NULL, 10",
    ),
    (
        "pg_authid",
        "oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb \
         bool, rolcanlogin bool, rolreplication bool, rolbypassrls bool, rolconnlimit int4, \
         rolpassword text, rolvaliduntil timestamptz",
        "SELECT 10, current_user(), 1, 1, 1, 1, 1, 0, 1, -1, NULL, NULL",
    ),
    (
        "pg_user",
        "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls \
         bool, passwd text, valuntil timestamptz, useconfig _text",
        "SELECT current_user(), 10, 1, 1, 0, 1, '********', NULL, NULL",
    ),
    (
        "pg_am",
        "oid oid, amname name, amhandler regproc, amtype char",
        "SELECT column1, column2, 0, column3 FROM (VALUES (2, 'heap', 't'), (403, 'btree', 'i'))",
    ),
    (
        "pg_opclass",
        "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, \
         opcintype oid, opcdefault bool, opckeytype oid",
        "SELECT 1978, 403, 'int4_ops', 11, 10, 1976, 23, 1, 0",
    ),
    (
        "pg_collation",
        "oid oid, collname name, collnamespace oid, collowner oid, collprovider char, \
         collisdeterministic bool, collencoding int4, collcollate text, collctype text, \
         colliculocale text, collversion text",
        "SELECT column1, column2, 11, 10, column3, 1, -1, column4, column4, NULL, NULL FROM \
         (VALUES (100, 'default', 'd', NULL), (950, 'C', 'c', 'C'))",
    ),
    (
        "pg_tablespace",
        "oid oid, spcname name, spcowner oid, spcacl _aclitem, spcoptions _text",
        "SELECT column1, column2, 10, NULL, NULL FROM (VALUES (1663, 'pg_default'), (1664, \
         'pg_global'))",
    ),
    (
        "pg_tables",
        "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, \
         hasrules bool, hastriggers bool, rowsecurity bool",
        "SELECT schema, name, current_user(), NULL, EXISTS (SELECT 1 FROM refrain_index i WHERE \
         i.table_oid = o.oid), 0, 0, 0 FROM refrain_object o WHERE type = 'table'",
    ),
    (
        "pg_views",
        "schemaname name, viewname name, viewowner name, definition text",
        "SELECT schema, name, current_user(), sql FROM refrain_object WHERE type = 'view'",
    ),
    (
        "pg_indexes",
        "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
        "SELECT schema, table_name, name, NULL, definition FROM refrain_index",
    ),
    (
        "pg_statio_all_tables",
        "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, \
         idx_blks_read int8, idx_blks_hit int8",
        "SELECT oid, schema, name, NULL, NULL, NULL, NULL FROM refrain_object WHERE type = 'table'",
    ),
];
