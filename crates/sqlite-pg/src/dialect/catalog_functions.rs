//! Functions of the catalog: PostgreSQL's names and types, and their queries of its relations.

use crate::types::Type;
use crate::types::Type::{
    Bool, Int2, Int4, Name, NameArray, Oid, Regclass, Regnamespace, Regtype, Text,
};

/// A function: its name, the types of its arguments, the type of its result, and SQLite's text,
/// with `$1` for the first argument.
pub(super) type FunctionRow = (&'static str, &'static [Type], Type, &'static str);

/// True for each object that has an OID: all are in the search path.
const VISIBLE: &str = "CASE WHEN $1 IS NOT NULL THEN 1 END";
/// Tables and columns alone have descriptions.
const DESCRIPTION: &str =
    "(SELECT d.description FROM pg_description d WHERE d.objoid = $1 AND d.objsubid = 0)";
/// There are no objects but relations.
const NONE: &str = "NULL";

/// The functions.
pub(super) const CATALOG_FUNCTIONS: &[FunctionRow] = &[
    ("pg_table_is_visible", &[Oid], Bool, VISIBLE),
    ("pg_type_is_visible", &[Oid], Bool, VISIBLE),
    ("pg_function_is_visible", &[Oid], Bool, VISIBLE),
    ("pg_collation_is_visible", &[Oid], Bool, VISIBLE),
    ("pg_opclass_is_visible", &[Oid], Bool, VISIBLE),
    ("pg_operator_is_visible", &[Oid], Bool, VISIBLE),
    ("pg_relation_is_publishable", &[Regclass], Bool, VISIBLE),
    ("pg_is_other_temp_schema", &[Oid], Bool, "0"),
    ("pg_my_temp_schema", &[], Oid, "0"),
    (
        "pg_get_userbyid",
        &[Oid],
        Name,
        "CASE $1 WHEN 10 THEN current_user() ELSE 'unknown (OID=' || $1 || ')' END",
    ),
    ("format_type", &[Oid, Int4], Text, "format_type($1, $2)"),
    ("pg_get_expr", &[Text, Oid], Text, "$1"),
    ("pg_get_expr", &[Text, Oid, Bool], Text, "$1"),
    (
        "pg_get_constraintdef",
        &[Oid],
        Text,
        "(SELECT k.definition FROM refrain_constraint k WHERE k.oid = $1)",
    ),
    (
        "pg_get_constraintdef",
        &[Oid, Bool],
        Text,
        "(SELECT k.definition FROM refrain_constraint k WHERE k.oid = $1)",
    ),
    (
        "pg_get_indexdef",
        &[Oid],
        Text,
        "(SELECT i.definition FROM refrain_index i WHERE i.oid = $1)",
    ),
    (
        "pg_get_indexdef",
        &[Oid, Int4, Bool],
        Text,
        "(SELECT iif($2, i.elements ->> ($2 - 1), i.definition) FROM refrain_index i WHERE i.oid = $1)",
    ),
    (
        "pg_get_viewdef",
        &[Regclass],
        Text,
        "(SELECT v.definition FROM refrain_views v WHERE v.oid = $1)",
    ),
    (
        "pg_get_viewdef",
        &[Regclass, Bool],
        Text,
        "(SELECT v.definition FROM refrain_views v WHERE v.oid = $1)",
    ),
    (
        "pg_get_serial_sequence",
        &[Text, Text],
        Text,
        "(CASE WHEN refrain_found((SELECT c.oid FROM refrain_regclass c WHERE c.name = \
         refrain_relation_name($1)), $1) IS NOT NULL THEN \
         (SELECT refrain_identifier(s.schema) || '.' || refrain_identifier(s.name) FROM \
         refrain_sequence s WHERE s.table_full = refrain_relation_name($1) AND s.attname = $2) END)",
    ),
    (
        "to_regclass",
        &[Text],
        Regclass,
        "(SELECT c.oid FROM refrain_regclass c WHERE c.name = refrain_relation_name($1))",
    ),
    ("to_regtype", &[Text], Regtype, "refrain_type_oid($1)"),
    (
        "to_regnamespace",
        &[Text],
        Regnamespace,
        "(SELECT n.oid FROM pg_namespace n WHERE n.nspname = trim($1, '\"'))",
    ),
    (
        "current_schemas",
        &[Bool],
        NameArray,
        "CASE $1 WHEN 1 THEN '[\"pg_catalog\",\"public\"]' WHEN 0 THEN '[\"public\"]' END",
    ),
    ("quote_ident", &[Text], Text, "refrain_identifier($1)"),
    ("obj_description", &[Oid], Text, DESCRIPTION),
    ("obj_description", &[Oid, Name], Text, DESCRIPTION),
    (
        "col_description",
        &[Oid, Int4],
        Text,
        "(SELECT d.description FROM pg_description d WHERE d.objoid = $1 AND d.objsubid = $2)",
    ),
    ("shobj_description", &[Oid, Name], Text, NONE),
    ("pg_get_partkeydef", &[Oid], Text, NONE),
    ("pg_get_triggerdef", &[Oid], Text, NONE),
    ("pg_get_triggerdef", &[Oid, Bool], Text, NONE),
    ("pg_get_ruledef", &[Oid], Text, NONE),
    ("pg_get_ruledef", &[Oid, Bool], Text, NONE),
    ("pg_get_functiondef", &[Oid], Text, NONE),
    ("pg_get_function_result", &[Oid], Text, NONE),
    ("pg_get_function_arguments", &[Oid], Text, NONE),
    ("pg_get_function_identity_arguments", &[Oid], Text, NONE),
    ("pg_get_statisticsobjdef_columns", &[Oid], Text, NONE),
    ("pg_table_size", &[Regclass], Type::Int8, NONE),
    ("pg_total_relation_size", &[Regclass], Type::Int8, NONE),
    ("pg_relation_size", &[Regclass], Type::Int8, NONE),
    ("pg_database_size", &[Name], Type::Int8, NONE),
    ("pg_size_pretty", &[Type::Int8], Text, "refrain_size($1)"),
    ("pg_tablespace_location", &[Oid], Text, "''"),
    ("pg_char_to_encoding", &[Name], Int4, "iif(upper($1) IN ('UTF8', 'UTF-8'), 6, -1)"),
    ("has_schema_privilege", &[Text, Text], Bool, "1"),
    ("has_schema_privilege", &[Oid, Text], Bool, "1"),
    ("has_schema_privilege", &[Name, Text, Text], Bool, "1"),
    ("has_schema_privilege", &[Name, Oid, Text], Bool, "1"),
    ("has_table_privilege", &[Text, Text], Bool, "1"),
    ("has_table_privilege", &[Oid, Text], Bool, "1"),
    ("has_table_privilege", &[Name, Text, Text], Bool, "1"),
    ("has_table_privilege", &[Name, Oid, Text], Bool, "1"),
    ("has_any_column_privilege", &[Oid, Text], Bool, "1"),
    ("has_column_privilege", &[Oid, Int2, Text], Bool, "1"),
    ("has_database_privilege", &[Text, Text], Bool, "1"),
    ("has_database_privilege", &[Oid, Text], Bool, "1"),
    ("has_database_privilege", &[Name, Text, Text], Bool, "1"),
    ("has_sequence_privilege", &[Oid, Text], Bool, "1"),
    ("pg_has_role", &[Name, Text], Bool, "1"),
    ("pg_has_role", &[Oid, Text], Bool, "1"),
];
