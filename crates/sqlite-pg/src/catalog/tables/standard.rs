//! The relations of `information_schema`.

use super::Relation;

pub(super) const RELATIONS: &[Relation] = &[
    (
        "information_schema_tables",
        "table_catalog name, table_schema name, table_name name, table_type varchar, \
         self_referencing_column_name name, reference_generation varchar, \
         user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name \
         name, is_insertable_into varchar, is_typed varchar, commit_action varchar",
        "SELECT current_database(), schema, name, iif(type = 'table', 'BASE TABLE', 'VIEW'), \
         NULL, NULL, NULL, NULL, NULL, iif(type = 'table' OR refrain_view(sql, NULL, 'writable'), \
         'YES', 'NO'), 'NO', NULL FROM refrain_object WHERE type IN ('table', 'view')",
    ),
    (
        "information_schema_schemata",
        "catalog_name name, schema_name name, schema_owner name, default_character_set_catalog \
         name, default_character_set_schema name, default_character_set_name name, sql_path \
         varchar",
        "SELECT current_database(), nspname, current_user(), NULL, NULL, NULL, NULL FROM \
         pg_namespace",
    ),
    (
        "information_schema_sequences",
        "sequence_catalog name, sequence_schema name, sequence_name name, data_type varchar, \
         numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, start_value \
         varchar, minimum_value varchar, maximum_value varchar, increment varchar, cycle_option \
         varchar",
        "SELECT current_database(), schema, name, format_type(atttypid, -1), CASE atttypid WHEN \
         21 THEN 16 WHEN 23 THEN 32 ELSE 64 END, 2, 0, start || '', minimum || '', maximum || '', \
         increment || '', iif(cycle, 'YES', 'NO') FROM refrain_sequence WHERE given IN ('n', 's')",
    ),
    (
        "information_schema_views",
        "table_catalog name, table_schema name, table_name name, view_definition varchar, \
         check_option varchar, is_updatable varchar, is_insertable_into varchar, \
         is_trigger_updatable varchar, is_trigger_deletable varchar, is_trigger_insertable_into \
         varchar",
        "SELECT current_database(), schema, name, sql, 'NONE', iif(refrain_view(sql, NULL, \
         'writable'), 'YES', 'NO'), iif(refrain_view(sql, NULL, 'writable'), 'YES', 'NO'), 'NO', \
         'NO', 'NO' FROM refrain_object WHERE type = 'view'",
    ),
    (
        "information_schema_columns",
        "table_catalog name, table_schema name, table_name name, column_name name, \
         ordinal_position int4, column_default varchar, is_nullable varchar, data_type varchar, \
         character_maximum_length int4, character_octet_length int4, numeric_precision int4, \
         numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type \
         varchar, interval_precision int4, character_set_catalog name, character_set_schema name, \
         character_set_name name, collation_catalog name, collation_schema name, collation_name \
         name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, \
         udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name, is_self_referencing varchar, is_identity \
         varchar, identity_generation varchar, identity_start varchar, identity_increment \
         varchar, identity_maximum varchar, identity_minimum varchar, identity_cycle varchar, \
         is_generated varchar, generation_expression varchar, is_updatable varchar",
        "SELECT current_database(), o.schema, o.name, c.attname, c.attnum, iif(c.given = 'n', \
         'nextval(''' || iif(o.schema = 'public', '', refrain_identifier(o.schema) || '.') || \
         refrain_identifier(refrain_own_name(refrain_sequence_name(o.sql, o.full, c.attname))) || \
         '''::regclass)', \
         refrain_default(c.adbin, c.atttypid)), iif(c.attnotnull, 'NO', 'YES'), \
         CASE WHEN format_type(c.atttypid, NULL) LIKE '%[]' THEN 'ARRAY' WHEN \
         refrain_type_name(c.atttypid) IS NOT NULL THEN 'USER-DEFINED' ELSE \
         format_type(c.atttypid, NULL) END, \
         iif(c.atttypid IN (1083, 1114, 1184), NULL, \
         refrain_limit(c.declared)), CASE WHEN c.atttypid IN (25, \
         1042, 1043) THEN coalesce(refrain_limit(c.declared) * 4, 1073741824) END, CASE \
         c.atttypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 \
         THEN 53 END, iif(c.atttypid IN (20, 21, 23, 700, 701), 2, NULL), iif(c.atttypid IN (20, \
         21, 23), 0, NULL), CASE WHEN c.atttypid IN (1083, 1114, 1184) THEN \
         coalesce(refrain_limit(c.declared), 6) WHEN c.atttypid = \
         1082 THEN 0 END, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
         current_database(), (SELECT schema FROM refrain_type WHERE oid = c.atttypid), (SELECT \
         typname FROM refrain_type WHERE oid = c.atttypid), NULL, NULL, NULL, NULL, c.attnum || \
         '', 'NO', iif(c.given IN ('a', 'd'), 'YES', 'NO'), CASE c.given WHEN 'a' THEN 'ALWAYS' \
         WHEN 'd' THEN 'BY DEFAULT' END, iif(c.given IN ('a', 'd'), '1', NULL), iif(c.given \
         IN ('a', 'd'), '1', NULL), CASE WHEN c.given IN ('a', 'd') THEN CASE c.atttypid WHEN 21 \
         THEN '32767' \
         WHEN 23 THEN '2147483647' ELSE '9223372036854775807' END END, iif(c.given IN ('a', 'd'), \
         '1', NULL), 'NO', iif(c.hidden > 1, 'ALWAYS', 'NEVER'), CASE WHEN c.hidden > 1 THEN \
         refrain_generated(o.sql, c.attname) END, iif(o.type = 'table' OR refrain_view(o.sql, \
         c.attnum - 1, 'writable'), 'YES', 'NO') FROM refrain_column c, refrain_object o WHERE \
         o.oid = c.attrelid",
    ),
    (
        "information_schema_table_constraints",
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog \
         name, table_schema name, table_name name, constraint_type varchar, is_deferrable \
         varchar, initially_deferred varchar, enforced varchar, nulls_distinct varchar",
        "SELECT current_database(), schema, name, current_database(), schema, table_name, kind, \
         iif(is_deferrable, 'YES', 'NO'), iif(is_deferred, 'YES', 'NO'), 'YES', iif(kind = \
         'UNIQUE', 'YES', NULL) FROM refrain_constraint UNION ALL SELECT current_database(), \
         o.schema, o.namespace || '_' || o.oid || '_' || c.attnum || '_not_null', \
         current_database(), o.schema, o.name, 'CHECK', 'NO', 'NO', 'YES', NULL FROM \
         refrain_column c, refrain_object o WHERE o.oid = c.attrelid AND o.type = 'table' AND \
         c.attnotnull",
    ),
    (
        "information_schema_key_column_usage",
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog \
         name, table_schema name, table_name name, column_name name, ordinal_position int4, \
         position_in_unique_constraint int4",
        "SELECT current_database(), k.schema, k.name, current_database(), k.schema, k.table_name, \
         c.attname, j.key + 1, CASE WHEN k.contype = 'f' THEN j.key + 1 END FROM \
         refrain_constraint k, json_each(k.conkey) j JOIN refrain_column c ON c.attrelid = \
         k.table_oid AND c.attnum = j.value WHERE k.contype IN ('p', 'u', 'f')",
    ),
    (
        "information_schema_constraint_column_usage",
        "table_catalog name, table_schema name, table_name name, column_name name, \
         constraint_catalog name, constraint_schema name, constraint_name name",
        "SELECT current_database(), t.schema, t.name, c.attname, current_database(), k.schema, \
         k.name FROM refrain_constraint k, json_each(iif(k.contype = 'f', k.confkey, k.conkey)) j \
         JOIN refrain_object t ON t.oid = iif(k.contype = 'f', k.target_oid, k.table_oid) JOIN \
         refrain_column c ON c.attrelid = t.oid AND c.attnum = j.value",
    ),
    (
        "information_schema_referential_constraints",
        "constraint_catalog name, constraint_schema name, constraint_name name, \
         unique_constraint_catalog name, unique_constraint_schema name, unique_constraint_name \
         name, match_option varchar, update_rule varchar, delete_rule varchar",
        "SELECT current_database(), k.schema, k.name, current_database(), (SELECT t.schema FROM \
         refrain_object t WHERE t.oid = k.target_oid), (SELECT i.name FROM refrain_index i WHERE \
         i.table_oid = k.target_oid AND i.is_unique AND i.indkey = k.confkey LIMIT 1), 'NONE', \
         CASE k.on_update WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN \
         'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END, CASE k.on_delete WHEN 'a' THEN \
         'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' \
         ELSE 'SET DEFAULT' END FROM refrain_constraint k WHERE k.contype = 'f'",
    ),
    (
        "information_schema_check_constraints",
        "constraint_catalog name, constraint_schema name, constraint_name name, check_clause \
         varchar",
        "SELECT current_database(), schema, name, condition FROM refrain_constraint WHERE contype \
         = 'c' UNION ALL SELECT current_database(), o.schema, o.namespace || '_' || o.oid || '_' \
         || c.attnum || '_not_null', c.attname || ' IS NOT NULL' FROM refrain_column c, \
         refrain_object o WHERE o.oid = c.attrelid AND o.type = 'table' AND c.attnotnull",
    ),
];
