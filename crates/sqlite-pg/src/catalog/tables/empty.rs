//! Relations of the catalog that have no rows here in any file.

use super::EmptyRelation;

pub(in crate::catalog) const RELATIONS: &[EmptyRelation] = &[
    ("pg_shdescription", "objoid oid, classoid oid, description text"),
    ("pg_inherits", "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool"),
    (
        "pg_trigger",
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled \
         char, tgisinternal bool, tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, \
         tgdeferrable bool, tginitdeferred bool, tgnargs int2, tgattr int2vector, tgargs bytea, \
         tgqual text, tgoldtable name, tgnewtable name",
    ),
    (
        "pg_range",
        "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, \
         rngcanonical regproc, rngsubdiff regproc",
    ),
    (
        "pg_extension",
        "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, extversion \
         text, extconfig _oid, extcondition _text",
    ),
    ("pg_foreign_table", "ftrelid oid, ftserver oid, ftoptions _text"),
    (
        "pg_foreign_server",
        "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl \
         _aclitem, srvoptions _text",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl _aclitem, \
         fdwoptions _text",
    ),
    ("pg_user_mapping", "oid oid, umuser oid, umserver oid, umoptions _text"),
    (
        "pg_policy",
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles _oid, \
         polqual text, polwithcheck text",
    ),
    (
        "pg_rewrite",
        "oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool, \
         ev_qual text, ev_action text",
    ),
    (
        "pg_proc",
        "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4, \
         prorows float4, provariadic oid, prosupport regproc, prokind char, prosecdef bool, \
         proleakproof bool, proisstrict bool, proretset bool, provolatile char, proparallel char, \
         pronargs int2, pronargdefaults int2, prorettype oid, proargtypes oidvector, \
         proallargtypes _oid, proargmodes _char, proargnames _text, proargdefaults text, \
         protrftypes _oid, prosrc text, probin text, prosqlbody text, proconfig _text, proacl \
         _aclitem",
    ),
    (
        "pg_aggregate",
        "aggfnoid regproc, aggkind char, aggnumdirectargs int2, aggtransfn regproc, aggfinalfn \
         regproc, aggcombinefn regproc, aggserialfn regproc, aggdeserialfn regproc, aggmtransfn \
         regproc, aggminvtransfn regproc, aggmfinalfn regproc, aggfinalextra bool, aggmfinalextra \
         bool, aggfinalmodify char, aggmfinalmodify char, aggsortop oid, aggtranstype oid, \
         aggtransspace int4, aggmtranstype oid, aggmtransspace int4, agginitval text, aggminitval \
         text",
    ),
    (
        "pg_language",
        "oid oid, lanname name, lanowner oid, lanispl bool, lanpltrusted bool, lanplcallfoid oid, \
         laninline oid, lanvalidator oid, lanacl _aclitem",
    ),
    (
        "pg_statistic_ext",
        "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, \
         stxkeys int2vector, stxkind _char, stxexprs text",
    ),
    (
        "pg_publication",
        "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, \
         pubdelete bool, pubtruncate bool, pubviaroot bool",
    ),
    ("pg_publication_rel", "oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2vector"),
    ("pg_publication_namespace", "oid oid, pnpubid oid, pnnspid oid"),
    (
        "pg_subscription",
        "oid oid, subdbid oid, subskiplsn text, subname name, subowner oid, subenabled bool, \
         subbinary bool, substream bool, subtwophasestate char, subdisableonerr bool, subconninfo \
         text, subslotname name, subsynccommit text, subpublications _text",
    ),
    (
        "pg_event_trigger",
        "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, \
         evttags _text",
    ),
    ("pg_auth_members", "roleid oid, member oid, grantor oid, admin_option bool"),
    (
        "pg_partitioned_table",
        "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2vector, \
         partclass oidvector, partcollation oidvector, partexprs text",
    ),
    (
        "pg_default_acl",
        "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl _aclitem",
    ),
    ("pg_seclabel", "objoid oid, classoid oid, objsubid int4, provider text, label text"),
    (
        "pg_matviews",
        "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, \
         ispopulated bool, definition text",
    ),
    ("pg_rules", "schemaname name, tablename name, rulename name, definition text"),
    (
        "pg_policies",
        "schemaname name, tablename name, policyname name, permissive text, roles _name, cmd \
         text, qual text, with_check text",
    ),
    (
        "pg_conversion",
        "oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, \
         contoencoding int4, conproc regproc, condefault bool",
    ),
    (
        "pg_prepared_statements",
        "name text, statement text, prepare_time timestamptz, parameter_types _oid, from_sql \
         bool, generic_plans int8, custom_plans int8",
    ),
    ("pg_db_role_setting", "setdatabase oid, setrole oid, setconfig _text"),
    (
        "information_schema_triggers",
        "trigger_catalog name, trigger_schema name, trigger_name name, event_manipulation \
         varchar, event_object_catalog name, event_object_schema name, event_object_table name, \
         action_order int4, action_condition varchar, action_statement varchar, \
         action_orientation varchar, action_timing varchar, action_reference_old_table name, \
         action_reference_new_table name, action_reference_old_row name, action_reference_new_row \
         name, created timestamptz",
    ),
    (
        "information_schema_routines",
        "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, \
         routine_schema name, routine_name name, routine_type varchar, module_catalog name, \
         module_schema name, module_name name, udt_catalog name, udt_schema name, udt_name name, \
         data_type varchar, character_maximum_length int4, character_octet_length int4, \
         character_set_catalog name, character_set_schema name, character_set_name name, \
         collation_catalog name, collation_schema name, collation_name name, numeric_precision \
         int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
         interval_type varchar, interval_precision int4, type_udt_catalog name, type_udt_schema \
         name, type_udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name, routine_body varchar, routine_definition \
         varchar, external_name varchar, external_language varchar, parameter_style varchar, \
         is_deterministic varchar, sql_data_access varchar, is_null_call varchar, sql_path \
         varchar, schema_level_routine varchar, max_dynamic_result_sets int4, \
         is_user_defined_cast varchar, is_implicitly_invocable varchar, security_type varchar, \
         to_sql_specific_catalog name, to_sql_specific_schema name, to_sql_specific_name name, \
         as_locator varchar, created timestamptz, last_altered timestamptz, new_savepoint_level \
         varchar, is_udt_dependent varchar, result_cast_from_data_type varchar, \
         result_cast_as_locator varchar, result_cast_char_max_length int4, \
         result_cast_char_octet_length int4, result_cast_char_set_catalog name, \
         result_cast_char_set_schema name, result_cast_char_set_name name, \
         result_cast_collation_catalog name, result_cast_collation_schema name, \
         result_cast_collation_name name, result_cast_numeric_precision int4, \
         result_cast_numeric_precision_radix int4, result_cast_numeric_scale int4, \
         result_cast_datetime_precision int4, result_cast_interval_type varchar, \
         result_cast_interval_precision int4, result_cast_type_udt_catalog name, \
         result_cast_type_udt_schema name, result_cast_type_udt_name name, \
         result_cast_scope_catalog name, result_cast_scope_schema name, result_cast_scope_name \
         name, result_cast_maximum_cardinality int4, result_cast_dtd_identifier name",
    ),
    (
        "information_schema_parameters",
        "specific_catalog name, specific_schema name, specific_name name, ordinal_position int4, \
         parameter_mode varchar, is_result varchar, as_locator varchar, parameter_name name, \
         data_type varchar, character_maximum_length int4, character_octet_length int4, \
         character_set_catalog name, character_set_schema name, character_set_name name, \
         collation_catalog name, collation_schema name, collation_name name, numeric_precision \
         int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
         interval_type varchar, interval_precision int4, udt_catalog name, udt_schema name, \
         udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name, parameter_default varchar",
    ),
    (
        "information_schema_domains",
        "domain_catalog name, domain_schema name, domain_name name, data_type varchar, \
         character_maximum_length int4, character_octet_length int4, character_set_catalog name, \
         character_set_schema name, character_set_name name, collation_catalog name, \
         collation_schema name, collation_name name, numeric_precision int4, \
         numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type \
         varchar, interval_precision int4, domain_default varchar, udt_catalog name, udt_schema \
         name, udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name",
    ),
];
