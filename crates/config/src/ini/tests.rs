//! Files of PgBouncer, as PgBouncer reads them.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keys::{DATABASE, Key, Outcome, PEER, PROGRAM, USER};
use super::text::{Said, Text};
use super::values::{Within, integer};
use super::{Remark, is_ini, pairs};
use crate::choices::AuthMethod;
use crate::general::General;
use crate::host::Host;
use crate::machine::{Machine, Network};
use crate::options::Options;
use crate::pool::PoolMode;
use crate::tls::SslMode;

/// A machine with these files, which knows `localhost`.
struct Files(Vec<(&'static str, &'static str)>);

const NO_FILES: Files = Files(Vec::new());

impl Machine for Files {
    fn read(&self, path: &Path) -> io::Result<String> {
        let file = self.0.iter().find(|(name, _)| Path::new(name) == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn files_in(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn networks(&self) -> io::Result<Vec<Network>> {
        let network = |address: &str| {
            let address: IpAddr = address.parse().expect("an address");
            Network { address, mask: address }
        };
        Ok(vec![network("127.0.0.1"), network("::1")])
    }

    fn directory(&self) -> io::Result<PathBuf> {
        Ok("/here".into())
    }

    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        match name {
            "localhost" => Ok(["::1", "127.0.0.1"].map(|it| it.parse().expect("one")).into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn read_on(text: &str, machine: &Files) -> Result<(Options, Vec<Remark>), String> {
    Options::from_ini_on(text, machine, &[]).map_err(|errors| errors.to_string())
}

fn read(text: &str) -> Options {
    read_on(text, &NO_FILES).unwrap_or_else(|errors| panic!("{text}\n{errors}")).0
}

fn fails(text: &str) -> String {
    read_on(text, &NO_FILES).map(|_| ()).expect_err(text)
}

fn pairs_of(text: &str) -> Vec<(String, String)> {
    let said = Text::read(text, &NO_FILES);
    assert!(said.errors.is_empty(), "{said:?}");
    let pair = |line: super::text::Line| match line.said {
        Said::Pair(name, value) => Some((name, value)),
        Said::Section(_) => None,
    };
    said.lines.into_iter().filter_map(pair).collect()
}

#[test]
fn a_line_is_a_name_and_the_rest() {
    let cases: [(&str, &[(&str, &str)]); 9] = [
        ("a=b", &[("a", "b")]),
        ("  a \t=\t b c  \r\n", &[("a", "b c")]),
        ("a = b ; no comment\nc = # d", &[("a", "b ; no comment"), ("c", "# d")]),
        ("; a = b\n  # c = d\ne =", &[("e", "")]),
        ("[s] a = b", &[("a", "b")]),
        ("* = x\na.b-c_1 = y", &[("*", "x"), ("a.b-c_1", "y")]),
        ("\"a \"\"b\" = x", &[("a \"b", "x")]),
        ("a = b = c", &[("a", "b = c")]),
        ("\n\n\u{b}\u{c} a = b", &[("a", "b")]),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(pairs_of(text), expected, "{text:?}");
    }
    for wrong in ["a", "a b = c", "[s", "= b", "ü = b", "\"a = b", "%includes x", "%include"] {
        assert_eq!(Text::read(wrong, &NO_FILES).errors.len(), 1, "{wrong:?}");
    }
}

#[test]
fn a_connection_string_has_quotes_and_spaces() {
    let cases: [(&str, &[(&str, &str)]); 5] = [
        ("", &[]),
        ("host=a  port = 5", &[("host", "a"), ("port", "5")]),
        ("password='it''s a = b' user=u", &[("password", "it's a = b"), ("user", "u")]),
        ("password=a'b", &[("password", "a'b")]),
        ("a=\tb", &[("a", "\tb")]),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(pairs::read(text).as_ref(), Ok(&expected), "{text:?}");
    }
    for wrong in ["host", "host=", "host=a port", "=a", "password='secret", "password='' a=b"] {
        let told = pairs::read(wrong).expect_err(wrong);
        assert!(!told.contains("secret"), "{told}");
    }
}

#[test]
fn numbers_are_those_of_c() {
    let read = |text| integer(text, Within::Program);
    assert_eq!(
        ["0", "10", "010", "0x1F", "-3", "+4", "0777"].map(read),
        [Some(0), Some(10), Some(8), Some(31), Some(-3), Some(4), Some(511)]
    );
    assert_eq!(["", "1 ", "08", "x", "1.5", "--1", "+-1"].map(read), [None; 7]);
    assert_eq!(integer("010", Within::Connection), Some(10));
}

#[test]
fn an_ini_is_known_by_its_name_or_its_content() {
    let is = |name: &str, text: &str| is_ini(Path::new(name), text);
    assert!(is("x.ini", "") && is("/etc/x", "; c\n [pgbouncer]\n") && is("x", "%include a"));
    assert!(!is("x.toml", "[pgbouncer]") && !is("x", "[databases.a]\nhost = \"h\"\n"));
}

#[test]
fn the_defaults_are_pgbouncers() {
    let options = read("[pgbouncer]\n");
    let (general, pool) = (&options.general, &options.defaults);
    assert_eq!((pool.pool_mode, pool.pool_size), (PoolMode::Session, 20));
    assert_eq!((general.max_client_conn, general.listen_backlog), (100, 128));
    assert_eq!(general.auth, AuthMethod::Md5);
    assert!(general.listen.is_empty() && general.metrics_listen.is_none());
    assert_eq!(general.unix_socket_dir.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(general.client_login_timeout, Some(Duration::from_secs(60)));
    assert_eq!(pool.server_login_retry, Duration::from_secs(15));
    assert_eq!((pool.max_server_statements, pool.pool_idle_timeout), (200, None));
}

#[test]
fn addresses_are_those_that_the_machine_has() {
    let listen = |text: &str| {
        let options = read(&format!("[pgbouncer]\nlisten_port = 7000\nlisten_addr = {text}\n"));
        options.general.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listen("*"), "0.0.0.0:7000 [::]:7000");
    assert_eq!(listen("localhost"), "[::1]:7000 127.0.0.1:7000");
    assert_eq!(listen("127.0.0.1, ::1,127.0.0.1"), "127.0.0.1:7000 [::1]:7000");
    assert!(
        fails("[pgbouncer]\nlisten_addr = nowhere\n").contains("line 2: pgbouncer.listen_addr")
    );
}

#[test]
fn zero_means_what_it_means_there() {
    let options = read(
        "[databases]\nd = host=h pool_size=0 max_db_connections=0 server_lifetime=0 min_pool_size=-1\n\
         [users]\nu = query_timeout=0 pool_size=2\n\
         [pgbouncer]\ndefault_pool_size = 0\nquery_wait_timeout = 0\nserver_idle_timeout = 0.0\n\
         reserve_pool_size = 3\nreserve_pool_timeout = 0\nmax_prepared_statements = 0\n\
         query_timeout = 1.5\nmax_db_connections = 9\nmin_pool_size = 4\n",
    );
    let pool = options.pool("d", "u").expect("d").options;
    assert_eq!((pool.pool_size, pool.min_pool_size, pool.reserve_pool_size), (2, 2, 0));
    assert_eq!((pool.query_wait_timeout, pool.server_idle_timeout), (None, None));
    assert_eq!(pool.query_timeout, Some(Duration::from_millis(1500)));
    assert_eq!(pool.server_lifetime, Some(Duration::from_secs(3600)));
    assert!(!pool.prepared_statements);
    let other = options.pool("d", "v").expect("d");
    assert_eq!((other.options.pool_size, other.options.min_pool_size), (100_000, 4));
    assert_eq!(other.max_database_connections, Some(9));
}

#[test]
fn idle_servers_are_asked_as_there() {
    let asks = |text: &str| {
        let pool = read(&format!("[pgbouncer]\n{text}\n")).defaults;
        (pool.server_check_delay, pool.server_check_query)
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(asks(""), (seconds(30), None));
    assert_eq!(asks("server_check_delay = 0"), (seconds(0), None));
    let query = "server_check_delay = 5\nserver_check_query = select 1";
    assert_eq!(asks(query), (seconds(5), Some("select 1".to_owned())));
    assert_eq!(asks("server_check_query ="), (None, None), "it is not asked");
}

#[test]
fn a_section_that_begins_again_sets_its_keys_back() {
    let text = "[pgbouncer]\nauth_user = a\nmax_client_conn = 5\n[databases]\n[pgbouncer]\n";
    let options = read(text);
    assert_eq!(options.general.max_client_conn, 100);
    assert_eq!(options.general.auth_user.as_deref(), Some("a"));
}

#[test]
fn values_that_pgbouncer_takes_and_refrain_does_not_are_the_nearest() {
    for (line, key, message) in [
        ("scram_iterations = 0", "scram_iterations", "is 1 here, not 0"),
        ("scram_iterations = 2000000", "scram_iterations", "is 1000000 here, not 2000000"),
        ("tcp_socket_buffer = 512", "tcp_socket_buffer", "is 1024 here, not 512"),
        ("syslog_facility = kern", "syslog_facility", "is daemon here, not \"kern\""),
        ("syslog = 1\nsyslog_facility =", "syslog_facility", "is daemon here, not \"\""),
    ] {
        let (options, told) = read_on(&format!("[pgbouncer]\n{line}\n"), &NO_FILES).unwrap();
        let of_key = told.iter().filter(|it| it.key.starts_with("pgbouncer."));
        let told: Vec<_> = of_key.map(|it| (it.is_warning, it.to_string())).collect();
        let [(true, told)] = &told[..] else { panic!("{line}: {told:?}") };
        assert!(told.contains(key) && told.contains(message), "{told}");
        assert_eq!(options.general.syslog_facility, General::default().syslog_facility);
    }
    let text = "[pgbouncer]\nsyslog_facility = LOCAL3\ntcp_socket_buffer = 0\n";
    let options = read(text);
    assert_eq!(options.general.tcp_socket_buffer, General::default().tcp_socket_buffer);
    assert_ne!(options.general.syslog_facility, General::default().syslog_facility);
}

#[test]
fn errors_name_files_lines_and_keys() {
    let machine = Files(vec![
        ("more.ini", "[databases]\nd = host=h\n\npool_size = host=h colour=red\n"),
        ("loop.ini", "%include loop.ini"),
    ]);
    let text = "[pgbouncer]\nlisten_prot = 1\ndefault_pool_size = many\n\n%include more.ini\n\
                [pgbounce]\n[users]\nu\nv = pool_mode=none\n";
    let told = read_on(text, &machine).expect_err("many");
    let expected = [
        "line 2: pgbouncer.listen_prot: PgBouncer has no such key; did you mean listen_port?",
        "line 3: pgbouncer.default_pool_size: expected a whole number",
        "line 4: databases.pool_size.colour: PgBouncer has no such key",
        "line 6: [pgbounce]: no such section; did you mean [pgbouncer]?",
        "line 8: expected \"name = value\"",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    let Err(errors) = Options::from_ini_on(text, &machine, &[]) else { panic!("many errors") };
    let of_more: Vec<_> = errors.0.iter().filter(|error| error.file.is_some()).collect();
    assert_eq!(of_more.len(), 1);
    let told = fails("[users]\nv = pool_mode=none\n[pgbouncer]\nmax_client_conn = 0\n");
    assert!(told.contains("line 2: users.v.pool_mode: expected"), "{told}");
    assert!(told.contains("line 4: pgbouncer.max_client_conn: expected"), "{told}");
    let told = read_on("%include loop.ini\n[pgbouncer]\n", &machine).expect_err("a loop");
    assert!(told.contains("nested too deeply"), "{told}");
    assert!(fails("a = b\n[databases]\n").contains("the section [pgbouncer] is missing"));
    assert!(fails("[databases]\npgbouncer = host=h\n[pgbouncer]\n").contains("admin console"));
    assert!(fails("[databases]\nd = host=a,,b\n[pgbouncer]\n").contains("a comma with no name"));
    assert!(fails("[databases]\nd =\n[pgbouncer]\nunix_socket_dir =\n").contains("is missing"));
}

#[test]
fn servers_are_reached_as_pgbouncer_reaches_them() {
    let options = read(
        "[databases]\nlocal =\nfar = host=db.example port=6000 dbname=x user=u password='p''w' \
         client_encoding=UTF8 timezone=UTC application_name=till\n* = host=any\n\
         [pgbouncer]\nunix_socket_dir = run\nserver_tls_sslmode = require\n\
         server_tls_ca_file = /own.crt\nautodb_idle_timeout = 60\n",
    );
    let local = options.pool("local", "me").expect("local").server;
    assert_eq!(local.host, Host::Unix { dir: "/here/run".into(), port: 5432 });
    let far = options.pool("far", "me").expect("far").server;
    let Host::Tcp { host, port, tls } = &far.host else { panic!("{far:?}") };
    assert_eq!((host.as_str(), *port, tls.mode), ("db.example", 6000, SslMode::Require));
    assert!(tls.authorities.is_none(), "require verifies nothing");
    assert_eq!(far.password.map(|it| it.expose().to_owned()).as_deref(), Some("p'w"));
    assert_eq!(far.parameters.len(), 2);
    let any = options.pool("anything", "me").expect("any").options;
    assert_eq!(any.pool_idle_timeout, Some(Duration::from_secs(60)));
    let mode = |words: &str| {
        let text = format!("[databases]\nd = host=h\n[pgbouncer]\n{words}");
        match &read(&text).databases[0].server.host {
            Host::Tcp { tls, .. } => (tls.mode, tls.authorities.is_some()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(mode("server_tls_sslmode = allow\n"), (SslMode::Prefer, false));
    let verify = "server_tls_sslmode = verify-ca\nserver_tls_ca_file = ca.crt\n";
    assert_eq!(mode(verify), (SslMode::VerifyCa, true));
    assert_eq!(mode("server_tls_sslmode = Verify-Full\n"), (SslMode::VerifyFull, true));
}

#[test]
fn ways_to_log_in() {
    let auth = |words: &str| read(&format!("[pgbouncer]\nauth_type = {words}\n")).general;
    assert_eq!(auth("SCRAM-SHA-256").auth, AuthMethod::Scram);
    let plain = auth("plain");
    assert_eq!((plain.auth, plain.insecure_password), (AuthMethod::Password, true));
    let any = auth("any");
    assert_eq!((any.auth, any.insecure_trust, any.admin_users.len()), (AuthMethod::Trust, true, 0));
    // The console is closed where nobody is named.
    assert_eq!(auth("trust").admin_users, [""]);
    let cert = "cert\nclient_tls_sslmode = verify-full\nclient_tls_ca_file = /c\n\
                client_tls_cert_file = /c\nclient_tls_key_file = /k";
    assert_eq!(auth(cert).hba.as_deref(), Some("hostssl all all all cert"));
    for refused in ["cert", "pam", "ldap", "kerberos"] {
        assert!(fails(&format!("[pgbouncer]\nauth_type = {refused}\n")).contains("auth_type"));
    }
    // The file counts with `hba` alone.
    read("[pgbouncer]\nauth_hba_file = missing\n");
    assert!(fails("[pgbouncer]\nauth_type = hba\nauth_hba_file = missing\n").contains("missing"));
}

/// A file with this line in one of its sections.
fn with(section: &str, key: &Key, value: &str) -> String {
    let (of_database, of_user, of_peer, of_program) = match section {
        "databases" => {
            (format!("{}={value}", key.name), String::new(), String::new(), String::new())
        }
        "users" => (String::new(), format!("{}={value}", key.name), String::new(), String::new()),
        "peers" => (String::new(), String::new(), format!("{}={value}", key.name), String::new()),
        _ => (String::new(), String::new(), String::new(), format!("{} = {value}", key.name)),
    };
    // What some keys need beside them to mean anything.
    let host = match key.name {
        "host" if section == "databases" => "",
        "load_balance_hosts" => "host=h,i",
        _ => "host=h",
    };
    let peer = if section == "peers" && key.name == "host" { "" } else { "host=p" };
    let user = match key.name {
        "user" | "pool_mode" => "",
        _ => "user=forced",
    };
    let beside = match key.name {
        "auth_hba_file" => "auth_type = hba\n",
        "auth_ident_file" => "auth_type = hba\nauth_hba_file = hba.conf\n",
        _ if key.name.starts_with("client_tls") && key.name != "client_tls_sslmode" => {
            "client_tls_sslmode = allow\n"
        }
        "server_tls_ca_file" => "server_tls_sslmode = verify-full\n",
        "server_tls_cert_file" => "server_tls_key_file = /tls/k\n",
        "server_tls_key_file" => "server_tls_cert_file = /tls/c\n",
        "listen_port" => "listen_addr = 127.0.0.1\n",
        _ => "",
    };
    let files = match key.name {
        "client_tls_cert_file" => "client_tls_key_file = /tls/k\n",
        "client_tls_key_file" => "client_tls_cert_file = /tls/c\n",
        _ => "client_tls_key_file = /tls/k\nclient_tls_cert_file = /tls/c\n",
    };
    format!(
        "[databases]\nd = {host} {user} {of_database}\nunix =\n* = host=h\n[users]\nu = {of_user}\n\
         [peers]\n1 = {peer} {of_peer}\n[pgbouncer]\nauth_file = users.txt\n{beside}{files}{of_program}\n"
    )
}

fn all_keys() -> impl Iterator<Item = (&'static str, &'static Key)> {
    let sections: [(&str, &'static [Key]); 4] =
        [("pgbouncer", PROGRAM), ("databases", DATABASE), ("users", USER), ("peers", PEER)];
    sections.into_iter().flat_map(|(section, keys)| keys.iter().map(move |key| (section, key)))
}

fn machine() -> Files {
    let hba = "host all all all md5\n";
    Files(vec![("/here/hba.conf", hba), ("/here/ident.conf", "m a b\n")])
}

#[test]
fn every_key_does_what_its_row_says() {
    let machine = machine();
    for (section, key) in all_keys() {
        let name = format!("{section}.{}", key.name);
        let text = with(section, key, key.sample);
        let without = text.replace(&format!("{} = {}\n", key.name, key.sample), "");
        let without = without.replace(&format!("{}={}", key.name, key.sample), "");
        let read = read_on(&text, &machine);
        let (options, remarks) = read.unwrap_or_else(|told| panic!("{name}: {told}"));
        let told: Vec<_> = remarks.iter().filter(|remark| remark.key.contains(key.name)).collect();
        match key.outcome {
            Outcome::Option(..) | Outcome::Acts(_) => {
                let before = read_on(&without, &machine).map(|(options, _)| options);
                let hostless = name == "databases.host";
                assert!(hostless || before.as_ref() != Ok(&options), "{name} changes nothing");
            }
            Outcome::Needless(_) => assert!(!told[0].is_warning, "{name}"),
        }
        // The default says nothing, and changes nothing.
        if let Some(default) = key.default.filter(|default| !default.is_empty()) {
            let (same, remarks) = read_on(&with(section, key, default), &machine).expect(&name);
            assert!(remarks.iter().all(|remark| !remark.key.ends_with(key.name)), "{name}");
            assert_eq!(Ok(same), read_on(&without, &machine).map(|(options, _)| options), "{name}");
        }
    }
}

#[test]
fn a_converted_file_does_the_same() {
    let machine = machine();
    let mut count = 0;
    for (section, key) in all_keys() {
        let text = with(section, key, key.sample);
        let Ok((options, _)) = read_on(&text, &machine) else { continue };
        let toml = Options::convert_ini(&text, &machine).expect("it was read");
        let again = Options::from_toml_on(&toml, &machine, &[]);
        let again =
            again.unwrap_or_else(|errors| panic!("{section}.{}: {errors}\n{toml}", key.name));
        assert_eq!(again, options, "{section}.{}\n{toml}", key.name);
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn comments_are_kept() {
    let text = "; The shop.\n[databases]\n;; its server\nshop = host=h password='a\"b\\c' user=u\n\
                [pgbouncer]\n# where\nauth_file = users.txt\npkt_buf = 1 \n# the end\n";
    let toml = Options::convert_ini(text, &NO_FILES).expect("it is right");
    for line in ["# The shop.", "# its server", "[databases.shop]", "# where", "# the end"] {
        assert!(toml.lines().any(|other| other == line), "{line} is not in\n{toml}");
    }
    assert!(toml.contains("auth_file = \"/here/users.txt\""), "{toml}");
    assert!(toml.contains("password = \"a\\\"b\\\\c\""), "{toml}");
    assert!(toml.starts_with("# line 8: pgbouncer.pkt_buf: has nothing to do here"), "{toml}");
}
