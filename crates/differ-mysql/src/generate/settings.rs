//! Settings of sessions: variables, names, character sets, schemas, resets.

use super::source::{Draft, Generator, Mode};
use super::texts;
use crate::command::Command;

/// SET of all kinds.
pub const SETTINGS: &[&str] = &[
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET sql_mode = 'PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = ''",
    "SET sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO'",
    "SET sql_mode = DEFAULT",
    "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI')",
    "SET @@session.sql_mode = 'TRADITIONAL'",
    "SET @@sql_mode = 'IGNORE_SPACE', time_zone = '+01:00'",
    "SET @@sql_mode = 'ANSI_QUOTES'",
    "SET @@time_zone = '+0{i}:30', @@autocommit = 1",
    "SET @@autocommit = 0",
    "SET @@group_concat_max_len = 101{i}, @@foreign_key_checks = 0",
    "SET @@character_set_results = latin1, @@div_precision_increment = {i}",
    "SET @@collation_connection = utf8mb4_bin",
    "SET @@character_set_connection = latin1",
    "SET sql_mode = 'NO_SUCH_MODE'",
    "SET sql_mode = 4",
    "SET time_zone = '+0{i}:00'",
    "SET time_zone = 'SYSTEM'",
    "SET time_zone = 'nowhere'",
    "SET time_zone = '-03:30', lc_time_names = 'de_DE'",
    "SET lc_time_names = 'fr_FR'",
    "SET lc_time_names = DEFAULT",
    "SET NAMES utf8mb4",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET NAMES latin1",
    "SET NAMES 'latin1' COLLATE 'latin1_german1_ci'",
    "SET NAMES binary",
    "SET NAMES gbk",
    "SET NAMES sjis",
    "SET NAMES DEFAULT",
    "SET NAMES nothing",
    "SET NAMES ucs2",
    "SET CHARACTER SET latin1",
    "SET CHARACTER SET utf8",
    "SET CHARACTER SET DEFAULT",
    "SET NAMES latin1, sql_mode = ''",
    "SET character_set_results = NULL",
    "SET character_set_results = 'latin1'",
    "SET character_set_results = 'utf16'",
    "SET @@character_set_results = ucs2",
    "SET SESSION character_set_results = utf32",
    "SET @@sql_select_limit = {i}",
    "SET character_set_client = 'latin1'",
    "SET character_set_connection = 'utf8'",
    "SET collation_connection = 'utf8mb4_unicode_ci'",
    "SET collation_connection = DEFAULT",
    "SET collation_connection = 'nothing'",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET autocommit = 1",
    "SET autocommit = DEFAULT",
    "SET autocommit = 5",
    "SET foreign_key_checks = 0, unique_checks = OFF",
    "SET SESSION group_concat_max_len = 1{i}",
    "SET LOCAL group_concat_max_len = DEFAULT",
    "SET group_concat_max_len = 5, nothing = 2",
    "SET group_concat_max_len = 'x'",
    "SET sql_select_limit = {i}",
    "SET sql_select_limit = DEFAULT",
    "SET sql_safe_updates = 1",
    "SET sql_safe_updates = 0",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
    "SET SESSION TRANSACTION READ ONLY",
    "SET SESSION TRANSACTION READ WRITE",
    "SET transaction_isolation = 'SERIALIZABLE'",
    "SET tx_isolation = 'READ-UNCOMMITTED'",
    "SET tx_read_only = {i}",
    "SET wait_timeout = 100{i}, net_read_timeout = 40",
    "SET lock_wait_timeout = 50, innodb_lock_wait_timeout = 7",
    "SET div_precision_increment = {i}",
    "SET default_week_format = {i}",
    "SET sql_notes = 0",
    "SET sql_notes = 1",
    "SET sql_warnings = 1",
    "SET max_error_count = {i}",
    "SET max_error_count = DEFAULT",
    "SET optimizer_switch = 'index_merge=off'",
    "SET optimizer_switch = DEFAULT",
    "SET optimizer_switch = 'nothing=on'",
    "SET default_storage_engine = 'MyISAM'",
    "SET default_storage_engine = DEFAULT",
    "SET sql_quote_show_create = 0",
    "SET completion_type = 'CHAIN'",
    "SET completion_type = DEFAULT",
    "SET low_priority_updates = 1",
    "SET max_sort_length = 200, sort_buffer_size = 100000",
    "SET tmp_table_size = 20000, max_heap_table_size = 20000",
    "SET big_tables = 1",
    "SET sql_big_selects = 0, max_join_size = 10",
    "SET sql_big_selects = DEFAULT, max_join_size = DEFAULT",
    "SET max_allowed_packet = 5000",
    "SET SESSION version = 'x'",
    "SET GLOBAL nothing = 1",
    "SET updatable_views_with_limit = 'NO'",
    "SET old_alter_table = 1",
    "SET block_encryption_mode = 'aes-256-cbc'",
    "SET auto_increment_increment = 2, auto_increment_offset = {i}",
    "SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT",
    "SET STATEMENT sql_select_limit = 1 FOR SELECT id FROM shr ORDER BY id",
    "SELECT @@session.sql_mode, @@time_zone, @@lc_time_names, @@completion_type",
    "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
     @@collation_connection, @@character_set_database, @@collation_database",
    "SHOW SESSION VARIABLES WHERE variable_name IN ('autocommit', 'sql_mode', 'time_zone', \
     'tx_isolation', 'transaction_isolation', 'sql_select_limit', 'optimizer_switch', \
     'foreign_key_checks', 'unique_checks', 'group_concat_max_len', 'wait_timeout', \
     'default_storage_engine', 'max_sort_length', 'div_precision_increment', 'sql_notes', \
     'max_error_count', 'character_set_server', 'collation_server', 'lock_wait_timeout')",
];

/// SET of what OK packets are to say.
pub const TRACKING: &[&str] = &[
    "SET session_track_system_variables = 'sql_mode,time_zone'",
    "SET session_track_system_variables = '*'",
    "SET session_track_system_variables = ''",
    "SET session_track_system_variables = DEFAULT",
    "SET session_track_system_variables = 'autocommit,nothing'",
    "SET session_track_system_variables = CONCAT(@@session_track_system_variables, ',sql_mode')",
    "SET session_track_schema = 0",
    "SET session_track_schema = ON",
    "SET session_track_state_change = ON",
    "SET session_track_state_change = 0",
    "SET session_track_transaction_info = 'STATE'",
    "SET session_track_transaction_info = 'CHARACTERISTICS'",
    "SET session_track_transaction_info = 'OFF'",
];

/// Texts that change the schema.
const USES: &[&str] = &["USE {d}a", "USE {d}b", "USE nowhere", "USE `{d}a`"];

impl Generator {
    pub(crate) fn setting(&mut self, draft: &mut Draft<'_>) {
        self.text(draft, SETTINGS);
    }

    /// Appends a change of the schema.
    pub(crate) fn schema(&mut self, draft: &mut Draft<'_>) {
        let holds = &draft.client.holds;
        let prepares = |command: &Command| matches!(command, Command::Prepare(..));
        let keeps = holds.keep_schema() || draft.commands.iter().any(prepares);
        if keeps && draft.mode == Mode::Free {
            return self.text(draft, texts::READS);
        }
        if self.rng.chance(50) {
            return self.text(draft, USES);
        }
        let schema = self.rng.pick(&["{d}a", "{d}b", "nowhere", "information_schema", ""]);
        draft.commands.push(Command::InitDb((*schema).to_owned()));
    }

    /// Appends a command that resets the session, or changes what texts may have.
    pub(crate) fn reset(&mut self, draft: &mut Draft<'_>) {
        let command = match self.rng.weighted(&[25, 15, 30, 30]) {
            0 => Command::ResetConnection,
            1 if draft.commands.is_empty() => {
                let schema = self.rng.pick(&["{d}a", "{d}b", ""]);
                Command::ChangeUser((*schema).to_owned())
            }
            2 => Command::SetOption(0),
            _ => Command::SetOption(u16::from(self.rng.chance(30))),
        };
        draft.commands.push(command);
    }
}
