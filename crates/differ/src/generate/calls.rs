//! Functions, triggers and DO blocks that change their session although no word of the call says
//! so.
//!
//! Each changes the session by its arguments alone: the proxy need not handle code that changes a
//! session only now and then.

/// SQL that creates the functions, once for a database.
pub(crate) const FUNCTIONS: &str = "
    create function shr.leave_nothing(int) returns int language plpgsql as 'begin return $1; end';
    create function shr.leave_memory(int) returns text language plpgsql
        as 'begin return set_config(''work_mem'', $1 || ''7MB'', false); end';
    create function shr.leave_tenant(text) returns text language plpgsql
        as 'begin perform set_config(''my.tenant'', $1, false); return $1; end';
    create function shr.leave_lock(int) returns int language plpgsql
        as 'begin perform pg_advisory_lock($1); return 1; end';
    create function shr.leave_temp() returns int language plpgsql
        as 'begin create temp table if not exists tt (a int); return 1; end';
    create function shr.leave_channel(text) returns int language plpgsql
        as 'begin execute ''listen '' || $1; return 1; end';
    create procedure shr.leave_by_call(int) language plpgsql
        as 'begin perform set_config(''work_mem'', $1 || ''8MB'', false); end';
    create function shr.leave_default(int) returns int language plpgsql
        as 'begin reset all; return $1; end';
    create procedure shr.reset_by_call(int) language plpgsql
        as 'begin reset datestyle; reset work_mem; end';
    create function shr.hook() returns trigger language plpgsql
        as 'begin set statement_timeout = ''25s''; return null; end';";

/// SQL that creates a table with a trigger in a client's own schema.
pub(crate) const HOOKED: &str = "
    create table {s}.hooked (a int);
    create trigger hook after insert or delete on {s}.hooked for each row execute function shr.hook();";

/// Texts that leave nothing in the session, or settings.
pub(super) const CALLS: &[&str] = &[
    "select shr.leave_nothing({n})",
    "select shr.leave_memory({n})",
    "select shr.leave_tenant('t{n}')",
    "call shr.leave_by_call({n})",
    "insert into {s}.hooked values ({n})",
    "insert into {s}.hooked values ({n})",
    "delete from {s}.hooked",
    "do $$ begin perform set_config('my.tenant', 'd{n}', false); end $$",
    "do $$ begin perform set_config('work_mem', '{n}9MB', false); end $$",
    "select coalesce(current_setting('my.tenant', true), ''), current_setting('work_mem')",
    "select coalesce(current_setting('my.tenant', true), ''), current_setting('statement_timeout')",
];

/// Texts that give settings the values with which the session began, though they do not say so. The
/// proxy restores these values behind the segment: see [`crate::guard::resets_unseen_amid`].
pub(super) const RESETTING: &[&str] = &[
    "select shr.leave_default({n}) /*reset*/",
    "call shr.reset_by_call({n}) /*reset*/",
    "do $$ begin reset timezone; reset datestyle; end $$ /*reset*/",
    "do $$ begin execute 'reset all'; end $$ /*reset*/",
    "select set_config('DateStyle', null, false) is null /*reset*/",
    "select set_config('TimeZone', nullif('a', 'a'), false) is null /*reset*/",
];

/// Texts that leave session state that ties a client to its server, and texts that show it.
pub(super) const LEAVING: &[&str] = &[
    "select shr.leave_lock({i})",
    "select shr.leave_temp()",
    "select shr.leave_channel('ch{i}')",
    "do $$ begin perform pg_advisory_lock({i}); end $$",
    "do $$ begin create temp table if not exists tt (a int); end $$",
    "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
    "select * from pg_listening_channels()",
];
