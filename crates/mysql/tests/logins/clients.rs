//! Logins of a real client, MariaDB's command line, which has the plugins of both products.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use refrain_mysql::errors::Brand;
use refrain_mysql::login::{Agreed, ClientLogin, ClientStep, Flavour, Like, Secret, Welcome};
use refrain_mysql_wire::auth::native;
use refrain_mysql_wire::handshake::{Attributes, HandshakeResponse41, NONCE_BYTES};
use refrain_mysql_wire::reply::{OkPacket, first};
use refrain_mysql_wire::{Capabilities, command, packet};
use refrain_pool::disconnect::DisconnectReason;
use xtask::certificates::{Authority, Signed};

use super::encrypted;
use super::wire::{Session, flavour};

/// The double hash of `secret`.
const STORED: &str = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";

/// A server that takes one login of `ann` and answers every text with OK.
struct Door {
    flavour: Flavour,
    /// The secret of `ann`; without one, anybody is trusted.
    stored: Option<Secret>,
    signed: Option<Signed>,
}

/// The result of a login: the agreement, and the texts of the session.
type Entered = Result<(Agreed, Vec<Vec<u8>>), DisconnectReason>;

impl Door {
    /// Opens the door. Returns its port.
    fn open(self) -> (u16, JoinHandle<Entered>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            self.serve(stream)
        });
        (port, serving)
    }

    fn serve(&self, stream: TcpStream) -> Entered {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit of time");
        let mut session = Session::new(Box::new(stream));
        let welcome = Welcome {
            flavour: &self.flavour,
            random: [0xA5; NONCE_BYTES],
            connection_id: 4711,
            has_tls: self.signed.is_some(),
            host: "127.0.0.1",
        };
        let mut out = Vec::new();
        let mut login = ClientLogin::greet(&welcome, &mut out);
        let agreed = loop {
            session.send(&out);
            out.clear();
            let (sequence, payload) = session.packet().ok_or(DisconnectReason::ClientGone)?;
            let mut step = login.input(&payload, sequence, &mut out);
            if let ClientStep::WhoIs = step {
                let unknown = Secret::unknown(Like::Password, [1; NONCE_BYTES]);
                step = match &self.stored {
                    None => login.trust(&mut out),
                    Some(secret) if login.user() == b"ann" => login.prove(secret, &mut out),
                    Some(_) => login.prove(&unknown, &mut out),
                };
            }
            match step {
                ClientStep::More => {}
                ClientStep::StartTls => {
                    let signed = self.signed.as_ref().expect("TLS was offered");
                    session = Session::new(encrypted::server(session.stream, signed));
                    login.secured();
                }
                ClientStep::WhoIs => panic!("asked twice who it is"),
                ClientStep::Refused(reason) => {
                    session.send(&out);
                    return Err(reason);
                }
                ClientStep::Authenticated(agreed) => break agreed,
            }
        };
        let ok = OkPacket::default();
        packet::message(&mut out, agreed.sequence, |out| {
            ok.write(out, first::OK, agreed.capabilities);
        });
        let mut texts = Vec::new();
        loop {
            session.send(&out);
            out.clear();
            let Some((0, payload)) = session.packet() else { break };
            match payload.split_first() {
                Some((&command::QUERY, text)) => texts.push(text.to_vec()),
                Some((&command::QUIT, _)) | None => break,
                Some(_) => {}
            }
            packet::message(&mut out, 1, |out| ok.write(out, first::OK, agreed.capabilities));
        }
        Ok((agreed, texts))
    }
}

/// Runs the client.
fn client(port: u16, arguments: &[&str]) -> Output {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--protocol=tcp", "-h127.0.0.1", "-eDO 1", "shop"]);
    client.arg(format!("-P{port}")).args(arguments);
    client.output().expect("the client runs")
}

/// Returns the servers that clients are greeted as.
fn flavours() -> [Flavour; 2] {
    [
        flavour(Brand::MySql, "caching_sha2_password"),
        flavour(Brand::MariaDb, "mysql_native_password"),
    ]
}

#[test]
fn a_client_logs_in_by_any_plugin() {
    xtask::provision::mariadb().expect("MariaDB's programs");
    let authority = Authority::new("authority").expect("an authority");
    let signed = authority.sign("localhost", &["localhost"]).expect("a certificate");
    let plugins = ["mysql_native_password", "caching_sha2_password", "client_ed25519", ""];
    for greeting in flavours() {
        for (stored, password) in [
            (Some("secret"), "-psecret"),
            (Some(STORED), "-psecret"),
            (None, "-psecret"),
            (None, "--password="),
        ] {
            for plugin in plugins {
                for tls in [None, Some(&signed)] {
                    let door = Door {
                        flavour: greeting.clone(),
                        stored: stored.and_then(Secret::parse),
                        signed: tls.cloned(),
                    };
                    let (port, serving) = door.open();
                    let plugin = format!("--default-auth={plugin}");
                    let tls = if tls.is_some() { "--ssl" } else { "--skip-ssl" };
                    let output = client(port, &["-uann", password, &plugin, tls]);
                    let error = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{stored:?} {plugin} {tls}: {error}");
                    let (agreed, texts) = serving.join().expect("no panic").expect("a login");
                    assert_eq!((&*agreed.user, &*agreed.schema), (&b"ann"[..], &b"shop"[..]));
                    assert_eq!(texts, [b"DO 1"]);
                }
            }
        }
    }
}

#[test]
fn a_client_is_told_why_it_may_not_log_in() {
    xtask::provision::mariadb().expect("MariaDB's programs");
    let cases: [(&[&str], &str, &str); 4] = [
        (&["-uann", "-pwrong"], "ann", "YES"),
        (&["-unobody", "-psecret"], "nobody", "YES"),
        (&["-uann", "--password="], "ann", "NO"),
        (&["-uann", "-pwrong", "--default-auth=client_ed25519"], "ann", "YES"),
    ];
    for greeting in flavours() {
        for (arguments, user, using) in cases {
            let stored = Secret::parse("secret");
            let door = Door { flavour: greeting.clone(), stored, signed: None };
            let (port, serving) = door.open();
            let output = client(port, arguments);
            let due = format!(
                "ERROR 1045 (28000): Access denied for user '{user}'@'127.0.0.1' (using password: \
                 {using})\n"
            );
            assert_eq!(String::from_utf8_lossy(&output.stderr), due);
            let refused = serving.join().expect("no panic").expect_err("a refusal");
            assert_eq!(refused, DisconnectReason::Login);
        }
    }
}

/// sqlx 0.8 computes proofs of `caching_sha2_password` that no server takes.
#[test]
fn a_client_of_wrong_proofs_is_asked_in_another_way() {
    let secret = Secret::parse("secret").expect("a secret");
    let response = HandshakeResponse41 {
        capabilities: Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH,
        max_packet: 1 << 24,
        collation: 45,
        user: b"ann",
        proof: &[9; 32],
        database: b"",
        plugin: b"caching_sha2_password",
        attributes: Attributes::default(),
        zstd_level: 0,
    };
    let mut responded = Vec::new();
    response.write(&mut responded);
    let nonce = [7; NONCE_BYTES];
    for is_tls in [false, true] {
        for (password, due) in [(&b"secret"[..], true), (b"Secret", false), (b"", false)] {
            let greeting = &flavours()[0];
            let host = "127.0.0.1";
            let welcome = Welcome {
                flavour: greeting,
                random: nonce,
                connection_id: 77,
                has_tls: true,
                host,
            };
            let mut out = Vec::new();
            let mut login = ClientLogin::greet(&welcome, &mut out);
            if is_tls {
                login.secured();
            }
            assert!(matches!(login.input(&responded, 1, &mut out), ClientStep::WhoIs));
            out.clear();
            assert!(matches!(login.prove(&secret, &mut out), ClientStep::More));
            let answer = if is_tls {
                assert_eq!(out, b"\x02\0\0\x02\x01\x04");
                [password, b"\0"].concat()
            } else {
                assert!(out.starts_with(b"\x2c\0\0\x02\xfemysql_native_password\0"));
                native::Key::of(password).proof(&nonce).to_vec()
            };
            let step = login.input(&answer, 3, &mut out);
            assert_eq!(matches!(step, ClientStep::Authenticated(_)), due);
        }
    }
}
