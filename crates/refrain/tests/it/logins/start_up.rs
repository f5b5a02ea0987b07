//! Startup packets: `options` in all of its grammar, and names that PostgreSQL cuts.

use std::net::SocketAddr;

use xtask::postgres::{Cluster, PASSWORD};

use crate::reply::Reply;
use crate::session::Session;
use crate::world::{Config, Version, addr, cluster, database_of, psql};

/// Values of `options`, right and wrong.
const OPTIONS: &[&str] = &[
    "-c work_mem=5MB",
    "-cwork_mem=6MB",
    "--work-mem=7MB",
    "  -c   work_mem=5MB\t",
    "-c work_mem=5MB -c work_mem=6MB",
    "-c search_path=a,\\ public",
    "-c application_name=a\\ \\\\b\\c",
    "-c application_name=a\x0b-c work_mem=7MB",
    "-c app-t-1.x-y=3",
    "-c app.t=",
    "-c APP.t==",
    "--geqo=off",
    "-S 5000",
    "-S5000",
    "-S 5000kB",
    "-e",
    "-eS 6000",
    "-fs",
    "-fsx",
    "-f s -f i -fo -fb -ft -fn -fm -fh",
    "-tpl",
    "-tpart -te",
    "-s",
    "-sOe",
    "-O",
    "-d 0",
    "-d3",
    "-d 5",
    "-d -3",
    "-d x",
    "-d 9",
    "-b -E -j -C x -r file -v 3",
    "-D /tmp",
    "-n",
    "-T",
    "--",
    "",
    " ",
    "\\",
    "-c \\",
    "-c statement_timeout = 5s",
    "-c foo",
    "-c foo-bar",
    "-c",
    "-c =x",
    "-c --",
    "--geqo",
    "--no-such",
    "--work_mem=5MB --geqo",
    "--work_mem=bogus --geqo",
    "--geqo --work_mem=bogus",
    "-",
    "garbage",
    "garbage -c work_mem=bogus",
    "garbage -c work_mem=5MB",
    "-c work_mem=5MB garbage other",
    "-- -e",
    "-x",
    "-xe",
    "-ex",
    "-e -xe",
    "-S 5000 -xe",
    "garbage -e -xe",
    "-:",
    "-?",
    "-fx",
    "-f x",
    "-f",
    "-tx",
    "-t p",
    "-S",
    "-S x",
    "-c nosuch=1",
    "-c work_mem=bogus",
    "-c shared_buffers=1GB",
    "-c server_version=1",
    "-B 100",
    "-F",
    "-h x",
    "-i",
    "-k x",
    "-l",
    "-N 5",
    "-p 5",
    "-c role=nosuch",
    "-c client_encoding=nosuch",
];

/// Parameters that switches set and PostgreSQL does not report, and others.
const SHOWN: &str = "select string_agg(name || '=' || setting, ' ' order by name) \
    from pg_settings where context in ('user', 'superuser') and name <> 'application_name'";

/// Returns the code, the message and the hint of a refusal.
fn refusal(reply: &Reply) -> String {
    let error = reply.error().expect("an error");
    let fields = b"SCMH".map(|code| String::from_utf8_lossy(error.field(code)).into_owned());
    fields.join("|")
}

/// Returns the settings of a session with these `options`, or why it is refused.
fn outcome(addr: SocketAddr, database: &str, options: &str) -> String {
    let params = [("user", "postgres"), ("database", database), ("options", options)];
    match Session::login(addr, &params) {
        Err(reply) => refusal(&reply),
        Ok(mut session) => {
            let mut shown = session.value(SHOWN);
            for custom in ["application_name", "app_t_1.x_y", "app.t"] {
                let sql = format!("select coalesce(current_setting('{custom}', true), '')");
                shown += &format!(" {custom}={}", session.value(&sql));
            }
            shown
        }
    }
}

fn options_are_read_as_by(version: Version) {
    let database = database_of(version, "startup_options");
    let own = addr(cluster(version));
    let proxy = Config::over(cluster(version)).start();
    for options in OPTIONS {
        let direct = outcome(own, database, options);
        // The second time, the settings are proven.
        for time in 1..=2 {
            assert_eq!(
                outcome(proxy.addr(), database, options),
                direct,
                "{options:?}, time {time}"
            );
        }
    }
    // What PostgreSQL sets before a session begins alone is refused, not left out.
    for options in ["-P", "-W 0", "-c post_auth_delay=0"] {
        assert!(!outcome(own, database, options).starts_with("FATAL"), "{options}");
        assert!(outcome(proxy.addr(), database, options).starts_with("FATAL|55P02|"), "{options}");
    }
}

#[test]
fn options_are_read_as_by_postgresql_15() {
    options_are_read_as_by(Version::V15);
}

#[test]
fn options_are_read_as_by_postgresql_18() {
    options_are_read_as_by(Version::V18);
}

/// Bytes of a name in PostgreSQL, at most.
const NAME_BYTES_MAX: usize = 63;

fn long_names_are_cut_as_by(version: Version) {
    let cluster = Cluster::start(version, &[]).unwrap();
    let runs_there = |sql: &str| cluster.psql("postgres", sql).unwrap();
    let (long, wide) = (format!("{}end", "n".repeat(NAME_BYTES_MAX)), "\u{e4}".repeat(40));
    for name in [&long, &wide] {
        runs_there(&format!("create role {name} superuser login password '{PASSWORD}'"));
        runs_there(&format!("create database {name}"));
    }
    let config = Config::over(&cluster).general("auth_user", "\"postgres\"");
    let config = config.general("auth_dbname", "\"postgres\"");
    let config = config.more(&format!("[users.postgres]\npassword = \"{PASSWORD}\"\n"));
    for auth in ["scram", "trust"] {
        let proxy = config.clone().general("auth", &format!("{auth:?}")).start();
        let who = |addr, user: &str, database: &str| {
            let url = format!("postgres://{user}@{addr}/{database}");
            psql(&url, PASSWORD, "select current_user || ' ' || current_database()")
        };
        let cut = &long[..NAME_BYTES_MAX];
        for user in [&long, cut, "postgres"] {
            for database in [&long, cut, "postgres"] {
                let direct = who(addr(&cluster), user, database).unwrap();
                assert_eq!(who(proxy.addr(), user, database).unwrap(), direct, "{user} {database}");
            }
        }
        // PostgreSQL cuts such a name within a character, and finds nobody.
        assert!(who(addr(&cluster), &wide, "postgres").is_err());
        let refused = who(proxy.addr(), &wide, "postgres").unwrap_err();
        assert!(!refused.contains("could not look up"), "{refused}");
    }
}

#[test]
fn long_names_are_cut_as_by_postgresql_15() {
    long_names_are_cut_as_by(Version::V15);
}

#[test]
fn long_names_are_cut_as_by_postgresql_18() {
    long_names_are_cut_as_by(Version::V18);
}
