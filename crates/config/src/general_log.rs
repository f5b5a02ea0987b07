//! The options of the log, which are rows of the table of the program (`general.rs`).

/// Makes the table of these rows and those of the log.
macro_rules! table_with_log {
    ($($rows:tt)*) => {
        $crate::table::table! {
            $($rows)*

            /// Log format.
            ///
            /// `text` is for people; `json` writes one object per line.
            log_format: $crate::choices::LogFormat = "text",
                Restart, takes ["json"], not ["xml"];

            /// Log level: less important lines are not written.
            ///
            /// `error`: servers that cannot be reached or break the protocol. `warn`: failed
            /// logins, clients that are disconnected with an error, a pool at its limit. `info`:
            /// servers that are lost or found, clients that vanish amid a transaction, and what the
            /// operator does. `debug`: each login and each end of a session.
            ///
            /// Of lines that say the same of the same database and user, the first is written at
            /// once, and the others are counted and told every ten seconds. With `debug` and
            /// `trace` each is written.
            log_level: $crate::choices::LogLevel = "info",
                Reload, takes ["error", "trace"], not ["verbose"];

            /// Whether the log tells each login of a client, and each login to a server.
            ///
            /// At the level `info`, a line for each, however many there are: only when 8,192 lines
            /// wait to be written, further ones are dropped, and their number is told.
            /// `log_level = "debug"` tells each as well.
            log_connections: bool = "false",
                Reload, takes ["true"], not ["yes", "1"];

            /// Whether the log tells each end of a client's session, with its reason and age.
            ///
            /// A line for each, as for `log_connections`: at the level `info`, or `warn` if it ends
            /// with an error. Sessions that end with an error are told in any case, but those alike
            /// are counted unless this is set. Logins that fail are counted always.
            log_disconnections: bool = "false",
                Reload, takes ["true"], not ["yes", "1"];

            /// Time zone of the times in the log.
            ///
            /// `UTC`, `system` for that of the machine, or a name such as `Europe/Berlin`. A name
            /// that the machine does not know is told in the log, and is UTC.
            log_timezone: String = "UTC",
                Reload, takes ["system", "Europe/Berlin"], not [];

            /// Time from which on the log tells each command of a statement that took as long.
            ///
            /// The line has the time, the statement's number in `SHOW STATEMENTS`, and its text
            /// without literals. A query that is not prepared is told without its text, unless
            /// `stat_texts` has it counted by itself.
            log_min_duration_statement: Option<::std::time::Duration> = "never" ["0ms" to "30d"],
                Reload, takes ["0ms", "250ms"], not ["250", "31d", "-1"];

            /// Time from which on the log tells some of the commands that took as long.
            ///
            /// `log_statement_sample_rate` says how many.
            log_min_duration_sample: Option<::std::time::Duration> = "never" ["0ms" to "30d"],
                Reload, takes ["0ms", "10ms"], not ["250", "31d", "-1"];

            /// Part of the commands of `log_min_duration_sample` that the log tells.
            log_statement_sample_rate: $crate::value::Percent = "100%" ["0%" to "100%"],
                Reload, takes ["1%"], not ["0.5", "101%"];

            /// Whether the log gets a line of statistics at the end of each `stats_period`.
            log_stats: bool = "true",
                Reload, takes ["false"], not ["yes", "1"];

            /// File to which the log is written, besides standard error.
            ///
            /// A reload opens it anew, so that it can be renamed before. With `--quiet`, nothing
            /// goes to standard error.
            logfile: Option<::std::path::PathBuf> = "off",
                Reload, takes ["/var/log/refrain.log"], not ["refrain.log"];

            /// Whether the log goes to syslog as well.
            ///
            /// Lines go to the socket `/dev/log`, besides standard error and `logfile`. A line that
            /// this socket does not take at once is dropped.
            syslog: bool = "false",
                Reload, takes ["true"], not ["yes", "1"];

            /// Name of the program in syslog.
            syslog_ident: String = "refrain",
                Reload, takes ["refrain-east"], not [];

            /// Facility of lines in syslog.
            syslog_facility: $crate::choices::SyslogFacility = "daemon",
                Reload, takes ["auth", "authpriv", "user", "local0", "local7"], not ["kern", "local8"];
        }
    };
}
pub(crate) use table_with_log;
