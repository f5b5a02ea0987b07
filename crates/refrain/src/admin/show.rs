//! The table of all listings.

#[cfg(feature = "sqlite")]
use super::pg::sqlite;
use super::pg::{autoprepare, cache, logins, prepared};
use super::table::{Listing, Pair, Show, text};
use super::{hosts, overview, own, pgbouncer, sharing, sockets, summary};

/// The listings by name.
pub(super) const LISTINGS: &[(&str, &dyn Show)] = &[
    ("active_sockets", &sockets::ACTIVE_SOCKETS),
    ("auth", &logins::AUTH),
    ("autoprepare", &autoprepare::TEMPLATES),
    ("cache", &cache::CACHE),
    ("cache advice", &cache::ADVICE),
    ("cache bypass", &cache::BYPASS),
    ("cache changes", &cache::CHANGES),
    ("cache coverage", &cache::COVERAGE),
    ("cache entries", &cache::ENTRIES),
    ("cache memory", &cache::MEMORY),
    ("cache rules", &cache::RULES),
    ("cache tables", &cache::TABLES),
    ("clients", &sockets::CLIENTS),
    ("config", &pgbouncer::CONFIG),
    ("counters", &own::COUNTERS),
    ("databases", &pgbouncer::DATABASES),
    ("dns_hosts", &pgbouncer::DNS_HOSTS),
    ("dns_zones", &pgbouncer::DNS_ZONES),
    ("fds", &pgbouncer::FDS),
    ("hba", &logins::HBA),
    ("hosts", &hosts::HOSTS),
    ("lists", &pgbouncer::LISTS),
    ("mem", &pgbouncer::MEM),
    ("options", &own::OPTIONS),
    ("overview", &overview::OVERVIEW),
    ("peer_pools", &pgbouncer::PEER_POOLS),
    ("peers", &pgbouncer::PEERS),
    ("pins", &sockets::PINS),
    ("pools", &pgbouncer::POOLS),
    ("prepared", &prepared::PREPARED),
    ("refrain", &own::REFRAIN),
    ("servers", &sockets::SERVERS),
    ("servers_extended", &sockets::SERVERS_EXTENDED),
    ("sharing", &sharing::SHARING),
    ("sockets", &sockets::SOCKETS),
    ("state", &pgbouncer::STATE),
    ("statements", &prepared::STATEMENTS),
    ("stats", &pgbouncer::STATS),
    ("stats_averages", &pgbouncer::STATS_AVERAGES),
    ("stats_totals", &pgbouncer::STATS_TOTALS),
    #[cfg(feature = "sqlite")]
    ("stmt_cache", &sqlite::STMT_CACHE),
    #[cfg(feature = "sqlite")]
    ("stmt_cache_texts", &sqlite::STMT_CACHE_TEXTS),
    ("summary", &summary::SUMMARY),
    ("times", &overview::TIMES),
    ("totals", &pgbouncer::TOTALS),
    ("users", &pgbouncer::USERS),
    ("version", &pgbouncer::VERSION),
    ("waits", &overview::WAITS),
    ("warnings", &overview::WARNINGS),
];

/// Settings that drivers ask for when they connect, with PgBouncer's values.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("client_encoding", "UTF-8"),
    ("datestyle", "ISO"),
    ("default_transaction_isolation", "read committed"),
    ("extra_float_digits", "2"),
    ("standard_conforming_strings", "on"),
    ("timezone", "GMT"),
];

/// `SHOW ALL`, which some clients send first.
pub(super) const ALL: Listing<Pair> = Listing {
    columns: &[text("name", |row| row.name.clone()), text("setting", |row| row.value.clone())],
    rows: |_| SETTINGS.iter().map(|(name, value)| Pair::new(*name, value)).collect(),
};

#[cfg(test)]
mod tests {
    use refrain_config::PgBouncerVersion;

    use super::*;

    fn names_in(listing: &str, version: PgBouncerVersion) -> String {
        let (_, show) = LISTINGS.iter().find(|(name, _)| *name == listing).unwrap();
        show.names(version).join(" ")
    }

    fn names(listing: &str) -> String {
        names_in(listing, PgBouncerVersion::V24)
    }

    /// Columns that 1.26 alone has stand behind the others, of totals and of averages.
    #[test]
    fn columns_go_by_the_version() {
        let (old, new) = (PgBouncerVersion::V25, PgBouncerVersion::V26);
        let (totals, averages) = ("total_client_connect_count", "avg_client_connect_count");
        let stats = names_in("stats", new);
        assert_eq!(stats.split(' ').nth(12), Some(totals));
        assert_eq!(stats.split(' ').nth(24), Some(averages));
        let without = stats.replace(&format!(" {totals}"), "").replace(&format!(" {averages}"), "");
        assert_eq!(without, names_in("stats", old));
        for listing in ["stats_totals", "stats_averages"] {
            let more = format!("{} client_connect_count", names_in(listing, old));
            assert_eq!(names_in(listing, new), more);
        }
        for listing in ["pools", "databases", "clients", "users", "lists", "config"] {
            assert_eq!(names_in(listing, new), names_in(listing, old));
        }
    }

    /// The columns are those in PgBouncer 1.24's `src/admin.c` and `src/stats.c`.
    #[test]
    fn columns_are_those_of_pgbouncer() {
        assert_eq!(
            names("pools"),
            "database user cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req \
             sv_active sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested sv_login \
             maxwait maxwait_us pool_mode load_balance_hosts"
        );
        assert_eq!(
            names("databases"),
            "name host port database force_user pool_size min_pool_size reserve_pool_size \
             server_lifetime pool_mode load_balance_hosts max_connections current_connections \
             max_client_connections current_client_connections paused disabled"
        );
        let socket = "type user database replication state addr port local_addr local_port \
                      connect_time request_time wait wait_us close_needed ptr link remote_pid tls \
                      application_name prepared_statements id";
        assert_eq!(names("clients"), socket);
        assert_eq!(names("servers"), socket);
        assert_eq!(names("sockets").split(' ').count(), 28);
        assert_eq!(names("stats").split(' ').count(), 23);
        assert_eq!(
            names("stats_totals"),
            "database server_assignment_count xact_count query_count bytes_received bytes_sent \
             xact_time query_time wait_time client_parse_count server_parse_count bind_count"
        );
        assert_eq!(
            names("stats_averages"),
            "database server_assignment_count xact_count query_count bytes_received bytes_sent \
             xact_time query_time wait_time avg_client_parse_count avg_server_parse_count \
             avg_bind_count"
        );
        assert_eq!(names("lists"), "list items");
        assert_eq!(names("config"), "key value default changeable");
        assert_eq!(names("version"), "version");
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(LISTINGS.is_sorted_by_key(|(name, _)| *name));
        assert!(SETTINGS.is_sorted_by_key(|(name, _)| *name));
    }
}
