//! Logins to real servers, MariaDB 10.11 and MySQL 8.0, by every way of proving a password.

use std::fs;
use std::path::PathBuf;

use refrain_mysql::errors::Brand;
use refrain_mysql::login::{
    ClientLogin, ClientStep, Failure, LoggedIn, ServerSecret, Tls, Wanted, Welcome,
};
use refrain_mysql_wire::auth::{caching_sha2, native};
use refrain_mysql_wire::handshake::{AuthReply, Greeting, NONCE_BYTES};
use refrain_mysql_wire::reply::{ErrPacket, first};
use refrain_mysql_wire::request::{ChangeUser, Request};
use refrain_mysql_wire::track::{Change, Changes};
use refrain_mysql_wire::{Capabilities, packet};
use xtask::certificates::Authority;
use xtask::mysql::{Flavour, Server};
use xtask::ports::free_port;

use super::hostile::response;
use super::wire::{Entered, Place, Session, log_in, wanted};
use super::words;

/// A server, and both ways to it.
struct World {
    flavour: Flavour,
    _server: Server,
    port: Place,
    socket: Place,
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("refrain-logins-{name}"));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Clear,
    Tls,
    Socket,
}

impl World {
    fn start(flavour: Flavour) -> Self {
        let port = free_port().expect("a port");
        let number = port.to_string();
        let folder = Folder::new(&number);
        let authority = Authority::new("authority").expect("an authority");
        let signed = authority.sign("localhost", &["localhost"]).expect("a certificate");
        signed.write(&folder.0, "server").expect("files");
        let path = |name: &str| folder.0.join(name).display().to_string();
        let (certificate, key) = (path("server.crt"), path("server.key"));
        let mut settings = vec![
            ("skip-networking", "0"),
            ("bind-address", "127.0.0.1"),
            ("port", &number),
            ("skip-name-resolve", "1"),
        ];
        if flavour == Flavour::MariaDb {
            settings.extend([("ssl-cert", &*certificate), ("ssl-key", &*key)]);
        }
        let server = Server::start(flavour, &settings).expect("a server");
        let socket = Place::Socket(server.socket());
        Self { flavour, _server: server, port: Place::Port(port), socket }
    }

    /// Returns the ways that lead to the server. MySQL 8.0.15 is built with a library that
    /// exchanges keys of TLS by no method that the tests' library has.
    fn ways(&self) -> &'static [Way] {
        match self.flavour {
            Flavour::MariaDb => &[Way::Clear, Way::Tls, Way::Socket],
            _ => &[Way::Clear, Way::Socket],
        }
    }

    fn log_in(&self, way: Way, login: Wanted) -> (Result<Entered, Failure>, Vec<Vec<u8>>) {
        let tls = if way == Way::Tls { Tls::Always } else { Tls::Never };
        let is_local = way == Way::Socket;
        let place = if is_local { &self.socket } else { &self.port };
        log_in(place, Wanted { tls, is_local, ..login })
    }

    /// Logs in. Fails if the server refuses. Returns the session, and the plugin's data.
    fn enter(&self, way: Way, login: Wanted) -> (LoggedIn, Session, Vec<Vec<u8>>) {
        let (result, payloads) = self.log_in(way, login);
        let (logged_in, mut session) =
            result.unwrap_or_else(|failure| panic!("{way:?} {failure:?}"));
        let reply = session.query("DO 1");
        assert_eq!(reply[0], first::OK, "{}", reply.escape_ascii());
        let data = payloads.into_iter().filter(|payload| payload[0] == first::AUTH_MORE_DATA);
        (logged_in, session, data.map(|payload| payload[1..].to_vec()).collect())
    }

    /// Runs statements as a superuser.
    fn run(&self, texts: &[&str]) {
        let (_, mut root, _) = self.enter(Way::Socket, wanted("root", ""));
        for text in texts {
            let reply = root.query(text);
            assert_eq!(reply[0], first::OK, "{text}: {}", reply.escape_ascii());
        }
    }
}

fn check(flavour: Flavour) {
    let world = World::start(flavour);
    world.run(&["CREATE DATABASE shop"]);
    native_passwords(&world);
    if flavour == Flavour::MySql {
        cached_passwords(&world);
        other_plugins(&world);
    }
    sessions(&world);
    changes_of_user(&world);
    same_words(&world);
    let (logged_in, session, _) = world.enter(Way::Socket, wanted("root", ""));
    words::check(session, logged_in.flavour.brand());
    refusals(&world);
}

fn native_passwords(world: &World) {
    let by = match world.flavour {
        Flavour::MariaDb => "VIA mysql_native_password USING PASSWORD('secret')",
        _ => "WITH mysql_native_password BY 'secret'",
    };
    world.run(&[&format!("CREATE USER ann IDENTIFIED {by}"), "CREATE USER free IDENTIFIED BY ''"]);
    for &way in world.ways() {
        world.enter(way, wanted("ann", "secret"));
        world.enter(way, wanted("free", ""));
        let key = ServerSecret::Native(native::Key::of(b"secret"));
        world.enter(way, Wanted { secret: key, ..wanted("ann", "") });
        for wrong in [wanted("ann", "Secret"), wanted("nobody", "secret"), wanted("ann", "")] {
            let failure = world.log_in(way, wrong).0.err().expect("a refusal");
            let err = ErrPacket::read(failure.error.as_deref().expect("an error"));
            assert_eq!(err.expect("an error").number, 1045, "{failure:?}");
            assert!(!failure.is_outage);
        }
    }
}

/// The first login needs the password, and later ones do until the server forgets.
fn cached_passwords(world: &World) {
    world.run(&["CREATE USER eve IDENTIFIED WITH caching_sha2_password BY 'secret'"]);
    let full = [caching_sha2::PERFORM_FULL_AUTHENTICATION.to_vec()];
    let fast = [caching_sha2::FAST_AUTH_SUCCESS.to_vec()];
    for &way in world.ways() {
        world.run(&["FLUSH PRIVILEGES"]);
        let wrong = world.log_in(way, wanted("eve", "Secret")).0.err().expect("a refusal");
        assert!(wrong.why.ends_with("(using password: YES) (1045)"), "{wrong:?}");
        let (_, _, data) = world.enter(way, wanted("eve", "secret"));
        match way {
            // The key comes in between.
            Way::Clear => {
                assert_eq!((&data[..1], data.len()), (&full[..], 2));
                assert!(data[1].starts_with(b"-----BEGIN PUBLIC KEY-----"));
            }
            Way::Tls | Way::Socket => assert_eq!(data, full),
        }
        assert_eq!(world.enter(way, wanted("eve", "secret")).2, fast);
    }
    // A key of the other plugin is of no use.
    let key = ServerSecret::Native(native::Key::of(b"secret"));
    let failure = world.log_in(Way::Clear, Wanted { secret: key, ..wanted("eve", "") }).0;
    let why = failure.err().expect("a failure").why;
    assert!(why.contains("asks for caching_sha2_password, which takes the password"), "{why}");
    // A password that the server's RSA key has no room for.
    let long = "x".repeat(214);
    world.run(&[&format!("ALTER USER eve IDENTIFIED BY '{long}'")]);
    let why = world.log_in(Way::Clear, wanted("eve", &long)).0.err().expect("a failure").why;
    assert_eq!(why, "the password is too long for the server's RSA key");
    world.enter(Way::Socket, wanted("eve", &long));
    let fits = "y".repeat(213);
    world.run(&[&format!("ALTER USER eve IDENTIFIED BY '{fits}'")]);
    world.enter(Way::Clear, wanted("eve", &fits));
}

/// A plugin that Refrain lacks.
fn other_plugins(world: &World) {
    world.run(&["CREATE USER old IDENTIFIED WITH sha256_password BY 'secret'"]);
    let failure = world.log_in(Way::Clear, wanted("old", "secret")).0.err().expect("a failure");
    assert_eq!(failure.why, "the server asks for sha256_password, which Refrain does not have");
    assert!(!failure.is_outage);
}

/// The sessions that begin are those that were wanted.
fn sessions(world: &World) {
    world.run(&["GRANT ALL ON shop.* TO ann"]);
    let login = Wanted { schema: b"shop"[..].into(), ..wanted("ann", "secret") };
    let (logged_in, mut session, _) = world.enter(Way::Clear, login.clone());
    let changes: Vec<_> = Changes(&logged_in.changes).iter().collect();
    assert_eq!(changes, [Ok(Change::Schema(b"shop"))]);
    assert!(logged_in.capabilities.has(Capabilities::SESSION_TRACK));
    assert!(!logged_in.capabilities.has(Capabilities::FOUND_ROWS));
    let brand = logged_in.flavour.brand();
    assert_eq!(brand == Brand::MariaDb, world.flavour == Flavour::MariaDb);
    let reply = session.query("SELECT CONNECTION_ID()");
    assert_eq!(reply[..1], [1]);
    session.packet().expect("a definition");
    let row = session.packet().expect("a row").1;
    assert_eq!(row[1..], *logged_in.connection_id.to_string().as_bytes());
    // Several statements in a text, and rows that are found.
    let more = Capabilities::FOUND_ROWS | Capabilities::MULTI_STATEMENTS;
    for &way in world.ways() {
        let wanted = Wanted { capabilities: more, ..login.clone() };
        let (logged_in, mut session, _) = world.enter(way, wanted);
        assert!(logged_in.capabilities.has(more));
        assert_eq!(logged_in.capabilities.has(Capabilities::SSL), way == Way::Tls);
        assert_eq!(session.query("DO 1; DO 2")[0], first::OK);
    }
    let (_, mut session, _) = world.enter(Way::Clear, login);
    assert_eq!(session.query("DO 1; DO 2")[0], first::ERR);
}

fn refusals(world: &World) {
    for (schema, number) in [("none", 1044), ("mysql", 1044)] {
        let login = Wanted { schema: schema.as_bytes().into(), ..wanted("ann", "secret") };
        let failure = world.log_in(Way::Clear, login).0.err().expect("a refusal");
        let err = ErrPacket::read(failure.error.as_deref().expect("an error"));
        assert_eq!(err.expect("an error").number, number, "{failure:?}");
    }
    let login = Wanted { schema: b"none"[..].into(), ..wanted("root", "") };
    let failure = world.log_in(Way::Socket, login).0.err().expect("a refusal");
    assert_eq!(failure.why, "Unknown database 'none' (1049)");
    // In place of the greeting.
    world.run(&["SET GLOBAL max_connections = 10"]);
    let mut held = Vec::new();
    let failure = loop {
        match world.log_in(Way::Clear, wanted("ann", "secret")).0 {
            Ok(session) => held.push(session),
            Err(failure) => break failure,
        }
    };
    assert_eq!((&*failure.why, failure.is_outage), ("Too many connections (1040)", true));
}

/// A broken login is told by Refrain what the server tells it, and then the server closes.
fn same_words(world: &World) {
    let mut session = Session::new(world.port.connect());
    let (_, greeting) = session.packet().expect("a greeting");
    let greeting = Greeting::read(&greeting).expect("a greeting");
    let Greeting::Handshake(greeting) = greeting else { panic!("{greeting:?}") };
    let flavour = refrain_mysql::login::Flavour::of(&greeting);
    for (name, payload, sequence) in broken(flavour.offered(false)) {
        let mut session = Session::new(world.port.connect());
        session.packet().expect("a greeting");
        let mut out = Vec::new();
        packet::message(&mut out, sequence, |out| out.extend_from_slice(&payload));
        session.send(&out);
        let (due, theirs) = session.packet().expect("an answer");
        let theirs = ErrPacket::read(&theirs).expect("an error");
        assert_eq!(session.packet(), None);
        let welcome = Welcome {
            flavour: &flavour,
            random: [1; NONCE_BYTES],
            connection_id: 1,
            has_tls: false,
            host: "127.0.0.1",
        };
        let mut login = ClientLogin::greet(&welcome, &mut Vec::new());
        let mut out = Vec::new();
        let step = login.input(&payload, sequence, &mut out);
        assert!(matches!(step, ClientStep::Refused(_)), "{name}: {step:?}");
        let packet = packet::split(&out).expect("a packet");
        let ours = ErrPacket::read(packet.payload).expect("an error");
        assert_eq!((ours.number, ours.message), (theirs.number, theirs.message), "{name}");
        // MySQL leaves the state out in some.
        assert!(theirs.sqlstate.is_none() || theirs.sqlstate == ours.sqlstate, "{name}");
        assert_eq!(packet.header.sequence, due, "{name}");
    }
}

/// Responses that are broken.
fn broken(offered: Capabilities) -> Vec<(&'static str, Vec<u8>, u8)> {
    let mut whole = Vec::new();
    response(offered).write(&mut whole);
    vec![
        ("empty", Vec::new(), 1),
        ("one byte", vec![whole[0]], 1),
        ("head", whole[..32].to_vec(), 1),
        ("half of the user", whole[..34].to_vec(), 1),
        ("half of the proof", whole[..40].to_vec(), 1),
        ("half of the schema", whole[..60].to_vec(), 1),
        ("out of order", whole, 5),
    ]
}

/// COM_CHANGE_USER: a client is asked for a new proof, whatever it comes with.
fn changes_of_user(world: &World) {
    for password in ["secret", "wrong"] {
        let (logged_in, mut session, _) = world.enter(Way::Clear, wanted("free", ""));
        let change = ChangeUser {
            user: b"ann",
            proof: b"12345678901234567890",
            plugin: native::PLUGIN,
            collation: Some(45),
            ..Default::default()
        };
        let request = Request::ChangeUser(change);
        let mut out = Vec::new();
        packet::message(&mut out, 0, |out| request.write(out, logged_in.capabilities));
        session.send(&out);
        let (sequence, payload) = session.packet().expect("an answer");
        let asked = AuthReply::read(&payload, logged_in.capabilities);
        let Ok(AuthReply::Switch(switch)) = asked else { panic!("{asked:?}") };
        assert_eq!((sequence, switch.plugin), (1, native::PLUGIN));
        let nonce = switch.data.try_into().expect("a nonce");
        let proof = native::Key::of(password.as_bytes()).proof(&nonce);
        out.clear();
        packet::message(&mut out, 2, |out| out.extend_from_slice(&proof));
        session.send(&out);
        let (sequence, payload) = session.packet().expect("an answer");
        let due = if password == "secret" { first::OK } else { first::ERR };
        assert_eq!((sequence, payload[0]), (3, due));
        if password == "wrong" {
            // MySQL closes. MariaDB goes on with the user before.
            let goes_on = session.try_query("DO 1").is_some();
            assert_eq!(goes_on, world.flavour == Flavour::MariaDb);
        }
    }
}

#[test]
fn mariadb() {
    check(Flavour::MariaDb);
}

#[test]
fn mysql() {
    check(Flavour::MySql);
}
