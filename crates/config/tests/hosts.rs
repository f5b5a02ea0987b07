//! Databases with several hosts: files and URLs in, options or messages out.

use std::time::Duration;

use refrain_config::{LoadBalanceHosts, Options, Reads, TargetSessionAttrs};

/// Returns the options of one database with these keys.
fn read(keys: &str) -> Result<Options, String> {
    let text = format!("auth = \"trust\"\n[databases.d]\n{keys}\n");
    Options::from_toml(&text).map_err(|errors| errors.to_string())
}

fn hosts(options: &Options) -> String {
    options.databases[0].server.host_list()
}

#[test]
fn forms_of_a_list() {
    for (keys, expected) in [
        ("host = \"a, b\"", "a:5432,b:5432"),
        ("host = \"a,b\"\nport = 6000", "a:6000,b:6000"),
        ("host = \"a,::1,/run/pg\"\nport = \"1,2,3\"", "a:1,[::1]:2,/run/pg/.s.PGSQL.3"),
        ("url = \"postgres://a:1,[::1]/x\"", "a:1,[::1]:5432"),
        ("url = \"postgres://a,b\"\nport = \"7,8\"", "a:7,b:8"),
    ] {
        let options = read(keys).unwrap_or_else(|errors| panic!("{keys}: {errors}"));
        assert_eq!(hosts(&options), expected, "{keys}");
    }
}

#[test]
fn the_words_of_libpq_choose_a_host() {
    let url = "postgres://u@a:1,b:2/d?target_session_attrs=read-write";
    let server = &Options::from_url(url).expect("it is sound").databases[0].server;
    assert_eq!(server.target_session_attrs, TargetSessionAttrs::ReadWrite);
    assert_eq!(server.load_balance_hosts, LoadBalanceHosts::Disable);
    let options = read("host = \"a,b\"\nload_balance_hosts = \"random\"").expect("it is sound");
    assert_eq!(options.databases[0].server.load_balance_hosts, LoadBalanceHosts::Random);
}

#[test]
fn reads_run_on_standbys_where_that_is_asked_for() {
    let options = read("host = \"a,b\"").expect("it is sound");
    let server = &options.databases[0].server;
    assert_eq!((server.reads, server.max_lag), (Reads::Primary, Duration::from_secs(10)));
    let url = "postgres://u@a,b/d?target_session_attrs=primary&reads=standby&max_lag=2s";
    let server = &Options::from_url(url).expect("it is sound").databases[0].server;
    assert_eq!((server.reads, server.max_lag), (Reads::Standby, Duration::from_secs(2)));
    let wanted = "target_session_attrs = \"read-write\"\nreads = \"standby\"";
    for (keys, expected) in [
        (
            format!("host = \"a\"\n{wanted}"),
            "line 2: databases.d.reads: is \"standby\", and there is one host",
        ),
        (
            format!("host = \"a,b\"\n{wanted}\npool_mode = \"session\""),
            "line 2: databases.d.reads: is \"standby\": pool_mode must not be \"session\"",
        ),
        (
            "host = \"a,b\"\nreads = \"standby\"".to_owned(),
            "line 2: databases.d.target_session_attrs: must be \"read-write\" or \"primary\"",
        ),
        (
            "host = \"a,b\"\nreads = \"replica\"".to_owned(),
            "line 4: databases.d.reads: expected \"primary\" or \"standby\"",
        ),
        (
            "url = \"mysql://a?reads=standby\"".to_owned(),
            "databases.d.reads: is for PostgreSQL: a database of MySQL cannot have it",
        ),
        (
            "url = \"sqlite:x.db?reads=standby\"".to_owned(),
            "databases.d.reads: is for servers only",
        ),
        (
            format!("host = \"a,b\"\n{wanted}\nconsistency = \"global\""),
            "line 6: databases.d.consistency",
        ),
    ] {
        let told = read(&keys).expect_err(&keys);
        assert!(told.contains(expected), "{keys}: {told}");
    }
}

#[test]
fn messages_for_lists() {
    for (keys, expected) in [
        (
            "host = \"a,b,c\"\nport = \"1,2\"",
            "line 2: databases.d.port: must be one port for all hosts, or as many as there are hosts",
        ),
        (
            "host = \"a\"\nport = \"1,2\"",
            "line 2: databases.d.port: must be one port for all hosts, or as many as there are hosts",
        ),
        (
            "host = \"a,,b\"",
            "line 2: databases.d.host: has a comma with no name before or after it",
        ),
        (
            "url = \"mysql://a,b\"",
            "databases.d.host: names several servers: a database of MySQL has one",
        ),
        (
            "url = \"mysql://a?target_session_attrs=primary\"",
            "databases.d.target_session_attrs: is for PostgreSQL: a database of MySQL cannot have it",
        ),
        (
            "url = \"sqlite:x.db?target_session_attrs=primary\"",
            "databases.d.target_session_attrs: is for servers only",
        ),
        (
            "host = \"a\"\ntarget_session_attrs = \"master\"",
            "line 4: databases.d.target_session_attrs: expected \"any\", \"read-write\"",
        ),
    ] {
        let told = read(keys).expect_err(keys);
        assert!(told.contains(expected), "{keys}: {told}");
    }
}
