//! Rules of `pg_hba.conf` about encryption and certificates, over TLS: PostgreSQL with the same
//! rules and the same certificates says what is right.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use xtask::postgres::{Cluster, PASSWORD};

use crate::logins::hba::knock;
use crate::session::LIMIT;
use crate::tls::{Files, files, to_clients};
use crate::world::{Config, Version, addr, psql};

/// The databases `postgres` and `template0` tell the rules apart. No client is let into the second
/// one, which takes no connections.
const RULES: &str = "\
hostssl   postgres  plain_user 127.0.0.1/32 cert\n\
hostssl   postgres  md5_user   127.0.0.1/32 cert map=m\n\
hostssl   postgres  postgres   127.0.0.1/32 cert map=m clientname=DN\n\
hostssl   postgres  scram_user 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n\
hostnossl postgres  plain_user 127.0.0.1/32 scram-sha-256\n\
hostnossl postgres  md5_user   127.0.0.1/32 reject\n\
hostssl   template0 scram_user 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n\
hostssl   template0 plain_user 127.0.0.1/32 trust clientcert=verify-full\n\
hostnossl template0 plain_user 127.0.0.1/32 password\n\
hostnossl template0 md5_user   127.0.0.1/32 scram-sha-256\n\
hostssl   template0 md5_user   127.0.0.1/32 reject\n\
hostnossl refrain   postgres   127.0.0.1/32 trust\n";

const MAPS: &str = "\
m ann md5_user\n\
m /^(.*)@refrain\\.test$ \\1\n\
m \"O=Refrain,CN=ann\" postgres\n";

/// The names of the files of clients' certificates; an empty one stands for no certificate.
const CERTIFICATES: [&str; 4] = ["plain", "scram", "ann", ""];

/// Returns the files of TLS, with certificates of clients.
fn with_clients() -> &'static Files {
    static WRITTEN: OnceLock<()> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let (files, authority) = (files(), &files().authority);
        files.write("plain", &authority.sign("plain_user", &[]).unwrap());
        files.write("scram", &authority.sign("scram_user", &[]).unwrap());
        files.write("ann", &authority.sign_member("ann", "Refrain").unwrap());
        files.write("host", &authority.sign("nobody", &["ann"]).unwrap());
        files.write("mail", &authority.sign("nobody", &["md5_user@refrain.test"]).unwrap());
        files.write("elses", &authority.sign("nobody", &["postgres@refrain.test"]).unwrap());
    });
    files()
}

fn directly(version: Version) -> Cluster {
    Cluster::start_encrypting(version, &with_clients().authority, RULES, MAPS).unwrap()
}

fn through_refrain() -> Config {
    let config = to_clients("prefer", "server")
        .general("client_tls_ca_file", &with_clients().toml("root.crt"))
        .general("auth", "\"hba\"")
        .general("hba", &format!("'''\n{RULES}'''"))
        .general("ident", &format!("'''\n{MAPS}'''"));
    let users = ["scram_user", "plain_user", "md5_user"];
    let user = |user: &&str| format!("[users.{user}]\npassword = \"{PASSWORD}\"\n");
    config.more(&users.iter().map(user).collect::<String>())
}

/// Encrypts, and shows a certificate if it has a name.
fn encrypt(to: SocketAddr, certificate: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"S");
    let path = |end: &str| files().path(&format!("{certificate}.{end}"));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files().path("root.crt")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match certificate {
        "" => builder.with_no_client_auth(),
        _ => {
            let chain = vec![CertificateDer::from_pem_file(path("crt")).unwrap()];
            let key = PrivateKeyDer::from_pem_file(path("key")).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let name = "localhost".try_into().unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

fn knock_by_tls(to: SocketAddr, certificate: &str, user: &str, database: &str) -> String {
    knock(&mut encrypt(to, certificate), user, database)
}

fn knock_in_the_clear(to: SocketAddr, user: &str, database: &str) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    knock(&mut stream, user, database)
}

fn rules_about_encryption_decide_as_in(version: Version) {
    let (direct, proxy) = (directly(version), through_refrain().start());
    let mut outcomes = Vec::new();
    for user in ["plain_user", "md5_user", "scram_user", "postgres"] {
        for database in ["postgres", "template0"] {
            let right = knock_in_the_clear(addr(&direct), user, database);
            let found = knock_in_the_clear(proxy.addr(), user, database);
            assert_eq!(found, right, "{user} {database} in the clear");
            outcomes.push(right);
            for certificate in CERTIFICATES {
                let right = knock_by_tls(addr(&direct), certificate, user, database);
                let found = knock_by_tls(proxy.addr(), certificate, user, database);
                assert_eq!(found, right, "{user} {database} with certificate {certificate:?}");
                outcomes.push(right);
            }
        }
    }
    // A test in which everything is refused alike would show nothing.
    for words in [
        "Authentication 0",
        "Authentication 3",
        "Authentication 10",
        "FATAL 28000 connection requires a valid client certificate",
        "FATAL 28000 certificate authentication failed for user \"plain_user\"",
        "FATAL 28000 certificate authentication failed for user \"md5_user\"",
        "FATAL 28000 certificate authentication failed for user \"postgres\"",
        "FATAL 28000 pg_hba.conf rejects connection for host \"127.0.0.1\", user \"md5_user\", \
         database \"postgres\", no encryption",
        "FATAL 28000 pg_hba.conf rejects connection for host \"127.0.0.1\", user \"md5_user\", \
         database \"template0\", SSL encryption",
        "FATAL 28000 no pg_hba.conf entry for host \"127.0.0.1\", user \"scram_user\", \
         database \"postgres\", no encryption",
        "FATAL 28000 no pg_hba.conf entry for host \"127.0.0.1\", user \"postgres\", \
         database \"template0\", SSL encryption",
    ] {
        assert!(outcomes.iter().any(|outcome| outcome == words), "{words}: {outcomes:#?}");
    }
    let lets_in = |certificate, user| {
        knock_by_tls(proxy.addr(), certificate, user, "postgres") == "Authentication 0"
    };
    for (certificate, user) in [("plain", "plain_user"), ("ann", "md5_user"), ("ann", "postgres")] {
        assert!(lets_in(certificate, user), "{certificate} {user}");
    }
}

#[test]
fn rules_about_encryption_decide_as_in_postgresql_15() {
    rules_about_encryption_decide_as_in(Version::V15);
}

#[test]
fn rules_about_encryption_decide_as_in_postgresql_18() {
    rules_about_encryption_decide_as_in(Version::V18Tls);
}

/// Logs in with `psql` by TLS. Returns the user as whom it works, or the words of the refusal.
fn logs_in(
    to: SocketAddr,
    certificate: &str,
    user: &str,
    password: &str,
) -> Result<String, String> {
    let show = match certificate {
        "" => String::new(),
        name => {
            let path = |end: &str| files().path(&format!("{name}.{end}"));
            format!("&sslcert={}&sslkey={}", path("crt"), path("key"))
        }
    };
    let url = format!("postgres://{user}@{to}/postgres?sslmode=require{show}");
    psql(&url, password, "select current_user").map_err(|told| {
        let words = told.split_once("FATAL:").map_or(&*told, |(_, words)| words);
        words.trim().to_owned()
    })
}

#[test]
fn drivers_log_in_by_certificate_and_password() {
    let (direct, proxy) = (directly(Version::V15), through_refrain().start());
    let missing = Err("connection requires a valid client certificate");
    let wrong = Err("password authentication failed for user \"scram_user\"");
    let elses = Err("certificate authentication failed for user \"plain_user\"");
    for (certificate, user, password, told) in [
        ("plain", "plain_user", "", Ok("plain_user")),
        ("ann", "plain_user", "", elses),
        ("", "plain_user", PASSWORD, missing),
        ("ann", "md5_user", "", Ok("md5_user")),
        ("ann", "postgres", "", Ok("postgres")),
        ("scram", "scram_user", PASSWORD, Ok("scram_user")),
        ("scram", "scram_user", "wrong", wrong),
        ("ann", "scram_user", PASSWORD, wrong),
        ("", "scram_user", PASSWORD, missing),
    ] {
        for to in [addr(&direct), proxy.addr()] {
            let found = logs_in(to, certificate, user, password);
            let found = found.as_ref().map(String::as_str).map_err(String::as_str);
            assert_eq!(found, told, "{certificate:?} {user} {password:?} at {to}");
        }
    }
    let rows = proxy.show("hba");
    let counts = |row: usize| (rows[row]["matched"].as_str(), rows[row]["refused"].as_str());
    assert_eq!((counts(0), counts(3)), (("3", "2"), ("4", "3")));
}

#[test]
fn other_names_of_a_certificate_count_through_a_map() {
    let (direct, proxy) = (directly(Version::V15), through_refrain().start());
    let refused = "FATAL 28000 certificate authentication failed for user";
    for (certificate, user, let_in) in [
        ("host", "md5_user", true),
        ("mail", "md5_user", true),
        ("elses", "md5_user", false),
        // The rule for this user has no map.
        ("mail", "plain_user", false),
        // The rule for this user asks for the subject.
        ("elses", "postgres", false),
    ] {
        let found = knock_by_tls(proxy.addr(), certificate, user, "postgres");
        let right = knock_by_tls(addr(&direct), certificate, user, "postgres");
        assert_eq!(right, format!("{refused} \"{user}\""), "PostgreSQL looks at the subject alone");
        let due = if let_in { "Authentication 0" } else { &right };
        assert_eq!(found, due, "{certificate} {user}");
    }
}

#[test]
fn without_authorities_no_certificate_is_asked_for() {
    let proxy = through_refrain().general("client_tls_ca_file", "\"off\"").start();
    let found = knock_by_tls(proxy.addr(), "plain", "plain_user", "postgres");
    assert_eq!(found, "FATAL 28000 connection requires a valid client certificate");
}
