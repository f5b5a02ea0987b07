//! A client's login, played by that to a server: in memory, in pieces of any size.

use refrain_mysql::errors::Brand;
use refrain_mysql::login::{
    Agreed, Change, ClientLogin, ClientStep, Failure, Flavour, Like, LoggedIn, Plugin, Secret,
    ServerLogin, ServerSecret, ServerStep, Tls, Wanted, Welcome,
};
use refrain_mysql_wire::Capabilities;
use refrain_mysql_wire::auth::{caching_sha2, native};
use refrain_mysql_wire::handshake::{AuthReply, Greeting, Login, NONCE_BYTES};
use refrain_mysql_wire::packet::{self, message};
use refrain_mysql_wire::reply::{ErrPacket, OkPacket, first};
use refrain_mysql_wire::request::ChangeUser;
use refrain_pool::disconnect::DisconnectReason;

use super::wire::{flavour, wanted};

/// The double hash of `secret`.
const STORED: &str = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
const NONE: [u8; NONCE_BYTES] = [0; NONCE_BYTES];

/// The answer to the question of who a client is.
#[derive(Clone, Debug)]
enum Known {
    Trusted,
    By(Secret),
    Rejected,
}

/// Bytes on their way in one direction.
#[derive(Default)]
struct Pipe {
    sent: Vec<u8>,
    /// Bytes that have arrived, and are no whole packet yet.
    arrived: Vec<u8>,
}

impl Pipe {
    /// Lets a piece arrive. Returns the next whole packet.
    fn arrive(&mut self, piece: usize) -> Option<(u8, Vec<u8>)> {
        let count = piece.min(self.sent.len());
        self.arrived.extend(self.sent.drain(..count));
        let packet = packet::split(&self.arrived)?;
        let taken = (packet.header.sequence, packet.payload.to_vec());
        self.arrived.drain(..packet.header.packet_bytes());
        Some(taken)
    }
}

/// One login between both machines.
struct Play {
    asked: ClientLogin,
    asking: ServerLogin,
    known: Known,
    to_client: Pipe,
    to_server: Pipe,
    /// All that the asked side has sent.
    transcript: Vec<u8>,
    agreed: Option<Agreed>,
    refused: Option<DisconnectReason>,
}

/// How a play ends, for either side.
#[derive(Debug)]
struct End {
    agreed: Option<Agreed>,
    refused: Option<DisconnectReason>,
    asking: Result<Box<LoggedIn>, Failure>,
    transcript: Vec<u8>,
}

fn play(greeting: &Flavour, has_tls: bool, wanted: &Wanted, known: Known, piece: usize) -> End {
    let mut out = Vec::new();
    let welcome = Welcome {
        flavour: greeting,
        random: [7; NONCE_BYTES],
        connection_id: 77,
        has_tls,
        host: "127.0.0.1",
    };
    let asked = ClientLogin::greet(&welcome, &mut out);
    let mut play = Play {
        asked,
        asking: ServerLogin::new(wanted.clone(), [5; 20]),
        known,
        to_client: Pipe::default(),
        to_server: Pipe::default(),
        transcript: Vec::new(),
        agreed: None,
        refused: None,
    };
    play.say(out);
    let asking = play.run(piece);
    let Play { agreed, refused, transcript, .. } = play;
    End { agreed, refused, asking, transcript }
}

impl Play {
    fn say(&mut self, bytes: Vec<u8>) {
        self.transcript.extend_from_slice(&bytes);
        self.to_client.sent.extend(bytes);
    }

    fn run(&mut self, piece: usize) -> Result<Box<LoggedIn>, Failure> {
        for _ in 0..10_000 {
            if let Some((sequence, payload)) = self.to_server.arrive(piece) {
                self.ask(&payload, sequence);
            }
            let Some((sequence, payload)) = self.to_client.arrive(piece) else { continue };
            let mut out = Vec::new();
            let mut step = self.asking.input(&payload, sequence, &mut out);
            if let ServerStep::StartTls = step {
                self.to_server.sent.append(&mut out);
                while !self.to_server.sent.is_empty() {
                    if let Some((sequence, payload)) = self.to_server.arrive(piece) {
                        self.ask(&payload, sequence);
                    }
                }
                assert!(self.asked.is_tls());
                step = self.asking.secured(&mut out);
            }
            self.to_server.sent.append(&mut out);
            match step {
                ServerStep::More => {}
                ServerStep::StartTls => panic!("TLS within TLS"),
                ServerStep::LoggedIn(logged_in) => return Ok(logged_in),
                ServerStep::Failed(failure) => return Err(failure),
            }
        }
        panic!("neither side has anything to say")
    }

    fn ask(&mut self, payload: &[u8], sequence: u8) {
        let mut out = Vec::new();
        let mut step = self.asked.input(payload, sequence, &mut out);
        if let ClientStep::WhoIs = step {
            step = match &self.known {
                Known::Trusted => self.asked.trust(&mut out),
                Known::By(secret) => self.asked.prove(secret, &mut out),
                Known::Rejected => self.asked.refuse(DisconnectReason::Login, &mut out),
            };
        }
        match step {
            ClientStep::More => {}
            ClientStep::StartTls => self.asked.secured(),
            ClientStep::WhoIs => panic!("asked twice who it is"),
            ClientStep::Refused(reason) => self.refused = Some(reason),
            ClientStep::Authenticated(agreed) => {
                let ok = OkPacket::default();
                message(&mut out, agreed.sequence, |out| {
                    ok.write(out, first::OK, agreed.capabilities);
                });
                self.agreed = Some(agreed);
            }
        }
        self.say(out);
    }
}

/// Returns the flavours of servers, one with a plugin that Refrain lacks.
fn flavours() -> [Flavour; 3] {
    [
        flavour(Brand::MySql, "caching_sha2_password"),
        flavour(Brand::MariaDb, "mysql_native_password"),
        flavour(Brand::MariaDb, "parsec"),
    ]
}

#[test]
fn every_secret_that_fits_logs_in() {
    let key = native::Key::of(b"secret");
    let given = [ServerSecret::of_password(b"secret"), ServerSecret::Native(key)];
    for greeting in flavours() {
        for stored in ["secret", STORED] {
            for secret in &given {
                for (tls, has_tls) in
                    [(Tls::Never, true), (Tls::IfOffered, true), (Tls::IfOffered, false)]
                {
                    for piece in [1, 2, 3, 5, 1 << 20] {
                        let known = Known::By(Secret::parse(stored).expect("a secret"));
                        let wanted = Wanted {
                            secret: secret.clone(),
                            schema: b"shop"[..].into(),
                            tls,
                            ..wanted("ann", "")
                        };
                        let end = play(&greeting, has_tls, &wanted, known, piece);
                        let agreed = end.agreed.expect("a login");
                        let logged_in = end.asking.expect("a login");
                        assert_eq!((&*agreed.user, &*agreed.schema), (&b"ann"[..], &b"shop"[..]));
                        assert_eq!(agreed.capabilities, logged_in.capabilities);
                        assert_eq!(logged_in.connection_id, 77);
                        assert_eq!(logged_in.flavour.version, greeting.version);
                        let is_key = matches!(agreed.secret, ServerSecret::Native(_));
                        assert_eq!(is_key, stored == STORED);
                    }
                }
            }
        }
    }
}

#[test]
fn a_key_that_was_learnt_logs_in() {
    let mysql = &flavours()[1];
    let known = || Known::By(Secret::parse(STORED).expect("a secret"));
    let end = play(mysql, false, &wanted("ann", "secret"), known(), 9);
    let learnt = end.agreed.expect("a login").secret;
    let again = Wanted { secret: learnt, ..wanted("ann", "") };
    assert!(play(mysql, false, &again, known(), 9).asking.is_ok());
}

#[test]
fn an_unknown_user_looks_like_a_wrong_password() {
    for greeting in flavours() {
        for (stored, like) in
            [("other", Like::Password), ("*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29", Like::Native)]
        {
            for password in ["secret", ""] {
                let ends = [
                    Known::By(Secret::parse(stored).expect("a secret")),
                    Known::By(Secret::unknown(like, [3; NONCE_BYTES])),
                ]
                .map(|known| play(&greeting, false, &wanted("ann", password), known, 1 << 20));
                for end in &ends {
                    let failure = end.asking.as_ref().expect_err("a refusal");
                    let using = if password.is_empty() { "NO" } else { "YES" };
                    let words = format!(
                        "Access denied for user 'ann'@'127.0.0.1' (using password: {using})"
                    );
                    assert_eq!(failure.why, format!("{words} (1045)"));
                    assert!(!failure.is_outage);
                    assert_eq!(end.refused, Some(DisconnectReason::Login));
                    assert!(end.agreed.is_none());
                }
                assert_eq!(ends[0].transcript, ends[1].transcript);
            }
        }
    }
}

#[test]
fn an_unknown_user_never_logs_in() {
    // Not even by the random bytes that its secret is made of.
    for like in [Like::Password, Like::Native] {
        let random = [65; NONCE_BYTES];
        let known = Known::By(Secret::unknown(like, random));
        let wanted = Wanted { secret: ServerSecret::of_password(&random), ..wanted("ann", "") };
        assert!(play(&flavours()[0], false, &wanted, known, 100).agreed.is_none());
    }
}

#[test]
fn a_trusted_client_needs_no_password_and_may_have_one() {
    for greeting in flavours() {
        for password in ["", "anything"] {
            let end = play(&greeting, false, &wanted("ann", password), Known::Trusted, 3);
            assert!(end.asking.is_ok());
            assert!(matches!(end.agreed.expect("a login").secret, ServerSecret::None));
        }
    }
}

#[test]
fn a_rejected_client_is_denied() {
    let end = play(&flavours()[0], false, &wanted("ann", "secret"), Known::Rejected, 3);
    let failure = end.asking.expect_err("a refusal");
    assert!(failure.why.ends_with("(using password: YES) (1045)"), "{failure:?}");
}

#[test]
fn a_server_without_tls_is_left_if_it_must_be_encrypted() {
    let wanted = Wanted { tls: Tls::Always, ..wanted("ann", "secret") };
    let known = Known::By(Secret::parse("secret").expect("a secret"));
    let end = play(&flavours()[0], false, &wanted, known, 3);
    assert_eq!(end.asking.expect_err("a failure").why, "the server does not offer TLS");
}

/// A session that has begun, for COM_CHANGE_USER.
fn session(plugin_auth: bool) -> Agreed {
    let known = Known::By(Secret::parse("secret").expect("a secret"));
    let mut greeting = flavours()[0].clone();
    if !plugin_auth {
        greeting.capabilities = greeting.capabilities - Capabilities::PLUGIN_AUTH;
        greeting.plugin = Box::default();
    }
    play(&greeting, false, &wanted("ann", "secret"), known, 100).agreed.expect("a session")
}

/// Begins a change of user, and proves it.
fn change(
    agreed: &Agreed,
    request: &ChangeUser<'_>,
    secret: &Secret,
) -> (ClientLogin, ClientStep, Vec<u8>) {
    let change = Change {
        flavour: &flavours()[0],
        agreed,
        random: [8; NONCE_BYTES],
        is_tls: false,
        host: "localhost",
        sequence: 1,
    };
    let mut out = Vec::new();
    let mut login = ClientLogin::change_user(&change, request);
    let step = login.prove(secret, &mut out);
    (login, step, out)
}

#[test]
fn a_user_is_changed_by_a_new_proof() {
    let agreed = session(true);
    let request = ChangeUser {
        user: b"bob",
        proof: &native::Key::of(b"other").proof(&agreed.nonce),
        database: b"shop",
        collation: Some(255),
        plugin: native::PLUGIN,
        ..Default::default()
    };
    let secret = Secret::parse("other").expect("a secret");
    let (mut login, step, out) = change(&agreed, &request, &secret);
    assert!(matches!(step, ClientStep::More));
    let asked = packet::split(&out).expect("a packet");
    assert_eq!(asked.header.sequence, 1);
    let Ok(AuthReply::Switch(switch)) = AuthReply::read(asked.payload, agreed.capabilities) else {
        panic!("{}", asked.payload.escape_ascii())
    };
    assert_eq!(switch.plugin, native::PLUGIN);
    let nonce = switch.data.try_into().expect("a nonce");
    assert_ne!(nonce, agreed.nonce);
    for (password, due) in [(&b"other"[..], true), (b"wrong", false)] {
        let proof = native::Key::of(password).proof(&nonce);
        let mut login = change(&agreed, &request, &secret).0;
        let mut out = Vec::new();
        match login.input(&proof, 2, &mut out) {
            ClientStep::Authenticated(changed) => {
                assert!(due);
                assert_eq!((&*changed.user, &*changed.schema), (&b"bob"[..], &b"shop"[..]));
                assert_eq!((changed.collation, changed.sequence), (255, 3));
                assert_eq!(changed.capabilities, agreed.capabilities);
            }
            ClientStep::Refused(DisconnectReason::Login) => {
                assert!(!due);
                let packet = packet::split(&out).expect("a packet");
                assert_eq!(packet.header.sequence, 3);
                let err = ErrPacket::read(packet.payload).expect("an error");
                assert!(err.message.starts_with(b"Access denied for user 'bob'@'localhost'"));
            }
            other => panic!("{other:?}"),
        }
    }
    // A packet out of turn ends the session.
    let step = login.input(b"", 7, &mut Vec::new());
    assert!(matches!(step, ClientStep::Refused(DisconnectReason::Synchronization)), "{step:?}");
}

#[test]
fn a_client_that_cannot_be_asked_proves_with_the_first_nonce() {
    let agreed = session(false);
    let proof = native::Key::of(b"other").proof(&agreed.nonce);
    let request = ChangeUser { user: b"bob", proof: &proof, ..Default::default() };
    let (_, step, out) = change(&agreed, &request, &Secret::parse("other").expect("a secret"));
    assert!(matches!(step, ClientStep::Authenticated(_)), "{step:?}");
    assert!(out.is_empty());
}

#[test]
fn a_proof_for_a_plugin_that_refrain_lacks_is_asked_for_again() {
    let mut out = Vec::new();
    let greeting = &flavours()[0];
    let welcome = Welcome {
        flavour: greeting,
        random: NONE,
        connection_id: 1,
        has_tls: false,
        host: "localhost",
    };
    let mut login = ClientLogin::greet(&welcome, &mut out);
    let packet = packet::split(&out).expect("a packet");
    let Ok(Greeting::Handshake(greeting)) = Greeting::read(packet.payload) else { panic!("none") };
    assert!(!greeting.nonce.contains(&0));
    assert!(!greeting.capabilities.has(Capabilities::SSL));
    let mut response = super::hostile::response(greeting.capabilities);
    response.plugin = b"client_ed25519";
    let mut payload = Vec::new();
    response.write(&mut payload);
    assert!(matches!(Login::read(&payload, greeting.capabilities), Ok(Login::Response(_))));
    let mut out = Vec::new();
    assert!(matches!(login.input(&payload, 1, &mut out), ClientStep::WhoIs));
    let secret = Secret::parse("secret").expect("a secret");
    assert!(matches!(login.prove(&secret, &mut out), ClientStep::More));
    let proof = caching_sha2::Key::of(b"secret").proof(&greeting.nonce);
    out.clear();
    let step = login.input(&proof, 3, &mut out);
    let ClientStep::Authenticated(agreed) = step else { panic!("{step:?}") };
    assert_eq!(agreed.sequence, 5);
    assert_eq!(out, b"\x02\0\0\x04\x01\x03");
    assert_eq!(Plugin::named(b"client_ed25519"), None);
}
