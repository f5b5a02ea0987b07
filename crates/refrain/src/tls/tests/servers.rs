//! Servers: what is asked of them, what they may answer, and whose certificate is taken.

use refrain_config::Host;
use xtask::certificates::self_signed;

use super::*;

/// A file with a list of revoked certificates that cannot be read.
const BROKEN_LIST: &str = "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n";

const PREFER: &str = "client_tls_sslmode = \"prefer\"";
const VERIFY: &str = "sslmode = \"verify-full\"\nsslrootcert = ROOT";

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
fn a_setup_of_the_same_options_has_the_same_certificates() {
    let world = World::new(PREFER, "sslmode = \"require\"");
    let Host::Tcp { tls, .. } = &world.options.databases[0].server.host else { panic!() };
    let in_force = || (world.store.of_clients().unwrap(), world.store.of_server(tls).unwrap());
    let before = in_force();
    world.store.replace(world.store.changed(&world.options).unwrap());
    let after = in_force();
    assert!(Arc::ptr_eq(&before.0, &after.0) && Arc::ptr_eq(&before.1, &after.1));
    world.store.replace(Setup::read(&world.options).unwrap());
    let read = in_force();
    assert!(!Arc::ptr_eq(&read.0, &after.0) && !Arc::ptr_eq(&read.1, &after.1));
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
    World::with(Folder::new(), authority, signed, PREFER, &server).failure()
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
fn a_server_whose_certificate_is_revoked_is_refused() {
    let (authority, other) = (Authority::new("root").unwrap(), Authority::new("other").unwrap());
    let own = authority.sign("x", &["localhost"]).unwrap();
    let another = authority.sign("x", &["localhost"]).unwrap();
    let alone = self_signed("localhost").unwrap();
    for (list, signed, expected) in [
        (authority.revoke(&[&another], 2100), &own, None),
        (authority.revoke(&[&another, &own], 2100), &own, Some("Revoked")),
        (authority.revoke(&[&another], 2001), &own, Some("expired")),
        (other.revoke(&[], 2100), &own, Some("UnknownRevocationStatus")),
        // Itself in the file of authorities, and nobody can say whether it is revoked.
        (other.revoke(&[], 2100), &alone, Some("CaUsedAsEndEntity")),
    ] {
        let folder = Folder::new();
        let both = format!("{}{}", authority.certificate(), alone.certificate);
        let (list, roots) = (folder.file("root.crl", &list.unwrap()), folder.file("both", &both));
        let server = format!("sslmode = \"verify-full\"\nsslrootcert = {roots}\nsslcrl = {list}");
        let world = World::with(folder, &authority, signed, PREFER, &server);
        let (mut client, mut server) = world.both();
        converse(&mut client, &mut server, usize::MAX);
        match expected {
            None => assert!(server.secured().is_some()),
            Some(words) => {
                let why = server.failure();
                assert!(why.to_lowercase().contains(&words.to_lowercase()), "{words}: {why}");
            }
        }
    }
}

#[test]
fn a_direct_handshake_is_neither_asked_for_nor_done_without() {
    let direct = format!("{VERIFY}\nsslnegotiation = \"direct\"");
    let world = World::new(PREFER, &direct);
    let (mut client, mut server) = (world.of_client(), world.of_server());
    converse(&mut client, &mut server, usize::MAX);
    assert!(server.secured().is_some());
    assert!(server.told.contains(&Told::Connected));
    // A server that knows nothing of it goes, as PostgreSQL 16 does.
    let mut server = world.of_server();
    assert_eq!(server.output()[0], 0x16, "a handshake");
    server.closes(None);
    assert_eq!(server.failure(), "the peer has closed the connection");
    // Neither is the connection tried again in the clear, nor is an answer in the clear taken.
    let mut server = world.of_server();
    server.output();
    server.gets(b"N");
    server.gets(b"EEEEEEEE");
    assert!(!server.failure().is_empty());
    assert_eq!(server.tasks, []);
}

#[test]
fn a_direct_handshake_needs_the_name_of_the_protocol() {
    for (protocol, expected) in [
        (Some("postgresql"), None),
        (None, Some("direct SSL connection was established without ALPN")),
        (Some("http/1.1"), Some("NoApplicationProtocol")),
    ] {
        let (folder, authority) = (Folder::new(), Authority::new("root").unwrap());
        let signed = authority.sign("server", &["localhost"]).unwrap();
        let direct = format!("{VERIFY}\nsslnegotiation = \"direct\"");
        let world = World::with(folder, &authority, &signed, PREFER, &direct);
        let mut end = world.of_server();
        foreign_server(&mut end, &signed, protocol);
        match expected {
            None => assert!(end.secured().is_some()),
            Some(words) => {
                assert!(end.failure().contains(words), "{}", end.failure());
                assert!(end.secured().is_none() && !end.told.contains(&Told::Connected));
            }
        }
    }
}

/// Shakes hands as a server that takes this protocol.
fn foreign_server(end: &mut End, signed: &Signed, protocol: Option<&str>) {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
    let mut server = rustls::ServerConnection::new(Arc::new(config)).unwrap();
    loop {
        let output = end.output();
        server.read_tls(&mut &output[..]).unwrap();
        let _ = server.process_new_packets();
        let mut out = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut out).unwrap();
        }
        if output.is_empty() && out.is_empty() {
            return;
        }
        end.gets(&out);
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
        (&certificate, &other_key, "other.key: the key is not that of the certificate"),
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
    for (list, expected) in [
        (&empty, "empty: the file has no list of revoked certificates"),
        (&certificate, "one.crt: the file has no list of revoked certificates"),
        (&"\"/no/such/list\"".to_owned(), "/no/such/list: "),
        (&folder.file("broken.crl", BROKEN_LIST), "broken.crl: "),
    ] {
        for text in [
            format!(
                "client_tls_sslmode = \"allow\"\nclient_tls_cert_file = {certificate}\n\
                 client_tls_key_file = {key}\nclient_tls_ca_file = {certificate}\n\
                 client_tls_crl_file = {list}\n[databases.d]\nhost = \"h\"\n"
            ),
            format!(
                "[databases.d]\nhost = \"h\"\nsslmode = \"require\"\n\
                 sslrootcert = {certificate}\nsslcrl = {list}\n"
            ),
        ] {
            let options = Options::from_toml(&format!("auth = \"trust\"\n{text}")).unwrap();
            let why = Setup::read(&options).unwrap_err();
            assert!(why.contains(expected), "{expected}: {why}");
        }
    }
}
