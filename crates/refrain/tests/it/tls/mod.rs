//! TLS, to clients and to servers, with libpq's `sslmode` on both sides.

mod cuts;
mod records;

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use xtask::certificates::{Authority, Signed};
use xtask::channel::read_some;
use xtask::postgres::{AUTH_DATABASE, Cluster, PASSWORD};

use crate::session::{LIMIT, Session, cancel_request, query, startup};
use crate::world::{Config, Proxy, Version, cluster, eventually, psql};

/// The files of all tests here: an authority, another one, and what they have signed.
pub(crate) struct Files {
    folder: PathBuf,
    pub(crate) authority: Authority,
}

impl Files {
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Returns the path of a file as a TOML text.
    pub(crate) fn toml(&self, name: &str) -> String {
        format!("{:?}", self.path(name))
    }

    pub(crate) fn write(&self, name: &str, signed: &Signed) {
        signed.write(&self.folder, name).unwrap();
    }
}

fn new_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("refrain-it-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = new_folder("tls");
        let authority = Authority::new("root").unwrap();
        let stranger = Authority::new("stranger").unwrap();
        let files = Files { folder, authority };
        fs::write(files.path("root.crt"), files.authority.certificate()).unwrap();
        fs::write(files.path("stranger.crt"), stranger.certificate()).unwrap();
        let own = ["localhost", "127.0.0.1"];
        files.write("server", &files.authority.sign("server", &own).unwrap());
        files.write("elsewhere", &files.authority.sign("elsewhere", &["elsewhere"]).unwrap());
        files.write("expired", &files.authority.sign_expired("server", &own).unwrap());
        files.write("client", &files.authority.sign("postgres", &[]).unwrap());
        files.write("unknown", &stranger.sign("postgres", &[]).unwrap());
        files
    })
}

/// Returns a server that lets nobody in without TLS: `scram_user` by password, and `postgres` to
/// the database `postgres` by certificate.
fn encrypting(version: Version) -> &'static Cluster {
    static V15: OnceLock<Cluster> = OnceLock::new();
    static V18: OnceLock<Cluster> = OnceLock::new();
    let place = if version == Version::V15 { &V15 } else { &V18 };
    place.get_or_init(|| {
        let hba = "hostssl all scram_user all scram-sha-256\n\
                   hostssl postgres postgres all cert\n\
                   hostssl all postgres all trust\n";
        Cluster::start_encrypting(version, &files().authority, hba, "").unwrap()
    })
}

/// Configures Refrain over a server in the clear, with this `client_tls_sslmode`.
pub(crate) fn to_clients(mode: &str, certificate: &str) -> Config {
    Config::over(cluster(Version::V15))
        .general("client_tls_sslmode", &format!("{mode:?}"))
        .general("client_tls_cert_file", &files().toml(&format!("{certificate}.crt")))
        .general("client_tls_key_file", &files().toml(&format!("{certificate}.key")))
}

/// Configures Refrain between clients and a server that encrypt, and lets clients in without.
pub(crate) fn to_both(cluster: &Cluster) -> Config {
    Config::over(cluster)
        .general("client_tls_sslmode", "\"prefer\"")
        .general("client_tls_cert_file", &files().toml("server.crt"))
        .general("client_tls_key_file", &files().toml("server.key"))
        .server("sslmode", "\"verify-full\"")
        .server("sslrootcert", &files().toml("root.crt"))
}

/// Runs `select 'in'` as `postgres` with these connection options.
fn connect(proxy: &Proxy, options: &str) -> Result<String, String> {
    let url = format!("postgres://postgres@{}/postgres?{options}", proxy.addr());
    psql(&url, "", "select 'in'")
}

pub(crate) fn is_in(proxy: &Proxy, options: &str) {
    assert_eq!(connect(proxy, options).as_deref(), Ok("in"), "{options}");
}

#[track_caller]
fn is_refused(proxy: &Proxy, options: &str, expected: &str) {
    let why = connect(proxy, options).unwrap_err();
    assert!(why.contains(expected), "{options}: {why}");
}

/// Waits until the log has these words.
pub(crate) fn is_logged(proxy: &Proxy, words: &str) {
    eventually(&format!("{words:?} is logged"), || proxy.log().contains(words));
}

#[test]
fn every_sslmode_of_a_client_meets_every_one_of_refrain() {
    let root = format!("sslrootcert={}", files().path("root.crt"));
    for ours in ["disable", "allow", "prefer", "require"] {
        let proxy = to_clients(ours, "server").start();
        for theirs in ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] {
            let options = format!("sslmode={theirs}&{root}");
            match (ours, theirs) {
                ("disable", "require" | "verify-ca" | "verify-full") => {
                    is_refused(&proxy, &options, "server does not support SSL");
                }
                ("require", "disable") => {
                    is_refused(&proxy, &options, "no pg_hba.conf entry for host \"127.0.0.1\"");
                }
                _ => is_in(&proxy, &options),
            }
        }
    }
}

#[test]
fn certificates_of_refrain_that_a_client_refuses() {
    let with = |root: &str| format!("sslmode=verify-full&sslrootcert={}", files().path(root));
    for (certificate, root, told, logged) in [
        ("elsewhere", "root.crt", "does not match host name", ""),
        ("expired", "root.crt", "certificate verify failed", "CertificateExpired"),
        ("server", "stranger.crt", "certificate verify failed", "UnknownCA"),
    ] {
        let proxy = to_clients("prefer", certificate).start();
        is_refused(&proxy, &with(root), told);
        if !logged.is_empty() {
            is_logged(&proxy, logged);
            is_logged(&proxy, "could not accept SSL connection");
            is_logged(&proxy, "127.0.0.1:");
        }
    }
}

#[test]
fn a_client_without_a_trusted_certificate_is_refused_where_one_is_needed() {
    let root = files().toml("root.crt");
    let show = |name: &str| {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        let (certificate, key) = (files().path(&certificate), files().path(&key));
        format!("sslmode=require&sslcert={certificate}&sslkey={key}")
    };
    for mode in ["verify-ca", "verify-full"] {
        let proxy = to_clients(mode, "server").general("client_tls_ca_file", &root).start();
        is_in(&proxy, &show("client"));
        is_refused(&proxy, "sslmode=require", "certificate required");
        is_refused(&proxy, &show("unknown"), "unknown ca");
        is_refused(&proxy, "sslmode=disable", "no pg_hba.conf entry");
        is_logged(&proxy, "peer sent no certificates");
    }
    // Below, a certificate need not be shown, and is checked if it is.
    let proxy = to_clients("require", "server").general("client_tls_ca_file", &root).start();
    is_in(&proxy, "sslmode=require");
    is_refused(&proxy, &show("unknown"), "unknown ca");
}

#[test]
fn a_login_is_bound_to_the_certificate() {
    let users = format!("[users.plain_user]\npassword = \"{PASSWORD}\"\n");
    let proxy = to_clients("prefer", "server").general("auth", "\"scram\"").more(&users).start();
    for (options, is_bound) in [
        ("sslmode=require&channel_binding=require", true),
        ("sslmode=require&channel_binding=disable", true),
        ("sslmode=disable&channel_binding=require", false),
    ] {
        let url = format!("postgres://plain_user@{}/postgres?{options}", proxy.addr());
        let told = psql(&url, PASSWORD, "select 'in'");
        assert_eq!(told.as_deref() == Ok("in"), is_bound, "{options}: {told:?}");
    }
}

/// Configures Refrain over a server that encrypts.
fn to_server(version: Version, mode: &str) -> Config {
    let config = Config::over(encrypting(version)).server("sslmode", &format!("{mode:?}"));
    match mode {
        "verify-ca" | "verify-full" => config.server("sslrootcert", &files().toml("root.crt")),
        _ => config,
    }
}

/// Asks the server whether the connection to it is encrypted.
fn is_encrypted(proxy: &Proxy, user: &str, database: &str) -> Result<String, String> {
    let url = format!("postgres://{user}@{}/{database}?sslmode=disable", proxy.addr());
    psql(&url, "", "select ssl from pg_stat_ssl where pid = pg_backend_pid()")
}

#[test]
fn every_sslmode_towards_a_server_that_encrypts() {
    for version in [Version::V15, Version::V18Tls] {
        for mode in ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] {
            let config = to_server(version, mode).server("password", &format!("{PASSWORD:?}"));
            let proxy = config.server("user", "\"scram_user\"").start();
            let told = is_encrypted(&proxy, "anybody", AUTH_DATABASE);
            match mode {
                // The server has no line for this user in the clear.
                "disable" => assert!(told.unwrap_err().contains("no pg_hba.conf entry for host")),
                _ => assert_eq!(told.as_deref(), Ok("t"), "{mode}"),
            }
        }
    }
}

#[test]
fn a_server_that_must_be_checked_is_refused_and_logged() {
    let config = to_server(Version::V15, "verify-full");
    let stranger = files().toml("stranger.crt");
    let proxy = config.server("sslrootcert", &stranger).server("user", "\"postgres\"").start();
    assert!(is_encrypted(&proxy, "postgres", AUTH_DATABASE).unwrap_err().contains("connect"));
    is_logged(&proxy, "UnknownIssuer");
    // That server does not encrypt.
    let proxy = Config::over(cluster(Version::V15)).server("sslmode", "\"require\"").start();
    assert!(is_encrypted(&proxy, "postgres", "postgres").unwrap_err().contains("connect"));
    is_logged(&proxy, "server does not support SSL, but SSL was required");
}

#[test]
fn certificates_without_extensions_are_taken_from_servers_and_clients() {
    let hba = "hostssl all postgres all cert\nhostssl all all all trust\n";
    let folder = new_folder("tls-old");
    let authority = &files().authority;
    for (name, common_name) in [("server", "localhost"), ("client", "postgres")] {
        authority.sign_old(common_name).unwrap().write(&folder, name).unwrap();
    }
    let path = |name: &str| format!("{:?}", folder.join(name).display().to_string());
    let cluster = Cluster::start_showing(
        Version::V15,
        (authority, &authority.sign_old("localhost").unwrap()),
        hba,
    );
    let cluster = cluster.unwrap();
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let config = Config::over(&cluster).server("host", "\"localhost\"");
        let config = config.server("sslmode", &format!("{mode:?}"));
        let config =
            config.server("sslcert", &path("client.crt")).server("sslkey", &path("client.key"));
        let config = match mode.starts_with("verify") {
            true => config.server("sslrootcert", &files().toml("root.crt")),
            false => config,
        };
        let config = config
            .general("client_tls_sslmode", "\"verify-ca\"")
            .general("client_tls_ca_file", &files().toml("root.crt"))
            .general("client_tls_cert_file", &path("server.crt"))
            .general("client_tls_key_file", &path("server.key"));
        let proxy = config.start();
        let options = format!(
            "sslmode=verify-full&sslrootcert={}&sslcert={}&sslkey={}",
            files().path("root.crt"),
            folder.join("client.crt").display(),
            folder.join("client.key").display()
        );
        let port = proxy.addr().port();
        let url = format!("postgres://postgres@localhost:{port}/postgres?{options}");
        let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
        assert_eq!(psql(&url, "", sql).as_deref(), Ok("t"), "{mode}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_server_gets_a_certificate_if_it_asks_for_one() {
    for version in [Version::V15, Version::V18Tls] {
        let config = to_server(version, "verify-full").server("user", "\"postgres\"");
        let config = config.server("sslcert", &files().toml("client.crt"));
        let proxy = config.server("sslkey", &files().toml("client.key")).start();
        let told = is_encrypted(&proxy, "postgres", "postgres");
        assert_eq!(told.as_deref(), Ok("t"));
    }
}

#[test]
fn logins_at_servers_are_bound_to_their_certificates() {
    for version in [Version::V15, Version::V18Tls] {
        let config = to_server(version, "require").server("channel_binding", "\"require\"");
        let config = config.server("password", &format!("{PASSWORD:?}"));
        let proxy = config.server("user", "\"scram_user\"").start();
        assert_eq!(is_encrypted(&proxy, "anybody", AUTH_DATABASE).as_deref(), Ok("t"));
    }
    // That server does not encrypt.
    let config = Config::over(cluster(Version::V15)).server("channel_binding", "\"require\"");
    let proxy = config.server("user", "\"scram_user\"").server("password", "\"x\"").start();
    let url = format!("postgres://anybody@{}/{AUTH_DATABASE}", proxy.addr());
    assert!(psql(&url, "", "select 1").is_err());
    is_logged(&proxy, "channel binding is required");
}

#[test]
fn large_results_and_large_queries_pass_through_both_sides() {
    let config = to_server(Version::V18Tls, "require").general("client_tls_sslmode", "\"require\"");
    let config = config.general("client_tls_cert_file", &files().toml("server.crt"));
    let config = config.general("client_tls_key_file", &files().toml("server.key"));
    let proxy = config.server("user", "\"postgres\"").start();
    let url = format!("postgres://postgres@{}/{AUTH_DATABASE}?sslmode=require", proxy.addr());
    let sql = "select length(string_agg(repeat(md5(i::text), 100), '')), \
               repeat('x', 20000000) from generate_series(1, 1000) i";
    let told = psql(&url, "", sql).unwrap();
    assert_eq!(told.len(), "3200000|".len() + 20_000_000);
    let long = format!("select length('{}')", "y".repeat(100_000));
    assert_eq!(psql(&url, "", &long).as_deref(), Ok("100000"));
}

#[test]
fn certificates_are_read_again_at_a_reload_and_sessions_go_on() {
    let folder = new_folder("reload");
    let config = |name: &str| {
        let file = |end: &str| format!("{:?}", folder.join(format!("{name}.{end}")));
        Config::over(cluster(Version::V15))
            .general("client_tls_sslmode", "\"prefer\"")
            .general("client_tls_cert_file", &file("crt"))
            .general("client_tls_key_file", &file("key"))
    };
    let own = ["127.0.0.1"];
    files().authority.sign("one", &own).unwrap().write(&folder, "own").unwrap();
    let proxy = config("own").start();
    let root = format!("sslmode=verify-full&sslrootcert={}", files().path("root.crt"));
    is_in(&proxy, &root);

    // The same names, and other files.
    let other = Authority::new("another").unwrap();
    other.sign("two", &own).unwrap().write(&folder, "own").unwrap();
    fs::write(folder.join("other.crt"), other.certificate()).unwrap();
    is_in(&proxy, &root);
    proxy.order("reload");
    is_refused(&proxy, &root, "certificate verify failed");
    let other = format!("sslmode=verify-full&sslrootcert={}/other.crt", folder.display());
    is_in(&proxy, &other);

    // A file of no use changes nothing.
    fs::write(folder.join("own.key"), "nonsense").unwrap();
    let mut console = proxy.console();
    let reply = console.query("reload");
    assert!(reply.error().is_some());
    is_logged(&proxy, "own.key: the file has no private key");
    is_in(&proxy, &other);
}

#[test]
fn a_revoked_certificate_of_a_client_is_refused_from_a_reload_on() {
    let folder = new_folder("revoked");
    let authority = Authority::new("ours").unwrap();
    fs::write(folder.join("root.crt"), authority.certificate()).unwrap();
    let signed: Vec<Signed> = (0..2).map(|_| authority.sign("postgres", &[]).unwrap()).collect();
    signed[0].write(&folder, "one").unwrap();
    signed[1].write(&folder, "two").unwrap();
    let list = |revoked: &[&Signed]| {
        fs::write(folder.join("root.crl"), authority.revoke(revoked, 2100).unwrap()).unwrap();
    };
    list(&[]);
    let file = |name: &str| format!("{:?}", folder.join(name));
    let config = to_clients("prefer", "server").general("client_tls_ca_file", &file("root.crt"));
    let proxy = config.general("client_tls_crl_file", &file("root.crl")).start();
    let show = |name: &str| {
        let path = folder.join(name);
        format!("sslmode=require&sslcert={0}.crt&sslkey={0}.key", path.display())
    };
    is_in(&proxy, &show("one"));
    list(&[&signed[0]]);
    is_in(&proxy, &show("one"));
    proxy.order("reload");
    is_refused(&proxy, &show("one"), "certificate revoked");
    eventually("it is logged, with the address", || {
        let log = proxy.log();
        let mut lines = log.lines().filter(|line| line.contains("could not accept SSL connection"));
        lines.any(|line| line.contains("Revoked") && line.contains("127.0.0.1:"))
    });
    is_in(&proxy, &show("two"));
    // PostgreSQL refuses it in the same words.
    let own_list = [("ssl_crl_file", folder.join("root.crl").display().to_string())];
    let settings = own_list.each_ref().map(|(name, value)| (*name, value.as_str()));
    let hba = "hostssl all all all trust\n";
    for version in [Version::V15, Version::V18Tls] {
        let cluster =
            Cluster::start_encrypting_with(version, &authority, hba, "", &settings).unwrap();
        let url = cluster.url("postgres");
        let directly = |name: &str| psql(&format!("{url}?{}", show(name)), "", "select 'in'");
        assert_eq!(directly("two").as_deref(), Ok("in"));
        let cause = |why: &str| why.rsplit_once("failed: ").unwrap_or_default().1.to_owned();
        let (direct, ours) = (directly("one").unwrap_err(), connect(&proxy, &show("one")));
        assert_eq!(cause(&direct), cause(&ours.unwrap_err()), "{direct}");
    }
    // A list of no use is named, and changes nothing.
    fs::write(folder.join("root.crl"), "nonsense").unwrap();
    assert!(proxy.console().query("reload").error().is_some());
    is_logged(&proxy, "root.crl: the file has no list of revoked certificates");
    is_refused(&proxy, &show("one"), "certificate revoked");
}

#[test]
fn a_revoked_certificate_of_a_server_is_refused_from_a_reload_on() {
    let list = new_folder("revoked-server").join("root.crl");
    for version in [Version::V15, Version::V18Tls] {
        let config = to_server(version, "verify-full").server("sslcrl", &format!("{list:?}"));
        fs::write(&list, files().authority.revoke(&[], 2100).unwrap()).unwrap();
        let proxy = config.server("user", "\"postgres\"").start();
        let ask = || is_encrypted(&proxy, "postgres", AUTH_DATABASE);
        assert_eq!(ask().as_deref(), Ok("t"));
        fs::write(&list, files().authority.revoke_all().unwrap()).unwrap();
        proxy.order("reload");
        // The connection that is there goes on.
        assert_eq!(ask().as_deref(), Ok("t"));
        proxy.order("reconnect");
        assert!(ask().unwrap_err().contains("connect"));
        is_logged(&proxy, "Revoked");
    }
}

/// Runs `refrain advise` with these variables of the environment. Returns what it says, and whether
/// it succeeds.
fn advise(target: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_refrain"))
        .args(["advise", target])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = [run.stdout, run.stderr].concat();
    (run.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn advise_encrypts_as_libpq_does() {
    let (root, stranger) = (files().path("root.crt"), files().path("stranger.crt"));
    let fine = "No read that could be kept";
    let no_tls = "server does not support SSL, but SSL was required";
    let no_line = "no pg_hba.conf entry for host \"127.0.0.1\"";
    let (verify, doubt) = (format!("verify-full&sslrootcert={root}"), "verify-ca&sslrootcert=");
    for (ours, query, expected) in [
        ("require", &*verify, fine),
        ("require", &format!("{verify}&sslnegotiation=direct"), fine),
        ("require", &format!("{doubt}{stranger}"), "UnknownIssuer"),
        ("require", "prefer", fine),
        // By a second connection.
        ("require", "allow", fine),
        ("require", "disable", no_line),
        ("require", "verify-ca", "sslrootcert: is missing"),
        ("require", "prefer&sslnegotiation=direct", "weak sslmode"),
        ("disable", "prefer", fine),
        ("disable", "allow", fine),
        ("disable", "disable", fine),
        ("disable", "require", no_tls),
    ] {
        let proxy = to_clients(ours, "server").start();
        let target = format!("postgres://postgres@{}?sslmode={query}", proxy.addr());
        let (_, told) = advise(&target, &[]);
        assert!(told.contains(expected), "{ours} {query}: {told}");
    }
    // By the environment, over which the URL takes precedence.
    let proxy = to_clients("require", "server").start();
    let address = proxy.addr().to_string();
    for (target, variables, expected) in [
        (address.clone(), [("PGSSLMODE", "disable"), ("PGSSLROOTCERT", "")], no_line),
        (address.clone(), [("PGSSLMODE", ""), ("PGSSLROOTCERT", &*root)], fine),
        (address.clone(), [("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", &root)], fine),
        (
            address.clone(),
            [("PGSSLMODE", "require"), ("PGSSLROOTCERT", &stranger)],
            "UnknownIssuer",
        ),
        (
            format!("postgres://{address}?sslmode=require"),
            [("PGSSLMODE", "disable"), ("PGSSLROOTCERT", "")],
            fine,
        ),
    ] {
        let (_, told) = advise(&target, &variables);
        assert!(told.contains(expected), "{target} {variables:?}: {told}");
    }
}

#[test]
fn a_login_of_advise_is_bound_to_the_certificate() {
    let users = format!("[users.plain_user]\npassword = \"{PASSWORD}\"\n");
    let config = |mode| {
        let config = to_clients(mode, "server").general("auth", "\"scram\"").more(&users);
        config.general("admin_users", "[\"plain_user\"]").start()
    };
    let (with, without) = (config("prefer"), config("disable"));
    let target = |proxy: &Proxy| format!("postgres://plain_user@{}", proxy.addr());
    let bound = [("PGCHANNELBINDING", "require"), ("PGPASSWORD", PASSWORD)];
    let (is_fine, told) = advise(&target(&with), &bound);
    assert!(is_fine, "{told}");
    let (is_fine, told) = advise(&target(&without), &bound);
    assert!(!is_fine && told.contains("channel binding is required"), "{told}");
    // Of a URL that is of no use, nothing is repeated.
    let (is_fine, told) = advise("postgres://plain_user:secret@127.0.0.1:x", &[]);
    assert!(!is_fine && !told.contains("secret"), "{told}");
}

#[test]
fn servers_whose_authority_the_system_trusts() {
    for version in [Version::V15, Version::V18Tls] {
        let config = || {
            let config = Config::over(encrypting(version)).server("sslrootcert", "\"system\"");
            config.server("user", "\"postgres\"")
        };
        let root = files().path("root.crt");
        let proxy = config().start_with_variable("SSL_CERT_FILE", &root);
        assert_eq!(is_encrypted(&proxy, "postgres", AUTH_DATABASE).as_deref(), Ok("t"));
        let stranger = files().path("stranger.crt");
        let proxy = config().start_with_variable("SSL_CERT_FILE", &stranger);
        assert!(is_encrypted(&proxy, "postgres", AUTH_DATABASE).unwrap_err().contains("connect"));
        is_logged(&proxy, "UnknownIssuer");
    }
}

#[test]
fn servers_that_are_not_asked_before_the_handshake() {
    let direct = |version| {
        let config = to_server(version, "verify-full").server("sslnegotiation", "\"direct\"");
        config.server("user", "\"postgres\"").start()
    };
    let proxy = direct(Version::V18Tls);
    assert_eq!(is_encrypted(&proxy, "postgres", AUTH_DATABASE).as_deref(), Ok("t"));
    passes_a_cancel_request_on(&proxy, "select pg_sleep(601)");
    // PostgreSQL 15 knows no handshake without a request.
    let proxy = direct(Version::V15);
    assert!(is_encrypted(&proxy, "postgres", AUTH_DATABASE).unwrap_err().contains("connect"));
}

#[test]
fn a_cancel_request_goes_to_a_server_that_must_encrypt() {
    let config = to_server(Version::V18Tls, "require").server("user", "\"postgres\"");
    passes_a_cancel_request_on(&config.start(), "select pg_sleep(600)");
}

/// Cancels this query, which sleeps on PostgreSQL 18.
fn passes_a_cancel_request_on(proxy: &Proxy, text: &str) {
    let mut session = proxy.open(AUTH_DATABASE);
    session.send(&[query(text)]);
    let direct = format!("{}?sslmode=require", encrypting(Version::V18Tls).url(AUTH_DATABASE));
    let sleeping = format!(
        "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and query = '{text}'"
    );
    eventually("it sleeps", || psql(&direct, "", &sleeping).as_deref() == Ok("1"));
    Session::raw(proxy.addr(), &cancel_request(&session.key)).rest();
    assert_eq!(session.ready().words(), "T E(57014) Z(I)");
}

/// Returns a client's side of TLS that offers these protocols.
pub(crate) fn new_client(protocols: &[&str]) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(files().path("root.crt")).unwrap() {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = "localhost".try_into().unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

/// Begins TLS without a request, as libpq 17 does with `sslnegotiation=direct`, and offers these
/// protocols. Returns the first letter that Refrain sends to a startup packet.
fn begins_at_once(proxy: &Proxy, protocols: &[&str]) -> std::io::Result<u8> {
    let client = new_client(protocols);
    let mut stream = StreamOwned::new(client, TcpStream::connect(proxy.addr()).unwrap());
    let startup = startup(196_608, &[("user", "postgres"), ("database", "postgres")]);
    stream.write_all(&startup)?;
    let mut first = [0];
    stream.read_exact(&mut first)?;
    Ok(first[0])
}

#[test]
fn a_client_may_begin_without_a_request_if_it_names_the_protocol() {
    for mode in ["allow", "require"] {
        let proxy = to_clients(mode, "server").start();
        assert_eq!(begins_at_once(&proxy, &["postgresql"]).unwrap(), b'R');
        assert!(begins_at_once(&proxy, &[]).is_err());
        is_logged(&proxy, "received direct SSL connection request without ALPN");
        assert!(begins_at_once(&proxy, &["http/1.1"]).is_err());
    }
    let proxy = to_clients("disable", "server").start();
    assert!(begins_at_once(&proxy, &["postgresql"]).is_err());
}

/// Configures two workers, which give a client half a second to log in.
fn impatient() -> Config {
    let config = to_clients("prefer", "server").general("client_login_timeout", "\"500ms\"");
    config.general("workers", "2")
}

/// Connects, asks for TLS unless the client begins `at_once`, and sends these bytes.
fn begins(proxy: &Proxy, at_once: bool, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.addr()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    if !at_once {
        stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"S");
    }
    stream.write_all(first).unwrap();
    stream
}

/// Returns the first bytes that a client sends in a handshake.
pub(crate) fn hello() -> Vec<u8> {
    let mut hello = Vec::new();
    new_client(&["postgresql"]).write_tls(&mut hello).unwrap();
    hello
}

/// Waits until no client logs in, the console's is the only one, and no server is connected.
pub(crate) fn nothing_is_left(proxy: &Proxy, descriptors: usize) {
    eventually("all are closed", || proxy.descriptors() <= descriptors);
    eventually("nobody is left", || {
        let rows = proxy.show("lists");
        let items = |list| &rows.iter().find(|row| row["list"] == list).unwrap()["items"];
        [items("login_clients"), items("used_clients"), items("used_servers")] == ["0", "1", "0"]
    });
}

/// Number of handshakes of garbage; `REFRAIN_HANDSHAKES` sets another one.
fn handshakes() -> usize {
    std::env::var("REFRAIN_HANDSHAKES").ok().and_then(|it| it.parse().ok()).unwrap_or(360)
}

/// Reads what is left of a handshake: an alert at most, then the end.
fn ends_with_an_alert_at_most(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < 100, "{}", rest.escape_ascii());
}

#[test]
fn garbage_and_silence_in_a_handshake_leave_nothing_behind() {
    let proxy = impatient().start();
    // The first handshake of all may leave something that is kept. The console needs no server.
    let url = format!("postgres://postgres@{}/refrain?sslmode=require", proxy.addr());
    psql(&url, "", "show lists").unwrap();
    let (before, hello) = (proxy.descriptors(), hello());
    let of_kind = |number: usize| -> Vec<u8> {
        let byte = (number * 151 + 7).to_le_bytes()[0];
        match number % 6 {
            0 => vec![byte ^ 0x80; 300],
            1 => [vec![0x16, 3, 1, 1, 0x80], vec![byte; 400]].concat(),
            // A record of 64 KiB, and records of nothing.
            2 => [vec![0x16, 3, 1, 0xff, 0xff], vec![byte; 70_000]].concat(),
            3 => [0x16, 3, 1, 0, 0].repeat(1 + usize::from(byte)),
            4 => hello[..usize::from(byte) % hello.len()].to_vec(),
            _ => Vec::new(),
        }
    };
    let mut open = VecDeque::new();
    for number in 0..handshakes() {
        let bytes = of_kind(number / 2);
        // Refrain takes a client that begins at once for one of TLS by its first byte.
        let at_once = number % 12 < 6 && bytes.first() == Some(&0x16);
        let stream = begins(&proxy, at_once, &bytes);
        // Every tenth client leaves at once.
        if number % 10 != 5 {
            open.push_back(stream);
        }
        // The number of connections at a time has limits.
        if open.len() > 360 {
            open.pop_front().into_iter().for_each(ends_with_an_alert_at_most);
        }
    }
    open.into_iter().for_each(ends_with_an_alert_at_most);
    nothing_is_left(&proxy, before);
    is_in(&proxy, "sslmode=require");
}

#[test]
fn a_slow_handshake_meets_the_login_timeout() {
    // A peer that has not said that it is a client is logged at this level alone.
    let proxy = impatient().general("log_level", "\"debug\"").start();
    proxy.show("lists");
    let (before, hello) = (proxy.descriptors(), hello());
    let step = Duration::from_millis(40);
    // Clients that send a byte from time to time, that never answer, and that say nothing.
    for (at_once, first, rest) in
        [(false, 0, 400), (true, 6, 400), (false, hello.len(), 0), (true, 0, 0)]
    {
        let started = Instant::now();
        let mut stream = begins(&proxy, at_once, &hello[..first]);
        stream.set_read_timeout(Some(step)).unwrap();
        let mut more = hello[first..].iter().take(rest);
        let mut received = [0; 4096];
        loop {
            match read_some(&mut stream, &mut received) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
            assert!(started.elapsed() < LIMIT, "{at_once} {first}: it is still open");
            if let Some(byte) = more.next() {
                let _ = stream.write_all(&[*byte]);
            }
        }
        let lasted = started.elapsed();
        assert!(lasted >= Duration::from_millis(450), "{at_once} {first}: {lasted:?}");
        // The trickle alone takes longer.
        assert!(lasted < Duration::from_secs(5), "{at_once} {first}: {lasted:?}");
    }
    let words = "canceling authentication due to timeout";
    eventually("each is logged", || proxy.log().matches(words).count() == 4);
    nothing_is_left(&proxy, before);
}

#[test]
fn an_encrypted_server_moves_between_cores_with_its_keys() {
    let config = to_server(Version::V18Tls, "require").general("client_tls_sslmode", "\"require\"");
    let config = config.general("client_tls_cert_file", &files().toml("server.crt"));
    let config = config.general("client_tls_key_file", &files().toml("server.key"));
    let config = config.general("workers", "3").server("user", "\"postgres\"");
    let proxy = config.start();
    let url = format!("postgres://postgres@{}/{AUTH_DATABASE}?sslmode=require", proxy.addr());
    let first = psql(&url, "", "select pg_backend_pid()").unwrap();
    // Clients are spread over the cores, and there is one server.
    for _ in 0..9 {
        assert_eq!(psql(&url, "", "select pg_backend_pid()").as_ref(), Ok(&first));
    }
}

#[test]
fn the_console_shows_what_is_encrypted_and_how() {
    let config = to_server(Version::V15, "require").server("user", "\"postgres\"");
    let proxy = config.start();
    let mut session = proxy.open(AUTH_DATABASE);
    session.run("select 1");
    assert!(proxy.show("servers")[0]["tls"].starts_with("TLSv1.3/TLS_"));
    let proxy = to_clients("require", "server").start();
    let url = format!("postgres://postgres@{}/refrain?sslmode=require", proxy.addr());
    let shown = psql(&url, "", "show clients").unwrap();
    assert!(shown.contains("|TLSv1.3/TLS_"), "{shown}");
}

#[test]
fn a_broken_file_is_an_error_at_the_start_and_in_a_check() {
    let name = format!("refrain-tls-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    let text = "auth = \"trust\"\nclient_tls_sslmode = \"prefer\"\n\
                client_tls_cert_file = \"/no/such.crt\"\nclient_tls_key_file = \"/no/such.key\"\n\
                [databases.app]\nhost = \"127.0.0.1\"\n";
    fs::write(&path, text).unwrap();
    let mut command = Command::new(xtask::proxy::program().unwrap());
    let output = command.arg("check").arg(&path).output().unwrap();
    fs::remove_file(&path).unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success());
    assert!(told.contains("/no/such.crt: No such file"), "{told}");
}
