//! Refusals: settings that a session rightly has and that a server may refuse all the same.
//!
//! A server refuses a setting that names an object which is gone, or that takes a right which was
//! taken back, and `temp_buffers` once its session has used temporary tables. Such settings are
//! synced by a query that stands alone ([`crate::relay::refused`]).

/// Settings that decide with whose rights texts run. They are never given up.
const IDENTITY: [&[u8]; 2] = [b"role", b"session_authorization"];

/// Settings that name objects, and the one that a session can change only before it has used
/// temporary tables (`check_temp_buffers` in PostgreSQL's `variable.c`).
const NAMED: [&[u8]; 5] = [
    b"default_table_access_method",
    b"default_tablespace",
    b"default_text_search_config",
    b"temp_buffers",
    b"temp_tablespaces",
];

/// Settings for which a session needs a right: those of the context `superuser` in `pg_settings`.
const PRIVILEGED: [&[u8]; 26] = [
    b"allow_in_place_tablespaces",
    b"allow_system_table_mods",
    b"backtrace_functions",
    b"commit_delay",
    b"compute_query_id",
    b"deadlock_timeout",
    b"debug_discard_caches",
    b"dynamic_library_path",
    b"event_triggers",
    b"extension_control_path",
    b"extension_destdir",
    b"ignore_checksum_failure",
    b"jit_dump_bitcode",
    b"lc_messages",
    b"lo_compat_privileges",
    b"max_stack_depth",
    b"output_plugin_libraries",
    b"session_preload_libraries",
    b"session_replication_role",
    b"temp_file_limit",
    b"update_process_title",
    b"wal_compression",
    b"wal_consistency_checking",
    b"wal_init_zero",
    b"wal_recycle",
    b"zero_damaged_pages",
];

/// The beginnings of the names of further ones.
const PRIVILEGED_KINDS: [&[u8]; 2] = [b"log_", b"track_"];

/// True if a server may refuse a setting that another has accepted.
pub(crate) fn may_come(name: &[u8]) -> bool {
    [&IDENTITY[..], &NAMED, &PRIVILEGED].iter().any(|names| names.contains(&name))
        || PRIVILEGED_KINDS.iter().any(|kind| name.starts_with(kind))
}

/// Returns the settings to give up when a server refuses the settings of these names with this
/// message: the one that it quotes, or else all that may be the reason. None of them if the role
/// may be: texts would run with the rights of the login.
pub(crate) fn to_give_up<'a>(
    names: impl Iterator<Item = &'a [u8]>,
    message: &[u8],
) -> Vec<Box<[u8]>> {
    let mut names: Vec<&[u8]> = names.collect();
    let quotes = |name: &&&[u8]| {
        let quoted = [b"\"", **name, b"\""].concat();
        message.windows(quoted.len()).any(|part| part == quoted)
    };
    if let Some(name) = names.iter().find(quotes) {
        names = vec![name];
    } else if names.iter().any(|name| IDENTITY.contains(name)) {
        return Vec::new();
    } else {
        names.retain(|name| may_come(name));
    }
    names.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given_up(names: &[&str], message: &str) -> Vec<String> {
        let names = names.iter().map(|name| name.as_bytes());
        let names = to_give_up(names, message.as_bytes());
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    #[test]
    fn the_setting_that_the_error_quotes_is_given_up() {
        let names = ["temp_buffers", "work_mem"];
        let message = "invalid value for parameter \"temp_buffers\": 1";
        assert_eq!(given_up(&names, message), ["temp_buffers"]);
        assert_eq!(given_up(&names, "parameter \"work_mem\""), ["work_mem"]);
        // In another language, say.
        assert_eq!(given_up(&names, "?"), ["temp_buffers"]);
    }

    #[test]
    fn a_role_is_not_given_up() {
        let names = ["role", "log_statement"];
        assert_eq!(given_up(&names, "role \"r\" does not exist"), [""; 0]);
        let message = "permission denied to set parameter \"log_statement\"";
        assert_eq!(given_up(&names, message), ["log_statement"]);
    }
}
