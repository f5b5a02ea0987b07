//! Files and URLs in, options or messages out.

use std::sync::Arc;
use std::time::Duration;

use refrain_config::{
    AuthMethod, Authorities, ChannelBinding, Database, Host, Options, PoolMode, Server, ServerTls,
    SslMode, SslNegotiation, TlsChoices, TlsCipher, TlsGroup, TlsProtocol, UserSecret, When,
};

const FILE: &str = r#"
max_client_conn = 500
shutdown_timeout = "never"
admin_users = ["app"]

[pool]
pool_size = 5
query_timeout = "30s"
buffer_high = 131072

[databases.shop]
url = "postgres://owner:pw@[::1]:6000/store?pool_size=7&application_name=till"
max_connections = 50
parameters = { search_path = "sales", jit = "off" }

[databases."*"]
host = "/run/postgresql"
pool_mode = "session"

[users.app]
password = "secret"

[users.night]
password = "moon"
pool_size = 2
query_timeout = "never"
max_connections = 3
"#;

fn read(text: &str) -> Options {
    Options::from_toml(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The messages for a file; those without which any small file would be refused are put in.
fn errors(text: &str) -> String {
    let rest = "\n[databases.\"*\"]\nhost = \"h\"\n[users.u]\npassword = \"p\"\n";
    Options::from_toml(&format!("{text}{rest}")).expect_err(text).to_string()
}

fn server(options: &Options, database: &str, user: &str) -> Server {
    options.pool(database, user).expect(database).server
}

fn url(url: &str) -> Options {
    Options::from_url(url).unwrap_or_else(|errors| panic!("{url}: {errors}"))
}

fn tcp(host: &str, port: u16) -> Host {
    Host::Tcp { host: host.to_owned(), port, tls: Arc::new(tls()) }
}

/// The encryption of a server whose options say nothing of it.
fn tls() -> ServerTls {
    let protocols = vec![TlsProtocol::V12, TlsProtocol::V13];
    let choices = TlsChoices { protocols, ciphers: Vec::new(), groups: Vec::new() };
    ServerTls {
        mode: SslMode::Prefer,
        negotiation: SslNegotiation::Postgres,
        authorities: None,
        crl_file: None,
        own: None,
        choices,
    }
}

#[test]
fn a_url_says_how_its_server_is_encrypted_as_for_libpq() {
    let options =
        url("postgres://h/d?sslmode=verify-full&sslrootcert=/r.crt&sslcert=/c.crt&sslkey=/c.key\
         &sslnegotiation=direct&sslcrl=/r.crl&channel_binding=require&server_tls_protocols=tlsv1.3\
         &server_tls_ciphers=TLS_AES_128_GCM_SHA256&server_tls_groups=X25519,secp384r1");
    let server = server(&options, "d", "u");
    assert_eq!(server.channel_binding, ChannelBinding::Require);
    let choices = TlsChoices {
        protocols: vec![TlsProtocol::V13],
        ciphers: vec![TlsCipher::Aes128Sha256],
        groups: vec![TlsGroup::X25519, TlsGroup::P384],
    };
    let expected = ServerTls {
        mode: SslMode::VerifyFull,
        negotiation: SslNegotiation::Direct,
        authorities: Some(Authorities::File("/r.crt".into())),
        crl_file: Some("/r.crl".into()),
        own: Some(("/c.crt".into(), "/c.key".into())),
        choices,
    };
    assert!(expected.is_verifying());
    let tls = Arc::new(expected);
    assert_eq!(server.host, Host::Tcp { host: "h".to_owned(), port: 5432, tls });
}

#[test]
fn files_that_an_sslmode_needs_are_asked_for() {
    let of_clients = [
        ("client_tls_sslmode = \"allow\"", "client_tls_cert_file: is missing"),
        (
            "client_tls_sslmode = \"require\"\nclient_tls_cert_file = \"/c\"",
            "client_tls_key_file: is missing",
        ),
        (
            "client_tls_sslmode = \"verify-ca\"\nclient_tls_cert_file = \"/c\"\n\
             client_tls_key_file = \"/k\"",
            "client_tls_ca_file: is missing",
        ),
        ("client_tls_crl_file = \"/l\"", "client_tls_ca_file: is missing"),
        ("client_tls_protocols = []", "client_tls_protocols: must name at least one version"),
    ];
    for (text, expected) in of_clients {
        assert!(errors(text).contains(expected), "{text}: {}", errors(text));
    }
    let of_servers = [
        ("sslmode = \"verify-full\"", "databases.d.sslrootcert: is missing"),
        ("sslcrl = \"/l\"", "databases.d.sslrootcert: is missing"),
        ("sslcert = \"/c\"", "databases.d.sslkey: is missing"),
        ("sslkey = \"/k\"", "databases.d.sslcert: is missing"),
        ("server_tls_protocols = []", "databases.d.server_tls_protocols: must name"),
    ];
    for (line, expected) in of_servers {
        let text = format!("[databases.d]\nhost = \"h\"\n{line}");
        assert!(errors(&text).contains(expected), "{text}: {}", errors(&text));
    }
}

#[test]
fn the_authorities_of_the_system_and_direct_tls_are_for_strong_modes_as_for_libpq() {
    let tls = |query: &str| {
        let options = url(&format!("postgres://h/d?{query}"));
        match server(&options, "d", "u").host {
            Host::Tcp { tls, .. } => tls,
            other => panic!("{other}"),
        }
    };
    let system = tls("sslrootcert=system");
    assert_eq!((system.mode, system.is_verifying()), (SslMode::VerifyFull, true));
    assert_eq!(system.authorities, Some(Authorities::System));
    assert_eq!(tls("sslrootcert=system&sslmode=verify-full"), system);
    assert_eq!(tls("sslmode=require&sslnegotiation=direct").mode, SslMode::Require);
    assert_eq!(tls("sslrootcert=system&sslnegotiation=direct").mode, SslMode::VerifyFull);
    for (line, expected) in [
        ("sslrootcert = \"system\"\nsslmode = \"verify-ca\"", "with sslrootcert=system"),
        ("sslrootcert = \"system\"\nsslmode = \"disable\"", "with sslrootcert=system"),
        ("sslnegotiation = \"direct\"", "with sslnegotiation=direct"),
        ("sslnegotiation = \"direct\"\nsslmode = \"allow\"", "with sslnegotiation=direct"),
    ] {
        let told = errors(&format!("[databases.d]\nhost = \"h\"\n{line}"));
        assert!(told.contains("databases.d.sslmode: weak sslmode may not be used"), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_file_is_read() {
    let options = read(FILE);
    assert_eq!(options.general.max_client_conn, 500);
    assert_eq!(options.general.shutdown_timeout, None);
    assert_eq!(options.general.admin_users, ["app"]);
    assert_eq!(options.general.auth, AuthMethod::Scram);
    assert_eq!(options.defaults.buffer_high, 128 << 10);

    let shop = server(&options, "shop", "app");
    assert_eq!(shop.host, tcp("::1", 6000));
    assert_eq!(shop.dbname.as_deref(), Some("store"));
    assert_eq!(shop.user.as_deref(), Some("owner"));
    assert_eq!(shop.password.as_ref().map(|p| p.expose()), Some("pw"));
    assert_eq!(shop.application_name.as_deref(), Some("till"));
    let parameters = [("search_path", "sales"), ("jit", "off")];
    assert_eq!(shop.parameters, parameters.map(|(n, v)| (n.to_owned(), v.to_owned())));

    let other = server(&options, "other", "app");
    assert_eq!(other.host, Host::Unix { dir: "/run/postgresql".into(), port: 5432 });
    assert_eq!(other.dbname.as_deref(), Some("other"));
    assert_eq!(other.user.as_deref(), Some("app"));
    assert_eq!(other.password.as_ref().map(|p| p.expose()), Some("secret"));
}

#[test]
fn user_beats_database_beats_defaults() {
    let options = read(FILE);
    let half_minute = Some(Duration::from_secs(30));
    let table = [
        ("shop", "app", 7, half_minute, PoolMode::Transaction),
        ("shop", "night", 2, None, PoolMode::Transaction),
        ("other", "app", 5, half_minute, PoolMode::Session),
        ("other", "night", 2, None, PoolMode::Session),
        ("other", "stranger", 5, half_minute, PoolMode::Session),
    ];
    for (database, user, size, timeout, mode) in table {
        let pool = options.pool(database, user).unwrap().options;
        assert_eq!((pool.pool_size, pool.query_timeout, pool.pool_mode), (size, timeout, mode));
    }
    let pool = options.pool("shop", "night").unwrap();
    assert_eq!((pool.max_database_connections, pool.max_user_connections), (Some(50), Some(3)));
}

#[test]
fn a_database_that_is_not_there() {
    let options = read("auth = \"trust\"\n[databases.only]\nhost = \"h\"\n");
    assert!(options.pool("only", "anybody").is_some());
    assert!(options.pool("other", "anybody").is_none());
}

#[test]
fn keys_of_their_own_count_before_the_url() {
    let text =
        "[databases.d]\nport = 1\nurl = \"postgres://u:p@h:2/d?pool_size=3\"\npool_size = 4\n";
    let options = read(&format!("auth = \"trust\"\n{text}"));
    assert_eq!(server(&options, "d", "u").host, tcp("h", 1));
    assert_eq!(options.pool("d", "u").unwrap().options.pool_size, 4);
}

#[test]
fn a_url_with_a_password_makes_its_user() {
    let options = url("postgres://app:p%40w@db.example/shop?pool_size=7&listen=[::1]:7000");
    assert_eq!(options.general.auth, AuthMethod::Scram);
    assert_eq!(options.general.listen, ["[::1]:7000".parse().unwrap()]);
    let Some(UserSecret::Plain(secret)) = options.user("app").map(|user| &user.secret) else {
        panic!("{:?}", options.users)
    };
    assert_eq!(secret.expose(), "p@w");
    for database in ["shop", "other"] {
        let server = server(&options, database, "app");
        assert_eq!(server.host, tcp("db.example", 5432));
        assert_eq!(server.dbname.as_deref(), Some(database));
        assert_eq!(options.pool(database, "app").unwrap().options.pool_size, 7);
    }
    let names: Vec<_> = options.databases.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, [Database::ANY, "shop"]);
}

#[test]
fn a_url_without_a_password_trusts() {
    let options = url("postgresql:///shop?host=/run/pg&pool_mode=session&max_client_conn=9");
    assert_eq!(options.general.auth, AuthMethod::Trust);
    assert_eq!(options.general.max_client_conn, 9);
    assert!(options.users.is_empty());
    let pool = server(&options, "shop", "ann");
    assert_eq!(pool.host, Host::Unix { dir: "/run/pg".into(), port: 5432 });
    assert_eq!((pool.user.as_deref(), pool.password), (Some("ann"), None));

    let forced = server(&url("postgres://app@h"), "d", "ann");
    assert_eq!(forced.user.as_deref(), Some("app"));
    let told = url("postgres://app:pw@h?auth=trust");
    assert_eq!(told.general.auth, AuthMethod::Trust);
}

#[test]
fn messages_for_urls() {
    let table = [
        ("postgres://", "host: is missing: set the name or address of the server, or `url`"),
        (
            "http://h",
            "expected a URL that begins with postgres://, postgresql://, mysql://, mariadb:// or sqlite:",
        ),
        ("postgres://:pw@h", "expected a user as well as a password"),
        ("postgres://h:0/d", "port: expected a whole number from 1 to 65535, found \"0\""),
        ("postgres://h?pool_sise=5", "pool_sise: no such option; did you mean pool_size?"),
        (
            "postgres://h?auth=scram",
            "users: no users, so no client could log in: \
            add [users.NAME], or set auth = \"trust\"",
        ),
    ];
    for (text, message) in table {
        assert_eq!(Options::from_url(text).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn messages_name_line_option_and_what_was_expected() {
    let table = [
        (
            "workers = 0",
            "line 1: workers: expected \"cores\" or a whole number from 1 to 1024, found 0",
        ),
        (
            "[pool]\n\npool_sise = 5",
            "line 3: pool.pool_sise: no such option; did you mean pool_size?",
        ),
        ("pool_size = 5", "line 1: pool_size: is a pool option: put it under [pool]"),
        ("frobnicate = 5", "line 1: frobnicate: no such option"),
        (
            "[pool]\nquery_timeout = 15",
            "line 2: pool.query_timeout: expected a time with its unit, such as \"500ms\", \"15s\", \
             \"10min\", \"1h\" or \"2d\", from 1ms to 30d, or \"never\", found 15",
        ),
        (
            "[pool]\nmax_waiting = -1",
            "line 2: pool.max_waiting: expected a whole number from 1 to 10000000, or \"unlimited\", \
             found -1",
        ),
        (
            "[pool]\nmax_cached_statement_bytes = \"1MB\"",
            "line 2: pool.max_cached_statement_bytes: expected a size such as \"64KiB\" or \"16MiB\" \
             from 1KiB to 64MiB, found \"1MB\"",
        ),
        ("pool = 3", "line 1: pool: expected a table: [pool]"),
        (
            "listen = []",
            "line 1: listen: must name at least one address, unless unix_socket_dir is set",
        ),
        (
            "log_level = 1.5",
            "line 1: log_level: expected \"error\", \"warn\", \"info\", \"debug\" or \"trace\", \
             found a number with a fraction",
        ),
        (
            "[users.x]\npool_size = 1",
            "line 1: users.x.password: is missing: without a password the user cannot log in",
        ),
        (
            "[users.x]\npassword = \"md5d41d8cd98f00b204e9800998ecf8427e\"",
            "line 2: users.x.password: is an MD5 hash, which auth = \"scram\" cannot use",
        ),
        ("[users.x]\npassword = \"\"", "line 2: users.x.password: is empty"),
        (
            "[users.x]\npassword = 12345",
            "line 2: users.x.password: expected a password, \"md5…\", a whole \"SCRAM-SHA-256$…\" \
             verifier or \"*\" and 40 digits, found something else",
        ),
        (
            "[databases.x]\nurl = \"postgres://u:p/w@h\"",
            "line 2: databases.x.url: expected a number as the port (write an IPv6 address in [], and \
             / in a password as %2F)",
        ),
        (
            "[databases.x]\ndbname = \"y\"",
            "line 1: databases.x.host: is missing: set the name or address of the server, or `url`",
        ),
    ];
    for (text, message) in table {
        assert_eq!(errors(text), message);
    }
}

#[test]
fn rules_between_options_hold_after_merging() {
    let table = [
        ("[pool]\nbuffer_low = \"1MiB\"", "line 2: pool.buffer_low: must be less than buffer_high"),
        (
            "[pool]\nmin_pool_size = 10\n[databases.x]\nhost = \"h\"\npool_size = 9",
            "line 3: databases.x.min_pool_size: must not exceed pool_size",
        ),
        (
            "[users.x]\npassword = \"p\"\nmin_pool_size = 21",
            "line 3: users.x.min_pool_size: must not exceed pool_size (in database \"*\")",
        ),
    ];
    for (text, message) in table {
        assert_eq!(errors(text), message);
    }
}

#[test]
fn all_errors_are_told_in_the_order_of_lines() {
    let text = "[users.x]\npassword = 1\n[pool]\npool_size = 0\n[databases.y]\nport = 0\n";
    let lines: Vec<_> =
        Options::from_toml(text).unwrap_err().0.iter().map(|error| error.line).collect();
    assert_eq!(lines, [Some(2), Some(4), Some(6)]);
    assert_eq!(
        Options::from_toml("").unwrap_err().to_string(),
        "databases: no databases: add [databases.NAME], or [databases.\"*\"] for any name\n\
         users: no users, so no client could log in: add [users.NAME], or set auth = \"trust\""
    );
    let broken = Options::from_toml("a = 1\nb = \n").unwrap_err().to_string();
    assert!(broken.starts_with("line 2: "), "{broken}");
}

#[test]
fn what_a_reload_changes() {
    let old = read(FILE);
    assert_eq!(old.differences(&old), []);
    let text = FILE
        .replace("max_client_conn = 500", "max_client_conn = 600\nworkers = 3")
        .replace("pool_size = 2\n", "")
        .replace("moon", "sun")
        .replace("owner:pw", "owner:other")
        .replace("[users.app]", "[users.new]");
    let new = read(&text);
    let changes: Vec<_> = old
        .differences(&new)
        .into_iter()
        .map(|c| format!("{}: {:?} -> {:?} {}", c.key, c.old, c.new, c.when.words()))
        .collect();
    let expected = [
        r#"workers: Some("cores") -> Some("3") on restart"#,
        r#"max_client_conn: Some("500") -> Some("600") on reload"#,
        r#"databases.shop.password: Some("***") -> Some("***") on reload, for new connections"#,
        r#"users.app: Some("present") -> None on reload"#,
        r#"users.new: None -> Some("present") on reload"#,
        r#"users.night.password: Some("***") -> Some("***") on reload, for new connections"#,
        r#"users.night.pool_size: Some("2") -> None on reload"#,
    ];
    assert_eq!(changes, expected);

    let reloaded = old.reloaded(new);
    assert_eq!(reloaded.general.workers, old.general.workers);
    assert_eq!(reloaded.general.max_client_conn, 600);
    assert!(reloaded.differences(&read(&text)).iter().all(|change| change.when == When::Restart));
}

#[test]
fn show_config() {
    let rows = read(FILE).rows();
    let row = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
    let size = row("pool_size");
    assert_eq!((size.value.as_str(), size.default, size.changeable), ("5", "20", true));
    let high = row("buffer_high");
    assert_eq!((high.value.as_str(), high.unit, high.changeable), ("128KiB", "bytes", true));
    assert_eq!(row("query_timeout").value, "30s");
    assert_eq!(row("shutdown_timeout").value, "never");
    assert!(!row("listen").changeable);
}

#[test]
fn a_file_may_be_served() {
    let options = url("sqlite:shop.db?stmt_cache_size=0&pool_size=3");
    assert_eq!(options.general.auth, AuthMethod::Trust);
    assert!(options.database("any").is_none(), "one file has one name");
    let shop = server(&options, "shop", "me");
    assert_eq!((shop.dbname.as_deref(), shop.user.as_deref()), (Some("shop"), Some("me")));
    let Host::Sqlite(file) = shop.host else { panic!("{:?}", shop.host) };
    assert_eq!((file.path.to_str(), file.stmt_cache_size), (Some("shop.db"), 0));
    let text = "[databases.a]\nbackend = \"sqlite\"\npath = \"a.db\"\nsqlite_synchronous = \"off\"";
    let options = read(&format!("auth = \"trust\"\n{text}"));
    let change = read(&format!("auth = \"trust\"\n{}", text.replace("off", "normal")));
    let changes = options.differences(&change);
    assert_eq!((changes.len(), changes[0].key.as_str()), (1, "databases.a.sqlite_synchronous"));
}

#[test]
fn who_names_no_database_gets_the_default() {
    for (text, name) in [
        ("sqlite:/srv/shop.db", "shop"),
        ("sqlite:/srv/shop.db?dbname=store", "store"),
        ("sqlite:./refrain.db", "postgres"),
        ("sqlite:pgbouncer", "postgres"),
    ] {
        let options = url(text);
        let meant = |name, user| options.meant(name, user).to_owned();
        assert_eq!(options.general.default_database.as_deref(), Some(name), "{text}");
        assert_eq!((meant("ann", "ann"), meant(name, "ann")), (name.to_owned(), name.to_owned()));
        assert_eq!(
            (meant("other", "ann"), meant("refrain", "refrain")),
            ("other".into(), "refrain".into())
        );
        assert!(options.database(name).is_some() && options.database("other").is_none(), "{text}");
    }
    let file = "auth = \"trust\"\ndefault_database = \"b\"\n[databases.a]\nbackend = \"sqlite\"\npath = \"a\"";
    assert!(errors(file).contains("default_database: no database has this name"));
    assert_eq!(read(&file.replace("= \"b\"", "= \"a\"")).meant("ann", "ann"), "a");
    assert_eq!(url("postgres://h").meant("ann", "ann"), "ann");
}

#[test]
fn a_file_is_no_server() {
    for (keys, expected) in [
        ("backend = \"sqlite\"", "path: is missing"),
        ("backend = \"sqlite\"\npath = \"\"", "path: is missing"),
        ("backend = \"sqlite\"\npath = \"a\"\nhost = \"h\"", "host: is for servers only"),
        ("path = \"a\"\nhost = \"h\"", "path: is for SQLite only"),
    ] {
        let found = errors(&format!("[databases.a]\n{keys}"));
        assert!(found.contains(expected), "{keys}: {found}");
    }
}

#[test]
fn users_may_be_elsewhere() {
    let text = "auth_user = \"asker\"\n[databases.d]\nhost = \"h\"\n[databases.e]\nhost = \"h\"\n\
                auth_user = \"other\"\nauth_query = \"q\"\nauth_dbname = \"d\"\n\
                [databases.f]\nbackend = \"sqlite\"\npath = \"f.db\"\n\
                [users.ann]\npool_size = 3\n[users.\"*\"]\npool_size = 5\n";
    let options = Options::from_toml(text).unwrap();
    let asked = |database: &str| {
        let found = options.auth_query(database)?;
        Some((found.database, found.user, found.query == "q"))
    };
    assert_eq!(asked("d"), Some(("d".to_owned(), "asker".to_owned(), false)));
    assert_eq!(asked("e"), Some(("d".to_owned(), "other".to_owned(), true)));
    // SQLite knows no users, and the console has no database of its own.
    assert_eq!((asked("f"), asked("refrain"), asked("nope")), (None, None, None));
    let size = |user: &str| options.pool("d", user).unwrap().options.pool_size;
    assert_eq!((size("ann"), size("bob"), size("*")), (3, 5, 5));
    assert!(options.user("*").is_none() && options.admits("d", "bob"));
    assert!(!options.admits("f", "bob") && options.admits("f", "ann"));
}

#[test]
fn errors_about_users_that_are_elsewhere() {
    let told = |text: &str| Options::from_toml(text).unwrap_err().to_string();
    let database = "[databases.d]\nhost = \"h\"\n";
    let missing = told(&format!("auth_user = \"a\"\nauth_dbname = \"x\"\n{database}"));
    assert_eq!(missing, "auth_dbname: no database has this name");
    let own = told(&format!("auth_user = \"a\"\n{database}auth_dbname = \"x\"\n"));
    assert_eq!(own, "databases.d.auth_dbname: no database has this name");
    let any = told(&format!("{database}[users.\"*\"]\npassword = \"x\"\n"));
    assert!(any.contains("users.*.password: is for one user"), "{any}");
    let nobody = told(&format!("{database}[users.ann]\n"));
    assert!(nobody.contains("users.ann.password: is missing"), "{nobody}");
}

#[test]
fn messages_for_rules_of_authentication() {
    let table = [
        ("auth = \"hba\"", "line 1: auth: needs the rules: set hba or hba_file"),
        (
            "hba = \"local all all trust\"\nhba_file = \"/f\"",
            "line 1: hba: cannot stand beside hba_file",
        ),
        (
            "hba = '''\nlocal all all trust\nlocal all\n'''",
            "line 1: hba: line 2: end-of-line before role specification",
        ),
        ("ident = \"a\"", "line 1: ident: line 1: missing entry at end of line"),
        ("[groups]\ng = 1", "line 2: groups.g: expected a list; each item is a string, found 1"),
        (
            "auth = \"hba\"\nhba = \"local all +g trust\"\n[groups]\nh = []",
            "line 2: hba: line 1: expected a group of [groups], found \"g\"",
        ),
    ];
    for (text, message) in table {
        assert_eq!(errors(text), message);
    }
    let found = errors("hba_file = \"/f\"");
    assert!(found.starts_with("line 1: hba_file: could not open file \"/f\": "), "{found}");
}

#[test]
fn a_rule_may_admit_users_without_an_entry() {
    let rules =
        "hba = '''\nlocal all +g peer\nhost all all all md5\n'''\n[groups]\ng = [\"ann\"]\n";
    let rest = "[users.u]\n[users.v]\npassword = \"p\"\n[databases.\"*\"]\nhost = \"h\"\n";
    let options = read(&format!("auth = \"hba\"\n{rules}{rest}"));
    for (user, admitted) in [("ann", true), ("u", true), ("v", true), ("bob", false)] {
        assert_eq!(options.admits("d", user), admitted, "{user}");
    }
    let other = read(&format!("auth = \"hba\"\n{rules}{rest}").replace("ann", "bob"));
    let changes: Vec<_> = options
        .differences(&other)
        .into_iter()
        .map(|c| format!("{}: {:?} -> {:?}", c.key, c.old, c.new))
        .collect();
    let expected = [
        r#"groups.g: Some("ann") -> Some("bob")"#,
        r#"rules of hba: Some("2 rules") -> Some("2 rules")"#,
    ];
    assert_eq!(changes, expected);
}
