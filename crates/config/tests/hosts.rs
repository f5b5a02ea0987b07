//! Databases with several hosts: files and URLs in, options or messages out.

use refrain_config::{LoadBalanceHosts, Options, TargetSessionAttrs};

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
