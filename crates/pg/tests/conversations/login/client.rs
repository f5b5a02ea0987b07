//! Clients' logins: authentication, pool, startup parameters.

use refrain_pg::auth::{Login, NONCE_BYTES, Password, Reply, Secret, ServerAsks};

use crate::talk::*;

/// Begins a conversation with this way of authentication, and a user `u` with this password.
fn with_password(auth: &str, password: &str) -> Conversation {
    Conversation::new(format!(
        "auth = \"{auth}\"\n[users.u]\npassword = \"{password}\"\n\
         [databases.d]\nurl = \"postgres://u:u@127.0.0.1:1\"\n"
    ))
}

/// Writes a PasswordMessage.
pub(super) fn says(text: &str) -> Line {
    password(&[text.as_bytes(), b"\0"].concat())
}

#[test]
fn a_login_tells_the_settings_of_the_server_and_a_key_for_cancelling() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([
        authentication(0, b""),
        parameter("client_encoding", "UTF8"),
        parameter("server_encoding", "UTF8"),
        parameter("standard_conforming_strings", "on"),
        parameter("TimeZone", "UTC"),
        parameter("server_version", "18.0"),
        backend_key(1, &[9; 4]),
        ready(),
    ]);
}

#[test]
fn a_client_may_get_a_notice_when_it_has_logged_in() {
    let options = options("pool_size = 1");
    let talk = Conversation::new(format!("login_notify_message = \"Hello\"\n{options}"));
    for _ in 0..2 {
        let alice = talk.newcomer();
        alice.asks_to_log_in(&[]);
        let got = alice.take();
        assert_eq!(got[got.len() - 2..], [notice("Hello"), ready()]);
    }
}

#[test]
fn a_login_like_the_last_one_is_told_what_has_changed_since() {
    let talk = one_server();
    let (alice, bob, carol, dave) =
        (talk.newcomer(), talk.newcomer(), talk.newcomer(), talk.newcomer());
    let told = |client: &Party, settings: &[(&str, &str)], expected: &[(&str, &str)]| {
        client.asks_to_log_in(settings);
        let got = client.take();
        for (name, value) in expected {
            assert!(got.contains(&parameter(name, value)), "{name} = {value}: {got:?}");
        }
        assert_eq!((got.len(), got.last()), (8, Some(&ready())));
    };
    told(&alice, &[], &[("TimeZone", "UTC"), ("server_version", "18.0")]);
    told(&bob, &[], &[("TimeZone", "UTC"), ("server_version", "18.0")]);
    // The servers' default changes.
    let server = talk.server(1);
    bob.sends([query("select 1")]);
    server.gets([query("select 1")]);
    let reload = [vec![parameter("TimeZone", "Europe/Berlin")], one_row()].concat();
    server.answers(reload.clone());
    bob.gets(reload);
    server.gets(settings_asked()).answers(settings_answer(&[&["TimeZone=", "Europe/Berlin"]]));
    told(&carol, &[], &[("TimeZone", "Europe/Berlin"), ("server_version", "18.0")]);
    // A login with settings of its own is not like the last one.
    let tokyo = [("TimeZone", "Asia/Tokyo")];
    dave.asks_to_log_in(&tokyo);
    server.gets([query_with("'timezone','Asia/Tokyo',false")]).answers(synced(&["Asia/Tokyo"]));
    assert!(dave.take().contains(&parameter("TimeZone", "Asia/Tokyo")));
    let again = talk.newcomer();
    told(&again, &tokyo, &[("TimeZone", "Asia/Tokyo")]);
}

#[test]
fn a_clear_password_is_asked_for_and_compared() {
    let talk = with_password("password", "secret");
    let (alice, mallory) = (talk.newcomer(), talk.newcomer());
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(3, b"")]).sends([says("secret")]).is_let_in();
    mallory.asks_to_log_in(&[]);
    mallory.gets([authentication(3, b"")]).sends([says("wrong")]);
    mallory.gets([fatal("28P01", "password authentication failed for user \"u\"")]);
    assert!(mallory.is_closed());
}

#[test]
fn an_md5_password_is_salted() {
    let talk = with_password("md5", "secret");
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(5, &[9; 4])]);
    // The MD5 of that of "secretu" in hexadecimal digits and the salt, by md5sum.
    alice.sends([says("md548c3cf271ba97d61e8c9c1e88621d966")]).is_let_in();
    let mallory = talk.newcomer();
    mallory.asks_to_log_in(&[]);
    mallory.gets([authentication(5, &[9; 4])]).sends([says("secret")]);
    mallory.gets([fatal("28P01", "password authentication failed for user \"u\"")]);
}

/// Returns the body of an Authentication message behind its number.
fn asked(lines: &[Line]) -> Vec<u8> {
    lines[0].bytes[9..].to_vec()
}

/// Has a client prove by SCRAM that it knows a password. Returns the messages that it gets then,
/// behind the proof that Refrain knows the password as well.
pub(crate) fn proves(client: &Party, text: &str) -> Vec<Line> {
    let secret = Password::new(text).map(Secret::Password).expect("it is a password");
    let (mut login, mut salted) = (Login::new("u", secret, &[3; NONCE_BYTES]), None);
    for code in [10, 11] {
        let body = asked(&client.forgets());
        let asks = match code {
            10 => ServerAsks::Sasl { mechanisms: &body },
            _ => ServerAsks::SaslContinue(&body),
        };
        let Ok(Reply::Send(proof, next)) = login.answer(asks, &mut salted) else {
            panic!("there is more to prove");
        };
        login = next;
        client.sends([password(&proof)]);
    }
    let got = client.forgets();
    let last = login.answer(ServerAsks::SaslFinal(&asked(&got)), &mut salted);
    assert!(matches!(last, Ok(Reply::Wait(_))), "the server knows the password as well");
    got[1..].to_vec()
}

#[test]
fn scram_lets_a_client_in_that_knows_the_password() {
    let talk = with_password("scram", "secret");
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    let got = proves(&alice, "secret");
    assert_eq!(got[..1], [authentication(0, b"")]);
    assert_eq!(got.last(), Some(&ready()));
}

/// Has a client begin SCRAM, and returns the first message that it gets then.
fn begins_scram(client: &Party) -> String {
    client.asks_to_log_in(&[]);
    client.gets([authentication(10, b"SCRAM-SHA-256\0\0")]);
    let first = b"n,,n=,r=abc";
    let length = [0, 0, 0, 11];
    client.sends([password(&[b"SCRAM-SHA-256\0", &length[..], first].concat())]);
    let got = client.forgets();
    assert_eq!(got.len(), 1, "the server's first message");
    String::from_utf8_lossy(&got[0].bytes[9..]).into_owned()
}

#[test]
fn scram_offers_its_mechanism_and_refuses_a_wrong_proof() {
    let talk = with_password("scram", "secret");
    let mallory = talk.newcomer();
    begins_scram(&mallory);
    mallory.sends([password(b"c=biws,r=abc,p=AAAA")]);
    mallory.gets([error_like("")]);
    assert!(mallory.is_closed());
}

#[test]
fn a_password_in_plain_text_is_hashed_as_often_as_the_options_say() {
    let options = "[users.u]\npassword = \"secret\"\n\
                   [databases.d]\nurl = \"postgres://u:u@127.0.0.1:1\"\n";
    let talk = with_password("scram", "secret");
    assert!(begins_scram(&talk.newcomer()).ends_with(",i=4096"));
    talk.reloads(&format!("auth = \"scram\"\nscram_iterations = 5000\n{options}"));
    assert!(begins_scram(&talk.newcomer()).ends_with(",i=5000"));
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    assert_eq!(proves(&alice, "secret").last(), Some(&ready()));
    // A user who does not exist looks the same.
    let nobody = talk.newcomer();
    nobody.sends([startup(0, &[("user", "nobody"), ("database", "d")])]);
    nobody.forgets();
    let first = b"n,,n=,r=abc";
    let length = [0, 0, 0, 11];
    nobody.sends([password(&[b"SCRAM-SHA-256\0", &length[..], first].concat())]);
    let got = nobody.forgets();
    assert!(got[0].bytes.ends_with(b",i=5000"), "{got:?}");
}

#[test]
fn a_login_that_fails_is_told_in_the_words_that_the_options_choose() {
    let vocabulary = |auth: &str| {
        Conversation::new(format!(
            "pooler_errors = \"pgbouncer\"\nauth = \"{auth}\"\n\
             [users.u]\npassword = \"secret\"\n\
             [databases.d]\nurl = \"postgres://u:u@127.0.0.1:1\"\nmax_client_connections = 1\n"
        ))
    };
    let talk = vocabulary("scram");
    let mallory = talk.newcomer();
    begins_scram(&mallory);
    mallory.sends([password(b"c=biws,r=abc,p=AAAA")]);
    mallory.gets([fatal("08P01", "SASL authentication failed")]);
    let talk = vocabulary("password");
    let mallory = talk.newcomer();
    mallory.asks_to_log_in(&[]);
    mallory.gets([authentication(3, b"")]).sends([says("wrong")]);
    mallory.gets([fatal("08P01", "password authentication failed")]);
    let talk = vocabulary("trust");
    let alice = talk.newcomer();
    alice.sends([startup(0, &[("user", "u"), ("database", "nope")])]);
    alice.gets([authentication(0, b""), fatal("08P01", "no such database: nope")]);
    let (first, second) = (talk.newcomer(), talk.newcomer());
    first.asks_to_log_in(&[]);
    second.asks_to_log_in(&[]);
    first.is_let_in();
    let words = "client connections exceeded (max_db_client_connections)";
    second.gets([authentication(0, b""), fatal("08P01", words)]);
}

#[test]
fn another_message_in_place_of_a_password_is_refused_in_postgresqls_words() {
    let talk = with_password("password", "secret");
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([authentication(3, b"")]).sends([query("select 1")]);
    alice.gets([fatal("08P01", "expected password response, got message type 81")]);
    assert!(alice.is_closed());
}

#[test]
fn an_unknown_database_is_refused_and_no_server_is_asked() {
    let talk = with_password("trust", "secret");
    let alice = talk.newcomer();
    alice.sends([startup(0, &[("user", "u"), ("database", "nope")])]);
    alice.gets([authentication(0, b""), fatal("3D000", "database \"nope\" does not exist")]);
    assert!(alice.is_closed());
    assert_eq!(talk.connections(), 0);
}

#[test]
fn a_database_may_have_a_limit_of_clients() {
    let talk = Conversation::new(
        "auth = \"trust\"\n[databases.d]\nurl = \"postgres://u@127.0.0.1:1\"\n\
         max_client_connections = 1\n"
            .to_owned(),
    );
    let (_alice, bob) = (talk.client(), talk.newcomer());
    bob.asks_to_log_in(&[]);
    bob.gets([authentication(0, b""), fatal("53300", "too many connections for database \"d\"")]);
}

#[test]
fn startup_parameters_that_a_server_has_accepted_are_not_checked_again() {
    let talk = one_server();
    let (alice, bob) = (talk.newcomer(), talk.newcomer());
    alice.asks_to_log_in(&[("options", "-c timezone=Asia/Tokyo")]);
    let server = talk.server(1);
    server.gets([query_with("'timezone','Asia/Tokyo',false")]).answers(synced(&["Asia/Tokyo"]));
    alice.is_let_in();
    bob.asks_to_log_in(&[("timezone", "Asia/Tokyo")]);
    bob.is_let_in();
    server.gets_nothing();
}

#[test]
fn a_server_that_was_connected_for_a_login_checks_its_startup_parameters() {
    let talk = two_servers();
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[("options", "-c timezone=Asia/Tokyo")]);
    let server = talk.server(1);
    server.gets([query_with("'timezone','Asia/Tokyo',false")]).answers(synced(&["Asia/Tokyo"]));
    alice.is_let_in();
    assert_eq!(talk.connections(), 1);
}

#[test]
fn what_a_client_sends_during_its_login_is_kept_for_later() {
    let talk = one_server().by_hand();
    let alice = talk.newcomer();
    let startup = startup(0, &[("user", "u"), ("database", "d")]);
    alice.sends([startup, query("select 1")]);
    alice.gets([authentication(0, b"")]);
    let server = talk.connection(1);
    server.accepts();
    server.forgets();
    server.greets(1);
    alice.is_let_in();
    server.gets([query("select 1")]).answers(one_row());
    alice.gets(one_row());
}
