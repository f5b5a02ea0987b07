//! Servers: what is asked of them, what they may answer, and whose certificate is taken.

use xtask::certificates::self_signed;

use super::*;

const PREFER: &str = "client_tls_sslmode = \"prefer\"";

#[test]
fn a_server_that_cannot_encrypt_stays_in_the_clear_unless_it_must() {
    let world = World::new(PREFER, "sslmode = \"prefer\"");
    let mut server = world.of_server();
    server.output();
    server.gets(b"N");
    assert_eq!(server.told, [Told::Connected]);
    server.session.send(b"startup".to_vec());
    assert_eq!(server.output(), b"startup");
    assert_eq!(server.tasks, [Task::Sent(b"startup".to_vec()), Task::Dissolve]);

    let world = World::new(PREFER, "sslmode = \"require\"");
    let mut server = world.of_server();
    server.output();
    server.gets(b"N");
    assert_eq!(server.failure(), "server does not support SSL, but SSL was required");
}

#[test]
fn other_answers_and_bytes_behind_the_answer_end_the_connection() {
    let world = World::new(PREFER, "sslmode = \"prefer\"");
    for (answer, expected) in [
        (&b"SE"[..], "received unencrypted data after SSL response"),
        (b"E\0\0\0\x04", "server answers the SSLRequest with an error"),
        (b"H", "received invalid response to SSL negotiation"),
    ] {
        let mut server = world.of_server();
        server.output();
        server.gets(answer);
        assert_eq!(server.failure(), expected);
        assert_eq!(server.bytes(), b"");
    }
}

#[test]
fn a_core_that_has_not_heard_of_a_reload_connects_as_before() {
    let world = World::new(PREFER, "sslmode = \"require\"");
    let host = &world.options.databases[0].server.host;
    let other = "auth = \"trust\"\n[databases.d]\nhost = \"localhost\"\nsslmode = \"prefer\"\n";
    let other = Options::from_toml(other).unwrap();
    world.store.replace(Setup::read(&other).unwrap());
    assert!(Session::of_server(&world.store, host).unwrap().is_some());
    world.store.replace(Setup::read(&other).unwrap());
    assert!(Session::of_server(&world.store, host).is_err());
}

#[test]
fn a_server_in_the_clear_by_options_has_no_session() {
    let world = World::new(PREFER, "sslmode = \"disable\"");
    let host = &world.options.databases[0].server.host;
    assert!(Session::of_server(&world.store, host).unwrap().is_none());
}

#[test]
fn under_prefer_a_handshake_that_fails_is_followed_by_a_connection_in_the_clear() {
    let world = World::new(PREFER, "sslmode = \"prefer\"");
    let mut server = world.of_server();
    server.output();
    server.gets(b"S");
    server.output();
    server.gets(b"this is no TLS");
    assert_eq!(server.output(), b"");
    assert!(matches!(server.tasks[..], [Task::Dial(_)]), "{:?}", server.tasks);
    server.connects();
    assert_eq!(server.told, [Told::Connected]);
    server.output();
    assert_eq!(server.tasks.last(), Some(&Task::Dissolve));
}

#[test]
fn under_allow_an_error_of_the_server_is_followed_by_a_connection_with_tls() {
    let world = World::new(PREFER, "sslmode = \"allow\"");
    let mut server = world.of_server();
    assert_eq!(server.told, [Told::Connected]);
    server.session.send(b"startup".to_vec());
    assert_eq!(server.output(), b"startup");
    server.gets(b"E\0\0\0\x04");
    // The server closes its end before the loop has connected again.
    server.closes(None);
    server.output();
    assert!(matches!(server.tasks[..], [Task::Sent(_), Task::Dial(_)]), "{:?}", server.tasks);
    server.connects();
    assert_eq!(server.output().len(), 8, "an SSLRequest");
    server.gets(b"S");
    converse(&mut world.of_client(), &mut server, usize::MAX);
    assert!(matches!(server.told[1..], [Told::Secured(_), Told::Connected]));

    let mut content = world.of_server();
    content.output();
    content.gets(b"R\0\0\0\x08\0\0\0\0");
    assert_eq!(content.bytes().len(), 9);
    content.output();
    assert_eq!(content.tasks, [Task::Dissolve]);
}

#[test]
fn a_server_that_goes_before_it_is_ready_is_not_connected() {
    let world = World::new(PREFER, "sslmode = \"require\"");
    let mut asked = world.of_server();
    asked.closes(None);
    assert_eq!(asked.failure(), "the peer has closed the connection");
    let (_, mut shaking) = world.both();
    shaking.closes(Some("connection reset by peer"));
    assert_eq!(shaking.failure(), "connection reset by peer");
}

/// Returns the words of the failure of a handshake with a server that shows this certificate, if it
/// fails.
fn shown(signed: &Signed, authority: &Authority, sslmode: &str) -> Option<String> {
    let server = format!("sslmode = {sslmode:?}\nsslrootcert = ROOT");
    let world = World::with(Folder::new(), authority, signed, PREFER, &server);
    let (mut client, mut server) = world.both();
    converse(&mut client, &mut server, usize::MAX);
    match server.secured() {
        Some(_) => None,
        None => Some(server.failure().to_owned()),
    }
}

#[test]
fn certificates_are_checked_as_sslmode_says() {
    let (known, unknown) = (Authority::new("root").unwrap(), Authority::new("other").unwrap());
    let right = known.sign("x", &["localhost"]).unwrap();
    let wrong = known.sign("localhost", &["elsewhere"]).unwrap();
    let old = known.sign_expired("x", &["localhost"]).unwrap();
    let strange = unknown.sign("x", &["localhost"]).unwrap();
    let by_common_name = known.sign("localhost", &[]).unwrap();
    for (what, signed, sslmode, expected) in [
        ("right", &right, "verify-full", None),
        ("wrong name", &wrong, "verify-full", Some("not valid for name")),
        ("wrong name", &wrong, "verify-ca", None),
        ("expired", &old, "verify-ca", Some("expired")),
        ("unknown authority", &strange, "verify-ca", Some("UnknownIssuer")),
        // libpq has it so: with authorities, `require` is `verify-ca`.
        ("unknown authority", &strange, "require", Some("UnknownIssuer")),
        ("unknown authority", &strange, "prefer", None),
        ("common name alone", &by_common_name, "verify-full", None),
    ] {
        let failure = shown(signed, &known, sslmode);
        match (expected, &failure) {
            (None, None) => {}
            (Some(words), Some(failure)) if failure.contains(words) => {}
            _ => panic!("{what} under {sslmode}: {failure:?}"),
        }
    }
}

#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_by_itself_alone() {
    let (one, other) = (self_signed("localhost").unwrap(), self_signed("localhost").unwrap());
    for (trusted, expected) in [(&one, true), (&other, false)] {
        let folder = Folder::new();
        let root = folder.file("trusted.crt", &trusted.certificate);
        let server = format!("sslmode = \"verify-full\"\nsslrootcert = {root}");
        let authority = Authority::new("root").unwrap();
        let world = World::with(folder, &authority, &one, PREFER, &server);
        let (mut client, mut server) = world.both();
        converse(&mut client, &mut server, usize::MAX);
        assert_eq!(server.secured().is_some(), expected);
    }
}

#[test]
fn a_file_of_no_use_is_named() {
    let folder = Folder::new();
    let (one, other) = (self_signed("a").unwrap(), self_signed("b").unwrap());
    let (certificate, key) = folder.pair("one", &one);
    let (_, other_key) = folder.pair("other", &other);
    let empty = folder.file("empty", "");
    for (certificate, key, expected) in [
        (&certificate, &other_key, "other.key: keys may not be consistent"),
        (&empty, &key, "empty: the file has no certificate"),
        (&certificate, &empty, "empty: the file has no private key"),
        (&certificate, &"\"/no/such/key\"".to_owned(), "/no/such/key: "),
    ] {
        let text = format!(
            "auth = \"trust\"\nclient_tls_sslmode = \"allow\"\nclient_tls_cert_file = {certificate}\n\
             client_tls_key_file = {key}\n[databases.d]\nhost = \"h\"\n"
        );
        let why = Setup::read(&Options::from_toml(&text).unwrap()).unwrap_err();
        assert!(why.contains(expected), "{expected}: {why}");
    }
}
