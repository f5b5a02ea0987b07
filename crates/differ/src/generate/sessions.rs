//! Texts about the state of a session: roles, parameters of the user's own, defaults of
//! transactions, settings that the analysis of a text reads, and paths with a temporary schema.
//!
//! A list has the commands that change the state and those that show it. `{e}` in a text is a
//! character outside of ASCII, in UTF8 or as a byte of LATIN1, whatever the client's encoding is.

use super::{Draft, Generator, Mode, texts};

/// A role that owns nothing. It has a schema of its own name, which `"$user"` finds, and the rights
/// that a client's schema grants.
pub(crate) const ROLE: &str = "diff_role";

/// SQL that creates what belongs to the role, once for a database.
pub(crate) const SHARED: &str = "
    grant usage on schema shr to diff_role;
    grant select on shr.a to diff_role;
    create table public.u (x text);
    create schema diff_role authorization diff_role;
    create table diff_role.u (x int, y int);
    insert into public.u values ('public');
    insert into diff_role.u values (1, 2);
    grant select on public.u, diff_role.u to diff_role;
    create function shr.tenant() returns text immutable language sql
        as $f$select coalesce(nullif(current_setting('app.t', true), ''), 'none')$f$;";

/// SQL that creates a table with row security in a client's own schema.
pub(crate) const OWN: &str = "
    grant usage on schema {s} to diff_role;
    grant select, insert on {s}.t1 to diff_role;
    create table {s}.rls (id int primary key, n int);
    insert into {s}.rls select g, g % 3 from generate_series(1, 9) g;
    alter table {s}.rls enable row level security;
    create policy tenant on {s}.rls
        using (n = coalesce(nullif(current_setting('app.t', true), '')::int, 0));
    grant select, update on {s}.rls to diff_role;
    create view {s}.secured as select id, n from {s}.rls;
    alter view {s}.secured owner to diff_role;";

/// Commands about the role and its rights, and what they allow.
const ROLES: &[&str] = &[
    "set role diff_role",
    "set role diff_role",
    "set local role diff_role",
    "set session authorization diff_role",
    "set local session authorization diff_role",
    "reset session authorization",
    "set session authorization default",
    "reset role",
    "reset role",
    "set role none",
    "set role to default",
    "set role nosuch",
    "select set_config('role', 'diff_role', false)",
    "select current_user, session_user, current_setting('role')",
    "select current_user, session_user, current_setting('role')",
    "show role",
    "show is_superuser",
    "grant select on {s}.t2 to diff_role",
    "revoke select on {s}.t2 from diff_role",
    "revoke select on {s}.t1 from diff_role",
    "grant select on {s}.t1 to diff_role",
    "select count(*) from {s}.t2",
    "select count(*) from {s}.t1",
    "select id, n from {s}.rls order by id",
    "select id, n from {s}.secured order by id",
    "create table {s}.denied (a int)",
    "set row_security = off",
    "reset row_security",
];

/// Names that mean something else to another role, or by another path.
const ROLE_PATHS: &[&str] = &[
    "select * from u",
    "select * from u",
    "select x from u",
    "set search_path = diff_role, public",
    "set search_path = public, diff_role",
    "set search_path = \"$user\", public",
    "reset search_path",
    // Temporary schemas have a number of the server's session.
    "select regexp_replace(current_schemas(false)::text, 'temp_[0-9]+', 'temp')",
];

/// Values outside of ASCII, and the encoding in which a client reads and writes them.
const ENCODED: &[&str] = &[
    "set client_encoding = 'LATIN1'",
    "set client_encoding = 'UTF8'",
    "set client_encoding = 'WIN1252'",
    "reset client_encoding",
    "set app.e = '{e}' /*env*/",
    "set app.e = 'a{e}b' /*env*/",
    "set app.e = '€' /*env*/",
    "set app.e = 'я' /*env*/",
    "set app.e = 'plain'",
    "set local app.e = '{e}' /*env*/",
    "select set_config('app.e', '{e}', false) /*env*/",
    "set search_path = \"{e}\", {s} /*env*/",
    "reset search_path",
    "set application_name = '{e}' /*env*/",
    "reset app.e",
    "select length(nullif(current_setting('app.e', true), ''))",
    "select nullif(current_setting('app.e', true), '')",
    "show search_path",
    "show application_name",
    "show client_encoding",
    "select '{e}', length('{e}') /*env*/",
];

/// Parameters of the user's own. Where another client has set one, PostgreSQL goes on to know it as
/// an empty text, so these texts show an empty one as none.
const CUSTOM: &[&str] = &[
    "set app.t = '{n}'",
    "set app.t = '1'",
    "set app.t = ''",
    "set app.u = 'u{n}'",
    "set local app.t = '{n}'",
    "select set_config('app.t', '{n}', false)",
    "select set_config('app.t', '{n}', true)",
    "reset app.t",
    "set app.t to default",
    "set nosuch.\"odd name\" = 1",
    "select nullif(current_setting('app.t', true), '')",
    "select nullif(current_setting('app.t', true), '')::int + 1",
    "select nullif(current_setting('app.u', true), '')",
    "select id, n from {s}.secured order by id",
    "select id, n from {s}.secured order by id",
    "update {s}.secured set n = n where id < 5 returning id",
];

/// Parameters of the user's own that nobody has set in this session.
const PLACEHOLDERS: &[&str] = &[
    "set app.p{n} = '{n}'",
    "set local app.p{n} = '{n}'",
    "reset app.p{n}",
    "show app.p{n}",
    "select current_setting('app.p{n}')",
    "select current_setting('app.p{n}', true)",
    "select current_setting('app.p{n}', true) is null",
    "select current_setting('app.p{n}', true)::int",
];

/// Defaults of transactions and limits of time. None makes a transaction serializable, read only
/// and deferrable: such a transaction waits for those of other clients.
const DEFAULTS: &[&str] = &[
    "set default_transaction_isolation = serializable",
    "set default_transaction_isolation = 'repeatable read'",
    "reset default_transaction_isolation",
    "set default_transaction_read_only = on",
    "set default_transaction_read_only = on",
    "set default_transaction_read_only = off",
    "reset default_transaction_read_only",
    "set session characteristics as transaction read only",
    "set session characteristics as transaction isolation level repeatable read, read write",
    "set session characteristics as transaction isolation level read committed",
    "set statement_timeout = '15s'",
    "set lock_timeout = '1ms'",
    "set lock_timeout = 0",
    "set idle_in_transaction_session_timeout = '50s'",
    "set idle_session_timeout = '50s'",
    "set transaction_timeout = '50s'",
    "set row_security = off",
    "reset row_security",
    "set client_min_messages = error",
    "set client_min_messages = panic",
    "reset client_min_messages",
    "set log_statement = 'all'",
    "set default_with_oids = off",
    "set default_tablespace = ''",
    "set default_table_access_method = heap",
    "set check_function_bodies = off",
    "set enable_seqscan = off",
    "set jit = on",
    "select current_setting('transaction_isolation'), current_setting('transaction_read_only')",
    "show default_transaction_isolation",
    "show idle_in_transaction_session_timeout",
    "show lock_timeout",
    "reset all",
];

/// Texts whose meaning is settled when they are analysed.
pub(super) const ANALYSED: &[&str] = &[
    "select ('01/02/2024'::date)::text /*env*/",
    "select extract(month from '01/02/2024'::date) /*env*/",
    "select '{NULL, a}'::text[] /*env*/",
    "select id, t from shr.a where t = null order by id /*env*/",
    "select count(*) from {s}.t3 where v = null /*env*/",
    "select '-1 2:03:04'::interval, id from {s}.t1 order by id /*env*/",
    "select '2024-01-02 03:04:05'::timestamptz at time zone 'UTC' /*env*/",
    "select id from {s}.t2 where d = '01/02/2024' order by id /*env*/",
    "select xmlserialize(content '<a/>'::xml as text) /*env*/",
    "select shr.tenant() /*env*/",
    "select 'a\\tb' /*env*/",
];

/// Settings that the analysis of a text reads, and what makes PostgreSQL analyse a prepared text
/// again.
const ANALYSED_AGAIN: &[&str] = &[
    "set datestyle = 'ISO, MDY'",
    "set datestyle = 'ISO, DMY'",
    "set intervalstyle = sql_standard",
    "reset intervalstyle",
    "set timezone = 'Asia/Tokyo'",
    "reset timezone",
    "set transform_null_equals = on",
    "reset transform_null_equals",
    "set array_nulls = off",
    "reset array_nulls",
    "set xmloption = document",
    "set search_path = {s}, public",
    "set search_path = public, {s}",
    "set search_path = shr, public",
    "reset search_path",
    "analyze {s}.t1",
    "analyze {s}.t3",
    "discard plans",
    "alter table {s}.t3 alter column v set default 'a{n}'",
    "comment on table {s}.t1 is 'a{n}'",
    "create table if not exists {s}.a (id int, t text)",
    "drop table if exists {s}.a",
];

/// Objects that are temporary because the path begins with the temporary schema. Each text names
/// `pg_temp`, so that the test knows that the client stays with its server.
const TEMP_PATHS: &[&str] = &[
    "set search_path = pg_temp",
    "set search_path = pg_temp, public",
    "set local search_path = pg_temp",
    "select set_config('search_path', 'pg_temp', false) /* pg_temp */",
    "reset search_path",
    "create table m{n} (a int) /* pg_temp */",
    "select {n} as x into m{n} /* pg_temp */",
    "create table m{n} as select {n} as x /* pg_temp */",
    "create view m{n} as select {n} as x /* pg_temp */",
    "create sequence m{n} /* pg_temp */",
    "create type m{n} as (a int) /* pg_temp */",
    "create function m{n}() returns int language sql as 'select 1' /* pg_temp */",
    "begin; set local search_path = pg_temp; select {n} as x into m{n}; commit",
    "select * from m{n}",
    "create or replace function pg_temp.m{n}() returns int language sql as 'select {n}'; \
     select pg_temp.m{n}()",
    "drop table if exists m{n} /* pg_temp */",
    "drop view if exists m{n} /* pg_temp */",
];

/// Texts that show what [`super::long`] has changed.
const SHOWN: &[&str] = &[
    "select current_setting('work_mem'), current_setting('search_path'), current_user",
    "show work_mem",
    "show search_path",
    "select nullif(current_setting('app.t', true), '')",
];

/// A feature with texts, and how often the generator takes one of them.
struct List {
    feature: &'static str,
    weight: usize,
    texts: &'static [&'static str],
    /// Whether a text may tie a client to its server.
    pins: bool,
}

const fn list(feature: &'static str, weight: usize, texts: &'static [&'static str]) -> List {
    List { feature, weight, texts, pins: false }
}

const LISTS: [List; 9] = [
    List { feature: "roles", weight: 8, texts: ROLES, pins: true },
    list("role-paths", 8, ROLE_PATHS),
    list("encoded", 8, ENCODED),
    list("custom", 6, CUSTOM),
    list("placeholders", 6, PLACEHOLDERS),
    list("defaults", 6, DEFAULTS),
    list("frozen", 14, ANALYSED_AGAIN),
    list("long-texts", 6, SHOWN),
    List { feature: "temp-paths", weight: 8, texts: TEMP_PATHS, pins: true },
];

impl Generator {
    /// Returns how often one of [`LISTS`] is used in a step of this mode.
    pub(super) fn sessions_weight(&self, mode: Mode) -> usize {
        self.lists(mode).iter().sum()
    }

    fn lists(&self, mode: Mode) -> [usize; LISTS.len()] {
        LISTS.each_ref().map(|list| {
            let used = self.features.has(list.feature) && (!list.pins || mode == Mode::Pinning);
            usize::from(used) * list.weight
        })
    }

    /// Returns a text of one of [`LISTS`].
    pub(super) fn session_text(&mut self, draft: &Draft<'_>) -> Vec<u8> {
        let weights = self.lists(draft.mode);
        let list = &LISTS[self.rng.weighted(&weights)];
        let text = *self.rng.pick(list.texts);
        texts::fill(text, draft.client, &mut self.rng)
    }
}
